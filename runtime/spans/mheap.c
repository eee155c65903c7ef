// Takes pages for spans, grows the heap, and frees spans.
#include "runtime/spans/mheap.h"

#include <string.h>

#include "runtime/os/schedpoint.h"
#include "runtime/os/throw.h"
#include "runtime/os/settings.h"
#include "runtime/os/poison.h"
#include "runtime/world/stw.h"
#include "runtime/pages/hugepages.h"
#include "runtime/spans/pagecount.h"

// Ranges of pages that are freed under one acquisition of the lock.  A chunk in
// which every second page is dead takes four acquisitions.
enum { BATCH_RANGES = RT_CHUNK_PAGES / 8 };

struct mheap mheap = {.lock = RT_MUTEX_INIT(LOCKRANK_MHEAP)};

bool mheap_init(void)
{
	mheap.freed_await = 0;
	mheap.taken_await = 0;
	mheap.taken_all = false;
	atomic_u32_store_relaxed(&mheap.taken_much, 0);
	atomic_u32_store_relaxed(&mheap.freed_much, 0);
	mheap.taken = 0;
	mheap.max = arena.reserved >> RT_PAGE_SHIFT;
	// Pages populated ahead must not be protected.
	atomic_u32_store_relaxed(&mheap.populate,
				 settings()->populate != 0 && !guard_on);
	// Not zeroed: a late popper of mcentral may read a freed mspan's node.
	fixalloc_init(&mheap.spans, sizeof(struct mspan), LFSTACK_ALIGN, false,
		      &gauges.mspan_sys);
	fixalloc_init(&mheap.bitmap8s,
		      2 * RT_PAGE_WORDS * sizeof(struct linewords),
		      RT_CACHE_LINE, true, &gauges.gc_misc_sys);
	if (!hugepages_init())
		return false;
	if (pagealloc_init(&mheap.pages,
			   (uint32_t)(arena.reserved >> RT_CHUNK_SHIFT)))
		return true;
	hugepages_fini();
	return false;
}

void mheap_fini(void)
{
	pagealloc_fini(&mheap.pages);
	hugepages_fini();
}

// check_fields checks all but pages and free structures.
static const char *check_fields(const struct mheap *h)
{
	const char *wrong = mutex_check(&h->lock);

	if (!wrong)
		wrong = sema_check(&h->turn);
	// Only the thread that has the turn changes in_hand, and no thread is
	// stopped while it has the turn.
	if (!wrong && h->in_hand && stw_stopped())
		wrong = "pages are in hand in a stop";
	if (!wrong && h->spans.inuse != gauge_load(&gauges.mspan_inuse))
		wrong = "mspan_inuse differs from the mspans handed out";
	if (!wrong && atomic_u32_load_relaxed(&h->populate) > 1)
		wrong = "populate is neither on nor off";
	if (!wrong && h->max > arena.reserved >> RT_PAGE_SHIFT)
		wrong = "limit of the heap is beyond its range";
	return wrong;
}

// ---- the limit of the heap ----

void mheap_set_max(uint64_t npages)
{
	mutex_lock(&mheap.lock);
	mheap.max = npages;
	RT_CHECK(check_fields(&mheap));
	mutex_unlock(&mheap.lock);
}

// room returns how many more pages may be taken.
static uint64_t room(void)
{
	RT_ASSERT(mutex_held(&mheap.lock));
	return base_sub_sat(mheap.max, mheap.taken);
}

// count_taken counts npages pages that are about to be taken.  Returns false,
// and counts nothing, if the limit of the heap does not allow them.
static bool count_taken(uint64_t npages, enum mspan_use use)
{
	RT_ASSERT(mutex_held(&mheap.lock));
	if (use == MSPAN_WORK) // those are the collector's own
		return true;
	if (mheap.taken + npages > mheap.max)
		return false;
	mheap.taken += npages;
	return true;
}

static void count_untaken(uint64_t npages, enum mspan_use use)
{
	RT_ASSERT(mutex_held(&mheap.lock));
	if (use == MSPAN_WORK)
		return;
	RT_ASSERT(mheap.taken >= npages);
	mheap.taken -= npages;
}

// ---- mspan structures ----

// spans_take returns an mspan, or NULL if the system refuses memory for one.
static struct mspan *spans_take(void)
{
	struct mspan *s;

	RT_ASSERT(mutex_held(&mheap.lock));
	s = fixalloc_alloc(&mheap.spans);
	if (s)
		gauge_add_locked(&gauges.mspan_inuse, sizeof *s);
	RT_CHECK(check_fields(&mheap));
	return s;
}

