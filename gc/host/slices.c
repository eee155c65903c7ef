// Sweeps chunk by chunk, and polls in between.
#include "gc/host/slices.h"

#include "runtime/os/oscall.h"
#include "runtime/os/schedpoint.h"
#include "runtime/world/safepoint.h"
#include "gc/cycle/worker.h"

void slices_rest(struct rt_thread *t)
{
	if (RT_LIKELY(swept_over()))
		return;
	while (!swept_over()) {
		bool swept_one = swept_slice(t->p);

		if (swept_over())
			break; // a poll may bring another sweep
		// Another thread may be in the last chunk.
		if (!swept_one)
			oscall_yield();
		schedpoint(SCHED_SLICES_REST);
		safepoint_poll(t);
	}
	// The end of the sweep has chosen huge pages.
	worker_provide(t->p, false);
}
