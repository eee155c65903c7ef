// Asks each module for its invariants, and walks all spans and objects.
#include "gc/stats/verify.h"

#include <string.h>

#include "runtime/base/bits.h"
#include "runtime/os/throw.h"
#include "runtime/world/cyclering.h"
#include "runtime/world/stoptable.h"
#include "runtime/world/stw.h"
#include "runtime/pages/hugepages.h"
#include "runtime/spans/kinds.h"
#include "runtime/spans/mcentral.h"
#include "runtime/spans/stackalloc.h"
#include "gc/mark/gain.h"
#include "gc/mark/drops.h"
#include "gc/mark/overflow.h"
#include "gc/mark/rootfns.h"
#include "gc/mark/handles.h"
#include "gc/mark/stacks.h"
#include "gc/mark/sites.h"
#include "gc/mark/notices.h"
#include "gc/cycle/pacer.h"
#include "gc/cycle/ask.h"
#include "gc/cycle/swept.h"
#include "gc/cycle/worker.h"
#include "gc/cycle/scavenger.h"
#include "gc/stats/snapshot.h"

// The sums of a walk over all spans.
struct sums {
	uint64_t spans;
	uint64_t heap_pages;
	uint64_t stack_pages;
	uint64_t work_pages;
	uint64_t partial;		 // swept, not queued, with a free slot
	uint64_t small[SIZECLASS_COUNT]; // objects
	uint64_t large;
	uint64_t large_bytes;
	// What Ps keep: free pages that are marked allocated, and span records.
	// Then the bytes of the mcaches.
	uint64_t cached_free;
	uint64_t cached_scavenged;
	uint64_t cached_spans;
	uint64_t mcache_bytes;
};

// first_error begins the text of the first contradiction.  Returns false if
// this one is not the first.
static bool first_error(struct rt_verify *v, struct text *t, const char *what)
{
	if (v->errors++ != 0)
		return false;
	text_init(t);
	text_str(t, what);
	return true;
}

static void keep(struct rt_verify *v, const struct text *t)
{
	memcpy(v->first, t->buf, base_min(t->len + 1, sizeof v->first));
	v->first[sizeof v->first - 1] = '\0';
}

static void wrong(struct rt_verify *v, const char *what, uint64_t address)
{
	struct text t;

	if (!first_error(v, &t, what))
		return;
	text_str(&t, " at ");
	text_hex(&t, address);
	keep(v, &t);
}

// equal compares one number, counted in two ways.
static bool equal(struct rt_verify *v, const char *what, uint64_t counted,
		  uint64_t found)
{
	struct text t;

	if (counted == found)
		return true;
	if (!first_error(v, &t, what))
		return false;
	text_str(&t, ": ");
	text_u64(&t, counted);
	text_str(&t, ", found ");
	text_u64(&t, found);
	keep(v, &t);
	return false;
}

// holds notes a contradiction if the check of a struct has returned one.
static void holds(struct rt_verify *v, const char *what, const void *of)
{
	if (what)
		wrong(v, what, (uintptr_t)of);
}

static void span_holds(struct rt_verify *v, const char *what,
		       const struct mspan *s)
{
	if (what)
		wrong(v, what, s->base);
}

static bool is_swept(const struct mspan *s)
{
	return atomic_u32_load_relaxed(&s->sweepgen) == epoch_sweepgen();
}

// count_objects adds up the objects of a heap span.
static void count_objects(const struct mspan *s, struct sums *sums)
{
	if (mspan_is_large(s)) {
		sums->large += s->alloc_count;
		sums->large_bytes += s->alloc_count * s->elemsize;
	} else {
		sums->small[s->sizeclass] += s->alloc_count;
		sums->partial +=
		    is_swept(s) && s->alloc_count < s->nelems && !s->queued;
	}
}

// page_taken tells whether the page allocator knows a page as allocated.
static bool page_taken(uint64_t page)
{
	const struct pallocdata *d =
	    pagealloc_chunk(&mheap.pages, (uint32_t)(page / RT_CHUNK_PAGES));

	return pallocbits_get(&d->alloc, page % RT_CHUNK_PAGES);
}

// verify_span checks a span.  Returns the number of pages to the next place of
// the walk.
static uint64_t verify_span(struct rt_verify *v, const struct mspan *s,
			    struct sums *sums)
{
	const char *what = mspan_check(s);

