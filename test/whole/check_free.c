// Objects that are freed by hand.
#include <rt/rt.h>

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <signal.h>
#include <unistd.h>

#include "runtime/base/base.h"
#include "runtime/os/gauge.h"
#include "runtime/spans/spoil.h"
#include "test/harness/fault.h"
#include "test/harness/kind.h"
#include "test/harness/process.h"
#include "test/harness/thread.h"
#include "test/whole/free.h"

// Sizes of every sort of class: of the inline path, longer ones, large objects.
static const size_t sizes[] = {17,    24,    32,    48,	   100,
			       1000,  1024,  1025,  3000,  8192,
			       20000, 32760, 32761, 70000, 1 << 20};

// comes_back tells whether one of the next allocations returns p.
static bool comes_back(int kind, size_t n, const void *p)
{
	for (int i = 0; i < 2000; i++) {
		char *q = rt_alloc_kind(kind, n);

		ck_assert_ptr_nonnull(q);
		ck_assert(heap_is_zero(q, rt_size(q)));
		if (q == p)
			return true;
	}
	return false;
}

GROUP(one_object, .timeout = 60);

TEST(what_was_freed_is_allocated_again)
{
	heap_begin();
	for (size_t i = 0; i < RT_ARRAY_LEN(sizes); i++)
		for (int kind = RT_NOSCAN; kind <= RT_WORDS; kind++) {
			char *p = rt_alloc_kind(kind, sizes[i]);

			memset(p, 0xff, rt_size(p));
			free_ok(p);
			ck_assert(comes_back(kind, sizes[i], p));
		}
	ck_assert_uint_eq(heap_stats().num_gc, 0);
	heap_healthy();
}

TEST(statistics_are_exact)
{
	static void *p[1000];
	rt_memstats before, after;

	heap_begin();
	for (size_t i = 0; i < RT_ARRAY_LEN(sizes); i++) {
		unsigned n = sizes[i] > 32760 ? 10 : 1000;

		before = heap_healthy();
		for (unsigned j = 0; j < n; j++)
			p[j] = alloc_words(sizes[i]);
		for (unsigned j = 0; j < n; j++)
			free_ok(p[j]);
		after = heap_healthy();
		ck_assert_uint_eq(after.mallocs - before.mallocs, n);
		ck_assert_uint_eq(after.frees - before.frees, n);
		ck_assert_uint_eq(after.heap_alloc, before.heap_alloc);
		ck_assert_uint_eq(after.total_alloc - before.total_alloc,
				  n * rt_good_size(sizes[i]));
	}
}

// Each allocation and each free counts, even if one slot is freed and allocated
// again and again.
TEST(reuse_is_counted)
{
	enum { N = 200000 };
	rt_memstats before, after;

	heap_begin();
	before = heap_healthy();
	for (int i = 0; i < N; i++)
		free_ok(alloc_words(48));
	rt_read_memstats_live(&after);
	ck_assert_uint_ge(after.mallocs, after.frees);
	ck_assert_uint_ge(after.frees - before.frees, N / 2);
	after = heap_healthy();
	ck_assert_uint_eq(after.mallocs - before.mallocs, N);
	ck_assert_uint_eq(after.frees - before.frees, N);
	ck_assert_uint_eq(after.heap_objects, before.heap_objects);
}

// Slots that are freed in full spans are allocated again.
TEST(slots_of_full_spans_are_used_again)
{
	enum { N = 4000 };
	static void *p[N];
	uint64_t inuse;

	heap_begin();
	for (int i = 0; i < N; i++)
		p[i] = alloc_words(64);
	inuse = heap_stats().heap_inuse;
	for (int round = 0; round < 5; round++) {
		for (int i = 0; i < N; i += 2)
			free_ok(p[i]);
		heap_healthy(); // flushes the lists
		for (int i = 0; i < N; i += 2)
			p[i] = alloc_words(64);
	}
	ck_assert_uint_eq(heap_healthy().heap_inuse, inuse);
}

TEST(the_pages_of_a_large_object_are_free_at_once)
{
	rt_memstats before, after;
	void *p;

	heap_begin();
	before = heap_stats();
	p = alloc_words(1 << 20);
	free_ok(p);
	rt_read_memstats_live(&after);
	ck_assert_uint_eq(after.heap_inuse, before.heap_inuse);
	ck_assert_uint_eq(after.frees, before.frees + 1);
	ck_assert_int_eq(rt_is_heap(p), 0);
	heap_healthy();
}

GROUP(errors, .timeout = 60);

