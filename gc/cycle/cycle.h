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

#endif
