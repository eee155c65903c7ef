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

bool reclaim_object(struct rt_mcache *mc, const struct object *o)
{
	uint64_t page = arena_offset(o->base) >> RT_PAGE_SHIFT;
	unsigned class = pageword_class(arena_pageword(page));

	RT_ASSERT(mc == rt_thread_tls->mc || stw_stopped());
	if (class == 0) {
		struct mspan *s = arena_span(page);

		// Another thread may have freed it since it was found.
		if (!s || !sweep_free_large(mc->thread.p, s))
			return false;
		scavenger_freed();
		return true;
	}
	if (o->size < FREELIST_MIN || reclaim_is_shared(o))
		return true;
	return dealloc_object(mc, spanclass_make(class, o->kind),
			      (void *)o->base);
}
