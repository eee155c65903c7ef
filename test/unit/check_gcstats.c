// The accounts that collections and stops leave, and how they are read.
#include "runtime/world/gcstats.h"

#include "runtime/os/settings.h"
#include "test/harness/await.h"
#include "test/harness/heap.h"
#include "test/harness/readers.h"
#include "test/harness/stopped.h"

// ---- CPU accounting ----

static bool identities_hold(const struct cpustats *c)
{
	return c->gc_total ==
		   c->gc_assist + c->gc_dedicated + c->gc_idle + c->gc_pause &&
	       c->scavenge_total ==
		   c->scavenge_assist + c->scavenge_background &&
	       c->total == c->gc_total + c->scavenge_total + c->idle + c->user;
}

// falls tells whether some sum is less than it was.
static bool falls(const struct cpustats *was, const struct cpustats *is)
{
	return is->gc_pause < was->gc_pause || is->gc_total < was->gc_total ||
	       is->gc_assist < was->gc_assist ||
	       is->gc_dedicated < was->gc_dedicated ||
	       is->gc_idle < was->gc_idle || is->idle < was->idle ||
	       is->user < was->user || is->total < was->total ||
	       is->scavenge_assist < was->scavenge_assist ||
	       is->scavenge_background < was->scavenge_background ||
	       is->scavenge_total < was->scavenge_total;
}

GROUP(cpu, .timeout = 60);

// Times of a real size that do not fit together: threads use or wait for more
// time than there is, and stops are longer than the interval.  Even so no sum
// is ever negative, which would make it huge, and none falls.
TEST(cpu_time_adds_up_and_never_falls)
{
	struct cpustats c = {0};
	struct rng r;

	rng_init(&r, "cpu_time");
	for (int n = 0; n < 200000; n++) {
		struct cpustats was = c;
		uint64_t bound = UINT64_C(1) << rng_below(&r, 36);
		struct cpustats_interval i = {
		    .nprocs = 1 + rng_below(&r, 256),
		    .wall = rng_below(&r, bound),
		    .stopped = rng_below(&r, bound),
		    .stopping_cpu = rng_below(&r, 64 * bound),
		    .cpu = rng_below(&r, 300 * bound),
		};

		cpustats_add(&c, &i);
		if (!identities_hold(&c) || falls(&was, &c) ||
		    c.total != was.total + i.wall * i.nprocs)
			ck_abort_msg("interval %d", n);
	}
}

// random_cpu moves a random part of one class of *c to another, and adds random
// times to random classes.
static void random_cpu(struct cpustats *c, struct rng *r)
{
	uint64_t *const classes[] = {
	    &c->gc_assist,
	    &c->gc_dedicated,
	    &c->gc_idle,
	    &c->gc_pause,
	    &c->scavenge_assist,
	    &c->scavenge_background,
	    &c->idle,
	    &c->user,
	};
	enum { N = RT_ARRAY_LEN(classes) };
	uint64_t *from = classes[rng_below(r, N)];
	uint64_t *to = classes[rng_below(r, N)];
	uint64_t moved = rng_below(r, 1 + rng_below(r, 1 + *from));

	*from -= moved;
	*to += moved;
	for (unsigned n = 0; n < rng_below(r, N); n++)
		*classes[rng_below(r, N)] += rng_below(r, 1000);
	c->total = 0;
	for (unsigned n = 0; n < N; n++)
		c->total += *classes[n];
	c->gc_total = c->gc_assist + c->gc_dedicated + c->gc_idle + c->gc_pause;
	c->scavenge_total = c->scavenge_assist + c->scavenge_background;
}

static bool same_cpu(const struct cpustats *a, const struct cpustats *b)
{
	return !falls(a, b) && !falls(b, a);
}

// The numbers that live readers are told never fall, have the identities, and
// have the exact total.  All classes are exact as soon as none is below what
// was told before.
TEST(what_readers_are_told_follows_and_never_falls)
{
	struct cpustats told = {0}, exact = {0};
	struct rng r;

	rng_init(&r, "follow");
	for (int n = 0; n < 200000; n++) {
		struct cpustats was = told;
		bool fell;

		random_cpu(&exact, &r);
		fell = falls(&was, &exact);
		cpustats_follow(&told, &exact);
		if (!identities_hold(&told) || falls(&was, &told) ||
		    told.total != exact.total ||
		    (!fell && !same_cpu(&told, &exact)))
			ck_abort_msg("step %d", n);
	}
}

