// Buckets of times: their limits, and which one counts a time.
#include "test/harness/suite.h"
#include "test/harness/thread.h"

#include <math.h>
#include <pthread.h>
#include <string.h>

#include "runtime/base/histogram.h"

static struct histogram hist;
static uint64_t counts[HISTOGRAM_COUNTS];

// counted_in returns the index of the only count, which is 1, after recording
// ns in an empty histogram.  It returns HISTOGRAM_COUNTS if there is another.
static unsigned counted_in(int64_t ns)
{
	unsigned found = HISTOGRAM_COUNTS;

	memset(&hist, 0, sizeof(hist));
	histogram_record(&hist, ns);
	histogram_read(&hist, counts);
	for (unsigned i = 0; i < HISTOGRAM_COUNTS; i++) {
		if (counts[i] == 0)
			continue;
		if (counts[i] != 1 || found != HISTOGRAM_COUNTS)
			return HISTOGRAM_COUNTS;
		found = i;
	}
	return found;
}

// lower_edge returns the duration in ns where count i begins, from the
// definition: 64 ns each up to 512, then four to each power of two.
static int64_t lower_edge(unsigned i)
{
	unsigned sub = (i - 1) % 4, bucket = (i - 1) / 4;

	if (bucket < 2)
		return (int64_t)(i - 1) * 64;
	return (INT64_C(256) << (bucket - 1)) +
	       (int64_t)sub * (INT64_C(64) << (bucket - 1));
}

GROUP(durations, .timeout = 60);

TEST(edges_are_known)
{
	static const struct {
		unsigned index;
		uint64_t ns;
	} known[] = {
	    {1, 0},
	    {2, 0x40},
	    {5, 0x100},
	    {9, 0x200},
	    {12, 0x380},
	    {13, 0x400},
	    {15, 0x600},
	    {81, 0x8000000},
	    {82, 0xa000000},
	    {108, UINT64_C(0x380000000)},
	    {161, UINT64_C(1) << 47},
	};
	const double *edges = histogram_edges();

	for (unsigned i = 0; i < RT_ARRAY_LEN(known); i++)
		ck_assert(edges[known[i].index] == (double)known[i].ns / 1e9);
	ck_assert(edges[0] == -INFINITY);
	ck_assert(edges[HISTOGRAM_EDGES - 1] == INFINITY);
	ck_assert_uint_eq(HISTOGRAM_EDGES, 163);
}

TEST(edges_ascend_and_follow_the_definition)
{
	const double *edges = histogram_edges();

	for (unsigned i = 1; i < HISTOGRAM_EDGES; i++)
		ck_assert(edges[i - 1] < edges[i]);
	for (unsigned i = 1; i < HISTOGRAM_EDGES - 1; i++)
		ck_assert(edges[i] == (double)lower_edge(i) / 1e9);
}

TEST(each_counter_begins_at_its_lower_edge)
{
	for (unsigned i = 1; i < HISTOGRAM_COUNTS; i++) {
		int64_t ns = lower_edge(i);

		ck_assert_uint_eq(counted_in(ns), i);
		ck_assert_uint_eq(counted_in(ns + 1), i);
		ck_assert_uint_eq(counted_in(ns - 1), i - 1);
	}
}

TEST(negative_durations_underflow)
{
	ck_assert_uint_eq(counted_in(-1), 0);
	ck_assert_uint_eq(counted_in(INT64_MIN), 0);
	ck_assert_uint_eq(counted_in(0), 1);
}

TEST(long_durations_overflow)
{
	ck_assert_uint_eq(counted_in((INT64_C(1) << 47) - 1),
			  HISTOGRAM_COUNTS - 2);
	ck_assert_uint_eq(counted_in(INT64_C(1) << 47), HISTOGRAM_COUNTS - 1);
	ck_assert_uint_eq(counted_in(INT64_C(1) << 48), HISTOGRAM_COUNTS - 1);
	ck_assert_uint_eq(counted_in(INT64_MAX), HISTOGRAM_COUNTS - 1);
}

TEST(random_durations_lie_between_their_edges)
{
	const double *edges = histogram_edges();
	struct rng r;
	unsigned wrong = 0;

	rng_init(&r, "random_durations_lie_between_their_edges");
	for (unsigned n = 0; n < 50000; n++) {
		int64_t ns = (int64_t)(rng_next(&r) >> rng_below(&r, 64));
		unsigned i = counted_in(ns);
		double s = (double)ns / 1e9;

		if (i >= HISTOGRAM_COUNTS || s < edges[i] || s >= edges[i + 1])
			wrong++;
	}
	ck_assert_uint_eq(wrong, 0);
}

// ---- several writers and a reader ----

enum { WRITERS = 4, ROUNDS = 300 };

// write_all records a duration for each count, ROUNDS times.
static void *write_all(void *arg)
{
	(void)arg;
	for (unsigned n = 0; n < ROUNDS; n++) {
		histogram_record(&hist, -1);
		for (unsigned i = 1; i < HISTOGRAM_COUNTS; i++)
			histogram_record(&hist, lower_edge(i));
	}
	return NULL;
}

// falls returns how many counts are lower in the second of two reads than in
// the first, or higher than they can ever be.
static unsigned falls(const uint64_t *before, const uint64_t *after)
{
	unsigned n = 0;

	for (unsigned i = 0; i < HISTOGRAM_COUNTS; i++)
		n += after[i] < before[i] || after[i] > WRITERS * ROUNDS;
	return n;
}

TEST(concurrent_records_are_all_counted)
{
	pthread_t threads[WRITERS];
	uint64_t last[HISTOGRAM_COUNTS] = {0};
	unsigned wrong = 0;

	for (unsigned i = 0; i < WRITERS; i++)
		threads[i] = start_thread(write_all, NULL);
	for (unsigned n = 0; n < 2000; n++) {
		histogram_read(&hist, counts);
		wrong += falls(last, counts);
		memcpy(last, counts, sizeof(last));
	}
	for (unsigned i = 0; i < WRITERS; i++)
		join_thread(threads[i]);
	ck_assert_uint_eq(wrong, 0);
	histogram_read(&hist, counts);
	for (unsigned i = 0; i < HISTOGRAM_COUNTS; i++)
		ck_assert_uint_eq(counts[i], WRITERS * ROUNDS);
}
