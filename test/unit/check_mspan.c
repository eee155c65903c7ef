// The rules of the bits: what is allocated, what is counted, what is marked.
#define RT_NO_INLINE_ALLOC
#include <string.h>

#include "runtime/spans/object.h"
#include "runtime/os/settings.h"
#include "test/unit/mspan.h"

// ---- the table of the design, line by line ----

enum { A = 8, B = 4, C = 4, SLOTS = 4 }; // c takes the slot that b had

// slots returns the bits of a line as a number: bit i is slot i.
static unsigned slots(const struct mspan *s, unsigned line)
{
	unsigned x = 0;

	for (uint32_t i = 0; i < SLOTS; i++)
		x |= (unsigned)mspan_test(s, line, i) << i;
	return x;
}

// allocated returns such a number of the slots that a look-up finds allocated.
static unsigned allocated(const struct mspan *s)
{
	struct object o;
	unsigned x = 0;

	for (uint32_t i = 0; i < SLOTS; i++)
		x |= (unsigned)object_find(s->base + i * s->elemsize + 7, &o)
		     << i;
	return x;
}

// expect compares a span with one row of the table.  first is the line (0 or 1)
// that held the alloc bits when the test began.
static void expect(const struct mspan *s, unsigned first, unsigned b0,
		   unsigned b1, unsigned lag)
{
	ck_assert_uint_eq(slots(s, first), b0);
	ck_assert_uint_eq(slots(s, first ^ 1), b1);
	ck_assert_uint_eq(atomic_u32_load_relaxed(&s->sweepgen) + lag,
			  epoch_sweepgen());
	ck_assert_ptr_null(mspan_check(s));
}

GROUP(bits, .timeout = 120);

TEST(a_span_lives_through_the_table_of_the_design)
{
	spanclass sc = spanclass_make(38, KIND_WORDS); // 4 of 2048 bytes
	unsigned first;
	struct mspan *s;
	char *a;

	inside_boot(false);
	first = heap_line();
	a = inside_take(sc);
	s = inside_span(a);
	ck_assert_uint_eq(s->nelems, SLOTS);
	ck_assert_uint_eq(slots(s, first), 8); // a brief run
	mc->slots[sc].run_log2 = MCACHE_RUN_LAST;
	ck_assert_ptr_eq(inside_take(sc), a - 2048);
	ck_assert_uint_eq(slots(s, first), 15); // all that is left of the page
	mcache_flush(mc, self);
	expect(s, first, A | B, 0, 0);
	ck_assert_uint_eq(mspan_counted(s), 2);
	ck_assert_uint_eq(allocated(s), A | B);

	put_bit(s, first ^ 1, 3, true); // a lives
	ck_assert_uint_eq(mspan_counted(s), 2);
	ck_assert_uint_eq(allocated(s), A | B);

	inside_flip();
	expect(s, first, A | B, A, 2);
	ck_assert_uint_eq(mspan_counted(s), 2);
	ck_assert_uint_eq(allocated(s), A);

	sweep_ensure(self, s);
	expect(s, first, 0, A, 0);
	ck_assert_uint_eq(mspan_counted(s), 1);
	ck_assert_uint_eq(allocated(s), A);

	inside_sweep_all();
	ck_assert_ptr_eq(inside_take(sc), a - 2048); // c
	mcache_flush(mc, self);
	expect(s, first, 0, A | C, 0);
	ck_assert_uint_eq(mspan_counted(s), 2);
	ck_assert_uint_eq(allocated(s), A | C);

	put_bit(s, first, 3, true);
	inside_flip();
	expect(s, first, A, A | C, 2);
	ck_assert_uint_eq(mspan_counted(s), 2);
	ck_assert_uint_eq(allocated(s), A);
	ck_assert_uint_eq(verify_errors(), 0);
	inside_sweep_all();
	ck_assert_uint_eq(verify_errors(), 0);
}

// ---- runs ----

