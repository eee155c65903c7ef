// snapshot.h - every input of the statistics, loaded once.
//
// Go: readmemstats_m (mstats.go), statAggregate (runtime/metrics.go).
//
// The public struct, the metrics and the check of the whole heap (verify.h) use
// the same numbers.  Each is loaded once, so that a sum and its parts come from
// the same loads.
//
// If the world is stopped, all numbers of a snapshot are of the same moment.
// The snapshot is exact if the caches were flushed before.  A live snapshot
// stops no thread: heap is of one moment, the record of collections is of
// another, CPU time of a third, and every other field has a moment of its own.
#ifndef GC_STATS_SNAPSHOT_H
#define GC_STATS_SNAPSHOT_H

#include "runtime/world/heapgauge.h"
#include "runtime/world/heapstats.h"
#include "runtime/world/gcstats.h"

// All fields count since the heap began, or are of the moment.  Units are bytes
// unless the field says otherwise.
struct snapshot {
	struct heapstats_totals heap;
	struct gcstats_cycles cycles;
	struct cpustats cpu; // as of now; only snapshot_metrics fills it in
	struct gcstats_sweep sweep; // the same

	// The sums, by enum heapgauge.  A live snapshot has only IN_USE, FREE
	// and RELEASED, which follow from heap.
	uint64_t heapgauges[HEAPGAUGE_COUNT];

	// Gauges (gauge.h).  In a live snapshot more may be in use than mapped.
	uint64_t heap_live;
	uint64_t heap_dead; // dead objects that are not freed yet
	uint64_t mapped_ready;
	uint64_t mspan_inuse, mspan_sys;
	uint64_t mcache_inuse, mcache_sys;
	uint64_t stacks_sys;
	uint64_t buckhash_sys;
	uint64_t gc_misc_sys;
	uint64_t other_sys;
	uint64_t mappings; // number
	uint64_t external; // outside the heap

	uint64_t max_mappings; // number
	uint64_t heap_goal;    // UINT64_MAX: off
	uint64_t heap_used;    // what counts towards the goal
	uint64_t phase;	       // enum cycle_phase
	uint64_t heap_marked;  // found alive by the last collection
	int gc_percent;	       // -1: off
	uint64_t memory_limit; // INT64_MAX: none
	uint64_t heap_max;     // the address space, if there is no limit
	uint64_t max_procs;
	uint64_t nthreads; // attached
	uint64_t trace_dropped; // lines

	// Live histograms, [GCSTATS_GC] and [GCSTATS_OTHER]; few readers want
	// the counts, so the histograms are not copied.
	const struct histogram *stopping, *total;
};

// snapshot_stopped fills *s, and *pauses unless that is NULL.  The world must
// be stopped.
void snapshot_stopped(struct snapshot *s, struct pausering_copy *pauses);

// snapshot_live fills both without a stop.  Any thread may call it at any time.
// Pauses and cycles are of the same moment.
void snapshot_live(struct snapshot *s, struct pausering_copy *pauses);

// snapshot_metrics fills *s as snapshot_live does, with the CPU time as of now.
void snapshot_metrics(struct snapshot *s);

// snapshot_beside_heap returns the bytes mapped for anything but the heap's
// range.
uint64_t snapshot_beside_heap(const struct snapshot *s);

// snapshot_sys returns all memory obtained from the system.
uint64_t snapshot_sys(const struct snapshot *s);

#endif
