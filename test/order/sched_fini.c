// rt_fini ends the library's threads, and other threads stop the world, fork,
// collect or attach meanwhile.
#define RT_NO_INLINE_ALLOC
#include <rt/rt.h>

#include <errno.h>

#include "gc/cycle/worker.h"
#include "gc/mark/crew.h"
#include "test/harness/fault.h"
#include "test/order/libthread.h"

enum { PERIOD_S = 120 };

static struct hand ender, other;
static int ended; // what rt_fini returned to a hand
static atomic_u32 told; // threads of which the host was told
static atomic_u32 busy; // 1: the host is busy when it is told

static void count_thread(void *arg)
{
	ck_assert_ptr_eq(arg, objects);
	atomic_u32_add_release(&told, 1);
	while (atomic_u32_load_acquire(&busy) != 0)
		oscall_yield();
}

static void begin(void)
{
	rt_config c = heap_config(HEAP_QUIET);

	c.sweep = 0;
	c.max_procs = 2;
	c.gc_threads = 1;
	c.scavenge = 1;
	c.idle_s = 0; // else steps of the scavenger pass SCHED_SEMA_ACQUIRE
	c.gc_thread_start = count_thread;
	c.gc_thread_arg = objects;
	begin_as(c);
}

// threads_made returns how many threads of the library have begun.  The host
// was told of each.
static uint64_t threads_made(void)
{
	uint64_t made = schedpoint_passed(SCHED_LIBTHREAD_MAIN);

	ck_assert_uint_eq(atomic_u32_load_relaxed(&told), made);
	return made;
}

// begin_both makes the background thread and a helper.
static void begin_both(void)
{
	begin();
	worker_provide(proc_self(), true);
	ck_assert(make_garbage());
	ck_assert(runs());
	ck_assert_uint_eq(crew_size(), 1);
	ck_assert_uint_eq(threads_made(), 2);
}

// all_is_there requires that the heap works, and that its threads come.
static void all_is_there(void)
{
	heap_healthy();
	worker_provide(proc_self(), true);
	ck_assert_uint_eq(crew_size(), 1);
	ck_assert(make_garbage());
	must(rt_gc()); // nothing was in use, so all that is free is too much
	ck_assert(runs());
	host_block();
	await_released();
	host_unblock();
	heap_healthy();
}

static void end_for_good(void)
{
	must(rt_fini());
	ck_assert(!runs());
	ck_assert_uint_eq(crew_size(), 0);
	begin();
	all_is_there();
	must(rt_fini());
}

// end_heap is for a hand.
static void end_heap(void)
{
	host_attach();
	ended = rt_fini();
	if (ended != RT_OK)
		host_detach();
}

GROUP(fini, .setup = begin_both, .timeout = 2 * AWAIT_SECONDS);

// While another thread is attached, rt_fini is refused at once: it does not
// even wait for the right to stop the world.
TEST(a_refused_end_ends_no_thread)
{
	host_block();
	stw_acquire(NULL);
	hand_run(&ender, end_heap);
	stw_release();
	host_unblock();
	ck_assert_int_eq(ended, RT_EBUSY);
	ck_assert_uint_eq(schedpoint_passed(SCHED_AWAIT_THREADS), 0);
	ck_assert_uint_eq(atomic_u32_load_relaxed(&scavenger.quit), 0);
	ck_assert_uint_eq(atomic_u32_load_relaxed(&workers.quit), 0);
	all_is_there();
	ck_assert_uint_eq(threads_made(), 2);
	end_for_good();
}

// A thread attaches while rt_fini waits for the right to stop the world.
TEST(an_end_that_is_refused_late_ends_no_thread)
{
	host_detach();
	stw_acquire(NULL);
	hold_at(SCHED_SEMA_ACQUIRE, &ender, end_heap);
	host_attach();
	host_block();
	stw_release();
	let_end(SCHED_SEMA_ACQUIRE, &ender);
	host_unblock();
	ck_assert_int_eq(ended, RT_EBUSY);
	all_is_there();
	ck_assert_uint_eq(threads_made(), 2);
	end_for_good();
}

static bool (*const claims[])(void) = {scavenger_claim, worker_claim};
static void (*const releases[])(void) = {scavenger_release, worker_release};

