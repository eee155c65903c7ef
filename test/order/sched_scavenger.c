// The scavenger meets stops, collections, forks and the end of the heap.
#define RT_NO_INLINE_ALLOC
#include <rt/rt.h>

#include "gc/cycle/scavenger.h"
#include "test/harness/heap.h"
#include "test/harness/process.h"
#include "test/order/host.h"

enum { OBJECT = 8192, OBJECTS = 2048 }; // 16 MiB

static struct hand maker, other;
static void *objects[OBJECTS];

static void begin(void)
{
	rt_config c = heap_config(HEAP_QUIET);

	c.no_attach = 1;
	c.max_procs = 1; // no helper
	c.scavenge = 1;
	heap_start(c);
	host_attach();
	must(rt_roots_add(objects, objects + OBJECTS, RT_ROOT_EXACT));
}

static bool make_garbage(void)
{
	for (size_t i = 0; i < OBJECTS; i++)
		if (!(objects[i] = rt_alloc_noscan(OBJECT)))
			return false;
	memset(objects, 0, sizeof objects);
	return rt_gc() == RT_OK;
}

static bool runs(void)
{
	return atomic_u32_load_acquire(&scavenger.runs) != 0;
}

// make is for a hand: a collection that leaves free pages, though not more than
// the goal.
static void make(void)
{
	host_attach();
	ck_assert(make_garbage());
	host_detach();
}

static void verify(void)
{
	host_attach();
	heap_healthy();
	host_detach();
}

static void expect(bool ok)
{
	if (!ok)
		_exit(EXIT_FAILURE);
}

static void works_alone(void)
{
	struct rt_verify v;

	expect(!runs());
	expect(rt_thread_attach(RT_THREAD_EXACT) == RT_OK);
	expect(rt_heap_verify(&v) == RT_OK && v.errors == 0);
	// The sanitizers can make no thread in a child.
	if (!RT_TSAN && !RT_ASAN) {
		expect(make_garbage());
		expect(runs());
		expect(rt_gc() == RT_OK);
	}
	expect(rt_heap_verify(&v) == RT_OK && v.errors == 0);
	expect(rt_fini() == RT_OK);
}

static void fork_and_wait(void)
{
	if (process_forked()) {
		works_alone();
		process_end(true);
	}
}

static void await_released(void)
{
	uint64_t end = nanotime() + AWAIT_SECONDS * UINT64_C(1000000000);
	rt_memstats m;

	do {
		ck_assert_msg(nanotime() < end, "nothing was released");
		oscall_yield();
		must(rt_read_memstats_live(&m));
	} while (m.heap_idle - m.heap_released >= 1 << 20);
}

GROUP(scavenger, .setup = begin, .timeout = 2 * AWAIT_SECONDS);

static const enum schedpoint making[] = {SCHED_SCAVENGER_MAKE,
					 SCHED_SCAVENGER_MAIN};

// The thread that makes the scavenger, or the scavenger, is lost on the way.
TEST(a_fork_while_it_is_made, .n = RT_ARRAY_LEN(making))
{
	host_block();
	hold_at(making[_i], &maker, make);
	hand_run(&other, fork_and_wait);
	let_end(making[_i], &maker);
	ck_assert(runs());
	host_unblock();
}

// begin_turn makes it work as far as the end of its first turn, in which it
// finds nothing to do but to set its timer.  The caller is blocked then.
static void begin_turn(void)
{
	host_block();
	schedpoint_hold(SCHED_SCAVENGER_TAKE_TURN);
	hand_run(&maker, make);
	await_held(SCHED_SCAVENGER_TAKE_TURN);
}

// begin_step makes it work until it has pages in its hands.
static void begin_step(void)
{
	host_block();
	hand_run(&maker, make);
	schedpoint_hold(SCHED_SCAVENGE_STEP);
	// Nothing was in use, so all that is free is too much.
	hand_run(&maker, host_collect);
	await_held(SCHED_SCAVENGE_STEP);
}

// begin_pause makes it work until it is about to sleep between two batches.
static void begin_pause(void)
{
	begin_step();
	move_on(SCHED_SCAVENGE_STEP, SCHED_NOTE_WAIT);
}

static const struct {
	void (*begin)(void);
	enum schedpoint at;
} running[] = {
    {begin_turn, SCHED_SCAVENGER_TAKE_TURN},
    {begin_step, SCHED_SCAVENGE_STEP},
};

static void (*const meets[])(void) = {verify, fork_and_wait};

// A stop waits until the pages in its hands are free: no verification, exact
// read or fork meets them.
TEST(a_stop_waits_for_a_turn, .n = 2 * 2)
{
	running[_i % 2].begin();
	hold_at(SCHED_NOTE_WAIT, &other, meets[_i / 2]);
	schedpoint_release(running[_i % 2].at);
	let_end(SCHED_NOTE_WAIT, &other);
	host_unblock();
	heap_healthy();
	must(rt_fini());
}

// No stop waits for its sleep.
TEST(no_stop_waits_for_a_pause, .n = 2)
{
	begin_pause();
	hand_run(&other, meets[_i]);
	schedpoint_release(SCHED_NOTE_WAIT);
	host_unblock();
	heap_healthy();
	must(rt_fini());
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

// Pages that it has not released yet are released in the pauses of a program
// that goes on.
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
};

TEST(the_end_of_the_heap_waits_for_its_end, .n = RT_ARRAY_LEN(working))
{
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
