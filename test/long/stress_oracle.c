// stress_oracle - are the statistics right at every moment?
//
// Threads allocate at random, collect, detach and attach, and drop what they
// hold.  Any of them stops the world now and then and compares the fast
// statistics with two others: a recount of the stopped heap, and the sum of
// the ledgers in which each thread counts what it asked for.
//
// A thread changes its ledger without a poll between an allocation and its
// count, so whenever it stands the ledger is right; but for a large object
// that it is still clearing, which is counted already (struct worker).  The
// tiny block of a thread ends with each flush: collections are seen in the
// sweepgen, comparisons are counted in flushes while the world is stopped.
//
// RT_SEED replays the random numbers, RT_STRESS_SECONDS=n lengthens.
#include <pthread.h>
#include <rt/rt.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "runtime/os/epoch.h"
#include "runtime/spans/mcache.h"
#include "test/harness/constant.h"
#include "test/harness/ledger.h"
#include "test/harness/suite.h"

enum {
	SLOTS = 192,
	STACKS = 6,
	MAX_THREADS = 8,
	ROUND_READS = RT_ASAN || RT_TSAN ? 60 : 1000,	 // of all threads
	ONE_IN_COMPARE = RT_ASAN || RT_TSAN ? 400 : 200, // operations
	LEAST_COMPARED = 10000, // values, of a whole run
	STOP_REASON = RT_STOP_HOST + 3,
};

struct worker {
	void *slot[SLOTS]; // the root of what it holds
	void *stack[STACKS];
	size_t stack_size[STACKS];
	struct rng rng;
	struct ledger ledger;
	uint64_t epoch;	 // of the last look at its tiny block
	rt_thread *self; // while attached
	size_t asked;	 // bytes of the request that is under way
	uint64_t refused;
	uint64_t dirty; // objects that were not zero
	bool align8;
};

static struct worker workers[MAX_THREADS];
static unsigned nworkers;
static struct comparison all; // changed with the world stopped
static atomic_u64 reads;      // of this round
static atomic_u64 flushes;    // changed with the world stopped
static uint64_t total_reads;
static uint64_t deadline; // s; 0: count reads instead

static uint64_t now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec;
}

// ---- one thread's allocations ----

// look forgets the tiny block if caches were flushed since the last look.
static void look(struct worker *w)
{
	uint64_t now = atomic_u64_load_relaxed(&flushes) + epoch_sweepgen();

	if (now != w->epoch)
		ledger_flushed(&w->ledger);
	w->epoch = now;
}

static size_t random_size(struct rng *r)
{
	uint64_t x = rng_below(r, 1000);

	if (x < 350)
		return 1 + rng_below(r, 15);
	if (x < 800)
		return 1 + rng_below(r, 1024);
	if (x < 960)
		return 1 + rng_below(r, 32760);
	if (x < 995)
		return 32000 + rng_below(r, 100000);
	return 200000 + rng_below(r, 800000);
}

static void *alloc_random(struct rng *r, size_t n, bool *noscan, bool *uninit)
{
	switch (rng_below(r, 5)) {
	case 0:
	case 1:
		*noscan = true;
		return rt_alloc_noscan(n);
	case 2:
		*noscan = *uninit = true;
		return rt_alloc_noscan_uninit(n);
	case 3:
		return rt_alloc_in(rt_thread_self(), n);
	default:
		return rt_alloc_kind(RT_WORDS, n);
	}
}

// is_zero looks at both ends.
static bool is_zero(const unsigned char *p, size_t n)
{
	size_t edge = n < 64 ? n : 64;

	for (size_t i = 0; i < edge; i++)
		if (p[i] != 0 || p[n - 1 - i] != 0)
			return false;
	return true;
}

// fill writes an object full at both ends; an object of words begins with a
// reference to what its slot held before, at times.
static void fill(struct worker *w, unsigned char *p, size_t n, void *older)
{
	size_t edge = n < 64 ? n : 64;

	memset(p, 0x55, edge);
	memset(p + n - edge, 0x55, edge);
	if (n >= sizeof older && rng_below(&w->rng, 2))
		memcpy(p, &older, sizeof older);
}