static void spans_free(struct mspan *s)
{
	RT_ASSERT(mutex_held(&mheap.lock));
	mspan_free(s);
	fixalloc_free(&mheap.spans, s);
	gauge_add_locked(&gauges.mspan_inuse, -(int64_t)sizeof *s);
	RT_CHECK(check_fields(&mheap));
}

// note_taken counts pages that were taken, and raises taken_much when there are
// as many as mheap_await_taken asked for.
static void note_taken(uint64_t npages, uint64_t nscav)
{
	uint64_t n = mheap.taken_all ? npages : nscav;

	RT_ASSERT(mutex_held(&mheap.lock));
	if (RT_LIKELY(mheap.taken_await > n)) {
		mheap.taken_await -= n;
	} else if (mheap.taken_await != 0) {
		mheap.taken_await = 0;
		atomic_u32_store_relaxed(&mheap.taken_much, 1);
	}
}

// cache_exchange frees the pages of a P's cache and fills it with others, if
// there are npages pages in a row.  Near the limit of the heap a cache gets
// less, so that one P does not take all that is left.
static void cache_exchange(struct mheap_cache *cache, unsigned npages)
{
	uint64_t before = pagecache_count(&cache->pages);
	uint64_t left = room() + before;
	uint64_t least = base_max(npages, MHEAP_CACHE_FIRST);
	uint64_t share, most;

	if (left < npages)
		return;
	cache->filling = (unsigned)base_min(base_max(2 * cache->filling, least),
					    PAGECACHE_PAGES);
	// A multiple of npages: pages left over in caches would lie scattered.
	share = left / 8 - left / 8 % npages;
	most = base_max(base_min(cache->filling, share), npages);
	pagecache_fill(&cache->pages, &mheap.pages, npages);
	pagecache_keep(&cache->pages, &mheap.pages, npages, (unsigned)most);
	mheap.taken += pagecache_count(&cache->pages) - before;
	note_taken(base_sub_sat(pagecache_count(&cache->pages), before),
		   bits_count(cache->pages.scav));
}

// cache_fill fills a P's cache with pages, unless it has npages pages in a row,
// and with mspans for them.  It may find no such pages, or not enough mspans.
// The caller must hold the heap lock.
static void cache_fill(struct mheap_cache *cache, unsigned npages)
{
	RT_ASSERT(mutex_held(&mheap.lock));
	if (!pagecache_fits(&cache->pages, npages))
		cache_exchange(cache, npages);
	while (cache->nspans < base_min(cache->filling, MHEAP_CACHE_SPANS)) {
		struct mspan *s = spans_take();

		if (!s)
			return;
		cache->spans[cache->nspans++] = s;
	}
	RT_CHECK(mheap_cache_check(cache));
}

// flush_pages frees the pages of a P's cache.  The caller must hold the heap
// lock.
static void flush_pages(struct mheap_cache *cache)
{
	mheap.taken -= pagecache_count(&cache->pages);
	pagecache_flush(&cache->pages, &mheap.pages);
}

// A P that fills its cache at most once between two collections ends up with
// first fillings only.  A P that fills it often takes whole blocks again from
// the second filling after a flush.
void mheap_cache_flush(struct mheap_cache *cache)
{
	cache->filling /= 4;
	if (pagecache_empty(&cache->pages) && cache->nspans == 0)
		return;
	mutex_lock(&mheap.lock);
	flush_pages(cache);
	while (cache->nspans > 0)
		spans_free(cache->spans[--cache->nspans]);
	RT_CHECK(mheap_cache_check(cache));
	mutex_unlock(&mheap.lock);
}

// ---- pages ----

// free_tail returns the number of free pages at the heap's end, or at least
// npages if there are so many.  It visits only the chunks that npages would
// fill.
static uint64_t free_tail(uint64_t npages)
{
	uint64_t n = 0;

	RT_ASSERT(mutex_held(&mheap.lock));
	for (uint32_t i = mheap.pages.nchunks; i-- > 0 && n < npages;) {
		const struct pallocdata *c = pagealloc_chunk(&mheap.pages, i);
		uint32_t end = pallocsum_end(pallocbits_summarize(&c->alloc));

		n += end;
		if (end != RT_CHUNK_PAGES)
			break;
	}
	return n;
}

// enlarge sets the length of the heap to total chunks.  They must be prepared,
// and the caller must hold the heap lock.
static void enlarge(struct rt_proc *p, uint32_t total)
{
	uint64_t more = (uint64_t)(total - mheap.pages.nchunks)
			<< RT_CHUNK_SHIFT;
	struct heapstats_delta *d;

	RT_ASSERT(mutex_held(&mheap.lock));
	if (more == 0)
		return;
	arena_grow(total);
	d = heapstats_acquire(p);
	heapstats_add(&d->released, more);
	heapstats_release(p);
	pagealloc_grow(&mheap.pages, total);
}

