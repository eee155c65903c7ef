// slices.h - sweeping the rest beside other threads.
//
// Go: the loops over sweepone in gcStart and runtime.GC (mgc.go).
#ifndef GC_HOST_SLICES_H
#define GC_HOST_SLICES_H

#include "gc/cycle/swept.h"

// slices_rest returns when all is swept.  Between two chunks the calling
// thread, whose block is t, may be stopped.  It must be attached, outside
// regions and no-GC stretches, and hold no lock.  After its return a stop may
// come only at a poll of the thread.
void slices_rest(struct rt_thread *t);

#endif
