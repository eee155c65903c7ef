// Numbers and enumerations that are not what a header asks for.
#include "test/whole/misuse.h"

#include <limits.h>

GROUP(numbers);

TEST(percentages_of_any_size)
{
	static const int percent[] = {0,  1,  100,     INT_MAX,
				      -1, -2, INT_MIN, 1000000};
	int expected = 100;

	begin();
	for (size_t i = 0; i < RT_ARRAY_LEN(percent); i++) {
		int old = 4711;
		const char *name = with_number("percent", percent[i]);

		JUDGE(name, rt_set_gc_percent(percent[i], &old), RT_OK);
		judge("the percentage before", name, old, expected);
		expected = percent[i] < 0 ? -1 : percent[i];
		rt_read_memstats(&stats);
		judge("next_gc is off", name, stats.next_gc == UINT64_MAX,
		      percent[i] < 0);
		JUDGE(name, some(rt_alloc(64)), SOME);
	}
	heap_healthy();
	finish(4 * RT_ARRAY_LEN(percent));
}

// A size of more than 1 TiB is refused and changes nothing.
TEST(least_goals_of_any_size)
{
	static const size_t sizes[] = {
	    1,	      (size_t)1 << 40, 0, 4 << 20, ((size_t)1 << 40) + 1,
	    SIZE_MAX, (size_t)1 << 63,
	};
	size_t expected = 4 << 20;

	begin();
	for (size_t i = 0; i < RT_ARRAY_LEN(sizes); i++) {
		size_t old = 4711;
		bool ok = sizes[i] <= (size_t)1 << 40;
		const char *name = with_number("least goal", (long)sizes[i]);

		JUDGE(name, rt_set_heap_min(sizes[i], &old),
		      ok ? RT_OK : RT_EINVAL);
		judge("the size before", name, (long)old,
		      ok ? (long)expected : 4711);
		if (ok)
			expected = sizes[i] == 0 ? 4 << 20 : sizes[i];
		JUDGE(name, some(rt_alloc(64)), SOME);
	}
	heap_healthy();
	finish(3 * RT_ARRAY_LEN(sizes));
}

// A limit below 0 is refused.  The heap works with any other, even 0.
TEST(memory_limits_of_any_size)
{
	static const int64_t limits[] = {
	    0,	       1,  4096,     1 << 20,	    INT64_MAX,
	    INT64_MIN, -1, 64 << 20, INT64_MAX - 1, 0,
	};
	int64_t expected = INT64_MAX;

	begin();
	for (size_t i = 0; i < RT_ARRAY_LEN(limits); i++) {
		int64_t old = 4711;
		bool ok = limits[i] >= 0;
		const char *name = with_number("limit", (long)limits[i]);

		JUDGE(name, rt_set_memory_limit(limits[i], &old),
		      ok ? RT_OK : RT_EINVAL);
		judge("the limit before", name, (long)old,
		      ok ? (long)expected : 4711);
		if (ok)
			expected = limits[i];
		judge("the metric", name,
		      (long)heap_metric("/gc/gomemlimit:bytes"),
		      (long)expected);
		for (unsigned j = 0; j < 5000; j++)
			JUDGE(name, some(rt_alloc(64)), SOME);
		JUDGE(name, some(rt_alloc_noscan(1 << 20)), SOME);
	}
	heap_healthy();
	finish(4 * RT_ARRAY_LEN(limits));
}

// No number is refused.  After any number the heap works again once the limit
// is high enough.
TEST(limits_of_the_heap_of_any_size)
{
	static const size_t sizes[] = {
	    1,
	    4096,
	    8191,
	    8192,
	    1 << 20,
	    0,
	    64 << 20,
	    (size_t)1 << 30,
	    (size_t)1 << 40,
	    SIZE_MAX,
	    SIZE_MAX,
	    96 << 20,
	    (size_t)1 << 63,
	    SIZE_MAX - 4096,
	    0,
	};
	size_t range, expected;

	begin();
	range = expected = heap_metric("/gc/heap/max:bytes");
	for (size_t i = 0; i < RT_ARRAY_LEN(sizes); i++) {
		size_t old = 4711;
		const char *name = with_number("limit", (long)sizes[i]);
		bool room;

		JUDGE(name, rt_set_heap_max(sizes[i], &old), RT_OK);
		judge("the limit before", name, (long)old, (long)expected);
		expected = sizes[i] == 0 || sizes[i] > range ? range : sizes[i];
		judge("the metric", name,
		      (long)heap_metric("/gc/heap/max:bytes"), (long)expected);
		room = expected > 16 << 20;
		JUDGE(name, some(rt_alloc_noscan(12 << 20)),
		      room ? SOME : NOTHING);
	}
	heap_healthy();
	finish(4 * RT_ARRAY_LEN(sizes));
}

