// The walk sees every object once.  Verify finds what is wrong and nothing
// more.
#include "test/harness/heap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rt/rt.h>

#include "gc/mark/notices.h"
#include "gc/mark/overflow.h"
#include "gc/mark/sites.h"
#include "gc/stats/verify.h"
#include "runtime/os/gauge.h"
#include "runtime/world/cyclering.h"
#include "runtime/world/stoptable.h"
#include "runtime/spans/mcache.h"
#include "runtime/spans/mcentral.h"

enum { NOBJECTS = RT_TSAN || RT_ASAN ? 3000 : 20000 };

// The objects that the driver allocated and keeps.  Only these roots keep them:
// the thread is exact.
static void *roots[NOBJECTS];
static size_t asked[NOBJECTS];
static int kinds[NOBJECTS];
static struct rng rng;
static struct rt_verify verified;

static void begin(bool align8)
{
	rt_config c = heap_config(100);

	c.max_heap = 1 << 30;
	c.align8 = align8;
	heap_start_exact(c);
	must(rt_roots_add(roots, roots + NOBJECTS, RT_ROOT_EXACT));
}

static size_t random_size(void)
{
	switch (rng_below(&rng, 100)) {
	case 0:
		return 32761 + rng_below(&rng, 200000);
	case 1:
	case 2:
		return 1 + rng_below(&rng, 32760);
	case 3:
	case 4:
	case 5:
		return 1 + rng_below(&rng, 15);
	default:
		return 1 + rng_below(&rng, 300);
	}
}

static void allocate(unsigned i)
{
	asked[i] = random_size();
	kinds[i] = (int)rng_below(&rng, 2);
	roots[i] = rt_alloc_kind(kinds[i], asked[i]);
	ck_assert_ptr_nonnull(roots[i]);
}

static void healthy(const char *when)
{
	ck_assert_int_eq(rt_heap_verify(&verified), RT_OK);
	ck_assert_msg(verified.errors == 0 && verified.first[0] == '\0',
		      "%s: %s", when, verified.first);
}

// ---- the walk ----

struct seen {
	void *base;
	size_t size;
	int kind;
};

static struct seen walked[NOBJECTS], expected[NOBJECTS];
static unsigned nwalked, nexpected, stop_at;

static int note(void *obj, size_t size, int kind, void *arg)
{
	if (arg != &nwalked || nwalked == NOBJECTS)
		return RT_WALK_STOP;
	walked[nwalked++] = (struct seen){obj, size, kind};
	return nwalked == stop_at ? RT_WALK_STOP : 0;
}

static int by_base(const void *a, const void *b)
{
	uintptr_t x = (uintptr_t)((const struct seen *)a)->base;
	uintptr_t y = (uintptr_t)((const struct seen *)b)->base;

	return x < y ? -1 : x > y;
}

// expect_live lists what the driver keeps.  Combined objects in a slot count as
// one.
static void expect_live(void)
{
	unsigned n = 0;

	nexpected = 0;
	for (unsigned i = 0; i < NOBJECTS; i++)
		if (roots[i])
			expected[n++] = (struct seen){
			    rt_base(roots[i]), rt_size(roots[i]), kinds[i]};
	qsort(expected, n, sizeof expected[0], by_base);
	for (unsigned i = 0; i < n; i++)
		if (i == 0 || expected[i].base != expected[i - 1].base)
			expected[nexpected++] = expected[i];
}

static void walk(void)
{
	nwalked = 0;
	ck_assert_int_eq(rt_heap_walk(note, &nwalked), RT_OK);
	qsort(walked, nwalked, sizeof walked[0], by_base);
}

static void walk_equals_driver(void)
{
	unsigned wrong = 0;

	expect_live();
	walk();
	ck_assert_uint_eq(nwalked, nexpected);
	for (unsigned i = 0; i < nwalked; i++)
		wrong += walked[i].base != expected[i].base ||
			 walked[i].size != expected[i].size ||
			 walked[i].kind != expected[i].kind;
	ck_assert_uint_eq(wrong, 0);
}

