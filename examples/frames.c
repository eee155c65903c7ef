// frames.c - a thread whose local variables are exact roots.
#include <rt/rt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void must(int error)
{
	if (error == RT_OK)
		return;
	fprintf(stderr, "frames: error %d\n", error);
	exit(1);
}

// A text, which has no references.
struct text {
	size_t n;
};

static char *bytes(struct text *t)
{
	return (char *)(t + 1);
}

static struct text *text_new(size_t n)
{
	struct text *t = (struct text *)rt_alloc_noscan(sizeof *t + n + 1);

	if (!t) {
		fprintf(stderr, "frames: no memory\n");
		exit(1);
	}
	t->n = n;
	return t;
}

// join joins n texts.  Each allocation may collect, so a text that is needed
// after it must be in a variable that a frame names.
static struct text *join(const char *const *part, size_t n)
{
	if (n == 1) {
		struct text *t = text_new(strlen(part[0]));

		memcpy(bytes(t), part[0], t->n);
		return t;
	}
	struct text *left = join(part, n / 2), *right = NULL;
	RT_FRAME(&left, &right);

	right = join(part + n / 2, n - n / 2);
	struct text *both = text_new(left->n + right->n);

	memcpy(bytes(both), bytes(left), left->n);
	memcpy(bytes(both) + left->n, bytes(right), right->n);
	return both;
}

int main(void)
{
	static const char *const part[] = {"no ",    "word ", "of ",	"this ",
					   "stack ", "is ",   "scanned"};
	struct text *all = NULL;
	rt_memstats m;

	// rt_init attaches a thread whose stack is scanned.
	must(rt_init(NULL));
	must(rt_thread_detach());
	must(rt_thread_attach(RT_THREAD_EXACT));
	{
		RT_FRAME(&all);

		all = join(part, sizeof part / sizeof *part);
		must(rt_gc());
		printf("%s\n", bytes(all));
		must(rt_read_memstats(&m));
		printf("objects in the block: %d\n", (int)m.heap_objects);
	}
	must(rt_gc());
	must(rt_read_memstats(&m));
	printf("objects after it: %d\n", (int)m.heap_objects);
	must(rt_fini());
	return 0;
}
