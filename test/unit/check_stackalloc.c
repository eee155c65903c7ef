// Stacks of interpreters: sizes, what a P keeps, what is refused.
#define RT_NO_INLINE_ALLOC
#include <errno.h>
#include <pthread.h>
#include <rt/rt.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/os/oscall.h"
#include "runtime/spans/stackalloc.h"
#include "test/harness/fault.h"
#include "test/harness/heap.h"
#include "test/harness/stopped.h"
#include "test/harness/suite.h"
#include "test/harness/thread.h"

static struct rt_proc *self;
static struct rt_mcache *mc;

static void boot(void)
{
	rt_config c = heap_config(HEAP_QUIET);

	c.max_heap = RT_ARENA_SIZE;
	heap_start(c);
	self = proc_self();
	mc = rt_thread_tls->mc;
}

static uint64_t in_stacks(void)
{
	return stopped_totals().in_stacks;
}

static void expect_verified(void)
{
	ck_assert_uint_eq(heap_healthy().stack_inuse, in_stacks());
}

static struct mspan *span_of(const void *p)
{
	return arena_span(arena_offset((uintptr_t)p) >> RT_PAGE_SHIFT);
}

// ---- sizes ----

GROUP(stackalloc, .timeout = 120);

TEST(stacks_are_aligned_and_do_not_overlap, .n = 10)
{
	size_t n = (size_t)STACKALLOC_MIN << _i;
	enum { COUNT = 20 };
	char *v[COUNT];

	boot();
	for (int i = 0; i < COUNT; i++) {
		v[i] = rt_stack_alloc(n);
		ck_assert_ptr_nonnull(v[i]);
		ck_assert_uint_eq((uintptr_t)v[i] % base_min(n, RT_PAGE_SIZE),
				  0);
		memset(v[i], i + 1, n);
		ck_assert_ptr_null(rt_base(v[i])); // no object
	}
	for (int i = 0; i < COUNT; i++) {
		ck_assert_int_eq(v[i][0], i + 1);
		ck_assert_int_eq(memcmp(v[i], v[i] + 1, n - 1), 0);
	}
	ck_assert_uint_ge(in_stacks(), COUNT * n);
	for (int i = 0; i < COUNT; i++)
		ck_assert_int_eq(rt_stack_free(v[i], n), RT_OK);
	expect_verified();
	ck_assert_uint_eq(in_stacks(), 0);
}

TEST(only_powers_of_two_from_2_kib_are_stacks)
{
	static const size_t sizes[] = {0,
				       1,
				       1024,
				       2047,
				       2049,
				       3000,
				       6144,
				       (32 << 10) + 1,
				       RT_ARENA_SIZE * (size_t)2,
				       (size_t)1 << 40,
				       (size_t)1 << 63,
				       SIZE_MAX};

	boot();
	for (unsigned i = 0; i < RT_ARRAY_LEN(sizes); i++)
		ck_assert_ptr_null(rt_stack_alloc(sizes[i]));
	ck_assert_uint_eq(in_stacks(), 0);
	expect_verified();
}

// ---- what a P keeps ----

// A model of the caches of one P: how many stacks of each order it keeps.
struct model {
	uint32_t kept[MCACHE_STACK_ORDERS];
};

static void model_alloc(struct model *m, unsigned order)
{
	if (m->kept[order] == 0)
		m->kept[order] = STACKALLOC_REFILL / (STACKALLOC_MIN << order);
	m->kept[order]--;
}

static void model_free(struct model *m, unsigned order)
{
	uint32_t size = STACKALLOC_MIN << order;

	if (m->kept[order] * size >= MCACHE_STACK_BYTES)
		m->kept[order] = STACKALLOC_REFILL / size;
	m->kept[order]++;
}

enum { MOST = 200 };

// Stacks that are handed out.
static struct {
	size_t n;
	char *v[MOST];
	unsigned order[MOST];
} out;

// spans_out returns the sum of the sizes of all spans that hold a stack of out.
static uint64_t spans_out(void)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < out.n; i++) {
		const struct mspan *s = span_of(out.v[i]);
		size_t k = 0;

		while (span_of(out.v[k]) != s)
			k++;
		if (k == i)
			bytes += s->npages << RT_PAGE_SHIFT;
	}
	return bytes;
}