TEST(a_second_free_is_refused)
{
	heap_begin();
	for (size_t i = 0; i < RT_ARRAY_LEN(sizes); i++)
		for (int kind = RT_NOSCAN; kind <= RT_WORDS; kind++) {
			void *p = rt_alloc_kind(kind, sizes[i]);
			void *q = rt_alloc_kind(kind, sizes[i]);

			free_ok(p);
			ck_assert_int_eq(rt_free(p), RT_EINVAL);
			free_ok(q);
			ck_assert_int_eq(rt_free(p), RT_EINVAL);
			heap_stats();
			ck_assert_int_eq(rt_free(p), RT_EINVAL);
			rt_gc();
			ck_assert_int_eq(rt_free(p), RT_EINVAL);
		}
	ck_assert_uint_eq(heap_healthy().heap_objects, 0);
}

// The slot is in a run that is not used up.
TEST(a_second_free_of_what_will_be_allocated_next_is_refused)
{
	void *p, *q;

	heap_begin();
	for (int uninit = 0; uninit <= 1; uninit++) {
		p = rt_alloc_noscan(96);
		free_ok(p);
		rt_gc();
		q = uninit ? rt_alloc_noscan_uninit(96) : rt_alloc_noscan(96);
		ck_assert_int_eq(rt_free((char *)q - 96), RT_EINVAL);
	}
}

static void *free_second(void *p)
{
	int error;

	ck_assert_int_eq(rt_thread_attach(0), RT_OK);
	error = rt_free(p);
	ck_assert_int_eq(rt_thread_detach(), RT_OK);
	return (void *)(intptr_t)error;
}

TEST(a_second_free_in_another_thread_is_refused)
{
	void *small, *large;

	heap_begin();
	small = alloc_words(40);
	large = alloc_words(40000);
	free_ok(small);
	ck_assert_int_eq((intptr_t)run_beside(free_second, small), RT_EINVAL);
	ck_assert_int_eq((intptr_t)run_beside(free_second, large), RT_OK);
	ck_assert_int_eq(rt_free(large), RT_EINVAL);
	heap_healthy();
}

TEST(what_is_no_object_is_refused)
{
	static char here[64];
	char *p, *large;
	void *stack;

	heap_begin();
	p = alloc_words(64);
	large = alloc_words(100000);
	stack = rt_stack_alloc(4096);
	ck_assert_int_eq(rt_free(NULL), RT_OK);
	ck_assert_int_eq(rt_free(rt_alloc(0)), RT_OK);
	ck_assert_int_eq(rt_free(p + 8), RT_EINVAL);
	ck_assert_int_eq(rt_free(p + 1), RT_EINVAL);
	ck_assert_int_eq(rt_free(large + 8192), RT_EINVAL);
	ck_assert_int_eq(rt_free(large + 16), RT_EINVAL);
	ck_assert_int_eq(rt_free(here), RT_EINVAL);
	ck_assert_int_eq(rt_free(stack), RT_EINVAL);
	ck_assert_int_eq(rt_free((void *)8), RT_EINVAL);
	ck_assert_int_eq(rt_free((void *)UINTPTR_MAX), RT_EINVAL);
	free_ok(p);
	free_ok(large);
	rt_stack_free(stack, 4096);
	heap_healthy();
}

// Requests that share a slot die together, so rt_free changes none of them.
TEST(small_objects_without_references_are_left, .n = 2)
{
	static char *p[3000];
	rt_config c = heap_config(HEAP_QUIET);
	size_t largest = 16;

	c.align8 = (uint32_t)_i;
	heap_start(c);
	ck_assert_int_eq(rt_roots_add(p, p + RT_ARRAY_LEN(p), 0), RT_OK);
	for (size_t i = 0; i < RT_ARRAY_LEN(p); i++) {
		p[i] = rt_alloc_noscan(1 + i % largest);
		memset(p[i], (int)i, 1 + i % largest);
	}
	for (size_t i = 0; i < RT_ARRAY_LEN(p); i++) {
		free_ok(p[i]);
		free_ok(p[i]);
	}
	rt_gc();
	for (size_t i = 0; i < RT_ARRAY_LEN(p); i++)
		for (size_t j = 0; j < 1 + i % largest; j++)
			ck_assert_int_eq((unsigned char)p[i][j], i & 255);
	heap_healthy();
}

GROUP(kinds, .timeout = 60);

enum { HEADER = 0x1234 };

static atomic_u64 traced;

