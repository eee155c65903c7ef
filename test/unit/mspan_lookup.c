// From an address to the object that it is in, or to none.
#define RT_NO_INLINE_ALLOC
#include <stdlib.h>

#include "runtime/spans/object.h"
#include "test/unit/mspan.h"

// object_agrees compares a look-up with what is known of the address.
static bool object_agrees(uintptr_t p, const struct object *want)
{
	struct object o;

	if (!object_find(p, &o))
		return want == NULL;
	return want && o.base == want->base && o.size == want->size &&
	       o.kind == want->kind && o.request == want->request;
}

// small_agrees looks up every byte of a span and one on either side.
static bool small_agrees(const struct mspan *s)
{
	uintptr_t end = s->base + (s->npages << RT_PAGE_SHIFT);

	for (uintptr_t p = s->base - 1; p <= end; p++) {
		uint64_t slot = (p - s->base) / s->elemsize;
		struct object want = {
		    .base = s->base + slot * s->elemsize,
		    .size = s->elemsize,
		    .kind = KIND_WORDS,
		    .request = s->elemsize,
		};
		bool inside = p >= s->base && slot < s->nelems &&
			      mspan_test(s, heap_line(), (uint32_t)slot);

		if (!object_agrees(p, inside ? &want : NULL))
			return false;
	}
	return true;
}

GROUP(lookup, .timeout = 120);

TEST(every_byte_of_a_span_leads_to_its_object)
{
	struct rng r;

	inside_boot(true);
	rng_init(&r, __func__);
	for (unsigned c = 1; c < SIZECLASS_COUNT; c += CUT) {
		// The look-ups are in the middle span; the others have no
		// object.
		struct mspan *s[3];

		for (unsigned i = 0; i < 3; i++)
			s[i] = mheap_alloc_small(self, NULL,
						 spanclass_make(c, KIND_WORDS));
		fill(&r, s[1]);
		if (!small_agrees(s[1]))
			ck_abort_msg("class %u", c);
		put_bit(s[1], heap_line(), 0, true);
		put_bit(s[1], heap_line(), s[1]->nelems - 1, true);
		if (!small_agrees(s[1]))
			ck_abort_msg("class %u, first and last", c);
	}
}

TEST(every_byte_of_a_large_object_leads_to_it, .n = 2)
{
	static const size_t requests[] = {32761,  32768,	 32769,
					  40959,  40960,	 40961,
					  100003, (1 << 20) + 1, 8 << 20};

	inside_boot(_i);
	for (unsigned i = 0; i < RT_ARRAY_LEN(requests) - RT_TSAN; i++) {
		size_t n = requests[i];
		// The page below the object holds none.
		struct mspan *below = mheap_alloc_manual(self, 1, MSPAN_WORK);
		struct mspan *s = mheap_alloc_large(self, NULL, KIND_WORDS, n);
		struct object want = {s->base, base_pages(n) * RT_PAGE_SIZE,
				      KIND_WORDS, n};
		uintptr_t end = s->base + want.size;

		ck_assert_uint_eq(below->base + RT_PAGE_SIZE, s->base);
		ck_assert(object_agrees(s->base, NULL)); // setting up
		ck_assert(object_agrees(s->base + n - 1, NULL));
		mheap_publish_large(s);
		for (uintptr_t p = s->base; p < end; p++)
			if (!object_agrees(p, p - s->base < n ? &want : NULL))
				ck_abort_msg("request %zu, byte %zu", n,
					     p - s->base);
		ck_assert(object_agrees(s->base - 1, NULL));
		ck_assert(object_agrees(end, NULL));
	}
}

// set_word gives a page another pageword, as at some moment in the life of its
// span.
static void set_word(uint64_t page, unsigned class, enum pageword_state state)
{
	atomic_u32_store_relaxed(&arena.pagewords[page],
				 pageword_make(class, KIND_WORDS, state));
}

// No stop waits for a thread without a P.  So its look-up may come between any
// two steps of another thread that frees a span, or uses it again.
TEST(a_large_object_that_goes_while_it_is_looked_up_is_not_found)
{
	struct mspan *s;
	uintptr_t last;
	uint64_t page;

	inside_boot(false);
	s = mheap_alloc_large(self, NULL, KIND_WORDS, 3 * RT_PAGE_SIZE);
	mheap_publish_large(s);
	page = mspan_page(s);
	last = mspan_limit(s) - 1; // the pageword stays as it is
	ck_assert(!object_agrees(last, NULL));
	atomic_ptr_store_release(&arena.spans[page], NULL);
	ck_assert(object_agrees(last, NULL));
	atomic_ptr_store_release(&arena.spans[page], s);
	set_word(page, 0, PAGEWORD_SETTING_UP);
	ck_assert(object_agrees(last, NULL));
	set_word(page, 35, PAGEWORD_HEAP);
	ck_assert(object_agrees(last, NULL));
	set_word(page, 0, PAGEWORD_HEAP);
	put_bit(s, heap_line(), 0, false);
	ck_assert(object_agrees(last, NULL));
	put_bit(s, heap_line(), 0, true);
	ck_assert(!object_agrees(last, NULL));
}

