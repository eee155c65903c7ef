// pastend.c - finds the object that ends where a word points.
#include "gc/mark/pastend.h"

#include "runtime/os/poison.h"

static unsigned class_at(const struct marker *m, uintptr_t w)
{
	uint64_t page = (uint64_t)(w - m->base) >> RT_PAGE_SHIFT;

	return pageword_class(arena_word(page));
}

// keep marks the object that w points into.
static void keep(struct marker *m, uintptr_t w)
{
	struct grey o;
	enum grey_result found = grey_word(m, w, &o);

	if (found == GREY_NOTHING)
		return;
	scan_grey(m, found, &o);
	m->past_end_objects++;
}

// misses tells whether the byte before w is in the pages of a large object that
// does not end at w.
static bool misses(const struct marker *m, uintptr_t w)
{
	uint64_t page = (uint64_t)(w - 1 - m->base) >> RT_PAGE_SHIFT;
	uint32_t word = arena_word(page);

	return pageword_class(word) == 0 &&
	       pageword_state(word) == PAGEWORD_HEAP &&
	       mspan_limit(arena_span(arena_first_page(page, word))) != w;
}

// keep_any is for large objects, and for classes whose objects share granules.
// The byte before w is in the object that ends at w.  A small object that the
// byte is in, and that does not end at w, has w in it as well: it is marked.
static RT_NOINLINE void keep_any(struct marker *m, uintptr_t w)
{
	if (!misses(m, w))
		keep(m, w - 1);
}

// keep_small: no other object of a class than the one that begins its size
// before w can end there.  A bit at base says that an object begins there; if
// that one is of another class, its end is elsewhere.
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

	// What was marked before has been counted elsewhere.
	grey_publish_all(m);
	uncounted = m->uncounted;
	for (; lo < hi; lo += sizeof(uintptr_t)) {
		uintptr_t w = poison_word(*(const uintptr_t *)lo);
		unsigned class;

		if (!grey_in_heap(m, w - 1))
			continue;
		class = class_at(m, w - 1);
		if (RT_LIKELY(class > 1 && m->one != 0))
			keep_small(m, w, class);
		else
			keep_any(m, w);
	}
	// Another marker may have found the same objects, and counted them.
	grey_publish_all(m);
	m->past_end_objects -= m->uncounted - uncounted;
}
