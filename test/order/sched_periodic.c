// A collection of the background thread meets collections, stops, forks and the
// end of the heap.
#define RT_NO_INLINE_ALLOC
#include <rt/rt.h>

#include "test/harness/fault.h"
#include "test/order/libthread.h"

enum { PERIOD_S = UINT8_MAX }; // a test should take less than a tenth of it

static struct hand other, third;

static void begin(void)
{
	rt_config c = heap_config(100);

	c.max_procs = 1; // no helper
	c.heap_min = 64 << 20;
	c.gc_period_s = PERIOD_S;
	begin_as(c);
}

static bool make_thread(void)
{
	return make_objects() && runs();
}

// cause_of returns why the collection with a number ran, or -1 if there was
// none.
static int cause_of(uint64_t number)
{
	rt_cycle c;

	return rt_read_cycle(number, &c) == RT_OK ? (int)c.cause : -1;
}

static void await_sleep(void)
{
	await_that(it_sleeps, "it does not sleep");
}

static void pass_period(void)
{
	fault_advance_clock(PERIOD_S * UINT64_C(1000000000));
	note_wake(&scavenger.call);
}

// hold makes a collection due, and holds the background thread at a point.
// The caller is blocked then.
static void hold(enum schedpoint at)
{
	ck_assert(make_thread());
	host_block();
	await_sleep();
	schedpoint_hold(at);
	pass_period();
	await_held(at);
}

GROUP(periodic, .setup = begin, .timeout = 2 * AWAIT_SECONDS);

// ask UNASKED_BESIDE: the host's thread leads already, so one collection is
// enough.
TEST(a_thread_that_asked_before_collects_alone)
{
	hold(SCHED_PERIODIC_COLLECT);
	// The other hand has asked, and waits for the background thread to
	// stop.
	hold_at(SCHED_NOTE_WAIT, &other, host_collect);
	schedpoint_release(SCHED_PERIODIC_COLLECT);
	let_end(SCHED_NOTE_WAIT, &other);
	await_sleep();
	ck_assert_int_eq(cause_of(1), RT_CAUSE_FORCED);
	ck_assert_int_eq(cause_of(2), -1);
	host_end();
}

// ask UNASKED_DROPS, UNASKED_TAKES: the background thread leads, but answers no
// ask.  A thread that asks meanwhile leads next.
TEST(a_thread_that_asks_meanwhile_leads_next)
{
	hold(SCHED_PERIODIC_BEGIN);
	pass_at(SCHED_ASK_WAIT, &other, host_collect);
	let_end(SCHED_PERIODIC_BEGIN, &other);
	ck_assert_int_eq(cause_of(1), RT_CAUSE_PERIODIC);
	ck_assert_int_eq(cause_of(2), RT_CAUSE_FORCED);
	ck_assert_int_eq(cause_of(3), -1);
	host_end();
}

static const enum schedpoint inside[] = {
    SCHED_CYCLE_FLIP,
    SCHED_CYCLE_END,
    SCHED_CYCLERECORD_PUBLISH,
};

TEST(a_thread_that_asks_during_the_collection_leads_next,
     .n = RT_ARRAY_LEN(inside))
{
	hold(inside[_i]);
	// In the stop a thread cannot even attach.
	pass_at(inside[_i] == SCHED_CYCLE_FLIP ? SCHED_LOCK_OPEN_GATE
					       : SCHED_ASK_WAIT,
		&other, host_collect);
	let_end(inside[_i], &other);
	ck_assert_int_eq(cause_of(1), RT_CAUSE_PERIODIC);
	ck_assert_int_eq(cause_of(2), RT_CAUSE_FORCED);
	host_end();
}

// ask UNASKED_WAITS, UNASKED_KEEPS, UNASKED_GIVES_UP: if another thread has the
// right to stop the world, the background thread does not wait for that right.
// It passes the lead to a thread that has asked meanwhile.
TEST(it_gives_up_the_lead)
{
	hold(SCHED_PERIODIC_BEGIN);
	stw_acquire(NULL);
	pass_at(SCHED_ASK_WAIT, &other, host_collect);
	move_on(SCHED_PERIODIC_BEGIN, SCHED_SEMA_ACQUIRE); // other leads
	await_sleep();
	ck_assert_int_eq(cause_of(1), -1);
	schedpoint_release(SCHED_SEMA_ACQUIRE);
	stw_release();
	hand_end(&other);
	ck_assert_int_eq(cause_of(1), RT_CAUSE_FORCED);
	ck_assert_int_eq(cause_of(2), -1);
	host_end();
}

static uint64_t awaited; // number of a collection

static bool awaited_ran(void)
{
	return cause_of(awaited) >= 0;
}

static bool await_cycle(uint64_t number)
{
	awaited = number;
	if (rt_blocking_enter() != RT_OK)
		return false;
	await_that(awaited_ran, "it does not collect");
	return rt_blocking_leave() == RT_OK;
}

