// rt_heap_list: an array of the objects of a kind.
#include "test/harness/await.h"
#include "test/harness/kind.h"
#include "test/harness/schedpoint.h"
#include "test/harness/thread.h"

static size_t number;

static int by_address(const void *a, const void *b)
{
	const uintptr_t x = *(const uintptr_t *)a, y = *(const uintptr_t *)b;

	return (x > y) - (x < y);
}

// list returns a sorted list, and sets number to its length.
static void **list(int kind, rt_pick_fn *pick, void *arg)
{
	void **l = rt_heap_list(kind, pick, arg, &number);

	ck_assert_ptr_nonnull(l);
	ck_assert_int_eq(rt_kind_of(l), RT_WORDS);
	ck_assert_uint_ge(rt_size(l), number * sizeof *l);
	qsort(l, number, sizeof *l, by_address);
	for (size_t i = 1; i < number; i++)
		if (l[i - 1] >= l[i])
			ck_abort_msg("an object is listed twice");
	for (size_t i = 0; i < number; i++)
		if (rt_base(l[i]) != l[i])
			ck_abort_msg("no object begins where one is listed");
	return l;
}

// The objects of a kind that a walk finds.
static struct {
	void *obj[4000];
	size_t n;
	int kind;
	rt_pick_fn *pick;
} walked;

static int note(void *obj, size_t size, int kind, void *arg)
{
	if (obj == arg || (walked.kind >= 0 && kind != walked.kind) ||
	    (walked.pick && walked.pick(obj, size, NULL) != 1))
		return 0;
	ck_assert_uint_lt(walked.n, 4000);
	walked.obj[walked.n++] = obj;
	return 0;
}

// same_as_walk compares a list with what a walk shows.
static void same_as_walk(int kind, rt_pick_fn *pick)
{
	void **l = list(kind, pick, NULL);

	walked.kind = kind;
	walked.pick = pick;
	walked.n = 0;
	ck_assert_int_eq(rt_heap_walk(note, l), RT_OK);
	ck_assert_uint_eq(walked.n, number);
	ck_assert_int_eq(memcmp(walked.obj, l, number * sizeof *l), 0);
	ck_assert_int_eq(rt_free(l), RT_OK);
}

static int register_kind(int at)
{
	return kind_make(.layout = RT_LAYOUT_WORDS, .number = at);
}

static int large_ones(const void *obj, size_t size, void *arg)
{
	(void)obj, (void)arg;
	return size >= 200;
}

static int none(const void *obj, size_t size, void *arg)
{
	(void)obj, (void)size, (void)arg;
	return 0;
}

static int every(const void *obj, size_t size, void *arg)
{
	(void)obj, (void)size, (void)arg;
	return 1;
}

// A callback picks an object only if it returns 1.
static int two(const void *obj, size_t size, void *arg)
{
	(void)obj, (void)size, (void)arg;
	return 2;
}

static const uint64_t first_word[] = {1};
static const rt_type link_type = {.struct_size = sizeof(rt_type),
				  .size = 24,
				  .ptrdata = 8,
				  .bitmap = first_word,
				  .align = 8};

// fill makes objects of all sizes, and frees some.
static void fill(int kind, int narrow)
{
	for (size_t n = 1; n < 3000; n += 1 + n / 9) {
		rt_alloc(n);
		rt_alloc_noscan(n);
		rt_alloc_of(kind, n);
		rt_alloc_of(narrow, n);
		rt_free(rt_alloc_of(kind, n));
	}
	for (int i = 0; i < 400; i++) {
		rt_alloc_of(narrow, 24);
		rt_alloc_typed(&link_type, 1);
		rt_alloc_noscan(8);
	}
	rt_alloc_of(kind, 40000);
	rt_alloc_of(kind, 400000);
	rt_alloc_uncollectable(RT_WORDS, 100);
	rt_alloc_uncollectable(RT_NOSCAN, 10);
}

GROUP(contents, .timeout = 60);

