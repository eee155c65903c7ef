// Stacks of the host that threads run on: their words above the stack pointer
// are roots.
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "gc/mark/stacks.h"
#include "test/harness/fault.h"
#include "test/harness/missed.h"
#include "test/harness/process.h"
#include "test/whole/stack.h"
#include "test/harness/thread.h"

// begin makes a heap.  The main thread's stack is a root.
static void begin(void)
{
	heap_start(checked());
}

// hidden_new returns the complement of a new object's address, which refers to
// nothing.
static RT_NOINLINE uintptr_t hidden_new(void)
{
	return ~(uintptr_t)rt_alloc_noscan(1000);
}

// A value that refers to an object has the bits of box as well.
static const uintptr_t box = UINT64_C(0xfff9) << 48;
static const rt_value_format boxes =
    RT_FORMAT_NAN_BOX(UINT64_C(0xfff9) << 48, (UINT64_C(0xfffa) << 48) - 1);

// unbox returns the address in a value; an address itself stays as it is.
static void *unbox(void *value)
{
	return (void *)((uintptr_t)value & ~box);
}

static RT_NOINLINE bool alive(uintptr_t hidden)
{
	return rt_is_heap(unbox((void *)~hidden));
}

// wipe overwrites the stack below the caller.
static RT_NOINLINE void wipe(void)
{
	volatile char bytes[16 << 10];

	for (unsigned i = 0; i < sizeof bytes; i++)
		bytes[i] = 0;
}

// own_register registers the caller's own stack.  It is bounded by the stack
// pointer that is saved while the caller runs f.
static rt_stack *own_register(struct fiber *f)
{
	rt_stack_desc d;

	rt_stack_desc_init(&d);
	d.sp = &f->resumer;
	d.flags = RT_STACK_THREAD;
	return heap_stack(&d);
}

// ---- a thread that collects on a fiber ----

// The job of a fiber: it loads the hidden address into its frame, and collects.
struct job {
	struct fiber fiber;
	rt_stack *stack;
	uintptr_t hidden;
	int result;
	bool kept;
	atomic_u32 running;
	atomic_u32 *over;
};

static void collect(struct fiber *f)
{
	struct job *j = f->arg;
	void *volatile held = (void *)~j->hidden;

	j->result = rt_gc();
	j->kept = rt_is_heap(held);
}

static void job_make(struct job *j, void (*fn)(struct fiber *))
{
	j->hidden = hidden_new();
	fiber_make(&j->fiber, STACK, fn, j);
}

static void job_done(struct job *j)
{
	ck_assert(j->fiber.done);
	must(j->result);
	ck_assert(j->kept);
	if (j->stack)
		must(rt_stack_unregister(j->stack));
	fiber_free(&j->fiber);
}

GROUP(collects, .setup = begin, .timeout = 60);

// The fiber's stack is registered, owned or unknown.  In half of the runs the
// thread's own stack is registered as well.
TEST(the_stack_that_a_thread_runs_on_is_a_root, .n = 6)
{
	struct job j = {.kept = false};
	uintptr_t hidden = hidden_new();
	void *volatile held = (void *)~hidden;
	rt_stack *own = NULL;

	job_make(&j, collect);
	if (_i % 3 != 2)
		j.stack =
		    fiber_register(&j.fiber, _i % 3 == 1 ? RT_STACK_OWNED : 0);
	if (_i / 3 == 1) {
		own = own_register(&j.fiber);
		ck_assert_ptr_nonnull(own);
	}
	fiber_resume(&j.fiber);
	ck_assert(rt_is_heap(held));
	job_done(&j);
	if (own)
		must(rt_stack_unregister(own));
	ck_assert_uint_eq(warnings, _i % 3 == 2);
	heap_healthy();
}

// leave_below leaves references below the frame of its caller.
static RT_NOINLINE void leave_below(uintptr_t hidden)
{
	void *volatile below[2048];

	for (unsigned i = 0; i < 1024; i++)
		below[i] = (void *)~hidden;
	ck_assert(alive(~(uintptr_t)below[100]));
	wipe();
}

