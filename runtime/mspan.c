#include "runtime/mspan.h"

#include "runtime/bits.h"

// set_bits: the release pairs with the acquire in bits_of_eight.
static void set_bits(struct mspan *s, const struct pagebits *bits)
{
	atomic_ptr_store_release(&s->bits, bits);
}

void mspan_init_small(struct mspan *s, spanclass sc, struct pagebits *block)
{
	const struct sizeclass *c = &sizeclass_table[spanclass_size(sc)];

	set_bits(s, block ? block : &arena.lines[mspan_page(s)]);
	s->elemsize = c->size;
	s->divmagic = c->divmagic;
	s->nelems = c->nelems;
	atomic_u64_store_relaxed(&s->limit,
				 s->base + (uint64_t)c->nelems * c->size);
	s->alloc_count = 0;
	s->spanclass = sc;
	s->use = MSPAN_HEAP;
	s->cached = 0;
	s->next = NULL;
	atomic_u32_store_relaxed(&s->sweepgen, epoch_sweepgen());
}

void mspan_init_large(struct mspan *s, unsigned kind, size_t request)
{
	set_bits(s, &arena.lines[mspan_page(s)]);
	s->elemsize = s->npages << RT_PAGE_SHIFT;
	s->divmagic = 0;
	s->nelems = 1;
	atomic_u64_store_relaxed(&s->limit, s->base + request);
	s->alloc_count = 1;
	s->spanclass = spanclass_make(0, kind);
	s->use = MSPAN_HEAP;
	s->cached = 0;
	s->next = NULL;
	atomic_u32_store_relaxed(&s->sweepgen, epoch_sweepgen());
}

void mspan_init_manual(struct mspan *s, enum mspan_use use)
{
	set_bits(s, NULL);
	s->elemsize = 0;
	s->divmagic = 0;
	s->nelems = 0;
	atomic_u64_store_relaxed(&s->limit,
				 s->base + (s->npages << RT_PAGE_SHIFT));
	s->alloc_count = 0;
	s->spanclass = 0;
	s->use = (uint8_t)use;
	s->cached = 0;
	s->needzero = 1;
	s->stack_used = 0;
	s->next = NULL;
	atomic_u32_store_relaxed(&s->sweepgen, epoch_sweepgen());
}

uint32_t mspan_count(const struct mspan *s, unsigned line)
{
	uint32_t n = 0;

	for (unsigned w = 0; w < mspan_words(s); w++)
		n +=
		    bits_count(atomic_u64_load_relaxed(mspan_word(s, line, w)));
	return n;
}

uint32_t mspan_counted(const struct mspan *s)
{
	return mspan_count(
	    s, epoch_alloc_line(atomic_u32_load_relaxed(&s->sweepgen)));
}

// slot_of_bit is the slot whose first granule has this bit.
static uint32_t slot_of_bit(const struct mspan *s, unsigned bit)
{
	uint64_t offset = (uint64_t)bit
			  << sizeclass_bit_shift(spanclass_size(s->spanclass));

	// An object of 24 bytes may begin in the middle of its granule.
	return mspan_slot(s, offset + s->elemsize - 1);
}

// run_cap is the bit before which a run that begins at first ends, so that
// it covers at most a page, or one slot.
static unsigned run_cap(const struct mspan *s, unsigned first)
{
	unsigned shift = sizeclass_bit_shift(spanclass_size(s->spanclass));
	uint64_t slot = (s->elemsize + (1u << shift) - 1) >> shift;
	uint64_t page = RT_PAGE_SIZE >> shift;

	return first + (slot < page ? (unsigned)(page - slot) : 0) + 1;
}

// next_allocated is the first bit of line in [from, limit), or limit.
static unsigned next_allocated(const struct mspan *s, unsigned line,
			       unsigned from, unsigned limit)
{
	unsigned w = from / 64;
	uint64_t keep = ~UINT64_C(0) << (from % 64);

	for (; w * 64 < limit; w++, keep = ~UINT64_C(0)) {
		uint64_t x =
		    atomic_u64_load_relaxed(mspan_word(s, line, w)) & keep;

		if (x != 0)
			return (unsigned)base_min(w * 64 + bits_ctz(x), limit);
	}
	return limit;
}

