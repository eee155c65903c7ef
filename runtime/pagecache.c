#include "runtime/pagecache.h"

#include "runtime/throw.h"

static_assert(PAGECACHE_PAGES == 64, "one bit a page in one word");

uint64_t pagecache_alloc(struct pagecache *c, unsigned npages, uint64_t *nscav)
{
	unsigned i = npages <= PAGECACHE_PAGES
			 ? bits_find_last_run(c->cache, npages)
			 : PAGECACHE_PAGES;
	uint64_t mask;

	*nscav = 0;
	if (i == PAGECACHE_PAGES)
		return PAGEALLOC_NONE;
	mask = bits_mask(i, i + npages);
	*nscav = bits_count(c->scav & mask);
	c->cache &= ~mask;
	c->scav &= ~mask;
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
}

// remember makes a block the latest; the oldest is forgotten.
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

// take_block takes pages for an empty cache and returns their block.
static uint64_t take_block(struct pagecache *c, struct pagealloc *pa)
{
	for (unsigned i = 0; i < c->nrecent; i++)
		if (pagealloc_retake_block(pa, c->recent[i], &c->cache,
					   &c->scav))
			return c->recent[i];
	return pagealloc_take_block(pa, &c->cache, &c->scav);
}

void pagecache_fill(struct pagecache *c, struct pagealloc *pa)
{
	uint64_t base;

	if (!pagecache_empty(c))
		rt_throw_value("pagecache_fill: cache is not empty", "cache",
			       c->cache);
	base = take_block(c, pa);
	if (base == PAGEALLOC_NONE)
		return;
	c->base = base;
	c->zero = c->scav;
	remember(c, base);
}

void pagecache_keep(struct pagecache *c, struct pagealloc *pa, unsigned npages)
{
	uint64_t back = c->cache;

	for (unsigned i = 0; i < npages && back != 0; i++)
		back &= back - 1;
	if (back == 0)
		return;
	pagealloc_put_block(pa, c->base, back, c->scav & back);
	c->cache &= ~back;
	c->scav &= ~back;
}

void pagecache_flush(struct pagecache *c, struct pagealloc *pa)
{
	if (!pagecache_empty(c))
		pagealloc_put_block(pa, c->base, c->cache, c->scav);
	*c = (struct pagecache){0};
}
