// The rules of the bits: what is allocated, what is counted, what is marked.
#define RT_NO_INLINE_ALLOC
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gc/mark/grey.h"
#include "runtime/spans/object.h"
#include "runtime/os/settings.h"
#include "runtime/os/throw.h"
#include "test/harness/inside.h"

enum {
	// Nothing here has two threads.
	CUT = RT_TSAN || COVERAGE_BUILD ? 10 : 1,
	NOTICED = 42, // exit status
};

static unsigned heap_line(void)
{
	return epoch_alloc_line(epoch_sweepgen());
}

// put_bit sets or clears the bit of a slot by hand.
static void put_bit(const struct mspan *s, unsigned line, uint32_t slot,
		    bool set)
{
	unsigned bit = mspan_bit(s, slot);
	atomic_u64 *word = mspan_word(s, line, bit / 64);
	uint64_t mask = UINT64_C(1) << (bit % 64);
	uint64_t old = atomic_u64_load_relaxed(word);

	atomic_u64_store_relaxed(word, set ? old | mask : old & ~mask);
}

static uint64_t verify_errors(void)
{
	struct rt_verify v;

	ck_assert_int_eq(rt_heap_verify(&v), RT_OK);
	return v.errors;
}

// ---- the table of the design, line by line ----

enum { A = 8, B = 4, C = 4, SLOTS = 4 }; // c takes the slot that b had

// slots of a line as a number: bit i is slot i.
static unsigned slots(const struct mspan *s, unsigned line)
{
	unsigned x = 0;

	for (uint32_t i = 0; i < SLOTS; i++)
		x |= (unsigned)mspan_test(s, line, i) << i;
	return x;
}

// allocated is the same by look-up.
static unsigned allocated(const struct mspan *s)
{
	struct object o;
	unsigned x = 0;

	for (uint32_t i = 0; i < SLOTS; i++)
		x |= (unsigned)object_find(s->base + i * s->elemsize + 7, &o)
		     << i;
	return x;
}

// expect compares a span with one line of the table; first is the line that
// held the alloc bits when the story began.
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

	sweep_all(self);
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
	sweep_all(self);
	ck_assert_uint_eq(verify_errors(), 0);
}

// ---- runs ----

// fill gives every slot a random bit; one of 2^sparse slots is free, or
// allocated, if flip.
static void fill(struct rng *r, const struct mspan *s)
{
	unsigned shape = (unsigned)rng_below(r, 6);
	unsigned sparse = 1 + (unsigned)rng_below(r, 5);

	for (uint32_t i = 0; i < s->nelems; i++) {
		bool rare = (rng_next(r) & ((1u << sparse) - 1)) == 0;
		bool set = shape == 0	? false
			   : shape == 1 ? true
			   : shape < 4	? rare
					: !rare;

		put_bit(s, heap_line(), i, set);
	}
}

// word_is_free tells whether no slot that begins in a word is allocated.
static bool word_is_free(const struct mspan *s, unsigned w)
{
	for (uint32_t i = 0; i < s->nelems; i++)
		if (mspan_bit(s, i) / 64 == w && mspan_test(s, heap_line(), i))
			return false;
	return true;
}

// The blocks of bits within which runs are asked for.
static unsigned block;

// naive_run is the run that mspan_find_run promises, slot by slot; how many
// slots it has, 0: none.
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

// same_run compares a run with what mspan_find_run says of it, and with what
// mspan_find_near says, where it may be asked.
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

// copy_line keeps all words of a line.
static void copy_line(const struct mspan *s, uint64_t *out)
{
	for (unsigned w = 0; w < s->nwords; w++)
		out[w] = atomic_u64_load_relaxed(mspan_word(s, heap_line(), w));
}

