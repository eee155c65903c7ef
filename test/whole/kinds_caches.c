// The memory that the caches of threads have for kinds.  It is tested when the
// system refuses it, when threads come and go, in a child, and beside threads
// that only ask for the kind of an object.
#include <errno.h>
#include <unistd.h>

#include "runtime/spans/mcache.h"
#include "test/harness/await.h"
#include "test/harness/fault.h"
#include "test/harness/kind.h"
#include "test/harness/process.h"

static uintptr_t *root;

static int add_words(int number)
{
	return kind_make(.layout = RT_LAYOUT_WORDS, .number = number);
}

static void begin(void)
{
	heap_start_exact(heap_config(HEAP_QUIET));
	root = heap_table(4, RT_ROOT_EXACT);
}

GROUP(caches, .setup = begin, .timeout = 2 * AWAIT_SECONDS);

// ---- memory that is refused ----

static const enum oscall calls[] = {OSCALL_RESERVE, OSCALL_COMMIT};

// Kinds that are registered and have no objects take no memory.
TEST(kinds_without_objects_take_no_memory)
{
	enum { SOME = 16 };
	uint64_t inuse = heap_stats().mcache_inuse;
	int kind[SOME];

	for (unsigned i = 0; i < SOME; i++) {
		kind[i] = add_words(i % 2 ? RT_KIND_ANY : RT_KIND_ANY_ALIGN8);
		ck_assert_int_gt(kind[i], 0);
	}
	ck_assert_ptr_nonnull(rt_alloc(16));
	ck_assert_uint_eq(heap_live_after_gc(), 0);
	ck_assert_uint_eq(heap_stats().mcache_inuse, inuse);
	for (unsigned i = 0; i < SOME; i++)
		ck_assert_int_eq(rt_kind_unregister(kind[i]), RT_OK);
	heap_healthy();
}

// The first allocation of a kind needs memory for the thread's slots.  If the
// system refuses it, there is no object, nothing is lost, and the next
// allocation succeeds.  Other kinds are not affected.
TEST(a_first_allocation_without_memory_is_null, .n = RT_ARRAY_LEN(calls))
{
	uint64_t inuse = heap_stats().mcache_inuse;
	void *p;

	rt_alloc(16);
	ck_assert_int_eq(add_words(16), 16);
	fault_fail(calls[_i], 1, UINT64_MAX, ENOMEM);
	ck_assert_ptr_null(rt_alloc_of(16, 24));
	ck_assert_ptr_null(rt_alloc_of(16, 24));
	ck_assert_uint_gt(fault_failed(calls[_i]), 0);
	ck_assert_uint_eq(heap_stats().mcache_inuse, inuse);
	fault_fail(calls[_i], 1, 0, 0);
	heap_healthy();
	ck_assert_ptr_nonnull(rt_alloc(16));
	p = rt_alloc_of(16, 24);
	ck_assert_int_eq(rt_kind_of(p), 16);
	ck_assert_uint_eq(heap_stats().mcache_inuse,
			  inuse + sizeof(struct mcache_kind));
	heap_healthy();
	ck_assert_uint_eq(heap_live_after_gc(), 0);
	ck_assert_int_eq(rt_kind_unregister(16), RT_OK);
	ck_assert_uint_eq(heap_stats().mcache_inuse, inuse);
}

// A large object of a kind needs no memory for slots.
TEST(a_large_object_needs_no_slots)
{
	uint64_t inuse = heap_stats().mcache_inuse;

	ck_assert_int_eq(add_words(9), 9);
	ck_assert_ptr_nonnull(rt_alloc_of(9, 40000));
	ck_assert_uint_eq(heap_stats().mcache_inuse, inuse);
}

// ---- threads that come and go ----

enum { USED = 8 };

static void *use_kinds(void *arg)
{
	ck_assert_int_eq(rt_thread_attach(RT_THREAD_EXACT), RT_OK);
	for (int k = 0; k < USED; k++) {
		char *p = rt_alloc_of(RT_KIND_FIRST + k, 48);

		// The bytes that the previous thread wrote there are gone.
		ck_assert(p && heap_is_zero(p, 48));
		memset(p, 0xff, 48);
	}
	ck_assert_int_eq(rt_thread_detach(), RT_OK);
	return arg;
}

static const enum oscall maps[] = {OSCALL_RESERVE, OSCALL_COMMIT, OSCALL_MAP,
				   OSCALL_RELEASE, OSCALL_UNCOMMIT};

static uint64_t calls_made(void)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < RT_ARRAY_LEN(maps); i++)
		n += fault_count(maps[i]);
	return n;
}

// The blocks that a thread had for kinds are kept for the next thread, so that
// one maps nothing.
TEST(a_thread_leaves_its_blocks_to_the_next)
{
	uint64_t sys, inuse = heap_stats().mcache_inuse;

	for (int k = 0; k < USED; k++)
		ck_assert_int_eq(add_words(RT_KIND_ANY), RT_KIND_FIRST + k);
	run_beside(use_kinds, NULL);
	sys = heap_stats().mcache_sys;
	for (unsigned i = 0; i < RT_ARRAY_LEN(maps); i++)
		fault_fail(maps[i], 1, 0, 0);
	for (int i = 0; i < 100 / HEAP_CUT; i++)
		run_beside(use_kinds, NULL);
	ck_assert_uint_eq(calls_made(), 0);
	ck_assert_uint_eq(heap_stats().mcache_sys, sys);
	ck_assert_uint_eq(heap_stats().mcache_inuse, inuse);
	ck_assert_int_eq(rt_free_os_memory(), RT_OK);
	ck_assert_uint_le(heap_stats().mcache_sys,
			  sys - USED * sizeof(struct mcache_kind));
	heap_healthy();
}

