// Stops of the world: threads that attach, detach, enter or leave a region at
// every step of a stop and of a start.
#include "gc/host/attach.h"
#include "runtime/world/stw.h"
#include "test/order/host.h"
#include "test/harness/fault.h"
#include "test/harness/heap.h"

static struct rt_proc *p, *q;
static struct hand host, newcomer, stopper, starter;

// A heap without attached threads.  Main takes the steps of the threads of p
// and q, except where these must wait.
static void begin(void)
{
	rt_config c = heap_config(100);

	c.no_attach = 1;
	heap_start(c);
}

// A heap whose main thread has p; q is another P.
static void begin_attached(void)
{
	begin();
	p = proc_attach(0);
	q = proc_attach(0);
	ck_assert(p && q);
}

static uint32_t state(const struct rt_proc *of)
{
	return atomic_u32_load_acquire(&of->state);
}

static bool gate_closed(void)
{
	return atomic_u32_load_acquire(&procs.gate) % 2 != 0;
}

static uint32_t awaited(void)
{
	return atomic_u32_load_acquire(&procs.stop_wait);
}

static void stop_as_q(void)
{
	stw_acquire(q);
	stw_stop(q, RT_STOP_HOST);
}

static void block(void)
{
	proc_block(p);
}

static void unblock(void)
{
	proc_unblock(p);
}

static void attach(void)
{
	p = proc_attach(0);
}

static void detach(void)
{
	proc_detach(p);
}

// ---- regions ----

GROUP(world, .setup = begin_attached, .timeout = 2 * AWAIT_SECONDS);

// stw UNBLOCK_UNCHECKED: the P stays BLOCKED until the stop is over.
TEST(a_thread_that_leaves_a_region_in_a_stop_stays_there)
{
	proc_block(p);
	proc_block(q);
	stop();
	hold_at(SCHED_PROC_UNBLOCK_STOP, &host, unblock);
	ck_assert_uint_eq(state(p), PROC_BLOCKED | PROC_STOP);
	start();
	ck_assert_uint_eq(state(p), PROC_BLOCKED);
	let_end(SCHED_PROC_UNBLOCK_STOP, &host);
	ck_assert_uint_eq(state(p), PROC_RUNNING);
}

// stw UNBLOCK_IN_TWO: the stop is asked for when the thread is about to run.
TEST(a_thread_that_leaves_a_region_late_finds_the_stop)
{
	proc_block(p);
	proc_block(q);
	hold_at(SCHED_PROC_UNBLOCK, &host, unblock);
	stop(); // waits for no thread
	move_on(SCHED_PROC_UNBLOCK, SCHED_PROC_UNBLOCK_STOP);
	ck_assert_uint_eq(state(p), PROC_BLOCKED | PROC_STOP);
	start();
	let_end(SCHED_PROC_UNBLOCK_STOP, &host);
}

// ---- the gate ----

// stw SLEEP_UNCOMPARED, WAITERS_LATE: the gate opens after a waiter has
// announced that it waits, and before it sleeps.
TEST(a_gate_that_opens_before_the_sleep_is_not_slept_on)
{
	proc_block(p);
	proc_block(q);
	stop();
	hold_at(SCHED_GATE_SLEEP, &host, unblock);
	ck_assert_uint_eq(atomic_u32_load_relaxed(&procs.gate_waiters), 1);
	start();
	let_end(SCHED_GATE_SLEEP, &host);
	ck_assert_uint_eq(atomic_u32_load_relaxed(&procs.gate_waiters), 0);
}

GROUP(attaching, .setup = begin, .timeout = 2 * AWAIT_SECONDS);

// stw WAITERS_FIRST: a waiter that goes to sleep when all Ps have been started,
// but the gate is still closed, is woken.
TEST(a_late_sleeper_at_the_gate_is_woken)
{
	stop();
	hold_at(SCHED_PROC_START_ALL_GATE, &starter, start);
	ck_assert(gate_closed());
	pass_at(SCHED_GATE_SLEEP, &newcomer, attach);
	sleep_ns(1000000); // it should be asleep, so that the wake matters
	let_end(SCHED_PROC_START_ALL_GATE, &starter);
	hand_end(&newcomer);
	ck_assert_uint_eq(state(p), PROC_RUNNING);
}

