// pagecache.h - up to 64 free pages that one P owns.
//
// Go: pageCache (mpagecache.go).  A 64-page aligned block whose free pages
// are marked allocated in the page allocator; they still count as free or
// released.  Allocation and freeing here need no lock; filling and flushing
// need the heap lock.
//
// Memory is cheapest for the core that last wrote to it.  So a cache remembers
// the blocks that it was filled from, and asks for the latest of them first:
// what a collection frees of them comes back to the P that dirtied it, and
// the part that it dirtied last is still near.  The blocks are not held; any
// P whose lowest free page is there takes them.
#ifndef RUNTIME_PAGES_PAGECACHE_H
#define RUNTIME_PAGES_PAGECACHE_H

#include "runtime/pages/pagealloc.h"

enum {
	PAGECACHE_PAGES = PAGEALLOC_BLOCK_PAGES,
	PAGECACHE_MAX_NPAGES = PAGECACHE_PAGES / 4, // used below this
	PAGECACHE_LOW_NPAGES = 5, // from here on the lowest pages are taken
	PAGECACHE_RECENT = 8, // blocks: 4 MiB, as large as a core's own cache
};

struct pagecache {
	uint64_t base;	// first page of the block
	uint64_t cache; // bit i: page base + i is ours and free
	uint64_t scav;	// bit i: and it is scavenged
	uint64_t zero;	// bit i: it was zero when it came; 1 where scav is
	unsigned nrecent;
	uint64_t recent[PAGECACHE_RECENT]; // bases of blocks, the latest first
};

RT_INLINE bool pagecache_empty(const struct pagecache *c)
{
	return c->cache == 0;
}

// pagecache_alloc takes npages (at least 1) pages in a row; PAGEALLOC_NONE:
// there are none.  *nscav tells how many of them were scavenged.
//
// Few pages are the highest there are, since a run is used from its end
// (rt_run): so the addresses that a thread writes to fall within a block, which
// processors foresee.  Of PAGECACHE_LOW_NPAGES and more they are the lowest:
// what is then left at the end of a block is too short, but with the first
// pages of the next block it is long enough for the page allocator.
uint64_t pagecache_alloc(struct pagecache *c, unsigned npages, uint64_t *nscav);

// pagecache_is_zero tells whether pages that were just taken read as zero.
RT_INLINE bool pagecache_is_zero(const struct pagecache *c, uint64_t page,
				 unsigned npages)
{
	unsigned i = (unsigned)(page - c->base);
	uint64_t mask = bits_mask(i, i + npages);

	return (c->zero & mask) == mask;
}

// pagecache_scavenged is the number of scavenged pages in a row just below
// page, which is in the block; at most max.  pagecache_populated notes
// that they have memory behind them now, which reads as zero.
unsigned pagecache_scavenged(const struct pagecache *c, uint64_t page,
			     unsigned max);
void pagecache_populated(struct pagecache *c, uint64_t page, unsigned npages);

// pagecache_fits tells whether the cache has npages pages in a row.
RT_INLINE bool pagecache_fits(const struct pagecache *c, unsigned npages)
{
	return bits_find_run(c->cache, npages) != PAGECACHE_PAGES;
}

// pagecache_fill gives back what is left and takes all free pages of a block
// with npages free pages in a row: of the latest one that has some with memory
// behind them, else of that with the lowest.  The cache is empty after it if
// there are none, or the lowest lie in two blocks.
void pagecache_fill(struct pagecache *c, struct pagealloc *pa, unsigned npages);

// pagecache_keep gives all back but most pages, at least npages: the lowest
// npages pages in a row, which the cache has unless it is empty, and the lowest
// of the others.
void pagecache_keep(struct pagecache *c, struct pagealloc *pa, unsigned npages,
		    unsigned most);

// pagecache_flush gives every page back, scavenged ones as such, and leaves the
// cache empty.  Its blocks are remembered: a collection flushes every cache,
// and the next filling is to come from where the last one did.
void pagecache_flush(struct pagecache *c, struct pagealloc *pa);

#endif
