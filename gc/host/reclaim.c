// Frees small objects by the cache and large ones at once.
#include "gc/host/reclaim.h"

#include "runtime/os/throw.h"
#include "runtime/world/stw.h"
#include "runtime/spans/dealloc.h"
#include "gc/cycle/sweep.h"
#include "gc/cycle/scavenger.h"

bool reclaim_find(const void *p, struct object *o)
{
	return object_find((uintptr_t)p, o) &&
	       (o->base == (uintptr_t)p || reclaim_is_shared(o));
}

// is_listable tells whether a small object goes to a list when it is freed.
static bool is_listable(const struct object *o)
{
	return o->size >= FREELIST_MIN && !reclaim_is_shared(o);
}

bool reclaim_find_alive(struct rt_mcache *mc, const void *p, struct object *o)
{
	unsigned class;

	if (!reclaim_find(p, o))
		return false;
	class = object_class(o);
	return class == 0 || !is_listable(o) ||
	       !dealloc_was_freed(mc, spanclass_make(class, o->kind), p);
}

bool reclaim_object(struct rt_mcache *mc, const struct object *o)
{
	unsigned class = object_class(o);

	RT_ASSERT(mc == rt_thread_tls->mc || stw_stopped());
	if (class == 0) {
		struct mspan *s = object_span(o);

		// Another thread may have freed it since it was found.
		if (!s || !sweep_free_large(mc->thread.p, s))
			return false;
		scavenger_freed();
		return true;
	}
	if (!is_listable(o))
		return true;
	return dealloc_object(mc, spanclass_make(class, o->kind),
			      (void *)o->base);
}
