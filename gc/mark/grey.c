// grey.c - marking that one pair of bits does not decide.
#include "gc/mark/grey.h"

#include <string.h>

#include "runtime/os/throw.h"
#include "runtime/os/settings.h"
#include "runtime/os/poison.h"
#include "runtime/world/stw.h"
#include "gc/mark/drops.h"

uint8_t grey_granules[GREY_COUNTS];

uint8_t grey_found[GREY_COUNTS];

uint32_t grey_bases;

static bool expected; // grey_found expects objects that are loose

void grey_init(void)
{
	expected = false;
	memset(grey_granules, 0, sizeof grey_granules);
	memset(grey_found, 0, sizeof grey_found);
	grey_bases = 0;
}

// is_small tells whether objects of a class and kind are scanned by scan_small.
// Under memcheck no object is, because memcheck would report what scan_small
// reads (poison.h).
static bool is_small(unsigned kind, unsigned class)
{
	uint32_t size = sizeclass_table[class].size;

	return class != 0 && layout_is_words(kind) && !poison_memcheck &&
	       size <= GREY_SMALL_BYTES && size % RT_GRANULE == 0;
}

// found_of returns an entry of grey_found for a kind that is not flagged.
static enum grey_result found_of(unsigned kind, unsigned class)
{
	// Large objects are counted in bytes as well.
	if (class == 0)
		return GREY_NOTHING;
	if (!layout_scanned(kind))
		return GREY_LEAF;
	if (layout_is_words(kind) || !sizeclass_is_aligned(class))
		return GREY_NOTHING;
	if (kind == KIND_TYPED)
		return GREY_BITS;
	return layouts[kind].how == RT_LAYOUT_TRACE ? GREY_CALLED : GREY_TRACED;
}

// set_found sets the entries of a kind.  If the kind is flagged, grey_settle
// must look at all its objects.
static void set_found(unsigned kind, bool flagged)
{
	for (unsigned class = 0; class < SIZECLASS_COUNT; class ++) {
		uint32_t size = sizeclass_table[class].size;
		unsigned i = kind << PAGEWORD_CLASS_BITS | class;

		grey_granules[i] = (uint8_t)(!flagged && is_small(kind, class)
						 ? size / RT_GRANULE
						 : 0);
		grey_found[i] =
		    (uint8_t)(flagged ? GREY_FLAGGED : found_of(kind, class));
	}
}

// is_flagged tells whether markers look at the flags of a kind.  A dead object
// that is not loose is marked before they begin.
static bool is_flagged(unsigned kind, bool loose)
{
	uint32_t drop = (uint32_t)RT_KIND_DROP | RT_KIND_DROP_DEEP;

	return (layouts[kind].flags & ~(loose ? 0 : drop)) != 0;
}

void grey_add_kind(unsigned kind)
{
	uint32_t bit = UINT32_C(1) << kind;

	set_found(kind, is_flagged(kind, false));
	grey_bases = layouts[kind].flags & RT_KIND_BASE ? grey_bases | bit
							: grey_bases & ~bit;
}

void grey_expect(bool loose)
{
	RT_ASSERT(stw_stopped());
	if (!loose && !expected)
		return;
	expected = loose;
	for (uint32_t x = kinds_used() & kinds_drops(); x; x &= x - 1)
		set_found(bits_ctz(x), is_flagged(bits_ctz(x), loose));
}

void grey_look(struct marker *m)
{
	uint32_t gen = epoch_sweepgen();

	m->base = arena.base;
	m->used = arena_used();
	m->alloc_line = epoch_alloc_line(gen);
	m->mark_line = epoch_mark_line(gen);
	m->markwords = &arena.lines->line[m->mark_line];
	m->halves = settings()->align8 || kinds_halves();
	m->typed = kinds_exists(KIND_TYPED);
	m->work.t.base = (const char *)m->base;
	m->work.t.used = m->used;
	m->counted = kinds_used();
	m->bases = m->counted & grey_bases;
}

