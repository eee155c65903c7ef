// The end of a sweep beside the threads, and stops between its slices.
#define RT_NO_INLINE_ALLOC
#include <rt/rt.h>

#include "gc/cycle/swept.h"
#include "gc/host/slices.h"
#include "gc/host/supply.h"
#include "runtime/spans/mheap.h"
#include "test/harness/heap.h"
#include "test/harness/process.h"
#include "test/order/host.h"

enum { LARGE = 1 << 20, GARBAGE = 12 };

static struct hand sweeper, other;
static uint32_t generation;

static uint32_t scavenger_generation(void)
{
	return mheap.pages.scav.gen;
}

// begin leaves chunks full of garbage, unswept.  Main is attached.
static void begin(void)
{
	rt_config c = heap_config(HEAP_QUIET);

	c.sweep = 2;
	c.gc_threads = 0;
	heap_start_exact(c);
	for (int i = 0; i < GARBAGE; i++)
		ck_assert_ptr_nonnull(rt_alloc_noscan(LARGE));
	generation = scavenger_generation();
	supply_collect(proc_self(), ASK_FORCED);
	ck_assert(sweep_left());
	ck_assert(!swept_over());
}

static void sweep_rest(void)
{
	host_attach();
	slices_rest(rt_thread_tls);
	host_detach();
}

static void take_large(void)
{
	host_attach();
	ck_assert_ptr_nonnull(rt_alloc_noscan((size_t)GARBAGE * LARGE));
	host_detach();
}

static void read_exactly(void)
{
	rt_memstats m;

	host_attach();
	must(rt_read_memstats(&m));
	ck_assert_uint_eq(m.heap_alloc, 0);
	ck_assert_uint_eq(m.heap_objects, 0);
	host_detach();
}

GROUP(swept, .setup = begin, .timeout = 2 * AWAIT_SECONDS);

// swept END_TWICE: two threads find all swept.  One does what follows.
TEST(the_generation_is_raised_once_at_the_end)
{
	ck_assert_uint_eq(scavenger_generation(), generation);
	hold_at(SCHED_SWEPT_END, &sweeper, sweep_rest);
	ck_assert_uint_eq(scavenger_generation(), generation);
	slices_rest(rt_thread_tls);
	ck_assert_uint_eq(scavenger_generation(), generation + 1);
	host_block();
	let_end(SCHED_SWEPT_END, &sweeper);
	host_unblock();
	ck_assert_uint_eq(scavenger_generation(), generation + 1);
	ck_assert_uint_eq(heap_live(), 0);
}

// swept OVER_EARLY: the sweep is over when what follows was done.
TEST(a_sweep_is_over_after_what_follows)
{
	hold_at(SCHED_SWEPT_FOLLOW, &sweeper, sweep_rest);
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
	hold_at(SCHED_SLICES_REST, &sweeper, sweep_rest);
	ck_assert(!swept_over());
	host_block();
	hold_at(SCHED_NOTE_WAIT, &other, read_exactly);
	schedpoint_release(SCHED_NOTE_WAIT);
	let_end(SCHED_SLICES_REST, &sweeper);
	hand_end(&other);
	host_unblock();
	ck_assert(swept_over());
}

// A large object has to be earned: its thread polls between the slices.
TEST(a_large_allocation_polls_between_slices)
{
	hold_at(SCHED_TAKE_SWEPT, &other, take_large);
	ck_assert(sweep_left());
	slices_rest(rt_thread_tls);
	host_block();
	let_end(SCHED_TAKE_SWEPT, &other);
	host_unblock();
	ck_assert_uint_eq(heap_live(), 1);
}

static uint32_t chunks_left(void)
{
	uint64_t left = atomic_u64_load_relaxed(&sweep.left);

	return sweep_highest(left) - sweep_lowest(left);
}

// swept HELPER_BESIDE: a helper that was called in a stop and comes late takes
// no chunk, since no stop waits for it.
TEST(a_late_helper_takes_nothing_beside_the_threads)
{
	uint32_t left = chunks_left();

	sweep_help(NULL);
	ck_assert_uint_eq(chunks_left(), left);
	ck_assert(swept_slice(proc_self()));
	ck_assert_uint_eq(chunks_left(), left - 1);
	ck_assert_uint_eq(heap_live(), 0);
}

// begin_background leaves the library's thread between two chunks.
static void begin_background(void)
{
	rt_config c = heap_config(HEAP_QUIET);

	c.sweep = 2;
	c.max_procs = 2;
	c.gc_threads = 1;
	heap_start_exact(c);
	for (int i = 0; i < GARBAGE; i++)
		ck_assert_ptr_nonnull(rt_alloc_noscan(LARGE));
	schedpoint_hold(SCHED_FINISH_SWEEP);
	supply_collect(proc_self(), ASK_FORCED);
	host_block();
	await_held(SCHED_FINISH_SWEEP);
	host_unblock();
	ck_assert(!swept_over());
}

static void verify_in_child(void)
{
	struct rt_verify v;

	if (process_forked())
		process_end(rt_heap_verify(&v) == RT_OK && v.errors == 0 &&
			    rt_gc() == RT_OK && rt_fini() == RT_OK);
}

GROUP(background, .setup = begin_background, .timeout = 2 * AWAIT_SECONDS);

// While the library's thread is between two chunks, the world can be stopped,
// and forked; the other threads sweep on.
TEST(the_librarys_thread_lets_a_stop_come, .n = 2)
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
