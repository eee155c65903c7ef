// world.h - stops that readers of the stopped heap make.
#ifndef GC_HOST_VISIT_H
#define GC_HOST_VISIT_H

#include "runtime/world/stw.h"
#include "runtime/os/throw.h"

// A stop for the length of one function, or the caller's own, reused.
struct world_visit {
	struct rt_proc *p; // the caller's, NULL if it counts as unattached
	int reason;
	bool own; // the caller had stopped the world before
};

// world_enter stops the world unless the caller has; world_leave undoes that,
// records the stop, and hands what was reported in it to the warn handler.
// Any thread, also in a blocking region, where it counts as unattached: what
// its region saved must stay as it is.
struct world_visit world_enter(int reason);
void world_leave(const struct world_visit *v);

// world_end ends the stop that the calling thread made, wherever in it that
// is, as world_leave does, and fills *times.
void world_end(struct rt_stop_times *times);

// world_report keeps a text that is not empty until the stop has ended; of
// several in one stop the first.  The stopper.
void world_report(const struct text *t);

#endif