bool mspan_find_run(const struct mspan *s, unsigned from, struct mspan_run *run)
{
	unsigned line = epoch_alloc_line(epoch_sweepgen());
	unsigned words = mspan_words(s);
	uint64_t keep = ~UINT64_C(0) << (from % 64);

	for (unsigned w = from / 64; w < words; w++, keep = ~UINT64_C(0)) {
		uint64_t free =
		    mspan_mask(s, w) & keep &
		    ~atomic_u64_load_relaxed(mspan_word(s, line, w));
		uint32_t lo, hi;

		if (free == 0)
			continue;
		run->first = w * 64 + bits_ctz(free);
		run->stop = next_allocated(
		    s, line, run->first,
		    (unsigned)base_min(run_cap(s, run->first), words * 64));
		// All slots that begin in [first, stop) are free, and no
		// other bit is: the slot after the last one is that of stop.
		lo = slot_of_bit(s, run->first);
		hi = (uint32_t)base_min(slot_of_bit(s, run->stop), s->nelems);
		run->n = hi - lo;
		run->cur = (char *)s->base + lo * s->elemsize;
		run->end = (char *)s->base + hi * s->elemsize;
		return true;
	}
	return false;
}

// change_bits sets or clears the slots that begin in [first, stop).  Only the
// owner of a cached span writes these words outside a stop, so a plain store
// does; readers elsewhere see old or new.
static void change_bits(struct mspan *s, unsigned first, unsigned stop,
			bool set)
{
	unsigned line = epoch_alloc_line(epoch_sweepgen());

	for (unsigned w = first / 64; w * 64 < stop; w++) {
		unsigned lo = w * 64 < first ? first - w * 64 : 0;
		unsigned hi = (unsigned)base_min(stop - w * 64, 64);
		uint64_t bits = mspan_mask(s, w) & bits_mask(lo, hi);
		atomic_u64 *word = mspan_word(s, line, w);
		uint64_t old = atomic_u64_load_relaxed(word);

		atomic_u64_store_release(word, set ? old | bits : old & ~bits);
	}
}

void mspan_take_run(struct mspan *s, const struct mspan_run *run)
{
	change_bits(s, run->first, run->stop, true);
}

uint32_t mspan_give_back(struct mspan *s, const char *cur, const char *end)
{
	uint32_t lo, hi;

	if (cur == end)
		return 0;
	lo = mspan_slot(s, (uintptr_t)cur - s->base);
	hi = mspan_slot(s, (uintptr_t)end - 1 - s->base) + 1;
	change_bits(s, mspan_bit(s, lo), mspan_bit(s, hi - 1) + 1, false);
	return hi - lo;
}

// check_small compares what never changes with the span's class.
static const char *check_small(const struct mspan *s)
{
	unsigned class = spanclass_size(s->spanclass);
	const struct sizeclass *c = &sizeclass_table[class];
	bool own_bits = mspan_bits(s) != &arena.lines[mspan_page(s)];

	if (!mspan_bits(s) || own_bits != (class == 1))
		return "span has the wrong bits";
	if (mspan_limit(s) != s->base + (uint64_t)c->nelems * c->size)
		return "span has another limit than its class";
	if (s->npages != c->npages || s->elemsize != c->size ||
	    s->divmagic != c->divmagic || s->nelems != c->nelems)
		return "span does not fit its class";
	return NULL;
}

