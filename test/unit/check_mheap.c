// Spans from the heap and back: what is counted, refused and reused.
#include "test/harness/death.h"
#include "test/harness/fault.h"
#include "test/harness/stopped.h"
#include "test/unit/mheap.h"

#include "runtime/base/bits.h"
#include "runtime/os/oscall.h"
#include "runtime/os/persistent.h"

// ---- the worked ledger ----

GROUP(spans, .setup = begin, .timeout = 60);

TEST(every_step_of_the_ledger_adds_up)
{
	struct mspan *heap, *stack;
	uintptr_t base;

	// 0: nothing but metadata.
	expect((struct use){0});
	// 1, 2: the heap grows by a chunk, of which one page is taken.
	heap = alloc_page(NULL);
	expect((struct use){.heap = 8192, .sys = 4194304});
	// 3: four pages for stacks.
	stack = mheap_alloc_manual(self, 4, MSPAN_STACK);
	expect((struct use){.heap = 8192, .stacks = 32768, .sys = 4194304});
	// 4: a free page keeps its memory.
	base = heap->base;
	free_span(heap);
	expect((struct use){.stacks = 32768, .free = 8192, .sys = 4194304});
	// 5: the same page again.
	heap = alloc_page(NULL);
	ck_assert_uint_eq(heap->base, base);
	expect((struct use){.heap = 8192, .stacks = 32768, .sys = 4194304});
	// 6: freed, and released.
	free_span(heap);
	ck_assert_uint_eq(scavenge_once(self, PAGE, true), PAGE);
	expect((struct use){.stacks = 32768, .sys = 4194304});
	// 7: the stacks, too.
	mheap_free_manual(self, stack);
	expect((struct use){.free = 32768, .sys = 4194304});
	ck_assert_uint_eq(gauge_load(&gauges.mspan_inuse), 0);
}

TEST(work_buffers_count_apart)
{
	struct mspan *s = alloc_work(3);

	expect((struct use){.work = 3 * PAGE, .sys = CHUNK});
	mheap_free_manual(self, s);
	expect((struct use){.free = 3 * PAGE, .sys = CHUNK});
}

TEST(scavenging_gives_everything_back_once)
{
	struct mspan *s = alloc_large(NULL, CHUNK);
	uint64_t bytes = 0, n;

	free_span(s);
	while ((n = scavenge_once(self, CHUNK, true)) != 0)
		bytes += n;
	ck_assert_uint_eq(bytes, CHUNK);
	expect((struct use){.sys = CHUNK});
	ck_assert_uint_eq(pagealloc_count_scavenged(&mheap.pages) * PAGE,
			  CHUNK);
	ck_assert_ptr_null(pagealloc_check(&mheap.pages));
}

// ---- refusals ----

enum want { WANT_SMALL, WANT_EIGHT, WANT_LARGE, WANT_MANUAL, WANTS };

static struct mspan *want(unsigned what)
{
	switch (what) {
	case WANT_SMALL:
		return alloc_page(NULL);
	case WANT_EIGHT:
		return alloc_class(1, KIND_NOSCAN);
	case WANT_LARGE:
		return mheap_alloc_large(self, NULL, KIND_WORDS, 9 << 20);
	default:
		return mheap_alloc_manual(self, 4, MSPAN_STACK);
	}
}

// fill_persistent uses up the memory that small metadata is carved from, so
// that the next mspan needs more.
static void fill_persistent(void)
{
	fault_fail(OSCALL_COMMIT, 1, UINT64_MAX, 12);
	while (persistent_alloc(64, 64, &gauges.other_sys))
		;
	fault_fail(OSCALL_COMMIT, 1, 0, 12);
}

