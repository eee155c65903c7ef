// lockrank.h - the order of locks.
//
// Go: lockrank.go.  Ranks rise inwards: while holding a lock, take only locks
// further down.  Debug builds check every acquisition.
#ifndef RUNTIME_OS_LOCKRANK_H
#define RUNTIME_OS_LOCKRANK_H

#include "runtime/base/base.h"

enum lockrank {
	LOCKRANK_NONE,	     // never taken
	LOCKRANK_ASK,	     // who asked for a collection, and who leads
	LOCKRANK_ROOTS,	     // registered roots
	LOCKRANK_PACER,	     // the pacer's rule
	LOCKRANK_ALLP,	     // closing of the attach gate, list of free Ps
	LOCKRANK_STACKPOOL,  // spans cut into interpreter stacks
	LOCKRANK_WORK,	     // what markers agree on
	LOCKRANK_WORKBUF,    // spans cut into work buffers
	LOCKRANK_GROWTH,     // address space that is being prepared
	LOCKRANK_MHEAP,	     // page allocator, all spans
	LOCKRANK_HUGEPAGES,  // what is advised for huge pages
	LOCKRANK_MCACHE,     // kept mcache blocks
	LOCKRANK_READER,     // one live reader folds heapstats
	LOCKRANK_HEAPSTATS,  // noPLock: writers without a P
	LOCKRANK_PERSISTENT, // the persistent chunk
	LOCKRANK_HANDLERS,   // the host's handlers
	LOCKRANK_COUNT,
};

const char *lockrank_name(enum lockrank rank);

// lockrank_acquire notes that the calling thread takes a lock of this rank,
// lockrank_release that it lets go.  In debug builds a wrong order throws and
// names both locks; in others these do nothing.
void lockrank_acquire(enum lockrank rank);
void lockrank_release(enum lockrank rank);

// lockrank_none throws in debug builds if the calling thread holds any lock:
// asked before parking.
void lockrank_none(void);

#endif
