// The page allocator finds the first free pages, and counts them.
#include "runtime/pages/pagealloc.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "runtime/os/oscall.h"
#include "test/harness/death.h"
#include "test/harness/fault.h"
#include "test/unit/pagealloc.h"

// ---- the tables of mpagealloc_test.go ----
//
// Go's heap has holes; ours has none, so what is a hole there is allocated
// here.
struct take {
	uint64_t npages;
	uint64_t page; // PAGEALLOC_NONE: no room
	uint64_t nscav;
};

struct alloc_case {
	const char *name;
	uint32_t nchunks;
	struct range alloc[4]; // before
	struct range scav[5];  // before; everything else was used already
	struct take takes[7];
	struct range after[3];
};

static const struct alloc_case alloc_cases[] = {
    {"AllFree1",
     1,
     {{0}},
     {{0, 1}, {2, 2}},
     {{1, 0, 1}, {1, 1, 0}, {1, 2, 1}, {1, 3, 1}, {1, 4, 0}},
     {{0, 5}}},
    {"ManyArena1",
     3,
     {{0, AT(2, 511)}},
     {{AT(2, 511), 1}},
     {{1, AT(2, 511), 1}, {1, NONE, 0}},
     {{0, AT(3, 0)}}},
    {"NotContiguous1",
     256,
     {{0, AT(255, 0)}},
     {{AT(255, 0), CP}},
     {{1, AT(255, 0), 1}},
     {{0, AT(255, 1)}}},
    {"AllFree2",
     1,
     {{0}},
     {{0, 3}, {7, 1}},
     {{2, 0, 2}, {2, 2, 1}, {2, 4, 0}, {2, 6, 1}, {2, 8, 0}},
     {{0, 10}}},
    {"Straddle2",
     2,
     {{0, 511}, {AT(1, 1), 511}},
     {{511, 1}},
     {{2, 511, 1}, {1, NONE, 0}},
     {{0, AT(2, 0)}}},
    {"AllFree5",
     1,
     {{0}},
     {{0, 8}, {9, 1}, {17, 5}},
     {{5, 0, 5}, {5, 5, 4}, {5, 10, 0}, {5, 15, 3}, {5, 20, 2}},
     {{0, 25}}},
    {"AllFree64",
     1,
     {{0}},
     {{21, 1}, {63, 65}},
     {{64, 0, 2}, {64, 64, 64}, {64, 128, 0}},
     {{0, 192}}},
    {"AllFree65",
     1,
     {{0}},
     {{129, 1}},
     {{65, 0, 0}, {65, 65, 1}, {65, 130, 0}},
     {{0, 195}}},
    {"ExhaustPallocChunkPages-3",
     1,
     {{0}},
     {{10, 1}},
     {{509, 0, 1},
      {509, NONE, 0},
      {4, NONE, 0},
      {1, 509, 0},
      {2, 510, 0},
      {1, NONE, 0}},
     {{0, 512}}},
    {"AllFreePallocChunkPages",
     1,
     {{0}},
     {{0, 1}, {511, 1}},
     {{512, 0, 2}, {512, NONE, 0}, {1, NONE, 0}},
     {{0, 512}}},
    {"StraddlePallocChunkPages",
     2,
     {{0, 256}, {AT(1, 256), 256}},
     {{AT(1, 3), 100}},
     {{512, 256, 100}, {512, NONE, 0}, {1, NONE, 0}},
     {{0, AT(2, 0)}}},
    {"StraddlePallocChunkPages+1",
     2,
     {{0, 256}},
     {{0}},
     {{513, 256, 0}, {513, NONE, 0}, {255, AT(1, 257), 0}, {1, NONE, 0}},
     {{0, AT(2, 0)}}},
    {"AllFreePallocChunkPages*2",
     2,
     {{0}},
     {{0}},
     {{1024, 0, 0}, {1024, NONE, 0}, {1, NONE, 0}},
     {{0, AT(2, 0)}}},
    {"NotContiguousPallocChunkPages*2",
     66,
     {{AT(1, 0), AT(63, 0)}},
     {{0}},
     {{1024, AT(64, 0), 0}, {1024, NONE, 0}, {512, 0, 0}, {1, NONE, 0}},
     {{0, AT(66, 0)}}},
    {"a full chunk between two ranges",
     4,
     {{0, 500}, {AT(1, 0), 512}, {AT(2, 12), 500}, {AT(3, 24), 488}},
     {{0}},
     {{24, AT(3, 0), 0},
      {13, NONE, 0},
      {12, 500, 0},
      {12, AT(2, 0), 0},
      {1, NONE, 0}},
     {{0, AT(4, 0)}}},
    {"StraddlePallocChunkPages*2",
     3,
     {{0, 256}, {AT(2, 256), 256}},
     {{256, 7}, {AT(1, 3), 5}, {AT(1, 121), 10}, {AT(2, 12), 2}},
     {{1024, 256, 24}, {1024, NONE, 0}, {1, NONE, 0}},
     {{0, AT(3, 0)}}},
    {"StraddlePallocChunkPages*5/4",
     4,
     {{0, AT(1, 384)}, {AT(3, 256), 256}},
     {{AT(2, 0), 256}},
     {{640, AT(1, 384), 256}, {640, NONE, 0}, {256, AT(3, 0), 0}, {1, NONE, 0}},
     {{0, AT(4, 0)}}},
    {"AllFreePallocChunkPages*7+5",
     8,
     {{0}},
     {{0, 8}, {AT(1, 1), 2}, {AT(7, 4), 2}},
     {{7 * CP + 5, 0, 11}, {7 * CP + 5, NONE, 0}, {1, AT(7, 5), 1}},
     {{0, AT(7, 6)}}},
};

