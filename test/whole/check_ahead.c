// Memory that is brought in before it is needed: when, and how much.
//
// The test does the work of the background thread itself, and says what time it
// is.
#define RT_NO_INLINE_ALLOC
#include <errno.h>
#include <pthread.h>
#include <rt/rt.h>

#include "runtime/os/settings.h"
#include "runtime/spans/populate.h"
#include "gc/cycle/pacer.h"
#include "gc/cycle/scavenger.h"
#include "gc/cycle/swept.h"
#include "gc/host/supply.h"
#include "test/harness/fault.h"
#include "test/harness/heap.h"

#define MIB (UINT64_C(1) << 20)
#define SECOND UINT64_C(1000000000)

enum {
	OBJECT = 8192,
	QUICK_NS = 100000000, // gc/cycle/ahead.c
	USED_MIB = 64,
	CHUNK_MIB = RT_CHUNK_SIZE >> 20,
};

static struct ahead *const ahead = &scavenger.ahead;
static const atomic_u32 never;

// start makes a heap of USED_MIB.
static void start(rt_config c)
{
	c.max_procs = 1;
	c.sweep = 0;
	heap_start_exact(c);
	// The library makes no background thread, and wakes none.
	ck_assert(scavenger_claim());
	ck_assert_ptr_nonnull(rt_alloc_noscan_uninit(USED_MIB * MIB));
	ahead_init(ahead);
}

static rt_config config(void)
{
	rt_config c = heap_config(HEAP_QUIET);

	c.populate = 2;
	c.gc_threads = 1;
	return c;
}

static void begin(void)
{
	start(config());
}

// take allocates mib MiB in objects of OBJECT bytes.
static void take(unsigned mib)
{
	for (unsigned i = 0; i < mib * (MIB / OBJECT); i++)
		ck_assert_ptr_nonnull(rt_alloc_noscan_uninit(OBJECT));
}

static bool lacks_populate(void)
{
	if (atomic_u32_load_relaxed(&mheap.populate))
		return false;
	suite_skip("this kernel has no MADV_POPULATE_WRITE", NULL);
	return true;
}

// call takes two chunks of pages, which calls the background thread.
static void call(void)
{
	take(2 * CHUNK_MIB);
	ck_assert(ahead_called(ahead));
}

// run calls ahead_run at the time now, and returns the bytes that were brought
// in.
static uint64_t run(uint64_t now)
{
	uint64_t before = heapgauge_sum(HEAPGAUGE_FREE), after;

	ahead_run(ahead, proc_self(), now, &never);
	ck_assert(!ahead_called(ahead));
	after = heapgauge_sum(HEAPGAUGE_FREE);
	ck_assert_uint_ge(after, before);
	heap_healthy();
	return after - before;
}

// wanted returns how many bytes of free pages must have memory, as ahead.h
// says.
static uint64_t wanted(void)
{
	return ahead_bytes(gauge_load(&gauges.heap_live), PACER_NEVER);
}

GROUP(bytes, .timeout = 60);

static const struct {
	uint64_t used, goal, bytes; // MiB; goal 0: none
} amounts[] = {
    {0, 0, 0},	 {31, 0, 0},  {32, 0, 1},     {64, 0, 2},
    {256, 0, 8}, {257, 0, 8}, {100000, 0, 8}, {64, 66, 2},
    {64, 65, 1}, {64, 64, 0}, {64, 4, 0},     {1024, 1027, 3},
};

TEST(bytes_follow_from_the_heap_and_its_goal, .n = RT_ARRAY_LEN(amounts))
{
	uint64_t goal = amounts[_i].goal ? amounts[_i].goal * MIB : PACER_NEVER;

	ck_assert_uint_eq(ahead_bytes(amounts[_i].used * MIB, goal),
			  amounts[_i].bytes * MIB);
}

GROUP(calls, .setup = begin, .timeout = 120);

static void take_pages(uint64_t npages)
{
	ck_assert_ptr_nonnull(
	    mheap_alloc_manual(proc_self(), npages, MSPAN_STACK));
}

TEST(one_thread_calls_after_a_chunk)
{
	if (lacks_populate())
		return;
	take_pages(RT_CHUNK_PAGES - 1);
	ck_assert(!ahead_due());
	ck_assert(!ahead_call(ahead));
	take_pages(1);
	ck_assert(ahead_due());
	ck_assert(ahead_call(ahead));
	ck_assert(ahead_called(ahead));
	ck_assert(!ahead_due());
	ck_assert(!ahead_call(ahead));
	take_pages(2 * RT_CHUNK_PAGES);
	ck_assert(!ahead_due()); // until the thread has run
}

