// object.h - from an address to the object that it points into.
//
// Go: findObject (mbitmap.go), spanOf (mheap.go).
//
// Asked of any 64-bit value by any thread at any time, also by threads that no
// stop waits for, while spans are flipped, swept, freed and used again.  So
// only atomic words are read, and an answer is checked against the sweepgen
// that it was found under.
#ifndef RUNTIME_SPANS_OBJECT_H
#define RUNTIME_SPANS_OBJECT_H

#include "runtime/spans/mspan.h"

struct object {
	uintptr_t base;
	uint64_t size; // bytes of the slot; large: of its pages, but
		       // guarded: those asked for
	unsigned kind;
	uint64_t request; // large: bytes asked for; small: size
};

// object_find finds the allocated object that p points into.  p may be any
// value; any thread, any time: only atomic words are read, and for a small
// object nothing of its mspan.  False: none.
bool object_find(uintptr_t p, struct object *o);

// object_is_reference tells whether p is what an allocation has returned: the
// base of an allocated object.  Any address in 16 bytes without pointers is
// one, since several small requests may share them.  As object_find otherwise.
bool object_is_reference(uintptr_t p);

#endif
