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

// roots_add registers [lo, hi), 8-aligned; the same range may be added more
// than once.  Returns false if there is no memory for the table.
bool roots_add(uintptr_t lo, uintptr_t hi, unsigned flags);

// roots_remove takes back one adding of exactly this range, of one that was
// added with both flags first those with RT_ROOT_EXACT.  Returns false if there
// is no such range.  The world must not be stopped, and the caller must see to
// it that no stop begins.
bool roots_remove(uintptr_t lo, uintptr_t hi);

void roots_fini(void);

// roots_ranges is the number of registered ranges, each counted once however
// often it was added.  roots_range is one of them: RT_ROOT_WORDS if it was
// added with that flag at all.  The world must be stopped.
struct roots_range {
	uintptr_t lo;
	uintptr_t hi;
	unsigned flags; // enum rt_root_flags
};
size_t roots_ranges(void);
struct roots_range roots_range(size_t i);

// roots_stack finds the part of a stopped thread's stack that is in use, and
// its saved registers.  Returns false if the thread's stack is no root, or if
// it has none.
bool roots_stack(struct rt_proc *p, struct roots_range *stack,
		 struct roots_range *registers);

// roots_fake_frame finds what the words of *rest, a part of p's stack or its
// registers, lead to beside the stack: the next frame that the address
// sanitizer has moved away.  It takes the words that it has looked at off
// *rest.  Returns false at the end.
bool roots_fake_frame(const struct rt_proc *p, struct roots_range *rest,
		      struct roots_range *frame);

#endif