// set_up makes a heap whose pages are free and were used before, except for the
// given ranges.
static void set_up(uint32_t nchunks, const struct range *alloc, size_t nalloc,
		   const struct range *scav, size_t nscav)
{
	start(nchunks, nchunks);
	ck_assert_uint_eq(pagealloc_alloc_range(&pa, 0, AT(nchunks, 0)),
			  AT(nchunks, 0));
	pagealloc_free(&pa, 0, AT(nchunks, 0));
	for (size_t i = 0; i < nscav; i++)
		if (scav[i].npages)
			pagealloc_set_scavenged(&pa, scav[i].page,
						scav[i].npages);
	for (size_t i = 0; i < nalloc; i++)
		if (alloc[i].npages)
			pagealloc_alloc_range(&pa, alloc[i].page,
					      alloc[i].npages);
	ck_assert_ptr_null(pagealloc_check(&pa));
}

// expect_pages requires that exactly the pages of the ranges are allocated.
static void expect_pages(const struct range *ranges, size_t n)
{
	unsigned wrong = 0;

	for (uint64_t p = 0; p < AT(pa.nchunks, 0); p++) {
		bool alloc = false;

		for (size_t i = 0; i < n; i++)
			alloc |= p - ranges[i].page < ranges[i].npages;
		wrong += page_is_alloc(p) != alloc;
	}
	ck_assert_uint_eq(wrong, 0);
}

GROUP(tables, .timeout = 60);

TEST(table_of_allocations, .n = RT_ARRAY_LEN(alloc_cases))
{
	const struct alloc_case *c = &alloc_cases[_i];

	set_up(c->nchunks, c->alloc, RT_ARRAY_LEN(c->alloc), c->scav,
	       RT_ARRAY_LEN(c->scav));
	for (unsigned i = 0; i < RT_ARRAY_LEN(c->takes); i++) {
		struct take t = c->takes[i];
		uint64_t nscav = 99, page;

		if (t.npages == 0)
			break;
		page = pagealloc_alloc(&pa, t.npages, &nscav);
		ck_assert_msg(page == t.page, "%s: take %u at %llu", c->name, i,
			      (unsigned long long)page);
		ck_assert_msg(nscav == t.nscav, "%s: take %u scav %llu",
			      c->name, i, (unsigned long long)nscav);
		ck_assert_msg(!pagealloc_check(&pa), "%s: take %u", c->name, i);
	}
	expect_pages(c->after, RT_ARRAY_LEN(c->after));
	finish();
}

