// How much the scavenger leaves, how fast it works, and when it ends.
//
// Go: TestScavenger, FuzzPIController (mgcscavenge_test.go).
#include "gc/cycle/scavgoal.h"
#include "gc/cycle/scavpace.h"

#include <inttypes.h>
#include <math.h>

#include "test/harness/suite.h"

#define MIB (UINT64_C(1) << 20)
#define PAGE UINT64_C(4096)

// must costs nothing if ok; Check notes the line of each of its assertions.
static void must(bool ok)
{
	if (!ok)
		ck_abort();
}

// ---- the pace, with work and sleep that are only counted ----

enum { STEP = 64 << 10, PAGE_NS = 10000 };

static struct {
	struct scavpace pace;
	struct scavpace_target target;
	uint64_t available, stop_at;
	uint64_t released, worked, slept;
	unsigned parked;
} sim;

static void begin(void)
{
	sim = (typeof(sim)){.target = {0.01, 1}};
	scavpace_init(&sim.pace);
}

// work does a step, at 10 us for each page.  Returns the bytes released.
static uint64_t work(void)
{
	uint64_t bytes = base_min(STEP, sim.available);
	uint64_t ns = (bytes + PAGE - 1) / PAGE * PAGE_NS;

	sim.available -= bytes;
	sim.released += bytes;
	sim.worked += ns;
	scavpace_add(&sim.pace, bytes, ns, PAGE);
	return bytes;
}

// run_batch works until the batch is full or there is no more to do.  Returns
// false if it did nothing.
static bool run_batch(void)
{
	uint64_t done = 0, bytes = STEP;

	while (bytes == STEP && sim.available > sim.stop_at &&
	       !scavpace_full(&sim.pace)) {
		bytes = work();
		done += bytes;
	}
	return done != 0;
}

// wake makes the scavenger work and sleep until it parks.
static void wake(void)
{
	while (run_batch()) {
		uint64_t ns = scavpace_sleep(&sim.pace);

		sim.slept += ns;
		scavpace_slept(&sim.pace, ns, &sim.target);
	}
	sim.parked++;
}

static void must_be(uint64_t released)
{
	double share = (double)sim.worked / (double)(sim.worked + sim.slept);

	ck_assert_uint_eq(sim.released, released);
	ck_assert_msg(fabs(share - sim.target.share) <= 0.005,
		      "share of the time: %f", share);
}

GROUP(pace, .setup = begin);

TEST(it_does_all_the_work_in_a_hundredth_of_the_time)
{
	const uint64_t total = 64 * MIB - 3 * PAGE;
	const uint64_t left = MIB - 3 * PAGE;

	sim.available = total;
	wake();
	must_be(total);
	// With nothing to do, it parks again at once.
	wake();
	must_be(total);
	ck_assert_uint_eq(sim.parked, 2);
	sim.available = total;
	wake();
	must_be(2 * total);
	// It stops where it is told to.
	sim.available = total;
	sim.stop_at = left;
	wake();
	must_be(2 * total + (total - left));
	ck_assert_uint_eq(sim.available, left);
}

TEST(a_batch_is_a_millisecond)
{
	scavpace_add(&sim.pace, STEP, SCAVPACE_BATCH_NS - 1, PAGE);
	ck_assert(!scavpace_full(&sim.pace));
	scavpace_add(&sim.pace, STEP, 1, PAGE);
	ck_assert(scavpace_full(&sim.pace));
	// To begin with, it sleeps a thousand times as long.
	ck_assert_uint_eq(scavpace_sleep(&sim.pace), 1000 * SCAVPACE_BATCH_NS);
}

TEST(without_a_clock_a_page_counts_as_10_us)
{
	scavpace_add(&sim.pace, 3 * PAGE, 0, PAGE);
	ck_assert_uint_eq(sim.pace.worked, 3 * PAGE_NS);
	scavpace_add(&sim.pace, 0, 0, PAGE);
	ck_assert_uint_eq(sim.pace.worked, 3 * PAGE_NS);
}

// The share is one of the time of all processors, so one thread may use a
// larger share of its own time.
TEST(the_share_is_of_all_processors)
{
	sim.target = (struct scavpace_target){0.05, 4};
	for (unsigned i = 0; i < 10; i++) {
		sim.available = 64 * MIB;
		wake();
	}
	sim.worked = sim.slept = 0;
	sim.available = 64 * MIB;
	wake();
	sim.slept *= 4;
	sim.slept += 3 * sim.worked;
	must_be(11 * 64 * MIB);
}

