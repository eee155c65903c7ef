// Searches in the bitmap of a chunk, against loops over single pages.
#include "runtime/pages/pallocbits.h"

#include "test/harness/suite.h"

enum { NPAGES = RT_CHUNK_PAGES, ROUNDS = 20000 };

// The bits of a bitmap, one byte a page.  Loops over these bytes are the naive
// counterpart of everything.
struct plain {
	bool set[NPAGES];
};

static struct plain plain_of(const struct pallocbits *b)
{
	struct plain p;

	for (unsigned i = 0; i < NPAGES; i++)
		p.set[i] = b->word[i / 64] >> i % 64 & 1;
	return p;
}

// random_bits draws ranges of set and clear bits whose lengths are up to a
// power of two that differs from one bitmap to the next.
static struct pallocbits random_bits(struct rng *r)
{
	struct pallocbits b = {{0}};
	unsigned longest_set = 1U << rng_below(r, 10);
	unsigned longest_clear = 1U << rng_below(r, 10);

	for (unsigned i = 0; i < NPAGES;) {
		unsigned n = (unsigned)rng_below(r, longest_set);

		i += (unsigned)rng_below(r, longest_clear + 1);
		for (; n > 0 && i < NPAGES; n--, i++)
			b.word[i / 64] |= UINT64_C(1) << i % 64;
	}
	return b;
}

static struct pallocbits random_sparse(struct rng *r)
{
	struct pallocbits b;

	for (unsigned w = 0; w < PALLOCBITS_WORDS; w++) {
		b.word[w] = rng_next(r);
		for (uint64_t n = rng_below(r, 6); n > 0; n--)
			b.word[w] &= rng_next(r);
	}
	return b;
}

static struct pallocbits random_any(struct rng *r)
{
	return rng_below(r, 2) ? random_bits(r) : random_sparse(r);
}

static bool same(const struct pallocbits *a, const struct pallocbits *b)
{
	uint64_t differ = 0;

	for (unsigned w = 0; w < PALLOCBITS_WORDS; w++)
		differ |= a->word[w] ^ b->word[w];
	return differ == 0;
}

// ---- ranges ----

struct range {
	unsigned i, n;
};

static const struct range ranges[] = {
    {0, 1},   {511, 1}, {0, 2},	  {62, 2},   {63, 2}, {510, 2},
    {0, 64},  {1, 64},	{64, 64}, {448, 64}, {0, 65}, {127, 130},
    {0, 511}, {1, 511}, {0, 512}, {300, 0},  {64, 0}, {512, 0},
};

GROUP(all, .timeout = 60);

// Setting a range sets its pages and no other, clearing it undoes that.
TEST(range_is_set_and_cleared_exactly, .n = RT_ARRAY_LEN(ranges))
{
	struct range r = ranges[_i];
	struct pallocbits b = {{0}}, none = {{0}};
	unsigned wrong = 0;

	pallocbits_set_range(&b, r.i, r.n);
	for (unsigned i = 0; i < NPAGES; i++)
		wrong += pallocbits_get(&b, i) != (i - r.i < r.n);
	ck_assert_uint_eq(wrong, 0);
	ck_assert_uint_eq(pallocbits_count_range(&b, 0, NPAGES), r.n);
	ck_assert_uint_eq(pallocbits_count_range(&b, r.i, r.n), r.n);
	pallocbits_clear_range(&b, r.i, r.n);
	ck_assert(same(&b, &none));
}

