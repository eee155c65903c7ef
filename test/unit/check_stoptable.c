// The table of stops: rows by reason, sums, the longest stop, and no torn row.
#include "runtime/world/stoptable.h"

#include <limits.h>

#include "runtime/os/oscall.h"
#include "test/harness/readers.h"
#include "test/harness/suite.h"

static struct stoptable table;

// stop_of returns times of which every field follows from ns.
static rt_stop_times stop_of(uint64_t ns)
{
	return (rt_stop_times){
	    .stopping_ns = ns / 4,
	    .stopped_ns = ns - ns / 4,
	    .total_ns = ns,
	    .stopping_cpu_ns = 3 * ns,
	    .nthreads = (uint32_t)ns + 1,
	    .slowest = (uint32_t)ns,
	};
}

static void add(int reason, uint64_t ns)
{
	rt_stop_times t = stop_of(ns);

	stoptable_add(&table, reason, &t);
}

static rt_stops read_row(int reason)
{
	rt_stops s;

	stoptable_read(&table, stoptable_row(reason), &s);
	return s;
}

static bool is_longest(const rt_stops *s, uint64_t ns)
{
	rt_stop_times t = stop_of(ns);

	return memcmp(&s->longest, &t, sizeof t) == 0;
}

GROUP(rows, .timeout = 60);

TEST(each_reason_of_the_library_has_a_row)
{
	static const int reasons[] = {
	    RT_STOP_UNKNOWN,	   RT_STOP_GC_MARK_TERM,
	    RT_STOP_GC_SWEEP_TERM, RT_STOP_READ_MEMSTATS,
	    RT_STOP_HEAP_WALK,	   RT_STOP_HEAP_VERIFY,
	    RT_STOP_FORK,	   RT_STOP_KIND_UNREGISTER};

	ck_assert_uint_eq(RT_ARRAY_LEN(reasons) + 1, STOPTABLE_ROWS);
	for (unsigned i = 0; i < RT_ARRAY_LEN(reasons); i++)
		ck_assert_int_eq(stoptable_row(reasons[i]), (int)i);
}

TEST(reasons_of_the_host_share_a_row)
{
	static const int host[] = {RT_STOP_HOST, RT_STOP_HOST + 1, INT_MAX};
	static const int none[] = {-1, INT_MIN, RT_STOP_KIND_UNREGISTER + 1,
				   RT_STOP_HOST - 1};

	for (unsigned i = 0; i < RT_ARRAY_LEN(host); i++)
		ck_assert_int_eq(stoptable_row(host[i]), STOPTABLE_HOST);
	for (unsigned i = 0; i < RT_ARRAY_LEN(none); i++)
		ck_assert_int_eq(stoptable_row(none[i]), -1);
}

TEST(a_row_has_sums_and_the_longest)
{
	static const uint64_t ns[] = {0, 50, 90, 20, 90, 10};
	uint64_t total = 0, stopping = 0, longest = 0;

	stoptable_reset(&table);
	for (unsigned i = 0; i < RT_ARRAY_LEN(ns); i++) {
		rt_stops s;

		add(RT_STOP_HOST + (int)i, ns[i]);
		total += ns[i];
		stopping += ns[i] / 4;
		longest = ns[i] > longest ? ns[i] : longest;
		s = read_row(RT_STOP_HOST);
		ck_assert_uint_eq(s.count, i + 1);
		ck_assert_uint_eq(s.total_ns, total);
		ck_assert_uint_eq(s.stopping_ns, stopping);
		ck_assert(is_longest(&s, longest));
		ck_assert_int_eq(s.longest_reason,
				 RT_STOP_HOST + (i < 2 ? (int)i : 2));
		ck_assert_uint_eq(s.spare, 0);
	}
	for (int r = 0; r < STOPTABLE_HOST; r++)
		ck_assert_uint_eq(read_row(r).count, 0);
}

TEST(a_reset_forgets_all)
{
	stoptable_reset(&table);
	for (int r = 0; r < STOPTABLE_HOST; r++)
		add(r, 7);
	stoptable_reset(&table);
	for (int r = 0; r < STOPTABLE_HOST; r++) {
		rt_stops s = read_row(r), none = {0};

		ck_assert(memcmp(&s, &none, sizeof s) == 0);
	}
}

// ---- readers beside the writer ----

enum { STOPS = 20000 };

// read_growing requires that the n-th stop is the longest, as write_stops makes
// it, and that the sums are those of n stops.
static const char *read_growing(struct reader *r)
{
	rt_stops s = read_row(RT_STOP_FORK);

	if (s.count < r->last)
		return "the number of stops went back";
	r->last = s.count;
	if (s.total_ns != 4 * (s.count * (s.count + 1) / 2))
		return "the sum is of another moment than the number";
	if (s.stopping_ns != s.count * (s.count + 1) / 2)
		return "the second sum is of another moment";
	if (s.count != 0 && !is_longest(&s, 4 * s.count))
		return "the longest stop is of another moment";
	return NULL;
}

static void write_stops(void)
{
	for (uint64_t n = 1; n <= STOPS; n++) {
		uint64_t seen = readers_sum();

		add(RT_STOP_FORK, 4 * n);
		while (n % 64 == 1 && readers_sum() == seen)
			oscall_yield();
	}
}

TEST(no_reader_sees_a_torn_row)
{
	stoptable_reset(&table);
	readers_run(read_growing, write_stops);
	ck_assert_uint_eq(read_row(RT_STOP_FORK).count, STOPS);
}

TEST(a_stop_in_part_is_found)
{
	stoptable_reset(&table);
	ck_assert_ptr_null(stoptable_check(&table));
	atomic_u64_store_relaxed(&table.row[STOPTABLE_HOST].begun, 1);
	ck_assert_str_eq(stoptable_check(&table), "stop is recorded in part");
}