static void trace(rt_tracer *t, void *obj, size_t size, void *arg)
{
	const uint64_t *word = obj;

	(void)t, (void)size, (void)arg;
	ck_assert_uint_eq(word[0], HEADER);
	ck_assert_uint_eq(word[2], HEADER);
	atomic_u64_add_relaxed(&traced, 1);
}

// A trace callback would find the link of the list where the header of a freed
// object was.
TEST(a_freed_object_is_not_traced)
{
	enum { N = 3000 };
	static uint64_t *p[N];
	int kind;

	heap_start_exact(heap_config(HEAP_QUIET)); // no object may be left
	ck_assert_int_eq(rt_roots_add(p, p + N, 0), RT_OK);
	kind = kind_make(.layout = RT_LAYOUT_TRACE, .trace = trace,
			 .number = RT_KIND_ANY_ALIGN8);
	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < N; i++) {
			p[i] = rt_alloc_kind(kind, 24);
			ck_assert(heap_is_zero(p[i], 24));
			p[i][0] = p[i][2] = HEADER;
		}
		for (int i = round; i < N; i += 3)
			free_ok(p[i]); // the root still refers to it
		atomic_u64_store_relaxed(&traced, 0);
		rt_gc();
		ck_assert_uint_ge(atomic_u64_load_relaxed(&traced),
				  N - (N + 2) / 3);
		for (int i = round; i < N; i += 3)
			p[i] = NULL;
		heap_healthy();
	}
	memset(p, 0, sizeof p);
	rt_gc();
	ck_assert_int_eq(rt_kind_unregister(kind), RT_OK);
	heap_healthy();
}

enum { KINDS = RT_KIND_MAX - RT_KIND_FIRST + 1 };

static void *free_without_memory(void *arg)
{
	static const enum oscall refused[] = {OSCALL_MAP, OSCALL_RESERVE,
					      OSCALL_COMMIT};
	void **p = arg;

	ck_assert_int_eq(rt_thread_attach(0), RT_OK);
	for (size_t i = 0; i < RT_ARRAY_LEN(refused); i++)
		fault_fail(refused[i], 1, UINT64_MAX, ENOMEM);
	for (int i = 0; i < KINDS; i++) {
		free_ok(p[i]);
		ck_assert_int_eq(rt_free(p[i]), RT_EINVAL);
	}
	ck_assert_uint_gt(fault_failed(OSCALL_MAP) +
			      fault_failed(OSCALL_RESERVE) +
			      fault_failed(OSCALL_COMMIT),
			  0);
	for (size_t i = 0; i < RT_ARRAY_LEN(refused); i++)
		fault_fail(refused[i], 1, 0, 0);
	ck_assert_int_eq(rt_thread_detach(), RT_OK);
	return NULL;
}

// The other thread has no slots of the kinds, and gets no memory for them.
TEST(freeing_needs_no_memory)
{
	static void *p[KINDS];
	uint64_t before;

	heap_begin();
	for (int i = 0; i < KINDS; i++) {
		int kind = kind_make(.layout = RT_LAYOUT_WORDS,
				     .number = RT_KIND_FIRST + i);

		p[i] = rt_alloc_kind(kind, 48);
	}
	before = heap_stats().frees;
	run_beside(free_without_memory, p);
	ck_assert_uint_eq(heap_healthy().frees, before + KINDS);
}

// ---- typed objects ----

// links_come_back tells whether one of the next allocations returns p.
static bool links_come_back(const void *p)
{
	bool found = false;

	for (int i = 0; i < 2000; i++)
		found |= alloc_links() == p;
	return found;
}

static void *free_links(void *p)
{
	ck_assert_int_eq(rt_thread_attach(0), RT_OK);
	free_ok(p);
	ck_assert_int_eq(rt_free(p), RT_EINVAL);
	ck_assert(!links_come_back(p));
	ck_assert_int_eq(rt_thread_detach(), RT_OK);
	return NULL;
}

// The type bits of several slots share a word, and the thread that caches the
// span writes them by plain stores.  So a freed slot must wait for a
// collection.
TEST(a_freed_typed_object_waits_for_a_collection)
{
	rt_memstats before, after;
	void *p, *q;

	heap_begin();
	before = heap_healthy();
	p = alloc_links();
	q = alloc_links();
	run_beside(free_links, p);
	free_ok(q);
	ck_assert_int_eq(rt_free(q), RT_EINVAL);
	ck_assert(!links_come_back(p) && !links_come_back(q));
	after = heap_healthy();
	ck_assert_uint_eq(after.mallocs - before.mallocs, 2 + 3 * 2000);
	ck_assert_uint_eq(after.frees - before.frees, 2);
	ck_assert_int_eq(rt_gc(), RT_OK);
	ck_assert(links_come_back(p));
	heap_healthy();
}

