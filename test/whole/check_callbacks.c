// A function of the library is called in a callback that must not call it.  It
// gives the answer that its header documents, and changes nothing.  A debug
// build also names the function and the callback.
#include "test/harness/kind.h"

#include <setjmp.h>
#include <stdio.h>
#include <unistd.h>

// The sorts of callbacks.  Each has rules of its own.
enum rules { COLLECTING, STOPPED, DROPPING, RULES };

// The first MARKING callbacks of the table run in a collection.
enum { MARKING = 8 };

enum { ALLOWED = 1000, LINE = 200, SMALL_HEAP = 64 << 20 };

static void *object;
static rt_handle *handle;
static rt_stack *host_stack;
static void *own_stack;
static uint64_t words[8];
static int dropped_kind; // has a destructor

// ---- the functions ----

static long some(const void *p)
{
	return p != NULL;
}

static const uint64_t first_word[] = {1};
static const rt_type plain_type = {.struct_size = sizeof(rt_type),
				   .size = 24,
				   .ptrdata = 8,
				   .bitmap = first_word};

static int nothing_walk(void *obj, size_t size, int kind, void *arg)
{
	(void)obj, (void)size, (void)kind, (void)arg;
	return 0;
}

static void *same(void *arg)
{
	return arg;
}

#define CALL(name, ...)                                                        \
	static long call_##name(void)                                          \
	{                                                                      \
		return (long)(__VA_ARGS__);                                    \
	}

CALL(alloc, some(rt_alloc(64)))
CALL(alloc_large, some(rt_alloc(100000)))
CALL(alloc_noscan, some(rt_alloc_noscan(24)))
CALL(alloc_kind, some(rt_alloc_kind(dropped_kind, 64)))
CALL(alloc_aligned, some(rt_alloc_aligned(RT_WORDS, 64, 100)))
CALL(alloc_many, rt_alloc_many(RT_WORDS, 64, 1, (void **)words))
CALL(alloc_typed, some(rt_alloc_typed(&plain_type, 1)))
CALL(alloc_uncollectable, some(rt_alloc_uncollectable(RT_WORDS, 64)))
CALL(realloc, some(rt_realloc(RT_WORDS, object, 4096)))
CALL(strdup, some(rt_strdup("text")))
CALL(stack_alloc, some(rt_stack_alloc(4096)))
CALL(handle_new, some(rt_handle_new(object)))
CALL(heap_list, some(rt_heap_list(RT_WORDS, NULL, NULL, (size_t *)words)))
CALL(run_finalizers, rt_run_finalizers(0))
CALL(free, rt_free(object))
CALL(resize, rt_resize(object, 64))
CALL(stack_free, rt_stack_free(own_stack, 4096))
CALL(kind_register, rt_kind_register(&kind_desc(.layout = RT_LAYOUT_WORDS)))
CALL(kind_unregister, rt_kind_unregister(dropped_kind))
CALL(set_finalize_mode, rt_set_finalize_mode(RT_FINALIZE_MANUAL, NULL, NULL))
CALL(drop_now, rt_drop_now(dropped_kind, NULL, NULL))
CALL(safepoint, (rt_safepoint(), 0))
CALL(fork_prepare, rt_fork_prepare())
CALL(thread_attach, rt_thread_attach(0))
CALL(thread_attach_stack,
     rt_thread_attach_stack((void *)8, (void *)UINTPTR_MAX, 0))
CALL(thread_detach, rt_thread_detach())
CALL(thread_set_stack, rt_thread_set_stack(words, words + 8))
CALL(thread_set_stack_of,
     rt_thread_set_stack_of(rt_thread_self(), words, words + 8))