// refused_at tells whether a growth is refused if the nth call for memory and
// all later ones fail.  Then only tables may have grown.
static bool refused_at(uint64_t nth, unsigned what)
{
	uint64_t mspans;
	struct mspan *s;
	struct row before;

	begin();
	fill_persistent();
	before = now();
	mspans = gauge_load(&gauges.mspan_inuse);
	fault_fail(OSCALL_COMMIT, nth, UINT64_MAX, 12);
	s = want(what);
	fault_fail(OSCALL_COMMIT, 1, 0, 12);
	if (!s) {
		ck_assert(same_row(now(), before));
		ck_assert_uint_eq(gauge_load(&gauges.mspan_inuse), mspans);
		ck_assert_uint_eq(mheap.spans.inuse, mspans);
		ck_assert_uint_eq(mheap.bitmap8s.inuse, 0);
		ck_assert_uint_eq(pagealloc_count_free(&mheap.pages), 0);
		check_heap();
		// The next try uses what the refused one did get.
		ck_assert_ptr_nonnull(want(what));
	}
	now();
	ck_assert_ptr_null(pagealloc_check(&mheap.pages));
	end();
	return !s;
}

GROUP(refusals, .timeout = 60);

TEST(refused_growth_moves_nothing_but_tables, .n = WANTS)
{
	enum { LEAST = 9 }; // calls whose refusal refuses the growth
	uint64_t nth = 1;

	while (refused_at(nth, (unsigned)_i))
		nth++;
	ck_assert_uint_gt(nth, LEAST);
}

TEST(refused_advice_and_names_do_not_matter)
{
	begin();
	fault_fail(OSCALL_ADVISE, 1, UINT64_MAX, 12);
	fault_fail(OSCALL_NAME, 1, UINT64_MAX, 12);
	ck_assert_ptr_nonnull(want(WANT_LARGE));
	ck_assert_uint_ge(fault_failed(OSCALL_ADVISE), 1);
	check_heap();
	end();
}

TEST(refused_reservation_leaves_nothing_behind)
{
	static const struct gauges zero;
	uint64_t nth;
	rt_config c = heap_config(100);

	c.max_heap = RANGE;
	for (nth = 1;; nth++) {
		int error;

		fault_fail(OSCALL_RESERVE, nth, UINT64_MAX, 12);
		error = rt_init(&c);
		fault_fail(OSCALL_RESERVE, 1, 0, 12);
		if (error == RT_OK)
			break;
		ck_assert_int_eq(error, RT_ENOMEM);
		ck_assert_mem_eq(&gauges, &zero, sizeof zero);
	}
	// The range, its four tables, seven of the page allocator.
	ck_assert_uint_ge(nth, 12);
	end();
}

GROUP(spans);

TEST(refused_release_keeps_pages_free_and_retained)
{
	struct row before;

	free_span(alloc_page(NULL));
	before = now();
	fault_fail(OSCALL_RELEASE, 1, UINT64_MAX, 12);
	ck_assert_uint_eq(scavenge_once(self, PAGE, true), 0);
	ck_assert_uint_eq(fault_failed(OSCALL_RELEASE), 1);
	ck_assert(same_row(now(), before));
	ck_assert_uint_eq(pagealloc_count_free(&mheap.pages), RT_CHUNK_PAGES);
	fault_fail(OSCALL_RELEASE, 1, 0, 12);
	ck_assert_uint_eq(scavenge_once(self, PAGE, true), PAGE);
	check_heap();
}

// ---- what a span is like ----

TEST(only_used_memory_needs_zeroing)
{
	struct mspan *s = alloc_page(NULL);

	ck_assert(!s->needzero); // fresh
	memset((void *)s->base, 0xff, PAGE);
	free_span(s);
	s = alloc_page(NULL);
	ck_assert(s->needzero); // used
	free_span(s);
	ck_assert_uint_eq(scavenge_once(self, PAGE, true), PAGE);
	s = alloc_page(NULL);
	ck_assert(!s->needzero); // released
	for (unsigned i = 0; i < PAGE; i++)
		if (((char *)s->base)[i] != 0)
			ck_abort_msg("byte %u is not zero", i);
	free_span(s);
	// One used page among fresh ones is enough.
	s = alloc_large(NULL, 4 * PAGE);
	ck_assert(s->needzero);
}

