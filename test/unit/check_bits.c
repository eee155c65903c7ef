// Bits are counted, searched and filled as a loop over single bits would do it.
#include "test/harness/suite.h"

#include "runtime/base/bits.h"

// ---- what the functions do, bit by bit ----

static unsigned naive_find_range(uint64_t c, unsigned n)
{
	unsigned length = 0;

	for (unsigned i = 0; i < 64; i++) {
		length = c >> i & 1 ? length + 1 : 0;
		if (length == n)
			return i + 1 - n;
	}
	return 64;
}

static unsigned naive_find_last_range(uint64_t c, unsigned n)
{
	unsigned length = 0;

	for (unsigned i = 64; i-- > 0;) {
		length = c >> i & 1 ? length + 1 : 0;
		if (length == n)
			return i;
	}
	return 64;
}

static uint64_t naive_fill_aligned(uint64_t x, unsigned m)
{
	uint64_t filled = 0;

	for (unsigned i = 0; i < 64; i++) {
		unsigned group = i / m * m;

		for (unsigned j = group; j < group + m; j++)
			if (x >> j & 1)
				filled |= UINT64_C(1) << i;
	}
	return filled;
}

GROUP(words, .timeout = 60);

// No number of bytes is too large to be counted in pages.
TEST(pages_hold_any_number_of_bytes)
{
	ck_assert_uint_eq(base_pages(0), 0);
	for (uint64_t n = 1; n <= UINT64_C(1) << 50; n *= 2) {
		uint64_t bytes = n * RT_PAGE_SIZE;

		ck_assert_uint_eq(base_pages(bytes - 1), n);
		ck_assert_uint_eq(base_pages(bytes), n);
		ck_assert_uint_eq(base_pages(bytes + 1), n + 1);
	}
	ck_assert_uint_eq(base_pages(UINT64_MAX), UINT64_C(1) << 51);
	ck_assert_uint_eq(base_pages(UINT64_MAX - RT_PAGE_SIZE + 1),
			  (UINT64_C(1) << 51) - 1);
}

// ---- words that are worth a try ----

// random_word returns a word with few, half or most of its bits set, or with a
// range of set bits that is surrounded or interrupted by random ones.
static uint64_t random_word(struct rng *r)
{
	uint64_t a = rng_next(r), b = rng_next(r), c = rng_next(r);
	unsigned lo = (unsigned)rng_below(r, 65);
	unsigned hi = lo + (unsigned)rng_below(r, 65 - lo);

	switch (rng_below(r, 5)) {
	case 0:
		return a & b & c;
	case 1:
		return a;
	case 2:
		return a | b | c;
	case 3:
		return bits_mask(lo, hi) | (a & b & c);
	default:
		return bits_mask(lo, hi) & (a | b | c);
	}
}

static unsigned wrong_ranges(uint64_t c)
{
	unsigned wrong = 0;

	for (unsigned n = 1; n <= 64; n++) {
		wrong += bits_find_range(c, n) != naive_find_range(c, n);
		wrong +=
		    bits_find_last_range(c, n) != naive_find_last_range(c, n);
	}
	return wrong;
}

static unsigned wrong_fills(uint64_t x)
{
	unsigned wrong = 0;

	for (unsigned m = 1; m <= 64; m *= 2)
		wrong += bits_fill_aligned(x, m) != naive_fill_aligned(x, m);
	return wrong;
}

// ---- tests ----

TEST(counts_and_lengths)
{
	ck_assert_uint_eq(bits_len(0), 0);
	ck_assert_uint_eq(bits_count(0), 0);
	ck_assert_uint_eq(bits_count(UINT64_MAX), 64);
	for (unsigned i = 0; i < 64; i++) {
		uint64_t bit = UINT64_C(1) << i;

		ck_assert_uint_eq(bits_ctz(bit), i);
		ck_assert_uint_eq(bits_ctz(UINT64_MAX << i), i);
		ck_assert_uint_eq(bits_clz(bit), 63 - i);
		ck_assert_uint_eq(bits_len(bit), i + 1);
		ck_assert_uint_eq(bits_len(bit | (bit - 1)), i + 1);
		ck_assert_uint_eq(bits_count(bit - 1), i);
	}
}

