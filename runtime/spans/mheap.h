// mheap.h - spans of pages.
//
// Go: mheap (mheap.go).
//
// Pages come from a P's page cache without a lock, or from the page allocator
// under the heap lock.  If nothing fits there, the heap grows by whole chunks.
//
// Every byte of pages is counted (pagecount.h).  Statistics are exact in every
// stop, because no thread can be stopped between the change of a page bit and
// of its statistics.  For a large object, in_heap is raised before its
// allocation is published, and lowered after its free is.
#ifndef RUNTIME_SPANS_MHEAP_H
#define RUNTIME_SPANS_MHEAP_H

#include "runtime/os/lock.h"
#include "runtime/os/fixalloc.h"
#include "runtime/world/heapgauge.h"
#include "runtime/world/heapstats.h"
#include "runtime/pages/pagecache.h"
#include "runtime/spans/mspan.h"

enum {
	MHEAP_CACHE_SPANS = 16,
	// The first filling of a P's cache takes at most this many pages, or
	// the number needed.  Each filling may take twice as many as the
	// previous one, up to a whole block; a flush reduces that to a quarter.
	// So many threads that allocate little do not spread over a large heap,
	// whose tables keep their memory until whole chunks are free.
	MHEAP_CACHE_FIRST = 4,
	// The most pages that a P populates ahead of use.  A P begins to do so
	// only when it may fill its cache with at least this many, so no P is
	// given more ahead of time than it has already taken.  128 KiB: a call
	// for more costs no less per page (measured).
	MHEAP_POPULATE = 16,
	// The most chunks that growth prepares ahead of need: 256 MiB.
	MHEAP_STEP_MAX = 64,
};

// Pages and mspans that one P has taken from the heap in advance.
struct mheap_cache {
	struct pagecache pages;
	unsigned filling; // the most pages that the last filling could take;
			  // each flush divides it by 4
	unsigned nspans;
	struct mspan *spans[MHEAP_CACHE_SPANS];
};

struct mheap {
	// Protects everything here but turn and populate.  freed_much and
	// taken_much are raised under it, but mheap_take_freed and
	// mheap_take_taken lower them without the lock.
	struct mutex lock;
	// Pages in hand are free, but look allocated while their memory is
	// being released or brought in.  Only the thread that has the turn has
	// pages in hand, and it does not poll while it has some.  Another
	// thread that finds no room meanwhile waits for the turn and looks
	// again.
	struct sema turn;
	bool in_hand;
	struct pagealloc pages;
	struct fixalloc spans;	  // struct mspan
	struct fixalloc bitmap8s; // bitmap8 of each span of 8-byte objects
	// Pages of objects, of interpreter stacks, and in Ps' caches.  They
	// count before they are taken and until they are free again.
	uint64_t taken;
	uint64_t max;		  // the most pages that taken may grow to
	uint64_t freed_await;	  // bytes to free until freed_much; 0: never
	atomic_u32 freed_much;	  // 1: so many were freed
	uint64_t taken_await;	  // pages to take until taken_much; 0: never
	bool taken_all;		  // all pages count, not only scavenged ones
	atomic_u32 taken_much;	  // 1: so many were taken
	atomic_u32 populate;	  // 1: configured, and not refused so far
};

RT_GLOBAL struct mheap mheap;

// mheap_init makes an empty heap in the range that arena_init reserved.
// Returns false if the system refuses.
bool mheap_init(void);
void mheap_fini(void);

// mheap_set_max sets the most pages that objects, interpreter stacks and Ps'
// caches may have together.  When it has returned, no page is taken beyond that
// number, but what is taken already may be more.  Work buffers do not count: a
// collection must not fail for want of room that it is about to make.
void mheap_set_max(uint64_t npages);

// mheap_add_typebits makes type bits usable for all pages, now and from then
// on.  Returns false if the system refuses.
bool mheap_add_typebits(void);

// mheap_add_deadbits makes the bits of dead objects usable in the same way.
bool mheap_add_deadbits(void);

// mheap_alloc_small makes and publishes a span of a class, which is swept and
// has no objects.  p is the calling thread's P, or NULL if it has none; cache
// may be NULL.  Returns NULL if the system refuses, the range is full or
// mheap.max is reached.  The heap may have grown, and cache may have been
// filled or flushed, even then.
struct mspan *mheap_alloc_small(struct rt_proc *p, struct mheap_cache *cache,
				spanclass sc);

// mheap_alloc_large makes a span with one object of request bytes, in the state
// PAGEWORD_SETTING_UP: no look-up of the host finds it until
// mheap_publish_large, but markers and the sweep do.  Its parameters and
// failures are as for mheap_alloc_small.
struct mspan *mheap_alloc_large(struct rt_proc *p, struct mheap_cache *cache,
				unsigned kind, size_t request);
void mheap_publish_large(struct mspan *s);

// mheap_alloc_aligned is mheap_alloc_large for an address that is a multiple of
// align, a power of two of more than a page.
struct mspan *mheap_alloc_aligned(struct rt_proc *p, struct mheap_cache *cache,
				  unsigned kind, size_t request, size_t align);