// By hand: readers were told of 60 ns idle, of which 10 were in truth a stop.
TEST(a_class_that_is_ahead_waits_for_the_others)
{
	struct cpustats c = {.idle = 60, .user = 40, .total = 100};
	struct cpustats exact = {.gc_pause = 10,
				 .gc_total = 10,
				 .idle = 50,
				 .user = 44,
				 .total = 104};

	cpustats_follow(&c, &exact);
	ck_assert_uint_eq(c.gc_pause, 4);
	ck_assert_uint_eq(c.gc_total, 4);
	ck_assert_uint_eq(c.idle, 60);
	ck_assert_uint_eq(c.user, 40);
	ck_assert_uint_eq(c.total, 104);
	exact.idle += 20;
	exact.total += 20;
	cpustats_follow(&c, &exact);
	ck_assert(same_cpu(&c, &exact));
	exact.gc_pause = exact.gc_total = 5;
	exact.user += 9;
	exact.total += 4;
	cpustats_follow(&c, &exact);
	ck_assert_uint_eq(c.gc_pause, 10);
	ck_assert_uint_eq(c.idle, 70);
	ck_assert_uint_eq(c.user, 48);
	exact = (struct cpustats){.idle = 70, .user = 30, .total = 100};
	cpustats_follow(&c, &exact);
	ck_assert_uint_eq(c.total, 128);
	ck_assert(identities_hold(&c));
}

// Numbers that wrap still add up, as numbers modulo 2^64 do.
TEST(identities_are_exact_for_any_numbers)
{
	static const uint64_t extreme[] = {0, 1, INT64_MAX, UINT64_MAX - 1,
					   UINT64_MAX};
	enum { N = RT_ARRAY_LEN(extreme) };
	struct cpustats c = {0};

	for (unsigned n = 0; n < N * N * N * N * N; n++) {
		struct cpustats_interval i = {
		    .nprocs = extreme[n % N],
		    .wall = extreme[n / N % N],
		    .stopped = extreme[n / (N * N) % N],
		    .stopping_cpu = extreme[n / (N * N * N) % N],
		    .cpu = extreme[n / (N * N * N * N)],
		};

		cpustats_add(&c, &i);
		if (!identities_hold(&c))
			ck_abort_msg("numbers %u", n);
	}
}

// An interval by hand: two processors for 100 ns, in 10 of which the world was
// stopped.  One thread ran 60 ns, and another waited 5 ns for it to stop.
TEST(each_part_of_an_interval_is_counted_once)
{
	const struct cpustats_interval i = {
	    .nprocs = 2,
	    .wall = 100,
	    .stopped = 10,
	    .stopping_cpu = 5,
	    .cpu = 60,
	};
	struct cpustats c = {0};

	cpustats_add(&c, &i);
	ck_assert_uint_eq(c.total, 200);
	ck_assert_uint_eq(c.gc_pause, 2 * 10 + 5);
	ck_assert_uint_eq(c.gc_total, 25);
	ck_assert_uint_eq(c.user, 60);
	ck_assert_uint_eq(c.idle, 200 - 25 - 60);
}

// A number of hours in ns.  gcstats_fork_child counts such a number as CPU time
// that the process has used, so no test has to use it.
#define HOURS(n) ((n)*UINT64_C(3600) * 1000 * 1000 * 1000)

static uint64_t idle_after(uint64_t now, uint64_t cpu_begin)
{
	const struct gcstats_cycle c = {
	    .now = now, .cpu_begin = cpu_begin, .cpu_end = gcstats_cpu()};
	struct gcstats_cycles r;
	bool begun = stopped_begin();

	gcstats_end_cycle(&c);
	stopped_end(begun);
	gcstats_read_cycles(&r);
	return r.cpu.idle;
}

TEST(what_was_used_before_the_heap_is_not_counted)
{
	gcstats_reset();
	gcstats_fork_child(HOURS(1000));
	settings_present.max_procs = 1;
	gcstats_init();
	ck_assert_uint_gt(idle_after(nanotime() + HOURS(2), gcstats_cpu()),
			  HOURS(1));
}

