// lock.h - mutex, note and semaphore over futex.
//
// Go: lock_futex.go, semaphores of proc.go.
//
// A mutex is held for a short time, and a thread that holds one never parks.
// A note is a one-shot event.  A semaphore serves in order of arrival and may
// be held for long; worldsema is one.  Zeroed memory is a valid note or
// semaphore; a mutex also needs its rank.
#ifndef RUNTIME_OS_LOCK_H
#define RUNTIME_OS_LOCK_H

#include "runtime/base/atomic.h"
#include "runtime/os/lockrank.h"

struct mutex {
	atomic_u32 state; // 0 free, 1 held, 2 held and waited for
	enum lockrank rank;
};

#define RT_MUTEX_INIT(r)                                                       \
	{                                                                      \
		.rank = (r)                                                    \
	}

// mutex_lock acquires m: it spins for a moment, then sleeps.  The caller must
// not hold m already.
void mutex_lock(struct mutex *m);
void mutex_unlock(struct mutex *m);

// mutex_held tells whether any thread holds m.  It is for assertions.
bool mutex_held(const struct mutex *m);

struct note {
	atomic_u32 woken;
};

// The thread that sleeps on a note calls note_clear, while no other thread
// sleeps on it.  It must look for work afterwards, or a wake may be lost.
// note_wake wakes all sleepers and may be called more than once.
void note_clear(struct note *n);
void note_wake(struct note *n);

// note_sleep spins, then sleeps.  Returns true when the note was woken, false
// after timeout_ns (UINT64_MAX: without limit).  If the clock is refused, a
// sleep with a limit ends early.
bool note_sleep(struct note *n, uint64_t timeout_ns);

struct sema {
	atomic_u32 next;    // ticket of the next thread that arrives
	atomic_u32 serving; // ticket of the holder; equals next if it is free
};

void sema_acquire(struct sema *s);
bool sema_try_acquire(struct sema *s);
void sema_release(struct sema *s);

// The child of a fork calls sema_fork_child, which drops the tickets of threads
// that wait.  Its one thread must hold s.
void sema_fork_child(struct sema *s);

// mutex_check, note_check and sema_check return NULL if all invariants hold,
// otherwise what does not.  Other threads may use the lock meanwhile.  Debug
// builds call them in mutex_lock, note_wake, note_sleep and sema_release.
const char *mutex_check(const struct mutex *m);
const char *note_check(const struct note *n);
const char *sema_check(const struct sema *s);

#endif
