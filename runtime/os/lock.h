// lock.h - mutex, note and semaphore over futex.
//
// Go: lock_futex.go, semaphores of proc.go.
//
// A mutex is held for a short time and never over a stop of the world.  A
// note is a one-shot event.  A semaphore serves in order of arrival and may
// be held for long; worldsema is one.  All are usable when zeroed, but for
// the rank of a mutex.
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

// mutex_lock takes a mutex: spins for a moment, then sleeps.  It does not nest.
void mutex_lock(struct mutex *m);
void mutex_unlock(struct mutex *m);

// mutex_held tells whether anybody holds m, for assertions.
bool mutex_held(const struct mutex *m);

struct note {
	atomic_u32 woken;
};

// note_clear is for who sleeps on the note, while nobody else does.  Look
// for work after clearing: no wake is lost then.  note_wake may be called
// more than once and wakes all sleepers.
void note_clear(struct note *n);
void note_wake(struct note *n);

// note_sleep returns when the note was woken (true), or after timeout_ns
// (false; UINT64_MAX: never).  It spins first.  A clock that is refused ends
// a sleep with timeout early.
bool note_sleep(struct note *n, uint64_t timeout_ns);

struct sema {
	atomic_u32 next;    // the ticket of who comes next
	atomic_u32 serving; // the ticket of who holds it
};

void sema_acquire(struct sema *s);
bool sema_try_acquire(struct sema *s);
void sema_release(struct sema *s);

// sema_fork_child is for the child of a fork whose one thread holds s: tickets
// of other threads are gone.
void sema_fork_child(struct sema *s);

#endif
