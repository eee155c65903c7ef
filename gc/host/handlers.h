// handlers.h - the functions of the host that the heap calls.
//
// Go: none.  The handler of fatal errors is in runtime/os/throw.h.
//
// A handler is called with no lock held, and not in its thread's own stop, so
// it may do all that its header allows.
#ifndef GC_HOST_HANDLERS_H
#define GC_HOST_HANDLERS_H

#include <rt/final.h>
#include <rt/gc.h>
#include <stdbool.h>

#include "runtime/os/sysmem.h"
#include "gc/mark/stacks.h"
#include "gc/mark/notices.h"
#include "gc/cycle/pacer.h"

// handlers_set_oom and handlers_set_warn replace a handler; a null fn removes
// it.
void handlers_set_oom(rt_oom_fn *fn, void *arg);
void handlers_set_warn(rt_text_fn *fn, void *arg);

// handlers_ask_oom calls the out-of-memory handler, and returns true if it
// wants n bytes to be tried again.  frame is the frame address of the caller,
// which must not be inlined.  Returns false without a handler, and in an
// allocation that the handler itself makes.
bool handlers_ask_oom(size_t n, const void *frame);

// handlers_warn calls the warn handler, if there is one.
void handlers_warn(const char *text);

// handlers_warn_pending gives the warnings that are due, of three:
//   - mappings are running out, once in the life of the process;
//   - a thread runs on an unknown stack, once for each thread;
//   - a collection has left more in use than the memory limit.
//
// Returns true if it gave any.  Public functions that allocate, collect, attach
// a thread, or add a root or a stack call it; they must hold no lock.  It does
// nothing in a no-GC stretch or in the caller's own stop.  handlers_warn_due is
// the part that runs only if a warning is due, as handlers_warning_due tells.
bool handlers_warn_due(void);
RT_INLINE bool handlers_warning_due(void)
{
	return RT_UNLIKELY(stacks_warning_due() || sysmem_warning_due() ||
			   pacer_warning_due());
}

RT_INLINE bool handlers_warn_pending(void)
{
	return handlers_warning_due() && handlers_warn_due();
}

// handlers_set_ready replaces the function that is told how many destructors
// are ready, and handlers_tell_ready calls it, if there is one.
void handlers_set_ready(rt_ready_fn *fn, void *arg);
void handlers_tell_ready(size_t n);

// handlers_telling_ready tells whether the calling thread is in that function,
// which must not run destructors.
bool handlers_telling_ready(void);

// handlers_tell_notices passes the lines that were written in stops (notices.h)
// to the warn handler, or to stderr if there is none.  Public functions that
// may have collected call it where they hold no lock.  Returns true if the
// host's handler may have run.
bool handlers_tell_all(void);
RT_INLINE bool handlers_tell_notices(void)
{
	return RT_UNLIKELY(notices_left() != 0) && handlers_tell_all();
}

// handlers_fork_lock takes the handlers' lock for a fork, handlers_fork_unlock
// releases it.
void handlers_fork_lock(void);
void handlers_fork_unlock(void);

#endif
