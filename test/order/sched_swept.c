// The end of a sweep beside the threads, and stops between its slices.
#define RT_NO_INLINE_ALLOC
#include <errno.h>
#include <rt/rt.h>

#include "gc/cycle/scavenger.h"
#include "gc/cycle/swept.h"
#include "gc/host/supply.h"
#include "runtime/spans/mheap.h"
#include "test/harness/fault.h"
#include "test/harness/heap.h"
#include "test/harness/process.h"
#include "test/order/host.h"

enum { LARGE = 1 << 20, GARBAGE = 24 };

static struct hand sweeper, other;
static uint32_t generation;

static uint32_t scavenger_generation(void)
{
	return mheap.pages.scav.gen;
}

// make_garbage makes a heap in which nothing lives.  Main is attached.
static void make_garbage(int mode, int threads)
{
	rt_config c = heap_config(HEAP_QUIET);

	c.sweep = (uint8_t)mode;
	c.max_procs = 2;
	c.gc_threads = threads;
	heap_start_exact(c);
	for (int i = 0; i < GARBAGE; i++)
		ck_assert_ptr_nonnull(rt_alloc_noscan(LARGE));
	generation = scavenger_generation();
}

// begin leaves chunks full of garbage, unswept.
static void begin(void)
{
	make_garbage(2, 0);
	supply_collect(proc_self(), ASK_FORCED);
	ck_assert(sweep_left());
	ck_assert(!swept_over());
}

static void take_large(void)
{
	host_attach();
	ck_assert_ptr_nonnull(rt_alloc_noscan((size_t)GARBAGE * LARGE));
	host_detach();
}

// read_exactly is for a thread that is not attached, which sweeps in its stop.
static void read_exactly(void)
{
	rt_memstats m;

	ck_assert(sweep_left());
	must(rt_read_memstats(&m));
	ck_assert(swept_over());
	ck_assert_uint_eq(scavenger_generation(), generation + 1);
	ck_assert_uint_eq(m.heap_alloc, 0);
	ck_assert_uint_eq(m.heap_objects, 0);
}

static uint32_t chunks_left(void)
{
	uint64_t left = atomic_u64_load_relaxed(&sweep.left);

	return sweep_highest(left) - sweep_lowest(left);
}

// sweep_chunks sweeps what it can get.
static void sweep_chunks(void)
{
	while (swept_slice(proc_self()))
		;
	ck_assert(!sweep_left());
}

GROUP(swept, .setup = begin, .timeout = 2 * AWAIT_SECONDS);

// swept END_TWICE: two threads find all swept.  One of them does what follows.
TEST(the_generation_is_raised_once_at_the_end)
{
	ck_assert_uint_eq(scavenger_generation(), generation);
	hold_at(SCHED_SWEPT_END, &sweeper, host_sweep);
	ck_assert_uint_eq(scavenger_generation(), generation);
	slices_rest(rt_thread_tls);
	ck_assert_uint_eq(scavenger_generation(), generation + 1);
	host_block();
	let_end(SCHED_SWEPT_END, &sweeper);
	host_unblock();
	ck_assert_uint_eq(scavenger_generation(), generation + 1);
	ck_assert_uint_eq(heap_live(), 0);
}

// swept OVER_EARLY: the sweep counts as over only when what follows it was
// done.
TEST(a_sweep_is_over_after_what_follows)
{
	hold_at(SCHED_SWEPT_FOLLOW, &sweeper, host_sweep);
	ck_assert(!sweep_left());
	ck_assert(!swept_over());
	ck_assert_uint_eq(scavenger_generation(), generation + 1);
	let_end(SCHED_SWEPT_FOLLOW, &sweeper);
	ck_assert(swept_over());
	ck_assert_uint_eq(heap_live(), 0);
}

// swept POLL_INSIDE, LEFT_KEPT: a stop that a reader makes between two slices
// finds no chunk half swept.  It sweeps what is left.
TEST(a_stop_between_two_slices_sweeps_the_rest)
{
	hold_at(SCHED_SLICES_REST, &sweeper, host_sweep);
	ck_assert(!swept_over());
	host_block();
	hold_at(SCHED_NOTE_WAIT, &other, read_exactly);
	schedpoint_release(SCHED_NOTE_WAIT);
	let_end(SCHED_SLICES_REST, &sweeper);
	hand_end(&other);
	host_unblock();
	ck_assert(swept_over());
	ck_assert_uint_eq(scavenger_generation(), generation + 1);
	ck_assert_uint_eq(heap_live(), 0);
}

