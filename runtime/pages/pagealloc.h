// pagealloc.h - the page allocator: first fit by address.
//
// Go: mpagealloc.go.
//
// A radix tree of summaries lies over the bitmaps of all chunks.  Pages are
// numbered from the start of the heap's range.  The heap is a prefix of that
// range, so there are no holes and no address hints.
//
// The heap lock protects everything here but the growth of the tables
// (pagealloc_reserve).  No function touches heap memory or statistics; the
// tables' own memory counts in gc_misc_sys.
#ifndef RUNTIME_PAGES_PAGEALLOC_H
#define RUNTIME_PAGES_PAGEALLOC_H

#include "runtime/pages/pallocbits.h"
#include "runtime/pages/scavindex.h"

enum {
	PAGEALLOC_LEVELS = 5, // from the root: 4096, 512, 64, 8, 1 chunks
	PAGEALLOC_FANOUT_LOG = 3,
	PAGEALLOC_BLOCK_PAGES = 64, // one word of a chunk's bitmap
};
#define PAGEALLOC_NONE (~UINT64_C(0))

struct pagealloc {
	struct systable chunks;			// struct pallocdata
	struct systable sums[PAGEALLOC_LEVELS]; // pallocsum; [0] is the root
	struct scavindex scav;
	uint32_t nchunks;     // chunks that exist
	uint32_t max_chunks;  // chunks that the tables have room for
	uint64_t search_page; // no free page below it
};

// pagealloc_init reserves tables for max_chunks chunks.  Returns false if the
// system refuses.
bool pagealloc_init(struct pagealloc *pa, uint32_t max_chunks);
void pagealloc_fini(struct pagealloc *pa);

// pagealloc_reserve makes the tables of the first nchunks chunks usable.  One
// thread at a time may call it; it needs no heap lock.  Returns false if the
// system refuses; what the tables gained stays, for the next attempt.
bool pagealloc_reserve(struct pagealloc *pa, uint32_t nchunks);

// pagealloc_grow adds chunks up to nchunks, whose tables must be usable.  All
// their pages are free and scavenged.
void pagealloc_grow(struct pagealloc *pa, uint32_t nchunks);

// pagealloc_alloc takes npages pages in a row at the lowest address that fits,
// and sets *nscav to the number of them that were scavenged.  Returns the first
// page, or PAGEALLOC_NONE if there is no room.
uint64_t pagealloc_alloc(struct pagealloc *pa, uint64_t npages,
			 uint64_t *nscav);

// pagealloc_fits tells whether pagealloc_alloc would find npages pages.
bool pagealloc_fits(const struct pagealloc *pa, uint64_t npages);

// pagealloc_alloc_aligned is pagealloc_alloc for a range whose first page is a
// multiple of align, a power of two.  It finds such a range if there is one,
// though not always the lowest.  It may have to look at every chunk.
uint64_t pagealloc_alloc_aligned(struct pagealloc *pa, uint64_t npages,
				 uint64_t align, uint64_t *nscav);

// pagealloc_is_free tells whether npages pages from page on exist and are free.
bool pagealloc_is_free(const struct pagealloc *pa, uint64_t page,
		       uint64_t npages);

// pagealloc_alloc_range takes npages pages, which must be free.  Returns how
// many of them were scavenged.
uint64_t pagealloc_alloc_range(struct pagealloc *pa, uint64_t page,
			       uint64_t npages);

// pagealloc_free frees pages; they are not scavenged.
void pagealloc_free(struct pagealloc *pa, uint64_t page, uint64_t npages);

// pagealloc_free_ranges frees several ranges of pages.  Ranges that follow each
// other in the array and lie in one chunk share one update of the summaries.
struct pagealloc_range {
	uint64_t page;
	uint64_t npages;
};
void pagealloc_free_ranges(struct pagealloc *pa,
			   const struct pagealloc_range *range,
			   unsigned nranges);

// A block is 64 pages, the first of which is a multiple of 64.  Bit i is for
// page base + i.
struct pagealloc_block {
	uint64_t base;	// first page
	uint64_t taken; // pages that were free
	uint64_t scav;	// taken pages that were scavenged
};

// pagealloc_take_block takes every free page of the block in which the lowest
// npages (1 to 64) free pages in a row lie.  Returns false, and takes nothing,
// if there are none, or if they lie in two blocks.
bool pagealloc_take_block(struct pagealloc *pa, unsigned npages,
			  struct pagealloc_block *b);

// pagealloc_retake_block takes every free page of the block at page base.
// Returns false, and takes nothing, if the block has no npages free pages in a
// row, or if all its free pages are scavenged.
bool pagealloc_retake_block(struct pagealloc *pa, uint64_t base,
			    unsigned npages, struct pagealloc_block *b);

// pagealloc_free_block frees the pages taken, at least one, of the block at
// page base; those in scav are scavenged.
void pagealloc_free_block(struct pagealloc *pa, uint64_t base, uint64_t taken,
			  uint64_t scav);

// pagealloc_set_scavenged marks free pages as scavenged.
void pagealloc_set_scavenged(struct pagealloc *pa, uint64_t page,
			     uint64_t npages);

struct pallocdata *pagealloc_chunk(const struct pagealloc *pa, uint32_t chunk);

// pagealloc_count_free and _scavenged count pages of all chunks, for checks.
uint64_t pagealloc_count_free(const struct pagealloc *pa);
uint64_t pagealloc_count_scavenged(const struct pagealloc *pa);

// pagealloc_check returns NULL if all invariants hold, otherwise what does not.
// Every summary must follow from its children.  No page may be both allocated
// and scavenged, and no free page may lie below search_page.  The scavenge
// index must have the right count of every chunk.  The check goes through the
// whole heap.  In debug builds, functions that write check the chunks written
// and the summaries above the last of them.
const char *pagealloc_check(const struct pagealloc *pa);

#endif
