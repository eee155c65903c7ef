// metrics.h - statistics by name, from one snapshot.
//
// Go: metrics.go (runtime), runtime/metrics.
//
// One table, sorted by name, describes every metric.  The caller takes the
// snapshot, and may have to wait for that.  This module is arithmetic only: no
// allocation, no lock, no look at the heap.
#ifndef GC_STATS_METRICS_H
#define GC_STATS_METRICS_H

#include <rt/metrics.h>

#include "gc/stats/snapshot.h"

// metrics_count returns the number of metrics.
size_t metrics_count(void);

// metrics_describe writes the description of metric i to *d.  Returns false if
// there is none.  Any thread may call it.
bool metrics_describe(size_t i, rt_metric_desc *d);

// metrics_fill fills n samples as rt_metrics_read says.  s must not be NULL;
// samples may be NULL only if n is 0.  Any thread may call it.
void metrics_fill(const struct snapshot *s, rt_metric_sample *samples,
		  size_t n);

#endif
