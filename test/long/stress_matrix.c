// stress_matrix: events that may happen at once, in every pair of ways.
//
// A cell is one choice on each axis below.  Its threads do a number of steps,
// however long that takes.  In each cell objects keep what was written to them,
// and no thread runs in a stop.  The stopped heap verifies and agrees with a
// recount, and the double check has nothing to report.  Live statistics add up
// and never fall, children of forks have a heap that works, and every thread
// that attached has detached.
//
// The copy of shadow.h has a fixed number of actors, which do one thing at a
// time.  Here threads end, fork and are stopped in the middle of anything.
//
// The default is a set of cells in which every two choices of two axes meet.
// RT_MATRIX=full runs all cells; in these, the axes from FIBERS on take their
// choices by turns.  RT_SEED replays the choices of threads.  RT_STRESS_STEPS
// changes how many steps a thread makes in a cell of few threads.  If they are
// fewer than LEAST_STEPS, some deed may be done in no cell.
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <rt/rt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/os/oscall.h"
#include "runtime/world/proc.h"
#include "test/harness/fault.h"
#include "test/harness/recount.h"
#include "test/harness/suite.h"
#include "test/long/matrix.h"

enum axis {
	THREADS,  // mutators
	COLLECT,  // never, as the pacer says, and at every fourth step too
	STOPPERS, // threads that stop the world and look around
	READERS,  // threads that read live statistics, not attached
	CHURN,	  // mutators detach and attach
	FORKS,	  // an unattached thread forks
	SIGNALS,  // mutators get signals
	REGIONS,  // mutators enter blocking regions
	HELPERS,  // of the collector
	FIBERS,	  // and what the hosts do, see matrix.h
	DROPS,
	KINDS,
	LIBRARIES,
	SWEEP, // where a collection sweeps
	AXES,
	CHOICES = 5, // at most, of an axis
};

// Not every C library has a part that can be unloaded.
#if defined(__GLIBC__)
enum { LIBRARIES_CHOICES = 2 };
#else
enum { LIBRARIES_CHOICES = 1 };
#endif

static const struct {
	const char *name;
	unsigned n;
	unsigned value[CHOICES];
} axes[AXES] = {
    [THREADS] = {"threads", 5, {1, 2, 4, 16, 64}},
    [COLLECT] = {"collect", 3, {0, 1, 2}},
    [STOPPERS] = {"stoppers", 3, {0, 1, 2}},
    [READERS] = {"readers", 3, {0, 1, 2}},
    [CHURN] = {"churn", 2, {0, 1}},
    [FORKS] = {"forks", 2, {0, 1}},
    [SIGNALS] = {"signals", 2, {0, 1}},
    [REGIONS] = {"regions", 2, {0, 1}},
    [HELPERS] = {"helpers", 3, {0, 1, 3}},
    [FIBERS] = {"fibers", 2, {0, 1}},
    [DROPS] = {"drops", 2, {0, 1}},
    [KINDS] = {"kinds", 2, {0, 1}},
    [LIBRARIES] = {"libraries", LIBRARIES_CHOICES, {0, 1}},
    [SWEEP] = {"sweep", 2, {0, 2}},
};

struct cell {
	unsigned choice[AXES];
};

enum {
	STEPS = RT_TSAN || RT_ASAN ? 60 : 300, // of each of few mutators
	FEW = 4,
	LEAST_STEPS = 12, // of each of many: enough to come to every deed
	MOST_MUTATORS = 64,
	MOST_OTHERS = 5,
	LIVE = 32,	     // objects that a mutator knows
	BALLAST = 40000,     // objects that make a collection worth helping
	CHILD_SECONDS = 120, // a child that takes longer hangs
	MOST_FORKS = 4,	     // of a cell
};

static struct {
	struct cell cell;
	uint64_t seed;
	uint32_t wanted;	       // steps, of each of few mutators
	uint32_t steps;		       // of each in this cell
	atomic_u32 busy;	       // mutators
	atomic_u32 left_alone;	       // 1: no more forks and signals
	atomic_u64 ran[MOST_MUTATORS]; // steps of each, on the heap
	atomic_u64 passed;
	atomic_u64 failed;
	void *ballast[BALLAST];
} run;

static unsigned chosen(enum axis a)
{
	return axes[a].value[run.cell.choice[a]];
}

