// What a thread of the host may do in every phase of a collection, of its sweep
// and of the scavenger: all pairs.
//
// A thread is held in the phase.  Another thread, which began before, does
// something: at once, or after a wait at the point that the rule (waits_at)
// names.  Afterwards the heap is as after any other collection.
#define RT_NO_INLINE_ALLOC
#include <rt/rt.h>

#include "runtime/spans/populate.h"
#include "gc/cycle/scavenger.h"
#include "gc/cycle/swept.h"
#include "gc/host/supply.h"
#include "test/harness/fault.h"
#include "test/harness/heap.h"
#include "test/harness/process.h"
#include "test/order/host.h"

enum {
	LARGE = 1 << 20,
	GARBAGE = 12, // large objects, and as many small ones
	KEPT = 8,
	MIDDLE = 40000, // a large object, too
	HEAP_MIN = 256 << 20,
	HEAP_MAX = 64 << 20, // more than the objects need
	// A test should take less than a tenth of this time.  After that the
	// background thread would try again.
	PERIOD_S = 255,
};

static_assert(PERIOD_S <= UINT8_MAX, "gc_period_s");

static struct hand holder = {.stays = true}, second = {.stays = true}, other;
static unsigned char *kept[KEPT]; // every other one is large
static unsigned nkept;
static int percent; // of the configuration

static size_t kept_size(unsigned i)
{
	return i % 2 == 0 ? 48 : MIDDLE;
}

static void make_objects(void)
{
	must(rt_roots_add(kept, kept + KEPT, RT_ROOT_EXACT));
	for (unsigned i = 0; i < GARBAGE; i++) {
		ck_assert_ptr_nonnull(rt_alloc_noscan(LARGE));
		ck_assert_ptr_nonnull(rt_alloc_noscan(48));
		if (i >= KEPT)
			continue;
		kept[i] = rt_alloc_noscan(kept_size(i));
		ck_assert_ptr_nonnull(kept[i]);
		memset(kept[i], (int)i + 1, kept_size(i));
	}
	nkept = KEPT;
}

static bool is_intact(unsigned i)
{
	for (size_t at = 0; at < kept_size(i); at++)
		if (kept[i][at] != i + 1)
			return false;
	return true;
}

static void check_kept(void)
{
	for (unsigned i = 0; i < KEPT; i++)
		ck_assert(!kept[i] || is_intact(i));
}

// ---- phases ----

// What a thread may have to wait for in a phase.
enum {
	RUNS = 1,     // the thread that is held runs
	STOPPED = 2,  // the world is
	TURN = 4,     // the right to stop the world is taken
	LED = 8,      // a thread leads
	LAST = 16,    // only the thread that is held can end the sweep
	LIBRARY = 32, // the background thread is held
};

struct phase {
	enum schedpoint at;
	void (*hold)(const struct phase *p); // main is in a region
	unsigned is;
	void (*fn)(void); // what the held thread does
	uint8_t sweep;	  // rt_config
	uint8_t scavenge;
	bool periodic;
};

static void take_large(void)
{
	host_attach();
	ck_assert_ptr_nonnull(rt_alloc_noscan((size_t)GARBAGE * LARGE));
	host_detach();
}

static void release_pages(void)
{
	host_attach();
	must(rt_free_os_memory());
	host_detach();
}

static void populate_pages(void)
{
	struct populate_pass pass = populate_begin();

	host_attach();
	ck_assert_uint_gt(populate_range(proc_self(), &pass), 0);
	host_detach();
}

// collect_only collects, and leaves the sweep to others.
static void collect_only(void)
{
	host_attach();
	supply_collect(proc_self(), ASK_FORCED);
	host_detach();
}

static void hold_none(const struct phase *p)
{
	(void)p;
}

static void hold_one(const struct phase *p)
{
	hold_at(p->at, &holder, p->fn);
}

