// Ps: attach, detach, block, and stop.
#include "runtime/world/proc.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <ucontext.h>

#include "runtime/world/gcstats.h"
#include "runtime/spans/mcache.h"
#include "test/harness/await.h"
#include "test/harness/death.h"
#include "test/harness/fault.h"
#include "test/harness/suite.h"

enum { THREADS = 6 };

static uint32_t attached(void)
{
	return atomic_u32_load_acquire(&procs.attached);
}

// ---- records ----

static struct {
	atomic_u32 here;
	atomic_u32 go;
	uint32_t ids[THREADS];
	pthread_t threads[THREADS];
} crowd;

static void *attach_and_stay(void *arg)
{
	uint32_t *id = arg;

	if (rt_thread_attach(0) != RT_OK)
		return NULL;
	*id = proc_self()->id;
	rt_blocking_enter();
	atomic_u32_add_release(&crowd.here, 1);
	while (!atomic_u32_load_acquire(&crowd.go))
		oscall_yield();
	rt_blocking_leave();
	rt_thread_detach();
	return NULL;
}

static void crowd_come(void)
{
	atomic_u32_store_relaxed(&crowd.here, 0);
	atomic_u32_store_relaxed(&crowd.go, 0);
	for (int i = 0; i < THREADS; i++)
		crowd.threads[i] = start_thread(attach_and_stay, &crowd.ids[i]);
	await_at_least(&crowd.here, THREADS);
}

static void crowd_leave(void)
{
	atomic_u32_store_release(&crowd.go, 1);
	for (int i = 0; i < THREADS; i++)
		join_thread(crowd.threads[i]);
}

GROUP(proc, .setup = heap_begin, .timeout = 60);

// Ids have no gaps, and the record of a thread that is gone serves another.
// Six threads at a time need six records beside the main thread's, however
// often they come.
TEST(records_are_numbered_and_used_again)
{
	for (int round = 0; round < 5; round++) {
		uint32_t seen = 0;

		crowd_come();
		ck_assert_uint_eq(attached(), THREADS + 1);
		for (int i = 0; i < THREADS; i++)
			seen |= 1u << crowd.ids[i];
		ck_assert_uint_eq(seen, (1u << (THREADS + 1)) - 2);
		crowd_leave();
		ck_assert_uint_eq(attached(), 1);
	}
	ck_assert_uint_eq(procs.made, THREADS + 1);
}

// A detached thread frees its cache; its record stays, and is free.
TEST(detaching_leaves_nothing_but_the_record)
{
	uint64_t inuse = gauge_load(&gauges.mcache_inuse);
	unsigned nfree = 0;

	crowd_come();
	ck_assert_uint_eq(gauge_load(&gauges.mcache_inuse),
			  (THREADS + 1) * inuse);
	crowd_leave();
	ck_assert_uint_eq(gauge_load(&gauges.mcache_inuse), inuse);
	ck_assert_ptr_eq(proc_first(), proc_self());
	ck_assert_ptr_null(proc_next(proc_self()));
	ck_assert_uint_eq(procs.count, 1);
	for (struct rt_proc *p = procs.free; p; p = p->next_free) {
		nfree++;
		ck_assert_ptr_null(atomic_ptr_load_relaxed(&p->thread));
		ck_assert_uint_eq(atomic_u32_load_relaxed(&p->state),
				  PROC_FREE);
		ck_assert_uint_eq(atomic_u32_load_relaxed(&p->stats_seq) % 2,
				  0);
	}
	ck_assert_uint_eq(nfree, THREADS);
}

// in_list counts the Ps that a stop visits, and verifies the links back.
static uint32_t in_list(void)
{
	const struct rt_proc *before = NULL;
	uint32_t n = 0;

	for (struct rt_proc *p = proc_first(); p; p = proc_next(p)) {
		ck_assert_ptr_eq(p->prev, before);
		ck_assert(!proc_is_free(p));
		before = p;
		n++;
	}
	ck_assert_uint_eq(n, procs.count);
	return n;
}

