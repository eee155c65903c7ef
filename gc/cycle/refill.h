// refill.h - where the next free slot comes from.
//
// Go: mcache.refill, mcache.allocLarge, mcentral.cacheSpan.
//
// A dry cache knows nothing of how it is filled; that is decided here, above
// sweeping: the set of spans with free slots first, then new pages.
#ifndef GC_CYCLE_REFILL_H
#define GC_CYCLE_REFILL_H

#include "runtime/spans/mcache.h"

// refill_small takes a slot from a new run: the next one of the span that is
// cached, or one of another span.  NULL: no memory.
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