// A collection that uses a thousand hours from its begin to its end.
TEST(what_a_collection_uses_is_not_the_hosts)
{
	uint64_t now = nanotime() + HOURS(2), cpu, idle;

	gcstats_reset();
	settings_present.max_procs = 1;
	gcstats_init();
	cpu = gcstats_cpu();
	gcstats_fork_child(HOURS(1000));
	idle = idle_after(now, cpu);
	ck_assert_uint_gt(idle, HOURS(1));
	ck_assert_uint_gt(idle_after(now + HOURS(2), gcstats_cpu()),
			  idle + HOURS(1));
}

// ---- the record ----

// Every word of collection n is a function of n.
static void end_cycle(uint64_t n)
{
	const struct gcstats_cycle c = {
	    .forced = true,
	    .now = n,
	    .unix_now = 1000 * n,
	    .pause = n,
	    .scan_heap = 2 * n,
	    .scan_stack = 3 * n,
	    .scan_globals = 4 * n,
	    .past_end_objects = 5,
	    .helped_objects = 6,
	};

	gcstats_end_cycle(&c);
}

static bool cycles_whole(const struct gcstats_cycles *c)
{
	uint64_t n = c->num_gc;

	return c->num_forced_gc == n && c->last_gc_unix == 1000 * n &&
	       c->scan_heap == 2 * n && c->scan_stack == 3 * n &&
	       c->scan_globals == 4 * n && c->past_end_objects == 5 * n &&
	       c->helped_objects == 6 * n && identities_hold(&c->cpu);
}

static bool pauses_whole(const struct pausering_copy *p)
{
	uint64_t n = p->count;

	if (p->total_ns != n * (n + 1) / 2)
		return false;
	for (uint64_t i = 0; i < base_min(n, PAUSERING_LEN); i++) {
		uint64_t slot = (n - 1 - i) % PAUSERING_LEN;

		if (p->ns[slot] != n - i || p->end[slot] != 1000 * (n - i))
			return false;
	}
	return true;
}

static const char *read_records(struct reader *r)
{
	uint64_t ns[PAUSERING_LEN], ends[PAUSERING_LEN];
	struct pausering_copy pauses = {.ns = ns, .end = ends};
	struct gcstats_cycles both, alone;
	uint64_t last = r->last;

	gcstats_read(&both, &pauses);
	gcstats_read_cycles(&alone);
	r->last = alone.num_gc;
	if (!cycles_whole(&both) || !cycles_whole(&alone))
		return "the record is torn";
	if (!pauses_whole(&pauses) || pauses.count != both.num_gc)
		return "the pauses are torn";
	if (both.num_gc < last || alone.num_gc < both.num_gc)
		return "the record went back";
	return NULL;
}

enum { RECORDS = RT_TSAN ? 20000 : 200000 };

GROUP(record, .timeout = 60);

static void write_records(void)
{
	bool begun;

	readers_await(1);
	begun = stopped_begin();
	for (uint64_t n = 1; n <= RECORDS; n++)
		end_cycle(n);
	stopped_end(begun);
}

TEST(no_reader_sees_a_torn_record)
{
	struct gcstats_cycles c;

	heap_begin(); // with its CPU accounting, which starts at nanotime
	readers_run(read_records, write_records);
	gcstats_read_cycles(&c);
	ck_assert_uint_eq(c.num_gc, RECORDS);
	ck_assert(cycles_whole(&c));
}

// ---- collections ----

enum { HISTORY = 600 }; // more than the ring holds

// The only collecting thread read these of each collection when it had ended.
// An entry is written once, before its number is in done.
static struct {
	uint64_t ns[HISTORY], end[HISTORY];
	atomic_u32 done;
} noted;

static void note_collection(uint32_t n)
{
	uint32_t slot = n % RT_PAUSES;
	rt_memstats m;

	if (rt_gc() != RT_OK || rt_read_memstats(&m) != RT_OK)
		ck_abort();
	ck_assert_uint_eq(m.num_gc, n + 1);
	noted.ns[n] = m.pause_ns[slot];
	noted.end[n] = m.pause_end[slot];
	// Pairs with the acquire in as_noted.
	atomic_u32_store_release(&noted.done, n + 1);
}

