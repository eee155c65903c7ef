// arena.h - from an address to what is known of it.
//
// Go: heapArena, spanOf (mheap.go).  One range of addresses is reserved for
// objects; the heap is a growing prefix of it.  Beside it stand tables with
// an entry a page, at computed places:
//
//   lines   two bitmaps of 64 bytes; which is alloc and which is mark
//           follows from the sweepgen (epoch.h)
//   words   the page word: size class, kind, state, place in the span
//   spans   the mspan
//   overflow  one bit: marked objects of this page must be scanned again
//
// The tables are usable for every page below arena_used(); any thread may
// read them there, for any address.  A page outside an in-use heap span has
// both lines zero and class 0.
#ifndef RUNTIME_PAGES_ARENA_H
#define RUNTIME_PAGES_ARENA_H

#include "runtime/os/epoch.h"
#include "runtime/os/sysmem.h"

struct mspan;

// Two words of bits, one of each line: bit i stands for granule i of 64, an
// object's bit is that of its first granule.  They stand side by side, so
// that who asks of an object whether it is marked and whether it is allocated
// touches one place.
struct linewords {
	_Alignas(16) atomic_u64 line[2];
};

enum pageword_state {
	PAGEWORD_NONE,	     // free, or never used
	PAGEWORD_HEAP,	     // part of a span of objects
	PAGEWORD_MANUAL,     // part of a stack or work buffer span
	PAGEWORD_SETTING_UP, // a large object that is not zeroed yet
	PAGEWORD_PROTECTED,  // free, but may not be touched (guard.h)
};

enum {
	PAGEWORD_CLASS_BITS = 7,
	PAGEWORD_KIND_BITS = 5,
	PAGEWORD_STATE_BITS = 3,
	PAGEWORD_KIND_SHIFT = PAGEWORD_CLASS_BITS,
	PAGEWORD_STATE_SHIFT = PAGEWORD_KIND_SHIFT + PAGEWORD_KIND_BITS,
	PAGEWORD_PLACE_SHIFT = PAGEWORD_STATE_SHIFT + PAGEWORD_STATE_BITS,
	// A place of this much or more: the first page is further away.
	PAGEWORD_PLACE_MAX = (1 << (32 - PAGEWORD_PLACE_SHIFT)) - 1,
};

RT_INLINE uint32_t pageword_make(unsigned sizeclass, unsigned kind,
				 enum pageword_state state, uint64_t place)
{
	if (place > PAGEWORD_PLACE_MAX)
		place = PAGEWORD_PLACE_MAX;
	return sizeclass | kind << PAGEWORD_KIND_SHIFT |
	       (unsigned)state << PAGEWORD_STATE_SHIFT |
	       (uint32_t)place << PAGEWORD_PLACE_SHIFT;
}

RT_INLINE unsigned pageword_class(uint32_t w)
{
	return w & ((1u << PAGEWORD_CLASS_BITS) - 1);
}

RT_INLINE unsigned pageword_kind(uint32_t w)
{
	return w >> PAGEWORD_KIND_SHIFT & ((1u << PAGEWORD_KIND_BITS) - 1);
}

RT_INLINE enum pageword_state pageword_state(uint32_t w)
{
	return (enum pageword_state)(w >> PAGEWORD_STATE_SHIFT &
				     ((1u << PAGEWORD_STATE_BITS) - 1));
}

// pageword_stack is the bit that tells, in the word of a page of interpreter
// stacks, whether the host has the stack that begins in part i of the page.
// It is one of the kind's, which such a page does not have.
RT_INLINE uint32_t pageword_stack(unsigned i)
{
	return 1u << (PAGEWORD_KIND_SHIFT + i);
}

RT_INLINE uint32_t pageword_place(uint32_t w)
{
	return w >> PAGEWORD_PLACE_SHIFT;
}

enum {
	// Tables that marking touches at random: lines, words, spans.
	ARENA_MARKED_TABLES = 3,
	ARENA_TABLES = 4,
};

