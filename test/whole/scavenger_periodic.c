// Periodic collections (rt_config.gc_period_s): if a program has not collected
// for a period, the library's background thread collects.
//
// In most tests time passes only by fault_advance_clock.  Their periods are so
// long that the true time of a test does not matter.
#define RT_NO_INLINE_ALLOC
#include "test/whole/scavenger.h"

#include <errno.h>

#include "runtime/os/nanotime.h"
#include "runtime/os/settings.h"
#include "runtime/world/stw.h"
#include "gc/cycle/pacer.h"
#include "gc/cycle/ask.h"
#include "gc/cycle/scavturn.h"
#include "gc/cycle/swept.h"
#include "test/harness/await.h"
#include "test/harness/kind.h"
#include "test/harness/schedpoint.h"
#include "test/harness/thread.h"

enum { PERIOD_S = 120, HALF_S = 60, THIRD_S = 40 };

// config describes a heap that does not collect by itself.
static rt_config config(void)
{
	rt_config c = heap_config(100);

	c.max_procs = 1; // no helper
	c.heap_min = 256 << 20;
	c.gc_period_s = PERIOD_S;
	return c;
}

static bool runs(void)
{
	return atomic_u32_load_relaxed(&scavenger.runs) != 0;
}

// newest returns the record of the last collection; its number is 0 if there
// was none.
static rt_cycle newest(void)
{
	rt_cycle c = {.number = 0};

	rt_read_cycle(0, &c);
	return c;
}

// ---- when it is due ----

static struct periodic periodic;
static const atomic_u32 never;

static void begin_alone(void)
{
	rt_config c = config();

	c.gc_threads = 1;
	begin_as(c);
	// The test acts for the background thread, so nothing may make one.
	ck_assert(scavenger_claim());
	periodic = (struct periodic){.since = 0};
}

static uint64_t left_at(uint64_t now)
{
	return periodic_left(&periodic, now);
}

GROUP(due, .setup = begin_alone);

TEST(time_counts_from_the_beginning)
{
	ck_assert_uint_eq(left_at(SECOND), PERIOD_S * SECOND);
	ck_assert_uint_eq(left_at(PERIOD_S * SECOND), SECOND);
	ck_assert_uint_eq(left_at((1 + PERIOD_S) * SECOND - 1), 1);
	ck_assert_uint_eq(left_at((1 + PERIOD_S) * SECOND), 0);
	ck_assert_uint_eq(left_at((2 + PERIOD_S) * SECOND), 0);
}

TEST(time_counts_from_the_last_collection)
{
	uint64_t ended;

	ck_assert_uint_eq(left_at(SECOND), PERIOD_S * SECOND);
	must(rt_gc());
	ended = atomic_u64_load_relaxed(&scavgoal.ended);
	ck_assert_uint_ne(ended, 0);
	ck_assert_uint_eq(left_at(ended + 5 * SECOND), (PERIOD_S - 5) * SECOND);
	ck_assert_uint_eq(left_at(ended + PERIOD_S * SECOND), 0);
}

// A background thread that is made after a collection counts from that
// collection.
TEST(time_counts_from_a_collection_before)
{
	uint64_t ended;

	must(rt_gc());
	ended = atomic_u64_load_relaxed(&scavgoal.ended);
	ck_assert_uint_eq(left_at(ended + SECOND), (PERIOD_S - 1) * SECOND);
}

TEST(a_refused_clock_makes_nothing_due)
{
	ck_assert_uint_eq(left_at(0), PERIOD_S * SECOND);
	ck_assert_uint_eq(left_at(1000 * SECOND), PERIOD_S * SECOND);
	ck_assert_uint_eq(left_at(0), PERIOD_S * SECOND);
	// The time that was known before the refusal counts.
	ck_assert_uint_eq(left_at((1000 + PERIOD_S) * SECOND), 0);
}

// A collection whose clock was refused has no known time.  The period begins
// when the clock is next read.
TEST(a_collection_without_a_clock_counts)
{
	ck_assert_uint_eq(left_at(SECOND), PERIOD_S * SECOND);
	fault_fail(OSCALL_CLOCK, 1, UINT64_MAX, EPERM);
	must(rt_gc());
	fault_fail(OSCALL_CLOCK, 1, 0, 0);
	ck_assert_uint_eq(left_at(PERIOD_S * SECOND), PERIOD_S * SECOND);
}

static void no_period(void)
{
	settings_present.gc_period_s = 0;
}

