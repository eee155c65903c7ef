// visit.h - stops that readers of the stopped heap make.
#ifndef GC_HOST_VISIT_H
#define GC_HOST_VISIT_H

#include "runtime/os/throw.h"
#include "runtime/spans/mcache.h"
#include "runtime/world/stw.h"

// A stop for the length of one function, or the caller's own, reused.
struct visit {
	struct rt_proc *p; // the caller's, NULL if it counts as unattached
	int reason;
	bool own; // the caller had stopped the world before
};

// visit_enter stops the world unless the caller has; visit_leave undoes that,
// records the stop, and hands what was reported in it to the warn handler.
// Any thread, also in a blocking region, where it counts as unattached: what
// its region saved must stay as it is.
struct visit visit_enter(int reason);
void visit_leave(const struct visit *v);

// visit_end ends the stop that the calling thread made, wherever in it that
// is, as visit_leave does, and fills *times.
void visit_end(struct rt_stop_times *times);

// visit_report keeps a text that is not empty until the stop has ended; of
// several in one stop the first.  The stopper.
void visit_report(const struct text *t);

// visit_walking tells whether the stopper is inside a walk.
bool visit_walking(void);

// A stop for the length of a walk through the heap.
struct walk {
	struct visit v;
	bool inside; // another walk, in its callback
	bool began;
};

// visit_begin_walk stops the world for an attached thread and empties the
// mcaches, so that each allocated object is marked as such.  visit_end_walk
// undoes that; if the walk has not begun it does nothing.
void visit_begin_walk(struct walk *w);
void visit_end_walk(const struct walk *w);

#endif
