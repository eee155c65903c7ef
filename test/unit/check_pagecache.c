// A block of 64 pages that one P owns.
#include "runtime/pages/pagecache.h"

#include <signal.h>

#include "test/harness/suite.h"

enum { CP = RT_CHUNK_PAGES, MAX_CHUNKS = 64 };

#define ALL (~UINT64_C(0))
#define EVEN UINT64_C(0x5555555555555555)

static struct pagealloc pa;
// For most tests: a cache, and the scavenged pages of its last allocation.
static struct pagecache own;
static uint64_t got_scav;

// start makes a heap of nchunks chunks that is wholly allocated.
static void start(uint32_t nchunks)
{
	sysmem_init();
	ck_assert(pagealloc_init(&pa, MAX_CHUNKS));
	ck_assert(pagealloc_reserve(&pa, nchunks));
	pagealloc_grow(&pa, nchunks);
	pagealloc_alloc_range(&pa, 0, nchunks * (uint64_t)CP);
}

static void finish(void)
{
	ck_assert_ptr_null(pagealloc_check(&pa));
	pagealloc_fini(&pa);
	ck_assert_uint_eq(gauge_load(&gauges.gc_misc_sys), 0);
}

// ---- allocation ----

struct hit {
	unsigned npages, i; // i is 64: no room
	unsigned nscav;
};

struct alloc_case {
	uint64_t cache, scav;
	struct hit hits[6];
};

static const struct alloc_case alloc_cases[] = {
    // Empty
    {0, 0, {{1, 64, 0}, {2, 64, 0}, {4, 64, 0}, {5, 64, 0}, {64, 64, 0}}},
    // Lo1, Hi1, Swiss1
    {1, 1, {{1, 0, 1}, {1, 64, 0}, {10, 64, 0}}},
    {UINT64_C(1) << 63, UINT64_C(1) << 63, {{1, 63, 1}, {1, 64, 0}}},
    {0x20005555,
     0x5505,
     {{2, 64, 0}, {1, 29, 0}, {1, 14, 1}, {1, 12, 1}, {1, 10, 1}, {1, 8, 1}}},
    // Lo2, Hi2, Swiss2
    {3, 3, {{2, 0, 2}, {2, 64, 0}, {1, 64, 0}}},
    {UINT64_C(3) << 62, UINT64_C(3) << 62, {{2, 62, 2}, {1, 64, 0}}},
    {0x3333aaaa,
     0x00110088,
     {{2, 28, 0}, {2, 24, 0}, {2, 20, 1}, {2, 16, 1}, {2, 64, 0}, {1, 15, 0}}},
    // Hi53, Full53, Full64
    {((UINT64_C(1) << 53) - 1) << 10,
     UINT64_C(1) << 62,
     {{53, 10, 1}, {53, 64, 0}, {1, 64, 0}}},
    {ALL,
     ((UINT64_C(1) << 53) - 1) << 10,
     {{53, 0, 43}, {53, 64, 0}, {11, 53, 10}, {1, 64, 0}}},
    {ALL, ALL, {{64, 0, 64}, {64, 64, 0}, {1, 64, 0}}},
    // FullMixed
    {ALL,
     ALL,
     {{5, 0, 5}, {7, 5, 7}, {1, 63, 1}, {23, 12, 23}, {4, 59, 4}, {3, 56, 3}}},
    {ALL,
     EVEN,
     {{65, 64, 0},
      {3, 61, 1},
      {60, 0, 30},
      {2, 64, 0},
      {1, 60, 1},
      {1, 64, 0}}},
};

GROUP(all, .timeout = 60);

TEST(few_pages_are_the_highest_and_many_the_lowest,
     .n = RT_ARRAY_LEN(alloc_cases))
{
	const struct alloc_case *c = &alloc_cases[_i];
	struct pagecache pc = {.base = 3 * 64,
			       .cache = c->cache,
			       .scav = c->scav,
			       .zero = c->scav};

	for (unsigned k = 0; k < RT_ARRAY_LEN(c->hits); k++) {
		struct hit hit = c->hits[k];
		uint64_t nscav = 99, page;

		if (hit.npages == 0)
			break;
		page = pagecache_alloc(&pc, hit.npages, &nscav);
		ck_assert_uint_eq(page, hit.i == 64 ? PAGEALLOC_NONE
						    : pc.base + hit.i);
		ck_assert_uint_eq(nscav, hit.nscav);
		ck_assert_uint_eq(pc.scav & ~pc.cache, 0);
	}
}

