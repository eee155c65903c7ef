// Objects that are freed by hand.
#include <rt/free.h>
#include <rt/kind.h>

#include "gc/host/door.h"
#include "gc/host/supply.h"
#include "gc/host/registry.h"
#include "gc/host/reclaim.h"

void *rt_alloc_uncollectable(int kind, size_t n)
{
	struct want w = {.n = n, .kind = KIND_OWN + (unsigned)kind};

	if ((kind != RT_NOSCAN && kind != RT_WORDS) ||
	    !door_allocating(rt_thread_tls))
		return NULL;
	registry_add_own(w.kind);
	return supply_request(rt_thread_tls, &w);
}

// free_found frees what is no plain small object, or none at all.
static RT_NOINLINE int free_found(rt_thread *t, void *p)
{
	struct object o;

	if (!p || p == &supply_zerobase)
		return RT_OK;
	return reclaim_find(p, &o) && reclaim_object(t->mc, &o) ? RT_OK
								: RT_EINVAL;
}

int rt_free(void *p)
{
	rt_thread *t = rt_thread_tls;

	if (RT_UNLIKELY(!door_allocating(t)))
		return door_attached(false);
	return mcache_free_plain(t->mc, p) ? RT_OK : free_found(t, p);
}
