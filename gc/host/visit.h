// visit.h - stops for the length of one function or one walk.
//
// Go: none.
#ifndef GC_HOST_VISIT_H
#define GC_HOST_VISIT_H

#include "runtime/os/throw.h"
#include "runtime/world/stw.h"
#include "runtime/spans/mcache.h"

// A stop for the length of one function, or the caller's own, reused.
struct visit {
	struct rt_proc *p; // the caller's, NULL if it counts as unattached
	int reason;
	bool own; // the caller had stopped the world before
};

// visit_enter stops the world unless the caller already has.  visit_leave ends
// a stop that visit_enter made, records it, and passes what was reported in it
// to the warn handler.  Any thread may call them, outside a no-GC stretch and a
// callback of a collection.  A thread inside a blocking region counts as
// unattached: the region has saved the thread's registers, and a stop of its
// own would overwrite them.
struct visit visit_enter(int reason);
void visit_leave(const struct visit *v);

// visit_enter_swept is visit_enter with all swept: the caller finds alloc bits
// and statistics as if the last collection had swept in its stop.  A caller
// that may be stopped sweeps before the stop.  The stop itself sweeps, and so
// lasts longer, if the caller may not be stopped, or if another collection has
// come in between and left something to sweep.
struct visit visit_enter_swept(int reason);

// visit_begin stops the world for the host until visit_end.  The calling thread
// must be attached, outside a blocking region, a no-GC stretch and a stop of
// its own.  It cannot allocate meanwhile.  visit_end ends the calling thread's
// own stop as visit_leave does, even inside a walk, and fills *times.
void visit_begin(int reason);
void visit_end(struct rt_stop_times *times);

// visit_report keeps a text for the warn handler until the stop has ended.  If
// there are several texts in one stop, it keeps the first that is not empty.
// Only the stopper may call it.
void visit_report(const struct text *t);

// visit_walking tells whether the stopper is inside a walk.
bool visit_walking(void);

// A stop for the length of a walk through the heap.
struct walk {
	struct visit v;
	bool inside; // another walk, in whose callback this one is
	bool began;
};

// visit_begin_walk stops the world for an attached thread and flushes the
// mcaches, so that only allocated objects have alloc bits.  visit_end_walk ends
// the walk, and the stop if visit_begin_walk made it.  If the walk has not
// begun, it does nothing.
void visit_begin_walk(struct walk *w);
void visit_end_walk(const struct walk *w);

#endif