static void *attach_until_told(void *arg)
{
	struct {
		atomic_u32 here, go;
	} *turn = arg;

	rt_thread_attach(0);
	rt_blocking_enter();
	atomic_u32_store_release(&turn->here, 1);
	await_at_least(&turn->go, 1);
	rt_blocking_leave();
	rt_thread_detach();
	return NULL;
}

// A stop walks over the threads that exist, whichever have left: the newest,
// the oldest, or one between others.
TEST(a_stop_looks_at_attached_threads_only, .n = 3)
{
	static const int orders[][3] = {{0, 1, 2}, {2, 1, 0}, {1, 0, 2}};
	static struct {
		atomic_u32 here, go;
	} turns[3];
	pthread_t threads[3];

	for (uint32_t i = 0; i < 3; i++) {
		threads[i] = start_thread(attach_until_told, &turns[i]);
		await_at_least(&turns[i].here, 1);
		ck_assert_uint_eq(in_list(), i + 2);
	}
	for (uint32_t i = 0; i < 3; i++) {
		int leaver = orders[_i][i];

		atomic_u32_store_release(&turns[leaver].go, 1);
		join_beside(threads[leaver]);
		ck_assert_uint_eq(in_list(), 3 - i);
	}
}

// ---- what is refused ----

TEST(attaching_is_refused_twice_and_with_unknown_flags)
{
	char here;

	ck_assert_int_eq(rt_thread_attach(0), RT_ESTATE);
	ck_assert_int_eq(rt_thread_attach(4), RT_EINVAL);
	ck_assert_int_eq(rt_thread_attach_stack(NULL, &here, 0), RT_EINVAL);
	ck_assert_int_eq(rt_thread_attach_stack(&here, &here, 0), RT_EINVAL);
	ck_assert_int_eq(rt_thread_attach_stack(&procs, &procs + 1, 0),
			 RT_EINVAL);
	ck_assert_int_eq(rt_thread_detach(), RT_OK);
	ck_assert_int_eq(rt_thread_detach(), RT_EPERM);
	ck_assert_ptr_null(rt_thread_self());
	ck_assert_uint_eq(attached(), 0);
	ck_assert_int_eq(rt_thread_attach(RT_THREAD_COOPERATIVE), RT_OK);
	ck_assert_ptr_nonnull(rt_alloc(64));
}

TEST(blocking_twice_throws, .exit = DEATH_EXPECTED)
{
	death_expect("rtheap: fatal: proc_block: not running");
	proc_block(proc_self());
	proc_block(proc_self());
}

// ---- exits ----

static struct {
	atomic_u32 reached;
	atomic_u32 go;
} exits;

static void *exit_attached(void *arg)
{
	(void)arg;
	if (rt_thread_attach(0) == RT_OK && rt_alloc(100))
		atomic_u32_add_release(&exits.reached, 1);
	return NULL;
}

static void *exit_in_region(void *arg)
{
	exit_attached(arg);
	rt_blocking_enter();
	pthread_exit(NULL);
}

static void *exit_as_stopper(void *arg)
{
	exit_attached(arg);
	rt_stop_the_world(RT_STOP_HOST);
	return NULL;
}

static void *(*const exit_ways[])(void *) = {exit_attached, exit_in_region,
					     exit_as_stopper};

// If a thread that exits were not detached, the next stop would wait for it.
TEST(a_thread_that_exits_is_detached, .n = RT_ARRAY_LEN(exit_ways))
{
	uint64_t inuse = gauge_load(&gauges.mcache_inuse);
	rt_memstats m;

	for (unsigned i = 1; i <= 20; i++) {
		run_beside(exit_ways[_i], NULL);
		ck_assert_uint_eq(atomic_u32_load_acquire(&exits.reached), i);
		ck_assert_uint_eq(attached(), 1);
		ck_assert_int_eq(rt_world_stopped(), 0);
		ck_assert_uint_eq(gauge_load(&gauges.mcache_inuse), inuse);
		ck_assert_int_eq(rt_gc(), RT_OK);
		ck_assert_int_eq(rt_read_memstats(&m), RT_OK);
	}
}