static struct rt_proc *r;
static struct hand second, third;

static void unblock_q(void)
{
	proc_unblock(q);
}

static void attach_r(void)
{
	r = proc_attach(0);
}

// asleep starts a hand and returns when it sleeps on the gate.
static void asleep(struct hand *h, void (*fn)(void))
{
	uint32_t n = atomic_u32_load_acquire(&procs.gate_waiters);

	hand_start(h, fn);
	await_at_least(&procs.gate_waiters, n + 1);
	await_asleep(&h->tid);
}

GROUP(world);

// stw LINK_FORGOTTEN, LINK_LATE: of three sleepers the starter wakes one.  That
// thread wakes the others while it is BLOCKED, so before it parks or runs.
TEST(a_woken_thread_wakes_others_before_it_runs)
{
	proc_block(p);
	proc_block(q);
	stop();
	asleep(&host, unblock);
	asleep(&second, unblock_q);
	asleep(&third, attach_r);
	schedpoint_hold(SCHED_GATE_PASS_ON);
	start();
	await_held(SCHED_GATE_PASS_ON);
	ck_assert(stays(&procs.gate_waiters, 2));
	ck_assert_uint_eq(state(p), PROC_BLOCKED);
	ck_assert_uint_eq(state(q), PROC_BLOCKED);
	schedpoint_release(SCHED_GATE_PASS_ON);
	hand_end(&host);
	hand_end(&second);
	hand_end(&third);
	ck_assert_uint_eq(state(r), PROC_RUNNING);
}

static uint64_t wakes(void)
{
	return fault_count(OSCALL_FUTEX_WAKE);
}

// stw SPINNER_IDLE: the starter leaves the wake to a thread that spins.
TEST(a_thread_that_spins_at_the_gate_does_the_starters_part)
{
	uint64_t before;

	proc_block(p);
	proc_block(q);
	stop();
	asleep(&host, unblock);
	hold_at(SCHED_GATE_WAIT, &second, unblock_q);
	fault_fail(OSCALL_FUTEX_WAKE, 1, 0, 0); // counts from now on
	before = wakes();
	start();
	ck_assert_uint_eq(wakes(), before);
	ck_assert_uint_eq(state(p), PROC_BLOCKED);
	let_end(SCHED_GATE_WAIT, &second);
	hand_end(&host);
}

// stw LINK_BROKEN: a thread that goes to sleep when the gate has opened wakes
// the sleepers, too.
TEST(a_thread_that_spun_in_vain_does_the_starters_part)
{
	proc_block(p);
	proc_block(q);
	stop();
	asleep(&host, unblock);
	hold_at(SCHED_GATE_WAIT_IN_VAIN, &second, unblock_q);
	start();
	ck_assert_uint_eq(state(p), PROC_BLOCKED);
	let_end(SCHED_GATE_WAIT_IN_VAIN, &second);
	hand_end(&host);
}

// stw SPINNER_KEPT: a thread that spins promises to wake the others.  It takes
// this promise back before it sleeps.
TEST(a_thread_that_sleeps_at_the_gate_promises_nothing)
{
	uint32_t gate;

	proc_block(p);
	proc_block(q);
	stop();
	gate = atomic_u32_load_relaxed(&procs.gate);
	hold_at(SCHED_GATE_WAIT_IN_VAIN, &host, unblock);
	ck_assert_uint_eq(atomic_u32_load_relaxed(&procs.gate_spinner), gate);
	move_on(SCHED_GATE_WAIT_IN_VAIN, SCHED_GATE_SLEEP);
	ck_assert_uint_ne(atomic_u32_load_relaxed(&procs.gate_spinner), gate);
	schedpoint_release(SCHED_GATE_SLEEP);
	start();
	hand_end(&host);
}

// A woken thread may wake the next one so late that another stop has begun.
// Then the sleeper of that stop sleeps again until the start.
TEST(a_late_link_does_no_harm)
{
	proc_block(p);
	proc_block(q);
	stop();
	schedpoint_hold(SCHED_GATE_PASS_ON);
	asleep(&host, unblock);
	start();
	await_held(SCHED_GATE_PASS_ON);
	stop();
	asleep(&second, unblock_q);
	schedpoint_hold(SCHED_GATE_SLEEP);
	schedpoint_release(SCHED_GATE_PASS_ON);
	await_held(SCHED_GATE_SLEEP);
	schedpoint_release(SCHED_GATE_SLEEP);
	ck_assert_uint_eq(state(p), PROC_BLOCKED | PROC_STOP);
	ck_assert_uint_eq(state(q), PROC_BLOCKED | PROC_STOP);
	start();
	hand_end(&host);
	hand_end(&second);
}

