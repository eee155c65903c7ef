// Releasing free pages to the system.
#define RT_NO_INLINE_ALLOC
#include <errno.h>
#include <rt/rt.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "runtime/os/oscall.h"
#include "runtime/os/settings.h"
#include "runtime/spans/populate.h"
#include "test/harness/heap.h"
#include "test/harness/stopped.h"
#include "test/unit/scavenge.h"

enum { ROUNDS = RT_TSAN ? 15 : 60 }; // of random work

enum { CHUNKS = 4, PAGES = CHUNKS * RT_CHUNK_PAGES, HUGE_BYTES = 2 << 20 };

static uint64_t phys; // pages of the heap in a physical page, at least 1

// span_at[page] is the span of one page, or NULL if the page is free.
static struct mspan *span_at[PAGES];

// begin makes a heap of four chunks without a collector.  All pages are handed
// out one by one and written to.
static void begin(int i)
{
	fault_set_page_size(page_sizes[i]);
	sysmem_init();
	phys = base_max(page_sizes[i] / RT_PAGE_SIZE, 1);
	atomic_u32_store_relaxed(&epoch.sweepgen, 2);
	settings_present.populate = 1;
	settings_present.max_heap = RT_ARENA_SIZE;
	ck_assert(arena_init());
	ck_assert(mheap_init());
	for (unsigned page = 0; page < PAGES; page++) {
		struct mspan *s = mheap_alloc_manual(NULL, 1, MSPAN_WORK);

		if (!s || mspan_page(s) != page)
			ck_abort_msg("page %u", page);
		memset((void *)s->base, 0x5c, RT_PAGE_SIZE);
		span_at[page] = s;
	}
	ck_assert_uint_eq(heapgauge_sum(HEAPGAUGE_RELEASED), 0);
}

static void free_page(unsigned page)
{
	mheap_free_manual(NULL, span_at[page]);
	span_at[page] = NULL;
}

static void free_pages(unsigned lo, unsigned hi)
{
	for (unsigned page = lo; page < hi; page++)
		free_page(page);
}

static bool is_scavenged(unsigned page)
{
	const struct pallocdata *d =
	    pagealloc_chunk(&mheap.pages, page / RT_CHUNK_PAGES);

	return pallocbits_get(&d->scavenged, page % RT_CHUNK_PAGES);
}

// expect_sums checks statistics against each other and the page bitmaps, as
// the double check does.
static void expect_sums(void)
{
	struct heapstats_totals t = stopped_totals();
	uint64_t nfree = pagealloc_count_free(&mheap.pages);
	uint64_t nscav = pagealloc_count_scavenged(&mheap.pages);

	ck_assert_uint_eq(t.released, heapgauge_sum(HEAPGAUGE_RELEASED));
	ck_assert_uint_eq(t.released, nscav << RT_PAGE_SHIFT);
	ck_assert_uint_eq(heapgauge_sum(HEAPGAUGE_FREE), (nfree - nscav)
							     << RT_PAGE_SHIFT);
	ck_assert_uint_eq(heapgauge_sum(HEAPGAUGE_FREE),
			  t.committed - t.in_work_bufs - t.in_heap -
			      t.in_stacks);
	ck_assert_uint_eq(gauge_load(&gauges.mapped_ready),
			  t.committed + gauge_load(&gauges.gc_misc_sys) +
			      gauge_load(&gauges.mspan_sys) +
			      gauge_load(&gauges.other_sys));
	ck_assert_ptr_null(pagealloc_check(&mheap.pages));
}

static bool page_reads(unsigned page, char value)
{
	const char *p = (char *)arena_page_address(page);

	return p[0] == value && memcmp(p, p + 1, RT_PAGE_SIZE - 1) == 0;
}

// expect_contents requires that pages in use are as they were, and that
// scavenged ones read as zero.
static void expect_contents(void)
{
	for (unsigned page = 0; page < PAGES; page++) {
		if (span_at[page] && !page_reads(page, 0x5c))
			ck_abort_msg("page %u was changed", page);
		if (is_scavenged(page) &&
		    (span_at[page] || !page_reads(page, 0)))
			ck_abort_msg("page %u is scavenged", page);
	}
}

