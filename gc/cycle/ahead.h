// ahead.h - how much memory the background thread brings in ahead of need.
//
// Go has none of this.  The first use of a page costs a fault, and the system
// clears the page.  A thread that allocates fresh memory pays that itself, page
// by page or up to 128 KiB at once (mheap.c).  While threads take much fresh
// memory, the background thread (scavenger.h) pays for them.
//
// A thread that allocates calls the background thread when a chunk of scavenged
// pages was taken.  If the previous call came at most 100 ms ago, the
// background thread brings in memory until as many bytes of free pages have
// memory as ahead_bytes says.  If need be, it makes the heap longer.  The next
// call then comes when half as many pages were taken, of any kind.  It comes
// after a chunk of scavenged pages again when calls have become rare, or if
// nothing was brought in.
//
// No more is brought in than the program will use before the next collection,
// nor so much that the scavenger would release it.
#ifndef GC_CYCLE_AHEAD_H
#define GC_CYCLE_AHEAD_H

#include "runtime/spans/mheap.h"

// The least heap that gets memory ahead, in bytes allocated, and the most that
// it gets.
enum { AHEAD_LEAST = 32 << 20, AHEAD_MOST = 8 << 20 };

// There is no check function: any values are possible.
struct ahead {
	atomic_u32 due;	 // 1: the thread has been called
	uint64_t called; // nanotime of the previous call, or 0; the background
			 // thread
};

// ahead_wanted tells whether memory may have to be brought in.
bool ahead_wanted(void);

// ahead_bytes returns how many bytes of free pages are to have memory: a
// thirty-second of used (pacer_used), at most AHEAD_MOST, and at most goal
// minus used (0 if used is above goal).  It returns 0 if the result is below
// 1 MiB, which is not worth a call.
uint64_t ahead_bytes(uint64_t used, uint64_t goal);

// ahead_init waits for the first call.
void ahead_init(struct ahead *a);

// ahead_due tells whether the background thread is to be called.  Any thread
// may ask.  If it is true, ahead_call must be called; if that returns true as
// well, the caller must wake the thread.
RT_INLINE bool ahead_due(void)
{
	return RT_UNLIKELY(mheap_taken_much());
}

bool ahead_call(struct ahead *a);

// ahead_called tells whether the thread was called since the last ahead_run.
bool ahead_called(const struct ahead *a);

// ahead_run brings in memory if the thread was called, and ends early if *quit
// is set.  now is nanotime.  p is the caller's P, which may be stopped
// meanwhile.  It must be running, with no stack to be scanned, and the caller
// must hold no lock.
void ahead_run(struct ahead *a, struct rt_proc *p, uint64_t now,
	       const atomic_u32 *quit);

#endif
