// attach.h - a thread attaches and detaches.
//
// Go: acquirep, releasep, needm (proc.go).
#ifndef GC_HOST_ATTACH_H
#define GC_HOST_ATTACH_H

#include "runtime/spans/mcache.h"

// attach_init arranges, once in a process, that threads detach when they exit.
// Returns false if the system refuses.
bool attach_init(void);

// attach_thread attaches the calling thread, whose stack is [lo, hi), or if
// both are 0 the one that the system names.  It waits while the world is
// stopped.  Returns RT_OK, RT_ESTATE if the thread is attached or the heap has
// ended meanwhile, or RT_ENOMEM.  Without RT_THREAD_EXACT, returns RT_EINVAL if
// the caller does not run on that stack, or if the stack that the host has
// named cannot be read, and a positive errno if the system refuses to report
// the bounds.  But if lo and hi are 0, a thread that runs on a registered stack
// attaches even so, without a stack of its own.
int attach_thread(uintptr_t lo, uintptr_t hi, unsigned flags);

// attach_answer turns what attach_thread returned into the result of a public
// function.  It tells the host's warn handler what the system refused, or else
// gives the warnings that are due (handlers_warn_pending).  The caller must
// hold no lock.
int attach_answer(int error);

// attach_undo detaches the calling thread, which must not be in a region or
// have stopped the world.  If the thread exits in a no-GC stretch, this ends
// the stretch.  It waits while the world is stopped.
void attach_undo(void);

#endif
