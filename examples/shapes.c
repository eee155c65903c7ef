// shapes.c - ways to allocate: arrays of a type, batches, aligned memory.
#include <rt/rt.h>

#include <err.h>
#include <stdio.h>

enum { PAIRS = 30, BATCH = 64, BATCHES = 10, PAGE = 4096 };

struct pair {
	char *name;
	uint64_t number; // may look like an address, and is none
};

struct cell {
	struct cell *next;
};

static void *need(void *p)
{
	if (!p)
		errx(1, "no memory");
	return p;
}

// An array whose type says that one word of two is a reference.
static struct pair *make_pairs(void)
{
	static const uint64_t words[] = {1};
	static rt_type type;
	struct pair *pairs;

	type.struct_size = sizeof type;
	type.size = sizeof *pairs;
	type.ptrdata = sizeof pairs->name;
	type.bitmap = words;
	pairs = (struct pair *)need(rt_alloc_typed(&type, PAIRS));
	for (int i = 0; i < PAIRS; i++) {
		pairs[i].name = (char *)need(rt_alloc_kind(RT_NOSCAN, 32));
		snprintf(pairs[i].name, 32, "pair %d", i);
		pairs[i].number = (uintptr_t)need(rt_alloc(1000));
	}
	return pairs;
}

// A list whose cells come in batches.  No poll comes before they are linked.
static struct cell *make_cells(void)
{
	struct cell *cells = NULL;
	void *batch[BATCH];

	for (int i = 0; i < BATCHES; i++) {
		size_t n = rt_alloc_many(RT_WORDS, sizeof *cells, BATCH, batch);

		need(n ? batch : NULL);
		while (n-- > 0) {
			((struct cell *)batch[n])->next = cells;
			cells = (struct cell *)batch[n];
		}
	}
	return cells;
}

int main(void)
{
	static struct pair *pairs; // roots
	static struct cell *cells;
	rt_memstats m;
	size_t n = 0;
	void *page;

	if (rt_init(NULL) < 0 ||
	    rt_roots_add(&pairs, &pairs + 1, RT_ROOT_EXACT) < 0 ||
	    rt_roots_add(&cells, &cells + 1, RT_ROOT_EXACT) < 0)
		errx(1, "no heap");
	pairs = make_pairs();
	cells = make_cells();
	page = need(rt_alloc_aligned(RT_NOSCAN, PAGE, PAGE));
	if (rt_gc() < 0 || rt_read_memstats(&m) < 0)
		errx(1, "no collection");
	printf("the last is %s; numbers keep %s\n", pairs[PAIRS - 1].name,
	       m.heap_alloc < PAIRS * 1000 ? "nothing" : "much");
	for (struct cell *c = cells; c; c = c->next)
		n++;
	printf("cells: %s\n",
	       n >= BATCHES && n <= BATCH * BATCHES ? "all" : "some");
	printf("a page of kind %d, aligned: %d\n", rt_kind_of(page),
	       (uintptr_t)page % PAGE == 0);
	return rt_fini() < 0 || fflush(stdout) ? 1 : 0;
}