// A thread holds this lock while it prepares memory.  It does not hold the heap
// lock, because the system may make it wait for another thread's page fault.
static struct mutex growth = RT_MUTEX_INIT(LOCKRANK_GROWTH);

static bool prepare_chunks(uint32_t nchunks)
{
	return pagealloc_reserve(&mheap.pages, nchunks) &&
	       hugepages_reserve(nchunks) && arena_prepare(nchunks);
}

// memory_locked tells whether the system locks the memory of the next chunk.
static bool memory_locked(void)
{
	return sysmem_locked((void *)(arena.base + arena_prepared()));
}

// chunks_ahead returns how many chunks to prepare if some are prepared ahead: a
// thirty-second more than now.  If the system locks memory, prepared chunks
// take memory at once, so no chunk is prepared ahead.
static uint32_t chunks_ahead(void)
{
	uint64_t bytes = arena_prepared();
	uint32_t now = (uint32_t)(bytes >> RT_CHUNK_SHIFT);
	uint32_t ahead = now + (uint32_t)base_min(now / 32, MHEAP_STEP_MAX);

	if (memory_locked())
		return now;
	return (uint32_t)base_min(ahead, mheap.pages.max_chunks);
}

static bool prepared(uint64_t total)
{
	return total << RT_CHUNK_SHIFT <= arena_prepared();
}

// prepare_ahead makes total chunks usable, and some ahead if the system grants
// them.  Returns false if it refuses total.
static bool prepare_ahead(uint32_t total)
{
	uint32_t ahead = chunks_ahead();

	return (ahead > total && prepare_chunks(ahead)) ||
	       prepare_chunks(total);
}

// prepare makes total chunks usable, unless another thread has done so
// meanwhile.  Returns false if the system refuses them.
static bool prepare(uint32_t total)
{
	bool ok;

	mutex_lock(&growth);
	ok = prepared(total) || prepare_ahead(total);
	mutex_unlock(&growth);
	return ok;
}

// prepare_early is prepare for chunks that nothing needs yet.  It refuses them
// if the system would lock them, and so take memory for them.
static bool prepare_early(uint32_t total)
{
	bool ok;

	mutex_lock(&growth);
	ok = prepared(total) || (!memory_locked() && prepare_ahead(total));
	mutex_unlock(&growth);
	return ok;
}

// await_in_hand waits until the pages that another thread has in hand are free
// again.  Returns false if there are none.  The caller must hold the heap lock,
// which is released meanwhile.  The other thread is running and needs only this
// lock and that of hugepages.  So the wait is as long as its system calls, and
// a stop can wait for it.  In a stop no page is in hand.
static bool await_in_hand(void)
{
	RT_ASSERT(mutex_held(&mheap.lock));
	if (!mheap.in_hand)
		return false;
	RT_ASSERT(!stw_stopped());
	mutex_unlock(&mheap.lock);
	schedpoint(SCHED_AWAIT_IN_HAND);
	sema_acquire(&mheap.turn);
	mutex_lock(&mheap.lock);
	// The thread that has the next turn must first take the heap lock.  So
	// the caller can look for pages before more are in hand.
	sema_release(&mheap.turn);
	return true;
}

bool mheap_add_typebits(void)
{
	bool ok;

	mutex_lock(&growth);
	ok = arena_add_typebits();
	mutex_unlock(&growth);
	return ok;
}

bool mheap_add_deadbits(void)
{
	bool ok;

	mutex_lock(&growth);
	ok = arena_add_deadbits();
	mutex_unlock(&growth);
	return ok;
}

// grow makes the heap longer, by whole chunks, until npages pages fit at its
// end.  Returns false if the system refuses or the range is too short.  The
// caller must hold the heap lock, which may be released meanwhile.
static bool grow(struct rt_proc *p, uint64_t npages)
{
	uint64_t most = (uint64_t)mheap.pages.max_chunks * RT_CHUNK_PAGES;

	RT_ASSERT(mutex_held(&mheap.lock));
	if (npages > most)
		return false;
	for (;;) {
		uint64_t missing = base_sub_sat(npages, free_tail(npages));
		uint64_t total =
		    mheap.pages.nchunks +
		    (missing + RT_CHUNK_PAGES - 1) / RT_CHUNK_PAGES;
		bool ok;

		if (total > mheap.pages.max_chunks)
			return false;
		if (prepared(total)) {
			enlarge(p, (uint32_t)total);
			return true;
		}
		mutex_unlock(&mheap.lock);
		schedpoint(SCHED_GROW);
		ok = prepare((uint32_t)total);
		mutex_lock(&mheap.lock);
		// Otherwise pages in hand at the end would not count as free.
		await_in_hand();
		if (!ok)
			return false;
	}
}

