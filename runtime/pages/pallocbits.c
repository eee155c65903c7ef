// Counts, searches and summarises the bits of a chunk.
#include "runtime/pages/pallocbits.h"

static_assert(sizeof(struct pallocdata) == 128, "two cache lines a chunk");
static_assert(3 * PALLOCSUM_LOG_MAX == 63, "bit 63 is free for the full range");

pallocsum pallocsum_merge(const pallocsum *s, unsigned n, unsigned log_pages)
{
	uint32_t full = UINT32_C(1) << log_pages;
	uint32_t start = 0, max = 0, end = 0;
	bool all_free = true; // so far, hence start still grows

	for (unsigned i = 0; i < n; i++) {
		uint32_t s_start = pallocsum_start(s[i]);
		uint32_t s_max = pallocsum_max(s[i]);

		if (all_free)
			start += s_start;
		if (max < end + s_start)
			max = end + s_start; // across the border
		if (max < s_max)
			max = s_max;
		if (s_max == full) {
			end += full;
		} else {
			end = pallocsum_end(s[i]);
			all_free = false;
		}
	}
	return pallocsum_make(start, max, end);
}

// word_mask returns the bits of word w that lie in [i, limit), at least one.
static uint64_t word_mask(unsigned w, unsigned i, unsigned limit)
{
	unsigned base = w * 64;
	unsigned lo = i > base ? i - base : 0;
	unsigned hi = limit < base + 64 ? limit - base : 64;

	return bits_mask(lo, hi);
}

void pallocbits_set_range(struct pallocbits *b, unsigned i, unsigned n)
{
	for (unsigned w = i / 64; w * 64 < i + n; w++)
		b->word[w] |= word_mask(w, i, i + n);
}

void pallocbits_clear_range(struct pallocbits *b, unsigned i, unsigned n)
{
	for (unsigned w = i / 64; w * 64 < i + n; w++)
		b->word[w] &= ~word_mask(w, i, i + n);
}

unsigned pallocbits_count_range(const struct pallocbits *b, unsigned i,
				unsigned n)
{
	unsigned count = 0;

	for (unsigned w = i / 64; w * 64 < i + n; w++)
		count += bits_count(b->word[w] & word_mask(w, i, i + n));
	return count;
}

bool pallocbits_get(const struct pallocbits *b, unsigned i)
{
	return b->word[i / 64] >> i % 64 & 1;
}

// ranges_longer shortens every range of set bits of x by n at its high end: a
// range of n + k bits keeps the lowest k.  n must be below 64.
static uint64_t ranges_longer(uint64_t x, unsigned n)
{
	// The first step shortens all ranges by 1, each further one by twice as
	// much as the one before, so about log n steps suffice.
	for (unsigned step = 1; n > 0 && x; step *= 2) {
		unsigned by = step < n ? step : n;

		x &= x >> by;
		n -= by;
	}
	return x;
}

// inner_max returns the length of the longest range of clear bits within one
// word if that is longer than max, otherwise max.
static unsigned inner_max(const struct pallocbits *b, unsigned max)
{
	// max already includes the ranges at the borders of words.  The longest
	// range with a set bit on either side has 62 bits.
	for (unsigned w = 0; w < PALLOCBITS_WORDS && max < 62; w++)
		for (uint64_t x = ranges_longer(~b->word[w], max); x;
		     x &= x >> 1)
			max++;
	return max;
}

pallocsum pallocbits_summarize(const struct pallocbits *b)
{
	unsigned start = PALLOCBITS_NONE, max = 0;
	unsigned below = 0; // clear bits just below word w

	for (unsigned w = 0; w < PALLOCBITS_WORDS; w++) {
		uint64_t x = b->word[w];

		if (x == 0) {
			below += 64;
			continue;
		}
		below += bits_ctz(x);
		if (start == PALLOCBITS_NONE)
			start = below;
		if (max < below)
			max = below;
		below = bits_clz(x);
	}
	if (start == PALLOCBITS_NONE)
		start = below;
	if (max < below)
		max = below;
	return pallocsum_make(start, inner_max(b, max), below);
}

