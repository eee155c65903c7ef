// Mutexes, notes and semaphores, which sleep on futexes.
#include "runtime/os/lock.h"

#include "runtime/os/schedpoint.h"
#include "runtime/os/throw.h"
#include "runtime/os/nanotime.h"

enum {
	MUTEX_FREE = 0,
	MUTEX_HELD = 1,
	MUTEX_WAITED = 2, // held; its release makes a system call

	NOTE_CLEAR = 0,
	NOTE_WOKEN = 1,
	NOTE_SLEPT = 2, // clear; its wake makes a system call
};

// Rounds of spinning before a sleep.  A pause takes 40 to 140 cycles, so they
// take one to four microseconds, about as long as a sleep and a wake.
enum { LOCK_SPINS = 100 };

// ---- mutex ----

static bool mutex_try(struct mutex *m, uint32_t state)
{
	// Pairs with the release in mutex_unlock.
	return atomic_u32_load_relaxed(&m->state) == MUTEX_FREE &&
	       atomic_u32_cas_acquire(&m->state, MUTEX_FREE, state);
}

static bool mutex_spin(struct mutex *m)
{
	for (int i = 0; i < LOCK_SPINS; i++) {
		if (mutex_try(m, MUTEX_HELD))
			return true;
		atomic_pause();
	}
	return false;
}

// mutex_sleep acquires m as MUTEX_WAITED, because a thread that has slept
// cannot know whether others still sleep.  A wake too many costs a system call;
// a missing one would leave a thread asleep.
static void mutex_sleep(struct mutex *m)
{
	while (!mutex_try(m, MUTEX_WAITED)) {
		atomic_u32_cas_relaxed(&m->state, MUTEX_HELD, MUTEX_WAITED);
		schedpoint(SCHED_MUTEX_SLEEP);
		oscall_futex_wait(&m->state, MUTEX_WAITED, UINT64_MAX);
	}
}

void mutex_lock(struct mutex *m)
{
	lockrank_acquire(m->rank);
	RT_CHECK(mutex_check(m));
	schedpoint(SCHED_MUTEX_LOCK);
	// Pairs with the releases in mutex_unlock.
	if (RT_LIKELY(
		atomic_u32_cas_acquire(&m->state, MUTEX_FREE, MUTEX_HELD)))
		return;
	if (!mutex_spin(m))
		mutex_sleep(m);
}

void mutex_unlock(struct mutex *m)
{
	lockrank_release(m->rank);
	// Both releases pair with the acquires in mutex_lock and mutex_try.
	if (RT_LIKELY(
		atomic_u32_cas_release(&m->state, MUTEX_HELD, MUTEX_FREE)))
		return;
	if (!mutex_held(m))
		throw_fatal("mutex_unlock: not held");
	// Only the holder changes MUTEX_WAITED, so a store is enough.
	atomic_u32_store_release(&m->state, MUTEX_FREE);
	schedpoint(SCHED_MUTEX_UNLOCK);
	oscall_futex_wake(&m->state, 1);
}

bool mutex_held(const struct mutex *m)
{
	return atomic_u32_load_relaxed(&m->state) != MUTEX_FREE;
}

// ---- note ----

// note_clear and note_wake are seqcst exchanges of one word.  A sleeper clears,
// then looks for work, then sleeps.  It sees the work of a wake that came
// before the clear; after a later wake it finds the note woken.  With a plain
// store, its look for work could pass the clear.
void note_clear(struct note *n)
{
	atomic_u32_swap_seqcst(&n->woken, NOTE_CLEAR);
}

void note_wake(struct note *n)
{
	RT_CHECK(note_check(n));
	schedpoint(SCHED_NOTE_WAKE);
	// Pairs with the acquire in note_woken.  After the exchange the sleeper
	// may be gone, and the note with it.  A wake on memory that is no
	// longer a futex has no effect.
	if (atomic_u32_swap_seqcst(&n->woken, NOTE_WOKEN) == NOTE_SLEPT)
		oscall_futex_wake(&n->woken, UINT32_MAX);
}

static bool note_woken(const struct note *n)
{
	// Pairs with the exchange in note_wake.
	return atomic_u32_load_acquire(&n->woken) == NOTE_WOKEN;
}

static bool note_spin(const struct note *n)
{
	for (int i = 0; i < LOCK_SPINS; i++) {
		if (note_woken(n))
			return true;
		atomic_pause();
	}
	return false;
}