CALL(fini, rt_fini())
CALL(init, rt_init(NULL))
CALL(gc, rt_gc())
CALL(free_os_memory, rt_free_os_memory())
CALL(gc_percent, rt_set_gc_percent(100, NULL))
CALL(heap_min, rt_set_heap_min(1 << 20, NULL))
CALL(memory_limit, rt_set_memory_limit(INT64_MAX, NULL))
CALL(heap_max, rt_set_heap_max(0, NULL))
CALL(adjust_external, rt_adjust_external(1))
CALL(oom_handler, rt_set_oom_handler(NULL, NULL))
CALL(warn_handler, rt_set_warn_handler(NULL, NULL))
CALL(fatal_handler, rt_set_fatal_handler(NULL, NULL))
CALL(double_check, rt_set_memstats_double_check(RT_CHECK_FATAL))
CALL(stop, rt_stop_the_world(RT_STOP_HOST))
CALL(start, rt_start_the_world(NULL))
CALL(walk, rt_heap_walk(nothing_walk, NULL))
CALL(blocking_enter, rt_blocking_enter())
CALL(call_blocking, rt_call_blocking(same, words) == words)
CALL(roots_add, rt_roots_add(words, words + 8, RT_ROOT_WORDS))
CALL(roots_name, rt_roots_name(&object, &object + 1, "object"))
CALL(roots_remove, rt_roots_remove(&object, &object + 1))
CALL(roots_add_fn, rt_roots_add_fn(tell_nothing, words, "none"))
CALL(roots_remove_fn, rt_roots_remove_fn(tell_nothing, NULL))
CALL(roots_static, rt_roots_static(1))
CALL(handle_free, rt_handle_free(handle))
CALL(stack_unregister, rt_stack_unregister(host_stack))
CALL(stack_move, rt_stack_move(host_stack, words, words + 8))

static long call_verify(void)
{
	static struct rt_verify v;

	return rt_heap_verify(&v);
}

static long call_memstats(void)
{
	static rt_memstats m;

	return rt_read_memstats(&m);
}

static long call_stack_register(void)
{
	rt_stack_desc d;
	rt_stack *s;

	rt_stack_desc_init(&d);
	d.lo = words;
	d.hi = words + 8;
	return rt_stack_register(&d, &s);
}

