// pastend.c - finds the object that ends where a word points.
#include "gc/mark/pastend.h"

#include "runtime/os/poison.h"

static unsigned class_at(const struct marker *m, uintptr_t w)
{
	uint64_t page = (uint64_t)(w - m->base) >> RT_PAGE_SHIFT;

	return pageword_class(arena_pageword(page));
}

// keep marks the object that w points into, scans it and counts it.
static void keep(struct marker *m, uintptr_t w)
{
	struct grey o;
	enum grey_result found = grey_word(m, grey_from_stack(m, w), &o);

	if (found == GREY_NOTHING)
		return;
	trace_grey(m, found, &o);
	m->past_end_objects++;
}

// misses tells whether the byte before w is in the pages of a large object that
// does not end at w.
static bool misses(const struct marker *m, uintptr_t w)
{
	uint64_t page = (uint64_t)(w - 1 - m->base) >> RT_PAGE_SHIFT;
	uint32_t pageword = arena_pageword(page);

	return pageword_class(pageword) == 0 &&
	       pageword_state(pageword) == PAGEWORD_HEAP &&
	       mspan_limit(arena_span(arena_first_page(page, pageword))) != w;
}

// keep_any is for large objects, and for classes whose objects share granules.
// An object that ends at w contains the byte before w.  If the byte is in a
// small object that does not end at w, then w points into that object too, so
// it is marked already.
static RT_NOINLINE void keep_any(struct marker *m, uintptr_t w)
{
	if (!misses(m, w))
		keep(m, w - 1);
}

// keep_small keeps the object of a class that ends at w.  Its base can only be
// w minus the size of the class.  A bit at base says that an object begins
// there; if that object is of another class, it ends elsewhere.
RT_INLINE void keep_small(struct marker *m, uintptr_t w, unsigned class)
{
	uintptr_t base = w - sizeclass_table[class].size;

	if (w % RT_GRANULE == 0 && grey_in_heap(m, base) &&
	    RT_UNLIKELY(grey_white(m, base)) && class_at(m, base) == class)
		keep(m, base);
}

RT_NO_SANITIZE
void pastend_scan(struct marker *m, uintptr_t lo, uintptr_t hi)
{
	uint64_t uncounted;

	// Marks from before were counted elsewhere, so publish them first.
	grey_publish_all(m);
	uncounted = m->uncounted;
	for (; lo < hi; lo += sizeof(uintptr_t)) {
		uintptr_t w = poison_read(lo);
		unsigned class;

		if (!grey_in_heap(m, w - 1))
			continue;
		class = class_at(m, w - 1);
		if (RT_LIKELY(sizeclass_is_aligned(class)))
			keep_small(m, w, class);
		else
			keep_any(m, w);
	}
	// Another marker may have found the same objects, and counted them.
	grey_publish_all(m);
	m->past_end_objects -= m->uncounted - uncounted;
}
