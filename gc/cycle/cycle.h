// cycle.h - one collection, from stop to start.
//
// Go: gcStart, gcMarkTermination (mgc.go), with the world stopped throughout.
//
// The steps are: stop, flush every cache, mark, flip (mark bits become alloc
// bits), and sweep everything, or leave that to the threads that run (swept.h).
// rt_config.sweep says which.  With 1, a heap that one thread would sweep
// within 250 us is swept in the stop.  If a thread asked for memory, all is
// swept, and the world is still stopped: it gets some before others take it
// (supply.h).  Work buffers are freed when the world runs, or in the stop if a
// thread asked for memory.  Until then no other thread may stop the world.
#ifndef GC_CYCLE_CYCLE_H
#define GC_CYCLE_CYCLE_H

#include "gc/cycle/ask.h"

// Go: gcphase.
enum cycle_phase {
	CYCLE_OFF,   // all is swept
	CYCLE_MARK,  // the world is stopped, and being marked
	CYCLE_SWEEP, // in the stop or beside the threads
};

// cycle_phase returns where the newest collection is.  Any thread may call it
// at any time; the answer may be old at once.
enum cycle_phase cycle_phase(void);

// cycle_begin stops the world and collects.  The caller must be attached, lead
// (ask.h) and hold no lock.  All must be swept, and stays so, because only a
// leader begins a sweep.  Returns the asks that this collection answers, with
// the world stopped.  Waits as blocked for its turn, and then for all threads
// to stop.
struct ask *cycle_begin(struct rt_proc *p);

// cycle_begin_unasked does the same for a thread of the library that leads
// without an ask and has the right to stop the world.  It has no stack to be
// scanned.
void cycle_begin_unasked(struct rt_proc *p);

// cycle_end records the collection, starts the world, and wakes the threads
// that asked; asked is NULL after cycle_begin_unasked.  It writes a trace line
// if one is wanted.  Returns true if there was enough work for helpers.
bool cycle_end(struct rt_proc *p, struct ask *asked);

#endif
