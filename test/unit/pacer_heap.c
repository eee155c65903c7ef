// When a collection is due in a heap.
#include "gc/cycle/pacer.h"
#include "runtime/os/gauge.h"
#include "test/harness/heap.h"

#define MIB (UINT64_C(1) << 20)

static void *root[4];

static void start(int percent, size_t headroom)
{
	rt_config c = heap_config(percent);

	c.heap_headroom = headroom;
	heap_start_exact(c);
	must(rt_roots_add(root, root + 4, RT_ROOT_EXACT));
}

static uint64_t collections(void)
{
	return heap_stats().num_gc;
}

static uint64_t next_gc(void)
{
	return heap_stats().next_gc;
}

// cycles returns what collections does, but without a stop, so each thread
// keeps its runs.
static uint64_t cycles(void)
{
	return heap_metric("/gc/cycles/total:gc-cycles");
}

// live makes n bytes live: one array and objects of 1 KiB.
static void live(uint64_t n)
{
	void **array = rt_alloc(n / 1024 * sizeof *array);

	root[0] = array;
	for (uint64_t i = 0; i < n / 1024; i++)
		array[i] = rt_alloc_noscan(1024);
}

// collections_of allocates n bytes of garbage and returns how many collections
// that caused.
static uint64_t collections_of(uint64_t n)
{
	uint64_t before = collections();

	for (uint64_t i = 0; i < n / 1024; i++)
		rt_alloc_noscan(1024);
	return collections() - before;
}

GROUP(heap, .timeout = 60);

TEST(percent_is_read_back)
{
	int old = 7;

	start(100, 0);
	must(rt_set_gc_percent(50, &old));
	ck_assert_int_eq(old, 100);
	must(rt_set_gc_percent(-5, &old));
	ck_assert_int_eq(old, 50);
	ck_assert_uint_eq(heap_metric("/gc/gogc:percent"), UINT64_MAX);
	must(rt_set_gc_percent(0, &old));
	ck_assert_int_eq(old, -1);
	must(rt_set_gc_percent(200, NULL));
	ck_assert_uint_eq(heap_metric("/gc/gogc:percent"), 200);
	must(rt_set_gc_percent(100, &old));
	ck_assert_int_eq(old, 200);
}

// within tells whether n is within a tenth of what is expected.
static bool within(uint64_t n, uint64_t expected)
{
	return n > expected - expected / 10 && n < expected + expected / 10;
}

// The goal follows the percentage at once, and is what memstats shows.
TEST(next_gc_follows_live_heap)
{
	uint64_t n = 100 * MIB / HEAP_CUT;

	start(100, 0);
	live(n);
	rt_gc();
	ck_assert_msg(within(next_gc(), 2 * n), "%llu",
		      (unsigned long long)next_gc());
	must(rt_set_gc_percent(50, NULL));
	ck_assert(within(next_gc(), n + n / 2));
	must(rt_set_gc_percent(300, NULL));
	ck_assert(within(next_gc(), 4 * n));
	must(rt_set_gc_percent(-1, NULL));
	ck_assert_uint_eq(next_gc(), PACER_NEVER);
	ck_assert_uint_eq(heap_metric("/gc/heap/goal:bytes"), PACER_NEVER);
	// The percentage that was set is kept over a collection.
	must(rt_set_gc_percent(50, NULL));
	root[0] = NULL;
	live(n / 2);
	rt_gc();
	ck_assert(within(next_gc(), n / 2 + n / 4));
	ck_assert_uint_eq(next_gc(), heap_metric("/gc/heap/goal:bytes"));
}

// There is one collection for as much garbage as fits between live heap and
// goal.
TEST(collections_come_at_the_goal)
{
	uint64_t n = 40 * MIB / HEAP_CUT;

	start(100, 0);
	live(n);
	rt_gc();
	ck_assert_uint_eq(collections_of(n * 9 / 10), 0);
	ck_assert_uint_eq(collections_of(n * 2 / 10), 1);
	// Each collection is late by up to a batch of a thread.
	ck_assert_uint_ge(collections_of(n * 10), 9);
	must(rt_set_gc_percent(50, NULL));
	rt_gc();
	ck_assert_uint_eq(collections_of(n / 2 * 9 / 10), 0);
	ck_assert_uint_eq(collections_of(n / 2 * 2 / 10), 1);
}