// One thread leads and waits for its turn to stop the world.  Another one has
// asked after it and sleeps.
static void hold_asker(const struct phase *p)
{
	stw_acquire(NULL);
	pass_at(p->at, &holder, p->fn);
	pass_at(SCHED_ASK_WAIT, &second, p->fn);
}

static void hold_sweeper(const struct phase *p)
{
	hand_run(&second, collect_only);
	ck_assert(sweep_left());
	hold_one(p);
}

static void sweep_but_one(void)
{
	host_attach();
	for (;;) {
		uint64_t left = atomic_u64_load_relaxed(&sweep.left);

		if (sweep_highest(left) - sweep_lowest(left) == 1)
			break;
		ck_assert(swept_slice(proc_self()));
	}
	host_detach();
}

static void hold_last(const struct phase *p)
{
	hand_run(&second, collect_only);
	hand_run(&second, sweep_but_one);
	hold_one(p);
}

static void hold_library(const struct phase *p)
{
	schedpoint_hold(p->at);
	hand_run(&second, p->fn);
	await_held(p->at);
}

// The first collection makes the scavenger.
static void hold_scavenger(const struct phase *p)
{
	hand_run(&second, p->fn);
	hold_library(p);
}

static void hold_periodic(const struct phase *p)
{
	const uint32_t slept = 2; // NOTE_SLEPT of runtime/os/lock.c

	await_at_least(&scavenger.runs, 1);
	await_at_least(&scavenger.call.woken, slept);
	schedpoint_hold(p->at);
	fault_advance_clock(PERIOD_S * UINT64_C(1000000000));
	note_wake(&scavenger.call);
	await_held(p->at);
}

static const struct phase phases[] = {
    // Before any collection.
    {SCHEDPOINT_COUNT, hold_none, 0, NULL, 0, 0, false},
    // A thread asks, another leads.
    {SCHED_SEMA_ACQUIRE, hold_asker, LED | TURN, host_collect, 2, 0, false},
    // In the stop.
    {SCHED_CYCLE_FLIP, hold_one, LED | TURN | STOPPED, host_collect, 2, 0,
     false},
    // The stop has ended.
    {SCHED_CYCLE_END, hold_one, LED | TURN | RUNS, host_collect, 2, 0, false},
    // No record yet.
    {SCHED_CYCLERECORD_PUBLISH, hold_one, LED | TURN | RUNS, host_collect, 2, 0,
     false},
    // The lead has not ended.
    {SCHED_ASK_DONE, hold_one, LED | RUNS, host_collect, 2, 0, false},
    // Between two chunks.
    {SCHED_SLICES_REST, hold_sweeper, RUNS, host_sweep, 2, 0, false},
    // The leader between two chunks that the last collection has left.
    {SCHED_SLICES_REST, hold_sweeper, LED | RUNS, host_collect, 2, 0, false},
    // Sweeping for a large object.
    {SCHED_TAKE_SWEPT, hold_sweeper, RUNS, take_large, 2, 0, false},
    // The background thread between two chunks.
    {SCHED_FINISH_SWEEP, hold_library, LIBRARY, collect_only, 2, 0, false},
    // In the last chunk.
    {SCHED_SWEEP_ONE_TAKEN, hold_last, RUNS | LAST, host_sweep, 2, 0, false},
    // All is swept.
    {SCHED_SWEPT_END, hold_sweeper, RUNS, host_sweep, 2, 0, false},
    // What follows is not over.
    {SCHED_SWEPT_FOLLOW, hold_sweeper, RUNS | LAST, host_sweep, 2, 0, false},
    // The scavenger has pages.
    {SCHED_SCAVENGE_STEP, hold_scavenger, RUNS | LIBRARY, host_collect, 0, 1,
     false},
    // A thread has pages to release.
    {SCHED_SCAVENGE_STEP, hold_one, RUNS, release_pages, 2, 0, false},
    // A thread has pages to bring in.
    {SCHED_POPULATE_RANGE, hold_one, RUNS, populate_pages, 2, 0, false},
    // The background thread leads.
    {SCHED_PERIODIC_BEGIN, hold_periodic, LED | RUNS | LIBRARY, NULL, 2, 0,
     true},
    // The background thread in its stop.
    {SCHED_CYCLE_FLIP, hold_periodic, LED | TURN | STOPPED | LIBRARY, NULL, 2,
     0, true},
    // Its stop has ended.
    {SCHED_CYCLE_END, hold_periodic, LED | TURN | RUNS | LIBRARY, NULL, 2, 0,
     true},
};

