// door.h - what public functions ask of their caller.
//
// The questions are: is there a heap, is the thread attached, is it outside a
// blocking region, is it outside a no-GC stretch, has it not stopped the world.
// One byte answers most of them: rt_thread.nogc is RT_NOGC_NONE in a thread
// that is not attached, as without a heap, and inside a region.
#ifndef GC_HOST_DOOR_H
#define GC_HOST_DOOR_H

#include <rt/version.h>

#include "runtime/world/stw.h"

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

// door_blocking answers for such a function that blocks or polls, or looks at
// the whole heap, which callbacks of a collection must not do.  In a no-GC
// stretch it returns RT_ESTATE.
int door_blocking(bool stopper);

// door_refusal returns why t, the calling thread, which is not attached or in a
// region, may not do what attached threads may: RT_ESTATE or RT_EPERM.
int door_refusal(const struct rt_thread *t);

// door_nogc tells whether the calling thread is in a no-GC stretch.
RT_INLINE bool door_nogc(void)
{
	return proc_in_nogc(rt_thread_tls);
}

// door_allocating tells whether t may allocate: attached, outside a region,
// not in its own stop.
RT_INLINE bool door_allocating(const struct rt_thread *t)
{
	return t->nogc != RT_NOGC_NONE && !t->p->stopper;
}

// door_stopper tells whether the calling thread has the world stopped.
RT_INLINE bool door_stopper(void)
{
	const struct rt_proc *p = proc_self();

	return p && p->stopper;
}

// door_collecting tells whether the calling thread collects: it is inside a
// root, trace or describe callback.
RT_INLINE bool door_collecting(void)
{
	return door_stopper() && stw_reason() == RT_STOP_GC_MARK_TERM;
}

// door_may_go_on tells whether t, one of whose handlers has just run, may still
// allocate: the handler may have detached the thread, or worse.
RT_INLINE bool door_may_go_on(const struct rt_thread *t)
{
	return rt_thread_tls == t && door_allocating(t);
}

#endif
