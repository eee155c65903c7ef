// The time of sweeping beside the threads, in the records and in the metrics.
//
// fault_step_cpu moves the clocks of threads on by a step with each reading.
// So a slice, which reads its clock at both ends, counts one step and the time
// that it really took.
#define RT_NO_INLINE_ALLOC
#include <errno.h>
#include <rt/rt.h>

#include "gc/cycle/swept.h"
#include "gc/host/slices.h"
#include "gc/host/supply.h"
#include "runtime/pages/arena.h"
#include "runtime/spans/mheap.h"
#include "runtime/world/gcstats.h"
#include "test/harness/await.h"
#include "test/harness/fault.h"
#include "test/harness/heap.h"
#include "test/harness/process.h"

#define MIB (UINT64_C(1) << 20)
#define SECOND UINT64_C(1000000000)
#define HOUR (3600 * SECOND)

static uint64_t begun; // nanotime

static void begin(int mode, int threads)
{
	rt_config c = heap_config(HEAP_QUIET);

	c.sweep = (uint8_t)mode;
	c.gc_threads = threads;
	c.max_procs = 2;
	begun = nanotime();
	heap_start_exact(c);
}

// make_garbage allocates mib MiB of objects and keeps none.
static void make_garbage(int mib)
{
	for (int i = 0; i < mib; i++)
		ck_assert_ptr_nonnull(rt_alloc_noscan(MIB));
}

static void collect_only(void)
{
	supply_collect(proc_self(), ASK_FORCED);
}

static rt_cycle newest(void)
{
	rt_cycle c;

	must(rt_read_cycle(0, &c));
	return c;
}

// ---- as metrics tell ----

// The values of the metrics, in ns.
struct told {
	uint64_t assist, background, total, wall;
};

static uint64_t ns_of(const rt_metric_sample *s)
{
	ck_assert_uint_eq(s->result, RT_METRIC_F64);
	return (uint64_t)(s->f64 * 1e9 + 0.5);
}

static struct told told(void)
{
	rt_metric_sample s[] = {
	    {.name = "/gc/sweep/assist:cpu-seconds"},
	    {.name = "/gc/sweep/background:cpu-seconds"},
	    {.name = "/gc/sweep/total:cpu-seconds"},
	    {.name = "/gc/sweep/duration:seconds"},
	};
	struct told t;

	must(rt_metrics_read(s, RT_ARRAY_LEN(s)));
	t = (struct told){ns_of(&s[0]), ns_of(&s[1]), ns_of(&s[2]),
			  ns_of(&s[3])};
	ck_assert_uint_eq(t.total, t.assist + t.background);
	return t;
}

// has_steps tells whether a time is n steps of a second, plus less than a
// second of real time.
static bool has_steps(uint64_t ns, uint64_t n)
{
	return ns / SECOND == n;
}

static void is_steps(uint64_t ns, uint64_t n)
{
	ck_assert_msg(has_steps(ns, n), "%llu ns are not %llu steps",
		      (unsigned long long)ns, (unsigned long long)n);
}

static void is_no_sweep(const rt_cycle *c)
{
	ck_assert_uint_eq(c->swept_ns, 0);
	ck_assert_uint_eq(c->swept_assist_cpu_ns, 0);
	ck_assert_uint_eq(c->swept_background_cpu_ns, 0);
}

static uint32_t chunks(void)
{
	return (uint32_t)(arena_used() >> RT_CHUNK_SHIFT);
}

// chunks_in_use returns the number of chunks with pages in use.
static uint32_t chunks_in_use(void)
{
	static const struct pallocbits none;
	struct pallocbits taken;
	uint32_t n = 0;

	for (uint32_t chunk = 0; chunk < chunks(); chunk++) {
		mheap_chunk_pages(chunk, &taken);
		n += memcmp(&taken, &none, sizeof none) != 0;
	}
	return n;
}

static void sweep_slices(void)
{
	while (swept_slice(proc_self()))
		;
	ck_assert(swept_over());
}

// begin_stepping makes an unswept heap whose highest chunks are free.
static void begin_stepping(void)
{
	begin(2, 0);
	make_garbage(40);
	must(rt_gc());
	make_garbage(20);
	collect_only();
	ck_assert(sweep_left());
	ck_assert_uint_ge(chunks_in_use(), 5);
	ck_assert_uint_lt(chunks_in_use(), chunks());
	fault_step_cpu(SECOND);
}

