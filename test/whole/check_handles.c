// Handles: roots of one word.
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "gc/mark/handles.h"
#include "test/harness/await.h"
#include "test/harness/heap.h"
#include "test/harness/missed.h"
#include "test/harness/process.h"
#include "test/harness/refuse.h"
#include "test/harness/thread.h"

enum {
	MANY = 50000 / HEAP_CUT,
	// So many handles that, when all are freed, not all strips keep their
	// memory.
	MOST = 3 * (HANDLES_EMPTY / sizeof(rt_handle)) / 2,
};
static rt_handle *handle[MOST];

static void begin(void)
{
	heap_start_exact(heap_config_checked());
}

static rt_handle *made(void *obj)
{
	rt_handle *h = rt_handle_new(obj);

	ck_assert_ptr_nonnull(h);
	ck_assert_ptr_eq(rt_handle_get(h), obj);
	return h;
}

static void fill(size_t n)
{
	for (size_t i = 0; i < n; i++)
		handle[i] = made(rt_alloc(16 + i % 200));
}

static void empty(size_t n)
{
	for (size_t i = 0; i < n; i++)
		ck_assert_int_eq(rt_handle_free(handle[i]), RT_OK);
}

// in_use counts the handles that are free neither in a strip nor in a thread.
static size_t in_use(void)
{
	size_t n = 0;

	if (handles.base == 0)
		return 0;
	for (size_t i = 0; i < atomic_u64_load_relaxed(&handles.bytes) / 8; i++)
		n += handles_used((rt_handle *)handles.base + i);
	return n;
}

// kept counts the words that are not free in a strip: handles in use, and free
// handles that threads keep.
static size_t kept(void)
{
	const struct handles_strip *s =
	    (const struct handles_strip *)handles.strips.base;
	size_t n = atomic_u64_load_relaxed(&handles.bytes) / 8;

	for (size_t i = 0;
	     i < atomic_u64_load_relaxed(&handles.bytes) / handles.strip_bytes;
	     i++)
		n -= s[i].nfree;
	return n;
}

GROUP(roots, .setup = begin, .timeout = 60);

TEST(a_handle_keeps_its_object)
{
	void *p = rt_alloc(48);
	rt_handle *h = made(p);

	((void **)p)[0] = rt_alloc(48);
	ck_assert_uint_eq(heap_live_after_gc(), 2);
	ck_assert_ptr_eq(rt_handle_get(h), p);
	ck_assert_int_eq(rt_handle_set(h, ((void **)p)[0]), RT_OK);
	ck_assert_uint_eq(heap_live_after_gc(), 1);
	ck_assert_int_eq(rt_handle_set(h, NULL), RT_OK);
	ck_assert_ptr_null(rt_handle_get(h));
	ck_assert_uint_eq(heap_live_after_gc(), 0);
	ck_assert_int_eq(rt_handle_set(h, rt_alloc(100)), RT_OK);
	ck_assert_uint_eq(heap_live_after_gc(), 1);
	ck_assert_int_eq(rt_handle_free(h), RT_OK);
	ck_assert_uint_eq(heap_live_after_gc(), 0);
}

TEST(many_handles_are_roots)
{
	uint64_t other_sys = heap_stats().other_sys;
	size_t alive = 0;

	for (size_t i = 0; i < MANY; i++)
		handle[i] = made(NULL);
	ck_assert_uint_ge(heap_stats().other_sys, other_sys + MANY * 8);
	for (size_t i = 0; i < MANY; i++)
		ck_assert_int_eq(rt_handle_set(handle[i], rt_alloc(16)), RT_OK);
	ck_assert_uint_eq(heap_live_after_gc(), MANY);
	for (size_t i = 0; i < MANY; i++)
		alive += rt_base(rt_handle_get(handle[i])) ==
			 rt_handle_get(handle[i]);
	ck_assert_uint_eq(alive, MANY);
	ck_assert_uint_eq(in_use(), MANY);
	for (size_t i = 0; i < MANY; i += 2)
		ck_assert_int_eq(rt_handle_free(handle[i]), RT_OK);
	ck_assert_uint_eq(heap_live_after_gc(), MANY / 2);
	for (size_t i = 1; i < MANY; i += 2)
		ck_assert_int_eq(rt_handle_free(handle[i]), RT_OK);
	ck_assert_uint_eq(heap_live_after_gc(), 0);
	ck_assert_uint_eq(in_use(), 0);
	heap_healthy();
}

