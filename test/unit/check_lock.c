// Mutexes, notes and semaphores; and the order in which locks are taken.
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/os/lock.h"
#include "runtime/os/nanotime.h"
#include "test/harness/await.h"
#include "test/harness/death.h"
#include "test/harness/fault.h"
#include "test/harness/suite.h"
#include "test/harness/thread.h"

enum { THREADS = 4, ROUNDS = 20000 };
enum { MS = 1000 * 1000 };

static pthread_t threads[THREADS];

static void start_all(void *(*fn)(void *))
{
	for (uintptr_t i = 0; i < THREADS; i++)
		threads[i] = start_thread(fn, (void *)i);
}

static void join_all(void)
{
	for (int i = 0; i < THREADS; i++)
		join_thread(threads[i]);
}

// run_all runs fn in all threads.
static void run_all(void *(*fn)(void *))
{
	start_all(fn);
	join_all();
}

// await_u32 waits until a word has a value; Check's timeout is the deadline.
static void await_u32(const atomic_u32 *word, uint32_t value)
{
	while (atomic_u32_load_acquire(word) != value)
		oscall_yield();
}

// count_calls begins to count one of the system calls.
static void count_calls(enum oscall kind)
{
	fault_fail(kind, 1, 0, 0);
}

// ---- mutex ----

static struct mutex mutex = RT_MUTEX_INIT(LOCKRANK_MHEAP);
static uint64_t guarded; // mutex, or sema

static void *add_under_mutex(void *arg)
{
	(void)arg;
	for (int i = 0; i < ROUNDS; i++) {
		mutex_lock(&mutex);
		guarded++;
		mutex_unlock(&mutex);
	}
	return NULL;
}

GROUP(mutex, .timeout = 60);

TEST(one_thread_at_a_time_holds_a_mutex)
{
	run_all(add_under_mutex);
	ck_assert_uint_eq(guarded, (uint64_t)THREADS * ROUNDS);
	ck_assert(!mutex_held(&mutex));
}

// A sleep that returns at once, as on a signal, is repeated.
TEST(a_mutex_survives_sleeps_that_return_early)
{
	fault_fail(OSCALL_FUTEX_WAIT, 1, UINT64_MAX, EINTR);
	run_all(add_under_mutex);
	ck_assert_uint_eq(guarded, (uint64_t)THREADS * ROUNDS);
}

TEST(an_uncontended_mutex_makes_no_system_call)
{
	count_calls(OSCALL_FUTEX_WAIT);
	count_calls(OSCALL_FUTEX_WAKE);
	ck_assert(!mutex_held(&mutex));
	mutex_lock(&mutex);
	ck_assert(mutex_held(&mutex));
	mutex_unlock(&mutex);
	ck_assert(!mutex_held(&mutex));
	ck_assert_uint_eq(fault_count(OSCALL_FUTEX_WAIT), 0);
	ck_assert_uint_eq(fault_count(OSCALL_FUTEX_WAKE), 0);
}

static void *lock_once(void *arg)
{
	(void)arg;
	mutex_lock(&mutex);
	guarded++;
	mutex_unlock(&mutex);
	return NULL;
}

// State 2 is reached only by a thread that is about to sleep.  All such threads
// get the lock in the end, though a release wakes only one.
TEST(every_sleeper_of_a_mutex_gets_it)
{
	count_calls(OSCALL_FUTEX_WAIT);
	count_calls(OSCALL_FUTEX_WAKE);
	mutex_lock(&mutex);
	start_all(lock_once);
	await_u32(&mutex.state, 2);
	while (fault_count(OSCALL_FUTEX_WAIT) < THREADS)
		oscall_yield();
	ck_assert_uint_eq(guarded, 0);
	mutex_unlock(&mutex);
	join_all();
	ck_assert_uint_eq(guarded, THREADS);
	ck_assert_uint_ge(fault_count(OSCALL_FUTEX_WAKE), 1);
	ck_assert(!mutex_held(&mutex));
}

// In a debug build, lockrank finds first that the thread does not hold the
// lock.
TEST(unlocking_a_free_mutex_throws, .exit = DEATH_EXPECTED,
     .unless = SUITE_UNLESS(RT_DEBUG_BUILD, "not in a debug build"))
{
	death_expect("rtheap: fatal: mutex_unlock: not held");
	mutex_unlock(&mutex);
}

