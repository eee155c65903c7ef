// Which stops are counted, and how long they were: the histograms of each
// reason, pauses, and what a clock that is refused does to them.
#include "runtime/world/gcstats.h"

#include <errno.h>

#include "test/harness/await.h"
#include "test/harness/fault.h"
#include "test/harness/heap.h"

GROUP(stops, .timeout = 60);

// A stop is counted in the pair of histograms of its reason, once.
TEST(stops_are_counted_by_reason)
{
	static const struct {
		int reason, who;
	} stops[] = {
	    {RT_STOP_GC_MARK_TERM, GCSTATS_GC},
	    {RT_STOP_GC_SWEEP_TERM, GCSTATS_GC},
	    {RT_STOP_READ_MEMSTATS, GCSTATS_OTHER},
	    {RT_STOP_HOST, GCSTATS_OTHER},
	    {RT_STOP_HOST + 7, GCSTATS_OTHER},
	};
	const struct rt_stop_times times = {.stopping_ns = 100,
					    .total_ns = 1000};

	for (unsigned i = 0; i < RT_ARRAY_LEN(stops); i++) {
		uint64_t counts[HISTOGRAM_COUNTS];
		int who = stops[i].who;

		gcstats_reset();
		gcstats_record_stop(stops[i].reason, &times);
		for (int k = 0; k < 2; k++) {
			uint64_t sum = 0;

			histogram_read(&gcstats.stopping[k], counts);
			sum += counts[1 + 100 / 64];
			histogram_read(&gcstats.total[k], counts);
			// [896, 1024) is the last counter of bucket 2.
			sum += counts[1 + 2 * HISTOGRAM_SUBS + 3];
			ck_assert_uint_eq(sum, k == who ? 2 : 0);
		}
	}
}

// ---- histograms ----

enum { STOPPING_GC, STOPPING_OTHER, TOTAL_GC, TOTAL_OTHER, GC_ALIAS, NHISTS };

static const char *const hist_names[NHISTS] = {
    "/sched/pauses/stopping/gc:seconds",
    "/sched/pauses/stopping/other:seconds",
    "/sched/pauses/total/gc:seconds",
    "/sched/pauses/total/other:seconds",
    "/gc/pauses:seconds",
};

struct stops {
	uint64_t n[NHISTS]; // samples in each histogram
};

static void read_counts(const char *name, uint64_t *counts)
{
	rt_metric_sample s = {
	    .name = name, .counts = counts, .ncounts = HISTOGRAM_COUNTS};

	must(rt_metrics_read(&s, 1));
	ck_assert_uint_eq(s.result, RT_METRIC_HISTOGRAM);
	ck_assert_uint_eq(s.ncounts, HISTOGRAM_COUNTS);
}

static struct stops count_stops(void)
{
	struct stops stops = {{0}};

	for (int i = 0; i < NHISTS; i++) {
		uint64_t counts[HISTOGRAM_COUNTS];

		read_counts(hist_names[i], counts);
		for (int k = 0; k < HISTOGRAM_COUNTS; k++)
			stops.n[i] += counts[k];
	}
	return stops;
}

static void op_gc(void)
{
	rt_gc();
}

static void op_allocate(void)
{
	rt_memstats m;
	uint32_t n;

	rt_set_gc_percent(100, NULL);
	rt_read_memstats_live(&m);
	n = m.num_gc;
	while (m.num_gc == n) {
		rt_alloc_noscan(60000);
		rt_read_memstats_live(&m);
	}
	rt_set_gc_percent(-1, NULL);
}

static void op_memstats(void)
{
	rt_memstats m;

	rt_read_memstats(&m);
}

static void *read_once(void *arg)
{
	op_memstats();
	return arg;
}

static void op_memstats_unattached(void)
{
	run_beside(read_once, NULL);
}

static void op_host(void)
{
	rt_stop_the_world(RT_STOP_HOST + 5);
	rt_start_the_world(NULL);
}

