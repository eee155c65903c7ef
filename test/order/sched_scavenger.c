// The scavenger meets stops, collections, forks and the end of the heap.
#define RT_NO_INLINE_ALLOC
#include <rt/rt.h>

#include <errno.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "runtime/os/settings.h"
#include "runtime/spans/mcache.h"
#include "gc/cycle/scavturn.h"
#include "test/harness/fault.h"
#include "test/order/libthread.h"

static struct hand maker = {.stays = true}, other;

static void begin_sweeping(uint8_t mode)
{
	rt_config c = heap_config(HEAP_QUIET);

	c.sweep = mode;
	c.max_procs = 1; // no helper
	c.scavenge = 1;
	c.idle_s = UINT8_MAX; // no test takes so long
	begin_as(c);
}

// begin makes a heap that sweeps in the stop.  A sweep beside the threads wakes
// the scavenger, so it would count as one more turn.
static void begin(void)
{
	begin_sweeping(0);
}

static void begin_beside(void)
{
	begin_sweeping(2);
}

// make is for a hand.  It collects and leaves free pages, but not more than the
// goal.
static void make(void)
{
	host_attach();
	ck_assert(make_garbage());
	host_detach();
}

static bool use_in_child(void)
{
	if (!make_garbage() || !runs() || rt_gc() != RT_OK ||
	    rt_blocking_enter() != RT_OK)
		return false;
	await_released();
	return rt_blocking_leave() == RT_OK;
}

static void fork_and_wait(void)
{
	if (process_forked())
		process_end(works_alone(use_in_child));
}

GROUP(scavenger, .setup = begin, .timeout = 2 * AWAIT_SECONDS);

static const enum schedpoint making[] = {SCHED_SCAVENGER_MAKE,
					 SCHED_LIBTHREAD_MAIN};

// The child loses a thread that is just making the scavenger, or the scavenger
// that just begins.
TEST(a_fork_while_it_is_made, .n = RT_ARRAY_LEN(making))
{
	host_block();
	hold_at(making[_i], &maker, make);
	hand_run(&other, fork_and_wait);
	let_end(making[_i], &maker);
	ck_assert(runs());
	host_unblock();
}

// begin_serve makes the scavenger begin, and holds it before its first turn.
static void begin_serve(void)
{
	host_block();
	schedpoint_hold(SCHED_SERVE_BEGIN);
	hand_run(&maker, make);
	await_held(SCHED_SERVE_BEGIN);
}

// The time at which the monotonic clock is stopped, in ns; 0: it runs.
static atomic_u64 stopped_clock;

// clock_gettime is called instead of the C library's, in the whole program.
int clock_gettime(clockid_t id, struct timespec *time)
{
	uint64_t ns = atomic_u64_load_acquire(&stopped_clock);

	if (id != CLOCK_MONOTONIC || ns == 0)
		return (int)syscall(SYS_clock_gettime, id, time);
	time->tv_sec = (time_t)(ns / 1000000000);
	time->tv_nsec = (long)(ns % 1000000000);
	return 0;
}

// begin_turn makes the scavenger work to the end of its first turn, in which it
// only sets its timer.  The caller is blocked then.
static void begin_turn(void)
{
	host_block();
	schedpoint_hold(SCHED_SCAVENGER_TAKE_TURN);
	hand_run(&maker, make);
	await_held(SCHED_SCAVENGER_TAKE_TURN);
}

// begin_step makes the scavenger work until it has pages in its hands.
static void begin_step(void)
{
	host_block();
	hand_run(&maker, make);
	schedpoint_hold(SCHED_SCAVENGE_STEP);
	// Nothing was in use, so all that is free is too much.
	hand_run(&maker, host_collect);
	await_held(SCHED_SCAVENGE_STEP);
}

// begin_pause makes the scavenger work until it is about to sleep between two
// batches.
static void begin_pause(void)
{
	begin_step();
	move_on(SCHED_SCAVENGE_STEP, SCHED_NOTE_WAIT);
}