static void drop_half(void)
{
	for (unsigned i = 0; i < NOBJECTS; i++)
		if (rng_below(&rng, 2))
			roots[i] = NULL;
	ck_assert_int_eq(rt_gc(), RT_OK);
}

static void fill_holes(void)
{
	for (unsigned i = 0; i < NOBJECTS; i++)
		if (!roots[i])
			allocate(i);
}

GROUP(walk, .timeout = 60);

TEST(walk_sees_what_the_driver_holds, .n = 2)
{
	rt_memstats m;

	rng_init(&rng, "walk_sees_what_the_driver_holds");
	begin(_i == 1);
	rt_set_gc_percent(-1, NULL);
	walk_equals_driver();
	for (int round = 0; round < 5; round++) {
		fill_holes();
		walk_equals_driver();
		drop_half();
		walk_equals_driver();
		rt_read_memstats(&m);
		ck_assert_uint_eq(m.heap_objects, nwalked);
		healthy("after a round");
		ck_assert_uint_eq(verified.objects, nwalked);
		ck_assert_uint_eq(verified.bytes, m.heap_alloc);
	}
}

TEST(walk_runs_in_the_own_stop)
{
	rng_init(&rng, "walk_runs_in_the_own_stop");
	begin(false);
	fill_holes();
	ck_assert_int_eq(rt_stop_the_world(RT_STOP_HOST), RT_OK);
	walk_equals_driver();
	walk_equals_driver();
	ck_assert_int_eq(rt_world_stopped(), 1);
	ck_assert_int_eq(rt_start_the_world(NULL), RT_OK);
	walk_equals_driver();
	ck_assert_int_eq(rt_world_stopped(), 0);
}

TEST(spans_without_objects_are_passed_by)
{
	rng_init(&rng, "spans_without_objects_are_passed_by");
	begin(false);
	fill_holes();
	ck_assert_ptr_nonnull(rt_stack_alloc(64 << 10));
	ck_assert_ptr_nonnull(mheap_alloc_manual(proc_self(), 3, MSPAN_WORK));
	walk_equals_driver();
	healthy("with spans of every use");
	ck_assert_uint_eq(verified.objects, nwalked);
}

TEST(walk_ends_when_told)
{
	static const unsigned stops[] = {1, 2, 3, 100, 1000};

	rng_init(&rng, "walk_ends_when_told");
	begin(false);
	fill_holes();
	for (size_t i = 0; i < RT_ARRAY_LEN(stops); i++) {
		stop_at = stops[i];
		walk();
		ck_assert_uint_eq(nwalked, stops[i]);
	}
	stop_at = 0;
	walk_equals_driver();
}

static unsigned inside_wrong;

// Inside a walk, a heap can be read and verified as outside.
static int verify_inside(void *obj, size_t size, int kind, void *arg)
{
	rt_memstats m;

	(void)obj;
	(void)size;
	(void)kind;
	(void)arg;
	inside_wrong +=
	    rt_heap_verify(&verified) != RT_OK || verified.errors != 0;
	inside_wrong +=
	    rt_read_memstats(&m) != RT_OK || m.heap_objects != verified.objects;
	return RT_WALK_STOP;
}

TEST(a_walk_may_verify_and_read)
{
	rng_init(&rng, "a_walk_may_verify_and_read");
	begin(false);
	fill_holes();
	ck_assert_int_eq(rt_heap_walk(verify_inside, NULL), RT_OK);
	ck_assert_uint_eq(inside_wrong, 0);
	walk_equals_driver();
}

// ---- a healthy heap ----

GROUP(healthy, .timeout = 60);