static void step_alloc(struct worker *w)
{
	void **slot = &w->slot[rng_below(&w->rng, SLOTS)];
	size_t n = random_size(&w->rng);
	bool noscan = false, uninit = false;
	void *p;

	w->asked = n;
	if (rng_below(&w->rng, 3) == 0) {
		noscan = rng_below(&w->rng, 2);
		p = constant_alloc((unsigned)rng_below(&w->rng, CONSTANT_SIZES),
				   noscan, &n);
	} else {
		p = alloc_random(&w->rng, n, &noscan, &uninit);
	}
	if (!p) {
		w->refused++;
		return;
	}
	look(w);
	ledger_alloc(&w->ledger, n, noscan);
	if (!uninit && !is_zero(p, n))
		w->dirty++;
	fill(w, p, n, noscan ? NULL : *slot);
	*slot = p;
}

static void step_drop(struct worker *w)
{
	uint64_t from = rng_below(&w->rng, SLOTS);
	uint64_t n = rng_below(&w->rng, SLOTS - from);

	memset(w->slot + from, 0, n * sizeof *w->slot);
}

static void step_stack(struct worker *w)
{
	uint64_t i = rng_below(&w->rng, STACKS);

	if (w->stack[i]) {
		if (rt_stack_free(w->stack[i], w->stack_size[i]) != RT_OK)
			w->refused++;
		w->stack[i] = NULL;
		return;
	}
	w->stack_size[i] = (size_t)2048 << rng_below(&w->rng, 6);
	w->stack[i] = rt_stack_alloc(w->stack_size[i]);
	if (!w->stack[i])
		w->refused++;
}

// ---- coming and going ----

static void enter(struct worker *w)
{
	if (rt_thread_attach(0) != RT_OK)
		w->refused++;
	w->self = rt_thread_self();
	ledger_flushed(&w->ledger);
}

static void leave(struct worker *w)
{
	w->self = NULL;
	if (rt_thread_detach() != RT_OK)
		w->refused++;
}

static void step_region(struct worker *w)
{
	struct comparison c = {0};
	rt_memstats m;

	if (rt_blocking_enter() != RT_OK ||
	    rt_read_memstats_live(&m) != RT_OK || rt_blocking_leave() != RT_OK)
		w->refused++;
	compare_u64(&c, "live heap_sys", m.heap_sys,
		    m.heap_inuse + m.heap_idle);
	compare_u64(&c, "live heap_objects", m.heap_objects,
		    m.mallocs - m.frees);
	w->refused += c.differing + (m.heap_alloc > m.heap_inuse) +
		      (m.heap_released > m.heap_idle);
}

// ---- comparing ----

// sum_ledgers adds up what all threads asked for.
static void sum_ledgers(struct ledger *sum)
{
	for (unsigned i = 0; i < nworkers; i++) {
		struct worker *w = &workers[i];

		ledger_add(sum, &w->ledger);
		if (w->self && w->self->mc->setting_up)
			ledger_alloc(sum, w->asked, false);
	}
}

static void step_compare(struct worker *w)
{
	struct ledger sum;
	rt_memstats m;

	ledger_init(&sum, w->align8);
	if (rt_stop_the_world(STOP_REASON) != RT_OK) {
		w->refused++;
		return;
	}
	atomic_u64_add_relaxed(&flushes, 1);
	if (rt_read_memstats(&m) != RT_OK)
		w->refused++;
	sum_ledgers(&sum);
	recount_compare(&m, &all);
	ledger_compare(&sum, &m, &all);
	rt_start_the_world(NULL);
	atomic_u64_add_relaxed(&reads, 1);
}

// ---- threads ----

static void step_rare(struct worker *w)
{
	switch (rng_below(&w->rng, 8)) {
	case 0:
		rt_gc();
		break;
	case 1:
		leave(w);
		enter(w);
		break;
	case 2:
		if (rng_below(&w->rng, 4) == 0)
			rt_free_os_memory();
		break;
	case 3:
	case 4:
		step_region(w);
		break;
	default:
		step_stack(w);
		break;
	}
}

static bool round_over(void)
{
	if (deadline != 0 && now_s() < deadline)
		return false;
	return atomic_u64_load_relaxed(&reads) >= ROUND_READS;
}