GROUP(steps, .setup = begin_stepping, .timeout = 120);

// A thread of the host reads its clock at both ends of each chunk that has
// pages in use, and of no other.
TEST(the_chunks_of_a_thread_of_the_host_are_timed)
{
	struct told before = told(), after;
	uint32_t n = chunks_in_use();

	sweep_slices();
	after = told();
	is_steps(after.assist - before.assist, n);
	ck_assert_uint_eq(after.background, before.background);
	heap_healthy();
}

// A stop sweeps all chunks that are left, and times them as one step.
TEST(the_rest_that_a_stop_sweeps_is_timed)
{
	struct told before = told(), after;

	ck_assert(swept_slice(proc_self()));
	must(rt_stop_the_world(RT_STOP_HOST));
	(void)heap_stats();
	must(rt_start_the_world(NULL));
	ck_assert(swept_over());
	after = told();
	is_steps(after.assist - before.assist, 2);
	ck_assert_uint_eq(after.background, before.background);
	ck_assert_uint_gt(after.wall, before.wall);
	heap_healthy();
}

// The wall time goes from the end of the stop until all is swept, whether any
// thread sweeps or not.
TEST(the_wall_time_goes_on_until_all_is_swept)
{
	struct told before = told(), after;

	ck_assert(swept_slice(proc_self()));
	fault_advance_clock(HOUR);
	ck_assert_uint_eq(told().wall, before.wall);
	sweep_slices();
	after = told();
	ck_assert_uint_ge(after.wall - before.wall, HOUR);
	ck_assert_uint_le(after.wall - before.wall, nanotime() - begun);
	fault_advance_clock(HOUR); // it has ended
	ck_assert_uint_eq(told().wall, after.wall);
	heap_healthy();
}

// A record never changes, so the figures of a sweep are in the record of the
// next collection.
TEST(the_next_record_has_the_figures)
{
	struct told before = told(), after;
	rt_cycle first = newest(), c;

	sweep_slices();
	after = told();
	collect_only();
	c = newest();
	ck_assert_uint_eq(c.number, first.number + 1);
	ck_assert_uint_eq(c.swept_assist_cpu_ns, after.assist - before.assist);
	ck_assert_uint_eq(c.swept_ns, after.wall - before.wall);
	ck_assert_uint_eq(c.swept_background_cpu_ns, 0);
	must(rt_read_cycle(first.number, &c));
	ck_assert_int_eq(memcmp(&c, &first, sizeof c), 0);
	heap_healthy();
}

// The child of a fork goes on from the times of its parent.
TEST(a_child_goes_on)
{
	struct told before, after;
	uint32_t n;

	ck_assert(swept_slice(proc_self()));
	before = told();
	n = chunks_in_use();
	if (!process_forked())
		return;
	sweep_slices();
	after = told();
	process_end(before.assist >= SECOND &&
		    has_steps(after.assist - before.assist, n) &&
		    after.wall > before.wall);
}

// ---- the background thread ----

static void await_swept(void)
{
	uint64_t end = nanotime() + AWAIT_SECONDS * SECOND;

	must(rt_blocking_enter());
	while (!swept_over()) {
		ck_assert_msg(nanotime() < end, "nothing sweeps");
		oscall_yield();
	}
	must(rt_blocking_leave());
}

GROUP(library, .timeout = 120);

// The background thread reads its clock at both ends of a slice of chunks.
TEST(the_slices_of_the_background_thread_are_timed)
{
	struct told before, after;
	uint64_t slices;
	rt_cycle c;

	begin(2, 1);
	make_garbage(4);
	collect_only(); // makes the thread
	await_swept();
	make_garbage(40);
	before = told();
	slices = (chunks() + SWEEP_SLICE - 1) / SWEEP_SLICE;
	ck_assert_uint_ge(slices, 3);
	fault_step_cpu(SECOND);
	collect_only();
	await_swept();
	fault_step_cpu(0);
	must(rt_gc()); // stops the thread, so its slice has ended
	after = told();
	c = newest();
	is_steps(after.background - before.background, slices);
	ck_assert_uint_eq(after.assist, before.assist);
	is_steps(c.swept_background_cpu_ns, slices);
	ck_assert_uint_eq(c.swept_assist_cpu_ns, 0);
	ck_assert_uint_gt(c.swept_ns, 0);
	heap_healthy();
	must(rt_fini());
}