// can_be_released tells whether all of a physical page is free.
static bool can_be_released(unsigned page)
{
	unsigned lo = (unsigned)base_align_down(page, phys);

	for (unsigned k = lo; k < lo + phys; k++)
		if (span_at[k])
			return false;
	return true;
}

// release_one calls scavenge_once and checks the range that was released.
static uint64_t release_one(uint64_t max, bool force)
{
	static bool before[PAGES];
	unsigned first = PAGES, n = 0;
	uint64_t bytes;

	for (unsigned page = 0; page < PAGES; page++)
		before[page] = is_scavenged(page);
	bytes = scavenge_once(NULL, max, force);
	for (unsigned page = 0; page < PAGES; page++) {
		if (is_scavenged(page) == before[page])
			continue;
		first = n++ == 0 ? page : first;
		if (page != first + n - 1 || before[page] ||
		    !can_be_released(page))
			ck_abort_msg("page %u of a range from %u", page, first);
	}
	ck_assert_uint_eq(bytes, (uint64_t)n << RT_PAGE_SHIFT);
	ck_assert_uint_eq(first % phys, 0);
	ck_assert_uint_eq(n % phys, 0);
	// It releases more than was asked for only to take a huge page whole.
	if (max <= RT_CHUNK_SIZE &&
	    bytes > base_align_up(base_max(max, 1), phys << RT_PAGE_SHIFT)) {
		ck_assert_uint_eq((uint64_t)first * RT_PAGE_SIZE % HUGE_BYTES,
				  0);
		ck_assert_uint_ge(bytes, HUGE_BYTES);
	}
	expect_sums();
	return bytes;
}

GROUP(ranges, .timeout = 120);

TEST(a_range_is_whole_physical_pages_from_the_top,
     .n = RT_ARRAY_LEN(page_sizes))
{
	begin(_i);
	ck_assert_uint_eq(release_one(1 << 20, true), 0); // nothing is free
	free_pages(100, 137);
	ck_assert_uint_eq(release_one(RT_PAGE_SIZE, true),
			  phys << RT_PAGE_SHIFT);
	ck_assert(is_scavenged((unsigned)base_align_down(137, phys) - 1));
	ck_assert(!is_scavenged((unsigned)base_align_down(137, phys)));
	ck_assert_uint_eq(
	    release_one(RT_CHUNK_SIZE, true),
	    (base_align_down(137, phys) - base_align_up(100, phys) - phys)
		<< RT_PAGE_SHIFT);
	ck_assert_uint_eq(release_one(RT_CHUNK_SIZE, true), 0);
	expect_contents();
}

TEST(chunks_are_released_from_the_highest_down, .n = RT_ARRAY_LEN(page_sizes))
{
	uint64_t all = 0, n;
	unsigned top = PAGES;

	begin(_i);
	free_pages(64, 128);
	free_pages(RT_CHUNK_PAGES + 64, RT_CHUNK_PAGES + 128);
	free_pages(3 * RT_CHUNK_PAGES, 3 * RT_CHUNK_PAGES + 64);
	while ((n = release_one(64 << 10, true)) != 0) {
		unsigned low = 0;

		all += n;
		while (!is_scavenged(low))
			low++;
		ck_assert_uint_lt(low, top);
		top = low;
	}
	ck_assert_uint_eq(all, 3 * 64 << RT_PAGE_SHIFT);
	ck_assert_uint_eq(heapgauge_sum(HEAPGAUGE_FREE), 0);
	expect_contents();
}

// A range that would break a huge page takes all of it, if all of it is free.
TEST(a_huge_page_is_released_whole, .n = RT_ARRAY_LEN(page_sizes))
{
	begin(_i);
	free_pages(RT_CHUNK_PAGES, 2 * RT_CHUNK_PAGES);
	ck_assert_uint_eq(release_one(64 << 10, true), HUGE_BYTES);
	ck_assert_uint_eq(release_one(64 << 10, true), HUGE_BYTES);
	ck_assert_uint_eq(release_one(64 << 10, true), 0);
}

