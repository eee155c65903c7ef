// Stops that come while a thread advises the system of huge pages.
#define RT_NO_INLINE_ALLOC
#include <rt/rt.h>

#include "runtime/pages/hugepages.h"
#include "gc/host/supply.h"
#include "test/harness/fault.h"
#include "test/order/libthread.h"

enum { PERIOD_S = UINT8_MAX };

static struct hand other, third;

static void begin_huge(rt_config c)
{
	c.no_attach = 1;
	c.max_procs = 1; // no helper
	c.huge_pages = 1;
	heap_start(c);
}

// keep fills 16 MiB with objects that live, for a hand.
static void keep(void)
{
	host_attach();
	must(rt_roots_add(objects, objects + OBJECTS, RT_ROOT_EXACT));
	ck_assert(make_objects());
}

static void keep_objects(void)
{
	keep();
	host_detach();
}

// keep_and_collect leaves the sweep to the background thread, if there is one.
static void keep_and_collect(void)
{
	keep();
	supply_collect(proc_self(), ASK_FORCED);
	host_detach();
}

static void host_advises(void)
{
	rt_config c = heap_config(HEAP_QUIET);

	c.gc_threads = 0;
	c.sweep = 0;
	begin_huge(c);
	hold_at(SCHED_WORKER_ADVISE, &other, keep_and_collect);
}

static void advises_after_its_sweep(void)
{
	rt_config c = heap_config(HEAP_QUIET);

	c.sweep = 2;
	begin_huge(c);
	schedpoint_hold(SCHED_WORKER_ADVISE);
	hand_start(&other, keep_and_collect);
	await_held(SCHED_WORKER_ADVISE);
}

static void advises_after_its_collection(void)
{
	rt_config c = heap_config(100);

	c.heap_min = 64 << 20;
	c.gc_period_s = PERIOD_S;
	c.sweep = 0;
	begin_huge(c);
	hand_start(&other, keep_objects);
	await_that(it_sleeps, "it does not sleep");
	schedpoint_hold(SCHED_WORKER_ADVISE);
	fault_advance_clock(PERIOD_S * UINT64_C(1000000000));
	note_wake(&scavenger.call);
	await_held(SCHED_WORKER_ADVISE);
}

static void (*const advises[])(void) = {
    host_advises,
    advises_after_its_sweep,
    advises_after_its_collection,
};

GROUP(advice, .timeout = 2 * AWAIT_SECONDS);

TEST(a_stop_does_not_wait_for_a_thread_that_advises, .n = RT_ARRAY_LEN(advises))
{
	advises[_i]();
	stop();
	ck_assert_uint_eq(hugepages.range[0].nstretches, 0);
	start();
	let_end(SCHED_WORKER_ADVISE, &other);
	host_attach();
	heap_healthy();
	must(rt_fini());
}

// sweep_rest is for a hand.  As in the functions that run destructors, all must
// be swept when slices_rest returns.
static void sweep_rest(void)
{
	keep();
	supply_collect(proc_self(), ASK_FORCED);
	ck_assert(sweep_left());
	slices_rest(rt_thread_tls);
	ck_assert(swept_over());
	host_detach();
}

static void collect_beside(void)
{
	host_attach();
	supply_collect(proc_self(), ASK_FORCED);
	ck_assert(sweep_left());
	host_detach();
}

// swept ADVISES_LAST: a thread has swept the rest and advises, and meanwhile
// another thread collects.  The first thread then sweeps what that collection
// has left.
TEST(what_is_swept_before_advice_may_not_be_all)
{
	rt_config c = heap_config(HEAP_QUIET);

	c.gc_threads = 0;
	c.sweep = 2;
	begin_huge(c);
	hold_at(SCHED_WORKER_ADVISE, &other, sweep_rest);
	hand_run(&third, collect_beside);
	let_end(SCHED_WORKER_ADVISE, &other);
	host_attach();
	heap_healthy();
	must(rt_fini());
}
