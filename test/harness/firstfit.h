// firstfit.h - a page allocator that is too simple to be wrong: it looks at all
// pages from the first.
#ifndef TEST_HARNESS_FIRSTFIT_H
#define TEST_HARNESS_FIRSTFIT_H

#include <string.h>

#include "runtime/pages/pagealloc.h"

enum { FIRSTFIT_MAX = 130 * RT_CHUNK_PAGES };
enum { FIRSTFIT_FREE, FIRSTFIT_SCAVENGED, FIRSTFIT_USED };

static struct {
	char state[FIRSTFIT_MAX]; // FIRSTFIT_…
	uint32_t npages;	  // that exist
} firstfit;

static inline bool firstfit_used(uint64_t page)
{
	return firstfit.state[page] == FIRSTFIT_USED;
}

static inline void firstfit_set(uint64_t page, uint64_t n, int state)
{
	memset(firstfit.state + page, state, n);
}

static inline void firstfit_grow(uint32_t npages)
{
	firstfit_set(firstfit.npages, npages - firstfit.npages,
		     FIRSTFIT_SCAVENGED);
	firstfit.npages = npages;
}

// firstfit_find returns the first of the lowest n free pages in a row, or
// PAGEALLOC_NONE.
static inline uint64_t firstfit_find(uint64_t n)
{
	uint64_t length = 0;

	for (uint64_t p = 0; p < firstfit.npages; p++) {
		length = firstfit_used(p) ? 0 : length + 1;
		if (length == n)
			return p + 1 - n;
	}
	return PAGEALLOC_NONE;
}

// firstfit_length returns how many pages from page on are all free, or all
// used: at most max.
static inline uint64_t firstfit_length(uint64_t page, uint64_t max)
{
	uint64_t n = 1;

	while (n < max && page + n < firstfit.npages &&
	       firstfit_used(page + n) == firstfit_used(page))
		n++;
	return n;
}

static inline bool firstfit_is_free(uint64_t page, uint64_t n)
{
	return page + n <= firstfit.npages && !firstfit_used(page) &&
	       firstfit_length(page, n) == n;
}

// firstfit_take makes pages used and returns how many were scavenged.
static inline uint64_t firstfit_take(uint64_t page, uint64_t n)
{
	uint64_t nscav = 0;

	for (uint64_t p = page; p < page + n; p++)
		nscav += firstfit.state[p] == FIRSTFIT_SCAVENGED;
	firstfit_set(page, n, FIRSTFIT_USED);
	return nscav;
}

// firstfit_block returns what a block at base would hold.
static inline struct pagealloc_block firstfit_block(uint64_t base)
{
	struct pagealloc_block b = {.base = base};

	for (unsigned i = 0; i < PAGEALLOC_BLOCK_PAGES; i++) {
		int state = firstfit.state[base + i];

		b.taken |= (uint64_t)(state != FIRSTFIT_USED) << i;
		b.scav |= (uint64_t)(state == FIRSTFIT_SCAVENGED) << i;
	}
	return b;
}

static inline void firstfit_take_block(const struct pagealloc_block *b)
{
	for (unsigned i = 0; i < PAGEALLOC_BLOCK_PAGES; i++)
		if (b->taken >> i & 1)
			firstfit_take(b->base + i, 1);
}

// firstfit_differs compares every page.  Returns NULL if the two allocators
// agree, otherwise where they differ.
static inline const char *firstfit_differs(const struct pagealloc *pa)
{
	uint64_t nfree = 0, nscav = 0;

	for (uint64_t p = 0; p < firstfit.npages; p++) {
		const struct pallocdata *d =
		    pagealloc_chunk(pa, (uint32_t)(p / RT_CHUNK_PAGES));
		bool scavenged = firstfit.state[p] == FIRSTFIT_SCAVENGED;

		if (pallocbits_get(&d->alloc, p % RT_CHUNK_PAGES) !=
		    firstfit_used(p))
			return "page is used in one of the two only";
		if (pallocbits_get(&d->scavenged, p % RT_CHUNK_PAGES) !=
		    scavenged)
			return "page is scavenged in one of the two only";
		nfree += !firstfit_used(p);
		nscav += scavenged;
	}
	if (pagealloc_count_free(pa) != nfree)
		return "another number of pages is free";
	if (pagealloc_count_scavenged(pa) != nscav)
		return "another number of pages is scavenged";
	return pagealloc_check(pa);
}

#endif