static bool model_agrees(const struct model *m)
{
	for (unsigned order = 0; order < MCACHE_STACK_ORDERS; order++)
		if (m->kept[order] != mc->stacks.n[order])
			return false;
	return true;
}

static void alloc_one(struct model *m, unsigned order)
{
	char *v = stackalloc(mc, self, (size_t)STACKALLOC_MIN << order);

	if (!v)
		ck_abort_msg("no memory");
	if (order < MCACHE_STACK_ORDERS)
		model_alloc(m, order);
	out.v[out.n] = v;
	out.order[out.n++] = order;
}

static void free_one(struct model *m, size_t i)
{
	unsigned order = out.order[i];
	size_t n = (size_t)STACKALLOC_MIN << order;
	char *v = out.v[i];

	if (!stackfree(mc, self, v, n) || stackfree(mc, self, v, n))
		ck_abort_msg("free of order %u", order);
	if (order < MCACHE_STACK_ORDERS)
		model_free(m, order);
	out.v[i] = out.v[--out.n];
	out.order[i] = out.order[out.n];
}

TEST(caches_follow_their_limits_and_the_statistic_is_exact)
{
	struct model m = {0};
	struct rng r;

	boot();
	rng_init(&r, __func__);
	for (int i = 0; i < 20000; i++) {
		// Long climbs and long falls, so that limits are met.
		uint64_t frees_of_10 = i / 150 % 2 == 0 ? 2 : 8;

		if (out.n != 0 &&
		    (out.n == MOST || rng_below(&r, 10) < frees_of_10))
			free_one(&m, rng_below(&r, out.n));
		else
			alloc_one(&m, (unsigned)rng_below(&r, 6));
		if (!model_agrees(&m))
			ck_abort_msg("kept after %d", i);
		if (rng_below(&r, 300) != 0)
			continue;
		stackalloc_flush(mc, self);
		memset(&m, 0, sizeof m);
		if (!model_agrees(&m) || in_stacks() != spans_out())
			ck_abort_msg("flush after %d", i);
	}
	while (out.n != 0)
		free_one(&m, out.n - 1);
	stackalloc_flush(mc, self);
	ck_assert_uint_eq(in_stacks(), 0);
	expect_verified();
}

TEST(a_span_goes_back_with_its_last_stack)
{
	char *v[16];
	uint64_t page;

	boot();
	for (int i = 0; i < 16; i++)
		v[i] = stackalloc(mc, self, STACKALLOC_MIN);
	page = arena_offset((uintptr_t)v[0]) >> RT_PAGE_SHIFT;
	ck_assert_uint_eq(in_stacks(), STACKALLOC_SPAN);
	for (int i = 0; i < 16; i++) {
		ck_assert_ptr_nonnull(arena_span(page));
		ck_assert(stackfree(mc, self, v[(i * 5) % 16], STACKALLOC_MIN));
		stackalloc_flush(mc, self);
	}
	ck_assert_ptr_null(arena_span(page));
	ck_assert_uint_eq(arena_pageword(page), 0);
	ck_assert_uint_eq(in_stacks(), 0);
	ck_assert_uint_eq(heapgauge_sum(HEAPGAUGE_FREE), STACKALLOC_SPAN);
	expect_verified();
}

TEST(a_large_stack_goes_back_at_once)
{
	char *v;

	boot();
	v = stackalloc(mc, self, 64 << 10);
	ck_assert_uint_eq(in_stacks(), 64 << 10);
	ck_assert(stackfree(mc, self, v, 64 << 10));
	ck_assert_uint_eq(in_stacks(), 0);
	ck_assert(!stackfree(mc, self, v, 64 << 10));
	expect_verified();
}

// ---- wrong frees ----

static void expect_refused(void *p, size_t n)
{
	struct mcache_stacks before;

	memcpy(&before, &mc->stacks, sizeof before); // padding, too
	ck_assert_int_eq(rt_stack_free(p, n), RT_EINVAL);
	ck_assert_mem_eq(&mc->stacks, &before, sizeof before);
}

