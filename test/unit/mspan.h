// mspan.h - bits of spans, written and read by hand.
#ifndef TEST_UNIT_MSPAN_H
#define TEST_UNIT_MSPAN_H

#include "test/harness/inside.h"

// Each test has one thread, so the thread sanitizer needs few rounds.
enum { CUT = RT_TSAN || COVERAGE_BUILD ? 10 : 1 };

static inline unsigned heap_line(void)
{
	return epoch_alloc_line(epoch_sweepgen());
}

// put_bit sets or clears the bit of a slot by hand.
static inline void put_bit(const struct mspan *s, unsigned line, uint32_t slot,
			   bool set)
{
	unsigned bit = mspan_bit(s, slot);
	atomic_u64 *word = mspan_lineword(s, line, bit / 64);
	uint64_t mask = UINT64_C(1) << (bit % 64);
	uint64_t old = atomic_u64_load_relaxed(word);

	atomic_u64_store_relaxed(word, set ? old | mask : old & ~mask);
}

static inline uint64_t verify_errors(void)
{
	struct rt_verify v;

	ck_assert_int_eq(rt_heap_verify(&v), RT_OK);
	return v.errors;
}

// fill gives every slot a random bit.  No slot is allocated, or all are, or
// about one of 2^sparse, or all but about one of 2^sparse.
static inline void fill(struct rng *r, const struct mspan *s)
{
	unsigned shape = (unsigned)rng_below(r, 6);
	unsigned sparse = 1 + (unsigned)rng_below(r, 5);

	for (uint32_t i = 0; i < s->nelems; i++) {
		bool rare = (rng_next(r) & ((1u << sparse) - 1)) == 0;
		bool set = shape == 0	? false
			   : shape == 1 ? true
			   : shape < 4	? rare
					: !rare;

		put_bit(s, heap_line(), i, set);
	}
}

#endif
