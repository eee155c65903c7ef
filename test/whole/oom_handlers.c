// The handler that is asked when there is no memory, and the other handlers
// that an allocation may call.
#include "test/harness/kind.h"
#include "test/whole/oom.h"

#include <setjmp.h>

#include "gc/cycle/pacer.h"
#include "gc/host/finalize.h"

static struct {
	unsigned calls;
	size_t n;	  // of the last call
	unsigned retries; // how many more answers are 1
	bool drops;	  // frees the roots
	int other;	  // answer when no retry is left
	jmp_buf out;
	bool jumps;
	unsigned inner; // allocations in the handler that failed
} oom;

static int on_oom(size_t n, void *arg)
{
	if (arg != &oom)
		abort();
	oom.calls++;
	oom.n = n;
	if (oom.drops)
		drop_all();
	if (oom.jumps)
		longjmp(oom.out, 1);
	if (oom.retries == 0)
		return oom.other;
	oom.retries--;
	return 1;
}

// handle_by sets a handler, and clears its counts.
static void handle_by(int (*handler)(size_t, void *))
{
	memset(&oom, 0, sizeof oom);
	ck_assert_int_eq(rt_set_oom_handler(handler, &oom), RT_OK);
}

static void handler_begin(void)
{
	begin();
	handle_by(on_oom);
	fill_roots(1 << 20);
	ck_assert_uint_eq(oom.calls, 1);
	oom.calls = 0;
}

GROUP(handler, .timeout = 60);

TEST(handler_that_gives_up)
{
	rt_memstats before;

	handler_begin();
	before = heap_healthy();
	for (int answer = -2; answer <= 3; answer++) {
		if (answer == 1)
			continue;
		oom.other = answer;
		oom.calls = 0;
		ck_assert_ptr_null(rt_alloc(2000000));
		ck_assert_uint_eq(oom.calls, 1);
		ck_assert_uint_eq(oom.n, 2000000);
	}
	nothing_taken(&before);
	rt_set_oom_handler(NULL, NULL);
	oom.calls = 0;
	ck_assert_ptr_null(rt_alloc(2000000));
	ck_assert_uint_eq(oom.calls, 0);
}

TEST(handler_that_frees)
{
	handler_begin();
	oom.drops = true;
	oom.retries = 1;
	// The handler drops the roots.  The next collection frees their
	// objects.
	while (oom.retries)
		ck_assert_ptr_nonnull(rt_alloc(2000000));
	ck_assert_uint_eq(oom.calls, 1);
	heap_healthy();
}

TEST(handler_is_asked_until_it_gives_up)
{
	handler_begin();
	oom.retries = 10;
	ck_assert_ptr_null(rt_alloc_noscan(3000000));
	ck_assert_uint_eq(oom.calls, 11);
	ck_assert_uint_eq(oom.n, 3000000);
	heap_healthy();
}

// asked requires that p is NULL, and that the handler was asked once for n
// bytes.
static void asked(const void *p, size_t n)
{
	ck_assert_ptr_null(p);
	ck_assert_uint_eq(oom.calls, 1);
	ck_assert_uint_eq(oom.n, n);
	oom.calls = 0;
}

TEST(handler_is_asked_by_every_allocation)
{
	handler_begin();
	asked((rt_alloc)(MAX_HEAP), MAX_HEAP);
	asked((rt_alloc_noscan)(MAX_HEAP), MAX_HEAP);
	asked(rt_alloc_noscan_uninit(MAX_HEAP), MAX_HEAP);
	asked(rt_alloc_kind(RT_WORDS, MAX_HEAP), MAX_HEAP);
	asked(rt_alloc_in(rt_thread_self(), MAX_HEAP), MAX_HEAP);
	asked(rt_alloc_slow_(rt_thread_self(), RT_RUN_CLASSES, MAX_HEAP),
	      MAX_HEAP);
	asked(rt_stack_alloc(MAX_HEAP), MAX_HEAP);
	ck_assert_ptr_null(rt_stack_alloc((size_t)MAX_HEAP * 2));
	ck_assert_ptr_null(rt_alloc((size_t)PTRDIFF_MAX + 1));
	ck_assert_ptr_null(rt_alloc_kind(77, MAX_HEAP));
	ck_assert_uint_eq(oom.calls, 0);
	// A request that the range can never hold is refused without a
	// collection.
	ck_assert_ptr_null(rt_alloc(PTRDIFF_MAX));
	ck_assert_ptr_null(rt_alloc((size_t)MAX_HEAP + 1));
	ck_assert_uint_eq(oom.calls, 0);
}