GROUP(attaching);

// stw ATTACH_UNGATED.
TEST(a_thread_that_attaches_in_a_stop_waits_for_its_end)
{
	stop();
	hold_at(SCHED_LOCK_OPEN_GATE, &newcomer, attach);
	ck_assert_ptr_null(proc_first());
	start();
	let_end(SCHED_LOCK_OPEN_GATE, &newcomer);
	ck_assert_uint_eq(state(p), PROC_RUNNING);
}

GROUP(world);

// stw DETACH_UNGATED: the stopper may look at the record of the P, so it is not
// free before the start.
TEST(a_thread_that_detaches_in_a_stop_waits_for_its_end)
{
	proc_block(q);
	hold_at(SCHED_PROC_DETACH, &host, detach);
	ck_assert_uint_eq(state(p), PROC_BLOCKED);
	stop();
	move_on(SCHED_PROC_DETACH, SCHED_LOCK_OPEN_GATE);
	ck_assert_uint_eq(state(p), PROC_BLOCKED | PROC_STOP);
	start();
	let_end(SCHED_LOCK_OPEN_GATE, &host);
	ck_assert_uint_eq(state(p), PROC_FREE);
}

GROUP(attaching);

// stw GATE_UNLOCKED: a stop and an attach take turns, so the newcomer is asked
// to stop.
TEST(the_gate_is_not_closed_while_a_thread_passes)
{
	hold_at(SCHED_PROC_ENLIST, &newcomer, attach);
	hold_at(SCHED_MUTEX_SLEEP, &stopper, stop);
	ck_assert(!gate_closed());
	let_end(SCHED_PROC_ENLIST, &newcomer);
	move_on(SCHED_MUTEX_SLEEP, SCHED_NOTE_WAIT);
	ck_assert_uint_eq(state(p), PROC_RUNNING | PROC_STOP);
	proc_block(p);
	let_end(SCHED_NOTE_WAIT, &stopper);
	ck_assert(stw_stopped());
}

TEST(a_stop_waits_for_a_thread_that_has_just_attached)
{
	hold_at(SCHED_PROC_ATTACH, &newcomer, attach);
	hold_at(SCHED_NOTE_WAIT, &stopper, stop);
	ck_assert_uint_eq(awaited(), 1);
	let_end(SCHED_PROC_ATTACH, &newcomer);
	proc_block(p);
	let_end(SCHED_NOTE_WAIT, &stopper);
	ck_assert(stw_stopped());
}

// ---- counting stopped threads ----

GROUP(world);

// stw NOTE_KEPT: each stop waits until the thread has reported to this stop.
TEST(a_stop_waits_until_a_thread_has_reported)
{
	proc_block(q);
	for (int i = 0; i < 2; i++) {
		hold_at(SCHED_PROC_BLOCK, &host, block);
		hold_at(SCHED_NOTE_WAIT, &stopper, stop);
		move_on(SCHED_PROC_BLOCK, SCHED_PROC_STOPPED);
		ck_assert_uint_eq(state(p), PROC_BLOCKED | PROC_STOP);
		ck_assert_uint_eq(awaited(), 1);
		let_end(SCHED_PROC_STOPPED, &host);
		let_end(SCHED_NOTE_WAIT, &stopper);
		ck_assert_uint_eq(awaited(), 0);
		start();
		proc_unblock(p);
	}
}

// The P was BLOCKED before it was asked: the stopper does not wait for it, and
// its thread does not report.
TEST(a_thread_that_blocks_before_it_is_asked_does_not_count)
{
	proc_block(q);
	hold_at(SCHED_PROC_BLOCK_DONE, &host, block);
	stop();
	ck_assert_uint_eq(state(p), PROC_BLOCKED | PROC_STOP);
	let_end(SCHED_PROC_BLOCK_DONE, &host);
	ck_assert_uint_eq(schedpoint_passed(SCHED_PROC_STOPPED), 0);
	ck_assert_uint_eq(awaited(), 0);
	start();
	ck_assert_uint_eq(state(p), PROC_BLOCKED);
}

