// mspan.h - a range of pages with one use.
//
// Go: mspan (mheap.go).
//
// Whether a slot is allocated and whether it is counted are two questions.  The
// line that the heap's sweepgen calls alloc answers the first, the line that
// the span's own sweepgen calls alloc the second.  The answers differ only
// while the span waits to be swept.
//
// A cached span belongs to one P: only that P takes runs from it and frees
// their unused slots.  Its alloc_count lacks the slots that the P took;
// retiring the span adds them.
#ifndef RUNTIME_SPANS_MSPAN_H
#define RUNTIME_SPANS_MSPAN_H

#include "runtime/base/bits.h"
#include "runtime/base/spanclass.h"
#include "runtime/os/lfstack.h"
#include "runtime/pages/arena.h"
#include "runtime/spans/guard.h"

enum mspan_use {
	MSPAN_FREE,  // no pages
	MSPAN_HEAP,  // objects
	MSPAN_STACK, // interpreter stacks
	MSPAN_WORK,  // work buffers of the collector
};

struct mspan {
	// Linewords of the first page; the 8-byte class: its bitmap8; a large
	// span: those of the granule in which its object begins.
	RT_CACHE_ALIGNED atomic_ptr lines;
	uintptr_t base;
	atomic_u64 limit; // end of objects; a large one's as requested
	uint64_t npages;
	uint64_t elemsize; // bytes of a slot; large: of the pages it needs
	uint32_t divmagic; // divides by elemsize; 0: the slot is always 0
	uint32_t nelems;
	atomic_u32 sweepgen;  // epoch.h
	uint32_t alloc_count; // slots counted; owner, or world stopped
	spanclass spanclass;
	uint8_t use;	     // enum mspan_use
	uint8_t cached;	     // in an mcache; its P, or world stopped
	uint8_t needzero;    // free slots may not be zero
	uint8_t stack_order; // order of the stacks it is cut into
	uint8_t sizeclass;   // that of spanclass
	uint8_t nwords;	     // linewords of a line that its slots can use
	// A late popper may read this node after the span was freed, so nothing
	// else may ever use its place.
	RT_CACHE_ALIGNED struct lfnode partial; // in its mcentral's stack
	struct mspan *next;  // in one list at a time, by its owner
	uint32_t stack_used; // bit i: a P or the host has stack i; pool lock
	// Of a guarded object: 1 + bytes of the span before it; otherwise 0.
	atomic_u32 guarded;
	uint8_t guard_protect; // the guard is protected; owner
	// Of a kind with destructors; the thread that runs them, or world
	// stopped.
	uint8_t queued; // in the queue of drops, and so not in mcentral
	// 1: its dropped objects are freed by a collection, not with a batch;
	// or DROPS_LOOSE.
	uint8_t condemned;
};
static_assert(sizeof(struct mspan) == 128, "two lines");

// mspan_init_small and mspan_init_large set up a span; base, npages and
// needzero must be set.  bitmap8 is the bitmap8 of a span of the 8-byte class,
// otherwise NULL.
void mspan_init_small(struct mspan *s, spanclass sc, struct linewords *bitmap8);
void mspan_init_large(struct mspan *s, unsigned kind, size_t request);

// mspan_init_guarded sets up a span of guard_pages(request) pages, writes
// canaries around the object, and protects the guard if the system allows.
void mspan_init_guarded(struct mspan *s, unsigned kind, size_t request);

// mspan_set_request changes the bytes requested for a large span's object.  Its
// pages must hold them.
void mspan_set_request(struct mspan *s, size_t request);

// mspan_free notes that a span has no pages any more.  It protects the pages of
// a guarded one, which must be withdrawn but not free yet.
void mspan_free(struct mspan *s);

// mspan_init_manual sets up a span that holds no objects.
void mspan_init_manual(struct mspan *s, enum mspan_use use);

RT_INLINE uint64_t mspan_page(const struct mspan *s)
{
	return arena_offset(s->base) >> RT_PAGE_SHIFT;
}

RT_INLINE uintptr_t mspan_limit(const struct mspan *s)
{
	return atomic_u64_load_relaxed(&s->limit);
}

RT_INLINE bool mspan_is_large(const struct mspan *s)
{
	return s->sizeclass == 0;
}

RT_INLINE bool mspan_is_guarded(const struct mspan *s)
{
	return atomic_u32_load_relaxed(&s->guarded) != 0;
}