// Allocations of small objects ask the handler as well, even inline ones.
TEST(handler_is_asked_for_small_objects)
{
	begin();
	fill_roots(1 << 20);
	handle_by(on_oom);
	fill_list(16);
	ck_assert_uint_eq(oom.calls, 1);
	ck_assert_uint_eq(oom.n, 16);
	oom.calls = 0;
	fill_list(48);
	ck_assert_ptr_null(rt_alloc_noscan(5));
	ck_assert_uint_eq(oom.calls, 2);
	ck_assert_uint_eq(oom.n, 5);
	ck_assert(list_whole());
	heap_healthy();
}

TEST(handler_that_jumps_away)
{
	volatile unsigned jumps = 0;
	volatile unsigned allocated = 0;

	handler_begin();
	oom.jumps = true;
	for (volatile int i = 0; i < 200; i++) {
		if (setjmp(oom.out)) {
			jumps++;
			heap_healthy();
			// After every second jump there is memory again.
			if (i % 2)
				drop_all();
			continue;
		}
		fill_roots((1 << 20) + (size_t)i * 1000);
		allocated++;
	}
	ck_assert_uint_eq(jumps, 200);
	ck_assert_uint_eq(allocated, 0);
	oom.jumps = false;
	drop_all();
	ck_assert_ptr_nonnull(rt_alloc(1 << 20));
	ck_assert_int_eq(rt_gc(), RT_OK);
	heap_healthy();
	ck_assert_int_eq(rt_fini(), RT_OK);
}

// A handler may call whatever its thread may call.
static int busy_handler(size_t n, void *arg)
{
	struct rt_verify verified;
	rt_memstats m;
	void *stack;

	(void)n;
	(void)arg;
	oom.calls++;
	oom.inner += !rt_alloc(16) || !rt_alloc_noscan(3);
	oom.inner += !rt_alloc_noscan(1000);
	stack = rt_stack_alloc(2048);
	oom.inner += !stack || rt_stack_free(stack, 2048) != RT_OK;
	oom.inner += rt_gc() != RT_OK;
	oom.inner += rt_read_memstats(&m) != RT_OK;
	oom.inner += rt_heap_verify(&verified) != RT_OK || verified.errors;
	oom.inner += rt_stop_the_world(RT_STOP_HOST) != RT_OK;
	oom.inner += rt_start_the_world(NULL) != RT_OK;
	oom.inner += rt_blocking_enter() != RT_OK;
	oom.inner += rt_blocking_leave() != RT_OK;
	oom.inner += rt_set_oom_handler(busy_handler, NULL) != RT_OK;
	return oom.calls < 3;
}

TEST(handler_that_allocates_and_more)
{
	begin();
	handle_by(busy_handler);
	ck_assert_ptr_null(too_much());
	ck_assert_uint_eq(oom.calls, 3);
	ck_assert_uint_eq(oom.inner, 0);
	heap_healthy();
}

// ---- a handler that allocates when there is nothing ----

static unsigned nested, deepest;

// A handler that needs memory to report what happened.
static int wanting_handler(size_t n, void *arg)
{
	(void)n;
	(void)arg;
	oom.calls++;
	nested++;
	deepest = nested > deepest ? nested : deepest;
	oom.inner += rt_alloc_noscan(1 << 20) == NULL;
	oom.inner += rt_stack_alloc(1 << 20) == NULL;
	oom.inner += rt_alloc(1 << 20) == NULL;
	nested--;
	if (oom.jumps)
		longjmp(oom.out, 1);
	return 0;
}

