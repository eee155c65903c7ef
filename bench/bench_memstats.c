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
// stop the reader waits until those that run have run since the stop before;
// else a stop would find them standing, and cost nothing.
//
// Where 15 and 99 threads run beside the reader, on fewer processors, most of
// them are preempted somewhere between two polls when a stop is wanted, and the
// time to stop is what the system needs to give each a turn.  When they are let
// go they are all runnable again, and the whole call ends when the reader has
// its next turn among them.
//
// Where 99 threads stand, each with 20 spans in its cache, a stopped world
// also takes back what is left of 1980 runs.
#include "bench/bench.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

enum {
	OBJECT_BYTES = 1024,
	EXACT_READS = 300,  // a stop each
	FEW_READS = 20,	    // where some threads wait for their turns
	FEWEST_READS = 10,  // where many do
	CHEAP_READS = 1000, // batches
	CHEAP_BATCH = 16,   // calls a batch, or reading the clock shows
	MAX_ATTACHED = 100,
	CACHED_SPANS = 20, // of a thread
	MAX_METRICS = 256,
	MAX_COUNTS = 16384 // of all histograms together
};

// The heap of a run hangs here: an array of pointers to its objects.
static void *heap_root[1];

static struct bench_samples samples, stopping;

// ---- Threads beside the reader ----

// What those do that do not sit in blocking regions.
enum peer { PEER_POLLS, PEER_ALLOCATES, PEER_CACHES };

struct runner {
	_Alignas(64) atomic_ulong laps;
	unsigned long seen; // laps when the reader began to wait
};