// ---- ranks, in debug builds ----

static struct mutex outer = RT_MUTEX_INIT(LOCKRANK_ROOTS);
static struct mutex inner = RT_MUTEX_INIT(LOCKRANK_PERSISTENT);

GROUP(rank);

TEST(every_rank_has_a_name_of_its_own)
{
	for (int i = 0; i < LOCKRANK_COUNT; i++) {
		const char *name = lockrank_name((enum lockrank)i);

		ck_assert_str_ne(name, "unknown");
		for (int j = 0; j < i; j++)
			ck_assert_str_ne(name, lockrank_name((enum lockrank)j));
	}
	ck_assert_str_eq(lockrank_name(LOCKRANK_COUNT), "unknown");
}

// A debug build would throw if this order were wrong.
TEST(locks_nest_inwards_and_open_in_any_order,
     .unless = SUITE_UNLESS(!RT_DEBUG_BUILD, "only in a debug build"))
{
	mutex_lock(&outer);
	mutex_lock(&mutex);
	mutex_lock(&inner);
	mutex_unlock(&mutex);
	mutex_unlock(&outer);
	mutex_unlock(&inner);
	lockrank_none();
	mutex_lock(&outer);
	mutex_unlock(&outer);
	lockrank_none();
}

TEST(wrong_order_throws_and_names_both_locks, .exit = DEATH_EXPECTED,
     .unless = SUITE_UNLESS(!RT_DEBUG_BUILD, "only in a debug build"))
{
	death_expect("rtheap: lock roots wanted while holding lock persistent\n"
		     "rtheap: fatal: lockrank: wrong order");
	mutex_lock(&mutex);
	mutex_lock(&inner);
	mutex_lock(&outer);
}

TEST(taking_a_held_lock_throws, .exit = DEATH_EXPECTED,
     .unless = SUITE_UNLESS(!RT_DEBUG_BUILD, "only in a debug build"))
{
	death_expect("rtheap: lock mheap wanted while holding lock mheap\n"
		     "rtheap: fatal: lockrank: wrong order");
	mutex_lock(&mutex);
	mutex_lock(&mutex);
}

TEST(a_lock_without_rank_throws, .exit = DEATH_EXPECTED,
     .unless = SUITE_UNLESS(!RT_DEBUG_BUILD, "only in a debug build"))
{
	static struct mutex zeroed;

	death_expect("rtheap: rank=0\n"
		     "rtheap: fatal: lockrank: lock without a rank");
	mutex_lock(&zeroed);
}

static void *unlock_for_another(void *arg)
{
	mutex_unlock(&mutex);
	return arg;
}

TEST(releasing_the_lock_of_another_thread_throws, .exit = DEATH_EXPECTED,
     .unless = SUITE_UNLESS(!RT_DEBUG_BUILD, "only in a debug build"))
{
	pthread_t thread;

	death_expect("rtheap: lock mheap\n"
		     "rtheap: fatal: lockrank: released but not held");
	mutex_lock(&mutex);
	thread = start_thread(unlock_for_another, NULL);
	join_thread(thread);
}

TEST(parking_with_a_lock_throws, .exit = DEATH_EXPECTED,
     .unless = SUITE_UNLESS(!RT_DEBUG_BUILD, "only in a debug build"))
{
	death_expect("rtheap: lock mheap\n"
		     "rtheap: fatal: lockrank: held while parking");
	mutex_lock(&mutex);
	lockrank_none();
}

// ---- note ----

static struct note note;
static struct note reply;

GROUP(note, .timeout = 60);

TEST(a_note_woken_before_does_not_sleep)
{
	count_calls(OSCALL_FUTEX_WAIT);
	count_calls(OSCALL_FUTEX_WAKE);
	note_wake(&note);
	note_wake(&note);
	ck_assert(note_sleep(&note, UINT64_MAX));
	ck_assert(note_sleep(&note, 0));
	note_clear(&note);
	ck_assert(!note_sleep(&note, 0));
	ck_assert_uint_eq(fault_count(OSCALL_FUTEX_WAIT), 0);
	ck_assert_uint_eq(fault_count(OSCALL_FUTEX_WAKE), 0);
}

