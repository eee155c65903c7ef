// scavgoal.h - how much memory the scavenger leaves to the heap.
//
// Go: gcPaceScavenger (mgcscavenge.go); the idle program is ours.
//
// This module is arithmetic, and keeps the numbers that the last collection
// stored for it.  Retained memory is that of heap spans, and of free pages that
// are not released.  While a program allocates, it may retain what it will use
// before the next collection, and a tenth more.  An idle program needs no free
// pages.
#ifndef GC_CYCLE_SCAVGOAL_H
#define GC_CYCLE_SCAVGOAL_H

#include "gc/cycle/pacer.h"

#define SCAVGOAL_NONE (~UINT64_C(0))

// This many bytes of free pages are worth a thread, and a look at the clock.
enum { SCAVGOAL_LEAST = 4 << 20 };

// scavgoal_percent returns how many bytes the heap may retain.  in_use are the
// bytes in heap spans when the last marking ended.  last is the heap goal of
// that marking, and goal the next one.  Returns SCAVGOAL_NONE if there was no
// such goal.
uint64_t scavgoal_percent(uint64_t in_use, uint64_t goal, uint64_t last,
			  size_t page_size);

// scavgoal_limit returns how many bytes may be mapped under a memory limit.
// mapped are the bytes mapped now.  If they leave a twentieth of the limit
// free, it returns SCAVGOAL_NONE.
uint64_t scavgoal_limit(uint64_t limit, uint64_t mapped);

// scavgoal_excess returns how far n is above goal, or 0 if that is less than a
// physical page.
uint64_t scavgoal_excess(uint64_t n, uint64_t goal, size_t page_size);

// scavgoal_too_much returns how many of the retained bytes are to be released
// while the program is not idle.
uint64_t scavgoal_too_much(uint64_t retained);

// scavgoal_room returns how many bytes beyond the retained ones may be brought
// in before scavgoal_too_much exceeds 0.
uint64_t scavgoal_room(uint64_t retained);

// The numbers that show whether a program is idle.
struct scavgoal_seen {
	uint64_t cycles;  // collections so far
	uint64_t changes; // scavgoal_changed so far
	uint64_t frees;	  // times that enough was freed by hand
	uint64_t live;	  // bytes in objects
	uint64_t goal;	  // of the heap
};

// scavgoal_active tells whether the program was active between two such
// records: whether it collected or changed a setting, or whether the bytes in
// its objects changed by more than 1 percent of the goal.
bool scavgoal_active(const struct scavgoal_seen *before,
		     const struct scavgoal_seen *now);

// scavgoal_since returns since when a program that was active between the two
// records has been idle: the end of the last collection, if there was no other
// activity, otherwise now.  A clock that was refused reads 0.
uint64_t scavgoal_since(const struct scavgoal_seen *before,
			const struct scavgoal_seen *seen, uint64_t now);

// What the last collection noted.  There is no check function: any numbers are
// possible.
struct scavgoal {
	atomic_u64 in_use;    // bytes in heap spans when its marking ended
	atomic_u64 last_goal; // its heap goal; 0: none yet
	atomic_u64 retained;  // bytes shortly before its stop ended
	atomic_u64 free;      // bytes of them in free pages when all was swept
	atomic_u64 live;      // bytes in objects that it found alive
	atomic_u64 ended;     // nanotime shortly before its stop ended
	atomic_u64 cycles;    // collections
	atomic_u64 changes;   // scavgoal_changed
	atomic_u64 frees;     // times that enough was freed by hand
};

RT_GLOBAL struct scavgoal scavgoal;

// scavgoal_reset forgets all collections.
void scavgoal_reset(void);

// scavgoal_changed notes that there may be more to release, or that less may be
// retained, than the last collection said.
RT_INLINE void scavgoal_changed(void)
{
	atomic_u64_add_relaxed(&scavgoal.changes, 1);
}

// The end of a sweep calls scavgoal_note (swept.c).  in_use and goal are those
// at the end of the marking before it.  The others are as in struct scavgoal.
struct scavgoal_found {
	uint64_t in_use, goal;
	uint64_t retained, free, live;
	uint64_t ended;
};
void scavgoal_note(const struct scavgoal_found *found);

#endif