TEST(what_is_no_stack_is_refused)
{
	static char outside[4096];
	char *v, *large, *object;

	boot();
	v = rt_stack_alloc(4096);
	large = rt_stack_alloc(128 << 10);
	object = rt_alloc(4096);
	expect_refused(NULL, 4096);
	expect_refused(outside, 4096);
	expect_refused(&v, 4096);
	expect_refused(object, 4096);
	expect_refused(rt_alloc(128 << 10), 128 << 10);
	expect_refused((void *)arena.base, 2048);
	expect_refused((void *)(arena.base - 4096), 4096);
	expect_refused((void *)(arena.base + arena_used()), 4096);
	expect_refused((void *)(arena.base + arena_used() - 4096), 4096);
	expect_refused((void *)-4096, 4096);
	for (size_t n = 0; n <= 64 << 10; n = n ? 2 * n : 1)
		if (n != 4096)
			expect_refused(v, n);
	expect_refused(v, SIZE_MAX);
	expect_refused(v, 4095);
	expect_refused(v + 2048, 4096);
	expect_refused(v + 8, 4096);
	expect_refused(v - 4096 == (char *)arena.base ? v + 8192 : v - 4096,
		       4096); // a neighbour that was never handed out
	expect_refused(large, 64 << 10);
	expect_refused(large + (64 << 10), 64 << 10);
	expect_refused(large + 8, 128 << 10);
	expect_refused(large + RT_PAGE_SIZE, 128 << 10);
	ck_assert_int_eq(rt_stack_free(v, 4096), RT_OK);
	ck_assert_int_eq(rt_stack_free(large, 128 << 10), RT_OK);
	expect_verified();
	ck_assert_uint_eq(in_stacks(), 0);
}

// The second free comes while the P keeps the stack, and then after a flush.
TEST(a_second_free_is_refused, .n = 6)
{
	size_t n = (size_t)STACKALLOC_MIN << _i;
	char *v, *other;

	boot();
	v = rt_stack_alloc(n);
	other = rt_stack_alloc(n);
	ck_assert_int_eq(rt_stack_free(v, n), RT_OK);
	expect_refused(v, n);
	stackalloc_flush(mc, self);
	expect_refused(v, n);
	ck_assert_int_eq(rt_stack_free(other, n), RT_OK);
	expect_refused(other, n);
	stackalloc_flush(mc, self);
	expect_refused(other, n);
	expect_verified();
	ck_assert_uint_eq(in_stacks(), 0);
}

// ---- no memory ----

TEST(refused_memory_is_null, .n = 6)
{
	size_t n = (size_t)STACKALLOC_MIN << _i;

	boot();
	fault_fail(OSCALL_COMMIT, 1, UINT64_MAX, ENOMEM);
	ck_assert_ptr_null(rt_stack_alloc(n));
	ck_assert_uint_eq(in_stacks(), 0);
	expect_verified();
	fault_fail(OSCALL_COMMIT, 1, 0, 0);
	ck_assert_ptr_nonnull(rt_stack_alloc(n));
	expect_verified();
}

// The range ends in the middle of a refill.  The rest of it is handed out, each
// stack once.
TEST(the_last_stacks_of_the_range_are_handed_out, .n = MCACHE_STACK_ORDERS)
{
	size_t n = (size_t)STACKALLOC_MIN << _i;
	uint64_t count = 0;
	char *v;

	boot();
	// Leave the pages of 25 spans, and two more.
	ck_assert_ptr_nonnull(mheap_alloc_manual(
	    self, RT_ARENA_SIZE / RT_PAGE_SIZE - 25 * 4 - 2, MSPAN_WORK));
	while ((v = stackalloc(mc, self, n)) != NULL) {
		v[0] = v[n - 1] = 1;
		count++;
	}
	ck_assert_uint_eq(count, 25 * STACKALLOC_SPAN / n);
	ck_assert_uint_eq(in_stacks(), 25 * STACKALLOC_SPAN);
	ck_assert_ptr_null(stackalloc(mc, self, n));
	for (unsigned order = 0; order < MCACHE_STACK_ORDERS; order++)
		ck_assert_uint_eq(mc->stacks.n[order], 0);
}

// ---- threads ----

enum { THREADS = 3, STEPS = RT_TSAN ? 1500 : 6000, MAILBOXES = 32 };

// Stacks travel through mailboxes: any thread frees what another allocated.  A
// stack is its place in the heap's range, in units from 1 on; 0 is no stack.
static atomic_u32 mailbox[MAILBOXES];