unsigned pallocbits_find(const struct pallocbits *b, unsigned n, unsigned from,
			 unsigned *first_free)
{
	unsigned below = 0; // clear bits just below word w

	*first_free = PALLOCBITS_NONE;
	for (unsigned w = from / 64; w < PALLOCBITS_WORDS; w++) {
		uint64_t x = b->word[w];
		unsigned i;

		if (w == from / 64)
			x |= bits_mask(0, from % 64);
		if (x == ~UINT64_C(0)) {
			below = 0;
			continue;
		}
		if (*first_free == PALLOCBITS_NONE)
			*first_free = w * 64 + bits_ctz(~x);
		i = x ? bits_ctz(x) : 64;
		if (below + i >= n)
			return w * 64 - below;
		if (x == 0) {
			below += 64;
			continue;
		}
		i = n < 64 ? bits_find_range(~x, n) : 64;
		if (i < 64)
			return w * 64 + i;
		below = bits_clz(x);
	}
	return PALLOCBITS_NONE;
}

unsigned pallocdata_alloc_range(struct pallocdata *d, unsigned i, unsigned n)
{
	unsigned nscav = 0;

	for (unsigned w = i / 64; w * 64 < i + n; w++) {
		uint64_t mask = word_mask(w, i, i + n);

		nscav += bits_count(d->scavenged.word[w] & mask);
		d->alloc.word[w] |= mask;
		d->scavenged.word[w] &= ~mask;
	}
	return nscav;
}

// busy_word returns word w with a bit clear for each page whose whole physical
// page is free and not scavenged.
static uint64_t busy_word(const struct pallocdata *d, unsigned w, unsigned min)
{
	return bits_fill_aligned(d->alloc.word[w] | d->scavenged.word[w], min);
}

// idle_limit returns the end of the highest range of pages below limit that may
// be scavenged, or 0.
static unsigned idle_limit(const struct pallocdata *d, unsigned limit,
			   unsigned min)
{
	while (limit > 0) {
		unsigned w = (limit - 1) / 64;
		uint64_t idle =
		    ~busy_word(d, w, min) & word_mask(w, w * 64, limit);

		if (idle)
			return w * 64 + bits_len(idle);
		limit = w * 64;
	}
	return 0;
}

// idle_below returns the number of idle pages in a row that end at limit.
static unsigned idle_below(const struct pallocdata *d, unsigned limit,
			   unsigned min)
{
	unsigned left = limit; // pages not looked at yet

	while (left > 0) {
		unsigned last = left - 1;
		unsigned w = last / 64;
		uint64_t busy = busy_word(d, w, min) << (63 - last % 64);

		if (busy)
			return limit - left + bits_clz(busy);
		left = w * 64;
	}
	return limit;
}

unsigned pallocdata_find_scavenge(const struct pallocdata *d, unsigned from,
				  unsigned min, unsigned max, unsigned huge,
				  unsigned *n)
{
	unsigned below = (unsigned)base_align_down(from + 1, min);
	unsigned limit = idle_limit(d, below, min);
	unsigned idle = idle_below(d, limit, min);
	unsigned most = (unsigned)base_align_up(max > 1 ? max : 1, min);
	unsigned start = limit - (idle < most ? idle : most);

	*n = limit - start;
	if (limit == 0)
		return PALLOCBITS_NONE;
	if (huge > 0) {
		unsigned lower = (unsigned)base_align_down(start, huge);

		// If the huge page is not wholly idle below limit, it cannot be
		// released as a whole, so the range may begin inside it.
		if (start > lower && lower + huge <= limit &&
		    lower >= limit - idle)
			start = lower;
	}
	*n = limit - start;
	return start;
}

unsigned pallocdata_find_scavenged(const struct pallocdata *d, unsigned max,
				   unsigned *n)
{
	*n = 0;
	for (unsigned w = 0; w < PALLOCBITS_WORDS; w++) {
		uint64_t x = d->scavenged.word[w];
		unsigned i;

		if (x == 0)
			continue;
		i = bits_ctz(x);
		x = ~(x >> i);
		*n = (unsigned)base_min(x ? bits_ctz(x) : 64, max);
		return w * 64 + i;
	}
	return PALLOCBITS_NONE;
}
