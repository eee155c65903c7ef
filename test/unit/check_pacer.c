// When a collection is due, as arithmetic.
#include "gc/cycle/pacer.h"

#include <limits.h>

#include "test/harness/stopped.h"
#include "test/harness/suite.h"

#define MIB (UINT64_C(1) << 20)

static uint64_t goal(int percent, uint64_t headroom, uint64_t marked)
{
	struct pacer_rule rule = {percent, 4 * MIB, headroom, 0, 0};
	struct pacer_found found = {.heap_marked = marked};

	return pacer_goal(&rule, &found);
}

GROUP(arithmetic);

// Go's rule: live x (1 + percent / 100), at least 4 MiB x percent / 100.
TEST(goal_without_headroom_is_gos)
{
	ck_assert_uint_eq(goal(100, 0, 100 * MIB), 200 * MIB);
	ck_assert_uint_eq(goal(50, 0, 100 * MIB), 150 * MIB);
	ck_assert_uint_eq(goal(400, 0, 100 * MIB), 500 * MIB);
	ck_assert_uint_eq(goal(1, 0, 100 * MIB), 101 * MIB);
	ck_assert_uint_eq(goal(0, 0, 100 * MIB), 100 * MIB);
	ck_assert_uint_eq(goal(100, 0, 2 * MIB), 4 * MIB);
	ck_assert_uint_eq(goal(100, 0, 2 * MIB - 1), 4 * MIB);
	ck_assert_uint_eq(goal(100, 0, 2 * MIB + 1), 4 * MIB + 2);
	ck_assert_uint_eq(goal(100, 0, 0), 4 * MIB);
	ck_assert_uint_eq(goal(50, 0, 0), 2 * MIB);
	ck_assert_uint_eq(goal(300, 0, 0), 12 * MIB);
	ck_assert_uint_eq(goal(0, 0, 0), 0);
}

// live + max(live x percent / 100, min(headroom, 8 x live + 4 MiB))
TEST(headroom_gives_small_heaps_room)
{
	ck_assert_uint_eq(goal(100, 24 * MIB, 0), 4 * MIB);
	ck_assert_uint_eq(goal(100, 24 * MIB, MIB), 13 * MIB);
	ck_assert_uint_eq(goal(100, 24 * MIB, MIB * 5 / 2), 26 * MIB + MIB / 2);
	ck_assert_uint_eq(goal(100, 24 * MIB, 3 * MIB), 27 * MIB);
	ck_assert_uint_eq(goal(100, 24 * MIB, 24 * MIB), 48 * MIB);
	ck_assert_uint_eq(goal(100, 24 * MIB, 25 * MIB), 50 * MIB);
	ck_assert_uint_eq(goal(10, 24 * MIB, 100 * MIB), 124 * MIB);
	ck_assert_uint_eq(goal(0, 24 * MIB, 100 * MIB), 124 * MIB);
	ck_assert_uint_eq(goal(300, 24 * MIB, 0), 12 * MIB);
	ck_assert_uint_eq(goal(100, MIB, 0), 4 * MIB);
	ck_assert_uint_eq(goal(100, MIB, 10 * MIB), 20 * MIB);
	ck_assert_uint_eq(goal(5, MIB, 10 * MIB), 11 * MIB);
}

// ---- any rule, and anything found ----

static uint64_t random_bytes(struct rng *rng, uint64_t most)
{
	return rng_next(rng) & most;
}

static struct pacer_rule random_rule(struct rng *rng, uint64_t most)
{
	return (struct pacer_rule){
	    .percent = rng_below(rng, 8) == 0
			   ? (int64_t)rng_below(rng, INT_MAX + UINT64_C(1))
			   : (int64_t)rng_below(rng, 500) - 10,
	    .heap_min = random_bytes(rng, most),
	    .headroom = rng_below(rng, 3) * random_bytes(rng, most),
	    .limit = rng_below(rng, 2) == 0 ? PACER_NO_LIMIT
					    : random_bytes(rng, most),
	    .heap_max = rng_below(rng, 2) * random_bytes(rng, most),
	};
}

