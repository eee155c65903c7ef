// Stretches in which a thread is not stopped (rt_nogc_enter), and rt_poll.
#include <stdio.h>
#include <sys/wait.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "runtime/os/sysmem.h"
#include "runtime/world/proc.h"
#include "test/harness/await.h"
#include "test/harness/kind.h"
#include "test/harness/thread.h"

enum { DEEPEST = RT_NOGC_NONE - 1 };

static void enter(void)
{
	ck_assert_int_eq(rt_nogc_enter(), RT_OK);
}

static void leave(void)
{
	ck_assert_int_eq(rt_nogc_leave(), RT_OK);
}

static uint32_t collections(void)
{
	rt_memstats m;

	ck_assert_int_eq(rt_read_memstats_live(&m), RT_OK);
	return m.num_gc;
}

// ---- where a stretch may begin and end ----

GROUP(depth, .timeout = 60);

TEST(stretches_nest_254_deep)
{
	heap_begin();
	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < DEEPEST; i++)
			enter();
		for (int i = 0; i < 3; i++)
			ck_assert_int_eq(rt_nogc_enter(), RT_ESTATE);
		ck_assert_int_eq(rt_gc(), RT_ESTATE);
		for (int i = 0; i < DEEPEST; i++)
			leave();
		for (int i = 0; i < 3; i++)
			ck_assert_int_eq(rt_nogc_leave(), RT_ESTATE);
		ck_assert_int_eq(rt_gc(), RT_OK);
	}
	heap_healthy();
}

static void *try_unattached(void *arg)
{
	(void)arg;
	ck_assert_int_eq(rt_nogc_enter(), RT_EPERM);
	ck_assert_int_eq(rt_nogc_leave(), RT_EPERM);
	rt_poll();
	return NULL;
}

TEST(only_attached_threads_outside_a_region_are_in_one)
{
	ck_assert_int_eq(rt_nogc_enter(), RT_ESTATE);
	ck_assert_int_eq(rt_nogc_leave(), RT_ESTATE);
	rt_poll();
	heap_begin();
	run_beside(try_unattached, NULL);
	ck_assert_int_eq(rt_blocking_enter(), RT_OK);
	ck_assert_int_eq(rt_nogc_enter(), RT_ESTATE);
	ck_assert_int_eq(rt_nogc_leave(), RT_ESTATE);
	rt_poll();
	ck_assert_int_eq(rt_blocking_leave(), RT_OK);
	ck_assert_int_eq(rt_nogc_leave(), RT_ESTATE);
	enter();
	leave();
	ck_assert_int_eq(rt_fini(), RT_OK);
	ck_assert_int_eq(rt_nogc_enter(), RT_ESTATE);
	ck_assert_int_eq(rt_nogc_leave(), RT_ESTATE);
}

TEST(a_stretch_may_begin_or_end_in_the_own_stop)
{
	heap_begin();
	ck_assert_int_eq(rt_stop_the_world(RT_STOP_HOST), RT_OK);
	ck_assert_int_eq(rt_nogc_leave(), RT_ESTATE);
	enter();
	leave();
	ck_assert_int_eq(rt_world_stopped(), 1);
	enter();
	ck_assert_int_eq(rt_start_the_world(NULL), RT_OK);
	ck_assert_int_eq(rt_gc(), RT_ESTATE);
	leave();
	ck_assert_int_eq(rt_gc(), RT_OK);
}

// ---- what is refused inside ----

static int count_walk(void *obj, size_t size, int kind, void *arg)
{
	(void)obj, (void)size, (void)kind;
	++*(int *)arg;
	return 0;
}

static int walked, called;

static void *call(void *arg)
{
	called++;
	return arg;
}

static rt_memstats stats;
static struct rt_verify verified;

