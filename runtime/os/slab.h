// slab.h - blocks of one size outside the heap; a free one has no memory.
//
// Go: none; persistent memory and fixalloc never release memory.
//
// A region is one piece of address space between two guards, cut into blocks.
// The first region has SLAB_FIRST blocks, and each further one as many as all
// before it together.  So the number of mappings grows with the logarithm of
// the number of blocks.  A block is Ready (sysmem.h), and counted, while it is
// taken.  When it is freed, its memory is released.
//
// The owner of a slab serialises all calls.
#ifndef RUNTIME_OS_SLAB_H
#define RUNTIME_OS_SLAB_H

#include "runtime/os/persistent.h"

enum { SLAB_FIRST = 64 };

struct slab_region {
	struct slab_region *next;
	char *base;
	size_t nblocks;	 // a multiple of 64
	size_t ready;	 // blocks that were ever taken: the first ones
	uint64_t free[]; // a bit a block
};

struct slab {
	size_t size; // bytes a block; rounded up to physical pages
	const char *name;
	atomic_u64 *stat;
	struct slab_region *regions; // newest first
	size_t nblocks;		     // of all regions
};

// slab_alloc returns a block of zeros, counted in stat.  Returns NULL if the
// system refuses memory.
void *slab_alloc(struct slab *s);

// slab_free frees a block and releases its memory.  Returns false if the system
// refuses that; the block is then still taken.
bool slab_free(struct slab *s, void *block);

// slab_fini unmaps everything, at the end of the heap's life.  No block may be
// taken.  It must be called before persistent_fini.
void slab_fini(struct slab *s);

// slab_check returns NULL if all invariants hold, otherwise what does not.  The
// caller must serialise it with all other calls.  Debug builds call it at each
// new region.  When a block is taken they check only that block and the fields
// of its region; when it is freed, only the block.
const char *slab_check(const struct slab *s);

#endif