static void begin(const struct phase *p)
{
	rt_config c;

	percent = p->periodic ? 100 : HEAP_QUIET;
	c = heap_config(percent);
	c.max_procs = 1; // no helper
	c.heap_min = HEAP_MIN;
	c.gc_threads = p->is & LIBRARY ? 1 : 0;
	c.sweep = p->sweep;
	c.scavenge = p->scavenge;
	c.idle_s = UINT8_MAX; // no test takes so long
	c.gc_period_s = p->periodic ? PERIOD_S : 0;
	heap_start_exact(c);
	make_objects();
}

static void leave(const struct phase *p)
{
	if (p->hold == hold_asker)
		stw_release();
	else if (p->hold != hold_none)
		schedpoint_release(p->at);
}

static void end_hands(const struct phase *p)
{
	if (p->hold == hold_asker)
		hand_end(&second);
	if (p->hold != hold_none && !(p->is & LIBRARY))
		hand_end(&holder);
}

// ---- events ----

// What an event needs.
enum {
	IN_REGION = 1, // it begins in a blocking region, and stays there
	UNBLOCKS = 2,  // it begins in one, which it leaves
	ATTACHES = 4,
	SWEEPS = 8,    // all, before anything else
	HAS_TURN = 16, // the right to stop the world
	STOPS = 32 | HAS_TURN,
	ASKS = 64,   // for a collection
	EXITS = 128, // its thread ends without a detach
};

struct event {
	void (*fn)(void);
	unsigned needs;
};

static void do_nothing(void)
{
}

static void enter_and_leave(void)
{
	host_block();
	host_unblock();
}

static void read_exactly(void)
{
	rt_memstats m;

	must(rt_read_memstats(&m));
	ck_assert_uint_ge(m.heap_objects, KEPT);
	// A collection has found the garbage dead, so the read has freed it.
	// take_large may have allocated one object since.
	if (m.num_gc > 0)
		ck_assert_uint_le(m.heap_objects, KEPT + 1);
	ck_assert_uint_eq(m.heap_objects, m.mallocs - m.frees);
}

static void read_live(void)
{
	rt_memstats m;

	must(rt_read_memstats_live(&m));
	ck_assert_uint_eq(m.heap_objects, m.mallocs - m.frees);
}

static int count_one(void *obj, size_t size, int kind, void *arg)
{
	(void)obj, (void)size, (void)kind;
	++*(uint64_t *)arg;
	return 0;
}

static void walk(void)
{
	uint64_t n = 0;

	must(rt_heap_walk(count_one, &n));
	ck_assert_uint_ge(n, KEPT);
}

static void verify(void)
{
	ck_assert_uint_ge(heap_live(), KEPT);
}

static void stop_and_start(void)
{
	must(rt_stop_the_world(RT_STOP_HOST));
	check_kept();
	must(rt_start_the_world(NULL));
}

static void collect(void)
{
	must(rt_gc());
	ck_assert(swept_over());
}

static bool works_alone(void)
{
	struct rt_verify v;

	if (!rt_thread_self() && rt_thread_attach(RT_THREAD_EXACT) != RT_OK)
		return false;
	(void)rt_blocking_leave(); // refused, unless the fork was in a region
	// A sanitizer can make no thread in a child, not even for periodic
	// collections.
	if (RT_TSAN || RT_ASAN)
		must(rt_set_gc_percent(-1, NULL));
	return rt_alloc_noscan(48) && rt_alloc_noscan(LARGE) &&
	       (RT_TSAN || RT_ASAN || rt_gc() == RT_OK) &&
	       rt_heap_verify(&v) == RT_OK && v.errors == 0 &&
	       v.objects >= KEPT && rt_fini() == RT_OK;
}

