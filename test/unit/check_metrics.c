// Metrics by name: which there are, and that they agree with the statistics.
#include "test/harness/suite.h"

#include <math.h>
#include <string.h>

#include "gc/stats/metrics.h"
#include "runtime/base/sizeclass.h"

static struct snapshot snapshot;
static struct histogram stopping[2], total[2];
static uint64_t counts[HISTOGRAM_COUNTS];

// Every input has a value of its own, so that no two can be taken for each
// other: powers of two for bytes, small sums for counts.
static void setup(void)
{
	struct heapstats_totals *h = &snapshot.heap;

	memset(&snapshot, 0, sizeof snapshot);
	for (unsigned c = 1; c < SIZECLASS_COUNT; c++) {
		h->small_alloc_count[c] = 1000 + 3 * c;
		h->small_free_count[c] = 100 + c;
	}
	h->large_alloc = 9 << 20;
	h->large_alloc_count = 77;
	h->large_free = 4 << 20;
	h->large_free_count = 33;
	h->tiny_alloc_count = 555;
	h->in_heap = UINT64_C(1) << 40;
	h->in_stacks = UINT64_C(1) << 33;
	h->in_work_bufs = UINT64_C(1) << 34;
	h->in_ptr_scalar_bits = UINT64_C(1) << 35;
	h->committed = UINT64_C(1) << 41;
	h->released = UINT64_C(1) << 36;
	snapshot.heapgauges[HEAPGAUGE_IN_USE] = h->in_heap;
	snapshot.heapgauges[HEAPGAUGE_RELEASED] = h->released;
	snapshot.heapgauges[HEAPGAUGE_FREE] = h->committed - h->in_heap -
					      h->in_stacks - h->in_work_bufs -
					      h->in_ptr_scalar_bits;
	snapshot.cycles = (struct gcstats_cycles){
	    .num_gc = (UINT64_C(1) << 32) + 12,
	    .num_forced_gc = 5,
	    .scan_heap = 100,
	    .scan_stack = 20,
	    .scan_globals = 3,
	    .past_end_objects = 9,
	    .helped_objects = 11,
	};
	snapshot.cpu =
	    (struct cpustats){1, 2, 4, 8, 15, 16, 32, 48, 64, 128, 255};
	snapshot.sweep = (struct gcstats_sweep){.cpu = {512, 1024}, .wall = 7};
	snapshot.stacks_sys = 1 << 10;
	snapshot.mspan_sys = 1 << 12;
	snapshot.mspan_inuse = 1 << 11;
	snapshot.mcache_sys = 1 << 15;
	snapshot.mcache_inuse = 1 << 13;
	snapshot.buckhash_sys = 1 << 16;
	snapshot.gc_misc_sys = 1 << 17;
	snapshot.other_sys = 1 << 18;
	snapshot.heap_goal = 12345;
	snapshot.heap_used = 54321;
	snapshot.phase = 2;
	snapshot.heap_marked = 6789;
	snapshot.gc_percent = 150;
	snapshot.memory_limit = INT64_MAX;
	snapshot.heap_max = 1 << 26;
	snapshot.max_procs = 8;
	snapshot.nthreads = 3;
	snapshot.stopping = stopping;
	snapshot.total = total;
}

static rt_metric_sample read_one(const char *name)
{
	rt_metric_sample sample = {
	    .name = name,
	    .result = 99,
	    .counts = counts,
	    .ncounts = RT_ARRAY_LEN(counts),
	};

	memset(counts, 0xaa, sizeof counts);
	metrics_fill(&snapshot, &sample, 1);
	return sample;
}

static uint64_t u64_of(const char *name)
{
	rt_metric_sample sample = read_one(name);

	ck_assert_msg(sample.result == RT_METRIC_U64, "%s", name);
	return sample.u64;
}

// ns_of returns a metric that is in seconds in ns, rounded.
static uint64_t ns_of(const char *name)
{
	rt_metric_sample sample = read_one(name);

	ck_assert_msg(sample.result == RT_METRIC_F64, "%s", name);
	return (uint64_t)llround(sample.f64 * 1e9);
}

static rt_metric_desc desc_of(size_t i)
{
	rt_metric_desc d;

	ck_assert_int_eq(rt_metrics_describe(i, &d), RT_OK);
	return d;
}

