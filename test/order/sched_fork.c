// Forks while another thread holds a lock, makes a helper, is a helper, waits,
// or throws.
#include <rt/fork.h>
#include <rt/rt.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gc/mark/crew.h"
#include "gc/host/door.h"
#include "gc/host/handlers.h"
#include "gc/host/supply.h"
#include "gc/cycle/sweep.h"
#include "gc/mark/work.h"
#include "gc/cycle/worker.h"
#include "runtime/world/heapstats.h"
#include "runtime/world/stw.h"
#include "runtime/os/throw.h"
#include "test/harness/death.h"
#include "test/harness/heap.h"
#include "test/order/host.h"
#include "test/harness/process.h"

static struct hand forker, other = {.stays = true}, third;

static void begin(void)
{
	rt_config c = heap_config(HEAP_QUIET);

	c.max_procs = 2;
	c.gc_threads = 1;
	heap_start(c);
	ck_assert(rt_alloc(100));
}

// Only the exit status of the child comes back: Check has locks of its own,
// which may have been held at the fork.
static void expect(bool ok)
{
	if (!ok)
		_exit(EXIT_FAILURE);
}

// collects_unasked expects that a collection does not count as forced.  It
// would count as forced if the child's queue still had a thread of the parent
// that asked for a forced collection.
static void collects_unasked(void)
{
	rt_memstats before, after;

	expect(rt_read_memstats(&before) == RT_OK);
	supply_collect(proc_self(), ASK_DUE);
	expect(rt_read_memstats(&after) == RT_OK);
	expect(after.num_gc == before.num_gc + 1);
	expect(after.num_forced_gc == before.num_forced_gc);
}

// works_alone uses the heap in the child, where no other thread can do anything
// for the caller.
static void works_alone(void)
{
	rt_memstats m;

	expect(rt_thread_attach(0) == RT_OK);
	expect(atomic_u32_load_relaxed(&procs.attached) == 1);
	for (const struct rt_proc *p = proc_first(); p; p = proc_next(p))
		expect(p == proc_self() || proc_is_free(p));
	expect(crew_size() == 0);
	expect(rt_read_memstats_live(&m) == RT_OK);
	expect(rt_set_warn_handler(NULL, NULL) == RT_OK);
	expect(rt_stop_the_world(RT_STOP_HOST) == RT_OK);
	expect(rt_start_the_world(NULL) == RT_OK);
	collects_unasked();
	expect(rt_alloc(100) && rt_gc() == RT_OK);
	expect(heap_is_whole());
	// The sanitizers can make no thread in a child.
	if (!RT_TSAN && !RT_ASAN) {
		worker_provide(proc_self(), true);
		expect(crew_size() == 1);
	}
	expect(rt_gc() == RT_OK);
	expect(rt_fini() == RT_OK);
}

// fork_and_wait is for a thread that is not attached.
static void fork_and_wait(void)
{
	if (process_forked()) {
		works_alone();
		process_end(true);
	}
}

// ---- collections ----

GROUP(fork, .setup = begin, .timeout = 2 * AWAIT_SECONDS);

// fork LEAD_KEPT: the thread that leads (ask.h) waits for its turn to stop the
// world, and another thread waits for its collection.  The child has neither.
TEST(a_child_collects_though_the_leader_is_gone)
{
	host_block();
	stw_acquire(NULL);
	hold_at(SCHED_SEMA_ACQUIRE, &forker, fork_and_wait);
	hold_at(SCHED_SEMA_ACQUIRE, &other, host_collect);
	pass_at(SCHED_ASK_WAIT, &third, host_collect);
	stw_release();
	hand_end(&forker);
	let_end(SCHED_SEMA_ACQUIRE, &other);
	hand_end(&third);
	host_unblock();
}

// ---- locks ----

static void hold_procs(void)
{
	mutex_lock(&procs.lock);
}

static void release_procs(void)
{
	mutex_unlock(&procs.lock);
}

static void hold_stats(void)
{
	heapstats_acquire(NULL);
}

static void release_stats(void)
{
	heapstats_release(NULL);
}

static const struct {
	void (*hold)(void);
	void (*release)(void);
} locks[] = {
    {hold_procs, release_procs},
    {work_fork_lock, work_fork_unlock},
    {heapstats_fork_lock, heapstats_fork_unlock}, // of readers
    {hold_stats, release_stats},
    {handlers_fork_lock, handlers_fork_unlock},
};

