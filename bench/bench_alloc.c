// bench_alloc.c - nanoseconds an allocation, collections and sweeping
// included, by size, kind, age at death and threads.
//
// The sizes are constants, as in most hosts, so the small ones are inline.
// Good: below 10 ns for 16 bytes; from 4096 bytes on little more than the time
// to write as many zeros; with two threads what one needs; with words what
// noscan needs.
//
// Argument: mebibytes that each thread allocates in one repetition, 1 to 65536.
#include "bench/bench.h"

enum {
	REPETITIONS = 5,
	MAX_COUNT = 1 << 20, // allocations in a repetition, for the small sizes
	LATER = 64	     // allocations that an object may outlive
};

struct job {
	int kind;
	size_t size;
	int later;  // 1: an object dies LATER allocations on; 0: at once
	uint64_t n; // allocations for each thread
};

static struct bench_samples samples;

// churn is inlined with constant kind and size, which is what makes the
// allocation inline.
static inline __attribute__((always_inline)) void churn(int kind, size_t size,
							const struct job *job)
{
	rt_thread *t = rt_thread_self();
	void *held[LATER] = {NULL};
	unsigned mask = job->later ? LATER - 1 : 0;

	for (uint64_t i = 0; i < job->n; i++) {
		void *p = kind == RT_NOSCAN ? rt_alloc_noscan_in(t, size)
					    : rt_alloc_in(t, size);

		held[i & mask] = p;
		rt_keep_alive(held);
		if (__builtin_expect(!p, 0))
			bench_must(RT_ENOMEM, "rt_alloc");
	}
}

static void churn_noscan(const struct job *job)
{
	switch (job->size) {
	case 8:
		return churn(RT_NOSCAN, 8, job);
	case 16:
		return churn(RT_NOSCAN, 16, job);
	case 64:
		return churn(RT_NOSCAN, 64, job);
	case 256:
		return churn(RT_NOSCAN, 256, job);
	case 1024:
		return churn(RT_NOSCAN, 1024, job);
	case 4096:
		return churn(RT_NOSCAN, 4096, job);
	default:
		return churn(RT_NOSCAN, job->size, job);
	}
}

static void churn_words(const struct job *job)
{
	switch (job->size) {
	case 8:
		return churn(RT_WORDS, 8, job);
	case 16:
		return churn(RT_WORDS, 16, job);
	case 64:
		return churn(RT_WORDS, 64, job);
	case 256:
		return churn(RT_WORDS, 256, job);
	case 1024:
		return churn(RT_WORDS, 1024, job);
	case 4096:
		return churn(RT_WORDS, 4096, job);
	default:
		return churn(RT_WORDS, job->size, job);
	}
}

static void work(int who, void *arg)
{
	const struct job *job = arg;

	(void)who;
	if (job->kind == RT_NOSCAN)
		churn_noscan(job);
	else
		churn_words(job);
}

// One repetition that is not counted comes first.
static void measure(struct job *job, int threads)
{
	char name[64];
	struct bench_row row = {
	    .name = name, .unit = "ns", .unit_ns = 1, .threads = threads};

	for (int i = -1; i < REPETITIONS; i++) {
		uint64_t ns = bench_together(threads, work, job);

		if (i >= 0)
			bench_add(&samples, (double)ns / (double)job->n);
	}
	snprintf(name, sizeof name, "%5zu bytes, %s, dead %s", job->size,
		 job->kind == RT_NOSCAN ? "noscan" : "words",
		 job->later ? "64 later" : "at once");
	row.heap = bench_heap_inuse();
	bench_line(&row, &samples);
}

static void measure_kinds(size_t size, uint64_t bytes, int threads)
{
	struct job job = {.size = size, .n = bytes / size};

	job.n = job.n > MAX_COUNT ? MAX_COUNT : job.n;
	for (job.later = 0; job.later <= 1; job.later++) {
		job.kind = RT_NOSCAN;
		measure(&job, threads);
		job.kind = RT_WORDS;
		measure(&job, threads);
	}
}

int main(int argc, char **argv)
{
	static const size_t size[] = {8, 16, 64, 256, 1024, 4096, 32768};
	static const uint64_t mib[3] = {64, 1, 65536};
	uint64_t bytes = bench_argument(argc, argv, 1, mib) << 20;

	bench_must(rt_init(NULL), "rt_init");
	bench_heading("one allocation");
	for (int threads = 1; threads <= 2; threads++)
		for (size_t i = 0; i < sizeof size / sizeof size[0]; i++)
			measure_kinds(size[i], bytes, threads);
	bench_must(rt_fini(), "rt_fini");
	return 0;
}
