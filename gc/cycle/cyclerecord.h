// cyclerecord.h - notes what the collection under way does, step by step.
//
// Go: work.tSweepTerm, tMark, tMarkTerm, tEnd (mgc.go).
//
// The thread that collects calls cyclerecord_step when a step has ended.  A
// step takes the time since the end of the step before it, so no time is left
// out and none counts twice.  A clock of CPU time costs ten times as much as
// one of wall time.  So this module reads one only at both ends of marking and
// at the end of sweeping, and not at all for a small heap.
#ifndef GC_CYCLE_CYCLERECORD_H
#define GC_CYCLE_CYCLERECORD_H

#include <rt/cycle.h>

#include "runtime/world/gcstats.h"
#include "gc/mark/mark.h"
#include "gc/cycle/pacer.h"

// The steps of a collection from when all threads are stopped, in their order.
// In the last one the world runs again.
enum cyclerecord_step {
	CYCLERECORD_PREPARE,
	CYCLERECORD_MARK,
	CYCLERECORD_SWEEP,
	CYCLERECORD_FINISH,
	CYCLERECORD_RELEASE,
	CYCLERECORD_STEPS,
};

// cyclerecord_reset forgets the collections of an earlier heap.
void cyclerecord_reset(void);

// cyclerecord_begin begins the record of a collection; used is pacer_used.  The
// world must have been stopped for it just now.
void cyclerecord_begin(enum rt_cause cause, bool forced, uint64_t used);

// cyclerecord_step notes that a step has ended.
void cyclerecord_step(enum cyclerecord_step step);

// cyclerecord_pause returns the time from the request for the stop until
// CYCLERECORD_FINISH ended.
uint64_t cyclerecord_pause(void);

// cyclerecord_last returns when the last step ended, as nanotime.
uint64_t cyclerecord_last(void);

// cyclerecord_found adds what was marked.
void cyclerecord_found(const struct mark_result *found);

// cyclerecord_paced adds what pacer_collected returned; in_use is the bytes of
// spans of objects when marking ended.  It must be called before anything is
// allocated.
void cyclerecord_paced(const struct pacer_terms *t, uint64_t in_use);

// cyclerecord_counted adds what was passed to pacer_account and to
// gcstats_end_cycle.  The world must still be stopped, and gcstats_end_cycle(c)
// must have been called just before.
void cyclerecord_counted(const struct gcstats_cycle *c);

// cyclerecord_publish makes the record visible and returns its number.  The
// caller must still have the right to stop the world.
uint64_t cyclerecord_publish(void);

#endif
