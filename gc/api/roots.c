// Ranges of memory that the host registers as roots.
#include <rt/roots.h>

#include "runtime/world/stw.h"
#include "gc/mark/layout.h"
#include "gc/mark/roots.h"
#include "gc/host/door.h"
#include "gc/host/handlers.h"

static bool is_range(const void *lo, const void *hi)
{
	return lo && hi && lo < hi && (uintptr_t)lo % 8 == 0 &&
	       (uintptr_t)hi % 8 == 0;
}

int rt_roots_add(void *lo, void *hi, int flags)
{
	int error;

	if (!is_range(lo, hi) ||
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

int rt_roots_add_values(void *lo, void *hi, const rt_value_format *format,
			unsigned flags)
{
	int error;

	if (!is_range(lo, hi) || flags != 0 ||
	    (format && !layout_format_ok(format)))
		return RT_EINVAL;
	if (!format)
		return rt_roots_add(lo, hi, RT_ROOT_WORDS);
	error = door_attached(false);
	if (error)
		return error;
	error = roots_add_values((uintptr_t)lo, (uintptr_t)hi, format);
	handlers_warn_mappings();
	return error;
}

int rt_roots_name(void *lo, void *hi, const char *name)
{
	int error;

	if (!is_range(lo, hi) || !name)
		return RT_EINVAL;
	error = door_attached(false);
	return error ? error : roots_name((uintptr_t)lo, (uintptr_t)hi, name);
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
