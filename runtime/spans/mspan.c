// Sets up spans, finds and takes runs of slots, and checks spans.
#include "runtime/spans/mspan.h"

#include "runtime/spans/kinds.h"

// mspan_masks returns a pointer to words, so the one bit of a large span must
// be in memory.  With a table of constants, a span needs no word for it.
#define BIT(i) (UINT64_C(1) << (i))
#define BITS8(i)                                                               \
	BIT(i), BIT((i) + 1), BIT((i) + 2), BIT((i) + 3), BIT((i) + 4),        \
	    BIT((i) + 5), BIT((i) + 6), BIT((i) + 7)
const uint64_t mspan_large_masks[64] = {BITS8(0),  BITS8(8),  BITS8(16),
					BITS8(24), BITS8(32), BITS8(40),
					BITS8(48), BITS8(56)};
#undef BITS8
#undef BIT

// set_lines: the release pairs with the acquire in lines_of_eight.
static void set_lines(struct mspan *s, const struct linewords *lines)
{
	atomic_ptr_store_release(&s->lines, lines);
}

// set_extent: the releases pair with the acquires in extent_at (object.c).
static void set_extent(struct mspan *s, uintptr_t limit, uint32_t guarded)
{
	atomic_u64_store_release(&s->limit, limit);
	atomic_u32_store_release(&s->guarded, guarded);
}

void mspan_init_small(struct mspan *s, spanclass sc, struct linewords *bitmap8)
{
	const struct sizeclass *c = &sizeclass_table[spanclass_size(sc)];

	RT_ASSERT(s->npages == c->npages && c->nelems != 0);
	set_lines(s, bitmap8 ? bitmap8 : arena_lines(mspan_page(s)));
	s->elemsize = c->size;
	s->divmagic = c->divmagic;
	s->nelems = c->nelems;
	set_extent(s, s->base + (uint64_t)c->nelems * c->size, 0);
	s->alloc_count = 0;
	s->spanclass = sc;
	s->sizeclass = (uint8_t)spanclass_size(sc);
	s->nwords = (uint8_t)sizeclass_words(s->sizeclass);
	s->use = MSPAN_HEAP;
	s->cached = 0;
	s->queued = s->condemned = 0;
	s->next = NULL;
	atomic_u32_store_relaxed(&s->sweepgen, epoch_sweepgen());
}

void mspan_init_large(struct mspan *s, unsigned kind, size_t request)
{
	RT_ASSERT(request <= s->npages << RT_PAGE_SHIFT);
	set_lines(s, arena_lines(mspan_page(s)));
	s->elemsize = s->npages << RT_PAGE_SHIFT;
	s->divmagic = 0;
	s->nelems = 1;
	set_extent(s, s->base + request, 0);
	s->alloc_count = 1;
	s->spanclass = spanclass_make(0, kind);
	s->sizeclass = 0;
	s->nwords = 1;
	s->use = MSPAN_HEAP;
	s->cached = 0;
	s->queued = s->condemned = 0;
	s->next = NULL;
	atomic_u32_store_relaxed(&s->sweepgen, epoch_sweepgen());
	kinds_use(kind);
}

void mspan_set_request(struct mspan *s, size_t request)
{
	RT_ASSERT(!mspan_is_guarded(s) && request <= s->npages
							 << RT_PAGE_SHIFT);
	set_extent(s, s->base + request, 0);
}

// guarded_place returns the address of an object that ends at or before limit.
// It is a multiple of 16, or, for a smaller object without pointers, of the
// largest power of two that divides its size.
static uintptr_t guarded_place(uintptr_t limit, unsigned kind, size_t request)
{
	if (kind == KIND_NOSCAN && request < RT_GRANULE)
		return limit - request;
	return limit - base_align_up(request, RT_GRANULE);
}

// canary_begin returns the address of the first canary before a guarded object.
static uintptr_t canary_begin(const struct mspan *s)
{
	return base_max(s->base, mspan_object(s, 0) - GUARD_BEFORE);
}

