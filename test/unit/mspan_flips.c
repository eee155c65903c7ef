// Many flips of the lines of bits, against a ledger.
#define RT_NO_INLINE_ALLOC
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gc/mark/grey.h"
#include "runtime/spans/object.h"
#include "runtime/os/throw.h"
#include "test/unit/mspan.h"

// The driver knows these facts of the object that begins at an address.
enum { ALLOCATED = 1, COUNTED = 2, MARKED = 4 };

// A mutant undoes a part of a right action, or counts the wrong way.  It proves
// that the checks below would notice such a bug.
enum mutant {
	MUTANT_NONE,
	MUTANT_REST_KEPT,	 // a run's unused rest is not freed
	MUTANT_OLD_LINE_KEPT,	 // sweep leaves the old line of a living span
	MUTANT_OLD_LINE_OF_FREE, // sweep leaves the old line of a freed span
	MUTANT_RECOUNT_BY_HEAP,	 // recount by the heap's parity
	MUTANT_COUNT,
};

enum {
	LEDGER_BYTES = 24 << 20,
	FLIPS = RT_TSAN ? 4 : 10,
	NOTICED = 42, // exit status
};

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

// note_refill takes dead objects out of the ledger if a refill has swept their
// spans.
static void note_refill(void)
{
	for (size_t i = 0; i < sim.ndead;) {
		uintptr_t p = sim.dead[i];
		const struct mspan *s =
		    arena_span(arena_offset(p) >> RT_PAGE_SHIFT);

		if (s && atomic_u32_load_relaxed(&s->sweepgen) !=
			     epoch_sweepgen())
			i++;
		else
			note_swept(p, p + 1);
	}
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
	note_refill();
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
		mcache_retire_slot(mc, self, &mc->slots[sim.sc]);
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

// sim_check compares every span with the ledger.  It returns NULL if all is
// right.  marking is true between the first mark bit and the flip.
static const char *sim_check(bool marking)
{
	size_t nallocated = 0;
	uint64_t page = 0;
	bool begun = stopped_begin();
	const struct mspan *s;
	const char *wrong = NULL;

	while (!wrong && (s = mheap_next_span(&page)) != NULL)
		if (s->use == MSPAN_HEAP)
			wrong = check_span(s, marking, &nallocated);
	stopped_end(begun);
	if (wrong)
		return wrong;
	return nallocated == sim.nlive ? NULL : "an object is in no span";
}

// sim_check_sums compares statistics with the ledger.  All slots must be
// retired.
static const char *sim_check_sums(void)
{
	unsigned c = spanclass_size(sim.sc);
	uint64_t size = sizeclass_table[c].size;
	struct heapstats_totals t = stopped_totals();

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

// mark_some marks objects by hand and by the marker, and hands the marker words
// that point anywhere in the heap.
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

// sim_flip flips the lines, and moves objects that were not marked to the dead.
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

// restore_line undoes what sweep did to the old line, for two of the mutants.
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
			  : mspan_lineword(s, heap_line() ^ 1, w),
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
		old[w] = atomic_u64_load_relaxed(
		    mspan_lineword(s, heap_line() ^ 1, w));
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

// one_cycle allocates, marks percent of the objects, and sweeps.
static const char *one_cycle(unsigned percent)
{
	const char *wrong = allocate_some();

	if (wrong)
		return wrong;
	sim_retire();
	mcache_flush(mc, self);
	wrong = sim_check(false);
	// The library's own check must see a mutant as well.  It runs before
	// the flip, which might end the process.
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
	inside_sweep_all();
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

GROUP(flips, .timeout = 120);

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

// can_be_seen tells whether a mutant shows in a class.  A run of one slot has
// no rest.  The lines of the 8-byte class go with their bitmap8.
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

// nvisible counts the pairs of mutant and class for which can_be_seen is true.
static int nvisible(void)
{
	int n = 0;

	for (unsigned m = 1; m < MUTANT_COUNT; m++)
		for (unsigned c = 1; c < SIZECLASS_COUNT; c++)
			n += c % CUT == 0 && can_be_seen(c, (enum mutant)m);
	return n;
}

// visible returns pair number i of these.
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