// Every function that blocks or polls, with its answer inside a stretch.
// tools/doors.sh finds these functions by the comments of the headers.
#define REFUSED(X)                                                             \
	X(rt_gc(), RT_ESTATE)                                                  \
	X(rt_free_os_memory(), RT_ESTATE)                                      \
	X(rt_roots_static(1), RT_ESTATE)                                       \
	X(rt_fini(), RT_ESTATE)                                                \
	X(rt_init(NULL), RT_ESTATE)                                            \
	X(rt_thread_attach(0), RT_ESTATE)                                      \
	X(attach_stack(), RT_ESTATE)                                           \
	X(rt_thread_detach(), RT_ESTATE)                                       \
	X(rt_blocking_enter(), RT_ESTATE)                                      \
	X(rt_blocking_leave(), RT_ESTATE)                                      \
	X(rt_call_blocking(call, &walked) != NULL, 0)                          \
	X((rt_safepoint(), 0), 0)                                              \
	X((rt_poll(), 0), 0)                                                   \
	X(rt_kind_unregister(kind), RT_ESTATE)                                 \
	X(rt_run_finalizers(0) != 0, 0)                                        \
	X(rt_drop_now(drop_kind, NULL, NULL), RT_ESTATE)                       \
	X(rt_heap_list(kind, NULL, NULL, &(size_t){0}) != NULL, 0)             \
	X(rt_stop_the_world(RT_STOP_HOST), RT_ESTATE)                          \
	X(rt_heap_walk(count_walk, &walked), RT_ESTATE)                        \
	X(rt_heap_verify(&verified), RT_ESTATE)                                \
	X(rt_read_memstats(&stats), RT_ESTATE)

static int attach_stack(void)
{
	char *here = __builtin_frame_address(0);

	return rt_thread_attach_stack(here - 65536, here + 64, 0);
}

static int dropped;

static void drop(void *obj, size_t size, void *arg)
{
	(void)obj, (void)size, (void)arg;
	dropped++;
}

static int drop_kind;

static void register_drops(void)
{
	drop_kind = kind_make(.layout = RT_LAYOUT_WORDS, .flags = RT_KIND_DROP,
			      .drop = drop);
}

static int register_kind(void)
{
	return kind_make(.layout = RT_LAYOUT_WORDS);
}

GROUP(refusals, .timeout = 60);

