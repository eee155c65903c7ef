// worker.h - makes the helper threads, and is what they do.
//
// Go: gcBgMarkWorker (mgc.go).
//
// A helper holds a P for its statistics, and is blocked for as long as it
// lives: no stop waits for it.  It touches the heap only on a call of the
// thread that has stopped the world, as part of that stop; when the world is
// started again it has huge pages put behind what lives (hugepages.h).  It
// blocks all signals, and its stack is no root.
#ifndef GC_CYCLE_WORKER_H
#define GC_CYCLE_WORKER_H

#include "runtime/world/proc.h"

// worker_fini ends all helpers.  The caller must not be attached.
void worker_fini(void);

// worker_bytes is what the helpers' records take of gc_misc_sys, which moves
// only while its mover runs.
size_t worker_bytes(void);

// worker_fork_child is for the child of a fork: the helpers are the parent's.
void worker_fork_child(void);

// worker_provide comes after a collection.  It makes the helpers that are
// missing, if they are wanted: what the collection returned.  If one is
// refused, the next collection will ask again.  Where there is no helper it
// advises some of the huge pages that are wanted, which else helpers do.  p is
// the caller's P, which may stop meanwhile; no lock is held.
void worker_provide(struct rt_proc *p, bool wanted);

#endif
