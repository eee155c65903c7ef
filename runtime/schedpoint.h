// schedpoint.h - places where a thread may lose its processor.  Floor 0.
//
// A build with -DRT_SCHED_POINTS makes the steps of a protocol take longer now
// and then, so that orders come up in seconds which a scheduler shows once in
// a year.  They stand between the two steps that a model in test/models names,
// where another thread may come between; not where nobody can.  In every other
// build a point is nothing.
#ifndef RUNTIME_SCHEDPOINT_H
#define RUNTIME_SCHEDPOINT_H

#include "runtime/base.h"

// schedpoint_seed sets what threads draw their choices from that come to their
// first point later.  A seed replays the choices of each thread, and so a
// failure more often than not; the machine adds its own.
void schedpoint_seed(uint64_t seed);

void schedpoint_pass(void);

// schedpoint may be called with locks held and takes none.
RT_INLINE void schedpoint(void)
{
	if (RT_SCHED_BUILD)
		schedpoint_pass();
}

#endif