TEST(a_word_that_is_no_reference_keeps_nothing)
{
	char *p = rt_alloc(64);

	made(p + 8);
	made(p + 1);
	made(p + 64);
	ck_assert_uint_eq(heap_live_after_gc(), 0);
}

TEST(no_two_handles_are_one)
{
	struct rng r;
	size_t wrong = 0;

	rng_init(&r, "no_two_handles_are_one");
	for (size_t i = 0; i < MANY; i++)
		handle[i] = made((void *)(i + 1));
	for (size_t k = 0; k < 4 * MANY; k++) {
		size_t i = rng_below(&r, MANY);

		wrong += rt_handle_get(handle[i]) != (void *)(i + 1);
		wrong += rt_handle_free(handle[i]) != RT_OK;
		if (k % 3 == 0) {
			wrong += rt_handle_free(handle[i]) != RT_EINVAL;
			wrong += rt_handle_set(handle[i], NULL) != RT_EINVAL;
		}
		handle[i] = made((void *)(i + 1));
	}
	for (size_t i = 0; i < MANY; i++)
		wrong += rt_handle_get(handle[i]) != (void *)(i + 1);
	ck_assert_uint_eq(wrong, 0);
	ck_assert_uint_eq(in_use(), MANY);
	heap_healthy();
}

// ---- memory ----

static size_t table_bytes(void)
{
	return atomic_u64_load_relaxed(&handles.bytes);
}

TEST(freed_handles_are_used_again)
{
	size_t bytes;

	fill(MANY);
	bytes = table_bytes();
	ck_assert_uint_ge(bytes, MANY * 8);
	ck_assert_uint_le(bytes, MANY * 8 + 2 * handles.strip_bytes);
	for (unsigned round = 0; round < 5; round++) {
		empty(MANY);
		fill(MANY);
	}
	ck_assert_uint_eq(table_bytes(), bytes);
	empty(MANY);
	heap_healthy();
}

static size_t strips_without_memory(void)
{
	size_t n = 0;

	for (const struct handles_strip *s = handles.released; s; s = s->next)
		n++;
	return n;
}

static size_t may_be_empty(void)
{
	return HANDLES_EMPTY / handles.strip_bytes;
}

TEST(empty_strips_are_released)
{
	size_t strips;

	fill(MOST);
	strips = table_bytes() / handles.strip_bytes;
	ck_assert_uint_eq(strips_without_memory(), 0);
	empty(MOST);
	// The thread keeps words of the first strips and of the last.
	ck_assert_uint_le(handles.nempty, may_be_empty());
	ck_assert_uint_ge(strips_without_memory() + may_be_empty() + 3, strips);
	heap_healthy();
	// None of these words is a handle any more.
	for (size_t i = 0; i < MOST; i++)
		ck_assert_int_eq(rt_handle_free(handle[i]), RT_EINVAL);
	fill(MOST);
	ck_assert_uint_eq(strips_without_memory(), 0);
	ck_assert_uint_eq(heap_live_after_gc(), MOST);
}

// Handles that are freed in the order of strips make one strip after another
// empty.
TEST(most_of_the_memory_goes)
{
	size_t strips;

	fill(MOST);
	strips = table_bytes() / handles.strip_bytes;
	empty(MOST);
	handles_flush(rt_thread_tls->mc);
	ck_assert_uint_eq(kept(), 0);
	ck_assert_uint_eq(handles.nempty + strips_without_memory(), strips);
	ck_assert_uint_gt(strips, may_be_empty());
	ck_assert_uint_eq(handles.nempty, may_be_empty());
	heap_healthy();
}

TEST(a_thread_needs_no_lock_for_most)
{
	rt_handle *h = made(NULL);

	mutex_lock(&handles.lock); // taking it again would wait for ever
	for (unsigned i = 0; i < 1000; i++) {
		ck_assert_int_eq(rt_handle_free(h), RT_OK);
		h = made(NULL);
	}
	for (unsigned i = 0; i < HANDLES_BATCH - 1; i++)
		handle[i] = made(NULL);
	mutex_unlock(&handles.lock);
	empty(HANDLES_BATCH - 1);
}