static void wanting_begin(void)
{
	begin();
	fill_roots(1 << 20);
	handle_by(wanting_handler);
}

// A handler is not called for its own allocations.  It is called for each other
// allocation that fails.
TEST(a_handler_is_not_nested)
{
	wanting_begin();
	for (unsigned i = 1; i <= 5; i++) {
		ck_assert_ptr_null(rt_alloc(1 << 20));
		ck_assert_uint_eq(oom.calls, i);
		ck_assert_uint_eq(oom.inner, 3 * i);
	}
	ck_assert_uint_eq(deepest, 1);
	drop_all();
	ck_assert_ptr_nonnull(rt_alloc(1 << 20));
	heap_healthy();
}

// Bytes of a frame, of which the function writes only the first and the last.
enum { UNWRITTEN = 200 };

// fails_deep asks for memory depth frames below its caller.
static RT_NOINLINE void *fails_deep(unsigned depth)
{
	volatile char frame[UNWRITTEN];
	void *p;

	frame[0] = 1;
	p = depth == 0 ? rt_alloc(1 << 20) : fails_deep(depth - 1);
	frame[UNWRITTEN - 1] = frame[0];
	return p;
}

// A handler that was left by a jump is not taken for a running one, however
// deep the stack is afterwards.
TEST(a_handler_that_was_left_is_called_again)
{
	static const unsigned depths[] = {5, 5, 0, 20, 1, 400, 3, 60, 4};
	volatile unsigned jumps = 0;

	wanting_begin();
	oom.jumps = true;
	for (volatile unsigned i = 0; i < RT_ARRAY_LEN(depths); i++)
		if (setjmp(oom.out) == 0)
			fails_deep(depths[i]);
		else
			jumps++;
	ck_assert_uint_eq(jumps, RT_ARRAY_LEN(depths));
	ck_assert_uint_eq(oom.calls, RT_ARRAY_LEN(depths));
	ck_assert_uint_eq(oom.inner, 3 * oom.calls);
	ck_assert_uint_eq(deepest, 1);
	oom.jumps = false;
	ck_assert_ptr_null(fails_deep(7));
	ck_assert_uint_eq(oom.calls, RT_ARRAY_LEN(depths) + 1);
}

static RT_NOINLINE void *fails_far_below(void)
{
	volatile char frame[64 << 10];
	void *p;

	frame[0] = 1;
	p = rt_alloc(1 << 20);
	frame[sizeof frame - 1] = frame[0];
	return p;
}

// A handler that has returned is not taken for a running one either, even if
// nothing was written where it ran.
TEST(a_handler_that_returned_is_called_again)
{
	void *first, *second;

	wanting_begin();
	first = fails_deep(20);
	second = fails_far_below();
	ck_assert(!first && !second);
	ck_assert_uint_eq(oom.calls, 2);
}

#define HANDLER(name, error)                                                   \
	static int name(size_t n, void *arg)                                   \
	{                                                                      \
		(void)n;                                                       \
		(void)arg;                                                     \
		oom.calls++;                                                   \
		if ((error) != RT_OK)                                          \
			abort();                                               \
		return 1;                                                      \
	}

HANDLER(detaching_handler, rt_thread_detach())
HANDLER(entering_handler, rt_blocking_enter())
HANDLER(stopping_handler, rt_stop_the_world(RT_STOP_HOST))

static int attaching_handler(size_t n, void *arg)
{
	detaching_handler(n, arg);
	if (rt_thread_attach(RT_THREAD_EXACT) != RT_OK)
		abort();
	return oom.calls < 5;
}