static void *attach_wait_exit(void *arg)
{
	exit_attached(arg);
	rt_blocking_enter();
	while (!atomic_u32_load_acquire(&exits.go))
		oscall_yield();
	return NULL;
}

// A refused rt_fini does nothing, not even for a moment: a thread that exits
// meanwhile finds the heap and detaches.
TEST(a_refused_end_disturbs_no_thread)
{
	pthread_t threads[16];
	rt_memstats m;

	crowd_come(); // and stays, so that each end is refused
	for (int i = 0; i < 16; i++)
		threads[i] = start_thread(attach_wait_exit, NULL);
	await_at_least(&exits.reached, 16);
	atomic_u32_store_release(&exits.go, 1);
	while (attached() > THREADS + 1)
		if (rt_fini() != RT_EBUSY)
			ck_abort_msg("the heap ended under a thread");
	for (int i = 0; i < 16; i++)
		join_thread(threads[i]);
	crowd_leave();
	ck_assert_uint_eq(attached(), 1);
	ck_assert_int_eq(rt_read_memstats(&m), RT_OK);
}

// ---- errno ----

// The errno that a call of the host has left.  The host reads it when the
// thread runs again.
enum { OF_THE_HOST = 4711 };

static atomic_u32 stopped, started;

static void poll_until_started(void)
{
	while (!atomic_u32_load_acquire(&started))
		rt_safepoint();
}

static void leave_while_stopped(void)
{
	await_at_least(&stopped, 1);
	rt_blocking_leave();
}

static void (*const waits[])(void) = {leave_while_stopped, poll_until_started};

// stop_until_a_thread_waits stops the world until a thread has tried to sleep.
// All sleeps are refused, and so counted.
static void *stop_until_a_thread_waits(void *arg)
{
	uint64_t before;

	rt_thread_attach(0);
	rt_stop_the_world(RT_STOP_HOST);
	before = fault_failed(OSCALL_FUTEX_WAIT);
	atomic_u32_store_release(&stopped, 1);
	while (fault_failed(OSCALL_FUTEX_WAIT) == before)
		oscall_yield();
	atomic_u32_store_release(&started, 1);
	rt_start_the_world(NULL);
	rt_thread_detach();
	return arg;
}

TEST(waiting_for_a_start_keeps_errno, .n = RT_ARRAY_LEN(waits))
{
	pthread_t thread;
	int after;

	fault_fail(OSCALL_FUTEX_WAIT, 1, UINT64_MAX, ENOSYS);
	if (waits[_i] == leave_while_stopped)
		rt_blocking_enter();
	thread = start_thread(stop_until_a_thread_waits, NULL);
	errno = OF_THE_HOST;
	waits[_i]();
	after = errno;
	ck_assert_int_eq(after, OF_THE_HOST);
	join_beside(thread);
	fault_fail(OSCALL_FUTEX_WAIT, 1, 0, 0);
}

// ---- CPU time ----

enum { BURN_NS = 10 * 1000 * 1000 };

static void *burn(void *attached)
{
	uint64_t end = oscall_process_cpu() + BURN_NS;

	if (attached)
		rt_thread_attach(0);
	while (oscall_process_cpu() < end)
		rt_safepoint();
	if (attached)
		rt_thread_detach();
	return NULL;
}

static uint64_t stopped_cpu(void)
{
	uint64_t cpu;

	rt_stop_the_world(RT_STOP_HOST);
	cpu = gcstats_cpu();
	rt_start_the_world(NULL);
	return cpu;
}