GROUP(memory, .timeout = 60);

TEST(the_table_has_an_end)
{
	enum { END = 1 << 20 };
	static rt_handle *all[END + 1];
	rt_config c = heap_config(HEAP_QUIET);
	size_t n = 0;

	c.max_heap = 64 << 20;
	heap_start_exact(c);
	while (n <= END && (all[n] = rt_handle_new(NULL)) != NULL)
		n++;
	ck_assert_uint_eq(n, END);
	ck_assert_ptr_null(rt_handle_new(NULL));
	ck_assert_int_eq(rt_handle_free(all[5]), RT_OK);
	ck_assert_ptr_eq(rt_handle_new(NULL), all[5]);
	ck_assert_ptr_null(rt_handle_new(NULL));
	for (size_t i = 0; i < END; i++)
		ck_assert_int_eq(rt_handle_free(all[i]), RT_OK);
	heap_healthy();
	ck_assert_int_eq(rt_fini(), RT_OK);
}

// fill_refused returns how many handles were refused.
static size_t fill_refused(void)
{
	enum { SOME = 20000 / HEAP_CUT };
	size_t got = 0;

	for (size_t i = 0; i < SOME; i++) {
		handle[got] = rt_handle_new(NULL);
		got += handle[got] != NULL;
	}
	ck_assert_uint_eq(in_use(), got);
	heap_healthy();
	empty(got);
	return SOME - got;
}

TEST(refused_memory_changes_nothing, .n = OSCALL_COUNT)
{
	size_t refused = refuse_each((enum oscall)_i, 1, fill_refused);

	if (_i == OSCALL_RESERVE || _i == OSCALL_COMMIT)
		ck_assert_uint_gt(refused, 0);
}

// ---- wrong handles ----

GROUP(wrong, .setup = begin, .timeout = 60);

#define NO_HANDLE(at)                                                          \
	do {                                                                   \
		ck_assert_int_eq(rt_handle_free((rt_handle *)(at)),            \
				 RT_EINVAL);                                   \
		ck_assert_int_eq(rt_handle_set((rt_handle *)(at), NULL),       \
				 RT_EINVAL);                                   \
	} while (0)

TEST(what_is_no_handle_is_refused)
{
	rt_handle here = {NULL};
	void *p = rt_alloc(64);
	rt_handle *h;

	for (unsigned i = 0; i < 2; i++) {
		NO_HANDLE(NULL);
		NO_HANDLE(&here);
		NO_HANDLE(p);
		NO_HANDLE((uintptr_t)8);
		NO_HANDLE(UINTPTR_MAX);
		NO_HANDLE(UINTPTR_MAX - 7);
		h = made(p);
	}
	for (unsigned i = 1; i < 8; i++)
		NO_HANDLE((char *)h + i);
	NO_HANDLE(handles.base - 8);
	NO_HANDLE(handles.base + table_bytes());
	NO_HANDLE(handles.base + handles.words.reserved - 8);
	ck_assert_uint_eq(in_use(), 2);
	ck_assert_ptr_eq(rt_handle_get(h), p);
}

TEST(a_handle_is_freed_once)
{
	void *words[] = {NULL, rt_alloc(16), (void *)7, (void *)INTPTR_MAX};

	for (size_t i = 0; i < RT_ARRAY_LEN(words); i++) {
		rt_handle *h = made(words[i]);

		ck_assert_int_eq(rt_handle_free(h), RT_OK);
		NO_HANDLE(h);
		NO_HANDLE(h);
	}
	heap_healthy();
}

// A word with the highest bit is no address; a handle with it would look free.
TEST(what_is_no_address_is_refused)
{
	void *high = (void *)((uintptr_t)1 << 63);
	rt_handle *h = made(NULL);

	ck_assert_ptr_null(rt_handle_new(high));
	ck_assert_ptr_null(rt_handle_new((void *)UINTPTR_MAX));
	ck_assert_int_eq(rt_handle_set(h, high), RT_EINVAL);
	ck_assert_ptr_null(rt_handle_get(h));
	ck_assert_int_eq(rt_handle_free(h), RT_OK);
}