// grey_how returns how an object of a kind with references must be scanned.
static enum grey_result grey_how(unsigned kind, struct grey *o)
{
	o->kind = kind;
	return layout_is_words(kind) ? GREY_WIDE : GREY_TRACED;
}

static enum grey_result grey_large(struct marker *m, uint32_t pageword,
				   struct grey *o)
{
	const struct mspan *s =
	    arena_span((uint64_t)(o->base - m->base) >> RT_PAGE_SHIFT);

	m->large_bytes += s->elemsize;
	// An object that is being set up holds no pointers yet.
	if (pageword_state(pageword) != PAGEWORD_HEAP ||
	    !layout_scanned(pageword_kind(pageword)))
		return GREY_LEAF;
	o->base = mspan_object(s, 0);
	o->size = mspan_limit(s) - o->base;
	m->large_scanned += o->size;
	return grey_how(pageword_kind(pageword), o);
}

enum grey_result grey_wide(struct marker *m, uint32_t pageword, struct grey *o)
{
	unsigned class = pageword_class(pageword);

	if (class == 0)
		return grey_large(m, pageword, o);
	o->size = sizeclass_table[class].size;
	// The granule of its bit may begin 8 bytes after the object does.
	if (!sizeclass_is_aligned(class))
		o->base -= o->base % RT_PAGE_SIZE % o->size;
	if (pageword_kind(pageword) == KIND_TYPED)
		return GREY_BITS;
	return grey_how(pageword_kind(pageword), o);
}

// ---- marks beside other markers ----

bool grey_set_once(atomic_u64 *markword, uint64_t bit)
{
	return !(atomic_u64_or_relaxed(markword, bit) & bit);
}

// uncount subtracts objects of a markword that another marker has marked and
// counted as well.  twice has the bits of these objects.
static RT_NOINLINE void uncount(struct marker *m, const atomic_u64 *markword,
				uint64_t twice)
{
	uint64_t i = ((uintptr_t)markword - (uintptr_t)m->markwords) /
		     sizeof(struct linewords);

	m->objects[grey_index(arena_pageword(i / RT_PAGE_WORDS))] -=
	    bits_count(twice);
	m->uncounted += bits_count(twice);
}

