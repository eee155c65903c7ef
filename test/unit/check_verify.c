// The walk sees every object once; verify finds what is wrong and nothing
// else.
#include "test/harness/suite.h"

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

static void heap_begin(bool align8)
{
	rt_config c;

	rt_config_init(&c);
	c.max_heap = 1 << 30;
	c.double_check = RT_CHECK_FATAL;
	c.align8 = align8;
	c.no_attach = 1;
	ck_assert_int_eq(rt_init(&c), RT_OK);
	ck_assert_int_eq(rt_thread_attach(RT_THREAD_EXACT), RT_OK);
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

// expect_live makes the driver's list: combined objects are one.
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
	heap_begin(_i == 1);
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
	heap_begin(false);
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
	heap_begin(false);
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
	heap_begin(false);
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

static int refused_inside(void *obj, size_t size, int kind, void *arg)
{
	inside_wrong += rt_alloc(64) != NULL;
	inside_wrong += (rt_alloc)(64) != NULL;
	inside_wrong += rt_alloc_noscan(16) != NULL;
	inside_wrong += rt_alloc_noscan(3) != NULL;
	inside_wrong += rt_alloc_noscan_uninit(100000) != NULL;
	inside_wrong += rt_gc() != RT_EBUSY;
	inside_wrong += rt_stop_the_world(RT_STOP_HOST) != RT_EBUSY;
	inside_wrong += rt_blocking_enter() != RT_EBUSY;
	inside_wrong += rt_base(obj) != obj || rt_size(obj) != size;
	inside_wrong += rt_world_stopped() != 1;
	inside_wrong += kind != RT_NOSCAN && kind != RT_WORDS;
	return note(obj, size, kind, arg);
}

TEST(callbacks_of_a_walk_allocate_nothing)
{
	rng_init(&rng, "callbacks_of_a_walk_allocate_nothing");
	heap_begin(false);
	fill_holes();
	walk();
	nexpected = nwalked;
	nwalked = 0;
	ck_assert_int_eq(rt_heap_walk(refused_inside, &nwalked), RT_OK);
	ck_assert_uint_eq(inside_wrong, 0);
	ck_assert_uint_eq(nwalked, nexpected);
	ck_assert_ptr_nonnull(rt_alloc(64));
	healthy("after the walk");
}

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
	heap_begin(false);
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
	heap_begin(_i == 1);
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

	heap_begin(true);
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

static struct patch word_class(void)
{
	return flip_word(c.partial, 0, 1);
}

static struct patch word_kind(void)
{
	return flip_word(c.partial, 0, 1 << PAGEWORD_KIND_SHIFT);
}

static struct patch word_state(void)
{
	return flip_word(c.full, 0, PAGEWORD_MANUAL << PAGEWORD_STATE_SHIFT);
}

static struct patch word_setting_up(void)
{
	return flip_word(c.full, 0,
			 (PAGEWORD_HEAP ^ PAGEWORD_SETTING_UP)
			     << PAGEWORD_STATE_SHIFT);
}

static struct patch word_none(void)
{
	return PATCH(*word_of(c.full, 0), 0);
}

static struct patch word_place(void)
{
	return flip_word(c.wide, 1, 2 << PAGEWORD_PLACE_SHIFT);
}

static struct patch word_large_place(void)
{
	return flip_word(c.large, 7, 1 << PAGEWORD_PLACE_SHIFT);
}

static struct patch word_stack_class(void)
{
	return flip_word(c.stack, 1, 5);
}

static struct patch word_free(void)
{
	return PATCH(arena.words[c.free_page],
		     pageword_make(5, 0, PAGEWORD_NONE, 0));
}

static struct patch table_first(void)
{
	return PATCH(arena.spans[mspan_page(c.partial)], 0);
}

static struct patch table_second(void)
{
	return PATCH(arena.spans[mspan_page(c.wide) + 1], 0);
}

static struct patch table_other(void)
{
	return PATCH(arena.spans[mspan_page(c.partial)], (uintptr_t)c.full);
}

static struct patch table_free(void)
{
	return PATCH(arena.spans[c.free_page], (uintptr_t)c.full);
}

static unsigned alloc_line(void)
{
	return epoch_alloc_line(epoch_sweepgen());
}

static struct patch line_word(uint64_t page, unsigned line, unsigned w,
			      uint64_t flipped)
{
	atomic_u64 *word = &arena_lines(page)[w].line[line];

	return PATCH(*word, atomic_u64_load_relaxed(word) ^ flipped);
}

static struct patch alloc_bit_free_page(void)
{
	return line_word(c.free_page, alloc_line(), 0, 1);
}

static struct patch mark_bit_free_page(void)
{
	return line_word(c.free_page, alloc_line() ^ 1, 7, UINT64_C(1) << 63);
}

static struct patch mark_bit_swept(void)
{
	return line_word(mspan_page(c.full), alloc_line() ^ 1, 0, 1);
}

static struct patch mark_bit_large(void)
{
	return line_word(mspan_page(c.large), alloc_line() ^ 1, 0, 1);
}

static struct patch alloc_bit_lost(void)
{
	return line_word(mspan_page(c.full), alloc_line(), 0, 1);
}

static struct patch alloc_bit_large_lost(void)
{
	return line_word(mspan_page(c.large), alloc_line(), 0, 1);
}

static struct patch alloc_bit_added(void)
{
	return line_word(mspan_page(c.partial), alloc_line(), 7,
			 UINT64_C(1) << 60);
}

static struct patch bit_inside(void)
{
	return line_word(mspan_page(c.full), alloc_line(), 0, 2);
}

static struct patch bit_inside_large(void)
{
	return line_word(mspan_page(c.large) + 3, alloc_line(), 2, 1);
}

static struct patch bit_on_stack(void)
{
	return line_word(mspan_page(c.stack) + 1, alloc_line(), 0, 1);
}

static struct patch bit_on_eight(void)
{
	return line_word(mspan_page(c.eight), alloc_line(), 0, 1);
}

static struct patch eight_bit_lost(void)
{
	atomic_u64 *w = mspan_word(c.eight, alloc_line(), 0);

	return PATCH(*w, atomic_u64_load_relaxed(w) ^ 1);
}

static struct patch count_more(void)
{
	return PATCH(c.partial->alloc_count, c.partial->alloc_count + 1);
}

static struct patch count_too_many(void)
{
	return PATCH(c.full->alloc_count, c.full->nelems + 1);
}

static struct patch count_large(void)
{
	return PATCH(c.large->alloc_count, 0);
}

static struct patch sweepgen_unswept(void)
{
	return PATCH(c.partial->sweepgen, epoch_sweepgen() - 2);
}

static struct patch sweepgen_claimed(void)
{
	return PATCH(c.full->sweepgen, epoch_sweepgen() - 1);
}

static struct patch sweepgen_future(void)
{
	return PATCH(c.full->sweepgen, epoch_sweepgen() + 2);
}

static struct patch span_base(void)
{
	return PATCH(c.full->base, c.full->base + 16);
}

static struct patch span_base_page(void)
{
	return PATCH(c.full->base, c.full->base + RT_PAGE_SIZE);
}

static struct patch span_npages(void)
{
	return PATCH(c.full->npages, 2);
}

static struct patch span_npages_huge(void)
{
	return PATCH(c.large->npages, UINT64_C(1) << 60);
}

static struct patch span_npages_zero(void)
{
	return PATCH(c.full->npages, 0);
}

static struct patch span_limit(void)
{
	return PATCH(c.full->limit, c.full->base);
}

static struct patch span_limit_large(void)
{
	return PATCH(c.large->limit, c.large->base + c.large->elemsize + 1);
}

static struct patch span_limit_large_early(void)
{
	return PATCH(c.large->limit, c.large->base + RT_PAGE_SIZE);
}

static struct patch span_elemsize(void)
{
	return PATCH(c.full->elemsize, 63);
}

static struct patch span_elemsize_large(void)
{
	return PATCH(c.large->elemsize, 100001);
}

static struct patch span_divmagic(void)
{
	return PATCH(c.partial->divmagic, c.partial->divmagic + 1);
}

static struct patch span_nelems(void)
{
	return PATCH(c.partial->nelems, c.partial->nelems - 1);
}

static struct patch span_class(void)
{
	return PATCH(c.partial->spanclass, c.partial->spanclass + 1);
}

static struct patch span_class_wild(void)
{
	return PATCH(c.partial->spanclass, 0xffff);
}

static struct patch span_kind(void)
{
	return PATCH(
	    c.full->spanclass,
	    spanclass_make(spanclass_size(c.full->spanclass), KIND_NOSCAN));
}

static struct patch span_use_free(void)
{
	return PATCH(c.full->use, MSPAN_FREE);
}

static struct patch span_use_stack(void)
{
	return PATCH(c.full->use, MSPAN_STACK);
}

static struct patch span_use_wild(void)
{
	return PATCH(c.full->use, 77);
}

static struct patch span_bits_null(void)
{
	return PATCH(c.full->lines, 0);
}

static struct patch span_bits_other(void)
{
	return PATCH(c.full->lines, (uintptr_t)mspan_lines(c.partial));
}

static struct patch span_bits_eight(void)
{
	return PATCH(c.eight->lines,
		     (uintptr_t)arena_lines(mspan_page(c.eight)));
}

static struct patch span_cached(void)
{
	return PATCH(c.partial->cached, 1);
}

static struct patch span_cached_full(void)
{
	return PATCH(c.full->cached, 1);
}

static struct patch set_loop(void)
{
	// The packed link of a node is what leads to it.
	static struct lfstack to_itself;

	lfstack_push(&to_itself, &c.partial->partial);
	return PATCH(c.partial->partial.next,
		     atomic_u64_load_relaxed(&to_itself.head));
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

static struct patch page_bit_lost(void)
{
	return flip_page(&data_of(mspan_page(c.full))->alloc,
			 mspan_page(c.full));
}

static struct patch page_bit_added(void)
{
	return flip_page(&data_of(c.free_page)->alloc, c.free_page);
}

static struct patch scavenged_in_use(void)
{
	return flip_page(&data_of(mspan_page(c.full))->scavenged,
			 mspan_page(c.full));
}

static struct patch scavenged_free(void)
{
	return flip_page(&data_of(c.free_page)->scavenged, c.free_page);
}

static struct patch summary(unsigned level)
{
	pallocsum *s = (pallocsum *)mheap.pages.sums[level].base;

	return PATCH(*s, *s ^ 1);
}

static struct patch summary_root(void)
{
	return summary(0);
}

static struct patch summary_1(void)
{
	return summary(1);
}

static struct patch summary_2(void)
{
	return summary(2);
}

static struct patch summary_3(void)
{
	return summary(3);
}

static struct patch summary_leaf(void)
{
	return summary(4);
}

static struct patch search_page(void)
{
	return PATCH(mheap.pages.search_page, c.free_page + 1);
}

static struct patch search_page_wild(void)
{
	return PATCH(mheap.pages.search_page, UINT64_MAX);
}

static struct patch nchunks_less(void)
{
	return PATCH(mheap.pages.nchunks, mheap.pages.nchunks - 1);
}

static struct patch nchunks_wild(void)
{
	return PATCH(mheap.pages.nchunks, UINT32_MAX);
}

static struct patch scavindex_length(void)
{
	return PATCH(mheap.pages.scav.nchunks, mheap.pages.scav.nchunks - 1);
}

static struct patch scavindex_word(void)
{
	// The second half of a chunk's word begins with its pages in use.
	uint32_t *w = (uint32_t *)mheap.pages.scav.table.base + 1;

	return PATCH(*w, *w ^ 3);
}

static struct patch heap_length(void)
{
	return PATCH(arena.used, arena_used() - RT_CHUNK_SIZE);
}

static struct patch heap_length_wild(void)
{
	return PATCH(arena.used, UINT64_MAX);
}

static struct patch cache_page_lost(void)
{
	return PATCH(c.cache->pages.cache,
		     c.cache->pages.cache & (c.cache->pages.cache - 1));
}

static struct patch cache_page_free(void)
{
	uint64_t page = c.cache->pages.base + bits_ctz(c.cache->pages.cache);
	uint64_t *word =
	    &pagealloc_chunk(&mheap.pages, (uint32_t)(page / RT_CHUNK_PAGES))
		 ->alloc.word[page % RT_CHUNK_PAGES / 64];

	return PATCH(*word, *word ^ UINT64_C(1) << page % 64);
}

static struct patch cache_page_of_span(void)
{
	return PATCH(c.cache->pages.base, mspan_page(c.large));
}

static struct patch cache_scav(void)
{
	return PATCH(c.cache->pages.scav,
		     c.cache->pages.scav ^
			 (c.cache->pages.cache & -c.cache->pages.cache));
}

static struct patch cache_spans(void)
{
	return PATCH(c.cache->nspans, c.cache->nspans - 1);
}

static struct patch overflow_bit(void)
{
	return PATCH(arena.overflow[0], 2);
}

#define GAUGE(name)                                                            \
	static struct patch gauge_##name(void)                                 \
	{                                                                      \
		return PATCH(gauges.name, gauge_load(&gauges.name) + 8192);    \
	}
#define HEAPGAUGE(name)                                                        \
	static struct patch heapgauge_##name(void)                             \
	{                                                                      \
		atomic_u64 *part = &heapgauges.no_p[HEAPGAUGE_##name];         \
		return PATCH(*part, gauge_load(part) + 8192);                  \
	}
HEAPGAUGE(IN_USE)
HEAPGAUGE(FREE)
HEAPGAUGE(RELEASED)
HEAPGAUGE(TOTAL_ALLOC)
HEAPGAUGE(TOTAL_FREE)
HEAPGAUGE(PAGES_IN_USE)
GAUGE(heap_mapped)
GAUGE(heap_live)
GAUGE(mapped_ready)
GAUGE(stacks_sys)
GAUGE(mspan_sys)
GAUGE(mcache_sys)
GAUGE(buckhash_sys)
GAUGE(gc_misc_sys)
GAUGE(other_sys)
GAUGE(mspan_inuse)
GAUGE(mcache_inuse)

#define ROW(name)                                                              \
	{                                                                      \
#name, name                                                    \
	}

static const struct {
	const char *name;
	struct patch (*make)(void);
} corruptions[] = {
    ROW(word_class),
    ROW(word_kind),
    ROW(word_state),
    ROW(word_setting_up),
    ROW(word_none),
    ROW(word_place),
    ROW(word_large_place),
    ROW(word_stack_class),
    ROW(word_free),
    ROW(table_first),
    ROW(table_second),
    ROW(table_other),
    ROW(table_free),
    ROW(alloc_bit_free_page),
    ROW(mark_bit_free_page),
    ROW(mark_bit_swept),
    ROW(mark_bit_large),
    ROW(alloc_bit_lost),
    ROW(alloc_bit_large_lost),
    ROW(alloc_bit_added),
    ROW(bit_inside),
    ROW(bit_inside_large),
    ROW(bit_on_stack),
    ROW(bit_on_eight),
    ROW(eight_bit_lost),
    ROW(count_more),
    ROW(count_too_many),
    ROW(count_large),
    ROW(sweepgen_unswept),
    ROW(sweepgen_claimed),
    ROW(sweepgen_future),
    ROW(span_base),
    ROW(span_base_page),
    ROW(span_npages),
    ROW(span_npages_huge),
    ROW(span_npages_zero),
    ROW(span_limit),
    ROW(span_limit_large),
    ROW(span_limit_large_early),
    ROW(span_elemsize),
    ROW(span_elemsize_large),
    ROW(span_divmagic),
    ROW(span_nelems),
    ROW(span_class),
    ROW(span_class_wild),
    ROW(span_kind),
    ROW(span_use_free),
    ROW(span_use_stack),
    ROW(span_use_wild),
    ROW(span_bits_null),
    ROW(span_bits_other),
    ROW(span_bits_eight),
    ROW(span_cached),
    ROW(span_cached_full),
    ROW(set_loop),
    ROW(page_bit_lost),
    ROW(page_bit_added),
    ROW(scavenged_in_use),
    ROW(scavenged_free),
    ROW(summary_root),
    ROW(summary_1),
    ROW(summary_2),
    ROW(summary_3),
    ROW(summary_leaf),
    ROW(search_page),
    ROW(search_page_wild),
    ROW(nchunks_less),
    ROW(nchunks_wild),
    ROW(scavindex_length),
    ROW(scavindex_word),
    ROW(heap_length),
    ROW(heap_length_wild),
    ROW(cache_page_lost),
    ROW(cache_page_free),
    ROW(cache_page_of_span),
    ROW(cache_scav),
    ROW(cache_spans),
    ROW(overflow_bit),
    ROW(heapgauge_IN_USE),
    ROW(heapgauge_FREE),
    ROW(heapgauge_RELEASED),
    ROW(heapgauge_TOTAL_ALLOC),
    ROW(heapgauge_TOTAL_FREE),
    ROW(heapgauge_PAGES_IN_USE),
    ROW(gauge_heap_mapped),
    ROW(gauge_heap_live),
    ROW(gauge_mapped_ready),
    ROW(gauge_stacks_sys),
    ROW(gauge_mspan_sys),
    ROW(gauge_mcache_sys),
    ROW(gauge_buckhash_sys),
    ROW(gauge_gc_misc_sys),
    ROW(gauge_other_sys),
    ROW(gauge_mspan_inuse),
    ROW(gauge_mcache_inuse),
};

// found verifies a corrupt heap in the own stop.
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

// Repaired, the heap is as before: verify itself changes nothing.
TEST(corruption_is_found, .n = RT_ARRAY_LEN(corruptions))
{
	struct patch p;
	uint64_t old = 0;

	prepare();
	ck_assert_int_eq(rt_stop_the_world(RT_STOP_HOST), RT_OK);
	p = corruptions[_i].make();
	memcpy(&old, p.at, p.size);
	ck_assert(memcmp(&old, &p.value, p.size) != 0);
	memcpy(p.at, &p.value, p.size);
	found(corruptions[_i].name);
	ck_assert(memcmp(p.at, &p.value, p.size) == 0);
	memcpy(p.at, &old, p.size);
	healthy("repaired");
	ck_assert_int_eq(rt_start_the_world(NULL), RT_OK);
	healthy("later");
}

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
	mcentral_push(c.full);
	found("a full span in a set");
	ck_assert_ptr_eq(mcentral_pop(sc), c.full);
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