TEST(a_thread_that_is_not_called_does_nothing)
{
	take(1);
	ck_assert_uint_eq(run(SECOND), 0);
	ck_assert_uint_eq(run(SECOND + 1), 0);
}

static const struct {
	uint64_t first, second;
	bool quick;
} times[] = {
    {SECOND, SECOND + QUICK_NS, true},
    {SECOND, SECOND + QUICK_NS + 1, false},
    {SECOND, SECOND, true},
    {SECOND, SECOND - 1, true}, // a clock that went back
    {0, SECOND, false},		// a clock that was refused
    {SECOND, 0, false},
};

TEST(two_calls_in_a_tenth_of_a_second_bring_memory, .n = RT_ARRAY_LEN(times))
{
	if (lacks_populate())
		return;
	call();
	ck_assert_uint_eq(run(times[_i].first), 0);
	call();
	if (!times[_i].quick) {
		ck_assert_uint_eq(run(times[_i].second), 0);
		return;
	}
	ck_assert_uint_gt(run(times[_i].second), 0);
	ck_assert_uint_ge(heapgauge_sum(HEAPGAUGE_FREE), wanted());
	ck_assert_uint_lt(heapgauge_sum(HEAPGAUGE_FREE),
			  wanted() + POPULATE_STEP);
}

// bring calls twice within QUICK_NS, so memory is brought in.
static void bring(void)
{
	call();
	run(SECOND);
	call();
	ck_assert_uint_gt(run(SECOND), 0);
}

// Calls that come when half of the memory was taken are close to each other,
// and bring in more.  A call that comes late brings in nothing, and the next
// one is due only after a chunk.
TEST(the_next_call_comes_when_a_half_is_taken)
{
	if (lacks_populate())
		return;
	bring();
	ck_assert(!ahead_called(ahead));
	take((unsigned)(wanted() / MIB));
	ck_assert(ahead_called(ahead));
	ck_assert_uint_gt(run(SECOND + 1), 0);
	// This call comes late.
	take((unsigned)(wanted() / MIB));
	ck_assert(ahead_called(ahead));
	ck_assert_uint_eq(run(2 * SECOND), 0);
	take(CHUNK_MIB - 1);
	ck_assert(!ahead_called(ahead));
}

// Free pages that were used before have memory, so none is brought in for them.
TEST(pages_with_memory_are_not_brought_in)
{
	enum { FREED_MIB = 24 };
	static void *freed[FREED_MIB];

	if (lacks_populate())
		return;
	for (unsigned i = 0; i < FREED_MIB; i++)
		freed[i] = rt_alloc_noscan_uninit(MIB);
	bring();
	for (unsigned i = 0; i < FREED_MIB; i++)
		must(rt_free(freed[i]));
	take(4);
	ck_assert(ahead_called(ahead));
	ck_assert_uint_eq(run(SECOND + 1), 0);
	take(FREED_MIB / 2); // no call: these pages are not scavenged
	ck_assert(!ahead_called(ahead));
}

TEST(the_heap_grows_ahead)
{
	uint64_t before, free;

	if (lacks_populate())
		return;
	bring();
	before = arena_used();
	free = pagealloc_count_free(&mheap.pages) << RT_PAGE_SHIFT;
	// Nothing is free but what was brought in.
	take_pages(free / RT_PAGE_SIZE / 2);
	ck_assert(ahead_call(ahead));
	run(SECOND + 1);
	ck_assert_uint_ge(heapgauge_sum(HEAPGAUGE_FREE), wanted());
	ck_assert_uint_le(arena_used(), before + 2 * RT_CHUNK_SIZE);
}

static const atomic_u32 always = {1};

// When the heap ends, the background thread brings in no more memory.
TEST(the_end_of_the_heap_is_the_end)
{
	uint64_t before;

	if (lacks_populate())
		return;
	call();
	run(SECOND);
	call();
	before = heapgauge_sum(HEAPGAUGE_FREE);
	ahead_run(ahead, proc_self(), SECOND, &always);
	ck_assert_uint_eq(heapgauge_sum(HEAPGAUGE_FREE), before);
}

// A large object that grows in place takes pages, too.
TEST(an_object_that_grows_calls)
{
	void *p = rt_alloc_noscan_uninit(MIB);

	if (lacks_populate())
		return;
	ck_assert_ptr_nonnull(p);
	ck_assert(!ahead_due());
	must(rt_resize(p, RT_CHUNK_SIZE));
	ck_assert(ahead_due());
}

enum { WRITERS = 2, WRITES = HEAP_CUT > 1 ? 2000 : 20000 };