TEST(lowering_the_percentage_collects_at_the_next_slow_allocation)
{
	uint64_t n = 40 * MIB / HEAP_CUT;

	start(400, 0);
	live(n);
	rt_gc();
	ck_assert_uint_eq(collections_of(n), 0);
	must(rt_set_gc_percent(50, NULL));
	ck_assert_uint_eq(collections_of(64 << 10), 1);
	ck_assert_uint_eq(collections_of(64 << 10), 0);
}

TEST(off_collects_only_when_told)
{
	start(-1, 0);
	live(4 * MIB);
	ck_assert_uint_eq(collections_of(100 * MIB), 0);
	ck_assert_uint_ge(heap_stats().heap_alloc, 104 * MIB);
	must(rt_gc());
	ck_assert_uint_eq(collections(), 1);
	ck_assert_uint_lt(heap_stats().heap_alloc, 5 * MIB);
	ck_assert_uint_eq(collections_of(100 * MIB), 0);
	must(rt_set_gc_percent(100, NULL));
	ck_assert_uint_eq(collections_of(MIB), 1);
}

// If nothing is live, there is a collection every 4 MiB, whatever the headroom.
TEST(garbage_alone_collects_every_four_mib)
{
	rt_config c;
	uint64_t n;

	rt_config_init(&c);
	start(100, c.heap_headroom);
	ck_assert_uint_eq(next_gc(), 4 * MIB);
	n = collections_of(400 * MIB);
	ck_assert_msg(n >= 90 && n <= 102, "%llu collections",
		      (unsigned long long)n);
	ck_assert_uint_lt(heap_stats().heap_sys, 9 * MIB);
}

// A small live heap with a headroom collects less often than by Go's rule.
TEST(headroom_spares_collections)
{
	start(100, 24 * MIB);
	live(4 * MIB);
	rt_gc();
	ck_assert_uint_eq(collections_of(22 * MIB), 0);
	ck_assert_uint_eq(collections_of(4 * MIB), 1);
}

#define HELD (20 * MIB / HEAP_CUT)

// drop_live makes n bytes live and collects, then drops them, and makes garbage
// until the pacer has noticed.
static void drop_live(uint64_t n)
{
	uint64_t before;

	live(n);
	rt_gc();
	before = collections();
	root[0] = NULL;
	while (collections() == before)
		for (unsigned i = 0; i < 256; i++)
			rt_alloc_noscan(1024);
}

// Memory that is held is used: after a drop there are fewer collections, in no
// more memory, until the goal is the formula's.
TEST(held_memory_spares_collections)
{
	uint64_t n = HELD;
	uint64_t goal_before, sys;
	unsigned cycles = 0;

	start(100, 20 * MIB);
	drop_live(n);
	goal_before = next_gc();
	sys = heap_stats().heap_sys;
	ck_assert_uint_ge(goal_before, n);
	ck_assert_uint_le(goal_before, 2 * n + 20 * MIB);
	ck_assert_uint_eq(collections_of(n / 2), 0);
	while (next_gc() > 5 * MIB) {
		goal_before = next_gc();
		ck_assert_uint_ge(collections_of(goal_before), 1);
		ck_assert_uint_lt(next_gc(), goal_before);
		ck_assert_uint_lt(++cycles, 100);
	}
	ck_assert_uint_le(heap_stats().heap_sys, sys + 4 * MIB);
}

// When the host asks for a release, held memory no longer raises the goal.
TEST(free_os_memory_gives_back_what_is_held)
{
	start(100, 20 * MIB);
	drop_live(HELD);
	must(rt_free_os_memory());
	ck_assert_uint_le(next_gc(), 5 * MIB);
	ck_assert_uint_lt(heap_stats().heap_sys - heap_stats().heap_released,
			  4 * MIB);
	ck_assert_uint_ge(collections_of(20 * MIB), 3);
	ck_assert_uint_lt(heap_stats().heap_sys - heap_stats().heap_released,
			  10 * MIB);
}

TEST(percent_counts_at_once_beside_held_memory)
{
	start(100, 20 * MIB);
	drop_live(HELD);
	must(rt_set_gc_percent(100, NULL));
	ck_assert_uint_le(next_gc(), 5 * MIB);
}

