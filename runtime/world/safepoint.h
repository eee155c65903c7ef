// safepoint.h - the poll at which threads park.
//
// Go: gopark for a stop (proc.go).
#ifndef RUNTIME_WORLD_SAFEPOINT_H
#define RUNTIME_WORLD_SAFEPOINT_H

#include "runtime/world/proc.h"

// safepoint_poll parks the calling thread, whose block is t, if a stop is
// wanted.  The thread must not be in a region, nor be the stopper.  It must
// hold no lock, and every change must be in the statistics.  pending is a hint,
// on a cache line that the thread uses anyway, and is read without order.
// proc_park then reads the state word, with order.  In a no-GC stretch pending
// stays set, for the poll in the outermost rt_nogc_leave.
RT_INLINE void safepoint_poll(struct rt_thread *t)
{
	if (RT_UNLIKELY(__atomic_load_n(&t->pending, __ATOMIC_RELAXED)) &&
	    t->nogc == 0)
		proc_park(t->p);
}

#endif