static bool naive_range(const struct pagecache *c, unsigned i, unsigned npages)
{
	for (unsigned k = i; k < i + npages; k++)
		if (k == 64 || !(c->cache >> k & 1))
			return false;
	return true;
}

static uint64_t naive_alloc(struct pagecache *c, unsigned npages,
			    uint64_t *nscav)
{
	*nscav = 0;
	for (unsigned n = 0; n < 64; n++) {
		unsigned i = npages < 5 ? 63 - n : n;

		if (!naive_range(c, i, npages))
			continue;
		for (unsigned k = i; k < i + npages; k++) {
			*nscav += c->scav >> k & 1;
			c->cache &= ~(UINT64_C(1) << k);
			c->scav &= ~(UINT64_C(1) << k);
		}
		return c->base + i;
	}
	return PAGEALLOC_NONE;
}

TEST(random_caches_agree_with_walking)
{
	struct rng r;
	unsigned wrong = 0;

	rng_init(&r, "random_caches_agree_with_walking");
	for (unsigned round = 0; round < 50000; round++) {
		uint64_t cache = rng_next(&r) | rng_next(&r) | rng_next(&r);
		uint64_t scav = cache & rng_next(&r);
		struct pagecache a = {.base = 64 * rng_below(&r, 1000),
				      .cache = cache,
				      .scav = scav,
				      .zero = scav};
		struct pagecache b = a;

		while (!pagecache_empty(&b)) {
			unsigned n = 1 + (unsigned)rng_below(&r, 9);
			uint64_t sa, sb;
			uint64_t got = pagecache_alloc(&a, n, &sa);

			wrong += got != naive_alloc(&b, n, &sb) || sa != sb ||
				 a.cache != b.cache || a.scav != b.scav;
		}
	}
	ck_assert_uint_eq(wrong, 0);
}

static unsigned naive_scavenged(const struct pagecache *c, uint64_t page,
				unsigned max)
{
	unsigned n = 0;

	while (n < max && page > c->base && c->scav >> (--page - c->base) & 1)
		n++;
	return n;
}

// pagecache_scavenged counts the scavenged pages right below a page.  A walk
// page by page counts the same.
TEST(scavenged_pages_are_counted_downwards)
{
	struct rng r;
	unsigned wrong = 0;

	rng_init(&r, "scavenged_pages_are_counted_downwards");
	for (unsigned round = 0; round < 100000; round++) {
		struct pagecache c = {.base = 64 * rng_below(&r, 1000)};
		unsigned i = (unsigned)rng_below(&r, 64);
		unsigned max = (unsigned)rng_below(&r, 66), n;

		c.cache = rng_next(&r) | rng_next(&r) | rng_next(&r);
		c.scav = c.zero = c.cache;
		n = pagecache_scavenged(&c, c.base + i, max);
		wrong += n != naive_scavenged(&c, c.base + i, max);
		pagecache_populated(&c, c.base + i - n, n);
		wrong += (c.cache ^ c.scav) != bits_mask(i - n, i);
	}
	ck_assert_uint_eq(wrong, 0);
}

// ---- filling and flushing ----

struct fill_case {
	uint32_t nchunks;
	// The free pages: these bits of these blocks of 64 pages.
	struct {
		uint32_t block;
		uint64_t free, scav;
	} blocks[3]; // in the order of filling
};

static const struct fill_case fill_cases[] = {
    {1, {{0, ALL, 0}, {1, ALL, EVEN}, {7, ALL, ALL}}},
    {8, {{8 * 7 + 7, UINT64_C(1) << 63, UINT64_C(1) << 63}}},
    {3, {{8, 1, 0}, {20, UINT64_C(1) << 63, 0}}},    // not contiguous
    {2, {{0, 0x1ff << 3, 0x2 << 3}, {8, 0x7, 0x5}}}, // scavenged bits
    {64, {{100, EVEN, 0}, {101, ~EVEN, ~EVEN}, {511, 2, 0}}},
    {1, {{0, 0, 0}}}, // nothing is free
};

static void free_block(uint32_t block, uint64_t free, uint64_t scav)
{
	for (unsigned i = 0; i < 64; i++) {
		uint64_t page = block * UINT64_C(64) + i;

		if (free >> i & 1)
			pagealloc_free(&pa, page, 1);
		if (scav >> i & 1)
			pagealloc_set_scavenged(&pa, page, 1);
	}
}

static void start_case(const struct fill_case *c)
{
	start(c->nchunks);
	for (unsigned i = 0; i < 3; i++)
		free_block(c->blocks[i].block, c->blocks[i].free,
			   c->blocks[i].scav);
}

