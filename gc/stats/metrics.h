// metrics.h - statistics by name, from one snapshot.
//
// Go: metrics.go (runtime), runtime/metrics.
//
// One table, sorted by name, describes every metric.  Who takes the snapshot
// and may wait for it stands above; here is arithmetic only: no allocation,
// no lock, no look at the heap.
#ifndef GC_STATS_METRICS_H
#define GC_STATS_METRICS_H

#include <rt/metrics.h>

#include "runtime/world/heapstats.h"
#include "runtime/world/gcstats.h"

// Everything that a metric is made of.  All fields count since the heap
// began, or are of the moment of the snapshot; bytes where nothing is said.
struct metrics_snapshot {
	struct heapstats_totals heap; // of one moment, by heapstats_read
	struct gcstats_cycles cycles; // of one moment, by gcstats_read_cycles

	// Gauges, each loaded once.
	uint64_t stacks_sys;
	uint64_t mspan_sys, mspan_inuse;
	uint64_t mcache_sys, mcache_inuse;
	uint64_t buckhash_sys;
	uint64_t gc_misc_sys;
	uint64_t other_sys;
	uint64_t mappings; // number
	uint64_t max_mappings;

	uint64_t heap_goal;    // UINT64_MAX: off
	uint64_t heap_marked;  // found alive by the last collection
	int gc_percent;	       // -1: off
	uint64_t memory_limit; // INT64_MAX: none
	uint64_t max_procs;
	uint64_t nthreads; // attached

	// Live histograms, [GCSTATS_GC] and [GCSTATS_OTHER], read only if a
	// sample asks for them.
	const struct histogram *stopping[2];
	const struct histogram *total[2];
};

// metrics_count is the number of metrics.
size_t metrics_count(void);

// metrics_describe writes the description of metric i to *d.  Returns false if
// there is none.  Any thread.
bool metrics_describe(size_t i, rt_metric_desc *d);

// metrics_fill fills n samples as rt_metrics_read says; s and the samples are
// not null.  Any thread.
void metrics_fill(const struct metrics_snapshot *s, rt_metric_sample *samples,
		  size_t n);

#endif