TEST(nothing_is_wrong_after_any_operation, .n = 2)
{
	void *stacks[8];
	rt_memstats m;

	rng_init(&rng, "nothing_is_wrong_after_any_operation");
	begin(_i == 1);
	healthy("after rt_init");
	for (unsigned i = 0; i < 500; i++) {
		allocate(i);
		if (i % 50 == 0)
			healthy("after an allocation");
	}
	for (unsigned i = 0; i < 8; i++) {
		stacks[i] = rt_stack_alloc(2048u << i);
		healthy("after rt_stack_alloc");
	}
	fill_holes();
	healthy("after many allocations");
	for (unsigned i = 0; i < 4; i++)
		rt_stack_free(stacks[i], 2048u << i);
	healthy("after rt_stack_free");
	for (int round = 0; round < 3; round++) {
		drop_half();
		healthy("after a collection");
		fill_holes();
		healthy("after holes were filled");
		rt_free_os_memory();
		healthy("after rt_free_os_memory");
	}
	for (unsigned i = 4; i < 8; i++)
		rt_stack_free(stacks[i], 2048u << i);
	memset(roots, 0, sizeof roots);
	rt_free_os_memory();
	healthy("after all was dropped");
	ck_assert_uint_eq(verified.objects, 0);
	ck_assert_uint_eq(verified.bytes, 0);
	rt_read_memstats(&m);
	ck_assert_uint_eq(m.heap_inuse + m.stack_inuse, 0);
	rt_thread_detach();
	rt_thread_attach(0);
	healthy("after another attachment");
	ck_assert_int_eq(rt_alloc_kind(RT_WORDS, (size_t)2 << 30) == NULL, 1);
	healthy("after a refused allocation");
}

// ---- corruptions ----

// The targets of the corruptions.
static struct {
	struct mspan *partial; // small, in its set, with a free slot
	struct mspan *full;    // small, no free slot
	struct mspan *wide;    // small, several pages
	struct mspan *large;
	struct mspan *stack;
	struct mspan *eight; // of 8-byte objects, with a bitmap8
	uint64_t free_page;
	struct mheap_cache *cache;
} c;

static struct mspan *span_of(const void *p)
{
	return arena_span(arena_offset((uintptr_t)p) >> RT_PAGE_SHIFT);
}

static bool page_is_free(uint64_t page)
{
	const struct pallocdata *d =
	    pagealloc_chunk(&mheap.pages, (uint32_t)(page / RT_CHUNK_PAGES));

	return !arena_span(page) &&
	       !pallocbits_get(&d->alloc, page % RT_CHUNK_PAGES);
}

static void prepare(void)
{
	unsigned n = 0;

	begin(true);
	for (unsigned i = 0; i < 8192 / 64; i++)
		roots[n++] = rt_alloc(64);
	c.full = span_of(roots[0]);
	for (unsigned i = 0; i < 20; i++)
		roots[n++] = rt_alloc(64);
	c.partial = span_of(roots[n - 1]);
	for (unsigned i = 0; i < 5; i++)
		roots[n++] = rt_alloc(8);
	c.eight = span_of(roots[n - 1]);
	for (unsigned i = 0; i < 3; i++)
		roots[n++] = rt_alloc(9472);
	c.wide = span_of(roots[n - 1]);
	roots[n++] = rt_alloc_noscan(100001);
	c.large = span_of(roots[n - 1]);
	c.stack = span_of(rt_stack_alloc(64 << 10));
	rt_gc();
	roots[n++] = rt_alloc(5000); // another page cache
	healthy("before");
	ck_assert_uint_eq(c.full->alloc_count, c.full->nelems);
	ck_assert_uint_lt(c.partial->alloc_count, c.partial->nelems);
	ck_assert_uint_gt(c.wide->npages, 1);
	ck_assert_uint_eq(c.eight->elemsize, 8);
	ck_assert_int_eq(c.stack->use, MSPAN_STACK);
	c.cache = &rt_thread_tls->mc->heap;
	ck_assert_uint_gt(c.cache->nspans, 0);
	ck_assert(c.cache->pages.cache != 0);
	while (!page_is_free(c.free_page))
		c.free_page++;
}

// A corruption of some bytes.
struct patch {
	void *at;
	size_t size;
	uint64_t value;
};

#define PATCH(lvalue, v)                                                       \
	((struct patch){(void *)&(lvalue), sizeof(lvalue), (uint64_t)(v)})

