// Stopping the world: which threads run meanwhile, and which times are noted.
#include "runtime/world/stw.h"

#include <signal.h>

#include "runtime/spans/mcache.h"
#include "test/harness/await.h"
#include "test/harness/death.h"
#include "test/harness/fault.h"
#include "test/harness/suite.h"

enum {
	LATE_NS = 30 * 1000 * 1000, // by how much a late thread is late
	STOPPED_NS = 8 * 1000 * 1000,
};

// ---- a thread that is told what to do ----

// Steps of a thread, in order; main moves want, the thread follows with at.
enum step {
	BORN,
	READY, // waits to be told
	NEXT,  // the operation under test has returned
	GONE,
};

struct actor {
	pthread_t thread;
	atomic_u32 want;
	atomic_u32 at;
	struct rt_proc *p; // NULL: not attached
	int result;
	void (*wait)(struct actor *); // how it waits to be told
	int (*op)(void);
};

static void *act(void *arg)
{
	struct actor *a = arg;

	a->p = proc_self();
	atomic_u32_store_release(&a->at, READY);
	a->wait(a);
	a->result = a->op();
	atomic_u32_store_release(&a->at, NEXT);
	rt_blocking_enter(); // refused to a stopper, which waits in its stop
	await_at_least(&a->want, GONE);
	return NULL;
}

static void *attach_and_act(void *arg)
{
	rt_thread_attach(0);
	return act(arg);
}

static void in_region(struct actor *a)
{
	rt_blocking_enter();
	await_at_least(&a->want, NEXT);
}

static void without_polls(struct actor *a)
{
	await_at_least(&a->want, NEXT);
}

static void actor_begin(struct actor *a, void (*wait)(struct actor *),
			int (*op)(void))
{
	a->wait = wait;
	a->op = op;
	a->thread = start_thread(attach_and_act, a);
	await_at_least(&a->at, READY);
}

// newcomer_begin starts an actor without a P.
static void newcomer_begin(struct actor *a, int (*op)(void))
{
	a->wait = without_polls;
	a->op = op;
	a->thread = start_thread(act, a);
	await_at_least(&a->at, READY);
}

static void actor_tell(struct actor *a)
{
	atomic_u32_store_release(&a->want, NEXT);
}

static void actor_end(struct actor *a)
{
	atomic_u32_store_release(&a->want, GONE);
	join_beside(a->thread);
}

static bool is_blocked(const struct rt_proc *p)
{
	return (atomic_u32_load_acquire(&p->state) & PROC_STATE) ==
	       PROC_BLOCKED;
}

static void await_blocked(const struct rt_proc *p)
{
	while (!is_blocked(p))
		oscall_yield();
}

static int poll(void)
{
	rt_safepoint();
	return RT_OK;
}

static int allocate(void)
{
	return rt_alloc(100) ? RT_OK : RT_ENOMEM;
}

static int attach(void)
{
	return rt_thread_attach(0);
}

static int stop(void)
{
	return rt_stop_the_world(RT_STOP_HOST);
}

static int stop_and_start(void)
{
	int error = stop();

	return error ? error : rt_start_the_world(NULL);
}

static int read_stopped(void)
{
	rt_memstats m;

	return rt_read_memstats(&m);
}

static int verify(void)
{
	struct rt_verify v;

	return rt_heap_verify(&v);
}

// ---- which threads a stop waits for ----

// How the stopper stops the world while main watches, and how the running
// thread is then stopped.
static int (*const stopping_ops[])(void) = {stop_and_start, rt_gc, read_stopped,
					    verify, rt_free_os_memory};
static int (*const standing_ops[])(void) = {
    poll,	    allocate,	       rt_gc,
    stop_and_start, rt_blocking_enter, rt_thread_detach,
    read_stopped};

enum {
	STOPPINGS = RT_ARRAY_LEN(stopping_ops),
	STANDINGS = RT_ARRAY_LEN(standing_ops),
};

GROUP(waits, .setup = heap_begin, .timeout = 60);

