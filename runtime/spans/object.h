// object.h - from an address to the object that it points into.
//
// Go: findObject (mbitmap.go), spanOf (mheap.go).
//
// Any thread may ask about any 64-bit value at any time, even a thread that no
// stop waits for, while spans are flipped, swept, freed and used again.  So
// only atomic fields are read, and an answer is checked against the sweepgen
// under which it was found.
#ifndef RUNTIME_SPANS_OBJECT_H
#define RUNTIME_SPANS_OBJECT_H

#include "runtime/spans/mspan.h"

struct object {
	uintptr_t base;
	uint64_t size; // bytes of the slot; large: of its pages; guarded:
		       // request
	unsigned kind;
	uint64_t request; // bytes requested; small: size
};

// object_span returns the span of an object that was found, and object_class
// its size class, 0 for a large one.
RT_INLINE struct mspan *object_span(const struct object *o)
{
	return arena_span(arena_offset(o->base) >> RT_PAGE_SHIFT);
}

RT_INLINE unsigned object_class(const struct object *o)
{
	uint64_t page = arena_offset(o->base) >> RT_PAGE_SHIFT;

	return pageword_class(arena_pageword(page));
}

// object_find finds the allocated object that p, which may be any value, points
// into.  Returns false if there is none, or if it is dead (deadbits.h).
//
// A thread that a stop waits for needs no second look at the sweepgen, and the
// stopper none at the pageword either.  They have no look-up of their own,
// because the second looks at both are only 9 of the 124 instructions of
// rt_size for a small object.
bool object_find(uintptr_t p, struct object *o);

// object_find_any finds dead objects as well.  The world must be stopped.
bool object_find_any(uintptr_t p, struct object *o);

// object_is_reference tells whether an allocation may have returned p: whether
// p is the base of an allocated object, dead or alive.  Any address in an
// object of 16 bytes without pointers counts as well, because several small
// requests may share the object.  The world must be stopped.
bool object_is_reference(uintptr_t p);

#endif