static atomic_u32 *word_of(const struct mspan *s, unsigned page)
{
	return &arena.pagewords[mspan_page(s) + page];
}

static struct patch flip_word(const struct mspan *s, unsigned page,
			      uint32_t bits)
{
	atomic_u32 *w = word_of(s, page);

	return PATCH(*w, atomic_u32_load_relaxed(w) ^ bits);
}

static struct patch flip(atomic_u64 *w, uint64_t bits)
{
	return PATCH(*w, atomic_u64_load_relaxed(w) ^ bits);
}

static unsigned alloc_line(void)
{
	return epoch_alloc_line(epoch_sweepgen());
}

static struct patch flip_line(uint64_t page, unsigned line, unsigned w,
			      uint64_t bits)
{
	return flip(&arena_lines(page)[w].line[line], bits);
}

static struct pallocdata *data_of(uint64_t page)
{
	return pagealloc_chunk(&mheap.pages, (uint32_t)(page / RT_CHUNK_PAGES));
}

static struct patch flip_page(struct pallocbits *b, uint64_t page)
{
	uint64_t *w = &b->word[page % RT_CHUNK_PAGES / 64];

	return PATCH(*w, *w ^ UINT64_C(1) << page % 64);
}

static struct patch flip_alloc(uint64_t page)
{
	return flip_page(&data_of(page)->alloc, page);
}

static struct patch flip_scavenged(uint64_t page)
{
	return flip_page(&data_of(page)->scavenged, page);
}

static uint64_t first_cached_page(void)
{
	return c.cache->pages.base + bits_ctz(c.cache->pages.cache);
}

// if_scavenged returns yes if the first cached page is scavenged, which depends
// on what the build has allocated before.  Otherwise it returns no.
static const char *if_scavenged(const char *yes, const char *no)
{
	return c.cache->pages.scav >> bits_ctz(c.cache->pages.cache) & 1 ? yes
									 : no;
}

// more makes a gauge too large by a page.
static struct patch more(atomic_u64 *gauge)
{
	return PATCH(*gauge, gauge_load(gauge) + 8192);
}

// found verifies a corrupt heap in the caller's own stop, and expects a text.
static void found(const char *name, const char *text)
{
	memset(&verified, 0x5a, sizeof verified);
	ck_assert_int_eq(rt_heap_verify(&verified), RT_OK);
	ck_assert_msg(verified.errors >= 1, "%s: not found", name);
	ck_assert_ptr_nonnull(memchr(verified.first, 0, sizeof verified.first));
	ck_assert_msg(strncmp(verified.first, text, strlen(text)) == 0,
		      "%s: %s", name, verified.first);
}

GROUP(corrupt);

