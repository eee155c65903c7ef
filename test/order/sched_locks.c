// Mutex, note and semaphore: a wake that comes while a thread is about to
// sleep.
#include "runtime/os/lock.h"
#include "test/order/sched.h"

static struct mutex mutex = RT_MUTEX_INIT(LOCKRANK_HANDLERS);
static struct note note;
static struct sema sema;
static struct hand first, second;
static atomic_u32 told;

static void lock_and_unlock(void)
{
	mutex_lock(&mutex);
	mutex_unlock(&mutex);
}

static void lock_until_told(void)
{
	mutex_lock(&mutex);
	await_at_least(&told, 1);
	mutex_unlock(&mutex);
}

static void sleep_on_note(void)
{
	note_sleep(&note, UINT64_MAX);
}

static void wake_note(void)
{
	note_wake(&note);
}

static void acquire(void)
{
	if (!sema_try_acquire(&sema))
		sema_acquire(&sema);
}

static void release(void)
{
	sema_release(&sema);
}

// ---- mutex ----

GROUP(locks, .timeout = 2 * AWAIT_SECONDS);

TEST(a_thread_takes_a_lock_that_was_taken_and_freed)
{
	hold_at(SCHED_MUTEX_LOCK, &first, lock_and_unlock);
	mutex_lock(&mutex);
	mutex_unlock(&mutex);
	let_end(SCHED_MUTEX_LOCK, &first);
	ck_assert(!mutex_held(&mutex));
}

// The release came before the sleep.  The kernel sees that the word has
// changed, so the thread does not sleep.
TEST(a_lock_that_is_freed_before_the_sleep_is_not_slept_on)
{
	mutex_lock(&mutex);
	hold_at(SCHED_MUTEX_SLEEP, &first, lock_and_unlock);
	mutex_unlock(&mutex);
	let_end(SCHED_MUTEX_SLEEP, &first);
	ck_assert(!mutex_held(&mutex));
}

// Between the release and the wake any thread can take the lock.
TEST(a_lock_is_free_before_its_sleepers_are_woken)
{
	hand_start(&second, lock_until_told);
	while (!mutex_held(&mutex))
		oscall_yield();
	hold_at(SCHED_MUTEX_SLEEP, &first, lock_and_unlock);
	schedpoint_hold(SCHED_MUTEX_UNLOCK);
	atomic_u32_store_release(&told, 1);
	await_held(SCHED_MUTEX_UNLOCK);
	mutex_lock(&mutex);
	mutex_unlock(&mutex);
	let_end(SCHED_MUTEX_SLEEP, &first);
	let_end(SCHED_MUTEX_UNLOCK, &second);
	ck_assert(!mutex_held(&mutex));
}

// ---- note ----

TEST(a_note_that_is_woken_before_the_sleep_is_not_slept_on)
{
	hold_at(SCHED_NOTE_WAIT, &first, sleep_on_note);
	note_wake(&note);
	let_end(SCHED_NOTE_WAIT, &first);
}

TEST(a_late_wake_finds_its_sleeper)
{
	hold_at(SCHED_NOTE_WAKE, &second, wake_note);
	pass_at(SCHED_NOTE_WAIT, &first, sleep_on_note);
	let_end(SCHED_NOTE_WAKE, &second);
	hand_end(&first);
}

// ---- semaphore ----

TEST(a_ticket_that_is_served_before_its_look_is_not_slept_on)
{
	acquire();
	hold_at(SCHED_SEMA_ACQUIRE, &first, acquire);
	release();
	let_end(SCHED_SEMA_ACQUIRE, &first);
	ck_assert(!sema_try_acquire(&sema)); // first has it
}

// Another thread acquires the semaphore after the look of a try.  So the try
// takes no ticket, and the thread waits for its turn.
TEST(a_try_that_was_overtaken_takes_nothing)
{
	hold_at(SCHED_SEMA_TRY_ACQUIRE, &first, acquire);
	acquire();
	move_on(SCHED_SEMA_TRY_ACQUIRE, SCHED_SEMA_ACQUIRE);
	release();
	let_end(SCHED_SEMA_ACQUIRE, &first);
	ck_assert(!sema_try_acquire(&sema));
}

// A thread that is served at once can end before the thread that served it
// wakes sleepers.
TEST(a_thread_that_is_served_needs_no_wake)
{
	acquire();
	hold_at(SCHED_SEMA_ACQUIRE, &first, acquire);
	hold_at(SCHED_SEMA_RELEASE, &second, release);
	let_end(SCHED_SEMA_ACQUIRE, &first);
	let_end(SCHED_SEMA_RELEASE, &second);
	release();
	ck_assert(sema_try_acquire(&sema));
}
