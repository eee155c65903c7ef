// histogram.h - Go's timeHistogram: durations in buckets.
//
// Go: timeHistogram (histogram.go).
//
// 40 buckets of 4 counters each cover 0 ns to 2^47 ns.  The first two are
// [0, 256) and [256, 512); each further one is twice as wide as the one before.
// There is one more counter below these 160, and one above.
//
// Any thread may record at any time.  A reader sees each counter whole and
// never falling, but not all counters as of one moment.
#ifndef RUNTIME_BASE_HISTOGRAM_H
#define RUNTIME_BASE_HISTOGRAM_H

#include "runtime/base/atomic.h"

enum {
	HISTOGRAM_MIN_BITS = 9,	 // shorter ones, [0, 256), share a bucket
	HISTOGRAM_MAX_BITS = 48, // exclusive: 48 bits and more are overflow
	HISTOGRAM_SUB_BITS = 2,
	HISTOGRAM_SUBS = 1 << HISTOGRAM_SUB_BITS,
	HISTOGRAM_BUCKETS = HISTOGRAM_MAX_BITS - HISTOGRAM_MIN_BITS + 1,
	HISTOGRAM_COUNTERS = HISTOGRAM_BUCKETS * HISTOGRAM_SUBS,
	HISTOGRAM_COUNTS = HISTOGRAM_COUNTERS + 2, // with under and over
	HISTOGRAM_EDGES = HISTOGRAM_COUNTS + 1,
};
static_assert(HISTOGRAM_COUNTS == 162, "as in Go");

// There is no check function: each count may have any value.
struct histogram {
	atomic_u64 counts[HISTOGRAM_COUNTERS];
	atomic_u64 underflow; // negative durations: the clock went back
	atomic_u64 overflow;  // 2^47 ns and more
};

// histogram_record counts one duration of ns nanoseconds.
void histogram_record(struct histogram *h, int64_t ns);

// histogram_read writes HISTOGRAM_COUNTS counts: underflow, the counters in
// order, overflow.
void histogram_read(const struct histogram *h, uint64_t *counts);

// histogram_edges returns HISTOGRAM_EDGES edges in seconds, ascending, from
// -infinity to +infinity.  Count i counts durations in [edge i, edge i+1).
const double *histogram_edges(void);

#endif