// A thread sweeps before it gets memory for a large object, and polls between
// the slices.  So a stop can come there, and sweeps the rest.
TEST(a_large_allocation_polls_between_slices)
{
	uint64_t before = arena_used();

	hold_at(SCHED_TAKE_SWEPT, &sweeper, take_large);
	host_block();
	hold_at(SCHED_NOTE_WAIT, &other, read_exactly);
	schedpoint_release(SCHED_NOTE_WAIT);
	let_end(SCHED_TAKE_SWEPT, &sweeper);
	hand_end(&other);
	host_unblock();
	ck_assert_uint_eq(heap_live(), 1);
	ck_assert_uint_eq(arena_used(), before);
}

static void help(void)
{
	sweep_help(NULL);
}

// hold_late_helper leaves a helper, which was called in a stop that swept,
// before it takes a chunk.  The sweep now is beside the threads.
static void hold_late_helper(void)
{
	uint64_t left = atomic_u64_load_relaxed(&sweep.left);

	atomic_u64_store_relaxed(&sweep.left, left & ~SWEEP_BESIDE);
	hold_at(SCHED_SWEEP_ONE, &other, help);
	atomic_u64_store_relaxed(&sweep.left, left);
}

// swept HELPER_BESIDE: a helper that was called in a stop and comes late takes
// no chunk, since no stop waits for it.
TEST(a_late_helper_takes_nothing_beside_the_threads)
{
	uint32_t left = chunks_left();

	ck_assert_uint_gt(left, 1);
	hold_late_helper();
	let_end(SCHED_SWEEP_ONE, &other);
	ck_assert_uint_eq(chunks_left(), left);
	ck_assert(swept_slice(proc_self()));
	ck_assert_uint_eq(chunks_left(), left - 1);
	ck_assert_uint_eq(heap_live(), 0);
}

// allocate_small takes a new span.
static void allocate_small(void)
{
	ck_assert_ptr_nonnull(rt_alloc_noscan(4000));
}

// The thread that sweeps the last chunk finds a late helper active, so it does
// not end the sweep, and nor does the helper.  The next thread that needs a
// span does.
TEST(an_end_that_a_late_helper_hid_comes_with_the_next_span)
{
	hold_late_helper();
	sweep_chunks();
	ck_assert(!swept_over());
	let_end(SCHED_SWEEP_ONE, &other);
	ck_assert(!swept_over());
	ck_assert_uint_eq(scavenger_generation(), generation);
	allocate_small();
	ck_assert(swept_over());
	ck_assert_uint_eq(scavenger_generation(), generation + 1);
	ck_assert_uint_eq(heap_live(), 1);
}

static void *kept;

static void free_kept(void)
{
	host_attach();
	must(rt_free(kept));
	host_detach();
}

// keep_one collects again, with one large object alive and unswept.
static void keep_one(void)
{
	must(rt_gc());
	kept = rt_alloc_uncollectable(RT_NOSCAN, LARGE);
	ck_assert_ptr_nonnull(kept);
	generation = scavenger_generation();
	supply_collect(proc_self(), ASK_FORCED);
	ck_assert(sweep_left());
}

// A thread that frees an object makes sure that its span is swept.  It hides
// the end of the sweep as a late helper does.
TEST(an_end_that_a_free_hid_comes_with_the_next_span)
{
	keep_one();
	hold_at(SCHED_SWEEP_ENSURE_CLAIMED, &other, free_kept);
	sweep_chunks();
	ck_assert(!swept_over());
	let_end(SCHED_SWEEP_ENSURE_CLAIMED, &other);
	allocate_small();
	ck_assert(swept_over());
	ck_assert_uint_eq(scavenger_generation(), generation + 1);
	ck_assert_uint_eq(heap_live(), 1);
}

// Threads that find no chunk, while another one is in the last, are blocked: a
// stop that comes meanwhile does not wait for them.
TEST(threads_that_wait_for_the_last_chunk_are_blocked)
{
	while (chunks_left() > 1)
		ck_assert(swept_slice(proc_self()));
	hold_at(SCHED_SWEEP_ONE_TAKEN, &sweeper, host_sweep);
	hold_at(SCHED_SWEPT_AWAIT, &other, host_sweep);
	let_end(SCHED_SWEEP_ONE_TAKEN, &sweeper);
	ck_assert(swept_over());
	host_block();
	stop(); // comes, though a thread is held
	start();
	let_end(SCHED_SWEPT_AWAIT, &other);
	host_unblock();
	ck_assert_uint_eq(scavenger_generation(), generation + 1);
	ck_assert_uint_eq(heap_live(), 0);
}

