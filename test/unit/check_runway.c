// The trigger and the assists of a marking that runs beside the threads.
//
// Go: TestGcPacer (mgcpacer_test.go).  The cases and their bounds are the same.
#include "test/harness/suite.h"

#include <math.h>

#include "gc/cycle/pacer.h"
#include "gc/cycle/runway.h"

#define KIB UINT64_C(1024)
#define MIB (UINT64_C(1) << 20)

// ---- a simulation of cycles ----

enum {
	CORES = 8,
	CYCLES_MAX = 100,
	STEP_NS = 500000, // between two revisions
	FIRST_HEAP = 256 << 10,
	SWEEP_DISTANCE = 1 << 20,
};

// A stream returns its number for cycle n, from 0 on.
typedef double stream(unsigned n);

struct scenario {
	const char *name;
	stream *alloc;	// KiB a processor allocates in a ms
	stream *scan;	// KiB a processor marks in a ms
	stream *growth; // factor of what lives, from one cycle to the next
	stream *frac;	// scanned part of what lives
	stream *stacks; // bytes
	uint64_t globals;
	uint64_t limit; // 0: none
	int percent;
	unsigned length;
	void (*check)(unsigned n);
};

// The results of all cycles.  The first is cycle 1.
static struct result {
	uint64_t marked, trigger, peak, goal;
	double use; // of the processors, by marking
} results[CYCLES_MAX + 1];

static const struct scenario *scenario;

struct simulation {
	struct runway runway;
	struct runway_heap heap;
	uint64_t heap_scan;  // bytes to scan, of what is live
	uint64_t last_scan;  // bytes of heap that the last cycle scanned
	uint64_t last_stack; // bytes of stacks
	uint64_t globals, max_stacks;
	uint64_t black; // bytes that the last cycle allocated while it marked
};

static uint64_t sum_work(uint64_t a, uint64_t b, uint64_t c)
{
	return a + b + c;
}

// tell writes what the runway is told into s->heap.
static void tell(struct simulation *s)
{
	const struct scenario *c = scenario;
	struct pacer_rule rule = {c->percent, 4 * MIB, 0, 0, 0};
	struct pacer_found found = {.heap_marked = s->heap.marked,
				    .stack_scan = s->last_stack,
				    .globals_scan = s->globals};
	struct pacer_memory none = {0};
	uint64_t limited =
	    c->limit ? pacer_limit_goal(c->limit, &none, s->heap.marked)
		     : PACER_NEVER;

	s->heap.goal = pacer_goal(&rule, &found);
	s->heap.limited = limited < s->heap.goal;
	s->heap.goal = base_min(s->heap.goal, limited);
	s->heap.percent = c->percent;
	s->heap.expected = sum_work(s->last_scan, s->last_stack, s->globals);
	s->heap.most = sum_work(s->heap_scan, s->max_stacks, s->globals);
}

static void start_cycle(struct simulation *s, unsigned n)
{
	double frac = scenario->frac(n);
	uint64_t trigger;

	tell(s);
	trigger = runway_trigger(&s->runway, &s->heap);
	ck_assert_uint_ge(trigger, s->heap.marked);
	s->max_stacks = (uint64_t)scenario->stacks(n);
	s->globals = scenario->globals;
	s->heap.live = trigger;
	s->heap.done = 0;
	s->heap_scan += (uint64_t)((double)(trigger - s->heap.marked) * frac);
	tell(s);
	runway_begin(&s->runway, &s->heap);
}

// scan takes up to n bytes of work from *left, and returns how many it took.
static uint64_t scan(uint64_t *left, uint64_t n)
{
	uint64_t done = base_min(*left, n);

	*left -= done;
	return done;
}