// A thread that attached just now has the claim to make the background thread,
// or helpers.  rt_fini is refused, and keeps no claim.
TEST(a_thread_that_makes_one_keeps_the_heap, .n = 2)
{
	ck_assert(claims[_i]());
	ck_assert_int_eq(rt_fini(), RT_EBUSY);
	ck_assert(claims[1 - _i]());
	releases[1 - _i]();
	releases[_i]();
	all_is_there();
	ck_assert_uint_eq(threads_made(), 2);
	end_for_good();
}

// ---- stops and forks meanwhile ----

static void read_exactly(void)
{
	rt_memstats m;

	must(rt_read_memstats(&m));
}

static void stop_by_host(void)
{
	host_attach();
	must(rt_stop_the_world(RT_STOP_HOST));
	must(rt_start_the_world(NULL));
	host_detach();
}

static bool use_in_child(void)
{
	if (!make_garbage() || !runs())
		return false;
	worker_provide(proc_self(), true);
	return crew_size() == 1;
}

// The child has neither the library's threads nor the thread that waits for
// their end.
static void fork_and_wait(void)
{
	if (!process_forked())
		return;
	atomic_u32_store_relaxed(&busy, 0);
	process_end(crew_size() == 0 && works_alone(use_in_child));
}

static void (*const meets[])(void) = {read_exactly, host_verify, stop_by_host,
				      host_collect, fork_and_wait};

static bool it_has_ended(void)
{
	return atomic_u32_load_acquire(&scavenger.quit) == 0;
}

// fork FINI_KEEPS, FINI_RUNS: the end waits for a helper, as blocked, and
// without the right to stop the world.  The background thread has ended before,
// since no thread may end beside a fork (sched.h).
TEST(no_stop_and_no_fork_waits_for_an_end, .n = RT_ARRAY_LEN(meets))
{
	host_detach();
	schedpoint_hold(SCHED_SERVE_LEFT);
	pass_at(SCHED_AWAIT_THREADS, &ender, end_heap);
	await_held(SCHED_SERVE_LEFT);
	await_that(it_has_ended, "it does not end");
	hand_run(&other, meets[_i]);
	let_end(SCHED_SERVE_LEFT, &ender);
	ck_assert_int_eq(ended, RT_OK);
	begin();
	end_for_good();
}

// fork CALL_QUITS: a collection calls the helper for another task before the
// helper has seen the call to end.  The helper ends all the same.
TEST(a_helper_that_misses_the_call_ends)
{
	host_detach();
	schedpoint_hold(SCHED_CREW_WAIT);
	pass_at(SCHED_AWAIT_THREADS, &ender, end_heap);
	await_held(SCHED_CREW_WAIT);
	stw_acquire(NULL);
	crew_call(CREW_SWEEP);
	stw_release();
	let_end(SCHED_CREW_WAIT, &ender);
	ck_assert_int_eq(ended, RT_OK);
	begin();
	end_for_good();
}

// ---- a thread attaches meanwhile ----

// begin_late attaches in the middle of rt_fini, when the library's threads have
// ended.
static void begin_late(void)
{
	host_detach();
	hold_at(SCHED_AWAIT_THREADS_ENDED, &ender, end_heap);
	host_attach();
}

static void end_late(void)
{
	host_block();
	let_end(SCHED_AWAIT_THREADS_ENDED, &ender);
	host_unblock();
	ck_assert_int_eq(ended, RT_EBUSY);
}

// A collection makes no threads in the middle of rt_fini.
TEST(a_thread_that_attaches_keeps_the_heap)
{
	begin_late();
	worker_provide(proc_self(), true);
	ck_assert(make_garbage());
	ck_assert_uint_eq(crew_size(), 0);
	ck_assert_uint_eq(threads_made(), 2);
	end_late();
	// The background thread needs no collection to come again.
	ck_assert(runs());
	ck_assert_uint_eq(threads_made(), 3);
	all_is_there();
	ck_assert_uint_eq(threads_made(), 4);
	end_for_good();
}

// A refused rt_fini makes the background thread again, and the host is told of
// that thread.  rt_fini waits for the host as blocked, and without the right to
// stop the world.
TEST(no_stop_and_no_fork_waits_for_a_host_that_is_told_again,
     .n = RT_ARRAY_LEN(meets))
{
	begin_late();
	host_block();
	atomic_u32_store_release(&busy, 1);
	schedpoint_release(SCHED_AWAIT_THREADS_ENDED);
	await_at_least(&told, 3);
	hand_run(&other, meets[_i]);
	atomic_u32_store_release(&busy, 0);
	hand_end(&ender);
	host_unblock();
	ck_assert_int_eq(ended, RT_EBUSY);
	ck_assert(runs());
	ck_assert_uint_eq(threads_made(), 3);
	all_is_there();
	end_for_good();
}