// The CPU time of threads that are gone is not lost, whether they were attached
// or not.
TEST(the_time_of_gone_threads_counts, .n = 2)
{
	uint64_t before = stopped_cpu();

	run_beside(burn, _i ? &procs : NULL);
	ck_assert_uint_ge(stopped_cpu(), before + BURN_NS);
}

static void *wait_in_region(void *arg)
{
	atomic_u32 *want = arg;

	rt_thread_attach(0);
	rt_blocking_enter();
	atomic_u32_add_release(&crowd.here, 1);
	while (!atomic_u32_load_acquire(want)) // reads no clock
		oscall_yield();
	rt_blocking_leave();
	rt_thread_detach();
	return NULL;
}

static uint64_t clocks_of_a_collection(void)
{
	must(rt_gc()); // the first one may make a thread
	fault_fail(OSCALL_CLOCK, 1, 0, 0); // counts from now on
	ck_assert_int_eq(rt_gc(), RT_OK);
	return fault_count(OSCALL_CLOCK);
}

// A pause asks for the time as often with a crowd as without one.
TEST(a_collection_reads_as_many_clocks_for_any_crowd)
{
	static atomic_u32 want;
	uint64_t alone = clocks_of_a_collection();
	pthread_t threads[THREADS];

	for (uint32_t i = 0; i < THREADS; i++) {
		threads[i] = start_thread(wait_in_region, &want);
		await_at_least(&crowd.here, i + 1);
	}
	ck_assert_uint_eq(clocks_of_a_collection(), alone);
	atomic_u32_store_release(&want, 1);
	for (int i = 0; i < THREADS; i++)
		join_beside(threads[i]);
}

// ---- a new heap ----

static void *use_and_detach(void *arg)
{
	rt_thread_attach(0);
	for (int i = 0; i < 1000; i++)
		rt_alloc_noscan((size_t)(i % 700) + 1);
	rt_gc();
	rt_thread_detach();
	return arg;
}

GROUP(again, .timeout = 60);

TEST(a_heap_can_end_and_begin_again)
{
	for (int i = 0; i < 20; i++) {
		rt_memstats m;

		heap_begin();
		ck_assert_int_eq(rt_init(NULL), RT_ESTATE);
		ck_assert_int_eq(rt_read_memstats_live(&m), RT_OK);
		ck_assert_uint_eq(m.mallocs, 0);
		ck_assert_uint_eq(m.num_gc, 0);
		ck_assert_uint_eq(m.pause_total_ns, 0);
		ck_assert_uint_eq(m.heap_sys, 0);
		ck_assert_uint_eq(proc_self()->id, 0);
		run_beside(use_and_detach, NULL);
		heap_live();
		ck_assert_int_eq(rt_fini(), RT_OK);
		ck_assert_int_eq(rt_fini(), RT_ESTATE);
		ck_assert_int_eq(rt_gc(), RT_ESTATE);
		ck_assert_int_eq(rt_thread_attach(0), RT_ESTATE);
		ck_assert_ptr_null(rt_thread_self());
		ck_assert_ptr_null(rt_alloc(16));
	}
}

// ---- pointers in registers and on the stack ----

#if defined(__x86_64__)
// hold_<place>(hidden) brings the pointer whose complement is hidden into one
// register that calls preserve, or into one word of the stack, and nowhere
// else.  Then it calls the three functions of hold_calls, and returns the
// complement of what is there then.
typedef uintptr_t hold_fn(uintptr_t hidden);
typedef void hold_step(void);

hold_step *hold_calls[3] __attribute__((visibility("hidden")));

// Three calls with a stack aligned to 16.
#define HOLD_CALLS                                                             \
	"\tcall *hold_calls(%rip)\n"                                           \
	"\tcall *8+hold_calls(%rip)\n"                                         \
	"\tcall *16+hold_calls(%rip)\n"