// This does not use stdio, whose lock may be held at a fork.
void matrix_check(bool ok, const char *what)
{
	char text[200];
	int n;

	if (RT_LIKELY(ok)) {
		atomic_u64_add_relaxed(&run.passed, 1);
		return;
	}
	if (atomic_u64_add_relaxed(&run.failed, 1) > 20)
		return;
	n = snprintf(text, sizeof text, "stress_matrix: %s\n", what);
	oscall_write(2, text, (size_t)n);
}

static bool busy(void)
{
	return atomic_u32_load_acquire(&run.busy) != 0;
}

// ---- mutators ----

struct mutator {
	struct rng rng;
	unsigned index;
	int kind;		   // see matrix.h
	struct object *live[LIVE]; // on its stack alone
};

struct object *matrix_object(struct rng *rng)
{
	uint64_t words = rng_below(rng, 200);
	struct object *o = rt_alloc_noscan(sizeof *o + 8 * words);

	matrix_check(o != NULL, "no memory");
	if (!o)
		return NULL;
	o->words = words;
	o->first = rng_next(rng);
	for (uint64_t i = 0; i < words; i++)
		o->word[i] = o->first + i;
	return o;
}

void matrix_object_check(const struct object *o)
{
	uint64_t wrong = 0;

	if (!o)
		return;
	for (uint64_t i = 0; i < o->words; i++)
		wrong |= o->word[i] ^ (o->first + i);
	matrix_check(wrong == 0, "an object was overwritten");
}

static void rest(struct mutator *m)
{
	matrix_check(rt_blocking_enter() == RT_OK, "enter");
	matrix_object_check(m->live[0]);
	oscall_yield();
	matrix_check(rt_blocking_leave() == RT_OK, "leave");
}

static void attach_again(struct mutator *m)
{
	memset(m->live, 0, sizeof m->live);
	matrix_check(rt_thread_detach() == RT_OK, "detach");
	matrix_check(rt_thread_attach(0) == RT_OK, "attach again");
}

static void step(struct mutator *m, uint32_t n)
{
	unsigned i = (unsigned)rng_below(&m->rng, LIVE);

	atomic_u64_add_relaxed(&run.ran[m->index], 1);
	matrix_object_check(m->live[i]);
	m->live[i] = matrix_object(&m->rng);
	for (unsigned garbage = 0; garbage < 20; garbage++)
		matrix_object(&m->rng);
	if (chosen(COLLECT) == 2 && n % 4 == 0)
		matrix_check(rt_gc() == RT_OK, "collect");
	if (chosen(REGIONS) && n % 3 == 0)
		rest(m);
	hosts_step(&m->rng, n, &m->kind);
	if (chosen(CHURN) && n % 10 == 9)
		attach_again(m);
	rt_safepoint();
}

static void *mutate(void *arg)
{
	struct mutator m = {.index = (unsigned)(uintptr_t)arg};

	m.rng.state = run.seed + m.index;
	matrix_check(rt_thread_attach(0) == RT_OK, "attach");
	for (uint32_t n = 0; n < run.steps; n++)
		step(&m, n);
	for (unsigned i = 0; i < LIVE; i++)
		matrix_object_check(m.live[i]);
	matrix_check(rt_thread_detach() == RT_OK, "detach");
	atomic_u32_add_release(&run.busy, (uint32_t)-1);
	// The thread sanitizer ignores a child only if the parent had other
	// threads.  Otherwise it reports threads that are not joined, and their
	// reads.
	while (atomic_u32_load_acquire(&run.left_alone) == 0)
		oscall_yield();
	return NULL;
}

// ---- statistics ----

static void statistics_agree(const rt_memstats *was, const rt_memstats *is)
{
	matrix_check(is->sys == is->heap_sys + is->stack_sys + is->mspan_sys +
				    is->mcache_sys + is->buckhash_sys +
				    is->gc_sys + is->other_sys,
		     "sys is not its parts");
	matrix_check(is->heap_sys == is->heap_idle + is->heap_inuse,
		     "heap_sys");
	matrix_check(is->heap_objects == is->mallocs - is->frees,
		     "heap_objects");
	matrix_check(is->heap_alloc <= is->heap_inuse, "heap_alloc");
	matrix_check(is->mallocs >= was->mallocs && is->frees >= was->frees &&
			 is->total_alloc >= was->total_alloc &&
			 is->num_gc >= was->num_gc &&
			 is->pause_total_ns >= was->pause_total_ns,
		     "a counter fell");
}