static struct pacer_found random_found(struct rng *rng, uint64_t most)
{
	return (struct pacer_found){
	    .heap_marked = random_bytes(rng, most),
	    .stack_scan = random_bytes(rng, most),
	    .globals_scan = random_bytes(rng, most),
	    .held = random_bytes(rng, most),
	    .external = rng_below(rng, 2) * random_bytes(rng, most),
	    .memory = {random_bytes(rng, most), random_bytes(rng, most),
		       random_bytes(rng, most), random_bytes(rng, most)},
	    .forced = rng_below(rng, 2),
	    .unswept = rng_below(rng, 2),
	};
}

// unexplained returns NULL if the terms give the goal, otherwise what is wrong.
static const char *unexplained(const struct pacer_rule *rule,
			       const struct pacer_found *found, uint64_t before)
{
	struct pacer_terms t = pacer_explain(rule, found, before);
	uint64_t goal = base_max(base_max(t.percent, t.headroom), t.minimum);

	if (goal != pacer_goal(rule, found))
		return "the formula";
	goal = base_max(goal, t.before);
	if (goal != pacer_next(rule, found, before))
		return "the goal before";
	if (base_min(goal, t.limit) != pacer_limited(rule, found, goal))
		return "the limits";
	if (rule->limit == PACER_NO_LIMIT && rule->heap_max == 0 &&
	    t.limit != PACER_NEVER)
		return "no limit";
	return NULL;
}

typedef unsigned __int128 wide;

static uint64_t saturated(wide n)
{
	return n < PACER_NEVER ? (uint64_t)n : PACER_NEVER;
}

static wide exact_percent(wide n, int64_t percent)
{
	return n * (wide)percent / 100;
}

// misplaced returns NULL if the goal is at least what lives, and if no sum or
// product has wrapped; otherwise what is wrong.
static const char *misplaced(const struct pacer_rule *rule,
			     const struct pacer_found *found, uint64_t before)
{
	wide live = (wide)found->heap_marked + found->external;
	wide all = live + found->stack_scan + found->globals_scan;
	struct pacer_terms t = pacer_explain(rule, found, before);
	uint64_t goal = pacer_next(rule, found, before);

	if (goal < saturated(live))
		return "the goal is below what lives";
	if (pacer_limited(rule, found, goal) < saturated(live))
		return "the lowered goal is below what lives";
	if (rule->percent < 0)
		return goal == PACER_NEVER ? NULL : "off is not never";
	if (t.minimum !=
	    saturated(exact_percent(rule->heap_min, rule->percent)))
		return "the minimum";
	// Roots that do not fit in 64 bits count as less.
	if (all < PACER_NEVER &&
	    t.percent != saturated(live + exact_percent(all, rule->percent)))
		return "the percentage";
	return NULL;
}

// Whatever the rule is, and whatever was found, the terms give the goal, which
// is never below what lives.  In half of the rounds, the previous goal is the
// result of the last round.
TEST(any_goal_is_explained_and_in_range)
{
	const char *wrong = NULL;
	struct rng rng;
	uint64_t goal = 0;

	rng_init(&rng, "any_goal_is_explained_and_in_range");
	for (unsigned i = 0; i < 100000 && !wrong; i++) {
		unsigned bits = 1 + (unsigned)rng_below(&rng, 64);
		uint64_t most = UINT64_MAX >> (64 - bits);
		struct pacer_rule rule = random_rule(&rng, most);
		struct pacer_found found = random_found(&rng, most);
		uint64_t before =
		    rng_below(&rng, 2) == 0 ? goal : random_bytes(&rng, most);

		wrong = unexplained(&rule, &found, before);
		if (!wrong)
			wrong = misplaced(&rule, &found, before);
		goal = pacer_limited(&rule, &found,
				     pacer_next(&rule, &found, before));
	}
	ck_assert_msg(!wrong, "%s", wrong);
}

