// stw.h - stop the world and start it again.
//
// Go: stopTheWorldWithSema, startTheWorldWithSema, worldsema (proc.go).
//
// Stops are cooperative: a running thread parks at its next poll, and a thread
// in a blocking region counts as stopped.  While the world is stopped, only the
// stopper's P runs, and no thread attaches or detaches.  Only the stopper, and
// helpers that it waits for, change statistics.
//
// One thread at a time has the right to stop the world, in order of request.
// This module records nothing: the caller records the times that it returns.
#ifndef RUNTIME_WORLD_STW_H
#define RUNTIME_WORLD_STW_H

#include <rt/world.h>

#include "runtime/world/proc.h"

struct stw_begin {
	uint64_t asked;		  // nanotime of the request
	uint64_t finished;	  // nanotime when the last thread stopped
	uint64_t stopping_cpu_ns; // rt_stop_times
};

// Written by the thread that has the right; any thread may draw a ticket of
// sema and read stopped.
struct world {
	struct sema sema; // Go: worldsema
	atomic_u32 stopped;
	int reason;
	uint32_t nthreads;
	uint32_t slowest; // id of a P
	struct stw_begin begin;
};

RT_GLOBAL struct world world;

// stw_acquire waits for the right to stop the world; stw_release passes it to
// the thread that has waited longest.  Between the two no other thread stops
// the world, and no heap begins or ends.  Until the caller stops it, the world
// runs: threads attach and detach.
//
// self is the caller's P, NULL if it has none or is inside a blocking region.
// While it waits, self is blocked.  The caller must hold no lock, and must not
// have the right already.
void stw_acquire(struct rt_proc *self);
void stw_release(void);

// stw_try_acquire acquires the right if no thread has it.  Returns false
// otherwise, at once.
bool stw_try_acquire(void);

// stw_stop stops the world and returns when all other Ps are stopped.
// stw_start starts it and sets *times to how long the stop took; times may be
// NULL.  The caller must have the right; self is as for stw_acquire.
void stw_stop(struct rt_proc *self, int reason);
void stw_start(struct rt_proc *self, struct rt_stop_times *times);

// The child of a fork calls stw_fork_child, in the stop of the fork.  It drops
// the places of waiting threads, which the child does not have.
void stw_fork_child(void);

// stw_stopped tells whether any thread has the world stopped.  The answer stays
// true only for the stopper.
bool stw_stopped(void);

// stw_reason returns the reason of the present stop.  The caller must be the
// stopper.
int stw_reason(void);

// stw_begun returns the times with which the present stop began.  The caller
// must be the stopper.
struct stw_begin stw_begun(void);

#ifdef RT_TEST
// stw_count_from makes n the next ticket for the right, and returns what would
// have been next.  No thread may have the right or wait for it.
uint32_t stw_count_from(uint32_t n);
#endif

// stw_check returns NULL if all invariants of the present stop hold, otherwise
// what does not.  The caller must be the stopper.  Debug builds call it in
// stw_stop.
const char *stw_check(const struct world *w);

#endif
