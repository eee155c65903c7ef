// A heap that is swept beside its threads behaves like one that is swept in the
// stop.  It has the same goals and huge pages and as many collections, and
// refuses no allocation.
#include "test/whole/swept.h"

#include "gc/cycle/pacer.h"
#include "gc/cycle/scavenger.h"
#include "gc/host/slices.h"
#include "runtime/pages/hugepages.h"

// ---- the same collections ----

GROUP(alike, .timeout = 120);

static uint64_t goal(void)
{
	return heap_metric("/gc/heap/goal:bytes");
}

static const struct rule {
	int percent;
	int64_t limit;
	size_t max; // hard limit
} rules[] = {
    {100, INT64_MAX, 0},       {100, 80 << 20, 0},	   {100, 50 << 20, 0},
    {1000, 80 << 20, 0},       {-1, 80 << 20, 0},	   {-1, 50 << 20, 0},
    {-1, INT64_MAX, 40 << 20}, {1000, 80 << 20, 40 << 20},
};

struct finding {
	uint64_t goal, held;
};

// find returns the goal and the held bytes, after the sweep, of a heap that
// dropped 30 of 32 MiB.
static struct finding find(int mode, const struct rule *r)
{
	rt_config c = config(mode, 0);
	struct finding found;
	uint64_t at_first;

	c.gc_percent = 100;
	c.heap_min = 1 << 20;
	c.memory_limit = r->limit;
	begin_as(c);
	must(rt_set_gc_percent(HEAP_QUIET, NULL));
	fill(32);
	drop(2);
	must(rt_set_gc_percent(r->percent, NULL));
	must(rt_set_heap_max(r->max, NULL));
	collect_only();
	ck_assert(sweep_left() == (mode != 0));
	at_first = goal();
	ck_assert_uint_gt(at_first, 2 * MIB);
	slices_rest(rt_thread_tls);
	found = (struct finding){goal(), pacer.found.held};
	ck_assert_uint_le(at_first, found.goal);
	heap_healthy();
	must(rt_fini());
	free(objects);
	return found;
}

// Once all is swept, the goal is what a sweep in the stop would have made it.
// Until then it is at most that.
TEST(the_goal_is_that_of_a_sweep_in_the_stop, .n = RT_ARRAY_LEN(rules))
{
	struct finding beside = find(2, &rules[_i]);
	struct finding in_stop = find(0, &rules[_i]);

	ck_assert_uint_eq(beside.goal, in_stop.goal);
	ck_assert_uint_eq(beside.held, in_stop.held);
}

static uint64_t cycles(void)
{
	return heap_metric("/gc/cycles/total:gc-cycles");
}

// A goal that is lower because dead objects are not swept yet causes no
// collection.  The rest is swept first, and then the goal is tested again.
TEST(a_goal_that_is_not_final_collects_nothing)
{
	rt_config c = config(2, 0);
	uint64_t at_first, before;

	c.memory_limit = 50 * MIB;
	begin_as(c);
	fill(32);
	drop(2);
	collect_only();
	at_first = goal();
	before = cycles();
	ck_assert_uint_gt(at_first, 8 * MIB);
	while (gauge_load(&gauges.heap_live) <= at_first)
		ck_assert_ptr_nonnull(rt_alloc_noscan(2 * MIB));
	ck_assert_ptr_nonnull(rt_alloc_noscan(2 * MIB));
	ck_assert(swept_over());
	ck_assert_uint_gt(goal(), at_first);
	ck_assert_uint_eq(cycles(), before);
	heap_healthy();
	must(rt_fini());
}

// ---- huge pages ----

static uint32_t stretches(void)
{
	return hugepages.range[0].nstretches;
}

// begin_huge makes an unswept heap of 32 MiB, 16 MiB of which are alive.
static void begin_huge(rt_config c)
{
	c.huge_pages = 1;
	begin_as(c);
	fill(32);
	drop(16);
	collect_only();
}