TEST(mask_has_the_bits_of_every_range)
{
	unsigned wrong = 0;

	for (unsigned lo = 0; lo <= 64; lo++) {
		uint64_t mask = 0; // of [lo, hi)

		for (unsigned hi = lo; hi <= 64; hi++) {
			wrong += bits_mask(lo, hi) != mask;
			if (hi < 64)
				mask |= UINT64_C(1) << hi;
		}
	}
	ck_assert_uint_eq(wrong, 0);
}

TEST(range_is_found_in_known_words)
{
	ck_assert_uint_eq(bits_find_range(0, 1), 64);
	ck_assert_uint_eq(bits_find_range(0, 64), 64);
	ck_assert_uint_eq(bits_find_range(UINT64_MAX, 1), 0);
	ck_assert_uint_eq(bits_find_range(UINT64_MAX, 64), 0);
	ck_assert_uint_eq(bits_find_range(UINT64_MAX >> 1, 64), 64);
	ck_assert_uint_eq(bits_find_range(UINT64_MAX << 1, 64), 64);
	ck_assert_uint_eq(bits_find_range(UINT64_MAX << 1, 63), 1);
	ck_assert_uint_eq(bits_find_last_range(0, 1), 64);
	ck_assert_uint_eq(bits_find_last_range(UINT64_MAX, 1), 63);
	ck_assert_uint_eq(bits_find_last_range(UINT64_MAX, 64), 0);
	ck_assert_uint_eq(bits_find_last_range(UINT64_MAX >> 1, 64), 64);
	ck_assert_uint_eq(bits_find_last_range(UINT64_MAX << 1, 62), 2);
	ck_assert_uint_eq(bits_find_range(UINT64_C(1) << 63, 1), 63);
	ck_assert_uint_eq(bits_find_range(0x76, 3), 4); // 0111 0110
	ck_assert_uint_eq(bits_find_range(0x76, 2), 1);
}

// The words are all that have a single range of set bits, and their
// complements.
TEST(range_is_found_at_every_place)
{
	unsigned wrong = 0;

	for (unsigned lo = 0; lo < 64; lo++)
		for (unsigned hi = lo + 1; hi <= 64; hi++) {
			uint64_t c = bits_mask(lo, hi);

			wrong += wrong_ranges(c);
			wrong += wrong_ranges(~c);
		}
	ck_assert_uint_eq(wrong, 0);
}

TEST(range_is_found_in_random_words)
{
	struct rng r;
	unsigned wrong = 0;

	rng_init(&r, "range_is_found_in_random_words");
	for (unsigned i = 0; i < 20000; i++)
		wrong += wrong_ranges(random_word(&r));
	ck_assert_uint_eq(wrong, 0);
}

TEST(fill_covers_known_groups)
{
	ck_assert_uint_eq(bits_fill_aligned(0, 1), 0);
	ck_assert_uint_eq(bits_fill_aligned(0, 64), 0);
	ck_assert_uint_eq(bits_fill_aligned(1, 64), UINT64_MAX);
	ck_assert_uint_eq(bits_fill_aligned(UINT64_C(1) << 63, 64), UINT64_MAX);
	ck_assert_uint_eq(bits_fill_aligned(UINT64_C(0x0100000000000010), 8),
			  UINT64_C(0xff000000000000ff));
	ck_assert_uint_eq(bits_fill_aligned(0x12, 4), 0xff);
	ck_assert_uint_eq(bits_fill_aligned(0x12, 2), 0x33);
	ck_assert_uint_eq(bits_fill_aligned(0x12, 1), 0x12);
}

TEST(fill_covers_every_pair_of_bits)
{
	unsigned wrong = 0;

	for (unsigned i = 0; i < 64; i++)
		for (unsigned j = i; j < 64; j++)
			wrong +=
			    wrong_fills(UINT64_C(1) << i | UINT64_C(1) << j);
	ck_assert_uint_eq(wrong, 0);
}

TEST(fill_covers_groups_of_random_words)
{
	struct rng r;
	unsigned wrong = 0;

	rng_init(&r, "fill_covers_groups_of_random_words");
	for (unsigned i = 0; i < 20000; i++)
		wrong += wrong_fills(random_word(&r));
	ck_assert_uint_eq(wrong, 0);
}
