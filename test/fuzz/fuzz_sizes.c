// fuzz_sizes.c - arithmetic on sizes and packed words.
//
// Size classes are compared with a search through their table, and the division
// by multiplication with division.  The packed words (pageword, page summary,
// span class) are compared with their parts, and merged summaries with the bits
// that they sum up.
#include "test/fuzz/fuzz.h"

#include <rt/rt.h>

#include "runtime/pages/arena.h"
#include "runtime/base/histogram.h"
#include "runtime/pages/pallocbits.h"
#include "runtime/base/spanclass.h"

// class_of returns the first class of n bytes or more that is in use with
// align8, or without.
static unsigned class_of(size_t n, bool align8)
{
	unsigned c = 1;

	while (sizeclass_table[c].size < n || (!align8 && (c == 1 || c == 3)))
		c++;
	return c;
}

static void check_class(size_t n)
{
	n = 1 + n % SIZECLASS_MAX_SIZE;
	REQUIRE(sizeclass_of(n) == class_of(n, true));
	REQUIRE(sizeclass_of16(n) == class_of(n, false));
	if (n <= RT_INLINE_MAX) {
		unsigned words = class_of(n, false);
		unsigned noscan = n <= 8 ? 1 : words;

		REQUIRE(rt_class_(RT_ROW_WORDS, n) == words);
		REQUIRE(rt_class_(RT_ROW_NOSCAN, n) == noscan);
		REQUIRE(rt_class_(RT_ROW_UNINIT, n) == noscan);
		REQUIRE((uint32_t)rt_class_size_(words) ==
			sizeclass_table[words].size);
		REQUIRE((uint32_t)rt_class_size_(noscan) ==
			sizeclass_table[noscan].size);
	}
}

// good_size returns what rt_good_size must return without a heap: the size of
// an object with pointers.
static uint64_t good_size(uint64_t n)
{
	if (n == 0 || n > (UINT64_C(1) << 40))
		return 0;
	if (n <= SIZECLASS_MAX_REQUEST)
		return sizeclass_table[class_of(n, false)].size;
	return (n + RT_PAGE_SIZE - 1) / RT_PAGE_SIZE * RT_PAGE_SIZE;
}

static void check_slot(unsigned class, uint32_t offset)
{
	const struct sizeclass *c =
	    &sizeclass_table[1 + class % (SIZECLASS_COUNT - 1)];

	offset %= (uint32_t)c->npages * RT_PAGE_SIZE;
	REQUIRE((uint64_t)offset * c->divmagic >> 32 == offset / c->size);
	REQUIRE(c->nelems == c->npages * (uint32_t)RT_PAGE_SIZE / c->size);
}

static void check_page_word(uint64_t v)
{
	unsigned class = v % SIZECLASS_COUNT;
	unsigned kind = v >> 8 & 31;
	enum pageword_state state = v >> 16 & 3;
	uint64_t place = v >> 24;
	uint32_t pageword =
	    pageword_at(pageword_make(class, kind, state), place);

	REQUIRE(pageword_class(pageword) == class);
	REQUIRE(pageword_kind(pageword) == kind);
	REQUIRE(pageword_state(pageword) == state);
	REQUIRE(pageword_place(pageword) ==
		base_min(place, PAGEWORD_PLACE_MAX));
}

static void check_span_class(uint64_t v)
{
	unsigned class = v % SIZECLASS_COUNT;
	unsigned kind = v >> 8 & 31;
	spanclass sc = spanclass_make(class, kind);

	REQUIRE(spanclass_size(sc) == class && spanclass_kind(sc) == kind);
}

static void check_summary(uint64_t v)
{
	const uint32_t full = 1 << PALLOCSUM_LOG_MAX;
	uint32_t start = v % full, max = v >> 21 & (full - 1),
		 end = v >> 42 & (full - 1);
	pallocsum s = pallocsum_make(start, max, end);

	REQUIRE(pallocsum_start(s) == start && pallocsum_max(s) == max &&
		pallocsum_end(s) == end);
	s = pallocsum_make(full, full, full);
	REQUIRE(pallocsum_start(s) == full && pallocsum_max(s) == full &&
		pallocsum_end(s) == full);
}

