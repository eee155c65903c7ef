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
		// Another thread may be in the last chunk.
		if (!swept_slice(t->p))
			oscall_yield();
		schedpoint(SCHED_SLICES_REST);
		safepoint_poll(t);
	}
	// The end of the sweep has chosen huge pages.
	worker_provide(t->p, false);
}
