// refill.h - another span, when the cached one is used up.
//
// Go: mcache.refill, mcache.allocLarge, mcentral.cacheSpan.
//
// A cache without free slots does not know how it is filled.  That is decided
// here, above sweeping.  The first source is the set of spans with free slots.
// While spans are left to sweep, the second is the same set after one chunk was
// swept.  The last is new pages.  No call sweeps more than one chunk.  Threads
// that need more sweep in slices, between which they poll (supply.c).
#ifndef GC_CYCLE_REFILL_H
#define GC_CYCLE_REFILL_H

#include "runtime/spans/mcache.h"

// refill_small takes an object from what other threads have freed by hand.  If
// there is none, it retires the span that the slot caches, makes the slot cache
// another span, and takes an object from that.  The slot must have no object
// for mcache_take.  Returns NULL if there is no memory.
//
// Here and below NULL also means that the heap would have to grow while spans
// are left to sweep, or that a large object must first be earned by sweeping
// (swept.h).  Then the caller, which has seen that the sweep was not over
// (swept_over), tries again after it has polled.  In a stop that does not
// happen.  In a no-GC stretch it happens only if the heap cannot grow, and the
// caller does not poll.
void *refill_small(struct rt_mcache *mc, struct rt_proc *p,
		   struct mcache_slot *slot, bool uninit);

// refill_large returns a span with one object of n bytes, counted, in the state
// setting up, not cleared.  Returns NULL if there is no memory.  refill_guarded
// also puts a guard after the object.  refill_aligned puts the object at a
// multiple of align, a power of two of more than a page.
struct mspan *refill_large(struct rt_mcache *mc, struct rt_proc *p,
			   unsigned kind, size_t n);
struct mspan *refill_aligned(struct rt_mcache *mc, struct rt_proc *p,
			     unsigned kind, size_t n, size_t align);
struct mspan *refill_guarded(struct rt_mcache *mc, struct rt_proc *p,
			     unsigned kind, size_t n);

// refill_resize makes the object of a large span n bytes large where it is, and
// counts that.  The span must not be guarded.  Returns false if the pages after
// it are needed and are not free.  The caller must own the object.
bool refill_resize(struct rt_proc *p, struct mspan *s, size_t n);

#endif