// ---- record after record ----

// use_some sweeps in one of the ways in which a host does.
static void use_some(struct rng *r)
{
	switch (rng_below(r, 5)) {
	case 0:
		make_garbage(1 + (int)rng_below(r, 20));
		break;
	case 1:
		(void)heap_stats();
		break;
	case 2:
		slices_rest(rt_thread_tls);
		break;
	case 3:
		for (uint64_t i = rng_below(r, 3000); i > 0; i--)
			rt_alloc(1 + rng_below(r, 3000));
		break;
	default:
		must(rt_gc());
	}
}

static void does_not_fall(const struct told *was, const struct told *is)
{
	ck_assert_uint_ge(is->assist, was->assist);
	ck_assert_uint_ge(is->background, was->background);
	ck_assert_uint_ge(is->wall, was->wall);
}

// sum_records adds up the records from number 1 to last.
static struct told sum_records(uint64_t last)
{
	struct told sum = {0};

	for (uint64_t n = 1; n <= last; n++) {
		rt_cycle c;

		must(rt_read_cycle(n, &c));
		sum.assist += c.swept_assist_cpu_ns;
		sum.background += c.swept_background_cpu_ns;
		sum.wall += c.swept_ns;
	}
	return sum;
}

GROUP(records, .timeout = 120);

// No metric falls, and the records add up to the metrics, with every setting of
// sweep, with and without the library's threads.
TEST(the_records_add_up_to_the_metrics, .n = 6)
{
	struct told last = {0}, now, sum;
	struct rng r;

	begin(_i % 3, _i / 3);
	rng_init(&r, __func__);
	for (int i = 0; i < 100; i++) {
		use_some(&r);
		// If sweep is 1, the time of a chunk in the last sweep decides
		// whether the next sweep is in the stop.
		atomic_u64_store_relaxed(&swept.chunk_ns,
					 rng_below(&r, 2) ? 1 : SECOND);
		collect_only();
		now = told();
		does_not_fall(&last, &now);
		last = now;
	}
	slices_rest(rt_thread_tls);
	collect_only();
	now = told(); // without the sweep of the newest collection
	sum = sum_records(newest().number);
	does_not_fall(&sum, &now);
	if (_i / 3 == 0) {
		ck_assert_uint_eq(sum.assist, now.assist);
		ck_assert_uint_eq(sum.wall, now.wall);
		ck_assert_uint_eq(now.background, 0);
	}
	if (_i % 3 == 0)
		ck_assert_uint_eq(now.total + now.wall, 0);
	else
		ck_assert(sum.wall > 0 && sum.assist + sum.background > 0);
	ck_assert_uint_le(now.wall, nanotime() - begun);
	heap_healthy();
	must(rt_fini());
}

// A collection that sweeps in its stop has the time in its own record.
TEST(a_sweep_in_the_stop_is_in_its_own_record)
{
	begin(0, 0);
	for (int i = 0; i < 3; i++) {
		rt_cycle c;

		make_garbage(20);
		collect_only();
		ck_assert(swept_over());
		c = newest();
		is_no_sweep(&c);
		ck_assert_uint_gt(c.sweep_cpu_ns, 0);
	}
	ck_assert_uint_eq(told().total + told().wall, 0);
	heap_healthy();
	must(rt_fini());
}

// ---- clocks that are refused ----

// Each reading of a clock is refused in turn, alone or with all later readings.
// A time is 0 if either of its two readings is refused.
TEST(a_refused_clock_makes_no_huge_time, .n = 2)
{
	uint64_t nth = 0, refused;

	begin(2, 0);
	do {
		struct told before, after;

		make_garbage(8);
		collect_only();
		before = told();
		fault_fail(OSCALL_CLOCK, ++nth, _i ? UINT64_MAX : 1, EINVAL);
		sweep_slices();
		refused = fault_failed(OSCALL_CLOCK);
		fault_fail(OSCALL_CLOCK, 1, 0, 0);
		after = told();
		does_not_fall(&before, &after);
		ck_assert_uint_le(after.total, nanotime() - begun);
		ck_assert_uint_le(after.wall, nanotime() - begun);
		if (_i == 1 && nth == 1)
			ck_assert(after.total == before.total &&
				  after.wall == before.wall);
	} while (refused > 0);
	ck_assert_uint_gt(nth, 8); // readings for two chunks at least
	heap_healthy();
	must(rt_fini());
}
