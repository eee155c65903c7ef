// pacertrace.h - what the pacer knew in a collection, what it decided, and why.
//
// Go: gcpacertrace=1 in startCycle and endCycle (mgcpacer.go) and in sweepone
// (mgcsweep.go).  Marking in the stop has no assists and no background workers,
// and nothing is allocated while it sweeps in the stop.  So the lines tell how
// the goal came about instead of an assist ratio.
//
// The thread that collects notes the figures while it has the right to stop the
// world, if settings.gcpacertrace asks for them.
#ifndef GC_CYCLE_PACERTRACE_H
#define GC_CYCLE_PACERTRACE_H

#include <rt/cycle.h>

#include "runtime/os/throw.h"
#include "gc/mark/mark.h"
#include "gc/cycle/pacer.h"

// Sizes are bytes, times ns.  No check: any numbers are possible.
struct pacertrace {
	uint64_t goal;	    // that the collection began with
	uint64_t used;	    // that counted for it (pacer_used)
	uint64_t allocated; // since the collection before
	uint64_t gc_cpu;    // CPU time of the process in the stop
	uint64_t all_cpu;   // the same since the end of the collection before
	uint64_t scan_heap, scan_stack, scan_globals;
	uint64_t live;		// marked
	uint64_t swept, freed;	// pages of spans
	bool beside;		// these pages are left to the threads
	struct limiter limiter; // after the collection
	struct pacer_terms terms;
	uint64_t next; // the goal that the collection set
};

// pacertrace_reset forgets the collections of an earlier heap.
void pacertrace_reset(void);

// pacertrace_begin notes what led to a collection.  The world must have been
// stopped for it just now.
void pacertrace_begin(uint64_t used);

// pacertrace_paced notes what was found and decided; swept is the bytes of heap
// spans when marking ended.  It must come after pacer_collected, before
// anything is allocated.
void pacertrace_paced(const struct mark_result *found, uint64_t swept);

// pacertrace_accounted notes what the limiter was told, and its answer.  It
// must come after pacer_account.
void pacertrace_accounted(const struct pacer_cpu *cpu);

// pacertrace_take copies what was noted.
void pacertrace_take(struct pacertrace *t);

// pacertrace_format_swept writes a line about the sweep beside the threads that
// preceded the collection c.  Returns false if there was none.
bool pacertrace_format_swept(struct text *t, const rt_cycle *c);

// These write a line about the collection with a number: what it took, its
// sweep, and the next goal.
void pacertrace_format_cpu(struct text *t, const struct pacertrace *c,
			   uint64_t number);
void pacertrace_format_sweep(struct text *t, const struct pacertrace *c,
			     uint64_t number);
void pacertrace_format_goal(struct text *t, const struct pacertrace *c,
			    uint64_t number);

#endif