static void take_40_mib(void)
{
	host_attach();
	ck_assert_ptr_nonnull(rt_alloc_noscan_uninit((size_t)40 << 20));
	host_detach();
}

static void take_some(void)
{
	host_attach();
	for (unsigned i = 0; i < OBJECTS / 4; i++)
		ck_assert_ptr_nonnull(rt_alloc_noscan_uninit(OBJECT));
	host_detach();
}

static bool lacks_populate(enum schedpoint at)
{
	if (at != SCHED_POPULATE_RANGE ||
	    atomic_u32_load_relaxed(&mheap.populate))
		return false;
	suite_skip("this kernel has no MADV_POPULATE_WRITE", NULL);
	return true;
}

// begin_ahead makes threads take so much memory that the background thread
// brings some in, and has it in its hands.  No time passes meanwhile, so a slow
// machine takes it as fast as any other.
static void begin_ahead(void)
{
	settings_present.populate = 2;
	// The maker must find room while the scavenger has pages.
	ck_assert(mheap_extend(NULL, 64 * RT_CHUNK_PAGES));
	host_block();
	hand_run(&maker, take_40_mib);
	ck_assert(runs());
	atomic_u64_store_release(&stopped_clock, nanotime());
	schedpoint_hold(SCHED_POPULATE_RANGE);
	while (!schedpoint_held(SCHED_POPULATE_RANGE))
		if (ahead_called(&scavenger.ahead))
			oscall_yield();
		else
			hand_run(&maker, take_some);
	atomic_u64_store_release(&stopped_clock, 0);
}

static const struct {
	void (*begin)(void);
	enum schedpoint at;
} running[] = {
    {begin_serve, SCHED_SERVE_BEGIN},
    {begin_turn, SCHED_SCAVENGER_TAKE_TURN},
    {begin_step, SCHED_SCAVENGE_STEP},
    {begin_ahead, SCHED_POPULATE_RANGE},
};

static void (*const meets[])(void) = {host_verify, fork_and_wait};

// A stop waits until the pages in the scavenger's hands are free.  So no
// verification, exact read or fork meets them.
TEST(a_stop_waits_for_a_turn, .n = RT_ARRAY_LEN(running) * 2)
{
	unsigned i = (unsigned)_i / 2;

	if (lacks_populate(running[i].at))
		return;
	running[i].begin();
	hold_at(SCHED_NOTE_WAIT, &other, meets[_i % 2]);
	schedpoint_release(running[i].at);
	let_end(SCHED_NOTE_WAIT, &other);
	host_end();
}

// No stop waits for the scavenger's sleep.
TEST(no_stop_waits_for_a_pause, .n = 2)
{
	begin_pause();
	hand_run(&other, meets[_i]);
	schedpoint_release(SCHED_NOTE_WAIT);
	host_end();
}

TEST(a_collection_wakes_it_that_is_about_to_sleep)
{
	begin_turn();
	move_on(SCHED_SCAVENGER_TAKE_TURN, SCHED_PROC_BLOCK_DONE);
	hand_run(&other, host_collect);
	schedpoint_release(SCHED_PROC_BLOCK_DONE);
	await_released();
	host_unblock();
}

// The scavenger keeps to its pauses even if the program collects meanwhile, and
// then releases the pages that are left.
TEST(a_collection_does_not_end_its_pause)
{
	begin_pause();
	hand_run(&other, host_collect);
	ck_assert(schedpoint_held(SCHED_NOTE_WAIT));
	ck_assert_uint_ne(atomic_u32_load_relaxed(&scavenger.pause.woken), 1);
	schedpoint_release(SCHED_NOTE_WAIT);
	await_released();
	host_unblock();
}

static enum schedpoint held_at;

static void release_when_it_must_end(void)
{
	await_at_least(&scavenger.quit, 1);
	schedpoint_release(held_at);
}

