// Pages that must be scanned again: markers note and take them at any time.
#define RT_NO_INLINE_ALLOC
#include <rt/rt.h>

#include "gc/mark/overflow.h"
#include "gc/mark/rescan.h"
#include "gc/mark/scan.h"
#include "test/harness/kind.h"
#include "test/order/host.h"

static struct marker first, beside;
static struct hand taker, setter;
static uint64_t taken;
static uintptr_t object;

GROUP(overflow, .timeout = 2 * AWAIT_SECONDS);

static void take(void)
{
	taken = overflow_take(0);
}

static void set(void)
{
	overflow_set(3);
}

// begin makes a heap with an object, so that there are pages and bits for them,
// and stops the world.
static void begin(void)
{
	heap_begin();
	ck_assert_ptr_nonnull(rt_alloc(16));
	ck_assert_int_eq(rt_stop_the_world(RT_STOP_HOST), RT_OK);
}

// overflow OVERFLOW_PLAIN: while a marker takes the bits of a word, another
// marker sets one of these bits, or takes them as well.  Each bit is taken
// once.
TEST(bits_are_taken_once_and_none_is_lost, .n = 2)
{
	uint64_t others = 0;

	begin();
	overflow_set(5);
	hold_at(SCHED_OVERFLOW_TAKE, &taker, take);
	if (_i == 0)
		overflow_set(3);
	else
		others = overflow_take(0);
	let_end(SCHED_OVERFLOW_TAKE, &taker);
	others |= overflow_take(0);
	ck_assert_uint_eq(taken & others, 0);
	ck_assert_uint_eq(taken | others, _i == 0 ? 1 << 5 | 1 << 3 : 1 << 5);
}

// overflow FLAG_EARLY: a marker sets a bit, and raises the flag after that.  So
// if another marker lowers the flag and does not see the bit, the flag is up
// again.
TEST(the_flag_follows_the_bit)
{
	begin();
	hold_at(SCHED_OVERFLOW_SET, &setter, set);
	ck_assert(!overflow_lower());
	ck_assert_uint_eq(overflow_take(0), 1 << 3);
	let_end(SCHED_OVERFLOW_SET, &setter);
	ck_assert(overflow_lower());
	ck_assert(!overflow_lower());
}

static void note(void)
{
	scan_overflow(&first, object);
}

// overflow BIT_EARLY: all markers see the mark of an object before the bit of
// its page.  The bit of an object of 24 bytes may be in the markword behind the
// one of its first word.
TEST(the_bit_follows_the_mark)
{
	rt_config c = heap_config(HEAP_QUIET);
	uintptr_t objects[200];
	unsigned second = 0; // objects whose bit is in the next markword

	c.align8 = 1;
	heap_start(c);
	for (size_t i = 0; i < RT_ARRAY_LEN(objects); i++)
		objects[i] = (uintptr_t)rt_alloc(24);
	ck_assert_int_eq(rt_stop_the_world(RT_STOP_HOST), RT_OK);
	grey_look(&first);
	grey_look(&beside);
	ck_assert(!first.work.alone);
	for (size_t i = 0; i < RT_ARRAY_LEN(objects); i++) {
		struct grey o;

		object = objects[i];
		second += grey_markword(&first, object) !=
			  grey_markword(&first, object + sizeof object);
		ck_assert_int_ne(grey_word(&first, object, &o), GREY_NOTHING);
		ck_assert(grey_unmarked(&beside, object));
		hold_at(SCHED_SCAN_OVERFLOW, &setter, note);
		ck_assert(!grey_unmarked(&beside, object));
		ck_assert(!overflow_lower());
		let_end(SCHED_SCAN_OVERFLOW, &setter);
		ck_assert(overflow_lower());
	}
	ck_assert_uint_ne(second, 0);
}

static void trace(rt_tracer *t, void *obj, size_t size, void *arg)
{
	(void)t, (void)obj, (void)size, (void)arg;
}

static const struct {
	uint32_t flags;
	bool openers;
} traced[] = {{0, false}, {RT_KIND_SERIAL, true}, {RT_KIND_ONCE, true}};

// If only one marker may trace the objects of a page, only the opener scans
// that page again.
TEST(pages_of_some_kinds_are_for_the_opener, .n = RT_ARRAY_LEN(traced))
{
	void *p;

	heap_begin();
	p = rt_alloc_kind(kind_make(.layout = RT_LAYOUT_TRACE, .trace = trace,
				    .flags = traced[_i].flags),
			  64);
	ck_assert_ptr_nonnull(p);
	ck_assert(rescan_is_openers(arena_offset((uintptr_t)p) >>
				    RT_PAGE_SHIFT) == traced[_i].openers);
}

enum { WIDE = 100000 }; // words of an object, which find no work buffer

static uintptr_t roots[2];

static void collect(void)
{
	host_collect();
}

// overflow FLAG_LATE: a marker takes the bits of one word after the other.  A
// bit that is set behind it meanwhile is taken in the next round.
TEST(what_is_noted_in_a_round_is_for_the_next)
{
	uint64_t low, wide;

	heap_start(heap_config(HEAP_QUIET));
	ck_assert_int_eq(rt_roots_add(roots, roots + 2, RT_ROOT_EXACT), RT_OK);
	roots[0] = (uintptr_t)rt_alloc(64);
	for (unsigned i = 0; i < 200; i++)
		ck_assert_ptr_nonnull(rt_alloc_noscan(RT_PAGE_SIZE));
	roots[1] = (uintptr_t)rt_alloc(WIDE * sizeof(uintptr_t));
	for (unsigned i = 0; i < WIDE; i++)
		((void **)roots[1])[i] = rt_alloc(16);
	low = arena_offset(roots[0]) >> RT_PAGE_SHIFT;
	wide = arena_offset(roots[1]) >> RT_PAGE_SHIFT;
	ck_assert_uint_lt(low / OVERFLOW_PAGES, wide / OVERFLOW_PAGES);
	work_limit(0);
	host_block();
	hold_at(SCHED_OVERFLOW_TAKE, &taker, collect);
	overflow_set(low);
	let_end(SCHED_OVERFLOW_TAKE, &taker);
	host_unblock();
	work_limit(UINT32_MAX);
	ck_assert_ptr_null(overflow_check(arena_used() >> RT_PAGE_SHIFT));
	for (unsigned i = 0; i < WIDE; i++)
		ck_assert(rt_is_heap(((void **)roots[1])[i]));
}