// fork PROCS_FREE, WORK_FREE, READER_FREE, STATS_FREE, HANDLERS_FREE: a thread
// that no stop affects holds a lock, and the fork waits for it.
TEST(a_fork_waits_for_a_thread_that_holds_a_lock, .n = RT_ARRAY_LEN(locks))
{
	host_block();
	hold_at(SCHED_FORK_PREPARE, &forker, fork_and_wait);
	locks[_i].hold();
	move_on(SCHED_FORK_PREPARE, SCHED_MUTEX_SLEEP);
	locks[_i].release();
	let_end(SCHED_MUTEX_SLEEP, &forker);
	host_unblock();
}

static void read_live(void)
{
	rt_memstats m;

	ck_assert_int_eq(rt_read_memstats_live(&m), RT_OK);
}

// fork OUT_OF_ORDER: a reader has the first lock of the statistics and will
// take the second, so the fork waits for the first.
TEST(a_fork_takes_locks_in_order)
{
	host_block();
	hold_at(SCHED_FORK_PREPARE, &forker, fork_and_wait);
	hold_at(SCHED_MUTEX_LOCK, &other, read_live);
	move_on(SCHED_MUTEX_LOCK, SCHED_MUTEX_LOCK);
	move_on(SCHED_FORK_PREPARE, SCHED_MUTEX_SLEEP);
	let_end(SCHED_MUTEX_LOCK, &other);
	let_end(SCHED_MUTEX_SLEEP, &forker);
	host_unblock();
}

static void prepare_and_answer(void)
{
	ck_assert_int_eq(rt_fork_prepare(), RT_OK);
	ck_assert_int_eq(rt_fork_parent(), RT_OK);
}

static void attach_and_detach(void)
{
	ck_assert_int_eq(rt_thread_attach(0), RT_OK);
	host_detach();
}

// fork UNSTOPPED, LOCKS_FIRST: a fork that waits for a thread to stop keeps no
// thread from a lock.
TEST(a_fork_stops_the_world_before_it_takes_locks)
{
	rt_memstats m;

	hold_at(SCHED_NOTE_WAIT, &forker, prepare_and_answer);
	ck_assert(!stw_stopped());
	ck_assert_int_eq(rt_read_memstats_live(&m), RT_OK);
	ck_assert_int_eq(rt_set_warn_handler(NULL, NULL), RT_OK);
	ck_assert(!mutex_held(&procs.lock));
	host_block();
	let_end(SCHED_NOTE_WAIT, &forker);
	host_unblock();
}

// After a fork, the locks are released before the world starts, and no thread
// attaches before it starts.
TEST(a_thread_that_attaches_waits_for_the_end_of_a_fork)
{
	host_block();
	hold_at(SCHED_FORK_RESUME, &forker, prepare_and_answer);
	hold_at(SCHED_LOCK_OPEN_GATE, &other, attach_and_detach);
	let_end(SCHED_FORK_RESUME, &forker);
	let_end(SCHED_LOCK_OPEN_GATE, &other);
	host_unblock();
}

// ---- helpers ----

static void provide(void)
{
	ck_assert_int_eq(rt_thread_attach(0), RT_OK);
	worker_provide(proc_self(), true);
	host_detach();
}

static const enum schedpoint making[] = {SCHED_MAKE_MISSING,
					 SCHED_LIBTHREAD_MAIN, SCHED_START_ONE};

// fork MAKING_KEPT, RECORDS_KEPT, CREW_KEPT, PROCS_KEPT, CACHES_KEPT: the
// thread that makes a helper, or the helper, is lost on the way.  The child
// makes its own helper, and sweeps what the lost threads cached.
TEST(a_fork_while_a_helper_is_made, .n = RT_ARRAY_LEN(making))
{
	host_block();
	hold_at(making[_i], &other, provide);
	hand_run(&forker, fork_and_wait);
	let_end(making[_i], &other);
	ck_assert_uint_eq(crew_size(), 1);
	host_unblock();
}

