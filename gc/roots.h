// roots.h - where marking begins.  Floor 7.
//
// Go: markroot (mgcmark.go).
//
// Roots are ranges that the host registered, and the stacks and registers of
// attached threads.  They are numbered jobs, so that several markers can
// share them.  The table grows and may be changed by any attached thread;
// marking reads it with the world stopped.
#ifndef GC_ROOTS_H
#define GC_ROOTS_H

#include "runtime/mcache.h"

// gcroots_add registers [lo, hi), 8-aligned; the same range may be added more
// than once.  False: no memory for the table.
bool gcroots_add(uintptr_t lo, uintptr_t hi, unsigned flags);

// gcroots_remove takes back one adding of exactly this range; false: there is
// none.
bool gcroots_remove(uintptr_t lo, uintptr_t hi);

void gcroots_fini(void);

// gcroots_ranges is the number of registered ranges, gcroots_range one of
// them.  World stopped.
struct gcroots_range {
	uintptr_t lo;
	uintptr_t hi;
	unsigned flags; // enum rt_root_flags
};
size_t gcroots_ranges(void);
struct gcroots_range gcroots_range(size_t i);

// gcroots_stack is the part of a standing thread's stack that is in use, and
// gcroots_registers its saved registers.  False: the thread's stack is not a
// root, or it has none.
bool gcroots_stack(struct rt_proc *p, struct gcroots_range *stack,
		   struct gcroots_range *registers);

#endif
