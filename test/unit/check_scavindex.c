// The index of chunks that have pages to release.
#include "runtime/pages/scavindex.h"

#include <errno.h>

#include "runtime/os/oscall.h"
#include "test/harness/death.h"
#include "test/harness/fault.h"
#include "test/harness/suite.h"

enum { MAX_CHUNKS = 4096, FULL = RT_CHUNK_PAGES };

static struct scavindex idx;

// start makes an index in which all chunks are in use, as after a heap has
// filled up.
static void start(uint32_t nchunks)
{
	sysmem_init();
	ck_assert(scavindex_init(&idx, MAX_CHUNKS));
	ck_assert(scavindex_reserve(&idx, nchunks));
	scavindex_grow(&idx, nchunks);
	for (uint32_t c = 0; c < nchunks; c++)
		scavindex_alloc(&idx, c, FULL);
	ck_assert_ptr_null(scavindex_check(&idx));
}

static void finish(void)
{
	ck_assert_ptr_null(scavindex_check(&idx));
	scavindex_fini(&idx);
	ck_assert_uint_eq(gauge_load(&gauges.gc_misc_sys), 0);
	ck_assert_uint_eq(gauge_load(&gauges.mapped_ready), 0);
}

// expect_chunk searches for a chunk, which must be c, and empties it.
static void expect_chunk(bool force, uint32_t c)
{
	ck_assert_uint_eq(scavindex_find(&idx, SCAVINDEX_NONE, force), c);
	scavindex_empty(&idx, c);
}

static void expect_nothing(bool force)
{
	ck_assert_uint_eq(scavindex_find(&idx, SCAVINDEX_NONE, force),
			  SCAVINDEX_NONE);
}

GROUP(all, .timeout = 60);

TEST(empty_index_finds_nothing, .n = 2)
{
	bool force = _i;

	start(0);
	expect_nothing(force);
	scavindex_next_cycle(&idx);
	expect_nothing(force);
	finish();
}

// Fresh chunks have nothing to release: they were never touched.
TEST(fresh_chunks_are_not_eligible, .n = 2)
{
	bool force = _i;

	start(0);
	ck_assert(scavindex_reserve(&idx, 32));
	scavindex_grow(&idx, 32);
	scavindex_next_cycle(&idx);
	expect_nothing(force);
	scavindex_alloc(&idx, 31, 20);
	scavindex_next_cycle(&idx);
	expect_nothing(force);
	ck_assert_uint_eq(scavindex_in_use(&idx, 31), 20);
	finish();
}

struct mark_case {
	uint32_t nchunks;
	uint32_t freed[5]; // chunk + 1, in the order of freeing
	uint32_t found[5]; // chunk + 1, in the order of finding
};

static const struct mark_case mark_cases[] = {
    {1, {1}, {1}},
    {2, {1}, {1}},
    {2, {2}, {2}},
    {2, {1, 2}, {2, 1}},
    {32, {32}, {32}},
    {32, {1}, {1}},
    {32, {1, 17, 32}, {32, 17, 1}},
    {32, {32, 17, 1}, {32, 17, 1}},
    {4096, {4096, 1}, {4096, 1}},
};

// Chunks are found from high addresses down, whatever the order of freeing.
TEST(forced_search_finds_freed_chunks_highest_first,
     .n = RT_ARRAY_LEN(mark_cases))
{
	const struct mark_case *c = &mark_cases[_i];

	start(c->nchunks);
	for (unsigned i = 0; i < 5 && c->freed[i]; i++)
		scavindex_free(&idx, c->freed[i] - 1, FULL);
	for (unsigned i = 0; i < 5 && c->found[i]; i++)
		expect_chunk(true, c->found[i] - 1);
	expect_nothing(true);
	finish();
}

// The background search finds pages freed in a cycle only after the next cycle
// has begun.
TEST(background_search_waits_for_the_next_cycle, .n = RT_ARRAY_LEN(mark_cases))
{
	const struct mark_case *c = &mark_cases[_i];

	start(c->nchunks);
	scavindex_next_cycle(&idx);
	for (unsigned i = 0; i < 5 && c->freed[i]; i++)
		scavindex_free(&idx, c->freed[i] - 1, FULL);
	expect_nothing(false);
	scavindex_next_cycle(&idx);
	for (unsigned i = 0; i < 5 && c->found[i]; i++)
		expect_chunk(false, c->found[i] - 1);
	expect_nothing(false);
	// The next cycle has nothing new to look at.
	scavindex_next_cycle(&idx);
	ck_assert_uint_eq(idx.cursor_bg, 0);
	finish();
}