TEST(spans_of_every_class_fit_their_class)
{
	for (unsigned c = 1; c < SIZECLASS_COUNT; c++) {
		struct mspan *s = alloc_class(c, c % 2);
		const struct sizeclass *class = &sizeclass_table[c];

		ck_assert_ptr_null(mspan_check(s));
		ck_assert_uint_eq(s->npages, class->npages);
		ck_assert_uint_eq(mspan_limit(s) - s->base,
				  (uint64_t) class->nelems * class->size);
		ck_assert_uint_eq(spanclass_kind(s->spanclass), c % 2);
		ck_assert_uint_eq(mspan_counted(s), 0);
		ck_assert_uint_eq(s->base % PAGE, 0);
	}
	check_heap();
}

TEST(large_spans_hold_one_object_of_whole_pages)
{
	static const size_t request[] = {32761,	    PAGE * 5,  PAGE * 5 + 1,
					 CHUNK - 1, CHUNK + 1, 20 << 20};

	for (unsigned i = 0; i < RT_ARRAY_LEN(request); i++) {
		size_t n = request[i];
		struct mspan *s = mheap_alloc_large(self, NULL, KIND_WORDS, n);

		ck_assert_uint_eq(s->npages, (n + PAGE - 1) / PAGE);
		ck_assert_uint_eq(s->elemsize, s->npages * PAGE);
		ck_assert_uint_eq(mspan_limit(s), s->base + n);
		ck_assert_uint_eq(mspan_counted(s), 1);
		ck_assert_ptr_null(mspan_check(s));
		now();
	}
}

TEST(a_large_object_is_found_when_it_is_published)
{
	struct mspan *s = alloc_large(NULL, 10 * PAGE);

	ck_assert_ptr_null(rt_base((void *)(s->base + 9 * PAGE)));
	mheap_publish_large(s);
	ck_assert_uint_eq((uintptr_t)rt_base((void *)(s->base + 9 * PAGE)),
			  s->base);
	ck_assert_ptr_null(mspan_check(s));
}

TEST(the_lowest_pages_that_fit_are_taken)
{
	struct mspan *s[8];
	uintptr_t base;

	for (unsigned i = 0; i < 8; i++)
		s[i] = alloc_page(NULL);
	for (unsigned i = 1; i < 8; i++)
		ck_assert_uint_eq(s[i]->base, s[i - 1]->base + PAGE);
	base = s[2]->base;
	free_span(s[2]);
	free_span(s[5]);
	free_span(s[6]);
	ck_assert_uint_eq(alloc_page(NULL)->base, base);
	ck_assert_uint_eq(mheap_alloc_manual(self, 2, MSPAN_STACK)->base,
			  base + 3 * PAGE);
}

TEST(a_list_of_spans_is_freed_at_once)
{
	struct mspan *list = NULL;

	for (unsigned c = 1; c < SIZECLASS_COUNT; c++) {
		struct mspan *s = alloc_class(c, KIND_WORDS);

		s->next = list;
		list = s;
	}
	mheap_free(self, list);
	mheap_free(self, NULL);
	nothing_in_use();
	ck_assert_uint_eq(pagealloc_count_free(&mheap.pages), RT_CHUNK_PAGES);
	check_heap();
}

// Two thirds of 3000 spans are freed as one list.  No two spans that follow
// each other in the list are neighbours in memory.
TEST(a_list_without_neighbours_is_freed_at_once)
{
	enum { SPANS = 3000 };
	struct mspan *s[SPANS], *list = NULL;

	for (unsigned i = 0; i < SPANS; i++)
		s[i] = alloc_class(1 + i % 8, KIND_WORDS);
	for (unsigned k = 0; k < SPANS; k++) {
		unsigned i = k * 1009 % SPANS; // each once: 1009 is prime

		if (i % 3 == 0)
			continue;
		s[i]->next = list;
		list = s[i];
	}
	mheap_free(self, list);
	check_heap();
	ck_assert_uint_eq(now().heap_in_use, SPANS / 3 * PAGE);
	for (unsigned i = 0; i < SPANS; i++)
		ck_assert_ptr_eq(arena_span(i), i % 3 == 0 ? s[i] : NULL);
	for (unsigned i = 0; i < SPANS; i += 3)
		free_span(s[i]);
	nothing_in_use();
	check_heap();
}

