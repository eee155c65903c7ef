// scavenge.h - release free pages to the system.
//
// Go: pageAlloc.scavenge, scavengeOne (mgcscavenge.go).
//
// A step finds one range of pages and marks it allocated under the heap lock,
// releases it without the lock, and then frees it and marks it scavenged.  So
// no thread can take pages that are being released.  The system call takes 5 to
// 10 us for 64 KiB and up to 0.2 ms for 2 MiB of small pages.  Threads that
// find room elsewhere should not wait for it.  A thread that finds none waits
// for the turn (mheap.turn) and looks again.  The memory of tables is released
// afterwards, chunk by chunk, under the lock.
#ifndef RUNTIME_SPANS_SCAVENGE_H
#define RUNTIME_SPANS_SCAVENGE_H

#include "runtime/spans/mheap.h"

// A pass over the heap, from its end down.  Pages that are freed above the
// chunk that it has reached are left to the next pass.
struct scavenge_pass {
	bool force;	// all chunks; otherwise as scavindex.h says
	uint32_t below; // chunks from here on are done
	bool over;	// no range is left
	bool refused;	// some call released nothing after refusals
};

// What most callers of scavenge_range pass as max.  A thread that needs pages
// may wait for a step.  Steps of whole chunks would take a third of the time in
// all.
enum { SCAVENGE_STEP = 64 << 10 };

// The most ranges, each in another chunk, that the system refuses before a call
// of scavenge_range returns.
enum { SCAVENGE_REFUSALS = 8 };

RT_INLINE struct scavenge_pass scavenge_begin(bool force)
{
	return (struct scavenge_pass){.force = force, .below = SCAVINDEX_NONE};
}

// scavenge_range releases the next range of a pass, at most max bytes (rounded
// up to physical pages; a whole huge page rather than a part of one).  If the
// system refuses, as for memory that the host has locked, it skips the rest of
// that chunk and tries the next one.
//
// Returns the bytes released.  Returns 0 if no range is left; then pass->over
// is true.  Returns 0 as well after SCAVENGE_REFUSALS refusals in a row.  Then
// the system probably refuses everything, for instance because the process
// locks all memory, and it would take long to try all chunks.  A caller that
// wants all that can be released polls, and calls again.  The others give up.
// If it returns 0 after a refusal, pass->refused is true from then on.
//
// It waits for the steps of other passes.  The world must not be stopped, and
// an attached caller must not be in a blocking region.
uint64_t scavenge_range(struct rt_proc *p, struct scavenge_pass *pass,
			uint64_t max);

// The most chunks at which a call of scavenge_tables looks.
enum { SCAVENGE_LOOK = 256 };

// scavenge_tables looks at some chunks from *chunk on, for one that is wholly
// free and scavenged and whose tables in the arena may have memory behind them.
// It releases that memory, and moves *chunk behind the last chunk that it
// looked at.  Returns false if that was the last chunk of the heap.  The tables
// count in gc_misc_sys as before.
bool scavenge_tables(uint32_t *chunk);

#endif
