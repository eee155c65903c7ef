// rescan.c - walks over the slots of a page.
#include "gc/mark/rescan.h"

#include "runtime/os/poison.h"
#include "gc/mark/drops.h"
#include "gc/mark/trace.h"
#include "gc/mark/drain.h"

bool rescan_is_openers(uint64_t page)
{
	return layout_traced_once(pageword_kind(arena_pageword(page)));
}

// push_unmarked pushes the words of a marked object that may lead to an
// unmarked one.
RT_NO_SANITIZE
static void push_unmarked(struct marker *m, uintptr_t lo, uintptr_t hi)
{
	for (; lo < hi; lo += sizeof(uintptr_t)) {
		uintptr_t w = poison_read(lo);

		if (!grey_in_heap(m, w) || grey_marked(m, w))
			continue;
		if (!work_push(&m->work, w)) {
			drain_stack(m);
			work_push(&m->work, w);
		}
	}
}

// rescan_words scans a marked object of words again.  An object of more than
// one piece becomes a range, from which any marker may take pieces.
static void rescan_words(struct marker *m, uintptr_t lo, uintptr_t hi)
{
	if (hi - lo > WORK_PIECE)
		drain_range(m, (struct work_range){.lo = lo,
						   .hi = hi,
						   .stride = sizeof(uintptr_t),
						   .words = WORK_ANY});
	else
		push_unmarked(m, lo, hi);
}

// slot_leads_on is drops_leads_on for a slot of a span.
static bool slot_leads_on(const struct marker *m, const struct mspan *s,
			  uint32_t slot)
{
	unsigned bit =
	    mspan_is_large(s) ? mspan_large_bit(s) : mspan_bit(s, slot);

	return drops_leads_on(mspan_page(s),
			      mspan_lineword(s, m->mark_line, bit / 64),
			      UINT64_C(1) << (bit % 64));
}

static void rescan_object(struct marker *m, const struct mspan *s,
			  uint32_t slot)
{
	unsigned kind = spanclass_kind(s->spanclass);
	uintptr_t base = mspan_object(s, slot);
	uintptr_t end = mspan_scan_end(s, slot);

	if (deadbits_slot(s, slot) && !slot_leads_on(m, s, slot))
		return;
	if (layout_is_words(kind)) {
		rescan_words(m, base, end);
		return;
	}
	// Once the stack is empty, all of it is room for what this object leads
	// to.
	drain_stack(m);
	trace_again(m, kind, base, end - base);
}

void rescan_begin(struct rescan *r, uint64_t page)
{
	*r = (struct rescan){.s = arena_span(page),
			     .lo = arena_page_address(page)};
}

bool rescan_next(struct rescan *r, struct marker *m)
{
	while (r->slot < r->s->nelems) {
		uint32_t slot = r->slot++;
		uintptr_t base = mspan_object(r->s, slot);

		if (base >= r->lo && base < r->lo + RT_PAGE_SIZE &&
		    mspan_test(r->s, m->mark_line, slot)) {
			rescan_object(m, r->s, slot);
			return true;
		}
	}
	return false;
}

void rescan_page(struct marker *m, uint64_t page)
{
	struct rescan r;

	rescan_begin(&r, page);
	while (rescan_next(&r, m))
		;
}
