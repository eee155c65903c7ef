// slabpool.h - a slab that keeps some free blocks for their next owners.
//
// Go: none.
//
// A kept block still has its memory, so taking it makes no system call.  When
// an owner returns a block, the pool keeps it if it has fewer than `most`.
// Otherwise the block's memory is released.  If the system refuses that, the
// pool keeps the block as well.
#ifndef RUNTIME_OS_SLABPOOL_H
#define RUNTIME_OS_SLABPOOL_H

#include "runtime/os/lock.h"
#include "runtime/os/gauge.h"
#include "runtime/os/slab.h"

struct slabpool {
	struct mutex *lock; // of slab, list and n
	struct slab slab;
	atomic_u64 *inuse; // bytes of blocks that have an owner
	void **list;	   // kept blocks, linked through their first word
	unsigned n;	   // length of the list
	unsigned most;	   // blocks to keep, unless a release is refused
};

// slabpool_take returns a block of zeros.  Returns NULL if the system refuses
// memory.
void *slabpool_take(struct slabpool *pool);

// slabpool_free returns a block to the pool, which keeps it or releases its
// memory.
void slabpool_free(struct slabpool *pool, void *block);

// slabpool_release_kept releases the memory of the kept blocks, one by one,
// until the system refuses.
void slabpool_release_kept(struct slabpool *pool);

// slabpool_fini unmaps all blocks.  None may have an owner.
void slabpool_fini(struct slabpool *pool);

// slabpool_check returns NULL if all invariants hold, otherwise what does not.
// The caller must hold the lock, or have the world stopped.  When a block is
// kept or taken, debug builds check only the beginning of the list.
const char *slabpool_check(const struct slabpool *pool);

#endif
