// The scavenger: what a turn releases.
#define RT_NO_INLINE_ALLOC
#include "test/whole/scavenger.h"

#include <errno.h>

#include "runtime/os/nanotime.h"
#include "runtime/os/settings.h"
#include "runtime/world/gcstats.h"
#include "runtime/spans/mcache.h"
#include "gc/cycle/pacer.h"
#include "gc/cycle/release.h"
#include "gc/cycle/scavturn.h"
#include "test/harness/await.h"
#include "test/harness/kind.h"
#include "test/harness/thread.h"

static struct scavturn turn;

// begin makes a heap.  The test itself takes the turns of its scavenger.
static void begin(void)
{
	rt_config c = heap_config(HEAP_QUIET);

	c.max_procs = 1;
	// The background thread would sweep, and read clocks that fail.
	if (c.sweep != 0)
		c.gc_threads = 0;
	begin_as(c);
}

static uint64_t retained(void)
{
	rt_memstats m = heap_stats();

	return m.heap_inuse + m.heap_idle - m.heap_released;
}

static uint64_t free_bytes(void)
{
	rt_memstats m = heap_stats();

	return m.heap_idle - m.heap_released;
}

static struct scavturn_next take(uint64_t now)
{
	return scavturn_run(&turn, proc_self(), now);
}

// take_all takes turns at the time now until one has nothing to release.  It
// returns what that turn says of the next.
static struct scavturn_next take_all(uint64_t now)
{
	struct scavturn_next next;

	while ((next = take(now)).sleep == SCAVTURN_PAUSE) {
		ck_assert_uint_ne(next.ns, 0);
		scavturn_slept(&turn, SECOND, SECOND + next.ns);
	}
	return next;
}

// ---- a turn ----

GROUP(turns, .setup = begin);

TEST(what_the_last_cycle_used_stays_with_a_tenth)
{
	uint64_t goal;

	fill(32);
	drop(8);
	must(rt_gc());
	scavturn_init(&turn, 1, SECOND);
	// Before this collection 32 MiB were in use.
	ck_assert_int_eq(take(SECOND).sleep, SCAVTURN_TIMER);
	ck_assert_uint_ge(free_bytes(), 23 * MIB);
	must(rt_gc());
	ck_assert_int_eq(take_all(SECOND).sleep, SCAVTURN_CALL);
	goal = scavgoal_percent(heap_stats().heap_inuse, 1, 1, 4096);
	ck_assert_uint_le(retained(), goal + MIB / 16);
	// A step that would break a huge page takes it whole.
	ck_assert_uint_ge(retained() + 2 * MIB, goal);
	heap_healthy();
}

// The pages of a dropped object need no second collection.
TEST(one_collection_is_enough)
{
	uint64_t before;

	must(rt_set_gc_percent(100, NULL));
	fill(64);
	drop(6);
	before = retained();
	must(rt_gc());
	scavturn_init(&turn, 1, SECOND);
	take_all(SECOND);
	ck_assert_uint_eq(scavgoal_too_much(retained()), 0);
	ck_assert_uint_le(retained(), before / 2);
	heap_healthy();
}

TEST(a_batch_ends_and_the_next_one_continues)
{
	uint64_t before, after;

	fill(64);
	drop(0);
	must(rt_gc());
	must(rt_gc());
	before = free_bytes();
	scavturn_init(&turn, 1, SECOND);
	// As if the batch were almost over.
	turn.pace.worked = SCAVPACE_BATCH_NS - 1;
	ck_assert_int_eq(take(SECOND).sleep, SCAVTURN_PAUSE);
	after = free_bytes();
	ck_assert_uint_lt(after, before);
	ck_assert_uint_ge(after + 2 * MIB, before);
	scavturn_slept(&turn, SECOND, 2 * SECOND);
	ck_assert_uint_eq(turn.pace.worked, 0);
	take_all(SECOND);
	ck_assert_uint_lt(free_bytes(), MIB);
}

