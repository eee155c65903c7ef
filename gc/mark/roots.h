// roots.h - where marking begins.
//
// Go: markroot (mgcmark.go).
//
// Roots are ranges that the host registered, and the stacks and registers of
// attached threads.  The table of ranges grows.  Any thread may change it while
// the world runs; marking reads it with the world stopped.
//
// Adding and removing a range take the same time however many there are.
#ifndef GC_MARK_ROOTS_H
#define GC_MARK_ROOTS_H

#include <rt/roots.h>

#include "runtime/spans/mcache.h"

// A range that was added at least once.
struct roots_entry {
	uintptr_t lo;
	uintptr_t hi;
	size_t times[2]; // additions, by enum rt_root_flags
	uint32_t next;	 // entry of the same bucket, or UINT32_MAX
};

// The ranges lie side by side, so that jobs can be cut from them; buckets lead
// from the bounds of a range to its entry.
struct roots {
	struct mutex lock;
	struct roots_entry *entry;
	uint32_t *bucket; // after the entries: the first of each chain
	size_t n;
	size_t room; // of entries, and of buckets; a power of two, or 0
};

RT_GLOBAL struct roots roots;

// roots_add registers [lo, hi), which must be 8-aligned.  The same range may be
// added more than once.  Returns false if there is no memory for the table.
bool roots_add(uintptr_t lo, uintptr_t hi, unsigned flags);

// roots_remove undoes one roots_add of exactly this range.  If the range was
// added with both flags, those with RT_ROOT_EXACT are undone first.  Returns
// false if there is no such range.  The world must run, and the caller must
// keep a stop from beginning.
bool roots_remove(uintptr_t lo, uintptr_t hi);

void roots_fini(void);

// roots_ranges returns the number of registered ranges, each counted once
// however often it was added.  roots_range returns one of them, with
// RT_ROOT_WORDS if it was added with that flag at all.  The world must be
// stopped.
struct roots_range {
	uintptr_t lo;
	uintptr_t hi;
	unsigned flags; // enum rt_root_flags
};
size_t roots_ranges(void);
struct roots_range roots_range(size_t i);

// roots_stack finds the part of a stopped thread's stack that is in use, and
// its saved registers.  Returns false if the stack is not a root, or if the
// thread has none.
bool roots_stack(struct rt_proc *p, struct roots_range *stack,
		 struct roots_range *registers);

// roots_fake_frame finds the next frame that the address sanitizer has moved
// off p's stack and that a word of *rest points to.  *rest is a part of the
// stack, or the registers; the words that were looked at are taken off it.
// Returns false if no frame is left.
bool roots_fake_frame(const struct rt_proc *p, struct roots_range *rest,
		      struct roots_range *frame);

// roots_check returns NULL if all invariants hold, otherwise what does not. The
// caller must hold roots.lock, or have the world stopped.  Debug builds ask it
// when the table has grown.  When a range is added or removed they ask for that
// range, and for the fields of the table.
const char *roots_check(const struct roots *r);

#endif
