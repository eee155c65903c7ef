// attach.h - a thread comes and goes.
//
// Go: acquirep, releasep, needm (proc.go).
#ifndef GC_HOST_ATTACH_H
#define GC_HOST_ATTACH_H

#include "runtime/spans/mcache.h"

// attach_init prepares the detaching of threads that exit, once a process;
// false: the system refuses.
bool attach_init(void);

// attach_thread attaches the calling thread, whose stack is [lo, hi) (0, 0:
// ask the system).  Returns RT_OK, RT_ESTATE, RT_ENOMEM, RT_EINVAL if the
// system does not know the stack that the caller runs on, or the errno, which
// is positive, with which it refused to tell the bounds.
int attach_thread(uintptr_t lo, uintptr_t hi, unsigned flags);

// attach_answer makes the answer of a public function from that, and tells the
// host's warn handler what was refused, or that mappings are running out.  The
// caller must hold no lock.
int attach_answer(int error);

// attach_undo detaches the calling thread, which is not in a region and has
// not stopped the world.
void attach_undo(void);

#endif
