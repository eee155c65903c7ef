// Scenarios of check_faults for what goes on beside a program: pages that go to
// the system and come from it, sweeping, and collections that no thread asks
// for.
#include "test/whole/faults.h"

#include <errno.h>

#include "gc/cycle/scavenger.h"
#include "gc/cycle/scavturn.h"
#include "gc/cycle/swept.h"
#include "gc/host/slices.h"
#include "gc/host/supply.h"
#include "runtime/os/settings.h"
#include "runtime/pages/hugepages.h"
#include "runtime/spans/populate.h"
#include "test/harness/await.h"

void prepare_release(void)
{
	for (unsigned i = 0; i < 20; i++)
		keep(rt_alloc_noscan(1 << 20));
	for (unsigned i = 0; i < 20; i += 2)
		kept[i] = NULL;
}

unsigned act_release(void)
{
	require(rt_free_os_memory() == RT_OK, "free_os_memory");
	return 0;
}

void check_release(void)
{
	rt_memstats m;

	require(rt_free_os_memory() == RT_OK, "free_os_memory");
	require(rt_read_memstats(&m) == RT_OK, "exact statistics");
	require(m.heap_released == m.heap_idle, "memory is not released");
	require(m.heap_objects == 10, "an object is lost");
}

static unsigned make_garbage(unsigned mib)
{
	unsigned failed = 0;

	for (unsigned i = 0; i < mib; i++)
		failed += !rt_alloc_noscan_uninit(1 << 20);
	act_gc();
	return failed;
}

// may_release tells whether the trial leaves a way to release pages.
static bool may_release(void)
{
	return trial.kind != OSCALL_RELEASE && trial.mode != NO_WAY_BACK;
}

// free_pages returns the bytes of free pages that are not released.
static uint64_t free_pages(void)
{
	rt_memstats m;

	require(rt_read_memstats_live(&m) == RT_OK, "live statistics");
	return m.heap_idle - m.heap_released;
}

// The memory limit is 4 MiB below what is mapped, so that much is released, if
// there are so many free pages.
unsigned act_limit(void)
{
	unsigned failed = make_garbage(8);
	uint64_t limit =
	    base_sub_sat(gauge_load(&gauges.mapped_ready), 4 << 20);
	int64_t old;

	require(rt_set_memory_limit((int64_t)limit, &old) == RT_OK, "limit");
	failed += !rt_alloc_noscan_uninit(1 << 20);
	if (failed == 0 && may_release())
		require(gauge_load(&gauges.mapped_ready) <= limit ||
			    free_pages() == 0,
			"the memory limit is passed");
	require(rt_set_memory_limit(old, NULL) == RT_OK, "no limit");
	return failed;
}

bool scavenger_runs(void)
{
	return atomic_u32_load_relaxed(&scavenger.runs) != 0;
}

// await_released waits until the scavenger has released the free pages.  It
// ends each pause of the scavenger by a wake, which works only without a clock.
// A clock that was refused before may have made the pause long.
static void await_released(void)
{
	enum { NAP_NS = 100000, NAPS = AWAIT_SECONDS * 10000 };

	fault_fail(OSCALL_CLOCK, 1, UINT64_MAX, EINVAL);
	for (unsigned i = 0; free_pages() >= 1 << 20; i++) {
		require(i < NAPS, "nothing is released");
		note_wake(&scavenger.pause);
		sleep_ns(NAP_NS);
	}
	fault_fail(OSCALL_CLOCK, 1, 0, 0);
}

// take_idle_turns does what the scavenger does for an idle program, which this
// one never is.
static void take_idle_turns(void)
{
	enum { TURNS = 1000 };
	const uint64_t second = 1000000000;
	struct scavturn turn;
	unsigned i = 0;

	scavturn_init(&turn, 1, second);
	while (scavturn_run(&turn, proc_self(), 100 * second).sleep ==
	       SCAVTURN_PAUSE)
		require(++i < TURNS, "the turns do not end");
	require(turn.idle, "the program counts as active");
}

// A scavenger that may release pages releases them, whatever else is refused.
// In a trial that refuses clocks, only check_scavenger waits for that.
unsigned act_scavenger(void)
{
	unsigned failed = make_garbage(6);

	if (scavenger_runs() && may_release() && trial.kind != OSCALL_CLOCK)
		await_released();
	take_idle_turns();
	return failed;
}

