// mheap.h - spans of pages, and every byte of them counted.
//
// Go: mheap (mheap.go).  Pages come from a P's page cache without a lock, or
// from the page allocator under the heap lock, which grows the heap by whole
// chunks when nothing fits.
//
// A number never lags behind: between the change of a page bit and its
// statistics no thread can be stopped.  Order: in_heap is published before a
// large object's bytes, and taken back after its free.
#ifndef RUNTIME_SPANS_MHEAP_H
#define RUNTIME_SPANS_MHEAP_H

#include "runtime/os/fixalloc.h"
#include "runtime/world/heapgauge.h"
#include "runtime/world/heapstats.h"
#include "runtime/os/lock.h"
#include "runtime/spans/mspan.h"
#include "runtime/pages/pagecache.h"

enum {
	MHEAP_CACHE_SPANS = 16,
	// Pages that the first filling of a P's cache takes at least; each
	// filling may take twice as many as the one before, up to a whole
	// block, and a flush takes that back to a quarter.  So many
	// threads that allocate little do not spread over a large heap, whose
	// tables stay until it is free chunk by chunk.
	MHEAP_CACHE_FIRST = 4,
	// Pages that are populated ahead of those in use, at most, from the
	// filling on of which they are not more than what a P has got before.
	// 128 KiB: a call for more is no cheaper by the page (measured).
	MHEAP_POPULATE = 16,
	// Chunks that growth prepares at once, at most, if it needs no more:
	// 256 MiB.
	MHEAP_STEP_MAX = 64,
};

// What one P keeps of the heap for itself.
struct mheap_cache {
	struct pagecache pages;
	unsigned filling; // pages that the last filling could take, less what
			  // flushes took off
	unsigned nspans;
	struct mspan *spans[MHEAP_CACHE_SPANS];
};

struct mheap {
	struct mutex lock; // of everything here but turn
	// Pages whose memory is being released look allocated: one thread's at
	// a time, which has its turn, and only between two of its polls.  A
	// thread that finds no room while there are such pages takes a turn
	// and looks again.
	struct sema turn;
	bool releasing;
	struct pagealloc pages;
	struct fixalloc spans;	// struct mspan
	struct fixalloc blocks; // bitmaps of spans of 8-byte objects
	atomic_u32 populate;	// 1: as configured and not yet refused
};

RT_GLOBAL struct mheap mheap;

// mheap_init makes an empty heap in the range that arena_init reserved.
bool mheap_init(void);
void mheap_fini(void);

// mheap_alloc_small returns a span of a class, swept, with no object in it,
// and publishes it.  p: whose statistics count; cache may be NULL.  NULL: the
// system refuses, or the range is full; then nothing changed but what
// growth may have gained.
struct mspan *mheap_alloc_small(struct rt_proc *p, struct mheap_cache *cache,
				spanclass sc);

// mheap_alloc_large returns a span that holds one object of request bytes,
// in the state setting up: no look-up finds it until mheap_publish_large.
struct mspan *mheap_alloc_large(struct rt_proc *p, struct mheap_cache *cache,
				unsigned kind, size_t request);
void mheap_publish_large(struct mspan *s);

// mheap_alloc_guarded is mheap_alloc_large for an object of any size, with a
// guard behind it that may not be touched, as far as the system allows one
// more.
struct mspan *mheap_alloc_guarded(struct rt_proc *p, struct mheap_cache *cache,
				  unsigned kind, size_t request);

// mheap_alloc_manual returns pages that hold no objects, not zeroed.
struct mspan *mheap_alloc_manual(struct rt_proc *p, uint64_t npages,
				 enum mspan_use use);

// mheap_free takes back a list (linked by next) of heap spans that hold no
// object, are swept, and whose lines are zero; their frees were published.
void mheap_free(struct rt_proc *p, struct mspan *list);
void mheap_free_manual(struct rt_proc *p, struct mspan *s);

// mheap_cache_flush gives a P's pages and spans back.
void mheap_cache_flush(struct mheap_cache *cache);

// mheap_chunk_pages copies which pages of a chunk are taken: a bit a page.  A
// span that was there before and is not free yet has all its pages in it.
void mheap_chunk_pages(uint32_t chunk, struct pallocbits *taken);

// mheap_next_span is the first span at or after *page, which becomes the page
// behind it; NULL: none.  World stopped.
struct mspan *mheap_next_span(uint64_t *page);

#endif
