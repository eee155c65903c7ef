// latency.h - how long each of many operations took.
//
// Times are exact to 1/64.  They include one read of the clock, 20 to 40 ns.
#ifndef BENCH_WORKLOADS_LATENCY_H
#define BENCH_WORKLOADS_LATENCY_H

#include "harness.h"

enum {
	PARTS_LOG2 = 6, // of a power of two
	PARTS = 1 << PARTS_LOG2,
	POWERS = 40 // ns below 2^46
};

// How many operations took how long.
struct latency {
	uint64_t exact[PARTS];	       // [i]: i ns
	uint64_t count[POWERS][PARTS]; // [k][i]: (PARTS + i) << k ns, and more
	uint64_t longest;	       // ns
};

PEER_INLINE void latency_add(struct latency *l, uint64_t ns)
{
	int power;

	l->longest = ns > l->longest ? ns : l->longest;
	if (ns < PARTS) {
		l->exact[ns]++;
		return;
	}
	power = 63 - __builtin_clzll(ns) - PARTS_LOG2;
	if (power >= POWERS)
		peer_die("an operation took minutes");
	l->count[power][(ns >> power) - PARTS]++;
}

// latency_rank returns a time in microseconds that no operation exceeds, except
// the longest n.
PEER_UNUSED double latency_rank(const struct latency *l, uint64_t n)
{
	uint64_t longer = 0;

	for (int power = POWERS - 1; power >= 0; power--)
		for (int i = PARTS - 1; i >= 0; i--) {
			uint64_t above = (uint64_t)(PARTS + i + 1) << power;

			longer += l->count[power][i];
			if (longer > n)
				return (double)above / 1e3;
		}
	for (int ns = PARTS - 1; ns >= 0; ns--) {
		longer += l->exact[ns];
		if (longer > n)
			return ns / 1e3;
	}
	return 0;
}

// latency_report adds the figures of n operations.
PEER_UNUSED void latency_report(const struct latency *l, uint64_t n)
{
	peer_figure("p50_us", latency_rank(l, n / 2));
	peer_figure("p99_us", latency_rank(l, n / 100));
	peer_figure("p99.9_us", latency_rank(l, n / 1000));
	peer_figure("p99.99_us", latency_rank(l, n / 10000));
	peer_figure("max_us", (double)l->longest / 1e3);
}

// latency_now returns a time in nanoseconds.
PEER_INLINE uint64_t latency_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

#endif