// changed_exactly tells whether the line differs from before in the bits of
// slots [lo, hi) and nowhere else.
static bool changed_exactly(const struct mspan *s, const uint64_t *before,
			    uint32_t lo, uint32_t hi)
{
	uint64_t want[SIZECLASS_MAX_PAGES * RT_PAGE_WORDS];
	uint64_t now[SIZECLASS_MAX_PAGES * RT_PAGE_WORDS];

	memcpy(want, before, sizeof want);
	for (uint32_t i = lo; i < hi; i++)
		want[mspan_bit(s, i) / 64] ^= UINT64_C(1)
					      << (mspan_bit(s, i) % 64);
	copy_line(s, now);
	return memcmp(now, want, s->nwords * 8) == 0;
}

// take_next takes the next run, in the way of the hand-out or in the long one.
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

// take_and_give_back takes a run of n slots and gives back a random part from
// its start, then all of it, and takes it again, so that the line ends with the
// run taken.
static bool take_and_give_back(struct rng *r, struct mspan *s,
			       struct mspan_cursor *c,
			       const struct mspan_run *run, uint32_t n)
{
	uint64_t before[SIZECLASS_MAX_PAGES * RT_PAGE_WORDS] = {0};
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
		    !take_and_give_back(r, s, &c, &naive, n))
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

// toggle changes one bit of a word of the first pages' lines.
static void toggle(const struct mspan *s, unsigned line, unsigned bit)
{
	atomic_u64 *word = mspan_word(s, line, bit / 64);

	atomic_u64_store_relaxed(word, atomic_u64_load_relaxed(word) ^
					   UINT64_C(1) << (bit % 64));
}

// set_second gives the second page of a span another word.
static void set_second(const struct mspan *s, uint32_t word)
{
	atomic_u32_store_relaxed(&arena.words[mspan_page(s) + 1], word);
}

// Class 35: 11 objects of 1408 bytes in two pages, and a tail.
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

// DAMAGE tests that what is done to a sound span s is found.
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
// cached: so that only the bound can tell.
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
       set_second(s, pageword_make(35, KIND_WORDS, PAGEWORD_HEAP, 2)))
DAMAGE(a_pageword_of_another_state,
       set_second(s, pageword_make(35, KIND_WORDS, PAGEWORD_MANUAL, 1)))
DAMAGE(a_pageword_of_another_class,
       set_second(s, pageword_make(36, KIND_WORDS, PAGEWORD_HEAP, 1)))
DAMAGE(a_pageword_of_another_kind,
       set_second(s, pageword_make(35, KIND_WORDS ^ 1, PAGEWORD_HEAP, 1)))

