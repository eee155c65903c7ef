// Pages and spans that a P keeps, and pages that are populated ahead.
#include "test/harness/fault.h"
#include "test/unit/mheap.h"

#include <sys/mman.h>

#include "runtime/base/bits.h"
#include "runtime/os/oscall.h"

GROUP(cache, .setup = begin, .timeout = 60);

TEST(cached_pages_count_as_free)
{
	struct mheap_cache cache = {.filling = PAGECACHE_PAGES};
	struct mspan *first = alloc_page(NULL);
	struct mspan *s = alloc_page(&cache);

	// One of the 63 pages that the P took is in use.
	ck_assert_uint_eq(bits_count(cache.pages.cache), 62);
	ck_assert_uint_eq(bits_count(cache.pages.scav), 62);
	ck_assert_uint_eq(pagealloc_count_free(&mheap.pages),
			  RT_CHUNK_PAGES - 64);
	expect((struct use){.heap = 2 * PAGE, .sys = CHUNK});
	mheap_cache_flush(&cache);
	ck_assert_uint_eq(pagealloc_count_free(&mheap.pages),
			  RT_CHUNK_PAGES - 2);
	ck_assert_uint_eq(pagealloc_count_scavenged(&mheap.pages),
			  RT_CHUNK_PAGES - 2);
	free_span(first);
	free_span(s);
	check_heap();
}

// A P that allocates little takes few pages from the others.
TEST(fillings_of_a_cache_double)
{
	struct mheap_cache cache = {0};
	unsigned most = MHEAP_CACHE_FIRST;

	alloc_page(NULL); // so that there are free pages to cache
	for (unsigned filling = 0; filling < 6; filling++) {
		ck_assert_ptr_nonnull(alloc_page(&cache));
		ck_assert_uint_lt(bits_count(cache.pages.cache), most);
		ck_assert_uint_eq(cache.filling, most);
		while (!pagecache_empty(&cache.pages))
			ck_assert_ptr_nonnull(alloc_page(&cache));
		most = (unsigned)base_min(2 * most, PAGECACHE_PAGES);
	}
	ck_assert_uint_eq(most, PAGECACHE_PAGES);
	end_cache(&cache);
}

// A P that has allocated much and then allocates little takes few again.
TEST(a_flush_makes_fillings_smaller)
{
	struct mheap_cache cache = {.filling = PAGECACHE_PAGES};

	alloc_page(NULL); // so that there are free pages to cache
	for (unsigned i = 0; i < 8; i++) {
		mheap_cache_flush(&cache);
		ck_assert_ptr_nonnull(alloc_page(&cache));
	}
	ck_assert_uint_eq(cache.filling, MHEAP_CACHE_FIRST);
	mheap_cache_flush(&cache);
	mheap_cache_flush(&cache); // of an empty one
	ck_assert_uint_eq(cache.filling, 0);
	check_heap();
}

TEST(pages_from_a_cache_know_whether_they_need_zeroing)
{
	// 1 and 3 were used, 4 and 5 never were.
	static const unsigned pages[MHEAP_CACHE_FIRST] = {5, 4, 3, 1};
	struct mheap_cache cache = {0};
	struct mspan *s[4];

	for (unsigned i = 0; i < 4; i++)
		s[i] = alloc_page(NULL);
	free_span(s[1]);
	free_span(s[3]);
	for (unsigned i = 0; i < RT_ARRAY_LEN(pages); i++) {
		struct mspan *again = alloc_page(&cache);

		ck_assert_uint_eq(mspan_page(again), pages[i]);
		ck_assert_uint_eq(again->needzero, pages[i] < 4);
	}
	ck_assert_uint_eq(now().heap_free, 0);
	end_cache(&cache);
}

TEST(big_requests_go_past_the_page_cache)
{
	struct mheap_cache cache = {0};

	alloc_page(NULL); // so that there are free pages to cache
	alloc_large(&cache, 16 * PAGE);
	ck_assert_uint_eq(cache.filling, 0);
	alloc_large(&cache, 15 * PAGE);
	ck_assert_uint_eq(cache.filling, 15);
	end_cache(&cache);
}

static uint64_t alloc_pages(struct mheap_cache *cache, uint64_t npages)
{
	struct mspan *s = alloc_large(cache, npages * PAGE);

	ck_assert_ptr_nonnull(s);
	return mspan_page(s);
}

TEST(pages_that_the_cache_cannot_serve_are_exchanged)
{
	struct mheap_cache cache = {.filling = PAGECACHE_PAGES};

	for (unsigned i = 0; i < 55; i++)
		ck_assert_ptr_nonnull(alloc_page(&cache));
	ck_assert_uint_eq(cache.pages.cache, 0x1ff << 1);
	ck_assert_uint_eq(alloc_pages(&cache, 10), 64);
	ck_assert_uint_eq(cache.pages.cache, ~UINT64_C(0) << 10);
	ck_assert_uint_eq(alloc_pages(&cache, 9), 74);
	ck_assert_uint_eq(alloc_pages(NULL, 9), 1); // released
	end_cache(&cache);
}

