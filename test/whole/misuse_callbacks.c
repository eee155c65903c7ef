// Every public function, called from inside each callback of the host, gives
// the answer that its header documents, waits for nothing, and leaves a whole
// heap.
#include "gc/mark/gain.h"
#include "gc/cycle/worker.h"
#include "gc/cycle/scavenger.h"

#include "test/whole/misuse.h"

static unsigned runs; // of run_doors

static void run_once(enum place place)
{
	if (runs++ == 0)
		run_doors(place);
}

// tell_no_object tells words that lead to no object, if there is a tracer.
static long tell_no_object(void)
{
	static const rt_value_format plain = RT_FORMAT_PLAIN;
	static const rt_value_format pair = RT_FORMAT_PAIR(7, 1);
	const uint64_t values[][2] = {
	    {(uintptr_t)object, 2}, {(uintptr_t)words, 1}, {0, 1}};
	rt_tracer *t = rt_tracer_self();

	if (!t)
		return NOTHING;
	rt_trace_name(t, NULL, RT_NO_INDEX);
	rt_trace_ptr(t, NULL);
	rt_trace_ptr(t, words);
	rt_trace_value(t, (uintptr_t)words, &plain);
	for (unsigned i = 0; i < RT_ARRAY_LEN(values); i++)
		rt_trace_pair(t, values[i], &pair);
	rt_trace_words(t, words, words);
	rt_trace_values(t, NULL, NULL, &plain);
	rt_trace_stack(t, NULL);
	return SOME;
}

// finish_run ends a test in which a callback ran.
static void finish_run(unsigned made)
{
	ck_assert_uint_ne(runs, 0);
	JUDGE("afterwards", rt_gc(), RT_OK);
	JUDGE("afterwards", some(rt_alloc(64)), SOME);
	heap_healthy();
	finish(made + 2);
}

GROUP(inside, .timeout = 60);

static void trace_doors(rt_tracer *t, void *obj, size_t size, void *arg)
{
	(void)size, (void)arg;
	run_once(COLLECTING);
	JUDGE("in a trace callback", tell_no_object(), SOME);
	JUDGE("without RT_KIND_ONCE", rt_trace_first(t), 0);
	rt_trace_ptr(t, *(void **)obj);
}

static void root_doors(rt_tracer *t, void *arg)
{
	(void)arg;
	run_once(COLLECTING);
	JUDGE("in a root callback", tell_no_object(), SOME);
	JUDGE("in a root callback", rt_trace_first(t), 0);
}

static size_t describe_doors(const void *obj, size_t size, char *buf, size_t n,
			     void *arg)
{
	(void)obj, (void)size, (void)buf, (void)n, (void)arg;
	run_once(COLLECTING);
	JUDGE("in a describe callback", tell_no_object(), NOTHING);
	return 0;
}

// keep makes an object of a kind.  The object refers to another one.
static void keep(int kind)
{
	uintptr_t *p = rt_alloc_kind(kind, 32);

	ck_assert_ptr_nonnull(p);
	p[0] = (uintptr_t)rt_alloc(64);
	*(void **)object = p;
}

TEST(in_a_trace_callback)
{
	begin();
	keep(kind_make(.layout = RT_LAYOUT_TRACE, .trace = trace_doors));
	must(rt_gc());
	finish_run(2 * (DOORS - 5));
}

TEST(in_a_trace_callback_of_a_type)
{
	static const rt_type type =
	    RT_TYPE_INIT(16, 0, NULL, 0, 0, NULL, NULL, trace_doors, NULL, NULL,
			 NULL, NULL, 0);

	begin();
	keep(kind_make(.layout = RT_LAYOUT_TYPE, .type = &type));
	must(rt_gc());
	finish_run(2 * (DOORS - 5));
}

TEST(in_a_root_callback)
{
	begin();
	must(rt_roots_add_fn(root_doors, NULL, NULL));
	must(rt_gc());
	finish_run(2 * (DOORS - 5));
}

static void keep_quiet(const char *text, void *arg)
{
	(void)text, (void)arg;
}

static void begin_tracecheck(void)
{
	rt_config c = config_of_test();

	c.tracecheck = 1;
	heap_start(c);
	object = rt_alloc(OBJECT);
	stack = rt_stack_alloc(STACK);
	must(rt_roots_add(&object, &object + 1, RT_ROOT_EXACT));
}

// tracecheck reports the reference that the callback does not tell.
TEST(in_a_describe_callback)
{
	begin_tracecheck();
	must(rt_set_warn_handler(keep_quiet, NULL));
	keep(kind_make(.layout = RT_LAYOUT_TRACE, .trace = trace_nothing,
		       .describe = describe_doors));
	must(rt_gc());
	finish_run(2 * (DOORS - 5));
}