TEST(an_idle_program_keeps_what_it_uses)
{
	struct scavturn_next next;
	uint64_t left;

	fill(32);
	drop(4);
	must(rt_gc());
	scavturn_init(&turn, 1, SECOND);
	next = take(SECOND);
	ck_assert_int_eq(next.sleep, SCAVTURN_TIMER);
	ck_assert_uint_eq(next.ns, 5 * SECOND);
	next = take(6 * SECOND - 1);
	ck_assert_int_eq(next.sleep, SCAVTURN_TIMER);
	ck_assert_uint_eq(next.ns, 1);
	left = free_bytes();
	// A step of 2 MiB is a batch.
	ck_assert_int_eq(take(6 * SECOND).sleep, SCAVTURN_PAUSE);
	ck_assert_uint_lt(free_bytes(), left);
	ck_assert_uint_ge(free_bytes() + 2 * MIB, left);
	scavturn_slept(&turn, SECOND, 2 * SECOND);
	next = take_all(7 * SECOND);
	ck_assert_int_eq(next.sleep, SCAVTURN_CALL);
	ck_assert_uint_eq(next.ns, UINT64_MAX);
	heap_healthy();
	left = free_bytes();
	must(rt_free_os_memory());
	ck_assert_uint_le(left, free_bytes() + MIB / 16);
	ck_assert_uint_lt(left, MIB / 4);
}

TEST(a_program_that_allocates_is_not_idle)
{
	struct scavturn_next next;

	fill(32);
	drop(4);
	must(rt_gc());
	scavturn_init(&turn, 1, SECOND);
	ck_assert_int_eq(take(6 * SECOND).sleep, SCAVTURN_PAUSE);
	scavturn_slept(&turn, SECOND, 2 * SECOND);
	fill(5);
	next = take(7 * SECOND);
	ck_assert_int_eq(next.sleep, SCAVTURN_TIMER);
	ck_assert_uint_eq(next.ns, 5 * SECOND);
	ck_assert(!turn.idle);
	// A collection is activity as well.
	ck_assert_int_eq(take(12 * SECOND).sleep, SCAVTURN_PAUSE);
	scavturn_slept(&turn, SECOND, 2 * SECOND);
	fill(20);
	drop(4);
	must(rt_gc());
	next = take_all(13 * SECOND);
	ck_assert_int_eq(next.sleep, SCAVTURN_TIMER);
	ck_assert_uint_eq(next.ns, 5 * SECOND);
}

// Without a clock no program counts as idle, and no timer is set.
TEST(without_a_clock_only_goals_count)
{
	fill(32);
	drop(0);
	must(rt_gc());
	scavturn_init(&turn, 1, 0);
	ck_assert_int_eq(take(0).sleep, SCAVTURN_CALL);
	must(rt_gc());
	ck_assert_int_eq(take_all(0).sleep, SCAVTURN_CALL);
	ck_assert_uint_lt(free_bytes(), MIB);
}

// When the clock works again, idle time is counted from then on, because
// earlier idle time is not known.
TEST(a_clock_that_comes_back_starts_the_count)
{
	struct scavturn_next next;

	fill(32);
	drop(0);
	must(rt_gc());
	scavturn_init(&turn, 1, 0);
	next = take(100 * SECOND);
	ck_assert_int_eq(next.sleep, SCAVTURN_TIMER);
	ck_assert_uint_eq(next.ns, 5 * SECOND);
	ck_assert(!turn.idle);
	// Activity while the clock is refused counts as well.
	must(rt_gc());
	ck_assert_int_eq(take_all(0).sleep, SCAVTURN_CALL);
	take_all(200 * SECOND);
	ck_assert(!turn.idle);
}

// pace_after gives turn a pace that has worked for a millisecond.  It returns
// the pace after the pause that was meant, with share as the target.
static struct scavpace pace_after(double share)
{
	struct scavpace pace;

	scavpace_init(&pace);
	scavpace_add(&pace, 0, 1000000, 4096);
	turn.pace = pace;
	scavpace_slept(&pace, scavpace_sleep(&pace),
		       &(struct scavpace_target){share, 1});
	return pace;
}

