// Looks an address up in the tables, without locks, while they change.
#include "runtime/spans/object.h"

#include "runtime/os/schedpoint.h"
#include "runtime/os/throw.h"
#include "runtime/world/stw.h"
#include "runtime/spans/deadbits.h"

// lines_of_eight returns the bitmap8 of a span of the 8-byte class, the only
// class whose bits are not in its pages' lines.  Returns NULL if the span was
// freed since its pageword was read.  By then its mspan may be free or in other
// use.  The acquire of its lines pairs with the release in set_lines.  It also
// pairs with those in fixalloc, because a free mspan has fixalloc's link in the
// place of its lines.  A thread that sees what one of these releases stored
// after the free also sees that the page was withdrawn.
static const struct linewords *lines_of_eight(uint64_t page, uint32_t pageword)
{
	const struct mspan *s = arena_span(page);
	const struct linewords *lines =
	    s ? atomic_ptr_load_acquire(&s->lines) : NULL;

	return arena_pageword(page) == pageword && arena_span(page) == s ? lines
									 : NULL;
}

// object_test reads an alloc bit.  The acquire pairs with the releases in
// publish_one (mheap.c), change_allocword, mspan_take_near, sweep_lines,
// sweep_free_large and free_dropped (sweep.c).
static bool object_test(const struct linewords *lines, unsigned bit)
{
	unsigned line = epoch_alloc_line(epoch_sweepgen());
	const atomic_u64 *w = &lines[bit / 64].line[line];

	return atomic_u64_load_acquire(w) >> (bit % 64) & 1;
}

// is_there tells whether an object of a kind is allocated.  Unless any is set,
// the object must also not be dead.
RT_INLINE bool is_there(const struct linewords *lines, unsigned bit,
			unsigned kind, bool any)
{
	return !(!any && RT_UNLIKELY(kinds_drops() >> kind & 1) &&
		 deadbits_test(lines + bit / 64, bit % 64)) &&
	       object_test(lines, bit);
}

// test_granule calls is_there for the object whose alloc bit is that of the
// granule at p.
RT_INLINE bool test_granule(uintptr_t p, unsigned kind, bool any)
{
	uint64_t offset = arena_offset(p);

	return is_there(arena_lines(offset >> RT_PAGE_SHIFT),
			offset % RT_PAGE_SIZE / RT_GRANULE, kind, any);
}

// The place of the one object of a large span, as its mspan says.
struct extent {
	const struct mspan *s; // NULL: there is no span
	uint64_t limit;
	uint32_t guarded;
};

// The acquires in extent_at pair with the releases in set_extent and
// mspan_free.  A thread that sees what a later use of an mspan has stored also
// sees that the earlier use was withdrawn.
static struct extent extent_at(uint64_t first)
{
	struct extent e = {.s = arena_span(first)};

	if (e.s) {
		e.limit = atomic_u64_load_acquire(&e.s->limit);
		e.guarded = atomic_u32_load_acquire(&e.s->guarded);
	}
	return e;
}

// extent_agrees compares two extents of one span.
static bool extent_agrees(const struct extent *a, const struct extent *b)
{
	return a->limit == b->limit && a->guarded == b->guarded;
}

// extent_base returns where the object of an extent begins.
static uintptr_t extent_base(uint64_t first, const struct extent *e)
{
	uintptr_t base = arena_page_address(first);

	return e->guarded ? base + e->guarded - 1 : base;
}

// object_at tells whether p is in the object of an extent, and that object is
// allocated.
RT_INLINE bool object_at(uintptr_t p, uint64_t first, const struct extent *e,
			 bool any)
{
	uintptr_t base = extent_base(first, e);
	uint32_t pageword = arena_pageword(first);

	return p >= base && p < e->limit &&
	       pageword_state(pageword) == PAGEWORD_HEAP &&
	       pageword_class(pageword) == 0 &&
	       test_granule(base, pageword_kind(pageword), any);
}