TEST(fill_takes_the_block_of_the_lowest_free_page,
     .n = RT_ARRAY_LEN(fill_cases))
{
	const struct fill_case *c = &fill_cases[_i];

	start_case(c);
	for (unsigned i = 0; i < 3 && c->blocks[i].free; i++) {
		own = (struct pagecache){0};
		pagecache_fill(&own, &pa, 1);
		ck_assert_uint_eq(own.base, c->blocks[i].block * UINT64_C(64));
		ck_assert_uint_eq(own.cache, c->blocks[i].free);
		ck_assert_uint_eq(own.scav, c->blocks[i].scav);
		ck_assert_ptr_null(pagealloc_check(&pa));
	}
	own = (struct pagecache){0};
	pagecache_fill(&own, &pa, 1);
	ck_assert(pagecache_empty(&own));
	ck_assert_uint_eq(pagealloc_count_free(&pa), 0);
	ck_assert_uint_eq(pagealloc_count_scavenged(&pa), 0);
	finish();
}

// A flush frees what the fill took.  Scavenged pages stay scavenged, and the
// next fill takes the same pages again.
TEST(flush_restores_pages_and_scavenged_bits, .n = RT_ARRAY_LEN(fill_cases))
{
	const struct fill_case *c = &fill_cases[_i];
	uint64_t nfree, nscav;

	start_case(c);
	nfree = pagealloc_count_free(&pa);
	nscav = pagealloc_count_scavenged(&pa);
	for (unsigned round = 0; round < 2; round++) {
		pagecache_fill(&own, &pa, 1);
		ck_assert_uint_eq(own.cache, c->blocks[0].free);
		ck_assert_uint_eq(pagealloc_count_free(&pa),
				  nfree - bits_count(own.cache));
		pagecache_flush(&own, &pa);
		ck_assert(pagecache_empty(&own));
		ck_assert_uint_eq(own.base | own.scav, 0);
		ck_assert_uint_eq(pagealloc_count_free(&pa), nfree);
		ck_assert_uint_eq(pagealloc_count_scavenged(&pa), nscav);
		ck_assert_ptr_null(pagealloc_check(&pa));
	}
	finish();
}

// Pages taken from a cache stay allocated over its flush.
TEST(flush_keeps_what_was_allocated)
{
	start(1);
	pagealloc_free(&pa, 128, 64);
	pagealloc_set_scavenged(&pa, 180, 10);
	pagecache_fill(&own, &pa, 1);
	ck_assert_uint_eq(pagecache_alloc(&own, 4, &got_scav), 188);
	ck_assert_uint_eq(got_scav, 2);
	pagecache_flush(&own, &pa);
	ck_assert_uint_eq(pagealloc_count_free(&pa), 60);
	ck_assert_uint_eq(pagealloc_count_scavenged(&pa), 8);
	ck_assert_uint_eq(pagealloc_alloc(&pa, 60, &got_scav), 128);
	ck_assert_uint_eq(got_scav, 8);
	ck_assert_uint_eq(pagealloc_alloc(&pa, 1, &got_scav), PAGEALLOC_NONE);
	finish();
}

TEST(flush_of_an_empty_cache_changes_nothing)
{
	start(1);
	pagecache_flush(&own, &pa);
	ck_assert_uint_eq(pagealloc_count_free(&pa), 0);
	ck_assert_uint_eq(pagealloc_alloc(&pa, 1, &got_scav), PAGEALLOC_NONE);
	finish();
}

// A flush makes the lowest page known again to the search for one page.
TEST(flushed_pages_are_found_by_the_allocator)
{
	start(4);
	pagealloc_free(&pa, 0, 64);
	pagealloc_free(&pa, 3 * CP, 64);
	pagecache_fill(&own, &pa, 1);
	ck_assert_uint_eq(pagealloc_alloc(&pa, 1, &got_scav), 3 * CP);
	pagecache_flush(&own, &pa);
	ck_assert_uint_eq(pagealloc_alloc(&pa, 64, &got_scav), 0);
	finish();
}

// ---- blocks that a cache remembers ----

// drain takes all that a cache has got.
static void drain(struct pagecache *pc)
{
	uint64_t nscav;

	while (!pagecache_empty(pc))
		pagecache_alloc(pc, 1, &nscav);
}