static void run_cycle(struct simulation *s, unsigned n)
{
	double alloc = scenario->alloc(n), rate = scenario->scan(n);
	double frac = scenario->frac(n);
	double per_step = 1024.0 * STEP_NS / 1e6 * CORES;
	uint64_t next = n == 0
			    ? FIRST_HEAP
			    : (uint64_t)((double)(s->heap.marked - s->black) *
					 scenario->growth(n));
	uint64_t heap_work = (uint64_t)((double)next * frac);
	uint64_t left, black = 0;
	double assist = 0, elapsed = 0;
	struct runway_times times;
	struct result *r = &results[n + 1];

	start_cycle(s, n);
	left = sum_work(heap_work, (uint64_t)scenario->stacks(n),
			scenario->globals);
	while (left > 0) {
		double ratio = s->runway.work_per_byte;
		double use = ratio * alloc / (ratio * alloc + rate);
		uint64_t scanned, allocated, done;
		double ns = STEP_NS;

		use = fmax(use, RUNWAY_BACKGROUND);
		scanned = (uint64_t)(rate * per_step * use);
		allocated = (uint64_t)(alloc * per_step * (1 - use));
		done = scan(&left, scanned);
		if (done < scanned) {
			ns = (double)done * STEP_NS / (rate * per_step * use);
			allocated = (uint64_t)(alloc * per_step * ns / STEP_NS *
					       (1 - use));
		}
		s->heap.live += allocated;
		s->heap_scan += (uint64_t)((double)allocated * frac);
		s->heap.done += done;
		tell(s);
		runway_revise(&s->runway, &s->heap);
		assist += ns * CORES * (use - RUNWAY_BACKGROUND);
		elapsed += ns;
		black += allocated;
	}
	*r = (struct result){
	    .marked = s->heap.marked,
	    .trigger = s->runway.triggered,
	    .peak = s->heap.live,
	    .goal = runway_goal(&s->runway, &s->heap),
	    .use = assist / (elapsed * CORES) + RUNWAY_BACKGROUND,
	};
	scenario->check(n + 1);
	times = (struct runway_times){.capacity = (uint64_t)(elapsed * CORES),
				      .assist = (uint64_t)assist};
	runway_end(&s->runway, &s->heap, &times);
	s->heap.marked = s->heap.live = next + black;
	s->last_scan = s->heap_scan = heap_work;
	s->last_stack = (uint64_t)scenario->stacks(n);
	s->black = black;
	s->heap.least = s->heap.live + SWEEP_DISTANCE;
}

static void simulate(const struct scenario *c)
{
	struct simulation s = {0};

	scenario = c;
	runway_init(&s.runway);
	for (unsigned n = 0; n < c->length; n++)
		run_cycle(&s, n);
}

// ---- streams ----

static double ramp(double height, double length, unsigned n)
{
	return height * fmin(n, length) / length;
}

// jitter returns a number from -amplitude to amplitude.
static double jitter(double amplitude, unsigned n, uint64_t seed)
{
	struct rng rng = {.state = (seed << 20) + n};

	return amplitude * ((double)(rng_next(&rng) >> 11) / 0x1p52 - 1);
}

#define STREAM(name, value)                                                    \
	static double name(unsigned n)                                         \
	{                                                                      \
		(void)n;                                                       \
		return value;                                                  \
	}

STREAM(always_1, 1)
STREAM(always_33, 33)
STREAM(always_132, 132)
STREAM(always_128, 128)
STREAM(always_1024, 1024)
STREAM(always_2048, 2048)
STREAM(always_8192, 8192)
STREAM(hundredth, 0.01)
STREAM(step_66, 33 + (n > 50 ? 66 : 0))
STREAM(step_330, 33 + (n > 50 ? 330 : 0))
STREAM(step_frac, 0.2 + (n > 50 ? 0.5 : 0))
STREAM(around_165, 165 + jitter(7, n, 0x53))
STREAM(waves, 67 + 13 * sin(n % 8 / 8.0 * 2 * 3.14159265358979))
STREAM(around_132, 132 + jitter(13, n, 0xf))
STREAM(around_330, 330 + jitter(33, n, 0))
STREAM(settling, 2 - ramp(1, 12, n))
STREAM(settling_3, 2 - ramp(1, 3, n))
STREAM(settling_8, 2 - ramp(1, 8, n))
STREAM(from_4, 4 - ramp(3, 12, n))
STREAM(from_3_5, 3.5 - ramp(2.5, 12, n))
STREAM(from_3, 3 - ramp(2, 12, n))
STREAM(shaking, 2 - ramp(1, 12, n) + jitter(0.01, n, 0xe))
STREAM(jumping, shaking(n) + (n == 25 ? 14 : 0))
STREAM(big_stacks, 2048 + ramp(128 << 20, 8, n))

// ---- bounds ----

static double over(unsigned n)
{
	return (double)results[n].peak / (double)results[n].goal;
}

