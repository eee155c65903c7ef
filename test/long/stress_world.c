// stress_world: mutators allocate, block, attach and detach while others stop
// the world at random, verify the heap, read every statistic and collect.
//
// Mutators own linked structures with a hash that they check again and again,
// so that the owner of a lost or overwritten object finds the damage.  Stoppers
// find no contradiction in the heap, and exact statistics that agree with a
// walk.  Live readers, one of them never attached, find sums that agree and
// counters that never fall.
//
// The actors of shadow.h wait for each other when the heap is checked.  Here no
// thread waits for others, so a stop finds threads anywhere.
//
// RT_SEED replays the random choices (not the interleaving).  With an odd seed
// the heap sweeps beside the threads, unless RTDEBUG says otherwise.
// RT_STRESS_SECONDS lengthens the run, RT_STOPS changes the least number of
// stops.
#include <inttypes.h>
#include <pthread.h>
#include <rt/rt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "runtime/os/nanotime.h"
#include "runtime/os/oscall.h"
#include "test/harness/recount.h"
#include "test/harness/suite.h"

enum {
	MUTATORS = 5,
	STOPPERS = 3,
	READERS = 3,
	COLLECTORS = 1,
	THREADS = MUTATORS + STOPPERS + READERS + COLLECTORS,
	SECONDS = RT_TSAN || RT_ASAN ? 5 : 4, // at least
	STANDSTILL = 120, // seconds without any stop: then it hangs
	STOPS = RT_TSAN || RT_ASAN ? 500 : 4000,
	HEAP_LIMIT = 16 << 20,
	LISTS = 24,  // that a mutator owns
	LENGTH = 30, // of a list, at most
};

static struct {
	atomic_u32 end;
	atomic_u64 stops;
	atomic_u64 passed; // checks
	atomic_u64 failed;
	atomic_u64 heap_inuse_max;
	uint64_t seed;
} run;

// Checks of this thread that passed, not yet in run.passed.
static __thread uint64_t passed_here;

static void add_passed(void)
{
	atomic_u64_add_relaxed(&run.passed, passed_here);
	passed_here = 0;
}

// check counts a result, and reports the first failures.
static void check(bool ok, const char *what, uint64_t number)
{
	if (RT_LIKELY(ok)) {
		passed_here++;
		return;
	}
	if (atomic_u64_add_relaxed(&run.failed, 1) <= 20)
		fprintf(stderr, "stress_world: %s (%#" PRIx64 ")\n", what,
			number);
}

static pthread_t start_thread(void *(*fn)(void *), void *arg)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, fn, arg) != 0)
		abort();
	return thread;
}

static void join_thread(pthread_t thread)
{
	if (pthread_join(thread, NULL) != 0)
		abort();
}

static void sleep_ns(uint64_t ns)
{
	const struct timespec t = {0, (long)ns};

	nanosleep(&t, NULL);
}

static bool ended(void)
{
	return atomic_u32_load_acquire(&run.end) != 0;
}

// ---- what mutators own ----

// A node's hash covers its words and the hash of the rest of the list.
struct node {
	struct node *next;
	uint64_t hash;
	uint64_t *data; // a pointer-free object, or NULL
	uint32_t data_words;
	uint32_t extra; // words behind, filled from the hash
	uint64_t words[];
};

struct mutator {
	struct rng rng;
	struct node **lists; // LISTS of them, in a heap object
};

static uint64_t mix(uint64_t h, uint64_t x)
{
	h = (h ^ x) * UINT64_C(0x9e3779b97f4a7c15);
	return h ^ (h >> 29);
}

static uint64_t node_hash(const struct node *n)
{
	uint64_t h = n->next ? n->next->hash : 1;

	for (uint32_t i = 0; i < n->extra; i++)
		h = mix(h, n->words[i]);
	// All words of a small object count, and those at both ends of a large
	// one.
	for (uint32_t i = 0; i < n->data_words; i++) {
		h = mix(h, n->data[i]);
		if (i == 200 && n->data_words > 500)
			i = n->data_words - 200;
	}
	return h;
}