// A search below a chunk finds what is there, and a search everywhere still
// finds what is above.
TEST(search_may_begin_lower)
{
	start(8);
	scavindex_free(&idx, 2, 100);
	scavindex_free(&idx, 5, 100);
	ck_assert_uint_eq(scavindex_find(&idx, 6, true), 5);
	ck_assert_uint_eq(scavindex_find(&idx, 5, true), 2);
	ck_assert_uint_eq(scavindex_find(&idx, 2, true), SCAVINDEX_NONE);
	ck_assert_uint_eq(scavindex_find(&idx, 0, true), SCAVINDEX_NONE);
	expect_chunk(true, 5);
	expect_chunk(true, 2);
	expect_nothing(true);
	finish();
}

// A chunk is found again and again until it is said to be empty.
TEST(chunk_stays_until_it_is_emptied)
{
	start(4);
	scavindex_free(&idx, 2, 100);
	for (unsigned i = 0; i < 3; i++)
		ck_assert_uint_eq(scavindex_find(&idx, SCAVINDEX_NONE, true),
				  2);
	scavindex_empty(&idx, 2);
	expect_nothing(true);
	scavindex_free(&idx, 2, 1);
	expect_chunk(true, 2);
	finish();
}

// A free above the forced cursor is seen at once.
TEST(forced_cursor_rises_with_a_free)
{
	start(16);
	scavindex_free(&idx, 3, 1);
	expect_chunk(true, 3);
	expect_nothing(true);
	scavindex_free(&idx, 9, 1);
	scavindex_free(&idx, 5, 1);
	expect_chunk(true, 9);
	expect_chunk(true, 5);
	expect_nothing(true);
	finish();
}

// 496 pages in use are too many for the background, 495 are not.
TEST(dense_chunks_are_left_to_the_forced_search)
{
	start(3);
	scavindex_free(&idx, 2, FULL - SCAVINDEX_HIGH);
	scavindex_free(&idx, 1, FULL - SCAVINDEX_HIGH + 1);
	scavindex_next_cycle(&idx);
	expect_chunk(false, 1);
	expect_nothing(false);
	expect_chunk(true, 2);
	expect_nothing(true);
	finish();
}

// A chunk that was dense when the cycle began is spared for this cycle, even if
// it is no longer dense.  A chunk that becomes dense is spared at once.
TEST(density_of_the_last_cycle_counts_too)
{
	start(8);
	scavindex_free(&idx, 7, 100);
	scavindex_free(&idx, 6, 10);
	scavindex_free(&idx, 5, 100);
	scavindex_next_cycle(&idx);
	scavindex_free(&idx, 6, 100);
	scavindex_alloc(&idx, 5, 90);
	expect_chunk(false, 7);
	expect_nothing(false);
	scavindex_next_cycle(&idx);
	expect_chunk(false, 6);
	expect_nothing(false);
	finish();
}

// A chunk that fills up is not eligible, even without a call of
// scavindex_empty.
TEST(full_chunk_is_not_eligible)
{
	start(2);
	scavindex_free(&idx, 1, 7);
	scavindex_alloc(&idx, 1, 7);
	expect_nothing(true);
	finish();
}

TEST(counts_survive_growth)
{
	start(1);
	scavindex_free(&idx, 0, 200);
	ck_assert(scavindex_reserve(&idx, MAX_CHUNKS));
	scavindex_grow(&idx, MAX_CHUNKS);
	ck_assert_uint_eq(scavindex_in_use(&idx, 0), FULL - 200);
	ck_assert_uint_eq(scavindex_in_use(&idx, MAX_CHUNKS - 1), 0);
	expect_chunk(true, 0);
	finish();
}

TEST(refused_table_leaves_the_index_as_it_was)
{
	start(1);
	scavindex_free(&idx, 0, 3);
	fault_fail(OSCALL_COMMIT, 1, 1, ENOMEM);
	ck_assert(!scavindex_reserve(&idx, MAX_CHUNKS));
	ck_assert_uint_eq(fault_failed(OSCALL_COMMIT), 1);
	ck_assert_ptr_null(scavindex_check(&idx));
	expect_chunk(true, 0);
	ck_assert(scavindex_reserve(&idx, MAX_CHUNKS));
	finish();
}

TEST(refused_reservation_is_a_result)
{
	sysmem_init();
	fault_fail(OSCALL_RESERVE, 1, 1, ENOMEM);
	ck_assert(!scavindex_init(&idx, MAX_CHUNKS));
	ck_assert_uint_eq(gauge_load(&gauges.gc_misc_sys), 0);
}

// The index without cursors, as its header describes it.
struct model {
	unsigned in_use, last;
	uint32_t gen;
	bool idle;
};