// A pause whose beginning or end is not known counts as long as it was meant to
// be.  The target share of processor time depends on whether the program is
// idle.
TEST(a_pause_without_a_clock_counts, .n = 4)
{
	bool idle = _i >= 2;
	struct scavpace expected, other;

	fill(32);
	drop(4);
	must(rt_gc());
	if (!idle)
		must(rt_gc()); // what was free is more than is retained
	scavturn_init(&turn, 1, SECOND);
	if (idle)
		ck_assert_int_eq(take(SECOND).sleep, SCAVTURN_TIMER);
	ck_assert_int_eq(take(idle ? 6 * SECOND : SECOND).sleep,
			 SCAVTURN_PAUSE);
	ck_assert(turn.idle == idle);
	other = pace_after(idle ? 0.01 : 0.05);
	expected = pace_after(idle ? 0.05 : 0.01);
	scavturn_slept(&turn, _i % 2 == 0 ? 0 : SECOND,
		       _i % 2 == 0 ? SECOND : 0);
	ck_assert(turn.pace.ratio == expected.ratio);
	ck_assert(turn.pace.ratio != other.ratio);
	ck_assert_uint_eq(turn.pace.worked, 0);
}

// take_idle takes a turn of an idle program.  Returns the bytes that it
// released, with one call of the system.
static uint64_t take_idle(uint64_t now)
{
	uint64_t before = free_bytes();

	fault_fail(OSCALL_RELEASE, 1, 0, 0);
	ck_assert_int_eq(take(now).sleep, SCAVTURN_PAUSE);
	ck_assert(turn.idle);
	ck_assert_uint_eq(fault_count(OSCALL_RELEASE), 1);
	scavturn_slept(&turn, SECOND, 2 * SECOND);
	return before - free_bytes();
}

// An idle turn is one step of up to 2 MiB.  No free range here has a whole huge
// page, because even a smaller step would release a huge page at once.
TEST(an_idle_turn_is_one_large_step)
{
	unsigned nlarge = 0;

	fill(32);
	for (size_t i = 0; i < 32 * PER_MIB; i++)
		if (i % (2 * PER_MIB) != 0)
			objects[i] = NULL;
	must(rt_gc());
	scavturn_init(&turn, 1, SECOND);
	take_all(SECOND);
	for (unsigned i = 0; i < 12; i++) {
		uint64_t released = take_idle(6 * SECOND);

		ck_assert_uint_le(released, 2 * MIB);
		nlarge += released >= 2 * MIB - OBJECT;
	}
	ck_assert_uint_ge(nlarge, 3);
	heap_healthy();
}

// become_idle takes turns until all free pages are released, and returns the
// time.
static uint64_t become_idle(uint64_t now)
{
	ck_assert_int_eq(take_all(now).sleep, SCAVTURN_TIMER);
	ck_assert_int_eq(take_all(now + 5 * SECOND).sleep, SCAVTURN_CALL);
	ck_assert(turn.idle);
	ck_assert_uint_lt(free_bytes(), MIB);
	return now + 5 * SECOND;
}

// Pages that one idle time released, and a burst has used again, are released
// in the next idle time.
TEST(each_idle_time_releases_again)
{
	uint64_t now = SECOND;

	scavturn_init(&turn, 1, now);
	for (unsigned i = 0; i < 3; i++) {
		fill(32);
		drop(4);
		must(rt_gc());
		ck_assert_uint_ge(free_bytes(), 27 * MIB);
		now = become_idle(now) + 1000 * SECOND;
	}
	heap_healthy();
}

static void set_percent(void)
{
	must(rt_set_gc_percent(50, NULL));
}

static void set_heap_min(void)
{
	must(rt_set_heap_min(MIB, NULL));
}

static void set_memory_limit(void)
{
	must(rt_set_memory_limit(16 * MIB, NULL));
}

static void set_heap_max(void)
{
	must(rt_set_heap_max(16 * MIB, NULL));
}

static void (*const setters[])(void) = {set_percent, set_heap_min,
					set_memory_limit, set_heap_max};