TEST(random_ranges_agree_with_single_bits)
{
	struct rng r;
	unsigned wrong = 0;

	rng_init(&r, "random_ranges_agree_with_single_bits");
	for (unsigned round = 0; round < ROUNDS; round++) {
		struct pallocbits set = random_any(&r), clear = set;
		struct plain p = plain_of(&set);
		unsigned i = (unsigned)rng_below(&r, NPAGES + 1);
		unsigned n = (unsigned)rng_below(&r, NPAGES + 1 - i);
		unsigned count = 0;

		for (unsigned k = i; k < i + n; k++)
			count += p.set[k];
		wrong += pallocbits_count_range(&set, i, n) != count;
		pallocbits_set_range(&set, i, n);
		pallocbits_clear_range(&clear, i, n);
		for (unsigned k = 0; k < NPAGES; k++) {
			bool inside = k - i < n;

			wrong +=
			    pallocbits_get(&set, k) != (p.set[k] || inside);
			wrong +=
			    pallocbits_get(&clear, k) != (p.set[k] && !inside);
		}
	}
	ck_assert_uint_eq(wrong, 0);
}

// ---- summaries ----

struct sum {
	unsigned start, max, end;
};

struct sum_case {
	struct range set[4]; // allocated
	struct sum sum;
};

static const struct sum_case sum_cases[] = {
    {{{0, 0}}, {512, 512, 512}},			// all free
    {{{0, 512}}, {0, 0, 0}},				// none
    {{{10, 502}}, {10, 10, 0}},				// only the start
    {{{0, 474}}, {0, 38, 38}},				// only the end
    {{{50, 452}}, {50, 50, 10}},			// start and end
    {{{11, 12}, {123, 100}, {299, 212}}, {11, 100, 1}}, // start, max, end
    {{{0, 20}, {35, 477}}, {0, 15, 0}},			// only a range inside
    {{{0, 1}, {2, 1}, {64, 63}, {128, 384}}, {0, 61, 0}},
    {{{0, 1}, {63, 449}}, {0, 62, 0}}, // longest within one word
    {{{0, 1}, {62, 3}, {127, 385}}, {0, 62, 0}},
    {{{0, 1}, {65, 447}}, {0, 64, 0}}, // across words
    {{{511, 1}}, {511, 511, 0}},
    {{{0, 1}}, {0, 511, 511}},
};

TEST(summary_tells_start_max_and_end, .n = RT_ARRAY_LEN(sum_cases))
{
	const struct sum_case *c = &sum_cases[_i];
	struct pallocbits b = {{0}};
	pallocsum s;

	for (unsigned i = 0; i < RT_ARRAY_LEN(c->set); i++)
		pallocbits_set_range(&b, c->set[i].i, c->set[i].n);
	s = pallocbits_summarize(&b);
	ck_assert_uint_eq(pallocsum_start(s), c->sum.start);
	ck_assert_uint_eq(pallocsum_max(s), c->sum.max);
	ck_assert_uint_eq(pallocsum_end(s), c->sum.end);
}

// naive_sum summarizes n pages, one byte each, of which the set ones are
// allocated.
static pallocsum naive_sum(const bool *set, unsigned n)
{
	unsigned start = n, max = 0, length = 0;

	for (unsigned i = 0; i < n; i++) {
		if (set[i] && start == n)
			start = i;
		length = set[i] ? 0 : length + 1;
		max = length > max ? length : max;
	}
	return pallocsum_make(start, max, length);
}

TEST(random_summaries_agree_with_counting)
{
	struct rng r;
	unsigned wrong = 0;

	rng_init(&r, "random_summaries_agree_with_counting");
	for (unsigned round = 0; round < 2 * ROUNDS; round++) {
		struct pallocbits b = random_any(&r);
		struct plain p = plain_of(&b);

		wrong += pallocbits_summarize(&b) != naive_sum(p.set, NPAGES);
	}
	ck_assert_uint_eq(wrong, 0);
}

// The free ranges are all that can be alone in a bitmap, of each length at each
// place.
TEST(every_single_range_is_summarized)
{
	unsigned wrong = 0;

	for (unsigned n = 0; n <= NPAGES; n++) {
		for (unsigned i = 0; i + n <= NPAGES; i++) {
			struct pallocbits b;
			pallocsum want = pallocsum_make(
			    i == 0 ? n : 0, n, i + n == NPAGES ? n : 0);

			for (unsigned w = 0; w < PALLOCBITS_WORDS; w++)
				b.word[w] = ~UINT64_C(0);
			pallocbits_clear_range(&b, i, n);
			wrong += pallocbits_summarize(&b) != want;
		}
	}
	ck_assert_uint_eq(wrong, 0);
}

