// worker.h - the helper threads, and what they do.
//
// Go: gcBgMarkWorker (mgc.go).
//
// A helper is a thread of the library (libthread.h) that is blocked for as long
// as it lives.  It touches the heap only on a call of the thread that has
// stopped the world, as part of that stop.  After the world was started, it
// provides huge pages for live objects (hugepages.h).
#ifndef GC_CYCLE_WORKER_H
#define GC_CYCLE_WORKER_H

#include "gc/mark/mark.h"
#include "gc/cycle/libthread.h"

// The record of a helper, whether the helper exists or not.  The thread that
// makes helpers owns it.
struct worker {
	struct marker marker; // first: cache lines of its own
	struct worker *next;
	struct libthread t;
	bool runs;
};

struct workers {
	atomic_u32 making;  // 1 while a thread makes or ends helpers; it owns
			    // the rest but cpus
	atomic_u32 quit;    // 1: all helpers must end
	atomic_u32 running; // number of helpers
	struct worker *all;
	uint32_t records; // records ever made
	atomic_u32 cpus;  // of the limit of processor time; 0: not read yet.
			  // Threads that read it at the same time write the
			  // same.
};

RT_GLOBAL struct workers workers;

// worker_claim gives the calling thread the sole right to make and end helpers,
// until worker_release or worker_fini.  Returns false if another thread has it.
bool worker_claim(void);
void worker_release(void);

// worker_dismiss tells all helpers to end, and worker_await waits until they
// have.  The caller must have claimed them.  For worker_dismiss it must hold
// the right to stop the world, and for worker_await it must be blocked.
void worker_dismiss(void);
void worker_await(void);

// worker_fini forgets the helpers, which must have ended, when the heap ends.
void worker_fini(void);

// worker_fork_child drops the helpers in the child of a fork, where they do not
// exist.
void worker_fork_child(void);

// worker_provide must be called after a collection, with what cycle_end
// returned as wanted.  If helpers are wanted, it starts those that are missing.
// If one is refused, the next collection that wants helpers tries again.  p is
// the P of the calling thread, which must be attached, and may be stopped
// meanwhile.  The caller must hold no lock.
void worker_provide(struct rt_proc *p, bool wanted);

// worker_advise advises the system of some of the huge pages that are wanted,
// as helpers otherwise do.  p is the P of the calling thread, which may be one
// of the library.  It counts as blocked meanwhile, so no stop waits for the
// system.  The caller must hold no lock.
void worker_advise(struct rt_proc *p);

// worker_processors returns how many processors the library's threads may use.
// The first call reads the limit of processor time from files, so the caller
// must be blocked.
uint32_t worker_processors(void);

// worker_knows_processors tells whether worker_processors reads no file.
bool worker_knows_processors(void);

// worker_check returns NULL if all invariants of a record hold, otherwise what
// does not.  The caller must own it, or have stopped the world while no thread
// makes helpers.  Debug builds call it when a helper was started.
const char *worker_check(const struct worker *w);

// workers_check returns NULL if all invariants hold, otherwise what does not.
// The world must be stopped, or the caller must be the thread that makes
// helpers.  Debug builds call it when helpers were made.
const char *workers_check(const struct workers *all);

#endif