// mheap_resize_large makes the object of a large span request bytes large.  It
// takes the pages behind the span, or frees the span's last pages.  Pages that
// it takes are zero.  It counts only statistics of pages.  Returns false, and
// leaves the span as it was, if the pages behind are not free, mheap.max is
// reached, or the system refuses to unprotect them.  The caller must own the
// object, and the span must be swept and not guarded.
bool mheap_resize_large(struct rt_proc *p, struct mspan *s, size_t request);

// mheap_alloc_guarded is mheap_alloc_large for an object of any size with a
// guard behind it.  The guard is not protected if the system refuses, or if
// there are GUARD_MAX guards.
struct mspan *mheap_alloc_guarded(struct rt_proc *p, struct mheap_cache *cache,
				  unsigned kind, size_t request);

// mheap_alloc_manual makes a span without objects, whose pages are not zeroed.
// Returns NULL if there is no memory.
struct mspan *mheap_alloc_manual(struct rt_proc *p, uint64_t npages,
				 enum mspan_use use);

// mheap_fits tells whether npages pages in a row are free, in a P's cache or in
// the heap, so that the heap need not grow for them.  cache may be NULL.
bool mheap_fits(const struct mheap_cache *cache, uint64_t npages);

// mheap_free frees a list of heap spans, linked by next.  They must be swept
// and have no objects, their lines must be zero and their frees published.
// mheap_free_manual frees one span without objects.
void mheap_free(struct rt_proc *p, struct mspan *list);
void mheap_free_manual(struct rt_proc *p, struct mspan *s);

// After a call of mheap_await_freed, mheap_freed_much is false until that many
// bytes of spans have been freed since the call.  Spans of work buffers do not
// count.  mheap_take_freed returns what mheap_freed_much is, and makes it false
// until the next call of mheap_await_freed.  If several threads call
// mheap_take_freed at the same time, only one of them gets true.
void mheap_await_freed(uint64_t bytes);
bool mheap_take_freed(void);
RT_INLINE bool mheap_freed_much(void)
{
	return atomic_u32_load_relaxed(&mheap.freed_much) != 0;
}

// mheap_begin_turn waits for the turn and acquires the heap lock.  The caller
// then marks pages allocated, or none, and calls mheap_set_in_hand, which
// releases the lock.  mheap_end_turn ends the turn.  It first frees the npages
// pages in hand from page on; npages may be 0.  They are scavenged if scavenged
// is true.
void mheap_begin_turn(void);
void mheap_set_in_hand(bool any);
void mheap_end_turn(uint64_t page, uint64_t npages, bool scavenged);

// mheap_extend makes the heap longer by whole chunks, at least npages pages.
// They have no memory.  Returns false if the system refuses, if it would lock
// that memory, or if the range is too short.
bool mheap_extend(struct rt_proc *p, uint64_t npages);

// After a call of mheap_await_taken, mheap_taken_much is false until npages
// pages have been taken since the call.  If all is false, only pages that were
// scavenged count.  Pages of work buffers never count.  If npages is 0,
// mheap_taken_much stays false.  mheap_take_taken returns what mheap_taken_much
// is, and makes it false until the next call of mheap_await_taken.  If several
// threads call mheap_take_taken at the same time, only one of them gets true.
void mheap_await_taken(uint64_t npages, bool all);
bool mheap_take_taken(void);
RT_INLINE bool mheap_taken_much(void)
{
	return atomic_u32_load_relaxed(&mheap.taken_much) != 0;
}

// mheap_cache_flush frees the pages and mspans of a P's cache.  The caller must
// be its owner or have claimed that P, or the owner must be stopped.
void mheap_cache_flush(struct mheap_cache *cache);

// mheap_chunk_pages copies the bitmap of a chunk's allocated pages.  The copy
// includes all pages of every span that was made before the call and is not
// free yet.
void mheap_chunk_pages(uint32_t chunk, struct pallocbits *taken);

// mheap_choose_huge_pages calls hugepages_choose and returns its result.  While
// pages are in hand it does nothing and returns false.  These pages look
// allocated, so a chunk might seem full because of them, and huge pages would
// bring in again what is being released.  The next collection chooses instead.
bool mheap_choose_huge_pages(void);

// mheap_next_span returns the first span at or after *page, and moves *page
// behind it.  Returns NULL if there is none.  The world must be stopped.
struct mspan *mheap_next_span(uint64_t *page);

// mheap_check returns NULL if all invariants of the heap hold, otherwise what
// does not.  It leaves pages to pagealloc_check.  The caller must hold
// mheap.lock or have the world stopped.  Debug builds check all but the lists
// of free structures whenever mspans are taken or freed; fixalloc checks those
// one by one.
const char *mheap_check(const struct mheap *h);

// mheap_cache_check returns NULL if all invariants of a P's cache hold,
// otherwise what does not.  The caller is as for mheap_cache_flush.  Debug
// builds call it at each change.
const char *mheap_cache_check(const struct mheap_cache *cache);

#endif
