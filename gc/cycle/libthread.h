// libthread.h - the life of a thread of the library.
//
// Go: newm (proc.go).
//
// Such a thread holds a P for its statistics.  It is blocked for as long as it
// lives, unless its work says otherwise, so no stop waits for its sleep.  Its
// stack is no root.  It blocks all signals except those of its own faults.
// Whatever thread makes it, it has the processors that rt_init saw, or those of
// gc_affinity.  A thread that works in a stop has the scheduling of the thread
// that made it.  Its maker waits for its work, perhaps with a priority at which
// no ordinary thread can run beside it.  The thread keeps this scheduling when
// another thread collects.
//
// The host is told of each thread (rt_config.gc_thread_start) before it
// attaches: a stop or a fork does not wait for what the host does then.  Only
// the maker waits, which must be blocked.
#ifndef GC_CYCLE_LIBTHREAD_H
#define GC_CYCLE_LIBTHREAD_H

#include "runtime/os/lock.h"
#include "runtime/world/proc.h"

struct libthread;

// Set in threads of the library, which never attach as threads of the host.
RT_GLOBAL __thread bool libthread_self
    __attribute__((tls_model("initial-exec")));

// What a thread is for.
struct libthread_work {
	const char *name; // as the system shows it, at most 15 characters
	bool ordinary; // has default scheduling, unless the host changes that
	// Called as blocked, before libthread_start returns.  May be NULL.
	void (*begin)(void);
	// Called as blocked, with the thread's P.  The thread ends when it
	// returns.
	void (*serve)(struct libthread *t, struct rt_proc *p);
};

// The thread that starts it owns it.
struct libthread {
	const struct libthread_work *work;
	uint64_t thread;
	struct note begun; // woken by the thread, attached or not
	bool attached;
};

// libthread_start makes a thread, and returns when it is about to serve.
// Returns false if the thread or its memory is refused.  The caller must be
// blocked, or not attached, because the new thread waits for the end of a stop,
// and for the host.  It must hold no lock.
bool libthread_start(struct libthread *t, const struct libthread_work *work);

// libthread_poll lets a wanted stop begin, and returns when it has ended.  p is
// the P of the calling thread of the library, which must be running and have
// nothing in hand.
void libthread_poll(struct rt_proc *p);

// libthread_join waits for the end of a thread that was started, which must
// have been told to end.  The caller must be blocked, because the thread may
// wait for the end of a stop.
void libthread_join(const struct libthread *t);

// libthread_check returns NULL if all invariants hold, otherwise what does not.
// The caller must own t.
const char *libthread_check(const struct libthread *t);

#endif
