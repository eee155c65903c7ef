// gauge.h - global byte counters, each exact by itself.  Floor 1.
//
// Go: sysMemStat (mstats.go) and the byte counters of gcController
// (mgcpacer.go); go-facts of this project call them groups G, S and L.
//
// A gauge moves only after the system call that it counts has succeeded.
// Each is one atomic word; only with the world stopped do several of them
// belong to one moment.  Those that every span changes and those that only
// mappings change stand on different lines.
#ifndef RUNTIME_GAUGE_H
#define RUNTIME_GAUGE_H

#include "runtime/atomic.h"

struct gauges {
	// Moved with every span.
	RT_CACHE_ALIGNED atomic_u64 heap_in_use; // bytes in heap spans
	atomic_u64 heap_free;	  // bytes of free pages, not released
	atomic_u64 heap_released; // bytes of free pages given back, or fresh
	atomic_u64 total_alloc;	  // bytes of objects ever allocated
	atomic_u64 total_free;	  // bytes of objects ever freed
	atomic_u64 pages_in_use;  // pages of heap spans
	// Moved with every 32 KiB allocated; the trigger tests it.
	RT_CACHE_ALIGNED atomic_u64 heap_live; // bytes live or newer
	// Moved with mappings.
	RT_CACHE_ALIGNED atomic_u64 mapped_ready; // bytes mapped and usable
	atomic_u64 stacks_sys;	 // bytes mapped for thread stacks: 0
	atomic_u64 mspan_sys;	 // bytes mapped for mspans
	atomic_u64 mcache_sys;	 // bytes mapped for mcaches
	atomic_u64 buckhash_sys; // bytes mapped for profiles: 0
	atomic_u64 gc_misc_sys;	 // bytes mapped for bitmaps, tables, summaries
	atomic_u64 other_sys;	 // bytes mapped for everything else
	atomic_u64 mspan_inuse;	 // bytes of mspans handed out
	atomic_u64 mcache_inuse; // bytes of mcaches of attached threads
};

RT_GLOBAL struct gauges gauges;

// gauge_add adds n, which may be negative, and throws "sysMemStat overflow"
// when the sum is or was below zero.
void gauge_add(atomic_u64 *gauge, int64_t n);

// gauge_reset sets all gauges to 0, before a heap begins.
void gauge_reset(void);

RT_INLINE uint64_t gauge_load(const atomic_u64 *gauge)
{
	return atomic_u64_load_relaxed(gauge);
}

#endif
