// soak - does a heap stay as it is, however long it is used?
//
// The test keeps no copy of the heap (shadow.h), because the copy's own memory
// would change as well, and the process is measured.
//
// Threads come and go, allocate sizes that shift from round to round, drop what
// they hold, send each other objects, read statistics, collect and block.  The
// process forks.  At the end of a round free memory is released.  Then as many
// objects live as after every other round.  The heap is counted again, totals
// have not fallen, and the memory that the system holds for the process is
// noted.
//
// One heap sweeps in the stop, has no scavenger, and is told to release memory.
// The other one sweeps beside the threads, gets memory ahead of need, and has a
// scavenger that releases.  It is told to release in one round of three.  In
// the other two the program waits in a blocking region until the scavenger has
// released the free memory.  In one of them this is after a collection that the
// program asked for, in the other after a periodic one.  If the scavenger does
// nothing, the test fails there.  A wait does not last the real seconds:
// fault_advance_clock makes them pass.
//
// At the end a line is fitted through the noted values (Theil and Sen: the
// median of all slopes, so that single rounds do not count).  Its rise over all
// rounds after the first quarter must be at most a sixteenth of the live
// memory.  The highest peak of the last half of these rounds must not exceed
// the highest of the first half by more than the live memory.  Time decides
// only how many rounds there are: RT_SOAK_SECONDS.
//
// All counters that can come to the end of their range begin shortly before
// it (struct number).
#include "test/harness/heap.h"

#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "gc/mark/crew.h"
#include "gc/mark/work.h"
#include "gc/cycle/scavenger.h"
#include "runtime/world/gcstats.h"
#include "runtime/world/heapgauge.h"
#include "runtime/world/heapstats.h"
#include "runtime/spans/mheap.h"
#include "runtime/os/poison.h"
#include "test/harness/constant.h"
#include "test/harness/fault.h"
#include "test/harness/process.h"
#include "test/harness/recount.h"

enum {
	WORKERS = 4,
	SLOTS = 256, // of a worker
	BOX = 32,    // messages that wait for a worker
	OPERATIONS = 6000 / HEAP_CUT,
	ROUNDS = 9,  // of each heap, at least
	NWIDE = 32,  // what lives: arrays,
	WIDE = 4096, // of objects
	LEAF = 64,   // bytes
	SAMPLES = 512,
	MAX_HEAP = 256 << 20,
	FAR = 128 << 20, // more than the work needs at once
	FORK_EVERY = 4,
	HELPERS = 2,
	IDLE_S = 5, // rt_config
	PERIOD_S = 60,
	FREE_LEFT = 512 << 10, // bytes that a scavenger may leave free
	NAPS = 60 * 1000,      // of a millisecond, in which it must release
};

static const uint64_t live_bytes = NWIDE * WIDE * (uint64_t)(LEAF + 8);

static void **wide[NWIDE]; // a root

struct worker {
	atomic_ptr box[BOX]; // a root; the previous worker fills it
	void *slot[SLOTS];   // a root
	struct rng rng;
	unsigned id, round;
	bool exits_attached;
};

static struct worker workers[WORKERS];
static atomic_u64 wrong; // objects that were not what they should be

// ---- counters near the end of their range ----

enum {
	CYCLES = 8, // collections before their numbers end
	STOPS = 20,
	CHANGES = 200, // of statistics by one thread
	OBJECTS = 300, // of each class
	CREW_BITS = 29,
};

static const uint32_t last_sweepgen = -(uint32_t)(2 * CYCLES);
static const uint32_t last_gate = -(uint32_t)(2 * STOPS);
static const uint32_t last_seq = -(uint32_t)(2 * CHANGES);
static const uint32_t last_cycle = -(uint32_t)CYCLES;
static const uint32_t last_call = (UINT32_C(1) << CREW_BITS) - CYCLES;
static const uint64_t last_pause_ns = -(uint64_t)1000;
static atomic_u32 seqs_wrapped;