static bool model_eligible(const struct model *m, uint32_t gen, bool force)
{
	if (!m->idle || force)
		return m->idle;
	return m->in_use < SCAVINDEX_HIGH &&
	       (m->gen != gen || m->last < SCAVINDEX_HIGH);
}

static uint32_t model_find(const struct model *m, uint32_t n, uint32_t gen,
			   bool force)
{
	while (n-- > 0)
		if (model_eligible(&m[n], gen, force))
			return n;
	return SCAVINDEX_NONE;
}

static void model_change(struct model *m, uint32_t gen, unsigned in_use)
{
	if (m->gen != gen)
		m->last = m->in_use;
	m->gen = gen;
	m->idle = in_use < m->in_use || (m->idle && in_use < FULL);
	m->in_use = in_use;
}

enum { NMODEL = 40 };

// random_change allocates or frees some pages of a chunk.
static void random_change(struct rng *r, struct model *m, uint32_t gen)
{
	uint32_t c = (uint32_t)rng_below(r, NMODEL);
	unsigned room = FULL - m[c].in_use;
	unsigned n = 1 + (unsigned)rng_below(r, 1U << rng_below(r, 10));

	if (rng_below(r, 2) && room > 0) {
		n = (unsigned)base_min(n, room);
		scavindex_alloc(&idx, c, n);
		model_change(&m[c], gen, m[c].in_use + n);
	} else if (m[c].in_use > 0) {
		n = (unsigned)base_min(n, m[c].in_use);
		scavindex_free(&idx, c, n);
		model_change(&m[c], gen, m[c].in_use - n);
	}
}

// drain empties what a search finds; every chunk must be eligible.
static unsigned drain(struct model *m, uint32_t gen, bool force,
		      unsigned at_most)
{
	unsigned wrong = 0;
	uint32_t c;

	while (at_most-- > 0 && (c = scavindex_find(&idx, SCAVINDEX_NONE,
						    force)) != SCAVINDEX_NONE) {
		wrong += !model_eligible(&m[c], gen, force);
		wrong += force && c != model_find(m, NMODEL, gen, true);
		scavindex_empty(&idx, c);
		m[c].idle = false;
	}
	return wrong;
}

// The forced search misses nothing at any time, and the background search
// misses nothing at the beginning of a cycle.
TEST(cursors_lose_no_eligible_chunk)
{
	struct model m[NMODEL];
	struct rng r;
	unsigned wrong = 0;
	uint32_t gen = 0;

	start(NMODEL);
	for (unsigned c = 0; c < NMODEL; c++)
		m[c] = (struct model){.in_use = FULL};
	rng_init(&r, "cursors_lose_no_eligible_chunk");
	for (unsigned cycle = 0; cycle < 20000; cycle++) {
		uint64_t nops = rng_below(&r, 60);

		while (nops-- > 0) {
			random_change(&r, m, gen);
			if (rng_below(&r, 8) == 0)
				wrong += drain(m, gen, rng_below(&r, 4) == 0,
					       1 + (unsigned)rng_below(&r, 3));
		}
		wrong += scavindex_find(&idx, SCAVINDEX_NONE, true) !=
			 model_find(m, NMODEL, gen, true);
		wrong += scavindex_check(&idx) != NULL;
		scavindex_next_cycle(&idx);
		gen++;
		if (rng_below(&r, 3))
			continue;
		wrong += drain(m, gen, false, NMODEL);
		wrong += model_find(m, NMODEL, gen, false) != SCAVINDEX_NONE;
	}
	ck_assert_uint_eq(wrong, 0);
	for (uint32_t c = 0; c < NMODEL; c++)
		ck_assert_uint_eq(scavindex_in_use(&idx, c), m[c].in_use);
	finish();
}

TEST(too_many_pages_are_found_out, .exit = DEATH_EXPECTED)
{
	start(1);
	death_expect("rtheap: in_use=512\n"
		     "rtheap: fatal: scavindex_alloc: chunk overflows");
	scavindex_alloc(&idx, 0, 1);
}

TEST(too_few_pages_are_found_out, .exit = DEATH_EXPECTED)
{
	start(1);
	death_expect("rtheap: in_use=0\n"
		     "rtheap: fatal: scavindex_free: chunk underflows");
	scavindex_free(&idx, 0, FULL);
	scavindex_free(&idx, 0, 1);
}

TEST(growth_without_a_table_is_found_out, .exit = DEATH_EXPECTED)
{
	start(1);
	death_expect("rtheap: nchunks=4096\n"
		     "rtheap: fatal: scavindex_grow: no room");
	scavindex_grow(&idx, MAX_CHUNKS);
}