// ---- when a thread of the library begins ----

static void start_doors(void *arg)
{
	JUDGE("in gc_thread_start", arg == words, 1);
	JUDGE("in gc_thread_start", some(rt_thread_self()), NOTHING);
	JUDGE("in gc_thread_start", tell_no_object(), NOTHING);
	run_once(BEGINNING);
}

TEST(in_a_thread_that_begins, .n = 2)
{
	rt_config c = config_of_test();

	c.max_procs = 2;
	c.gc_period_s = 255; // so that growth makes the other thread
	c.gc_thread_start = start_doors;
	c.gc_thread_arg = words;
	begin_as(c);
	if (_i == 0)
		worker_provide(proc_self(), true);
	else
		scavenger_grew(proc_self(), 64 << 20);
	finish_run(2 * (DOORS - 1) + 3);
}

// ---- on a helper ----

enum { NODES = 20000 / HEAP_CUT };

static atomic_u32 helped;

static void judge_helper(rt_tracer *t)
{
	run_once(HELPING);
	JUDGE("in a helper's callback", tell_no_object(), SOME);
	JUDGE("in a helper's callback", rt_tracer_self() == t, 1);
	JUDGE("in a helper's callback", rt_trace_first(t), 0);
}

static void trace_as_helper(rt_tracer *t, void *obj, size_t size, void *arg)
{
	(void)size, (void)arg;
	if (!rt_thread_self() && atomic_u32_add_relaxed(&helped, 1) == 1)
		judge_helper(t);
	rt_trace_ptr(t, *(void **)obj);
}

// make_nodes makes an array of objects with callbacks.
static void make_nodes(void)
{
	int kind =
	    kind_make(.layout = RT_LAYOUT_TRACE, .trace = trace_as_helper);
	void **array = rt_alloc(NODES * sizeof *array);

	ck_assert_ptr_nonnull(array);
	*(void **)object = array;
	for (unsigned i = 0; i < NODES; i++) {
		array[i] = rt_alloc_kind(kind, 32);
		ck_assert_ptr_nonnull(array[i]);
	}
}

TEST(in_a_trace_callback_on_a_helper,
     .unless = SUITE_UNLESS(HEAP_CUT != 1, "a small heap calls no helper"))
{
	rt_config c = config_of_test();

	c.gc_threads = 1;
	c.max_procs = 2;
	heap_start(c);
	gain = (struct gain){.interval = UINT32_MAX}; // helpers are called
	object = rt_alloc(OBJECT);
	stack = rt_stack_alloc(STACK);
	must(rt_roots_add(&object, &object + 1, RT_ROOT_EXACT));
	make_nodes();
	// If no helper ever comes, the timeout of the group fails the test.
	while (atomic_u32_load_relaxed(&helped) == 0)
		must(rt_gc());
	finish_run(DOORS);
}

// ---- in a destructor, in a pick ----

static int dropped_kind;

static void drop_doors(void *obj, size_t size, void *arg)
{
	(void)obj, (void)size, (void)arg;
	run_once(ATTACHED);
	JUDGE("in a destructor", rt_drop_now(dropped_kind, NULL, NULL),
	      RT_EBUSY);
	JUDGE("in a destructor", rt_thread_detach(), RT_EBUSY);
	JUDGE("in a destructor", rt_fini(), RT_EBUSY);
	JUDGE("in a destructor", (long)rt_run_finalizers(0), 0);
}

static int pick_doors(const void *obj, size_t size, void *arg)
{
	(void)obj, (void)size, (void)arg;
	run_once(OWN_STOP);
	JUDGE("in a pick", rt_drop_now(dropped_kind, NULL, NULL), RT_EBUSY);
	JUDGE("in a pick", rt_start_the_world(NULL), RT_EPERM);
	return 1;
}

static void make_dropped(unsigned n, rt_drop_fn *drop)
{
	begin();
	dropped_kind = kind_make(.layout = RT_LAYOUT_NONE,
				 .flags = RT_KIND_DROP, .drop = drop);
	for (unsigned i = 0; i < n; i++)
		ck_assert_ptr_nonnull(rt_alloc_kind(dropped_kind, 64));
}

TEST(in_a_destructor)
{
	make_dropped(1, drop_doors);
	must(rt_drop_now(dropped_kind, NULL, NULL));
	finish_run(2 * (DOORS - 5) + 4);
}

TEST(in_a_pick_of_rt_drop_now)
{
	make_dropped(3, drop_nothing);
	must(rt_drop_now(dropped_kind, pick_doors, NULL));
	ck_assert_uint_eq(runs, 3);
	finish_run(2 * (DOORS - 1) + 3 * 2);
}

