// reclaim.h - frees, by hand, what an allocation returned.
//
// Go: none.
#ifndef GC_HOST_RECLAIM_H
#define GC_HOST_RECLAIM_H

#include "runtime/spans/object.h"
#include "runtime/spans/mcache.h"

// reclaim_find finds the object that an allocation has returned as p.  Returns
// false if there is none.
bool reclaim_find(const void *p, struct object *o);

// reclaim_find_alive is reclaim_find for a caller that goes on to use the
// object.  It also returns false if reclaim_object would find that it was freed
// before.  mc must be the calling thread's.
bool reclaim_find_alive(struct rt_mcache *mc, const void *p, struct object *o);

// reclaim_is_shared tells whether several requests may share an object.
RT_INLINE bool reclaim_is_shared(const struct object *o)
{
	return o->kind == KIND_NOSCAN && o->size == SIZECLASS_TINY_SIZE;
}

// reclaim_object frees an object that reclaim_find has found, or leaves it to
// the collector.  mc must be the calling thread's, or the world must be
// stopped.  Returns false if the object was freed before.
bool reclaim_object(struct rt_mcache *mc, const struct object *o);

#endif
