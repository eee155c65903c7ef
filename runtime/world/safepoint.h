// safepoint.h - where threads stand, and blocking regions.
//
// Go: gopark for a stop, entersyscall, exitsyscall (proc.go).
#ifndef RUNTIME_WORLD_SAFEPOINT_H
#define RUNTIME_WORLD_SAFEPOINT_H

#include "runtime/world/proc.h"

// safepoint_poll parks if a stop is wanted.  t is the calling thread's, not
// in a region and not the stopper.  No lock is held, and nothing is between a
// change and its statistics.  The byte is a hint, on a line that the thread
// has at hand; what it hints at is read with order in proc_park.
RT_INLINE void safepoint_poll(struct rt_thread *t)
{
	if (RT_UNLIKELY(__atomic_load_n(&t->pending, __ATOMIC_RELAXED)))
		proc_park(t->p);
}

#endif
