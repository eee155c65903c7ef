// framemark.h - whether a call that may be left by longjmp is still under way.
//
// Go: none.
//
// A handler of the host may leave by longjmp or by an exception, and no code of
// ours runs then.  But the stack shows it.  The frame that calls the handler
// has a mark.  While the handler runs, its frames are below the mark.  After it
// was left, frames that reach as far down overwrite the mark.  Only an array
// larger than the mark, to which its function does not write, could leave all
// of it intact.
#ifndef GC_MARK_FRAMEMARK_H
#define GC_MARK_FRAMEMARK_H

#include "runtime/base/base.h"

enum { FRAMEMARK_WORDS = 64 };

// There is no check function: any words are possible.
struct framemark {
	uintptr_t words[FRAMEMARK_WORDS];
};

// framemark_set writes a mark.  It must be on the real stack, so the function
// that has it must be RT_NO_SANITIZE: a sanitizer's copy of the frame would be
// elsewhere.
void framemark_set(struct framemark *m);

// framemark_calls tells whether the call that has the mark is still under way,
// and the frame is of a function that it has called.  If the frame or the mark
// is on another stack than the attached one, the position alone decides, since
// the memory of the mark may be gone.
bool framemark_calls(const struct framemark *m, const void *frame);

#endif