// begin_class makes the counts of allocations and frees of a class begin n
// below 2^bits.  It returns the bytes of what was then made and freed, modulo
// 2^64.
static uint64_t begin_class(struct heapstats_delta *d, unsigned c,
			    unsigned bits, uint64_t n)
{
	uint64_t first = (bits == 64 ? 0 : UINT64_C(1) << bits) - n;

	heapstats_add(&d->small_alloc_count[c], first);
	heapstats_add(&d->small_free_count[c], first);
	return first * sizeclass_table[c].size;
}

// begin_totals brings the counts of odd classes near 2^32, and the counts of
// even classes and of large objects near 2^64.
static void begin_totals(void)
{
	struct heapstats_delta *d = heapstats_acquire(NULL);
	const uint64_t large = -(uint64_t)(1 << 20);
	uint64_t bytes = large;

	for (unsigned c = 1; c < SIZECLASS_COUNT; c++)
		bytes += begin_class(d, c, c % 2 ? 32 : 64, OBJECTS);
	heapstats_add(&d->large_alloc, large);
	heapstats_add(&d->large_free, large);
	heapstats_add(&d->large_alloc_count, large);
	heapstats_add(&d->large_free_count, large);
	heapstats_add(&d->tiny_alloc_count, -(uint64_t)OBJECTS);
	heapstats_release(NULL);
	heapgauge_add(NULL, HEAPGAUGE_TOTAL_ALLOC, (int64_t)bytes);
	heapgauge_add(NULL, HEAPGAUGE_TOTAL_FREE, (int64_t)bytes);
}

// begin_numbers is called when there is a heap and no thread is attached.
static void begin_numbers(void)
{
	atomic_u32_store_relaxed(&epoch.sweepgen, last_sweepgen);
	atomic_u32_store_relaxed(&procs.gate, last_gate);
	mheap.pages.scav.gen = last_cycle;
	atomic_u64_store_relaxed(&gcstats.pauses.total_ns, last_pause_ns);
	gcstats_count_from(last_cycle);
	stw_count_from(-(uint32_t)STOPS);
	work_count_from(last_cycle);
	crew_count_from(last_call);
	begin_totals();
}

// Each thread that attaches calls begin_seq, which changes the seq of a new P.
static void begin_seq(void)
{
	atomic_u32 *seq = &proc_self()->stats_seq;
	uint32_t now = atomic_u32_load_relaxed(seq);

	if (now < last_seq && now < 2 * CHANGES)
		atomic_u32_store_release(seq, last_seq);
}

static bool sweepgen_wrapped(void)
{
	return epoch_sweepgen() < last_sweepgen;
}

static bool gate_wrapped(void)
{
	return atomic_u32_load_relaxed(&procs.gate) < last_gate;
}

static bool seq_wrapped(void)
{
	return atomic_u32_load_relaxed(&seqs_wrapped) != 0;
}

static bool gen_wrapped(void)
{
	return mheap.pages.scav.gen < last_cycle;
}

static bool num_gc_wrapped(void)
{
	return heap_stats().num_gc < last_cycle &&
	       heap_metric("/gc/cycles/total:gc-cycles") > UINT32_MAX;
}

static bool pauses_wrapped(void)
{
	return heap_stats().pause_total_ns < last_pause_ns;
}

static bool mallocs_wrapped(void)
{
	struct heapstats_totals t;

	heapstats_read(&t);
	return t.small_alloc_count[2] < OBJECTS * 1000000 &&
	       t.small_alloc_count[5] > UINT32_MAX &&
	       t.large_alloc < 1ULL << 63;
}

static bool tickets_wrapped(void)
{
	return stw_count_from(0) < -(uint32_t)STOPS;
}

static bool markings_wrapped(void)
{
	return work_count_from(0) < last_cycle;
}

static bool calls_wrapped(void)
{
	return crew_size() == 0 || crew_count_from(1) < last_call;
}

