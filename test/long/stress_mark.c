// stress_mark: collections by several markers, beside threads that allocate.
//
// Mutators own forests that only their stacks refer to, and check them again
// and again: every node has its number, and its children's numbers follow from
// it.  A collector gives the markers more or less memory for each collection,
// so that some overflow, and verifies the heap.  The first heap has two
// markers, the second four; this repeats for as long as the time lasts.  Heaps
// sweep in the stop and beside the threads by turns, unless RTDEBUG says
// otherwise.
//
// Since the numbers show what a node must be, no copy of the heap (shadow.h) is
// needed, and nearly all of the time is marking.
//
// RT_SEED replays the random choices (not the interleaving),
// RT_STRESS_SECONDS lengthens the run.
#include <inttypes.h>
#include <pthread.h>
#include <rt/rt.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "gc/mark/work.h"
#include "runtime/os/nanotime.h"
#include "test/harness/suite.h"

enum {
	MUTATORS = 3,
	TREES = 6, // of a mutator
	DEPTH = 11,
	COLLECTIONS = RT_TSAN || RT_ASAN ? 60 : 200, // of a heap, at least
	REPLACED = RT_TSAN || RT_ASAN ? 60 : 300, // trees of a heap, at least
	NAP_NS = 300 * 1000,
	SECONDS = RT_TSAN || RT_ASAN ? 5 : 3,
};

struct tree {
	uint64_t number;
	struct tree *left, *right;
	char *text; // pointer-free, or NULL
};

static struct {
	atomic_u32 end;	  // of this heap
	atomic_u32 trees; // replaced, in this heap
	atomic_u64 passed;
	atomic_u64 failed;
} run;

// check counts a result, and reports the first failures.
static void check(bool ok, const char *what, uint64_t number)
{
	if (RT_LIKELY(ok)) {
		atomic_u64_add_relaxed(&run.passed, 1);
		return;
	}
	if (atomic_u64_add_relaxed(&run.failed, 1) <= 20)
		fprintf(stderr, "stress_mark: %s (%#" PRIx64 ")\n", what,
			number);
}

static bool ended(void)
{
	return atomic_u32_load_acquire(&run.end) != 0;
}

// ---- mutators ----

static struct tree *tree_make(uint64_t number, unsigned depth)
{
	struct tree *t = rt_alloc(sizeof *t);

	if (!t)
		abort();
	t->number = number;
	if (number % 5 == 0) {
		t->text = rt_alloc_noscan(1 + number % 90);
		if (!t->text)
			abort();
		*t->text = (char)number;
	}
	if (depth > 1) {
		t->left = tree_make(3 * number + 1, depth - 1);
		t->right = tree_make(3 * number + 2, depth - 1);
	}
	return t;
}

// tree_wrong counts the nodes that are not as they were made.
static uint64_t tree_wrong(const struct tree *t, uint64_t number,
			   unsigned depth)
{
	uint64_t wrong = t->number != number;

	if (number % 5 == 0)
		wrong += *t->text != (char)number;
	if (depth == 1)
		return wrong + (t->left || t->right);
	return wrong + tree_wrong(t->left, 3 * number + 1, depth - 1) +
	       tree_wrong(t->right, 3 * number + 2, depth - 1);
}

static void *mutate(void *arg)
{
	struct rng rng = *(struct rng *)arg;
	struct tree **volatile forest;
	uint64_t number[TREES];

	check(rt_thread_attach(0) == RT_OK, "attach", 0);
	forest = rt_alloc(TREES * sizeof *forest);
	if (!forest)
		abort();
	for (unsigned i = 0; i < TREES; i++) {
		number[i] = rng_next(&rng);
		forest[i] = tree_make(number[i], DEPTH);
	}
	while (!ended()) {
		unsigned i = (unsigned)rng_below(&rng, TREES);

		check(tree_wrong(forest[i], number[i], DEPTH) == 0, "tree",
		      number[i]);
		number[i] = rng_next(&rng);
		forest[i] = tree_make(number[i], DEPTH);
		atomic_u32_add_relaxed(&run.trees, 1);
	}
	check(rt_thread_detach() == RT_OK, "detach", 0);
	return NULL;
}