// expect_fill requires that an empty cache is filled from a block, and drains
// it.
static void expect_fill(struct pagecache *pc, uint32_t block)
{
	pagecache_fill(pc, &pa, 1);
	ck_assert_uint_eq(pc->base, block * UINT64_C(64));
	ck_assert_uint_ne(pc->cache, 0);
	drain(pc);
	ck_assert_ptr_null(pagealloc_check(&pa));
}

static void free_blocks(uint32_t from, uint32_t n)
{
	pagealloc_free(&pa, from * UINT64_C(64), n * UINT64_C(64));
}

TEST(what_was_filled_from_last_is_asked_first)
{
	struct pagecache pc = {0}, other = {0};

	start(2);
	free_blocks(2, 3);
	expect_fill(&pc, 2);
	expect_fill(&pc, 3);
	expect_fill(&pc, 4);
	free_blocks(0, 8); // 0, 1 and 5 to 7 belong to others
	expect_fill(&pc, 4);
	expect_fill(&pc, 3);
	expect_fill(&other, 0);
	expect_fill(&pc, 2);
	expect_fill(&pc, 1);
	expect_fill(&other, 5);
	expect_fill(&pc, 6);
	free_block(2, 1, 0); // one page
	free_block(4, 1, 0);
	free_blocks(5, 1);
	expect_fill(&other, 5);
	expect_fill(&pc, 2); // after 6 and 1, in which nothing is free
	expect_fill(&pc, 4);
	pagecache_fill(&pc, &pa, 1);
	ck_assert_uint_eq(pc.base, 7 * UINT64_C(64));
	drain(&pc);
	finish();
}

// A recent block whose memory was released is in no processor's cache.  So it
// is not preferred, and the lowest block is taken.
TEST(a_block_whose_memory_was_released_is_no_reason)
{
	start(1);
	free_blocks(3, 1);
	expect_fill(&own, 3);
	free_block(3, ALL, ALL);
	free_blocks(1, 1);
	expect_fill(&own, 1);
	expect_fill(&own, 3);
	free_block(3, ALL, ~UINT64_C(1));
	free_blocks(0, 1);
	expect_fill(&own, 3); // its first page has memory
	finish();
}

TEST(the_oldest_block_is_forgotten)
{
	start(2);
	free_blocks(1, PAGECACHE_RECENT + 1);
	for (uint32_t block = 1; block <= PAGECACHE_RECENT + 1; block++)
		expect_fill(&own, block);
	free_blocks(0, 2); // 0 and the oldest
	expect_fill(&own, 0);
	free_blocks(2, 1); // forgotten for 0
	expect_fill(&own, 1);
	expect_fill(&own, 2);
	finish();
}

// pagecache_keep keeps pages in a row, as many as were asked for, even if
// single pages lie lower.
TEST(what_is_kept_holds_the_range_that_was_asked_for)
{
	static const unsigned alone[] = {0, 2, 4, 6, 30};
	struct pagecache c = {0};

	start(1);
	for (unsigned i = 0; i < RT_ARRAY_LEN(alone); i++)
		pagealloc_free(&pa, alone[i], 1);
	pagealloc_free(&pa, 16, 4);
	pagecache_fill(&c, &pa, 4);
	ck_assert_uint_eq(c.cache, 0x400f0055);
	pagecache_keep(&c, &pa, 4, 6);
	ck_assert_uint_eq(c.cache, 0x000f0005);
	ck_assert_uint_eq(c.scav & ~c.cache, 0);
	pagecache_keep(&c, &pa, 4, 4);
	ck_assert_uint_eq(c.cache, 0x000f0000);
	pagecache_flush(&c, &pa);
	finish();
}

// A collection flushes the cache.  The next filling comes from the block of the
// last one.
TEST(a_flushed_cache_remembers)
{
	start(1);
	free_blocks(5, 1);
	expect_fill(&own, 5);
	pagecache_flush(&own, &pa);
	free_blocks(4, 2);
	expect_fill(&own, 5);
	expect_fill(&own, 4);
	finish();
}

// ---- pages in a row ----

