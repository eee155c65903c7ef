// arena.h - the range of the heap, and the tables that describe its pages.
//
// Go: heapArena, spanOf (mheap.go).
//
// One range of addresses is reserved for objects; the heap is a growing prefix
// of it.  Tables outside the range have an entry for each page:
//
//   lines   two bitmaps of 64 bytes; which is alloc and which is mark
//           follows from the sweepgen (epoch.h)
//   pagewords  for each page: size class, kind, state, place in the span
//   spans   the mspan
//   overflow  one bit: marked objects of this page must be scanned again
//   typebits  a bit for each word (typebits.h); reserved when first needed
//   deadbits  two bitmaps like lines (deadbits.h); reserved when first needed
//
// A table that is reserved is usable for every page below arena_used(), and any
// thread may read it there.  A page outside an in-use heap span has both lines
// and its deadbits zero, and class 0.
#ifndef RUNTIME_PAGES_ARENA_H
#define RUNTIME_PAGES_ARENA_H

#include "runtime/os/epoch.h"
#include "runtime/os/sysmem.h"

struct mspan;

// A markword and an allocword, which have a bit for each of 64 granules, or in
// a bitmap8 (mspan.h) for each of 64 slots of 8 bytes.  An object has the bit
// of its first whole granule, a guarded object that of the granule in which it
// begins.  The two words are side by side, so testing both bits of an object
// touches one cache line.  mspan_check compares the linewords of a span with
// its slots.
struct linewords {
	_Alignas(16) atomic_u64 line[2];
};

// The state of dead objects in the same 64 granules (deadbits.h).  mspan_check
// compares the deadwords of a span with its allocwords.
struct deadwords {
	_Alignas(16) atomic_u64 turn[2];
};

enum pageword_state {
	PAGEWORD_NONE,	     // free, or never used
	PAGEWORD_HEAP,	     // part of a span of objects
	PAGEWORD_MANUAL,     // part of a stack or work buffer span
	PAGEWORD_SETTING_UP, // a large object that is not zeroed yet
	PAGEWORD_PROTECTED,  // free and protected (guard.h)
};

enum {
	PAGEWORD_CLASS_BITS = 7,
	PAGEWORD_KIND_BITS = 5,
	PAGEWORD_STATE_BITS = 3,
	PAGEWORD_KIND_SHIFT = PAGEWORD_CLASS_BITS,
	PAGEWORD_STATE_SHIFT = PAGEWORD_KIND_SHIFT + PAGEWORD_KIND_BITS,
	PAGEWORD_PLACE_SHIFT = PAGEWORD_STATE_SHIFT + PAGEWORD_STATE_BITS,
	// The largest place: the first page is this far away or further.
	PAGEWORD_PLACE_MAX = (1 << (32 - PAGEWORD_PLACE_SHIFT)) - 1,
};

// pageword_make returns the pageword of the first page of a span, and
// pageword_at that of a later page.
RT_INLINE uint32_t pageword_make(unsigned sizeclass, unsigned kind,
				 enum pageword_state state)
{
	return sizeclass | kind << PAGEWORD_KIND_SHIFT |
	       (unsigned)state << PAGEWORD_STATE_SHIFT;
}

RT_INLINE uint32_t pageword_at(uint32_t first, uint64_t place)
{
	if (place > PAGEWORD_PLACE_MAX)
		place = PAGEWORD_PLACE_MAX;
	return first | (uint32_t)place << PAGEWORD_PLACE_SHIFT;
}

RT_INLINE unsigned pageword_class(uint32_t pageword)
{
	return pageword & ((1u << PAGEWORD_CLASS_BITS) - 1);
}

RT_INLINE unsigned pageword_kind(uint32_t pageword)
{
	return pageword >> PAGEWORD_KIND_SHIFT &
	       ((1u << PAGEWORD_KIND_BITS) - 1);
}

RT_INLINE enum pageword_state pageword_state(uint32_t pageword)
{
	return (enum pageword_state)(pageword >> PAGEWORD_STATE_SHIFT &
				     ((1u << PAGEWORD_STATE_BITS) - 1));
}

// pageword_stack returns a bit of the pageword of a page of interpreter stacks.
// The bit is set while the host has the stack that begins in part i of the
// page.  It is one of the bits for a kind, since such a page has no kind.
RT_INLINE uint32_t pageword_stack(unsigned i)
{
	return 1u << (PAGEWORD_KIND_SHIFT + i);
}

RT_INLINE uint32_t pageword_place(uint32_t pageword)
{
	return pageword >> PAGEWORD_PLACE_SHIFT;
}

// The longest range that is reserved: 1 TiB.
#define ARENA_MAX_RANGE (UINT64_C(1) << 40)

enum {
	// Tables that marking touches at random: lines, pagewords, spans.
	ARENA_MARKED_TABLES = 3,
	ARENA_TABLES = 6,
};

struct arena {
	uintptr_t base;	     // 64 MiB aligned
	uint64_t reserved;   // bytes of address space for objects
	atomic_u64 used;     // bytes of the heap; grows under the heap lock
	atomic_u64 prepared; // bytes of the prefix that is usable memory
	struct linewords *lines;
	atomic_u32 *pagewords;
	atomic_ptr *spans;
	atomic_u64 *overflow;
	atomic_ptr typebits;		     // NULL before arena_add_typebits
	atomic_ptr deadbits;		     // NULL before arena_add_deadbits
	struct systable table[ARENA_TABLES]; // in this order; base may be NULL
};

RT_GLOBAL struct arena arena;