static void fork_and_wait(void)
{
	if (process_forked())
		process_end(works_alone());
}

static void end_heap(void)
{
	ck_assert_int_eq(rt_fini(), RT_EBUSY); // main is attached
}

// goal returns the heap's goal, which a setting changes at once.
static uint64_t goal(void)
{
	return heap_metric("/gc/heap/goal:bytes");
}

static void set_percent(void)
{
	int before = 0;

	must(rt_set_gc_percent(50, &before));
	ck_assert_int_eq(before, percent);
	ck_assert_uint_eq(goal(), HEAP_MIN / 2);
}

static void set_heap_min(void)
{
	size_t before = 0;

	must(rt_set_heap_min(LARGE, &before));
	ck_assert_uint_eq(before, HEAP_MIN);
	if (percent < 0)
		ck_assert_uint_eq(goal(), UINT64_MAX);
	else
		ck_assert_uint_lt(goal(), HEAP_MAX);
}

// set_limit sets a limit below what the heap has.
static void set_limit(void)
{
	int64_t before = 0;

	must(rt_set_memory_limit(LARGE, &before));
	ck_assert_int_eq(before, INT64_MAX);
	ck_assert_uint_lt(goal(), HEAP_MAX);
}

static void set_heap_max(void)
{
	size_t before = 0;

	must(rt_set_heap_max(HEAP_MAX, &before));
	ck_assert_uint_eq(before, arena.reserved); // there was none
	ck_assert_uint_lt(goal(), HEAP_MAX);
}

static void free_one(unsigned i)
{
	void *obj = kept[i];

	kept[i] = NULL;
	must(rt_free(obj));
	nkept--;
}

static void free_small(void)
{
	free_one(0);
}

static void free_large(void)
{
	free_one(1);
}

static void allocate_small(void)
{
	ck_assert_ptr_nonnull(rt_alloc_noscan(48));
}

static void allocate_large(void)
{
	ck_assert_ptr_nonnull(rt_alloc_noscan(LARGE));
}

static void attach(void)
{
	host_attach();
	allocate_small();
	host_detach();
}

static const struct event events[] = {
    {attach, ATTACHES},
    {do_nothing, UNBLOCKS}, // it detaches
    {do_nothing, UNBLOCKS | EXITS},
    {do_nothing, IN_REGION | EXITS},
    {enter_and_leave, UNBLOCKS},
    {read_exactly, UNBLOCKS | SWEEPS | STOPS},
    {read_exactly, IN_REGION | STOPS},
    {read_exactly, STOPS}, // not attached
    {read_live, 0},
    {walk, UNBLOCKS | SWEEPS | STOPS},
    {verify, UNBLOCKS | SWEEPS | STOPS},
    {stop_and_start, UNBLOCKS | STOPS},
    {collect, UNBLOCKS | ASKS | SWEEPS | STOPS},
    {fork_and_wait, UNBLOCKS | STOPS},
    {fork_and_wait, IN_REGION | STOPS},
    {fork_and_wait, STOPS}, // not attached
    {end_heap, UNBLOCKS},   // another thread is attached
    {set_percent, UNBLOCKS},
    {set_heap_min, UNBLOCKS},
    {set_limit, UNBLOCKS},
    {set_heap_max, UNBLOCKS},
    {free_small, UNBLOCKS},
    {free_large, UNBLOCKS},
    {allocate_small, UNBLOCKS},
    {allocate_large, UNBLOCKS},
};

static const struct event *event;
static atomic_u32 ready, go;

