// slices.h - sweeping the rest beside other threads.
//
// Go: the loops over sweepone in gcStart and runtime.GC (mgc.go).
#ifndef GC_HOST_SLICES_H
#define GC_HOST_SLICES_H

#include "gc/cycle/swept.h"

// slices_rest returns when all is swept.  Between two chunks, and while it
// advises the system of huge pages (scavenger_advise), the calling thread,
// whose block is t, may be stopped.  It must be attached, outside regions and
// no-GC stretches, and hold no lock.  After its return a stop may come only at
// a poll of the thread.
void slices_rest(struct rt_thread *t);

// slices_help sweeps a chunk if the library has no thread that sweeps.  t is as
// for slices_rest.  It does not poll.
void slices_help(struct rt_thread *t);

// slices_await sleeps, as blocked, until all is swept, or for a millisecond.  t
// must be the calling thread's, which holds no lock and has found no chunk to
// sweep.  In a no-GC stretch it is not blocked: then no stop can come, and no
// thread is stopped in the middle of a chunk.
void slices_await(struct rt_thread *t);

#endif