// If several terms are equal, the first of them is named.
TEST(the_term_that_is_the_goal)
{
	static const struct {
		struct pacer_terms t;
		enum rt_bound bound;
	} cases[] = {
	    {{7, 0, 0, 0, 0}, RT_BOUND_LIMIT},
	    {{10, 10, 10, 10, PACER_NEVER}, RT_BOUND_PERCENT},
	    {{1, 20, 20, 20, 20}, RT_BOUND_HEADROOM},
	    {{1, 2, 3, 3, 4}, RT_BOUND_MINIMUM},
	    {{1, 2, 3, 5, PACER_NEVER}, RT_BOUND_BEFORE},
	    {{1, 2, 3, 5, 4}, RT_BOUND_LIMIT},
	    {{PACER_NEVER, PACER_NEVER, PACER_NEVER, 0, PACER_NEVER},
	     RT_BOUND_PERCENT},
	};

	for (unsigned i = 0; i < RT_ARRAY_LEN(cases); i++)
		ck_assert_int_eq(pacer_bound(&cases[i].t), cases[i].bound);
}

// Stacks and root ranges count for the growth, not for what lives.
TEST(roots_count_for_growth)
{
	struct pacer_rule rule = {100, 4 * MIB, 0, 0, 0};
	struct pacer_found found = {.heap_marked = 100 * MIB,
				    .stack_scan = 10 * MIB,
				    .globals_scan = 5 * MIB};

	ck_assert_uint_eq(pacer_goal(&rule, &found), 215 * MIB);
	rule.percent = 50;
	ck_assert_uint_eq(pacer_goal(&rule, &found), 100 * MIB + 115 * MIB / 2);
	rule.percent = 0;
	ck_assert_uint_eq(pacer_goal(&rule, &found), 100 * MIB);
}

TEST(off_is_never)
{
	ck_assert_uint_eq(goal(-1, 0, 0), PACER_NEVER);
	ck_assert_uint_eq(goal(INT_MIN, 24 * MIB, 100 * MIB), PACER_NEVER);
}

TEST(sums_saturate)
{
	struct pacer_rule rule = {INT_MAX, UINT64_MAX, UINT64_MAX, 0, 0};
	struct pacer_found found = {.heap_marked = UINT64_MAX,
				    .stack_scan = UINT64_MAX,
				    .globals_scan = UINT64_MAX};

	ck_assert_uint_eq(pacer_goal(&rule, &found), PACER_NEVER);
	ck_assert_uint_eq(goal(INT_MAX, 0, UINT64_MAX), PACER_NEVER);
	ck_assert_uint_eq(goal(100, 0, UINT64_MAX / 2 + 1), PACER_NEVER);
	ck_assert_uint_eq(goal(100, 0, UINT64_MAX / 2), UINT64_MAX - 1);
	ck_assert_uint_eq(goal(1, 0, UINT64_MAX), PACER_NEVER);
	ck_assert_uint_eq(goal(0, UINT64_MAX, UINT64_MAX), PACER_NEVER);
	ck_assert_uint_eq(goal(0, UINT64_MAX, MIB), 13 * MIB);
	// The product does not wrap on the way.
	ck_assert_uint_eq(
	    goal(1000, 0, UINT64_MAX / 100),
	    UINT64_MAX / 100 +
		(uint64_t)((unsigned __int128)(UINT64_MAX / 100) * 10));
	ck_assert_uint_eq(goal(100, 0, UINT64_C(1) << 60), UINT64_C(1) << 61);
}

// Memory that objects own outside the heap counts as live.
TEST(external_bytes_are_live)
{
	struct pacer_rule rule = {100, 4 * MIB, 0, 0, 0};
	struct pacer_found found = {.heap_marked = 10 * MIB,
				    .external = 90 * MIB};

	ck_assert_uint_eq(pacer_goal(&rule, &found), 200 * MIB);
	rule.headroom = 200 * MIB;
	ck_assert_uint_eq(pacer_goal(&rule, &found), 300 * MIB);
	rule.headroom = 20 * MIB;
	found.held = 20 * MIB;
	ck_assert_uint_eq(pacer_next(&rule, &found, 1000 * MIB), 200 * MIB);
	found.held = 120 * MIB;
	ck_assert_uint_eq(pacer_next(&rule, &found, 1000 * MIB), 210 * MIB);
	found.external = UINT64_MAX;
	ck_assert_uint_eq(pacer_goal(&rule, &found), PACER_NEVER);
}