// The counters that grow for as long as a heap lives, and what happens at the
// end of their range.  A null function: the counter cannot be brought there
// from here.
static const struct number {
	const char *name, *at_the_end;
	bool (*wrapped)(void);
} numbers[] = {
    {"epoch.sweepgen", "differences count; no span is 2^31 cycles behind",
     sweepgen_wrapped},
    {"procs.gate", "compared for being equal, and odd", gate_wrapped},
    {"rt_proc.stats_seq", "looked at for being odd", seq_wrapped},
    {"scavindex.gen",
     "compared for being equal: a chunk untouched for 2^32 "
     "cycles counts as of this one, once",
     gen_wrapped},
    {"gcstats num_gc", "64 bits; rt_memstats has the lower 32, as Go's",
     num_gc_wrapped},
    {"pausering", "slot: the lower 8 bits; total_ns modulo 2^64",
     pauses_wrapped},
    {"heapstats", "modulo 2^64, as are differences and sums", mallocs_wrapped},
    {"heapgauge totals",
     "a sum of 2^63 bytes throws: after 292 years of 1 GB/s", NULL},
    {"worldsema", "tickets are compared for being equal", tickets_wrapped},
    {"work.marking",
     "compared for being equal: a marker that "
     "slept through 2^32 leaves one marking to others",
     markings_wrapped},
    {"crew.call", "30 bits, compared for being equal", calls_wrapped},
    {"lfstack tag", "22 bits; check_lfstack begins near the end", NULL},
    {"throw's version", "looked at for being odd, and equal", NULL},
    {"heapstats.gen", "0, 1, 2, 0", NULL},
    {"records of gcstats", "64 bits, compared for being equal", NULL},
    {"histograms", "64 bits, one a stop", NULL},
    {"procs.made", "threads at one time, not ever", NULL},
    {"clocks", "64 bits of ns: 584 years", NULL},
};

static void numbers_wrapped(void)
{
	for (unsigned i = 0; i < RT_ARRAY_LEN(numbers); i++)
		if (numbers[i].wrapped)
			ck_assert_msg(numbers[i].wrapped(),
				      "%s: not at its end", numbers[i].name);
}

// ---- one worker ----

// An object begins with a word that is no address and tells its size.
static uint64_t tag_of(size_t n)
{
	return n << 1 | 1;
}

static void expect(bool ok)
{
	if (!ok)
		atomic_u64_add_relaxed(&wrong, 1);
}

static void check_object(const void *p)
{
	uint64_t tag;

	if (!p)
		return;
	memcpy(&tag, p, sizeof tag);
	expect(tag % 2 == 1 && rt_size((void *)(uintptr_t)p) >= tag >> 1);
}

// random_size returns a size.  Sizes shift from round to round.
static size_t random_size(struct worker *w)
{
	static const size_t most[] = {128, 2048, 32768, 300000};
	size_t max = most[(w->round + w->id) % RT_ARRAY_LEN(most)];

	return 8 + rng_below(&w->rng, rng_below(&w->rng, 4) ? 256 : max);
}

static void *make(struct worker *w)
{
	size_t n = random_size(w);
	uint64_t tag;
	void *p;

	switch (rng_below(&w->rng, 4)) {
	case 0:
		p = constant_alloc((unsigned)rng_below(&w->rng, 8),
				   rng_below(&w->rng, 2), &n);
		break;
	case 1:
		p = rt_alloc_noscan(n);
		break;
	case 2:
		p = rt_alloc_noscan_uninit(n);
		break;
	default:
		p = rt_alloc(n);
	}
	if (!p)
		return NULL;
	tag = tag_of(n);
	memcpy(p, &tag, sizeof tag);
	return p;
}

static void replace(struct worker *w)
{
	void **slot = &w->slot[rng_below(&w->rng, SLOTS)];

	check_object(*slot);
	*slot = make(w);
}

// send gives an object to the next worker, if there is room.
static void send(struct worker *w)
{
	struct worker *to = &workers[(w->id + 1) % WORKERS];
	atomic_ptr *place = &to->box[rng_below(&w->rng, BOX)];

	// Pairs with the release in receive.
	if (!atomic_ptr_load_acquire(place))
		atomic_ptr_store_release(place, make(w));
}

static void receive(struct worker *w)
{
	atomic_ptr *place = &w->box[rng_below(&w->rng, BOX)];
	void *p = atomic_ptr_load_acquire(place); // from send

	if (!p)
		return;
	check_object(p);
	w->slot[rng_below(&w->rng, SLOTS)] = p;
	atomic_ptr_store_release(place, NULL);
}