// word_is_free tells whether no slot that begins in a lineword is allocated.
static bool word_is_free(const struct mspan *s, unsigned w)
{
	for (uint32_t i = 0; i < s->nelems; i++)
		if (mspan_bit(s, i) / 64 == w && mspan_test(s, heap_line(), i))
			return false;
	return true;
}

// A run lies within an aligned group of this many bits.
static unsigned block;

// naive_run finds the run that mspan_find_run promises, slot by slot.  It
// returns how many slots the run has, or 0 if there is none.
static uint32_t naive_run(const struct mspan *s, struct mspan_run *run)
{
	uint32_t i = s->nelems, n = 0;
	unsigned last, unit;

	while (i > 0 && mspan_test(s, heap_line(), i - 1))
		i--;
	if (i == 0)
		return 0;
	last = mspan_bit(s, i - 1);
	unit = word_is_free(s, last / 64) ? block : 64;
	while (n < i && !mspan_test(s, heap_line(), i - n - 1) &&
	       mspan_bit(s, i - n - 1) / unit == last / unit &&
	       (n == 0 || (n + 1) * s->elemsize <= RT_PAGE_SIZE))
		n++;
	run->stop = last + 1;
	run->end = (char *)s->base + i * s->elemsize;
	run->start = run->end - n * s->elemsize;
	return n;
}

// same_run compares a run with the result of mspan_find_run, and, where
// mspan_find_near may be called, with its result.
static bool same_run(const struct mspan *s, const struct mspan_cursor *c,
		     const struct mspan_run *naive)
{
	uint32_t first = mspan_slot(s, (uintptr_t)naive->start - s->base);
	struct mspan_run run;

	if (mspan_is_near(c, s->elemsize)) {
		mspan_find_near(c, s->elemsize, &run);
		if (run.start != naive->start || run.end != naive->end)
			return false;
	}
	mspan_find_run(s, c, block, &run);
	return run.stop == naive->stop && run.start == naive->start &&
	       run.end == naive->end && run.first <= mspan_bit(s, first) &&
	       (first == 0 || run.first > mspan_bit(s, first - 1));
}

enum { MOST_WORDS = 10 * RT_PAGE_WORDS }; // of a line of a small span

// copy_line copies all linewords of a line.
static void copy_line(const struct mspan *s, uint64_t *out)
{
	for (unsigned w = 0; w < s->nwords; w++)
		out[w] =
		    atomic_u64_load_relaxed(mspan_lineword(s, heap_line(), w));
}

// changed_exactly tells whether the line differs from before in the bits of
// slots [lo, hi) and in no others.
static bool changed_exactly(const struct mspan *s, const uint64_t *before,
			    uint32_t lo, uint32_t hi)
{
	uint64_t want[MOST_WORDS];
	uint64_t now[MOST_WORDS];

	memcpy(want, before, sizeof want);
	for (uint32_t i = lo; i < hi; i++)
		want[mspan_bit(s, i) / 64] ^= UINT64_C(1)
					      << (mspan_bit(s, i) % 64);
	copy_line(s, now);
	return memcmp(now, want, s->nwords * 8) == 0;
}

// take_next takes the next run.  It uses mspan_find_near if near is set and the
// run is near, otherwise mspan_find_run.
static void take_next(struct mspan *s, struct mspan_cursor *c, bool near)
{
	struct mspan_run run;

	if (near && mspan_is_near(c, s->elemsize)) {
		mspan_find_near(c, s->elemsize, &run);
		mspan_take_near(c, &run);
	} else {
		mspan_find_run(s, c, block, &run);
		mspan_take_run(s, c, &run);
	}
}