// CORRUPTION tests that a corruption is found, and what verify says of it.
// After the repair the heap is healthy, so verify itself changes nothing.
#define CORRUPTION(name, text, patch)                                          \
	TEST(name##_is_found)                                                  \
	{                                                                      \
		prepare();                                                     \
		ck_assert_int_eq(rt_stop_the_world(RT_STOP_HOST), RT_OK);      \
		corrupt(#name, text, patch);                                   \
	}

static void corrupt(const char *name, const char *text, struct patch p)
{
	uint64_t old = 0;

	memcpy(&old, p.at, p.size);
	ck_assert(memcmp(&old, &p.value, p.size) != 0);
	memcpy(p.at, &p.value, p.size);
	found(name, text);
	ck_assert(memcmp(p.at, &p.value, p.size) == 0);
	memcpy(p.at, &old, p.size);
	healthy("repaired");
	ck_assert_int_eq(rt_start_the_world(NULL), RT_OK);
	healthy("later");
}

CORRUPTION(word_class, "pageword has the wrong class or kind",
	   flip_word(c.partial, 0, 1))
CORRUPTION(word_kind, "pageword has the wrong class or kind",
	   flip_word(c.partial, 0, 1 << PAGEWORD_KIND_SHIFT))
CORRUPTION(word_state, "pageword has the wrong state",
	   flip_word(c.full, 0, PAGEWORD_MANUAL << PAGEWORD_STATE_SHIFT))
CORRUPTION(word_setting_up, "pageword has the wrong state",
	   flip_word(c.full, 0,
		     (PAGEWORD_HEAP ^ PAGEWORD_SETTING_UP)
			 << PAGEWORD_STATE_SHIFT))
CORRUPTION(word_none, "pageword has the wrong state",
	   PATCH(*word_of(c.full, 0), 0))
CORRUPTION(word_place, "pageword has the wrong place",
	   flip_word(c.wide, 1, 2 << PAGEWORD_PLACE_SHIFT))
CORRUPTION(word_large_place, "pageword has the wrong place",
	   flip_word(c.large, 7, 1 << PAGEWORD_PLACE_SHIFT))
CORRUPTION(word_stack_class, "pageword has the wrong class or kind",
	   flip_word(c.stack, 1, 5))
CORRUPTION(word_free, "free page has a pageword",
	   PATCH(arena.pagewords[c.free_page],
		 pageword_make(5, 0, PAGEWORD_NONE)))
CORRUPTION(table_first, "free page has a bit",
	   PATCH(arena.spans[mspan_page(c.partial)], 0))
CORRUPTION(table_second, "span table leads to another span",
	   PATCH(arena.spans[mspan_page(c.wide) + 1], 0))
CORRUPTION(table_other, "span table leads into a span",
	   PATCH(arena.spans[mspan_page(c.partial)], (uintptr_t)c.full))
CORRUPTION(table_free, "span table leads into a span",
	   PATCH(arena.spans[c.free_page], (uintptr_t)c.full))
CORRUPTION(alloc_bit_free_page, "free page has a bit",
	   flip_line(c.free_page, alloc_line(), 0, 1))
CORRUPTION(mark_bit_free_page, "free page has a bit",
	   flip_line(c.free_page, alloc_line() ^ 1, 7, UINT64_C(1) << 63))
CORRUPTION(mark_bit_swept, "swept span has a mark bit",
	   flip_line(mspan_page(c.full), alloc_line() ^ 1, 0, 1))
CORRUPTION(mark_bit_large, "swept span has a mark bit",
	   flip_line(mspan_page(c.large), alloc_line() ^ 1, 0, 1))
CORRUPTION(alloc_bit_lost, "alloc_count is not the number of alloc bits",
	   flip_line(mspan_page(c.full), alloc_line(), 0, 1))
CORRUPTION(alloc_bit_large_lost, "alloc_count is not the number of alloc bits",
	   flip_line(mspan_page(c.large), alloc_line(), 0, 1))
CORRUPTION(alloc_bit_added, "alloc_count is not the number of alloc bits",
	   flip_line(mspan_page(c.partial), alloc_line(), 7, UINT64_C(1) << 60))
CORRUPTION(bit_inside, "alloc_count is not the number of alloc bits",
	   flip_line(mspan_page(c.full), alloc_line(), 0, 2))
CORRUPTION(bit_inside_large, "bit is set where the span has no slots",
	   flip_line(mspan_page(c.large) + 3, alloc_line(), 2, 1))
CORRUPTION(bit_on_stack, "bit is set where the span has no slots",
	   flip_line(mspan_page(c.stack) + 1, alloc_line(), 0, 1))
CORRUPTION(bit_on_eight, "bit is set where the span has no slots",
	   flip_line(mspan_page(c.eight), alloc_line(), 0, 1))
CORRUPTION(eight_bit_lost, "alloc_count is not the number of alloc bits",
	   flip(mspan_lineword(c.eight, alloc_line(), 0), 1))
CORRUPTION(count_more, "alloc_count is not the number of alloc bits",
	   PATCH(c.partial->alloc_count, c.partial->alloc_count + 1))
CORRUPTION(count_too_many, "span has more objects than slots",
	   PATCH(c.full->alloc_count, c.full->nelems + 1))
CORRUPTION(count_large, "large span has no object",
	   PATCH(c.large->alloc_count, 0))
CORRUPTION(sweepgen_unswept, "alloc_count is not the number of alloc bits",
	   PATCH(c.partial->sweepgen, epoch_sweepgen() - 2))
CORRUPTION(span_base_page, "span table leads into a span",
	   PATCH(c.full->base, c.full->base + RT_PAGE_SIZE))
CORRUPTION(span_npages, "span does not fit its class", PATCH(c.full->npages, 2))
CORRUPTION(span_npages_huge, "span is outside of the heap",
	   PATCH(c.large->npages, UINT64_C(1) << 60))
CORRUPTION(span_npages_zero, "span table leads into a span",
	   PATCH(c.full->npages, 0))
CORRUPTION(span_limit, "span has the wrong limit for its class",
	   PATCH(c.full->limit, c.full->base))
CORRUPTION(span_limit_large, "limit of a large object is not in its last page",
	   PATCH(c.large->limit, c.large->base + c.large->elemsize + 1))
CORRUPTION(span_limit_large_early,
	   "limit of a large object is not in its last page",
	   PATCH(c.large->limit, c.large->base + RT_PAGE_SIZE))
CORRUPTION(span_elemsize, "span does not fit its class",
	   PATCH(c.full->elemsize, 63))
CORRUPTION(span_elemsize_large, "large object does not fill its span",
	   PATCH(c.large->elemsize, 100001))
CORRUPTION(span_divmagic, "span does not fit its class",
	   PATCH(c.partial->divmagic, c.partial->divmagic + 1))
CORRUPTION(span_nelems, "span does not fit its class",
	   PATCH(c.partial->nelems, c.partial->nelems - 1))
CORRUPTION(span_class, "span has an unknown use or class",
	   PATCH(c.partial->spanclass, c.partial->spanclass + 1))
CORRUPTION(span_class_wild, "span has an unknown use or class",
	   PATCH(c.partial->spanclass, 0xffff))
CORRUPTION(span_kind, "pageword has the wrong class or kind",
	   PATCH(c.full->spanclass,
		 spanclass_make(spanclass_size(c.full->spanclass),
				KIND_NOSCAN)))
CORRUPTION(span_use_free, "mspan is free or has no pages",
	   PATCH(c.full->use, MSPAN_FREE))
CORRUPTION(span_use_stack, "pageword has the wrong state",
	   PATCH(c.full->use, MSPAN_STACK))
CORRUPTION(span_bits_null, "span has the wrong bits", PATCH(c.full->lines, 0))
CORRUPTION(span_bits_other, "span has the wrong bits",
	   PATCH(c.full->lines, (uintptr_t)mspan_lines(c.partial)))
CORRUPTION(span_bits_eight, "span has the wrong bits",
	   PATCH(c.eight->lines, (uintptr_t)arena_lines(mspan_page(c.eight))))
CORRUPTION(span_cached, "span is cached but in no cache",
	   PATCH(c.partial->cached, 1))
CORRUPTION(span_cached_full, "span is cached but in no cache",
	   PATCH(c.full->cached, 1))
CORRUPTION(page_bit_lost, "page of a span is free",
	   flip_alloc(mspan_page(c.full)))
CORRUPTION(page_bit_added, "page is both allocated and scavenged",
	   flip_alloc(c.free_page))
CORRUPTION(scavenged_free, "heap_released is not the scavenged pages",
	   flip_scavenged(c.free_page))
CORRUPTION(taken,
	   "pages that the limit counts are not those of spans and caches",
	   PATCH(mheap.taken, mheap.taken + 1))
CORRUPTION(nchunks_less, "page allocator and heap have different lengths",
	   PATCH(mheap.pages.nchunks, mheap.pages.nchunks - 1))
CORRUPTION(nchunks_wild, "page allocator and heap have different lengths",
	   PATCH(mheap.pages.nchunks, UINT32_MAX))
CORRUPTION(heap_length, "page allocator and heap have different lengths",
	   PATCH(arena.used, arena_used() - RT_CHUNK_SIZE))
CORRUPTION(heap_length_wild, "heap is not whole chunks",
	   PATCH(arena.used, UINT64_MAX))
CORRUPTION(
    cache_page_lost,
    if_scavenged("page cache has a scavenged page that it does not cache",
		 "free pages and spans do not add up"),
    PATCH(c.cache->pages.cache,
	  c.cache->pages.cache &(c.cache->pages.cache - 1)))
CORRUPTION(cache_page_free, "cached page is free or in a span",
	   flip_alloc(first_cached_page()))
CORRUPTION(cache_page_of_span, "page cache begins inside a block",
	   PATCH(c.cache->pages.base, mspan_page(c.large)))
CORRUPTION(cache_scav,
	   if_scavenged("heap_released is not the scavenged pages",
			"page cache has a scavenged page that is not zero"),
	   PATCH(c.cache->pages.scav,
		 c.cache->pages.scav ^
		     (c.cache->pages.cache & -c.cache->pages.cache)))
CORRUPTION(cache_spans, "mspan_inuse is not the spans",
	   PATCH(c.cache->nspans, c.cache->nspans - 1))
CORRUPTION(overflow_bit, "mark overflow is set outside of marking",
	   PATCH(arena.overflow[0], 2))
CORRUPTION(overflow_raised, "mark overflow is announced outside of marking",
	   PATCH(overflow.raised, 1))
CORRUPTION(overflow_left, "mark overflow is left outside of marking",
	   PATCH(overflow.left, 1))
CORRUPTION(record_begun, "record of a collection is written in part",
	   PATCH(cyclering.begun, 77))
CORRUPTION(stop_begun, "stop is recorded in part",
	   PATCH(stoptable.row[RT_STOP_FORK].begun, 77))
CORRUPTION(notices_wild, "more notices than there is room for",
	   PATCH(notices.n, UINT32_MAX))
CORRUPTION(sites_wild, "table of sites has more than it has room",
	   PATCH(sites.n, 1))
CORRUPTION(heapgauge_IN_USE, "heap_in_use is not the heap spans",
	   more(&heapgauges.no_p[HEAPGAUGE_IN_USE]))
CORRUPTION(heapgauge_FREE, "heap_free is not the free pages",
	   more(&heapgauges.no_p[HEAPGAUGE_FREE]))
CORRUPTION(heapgauge_RELEASED, "heap_released is not the scavenged pages",
	   more(&heapgauges.no_p[HEAPGAUGE_RELEASED]))
CORRUPTION(heapgauge_TOTAL_ALLOC,
	   "total_alloc - total_free is not the bytes of objects",
	   more(&heapgauges.no_p[HEAPGAUGE_TOTAL_ALLOC]))
CORRUPTION(heapgauge_TOTAL_FREE,
	   "total_alloc - total_free is not the bytes of objects",
	   more(&heapgauges.no_p[HEAPGAUGE_TOTAL_FREE]))
CORRUPTION(heapgauge_PAGES_IN_USE, "pages_in_use is not the heap spans",
	   more(&heapgauges.no_p[HEAPGAUGE_PAGES_IN_USE]))
CORRUPTION(gauge_heap_live, "heap_live is not the bytes of objects",
	   more(&gauges.heap_live))
CORRUPTION(gauge_heap_dead, "heap_live is not the bytes of objects",
	   more(&gauges.heap_dead))
CORRUPTION(gauge_mapped_ready, "mapped_ready is not what is mapped",
	   more(&gauges.mapped_ready))
CORRUPTION(gauge_mspan_sys, "mapped_ready is not what is mapped",
	   more(&gauges.mspan_sys))
CORRUPTION(gauge_mcache_sys, "mapped_ready is not what is mapped",
	   more(&gauges.mcache_sys))
CORRUPTION(gauge_gc_misc_sys, "mapped_ready is not what is mapped",
	   more(&gauges.gc_misc_sys))
CORRUPTION(gauge_other_sys, "mapped_ready is not what is mapped",
	   more(&gauges.other_sys))
CORRUPTION(gauge_mcache_inuse, "mcache_inuse is more than mcache_sys",
	   more(&gauges.mcache_inuse))

// is_flushed calls verify_heap, because rt_heap_verify flushes the caches
// first.
static bool is_flushed(void)
{
	verify_heap(&verified);
	if (verified.errors == 0)
		return true;
	ck_assert_ptr_nonnull(strstr(verified.first, "mcache was not flushed"));
	return false;
}

TEST(caches_that_were_not_flushed_are_found)
{
	struct rt_mcache *mc;

	prepare();
	mc = rt_thread_tls->mc;
	ck_assert_int_eq(rt_stop_the_world(RT_STOP_HOST), RT_OK);
	healthy("flushed");
	ck_assert(is_flushed());
	mc->nonempty[MCACHE_WORDS - 1] = 1;
	ck_assert(!is_flushed());
	mc->nonempty[MCACHE_WORDS - 1] = 0;
	mc->tiny = 16;
	ck_assert(!is_flushed());
	mc->tiny = 0;
	mc->live = -1;
	ck_assert(!is_flushed());
	mc->live = 0;
	ck_assert(is_flushed());
}

TEST(wrong_spans_in_sets_are_found)
{
	char text[80];
	spanclass sc;
	struct mspan *s;

	prepare();
	sc = c.partial->spanclass;
	ck_assert_int_eq(rt_stop_the_world(RT_STOP_HOST), RT_OK);
	s = mcentral_pop(sc);
	ck_assert_ptr_nonnull(s);
	found("a span is in no set", "spans with free slots that are in a set");
	c.full->alloc_count--; // debug builds look at what is pushed
	mcentral_push(c.full);
	c.full->alloc_count++;
	found("a full span in a set", "span in a set has no free slot");
	c.full->alloc_count--;
	ck_assert_ptr_eq(mcentral_pop(sc), c.full);
	c.full->alloc_count++;
	mcentral_push(s);
	healthy("repaired");
	mcentral_push(c.wide);
	snprintf(text, sizeof text, "lock-free stack has no end at %#lx",
		 (unsigned long)c.wide->base);
	found("a span is twice in a set", text);
}

// Each statistic of heapstats is made wrong by one, and verify finds it.
TEST(wrong_heapstats_are_found)
{
	struct rt_proc *p;
	struct heapstats_delta *d;
	const struct {
		const char *name;
		const char *text;
		size_t offset;
	} fields[] = {
#define FIELD(f, text) {#f, text, offsetof(struct heapstats_delta, f)}
	    FIELD(committed, "committed and released are not the heap"),
	    FIELD(released, "released differs in heapstats and heapgauge"),
	    FIELD(in_heap, "in_heap is not the heap spans"),
	    FIELD(in_stacks, "in_stacks is not the stack spans"),
	    FIELD(in_work_bufs,
		  "in_work_bufs is not the spans of work buffers"),
	    FIELD(large_alloc,
		  "large bytes in statistics are not those in spans"),
	    FIELD(large_alloc_count,
		  "large objects in statistics are not those in spans"),
	    FIELD(large_free,
		  "large bytes in statistics are not those in spans"),
	    FIELD(large_free_count,
		  "large objects in statistics are not those in spans"),
	    FIELD(small_alloc_count[6],
		  "small objects in statistics are not those in spans"),
	    FIELD(small_alloc_count[67],
		  "small objects in statistics are not those in spans"),
	    FIELD(small_free_count[1],
		  "small objects in statistics are not those in spans"),
	};

	prepare();
	p = proc_self();
	ck_assert_int_eq(rt_stop_the_world(RT_STOP_HOST), RT_OK);
	for (size_t i = 0; i < RT_ARRAY_LEN(fields); i++) {
		d = heapstats_acquire(p);
		heapstats_add((atomic_u64 *)((char *)d + fields[i].offset), 1);
		heapstats_release(p);
		found(fields[i].name, fields[i].text);
		d = heapstats_acquire(p);
		heapstats_add((atomic_u64 *)((char *)d + fields[i].offset),
			      UINT64_MAX);
		heapstats_release(p);
		healthy("repaired");
	}
}
