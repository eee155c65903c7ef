// kinds.h - which kinds exist.
//
// Go: none; a span there is noscan or not.
//
// RT_NOSCAN and RT_WORDS always exist, RT_TYPED and the library's own kinds
// from their first use on.  The others exist from the moment when they are
// registered until they are unregistered.  An answer holds until the calling
// thread is stopped, because a kind ends only in a stop.
#ifndef RUNTIME_SPANS_KINDS_H
#define RUNTIME_SPANS_KINDS_H

#include "runtime/base/atomic.h"
#include "runtime/base/spanclass.h"

struct kinds {
	atomic_u32 mask;  // bit k: kind k exists; registry lock
	atomic_u32 used;  // bit k: kind k may have had a span since it began
	atomic_u32 drops; // bit k: kind k has destructors; registry lock
};

RT_GLOBAL struct kinds kinds;

// kinds_init makes the two kinds that every heap has the only ones.
void kinds_init(void);

// kinds_add makes a kind exist, with or without destructors.  The release pairs
// with the acquire in kinds_mask, so what was stored before is visible to a
// thread that finds the kind.  kinds_remove ends a kind; the world must be
// stopped.  The caller must hold the registry's lock.
void kinds_add(unsigned kind, bool drops);
void kinds_remove(unsigned kind);

// kinds_mask returns the kinds that exist, as bits.  The acquire pairs with the
// releases in kinds_add and kinds_remove.
RT_INLINE uint32_t kinds_mask(void)
{
	return atomic_u32_load_acquire(&kinds.mask);
}

RT_INLINE bool kinds_exists(unsigned kind)
{
	return kinds_mask() >> kind & 1;
}

// kinds_used returns the kinds that may have spans, as bits, so that a
// collection does not look at the others.  The world must be stopped: the stop
// orders this load after every kinds_use of another thread.
RT_INLINE uint32_t kinds_used(void)
{
	return atomic_u32_load_relaxed(&kinds.used);
}

// kinds_drops returns the kinds with destructors, as bits.  A thread that finds
// a kind, or a page of it, also finds its bit.
RT_INLINE uint32_t kinds_drops(void)
{
	return atomic_u32_load_relaxed(&kinds.drops);
}

// kinds_note is kinds_use for a kind that is not noted yet.
void kinds_note(unsigned kind);

// kinds_use notes that a kind is going to have spans.  It must be called before
// the first span of the kind is published.
RT_INLINE void kinds_use(unsigned kind)
{
	if (!(atomic_u32_load_relaxed(&kinds.used) >> kind & 1))
		kinds_note(kind);
}

// kinds_halves tells whether any kind that exists may have objects of 24 bytes.
RT_INLINE bool kinds_halves(void)
{
	const uint32_t narrow =
	    UINT32_C(1) << KIND_TYPED |
	    ((UINT32_C(1) << KIND_OWN) - (UINT32_C(1) << KIND_ALIGN8));

	return (kinds_mask() & narrow) != 0;
}

// kinds_check returns NULL if all invariants hold, otherwise what does not.
// Kinds may be added and noted meanwhile.  Debug builds call it whenever a kind
// begins or ends.
const char *kinds_check(const struct kinds *k);

#endif
