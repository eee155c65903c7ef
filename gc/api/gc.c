// Collections, memory released to the system, and the host's handlers.
#include <rt/gc.h>

#include "runtime/os/settings.h"
#include "runtime/os/gauge.h"
#include "runtime/pages/arena.h"
#include "gc/cycle/pacer.h"
#include "gc/cycle/release.h"
#include "gc/cycle/scavenger.h"
#include "gc/host/door.h"
#include "gc/host/handlers.h"
#include "gc/host/slices.h"
#include "gc/host/finalize.h"
#include "gc/host/supply.h"
#include "gc/host/releaseall.h"

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

int rt_free_os_memory(void)
{
	int error = rt_gc();

	// A handler of the host may have run.
	if (!error)
		error = door_blocking(false);
	if (!error)
		releaseall(proc_self());
	return error;
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