static bool zeroed(const uint64_t *words, uint64_t n)
{
	uint64_t all = 0;

	for (uint64_t i = 0; i < n; i++)
		all |= words[i];
	return all == 0;
}

static uint64_t *make_data(struct mutator *m, uint32_t words)
{
	size_t bytes = (size_t)words * sizeof(uint64_t);
	uint64_t *data = rt_alloc_noscan(bytes);

	check(data != NULL, "no memory for data", words);
	if (!data)
		return NULL;
	check(zeroed(data, words), "data is not zeroed", words);
	for (uint32_t i = 0; i < words; i++)
		data[i] = rng_next(&m->rng);
	return data;
}

static uint32_t random_words(struct mutator *m)
{
	uint64_t dice = rng_below(&m->rng, 1000);

	if (dice < 700)
		return 1 + (uint32_t)rng_below(&m->rng, 30);
	if (dice < 990)
		return 1 + (uint32_t)rng_below(&m->rng, 600);
	if (dice < 999)
		return 1 + (uint32_t)rng_below(&m->rng, 6000);
	return 1 + (uint32_t)rng_below(&m->rng, 50000); // cleared as blocked
}

static struct node *make_node(struct mutator *m, struct node *next)
{
	uint32_t extra = (uint32_t)rng_below(&m->rng, 12);
	struct node *n = rt_alloc(sizeof *n + extra * sizeof(uint64_t));

	check(n != NULL, "no memory for a node", extra);
	if (!n)
		return next;
	check(zeroed((uint64_t *)n, sizeof *n / 8 + extra),
	      "a node is not zeroed", extra);
	n->extra = extra;
	for (uint32_t i = 0; i < extra; i++)
		n->words[i] = rng_next(&m->rng) | 1;
	RT_STORE(n, &n->next, next);
	if (rng_below(&m->rng, 3) == 0) {
		uint32_t words = random_words(m);

		RT_STORE(n, &n->data, make_data(m, words));
		n->data_words = n->data ? words : 0;
	}
	n->hash = node_hash(n);
	return n;
}

static void check_list(const struct node *list)
{
	for (const struct node *n = list; n; n = n->next)
		if (!rt_is_heap(n) || n->hash != node_hash(n)) {
			check(false, "a list was overwritten", (uintptr_t)n);
			return;
		}
	check(true, "", 0);
}

static void grow_list(struct mutator *m, uint64_t i)
{
	uint64_t length = rng_below(&m->rng, LENGTH);
	struct node *list = NULL;

	for (uint64_t k = 0; k < length; k++)
		list = make_node(m, list);
	RT_STORE(m->lists, &m->lists[i], list);
}

// ---- mutators ----

static void make_garbage(struct mutator *m)
{
	for (uint64_t n = rng_below(&m->rng, 200); n > 0; n--) {
		char *tiny = rt_alloc_noscan(1 + rng_below(&m->rng, 15));

		if (tiny)
			*tiny = 1;
		rt_alloc(16);
	}
}

static void *rest(void *arg)
{
	const struct mutator *m = arg;

	// In a region, pointers that the thread already held may be read.
	check_list(m->lists[0]);
	oscall_yield();
	return arg;
}

static void use_stack(struct mutator *m)
{
	size_t n = (size_t)2048 << rng_below(&m->rng, 6);
	char *stack = rt_stack_alloc(n);

	check(stack != NULL, "no stack", n);
	if (!stack)
		return;
	memset(stack, 0xa5, n);
	rt_safepoint();
	check(stack[0] == (char)0xa5 && stack[n - 1] == (char)0xa5,
	      "a stack was overwritten", n);
	check(rt_stack_free(stack, n) == RT_OK, "stack not freed", n);
}