// Memory below the saved stack pointer of a suspended thread is not scanned.
TEST(an_own_stack_that_is_registered_is_bounded)
{
	struct job j = {.kept = false};
	uintptr_t hidden = hidden_new();
	uint64_t bounded;

	job_make(&j, collect);
	j.stack = fiber_register(&j.fiber, 0);
	ck_assert_ptr_nonnull(own_register(&j.fiber));
	ck_assert_ptr_null(own_register(&j.fiber)); // it is registered
	leave_below(hidden);
	fiber_resume(&j.fiber);
	ck_assert(!alive(hidden));
	bounded = heap_metric("/gc/scan/stack:bytes");
	ck_assert_uint_lt(bounded, STACK);
	must(rt_gc());
	job_done(&j);
}

// leave_at stores the address of a hidden object in *word, and nowhere else.
static RT_NOINLINE void leave_at(uintptr_t *word, uintptr_t hidden)
{
	*word = ~hidden;
	wipe();
}

// On a running stack each word above the stack pointer counts, and no word
// below.
TEST(a_running_stack_is_bounded_by_the_stack_pointer)
{
	struct job j = {.kept = false};
	uintptr_t hidden;

	job_make(&j, collect);
	hidden = hidden_new();
	j.stack = fiber_register(&j.fiber, 0);
	leave_at((uintptr_t *)j.fiber.lo + 10, hidden);
	fiber_resume(&j.fiber);
	ck_assert(!alive(hidden));
	job_done(&j);
}

static void change(struct fiber *f)
{
	struct job *j = f->arg;

	ck_assert_int_eq(rt_stack_unregister(j->stack), RT_EBUSY);
	ck_assert_int_eq(rt_stack_move(j->stack, f->lo, f->hi), RT_EBUSY);
	collect(f);
}

TEST(a_stack_is_not_unregistered_by_a_thread_that_runs_on_it)
{
	struct job j = {.kept = false};

	job_make(&j, change);
	j.stack = fiber_register(&j.fiber, 0);
	fiber_resume(&j.fiber);
	job_done(&j);
}

static rt_stack *outer;

static void change_outer(struct fiber *f)
{
	struct job *j = f->arg;

	must(rt_stack_move(outer, f->lo, f->hi));
	ck_assert_int_eq(rt_stack_move(j->stack, f->lo, f->hi), RT_EBUSY);
	must(rt_stack_unregister(outer));
	ck_assert_int_eq(rt_stack_unregister(j->stack), RT_EBUSY);
	collect(f);
}

// A thread that runs on a stack inside another does not run on the outer one.
TEST(a_stack_around_the_one_that_a_thread_runs_on_may_change, .n = 2)
{
	struct job j = {.kept = false};
	rt_stack_desc d;

	job_make(&j, change_outer);
	if (_i)
		outer = fiber_register(&j.fiber, 0);
	d = fiber_desc(&j.fiber, 0);
	d.lo = j.fiber.lo + STACK / 2;
	j.stack = heap_stack(&d);
	if (!_i)
		outer = fiber_register(&j.fiber, 0);
	fiber_resume(&j.fiber);
	job_done(&j);
	ck_assert_uint_eq(warnings, 0);
}

TEST(an_own_stack_may_be_unregistered_and_not_moved)
{
	struct job j = {.kept = false};
	rt_stack *own;

	job_make(&j, collect);
	own = own_register(&j.fiber);
	ck_assert_int_eq(rt_stack_move(own, j.fiber.lo, j.fiber.hi), RT_EINVAL);
	must(rt_stack_unregister(own));
	ck_assert_int_eq(rt_stack_unregister(own), RT_EINVAL);
	own = own_register(&j.fiber);
	ck_assert_ptr_nonnull(own);
	must(rt_thread_detach());
	must(rt_thread_attach(0));
	ck_assert_uint_eq(stacks_count(), 0);
	ck_assert_ptr_nonnull(own_register(&j.fiber));
	fiber_free(&j.fiber);
}