// A new goal may ask for pages that the last pass did not have to release.
TEST(a_new_goal_begins_a_new_pass, .n = RT_ARRAY_LEN(setters))
{
	uint64_t now;

	fill(32);
	drop(4);
	must(rt_gc());
	scavturn_init(&turn, 1, SECOND);
	now = become_idle(SECOND);
	setters[_i]();
	ck_assert_int_ne(take(now).sleep, SCAVTURN_PAUSE);
	ck_assert(!turn.idle);
	ck_assert_uint_eq(turn.since, now);
}

// A pass goes from high addresses down.  Memory that is freed by hand above the
// place that a pass has reached begins a new pass, however many batches come
// between the frees.
TEST(what_is_freed_during_a_pass_goes_back_as_well)
{
	enum { STACKS = 4, STACK = 2 << 20 };
	void *stack[STACKS];
	uint64_t now = 6 * SECOND;

	fill(32);
	for (unsigned i = 0; i < STACKS; i++)
		ck_assert_ptr_nonnull(stack[i] = rt_stack_alloc(STACK));
	drop(4);
	must(rt_gc());
	scavturn_init(&turn, 1, SECOND);
	for (unsigned i = 0; i < STACKS; i++) {
		if (take(now).sleep == SCAVTURN_PAUSE)
			scavturn_slept(&turn, SECOND, 2 * SECOND);
		must(rt_stack_free(stack[i], STACK));
	}
	take_all(now);
	take_all(now + 5 * SECOND);
	ck_assert_uint_lt(free_bytes(), MIB);
	heap_healthy();
}

// Memory that a collection has freed was not freed by hand.  So the next small
// object that is freed does not begin a new idle time.
TEST(idle_time_begins_with_the_last_collection)
{
	uint64_t begun = nanotime(), ended;
	struct scavturn_next next;

	fill(32);
	drop(4);
	scavturn_init(&turn, 1, begun);
	begun = nanotime();
	must(rt_gc());
	ended = nanotime();
	must(rt_free(objects[0]));
	objects[0] = NULL;
	next = take(ended + 3 * SECOND);
	ck_assert_int_eq(next.sleep, SCAVTURN_TIMER);
	ck_assert_uint_ge(turn.since, begun);
	ck_assert_uint_le(turn.since, ended);
	ck_assert_uint_eq(next.ns, turn.since + 2 * SECOND - ended);
	ck_assert_int_eq(take(ended + 5 * SECOND).sleep, SCAVTURN_PAUSE);
	ck_assert(turn.idle);
}

// The scavenger does not know when after the collection memory was allocated or
// a setting was changed.  So it assumes that this has just happened.
TEST(later_activity_begins_a_new_idle_time, .n = 3)
{
	uint64_t now = nanotime();

	fill(32);
	drop(4);
	scavturn_init(&turn, 1, now);
	must(rt_gc());
	now = nanotime() + 3 * SECOND;
	if (_i == 0)
		fill(8);
	else if (_i == 1)
		set_percent();
	take(now);
	ck_assert_int_eq(turn.since == now, _i != 2);
}

// If the system refuses only the last pages, the pass does not count as
// refused.  When the program is idle, the scavenger releases these pages.
TEST(a_pass_that_is_refused_its_last_pages_was_not_refused)
{
	uint64_t now = SECOND;

	fill(64);
	drop(0);
	must(rt_gc());
	must(rt_gc());
	scavturn_init(&turn, 1, now);
	while (free_bytes() > 9 * MIB) {
		turn.pace.worked = SCAVPACE_BATCH_NS - 1; // one step
		ck_assert_int_eq(take(now).sleep, SCAVTURN_PAUSE);
		scavturn_slept(&turn, SECOND, 2 * SECOND);
	}
	fault_fail(OSCALL_RELEASE, 1, UINT64_MAX, EINVAL);
	ck_assert_int_eq(take_all(now).sleep, SCAVTURN_TIMER);
	ck_assert_uint_gt(fault_failed(OSCALL_RELEASE), 0);
	ck_assert_uint_lt(fault_failed(OSCALL_RELEASE), SCAVENGE_REFUSALS);
	fault_fail(OSCALL_RELEASE, 1, 0, 0);
	take_all(now + 5 * SECOND);
	ck_assert_uint_lt(free_bytes(), MIB);
	heap_healthy();
}

