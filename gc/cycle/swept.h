// swept.h - sweeping beside the threads, and what follows the last chunk.
//
// Go: deductSweepCredit (mgcsweep.go), mheap.reclaim (mheap.go).
//
// A cycle that does not sweep in its stop leaves all chunks unswept.  The
// background thread sweeps them (scavenger.h), and so do threads that would
// otherwise take more memory, in slices of a chunk:
//
//   - a refill whose set of spans is empty sweeps one;
//   - a large allocation sweeps until as many pages were freed as it takes, or
//     none is left;
//   - before the heap grows, no chunk is left that no thread has taken;
//   - the thread that finds a collection due, or a release of pages for the
//     memory limit, sweeps all chunks first.
//
// Between two slices the thread may be stopped.  A thread sweeps before it gets
// memory, unless a set still has a span for it, or the sweep has already freed
// enough pages for its large object.  So sweeping keeps up with allocation by
// itself, without Go's credit.  In a no-GC stretch an allocation sweeps only if
// the heap has no pages for it, and the heap may grow while chunks are left.
//
// One thread that finds all chunks swept does what follows the last chunk.  It
// raises the scavenger's generation, because what the sweep has freed was in
// use in this one.  It tells the pacer what was freed.  It chooses huge pages,
// unless the work buffers are still to be freed.
//
// The collection asks the pacer for a goal before it starts the world.  Then
// the dead still count as in use, so that goal is at most the right one.  The
// sums of the sweep make it the goal that the stop would have found, to the
// byte.  A thread that finds a collection due sweeps the rest, and tests again.
// So what triggers a collection does not depend on where it sweeps.
//
// Statistics that need a stop are exact only when all is swept.
// visit_enter_swept sees to that (visit.h).
#ifndef GC_CYCLE_SWEPT_H
#define GC_CYCLE_SWEPT_H

#include "gc/cycle/scavgoal.h"
#include "gc/cycle/sweep.h"

enum swept_state {
	SWEPT,	      // all is swept, and what follows was done
	SWEPT_STOP,   // being swept in the stop
	SWEPT_BESIDE, // being swept, beside the threads at first
	SWEPT_ENDING, // all is swept; one thread does what follows
};

struct swept {
	atomic_u32 state;
	// Huge pages are chosen when the sweep has ended and the work buffers
	// are freed.  This is how many of the two are still to come.
	atomic_u32 before_choice;
	// 1: huge pages are wanted, and no helper was called; 2: the background
	// thread knows.
	atomic_u32 advise;
	atomic_u32 sleepers; // threads in swept_await
	atomic_u64 paid;     // bytes of freed pages that large objects took
	atomic_u64 chunk_ns; // what a chunk took in the last sweep; 0: unknown
	// For the scavenger.  A stop writes it, then the thread that ends the
	// sweep.
	struct scavgoal_found retained;
	// When the stop ended, as nanotime; 0: not known.  The stop writes it.
	uint64_t started;
};

RT_GLOBAL struct swept swept;

// swept_begin begins a sweep, as sweep_begin does.
void swept_begin(bool beside);

// swept_takes_ns returns how long one thread would take to sweep the heap, by
// the mean of the chunks that were measured last, or by a guess if none was.
uint64_t swept_takes_ns(void);

// swept_started notes now, a nanotime, as the end of the stop that called
// swept_begin.  The world must be stopped.
void swept_started(uint64_t now);

// swept_slice sweeps the lowest chunk, for a thread of the host.
// swept_slice_down sweeps some of the highest, for the background thread.  If
// none is left they do what follows the last one (swept_end).  They return
// false if there was none to take.  p must be the calling thread's P.
bool swept_slice(struct rt_proc *p);
bool swept_slice_down(struct rt_proc *p);

// swept_all sweeps to the end, and does what follows.  The world must be
// stopped.  The CPU time counts as that of a thread of the host; that of
// helpers, which may be called, does not count.
void swept_all(struct rt_proc *p);

// swept_end does what follows the last chunk, unless another thread does, or
// chunks are left, or a sweeper is active.
//
// The thread that sweeps the last chunk may find another sweeper active.  That
// one may be a thread that does not call swept_end afterwards: it makes sure
// that one span is swept, or is a helper that comes late.  So each thread that
// needs a span, or waits for the end, calls swept_end as well.
void swept_end(void);

// swept_end_stopped is swept_end for a stopper, after sweep_all.  The threads
// that might do what follows are stopped.  It does not ask whether a sweeper is
// active: that can only be a helper that comes late and finds no chunk.
void swept_end_stopped(void);

// swept_await sleeps until all is swept and what follows was done, or for a
// millisecond.  The caller must be blocked, unless it is in a no-GC stretch.
void swept_await(void);

// swept_over tells whether all is swept and what follows was done.
RT_INLINE bool swept_over(void)
{
	return atomic_u32_load_acquire(&swept.state) == SWEPT;
}

// swept_take_advice tells whether the caller has to call worker_advise: huge
// pages are wanted, and no helper was there to call.  swept_pass_advice tells
// whether the caller has to wake the background thread for that.
bool swept_take_advice(void);
bool swept_pass_advice(void);

// swept_unfinished tells whether swept_end or swept_pass_advice may have
// something to do.
RT_INLINE bool swept_unfinished(void)
{
	return (atomic_u32_load_relaxed(&swept.state) != SWEPT &&
		!sweep_left()) ||
	       atomic_u32_load_relaxed(&swept.advise) == 1;
}

// swept_pay tells whether the sweep has freed npages pages that no large object
// has taken.  If so, they are taken.
bool swept_pay(uint64_t npages);

// swept_buffers_freed must be called once in each cycle, after its work buffers
// were freed.  Before that their pages would count as full of live objects.
void swept_buffers_freed(void);

// swept_reset forgets the sweep at the end of the heap.
void swept_reset(void);

// swept_fork_child is sweep_fork_child, and forgets the threads that slept.
void swept_fork_child(void);

// swept_check returns NULL if all invariants hold, otherwise what does not.
// Debug builds call it when a sweep begins and when it has ended.
const char *swept_check(const struct swept *s);

#endif
