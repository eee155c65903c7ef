// Keeps the tree of summaries up to date, and searches it.
#include "runtime/pages/pagealloc.h"

#include "runtime/os/throw.h"

// An entry of level l covers 2^log_pages(l) pages.  Its children are 8 entries
// of level l + 1, from entry * 8 on.  Entries of the last level, the leaves,
// cover one chunk each.
//
// Below the root, the last 8 entries of a level may reach beyond the chunks
// that exist.  There they are zero, "no page is free", so neither a search of
// these levels nor a merge has to know where the heap ends.
enum {
	LEAF = PAGEALLOC_LEVELS - 1,
	FANOUT = 1 << PAGEALLOC_FANOUT_LOG,
	CHUNK_LOG = RT_CHUNK_SHIFT - RT_PAGE_SHIFT,
};
static_assert(CHUNK_LOG + LEAF * PAGEALLOC_FANOUT_LOG == PALLOCSUM_LOG_MAX,
	      "a root entry is the longest range that a summary can tell");

#define CHUNK_FULL UINT64_C(0)
#define CHUNK_FREE                                                             \
	pallocsum_make(RT_CHUNK_PAGES, RT_CHUNK_PAGES, RT_CHUNK_PAGES)

static unsigned log_pages(unsigned level)
{
	return CHUNK_LOG + (LEAF - level) * PAGEALLOC_FANOUT_LOG;
}

// level_entries returns the number of entries of a level that nchunks chunks
// need: a multiple of 8, except in the root.
static uint64_t level_entries(unsigned level, uint32_t nchunks)
{
	unsigned log = log_pages(level) - CHUNK_LOG;
	uint64_t n = base_align_up(nchunks, UINT64_C(1) << log) >> log;

	return level == 0 ? n : base_align_up(n, FANOUT);
}

static pallocsum *level_sums(const struct pagealloc *pa, unsigned level)
{
	return (pallocsum *)pa->sums[level].base;
}

struct pallocdata *pagealloc_chunk(const struct pagealloc *pa, uint32_t chunk)
{
	return (struct pallocdata *)pa->chunks.base + chunk;
}

static uint64_t end_page(const struct pagealloc *pa)
{
	return (uint64_t)pa->nchunks * RT_CHUNK_PAGES;
}

bool pagealloc_init(struct pagealloc *pa, uint32_t max_chunks)
{
	atomic_u64 *stat = &gauges.gc_misc_sys;
	unsigned l = 0;

	*pa = (struct pagealloc){.max_chunks = max_chunks};
	if (!systable_init(&pa->chunks, max_chunks * sizeof(struct pallocdata),
			   stat, "page bitmaps"))
		return false;
	if (!scavindex_init(&pa->scav, max_chunks))
		goto fail_scav;
	for (; l < PAGEALLOC_LEVELS; l++)
		if (!systable_init(&pa->sums[l],
				   level_entries(l, max_chunks) *
				       sizeof(pallocsum),
				   stat, "page summaries"))
			goto fail_sums;
	return true;

fail_sums:
	while (l-- > 0)
		systable_fini(&pa->sums[l]);
	scavindex_fini(&pa->scav);
fail_scav:
	systable_fini(&pa->chunks);
	return false;
}

void pagealloc_fini(struct pagealloc *pa)
{
	for (unsigned l = PAGEALLOC_LEVELS; l-- > 0;)
		systable_fini(&pa->sums[l]);
	scavindex_fini(&pa->scav);
	systable_fini(&pa->chunks);
	*pa = (struct pagealloc){0};
}

bool pagealloc_reserve(struct pagealloc *pa, uint32_t nchunks)
{
	if (nchunks > pa->max_chunks)
		return false;
	for (unsigned l = 0; l < PAGEALLOC_LEVELS; l++)
		if (!systable_grow(&pa->sums[l], level_entries(l, nchunks) *
						     sizeof(pallocsum)))
			return false;
	return systable_grow(&pa->chunks,
			     nchunks * sizeof(struct pallocdata)) &&
	       scavindex_reserve(&pa->scav, nchunks);
}

// tables_hold tells whether the tables of nchunks chunks are usable.
static bool tables_hold(const struct pagealloc *pa, uint32_t nchunks)
{
	for (unsigned l = 0; l < PAGEALLOC_LEVELS; l++)
		if (level_entries(l, nchunks) * sizeof(pallocsum) >
		    systable_ready(&pa->sums[l]))
			return false;
	return nchunks * sizeof(struct pallocdata) <=
	       systable_ready(&pa->chunks);
}