static void no_threads(void)
{
	settings_present.gc_threads = 0;
}

static void no_percent(void)
{
	must(rt_set_gc_percent(-1, NULL));
}

static void (*const prohibitions[])(void) = {no_period, no_threads, no_percent};

TEST(it_is_never_due_where_it_is_off, .n = RT_ARRAY_LEN(prohibitions))
{
	ck_assert_uint_eq(left_at(SECOND), PERIOD_S * SECOND);
	ck_assert(periodic_wanted());
	prohibitions[_i]();
	ck_assert(!periodic_wanted());
	ck_assert_uint_eq(left_at(1000 * SECOND), UINT64_MAX);
}

// ---- what it does ----

static void sweep_rest(void)
{
	while (!swept_over())
		if (!swept_slice(proc_self()))
			oscall_yield(); // another thread is in the last chunk
}

// collect does what the background thread does: it sweeps, collects and sweeps.
static bool collect(void)
{
	bool collected;

	fault_advance_clock(PERIOD_S * SECOND);
	sweep_rest();
	collected = periodic_collect(&periodic, proc_self(), &never);
	sweep_rest();
	return collected;
}

static void begin_due(void)
{
	begin_alone();
	left_at(nanotime());
}

GROUP(collection, .setup = begin_due);

TEST(it_frees_what_was_dropped)
{
	rt_cycle c;

	fill(8);
	ck_assert(!periodic_collect(&periodic, proc_self(), &never));
	drop(1);
	ck_assert(collect());
	c = newest();
	ck_assert_uint_eq(c.number, 1);
	ck_assert_uint_eq(c.cause, RT_CAUSE_PERIODIC);
	ck_assert_uint_eq(c.forced, 0);
	ck_assert_uint_le(c.heap_live, 2 * MIB);
	ck_assert_uint_eq(heap_stats().num_gc, 1);
	ck_assert_uint_eq(heap_stats().num_forced_gc, 0);
	ck_assert(!periodic_collect(&periodic, proc_self(), &never));
	heap_healthy();
}

// Nothing was allocated since the last collection, but a program may have
// dropped objects.
TEST(it_collects_again_after_each_period)
{
	for (unsigned i = 1; i <= 3; i++) {
		ck_assert(collect());
		ck_assert_uint_eq(newest().number, i);
	}
}

TEST(other_collections_count)
{
	fault_advance_clock(PERIOD_S * SECOND);
	must(rt_gc());
	ck_assert(!periodic_collect(&periodic, proc_self(), &never));
	ck_assert_uint_eq(newest().number, 1);
}

// The goal falls as after a collection that the heap chose, not at once as
// after rt_gc.
TEST(the_goal_falls_in_steps)
{
	uint64_t before, formula;

	must(rt_set_heap_min(4 * MIB, NULL));
	must(rt_set_gc_percent(1000, NULL));
	fill(64);
	must(rt_gc());
	before = atomic_u64_load_relaxed(&pacer.goal);
	drop(1);
	ck_assert(collect());
	formula = pacer_goal(&pacer.rule, &pacer.found);
	ck_assert_uint_gt(atomic_u64_load_relaxed(&pacer.goal), formula);
	ck_assert_uint_lt(atomic_u64_load_relaxed(&pacer.goal), before);
	must(rt_gc());
	ck_assert_uint_le(atomic_u64_load_relaxed(&pacer.goal), formula);
}

// A periodic collection does not wait for a thread that collects or stops the
// world.  It is tried again a tenth of the period later.
TEST(it_does_not_wait_for_others, .n = 2)
{
	uint64_t left;

	if (_i == 0)
		ck_assert(ask_lead());
	else
		stw_acquire(proc_self());
	ck_assert(!collect());
	if (_i == 0) {
		ask_pass();
	} else {
		ck_assert(ask_lead()); // the try has passed the lead on
		ask_pass();
		stw_release();
	}
	left = left_at(nanotime());
	ck_assert_uint_gt(left, 0);
	ck_assert_uint_le(left, PERIOD_S / 10 * SECOND);
	ck_assert(!periodic_collect(&periodic, proc_self(), &never));
	fault_advance_clock(PERIOD_S / 10 * SECOND);
	ck_assert(periodic_collect(&periodic, proc_self(), &never));
	ck_assert_uint_eq(newest().number, 1);
}

// ---- what is told of it ----

static unsigned dropped, told, warned;

static void drop_one(void *obj, size_t size, void *arg)
{
	(void)obj, (void)size, (void)arg;
	dropped++;
}