static const char *check_large(const struct mspan *s)
{
	uint64_t request = mspan_limit(s) - s->base;

	if (mspan_bits(s) != &arena.lines[mspan_page(s)])
		return "span has the wrong bits";
	if (request > PTRDIFF_MAX || base_pages(request) != s->npages)
		return "limit of a large object outside of its last page";
	if (s->elemsize != s->npages << RT_PAGE_SHIFT || s->divmagic != 0 ||
	    s->nelems != 1)
		return "large object does not fill its span";
	if (s->alloc_count == 0 &&
	    atomic_u32_load_relaxed(&s->sweepgen) == epoch_sweepgen())
		return "large span without its object";
	return NULL;
}

// check_fields looks at what must be right before anything that the span
// leads to can be read.
static const char *check_fields(const struct mspan *s)
{
	uint64_t offset = arena_offset(s->base);
	uint64_t used = arena_used();

	if (s->use == MSPAN_FREE || s->npages == 0)
		return "freed span in use";
	if (s->base % RT_PAGE_SIZE != 0 || offset >= used ||
	    s->npages > (used - offset) >> RT_PAGE_SHIFT)
		return "span outside of the heap";
	if (s->use > MSPAN_WORK || s->spanclass >= SPANCLASS_COUNT)
		return "span of no known use or class";
	if (s->use != MSPAN_HEAP)
		return NULL;
	return mspan_is_large(s) ? check_large(s) : check_small(s);
}

static bool state_fits(const struct mspan *s, enum pageword_state state)
{
	if (s->use != MSPAN_HEAP)
		return state == PAGEWORD_MANUAL;
	return state == PAGEWORD_HEAP ||
	       (state == PAGEWORD_SETTING_UP && mspan_is_large(s));
}

// check_words compares the page words and the span table with the span.
static const char *check_words(const struct mspan *s)
{
	uint64_t page = mspan_page(s);

	for (uint64_t i = 0; i < s->npages; i++) {
		uint32_t w = arena_word(page + i);

		if (arena_span(page + i) != s)
			return "span table leads elsewhere";
		if (pageword_place(w) != base_min(i, PAGEWORD_PLACE_MAX))
			return "page word has another place";
		if (!state_fits(s, pageword_state(w)))
			return "page word has another state";
		if (pageword_class(w) != spanclass_size(s->spanclass) ||
		    pageword_kind(w) != spanclass_kind(s->spanclass))
			return "page word has another class or kind";
	}
	return NULL;
}

// check_page_lines: the lines of the pages behind the words that the span's
// slots use are empty.
static const char *check_page_lines(const struct mspan *s)
{
	const struct pagebits *lines = &arena.lines[mspan_page(s)];
	uint64_t from = mspan_bits(s) == lines ? mspan_words(s) : 0;

	for (uint64_t w = from; w < s->npages * RT_PAGE_WORDS; w++)
		for (unsigned line = 0; line < 2; line++)
			if (atomic_u64_load_relaxed(
				&lines[w / RT_PAGE_WORDS]
				     .line[line][w % RT_PAGE_WORDS]))
				return "bit on a page without slots";
	return NULL;
}

// check_lines looks at the words that slots use: bits only where slots begin,
// a mark line of a swept span empty.
static const char *check_lines(const struct mspan *s)
{
	uint32_t own = atomic_u32_load_relaxed(&s->sweepgen);
	bool swept = own == epoch_sweepgen();
	unsigned words = mspan_words(s);

	for (unsigned w = 0; w < words; w++) {
		uint64_t mask = mspan_mask(s, w);

		for (unsigned line = 0; line < 2; line++)
			if (atomic_u64_load_relaxed(mspan_word(s, line, w)) &
			    ~mask)
				return "bit where no slot begins";
		if (swept && atomic_u64_load_relaxed(
				 mspan_word(s, epoch_mark_line(own), w)) != 0)
			return "mark bit on a swept span";
	}
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
		return "bad sweepgen";
	if (s->alloc_count > s->nelems)
		return "more objects than slots";
	if (!s->cached && mspan_counted(s) != s->alloc_count)
		return "alloc_count is not the number of alloc bits";
	return check_lines(s);
}

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

bool mspan_object(uintptr_t p, struct object *o)
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
