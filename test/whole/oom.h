// oom.h - a heap that is filled to its limit.
#ifndef TEST_WHOLE_OOM_H
#define TEST_WHOLE_OOM_H

#include "test/harness/heap.h"
#include "test/harness/thread.h"

enum {
	MAX_HEAP = 64 << 20,
	NROOTS = MAX_HEAP / 4096,
	SANITIZED = RT_ASAN || RT_TSAN,
};

static void *roots[NROOTS]; // with list, the only roots: threads are exact
static unsigned nroots;

// A list fills the heap with objects of any size from 16 bytes.
struct node {
	struct node *next;
	uint64_t id;
};
static struct node *list;
static uint64_t list_len;

static inline void begin_with(size_t max_heap, int percent)
{
	rt_config c = heap_config(percent);

	c.max_heap = max_heap;
	// A wake that is refused would leave the background thread asleep.
	if (c.sweep != 0)
		c.gc_threads = 0;
	heap_start_exact(c);
	must(rt_roots_add(roots, roots + NROOTS, RT_ROOT_EXACT));
	ck_assert_int_eq(rt_roots_add(&list, &list + 1, RT_ROOT_EXACT), RT_OK);
}

static inline void begin(void)
{
	begin_with(MAX_HEAP, 100);
}

// too_much asks for more than is left: the whole range, one page of which is in
// use.
static inline void *too_much(void)
{
	roots[0] = rt_alloc(16);
	return rt_alloc(MAX_HEAP);
}

static inline void drop_all(void)
{
	memset(roots, 0, sizeof roots);
	nroots = 0;
	list = NULL;
	list_len = 0;
}

static inline void end(void)
{
	heap_healthy();
	drop_all();
	ck_assert_int_eq(rt_fini(), RT_OK);
}

// nothing_taken requires that allocations that were refused since *before was
// read took nothing.
static inline rt_memstats nothing_taken(const rt_memstats *before)
{
	rt_memstats after = heap_healthy();

	ck_assert_uint_eq(after.mallocs, before->mallocs);
	ck_assert_uint_eq(after.total_alloc, before->total_alloc);
	ck_assert_uint_eq(after.heap_sys, before->heap_sys);
	return after;
}

// fill_list allocates list nodes of size bytes until there is no memory.
static inline void fill_list(size_t size)
{
	struct node *n;

	while ((n = rt_alloc(size)) != NULL) {
		n->next = list;
		n->id = list_len++;
		list = n;
	}
}

// list_whole tells whether no node was lost.
static inline bool list_whole(void)
{
	uint64_t expected = list_len;

	for (const struct node *n = list; n; n = n->next)
		if (n->id != --expected)
			return false;
	return expected == 0;
}

// fill_roots allocates objects without pointers, of at least 4096 bytes, until
// there is no memory.
static inline void fill_roots(size_t size)
{
	void *p;

	while (nroots < NROOTS && (p = rt_alloc_noscan_uninit(size)) != NULL)
		roots[nroots++] = p;
}

#endif