// ---- what is held ----

static const struct pacer_rule usual = {100, 4 * MIB, 20 * MIB, 0, 0};

static uint64_t next_goal(uint64_t marked, uint64_t held, uint64_t before)
{
	struct pacer_found found = {.heap_marked = marked, .held = held};

	return pacer_next(&usual, &found, before);
}

// The next goal keeps seven eighths of what the old one had above pacer_goal,
// but this does not raise it above the memory held.
TEST(goal_falls_in_steps_while_memory_is_held)
{
	ck_assert_uint_eq(next_goal(10 * MIB, 200 * MIB, 110 * MIB), 100 * MIB);
	ck_assert_uint_eq(next_goal(10 * MIB, 60 * MIB, 110 * MIB), 60 * MIB);
	ck_assert_uint_eq(next_goal(10 * MIB, 20 * MIB, 110 * MIB), 30 * MIB);
	ck_assert_uint_eq(next_goal(10 * MIB, 200 * MIB, 30 * MIB), 30 * MIB);
	ck_assert_uint_eq(next_goal(50 * MIB, 900 * MIB, 30 * MIB), 100 * MIB);
	ck_assert_uint_eq(next_goal(10 * MIB, 50 * MIB, PACER_NEVER), 50 * MIB);
	// The last bytes do not stay.
	ck_assert_uint_eq(next_goal(10 * MIB, 60 * MIB, 30 * MIB + 7),
			  30 * MIB);
	ck_assert_uint_eq(next_goal(10 * MIB, 60 * MIB, 30 * MIB + 8),
			  30 * MIB + 7);
}

TEST(goal_falls_at_once_when_told)
{
	struct pacer_rule rule = usual;
	struct pacer_found found = {
	    .heap_marked = 10 * MIB, .held = 200 * MIB, .forced = true};

	ck_assert_uint_eq(pacer_next(&rule, &found, 110 * MIB), 30 * MIB);
	found.forced = false;
	rule.headroom = 0;
	ck_assert_uint_eq(pacer_next(&rule, &found, 110 * MIB), 20 * MIB);
	rule = usual;
	rule.percent = -1;
	ck_assert_uint_eq(pacer_next(&rule, &found, 110 * MIB), PACER_NEVER);
}

// A heap that uses no page twice is the worst case: each cycle holds more.
// Whatever lives, the goal is never above the highest that the formula gave.
TEST(held_memory_never_raises_the_goal)
{
	uint64_t seed = 1, before = 4 * MIB, held = 4 * MIB, highest = before;

	for (unsigned i = 0; i < 100000; i++) {
		uint64_t marked;

		seed = seed * UINT64_C(6364136223846793005) + 1;
		marked = ((seed >> 40) * MIB >> 18) >> (seed >> 33 & 7);
		highest = base_max(highest, goal(100, 20 * MIB, marked));
		before = next_goal(marked, held, before);
		ck_assert_uint_le(before, highest);
		ck_assert_uint_ge(before, goal(100, 20 * MIB, marked));
		held += before - marked;
	}
}

// Live memory rises to 1 GiB and falls to 1 MiB, on a heap that releases
// nothing.  The goal comes down to the formula, to the byte, and everything
// that is allocated on the way is at most eight times the excess of the goal.
TEST(goal_converges_after_a_drop)
{
	uint64_t least = goal(100, 20 * MIB, MIB);
	uint64_t before = next_goal(1024 * MIB, 0, 0);
	uint64_t excess = before - least, sum = 0;
	unsigned cycles = 0;

	ck_assert_uint_eq(before, 2048 * MIB);
	for (; before > least; cycles++) {
		uint64_t after = next_goal(MIB, 1 << 30, before);

		ck_assert_uint_lt(after, before);
		before = after;
		sum += after - least;
		ck_assert_uint_lt(cycles, 200);
	}
	ck_assert_uint_eq(before, least);
	ck_assert_uint_le(sum, 8 * excess);
}

