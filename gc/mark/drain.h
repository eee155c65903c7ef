// drain.h - a marker works until its stack is empty.
//
// Go: gcDrain (mgcmark.go).
//
// A marker pops words from its stack into a short queue.  It prefetches the
// memory of a word as the word enters the queue, so that the memory has arrived
// when the word leaves.  That hides most of the cost of random access.  Without
// the queue marking is 2 to 3 times slower (measured).  Nothing recurses, so no
// shape of the object graph can exhaust a stack.
//
// From time to time a marker looks whether another one waits, and shares its
// work with that one.  The opener calls helpers when it has worked for a while.
#ifndef GC_MARK_DRAIN_H
#define GC_MARK_DRAIN_H

#include "runtime/os/oscall.h"
#include "gc/mark/scan.h"

enum { DRAIN_QUEUE = 8 }; // with 8 to 16, marking is as fast as memory

// What the opener knows of helpers.  There is no check function: it is made
// anew in each marking, and means nothing in between.
struct drain {
	struct marker first; // the opener, whose thread stopped the world
	uint64_t call_after; // entries that it takes before helpers are called
	// What marking has cost, with or without helpers, since the moment when
	// they were worth calling.
	bool worth;	 // there was enough work for several
	bool measured;	 // there are helpers
	bool called;	 // they were called
	uint64_t since;	 // nanotime of that moment
	uint64_t before; // words that first had taken by then
};

RT_GLOBAL struct drain drain;

// drain_begin resets drain, except its field first, before a marking.
void drain_begin(void);

// drain_stack works until the marker's own stack is empty.
void drain_stack(struct marker *m);

// drain_piece pushes what the words of a range lead to, draining whenever that
// does not fit.
void drain_piece(struct marker *m, struct work_range range);

// drain_range scans a range.  If the range is long, it scans the first piece
// and adds the rest for any marker.  If there is no room for the rest, it scans
// all.
void drain_range(struct marker *m, struct work_range range);

// drain_cpu returns the CPU time of a marker's thread in nanoseconds, or 0.
RT_INLINE uint64_t drain_cpu(const struct marker *m)
{
	return oscall_thread_cpu(m->tid);
}

#endif