// merged computes the summary of an entry from those of its children.
static pallocsum merged(const struct pagealloc *pa, unsigned level,
			uint64_t entry)
{
	return pallocsum_merge(level_sums(pa, level + 1) + entry * FANOUT,
			       FANOUT, log_pages(level + 1));
}

// walk_up brings the summaries above leaves lo to hi (inclusive) up to date, up
// to the first level where none changes.
static void walk_up(struct pagealloc *pa, uint64_t lo, uint64_t hi)
{
	bool changed = true;

	for (unsigned l = LEAF; l-- > 0 && changed;) {
		pallocsum *sums = level_sums(pa, l);

		lo >>= PAGEALLOC_FANOUT_LOG;
		hi >>= PAGEALLOC_FANOUT_LOG;
		changed = false;
		for (uint64_t e = lo; e <= hi; e++) {
			pallocsum sum = merged(pa, l, e);

			changed |= sum != sums[e];
			sums[e] = sum;
		}
	}
}

// chunk_count counts the bits of one of the bitmaps of a chunk.
static unsigned chunk_count(const struct pallocbits *b)
{
	return pallocbits_count_range(b, 0, RT_CHUNK_PAGES);
}

// check_chunk checks one chunk's bitmaps, leaf and count.
static const char *check_chunk(const struct pagealloc *pa, uint32_t chunk)
{
	const struct pallocdata *d = pagealloc_chunk(pa, chunk);

	for (unsigned w = 0; w < PALLOCBITS_WORDS; w++)
		if (d->alloc.word[w] & d->scavenged.word[w])
			return "page is both allocated and scavenged";
	if (level_sums(pa, LEAF)[chunk] != pallocbits_summarize(&d->alloc))
		return "summary of a chunk is not that of its pages";
	if (scavindex_in_use(&pa->scav, chunk) != chunk_count(&d->alloc))
		return "scavenge index counts other pages in use than the "
		       "chunk";
	return NULL;
}

// check_entry checks one entry of a level above the leaves.
static const char *check_entry(const struct pagealloc *pa, unsigned level,
			       uint64_t entry)
{
	return level_sums(pa, level)[entry] != merged(pa, level, entry)
		   ? "summary does not follow from its children"
		   : NULL;
}

// written checks what a change of chunks lo to hi (inclusive) has written: the
// chunks, and the entries above the last of them.
static const char *written(const struct pagealloc *pa, uint64_t lo, uint64_t hi)
{
	const char *wrong = NULL;

	if (pa->search_page > end_page(pa))
		return "search_page is beyond the heap";
	for (uint64_t c = lo; c <= hi && !wrong; c++)
		wrong = check_chunk(pa, (uint32_t)c);
	for (unsigned l = LEAF; l-- > 0 && !wrong;) {
		hi >>= PAGEALLOC_FANOUT_LOG;
		wrong = check_entry(pa, l, hi);
	}
	return wrong;
}

void pagealloc_grow(struct pagealloc *pa, uint32_t nchunks)
{
	uint32_t old = pa->nchunks;

	if (nchunks <= old)
		return;
	if (!tables_hold(pa, nchunks))
		throw_value("pagealloc_grow: no room", "nchunks", nchunks);
	scavindex_grow(&pa->scav, nchunks);
	for (uint32_t c = old; c < nchunks; c++) {
		pallocbits_set_range(&pagealloc_chunk(pa, c)->scavenged, 0,
				     RT_CHUNK_PAGES);
		level_sums(pa, LEAF)[c] = CHUNK_FREE;
	}
	// search_page is at most where the new pages begin.
	pa->nchunks = nchunks;
	walk_up(pa, old, nchunks - 1);
	RT_CHECK(written(pa, old, nchunks - 1));
}

// A search descends from the root to the lowest npages free pages in a row.
struct search {
	uint64_t npages;
	uint64_t page;	     // result: the first of these pages
	uint64_t first_free; // result: no free page below it
	uint64_t entry;	     // its children are searched next
	bool leftmost;	     // entry has the lowest free page of the heap
};

enum scan {
	SCAN_NOTHING, // no range is long enough
	SCAN_RANGE,   // the range begins at s->page
	SCAN_INSIDE,  // the range is inside s->entry
};

