// door.h - what public functions ask of their caller.
//
// Go: none.
//
// The questions are: is there a heap, is the thread attached, is it outside a
// blocking region, is it outside a no-GC stretch, has it not stopped the world,
// may it go on after a function of the host has run, may it remove something.
// One byte answers most of them.  rt_thread.nogc is RT_NOGC_NONE inside a
// region and in a thread that is not attached, so it has that value without a
// heap, too.
#ifndef GC_HOST_DOOR_H
#define GC_HOST_DOOR_H

#include <rt/version.h>

#include "runtime/world/stw.h"
#include "gc/mark/trace.h"

// There is no check function: it is one flag.
struct door {
	atomic_u32 ready; // 1: there is a heap; written after stw_acquire
};

RT_GLOBAL struct door door;

// door_ready tells whether there is a heap.  The acquire pairs with the
// releases in lifetime_begin and close_heap (lifetime.c).
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

// door_answer returns an answer.  If it refuses, a debug build names the
// function and the callback of the host that calls it.  It is for public
// functions; the macro passes their name.
#define door_answer(error) door_answer_of(error, __func__)
RT_INLINE int door_answer_of(int error, const char *function)
{
	if (RT_DEBUG_BUILD &&
	    (error == RT_EBUSY || error == RT_EPERM || error == RT_ESTATE))
		hostcall_tell(function);
	return error;
}

// door_attached answers for a function of attached threads outside a blocking
// region; with stopper, even in the caller's own stop.  Returns RT_OK,
// RT_ESTATE, RT_EPERM or RT_EBUSY.  door_attached_now answers for a function
// that is not public.
#define door_attached(stopper) door_answer(door_attached_now(stopper))
int door_attached_now(bool stopper);

// door_blocking is door_attached for a function that blocks, polls or looks at
// the whole heap, which callbacks of a collection must not do.  In a no-GC
// stretch it returns RT_ESTATE.
#define door_blocking(stopper) door_answer(door_blocking_now(stopper))
int door_blocking_now(bool stopper);

// door_refusal returns why the calling thread t may not do what attached
// threads may: RT_ESTATE or RT_EPERM.  t must be unattached or in a region.
int door_refusal(const struct rt_thread *t);

// door_nogc tells whether the calling thread is in a no-GC stretch.
RT_INLINE bool door_nogc(void)
{
	return proc_in_nogc(rt_thread_tls);
}

// door_allocating tells whether t may allocate: attached, outside a region, not
// in its own stop.  door_supplying does the same for a public function, which
// otherwise returns NULL.
RT_INLINE bool door_allocating(const struct rt_thread *t)
{
	return t->nogc != RT_NOGC_NONE && !t->p->stopper;
}

#define door_supplying(t) door_supplying_to(t, __func__)
RT_INLINE bool door_supplying_to(const struct rt_thread *t,
				 const char *function)
{
	bool may = door_allocating(t);

	if (RT_DEBUG_BUILD && !may)
		hostcall_tell(function);
	return may;
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

// door_in_callback tells whether the calling thread is in such a callback,
// perhaps as a helper.  There it must not wait for the end of the stop, which
// waits for the callback.
RT_INLINE bool door_in_callback(void)
{
	return trace_self() != NULL || door_collecting();
}

// door_may_go_on tells whether t, on which a function of the host has just run,
// may still allocate: the function may have detached the thread, left a region
// open or stopped the world.
RT_INLINE bool door_may_go_on(const struct rt_thread *t)
{
	return rt_thread_tls == t && door_allocating(t);
}

// door_attachments counts how often the calling thread has been attached.
RT_GLOBAL __thread uint64_t door_attachments
    __attribute__((tls_model("initial-exec")));

// door_stayed is door_may_go_on for a thread that holds objects in its frames.
// attachments is door_attachments before the handler ran.  While a thread is
// detached, its stack keeps nothing alive.  So after that these objects may be
// gone, even if the thread is attached again, perhaps with the same block.
RT_INLINE bool door_stayed(const struct rt_thread *t, uint64_t attachments)
{
	return door_may_go_on(t) && door_attachments == attachments;
}

// door_removal_begin keeps a stop from beginning until door_removal_end.  A
// thread that no stop waits for acquires the right to stop the world, so no
// stop begins and the heap does not end meanwhile.  Returns an error if the
// caller may not remove anything, and then nothing needs to be ended.
int door_removal_begin(bool *acquired);
void door_removal_end(bool acquired);

#endif