static void use_stack(struct worker *w)
{
	size_t n = (size_t)2048 << rng_below(&w->rng, 6);
	void *stack = rt_stack_alloc(n);

	expect(stack && rt_stack_free(stack, n) == RT_OK);
}

static void read_statistics(bool exact)
{
	rt_memstats m;

	expect((exact ? rt_read_memstats(&m) : rt_read_memstats_live(&m)) ==
	       RT_OK);
	expect(m.heap_inuse + m.heap_idle == m.heap_sys);
	expect(m.heap_released <= m.heap_idle);
	expect(m.mallocs - m.frees == m.heap_objects);
}

static void operate(struct worker *w)
{
	uint64_t x = rng_below(&w->rng, 2000);

	if (x == 0)
		expect(rt_gc() == RT_OK);
	else if (x < 3)
		read_statistics(true);
	else if (x < 20)
		read_statistics(false);
	else if (x < 30)
		use_stack(w);
	else if (x < 40)
		expect(rt_blocking_enter() == RT_OK &&
		       rt_blocking_leave() == RT_OK);
	else if (x < 100)
		send(w);
	else if (x < 160)
		receive(w);
	else
		replace(w);
	if (x % 16 == 0)
		rt_safepoint();
}

static void drop(struct worker *w)
{
	memset(w->slot, 0, sizeof w->slot);
	for (unsigned i = 0; i < BOX; i++)
		atomic_ptr_store_release(&w->box[i], NULL);
}

static void *work(void *arg)
{
	struct worker *w = arg;

	expect(rt_thread_attach(w->round % 2 ? RT_THREAD_EXACT : 0) == RT_OK);
	begin_seq();
	for (unsigned i = 0; i < OPERATIONS; i++)
		operate(w);
	if (atomic_u32_load_relaxed(&proc_self()->stats_seq) < 1 << 30)
		atomic_u32_store_relaxed(&seqs_wrapped, 1);
	if (!w->exits_attached)
		expect(rt_thread_detach() == RT_OK);
	return NULL;
}

// ---- one round ----

static void work_together(unsigned round)
{
	pthread_t thread[WORKERS];

	for (unsigned i = 0; i < WORKERS; i++) {
		workers[i].round = round;
		workers[i].exits_attached = (round + i) % 3 == 0;
		ck_assert_int_eq(
		    pthread_create(&thread[i], NULL, work, &workers[i]), 0);
	}
	ck_assert_int_eq(rt_blocking_enter(), RT_OK);
	for (unsigned i = 0; i < WORKERS; i++)
		pthread_join(thread[i], NULL);
	ck_assert_int_eq(rt_blocking_leave(), RT_OK);
	for (unsigned i = 0; i < WORKERS; i++)
		drop(&workers[i]);
}

// A child continues to use the heap.
static void use_in_child(void)
{
	pid_t child = fork();
	int status;

	ck_assert_int_ge(child, 0);
	if (child == 0) {
		bool ok = rt_gc() == RT_OK && rt_alloc(1000) && heap_is_whole();

		_exit(ok ? EXIT_SUCCESS : EXIT_FAILURE);
	}
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == EXIT_SUCCESS);
}

// forward tells whether a counter that may wrap has not gone back.
static bool forward(uint64_t from, uint64_t to)
{
	return to - from < UINT64_C(1) << 63;
}

static void expect_forward(const rt_memstats *a, const rt_memstats *b)
{
	ck_assert(forward(a->total_alloc, b->total_alloc));
	ck_assert(forward(a->mallocs, b->mallocs));
	ck_assert(forward(a->frees, b->frees));
	ck_assert(forward(a->pause_total_ns, b->pause_total_ns));
	ck_assert_uint_lt(b->num_gc - a->num_gc, UINT32_C(1) << 31);
	ck_assert_uint_lt(b->num_forced_gc - a->num_forced_gc, UINT32_C(1)
								   << 31);
	for (unsigned i = 0; i < RT_ARRAY_LEN(b->by_size); i++) {
		ck_assert(
		    forward(a->by_size[i].mallocs, b->by_size[i].mallocs));
		ck_assert(forward(a->by_size[i].frees, b->by_size[i].frees));
	}
}