// Everything that is done in one stop counts as one stop.
static void op_host_reading(void)
{
	struct rt_verify v;

	rt_stop_the_world(RT_STOP_HOST);
	op_memstats();
	rt_heap_verify(&v);
	op_memstats();
	rt_start_the_world(NULL);
}

static int end_walk(void *obj, size_t size, int kind, void *arg)
{
	(void)obj, (void)size, (void)kind, (void)arg;
	return RT_WALK_STOP;
}

static void op_walk(void)
{
	rt_heap_walk(end_walk, NULL);
}

static void op_verify(void)
{
	struct rt_verify v;

	rt_heap_verify(&v);
}

static void op_live(void)
{
	uint64_t words[RT_GCSTATS_WORDS];
	rt_memstats m;
	size_t used;

	rt_read_memstats_live(&m);
	rt_read_gcstats(words, RT_GCSTATS_WORDS, &used);
	count_stops();
	rt_safepoint();
	rt_blocking_enter();
	rt_blocking_leave();
}

static const struct {
	void (*op)(void);
	uint64_t gc, other; // samples that one call adds
} stop_ops[] = {
    {op_gc, 1, 0},	 {op_allocate, 1, 0},
    {op_memstats, 0, 1}, {op_memstats_unattached, 0, 1},
    {op_host, 0, 1},	 {op_host_reading, 0, 1},
    {op_walk, 0, 1},	 {op_verify, 0, 1},
    {op_live, 0, 0},
};

TEST(each_stop_is_in_the_histograms_of_its_reason, .n = RT_ARRAY_LEN(stop_ops))
{
	struct stops was, is;

	heap_begin();
	was = count_stops();
	for (uint64_t i = 1; i <= 20; i++) {
		uint64_t gc = stop_ops[_i].gc * i;
		uint64_t other = stop_ops[_i].other * i;

		stop_ops[_i].op();
		is = count_stops();
		ck_assert_uint_eq(is.n[STOPPING_GC] - was.n[STOPPING_GC], gc);
		ck_assert_uint_eq(is.n[TOTAL_GC] - was.n[TOTAL_GC], gc);
		ck_assert_uint_eq(is.n[GC_ALIAS], is.n[TOTAL_GC]);
		ck_assert_uint_eq(is.n[STOPPING_OTHER] - was.n[STOPPING_OTHER],
				  other);
		ck_assert_uint_eq(is.n[TOTAL_OTHER] - was.n[TOTAL_OTHER],
				  other);
	}
}

// counter_of returns the index of the counter that a duration belongs to.
static int counter_of(uint64_t ns)
{
	const double *edges = histogram_edges();
	int i = 0;

	// An edge is a whole number of ns, except for rounding.
	while (edges[i + 1] * 1e9 <= (double)ns + 0.5)
		i++;
	return i;
}

// Time in which the world is stopped belongs to the total, and not to the
// stopping.  Each of the two is counted where its own length belongs.
TEST(a_long_stop_is_a_long_total)
{
	static uint64_t stopping[HISTOGRAM_COUNTS], total[HISTOGRAM_COUNTS];
	rt_stop_times times;
	uint64_t begin, end;

	heap_begin();
	rt_stop_the_world(RT_STOP_HOST);
	begin = nanotime();
	sleep_ns(5000000);
	end = nanotime();
	rt_start_the_world(&times);
	ck_assert_uint_ge(times.stopped_ns, end - begin);
	ck_assert_uint_eq(times.total_ns, times.stopping_ns + times.stopped_ns);
	read_counts("/sched/pauses/stopping/other:seconds", stopping);
	read_counts("/sched/pauses/total/other:seconds", total);
	for (int i = 0; i < HISTOGRAM_COUNTS; i++) {
		ck_assert_uint_eq(stopping[i],
				  i == counter_of(times.stopping_ns));
		ck_assert_uint_eq(total[i], i == counter_of(times.total_ns));
	}
}

static void *collect_once(void *arg)
{
	ck_assert_int_eq(rt_thread_attach(RT_THREAD_EXACT), RT_OK);
	ck_assert_int_eq(rt_gc(), RT_OK);
	ck_assert_int_eq(rt_thread_detach(), RT_OK);
	return arg;
}

