// Each probe is passed when it should be, with the arguments that are promised.
#include "test/harness/await.h"
#include "test/harness/heap.h"
#include "test/whole/trap.h"

#define NO_TRAPS                                                               \
	SUITE_UNLESS(RT_ASAN || RT_TSAN || !trap_works(),                      \
		     "needs probes, x86-64, code that may be written, and no " \
		     "sanitizer")

GROUP(probes, .timeout = 60);

enum { MiB = 1 << 20 };

static rt_config alone(void)
{
	rt_config c = heap_config(HEAP_QUIET);

	c.gc_threads = 0;
	return c;
}

static const struct trap *passed(const char *name, unsigned arguments)
{
	const struct trap *t = trap_last(name);

	ck_assert_msg(t, "%s was not passed", name);
	ck_assert_uint_eq(t->n, arguments);
	return t;
}

static rt_cycle newest(void)
{
	rt_cycle c;

	must(rt_read_cycle(0, &c));
	return c;
}

static void a_collection_is_told(uint32_t cause)
{
	const rt_cycle c = newest();
	const struct trap *begin = passed("gc_begin", 2);
	const struct trap *stopped = passed("gc_stopped", 2);
	const struct trap *marked = passed("gc_marked", 2);
	const struct trap *stop = passed("stop", 4);
	const struct trap *end = passed("gc_end", 5);

	ck_assert_uint_lt(begin->when, stopped->when);
	ck_assert_uint_lt(stopped->when, marked->when);
	ck_assert_uint_lt(marked->when, stop->when);
	ck_assert_uint_eq(begin->argument[0], c.number);
	ck_assert_uint_eq(begin->argument[1], c.heap_start);
	ck_assert_uint_eq(stopped->argument[0], c.number);
	ck_assert_uint_eq(stopped->argument[1], cause);
	ck_assert_uint_eq(marked->argument[0], c.number);
	ck_assert_uint_eq(marked->argument[1], c.heap_live);
	ck_assert_uint_eq(stop->argument[0], RT_STOP_GC_MARK_TERM);
	ck_assert_uint_eq(end->argument[0], c.number);
	ck_assert_uint_eq(end->argument[1], cause);
	ck_assert_uint_eq(end->argument[2], c.pause_ns);
	ck_assert_uint_eq(end->argument[3], c.heap_live);
	ck_assert_uint_eq(end->argument[4], c.next_goal);
}

static void *kept[1];

static void begin(rt_config c)
{
	ck_assert_uint_ne(trap_set(), 0);
	heap_start(c);
	must(rt_roots_add(kept, kept + 1, RT_ROOT_EXACT));
}

TEST(a_collection, .n = 2, .unless = NO_TRAPS)
{
	rt_config c = alone();

	c.sweep = _i * 2;
	c.gc_percent = 100; // each collection sets another goal
	begin(c);
	kept[0] = rt_alloc(2 * MiB);
	for (unsigned i = 0; i < 100; i++)
		ck_assert_ptr_nonnull(rt_alloc(1000));
	for (unsigned i = 1; i <= 3; i++) {
		must(rt_gc());
		ck_assert_uint_eq(newest().number, i);
		a_collection_is_told(RT_CAUSE_FORCED);
		ck_assert_uint_eq(trap_passes("gc_begin"), i);
		ck_assert_uint_eq(trap_passes("gc_end"), i);
		ck_assert_uint_eq(trap_passes("stop"), i);
	}
	// gc_swept reports only a sweep in the stop, not a sweep beside the
	// threads.
	ck_assert_uint_eq(trap_passes("gc_swept"), _i == 0 ? 3 : 0);
}

TEST(a_sweep_in_the_stop, .unless = NO_TRAPS)
{
	rt_config c = alone();
	const struct trap *swept;

	c.sweep = 0;
	begin(c);
	kept[0] = rt_alloc(5 * MiB);
	must(rt_gc());
	swept = passed("gc_swept", 2);
	ck_assert_uint_eq(swept->argument[0], 1);
	ck_assert_uint_eq(swept->argument[1], heap_stats().heap_inuse);
	ck_assert_uint_lt(passed("gc_marked", 2)->when, swept->when);
}