// The fork waits for a helper that has a P and runs, as for any thread.
TEST(a_fork_waits_for_a_helper_that_comes)
{
	host_block();
	schedpoint_hold(SCHED_LIBTHREAD_MAIN_RUNS);
	pass_at(SCHED_NOTE_WAIT, &other, provide); // it waits for the helper
	await_held(SCHED_LIBTHREAD_MAIN_RUNS);
	hold_at(SCHED_NOTE_WAIT, &forker, fork_and_wait);
	schedpoint_release(SCHED_LIBTHREAD_MAIN_RUNS);
	let_end(SCHED_NOTE_WAIT, &forker);
	hand_end(&other);
	host_unblock();
}

static void end_heap(void)
{
	ck_assert_int_eq(rt_thread_attach(0), RT_OK);
	ck_assert_int_eq(rt_fini(), RT_OK);
}

static void prepare_without_heap(void)
{
	prepare_and_answer();
	ck_assert(!door_ready());
}

// fork FINI_ADMITS: the end of a heap keeps forks out when it has closed the
// doors, so no fork meets half a heap.
TEST(a_fork_waits_for_the_end_of_a_heap)
{
	worker_provide(proc_self(), true);
	host_detach();
	hold_at(SCHED_ATTACH_UNDO, &other, end_heap);
	hold_at(SCHED_SEMA_ACQUIRE, &forker, prepare_without_heap);
	let_end(SCHED_ATTACH_UNDO, &other);
	let_end(SCHED_SEMA_ACQUIRE, &forker);
}

static void sweep_a_chunk(void)
{
	sweep_chunk(NULL);
}

// fork ACTIVE_KEPT: a helper that comes too late to a sweep looks for a chunk
// all the same.  The child does not wait for it.
TEST(a_fork_forgets_a_sweeper_that_came_late)
{
	ck_assert_int_eq(rt_gc(), RT_OK);
	host_block();
	hold_at(SCHED_SWEEP_ONE, &other, sweep_a_chunk);
	hand_run(&forker, fork_and_wait);
	let_end(SCHED_SWEEP_ONE, &other);
	host_unblock();
}

// ---- waiting ----

static void stop_and_start(void)
{
	stw_acquire(NULL);
	stw_stop(NULL, RT_STOP_HOST);
	stw_start(NULL, NULL);
	stw_release();
}

// fork SEMA_KEPT: two threads wait for their turn to stop the world.  The child
// has neither, and must not wait until both have had their turn.
TEST(a_child_has_no_thread_that_waits_for_a_turn)
{
	host_block();
	hold_at(SCHED_FORK_PREPARE, &forker, fork_and_wait);
	hold_at(SCHED_SEMA_ACQUIRE, &other, stop_and_start);
	hold_at(SCHED_SEMA_ACQUIRE, &third, stop_and_start);
	let_end(SCHED_FORK_PREPARE, &forker);
	hand_end(&other);
	let_end(SCHED_SEMA_ACQUIRE, &third);
	host_unblock();
}

// ---- throwing ----

static void throw_first(void)
{
	throw_fatal("first");
}

static void throw_second(void)
{
	death_expect("second");
	throw_fatal("second");
}

static void work_and_throw(void)
{
	works_alone();
	throw_second();
}

static void (*in_child)(void);

static void fork_that_throws(void)
{
	pid_t child = fork();
	int status;

	if (child == 0) {
		process_expire();
		in_child();
		_exit(0);
	}
	ck_assert_int_gt(child, 0);
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert(WIFEXITED(status));
	ck_assert_int_eq(WEXITSTATUS(status), DEATH_EXPECTED);
}

// fork THROWER_KEPT: another thread throws after the fork was prepared.  The
// child has a heap, and can throw.  The other thread stays at its point.
TEST(a_child_has_no_thread_that_throws)
{
	in_child = work_and_throw;
	host_block();
	hold_at(SCHED_FORK_PREPARE, &forker, fork_that_throws);
	hold_at(SCHED_THROW_CLAIM, &other, throw_first);
	let_end(SCHED_FORK_PREPARE, &forker);
	host_unblock();
}

// Here the other thread throws before the fork, so the fork is not prepared.
// The child can throw.
TEST(a_fork_beside_a_thread_that_throws_is_not_prepared)
{
	uint64_t before = schedpoint_passed(SCHED_FORK_PREPARE);

	in_child = throw_second;
	host_block();
	hold_at(SCHED_THROW_CLAIM, &other, throw_first);
	hand_run(&forker, fork_that_throws);
	ck_assert_uint_eq(schedpoint_passed(SCHED_FORK_PREPARE), before);
	host_unblock();
}
