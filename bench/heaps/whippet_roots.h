// whippet_roots.h - the roots that a program registers with Whippet's
// collector.
//
// Both the program (whippet.h) and the collector (whippet_embedder.h) use them.
#ifndef BENCH_HEAPS_WHIPPET_ROOTS_H
#define BENCH_HEAPS_WHIPPET_ROOTS_H

#include <stdint.h>

// One range of words, or none; the workloads hold one at a time.
struct gc_heap_roots {
	uintptr_t lo, hi;
};

#endif