// A stack inside another: the innermost one counts as running.
TEST(a_stack_may_lie_in_the_frame_of_a_thread, .n = 2)
{
	static struct job j;
	_Alignas(4096) char inner[STACK];
	uintptr_t hidden = hidden_new();
	void *volatile held = (void *)~hidden;
	struct fiber *f = &j.fiber;

	job_make(&j, collect);
	memcpy(inner + STACK - 4096, f->hi - 4096, 4096);
	f->sp = inner + STACK - (f->hi - (char *)f->sp);
	f->lo = inner;
	f->hi = inner + STACK;
	j.stack = fiber_register(f, 0);
	if (_i)
		ck_assert_ptr_nonnull(own_register(f));
	fiber_resume(f);
	ck_assert(rt_is_heap(held));
	ck_assert(f->done && j.kept);
	ck_assert_uint_eq(warnings, 0);
}

// ---- threads with exact roots ----

static void yield_and_collect(struct fiber *f)
{
	struct job *j = f->arg;
	void *volatile held = (void *)~j->hidden;

	fiber_yield(f);
	j->kept = rt_is_heap(held);
	j->result = rt_gc();
}

TEST(an_exact_thread_has_no_stack_that_is_scanned)
{
	struct job j = {.kept = false};

	must(rt_fini());
	begin_exact();
	job_make(&j, yield_and_collect);
	j.stack = fiber_register(&j.fiber, 0);
	ck_assert_ptr_null(own_register(&j.fiber));
	fiber_resume(&j.fiber);
	must(rt_gc()); // it is suspended
	fiber_resume(&j.fiber);
	ck_assert(j.kept);
	ck_assert(!alive(j.hidden));
	job_done(&j);
	ck_assert_uint_eq(warnings, 0);
}

// ---- stacks that are not known ----

TEST(the_host_is_told_once_for_each_thread, .n = 2)
{
	for (unsigned i = 0; i < 3; i++) {
		struct job j = {.kept = false};
		uintptr_t hidden = hidden_new();
		void *volatile held = (void *)~hidden;

		if (_i == 1)
			fault_fail(OSCALL_FILE, 1, UINT64_MAX, EACCES);
		job_make(&j, collect);
		fiber_resume(&j.fiber);
		ck_assert(rt_is_heap(held));
		job_done(&j);
		ck_assert_uint_eq(warnings, 1);
		ck_assert_ptr_nonnull(strstr(warning, "rt_stack_register"));
	}
	must(rt_thread_detach());
	must(rt_thread_attach(0));
	must(rt_gc());
	ck_assert_uint_eq(warnings, 1);
}

// ---- bounds that the host sets ----

TEST(a_host_may_set_the_bounds_itself)
{
	struct job j = {.kept = false};
	void *lo, *hi, *lo2, *hi2;

	job_make(&j, collect);
	must(rt_thread_stack(rt_thread_self(), &lo, &hi));
	ck_assert(lo < (void *)&lo && hi > (void *)&lo);
	must(rt_thread_set_stack(j.fiber.lo, j.fiber.hi));
	must(rt_thread_stack(rt_thread_self(), &lo2, &hi2));
	ck_assert_ptr_eq(lo2, j.fiber.lo);
	ck_assert_ptr_eq(hi2, j.fiber.hi);
	fiber_resume(&j.fiber);
	must(rt_thread_set_stack(lo, hi));
	must(rt_gc());
	ck_assert_uint_eq(warnings, 0);
	job_done(&j);
	ck_assert_int_eq(rt_thread_set_stack(hi, lo), RT_EINVAL);
	ck_assert_int_eq(rt_thread_set_stack(NULL, lo), RT_EINVAL);
	ck_assert_int_eq(rt_thread_stack(NULL, &lo, &hi), RT_EINVAL);
	ck_assert_int_eq(rt_thread_stack(rt_thread_self(), NULL, &hi),
			 RT_EINVAL);
	ck_assert_int_eq(rt_thread_set_stack_of(rt_thread_self(), lo, hi),
			 RT_EPERM);
}

static RT_NOINLINE void collect_far_below(void)
{
	volatile char frames[4 * STACK];
	void *volatile held = (void *)~hidden_new();

	frames[0] = 0;
	must(rt_gc());
	ck_assert(rt_is_heap(held) && frames[0] == 0);
}