// Tables are released in batches as pages are, and only once.
TEST(tables_of_free_chunks_go_back_in_batches)
{
	enum { CALLS = 4 }; // to the system for a chunk, at most
	uint64_t now = SECOND, calls;
	unsigned batches = 0;

	fill(64);
	drop(0);
	must(rt_gc());
	scavturn_init(&turn, 1, now);
	now += 5 * SECOND;
	while (free_bytes() != 0 && !turn.over) {
		turn.pace.worked = SCAVPACE_BATCH_NS - 1;
		ck_assert_int_eq(take(now).sleep, SCAVTURN_PAUSE);
		scavturn_slept(&turn, SECOND, 2 * SECOND);
	}
	do {
		fault_fail(OSCALL_RELEASE, 1, 0, 0); // counts from 0
		turn.pace.worked = SCAVPACE_BATCH_NS - 1;
		batches++;
		if (take(now).sleep != SCAVTURN_PAUSE)
			break;
		calls = fault_count(OSCALL_RELEASE);
		ck_assert_uint_le(calls, CALLS);
		scavturn_slept(&turn, SECOND, 2 * SECOND);
	} while (batches < 1000);
	ck_assert_uint_ge(batches, mheap.pages.nchunks - 1);
	// The next idle time finds almost nothing to release.
	must(rt_gc());
	ck_assert_int_ne(take_all(now).sleep, SCAVTURN_PAUSE);
	fault_fail(OSCALL_RELEASE, 1, 0, 0);
	take_all(now + 10 * SECOND);
	ck_assert_uint_le(fault_count(OSCALL_RELEASE), 2 * CALLS);
	heap_healthy();
}

// A program that allocates and frees a stack again and again uses no more
// memory, so it is idle.
TEST(frees_by_hand_are_no_activity)
{
	enum { STACK = 1 << 20 };
	uint64_t now = SECOND;

	fill(32);
	drop(4);
	must(rt_gc());
	scavturn_init(&turn, 1, now);
	take_all(now);
	for (unsigned i = 1; i < 10; i++) {
		void *stack = rt_stack_alloc(STACK);

		ck_assert_ptr_nonnull(stack);
		must(rt_stack_free(stack, STACK));
		now += SECOND / 2;
		take_all(now);
		ck_assert(!turn.idle);
	}
	ck_assert_uint_gt(atomic_u64_load_relaxed(&scavgoal.frees), 0);
	now += SECOND / 2;
	ck_assert_int_eq(take_all(now).sleep, SCAVTURN_CALL);
	ck_assert(turn.idle);
	ck_assert_uint_lt(free_bytes(), MIB);
}

// leave_a_stack keeps a free stack until it detaches.
static void *leave_a_stack(void *arg)
{
	enum { STACK = 16 << 10 };
	uint64_t before = atomic_u64_load_relaxed(&scavgoal.frees);
	void *stack;

	must(rt_thread_attach(RT_THREAD_EXACT));
	stack = rt_stack_alloc(STACK);
	ck_assert_ptr_nonnull(stack);
	must(rt_stack_free(stack, STACK));
	mheap_await_freed(STACK);
	ck_assert(!mheap_freed_much());
	must(rt_thread_detach());
	ck_assert_uint_eq(atomic_u64_load_relaxed(&scavgoal.frees), before + 1);
	return arg;
}

// A thread that ends frees the stacks that it kept.
TEST(what_a_thread_leaves_was_freed_by_hand)
{
	run_beside(leave_a_stack, NULL);
}