// granule_lines returns the linewords of the granule of an address.
static struct linewords *granule_lines(uintptr_t p)
{
	uint64_t offset = arena_offset(p);

	return arena_lines(offset >> RT_PAGE_SHIFT) +
	       offset / RT_GRANULE / 64 % RT_PAGE_WORDS;
}

void mspan_init_guarded(struct mspan *s, unsigned kind, size_t request)
{
	uintptr_t guard = guard_begin(s->base, s->npages);
	uintptr_t object = guarded_place(guard, kind, request);

	mspan_init_large(s, kind, request);
	s->elemsize = base_pages(request) << RT_PAGE_SHIFT;
	set_lines(s, granule_lines(object));
	set_extent(s, object + request, (uint32_t)(object - s->base) + 1);
	guard_fill(canary_begin(s), object);
	guard_fill(object + request, guard);
	s->guard_protect = guard_protect(s->base, s->npages);
}

void mspan_free(struct mspan *s)
{
	s->use = MSPAN_FREE;
	if (RT_LIKELY(!mspan_is_guarded(s)))
		return;
	if (s->guard_protect)
		guard_leave(s->base, s->npages);
	s->guard_protect = 0;
	// Pairs with the acquire in extent_at.
	atomic_u32_store_release(&s->guarded, 0);
}

uintptr_t mspan_overwritten(const struct mspan *s)
{
	uintptr_t at;

	if (!mspan_is_guarded(s))
		return 0;
	at = guard_find(canary_begin(s), mspan_object(s, 0));
	return at ? at
		  : guard_find(mspan_limit(s), guard_begin(s->base, s->npages));
}

void mspan_init_manual(struct mspan *s, enum mspan_use use)
{
	set_lines(s, NULL);
	s->elemsize = 0;
	s->divmagic = 0;
	s->nelems = 0;
	set_extent(s, s->base + (s->npages << RT_PAGE_SHIFT), 0);
	s->alloc_count = 0;
	s->spanclass = 0;
	s->sizeclass = 0;
	s->nwords = 0;
	s->use = (uint8_t)use;
	s->cached = 0;
	s->queued = s->condemned = 0;
	s->needzero = 1;
	s->stack_used = 0;
	s->next = NULL;
	atomic_u32_store_relaxed(&s->sweepgen, epoch_sweepgen());
}

uint32_t mspan_count(const struct mspan *s, unsigned line)
{
	uint32_t n = 0;

	for (unsigned w = 0; w < s->nwords; w++)
		n += bits_count(
		    atomic_u64_load_relaxed(mspan_lineword(s, line, w)));
	return n;
}

uint32_t mspan_counted(const struct mspan *s)
{
	return mspan_count(
	    s, epoch_alloc_line(atomic_u32_load_relaxed(&s->sweepgen)));
}

// slot_of_bit returns the first slot whose bit is bit or a higher one.  The
// slot may begin less than a granule before the place of its bit.
static uint32_t slot_of_bit(const struct mspan *s, unsigned bit)
{
	unsigned shift = sizeclass_bit_shift(s->sizeclass);
	uint64_t offset = (uint64_t)bit << shift;

	return mspan_slot(s, offset + s->elemsize - (UINT64_C(1) << shift));
}

// run_cap returns the lowest bit at which a run may start if its last slot
// begins at last.  Such a run covers at most a page, or one slot.
static unsigned run_cap(const struct mspan *s, unsigned last)
{
	unsigned shift = sizeclass_bit_shift(s->sizeclass);
	uint64_t slot = (s->elemsize + (1u << shift) - 1) >> shift;
	uint64_t page = RT_PAGE_SIZE >> shift;
	uint64_t before = slot < page ? page - slot : 0;

	return last > before ? last - (unsigned)before : 0;
}