// A handler may leave the thread detached, in a region or in a stop.  The
// allocation then returns NULL.
TEST(handlers_that_leave_the_thread_elsewhere)
{
	begin();
	handle_by(detaching_handler);
	ck_assert_ptr_null(too_much());
	ck_assert_int_eq(rt_thread_attach(RT_THREAD_EXACT), RT_OK);
	rt_set_oom_handler(entering_handler, NULL);
	ck_assert_ptr_null(too_much());
	ck_assert_int_eq(rt_blocking_leave(), RT_OK);
	rt_set_oom_handler(stopping_handler, NULL);
	ck_assert_ptr_null(too_much());
	ck_assert_int_eq(rt_start_the_world(NULL), RT_OK);
	ck_assert_uint_eq(oom.calls, 3);
	rt_set_oom_handler(attaching_handler, NULL);
	ck_assert_ptr_null(too_much());
	heap_healthy();
	ck_assert_ptr_nonnull(rt_alloc(16));
}

// Such a handler also ends an rt_realloc that would keep a shrinking object
// where it is.  The object keeps its size.
TEST(handlers_that_leave_a_thread_that_resizes)
{
	void *p;

	begin();
	p = roots[nroots++] = rt_alloc(1 << 20);
	fill_roots(1 << 20);
	fill_roots(8192);
	handle_by(detaching_handler);
	ck_assert_ptr_null(rt_realloc(RT_WORDS, p, 20000));
	ck_assert_int_eq(rt_thread_attach(RT_THREAD_EXACT), RT_OK);
	ck_assert_uint_eq(rt_size(p), 1 << 20);
	rt_set_oom_handler(entering_handler, NULL);
	ck_assert_ptr_null(rt_realloc(RT_WORDS, p, 20000));
	ck_assert_int_eq(rt_blocking_leave(), RT_OK);
	ck_assert_uint_eq(rt_size(p), 1 << 20);
	rt_set_oom_handler(on_oom, &oom);
	ck_assert_uint_eq(oom.calls, 2);
	ck_assert_ptr_eq(rt_realloc(RT_WORDS, p, 20000), p);
	heap_healthy();
}

static void *collect_meanwhile(void *arg)
{
	must(rt_thread_attach(RT_THREAD_EXACT));
	must(rt_gc());
	must(rt_thread_detach());
	return arg;
}

// While the thread is detached, its stack keeps nothing alive.
static int leaving_handler(size_t n, void *arg)
{
	(void)n;
	(void)arg;
	oom.calls++;
	must(rt_thread_detach());
	run_thread(collect_meanwhile, NULL);
	must(rt_thread_attach(0));
	return oom.other;
}

// begin_scanned makes a full heap, and returns an object of 1 MiB that only the
// stack of this thread keeps alive.
static void *begin_scanned(void)
{
	void *p;

	begin();
	must(rt_thread_detach());
	must(rt_thread_attach(0));
	p = rt_alloc(1 << 20);
	fill_roots(1 << 20);
	fill_roots(8192);
	ck_assert_uint_eq(rt_size(p), 1 << 20);
	handle_by(leaving_handler);
	return p;
}

// The handler has detached the thread for a while, so the object that was
// passed in may be gone.  It is neither copied nor freed nor shortened,
// whatever the handler answers.
TEST(a_handler_that_left_ends_the_allocation, .n = 2)
{
	void *p = begin_scanned();
	uint64_t mallocs, frees;

	oom.other = _i;
	ck_assert_ptr_null(rt_realloc(RT_WORDS, p, 20000));
	ck_assert_uint_eq(oom.calls, 1);
	ck_assert_uint_eq(rt_size(p), 0);
	mallocs = heap_healthy().mallocs;
	frees = heap_healthy().frees;
	ck_assert_uint_eq(mallocs - frees, nroots);
	rt_keep_alive(p);
}

TEST(a_handler_that_left_ends_a_copy, .n = 2)
{
	void *p = begin_scanned();

	oom.other = _i;
	ck_assert_ptr_null(rt_memdup(p, 20000));
	ck_assert_uint_eq(oom.calls, 1);
	heap_healthy();
	rt_keep_alive(p);
}

