// pagecache.h - up to 64 free pages that one P owns.
//
// Go: pageCache (mpagecache.go).
//
// The pages are free pages of one block.  They are marked allocated in the page
// allocator, but still count as free or released.  Allocation here needs no
// lock.  Functions that take a pagealloc need the heap lock.
//
// Memory is cheapest for the core that last wrote to it.  So a cache remembers
// the blocks that it was filled from and tries the latest first.  The pages
// that a collection frees there return to the P that wrote to them, and those
// written last may still be in its core's cache.  A remembered block is not
// reserved: any P that finds the lowest free pages in it takes it.
#ifndef RUNTIME_PAGES_PAGECACHE_H
#define RUNTIME_PAGES_PAGECACHE_H

#include "runtime/pages/pagealloc.h"

enum {
	PAGECACHE_PAGES = PAGEALLOC_BLOCK_PAGES,
	PAGECACHE_MAX_NPAGES = PAGECACHE_PAGES / 4, // for fewer pages only
	PAGECACHE_LOW_NPAGES = 5, // from here on the lowest pages are taken
	PAGECACHE_RECENT = 8, // blocks: 4 MiB, as large as a core's own cache
};

struct pagecache {
	uint64_t base;	// first page of the block
	uint64_t cache; // bit i: page base + i is in the cache
	uint64_t scav;	// bit i: it is in the cache and scavenged
	uint64_t zero;	// bit i: it was scavenged, and so zero, when the cache
			// was filled
	unsigned nrecent;
	uint64_t recent[PAGECACHE_RECENT]; // bases of blocks, the latest first
};

RT_INLINE bool pagecache_empty(const struct pagecache *c)
{
	return c->cache == 0;
}

// pagecache_count returns how many pages the cache has.
RT_INLINE unsigned pagecache_count(const struct pagecache *c)
{
	return bits_count(c->cache);
}

// pagecache_alloc takes npages (at least 1) pages in a row and sets *nscav to
// the number of them that were scavenged.  Returns the first page, or
// PAGEALLOC_NONE if there are none.
//
// If npages is below PAGECACHE_LOW_NPAGES, it takes the highest pages that fit.
// A run is used from its end (rt_run), so a thread's writes then go down
// through the whole block, and the processor can prefetch ahead of them.
// Otherwise it takes the lowest pages that fit.  The pages left at the end of
// the block may be too few, but the page allocator can join them with the first
// pages of the next block.
uint64_t pagecache_alloc(struct pagecache *c, unsigned npages, uint64_t *nscav);

// pagecache_is_zero tells whether pages that were just taken read as zero.
RT_INLINE bool pagecache_is_zero(const struct pagecache *c, uint64_t page,
				 unsigned npages)
{
	unsigned i = (unsigned)(page - c->base);
	uint64_t mask = bits_mask(i, i + npages);

	return (c->zero & mask) == mask;
}

// pagecache_scavenged returns the number, at most max, of scavenged pages in a
// row just below page, which must be in the block.  pagecache_populated notes
// that npages pages from page on, which were scavenged, now have memory behind
// them.  That memory reads as zero.
unsigned pagecache_scavenged(const struct pagecache *c, uint64_t page,
			     unsigned max);
void pagecache_populated(struct pagecache *c, uint64_t page, unsigned npages);

// pagecache_fits tells whether the cache has npages pages in a row.
RT_INLINE bool pagecache_fits(const struct pagecache *c, unsigned npages)
{
	return bits_find_range(c->cache, npages) != PAGECACHE_PAGES;
}

// pagecache_fill frees the pages left and takes all free pages of a block that
// has npages free pages in a row.  It tries the remembered blocks first, except
// those whose free pages are all scavenged.  Then it tries the block where the
// lowest row of npages free pages of the heap lies.  If there is no such row,
// or if that one crosses the border of a block, the cache is empty afterwards.
void pagecache_fill(struct pagecache *c, struct pagealloc *pa, unsigned npages);

// pagecache_keep frees pages until the cache has no more than most, which must
// be at least npages.  It keeps the lowest npages pages in a row and the lowest
// of the others.  The cache must have npages pages in a row, or be empty.
void pagecache_keep(struct pagecache *c, struct pagealloc *pa, unsigned npages,
		    unsigned most);

// pagecache_flush frees every page; scavenged ones stay scavenged.  The cache
// still remembers its blocks: a collection flushes every cache, and the next
// filling should come from the same place as the last one.
void pagecache_flush(struct pagecache *c, struct pagealloc *pa);

// pagecache_check returns NULL if all invariants of a cache hold, otherwise
// what does not.  The caller must own it, or its owner must be stopped.  Debug
// builds call it at each change.
const char *pagecache_check(const struct pagecache *c);

#endif