// This holds whatever call stops the world, and in whatever call the running
// thread is stopped.
TEST(a_stop_waits_for_a_running_thread, .n = STOPPINGS * STANDINGS)
{
	static struct actor runner, stopper;

	actor_begin(&runner, without_polls, standing_ops[_i % STANDINGS]);
	actor_begin(&stopper, without_polls, stopping_ops[_i / STANDINGS]);
	rt_blocking_enter();
	actor_tell(&stopper);
	while (!proc_wanted(runner.p))
		oscall_yield();
	ck_assert(stays(&stopper.at, READY));
	ck_assert_int_eq(rt_world_stopped(), 0);
	actor_tell(&runner);
	await_at_least(&stopper.at, NEXT);
	await_at_least(&runner.at, NEXT);
	ck_assert_int_eq(stopper.result, RT_OK);
	ck_assert_int_eq(runner.result, RT_OK);
	rt_blocking_leave();
	actor_end(&runner);
	actor_end(&stopper);
}

static uint8_t pending(const struct actor *a)
{
	const struct rt_thread *t = atomic_ptr_load_acquire(&a->p->thread);

	return __atomic_load_n(&t->pending, __ATOMIC_RELAXED);
}

// The byte that inline code may test is set as long as the state of the P asks
// for a stop.
TEST(pending_is_raised_as_long_as_a_stop_is_wanted)
{
	static struct actor runner, stopper;

	actor_begin(&runner, without_polls, poll);
	actor_begin(&stopper, without_polls, stop);
	ck_assert_uint_eq(pending(&runner), 0);
	rt_blocking_enter();
	actor_tell(&stopper);
	while (pending(&runner) == 0)
		oscall_yield();
	ck_assert(proc_wanted(runner.p));
	actor_tell(&runner);
	await_at_least(&stopper.at, NEXT);
	ck_assert_uint_eq(pending(&runner), 1);
	ck_assert_uint_eq(pending(&stopper), 0);
	atomic_u32_store_release(&stopper.want, GONE);
	join_thread(stopper.thread);
	await_at_least(&runner.at, NEXT);
	ck_assert_uint_eq(pending(&runner), 0);
	rt_blocking_leave();
	actor_end(&runner);
}

TEST(a_stop_does_not_wait_for_a_blocked_thread)
{
	static struct actor sleeper;

	actor_begin(&sleeper, in_region, rt_blocking_leave);
	await_blocked(sleeper.p);
	for (int i = 0; i < 100; i++)
		if (stopping_ops[i % STOPPINGS]() != RT_OK)
			ck_abort();
	ck_assert_uint_eq(atomic_u32_load_acquire(&sleeper.at), READY);
	actor_tell(&sleeper);
	await_at_least(&sleeper.at, NEXT);
	ck_assert_int_eq(sleeper.result, RT_OK);
	actor_end(&sleeper);
}

TEST(leaving_a_region_waits_for_the_end_of_a_stop)
{
	static struct actor sleeper;

	actor_begin(&sleeper, in_region, rt_blocking_leave);
	await_blocked(sleeper.p);
	ck_assert_int_eq(stop(), RT_OK);
	actor_tell(&sleeper);
	ck_assert(stays(&sleeper.at, READY));
	ck_assert(is_blocked(sleeper.p));
	ck_assert_int_eq(rt_start_the_world(NULL), RT_OK);
	await_at_least(&sleeper.at, NEXT);
	ck_assert_int_eq(sleeper.result, RT_OK);
	actor_end(&sleeper);
}

TEST(attaching_waits_for_the_end_of_a_stop)
{
	static struct actor newcomer;
	rt_stop_times times;
	rt_memstats before, after;

	newcomer_begin(&newcomer, attach);
	ck_assert_int_eq(stop(), RT_OK);
	ck_assert_int_eq(rt_read_memstats(&before), RT_OK);
	actor_tell(&newcomer);
	ck_assert(stays(&newcomer.at, READY));
	// Before it has passed the gate, the thread maps and counts nothing.
	ck_assert_int_eq(rt_read_memstats(&after), RT_OK);
	ck_assert_uint_eq(after.sys, before.sys);
	ck_assert_uint_eq(after.mcache_inuse, before.mcache_inuse);
	ck_assert_uint_eq(atomic_u32_load_relaxed(&procs.attached), 1);
	ck_assert_int_eq(rt_start_the_world(&times), RT_OK);
	ck_assert_uint_eq(times.nthreads, 1);
	await_at_least(&newcomer.at, NEXT);
	ck_assert_int_eq(newcomer.result, RT_OK);
	ck_assert_uint_eq(atomic_u32_load_relaxed(&procs.attached), 2);
	actor_end(&newcomer);
	ck_assert_uint_eq(atomic_u32_load_relaxed(&procs.attached), 1);
}