// An allocation calls the warn handler before its collection, for what an
// earlier collection found, and after it.  The handler may detach the thread in
// either call.
static unsigned told;

static void leaving_warned(const char *text, void *arg)
{
	if (told != 0 || !strstr(text, arg))
		return;
	told++;
	leaving_handler(0, NULL);
}

// fail_scanned resizes an object that only the stack keeps alive, or allocates
// a stack.
static RT_NOINLINE void fail_scanned(void *p, bool resize)
{
	ck_assert_ptr_null(resize ? rt_realloc(RT_WORDS, p, 2 << 20)
				  : rt_stack_alloc(8192));
	ck_assert_uint_eq(told, 1);
	ck_assert_uint_eq(rt_size(p), 0);
	heap_healthy();
	rt_keep_alive(p);
}

static void scanned_begin(bool tracecheck)
{
	rt_config c = heap_config(HEAP_QUIET);

	c.tracecheck = tracecheck;
	c.gcstress = tracecheck;
	c.sweep = 0;
	heap_start(c);
	must(rt_roots_add(roots, roots + NROOTS, RT_ROOT_EXACT));
}

TEST(a_warn_handler_that_left_ends_the_allocation, .n = 2)
{
	void *p;

	scanned_begin(false);
	p = rt_alloc(1 << 20);
	must(rt_set_warn_handler(leaving_warned, "memory limit"));
	must(rt_set_memory_limit(0, NULL));
	while (!pacer_warning_due())
		ck_assert_ptr_nonnull(rt_alloc_noscan_uninit(40000));
	fail_scanned(p, _i);
}

// The allocation of the stack finds a collection due.  The allocation of the
// object collects because of gcstress.
TEST(a_notice_handler_that_left_ends_the_allocation, .n = 2)
{
	void *p, *untold;

	scanned_begin(true);
	p = rt_alloc(1 << 20);
	roots[0] = rt_alloc_kind(
	    kind_make(.layout = RT_LAYOUT_TRACE, .trace = trace_nothing), 32);
	must(rt_set_warn_handler(leaving_warned, "untold reference"));
	must(rt_set_gc_percent(100, NULL));
	untold = rt_alloc(64);
	ck_assert_ptr_nonnull(rt_alloc_noscan(32 << 20));
	*(void **)roots[0] = untold;
	fail_scanned(p, _i);
}

static void leaving_ready(size_t n, void *arg)
{
	(void)arg;
	ck_assert_uint_ne(n, 0);
	if (told != 0)
		return;
	told++;
	leaving_handler(0, NULL);
}

static RT_NOINLINE void drop_some(void)
{
	int kind = kind_make(.layout = RT_LAYOUT_NONE, .drop = drop_nothing,
			     .flags = RT_KIND_DROP);

	for (int i = 0; i < 100; i++)
		ck_assert_ptr_nonnull(rt_alloc_kind(kind, 64));
}

// The collection of one allocation finds dead objects.  The next allocation
// calls the ready callback.
TEST(a_ready_callback_that_left_ends_the_allocation)
{
	void *p;

	scanned_begin(false);
	p = rt_alloc(1 << 20);
	must(rt_set_finalize_mode(RT_FINALIZE_MANUAL, leaving_ready, NULL));
	drop_some();
	must(rt_set_gc_percent(100, NULL));
	while (!finalize_has_news())
		ck_assert_ptr_nonnull(rt_alloc_noscan_uninit(40000));
	fail_scanned(p, true);
}

static void count_warned(const char *text, void *arg)
{
	told += strstr(text, arg) != NULL;
}

