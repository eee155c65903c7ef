// Gauges add up, and never fall below zero.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/os/gauge.h"
#include "test/harness/death.h"
#include "test/harness/suite.h"
#include "test/harness/thread.h"

TEST(gauges_begin_at_zero)
{
	static const struct gauges zero;

	ck_assert_mem_eq(&gauges, &zero, sizeof(zero));
}

TEST(a_gauge_is_the_sum_of_its_moves)
{
	struct rng r;
	uint64_t sum = 0;

	rng_init(&r, "a_gauge_is_the_sum_of_its_moves");
	for (int i = 0; i < 100000; i++) {
		uint64_t up = rng_below(&r, UINT64_C(1) << 40);
		uint64_t down = rng_below(&r, sum + up + 1);

		gauge_add(&gauges.other_sys, (int64_t)up);
		gauge_add(&gauges.other_sys, -(int64_t)down);
		sum += up - down;
		if (gauge_load(&gauges.other_sys) != sum)
			break;
	}
	ck_assert_uint_eq(gauge_load(&gauges.other_sys), sum);
	ck_assert_uint_eq(gauge_load(&gauges.gc_misc_sys), 0);
}

TEST(a_gauge_reaches_both_ends)
{
	gauge_add(&gauges.mapped_ready, INT64_MAX);
	ck_assert_uint_eq(gauge_load(&gauges.mapped_ready), INT64_MAX);
	gauge_add(&gauges.mapped_ready, -INT64_MAX);
	ck_assert_uint_eq(gauge_load(&gauges.mapped_ready), 0);
	gauge_add(&gauges.mapped_ready, 0);
	ck_assert_uint_eq(gauge_load(&gauges.mapped_ready), 0);
}

TEST(an_adjusted_gauge_stops_at_its_ends)
{
	gauge_adjust(&gauges.external, -1);
	ck_assert_uint_eq(gauge_load(&gauges.external), 0);
	gauge_adjust(&gauges.external, INT64_MAX);
	gauge_adjust(&gauges.external, 1);
	ck_assert_uint_eq(gauge_load(&gauges.external), INT64_MAX);
	gauge_adjust(&gauges.external, INT64_MIN);
	ck_assert_uint_eq(gauge_load(&gauges.external), 0);
	gauge_adjust(&gauges.external, 10);
	gauge_adjust(&gauges.external, -3);
	ck_assert_uint_eq(gauge_load(&gauges.external), 7);
}

enum { MOVES = 1000000 };

static void *move(void *arg)
{
	for (unsigned i = 0; i < MOVES; i++)
		gauge_adjust(&gauges.external, 3);
	return arg;
}

// No move is lost.
TEST(threads_adjust_a_gauge_together)
{
	uint64_t before = gauge_load(&gauges.external);
	pthread_t other = start_thread(move, NULL);

	move(NULL);
	join_thread(other);
	ck_assert_uint_eq(gauge_load(&gauges.external),
			  before + 6 * (uint64_t)MOVES);
}

// The gauge's value, and the move that must throw.
static const struct {
	int64_t before;
	int64_t move;
} overflows[] = {
    {0, -1},	    {4096, -4097},	    {0, INT64_MIN},
    {1, INT64_MAX}, {INT64_MAX, INT64_MAX},
};

TEST(a_gauge_beyond_its_ends_throws, .n = RT_ARRAY_LEN(overflows),
     .exit = DEATH_EXPECTED)
{
	char what[100];

	snprintf(what, sizeof what,
		 "rtheap: gauge was 0x%llx, is 0x%llx\n"
		 "rtheap: fatal: sysMemStat overflow",
		 (unsigned long long)overflows[_i].before,
		 (unsigned long long)overflows[_i].before +
		     (unsigned long long)overflows[_i].move);
	gauge_add(&gauges.mspan_sys, overflows[_i].before);
	death_expect(what);
	gauge_add(&gauges.mspan_sys, overflows[_i].move);
}

// A gauge that was negative before is found, even when the move makes it
// positive.
TEST(a_negative_gauge_throws_on_the_way_up, .exit = DEATH_EXPECTED)
{
	death_expect("sysMemStat overflow");
	atomic_u64_store_relaxed(&gauges.mspan_sys, (uint64_t)-1);
	gauge_add(&gauges.mspan_sys, 2);
}