TEST(a_list_has_what_a_walk_shows)
{
	int kind, narrow;

	for (int guards = 0; guards < 3; guards++) {
		rt_config c = heap_config(HEAP_QUIET);

		c.guard_large = guards == 1;
		c.guard_small = guards == 1 ? 10 : 0;
		c.align8 = guards == 2;
		heap_start(c);
		kind = register_kind(RT_KIND_ANY);
		narrow = register_kind(RT_KIND_ANY_ALIGN8);
		fill(kind, narrow);
		for (int k = -1; k <= RT_KIND_MAX; k++)
			if (k <= RT_TYPED || k == kind || k == narrow) {
				same_as_walk(k, NULL);
				same_as_walk(k, large_ones);
				same_as_walk(k, none);
				same_as_walk(k, two);
			}
		ck_assert_uint_eq(number, 0);
		heap_healthy();
		ck_assert_int_eq(rt_fini(), RT_OK);
	}
}

TEST(no_objects_are_a_list_of_none)
{
	heap_begin();
	list(RT_NOSCAN, NULL, NULL);
	ck_assert_uint_eq(number, 0);
	list(RT_TYPED, NULL, NULL);
	ck_assert_uint_eq(number, 0);
	list(register_kind(7), large_ones, NULL);
	ck_assert_uint_eq(number, 0);
	// The three lists before are objects by now.
	rt_free(list(RT_WORDS, NULL, NULL));
	ck_assert_uint_eq(number, 3);
	heap_healthy();
}

TEST(wrong_calls_get_null)
{
	size_t n = 4711;

	ck_assert_ptr_null(rt_heap_list(RT_WORDS, NULL, NULL, &n));
	heap_begin();
	rt_alloc(16);
	ck_assert_ptr_null(rt_heap_list(RT_WORDS, NULL, NULL, NULL));
	ck_assert_ptr_null(rt_heap_list(-2, NULL, NULL, &n));
	ck_assert_ptr_null(rt_heap_list(INT32_MIN, NULL, NULL, &n));
	ck_assert_ptr_null(rt_heap_list(RT_KIND_MAX, NULL, NULL, &n));
	ck_assert_ptr_null(rt_heap_list(RT_KIND_MAX + 1, NULL, NULL, &n));
	ck_assert_ptr_null(rt_heap_list(31, NULL, NULL, &n));
	ck_assert_ptr_null(rt_heap_list(INT32_MAX, NULL, NULL, &n));
	ck_assert_int_eq(rt_blocking_enter(), RT_OK);
	ck_assert_ptr_null(rt_heap_list(RT_WORDS, NULL, NULL, &n));
	ck_assert_int_eq(rt_blocking_leave(), RT_OK);
	ck_assert_int_eq(rt_nogc_enter(), RT_OK);
	ck_assert_ptr_null(rt_heap_list(RT_WORDS, NULL, NULL, &n));
	ck_assert_int_eq(rt_nogc_leave(), RT_OK);
	ck_assert_int_eq(rt_stop_the_world(RT_STOP_HOST), RT_OK);
	ck_assert_ptr_null(rt_heap_list(RT_WORDS, NULL, NULL, &n));
	ck_assert_int_eq(rt_start_the_world(NULL), RT_OK);
	ck_assert_uint_eq(n, 4711);
	heap_healthy();
}

// A pick callback gets the argument, and may ask about the object.
static int in_stop(const void *obj, size_t size, void *arg)
{
	size_t n;

	ck_assert_int_eq(rt_world_stopped(), 1);
	ck_assert_uint_eq(rt_size(obj), size);
	ck_assert_int_eq(rt_kind_of(obj), RT_WORDS);
	ck_assert_ptr_null(rt_alloc(16));
	ck_assert_ptr_null(rt_heap_list(RT_WORDS, NULL, NULL, &n));
	ck_assert_int_eq(rt_start_the_world(NULL), RT_EPERM);
	++*(int *)arg;
	return 1;
}

TEST(pick_runs_in_a_stop)
{
	int calls = 0;

	heap_begin();
	for (int i = 0; i < 10; i++)
		rt_alloc(100);
	list(RT_WORDS, in_stop, &calls);
	ck_assert_uint_eq(number, 10);
	ck_assert_int_eq(calls, 20);
	ck_assert_int_eq(rt_world_stopped(), 0);
}