TEST(summary_of_the_longest_range_is_one_bit)
{
	uint32_t all = UINT32_C(1) << PALLOCSUM_LOG_MAX;
	pallocsum s = pallocsum_make(all, all, all);

	ck_assert_uint_eq(s, UINT64_C(1) << 63);
	ck_assert_uint_eq(pallocsum_start(s), all);
	ck_assert_uint_eq(pallocsum_max(s), all);
	ck_assert_uint_eq(pallocsum_end(s), all);
	s = pallocsum_make(all - 1, all - 2, all - 3);
	ck_assert_uint_eq(pallocsum_start(s), all - 1);
	ck_assert_uint_eq(pallocsum_max(s), all - 2);
	ck_assert_uint_eq(pallocsum_end(s), all - 3);
}

// Children of 4 pages, so that every pattern of 8 children turns up.
TEST(merged_summaries_agree_with_the_whole)
{
	enum { LOG = 2, EACH = 1 << LOG, MOST = 8 };
	struct rng r;
	unsigned wrong = 0;

	rng_init(&r, "merged_summaries_agree_with_the_whole");
	for (unsigned round = 0; round < 20 * ROUNDS; round++) {
		unsigned n = 1 + (unsigned)rng_below(&r, MOST);
		uint64_t bits = rng_next(&r) & rng_next(&r) & rng_next(&r);
		bool set[EACH * MOST];
		pallocsum sums[MOST];

		for (unsigned i = 0; i < n * EACH; i++)
			set[i] = bits >> i & 1;
		for (unsigned i = 0; i < n; i++)
			sums[i] = naive_sum(set + i * EACH, EACH);
		wrong +=
		    pallocsum_merge(sums, n, LOG) != naive_sum(set, n * EACH);
	}
	ck_assert_uint_eq(wrong, 0);
}

// Eight free children of 2^18 pages make the longest range, which fits in no
// field of a summary.
TEST(merge_reaches_the_longest_range)
{
	enum { LOG = PALLOCSUM_LOG_MAX - 3 };
	pallocsum s[8];

	for (unsigned i = 0; i < 8; i++)
		s[i] = pallocsum_make(1 << LOG, 1 << LOG, 1 << LOG);
	ck_assert_uint_eq(pallocsum_merge(s, 8, LOG), UINT64_C(1) << 63);
	s[7] = pallocsum_make((1 << LOG) - 1, (1 << LOG) - 1, 0);
	ck_assert_uint_eq(pallocsum_merge(s, 8, LOG),
			  pallocsum_make((8 << LOG) - 1, (8 << LOG) - 1, 0));
}

// ---- finding ----

struct find_case {
	struct range set[3];
	unsigned from;
	struct range hits[4]; // first page and number of pages, in order
};

// The heads of the tables of Go's TestPallocBitsAlloc: each hit is allocated
// before the next is looked for.
static const struct find_case find_cases[] = {
    {{{0, 0}}, 0, {{0, 1}, {1, 1}, {2, 1}, {3, 1}}},
    {{{0, 0}}, 0, {{0, 2}, {2, 2}, {4, 2}, {6, 2}}},
    {{{0, 0}}, 0, {{0, 5}, {5, 5}, {10, 5}, {15, 5}}},
    {{{0, 0}}, 0, {{0, 64}, {64, 64}, {128, 64}, {192, 64}}},
    {{{0, 0}}, 0, {{0, 65}, {65, 65}, {130, 65}, {195, 65}}},
    {{{0, 64}, {65, 64}, {130, 382}}, 0, {{64, 1}, {129, 1}}},
    {{{0, 128}, {130, 380}}, 0, {{128, 2}, {510, 2}}},
    {{{0, 60}, {68, 380}}, 0, {{60, 5}, {448, 5}, {453, 5}}},
    {{{0, 192}, {384, 128}}, 0, {{192, 65}, {257, 65}}},
    {{{0, 0}}, 0, {{0, 509}, {509, 1}, {510, 2}}},
    {{{0, 0}}, 0, {{0, 512}}},
    {{{0, 0}}, 511, {{511, 1}}},
    {{{0, 0}}, 100, {{100, 64}, {164, 348}}},
    {{{0, 10}, {12, 100}}, 11, {{11, 1}, {112, 3}}},
};

