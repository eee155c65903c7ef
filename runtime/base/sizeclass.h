// sizeclass.h - Go's 67 size classes.
//
// Go: sizeclasses.go.  The tables are made by tools/mksizeclass.c; a test
// compares both.  Class 0 stands for large objects, one span each.
//
// Rules on sizes: a request of up to SIZECLASS_MAX_REQUEST bytes is small,
// whatever its kind.  Unless the heap is configured with align8, requests of
// 16 bytes and more skip the classes that are not multiples of 16 (8 and 24),
// so that they are aligned as C expects, and smaller ones take 16 bytes.
#ifndef RUNTIME_BASE_SIZECLASS_H
#define RUNTIME_BASE_SIZECLASS_H

#include "runtime/base/base.h"

enum {
	SIZECLASS_COUNT = 68,
	SIZECLASS_MAX_SIZE = 32768,
	SIZECLASS_MAX_REQUEST = 32760,
	SIZECLASS_MAX_PAGES = 10,
	SIZECLASS_TINY = 2, // 16 bytes
	SIZECLASS_TINY_SIZE = 16,
	SIZECLASS_SMALL_DIV = 8,
	SIZECLASS_SMALL_MAX = 1024,
	SIZECLASS_LARGE_DIV = 128,
};

// One line of a class: everything that the allocator and the marker need,
// in a quarter of a cache line.
struct sizeclass {
	uint32_t size;	    // bytes an object; 0 for class 0
	uint32_t divmagic;  // (offset * divmagic) >> 32 is offset / size
	uint32_t nelems;    // objects a span
	uint16_t npages;    // pages a span
	uint16_t mask_word; // where the slot mask begins in sizeclass_masks
};

RT_GLOBAL const struct sizeclass sizeclass_table[SIZECLASS_COUNT];

// sizeclass_masks + mask_word: npages * 8 words, one bit a granule of 16
// bytes, set where a slot begins.  The 8-byte class has 16 words, one bit a
// slot.
RT_GLOBAL const uint64_t sizeclass_masks[];

RT_GLOBAL const uint8_t
    sizeclass_of8[SIZECLASS_SMALL_MAX / SIZECLASS_SMALL_DIV + 1];
RT_GLOBAL const uint8_t sizeclass_of128
    [(SIZECLASS_MAX_SIZE - SIZECLASS_SMALL_MAX) / SIZECLASS_LARGE_DIV + 1];

// sizeclass_of is the first class with n bytes or more, n <= 32768; Go's
// class for every size.  It is 0 for 0: who asks for nothing is given 1 byte
// before.
RT_INLINE unsigned sizeclass_of(size_t n)
{
	if (n <= SIZECLASS_SMALL_MAX - 8)
		return sizeclass_of8[(n + SIZECLASS_SMALL_DIV - 1) /
				     SIZECLASS_SMALL_DIV];
	return sizeclass_of128[(n - SIZECLASS_SMALL_MAX + SIZECLASS_LARGE_DIV -
				1) /
			       SIZECLASS_LARGE_DIV];
}

// sizeclass_of16 is the same with classes 1 and 3 skipped.
RT_INLINE unsigned sizeclass_of16(size_t n)
{
	unsigned c = sizeclass_of(n);

	return c == 1 || c == 3 ? c + 1 : c;
}

// sizeclass_bit_shift: an object's bit number is its offset in the span
// shifted right by this (granules of 16 bytes; the 8-byte class has a bit
// every 8).
RT_INLINE unsigned sizeclass_bit_shift(unsigned c)
{
	return c == 1 ? 3 : RT_GRANULE_SHIFT;
}

// sizeclass_words is the number of bitmap words of a span.
RT_INLINE unsigned sizeclass_words(unsigned c)
{
	return c == 1 ? 2 * RT_PAGE_WORDS
		      : sizeclass_table[c].npages * RT_PAGE_WORDS;
}

#endif