struct arena {
	uintptr_t base;	     // 64 MiB aligned
	uint64_t reserved;   // bytes of address space for objects
	atomic_u64 used;     // bytes of the prefix that is the heap; grows
	atomic_u64 prepared; // bytes of the prefix that could be, at once
	struct linewords *lines;
	atomic_u32 *words;
	atomic_ptr *spans;
	atomic_u64 *overflow;
	struct systable table[ARENA_TABLES]; // lines, words, spans, overflow
};

RT_GLOBAL struct arena arena;

// arena_init reserves address space for max_heap bytes (0: 1 TiB, or 16 GiB
// under a sanitizer) and its tables: at most half of RLIMIT_AS, halved until
// granted, at least 64 MiB.  False: not even that.
bool arena_init(uint64_t max_heap);
void arena_fini(void);

// arena_prepare makes memory and tables of the first nchunks chunks usable,
// not yet a part of the heap.  One thread at a time.  False: refused or beyond
// the range; nothing that is counted changed but what tables gained.
bool arena_prepare(uint32_t nchunks);

// arena_grow makes the heap nchunks chunks long, which are prepared, and counts
// them in heap_mapped; it does not call the system.  Heap lock held.
void arena_grow(uint32_t nchunks);

// arena_table_bytes is what the table with number i needs for nchunks chunks.
size_t arena_table_bytes(unsigned i, uint64_t nchunks);

// arena_offset is how far p lies from the base; beyond arena_used() p is no
// heap address.  One subtraction filters every word.
RT_INLINE uint64_t arena_offset(uintptr_t p)
{
	return (uint64_t)(p - arena.base);
}

// arena_prepared: the acquire pairs with the release in arena_prepare, so what
// is below it is usable.
RT_INLINE uint64_t arena_prepared(void)
{
	return atomic_u64_load_acquire(&arena.prepared);
}

// arena_used: the acquire pairs with the release in arena_grow, so tables
// below it are usable.
RT_INLINE uint64_t arena_used(void)
{
	return atomic_u64_load_acquire(&arena.used);
}

// arena_lines is the first of the RT_PAGE_WORDS pairs of words of a page.
RT_INLINE struct linewords *arena_lines(uint64_t page)
{
	return arena.lines + page * RT_PAGE_WORDS;
}

RT_INLINE uintptr_t arena_page_address(uint64_t page)
{
	return arena.base + (page << RT_PAGE_SHIFT);
}

// arena_word: the acquire pairs with the release that published the span.
RT_INLINE uint32_t arena_word(uint64_t page)
{
	return atomic_u32_load_acquire(&arena.words[page]);
}

RT_INLINE struct mspan *arena_span(uint64_t page)
{
	return atomic_ptr_load_acquire(&arena.spans[page]);
}

// arena_first_page is the first page of the span that an in-use page with
// this word belongs to; each step goes back by what a place can say.
RT_INLINE uint64_t arena_first_page(uint64_t page, uint32_t word)
{
	while (RT_UNLIKELY(pageword_place(word) == PAGEWORD_PLACE_MAX)) {
		page -= PAGEWORD_PLACE_MAX;
		word = arena_word(page);
	}
	return page - pageword_place(word);
}

// arena_publish enters a span of npages pages: spans, then words.  What they
// lead to is ready.
void arena_publish(uint64_t page, uint64_t npages, struct mspan *s,
		   unsigned sizeclass, unsigned kind,
		   enum pageword_state state);

// arena_set_state changes the state in all words of a published span.
void arena_set_state(uint64_t page, uint64_t npages, enum pageword_state state);

// arena_withdraw makes the pages of a span free pages again: words, then
// spans.
void arena_withdraw(uint64_t page, uint64_t npages);

// arena_forget gives back the memory behind lines and spans of a chunk without
// a page in use: all zero.  Heap lock held.
void arena_forget(uint32_t chunk);

#endif