#define HOLD_IN_REGISTER(reg)                                                  \
	hold_fn hold_##reg __attribute__((visibility("hidden")));              \
	__asm__(".pushsection .text\n"                                         \
		".globl hold_" #reg "\n"                                       \
		".hidden hold_" #reg "\n"                                      \
		"hold_" #reg ":\n"                                             \
		"\tpush %" #reg "\n"                                           \
		"\tmov %rdi, %" #reg "\n"                                      \
		"\tnot %" #reg "\n" HOLD_CALLS "\tmov %" #reg ", %rax\n"       \
		"\tnot %rax\n"                                                 \
		"\tpop %" #reg "\n"                                            \
		"\tret\n"                                                      \
		".popsection\n")

HOLD_IN_REGISTER(rbx);
HOLD_IN_REGISTER(rbp);
HOLD_IN_REGISTER(r12);
HOLD_IN_REGISTER(r13);
HOLD_IN_REGISTER(r14);
HOLD_IN_REGISTER(r15);

hold_fn hold_stack __attribute__((visibility("hidden")));
__asm__(".pushsection .text\n"
	".globl hold_stack\n"
	".hidden hold_stack\n"
	"hold_stack:\n"
	"	push %rdi\n"
	"	notq (%rsp)\n" HOLD_CALLS "	notq (%rsp)\n"
	"	pop %rax\n"
	"	ret\n"
	".popsection\n");

static hold_fn *const hold_places[] = {hold_rbx, hold_rbp, hold_r12,  hold_r13,
				       hold_r14, hold_r15, hold_stack};

enum { HOLD_SIZE = 1700, HOLD_MAGIC = 0x6c697665 };

static struct {
	uintptr_t hidden;     // complement of the object's address
	atomic_u32 wanted;    // collections by the other thread
	atomic_u32 collected; // so far
	atomic_u32 end;
	pthread_t collector;
} hold;

// The object is made by a thread that is gone before the first collection,
// so that no stack has a copy of its address.
static void *make_object(void *arg)
{
	rt_thread_attach(0);
	hold.hidden = ~(uintptr_t)rt_alloc_noscan(HOLD_SIZE);
	*(uint64_t *)~hold.hidden = HOLD_MAGIC;
	rt_thread_detach();
	return arg;
}

// alive tells whether the object is still the one that was made.  Its memory
// may be part of another object by now.
RT_NOINLINE
static bool alive(void)
{
	uint64_t *obj = (uint64_t *)~hold.hidden;

	return rt_base(obj) == obj && rt_size(obj) == rt_good_size(HOLD_SIZE) &&
	       *obj == HOLD_MAGIC;
}

static void *collect_when_wanted(void *arg)
{
	uint32_t done = 0;

	rt_thread_attach(RT_THREAD_EXACT);
	while (!atomic_u32_load_acquire(&hold.end)) {
		if (atomic_u32_load_acquire(&hold.wanted) == done) {
			rt_safepoint();
			continue;
		}
		rt_gc();
		atomic_u32_store_release(&hold.collected, ++done);
	}
	rt_thread_detach();
	return arg;
}

static void hold_begin(void)
{
	heap_begin();
	run_beside(make_object, NULL);
	hold.collector = start_thread(collect_when_wanted, NULL);
}

static void hold_end(void)
{
	atomic_u32_store_release(&hold.end, 1);
	join_beside(hold.collector);
}

static void nothing(void)
{
}

static void enter(void)
{
	if (rt_blocking_enter() != RT_OK)
		ck_abort();
}

static void leave(void)
{
	if (rt_blocking_leave() != RT_OK)
		ck_abort();
}

// stir puts values of its own into every preserved register.  So the caller's
// values are pushed, if at all, below the point where they were saved.
static void stir(void)
{
	__asm__ volatile("xor %%ebx, %%ebx\n\txor %%r12d, %%r12d\n\t"
			 "xor %%r13d, %%r13d\n\txor %%r14d, %%r14d\n\t"
			 "xor %%r15d, %%r15d"
			 :
			 :
			 : "rbx", "r12", "r13", "r14", "r15", "memory");
}