struct free_case {
	const char *name;
	uint32_t nchunks;
	uint64_t npages;    // of each piece that is freed
	uint64_t pieces[5]; // their first pages + 1
	struct range after[3];
};

static const struct free_case free_cases[] = {
    {"Free1", 1, 1, {1, 2, 3, 4, 5}, {{5, 507}}},
    {"ManyArena1",
     3,
     1,
     {AT(0, 256) + 1, AT(1, 0) + 1, AT(2, 511) + 1},
     {{0, 256}, {257, 255}, {AT(1, 1), AT(1, 510)}}},
    {"Free2", 1, 2, {1, 3, 5, 7, 9}, {{10, 502}}},
    {"Straddle2", 2, 2, {511 + 1}, {{0, 511}, {AT(1, 1), 511}}},
    {"Free5", 1, 5, {1, 6, 11, 16, 21}, {{25, 487}}},
    {"Free64", 1, 64, {1, 65, 129}, {{192, 320}}},
    {"Free65", 1, 65, {1, 66, 131}, {{195, 317}}},
    {"FreePallocChunkPages", 1, 512, {1}, {{0, 0}}},
    {"StraddlePallocChunkPages",
     2,
     512,
     {256 + 1},
     {{0, 256}, {AT(1, 256), 256}}},
    {"StraddlePallocChunkPages+1",
     2,
     513,
     {256 + 1},
     {{0, 256}, {AT(1, 257), 255}}},
    {"FreePallocChunkPages*2", 2, 1024, {1}, {{0, 0}}},
    {"StraddlePallocChunkPages*2",
     3,
     1024,
     {256 + 1},
     {{0, 256}, {AT(2, 256), 256}}},
    {"AllFreePallocChunkPages*7+5", 8, 7 * CP + 5, {1}, {{AT(7, 5), 507}}},
};

TEST(table_of_frees, .n = RT_ARRAY_LEN(free_cases))
{
	const struct free_case *c = &free_cases[_i];

	start(c->nchunks, c->nchunks);
	expect_alloc(AT(c->nchunks, 0), 0);
	for (unsigned i = 0; i < 5 && c->pieces[i]; i++) {
		pagealloc_free(&pa, c->pieces[i] - 1, c->npages);
		ck_assert_msg(!pagealloc_check(&pa), "%s: free %u", c->name, i);
	}
	expect_pages(c->after, RT_ARRAY_LEN(c->after));
	// Freed pages are not scavenged, and the first one is found first.
	ck_assert_uint_eq(pagealloc_count_scavenged(&pa), 0);
	expect_alloc(c->npages, c->pieces[0] - 1);
	finish();
}

static const uint64_t exhaust_npages[] = {
    1, 2, 3, 4, 5, 8, 16, 64, 65, 511, 512, 513, 1024, 1025, 2048, 2049,
};

// Pages are taken until there is no room; then exactly the remainder is left.
TEST(heap_is_exhausted_to_the_last_range, .n = RT_ARRAY_LEN(exhaust_npages))
{
	enum { NCHUNKS = 4 };
	uint64_t n = exhaust_npages[_i], count = 0, nscav, page, next = 0;

	start(NCHUNKS, NCHUNKS);
	while ((page = pagealloc_alloc(&pa, n, &nscav)) != NONE) {
		count += page == next && nscav == n;
		next += n;
	}
	ck_assert_uint_eq(next, AT(NCHUNKS, 0) / n * n);
	ck_assert_uint_eq(count, AT(NCHUNKS, 0) / n);
	ck_assert_uint_eq(pagealloc_count_free(&pa), AT(NCHUNKS, 0) % n);
	ck_assert_uint_eq(pagealloc_count_scavenged(&pa), AT(NCHUNKS, 0) % n);
	finish();
}

