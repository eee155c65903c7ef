// mspan.h - a run of pages of one use.  Floor 4.
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
#ifndef RUNTIME_MSPAN_H
#define RUNTIME_MSPAN_H

#include "runtime/arena.h"
#include "runtime/lfstack.h"
#include "runtime/spanclass.h"

enum mspan_use {
	MSPAN_FREE,  // no pages
	MSPAN_HEAP,  // objects
	MSPAN_STACK, // interpreter stacks
	MSPAN_WORK,  // work buffers of the collector
};

struct mspan {
	RT_CACHE_ALIGNED atomic_ptr bits; // lines of the first page; the
					  // 8-byte class: a block of its own
	uintptr_t base;
	atomic_u64 limit; // end of objects; a large one's as requested
	uint64_t npages;
	uint64_t elemsize; // bytes a slot; large: bytes of all pages
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
	uint32_t stack_used; // bit i: stack i is handed out; pool lock
};
static_assert(sizeof(struct mspan) == 128, "two lines");

// mspan_init_small, mspan_init_large set up a span whose base, npages and
// needzero are given; block is the bitmap of a span of the 8-byte class.
void mspan_init_small(struct mspan *s, spanclass sc, struct pagebits *block);
void mspan_init_large(struct mspan *s, unsigned kind, size_t request);

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

RT_INLINE struct pagebits *mspan_bits(const struct mspan *s)
{
	return atomic_ptr_load_relaxed(&s->bits);
}

// mspan_word is word w of one of the two lines of s.
RT_INLINE atomic_u64 *mspan_word(const struct mspan *s, unsigned line,
				 unsigned w)
{
	return &mspan_bits(s)[w / RT_PAGE_WORDS].line[line][w % RT_PAGE_WORDS];
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

// A run: consecutive slots, at most a page of them.
struct mspan_run {
	unsigned first; // bit numbers: [first, stop)
	unsigned stop;
	uint32_t n; // slots
	char *cur;  // addresses: [cur, end)
	char *end;
};

// mspan_find_run finds the first run of free slots at or after bit from;
// false: none.  It changes nothing.  The caller owns the cached span.
bool mspan_find_run(const struct mspan *s, unsigned from,
		    struct mspan_run *run);

// mspan_take_run marks the slots of a run allocated; its memory is zero or
// need not be.
void mspan_take_run(struct mspan *s, const struct mspan_run *run);

// mspan_give_back makes the slots of [cur, end) free again and returns how
// many these are.
uint32_t mspan_give_back(struct mspan *s, const char *cur, const char *end);

// mspan_check tells whether every invariant of a span holds that can be seen
// from itself and its page words, with the world stopped; NULL: it does, else
// what does not.
const char *mspan_check(const struct mspan *s);

#endif