static void other_collects(void)
{
	atomic_u32_add_release(&hold.wanted, 1);
	stir();
	await_at_least(&hold.collected, 1);
}

static void *other_collects_called(void *arg)
{
	other_collects();
	return arg;
}

static void call_blocking(void)
{
	rt_call_blocking(other_collects_called, NULL);
}

static void poll_meanwhile(void)
{
	atomic_u32_add_release(&hold.wanted, 1);
	while (atomic_u32_load_acquire(&hold.collected) == 0)
		rt_safepoint();
}

// want_a_stop returns when the other thread waits for this one to stop.
static void want_a_stop(void)
{
	atomic_u32_add_release(&hold.wanted, 1);
	while (!__atomic_load_n(&rt_thread_self()->pending, __ATOMIC_RELAXED))
		oscall_yield();
}

static void collect_here(void)
{
	if (rt_gc() != RT_OK)
		ck_abort();
}

// allocate_until_collected allocates until an allocation has found a collection
// due.
static void allocate_until_collected(void)
{
	rt_memstats m;

	if (rt_set_gc_percent(1, NULL) != RT_OK)
		ck_abort();
	do {
		for (int i = 0; i < 64; i++)
			rt_alloc_noscan(40000);
		rt_read_memstats_live(&m);
	} while (m.num_gc == 0);
}

// allocate_meanwhile allocates while another thread collects.
static void allocate_meanwhile(void)
{
	atomic_u32_add_release(&hold.wanted, 1);
	while (atomic_u32_load_acquire(&hold.collected) == 0)
		rt_alloc_noscan(48);
}

// The collection of the other thread comes first.  This thread waits for its
// turn to stop the world.
static void stop_behind_a_collection(void)
{
	atomic_u32_add_release(&hold.wanted, 1);
	while (atomic_u32_load_acquire(&hold.collected) == 0) {
		rt_stop_the_world(RT_STOP_HOST);
		rt_start_the_world(NULL);
	}
}

static void read_meanwhile(void)
{
	rt_memstats m;

	atomic_u32_add_release(&hold.wanted, 1);
	while (atomic_u32_load_acquire(&hold.collected) == 0)
		rt_read_memstats(&m);
}

static hold_step *const hold_scripts[][3] = {
    {enter, other_collects, leave},
    {call_blocking, nothing, nothing},
    {poll_meanwhile, nothing, nothing},
    {want_a_stop, rt_safepoint, nothing},
    {collect_here, nothing, nothing},
    {allocate_until_collected, nothing, nothing},
    {allocate_meanwhile, nothing, nothing},
    {stop_behind_a_collection, nothing, nothing},
    {read_meanwhile, nothing, nothing},
};

enum {
	PLACES = RT_ARRAY_LEN(hold_places),
	HOLDS = PLACES * RT_ARRAY_LEN(hold_scripts),
};

// The functions of a script are C, so any of them may push a caller's register
// before it calls the library.  The library's own functions are called instead
// of enter and leave; rt_safepoint is one already.
static uintptr_t hold_run(int i, uintptr_t hidden)
{
	memcpy(hold_calls, hold_scripts[i / PLACES], sizeof hold_calls);
	if (hold_calls[0] == enter) {
		hold_calls[0] = (hold_step *)(void *)rt_blocking_enter;
		hold_calls[2] = (hold_step *)(void *)rt_blocking_leave;
	}
	return hold_places[i % PLACES](hidden);
}

GROUP(hold, .timeout = 60);

TEST(an_object_held_in_one_place_lives, .n = HOLDS)
{
	hold_begin();
	ck_assert(alive());
	ck_assert_uint_eq(hold_run(_i, hold.hidden), hold.hidden);
	ck_assert_msg(alive(), "place %d script %d", _i % PLACES, _i / PLACES);
	hold_end();
}

// If nothing holds the pointer, the object dies.  Otherwise the test above
// would show nothing.
TEST(an_object_held_nowhere_dies, .n = HOLDS)
{
	hold_begin();
	hold_run(_i, ~(uintptr_t)0);
	ck_assert_msg(!alive(), "place %d script %d", _i % PLACES, _i / PLACES);
	hold_end();
}