TEST(a_note_that_no_thread_wakes_times_out)
{
	uint64_t begun = nanotime();

	ck_assert(!note_sleep(&note, 20 * MS));
	ck_assert_uint_ge(nanotime() - begun, 20 * MS);
	note_wake(&note);
	ck_assert(note_sleep(&note, 20 * MS));
}

TEST(sleeps_that_return_early_are_slept_to_the_end)
{
	uint64_t begun = nanotime();

	fault_fail(OSCALL_FUTEX_WAIT, 1, 1000, EINTR);
	ck_assert(!note_sleep(&note, 20 * MS));
	ck_assert_uint_ge(nanotime() - begun, 20 * MS);
	// As many sleeps were refused as there was time for.
	ck_assert_uint_gt(fault_failed(OSCALL_FUTEX_WAIT), 0);
}

TEST(a_refused_clock_ends_a_timed_sleep)
{
	fault_fail(OSCALL_CLOCK, 1, UINT64_MAX, EINVAL);
	ck_assert(!note_sleep(&note, 1 * MS));
	ck_assert_uint_ge(fault_failed(OSCALL_CLOCK), 1);
}

static uint64_t handed_over; // what is published by waking

static void *sleep_on_note(void *arg)
{
	(void)arg;
	if (!note_sleep(&note, UINT64_MAX) || handed_over != 42)
		return "not woken";
	return NULL;
}

TEST(a_wake_reaches_every_sleeper_and_publishes)
{
	count_calls(OSCALL_FUTEX_WAIT);
	start_all(sleep_on_note);
	while (fault_count(OSCALL_FUTEX_WAIT) < THREADS)
		oscall_yield();
	handed_over = 42;
	note_wake(&note);
	for (int i = 0; i < THREADS; i++) {
		void *result;

		result = join_thread(threads[i]);
		ck_assert_ptr_null(result);
	}
}

// answer waits for each number and hands it back plus one.
static void *answer(void *arg)
{
	(void)arg;
	for (int i = 0; i < ROUNDS; i++) {
		note_sleep(&note, UINT64_MAX);
		note_clear(&note);
		handed_over++;
		note_wake(&reply);
	}
	return NULL;
}

TEST(notes_hand_over_and_lose_no_wake)
{
	pthread_t thread;
	uint64_t wrong = 0;

	thread = start_thread(answer, NULL);
	for (uint64_t i = 0; i < ROUNDS; i++) {
		handed_over = i;
		note_wake(&note);
		if (!note_sleep(&reply, UINT64_MAX))
			wrong++;
		note_clear(&reply);
		wrong += handed_over != i + 1;
	}
	join_thread(thread);
	ck_assert_uint_eq(wrong, 0);
}

// Work is announced by counting, then waking.  A wake between the sleeper's
// look and its sleep must not be lost.
static atomic_u64 announced;

static void *announce(void *arg)
{
	(void)arg;
	for (int i = 0; i < ROUNDS; i++) {
		atomic_u64_add_relaxed(&announced, 1);
		note_wake(&note);
	}
	return NULL;
}

TEST(clearing_before_looking_misses_nothing)
{
	start_all(announce);
	for (;;) {
		note_clear(&note);
		if (atomic_u64_load_relaxed(&announced) ==
		    (uint64_t)THREADS * ROUNDS)
			break;
		note_sleep(&note, UINT64_MAX);
	}
	join_all();
}

// ---- semaphore ----

static struct sema sema;
static uintptr_t served[THREADS]; // in order; sema
static int nserved;		  // sema

static void *add_under_sema(void *arg)
{
	(void)arg;
	for (int i = 0; i < ROUNDS / 10; i++) {
		sema_acquire(&sema);
		guarded++;
		sema_release(&sema);
	}
	return NULL;
}

GROUP(sema, .timeout = 60);

TEST(one_thread_at_a_time_holds_a_semaphore)
{
	run_all(add_under_sema);
	ck_assert_uint_eq(guarded, (uint64_t)THREADS * (ROUNDS / 10));
	ck_assert(sema_try_acquire(&sema));
}