// The main thread comes back to its own stack, which grows beyond the bounds
// that the host tells.
TEST(a_host_may_set_the_bounds_of_a_stack_that_grows)
{
	char *here = (char *)base_align_down((uintptr_t)&here, 4096);
	struct fiber f;
	void *lo, *hi;

	must(rt_thread_stack(rt_thread_self(), &lo, &hi));
	fiber_make(&f, STACK, collect, NULL);
	must(rt_thread_set_stack(f.lo, f.hi));
	must(rt_thread_set_stack(here - STACK, hi));
	collect_far_below();
	ck_assert_uint_eq(warnings, 0);
	fiber_free(&f);
}

TEST(bounds_that_are_wrong_are_found_in_a_collection)
{
	uintptr_t hidden = hidden_new();
	void *volatile held = (void *)~hidden;
	static char elsewhere[4096];

	must(rt_thread_set_stack(elsewhere, elsewhere + sizeof elsewhere));
	must(rt_gc());
	ck_assert(rt_is_heap(held));
	ck_assert_uint_eq(warnings, 1);
}

TEST(a_registered_own_stack_has_fixed_bounds)
{
	struct job j = {.kept = false};

	job_make(&j, collect);
	ck_assert_ptr_nonnull(own_register(&j.fiber));
	ck_assert_int_eq(rt_thread_set_stack(j.fiber.lo, j.fiber.hi),
			 RT_ESTATE);
}

// ---- a thread that is stopped on a fiber ----

struct guest {
	struct job job;
	rt_thread *thread;
	uintptr_t hidden; // on the thread's own stack
	bool kept;
	bool blocks;
	bool attaches; // on the fiber
	int attached;
	void *lo, *hi;
};

static atomic_u32 over;

// Guests sleep, because many that yield would use all processors.
static RT_NOINLINE void wait_here(struct guest *g)
{
	if (g->blocks)
		must(rt_blocking_enter());
	atomic_u32_store_release(&g->job.running, 1);
	while (atomic_u32_load_acquire(&over) == 0) {
		if (!g->blocks)
			rt_safepoint();
		sleep_ns(10000000);
	}
	if (g->blocks)
		must(rt_blocking_leave());
}

static void wait_on_fiber(struct fiber *f)
{
	struct guest *g = f->arg;
	void *volatile held = (void *)~g->job.hidden;

	if (g->attaches) {
		g->attached = rt_thread_attach(0);
		must(rt_thread_stack(rt_thread_self(), &g->lo, &g->hi));
	}
	g->thread = rt_thread_self();
	wait_here(g);
	g->job.kept = rt_is_heap(unbox(held));
	if (g->attaches)
		must(rt_thread_detach());
}

static void *run_guest(void *arg)
{
	struct guest *g = arg;
	void *volatile held = (void *)~g->hidden;

	if (!g->attaches)
		g->attached = rt_thread_attach(0);
	fiber_resume(&g->job.fiber);
	g->kept = rt_is_heap(held);
	if (!g->attaches)
		must(rt_thread_detach());
	return arg;
}

// guest_make makes a guest that holds an address or, if boxed, a value in the
// format of its stack.
static void guest_make(struct guest *g, unsigned flags, bool boxed)
{
	rt_stack_desc d;

	g->job.hidden = hidden_new();
	if (boxed)
		g->job.hidden &= ~box;
	g->hidden = hidden_new();
	fiber_make(&g->job.fiber, STACK, wait_on_fiber, g);
	d = fiber_desc(&g->job.fiber, flags);
	d.format = boxed ? &boxes : NULL;
	g->job.stack = heap_stack(&d);
	ck_assert_ptr_nonnull(g->job.stack);
}

static void guest_done(struct guest *g)
{
	must(g->attached);
	ck_assert(g->job.kept);
	if (!g->attaches)
		ck_assert(g->kept);
	must(rt_stack_unregister(g->job.stack));
	fiber_free(&g->job.fiber);
}

// guest_keeps runs fn in a thread, and collects while the thread is on its
// stack.
static void guest_keeps(struct guest *g, void *(*fn)(void *))
{
	pthread_t thread = start_thread(fn, g);

	await_at_least(&g->job.running, 1);
	for (unsigned i = 0; i < 3; i++)
		must(rt_gc());
	ck_assert(alive(g->job.hidden));
	atomic_u32_store_release(&over, 1);
	join_beside(thread);
	ck_assert(g->job.kept);
	ck_assert_uint_eq(warnings, 0);
}

GROUP(stopped, .setup = begin_exact, .timeout = 60);