// note_wait sleeps once and tells whether the note is woken now.
static bool note_wait(struct note *n, uint64_t timeout_ns)
{
	atomic_u32_cas_relaxed(&n->woken, NOTE_CLEAR, NOTE_SLEPT);
	schedpoint(SCHED_NOTE_WAIT);
	oscall_futex_wait(&n->woken, NOTE_SLEPT, timeout_ns);
	return note_woken(n);
}

static bool note_sleep_until(struct note *n, uint64_t timeout_ns)
{
	uint64_t start = nanotime();
	uint64_t passed = 0;

	while (passed < timeout_ns) {
		if (note_wait(n, timeout_ns - passed))
			return true;
		// A refused clock reads 0 and ends the sleep: a caller with a
		// timeout tests its condition again, but must not hang.
		uint64_t now = nanotime();
		if (now == 0)
			return false;
		passed = now - start;
	}
	return false;
}

bool note_sleep(struct note *n, uint64_t timeout_ns)
{
	RT_CHECK(note_check(n));
	if (note_spin(n))
		return true;
	if (timeout_ns != UINT64_MAX)
		return note_sleep_until(n, timeout_ns);
	while (!note_wait(n, UINT64_MAX))
		;
	return true;
}

// ---- semaphore ----

// sema_serves tells whether it is the ticket's turn, and sets *serving to the
// ticket that is served.
static bool sema_serves(const struct sema *s, uint32_t ticket,
			uint32_t *serving)
{
	// Pairs with the add in sema_release.
	*serving = atomic_u32_load_acquire(&s->serving);
	return *serving == ticket;
}

// ticket_bit returns the bit with which a ticket's owner sleeps.  All sleepers
// wait for one word to change, each for a different value.
static uint32_t ticket_bit(uint32_t ticket)
{
	return UINT32_C(1) << (ticket % 32);
}

void sema_acquire(struct sema *s)
{
	// Seqcst, like the add in sema_release: either the holder sees this
	// ticket and wakes, or this thread or the futex call sees the new
	// serving.
	uint32_t ticket = atomic_u32_add_seqcst(&s->next, 1) - 1;
	uint32_t serving;

	schedpoint(SCHED_SEMA_ACQUIRE);
	for (int i = 0; i < LOCK_SPINS; i++) {
		if (sema_serves(s, ticket, &serving))
			return;
		atomic_pause();
	}
	while (!sema_serves(s, ticket, &serving))
		oscall_futex_wait_as(&s->serving, serving, ticket_bit(ticket));
}

bool sema_try_acquire(struct sema *s)
{
	uint32_t serving = atomic_u32_load_acquire(&s->serving);

	schedpoint(SCHED_SEMA_TRY_ACQUIRE);
	// serving never falls, and next is never below it.  So if next equals
	// the value read, serving equals it too, and the ticket is served at
	// once.  Pairs with the add in sema_release.
	return atomic_u32_cas_acquire(&s->next, serving, serving + 1);
}

void sema_release(struct sema *s)
{
	// Pairs with the acquires in sema_serves and sema_try_acquire.
	uint32_t serving = atomic_u32_add_seqcst(&s->serving, 1);

	RT_CHECK(sema_check(s));
	schedpoint(SCHED_SEMA_RELEASE);
	// Up to 32 sleepers have a bit each, so only the next one is woken.
	if (atomic_u32_load_seqcst(&s->next) != serving)
		oscall_futex_wake_as(&s->serving, ticket_bit(serving));
}

void sema_fork_child(struct sema *s)
{
	uint32_t serving = atomic_u32_load_relaxed(&s->serving);

	atomic_u32_store_relaxed(&s->next, serving + 1);
}

// ---- invariants ----

const char *mutex_check(const struct mutex *m)
{
	if (atomic_u32_load_relaxed(&m->state) > MUTEX_WAITED)
		return "mutex has an unknown state";
	if (m->rank <= LOCKRANK_NONE || m->rank >= LOCKRANK_COUNT)
		return "mutex has no rank";
	return NULL;
}

const char *note_check(const struct note *n)
{
	if (atomic_u32_load_relaxed(&n->woken) > NOTE_SLEPT)
		return "note has an unknown state";
	return NULL;
}

const char *sema_check(const struct sema *s)
{
	// serving must be read first.  A ticket is drawn before it is served,
	// so a later value of next is not below serving.  Pairs with the add
	// in sema_release.
	uint32_t serving = atomic_u32_load_acquire(&s->serving);
	uint32_t next = atomic_u32_load_relaxed(&s->next);

	if ((next - serving) >> 31 != 0)
		return "semaphore serves a ticket that was not drawn";
	return NULL;
}