// A thread that detaches while a stop is wanted waits at the gate, still
// attached.
TEST(detaching_waits_for_the_end_of_a_stop)
{
	static struct actor leaver, stopper;

	actor_begin(&leaver, without_polls, rt_thread_detach);
	actor_begin(&stopper, without_polls, stop);
	rt_blocking_enter();
	actor_tell(&stopper);
	while (!proc_wanted(leaver.p))
		oscall_yield();
	actor_tell(&leaver);
	await_at_least(&stopper.at, NEXT);
	ck_assert(stays(&leaver.at, READY));
	ck_assert_uint_eq(atomic_u32_load_relaxed(&procs.attached), 3);
	// The stopper exits: that starts the world.
	atomic_u32_store_release(&stopper.want, GONE);
	join_thread(stopper.thread);
	await_at_least(&leaver.at, NEXT);
	rt_blocking_leave();
	ck_assert_int_eq(leaver.result, RT_OK);
	ck_assert_uint_eq(atomic_u32_load_relaxed(&procs.attached), 1);
	actor_end(&leaver);
}

// ---- waking ----

enum { SLEEPERS = 9 };

static struct sleeper {
	pthread_t thread;
	atomic_u32 tid;
	atomic_u32 here, want, done;
} asleep[SLEEPERS];

static void *leave_in_stop(void *arg)
{
	struct sleeper *s = arg;

	rt_thread_attach(0);
	rt_blocking_enter();
	atomic_u32_store_release(&s->tid, thread_number());
	atomic_u32_store_release(&s->here, 1);
	await_at_least(&s->want, 1);
	rt_blocking_leave();
	atomic_u32_store_release(&s->done, 1);
	pthread_testcancel();
	rt_thread_detach();
	return NULL;
}

static void *attach_in_stop(void *arg)
{
	struct sleeper *s = arg;

	atomic_u32_store_release(&s->tid, thread_number());
	atomic_u32_store_release(&s->here, 1);
	await_at_least(&s->want, 1);
	rt_thread_attach(0);
	atomic_u32_store_release(&s->done, 1);
	rt_thread_detach();
	return NULL;
}

static void on_signal(int signal)
{
	(void)signal;
}

// interrupt ends each sleep early; the threads sleep again.
static void interrupt(void)
{
	uint64_t sleeps;
	struct sigaction action = {.sa_handler = on_signal};

	ck_assert_int_eq(sigaction(SIGUSR1, &action, NULL), 0);
	fault_fail(OSCALL_FUTEX_WAIT, 1, 0, 0); // counts from now on
	for (int i = 0; i < SLEEPERS; i++) {
		sleeps = fault_count(OSCALL_FUTEX_WAIT);
		ck_assert_int_eq(pthread_kill(asleep[i].thread, SIGUSR1), 0);
		while (fault_count(OSCALL_FUTEX_WAIT) == sleeps)
			oscall_yield();
		await_at_least(&procs.gate_waiters, SLEEPERS);
		await_asleep(&asleep[i].tid);
	}
}

static void cancel_all(void)
{
	for (int i = 0; i < SLEEPERS; i++)
		ck_assert_int_eq(pthread_cancel(asleep[i].thread), 0);
}

static void leave_alone(void)
{
}

static const struct {
	void *(*sleeper)(void *);
	void (*disturb)(void); // the sleepers
} sleeps[] = {
    {leave_in_stop, leave_alone}, {leave_in_stop, interrupt},
    {leave_in_stop, cancel_all},  {attach_in_stop, leave_alone},
    {attach_in_stop, interrupt},
};

