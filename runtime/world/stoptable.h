// stoptable.h - how many stops there were for each reason, and what they took.
//
// Go: none; sched.stwTotalTimeGC and its like (proc.go) know only two sorts.
//
// The thread that has the right to stop the world writes, when its stop has
// ended, so there is one writer.  Readers need neither a stop nor a lock: the
// writer raises begun before it changes a row, and done afterwards.  A reader
// that finds the two apart, or finds that they changed, reads again.
#ifndef RUNTIME_WORLD_STOPTABLE_H
#define RUNTIME_WORLD_STOPTABLE_H

#include <rt/world.h>

#include "runtime/base/atomic.h"

enum {
	STOPTABLE_HOST = RT_STOP_KIND_UNREGISTER + 1, // row of the host's
	STOPTABLE_ROWS,
	STOPTABLE_WORDS = sizeof(rt_stops) / sizeof(uint64_t),
};

static_assert((int)STOPTABLE_HOST <= (int)RT_STOP_HOST,
	      "the host's are the last");

// One row for each reason of the library, and one for those of the host.
struct stoptable {
	struct {
		atomic_u64 begun; // stops whose recording has begun
		atomic_u64 word[STOPTABLE_WORDS]; // an rt_stops
		atomic_u64 done;		  // stops recorded
	} row[STOPTABLE_ROWS];
};

RT_GLOBAL struct stoptable stoptable;

// stoptable_reset forgets the stops of an earlier heap.
void stoptable_reset(struct stoptable *t);

// stoptable_row returns the row of a reason, or -1 if there is no such reason.
int stoptable_row(int reason);

// stoptable_add records a stop.  The caller must have the right to stop the
// world, and there must be such a reason.
void stoptable_add(struct stoptable *t, int reason,
		   const struct rt_stop_times *times);

// stoptable_read copies a row as of one moment.  Any thread may call it at any
// time; it retries while a stop is recorded.
void stoptable_read(const struct stoptable *t, int row, rt_stops *out);

// stoptable_check returns NULL if all invariants hold, otherwise what does not.
// No stop may be recorded meanwhile.  Debug builds call it in stoptable_add.
const char *stoptable_check(const struct stoptable *t);

#endif
