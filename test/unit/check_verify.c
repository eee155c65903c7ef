// The walk sees every object once.  Verify finds what is wrong and nothing
// more.
#include "test/harness/heap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rt/rt.h>

#include "gc/stats/verify.h"
#include "runtime/os/gauge.h"
#include "runtime/spans/mcache.h"
#include "runtime/spans/mcentral.h"

enum { NOBJECTS = RT_TSAN || RT_ASAN ? 3000 : 20000 };

// What the driver allocated and keeps.  Only these roots keep it: the thread
// is exact.
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
	ck_assert_int_eq(rt_roots_add(roots, roots + NOBJECTS, RT_ROOT_EXACT),
			 RT_OK);
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

// expect_live makes the driver's list; combined objects count as one.
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

// Read and verified inside a walk, a heap is what it is outside.
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

// What there is to corrupt.
static struct {
	struct mspan *partial; // small, in its set, with a free slot
	struct mspan *full;    // small, no free slot
	struct mspan *wide;    // small, several pages
	struct mspan *large;
	struct mspan *stack;
	struct mspan *eight; // 8-byte objects, bits beside
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
	return &arena.words[mspan_page(s) + page];
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

// loop_of makes a node its own successor in its set.
static struct patch loop_of(struct lfnode *node)
{
	// The packed link of a node is what leads to it.
	static struct lfstack to_itself;

	lfstack_push(&to_itself, node);
	return PATCH(node->next, atomic_u64_load_relaxed(&to_itself.head));
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

static struct patch flip_summary(unsigned level)
{
	pallocsum *s = (pallocsum *)mheap.pages.sums[level].base;

	return PATCH(*s, *s ^ 1);
}

// The second half of a chunk's word begins with its pages in use.
static struct patch flip_scavindex(void)
{
	uint32_t *w = (uint32_t *)mheap.pages.scav.table.base + 1;