// The metrics as of the previous round and as of this one.
struct totals {
	rt_metric_desc *desc;
	rt_metric_sample *before, *now;
	size_t n;
};

static rt_metric_sample *make_samples(const struct totals *t)
{
	rt_metric_sample *sample = calloc(t->n, sizeof *sample);

	ck_assert_ptr_nonnull(sample);
	for (size_t i = 0; i < t->n; i++) {
		sample[i].name = t->desc[i].name;
		sample[i].ncounts = t->desc[i].ncounts;
		sample[i].counts =
		    calloc(t->desc[i].ncounts + 1, sizeof *sample[i].counts);
		ck_assert_ptr_nonnull(sample[i].counts);
	}
	return sample;
}

static void make_totals(struct totals *t)
{
	t->n = rt_metrics_count();
	t->desc = calloc(t->n, sizeof *t->desc);
	ck_assert_ptr_nonnull(t->desc);
	for (size_t i = 0; i < t->n; i++)
		must(rt_metrics_describe(i, &t->desc[i]));
	t->before = make_samples(t);
	t->now = make_samples(t);
	must(rt_metrics_read(t->now, t->n));
}

// went_on tells whether a metric that must never go down has not gone down.
static bool went_on(const rt_metric_sample *a, const rt_metric_sample *b)
{
	switch (b->result) {
	case RT_METRIC_U64:
		return forward(a->u64, b->u64);
	case RT_METRIC_F64:
		return a->f64 <= b->f64;
	case RT_METRIC_HISTOGRAM:
		for (size_t i = 0; i < b->ncounts; i++)
			if (!forward(a->counts[i], b->counts[i]))
				return false;
		return a->ncounts == b->ncounts;
	default:
		return false;
	}
}

static void expect_totals_forward(struct totals *t)
{
	rt_metric_sample *before = t->now;

	t->now = t->before;
	t->before = before;
	must(rt_metrics_read(t->now, t->n));
	for (size_t i = 0; i < t->n; i++)
		ck_assert_msg(!t->desc[i].cumulative ||
				  went_on(&t->before[i], &t->now[i]),
			      "%s has gone back", t->desc[i].name);
}

static void expect_parts(const rt_memstats *m)
{
	ck_assert_uint_eq(m->heap_sys + m->stack_sys + m->mspan_sys +
			      m->mcache_sys + m->buckhash_sys + m->gc_sys +
			      m->other_sys,
			  m->sys);
	ck_assert_uint_eq(m->heap_inuse + m->heap_idle, m->heap_sys);
	ck_assert_uint_eq(m->mallocs - m->frees, m->heap_objects);
	ck_assert_uint_eq(m->heap_objects, NWIDE * (WIDE + 1));
	ck_assert_uint_le(m->heap_released, m->heap_idle);
	ck_assert_uint_eq(m->alloc, m->heap_alloc);
}

// ---- what was noted ----

struct sample {
	uint64_t round;
	double held;	 // bytes of the heap: sys - heap_released
	double resident; // bytes of the process
	double peak;	 // the most that it had in the round
};

// Every step-th round; when there is no room, every second sample is dropped.
static struct sample sample[SAMPLES];
static unsigned nsamples;
static uint64_t step = 1;

static void note(uint64_t round, const rt_memstats *m)
{
	if (round % step != 0)
		return;
	if (nsamples == SAMPLES) {
		for (unsigned i = 0; i < SAMPLES / 2; i++)
			sample[i] = sample[2 * i];
		nsamples = SAMPLES / 2;
		step *= 2;
		if (round % step != 0)
			return;
	}
	sample[nsamples++] = (struct sample){
	    round, (double)(m->sys - m->heap_released),
	    (double)process_status("VmRSS"), (double)process_status("VmHWM")};
}

