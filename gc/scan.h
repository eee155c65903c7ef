// scan.h - the words of one object become work.  Floor 6.
//
// Go: scanobject (mgcmark.go).
//
// Every aligned word that lies in the heap's range is pushed; whether it is a
// pointer is found out when it is popped.  Large objects are scanned in
// pieces: what is left of one is pushed before its piece, so that another
// marker can take it and the stack stays small.  Scanning never drains.
#ifndef GC_SCAN_H
#define GC_SCAN_H

#include "gc/grey.h"

enum {
	GCSCAN_PIECE = 128 << 10, // Go: maxObletBytes
	GCSCAN_BLOCK = 512,	  // bytes for which room is made at once
	GCSCAN_SMALL = 96,	  // bytes that are scanned inline
};

// gcscan_block pushes the words of [lo, hi), both 8-aligned, for which there is
// room.
//
// Words are read as they are: the mutators stand, or the object is private;
// a sanitizer may have poisoned part of it.
RT_NO_SANITIZE
static inline void gcscan_block(struct gcmarker *m, uintptr_t lo, uintptr_t hi)
{
	uintptr_t base = m->base;
	uint64_t used = m->used;
	uintptr_t *top = m->work.top;

	for (; lo < hi; lo += sizeof(uintptr_t)) {
		uintptr_t w = *(const uintptr_t *)lo;

		if ((uint64_t)(w - base) < used)
			*top++ = w & ~(uintptr_t)7;
	}
	m->work.top = top;
}

// gcscan_words pushes the words of [lo, hi), both 8-aligned.  It stops where
// room is refused and returns that address; hi: all are pushed.
uintptr_t gcscan_words(struct gcmarker *m, uintptr_t lo, uintptr_t hi);

// gcscan_overflow remembers that the marked object at base has to be scanned
// again.
void gcscan_overflow(struct gcmarker *m, uintptr_t base);

// gcscan_rest is gcscan_object for objects that are not small, or without room.
void gcscan_rest(struct gcmarker *m, const struct gcgrey *o);

// gcscan_object pushes the words of an object that was just marked, of a
// large one those of its first piece.  What does not fit is remembered: its
// page overflows.
RT_INLINE void gcscan_object(struct gcmarker *m, const struct gcgrey *o)
{
	uintptr_t hi = o->base + o->size;

	if (o->size <= GCSCAN_SMALL &&
	    gcwork_room(&m->work, GCSCAN_SMALL / sizeof(uintptr_t)))
		gcscan_block(m, o->base, hi);
	else
		gcscan_rest(m, o);
}

// gcscan_more goes on at an address inside a large object.
void gcscan_more(struct gcmarker *m, uintptr_t at);

#endif
