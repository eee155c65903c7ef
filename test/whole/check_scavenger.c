// The scavenger: what a turn releases, and the thread that takes turns.
#define _GNU_SOURCE // affinity
#define RT_NO_INLINE_ALLOC
#include <dirent.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>

#include <rt/rt.h>

#include "runtime/os/settings.h"
#include "runtime/world/gcstats.h"
#include "gc/cycle/pacer.h"
#include "gc/cycle/release.h"
#include "gc/cycle/scavenger.h"
#include "gc/cycle/scavturn.h"
#include "test/harness/await.h"
#include "test/harness/fault.h"
#include "test/harness/heap.h"
#include "test/harness/thread.h"

#define MIB (UINT64_C(1) << 20)
#define SECOND UINT64_C(1000000000)

enum {
	OBJECT = 8192,
	PER_MIB = (1 << 20) / OBJECT,
	MOST_MIB = 64,
};

static void **objects;
static struct scavturn turn;

static void begin_as(rt_config c)
{
	heap_start_exact(c);
	objects = (void **)heap_table(MOST_MIB * PER_MIB, RT_ROOT_EXACT);
}

// begin makes a heap whose turns the test takes.
static void begin(void)
{
	rt_config c = heap_config(HEAP_QUIET);

	c.max_procs = 1;
	begin_as(c);
}

static void fill(size_t mib)
{
	for (size_t i = 0; i < mib * PER_MIB; i++)
		if (!objects[i])
			objects[i] = rt_alloc_noscan(OBJECT);
}

// drop drops all but the first MiB.
static void drop(size_t keep_mib)
{
	memset(objects + keep_mib * PER_MIB, 0,
	       (MOST_MIB - keep_mib) * PER_MIB * sizeof *objects);
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

// take_all takes turns at a time until one has nothing to do, and returns it.
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

// Without a clock there is no idle program, and no timer.
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

// When the clock comes back, the program has been idle for no known time.
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
	// A program that is active while the clock is refused counts as well.
	must(rt_gc());
	ck_assert_int_eq(take_all(0).sleep, SCAVTURN_CALL);
	take_all(200 * SECOND);
	ck_assert(!turn.idle);
}

