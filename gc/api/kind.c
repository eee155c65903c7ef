// Kinds and types.
#include <rt/kind.h>

#include <string.h>

#include "runtime/spans/object.h"
#include "gc/mark/layout.h"
#include "gc/cycle/scavenger.h"
#include "gc/host/door.h"
#include "gc/host/visit.h"
#include "gc/host/registry.h"

void rt_kind_desc_init_sized(rt_kind_desc *d, size_t size)
{
	if (!d)
		return;
	memset(d, 0, size);
	if (size >= sizeof d->struct_size)
		d->struct_size = size;
}

int rt_kind_register(const rt_kind_desc *d)
{
	int error = door_attached(false);

	if (error)
		return error;
	error = registry_check(d);
	return error ? error : registry_add(d);
}

int rt_kind_unregister(int kind)
{
	int error = door_blocking(false);
	struct visit v;

	if (error)
		return error;
	if (kind < RT_KIND_FIRST || kind > RT_KIND_MAX)
		return RT_EINVAL;
	v = visit_enter_swept(RT_STOP_KIND_UNREGISTER);
	error = registry_remove(v.p, (unsigned)kind);
	visit_leave(&v);
	scavenger_freed(); // the spans of the kind may be free now
	return error;
}

int rt_type_check(const rt_type *type)
{
	return type && layout_type_ok(type) ? RT_OK : RT_EINVAL;
}

int rt_kind_of(const void *p)
{
	struct object o;

	if (!door_ready())
		return RT_ESTATE;
	return object_find((uintptr_t)p, &o) ? (int)spanclass_host_kind(o.kind)
					     : RT_ENOENT;
}
