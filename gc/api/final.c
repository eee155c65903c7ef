// Destructors.
#include <rt/final.h>
#include <rt/kind.h>

#include "gc/host/door.h"
#include "gc/host/handlers.h"
#include "gc/host/finalize.h"

int rt_set_finalize_mode(int mode, rt_ready_fn *notify, void *arg)
{
	int error = door_attached(false);

	if (error)
		return error;
	if (mode != RT_FINALIZE_MANUAL && mode != RT_FINALIZE_POLL)
		return RT_EINVAL;
	handlers_set_ready(notify, arg);
	finalize_set_poll(mode == RT_FINALIZE_POLL);
	return RT_OK;
}

size_t rt_run_finalizers(size_t max)
{
	int error = door_blocking(false);

	if (!error && handlers_telling_ready())
		error = door_answer(RT_EBUSY);
	return error ? 0 : finalize_run(rt_thread_tls, max);
}

size_t rt_finalizers_ready(void)
{
	return door_ready() ? drops_ready() : 0;
}

int rt_drop_now(int kind, rt_pick_fn *pick, void *arg)
{
	int error = door_blocking(false);

	if (error)
		return error;
	if (kind < RT_KIND_FIRST || kind > RT_KIND_MAX ||
	    !(kinds_drops() >> kind & 1))
		return RT_EINVAL;
	return door_answer(
	    finalize_now(rt_thread_tls, (unsigned)kind, pick, arg));
}
