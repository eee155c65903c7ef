// crew.h - calls for threads that help the one that stopped the world.
//
// Go: gcBgMarkStartWorkers (mgc.go).
//
// A call is a hint: the caller does not wait for helpers, and a helper that
// comes late finds nothing to do.  So a helper that has lost its processor, or
// does not exist in the child of a fork, delays no thread.
#ifndef GC_MARK_CREW_H
#define GC_MARK_CREW_H

#include "runtime/base/atomic.h"

enum crew_task {
	CREW_NONE,
	CREW_MARK,
	CREW_SWEEP,
	CREW_ADVISE, // provide huge pages, with the world started
	CREW_QUIT,   // none: helpers look whether they must end
};

struct crew_calls {
	RT_CACHE_ALIGNED atomic_u32 call; // number of the call, then its task
	atomic_u32 size;
};

RT_GLOBAL struct crew_calls crew_calls;

// crew_call wakes the helpers for a task.  If two calls come at the same time,
// one may be lost.  So only CREW_QUIT may meet another call, because helpers
// look after every call whether they must end.
void crew_call(enum crew_task task);

// crew_wait waits until there is a call other than *seen, sets *seen to it, and
// returns its task.  *seen must be 0 at first.
enum crew_task crew_wait(uint32_t *seen);

// crew_called tells whether there is a call other than seen.
bool crew_called(uint32_t seen);

// crew_size returns the number of helpers that wait for calls or serve one.
uint32_t crew_size(void);
void crew_enter(void);
void crew_leave(void);

// crew_reset drops all helpers, which have ended or belong to another process.
void crew_reset(void);

#ifdef RT_TEST
// crew_count_from makes the numbers of calls, which have 29 bits, continue from
// n, and returns the last one.  There must be no helpers.
uint32_t crew_count_from(uint32_t n);
#endif

// crew_check returns NULL if the call is for a known task and there are not too
// many helpers, otherwise what is wrong.  Debug builds call it at each call,
// and when a helper enters or leaves.
const char *crew_check(const struct crew_calls *c);

#endif
