// hello.c - a million objects, of which the collector leaves a thousand.
#include <rt/rt.h>

#include <err.h>
#include <stdio.h>

struct cell {
	long n;
	struct cell *next;
};

static struct cell *list; // static, so main registers it as a root

// must ends the program if a function of the library returned an error.
static void must(int error)
{
	if (error)
		errx(1, "%s", rt_strerror(error));
}

int main(void)
{
	rt_memstats m;

	must(rt_init(NULL)); // attaches this thread, so its stack is scanned
	must(rt_roots_add(&list, &list + 1, RT_ROOT_EXACT));
	for (long i = 0; i < 1000000; i++) {
		struct cell *c = (struct cell *)rt_alloc(sizeof *c); // zeroed

		must(c ? RT_OK : RT_ENOMEM);
		c->n = i;
		c->next = i % 1000 ? list : NULL; // drop the rest
		list = c;
	}
	must(rt_gc());
	must(rt_read_memstats(&m));
	printf("%lu objects, %lu bytes, %lu %% freed\n", m.mallocs,
	       m.total_alloc, 100 * m.frees / m.mallocs);
	printf("the list begins with %ld\n", list->n);
	must(rt_fini());
	return fflush(stdout) ? 1 : 0;
}
