// pagecache.h - up to 64 free pages that one P owns.  Floor 3.
//
// Go: pageCache (mpagecache.go).  A 64-page aligned block whose free pages
// are marked allocated in the page allocator; they still count as free or
// released.  Allocation and freeing here need no lock; filling and flushing
// need the heap lock.
#ifndef RUNTIME_PAGECACHE_H
#define RUNTIME_PAGECACHE_H

#include "runtime/pagealloc.h"

enum {
	PAGECACHE_PAGES = PAGEALLOC_BLOCK_PAGES,
	PAGECACHE_MAX_NPAGES = PAGECACHE_PAGES / 4, // used below this
};

struct pagecache {
	uint64_t base;	// first page of the block
	uint64_t cache; // bit i: page base + i is ours and free
	uint64_t scav;	// bit i: and it is scavenged
};

RT_INLINE bool pagecache_empty(const struct pagecache *c)
{
	return c->cache == 0;
}

// pagecache_alloc takes npages (at least 1) pages in a row, PAGEALLOC_NONE if
// there are none; *nscav tells how many of them were scavenged.
uint64_t pagecache_alloc(struct pagecache *c, unsigned npages, uint64_t *nscav);

// pagecache_fill takes all free pages of the block of the lowest free page.
// The cache is empty before; it stays so if there is no free page.
void pagecache_fill(struct pagecache *c, struct pagealloc *pa);

// pagecache_keep gives all but the lowest npages pages back.
void pagecache_keep(struct pagecache *c, struct pagealloc *pa, unsigned npages);

// pagecache_flush gives every page back, scavenged ones as such, and leaves
// the cache empty.
void pagecache_flush(struct pagecache *c, struct pagealloc *pa);

#endif
