// The bucket that bounds the CPU time of collections.
//
// Go: TestGCCPULimiter (mgclimit_test.go).
#include "gc/cycle/limiter.h"

#include "test/harness/suite.h"

#define CORES 14
#define CAPACITY (CORES * LIMITER_CAPACITY)

static struct limiter l;

static void begin(void)
{
	limiter_init(&l, 50, CORES);
}

GROUP(bucket, .setup = begin);

TEST(collections_fill_it)
{
	ck_assert(!limiter_add(&l, CAPACITY - 1, 0));
	ck_assert_uint_eq(l.fill, CAPACITY - 1);
	ck_assert(limiter_add(&l, 1, 0));
	ck_assert_uint_eq(l.fill, CAPACITY);
}

TEST(the_program_drains_it)
{
	limiter_add(&l, 1000, 0);
	ck_assert(!limiter_add(&l, 0, 400));
	ck_assert_uint_eq(l.fill, 600);
	limiter_add(&l, 0, 601);
	ck_assert_uint_eq(l.fill, 0);
}

TEST(a_quarter_of_the_time_drains_it)
{
	limiter_add(&l, CAPACITY, 0);
	ck_assert(!limiter_add(&l, CAPACITY / 4, 3 * (CAPACITY / 4)));
	ck_assert_uint_eq(l.fill, CAPACITY / 2);
}

// The figures of Go's test: a transition of 2.001 ms takes all 14 processors.
// Then collections take a quarter of the processors for 1 / (1 - 2 x 0.25) of
// that time, after which nothing is left.  The second round shows that no state
// is carried over.
TEST(the_figures_of_gos_test)
{
	const uint64_t transition = 2001000, window = 2 * transition * CORES;

	for (int round = 0; round < 2; round++) {
		ck_assert(!limiter_add(&l, transition * CORES, 0));
		ck_assert_uint_eq(l.fill, transition * CORES);
		ck_assert(!limiter_add(&l, window / 4, window / 4 * 3 - 1));
		ck_assert_uint_eq(l.fill, 1);
		ck_assert(!limiter_add(&l, 0, 1));
		ck_assert_uint_eq(l.fill, 0);
	}
}

TEST(half_of_the_time_changes_nothing)
{
	limiter_add(&l, 12345, 0);
	ck_assert(!limiter_add(&l, 7000, 7000));
	ck_assert_uint_eq(l.fill, 12345);
}

TEST(exactly_full_limits)
{
	ck_assert(limiter_add(&l, CAPACITY, 0));
	ck_assert(!limiter_add(&l, 0, 1));
	ck_assert(limiter_add(&l, 1, 0));
}

TEST(no_time_changes_nothing)
{
	ck_assert(!limiter_add(&l, 0, 0));
	limiter_add(&l, CAPACITY, 0);
	ck_assert(limiter_add(&l, 0, 0));
	ck_assert_uint_eq(l.fill, CAPACITY);
}

// 14 processors are configured, but the process has 2.  So the bucket is full
// after 2 s of CPU time of collections, not after 14 s.
TEST(fewer_processors_are_a_smaller_bucket)
{
	const uint64_t second = UINT64_C(1000000000);

	limiter_shrink(&l, CORES + 1);
	ck_assert_uint_eq(l.capacity, CORES * second);
	limiter_shrink(&l, 2);
	ck_assert_uint_eq(l.capacity, 2 * second);
	ck_assert(!limiter_add(&l, 2 * second - 1, 0));
	ck_assert(limiter_add(&l, 1, 0));
	limiter_shrink(&l, 3);
	ck_assert_uint_eq(l.capacity, 2 * second);
}

// The contents of the bucket are not lost, even if they are more than the
// smaller bucket holds.
TEST(a_smaller_bucket_keeps_what_is_in_it)
{
	limiter_add(&l, CAPACITY - 1, 0);
	limiter_shrink(&l, 1);
	ck_assert_uint_eq(l.fill, CAPACITY - 1);
	ck_assert(limiter_add(&l, 0, 1));
	ck_assert_uint_eq(l.fill, CAPACITY - 2);
	ck_assert(!limiter_add(&l, 0, CAPACITY - 1 - LIMITER_CAPACITY));
}

// CPU time that a collection takes beyond the capacity of the bucket is a debt
// that the CPU time of the program has to pay.
TEST(what_is_beyond_it_is_a_debt)
{
	ck_assert(limiter_add(&l, 3 * CAPACITY, 0));
	ck_assert_uint_eq(l.fill, 3 * CAPACITY);
	ck_assert(limiter_add(&l, 0, 2 * CAPACITY));
	ck_assert(!limiter_add(&l, 0, 1));
}

// Collections that the host asks for do not wait.  Several in a row make no
// larger debt than one of them.
TEST(a_debt_is_of_one_collection)
{
	for (unsigned i = 0; i < 10; i++)
		ck_assert(limiter_add(&l, 3 * CAPACITY, 0));
	ck_assert_uint_eq(l.fill, 4 * CAPACITY);
	ck_assert(limiter_add(&l, CAPACITY, 0));
	ck_assert_uint_eq(l.fill, 4 * CAPACITY);
}

TEST(another_percentage_weighs_both)
{
	limiter_init(&l, 25, CORES);
	limiter_add(&l, 1000, 3000);
	ck_assert_uint_eq(l.fill, 0);
	limiter_add(&l, 1000, 0);
	ck_assert_uint_eq(l.fill, 1500);
	limiter_add(&l, 0, 1000);
	ck_assert_uint_eq(l.fill, 1000);
	limiter_add(&l, 0, 2000);
	ck_assert_uint_eq(l.fill, 0);
	limiter_init(&l, 100, CORES);
	ck_assert(!limiter_add(&l, UINT64_MAX, 0));
	ck_assert_uint_eq(l.fill, 0);
}

TEST(nothing_overflows)
{
	limiter_init(&l, 1, 4096);
	ck_assert(limiter_add(&l, UINT64_MAX, 0));
	ck_assert_uint_eq(l.fill, UINT64_MAX);
	ck_assert(limiter_add(&l, UINT64_MAX, UINT64_MAX));
	limiter_init(&l, 99, 4096);
	limiter_add(&l, UINT64_MAX, UINT64_MAX);
	ck_assert_uint_eq(l.fill, 0);
}

// Whatever the rates, collections take at most half of the time, plus one
// bucket and one collection.
TEST(the_share_holds_for_any_rates)
{
	struct rng rng;
	uint64_t gc = 0, program = 0, longest = 0;

	rng_init(&rng, "the_share_holds_for_any_rates");
	for (unsigned i = 0; i < 100000; i++) {
		uint64_t n = rng_below(&rng, CAPACITY / 8);

		if (l.limiting || rng_below(&rng, 2) == 0) {
			program += n;
			limiter_add(&l, 0, n);
			continue;
		}
		gc += n;
		longest = base_max(longest, n);
		limiter_add(&l, n, 0);
		if (gc > program + CAPACITY + longest)
			break;
	}
	ck_assert_uint_le(gc, program + CAPACITY + longest);
}
