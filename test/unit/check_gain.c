// When helpers are called for a marking, and when they are not.
#include "gc/mark/gain.h"

#include "test/harness/suite.h"

enum { WORDS = 100000, MANY = 10000 };

// The cost of marking WORDS: wall time in ns, without helpers and with them,
// and processor time with them.
struct machine {
	uint64_t alone, beside, cpu;
};

static struct gain sample;
static uint64_t called, wall_ns, cpu_ns; // of all markings

static void forget(void)
{
	sample = (struct gain){.off = false};
}

// mark_many does n markings.
static void mark_many(const struct machine *m, unsigned n)
{
	called = wall_ns = cpu_ns = 0;
	for (unsigned i = 0; i < n; i++) {
		struct gain_marking marking = {
		    .called = gain_call(&sample),
		    .words = WORDS,
		    .wall_ns = m->alone,
		    .cpu_ns = m->alone,
		};

		if (marking.called) {
			marking.wall_ns = m->beside;
			marking.cpu_ns = m->cpu;
			called++;
		}
		wall_ns += marking.wall_ns;
		cpu_ns += marking.cpu_ns;
		gain_note(&sample, &marking);
	}
}

static const struct machine pays[] = {
    {1000000, 500000, 1000000}, {1000000, 700000, 1400000},
    {1000000, 740000, 3000000}, {1000000, 950000, 1090000},
    {40000000, 900000, 900000},
};

static const struct machine does_not[] = {
    {1000000, 760000, 1200000},	 {1000000, 1010000, 1010000},
    {1000000, 1600000, 3200000}, {1000000, 990000, 1110000},
    {1000000, 5000000, 5000000},
};

GROUP(arithmetic);

TEST(helpers_that_pay_are_called, .n = RT_ARRAY_LEN(pays))
{
	forget();
	mark_many(&pays[_i], MANY);
	ck_assert_uint_ge(called, MANY - MANY / GAIN_TRY_MOST - 10);
}

// Tries included, markings take at most a tenth more processor time than one
// marker alone would, as long as a try costs no more than three times one
// marking.
TEST(helpers_that_do_not_pay_are_tried_at_times, .n = RT_ARRAY_LEN(does_not))
{
	const struct machine *m = &does_not[_i];

	forget();
	mark_many(m, MANY);
	ck_assert_uint_ge(called, MANY / (GAIN_TRY_MOST + 1));
	ck_assert_uint_le(called, MANY / GAIN_TRY_MOST + 10);
	if (m->cpu <= 3 * m->alone)
		ck_assert_uint_le(cpu_ns, MANY * (m->alone + m->alone / 10));
}

// When helpers begin or cease to pay, the next try shows that.
TEST(the_other_way_is_found_again)
{
	forget();
	for (unsigned i = 0; i < RT_ARRAY_LEN(pays); i++) {
		mark_many(&does_not[i], 20 * GAIN_TRY_MOST);
		mark_many(&does_not[i], MANY);
		ck_assert_uint_le(called, MANY / GAIN_TRY_MOST + 10);
		mark_many(&pays[i], 20 * GAIN_TRY_MOST);
		mark_many(&pays[i], MANY);
		ck_assert_uint_ge(called, MANY - MANY / GAIN_TRY_MOST - 10);
	}
}

// A short marking does not tell what a word costs.  After it, helpers are not
// called until a longer marking has ended.
TEST(short_markings_call_none)
{
	struct gain_marking marking = {.words = GAIN_WORDS - 1};

	forget();
	mark_many(&pays[0], 10);
	gain_note(&sample, &marking);
	for (int i = 0; i < 100; i++)
		ck_assert(!gain_call(&sample));
	mark_many(&pays[0], MANY);
	ck_assert_uint_ge(called, MANY - MANY / GAIN_TRY_MOST - 10);
	marking.words = 0;
	gain_note(&sample, &marking);
	ck_assert(!gain_call(&sample));
}

// Helpers are still called when the system refuses the clock, which then reads
// 0.
TEST(no_clock_is_no_error)
{
	static const struct machine none = {0, 0, 0};

	forget();
	mark_many(&none, MANY);
	ck_assert_uint_gt(called, 0);
}

// A word's cost is the mean of the last cost and the known one.  It is never 0,
// because 0 means that no cost is known.
TEST(costs_are_means)
{
	struct gain_marking m = {.words = WORDS};

	forget();
	gain_note(&sample, &m);
	ck_assert_uint_eq(sample.cost[false].wall, 1);
	ck_assert_uint_eq(sample.cost[false].cpu, 1);
	forget();
	m.wall_ns = m.cpu_ns = WORDS;
	gain_note(&sample, &m);
	m.wall_ns = m.cpu_ns = 3 * WORDS;
	gain_note(&sample, &m);
	ck_assert_uint_eq(sample.cost[false].wall, 2000);
	ck_assert_uint_eq(sample.cost[false].cpu, 2000);
	ck_assert_uint_eq(sample.cost[true].wall, 0);
}