// extent_find reads the extent of the object that p is in.  Returns false if
// there is none.
//
// Meanwhile the span may be freed, and its pages used for another large one.
// Then the extent may be the old span's and the bit the new one's, so the
// extent is read again after the bit.  If it differs, the object may have been
// resized and be there all the time, so p is looked up again, by the extent
// just read.  Each further look needs a resize, or a free and an allocation,
// since the last one.  So this thread looks again only as long as another
// thread makes such changes faster than it looks.  It never waits for that
// thread.
RT_INLINE bool extent_find(uintptr_t p, uint64_t first, struct extent *e,
			   bool any)
{
	struct extent now = extent_at(first);

	do {
		*e = now;
		schedpoint(SCHED_EXTENT_FIND);
		if (!object_at(p, first, e, any))
			return false;
		now = extent_at(first);
		if (now.s != e->s)
			return false;
	} while (RT_UNLIKELY(!extent_agrees(&now, e)));
	return true;
}

// object_large looks for the object of a large span, which has p in its pages.
RT_INLINE bool object_large(uintptr_t p, uint64_t page, uint32_t pageword,
			    struct object *o, bool any)
{
	uint64_t first = arena_first_page(page, pageword);
	struct extent e;

	if (!extent_find(p, first, &e, any))
		return false;
	o->base = extent_base(first, &e);
	o->request = e.limit - o->base;
	o->size =
	    e.guarded ? o->request : base_pages(o->request) << RT_PAGE_SHIFT;
	return true;
}

RT_INLINE bool object_small(uintptr_t p, uint64_t page, uint32_t pageword,
			    struct object *o, bool any)
{
	unsigned class = pageword_class(pageword);
	const struct sizeclass *c = &sizeclass_table[class];
	uint64_t first = arena_first_page(page, pageword);
	uintptr_t base = arena_page_address(first);
	uint64_t slot = (p - base) * c->divmagic >> 32;
	unsigned bit = sizeclass_bit(class, slot * c->size);
	const struct linewords *lines =
	    class == 1 ? lines_of_eight(page, pageword) : arena_lines(first);

	// p may lie behind the last slot.  The bit is that of no slot then, and
	// may even be one of the next page.
	if (slot >= c->nelems || !lines ||
	    !is_there(lines, bit, pageword_kind(pageword), any))
		return false;
	o->base = base + slot * c->size;
	o->size = o->request = c->size;
	return true;
}

// look_up looks p up once, by the present alloc line.
RT_INLINE bool look_up(uintptr_t p, struct object *o, bool any)
{
	uint64_t offset = arena_offset(p);
	uint64_t page = offset >> RT_PAGE_SHIFT;
	uint32_t pageword;
	bool found;

	if (offset >= arena_used())
		return false;
	pageword = arena_pageword(page);
	schedpoint(SCHED_LOOK_UP);
	if (pageword_state(pageword) != PAGEWORD_HEAP)
		return false;
	o->kind = pageword_kind(pageword);
	found = pageword_class(pageword) == 0
		    ? object_large(p, page, pageword, o, any)
		    : object_small(p, page, pageword, o, any);
	// The bit may be of a later use of the page.  A thread that sees such a
	// bit also sees the pageword of that use, or 0.
	return found && arena_pageword(page) == pageword;
}

bool object_find(uintptr_t p, struct object *o)
{
	uint32_t gen;
	bool found;

	// No stop waits for a thread without a P.  During its look the heap may
	// flip, and sweeping may clear the line that it reads.  The acquire of
	// a bit pairs with the release in sweep_lines, so a thread that sees a
	// cleared bit also sees that the sweepgen has moved, and looks again.
	do {
		gen = atomic_u32_load_acquire(&epoch.sweepgen);
		found = look_up(p, o, false);
	} while (RT_UNLIKELY(epoch_sweepgen() != gen));
	return found;
}

bool object_find_any(uintptr_t p, struct object *o)
{
	RT_ASSERT(stw_stopped());
	return look_up(p, o, true);
}

bool object_is_reference(uintptr_t p)
{
	struct object o;

	if (!object_find_any(p, &o))
		return false;
	return o.base == p ||
	       (o.kind == KIND_NOSCAN && o.size == SIZECLASS_TINY_SIZE);
}
