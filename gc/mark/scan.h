// scan.h - the words of one object become work.
//
// Go: scanobject (mgcmark.go).
//
// Every aligned word that lies in the heap's range is pushed; whether it is a
// pointer is found out when it is popped.  Of a large object only the first
// piece is scanned at once.  The rest is a range from which any marker takes
// pieces, so the stack stays small.  Scanning never drains.
#ifndef GC_MARK_SCAN_H
#define GC_MARK_SCAN_H

#include "gc/mark/grey.h"

enum {
	GCSCAN_BLOCK = 512, // bytes for which room is made at once
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
			*top++ = w;
	}
	m->work.top = top;
}

// gcscan_words pushes the words of [lo, hi), both 8-aligned.  It stops where
// room is refused and returns that address; hi: all are pushed.
uintptr_t gcscan_words(struct gcmarker *m, uintptr_t lo, uintptr_t hi);

// gcscan_references does the same for those words alone that are references: no
// address inside an object, and none with a tag.
uintptr_t gcscan_references(struct gcmarker *m, uintptr_t lo, uintptr_t hi);

// gcscan_overflow remembers that the marked object at base has to be scanned
// again.
void gcscan_overflow(struct gcmarker *m, uintptr_t base);

// gcscan_wide pushes the words of an object that was just marked, of a large
// one those of its first piece.  What does not fit is remembered: its page
// overflows.
void gcscan_wide(struct gcmarker *m, const struct gcgrey *o);

static_assert(GCGREY_SMALL_BYTES <= GCWORK_FEW * sizeof(uintptr_t),
	      "a small object fits");

// gcscan_small is gcscan_wide for an object of a few whole granules.
RT_NO_SANITIZE
static inline void gcscan_small(struct gcmarker *m, const struct gcgrey *o)
{
	const uintptr_t *word = (const uintptr_t *)o->base;
	const uintptr_t *end = (const uintptr_t *)(o->base + o->size);
	uintptr_t base = m->base;
	uint64_t used = m->used;
	uintptr_t *top = m->work.top;

	if (RT_UNLIKELY(top > m->work.high)) {
		gcscan_wide(m, o);
		return;
	}
	do {
		if ((uint64_t)(word[0] - base) < used)
			*top++ = word[0];
		if ((uint64_t)(word[1] - base) < used)
			*top++ = word[1];
		word += 2;
	} while (word != end);
	m->work.top = top;
}

// gcscan_grey scans what marking found.
RT_INLINE void gcscan_grey(struct gcmarker *m, enum gcgrey_result found,
			   const struct gcgrey *o)
{
	if (RT_LIKELY(found == GCGREY_SMALL))
		gcscan_small(m, o);
	else if (found == GCGREY_WIDE)
		gcscan_wide(m, o);
}

#endif
