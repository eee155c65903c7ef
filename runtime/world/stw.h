// stw.h - stop the world and start it.
//
// Go: stopTheWorldWithSema, startTheWorldWithSema, worldsema (proc.go).
//
// Stops are cooperative: a thread stands at its next poll, or already stands
// in a blocking region.  One stop at a time, in order of arrival.  While the
// world is stopped no P but the stopper's runs, none attaches or detaches,
// and no statistic changes but by the stopper.  A stop makes no decision:
// what it measured is returned, and the caller records it.
#ifndef RUNTIME_WORLD_STW_H
#define RUNTIME_WORLD_STW_H

#include <rt/world.h>

#include "runtime/world/proc.h"

// stw_acquire acquires the right to stop the world, and stw_release releases
// it.  No other stop, and no beginning or end of a heap, comes between the two.
// self is the caller's P, NULL when the thread is not attached; an attached
// caller waits for its turn as blocked.  The caller must hold no lock, and not
// have the right already.  The world runs meanwhile: threads attach and detach.
void stw_acquire(struct rt_proc *self);
void stw_release(void);

// stw_stop stops the world and stw_start starts it again; the caller must have
// the right to.  times may be NULL.
void stw_stop(struct rt_proc *self, int reason);
void stw_start(struct rt_proc *self, struct rt_stop_times *times);

// stw_fork_child is for the child of a fork, in the stop that the fork was made
// in: nobody waits for a turn any more.
void stw_fork_child(void);

// stw_stopped tells whether the world is stopped, by whomever.
bool stw_stopped(void);

// stw_reason is the reason of the stop that lasts.
int stw_reason(void);

// stw_begun tells, inside a stop, what is known of it.
struct stw_begin {
	uint64_t asked;		  // nanotime when the stop was asked for
	uint64_t finished;	  // nanotime when the last thread stood
	uint64_t stopping_cpu_ns; // rt_stop_times
};
struct stw_begin stw_begun(void);

// stw_count_from lets the tickets of those who stop the world go on from n,
// and returns the next one.  For tests; nobody has the world stopped or waits.
uint32_t stw_count_from(uint32_t n);

#endif