// Pages that were taken and are not yet counted.
struct grant {
	struct mspan *span;
	uint64_t page;
	uint64_t nscav;		   // its pages that were scavenged
	bool zero;		   // all its pages read as zero
	struct mheap_cache *cache; // its pages come from this cache, or NULL
};

// take_cached takes an mspan and pages from a P's cache, without a lock.
static bool take_cached(struct mheap_cache *cache, uint64_t npages,
			struct grant *g)
{
	if (cache->nspans == 0)
		return false;
	g->page = pagecache_alloc(&cache->pages, (unsigned)npages, &g->nscav);
	if (g->page == PAGEALLOC_NONE)
		return false;
	g->zero = pagecache_is_zero(&cache->pages, g->page, (unsigned)npages);
	g->cache = cache;
	g->span = cache->spans[--cache->nspans];
	RT_CHECK(mheap_cache_check(cache));
	return true;
}

// Pages in a row that are wanted.
struct pages {
	uint64_t npages;
	uint64_t align; // in pages; 1: any
	enum mspan_use use;
};

static uint64_t find_pages(struct pages n, uint64_t *nscav)
{
	return n.align == 1 ? pagealloc_alloc(&mheap.pages, n.npages, nscav)
			    : pagealloc_alloc_aligned(&mheap.pages, n.npages,
						      n.align, nscav);
}

// take_locked takes an mspan and pages.  The mspan comes first, so no pages
// have to be freed for want of one.  The caller must hold the heap lock, which
// may be released meanwhile.  The pages count as taken from the beginning, so
// no other thread can then take what the limit leaves for them.
static bool take_locked(struct rt_proc *p, struct pages n, struct grant *g)
{
	if (!count_taken(n.npages, n.use))
		return false;
	g->span = spans_take();
	if (!g->span) {
		count_untaken(n.npages, n.use);
		return false;
	}
	g->page = find_pages(n, &g->nscav);
	if (g->page == PAGEALLOC_NONE && await_in_hand())
		g->page = find_pages(n, &g->nscav);
	if (g->page == PAGEALLOC_NONE) {
		bool grown = grow(p, n.npages + n.align - 1);

		// Even if it has not grown, pages may have been freed
		// meanwhile.
		g->page = find_pages(n, &g->nscav);
		if (g->page == PAGEALLOC_NONE && grown)
			throw_fatal(
			    "grew heap, but no adequate free space found");
	}
	if (g->page == PAGEALLOC_NONE) {
		spans_free(g->span);
		count_untaken(n.npages, n.use);
		return false;
	}
	if (n.use != MSPAN_WORK) // those are the collector's own
		note_taken(n.npages, g->nscav);
	// Scavenged pages read as zero.
	g->zero = g->nscav == n.npages;
	g->cache = NULL;
	return true;
}

static bool take_pages(struct rt_proc *p, struct mheap_cache *cache,
		       struct pages n, struct grant *g)
{
	uint64_t npages = n.npages;
	bool small = cache && npages < PAGECACHE_MAX_NPAGES && n.align == 1;
	bool ok;

	if (small && take_cached(cache, npages, g))
		return true;
	mutex_lock(&mheap.lock);
	if (small)
		cache_fill(cache, (unsigned)npages);
	ok = (small && take_cached(cache, npages, g)) || take_locked(p, n, g);
	// Pages in the P's own cache may complete a range of npages pages.
	// They also count as used in the limit.
	if (!ok && cache && !pagecache_empty(&cache->pages)) {
		flush_pages(cache);
		ok = take_locked(p, n, g);
	}
	// The cache could not be filled before if the pages lay in two blocks,
	// or if the heap had to grow.
	if (ok && small && !g->cache)
		cache_fill(cache, (unsigned)npages);
	mutex_unlock(&mheap.lock);
	return ok;
}

// ---- spans ----