GROUP(metrics, .setup = setup);

TEST(names_are_sorted_and_distinct)
{
	for (size_t i = 1; i < rt_metrics_count(); i++)
		ck_assert_int_lt(strcmp(desc_of(i - 1).name, desc_of(i).name),
				 0);
}

TEST(every_metric_is_described)
{
	for (size_t i = 0; i < rt_metrics_count(); i++) {
		rt_metric_desc d = desc_of(i);
		const char *unit = strchr(d.name, ':');
		size_t len = strlen(d.description);

		ck_assert_int_eq(d.name[0], '/');
		ck_assert_msg(unit && unit[1] && !strchr(unit + 1, ':'), "%s",
			      d.name);
		ck_assert_msg(len > 10 && d.description[len - 1] == '.', "%s",
			      d.name);
		ck_assert_msg(d.result >= RT_METRIC_U64 &&
				  d.result <= RT_METRIC_HISTOGRAM,
			      "%s", d.name);
		ck_assert_uint_le(d.cumulative, 1);
		ck_assert_int_eq(d.ncounts > 0,
				 d.result == RT_METRIC_HISTOGRAM);
	}
}

TEST(every_described_name_is_read_with_its_result)
{
	for (size_t i = 0; i < rt_metrics_count(); i++) {
		rt_metric_desc d = desc_of(i);
		rt_metric_sample sample = read_one(d.name);

		ck_assert_uint_eq(sample.result, d.result);
		if (d.result == RT_METRIC_HISTOGRAM)
			ck_assert_uint_eq(sample.ncounts, d.ncounts);
	}
}

// sum_of_others returns the sum of all metrics with a prefix, but for one.
static uint64_t sum_of_others(const char *prefix, const char *but)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < rt_metrics_count(); i++) {
		rt_metric_desc d = desc_of(i);

		if (strncmp(d.name, prefix, strlen(prefix)) == 0 &&
		    strcmp(d.name, but) != 0)
			sum += u64_of(d.name);
	}
	return sum;
}

TEST(memory_classes_add_up_to_their_total)
{
	const char *name = "/memory/classes/total:bytes";
	uint64_t want = (UINT64_C(1) << 41) + (UINT64_C(1) << 36) + (1 << 10) +
			(1 << 12) + (1 << 15) + (1 << 16) + (1 << 17) +
			(1 << 18);

	ck_assert_uint_eq(u64_of(name), want);
	ck_assert_uint_eq(sum_of_others("/memory/classes/", name), want);
}

// Gauges are loaded one after the other, so more may be in use than was mapped.
TEST(memory_classes_add_up_when_gauges_move)
{
	const char *name = "/memory/classes/total:bytes";

	snapshot.mspan_inuse = snapshot.mspan_sys + 160;
	snapshot.mcache_inuse = UINT64_MAX;
	ck_assert_uint_eq(u64_of("/memory/classes/metadata/mspan/free:bytes"),
			  0);
	ck_assert_uint_eq(sum_of_others("/memory/classes/", name),
			  u64_of(name));
}

TEST(memory_classes_are_their_counters)
{
	const struct heapstats_totals *h = &snapshot.heap;
	uint64_t objects =
	    u64_of("/gc/heap/allocs:bytes") - u64_of("/gc/heap/frees:bytes");

	ck_assert_uint_eq(u64_of("/memory/classes/heap/objects:bytes"),
			  objects);
	ck_assert_uint_eq(u64_of("/memory/classes/heap/unused:bytes"),
			  h->in_heap - objects);
	ck_assert_uint_eq(u64_of("/memory/classes/heap/free:bytes"),
			  h->committed - h->in_heap - h->in_stacks -
			      h->in_work_bufs - h->in_ptr_scalar_bits);
	ck_assert_uint_eq(u64_of("/memory/classes/heap/released:bytes"),
			  h->released);
	ck_assert_uint_eq(u64_of("/memory/classes/heap/stacks:bytes"),
			  h->in_stacks);
	ck_assert_uint_eq(u64_of("/memory/classes/metadata/mcache/inuse:bytes"),
			  1 << 13);
	ck_assert_uint_eq(u64_of("/memory/classes/metadata/mcache/free:bytes"),
			  (1 << 15) - (1 << 13));
	ck_assert_uint_eq(u64_of("/memory/classes/metadata/mspan/inuse:bytes"),
			  1 << 11);
	ck_assert_uint_eq(u64_of("/memory/classes/metadata/mspan/free:bytes"),
			  1 << 11);
	ck_assert_uint_eq(u64_of("/memory/classes/metadata/other:bytes"),
			  (1 << 17) + h->in_work_bufs + h->in_ptr_scalar_bits);
	ck_assert_uint_eq(u64_of("/memory/classes/os-stacks:bytes"), 1 << 10);
	ck_assert_uint_eq(u64_of("/memory/classes/other:bytes"), 1 << 18);
	ck_assert_uint_eq(u64_of("/memory/classes/profiling/buckets:bytes"),
			  1 << 16);
}