// The sum stays from 0 to INT64_MAX, and the goal follows without wrapping.
TEST(external_bytes_of_any_number)
{
	static const struct {
		int64_t delta;
		uint64_t sum;
	} moves[] = {
	    {-1, 0},
	    {5, 5},
	    {-6, 0},
	    {INT64_MIN, 0},
	    {INT64_MAX, INT64_MAX},
	    {1, INT64_MAX},
	    {INT64_MAX, INT64_MAX},
	    {-INT64_MAX, 0},
	    {INT64_MAX, INT64_MAX},
	    {INT64_MIN, 0},
	    {1 << 20, 1 << 20},
	    {-(1 << 20), 0},
	};

	begin();
	for (size_t i = 0; i < RT_ARRAY_LEN(moves); i++) {
		const char *name = with_number("external", moves[i].delta);

		JUDGE(name, rt_adjust_external(moves[i].delta), RT_OK);
		judge("the sum", name,
		      heap_metric("/memory/external:bytes") != moves[i].sum, 0);
		JUDGE(name, some(rt_alloc(64)), SOME);
		JUDGE(name, rt_gc(), RT_OK);
		rt_read_memstats(&stats);
		judge("the goal", name, stats.next_gc < moves[i].sum, 0);
	}
	heap_healthy();
	finish(5 * RT_ARRAY_LEN(moves));
}

TEST(unknown_modes_of_double_check)
{
	static const int modes[] = {-1, 3, 4, 256, INT_MAX, INT_MIN};

	begin();
	for (size_t i = 0; i < RT_ARRAY_LEN(modes); i++)
		JUDGE("unknown mode", rt_set_memstats_double_check(modes[i]),
		      RT_EINVAL);
	for (int mode = RT_CHECK_OFF; mode <= RT_CHECK_REPORT; mode++)
		JUDGE("known mode", rt_set_memstats_double_check(mode), RT_OK);
	finish(9);
}

TEST(rooms_for_gcstats)
{
	static uint64_t pauses[RT_GCSTATS_WORDS];
	static const size_t short_rooms[] = {0, 1, 3, RT_GCSTATS_WORDS - 1};
	size_t used = 4711;
	begin();
	memset(pauses, 0x5a, sizeof pauses);
	for (size_t i = 0; i < RT_ARRAY_LEN(short_rooms); i++)
		JUDGE("short", rt_read_gcstats(pauses, short_rooms[i], &used),
		      RT_EINVAL);
	judge("used", "untouched", (long)used, 4711);
	judge("buf", "untouched", pauses[0] == UINT64_C(0x5a5a5a5a5a5a5a5a), 1);
	JUDGE("much room", rt_read_gcstats(pauses, SIZE_MAX, &used), RT_OK);
	judge("used", "no collection yet", (long)used, 3);
	finish(8);
}

TEST(metrics_asked_wrongly)
{
	static const char *const names[] = {
	    NULL,
	    "",
	    "/",
	    "/gc/heap/live",
	    "/gc/heap/live:byte",
	    "/gc/heap/live:bytess",
	    "/gc/heap/live:bytes ",
	    "/a",
	    "gc/heap/live:bytes",
	    "/GC/heap/live:bytes",
	    "/zzz",
	    "\xff\xff",
	};
	static const size_t beyond[] = {0, 1, SIZE_MAX / 2, SIZE_MAX - 1000};
	rt_metric_sample s;
	rt_metric_desc d;
	uint64_t one;

	begin();
	for (size_t i = 0; i < RT_ARRAY_LEN(names); i++) {
		const char *name = names[i] ? names[i] : "(null)";

		s = (rt_metric_sample){.name = names[i],
				       .result = RT_METRIC_U64,
				       .counts = &one,
				       .ncounts = 1};
		JUDGE(name, rt_metrics_read(&s, 1), RT_OK);
		judge("result", name, (long)s.result, RT_METRIC_BAD);
		judge("ncounts", name, (long)s.ncounts, 0);
	}
	for (size_t i = 0; i < RT_ARRAY_LEN(beyond); i++)
		JUDGE("beyond",
		      rt_metrics_describe(rt_metrics_count() + beyond[i], &d),
		      RT_ENOENT);
	JUDGE("SIZE_MAX", rt_metrics_describe(SIZE_MAX, &d), RT_ENOENT);
	for (size_t i = 0; i < rt_metrics_count(); i++) {
		rt_metrics_describe(i, &d);
		if (d.result != RT_METRIC_HISTOGRAM)
			continue;
		s = (rt_metric_sample){.name = d.name, .ncounts = 100000};
		judge(d.name, "counts null", rt_metrics_read(&s, 1), RT_OK);
		judge(d.name, "result", (long)s.result, RT_METRIC_BAD);
		judge(d.name, "needed", (long)s.ncounts, (long)d.ncounts);
		s = (rt_metric_sample){
		    .name = d.name, .counts = &one, .ncounts = 1};
		one = 4711;
		judge(d.name, "counts short", rt_metrics_read(&s, 1), RT_OK);
		judge(d.name, "result", (long)s.result, RT_METRIC_BAD);
		judge(d.name, "needed", (long)s.ncounts, (long)d.ncounts);
		judge(d.name, "room untouched", (long)one, 4711);
	}
	finish(40);
}