TEST(a_broken_huge_page_is_released_by_the_piece, .n = RT_ARRAY_LEN(page_sizes))
{
	begin(_i);
	free_pages(RT_CHUNK_PAGES + 256, RT_CHUNK_PAGES + 300);
	free_pages(RT_CHUNK_PAGES + 304, 2 * RT_CHUNK_PAGES);
	ck_assert_uint_eq(release_one(64 << 10, true), 64 << 10);
	ck_assert_uint_eq(release_one(128 << 10, true), 128 << 10);
	expect_contents();
}

// A request that is large enough releases a whole chunk at once, and no more.
TEST(a_range_stays_in_its_chunk, .n = RT_ARRAY_LEN(page_sizes))
{
	begin(_i);
	free_pages(0, PAGES);
	for (int chunk = 0; chunk < CHUNKS; chunk++)
		ck_assert_uint_eq(release_one(UINT64_MAX, true), RT_CHUNK_SIZE);
	ck_assert_uint_eq(release_one(UINT64_MAX, true), 0);
	ck_assert_uint_eq(heapgauge_sum(HEAPGAUGE_FREE), 0);
	ck_assert_uint_eq(heapgauge_sum(HEAPGAUGE_RELEASED),
			  (uint64_t)PAGES << RT_PAGE_SHIFT);
}

// Unless forced, a release takes no pages of a chunk that is nearly full, and
// no pages that were freed in the same cycle.
TEST(nearly_full_chunks_are_left_alone_unless_forced,
     .n = RT_ARRAY_LEN(page_sizes))
{
	begin(_i);
	free_pages(0, 16);				 // 496 in use
	free_pages(RT_CHUNK_PAGES, RT_CHUNK_PAGES + 17); // 495
	ck_assert_uint_eq(release_one(RT_CHUNK_SIZE, false), 0);
	scavindex_next_cycle(&mheap.pages.scav);
	scavindex_next_cycle(&mheap.pages.scav);
	ck_assert_uint_eq(release_one(RT_CHUNK_SIZE, false),
			  base_align_down(17, phys) << RT_PAGE_SHIFT);
	ck_assert_uint_eq(release_one(RT_CHUNK_SIZE, false), 0);
	ck_assert_uint_eq(release_one(RT_CHUNK_SIZE, true),
			  16 << RT_PAGE_SHIFT);
}

TEST(released_pages_come_back_zero_and_need_no_clearing,
     .n = RT_ARRAY_LEN(page_sizes))
{
	struct mspan *s;

	begin(_i);
	free_pages(0, 64);
	while (release_one(RT_CHUNK_SIZE, true) != 0)
		;
	// All pages of the first span are scavenged, some of the second, none
	// of the third.
	s = mheap_alloc_large(NULL, NULL, KIND_NOSCAN, 32 << RT_PAGE_SHIFT);
	ck_assert_uint_eq(s->base, arena.base);
	ck_assert_uint_eq(s->needzero, 0);
	for (unsigned page = 0; page < 32; page++)
		ck_assert(page_reads(page, 0));
	expect_sums();
	free_pages(64, 80); // not released
	s = mheap_alloc_large(NULL, NULL, KIND_NOSCAN, 48 << RT_PAGE_SHIFT);
	ck_assert_uint_eq(s->base, arena_page_address(32));
	ck_assert_uint_eq(s->needzero, 1);
	expect_sums();
	free_pages(80, 96);
	s = mheap_alloc_small(NULL, NULL, spanclass_make(5, KIND_WORDS));
	ck_assert_uint_eq(s->base, arena_page_address(80));
	ck_assert_uint_eq(s->needzero, 1);
	expect_sums();
}