// A function, its name in a message, and its answer under each of the rules.
static const struct function {
	const char *name;
	long (*call)(void);
	long want[RULES];
} functions[] = {
#define SUPPLIES                                                               \
	{                                                                      \
		0, 0, ALLOWED                                                  \
	}
#define REFUSES                                                                \
	{                                                                      \
		RT_EBUSY, RT_EBUSY, ALLOWED                                    \
	}
#define NEVER                                                                  \
	{                                                                      \
		RT_EBUSY, RT_EBUSY, RT_EBUSY                                   \
	}
#define NOT_COLLECTING                                                         \
	{                                                                      \
		RT_EBUSY, ALLOWED, ALLOWED                                     \
	}
    {"an allocation", call_alloc, SUPPLIES},
    {"an allocation", call_alloc_large, SUPPLIES},
    {"an allocation", call_alloc_noscan, SUPPLIES},
    {"an allocation", call_alloc_kind, SUPPLIES},
    {"an allocation", call_alloc_aligned, SUPPLIES},
    {"an allocation", call_alloc_many, SUPPLIES},
    {"an allocation", call_strdup, SUPPLIES},
    {"rt_alloc_typed", call_alloc_typed, SUPPLIES},
    {"rt_alloc_uncollectable", call_alloc_uncollectable, SUPPLIES},
    {"rt_realloc", call_realloc, SUPPLIES},
    {"rt_stack_alloc", call_stack_alloc, SUPPLIES},
    {"rt_handle_new", call_handle_new, SUPPLIES},
    {"rt_heap_list", call_heap_list, SUPPLIES},
    {"rt_run_finalizers", call_run_finalizers, SUPPLIES},
    {"rt_safepoint", call_safepoint, {0, ALLOWED, ALLOWED}},
    {"rt_fork_prepare", call_fork_prepare, NOT_COLLECTING},
    {"rt_thread_attach", call_thread_attach, NOT_COLLECTING},
    {"rt_thread_attach_stack", call_thread_attach_stack, NOT_COLLECTING},
    {"rt_free", call_free, REFUSES},
    {"rt_resize", call_resize, REFUSES},
    {"rt_stack_free", call_stack_free, REFUSES},
    {"rt_kind_register", call_kind_register, REFUSES},
    {"rt_kind_unregister", call_kind_unregister, REFUSES},
    {"rt_set_finalize_mode", call_set_finalize_mode, REFUSES},
    {"rt_drop_now", call_drop_now, NEVER},
    {"rt_thread_detach", call_thread_detach, NEVER},
    {"rt_fini", call_fini, NEVER},
    {"rt_thread_set_stack", call_thread_set_stack, REFUSES},
    {"rt_init", call_init, {RT_ESTATE, RT_ESTATE, RT_ESTATE}},
    {"rt_gc", call_gc, REFUSES},
    {"rt_gc", call_free_os_memory, REFUSES},
    {"rt_set_gc_percent", call_gc_percent, REFUSES},
    {"rt_set_heap_min", call_heap_min, REFUSES},
    {"rt_set_memory_limit", call_memory_limit, REFUSES},
    {"rt_set_heap_max", call_heap_max, REFUSES},
    {"rt_adjust_external", call_adjust_external, REFUSES},
    {"rt_set_oom_handler", call_oom_handler, REFUSES},
    {"rt_set_warn_handler", call_warn_handler, REFUSES},
    {"rt_set_fatal_handler", call_fatal_handler, REFUSES},
    {"rt_set_memstats_double_check", call_double_check, REFUSES},
    {"rt_stop_the_world", call_stop, REFUSES},
    {"rt_start_the_world", call_start, {RT_EPERM, RT_EPERM, ALLOWED}},
    {"rt_heap_walk", call_walk, NOT_COLLECTING},
    {"rt_heap_verify", call_verify, NOT_COLLECTING},
    {"rt_read_memstats", call_memstats, NOT_COLLECTING},
    {"rt_blocking_enter", call_blocking_enter, REFUSES},
    // rt_call_blocking calls its function in any case.
    {"rt_blocking_enter", call_call_blocking, {1, 1, ALLOWED}},
    {"rt_roots_add", call_roots_add, REFUSES},
    {"rt_roots_name", call_roots_name, REFUSES},
    {"rt_roots_remove", call_roots_remove, REFUSES},
    {"rt_roots_add_fn", call_roots_add_fn, REFUSES},
    {"rt_roots_remove_fn", call_roots_remove_fn, REFUSES},
    {"rt_roots_static", call_roots_static, REFUSES},
    {"rt_handle_free", call_handle_free, REFUSES},
    {"rt_stack_register", call_stack_register, REFUSES},
    {"rt_stack_unregister", call_stack_unregister, REFUSES},
    {"rt_stack_move", call_stack_move, REFUSES},
    {"rt_thread_set_stack_of",
     call_thread_set_stack_of,
     {RT_EPERM, RT_EPERM, RT_EPERM}},
#undef SUPPLIES
#undef REFUSES
#undef NEVER
#undef NOT_COLLECTING
};

// ---- what a callback calls ----

// The callback under test, and what it got.
static struct {
	enum rules rules;
	bool root; // a root callback may set stacks of threads
	bool done;
	long got[RT_ARRAY_LEN(functions)];
	char said[RT_ARRAY_LEN(functions)][LINE];
} run;

// wants tells whether a callback must not call a function.
static bool wants(const struct function *f)
{
	return f->want[run.rules] != ALLOWED &&
	       !(run.root && f->call == call_thread_set_stack_of);
}

// hear makes a call with stderr in a file, and keeps what was written there.
static long hear(long (*call)(void), char said[LINE])
{
	FILE *file = tmpfile();
	int real = dup(STDERR_FILENO);
	long got;

	ck_assert(file && real >= 0);
	ck_assert_int_ge(dup2(fileno(file), STDERR_FILENO), 0);
	got = call();
	dup2(real, STDERR_FILENO);
	close(real);
	ck_assert_int_ge(pread(fileno(file), said, LINE - 1, 0), 0);
	fclose(file);
	return got;
}

// call_all calls each function that the callback must not call.  It does so
// only in the first call of the callback.
static void call_all(void)
{
	if (run.done)
		return;
	run.done = true;
	for (size_t i = 0; i < RT_ARRAY_LEN(functions); i++)
		if (wants(&functions[i]))
			run.got[i] = hear(functions[i].call, run.said[i]);
}

// ---- the callbacks ----

static void in_trace(rt_tracer *t, void *obj, size_t size, void *arg)
{
	(void)t, (void)obj, (void)size, (void)arg;
	call_all();
}

