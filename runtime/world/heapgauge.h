// heapgauge.h - the gauges that every span moves.
//
// Go: heapInUse, heapFree, heapReleased, totalAlloc, totalFree of
// gcController (mgcpacer.go), pagesInUse of mheap (mheap.go).
//
// Each is the sum of its parts: one in every P's record, which only the P's
// thread moves, so that no locked instruction and no line of another thread is
// needed; and one of all who have no P.  A part may be negative.  The record
// of a detached P keeps its parts; the next thread goes on with them.
//
// Summing collects the parts of all Ps in the shared one.  A P whose part moves
// for the first time after that enters a list (gauges.counted), so a reader
// looks at those who did something since the last time, and at no others.
//
// Only the stopper sums: a live read takes the same numbers from heapstats,
// where they are of one moment.
#ifndef RUNTIME_WORLD_HEAPGAUGE_H
#define RUNTIME_WORLD_HEAPGAUGE_H

#include "runtime/world/proc.h"

// heapgauge_enter puts a P that is about to move a part into the list.
void heapgauge_enter(struct rt_proc *p);

// heapgauge_add adds n, which may be negative, to the part of p, the calling
// thread's P; NULL: it has none.
RT_INLINE void heapgauge_add(struct rt_proc *p, enum heapgauge which, int64_t n)
{
	atomic_u64 *part;

	if (!p) {
		atomic_u64_add_relaxed(&gauges.no_p[which], (uint64_t)n);
		return;
	}
	if (RT_UNLIKELY(!p->counted))
		heapgauge_enter(p);
	part = &p->gauges[which];
	atomic_u64_store_relaxed(part,
				 atomic_u64_load_relaxed(part) + (uint64_t)n);
}

// heapgauge_read sums all of them; throws "sysMemStat overflow" when one is
// below zero.  World stopped, or no other thread moves them.
void heapgauge_read(uint64_t sums[HEAPGAUGE_COUNT]);

// heapgauge_sum is one of them.
uint64_t heapgauge_sum(enum heapgauge which);

#endif