TEST(spans_are_walked_by_address)
{
	struct mspan *s[3] = {
	    alloc_page(NULL),
	    alloc_large(NULL, 5 * CHUNK),
	    alloc_work(3),
	};
	unsigned seen[3] = {0};
	uintptr_t last = 0;
	uint64_t page = 0;
	struct mspan *at;
	bool begun;

	begun = stopped_begin();
	while ((at = mheap_next_span(&page)) != NULL) {
		ck_assert_uint_gt(at->base, last);
		ck_assert_uint_eq(page, mspan_page(at) + at->npages);
		last = at->base;
		for (unsigned i = 0; i < 3; i++)
			seen[i] += at == s[i];
	}
	stopped_end(begun);
	ck_assert(seen[0] == 1 && seen[1] == 1 && seen[2] == 1);
	ck_assert_uint_eq(page, arena_used() / PAGE);
}

// ---- the end of the range ----

GROUP(spans);

TEST(what_exceeds_the_range_is_refused)
{
	static const size_t request[] = {
	    RANGE + 1,
	    (size_t)1 << 40,
	    PTRDIFF_MAX,
	    SIZE_MAX - RT_PAGE_SIZE,
	    SIZE_MAX - RT_PAGE_SIZE + 2,
	    SIZE_MAX,
	};
	static const uint64_t npages[] = {RANGE_PAGES + 1, UINT64_C(1) << 51,
					  UINT64_MAX - RT_CHUNK_PAGES,
					  UINT64_MAX};
	struct row before = now();

	for (unsigned i = 0; i < RT_ARRAY_LEN(request); i++)
		ck_assert_ptr_null(alloc_large(NULL, request[i]));
	for (unsigned i = 0; i < RT_ARRAY_LEN(npages); i++)
		ck_assert_ptr_null(
		    mheap_alloc_manual(self, npages[i], MSPAN_STACK));
	ck_assert(same_row(now(), before));
	ck_assert_uint_eq(arena_used(), 0);
	ck_assert_uint_eq(gauge_load(&gauges.mspan_inuse), 0);
	ck_assert_ptr_nonnull(alloc_large(NULL, RANGE));
	check_heap();
}

TEST(a_full_range_recovers)
{
	static struct mspan *span[RANGE_PAGES + 1];
	struct mheap_cache cache = {0};
	unsigned n = 0;
	struct row full;
	uintptr_t base;

	while ((span[n] = alloc_page(&cache)) != NULL)
		n++;
	ck_assert_uint_eq(n, RANGE_PAGES);
	full = now();
	ck_assert_uint_eq(full.heap_in_use, RANGE);
	ck_assert_uint_eq(full.heap_released, 0);
	ck_assert_ptr_null(alloc_page(NULL));
	ck_assert_ptr_null(alloc_work(1));
	ck_assert(same_row(now(), full));
	// If one page is free, it is the next one taken.
	base = span[4321]->base;
	free_span(span[4321]);
	ck_assert_ptr_null(alloc_large(&cache, 2 * PAGE));
	span[4321] = alloc_page(&cache);
	ck_assert_uint_eq(span[4321]->base, base);
	ck_assert(same_row(now(), full));
	for (unsigned i = 0; i < n; i++)
		free_span(span[i]);
	mheap_cache_flush(&cache);
	ck_assert_uint_eq(gauge_load(&gauges.mspan_inuse), 0);
	ck_assert_ptr_nonnull(alloc_large(NULL, RANGE));
	check_heap();
}

// Free pages at the end of the heap reduce how much it must grow.
TEST(the_last_pages_of_the_range_are_used)
{
	struct mspan *s;

	alloc_page(NULL);
	s = alloc_large(NULL, (RANGE_PAGES - 1) * PAGE);
	ck_assert_ptr_nonnull(s);
	ck_assert_uint_eq(now().heap_in_use, RANGE);
}