// mspan_object returns the address of a slot's object, mspan_usable how many of
// its bytes the host may use.
RT_INLINE uintptr_t mspan_object(const struct mspan *s, uint32_t slot)
{
	uint32_t guarded = atomic_u32_load_relaxed(&s->guarded);

	return s->base + slot * s->elemsize + (guarded ? guarded - 1 : 0);
}

RT_INLINE uint64_t mspan_usable(const struct mspan *s)
{
	return mspan_is_guarded(s) ? mspan_limit(s) - mspan_object(s, 0)
				   : s->elemsize;
}

// mspan_scan_end returns the address where the words of a slot's object end.
RT_INLINE uintptr_t mspan_scan_end(const struct mspan *s, uint32_t slot)
{
	uintptr_t end = mspan_is_large(s)
			    ? mspan_limit(s)
			    : s->base + (slot + UINT64_C(1)) * s->elemsize;

	return base_align_down(end, sizeof(uintptr_t));
}

// mspan_overwritten returns the address of a canary of a guarded object that
// was overwritten.  Returns 0 if there is none, or if the span is not guarded.
uintptr_t mspan_overwritten(const struct mspan *s);

RT_INLINE struct linewords *mspan_lines(const struct mspan *s)
{
	return atomic_ptr_load_relaxed(&s->lines);
}

// mspan_lineword returns lineword w of one of the two lines of s.
RT_INLINE atomic_u64 *mspan_lineword(const struct mspan *s, unsigned line,
				     unsigned w)
{
	return &mspan_lines(s)[w].line[line];
}

// mspan_large_bit returns the bit, in its one lineword, of a large span's
// object.  Only a guarded object may begin elsewhere than at the span's base.
RT_INLINE unsigned mspan_large_bit(const struct mspan *s)
{
	return mspan_object(s, 0) / RT_GRANULE % 64;
}

// The slot masks of large spans, by mspan_large_bit.
RT_GLOBAL const uint64_t mspan_large_masks[64];

// mspan_masks returns the slot mask: nwords words with a bit where each slot
// begins.
RT_INLINE const uint64_t *mspan_masks(const struct mspan *s)
{
	return mspan_is_large(s)
		   ? &mspan_large_masks[mspan_large_bit(s)]
		   : &sizeclass_masks[sizeclass_table[s->sizeclass].mask_word];
}

// mspan_slot returns the slot that contains an offset from the base.
RT_INLINE uint32_t mspan_slot(const struct mspan *s, uint64_t offset)
{
	return s->divmagic ? (uint32_t)(offset * s->divmagic >> 32) : 0;
}

// mspan_bit returns the bit number of a slot of a small span.
RT_INLINE unsigned mspan_bit(const struct mspan *s, uint32_t slot)
{
	return sizeclass_bit(s->sizeclass, slot * s->elemsize);
}

// mspan_test reads a slot's bit in a line.
RT_INLINE bool mspan_test(const struct mspan *s, unsigned line, uint32_t slot)
{
	unsigned bit =
	    mspan_is_large(s) ? mspan_large_bit(s) : mspan_bit(s, slot);

	return atomic_u64_load_relaxed(mspan_lineword(s, line, bit / 64)) >>
		   (bit % 64) &
	       1;
}

// mspan_count counts the bits of a line.
uint32_t mspan_count(const struct mspan *s, unsigned line);

// mspan_counted returns the number of slots that are counted.
uint32_t mspan_counted(const struct mspan *s);

// A run: consecutive free slots.  Runs are taken from the end of the span
// downwards, and slots from the end of a run.  A run reaches down to the next
// allocated slot, but is at most a page long, or one slot if that is larger.
// If the allocword of its last slot has an allocated slot, the run does not
// leave that allocword.  So in a fragmented span a run is found and taken
// within one allocword.  Otherwise its slots begin in one aligned row of bits.
// The caller chooses the size of the row, a power of two; a fresh page can be
// one run.
struct mspan_run {
	char *start; // addresses: [start, end)
	char *end;
	uint64_t bits;	// of a near run: its slots in the cursor's allocword
	unsigned first; // of other runs: bit numbers, [first, stop)
	unsigned stop;
};

// A place in a cached span: the slots above it have been searched, and their
// runs taken.  It is inside an allocword, which is read once.  That is enough,
// because only the P that caches the span changes the alloc line, and the
// cursor is not used after the span has left the cache.
struct mspan_cursor {
	uint64_t free;		 // slots of the allocword that are left to take
	uint64_t taken;		 // slots that were allocated when it was read
	struct linewords *lines; // the allocword is line[line] of these
	const uint64_t *mask;	 // where the allocword's slots begin
	char *at;		 // address of its bit 0
	uint32_t bytes;		 // bytes that an allocword describes
	uint8_t w;		 // its number; those below were not read yet
	uint8_t line;
};

