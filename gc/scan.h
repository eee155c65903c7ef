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

enum { GCSCAN_PIECE = 128 << 10 }; // Go: maxObletBytes

// gcscan_words pushes the words of [lo, hi), both 8-aligned.  It stops at the
// first word that does not fit and returns its address; hi: all did.
//
// Words are read as they are: the mutators stand, or the object is private;
// a sanitizer may have poisoned part of it.
RT_NO_SANITIZE
static inline uintptr_t gcscan_words(struct gcmarker *m, uintptr_t lo,
				     uintptr_t hi)
{
	uintptr_t base = m->base;
	uint64_t used = m->used;

	for (; lo < hi; lo += sizeof(uintptr_t)) {
		uintptr_t w = *(const uintptr_t *)lo;

		if ((uint64_t)(w - base) >= used)
			continue;
		if (RT_UNLIKELY(!gcwork_push(&m->work, w & ~(uintptr_t)7)))
			return lo;
	}
	return hi;
}

// gcscan_overflow remembers that the marked object at base has to be scanned
// again.
void gcscan_overflow(struct gcmarker *m, uintptr_t base);

// gcscan_pieces scans a large object that was just marked.
void gcscan_pieces(struct gcmarker *m, const struct gcgrey *o);

// gcscan_object pushes the words of an object that was just marked, of a
// large one those of its first piece.  What does not fit is remembered: its
// page overflows.
RT_INLINE void gcscan_object(struct gcmarker *m, const struct gcgrey *o)
{
	uintptr_t hi = o->base + o->size;

	m->scanned_bytes += o->size;
	if (RT_UNLIKELY(o->size > SIZECLASS_MAX_SIZE))
		gcscan_pieces(m, o);
	else if (RT_UNLIKELY(gcscan_words(m, o->base, hi) != hi))
		gcscan_overflow(m, o->base);
}

// gcscan_more goes on at an address inside a large object.
void gcscan_more(struct gcmarker *m, uintptr_t at);

#endif