// Pages that are freed are found again: an exhausted heap has forgotten none.
TEST(allocation_follows_frees)
{
	start(8, 8);
	for (unsigned round = 0; round < 3; round++) { // Chunks8
		expect_alloc(AT(8, 0), 0);
		expect_alloc(1, NONE);
		pagealloc_free(&pa, 0, AT(8, 0));
	}
	for (unsigned round = 0; round < 5; round++) { // One
		expect_alloc(1, 0);
		pagealloc_free(&pa, 0, 1);
	}
	expect_alloc(AT(8, 0), 0); // Many
	pagealloc_free(&pa, 77, 8);
	pagealloc_free(&pa, 30, 4);
	pagealloc_free(&pa, AT(7, 500), 12);
	expect_alloc(1, 30);
	expect_alloc(4, 77);
	expect_alloc(4, 81);
	expect_alloc(5, AT(7, 500));
	expect_alloc(3, 31);
	expect_alloc(8, NONE);
	expect_alloc(7, AT(7, 505));
	expect_alloc(1, NONE);
	finish();
}

// Ranges in any order, of one chunk or of several, are free after one call.
TEST(ranges_are_freed_at_once)
{
	enum { CHUNKS = 70, RANGES = 200 };
	struct pagealloc_range range[RANGES];
	uint64_t at = 0;
	struct rng r;

	rng_init(&r, "ranges_are_freed_at_once");
	start(CHUNKS, CHUNKS);
	for (unsigned round = 0; round < 50; round++) {
		uint64_t npages = 0, nscav;
		unsigned n = 0;

		expect_alloc(AT(CHUNKS, 0), 0);
		at = rng_below(&r, 600);
		while (n < RANGES && at < AT(CHUNKS, 0)) {
			uint64_t most = rng_below(&r, 8) ? 9 : 4 * CP;

			range[n].page = at;
			range[n].npages = base_min(1 + rng_below(&r, most),
						   AT(CHUNKS, 0) - at);
			npages += range[n].npages;
			at += range[n++].npages + 1 + rng_below(&r, most);
		}
		for (unsigned i = 0; i < n && round % 2; i++) {
			unsigned k = (unsigned)rng_below(&r, n);
			struct pagealloc_range other = range[k];

			range[k] = range[i];
			range[i] = other;
		}
		pagealloc_free_ranges(&pa, range, n);
		pagealloc_free_ranges(&pa, range, 0);
		ck_assert_ptr_null(pagealloc_check(&pa));
		ck_assert_uint_eq(pagealloc_count_free(&pa), npages);
		while (n-- > 0)
			pagealloc_alloc_range(&pa, range[n].page,
					      range[n].npages);
		ck_assert_uint_eq(pagealloc_alloc(&pa, 1, &nscav), NONE);
		pagealloc_free(&pa, 0, AT(CHUNKS, 0));
	}
	finish();
}

// ---- growth ----

static const uint32_t grow_steps[][6] = {
    {1},
    {1, 2},
    {1, 5},
    {1, 2, 3, 4, 5},
    {7, 8, 9},
    {8, 64, 65},
    {1, 511, 512, 513},
    {63, 4095, 4096, 4097},
    {5000},
};

// After each step, the heap is one free range that was never touched.
TEST(growth_extends_one_free_range, .n = RT_ARRAY_LEN(grow_steps))
{
	const uint32_t *steps = grow_steps[_i];

	start(0, 5000);
	expect_alloc(1, NONE);
	for (unsigned i = 0; i < 6 && steps[i]; i++) {
		uint64_t npages = AT(steps[i], 0), nscav;

		grow(steps[i]);
		ck_assert_ptr_null(pagealloc_check(&pa));
		ck_assert_uint_eq(pagealloc_count_free(&pa), npages);
		ck_assert_uint_eq(pagealloc_count_scavenged(&pa), npages);
		expect_alloc(npages + 1, NONE);
		ck_assert_uint_eq(pagealloc_alloc(&pa, npages, &nscav), 0);
		ck_assert_uint_eq(nscav, npages);
		pagealloc_free(&pa, 0, npages);
		pagealloc_set_scavenged(&pa, 0, npages);
	}
	finish();
}

