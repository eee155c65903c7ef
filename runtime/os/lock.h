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

struct rt_mutex {
	atomic_u32 state; // 0 free, 1 held, 2 held and waited for
	enum lockrank rank;
};

#define RT_MUTEX_INIT(r)                                                       \
	{                                                                      \
		.rank = (r)                                                    \
	}

// rt_lock takes a mutex: spins for a moment, then sleeps.  It does not nest.
void rt_lock(struct rt_mutex *m);
void rt_unlock(struct rt_mutex *m);

// rt_lock_held tells whether anybody holds m, for assertions.
bool rt_lock_held(const struct rt_mutex *m);

struct rt_note {
	atomic_u32 woken;
};

// rt_note_clear is for who sleeps on the note, while nobody else does.  Look
// for work after clearing: no wake is lost then.  rt_note_wake may be called
// more than once and wakes all sleepers.
void rt_note_clear(struct rt_note *n);
void rt_note_wake(struct rt_note *n);

// rt_note_sleep returns when the note was woken (true), or after timeout_ns
// (false; UINT64_MAX: never).  It spins first.  A clock that is refused ends
// a sleep with timeout early.
bool rt_note_sleep(struct rt_note *n, uint64_t timeout_ns);

struct rt_sema {
	atomic_u32 next;    // the ticket of who comes next
	atomic_u32 serving; // the ticket of who holds it
};

void rt_sema_acquire(struct rt_sema *s);
bool rt_sema_try_acquire(struct rt_sema *s);
void rt_sema_release(struct rt_sema *s);

// rt_sema_forked is for the child of a fork whose one thread holds s: tickets
// of other threads are gone.
void rt_sema_forked(struct rt_sema *s);

#endif