TEST(the_next_heap_has_no_handles)
{
	rt_handle *h = made(NULL);

	ck_assert_int_eq(rt_fini(), RT_OK);
	ck_assert_int_eq(rt_handle_free(h), RT_ESTATE);
	ck_assert_int_eq(rt_handle_set(h, NULL), RT_ESTATE);
	ck_assert_ptr_null(rt_handle_new(NULL));
	begin();
	NO_HANDLE(h);
	fill(10);
	ck_assert_uint_eq(heap_live_after_gc(), 10);
}

// ---- places ----

TEST(in_the_own_stop)
{
	void *p = rt_alloc(16);
	rt_handle *h = made(NULL);

	ck_assert_int_eq(rt_stop_the_world(RT_STOP_HOST), RT_OK);
	ck_assert_ptr_null(rt_handle_new(p));
	ck_assert_int_eq(rt_handle_free(h), RT_EBUSY);
	ck_assert_int_eq(rt_handle_set(h, p), RT_OK);
	ck_assert_ptr_eq(rt_handle_get(h), p);
	ck_assert_int_eq(rt_start_the_world(NULL), RT_OK);
	ck_assert_uint_eq(heap_live_after_gc(), 1);
}

TEST(in_a_region)
{
	rt_handle *h = made(rt_alloc(16));

	ck_assert_int_eq(rt_blocking_enter(), RT_OK);
	ck_assert_ptr_null(rt_handle_new(NULL));
	ck_assert_int_eq(rt_handle_set(h, NULL), RT_ESTATE);
	ck_assert_int_eq(rt_handle_free(h), RT_OK);
	ck_assert_int_eq(rt_handle_free(h), RT_EINVAL);
	ck_assert_int_eq(rt_blocking_leave(), RT_OK);
	ck_assert_uint_eq(heap_live_after_gc(), 0);
	heap_healthy();
}

static struct {
	atomic_u32 began, ended;
	int freed, again, set;
	void *got;
} beside;

static void *free_unattached(void *h)
{
	atomic_u32_store_release(&beside.began, 1);
	beside.set = rt_handle_set(h, NULL);
	beside.got = rt_handle_new(NULL);
	beside.freed = rt_handle_free(h);
	beside.again = rt_handle_free(h);
	atomic_u32_store_release(&beside.ended, 1);
	return NULL;
}

TEST(an_unattached_thread_frees_after_the_stop)
{
	rt_handle *h = made(rt_alloc(16));
	pthread_t thread;

	ck_assert_int_eq(rt_stop_the_world(RT_STOP_HOST), RT_OK);
	thread = start_thread(free_unattached, h);
	await_at_least(&beside.began, 1);
	ck_assert(stays(&beside.ended, 0));
	ck_assert_int_eq(rt_start_the_world(NULL), RT_OK);
	join_thread(thread);
	ck_assert_int_eq(beside.set, RT_EPERM);
	ck_assert_ptr_null(beside.got);
	ck_assert_int_eq(beside.freed, RT_OK);
	ck_assert_int_eq(beside.again, RT_EINVAL);
	ck_assert_uint_eq(heap_live_after_gc(), 0);
	heap_healthy();
}

// ---- checkmark ----

static void report(void)
{
	begin();
	fill(10);
	missed_look();
}

GROUP(checks, .timeout = 60);

TEST(a_handle_that_was_not_followed_is_named)
{
	missed_at(report, "found in a handle at 0x");
}

static rt_handle *list;

static void *list_get(void)
{
	return rt_handle_get(list);
}

static void list_set(void *p)
{
	ck_assert_int_eq(rt_handle_set(list, p), RT_OK);
}

TEST(a_list_survives_a_collection_in_every_allocation)
{
	rt_config c = heap_config_checked();

	c.clobberfree = 1;
	c.gcstress = 1;
	heap_start_exact(c);
	list = made(NULL);
	heap_check_list(list_get, list_set);
}

// ---- threads ----

static void *make_and_leave(void *arg)
{
	rt_handle **h = arg;

	ck_assert_int_eq(rt_thread_attach(RT_THREAD_EXACT), RT_OK);
	*h = made(rt_alloc(16));
	ck_assert_int_eq(rt_thread_detach(), RT_OK);
	return NULL;
}

