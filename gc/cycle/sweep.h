// sweep.h - free what was not marked.
//
// Go: mgcsweep.go.
//
// After the flip every span waits to be swept.  Sweeping goes by address, a
// chunk of 512 pages at a time.  A cursor goes through the chunks that existed
// at the flip, from the highest down, so that the sets of spans with free slots
// end up in ascending order.  A span belongs to the chunk of its first page.  A
// sweeper claims a span by a compare and swap of its sweepgen.
//
// Sweeping a span frees the slots that have a bit in the old alloc line but not
// in the new one.  The old line is cleared and becomes the mark line.  Frees
// are published before the span or its pages can be used again.
#ifndef GC_CYCLE_SWEEP_H
#define GC_CYCLE_SWEEP_H

#include "runtime/spans/mheap.h"

enum { SWEEP_DROPPED = 64 };

struct sweep {
	RT_CACHE_ALIGNED atomic_u32 left;   // chunks not yet handed out
	RT_CACHE_ALIGNED atomic_u32 active; // sweepers under way
};

RT_GLOBAL struct sweep sweep;

// sweep_begin makes all chunks unswept.  It must come after the flip, with the
// world stopped.
void sweep_begin(void);

// sweep_chunk sweeps one chunk.  Returns false if none is left to take.  p is
// the P whose statistics count, here and below.
bool sweep_chunk(struct rt_proc *p);

// sweep_help sweeps chunks beside the thread that sweeps all, as long as any
// are left.
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

// sweep_all sweeps to the end and returns when no sweeper is active.
void sweep_all(struct rt_proc *p);

// sweep_done tells whether every span is swept.
bool sweep_done(void);

// sweep_fork_child resets sweeping in the child of a fork, which lacks the
// helpers that were looking for a chunk.  The parent must not have been
// sweeping.
void sweep_fork_child(void);

// sweep_check returns NULL if all invariants hold, otherwise what does not.
// Sweepers may be under way.  Debug builds call it when sweeping begins, and
// when a sweeper is done with a chunk or a span.
const char *sweep_check(const struct sweep *s);

#endif