// behind_allocated returns the bit behind the last alloc bit below word w, or
// limit if that is higher.
static unsigned behind_allocated(const struct mspan *s, unsigned w,
				 unsigned limit)
{
	struct linewords *lines = mspan_lines(s);
	unsigned line = epoch_alloc_line(epoch_sweepgen());

	while (w * 64 > limit) {
		uint64_t x = atomic_u64_load_relaxed(&lines[--w].line[line]);

		if (x != 0)
			return (unsigned)base_max(w * 64 + 64 - bits_clz(x),
						  limit);
	}
	return limit;
}

// run_first returns the lowest bit of the run whose last slot begins at bit
// last, in the cursor's allocword.
static unsigned run_first(const struct mspan *s, const struct mspan_cursor *c,
			  unsigned last, unsigned block)
{
	uint64_t below = c->taken & ((UINT64_C(1) << (last % 64)) - 1);
	unsigned limit = (unsigned)base_align_down(last, block);

	if (c->taken != 0)
		return c->w * 64 + (below ? 64 - bits_clz(below) : 0);
	// A span of one page needs no cap.
	if (s->npages > 1)
		limit = (unsigned)base_max(limit, run_cap(s, last));
	// No slot was allocated when the span was cached, and only slots above
	// last were taken since.
	if (s->alloc_count == 0)
		return limit;
	return behind_allocated(s, c->w, limit);
}

void mspan_find_run(const struct mspan *s, const struct mspan_cursor *c,
		    unsigned block, struct mspan_run *run)
{
	unsigned last = c->w * 64 + 63 - bits_clz(c->free);
	unsigned first = run_first(s, c, last, block);
	// All slots that begin in [first, last] are free.  lo is the first of
	// them: the slot before it begins below first.
	uint32_t lo = slot_of_bit(s, first);
	uint32_t hi = slot_of_bit(s, last) + 1;

	run->start = (char *)s->base + lo * s->elemsize;
	run->end = (char *)s->base + hi * s->elemsize;
	run->first = first;
	run->stop = last + 1;
}

// change_allocword sets or clears bits of an allocword.  No locked instruction
// is needed: outside a stop only the P that caches the span writes the
// allocword.  The release pairs with the acquire in object_test.
RT_INLINE void change_allocword(atomic_u64 *word, uint64_t bits, bool set)
{
	uint64_t old = atomic_u64_load_relaxed(word);

	atomic_u64_store_release(word, set ? old | bits : old & ~bits);
}

// change_bits sets or clears the bits of the slots that begin in [first, stop),
// which must not be empty.
RT_INLINE void change_bits(const struct mspan *s, unsigned first, unsigned stop,
			   bool set)
{
	struct linewords *lines = mspan_lines(s);
	unsigned line = epoch_alloc_line(epoch_sweepgen());
	const uint64_t *mask = mspan_masks(s);
	unsigned w = first / 64;
	unsigned last = (stop - 1) / 64;
	uint64_t from = ~UINT64_C(0) << (first % 64);
	uint64_t to = ~UINT64_C(0) >> (63 - (stop - 1) % 64);

	for (; w < last; w++, from = ~UINT64_C(0))
		change_allocword(&lines[w].line[line], mask[w] & from, set);
	change_allocword(&lines[w].line[line], mask[w] & from & to, set);
}

void mspan_take_run(struct mspan *s, struct mspan_cursor *c,
		    const struct mspan_run *run)
{
	unsigned inside = run->first % 64;

	RT_ASSERT(run->first < run->stop && run->stop <= 64u * s->nwords);
	change_bits(s, run->first, run->stop, true);
	// Most spans are one run.
	if (run->first == 0) {
		c->free = 0;
		c->w = 0;
		return;
	}
	mspan_cursor_place(c, s, (run->first + 63) / 64);
	if (inside != 0) {
		mspan_cursor_read(c);
		c->free &= (UINT64_C(1) << inside) - 1;
	}
}

