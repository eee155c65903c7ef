// grey.c - marking that one pair of bits does not decide.
#include "gc/mark/grey.h"

#include <string.h>

#include "runtime/os/settings.h"
#include "runtime/os/poison.h"

uint8_t grey_granules[GREY_COUNTS];

uint8_t grey_found[GREY_COUNTS];

void grey_init(void)
{
	memset(grey_granules, 0, sizeof grey_granules);
	memset(grey_found, 0, sizeof grey_found);
}

// found_of returns an entry of grey_found.
static enum grey_result found_of(unsigned kind, unsigned class)
{
	if (!layout_scanned(kind))
		return GREY_LEAF;
	return layout_is_words(kind) || !sizeclass_is_aligned(class)
		   ? GREY_NOTHING
		   : GREY_TRACED;
}

// Under memcheck no object counts as small, because memcheck would report what
// scan_small reads (poison.h).
void grey_add_kind(unsigned kind)
{
	bool small = layout_is_words(kind) && !poison_memcheck;

	for (unsigned class = 1; class < SIZECLASS_COUNT; class ++) {
		unsigned i = kind << PAGEWORD_CLASS_BITS | class;
		uint32_t size = sizeclass_table[class].size;
		bool is =
		    small && size <= GREY_SMALL_BYTES && size % RT_GRANULE == 0;

		grey_granules[i] = (uint8_t)(is ? size / RT_GRANULE : 0);
		grey_found[i] = (uint8_t)found_of(kind, class);
	}
}

void grey_look(struct marker *m)
{
	uint32_t gen = epoch_sweepgen();

	m->base = arena.base;
	m->used = arena_used();
	m->alloc_line = epoch_alloc_line(gen);
	m->mark_line = epoch_mark_line(gen);
	m->mark = &arena.lines->line[m->mark_line];
	m->halves = settings.align8 || kinds_halves();
	m->typed = kinds_exists(KIND_TYPED);
	m->work.t.base = (const char *)m->base;
	m->work.t.used = m->used;
	m->counted = kinds_used();
}

// grey_how tells how an object of a kind with references is looked at.
static enum grey_result grey_how(unsigned kind, struct grey *o)
{
	o->kind = kind;
	return layout_is_words(kind) ? GREY_WIDE : GREY_TRACED;
}

static enum grey_result grey_large(struct marker *m, uint32_t word,
				   struct grey *o)
{
	const struct mspan *s =
	    arena_span((uint64_t)(o->base - m->base) >> RT_PAGE_SHIFT);

	m->large_bytes += s->elemsize;
	// An object that is being set up holds no pointers yet.
	if (pageword_state(word) != PAGEWORD_HEAP ||
	    !layout_scanned(pageword_kind(word)))
		return GREY_LEAF;
	o->base = mspan_object(s, 0);
	o->size = mspan_limit(s) - o->base;
	m->large_scanned += o->size;
	return grey_how(pageword_kind(word), o);
}

enum grey_result grey_wide(struct marker *m, uint32_t word, struct grey *o)
{
	unsigned class = pageword_class(word);

	if (class == 0)
		return grey_large(m, word, o);
	o->size = sizeclass_table[class].size;
	// The granule of its bit may be 8 bytes behind its beginning.
	if (!sizeclass_is_aligned(class))
		o->base -= o->base % RT_PAGE_SIZE % o->size;
	if (pageword_kind(word) == KIND_TYPED)
		return GREY_BITS;
	return grey_how(pageword_kind(word), o);
}

// ---- marks beside other markers ----

bool grey_set_once(atomic_u64 *word, uint64_t bit)
{
	return !(atomic_u64_or_relaxed(word, bit) & bit);
}

// uncount subtracts objects of a markword that another marker has marked and
// counted as well.  twice has their bits.
static RT_NOINLINE void uncount(struct marker *m, const atomic_u64 *word,
				uint64_t twice)
{
	uint64_t i =
	    ((uintptr_t)word - (uintptr_t)m->mark) / sizeof(struct linewords);

	m->objects[grey_index(arena_word(i / RT_PAGE_WORDS))] -=
	    bits_count(twice);
	m->uncounted += bits_count(twice);
}

