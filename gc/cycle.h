// cycle.h - one collection, from stop to start.  Floor 8.
//
// Go: gcStart, gcMarkTermination (mgc.go), with the world stopped throughout.
//
// stop, finish sweeping, retire every run and tiny block, mark, flip: mark
// bits become alloc bits, sweep everything, record, start.
#ifndef GC_CYCLE_H
#define GC_CYCLE_H

#include "runtime/proc.h"

// gccycle_collect runs one collection on the calling attached thread, unless
// it waited for another thread's and finds none due any more.  forced: always
// one, counted as the host's.  Waits for threads to stand, as blocked; no lock
// is held.  True: there was enough to do for helpers.
bool gccycle_collect(struct rt_proc *p, bool forced);

// gccycle_force runs one that is not counted as the host's.
bool gccycle_force(struct rt_proc *p);

// gccycle_set_past_end configures the rule of mark.h, before the first cycle.
void gccycle_set_past_end(bool on);

// gccycle_set_checkmark has every marking checked (checkmark.h), likewise.
void gccycle_set_checkmark(bool on);

#endif