TEST(a_thread_that_is_stopped_on_a_stack_keeps_it, .n = 8)
{
	struct guest g = {.blocks = _i % 2, .attaches = _i / 2 % 2};

	guest_make(&g, _i / 4 ? RT_STACK_OWNED : 0, false);
	guest_keeps(&g, run_guest);
	if (g.attaches)
		ck_assert(g.lo == g.job.fiber.lo && g.hi == g.job.fiber.hi);
	guest_done(&g);
	must(rt_gc());
	heap_healthy();
}

// ---- formats of stacks that threads run on ----

TEST(a_stack_that_a_thread_runs_on_has_its_format, .n = 8)
{
	struct guest g = {.blocks = _i % 2, .attaches = _i / 2 % 2};

	guest_make(&g, _i / 4 ? RT_STACK_OWNED : 0, true);
	guest_keeps(&g, run_guest);
	guest_done(&g);
	must(rt_gc());
	ck_assert(!alive(g.job.hidden));
}

TEST(registers_have_the_format_of_the_stack_that_runs)
{
	struct guest g = {.blocks = true};
	struct stacks_thread t;
	pthread_t thread;

	guest_make(&g, 0, true);
	thread = start_thread(run_guest, &g);
	await_at_least(&g.job.running, 1);
	must(rt_stop_the_world(RT_STOP_HOST));
	stacks_look();
	ck_assert(stacks_of_thread(g.thread->p, &t));
	ck_assert_ptr_nonnull(t.registers.format);
	ck_assert_ptr_eq(t.registers.format, t.frames.format);
	ck_assert_ptr_null(t.left.format);
	must(rt_start_the_world(NULL));
	atomic_u32_store_release(&over, 1);
	join_beside(thread);
	guest_done(&g);
}

// A thread on its own stack, which is registered with a format.
static void *run_boxed(void *arg)
{
	struct guest *g = arg;
	void *volatile held = (void *)~g->job.hidden;
	rt_stack_desc d;

	g->attached = rt_thread_attach(0);
	rt_stack_desc_init(&d);
	d.sp = &g->job.fiber.resumer;
	d.flags = RT_STACK_THREAD;
	d.format = &boxes;
	ck_assert_ptr_nonnull(heap_stack(&d));
	wait_here(g);
	g->job.kept = rt_is_heap(unbox(held));
	must(rt_thread_detach());
	return arg;
}

TEST(an_own_stack_that_a_thread_runs_on_has_its_format, .n = 2)
{
	struct guest g = {.blocks = _i};

	g.job.hidden = hidden_new() & ~box;
	guest_keeps(&g, run_boxed);
	must(rt_gc());
	ck_assert(!alive(g.job.hidden));
}

// There are more threads than one walk through the table looks for.  Their own
// stacks are small, because each is scanned as a whole.
TEST(many_threads_run_on_stacks)
{
	enum { MANY = 300 / HEAP_CUT, SMALL = 256 << 10 };
	static struct guest g[MANY];
	pthread_t thread[MANY];

	for (unsigned i = 0; i < MANY; i++) {
		g[i].blocks = i % 8 != 0;
		guest_make(&g[i], i % 3 == 0 ? RT_STACK_OWNED : 0, false);
		thread[i] = start_thread_on(SMALL, run_guest, &g[i]);
	}
	for (unsigned i = 0; i < MANY; i++)
		await_at_least(&g[i].job.running, 1);
	must(rt_gc());
	for (unsigned i = 0; i < MANY; i++)
		ck_assert(alive(g[i].job.hidden) && alive(g[i].hidden));
	atomic_u32_store_release(&over, 1);
	for (unsigned i = 0; i < MANY; i++) {
		join_beside(thread[i]);
		guest_done(&g[i]);
	}
	ck_assert_uint_eq(warnings, 0);
}

static void *attach_elsewhere(void *arg)
{
	struct fiber *f = arg;

	fiber_resume(f);
	return arg;
}

static int attached;

static void try_attach(struct fiber *f)
{
	(void)f;
	attached = rt_thread_attach(0);
}

TEST(a_thread_does_not_attach_on_a_stack_that_is_not_known)
{
	struct fiber f;

	fiber_make(&f, STACK, try_attach, NULL);
	run_beside(attach_elsewhere, &f);
	ck_assert_int_eq(attached, RT_EINVAL);
	fiber_free(&f);
}