// A pause whose end or beginning is not known took what it was meant to.
TEST(a_pause_without_a_clock_counts, .n = 2)
{
	struct scavpace expected;

	fill(32);
	drop(0);
	must(rt_gc());
	must(rt_gc());
	scavturn_init(&turn, 1, SECOND);
	ck_assert_int_eq(take(SECOND).sleep, SCAVTURN_PAUSE);
	expected = turn.pace;
	scavpace_slept(&expected, scavpace_sleep(&expected),
		       &(struct scavpace_target){0.01, 1});
	scavturn_slept(&turn, _i == 0 ? 0 : SECOND, _i == 0 ? SECOND : 0);
	ck_assert(turn.pace.ratio == expected.ratio);
	ck_assert_uint_eq(turn.pace.worked, 0);
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

// What one idle time released, and a burst has used again, goes back again.
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

static void (*const setters[])(void) = {set_percent, set_heap_min,
					set_memory_limit};

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

TEST(idle_programs_can_be_exempted)
{
	settings.idle_s = 0;
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
	// The next collection begins anew.
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
	// One refusal fewer, and it finds the chunk that can be released.
	must(rt_gc());
	fault_fail(OSCALL_RELEASE, 1, SCAVENGE_REFUSALS - 1, EINVAL);
	ck_assert_int_eq(take(SECOND).sleep, SCAVTURN_PAUSE);
	ck_assert_uint_gt(fault_count(OSCALL_RELEASE), SCAVENGE_REFUSALS - 1);
}

// It does not wake for a program that allocates without a collection, since
// what was refused would be refused again.
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

// The clock of the first step is refused when it begins.
TEST(a_step_without_a_clock_counts_for_its_pages)
{
	fill(64);
	drop(0);
	must(rt_gc());
	must(rt_gc());
	scavturn_init(&turn, 1, SECOND);
	turn.pace.worked = SCAVPACE_BATCH_NS - 1; // so it is the only one
	fault_fail(OSCALL_CLOCK, 1, 1, EPERM);
	ck_assert_int_eq(take(SECOND).sleep, SCAVTURN_PAUSE);
	ck_assert_uint_eq(fault_failed(OSCALL_CLOCK), 1);
	ck_assert_uint_eq(fault_count(OSCALL_CLOCK), 2);
	ck_assert_uint_ge(turn.pace.worked, SCAVPACE_BATCH_NS + 10000 - 1);
	ck_assert_uint_eq(
	    atomic_u64_load_relaxed(&gcstats.scavenge[GCSTATS_BACKGROUND]), 0);
}

// So does a step for the memory limit, which takes no known time.
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

// ---- the thread ----

static bool runs(void)
{
	return atomic_u32_load_relaxed(&scavenger.runs) != 0;
}

static rt_config with_thread(void)
{
	rt_config c = heap_config(HEAP_QUIET);

	c.max_procs = 1; // no helper
	c.scavenge = 1;
	c.sweep = 0; // which would make the thread
	return c;
}

static void make_garbage(void)
{
	fill(16);
	drop(0);
	must(rt_gc());
}

// await_released waits, as blocked, until less than a MiB is free.
static void await_released(void)
{
	uint64_t end = nanotime() + AWAIT_SECONDS * SECOND;
	rt_memstats m;

	must(rt_blocking_enter());
	do {
		ck_assert_msg(nanotime() < end, "nothing was released");
		oscall_yield();
		must(rt_read_memstats_live(&m));
	} while (m.heap_idle - m.heap_released >= MIB);
	must(rt_blocking_leave());
}

// is_scavenger tells whether a thread of this process has that name.
static bool is_scavenger(const char *tid)
{
	char path[300], name[20] = "";
	FILE *file;

	snprintf(path, sizeof path, "/proc/self/task/%s/comm", tid);
	file = fopen(path, "r");
	if (!file)
		return false; // it has ended
	if (!fgets(name, sizeof name, file))
		name[0] = 0;
	fclose(file);
	return strcmp(name, "rtheap scavenge\n") == 0;
}

static unsigned scavengers(void)
{
	DIR *dir = opendir("/proc/self/task");
	const struct dirent *entry;
	unsigned n = 0;

	ck_assert_ptr_nonnull(dir);
	while ((entry = readdir(dir)) != NULL)
		n += is_scavenger(entry->d_name);
	closedir(dir);
	return n;
}

// await_none waits for the system to forget a thread that was joined.
static void await_none(void)
{
	uint64_t end = nanotime() + AWAIT_SECONDS * SECOND;

	while (scavengers() != 0) {
		ck_assert_msg(nanotime() < end, "it runs on");
		oscall_yield();
	}
}

GROUP(thread, .timeout = 2 * AWAIT_SECONDS);

TEST(it_releases_beside_the_program)
{
	begin_as(with_thread());
	make_garbage();
	ck_assert(runs());
	must(rt_gc()); // nothing was in use, so nothing is kept
	await_released();
	heap_healthy();
	must(rt_fini());
}

// await_rest waits, as blocked, until it sleeps without a limit.
static void await_rest(void)
{
	enum { SLEPT = 2 }; // NOTE_SLEPT of runtime/os/lock.c
	uint64_t end = nanotime() + AWAIT_SECONDS * SECOND;

	must(rt_blocking_enter());
	while (atomic_u32_load_acquire(&scavenger.call.woken) != SLEPT) {
		ck_assert_msg(nanotime() < end, "it does not rest");
		oscall_yield();
	}
	must(rt_blocking_leave());
}

// It has no timer, so only the collection can wake it.
TEST(a_collection_that_leaves_too_much_wakes_it)
{
	rt_config c = with_thread();

	c.idle_s = 0;
	begin_as(c);
	make_garbage();
	must(rt_gc());
	ck_assert(runs());
	await_released();
	await_rest();
	make_garbage();
	must(rt_gc());
	await_released();
	heap_healthy();
	must(rt_fini());
}

TEST(it_is_made_when_there_is_something_to_release)
{
	begin_as(with_thread());
	must(rt_gc());
	fill(1);
	drop(0);
	must(rt_gc());
	ck_assert(!runs());
	make_garbage();
	ck_assert(runs());
}

TEST(settings_forbid_it, .n = 2)
{
	rt_config c = with_thread();

	if (_i == 0)
		c.gc_threads = 0;
	else
		c.scavenge = 0;
	begin_as(c);
	make_garbage();
	must(rt_gc());
	must(rt_set_memory_limit(0, NULL));
	ck_assert(!runs());
}

// A limit may be set later, so free pages are reason enough to make it.
TEST(it_follows_a_limit_that_is_set_later)
{
	rt_config c = with_thread();

	c.idle_s = 0;
	begin_as(c);
	make_garbage();
	ck_assert(runs());
	must(rt_set_memory_limit(0, NULL));
	await_released();
	heap_healthy();
	must(rt_fini());
}

TEST(it_releases_what_each_burst_leaves)
{
	begin_as(with_thread());
	for (unsigned i = 0; i < 3; i++) {
		make_garbage();
		must(rt_gc());
		await_released();
	}
	heap_healthy();
	must(rt_fini());
}

TEST(a_refused_thread_is_tried_again)
{
	begin_as(with_thread());
	fault_fail(OSCALL_THREAD, 1, 1, EAGAIN);
	make_garbage();
	ck_assert_uint_eq(fault_failed(OSCALL_THREAD), 1);
	ck_assert(!runs());
	heap_healthy();
	must(rt_gc());
	ck_assert(runs());
	await_released();
	heap_healthy();
}

TEST(refused_memory_leaves_it_in_order)
{
	begin_as(with_thread());
	fault_fail(OSCALL_RELEASE, 1, UINT64_MAX, EINVAL);
	make_garbage();
	must(rt_gc());
	while (fault_failed(OSCALL_RELEASE) == 0)
		oscall_yield();
	heap_healthy();
	fault_fail(OSCALL_RELEASE, 1, 0, 0);
	must(rt_gc());
	await_released();
	heap_healthy();
	must(rt_fini());
}

// Without a clock it releases all the same, and does not spin afterwards.
TEST(refused_clocks_leave_it_in_order)
{
	begin_as(with_thread());
	fault_fail(OSCALL_CLOCK, 1, UINT64_MAX, EPERM);
	make_garbage();
	must(rt_gc());
	must(rt_blocking_enter());
	while (atomic_u32_load_relaxed(&scavenger.call.woken) == 1)
		oscall_yield();
	fault_fail(OSCALL_CLOCK, 1, 0, 0);
	must(rt_blocking_leave());
	await_released();
	heap_healthy();
	must(rt_fini());
}

TEST(the_end_of_the_heap_ends_it)
{
	for (unsigned i = 0; i < 3; i++) {
		begin_as(with_thread());
		make_garbage();
		must(rt_gc());
		ck_assert(runs());
		ck_assert_uint_eq(scavengers(), 1);
		await_released();
		must(rt_fini());
		ck_assert(!runs());
		await_none();
		free(objects);
	}
}

static void *make_apart(void *arg)
{
	const struct sched_param param = {0};
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	ck_assert_int_eq(sched_setaffinity(0, sizeof one, &one), 0);
	ck_assert_int_eq(sched_setscheduler(0, SCHED_BATCH, &param), 0);
	must(rt_thread_attach(RT_THREAD_EXACT));
	make_garbage();
	must(rt_thread_detach());
	return arg;
}

// Whatever thread makes it, it is like those that rt_init saw.
TEST(it_has_the_processors_of_rt_init)
{
	cpu_set_t all, its;
	struct dirent *entry;
	unsigned found = 0;
	DIR *dir;

	ck_assert_int_eq(sched_getaffinity(0, sizeof all, &all), 0);
	begin_as(with_thread());
	run_beside(make_apart, NULL);
	ck_assert(runs());
	dir = opendir("/proc/self/task");
	ck_assert_ptr_nonnull(dir);
	while ((entry = readdir(dir)) != NULL) {
		pid_t tid = (pid_t)strtol(entry->d_name, NULL, 10);

		// The thread that was joined may still be listed.
		if (!is_scavenger(entry->d_name))
			continue;
		ck_assert_int_eq(sched_getaffinity(tid, sizeof its, &its), 0);
		ck_assert_int_eq(sched_getscheduler(tid), SCHED_OTHER);
		ck_assert(CPU_EQUAL(&all, &its));
		found++;
	}
	closedir(dir);
	ck_assert_uint_eq(found, 1);
}
