// slabpool.h - blocks of a slab, of which some are kept for their next owners.
//
// Go: none.
//
// A kept block still has its memory, so taking it makes no system call.  The
// pool keeps the first blocks that their owners return, and later ones only if
// the system does not take their memory.
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
	unsigned most;	   // blocks to keep, if the system takes the others
};

// slabpool_take returns a block of zeros.  Returns NULL if the system refuses
// memory.
void *slabpool_take(struct slabpool *pool);

// slabpool_give takes a block back, keeps it, or releases its memory.
void slabpool_give(struct slabpool *pool, void *block);

// slabpool_release_kept releases the memory of the kept blocks, as far as the
// system takes it.
void slabpool_release_kept(struct slabpool *pool);

// slabpool_fini unmaps all blocks.  None may have an owner.
void slabpool_fini(struct slabpool *pool);

// slabpool_check returns NULL if all invariants hold, otherwise what does not.
// The caller must hold the lock, or have the world stopped.  When a block is
// kept or taken, debug builds check only the beginning of the list.
const char *slabpool_check(const struct slabpool *pool);

#endif