static void note_ready(size_t n, void *arg)
{
	(void)n, (void)arg;
	told++;
}

static void note_warning(const char *text, void *arg)
{
	(void)text, (void)arg;
	warned++;
}

// make_dead drops objects that have destructors.
static void make_dead(unsigned n)
{
	int kind = kind_make(.layout = RT_LAYOUT_NONE, .flags = RT_KIND_DROP,
			     .drop = drop_one);

	for (unsigned i = 0; i < n; i++)
		ck_assert_ptr_nonnull(rt_alloc_of(kind, 1 << 20));
}

TEST(a_thread_of_the_host_is_told_of_the_dead)
{
	must(rt_set_finalize_mode(RT_FINALIZE_MANUAL, note_ready, NULL));
	make_dead(1);
	ck_assert(collect());
	ck_assert_uint_eq(told, 0);
	ck_assert_uint_eq(rt_finalizers_ready(), 1);
	fill(1);
	ck_assert_uint_eq(told, 1);
	ck_assert_uint_eq(dropped, 0);
	ck_assert_uint_eq(rt_run_finalizers(0), 1);
	ck_assert_uint_eq(dropped, 1);
	fill(2);
	ck_assert_uint_eq(told, 1);
}

TEST(a_poll_of_the_host_runs_destructors)
{
	must(rt_set_finalize_mode(RT_FINALIZE_POLL, NULL, NULL));
	make_dead(3);
	ck_assert(collect());
	ck_assert_uint_eq(dropped, 0);
	rt_safepoint();
	ck_assert_uint_eq(dropped, 3);
}

// Objects that died before the last collection wait for their destructors.
// They take more than half as much memory as all that is alive.
TEST(a_thread_of_the_host_warns_of_the_dead)
{
	must(rt_set_warn_handler(note_warning, NULL));
	settings_present.heap_min = 4 * MIB;
	make_dead(3);
	ck_assert(collect());
	ck_assert(collect());
	ck_assert_uint_eq(warned, 0);
	fill(1);
	ck_assert_uint_eq(warned, 1);
	must(rt_set_warn_handler(NULL, NULL));
}

// ---- beside the scavenger's turns ----

static struct scavturn turn;

static struct scavturn_next take_all(uint64_t now)
{
	struct scavturn_next next;

	while ((next = scavturn_run(&turn, proc_self(), now)).sleep ==
	       SCAVTURN_PAUSE)
		scavturn_slept(&turn, SECOND, SECOND + next.ns);
	return next;
}

static uint64_t free_bytes(void)
{
	rt_memstats m = heap_stats();

	return m.heap_idle - m.heap_released;
}

// An idle program stays idle, and what a periodic collection has freed is
// released at once, even above the place that the pass of the idle program has
// reached.
TEST(an_idle_program_stays_idle)
{
	uint64_t now;

	fill(32);
	memset(objects, 0, 16 * PER_MIB * sizeof *objects);
	must(rt_gc());
	now = nanotime();
	scavturn_init(&turn, 1, now);
	take_all(now);
	take_all(now + 5 * SECOND);
	ck_assert(turn.idle);
	ck_assert_uint_lt(free_bytes(), MIB);
	drop(20);
	ck_assert(collect());
	ck_assert_uint_gt(free_bytes(), 8 * MIB);
	scavturn_collected(&turn);
	take_all(now + PERIOD_S * SECOND);
	ck_assert(turn.idle);
	ck_assert_uint_lt(free_bytes(), MIB);
	// A collection of the program is activity.
	must(rt_gc());
	take_all(now + PERIOD_S * SECOND);
	ck_assert(!turn.idle);
}

// A periodic collection does not restart the idle time either.
TEST(the_idle_time_goes_on)
{
	uint64_t now, since;

	settings_present.idle_s = 200;
	fill(64);
	drop(56);
	must(rt_gc());
	now = nanotime();
	scavturn_init(&turn, 1, now);
	take_all(now);
	since = turn.since;
	ck_assert(collect());
	scavturn_collected(&turn);
	ck_assert_int_eq(take_all(now + PERIOD_S * SECOND).sleep,
			 SCAVTURN_TIMER);
	ck_assert_uint_eq(turn.since, since);
	take_all(since + 200 * SECOND);
	ck_assert(turn.idle);
	ck_assert_uint_lt(free_bytes(), MIB);
}

// ---- when the thread is made ----