// A handler may call functions that are refused in a stop.  So a warning that
// is due waits until the caller has started the world.
TEST(no_warn_handler_runs_in_the_callers_own_stop)
{
	scanned_begin(false);
	must(rt_set_warn_handler(count_warned, "memory limit"));
	must(rt_set_memory_limit(0, NULL));
	while (!pacer_warning_due())
		ck_assert_ptr_nonnull(rt_alloc_noscan_uninit(40000));
	ck_assert_int_eq(rt_stop_the_world(RT_STOP_HOST), RT_OK);
	ck_assert_int_eq(rt_thread_attach(RT_THREAD_EXACT), RT_ESTATE);
	ck_assert_uint_eq(told, 0);
	ck_assert_int_eq(rt_start_the_world(NULL), RT_OK);
	ck_assert_int_eq(rt_thread_attach(RT_THREAD_EXACT), RT_ESTATE);
	ck_assert_uint_eq(told, 1);
}

static int begin_stop(void)
{
	return rt_stop_the_world(RT_STOP_HOST);
}

static int end_stop(void)
{
	return rt_start_the_world(NULL);
}

static int attach_exact(void)
{
	return rt_thread_attach(RT_THREAD_EXACT);
}

// A function that a handler calls, and the function that ends what it began.
static const struct {
	int (*begin)(void), (*end)(void);
} begun[] = {
    {begin_stop, end_stop},
    {rt_nogc_enter, rt_nogc_leave},
    {rt_blocking_enter, rt_blocking_leave},
    {rt_thread_detach, attach_exact},
};
enum { STRETCH = 1 };

static int beginning;
static bool has_begun;

static void beginning_warned(const char *text, void *arg)
{
	(void)text;
	(void)arg;
	ck_assert(!has_begun);
	told++;
	if (told > 1)
		return;
	has_begun = true;
	must(begun[beginning].begin());
}

static void end_begun(void)
{
	has_begun = false; // the function that ends it may warn
	must(begun[beginning].end());
}

// Two warnings are due.  The handler of the first one begins something, so the
// second one waits for a later call.
TEST(no_warn_handler_runs_in_what_another_has_begun, .n = RT_ARRAY_LEN(begun))
{
	int64_t many;

	beginning = _i;
	scanned_begin(false);
	many = (int64_t)sysmem_max_mappings();
	must(rt_set_warn_handler(beginning_warned, NULL));
	must(rt_set_memory_limit(0, NULL));
	while (!pacer_warning_due())
		ck_assert_ptr_nonnull(rt_alloc_noscan_uninit(40000));
	sysmem_count_mappings(many);
	ck_assert(sysmem_warning_due());
	(void)rt_alloc_noscan(40000);
	sysmem_count_mappings(-many);
	ck_assert_uint_eq(told, 1);
	ck_assert(has_begun);
	end_begun();
	must(rt_gc());
	ck_assert_uint_ge(told, 2);
	heap_healthy();
}

static unsigned ready;

static void count_ready(size_t n, void *arg)
{
	(void)arg;
	ck_assert_uint_eq(n, 1);
	ready++;
}

static void detaching_warned(const char *text, void *arg)
{
	if (told != 0 || !strstr(text, arg))
		return;
	told++;
	must(rt_thread_detach());
}

// The warn handler is told that many dead objects wait, and begins a no-GC
// stretch.  The ready callback waits for the end of the stretch.
TEST(no_ready_callback_runs_in_what_a_handler_has_begun)
{
	int kind;

	beginning = STRETCH;
	scanned_begin(false);
	must(rt_thread_detach());
	must(rt_thread_attach(RT_THREAD_EXACT));
	kind = kind_make(.layout = RT_LAYOUT_NONE, .drop = drop_nothing,
			 .flags = RT_KIND_DROP);
	must(rt_set_warn_handler(beginning_warned, NULL));
	must(rt_set_finalize_mode(RT_FINALIZE_MANUAL, count_ready, NULL));
	ck_assert_ptr_nonnull(rt_alloc_kind(kind, 64));
	// As if there were many.
	atomic_u64_store_relaxed(&dropnews.waited, 1);
	must(rt_gc());
	ck_assert(has_begun);
	ck_assert_uint_eq(ready, 0);
	end_begun();
	ck_assert_ptr_nonnull(rt_alloc_noscan(40000));
	ck_assert_uint_eq(ready, 1);
	heap_healthy();
}