// No page is left over between objects of any number of pages, though a P
// takes blocks of 64.
TEST(objects_of_many_pages_lie_side_by_side, .base = PAGECACHE_LOW_NPAGES,
     .limit = PAGECACHE_MAX_NPAGES)
{
	struct mheap_cache cache = {.filling = PAGECACHE_PAGES};
	uint64_t npages = (uint64_t)_i;

	for (uint64_t i = 0; i < 500 / npages; i++)
		ck_assert_uint_eq(alloc_pages(&cache, npages), i * npages);
	end_cache(&cache);
}

TEST(spans_in_a_stock_count_as_in_use)
{
	struct mheap_cache cache = {.filling = PAGECACHE_PAGES};
	uint64_t mspan = sizeof(struct mspan);

	alloc_page(NULL);
	alloc_page(&cache);
	ck_assert_uint_eq(cache.nspans, MHEAP_CACHE_SPANS - 1);
	for (unsigned i = 3; i <= 20; i++) {
		alloc_page(&cache);
		ck_assert_uint_eq(gauge_load(&gauges.mspan_inuse),
				  (i + cache.nspans) * mspan);
		ck_assert_uint_le(cache.nspans, MHEAP_CACHE_SPANS);
	}
	mheap_cache_flush(&cache);
	ck_assert_uint_eq(cache.nspans, 0);
	ck_assert_uint_eq(gauge_load(&gauges.mspan_inuse), 20 * mspan);
}

// ---- populating ----

// resident returns how many of the n pages from base on have memory.
static unsigned resident(uintptr_t base, unsigned n)
{
	unsigned char vec[RT_PAGE_SIZE / 4096];
	unsigned i = 0;

	while (i < n && mincore((void *)(base + i * PAGE), PAGE, vec) == 0 &&
	       vec[0] & 1)
		i++;
	return i;
}

GROUP(populating, .setup = begin_populating, .timeout = 60);

// When a page that is not resident is taken, the next pages are brought in with
// it.  They are free, zero, and no longer released.
TEST(fresh_pages_are_populated_ahead)
{
	struct mheap_cache cache = {.filling = PAGECACHE_PAGES};
	uint64_t ahead = MHEAP_POPULATE;
	struct mspan *s;

	alloc_page(NULL); // so that there are free pages to cache
	s = alloc_page(&cache);
	if (!atomic_u32_load_relaxed(&mheap.populate)) {
		suite_skip("this kernel has no MADV_POPULATE_WRITE", NULL);
		return;
	}
	for (uint64_t used = 2; used <= 2 + MHEAP_POPULATE; used++) {
		ck_assert_uint_ge(resident(s->base - ahead * PAGE, 64),
				  ahead + 1);
		expect((struct use){.heap = used * PAGE,
				    .free = (ahead + 2 - used) * PAGE,
				    .sys = CHUNK});
		ck_assert(!alloc_page(&cache)->needzero);
	}
	ck_assert_uint_eq(now().heap_free, ahead * PAGE);
	mheap_cache_flush(&cache);
	ck_assert_uint_eq(now().heap_free, ahead * PAGE);
	ck_assert_uint_eq(scavenge_once(self, CHUNK, true), ahead * PAGE);
	check_heap();
}

TEST(what_may_not_be_used_is_not_populated)
{
	struct mheap_cache cache = {0};
	struct mspan *large;

	alloc_page(NULL); // so that there are free pages to cache
	for (;;) {
		alloc_page(&cache);
		if (cache.filling >= MHEAP_POPULATE)
			break;
		ck_assert_uint_eq(now().heap_free, 0);
	}
	large = alloc_large(&cache, 2 * CHUNK);
	ck_assert_uint_eq(resident(large->base + 2 * CHUNK - PAGE, 1), 0);
	end_cache(&cache);
}

// A refusal counts nothing, and the system is not asked again.
TEST(refused_populating_is_not_tried_again)
{
	struct mheap_cache cache = {.filling = PAGECACHE_PAGES};

	alloc_page(NULL);
	fault_fail(OSCALL_ADVISE, 1, 1, 22);
	for (unsigned i = 2; i < 50; i++) {
		ck_assert(!alloc_page(&cache)->needzero);
		ck_assert_uint_eq(now().heap_free, 0);
		ck_assert_uint_eq(now().committed, i * PAGE);
	}
	ck_assert_uint_eq(fault_count(OSCALL_ADVISE), 1);
	end_cache(&cache);
}