static void *hold_attached(void *arg)
{
	const int *i = arg;

	if (rt_thread_attach(RT_THREAD_EXACT) != RT_OK)
		ck_abort();
	hold_run(*i, hold.hidden);
	rt_thread_detach();
	return NULL;
}

TEST(an_exact_thread_holds_nothing, .n = HOLDS)
{
	hold_begin();
	run_beside(hold_attached, &_i);
	ck_assert(!alive());
	hold_end();
}

// ---- a stack that the system does not know ----

enum { OWN_STACK = 256 << 10 };

static struct {
	ucontext_t home, away;
	char *stack;
	int attach; // result
	int script;
	uintptr_t hidden;
	uintptr_t found;
} own;

static void run_on_own_stack(void)
{
	own.attach =
	    rt_thread_attach_stack(own.stack, own.stack + OWN_STACK, 0);
	own.found = hold_run(own.script, own.hidden);
	rt_thread_detach();
}

static void *switch_stacks(void *arg)
{
	own.stack = mmap(NULL, OWN_STACK, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (own.stack == MAP_FAILED || getcontext(&own.away) != 0)
		ck_abort();
	own.away.uc_stack.ss_sp = own.stack;
	own.away.uc_stack.ss_size = OWN_STACK;
	own.away.uc_link = &own.home;
	makecontext(&own.away, run_on_own_stack, 0);
	swapcontext(&own.home, &own.away);
	return arg;
}

static void hold_on_own_stack(int script, uintptr_t hidden)
{
	own.script = script;
	own.hidden = hidden;
	run_beside(switch_stacks, NULL);
	ck_assert_int_eq(own.attach, RT_OK);
	ck_assert_uint_eq(own.found, hidden);
}

// The sanitizers would have to be told of every change of stacks.
TEST(an_own_stack_is_scanned, .n = HOLDS, .unless = SUITE_SANITIZED)
{
	hold_begin();
	hold_on_own_stack(_i, hold.hidden);
	ck_assert(alive());
	hold_end();
}

// The sanitizers would have to be told of every change of stacks.
TEST(an_own_stack_holds_nothing_else, .n = HOLDS, .unless = SUITE_SANITIZED)
{
	hold_begin();
	hold_on_own_stack(_i, ~(uintptr_t)0);
	ck_assert(!alive());
	hold_end();
}

static char away_stack[OWN_STACK];

static void collect_away(void)
{
	own.attach = rt_gc();
}

// The main thread collects on another stack than it attached with.  The stack
// that it attached with may still grow, here without a limit.  The part that is
// not mapped yet holds nothing, and reading it would fault.
//
// The sanitizers would have to be told of every change of stacks.
TEST(a_stack_that_is_left_is_scanned_as_far_as_it_is_mapped,
     .unless = SUITE_SANITIZED)
{
	struct rlimit limit;
	void *volatile kept;

	ck_assert_int_eq(getrlimit(RLIMIT_STACK, &limit), 0);
	limit.rlim_cur = limit.rlim_max;
	ck_assert_int_eq(setrlimit(RLIMIT_STACK, &limit), 0);
	heap_begin();
	kept = rt_alloc_noscan(HOLD_SIZE);
	ck_assert_int_eq(getcontext(&own.away), 0);
	own.away.uc_stack.ss_sp = away_stack;
	own.away.uc_stack.ss_size = sizeof away_stack;
	own.away.uc_link = &own.home;
	makecontext(&own.away, collect_away, 0);
	own.attach = RT_ESTATE;
	ck_assert_int_eq(swapcontext(&own.home, &own.away), 0);
	ck_assert_int_eq(own.attach, RT_OK);
	ck_assert_int_eq(rt_is_heap(kept), 1);
}
#endif

// ---- the suite ----
