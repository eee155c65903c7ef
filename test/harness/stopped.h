// stopped.h - single calls in a stop of their own.
//
// A test calls a function that needs a stopped world, and goes on with a
// running one.  Every other attached thread must be blocked.  The stop is in no
// statistic.  In a stop of the test's own these functions make no other.
#ifndef TEST_HARNESS_STOPPED_H
#define TEST_HARNESS_STOPPED_H

#include "runtime/world/heapstats.h"
#include "runtime/world/stw.h"

// stopped_begin stops the world.  Returns false if the caller has it stopped
// already.  stopped_end starts it again if begun is true.
static inline bool stopped_begin(void)
{
	struct rt_proc *p = proc_self();

	if (p && p->stopper)
		return false;
	stw_acquire(p);
	stw_stop(p, RT_STOP_HOST);
	return true;
}

static inline void stopped_end(bool begun)
{
	if (!begun)
		return;
	stw_start(proc_self(), NULL);
	stw_release();
}

// stopped_totals returns the sums that heapstats_unsafe_read writes.
static inline struct heapstats_totals stopped_totals(void)
{
	struct heapstats_totals t;
	bool begun = stopped_begin();

	heapstats_unsafe_read(&t);
	stopped_end(begun);
	return t;
}

#endif