// With a scavenger that releases what a cycle did not use, less is held after
// each cycle: resident memory falls with the goal.
TEST(a_scavenger_lowers_what_is_held)
{
	uint64_t least = goal(100, 20 * MIB, MIB);
	uint64_t before = 2048 * MIB, resident = before;

	for (unsigned i = 0; i < 60; i++) {
		before = next_goal(MIB, resident, before);
		ck_assert_uint_lt(before, resident);
		resident = before; // the rest was not touched
	}
	ck_assert_uint_lt(resident, least + MIB);
}

// 2^60 bytes times 1600 / 100 are 2^64, which would be no growth if they
// wrapped.
TEST(a_growth_that_would_wrap_is_never_reached)
{
	const struct pacer_rule rule = {.percent = 1600};
	const struct pacer_found found = {.heap_marked = UINT64_C(1) << 60};

	ck_assert_uint_eq(pacer_goal(&rule, &found), PACER_NEVER);
}

// ---- the memory limit ----

static uint64_t limit_goal(uint64_t limit, struct pacer_memory m,
			   uint64_t marked)
{
	return pacer_limit_goal(limit, &m, marked);
}

// Go's memoryLimitHeapGoal: what is mapped beside objects and free pages is not
// the heap's, and 3 percent are kept.
TEST(limit_leaves_what_is_beside_the_heap)
{
	ck_assert_uint_eq(limit_goal(1000 * MIB, (struct pacer_memory){0}, 0),
			  1000 * MIB - 1000 * MIB / 100 * 3);
	ck_assert_uint_eq(limit_goal(1100 * MIB,
				     (struct pacer_memory){600 * MIB, 200 * MIB,
							   300 * MIB, 0},
				     0),
			  1000 * MIB - 1000 * MIB / 100 * 3);
	// The bytes by which memory is over the limit count twice.
	ck_assert_uint_eq(
	    limit_goal(1000 * MIB,
		       (struct pacer_memory){1100 * MIB, 0, 1100 * MIB, 0}, 0),
	    900 * MIB - 900 * MIB / 100 * 3);
	ck_assert_uint_eq(limit_goal(20 * MIB, (struct pacer_memory){0}, 0),
			  19 * MIB);
}

TEST(limit_that_cannot_be_kept_is_what_lives)
{
	struct pacer_memory m = {100 * MIB, 0, 50 * MIB, 0};

	ck_assert_uint_eq(limit_goal(0, m, 7), 7);
	ck_assert_uint_eq(limit_goal(50 * MIB, m, 7), 7);
	ck_assert_uint_eq(limit_goal(75 * MIB, m, 7), 7);
	ck_assert_uint_eq(limit_goal(75 * MIB + 1, m, 7), MIB);
	ck_assert_uint_eq(limit_goal(1000 * MIB, m, 990 * MIB), 990 * MIB);
	ck_assert_uint_eq(
	    limit_goal(UINT64_MAX,
		       (struct pacer_memory){UINT64_MAX, UINT64_MAX, 1, 0}, 3),
	    UINT64_MAX - UINT64_MAX / 100 * 3);
}

// pacer_limited returns the lower of a goal and the goal of the limit.  The
// goal of the limit leaves room for at least 1 MiB, and external bytes do not
// count for it.
TEST(limit_lowers_the_goal)
{
	struct pacer_rule rule = {100, 4 * MIB, 0, 200 * MIB, 0};
	struct pacer_found found = {
	    .heap_marked = 100 * MIB,
	    .memory = {150 * MIB, 20 * MIB, 100 * MIB, 0},
	};
	uint64_t fits = 170 * MIB - 170 * MIB / 100 * 3;

	ck_assert_uint_eq(pacer_limited(&rule, &found, 200 * MIB), fits);
	ck_assert_uint_eq(pacer_limited(&rule, &found, 150 * MIB), 150 * MIB);
	ck_assert_uint_eq(pacer_limited(&rule, &found, PACER_NEVER), fits);
	found.external = 7 * MIB;
	ck_assert_uint_eq(pacer_limited(&rule, &found, PACER_NEVER),
			  fits + 7 * MIB);
	rule.limit = 0;
	ck_assert_uint_eq(pacer_limited(&rule, &found, PACER_NEVER), 108 * MIB);
	rule.limit = PACER_NO_LIMIT;
	ck_assert_uint_eq(pacer_limited(&rule, &found, PACER_NEVER),
			  PACER_NEVER);
}