static double way(unsigned n)
{
	return (double)(results[n].trigger - results[n].marked) /
	       (double)(results[n].goal - results[n].marked);
}

static void in_range(const char *what, unsigned n, double x, double least,
		     double most)
{
	ck_assert_msg(x >= least && x <= most,
		      "%s, cycle %u: %s is %f, not %f to %f", scenario->name, n,
		      what, x, least, most);
}

static void about(const char *what, unsigned n, double x, double want,
		  double error)
{
	in_range(what, n, x, want - error, want + error);
}

static void steady_use(unsigned n)
{
	about("use", n, results[n].use, RUNWAY_BACKGROUND, 0.005);
	about("use, by the last", n, results[n].use, results[n - 1].use, 0.005);
}

static void check_steady(unsigned n)
{
	if (n < 25)
		return;
	steady_use(n);
	in_range("peak by goal", n, over(n), 0.95, 1.05);
}

static void check_step(unsigned n)
{
	if ((n >= 25 && n < 50) || n >= 75) {
		about("use, by the last", n, results[n].use, results[n - 1].use,
		      0.005);
		in_range("peak by goal", n, over(n), 0.95, 1.05);
	}
}

static void check_high(unsigned n)
{
	if (n <= 12)
		return;
	in_range("peak by goal", n, over(n), 0.9, n == 26 ? 15 : 1.05);
	about("use, by the last", n, results[n].use, results[n - 1].use, 0.03);
}

static void check_waves(unsigned n)
{
	if (n <= 12)
		return;
	in_range("peak by goal", n, over(n), 0.95, 1.05);
	in_range("use", n, results[n].use, 0.25, 0.3);
}

static void check_jitter(unsigned n)
{
	if (n <= 12)
		return;
	in_range("peak by goal", n, over(n), 0.95, 1.025);
	in_range("use", n, results[n].use, 0.25, 0.275);
}

static void check_heavy_jitter(unsigned n)
{
	if (n <= 13)
		return;
	in_range("peak by goal", n, over(n), 0.95, 1.05);
	about("use, by the last", n, results[n].use, results[n - 1].use, 0.05);
	about("use, by cycle 12", n, results[n].use, results[12].use, 0.05);
}

static void check_slow(unsigned n, unsigned settled)
{
	if (n > settled) {
		in_range("peak by goal", n, over(n), 0.925, 1.025);
		in_range("trigger", n, way(n), 0.925, 0.975);
	}
	if (n > 25)
		steady_use(n);
}

static void check_small(unsigned n)
{
	check_slow(n, 4);
}

static void check_medium(unsigned n)
{
	check_slow(n, 9);
}

static void check_large(unsigned n)
{
	if (n > 13) {
		in_range("peak by goal", n, over(n), 0.95, 1.05);
		in_range("runway", n,
			 (double)(results[n].goal - results[n].trigger),
			 4.0 * MIB - 64 * KIB, 4.0 * MIB + 64 * KIB);
	}
	if (n > 25)
		steady_use(n);
}

static void check_within(unsigned n)
{
	ck_assert_msg(results[n].peak <= scenario->limit, "%s, cycle %u: peak",
		      scenario->name, n);
	check_steady(n);
}

static void check_beyond(unsigned n)
{
	if (n > 12)
		ck_assert_msg(results[n].goal == results[n].marked,
			      "%s, cycle %u: goal", scenario->name, n);
	if (n >= 25)
		about("use", n, results[n].use, 1, 0.005);
}

// ---- the cases ----

#define CASE(name, alloc, scan, growth, frac, ...)                             \
	{                                                                      \
		name, alloc, scan, growth, frac, __VA_ARGS__                   \
	}