static void *read_live(void *arg)
{
	rt_memstats was = {0}, is;

	do {
		matrix_check(rt_read_memstats_live(&is) == RT_OK, "live read");
		statistics_agree(&was, &is);
		was = is;
		oscall_yield();
	} while (busy());
	return arg;
}

// ---- stoppers ----

static uint64_t steps_made(void)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < MOST_MUTATORS; i++)
		sum += atomic_u64_load_relaxed(&run.ran[i]);
	return sum;
}

static void look_around(rt_memstats *was)
{
	uint64_t made = steps_made();
	struct comparison c = {0};
	struct rt_verify v;
	rt_memstats exact, live;

	matrix_check(rt_read_memstats(&exact) == RT_OK, "exact read");
	statistics_agree(was, &exact);
	matrix_check(rt_heap_verify(&v) == RT_OK && v.errors == 0, v.first);
	matrix_check(v.objects == exact.heap_objects &&
			 v.bytes == exact.heap_alloc,
		     "the heap is not what the statistics say");
	recount_compare(&exact, &c);
	matrix_check(c.differing == 0, c.first);
	matrix_check(rt_read_memstats_live(&live) == RT_OK, "live read");
	matrix_check(memcmp(&exact, &live, sizeof exact) == 0,
		     "moved in a stop");
	matrix_check(steps_made() == made, "a thread ran in a stop");
	*was = exact;
}

static void *stop(void *arg)
{
	rt_memstats was = {0};

	matrix_check(rt_thread_attach(0) == RT_OK, "attach a stopper");
	do {
		matrix_check(rt_stop_the_world(RT_STOP_HOST) == RT_OK, "stop");
		look_around(&was);
		matrix_check(rt_start_the_world(NULL) == RT_OK, "start");
		matrix_check(rt_blocking_enter() == RT_OK, "enter");
		oscall_yield();
		matrix_check(rt_blocking_leave() == RT_OK, "leave");
	} while (busy());
	matrix_check(rt_thread_detach() == RT_OK, "detach a stopper");
	return arg;
}

// ---- forks and signals, by the main thread, which is not attached ----

static struct {
	uintptr_t lo, hi;
} main_stack;

// attach_main passes the bounds of the stack, because asking the C library for
// them may need memory from malloc.
static void attach_main(unsigned flags)
{
	matrix_check(rt_thread_attach_stack((void *)main_stack.lo,
					    (void *)main_stack.hi,
					    flags) == RT_OK,
		     "attach main");
}

void matrix_child(void)
{
	alarm(CHILD_SECONDS);
	atomic_u64_store_relaxed(&run.failed, 0);
	// gcc's thread sanitizer makes no thread in a child.  The address
	// sanitizer's allocator, which each thread needs when it begins, stays
	// locked there if another thread held it at the fork.
	if (RT_TSAN || RT_ASAN)
		fault_fail(OSCALL_THREAD, 1, UINT64_MAX, EAGAIN);
}

static void use_heap(void)
{
	struct rng rng = {run.seed};
	struct rt_verify v;
	rt_memstats m;

	matrix_check(rt_heap_verify(&v) == RT_OK && v.errors == 0, v.first);
	for (unsigned i = 0; i < 500; i++)
		matrix_object_check(matrix_object(&rng));
	matrix_check(rt_gc() == RT_OK, "collect in a child");
	matrix_check(rt_heap_verify(&v) == RT_OK && v.errors == 0, v.first);
	matrix_check(rt_read_memstats(&m) == RT_OK, "read in a child");
}

void matrix_child_end(void)
{
	use_heap();
	_exit(atomic_u64_load_relaxed(&run.failed) != 0);
}

static void in_child(void)
{
	matrix_child();
	attach_main(0);
	use_heap();
	matrix_check(rt_fini() == RT_OK, "end of a child");
	_exit(atomic_u64_load_relaxed(&run.failed) != 0);
}

void matrix_wait_for(int child)
{
	int status;

	matrix_check(child > 0 && waitpid(child, &status, 0) == child &&
			 status == 0,
		     "a child failed");
}

static void fork_once(void)
{
	pid_t child = fork();

	if (child == 0)
		in_child();
	matrix_wait_for(child);
}

