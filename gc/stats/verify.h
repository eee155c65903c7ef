// verify.h - checks the whole heap.
//
// Go: the checks that its runtime makes one by one at run time.  Everything
// that can be seen with the world stopped is compared: bitmaps with pagewords
// and spans, spans with the page allocator, sets with spans, gauges with sums.
// Nothing is changed.
#ifndef GC_STATS_VERIFY_H
#define GC_STATS_VERIFY_H

#include <rt/world.h>

#include "runtime/spans/mcache.h"

// verify_heap counts the contradictions and describes the first one in words.
// The world must be stopped, all swept, and every mcache flushed.
void verify_heap(struct rt_verify *v);

// verify_walk calls fn for every living object of a kind, in ascending order of
// address, until fn returns RT_WALK_STOP.  kind is a number that the host
// knows; a negative one means every kind.  verify_count returns the number of
// these objects, and of the dead ones of the kind that are not freed yet.  The
// world must be stopped, all swept, and every mcache flushed.
void verify_walk(int kind, rt_walk_fn *fn, void *arg);
uint64_t verify_count(int kind);

#endif