#define ROOTS .stacks = always_8192, .globals = 32 << 10
#define USUAL .length = 50, .percent = 100, ROOTS
#define LONG .length = 100, .percent = 100, ROOTS
#define LIMITED .length = 50, .limit = 512 << 20, ROOTS
static const struct scenario scenarios[] = {
    CASE("Steady", always_33, always_1024, settling, always_1, USUAL,
	 .check = check_steady),
    CASE("SteadyBigStacks", always_132, always_1024, settling, always_1,
	 .stacks = big_stacks, .globals = 32 << 10, .percent = 100,
	 .length = 50, .check = check_steady),
    CASE("SteadyBigGlobals", always_132, always_1024, settling, always_1,
	 .stacks = always_8192, .globals = 128 << 20, .percent = 100,
	 .length = 50, .check = check_steady),
    CASE("StepAlloc", step_66, always_1024, settling, always_1, LONG,
	 .check = check_step),
    CASE("HeavyStepAlloc", step_330, always_1024, settling, always_1, LONG,
	 .check = check_step),
    CASE("StepScannableFrac", always_128, always_1024, settling, step_frac,
	 LONG, .check = check_step),
    CASE("HighGOGC", around_165, always_1024, jumping, always_1,
	 .stacks = always_8192, .globals = 32 << 10, .percent = 1500,
	 .length = 50, .check = check_high),
    CASE("OscAlloc", waves, always_1024, settling, always_1, USUAL,
	 .check = check_waves),
    CASE("JitterAlloc", around_132, always_1024, shaking, always_1, USUAL,
	 .check = check_jitter),
    CASE("HeavyJitterAlloc", around_330, always_1024, shaking, always_1, USUAL,
	 .check = check_heavy_jitter),
    CASE("SmallHeapSlowAlloc", always_1, always_2048, settling_3, hundredth,
	 USUAL, .check = check_small),
    CASE("MediumHeapSlowAlloc", always_1, always_2048, settling_8, hundredth,
	 USUAL, .check = check_medium),
    CASE("LargeHeapSlowAlloc", always_1, always_2048, from_4, hundredth, USUAL,
	 .check = check_large),
    CASE("SteadyMemoryLimit", always_33, always_1024, settling, always_1,
	 LIMITED, .percent = 100, .check = check_within),
    CASE("SteadyMemoryLimitNoGCPercent", always_33, always_1024, settling,
	 always_1, LIMITED, .percent = -1, .check = check_within),
    CASE("ExceedMemoryLimit", always_33, always_1024, from_3_5, always_1,
	 LIMITED, .percent = 100, .check = check_beyond),
    CASE("ExceedMemoryLimitNoGCPercent", always_33, always_1024, from_3_5,
	 always_1, LIMITED, .percent = -1, .check = check_beyond),
    CASE("MaintainMemoryLimit", always_33, always_1024, from_3, always_1,
	 LIMITED, .percent = 100, .check = check_within),
    CASE("MaintainMemoryLimitNoGCPercent", always_33, always_1024, from_3,
	 always_1, LIMITED, .percent = -1, .check = check_within),
};

GROUP(simulated, .timeout = 60);

// The heap is at its goal when marking ends, and the background does all the
// marking, as soon as the program is steady.
TEST(cycles_are_where_go_has_them, .n = RT_ARRAY_LEN(scenarios))
{
	simulate(&scenarios[_i]);
}

// ---- the trigger ----

static const struct runway_heap usual = {
    .marked = 64 * MIB, .live = 64 * MIB, .goal = 128 * MIB, .percent = 100};

static uint64_t trigger(double cons_mark, const struct runway_heap *h)
{
	struct runway r;

	runway_init(&r);
	r.cons_mark = cons_mark;
	return runway_trigger(&r, h);
}

GROUP(triggers);

static const struct runway_heap large = {
    .marked = 256 * MIB, .goal = 512 * MIB, .percent = 100};

// Whatever the runway, the trigger is at least 45/64 of the way to the goal,
// and at most the goal less 4 MiB.  In a small heap it is at most 61/64 of the
// way.
TEST(trigger_is_between_its_bounds)
{
	struct runway_heap h = large;

	ck_assert_uint_eq(trigger(0, &h), 508 * MIB);
	ck_assert_uint_eq(trigger(1e9, &h), 508 * MIB); // no work expected
	h.expected = MIB;
	ck_assert_uint_eq(trigger(1, &h), 508 * MIB);
	ck_assert_uint_eq(trigger(2, &h), 506 * MIB);
	ck_assert_uint_eq(trigger(5, &h), 497 * MIB);
	ck_assert_uint_eq(trigger(30, &h), 436 * MIB);
	ck_assert_uint_eq(trigger(1e9, &h), 436 * MIB);
	h = (struct runway_heap){.marked = MIB, .goal = 2 * MIB};
	ck_assert_uint_eq(trigger(0, &h), MIB + 61 * MIB / 64);
}