static atomic_u64 signals;

static void on_signal(int number)
{
	(void)number;
	rt_thread_self();
	rt_world_stopped();
	atomic_u64_add_relaxed(&signals, 1);
}

static void signal_all(const pthread_t *mutators)
{
	for (unsigned i = 0; i < chosen(THREADS); i++)
		pthread_kill(mutators[i], SIGUSR1);
}

static void disturb(const pthread_t *mutators)
{
	unsigned forks = 0;

	do {
		if (chosen(FORKS) && forks++ < MOST_FORKS)
			fork_once();
		if (chosen(SIGNALS))
			signal_all(mutators);
		oscall_yield();
	} while (busy());
}

// ---- a cell ----

// A warning of destructors that wait is no failure, because mutators may be
// slow to run them.
static void on_report(const char *text, void *arg)
{
	(void)arg;
	matrix_check(strstr(text, "wait for their destructors") != NULL, text);
}

static void begin(void)
{
	rt_config c;

	rt_config_init(&c);
	c.sweep = (uint8_t)chosen(SWEEP);
	rt_config_from_env(&c);
	c.no_attach = 1;
	c.double_check = RT_CHECK_REPORT;
	c.heap_min = c.heap_headroom = 256 << 10;
	c.gc_percent = chosen(COLLECT) == 0 ? -1 : 50;
	c.max_procs = 4;
	c.huge_pages = 1;
	c.gc_threads = (int)chosen(HELPERS);
	matrix_check(rt_init(&c) == RT_OK, "init");
	rt_set_warn_handler(on_report, NULL);
}

// make_ballast leaves enough objects to make collections long enough for
// helpers, and begins what the hosts do.
static void make_ballast(void)
{
	attach_main(RT_THREAD_EXACT);
	matrix_check(rt_roots_add(run.ballast, run.ballast + BALLAST,
				  RT_ROOT_EXACT) == RT_OK,
		     "roots");
	for (unsigned i = 0; i < BALLAST; i++)
		run.ballast[i] = chosen(HELPERS) ? rt_alloc(64) : NULL;
	hosts_begin((struct hosts){.fibers = chosen(FIBERS),
				   .drops = chosen(DROPS),
				   .kinds = chosen(KINDS),
				   .libraries = chosen(LIBRARIES)},
		    run.seed);
	matrix_check(rt_thread_detach() == RT_OK, "detach main");
}

static void *load(void *arg)
{
	do {
		hosts_load();
		oscall_yield();
	} while (busy());
	return arg;
}

static pthread_t start_thread(void *(*fn)(void *), uintptr_t arg)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, fn, (void *)arg) != 0)
		abort();
	return thread;
}

// steps_of_each returns how many steps each mutator makes.  Many mutators make
// about as many in all as FEW do.
static uint32_t steps_of_each(void)
{
	uint32_t steps = run.wanted;

	if (chosen(THREADS) > FEW)
		steps = steps * FEW / chosen(THREADS);
	return (uint32_t)base_max(steps, base_min(run.wanted, LEAST_STEPS));
}

static void run_threads(void)
{
	pthread_t mutators[MOST_MUTATORS], others[MOST_OTHERS];
	unsigned n = 0;

	atomic_u32_store_release(&run.busy, chosen(THREADS));
	atomic_u32_store_release(&run.left_alone, 0);
	for (unsigned i = 0; i < chosen(THREADS); i++)
		mutators[i] = start_thread(mutate, i);
	for (unsigned i = 0; i < chosen(STOPPERS); i++)
		others[n++] = start_thread(stop, 0);
	for (unsigned i = 0; i < chosen(READERS); i++)
		others[n++] = start_thread(read_live, 0);
	if (chosen(LIBRARIES))
		others[n++] = start_thread(load, 0);
	disturb(mutators);
	atomic_u32_store_release(&run.left_alone, 1);
	for (unsigned i = 0; i < chosen(THREADS); i++)
		pthread_join(mutators[i], NULL);
	for (unsigned i = 0; i < n; i++)
		pthread_join(others[i], NULL);
}

static void describe(void)
{
	char text[200];
	int n = 0;

	for (unsigned a = 0; a < AXES; a++)
		n += snprintf(text + n, sizeof text - (size_t)n, " %s %u",
			      axes[a].name, chosen((enum axis)a));
	fprintf(stderr, "stress_matrix: failed with%s\n", text);
}

