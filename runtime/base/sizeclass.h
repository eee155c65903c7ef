// sizeclass.h - Go's 67 size classes.
//
// Go: sizeclasses.go.
//
// The tables are made by tools/mksizeclass.c; a test compares both.  Class 0 is
// for large objects, which have one span each.
//
// A request of up to SIZECLASS_MAX_REQUEST bytes is small, whatever its kind.
// Requests skip the classes that are not multiples of 16 (8 and 24), so objects
// are aligned as C expects.  The exceptions (supply_class) are requests of up
// to 8 bytes of KIND_NOSCAN, requests of 17 to 24 bytes of a host's kind from
// KIND_ALIGN8 on or of a type with alignment 8, and most requests in a heap
// that is configured with align8.
#ifndef RUNTIME_BASE_SIZECLASS_H
#define RUNTIME_BASE_SIZECLASS_H

#include "runtime/base/base.h"

enum {
	SIZECLASS_COUNT = 68,
	SIZECLASS_MAX_SIZE = 32768,
	SIZECLASS_MAX_REQUEST = 32760,
	SIZECLASS_TINY = 2, // 16 bytes
	SIZECLASS_TINY_SIZE = 16,
	SIZECLASS_SMALL_DIV = 8,
	SIZECLASS_SMALL_MAX = 1024,
	SIZECLASS_LARGE_DIV = 128,
};

// A row of the table of classes: all that the allocator and the marker need, in
// a quarter of a cache line.
struct sizeclass {
	uint32_t size;	    // bytes an object; 0 for class 0
	uint32_t divmagic;  // (offset * divmagic) >> 32 is offset / size
	uint32_t nelems;    // objects a span
	uint16_t npages;    // pages a span
	uint16_t mask_word; // where the slot mask begins in sizeclass_masks
};

RT_GLOBAL const struct sizeclass sizeclass_table[SIZECLASS_COUNT];

// The slot mask of a class is npages * 8 words at sizeclass_masks + mask_word.
// It has one bit for each granule of 16 bytes.  A bit is set if sizeclass_bit
// returns its number for a slot.  The mask of the 8-byte class has 16 words,
// one bit for each slot.
RT_GLOBAL const uint64_t sizeclass_masks[];

RT_GLOBAL const uint8_t
    sizeclass_of8[SIZECLASS_SMALL_MAX / SIZECLASS_SMALL_DIV + 1];
RT_GLOBAL const uint8_t sizeclass_of128
    [(SIZECLASS_MAX_SIZE - SIZECLASS_SMALL_MAX) / SIZECLASS_LARGE_DIV + 1];

// sizeclass_of returns the first class of n bytes or more, which is Go's class
// for every size.  n must be at most 32768.  Returns 0 if n is 0.
RT_INLINE unsigned sizeclass_of(size_t n)
{
	if (n <= SIZECLASS_SMALL_MAX - 8)
		return sizeclass_of8[(n + SIZECLASS_SMALL_DIV - 1) /
				     SIZECLASS_SMALL_DIV];
	return sizeclass_of128[(n - SIZECLASS_SMALL_MAX + SIZECLASS_LARGE_DIV -
				1) /
			       SIZECLASS_LARGE_DIV];
}

// sizeclass_of16 is sizeclass_of without classes 1 and 3.
RT_INLINE unsigned sizeclass_of16(size_t n)
{
	unsigned c = sizeclass_of(n);

	return c == 1 || c == 3 ? c + 1 : c;
}

// sizeclass_bit_shift returns the binary logarithm of the number of bytes that
// one bit of a class is for: 16, or 8 in the 8-byte class.
RT_INLINE unsigned sizeclass_bit_shift(unsigned c)
{
	return c == 1 ? 3 : RT_GRANULE_SHIFT;
}

// sizeclass_bit returns the bit number of the slot that begins at an offset of
// its span.  It is the number of the first granule that is wholly in the slot,
// or in the 8-byte class the number of the slot.  An object of 24 bytes may
// begin in the middle of a granule, but no other object is in the granule of
// its bit.
RT_INLINE unsigned sizeclass_bit(unsigned c, uint64_t offset)
{
	return (unsigned)(c == 1
			      ? offset >> 3
			      : (offset + RT_GRANULE - 1) >> RT_GRANULE_SHIFT);
}

// sizeclass_is_aligned tells whether every slot of a class begins at a multiple
// of 16.
RT_INLINE bool sizeclass_is_aligned(unsigned c)
{
	return c > 3 || c == 2;
}

// sizeclass_words returns the number of linewords of one sort, mark or alloc,
// that a span of a class has.
RT_INLINE unsigned sizeclass_words(unsigned c)
{
	return c == 1 ? 2 * RT_PAGE_WORDS
		      : sizeclass_table[c].npages * RT_PAGE_WORDS;
}

#endif