TEST(trigger_is_not_below_what_lives)
{
	struct runway_heap h = large;

	h.marked = 512 * MIB;
	ck_assert_uint_eq(trigger(0, &h), 512 * MIB);
	h.marked = 700 * MIB;
	ck_assert_uint_eq(trigger(0, &h), 700 * MIB);
	h = large;
	h.least = 510 * MIB;
	ck_assert_uint_eq(trigger(0, &h), 510 * MIB);
	h.least = 600 * MIB; // moves the goal
	ck_assert_uint_eq(trigger(0, &h), 600 * MIB);
	h.limited = true; // the limit's goal does not move
	ck_assert_uint_eq(trigger(0, &h), 508 * MIB);
}

// ---- assists ----

static struct runway begun(struct runway_heap *h)
{
	struct runway r;

	runway_init(&r);
	h->live = 120 * MIB;
	h->expected = 8 * MIB;
	h->most = 16 * MIB;
	runway_begin(&r, h);
	return r;
}

GROUP(assists);

// 4096 bytes of a vector without pointers cost the same as 64 words of a graph.
TEST(work_is_words_and_lines)
{
	ck_assert_uint_eq(runway_work(0, 0), 0);
	ck_assert_uint_eq(runway_work(0, 4096), 64);
	ck_assert_uint_eq(runway_work(64, 0), 64);
	ck_assert_uint_eq(runway_work(512, 4096), 576);
}

TEST(work_is_spread_over_the_bytes_that_are_left)
{
	struct runway_heap h = usual;
	struct runway r = begun(&h);

	ck_assert(r.work_per_byte == 1);
	h.done = 4 * MIB;
	runway_revise(&r, &h);
	ck_assert(r.work_per_byte == 0.5);
	h.live = 126 * MIB;
	runway_revise(&r, &h);
	ck_assert(r.work_per_byte == 2);
	// Until marking ends, at least 1000 bytes of work count as left.
	h.done = 8 * MIB;
	runway_revise(&r, &h);
	ck_assert(r.work_per_byte == 1000.0 / (2 * MIB));
}

// More is alive than was expected: the runway grows with the work, but the goal
// at most as the percentage says.
TEST(more_work_than_expected_moves_the_goal)
{
	struct runway_heap h = usual;
	struct runway r = begun(&h);

	h.done = 8 * MIB + 1;
	runway_revise(&r, &h); // to 120 + 8 x 16 / 8 = 136 MiB
	ck_assert(r.work_per_byte == (8.0 * MIB - 1) / (16 * MIB));
	h.most = 1024 * MIB; // to 256 MiB, not to 1144
	runway_revise(&r, &h);
	ck_assert(r.work_per_byte == (1016.0 * MIB - 1) / (136 * MIB));
	h.percent = -1;
	runway_revise(&r, &h);
	ck_assert(r.work_per_byte == (1016.0 * MIB - 1) / (1024 * MIB));
}

TEST(beyond_the_goal_everything_is_due_in_a_tenth)
{
	struct runway_heap h = usual;
	struct runway r = begun(&h);

	h.live = 130 * MIB;
	runway_revise(&r, &h);
	ck_assert(r.work_per_byte ==
		  16.0 * MIB / (double)(128 * MIB * 11 / 10 - 130 * MIB));
	h.live = 1000 * MIB;
	runway_revise(&r, &h);
	ck_assert(r.work_per_byte == 16.0 * MIB);
}

TEST(a_goal_below_the_trigger_leaves_64_kib)
{
	struct runway_heap h = usual;
	struct runway r;

	h.goal = 110 * MIB;
	r = begun(&h);
	ck_assert_uint_eq(runway_goal(&r, &h), 120 * MIB + 64 * KIB);
	ck_assert(r.work_per_byte == 8.0 * MIB / (64 * KIB));
	h.limited = true;
	ck_assert_uint_eq(runway_goal(&r, &h), 110 * MIB);
}