static void allocate_large(void)
{
	host_attach();
	ck_assert_ptr_nonnull(rt_alloc_noscan(LARGE));
	host_detach();
}

// A thread at the memory limit waits for a chunk that another one sweeps: the
// pages that become free there may be all that can be released.
TEST(the_memory_limit_waits_for_the_last_chunk)
{
	uint64_t limit;

	while (chunks_left() > 1)
		ck_assert(swept_slice(proc_self()));
	limit =
	    gauge_load(&gauges.mapped_ready) - heapgauge_sum(HEAPGAUGE_FREE);
	hold_at(SCHED_SWEEP_ONE_TAKEN, &sweeper, host_sweep);
	must(rt_set_memory_limit((int64_t)limit, NULL));
	pass_at(SCHED_SWEPT_AWAIT, &other, allocate_large);
	let_end(SCHED_SWEEP_ONE_TAKEN, &sweeper);
	hand_end(&other);
	ck_assert_uint_le(gauge_load(&gauges.mapped_ready), limit);
	heap_healthy();
}

static void collect_only(void)
{
	host_attach();
	supply_collect(proc_self(), ASK_FORCED);
	host_detach();
}

static uint64_t cycles(void)
{
	return heap_metric("/gc/cycles/total:gc-cycles");
}

// swept OVER_STALE: a thread has found all swept and polls before it tries once
// more.  If another sweep begins in that poll, the thread sweeps on, and asks
// for no collection.
TEST(a_sweep_that_begins_in_a_poll_serves_the_thread_that_polls)
{
	uint64_t before = cycles();

	hold_at(SCHED_SWEEP_SOME, &sweeper, take_large);
	slices_rest(rt_thread_tls);
	move_on(SCHED_SWEEP_SOME, SCHED_TAKE_SWEPT);
	host_block();
	pass_at(SCHED_PROC_STOP_ALL_ASKED, &other, collect_only);
	let_end(SCHED_TAKE_SWEPT, &sweeper);
	hand_end(&other);
	host_unblock();
	ck_assert_uint_eq(cycles(), before + 1);
	heap_healthy();
}

// swept ADVICE_DROPPED: the thread that ends a sweep may want huge pages only
// after the thread that collected has looked whether any are wanted.  This is
// not forgotten.
TEST(advice_that_comes_late_stays)
{
	slices_rest(rt_thread_tls);
	host_block();
	hold_at(SCHED_COLLECT_PROVIDED, &other, collect_only);
	atomic_u32_store_relaxed(&swept.advise, 1);
	let_end(SCHED_COLLECT_PROVIDED, &other);
	host_unblock();
	ck_assert(swept_take_advice());
	slices_rest(rt_thread_tls);
}

// begin_background leaves the background thread between two chunks.
static void begin_background(void)
{
	make_garbage(2, 1);
	schedpoint_hold(SCHED_FINISH_SWEEP);
	supply_collect(proc_self(), ASK_FORCED);
	host_block();
	await_held(SCHED_FINISH_SWEEP);
	host_unblock();
	ck_assert(!swept_over());
}

// verify_in_child is for any thread, attached or not.
static void verify_in_child(void)
{
	if (process_forked())
		process_end((rt_thread_self() ||
			     rt_thread_attach(RT_THREAD_EXACT) == RT_OK) &&
			    heap_is_whole() &&
			    // The sanitizers can make no thread in a child.
			    (RT_TSAN || RT_ASAN || rt_gc() == RT_OK) &&
			    rt_fini() == RT_OK);
}

GROUP(background, .setup = begin_background, .timeout = 2 * AWAIT_SECONDS);

// While the background thread is between two chunks, the world can be stopped,
// and forked; the other threads sweep on.
TEST(the_background_thread_lets_a_stop_come, .n = 2)
{
	rt_memstats m;

	if (_i == 0) {
		must(rt_read_memstats(&m));
		ck_assert_uint_eq(m.heap_objects, 0);
		ck_assert(swept_over());
	} else {
		verify_in_child();
	}
	schedpoint_release(SCHED_FINISH_SWEEP);
	must(rt_gc());
	heap_healthy();
	must(rt_fini());
}