// Huge pages are chosen when all is swept, and not where most was dead.  They
// are advised soon after, even if a refill has swept the last chunk.
TEST(huge_pages_follow_the_sweep, .n = 2)
{
	begin_huge(config(2, 0));
	ck_assert(sweep_left());
	ck_assert(!swept_unfinished());
	ck_assert_uint_eq(stretches(), 0);
	ck_assert_uint_eq(hugepages.range[0].nwanted, 0);
	if (_i == 0) {
		slices_rest(rt_thread_tls);
	} else {
		while (swept_slice(proc_self()))
			;
		ck_assert_uint_eq(stretches(), 0);
		ck_assert_ptr_nonnull(rt_alloc_noscan(4000));
	}
	ck_assert_uint_eq(stretches(), 1);
	ck_assert_uint_eq(hugepages.range[0].nwanted, 0);
	heap_healthy();
	must(rt_fini());
}

// A thread of the host leaves the advice on huge pages to the background
// thread, which takes it once.
TEST(the_background_thread_is_told_of_huge_pages)
{
	begin_huge(config(2, 0));
	atomic_u32_store_relaxed(&scavenger.runs, 1);
	slices_rest(rt_thread_tls);
	ck_assert(swept_over());
	ck_assert(!swept_unfinished());
	ck_assert_ptr_nonnull(rt_alloc_noscan(4000));
	ck_assert_uint_eq(stretches(), 0);
	atomic_u32_store_relaxed(&scavenger.runs, 0);
	ck_assert(!swept_pass_advice());
	ck_assert(swept_take_advice());
	ck_assert(!swept_take_advice());
	heap_healthy();
	must(rt_fini());
}

static bool has_stretch(void)
{
	bool has;

	mutex_lock(&hugepages.lock);
	has = stretches() != 0;
	mutex_unlock(&hugepages.lock);
	return has;
}

static void await_stretch(void)
{
	must(rt_blocking_enter());
	await_that(has_stretch, "no huge page is advised");
	must(rt_blocking_leave());
}

// The background thread advises huge pages if it has swept and there is no
// helper.
TEST(the_background_thread_advises)
{
	rt_config c = config(2, 1);

	c.max_procs = 1;
	begin_huge(c);
	await_stretch();
	heap_healthy();
	must(rt_fini());
}

// The background thread is woken to advise, even if there was nothing to sweep
// beside the threads.
TEST(the_background_thread_is_woken_to_advise)
{
	rt_config c = config(0, 1);

	c.max_procs = 1;
	c.populate = 2;
	c.huge_pages = 1;
	begin_as(c);
	fill(64);
	if (atomic_u32_load_relaxed(&mheap.populate) == 0) {
		must(rt_fini());
		suite_skip("the system does not populate memory", NULL);
		return;
	}
	ck_assert_uint_eq(atomic_u32_load_relaxed(&scavenger.runs), 1);
	drop(32);
	collect_only();
	await_stretch();
	heap_healthy();
	must(rt_fini());
}

// ---- the same courses ----

struct course {
	uint64_t cycles, sys;
};

// run allocates and drops objects of the same sizes in the same order in each
// call.
static struct course run(rt_config c)
{
	struct course course;
	uint32_t seed = 1;

	c.gc_percent = 100;
	c.heap_min = 1 << 20;
	c.heap_headroom = 1 << 20;
	begin_as(c);
	for (int i = 0; i < 200000; i++) {
		size_t slot = (seed = seed * 1103515245 + 12345) >> 8;
		size_t size = 16u << (seed >> 8) % 10;

		if (i % 1000 == 0)
			size = 200000;
		objects[slot % 3000] = rt_alloc_noscan(size);
	}
	course.cycles = cycles();
	course.sys = heap_stats().heap_sys;
	heap_healthy();
	must(rt_fini());
	free(objects);
	return course;
}

// A program that sweeps beside its threads collects about as often, and uses
// about as much memory, as if it swept in the stop.  Only the slots that are
// free when it allocates differ.
TEST(a_program_collects_as_often, .n = 2)
{
	struct course in_stop = run(config(0, 0));
	struct course beside = run(config(2, _i));
	uint64_t some = in_stop.cycles / 10; // of about 70

	ck_assert_uint_gt(in_stop.cycles, 20);
	ck_assert_uint_ge(beside.cycles + some, in_stop.cycles);
	ck_assert_uint_le(beside.cycles, in_stop.cycles + some);
	ck_assert_uint_le(beside.sys, in_stop.sys + 4 * MIB);
}

// ---- the end of memory ----

