// door.h - what public functions ask of their caller.
//
// There are four questions, asked here and in this order: is there a heap, is
// the thread attached, is it outside a blocking region, has it not stopped the
// world.
#ifndef GC_HOST_DOOR_H
#define GC_HOST_DOOR_H

#include <rt/version.h>

#include "runtime/world/proc.h"

// No check: it is one flag.
struct door {
	atomic_u32 ready; // 1: there is a heap; written after stw_acquire
};

RT_GLOBAL struct door door;

RT_INLINE bool door_ready(void)
{
	return atomic_u32_load_acquire(&door.ready) != 0;
}

// door_any answers for a function that any thread may call.  Returns RT_OK or
// RT_ESTATE.
RT_INLINE int door_any(void)
{
	return door_ready() ? RT_OK : RT_ESTATE;
}

// door_attached answers for a function of attached threads outside a blocking
// region; with stopper, even in the caller's own stop.  Returns RT_OK,
// RT_ESTATE, RT_EPERM or RT_EBUSY.
int door_attached(bool stopper);

// door_allocating tells whether t may allocate: attached, outside a region,
// not in its own stop.
RT_INLINE bool door_allocating(const struct rt_thread *t)
{
	return t->mc && !t->p->stopper && !t->p->in_region;
}

// door_stopper tells whether the calling thread has the world stopped.
RT_INLINE bool door_stopper(void)
{
	const struct rt_proc *p = proc_self();

	return p && p->stopper;
}

// door_may_go_on tells whether t, one of whose handlers has just run, may still
// allocate: the handler may have detached the thread, or worse.
RT_INLINE bool door_may_go_on(const struct rt_thread *t)
{
	return rt_thread_tls == t && door_allocating(t);
}

#endif