TEST(heap_counts_are_sums_over_classes)
{
	uint64_t allocs = 77, alloc_bytes = 9 << 20;
	uint64_t frees = 33, free_bytes = 4 << 20;

	for (unsigned c = 1; c < SIZECLASS_COUNT; c++) {
		allocs += 1000 + 3 * c;
		frees += 100 + c;
		alloc_bytes += (1000 + 3 * c) * sizeclass_table[c].size;
		free_bytes += (100 + c) * sizeclass_table[c].size;
	}
	ck_assert_uint_eq(u64_of("/gc/heap/allocs:objects"), allocs);
	ck_assert_uint_eq(u64_of("/gc/heap/allocs:bytes"), alloc_bytes);
	ck_assert_uint_eq(u64_of("/gc/heap/frees:objects"), frees);
	ck_assert_uint_eq(u64_of("/gc/heap/frees:bytes"), free_bytes);
	ck_assert_uint_eq(u64_of("/gc/heap/objects:objects"), allocs - frees);
	ck_assert_uint_eq(u64_of("/gc/heap/tiny/allocs:objects"), 555);
	ck_assert_uint_eq(u64_of("/gc/heap/trigger:bytes"), 12345);
	ck_assert_uint_eq(u64_of("/gc/heap/used:bytes"), 54321);
	ck_assert_uint_eq(u64_of("/gc/phase:state"), 2);
	ck_assert_uint_eq(u64_of("/gc/heap/goal:bytes"), 12345);
	ck_assert_uint_eq(u64_of("/gc/heap/live:bytes"), 6789);
}

TEST(class_zero_is_no_size)
{
	uint64_t allocs = u64_of("/gc/heap/allocs:objects");

	snapshot.heap.small_alloc_count[0] = 1000000;
	snapshot.heap.small_free_count[0] = 1000000;
	ck_assert_uint_eq(u64_of("/gc/heap/allocs:objects"), allocs);
}

TEST(cycles_limits_and_scans_are_as_recorded)
{
	uint64_t cycles = (UINT64_C(1) << 32) + 12;

	ck_assert_uint_eq(u64_of("/gc/cycles/total:gc-cycles"), cycles);
	ck_assert_uint_eq(u64_of("/gc/cycles/forced:gc-cycles"), 5);
	ck_assert_uint_eq(u64_of("/gc/cycles/automatic:gc-cycles"), cycles - 5);
	ck_assert_uint_eq(u64_of("/gc/gogc:percent"), 150);
	ck_assert_uint_eq(u64_of("/gc/gomemlimit:bytes"), INT64_MAX);
	ck_assert_uint_eq(u64_of("/gc/heap/max:bytes"), 1 << 26);
	ck_assert_uint_eq(u64_of("/gc/scan/heap:bytes"), 100);
	ck_assert_uint_eq(u64_of("/gc/scan/stack:bytes"), 20);
	ck_assert_uint_eq(u64_of("/gc/scan/globals:bytes"), 3);
	ck_assert_uint_eq(u64_of("/gc/scan/total:bytes"), 123);
	ck_assert_uint_eq(u64_of("/gc/scan/past-end:objects"), 9);
	ck_assert_uint_eq(u64_of("/gc/mark/helpers:objects"), 11);
	ck_assert_uint_eq(u64_of("/sched/gomaxprocs:threads"), 8);
	ck_assert_uint_eq(u64_of("/sched/threads/attached:threads"), 3);
	snapshot.gc_percent = -1;
	ck_assert_uint_eq(u64_of("/gc/gogc:percent"), UINT64_MAX);
}