static void in_roots(rt_tracer *t, void *arg)
{
	(void)t, (void)arg;
	call_all();
}

static size_t in_describe(const void *obj, size_t size, char *buf, size_t n,
			  void *arg)
{
	(void)obj, (void)size, (void)buf, (void)n, (void)arg;
	call_all();
	return 0;
}

static void in_drop(void *obj, size_t size, void *arg)
{
	(void)obj, (void)size, (void)arg;
	call_all();
}

static int in_pick(const void *obj, size_t size, void *arg)
{
	(void)obj, (void)size, (void)arg;
	call_all();
	return 1;
}

static int in_walk(void *obj, size_t size, int kind, void *arg)
{
	(void)obj, (void)size, (void)kind, (void)arg;
	call_all();
	return RT_WALK_STOP;
}

static const rt_type named_type =
    RT_TYPE_INIT(16, 0, NULL, 0, 0, NULL, NULL, in_trace, in_drop, in_describe,
		 NULL, "Named", 0);
static const rt_type nameless_type =
    RT_TYPE_INIT(16, 0, NULL, 0, 0, NULL, NULL, in_trace, in_drop, in_describe,
		 NULL, NULL, 0);

// How a collection comes about.
static void (*collect)(void);

static void collect_now(void)
{
	must(rt_gc());
}

// await_period waits until the background thread has collected.
static void await_period(void)
{
	rt_cycle c = {.number = 0};
	uint64_t before;

	rt_read_cycle(0, &c);
	before = c.number;
	must(rt_blocking_enter());
	while (c.number == before) {
		usleep(1000);
		rt_read_cycle(0, &c);
	}
	must(rt_blocking_leave());
	ck_assert_uint_eq(c.cause, RT_CAUSE_PERIODIC);
}

// collect_object makes an object of a kind, collects, and runs destructors.  If
// the kind has a destructor the object is garbage, otherwise a root keeps it.
static void collect_object(rt_kind_desc d)
{
	int kind = kind_make_of(&d);
	uintptr_t *p = rt_alloc_kind(kind, 32);

	ck_assert_ptr_nonnull(p);
	words[0] = d.flags & RT_KIND_DROP ? 0 : (uintptr_t)p;
	// No callback tells of this reference, so tracecheck describes the
	// object.
	if (words[0])
		p[2] = (uintptr_t)rt_alloc_noscan(64);
	collect();
	words[0] = 0;
	rt_run_finalizers(0);
}

static void by_kind(void)
{
	collect_object(kind_desc(.name = "Table", .layout = RT_LAYOUT_TRACE,
				 .trace = in_trace));
}

static void by_kind_without_a_name(void)
{
	collect_object(kind_desc(.number = 7, .layout = RT_LAYOUT_TRACE,
				 .trace = in_trace));
}

static void by_type(void)
{
	collect_object(kind_desc(.name = "Table", .layout = RT_LAYOUT_TYPE,
				 .type = &named_type));
}

static void by_type_without_a_name(void)
{
	collect_object(kind_desc(.name = "Table", .layout = RT_LAYOUT_TYPE,
				 .type = &nameless_type));
}

static void by_roots(void)
{
	must(rt_roots_add_fn(in_roots, NULL, "globals"));
	collect();
}

static void by_roots_without_a_name(void)
{
	must(rt_roots_add_fn(in_roots, NULL, NULL));
	collect();
}

static void by_describe(void)
{
	collect_object(kind_desc(.name = "Table", .layout = RT_LAYOUT_TRACE,
				 .trace = trace_nothing,
				 .describe = in_describe));
}

static const rt_type described_type =
    RT_TYPE_INIT(16, 0, NULL, 0, 0, NULL, NULL, NULL, NULL, in_describe, NULL,
		 "Described", 0);

static void by_describe_of_a_type(void)
{
	collect_object(
	    kind_desc(.layout = RT_LAYOUT_TYPE, .type = &described_type));
}

static void by_drop(void)
{
	collect_object(kind_desc(.name = "File", .layout = RT_LAYOUT_NONE,
				 .flags = RT_KIND_DROP, .drop = in_drop));
}