static void run_cell(const struct cell *c)
{
	uint64_t failed = atomic_u64_load_relaxed(&run.failed);
	struct rt_verify v;

	run.cell = *c;
	run.steps = steps_of_each();
	begin();
	make_ballast();
	run_threads();
	matrix_check(atomic_u32_load_acquire(&procs.attached) == 0,
		     "a thread is still attached");
	attach_main(0);
	matrix_check(rt_heap_verify(&v) == RT_OK && v.errors == 0, v.first);
	hosts_end();
	matrix_check(rt_fini() == RT_OK, "fini");
	if (atomic_u64_load_relaxed(&run.failed) != failed)
		describe();
}

// ---- the cells ----

// Pairs of choices that no cell has had yet.
static bool missing[AXES][CHOICES][AXES][CHOICES];

// pairs_new counts the pairs that a cell would be the first to have.  If taken
// is set, these pairs are missing no longer.
static unsigned pairs_new(const struct cell *c, bool taken)
{
	unsigned n = 0;

	for (unsigned a = 0; a < AXES; a++)
		for (unsigned b = a + 1; b < AXES; b++) {
			bool *pair = &missing[a][c->choice[a]][b][c->choice[b]];

			n += *pair;
			if (taken)
				*pair = false;
		}
	return n;
}

static unsigned pairs_begin(void)
{
	unsigned n = 0;

	for (unsigned a = 0; a < AXES; a++)
		for (unsigned b = a + 1; b < AXES; b++)
			for (unsigned i = 0; i < axes[a].n * axes[b].n; i++) {
				missing[a][i % axes[a].n][b][i / axes[a].n] =
				    true;
				n++;
			}
	return n;
}

// best_cell tries random cells, and returns the one that adds most new pairs.
static struct cell best_cell(struct rng *rng)
{
	struct cell best = {0}, c;

	for (unsigned tries = 0; tries < 500; tries++) {
		for (unsigned a = 0; a < AXES; a++)
			c.choice[a] = (unsigned)rng_below(rng, axes[a].n);
		if (pairs_new(&c, false) > pairs_new(&best, false))
			best = c;
	}
	return best;
}

static unsigned run_pairs(void)
{
	struct rng rng = {1}; // always the same cells
	unsigned left = pairs_begin(), cells = 0;

	while (left > 0) {
		struct cell c = best_cell(&rng);

		left -= pairs_new(&c, true);
		run_cell(&c);
		cells++;
	}
	return cells;
}

static unsigned run_all(void)
{
	struct cell c = {0};
	unsigned cells = 0, a;

	do {
		for (a = FIBERS; a < AXES; a++)
			c.choice[a] = (cells >> (a - FIBERS)) % axes[a].n;
		run_cell(&c);
		cells++;
		for (a = 0; a < FIBERS && ++c.choice[a] == axes[a].n; a++)
			c.choice[a] = 0;
	} while (a < FIBERS);
	return cells;
}

int main(void)
{
	const char *which = getenv("RT_MATRIX");
	struct sigaction action = {.sa_handler = on_signal,
				   .sa_flags = SA_RESTART};
	unsigned cells;
	struct rng rng;
	bool failed;

	rng_init(&rng, "stress_matrix");
	run.seed = rng.state;
	run.wanted = (uint32_t)env_u64("RT_STRESS_STEPS", STEPS);
	sigaction(SIGUSR1, &action, NULL);
	if (oscall_stack_bounds(&main_stack.lo, &main_stack.hi) != 0)
		abort();
	cells = which && strcmp(which, "full") == 0 ? run_all() : run_pairs();
	matrix_check(atomic_u64_load_relaxed(&signals) > 0, "no signal came");
	if (run.wanted >= LEAST_STEPS)
		matrix_check(hosts_missed() == NULL, hosts_missed());
	failed = atomic_u64_load_relaxed(&run.failed) != 0;
	printf("stress_matrix: %u cells, %" PRIu64 " checks held, %" PRIu64
	       " did not\n",
	       cells, atomic_u64_load_relaxed(&run.passed),
	       atomic_u64_load_relaxed(&run.failed));
	printf("stress_matrix: %d passed, %d failed\n", !failed, failed);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