TEST(a_refused_release_changes_nothing_and_ends, .n = RT_ARRAY_LEN(page_sizes))
{
	struct heapstats_totals before, after;
	struct gauges gauges_before;

	begin(_i);
	free_pages(0, 256);
	before = stopped_totals();
	gauges_before = gauges;
	fault_fail(OSCALL_RELEASE, 1, UINT64_MAX, EINVAL);
	for (int i = 0; i < 3; i++)
		ck_assert_uint_eq(release_one(1 << 20, true), 0);
	ck_assert_uint_eq(fault_failed(OSCALL_RELEASE), 3);
	after = stopped_totals();
	ck_assert_mem_eq(&after, &before, sizeof before);
	ck_assert_mem_eq(&gauges, &gauges_before, sizeof gauges);
	for (unsigned page = 0; page < 256; page++)
		ck_assert(page_reads(page, 0x5c));
	// Later the release succeeds, and finds every free page.
	fault_fail(OSCALL_RELEASE, 1, 0, 0);
	while (release_one(1 << 20, true) != 0)
		;
	ck_assert_uint_eq(heapgauge_sum(HEAPGAUGE_FREE), 0);
	expect_contents();
}

// pass_all makes a pass over the heap and returns the bytes released.  The
// system refuses the first nrefused releases.
static uint64_t pass_all(uint64_t nrefused)
{
	struct scavenge_pass pass = scavenge_begin(true);
	uint64_t bytes, sum = 0;

	fault_fail(OSCALL_RELEASE, 1, nrefused, EINVAL);
	while ((bytes = scavenge_range(NULL, &pass, 1 << 20)) != 0)
		sum += bytes;
	expect_sums();
	return sum;
}

// If the system refuses to release a chunk, as it does where the host has
// locked memory, other chunks are still released.
TEST(what_is_refused_does_not_keep_the_rest, .n = RT_ARRAY_LEN(page_sizes))
{
	begin(_i);
	free_pages(0, PAGES);
	ck_assert_uint_eq(pass_all(1), (CHUNKS - 1) * RT_CHUNK_SIZE);
	ck_assert(!is_scavenged(PAGES - 1) && is_scavenged(0));
	// The next pass asks again.
	ck_assert_uint_eq(pass_all(UINT64_MAX), 0);
	ck_assert_uint_eq(fault_failed(OSCALL_RELEASE), 1);
	ck_assert_uint_eq(pass_all(0), RT_CHUNK_SIZE);
	ck_assert_uint_eq(heapgauge_sum(HEAPGAUGE_FREE), 0);
}

// is_resident asks the system whether memory is behind a page.
static bool is_resident(unsigned page)
{
	unsigned char vec[RT_PAGE_SIZE / 4096] = {0};

	ck_assert_int_eq(
	    mincore((void *)arena_page_address(page), RT_PAGE_SIZE, vec), 0);
	return vec[0] & 1;
}

TEST(the_memory_is_really_gone)
{
	begin(0);
	free_pages(512, 700);
	ck_assert(is_resident(600));
	while (release_one(1 << 20, true) != 0)
		;
	for (unsigned page = 0; page < PAGES; page++)
		ck_assert_int_eq(is_resident(page), span_at[page] != NULL);
}

// resident counts the system's pages with memory that are wholly in the n bytes
// from p on.
static unsigned resident(const void *p, size_t n)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	uintptr_t lo = base_align_up((uintptr_t)p, page);
	uintptr_t hi = base_align_down((uintptr_t)p + n, page);
	unsigned sum = 0;

	for (; lo < hi; lo += page) {
		unsigned char here = 0;

		ck_assert_int_eq(mincore((void *)lo, page, &here), 0);
		sum += here & 1;
	}
	return sum;
}

enum {
	LINES_BYTES = RT_CHUNK_PAGES * RT_PAGE_WORDS * sizeof(struct linewords),
	SPANS_BYTES = RT_CHUNK_PAGES * sizeof(atomic_ptr),
};

static unsigned lines_resident(uint32_t chunk)
{
	return resident(arena_lines(chunk * RT_CHUNK_PAGES), LINES_BYTES);
}

static unsigned spans_resident(uint32_t chunk)
{
	return resident(&arena.spans[chunk * RT_CHUNK_PAGES], SPANS_BYTES);
}