// New pages join a range that ended where the heap ended, and are found though
// the heap was exhausted.
TEST(growth_joins_the_range_below)
{
	start(2, 10);
	expect_alloc(AT(2, 0), 0);
	expect_alloc(1, NONE);
	pagealloc_free(&pa, AT(1, 500), 12);
	expect_alloc(13, NONE);
	grow(3);
	expect_alloc(13, AT(1, 500));
	expect_alloc(511, AT(2, 1));
	expect_alloc(1, NONE);
	grow(10);
	expect_alloc(1, AT(3, 0));
	finish();
}

// A chunk costs 128 bytes of bitmaps, 8 of scavenge index, and 9.15 of
// summaries; each table is rounded up to a physical page.
TEST(tables_are_counted_in_gc_misc_sys)
{
	uint64_t small, big;

	start(1, 1 << 18);
	small = gauge_load(&gauges.gc_misc_sys);
	ck_assert_uint_eq(small, TABLES * sysmem_page_size());
	ck_assert(pagealloc_reserve(&pa, 4096));
	big = gauge_load(&gauges.gc_misc_sys);
	ck_assert_uint_ge(big, 4096 * sizeof(struct pallocdata));
	ck_assert_uint_le(big, 4096 * 146 + TABLES * sysmem_page_size());
	ck_assert_uint_eq(gauge_load(&gauges.mapped_ready), big);
	ck_assert_uint_eq(pa.nchunks, 1);
	finish();
}

// ---- large heaps ----

enum { HUGE_CHUNKS = 1 << 18 }; // 1 TiB

GROUP(large, .timeout = 120);

// Requests beyond 2^21 pages, the most that one summary can express, are put
// together from root entries, and they may begin anywhere.
TEST(ranges_longer_than_a_root_entry_are_found)
{
	const uint64_t root = UINT64_C(1) << PALLOCSUM_LOG_MAX;
	const uint64_t all = AT(HUGE_CHUNKS, 0);

	start(HUGE_CHUNKS, HUGE_CHUNKS);
	expect_alloc(all + 1, NONE);
	expect_alloc(all, 0);
	expect_alloc(1, NONE);
	pagealloc_free(&pa, 0, all);
	expect_alloc(7, 0);
	expect_alloc(root, 7);
	expect_alloc(3 * root + 1, root + 7);
	pagealloc_free(&pa, 7, root);
	expect_alloc(root + 1, 4 * root + 8);
	expect_alloc(root - 1, 7);
	expect_alloc(2, 5 * root + 9);
	expect_alloc(1, root + 6);
	ck_assert_ptr_null(pagealloc_check(&pa));
	// The remaining pages are one range up to the end.
	expect_alloc(all - 5 * root - 11, 5 * root + 11);
	expect_alloc(1, NONE);
	pagealloc_free(&pa, 2 * root - 5, 2 * root + 10);
	expect_alloc(2 * root + 11, NONE);
	expect_alloc(2 * root + 10, 2 * root - 5);
	finish();
}