// as_noted tells whether a history agrees with what was noted.  There were num
// collections; the history holds the last n of them, newest first.
static bool as_noted(const uint64_t *ns, const uint64_t *end, size_t n,
		     uint64_t num)
{
	uint32_t done = atomic_u32_load_acquire(&noted.done);

	for (size_t i = 0; i < n; i++) {
		uint64_t which = num - 1 - i;

		if (which < done &&
		    (ns[i] != noted.ns[which] || end[i] != noted.end[which]))
			return false;
	}
	return true;
}

// history_whole tells whether words can be a result of rt_read_gcstats.  The
// times between two ends are not compared with pauses, because ends and pauses
// are read from clocks that may drift apart.
static bool history_whole(const uint64_t *words, size_t used)
{
	size_t n = (used - 3) / 2;
	uint64_t last = words[2 * n], num = words[2 * n + 1];
	uint64_t sum = 0;

	if (used % 2 == 0 || n != base_min(num, RT_PAUSES))
		return false;
	if (n == 0)
		return last == 0;
	for (size_t i = 0; i < n; i++)
		sum += words[i];
	return words[n] == last && as_noted(words, words + n, n, num) &&
	       (num > RT_PAUSES ? sum < words[2 * n + 2]
				: sum == words[2 * n + 2]);
}

static const char *read_history(struct reader *r)
{
	uint64_t words[RT_GCSTATS_WORDS];
	uint64_t last;
	rt_memstats m;
	uint32_t newest;
	size_t used;

	if (rt_read_gcstats(words, RT_GCSTATS_WORDS, &used) != RT_OK ||
	    !history_whole(words, used))
		return "the history is torn";
	last = words[used - 2];
	if (last < r->last)
		return "the history went back";
	rt_read_memstats_live(&m);
	r->last = m.num_gc;
	newest = (m.num_gc + RT_PAUSES - 1) % RT_PAUSES;
	if (m.pause_end[newest] != m.last_gc || m.num_forced_gc != m.num_gc)
		return "statistics are torn";
	return m.num_gc < last ? "statistics went back" : NULL;
}

static void write_history(void)
{
	readers_await(1);
	for (uint32_t n = 0; n < HISTORY; n++)
		note_collection(n);
}

TEST(the_history_is_whole_while_it_is_written)
{
	uint64_t words[RT_GCSTATS_WORDS];
	size_t used;

	heap_begin();
	must(rt_read_gcstats(words, RT_GCSTATS_WORDS, &used));
	ck_assert_uint_eq(used, 3);
	ck_assert(history_whole(words, used));
	readers_run(read_history, write_history);
	must(rt_read_gcstats(words, RT_GCSTATS_WORDS, &used));
	ck_assert_uint_eq(used, RT_GCSTATS_WORDS);
	ck_assert_uint_eq(words[used - 2], HISTORY);
	ck_assert(history_whole(words, used));
	ck_assert_int_eq(rt_read_gcstats(words, RT_GCSTATS_WORDS - 1, &used),
			 RT_EINVAL);
}

TEST(last_gc_is_the_end_of_the_last_pause)
{
	rt_memstats m;

	heap_begin();
	for (uint32_t n = 1; n <= RT_PAUSES + 3; n++) {
		uint64_t before = nanotime_unix(), sum = 0;
		uint32_t slot = (n - 1) % RT_PAUSES;

		rt_gc();
		ck_assert_int_eq(rt_read_memstats(&m), RT_OK);
		ck_assert_uint_eq(m.num_gc, n);
		ck_assert_uint_eq(m.num_forced_gc, n);
		ck_assert_uint_eq(m.pause_end[slot], m.last_gc);
		ck_assert_uint_ge(m.last_gc, before);
		ck_assert_uint_le(m.last_gc, nanotime_unix());
		ck_assert_uint_gt(m.pause_ns[slot], 0);
		for (uint32_t i = 0; i < base_min(n, RT_PAUSES); i++)
			sum += m.pause_ns[i];
		if (n <= RT_PAUSES)
			ck_assert_uint_eq(sum, m.pause_total_ns);
		else
			ck_assert_uint_lt(sum, m.pause_total_ns);
	}
}

// ---- CPU of collections ----

enum cpu_class {
	GC_ASSIST,
	GC_DEDICATED,
	GC_IDLE,
	GC_PAUSE,
	GC_TOTAL,
	IDLE,
	SCAVENGE_ASSIST,
	SCAVENGE_BACKGROUND,
	SCAVENGE_TOTAL,
	TOTAL,
	USER,
	CPU_CLASSES,
};

