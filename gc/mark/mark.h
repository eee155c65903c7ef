// mark.h - marking, from the roots to the end.
//
// Go: gcDrain, markroot (mgcmark.go).
//
// If work buffers cannot grow, overflow bits note the pages of the objects
// whose words did not fit.  These objects are scanned again from here, where
// the buffer can be drained in between.
#ifndef GC_MARK_MARK_H
#define GC_MARK_MARK_H

#include "gc/mark/crew.h"
#include "gc/mark/scan.h"
#include "gc/mark/roots.h"

// What a marking found.  Dead objects do not count.
struct mark_result {
	uint64_t marked_bytes;
	uint64_t marked_objects;
	uint64_t scan_heap;    // bytes of scanned objects
	uint64_t scan_stack;   // bytes of stacks
	uint64_t scan_globals; // bytes of root ranges, handles, static data
	uint64_t past_end_objects;
	uint64_t helped_objects; // marked by helpers
	uint64_t helped_cpu_ns;	 // CPU time of helpers
	uint32_t markers;	 // threads that joined, and the opener
	bool want_helpers;	 // there was enough work for several
};

// mark_all marks all that is reachable.  The world must be stopped, and every
// run retired.  With settings()->past_end, a word on a stack or in a register
// that equals an object's end keeps that object.
struct mark_result mark_all(struct rt_proc *p);

// mark_help marks with m beside the thread that has stopped the world, until
// marking is over.  If it comes too late it does nothing.  m must be zeroed
// before its first use.  p is the P whose statistics count work buffers.
void mark_help(struct marker *m, struct rt_proc *p);

#endif
