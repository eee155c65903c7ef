// Searching and filling 64-bit words.
#include "runtime/base/bits.h"

// ranges returns a word whose bit i is set if bits i .. i+n-1 of c are all set.
// Before each step, bit i of c is set if a range of k bits begins there.  A
// step doubles that length, but the last one stops at n.  So there are log2(n)
// steps, rounded up, instead of n - 1.
static uint64_t ranges(uint64_t c, unsigned n)
{
	unsigned left = n - 1; // bits of a range that are not tested yet

	for (unsigned k = 1; left > 0; k *= 2) {
		unsigned step = left < k ? left : k;

		c &= c >> step;
		if (c == 0)
			return 0;
		left -= step;
	}
	return c;
}

unsigned bits_find_range(uint64_t c, unsigned n)
{
	c = ranges(c, n);
	return c ? bits_ctz(c) : 64;
}

unsigned bits_find_last_range(uint64_t c, unsigned n)
{
	c = ranges(c, n);
	return c ? 63 - bits_clz(c) : 64;
}

// All bits but the highest of each group of 2^i bits.
static const uint64_t below_top[] = {
    UINT64_C(0x0000000000000000), // 1
    UINT64_C(0x5555555555555555), // 2
    UINT64_C(0x7777777777777777), // 4
    UINT64_C(0x7f7f7f7f7f7f7f7f), // 8
    UINT64_C(0x7fff7fff7fff7fff), // 16
    UINT64_C(0x7fffffff7fffffff), // 32
    UINT64_C(0x7fffffffffffffff), // 64
};

// Adding `below` to the lower bits of a group carries into its top bit if any
// lower bit is set, and never out of the group.  So `empty` has the top bit of
// exactly the groups that hold no bit.
uint64_t bits_fill_aligned(uint64_t x, unsigned m)
{
	uint64_t below = below_top[bits_ctz(m)];
	uint64_t empty = ~(((x & below) + below) | x | below);

	return ~((empty - (empty >> (m - 1))) | empty);
}