// populate makes the system bring in pages that a P has just taken, and the
// scavenged ones in its cache that come next.  This may take as long as
// clearing a huge page, so the caller must hold no lock.
static void populate(struct rt_proc *p, struct mheap_cache *cache,
		     uint64_t page, uint64_t npages)
{
	unsigned ahead =
	    pagecache_scavenged(&cache->pages, page, MHEAP_POPULATE);
	uint64_t first = page - ahead;

	if (ahead == 0 || atomic_u32_load_relaxed(&mheap.populate) == 0)
		return;
	if (!sysmem_populate((void *)arena_page_address(first),
			     (npages + ahead) << RT_PAGE_SHIFT)) {
		atomic_u32_store_relaxed(&mheap.populate, 0);
		return;
	}
	pagecache_populated(&cache->pages, first, ahead);
	pagecount_populated(p, ahead);
}

// untake frees a new span whose pages have been counted.
static void untake(struct rt_proc *p, struct mspan *s, enum mspan_use use)
{
	pagecount_free(p, use, s->npages);
	mutex_lock(&mheap.lock);
	count_untaken(s->npages, use);
	pagealloc_free(&mheap.pages, mspan_page(s), s->npages);
	spans_free(s);
	mutex_unlock(&mheap.lock);
}

static struct mspan *
span_alloc_aligned(struct rt_proc *p, struct mheap_cache *cache, struct pages n)
{
	uint64_t npages = n.npages;
	struct grant g;

	if (!take_pages(p, cache, n, &g))
		return NULL;
	g.span->base = arena_page_address(g.page);
	g.span->npages = npages;
	g.span->needzero = !g.zero;
	if (RT_UNLIKELY(poison_on)) // poisoned by their last use
		poison_unpoison((void *)g.span->base, npages << RT_PAGE_SHIFT);
	pagecount_alloc(p, n.use, npages, g.nscav);
	if (RT_UNLIKELY(guard_on) && !guard_unprotect(g.page, npages)) {
		untake(p, g.span, n.use);
		return NULL;
	}
	if (g.cache && g.nscav != 0 && g.cache->filling >= MHEAP_POPULATE)
		populate(p, g.cache, g.page, npages);
	return g.span;
}

static struct mspan *span_alloc(struct rt_proc *p, struct mheap_cache *cache,
				uint64_t npages, enum mspan_use use)
{
	struct pages n = {npages, 1, use};

	return span_alloc_aligned(p, cache, n);
}

static struct linewords *bitmap8_take(void)
{
	struct linewords *bitmap8;

	mutex_lock(&mheap.lock);
	bitmap8 = fixalloc_alloc(&mheap.bitmap8s);
	mutex_unlock(&mheap.lock);
	return bitmap8;
}

static void bitmap8_free(struct linewords *bitmap8)
{
	mutex_lock(&mheap.lock);
	fixalloc_free(&mheap.bitmap8s, bitmap8);
	mutex_unlock(&mheap.lock);
}

struct mspan *mheap_alloc_small(struct rt_proc *p, struct mheap_cache *cache,
				spanclass sc)
{
	unsigned c = spanclass_size(sc);
	struct linewords *bitmap8 = NULL;
	struct mspan *s;

	if (c == 1) {
		bitmap8 = bitmap8_take();
		if (!bitmap8)
			return NULL;
	}
	s = span_alloc(p, cache, sizeclass_table[c].npages, MSPAN_HEAP);
	if (!s) {
		if (bitmap8)
			bitmap8_free(bitmap8);
		return NULL;
	}
	mspan_init_small(s, sc, bitmap8);
	if (RT_UNLIKELY(poison_on))
		poison_poison((void *)s->base, s->npages << RT_PAGE_SHIFT);
	arena_publish(mspan_page(s), s->npages, s, c, spanclass_kind(sc),
		      PAGEWORD_HEAP);
	return s;
}

// publish_one sets the alloc bit of a span of one object and publishes the
// span.
RT_INLINE void publish_one(struct mspan *s, unsigned kind, uint64_t bit)
{
	// Pairs with the acquire in object_test: a thread that sees the bit
	// also sees that these pages were withdrawn from their last use
	// (look_up).
	atomic_u64_store_release(
	    mspan_lineword(s, epoch_alloc_line(epoch_sweepgen()), 0), bit);
	arena_publish(mspan_page(s), s->npages, s, 0, kind,
		      PAGEWORD_SETTING_UP);
}

struct mspan *mheap_alloc_large(struct rt_proc *p, struct mheap_cache *cache,
				unsigned kind, size_t request)
{
	struct mspan *s = span_alloc(p, cache, base_pages(request), MSPAN_HEAP);

	if (!s)
		return NULL;
	mspan_init_large(s, kind, request);
	publish_one(s, kind, 1);
	return s;
}