// stw BIT_AFTER_COUNT: the step that asks a P decides whether it is counted.
TEST(a_thread_that_blocks_as_it_is_asked_does_not_count)
{
	proc_block(q);
	schedpoint_hold(SCHED_PROC_STOP_ALL);
	hand_start(&stopper, stop);
	await_held(SCHED_PROC_STOP_ALL); // q, the newest, is asked first
	move_on(SCHED_PROC_STOP_ALL, SCHED_PROC_STOP_ALL);
	proc_block(p);
	let_end(SCHED_PROC_STOP_ALL, &stopper);
	ck_assert_uint_eq(awaited(), 0);
	ck_assert_uint_eq(schedpoint_passed(SCHED_PROC_STOPPED), 0);
}

// stw UNBIASED: the first P is stopped before the second is asked.  The stopper
// still waits for the second.
TEST(an_early_one_does_not_report_the_end)
{
	hold_at(SCHED_PROC_STOP_ALL, &stopper, stop);
	move_on(SCHED_PROC_STOP_ALL, SCHED_PROC_STOP_ALL);
	proc_block(q);
	ck_assert_uint_eq(schedpoint_passed(SCHED_PROC_STOPPED), 1);
	ck_assert_uint_ne(awaited(), 0);
	move_on(SCHED_PROC_STOP_ALL, SCHED_NOTE_WAIT);
	ck_assert_uint_eq(awaited(), 1);
	proc_block(p);
	let_end(SCHED_NOTE_WAIT, &stopper);
}

// All Ps are stopped before the stopper has counted the Ps that ran: the
// stopper ends the wait itself.
TEST(a_stopper_that_counts_last_does_not_wait)
{
	hold_at(SCHED_PROC_STOP_ALL_ASKED, &stopper, stop);
	proc_block(p);
	proc_block(q);
	ck_assert_uint_ne(awaited(), 0);
	let_end(SCHED_PROC_STOP_ALL_ASKED, &stopper);
	ck_assert_uint_eq(awaited(), 0);
}

// ---- starting ----

// stw GATE_FIRST: no thread attaches before every P was started.
TEST(the_gate_opens_when_all_are_released)
{
	proc_block(p);
	proc_block(q);
	stop();
	hold_at(SCHED_PROC_START_ALL, &starter, start);
	hold_at(SCHED_PROC_UNBLOCK_STOP, &host, unblock);
	ck_assert(gate_closed());
	ck_assert(proc_wanted(p));
	move_on(SCHED_PROC_START_ALL, SCHED_PROC_START_ALL_GATE);
	proc_unblock(q); // at once: its bit is clear
	ck_assert(gate_closed());
	hold_at(SCHED_LOCK_OPEN_GATE, &newcomer, attach);
	let_end(SCHED_PROC_START_ALL_GATE, &starter);
	let_end(SCHED_LOCK_OPEN_GATE, &newcomer);
	let_end(SCHED_PROC_UNBLOCK_STOP, &host);
}

// stw SEMA_RUNNING: a thread that waits for its turn to stop the world counts
// as stopped for other stoppers.
TEST(a_stopper_waits_for_its_turn_as_blocked)
{
	proc_block(p);
	hold_at(SCHED_SEMA_TRY_ACQUIRE, &stopper, stop_as_q);
	hold_at(SCHED_NOTE_WAIT, &starter, stop);
	move_on(SCHED_SEMA_TRY_ACQUIRE, SCHED_SEMA_ACQUIRE);
	ck_assert_uint_eq(state(q), PROC_BLOCKED | PROC_STOP);
	let_end(SCHED_NOTE_WAIT, &starter);
	start();
	let_end(SCHED_SEMA_ACQUIRE, &stopper);
	ck_assert_uint_eq(state(q), PROC_RUNNING);
	ck_assert(q->stopper);
	stw_start(q, NULL);
	stw_release();
}

