// bits.h - searching and filling 64-bit words.
//
// Go: findBitRange64 (mpallocbits.go), fillAligned (mgcscavenge.go).
#ifndef RUNTIME_BASE_BITS_H
#define RUNTIME_BASE_BITS_H

#include "runtime/base/base.h"

RT_INLINE unsigned bits_ctz(uint64_t x) // x must not be 0
{
	return (unsigned)__builtin_ctzll(x);
}

RT_INLINE unsigned bits_clz(uint64_t x) // x must not be 0
{
	return (unsigned)__builtin_clzll(x);
}

// bits_last returns the number of the highest set bit.
RT_INLINE unsigned bits_last(uint64_t x) // x must not be 0
{
	return 63 ^ bits_clz(x);
}

// bits_count returns the number of set bits.  If the processor may lack the
// instruction, the compiler's built-in is a call.  To save that call, the code
// then adds neighbouring bits in parallel.
RT_INLINE unsigned bits_count(uint64_t x)
{
#if defined(__POPCNT__) || defined(__aarch64__)
	return (unsigned)__builtin_popcountll(x);
#else
	x -= x >> 1 & UINT64_C(0x5555555555555555);
	x = (x & UINT64_C(0x3333333333333333)) +
	    (x >> 2 & UINT64_C(0x3333333333333333));
	x = (x + (x >> 4)) & UINT64_C(0x0f0f0f0f0f0f0f0f);
	return (unsigned)(x * UINT64_C(0x0101010101010101) >> 56);
#endif
}

// bits_len returns the number of bits that x needs, 0 if x is 0.
RT_INLINE unsigned bits_len(uint64_t x)
{
	return x ? 64 - bits_clz(x) : 0;
}

// bits_mask returns a word with bits [lo, hi) set.  lo must not be above hi,
// nor hi above 64.
RT_INLINE uint64_t bits_mask(unsigned lo, unsigned hi)
{
	uint64_t below_hi = hi == 64 ? ~UINT64_C(0) : (UINT64_C(1) << hi) - 1;
	uint64_t from_lo = lo == 64 ? 0 : ~UINT64_C(0) << lo;

	return below_hi & from_lo;
}

// bits_find_range returns the lowest i such that bits i .. i+n-1 of c are all
// set, bits_find_last_range the highest.  Both return 64 if there is none.  n
// must be 1 to 64.
unsigned bits_find_range(uint64_t c, unsigned n);
unsigned bits_find_last_range(uint64_t c, unsigned n);

// bits_fill_aligned sets every bit of each m-aligned group of m bits in which
// any bit of x is set.  m must be a power of two up to 64.
uint64_t bits_fill_aligned(uint64_t x, unsigned m);

#endif