// damage_shape changes what does not fit a span of a class, or a large one,
// and returns what the check has to say; NULL: number i is past the last.
static const char *damage_shape(struct mspan *s, int i)
{
	const char *misfit = mspan_is_large(s)
				 ? "large object does not fill its span"
				 : "span does not fit its class";

	switch (i) {
	case 0:
		s->npages = 0;
		return "freed span in use";
	case 1:
		s->base++;
		return "span outside of the heap";
	case 2:
		s->base += arena_used();
		return "span outside of the heap";
	case 3:
		s->npages = (arena_used() >> RT_PAGE_SHIFT) + 1;
		return "span outside of the heap";
	case 4:
		s->use = MSPAN_WORK + 1;
		return "span of no known use or class";
	case 5:
		s->sizeclass++;
		return "span of no known use or class";
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

// damage_large is what can be wrong with a large span only.
static const char *damage_large(struct mspan *s, int i)
{
	static const char limit[] =
	    "limit of a large object outside of its last page";

	switch (i) {
	case 0:
		atomic_u64_store_relaxed(&s->limit, s->base - 1);
		return limit;
	case 1:
		atomic_u64_store_relaxed(&s->limit, mspan_limit(s) + 1);
		return limit;
	case 2:
		s->alloc_count = 0;
		return "large span without its object";
	default:
		return NULL;
	}
}

enum { LARGE_SHAPES = 3 };

// repaired puts a span back as it was, which the check has to agree with.
static void repaired(struct mspan *s, const struct mspan *sound)
{
	memcpy(s, sound, sizeof *s);
	ck_assert_ptr_null(mspan_check(s));
}

GROUP(shape);

// A class that there is not is no place to count at.
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

// damage_guarded is what can be wrong with a guarded object only.
static const char *damage_guarded(struct mspan *s, int i)
{
	static const char place[] = "guarded object in another place";
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
		return "limit of a large object outside of its last page";
	case 3: // object and limit, in the guard
		atomic_u32_store_relaxed(&s->guarded, guarded + RT_PAGE_SIZE);
		atomic_u64_store_relaxed(&s->limit,
					 mspan_limit(s) + RT_PAGE_SIZE);
		return place;
	default:
		s->use = MSPAN_WORK;
		return "guarded span of another use or class";
	}
}

enum { GUARDED_SHAPES = 5 };

// A heap that is asked about a damaged guarded object says so, and does not
// fault on its way around it.
TEST(a_guarded_span_of_the_wrong_shape_is_found, .n = GUARDED_SHAPES)
{
	struct mspan sound, *s;
	const char *says;

	inside_boot(false);
	settings.guard_large = 1;
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

// ---- many flips against a ledger ----

// What the driver knows of the object that begins at an address.
enum { ALLOCATED = 1, COUNTED = 2, MARKED = 4 };

// An action that is done wrongly on top of the right one, or a count made
// the wrong way, to prove that the checks below would see it.
enum mutant {
	MUTANT_NONE,
	MUTANT_REST_KEPT,	 // a run's unused rest is not given back
	MUTANT_OLD_LINE_KEPT,	 // sweep leaves the old line of a living span
	MUTANT_OLD_LINE_OF_FREE, // sweep leaves the old line of a freed span
	MUTANT_RECOUNT_BY_HEAP,	 // recount by the heap's parity
	MUTANT_COUNT,
};

enum { LEDGER_BYTES = 24 << 20, FLIPS = RT_TSAN ? 4 : 10 };

static struct sim {
	spanclass sc;
	enum mutant mutant;
	struct rng rng;
	uint8_t *ledger; // of every 8 bytes of the heap
	uintptr_t *live; // ALLOCATED objects
	size_t nlive;
	uintptr_t *dead; // COUNTED only
	size_t ndead;
	size_t most;	  // objects at a time
	uint64_t mallocs; // all since the beginning
	uint64_t frees;
	struct marker marker;
} sim;

static uint8_t *entry(uintptr_t p)
{
	return &sim.ledger[arena_offset(p) / 8];
}

static void sim_begin(unsigned c, enum mutant mutant)
{
	const struct sizeclass *class = &sizeclass_table[c];

	sim.sc = spanclass_make(c, c % 2 ? KIND_WORDS : KIND_NOSCAN);
	sim.mutant = mutant;
	sim.most = 3 * class->nelems + 24;
	sim.ledger = calloc(LEDGER_BYTES / 8, 1);
	sim.live = calloc(sim.most, sizeof *sim.live);
	sim.dead = calloc(sim.most, sizeof *sim.dead);
	sim.nlive = sim.ndead = 0;
	sim.mallocs = sim.frees = 0;
	ck_assert(sim.ledger && sim.live && sim.dead);
}

static void sim_end(void)
{
	free(sim.ledger);
	free(sim.live);
	free(sim.dead);
}

// is_zero_then_dirty tests that an object came zeroed, and writes all of it.
static bool is_zero_then_dirty(char *obj, size_t n)
{
	bool zero = obj[0] == 0 && memcmp(obj, obj + 1, n - 1) == 0;

	memset(obj, 0xa5, n);
	return zero;
}

static const char *sim_alloc(void)
{
	size_t size = sizeclass_table[spanclass_size(sim.sc)].size;
	char *obj;

	if (sim.nlive + sim.ndead >= sim.most)
		return NULL;
	obj = inside_take(sim.sc);
	if (!obj || arena_offset((uintptr_t)obj) >= LEDGER_BYTES)
		return "no memory for the simulation";
	if (*entry((uintptr_t)obj) & ALLOCATED)
		return "an allocated slot was handed out";
	if (!is_zero_then_dirty(obj, size))
		return "a slot was not zero";
	*entry((uintptr_t)obj) = ALLOCATED | COUNTED;
	sim.live[sim.nlive++] = (uintptr_t)obj;
	sim.mallocs++;
	return NULL;
}

static void keep_rest(struct mspan *s, const struct rt_run *run)
{
	if (sim.mutant != MUTANT_REST_KEPT)
		return;
	for (const char *p = run->start; p < run->cur; p += s->elemsize)
		put_bit(s, heap_line(), mspan_slot(s, (uintptr_t)p - s->base),
			true);
}

static void sim_retire(void)
{
	struct mcache_slot *slot = &mc->slots[sim.sc];
	struct rt_run run = *slot->run;
	struct mspan *s = slot->span;

	if (rng_next(&sim.rng) % 2)
		mcache_flush(mc, self);
	else
		mcache_retire_slot(mc, self, sim.sc);
	if (s)
		keep_rest(s, &run);
}

// ---- what can be seen ----

static bool in_run(uintptr_t p)
{
	const struct rt_run *run = mc->slots[sim.sc].run;

	return p >= (uintptr_t)run->start && p < (uintptr_t)run->cur;
}

// look_up asks the library about a random byte of a slot.
static bool look_up(const struct mspan *s, uintptr_t base)
{
	struct object o;

	return object_find(base + rng_below(&sim.rng, s->elemsize), &o) &&
	       o.base == base;
}

static const char *check_slots(const struct mspan *s, uint32_t *ncounted,
			       size_t *nallocated)
{
	uint32_t gen = atomic_u32_load_relaxed(&s->sweepgen);
	unsigned own = epoch_alloc_line(gen);

	*ncounted = 0;
	for (uint32_t i = 0; i < s->nelems; i++) {
		uintptr_t base = s->base + i * s->elemsize;
		bool rest = in_run(base);
		bool is_allocated = rest || (*entry(base) & ALLOCATED);
		bool is_counted = rest || (*entry(base) & COUNTED);

		if (mspan_test(s, heap_line(), i) != is_allocated ||
		    look_up(s, base) != is_allocated)
			return "allocated differs from the ledger";
		if (mspan_test(s, own, i) != is_counted)
			return "counted differs from the ledger";
		if (gen == epoch_sweepgen() &&
		    mspan_test(s, own ^ 1, i) != !!(*entry(base) & MARKED))
			return "marked differs from the ledger";
		*ncounted += is_counted;
		*nallocated += is_allocated && !rest;
	}
	return NULL;
}

static uint32_t recount(const struct mspan *s)
{
	return sim.mutant == MUTANT_RECOUNT_BY_HEAP
		   ? mspan_count(s, heap_line())
		   : mspan_counted(s);
}

static const char *check_span(const struct mspan *s, bool marking,
			      size_t *nallocated)
{
	const struct mcache_slot *slot = &mc->slots[sim.sc];
	const char *wrong = marking ? NULL : mspan_check(s);
	uint64_t taken = slot->span == s ? slot->taken : 0;
	uint32_t ncounted;

	if (!wrong)
		wrong = check_slots(s, &ncounted, nallocated);
	if (wrong)
		return wrong;
	if (recount(s) != ncounted)
		return "recount differs from the ledger";
	if (s->alloc_count + taken / s->elemsize != ncounted)
		return "alloc_count differs from the ledger";
	return NULL;
}

// sim_check compares every span with the ledger; NULL: all is right.
// marking: between the first mark bit and the flip.
static const char *sim_check(bool marking)
{
	size_t nallocated = 0;
	uint64_t page = 0;
	const struct mspan *s;

	while ((s = mheap_next_span(&page)) != NULL) {
		const char *wrong = NULL;

		if (s->use == MSPAN_HEAP)
			wrong = check_span(s, marking, &nallocated);
		if (wrong)
			return wrong;
	}
	return nallocated == sim.nlive ? NULL : "an object is in no span";
}

// sim_check_sums compares statistics with the ledger, everything retired.
static const char *sim_check_sums(void)
{
	unsigned c = spanclass_size(sim.sc);
	uint64_t size = sizeclass_table[c].size;
	struct heapstats_totals t;

	heapstats_unsafe_read(&t);
	if (t.small_alloc_count[c] != sim.mallocs ||
	    heapgauge_sum(HEAPGAUGE_TOTAL_ALLOC) != sim.mallocs * size)
		return "mallocs differ from the ledger";
	if (t.small_free_count[c] != sim.frees ||
	    heapgauge_sum(HEAPGAUGE_TOTAL_FREE) != sim.frees * size)
		return "frees differ from the ledger";
	return verify_errors() == 0 ? NULL : "verify found an error";
}

// ---- a collection, step by step ----

static void mark_in_ledger(uintptr_t p)
{
	const struct mspan *s = inside_span((void *)p);
	uint64_t slot;

	if (!s || s->use != MSPAN_HEAP)
		return;
	slot = (p - s->base) / s->elemsize;
	if (slot < s->nelems &&
	    (*entry(s->base + slot * s->elemsize) & ALLOCATED))
		*entry(s->base + slot * s->elemsize) |= MARKED;
}

// mark_some marks objects by hand and by the marker, and hands the marker
// words that point anywhere in the heap.
static void mark_some(unsigned percent)
{
	struct marker *m = &sim.marker;
	size_t size = sizeclass_table[spanclass_size(sim.sc)].size;
	struct grey o;

	*m = (struct marker){.work.alone = rng_below(&sim.rng, 2)};
	grey_look(m);
	for (size_t i = 0; i < sim.nlive; i++) {
		uintptr_t p = sim.live[i];
		const struct mspan *s = inside_span((void *)p);

		if (rng_below(&sim.rng, 100) >= percent)
			continue;
		if (rng_next(&sim.rng) % 4 == 0)
			put_bit(s, m->mark_line,
				(uint32_t)((p - s->base) / size), true);
		else
			grey_word(m, p + rng_below(&sim.rng, size), &o);
		*entry(p) |= MARKED;
	}
	for (int i = 0; percent != 0 && i < 20; i++) {
		uintptr_t w = arena.base +
			      rng_below(&sim.rng, base_min(m->used, 1 << 20));

		grey_word(m, w, &o);
		mark_in_ledger(w);
	}
	grey_publish_all(m);
}

// sim_flip moves what was not marked to the dead.
static void sim_flip(void)
{
	size_t nlive = 0;

	inside_flip();
	for (size_t i = 0; i < sim.nlive; i++) {
		uintptr_t p = sim.live[i];

		if (*entry(p) & MARKED) {
			*entry(p) = ALLOCATED | COUNTED;
			sim.live[nlive++] = p;
		} else {
			*entry(p) = COUNTED;
			sim.dead[sim.ndead++] = p;
		}
	}
	sim.nlive = nlive;
}

// note_swept takes the dead of [base, limit) out of the ledger.
static void note_swept(uintptr_t base, uintptr_t limit)
{
	size_t ndead = 0;

	for (size_t i = 0; i < sim.ndead; i++) {
		uintptr_t p = sim.dead[i];

		if (p >= base && p < limit) {
			*entry(p) &= (uint8_t)~COUNTED;
			sim.frees++;
		} else {
			sim.dead[ndead++] = p;
		}
	}
	sim.ndead = ndead;
}

// restore_line undoes what sweep did to the old line.
static void restore_line(uint64_t page, const struct mspan *s,
			 const uint64_t *old)
{
	bool freed = arena_span(page) != s;

	if (sim.mutant !=
	    (freed ? MUTANT_OLD_LINE_OF_FREE : MUTANT_OLD_LINE_KEPT))
		return;
	for (unsigned w = 0; w < RT_PAGE_WORDS; w++)
		atomic_u64_store_relaxed(
		    freed ? &arena_lines(page)[w].line[heap_line() ^ 1]
			  : mspan_word(s, heap_line() ^ 1, w),
		    old[w]);
}

static void sweep_one(uintptr_t p)
{
	struct mspan *s = inside_span((void *)p);
	uint64_t page = mspan_page(s);
	uintptr_t base = s->base;
	uintptr_t limit = base + (s->npages << RT_PAGE_SHIFT);
	uint64_t old[RT_PAGE_WORDS];

	if (atomic_u32_load_relaxed(&s->sweepgen) == epoch_sweepgen())
		return;
	for (unsigned w = 0; w < RT_PAGE_WORDS; w++)
		old[w] =
		    atomic_u64_load_relaxed(mspan_word(s, heap_line() ^ 1, w));
	sweep_ensure(self, s);
	note_swept(base, limit);
	restore_line(page, s, old);
}

// sweep_slowly allocates while spans wait to be swept, and sweeps some.
static const char *sweep_slowly(void)
{
	for (int i = 0; i < 12; i++) {
		const char *wrong = NULL;

		if (rng_next(&sim.rng) % 2)
			wrong = sim_alloc();
		else if (sim.nlive != 0 && rng_next(&sim.rng) % 2)
			sweep_one(sim.live[rng_below(&sim.rng, sim.nlive)]);
		else if (sim.ndead != 0)
			sweep_one(sim.dead[rng_below(&sim.rng, sim.ndead)]);
		if (!wrong)
			wrong = sim_check(false);
		if (wrong)
			return wrong;
	}
	return NULL;
}

static const char *allocate_some(void)
{
	uint64_t n = 1 + rng_below(&sim.rng, sim.most);

	for (uint64_t i = 0; i < n; i++) {
		const char *wrong = sim_alloc();

		if (wrong)
			return wrong;
		if (rng_below(&sim.rng, sim.most / 4) == 0)
			sim_retire();
	}
	return sim_check(false);
}

// one_cycle allocates, marks that many of a hundred objects, and sweeps.
static const char *one_cycle(unsigned percent)
{
	const char *wrong = allocate_some();

	if (wrong)
		return wrong;
	sim_retire();
	mcache_flush(mc, self);
	wrong = sim_check(false);
	// A mutant must be seen by the library's own check as well; a flip
	// would not survive it.
	if (!wrong && verify_errors() != 0)
		wrong = "verify found an error";
	if (wrong)
		return wrong;
	mark_some(percent);
	wrong = sim_check(true);
	if (wrong)
		return wrong;
	sim_flip();
	wrong = sim_check(false);
	if (!wrong)
		wrong = sweep_slowly();
	if (!wrong && verify_errors() != 0) // with spans unswept
		wrong = "verify found an error";
	if (wrong)
		return wrong;
	sweep_all(self);
	note_swept(0, UINTPTR_MAX);
	mcache_flush(mc, self);
	wrong = sim_check(false);
	return wrong ? wrong : sim_check_sums();
}

static const char *simulate(unsigned c, enum mutant mutant)
{
	static const unsigned percents[] = {50, 0, 90, 10, 100};
	// A mutant may need several flips to do harm.
	int nflips = mutant == MUTANT_NONE ? FLIPS : 10 * FLIPS;
	const char *wrong = NULL;

	inside_boot(c == 1 || c == 3 || c % 4 == 0);
	sim_begin(c, mutant);
	for (int i = 0; i < nflips && !wrong; i++)
		wrong = one_cycle(percents[i % RT_ARRAY_LEN(percents)]);
	if (wrong && mutant != MUTANT_RECOUNT_BY_HEAP)
		ck_assert_uint_ne(verify_errors(), 0);
	sim_end();
	return wrong;
}

GROUP(bits);

TEST(bits_follow_the_ledger_over_many_flips, .base = 1,
     .limit = SIZECLASS_COUNT)
{
	const char *wrong;
	rt_memstats m;

	rng_init(&sim.rng, __func__);
	wrong = simulate((unsigned)_i, MUTANT_NONE);
	if (wrong)
		ck_abort_msg("class %d: %s", _i, wrong);
	ck_assert_int_eq(rt_read_memstats(&m), RT_OK);
	ck_assert_uint_eq(m.mallocs, sim.mallocs);
	ck_assert_uint_eq(m.frees, sim.frees);
	ck_assert_int_eq(rt_fini(), RT_OK);
}

// can_be_seen: a run of one slot has no rest, and the lines of the 8-byte
// class go with the block they are in.
static bool can_be_seen(unsigned c, enum mutant mutant)
{
	if (mutant == MUTANT_REST_KEPT)
		return sizeclass_table[c].size <= RT_PAGE_SIZE / 2;
	return mutant != MUTANT_OLD_LINE_OF_FREE || c != 1;
}

// A debug build looks at spans at its doors and may notice first.
static void exit_noticed(const char *text, void *arg)
{
	(void)text;
	(void)arg;
	_exit(NOTICED);
}

// The loop counts only the pairs of mutant and class that can_be_seen.
static int nvisible(void)
{
	int n = 0;

	for (unsigned m = 1; m < MUTANT_COUNT; m++)
		for (unsigned c = 1; c < SIZECLASS_COUNT; c++)
			n += c % CUT == 0 && can_be_seen(c, (enum mutant)m);
	return n;
}

// visible is pair number i of them.
static unsigned visible(int i, enum mutant *mutant)
{
	for (unsigned m = 1; m < MUTANT_COUNT; m++)
		for (unsigned c = 1; c < SIZECLASS_COUNT; c++)
			if (c % CUT == 0 && can_be_seen(c, (enum mutant)m) &&
			    i-- == 0) {
				*mutant = (enum mutant)m;
				return c;
			}
	ck_abort_msg("no such pair");
}

TEST(every_mutant_of_the_rules_is_noticed, .n = nvisible(), .exit = NOTICED)
{
	enum mutant mutant;
	unsigned c = visible(_i, &mutant);

	rng_init(&sim.rng, __func__);
	if (RT_DEBUG_BUILD)
		throw_set_handler(exit_noticed, NULL);
	if (!simulate(c, mutant))
		ck_abort_msg("class %u: mutant %d lives", c, (int)mutant);
	_exit(NOTICED);
}

// ---- look-up ----

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
		// Between two others of which nothing is allocated.
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
		// Before it, pages that hold no object.
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

// set_word gives a page another word, for a moment in the life of its span.
static void set_word(uint64_t page, unsigned class, enum pageword_state state)
{
	atomic_u32_store_relaxed(&arena.words[page],
				 pageword_make(class, KIND_WORDS, state, 0));
}

// No stop waits for a thread without a P: its look may fall between any two
// steps of a span that is freed, or used anew, on another processor.
TEST(a_large_object_that_goes_while_it_is_looked_up_is_not_found)
{
	struct mspan *s;
	uintptr_t last;
	uint64_t page;

	inside_boot(false);
	s = mheap_alloc_large(self, NULL, KIND_WORDS, 3 * RT_PAGE_SIZE);
	mheap_publish_large(s);
	page = mspan_page(s);
	last = mspan_limit(s) - 1; // the word of its page stays as it is
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

// The 8-byte class has its bits in a block that the span leads to.
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

// The heap of the tests with random words: objects of many sizes, half of
// them freed.  known[] is every object that is left, by granule of 8 bytes.
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
	sweep_all(self);
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
