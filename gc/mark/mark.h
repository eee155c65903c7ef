// mark.h - marking, from the roots to the end.
//
// Go: gcDrain, markroot (mgcmark.go).
//
// A marker pops words from its stack into a short queue and asks for their
// memory on the way in, so that it has come when they leave: that hides most
// of the cost of random access, and a stack alone, without the queue, does
// not (measured: 2 to 3 times slower).  Nothing recurses, so no shape of the
// object graph can exhaust a stack.
//
// When work buffers cannot grow, the objects whose words did not fit are
// found again by the overflow bits of their pages, and scanned from here,
// where the buffer can be drained in between.
#ifndef GC_MARK_MARK_H
#define GC_MARK_MARK_H

#include "gc/mark/crew.h"
#include "gc/mark/roots.h"
#include "gc/mark/scan.h"

enum { MARK_QUEUE = 8 }; // 8 to 16 in flight reach the memory's floor

// What a mark found.
struct mark_result {
	uint64_t marked_bytes;
	uint64_t marked_objects;
	uint64_t scan_heap;    // bytes of scanned objects
	uint64_t scan_stack;   // bytes of stacks
	uint64_t scan_globals; // bytes of ranges
	uint64_t past_end_objects;
	uint64_t helped_objects; // of those marked, by helpers
	bool want_helpers;	 // there was enough to do for several
};

// mark_all marks all that is reachable.  World stopped, every run retired.
// past_end: a word on a stack or in a register that equals an object's end
// keeps that object.
struct mark_result mark_all(struct rt_proc *p, bool past_end);

// mark_help marks with m, zeroed at first, beside the thread that has
// stopped the world, for as long as that one does; or not at all when it comes
// late.  p: whose statistics count work buffers.
void mark_help(struct marker *m, struct rt_proc *p);

#endif