uint32_t mspan_free_slots(struct mspan *s, const char *start, const char *end)
{
	uint32_t lo, hi;

	if (start == end)
		return 0;
	RT_ASSERT((uintptr_t)start >= s->base && start < end &&
		  (uintptr_t)end <= mspan_limit(s));
	lo = mspan_slot(s, (uintptr_t)start - s->base);
	hi = mspan_slot(s, (uintptr_t)end - 1 - s->base) + 1;
	change_bits(s, mspan_bit(s, lo), mspan_bit(s, hi - 1) + 1, false);
	return hi - lo;
}

// check_small compares the constant fields with the span's class.
static const char *check_small(const struct mspan *s)
{
	unsigned class = spanclass_size(s->spanclass);
	const struct sizeclass *c = &sizeclass_table[class];
	bool own_bits = mspan_lines(s) != arena_lines(mspan_page(s));

	if (!mspan_lines(s) || own_bits != (class == 1))
		return "span has the wrong bits";
	if (mspan_limit(s) != s->base + (uint64_t)c->nelems * c->size)
		return "span has the wrong limit for its class";
	if (s->npages != c->npages || s->elemsize != c->size ||
	    s->divmagic != c->divmagic || s->nelems != c->nelems)
		return "span does not fit its class";
	if (s->nwords != sizeclass_words(class))
		return "span has the wrong number of words";
	return NULL;
}

static const char *check_large(const struct mspan *s)
{
	bool guarded = mspan_is_guarded(s);
	uint64_t request = mspan_limit(s) - mspan_object(s, 0);

	if (request > PTRDIFF_MAX ||
	    (guarded ? guard_pages(request) : base_pages(request)) != s->npages)
		return "limit of a large object is not in its last page";
	if (s->elemsize != base_pages(request) << RT_PAGE_SHIFT ||
	    s->divmagic != 0 || s->nelems != 1 || s->nwords != 1)
		return "large object does not fill its span";
	if (guarded && mspan_object(s, 0) !=
			   guarded_place(guard_begin(s->base, s->npages),
					 spanclass_kind(s->spanclass), request))
		return "guarded object is in the wrong place";
	if (mspan_lines(s) != granule_lines(mspan_object(s, 0)))
		return "span has the wrong bits";
	if (s->alloc_count == 0 &&
	    atomic_u32_load_relaxed(&s->sweepgen) == epoch_sweepgen())
		return "large span has no object";
	return NULL;
}

// check_fields checks the fields that must be right before anything else that
// the span leads to can be read.
static const char *check_fields(const struct mspan *s)
{
	uint64_t offset = arena_offset(s->base);
	uint64_t used = arena_used();

	if (s->use == MSPAN_FREE || s->npages == 0)
		return "mspan is free or has no pages";
	if (s->base % RT_PAGE_SIZE != 0 || offset >= used ||
	    s->npages > (used - offset) >> RT_PAGE_SHIFT)
		return "span is outside of the heap";
	if (s->use > MSPAN_WORK || s->spanclass >= SPANCLASS_COUNT ||
	    s->sizeclass != spanclass_size(s->spanclass))
		return "span has an unknown use or class";
	if (mspan_is_guarded(s) && (s->use != MSPAN_HEAP || !mspan_is_large(s)))
		return "guarded span has the wrong use or class";
	if (s->use != MSPAN_HEAP)
		return NULL;
	if (spanclass_kind(s->spanclass) == KIND_TYPED && !arena_typebits())
		return "typed span without type bits";
	return mspan_is_large(s) ? check_large(s) : check_small(s);
}

static bool state_fits(const struct mspan *s, enum pageword_state state)
{
	if (s->use != MSPAN_HEAP)
		return state == PAGEWORD_MANUAL;
	return state == PAGEWORD_HEAP ||
	       (state == PAGEWORD_SETTING_UP && mspan_is_large(s));
}