// The limit of the heap counts the pages in use, and neither free pages nor
// tables.  If there are two limits, the lower goal counts.
TEST(limit_of_the_heap_lowers_the_goal)
{
	struct pacer_rule rule = {100, 4 * MIB, 0, PACER_NO_LIMIT, 200 * MIB};
	struct pacer_found found = {
	    .heap_marked = 100 * MIB,
	    .memory = {330 * MIB, 100 * MIB, 100 * MIB, 130 * MIB},
	};
	uint64_t fits = 170 * MIB - 170 * MIB / 100 * 3;

	ck_assert_uint_eq(pacer_limited(&rule, &found, PACER_NEVER), fits);
	ck_assert_uint_eq(pacer_limited(&rule, &found, 150 * MIB), 150 * MIB);
	found.external = 7 * MIB;
	ck_assert_uint_eq(pacer_limited(&rule, &found, PACER_NEVER),
			  fits + 7 * MIB);
	rule.limit = 340 * MIB; // leaves 210 for objects
	ck_assert_uint_eq(pacer_limited(&rule, &found, PACER_NEVER),
			  fits + 7 * MIB);
	rule.limit = 280 * MIB;
	ck_assert_uint_eq(pacer_limited(&rule, &found, PACER_NEVER), 108 * MIB);
	rule.limit = PACER_NO_LIMIT;
	rule.heap_max = 120 * MIB; // less than what is in use
	ck_assert_uint_eq(pacer_limited(&rule, &found, PACER_NEVER), 108 * MIB);
	rule.heap_max = 1;
	ck_assert_uint_eq(pacer_limited(&rule, &found, PACER_NEVER), 108 * MIB);
	rule.heap_max = 0;
	ck_assert_uint_eq(pacer_limited(&rule, &found, PACER_NEVER),
			  PACER_NEVER);
}

// ---- the limiter ----

static void begin_limited(uint64_t limit, uint64_t marked)
{
	struct pacer_rule rule = {-1, 4 * MIB, 0, limit, 0};
	struct pacer_found found = {.heap_marked = marked};
	struct limiter limiter;

	limiter_init(&limiter, 50, 1);
	pacer_init(&rule, &found, &limiter);
}

static void collected(uint64_t marked, uint64_t begin, uint64_t end)
{
	struct pacer_found found = {
	    .heap_marked = marked,
	    .memory = {marked, 0, marked, 0},
	};
	struct pacer_cpu cpu = {begin, end};
	bool begun = stopped_begin();

	pacer_collected(&found);
	pacer_account(&cpu);
	stopped_end(begun);
}

#define SECOND UINT64_C(1000000000)

GROUP(limiter);

// While the bucket is full, a collection that is due only for the limit waits,
// 1 MiB at a time, until the CPU time of the program has drained some of the
// bucket.
TEST(collections_for_the_limit_wait)
{
	begin_limited(100 * MIB, 0);
	collected(200 * MIB, 0, 3 * SECOND); // two of them are a debt
	ck_assert_uint_eq(atomic_u64_load_relaxed(&pacer.goal), 201 * MIB);
	ck_assert(pacer_put_off(201 * MIB, 4 * SECOND));
	ck_assert_uint_eq(atomic_u64_load_relaxed(&pacer.goal), 202 * MIB);
	ck_assert(pacer_put_off(203 * MIB, 5 * SECOND));
	ck_assert_uint_eq(atomic_u64_load_relaxed(&pacer.goal), 204 * MIB);
	ck_assert(!pacer_put_off(204 * MIB, 5 * SECOND + 1));
	ck_assert_uint_eq(atomic_u64_load_relaxed(&pacer.goal), 204 * MIB);
}

