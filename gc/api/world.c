// Stops that the host makes, and what it may do in them.
#include <rt/kind.h>
#include <rt/world.h>

#include <string.h>

#include "runtime/os/settings.h"
#include "runtime/world/stoptable.h"
#include "runtime/spans/kinds.h"
#include "gc/stats/verify.h"
#include "gc/host/door.h"
#include "gc/host/visit.h"
#include "gc/host/listing.h"

int rt_stop_the_world(int reason)
{
	int error;

	if (reason < RT_STOP_HOST)
		return RT_EINVAL;
	error = door_blocking(false);
	if (error)
		return error;
	visit_begin(reason);
	return RT_OK;
}

int rt_start_the_world(rt_stop_times *times)
{
	struct rt_stop_times t;

	if (!door_ready())
		return RT_ESTATE;
	if (!door_stopper() || door_collecting() || visit_walking())
		return door_answer(RT_EPERM);
	visit_end(&t);
	if (times)
		*times = t;
	return RT_OK;
}

int rt_world_stopped(void)
{
	return stw_stopped();
}

int rt_read_stops_sized(int reason, rt_stops *s, size_t size)
{
	int row = stoptable_row(reason);
	rt_stops stops;
	int error;

	if (!s || row < 0 || size < offsetof(rt_stops, stopping_ns) ||
	    size > SETTINGS_MAX_STRUCT)
		return RT_EINVAL;
	error = door_any();
	if (error)
		return error;
	stoptable_read(&stoptable, row, &stops);
	stops.struct_size = base_min(size, sizeof stops);
	memset(s, 0, size);
	memcpy(s, &stops, stops.struct_size);
	return RT_OK;
}

// call_each ends its record even when fn is left by unwinding.
static void call_each(rt_walk_fn *fn, void *arg)
{
	// clang counts a cleanup as no use.
	__attribute__((cleanup(hostcall_end), unused)) struct hostcall before =
	    hostcall_begin("walk callback", NULL, (uintptr_t)fn);

	verify_walk(-1, fn, arg);
}

int rt_heap_walk(rt_walk_fn *fn, void *arg)
{
	// visit_end_walk runs even when the host's function is left by
	// unwinding.
	__attribute__((cleanup(visit_end_walk))) struct walk w = {.began =
								      false};
	int error;

	if (!fn)
		return RT_EINVAL;
	error = door_blocking(true);
	if (error)
		return error;
	visit_begin_walk(&w);
	call_each(fn, arg);
	return RT_OK;
}

void **rt_heap_list(int kind, rt_pick_fn *pick, void *arg, size_t *n)
{
	if (!n || door_blocking(false) != RT_OK || kind < -1 ||
	    kind > RT_KIND_MAX ||
	    (kind > RT_TYPED && !kinds_exists((unsigned)kind)))
		return NULL;
	return listing_make(kind, pick, arg, n);
}

int rt_heap_verify(struct rt_verify *out)
{
	struct rt_verify result;
	struct visit v;
	int error;

	if (!out)
		return RT_EINVAL;
	error = door_blocking(true);
	if (error)
		return error;
	v = visit_enter_swept(RT_STOP_HEAP_VERIFY);
	mcache_flush_all(v.p);
	verify_heap(&result);
	visit_leave(&v);
	*out = result;
	return RT_OK;
}