void grey_publish(struct marker *m, struct grey_kept *e, atomic_u64 *markword)
{
	if (e->markword) {
		uint64_t bits = e->bits;
		uint64_t twice;

		schedpoint(SCHED_GREY_PUBLISH);
		twice = atomic_u64_or_relaxed(e->markword, bits) & bits;
		if (RT_UNLIKELY(twice != 0))
			uncount(m, e->markword, twice);
	}
	*e = (struct grey_kept){markword, 0};
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

// publish_word sets the marks of a markword, if m keeps back any.
static void publish_word(struct marker *m, atomic_u64 *markword)
{
	struct grey_kept *e = grey_entry(m, markword);

	if (e->markword == markword && e->bits != 0)
		grey_publish(m, e, markword);
}

// The granule of the mark may begin 8 bytes after the object's base.
void grey_publish_object(struct marker *m, uintptr_t base)
{
	publish_word(m, grey_markword(m, base));
	publish_word(m, grey_markword(m, base + sizeof(uintptr_t)));
}

const char *grey_check(const struct marker *m)
{
	for (unsigned i = 0; i < GREY_KEPT; i++) {
		const struct grey_kept *e = &m->kept[i];

		if (!e->markword && e->bits != 0)
			return "marks of no markword are kept back";
		if (e->markword && grey_hash(e->markword) != i)
			return "marks kept back are where no search finds them";
		if (e->markword && !m->keeps)
			return "marks kept back are never published";
	}
	return NULL;
}

// ---- words that point inside ----

// The place of an allocated object's mark.  There is no check function: it is
// made anew for each word.
struct grey_place {
	atomic_u64 *markword; // its markword
	uint64_t bit;
	uintptr_t base; // of the object, of a granule in it, or of its span
	uint32_t pageword;
};

static bool find_large(const struct marker *m, uintptr_t w, uint64_t page,
		       struct grey_place *p)
{
	uint64_t first = arena_first_page(page, p->pageword);
	const struct mspan *s = arena_span(first);

	// A tag in the low bits of w is ignored.  A small guarded object may
	// begin at an odd address, so its base is rounded down as w is.
	w = base_align_down(w, sizeof w);
	if (w < base_align_down(mspan_object(s, 0), sizeof w) ||
	    w >= mspan_limit(s))
		return false;
	p->bit = *mspan_masks(s);
	p->markword = mspan_lineword(s, m->mark_line, 0);
	p->base = m->base + (first << RT_PAGE_SHIFT);
	return atomic_u64_load_relaxed(mspan_lineword(s, m->alloc_line, 0)) &
	       p->bit;
}

// lines_of_span returns the lines of the span that begins at page first.  Only
// the 8-byte class keeps its bits elsewhere.
static struct linewords *lines_of_span(uint64_t first, unsigned class)
{
	return class == 1 ? mspan_lines(arena_span(first)) : arena_lines(first);
}

// find finds the allocated object that w points into.  Returns false if there
// is none.
static inline bool find(const struct marker *m, uintptr_t w,
			struct grey_place *p)
{
	uint64_t offset = (uint64_t)(w - m->base);
	uint64_t page = offset >> RT_PAGE_SHIFT;
	uint32_t pageword = arena_pageword(page);
	unsigned class = pageword_class(pageword);
	const struct sizeclass *c = &sizeclass_table[class];
	enum pageword_state state = pageword_state(pageword);
	uint64_t first, bit;
	uint32_t slot;
	struct linewords *lines;

	p->pageword = pageword;
	if (state != PAGEWORD_HEAP && state != PAGEWORD_SETTING_UP)
		return false;
	if (class == 0)
		return find_large(m, w, page, p);
	first = arena_first_page(page, pageword);
	offset -= first << RT_PAGE_SHIFT;
	slot = (uint32_t)(offset * c->divmagic >> 32);
	if (slot >= c->nelems)
		return false;
	bit = sizeclass_bit(class, (uint64_t)slot * c->size);
	lines = lines_of_span(first, class) + bit / 64;
	p->bit = UINT64_C(1) << (bit % 64);
	p->markword = &lines->line[m->mark_line];
	p->base = m->base + (first << RT_PAGE_SHIFT) + (uint64_t)slot * c->size;
	return atomic_u64_load_relaxed(&lines->line[m->alloc_line]) & p->bit;
}

// base_of returns the base of the object at a place.
static uintptr_t base_of(const struct marker *m, const struct grey_place *p)
{
	unsigned class = pageword_class(p->pageword);

	if (class == 0)
		return mspan_object(
		    arena_span((uint64_t)(p->base - m->base) >> RT_PAGE_SHIFT),
		    0);
	// The granule of its bit may begin 8 bytes after the object does.
	if (!sizeclass_is_aligned(class))
		return p->base -
		       p->base % RT_PAGE_SIZE % sizeclass_table[class].size;
	return p->base;
}

bool grey_unmarked(const struct marker *m, uintptr_t w)
{
	struct grey_place p;

	return !grey_marked(m, w) && find(m, w, &p) &&
	       !(atomic_u64_load_relaxed(p.markword) & p.bit) &&
	       layout_refers(pageword_kind(p.pageword), base_of(m, &p), w);
}

uintptr_t grey_resolve(const struct marker *m, uintptr_t w)
{
	struct grey_place p;

	return find(m, w, &p) ? base_of(m, &p) : w;
}

// ---- objects with flags to look at ----

// leads_on tells whether the references of an object that was just marked must
// be followed.  Those of a loose object are not.
static bool leads_on(const struct grey_place *p)
{
	return !(layouts[pageword_kind(p->pageword)].flags & RT_KIND_DROP) ||
	       drops_leads_on(arena_offset(p->base) >> RT_PAGE_SHIFT,
			      p->markword, p->bit);
}

// look_flagged returns how an object that was just marked must be scanned.
static enum grey_result look_flagged(struct marker *m,
				     const struct grey_place *p, struct grey *o)
{
	unsigned kind = pageword_kind(p->pageword),
		 class = pageword_class(p->pageword);

	if (RT_UNLIKELY(!leads_on(p))) {
		if (class == 0)
			m->large_bytes +=
			    arena_span(arena_offset(p->base) >> RT_PAGE_SHIFT)
				->elemsize;
		return GREY_LEAF;
	}
	if (is_small(kind, class)) {
		o->size = sizeclass_table[class].size;
		return GREY_SMALL;
	}
	return class != 0 && !layout_scanned(kind)
		   ? GREY_LEAF
		   : grey_wide(m, p->pageword, o);
}

// take_back undoes grey_set for a small object.
static void take_back(struct marker *m, const struct grey_place *p)
{
	if (m->work.alone)
		atomic_u64_store_relaxed(p->markword,
					 atomic_u64_load_relaxed(p->markword) &
					     ~p->bit);
	else
		grey_entry(m, p->markword)->bits &= ~p->bit;
}

// show shows the mark of a small object that m keeps back.  Returns true for
// one marker only.
static bool show(struct marker *m, const struct grey_place *p)
{
	grey_entry(m, p->markword)->bits &= ~p->bit;
	return grey_set_once(p->markword, p->bit);
}

// The first whole granule of most objects is in their first 16 bytes, but that
// of an object of 24 bytes need not be.  Marks of large objects are never kept
// back.
enum grey_result grey_settle(struct marker *m, uintptr_t w, uint32_t pageword,
			     struct grey *o)
{
	unsigned kind = pageword_kind(pageword),
		 class = pageword_class(pageword);
	struct grey_place p = {.markword = grey_markword(m, w),
			       .bit = grey_bit(w),
			       .base = o->base,
			       .pageword = pageword};
	bool mine = true;

	if (class != 0 && !sizeclass_is_aligned(class) &&
	    !layout_refers(kind, base_of(m, &p), w)) {
		take_back(m, &p);
		mine = false;
	} else if (!m->work.alone && class != 0 && layout_traced_once(kind)) {
		mine = show(m, &p);
	}
	if (!mine) {
		m->objects[grey_index(pageword)]--;
		return GREY_NOTHING;
	}
	return look_flagged(m, &p, o);
}

static bool set(struct marker *m, const struct grey_place *p)
{
	return grey_set(m, p->markword, atomic_u64_load_relaxed(p->markword),
			p->bit, p->pageword);
}

// interior_flagged marks the object at a place, which w points into.
static enum grey_result interior_flagged(struct marker *m, uintptr_t w,
					 const struct grey_place *p,
					 struct grey *o)
{
	unsigned kind = pageword_kind(p->pageword);

	if (!layout_refers(kind, base_of(m, p), w))
		return GREY_NOTHING;
	if (layout_traced_once(kind) && !m->work.alone
		? !grey_set_once(p->markword, p->bit)
		: !set(m, p))
		return GREY_NOTHING;
	m->objects[grey_index(p->pageword)]++;
	return look_flagged(m, p, o);
}

enum grey_result grey_interior(struct marker *m, uintptr_t w, struct grey *o)
{
	struct grey_place p;
	unsigned i;

	if (!find(m, w, &p))
		return GREY_NOTHING;
	i = grey_index(p.pageword);
	o->base = p.base;
	o->size = grey_granules[i] * (uint64_t)RT_GRANULE;
	if (o->size != 0) {
		if (!set(m, &p))
			return GREY_NOTHING;
		m->objects[i]++;
		return GREY_SMALL;
	}
	if (grey_found[i] == GREY_FLAGGED)
		return interior_flagged(m, w, &p, o);
	if (!set(m, &p))
		return GREY_NOTHING;
	m->objects[i]++;
	return grey_found[i] == GREY_LEAF ? GREY_LEAF
					  : grey_wide(m, p.pageword, o);
}
