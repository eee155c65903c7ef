// gauge.h - global byte counters, each exact by itself.
//
// Go: sysMemStat (mstats.go) and the byte counters of gcController
// (mgcpacer.go).  doc/statistics.md calls the first five heapgauges G and the
// gauges of mappings S.
//
// A gauge moves only after the system call that it counts has succeeded.
// Several gauges belong to one moment only while the world is stopped.  Those
// that every span moves are kept in parts, one for each P (heapgauge.h).
#ifndef RUNTIME_OS_GAUGE_H
#define RUNTIME_OS_GAUGE_H

#include "runtime/base/atomic.h"

// Moved with every span, and kept in parts.
enum heapgauge {
	HEAPGAUGE_IN_USE,	// bytes in heap spans
	HEAPGAUGE_FREE,		// bytes of free pages, not released
	HEAPGAUGE_RELEASED,	// bytes of free pages released, or never used
	HEAPGAUGE_TOTAL_ALLOC,	// bytes of objects ever allocated
	HEAPGAUGE_TOTAL_FREE,	// bytes of objects ever freed
	HEAPGAUGE_PAGES_IN_USE, // pages of heap spans
	HEAPGAUGE_COUNT,
};

struct gauges {
	// The part of all threads without a P, and sums collected from Ps.
	RT_CACHE_ALIGNED atomic_u64 no_p[HEAPGAUGE_COUNT];
	atomic_ptr counted; // list of Ps that moved a part since the last sum
	// Moved with every 32 KiB allocated; the trigger tests them.
	RT_CACHE_ALIGNED atomic_u64 heap_live; // bytes live or newer
	atomic_u64 stack_inuse; // bytes of spans of interpreter stacks
	// Moved with mappings.
	RT_CACHE_ALIGNED atomic_u64 mapped_ready; // bytes mapped and usable
	atomic_u64 heap_mapped;	 // bytes of the heap's range ever mapped
	atomic_u64 stacks_sys;	 // bytes mapped for thread stacks: 0
	atomic_u64 mspan_sys;	 // bytes mapped for mspans
	atomic_u64 mcache_sys;	 // bytes mapped for mcaches
	atomic_u64 buckhash_sys; // bytes mapped for profiles: 0
	atomic_u64 gc_misc_sys;	 // bytes mapped for bitmaps, tables, summaries
	atomic_u64 other_sys;	 // bytes mapped for everything else
	atomic_u64 mspan_inuse;	 // bytes of mspans handed out
	atomic_u64 mcache_inuse; // bytes of mcaches of attached threads
	atomic_u64 mappings;	 // pieces of address space (sysmem.h)
};

RT_GLOBAL struct gauges gauges;

// gauge_add adds n, which may be negative.  It throws "sysMemStat overflow" if
// the gauge was or becomes negative.
void gauge_add(atomic_u64 *gauge, int64_t n);

// gauge_add_locked does the same without a locked instruction.  All writers of
// the gauge must hold one lock.
void gauge_add_locked(atomic_u64 *gauge, int64_t n);

// gauge_reset sets all gauges to 0, before a heap begins.
void gauge_reset(void);

RT_INLINE uint64_t gauge_load(const atomic_u64 *gauge)
{
	return atomic_u64_load_relaxed(gauge);
}

#endif