// scan_block searches the children of s->entry, which are of this level, for a
// range across their borders or for a child that has one inside.
static enum scan scan_block(const struct pagealloc *pa, unsigned level,
			    struct search *s)
{
	const pallocsum *sums = level_sums(pa, level);
	unsigned log = log_pages(level);
	uint64_t block = s->entry * FANOUT;
	uint64_t limit =
	    level == 0 ? level_entries(0, pa->nchunks) : block + FANOUT;
	uint64_t below = 0; // free pages just below entry e
	bool first = s->leftmost;

	// No page below search_page is free, so the entries below it are zero.
	for (uint64_t e = base_max(block, pa->search_page >> log); e < limit;
	     e++) {
		uint32_t start = pallocsum_start(sums[e]);

		if (sums[e] == CHUNK_FULL) {
			below = 0;
			continue;
		}
		if (first)
			s->first_free = e << log;
		if (below + start >= s->npages) {
			s->page = (e << log) - below;
			return SCAN_RANGE;
		}
		if (pallocsum_max(sums[e]) >= s->npages) {
			s->entry = e;
			s->leftmost = first;
			return SCAN_INSIDE;
		}
		below = start >> log ? below + start : pallocsum_end(sums[e]);
		first = false;
	}
	return SCAN_NOTHING;
}

// search_chunk finds the range inside a chunk, whose summary must promise it.
static void search_chunk(const struct pagealloc *pa, uint32_t chunk,
			 struct search *s)
{
	uint64_t base = (uint64_t)chunk * RT_CHUNK_PAGES;
	unsigned from = (unsigned)base_sub_sat(pa->search_page, base);
	unsigned first_free;
	unsigned i = pallocbits_find(&pagealloc_chunk(pa, chunk)->alloc,
				     (unsigned)s->npages, from, &first_free);

	if (i == PALLOCBITS_NONE)
		throw_value("pagealloc: chunk lacks what its summary says",
			    "chunk", chunk);
	s->page = base + i;
	if (s->leftmost)
		s->first_free = base + first_free;
}

static bool search_tree(const struct pagealloc *pa, struct search *s)
{
	for (unsigned l = 0; l < PAGEALLOC_LEVELS; l++) {
		enum scan scan = scan_block(pa, l, s);

		if (scan == SCAN_RANGE)
			return true;
		if (scan == SCAN_INSIDE)
			continue;
		if (l > 0)
			throw_value("pagealloc: children lack what their "
				    "summary says",
				    "entry", s->entry);
		return false;
	}
	search_chunk(pa, (uint32_t)s->entry, s);
	return true;
}

// search sets s->page to the lowest s->npages free pages in a row, and returns
// false if there are none.  It sets s->first_free in any case.
static bool search(const struct pagealloc *pa, struct search *s)
{
	uint32_t chunk = (uint32_t)(pa->search_page / RT_CHUNK_PAGES);

	s->first_free = end_page(pa);
	s->entry = 0;
	s->leftmost = true;
	// Most often the range is in the chunk of search_page.  A range that
	// leaves this chunk begins above every range inside it.
	if (chunk < pa->nchunks &&
	    pallocsum_max(level_sums(pa, LEAF)[chunk]) >= s->npages) {
		search_chunk(pa, chunk, s);
		return true;
	}
	return search_tree(pa, s);
}

// The part of a range of pages that lies in one chunk.
struct part {
	uint32_t chunk;
	unsigned i;
	unsigned n;
};

// part_at returns the first part of the range [page, limit).
static struct part part_at(uint64_t page, uint64_t limit)
{
	unsigned i = page % RT_CHUNK_PAGES;

	return (struct part){
	    .chunk = (uint32_t)(page / RT_CHUNK_PAGES),
	    .i = i,
	    .n = (unsigned)base_min(RT_CHUNK_PAGES - i, limit - page),
	};
}

static uint64_t range_limit(const struct pagealloc *pa, uint64_t page,
			    uint64_t npages)
{
	uint64_t end = end_page(pa);

	if (npages == 0 || page >= end || npages > end - page)
		throw_value("pagealloc: pages outside of the heap", "page",
			    page);
	return page + npages;
}

// require_alloc throws unless want pages of the part are allocated.
static void require_alloc(const struct pagealloc *pa, struct part part,
			  unsigned want)
{
	const struct pallocdata *d = pagealloc_chunk(pa, part.chunk);

	if (RT_UNLIKELY(pallocbits_count_range(&d->alloc, part.i, part.n) !=
			want))
		throw_value(want ? "pagealloc: freed page is free"
				 : "pagealloc: page is not free",
			    "page",
			    (uint64_t)part.chunk * RT_CHUNK_PAGES + part.i);
}

