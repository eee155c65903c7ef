// bench_memstats.c - how long reading statistics takes, and how long it stops
// the world.
//
// Go's BenchmarkReadMemStats: a heap of 100 MiB of 1 KiB objects.  Go once
// walked every span, 1.7 ms a GiB; since 2017 it stops for less than 25 us at
// 100 Ps.  Ours is to be below that with 100 attached threads, and no line
// may grow with the heap: give sizes in MiB as arguments (100 1024), or set
// RT_BIG_TESTS=1, to see.  A live read is to take less than 1 us with one
// thread.
//
// One thread reads, one runs and polls (from 2 threads on), the others sit in
// blocking regions.  Nobody allocates but where a line says so.  Before each
// stop the reader waits until the one that runs has run since the stop before;
// else a stop would find it standing, and cost nothing.
#include "bench/bench.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

enum {
	OBJECT_BYTES = 1024,
	EXACT_READS = 300,  // a stop each
	CHEAP_READS = 1000, // batches
	CHEAP_BATCH = 16,   // calls a batch, or reading the clock shows
	MAX_ATTACHED = 100,
	MAX_METRICS = 256,
	MAX_COUNTS = 16384 // of all histograms together
};

// The heap of a run hangs here: an array of pointers to its objects.
static void *heap_root[1];

static struct bench_samples samples;

// ---- Threads beside the reader ----

enum peer { PEER_POLLS, PEER_ALLOCATES };

struct company {
	int nthreads; // also the reader
	enum peer peer;
	pthread_t tid[MAX_ATTACHED];
	pthread_barrier_t ready, done;
	atomic_bool stop;
	atomic_ulong laps; // of the one that runs
};

static struct company company;

static void *sleeper_main(void *arg)
{
	(void)arg;
	bench_must(rt_thread_attach(0), "rt_thread_attach");
	bench_must(rt_blocking_enter(), "rt_blocking_enter");
	pthread_barrier_wait(&company.ready);
	pthread_barrier_wait(&company.done);
	bench_must(rt_blocking_leave(), "rt_blocking_leave");
	bench_must(rt_thread_detach(), "rt_thread_detach");
	return NULL;
}

// A list of 4096 nodes of 32 bytes, all garbage at its return.
static void make_garbage(void)
{
	void **list = NULL;

	for (int i = 0; i < 4096; i++) {
		void **node = bench_need(rt_alloc(32), "rt_alloc");

		node[0] = list;
		list = node;
	}
	rt_keep_alive(list);
}

static void *runner_main(void *arg)
{
	(void)arg;
	bench_must(rt_thread_attach(0), "rt_thread_attach");
	bench_wait(&company.ready);
	while (!atomic_load_explicit(&company.stop, memory_order_relaxed)) {
		if (company.peer == PEER_ALLOCATES)
			make_garbage();
		rt_safepoint();
		atomic_fetch_add_explicit(&company.laps, 1,
					  memory_order_relaxed);
	}
	bench_wait(&company.done);
	bench_must(rt_thread_detach(), "rt_thread_detach");
	return NULL;
}

static void company_comes(int nthreads, enum peer peer)
{
	company.nthreads = nthreads;
	company.peer = peer;
	atomic_store(&company.stop, false);
	pthread_barrier_init(&company.ready, NULL, (unsigned)nthreads);
	pthread_barrier_init(&company.done, NULL, (unsigned)nthreads);
	for (int i = 1; i < nthreads; i++)
		bench_must(pthread_create(&company.tid[i], NULL,
					  i == 1 ? runner_main : sleeper_main,
					  NULL),
			   "pthread_create");
	bench_wait(&company.ready);
}

// company_runs returns when the one that runs has begun a lap and ended it.
static void company_runs(void)
{
	unsigned long lap = atomic_load(&company.laps);

	while (company.nthreads > 1 && atomic_load(&company.laps) - lap < 2) {
		rt_safepoint();
		sched_yield();
	}
}

static void company_goes(void)
{
	atomic_store(&company.stop, true);
	bench_wait(&company.done);
	for (int i = 1; i < company.nthreads; i++)
		bench_join(company.tid[i]);
	pthread_barrier_destroy(&company.ready);
	pthread_barrier_destroy(&company.done);
}

// ---- What is measured ----

static rt_metric_sample metric[MAX_METRICS];
static uint64_t metric_counts[MAX_COUNTS];
static size_t nmetrics;

// Every metric there is, with room for the histograms.
static void metrics_prepare(void)
{
	uint64_t *counts = metric_counts;

	nmetrics = rt_metrics_count();
	bench_must(nmetrics <= MAX_METRICS ? 0 : RT_EINVAL, "MAX_METRICS");
	for (size_t i = 0; i < nmetrics; i++) {
		rt_metric_desc d;

		bench_must(rt_metrics_describe(i, &d), "rt_metrics_describe");
		metric[i].name = d.name;
		metric[i].counts = counts;
		metric[i].ncounts = d.ncounts;
		counts += d.ncounts;
		bench_must(counts <= metric_counts + MAX_COUNTS ? 0 : RT_EINVAL,
			   "MAX_COUNTS");
	}
}

