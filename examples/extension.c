// extension.c - C code that keeps objects where the collector does not look.
//
// A library calls back with what it was given, and knows nothing of a heap.  So
// it gets a handle.
#include <rt/rt.h>

#include <err.h>
#include <stdio.h>
#include <stdlib.h>

enum { ENTRIES = 8 };

struct timer { // of the library, from malloc
	void (*fn)(void *);
	void *arg;
};

static char *title;	// a root as static data
static char **registry; // freed by hand

static void must(int error)
{
	if (error < 0)
		errx(1, "%s", rt_strerror(error));
}

static void *need(void *p)
{
	must(p ? RT_OK : RT_ENOMEM);
	return p;
}

static void say(void *arg)
{
	printf("timer: %s\n", (const char *)rt_handle_get((rt_handle *)arg));
}

static struct timer *timer_new(char *text)
{
	struct timer *t = (struct timer *)malloc(sizeof *t);

	need(t);
	t->fn = say;
	t->arg = need(rt_handle_new(text));
	return t;
}

static void timer_free(struct timer *t)
{
	must(rt_handle_free((rt_handle *)t->arg));
	free(t);
}

// Where the system does not let static data be read, the variables are named.
static void begin_roots(void)
{
	if (rt_roots_static(1) == RT_OK)
		return;
	must(rt_roots_add(&title, &title + 1, RT_ROOT_EXACT));
	must(rt_roots_name(&title, &title + 1, "title"));
}

int main(void)
{
	struct timer *t;

	must(rt_init(NULL));
	begin_roots();
	title = (char *)need(rt_strdup("static data"));
	t = timer_new((char *)need(rt_strdup("first")));
	must(rt_gc());
	t->fn(t->arg);
	must(rt_handle_set((rt_handle *)t->arg,
			   need(rt_memdup("second", sizeof "second"))));
	must(rt_gc());
	t->fn(t->arg);
	timer_free(t);

	// An uncollectable object is a root, and lives until it is freed.
	registry = (char **)need(
	    rt_alloc_uncollectable(RT_WORDS, ENTRIES * sizeof *registry));
	registry[0] = (char *)need(rt_strdup("registry"));
	must(rt_gc());
	printf("kept by %s and by a %s\n", title, registry[0]);
	must(rt_free(registry));
	must(rt_fini());
	return fflush(stdout) ? 1 : 0;
}