static const rt_type dropped_type = RT_TYPE_INIT(
    16, 0, NULL, 0, 0, NULL, NULL, NULL, in_drop, NULL, NULL, "Dropped", 0);

static void by_drop_of_a_type(void)
{
	collect_object(kind_desc(.name = "File", .layout = RT_LAYOUT_TYPE,
				 .flags = RT_KIND_DROP, .type = &dropped_type));
}

static void by_pick(void)
{
	must(rt_drop_now(dropped_kind, in_pick, NULL));
}

static void by_pick_of_a_list(void)
{
	size_t n;

	ck_assert_ptr_nonnull(rt_heap_list(RT_WORDS, in_pick, NULL, &n));
}

static void by_walk(void)
{
	must(rt_heap_walk(in_walk, NULL));
}

// Each callback, and what a debug build calls it.
static const struct callback {
	void (*run)(void);
	enum rules rules;
	const char *what;
	uintptr_t code;
	const char *of;
} callbacks[] = {
#define CALLBACK(run, rules, what, fn, of)                                     \
	{                                                                      \
		run, rules, what, (uintptr_t)(fn), of                          \
	}
    CALLBACK(by_kind, COLLECTING, "trace callback", in_trace,
	     " of kind Table\n"),
    CALLBACK(by_kind_without_a_name, COLLECTING, "trace callback", in_trace,
	     " of kind 7\n"),
    CALLBACK(by_type, COLLECTING, "trace callback", in_trace,
	     " of type Named\n"),
    CALLBACK(by_type_without_a_name, COLLECTING, "trace callback", in_trace,
	     " of kind Table\n"),
    CALLBACK(by_roots, COLLECTING, "root callback", in_roots, " globals\n"),
    CALLBACK(by_roots_without_a_name, COLLECTING, "root callback", in_roots,
	     "\n"),
    CALLBACK(by_describe, COLLECTING, "describe callback", in_describe,
	     " of kind Table\n"),
    CALLBACK(by_describe_of_a_type, COLLECTING, "describe callback",
	     in_describe, " of type Described\n"),
    CALLBACK(by_drop, DROPPING, "destructor", in_drop, " of kind File\n"),
    CALLBACK(by_drop_of_a_type, DROPPING, "destructor", in_drop,
	     " of type Dropped\n"),
    CALLBACK(by_pick, STOPPED, "pick callback", in_pick, "\n"),
    CALLBACK(by_pick_of_a_list, STOPPED, "pick callback", in_pick, "\n"),
    CALLBACK(by_walk, STOPPED, "walk callback", in_walk, "\n"),
#undef CALLBACK
};

static void be_quiet(const char *text, void *arg)
{
	(void)text, (void)arg;
}

static void setup_as(rt_config c)
{
	static uint64_t memory[8];
	rt_stack_desc d;

	c.tracecheck = 1;
	c.max_heap = SMALL_HEAP;
	must(rt_set_warn_handler(be_quiet, NULL));
	heap_start_exact(c);
	must(rt_roots_add(words, words + 8, RT_ROOT_EXACT));
	object = rt_alloc(64);
	must(rt_roots_add(&object, &object + 1, RT_ROOT_EXACT));
	handle = rt_handle_new(object);
	own_stack = rt_stack_alloc(4096);
	rt_stack_desc_init(&d);
	d.lo = memory;
	d.hi = memory + 8;
	must(rt_stack_register(&d, &host_stack));
	dropped_kind = kind_make(.layout = RT_LAYOUT_NONE,
				 .flags = RT_KIND_DROP, .drop = drop_nothing);
	ck_assert_ptr_nonnull(rt_alloc_kind(dropped_kind, 64));
}

static void setup(void)
{
	collect = collect_now;
	setup_as(heap_config(HEAP_QUIET));
}

// setup_period has the background thread collect each second.
static void setup_period(void)
{
	rt_config c = heap_config(100);

	collect = await_period;
	c.gc_period_s = 1;
	c.gc_threads = 1;
	c.heap_min = 32 << 20;
	setup_as(c);
	ck_assert_ptr_nonnull(rt_alloc_noscan(5 << 20)); // makes the thread
}