// The rest of the cache is freed as it was, and the new block has as many pages
// in a row as were asked for.
TEST(a_cache_without_a_fit_is_exchanged)
{
	start(1);
	free_block(1, EVEN, 0x5);
	free_block(2, 0xf, 0);
	free_block(5, 0x1f << 3 | 1, 1);
	pagecache_fill(&own, &pa, 1);
	ck_assert_uint_eq(own.base, 64);
	ck_assert(!pagecache_fits(&own, 5));
	pagecache_fill(&own, &pa, 5);
	ck_assert_uint_eq(own.base, 5 * 64);
	ck_assert_uint_eq(own.cache, 0x1f << 3 | 1);
	ck_assert_uint_eq(own.scav, 1);
	ck_assert_uint_eq(pagealloc_count_scavenged(&pa), 2);
	ck_assert_uint_eq(pagecache_alloc(&own, 5, &got_scav), 5 * 64 + 3);
	// The lowest pages are found again, though higher ones were taken.
	pagecache_fill(&own, &pa, 1);
	ck_assert_uint_eq(own.base, 64);
	drain(&own);
	finish();
}

// The block that the cache had last comes first if it fits.
TEST(a_recent_block_without_a_fit_is_passed_by)
{
	start(1);
	free_blocks(3, 2);
	expect_fill(&own, 3);
	expect_fill(&own, 4);
	free_block(0, ALL, 0);
	free_block(4, 0xffff, 0);
	free_block(3, 0xff, 0);
	pagecache_fill(&own, &pa, 17);
	ck_assert_uint_eq(own.base, 0);
	pagecache_fill(&own, &pa, 16);
	ck_assert_uint_eq(own.base, 0); // now the latest
	drain(&own);
	pagecache_fill(&own, &pa, 16);
	ck_assert_uint_eq(own.base, 4 * 64);
	drain(&own);
	pagecache_fill(&own, &pa, 9);
	ck_assert(pagecache_empty(&own));
	finish();
}

// The lowest free pages in a row are in two blocks, so the page allocator hands
// them out.
TEST(pages_in_two_blocks_are_not_for_a_cache)
{
	start(1);
	pagealloc_free(&pa, 60, 9);
	pagealloc_free(&pa, 192, 9);
	pagecache_fill(&own, &pa, 6);
	ck_assert(pagecache_empty(&own));
	ck_assert_uint_eq(pagealloc_alloc(&pa, 6, &got_scav), 60);
	pagecache_fill(&own, &pa, 6);
	ck_assert_uint_eq(own.base, 192);
	pagecache_fill(&own, &pa, 3);
	ck_assert_uint_eq(own.base, 192); // the latest
	drain(&own);
	pagecache_fill(&own, &pa, 3);
	ck_assert_uint_eq(own.base, 64);
	ck_assert_uint_eq(own.cache, 0x1c);
	drain(&own);
	finish();
}

// ---- what a cache keeps, and takes again ----

// fill_halves makes a cache take the block at 0, whose low half is released.
static void fill_halves(struct pagecache *pc)
{
	start(1);
	pagealloc_free(&pa, 0, 64);
	pagealloc_set_scavenged(&pa, 0, 32);
	pagecache_fill(pc, &pa, 1);
	ck_assert_uint_eq(pc->cache, ALL);
}

TEST(what_was_released_is_zero_and_nothing_else)
{
	fill_halves(&own);
	ck_assert(pagecache_is_zero(&own, 0, 32));
	ck_assert(!pagecache_is_zero(&own, 32, 1));
	ck_assert(!pagecache_is_zero(&own, 31, 2));
	pagecache_flush(&own, &pa);
	finish();
}

TEST(the_lowest_pages_are_kept_the_others_go_back_as_they_were)
{
	fill_halves(&own);
	pagecache_keep(&own, &pa, 1, 40);
	ck_assert_uint_eq(own.cache, bits_mask(0, 40));
	ck_assert_uint_eq(own.scav, bits_mask(0, 32));
	ck_assert_uint_eq(pagealloc_count_free(&pa), 24);
	ck_assert_uint_eq(pagealloc_count_scavenged(&pa), 0);
	pagecache_keep(&own, &pa, 1, 10);
	ck_assert_uint_eq(own.cache, bits_mask(0, 10));
	ck_assert_uint_eq(own.scav, bits_mask(0, 10));
	ck_assert_uint_eq(pagealloc_count_free(&pa), 54);
	ck_assert_uint_eq(pagealloc_count_scavenged(&pa), 22);
	pagecache_flush(&own, &pa);
	finish();
}

// A block that the cache had before comes first, unless all free pages there
// were released.
TEST(a_recent_block_is_taken_again)
{
	start(1);
	pagealloc_free(&pa, 128, 64);
	pagecache_fill(&own, &pa, 1);
	ck_assert_uint_eq(own.base, 128);
	pagecache_flush(&own, &pa);
	pagealloc_free(&pa, 0, 64);
	pagecache_fill(&own, &pa, 1);
	ck_assert_uint_eq(own.base, 128);
	pagecache_flush(&own, &pa);
	pagealloc_set_scavenged(&pa, 128, 64);
	pagecache_fill(&own, &pa, 1);
	ck_assert_uint_eq(own.base, 0);
	ck_assert_uint_eq(own.nrecent, 2);
	ck_assert_uint_eq(own.recent[0], 0);
	ck_assert_uint_eq(own.recent[1], 128);
	pagecache_flush(&own, &pa);
	finish();
}

