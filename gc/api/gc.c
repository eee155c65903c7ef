// Collections, memory released to the system, and the host's handlers.
#include <rt/gc.h>

#include "runtime/os/settings.h"
#include "runtime/os/gauge.h"
#include "runtime/world/safepoint.h"
#include "runtime/world/gcstats.h"
#include "runtime/pages/arena.h"
#include "runtime/spans/scavenge.h"
#include "runtime/spans/stackalloc.h"
#include "gc/cycle/pacer.h"
#include "gc/cycle/release.h"
#include "gc/cycle/gctrace.h"
#include "gc/cycle/scavenger.h"
#include "gc/host/door.h"
#include "gc/host/handlers.h"
#include "gc/host/slices.h"
#include "gc/host/visit.h"
#include "gc/host/finalize.h"
#include "gc/host/supply.h"

int rt_gc(void)
{
	struct rt_proc *p = proc_self();
	int error = door_blocking(false);

	if (error)
		return error;
	supply_collect(p, ASK_FORCED);
	slices_rest(rt_thread_tls);
	handlers_warn_pending();
	finalize_tell();
	handlers_tell_notices();
	return RT_OK;
}

uint64_t rt_heap_live(void)
{
	// The sum may be below zero for a while (mcache_publish_live).
	int64_t live = (int64_t)gauge_load(&gauges.heap_live);

	return live > 0 ? (uint64_t)live : 0;
}

int rt_set_gc_percent(int percent, int *old)
{
	int error = door_attached(false);
	int before;

	if (error)
		return error;
	before = pacer_set_percent(percent < 0 ? -1 : percent);
	scavenger_changed();
	if (old)
		*old = before;
	return RT_OK;
}

int rt_set_heap_min(size_t bytes, size_t *old)
{
	int error = door_attached(false);
	size_t before;

	if (error)
		return error;
	if (bytes > SETTINGS_MAX_HEAP)
		return RT_EINVAL;
	before = pacer_set_heap_min(settings_heap_min(bytes));
	scavenger_changed();
	if (old)
		*old = before;
	return RT_OK;
}

int rt_set_memory_limit(int64_t bytes, int64_t *old)
{
	int error = door_attached(false);
	uint64_t before;

	if (error)
		return error;
	if (bytes < 0)
		return RT_EINVAL;
	before = pacer_set_limit((uint64_t)bytes);
	release_again();
	scavenger_changed();
	if (old)
		*old = (int64_t)before;
	return RT_OK;
}

int rt_set_heap_max(size_t bytes, size_t *old)
{
	int error = door_attached(false);
	uint64_t before;

	if (error)
		return error;
	before = pacer_set_heap_max(bytes < arena.reserved ? bytes : 0);
	scavenger_changed();
	if (old)
		*old = before ? before : arena.reserved;
	return RT_OK;
}

int rt_adjust_external(int64_t delta)
{
	int error = door_attached(false);

	if (error)
		return error;
	supply_adjust_external(rt_thread_tls->mc, delta);
	return RT_OK;
}

// flush_caches flushes the pages, spans and stacks that threads keep for
// themselves, so that they can be released.
static void flush_caches(void)
{
	struct visit v = visit_enter(RT_STOP_UNKNOWN);

	stackalloc_flush_all(v.p);
	mcache_flush_pages_all();
	visit_leave(&v);
	mcache_release_kept();
}

int rt_free_os_memory(void)
{
	int error = rt_gc();
	struct rt_proc *p = proc_self();
	struct scavenge_pass pass = scavenge_begin(true);
	uint64_t released = 0;
	uint32_t chunk = 0;

	// A handler of the host may have run.
	if (!error)
		error = door_blocking(false);
	if (error)
		return error;
	flush_caches();
	while (!pass.over) {
		uint64_t n = scavenge_range(p, &pass, SCAVENGE_STEP);

		// At a poll another thread may collect.
		gcstats_forced(n);
		released += n;
		safepoint_poll(rt_thread_tls);
	}
	while (scavenge_tables(&chunk))
		safepoint_poll(rt_thread_tls);
	gctrace_forced(p, released);
	return RT_OK;
}

// ---- handlers ----

int rt_set_oom_handler(rt_oom_fn *fn, void *arg)
{
	if (door_stopper())
		return door_answer(RT_EBUSY);
	handlers_set_oom(fn, arg);
	return RT_OK;
}

int rt_set_warn_handler(rt_text_fn *fn, void *arg)
{
	if (door_stopper())
		return door_answer(RT_EBUSY);
	handlers_set_warn(fn, arg);
	return RT_OK;
}

int rt_set_fatal_handler(rt_text_fn *fn, void *arg)
{
	if (door_stopper())
		return door_answer(RT_EBUSY);
	throw_set_handler(fn, arg);
	return RT_OK;
}
