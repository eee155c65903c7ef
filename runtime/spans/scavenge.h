// scavenge.h - give free pages back to the system.
//
// Go: pageAlloc.scavenge, scavengeOne (mgcscavenge.go).
//
// One run of pages at a time: found and marked allocated under the heap lock,
// released without it, then free again and marked scavenged.  So no thread can
// get pages that are being released, and the heap lock is not held over the
// system call: it takes 5 to 10 us for 64 KiB and up to 0.2 ms for 2 MiB of
// small pages, and threads that have room elsewhere should not wait for it.  A
// thread that has not waits for its turn (mheap.turn) and looks again.
// Tables go afterwards, in little pieces, under the lock.
#ifndef RUNTIME_SPANS_SCAVENGE_H
#define RUNTIME_SPANS_SCAVENGE_H

#include "runtime/spans/mheap.h"

// A pass over the heap, from its end down.  What is freed above the chunk that
// it has reached is left to the next.
struct scavenge_pass {
	bool force;	// any chunk, else only those that are mostly free
	uint32_t below; // chunks from this on are done with
};

// Bytes that a pass releases at a time.  A thread that needs them waits for so
// long; steps of whole chunks take a third of the time in all.
enum { SCAVENGE_STEP = 64 << 10 };

RT_INLINE struct scavenge_pass scavenge_begin(bool force)
{
	return (struct scavenge_pass){force, SCAVINDEX_NONE};
}

// scavenge_run releases the next run of a pass, at most max bytes (rounded up
// to physical pages; a whole huge page rather than a part of one).  Where the
// system refuses, as it does memory that the host has locked, the rest of that
// chunk is passed over.  Returns the bytes released; 0: the pass is over.
// Waits for the steps of other passes.  An attached caller runs, and the world
// is not stopped.
uint64_t scavenge_run(struct rt_proc *p, struct scavenge_pass *pass,
		      uint64_t max);

// scavenge_tables gives back the memory behind the arena's tables for the next
// chunk, from *chunk on, that is free and released as a whole, and moves *chunk
// on; false: there is none.  The tables count in gc_misc_sys as before.
bool scavenge_tables(uint32_t *chunk);

#endif