// Ranges are found that cross a border between entries, at every level.
TEST(ranges_across_every_border_are_found)
{
	static const uint32_t borders[] = {1, 8, 64, 512, 4096, 4160, 8191};
	static const uint64_t lengths[] = {2, 3, 64, 65, 600, 5000};
	const uint64_t all = AT(8192, 0);
	unsigned wrong = 0;

	start(8192, 8192);
	expect_alloc(all, 0);
	for (unsigned b = 0; b < RT_ARRAY_LEN(borders); b++) {
		for (unsigned k = 0; k < RT_ARRAY_LEN(lengths); k++) {
			uint64_t n = lengths[k], nscav;
			uint64_t page = AT(borders[b], 0) -
					base_min(n / 2 + 1, AT(borders[b], 0));

			n = base_min(n, all - page);
			pagealloc_free(&pa, page, n);
			wrong += pagealloc_alloc(&pa, n + 1, &nscav) != NONE;
			wrong += pagealloc_alloc(&pa, n, &nscav) != page;
			wrong += pagealloc_alloc(&pa, 1, &nscav) != NONE;
		}
	}
	ck_assert_uint_eq(wrong, 0);
	finish();
}

// One page of a full 1 TiB heap, wherever it is, is found and freed in a time
// that does not grow with the heap.  A round takes about 1 us; three walks over
// 2^18 leaves would take at least 200.
TEST(single_pages_of_a_huge_heap_cost_little)
{
	enum { ROUNDS = 20000, LIMIT_NS = 100000 };
	const uint64_t all = AT(HUGE_CHUNKS, 0);
	struct timespec begin, end;
	struct rng r;
	unsigned wrong = 0;

	rng_init(&r, "single_pages_of_a_huge_heap_cost_little");
	start(HUGE_CHUNKS, HUGE_CHUNKS);
	expect_alloc(all, 0);
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
	for (unsigned i = 0; i < ROUNDS; i++) {
		uint64_t low = rng_below(&r, all / 2), nscav;
		uint64_t high = all / 2 + rng_below(&r, all / 2);

		pagealloc_free(&pa, high, 1);
		pagealloc_free(&pa, low, 1);
		wrong += pagealloc_alloc(&pa, 2, &nscav) != NONE;
		wrong += pagealloc_alloc(&pa, 1, &nscav) != low;
		wrong += pagealloc_alloc(&pa, 1, &nscav) != high;
	}
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
	ck_assert_uint_eq(wrong, 0);
	ck_assert_int_lt((end.tv_sec - begin.tv_sec) * 1000000000 +
			     end.tv_nsec - begin.tv_nsec,
			 (int64_t)ROUNDS * LIMIT_NS);
	finish();
}

// ---- scavenging ----

// scavenge_one scavenges one range as a scavenger does, and returns its length.
// It returns 0 if no chunk has one.
static unsigned scavenge_one(unsigned min, unsigned max, uint64_t *page)
{
	uint32_t c;

	while ((c = scavindex_find(&pa.scav, SCAVINDEX_NONE, true)) !=
	       SCAVINDEX_NONE) {
		unsigned n;
		unsigned i = pallocdata_find_scavenge(pagealloc_chunk(&pa, c),
						      CP - 1, min, max, 0, &n);

		if (i == PALLOCBITS_NONE) {
			scavindex_empty(&pa.scav, c);
			continue;
		}
		*page = AT(c, i);
		ck_assert_uint_eq(pagealloc_alloc_range(&pa, *page, n), 0);
		pagealloc_free(&pa, *page, n);
		pagealloc_set_scavenged(&pa, *page, n);
		return n;
	}
	return 0;
}

struct scav_case {
	const char *name;
	uint32_t nchunks;
	struct range alloc[4], scav[5];
	unsigned min, max;
	struct range found[5]; // in order; what follows is not looked at
	uint64_t left;	       // free unscavenged pages in the end
};

