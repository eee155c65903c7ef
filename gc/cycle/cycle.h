// cycle.h - one collection, from stop to start.
//
// Go: gcStart, gcMarkTermination (mgc.go), with the world stopped throughout.
//
// stop, finish sweeping, empty every cache, mark, flip: mark bits become alloc
// bits, sweep everything.  The world is still stopped then, so that a thread
// that asked for memory gets some before others take it (supply.h).
#ifndef GC_CYCLE_CYCLE_H
#define GC_CYCLE_CYCLE_H

#include "gc/cycle/ask.h"

// cycle_begin stops the world and collects.  The caller, an attached thread,
// leads (ask.h).  Returns the asks that this collection answers, with the world
// stopped.  Waits for threads to stand, as blocked; no lock is held.
struct ask *cycle_begin(struct rt_proc *p);

// cycle_end records the collection, starts the world, and wakes the threads
// that asked.  True: there was enough to do for helpers.
bool cycle_end(struct rt_proc *p, struct ask *asked);

// cycle_set_past_end configures the rule of mark.h, before the first cycle.
void cycle_set_past_end(bool on);

// cycle_set_checkmark has every marking checked (checkmark.h), likewise.
void cycle_set_checkmark(bool on);

#endif