TEST(the_dead_are_left_out)
{
	uintptr_t *kept;
	int kind;

	heap_start_exact(heap_config(HEAP_QUIET));
	kind = kind_make(.layout = RT_LAYOUT_WORDS, .flags = RT_KIND_DROP,
			 .drop = drop_nothing);
	kept = heap_table(20, RT_ROOT_WORDS);
	for (int i = 0; i < 60; i++)
		kept[i % 20] =
		    (uintptr_t)rt_alloc_of(kind, i < 50 ? 48 : 40000);
	list(kind, NULL, NULL);
	ck_assert_uint_eq(number, 60);
	rt_gc();
	ck_assert_uint_eq(rt_finalizers_ready(), 40);
	same_as_walk(kind, NULL);
	ck_assert_uint_eq(number, 20);
	same_as_walk(-1, large_ones);
	heap_healthy();
}

// ---- what a list keeps ----

GROUP(lifetime, .timeout = 60);

TEST(a_list_keeps_its_objects)
{
	void ***kept;

	heap_start_exact(heap_config(HEAP_QUIET));
	kept = (void ***)heap_table(1, RT_ROOT_WORDS);
	for (int i = 0; i < 5000; i++)
		rt_alloc_noscan(16 + i % 500);
	kept[0] = list(RT_NOSCAN, NULL, NULL);
	ck_assert_uint_eq(number, 5000);
	ck_assert_uint_eq(heap_live_after_gc(), 5001);
	for (size_t i = 0; i < number; i++)
		if (rt_base(kept[0][i]) != kept[0][i])
			ck_abort_msg("an object of the list is gone");
	kept[0] = NULL;
	ck_assert_uint_eq(heap_live_after_gc(), 0);
}

// Every allocation collects.  Only rt_heap_list itself keeps the array while it
// makes it, because the thread has exact roots.
TEST(a_list_can_be_made_by_a_thread_with_exact_roots)
{
	rt_config c = heap_config(HEAP_QUIET);
	uintptr_t *kept;

	c.gcstress = 1;
	c.clobberfree = 1;
	heap_start_exact(c);
	kept = heap_table(100, RT_ROOT_WORDS);
	for (int i = 0; i < 100; i++)
		kept[i] = (uintptr_t)rt_alloc_noscan(3000);
	for (int i = 0; i < 10; i++) {
		void **l = list(RT_NOSCAN, large_ones, NULL);

		ck_assert_uint_eq(number, 100);
		for (int j = 0; j < 100; j++)
			ck_assert_ptr_nonnull(rt_base(l[j]));
	}
	heap_healthy();
}

TEST(nothing_else_stays)
{
	uint64_t other_sys;

	heap_start_exact(heap_config(HEAP_QUIET));
	for (int i = 0; i < 3000; i++)
		rt_alloc(64);
	rt_free(list(RT_WORDS, NULL, NULL));
	other_sys = heap_stats().other_sys;
	for (int i = 0; i < 100; i++)
		rt_free(list(RT_WORDS, i % 2 ? large_ones : NULL, NULL));
	ck_assert_uint_eq(heap_stats().other_sys, other_sys);
	ck_assert_uint_eq(heap_live_after_gc(), 0);
}

// ---- without memory ----

static int oom_calls;

static int count_oom(size_t n, void *arg)
{
	(void)n, (void)arg;
	oom_calls++;
	return 0;
}

TEST(without_memory_there_is_no_list)
{
	rt_config c = heap_config(HEAP_QUIET);
	uintptr_t *kept;
	size_t n = 4711, made = 0;
	uintptr_t last = 0;
	void *p;

	c.max_heap = 32 << 20;
	heap_start_exact(c);
	rt_set_oom_handler(count_oom, NULL);
	kept = heap_table(1, RT_ROOT_WORDS);
	while ((p = rt_alloc(16)) != NULL) {
		*(uintptr_t *)p = last;
		kept[0] = last = (uintptr_t)p;
		made++;
	}
	ck_assert_int_eq(oom_calls, 1);
	ck_assert_ptr_null(rt_heap_list(RT_WORDS, NULL, NULL, &n));
	ck_assert_ptr_null(rt_heap_list(-1, every, NULL, &n));
	ck_assert_uint_eq(n, 4711);
	ck_assert_int_eq(oom_calls, 3);
	ck_assert_uint_eq(heap_live_after_gc(), made);
	kept[0] = 0;
	list(RT_WORDS, NULL, NULL);
	heap_healthy();
}

// ---- beside other threads ----

enum { MAKERS = 3, MADE = 30000 / HEAP_CUT, LINK = 48 };