// arena_init reserves address space for settings()->max_heap bytes (0: 1 TiB,
// or 16 GiB under a sanitizer) and for the tables.  The range is at least 64
// MiB and otherwise at most half of RLIMIT_AS.  It is halved until the system
// grants it.  Returns false if the system refuses even 64 MiB.
bool arena_init(void);
void arena_fini(void);

// arena_prepare makes memory and tables of the first nchunks chunks usable.
// They are not part of the heap yet.  One thread at a time may call it.
// Returns false if the system refuses or the range is too short; then no gauge
// has changed, except for what tables gained.
bool arena_prepare(uint32_t nchunks);

// arena_add_typebits and arena_add_deadbits reserve a table and make it as long
// as the others, unless it was added before.  It grows with them from then on.
// The caller must exclude arena_prepare.  They return false if the system
// refuses; then nothing has changed.
bool arena_add_typebits(void);
bool arena_add_deadbits(void);

// arena_grow makes the heap nchunks chunks long and counts the new ones in
// heap_mapped.  The chunks must be prepared, so it does not call the system.
// The caller must hold the heap lock.
void arena_grow(uint32_t nchunks);

// arena_table_bytes returns the bytes that table i needs for nchunks chunks.
size_t arena_table_bytes(unsigned i, uint64_t nchunks);

// arena_offset returns the distance of p from the base.  p is a heap address if
// that is below arena_used(), so one comparison filters every word.
RT_INLINE uint64_t arena_offset(uintptr_t p)
{
	return (uint64_t)(p - arena.base);
}

// arena_prepared returns the bytes that are prepared.  The acquire pairs with
// the release in arena_prepare, so memory and tables below the result are
// usable.
RT_INLINE uint64_t arena_prepared(void)
{
	return atomic_u64_load_acquire(&arena.prepared);
}

// arena_used returns the bytes of the heap.  The acquire pairs with the release
// in arena_grow, so tables below the result are usable.
RT_INLINE uint64_t arena_used(void)
{
	return atomic_u64_load_acquire(&arena.used);
}

// arena_lines returns the first of the RT_PAGE_WORDS pairs of linewords of a
// page.
RT_INLINE struct linewords *arena_lines(uint64_t page)
{
	return arena.lines + page * RT_PAGE_WORDS;
}

// arena_typebits returns the table of type bits, or NULL.  A thread that finds
// a typed object, or the kind of one, also finds the table.
RT_INLINE uint64_t *arena_typebits(void)
{
	return atomic_ptr_load_relaxed(&arena.typebits);
}

// arena_deadbits returns the table of dead bits, or NULL.  A thread that finds
// a kind with destructors, or a page of such a kind, also finds the table.
RT_INLINE struct deadwords *arena_deadbits(void)
{
	return atomic_ptr_load_relaxed(&arena.deadbits);
}

RT_INLINE uintptr_t arena_page_address(uint64_t page)
{
	return arena.base + (page << RT_PAGE_SHIFT);
}

// arena_pageword returns the pageword of a page.  The acquire pairs with the
// releases in arena_publish, arena_extend, arena_set_state and arena_withdraw,
// and with those in guard.c.
RT_INLINE uint32_t arena_pageword(uint64_t page)
{
	return atomic_u32_load_acquire(&arena.pagewords[page]);
}

// arena_span returns the span of a page, or NULL.  The acquire pairs with the
// releases in arena_publish, arena_extend and arena_withdraw.
RT_INLINE struct mspan *arena_span(uint64_t page)
{
	return atomic_ptr_load_acquire(&arena.spans[page]);
}

// arena_span_hint is arena_span without its order.  The span may only be
// prefetched.
RT_INLINE const struct mspan *arena_span_hint(uint64_t page)
{
	return atomic_ptr_load_relaxed(&arena.spans[page]);
}

// arena_first_page returns the first page of the span of an in-use page with
// this pageword.  Each step but the last goes back by the largest place.
RT_INLINE uint64_t arena_first_page(uint64_t page, uint32_t pageword)
{
	while (RT_UNLIKELY(pageword_place(pageword) == PAGEWORD_PLACE_MAX)) {
		page -= PAGEWORD_PLACE_MAX;
		pageword = arena_pageword(page);
	}
	return page - pageword_place(pageword);
}

// arena_publish enters a span of npages pages into the table of spans, then
// into that of pagewords.  All that these lead to must be ready.
void arena_publish(uint64_t page, uint64_t npages, struct mspan *s,
		   unsigned sizeclass, unsigned kind,
		   enum pageword_state state);

// arena_extend enters `more` pages behind the npages of a published span, whose
// first pageword is given.
void arena_extend(uint64_t page, uint64_t npages, uint64_t more,
		  struct mspan *s, uint32_t pageword);

// arena_set_state changes the state in all pagewords of a published span.
void arena_set_state(uint64_t page, uint64_t npages, enum pageword_state state);

// arena_withdraw clears the entries of pages in the table of pagewords, then in
// that of spans.  The pages may be those of several spans, or a part of a span.
void arena_withdraw(uint64_t page, uint64_t npages);

// arena_release_tables releases the memory behind lines, spans, typebits and
// deadbits of a chunk.  The chunk must have no page in use.  So nothing is
// lost: the typebits have no meaning then, and the others are zero.  Returns
// false if the system refuses a part of that.  The caller must hold the heap
// lock.
bool arena_release_tables(uint32_t chunk);

// arena_check returns NULL if all invariants hold, otherwise what does not.
// The caller must exclude arena_prepare and additions of tables, or have
// stopped the world.  The heap may grow meanwhile.
const char *arena_check(const struct arena *a);

#endif
