// sweep.h - free what was not marked.
//
// Go: mgcsweep.go.
//
// After the flip every span waits to be swept.  Sweeping goes by address, a
// chunk of 512 pages at a time.  The chunks that existed at the flip are handed
// out from both ends.  A span belongs to the chunk of its first page.  A
// sweeper claims a span by a compare and swap of its sweepgen.
//
// Sweeping a span frees the slots that have a bit in the old alloc line but not
// in the new one.  The old line is cleared and becomes the mark line.  Frees
// are published before the span or its pages can be used again.
//
// A cycle sweeps in its stop, with helpers, or leaves the chunks to the
// background thread and to the threads that allocate (swept.h).  In the stop
// the highest chunk comes first, so that the sets of spans with free slots end
// up in ascending order.  Beside the threads there are two orders.  Threads
// that allocate take the lowest chunk, whose free slots they use at once.  The
// background thread takes the highest, whose free pages the scavenger releases
// first.
//
// A thread that sweeps beside others does not poll within a chunk.  So no chunk
// is half swept in a stop, and the stopper can sweep all that are left.
// Helpers are blocked all the time, and no stop waits for them.  So they take
// chunks only in a stop.  A helper that wakes up late must not take a chunk of
// the next sweep beside running threads.
//
// Beside the threads, each thread measures the CPU time of a slice with its own
// clock.  A slice is one chunk with pages in use for a thread of the host, and
// several chunks for the background thread.  The time of single spans
// (sweep_ensure), below a microsecond each, is not counted.  Nor is the time of
// what follows the sweep.
#ifndef GC_CYCLE_SWEEP_H
#define GC_CYCLE_SWEEP_H

#include "runtime/spans/mheap.h"

enum { SWEEP_DROPPED = 64 };

// Chunks that the background thread sweeps between two readings of its clock.
// A reading takes 0.3 us, in a virtual machine more than 1, and a chunk at
// least 20 (doc/statistics.md).
enum { SWEEP_SLICE = 4 };

// In sweep.left: threads sweep beside each other, so helpers take no chunk.
#define SWEEP_BESIDE (UINT64_C(1) << 31)

struct sweep {
	// The chunks that are not handed out.  The lower half has the number of
	// the lowest, perhaps with SWEEP_BESIDE.  The upper half has the number
	// of the highest, plus 1.  Equal numbers: none.
	RT_CACHE_ALIGNED atomic_u64 left;
	RT_CACHE_ALIGNED atomic_u32 active; // sweepers under way
	// What this sweep has freed so far: bytes of pages and of objects.
	atomic_u64 freed_pages;
	atomic_u64 freed_objects;
	// What the threads that were timed have swept, and in which time.
	atomic_u64 timed_chunks;
	atomic_u64 timed_ns;
};

RT_GLOBAL struct sweep sweep;

// sweep_begin makes all chunks unswept, for the stopper or, with beside, for
// threads that run.  It must come after the flip, with the world stopped.
void sweep_begin(bool beside);

// sweep_lowest and sweep_highest return an end of a value of sweep.left.
RT_INLINE uint32_t sweep_lowest(uint64_t left)
{
	return (uint32_t)(left & ~SWEEP_BESIDE);
}

RT_INLINE uint32_t sweep_highest(uint64_t left)
{
	return (uint32_t)(left >> 32);
}

// sweep_none tells whether a value of sweep.left has no chunk.
RT_INLINE bool sweep_none(uint64_t left)
{
	return sweep_lowest(left) == sweep_highest(left);
}

// sweep_left tells whether there are chunks that no thread has taken.
RT_INLINE bool sweep_left(void)
{
	return !sweep_none(atomic_u64_load_relaxed(&sweep.left));
}

// sweep_chunk sweeps one chunk for a thread of the host, the lowest if threads
// sweep beside each other, otherwise the highest, and measures the time.
// Returns false if none is left to take.  p is the P whose statistics count,
// here and below.
bool sweep_chunk(struct rt_proc *p);

// sweep_chunks_down sweeps up to SWEEP_SLICE chunks for the background thread,
// the highest first, and measures the time.  It returns as soon as a stop waits
// for p.  Returns false if none was left to take.
bool sweep_chunks_down(struct rt_proc *p);

// sweep_help sweeps chunks beside the thread that sweeps all, as long as any
// are left, and only in a stop.
void sweep_help(struct rt_proc *p);

// sweep_ensure returns when s, a span in use, is swept, by the caller or by
// another thread.
void sweep_ensure(struct rt_proc *p, struct mspan *s);

// sweep_free_large frees the object of a large span by hand, and the span.
// Returns false if another thread has freed it.  p must be the calling thread's
// P.
bool sweep_free_large(struct rt_proc *p, struct mspan *s);

// sweep_free_dropped frees the dropped objects of up to SWEEP_DROPPED spans
// that drops_end has returned.  Then it frees each of these spans or makes its
// free slots available, unless other objects in the span have died meanwhile.
void sweep_free_dropped(struct rt_proc *p, struct mspan *list);

// sweep_all sweeps to the end, including what was left to the threads.  It
// returns when no sweeper is active.  The world must be stopped.
void sweep_all(struct rt_proc *p);

// sweep_done tells whether every span is swept.
bool sweep_done(void);

// sweep_reset forgets what is left, at the end of the heap.
void sweep_reset(void);

// sweep_fork_child resets sweeping in the child of a fork, which lacks the
// helpers that were looking for a chunk.  The parent must not have been
// sweeping.
void sweep_fork_child(void);

// sweep_check returns NULL if all invariants hold, otherwise what does not.
// Sweepers may be under way.  Debug builds call it when sweeping begins, and
// when a sweeper is done with a chunk or a span.
const char *sweep_check(const struct sweep *s);

#endif