	return PATCH(*w, *w ^ 3);
}

static uint64_t first_cached_page(void)
{
	return c.cache->pages.base + bits_ctz(c.cache->pages.cache);
}

// more: the gauge is too large by a page.
static struct patch more(atomic_u64 *gauge)
{
	return PATCH(*gauge, gauge_load(gauge) + 8192);
}

// found verifies a corrupt heap in the caller's own stop.
static void found(const char *name)
{
	memset(&verified, 0x5a, sizeof verified);
	ck_assert_int_eq(rt_heap_verify(&verified), RT_OK);
	ck_assert_msg(verified.errors >= 1, "%s: not found", name);
	ck_assert_msg(verified.first[0] >= ' ' && verified.first[0] <= '~',
		      "%s: no text", name);
	ck_assert_ptr_nonnull(memchr(verified.first, 0, sizeof verified.first));
	fprintf(stderr, "%s: %s\n", name, verified.first);
}

GROUP(corrupt);

// CORRUPTION tests that a corruption is found.  Repaired, the heap is as
// before: verify itself changes nothing.
#define CORRUPTION(name, patch)                                                \
	TEST(name##_is_found)                                                  \
	{                                                                      \
		prepare();                                                     \
		ck_assert_int_eq(rt_stop_the_world(RT_STOP_HOST), RT_OK);      \
		corrupt(#name, patch);                                         \
	}

static void corrupt(const char *name, struct patch p)
{
	uint64_t old = 0;

	memcpy(&old, p.at, p.size);
	ck_assert(memcmp(&old, &p.value, p.size) != 0);
	memcpy(p.at, &p.value, p.size);
	found(name);
	ck_assert(memcmp(p.at, &p.value, p.size) == 0);
	memcpy(p.at, &old, p.size);
	healthy("repaired");
	ck_assert_int_eq(rt_start_the_world(NULL), RT_OK);
	healthy("later");
}

CORRUPTION(word_class, flip_word(c.partial, 0, 1))
CORRUPTION(word_kind, flip_word(c.partial, 0, 1 << PAGEWORD_KIND_SHIFT))
CORRUPTION(word_state,
	   flip_word(c.full, 0, PAGEWORD_MANUAL << PAGEWORD_STATE_SHIFT))
CORRUPTION(word_setting_up, flip_word(c.full, 0,
				      (PAGEWORD_HEAP ^ PAGEWORD_SETTING_UP)
					  << PAGEWORD_STATE_SHIFT))
CORRUPTION(word_none, PATCH(*word_of(c.full, 0), 0))
CORRUPTION(word_place, flip_word(c.wide, 1, 2 << PAGEWORD_PLACE_SHIFT))
CORRUPTION(word_large_place, flip_word(c.large, 7, 1 << PAGEWORD_PLACE_SHIFT))
CORRUPTION(word_stack_class, flip_word(c.stack, 1, 5))
CORRUPTION(word_free, PATCH(arena.words[c.free_page],
			    pageword_make(5, 0, PAGEWORD_NONE, 0)))
CORRUPTION(table_first, PATCH(arena.spans[mspan_page(c.partial)], 0))
CORRUPTION(table_second, PATCH(arena.spans[mspan_page(c.wide) + 1], 0))
CORRUPTION(table_other,
	   PATCH(arena.spans[mspan_page(c.partial)], (uintptr_t)c.full))
CORRUPTION(table_free, PATCH(arena.spans[c.free_page], (uintptr_t)c.full))
CORRUPTION(alloc_bit_free_page, flip_line(c.free_page, alloc_line(), 0, 1))
CORRUPTION(mark_bit_free_page,
	   flip_line(c.free_page, alloc_line() ^ 1, 7, UINT64_C(1) << 63))
CORRUPTION(mark_bit_swept,
	   flip_line(mspan_page(c.full), alloc_line() ^ 1, 0, 1))
CORRUPTION(mark_bit_large,
	   flip_line(mspan_page(c.large), alloc_line() ^ 1, 0, 1))
CORRUPTION(alloc_bit_lost, flip_line(mspan_page(c.full), alloc_line(), 0, 1))
CORRUPTION(alloc_bit_large_lost,
	   flip_line(mspan_page(c.large), alloc_line(), 0, 1))
CORRUPTION(alloc_bit_added,
	   flip_line(mspan_page(c.partial), alloc_line(), 7, UINT64_C(1) << 60))
CORRUPTION(bit_inside, flip_line(mspan_page(c.full), alloc_line(), 0, 2))
CORRUPTION(bit_inside_large,
	   flip_line(mspan_page(c.large) + 3, alloc_line(), 2, 1))
CORRUPTION(bit_on_stack, flip_line(mspan_page(c.stack) + 1, alloc_line(), 0, 1))
CORRUPTION(bit_on_eight, flip_line(mspan_page(c.eight), alloc_line(), 0, 1))
CORRUPTION(eight_bit_lost, flip(mspan_word(c.eight, alloc_line(), 0), 1))
CORRUPTION(count_more,
	   PATCH(c.partial->alloc_count, c.partial->alloc_count + 1))
CORRUPTION(count_too_many, PATCH(c.full->alloc_count, c.full->nelems + 1))
CORRUPTION(count_large, PATCH(c.large->alloc_count, 0))
CORRUPTION(sweepgen_unswept, PATCH(c.partial->sweepgen, epoch_sweepgen() - 2))
CORRUPTION(sweepgen_claimed, PATCH(c.full->sweepgen, epoch_sweepgen() - 1))
CORRUPTION(sweepgen_future, PATCH(c.full->sweepgen, epoch_sweepgen() + 2))
CORRUPTION(span_base, PATCH(c.full->base, c.full->base + 16))
CORRUPTION(span_base_page, PATCH(c.full->base, c.full->base + RT_PAGE_SIZE))
CORRUPTION(span_npages, PATCH(c.full->npages, 2))
CORRUPTION(span_npages_huge, PATCH(c.large->npages, UINT64_C(1) << 60))
CORRUPTION(span_npages_zero, PATCH(c.full->npages, 0))
CORRUPTION(span_limit, PATCH(c.full->limit, c.full->base))
CORRUPTION(span_limit_large,
	   PATCH(c.large->limit, c.large->base + c.large->elemsize + 1))
CORRUPTION(span_limit_large_early,
	   PATCH(c.large->limit, c.large->base + RT_PAGE_SIZE))
CORRUPTION(span_elemsize, PATCH(c.full->elemsize, 63))
CORRUPTION(span_elemsize_large, PATCH(c.large->elemsize, 100001))
CORRUPTION(span_divmagic, PATCH(c.partial->divmagic, c.partial->divmagic + 1))
CORRUPTION(span_nelems, PATCH(c.partial->nelems, c.partial->nelems - 1))
CORRUPTION(span_class, PATCH(c.partial->spanclass, c.partial->spanclass + 1))
CORRUPTION(span_class_wild, PATCH(c.partial->spanclass, 0xffff))
CORRUPTION(span_kind, PATCH(c.full->spanclass,
			    spanclass_make(spanclass_size(c.full->spanclass),
					   KIND_NOSCAN)))
CORRUPTION(span_use_free, PATCH(c.full->use, MSPAN_FREE))
CORRUPTION(span_use_stack, PATCH(c.full->use, MSPAN_STACK))
CORRUPTION(span_use_wild, PATCH(c.full->use, 77))
CORRUPTION(span_bits_null, PATCH(c.full->lines, 0))
CORRUPTION(span_bits_other,
	   PATCH(c.full->lines, (uintptr_t)mspan_lines(c.partial)))
CORRUPTION(span_bits_eight,
	   PATCH(c.eight->lines, (uintptr_t)arena_lines(mspan_page(c.eight))))
CORRUPTION(span_cached, PATCH(c.partial->cached, 1))
CORRUPTION(span_cached_full, PATCH(c.full->cached, 1))
CORRUPTION(set_loop, loop_of(&c.partial->partial))
CORRUPTION(page_bit_lost, flip_alloc(mspan_page(c.full)))
CORRUPTION(page_bit_added, flip_alloc(c.free_page))
CORRUPTION(scavenged_in_use, flip_scavenged(mspan_page(c.full)))
CORRUPTION(scavenged_free, flip_scavenged(c.free_page))
CORRUPTION(summary_root, flip_summary(0))
CORRUPTION(summary_1, flip_summary(1))
CORRUPTION(summary_2, flip_summary(2))
CORRUPTION(summary_3, flip_summary(3))
CORRUPTION(summary_leaf, flip_summary(4))
CORRUPTION(search_page, PATCH(mheap.pages.search_page, c.free_page + 1))
CORRUPTION(search_page_wild, PATCH(mheap.pages.search_page, UINT64_MAX))
CORRUPTION(nchunks_less, PATCH(mheap.pages.nchunks, mheap.pages.nchunks - 1))
CORRUPTION(nchunks_wild, PATCH(mheap.pages.nchunks, UINT32_MAX))
CORRUPTION(scavindex_length,
	   PATCH(mheap.pages.scav.nchunks, mheap.pages.scav.nchunks - 1))
CORRUPTION(scavindex_word, flip_scavindex())
CORRUPTION(heap_length, PATCH(arena.used, arena_used() - RT_CHUNK_SIZE))
CORRUPTION(heap_length_wild, PATCH(arena.used, UINT64_MAX))
CORRUPTION(cache_page_lost,
	   PATCH(c.cache->pages.cache,
		 c.cache->pages.cache &(c.cache->pages.cache - 1)))
CORRUPTION(cache_page_free, flip_alloc(first_cached_page()))
CORRUPTION(cache_page_of_span, PATCH(c.cache->pages.base, mspan_page(c.large)))
CORRUPTION(cache_scav, PATCH(c.cache->pages.scav,
			     c.cache->pages.scav ^ (c.cache->pages.cache &
						    -c.cache->pages.cache)))
CORRUPTION(cache_spans, PATCH(c.cache->nspans, c.cache->nspans - 1))
CORRUPTION(overflow_bit, PATCH(arena.overflow[0], 2))
CORRUPTION(heapgauge_IN_USE, more(&heapgauges.no_p[HEAPGAUGE_IN_USE]))
CORRUPTION(heapgauge_FREE, more(&heapgauges.no_p[HEAPGAUGE_FREE]))
CORRUPTION(heapgauge_RELEASED, more(&heapgauges.no_p[HEAPGAUGE_RELEASED]))
CORRUPTION(heapgauge_TOTAL_ALLOC, more(&heapgauges.no_p[HEAPGAUGE_TOTAL_ALLOC]))
CORRUPTION(heapgauge_TOTAL_FREE, more(&heapgauges.no_p[HEAPGAUGE_TOTAL_FREE]))
CORRUPTION(heapgauge_PAGES_IN_USE,
	   more(&heapgauges.no_p[HEAPGAUGE_PAGES_IN_USE]))
CORRUPTION(gauge_heap_mapped, more(&gauges.heap_mapped))
CORRUPTION(gauge_heap_live, more(&gauges.heap_live))
CORRUPTION(gauge_mapped_ready, more(&gauges.mapped_ready))
CORRUPTION(gauge_stacks_sys, more(&gauges.stacks_sys))
CORRUPTION(gauge_mspan_sys, more(&gauges.mspan_sys))
CORRUPTION(gauge_mcache_sys, more(&gauges.mcache_sys))
CORRUPTION(gauge_buckhash_sys, more(&gauges.buckhash_sys))
CORRUPTION(gauge_gc_misc_sys, more(&gauges.gc_misc_sys))
CORRUPTION(gauge_other_sys, more(&gauges.other_sys))
CORRUPTION(gauge_mspan_inuse, more(&gauges.mspan_inuse))
CORRUPTION(gauge_mcache_inuse, more(&gauges.mcache_inuse))

// rt_heap_verify flushes before it looks, so this asks below it.
static bool is_flushed(void)
{
	verify_heap(&verified);
	if (verified.errors == 0)
		return true;
	ck_assert_ptr_nonnull(strstr(verified.first, "mcache that was not"));
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
	spanclass sc;
	struct mspan *s;

	prepare();
	sc = c.partial->spanclass;
	ck_assert_int_eq(rt_stop_the_world(RT_STOP_HOST), RT_OK);
	s = mcentral_pop(sc);
	ck_assert_ptr_nonnull(s);
	found("a span is in no set");
	c.full->alloc_count--; // debug builds look at what is pushed
	mcentral_push(c.full);
	c.full->alloc_count++;
	found("a full span in a set");
	c.full->alloc_count--;
	ck_assert_ptr_eq(mcentral_pop(sc), c.full);
	c.full->alloc_count++;
	mcentral_push(s);
	healthy("repaired");
	mcentral_push(c.wide);
	found("a span is twice in a set");
}

// Each statistic of heapstats that is wrong by one.
TEST(wrong_heapstats_are_found)
{
	struct rt_proc *p;
	struct heapstats_delta *d;
	const struct {
		const char *name;
		size_t offset;
	} fields[] = {
#define FIELD(f) {#f, offsetof(struct heapstats_delta, f)}
	    FIELD(committed),
	    FIELD(released),
	    FIELD(in_heap),
	    FIELD(in_stacks),
	    FIELD(in_work_bufs),
	    FIELD(large_alloc),
	    FIELD(large_alloc_count),
	    FIELD(large_free),
	    FIELD(large_free_count),
	    FIELD(small_alloc_count[6]),
	    FIELD(small_alloc_count[67]),
	    FIELD(small_free_count[1]),
	};

	prepare();
	p = proc_self();
	ck_assert_int_eq(rt_stop_the_world(RT_STOP_HOST), RT_OK);
	for (size_t i = 0; i < RT_ARRAY_LEN(fields); i++) {
		d = heapstats_acquire(p);
		heapstats_add((atomic_u64 *)((char *)d + fields[i].offset), 1);
		heapstats_release(p);
		found(fields[i].name);
		d = heapstats_acquire(p);
		heapstats_add((atomic_u64 *)((char *)d + fields[i].offset),
			      UINT64_MAX);
		heapstats_release(p);
		healthy("repaired");
	}
}