TEST(collections_for_the_goal_do_not_wait)
{
	begin_limited(100 * MIB, 0);
	ck_assert_int_eq(pacer_set_percent(100), -1);
	collected(200 * MIB, 0, 10 * SECOND);
	ck_assert_uint_eq(atomic_u64_load_relaxed(&pacer.goal), 201 * MIB);
	ck_assert(pacer_put_off(398 * MIB, 10 * SECOND));
	ck_assert(pacer_put_off(399 * MIB + 1, 10 * SECOND));
	ck_assert_uint_eq(atomic_u64_load_relaxed(&pacer.goal), 400 * MIB);
	ck_assert(!pacer_put_off(400 * MIB, 10 * SECOND));
	// Without a limit nothing waits.
	ck_assert_uint_eq(pacer_set_limit(PACER_NO_LIMIT), 100 * MIB);
	ck_assert(!pacer_put_off(400 * MIB, 10 * SECOND));
}

// The CPU time of releasing pages counts as a collection's, and only once.
TEST(releasing_for_the_limit_fills_the_bucket)
{
	begin_limited(100 * MIB, 0);
	collected(200 * MIB, 0, SECOND / 2);
	ck_assert(!pacer_limits(SECOND / 2));
	pacer_note_release(SECOND / 4);
	ck_assert(!pacer_limits(SECOND * 3 / 4));
	ck_assert_uint_eq(pacer.limiter.fill, SECOND * 3 / 4);
	ck_assert(!pacer_limits(SECOND));
	ck_assert_uint_eq(pacer.limiter.fill, SECOND / 2);
	pacer_note_release(SECOND / 2);
	ck_assert(pacer_limits(SECOND + SECOND / 2));
	ck_assert(pacer_put_off(201 * MIB, SECOND + SECOND / 2));
	ck_assert(!pacer_limits(0)); // no clock
	ck_assert(pacer_limits(SECOND + SECOND / 2));
	ck_assert(!pacer_limits(2 * SECOND));
}

// One thread finds that a collection is due.  Another changes the rule before
// the first one puts the collection off.
TEST(what_is_put_off_lowers_no_goal)
{
	begin_limited(100 * MIB, 0);
	collected(200 * MIB, 0, 3 * SECOND);
	pacer_set_limit(PACER_NO_LIMIT);
	ck_assert_uint_eq(atomic_u64_load_relaxed(&pacer.goal), PACER_NEVER);
	pacer_put_off(201 * MIB, 4 * SECOND);
	ck_assert_uint_eq(atomic_u64_load_relaxed(&pacer.goal), PACER_NEVER);
	ck_assert_ptr_null(pacer_check(&pacer));
}

// A clock that was refused when a collection began makes no debt.
TEST(a_refused_clock_is_no_collection)
{
	begin_limited(100 * MIB, 0);
	collected(200 * MIB, 100 * SECOND, 100 * SECOND);
	collected(200 * MIB, 0, 110 * SECOND);
	ck_assert_uint_eq(pacer.limiter.fill, 0);
}

// The host is told when the heap begins to pass a limit, and not again.
TEST(a_passed_limit_is_told_once)
{
	begin_limited(100 * MIB, 0);
	collected(100 * MIB, 0, 0);
	ck_assert(!pacer_warning_due() && !pacer_take_warning());
	collected(101 * MIB, 0, 0);
	ck_assert(pacer_warning_due() && pacer_take_warning());
	collected(101 * MIB, 0, 0);
	ck_assert(!pacer_take_warning());
	collected(90 * MIB, 0, 0);
	collected(101 * MIB, 0, 0);
	ck_assert(pacer_take_warning());
	pacer_set_limit(50 * MIB);
	collected(101 * MIB, 0, 0);
	ck_assert(pacer_take_warning());
	// A limit that is lifted first is never told.
	pacer_set_limit(60 * MIB);
	collected(101 * MIB, 0, 0);
	pacer_set_limit(PACER_NO_LIMIT);
	ck_assert(!pacer_take_warning());
	collected(101 * MIB, 0, 0);
	ck_assert(!pacer_take_warning());
}