TEST(a_large_typed_object_is_freed_at_once)
{
	rt_memstats before, after;

	heap_begin();
	ck_assert_ptr_nonnull(rt_alloc_typed(&links, 1)); // makes the bits
	before = heap_stats();
	free_ok(rt_alloc_typed(&links, 2000));
	after = heap_healthy();
	ck_assert_uint_eq(after.frees - before.frees, 1);
	ck_assert_uint_eq(after.heap_inuse, before.heap_inuse);
	ck_assert_uint_eq(after.num_gc, 0);
}

// Freed objects that wait count towards the goal.  Otherwise the heap would
// grow without end.
TEST(freed_typed_objects_are_collected)
{
	rt_memstats m;

	heap_start(heap_config(100));
	for (int i = 0; i < 1000000 / HEAP_CUT; i++)
		free_ok(alloc_links());
	m = heap_healthy();
	ck_assert_uint_ge(m.num_gc, 1);
	ck_assert_uint_le(m.heap_inuse, 16 << 20);
}

GROUP(modes, .timeout = 60);

TEST(clobberfree_overwrites_at_once)
{
	rt_config c = heap_config(HEAP_QUIET);
	uint64_t *p;

	c.clobberfree = 1;
	heap_start(c);
	p = alloc_words(64);
	free_ok(p);
	for (int i = 2; i < 8; i++)
		ck_assert_uint_eq(p[i], SPOIL_CLOBBER);
	heap_stats();
	for (int i = 0; i < 8; i++)
		ck_assert_uint_eq(p[i], SPOIL_CLOBBER);
	ck_assert(comes_back(RT_WORDS, 64, p));
	heap_healthy();
}

TEST(with_gcstress_and_checkmark)
{
	rt_config c = heap_config(HEAP_QUIET);
	void *p[20] = {0};

	c.gcstress = 3;
	c.checkmark = 1;
	heap_start(c);
	for (size_t i = 0; i < 2000 / HEAP_CUT; i++) {
		size_t at = i * 7 % RT_ARRAY_LEN(p);

		if (p[at])
			free_ok(p[at]);
		p[at] = i % 3 == 0 ? rt_alloc_uncollectable(RT_WORDS, 8 + i)
				   : alloc_words(17 + i * 13);
	}
	heap_healthy();
}

static rt_config guarded(void)
{
	rt_config c = heap_config(HEAP_QUIET);

	c.guard_small = 1;
	c.guard_large = 1;
	return c;
}

TEST(guarded_objects_are_freed_at_once)
{
	heap_start(guarded());
	for (size_t i = 0; i < RT_ARRAY_LEN(sizes); i++) {
		void *p = alloc_words(sizes[i]);
		void *q = rt_alloc_uncollectable(RT_NOSCAN, sizes[i]);

		rt_gc();
		free_ok(p);
		free_ok(q);
		ck_assert_int_eq(rt_is_heap(p), 0);
		ck_assert_int_eq(rt_free(p), RT_EINVAL);
		ck_assert_int_eq(rt_free(q), RT_EINVAL);
	}
	ck_assert_uint_eq(heap_healthy().heap_objects, 0);
}

TEST(a_read_of_a_freed_guarded_object_faults, .signal = SIGSEGV,
     .unless = SUITE_SANITIZED)
{
	volatile char *p;

	heap_start(guarded());
	p = alloc_words(100);
	free_ok((void *)p);
	(void)*p;
}

TEST(a_write_beside_a_guarded_object_is_reported, .signal = SIGABRT)
{
	char *p;

	heap_start(guarded());
	p = alloc_words(40);
	p[-1] = 1;
	rt_free(p);
}

GROUP(pacing, .timeout = 120);

// At any time only a few objects are alive.  Their sizes are random.
TEST(a_program_that_frees_everything_does_not_collect)
{
	static char *p[500];
	rt_config c = heap_config(100);
	struct rng r;
	rt_memstats m;

	heap_start(c);
	rng_init(&r, "a_program_that_frees_everything_does_not_collect");
	for (unsigned i = 0; i < 2000000 / HEAP_CUT; i++) {
		char **at = &p[rng_below(&r, RT_ARRAY_LEN(p))];
		size_t n = rng_below(&r, 100) == 0 ? rng_below(&r, 100000)
						   : rng_below(&r, 500);

		if (*at)
			free_ok(*at);
		// Objects below 17 bytes would be left to the collector.
		*at = rt_alloc_kind((int)(n & 1), 17 + n);
		ck_assert_ptr_nonnull(*at);
		(*at)[0] = (*at)[16 + n] = 1;
	}
	m = heap_stats();
	ck_assert_uint_eq(m.num_gc, 0);
	heap_healthy();
}