struct mspan *mheap_alloc_aligned(struct rt_proc *p, struct mheap_cache *cache,
				  unsigned kind, size_t request, size_t align)
{
	struct pages n = {base_pages(request), align >> RT_PAGE_SHIFT,
			  MSPAN_HEAP};
	struct mspan *s = span_alloc_aligned(p, cache, n);

	if (!s)
		return NULL;
	mspan_init_large(s, kind, request);
	publish_one(s, kind, 1);
	return s;
}

struct mspan *mheap_alloc_guarded(struct rt_proc *p, struct mheap_cache *cache,
				  unsigned kind, size_t request)
{
	struct mspan *s =
	    span_alloc(p, cache, guard_pages(request), MSPAN_HEAP);

	if (!s)
		return NULL;
	mspan_init_guarded(s, kind, request);
	publish_one(s, kind, *mspan_masks(s));
	return s;
}

void mheap_publish_large(struct mspan *s)
{
	RT_ASSERT(pageword_state(arena_pageword(mspan_page(s))) ==
		  PAGEWORD_SETTING_UP);
	arena_set_state(mspan_page(s), s->npages, PAGEWORD_HEAP);
}

struct mspan *mheap_alloc_manual(struct rt_proc *p, uint64_t npages,
				 enum mspan_use use)
{
	struct mspan *s = span_alloc(p, NULL, npages, use);

	if (!s)
		return NULL;
	mspan_init_manual(s, use);
	arena_publish(mspan_page(s), npages, s, 0, 0, PAGEWORD_MANUAL);
	return s;
}

// Spans to be freed together.  Neighbours in the list that are neighbours in
// the heap, as most are after a sweep, are freed as one range.
struct batch {
	unsigned nranges;
	uint64_t npages;
	struct pagealloc_range range[BATCH_RANGES];
	struct fixalloc_list spans;
	struct fixalloc_list bitmap8s;
};

// batch_range adds pages to the last range, or as a new one.  Returns false if
// there is no room.
static bool batch_range(struct batch *b, uint64_t page, uint64_t npages)
{
	struct pagealloc_range *next = &b->range[b->nranges];

	if (b->nranges != 0 && page == next[-1].page + next[-1].npages) {
		next[-1].npages += npages;
	} else {
		if (b->nranges == BATCH_RANGES)
			return false;
		*next = (struct pagealloc_range){page, npages};
		b->nranges++;
	}
	b->npages += npages;
	return true;
}

// batch_pages adds the pages of the first spans of a list, all of one use.
// Returns the first span that had no room, or NULL.
static struct mspan *batch_pages(struct batch *b, struct mspan *list,
				 enum mspan_use use)
{
	uint32_t gen = epoch_sweepgen();
	struct mspan *s;

	b->nranges = 0;
	b->npages = 0;
	for (s = list; s; s = s->next) {
		if (s->use != use || s->alloc_count != 0 || s->cached ||
		    (use == MSPAN_HEAP &&
		     atomic_u32_load_relaxed(&s->sweepgen) != gen))
			throw_fatal("mheap.freeSpanLocked - invalid free");
		if (!batch_range(b, mspan_page(s), s->npages))
			break;
	}
	return s;
}

// batch_structures adds the mspans and bitmap8s of the spans up to end.  Every
// look-up must already miss them.
static void batch_structures(struct batch *b, struct mspan *list,
			     const struct mspan *end)
{
	b->spans = b->bitmap8s = (struct fixalloc_list){0};
	for (struct mspan *s = list, *next; s != end; s = next) {
		next = s->next;
		if (s->use == MSPAN_HEAP && s->sizeclass == 1)
			fixalloc_list_add(&b->bitmap8s, mspan_lines(s));
		mspan_free(s);
		fixalloc_list_add(&b->spans, s);
	}
}

// note_freed counts freed bytes, and raises freed_much when there are as many
// as mheap_await_freed asked for.
static void note_freed(uint64_t bytes)
{
	RT_ASSERT(mutex_held(&mheap.lock));
	if (RT_LIKELY(mheap.freed_await > bytes)) {
		mheap.freed_await -= bytes;
	} else if (mheap.freed_await != 0) {
		mheap.freed_await = 0;
		atomic_u32_store_relaxed(&mheap.freed_much, 1);
	}
}

void mheap_await_freed(uint64_t bytes)
{
	mutex_lock(&mheap.lock);
	mheap.freed_await = bytes;
	atomic_u32_store_relaxed(&mheap.freed_much, 0);
	mutex_unlock(&mheap.lock);
}

bool mheap_take_freed(void)
{
	return atomic_u32_cas_relaxed(&mheap.freed_much, 1, 0);
}