// Objects of every size drive the pacer, even a few large ones.
TEST(large_objects_count)
{
	uint64_t before;

	start(100, 0);
	before = collections();
	for (unsigned i = 0; i < 100; i++)
		rt_alloc_noscan(1 << 20);
	ck_assert_uint_ge(collections() - before, 20);
	ck_assert_uint_le(collections() - before, 34);
}

// heap_live is what the last collection marked, plus what was allocated since.
// It is exact when caches are flushed.
TEST(heap_live_is_marked_plus_allocated)
{
	uint64_t marked;

	start(-1, 0);
	live(4 * MIB);
	rt_gc();
	marked = heap_stats().heap_alloc;
	ck_assert_uint_eq(gauge_load(&gauges.heap_live), marked);
	ck_assert_uint_eq(heap_metric("/gc/heap/live:bytes"), marked);
	for (unsigned i = 0; i < 1000; i++)
		rt_alloc(i % 500 + 1);
	heap_stats(); // flushes
	ck_assert_uint_eq(gauge_load(&gauges.heap_live),
			  heap_stats().heap_alloc);
	for (unsigned i = 0; i < 10; i++) {
		rt_alloc_noscan(100000);
		heap_stats();
	}
	ck_assert_uint_eq(gauge_load(&gauges.heap_live),
			  heap_stats().heap_alloc);
	ck_assert_uint_eq(heap_metric("/gc/heap/live:bytes"), marked);
}

// ---- what the goal counts ----

enum { RANGE = 16 << 20, FRAME = 2 << 20 };

static char range[RANGE] __attribute__((aligned(8)));

// formula returns the goal as rt_config.heap_headroom defines it, without a
// headroom, for what the last collection found.
static uint64_t formula(uint64_t percent)
{
	uint64_t live = heap_metric("/gc/heap/live:bytes");
	uint64_t roots = heap_metric("/gc/scan/stack:bytes") +
			 heap_metric("/gc/scan/globals:bytes");

	return live + (live + roots) * percent / 100;
}

// collect_deep collects below a frame of FRAME bytes.
static RT_NOINLINE void collect_deep(void)
{
	volatile char frame[FRAME];

	// A compiler keeps those parts of a frame that code elsewhere may look
	// at.
	__asm__ volatile("" : : "r"(frame) : "memory");
	rt_gc();
	__asm__ volatile("" : : "r"(frame) : "memory");
}

// The stacks of threads and the registered ranges that a collection scanned are
// in the goal, each to the byte.
TEST(stacks_and_ranges_are_in_the_goal)
{
	rt_config c = heap_config(100);
	uint64_t before;

	c.heap_headroom = 0;
	c.heap_min = 1;
	must(rt_init(&c));
	rt_gc();
	before = next_gc();
	ck_assert_uint_eq(before, formula(100));
	collect_deep();
	ck_assert_uint_eq(next_gc(), formula(100));
	ck_assert_uint_ge(next_gc(), before + FRAME);
	rt_gc();
	before = next_gc();
	must(rt_roots_add(range, range + RANGE, RT_ROOT_WORDS));
	rt_gc();
	ck_assert_uint_eq(next_gc(), formula(100));
	ck_assert_uint_ge(next_gc(), before + RANGE / 2);
	must(rt_set_gc_percent(300, NULL));
	ck_assert_uint_eq(next_gc(), formula(300));
}

// ---- the least goal, and what is outside the heap ----

TEST(least_goal_counts_at_once)
{
	size_t old = 7;

	start(100, 0);
	ck_assert_uint_eq(next_gc(), 4 * MIB);
	must(rt_set_heap_min(MIB, &old));
	ck_assert_uint_eq(old, 4 * MIB);
	ck_assert_uint_eq(next_gc(), MIB);
	must(rt_set_gc_percent(300, NULL));
	ck_assert_uint_eq(next_gc(), 3 * MIB);
	ck_assert_uint_ge(collections_of(30 * MIB), 9);
	must(rt_set_heap_min(16 * MIB, &old));
	ck_assert_uint_eq(old, MIB);
	rt_gc();
	ck_assert_uint_eq(next_gc(), 48 * MIB);
	ck_assert_uint_eq(collections_of(40 * MIB), 0);
	must(rt_set_heap_min(0, NULL));
	ck_assert_uint_eq(next_gc(), 12 * MIB);
}

