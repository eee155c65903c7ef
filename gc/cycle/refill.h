// refill.h - another span, when the cached one is used up.
//
// Go: mcache.refill, mcache.allocLarge, mcentral.cacheSpan.
//
// A dry cache knows nothing of how it is filled; that is decided here, above
// sweeping: the set of spans with free slots first, then new pages.
#ifndef GC_CYCLE_REFILL_H
#define GC_CYCLE_REFILL_H

#include "runtime/spans/mcache.h"

// refill_small takes an object from another span than the cached one, which is
// retired, and caches that span.  The slot is the one for sc and uninit, from
// which mcache_take gets nothing.  Returns NULL if there is no memory.
void *refill_small(struct rt_mcache *mc, struct rt_proc *p, spanclass sc,
		   bool uninit);

// refill_large returns a span with one object of n bytes, counted, in the
// state setting up, not cleared; NULL: no memory.  refill_guarded does so
// with a guard behind the object.
struct mspan *refill_large(struct rt_mcache *mc, struct rt_proc *p,
			   unsigned kind, size_t n);
struct mspan *refill_guarded(struct rt_mcache *mc, struct rt_proc *p,
			     unsigned kind, size_t n);

#endif