// batch_release frees the pages and structures of a batch.
static void batch_release(const struct batch *b, enum mspan_use use)
{
	mutex_lock(&mheap.lock);
	count_untaken(b->npages, use);
	pagealloc_free_ranges(&mheap.pages, b->range, b->nranges);
	fixalloc_free_list(&mheap.bitmap8s, &b->bitmap8s);
	fixalloc_free_list(&mheap.spans, &b->spans);
	gauge_add_locked(&gauges.mspan_inuse,
			 -(int64_t)(b->spans.n * sizeof(struct mspan)));
	if (use != MSPAN_WORK) // those are the collector's own
		note_freed(b->npages << RT_PAGE_SHIFT);
	RT_CHECK(check_fields(&mheap));
	mutex_unlock(&mheap.lock);
}

// free_spans frees a list of spans of one use, a batch at a time.
static void free_spans(struct rt_proc *p, struct mspan *list,
		       enum mspan_use use)
{
	while (list) {
		struct batch b;
		struct mspan *end = batch_pages(&b, list, use);

		for (unsigned i = 0; i < b.nranges; i++)
			arena_withdraw(b.range[i].page, b.range[i].npages);
		batch_structures(&b, list, end);
		pagecount_free(p, use, b.npages);
		batch_release(&b, use);
		list = end;
	}
}

void mheap_free(struct rt_proc *p, struct mspan *list)
{
	free_spans(p, list, MSPAN_HEAP);
}

void mheap_free_manual(struct rt_proc *p, struct mspan *s)
{
	if (s->use != MSPAN_STACK && s->use != MSPAN_WORK)
		throw_fatal("mheap.freeSpanLocked - invalid stack free");
	s->next = NULL;
	free_spans(p, s, s->use);
}

// ---- pages in hand ----

void mheap_begin_turn(void)
{
	sema_acquire(&mheap.turn);
	mutex_lock(&mheap.lock);
	RT_ASSERT(!mheap.in_hand);
}

void mheap_set_in_hand(bool any)
{
	mheap.in_hand = any;
	mutex_unlock(&mheap.lock);
}

void mheap_end_turn(uint64_t page, uint64_t npages, bool scavenged)
{
	if (npages != 0) {
		mutex_lock(&mheap.lock);
		pagealloc_free(&mheap.pages, page, npages);
		if (scavenged)
			pagealloc_set_scavenged(&mheap.pages, page, npages);
		mheap.in_hand = false;
		mutex_unlock(&mheap.lock);
	}
	sema_release(&mheap.turn);
}

void mheap_await_taken(uint64_t npages, bool all)
{
	mutex_lock(&mheap.lock);
	mheap.taken_await = npages;
	mheap.taken_all = all;
	atomic_u32_store_relaxed(&mheap.taken_much, 0);
	mutex_unlock(&mheap.lock);
}

bool mheap_take_taken(void)
{
	return atomic_u32_cas_relaxed(&mheap.taken_much, 1, 0);
}

bool mheap_extend(struct rt_proc *p, uint64_t npages)
{
	uint64_t chunks = (npages + RT_CHUNK_PAGES - 1) / RT_CHUNK_PAGES;
	uint64_t total;

	mutex_lock(&mheap.lock);
	total = mheap.pages.nchunks + chunks;
	mutex_unlock(&mheap.lock);
	if (total > mheap.pages.max_chunks || !prepare_early((uint32_t)total))
		return false;
	mutex_lock(&mheap.lock);
	// Another thread may have made it longer meanwhile.
	enlarge(p, (uint32_t)base_max(total, mheap.pages.nchunks));
	mutex_unlock(&mheap.lock);
	return true;
}

bool mheap_choose_huge_pages(void)
{
	bool wanted;

	mutex_lock(&mheap.lock);
	wanted = !mheap.in_hand && hugepages_choose(&mheap.pages);
	mutex_unlock(&mheap.lock);
	return wanted;
}

bool mheap_fits(const struct mheap_cache *cache, uint64_t npages)
{
	bool fits;

	if (cache && npages < PAGECACHE_MAX_NPAGES &&
	    pagecache_fits(&cache->pages, (unsigned)npages))
		return true;
	mutex_lock(&mheap.lock);
	fits = pagealloc_fits(&mheap.pages, npages);
	mutex_unlock(&mheap.lock);
	return fits;
}

void mheap_chunk_pages(uint32_t chunk, struct pallocbits *taken)
{
	mutex_lock(&mheap.lock);
	*taken = pagealloc_chunk(&mheap.pages, chunk)->alloc;
	mutex_unlock(&mheap.lock);
}

