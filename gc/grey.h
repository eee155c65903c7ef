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

// One marker.  Markers stand on cache lines of their own.
struct gcmarker {
	RT_CACHE_ALIGNED uintptr_t base; // of the heap
	uint64_t used;			 // bytes of it
	atomic_u64 *mark;		 // mark line of its first page
	ptrdiff_t alloc;		 // from a mark word to its alloc word
	unsigned alloc_line;
	unsigned mark_line;
	bool overflowed;	// some page waits to be scanned again
	uint64_t marked_bytes;	// of objects marked
	uint64_t scanned_bytes; // of objects scanned
	uint64_t marked_objects;
	uint64_t stack_bytes;	// of stacks scanned
	uint64_t globals_bytes; // of root ranges scanned
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

// gcgrey_prefetch asks for everything that marking and scanning w will touch:
// page word, both bit lines, and two lines of the object.
RT_INLINE void gcgrey_prefetch(const struct gcmarker *m, uintptr_t w)
{
	uint64_t page = (uint64_t)(w - m->base) >> RT_PAGE_SHIFT;

	const atomic_u64 *mark = gcgrey_mark_word(m, w);

	__builtin_prefetch(mark);
	__builtin_prefetch(mark + m->alloc);
	__builtin_prefetch(&arena.words[page]);
	__builtin_prefetch((const void *)w);
	__builtin_prefetch((const void *)(w + 32));
}

// gcgrey_interior marks the object that w points into, by division.
bool gcgrey_interior(struct gcmarker *m, uintptr_t w, struct gcgrey *o);

// gcgrey_large is the part of marking that only large objects take.
bool gcgrey_large(struct gcmarker *m, uint64_t page, uint32_t word,
		  struct gcgrey *o);

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

// gcgrey_count counts a small object marked and tells whether it has to be
// scanned.
RT_INLINE bool gcgrey_count(struct gcmarker *m, uintptr_t base, uint32_t word,
			    struct gcgrey *o)
{
	uint64_t size = sizeclass_table[pageword_class(word)].size;

	m->marked_bytes += size;
	m->marked_objects++;
	o->base = base;
	o->size = size;
	return gckind_scanned(pageword_kind(word));
}

// gcgrey_word marks the allocated object that w, a word inside the heap,
// points into.  True: it was not marked yet and has to be scanned.
RT_INLINE bool gcgrey_word(struct gcmarker *m, uintptr_t w, struct gcgrey *o)
{
	uint64_t page = (uint64_t)(w - m->base) >> RT_PAGE_SHIFT;
	atomic_u64 *mark = gcgrey_mark_word(m, w);
	uint64_t bit = gcgrey_bit(w);
	uint32_t word;

	if (RT_UNLIKELY(arena.align8))
		return gcgrey_interior(m, w, o);
	if (atomic_u64_load_relaxed(mark) & bit)
		return false;
	if (!(atomic_u64_load_relaxed(mark + m->alloc) & bit))
		return gcgrey_interior(m, w, o);
	if (!gcgrey_set(m, mark, bit))
		return false;
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
