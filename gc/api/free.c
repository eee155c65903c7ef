// Objects that are freed by hand.
#include <rt/free.h>
#include <rt/kind.h>

#include "runtime/spans/dealloc.h"
#include "gc/host/door.h"
#include "gc/host/supply.h"
#include "gc/host/registry.h"
#include "gc/host/reclaim.h"
#include "gc/host/resize.h"

void *rt_alloc_uncollectable(int kind, size_t n)
{
	struct want w = {.n = n, .kind = KIND_OWN + (unsigned)kind};

	if ((kind != RT_NOSCAN && kind != RT_WORDS) ||
	    !door_supplying(rt_thread_tls))
		return NULL;
	registry_add_own(w.kind);
	return supply_request(rt_thread_tls, &w);
}

// free_found frees p if it is an object that dealloc_plain has not listed.
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
	return dealloc_plain(t->mc, p) ? RT_OK : free_found(t, p);
}

void *rt_realloc(int kind, void *p, size_t n)
{
	rt_thread *t = rt_thread_tls;
	struct want w = {.n = n, .kind = (unsigned)kind};
	struct object o;

	if (!door_supplying(t) || w.kind >= KIND_OWN || w.kind == KIND_TYPED)
		return NULL;
	if (!p || p == &supply_zerobase)
		return supply_request(t, &w);
	if (!reclaim_find_alive(t->mc, p, &o) ||
	    spanclass_host_kind(o.kind) != w.kind)
		return NULL;
	if (n == 0) {
		reclaim_object(t->mc, &o);
		return NULL;
	}
	return resize_object(t, p, &o, n);
}

int rt_resize(void *p, size_t n)
{
	rt_thread *t = rt_thread_tls;
	struct object o;

	if (!door_allocating(t))
		return door_attached(false);
	if (n == 0 || !reclaim_find_alive(t->mc, p, &o) || o.kind == KIND_TYPED)
		return RT_EINVAL;
	return resize_in_place(t->p, &o, n) ? RT_OK : RT_ENOMEM;
}