TEST(ranges_are_found_lowest_first, .n = RT_ARRAY_LEN(find_cases))
{
	const struct find_case *c = &find_cases[_i];
	struct pallocbits b = {{0}};
	unsigned first_free;

	for (unsigned i = 0; i < RT_ARRAY_LEN(c->set); i++)
		pallocbits_set_range(&b, c->set[i].i, c->set[i].n);
	for (unsigned i = 0; i < RT_ARRAY_LEN(c->hits); i++) {
		struct range hit = c->hits[i];

		if (hit.n == 0)
			break;
		ck_assert_uint_eq(
		    pallocbits_find(&b, hit.n, c->from, &first_free), hit.i);
		pallocbits_set_range(&b, hit.i, hit.n);
	}
}

static unsigned naive_find(const struct plain *p, unsigned n, unsigned from)
{
	unsigned length = 0;

	for (unsigned i = from; i < NPAGES; i++) {
		length = p->set[i] ? 0 : length + 1;
		if (length == n)
			return i + 1 - n;
	}
	return PALLOCBITS_NONE;
}

TEST(random_finds_agree_with_walking)
{
	struct rng r;
	unsigned wrong = 0, found = 0;

	rng_init(&r, "random_finds_agree_with_walking");
	for (unsigned round = 0; round < 2 * ROUNDS; round++) {
		struct pallocbits b = random_any(&r);
		struct plain p = plain_of(&b);
		unsigned from = (unsigned)rng_below(&r, NPAGES);
		unsigned n =
		    1 + (unsigned)rng_below(&r, 1U << rng_below(&r, 10));
		unsigned first_free, i;

		if (rng_below(&r, 2))
			from = 0;
		i = pallocbits_find(&b, n, from, &first_free);
		wrong += i != naive_find(&p, n, from);
		wrong += first_free != naive_find(&p, 1, from);
		found += i != PALLOCBITS_NONE;
	}
	ck_assert_uint_eq(wrong, 0);
	ck_assert_uint_gt(found, ROUNDS / 10);
	ck_assert_uint_lt(found, 2 * ROUNDS - ROUNDS / 10);
}

// ---- both bitmaps ----

// A page loses its scavenged bit in the step that allocates it.
TEST(allocation_counts_and_clears_scavenged_pages)
{
	struct rng r;
	unsigned wrong = 0;

	rng_init(&r, "allocation_counts_and_clears_scavenged_pages");
	for (unsigned round = 0; round < ROUNDS; round++) {
		struct pallocdata d = {.scavenged = random_any(&r)}, was = d;
		unsigned i = (unsigned)rng_below(&r, NPAGES);
		unsigned n = 1 + (unsigned)rng_below(&r, NPAGES - i);
		unsigned nscav = pallocdata_alloc_range(&d, i, n);

		wrong += nscav != pallocbits_count_range(&was.scavenged, i, n);
		pallocbits_set_range(&was.alloc, i, n);
		pallocbits_clear_range(&was.scavenged, i, n);
		wrong += !same(&d.alloc, &was.alloc);
		wrong += !same(&d.scavenged, &was.scavenged);
	}
	ck_assert_uint_eq(wrong, 0);
}

struct scav_case {
	struct range busy[3]; // allocated
	struct range scav[2];
	unsigned from, min, max, huge;
	struct range want; // n is 0: nothing
};