// free_table frees more on its thread than that thread has added to heap_live.
static void *free_table(void *arg)
{
	void **p = arg;

	ck_assert_int_eq(rt_thread_attach(0), RT_OK);
	for (; *p; p++)
		free_ok(*p);
	ck_assert_ptr_nonnull(rt_alloc(64)); // collects if that is due
	ck_assert_ptr_nonnull(rt_alloc(5000));
	ck_assert_int_eq(rt_thread_detach(), RT_OK);
	return NULL;
}

TEST(frees_before_the_allocations_are_published)
{
	static void *p[20001];
	rt_config c = heap_config(100);

	heap_start(c);
	for (int round = 0; round < 10; round++) {
		for (int i = 0; i < 20000; i++)
			p[i] = alloc_words(48);
		run_beside(free_table, p);
	}
	ck_assert_uint_eq(heap_stats().num_gc, 0);
	// The main thread has allocated again what the other threads freed.
	ck_assert_uint_le(heap_healthy().heap_inuse, 2 << 20);
}

static void *free_only(void *arg)
{
	void **p = arg;

	ck_assert_int_eq(rt_thread_attach(0), RT_OK);
	for (; *p; p++)
		free_ok(*p);
	ck_assert_int_eq(rt_thread_detach(), RT_OK);
	return NULL;
}

static void no_metric_is_negative(void)
{
	for (size_t i = 0; i < rt_metrics_count(); i++) {
		rt_metric_desc d;
		rt_metric_sample s = {0};

		ck_assert_int_eq(rt_metrics_describe(i, &d), RT_OK);
		s.name = d.name;
		ck_assert_int_eq(rt_metrics_read(&s, 1), RT_OK);
		if (s.result == RT_METRIC_U64)
			ck_assert_msg(s.u64 >> 63 == 0, "%s", d.name);
		if (s.result == RT_METRIC_F64)
			ck_assert_msg(s.f64 >= 0, "%s", d.name);
	}
}

// The allocating thread has published less than the other one has freed, so
// heap_live is below zero.  A collection and live reads work even so.
TEST(a_collection_when_frees_were_published_first)
{
	static void *p[21];
	rt_memstats m;

	heap_start(heap_config(100));
	for (int i = 0; i < 20; i++)
		p[i] = alloc_words(1024);
	run_beside(free_only, p);
	ck_assert_uint_ne(gauge_load(&gauges.heap_live) >> 63, 0);
	ck_assert_int_eq(rt_read_memstats_live(&m), RT_OK);
	ck_assert_uint_ge(m.mallocs, m.frees);
	ck_assert_uint_le(m.heap_objects, 20);
	ck_assert_uint_le(m.heap_alloc, 20 * 1024);
	ck_assert_uint_le(m.total_alloc, 20 * 1024);
	ck_assert_uint_le(m.next_gc, 1 << 30);
	no_metric_is_negative();
	rt_gc();
	m = heap_healthy();
	ck_assert_uint_eq(m.mallocs, 20);
	ck_assert_uint_eq(m.frees, 20);
}

GROUP(threads, .timeout = 120);

enum { RING = 1024 };

static struct {
	atomic_ptr slot[RING];
	atomic_u32 left; // producers
} ring;

static void *produce(void *arg)
{
	unsigned n = (unsigned)(uintptr_t)arg;

	ck_assert_int_eq(rt_thread_attach(0), RT_OK);
	for (unsigned i = 0; i < n; i++) {
		uint64_t *p = alloc_words(32 + i % 3 * 16);

		ck_assert_uint_eq(p[0] | p[1] | p[2] | p[3], 0);
		p[0] = p[1] = p[2] = p[3] = i;
		while (atomic_ptr_load_relaxed(&ring.slot[i % RING]))
			rt_safepoint();
		atomic_ptr_store_release(&ring.slot[i % RING], p);
	}
	atomic_u32_store_release(&ring.left, 0);
	ck_assert_int_eq(rt_thread_detach(), RT_OK);
	return NULL;
}

