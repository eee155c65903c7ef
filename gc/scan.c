#include "gc/scan.h"

void gcscan_overflow(struct gcmarker *m, uintptr_t base)
{
	uint64_t page = (uint64_t)(base - m->base) >> RT_PAGE_SHIFT;

	atomic_u64_or_relaxed(&arena.overflow[page / 64], UINT64_C(1)
							      << (page % 64));
	m->overflowed = true;
}

uintptr_t gcscan_words(struct gcmarker *m, uintptr_t lo, uintptr_t hi)
{
	while (lo < hi) {
		uintptr_t end = base_min(hi, lo + GCSCAN_BLOCK);

		if (!gcwork_room(&m->work, (end - lo) / sizeof(uintptr_t)))
			return lo;
		gcscan_block(m, lo, end);
		lo = end;
	}
	return hi;
}

// scan_piece scans [lo, hi) of the object at base, after pushing what is left
// of it when that is more than a piece.
static void scan_piece(struct gcmarker *m, uintptr_t base, uintptr_t lo,
		       uintptr_t hi)
{
	if (hi - lo > GCSCAN_PIECE) {
		hi = lo + GCSCAN_PIECE;
		if (!gcwork_push(&m->work, hi | GCWORK_MORE)) {
			gcscan_overflow(m, base);
			return;
		}
	}
	if (gcscan_words(m, lo, hi) != hi)
		gcscan_overflow(m, base);
}

void gcscan_rest(struct gcmarker *m, const struct gcgrey *o)
{
	uintptr_t hi = o->base + base_align_down(o->size, sizeof(uintptr_t));

	if (o->size > SIZECLASS_MAX_SIZE)
		scan_piece(m, o->base, o->base, hi);
	else if (gcscan_words(m, o->base, hi) != hi)
		gcscan_overflow(m, o->base);
}

void gcscan_more(struct gcmarker *m, uintptr_t at)
{
	const struct mspan *s =
	    arena_span((uint64_t)(at - m->base) >> RT_PAGE_SHIFT);

	scan_piece(m, s->base, at,
		   base_align_down(mspan_limit(s), sizeof(uintptr_t)));
}