GROUP(slice, .timeout = 2 * AWAIT_SECONDS);

static uint32_t left_in_stop;

static void look_in_stop(void)
{
	stop();
	left_in_stop = chunks_left();
	start();
}

// A slice of the background thread has several chunks.  A stop that comes waits
// for the one that the thread is in, and for no other.
TEST(a_stop_ends_a_slice_of_the_background_thread)
{
	uint32_t left;

	make_garbage(2, 1);
	schedpoint_hold(SCHED_SWEEP_ONE_TAKEN);
	supply_collect(proc_self(), ASK_FORCED);
	host_block();
	await_held(SCHED_SWEEP_ONE_TAKEN);
	left = chunks_left();
	ck_assert_uint_ge(left, SWEEP_SLICE);
	hold_at(SCHED_NOTE_WAIT, &other, look_in_stop);
	schedpoint_release(SCHED_NOTE_WAIT);
	schedpoint_release(SCHED_SWEEP_ONE_TAKEN);
	hand_end(&other);
	host_unblock();
	ck_assert_uint_eq(left_in_stop, left);
	must(rt_gc());
	heap_healthy();
	must(rt_fini());
}

GROUP(refused, .timeout = 2 * AWAIT_SECONDS);

// If the system refuses the background thread, the threads that allocate sweep.
TEST(without_a_thread_the_host_sweeps)
{
	uint64_t before;

	make_garbage(2, 1);
	before = arena_used();
	fault_fail(OSCALL_THREAD, 1, UINT64_MAX, EAGAIN);
	supply_collect(proc_self(), ASK_FORCED);
	ck_assert_uint_ne(fault_failed(OSCALL_THREAD), 0);
	ck_assert(!swept_over());
	ck_assert_ptr_nonnull(rt_alloc_noscan((size_t)GARBAGE * LARGE));
	ck_assert_uint_eq(arena_used(), before);
	fault_fail(OSCALL_THREAD, 1, 0, 0);
	must(rt_gc());
	heap_healthy();
	must(rt_fini());
}

// ---- whatever the host does meanwhile ----

// A place in a sweep, and what the thread that is held there does.  If fn is
// NULL, the background thread is held there, and is blocked.
static const struct place {
	enum schedpoint at;
	void (*fn)(void);
} places[] = {
    {SCHED_TAKE_SWEPT, take_large}, {SCHED_SLICES_REST, host_sweep},
    {SCHED_SWEPT_END, host_sweep},  {SCHED_SWEPT_FOLLOW, host_sweep},
    {SCHED_FINISH_SWEEP, NULL},
};

static int look(void *obj, size_t size, int kind, void *arg)
{
	(void)obj, (void)size, (void)kind, (void)arg;
	return 0;
}

static void walk(void)
{
	host_attach();
	must(rt_heap_walk(look, NULL));
	ck_assert(swept_over());
	host_detach();
}

static void verify(void)
{
	host_attach();
	heap_live();
	ck_assert(swept_over());
	host_detach();
}

static void come_and_go(void)
{
	host_attach();
	allocate_small();
	host_detach();
}

static void set_percent(void)
{
	host_attach();
	must(rt_set_gc_percent(50, NULL));
	host_detach();
}

static void set_limit(void)
{
	host_attach();
	must(rt_set_memory_limit(64 << 20, NULL));
	host_detach();
}

// Each row is what another thread does, and whether it must wait for the thread
// that is held.
static const struct deed {
	void (*fn)(void);
	bool stops;  // the world
	bool sweeps; // the rest, before its stop
} deeds[] = {
    {verify_in_child, true, false}, {walk, true, true},
    {verify, true, true},	    {come_and_go, false, false},
    {set_percent, false, false},    {set_limit, false, false},
};

// waits_at returns where the thread of a deed waits for a place to be left.  It
// returns SCHEDPOINT_COUNT if it does not wait.
static enum schedpoint waits_at(const struct deed *d, const struct place *p)
{
	if (!d->stops || !p->fn)
		return SCHEDPOINT_COUNT;
	return d->sweeps && p->at == SCHED_SWEPT_FOLLOW ? SCHED_SWEPT_AWAIT
							: SCHED_NOTE_WAIT;
}

static void begin_place(const struct place *p)
{
	if (!p->fn) {
		begin_background();
		return;
	}
	begin();
	hold_at(p->at, &sweeper, p->fn);
}