TEST(in_a_pick_of_rt_heap_list)
{
	size_t n;

	make_dropped(3, drop_nothing);
	ck_assert_ptr_nonnull(rt_heap_list(dropped_kind, pick_doors, NULL, &n));
	finish_run(2 * (DOORS - 1) + 3 * 2);
}

// ---- in the handlers, and in the ready callback ----
//
// They run on an attached thread with the world running, so each function
// answers as it does outside a callback.

static void by_gc(void)
{
	must(rt_gc());
}

// by_allocation allocates until a collection has run and has called the
// callback.
static void by_allocation(void)
{
	for (unsigned i = 0; runs == 0 && i < 1000; i++)
		ck_assert_ptr_nonnull(rt_alloc(40000));
}

static void (*const collects[])(void) = {by_gc, by_allocation};

enum { DEAD = 8 };

static unsigned dropped;

static void count_drop(void *obj, size_t size, void *arg)
{
	(void)obj, (void)size, (void)arg;
	dropped++;
}

static void ready_doors(size_t n, void *arg)
{
	if (runs != 0)
		return;
	JUDGE("in the ready callback", n >= 1 && n <= DEAD, 1);
	JUDGE("in the ready callback", arg == &dropped, 1);
	JUDGE("in the ready callback", (rt_safepoint(), dropped), 0);
	JUDGE("in the ready callback", (long)rt_run_finalizers(0), 0);
	JUDGE("in the ready callback", rt_drop_now(dropped_kind, NULL, NULL),
	      RT_EBUSY);
	waiting = true;
	run_once(ATTACHED);
	waiting = false;
	JUDGE("in the ready callback", dropped, 0);
}

// make_dead makes objects to which no stack refers later.
static void *make_dead(void *arg)
{
	must(rt_thread_attach(0));
	for (unsigned i = 0; i < DEAD; i++)
		ck_assert_ptr_nonnull(rt_alloc_kind(dropped_kind, 64));
	must(rt_thread_detach());
	return arg;
}

TEST(in_the_ready_callback, .n = RT_ARRAY_LEN(collects))
{
	make_dropped(0, count_drop);
	must(rt_set_finalize_mode(RT_FINALIZE_POLL, ready_doors, &dropped));
	run_beside(make_dead, NULL);
	collects[_i]();
	finish_run(2 * (DOORS - 5) + 6);
}

static void warn_doors(const char *text, void *arg)
{
	if (!strstr(text, arg))
		return;
	// If a limit cannot be kept, rt_alloc_many ends early.
	if (runs == 0)
		must(rt_set_memory_limit(INT64_MAX, NULL));
	run_once(ATTACHED);
}

static char of_limit[] = "memory limit", of_trace[] = "untold reference";

TEST(in_the_warn_handler, .n = RT_ARRAY_LEN(collects))
{
	begin();
	must(rt_set_warn_handler(warn_doors, of_limit));
	must(rt_set_memory_limit(0, NULL));
	collects[_i]();
	finish_run(2 * (DOORS - 5));
}

TEST(in_the_warn_handler_by_tracecheck, .n = RT_ARRAY_LEN(collects))
{
	begin_tracecheck();
	must(rt_set_warn_handler(warn_doors, of_trace));
	keep(kind_make(.layout = RT_LAYOUT_TRACE, .trace = trace_nothing));
	collects[_i]();
	finish_run(2 * (DOORS - 5));
}

// The bytes of the whole range.  Some are in use, so a request for all fails.
enum { TOO_MUCH = 256 << 20 };

static int oom_doors(size_t n, void *arg)
{
	(void)arg;
	JUDGE("in the out-of-memory handler", (long)n, TOO_MUCH);
	run_once(ATTACHED);
	return 0;
}

static void *large_object(void)
{
	return rt_alloc(TOO_MUCH);
}

static void *large_stack(void)
{
	return rt_stack_alloc(TOO_MUCH);
}

static void *larger_object(void)
{
	return rt_realloc(RT_WORDS, object, TOO_MUCH);
}

static void *large_uncollectable(void)
{
	return rt_alloc_uncollectable(RT_WORDS, TOO_MUCH);
}

static void *(*const too_large[])(void) = {large_object, large_stack,
					   larger_object, large_uncollectable};

TEST(in_the_out_of_memory_handler, .n = RT_ARRAY_LEN(too_large))
{
	begin();
	must(rt_set_oom_handler(oom_doors, NULL));
	JUDGE("without memory", some(too_large[_i]()), NOTHING);
	JUDGE("a refused object", (long)rt_size(object), OBJECT);
	finish_run(2 * (DOORS - 5) + 3);
}