// At most MCACHE_KINDS_KEPT blocks are kept.  The others are released.
TEST(only_so_many_blocks_are_kept)
{
	enum { THREADS = MCACHE_KINDS_KEPT / USED + 2 };
	pthread_t thread[THREADS];

	for (int k = 0; k < USED; k++)
		ck_assert_int_eq(add_words(RT_KIND_ANY), RT_KIND_FIRST + k);
	ck_assert_int_eq(rt_blocking_enter(), RT_OK);
	for (unsigned i = 0; i < THREADS; i++)
		thread[i] = start_thread(use_kinds, NULL);
	for (unsigned i = 0; i < THREADS; i++)
		join_thread(thread[i]);
	ck_assert_int_eq(rt_blocking_leave(), RT_OK);
	ck_assert_uint_le(mcache_blocks.kinds.n, MCACHE_KINDS_KEPT);
	ck_assert_uint_ge(mcache_blocks.kinds.n, USED);
	ck_assert_ptr_null(mcache_blocks_check(&mcache_blocks));
}

// ---- a child ----

static atomic_u32 waits, leave;

// wait_with_kinds is a thread that has blocks of two kinds, and is gone in the
// child.
static void *wait_with_kinds(void *arg)
{
	ck_assert_int_eq(rt_thread_attach(RT_THREAD_EXACT), RT_OK);
	root[1] = (uintptr_t)rt_alloc_of(5, 48);
	root[2] = (uintptr_t)rt_alloc_of(17, 24);
	ck_assert_int_eq(rt_blocking_enter(), RT_OK);
	atomic_u32_store_release(&waits, 1);
	await_at_least(&leave, 1);
	ck_assert_int_eq(rt_blocking_leave(), RT_OK);
	ck_assert_int_eq(rt_thread_detach(), RT_OK);
	return arg;
}

// stays_busy tells whether a kind cannot be unregistered, even after a
// collection.
static bool stays_busy(int kind)
{
	return rt_kind_unregister(kind) == RT_EBUSY && rt_gc() == RT_OK &&
	       rt_kind_unregister(kind) == RT_EBUSY;
}

// uses_kinds_alone runs in the child, and tells whether kinds work there.
static bool uses_kinds_alone(void)
{
	struct rt_verify v;

	for (int i = 0; i < 1000; i++) {
		void **p = rt_alloc_of(17, 24);

		if (!p)
			return false;
		p[0] = (void *)root[3];
		root[3] = (uintptr_t)p;
	}
	if (!stays_busy(5) || !stays_busy(17) || rt_heap_verify(&v) != RT_OK ||
	    v.errors != 0 || v.objects != 3 + 1000)
		return false;
	memset(root, 0, 4 * sizeof *root);
	return rt_gc() == RT_OK && rt_kind_unregister(5) == RT_OK &&
	       rt_kind_unregister(17) == RT_OK && add_words(17) == 17 &&
	       rt_alloc_of(17, 24) && !rt_alloc_of(5, 24) &&
	       rt_heap_verify(&v) == RT_OK && v.objects == 1;
}

TEST(kinds_work_in_a_child)
{
	pthread_t thread;

	ck_assert_int_eq(add_words(5), 5);
	ck_assert_int_eq(add_words(17), 17);
	root[0] = (uintptr_t)rt_alloc_of(17, 24);
	thread = start_thread(wait_with_kinds, NULL);
	await_at_least(&waits, 1);
	if (process_forked())
		process_end(uses_kinds_alone());
	ck_assert_int_eq(rt_blocking_enter(), RT_OK);
	atomic_u32_store_release(&leave, 1);
	join_thread(thread);
	ck_assert_int_eq(rt_blocking_leave(), RT_OK);
	ck_assert_uint_eq(heap_live_after_gc(), 3);
}

// ---- threads that only ask ----

static atomic_u32 asked, stop;
static uintptr_t lowest; // of the heap

// ask_kinds runs in a thread that is not attached, while kinds begin and end.
// Every answer is RT_ENOENT or a kind that existed at some time.
static void *ask_kinds(void *arg)
{
	uintptr_t p = lowest;

	while (!atomic_u32_load_acquire(&stop)) {
		int kind = rt_kind_of((void *)p);

		ck_assert(kind == RT_ENOENT || kind == RT_NOSCAN || kind == 5 ||
			  kind == 17);
		p = p - lowest < (1 << 18) ? p + 40 : lowest;
		atomic_u32_add_relaxed(&asked, 1);
	}
	return arg;
}

TEST(any_thread_may_ask_while_kinds_end)
{
	pthread_t thread;

	lowest =
	    (uintptr_t)rt_alloc_noscan(16) & ~(uintptr_t)(RT_PAGE_SIZE - 1);
	thread = start_thread(ask_kinds, NULL);
	await_at_least(&asked, 1);
	for (int i = 0; i < 300 / HEAP_CUT; i++) {
		int kind = i % 2 ? 5 : 17;

		ck_assert_int_eq(add_words(kind), kind);
		for (int k = 0; k < 200; k++)
			ck_assert_ptr_nonnull(
			    rt_alloc_of(kind, 1 + (size_t)(i + k) * 7 % 3000));
		ck_assert_int_eq(rt_gc(), RT_OK);
		ck_assert_int_eq(rt_kind_unregister(kind), RT_OK);
	}
	atomic_u32_store_release(&stop, 1);
	join_thread(thread);
}