static const struct {
	void (*begin)(void);
	enum schedpoint at;
} working[] = {
    {begin_turn, SCHED_SCAVENGER_TAKE_TURN},
    {begin_step, SCHED_SCAVENGE_STEP},
    {begin_pause, SCHED_NOTE_WAIT},
    {begin_ahead, SCHED_POPULATE_RANGE},
};

TEST(the_end_of_the_heap_waits_for_its_end, .n = RT_ARRAY_LEN(working))
{
	if (lacks_populate(working[_i].at))
		return;
	working[_i].begin();
	host_unblock();
	held_at = working[_i].at;
	hand_start(&other, release_when_it_must_end);
	must(rt_fini());
	hand_end(&other);
	ck_assert(!runs());
	begin();
	heap_healthy();
	must(rt_fini());
}

// ---- how often it wakes ----

static uint64_t turns(void)
{
	return schedpoint_passed(SCHED_SCAVENGER_TAKE_TURN);
}

static void await_turns(uint64_t n)
{
	uint64_t end = nanotime() + AWAIT_SECONDS * UINT64_C(1000000000);

	while (turns() < n) {
		ck_assert_msg(
		    nanotime() < end, "%d turns",
		    (int)schedpoint_passed(SCHED_SCAVENGER_TAKE_TURN));
		oscall_yield();
	}
}

static bool sleeps_without_limit(void)
{
	return it_sleeps() && atomic_u32_load_relaxed(&scavenger.timed) == 0;
}

static void await_sleep(void)
{
	await_that(sleeps_without_limit, "it does not sleep");
}

// end_after ends the heap, and requires that the scavenger has taken n turns.
static void end_after(uint64_t n)
{
	// In its last turn the scavenger decided that it need not look again by
	// itself.
	ck_assert_uint_eq(atomic_u32_load_relaxed(&scavenger.timed), 0);
	host_unblock();
	must(rt_fini());
	ck_assert_uint_eq(turns(), n);
}

// make_it makes the scavenger, and waits for the end of its first turn.
static void make_it(void)
{
	host_block();
	schedpoint_watch();
	hand_run(&maker, make);
	await_turns(1);
}

// If the system refuses to release memory, the scavenger tries again once after
// each collection, and sleeps without a limit in between.
TEST(a_refused_release_costs_a_turn_for_each_collection)
{
	enum { COLLECTIONS = 5 };

	make_it();
	fault_fail(OSCALL_RELEASE, 1, UINT64_MAX, EINVAL);
	for (unsigned i = 1; i <= COLLECTIONS; i++) {
		hand_run(&maker, host_collect);
		await_turns(1 + i);
	}
	end_after(1 + COLLECTIONS);
}

static void *large; // object of the hands

static void set_limit(void)
{
	host_attach();
	must(rt_set_memory_limit(1 << 20, NULL));
	host_detach();
}

static void use_much(void)
{
	host_attach();
	objects[0] = rt_alloc_noscan(16 << 20);
	ck_assert_ptr_nonnull(objects[0]);
	host_detach();
}

// If all memory above the limit is in use, the scavenger has no reason to wake.
// This heap sweeps in the stop; each sweep beside the threads would wake the
// scavenger for one turn.
TEST(a_limit_that_cannot_be_kept_costs_no_turn)
{
	enum { COLLECTIONS = 5 };
	uint64_t before;

	make_it();
	hand_run(&maker, host_collect);
	await_released();
	hand_run(&maker, use_much);
	hand_run(&maker, set_limit);
	hand_run(&maker, host_collect);
	host_unblock();
	must(rt_free_os_memory());
	host_block();
	await_sleep();
	before = turns();
	for (unsigned i = 0; i < COLLECTIONS; i++)
		hand_run(&maker, host_collect);
	end_after(before);
}

static void take_large(void)
{
	host_attach();
	large = rt_alloc_uncollectable(RT_NOSCAN, 8 << 20);
	ck_assert_ptr_nonnull(large);
	host_detach();
}

static void free_large(void)
{
	host_attach();
	must(rt_free(large));
	host_detach();
}