static void *allocate(void *arg)
{
	must(rt_thread_attach(RT_THREAD_EXACT));
	for (unsigned i = 0; i < WRITES; i++)
		ck_assert_ptr_nonnull(rt_alloc_noscan_uninit(1024));
	must(rt_thread_detach());
	return arg;
}

// Other threads allocate while memory is brought in.  Afterwards the statistics
// are exact.
TEST(threads_allocate_meanwhile)
{
	pthread_t writer[WRITERS];

	if (lacks_populate())
		return;
	for (unsigned i = 0; i < WRITERS; i++)
		ck_assert_int_eq(
		    pthread_create(&writer[i], NULL, allocate, NULL), 0);
	for (unsigned i = 0; i < 200; i++) {
		atomic_u32_store_relaxed(&ahead->due, 1);
		ahead_run(ahead, proc_self(), SECOND, &never);
		rt_safepoint();
	}
	must(rt_blocking_enter());
	for (unsigned i = 0; i < WRITERS; i++)
		ck_assert_int_eq(pthread_join(writer[i], NULL), 0);
	must(rt_blocking_leave());
	heap_healthy();
}

// Nothing is brought in if the memory limit leaves no room.
TEST(the_limit_is_kept)
{
	uint64_t mapped;
	int64_t none;

	if (lacks_populate())
		return;
	call();
	run(SECOND);
	call();
	mapped = gauge_load(&gauges.mapped_ready);
	must(rt_set_memory_limit(mapped + mapped / 19, &none));
	ck_assert_uint_eq(run(SECOND), 0);
	must(rt_set_memory_limit(none, NULL));
	call();
	ck_assert_uint_gt(run(SECOND), 0);
}

// A system that refuses is not asked again.
TEST(a_refusal_is_the_end)
{
	if (lacks_populate())
		return;
	call();
	run(SECOND);
	call();
	fault_fail(OSCALL_ADVISE, 1, UINT64_MAX, EINVAL);
	ck_assert_uint_eq(run(SECOND), 0);
	fault_fail(OSCALL_ADVISE, 1, 0, 0);
	ck_assert(!ahead_wanted());
	take(3 * CHUNK_MIB);
	ck_assert(!ahead_called(ahead));
}

GROUP(settings, .timeout = 60);

// Dead objects are swept before fresh memory is brought in.
TEST(nothing_is_brought_in_while_a_sweep_is_left)
{
	rt_config c = config();
	uint64_t before;

	c.sweep = 2;
	c.max_procs = 1;
	heap_start_exact(c);
	ck_assert(scavenger_claim());
	ahead_init(ahead);
	if (lacks_populate())
		return;
	for (unsigned i = 0; i < 2; i++) {
		take(USED_MIB);
		ck_assert(ahead_called(ahead));
		before = heapgauge_sum(HEAPGAUGE_FREE);
		if (i == 1) {
			ck_assert_ptr_nonnull(
			    rt_alloc_uncollectable(RT_NOSCAN, USED_MIB * MIB));
			supply_collect(proc_self(), ASK_FORCED);
			ck_assert(!swept_over());
		}
		ahead_run(ahead, proc_self(), SECOND, &never);
	}
	ck_assert(!swept_over());
	ck_assert_uint_eq(heapgauge_sum(HEAPGAUGE_FREE), before);
	heap_healthy();
}

static void begin_small_range(void)
{
	rt_config c = config();

	c.max_heap = 2 * USED_MIB * MIB;
	start(c);
}

// Near the end of the range fewer pages may be free than are wanted.  Then all
// free pages have memory.  No allocation fails.
TEST(the_range_may_end)
{
	bool all = false;

	begin_small_range();
	if (lacks_populate())
		return;
	bring();
	// The last objects need a collection, which the end of the range
	// causes.
	for (unsigned i = 0; i < USED_MIB; i++) {
		ck_assert_ptr_nonnull(rt_alloc_noscan_uninit(MIB));
		atomic_u32_store_relaxed(&ahead->due, 1);
		run(SECOND);
		all |= heapgauge_sum(HEAPGAUGE_RELEASED) == 0;
		ck_assert(heapgauge_sum(HEAPGAUGE_RELEASED) == 0 ||
			  heapgauge_sum(HEAPGAUGE_FREE) >= wanted());
	}
	ck_assert(all);
}

TEST(nothing_is_brought_in_without_a_thread, .n = 2)
{
	rt_config c = config();

	if (_i)
		c.populate = 1;
	else
		c.gc_threads = 0;
	start(c);
	ck_assert(!ahead_wanted());
	take(4 * CHUNK_MIB);
	ck_assert(!ahead_due());
	ck_assert(!ahead_called(ahead));
}