static void expect_tables(bool kept)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	for (uint32_t chunk = 0; chunk < CHUNKS; chunk++) {
		bool is_kept = kept || chunk != 1;

		ck_assert_uint_eq(lines_resident(chunk),
				  is_kept ? LINES_BYTES / page : 0);
		// Where pages are large, this part of the table is less than a
		// page.
		if (base_max(page, sysmem_page_size()) <= SPANS_BYTES)
			ck_assert_uint_eq(spans_resident(chunk),
					  is_kept ? SPANS_BYTES / page : 0);
	}
}

// As if every page had had objects.
static void touch_tables(void)
{
	memset(arena_lines(0), 0, CHUNKS * LINES_BYTES);
}

// release_tables releases the tables of all chunks, and returns how many calls
// to the system that took.
static uint64_t release_tables(void)
{
	uint32_t chunk = 0;

	fault_fail(OSCALL_RELEASE, 1, 0, 0); // counts from 0
	while (scavenge_tables(&chunk))
		;
	return fault_count(OSCALL_RELEASE);
}

// Chunk 1 is free as a whole; one page of chunk 2 is in use.
TEST(so_are_the_tables_of_free_chunks, .n = RT_ARRAY_LEN(page_sizes))
{
	uint32_t chunk = 0;
	struct mspan *s;

	begin(_i);
	touch_tables();
	free_pages(RT_CHUNK_PAGES, 3 * RT_CHUNK_PAGES - 1);
	ck_assert_uint_eq(release_tables(), 0); // no page is released yet
	while (release_one(RT_CHUNK_SIZE, true) != 0)
		;
	fault_fail(OSCALL_RELEASE, 1, UINT64_MAX, ENOMEM);
	ck_assert(scavenge_tables(&chunk));
	ck_assert_uint_eq(chunk, 2);
	ck_assert(!scavenge_tables(&chunk));
	ck_assert_uint_eq(chunk, mheap.pages.nchunks);
	expect_tables(true);
	ck_assert_uint_ne(release_tables(), 0);
	expect_tables(false);
	// Once is enough, until a page of the chunk is used again.
	ck_assert_uint_eq(release_tables(), 0);
	s = mheap_alloc_manual(NULL, phys, MSPAN_WORK);
	ck_assert_ptr_nonnull(s);
	ck_assert_uint_eq(mspan_page(s), RT_CHUNK_PAGES);
	touch_tables();
	mheap_free_manual(NULL, s);
	while (release_one(RT_CHUNK_SIZE, true) != 0)
		;
	ck_assert_uint_ne(release_tables(), 0);
	expect_tables(false);
	expect_sums();
	ck_assert_uint_eq(release_one(RT_CHUNK_SIZE, true), 0);
}

// is_left tells whether a whole physical page is free and has memory behind it.
// A physical page that was released in part, with another part in use since, is
// left as it is (as in Go).  Otherwise its scavenged part would be counted
// twice.
static bool is_left(unsigned page)
{
	unsigned lo = (unsigned)base_align_down(page, phys);

	for (unsigned k = lo; k < lo + phys; k++)
		if (is_scavenged(k))
			return false;
	return can_be_released(page);
}

// Random frees, releases and reuse.  When forced passes find nothing more, only
// parts of physical pages are left.
TEST(random_work_adds_up_and_forced_leaves_no_whole_page,
     .n = RT_ARRAY_LEN(page_sizes))
{
	struct rng r;

	begin(_i);
	rng_init(&r, __func__);
	for (int round = 0; round < ROUNDS; round++) {
		unsigned lo = (unsigned)rng_below(&r, PAGES);
		unsigned hi = (unsigned)base_min(PAGES, lo + rng_below(&r, 90));

		for (unsigned page = lo; page < hi; page++)
			if (span_at[page] && rng_below(&r, 8) != 0)
				free_page(page);
		if (rng_next(&r) % 2)
			scavindex_next_cycle(&mheap.pages.scav);
		release_one(1 + rng_below(&r, 1 << 19), rng_next(&r) % 2);
		for (uint64_t i = rng_below(&r, 40); i > 0; i--) {
			struct mspan *s =
			    mheap_alloc_manual(NULL, 1, MSPAN_WORK);

			if (!s || mspan_page(s) >= PAGES)
				break;
			memset((void *)s->base, 0x5c, RT_PAGE_SIZE);
			span_at[mspan_page(s)] = s;
		}
		expect_contents();
	}
	while (release_one(1 << 20, true) != 0)
		;
	for (unsigned page = 0; page < PAGES; page++)
		if (is_left(page))
			ck_abort_msg("page %u is left", page);
	expect_contents();
}