static void shrink_large(void)
{
	host_attach();
	must(rt_resize(large, 1 << 20));
	host_detach();
}

static void (*const frees[])(void) = {free_large, shrink_large};

// When memory is freed by hand, the scavenger looks again even without a
// collection.  It also sets its timer, to see then whether the program is idle.
TEST(what_is_freed_by_hand_wakes_it, .n = RT_ARRAY_LEN(frees))
{
	uint64_t before;

	make_it();
	hand_run(&maker, host_collect);
	await_released();
	hand_run(&maker, take_large);
	await_sleep();
	before = turns();
	hand_run(&maker, frees[_i]);
	await_turns(before + 1);
	await_at_least(&scavenger.timed, 1);
	host_unblock();
	must(rt_fini());
}

// ---- beside a step ----

static void allocate_beside(void)
{
	host_attach();
	large = rt_alloc_uncollectable(RT_NOSCAN, 1 << 20);
	ck_assert_ptr_nonnull(large);
	must(rt_free(large));
	host_detach();
}

// While pages are in the scavenger's hands, other pages are taken and freed.
TEST(what_finds_room_elsewhere_waits_for_no_step)
{
	begin_step();
	hand_run(&other, allocate_beside);
	schedpoint_release(SCHED_SCAVENGE_STEP);
	await_released();
	host_end();
}

static void release_all(void)
{
	host_attach();
	must(rt_free_os_memory());
	host_detach();
}

static void allocate_at_the_limit(void)
{
	host_attach();
	must(rt_set_memory_limit(1 << 20, NULL));
	large = rt_alloc_uncollectable(RT_NOSCAN, 1 << 20);
	ck_assert_ptr_nonnull(large);
	host_detach();
}

static void (*const releases[])(void) = {release_all, allocate_at_the_limit};

// Other threads that release wait for the scavenger's step, and then do their
// part.
TEST(others_that_release_take_turns_with_it, .n = RT_ARRAY_LEN(releases))
{
	begin_step();
	hand_start(&other, releases[_i]);
	schedpoint_release(SCHED_SCAVENGE_STEP);
	hand_end(&other);
	host_unblock();
	heap_healthy();
	must(rt_free_os_memory());
	ck_assert(all_released());
	must(rt_fini());
}

GROUP(scavenger_beside, .setup = begin_beside, .timeout = 2 * AWAIT_SECONDS);

// await_either waits until a thread is held at one of two points.
static void await_either(enum schedpoint a, enum schedpoint b)
{
	while (!schedpoint_held(a) && !schedpoint_held(b))
		oscall_yield();
}

// A sweep wakes the scavenger in its pause.  The scavenger then sleeps for the
// rest of the pause.  No time passes meanwhile, so the pause cannot be over on
// a slow machine.
TEST(a_sweep_does_not_end_its_pause)
{
	begin_step();
	atomic_u64_store_release(&stopped_clock, nanotime());
	move_on(SCHED_SCAVENGE_STEP, SCHED_NOTE_WAIT);
	hand_run(&other, host_collect);
	ck_assert(schedpoint_held(SCHED_NOTE_WAIT));
	ck_assert_uint_eq(atomic_u32_load_relaxed(&scavenger.pause.woken), 1);
	schedpoint_hold(SCHED_SCAVENGER_TAKE_TURN);
	schedpoint_hold(SCHED_NOTE_WAIT); // releases it first
	await_either(SCHED_NOTE_WAIT, SCHED_SCAVENGER_TAKE_TURN);
	ck_assert(schedpoint_held(SCHED_NOTE_WAIT));
	atomic_u64_store_release(&stopped_clock, 0);
	schedpoint_release(SCHED_SCAVENGER_TAKE_TURN);
	schedpoint_release(SCHED_NOTE_WAIT);
	await_released();
	host_end();
}

// ---- the caches of threads that wait ----

#define SECOND UINT64_C(1000000000)