static void act(void)
{
	bool attached = event->needs & (IN_REGION | UNBLOCKS);

	if (attached) {
		host_attach();
		host_block();
	}
	atomic_u32_store_release(&ready, 1);
	while (atomic_u32_load_acquire(&go) == 0)
		oscall_yield(); // the clock may jump meanwhile
	if (event->needs & UNBLOCKS)
		host_unblock();
	event->fn();
	if (!attached || (event->needs & EXITS))
		return;
	if (event->needs & IN_REGION)
		host_unblock();
	host_detach();
}

// waits_at returns where the thread of an event waits for the end of a phase,
// or SCHEDPOINT_COUNT if it does not wait.
static enum schedpoint waits_at(const struct event *e, const struct phase *p)
{
	unsigned is = p->is, needs = e->needs;

	if (is & STOPPED) {
		if (needs & ATTACHES)
			return SCHED_LOCK_OPEN_GATE;
		// A thread that exits leaves its region.
		if (needs & (UNBLOCKS | EXITS))
			return SCHED_PROC_UNBLOCK_STOP;
	}
	if ((needs & ASKS) && (is & LED))
		return SCHED_ASK_WAIT;
	if ((needs & SWEEPS) && (is & LAST))
		return SCHED_SWEPT_AWAIT;
	if ((needs & HAS_TURN) && (is & TURN))
		return SCHED_SEMA_ACQUIRE;
	if ((needs & STOPS) == STOPS && (is & RUNS))
		return SCHED_NOTE_WAIT;
	return SCHEDPOINT_COUNT;
}

// meet makes the event come in the phase, and ends both.
static void meet(const struct event *e, const struct phase *p)
{
	enum schedpoint at = waits_at(e, p);

	event = e;
	hand_start(&other, act);
	await_at_least(&ready, 1);
	host_block();
	p->hold(p);
	if (at != SCHEDPOINT_COUNT)
		schedpoint_hold(at);
	atomic_u32_store_release(&go, 1);
	if (at != SCHEDPOINT_COUNT) {
		await_held(at);
		schedpoint_release(at);
	} else {
		hand_end(&other);
	}
	leave(p);
	if (at != SCHEDPOINT_COUNT)
		hand_end(&other);
	end_hands(p);
	host_unblock();
}

static void collect_normally(void)
{
	uint64_t before = heap_metric("/gc/cycles/total:gc-cycles");
	rt_cycle c;

	must(rt_gc());
	ck_assert(swept_over());
	must(rt_read_cycle(before + 1, &c));
	ck_assert_uint_eq(c.number, before + 1);
	ck_assert_int_eq(c.cause, RT_CAUSE_FORCED);
	ck_assert_int_eq(rt_read_cycle(before + 2, &c), RT_ENOENT);
}

GROUP(phases, .timeout = 2 * AWAIT_SECONDS);

// A pair is always of two threads.  The thread that is held in a phase can do
// none of the events itself, because it is inside a call.
//
// ask LEAD_ASLEEP, LEAD_KEPT, REST_FIRST: a thread that has the lead sweeps the
// rest, and polls in between.  A stop that comes there does not wait for the
// end of the lead.  In the child of a fork that comes there, rt_gc leads.
TEST(every_event_comes_in_every_phase,
     .n = RT_ARRAY_LEN(phases) * RT_ARRAY_LEN(events))
{
	const struct phase *p = &phases[_i / RT_ARRAY_LEN(events)];
	const struct event *e = &events[_i % RT_ARRAY_LEN(events)];

	begin(p);
	if (p->at == SCHED_POPULATE_RANGE &&
	    !atomic_u32_load_relaxed(&mheap.populate)) {
		suite_skip("this kernel has no MADV_POPULATE_WRITE", NULL);
		return;
	}
	meet(e, p);
	heap_healthy();
	check_kept();
	collect_normally();
	ck_assert_uint_eq(heap_live(), nkept);
	heap_healthy();
	check_kept();
	must(rt_fini());
}