static const struct scav_case scav_cases[] = {
    {"AllFreeUnscavExhaust",
     3,
     {{0}},
     {{0}},
     1,
     512,
     {{AT(2, 0), 512}, {AT(1, 0), 512}, {0, 512}},
     0},
    {"NoneFreeUnscavExhaust", 2, {{0, CP}}, {{AT(1, 0), CP}}, 1, 512, {{0}}, 0},
    {"ScavHighestPageFirst", 1, {{0}}, {{1, 510}}, 1, 1, {{511, 1}, {0, 1}}, 0},
    {"ScavMultiple", 1, {{0}}, {{2, 508}}, 1, 2, {{510, 2}, {0, 2}}, 0},
    {"ScavMultiple2",
     2,
     {{0}},
     {{0, 510}, {AT(1, 2), 510}},
     1,
     2,
     {{AT(1, 0), 2}, {510, 2}},
     0},
    {"ScavDiscontiguous",
     15,
     {{AT(1, 0), AT(13, 0)}},
     {{0, 510}, {AT(14, 2), 510}},
     1,
     2,
     {{AT(14, 0), 2}, {510, 2}},
     0},
    {"Broken physical pages stay",
     2,
     {{0, 3}, {AT(1, 9), 503}},
     {{0}},
     8,
     512,
     {{AT(1, 0), 8}, {8, 504}},
     5 + 1},
};

GROUP(tables);

TEST(table_of_scavenging, .n = RT_ARRAY_LEN(scav_cases))
{
	const struct scav_case *c = &scav_cases[_i];
	uint64_t page;
	unsigned n;

	set_up(c->nchunks, c->alloc, RT_ARRAY_LEN(c->alloc), c->scav,
	       RT_ARRAY_LEN(c->scav));
	for (unsigned i = 0; i < 5 && c->found[i].npages; i++) {
		n = scavenge_one(c->min, c->max, &page);
		ck_assert_msg(
		    n == c->found[i].npages && page == c->found[i].page,
		    "%s: %u at %llu", c->name, n, (unsigned long long)page);
	}
	ck_assert_uint_eq(scavenge_one(c->min, c->max, &page), 0);
	ck_assert_uint_eq(pagealloc_count_free(&pa) -
			      pagealloc_count_scavenged(&pa),
			  c->left);
	finish();
}

// ---- refusals ----

GROUP(faults, .timeout = 60);

// Whichever table cannot grow, the heap stays as it was, and grows when the
// system grants memory again.
TEST(refused_tables_leave_a_valid_heap)
{
	enum { MANY = 1 << 16 };
	unsigned refused = 0;
	bool grown = false;

	for (unsigned nth = 1; !grown; nth++) {
		start(2, MANY);
		expect_alloc(700, 0);
		fault_fail(OSCALL_COMMIT, nth, 1, ENOMEM);
		grown = pagealloc_reserve(&pa, MANY);
		ck_assert_int_eq(grown, fault_failed(OSCALL_COMMIT) == 0);
		refused += !grown;
		ck_assert_ptr_null(pagealloc_check(&pa));
		ck_assert_uint_eq(pa.nchunks, 2);
		expect_alloc(324, 700);
		expect_alloc(1, NONE);
		pagealloc_free(&pa, 100, 50);
		fault_fail(OSCALL_COMMIT, 1, 0, 0);
		grow(MANY);
		expect_alloc(51, AT(2, 0));
		expect_alloc(50, 100);
		finish();
	}
	// At least bitmaps, leaves and scavenge index; the upper levels may
	// fit the physical page that they have.
	ck_assert_uint_ge(refused, 3);
	ck_assert_uint_le(refused, TABLES);
}

TEST(refused_reservations_are_a_result)
{
	uint64_t reserved, unmapped;

	sysmem_init();
	for (unsigned nth = 1; nth <= TABLES; nth++) {
		fault_fail(OSCALL_UNMAP, 1, 0, 0);
		fault_fail(OSCALL_RESERVE, nth, 1, ENOMEM);
		ck_assert(!pagealloc_init(&pa, 1024));
		reserved = fault_count(OSCALL_RESERVE) - 1;
		unmapped = fault_count(OSCALL_UNMAP);
		ck_assert_uint_eq(reserved, unmapped);
		ck_assert_uint_eq(gauge_load(&gauges.gc_misc_sys), 0);
	}
	fault_fail(OSCALL_RESERVE, 1, 0, 0);
	start(1, 1024);
	finish();
}