// update_leaf brings the summary of a part's chunk up to date and tells whether
// it changed.  If the part is all of the chunk, the summary becomes `whole`.
static bool update_leaf(struct pagealloc *pa, struct part part, pallocsum whole)
{
	const struct pallocdata *d = pagealloc_chunk(pa, part.chunk);
	pallocsum *leaf = &level_sums(pa, LEAF)[part.chunk];
	pallocsum old = *leaf;

	*leaf =
	    part.n == RT_CHUNK_PAGES ? whole : pallocbits_summarize(&d->alloc);
	return *leaf != old;
}

uint64_t pagealloc_alloc_range(struct pagealloc *pa, uint64_t page,
			       uint64_t npages)
{
	uint64_t limit = range_limit(pa, page, npages);
	uint64_t nscav = 0;
	bool changed = false;
	struct part part;

	for (uint64_t p = page; p < limit; p += part.n) {
		part = part_at(p, limit);
		require_alloc(pa, part, 0);
		nscav += pallocdata_alloc_range(pagealloc_chunk(pa, part.chunk),
						part.i, part.n);
		scavindex_alloc(&pa->scav, part.chunk, part.n);
		changed |= update_leaf(pa, part, CHUNK_FULL);
	}
	if (changed)
		walk_up(pa, page / RT_CHUNK_PAGES,
			(limit - 1) / RT_CHUNK_PAGES);
	RT_CHECK(
	    written(pa, page / RT_CHUNK_PAGES, (limit - 1) / RT_CHUNK_PAGES));
	return nscav;
}

uint64_t pagealloc_alloc(struct pagealloc *pa, uint64_t npages, uint64_t *nscav)
{
	struct search s = {.npages = npages};
	bool found = search(pa, &s);

	*nscav = 0;
	if (found)
		*nscav = pagealloc_alloc_range(pa, s.page, npages);
	if (found && s.page == s.first_free)
		s.first_free += npages;
	pa->search_page = base_max(pa->search_page, s.first_free);
	return found ? s.page : PAGEALLOC_NONE;
}

bool pagealloc_is_free(const struct pagealloc *pa, uint64_t page,
		       uint64_t npages)
{
	uint64_t end = end_page(pa);
	uint64_t limit = page + npages;
	struct part part;

	if (page > end || npages > end - page)
		return false;
	for (uint64_t p = page; p < limit; p += part.n) {
		part = part_at(p, limit);
		if (pallocbits_count_range(
			&pagealloc_chunk(pa, part.chunk)->alloc, part.i,
			part.n) != 0)
			return false;
	}
	return true;
}

// look_aligned looks at every multiple of align where npages pages may be free.
static uint64_t look_aligned(const struct pagealloc *pa, uint64_t npages,
			     uint64_t align)
{
	uint64_t page = base_align_up(pa->search_page, align);

	while (page < end_page(pa)) {
		uint64_t chunk = page / RT_CHUNK_PAGES;
		pallocsum sum = level_sums(pa, LEAF)[chunk];

		if (pallocsum_max(sum) < npages && pallocsum_end(sum) == 0) {
			page =
			    base_align_up((chunk + 1) * RT_CHUNK_PAGES, align);
			continue;
		}
		if (pagealloc_is_free(pa, page, npages))
			return page;
		page += align;
	}
	return PAGEALLOC_NONE;
}

bool pagealloc_fits(const struct pagealloc *pa, uint64_t npages)
{
	struct search s = {.npages = npages};

	return search(pa, &s);
}

uint64_t pagealloc_alloc_aligned(struct pagealloc *pa, uint64_t npages,
				 uint64_t align, uint64_t *nscav)
{
	struct search s = {.npages = npages + align - 1};
	uint64_t page;

	*nscav = 0;
	if (search(pa, &s))
		page = base_align_up(s.page, align);
	else
		page = look_aligned(pa, npages, align);
	pa->search_page = base_max(pa->search_page, s.first_free);
	if (page != PAGEALLOC_NONE)
		*nscav = pagealloc_alloc_range(pa, page, npages);
	return page;
}

