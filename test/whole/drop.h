// drop.h - what tests of destructors share: objects with numbers, and a
// destructor that counts them.
#ifndef TEST_WHOLE_DROP_H
#define TEST_WHOLE_DROP_H

#include "gc/mark/drops.h"
#include "test/harness/heap.h"

// An object of the kinds here.  Its destructor notes its number.
struct item {
	void *ref;
	void *other;
	uint64_t id;
	uint64_t spare;
};

enum { MANY = 20000 / HEAP_CUT };
static uint32_t dropped[4 * MANY]; // times, by id
static size_t drops_run;
static int kind, deep_kind;

static inline void drop_item(void *obj, size_t size, void *arg)
{
	const struct item *item = obj;

	(void)arg;
	if (size < sizeof *item || rt_is_heap(obj))
		abort();
	dropped[item->id]++;
	drops_run++;
}

// make_kind registers a kind of words with a destructor.
static inline int make_kind(uint32_t flags, rt_drop_fn *drop, void *arg)
{
	rt_kind_desc d;
	int k;

	rt_kind_desc_init(&d);
	d.name = "dropping";
	d.layout = RT_LAYOUT_WORDS;
	d.flags = RT_KIND_DROP | flags;
	d.drop = drop;
	d.arg = arg;
	k = rt_kind_register(&d);
	ck_assert_int_gt(k, 0);
	return k;
}

static inline struct item *make_of(int k, uint64_t id)
{
	struct item *item = rt_alloc_kind(k, sizeof *item);

	ck_assert_ptr_nonnull(item);
	item->id = id;
	return item;
}

static inline struct item *make(uint64_t id)
{
	return make_of(kind, id);
}

static inline uint64_t ready(void)
{
	return rt_finalizers_ready();
}

static inline void gc(void)
{
	ck_assert_int_eq(rt_gc(), RT_OK);
}

// begin_drops makes a heap with two kinds, and exact roots.
static inline void begin_drops(rt_config c)
{
	heap_start_exact(c);
	kind = make_kind(0, drop_item, NULL);
	deep_kind = make_kind(RT_KIND_DROP_DEEP, drop_item, NULL);
}

#endif