static void read_exact(void)
{
	static rt_memstats m;

	bench_must(rt_read_memstats(&m), "rt_read_memstats");
}

static void read_live(void)
{
	static rt_memstats m;

	bench_must(rt_read_memstats_live(&m), "rt_read_memstats_live");
}

static void read_gcstats(void)
{
	static uint64_t words[RT_GCSTATS_WORDS];
	size_t used;

	bench_must(rt_read_gcstats(words, RT_GCSTATS_WORDS, &used),
		   "rt_read_gcstats");
}

static void read_metrics(void)
{
	bench_must(rt_metrics_read(metric, nmetrics), "rt_metrics_read");
}

// time_cheap takes samples, each the mean of a batch of calls that stop
// nothing, after one batch that is not counted.
static void time_cheap(void (*call)(void))
{
	company_runs();
	for (int i = -1; i < CHEAP_READS; i++) {
		uint64_t began = bench_now();

		for (int k = 0; k < CHEAP_BATCH; k++)
			call();
		if (i >= 0)
			bench_add(&samples,
				  (double)(bench_now() - began) / CHEAP_BATCH);
	}
}

static void time_exact(void)
{
	for (int i = -1; i < EXACT_READS; i++) {
		company_runs();

		uint64_t began = bench_now();

		read_exact();
		if (i >= 0)
			bench_add(&samples, (double)(bench_now() - began));
	}
}

// time_stops takes the time that the world stands still for an exact read:
// from when the last thread stood until all were let go.
static void time_stops(void)
{
	for (int i = -1; i < EXACT_READS; i++) {
		rt_stop_times t;

		company_runs();
		bench_must(rt_stop_the_world(RT_STOP_HOST), "stop");
		read_exact();
		bench_must(rt_start_the_world(&t), "start");
		if (i >= 0)
			bench_add(&samples, (double)t.stopped_ns);
	}
}

static void measure(int nthreads, enum peer peer, uint64_t heap)
{
	struct bench_row row = {
	    .unit = "us", .unit_ns = 1e3, .threads = nthreads, .heap = heap};

	company_comes(nthreads, peer);
	time_stops();
	row.name = "exact read, world stopped";
	bench_line(&row, &samples);
	time_exact();
	row.name = "exact read, whole call";
	bench_line(&row, &samples);
	time_cheap(read_live);
	row.name = "live read";
	bench_line(&row, &samples);
	time_cheap(read_gcstats);
	row.name = "history of pauses";
	bench_line(&row, &samples);
	time_cheap(read_metrics);
	row.name = "all metrics";
	bench_line(&row, &samples);
	company_goes();
}

// ---- The heap ----

static void heap_fill(uint64_t bytes)
{
	size_t n = bytes / OBJECT_BYTES;
	void **object = bench_need(rt_alloc(n * sizeof(void *)), "rt_alloc");

	heap_root[0] = object;
	for (size_t i = 0; i < n; i++)
		object[i] = bench_need(rt_alloc_noscan(OBJECT_BYTES),
				       "rt_alloc_noscan");
}

static void with_heap_of(uint64_t mib)
{
	static char title[64];

	bench_must(rt_init(NULL), "rt_init");
	bench_must(rt_roots_add(heap_root, heap_root + 1, RT_ROOT_EXACT),
		   "rt_roots_add");
	heap_fill(mib << 20);
	snprintf(title, sizeof title, "statistics, %llu MiB of 1 KiB objects",
		 (unsigned long long)mib);
	bench_heading(title);
	measure(1, PEER_POLLS, mib << 20);
	measure(2, PEER_POLLS, mib << 20);
	measure(MAX_ATTACHED, PEER_POLLS, mib << 20);
	bench_heading("the same while the other allocates");
	measure(2, PEER_ALLOCATES, mib << 20);
	heap_root[0] = NULL;
	bench_must(rt_fini(), "rt_fini");
}

// ---- The beginning ----

static void begin_and_end(void)
{
	struct bench_row row = {
	    .name = "rt_init", .unit = "us", .unit_ns = 1e3, .threads = 1};

	bench_heading("a heap begins");
	for (int i = 0; i < 100; i++) {
		uint64_t began = bench_now();

		bench_must(rt_init(NULL), "rt_init");
		bench_add(&samples, (double)(bench_now() - began));
		bench_must(rt_fini(), "rt_fini");
	}
	bench_line(&row, &samples);
}

int main(int argc, char **argv)
{
	static const uint64_t mib[3] = {100, 1, 1 << 20};
	const char *big = getenv("RT_BIG_TESTS");

	metrics_prepare();
	begin_and_end();
	if (argc < 2)
		with_heap_of(mib[0]);
	for (int i = 1; i < argc; i++)
		with_heap_of(bench_argument(argc, argv, i, mib));
	if (argc < 2 && big && strcmp(big, "0") != 0)
		with_heap_of(1024);
	return 0;
}