// Work that the background did in advance pays for a debt first.  A thread does
// the rest of the debt.
TEST(credit_is_taken_before_a_thread_works)
{
	struct runway_heap h = usual;
	struct runway r = begun(&h);
	struct runway_debt debt = runway_owe(&r, 1000, 300);

	ck_assert_uint_eq(debt.credit, 300);
	ck_assert_uint_eq(debt.work, 700);
	debt = runway_owe(&r, 1000, 5000);
	ck_assert_uint_eq(debt.credit, 1000);
	ck_assert_uint_eq(debt.work, 0);
	debt = runway_owe(&r, 1000, -300);
	ck_assert_uint_eq(debt.credit, 0);
	ck_assert_uint_eq(debt.work, 1000);
}

// The highest cost of the last five markings counts.
TEST(the_worst_of_the_last_markings_is_expected)
{
	struct runway r;
	struct runway_heap h = {.live = 3000, .done = 1000};
	const struct runway_times t = {.capacity = 1000};

	runway_init(&r);
	for (unsigned i = 0; i < 7; i++) {
		r.triggered = i == 0 ? 0 : 2400;
		runway_end(&r, &h, &t);
		ck_assert(r.cons_mark == (i < 5 ? 1 : 0.2));
		ck_assert(r.triggered == RUNWAY_IDLE);
	}
	// Assists mark as well.  If half of the time goes to marking, marking a
	// byte costs three times as much time.
	r.triggered = 0;
	runway_end(&r, &h, &(struct runway_times){1000, 250, 0});
	ck_assert(r.cons_mark == 3);
	r.triggered = 0;
	runway_end(&r, &h, &(struct runway_times){1000, 0, 1000});
	ck_assert(r.cons_mark == 5);
}

TEST(a_marking_that_says_nothing_is_not_remembered)
{
	struct runway r;
	struct runway_heap h = {.live = 3000, .done = 1000};

	runway_init(&r);
	r.triggered = 3000; // nothing allocated
	runway_end(&r, &h, &(struct runway_times){1000, 0, 0});
	r.triggered = 0; // all processors marked
	runway_end(&r, &h, &(struct runway_times){1000, 1000, 0});
	h.done = 0;
	r.triggered = 0;
	runway_end(&r, &h, &(struct runway_times){1000, 0, 0});
	ck_assert(r.cons_mark == 0);
}

// ---- any numbers ----

// any returns a number of a random size, and now and then one near a bound.
static uint64_t any(struct rng *rng)
{
	uint64_t n = rng_next(rng) >> rng_below(rng, 64);

	return rng_below(rng, 16) == 0
		   ? -(n & 7)
		   : n & ((uint64_t)(rng_below(rng, 8) == 0) - 1);
}

static void any_heap(struct rng *rng, struct runway_heap *h)
{
	*h = (struct runway_heap){
	    .marked = any(rng),
	    .live = any(rng),
	    .goal = any(rng),
	    .least = any(rng),
	    .limited = rng_below(rng, 2) != 0,
	    .percent = (int)any(rng),
	    .done = any(rng),
	    .expected = any(rng),
	    .most = any(rng),
	};
}

GROUP(random, .timeout = 60);

// Whatever the input, the trigger is not below what lives, no debt takes more
// credit than there is, and no ratio is negative or NaN.
TEST(no_rates_leave_the_bounds)
{
	struct runway r;
	struct rng rng;
	bool sane = true;

	rng_init(&rng, "no_rates_leave_the_bounds");
	runway_init(&r);
	for (unsigned i = 0; i < 100000 && sane; i++) {
		struct runway_heap h;
		struct runway_times t = {any(&rng), any(&rng), any(&rng)};
		struct runway_debt debt;
		uint64_t at;

		any_heap(&rng, &h);
		at = runway_trigger(&r, &h);
		sane &= at >= h.marked;
		sane &= at <= base_max(h.marked, runway_goal(&r, &h));
		runway_begin(&r, &h);
		for (unsigned j = 0; j < 4; j++) {
			int64_t credit = (int64_t)any(&rng);

			any_heap(&rng, &h);
			runway_revise(&r, &h);
			sane &= r.work_per_byte > 0 && r.work_per_byte < 0x1p65;
			debt = runway_owe(&r, any(&rng), credit);
			sane &= debt.credit == 0 ||
				(credit > 0 && debt.credit <= (uint64_t)credit);
			sane &= debt.work + debt.credit >= debt.work;
		}
		runway_end(&r, &h, &t);
		sane &= r.cons_mark >= 0 && r.cons_mark < 0x1p128;
	}
	ck_assert(sane);
}