// ---- the collector ----

static uint64_t helped(void)
{
	rt_metric_sample s = {.name = "/gc/mark/helpers:objects"};

	check(rt_metrics_read(&s, 1) == RT_OK, "metric", 0);
	return s.u64;
}

static void verify(void)
{
	struct rt_verify v;

	check(rt_heap_verify(&v) == RT_OK, "verify", 0);
	check(v.errors == 0, v.first, v.errors);
}

static void nap(struct rng *rng)
{
	const struct timespec t = {0, (long)rng_below(rng, NAP_NS)};

	nanosleep(&t, NULL);
}

// enough tells whether a heap has had enough collections and replaced trees,
// and any help.
static bool enough(unsigned collections)
{
	return collections >= COLLECTIONS && helped() != 0 &&
	       atomic_u32_load_relaxed(&run.trees) >= REPLACED;
}

static void collect_all(struct rng *rng)
{
	static const uint32_t limits[] = {0, 1, 2, 4, UINT32_MAX, UINT32_MAX};

	for (unsigned n = 0; !enough(n); n++) {
		work_limit(limits[rng_below(rng, RT_ARRAY_LEN(limits))]);
		check(rt_gc() == RT_OK, "collect", n);
		if (n % 4 == 0)
			verify();
		nap(rng);
	}
	work_limit(UINT32_MAX);
}

// ---- a heap ----

static void begin(int markers, uint8_t sweep)
{
	rt_config c;

	rt_config_init(&c);
	c.sweep = sweep;
	rt_config_from_env(&c);
	c.double_check = RT_CHECK_FATAL;
	c.heap_min = 1 << 20;
	c.heap_headroom = 1 << 20;
	c.max_procs = markers;
	c.cgroup = 0; // the run waits for helpers
	check(rt_init(&c) == RT_OK, "init", (uint64_t)markers);
}

static void one_heap(struct rng *rng, int markers, uint8_t sweep)
{
	pthread_t threads[MUTATORS];
	struct rng rngs[MUTATORS];
	rt_memstats m;

	begin(markers, sweep);
	atomic_u32_store_release(&run.end, 0);
	atomic_u32_store_relaxed(&run.trees, 0);
	for (int i = 0; i < MUTATORS; i++) {
		rngs[i].state = rng_next(rng);
		if (pthread_create(&threads[i], NULL, mutate, &rngs[i]) != 0)
			abort();
	}
	collect_all(rng);
	check(rt_blocking_enter() == RT_OK, "enter", 0);
	atomic_u32_store_release(&run.end, 1);
	for (int i = 0; i < MUTATORS; i++)
		pthread_join(threads[i], NULL);
	check(rt_blocking_leave() == RT_OK, "leave", 0);
	verify();
	check(rt_read_memstats(&m) == RT_OK, "read", 0);
	fprintf(stderr,
		"stress_mark: %d markers, sweep %u, %u collections, %" PRIu64
		" mallocs, %" PRIu64 " objects marked by helpers\n",
		markers, sweep, m.num_gc, m.mallocs, helped());
	check(rt_fini() == RT_OK, "fini", 0);
}

int main(void)
{
	uint64_t seconds = env_u64("RT_STRESS_SECONDS", SECONDS);
	uint64_t start = nanotime();
	struct rng rng;
	uint8_t sweep = 0; // in the stop; 2: beside the threads
	bool failed;

	rng_init(&rng, "stress_mark");
	do {
		one_heap(&rng, 2, sweep);
		one_heap(&rng, 4, 2 - sweep);
		sweep = 2 - sweep;
	} while ((nanotime() - start) / UINT64_C(1000000000) < seconds);
	failed = atomic_u64_load_relaxed(&run.failed) != 0;
	printf("stress_mark: %" PRIu64 " checks held, %" PRIu64 " did not\n",
	       atomic_u64_load_relaxed(&run.passed),
	       atomic_u64_load_relaxed(&run.failed));
	printf("stress_mark: %d passed, %d failed\n", !failed, failed);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