struct mspan *mheap_next_span(uint64_t *page)
{
	uint64_t end = arena_used() >> RT_PAGE_SHIFT;

	RT_ASSERT(stw_stopped());
	for (uint64_t i = *page; i < end; i++) {
		struct mspan *s = arena_span(i);

		if (s) {
			*page = mspan_page(s) + s->npages;
			return s;
		}
	}
	*page = end;
	return NULL;
}

// ---- large objects of another size ----

// set_pages sets a large span's number of pages, and the size that follows.
static void set_pages(struct mspan *s, uint64_t npages)
{
	s->npages = npages;
	s->elemsize = npages << RT_PAGE_SHIFT;
}

// take_behind takes pages behind a span.  Returns false if they are not free,
// or if the limit of the heap does not allow them.
static bool take_behind(const struct mspan *s, uint64_t more, uint64_t *nscav)
{
	uint64_t page = mspan_page(s) + s->npages;
	bool ok;

	mutex_lock(&mheap.lock);
	ok = pagealloc_is_free(&mheap.pages, page, more) &&
	     count_taken(more, MSPAN_HEAP);
	if (ok) {
		*nscav = pagealloc_alloc_range(&mheap.pages, page, more);
		note_taken(more, *nscav);
	}
	mutex_unlock(&mheap.lock);
	return ok;
}

// untake_behind frees pages that are counted, but are not published.  It keeps
// their pagewords, which say whether the pages are protected.
static void untake_behind(struct rt_proc *p, uint64_t page, uint64_t npages)
{
	pagecount_free(p, MSPAN_HEAP, npages);
	mutex_lock(&mheap.lock);
	count_untaken(npages, MSPAN_HEAP);
	pagealloc_free(&mheap.pages, page, npages);
	note_freed(npages << RT_PAGE_SHIFT);
	mutex_unlock(&mheap.lock);
}

static void free_behind(struct rt_proc *p, uint64_t page, uint64_t npages)
{
	arena_withdraw(page, npages);
	untake_behind(p, page, npages);
}

// enlarge_span gives a large span more pages.
static bool enlarge_span(struct rt_proc *p, struct mspan *s, uint64_t more)
{
	uint64_t page = mspan_page(s) + s->npages;
	void *begin = (void *)arena_page_address(page);
	uint32_t pageword = arena_pageword(mspan_page(s));
	uint64_t nscav;

	if (!take_behind(s, more, &nscav))
		return false;
	if (RT_UNLIKELY(poison_on)) // poisoned by their last use
		poison_unpoison(begin, more << RT_PAGE_SHIFT);
	pagecount_alloc(p, MSPAN_HEAP, more, nscav);
	if (RT_UNLIKELY(guard_on) && !guard_unprotect(page, more)) {
		untake_behind(p, page, more);
		return false;
	}
	if (nscav != more)
		memset(begin, 0, more << RT_PAGE_SHIFT);
	set_pages(s, s->npages + more);
	arena_extend(mspan_page(s), s->npages - more, more, s, pageword);
	return true;
}

bool mheap_resize_large(struct rt_proc *p, struct mspan *s, size_t request)
{
	uint64_t npages = base_pages(request);
	uint64_t old = s->npages;

	RT_ASSERT(mspan_is_large(s) && !mspan_is_guarded(s));
	RT_ASSERT(atomic_u32_load_relaxed(&s->sweepgen) == epoch_sweepgen());
	if (npages > old && !enlarge_span(p, s, npages - old))
		return false;
	mspan_set_request(s, request);
	if (npages < old) {
		set_pages(s, npages);
		free_behind(p, mspan_page(s) + npages, old - npages);
	}
	RT_CHECK(mspan_check(s));
	return true;
}

// ---- invariants ----

const char *mheap_check(const struct mheap *h)
{
	const char *wrong = check_fields(h);

	if (!wrong)
		wrong = fixalloc_check(&h->spans);
	return wrong ? wrong : fixalloc_check(&h->bitmap8s);
}

const char *mheap_cache_check(const struct mheap_cache *cache)
{
	const char *wrong = pagecache_check(&cache->pages);

	if (wrong)
		return wrong;
	if (cache->filling > PAGECACHE_PAGES)
		return "cache was filled with more than a block";
	if (cache->nspans > MHEAP_CACHE_SPANS)
		return "cache has more mspans than room";
	for (unsigned i = 0; i < cache->nspans; i++) {
		if (!cache->spans[i])
			return "cache counts an mspan that it does not have";
		if (cache->spans[i]->use != MSPAN_FREE)
			return "cached mspan is in use";
	}
	return NULL;
}
