// grey.h - from a word to a marked object: the one place that marks.
// Floor 6.
//
// Go: greyobject, findObject (mgcmark.go, mbitmap.go).
//
// A word's granule has a bit in the mark line and one in the alloc line of
// its page.  Mark bit set: done, nothing else is read.  Alloc bit set: the
// word points into the first granule of an allocated object, whose base is
// the word rounded down; only a new object costs a look at the page word.
// Else the word is interior, stale or no pointer at all: the page word and a
// division find the slot, and its alloc bit decides.  So a free slot is never
// marked, whatever the word.
//
// With the classes of 8 and 24 bytes (align8) two objects can share a
// granule or begin in the middle of one: then every word is divided.
#ifndef GC_GREY_H
#define GC_GREY_H

#include "gc/kind.h"
#include "gc/work.h"

// Small objects are counted by class and kind: one addition an object.
enum { GCGREY_COUNTS = KIND_COUNT << PAGEWORD_CLASS_BITS };

RT_INLINE unsigned gcgrey_index(uint32_t word)
{
	return word % GCGREY_COUNTS;
}
static_assert((GCGREY_COUNTS & (GCGREY_COUNTS - 1)) == 0 &&
		  (int)PAGEWORD_KIND_SHIFT == (int)PAGEWORD_CLASS_BITS,
	      "class and kind are the lowest bits of a page word");

// What marking a word found.
enum gcgrey_result {
	GCGREY_NOTHING, // no object, or marked before
	GCGREY_LEAF,	// newly marked, has no pointers
	GCGREY_SCAN,	// newly marked, to be scanned
};

// One marker.  Markers stand on cache lines of their own.
struct gcmarker {
	RT_CACHE_ALIGNED uintptr_t base; // of the heap
	uint64_t used;			 // bytes of it
	atomic_u64 *mark;		 // mark line of its first page
	ptrdiff_t alloc;		 // from a mark word to its alloc word
	unsigned alloc_line;
	unsigned mark_line;
	bool overflowed;	// some page waits to be scanned again
	uint32_t looks;		// at other markers, in this marking
	uint64_t large_objects; // marked
	uint64_t large_bytes;	// of them
	uint64_t large_scanned; // bytes of those scanned
	uint64_t stack_bytes;	// of stacks scanned
	uint64_t globals_bytes; // of root ranges scanned
	uint64_t small_objects[GCGREY_COUNTS]; // marked, by gcgrey_index
	struct gcwork work;
};

// An object that was just marked and has to be scanned.
struct gcgrey {
	uintptr_t base;
	uint64_t size; // bytes to scan
};

// gcgrey_look lets m find the heap as it is in this stop.
void gcgrey_look(struct gcmarker *m);

RT_INLINE bool gcgrey_in_heap(const struct gcmarker *m, uintptr_t w)
{
	return (uint64_t)(w - m->base) < m->used;
}

// gcgrey_mark_word is where the mark bit of w's granule is; see struct
// pagebits.
RT_INLINE atomic_u64 *gcgrey_mark_word(const struct gcmarker *m, uintptr_t w)
{
	uint64_t i = (uint64_t)(w - m->base) >> (RT_GRANULE_SHIFT + 6);

	return m->mark + i + (i & ~(uint64_t)(RT_PAGE_WORDS - 1));
}

RT_INLINE uint64_t gcgrey_bit(uintptr_t w)
{
	return UINT64_C(1) << ((w >> RT_GRANULE_SHIFT) % 64);
}

// gcgrey_prefetch_to_set asks for a line that will probably be written: with
// several markers it has to leave the other's cache.
RT_INLINE void gcgrey_prefetch_to_set(const atomic_u64 *mark)
{
#if defined(__x86_64__)
	// The compiler's own takes it for an extension; processors without it
	// do nothing.
	__asm__ volatile("prefetchw %0" : : "m"(*mark));
#else
	__builtin_prefetch(mark, 1);
#endif
}

// gcgrey_prefetch asks for everything that marking and scanning w will touch:
// page word, both bit lines, and two lines of the object.
RT_INLINE void gcgrey_prefetch(const struct gcmarker *m, uintptr_t w)
{
	uint64_t page = (uint64_t)(w - m->base) >> RT_PAGE_SHIFT;

	const atomic_u64 *mark = gcgrey_mark_word(m, w);

	gcgrey_prefetch_to_set(mark);
	__builtin_prefetch(mark + m->alloc);
	__builtin_prefetch(&arena.words[page]);
	__builtin_prefetch((const void *)w);
	__builtin_prefetch((const void *)(w + 32));
}

// gcgrey_interior marks the object that w points into, by division.
enum gcgrey_result gcgrey_interior(struct gcmarker *m, uintptr_t w,
				   struct gcgrey *o);

// gcgrey_large is the part of marking that only large objects take.
enum gcgrey_result gcgrey_large(struct gcmarker *m, uint64_t page,
				uint32_t word, struct gcgrey *o);

// gcgrey_set sets a mark bit; false: somebody else has.
RT_INLINE bool gcgrey_set(struct gcmarker *m, atomic_u64 *word, uint64_t bit)
{
	if (m->work.alone) {
		uint64_t old = atomic_u64_load_relaxed(word);

		atomic_u64_store_relaxed(word, old | bit);
		return !(old & bit);
	}
	return !(atomic_u64_or_relaxed(word, bit) & bit);
}

// gcgrey_count counts a small object that was just marked.
RT_INLINE enum gcgrey_result gcgrey_count(struct gcmarker *m, uintptr_t base,
					  uint32_t word, struct gcgrey *o)
{
	m->small_objects[gcgrey_index(word)]++;
	if (!gckind_scanned(pageword_kind(word)))
		return GCGREY_LEAF;
	o->base = base;
	o->size = sizeclass_table[pageword_class(word)].size;
	return GCGREY_SCAN;
}

// gcgrey_word marks the allocated object that w, a word inside the heap,
// points into.
RT_INLINE enum gcgrey_result gcgrey_word(struct gcmarker *m, uintptr_t w,
					 struct gcgrey *o)
{
	uint64_t page = (uint64_t)(w - m->base) >> RT_PAGE_SHIFT;
	atomic_u64 *mark = gcgrey_mark_word(m, w);
	uint64_t bit = gcgrey_bit(w);
	uint32_t word;

	if (RT_UNLIKELY(arena.align8))
		return gcgrey_interior(m, w, o);
	if (atomic_u64_load_relaxed(mark) & bit)
		return GCGREY_NOTHING;
	if (!(atomic_u64_load_relaxed(mark + m->alloc) & bit))
		return gcgrey_interior(m, w, o);
	if (!gcgrey_set(m, mark, bit))
		return GCGREY_NOTHING;
	word = arena_word(page);
	if (RT_UNLIKELY(pageword_class(word) == 0))
		return gcgrey_large(m, page, word, o);
	return gcgrey_count(m, w & ~(uintptr_t)(RT_GRANULE - 1), word, o);
}

// gcgrey_marked tells whether w is known to need nothing more; a cheap test
// that may say no of an interior word.
RT_INLINE bool gcgrey_marked(const struct gcmarker *m, uintptr_t w)
{
	return !arena.align8 &&
	       (atomic_u64_load_relaxed(gcgrey_mark_word(m, w)) &
		gcgrey_bit(w));
}

#endif
