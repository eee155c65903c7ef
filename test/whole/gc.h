// gc.h - a heap whose objects live only by the test's own roots.
#ifndef TEST_WHOLE_GC_H
#define TEST_WHOLE_GC_H

#include "runtime/spans/mspan.h"
#include "test/harness/heap.h"

enum { ROOTS = 64 };

extern void *root[ROOTS];

static inline void start(rt_config c)
{
	heap_start_exact(c);
	must(rt_roots_add(root, root + ROOTS, RT_ROOT_EXACT));
}

static inline void setup(void)
{
	start(heap_config(HEAP_QUIET));
}

static inline void teardown(void)
{
	memset(root, 0, sizeof root);
	ck_assert_uint_eq(heap_live_after_gc(), 0);
	ck_assert_int_eq(rt_fini(), RT_OK);
}

// class_request is the largest request that a class serves.
static inline size_t class_request(unsigned c)
{
	size_t size = sizeclass_table[c].size;

	return size > SIZECLASS_MAX_REQUEST ? SIZECLASS_MAX_REQUEST : size;
}

struct cell {
	struct cell *next;
	struct cell *other;
};

static inline struct cell *make_list(uint64_t n)
{
	struct cell *head = NULL;

	for (uint64_t i = 0; i < n; i++) {
		struct cell *c = rt_alloc(sizeof *c);

		c->next = head;
		head = c;
	}
	return head;
}

static inline uint64_t list_length(const struct cell *c)
{
	uint64_t n = 0;

	for (; c; c = c->next)
		n++;
	return n;
}

// make_wide makes a tree whose nodes have n children, depth levels deep.
static inline void **make_wide(unsigned n, unsigned depth)
{
	void **t = rt_alloc(n * sizeof *t);

	for (unsigned i = 0; depth > 1 && i < n; i++)
		t[i] = make_wide(n, depth - 1);
	return t;
}

#endif