// Memory of the collector comes and goes with each collection.
TEST(work_buffers_are_not_freed_by_hand)
{
	struct mspan *s = mheap_alloc_manual(proc_self(), 2, MSPAN_WORK);

	ck_assert_ptr_nonnull(s);
	mheap_await_freed(RT_PAGE_SIZE);
	mheap_free_manual(proc_self(), s);
	ck_assert(!mheap_freed_much());
}

// The spans that rt_kind_unregister frees count as freed by hand.
TEST(the_end_of_a_kind_frees_by_hand)
{
	enum { SIZE = 1024, N = 8 << 10 };
	int kind = kind_make(.layout = RT_LAYOUT_NONE);
	uint64_t before;

	scavturn_init(&turn, 1, SECOND);
	for (size_t i = 0; i < N; i++)
		ck_assert_ptr_nonnull(objects[i] = rt_alloc_of(kind, SIZE));
	for (size_t i = 0; i < N; i++)
		must(rt_free(objects[i]));
	drop(0);
	before = atomic_u64_load_relaxed(&scavgoal.frees);
	must(rt_kind_unregister(kind));
	ck_assert_uint_eq(atomic_u64_load_relaxed(&scavgoal.frees), before + 1);
	heap_healthy();
}

// ---- caches of threads that wait ----

enum { WAITERS = 8, CACHED = 32 }; // threads, pages in the cache of each

static struct {
	struct rt_mcache *mc[WAITERS];
	atomic_u32 here, go;
	pthread_t thread[WAITERS];
} waiters;

// dirty returns the number of pages of a cache that have memory behind them.
static unsigned dirty(const struct rt_mcache *mc)
{
	const struct pagecache *c = &mc->heap.pages;

	return bits_count(c->cache & ~c->scav);
}

// fill_cache allocates until the thread's cache has CACHED pages with memory.
static void fill_cache(void)
{
	for (unsigned i = 0; dirty(rt_thread_tls->mc) < CACHED; i++) {
		ck_assert_uint_lt(i, 1024);
		ck_assert_ptr_nonnull(rt_alloc_noscan(OBJECT));
	}
}

static void *fill_cache_and_wait(void *arg)
{
	must(rt_thread_attach(RT_THREAD_EXACT));
	fill_cache();
	*(struct rt_mcache **)arg = rt_thread_tls->mc;
	must(rt_blocking_enter());
	atomic_u32_add_release(&waiters.here, 1);
	await_at_least(&waiters.go, 1);
	must(rt_blocking_leave());
	for (unsigned i = 0; i < 2 * CACHED; i++)
		ck_assert_ptr_nonnull(rt_alloc_noscan(OBJECT));
	must(rt_thread_detach());
	return NULL;
}

// waiters_come frees pages, and starts threads that take some of them into
// their caches and then wait.
static void waiters_come(void)
{
	atomic_u32_store_relaxed(&waiters.here, 0);
	atomic_u32_store_relaxed(&waiters.go, 0);
	fill(32);
	drop(0);
	must(rt_gc());
	for (unsigned i = 0; i < WAITERS; i++) {
		waiters.thread[i] =
		    start_thread(fill_cache_and_wait, &waiters.mc[i]);
		await_at_least(&waiters.here, i + 1);
	}
}

static void waiters_go(void)
{
	atomic_u32_store_release(&waiters.go, 1);
	for (unsigned i = 0; i < WAITERS; i++)
		join_beside(waiters.thread[i]);
}

TEST(a_thread_that_waits_gives_its_cache_to_an_idle_program)
{
	uint64_t now = SECOND, taken;

	waiters_come();
	fill_cache();
	taken = mheap.taken;
	scavturn_init(&turn, 1, now);
	ck_assert_int_eq(take_all(now).sleep, SCAVTURN_TIMER);
	for (unsigned i = 0; i < WAITERS; i++)
		ck_assert_uint_ge(dirty(waiters.mc[i]), CACHED);
	heap_healthy();
	take_all(now + 5 * SECOND);
	ck_assert(turn.idle);
	for (unsigned i = 0; i < WAITERS; i++)
		ck_assert(pagecache_empty(&waiters.mc[i]->heap.pages));
	ck_assert_uint_le(mheap.taken, taken - WAITERS * CACHED);
	// This thread runs, and keeps its cache.
	ck_assert_uint_ge(dirty(rt_thread_tls->mc), CACHED);
	ck_assert_uint_eq(free_bytes(), (uint64_t)dirty(rt_thread_tls->mc)
					    << RT_PAGE_SHIFT);
	heap_healthy();
	waiters_go();
	heap_healthy();
}