static const struct scav_case scav_cases[] = {
    // Everything is free, or nothing is.
    {{{0, 0}}, {{0, 0}}, 511, 1, 512, 0, {0, 512}},
    {{{0, 0}}, {{0, 0}}, 511, 1, 8, 0, {504, 8}},
    {{{0, 0}}, {{0, 0}}, 511, 1, 0, 0, {511, 1}},
    {{{0, 0}}, {{0, 0}}, 511, 8, 0, 0, {504, 8}},
    {{{0, 0}}, {{0, 0}}, 511, 8, 9, 0, {496, 16}},
    {{{0, 512}}, {{0, 0}}, 511, 1, 512, 0, {0, 0}},
    {{{0, 0}}, {{0, 512}}, 511, 1, 512, 0, {0, 0}},
    {{{0, 256}}, {{256, 256}}, 511, 1, 512, 0, {0, 0}},
    // One page only, and physical pages that are broken.
    {{{0, 100}, {101, 411}}, {{0, 0}}, 511, 1, 8, 0, {100, 1}},
    {{{0, 100}, {101, 411}}, {{0, 0}}, 511, 2, 8, 0, {0, 0}},
    {{{0, 100}, {108, 404}}, {{0, 0}}, 511, 8, 8, 0, {0, 0}},
    {{{0, 96}, {112, 400}}, {{0, 0}}, 511, 8, 8, 0, {104, 8}},
    {{{0, 0}}, {{111, 401}}, 511, 8, 16, 0, {88, 16}},
    // Ranges across words.
    {{{0, 60}, {70, 442}}, {{0, 0}}, 511, 1, 512, 0, {60, 10}},
    {{{0, 1}, {511, 1}}, {{0, 0}}, 511, 1, 512, 0, {1, 510}},
    // Pages above from stay out, in whole physical pages.
    {{{0, 0}}, {{0, 0}}, 99, 1, 10, 0, {90, 10}},
    {{{0, 0}}, {{0, 0}}, 99, 8, 8, 0, {88, 8}},
    {{{0, 0}}, {{0, 0}}, 6, 8, 8, 0, {0, 0}},
    {{{0, 0}}, {{0, 0}}, 0, 1, 8, 0, {0, 1}},
    // A huge page that is whole is not broken.
    {{{0, 0}}, {{0, 0}}, 511, 1, 8, 256, {256, 256}},
    {{{0, 0}}, {{0, 0}}, 300, 1, 50, 256, {0, 301}},
    {{{0, 0}}, {{0, 0}}, 255, 1, 1, 256, {0, 256}},
    {{{0, 0}}, {{0, 0}}, 511, 8, 264, 256, {0, 512}},
    // A huge page that is not whole, or begins the range, does not matter.
    {{{256, 1}}, {{0, 0}}, 511, 1, 8, 256, {504, 8}},
    {{{511, 1}}, {{0, 0}}, 511, 1, 8, 256, {503, 8}},
    {{{0, 0}}, {{10, 1}}, 300, 1, 50, 256, {251, 50}},
    {{{0, 0}}, {{0, 0}}, 511, 1, 256, 256, {256, 256}},
};

TEST(scavenging_finds_the_highest_range, .n = RT_ARRAY_LEN(scav_cases))
{
	const struct scav_case *c = &scav_cases[_i];
	struct pallocdata d = {{{0}}, {{0}}};
	unsigned n = 99, i;

	for (unsigned k = 0; k < RT_ARRAY_LEN(c->busy); k++)
		pallocbits_set_range(&d.alloc, c->busy[k].i, c->busy[k].n);
	for (unsigned k = 0; k < RT_ARRAY_LEN(c->scav); k++)
		pallocbits_set_range(&d.scavenged, c->scav[k].i, c->scav[k].n);
	i = pallocdata_find_scavenge(&d, c->from, c->min, c->max, c->huge, &n);
	ck_assert_uint_eq(n, c->want.n);
	ck_assert_uint_eq(i, c->want.n ? c->want.i : PALLOCBITS_NONE);
}

