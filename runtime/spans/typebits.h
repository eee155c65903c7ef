// typebits.h - which words of typed objects are references.
//
// Go: heapBits, typePointers (mbitmap.go).
//
// A table of the arena has one bit for each word: 128 bytes for a page.  The
// bits of a slot are written when its object is allocated.  Until then, and on
// pages without typed objects, they mean nothing.  Only the P that caches a
// span writes the bits of its slots, or the stopper, if it takes an object from
// that cache for a thread that waits.  Markers read them with the world
// stopped.  The bits of a page are whole words of the table, so two threads
// never write the same word.
//
// An object with a span of its own has a record instead, in the place of the
// bits of the span's first page, because its bits would be many and alike.
#ifndef RUNTIME_SPANS_TYPEBITS_H
#define RUNTIME_SPANS_TYPEBITS_H

#include "runtime/pages/arena.h"

enum {
	TYPEBITS_PER = 64, // words of the heap for a word of the table
	TYPEBITS_BYTES = TYPEBITS_PER * sizeof(uintptr_t), // the same in bytes
	TYPEBITS_RECORD = RT_PAGE_SIZE / TYPEBITS_BYTES * sizeof(uint64_t),
};

// typebits_low returns the n lowest bits of x; n is 1 up to 64.
RT_INLINE uint64_t typebits_low(uint64_t x, size_t n)
{
	unsigned others = -(unsigned)n % 64;

	return x << others >> others;
}

// typebits_get returns the bits of the n words from p on, 1 up to 64.  The
// result's bits from n on belong to other words.
RT_INLINE uint64_t typebits_get(uintptr_t p, size_t n)
{
	uint64_t i = arena_offset(p) / sizeof(uintptr_t);
	const uint64_t *w = &arena_typebits()[i / TYPEBITS_PER];
	unsigned shift = i % TYPEBITS_PER;
	unsigned rest = TYPEBITS_PER - shift;
	uint64_t x = w[0] >> shift;

	return n > rest ? x | w[1] << rest : x;
}

// typebits_prefetch prefetches the bits of p, which must be in the heap.
RT_INLINE void typebits_prefetch(uintptr_t p)
{
	__builtin_prefetch(&arena_typebits()[arena_offset(p) / TYPEBITS_BYTES]);
}

// typebits_put writes the bits of the n words from p on, 1 up to 64.
RT_INLINE void typebits_put(uintptr_t p, size_t n, uint64_t bits)
{
	uint64_t i = arena_offset(p) / sizeof(uintptr_t);
	uint64_t *w = &arena_typebits()[i / TYPEBITS_PER];
	unsigned shift = i % TYPEBITS_PER;

	// Only bits that differ change.
	w[0] ^= typebits_low(w[0] >> shift ^ bits, n) << shift;
	if (shift + n > TYPEBITS_PER) {
		unsigned rest = TYPEBITS_PER - shift;

		w[1] ^= typebits_low(w[1] ^ bits >> rest, n - rest);
	}
}

// typebits_record returns the record of the object whose span begins at a page.
// It has TYPEBITS_RECORD bytes.
RT_INLINE void *typebits_record(uint64_t page)
{
	return (char *)arena_typebits() + page * TYPEBITS_RECORD;
}

#endif