// Only free pages at the very end reduce a growth: the last chunk has 12, and 8
// more are before what was allocated last.
TEST(free_pages_inside_are_not_the_end)
{
	struct mspan *gap;

	ck_assert_ptr_nonnull(alloc_work(RT_CHUNK_PAGES - 8));
	gap = alloc_work(8);
	ck_assert_ptr_nonnull(alloc_work(RT_CHUNK_PAGES - 12));
	mheap_free_manual(self, gap);
	ck_assert_uint_eq(mheap.pages.nchunks, 2);
	ck_assert_ptr_nonnull(alloc_work(18));
	ck_assert_uint_eq(mheap.pages.nchunks, 3);
	check_heap();
}

// A request for three chunks takes two free chunks at the end and a new one.
TEST(free_chunks_at_the_end_count_together)
{
	struct mspan *s = alloc_work(2 * RT_CHUNK_PAGES);

	mheap_free_manual(self, s);
	ck_assert_ptr_nonnull(alloc_work(3 * RT_CHUNK_PAGES));
	ck_assert_uint_eq(mheap.pages.nchunks, 3);
	check_heap();
}

// The first chunks are prepared as they are needed.
TEST(a_small_heap_prepares_nothing_ahead)
{
	for (unsigned n = 1; n <= RANGE / CHUNK; n++) {
		ck_assert_ptr_nonnull(alloc_work(RT_CHUNK_PAGES));
		ck_assert_uint_eq(arena_prepared(), (uint64_t)n * CHUNK);
	}
}

// No page of this range is touched.
TEST(a_large_heap_prepares_a_quarter_of_a_gib_ahead,
     .unless = SUITE_UNLESS(RT_ASAN || RT_TSAN,
			    "a sanitizer has no room for such a range"))
{
	const uint64_t most = UINT64_C(1) << 34;
	rt_config c = heap_config(HEAP_QUIET);

	if (RUNNING_ON_VALGRIND) {
		suite_skip("valgrind takes minutes for such a range", NULL);
		return;
	}
	end();
	c.max_heap = 2 * most;
	heap_start(c);
	self = proc_self();
	if (arena.reserved < 2 * most || !alloc_work(most / PAGE)) {
		suite_skip("the system does not grant 16 GiB", NULL);
		return;
	}
	ck_assert_uint_eq(arena_prepared(), most);
	ck_assert_ptr_nonnull(alloc_work(RT_CHUNK_PAGES));
	ck_assert_uint_eq(arena_prepared(), most + (UINT64_C(256) << 20));
	end();
}

// Page caches do not serve a request of many pages.  In a full range it still
// gets pages in a row that the P's own cache holds.
TEST(a_large_request_takes_the_pages_of_its_own_cache)
{
	struct mheap_cache cache = {.filling = PAGECACHE_PAGES};

	ck_assert_ptr_nonnull(alloc_work(RANGE_PAGES - PAGECACHE_PAGES));
	ck_assert_ptr_nonnull(alloc_page(&cache));
	ck_assert_uint_eq(bits_count(cache.pages.cache), PAGECACHE_PAGES - 1);
	ck_assert_ptr_null(alloc_large(NULL, 16 * PAGE));
	ck_assert_ptr_nonnull(alloc_large(&cache, 16 * PAGE));
	end_cache(&cache);
}

// ---- misuse by our own code ----

GROUP(throws, .setup = begin);

static const char invalid_free[] = "mheap.freeSpanLocked - invalid free";

TEST(a_span_with_objects_is_not_freed, .exit = DEATH_EXPECTED)
{
	struct mspan *s = alloc_large(NULL, CHUNK);

	death_expect(invalid_free);
	mheap_free(self, s);
}

TEST(a_cached_span_is_not_freed, .exit = DEATH_EXPECTED)
{
	struct mspan *s = alloc_page(NULL);

	s->cached = 1;
	death_expect(invalid_free);
	mheap_free(self, s);
}

TEST(an_unswept_span_is_not_freed, .exit = DEATH_EXPECTED)
{
	struct mspan *s = alloc_page(NULL);

	atomic_u32_store_relaxed(&s->sweepgen, epoch_sweepgen() - 2);
	death_expect(invalid_free);
	mheap_free(self, s);
}