// A collection finds a dead object, and something to warn of.  The warn handler
// detaches the thread, so the ready callback waits for another call.
TEST(after_a_handler_that_left_no_callback_is_called)
{
	scanned_begin(false);
	must(rt_thread_detach());
	must(rt_thread_attach(RT_THREAD_EXACT));
	must(rt_set_finalize_mode(RT_FINALIZE_MANUAL, count_ready, NULL));
	ck_assert_ptr_nonnull(rt_alloc_kind(kind_make(.layout = RT_LAYOUT_NONE,
						      .drop = drop_nothing,
						      .flags = RT_KIND_DROP),
					    64));
	must(rt_set_warn_handler(detaching_warned, "memory limit"));
	must(rt_set_memory_limit(0, NULL));
	while (!pacer_warning_due())
		ck_assert_ptr_nonnull(rt_alloc_noscan_uninit(40000));
	must(rt_gc());
	ck_assert_uint_eq(told, 1);
	ck_assert_uint_eq(ready, 0);
	must(rt_thread_attach(RT_THREAD_EXACT));
	must(rt_gc());
	ck_assert_uint_eq(ready, 1);
}

static void *allocate_meanwhile(void *arg)
{
	uintptr_t ok = rt_thread_attach(RT_THREAD_EXACT) == RT_OK;

	(void)arg;
	ok = ok && rt_alloc(16) && rt_gc() == RT_OK;
	ok = ok && rt_thread_detach() == RT_OK;
	return (void *)ok;
}

static int waiting_handler(size_t n, void *arg)
{
	(void)n;
	(void)arg;
	oom.calls++;
	oom.inner += !run_beside(allocate_meanwhile, NULL);
	return 0;
}

TEST(the_world_runs_while_the_handler_does)
{
	begin();
	handle_by(waiting_handler);
	ck_assert_ptr_null(too_much());
	ck_assert_uint_eq(oom.calls, 1);
	ck_assert_uint_eq(oom.inner, 0);
	heap_healthy();
}

// ---- every function, in a heap that is full ----

enum { LARGEST = 2000000, KEPT = 200 };

static char text[LARGEST];
static unsigned char *kept; // an object that rt_realloc is asked to enlarge
static int registered;
static void *many[3];
static const rt_type byte_type = {.struct_size = sizeof byte_type, .size = 1};

static char *strdup_of(size_t n)
{
	char *copy;

	text[n - 1] = 0;
	copy = rt_strdup(text);
	text[n - 1] = 'a';
	return copy;
}

#define BY(name, ...)                                                          \
	static void *by_##name(size_t n)                                       \
	{                                                                      \
		return __VA_ARGS__;                                            \
	}

BY(alloc, rt_alloc(n))
BY(uninit, rt_alloc_noscan_uninit(n))
BY(of, rt_alloc_of(registered, n))
BY(of_call, (rt_alloc_of)(registered, n))
BY(kind_in, rt_alloc_kind_in(rt_thread_self(), registered, n))
BY(typed, rt_alloc_typed(&byte_type, n))
BY(array, rt_alloc_array(RT_WORDS, 8, n / 8 - 1, 8))
BY(aligned, rt_alloc_aligned(RT_WORDS, 64, n))
BY(many, rt_alloc_many(RT_WORDS, n, 3, many) != 0 ? many[0] : NULL)
BY(uncollectable, rt_alloc_uncollectable(RT_WORDS, n))
BY(memdup, rt_memdup(text, n))
BY(strdup, strdup_of(n))
BY(realloc, rt_realloc(RT_NOSCAN, kept, n))
BY(realloc_null, rt_realloc(RT_NOSCAN, NULL, n))

static void *(*const allocators[])(size_t n) = {
    by_alloc,  by_uninit, by_of,      by_of_call,      by_kind_in,
    by_typed,  by_array,  by_aligned, by_many,	       by_uncollectable,
    by_memdup, by_strdup, by_realloc, by_realloc_null,
};

