// epoch.h - the sweepgen, which says which collection cycle it is.
//
// Go: mheap.sweepgen, gcphase.
//
// The sweepgen is 2 when a heap begins.  After that only the cycle writes it,
// with the world stopped.  Any thread may read it.
//
// It is even and grows by 2 at each flip.  A span whose own sweepgen is
//   h - 2  needs sweeping
//   h - 1  is being swept
//   h      is swept
// where h is the heap's.  The parity of h/2 says which of the two bitmap
// lines of a page holds alloc bits; the other holds mark bits.
#ifndef RUNTIME_OS_EPOCH_H
#define RUNTIME_OS_EPOCH_H

#include "runtime/base/atomic.h"
#include "runtime/os/throw.h"

struct epoch {
	atomic_u32 sweepgen;
};

RT_GLOBAL struct epoch epoch;

RT_INLINE uint32_t epoch_sweepgen(void)
{
	return atomic_u32_load_relaxed(&epoch.sweepgen);
}

// epoch_alloc_line returns the index (0, 1) of the alloc line under a sweepgen,
// epoch_mark_line the index of the other line.
RT_INLINE unsigned epoch_alloc_line(uint32_t sweepgen)
{
	return (sweepgen >> 1) & 1;
}

RT_INLINE unsigned epoch_mark_line(uint32_t sweepgen)
{
	return epoch_alloc_line(sweepgen) ^ 1;
}

// epoch_check returns NULL if the sweepgen is one that a flip leaves, otherwise
// what is wrong.
const char *epoch_check(const struct epoch *e);

// epoch_flip turns mark bits into alloc bits.  The world must be stopped, and
// every span swept.  The release pairs with the acquire in object_find.
RT_INLINE void epoch_flip(void)
{
	RT_CHECK(epoch_check(&epoch));
	atomic_u32_store_release(&epoch.sweepgen, epoch_sweepgen() + 2);
}

#endif
