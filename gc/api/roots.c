// Ranges of memory and callbacks that the host registers as roots, and handles.
#include <rt/roots.h>

#include "gc/mark/layout.h"
#include "gc/mark/rootfns.h"
#include "gc/mark/handles.h"
#include "gc/mark/statics.h"
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
	handlers_warn_pending();
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
	handlers_warn_pending();
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

int rt_roots_add_fn(rt_roots_fn *fn, void *arg, const char *name)
{
	int error;

	if (!fn)
		return RT_EINVAL;
	error = door_attached(false);
	if (error)
		return error;
	error = rootfns_add(fn, arg, name);
	handlers_warn_pending();
	return error;
}

int rt_roots_remove(void *lo, void *hi)
{
	bool acquired, found;
	int error = door_removal_begin(&acquired);

	if (error)
		return door_answer(error);
	found = roots_remove((uintptr_t)lo, (uintptr_t)hi);
	door_removal_end(acquired);
	return found ? RT_OK : RT_ENOENT;
}

int rt_roots_remove_fn(rt_roots_fn *fn, void *arg)
{
	bool acquired, found;
	int error = door_removal_begin(&acquired);

	if (error)
		return door_answer(error);
	found = rootfns_remove(fn, arg);
	door_removal_end(acquired);
	return found ? RT_OK : RT_ENOENT;
}

// ---- static data ----

int rt_roots_static(int on)
{
	int error;

	if (on != 0 && on != 1)
		return RT_EINVAL;
	error = door_blocking(false);
	return error ? error : statics_set(on);
}

// ---- handles ----

// is_word tells whether a handle can hold a word: no address has the highest
// bit.
static bool is_word(const void *obj)
{
	return !((uintptr_t)obj & HANDLES_FREE);
}

rt_handle *rt_handle_new(void *obj)
{
	rt_thread *t = rt_thread_tls;

	if (!door_supplying(t) || !is_word(obj))
		return NULL;
	return handles_new(t->mc, (uintptr_t)obj);
}

static RT_NOINLINE int free_beside_stops(rt_handle *h)
{
	bool acquired, was_used;
	int error = door_removal_begin(&acquired);

	if (error)
		return error;
	was_used = handles_free_beside(h);
	door_removal_end(acquired);
	return was_used ? RT_OK : RT_EINVAL;
}

int rt_handle_free(rt_handle *h)
{
	rt_thread *t = rt_thread_tls;

	if (RT_UNLIKELY(!door_allocating(t)))
		return door_answer(free_beside_stops(h));
	return handles_free(t->mc, h) ? RT_OK : RT_EINVAL;
}

int rt_handle_set(rt_handle *h, void *obj)
{
	int error = door_attached(true);

	if (error)
		return error;
	if (!is_word(obj) || !handles_used(h))
		return RT_EINVAL;
	handles_set(h, (uintptr_t)obj);
	return RT_OK;
}