static struct {
	const struct rt_mcache *mc;
	atomic_u32 here, go;
	bool flushed; // its page cache was, when it left its region
} waiter;

// begin_turns makes a heap with free pages and no scavenger.  A hand takes the
// turns of the scavenger.
static void begin_turns(void)
{
	rt_config c = heap_config(HEAP_QUIET);

	c.gc_threads = 0;
	begin_as(c);
	ck_assert(make_garbage());
}

// wait_in_region is for a hand.  It has pages in its cache and waits.
static void wait_in_region(void)
{
	const struct pagecache *c;

	host_attach();
	waiter.mc = rt_thread_tls->mc;
	c = &waiter.mc->heap.pages;
	for (unsigned i = 0; i < 128 || pagecache_empty(c); i++)
		ck_assert_ptr_nonnull(rt_alloc_noscan(OBJECT));
	host_block();
	atomic_u32_store_release(&waiter.here, 1);
	await_at_least(&waiter.go, 1);
	host_unblock();
	waiter.flushed = pagecache_empty(c);
	ck_assert_ptr_nonnull(rt_alloc_noscan(OBJECT));
	host_detach();
}

// turn_idle is for a hand.  It does what the scavenger does when the program
// becomes idle.
static void turn_idle(void)
{
	struct scavturn turn;

	host_attach();
	scavturn_init(&turn, 1, SECOND);
	while (scavturn_run(&turn, proc_self(), 1000 * SECOND).sleep ==
	       SCAVTURN_PAUSE)
		scavturn_slept(&turn, SECOND, 2 * SECOND);
	ck_assert(turn.idle);
	host_detach();
}

// begin_flush makes the maker hold the claim on the P of other, which waits in
// a region.
static void begin_flush(void)
{
	host_block();
	hand_start(&other, wait_in_region);
	await_at_least(&waiter.here, 1);
	hold_at(SCHED_PROC_CLAIM, &maker, turn_idle);
	ck_assert(!pagecache_empty(&waiter.mc->heap.pages));
}

static void end_flush(void)
{
	atomic_u32_store_release(&waiter.go, 1);
	hand_end(&other);
	ck_assert(waiter.flushed);
	host_end();
}

GROUP(caches, .setup = begin_turns, .timeout = 2 * AWAIT_SECONDS);

TEST(a_thread_runs_again_when_its_cache_is_flushed)
{
	begin_flush();
	schedpoint_hold(SCHED_MUTEX_SLEEP);
	atomic_u32_store_release(&waiter.go, 1);
	await_held(SCHED_MUTEX_SLEEP);
	schedpoint_release(SCHED_MUTEX_SLEEP);
	ck_assert(!pagecache_empty(&waiter.mc->heap.pages));
	let_end(SCHED_PROC_CLAIM, &maker);
	end_flush();
}

static void meet_none(void)
{
	stop();
	for (const struct rt_proc *p = proc_first(); p; p = proc_next(p))
		ck_assert_uint_eq(atomic_u32_load_relaxed(&p->state),
				  PROC_BLOCKED | PROC_STOP);
	ck_assert(pagecache_empty(&waiter.mc->heap.pages));
	start();
}

static void fork_alone(void)
{
	if (process_forked())
		process_end(rt_thread_attach(RT_THREAD_EXACT) == RT_OK &&
			    heap_is_whole() && make_garbage() &&
			    heap_is_whole() && rt_fini() == RT_OK);
}

static struct hand stopper;
static void (*const meet[])(void) = {meet_none, fork_alone};

// A stop waits until the cache is flushed.  So no stop and no fork meets a
// cache in the hands of another thread.
TEST(a_stop_waits_for_a_flush, .n = RT_ARRAY_LEN(meet))
{
	begin_flush();
	hold_at(SCHED_MUTEX_SLEEP, &stopper, meet[_i]);
	schedpoint_release(SCHED_MUTEX_SLEEP);
	schedpoint_release(SCHED_PROC_CLAIM);
	hand_end(&stopper);
	hand_end(&maker);
	end_flush();
}