// take_and_free takes a run of n slots and frees a random part from its
// start, then all of it.  Then it takes the run again, so that the line ends
// with the run taken.
static bool take_and_free(struct rng *r, struct mspan *s,
			  struct mspan_cursor *c, const struct mspan_run *run,
			  uint32_t n)
{
	uint64_t before[MOST_WORDS] = {0};
	uint32_t lo = mspan_slot(s, (uintptr_t)run->start - s->base);
	uint32_t rest = (uint32_t)rng_below(r, n + 1);
	const char *used = run->start + rest * s->elemsize;
	struct mspan_cursor again = *c;

	copy_line(s, before);
	take_next(s, &again, rng_next(r) % 2);
	if (!changed_exactly(s, before, lo, lo + n))
		return false;
	if (mspan_free_slots(s, run->start, used) != rest ||
	    !changed_exactly(s, before, lo + rest, lo + n))
		return false;
	mspan_free_slots(s, used, run->end);
	take_next(s, c, rng_next(r) % 2);
	return changed_exactly(s, before, lo, lo + n);
}

// runs_agree walks a random bitmap run by run; in the end no slot is free.
static bool runs_agree(struct rng *r, struct mspan *s)
{
	struct mspan_cursor c;
	struct mspan_run naive = {0};

	fill(r, s);
	s->alloc_count = mspan_count(s, heap_line());
	mspan_cursor_start(&c, s);
	for (;;) {
		uint32_t n = naive_run(s, &naive);

		if (mspan_seek(&c) != (n != 0))
			return false;
		if (n == 0)
			return mspan_count(s, heap_line()) == s->nelems;
		if (!same_run(s, &c, &naive) ||
		    !take_and_free(r, s, &c, &naive, n))
			return false;
	}
}

TEST(runs_are_what_a_slot_loop_finds, .base = 1, .limit = SIZECLASS_COUNT)
{
	unsigned c = (unsigned)_i;
	struct mspan *s;
	struct rng r;

	inside_boot(true);
	rng_init(&r, __func__);
	s = mheap_alloc_small(self, NULL, spanclass_make(c, KIND_NOSCAN));
	ck_assert_ptr_nonnull(s);
	for (int round = 0; round < 300 / CUT; round++) {
		if (round % 8 == 7)
			epoch_flip(); // the other line
		block =
		    1u << (MCACHE_RUN_FIRST +
			   round % (MCACHE_RUN_LAST - MCACHE_RUN_FIRST + 1));
		if (!runs_agree(&r, s))
			ck_abort_msg("class %u, round %d", c, round);
	}
}

// ---- the check of one span ----

// toggle changes one bit of a lineword of the first pages.
static void toggle(const struct mspan *s, unsigned line, unsigned bit)
{
	atomic_u64 *word = mspan_lineword(s, line, bit / 64);

	atomic_u64_store_relaxed(word, atomic_u64_load_relaxed(word) ^
					   UINT64_C(1) << (bit % 64));
}

// set_second changes the pageword of the second page of a span.
static void set_second(const struct mspan *s, uint32_t word)
{
	atomic_u32_store_relaxed(&arena.pagewords[mspan_page(s) + 1], word);
}

// sound_span returns a span without a fault, of class 35: 11 objects of 1408
// bytes in two pages, and a tail.
static struct mspan *sound_span(void)
{
	spanclass sc = spanclass_make(35, KIND_WORDS);
	struct mspan *s;

	inside_boot(false);
	s = inside_span(inside_take(sc));
	inside_take(sc);
	mcache_flush(mc, self);
	ck_assert_ptr_null(mspan_check(s));
	ck_assert_uint_eq(verify_errors(), 0);
	return s;
}