TEST(what_blocks_or_polls_is_refused)
{
	int kind, stopped = 0;
	uint32_t before;

	heap_begin();
	kind = register_kind();
	ck_assert_int_ge(kind, RT_KIND_FIRST);
	register_drops();
	before = collections();
	enter();
	memset(&stats, 0x5a, sizeof stats);
	verified.errors = 77;
#define ROW(call, want)                                                        \
	ck_assert_msg((call) == (want), "%s, stopped %d", #call, stopped);     \
	ck_assert_int_eq(rt_thread_self()->nogc, 1);                           \
	ck_assert_int_eq(rt_world_stopped(), stopped);
	REFUSED(ROW)
	leave();
	// The answers are as in the stretch, not as in the thread's own stop.
	ck_assert_int_eq(rt_stop_the_world(RT_STOP_HOST), RT_OK);
	stopped = 1;
	enter();
	REFUSED(ROW)
	leave();
	ck_assert_int_eq(rt_start_the_world(NULL), RT_OK);
	ck_assert_int_eq(walked, 0);
	ck_assert_int_eq(called, 0);
	ck_assert_uint_eq(verified.errors, 77);
	for (size_t i = 0; i < sizeof stats; i++)
		ck_assert_uint_eq(((unsigned char *)&stats)[i], 0x5a);
	ck_assert_uint_eq(collections(), before);
	ck_assert_int_eq(rt_kind_unregister(kind), RT_OK);
	heap_healthy();
}

static int told;

static void tell_ready(size_t n, void *arg)
{
	(void)n, (void)arg;
	told++;
}

// Destructors do not run inside a stretch, but at the first poll after it.
TEST(destructors_wait_for_the_end)
{
	rt_config c = heap_config(HEAP_QUIET);

	heap_start_exact(c);
	register_drops();
	must(rt_set_finalize_mode(RT_FINALIZE_POLL, tell_ready, NULL));
	ck_assert_ptr_nonnull(rt_alloc_of(drop_kind, 48));
	ck_assert_int_eq(rt_gc(), RT_OK);
	ck_assert_int_eq(told, 1);
	ck_assert_uint_eq(rt_finalizers_ready(), 1);
	enter();
	rt_safepoint();
	rt_poll();
	ck_assert_uint_eq(rt_run_finalizers(0), 0);
	ck_assert_int_eq(dropped, 0);
	leave();
	ck_assert_int_eq(dropped, 0);
	rt_safepoint();
	ck_assert_int_eq(dropped, 1);
	heap_healthy();
}

static rt_roots_fn tell_nothing;
// Functions that neither block nor poll work as they do outside.
TEST(everything_else_works)
{
	void *words[2] = {NULL, NULL};
	rt_metric_sample sample = {.name = "/gc/heap/live:bytes"};
	rt_handle *h;
	void *p, *s;
	int old;

	heap_begin();
	enter();
	p = rt_alloc(64);
	s = rt_stack_alloc(4096);
	ck_assert(p && s);
	ck_assert_uint_eq(rt_size(p), 64);
	ck_assert_int_eq(rt_kind_of(p), RT_WORDS);
	ck_assert_int_eq(rt_roots_add(words, words + 2, RT_ROOT_EXACT), RT_OK);
	ck_assert_int_eq(rt_roots_remove(words, words + 2), RT_OK);
	ck_assert_int_eq(rt_roots_add_fn(tell_nothing, NULL, NULL), RT_OK);
	ck_assert_int_eq(rt_roots_remove_fn(tell_nothing, NULL), RT_OK);
	h = rt_handle_new(p);
	ck_assert_int_eq(rt_handle_set(h, p), RT_OK);
	ck_assert_int_eq(rt_handle_free(h), RT_OK);
	ck_assert_int_eq(rt_stack_free(s, 4096), RT_OK);
	ck_assert_int_eq(rt_set_gc_percent(HEAP_QUIET, &old), RT_OK);
	ck_assert_int_eq(rt_read_memstats_live(&stats), RT_OK);
	ck_assert_int_eq(rt_metrics_read(&sample, 1), RT_OK);
	ck_assert_int_eq(rt_set_warn_handler(NULL, NULL), RT_OK);
	p = rt_realloc(RT_WORDS, p, 4000);
	ck_assert_int_eq(rt_resize(p, 4090), RT_OK);
	ck_assert_int_eq(rt_free(p), RT_OK);
	ck_assert_int_ge(register_kind(), RT_KIND_FIRST);
	leave();
	heap_healthy();
}

// ---- allocation ----

static const uint64_t first_word[] = {1};
static const rt_type link_type = {.struct_size = sizeof(rt_type),
				  .size = 24,
				  .ptrdata = 8,
				  .bitmap = first_word};

// allocate_all returns how many of the functions found memory.
static int allocate_all(void)
{
	void *out[10];

	return (rt_alloc(48) != NULL) + ((rt_alloc)(48) != NULL) +
	       (rt_alloc_noscan(100) != NULL) + (rt_alloc_noscan(3) != NULL) +
	       (rt_alloc_noscan_uninit(700) != NULL) +
	       (rt_alloc_typed(&link_type, 1) != NULL) +
	       (rt_alloc_array(RT_WORDS, 8, 4, 8) != NULL) +
	       (rt_alloc_aligned(RT_WORDS, 4096, 4096) != NULL) +
	       (rt_alloc_many(RT_WORDS, 32, 10, out) != 0) +
	       (rt_strdup("text") != NULL) + (rt_alloc(5000) != NULL) +
	       (rt_alloc(100000) != NULL) + (rt_alloc(1 << 20) != NULL) +
	       (rt_alloc_uncollectable(RT_WORDS, 64) != NULL) +
	       (rt_realloc(RT_NOSCAN, rt_alloc_noscan(20), 900) != NULL);
}
enum { ALLOCATIONS = 15 };

GROUP(allocation, .timeout = 60);

TEST(allocation_does_not_collect)
{
	rt_config c = heap_config(100);
	uint32_t before;

	c.heap_min = 1 << 20;
	heap_start(c);
	before = collections();
	enter();
	for (int i = 0; i < 20; i++)
		ck_assert_int_eq(allocate_all(), ALLOCATIONS);
	ck_assert_uint_ge(rt_heap_live(), 16 << 20);
	ck_assert_uint_eq(collections(), before);
	leave();
	// A collection is due.
	while (collections() == before)
		ck_assert_ptr_nonnull(rt_alloc(1000));
	ck_assert_uint_lt(rt_heap_live(), 8 << 20);
	heap_healthy();
}

TEST(gcstress_does_not_collect_inside)
{
	rt_config c = heap_config(HEAP_QUIET);
	uint32_t before;

	c.gcstress = 1;
	heap_start(c);
	ck_assert_int_eq(allocate_all(), ALLOCATIONS);
	before = collections();
	enter();
	for (int i = 0; i < 5; i++)
		ck_assert_int_eq(allocate_all(), ALLOCATIONS);
	ck_assert_uint_eq(collections(), before);
	leave();
	ck_assert_ptr_nonnull(rt_alloc(48));
	ck_assert_uint_eq(collections(), before + 1);
	heap_healthy();
}

static int oom_calls;

static int count_oom(size_t n, void *arg)
{
	(void)n, (void)arg;
	oom_calls++;
	return 0;
}

// exhaust allocates garbage of n bytes until there is no memory.
static int exhaust(size_t n)
{
	int i = 0;

	while (rt_alloc_noscan_uninit(n))
		i++;
	return i;
}

TEST(without_memory_the_result_is_null_and_no_handler_runs)
{
	rt_config c = heap_config(HEAP_QUIET);
	uint32_t before;
	void *small;

	c.max_heap = 32 << 20;
	heap_start_exact(c);
	rt_set_oom_handler(count_oom, NULL);
	small = rt_alloc_noscan(900);
	before = collections();
	for (int i = 0; i < 3; i++) {
		enter();
		ck_assert_int_gt(exhaust(1 << 20), 20);
		exhaust(40000);
		exhaust(8000);
		exhaust(48);
		ck_assert_ptr_null(rt_stack_alloc(1 << 20));
		ck_assert_ptr_null(rt_alloc_uncollectable(RT_WORDS, 8000));
		ck_assert_ptr_null(rt_realloc(RT_NOSCAN, small, 30000));
		ck_assert_ptr_eq(rt_realloc(RT_NOSCAN, small, 890), small);
		leave();
		ck_assert_uint_eq(collections(), before + (uint32_t)i);
		ck_assert_ptr_nonnull(rt_alloc_noscan(1 << 20)); // collects
		small = rt_alloc_noscan(900);
		ck_assert_ptr_nonnull(small);
		ck_assert_uint_eq(collections(), before + (uint32_t)i + 1);
		heap_healthy();
	}
	ck_assert_int_eq(oom_calls, 0);
}

static int enter_in_oom(size_t n, void *arg)
{
	(void)n, (void)arg;
	oom_calls++;
	enter();
	return 1;
}

// The handler may begin a stretch, but that ends the allocation.
TEST(a_handler_that_begins_a_stretch_ends_the_allocation)
{
	rt_config c = heap_config(HEAP_QUIET);
	uintptr_t *kept;

	c.max_heap = 32 << 20;
	heap_start_exact(c);
	rt_set_oom_handler(enter_in_oom, NULL);
	kept = heap_table(256, RT_ROOT_WORDS);
	for (int i = 0; oom_calls == 0; i++)
		kept[i] = (uintptr_t)rt_alloc_noscan(1 << 20);
	ck_assert_int_eq(oom_calls, 1);
	leave();
	ck_assert_int_eq(rt_nogc_leave(), RT_ESTATE);
	heap_healthy();
}

static int warnings;

static void count_warn(const char *text, void *arg)
{
	(void)text, (void)arg;
	warnings++;
}

TEST(a_warning_waits_for_the_end)
{
	heap_begin();
	rt_set_warn_handler(count_warn, NULL);
	enter();
	sysmem_count_mappings((int64_t)sysmem_max_mappings());
	ck_assert_int_eq(allocate_all(), ALLOCATIONS);
	ck_assert_int_eq(warnings, 0);
	leave();
	ck_assert_ptr_nonnull(rt_alloc(100000));
	ck_assert_int_eq(warnings, 1);
	sysmem_count_mappings(-(int64_t)sysmem_max_mappings());
}

static void enter_in_warn(const char *text, void *arg)
{
	(void)text, (void)arg;
	enter();
}

static size_t asked;

static int pick_outside(const void *obj, size_t size, void *arg)
{
	(void)obj, (void)size, (void)arg;
	ck_assert(!proc_in_nogc(rt_thread_self()));
	asked++;
	return 1;
}

// A handler may even begin a stretch between two stops of one function.  That
// function then makes no second stop.
TEST(a_handler_that_begins_a_stretch_ends_what_would_stop, .n = 2)
{
	size_t n = 4711;

	heap_begin();
	ck_assert_ptr_nonnull(rt_alloc(100));
	rt_set_warn_handler(enter_in_warn, NULL);
	sysmem_count_mappings((int64_t)sysmem_max_mappings());
	if (_i == 0)
		ck_assert_ptr_null(rt_heap_list(-1, pick_outside, NULL, &n));
	else
		ck_assert_int_eq(rt_free_os_memory(), RT_ESTATE);
	ck_assert_uint_eq(n, 4711);
	ck_assert_int_eq(asked != 0, _i == 0);
	leave();
	sysmem_count_mappings(-(int64_t)sysmem_max_mappings());
	heap_healthy();
}

// ---- stops ----

static atomic_u32 stops, ready;

static void *stop_once(void *arg)
{
	(void)arg;
	ck_assert_int_eq(rt_thread_attach(0), RT_OK);
	ck_assert_int_eq(rt_stop_the_world(RT_STOP_HOST), RT_OK);
	atomic_u32_add_seqcst(&stops, 1);
	ck_assert_int_eq(rt_start_the_world(NULL), RT_OK);
	ck_assert_int_eq(rt_thread_detach(), RT_OK);
	return NULL;
}

static void *collect_once(void *arg)
{
	(void)arg;
	ck_assert_int_eq(rt_thread_attach(0), RT_OK);
	ck_assert_int_eq(rt_gc(), RT_OK);
	atomic_u32_add_seqcst(&stops, 1);
	ck_assert_int_eq(rt_thread_detach(), RT_OK);
	return NULL;
}

// is_pending tells whether a stop waits for the calling thread.
static bool is_pending(void)
{
	return __atomic_load_n(&rt_thread_self()->pending, __ATOMIC_RELAXED);
}

static void await_pending(void)
{
	await_that(is_pending, "no stop waits");
}

// A stop waits for the outermost leave, and takes place in it.
static void put_off(void *(*stopper)(void *))
{
	pthread_t thread;

	heap_begin();
	enter();
	thread = start_thread(stopper, NULL);
	await_pending();
	rt_safepoint();
	rt_poll();
	ck_assert_int_eq(allocate_all(), ALLOCATIONS);
	ck_assert_ptr_nonnull(rt_stack_alloc(4096));
	enter();
	leave();
	ck_assert_int_eq(rt_read_memstats(&stats), RT_ESTATE);
	ck_assert_int_eq(rt_blocking_enter(), RT_ESTATE);
	ck_assert(stays(&stops, 0));
	ck_assert(is_pending());
	leave();
	ck_assert(stopper != stop_once || atomic_u32_load_acquire(&stops) == 1);
	join_beside(thread);
	ck_assert_uint_eq(atomic_u32_load_acquire(&stops), 1);
	heap_healthy();
}

GROUP(stops, .timeout = 2 * AWAIT_SECONDS);

TEST(a_stop_waits_for_the_outermost_leave)
{
	put_off(stop_once);
}

TEST(a_collection_waits_for_the_outermost_leave)
{
	put_off(collect_once);
}

TEST(rt_poll_stops_outside)
{
	pthread_t thread;

	heap_begin();
	thread = start_thread(stop_once, NULL);
	await_pending();
	rt_poll();
	ck_assert_uint_eq(atomic_u32_load_acquire(&stops), 1);
	join_beside(thread);
}

// hide returns the only reference to a new object, in disguise.
__attribute__((noinline)) static uintptr_t hide(void)
{
	uintptr_t *p = rt_alloc(64);

	p[0] = 4711;
	return ~(uintptr_t)p;
}

TEST(pointers_may_be_where_no_marker_looks)
{
	static uintptr_t hidden[100];
	static uintptr_t *found;
	pthread_t thread;

	heap_start_exact(heap_config(HEAP_QUIET));
	enter();
	for (int i = 0; i < 100; i++)
		hidden[i] = hide();
	thread = start_thread(collect_once, NULL);
	await_pending();
	for (int i = 0; i < 100; i++) {
		found = (uintptr_t *)~hidden[i];
		ck_assert_uint_eq(found[0], 4711);
		ck_assert_uint_eq(rt_size(found), 64);
	}
	found = NULL;
	leave();
	join_beside(thread);
	ck_assert_uint_eq(heap_live(), 0);
}

// ---- forks ----

// in_child leaves the stretches that the parent began.
static void in_child(int depth)
{
	ck_assert_int_eq(rt_thread_self()->nogc, depth);
	ck_assert_int_eq(rt_gc(), RT_ESTATE);
	ck_assert_int_eq(allocate_all(), ALLOCATIONS);
	while (depth-- > 0)
		leave();
	ck_assert_int_eq(rt_nogc_leave(), RT_ESTATE);
	ck_assert_int_eq(rt_gc(), RT_OK);
	heap_healthy();
	// At a normal exit, ThreadSanitizer would report a thread of the parent
	// that ended before the fork.
	syscall(SYS_exit_group, 0);
	__builtin_unreachable();
}

static void fork_inside(void)
{
	int status;
	pid_t pid;

	ck_assert_int_eq(rt_fork_prepare(), RT_OK);
	pid = fork();
	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		ck_assert_int_eq(rt_fork_child(), RT_OK);
		in_child(2);
	}
	ck_assert_int_eq(rt_fork_parent(), RT_OK);
	ck_assert_int_eq(rt_thread_self()->nogc, 2);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
}