TEST(a_stack_span_is_not_freed_as_objects, .exit = DEATH_EXPECTED)
{
	death_expect(invalid_free);
	mheap_free(self, mheap_alloc_manual(self, 1, MSPAN_STACK));
}

TEST(a_heap_span_is_not_freed_as_stacks, .exit = DEATH_EXPECTED)
{
	death_expect("mheap.freeSpanLocked - invalid stack free");
	mheap_free_manual(self, alloc_page(NULL));
}

// The test makes searches begin behind every page, even behind the pages that
// growth brings.
TEST(growth_that_brings_nothing_is_found_out, .exit = DEATH_EXPECTED)
{
	mheap.pages.search_page = UINT64_C(1) << 40;
	death_expect(RT_DEBUG_BUILD
			 ? "search_page is beyond the heap"
			 : "grew heap, but no adequate free space found");
	alloc_large(NULL, 64 << 20);
}

// ---- at random ----

enum { HELD = 300 };

static struct mspan *random_span(struct rng *r, struct mheap_cache *cache)
{
	unsigned c = 1 + (unsigned)rng_below(r, SIZECLASS_COUNT - 1);

	switch (rng_below(r, 4)) {
	case 0:
		return mheap_alloc_manual(self, 1 + rng_below(r, 20),
					  rng_below(r, 2) ? MSPAN_STACK
							  : MSPAN_WORK);
	case 1:
		return mheap_alloc_large(self, cache, KIND_WORDS,
					 1 + rng_below(r, 400000));
	default:
		return mheap_alloc_small(
		    self, cache, spanclass_make(c, (unsigned)rng_below(r, 2)));
	}
}

// Pages by use, as the test knows them.
struct model {
	uint64_t heap, stacks, work;
};

static void model_add(struct model *m, const struct mspan *s, uint64_t sign)
{
	uint64_t bytes = s->npages * PAGE * sign;

	*(s->use == MSPAN_HEAP	  ? &m->heap
	  : s->use == MSPAN_STACK ? &m->stacks
				  : &m->work) += bytes;
}

static void random_free(struct model *m, struct mspan *s)
{
	model_add(m, s, (uint64_t)-1);
	if (s->use == MSPAN_HEAP)
		free_span(s);
	else
		mheap_free_manual(self, s);
}

static void request_in_any_order(void)
{
	static struct mspan *held[HELD];
	struct mheap_cache cache = {0};
	struct model m = {0};
	struct rng r;

	rng_init(&r, "any_order_of_requests_adds_up");
	for (unsigned step = 0; step < 20000; step++) {
		struct mspan **s = &held[rng_below(&r, HELD)];

		if (*s) {
			random_free(&m, *s);
			*s = NULL;
		} else {
			*s = random_span(&r, &cache);
			if (*s)
				model_add(&m, *s, 1);
		}
		if (rng_below(&r, 20) == 0)
			scavenge_once(self, rng_below(&r, 1 << 20),
				      rng_below(&r, 2));
		if (rng_below(&r, 50) == 0)
			mheap_cache_flush(&cache);
		if (step % 100 == 0) {
			struct row row = now();

			ck_assert_uint_eq(row.in_heap, m.heap);
			ck_assert_uint_eq(row.in_stacks, m.stacks);
			ck_assert_uint_eq(row.in_work, m.work);
			ck_assert_ptr_null(pagealloc_check(&mheap.pages));
		}
	}
	for (unsigned i = 0; i < HELD; i++)
		if (held[i])
			random_free(&m, held[i]);
	mheap_cache_flush(&cache);
	ck_assert_uint_eq(now().heap_free + now().heap_released, arena_used());
	nothing_in_use();
}

GROUP(spans);

TEST(any_order_of_requests_adds_up)
{
	request_in_any_order();
}

GROUP(random_populating, .setup = begin_populating, .timeout = 60);

TEST(any_order_adds_up_while_pages_are_populated)
{
	request_in_any_order();
}