TEST(a_stop_of_the_host, .unless = NO_TRAPS)
{
	begin(alone());
	for (uint64_t i = 0; i < 3; i++) {
		const struct trap *stop;
		rt_stop_times times;

		must(rt_stop_the_world(RT_STOP_HOST + (int)i));
		must(rt_start_the_world(&times));
		ck_assert_uint_eq(trap_passes("stop"), i + 1);
		stop = passed("stop", 4);
		ck_assert_uint_eq(stop->argument[0], RT_STOP_HOST + i);
		ck_assert_uint_eq(stop->argument[1], times.stopping_ns);
		ck_assert_uint_eq(stop->argument[2], times.total_ns);
		ck_assert_uint_eq(stop->argument[3], times.slowest);
	}
}

TEST(a_goal, .unless = NO_TRAPS)
{
	uint64_t before;

	begin(alone());
	before = heap_stats().next_gc;
	must(rt_set_gc_percent(100, NULL));
	ck_assert_uint_eq(passed("goal", 2)->argument[0], before);
	ck_assert_uint_eq(passed("goal", 2)->argument[1], heap_stats().next_gc);
	kept[0] = rt_alloc(64 * MiB);
	before = heap_stats().next_gc;
	must(rt_gc());
	ck_assert_uint_ne(heap_stats().next_gc, before);
	ck_assert_uint_eq(passed("goal", 2)->argument[0], before);
	ck_assert_uint_eq(passed("goal", 2)->argument[1], heap_stats().next_gc);
}

// To stay below the memory limit, an allocation makes its own thread release
// free memory.
TEST(memory_that_is_released, .unless = NO_TRAPS)
{
	const struct trap *scavenge;
	uint64_t released;

	begin(alone());
	ck_assert_ptr_nonnull(kept[0] = rt_alloc_noscan(64 * MiB));
	kept[0] = NULL;
	must(rt_gc());
	released = heap_stats().heap_released;
	ck_assert_uint_eq(trap_passes("scavenge"), 0);
	must(rt_set_memory_limit(32 * MiB, NULL));
	ck_assert_ptr_nonnull(kept[0] = rt_alloc_noscan(MiB));
	scavenge = passed("scavenge", 3);
	ck_assert_uint_eq(scavenge->argument[0], 0);
	ck_assert_uint_ne(scavenge->argument[1], 0);
	ck_assert_uint_ge(heap_stats().heap_released,
			  released + scavenge->argument[1] - MiB);
}

static bool some_was_released(void)
{
	return trap_passes("scavenge") != 0;
}

// The background thread releases memory that no thread needs.
TEST(memory_that_no_thread_needs, .unless = NO_TRAPS)
{
	rt_config c = heap_config(HEAP_QUIET);
	const struct trap *scavenge;
	uint64_t released;

	c.max_procs = 1; // no helper
	c.scavenge = 1;
	begin(c);
	ck_assert_ptr_nonnull(kept[0] = rt_alloc_noscan(64 * MiB));
	kept[0] = NULL;
	must(rt_gc());
	released = heap_stats().heap_released;
	must(rt_gc()); // now that memory was free for a whole cycle
	must(rt_blocking_enter());
	await_that(some_was_released, "nothing was released");
	must(rt_blocking_leave());
	must(rt_stop_the_world(RT_STOP_HOST)); // scavenger passes no probe
	scavenge = passed("scavenge", 3);
	ck_assert_uint_eq(scavenge->argument[0], 1);
	must(rt_start_the_world(NULL));
	ck_assert_uint_gt(heap_stats().heap_released, released);
	must(rt_fini());
}

TEST(no_memory, .unless = NO_TRAPS)
{
	rt_config c = alone();
	const struct trap *t;

	c.max_heap = 64 * MiB;
	begin(c);
	ck_assert_ptr_nonnull(kept[0] = rt_alloc(40 * MiB));
	ck_assert_ptr_null(rt_alloc(41 * MiB));
	t = passed("out_of_memory", 2);
	ck_assert_uint_eq(t->argument[0], 41 * MiB);
	ck_assert_uint_ge(t->argument[1], 40 * MiB);
	ck_assert_uint_eq(trap_passes("out_of_memory"), 1);
	a_collection_is_told(RT_CAUSE_MEMORY);
}