// free_bits frees the pages of a range, and leaves summaries out of date.
static void free_bits(struct pagealloc *pa, struct pagealloc_range range)
{
	uint64_t limit = range_limit(pa, range.page, range.npages);
	struct part part;

	for (uint64_t p = range.page; p < limit; p += part.n) {
		part = part_at(p, limit);
		require_alloc(pa, part, part.n);
		pallocbits_clear_range(&pagealloc_chunk(pa, part.chunk)->alloc,
				       part.i, part.n);
		scavindex_free(&pa->scav, part.chunk, part.n);
	}
	pa->search_page = base_min(pa->search_page, range.page);
}

// update_chunks brings the summaries of chunks lo to hi (inclusive) up to date.
static void update_chunks(struct pagealloc *pa, uint64_t lo, uint64_t hi)
{
	pallocsum *leaf = level_sums(pa, LEAF);
	bool changed = false;

	for (uint64_t c = lo; c <= hi; c++) {
		const struct pallocdata *d = pagealloc_chunk(pa, (uint32_t)c);
		pallocsum sum = pallocbits_summarize(&d->alloc);

		changed |= sum != leaf[c];
		leaf[c] = sum;
	}
	if (changed)
		walk_up(pa, lo, hi);
	RT_CHECK(written(pa, lo, hi));
}

void pagealloc_free_ranges(struct pagealloc *pa,
			   const struct pagealloc_range *range,
			   unsigned nranges)
{
	uint64_t lo = 0, hi = 0; // chunks with summaries out of date

	for (unsigned i = 0; i < nranges; i++) {
		uint64_t first = range[i].page / RT_CHUNK_PAGES;

		if (i == 0) {
			lo = first;
		} else if (first != hi) {
			update_chunks(pa, lo, hi);
			lo = first;
		}
		free_bits(pa, range[i]);
		hi = (range[i].page + range[i].npages - 1) / RT_CHUNK_PAGES;
	}
	if (nranges != 0)
		update_chunks(pa, lo, hi);
}

void pagealloc_free(struct pagealloc *pa, uint64_t page, uint64_t npages)
{
	struct pagealloc_range range = {page, npages};

	pagealloc_free_ranges(pa, &range, 1);
}

// block_at returns the block that begins with page base.
static struct part block_at(const struct pagealloc *pa, uint64_t base)
{
	uint64_t limit = range_limit(pa, base, PAGEALLOC_BLOCK_PAGES);

	if (base % PAGEALLOC_BLOCK_PAGES != 0)
		throw_value("pagealloc: no block begins here", "base", base);
	return part_at(base, limit);
}

// take_block takes every free page of a block.
static void take_block(struct pagealloc *pa, struct part block,
		       struct pagealloc_block *b)
{
	struct pallocdata *d = pagealloc_chunk(pa, block.chunk);

	b->base = (uint64_t)block.chunk * RT_CHUNK_PAGES + block.i;
	b->taken = ~d->alloc.word[block.i / 64];
	b->scav = d->scavenged.word[block.i / 64];
	pallocdata_alloc_range(d, block.i, block.n);
	scavindex_alloc(&pa->scav, block.chunk, bits_count(b->taken));
	if (update_leaf(pa, block, CHUNK_FULL))
		walk_up(pa, block.chunk, block.chunk);
	RT_CHECK(written(pa, block.chunk, block.chunk));
}

bool pagealloc_take_block(struct pagealloc *pa, unsigned npages,
			  struct pagealloc_block *b)
{
	struct search s = {.npages = npages};
	bool found = search(pa, &s);
	uint64_t base = base_align_down(s.page, PAGEALLOC_BLOCK_PAGES);
	uint64_t limit = base + PAGEALLOC_BLOCK_PAGES;

	*b = (struct pagealloc_block){0};
	pa->search_page = base_max(pa->search_page, s.first_free);
	if (!found || s.page + npages > limit)
		return false;
	take_block(pa, block_at(pa, base), b);
	// The block is full now.
	if (s.first_free >= base)
		pa->search_page = limit;
	return true;
}

bool pagealloc_retake_block(struct pagealloc *pa, uint64_t base,
			    unsigned npages, struct pagealloc_block *b)
{
	struct part block = block_at(pa, base);
	const struct pallocdata *d = pagealloc_chunk(pa, block.chunk);
	uint64_t free = ~d->alloc.word[block.i / 64];
	uint64_t scav = d->scavenged.word[block.i / 64];

	*b = (struct pagealloc_block){0};
	if (free == scav || bits_find_range(free, npages) == 64)
		return false;
	take_block(pa, block, b);
	return true;
}

