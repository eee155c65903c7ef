// frames.h - the variables that a list of named frames leads to.
//
// Go: none; the compiler's stack maps there.
//
// The list is the host's (rt/frame.h).  It may be read while its thread is
// stopped, or while no thread runs on the stack that it was saved for.  The
// walk is a loop: a list may be as long as there is stack.  There is no check
// function: a frame is memory of the host.
#ifndef GC_MARK_FRAMES_H
#define GC_MARK_FRAMES_H

#include <rt/frame.h>

#include "runtime/base/base.h"

enum { FRAMES_NAME = 48 }; // bytes of a variable's name, with its end

// A place in a list.  At the beginning f is the newest frame, which may be
// NULL, and i is 0.
struct frames_at {
	const rt_frame *f;
	size_t i; // variables of f that were passed
};

// frames_next returns the address of the next variable, or NULL.
RT_NO_SANITIZE
static inline const volatile uintptr_t *frames_next(struct frames_at *at)
{
	while (at->f && at->i == at->f->n) {
		at->f = at->f->prev;
		at->i = 0;
	}
	return at->f ? at->f->slot[at->i++] : NULL;
}

// frames_name copies the name of the variable that frames_next has returned
// last.  A long one is cut.
void frames_name(const struct frames_at *at, char name[FRAMES_NAME]);

#endif
