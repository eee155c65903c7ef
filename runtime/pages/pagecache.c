// Takes pages from a cache, and fills and flushes it.
#include "runtime/pages/pagecache.h"

#include "runtime/os/throw.h"

static_assert(PAGECACHE_PAGES == 64, "one bit a page in one word");

// find returns the bit of the first of npages pages in a row, or
// PAGECACHE_PAGES.
static unsigned find(const struct pagecache *c, unsigned npages)
{
	if (npages > PAGECACHE_PAGES)
		return PAGECACHE_PAGES;
	return npages < PAGECACHE_LOW_NPAGES
		   ? bits_find_last_range(c->cache, npages)
		   : bits_find_range(c->cache, npages);
}

uint64_t pagecache_alloc(struct pagecache *c, unsigned npages, uint64_t *nscav)
{
	unsigned i = find(c, npages);
	uint64_t mask;

	*nscav = 0;
	if (i == PAGECACHE_PAGES)
		return PAGEALLOC_NONE;
	mask = bits_mask(i, i + npages);
	*nscav = bits_count(c->scav & mask);
	c->cache &= ~mask;
	c->scav &= ~mask;
	RT_CHECK(pagecache_check(c));
	return c->base + i;
}

unsigned pagecache_scavenged(const struct pagecache *c, uint64_t page,
			     unsigned max)
{
	unsigned i = (unsigned)(page - c->base);
	unsigned n = 0;

	while (n < max && n < i && c->scav >> (i - 1 - n) & 1)
		n++;
	return n;
}

void pagecache_populated(struct pagecache *c, uint64_t page, unsigned npages)
{
	unsigned i = (unsigned)(page - c->base);

	c->scav &= ~bits_mask(i, i + npages);
	RT_CHECK(pagecache_check(c));
}

// free_rest frees the rest of the cache.
static void free_rest(struct pagecache *c, struct pagealloc *pa)
{
	if (!pagecache_empty(c))
		pagealloc_free_block(pa, c->base, c->cache, c->scav);
	c->cache = c->scav = 0;
}

// remember makes a block the latest.  If there is no room, the oldest is
// forgotten.
static void remember(struct pagecache *c, uint64_t base)
{
	uint64_t latest = base;

	for (unsigned i = 0; i < c->nrecent; i++) {
		uint64_t later = c->recent[i];

		c->recent[i] = latest;
		if (later == base)
			return;
		latest = later;
	}
	if (c->nrecent < PAGECACHE_RECENT)
		c->recent[c->nrecent++] = latest;
}

// take_block takes the pages of a block for an empty cache.
static bool take_block(const struct pagecache *c, struct pagealloc *pa,
		       unsigned npages, struct pagealloc_block *b)
{
	for (unsigned i = 0; i < c->nrecent; i++)
		if (pagealloc_retake_block(pa, c->recent[i], npages, b))
			return true;
	return pagealloc_take_block(pa, npages, b);
}

void pagecache_fill(struct pagecache *c, struct pagealloc *pa, unsigned npages)
{
	struct pagealloc_block b;

	free_rest(c, pa);
	if (!take_block(c, pa, npages, &b))
		return;
	c->base = b.base;
	c->cache = b.taken;
	c->scav = c->zero = b.scav;
	remember(c, b.base);
	RT_CHECK(pagecache_check(c));
}

void pagecache_keep(struct pagecache *c, struct pagealloc *pa, unsigned npages,
		    unsigned most)
{
	unsigned first = bits_find_range(c->cache, npages);
	uint64_t back;

	if (first == PAGECACHE_PAGES)
		return;
	back = c->cache & ~bits_mask(first, first + npages);
	for (unsigned n = npages; n < most && back != 0; n++)
		back &= back - 1;
	if (back == 0)
		return;
	pagealloc_free_block(pa, c->base, back, c->scav & back);
	c->cache &= ~back;
	c->scav &= ~back;
	RT_CHECK(pagecache_check(c));
}

void pagecache_flush(struct pagecache *c, struct pagealloc *pa)
{
	free_rest(c, pa);
	c->base = c->zero = 0;
	RT_CHECK(pagecache_check(c));
}

const char *pagecache_check(const struct pagecache *c)
{
	if (c->base % PAGECACHE_PAGES != 0)
		return "page cache begins inside a block";
	if (c->scav & ~c->cache)
		return "page cache has a scavenged page that it does not cache";
	if (c->scav & ~c->zero)
		return "page cache has a scavenged page that is not zero";
	if (c->nrecent > PAGECACHE_RECENT)
		return "page cache remembers too many blocks";
	for (unsigned i = 0; i < c->nrecent; i++) {
		if (c->recent[i] % PAGECACHE_PAGES != 0)
			return "page cache remembers a place inside a block";
		for (unsigned k = 0; k < i; k++)
			if (c->recent[k] == c->recent[i])
				return "page cache remembers a block twice";
	}
	return NULL;
}
