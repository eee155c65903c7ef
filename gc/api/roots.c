// Ranges of memory that the host registers as roots.
#include <rt/roots.h>

#include "runtime/world/stw.h"
#include "gc/mark/roots.h"
#include "gc/host/door.h"
#include "gc/host/handlers.h"

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
	handlers_warn_mappings();
	return error;
}

static int remove_range(void *lo, void *hi)
{
	return roots_remove((uintptr_t)lo, (uintptr_t)hi) ? RT_OK : RT_ENOENT;
}

// remove_beside_stops removes a range for a thread that no stop waits for.  It
// acquires the right to stop the world, so no stop begins and the heap does not
// end meanwhile.
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
