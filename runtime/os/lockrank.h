// lockrank.h - the order of locks.
//
// Go: lockrank.go.
//
// Ranks rise inwards: a thread that holds a lock may take only locks further
// down in the list.  Debug builds check every acquisition.
#ifndef RUNTIME_OS_LOCKRANK_H
#define RUNTIME_OS_LOCKRANK_H

#include "runtime/base/base.h"

enum lockrank {
	LOCKRANK_NONE,	     // never taken
	LOCKRANK_ASK,	     // threads that asked for a collection; the lead
	LOCKRANK_ROOTS,	     // registered roots
	LOCKRANK_HANDLES,    // strips of handles
	LOCKRANK_KINDS,	     // numbers of kinds
	LOCKRANK_PACER,	     // the pacer's rule
	LOCKRANK_ALLP,	     // Ps: lists, threads, claims, closing of the gate
	LOCKRANK_STACKPOOL,  // spans cut into interpreter stacks
	LOCKRANK_WORK,	     // what markers agree on
	LOCKRANK_WORKBUF,    // spans cut into work buffers
	LOCKRANK_GROWTH,     // memory and tables being prepared for growth
	LOCKRANK_MHEAP,	     // page allocator, all spans
	LOCKRANK_HUGEPAGES,  // states of units for huge pages
	LOCKRANK_FREELIST,   // shared lists of slots freed by hand
	LOCKRANK_MCACHE,     // blocks of mcaches and of their kinds
	LOCKRANK_READER,     // live readers of heapstats and of CPU time
	LOCKRANK_HEAPSTATS,  // Go: noPLock; writers without a P, move of gen
	LOCKRANK_PERSISTENT, // the persistent chunk
	LOCKRANK_HANDLERS,   // the host's handlers
	LOCKRANK_COUNT,
};

const char *lockrank_name(enum lockrank rank);

// lockrank_acquire records that the calling thread takes a lock of this rank,
// lockrank_release that it releases it.  In debug builds a wrong order throws
// and names both locks.  In other builds both do nothing.
void lockrank_acquire(enum lockrank rank);
void lockrank_release(enum lockrank rank);

// lockrank_none throws in debug builds if the calling thread holds any lock.  A
// thread calls it before it parks or blocks, and where it must hold none.
// lockrank_look is its part in debug builds.
void lockrank_look(void);
RT_INLINE void lockrank_none(void)
{
	if (RT_DEBUG_BUILD)
		lockrank_look();
}

#endif