GROUP(growth, .timeout = 2 * AWAIT_SECONDS);

TEST(a_heap_that_grows_makes_the_thread)
{
	begin_as(config());
	fill(3);
	ck_assert(!runs());
	fill(9);
	ck_assert(runs());
	ck_assert_uint_eq(newest().number, 0);
	fill(16);
	ck_assert_uint_eq(atomic_u64_load_relaxed(&scavenger.grown_at),
			  UINT64_MAX);
	must(rt_fini());
	ck_assert(!runs());
}

// A large object may be the first that a program allocates, or may follow small
// objects at which growth was already checked.
TEST(a_large_object_makes_the_thread, .n = 2)
{
	begin_as(config());
	fill((size_t)_i);
	ck_assert(!runs());
	objects[0] = rt_alloc_noscan(32 << 20);
	ck_assert_ptr_nonnull(objects[0]);
	ck_assert(runs());
	must(rt_fini());
}

TEST(without_periods_growth_makes_no_thread, .n = 3)
{
	rt_config c = config();

	if (_i == 0)
		c.gc_period_s = 0;
	else if (_i == 1)
		c.gc_threads = 0;
	else
		c.gc_percent = -1;
	begin_as(c);
	fill(32);
	ck_assert(!runs());
	// A new percentage takes effect at once.
	must(rt_set_gc_percent(100, NULL));
	ck_assert_ptr_nonnull(rt_alloc_noscan(OBJECT));
	ck_assert_int_eq(runs(), _i == 2);
	must(rt_fini());
}

TEST(a_refused_thread_is_tried_again_when_the_heap_grows)
{
	begin_as(config());
	fault_fail(OSCALL_THREAD, 1, 1, EAGAIN);
	fill(6);
	ck_assert_uint_eq(fault_failed(OSCALL_THREAD), 1);
	ck_assert(!runs());
	fill(16);
	ck_assert(runs());
	ck_assert_uint_eq(fault_count(OSCALL_THREAD), 2);
	must(rt_fini());
}

static void *grow(void *arg)
{
	must(rt_thread_attach(RT_THREAD_EXACT));
	must(rt_nogc_enter());
	fill(16);
	ck_assert(!runs());
	must(rt_nogc_leave());
	fill(20);
	ck_assert(runs());
	must(rt_thread_detach());
	return arg;
}

TEST(a_no_gc_stretch_makes_no_thread)
{
	begin_as(config());
	run_beside(grow, NULL);
	must(rt_fini());
}

// ---- the thread ----

static uint64_t turns(void)
{
	return schedpoint_passed(SCHED_SCAVENGER_TAKE_TURN);
}

// await_turns waits until the thread has taken n turns and sleeps.
static void await_turns(uint64_t n)
{
	enum { SLEPT = 2 }; // NOTE_SLEPT of runtime/os/lock.c
	uint64_t end = nanotime() + AWAIT_SECONDS * SECOND;

	while (turns() < n ||
	       atomic_u32_load_acquire(&scavenger.call.woken) != SLEPT) {
		ck_assert_msg(nanotime() < end, "%d turns", (int)turns());
		oscall_yield();
	}
}

// pass moves the clock on by so many seconds, and makes the background thread
// read it.  The caller must be blocked.
static void pass(uint64_t seconds)
{
	uint64_t before = turns();

	fault_advance_clock(seconds * SECOND);
	note_wake(&scavenger.call);
	await_turns(before + 1);
}

// begin_thread makes the background thread, and enters a blocking region.
static void begin_thread(rt_config c)
{
	schedpoint_watch();
	begin_as(c);
	fill(9);
	ck_assert(runs());
	must(rt_blocking_enter());
	await_turns(1);
}

static void end_thread(void)
{
	must(rt_blocking_leave());
	heap_healthy();
	must(rt_fini());
}

GROUP(idle, .timeout = 2 * AWAIT_SECONDS);

// All threads of the program are in blocking regions.
TEST(an_idle_program_is_collected_in_each_period)
{
	begin_thread(config());
	drop(2);
	for (unsigned i = 0; i < 3; i++) {
		pass(HALF_S);
		ck_assert_uint_eq(newest().number, i);
		pass(HALF_S);
		ck_assert_uint_eq(newest().number, i + 1);
		ck_assert_uint_eq(newest().cause, RT_CAUSE_PERIODIC);
		ck_assert_uint_le(newest().heap_live, 3 * MIB);
	}
	end_thread();
}

