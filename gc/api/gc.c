// What the host can tell the collector.
#include <rt/gc.h>
#include <rt/roots.h>

#include "gc/host/door.h"
#include "gc/cycle/pacer.h"
#include "gc/mark/roots.h"
#include "runtime/world/safepoint.h"
#include "gc/host/supply.h"
#include "gc/host/visit.h"
#include "runtime/spans/scavenge.h"
#include "runtime/spans/stackalloc.h"
#include "runtime/world/stw.h"

int rt_gc(void)
{
	struct rt_proc *p = proc_self();
	int error = door_attached(false);

	if (error)
		return error;
	supply_collect(p, ASK_FORCED);
	door_warn_mappings();
	return RT_OK;
}

int rt_set_gc_percent(int percent, int *old)
{
	int error = door_attached(false);
	int before;

	if (error)
		return error;
	before = pacer_set_percent(percent < 0 ? -1 : percent);
	if (old)
		*old = before;
	return RT_OK;
}

// give_back_caches returns what threads keep for themselves, so that it can be
// released: pages, spans and stacks.
static void give_back_caches(void)
{
	struct world_visit v = world_enter(RT_STOP_UNKNOWN);

	stackalloc_flush_all(v.p);
	mcache_flush_pages_all();
	world_leave(&v);
	mcache_trim();
}

int rt_free_os_memory(void)
{
	int error = rt_gc();
	struct rt_proc *p = proc_self();
	struct scavenge_pass pass = scavenge_begin(true);
	uint32_t chunk = 0;

	if (error)
		return error;
	give_back_caches();
	while (scavenge_run(p, &pass, SCAVENGE_STEP) != 0)
		safepoint_poll(rt_thread_tls);
	while (scavenge_tables(&chunk))
		safepoint_poll(rt_thread_tls);
	return RT_OK;
}

int rt_roots_add(void *lo, void *hi, int flags)
{
	int error;

	if (!lo || !hi || lo >= hi || (uintptr_t)lo % 8 != 0 ||
	    (uintptr_t)hi % 8 != 0 ||
	    (flags != RT_ROOT_EXACT && flags != RT_ROOT_WORDS))
		return RT_EINVAL;
	error = door_attached(false);
	if (error)
		return error;
	if (!roots_add((uintptr_t)lo, (uintptr_t)hi, (unsigned)flags))
		error = RT_ENOMEM;
	door_warn_mappings();
	return error;
}

static int remove_range(void *lo, void *hi)
{
	return roots_remove((uintptr_t)lo, (uintptr_t)hi) ? RT_OK : RT_ENOENT;
}

// remove_beside_stops is for a thread that no stop waits for.  With the right
// to stop the world it keeps every stop, and the end of the heap, away.
static int remove_beside_stops(void *lo, void *hi)
{
	int error = RT_ESTATE;

	stw_acquire(NULL);
	if (door_ready())
		error = remove_range(lo, hi);
	stw_release();
	return error;
}

int rt_roots_remove(void *lo, void *hi)
{
	const struct rt_proc *p = proc_self();
	int error;

	if (door_ready() && (!p || p->in_region))
		return remove_beside_stops(lo, hi);
	error = door_attached(false);
	return error ? error : remove_range(lo, hi);
}