GROUP(forks, .timeout = 2 * AWAIT_SECONDS);

TEST(both_sides_of_a_fork_are_inside)
{
	heap_begin();
	enter();
	enter();
	fork_inside();
	leave();
	leave();
	heap_healthy();
}

TEST(a_fork_lets_an_earlier_stop_pass)
{
	pthread_t thread;

	heap_begin();
	enter();
	enter();
	thread = start_thread(stop_once, NULL);
	await_pending();
	fork_inside();
	ck_assert_uint_eq(atomic_u32_load_acquire(&stops), 1);
	leave();
	leave();
	join_beside(thread);
	heap_healthy();
}

// ---- threads that end inside ----

static pthread_key_t key;

static void after_detach(void *arg)
{
	(void)arg;
	atomic_u32_store_release(&ready, rt_nogc_leave() == RT_EPERM ? 1 : 2);
}

static void *exit_inside(void *arg)
{
	ck_assert_int_eq(rt_thread_attach(0), RT_OK);
	enter();
	enter();
	if (arg)
		ck_assert_int_eq(rt_stop_the_world(RT_STOP_HOST), RT_ESTATE);
	pthread_setspecific(key, &key);
	return NULL;
}

static void *exit_in_own_stop(void *arg)
{
	ck_assert_int_eq(rt_thread_attach(0), RT_OK);
	ck_assert_int_eq(rt_stop_the_world(RT_STOP_HOST), RT_OK);
	enter();
	pthread_setspecific(key, &key);
	return arg;
}