// ---- memory brought in ----

static unsigned lowest_scavenged(void)
{
	unsigned page = 0;

	while (page < PAGES && !is_scavenged(page))
		page++;
	return page;
}

// release_at_random frees and releases about a half of all pages.
static void release_at_random(struct rng *r)
{
	struct scavenge_pass pass = scavenge_begin(true);

	for (unsigned page = 0; page < PAGES;) {
		unsigned n = (unsigned)(1 + rng_below(r, 40));
		unsigned end = (unsigned)base_min(page + n, PAGES);

		if (rng_below(r, 2))
			free_pages(page, end);
		page = end;
	}
	while (scavenge_range(NULL, &pass, RT_CHUNK_SIZE) != 0)
		;
	ck_assert_uint_lt(lowest_scavenged(), PAGES);
}

// Each step brings in the lowest pages.  In the end all free pages have memory.
// Pages in use keep their contents.
TEST(what_was_released_is_brought_in_from_below, .n = RT_ARRAY_LEN(page_sizes))
{
	struct populate_pass pass;
	struct rng r;
	uint64_t n;

	rng_init(&r, "what_was_released_is_brought_in_from_below");
	begin(_i);
	if (!atomic_u32_load_relaxed(&mheap.populate)) {
		suite_skip("this kernel has no MADV_POPULATE_WRITE", NULL);
		return;
	}
	release_at_random(&r);
	pass = populate_begin();
	do {
		unsigned low = lowest_scavenged();

		n = populate_range(NULL, &pass);
		ck_assert_uint_le(n, POPULATE_STEP);
		ck_assert_uint_eq(n == 0, low == PAGES);
		for (unsigned k = 0; k < n >> RT_PAGE_SHIFT; k++)
			ck_assert(!is_scavenged(low + k));
		expect_sums();
	} while (n != 0);
	ck_assert(pass.over);
	ck_assert(!mheap.in_hand);
	ck_assert_uint_eq(heapgauge_sum(HEAPGAUGE_RELEASED), 0);
	expect_contents();
}

// Pages that the system refuses to bring in stay scavenged, and the system is
// not asked again.
TEST(what_is_not_brought_in_stays_released)
{
	struct populate_pass pass;
	uint64_t before;

	begin(0);
	free_pages(10, 300);
	ck_assert_uint_ne(release_one(1 << 20, true), 0);
	before = heapgauge_sum(HEAPGAUGE_RELEASED);
	fault_fail(OSCALL_ADVISE, 1, 1, ENOMEM);
	pass = populate_begin();
	ck_assert_uint_eq(populate_range(NULL, &pass), 0);
	ck_assert(pass.over);
	ck_assert_uint_eq(atomic_u32_load_relaxed(&mheap.populate), 0);
	ck_assert_uint_eq(heapgauge_sum(HEAPGAUGE_RELEASED), before);
	expect_sums();
	expect_contents();
}

// A pass begins at the chunk of that page.  If no page is free, it begins
// behind the last chunk.
TEST(a_pass_begins_at_the_lowest_free_page)
{
	begin(0);
	ck_assert_uint_eq(populate_begin().chunk, CHUNKS);
	free_page(2 * RT_CHUNK_PAGES + 7);
	ck_assert_uint_eq(populate_begin().chunk, 2);
	free_page(5);
	ck_assert_uint_eq(populate_begin().chunk, 0);
}