// A start wakes one thread, and each woken thread wakes two.  So at least five
// of nine sleepers are woken by different calls.  All continue, whatever has
// happened to them in their sleep.
TEST(a_start_wakes_one_thread_and_that_one_two, .n = RT_ARRAY_LEN(sleeps))
{
	for (int i = 0; i < SLEEPERS; i++) {
		asleep[i].thread = start_thread(sleeps[_i].sleeper, &asleep[i]);
		await_at_least(&asleep[i].here, 1);
	}
	ck_assert_int_eq(stop(), RT_OK);
	for (int i = 0; i < SLEEPERS; i++)
		atomic_u32_store_release(&asleep[i].want, 1);
	await_at_least(&procs.gate_waiters, SLEEPERS);
	for (int i = 0; i < SLEEPERS; i++)
		await_asleep(&asleep[i].tid);
	sleeps[_i].disturb();
	fault_fail(OSCALL_FUTEX_WAKE, 1, 0, 0); // counts from now on
	ck_assert_int_eq(rt_start_the_world(NULL), RT_OK);
	for (int i = 0; i < SLEEPERS; i++)
		await_at_least(&asleep[i].done, 1);
	ck_assert_uint_ge(fault_count(OSCALL_FUTEX_WAKE),
			  1 + (SLEEPERS - 1) / 2);
	rt_blocking_enter();
	for (int i = 0; i < SLEEPERS; i++)
		join_thread(asleep[i].thread);
	rt_blocking_leave();
}

// ---- order ----

enum { STOPPERS = 5 };

static struct {
	uint32_t order[STOPPERS]; // written by stoppers in their stops
	uint32_t n;
} queue;

static int stop_and_sign(void)
{
	int error = stop();

	if (error)
		return error;
	queue.order[queue.n++] = proc_self()->id;
	return rt_start_the_world(NULL);
}

static void await_sleepers(uint64_t n)
{
	while (fault_count(OSCALL_FUTEX_WAIT) < n)
		oscall_yield();
}

// The first stopper waits for the runner, and the others wait for the first
// stopper.  Each is asleep before the next one comes.
TEST(stops_are_taken_in_order_of_request, .n = STOPPERS)
{
	static struct actor runner, stoppers[STOPPERS];

	actor_begin(&runner, without_polls, poll);
	for (int i = 0; i < STOPPERS; i++)
		actor_begin(&stoppers[i], without_polls, stop_and_sign);
	rt_blocking_enter();
	fault_fail(OSCALL_FUTEX_WAIT, UINT64_MAX, 0, 0); // just counts
	for (int i = 0; i < STOPPERS; i++) {
		actor_tell(&stoppers[(i + _i) % STOPPERS]);
		await_sleepers((uint64_t)i + 1);
	}
	actor_tell(&runner);
	for (int i = 0; i < STOPPERS; i++)
		await_at_least(&stoppers[i].at, NEXT);
	rt_blocking_leave();
	ck_assert_uint_eq(queue.n, STOPPERS);
	for (int i = 0; i < STOPPERS; i++)
		ck_assert_uint_eq(queue.order[i],
				  stoppers[(i + _i) % STOPPERS].p->id);
	for (int i = 0; i < STOPPERS; i++)
		actor_end(&stoppers[i]);
	actor_end(&runner);
}

// ---- the stopper ----

static int count_object(void *obj, size_t size, int kind, void *arg)
{
	uint64_t *n = arg;

	// The callback must not allocate, whichever thread has stopped the
	// world.
	if (rt_alloc(16) || rt_alloc_noscan(1 << 17) || !rt_is_heap(obj) ||
	    rt_size(obj) != size || kind > RT_WORDS)
		return RT_WALK_STOP;
	++*n;
	return 0;
}

static void read_everything(uint64_t nobjects)
{
	uint64_t words[RT_GCSTATS_WORDS];
	rt_memstats exact, live;
	uint64_t n = 0;
	size_t used;

	ck_assert_int_eq(rt_read_memstats(&exact), RT_OK);
	ck_assert_int_eq(rt_read_memstats_live(&live), RT_OK);
	// In a stop nothing changes and everything is counted, so both readings
	// are the same.
	ck_assert_mem_eq(&exact, &live, sizeof exact);
	ck_assert_uint_eq(exact.heap_objects, nobjects);
	must(rt_read_gcstats(words, RT_GCSTATS_WORDS, &used));
	ck_assert_uint_eq(heap_live(), nobjects);
	ck_assert_int_eq(rt_heap_walk(count_object, &n), RT_OK);
	ck_assert_uint_eq(n, nobjects);
}

static void *return_argument(void *arg)
{
	return arg;
}

GROUP(stop, .setup = heap_begin, .timeout = 60);