// stw NO_SEMA, SEMA_FIRST: the next stop begins when the world has started.
TEST(the_next_stop_waits_for_the_start)
{
	uint32_t gate;

	proc_block(p);
	proc_block(q);
	stop();
	gate = atomic_u32_load_acquire(&procs.gate);
	hold_at(SCHED_SEMA_ACQUIRE, &stopper, stop);
	hold_at(SCHED_PROC_START_ALL_GATE, &starter, start);
	schedpoint_release(SCHED_SEMA_ACQUIRE);
	ck_assert(stays(&procs.gate, gate));
	let_end(SCHED_PROC_START_ALL_GATE, &starter);
	hand_end(&stopper);
	ck_assert_uint_eq(atomic_u32_load_acquire(&procs.gate), gate + 2);
}

// ---- claims ----

static atomic_u32 claimed; // 1: claim_p had p

// claim_p claims p as the thread of q, and releases it.
static void claim_p(void)
{
	bool got = proc_claim(p);

	atomic_u32_store_relaxed(&claimed, got);
	if (got)
		proc_release(p);
}

// stw CLAIM_UNSEEN: the P stays BLOCKED until the claim is over.
TEST(a_thread_that_leaves_a_region_waits_for_a_claim)
{
	proc_block(p);
	hold_at(SCHED_PROC_CLAIM, &starter, claim_p);
	hold_at(SCHED_PROC_UNBLOCK_STOP, &host, unblock);
	move_on(SCHED_PROC_UNBLOCK_STOP, SCHED_MUTEX_SLEEP);
	schedpoint_release(SCHED_MUTEX_SLEEP);
	ck_assert_uint_eq(state(p), PROC_BLOCKED | PROC_CLAIMED);
	let_end(SCHED_PROC_CLAIM, &starter);
	hand_end(&host);
	ck_assert_uint_eq(state(p), PROC_RUNNING);
}

// stw CLAIM_RUNNING.
TEST(only_a_blocked_p_can_be_claimed)
{
	ck_assert(!proc_claim(p));
	ck_assert_uint_eq(state(p), PROC_RUNNING);
	proc_block(p);
	ck_assert(proc_claim(p));
	proc_release(p);
	ck_assert_uint_eq(state(p), PROC_BLOCKED);
	proc_unblock(p);
	proc_detach(p);
	ck_assert(!proc_claim(p));
	ck_assert_uint_eq(state(p), PROC_FREE);
}

// stw CLAIM_UNLOCKED: the record of a claimed P does not go to another thread.
TEST(a_thread_that_detaches_waits_for_a_claim)
{
	hold_at(SCHED_PROC_DETACH, &host, detach);
	hold_at(SCHED_PROC_CLAIM, &starter, claim_p);
	move_on(SCHED_PROC_DETACH, SCHED_MUTEX_SLEEP);
	ck_assert_uint_eq(state(p), PROC_BLOCKED | PROC_CLAIMED);
	schedpoint_release(SCHED_MUTEX_SLEEP);
	let_end(SCHED_PROC_CLAIM, &starter);
	hand_end(&host);
	ck_assert_uint_eq(state(p), PROC_FREE);
}

// stw CLAIM_BLOCKED: the claimer, which has q, does not count as stopped while
// it has a claim.
TEST(a_stop_waits_for_a_claimer)
{
	proc_block(p);
	hold_at(SCHED_PROC_CLAIM, &starter, claim_p);
	hold_at(SCHED_MUTEX_SLEEP, &stopper, stop);
	ck_assert(!gate_closed());
	let_end(SCHED_PROC_CLAIM, &starter);
	move_on(SCHED_MUTEX_SLEEP, SCHED_NOTE_WAIT);
	ck_assert_uint_eq(state(p), PROC_BLOCKED | PROC_STOP);
	ck_assert_uint_eq(awaited(), 1);
	proc_block(q);
	let_end(SCHED_NOTE_WAIT, &stopper);
	ck_assert(stw_stopped());
}

// A stop waits for a claimer.  The claimer can still claim a P that the stop
// has already asked.
TEST(a_p_that_a_stop_has_asked_can_be_claimed)
{
	proc_block(p);
	hold_at(SCHED_NOTE_WAIT, &stopper, stop);
	ck_assert_uint_eq(state(p), PROC_BLOCKED | PROC_STOP);
	claim_p();
	ck_assert_uint_eq(atomic_u32_load_relaxed(&claimed), 1);
	ck_assert_uint_eq(state(p), PROC_BLOCKED | PROC_STOP);
	proc_block(q);
	let_end(SCHED_NOTE_WAIT, &stopper);
	start();
	ck_assert_uint_eq(state(p), PROC_BLOCKED);
}

