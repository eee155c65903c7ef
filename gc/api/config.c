// The configuration, and the beginning and the end of the heap.
#include <rt/config.h>

#include "runtime/os/settings.h"
#include "runtime/world/stw.h"
#include "gc/mark/layout.h"
#include "gc/mark/drops.h"
#include "gc/host/door.h"
#include "gc/host/handlers.h"
#include "gc/host/attach.h"
#include "gc/host/lifetime.h"

void rt_config_init_sized(rt_config *c, size_t size)
{
	if (c && size >= SETTINGS_MIN_STRUCT)
		settings_default(c, size);
}

int rt_config_from_env(rt_config *c)
{
	if (!c || !settings_initialised(c))
		return RT_EINVAL;
	return settings_from_env(c) ? RT_OK : RT_EINVAL;
}

// answer_locked warns and answers for a heap that was refused memory in a
// process that locks what it maps.  In most cases there is memory, but no more
// may be locked.
static int answer_locked(void)
{
	handlers_warn("rtheap: the process locks the memory that it maps "
		      "(mlockall), and the system refused to lock what a heap "
		      "needs (RLIMIT_MEMLOCK)");
	return RT_ENOTSUP;
}

int rt_init(const rt_config *c)
{
	rt_config resolved;
	int error = settings_resolve(c, &resolved);

	if (error)
		return error;
	if (resolved.stack_format && !layout_format_ok(resolved.stack_format))
		return RT_EINVAL;
	// A thread that has the world stopped must not wait for its start.
	if (door_ready())
		return door_answer(RT_ESTATE);
	stw_acquire(NULL);
	error = door_ready() ? RT_ESTATE : lifetime_begin(&resolved);
	stw_release();
	if (error == RT_ENOMEM && sysmem_locking())
		return answer_locked();
	return attach_answer(error);
}

int rt_fini(void)
{
	int error = door_blocking(false);

	if (!error && drops_runs(proc_self()))
		error = door_answer(RT_EBUSY);
	return error ? error : lifetime_end();
}
