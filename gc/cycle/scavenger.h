// scavenger.h - the background thread: releases free pages beside the program.
//
// Go: bgscavenge (mgcscavenge.go).
//
// The thread (libthread.h) is made by the first of these:
//  - a collection leaves enough free pages, or does not sweep in its stop;
//  - the heap has grown to as much, and there are to be periodic collections
//    (periodic.h), which this thread runs after a turn;
//  - the heap is large enough to get memory ahead of need (ahead.h).
//
// The thread runs for a turn (scavturn.h) and is blocked otherwise.  When there
// is nothing to release, it sleeps until it is called, but not longer than
// until the program may be idle or a periodic collection is due.  It is called
// at the end of a collection that leaves pages to sweep or to release, after a
// change of what the heap may retain, and by a thread that has freed much
// itself, takes much fresh memory (ahead.h), or finds that huge pages are
// wanted (swept.h).
//
// The thread looks and decides as running.  So a decision to sleep comes before
// the stop of a collection or after it.  If it comes before, the collection
// knows of it, and wakes the thread.  If it comes after, the thread waits until
// all is swept before it decides, and so sees what was found (scavgoal.h).
#ifndef GC_CYCLE_SCAVENGER_H
#define GC_CYCLE_SCAVENGER_H

#include "runtime/spans/mheap.h"
#include "gc/cycle/libthread.h"
#include "gc/cycle/ahead.h"
#include "gc/cycle/periodic.h"

struct scavenger {
	atomic_u32 making; // 1 while a thread makes or ends it
	atomic_u32 runs;   // 1: it exists; the thread that makes or ends it
	atomic_u32 timed;  // 1: it looks again by itself; its thread, running
	atomic_u32 quit;   // 1: it must end
	atomic_u64 grown_at; // bytes used from which scavenger_grew is called
	struct note call;  // woken when there is something to do
	struct note pause; // woken when it must end or sweep, or for ahead.h
	struct libthread t;
	uint32_t nprocs; // that the library's threads may use
	struct periodic periodic; // its thread
	struct ahead ahead;
};

RT_GLOBAL struct scavenger scavenger;

// scavenger_provide must be called after a collection.  It wakes the thread, or
// makes it, if there are pages to sweep or to release.  If the thread is
// refused, the next collection tries again.  p is the caller's P, which may be
// stopped meanwhile.  The caller must hold no lock.
void scavenger_provide(struct rt_proc *p);

// scavenger_advise must be called after a collection, and by an allocation
// after a sweep has ended.  If huge pages are wanted and no helper was called,
// it wakes the thread to advise the system of them.  If there is no thread, the
// caller advises.  p is the caller's P, which may be stopped meanwhile.  The
// caller must hold no lock.
void scavenger_advise(struct rt_proc *p);

// scavenger_grown tells whether the heap has grown so much, to used bytes, that
// its caller must call scavenger_grew.  That makes the thread if it is needed
// and the heap is large enough for it.  The caller is as for scavenger_provide.
RT_INLINE bool scavenger_grown(uint64_t used)
{
	return RT_UNLIKELY(used >=
			   atomic_u64_load_relaxed(&scavenger.grown_at));
}

void scavenger_grew(struct rt_proc *p, uint64_t used);

// scavenger_call_ahead calls the thread if ahead_due is true.  It never waits.
void scavenger_call_ahead(void);

// scavenger_changed makes the thread, if it exists, look again from the highest
// page down.  It must be called after a change of the memory limit or of what
// the heap goal follows from.
void scavenger_changed(void);

// scavenger_look_again is the rare part of scavenger_freed.
void scavenger_look_again(void);

// scavenger_freed must be called after objects or stacks were freed outside a
// collection.  If enough was freed since the last pass began, it makes the
// thread look again.
RT_INLINE void scavenger_freed(void)
{
	if (RT_UNLIKELY(mheap_freed_much()))
		scavenger_look_again();
}

// scavenger_claim gives the calling thread the sole right to make and end the
// thread, until scavenger_release or scavenger_fini.  Returns false if another
// thread has it.
bool scavenger_claim(void);
void scavenger_release(void);

// scavenger_dismiss tells the thread to end, and scavenger_await waits until it
// has.  scavenger_resume makes it again if it existed; if it is refused, the
// next collection tries again.  The caller must have claimed it.  For
// scavenger_dismiss it must have the right to stop the world
// (periodic_collect), and for the others it must be blocked.
void scavenger_dismiss(void);
void scavenger_await(void);
void scavenger_resume(void);

// scavenger_fini forgets the thread, which must have ended, when the heap ends.
void scavenger_fini(void);

// scavenger_check returns NULL if all invariants hold, otherwise what does not.
// Any thread may call it, in a stop or not.  Debug builds call it when the
// thread is claimed, made, dismissed or awaited, and after each of its turns.
const char *scavenger_check(const struct scavenger *s);

// scavenger_fork_child drops the thread in the child of a fork, where it does
// not exist.
void scavenger_fork_child(void);

#endif