// check_words compares the pagewords and the span table with the span.
static const char *check_words(const struct mspan *s)
{
	uint64_t page = mspan_page(s);

	for (uint64_t i = 0; i < s->npages; i++) {
		uint32_t pageword = arena_pageword(page + i);

		if (arena_span(page + i) != s)
			return "span table leads to another span";
		if (pageword_place(pageword) != base_min(i, PAGEWORD_PLACE_MAX))
			return "pageword has the wrong place";
		if (!state_fits(s, pageword_state(pageword)))
			return "pageword has the wrong state";
		if (pageword_class(pageword) != s->sizeclass ||
		    (s->use != MSPAN_STACK &&
		     pageword_kind(pageword) != spanclass_kind(s->spanclass)))
			return "pageword has the wrong class or kind";
	}
	return NULL;
}

// check_page_lines checks that the pages' linewords are zero, except those that
// the span's slots use.
static const char *check_page_lines(const struct mspan *s)
{
	const struct linewords *own = mspan_lines(s);
	const struct linewords *l = arena_lines(mspan_page(s));
	const struct linewords *end = l + s->npages * RT_PAGE_WORDS;

	for (; l < end; l++)
		if ((!own || l < own || l >= own + s->nwords) &&
		    (atomic_u64_load_relaxed(&l->line[0]) |
		     atomic_u64_load_relaxed(&l->line[1])) != 0)
			return "bit is set where the span has no slots";
	return NULL;
}

// check_lines checks the linewords that slots use: bits are set only where
// slots begin, and the mark line of a swept span is zero.
static const char *check_lines(const struct mspan *s)
{
	uint32_t own = atomic_u32_load_relaxed(&s->sweepgen);
	bool swept = own == epoch_sweepgen();
	const uint64_t *masks = mspan_masks(s);

	for (unsigned w = 0; w < s->nwords; w++) {
		uint64_t mask = masks[w];

		for (unsigned line = 0; line < 2; line++)
			if (atomic_u64_load_relaxed(
				mspan_lineword(s, line, w)) &
			    ~mask)
				return "bit is set where no slot begins";
		if (swept && atomic_u64_load_relaxed(mspan_lineword(
				 s, epoch_mark_line(own), w)) != 0)
			return "swept span has a mark bit";
	}
	return NULL;
}

// check_dead checks that only allocated objects of a kind with destructors are
// dead, and that a span which is in the queue or condemned has dead objects.
static const char *check_dead(const struct mspan *s)
{
	const struct deadwords *d = arena_deadbits();
	unsigned line = epoch_alloc_line(atomic_u32_load_relaxed(&s->sweepgen));
	uint64_t dead = 0;

	if (!(kinds_drops() >> spanclass_kind(s->spanclass) & 1))
		return s->queued || s->condemned ? "span has no dead objects"
						 : NULL;
	if (!d || s->sizeclass == 1)
		return "objects have no bits to be dead";
	d += mspan_lines(s) - arena.lines;
	for (unsigned w = 0; w < s->nwords; w++) {
		uint64_t bits = atomic_u64_load_relaxed(&d[w].turn[0]) |
				atomic_u64_load_relaxed(&d[w].turn[1]);

		if (bits & ~atomic_u64_load_relaxed(mspan_lineword(s, line, w)))
			return "dead object is not allocated";
		dead |= bits;
	}
	if ((s->queued || s->condemned) && dead == 0)
		return "span has no dead objects";
	return NULL;
}

const char *mspan_check(const struct mspan *s)
{
	uint32_t gen = atomic_u32_load_relaxed(&s->sweepgen);
	const char *wrong = check_fields(s);

	if (!wrong)
		wrong = check_words(s);
	if (!wrong)
		wrong = check_page_lines(s);
	if (wrong || s->use != MSPAN_HEAP)
		return wrong;
	if (gen != epoch_sweepgen() && gen != epoch_sweepgen() - 2)
		return "span has an impossible sweepgen";
	if (s->alloc_count > s->nelems)
		return "span has more objects than slots";
	if (!s->cached && mspan_counted(s) != s->alloc_count)
		return "alloc_count is not the number of alloc bits";
	wrong = check_lines(s);
	return wrong ? wrong : check_dead(s);
}
