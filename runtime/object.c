#include "runtime/object.h"

// bits_of_eight is the block of a span of the 8-byte class, the only one that
// keeps its bits elsewhere; NULL: the span was freed since its page word was
// read.  Its mspan may be in other use by then; who sees the bits of that use
// also sees that the page was withdrawn.
static const struct pagebits *bits_of_eight(uint64_t page, uint32_t word)
{
	const struct mspan *s = arena_span(page);
	const struct pagebits *bits =
	    s ? atomic_ptr_load_acquire(&s->bits) : NULL;

	return arena_word(page) == word && arena_span(page) == s ? bits : NULL;
}

// object_test reads an alloc bit.
static bool object_test(const struct pagebits *bits, unsigned bit)
{
	unsigned line = epoch_alloc_line(epoch_sweepgen());
	const atomic_u64 *w = &bits[bit / (64 * RT_PAGE_WORDS)]
				   .line[line][bit / 64 % RT_PAGE_WORDS];

	return atomic_u64_load_acquire(w) >> (bit % 64) & 1;
}

// object_large: p points into the pages of a large span.  A span that is
// freed and used again meanwhile has given its first page another word.
static bool object_large(uintptr_t p, uint64_t page, uint32_t word,
			 struct object *o)
{
	uint64_t first = arena_first_page(page, word);
	uintptr_t base = arena_page_address(first);
	const struct mspan *s = arena_span(first);
	uint64_t limit = s ? mspan_limit(s) : 0;

	if (p >= limit || limit <= base ||
	    pageword_state(arena_word(first)) != PAGEWORD_HEAP ||
	    pageword_class(arena_word(first)) != 0 ||
	    !object_test(&arena.lines[first], 0))
		return false;
	o->base = base;
	o->request = limit - base;
	o->size = base_pages(o->request) << RT_PAGE_SHIFT;
	return true;
}

static bool object_small(uintptr_t p, uint64_t page, uint32_t word,
			 struct object *o)
{
	unsigned class = pageword_class(word);
	const struct sizeclass *c = &sizeclass_table[class];
	uint64_t first = arena_first_page(page, word);
	uintptr_t base = arena_page_address(first);
	uint64_t slot = (p - base) * c->divmagic >> 32;
	unsigned bit = (unsigned)(slot * c->size >> sizeclass_bit_shift(class));
	const struct pagebits *bits =
	    class == 1 ? bits_of_eight(page, word) : &arena.lines[first];

	if (!bits || !object_test(bits, bit))
		return false;
	o->base = base + slot * c->size;
	o->size = o->request = c->size;
	return true;
}

// look_up is one look, by the line that is the alloc line now.
static bool look_up(uintptr_t p, struct object *o)
{
	uint64_t offset = arena_offset(p);
	uint64_t page = offset >> RT_PAGE_SHIFT;
	uint32_t word;

	if (offset >= arena_used())
		return false;
	word = arena_word(page);
	if (pageword_state(word) != PAGEWORD_HEAP)
		return false;
	o->kind = pageword_kind(word);
	return pageword_class(word) == 0 ? object_large(p, page, word, o)
					 : object_small(p, page, word, o);
}

bool object_find(uintptr_t p, struct object *o)
{
	uint32_t gen;
	bool found;

	// No stop waits for a thread without a P: the heap may flip during its
	// look, and sweeping clear the line that it reads.  The acquires of
	// the bits pair with the release in sweep_lines: who sees a bit that
	// was cleared also sees that the sweepgen moved, and looks again.
	do {
		gen = atomic_u32_load_acquire(&epoch.sweepgen);
		found = look_up(p, o);
	} while (RT_UNLIKELY(epoch_sweepgen() != gen));
	return found;
}