TEST(cpu_classes_are_seconds)
{
	ck_assert_uint_eq(ns_of("/cpu/classes/gc/mark/assist:cpu-seconds"), 1);
	ck_assert_uint_eq(ns_of("/cpu/classes/gc/mark/dedicated:cpu-seconds"),
			  2);
	ck_assert_uint_eq(ns_of("/cpu/classes/gc/mark/idle:cpu-seconds"), 4);
	ck_assert_uint_eq(ns_of("/cpu/classes/gc/pause:cpu-seconds"), 8);
	ck_assert_uint_eq(ns_of("/cpu/classes/gc/total:cpu-seconds"), 15);
	ck_assert_uint_eq(ns_of("/cpu/classes/scavenge/assist:cpu-seconds"),
			  16);
	ck_assert_uint_eq(ns_of("/cpu/classes/scavenge/background:cpu-seconds"),
			  32);
	ck_assert_uint_eq(ns_of("/cpu/classes/scavenge/total:cpu-seconds"), 48);
	ck_assert_uint_eq(ns_of("/cpu/classes/idle:cpu-seconds"), 64);
	ck_assert_uint_eq(ns_of("/cpu/classes/user:cpu-seconds"), 128);
	ck_assert_uint_eq(ns_of("/cpu/classes/total:cpu-seconds"), 255);
}

TEST(times_of_sweeping_are_seconds)
{
	ck_assert_uint_eq(ns_of("/gc/sweep/assist:cpu-seconds"), 512);
	ck_assert_uint_eq(ns_of("/gc/sweep/background:cpu-seconds"), 1024);
	ck_assert_uint_eq(ns_of("/gc/sweep/total:cpu-seconds"), 1536);
	ck_assert_uint_eq(ns_of("/gc/sweep/duration:seconds"), 7);
}

// check_by_size requires that count i is that of class i + 1, and the last
// count that of large objects.
static void check_by_size(const char *name, const uint64_t *small,
			  uint64_t large)
{
	rt_metric_sample sample = read_one(name);

	ck_assert_uint_eq(sample.ncounts, SIZECLASS_COUNT);
	for (unsigned c = 1; c < SIZECLASS_COUNT; c++)
		ck_assert_uint_eq(counts[c - 1], small[c]);
	ck_assert_uint_eq(counts[SIZECLASS_COUNT - 1], large);
	ck_assert_uint_eq(counts[SIZECLASS_COUNT],
			  UINT64_C(0xaaaaaaaaaaaaaaaa));
}

TEST(objects_by_size_are_those_of_the_classes)
{
	check_by_size("/gc/heap/allocs-by-size:bytes",
		      snapshot.heap.small_alloc_count, 77);
	check_by_size("/gc/heap/frees-by-size:bytes",
		      snapshot.heap.small_free_count, 33);
}

TEST(edges_by_size_are_one_above_the_classes)
{
	const double *edges = read_one("/gc/heap/allocs-by-size:bytes").edges;

	for (unsigned c = 0; c < SIZECLASS_COUNT; c++)
		ck_assert(edges[c] == sizeclass_table[c].size + 1.0);
	ck_assert(edges[0] == 1 && edges[1] == 9 && edges[2] == 17);
	ck_assert(edges[3] == 25 && edges[67] == 32769);
	ck_assert(isinf(edges[68]) && edges[68] > 0);
	ck_assert_ptr_eq(edges, read_one("/gc/heap/frees-by-size:bytes").edges);
}

static void record(struct histogram *h, int times)
{
	while (times-- > 0)
		histogram_record(h, 70); // ns
}

