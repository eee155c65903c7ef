// pagealloc.h - a page allocator without a heap.
#ifndef TEST_UNIT_PAGEALLOC_H
#define TEST_UNIT_PAGEALLOC_H

#include "runtime/pages/pagealloc.h"
#include "test/harness/suite.h"

enum {
	CP = RT_CHUNK_PAGES,
	TABLES = PAGEALLOC_LEVELS + 2, // summaries, bitmaps, scavenge index
};

#define NONE PAGEALLOC_NONE

// Page i of a chunk.
#define AT(chunk, i) ((uint64_t)(chunk)*CP + (i))

static struct pagealloc pa;

static inline void grow(uint32_t nchunks)
{
	ck_assert(pagealloc_reserve(&pa, nchunks));
	pagealloc_grow(&pa, nchunks);
}

static inline void start(uint32_t nchunks, uint32_t max_chunks)
{
	sysmem_init();
	ck_assert(pagealloc_init(&pa, max_chunks));
	grow(nchunks);
}

static inline void finish(void)
{
	ck_assert_ptr_null(pagealloc_check(&pa));
	pagealloc_fini(&pa);
	ck_assert_uint_eq(gauge_load(&gauges.gc_misc_sys), 0);
	ck_assert_uint_eq(gauge_load(&gauges.mapped_ready), 0);
}

static inline void expect_alloc(uint64_t npages, uint64_t page)
{
	uint64_t nscav;

	ck_assert_uint_eq(pagealloc_alloc(&pa, npages, &nscav), page);
}

// A range of pages of the heap.
struct range {
	uint64_t page, npages;
};

static inline bool page_is_alloc(uint64_t page)
{
	return pallocbits_get(&pagealloc_chunk(&pa, page / CP)->alloc,
			      page % CP);
}

#endif