// mspan_cursor_place moves a cursor to the end of allocword w - 1, which is the
// next to be read.
RT_INLINE void mspan_cursor_place(struct mspan_cursor *c, const struct mspan *s,
				  unsigned w)
{
	c->bytes = 64u << sizeclass_bit_shift(s->sizeclass);
	c->free = c->taken = 0;
	c->lines = mspan_lines(s) + w;
	c->mask = mspan_masks(s) + w;
	c->at = (char *)s->base + w * c->bytes;
	c->w = (uint8_t)w;
	c->line = (uint8_t)epoch_alloc_line(epoch_sweepgen());
}

// mspan_cursor_start moves a cursor to the end of the last slot.
RT_INLINE void mspan_cursor_start(struct mspan_cursor *c, const struct mspan *s)
{
	mspan_cursor_place(c, s, s->nwords);
}

RT_INLINE atomic_u64 *mspan_cursor_allocword(const struct mspan_cursor *c)
{
	return &c->lines->line[c->line];
}

// mspan_cursor_read moves a cursor to the allocword below, and reads it.
RT_INLINE void mspan_cursor_read(struct mspan_cursor *c)
{
	uint64_t mask = *--c->mask;
	uint64_t alloc;

	c->w--;
	c->lines--;
	c->at -= c->bytes;
	alloc = atomic_u64_load_relaxed(mspan_cursor_allocword(c));
	c->free = mask & ~alloc;
	c->taken = mask & alloc;
}

// mspan_seek moves a cursor to an allocword with free slots.  Returns false if
// there is none.
RT_INLINE bool mspan_seek(struct mspan_cursor *c)
{
	while (c->free == 0) {
		if (c->w == 0)
			return false;
		mspan_cursor_read(c);
	}
	return true;
}

// mspan_find_run finds the run that ends at a cursor, after mspan_seek.  block
// is the number of bits in the aligned row to which a run is limited.  The
// caller then clears the run's memory if necessary.  mspan_take_run marks the
// run's slots allocated and moves the cursor.  The caller must own the cached
// span.
void mspan_find_run(const struct mspan *s, const struct mspan_cursor *c,
		    unsigned block, struct mspan_run *run);
void mspan_take_run(struct mspan *s, struct mspan_cursor *c,
		    const struct mspan_run *run);

// mspan_is_near tells whether the next run, of slots of size bytes, is near:
// the slots are whole granules, and the run's allocword has an allocated slot,
// so the run does not leave it.  mspan_find_near and mspan_take_near are
// mspan_find_run and mspan_take_run for near runs.
RT_INLINE bool mspan_is_near(const struct mspan_cursor *c, size_t size)
{
	return c->taken != 0 && size % RT_GRANULE == 0;
}

RT_INLINE void mspan_find_near(const struct mspan_cursor *c, size_t size,
			       struct mspan_run *run)
{
	unsigned last = bits_last(c->free);
	// Slots taken since the allocword was read lie above last.
	uint64_t below = c->taken & ((UINT64_C(1) << last) - 1);

	// If no allocated slot begins below last, the run takes all free slots
	// from bit 0 on.
	run->bits = c->free & ~UINT64_C(0) << bits_last(below | 1);
	run->start = c->at + bits_ctz(run->bits) * RT_GRANULE;
	run->end = c->at + last * RT_GRANULE + size;
}

RT_INLINE void mspan_take_near(struct mspan_cursor *c,
			       const struct mspan_run *run)
{
	atomic_u64 *word = mspan_cursor_allocword(c);

	c->free ^= run->bits;
	// No locked instruction is needed: outside a stop only the P that
	// caches the span writes the word.  Pairs with the acquire in
	// object_test.
	atomic_u64_store_release(word,
				 atomic_u64_load_relaxed(word) | run->bits);
}

// mspan_free_slots frees the slots of [start, end) and returns their number.
// The caller must own the cached span, or the world must be stopped.
uint32_t mspan_free_slots(struct mspan *s, const char *start, const char *end);

// mspan_check returns NULL if all invariants of a span hold that involve only
// the mspan, its lines and its table entries, otherwise what does not.  The
// world must be stopped, or the caller must own the span.  Debug builds call it
// when a span enters a cache (refill_small) and when a large object is resized.
const char *mspan_check(const struct mspan *s);

#endif