GROUP(threads, .setup = begin, .timeout = 120);

TEST(a_handle_outlives_its_thread)
{
	rt_handle *h;

	run_beside(make_and_leave, &h);
	// The free handles that the thread kept are free for all threads.
	ck_assert_uint_eq(kept(), 1);
	ck_assert_uint_eq(heap_live_after_gc(), 1);
	ck_assert_int_eq(rt_handle_free(h), RT_OK);
	ck_assert_uint_eq(heap_live_after_gc(), 0);
	heap_healthy();
}

static atomic_u32 staying;

static void *stay(void *arg)
{
	ck_assert_int_eq(rt_thread_attach(RT_THREAD_EXACT), RT_OK);
	made(rt_alloc(16));
	ck_assert_int_eq(rt_blocking_enter(), RT_OK);
	atomic_u32_store_release(&staying, 1);
	await_at_least(&staying, 2);
	ck_assert_int_eq(rt_blocking_leave(), RT_OK);
	ck_assert_int_eq(rt_thread_detach(), RT_OK);
	return arg;
}

// In the child, the free handles that the lost threads kept are back in their
// strips.
TEST(a_child_has_the_handles)
{
	pthread_t thread = start_thread(stay, NULL);

	await_at_least(&staying, 1);
	fill(10);
	ck_assert_uint_eq(kept(), 2 * HANDLES_BATCH);
	if (process_forked()) {
		bool ok = heap_live_after_gc() == 11 && in_use() == 11 &&
			  kept() == HANDLES_BATCH + 1 &&
			  rt_handle_free(handle[3]) == RT_OK &&
			  heap_live_after_gc() == 10;

		process_end(ok);
	}
	atomic_u32_store_release(&staying, 2);
	join_beside(thread);
	ck_assert_uint_eq(heap_live_after_gc(), 11);
}

// Threads make handles and free handles that other threads made, while
// collections run.
enum {
	THREADS = 4,
	BOXES = 64,
	ROUNDS = 40000 / (RT_ASAN || RT_TSAN || COVERAGE_BUILD ? 10 : 1),
};
static rt_handle *box[BOXES]; // handles on their way
static atomic_u64 wrong;

// exchange leaves a handle in a box and returns the one that was there.  No
// thread polls while it holds the lock.
static rt_handle *exchange(rt_handle **in, rt_handle *h)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	rt_handle *old;

	pthread_mutex_lock(&lock);
	old = *in;
	*in = h;
	pthread_mutex_unlock(&lock);
	return old;
}

static void *trade(void *arg)
{
	struct rng r = {.state = (uintptr_t)arg * 7919};
	uint64_t bad = 0;

	if (rt_thread_attach(RT_THREAD_EXACT) != RT_OK)
		return NULL;
	for (unsigned i = 0; i < ROUNDS; i++) {
		uintptr_t *p = rt_alloc(32);
		rt_handle *h;

		p[0] = ~(uintptr_t)p;
		h = rt_handle_new(p);
		bad += !h;
		h = exchange(&box[rng_below(&r, BOXES)], h);
		if (h) {
			p = rt_handle_get(h);
			bad += p[0] != ~(uintptr_t)p;
			bad += rt_handle_free(h) != RT_OK;
		}
		if (i % 2000 == 0)
			bad += rt_gc() != RT_OK;
		rt_safepoint();
	}
	bad += rt_thread_detach() != RT_OK;
	atomic_u64_add_relaxed(&wrong, bad);
	return arg;
}

TEST(threads_free_handles_of_others)
{
	pthread_t t[THREADS];
	uint64_t left = 0;

	for (uintptr_t i = 0; i < THREADS; i++)
		t[i] = start_thread(trade, (void *)(i + 1));
	for (unsigned i = 0; i < THREADS; i++)
		ck_assert_ptr_nonnull(join_beside(t[i]));
	ck_assert_uint_eq(atomic_u64_load_relaxed(&wrong), 0);
	for (unsigned i = 0; i < BOXES; i++)
		left += box[i] != NULL;
	ck_assert_uint_eq(in_use(), left);
	ck_assert_uint_eq(kept(), left);
	ck_assert_uint_eq(heap_live_after_gc(), left);
	heap_healthy();
}