static void *swap_mail(atomic_u32 *box, const void *v)
{
	uint64_t unit = v ? arena_offset((uintptr_t)v) / STACKALLOC_MIN + 1 : 0;
	uint32_t old = atomic_u32_swap_seqcst(box, (uint32_t)unit);

	return old ? (char *)arena.base + (old - 1ULL) * STACKALLOC_MIN : NULL;
}

static size_t mail_size(int i)
{
	return (size_t)STACKALLOC_MIN << i % 5;
}

static void post(struct rng *r)
{
	int i = (int)rng_below(r, MAILBOXES);
	size_t n = mail_size(i);
	char *v = rng_next(r) % 2 ? rt_stack_alloc(n) : NULL;

	if (v) {
		memset(v, i, 64);
		v[n - 1] = (char)i;
	}
	v = swap_mail(&mailbox[i], v);
	if (!v)
		return;
	if (v[0] != i || v[63] != i || v[n - 1] != i ||
	    rt_stack_free(v, n) != RT_OK)
		abort();
}

static void *poster(void *arg)
{
	struct rng r = {*(uint64_t *)arg};
	rt_memstats m;

	if (rt_thread_attach(0) != RT_OK)
		abort();
	for (int i = 0; i < STEPS; i++) {
		post(&r);
		rt_safepoint();
		if (i % 500 == 0 && rt_read_memstats(&m) != RT_OK)
			abort();
	}
	rt_thread_detach();
	return NULL;
}

TEST(stacks_are_freed_by_any_thread)
{
	uint64_t seeds[THREADS];
	pthread_t t[THREADS];
	struct rng r;

	boot();
	rng_init(&r, __func__);
	for (int i = 0; i < THREADS; i++) {
		seeds[i] = rng_next(&r);
		t[i] = start_thread(poster, &seeds[i]);
	}
	for (int i = 0; i < THREADS; i++)
		join_beside(t[i]);
	for (int i = 0; i < MAILBOXES; i++) {
		void *v = swap_mail(&mailbox[i], NULL);

		if (v)
			ck_assert_int_eq(rt_stack_free(v, mail_size(i)), RT_OK);
	}
	stackalloc_flush(mc, self);
	ck_assert_uint_eq(in_stacks(), 0);
	expect_verified();
}

enum { FREES = 500 };

static struct {
	pthread_barrier_t have;	 // there is a stack
	pthread_barrier_t freed; // both have tried
	void *v;
	size_t n;
	atomic_u32 done;
} twice;

static void free_together(void)
{
	pthread_barrier_wait(&twice.have);
	if (rt_stack_free(twice.v, twice.n) == RT_OK)
		atomic_u32_add_relaxed(&twice.done, 1);
	pthread_barrier_wait(&twice.freed);
}

static void *second_freer(void *arg)
{
	(void)arg;
	if (rt_thread_attach(0) != RT_OK)
		abort();
	for (int i = 0; i < FREES; i++)
		free_together();
	rt_thread_detach();
	return NULL;
}

TEST(of_two_threads_one_frees_a_stack, .n = 5)
{
	pthread_t t;

	boot();
	twice.n = (size_t)STACKALLOC_MIN << _i;
	pthread_barrier_init(&twice.have, NULL, 2);
	pthread_barrier_init(&twice.freed, NULL, 2);
	t = start_thread(second_freer, NULL);
	for (uint32_t i = 0; i < FREES; i++) {
		twice.v = rt_stack_alloc(twice.n);
		ck_assert_ptr_nonnull(twice.v);
		free_together();
		ck_assert_uint_eq(atomic_u32_load_relaxed(&twice.done), i + 1);
	}
	join_beside(t);
	stackalloc_flush(mc, self);
	ck_assert_uint_eq(in_stacks(), 0);
	expect_verified();
}

TEST(stacks_end_with_the_heap)
{
	char *v = NULL;

	for (int i = 0; i < 3; i++) {
		boot();
		if (v)
			expect_refused(v, 4096);
		v = rt_stack_alloc(4096);
		ck_assert_ptr_nonnull(v);
		memset(v, 1, 4096);
		ck_assert_int_eq(rt_fini(), RT_OK);
	}
}