static atomic_u32 left;
static int shared_kind;

// make_chain makes objects that a chain from a handle keeps.
static void *make_chain(void *arg)
{
	rt_handle *h;

	if (rt_thread_attach(RT_THREAD_EXACT) != RT_OK)
		ck_abort_msg("no memory");
	h = rt_handle_new(NULL);
	for (uintptr_t i = 0; i < MADE; i++) {
		uintptr_t *p = rt_alloc_of(shared_kind, LINK);

		p[0] = (uintptr_t)rt_handle_get(h);
		p[1] = ((uintptr_t)arg << 32) + i + 1;
		rt_handle_set(h, p);
	}
	atomic_u32_add_seqcst(&left, (uint32_t)-1);
	rt_thread_detach();
	return NULL;
}

static int of_first(const void *obj, size_t size, void *arg)
{
	(void)size;
	// The thread that made the object may not have written this word yet.
	return ((const uintptr_t *)obj)[1] >> 32 == (uintptr_t)arg;
}

static int unfilled(const void *obj, size_t size, void *arg)
{
	(void)size, (void)arg;
	return ((const uintptr_t *)obj)[1] == 0;
}

GROUP(threads, .timeout = 200);

// A list that is made while threads allocate has at least as many objects as
// the previous list.
TEST(a_list_is_of_one_moment)
{
	pthread_t thread[MAKERS];
	size_t before = 0, rounds = 0;

	heap_start(heap_config(100));
	shared_kind = register_kind(RT_KIND_ANY);
	atomic_u32_store_release(&left, MAKERS);
	for (uintptr_t i = 0; i < MAKERS; i++)
		thread[i] = start_thread(make_chain, (void *)(i + 1));
	do {
		void **l =
		    list(shared_kind, rounds % 2 ? of_first : NULL, (void *)1);

		for (size_t i = 0; i < number; i++)
			if (rt_size(l[i]) != LINK ||
			    rt_kind_of(l[i]) != shared_kind)
				ck_abort_msg("no such object");
		if (rounds++ % 2 == 0) {
			ck_assert_uint_ge(number, before);
			before = number;
		}
	} while (atomic_u32_load_acquire(&left) != 0);
	for (int i = 0; i < MAKERS; i++)
		join_beside(thread[i]);
	list(shared_kind, NULL, NULL);
	ck_assert_uint_eq(number, MAKERS * MADE);
	list(shared_kind, of_first, (void *)1);
	ck_assert_uint_eq(number, MADE);
	list(shared_kind, unfilled, NULL);
	ck_assert_uint_eq(number, 0);
	heap_healthy();
}

// link_to puts a new object in front of a chain.
static size_t link_to(rt_handle *h)
{
	uintptr_t *p = rt_alloc_of(shared_kind, LINK);

	p[0] = (uintptr_t)rt_handle_get(h);
	p[1] = 1;
	rt_handle_set(h, p);
	return 1;
}

static int filled(const void *obj, size_t size, void *arg)
{
	return !unfilled(obj, size, arg);
}

static void **listed;
static atomic_u32 ended;

static void *list_apart(void *arg)
{
	if (rt_thread_attach(0) != RT_OK)
		ck_abort_msg("no memory");
	listed = rt_heap_list(shared_kind, arg ? filled : NULL, NULL, &number);
	atomic_u32_store_release(&ended, 1);
	rt_thread_detach();
	return NULL;
}

// await_stopper returns when the other thread is about to stop the world, or
// has ended.
static void await_stopper(void)
{
	uint64_t end = nanotime() + AWAIT_SECONDS * UINT64_C(1000000000);

	while (!schedpoint_held(SCHED_SEMA_TRY_ACQUIRE) &&
	       !atomic_u32_load_acquire(&ended)) {
		ck_assert_uint_lt(nanotime(), end);
		rt_poll();
	}
}