// The sleeps of a busy machine are longer than requested.
TEST(longer_sleeps_are_made_up_for)
{
	double share;

	sim.available = 256 * MIB;
	while (run_batch()) {
		uint64_t ns = scavpace_sleep(&sim.pace) + 50 * 1000 * 1000;

		sim.slept += ns;
		scavpace_slept(&sim.pace, ns, &sim.target);
	}
	share = (double)sim.worked / (double)(sim.worked + sim.slept);
	ck_assert_msg(share > 0.005, "%f", share);
}

// The integral does not wind up while the output is at a bound.
TEST(a_long_time_at_a_bound_is_soon_forgotten)
{
	struct picontroller *c = &sim.pace.controller;
	double out;
	unsigned n = 0;

	// No work at all in 1000 s: the output goes to its upper bound.
	for (unsigned i = 0; i < 100000; i++)
		must(picontroller_next(c, 0.01, 1e7, &out));
	ck_assert_double_eq(out, c->most);
	ck_assert_double_lt(c->integral, 1.1 * c->most);
	// Now it works all the time, and the output must fall before long.
	for (; out > 1 && n < 100000; n++)
		must(picontroller_next(c, -0.99, 1e7, &out));
	ck_assert_uint_lt(n, 2000);
	for (unsigned i = 0; i < 100000; i++)
		must(picontroller_next(c, -0.99, 1e7, &out));
	ck_assert_double_eq(out, c->least);
	// gain * error * reset_ns / integral_ns below the bound
	ck_assert_double_gt(c->integral, -105);
}

TEST(after_a_failure_the_first_ratio_counts_for_5_s)
{
	sim.pace.controller.integral = 0x1p1023;
	sim.pace.controller.gain = 0x1p1023;
	sim.pace.worked = 1000;
	scavpace_slept(&sim.pace, 1, &sim.target);
	ck_assert_double_eq(sim.pace.ratio, SCAVPACE_FIRST_RATIO);
	ck_assert_uint_eq(sim.pace.cooldown, SCAVPACE_COOLDOWN_NS);
	ck_assert_uint_eq(sim.pace.worked, 0);
	begin();
	sim.pace.cooldown = SCAVPACE_COOLDOWN_NS;
	sim.pace.worked = 1000;
	scavpace_slept(&sim.pace, SCAVPACE_COOLDOWN_NS - 1001, &sim.target);
	ck_assert_uint_eq(sim.pace.cooldown, 1);
	ck_assert_double_eq(sim.pace.ratio, SCAVPACE_FIRST_RATIO);
	scavpace_slept(&sim.pace, 5, &sim.target);
	ck_assert_uint_eq(sim.pace.cooldown, 0);
	// Now the controller is asked again.
	sim.pace.worked = 1000;
	scavpace_slept(&sim.pace, 1000000, &sim.target);
	ck_assert_double_gt(sim.pace.ratio, SCAVPACE_FIRST_RATIO);
}

// ---- random inputs ----

enum { ROUNDS = 100000 };

static double random_double(struct rng *rng)
{
	union {
		uint64_t bits;
		double d;
	} u = {.bits = rng_next(rng)};

	return u.d;
}

static void must_be_bounded(const struct picontroller *c, double out)
{
	must(out >= c->least && out <= c->most);
	must(isfinite(c->integral));
}

// As Go's FuzzPIController.
TEST(random_numbers_never_leave_the_bounds)
{
	struct rng rng;
	unsigned failed = 0;

	rng_init(&rng, __func__);
	for (unsigned i = 0; i < ROUNDS; i++) {
		struct picontroller *c = &sim.pace.controller;
		double out = NAN;

		if (i % 100 == 0)
			begin();
		failed += !picontroller_next(c, random_double(&rng),
					     random_double(&rng), &out);
		must_be_bounded(c, out);
	}
	ck_assert_uint_ne(failed, 0);
	ck_assert_uint_ne(failed, ROUNDS);
}

// random_batch makes a batch of up to 2^worked ns, and a sleep of up to
// 2^slept.
static void random_batch(struct rng *rng, unsigned worked, unsigned slept)
{
	uint64_t ns = rng_next(rng) >> (64 - 1 - rng_below(rng, worked));

	sim.target.nprocs = 1 + (uint32_t)rng_below(rng, 4096);
	sim.target.share = rng_below(rng, 2) == 0 ? 0.05 : 0.01;
	scavpace_add(&sim.pace, STEP, ns, PAGE);
	must(scavpace_sleep(&sim.pace) <=
	     base_max(ns, STEP / PAGE * PAGE_NS) * 1001);
	ns = rng_next(rng) >> (64 - 1 - rng_below(rng, slept));
	scavpace_slept(&sim.pace, ns, &sim.target);
	must_be_bounded(&sim.pace.controller, sim.pace.ratio);
}

