// gauge.h - global byte counters, each exact by itself.
//
// Go: sysMemStat (mstats.go) and the byte counters of gcController
// (mgcpacer.go).  doc/statistics.md marks the first five heapgauges with G, and
// the gauges that end in _sys with S.
//
// A gauge moves only after the system call that it counts has succeeded.
// The values of several gauges are of one moment only while the world is
// stopped.  The gauges that every span moves are in heapgauge.h.
#ifndef RUNTIME_OS_GAUGE_H
#define RUNTIME_OS_GAUGE_H

#include "runtime/base/atomic.h"

struct gauges {
	// The trigger tests these, except heap_dead.
	// heap_live counts the bytes of objects that the last collection found
	// alive, or that were allocated since.  A cache counts its small
	// objects there in batches of 32 KiB (mcache_publish_live), so
	// heap_live may be below zero for a while.
	RT_CACHE_ALIGNED atomic_u64 heap_live;
	atomic_u64 stack_inuse; // bytes of spans of interpreter stacks
	atomic_u64 heap_dead;	// bytes of dead objects, not in heap_live
	atomic_u64 external;	// bytes that objects own outside the heap
	// Most of these move with mappings.
	RT_CACHE_ALIGNED atomic_u64 mapped_ready; // bytes mapped and usable
	atomic_u64 heap_mapped;	 // bytes of the heap's range ever mapped
	atomic_u64 stacks_sys;	 // bytes mapped for thread stacks: 0
	atomic_u64 mspan_sys;	 // bytes mapped for mspans
	atomic_u64 mcache_sys;	 // bytes mapped for mcaches
	atomic_u64 buckhash_sys; // bytes mapped for profiles: 0
	atomic_u64 gc_misc_sys;	 // bytes mapped for bitmaps, tables, summaries
	atomic_u64 other_sys;	 // bytes mapped for everything else
	atomic_u64 mspan_inuse;	 // bytes of mspans in use or in stock
	atomic_u64 mcache_inuse; // bytes of mcaches of attached threads
	atomic_u64 mappings;	 // pieces of address space (sysmem.h)
};

RT_GLOBAL struct gauges gauges;

// gauge_add adds n, which may be negative.  It throws "sysMemStat overflow" if
// the gauge was or becomes negative.
void gauge_add(atomic_u64 *gauge, int64_t n);

// gauge_add_locked is gauge_add without a locked instruction.  All writers of
// the gauge must hold one lock.
void gauge_add_locked(atomic_u64 *gauge, int64_t n);

// gauge_adjust adds n to a gauge that the host moves.  The gauge stays from 0
// to INT64_MAX, whatever the host adds.
void gauge_adjust(atomic_u64 *gauge, int64_t n);

// gauge_reset sets all gauges to 0, before a heap begins.
void gauge_reset(void);

RT_INLINE uint64_t gauge_load(const atomic_u64 *gauge)
{
	return atomic_u64_load_relaxed(gauge);
}

// gauge_check returns NULL if the value of one gauge of g is possible,
// otherwise what is wrong with it.  In debug builds gauge_add, gauge_add_locked
// and gauge_adjust call it.
const char *gauge_check(const struct gauges *g, const atomic_u64 *gauge);

// gauges_check returns NULL if all invariants hold, otherwise what does not.
// The world must be stopped, and all mcaches must have been flushed: before
// that heap_live may be below zero.  Debug builds call it in each collection.
const char *gauges_check(const struct gauges *g);

#endif