// judge_line requires that a debug build has named the function and the
// callback, and that any other build has written nothing.
static void judge_line(const struct callback *c, const char *name,
		       const char *said)
{
	char want[LINE] = "";

	if (RT_DEBUG_BUILD)
		snprintf(want, sizeof want,
			 "rtheap: %s must not be called in the %s at 0x%lx%s",
			 name, c->what, (unsigned long)c->code, c->of);
	ck_assert_str_eq(said, want);
}

GROUP(callbacks, .setup = setup, .timeout = 60);

static void judge_callback(const struct callback *c)
{
	rt_memstats before, after;

	run.rules = c->rules;
	run.root = c->code == (uintptr_t)in_roots;
	c->run();
	ck_assert(run.done);
	for (size_t i = 0; i < RT_ARRAY_LEN(functions); i++) {
		const struct function *f = &functions[i];

		if (!wants(f))
			continue;
		ck_assert_msg(run.got[i] == f->want[c->rules],
			      "%zu, %s: %ld, not %ld", i, f->name, run.got[i],
			      f->want[c->rules]);
		judge_line(c, f->name, run.said[i]);
	}
	before = heap_stats();
	heap_live();
	after = heap_stats();
	ck_assert_uint_eq(before.mallocs, after.mallocs);
	ck_assert_int_eq(rt_fini(), RT_OK);
}

TEST(each_function_in_each_callback, .n = RT_ARRAY_LEN(callbacks))
{
	judge_callback(&callbacks[_i]);
}

// After a callback, no message names it.
TEST(no_callback_is_named_afterwards, .n = RT_ARRAY_LEN(callbacks))
{
	char said[LINE] = "";

	run.done = true;
	callbacks[_i].run();
	must(rt_stop_the_world(RT_STOP_HOST));
	ck_assert_int_eq(hear(call_gc, said), RT_EBUSY);
	ck_assert_str_eq(said, "");
	must(rt_start_the_world(NULL));
}

// ---- handlers ----

// The handler under test got these from a call that is refused everywhere.
static struct {
	unsigned calls;
	long got;
	char said[LINE];
	jmp_buf *away; // where an out-of-memory handler jumps to, or NULL
} handled;

static void hear_once(void)
{
	if (handled.calls++ == 0)
		handled.got = hear(call_start, handled.said);
}

static int in_oom(size_t n, void *arg)
{
	(void)n, (void)arg;
	hear_once();
	if (handled.away)
		longjmp(*handled.away, 1);
	return 0;
}

static void in_warn(const char *text, void *arg)
{
	(void)text, (void)arg;
	hear_once();
}

static void in_ready(size_t n, void *arg)
{
	(void)n, (void)arg;
	hear_once();
}

static void in_thread(void *arg)
{
	(void)arg;
	hear_once();
}

// by_oom needs more than the heap may have.
static void by_oom(void)
{
	rt_set_oom_handler(in_oom, NULL);
	words[0] = (uintptr_t)rt_alloc_noscan_uninit(SMALL_HEAP / 8 * 5);
	ck_assert_uint_ne(words[0], 0);
	ck_assert_ptr_null(rt_alloc_noscan_uninit(SMALL_HEAP / 8 * 5));
}

static void by_warning(void)
{
	must(rt_set_warn_handler(in_warn, NULL));
	collect_object(
	    kind_desc(.layout = RT_LAYOUT_TRACE, .trace = trace_nothing));
}

static void by_ready(void)
{
	must(rt_set_finalize_mode(RT_FINALIZE_MANUAL, in_ready, NULL));
	must(rt_gc());
}

// by_thread makes a heap that grows, so that the library makes a thread.
static void by_thread(void)
{
	rt_config c = heap_config(100);

	must(rt_fini());
	c.gc_threads = 1;
	c.gc_period_s = UINT8_MAX;
	c.gc_thread_start = in_thread;
	setup_as(c);
	ck_assert_ptr_nonnull(rt_alloc_noscan(5 << 20));
}

static const struct callback handlers[] = {
    {by_oom, DROPPING, "out-of-memory handler", (uintptr_t)in_oom, "\n"},
    {by_warning, DROPPING, "warn handler", (uintptr_t)in_warn, "\n"},
    {by_ready, DROPPING, "ready callback", (uintptr_t)in_ready, "\n"},
    {by_thread, DROPPING, "thread callback", (uintptr_t)in_thread, "\n"},
};

