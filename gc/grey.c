#include "gc/grey.h"

void gcgrey_look(struct gcmarker *m)
{
	uint32_t gen = epoch_sweepgen();

	m->base = arena.base;
	m->used = arena_used();
	m->alloc_line = epoch_alloc_line(gen);
	m->mark_line = epoch_mark_line(gen);
	m->mark = arena.lines->line[m->mark_line];
	m->alloc = arena.lines->line[m->alloc_line] - m->mark;
}

enum gcgrey_result gcgrey_large(struct gcmarker *m, uint64_t page,
				uint32_t word, struct gcgrey *o)
{
	const struct mspan *s = arena_span(page);

	m->large_bytes += s->elemsize;
	m->large_objects++;
	// One that is being set up holds no pointers yet.
	if (pageword_state(word) != PAGEWORD_HEAP ||
	    !gckind_scanned(pageword_kind(word)))
		return GCGREY_LEAF;
	o->base = s->base;
	o->size = mspan_limit(s) - s->base;
	m->large_scanned += o->size;
	return GCGREY_SCAN;
}

static enum gcgrey_result interior_large(struct gcmarker *m, uintptr_t w,
					 uint64_t page, uint32_t word,
					 struct gcgrey *o)
{
	uint64_t first = arena_first_page(page, word);
	struct pagebits *lines = &arena.lines[first];

	if (w >= mspan_limit(arena_span(first)))
		return GCGREY_NOTHING;
	if (!(atomic_u64_load_relaxed(&lines->line[m->alloc_line][0]) & 1))
		return GCGREY_NOTHING;
	if (!gcgrey_set(m, &lines->line[m->mark_line][0], 1))
		return GCGREY_NOTHING;
	return gcgrey_large(m, first, word, o);
}

// bits_of_span: only the 8-byte class keeps its bits elsewhere.
static struct pagebits *bits_of_span(uint64_t first, unsigned class)
{
	return class == 1 ? mspan_bits(arena_span(first)) : &arena.lines[first];
}

enum gcgrey_result gcgrey_interior(struct gcmarker *m, uintptr_t w,
				   struct gcgrey *o)
{
	uint64_t offset = (uint64_t)(w - m->base);
	uint64_t page = offset >> RT_PAGE_SHIFT;
	uint32_t word = arena_word(page);
	unsigned class = pageword_class(word);
	const struct sizeclass *c = &sizeclass_table[class];
	enum pageword_state state = pageword_state(word);
	uint64_t first, bit;
	uint32_t slot;
	struct pagebits *lines;
	unsigned i;

	if (state != PAGEWORD_HEAP && state != PAGEWORD_SETTING_UP)
		return GCGREY_NOTHING;
	if (class == 0)
		return interior_large(m, w, page, word, o);
	first = arena_first_page(page, word);
	offset -= first << RT_PAGE_SHIFT;
	slot = (uint32_t)(offset * c->divmagic >> 32);
	bit = (uint64_t)slot * c->size >> sizeclass_bit_shift(class);
	lines = bits_of_span(first, class) + bit / 512;
	i = bit / 64 % RT_PAGE_WORDS;
	bit = UINT64_C(1) << (bit % 64);
	// The rest of a span behind its last slot divides to a slot whose bit
	// is never set.
	if (!(atomic_u64_load_relaxed(&lines->line[m->alloc_line][i]) & bit))
		return GCGREY_NOTHING;
	if (!gcgrey_set(m, &lines->line[m->mark_line][i], bit))
		return GCGREY_NOTHING;
	return gcgrey_count(
	    m, m->base + (first << RT_PAGE_SHIFT) + (uint64_t)slot * c->size,
	    word, o);
}