// The child makes a background thread of its own when its heap grows.
static bool use_in_child(void)
{
	rt_cycle c;

	if (rt_gc() != RT_OK || !make_thread() || rt_read_cycle(0, &c) != RT_OK)
		return false;
	await_sleep();
	pass_period();
	return await_cycle(c.number + 1) &&
	       cause_of(c.number + 1) == RT_CAUSE_PERIODIC;
}

static void fork_and_wait(void)
{
	if (process_forked())
		process_end(works_alone(use_in_child));
}

static void (*const meets[])(void) = {host_verify, fork_and_wait};

// A stop or a fork comes before the collection or after it.  If it comes
// before, the collection is tried again later.  No thread waits for another for
// ever.
static const enum schedpoint places[] = {
    SCHED_PERIODIC_COLLECT,
    SCHED_PERIODIC_BEGIN,
    SCHED_CYCLE_END,
    SCHED_CYCLERECORD_PUBLISH,
};

TEST(stops_and_forks_come_before_or_after, .n = 4 * 2)
{
	enum schedpoint at = places[_i % 4];
	bool in_collection = _i % 4 >= 2;

	hold(at);
	if (in_collection)
		hold_at(SCHED_SEMA_ACQUIRE, &other, meets[_i / 4]);
	else
		hold_at(SCHED_NOTE_WAIT, &other, meets[_i / 4]);
	schedpoint_release(at);
	let_end(in_collection ? SCHED_SEMA_ACQUIRE : SCHED_NOTE_WAIT, &other);
	await_sleep();
	ck_assert_int_eq(cause_of(1),
			 in_collection ? (int)RT_CAUSE_PERIODIC : -1);
	host_end();
}

static enum schedpoint held_at;

static void release_when_it_must_end(void)
{
	await_at_least(&scavenger.quit, 1);
	schedpoint_release(held_at);
}

// rt_fini waits for the end of the thread, but not for a collection that the
// thread has not begun.
TEST(the_end_of_the_heap_waits_for_the_thread, .n = 2)
{
	uint64_t flips;

	held_at = _i == 0 ? SCHED_PERIODIC_COLLECT : SCHED_PERIODIC_BEGIN;
	hold(held_at);
	flips = schedpoint_passed(SCHED_CYCLE_FLIP);
	host_unblock();
	hand_start(&other, release_when_it_must_end);
	must(rt_fini());
	hand_end(&other);
	ck_assert_uint_eq(schedpoint_passed(SCHED_CYCLE_FLIP), flips);
	ck_assert(!runs());
	begin();
	heap_healthy();
	must(rt_fini());
}

static void release_when_another_waits(void)
{
	await_held(SCHED_SEMA_ACQUIRE);
	schedpoint_release(held_at);
	schedpoint_release(SCHED_SEMA_ACQUIRE);
}

TEST(the_end_of_the_heap_waits_for_the_collection, .n = 2)
{
	held_at = _i == 0 ? SCHED_CYCLE_END : SCHED_CYCLERECORD_PUBLISH;
	hold(held_at);
	host_unblock();
	schedpoint_hold(SCHED_SEMA_ACQUIRE);
	hand_start(&other, release_when_another_waits);
	must(rt_fini());
	hand_end(&other);
	ck_assert(!runs());
	begin();
	heap_healthy();
	must(rt_fini());
}

static atomic_u32 in_stretch, leave;

static void stretch(void)
{
	host_attach();
	must(rt_nogc_enter());
	atomic_u32_store_release(&in_stretch, 1);
	while (atomic_u32_load_acquire(&leave) == 0)
		oscall_yield(); // the clock jumps meanwhile
	must(rt_nogc_leave());
	host_detach();
}

// The collection waits for the end of a no-GC stretch.
TEST(it_waits_for_a_no_gc_stretch)
{
	ck_assert(make_thread());
	host_block();
	await_sleep();
	hand_start(&third, stretch);
	await_at_least(&in_stretch, 1);
	schedpoint_hold(SCHED_PROC_STOP_ALL_ASKED);
	pass_period();
	await_held(SCHED_PROC_STOP_ALL_ASKED);
	ck_assert_int_eq(cause_of(1), -1);
	schedpoint_release(SCHED_PROC_STOP_ALL_ASKED);
	atomic_u32_store_release(&leave, 1);
	hand_end(&third);
	await_sleep();
	ck_assert_int_eq(cause_of(1), RT_CAUSE_PERIODIC);
	host_end();
}

// While the host has the world stopped, the background thread does not run.  It
// collects afterwards.
TEST(a_stopped_world_delays_it)
{
	ck_assert(make_thread());
	host_block();
	await_sleep();
	host_unblock();
	must(rt_stop_the_world(RT_STOP_HOST));
	schedpoint_hold(SCHED_PROC_UNBLOCK_STOP);
	pass_period();
	await_held(SCHED_PROC_UNBLOCK_STOP);
	ck_assert_int_eq(cause_of(1), -1);
	schedpoint_release(SCHED_PROC_UNBLOCK_STOP);
	must(rt_start_the_world(NULL));
	ck_assert(await_cycle(1));
	ck_assert_int_eq(cause_of(1), RT_CAUSE_PERIODIC);
	host_block();
	host_end();
}