// act_ahead does what the background thread does for a thread that takes much
// memory.  This thread takes little.
unsigned act_ahead(void)
{
	struct populate_pass pass = populate_begin();
	unsigned failed = !mheap_extend(proc_self(), 1);

	// A heap whose system has refused would not ask again.
	atomic_u32_store_relaxed(&mheap.populate, 1);
	while (!pass.over)
		populate_range(proc_self(), &pass);
	failed += atomic_u32_load_relaxed(&mheap.populate) == 0;
	return failed + act_large();
}

// check_ahead requires that all that is free has memory.
void check_ahead(void)
{
	struct populate_pass pass = populate_begin();

	atomic_u32_store_relaxed(&mheap.populate, 1);
	while (!pass.over)
		populate_range(proc_self(), &pass);
	// Old kernels always refuse.
	require(atomic_u32_load_relaxed(&mheap.populate) == 0 ||
		    pagealloc_count_scavenged(&mheap.pages) == 0,
		"pages have no memory");
}

void check_scavenger(void)
{
	require(act_scavenger() == 0, "refused though granted again");
	require(scavenger_runs(), "no scavenger");
	require(make_garbage(6) == 0, "no garbage");
	await_released();
}

// act_periodic collects as the background thread would, if there were one.
// Without a clock no collection is due, and the thread would look again within
// one period.
unsigned act_periodic(void)
{
	enum { PERIOD_S = 255 };
	static const atomic_u32 never;
	const uint64_t period = PERIOD_S * UINT64_C(1000000000);
	struct periodic s = {.since = 0};
	uint8_t usual = settings()->gc_period_s;
	bool collected;

	require(!scavenger_runs(), "another thread collects");
	settings_present.gc_period_s = PERIOD_S;
	require(rt_set_gc_percent(100, NULL) == RT_OK, "percent");
	slices_rest(rt_thread_tls);
	require(periodic_left(&s, nanotime()) <= period, "it begins late");
	fault_advance_clock(period);
	collected = periodic_collect(&s, proc_self(), &never);
	require(periodic_left(&s, nanotime()) <= period, "it is due late");
	require(rt_set_gc_percent(-1, NULL) == RT_OK, "percent");
	settings_present.gc_period_s = usual;
	return !collected;
}

void leave_unswept(void)
{
	uint8_t usual = settings()->sweep;

	settings_present.sweep = 2;
	supply_collect(proc_self(), ASK_FORCED);
	settings_present.sweep = usual;
}

static unsigned make_unswept(void)
{
	unsigned failed = 0;

	for (unsigned i = 0; i < 4; i++)
		failed += !rt_alloc_noscan_uninit(1 << 20);
	leave_unswept();
	return failed;
}

// read_unswept reads exact statistics in its own stop.  The read sweeps first.
static unsigned read_unswept(void)
{
	unsigned failed = make_unswept();
	rt_memstats m;

	require(rt_stop_the_world(RT_STOP_HOST) == RT_OK, "stop");
	require(rt_read_memstats(&m) == RT_OK, "read");
	require(rt_start_the_world(NULL) == RT_OK, "start");
	return failed;
}

// The program first sweeps alone: in a read, as the background thread would,
// when its thread first uses a kind, and when it allocates large objects.  Then
// it may get a background thread, and sweeps beside it.
unsigned act_sweep(void)
{
	int usual = settings()->gc_threads;
	unsigned failed;
	bool swept_some;

	settings_present.gc_threads = 0;
	failed = read_unswept();
	failed += make_unswept();
	// The background thread itself may come after the trial.
	swept_some = swept_slice_down(proc_self());
	require(swept_some || scavenger_runs() || trial.kind != OSCALL_CLOCK,
		"nothing was left");
	failed += make_unswept() + act_kinds();
	failed += make_unswept() + act_large();
	settings_present.gc_threads = usual;
	failed += make_unswept() + act_large();
	act_gc();
	return failed;
}

void check_sweep(void)
{
	require(make_unswept() == 0, "no garbage");
	require(scavenger_runs(), "no thread sweeps");
	require(live() == 0, "an object is left");
}

// Chunks are full of live objects, and then a part of them is released.
void prepare_huge_pages(void)
{
	for (unsigned i = 0; i < 20; i++)
		keep(rt_alloc_noscan(1 << 20));
	require(rt_gc() == RT_OK, "gc");
}

unsigned act_huge_pages(void)
{
	while (hugepages_provide(true))
		;
	for (unsigned i = 0; i < 20; i += 2)
		kept[i] = NULL;
	return act_release();
}