TEST(more_than_the_most_is_refused)
{
	start(3, 3);
	ck_assert(!pagealloc_reserve(&pa, 4));
	ck_assert_ptr_null(pagealloc_check(&pa));
	expect_alloc(AT(3, 0), 0);
	finish();
}

// ---- our own bugs ----

// begin_wrong takes the first 600 pages.  The next calls of the test must end
// with this report.
static void begin_wrong(const char *report)
{
	start(2, 1 << 16);
	expect_alloc(600, 0);
	death_expect(report);
}

TEST(pages_freed_twice_are_found_out, .exit = DEATH_EXPECTED)
{
	begin_wrong("rtheap: page=512\n"
		    "rtheap: fatal: pagealloc: freed page is free");
	pagealloc_free(&pa, 590, 10);
	pagealloc_free(&pa, 500, 91);
}

TEST(pages_allocated_twice_are_found_out, .exit = DEATH_EXPECTED)
{
	begin_wrong("rtheap: page=599\n"
		    "rtheap: fatal: pagealloc: page is not free");
	pagealloc_alloc_range(&pa, 599, 2);
}

TEST(scavenging_used_pages_is_found_out, .exit = DEATH_EXPECTED)
{
	begin_wrong("rtheap: page=599\n"
		    "rtheap: fatal: pagealloc: page is not free");
	pagealloc_set_scavenged(&pa, 599, 2);
}

// The ranges are the last page of the heap and one behind it, the first page
// behind it, and no page.
static const struct range outside[] = {
    {AT(2, 0) - 1, 2}, {AT(2, 0), 1}, {7, 0}};

TEST(pages_beyond_the_heap_are_found_out, .n = RT_ARRAY_LEN(outside),
     .exit = DEATH_EXPECTED)
{
	begin_wrong("rtheap: fatal: pagealloc: pages outside of the heap");
	expect_alloc(424, 600);
	pagealloc_free(&pa, outside[_i].page, outside[_i].npages);
}

TEST(growth_without_tables_is_found_out, .exit = DEATH_EXPECTED)
{
	begin_wrong("rtheap: nchunks=65536\n"
		    "rtheap: fatal: pagealloc_grow: no room");
	pagealloc_grow(&pa, 1 << 16);
}

TEST(a_block_has_a_begin, .exit = DEATH_EXPECTED)
{
	struct pagealloc_block b;

	begin_wrong("rtheap: base=3\n"
		    "rtheap: fatal: pagealloc: no block begins here");
	pagealloc_retake_block(&pa, 3, 1, &b);
}

TEST(a_block_that_was_not_taken_is_not_freed, .exit = DEATH_EXPECTED)
{
	begin_wrong("rtheap: base=640\nrtheap: fatal: "
		    "pagealloc_free_block: pages were not taken");
	pagealloc_free_block(&pa, 640, 1, 0);
}

// A chunk is made full without a change of its summary.
TEST(a_chunk_without_its_free_pages_is_found_out, .exit = DEATH_EXPECTED)
{
	begin_wrong("rtheap: chunk=1\nrtheap: fatal: "
		    "pagealloc: chunk lacks what its summary says");
	memset(&pagealloc_chunk(&pa, 1)->alloc, 0xff,
	       sizeof(struct pallocbits));
	expect_alloc(1, NONE);
}

// The leaves are made full without a change of the summaries above.  Those
// still say that free pages begin after the first page.
TEST(children_without_their_free_pages_are_found_out, .exit = DEATH_EXPECTED)
{
	pallocsum *leaves;

	start(2, 1 << 16);
	death_expect("rtheap: entry=0\nrtheap: fatal: "
		     "pagealloc: children lack what their summary says");
	pagealloc_alloc_range(&pa, 0, 1);
	pagealloc_alloc_range(&pa, 1023, 1);
	leaves = (pallocsum *)pa.sums[PAGEALLOC_LEVELS - 1].base;
	leaves[0] = leaves[1] = 0;
	expect_alloc(600, NONE);
}