// begin_peak makes VmHWM begin at what is resident now.
static void begin_peak(void)
{
	int file = open("/proc/self/clear_refs", O_WRONLY);

	ck_assert_int_ge(file, 0);
	ck_assert_int_eq(write(file, "5", 1), 1);
	ck_assert_int_eq(close(file), 0);
}

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double held_of(const struct sample *s)
{
	return s->held;
}

static double resident_of(const struct sample *s)
{
	return s->resident;
}

// rise returns how much the line through the samples from the first one on
// rises.
static double rise(double (*value)(const struct sample *), unsigned first)
{
	static double slope[SAMPLES * (SAMPLES - 1) / 2];
	unsigned n = 0;

	for (unsigned i = first; i < nsamples; i++)
		for (unsigned k = i + 1; k < nsamples; k++)
			slope[n++] =
			    (value(&sample[k]) - value(&sample[i])) /
			    (double)(sample[k].round - sample[i].round);
	qsort(slope, n, sizeof *slope, ascending);
	return slope[n / 2] *
	       (double)(sample[nsamples - 1].round - sample[first].round);
}

// highest returns the highest peak of the samples from first to below end.
static double highest(unsigned first, unsigned end)
{
	double most = 0;

	for (unsigned i = first; i < end; i++)
		if (sample[i].peak > most)
			most = sample[i].peak;
	return most;
}

// expect_level requires that memory does not rise.  A page-sized object that is
// lost in every tenth round shows within an hour.
static void expect_level(uint64_t cycles)
{
	unsigned first = nsamples / 4;
	double most = (double)live_bytes / 16;
	double most_peak = (double)live_bytes;
	double held = rise(held_of, first), resident = rise(resident_of, first);
	unsigned middle = (first + nsamples) / 2;
	double peak = highest(middle, nsamples) - highest(first, middle);

	fprintf(stderr,
		"soak: %u samples of %llu rounds, %llu collections; held %+.0f "
		"KiB, resident %+.0f KiB, of %.0f allowed; peak %+.0f KiB, of "
		"%.0f allowed\n",
		nsamples, (unsigned long long)sample[nsamples - 1].round + 1,
		(unsigned long long)cycles, held / 1024, resident / 1024,
		most / 1024, peak / 1024, most_peak / 1024);
	ck_assert_uint_ge(nsamples - first, ROUNDS / 2);
	ck_assert_msg(held <= most, "the heap holds more and more");
	// A sanitizer keeps freed memory, and so does memcheck.
	if (RT_ASAN || RT_TSAN || poison_memcheck)
		return;
	ck_assert_msg(resident <= most, "the process grows");
	ck_assert_msg(peak <= most_peak, "the process needs more and more");
}

// ---- the whole ----

static void make_what_lives(void)
{
	for (unsigned i = 0; i < NWIDE; i++) {
		wide[i] = rt_alloc(WIDE * sizeof(void *));
		ck_assert_ptr_nonnull(wide[i]);
		for (unsigned k = 0; k < WIDE; k++) {
			wide[i][k] = rt_alloc(LEAF);
			if (!wide[i][k])
				ck_abort_msg("no memory");
		}
	}
}

// reach_out touches the tables of more heap than the work will need.  They stay
// resident, and would otherwise grow with the largest heap that chance has
// made.
static void reach_out(void)
{
	enum { OBJECT = 4096, OBJECTS_FAR = FAR / OBJECT };

	rt_set_gc_percent(HEAP_QUIET, NULL);
	for (unsigned i = 0; i < OBJECTS_FAR; i++)
		if (!rt_alloc(OBJECT))
			ck_abort_msg("no memory");
	rt_set_gc_percent(100, NULL);
}

// by_itself_config returns the configuration of the heap that releases memory
// by itself.
static rt_config by_itself_config(void)
{
	rt_config c, defaults;

	rt_config_init(&defaults);
	c = heap_config(100);
	c.sweep = 2;
	c.scavenge = 1;
	c.populate = defaults.populate;
	c.idle_s = IDLE_S;
	c.gc_period_s = PERIOD_S;
	return c;
}