void grey_publish(struct marker *m, struct grey_kept *e, atomic_u64 *word)
{
	if (e->word) {
		uint64_t bits = e->bits;
		uint64_t twice;

		schedpoint(SCHED_GREY_PUBLISH);
		twice = atomic_u64_or_relaxed(e->word, bits) & bits;
		if (RT_UNLIKELY(twice != 0))
			uncount(m, e->word, twice);
	}
	*e = (struct grey_kept){word, 0};
	m->keeps = true;
}

void grey_publish_all(struct marker *m)
{
	if (!m->keeps)
		return;
	for (unsigned i = 0; i < GREY_KEPT; i++)
		grey_publish(m, &m->kept[i], NULL);
	m->keeps = false;
}

// ---- words that point inside ----

static bool set(struct marker *m, atomic_u64 *word, uint64_t bit, uint32_t page)
{
	return grey_set(m, word, atomic_u64_load_relaxed(word), bit, page);
}

static enum grey_result interior_large(struct marker *m, uintptr_t w,
				       uint64_t page, uint32_t word,
				       struct grey *o)
{
	uint64_t first = arena_first_page(page, word);
	const struct mspan *s = arena_span(first);
	uint64_t bit = *mspan_masks(s);

	// A tag in the low bits of w is ignored.  A small guarded object may
	// begin at an odd address, so its base is rounded down as w is.
	w = base_align_down(w, sizeof w);
	if (w < base_align_down(mspan_object(s, 0), sizeof w) ||
	    w >= mspan_limit(s))
		return GREY_NOTHING;
	if (!(atomic_u64_load_relaxed(mspan_word(s, m->alloc_line, 0)) & bit))
		return GREY_NOTHING;
	if (!set(m, mspan_word(s, m->mark_line, 0), bit, word))
		return GREY_NOTHING;
	return grey_count(m, m->base + (first << RT_PAGE_SHIFT), word, o);
}

// lines_of_span returns the lines of the span that begins at page first.  Only
// the 8-byte class keeps its bits elsewhere.
static struct linewords *lines_of_span(uint64_t first, unsigned class)
{
	return class == 1 ? mspan_lines(arena_span(first)) : arena_lines(first);
}

enum grey_result grey_interior(struct marker *m, uintptr_t w, struct grey *o)
{
	uint64_t offset = (uint64_t)(w - m->base);
	uint64_t page = offset >> RT_PAGE_SHIFT;
	uint32_t word = arena_word(page);
	unsigned class = pageword_class(word);
	const struct sizeclass *c = &sizeclass_table[class];
	enum pageword_state state = pageword_state(word);
	uint64_t first, bit;
	uint32_t slot;
	struct linewords *lines;

	if (state != PAGEWORD_HEAP && state != PAGEWORD_SETTING_UP)
		return GREY_NOTHING;
	if (class == 0)
		return interior_large(m, w, page, word, o);
	first = arena_first_page(page, word);
	offset -= first << RT_PAGE_SHIFT;
	slot = (uint32_t)(offset * c->divmagic >> 32);
	if (slot >= c->nelems)
		return GREY_NOTHING;
	bit = sizeclass_bit(class, (uint64_t)slot * c->size);
	lines = lines_of_span(first, class) + bit / 64;
	bit = UINT64_C(1) << (bit % 64);
	if (!(atomic_u64_load_relaxed(&lines->line[m->alloc_line]) & bit))
		return GREY_NOTHING;
	if (!set(m, &lines->line[m->mark_line], bit, word))
		return GREY_NOTHING;
	return grey_count(
	    m, m->base + (first << RT_PAGE_SHIFT) + (uint64_t)slot * c->size,
	    word, o);
}
