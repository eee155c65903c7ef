// The bounds of stacks: which part of them is in use, and what is no part of
// them.
//
// Some tests are left out of builds with a sanitizer.  A sanitizer uses stacks
// of its own, or would have to be told of changes of stacks.
#include "runtime/world/threadstack.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <ucontext.h>
#include <unistd.h>

#include "gc/mark/crew.h"
#include "gc/mark/roots.h"
#include "gc/cycle/worker.h"
#include "runtime/os/sysmem.h"
#include "test/harness/await.h"
#include "test/harness/frames.h"
#include "test/harness/heap.h"
#include "test/harness/process.h"

// ---- the module ----

enum { PAGES = 40 };

static size_t page;
static char *area;

static void map_area(void)
{
	sysmem_init();
	page = sysmem_page_size();
	area = mmap(NULL, PAGES * page, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ck_assert_ptr_ne(area, MAP_FAILED);
}

static uintptr_t at(size_t n)
{
	return (uintptr_t)area + n * page;
}

// stack is pages lo to hi of the area, with the stack pointer at sp.
static struct context stack(size_t lo, size_t hi, uintptr_t sp)
{
	return (struct context){.frame.sp = sp, .lo = at(lo), .hi = at(hi)};
}

static void protect(size_t n)
{
	ck_assert_int_eq(mprotect(area + n * page, page, PROT_NONE), 0);
}

static void unmap(size_t n)
{
	ck_assert_int_eq(munmap(area + n * page, page), 0);
}

GROUP(module, .setup = map_area);

// On its own stack a thread uses what is above the stack pointer, and only that
// is looked at.
TEST(a_stack_is_used_from_its_pointer_on)
{
	uintptr_t sp[] = {at(10), at(10) + 8, at(15) - 8, at(20) - 8, at(20)};

	protect(12);
	unmap(5);
	for (unsigned i = 0; i < RT_ARRAY_LEN(sp); i++) {
		struct context c = stack(10, 20, sp[i]);

		ck_assert_uint_eq(threadstack_begin(&c), sp[i]);
		ck_assert_uint_eq(c.lo, at(10));
	}
}

// If the stack pointer is below or above the stack, everything above the
// highest page that cannot be read counts as in use.
TEST(a_stack_that_is_left_is_used_as_far_as_it_can_be_read)
{
	uintptr_t sp[] = {8, at(0), at(10) - 8, at(20) + 8, ~(uintptr_t)7};

	for (unsigned i = 0; i < RT_ARRAY_LEN(sp); i++) {
		struct context c = stack(10, 20, sp[i]);

		ck_assert_uint_eq(threadstack_begin(&c), at(10));
	}
	protect(14);
	for (unsigned i = 0; i < RT_ARRAY_LEN(sp); i++) {
		struct context c = stack(10, 20, sp[i]);

		ck_assert_uint_eq(threadstack_begin(&c), at(15));
	}
	unmap(16);
	for (unsigned i = 0; i < RT_ARRAY_LEN(sp); i++) {
		struct context c = stack(10, 20, sp[i]);

		ck_assert_uint_eq(threadstack_begin(&c), at(17));
		ck_assert(!threadstack_holds(&c, sp[i]));
	}
	protect(19);
	for (unsigned i = 0; i < RT_ARRAY_LEN(sp); i++) {
		struct context c = stack(10, 20, sp[i]);

		ck_assert_uint_eq(threadstack_begin(&c), at(20));
	}
}

// Bounds need not be those of pages.
TEST(odd_bounds_are_kept)
{
	struct context c = stack(10, 20, 8);

	c.lo += 24;
	c.hi -= 24;
	ck_assert_uint_eq(threadstack_begin(&c), at(10) + 24);
	protect(10);
	ck_assert_uint_eq(threadstack_begin(&c), at(11));
	protect(19);
	ck_assert_uint_eq(threadstack_begin(&c), c.hi);
}

// A stack that grows is as long as it is mapped at the moment.
TEST(a_stack_may_have_grown)
{
	struct context c = stack(30, 40, at(25) + 8);

	unmap(20);
	c.grows = true;
	ck_assert_uint_eq(threadstack_begin(&c), at(25) + 8);
	ck_assert_uint_eq(c.lo, at(21));
	c.frame.sp = at(15);
	ck_assert_uint_eq(threadstack_begin(&c), at(21));
	// Pages that cannot be read are not part of the stack.
	protect(28);
	c = stack(30, 40, at(25));
	c.grows = true;
	ck_assert_uint_eq(threadstack_begin(&c), at(29));
	ck_assert_uint_eq(c.lo, at(29));
	// A stack that does not grow keeps its bounds.
	c = stack(30, 40, at(29));
	ck_assert(!threadstack_holds(&c, at(29)));
	ck_assert_uint_eq(c.lo, at(30));
}

TEST(what_can_be_read_is_known)
{
	ck_assert(threadstack_readable(at(0), at(PAGES), at(30)));
	ck_assert(threadstack_readable(at(0) + 1, at(PAGES) - 1, at(0) + 1));
	unmap(10);
	ck_assert(threadstack_readable(at(0), at(PAGES), at(11)));
	ck_assert(!threadstack_readable(at(0), at(PAGES), at(11) - 8));
	ck_assert(!threadstack_readable(at(9), at(10) + 1, at(9)));
	ck_assert(threadstack_readable(at(9), at(10), at(9)));
	protect(20);
	ck_assert(!threadstack_readable(at(19), at(22), at(21)));
	ck_assert(threadstack_readable(at(11), at(20), at(15)));
	ck_assert(threadstack_readable(at(21), at(22), at(21)));
}

static void *ask(void *arg)
{
	struct context *c = arg;
	uintptr_t here = (uintptr_t)__builtin_frame_address(0);

	ck_assert_int_eq(threadstack_ask(c), 0);
	ck_assert(threadstack_holds(c, here));
	return arg;
}

TEST(the_first_thread_s_stack_grows)
{
	struct context c;

	ask(&c);
	ck_assert(c.grows);
	join_thread(start_thread(ask, &c));
	ck_assert(!c.grows);
}

// ---- in a heap ----

enum { OWN_STACK = 8 << 20 };

static RT_NOINLINE void wipe(void)
{
	volatile char bytes[32 << 10];

	for (size_t i = 0; i < sizeof bytes; i++)
		bytes[i] = 0;
}

// collected tells whether an object is gone after a collection; hidden is the
// complement of its address, so that no other word leads to it.
static RT_NOINLINE bool collected(uintptr_t hidden)
{
	wipe();
	ck_assert_int_eq(rt_gc(), RT_OK);
	return !rt_is_heap((void *)~hidden);
}

static void set_stack_limit(size_t n)
{
	struct rlimit limit;

	ck_assert_int_eq(getrlimit(RLIMIT_STACK, &limit), 0);
	limit.rlim_cur = n;
	ck_assert_int_eq(setrlimit(RLIMIT_STACK, &limit), 0);
}

GROUP(heap, .timeout = 60);

// The host raises the limit after it has made the heap.
TEST(the_main_stack_grows_beyond_the_limit_at_attach, .unless = SUITE_SANITIZED)
{
	enum { FRAMES = 200 }; // more than 12 MiB

	set_stack_limit(8 << 20);
	heap_begin();
	set_stack_limit(64 << 20);
	go_down(FRAMES);
	ck_assert_uint_eq(frames_lost, 0);
	go_down(FRAMES); // the bounds are known by now
	ck_assert_uint_eq(frames_lost, 0);
}

static RT_NOINLINE void touch_stack(void)
{
	volatile char bytes[2 << 20];

	for (size_t i = 0; i < sizeof bytes; i += 1024)
		bytes[i] = 0;
	frames_lost += bytes[0];
}

// attach_below_the_limit makes the stack as long as it can be, lowers the
// limit, and then makes a heap.
static RT_NOINLINE void attach_below_the_limit(unsigned n)
{
	volatile char bytes[64 << 10];

	bytes[1] = 0;
	if (n != 0) {
		attach_below_the_limit(n - 1);
	} else {
		touch_stack(); // it cannot grow any more
		set_stack_limit(1 << 20);
		heap_begin();
		go_down(10);
	}
	frames_lost += bytes[1];
}

TEST(the_main_stack_is_longer_than_the_limit_at_attach,
     .unless = SUITE_SANITIZED)
{
	set_stack_limit(8 << 20);
	attach_below_the_limit(60);
	ck_assert_uint_eq(frames_lost, 0);
}

// ---- on a coroutine ----

static struct {
	ucontext_t home, away;
	int init, attached, exact, stack;
} co;

static void run_away(void (*fn)(void), void *at_stack)
{
	ck_assert_int_eq(getcontext(&co.away), 0);
	co.away.uc_stack.ss_sp = at_stack;
	co.away.uc_stack.ss_size = OWN_STACK;
	co.away.uc_link = &co.home;
	makecontext(&co.away, fn, 0);
	ck_assert_int_eq(swapcontext(&co.home, &co.away), 0);
}

static char *own_stack;

static void map_own_stack(void)
{
	own_stack = mmap(NULL, OWN_STACK, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ck_assert_ptr_ne(own_stack, MAP_FAILED);
}

// run_beside_a_guard makes a heap and runs fn in a thread on own_stack, one
// page of which is protected.
static void run_beside_a_guard(void *(*fn)(void *), size_t nth)
{
	size_t n = oscall_page_size();
	pthread_attr_t attr;
	pthread_t thread;

	heap_begin();
	map_own_stack();
	ck_assert_int_eq(mprotect(own_stack + nth * n, n, PROT_NONE), 0);
	ck_assert_int_eq(pthread_attr_init(&attr), 0);
	ck_assert_int_eq(pthread_attr_setstack(&attr, own_stack, OWN_STACK), 0);
	ck_assert_int_eq(pthread_create(&thread, &attr, fn, NULL), 0);
	join_beside(thread);
}

static void attach_away(void)
{
	rt_config c = heap_config(HEAP_QUIET);

	co.init = rt_init(&c);
	c.no_attach = 1;
	if (rt_init(&c) != RT_OK)
		return;
	co.attached = rt_thread_attach(0);
	co.exact = rt_thread_attach(RT_THREAD_EXACT);
	if (co.exact == RT_OK)
		rt_thread_detach();
	co.stack = rt_thread_attach_stack(own_stack, own_stack + OWN_STACK, 0);
	if (co.stack == RT_OK)
		rt_fini();
}

static void *attach_away_from(void *arg)
{
	map_own_stack();
	run_away(attach_away, own_stack);
	return arg;
}

// The system knows another stack than the one that the caller runs on, both for
// the main thread and for another.
TEST(a_stack_that_the_system_does_not_know_is_refused, .n = 2,
     .unless = SUITE_SANITIZED)
{
	if (_i == 0)
		attach_away_from(NULL);
	else
		join_thread(start_thread(attach_away_from, NULL));
	ck_assert_int_eq(co.init, RT_EINVAL);
	ck_assert_int_eq(co.attached, RT_EINVAL);
	ck_assert_int_eq(co.exact, RT_OK);
	ck_assert_int_eq(co.stack, RT_OK);
}

// collect_away is for a thread that is attached with another stack.
static int away_result;
static void collect_away(void)
{
	away_result = rt_gc();
}

// The host protects a page of its stack, and collects on another stack.
static void *collect_beside_a_guard(void *arg)
{
	static char away[OWN_STACK];
	void *volatile held;

	ck_assert_int_eq(rt_thread_attach(0), RT_OK);
	held = rt_alloc_noscan(FRAMES_OBJECT);
	away_result = RT_ESTATE;
	run_away(collect_away, away);
	ck_assert_int_eq(away_result, RT_OK);
	ck_assert_int_eq(rt_is_heap(held), 1);
	ck_assert_int_eq(rt_thread_detach(), RT_OK);
	return arg;
}

TEST(a_guard_in_a_stack_that_is_left_is_not_touched, .n = 3,
     .unless = SUITE_SANITIZED)
{
	run_beside_a_guard(collect_beside_a_guard, (size_t)_i);
}

static int named[4];

static void *name_stacks(void *arg)
{
	char *here = __builtin_frame_address(0);
	size_t n = oscall_page_size();

	named[0] = rt_thread_attach_stack(own_stack, here + 64, 0);
	named[1] = rt_thread_attach_stack(own_stack + n, here + 64, 0);
	named[2] = rt_thread_attach_stack(own_stack + 2 * n, here + 64, 0);
	if (named[2] == RT_OK)
		rt_thread_detach();
	named[3] =
	    rt_thread_attach_stack(own_stack, here + 64, RT_THREAD_EXACT);
	if (named[3] == RT_OK)
		rt_thread_detach();
	return arg;
}

// Bounds that hold a page that cannot be read are refused, but for exact
// threads.
TEST(named_bounds_must_be_readable)
{
	run_beside_a_guard(name_stacks, 1);
	ck_assert_int_eq(named[0], RT_EINVAL);
	ck_assert_int_eq(named[1], RT_EINVAL);
	ck_assert_int_eq(named[2], RT_OK);
	ck_assert_int_eq(named[3], RT_OK);
}

// ---- what the C library keeps in a stack's mapping ----

static __thread void *local_first;
static __thread char local_large[100000];
static __thread void *local_last;
static pthread_key_t key;

// hide stores a new object's address in one place, and returns the complement
// of the address.
static RT_NOINLINE uintptr_t hide(int place)
{
	void *p = rt_alloc_noscan(FRAMES_OBJECT);

	ck_assert_ptr_nonnull(p);
	switch (place) {
	case 0:
		local_first = p;
		break;
	case 1:
		local_last = p;
		break;
	case 2:
		memcpy(local_large + 50000 / 8 * 8, &p, sizeof p);
		break;
	default:
		pthread_setspecific(key, p);
	}
	return ~(uintptr_t)p;
}

// hide_below hides an address in frames that wipe overwrites.
static RT_NOINLINE uintptr_t hide_below(int place)
{
	volatile char bytes[4096];
	uintptr_t hidden;

	bytes[0] = (char)place;
	hidden = hide(bytes[0]);
	bytes[1] = 0;
	return hidden + (uintptr_t)bytes[1];
}

static void *hold_in_local(void *arg)
{
	bool attach = arg != NULL;

	if (attach)
		ck_assert_int_eq(rt_thread_attach(0), RT_OK);
	for (int place = 0; place < 4; place++)
		ck_assert_msg(collected(hide_below(place)), "place %d", place);
	pthread_setspecific(key, NULL);
	if (attach)
		ck_assert_int_eq(rt_thread_detach(), RT_OK);
	return arg;
}

static void hold_in_thread(void)
{
	int attach;

	run_beside(hold_in_local, &attach);
}

// This holds on the main thread and on others.
TEST(thread_local_variables_are_no_roots, .n = 2, .unless = SUITE_SANITIZED)
{
	rt_config c = heap_config(HEAP_QUIET);

	c.past_end = 0;
	ck_assert_int_eq(rt_init(&c), RT_OK);
	ck_assert_int_eq(pthread_key_create(&key, NULL), 0);
	if (_i == 0) {
		hold_in_local(NULL);
		return;
	}
	hold_in_thread();
}

// Thread-local variables of a thread in a child are no roots either, even if
// the parent had no thread but the main one.
TEST(thread_local_variables_are_no_roots_after_a_fork,
     .unless = SUITE_SANITIZED)
{
	rt_config c = heap_config(HEAP_QUIET);

	c.past_end = 0;
	ck_assert_int_eq(rt_init(&c), RT_OK);
	ck_assert_int_eq(pthread_key_create(&key, NULL), 0);
	if (process_forked()) {
		hold_in_thread();
		process_end(true);
	}
}

// The first frame of a thread is part of its stack.
static void *hold_in_first_frame(void *arg)
{
	void *volatile held;

	ck_assert_int_eq(rt_thread_attach(0), RT_OK);
	held = rt_alloc_noscan(FRAMES_OBJECT);
	ck_assert_int_eq(rt_gc(), RT_OK);
	ck_assert_int_eq(rt_is_heap(held), 1);
	ck_assert_int_eq(rt_thread_detach(), RT_OK);
	return arg;
}

TEST(the_first_frame_is_a_root)
{
	heap_begin();
	run_beside(hold_in_first_frame, NULL);
}

// ---- a record that is used again ----

static void *attach_and_go(void *arg)
{
	ck_assert_int_eq(rt_thread_attach(0), RT_OK);
	return arg;
}

static const struct rt_proc *the_helper(void)
{
	const struct rt_proc *p = proc_first();

	while (p && !(p->flags & PROC_HELPER))
		p = proc_next(p);
	ck_assert_ptr_nonnull(p);
	return p;
}

// A helper takes the record of a thread that is gone, and whose stack is gone.
// The helper itself has no stack to scan.  A collection looks for the frames
// that the address sanitizer moves in the stacks of all records.
TEST(a_helper_has_no_stack)
{
	rt_config c = heap_config(HEAP_QUIET);
	pthread_attr_t attr;
	pthread_t thread;
	uint32_t records;

	c.max_procs = 2;
	c.gc_threads = 1;
	ck_assert_int_eq(rt_init(&c), RT_OK);
	map_own_stack();
	ck_assert_int_eq(pthread_attr_init(&attr), 0);
	ck_assert_int_eq(pthread_attr_setstack(&attr, own_stack, OWN_STACK), 0);
	ck_assert_int_eq(pthread_create(&thread, &attr, attach_and_go, NULL),
			 0);
	join_beside(thread);
	ck_assert_int_eq(munmap(own_stack, OWN_STACK), 0);
	records = procs.made;
	ck_assert_uint_ne(procs.free->context.hi, 0);
	procs.free->context.fake = own_stack;
	worker_provide(proc_self(), true);
	ck_assert_uint_eq(crew_size(), 1);
	ck_assert_uint_eq(procs.made, records);
	ck_assert_uint_eq(the_helper()->context.hi, 0);
	ck_assert_ptr_null(the_helper()->context.fake);
	ck_assert_int_eq(rt_gc(), RT_OK);
	ck_assert_int_eq(rt_fini(), RT_OK);
}
