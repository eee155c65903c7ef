// resize.h - makes an object larger or smaller.
//
// Go: none; compare growslice (slice.go), which always moves.
#ifndef GC_HOST_RESIZE_H
#define GC_HOST_RESIZE_H

#include "runtime/world/proc.h"
#include "runtime/spans/object.h"

// resize_in_place makes an object n bytes large, at least 1, where it is.
// Returns false if that is not possible.  p must be the calling thread's P, and
// the thread must own the object.
bool resize_in_place(struct rt_proc *p, const struct object *o, size_t n);

// resize_object makes an object n bytes large and returns where it is now.  p
// must be what the object's allocation has returned, and o what reclaim_find
// has found for p.  Returns NULL, and changes nothing, if there is no memory,
// if rt_drop_now has dropped the object meanwhile, or if a handler of the host
// has not left the thread as it was.  t must be the calling thread's, and the
// thread must be one that may allocate.
void *resize_object(struct rt_thread *t, void *p, const struct object *o,
		    size_t n);

#endif