// The 8-byte class has its bits in a bitmap8 that the span leads to.
TEST(an_object_of_8_bytes_whose_span_goes_is_not_found)
{
	struct mspan *s;
	uintptr_t p;
	uint64_t page;

	inside_boot(true);
	p = (uintptr_t)inside_take(spanclass_make(1, KIND_WORDS));
	s = inside_span((void *)p);
	mcache_flush(mc, self);
	page = mspan_page(s);
	ck_assert(!object_agrees(p, NULL));
	atomic_ptr_store_release(&arena.spans[page], NULL);
	ck_assert(object_agrees(p, NULL));
	atomic_ptr_store_release(&arena.spans[page], s);
	ck_assert(!object_agrees(p, NULL));
}

TEST(stacks_and_free_pages_hold_no_object)
{
	struct mspan *s;
	char *stack;

	inside_boot(false);
	stack = rt_stack_alloc(4096);
	s = mheap_alloc_manual(self, 3, MSPAN_WORK);
	ck_assert_ptr_nonnull(stack);
	ck_assert_ptr_nonnull(s);
	for (uintptr_t p = arena.base - 8; p < arena.base + arena_used() + 8;
	     p += 8)
		if (!object_agrees(p, NULL))
			ck_abort_msg("offset %zu", p - arena.base);
}

// The heap of the test with random words has objects of many sizes, half of
// them freed.  known[] has, for each 8 bytes of the heap, the base of the
// object that is left there, or 0.
enum { KNOWN_BYTES = 16 << 20 };
static const uintptr_t *known_at(uintptr_t *known, uintptr_t p)
{
	uint64_t offset = arena_offset(p);
	const uintptr_t *base;

	if (offset >= KNOWN_BYTES)
		return NULL;
	base = &known[offset / 8];
	return *base ? base : NULL;
}

static void know(uintptr_t *known, uintptr_t base, size_t n)
{
	for (uintptr_t p = base; p < base + n; p += 8)
		known[arena_offset(p) / 8] = base;
}

static void populate(struct rng *r, uintptr_t *known)
{
	for (int i = 0; i < 3000; i++) {
		unsigned c = 1 + (unsigned)rng_below(r, SIZECLASS_COUNT - 1);
		spanclass sc = spanclass_make(c, KIND_NOSCAN);
		char *obj;

		if (i > 1000 && c > 40)
			continue;
		obj = inside_take(sc);
		ck_assert_ptr_nonnull(obj);
		if (rng_next(r) % 2) {
			const struct mspan *s = inside_span(obj);

			put_bit(s, heap_line() ^ 1,
				(uint32_t)(((uintptr_t)obj - s->base) /
					   s->elemsize),
				true);
			know(known, (uintptr_t)obj, s->elemsize);
		}
	}
	mcache_flush(mc, self);
	ck_assert_uint_le(arena_used(), KNOWN_BYTES);
	inside_flip();
	inside_sweep_all();
	ck_assert_uint_eq(verify_errors(), 0);
}

TEST(random_words_lead_to_objects_that_exist_or_nowhere)
{
	uintptr_t *known = calloc(KNOWN_BYTES / 8, sizeof *known);
	uint64_t hits = 0;
	struct rng r;

	inside_boot(true);
	rng_init(&r, __func__);
	populate(&r, known);
	for (int i = 0; i < 2000000 / CUT; i++) {
		uintptr_t w = i % 2 ? rng_next(&r)
				    : arena.base - 4096 +
					  rng_below(&r, arena_used() + 8192);
		const uintptr_t *want = known_at(known, w);
		struct object o;
		bool found = object_find(w, &o);

		if (found != (want != NULL) || (found && o.base != *want))
			ck_abort_msg("word %#lx", (unsigned long)w);
		hits += found;
	}
	ck_assert_uint_gt(hits, 10000 / CUT);
	free(known);
}

TEST(foreign_addresses_hold_no_object)
{
	int here;
	const uintptr_t words[] = {
	    0,
	    1,
	    UINTPTR_MAX,
	    UINTPTR_MAX - 7,
	    (uintptr_t)&here,
	    (uintptr_t)heap_line,
	    (uintptr_t)&arena,
	    arena.base,
	};

	inside_boot(false);
	rt_alloc(16);
	for (unsigned i = 0; i < RT_ARRAY_LEN(words); i++)
		ck_assert(object_agrees(words[i], NULL));
	ck_assert(object_agrees(arena.base - 1, NULL));
	ck_assert(object_agrees(arena.base + arena_used(), NULL));
	ck_assert(object_agrees(arena.base + arena.reserved - 1, NULL));
	ck_assert(object_agrees(arena.base + arena.reserved, NULL));
	ck_assert(object_agrees(arena.base ^ UINT64_C(1) << 63, NULL));
}
