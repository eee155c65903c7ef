// mspan.h - a run of pages of one use.
//
// Go: mspan (mheap.go).
//
// Two questions have two answers.  "Is this slot allocated?" is asked of the
// line that the heap's sweepgen calls alloc.  "Is it counted?" is asked of
// the line that the span's own sweepgen calls alloc.  They differ only while
// the span waits to be swept.
//
// A span that is cached belongs to one P: only that P takes runs from it and
// gives them back.  Its alloc_count lags behind by what the P took; retiring
// it sets that right.
#ifndef RUNTIME_SPANS_MSPAN_H
#define RUNTIME_SPANS_MSPAN_H

#include "runtime/pages/arena.h"
#include "runtime/base/bits.h"
#include "runtime/spans/guard.h"
#include "runtime/os/lfstack.h"
#include "runtime/base/spanclass.h"

enum mspan_use {
	MSPAN_FREE,  // no pages
	MSPAN_HEAP,  // objects
	MSPAN_STACK, // interpreter stacks
	MSPAN_WORK,  // work buffers of the collector
};

struct mspan {
	RT_CACHE_ALIGNED atomic_ptr lines; // of the first page; the
					   // 8-byte class: a block of its own
	uintptr_t base;
	atomic_u64 limit; // end of objects; a large one's as requested
	uint64_t npages;
	uint64_t elemsize; // bytes a slot; large: of the pages it needs
	uint32_t divmagic; // offset / elemsize; 0: always slot 0
	uint32_t nelems;
	atomic_u32 sweepgen;  // epoch.h
	uint32_t alloc_count; // slots counted; owner, or world stopped
	spanclass spanclass;
	uint8_t use;	     // enum mspan_use
	uint8_t cached;	     // in an mcache; its P, or world stopped
	uint8_t needzero;    // free slots may not be zero
	uint8_t stack_order; // of the stacks it is cut into
	uint8_t sizeclass;   // that of spanclass
	uint8_t nwords;	     // bitmap words that its slots can use
	// A popper that comes late reads this node even when the span is long
	// freed, so nothing else may ever use its place.
	RT_CACHE_ALIGNED struct lfnode partial; // in its mcentral's stack
	struct mspan *next;  // in one list at a time, by its owner
	uint32_t stack_used; // bit i: stack i is handed out; stackalloc.c
	// 0, but of a guarded object: 1 + bytes of the span before it.
	atomic_u32 guarded;
	uint8_t guard_protect; // the guard may not be touched; owner
};
static_assert(sizeof(struct mspan) == 128, "two lines");

// mspan_init_small, mspan_init_large set up a span whose base, npages and
// needzero are given; block is the bitmap of a span of the 8-byte class.
void mspan_init_small(struct mspan *s, spanclass sc, struct linewords *block);
void mspan_init_large(struct mspan *s, unsigned kind, size_t request);

// mspan_init_guarded does so for a span of guard_pages(request) pages, and
// writes canaries around the object.
void mspan_init_guarded(struct mspan *s, unsigned kind, size_t request);

// mspan_free notes that a span has no pages any more.
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

// mspan_object is where the object of a slot begins, mspan_usable how many
// bytes of it the host may touch.
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

// mspan_scan_end is where the words of a slot's object end.
RT_INLINE uintptr_t mspan_scan_end(const struct mspan *s, uint32_t slot)
{
	uintptr_t end = mspan_is_large(s)
			    ? mspan_limit(s)
			    : s->base + (slot + UINT64_C(1)) * s->elemsize;

	return base_align_down(end, sizeof(uintptr_t));
}

// mspan_overwritten is an address beside a guarded object where somebody
// wrote; 0: none, or not guarded.
uintptr_t mspan_overwritten(const struct mspan *s);

RT_INLINE struct linewords *mspan_lines(const struct mspan *s)
{
	return atomic_ptr_load_relaxed(&s->lines);
}

// mspan_word is word w of one of the two lines of s.
RT_INLINE atomic_u64 *mspan_word(const struct mspan *s, unsigned line,
				 unsigned w)
{
	return &mspan_lines(s)[w].line[line];
}

// The slot mask of a large span.
RT_GLOBAL const uint64_t mspan_large_mask;

// mspan_masks is the slot mask, nwords words: bits where slots begin.
RT_INLINE const uint64_t *mspan_masks(const struct mspan *s)
{
	return mspan_is_large(s)
		   ? &mspan_large_mask
		   : &sizeclass_masks[sizeclass_table[s->sizeclass].mask_word];
}

// mspan_slot is the slot that an offset from the base lies in.
RT_INLINE uint32_t mspan_slot(const struct mspan *s, uint64_t offset)
{
	return s->divmagic ? (uint32_t)(offset * s->divmagic >> 32) : 0;
}

// mspan_bit is the bit number of a slot.
RT_INLINE unsigned mspan_bit(const struct mspan *s, uint32_t slot)
{
	return (unsigned)(slot * s->elemsize >>
			  sizeclass_bit_shift(s->sizeclass));
}