// whole tells whether n pages from page i may all be scavenged.
static bool whole(const bool *idle, unsigned i, unsigned n)
{
	for (unsigned k = i; k < i + n; k++)
		if (!idle[k])
			return false;
	return true;
}

static struct range naive_scavenge(const struct pallocdata *d, unsigned from,
				   unsigned min, unsigned max, unsigned huge)
{
	struct plain a = plain_of(&d->alloc), s = plain_of(&d->scavenged);
	bool idle[NPAGES];
	unsigned limit = 0, i, lower;

	for (i = 0; i < NPAGES; i++)
		idle[i] = !a.set[i] && !s.set[i] && i <= from;
	for (i = 0; i < NPAGES; i += min)
		if (whole(idle, i, min))
			limit = i + min;
	if (limit == 0)
		return (struct range){PALLOCBITS_NONE, 0};
	i = limit - min;
	while (i > 0 && limit - i < max && whole(idle, i - min, min))
		i -= min;
	if (huge) {
		lower = i / huge * huge;
		if (whole(idle, lower, huge))
			i = lower;
	}
	return (struct range){i, limit - i};
}

TEST(random_scavenging_agrees_with_walking)
{
	static const unsigned huges[] = {0, 256, 128, 512, 64};
	struct rng r;
	unsigned wrong = 0, found = 0, lowered = 0, rounds = 0;

	rng_init(&r, "random_scavenging_agrees_with_walking");
	for (; rounds < 4 * ROUNDS; rounds++) {
		struct pallocdata d = {random_bits(&r), random_bits(&r)};
		unsigned min = 1U << rng_below(&r, 4);
		unsigned max = (unsigned)rng_below(&r, 1U << rng_below(&r, 10));
		unsigned huge = huges[rng_below(&r, RT_ARRAY_LEN(huges))];
		unsigned from = rng_below(&r, 2)
				    ? NPAGES - 1
				    : (unsigned)rng_below(&r, NPAGES);
		struct range want;
		unsigned i, n;

		for (unsigned w = 0; w < PALLOCBITS_WORDS; w++)
			d.scavenged.word[w] &= ~d.alloc.word[w];
		want = naive_scavenge(&d, from, min, max, huge);
		i = pallocdata_find_scavenge(&d, from, min, max, huge, &n);
		wrong += i != want.i || n != want.n;
		found += n != 0;
		lowered += n > base_align_up(max ? max : 1, min);
	}
	ck_assert_uint_eq(wrong, 0);
	ck_assert_uint_gt(found, rounds / 2);
	ck_assert_uint_lt(found, rounds);
	ck_assert_uint_gt(lowered, 0);
}

// ---- pages to bring in ----

// find_scavenged looks page by page.
static unsigned find_scavenged(const struct plain *p, unsigned max, unsigned *n)
{
	unsigned i = 0;

	*n = 0;
	while (i < NPAGES && !p->set[i])
		i++;
	while (i + *n < NPAGES && *n < max && p->set[i + *n] &&
	       (i + *n) / 64 == i / 64)
		++*n;
	return i < NPAGES ? i : PALLOCBITS_NONE;
}

TEST(lowest_scavenged_pages_are_found)
{
	struct rng r;
	unsigned wrong = 0;

	rng_init(&r, "lowest_scavenged_pages_are_found");
	for (unsigned round = 0; round < ROUNDS; round++) {
		struct pallocdata d = {.scavenged = random_any(&r)};
		unsigned max = 1 + (unsigned)rng_below(&r, 64);
		unsigned first = (unsigned)rng_below(&r, NPAGES + 1), n, want;
		struct plain p;

		pallocbits_clear_range(&d.scavenged, 0, first);
		p = plain_of(&d.scavenged);
		wrong += pallocdata_find_scavenged(&d, max, &n) !=
			 find_scavenged(&p, max, &want);
		wrong += n != want;
	}
	ck_assert_uint_eq(wrong, 0);
}
