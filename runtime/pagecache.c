#include "runtime/pagecache.h"

#include "runtime/throw.h"

static_assert(PAGECACHE_PAGES == 64, "one bit a page in one word");

uint64_t pagecache_alloc(struct pagecache *c, unsigned npages, uint64_t *nscav)
{
	unsigned i = npages <= PAGECACHE_PAGES ? bits_find_run(c->cache, npages)
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

void pagecache_fill(struct pagecache *c, struct pagealloc *pa)
{
	uint64_t base;

	if (!pagecache_empty(c))
		rt_throw_value("pagecache_fill: cache is not empty", "cache",
			       c->cache);
	base = pagealloc_take_block(pa, &c->cache, &c->scav);
	c->base = base == PAGEALLOC_NONE ? 0 : base;
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
