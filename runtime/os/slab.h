// slab.h - blocks of one size, apart from the heap, whose memory goes back.
//
// Go: none; persistent memory and fixalloc never give anything back.
//
// A region is one piece of address space between two guards, cut into blocks.
// The first has SLAB_FIRST blocks, each further one as many as all before it,
// so the number of mappings follows the logarithm of the number of blocks.  A
// block is usable, and counted, while it is taken.  A free one has no memory.
//
// The owner locks.
#ifndef RUNTIME_OS_SLAB_H
#define RUNTIME_OS_SLAB_H

#include "runtime/os/persistent.h"

enum { SLAB_FIRST = 64 };

struct slab {
	size_t size; // bytes a block; rounded up to physical pages
	const char *name;
	atomic_u64 *stat;
	struct slab_region *regions; // newest first
	size_t nblocks;		     // of all regions
};

// slab_alloc takes a block of zeros, counted in stat; NULL when the system
// refuses.
void *slab_alloc(struct slab *s);

// slab_free gives a block back, and its memory to the system; false: that is
// refused, and the block is taken as before.
bool slab_free(struct slab *s, void *block);

// slab_fini unmaps everything, at the end of the heap's life; no block is
// taken.  It comes before persistent_fini.
void slab_fini(struct slab *s);

#endif