TEST(the_stopper_reads_and_changes_nothing)
{
	int stack;

	for (int i = 0; i < 1000; i++)
		ck_assert_ptr_nonnull(rt_alloc(48));
	ck_assert_int_eq(rt_world_stopped(), 0);
	ck_assert_int_eq(rt_stop_the_world(RT_STOP_HOST - 1), RT_EINVAL);
	ck_assert_int_eq(stop(), RT_OK);
	ck_assert_int_eq(rt_world_stopped(), 1);
	ck_assert_int_eq(stop(), RT_EBUSY);
	ck_assert_int_eq(rt_gc(), RT_EBUSY);
	ck_assert_int_eq(rt_fini(), RT_EBUSY);
	ck_assert_int_eq(rt_thread_detach(), RT_EBUSY);
	ck_assert_int_eq(rt_blocking_enter(), RT_EBUSY);
	ck_assert_int_eq(rt_free_os_memory(), RT_EBUSY);
	ck_assert_int_eq(rt_set_gc_percent(50, NULL), RT_EBUSY);
	ck_assert_ptr_eq(rt_call_blocking(return_argument, &stack), &stack);
	ck_assert_ptr_null(rt_alloc(48));
	ck_assert_ptr_null(rt_alloc_noscan(8));
	ck_assert_ptr_null(rt_alloc_kind(RT_WORDS, 48));
	ck_assert_ptr_null(rt_alloc_noscan_uninit(1 << 20));
	ck_assert_ptr_null(rt_stack_alloc(2048));
	rt_safepoint();
	read_everything(1000);
	ck_assert_ptr_null(rt_alloc(48)); // reading has not permitted it
	read_everything(1000);
	ck_assert_int_eq(rt_start_the_world(NULL), RT_OK);
	ck_assert_int_eq(rt_start_the_world(NULL), RT_EPERM);
	ck_assert_int_eq(rt_world_stopped(), 0);
	ck_assert_ptr_nonnull(rt_alloc(48));
	read_everything(1001);
}

static int start(void)
{
	return rt_start_the_world(NULL);
}

TEST(no_other_thread_starts_the_world)
{
	static struct actor other, unattached;

	actor_begin(&other, in_region, start);
	newcomer_begin(&unattached, start);
	ck_assert_int_eq(stop(), RT_OK);
	actor_tell(&other);
	actor_tell(&unattached);
	await_at_least(&other.at, NEXT);
	await_at_least(&unattached.at, NEXT);
	ck_assert_int_eq(other.result, RT_EPERM);
	ck_assert_int_eq(unattached.result, RT_EPERM);
	ck_assert_int_eq(rt_world_stopped(), 1);
	ck_assert_int_eq(start(), RT_OK);
	actor_end(&other);
	actor_end(&unattached);
}

// ---- exclusivity ----

enum { MUTATORS = 4, EXCLUSIVE_STOPS = 300 };

// The counters are plain words, so only stops order what mutators and stoppers
// do with them.
static struct {
	struct {
		RT_CACHE_ALIGNED uint64_t n;
	} count[MUTATORS];
	atomic_u32 end;
	atomic_u32 moved; // stops in which some counter moved
	uint64_t stops;	  // inside stops only
} plain;

// count_plainly passes through every state while it counts: running, at a poll,
// in a region, without a P.
static void *count_plainly(void *arg)
{
	uint64_t *n = arg;

	rt_thread_attach(0);
	while (!atomic_u32_load_acquire(&plain.end)) {
		for (int i = 0; i < 100; i++)
			++*(volatile uint64_t *)n;
		rt_safepoint();
		if (*n % 7 == 0) {
			rt_blocking_enter();
			oscall_yield();
			rt_blocking_leave();
		}
		if (*n % 11 == 0) {
			rt_thread_detach();
			rt_thread_attach(0);
		}
	}
	rt_thread_detach();
	return NULL;
}

static void look_twice(void)
{
	uint64_t seen[MUTATORS];
	uint64_t end = nanotime() + 20000;
	bool moved = false;

	for (int i = 0; i < MUTATORS; i++)
		seen[i] = plain.count[i].n;
	while (nanotime() < end)
		atomic_pause();
	for (int i = 0; i < MUTATORS; i++) {
		moved |= seen[i] != *(volatile uint64_t *)&plain.count[i].n;
		plain.count[i].n++; // the stopper may write, too
	}
	plain.stops++;
	if (moved)
		atomic_u32_add_relaxed(&plain.moved, 1);
}