void pagealloc_free_block(struct pagealloc *pa, uint64_t base, uint64_t taken,
			  uint64_t scav)
{
	struct part block = block_at(pa, base);
	struct pallocdata *d = pagealloc_chunk(pa, block.chunk);

	if (scav & ~taken || taken & ~d->alloc.word[block.i / 64])
		throw_value("pagealloc_free_block: pages were not taken",
			    "base", base);
	d->alloc.word[block.i / 64] &= ~taken;
	d->scavenged.word[block.i / 64] |= scav;
	scavindex_free(&pa->scav, block.chunk, bits_count(taken));
	if (update_leaf(pa, block, CHUNK_FREE))
		walk_up(pa, block.chunk, block.chunk);
	pa->search_page = base_min(pa->search_page, base);
	RT_CHECK(written(pa, block.chunk, block.chunk));
}

void pagealloc_set_scavenged(struct pagealloc *pa, uint64_t page,
			     uint64_t npages)
{
	uint64_t limit = range_limit(pa, page, npages);
	struct part part;

	for (uint64_t p = page; p < limit; p += part.n) {
		part = part_at(p, limit);
		require_alloc(pa, part, 0);
		pallocbits_set_range(
		    &pagealloc_chunk(pa, part.chunk)->scavenged, part.i,
		    part.n);
		RT_CHECK(check_chunk(pa, part.chunk));
	}
}

uint64_t pagealloc_count_free(const struct pagealloc *pa)
{
	uint64_t n = end_page(pa);

	for (uint32_t c = 0; c < pa->nchunks; c++)
		n -= chunk_count(&pagealloc_chunk(pa, c)->alloc);
	return n;
}

uint64_t pagealloc_count_scavenged(const struct pagealloc *pa)
{
	uint64_t n = 0;

	for (uint32_t c = 0; c < pa->nchunks; c++)
		n += chunk_count(&pagealloc_chunk(pa, c)->scavenged);
	return n;
}

// check_level checks the entries of a level above the leaves, and that children
// beyond the last chunk are zero.
static const char *check_level(const struct pagealloc *pa, unsigned level)
{
	const pallocsum *below = level_sums(pa, level + 1);
	unsigned log = log_pages(level) - CHUNK_LOG;
	const char *wrong = NULL;
	uint64_t e;

	for (e = 0; e << log < pa->nchunks && !wrong; e++)
		wrong = check_entry(pa, level, e);
	if (wrong)
		return wrong;
	log -= PAGEALLOC_FANOUT_LOG;
	for (e = 0; e < level_entries(level + 1, pa->nchunks); e++)
		if (e << log >= pa->nchunks && below[e] != CHUNK_FULL)
			return "summary beyond the last chunk is not 0";
	return NULL;
}

// check_search checks that the pages below search_page are all allocated.
static const char *check_search(const struct pagealloc *pa)
{
	struct part part;

	if (pa->search_page > end_page(pa))
		return "search_page is beyond the heap";
	for (uint64_t p = 0; p < pa->search_page; p += part.n) {
		part = part_at(p, pa->search_page);
		if (pallocbits_count_range(
			&pagealloc_chunk(pa, part.chunk)->alloc, part.i,
			part.n) != part.n)
			return "page below search_page is free";
	}
	return NULL;
}

static const char *check_tables(const struct pagealloc *pa)
{
	const char *wrong = systable_check(&pa->chunks);

	for (unsigned l = 0; l < PAGEALLOC_LEVELS && !wrong; l++)
		wrong = systable_check(&pa->sums[l]);
	if (!wrong &&
	    (pa->nchunks > pa->max_chunks || !tables_hold(pa, pa->nchunks)))
		wrong = "page allocator is longer than its tables";
	if (!wrong)
		wrong = scavindex_check(&pa->scav);
	if (!wrong && pa->scav.nchunks != pa->nchunks)
		wrong =
		    "scavenge index and page allocator have different lengths";
	return wrong;
}

const char *pagealloc_check(const struct pagealloc *pa)
{
	const char *wrong = check_tables(pa);

	for (uint32_t c = 0; !wrong && c < pa->nchunks; c++)
		wrong = check_chunk(pa, c);
	for (unsigned l = 0; !wrong && l < LEAF; l++)
		wrong = check_level(pa, l);
	return wrong ? wrong : check_search(pa);
}
