// The double check of statistics: what it finds, and what it says.
#include "test/unit/mstats.h"

#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "test/harness/death.h"

GROUP(double_check, .timeout = 120);

// A corruption, and which of the six comparisons finds it.
struct corruption {
	atomic_u64 *gauge;   // NULL: a consistent statistic
	size_t field;	     // in struct heapstats_delta
	unsigned comparison; // 0 .. 5
};

#define CONSISTENT(f, i)                                                       \
	{                                                                      \
		NULL, offsetof(struct heapstats_delta, f), i                   \
	}
#define GAUGE(f, i)                                                            \
	{                                                                      \
		&gauges.f, 0, i                                                \
	}

#define HEAPGAUGE(f, i)                                                        \
	{                                                                      \
		&heapgauges.no_p[HEAPGAUGE_##f], 0, i                          \
	}

static const struct corruption corruptions[] = {
    HEAPGAUGE(IN_USE, 0),
    CONSISTENT(in_heap, 0),
    HEAPGAUGE(RELEASED, 1),
    CONSISTENT(released, 1),
    HEAPGAUGE(FREE, 2),
    CONSISTENT(committed, 2),
    CONSISTENT(in_stacks, 2),
    CONSISTENT(in_work_bufs, 2),
    HEAPGAUGE(TOTAL_ALLOC, 3),
    CONSISTENT(large_alloc, 3),
    CONSISTENT(small_alloc_count[9], 3),
    HEAPGAUGE(TOTAL_FREE, 4),
    CONSISTENT(large_free, 4),
    CONSISTENT(small_free_count[67], 4),
    GAUGE(mapped_ready, 5),
    GAUGE(other_sys, 5),
    GAUGE(gc_misc_sys, 5),
    GAUGE(mcache_sys, 5),
    GAUGE(mspan_sys, 5),
    GAUGE(stacks_sys, 5),
    GAUGE(buckhash_sys, 5),
};
enum { CORRUPTIONS = RT_ARRAY_LEN(corruptions) };

static char expected_lines[400]; // what is printed about the values
static const char *expected_message;

static void corrupt(const struct corruption *c)
{
	struct heapstats_delta *d;

	if (c->gauge) {
		atomic_u64_add_relaxed(c->gauge, 1); // a part may be negative
		return;
	}
	d = heapstats_acquire(proc_self());
	heapstats_add((atomic_u64 *)((char *)d + c->field), 1);
	heapstats_release(proc_self());
}

static void expect_pair(const char *name, uint64_t value, uint64_t other)
{
	snprintf(expected_lines, sizeof expected_lines,
		 "runtime: %s=%llu\nruntime: consistent value=%llu\n", name,
		 (unsigned long long)value, (unsigned long long)other);
}

// expect_text notes Go's lines and its message for a comparison, with the
// values that the counters have now.
static void expect_text(unsigned comparison)
{
	static const char *const message[] = {
	    "heapInUse and consistent stats are not equal",
	    "heapReleased and consistent stats are not equal",
	    "measures of the retained heap are not equal",
	    "totalAlloc and consistent stats are not equal",
	    "totalFree and consistent stats are not equal",
	    "mappedReady and other memstats are not equal",
	};
	const struct heapstats_totals *h = &totals;
	uint64_t sys, ready;

	heapstats_read(&totals);
	expected_message = message[comparison];
	switch (comparison) {
	case 0:
		expect_pair("heapInUse", heapgauge_sum(HEAPGAUGE_IN_USE),
			    h->in_heap);
		break;
	case 1:
		expect_pair("heapReleased", heapgauge_sum(HEAPGAUGE_RELEASED),
			    h->released);
		break;
	case 2:
		expect_pair("global value",
			    heapgauge_sum(HEAPGAUGE_IN_USE) +
				heapgauge_sum(HEAPGAUGE_FREE),
			    h->committed - h->in_stacks - h->in_work_bufs);
		break;
	case 3:
		expect_pair("totalAlloc", heapgauge_sum(HEAPGAUGE_TOTAL_ALLOC),
			    bytes_allocated());
		break;
	case 4:
		expect_pair("totalFree", heapgauge_sum(HEAPGAUGE_TOTAL_FREE),
			    bytes_freed());
		break;
	default:
		live_into(&after); // its sys is the same sum
		sys = after.sys;
		ready = gauge_load(&gauges.mapped_ready);
		snprintf(expected_lines, sizeof expected_lines,
			 "runtime: mappedReady=%llu\n"
			 "runtime: totalMapped=%llu\n"
			 "runtime: released=%llu\n"
			 "runtime: totalMapped-released=%llu\n",
			 (unsigned long long)ready, (unsigned long long)sys,
			 (unsigned long long)h->released,
			 (unsigned long long)(sys - h->released));
	}
}

// prepare makes a heap with some past, flushed, and one counter wrong.
static void prepare(int i)
{
	history_large();
	rt_gc();
	many(100, 2000, false);
	read_into(&before);
	corrupt(&corruptions[i]);
	expect_text(corruptions[i].comparison);
}

// on_fatal lets the process abort if the text is right.  Otherwise it ends the
// process in another way.
static void on_fatal(const char *text, void *arg)
{
	char want[600];

	snprintf(want, sizeof want, "%srtheap: fatal: %s", expected_lines,
		 expected_message);
	if (arg == &expected_message && strcmp(text, want) == 0)
		return;
	fprintf(stderr, "got:\n%s\nwanted:\n%s\n", text, want);
	_exit(EXIT_FAILURE);
}

TEST(fatal_throws_what_go_throws, .n = CORRUPTIONS, .signal = SIGABRT)
{
	begin();
	prepare(_i);
	rt_set_fatal_handler(on_fatal, &expected_message);
	rt_read_memstats(&after);
}

static unsigned warnings;
static char warned[600];

static void on_warn(const char *text, void *arg)
{
	ck_assert_ptr_eq(arg, &warnings);
	ck_assert_int_eq(rt_world_stopped(), 0);
	ck_assert_ptr_nonnull(rt_alloc(16)); // anything is allowed
	warnings++;
	snprintf(warned, sizeof warned, "%s", text);
}

static void check_warning(unsigned n)
{
	char want[600];

	snprintf(want, sizeof want, "%s%s", expected_lines, expected_message);
	ck_assert_uint_eq(warnings, n);
	ck_assert_str_eq(warned, want);
}

// begin_wrong makes a heap with a wrong counter that a mode may report to
// on_warn.
static void begin_wrong(int i, int mode)
{
	begin();
	prepare(i);
	ck_assert_int_eq(rt_set_warn_handler(on_warn, &warnings), RT_OK);
	ck_assert_int_eq(rt_set_memstats_double_check(mode), RT_OK);
}

TEST(report_says_it_and_goes_on, .n = CORRUPTIONS)
{
	begin_wrong(_i, RT_CHECK_REPORT);
	read_into(&after);
	check_warning(1);
	ck_assert_uint_gt(after.mallocs, 0);
	ck_assert_uint_eq(after.enable_gc, 1);
	read_into(&after);
	ck_assert_uint_eq(warnings, 2);
}

TEST(report_of_an_own_stop_comes_when_it_has_ended)
{
	begin_wrong(0, RT_CHECK_REPORT);
	ck_assert_int_eq(rt_stop_the_world(RT_STOP_HOST), RT_OK);
	read_into(&after);
	read_into(&after);
	ck_assert_uint_eq(warnings, 0);
	ck_assert_int_eq(rt_start_the_world(NULL), RT_OK);
	check_warning(1);
	ck_assert_int_eq(rt_stop_the_world(RT_STOP_HOST), RT_OK);
	ck_assert_int_eq(rt_start_the_world(NULL), RT_OK);
	ck_assert_uint_eq(warnings, 1);
}

static void *read_and_exit_stopped(void *arg)
{
	ck_assert_int_eq(rt_thread_attach(0), RT_OK);
	ck_assert_int_eq(rt_stop_the_world(RT_STOP_HOST), RT_OK);
	read_into(&after);
	return arg;
}

// A thread that exits in its own stop ends the stop, and reports as any other
// thread does.
TEST(report_of_a_thread_that_exits_comes_from_it)
{
	begin_wrong(0, RT_CHECK_REPORT);
	ck_assert_int_eq(rt_blocking_enter(), RT_OK);
	run_thread(read_and_exit_stopped, NULL);
	check_warning(1);
	ck_assert_int_eq(rt_blocking_leave(), RT_OK);
}

TEST(report_needs_no_handler)
{
	begin();
	prepare(0);
	ck_assert_int_eq(rt_set_memstats_double_check(RT_CHECK_REPORT), RT_OK);
	read_into(&after);
	ck_assert_uint_eq(after.enable_gc, 1);
}

TEST(off_says_nothing, .n = CORRUPTIONS)
{
	begin_wrong(_i, RT_CHECK_OFF);
	read_into(&after);
	ck_assert_uint_eq(warnings, 0);
	ck_assert_uint_eq(after.enable_gc, 1);
}

TEST(a_sound_heap_is_not_reported)
{
	begin_with(false, RT_CHECK_REPORT);
	ck_assert_int_eq(rt_set_warn_handler(on_warn, &warnings), RT_OK);
	history_released();
	read_into(&after);
	ck_assert_uint_eq(warnings, 0);
}

TEST(counters_of_a_world_that_runs_are_not_compared, .exit = DEATH_EXPECTED)
{
	struct text t;

	begin();
	death_expect("rtheap: fatal: world not stopped");
	mstats_read(&after, &t);
}