static void *stop_and_look(void *arg)
{
	rt_thread_attach(0);
	for (int i = 0; i < EXCLUSIVE_STOPS; i++) {
		if (rt_stop_the_world(RT_STOP_HOST + i % 3) != RT_OK)
			ck_abort();
		look_twice();
		rt_start_the_world(NULL);
	}
	rt_thread_detach();
	return arg;
}

TEST(in_a_stop_no_other_thread_runs)
{
	pthread_t mutators[MUTATORS], stoppers[2];

	rt_blocking_enter();
	for (int i = 0; i < MUTATORS; i++)
		mutators[i] = start_thread(count_plainly, &plain.count[i].n);
	for (int i = 0; i < 2; i++)
		stoppers[i] = start_thread(stop_and_look, NULL);
	for (int i = 0; i < 2; i++)
		join_thread(stoppers[i]);
	atomic_u32_store_release(&plain.end, 1);
	for (int i = 0; i < MUTATORS; i++)
		join_thread(mutators[i]);
	ck_assert_uint_eq(plain.stops, 2 * EXCLUSIVE_STOPS);
	ck_assert_uint_eq(atomic_u32_load_relaxed(&plain.moved), 0);
	for (int i = 0; i < MUTATORS; i++)
		ck_assert_uint_eq(plain.count[i].n % 100,
				  2 * EXCLUSIVE_STOPS % 100);
}

// ---- times ----

static void check_sums(const rt_stop_times *t)
{
	ck_assert_uint_eq(t->total_ns, t->stopping_ns + t->stopped_ns);
	// No thread waited longer than the stop took.
	ck_assert_uint_le(t->stopping_cpu_ns, t->nthreads * t->stopping_ns);
}

// The thread stops late: LATE_NS after all others have stopped.
static void late(struct actor *a)
{
	uint64_t end;

	while (!proc_wanted(a->p) ||
	       atomic_u32_load_acquire(&procs.stop_wait) != 1)
		oscall_yield();
	end = nanotime() + LATE_NS;
	while (nanotime() < end)
		oscall_yield();
}

// The thread stops at once, at its next poll.
static void polling(struct actor *a)
{
	while (atomic_u32_load_acquire(&a->want) < NEXT)
		rt_safepoint();
}

TEST(times_tell_which_thread_was_late, .n = 3)
{
	static struct actor actors[3], sleeper;
	uint64_t before, after;
	rt_stop_times t;

	for (int i = 0; i < 3; i++)
		actor_begin(&actors[i], i == _i ? late : polling, poll);
	actor_begin(&sleeper, in_region, rt_blocking_leave);
	before = nanotime();
	ck_assert_int_eq(stop(), RT_OK);
	sleep_ns(STOPPED_NS);
	ck_assert_int_eq(rt_start_the_world(&t), RT_OK);
	after = nanotime();
	check_sums(&t);
	ck_assert_uint_ge(t.stopping_ns, LATE_NS);
	ck_assert_uint_ge(t.stopped_ns, STOPPED_NS);
	ck_assert_uint_le(t.total_ns, after - before);
	ck_assert_uint_eq(t.nthreads, 5);
	ck_assert_uint_eq(t.slowest, actors[_i].p->id);
	// Main waited from the beginning.
	ck_assert_uint_ge(t.stopping_cpu_ns, LATE_NS);
	// Only main runs when the next stop is requested: no old time counts.
	for (int i = 0; i < 3; i++) {
		actor_tell(&actors[i]);
		await_at_least(&actors[i].at, NEXT);
		await_blocked(actors[i].p);
	}
	ck_assert_int_eq(stop(), RT_OK);
	ck_assert_int_eq(rt_start_the_world(&t), RT_OK);
	check_sums(&t);
	ck_assert_uint_eq(t.nthreads, 5);
	ck_assert_uint_eq(t.slowest, proc_self()->id);
	ck_assert_uint_eq(t.stopping_cpu_ns, t.stopping_ns);
	for (int i = 0; i < 3; i++)
		actor_end(&actors[i]);
	actor_tell(&sleeper);
	actor_end(&sleeper);
}