// mutate is one step of a mutator.  Only its stack and its registers refer to
// the lists.
static void mutate(struct mutator *m)
{
	uint64_t i = rng_below(&m->rng, LISTS);

	switch (rng_below(&m->rng, 12)) {
	case 0:
		check(rt_blocking_enter() == RT_OK, "enter", 0);
		rest(m);
		check(rt_blocking_leave() == RT_OK, "leave", 0);
		break;
	case 1:
		check(rt_call_blocking(rest, m) == m, "call blocking", 0);
		break;
	case 2:
		use_stack(m);
		break;
	case 3:
		make_garbage(m);
		break;
	case 4:
	case 5:
	case 6:
		grow_list(m, i);
		break;
	default:
		check_list(m->lists[i]);
	}
	rt_safepoint();
}

// live_once attaches the thread and does some steps.  All that the mutator
// owned is garbage afterwards.
static void live_once(struct mutator *m)
{
	check(rt_thread_attach(0) == RT_OK, "attach", 0);
	m->lists = rt_alloc(LISTS * sizeof *m->lists);
	check(m->lists != NULL, "no memory for lists", 0);
	for (uint64_t n = 20 + rng_below(&m->rng, 500);
	     m->lists && n > 0 && !ended(); n--)
		mutate(m);
	for (int i = 0; m->lists && i < LISTS; i++)
		check_list(m->lists[i]);
	m->lists = NULL;
}

static void mutator_main(struct rng rng)
{
	struct mutator m = {.rng = rng};

	while (!ended()) {
		live_once(&m);
		check(rt_thread_detach() == RT_OK, "detach", 0);
	}
}

// Some mutators exit without a detach.
static void *exit_attached(void *arg)
{
	struct mutator m = {.rng = *(struct rng *)arg};

	live_once(&m);
	if (rng_below(&m.rng, 2))
		rt_blocking_enter();
	add_passed();
	return NULL;
}

static void exiting_main(struct rng rng)
{
	while (!ended()) {
		struct rng next = {rng_next(&rng)};

		join_thread(start_thread(exit_attached, &next));
	}
}

// nap gives the others time; an attached thread naps in a region.
static void nap(struct rng *rng)
{
	bool attached = rt_thread_self() != NULL;

	if (attached)
		check(rt_blocking_enter() == RT_OK, "enter", 2);
	sleep_ns(rng_below(rng, 2000000));
	if (attached)
		check(rt_blocking_leave() == RT_OK, "leave", 2);
}

// ---- statistics ----

// agree checks what holds in every result, exact or live.
static void agree(const rt_memstats *m)
{
	uint64_t mallocs = 0, frees = 0;

	check(m->sys == m->heap_sys + m->stack_sys + m->mspan_sys +
			    m->mcache_sys + m->buckhash_sys + m->gc_sys +
			    m->other_sys,
	      "sys is not its parts", m->sys);
	check(m->heap_sys == m->heap_idle + m->heap_inuse,
	      "heap_sys is not idle and in use", m->heap_sys);
	check(m->heap_released <= m->heap_idle, "more released than idle",
	      m->heap_released);
	check(m->alloc == m->heap_alloc && m->heap_alloc <= m->heap_inuse &&
		  m->heap_alloc <= m->total_alloc,
	      "more allocated than in use", m->heap_alloc);
	check(m->heap_objects == m->mallocs - m->frees &&
		  m->mallocs >= m->frees,
	      "objects are not mallocs without frees", m->heap_objects);
	check(m->mspan_inuse <= m->mspan_sys, "mspan", m->mspan_inuse);
	check(m->stack_inuse <= m->stack_sys, "stack", m->stack_inuse);
	for (int i = 0; i < RT_BY_SIZE; i++) {
		check(m->by_size[i].frees <= m->by_size[i].mallocs,
		      "more frees than mallocs of class", (uint64_t)i);
		mallocs += m->by_size[i].mallocs;
		frees += m->by_size[i].frees;
	}
	check(mallocs <= m->mallocs && frees <= m->frees,
	      "classes have more than all", mallocs);
	check(m->num_gc == 0 ||
		  m->pause_end[(m->num_gc + RT_PAUSES - 1) % RT_PAUSES] ==
		      m->last_gc,
	      "last_gc is not the last pause_end", m->num_gc);
	check(m->num_forced_gc <= m->num_gc, "forced", m->num_forced_gc);
}