static void *try_under_sema(void *arg)
{
	(void)arg;
	for (int i = 0; i < ROUNDS / 10;) {
		if (!sema_try_acquire(&sema)) {
			oscall_yield();
			continue;
		}
		guarded++;
		sema_release(&sema);
		i++;
	}
	return NULL;
}

TEST(tries_exclude_each_other_and_waiters)
{
	uint64_t n = ROUNDS / 10;

	for (uintptr_t i = 0; i < THREADS; i++)
		threads[i] =
		    start_thread(i % 2 ? try_under_sema : add_under_sema, NULL);
	join_all();
	ck_assert_uint_eq(guarded, n * THREADS);
}

TEST(a_free_semaphore_makes_no_system_call)
{
	count_calls(OSCALL_FUTEX_WAIT);
	count_calls(OSCALL_FUTEX_WAKE);
	sema_acquire(&sema);
	ck_assert(!sema_try_acquire(&sema));
	sema_release(&sema);
	ck_assert(sema_try_acquire(&sema));
	ck_assert(!sema_try_acquire(&sema));
	sema_release(&sema);
	ck_assert_uint_eq(fault_count(OSCALL_FUTEX_WAIT), 0);
	ck_assert_uint_eq(fault_count(OSCALL_FUTEX_WAKE), 0);
}

static void *note_turn(void *arg)
{
	sema_acquire(&sema);
	served[nserved++] = (uintptr_t)arg;
	sema_release(&sema);
	return NULL;
}

// Tickets from the first one on, and tickets that wrap round while threads wait
// for them.
static const uint32_t first_tickets[] = {0, UINT32_MAX - 2, UINT32_MAX};

TEST(a_semaphore_serves_in_order_of_arrival, .n = RT_ARRAY_LEN(first_tickets))
{
	uint32_t first = first_tickets[_i];
	atomic_u32_store_relaxed(&sema.next, first);
	atomic_u32_store_relaxed(&sema.serving, first);
	count_calls(OSCALL_FUTEX_WAIT);
	sema_acquire(&sema);
	for (uintptr_t i = 0; i < THREADS; i++) {
		threads[i] = start_thread(note_turn, (void *)i);
		await_u32(&sema.next, first + 2 + (uint32_t)i);
	}
	while (fault_count(OSCALL_FUTEX_WAIT) < THREADS)
		oscall_yield();
	ck_assert(!sema_try_acquire(&sema));
	ck_assert_int_eq(nserved, 0);
	sema_release(&sema);
	join_all();
	ck_assert_int_eq(nserved, THREADS);
	for (uintptr_t i = 0; i < THREADS; i++)
		ck_assert_uint_eq(served[i], i);
	ck_assert_uint_eq(atomic_u32_load_relaxed(&sema.serving),
			  first + 1 + THREADS);
}

static atomic_u32 tids[THREADS];

static void *note_turn_by_number(void *arg)
{
	atomic_u32_store_release(&tids[(uintptr_t)arg], thread_number());
	return note_turn(arg);
}

// If a release woke all sleepers, all but one would sleep again, and those
// sleeps would be counted.
TEST(a_release_wakes_the_next_sleeper_only)
{
	count_calls(OSCALL_FUTEX_WAIT);
	sema_acquire(&sema);
	start_all(note_turn_by_number);
	while (fault_count(OSCALL_FUTEX_WAIT) < THREADS)
		oscall_yield();
	for (int i = 0; i < THREADS; i++)
		await_asleep(&tids[i]);
	sema_release(&sema);
	join_all();
	ck_assert_int_eq(nserved, THREADS);
	ck_assert_uint_eq(fault_count(OSCALL_FUTEX_WAIT), THREADS);
}

// Sleepers whose sleeps returned early are in the kernel's queue in any order.
// A release that woke only the first one would often wake the wrong one.
TEST(a_release_finds_the_right_sleeper)
{
	enum { EARLY = 20000 }; // long enough for all to have come

	for (int round = 0; round < 20; round++) {
		nserved = 0;
		sema_acquire(&sema);
		fault_fail(OSCALL_FUTEX_WAIT, 1, EARLY, EINTR);
		start_all(note_turn);
		while (fault_count(OSCALL_FUTEX_WAIT) < EARLY + THREADS)
			oscall_yield();
		sema_release(&sema);
		join_all();
		ck_assert_int_eq(nserved, THREADS);
	}
}
