// pacertrace.h - what the pacer knew in a collection, what it decided, and why,
// as lines of text.
//
// Go: gcpacertrace=1 in startCycle and endCycle (mgcpacer.go) and in sweepone
// (mgcsweep.go).  Marking in the stop has no assists and no background workers,
// and nothing is allocated while a collection sweeps in its stop.  So instead
// of an assist ratio the lines tell how the goal came about.
//
// All figures are those of the record (cyclerecord.h).
#ifndef GC_CYCLE_PACERTRACE_H
#define GC_CYCLE_PACERTRACE_H

#include <rt/cycle.h>

#include "runtime/os/throw.h"

// pacertrace_format_swept writes a line about the sweep that took place beside
// the threads before the collection c.  Returns false, and writes nothing, if
// there was no such sweep.
bool pacertrace_format_swept(struct text *t, const rt_cycle *c);

// These write a line about a collection: what it took, its sweep, and the next
// goal.
void pacertrace_format_cpu(struct text *t, const rt_cycle *c);
void pacertrace_format_sweep(struct text *t, const rt_cycle *c);
void pacertrace_format_goal(struct text *t, const rt_cycle *c);

#endif