// never_falls compares with an earlier result.
static void never_falls(const rt_memstats *was, const rt_memstats *is)
{
	check(is->mallocs >= was->mallocs, "mallocs fell", is->mallocs);
	check(is->frees >= was->frees, "frees fell", is->frees);
	check(is->total_alloc >= was->total_alloc, "total_alloc fell",
	      is->total_alloc);
	check(is->num_gc >= was->num_gc &&
		  is->num_forced_gc >= was->num_forced_gc,
	      "num_gc fell", is->num_gc);
	check(is->pause_total_ns >= was->pause_total_ns, "pauses fell",
	      is->pause_total_ns);
	// Only a collection changes last_gc.  It may fall, because the clock
	// may be set back.
	check(is->last_gc == was->last_gc || is->num_gc > was->num_gc,
	      "last_gc changed without a collection", is->last_gc);
	check(is->total_alloc - is->heap_alloc >=
		  was->total_alloc - was->heap_alloc,
	      "freed bytes fell", is->heap_alloc);
	for (int i = 0; i < RT_BY_SIZE; i++)
		check(is->by_size[i].mallocs >= was->by_size[i].mallocs &&
			  is->by_size[i].frees >= was->by_size[i].frees,
		      "a class fell", (uint64_t)i);
}

static void note_heap(const rt_memstats *m)
{
	uint64_t max = atomic_u64_load_relaxed(&run.heap_inuse_max);

	while (m->heap_inuse > max &&
	       !atomic_u64_cas_relaxed(&run.heap_inuse_max, max, m->heap_inuse))
		max = atomic_u64_load_relaxed(&run.heap_inuse_max);
}

// read_one reads, checks, and keeps the result for the next time.
static void read_one(rt_memstats *last, int (*read)(rt_memstats *))
{
	rt_memstats m;

	check(read(&m) == RT_OK, "read refused", 0);
	agree(&m);
	never_falls(last, &m);
	note_heap(&m);
	*last = m;
}

static void read_history(void)
{
	uint64_t words[RT_GCSTATS_WORDS];
	uint64_t sum = 0;
	size_t used = 0, n;

	check(rt_read_gcstats(words, RT_GCSTATS_WORDS, &used) == RT_OK,
	      "history refused", used);
	n = (used - 3) / 2;
	check(n == base_min(words[2 * n + 1], RT_PAUSES), "history length",
	      used);
	check(n == 0 || words[n] == words[2 * n], "last_gc of the history", n);
	for (size_t i = 0; i < n; i++)
		sum += words[i];
	check(sum <= words[2 * n + 2], "sum of the history", sum);
}

// reader_main reads live statistics and, rarely, exact ones.  One reader is
// never attached, one reads in a region, and one reads outside of regions.
static void reader_main(struct rng rng, bool attach, bool region)
{
	rt_memstats last = {0};

	if (attach)
		check(rt_thread_attach(RT_THREAD_EXACT) == RT_OK, "attach", 1);
	while (!ended()) {
		if (region)
			check(rt_blocking_enter() == RT_OK, "enter", 1);
		for (int i = 0; i < 20; i++)
			read_one(&last, rt_read_memstats_live);
		read_history();
		if (rng_below(&rng, 20) == 0) {
			read_one(&last, rt_read_memstats);
			atomic_u64_add_relaxed(&run.stops, 1);
		}
		if (region)
			check(rt_blocking_leave() == RT_OK, "leave", 1);
		nap(&rng);
	}
	if (attach)
		check(rt_thread_detach() == RT_OK, "detach", 1);
}

// ---- stoppers ----

struct walk {
	uint64_t objects;
	uint64_t bytes;
};