GROUP(ends, .timeout = 60);

// The library's key is older than the test's, so the C library calls the
// library's destructor first.
TEST(a_thread_that_exits_inside_is_detached)
{
	void *(*const body[])(void *) = {exit_inside, exit_in_own_stop};

	heap_begin();
	ck_assert_int_eq(pthread_key_create(&key, after_detach), 0);
	for (int i = 0; i < 2; i++) {
		atomic_u32_store_release(&ready, 0);
		run_beside(body[i], NULL);
		ck_assert_uint_eq(atomic_u32_load_acquire(&ready), 1);
		ck_assert_uint_eq(atomic_u32_load_relaxed(&procs.attached), 1);
	}
	// The next thread begins outside a stretch, though it gets the record
	// of the thread that has ended.
	run_beside(collect_once, NULL);
	heap_healthy();
}

// ---- at random ----

enum { RANDOM_THREADS = 4, RANDOM_STEPS = 3000 / HEAP_CUT, HIDDEN = 16 };

static uint32_t seed;

static uint32_t draw(uint32_t *x)
{
	*x = *x * 1664525 + 1013904223;
	return *x >> 16;
}

// work_inside keeps objects in disguise as long as the stretch lasts.
static void work_inside(uint32_t *x)
{
	uintptr_t hidden[HIDDEN];
	unsigned n = draw(x) % HIDDEN;
	bool deep = draw(x) % 2;

	enter();
	for (unsigned i = 0; i < n; i++) {
		hidden[i] = hide();
		if (deep && i == n / 2)
			enter();
		if (draw(x) % 8 == 0)
			rt_alloc_noscan(draw(x) % 60000);
	}
	for (unsigned i = 0; i < n; i++)
		if (*(uintptr_t *)~hidden[i] != 4711)
			ck_abort_msg("an object of a stretch is gone");
	if (deep && n != 0)
		leave();
	leave();
}

