// roots.h - where marking begins.
//
// Go: markroot (mgcmark.go).
//
// Roots are ranges that the host registered, and the stacks and registers of
// attached threads.  They are numbered jobs, so that several markers can
// share them.  The table grows and may be changed by any thread while the world
// runs; marking reads it with the world stopped.
//
// Adding and removing a range take the same time however many there are.
#ifndef GC_MARK_ROOTS_H
#define GC_MARK_ROOTS_H

#include <rt/roots.h>

#include "runtime/spans/mcache.h"

// gcroots_add registers [lo, hi), 8-aligned; the same range may be added more
// than once.  Returns false if there is no memory for the table.
bool gcroots_add(uintptr_t lo, uintptr_t hi, unsigned flags);

// gcroots_remove takes back one adding of exactly this range, of one that was
// added with both flags first those with RT_ROOT_EXACT.  Returns false if there
// is no such range.  The world must not be stopped, and the caller must see to
// it that no stop begins.
bool gcroots_remove(uintptr_t lo, uintptr_t hi);

void gcroots_fini(void);

// gcroots_ranges is the number of registered ranges, each counted once however
// often it was added.  gcroots_range is one of them: RT_ROOT_WORDS if it was
// added with that flag at all.  The world must be stopped.
struct gcroots_range {
	uintptr_t lo;
	uintptr_t hi;
	unsigned flags; // enum rt_root_flags
};
size_t gcroots_ranges(void);
struct gcroots_range gcroots_range(size_t i);

// gcroots_stack finds the part of a stopped thread's stack that is in use, and
// its saved registers.  Returns false if the thread's stack is no root, or if
// it has none.
bool gcroots_stack(struct rt_proc *p, struct gcroots_range *stack,
		   struct gcroots_range *registers);

// gcroots_fake_frame finds what the words of *rest, a part of p's stack or its
// registers, lead to beside the stack: the next frame that the address
// sanitizer has moved away.  It takes the words that it has looked at off
// *rest.  Returns false at the end.
bool gcroots_fake_frame(const struct rt_proc *p, struct gcroots_range *rest,
			struct gcroots_range *frame);

#endif