static void begin(rt_config c)
{
	mallopt(M_ARENA_MAX, 1);
	// Otherwise memory comes and goes by 2 MiB.
	prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
	c.max_heap = MAX_HEAP;
	c.max_procs = HELPERS + 1;
	c.no_attach = 1;
	ck_assert_int_eq(rt_init(&c), RT_OK);
	begin_numbers();
	ck_assert_int_eq(rt_thread_attach(RT_THREAD_EXACT), RT_OK);
	begin_seq();
	must(rt_roots_add(wide, wide + NWIDE, RT_ROOT_EXACT));
	for (unsigned i = 0; i < WORKERS; i++) {
		struct worker *w = &workers[i];

		w->id = i;
		rng_init(&w->rng, "soak");
		must(rt_roots_add(w->box, w->box + BOX, RT_ROOT_EXACT));
		must(rt_roots_add(w->slot, w->slot + SLOTS, RT_ROOT_EXACT));
	}
	make_what_lives();
	reach_out();
}

// await_release waits until the scavenger has released what is free, and until
// there were at least cycles collections.  The program is idle meanwhile.
static void await_release(uint64_t cycles)
{
	const struct timespec nap = {0, 1000000};
	unsigned naps = 0;
	rt_memstats m;

	must(rt_blocking_enter());
	do {
		ck_assert_msg(naps++ < NAPS, "the scavenger does not release");
		fault_advance_clock(IDLE_S * UINT64_C(1000000000));
		note_wake(&scavenger.call);
		nanosleep(&nap, NULL);
		must(rt_read_memstats_live(&m));
	} while (m.heap_idle - m.heap_released > FREE_LEFT ||
		 heap_metric("/gc/cycles/total:gc-cycles") < cycles);
	must(rt_blocking_leave());
}

// How memory is released at the end of a round.
static void call_release(void)
{
	must(rt_free_os_memory());
}

static void collect_and_wait(void)
{
	must(rt_gc());
	await_release(0);
}

// wait_only waits for a periodic collection.
static void wait_only(void)
{
	await_release(heap_metric("/gc/cycles/total:gc-cycles") + 1);
}

static void (*const told[])(void) = {call_release};
static void (*const by_itself[])(void) = {call_release, collect_and_wait,
					  wait_only};

static void round_of_work(uint64_t round, void (*release)(void), rt_memstats *m)
{
	rt_memstats before = *m;

	begin_peak();
	work_together((unsigned)round);
	// The sanitizers can make no thread in a child (check_fork).
	if (!RT_ASAN && !RT_TSAN && round % FORK_EVERY == 0)
		use_in_child();
	release();
	ck_assert_uint_eq(atomic_u64_load_relaxed(&wrong), 0);
	ck_assert_uint_eq(heap_live(), NWIDE * (WIDE + 1));
	heap_recount();
	*m = heap_stats();
	expect_forward(&before, m);
	expect_parts(m);
	note(round, m);
}

// true_time returns seconds of the clock that fault_advance_clock leaves alone.
static uint64_t true_time(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec;
}

// use uses a heap for half the time.  Its rounds release memory in the given
// ways, by turns.
static void use(void (*const release[])(void), unsigned ways)
{
	uint64_t end = true_time() + env_u64("RT_SOAK_SECONDS", 0) / 2;
	struct totals totals;
	uint64_t first;
	rt_memstats m;

	make_totals(&totals);
	m = heap_stats();
	first = heap_metric("/gc/cycles/total:gc-cycles");
	for (uint64_t round = 0; round < ROUNDS || true_time() < end; round++) {
		round_of_work(round, release[round % ways], &m);
		expect_totals_forward(&totals);
	}
	expect_level(heap_metric("/gc/cycles/total:gc-cycles") - first);
	numbers_wrapped();
}

GROUP(soak, .timeout = 120 + 2 * (double)env_u64("RT_SOAK_SECONDS", 0));

TEST(a_heap_that_is_told_to_release_stays_as_it_is)
{
	begin(heap_config(100));
	use(told, RT_ARRAY_LEN(told));
}

TEST(a_heap_that_releases_by_itself_stays_as_it_is)
{
	begin(by_itself_config());
	use(by_itself, RT_ARRAY_LEN(by_itself));
}