// The count of a bucket tells which histogram a metric reads.
TEST(pauses_come_from_their_histograms)
{
	static const struct {
		const char *name;
		uint64_t count;
	} want[] = {
	    {"/sched/pauses/stopping/gc:seconds", 1},
	    {"/sched/pauses/stopping/other:seconds", 2},
	    {"/sched/pauses/total/gc:seconds", 3},
	    {"/sched/pauses/total/other:seconds", 4},
	    {"/gc/pauses:seconds", 3},
	};

	record(&stopping[GCSTATS_GC], 1);
	record(&stopping[GCSTATS_OTHER], 2);
	record(&total[GCSTATS_GC], 3);
	record(&total[GCSTATS_OTHER], 4);
	for (size_t i = 0; i < RT_ARRAY_LEN(want); i++) {
		rt_metric_sample sample = read_one(want[i].name);

		ck_assert_uint_eq(sample.ncounts, HISTOGRAM_COUNTS);
		ck_assert_ptr_eq(sample.edges, histogram_edges());
		ck_assert_uint_eq(counts[2], want[i].count);
		ck_assert(sample.edges[2] < 70e-9 && sample.edges[3] > 70e-9);
	}
}

TEST(too_little_room_tells_what_is_needed)
{
	for (size_t i = 0; i < rt_metrics_count(); i++) {
		rt_metric_desc d = desc_of(i);
		rt_metric_sample sample = {
		    .name = d.name, .counts = counts, .ncounts = d.ncounts - 1};

		if (d.result != RT_METRIC_HISTOGRAM)
			continue;
		counts[0] = 4711;
		metrics_fill(&snapshot, &sample, 1);
		ck_assert_uint_eq(sample.result, RT_METRIC_BAD);
		ck_assert_uint_eq(sample.ncounts, d.ncounts);
		ck_assert_uint_eq(counts[0], 4711);
		ck_assert_ptr_null(sample.edges);

		// The same sample has enough room now.
		metrics_fill(&snapshot, &sample, 1);
		ck_assert_uint_eq(sample.result, RT_METRIC_HISTOGRAM);

		sample.counts = NULL;
		metrics_fill(&snapshot, &sample, 1);
		ck_assert_uint_eq(sample.result, RT_METRIC_BAD);
		ck_assert_uint_eq(sample.ncounts, d.ncounts);
	}
}

// Names may be repeated, unknown ones may lie between known ones, and there may
// be no sample at all.
TEST(samples_are_independent)
{
	rt_metric_sample samples[] = {
	    {.name = "/gc/heap/goal:bytes"},
	    {.name = "/no/such:bytes"},
	    {.name = "/gc/heap/goal:bytes"},
	    {.name = "/cpu/classes/total:cpu-seconds"},
	};

	metrics_fill(&snapshot, samples, 0);
	ck_assert_uint_eq(samples[0].u64, 0);
	metrics_fill(&snapshot, samples, RT_ARRAY_LEN(samples));
	ck_assert_uint_eq(samples[0].u64, 12345);
	ck_assert_uint_eq(samples[1].result, RT_METRIC_BAD);
	ck_assert_uint_eq(samples[2].u64, 12345);
	ck_assert_uint_eq(samples[3].result, RT_METRIC_F64);
}

// Go's table says which metrics may fall.
TEST(cumulative_metrics_are_those_that_never_fall)
{
	static const char *const levels[] = {
	    "/gc/gogc:percent",	      "/gc/gomemlimit:bytes",
	    "/gc/heap/goal:bytes",    "/gc/heap/live:bytes",
	    "/gc/heap/max:bytes",     "/gc/heap/objects:objects",
	    "/gc/heap/trigger:bytes", "/gc/heap/used:bytes",
	    "/gc/phase:state",	      "/gc/scan/globals:bytes",
	    "/gc/scan/heap:bytes",    "/gc/scan/stack:bytes",
	    "/gc/scan/total:bytes",
	};
	size_t nlevels = 0;

	for (size_t i = 0; i < rt_metrics_count(); i++) {
		rt_metric_desc d = desc_of(i);
		bool level = strncmp(d.name, "/memory/", 8) == 0 ||
			     strstr(d.name, ":threads") != NULL;

		for (size_t j = 0; j < RT_ARRAY_LEN(levels); j++)
			level |= strcmp(d.name, levels[j]) == 0;
		nlevels += level;
		ck_assert_msg(d.cumulative == !level, "%s", d.name);
	}
	ck_assert_uint_eq(nlevels, RT_ARRAY_LEN(levels) + 17 + 2);
}