// A duration is counted once, between the edges that hold it.
static void check_histogram(int64_t ns)
{
	static uint64_t counts[HISTOGRAM_COUNTS];
	const double *edges = histogram_edges();
	double seconds = (double)ns / 1e9;
	static struct histogram h;
	unsigned n = 0;

	memset(&h, 0, sizeof h);
	histogram_record(&h, ns);
	histogram_read(&h, counts);
	for (unsigned i = 0; i < HISTOGRAM_COUNTS; i++) {
		if (counts[i] == 0)
			continue;
		REQUIRE(edges[i] <= seconds && seconds < edges[i + 1]);
		n += (unsigned)counts[i];
	}
	REQUIRE(n == 1);
}

// ---- bitmaps ----

enum { CHUNKS = 8, PAGES = CHUNKS * RT_CHUNK_PAGES };

static bool used[PAGES]; // the model: one page, one bool

static pallocsum model_summary(unsigned page, unsigned npages)
{
	unsigned start = 0, max = 0, run = 0;

	while (start < npages && !used[page + start])
		start++;
	for (unsigned i = 0; i < npages; i++) {
		run = used[page + i] ? 0 : run + 1;
		max = run > max ? run : max;
	}
	return pallocsum_make(start, max, run);
}

static void check_find(const struct pallocbits *b, unsigned page, unsigned n,
		       unsigned from)
{
	unsigned first_free = PALLOCBITS_NONE, found = PALLOCBITS_NONE, run = 0;
	unsigned got_free;

	for (unsigned i = from; i < RT_CHUNK_PAGES; i++) {
		run = used[page + i] ? 0 : run + 1;
		if (run > 0 && first_free == PALLOCBITS_NONE)
			first_free = i;
		if (run == n && found == PALLOCBITS_NONE)
			found = i + 1 - n;
	}
	REQUIRE(pallocbits_find(b, n, from, &got_free) == found);
	REQUIRE(got_free == first_free);
}

static void check_bitmaps(struct input *in)
{
	static struct pallocbits bits[CHUNKS];
	pallocsum sums[CHUNKS];

	memset(bits, 0, sizeof bits);
	memset(used, 0, sizeof used);
	while (in->left > 0) {
		unsigned chunk = input_below(in, CHUNKS);
		unsigned i = input_below(in, RT_CHUNK_PAGES);
		unsigned n = 1 + input_below(in, RT_CHUNK_PAGES - i);
		bool set = input_u8(in) % 2;

		if (set)
			pallocbits_set_range(&bits[chunk], i, n);
		else
			pallocbits_clear_range(&bits[chunk], i, n);
		memset(&used[chunk * RT_CHUNK_PAGES + i], set, n);
		REQUIRE(pallocbits_count_range(&bits[chunk], i, n) ==
			(set ? n : 0));
		REQUIRE(pallocbits_get(&bits[chunk], i) == set);
		check_find(&bits[chunk], chunk * RT_CHUNK_PAGES, n, i);
	}
	for (unsigned c = 0; c < CHUNKS; c++) {
		sums[c] = pallocbits_summarize(&bits[c]);
		REQUIRE(sums[c] ==
			model_summary(c * RT_CHUNK_PAGES, RT_CHUNK_PAGES));
	}
	REQUIRE(pallocsum_merge(sums, CHUNKS, 9) == model_summary(0, PAGES));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = {data, size};
	unsigned rounds = input_below(&in, 16);

	for (unsigned i = 0; i < rounds; i++) {
		uint64_t a = input_uint(&in, 8), b = input_uint(&in, 8);

		check_class(a);
		REQUIRE(rt_good_size(a) == good_size(a));
		REQUIRE(rt_good_size(a >> b % 64) == good_size(a >> b % 64));
		check_slot((unsigned)(a >> 32), (uint32_t)a);
		check_page_word(a);
		check_span_class(b);
		check_summary(b);
		check_histogram((int64_t)a >> b % 64);
	}
	check_bitmaps(&in);
	return 0;
}
