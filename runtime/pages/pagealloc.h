// pagealloc.h - the page allocator: first fit by address.
//
// Go: mpagealloc.go.  A radix tree of summaries over the bitmaps of all
// chunks.  Pages are numbered from the start of the heap's range; the heap is
// a prefix of that range, so there are no holes and no address hints.
//
// All under the heap lock.  Nothing here touches heap memory or statistics;
// the tables' own memory counts in gc_misc_sys.
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
	uint32_t max_chunks;  // chunks that the reservations hold
	uint64_t search_page; // no free page below it
};

// pagealloc_init reserves tables for max_chunks chunks; false when refused.
bool pagealloc_init(struct pagealloc *pa, uint32_t max_chunks);
void pagealloc_fini(struct pagealloc *pa);

// pagealloc_reserve makes the tables of the first nchunks chunks usable;
// false when refused (what was gained stays, for the next try).
bool pagealloc_reserve(struct pagealloc *pa, uint32_t nchunks);

// pagealloc_grow adds chunks up to nchunks, whose tables are reserved: all
// their pages are free and scavenged.
void pagealloc_grow(struct pagealloc *pa, uint32_t nchunks);

// pagealloc_alloc takes npages pages in a row at the lowest address that
// fits and tells how many of them were scavenged; PAGEALLOC_NONE: no room.
uint64_t pagealloc_alloc(struct pagealloc *pa, uint64_t npages,
			 uint64_t *nscav);

// pagealloc_alloc_range takes pages that are known to be free.
uint64_t pagealloc_alloc_range(struct pagealloc *pa, uint64_t page,
			       uint64_t npages); // returns nscav

// pagealloc_free gives pages back; they are not scavenged.
void pagealloc_free(struct pagealloc *pa, uint64_t page, uint64_t npages);

// pagealloc_free_runs does so for several runs.  Summaries follow once for
// neighbours in the array that lie in one chunk.
struct pagealloc_run {
	uint64_t page;
	uint64_t npages;
};
void pagealloc_free_runs(struct pagealloc *pa, const struct pagealloc_run *run,
			 unsigned nruns);

// A block is 64 pages whose first page is a multiple of 64; bit i stands for
// its page i.
struct pagealloc_block {
	uint64_t base;	// first page
	uint64_t taken; // pages that were free
	uint64_t scav;	// those of them that were scavenged
};

// pagealloc_take_block takes every free page of the block in which the lowest
// npages (1 to 64) free pages in a row lie.  False, and nothing taken, if there
// are none, or if they lie in two blocks.
bool pagealloc_take_block(struct pagealloc *pa, unsigned npages,
			  struct pagealloc_block *b);

// pagealloc_retake_block does so with the block at page base; false, and
// nothing taken, if it has no npages free pages in a row, or none of its free
// pages has memory behind it.
bool pagealloc_retake_block(struct pagealloc *pa, uint64_t base,
			    unsigned npages, struct pagealloc_block *b);

// pagealloc_put_block gives pages of a block, at least one, back as they were.
void pagealloc_put_block(struct pagealloc *pa, uint64_t base, uint64_t taken,
			 uint64_t scav);

// pagealloc_set_scavenged marks free pages as scavenged.
void pagealloc_set_scavenged(struct pagealloc *pa, uint64_t page,
			     uint64_t npages);

struct pallocdata *pagealloc_chunk(const struct pagealloc *pa, uint32_t chunk);

// pagealloc_count_free and _scavenged count bits over all chunks, for checks.
uint64_t pagealloc_count_free(const struct pagealloc *pa);
uint64_t pagealloc_count_scavenged(const struct pagealloc *pa);

// pagealloc_check tells whether every summary equals what its children say,
// no page is both allocated and scavenged, no free page lies below
// search_page, and the scavenge index knows how full every chunk is.
bool pagealloc_check(const struct pagealloc *pa);

#endif