TEST(idle_programs_can_be_exempted)
{
	settings_present.idle_s = 0;
	fill(32);
	drop(0);
	must(rt_gc());
	scavturn_init(&turn, 1, SECOND);
	ck_assert_int_eq(take(1000 * SECOND).sleep, SCAVTURN_CALL);
	ck_assert(!turn.idle);
}

TEST(a_memory_limit_counts)
{
	rt_memstats m;

	fill(32);
	drop(4);
	must(rt_gc());
	scavturn_init(&turn, 1, SECOND);
	ck_assert_int_eq(take(SECOND).sleep, SCAVTURN_TIMER);
	m = heap_stats();
	must(rt_set_memory_limit((int64_t)(m.sys - m.heap_released), NULL));
	take_all(SECOND);
	m = heap_stats();
	ck_assert_uint_le(gauge_load(&gauges.mapped_ready),
			  atomic_u64_load_relaxed(&pacer.limit) / 20 * 19 +
			      MIB / 16);
	heap_healthy();
}

TEST(refused_pages_stay_and_are_not_tried_without_end)
{
	uint64_t before, tries;

	fill(32);
	drop(0);
	must(rt_gc());
	must(rt_gc());
	before = free_bytes();
	scavturn_init(&turn, 1, SECOND);
	fault_fail(OSCALL_RELEASE, 1, UINT64_MAX, EINVAL);
	ck_assert_int_eq(take(SECOND).sleep, SCAVTURN_CALL);
	ck_assert_uint_eq(free_bytes(), before);
	tries = fault_count(OSCALL_RELEASE);
	ck_assert_uint_ne(tries, 0);
	ck_assert_int_eq(take(SECOND).sleep, SCAVTURN_CALL);
	ck_assert_uint_eq(fault_count(OSCALL_RELEASE), tries);
	fault_fail(OSCALL_RELEASE, 1, 0, 0);
	heap_healthy();
	// After the next collection the scavenger tries again.
	must(rt_gc());
	take_all(SECOND);
	ck_assert_uint_lt(free_bytes(), MIB);
	heap_healthy();
}

// However large the heap is, a refused turn ends soon.
TEST(a_pass_that_the_system_refuses_is_over, .n = 2)
{
	uint64_t idle = (uint64_t)_i * 10 * SECOND;

	fill(64);
	drop(0);
	must(rt_gc());
	must(rt_gc());
	ck_assert_uint_gt(mheap.pages.nchunks, SCAVENGE_REFUSALS);
	scavturn_init(&turn, 1, SECOND);
	fault_fail(OSCALL_RELEASE, 1, UINT64_MAX, EINVAL);
	ck_assert_int_eq(take(SECOND + idle).sleep, SCAVTURN_CALL);
	ck_assert_uint_eq(fault_count(OSCALL_RELEASE), SCAVENGE_REFUSALS);
	// With one refusal fewer, the turn finds a chunk that can be released.
	must(rt_gc());
	fault_fail(OSCALL_RELEASE, 1, SCAVENGE_REFUSALS - 1, EINVAL);
	ck_assert_int_eq(take(SECOND).sleep, SCAVTURN_PAUSE);
	ck_assert_uint_gt(fault_count(OSCALL_RELEASE), SCAVENGE_REFUSALS - 1);
}