// DAMAGE tests that mspan_check and rt_heap_verify find what is done to a sound
// span s.
#define DAMAGE(name, ...)                                                      \
	TEST(name##_is_found)                                                  \
	{                                                                      \
		struct mspan *s = sound_span();                                \
                                                                               \
		__VA_ARGS__;                                                   \
		ck_assert_ptr_nonnull(mspan_check(s));                         \
		ck_assert_uint_ne(verify_errors(), 0);                         \
	}

TEST(no_damage_is_found_in_a_sound_span)
{
	sound_span();
}

DAMAGE(a_span_of_no_use, s->use = MSPAN_FREE)
DAMAGE(a_count_too_high, s->alloc_count++)
// With cached set, only the check of the bound can find this.
DAMAGE(a_count_over_the_bound, s->cached = 1, s->alloc_count = s->nelems + 1)
DAMAGE(an_alloc_bit_too_many, put_bit(s, heap_line(), 0, true))
DAMAGE(a_mark_bit_too_many, put_bit(s, heap_line() ^ 1, 0, true))
DAMAGE(a_bit_between_slots, toggle(s, heap_line(), mspan_bit(s, 1) + 1),
       s->alloc_count++)
DAMAGE(a_bit_behind_the_slots,
       toggle(s, heap_line() ^ 1, mspan_bit(s, s->nelems - 1) + 1))
DAMAGE(a_bit_of_the_last_page, toggle(s, heap_line() ^ 1, s->nwords * 64 - 1))
DAMAGE(an_odd_sweepgen,
       atomic_u32_store_relaxed(&s->sweepgen, epoch_sweepgen() - 1))
DAMAGE(an_old_sweepgen,
       atomic_u32_store_relaxed(&s->sweepgen, epoch_sweepgen() - 4))
DAMAGE(a_hole_in_the_span_table,
       atomic_ptr_store_release(&arena.spans[mspan_page(s) + 1], NULL))
DAMAGE(a_pageword_of_another_place,
       set_second(s,
		  pageword_at(pageword_make(35, KIND_WORDS, PAGEWORD_HEAP), 2)))
DAMAGE(a_pageword_of_another_state,
       set_second(s, pageword_at(pageword_make(35, KIND_WORDS, PAGEWORD_MANUAL),
				 1)))
DAMAGE(a_pageword_of_another_class,
       set_second(s,
		  pageword_at(pageword_make(36, KIND_WORDS, PAGEWORD_HEAP), 1)))
DAMAGE(a_pageword_of_another_kind,
       set_second(s,
		  pageword_at(pageword_make(35, KIND_WORDS ^ 1, PAGEWORD_HEAP),
			      1)))

// damage_shape makes a field unfit for a span of a class, or for a large one,
// and returns what the check must say.  It returns NULL if number i is past the
// last.
static const char *damage_shape(struct mspan *s, int i)
{
	const char *misfit = mspan_is_large(s)
				 ? "large object does not fill its span"
				 : "span does not fit its class";

	switch (i) {
	case 0:
		s->npages = 0;
		return "mspan is free or has no pages";
	case 1:
		s->base++;
		return "span is outside of the heap";
	case 2:
		s->base += arena_used();
		return "span is outside of the heap";
	case 3:
		s->npages = (arena_used() >> RT_PAGE_SHIFT) + 1;
		return "span is outside of the heap";
	case 4:
		s->use = MSPAN_WORK + 1;
		return "span has an unknown use or class";
	case 5:
		s->sizeclass++;
		return "span has an unknown use or class";
	case 6:
		atomic_ptr_store_release(&s->lines,
					 arena_lines(mspan_page(s) + 1));
		return "span has the wrong bits";
	case 7:
		s->elemsize += RT_PAGE_SIZE;
		return misfit;
	case 8:
		s->divmagic++;
		return misfit;
	case 9:
		s->nelems++;
		return misfit;
	case 10:
		s->nwords++;
		return mspan_is_large(s) ? misfit
					 : "span has the wrong number of words";
	default:
		return NULL;
	}
}

enum { SHAPES = 11 };

// damage_large breaks what only a large span has.
static const char *damage_large(struct mspan *s, int i)
{
	static const char limit[] =
	    "limit of a large object is not in its last page";

	switch (i) {
	case 0:
		atomic_u64_store_relaxed(&s->limit, s->base - 1);
		return limit;
	case 1:
		atomic_u64_store_relaxed(&s->limit, mspan_limit(s) + 1);
		return limit;
	case 2:
		s->alloc_count = 0;
		return "large span has no object";
	default:
		return NULL;
	}
}

enum { LARGE_SHAPES = 3 };

// repaired restores a span from a sound copy, and requires that the check finds
// nothing.
static void repaired(struct mspan *s, const struct mspan *sound)
{
	memcpy(s, sound, sizeof *s);
	ck_assert_ptr_null(mspan_check(s));
}

GROUP(shape);

// rt_heap_verify counts no objects in a span whose class does not exist.
TEST(a_span_of_no_class_is_not_counted)
{
	struct mspan sound, *s;
	struct rt_verify v;

	inside_boot(false);
	s = inside_span(inside_take(spanclass_make(35, KIND_WORDS)));
	mcache_flush(mc, self);
	memcpy(&sound, s, sizeof sound);
	for (unsigned c = SIZECLASS_COUNT; c <= UINT8_MAX; c++) {
		s->sizeclass = (uint8_t)c;
		ck_assert_int_eq(rt_heap_verify(&v), RT_OK);
		ck_assert_uint_ne(v.errors, 0);
		ck_assert_uint_eq(v.objects, 0);
		repaired(s, &sound);
	}
	ck_assert_uint_eq(verify_errors(), 0);
}

// damage_guarded does damage number i of those that only a guarded object can
// have.
static const char *damage_guarded(struct mspan *s, int i)
{
	static const char place[] = "guarded object is in the wrong place";
	uint32_t guarded = atomic_u32_load_relaxed(&s->guarded);

	switch (i) {
	case 0:
		atomic_u32_store_relaxed(&s->guarded, guarded + 8);
		return place;
	case 1:
		atomic_u32_store_relaxed(&s->guarded, guarded - 8);
		return place;
	case 2:
		atomic_u32_store_relaxed(&s->guarded, 0);
		return "limit of a large object is not in its last page";
	case 3: // object and limit, in the guard
		atomic_u32_store_relaxed(&s->guarded, guarded + RT_PAGE_SIZE);
		atomic_u64_store_relaxed(&s->limit,
					 mspan_limit(s) + RT_PAGE_SIZE);
		return place;
	default:
		s->use = MSPAN_WORK;
		return "guarded span has the wrong use or class";
	}
}

enum { GUARDED_SHAPES = 5 };

// The checks report a damaged guarded object, and do not fault while they look
// at it.
TEST(a_guarded_span_of_the_wrong_shape_is_found, .n = GUARDED_SHAPES)
{
	struct mspan sound, *s;
	const char *says;

	inside_boot(false);
	settings_present.guard_large = 1;
	guard_init();
	s = refill_guarded(mc, self, KIND_WORDS, 1000);
	ck_assert_ptr_nonnull(s);
	mheap_publish_large(s);
	memcpy(&sound, s, sizeof sound);
	says = damage_guarded(s, _i);
	ck_assert_uint_ne(verify_errors(), 0);
	ck_assert_pstr_eq(mspan_check(s), says);
	repaired(s, &sound);
	ck_assert_uint_eq(verify_errors(), 0);
}

TEST(a_span_of_the_wrong_shape_is_found, .n = 2)
{
	struct mspan sound, *s;

	inside_boot(false);
	if (_i == 0) {
		s = inside_span(inside_take(spanclass_make(35, KIND_WORDS)));
		mcache_flush(mc, self);
	} else {
		s = mheap_alloc_large(self, NULL, KIND_WORDS, 8 * RT_PAGE_SIZE);
		mheap_publish_large(s);
	}
	ck_assert_ptr_null(mspan_check(s));
	memcpy(&sound, s, sizeof sound);
	for (int i = 0; i < SHAPES; i++) {
		const char *says = damage_shape(s, i);

		ck_assert_pstr_eq(mspan_check(s), says);
		repaired(s, &sound);
	}
	for (int i = 0; _i != 0 && i < LARGE_SHAPES; i++) {
		const char *says = damage_large(s, i);

		ck_assert_pstr_eq(mspan_check(s), says);
		repaired(s, &sound);
	}
}