// External bytes bring the next collection nearer, and only that one.  After it
// they belong to what lives.  The goal is exact.
TEST(external_bytes_count_towards_the_next_collection)
{
	uint64_t roots;

	start(100, 0);
	rt_gc();
	must(rt_adjust_external(3 * (int64_t)MIB));
	ck_assert_uint_eq(heap_metric("/memory/external:bytes"), 3 * MIB);
	ck_assert_uint_eq(collections_of(MIB / 2), 0);
	ck_assert_uint_eq(collections_of(MIB), 1);
	must(rt_adjust_external(29 * (int64_t)MIB));
	ck_assert_uint_eq(collections_of(64 << 10), 1);
	roots = heap_metric("/gc/scan/stack:bytes") +
		heap_metric("/gc/scan/globals:bytes");
	ck_assert_uint_eq(next_gc(),
			  2 * (heap_metric("/gc/heap/live:bytes") + 32 * MIB) +
			      roots);
	ck_assert_uint_eq(collections_of(31 * MIB), 0);
	ck_assert_uint_eq(collections_of(2 * MIB), 1);
	ck_assert_uint_lt(rt_heap_live(), 64 * MIB);
}

// Memory that a destructor frees after a collection was not alive in it.  So
// the goal falls at once, and does not grow from one collection to the next.
TEST(freed_external_bytes_were_not_alive)
{
	uint64_t next;

	start(100, 0);
	must(rt_adjust_external(100 * (int64_t)MIB));
	rt_gc();
	next = next_gc();
	ck_assert_uint_ge(next, 200 * MIB);
	must(rt_adjust_external(-90 * (int64_t)MIB));
	ck_assert_uint_eq(next_gc(), next - 180 * MIB);
	must(rt_adjust_external(5 * (int64_t)MIB));
	must(rt_adjust_external(-4 * (int64_t)MIB));
	ck_assert_uint_eq(next_gc(), next - 180 * MIB);
}

// External bytes end the run of a thread that allocates inline, so it collects
// at its next allocation.
TEST(external_bytes_end_the_runs_of_their_thread)
{
	start(100, 0);
	rt_gc();
	for (unsigned i = 0; i < 10; i++) {
		uint64_t before = cycles();

		for (unsigned n = 0; n < 300; n++) // the last run is long
			rt_alloc_noscan(16);
		ck_assert_uint_eq(cycles(), before);
		must(rt_adjust_external(64 * (int64_t)MIB));
		ck_assert_ptr_nonnull(rt_alloc_noscan(16));
		ck_assert_uint_eq(cycles(), before + 1);
		must(rt_adjust_external(-64 * (int64_t)MIB));
		rt_gc();
	}
}

// ---- stacks of interpreters ----

enum { STACK = 64 << 10 };

// collections_of_stacks allocates stacks of n bytes in all, and returns how
// many collections that caused.
static uint64_t collections_of_stacks(uint64_t n)
{
	uint64_t before = collections();

	for (uint64_t i = 0; i < n / STACK; i++)
		ck_assert_ptr_nonnull(rt_stack_alloc(STACK));
	return collections() - before;
}

// Stacks bring the next collection nearer, as objects do.  Those that existed
// at the last collection do not.
TEST(interpreter_stacks_count_towards_the_next_collection)
{
	start(100, 0);
	ck_assert_uint_eq(next_gc(), 4 * MIB);
	ck_assert_uint_eq(collections_of_stacks(4 * MIB), 0);
	ck_assert_uint_eq(collections_of_stacks(MIB), 1);
	ck_assert_uint_eq(collections_of(2 * MIB), 0);
	ck_assert_uint_eq(collections_of_stacks(MIB), 0);
	ck_assert_uint_eq(collections_of(2 * MIB), 1);
}

// A stack that is freed counts no longer.
TEST(freed_interpreter_stacks_do_not_count)
{
	uint64_t before;

	start(100, 0);
	before = collections();
	for (unsigned i = 0; i < 16 * MIB / STACK; i++) {
		void *stack = rt_stack_alloc(STACK);

		must(rt_stack_free(stack, STACK));
	}
	ck_assert_uint_eq(collections(), before);
}