// A collection waits for a thread that runs for some more ms.  The wait is part
// of its pause, but keeps only waiting threads from running: the collecting
// thread all the time, and the other thread from the moment it is stopped.
TEST(a_pause_begins_when_the_stop_is_asked_for)
{
	uint64_t begin = nanotime(), since, ran_on, all;
	rt_config c = heap_config(HEAP_QUIET);
	pthread_t thread;
	rt_memstats m;

	c.max_procs = 64;
	heap_start_exact(c);
	thread = start_thread(collect_once, NULL);
	while (!proc_wanted(proc_self()))
		oscall_yield();
	since = nanotime();
	sleep_ns(20000000);
	ran_on = nanotime() - since;
	rt_safepoint();
	join_beside(thread);
	all = nanotime() - begin;
	ck_assert_int_eq(rt_read_memstats_live(&m), RT_OK);
	ck_assert_uint_eq(m.num_gc, 1);
	ck_assert_uint_ge(m.pause_ns[0], ran_on);
	ck_assert_double_le(heap_seconds("/cpu/classes/gc/pause:cpu-seconds") *
				1e9,
			    (double)(64 * (all - ran_on) + 2 * all + 1));
}

// ---- a clock that is refused ----

// check_pauses verifies that the sum of all pauses is the total, and that none
// is negative.
static void check_pauses(const rt_memstats *m)
{
	uint64_t sum = 0;

	ck_assert_uint_le(m->num_gc, PAUSERING_LEN);
	for (unsigned i = 0; i < PAUSERING_LEN; i++) {
		ck_assert_int_ge((int64_t)m->pause_ns[i], 0);
		sum += m->pause_ns[i];
	}
	ck_assert_uint_eq(sum, m->pause_total_ns);
	ck_assert_double_ge(m->gc_cpu_fraction, 0);
	ck_assert_double_le(m->gc_cpu_fraction, 1);
}

static void check_times(const rt_stop_times *t)
{
	ck_assert_int_ge((int64_t)t->stopping_ns, 0);
	ck_assert_int_ge((int64_t)t->stopped_ns, 0);
	ck_assert_int_ge((int64_t)t->stopping_cpu_ns, 0);
	ck_assert_uint_eq(t->stopping_ns + t->stopped_ns, t->total_ns);
}

// check_cpu verifies that the classes have no more processor time in all than
// there was since the heap began.
static void check_cpu(uint64_t begun)
{
	uint64_t nprocs = heap_metric("/sched/gomaxprocs:threads");
	double total = heap_seconds("/cpu/classes/total:cpu-seconds");
	double there_was = 1e-9 * (double)(nprocs * (nanotime() - begun));

	ck_assert_double_le(total, there_was);
}

// A clock that the system refuses reads 0, so time goes back.  Each reading in
// a stop and a collection is refused in turn, alone or with all later ones.
TEST(no_time_is_negative, .n = 2)
{
	uint64_t begun = nanotime(), nth = 0, refused;

	heap_begin();
	do {
		struct stops was = count_stops(), is;
		rt_stop_times t;
		rt_memstats m;

		fault_fail(OSCALL_CLOCK, ++nth, _i ? UINT64_MAX : 1, EINVAL);
		rt_stop_the_world(RT_STOP_HOST);
		rt_start_the_world(&t);
		rt_gc();
		refused = fault_failed(OSCALL_CLOCK);
		fault_fail(OSCALL_CLOCK, 1, 0, 0);
		is = count_stops();
		check_times(&t);
		ck_assert_uint_le(t.total_ns, nanotime() - begun);
		rt_read_memstats_live(&m);
		check_pauses(&m);
		ck_assert_uint_le(m.pause_total_ns, nanotime() - begun);
		check_cpu(begun);
		ck_assert_uint_eq(is.n[TOTAL_GC], was.n[TOTAL_GC] + 1);
		ck_assert_uint_eq(is.n[TOTAL_OTHER], was.n[TOTAL_OTHER] + 1);
	} while (refused > 0);
	ck_assert_uint_gt(nth, 6);
}