// The scavenger does not wake for a program that allocates without a
// collection, because pages that were refused would be refused again.
TEST(what_is_refused_needs_no_turn_before_a_collection)
{
	uint64_t now = SECOND;
	struct scavturn_next next = {SCAVTURN_TIMER, 0};
	unsigned turns = 0;

	fill(64);
	drop(0);
	must(rt_gc());
	must(rt_gc());
	scavturn_init(&turn, 1, now);
	fault_fail(OSCALL_RELEASE, 1, UINT64_MAX, EINVAL);
	while (next.sleep != SCAVTURN_CALL && turns < 20) {
		next = take(now);
		now += next.ns;
		fill(++turns);
	}
	ck_assert_uint_eq(turns, 1);
	ck_assert_uint_eq(next.ns, UINT64_MAX);
}

TEST(what_it_releases_is_in_the_next_record)
{
	uint64_t before;
	rt_cycle c;

	fill(64);
	drop(0);
	must(rt_gc());
	must(rt_gc());
	must(rt_read_cycle(0, &c));
	ck_assert_uint_eq(c.scavenged_background, 0);
	scavturn_init(&turn, 1, SECOND);
	before = free_bytes();
	take_all(SECOND);
	before -= free_bytes();
	must(rt_gc());
	must(rt_read_cycle(0, &c));
	ck_assert_uint_eq(c.scavenged_background, before);
	ck_assert_uint_eq(c.scavenged_assist, 0);
	ck_assert_uint_ge(c.heap_released, before);
	must(rt_gc());
	must(rt_read_cycle(0, &c));
	ck_assert_uint_eq(c.scavenged_background, 0);
	fill(64);
	drop(0);
	must(rt_gc());
	before = free_bytes();
	release_step(proc_self());
	before -= free_bytes();
	ck_assert_uint_ne(before, 0);
	must(rt_gc());
	must(rt_read_cycle(0, &c));
	ck_assert_uint_eq(c.scavenged_background, 0);
	ck_assert_uint_eq(c.scavenged_assist, before);
}

TEST(the_time_it_takes_is_counted)
{
	struct gcstats_cycles c;

	fill(64);
	drop(0);
	must(rt_gc());
	must(rt_gc());
	gcstats_read_cycles(&c);
	ck_assert_uint_eq(c.cpu.scavenge_background, 0);
	scavturn_init(&turn, 1, SECOND);
	take_all(SECOND);
	must(rt_gc());
	gcstats_read_cycles(&c);
	ck_assert_uint_ne(c.cpu.scavenge_background, 0);
	ck_assert_uint_eq(c.cpu.scavenge_total, c.cpu.scavenge_background);
	ck_assert_ptr_null(gcstats_cycles_check(&c));
}

// The system refuses the clock when the first step begins.
TEST(a_step_without_a_clock_counts_for_its_pages)
{
	fill(64);
	drop(0);
	must(rt_gc());
	must(rt_gc());
	scavturn_init(&turn, 1, SECOND);
	turn.pace.worked = SCAVPACE_BATCH_NS - 1; // so there is one step
	fault_fail(OSCALL_CLOCK, 1, 1, EPERM);
	ck_assert_int_eq(take(SECOND).sleep, SCAVTURN_PAUSE);
	ck_assert_uint_eq(fault_failed(OSCALL_CLOCK), 1);
	ck_assert_uint_eq(fault_count(OSCALL_CLOCK), 2);
	ck_assert_uint_ge(turn.pace.worked, SCAVPACE_BATCH_NS + 10000 - 1);
	ck_assert_uint_eq(
	    atomic_u64_load_relaxed(&gcstats.scavenge[GCSTATS_BACKGROUND]), 0);
}

// A step for the memory limit releases pages even if its time is not known.
TEST(a_step_for_the_limit_needs_no_clock, .n = 2)
{
	uint64_t before;

	fill(64);
	drop(0);
	must(rt_gc());
	before = free_bytes();
	fault_fail(OSCALL_CLOCK, 1 + (uint64_t)_i, 1, EPERM);
	release_step(proc_self());
	ck_assert_uint_eq(fault_failed(OSCALL_CLOCK), 1);
	ck_assert_uint_lt(free_bytes(), before);
	ck_assert_uint_eq(
	    atomic_u64_load_relaxed(&gcstats.scavenge[GCSTATS_ASSIST]), 0);
	heap_healthy();
}
