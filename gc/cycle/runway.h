// runway.h - when marking beside the threads begins, and how much they help.
//
// Go: trigger, startCycle, revise, endCycle of gcControllerState (mgcpacer.go),
// gcAssistAlloc1 (mgcmark.go).
//
// This is pure arithmetic: no thread, no clock, no lock.  While marking runs
// beside the threads, these allocate.  So it begins at a trigger below the
// goal.  The distance is the runway: what they are expected to allocate
// meanwhile.  If marking is late, threads that allocate must mark too (assist).
// Each byte they allocate costs so much work that marking ends when the heap
// reaches the goal.
//
// Marking in the stop needs none of this: its trigger is the goal (pacer.h).
// No cycle uses it yet.
//
// Work counts the words that markers take to look them up, and the bytes that
// they read to find these words (runway_work).  Heap, stacks and ranges count
// alike.
#ifndef GC_CYCLE_RUNWAY_H
#define GC_CYCLE_RUNWAY_H

#include "runtime/base/base.h"

enum { RUNWAY_MEMORY = 4 }; // markings that are remembered

// The part of the processors that marks in the background, and the least
// distance from trigger to goal.
#define RUNWAY_BACKGROUND 0.25
#define RUNWAY_LEAST (UINT64_C(64) << 10)

// No trigger.
#define RUNWAY_IDLE (~UINT64_C(0))

// There is no check function: one thread owns it, and any numbers are possible.
struct runway {
	// Bytes that all processors would allocate in the time in which they
	// would do one unit of work.  The largest number of the last markings.
	double cons_mark;
	double last[RUNWAY_MEMORY]; // of each; the newest is last
	uint64_t triggered;   // bytes live when marking began, or RUNWAY_IDLE
	double work_per_byte; // what a thread owes for a byte that it allocates
};

// What the caller knows of the heap.
struct runway_heap {
	uint64_t marked;   // bytes found alive by the last marking
	uint64_t live;	   // bytes: marked, and allocated since
	uint64_t goal;	   // bytes, by the rule or the limit
	uint64_t least;	   // bytes: no trigger below it; 0: any
	bool limited;	   // the goal is that of the memory limit
	int percent;	   // below 0: no goal but the limit
	uint64_t done;	   // work done in this marking, by all threads
	uint64_t expected; // work, if as much is alive as the last time
	uint64_t most;	   // work, if everything is alive
};

// What a marking took, in ns of all processors.
struct runway_times {
	uint64_t capacity; // duration x processors
	uint64_t assist;   // marking by threads that allocate
	uint64_t idle;	   // marking on processors that had nothing to do
};

// What a thread that has allocated owes.
struct runway_debt {
	uint64_t credit; // work that the background had done in advance
	uint64_t work;	 // the rest, which the thread does
};

// runway_work returns the work of taking a number of words and reading a number
// of bytes.  64 bytes, a line of the cache, are worth a word: so time is nearly
// proportional to it both for graphs and for long objects without pointers.
RT_INLINE uint64_t runway_work(uint64_t words, uint64_t bytes)
{
	return words + bytes / 64;
}

// runway_init forgets all markings.
void runway_init(struct runway *r);

// runway_goal returns the goal.  Unless h->limited, that moves up if it has no
// room for a trigger of at least h->least and RUNWAY_LEAST bytes after the
// trigger.
uint64_t runway_goal(const struct runway *r, const struct runway_heap *h);

// runway_trigger returns the heap size at which marking begins.  It is at least
// h->marked.  If the goal is above that, the trigger is 45/64 to 61/64 of the
// way from h->marked to the goal.  In a large heap it may be as late as the
// goal less 4 MiB.  Unless h->limited, it is at least h->least, wherever that
// is.
uint64_t runway_trigger(const struct runway *r, const struct runway_heap *h);

// runway_begin begins a marking with h->live bytes.
void runway_begin(struct runway *r, const struct runway_heap *h);

// runway_revise computes what threads owe.  It must be called whenever
// something in *h has changed.  If more work was done than was expected,
// h->most is expected from then on.  The distance from the trigger to the goal
// that counts grows in the same proportion, but that goal is at most (1 +
// percent / 100) times the goal.  If the heap is beyond it already, it becomes
// a tenth larger.
void runway_revise(struct runway *r, const struct runway_heap *h);

// runway_owe returns what a thread that allocates bytes has to pay.  credit is
// what background markers have paid in advance; below 0 it counts as none.
struct runway_debt runway_owe(const struct runway *r, uint64_t bytes,
			      int64_t credit);

// runway_end ends a marking.  It remembers what was allocated for h->done.
void runway_end(struct runway *r, const struct runway_heap *h,
		const struct runway_times *t);

#endif