// mspan_test reads a slot's bit in a line.
RT_INLINE bool mspan_test(const struct mspan *s, unsigned line, uint32_t slot)
{
	unsigned bit = mspan_bit(s, slot);

	return atomic_u64_load_relaxed(mspan_word(s, line, bit / 64)) >>
		   (bit % 64) &
	       1;
}

// mspan_count counts the bits of a line.
uint32_t mspan_count(const struct mspan *s, unsigned line);

// mspan_counted is the number of slots that are counted.
uint32_t mspan_counted(const struct mspan *s);

// A run: consecutive free slots.  They are taken from the span's end on, and
// each run from its own.  It starts behind an allocated slot, at most a page
// before its end, and, where the bitmap word in which its last slot begins has
// an allocated slot, within that word.  So in a fragmented span it is found and
// taken within one word, and a fresh page can be one run.  How much of it is,
// the caller says: where no slot of the word is allocated, a run lies within an
// aligned block of so many bits, a power of two, or is one slot.
struct mspan_run {
	char *start; // addresses: [start, end)
	char *end;
	uint64_t bits;	// of a near one: its slots in the cursor's word
	unsigned first; // of others: bit numbers, [first, stop)
	unsigned stop;
};

// How far the runs of a cached span were handed out: down to somewhere in a
// word of the alloc line, which was read once.  Only the P that caches the span
// changes the line, and the cursor ends with the caching.
struct mspan_cursor {
	uint64_t free;		 // slots of the word that are left to hand out
	uint64_t taken;		 // slots of the word that were allocated when
				 // read
	struct linewords *lines; // the word is line[line] of these
	const uint64_t *mask;	 // where the word's slots begin
	char *at;		 // what its first bit stands for
	uint32_t bytes;		 // that a word stands for
	uint8_t w;		 // which word; those below were not read yet
	uint8_t line;
};

// mspan_cursor_place moves a cursor to where word w - 1 is the next.
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

// mspan_cursor_start lets a cursor begin at the last slot.
RT_INLINE void mspan_cursor_start(struct mspan_cursor *c, const struct mspan *s)
{
	mspan_cursor_place(c, s, s->nwords);
}

RT_INLINE atomic_u64 *mspan_cursor_word(const struct mspan_cursor *c)
{
	return &c->lines->line[c->line];
}

// mspan_cursor_read moves a cursor on to the next word, which is the one below.
RT_INLINE void mspan_cursor_read(struct mspan_cursor *c)
{
	uint64_t mask = *--c->mask;
	uint64_t alloc;

	c->w--;
	c->lines--;
	c->at -= c->bytes;
	alloc = atomic_u64_load_relaxed(mspan_cursor_word(c));
	c->free = mask & ~alloc;
	c->taken = mask & alloc;
}

// mspan_seek moves a cursor to a word with slots to hand out; false: none.
RT_INLINE bool mspan_seek(struct mspan_cursor *c)
{
	while (c->free == 0) {
		if (c->w == 0)
			return false;
		mspan_cursor_read(c);
	}
	return true;
}

// mspan_find_run finds the run that ends where a cursor was moved to by
// mspan_seek.  mspan_take_run marks its slots allocated, when its memory is
// zero or need not be.  The caller owns the cached span.
void mspan_find_run(const struct mspan *s, const struct mspan_cursor *c,
		    unsigned block, struct mspan_run *run);
void mspan_take_run(struct mspan *s, struct mspan_cursor *c,
		    const struct mspan_run *run);

// mspan_is_near tells whether the next run of slots of size bytes lies in one
// word and consists of whole granules; then the two below do the same as the
// two above.
RT_INLINE bool mspan_is_near(const struct mspan_cursor *c, size_t size)
{
	return c->taken != 0 && size % RT_GRANULE == 0;
}

RT_INLINE void mspan_find_near(const struct mspan_cursor *c, size_t size,
			       struct mspan_run *run)
{
	unsigned last = bits_last(c->free);
	// What was handed out lies above last.
	uint64_t below = c->taken & ((UINT64_C(1) << last) - 1);

	// With none below, from bit 0 on, which is a free slot or none.
	run->bits = c->free & ~UINT64_C(0) << bits_last(below | 1);
	run->start = c->at + bits_ctz(run->bits) * RT_GRANULE;
	run->end = c->at + last * RT_GRANULE + size;
}

RT_INLINE void mspan_take_near(struct mspan_cursor *c,
			       const struct mspan_run *run)
{
	atomic_u64 *word = mspan_cursor_word(c);

	c->free ^= run->bits;
	// A plain store does: the P that caches the span is the only writer
	// outside a stop; readers elsewhere see old or new.
	atomic_u64_store_release(word,
				 atomic_u64_load_relaxed(word) | run->bits);
}

// mspan_give_back makes the slots of [start, end) free again and returns how
// many these are.
uint32_t mspan_give_back(struct mspan *s, const char *start, const char *end);

// mspan_check tells whether every invariant of a span holds that can be seen
// from itself and its page words, with the world stopped; NULL: it does, else
// what does not.
const char *mspan_check(const struct mspan *s);

#endif