static int add_object(void *obj, size_t size, int kind, void *arg)
{
	struct walk *w = arg;

	if (rt_base(obj) == obj && rt_size(obj) == size && kind <= RT_WORDS) {
		w->objects++;
		w->bytes += size;
	}
	return 0;
}

static void verify(void)
{
	struct rt_verify v;

	check(rt_heap_verify(&v) == RT_OK, "verify refused", 0);
	check(v.errors == 0, v.first, v.errors);
}

// In a stop of the host, exact and live statistics are the same, agree with a
// walk, a verification and a recount, and do not change.
static void look_around(rt_memstats *last)
{
	rt_memstats exact, live;
	struct comparison c = {0};
	struct walk w = {0};
	struct rt_verify v;

	check(rt_read_memstats(&exact) == RT_OK, "stopper's read", 0);
	agree(&exact);
	never_falls(last, &exact);
	check(rt_heap_walk(add_object, &w) == RT_OK, "stopper's walk", 0);
	check(rt_heap_verify(&v) == RT_OK, "stopper's verify", 0);
	check(v.errors == 0, v.first, v.errors);
	check(v.objects == exact.heap_objects, "verify's objects", v.objects);
	check(v.bytes == exact.heap_alloc, "verify's bytes", v.bytes);
	// A walk leaves out large objects that are being cleared.
	check(w.objects <= v.objects && w.objects + MUTATORS >= v.objects,
	      "walked objects", w.objects);
	check(w.bytes <= v.bytes, "walked bytes", w.bytes);
	recount_compare(&exact, &c);
	check(c.differing == 0, c.first, c.differing);
	check(rt_gc() == RT_EBUSY && rt_alloc(32) == NULL &&
		  rt_stop_the_world(RT_STOP_HOST) == RT_EBUSY,
	      "allowed in the own stop", 0);
	check(rt_read_memstats_live(&live) == RT_OK, "stopper's live read", 0);
	check(memcmp(&exact, &live, sizeof exact) == 0,
	      "something moved in a stop", live.mallocs - exact.mallocs);
	*last = exact;
}

static void stop_once(struct rng *rng, rt_memstats *last)
{
	struct walk w = {0};
	rt_stop_times t;

	switch (rng_below(rng, 6)) {
	case 0:
		check(rt_heap_walk(add_object, &w) == RT_OK, "walk", 0);
		break;
	case 1:
		verify();
		break;
	case 2:
		read_one(last, rt_read_memstats);
		break;
	default:
		check(rt_stop_the_world(RT_STOP_HOST) == RT_OK, "stop", 0);
		if (rng_below(rng, 3) == 0)
			look_around(last);
		check(rt_start_the_world(&t) == RT_OK, "start", 0);
		check(t.total_ns == t.stopping_ns + t.stopped_ns &&
			  t.nthreads >= 1,
		      "stop times", t.total_ns);
	}
	atomic_u64_add_relaxed(&run.stops, 1);
}

static void stopper_main(struct rng rng)
{
	rt_memstats last = {0};

	check(rt_thread_attach(0) == RT_OK, "attach", 2);
	while (!ended()) {
		stop_once(&rng, &last);
		nap(&rng);
	}
	check(rt_thread_detach() == RT_OK, "detach", 2);
}

static void collector_main(struct rng rng)
{
	check(rt_thread_attach(0) == RT_OK, "attach", 3);
	while (!ended()) {
		if (rng_below(&rng, 8) == 0)
			check(rt_free_os_memory() == RT_OK, "release", 0);
		else
			check(rt_gc() == RT_OK, "collect", 0);
		atomic_u64_add_relaxed(&run.stops, 1);
		nap(&rng);
	}
	check(rt_thread_detach() == RT_OK, "detach", 3);
}

// ---- the run ----