TEST(a_thread_that_is_refused_comes_later)
{
	begin_late();
	fault_fail(OSCALL_THREAD, 1, UINT64_MAX, EAGAIN);
	end_late();
	ck_assert(!runs());
	ck_assert_uint_eq(atomic_u64_load_relaxed(&scavenger.grown_at), 0);
	fault_fail(OSCALL_THREAD, 1, 0, 0);
	all_is_there();
	end_for_good();
}

// A thread that has come and gone does not keep the heap.
TEST(a_thread_that_detaches_again_does_not)
{
	begin_late();
	heap_healthy();
	host_detach();
	let_end(SCHED_AWAIT_THREADS_ENDED, &ender);
	ck_assert_int_eq(ended, RT_OK);
	begin();
	end_for_good();
}

static void end_refused(void)
{
	host_attach();
	ck_assert_int_eq(rt_fini(), RT_EBUSY);
	host_detach();
}

// A second thread that calls rt_fini meanwhile is refused.  It detaches, and
// the first thread ends the heap.
TEST(another_end_meanwhile_is_refused)
{
	host_detach();
	hold_at(SCHED_AWAIT_THREADS_ENDED, &ender, end_heap);
	hand_run(&other, end_refused);
	let_end(SCHED_AWAIT_THREADS_ENDED, &ender);
	ck_assert_int_eq(ended, RT_OK);
	begin();
	end_for_good();
}

static void attach_too_late(void)
{
	ck_assert_int_eq(rt_thread_attach(RT_THREAD_EXACT), RT_ESTATE);
	ck_assert_ptr_null(rt_thread_self());
}

// The heap ends when a thread that attaches has found it, but has no P yet.
// The attach is refused.
TEST(a_thread_that_attaches_too_late_finds_no_heap)
{
	must(rt_fini());
	begin();
	host_detach();
	hold_at(SCHED_MUTEX_LOCK, &other, attach_too_late);
	hand_run(&ender, end_heap);
	ck_assert_int_eq(ended, RT_OK);
	let_end(SCHED_MUTEX_LOCK, &other);
	begin();
	end_for_good();
}

// ---- a collection that is due ----

static void begin_periodic(void)
{
	rt_config c = heap_config(100);

	c.max_procs = 1; // no helper
	c.scavenge = 1;
	c.gc_period_s = PERIOD_S;
	begin_as(c);
}

static void release_when_it_must_end(void)
{
	await_at_least(&scavenger.quit, 1);
	schedpoint_release(SCHED_SCAVENGE_STEP);
}

GROUP(fini_periodic, .setup = begin_periodic, .timeout = 2 * AWAIT_SECONDS);

static uint64_t turns(void)
{
	return schedpoint_passed(SCHED_SCAVENGER_TAKE_TURN);
}

// hold_in_step makes seconds pass until the scavenger finds the program idle,
// and holds it while it has pages in its hands.
static void hold_in_step(void)
{
	schedpoint_hold(SCHED_SCAVENGE_STEP);
	for (int i = 0; i < PERIOD_S / 10; i++) {
		uint64_t before = turns();

		fault_advance_clock(UINT64_C(10000000000));
		note_wake(&scavenger.call);
		while (turns() == before)
			if (schedpoint_held(SCHED_SCAVENGE_STEP))
				return;
			else
				oscall_yield();
	}
	ck_abort_msg("it releases nothing");
}

TEST(an_end_waits_for_no_collection_that_has_not_begun)
{
	uint64_t flips;

	ck_assert(make_garbage());
	host_block();
	hold_in_step();
	await_held(SCHED_SCAVENGE_STEP);
	flips = schedpoint_passed(SCHED_CYCLE_FLIP);
	fault_advance_clock(PERIOD_S * UINT64_C(1000000000));
	host_unblock();
	hand_start(&other, release_when_it_must_end);
	must(rt_fini());
	hand_end(&other);
	ck_assert_uint_eq(schedpoint_passed(SCHED_CYCLE_FLIP), flips);
}
