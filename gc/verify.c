#include "gc/verify.h"

#include <string.h>

#include "runtime/bits.h"
#include "runtime/mcentral.h"
#include "runtime/throw.h"

// What a walk over all spans adds up.
struct sums {
	uint64_t heap_pages;
	uint64_t all_pages;
	uint64_t partial; // swept, not cached, with a free slot
};

static void wrong(struct rt_verify *v, const char *what, uint64_t address)
{
	struct text t;

	if (v->errors++ != 0)
		return;
	text_init(&t);
	text_str(&t, what);
	text_str(&t, " at ");
	text_hex(&t, address);
	memcpy(v->first, t.buf, base_min(t.len + 1, sizeof v->first));
	v->first[sizeof v->first - 1] = '\0';
}

static bool swept(const struct mspan *s)
{
	return atomic_u32_load_relaxed(&s->sweepgen) == epoch_sweepgen();
}

static void verify_span(struct rt_verify *v, const struct mspan *s,
			struct sums *sums)
{
	const char *what = mspan_check(s);

	if (what)
		wrong(v, what, s->base);
	v->spans++;
	sums->all_pages += s->npages;
	if (s->use != MSPAN_HEAP)
		return;
	sums->heap_pages += s->npages;
	v->objects += s->alloc_count;
	v->bytes += s->alloc_count * s->elemsize;
	if (!mspan_is_large(s) && swept(s) && !s->cached &&
	    s->alloc_count < s->nelems)
		sums->partial++;
}

// verify_free_page: a page outside every span has no bit and no class.
static void verify_free_page(struct rt_verify *v, uint64_t page)
{
	uint64_t bits = 0;

	for (unsigned w = 0; w < RT_PAGE_WORDS; w++)
		bits |= atomic_u64_load_relaxed(
				&arena.lines[page].line[0][w]) |
			atomic_u64_load_relaxed(&arena.lines[page].line[1][w]);
	if (bits != 0)
		wrong(v, "bit on a free page", arena_page_address(page));
	if (arena_word(page) != 0)
		wrong(v, "page word of a free page", arena_page_address(page));
}

static void verify_spans(struct rt_verify *v, struct sums *sums)
{
	uint64_t end = arena_used() >> RT_PAGE_SHIFT;
	uint64_t next = 0;

	while (next < end) {
		const struct mspan *s = arena_span(next);

		if (s && mspan_page(s) == next && s->npages != 0) {
			verify_span(v, s, sums);
			next += s->npages;
			continue;
		}
		if (s)
			wrong(v, "span table leads into a span",
			      arena_page_address(next));
		else
			verify_free_page(v, next);
		next++;
	}
}

static void verify_sets(struct rt_verify *v, const struct sums *sums)
{
	uint64_t n = 0;

	for (unsigned sc = 0; sc < SPANCLASS_COUNT; sc++)
		for (const struct mspan *s = mcentral_top((spanclass)sc); s;
		     s = mcentral_below(s)) {
			if (s->use != MSPAN_HEAP || s->spanclass != sc ||
			    s->cached || !swept(s) ||
			    s->alloc_count >= s->nelems)
				wrong(v, "span in the wrong set", s->base);
			if (n++ > sums->partial)
				return wrong(v, "set without end", s->base);
		}
	if (n != sums->partial)
		wrong(v, "spans with free slots and sets differ", n);
}

// cached_pages adds what Ps keep: pages that are free but marked allocated.
static void cached_pages(uint64_t *free, uint64_t *scavenged)
{
	for (struct rt_proc *p = proc_first(); p; p = p->next) {
		const struct rt_mcache *mc = mcache_of(p);

		if (!mc)
			continue;
		*free += bits_count(mc->heap.pages.cache);
		*scavenged += bits_count(mc->heap.pages.cache &
					 mc->heap.pages.scav);
	}
}

static void verify_pages(struct rt_verify *v, const struct sums *sums)
{
	uint64_t nfree = pagealloc_count_free(&mheap.pages);
	uint64_t nscav = pagealloc_count_scavenged(&mheap.pages);
	uint64_t total = arena_used() >> RT_PAGE_SHIFT;

	cached_pages(&nfree, &nscav);
	if (!pagealloc_check(&mheap.pages))
		wrong(v, "page summaries", arena.base);
	if (nfree + sums->all_pages != total)
		wrong(v, "free pages and spans do not add up", nfree);
	if (nscav << RT_PAGE_SHIFT != gauge_load(&gauges.heap_released))
		wrong(v, "heap_released is not the scavenged pages", nscav);
	if ((nfree - nscav) << RT_PAGE_SHIFT != gauge_load(&gauges.heap_free))
		wrong(v, "heap_free is not the free pages", nfree - nscav);
	if (sums->heap_pages != gauge_load(&gauges.pages_in_use) ||
	    sums->heap_pages << RT_PAGE_SHIFT !=
		    gauge_load(&gauges.heap_in_use))
		wrong(v, "heap_in_use is not the heap spans",
		      sums->heap_pages);
}

static void verify_bytes(struct rt_verify *v)
{
	if (v->bytes != gauge_load(&gauges.total_alloc) -
				gauge_load(&gauges.total_free))
		wrong(v, "bytes of objects and totals differ", v->bytes);
}

void gcverify_heap(struct rt_verify *v)
{
	struct sums sums = {0};

	*v = (struct rt_verify){0};
	verify_spans(v, &sums);
	verify_sets(v, &sums);
	verify_pages(v, &sums);
	verify_bytes(v);
}

// walk_span calls fn for the allocated objects of a span; false: enough.
static bool walk_span(const struct mspan *s, rt_walk_fn *fn, void *arg)
{
	unsigned line = epoch_alloc_line(epoch_sweepgen());

	for (uint32_t slot = 0; slot < s->nelems; slot++) {
		void *obj = (void *)(s->base + slot * s->elemsize);

		if (mspan_test(s, line, slot) &&
		    fn(obj, s->elemsize, (int)spanclass_kind(s->spanclass),
		       arg) == RT_WALK_STOP)
			return false;
	}
	return true;
}

void gcverify_walk(rt_walk_fn *fn, void *arg)
{
	uint64_t page = 0;
	const struct mspan *s;

	while ((s = mheap_next_span(&page)) != NULL)
		if (pageword_state(arena_word(mspan_page(s))) ==
			    PAGEWORD_HEAP &&
		    !walk_span(s, fn, arg))
			return;
}