// ---- bounds that a root callback sets ----

static struct {
	rt_thread *of;
	void *lo, *hi;
	int result, read;
	void *read_lo, *read_hi;
} bounds;

static void set_bounds(rt_tracer *t, void *arg)
{
	(void)t;
	(void)arg;
	bounds.result = rt_thread_set_stack_of(bounds.of, bounds.lo, bounds.hi);
	bounds.read =
	    rt_thread_stack(bounds.of, &bounds.read_lo, &bounds.read_hi);
}

TEST(a_root_callback_may_set_the_bounds_of_threads)
{
	struct guest g = {.blocks = true};
	pthread_t thread;

	guest_make(&g, 0, false);
	must(rt_stack_unregister(g.job.stack));
	thread = start_thread(run_guest, &g);
	await_at_least(&g.job.running, 1);
	bounds.of = g.thread;
	bounds.lo = g.job.fiber.lo;
	bounds.hi = g.job.fiber.hi;
	must(rt_roots_add_fn(set_bounds, NULL, NULL));
	must(rt_gc());
	must(bounds.result);
	must(bounds.read);
	ck_assert_ptr_eq(bounds.read_lo, bounds.lo);
	ck_assert_ptr_eq(bounds.read_hi, bounds.hi);
	ck_assert(alive(g.job.hidden));
	ck_assert(!alive(g.hidden)); // its stack is in no bounds
	ck_assert_uint_eq(warnings, 0);
	bounds.of = NULL;
	must(rt_gc());
	ck_assert_int_eq(bounds.result, RT_EINVAL);
	ck_assert_int_eq(rt_thread_stack(g.thread, &bounds.lo, &bounds.hi),
			 RT_EPERM);
	must(rt_stop_the_world(RT_STOP_HOST));
	must(rt_thread_stack(g.thread, &bounds.lo, &bounds.hi));
	ck_assert_int_eq(rt_thread_set_stack_of(g.thread, bounds.lo, bounds.hi),
			 RT_EPERM);
	must(rt_start_the_world(NULL));
	atomic_u32_store_release(&over, 1);
	join_beside(thread);
	fiber_free(&g.job.fiber);
}

// ---- forks ----

// In the child the stack of a thread that is gone is scanned from its saved
// stack pointer on.  A stack that such a thread has registered as its own is no
// longer there.
static void *run_own(void *arg)
{
	struct guest *g = arg;

	g->attached = rt_thread_attach(0);
	ck_assert_ptr_nonnull(own_register(&g->job.fiber));
	wait_here(g);
	must(rt_thread_detach());
	return arg;
}

TEST(a_child_has_no_stacks_of_threads_that_are_gone)
{
	struct guest g = {.blocks = true}, own = {.blocks = true};
	pthread_t thread, other;

	guest_make(&g, 0, false);
	guest_make(&own, 0, false);
	thread = start_thread(run_guest, &g);
	other = start_thread(run_own, &own);
	await_at_least(&g.job.running, 1);
	await_at_least(&own.job.running, 1);
	ck_assert_uint_eq(stacks_count(), 3);
	if (process_forked()) {
		bool ok = stacks_count() == 2 && rt_gc() == RT_OK;

		g.job.fiber.sp = NULL; // all of the stack
		ok &= rt_gc() == RT_OK;
		process_end(ok);
	}
	atomic_u32_store_release(&over, 1);
	join_beside(thread);
	join_beside(other);
	ck_assert_uint_eq(stacks_count(), 2);
	guest_done(&g);
}

// ---- checkmark ----

static void miss_boxed(void)
{
	static struct guest g = {.blocks = true, .attaches = true};

	begin_exact();
	guest_make(&g, 0, true);
	g.hidden = 0;
	start_thread(run_guest, &g);
	await_at_least(&g.job.running, 1);
	must(rt_stop_the_world(RT_STOP_HOST));
	stacks_look();
	missed_look();
}

GROUP(checks, .timeout = 60);

TEST(a_value_of_a_stack_that_runs_is_checked)
{
	missed_at(miss_boxed, "found in a stack at 0x");
}