// none_for_memory tells whether no collection ran because memory was short.
static bool none_for_memory(void)
{
	uint64_t last = heap_metric("/gc/cycles/total:gc-cycles"), n = 0;
	rt_cycle c;

	for (uint64_t i = 1; i <= last; i++)
		n +=
		    rt_read_cycle(i, &c) == RT_OK && c.cause == RT_CAUSE_MEMORY;
	return n == 0;
}

// An allocation sweeps before it is refused, and before it collects.
TEST(no_allocation_is_refused_while_garbage_is_left)
{
	rt_config c = config(2, 0);

	c.max_heap = MOST_MIB * MIB;
	begin_as(c);
	for (int round = 0; round < 40; round++) {
		size_t mib = 4 + 4 * (round % 12);

		collect_only();
		ck_assert(round == 0 || sweep_left());
		ck_assert_ptr_nonnull(rt_alloc_noscan(mib * MIB));
		for (size_t i = 0; i < 8 * PER_MIB; i++)
			ck_assert_ptr_nonnull(rt_alloc_noscan(OBJECT - i % 4));
	}
	ck_assert(none_for_memory());
	heap_healthy();
	must(rt_fini());
}

// begin_full makes a heap that cannot grow and is almost full of unswept dead
// objects.
static void begin_full(void)
{
	rt_config c = config(2, 0);

	c.max_heap = MOST_MIB * MIB;
	begin_as(c);
	fill(56);
	drop(0);
	collect_only();
	ck_assert(sweep_left());
}

// An object gets its guard if sweeping finds room for both.
TEST(a_guarded_object_sweeps)
{
	rt_config c = config(2, 0);
	void *obj;

	c.max_heap = MOST_MIB * MIB;
	c.guard_large = 1;
	begin_as(c);
	ck_assert_ptr_nonnull(rt_alloc_noscan(40 * MIB));
	collect_only();
	ck_assert(sweep_left());
	obj = rt_alloc_noscan(30 * MIB + 1);
	ck_assert_ptr_nonnull(obj);
	ck_assert_uint_eq(rt_size(obj), 30 * MIB + 1); // it has a guard
	ck_assert(none_for_memory());
	heap_healthy();
	must(rt_fini());
}

// If the heap cannot grow, a thread in a no-GC stretch sweeps as well, and gets
// the memory of dead objects.
TEST(a_stretch_sweeps_if_the_heap_cannot_grow, .n = 3)
{
	void *stack = NULL;

	begin_full();
	rt_nogc_enter();
	if (_i == 0)
		ck_assert_ptr_nonnull(rt_alloc_noscan(40 * MIB));
	else if (_i == 1)
		for (size_t i = 0; i < 40 * PER_MIB; i++)
			ck_assert_ptr_nonnull(rt_alloc_noscan(OBJECT));
	else
		ck_assert_ptr_nonnull(stack = rt_stack_alloc(32 * MIB));
	ck_assert_ptr_null(rt_alloc_noscan(40 * MIB));
	if (stack)
		must(rt_stack_free(stack, 32 * MIB));
	must(rt_nogc_leave());
	heap_healthy();
	must(rt_fini());
}

static void *take_turns(void *arg)
{
	uintptr_t refused = 0;

	(void)arg;
	must(rt_thread_attach(RT_THREAD_EXACT));
	for (size_t i = 0; i < 300 / HEAP_CUT; i++) {
		collect_only();
		refused += rt_alloc_noscan((1 + i % 3) * 4 * MIB) == NULL;
	}
	must(rt_thread_detach());
	return (void *)refused;
}

// No allocation is refused either if another thread takes the memory that this
// thread has swept.
TEST(no_thread_of_two_is_refused_while_garbage_is_left, .n = 2)
{
	rt_config c = config(2, _i);
	pthread_t other;

	c.max_heap = MOST_MIB * MIB;
	c.max_procs = 2;
	begin_as(c);
	must(rt_blocking_enter());
	other = start_thread(take_turns, NULL);
	ck_assert_ptr_null(run_thread(take_turns, NULL));
	ck_assert_ptr_null(join_thread(other));
	must(rt_blocking_leave());
	ck_assert(none_for_memory());
	heap_healthy();
	must(rt_fini());
}