// ---- several caches at work ----

enum { NCACHES = 6, NCHUNKS = 3, NPAGES = NCHUNKS * CP };

struct world {
	struct pagecache pc[NCACHES];
	bool used[NPAGES];     // handed out to the test
	bool was_scav[NPAGES]; // scavenged when it was free last
	unsigned wrong;
};

// take allocates from a cache, or from the heap if the cache is dry.
static void take(struct world *w, struct rng *r)
{
	struct pagecache *c = &w->pc[rng_below(r, NCACHES)];
	unsigned n = 1 + (unsigned)rng_below(r, PAGECACHE_MAX_NPAGES - 1);
	uint64_t nscav, page, expected = 0;

	if (!pagecache_fits(c, n)) {
		pagecache_fill(c, &pa, n);
		w->wrong += !pagecache_empty(c) && !pagecache_fits(c, n);
	}
	page = pagecache_alloc(c, n, &nscav);
	if (page == PAGEALLOC_NONE)
		page = pagealloc_alloc(&pa, n, &nscav);
	if (page == PAGEALLOC_NONE)
		return;
	for (uint64_t p = page; p < page + n; p++) {
		w->wrong += w->used[p];
		expected += w->was_scav[p];
		w->used[p] = true;
		w->was_scav[p] = false;
	}
	w->wrong += nscav != expected;
}

// give frees a range of used pages, and has every other such range scavenged,
// at random.
static void give(struct world *w, struct rng *r)
{
	uint64_t p = rng_below(r, NPAGES), n = 0;
	bool scav = rng_below(r, 2);

	while (p + n < NPAGES && n < 20 && w->used[p + n]) {
		w->used[p + n] = false;
		w->was_scav[p + n] = scav;
		n++;
	}
	if (n == 0)
		return;
	pagealloc_free(&pa, p, n);
	if (scav)
		pagealloc_set_scavenged(&pa, p, n);
}

// audit compares how many pages of caches and heap are free, and scavenged,
// with what the test knows.
static void audit(struct world *w)
{
	uint64_t nfree = pagealloc_count_free(&pa);
	uint64_t nscav = pagealloc_count_scavenged(&pa);

	for (unsigned i = 0; i < NCACHES; i++) {
		nfree += bits_count(w->pc[i].cache);
		nscav += bits_count(w->pc[i].scav);
	}
	for (unsigned p = 0; p < NPAGES; p++) {
		nfree -= !w->used[p];
		nscav -= w->was_scav[p];
	}
	w->wrong += nfree != 0 || nscav != 0 || pagealloc_check(&pa) != NULL;
}

TEST(random_work_leaks_no_page)
{
	static struct world w;
	struct rng r;

	rng_init(&r, "random_work_leaks_no_page");
	start(NCHUNKS);
	for (unsigned p = 0; p < NPAGES; p++)
		w.used[p] = true;
	for (unsigned op = 1; op <= 300000; op++) {
		uint64_t what = rng_below(&r, 100);

		if (what < 50)
			take(&w, &r);
		else if (what < 97)
			give(&w, &r);
		else
			pagecache_flush(&w.pc[rng_below(&r, NCACHES)], &pa);
		if (op % 1000 == 0)
			audit(&w);
	}
	for (unsigned i = 0; i < NCACHES; i++)
		pagecache_flush(&w.pc[i], &pa);
	audit(&w);
	ck_assert_uint_eq(w.wrong, 0);
	for (unsigned p = 0; p < NPAGES; p++)
		w.wrong += pallocbits_get(&pagealloc_chunk(&pa, p / CP)->alloc,
					  p % CP) != w.used[p];
	ck_assert_uint_eq(w.wrong, 0);
	finish();
}

TEST(flushing_pages_twice_is_found_out, .signal = SIGABRT)
{
	struct pagecache pc = {0}, twin;

	start(1);
	pagealloc_free(&pa, 5, 1);
	pagecache_fill(&pc, &pa, 1);
	twin = pc;
	pagecache_flush(&pc, &pa);
	pagecache_flush(&twin, &pa);
}