static const char *const cpu_names[CPU_CLASSES] = {
    "/cpu/classes/gc/mark/assist:cpu-seconds",
    "/cpu/classes/gc/mark/dedicated:cpu-seconds",
    "/cpu/classes/gc/mark/idle:cpu-seconds",
    "/cpu/classes/gc/pause:cpu-seconds",
    "/cpu/classes/gc/total:cpu-seconds",
    "/cpu/classes/idle:cpu-seconds",
    "/cpu/classes/scavenge/assist:cpu-seconds",
    "/cpu/classes/scavenge/background:cpu-seconds",
    "/cpu/classes/scavenge/total:cpu-seconds",
    "/cpu/classes/total:cpu-seconds",
    "/cpu/classes/user:cpu-seconds",
};

// read_cpu reads all classes as of one moment.
static void read_cpu(double *seconds)
{
	rt_metric_sample s[CPU_CLASSES] = {{0}};

	for (int i = 0; i < CPU_CLASSES; i++)
		s[i].name = cpu_names[i];
	must(rt_metrics_read(s, CPU_CLASSES));
	for (int i = 0; i < CPU_CLASSES; i++) {
		ck_assert_uint_eq(s[i].result, RT_METRIC_F64);
		seconds[i] = s[i].f64;
	}
}

static bool near(double a, double b)
{
	double d = a > b ? a - b : b - a;

	return d < 1e-9 + 1e-9 * (a > b ? a : b);
}

// After each collection the classes add up and none has fallen, and the
// fraction agrees with the classes.
TEST(the_cpu_of_collections_adds_up)
{
	double was[CPU_CLASSES] = {0}, is[CPU_CLASSES], before;
	rt_memstats m;

	heap_begin();
	for (int n = 0; n < 50; n++) {
		uint64_t end = nanotime() + 1000000;

		while (nanotime() < end)
			rt_alloc(200);
		read_cpu(is);
		before = is[TOTAL];
		rt_gc();
		rt_read_memstats(&m);
		read_cpu(is);
		for (int i = 0; i < CPU_CLASSES; i++) {
			ck_assert(is[i] >= was[i]);
			was[i] = is[i];
		}
		ck_assert(near(is[GC_TOTAL], is[GC_ASSIST] + is[GC_DEDICATED] +
						 is[GC_IDLE] + is[GC_PAUSE]));
		ck_assert(near(is[TOTAL], is[GC_TOTAL] + is[SCAVENGE_TOTAL] +
					      is[IDLE] + is[USER]));
		// The fraction is as of the end of the collection; since then
		// only the total has grown.
		ck_assert(m.gc_cpu_fraction * is[TOTAL] * (1 + 1e-9) >=
			  is[GC_TOTAL] - is[GC_IDLE]);
		ck_assert(m.gc_cpu_fraction * before * (1 - 1e-9) <=
			  is[GC_TOTAL] - is[GC_IDLE]);
		ck_assert(m.gc_cpu_fraction > 0 && m.gc_cpu_fraction < 1);
		// A pause stops every processor, so it is at most all time.
		ck_assert(is[GC_PAUSE] <= is[TOTAL]);
		ck_assert(is[USER] > 0);
	}
}

// ---- live reads ----

// pass returns when the clock shows another time.
static void pass(void)
{
	uint64_t begin = nanotime();

	while (nanotime() == begin)
		;
}

// If there is no collection, the total grows by the time that passes, times the
// number of processors.
TEST(cpu_time_goes_on_without_a_collection)
{
	struct cpustats was, is;
	uint64_t first, last, begin;
	double seconds[CPU_CLASSES];

	heap_begin();
	first = nanotime();
	gcstats_read_cpu(&was);
	begin = nanotime();
	pass();
	last = nanotime();
	gcstats_read_cpu(&is);
	ck_assert(identities_hold(&was) && identities_hold(&is));
	ck_assert(!falls(&was, &is));
	ck_assert_uint_ge(is.total - was.total,
			  (uint64_t)settings()->max_procs * (last - begin));
	ck_assert_uint_le(is.total - was.total,
			  (uint64_t)settings()->max_procs *
			      (nanotime() - first));
	ck_assert_uint_eq(is.gc_total + is.scavenge_total, 0);
	read_cpu(seconds);
	ck_assert_double_ge(seconds[TOTAL] * 1e9 + 1, (double)is.total);
}