static void *consume(void *arg)
{
	unsigned n = (unsigned)(uintptr_t)arg;

	ck_assert_int_eq(rt_thread_attach(0), RT_OK);
	for (unsigned i = 0; i < n; i++) {
		uint64_t *p;

		while (!(p = atomic_ptr_load_acquire(&ring.slot[i % RING])))
			rt_safepoint();
		ck_assert_uint_eq(p[0], i);
		ck_assert_uint_eq(p[3], i);
		atomic_ptr_store_release(&ring.slot[i % RING], NULL);
		free_ok(p);
	}
	ck_assert_int_eq(rt_thread_detach(), RT_OK);
	return NULL;
}

// Meanwhile live reads never find more frees than mallocs, in all or in a size
// class.  At the end little memory is in use.
TEST(memory_comes_round_between_threads)
{
	enum { N = 300000 / HEAP_CUT };
	pthread_t a, b;
	rt_memstats m;

	heap_begin();
	ck_assert_int_eq(rt_roots_add(ring.slot, ring.slot + RING, 0), RT_OK);
	atomic_u32_store_relaxed(&ring.left, 1);
	a = start_thread(produce, (void *)(uintptr_t)N);
	b = start_thread(consume, (void *)(uintptr_t)N);
	for (int i = 0; atomic_u32_load_acquire(&ring.left) != 0; i++) {
		ck_assert_int_eq(rt_read_memstats_live(&m), RT_OK);
		ck_assert_uint_ge(m.mallocs, m.frees);
		for (int c = 0; c < RT_BY_SIZE; c++)
			ck_assert_uint_ge(m.by_size[c].mallocs,
					  m.by_size[c].frees);
		if (i % 64 == 0)
			heap_live();
		rt_safepoint();
	}
	ck_assert_int_eq(rt_blocking_enter(), RT_OK);
	join_thread(a);
	join_thread(b);
	ck_assert_int_eq(rt_blocking_leave(), RT_OK);
	m = heap_healthy();
	ck_assert_uint_eq(m.mallocs, N);
	ck_assert_uint_eq(m.frees, N);
	ck_assert_uint_le(m.heap_inuse, 2 << 20);
}

static void *free_some(void *arg)
{
	void **p = arg;

	ck_assert_int_eq(rt_thread_attach(0), RT_OK);
	for (int i = 0; i < 600; i++)
		free_ok(p[i]);
	ck_assert_int_eq(rt_thread_detach(), RT_OK);
	return NULL;
}

TEST(lists_outlive_their_thread)
{
	static void *p[1000];
	rt_memstats m;

	heap_begin();
	for (int i = 0; i < 1000; i++)
		p[i] = alloc_words(80);
	run_beside(free_some, p);
	for (int i = 0; i < 600; i++)
		ck_assert_int_eq(rt_free(p[i]), RT_EINVAL);
	for (int i = 0; i < 600; i++)
		p[i] = alloc_words(80);
	m = heap_healthy();
	ck_assert_uint_eq(m.mallocs, 1600);
	ck_assert_uint_eq(m.frees, 600);
	ck_assert_uint_le(m.heap_inuse, 1200 * 80 + 8192);
}

static atomic_u32 stage;

static void *free_and_wait(void *arg)
{
	void **p = arg;

	ck_assert_int_eq(rt_thread_attach(0), RT_OK);
	for (int i = 0; i < 600; i++)
		free_ok(p[i]);
	atomic_u32_store_release(&stage, 1);
	while (atomic_u32_load_acquire(&stage) == 1)
		rt_safepoint();
	ck_assert_int_eq(rt_thread_detach(), RT_OK);
	return NULL;
}

TEST(a_child_has_the_lists_of_all_threads)
{
	static void *p[1000];
	pthread_t t;

	heap_begin();
	for (int i = 0; i < 1000; i++)
		p[i] = alloc_words(80);
	for (int i = 600; i < 700; i++)
		free_ok(p[i]);
	t = start_thread(free_and_wait, p);
	while (atomic_u32_load_acquire(&stage) == 0)
		rt_safepoint();
	if (process_forked()) {
		for (int i = 0; i < 700; i++)
			ck_assert_int_eq(rt_free(p[i]), RT_EINVAL);
		ck_assert_uint_eq(heap_healthy().heap_objects, 300);
		for (int i = 0; i < 700; i++)
			p[i] = alloc_words(80);
		process_end(heap_healthy().heap_objects == 1000);
	}
	atomic_u32_store_release(&stage, 2);
	join_beside(t);
	ck_assert_uint_eq(heap_healthy().heap_objects, 300);
}