static void leave_place(const struct place *p)
{
	if (p->fn)
		let_end(p->at, &sweeper);
	else
		schedpoint_release(p->at);
}

// do_deed makes another thread do a deed while one is held at a place.
static void do_deed(const struct deed *d, const struct place *p)
{
	enum schedpoint at = waits_at(d, p);

	host_block();
	if (at == SCHEDPOINT_COUNT) {
		hand_run(&other, d->fn);
		leave_place(p);
	} else {
		hold_at(at, &other, d->fn);
		schedpoint_release(at);
		leave_place(p);
		hand_end(&other);
	}
	host_unblock();
}

// goal_of_rule makes the pacer compute the goal again from what the last
// collection found, and returns it.
static uint64_t goal_of_rule(void)
{
	int64_t limit;

	must(rt_set_memory_limit(INT64_MAX, &limit));
	must(rt_set_memory_limit(limit, NULL));
	return heap_metric("/gc/heap/goal:bytes");
}

GROUP(deeds, .timeout = 2 * AWAIT_SECONDS);

// Whatever another thread does in the middle of a sweep, the sweep ends once,
// and then the heap is as after any other sweep.
TEST(a_sweep_ends_once, .n = RT_ARRAY_LEN(places) * RT_ARRAY_LEN(deeds))
{
	const struct place *p = &places[_i / RT_ARRAY_LEN(deeds)];
	const struct deed *d = &deeds[_i % RT_ARRAY_LEN(deeds)];
	uint64_t goal;

	begin_place(p);
	do_deed(d, p);
	slices_rest(rt_thread_tls);
	ck_assert_uint_eq(scavenger_generation(), generation + 1);
	goal = heap_metric("/gc/heap/goal:bytes");
	heap_healthy();
	if (!d->stops)
		ck_assert_uint_eq(goal, goal_of_rule());
	must(rt_gc());
	heap_healthy();
	must(rt_fini());
}

// let_scavenger_end releases the background thread when the heap waits for it.
static void let_scavenger_end(void)
{
	await_at_least(&scavenger.quit, 1);
	schedpoint_release(SCHED_FINISH_SWEEP);
}

// A heap does not end while another thread of the host sweeps.  It ends while
// the background thread sweeps; that thread leaves the rest unswept.
TEST(a_heap_ends_in_the_middle_of_a_sweep, .n = RT_ARRAY_LEN(places))
{
	const struct place *p = &places[_i];

	begin_place(p);
	if (p->fn) {
		ck_assert_int_eq(rt_fini(), RT_EBUSY);
		host_block();
		leave_place(p);
		host_unblock();
		heap_healthy();
		must(rt_fini());
	} else {
		uint64_t passed = schedpoint_passed(SCHED_FINISH_SWEEP);

		hand_start(&other, let_scavenger_end);
		must(rt_fini());
		hand_end(&other);
		ck_assert_uint_eq(schedpoint_passed(SCHED_FINISH_SWEEP),
				  passed);
	}
	begin();
	ck_assert_uint_eq(heap_live(), 0);
	must(rt_fini());
}

// ---- sweeping in the stop ----

static void begin_in_stop(void)
{
	make_garbage(0, 0);
}

GROUP(in_the_stop, .setup = begin_in_stop, .timeout = 2 * AWAIT_SECONDS);

// swept END_ASKS_ACTIVE: a helper becomes active when all is swept, and finds
// no chunk.  The steps after the sweep are taken in the stop all the same.
TEST(a_late_helper_does_not_hide_the_end)
{
	atomic_u64_store_relaxed(&sweep.left, UINT64_C(1) << 32);
	hold_at(SCHED_SWEEP_HELP, &other, help);
	atomic_u64_store_relaxed(&sweep.left, 0);
	host_block();
	hold_at(SCHED_SWEPT_END_STOPPED, &sweeper, host_collect);
	move_on(SCHED_SWEEP_HELP, SCHED_SWEEP_ONE);
	let_end(SCHED_SWEPT_END_STOPPED, &sweeper);
	ck_assert(swept_over());
	ck_assert_uint_eq(scavenger_generation(), generation + 1);
	let_end(SCHED_SWEEP_ONE, &other);
	host_unblock();
	ck_assert_uint_eq(scavenger_generation(), generation + 1);
	ck_assert_uint_eq(heap_live(), 0);
	heap_healthy();
}