static void work(struct worker *w)
{
	while (!round_over()) {
		for (unsigned i = 0; i < 50; i++)
			step_alloc(w);
		if (rng_below(&w->rng, 4) == 0)
			step_drop(w);
		if (rng_below(&w->rng, 8) == 0)
			step_rare(w);
		if (rng_below(&w->rng, ONE_IN_COMPARE / 50) == 0)
			step_compare(w);
		rt_safepoint();
	}
}

static void *thread_main(void *arg)
{
	struct worker *w = arg;

	enter(w);
	work(w);
	leave(w);
	return NULL;
}

static void worker_init(struct worker *w, bool align8, uint64_t seed)
{
	memset(w, 0, sizeof *w);
	w->rng.state = seed;
	w->align8 = align8;
	ledger_init(&w->ledger, align8);
}

// run_threads runs the round's threads, the first on the calling one.
static bool run_threads(unsigned n)
{
	pthread_t thread[MAX_THREADS];
	unsigned started = 1;

	workers[0].self = rt_thread_self();
	while (started < n &&
	       pthread_create(&thread[started], NULL, thread_main,
			      &workers[started]) == 0)
		started++;
	work(&workers[0]);
	rt_blocking_enter();
	for (unsigned i = 1; i < started; i++)
		pthread_join(thread[i], NULL);
	rt_blocking_leave();
	return started == n;
}

static bool heap_is_whole(void)
{
	struct rt_verify v;

	if (rt_heap_verify(&v) == RT_OK && v.errors == 0)
		return true;
	fprintf(stderr, "stress_oracle: rt_heap_verify: %s\n", v.first);
	return false;
}

// trouble is how often something went wrong that is no difference.
static uint64_t trouble(void)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < nworkers; i++) {
		if (workers[i].refused != 0 || workers[i].dirty != 0)
			fprintf(stderr,
				"stress_oracle: thread %u: %llu refused, "
				"%llu not zero\n",
				i, (unsigned long long)workers[i].refused,
				(unsigned long long)workers[i].dirty);
		n += workers[i].refused + workers[i].dirty;
	}
	return n;
}

// run_round is a heap from init to fini.
static bool run_round(struct rng *seeds, unsigned n, bool align8)
{
	rt_config config;
	bool ok;

	rt_config_init(&config);
	config.align8 = align8;
	config.double_check = RT_CHECK_FATAL;
	if (rt_init(&config) != RT_OK)
		return false;
	nworkers = n;
	atomic_u64_store_relaxed(&reads, 0);
	for (unsigned i = 0; i < n; i++)
		worker_init(&workers[i], align8, rng_next(seeds));
	ok = rt_roots_add(workers, workers + MAX_THREADS, RT_ROOT_WORDS) ==
	     RT_OK;
	ok = run_threads(n) && ok;
	step_compare(&workers[0]);
	ok = heap_is_whole() && ok;
	ok = trouble() == 0 && ok;
	total_reads += atomic_u64_load_relaxed(&reads);
	return rt_fini() == RT_OK && ok;
}

int main(void)
{
	static const unsigned threads[] = {1, 2, 3, 5, 8};
	uint64_t seconds = env_u64("RT_STRESS_SECONDS", 0);
	unsigned rounds = 2 * RT_ARRAY_LEN(threads);
	unsigned failed = 0; // rounds
	struct rng seeds;

	rng_init(&seeds, "stress_oracle");
	for (unsigned i = 0; i < rounds; i++) {
		unsigned n = threads[i / 2];

		if (seconds != 0)
			deadline = now_s() + 1 + seconds / rounds;
		if (!run_round(&seeds, n, i % 2 != 0)) {
			fprintf(stderr,
				"stress_oracle: %u threads, align8 %u failed\n",
				n, i % 2);
			failed++;
		}
	}
	if (all.differing != 0)
		fprintf(stderr, "stress_oracle: %s\n", all.first);
	printf("stress_oracle: %llu values of %llu reads compared, "
	       "%llu differ\n",
	       (unsigned long long)all.compared,
	       (unsigned long long)total_reads,
	       (unsigned long long)all.differing);
	if ((all.differing != 0 || all.compared < LEAST_COMPARED) &&
	    failed == 0)
		failed = 1;
	printf("stress_oracle: %u passed, %u failed\n", rounds - failed,
	       failed);
	return failed != 0;
}
