// Durations counted in buckets.
#include "runtime/base/histogram.h"

#include <math.h>

#include "runtime/base/bits.h"

// The top bit of a duration selects its bucket, and the HISTOGRAM_SUB_BITS bits
// after it select the counter.  Durations of fewer than HISTOGRAM_MIN_BITS bits
// share bucket 0.  It is as wide as bucket 1, so the same bits of a duration
// select the counter.
void histogram_record(struct histogram *h, int64_t ns)
{
	unsigned len, bucket, sub;

	if (ns < 0) {
		atomic_u64_add_relaxed(&h->underflow, 1);
		return;
	}
	len = bits_len((uint64_t)ns);
	if (len >= HISTOGRAM_MAX_BITS) {
		atomic_u64_add_relaxed(&h->overflow, 1);
		return;
	}
	bucket = len < HISTOGRAM_MIN_BITS ? 0 : len - HISTOGRAM_MIN_BITS + 1;
	if (bucket == 0)
		len = HISTOGRAM_MIN_BITS;
	sub = ((uint64_t)ns >> (len - 1 - HISTOGRAM_SUB_BITS)) % HISTOGRAM_SUBS;
	atomic_u64_add_relaxed(&h->counts[bucket * HISTOGRAM_SUBS + sub], 1);
}

void histogram_read(const struct histogram *h, uint64_t *counts)
{
	counts[0] = atomic_u64_load_relaxed(&h->underflow);
	for (unsigned i = 0; i < HISTOGRAM_COUNTERS; i++)
		counts[1 + i] = atomic_u64_load_relaxed(&h->counts[i]);
	counts[1 + HISTOGRAM_COUNTERS] = atomic_u64_load_relaxed(&h->overflow);
}

// The edges are constant, so any thread may read them at any time.  OCTAVE
// lists the lower edges of the four counters in one bucket, the one for
// durations of len bits.
#define EDGE(ns) ((double)(ns) / 1e9)
#define OCTAVE(len)                                                            \
	EDGE(UINT64_C(4) << (len - 3)), EDGE(UINT64_C(5) << (len - 3)),        \
	    EDGE(UINT64_C(6) << (len - 3)), EDGE(UINT64_C(7) << (len - 3))

static_assert(HISTOGRAM_MIN_BITS == 9 && HISTOGRAM_MAX_BITS == 48 &&
		  HISTOGRAM_SUBS == 4,
	      "the edges below are for this geometry");

static const double edges[] = {
    -INFINITY,	EDGE(0),    EDGE(64),	EDGE(128),  EDGE(192),
    OCTAVE(9),	OCTAVE(10), OCTAVE(11), OCTAVE(12), OCTAVE(13),
    OCTAVE(14), OCTAVE(15), OCTAVE(16), OCTAVE(17), OCTAVE(18),
    OCTAVE(19), OCTAVE(20), OCTAVE(21), OCTAVE(22), OCTAVE(23),
    OCTAVE(24), OCTAVE(25), OCTAVE(26), OCTAVE(27), OCTAVE(28),
    OCTAVE(29), OCTAVE(30), OCTAVE(31), OCTAVE(32), OCTAVE(33),
    OCTAVE(34), OCTAVE(35), OCTAVE(36), OCTAVE(37), OCTAVE(38),
    OCTAVE(39), OCTAVE(40), OCTAVE(41), OCTAVE(42), OCTAVE(43),
    OCTAVE(44), OCTAVE(45), OCTAVE(46), OCTAVE(47), EDGE(UINT64_C(1) << 47),
    INFINITY,
};
static_assert(RT_ARRAY_LEN(edges) == HISTOGRAM_EDGES, "one edge a count, +1");

const double *histogram_edges(void)
{
	return edges;
}