TEST(no_work_makes_a_sleep_without_end)
{
	struct rng rng;

	rng_init(&rng, __func__);
	for (unsigned i = 0; i < ROUNDS; i++)
		random_batch(&rng, 40, 60);
}

// With periods of up to half a second the integral stays near the bounds.
TEST(random_work_saves_nothing_up)
{
	struct rng rng;

	rng_init(&rng, __func__);
	for (unsigned i = 0; i < ROUNDS; i++) {
		random_batch(&rng, 24, 28);
		must(sim.pace.cooldown == 0);
		must(fabs(sim.pace.controller.integral) < 1200);
	}
}

// ---- goals ----

GROUP(goals);

TEST(the_heap_keeps_what_it_will_use_and_a_tenth_more)
{
	static const struct {
		uint64_t in_use, goal, last, expect;
	} t[] = {
	    {100 * MIB, 200 * MIB, 200 * MIB, 110 * MIB},
	    {100 * MIB, 100 * MIB, 200 * MIB, 55 * MIB},
	    {100 * MIB, 400 * MIB, 200 * MIB, 220 * MIB},
	    // up to a page
	    {10 * PAGE + 1, 1, 1, 12 * PAGE},
	    {0, 200 * MIB, 100 * MIB, 0},
	    {100 * MIB, 200 * MIB, 0, SCAVGOAL_NONE},
	    // collections are off
	    {100 * MIB, PACER_NEVER, PACER_NEVER, 110 * MIB},
	    {100 * MIB, PACER_NEVER, 1, SCAVGOAL_NONE},
	    {PACER_NEVER, PACER_NEVER, 1, SCAVGOAL_NONE},
	    {PACER_NEVER, 1, 1, SCAVGOAL_NONE},
	    {100 * MIB, 1, PACER_NEVER, 0},
	};

	for (size_t i = 0; i < RT_ARRAY_LEN(t); i++)
		ck_assert_msg(
		    scavgoal_percent(t[i].in_use, t[i].goal, t[i].last, PAGE) ==
			t[i].expect,
		    "row %zu: %" PRIu64, i,
		    scavgoal_percent(t[i].in_use, t[i].goal, t[i].last, PAGE));
}

TEST(a_memory_limit_leaves_a_twentieth_free)
{
	ck_assert_uint_eq(scavgoal_limit(100 * MIB, 96 * MIB), 95 * MIB);
	ck_assert_uint_eq(scavgoal_limit(100 * MIB, 95 * MIB + 1), 95 * MIB);
	ck_assert_uint_eq(scavgoal_limit(100 * MIB, 95 * MIB), SCAVGOAL_NONE);
	ck_assert_uint_eq(scavgoal_limit(0, 1), 0);
	ck_assert_uint_eq(scavgoal_limit(PACER_NO_LIMIT, 1 << 30),
			  SCAVGOAL_NONE);
}

TEST(less_than_a_page_too_much_is_nothing)
{
	ck_assert_uint_eq(scavgoal_excess(MIB, SCAVGOAL_NONE, PAGE), 0);
	ck_assert_uint_eq(scavgoal_excess(MIB, MIB, PAGE), 0);
	ck_assert_uint_eq(scavgoal_excess(MIB + PAGE - 1, MIB, PAGE), 0);
	ck_assert_uint_eq(scavgoal_excess(MIB + PAGE, MIB, PAGE), PAGE);
	ck_assert_uint_eq(scavgoal_excess(MIB, 0, PAGE), MIB);
}

TEST(a_collection_or_a_hundredth_of_the_goal_is_activity)
{
	const struct scavgoal_seen before = {
	    .cycles = 7, .live = 50 * MIB, .goal = 100 * MIB};
	struct scavgoal_seen now = before;

	ck_assert(!scavgoal_active(&before, &now));
	now.live = 51 * MIB;
	ck_assert(!scavgoal_active(&before, &now));
	now.live++;
	ck_assert(scavgoal_active(&before, &now));
	now.live = 49 * MIB;
	ck_assert(!scavgoal_active(&before, &now));
	now.live--;
	ck_assert(scavgoal_active(&before, &now));
	now = before;
	now.cycles++;
	ck_assert(scavgoal_active(&before, &now));
	now = before;
	now.changes++;
	ck_assert(scavgoal_active(&before, &now));
	// Without a goal: a hundredth of what is live.
	now = before;
	now.goal = PACER_NEVER;
	now.live = 50 * MIB + MIB / 2;
	ck_assert(!scavgoal_active(&before, &now));
	now.live += MIB;
	ck_assert(scavgoal_active(&before, &now));
}