static struct cpustats in_stop[2];

static void read_in_stop(rt_tracer *t, void *arg)
{
	(void)t;
	gcstats_read_cpu(&in_stop[0]);
	pass();
	gcstats_read_cpu(&in_stop[1]);
	(void)arg;
}

// In the stop of a collection the time of every processor counts as pause, even
// while the stop lasts.
TEST(a_pause_grows_while_it_lasts)
{
	struct cpustats *was = &in_stop[0], *is = &in_stop[1], after;

	heap_begin();
	pass();
	ck_assert_int_eq(rt_roots_add_fn(read_in_stop, NULL, NULL), RT_OK);
	ck_assert_int_eq(rt_gc(), RT_OK);
	gcstats_read_cpu(&after);
	ck_assert(identities_hold(was) && identities_hold(is));
	ck_assert_uint_ge(was->gc_pause, 1);
	ck_assert_uint_gt(is->gc_pause, was->gc_pause);
	ck_assert_uint_eq(is->gc_pause - was->gc_pause, is->total - was->total);
	ck_assert_uint_eq(is->user, was->user);
	ck_assert_uint_eq(is->idle, was->idle);
	ck_assert(!falls(is, &after));
}

static void use_hours_in_stop(rt_tracer *t, void *arg)
{
	(void)t, (void)arg;
	gcstats_fork_child(HOURS(1000));
	gcstats_read_cpu(&in_stop[0]);
}

// CPU time that the process uses in a stop does not count as the host's, even
// before the stop has ended.  So there is still idle time, because there are
// many processors.
TEST(what_a_stop_uses_is_not_the_hosts)
{
	rt_config c = heap_config(HEAP_QUIET);

	c.max_procs = 1024;
	c.gc_threads = 0;
	heap_start(c);
	pass();
	ck_assert_int_eq(rt_roots_add_fn(use_hours_in_stop, NULL, NULL), RT_OK);
	ck_assert_int_eq(rt_gc(), RT_OK);
	ck_assert_uint_gt(in_stop[0].idle, 0);
	ck_assert(identities_hold(&in_stop[0]));
}

// The time of a scavenger counts as soon as its step has ended.
TEST(a_step_of_the_scavenger_counts_at_once, .n = 2)
{
	const enum gcstats_worker who =
	    _i ? GCSTATS_BACKGROUND : GCSTATS_ASSIST;
	uint64_t before = oscall_thread_cpu(0), ns;
	struct cpustats is;

	heap_begin();
	while (oscall_thread_cpu(0) < before + 100000)
		;
	before = oscall_thread_cpu(0);
	while (oscall_thread_cpu(0) < before + 100000)
		;
	ns = gcstats_scavenged(who, 0, before);
	gcstats_read_cpu(&is);
	ck_assert_uint_eq(is.scavenge_total, ns);
	ck_assert_uint_eq(_i ? is.scavenge_background : is.scavenge_assist, ns);
	ck_assert(identities_hold(&is));
}

// The numbers that each reader was told last.
static struct cpustats lasts[READERS];

static const char *read_live(struct reader *r)
{
	struct cpustats *last = &lasts[r - readers], is;

	gcstats_read_cpu(&is);
	if (!identities_hold(&is))
		return "CPU time does not add up";
	if (falls(last, &is))
		return "CPU time went back";
	*last = is;
	return NULL;
}

enum { LIVE_ROUNDS = RT_TSAN ? 200 : 1000 };

static void work_live(void)
{
	struct rng r;

	rng_init(&r, "live");
	readers_await(1);
	for (int n = 0; n < LIVE_ROUNDS; n++) {
		uint64_t before = oscall_thread_cpu(0);

		for (uint64_t i = rng_below(&r, 200); i > 0; i--)
			rt_alloc(1 + rng_below(&r, 2000));
		gcstats_scavenged(rng_below(&r, 2) ? GCSTATS_BACKGROUND
						   : GCSTATS_ASSIST,
				  0, before);
		if (rng_below(&r, 2))
			rt_gc();
		if (rng_below(&r, 8) == 0)
			sleep_ns(rng_below(&r, 100000));
	}
}

TEST(no_class_goes_back_while_others_collect)
{
	heap_begin();
	readers_run(read_live, work_live);
}