// Only its own timer wakes the background thread.
TEST(the_thread_wakes_by_itself)
{
	uint64_t end = nanotime() + AWAIT_SECONDS * SECOND;
	rt_config c = config();

	c.gc_period_s = 1;
	begin_thread(c);
	while (newest().number < 2) {
		ck_assert_msg(nanotime() < end, "it does not collect");
		sleep_ns(AWAIT_STANDSTILL_NS);
	}
	end_thread();
}

TEST(a_program_that_collects_is_left_alone)
{
	begin_thread(config());
	for (unsigned i = 1; i <= 3; i++) {
		pass(THIRD_S);
		must(rt_blocking_leave());
		must(rt_gc());
		must(rt_blocking_enter());
		pass(THIRD_S);
		ck_assert_uint_eq(newest().number, i);
		ck_assert_uint_eq(newest().cause, RT_CAUSE_FORCED);
	}
	end_thread();
}

TEST(a_percentage_below_zero_ends_them)
{
	uint64_t before;

	begin_thread(config());
	must(rt_blocking_leave());
	must(rt_set_gc_percent(-1, NULL));
	must(rt_blocking_enter());
	pass(3 * PERIOD_S);
	ck_assert_uint_eq(newest().number, 0);
	must(rt_blocking_leave());
	before = turns();
	must(rt_set_gc_percent(100, NULL)); // wakes the thread
	must(rt_blocking_enter());
	await_turns(before + 1);
	ck_assert_uint_eq(newest().number, 1);
	end_thread();
}

// If scavenging is off, the background thread is made for periodic collections
// alone, and releases nothing.
TEST(without_scavenging_nothing_is_released)
{
	rt_config c = config();
	uint64_t released;

	c.scavenge = 0;
	begin_thread(c);
	drop(0);
	must(rt_blocking_leave());
	released = heap_stats().heap_released;
	must(rt_blocking_enter());
	pass(PERIOD_S);
	ck_assert_uint_eq(newest().number, 1);
	ck_assert_uint_eq(newest().heap_released, released);
	pass(HALF_S);
	must(rt_blocking_leave());
	ck_assert_uint_le(heap_stats().heap_released, released);
	must(rt_blocking_enter());
	end_thread();
}

// If scavenging is on, the thread releases what the collection freed, because
// this program has been idle.
TEST(what_is_freed_goes_back)
{
	uint64_t end = nanotime() + 1000 * SECOND;
	rt_config c = config();
	rt_memstats m;

	c.scavenge = 1;
	begin_thread(c);
	drop(0);
	fault_advance_clock(PERIOD_S * SECOND);
	note_wake(&scavenger.call);
	do {
		ck_assert_msg(nanotime() < end, "nothing was released");
		note_wake(&scavenger.pause);
		oscall_yield();
		must(rt_read_memstats_live(&m));
	} while (m.num_gc == 0 || m.heap_idle - m.heap_released >= MIB);
	ck_assert_uint_eq(newest().number, 1);
	end_thread();
}

TEST(a_refused_clock_causes_no_collection_and_no_spin)
{
	uint64_t before;

	begin_thread(config());
	before = turns();
	fault_advance_clock(PERIOD_S * SECOND);
	fault_fail(OSCALL_CLOCK, 1, UINT64_MAX, EPERM);
	note_wake(&scavenger.call);
	while (turns() == before)
		oscall_yield();
	sleep_ns(AWAIT_STANDSTILL_NS);
	ck_assert_uint_eq(turns(), before + 1);
	fault_fail(OSCALL_CLOCK, 1, 0, 0);
	ck_assert_uint_eq(newest().number, 0);
	pass(0);
	ck_assert_uint_eq(newest().number, 1);
	end_thread();
}

// The background thread has no stack of the host.  It still collects with the
// roots of the host.
static void tell_kept(rt_tracer *t, void *arg)
{
	rt_trace_ptr(t, *(void **)arg);
}

TEST(root_callbacks_tell_it)
{
	static void *kept;

	begin_thread(config());
	must(rt_blocking_leave());
	must(rt_roots_add_fn(tell_kept, &kept, "kept"));
	kept = rt_alloc_noscan(100);
	drop(0);
	must(rt_blocking_enter());
	pass(PERIOD_S);
	must(rt_blocking_leave());
	ck_assert_int_eq(rt_is_heap(kept), 1);
	must(rt_roots_remove_fn(tell_kept, &kept));
	must(rt_blocking_enter());
	end_thread();
}