static void *thread_main(void *arg)
{
	unsigned i = (unsigned)(uintptr_t)arg;
	struct rng rng = {run.seed + i * UINT64_C(0x9e3779b97f4a7c15)};

	if (i == 0)
		exiting_main(rng);
	else if (i < MUTATORS)
		mutator_main(rng);
	else if (i < MUTATORS + STOPPERS)
		stopper_main(rng);
	else if (i < MUTATORS + STOPPERS + READERS)
		reader_main(rng, i % 3 != 0, i % 3 == 1);
	else
		collector_main(rng);
	add_passed();
	return NULL;
}

static void begin(void)
{
	rt_config c;

	rt_config_init(&c);
	// In the stop, or beside the threads.
	c.sweep = run.seed & 1 ? 2 : 0;
	rt_config_from_env(&c);
	fprintf(stderr, "stress_world: sweep %u\n", c.sweep);
	c.double_check = RT_CHECK_FATAL;
	c.heap_min = 1 << 20;
	c.heap_headroom = 1 << 20;
	c.gc_percent = 50;
	c.huge_pages = 1;
	check(rt_init(&c) == RT_OK, "init", 0);
}

static uint64_t seconds_since(uint64_t start)
{
	return (nanotime() - start) / UINT64_C(1000000000);
}

// run_until waits for the time and the stops, however long these take.  It
// returns false if no stop comes for STANDSTILL seconds.
static bool run_until(uint64_t seconds, uint64_t stops)
{
	uint64_t start = nanotime(), last = start, seen = 0;

	while (seconds_since(start) < seconds || seen < stops) {
		uint64_t now = atomic_u64_load_relaxed(&run.stops);

		if (now != seen)
			last = nanotime();
		else if (seconds_since(last) > STANDSTILL)
			return false;
		seen = now;
		sleep_ns(10000000);
	}
	return true;
}

// report prints how much was done, which helps to tune the run.
static void report(void)
{
	rt_memstats m;

	check(rt_read_memstats(&m) == RT_OK, "last read", 0);
	fprintf(stderr,
		"stress_world: %" PRIu64 " stops by threads, %u collections "
		"(%u forced), %" PRIu64 " mallocs, at most %" PRIu64
		" KiB in use\n",
		atomic_u64_load_relaxed(&run.stops), m.num_gc, m.num_forced_gc,
		m.mallocs, atomic_u64_load_relaxed(&run.heap_inuse_max) >> 10);
}

int main(void)
{
	uint64_t seconds = env_u64("RT_STRESS_SECONDS", SECONDS);
	uint64_t stops = env_u64("RT_STOPS", STOPS);
	pthread_t threads[THREADS];
	struct rng rng;

	rng_init(&rng, "stress_world");
	run.seed = rng.state;
	begin();
	check(rt_blocking_enter() == RT_OK, "enter", 4);
	for (uintptr_t i = 0; i < THREADS; i++)
		threads[i] = start_thread(thread_main, (void *)i);
	if (!run_until(seconds, stops)) {
		fprintf(stderr,
			"stress_world: no stop after %" PRIu64 " of them\n",
			atomic_u64_load_relaxed(&run.stops));
		abort();
	}
	atomic_u32_store_release(&run.end, 1);
	for (int i = 0; i < THREADS; i++)
		join_thread(threads[i]);
	check(rt_blocking_leave() == RT_OK, "leave", 4);
	verify();
	check(atomic_u64_load_relaxed(&run.heap_inuse_max) <= HEAP_LIMIT,
	      "the heap grew too big",
	      atomic_u64_load_relaxed(&run.heap_inuse_max));
	report();
	check(rt_fini() == RT_OK, "fini", 0);
	add_passed();
	printf("stress_world: %" PRIu64 " checks held, %" PRIu64 " did not\n",
	       atomic_u64_load_relaxed(&run.passed),
	       atomic_u64_load_relaxed(&run.failed));
	printf("stress_world: %d passed, %d failed\n",
	       atomic_u64_load_relaxed(&run.failed) == 0,
	       atomic_u64_load_relaxed(&run.failed) != 0);
	return atomic_u64_load_relaxed(&run.failed) ? EXIT_FAILURE
						    : EXIT_SUCCESS;
}