struct company {
	int nthreads; // also the reader
	int nrunners; // those that run, or cache; the others sit
	enum peer peer;
	pthread_t tid[MAX_ATTACHED];
	pthread_barrier_t ready, done;
	pthread_barrier_t next; // all that cache, and the reader
	atomic_int cached;	// threads that stand with a cache
	atomic_bool stop;
	struct runner runner[MAX_ATTACHED];
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

// Objects of as many size classes as a thread is to have spans: up to 256
// bytes those are 16 bytes apart, then 32.
static void fill_cache(void)
{
	for (size_t i = 1; i <= CACHED_SPANS; i++) {
		size_t size = i <= 16 ? 16 * i : 256 + 32 * (i - 16);

		rt_keep_alive(bench_need(rt_alloc(size), "rt_alloc"));
	}
}

// cache_once fills the cache and stands until the reader lets all go.
static void cache_once(void)
{
	fill_cache();
	bench_must(rt_blocking_enter(), "rt_blocking_enter");
	atomic_fetch_add(&company.cached, 1);
	pthread_barrier_wait(&company.next);
	bench_must(rt_blocking_leave(), "rt_blocking_leave");
}

static void run_once(struct runner *runner)
{
	if (company.peer == PEER_ALLOCATES)
		make_garbage();
	rt_safepoint();
	atomic_fetch_add_explicit(&runner->laps, 1, memory_order_relaxed);
}

static void *runner_main(void *arg)
{
	bench_must(rt_thread_attach(0), "rt_thread_attach");
	bench_wait(&company.ready);
	while (!atomic_load_explicit(&company.stop, memory_order_relaxed))
		if (company.peer == PEER_CACHES)
			cache_once();
		else
			run_once(arg);
	bench_wait(&company.done);
	bench_must(rt_thread_detach(), "rt_thread_detach");
	return NULL;
}

static void company_comes(int nthreads, int nrunners, enum peer peer)
{
	company.nthreads = nthreads;
	company.nrunners = nrunners;
	company.peer = peer;
	atomic_store(&company.stop, false);
	atomic_store(&company.cached, 0);
	pthread_barrier_init(&company.ready, NULL, (unsigned)nthreads);
	pthread_barrier_init(&company.done, NULL, (unsigned)nthreads);
	pthread_barrier_init(&company.next, NULL, (unsigned)nrunners + 1);
	for (int i = 1; i < nthreads; i++)
		bench_must(
		    pthread_create(&company.tid[i], NULL,
				   i <= nrunners ? runner_main : sleeper_main,
				   &company.runner[i]),
		    "pthread_create");
	bench_wait(&company.ready);
}

// wait_until_run returns when each that runs has begun a lap and ended it.
static void wait_until_run(void)
{
	struct runner *runner = company.runner;

	for (int i = 1; i <= company.nrunners; i++)
		runner[i].seen = atomic_load(&runner[i].laps);
	for (int i = 1; i <= company.nrunners; i++)
		while (atomic_load(&runner[i].laps) - runner[i].seen < 2) {
			rt_safepoint();
			sched_yield();
		}
}

static void wait_until_cached(void)
{
	while (atomic_load(&company.cached) < company.nrunners) {
		rt_safepoint();
		sched_yield();
	}
}

// company_runs is called before each sample, company_goes_on after it.
static void company_runs(void)
{
	if (company.peer == PEER_CACHES)
		wait_until_cached();
	else
		wait_until_run();
}

static void company_goes_on(void)
{
	if (company.peer != PEER_CACHES)
		return;
	atomic_store(&company.cached, 0);
	bench_wait(&company.next);
}

static void company_goes(void)
{
	if (company.peer == PEER_CACHES)
		wait_until_cached();
	atomic_store(&company.stop, true);
	company_goes_on();
	bench_wait(&company.done);
	for (int i = 1; i < company.nthreads; i++)
		bench_join(company.tid[i]);
	pthread_barrier_destroy(&company.ready);
	pthread_barrier_destroy(&company.done);
	pthread_barrier_destroy(&company.next);
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

static void time_exact(int reads)
{
	for (int i = -1; i < reads; i++) {
		company_runs();

		uint64_t began = bench_now();

		read_exact();
		if (i >= 0)
			bench_add(&samples, (double)(bench_now() - began));
		company_goes_on();
	}
}

// time_stops takes the time that the world stands still for an exact read,
// from when the last thread stood until all were let go, and the time before,
// from the request until then.
static void time_stops(int reads)
{
	for (int i = -1; i < reads; i++) {
		rt_stop_times t;

		company_runs();
		bench_must(rt_stop_the_world(RT_STOP_HOST), "stop");
		read_exact();
		bench_must(rt_start_the_world(&t), "start");
		if (i >= 0) {
			bench_add(&stopping, (double)t.stopping_ns);
			bench_add(&samples, (double)t.stopped_ns);
		}
		company_goes_on();
	}
}

static void line(const char *name, int nthreads, uint64_t heap,
		 struct bench_samples *s)
{
	struct bench_row row = {.name = name,
				.unit = "us",
				.unit_ns = 1e3,
				.threads = nthreads,
				.heap = heap};

	bench_line(&row, s);
}

static void measure_exact(int nthreads, uint64_t heap, int reads)
{
	time_stops(reads);
	line("exact read, time to stop", nthreads, heap, &stopping);
	line("exact read, world stopped", nthreads, heap, &samples);
	time_exact(reads);
	line("exact read, whole call", nthreads, heap, &samples);
}

static void measure(int nthreads, enum peer peer, uint64_t heap)
{
	company_comes(nthreads, nthreads > 1, peer);
	measure_exact(nthreads, heap, EXACT_READS);
	time_cheap(read_live);
	line("live read", nthreads, heap, &samples);
	time_cheap(read_gcstats);
	line("history of pauses", nthreads, heap, &samples);
	time_cheap(read_metrics);
	line("all metrics", nthreads, heap, &samples);
	company_goes();
}

// measure_crowd is for threads of which none sits.
static void measure_crowd(int nthreads, enum peer peer, uint64_t heap,
			  int reads)
{
	company_comes(nthreads, nthreads - 1, peer);
	measure_exact(nthreads, heap, reads);
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
	bench_heading("while all others run");
	measure_crowd(16, PEER_POLLS, mib << 20, FEW_READS);
	measure_crowd(MAX_ATTACHED, PEER_POLLS, mib << 20, FEWEST_READS);
	bench_heading("while each other caches 20 spans");
	measure_crowd(MAX_ATTACHED, PEER_CACHES, mib << 20, EXACT_READS);
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
