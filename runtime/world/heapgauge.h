// heapgauge.h - the gauges that every span moves.
//
// Go: heapInUse, heapFree, heapReleased, totalAlloc, totalFree of
// gcController (mgcpacer.go), pagesInUse of mheap (mheap.go).
//
// Each gauge is the sum of its parts.  The record of every P has one part of
// each gauge.  Only the P's thread moves it, so a move needs no locked
// instruction and no cache line of another thread.  All threads without a P
// share one more part.  A part may be negative.  The record of a detached P
// keeps its parts; its next thread continues them.
//
// Summing moves the parts of all Ps to the shared ones.  The next time that a P
// changes a part, it enters a list (heapgauges.counted).  So the next sum
// visits only Ps that have changed a part.
//
// Only the stopper sums: a live read takes the same numbers from heapstats,
// where they are of one moment.
#ifndef RUNTIME_WORLD_HEAPGAUGE_H
#define RUNTIME_WORLD_HEAPGAUGE_H

#include "runtime/world/proc.h"

enum heapgauge {
	HEAPGAUGE_IN_USE,	// bytes in heap spans
	HEAPGAUGE_FREE,		// bytes of free pages, not released
	HEAPGAUGE_RELEASED,	// bytes of free pages, released or fresh
	HEAPGAUGE_TOTAL_ALLOC,	// bytes of objects ever allocated
	HEAPGAUGE_TOTAL_FREE,	// bytes of objects ever freed
	HEAPGAUGE_PAGES_IN_USE, // pages of heap spans
	HEAPGAUGE_COUNT,
};

static_assert((int)HEAPGAUGE_COUNT == (int)PROC_GAUGES, "a P has one of each");

struct heapgauges {
	// The parts of threads without a P, and what was moved here from Ps.
	RT_CACHE_ALIGNED atomic_u64 no_p[HEAPGAUGE_COUNT];
	atomic_ptr counted; // list of the Ps that the next sum visits
};

RT_GLOBAL struct heapgauges heapgauges;

// heapgauge_reset sets the shared parts to 0 and empties the list, before a
// heap begins.
void heapgauge_reset(void);

// heapgauge_enter puts a P into the list.  The P must not be in it; it is about
// to change a part.
void heapgauge_enter(struct rt_proc *p);

// heapgauge_add adds n, which may be negative, to the part of p, which must be
// the calling thread's P, or NULL if it has none or is in a blocking region.
RT_INLINE void heapgauge_add(struct rt_proc *p, enum heapgauge which, int64_t n)
{
	atomic_u64 *part;

	if (!p) {
		atomic_u64_add_relaxed(&heapgauges.no_p[which], (uint64_t)n);
		return;
	}
	if (RT_UNLIKELY(!p->counted))
		heapgauge_enter(p);
	part = &p->gauges[which];
	atomic_u64_store_relaxed(part,
				 atomic_u64_load_relaxed(part) + (uint64_t)n);
}

// heapgauge_read sums all gauges.  It throws "sysMemStat overflow" if one is
// negative.  The world must be stopped, or no other thread may move them.
void heapgauge_read(uint64_t sums[HEAPGAUGE_COUNT]);

// heapgauge_sum returns the sum of one gauge.  It may be called when
// heapgauge_read may.
uint64_t heapgauge_sum(enum heapgauge which);

// heapgauge_check returns NULL if all invariants hold, otherwise what does not.
// The world must be stopped.  Debug builds call it in each collection.
const char *heapgauge_check(const struct heapgauges *h);

#endif
