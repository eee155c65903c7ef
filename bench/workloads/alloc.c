// alloc.c - nanoseconds for an allocation, including collections, of objects
// that die 64 allocations later.
//
// usage: alloc SIZE scan|noscan|any|call|call-noscan THREADS
//
// SIZE is 4 (pointer-free only), 8, 16, 64, 256, 1024, 4096 or 32768.  Sizes
// are constants, as in most programs.  With any, objects are scanned, and the
// compiler does not know the size.  With call and call-noscan, a function call
// allocates, as in a program that cannot inline the allocation.
//
// Each object's first word is written at birth and read at death; the sum is
// the checksum.  Before the clock starts, one round of objects is overwritten.
// The next round is checked: memory that is scanned must be zeroed.
//
// Good: a few nanoseconds for small objects, and for large ones little more
// than it takes to clear them; a call at most twice the inline path.
#include "harness.h"

enum {
	LATER = 64,	   // allocations that an object outlives
	WARM_UP = 8 << 20, // bytes
};

enum kind { SCAN, NOSCAN, ANY, CALL, CALL_NOSCAN };

struct job {
	size_t size;
	enum kind kind;
	uint64_t n; // allocations of each thread
	uint64_t sum[PEER_THREADS];
};

PEER_INLINE uint64_t *make(size_t size, enum kind kind)
{
	if (kind == CALL)
		return peer_need(HEAP_CALL(size));
	if (kind == CALL_NOSCAN)
		return peer_need(HEAP_CALL_NOSCAN(size));
	return kind == NOSCAN ? peer_alloc_noscan(size) : peer_alloc(size);
}

PEER_INLINE bool is_scanned(enum kind kind)
{
	return kind != NOSCAN && kind != CALL_NOSCAN;
}

// first_put and first_get access an object's first word, or its 4 bytes.
PEER_INLINE void first_put(uint64_t *p, size_t size, uint64_t value)
{
	if (__builtin_constant_p(size) && size == 4)
		*(uint32_t *)p = (uint32_t)value;
	else
		*p = value;
}

PEER_INLINE uint64_t first_get(const uint64_t *p, size_t size)
{
	if (__builtin_constant_p(size) && size == 4)
		return *(const uint32_t *)p;
	return *p;
}

PEER_INLINE void warm_up(size_t size, enum kind kind)
{
	bool scanned = is_scanned(kind);

	for (size_t i = 0; i < 2 * WARM_UP / size; i++) {
		uint64_t *p = make(size, kind);

		for (size_t k = 0; scanned && k < size / sizeof *p; k++)
			if (p[k])
				peer_die("memory was not zeroed");
		memset(p, 0xa5, size);
		peer_keep(p);
		heap_free(p);
	}
}

PEER_INLINE uint64_t churn(size_t size, enum kind kind, uint64_t n)
{
	uint64_t *held[LATER] = {NULL};
	uint64_t sum = 0;

	for (uint64_t i = 0; i < n; i++) {
		uint64_t *p = make(size, kind);
		uint64_t *old = held[i % LATER];

		if (old) {
			sum += first_get(old, size);
			heap_free(old);
		}
		first_put(p, size, i);
		held[i % LATER] = p;
		peer_keep(held);
	}
	for (int i = 0; i < LATER; i++) {
		sum += first_get(held[i], size);
		heap_free(held[i]);
	}
	return sum;
}

// run only warms up if n is 0.
PEER_INLINE uint64_t run(size_t size, enum kind kind, uint64_t n)
{
	if (n)
		return churn(size, kind, n);
	warm_up(size, kind);
	return 0;
}

PEER_INLINE uint64_t run_constant(size_t size, enum kind kind, uint64_t n)
{
	switch (size) {
	case 4:
		return run(4, kind, n);
	case 8:
		return run(8, kind, n);
	case 16:
		return run(16, kind, n);
	case 64:
		return run(64, kind, n);
	case 256:
		return run(256, kind, n);
	case 1024:
		return run(1024, kind, n);
	case 4096:
		return run(4096, kind, n);
	default:
		return run(32768, kind, n);
	}
}

static uint64_t run_job(const struct job *job, uint64_t n)
{
	switch (job->kind) {
	case SCAN:
		return run_constant(job->size, SCAN, n);
	case NOSCAN:
		return run_constant(job->size, NOSCAN, n);
	case ANY:
		return run(job->size, ANY, n);
	case CALL:
		return run_constant(job->size, CALL, n);
	default:
		return run_constant(job->size, CALL_NOSCAN, n);
	}
}

static enum kind kind_of(const char *name)
{
	static const char *const names[] = {"scan", "noscan", "any", "call",
					    "call-noscan"};

	for (enum kind kind = SCAN; kind <= CALL_NOSCAN; kind++)
		if (!strcmp(name, names[kind]))
			return kind;
	peer_die("no such kind");
}

// count_for returns a count with which the slowest heap needs about a second.
static uint64_t count_for(size_t size)
{
	static const struct {
		size_t size;
		uint64_t n;
	} counts[] = {{4, 8000000},   {8, 8000000},   {16, 8000000},
		      {64, 6000000},  {256, 3000000}, {1024, 1000000},
		      {4096, 300000}, {32768, 50000}};

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
	static const uint64_t size[2] = {4, 32768}, threads[2] = {1, 16};
	struct job job = {.size = peer_number(argc, argv, 1, size),
			  .kind = kind_of(peer_word(argc, argv, 2))};
	int nthreads = (int)peer_number(argc, argv, 3, threads);
	struct peer_time t = {0};
	uint64_t sum = 0;

	if (job.size < 8 && is_scanned(job.kind))
		peer_die("too small for a pointer");
	job.n = count_for(job.size);
	heap_begin();
	run_job(&job, 0);
	peer_together(nthreads, work, &job, &t);
	for (int i = 0; i < nthreads; i++)
		sum += job.sum[i];
	peer_report(t.wall * 1e9 / (double)job.n, "ns", &t, sum);
	return 0;
}