	span_holds(v, what, s);
	// A span that extends beyond the heap is not followed, and one of no
	// class is not counted.
	if (s->npages > (arena_used() >> RT_PAGE_SHIFT) - mspan_page(s) ||
	    s->spanclass >= SPANCLASS_COUNT ||
	    !kinds_exists(spanclass_kind(s->spanclass)) ||
	    s->sizeclass != spanclass_size(s->spanclass))
		return 1;
	if (!(kinds_used() >> spanclass_kind(s->spanclass) & 1))
		wrong(v, "span of a kind that has none", s->base);
	for (uint64_t i = 0; i < s->npages; i++)
		if (!page_taken(mspan_page(s) + i))
			wrong(v, "page of a span is free",
			      arena_page_address(mspan_page(s) + i));
	v->spans++;
	sums->spans++;
	if (s->use == MSPAN_STACK)
		sums->stack_pages += s->npages;
	if (s->use == MSPAN_WORK)
		sums->work_pages += s->npages;
	if (s->use != MSPAN_HEAP)
		return s->npages;
	if (s->cached)
		wrong(v, "span is cached but in no cache", s->base);
	// If an object is not where it should be, the bytes around it must not
	// be read.
	if (!what && mspan_overwritten(s))
		wrong(v, "guarded object was written outside",
		      mspan_overwritten(s));
	sums->heap_pages += s->npages;
	v->objects += s->alloc_count;
	v->bytes += s->alloc_count * s->elemsize;
	count_objects(s, sums);
	return s->npages;
}

// verify_free_page checks that a page outside every span has no bit, and no
// pageword unless the page is protected.
static void verify_free_page(struct rt_verify *v, uint64_t page)
{
	const struct linewords *lines = arena_lines(page);
	uint64_t bits = 0;

	for (unsigned w = 0; w < RT_PAGE_WORDS; w++)
		bits |= atomic_u64_load_relaxed(&lines[w].line[0]) |
			atomic_u64_load_relaxed(&lines[w].line[1]);
	if (bits != 0)
		wrong(v, "free page has a bit", arena_page_address(page));
	if (arena_pageword(page) != 0 &&
	    pageword_state(arena_pageword(page)) != PAGEWORD_PROTECTED)
		wrong(v, "free page has a pageword", arena_page_address(page));
}