// Small and large sizes that rt_alloc_aligned does not round up.
static const size_t requests[] = {512, 20480, LARGEST};

// kept_whole tells whether the object that should grow is as it was.
static bool kept_whole(void)
{
	for (unsigned i = 0; i < KEPT; i++)
		if (kept[i] != i)
			return false;
	return rt_size(kept) >= KEPT && rt_kind_of(kept) == RT_NOSCAN;
}

// fill_all leaves no page free.
static void fill_all(void)
{
	handle_by(on_oom);
	fill_roots(1 << 20);
	fill_roots(8192);
	oom.calls = 0;
}

static void full_begin(void)
{
	begin();
	memset(text, 'a', sizeof text);
	ck_assert_int_eq(rt_roots_add(&kept, &kept + 1, RT_ROOT_EXACT), RT_OK);
	registered = kind_make(.layout = RT_LAYOUT_WORDS);
	kept = rt_alloc_noscan(KEPT);
	ck_assert_ptr_nonnull(kept);
	for (unsigned i = 0; i < KEPT; i++)
		kept[i] = (unsigned char)i;
	// The bits for types are made before statistics are compared.
	ck_assert_ptr_nonnull(rt_alloc_typed(&byte_type, 1));
	fill_all();
}

GROUP(full, .timeout = 60);

TEST(every_function_asks_the_handler, .n = RT_ARRAY_LEN(allocators))
{
	full_begin();
	for (size_t i = 0; i < RT_ARRAY_LEN(requests); i++) {
		rt_memstats before = heap_healthy();

		asked(allocators[_i](requests[i]), requests[i]);
		ck_assert(kept_whole());
		nothing_taken(&before);
	}
}

TEST(every_function_gets_what_the_handler_frees, .n = RT_ARRAY_LEN(allocators))
{
	void *p;

	full_begin();
	for (size_t i = 0; i < RT_ARRAY_LEN(requests); i++) {
		oom.drops = true;
		oom.retries = 1;
		p = allocators[_i](requests[i]);
		ck_assert_ptr_nonnull(p);
		ck_assert_uint_ge(rt_size(p), requests[i]);
		ck_assert_uint_eq(oom.calls, 1);
		ck_assert_uint_eq(oom.n, requests[i]);
		heap_healthy();
		if (allocators[_i] == by_realloc)
			kept = p;
		ck_assert(kept_whole());
		fill_all();
	}
}

TEST(no_function_asks_in_a_stretch, .n = RT_ARRAY_LEN(allocators))
{
	full_begin();
	ck_assert_int_eq(rt_nogc_enter(), RT_OK);
	for (size_t i = 0; i < RT_ARRAY_LEN(requests); i++)
		ck_assert_ptr_null(allocators[_i](requests[i]));
	ck_assert_int_eq(rt_nogc_leave(), RT_OK);
	ck_assert_uint_eq(oom.calls, 0);
	ck_assert(kept_whole());
	heap_healthy();
}

// The handler is asked for the bytes that an alignment takes as well.
TEST(the_handler_is_told_of_aligned_bytes)
{
	full_begin();
	asked(rt_alloc_aligned(RT_WORDS, 8, 100), 104);
	asked(rt_alloc_aligned(RT_WORDS, 64, 100), 128);
	asked(rt_alloc_aligned(RT_WORDS, 4096, 100), 4096);
	heap_healthy();
}

// The handler is asked for the bytes of a list's array.
TEST(a_list_asks_the_handler)
{
	size_t n = 4711;

	begin();
	fill_all();
	fill_list(16);
	oom.calls = 0;
	ck_assert_ptr_null(rt_heap_list(RT_WORDS, NULL, NULL, &n));
	ck_assert_uint_eq(n, 4711);
	ck_assert_uint_eq(oom.calls, 1);
	ck_assert_uint_eq(oom.n, (list_len + 1) * sizeof(void *));
	ck_assert(list_whole());
	heap_healthy();
}