// A blocked thread does not spend processor time on another thread's stop.
TEST(a_blocked_thread_waits_for_no_stop)
{
	static struct actor slow, sleepers[4];
	rt_stop_times t;

	actor_begin(&slow, late, poll);
	for (int i = 0; i < 4; i++) {
		actor_begin(&sleepers[i], in_region, rt_blocking_leave);
		await_blocked(sleepers[i].p);
	}
	ck_assert_int_eq(stop(), RT_OK);
	ck_assert_int_eq(rt_start_the_world(&t), RT_OK);
	ck_assert_uint_ge(t.stopping_ns, LATE_NS);
	// Main waits from the request on, slow from its own stop on.
	ck_assert_uint_eq(t.stopping_cpu_ns,
			  t.stopping_ns + world.begin.finished -
			      atomic_u64_load_relaxed(&slow.p->stopped_at));
	for (int i = 0; i < 4; i++)
		actor_end(&sleepers[i]);
	actor_end(&slow);
}

// ---- readers without a P ----

static struct {
	atomic_u32 end;
	atomic_u32 reads;
} reader;

static void *read_unattached(void *arg)
{
	uint64_t mallocs = 0;
	rt_memstats m;

	while (!atomic_u32_load_acquire(&reader.end)) {
		uint32_t i = atomic_u32_add_relaxed(&reader.reads, 1);

		if ((i % 2 ? rt_read_memstats(&m)
			   : rt_read_memstats_live(&m)) != RT_OK ||
		    m.mallocs < mallocs ||
		    m.heap_objects != m.mallocs - m.frees)
			ck_abort_msg("read %u", i);
		mallocs = m.mallocs;
	}
	return arg;
}

// Exact readings stop the world without a P.  They and the host's stops exclude
// each other.
TEST(unattached_readers_stop_the_world_between_other_stops)
{
	pthread_t threads[3];
	rt_memstats m;

	for (int i = 0; i < 3; i++)
		threads[i] = start_thread(read_unattached, NULL);
	for (int i = 0; i < 500; i++) {
		uint64_t before;

		for (int k = 0; k < 50; k++)
			rt_alloc_noscan(24);
		if (stop() != RT_OK)
			ck_abort();
		rt_read_memstats_live(&m);
		before = m.mallocs;
		rt_read_memstats(&m);
		if (m.mallocs < before || m.mallocs != 50 * (i + 1u))
			ck_abort_msg("round %d: %llu", i,
				     (unsigned long long)m.mallocs);
		rt_start_the_world(NULL);
	}
	rt_blocking_enter();
	await_at_least(&reader.reads, 20);
	atomic_u32_store_release(&reader.end, 1);
	for (int i = 0; i < 3; i++)
		join_thread(threads[i]);
}

static void *read_live(void *arg)
{
	rt_memstats m;

	while (!atomic_u32_load_acquire(&reader.end)) {
		rt_read_memstats_live(&m);
		if (m.heap_alloc > m.heap_inuse)
			ck_abort_msg("%llu in %llu",
				     (unsigned long long)m.heap_alloc,
				     (unsigned long long)m.heap_inuse);
		atomic_u32_add_relaxed(&reader.reads, 1);
	}
	return arg;
}

// Large objects of whole pages leave no slack: a span that is counted after its
// object, or is gone before it, shows at once.
TEST(a_live_reader_never_finds_more_objects_than_heap)
{
	pthread_t threads[2];

	for (int i = 0; i < 2; i++)
		threads[i] = start_thread(read_live, NULL);
	for (int i = 0; i < (RT_TSAN || RT_ASAN ? 100 : 1000); i++) {
		// The readers keep up: two readings a round on average.
		await_at_least(&reader.reads, 2 * (unsigned)i + 2);
		for (int k = 0; k < 40; k++)
			if (!rt_alloc_noscan_uninit(5 * RT_PAGE_SIZE))
				ck_abort();
		rt_gc();
	}
	atomic_u32_store_release(&reader.end, 1);
	for (int i = 0; i < 2; i++)
		join_thread(threads[i]);
}

// ---- our own bugs ----

TEST(a_stop_that_did_not_stop_all_is_found_out, .exit = DEATH_EXPECTED)
{
	death_expect("stopTheWorld: not stopped (stopwait != 0)");
	atomic_u32_store_relaxed(&procs.stop_wait, 1);
	note_wake(&procs.stopnote);
	proc_wait_all();
}

TEST(a_world_that_runs_is_not_started, .exit = DEATH_EXPECTED)
{
	death_expect("startTheWorld: world not stopped");
	stw_start(proc_self(), NULL);
	stw_release();
}