static void verify_spans(struct rt_verify *v, struct sums *sums)
{
	uint64_t end = arena_used() >> RT_PAGE_SHIFT;
	uint64_t next = 0;

	while (next < end) {
		const struct mspan *s = arena_span(next);

		if (s && mspan_page(s) == next && s->npages != 0) {
			next += verify_span(v, s, sums);
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
	const struct mspan *top;
	uint64_t n = 0;

	for (unsigned sc = 0; sc < SPANCLASS_COUNT; sc++) {
		if (!kinds_exists(spanclass_kind((spanclass)sc)))
			continue;
		top = mcentral_top((spanclass)sc);
		span_holds(v, mcentral_check((spanclass)sc), top);
		for (const struct mspan *s = top; s; s = mcentral_below(s)) {
			span_holds(v, mcentral_check_span(s), s);
			if (s->spanclass != sc)
				wrong(v, "span is in the set of another class",
				      s->base);
			if (n++ > sums->partial)
				return wrong(v, "set has no end", s->base);
		}
	}
	equal(v, "spans with free slots that are in a set", n, sums->partial);
}

// verify_caches checks what Ps keep; they must have been flushed.
static void verify_caches(struct rt_verify *v, struct sums *sums)
{
	for (struct rt_proc *p = proc_first(); p; p = proc_next(p)) {
		const struct rt_mcache *mc = mcache_of(p);
		const struct pagecache *c;
		uint64_t nonempty;

		if (!mc)
			continue;
		nonempty = mc->used_kinds;
		for (unsigned w = 0; w < MCACHE_WORDS; w++)
			nonempty |= mc->nonempty[w];
		if (nonempty != 0 || mc->tiny != 0 || mc->live != 0)
			wrong(v, "mcache was not flushed", (uintptr_t)mc);
		holds(v, mcache_check(mc), mc);
		c = &mc->heap.pages;
		for (uint64_t x = c->cache; x; x &= x - 1) {
			uint64_t page = c->base + bits_ctz(x);

			if (!page_taken(page) || arena_span(page))
				wrong(v, "cached page is free or in a span",
				      arena_page_address(page));
		}
		sums->cached_free += bits_count(c->cache);
		sums->cached_scavenged += bits_count(c->cache & c->scav);
		sums->cached_spans += mc->heap.nspans;
		sums->mcache_bytes += mcache_bytes(mc);
	}
	holds(v, freelist_check_shared(), &mheap);
}

// What other threads write while the world is stopped:
//
//   - A stopped thread holds no lock.  It may draw a ticket of the right
//     to stop the world, write the words of the gate, and wake notes, all of
//     them atomic.
//   - A thread that clears a large object is blocked.  It writes only that
//     object, which no check reads.
//   - A thread that attaches or detaches takes procs.lock, finds the gate
//     closed, and releases the lock again.
//   - A thread without a P, or in a blocking region, may read statistics.  This
//     folds heapstats, under heapstats.reader.  To remove a root it needs the
//     right to stop the world, which the stopper has.
//   - Such a thread may also set handlers and the mode of double checks, which
//     no check reads.
//   - A thread that makes or ends helpers is blocked meanwhile.  It writes
//     atomics of struct workers, and the records of the helpers.  A helper that
//     begins or ends changes crew_calls.size, an atomic.
//   - A thread that reads the limit of processor time is blocked.  It writes
//     workers.cpus and pacer.processors, both atomic.
//   - A thread that waits for the end of a sweep is blocked.  It writes
//     swept.sleepers, an atomic.
//   - A helper that comes late to marking or sweeping finds nothing to do.  It
//     writes sweep.active, an atomic, and its own record.
//   - A helper, or a thread that is blocked in worker_advise, may provide huge
//     pages at any time, under hugepages.lock.
//   - A thread that makes or ends the scavenger, and the scavenger itself
//     between its turns, are blocked.  They write atomics and notes of struct
//     scavenger.  The maker also writes its other fields, which no check reads.
//
// Records of collections and of stops are written with the right to stop the
// world, which the stopper has.  A thread that takes notices is not stopped
// meanwhile.
//
// So the checks below need two locks.

// verify_threads checks the Ps, what they count, and the stop.
static void verify_threads(struct rt_verify *v)
{
	holds(v, stw_check(&world), &world);
	holds(v, procs_check(&procs), &procs);
	for (const struct rt_proc *p = proc_first(); p; p = proc_next(p))
		holds(v, proc_check(p), p);
	holds(v, heapgauge_check(&heapgauges), &heapgauges);
	mutex_lock(&heapstats.reader); // a live reader may be folding
	holds(v, heapstats_check(&heapstats), &heapstats);
	mutex_unlock(&heapstats.reader);
	holds(v, gauges_check(&gauges), &gauges);
	holds(v, gcstats_check(&gcstats), &gcstats);
	holds(v, cyclering_check(&cyclering), &cyclering);
	holds(v, stoptable_check(&stoptable), &stoptable);
}

// verify_memory checks what hands out memory.
static void verify_memory(struct rt_verify *v)
{
	holds(v, persistent_check(&persistent), &persistent);
	mutex_lock(&hugepages.lock); // another thread may provide some
	holds(v, hugepages_check(&hugepages), &hugepages);
	mutex_unlock(&hugepages.lock);
	holds(v, kinds_check(&kinds), &kinds);
	holds(v, mheap_check(&mheap), &mheap);
	holds(v, mcache_blocks_check(&mcache_blocks), &mcache_blocks);
	holds(v, stackpool_check(&stackpool), &stackpool);
}

// verify_cycle checks what a collection uses.  None is under way.
static void verify_cycle(struct rt_verify *v)
{
	holds(v, epoch_check(&epoch), &epoch);
	holds(v, gain_check(&gain), &gain);
	holds(v, crew_check(&crew_calls), &crew_calls);
	holds(v, work_agreed_check(&work_agreed), &work_agreed);
	holds(v, work_pool_check(&work_pool), &work_pool);
	holds(v, roots_check(&roots), &roots);
	holds(v, rootfns_check(&rootfns), &rootfns);
	holds(v, handles_check(&handles), &handles);
	holds(v, drops_check(&drops), &drops);
	holds(v, stacks_check(&stacks), &stacks);
	holds(v, notices_check(&notices), &notices);
	holds(v, sites_check(&sites), &sites);
	holds(v, pacer_check(&pacer), &pacer);
	holds(v, ask_queue_check(&ask_queue), &ask_queue);
	holds(v, sweep_check(&sweep), &sweep);
	holds(v, swept_check(&swept), &swept);
	holds(v, workers_check(&workers), &workers);
	holds(v, scavenger_check(&scavenger), &scavenger);
}

static void verify_pages(struct rt_verify *v, const struct sums *sums,
			 const struct snapshot *s)
{
	const uint64_t *g = s->heapgauges;
	uint64_t nfree = pagealloc_count_free(&mheap.pages) + sums->cached_free;
	uint64_t nscav =
	    pagealloc_count_scavenged(&mheap.pages) + sums->cached_scavenged;
	uint64_t taken =
	    sums->heap_pages + sums->stack_pages + sums->work_pages;

	holds(v, pagealloc_check(&mheap.pages), &mheap.pages);
	equal(v, "free pages and spans do not add up", nfree + taken,
	      arena_used() >> RT_PAGE_SHIFT);
	equal(v, "heap_released is not the scavenged pages",
	      g[HEAPGAUGE_RELEASED], nscav << RT_PAGE_SHIFT);
	equal(v, "heap_free is not the free pages", g[HEAPGAUGE_FREE],
	      (nfree - nscav) << RT_PAGE_SHIFT);
	equal(v, "pages_in_use is not the heap spans",
	      g[HEAPGAUGE_PAGES_IN_USE], sums->heap_pages);
	equal(v, "heap_in_use is not the heap spans", g[HEAPGAUGE_IN_USE],
	      sums->heap_pages << RT_PAGE_SHIFT);
	equal(v,
	      "pages that the limit counts are not those of spans and caches",
	      mheap.taken,
	      sums->heap_pages + sums->stack_pages + sums->cached_free);
	holds(v, overflow_check(arena_used() >> RT_PAGE_SHIFT), &overflow);
}

static void verify_gauges(struct rt_verify *v, const struct sums *sums,
			  const struct snapshot *s)
{
	const uint64_t *g = s->heapgauges;

	equal(v, "total_alloc - total_free is not the bytes of objects",
	      g[HEAPGAUGE_TOTAL_ALLOC] - g[HEAPGAUGE_TOTAL_FREE], v->bytes);
	equal(v, "heap_live is not the bytes of objects",
	      s->heap_live + s->heap_dead, v->bytes);
	equal(v, "mspan_inuse is not the spans", s->mspan_inuse,
	      (sums->spans + sums->cached_spans) * sizeof(struct mspan));
	equal(v, "mcache_inuse is not the mcaches", s->mcache_inuse,
	      sums->mcache_bytes);
	equal(v, "mapped_ready is not what is mapped", s->mapped_ready,
	      arena_used() - g[HEAPGAUGE_RELEASED] + snapshot_beside_heap(s));
}

// verify_heapstats compares the statistics that are counted per P.
static void verify_heapstats(struct rt_verify *v, const struct sums *sums,
			     const struct snapshot *s)
{
	const struct heapstats_totals *h = &s->heap;

	holds(v, heapstats_totals_check(h), h);
	equal(v, "released differs in heapstats and heapgauge", h->released,
	      s->heapgauges[HEAPGAUGE_RELEASED]);
	equal(v, "committed and released are not the heap",
	      h->committed + h->released, arena_used());
	equal(v, "in_heap is not the heap spans", h->in_heap,
	      sums->heap_pages << RT_PAGE_SHIFT);
	equal(v, "in_stacks is not the stack spans", h->in_stacks,
	      sums->stack_pages << RT_PAGE_SHIFT);
	equal(v, "in_work_bufs is not the spans of work buffers",
	      h->in_work_bufs, sums->work_pages << RT_PAGE_SHIFT);
	equal(v, "large objects in statistics are not those in spans",
	      h->large_alloc_count - h->large_free_count, sums->large);
	equal(v, "large bytes in statistics are not those in spans",
	      h->large_alloc - h->large_free, sums->large_bytes);
	for (unsigned c = 0; c < SIZECLASS_COUNT; c++)
		equal(v, "small objects in statistics are not those in spans",
		      h->small_alloc_count[c] - h->small_free_count[c],
		      sums->small[c]);
}

void verify_heap(struct rt_verify *v)
{
	struct sums sums = {0};
	struct snapshot s;

	RT_ASSERT(stw_stopped());
	*v = (struct rt_verify){0};
	holds(v, arena_check(&arena), &arena);
	// Nothing else can be checked if the length of the heap is not known.
	if (!equal(v, "page allocator and heap have different lengths",
		   (uint64_t)mheap.pages.nchunks << RT_CHUNK_SHIFT,
		   arena_used()))
		return;
	verify_spans(v, &sums);
	verify_sets(v, &sums);
	verify_caches(v, &sums);
	verify_threads(v);
	verify_memory(v);
	verify_cycle(v);
	snapshot_stopped(&s, NULL);
	verify_pages(v, &sums, &s);
	verify_gauges(v, &sums, &s);
	verify_heapstats(v, &sums, &s);
}

// ---- walks ----

// host_kind returns the number by which a host knows the kind of a span's
// objects.
RT_INLINE int host_kind(const struct mspan *s)
{
	return (int)spanclass_host_kind(spanclass_kind(s->spanclass));
}

// next_heap_span finds the next span of the host's kind, or of any if kind is
// negative, as mheap_next_span does.  A span whose object is still being set up
// is left out.
static const struct mspan *next_heap_span(uint64_t *page, int kind)
{
	const struct mspan *s;

	while ((s = mheap_next_span(page)) != NULL)
		if (pageword_state(arena_pageword(mspan_page(s))) ==
			PAGEWORD_HEAP &&
		    (kind < 0 || kind == host_kind(s)))
			return s;
	return NULL;
}

// walk_word calls fn for the slots whose bits are set in x, of a span of small
// objects.  The lowest bit is bit first of the span.
static bool walk_word(const struct mspan *s, unsigned first, uint64_t x,
		      rt_walk_fn *fn, void *arg)
{
	const unsigned shift = sizeclass_bit_shift(s->sizeclass);
	const int kind = host_kind(s);

	for (; x != 0; x &= x - 1) {
		uint64_t offset = (uint64_t)(first + bits_ctz(x)) << shift;

		// An object of 24 bytes may begin before the granule.
		if (!sizeclass_is_aligned(s->sizeclass))
			offset = mspan_slot(s, offset) * s->elemsize;
		if (fn((void *)(s->base + offset), s->elemsize, kind, arg) ==
		    RT_WALK_STOP)
			return false;
	}
	return true;
}

// alive returns those bits of allocword w of a span that belong to living
// objects.
RT_INLINE uint64_t alive(const struct mspan *s, unsigned line, unsigned w)
{
	uint64_t x = atomic_u64_load_relaxed(mspan_lineword(s, line, w));

	if (RT_UNLIKELY(deadbits_span_has(s)))
		x &= ~deadbits_dead(deadbits_word(s, w));
	return x;
}

// walk_span calls fn for the objects of a span that are alive.  Returns false
// if fn ended the walk.
static bool walk_span(const struct mspan *s, rt_walk_fn *fn, void *arg)
{
	const unsigned line = epoch_alloc_line(epoch_sweepgen());
	const unsigned words = sizeclass_words(s->sizeclass);

	if (mspan_is_large(s))
		return !mspan_test(s, line, 0) || deadbits_slot(s, 0) ||
		       fn((void *)mspan_object(s, 0), mspan_usable(s),
			  host_kind(s), arg) != RT_WALK_STOP;
	for (unsigned w = 0; w < words; w++)
		if (!walk_word(s, w * 64, alive(s, line, w), fn, arg))
			return false;
	return true;
}

void verify_walk(int kind, rt_walk_fn *fn, void *arg)
{
	uint64_t page = 0;
	const struct mspan *s;

	RT_ASSERT(stw_stopped());
	while ((s = next_heap_span(&page, kind)) != NULL)
		if (!walk_span(s, fn, arg))
			return;
}

uint64_t verify_count(int kind)
{
	uint64_t page = 0, n = 0;
	const struct mspan *s;

	RT_ASSERT(stw_stopped());
	while ((s = next_heap_span(&page, kind)) != NULL)
		n += s->alloc_count;
	return n;
}
