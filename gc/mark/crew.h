// crew.h - calls for threads that help the one who stopped the world.
//
// A call is a hint: who calls does not wait for helpers to come, and one that
// comes late finds nothing to do.  So a helper that lost its processor, or
// does not exist in the child of a fork, delays nobody.
#ifndef GC_MARK_CREW_H
#define GC_MARK_CREW_H

#include "runtime/base/atomic.h"

enum crew_task {
	CREW_NONE,
	CREW_MARK,
	CREW_SWEEP,
	CREW_ADVISE, // provide huge pages, with the world started
	CREW_QUIT,   // for good
};

// crew_call wakes the helpers for a task.  One caller at a time.
void crew_call(enum crew_task task);

// crew_wait sleeps until there is a call other than *seen, and sets *seen.  It
// begins with 0.
enum crew_task crew_wait(uint32_t *seen);

// crew_called tells whether there is a call other than seen.
bool crew_called(uint32_t seen);

// crew_size is the number of helpers that wait for calls or serve one.
uint32_t crew_size(void);
void crew_enter(void);
void crew_leave(void);

// crew_reset forgets all helpers: they have ended, or are another process's.
void crew_reset(void);

// crew_count_from lets the numbers of calls, of 29 bits, go on from n, and
// returns the last one.  For tests, which begin near the end of the numbers;
// there are no helpers.
uint32_t crew_count_from(uint32_t n);

#endif