// Before each of the first three stops of the other thread, this one makes more
// objects.  So the array is too short at the second stop and at the third.
TEST(an_array_that_is_too_short_is_made_again, .n = 2)
{
	rt_handle *h;
	pthread_t thread;
	size_t made = 0, stops = 0;

	heap_begin();
	schedpoint_watch();
	shared_kind = register_kind(RT_KIND_ANY);
	h = rt_handle_new(NULL);
	schedpoint_hold(SCHED_SEMA_TRY_ACQUIRE);
	thread = start_thread(list_apart, _i ? &made : NULL);
	for (;;) {
		await_stopper();
		if (atomic_u32_load_acquire(&ended))
			break;
		for (size_t i = 0; stops < 3 && i < 10u << (4 * stops); i++)
			made += link_to(h);
		if (stops++ < 4)
			schedpoint_hold(SCHED_SEMA_TRY_ACQUIRE);
		else
			schedpoint_release(SCHED_SEMA_TRY_ACQUIRE);
	}
	schedpoint_release(SCHED_SEMA_TRY_ACQUIRE);
	ck_assert_uint_eq(stops, 4);
	ck_assert_ptr_nonnull(listed);
	ck_assert_uint_eq(number, made);
	for (size_t i = 0; i < number; i++)
		if (rt_kind_of(listed[i]) != shared_kind)
			ck_abort_msg("no such object");
	join_beside(thread);
	heap_healthy();
}

// release_when_stopping releases the held thread when another thread asks it to
// stop.
static void *release_when_stopping(void *arg)
{
	uint64_t end = nanotime() + AWAIT_SECONDS * UINT64_C(1000000000);

	while (schedpoint_passed(SCHED_PROC_STOP_ALL_ASKED) <= (uintptr_t)arg)
		if (nanotime() > end)
			abort();
	schedpoint_release(SCHED_SEMA_TRY_ACQUIRE);
	return NULL;
}

static pthread_t release_later(void)
{
	return start_thread(
	    release_when_stopping,
	    (void *)(uintptr_t)schedpoint_passed(SCHED_PROC_STOP_ALL_ASKED));
}

static void end_both(pthread_t a, pthread_t b)
{
	ck_assert_int_eq(rt_blocking_enter(), RT_OK);
	join_thread(a);
	join_thread(b);
	ck_assert_int_eq(rt_blocking_leave(), RT_OK);
}

static int find_array(void *obj, size_t size, int kind, void *arg)
{
	if (kind == RT_WORDS && size >= 100 * sizeof(void *))
		*(void **)arg = obj;
	return 0;
}

// An array that was too short is not freed by hand, because another thread may
// have found it in the heap.
TEST(an_array_that_was_too_short_stays, .n = 2)
{
	pthread_t thread, helper;
	void *found = NULL, **all;
	size_t made = 0, i = 0;
	rt_handle *h;

	heap_begin();
	schedpoint_watch();
	shared_kind = RT_WORDS;
	h = rt_handle_new(NULL);
	while (made < 100)
		made += link_to(h);
	schedpoint_hold(SCHED_SEMA_TRY_ACQUIRE);
	thread = start_thread(list_apart, _i ? &made : NULL);
	await_stopper();
	schedpoint_hold(SCHED_SEMA_TRY_ACQUIRE);
	await_stopper();
	while (made < 300)
		made += link_to(h);
	helper = release_later();
	ck_assert_int_eq(rt_stop_the_world(RT_STOP_HOST), RT_OK);
	ck_assert_int_eq(rt_heap_walk(find_array, &found), RT_OK);
	ck_assert_int_eq(rt_start_the_world(NULL), RT_OK);
	ck_assert_ptr_nonnull(found);
	end_both(thread, helper);
	ck_assert_ptr_nonnull(listed);
	ck_assert_ptr_ne(listed, found);
	ck_assert_uint_eq(number, made);
	ck_assert_int_eq(rt_kind_of(found), RT_WORDS);
	all = list(RT_WORDS, NULL, NULL);
	while (i < number && all[i] != found)
		i++;
	ck_assert_uint_lt(i, number);
	heap_healthy();
}

TEST(a_kind_that_ends_before_the_stop_has_no_list)
{
	pthread_t thread, helper;

	heap_begin();
	schedpoint_watch();
	shared_kind = register_kind(RT_KIND_ANY);
	schedpoint_hold(SCHED_SEMA_TRY_ACQUIRE);
	thread = start_thread(list_apart, NULL);
	await_stopper();
	helper = release_later();
	ck_assert_int_eq(rt_kind_unregister(shared_kind), RT_OK);
	end_both(thread, helper);
	ck_assert_uint_eq(atomic_u32_load_acquire(&ended), 1);
	ck_assert_ptr_null(listed);
	heap_healthy();
}