static void *work(void *arg)
{
	uint32_t x = seed + (uint32_t)(uintptr_t)arg;

	if (rt_thread_attach(RT_THREAD_EXACT) != RT_OK)
		ck_abort_msg("no memory");
	for (int i = 0; i < RANDOM_STEPS; i++)
		switch (draw(&x) % 16) {
		case 0:
			rt_gc();
			break;
		case 1:
			rt_stop_the_world(RT_STOP_HOST);
			rt_start_the_world(NULL);
			break;
		case 2:
			rt_read_memstats_live(&(rt_memstats){0});
			break;
		case 3:
			rt_blocking_enter();
			oscall_yield();
			rt_blocking_leave();
			break;
		case 4:
			rt_poll();
			break;
		default:
			work_inside(&x);
		}
	rt_thread_detach();
	return NULL;
}

GROUP(random, .timeout = 200);

TEST(threads_enter_and_leave_while_others_collect)
{
	pthread_t thread[RANDOM_THREADS];
	rt_config c = heap_config(50);
	const char *s = getenv("RT_SEED");

	seed = s ? (uint32_t)strtoul(s, NULL, 10) : (uint32_t)nanotime();
	printf("RT_SEED=%u\n", seed);
	c.heap_min = 1 << 20;
	heap_start(c);
	ck_assert_int_eq(rt_blocking_enter(), RT_OK);
	for (uintptr_t i = 0; i < RANDOM_THREADS; i++)
		thread[i] = start_thread(work, (void *)i);
	for (int i = 0; i < RANDOM_THREADS; i++)
		join_thread(thread[i]);
	ck_assert_int_eq(rt_blocking_leave(), RT_OK);
	heap_healthy();
}