// ---- thread blocks ----

static struct rt_proc *mine; // of the host that attaches below

static void attach_host(void)
{
	if (attach_thread(0, 0, 0) == RT_OK)
		mine = proc_self();
}

static void attach_and_detach(void)
{
	attach_host();
	attach_undo();
}

GROUP(attaching);

// stw ATTACH_UNPOLLED: the stopper cannot leave a hint in a block that it does
// not know, so the newcomer looks at its state.
TEST(a_thread_that_attaches_unknown_to_a_stop_is_stopped)
{
	hold_at(SCHED_ATTACH_BLOCK, &host, attach_host);
	hold_at(SCHED_NOTE_WAIT, &stopper, stop);
	ck_assert_ptr_null(atomic_ptr_load_acquire(&proc_first()->thread));
	move_on(SCHED_ATTACH_BLOCK, SCHED_PROC_STOPPED);
	schedpoint_release(SCHED_PROC_STOPPED);
	let_end(SCHED_NOTE_WAIT, &stopper);
	ck_assert(stw_stopped());
	start();
	hand_end(&host);
	ck_assert_ptr_nonnull(mine);
}

// stw HINT_LATE: the hint is set with the STOP bit, and lowered before the bit
// is cleared.
TEST(a_hint_is_lowered_before_the_thread_may_go)
{
	const struct rt_thread *t;

	hold_at(SCHED_ATTACH_BLOCK_KNOWN, &host, attach_and_detach);
	hold_at(SCHED_NOTE_WAIT, &stopper, stop);
	t = atomic_ptr_load_acquire(&proc_first()->thread);
	ck_assert_uint_eq(__atomic_load_n(&t->pending, __ATOMIC_RELAXED), 1);
	move_on(SCHED_ATTACH_BLOCK_KNOWN, SCHED_PROC_STOPPED);
	schedpoint_release(SCHED_PROC_STOPPED);
	let_end(SCHED_NOTE_WAIT, &stopper);
	hold_at(SCHED_PROC_START_ALL, &starter, start);
	ck_assert_uint_eq(__atomic_load_n(&t->pending, __ATOMIC_RELAXED), 0);
	ck_assert(proc_wanted(proc_first()));
	let_end(SCHED_PROC_START_ALL, &starter);
	hand_end(&host);
}

// stw THREAD_UNLOCKED: a thread block stays while a stopper may write to it.
TEST(a_thread_block_outlasts_the_stopper_that_asks)
{
	const struct rt_proc *of;

	hold_at(SCHED_ATTACH_UNDO, &host, attach_and_detach);
	of = proc_first();
	hold_at(SCHED_PROC_STOP_ALL, &stopper, stop);
	move_on(SCHED_ATTACH_UNDO, SCHED_MUTEX_SLEEP);
	ck_assert_ptr_nonnull(atomic_ptr_load_acquire(&of->thread));
	move_on(SCHED_PROC_STOP_ALL, SCHED_NOTE_WAIT);
	move_on(SCHED_MUTEX_SLEEP, SCHED_PROC_STOPPED);
	ck_assert_ptr_null(atomic_ptr_load_acquire(&of->thread));
	schedpoint_release(SCHED_PROC_STOPPED);
	let_end(SCHED_NOTE_WAIT, &stopper);
	start();
	hand_end(&host);
	ck_assert(proc_is_free(of));
}

// ---- stretches that are not stopped ----

static atomic_u32 stops;

static void stop_and_start(void)
{
	stop();
	atomic_u32_add_seqcst(&stops, 1);
	start();
}

