// alloc.c - nanoseconds for an allocation, collections included, of objects
// that die 64 allocations later.
//
// usage: alloc SIZE scan|noscan|any THREADS
//
// Sizes are constants, as in most programs; any: scanned, and the compiler does
// not know the size.  Each object's first word is
// written at birth and read at death; the sum is the checksum.  Before the
// clock starts, one round of objects is scribbled over and the next looked at:
// memory that is scanned comes zeroed.
#include "harness.h"

enum {
	LATER = 64,	   // allocations that an object outlives
	WARM_UP = 8 << 20, // bytes
};

struct job {
	size_t size;
	bool scanned, any;
	uint64_t n; // allocations of each thread
	uint64_t sum[PEER_THREADS];
};

PEER_INLINE uint64_t *make(size_t size, bool scanned)
{
	return scanned ? peer_alloc(size) : peer_alloc_noscan(size);
}

PEER_INLINE void warm_up(size_t size, bool scanned)
{
	for (size_t i = 0; i < 2 * WARM_UP / size; i++) {
		uint64_t *p = make(size, scanned);

		for (size_t k = 0; scanned && k < size / sizeof *p; k++)
			if (p[k])
				peer_die("memory was not zeroed");
		memset(p, 0xa5, size);
		peer_keep(p);
		heap_free(p);
	}
}

PEER_INLINE uint64_t churn(size_t size, bool scanned, uint64_t n)
{
	uint64_t *held[LATER] = {NULL};
	uint64_t sum = 0;

	for (uint64_t i = 0; i < n; i++) {
		uint64_t *p = make(size, scanned);
		uint64_t *old = held[i % LATER];

		if (old) {
			sum += *old;
			heap_free(old);
		}
		*p = i;
		held[i % LATER] = p;
		peer_keep(held);
	}
	for (int i = 0; i < LATER; i++) {
		sum += *held[i];
		heap_free(held[i]);
	}
	return sum;
}

// run warms up if n is 0.
PEER_INLINE uint64_t run(size_t size, bool scanned, uint64_t n)
{
	if (n)
		return churn(size, scanned, n);
	warm_up(size, scanned);
	return 0;
}

static uint64_t run_scanned(size_t size, uint64_t n)
{
	switch (size) {
	case 8:
		return run(8, true, n);
	case 16:
		return run(16, true, n);
	case 64:
		return run(64, true, n);
	case 256:
		return run(256, true, n);
	case 1024:
		return run(1024, true, n);
	case 4096:
		return run(4096, true, n);
	default:
		return run(32768, true, n);
	}
}

static uint64_t run_noscan(size_t size, uint64_t n)
{
	switch (size) {
	case 8:
		return run(8, false, n);
	case 16:
		return run(16, false, n);
	case 64:
		return run(64, false, n);
	case 256:
		return run(256, false, n);
	case 1024:
		return run(1024, false, n);
	case 4096:
		return run(4096, false, n);
	default:
		return run(32768, false, n);
	}
}

static uint64_t run_job(const struct job *job, uint64_t n)
{
	if (job->any)
		return run(job->size, true, n);
	return job->scanned ? run_scanned(job->size, n)
			    : run_noscan(job->size, n);
}

// count_for is such that the slowest heap needs about a second.
static uint64_t count_for(size_t size)
{
	static const struct {
		size_t size;
		uint64_t n;
	} counts[] = {{8, 8000000},   {16, 8000000},   {64, 6000000},
		      {256, 3000000}, {1024, 1000000}, {4096, 300000},
		      {32768, 50000}};

	for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
		if (counts[i].size == size)
			return counts[i].n / PEER_DIVISOR;
	peer_die("no such size");
}

static void work(int who, void *arg)
{
	struct job *job = arg;

	job->sum[who] = run_job(job, job->n);
}

int main(int argc, char **argv)
{
	static const uint64_t size[2] = {8, 32768}, threads[2] = {1, 16};
	struct job job = {.size = peer_number(argc, argv, 1, size),
			  .scanned = !strcmp(peer_word(argc, argv, 2), "scan"),
			  .any = !strcmp(peer_word(argc, argv, 2), "any")};
	int nthreads = (int)peer_number(argc, argv, 3, threads);
	struct peer_time t = {0};
	uint64_t sum = 0;

	job.n = count_for(job.size);
	heap_begin();
	run_job(&job, 0);
	peer_together(nthreads, work, &job, &t);
	for (int i = 0; i < nthreads; i++)
		sum += job.sum[i];
	peer_report(t.wall * 1e9 / (double)job.n, "ns", &t, sum);
	return 0;
}