GROUP(handlers, .setup = setup, .timeout = 60);

TEST(a_handler_is_named, .n = RT_ARRAY_LEN(handlers))
{
	const struct callback *c = &handlers[_i];
	char said[LINE] = "";

	c->run();
	ck_assert_uint_ne(handled.calls, 0);
	ck_assert_int_eq(handled.got, RT_EPERM);
	judge_line(c, "rt_start_the_world", handled.said);
	ck_assert_int_eq(hear(call_start, said), RT_EPERM);
	ck_assert_str_eq(said, "");
}

// No code of ours runs when a handler jumps away.
TEST(a_handler_that_was_left_is_not_named)
{
	char said[LINE] = "";
	jmp_buf away;

	handled.away = &away;
	if (setjmp(away) == 0)
		by_oom();
	ck_assert_uint_eq(handled.calls, 1);
	judge_line(&handlers[0], "rt_start_the_world", handled.said);
	ck_assert_int_eq(hear(call_start, said), RT_EPERM);
	ck_assert_str_eq(said, "");
}

// ---- what the ready callback must not do ----

static struct {
	long ran, now;
	char ran_said[LINE], now_said[LINE];
	size_t left;
} readied;

static void run_in_ready(size_t n, void *arg)
{
	(void)n, (void)arg;
	readied.ran = hear(call_run_finalizers, readied.ran_said);
	readied.now = hear(call_drop_now, readied.now_said);
	rt_safepoint();
	readied.left = rt_finalizers_ready();
}

static unsigned drops;

static void count_drop(void *obj, size_t size, void *arg)
{
	(void)obj, (void)size, (void)arg;
	drops++;
}

TEST(the_ready_callback_runs_no_destructor)
{
	struct callback c = {.what = "ready callback",
			     .code = (uintptr_t)run_in_ready,
			     .of = "\n"};
	int kind = kind_make(.layout = RT_LAYOUT_NONE, .flags = RT_KIND_DROP,
			     .drop = count_drop);

	must(rt_set_finalize_mode(RT_FINALIZE_POLL, run_in_ready, NULL));
	ck_assert_ptr_nonnull(rt_alloc_kind(kind, 64));
	must(rt_gc());
	ck_assert_uint_ge(readied.left, 1);
	ck_assert_uint_eq(drops, 0);
	ck_assert_int_eq(readied.ran, 0);
	judge_line(&c, "rt_run_finalizers", readied.ran_said);
	ck_assert_int_eq(readied.now, RT_EBUSY);
	judge_line(&c, "rt_drop_now", readied.now_said);
	// After the callback, destructors run.
	rt_safepoint();
	ck_assert_uint_eq(drops, 1);
}

// ---- on the background thread ----

GROUP(period, .setup = setup_period, .timeout = 60);

// A callback on the background thread gets the same answers as on a thread of
// the host that collects.
TEST(each_function_in_a_periodic_collection, .n = MARKING)
{
	ck_assert_int_eq(callbacks[_i].rules, COLLECTING);
	judge_callback(&callbacks[_i]);
}

// A root callback may set the stacks of threads.
static struct {
	rt_thread *thread;
	int set, got;
	void *lo, *hi;
} bounds;

static void set_bounds(rt_tracer *t, void *arg)
{
	(void)t, (void)arg;
	bounds.set = rt_thread_set_stack_of(bounds.thread, words, words + 8);
	bounds.got = rt_thread_stack(bounds.thread, &bounds.lo, &bounds.hi);
}

TEST(a_periodic_collection_asks_for_stacks)
{
	bounds.thread = rt_thread_self();
	bounds.set = bounds.got = -1;
	must(rt_roots_add_fn(set_bounds, NULL, "stacks"));
	await_period();
	ck_assert_int_eq(bounds.set, RT_OK);
	ck_assert_int_eq(bounds.got, RT_OK);
	ck_assert_ptr_eq(bounds.lo, words);
	ck_assert_ptr_eq(bounds.hi, words + 8);
}