// stw STRETCH_POLLS, STRETCH_BLOCKS, STRETCH_FORGETS, LEAVE_UNPOLLED: the stop
// takes place in the outermost leave, not before, and not later.
TEST(a_stop_takes_place_at_the_end_of_a_stretch)
{
	const rt_thread *t;

	ck_assert_int_eq(rt_thread_attach(0), RT_OK);
	t = rt_thread_self();
	ck_assert_int_eq(rt_nogc_enter(), RT_OK);
	ck_assert_int_eq(rt_nogc_enter(), RT_OK);
	hold_at(SCHED_NOTE_WAIT, &stopper, stop_and_start);
	rt_poll();
	rt_safepoint();
	ck_assert_int_eq(rt_blocking_enter(), RT_ESTATE);
	ck_assert_int_eq(rt_nogc_leave(), RT_OK);
	ck_assert_uint_eq(state(t->p), PROC_RUNNING | PROC_STOP);
	ck_assert_uint_eq(__atomic_load_n(&t->pending, __ATOMIC_RELAXED), 1);
	ck_assert_uint_eq(awaited(), 1);
	schedpoint_release(SCHED_NOTE_WAIT);
	ck_assert_int_eq(rt_nogc_leave(), RT_OK);
	ck_assert_uint_eq(atomic_u32_load_acquire(&stops), 1);
	hand_end(&stopper);
	host_detach();
}

// A large object that is allocated in a no-GC stretch is cleared outside of
// blocking regions, because a stop could take place in one.
TEST(no_stop_takes_place_while_a_stretch_clears_an_object)
{
	enum { LARGE = 1 << 20 };
	char *obj;

	ck_assert_int_eq(rt_thread_attach(0), RT_OK);
	obj = rt_alloc(LARGE);
	ck_assert_ptr_nonnull(obj);
	memset(obj, 1, LARGE);
	ck_assert_int_eq(rt_free(obj), RT_OK);
	ck_assert_int_eq(rt_nogc_enter(), RT_OK);
	pass_at(SCHED_NOTE_WAIT, &stopper, stop_and_start);
	obj = rt_alloc(LARGE);
	ck_assert(obj && heap_is_zero(obj, LARGE));
	ck_assert_uint_eq(atomic_u32_load_acquire(&stops), 0);
	ck_assert_int_eq(rt_nogc_leave(), RT_OK);
	ck_assert_uint_eq(atomic_u32_load_acquire(&stops), 1);
	hand_end(&stopper);
	host_detach();
}

// ---- lists ----

static void *listed[10]; // a root

static void begin_listed(void)
{
	rt_config c = heap_config(HEAP_QUIET);

	c.clobberfree = 1;
	heap_start_exact(c);
	must(rt_roots_add(listed, listed + 10, RT_ROOT_EXACT));
	for (unsigned i = 0; i < 10; i++) {
		listed[i] = rt_alloc(64);
		ck_assert_ptr_nonnull(listed[i]);
	}
}

// pick_all picks every object.  Its first call makes the next thread that asks
// others to stop wait.
static int pick_all(const void *obj, size_t size, void *arg)
{
	(void)obj, (void)size;
	if (!*(bool *)arg)
		schedpoint_hold(SCHED_PROC_STOP_ALL);
	*(bool *)arg = true;
	return 1;
}

static void lists(void)
{
	bool asked = false;
	void **list;
	size_t n;

	host_attach();
	list = rt_heap_list(RT_WORDS, pick_all, &asked, &n);
	ck_assert(rt_is_heap(list));
	ck_assert_uint_eq(n, 10);
	for (unsigned i = 0; i < n; i++)
		ck_assert(rt_is_heap(list[i]) && list[i] != list);
	host_detach();
}

GROUP(lists, .setup = begin_listed, .timeout = 2 * AWAIT_SECONDS);

// A thread with exact roots has counted the objects for a list, and makes an
// array for them.  Before it stops the world again to fill it, the heap is
// collected.
TEST(a_collection_keeps_the_array_of_a_list)
{
	host_block();
	stw_acquire(NULL);
	hold_at(SCHED_SEMA_ACQUIRE, &host, lists);
	hold_at(SCHED_SEMA_ACQUIRE, &starter, host_collect);
	schedpoint_hold(SCHED_SEMA_ACQUIRE);
	stw_release();
	await_held(SCHED_PROC_STOP_ALL);
	await_held(SCHED_SEMA_ACQUIRE);
	schedpoint_release(SCHED_PROC_STOP_ALL);
	let_end(SCHED_SEMA_ACQUIRE, &host);
	hand_end(&starter);
	host_unblock();
	heap_healthy();
}
