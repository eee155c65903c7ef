// Flushes what threads keep, then releases all free pages.
#include "gc/host/releaseall.h"

#include "runtime/world/safepoint.h"
#include "runtime/world/gcstats.h"
#include "runtime/spans/scavenge.h"
#include "runtime/spans/stackalloc.h"
#include "gc/cycle/gctrace.h"
#include "gc/host/door.h"
#include "gc/host/visit.h"

// flush_caches frees the pages, span records and stacks that threads keep for
// themselves, so that free pages can be released.  It also releases the memory
// of mcaches that are kept for later threads.
static void flush_caches(void)
{
	struct visit v = visit_enter(RT_STOP_UNKNOWN);

	stackalloc_flush_all(v.p);
	mcache_flush_pages_all();
	visit_leave(&v);
	mcache_release_kept();
}

void releaseall(struct rt_proc *p)
{
	struct scavenge_pass pass = scavenge_begin(true);
	uint64_t released = 0;
	uint32_t chunk = 0;

	RT_ASSERT(p == proc_self() && door_allocating(rt_thread_tls) &&
		  !door_nogc());
	flush_caches();
	while (!pass.over) {
		uint64_t n = scavenge_range(p, &pass, SCAVENGE_STEP);

		// This comes before the poll, where another thread may collect.
		gcstats_forced(n);
		released += n;
		safepoint_poll(rt_thread_tls);
	}
	while (scavenge_tables(&chunk))
		safepoint_poll(rt_thread_tls);
	gctrace_forced(p, released);
}
