// drop.h - what tests of destructors share: objects with numbers, and a
// destructor that counts them.
#ifndef TEST_WHOLE_DROP_H
#define TEST_WHOLE_DROP_H

#include "gc/mark/drops.h"
#include "test/harness/kind.h"

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

// make_kind registers a kind with RT_LAYOUT_WORDS and a destructor.
static inline int make_kind(uint32_t flags, rt_drop_fn *drop, void *arg)
{
	return kind_make(.name = "dropping", .layout = RT_LAYOUT_WORDS,
			 .flags = RT_KIND_DROP | flags, .drop = drop,
			 .arg = arg);
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

static inline int pick_none(const void *obj, size_t size, void *arg)
{
	(void)obj, (void)size, (void)arg;
	return 0;
}

static inline int pick_small(const void *obj, size_t size, void *arg)
{
	(void)obj, (void)arg;
	return size < 1000;
}

// dropped_once returns how many of the first n objects were dropped once.
static inline size_t dropped_once(size_t n)
{
	size_t once = 0;

	for (size_t i = 0; i < n; i++)
		once += dropped[i] == 1;
	return once;
}

static inline void each_dropped_once(size_t n)
{
	ck_assert_uint_eq(dropped_once(n), n);
}

// only_dropped_died tells whether, of n objects, those whose destructors ran
// are gone, and all others are still objects.  Object i must have the number i.
static inline bool only_dropped_died(void *const *objects, size_t n)
{
	size_t wrong = 0;

	for (size_t i = 0; i < n; i++)
		wrong += rt_is_heap(objects[i]) != (dropped[i] == 0);
	return wrong == 0;
}

// pair_up makes two objects refer to each other.
static inline void pair_up(struct item *a, struct item *b)
{
	a->ref = b;
	b->ref = a;
	a->spare = b->id + 1000;
	b->spare = a->id + 1000;
}

// pair_is_whole tells whether both of a pair have what pair_up wrote.
static inline bool pair_is_whole(const struct item *item)
{
	const struct item *other = item->ref;

	return other->ref == item && item->spare == other->id + 1000 &&
	       other->spare == item->id + 1000;
}

// begin_drops makes a heap with two kinds, and exact roots.
static inline void begin_drops(rt_config c)
{
	heap_start_exact(c);
	kind = make_kind(0, drop_item, NULL);
	deep_kind = make_kind(RT_KIND_DROP_DEEP, drop_item, NULL);
}

// begin_checked is begin_drops with checkmark and clobberfree.
static inline void begin_checked(void)
{
	rt_config c = heap_config_checked();

	c.clobberfree = 1;
	begin_drops(c);
}

#endif
