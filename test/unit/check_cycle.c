// Memory that a collection frees is zero when it is used again, or is released
// to the system.  Objects have the promised sizes and alignments.
#include "test/harness/heap.h"
#include "test/harness/thread.h"

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include "runtime/pages/arena.h"
#include "runtime/base/atomic.h"
#include "runtime/base/sizeclass.h"

enum { ROOTS = 64 };

static void *root[ROOTS];

static void start(uint8_t align8)
{
	rt_config c = heap_config(HEAP_QUIET);

	c.align8 = align8;
	heap_start_exact(c);
	must(rt_roots_add(root, root + ROOTS, RT_ROOT_EXACT));
}

static void setup(void)
{
	start(0);
}

// ---- zeroing ----

enum maker { WORDS, NOSCAN, UNINIT, MAKERS };

static void *make(enum maker how, size_t n)
{
	return how == WORDS    ? rt_alloc(n)
	       : how == NOSCAN ? rt_alloc_noscan(n)
			       : rt_alloc_noscan_uninit(n);
}

static size_t class_request(unsigned c)
{
	size_t size = sizeclass_table[c].size;

	return size > SIZECLASS_MAX_REQUEST ? SIZECLASS_MAX_REQUEST : size;
}

// dirty verifies that each object is zero, then fills it, and keeps every third
// in an array.  It returns how many were not zero.
static uint64_t dirty(enum maker how, size_t n, unsigned count)
{
	void **keep = rt_alloc(count * sizeof *keep);
	bool zero = how != UNINIT;
	uint64_t wrong = 0;

	for (unsigned i = 0; i < count; i++) {
		void *p = make(how, n);

		// Look at the whole slot, not only at the requested bytes,
		// unless other objects may share the slot.
		wrong += zero && !heap_is_zero(p, n < 16 ? n : rt_size(p));
		memset(p, 0xff, n < 16 ? n : rt_size(p));
		if (i % 3 == 0)
			keep[i] = p;
	}
	root[1] = root[0]; // the array of the previous round
	root[0] = keep;
	return wrong;
}

static uint64_t kept_wrong(void **keep, size_t n, unsigned count)
{
	uint64_t wrong = 0;

	for (unsigned i = 0; i < count; i += 3)
		wrong += *(unsigned char *)keep[i] != 0xff ||
			 memcmp(keep[i], (char *)keep[i] + 1, n - 1) != 0;
	return wrong;
}

// zero_again allocates objects of a size in four rounds.  Each round fills the
// slots that the previous collection has freed between survivors.
static void zero_again(enum maker how, size_t n, unsigned count)
{
	for (unsigned round = 0; round < 4; round++) {
		ck_assert_uint_eq(dirty(how, n, count), 0);
		ck_assert_int_eq(rt_gc(), RT_OK);
		ck_assert_uint_eq(kept_wrong(root[0], n, count), 0);
		if (round > 0)
			ck_assert_uint_eq(kept_wrong(root[1], n, count), 0);
	}
	root[0] = root[1] = NULL;
	ck_assert_uint_eq(heap_live_after_gc(), 0);
}

static void zero_all_classes(enum maker how)
{
	for (unsigned c = 1; c < SIZECLASS_COUNT; c++)
		zero_again(how, class_request(c),
			   4 * sizeclass_table[c].nelems + 1);
}

GROUP(cycle, .setup = setup, .timeout = 60);

TEST(recycled_slots_are_zero, .n = MAKERS)
{
	zero_all_classes((enum maker)_i);
}

GROUP(own, .timeout = 60);

TEST(recycled_slots_are_zero_align8, .n = MAKERS)
{
	start(1);
	zero_all_classes((enum maker)_i);
}

GROUP(cycle);

TEST(recycled_large_objects_are_zero, .n = UNINIT)
{
	zero_again((enum maker)_i, 32761, 20);
	zero_again((enum maker)_i, 100001, 20);
	zero_again((enum maker)_i, (256 << 10) - 1, 10);
	zero_again((enum maker)_i, 256 << 10, 10);
	zero_again((enum maker)_i, 3 << 20, 5);
}

// Combined objects share slots.  A new object in a shared slot is zero.
TEST(recycled_tiny_objects_are_zero)
{
	for (size_t n = 1; n < SIZECLASS_TINY_SIZE; n++)
		zero_again(NOSCAN, n, 3000);
}

// Memory that was released to the system reads as zero.
TEST(released_memory_is_zero)
{
	for (unsigned round = 0; round < 3; round++) {
		ck_assert_uint_eq(dirty(WORDS, 64, 10000), 0);
		ck_assert_uint_eq(dirty(NOSCAN, 5000, 300), 0);
		ck_assert_uint_eq(dirty(WORDS, 300000, 10), 0);
		root[0] = root[1] = NULL;
		ck_assert_int_eq(rt_free_os_memory(), RT_OK);
		ck_assert_uint_eq(heap_live(), 0);
	}
}

// ---- sizes and alignment ----

// natural is the alignment that a C object of n bytes may need.
static size_t natural(size_t n)
{
	size_t align = n & -n;

	return align > 8 ? 8 : align;
}

GROUP(own);

TEST(objects_are_aligned, .n = 2)
{
	bool align8 = _i != 0;
	uint64_t wrong = 0;

	start(align8);
	for (unsigned round = 0; round < 3; round++)
		for (size_t n = 1; n <= 4096; n++)
			for (int kind = RT_NOSCAN; kind <= RT_WORDS; kind++) {
				uintptr_t p = (uintptr_t)rt_alloc_kind(kind, n);
				size_t align = align8 ? natural(n) : 16;

				if (n < 16 && kind == RT_NOSCAN)
					align = natural(n);
				if (n >= 8 && align8 && kind == RT_WORDS)
					align = 8;
				wrong += p % align != 0;
			}
	ck_assert_uint_eq(wrong, 0);
	ck_assert_uint_eq((uintptr_t)rt_alloc(100000) % RT_PAGE_SIZE, 0);
}

GROUP(cycle);

// The class of a constant size is the same inline and in a call.
TEST(inline_and_called_sizes_agree)
{
#define SAME(n)                                                                \
	ck_assert_uint_eq(rt_size(rt_alloc(n)), rt_good_size(n));              \
	ck_assert_uint_eq(rt_size(rt_alloc_noscan(n)), rt_good_size(n))
	SAME(16);
	SAME(17);
	SAME(24);
	SAME(32);
	SAME(33);
	SAME(48);
	SAME(100);
	SAME(128);
	SAME(200);
	SAME(257);
	SAME(512);
	SAME(513);
	SAME(769);
	SAME(897);
	SAME(1023);
	SAME(1024);
	SAME(1025);
#undef SAME
}

static uint64_t sizes_wrong(int kind, size_t n, bool align8)
{
	char *p = rt_alloc_kind(kind, n);
	size_t size = rt_size(p);
	size_t good = rt_good_size(n);

	// Combined objects are in a slot of 16, whatever the classes.  Without
	// pointers, objects of up to 8 bytes take 8.
	if (kind == RT_NOSCAN && n < (align8 ? 16 : RT_NOSCAN_MIN))
		return size != 16 || (!align8 && good != 16);
	if (kind == RT_NOSCAN && n <= 8)
		return size != 8;
	return size != good || size < n || rt_base(p + n - 1) != p ||
	       rt_base(p) != p || rt_good_size(good) != good;
}

GROUP(own);

TEST(size_is_good_size, .n = 2)
{
	bool align8 = _i != 0;
	uint64_t wrong = 0;

	start(align8);
	for (int kind = RT_NOSCAN; kind <= RT_WORDS; kind++) {
		for (size_t n = 1, i = 1; n <= 33000; i++) {
			wrong += sizes_wrong(kind, n, align8);
			n += n < 2048 ? 1 : HEAP_CUT;
			if (i % 5000 == 0)
				rt_gc();
		}
		for (size_t n = 33001; n < 200000; n += 997)
			wrong += sizes_wrong(kind, n, align8);
		rt_gc();
	}
	ck_assert_uint_eq(wrong, 0);
	ck_assert_uint_eq(rt_good_size(0), 0);
	ck_assert_uint_eq(rt_good_size(SIZE_MAX), 0);
	ck_assert_uint_eq(rt_good_size((size_t)PTRDIFF_MAX + 1), 0);
}

// ---- memory is released ----

// resident returns how many bytes of the heap's range have memory behind them.
// It does not ask about the whole process, because a sanitizer has memory of
// its own.
static int64_t resident(void)
{
	enum { PART = 1 << 20 };
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	unsigned char in[PART / 4096];
	int64_t n = 0;

	for (uint64_t at = 0; at < arena_used(); at += PART) {
		ck_assert_int_eq(mincore((void *)(arena.base + at), PART, in),
				 0);
		for (size_t i = 0; i < PART / page; i++)
			n += in[i] & 1;
	}
	return n * (int64_t)page;
}

// touch allocates n bytes of objects of a size, and writes to each.
static void touch(int64_t n, size_t size)
{
	void **array = rt_alloc((size_t)n / size * sizeof *array);

	root[0] = array;
	for (size_t i = 0; i < (size_t)n / size; i++) {
		array[i] = rt_alloc_noscan(size);
		memset(array[i], 0x5a, size);
	}
}

static const size_t touched_sizes[] = {64, 2048, 20000, 1 << 20};

GROUP(cycle);

// Dead memory is released when the host asks for it, and no sooner.
TEST(dead_memory_goes_back_to_the_system, .n = RT_ARRAY_LEN(touched_sizes))
{
	int64_t mib = env_u64("RT_BIG_TESTS", 0) != 0 ? 1024 : 64;
	int64_t n = mib << 20, most, least;
	rt_memstats before, dead, after;

	touch(n, touched_sizes[_i]);
	rt_gc();
	before = heap_stats();
	most = resident();
	root[0] = NULL;
	rt_gc();
	dead = heap_stats();
	ck_assert_uint_ge(dead.heap_idle, before.heap_idle + (uint64_t)n);
	ck_assert_uint_le(dead.heap_released, before.heap_released);
	ck_assert_int_eq(rt_free_os_memory(), RT_OK);
	after = heap_stats();
	least = resident();
	ck_assert_uint_ge(after.heap_released,
			  before.heap_released + (uint64_t)n);
	ck_assert_uint_eq(after.heap_released, after.heap_idle);
	ck_assert_uint_eq(after.sys, dead.sys);
	ck_assert_int_ge(most - least, n - n / 20);
	// Memory comes back when it is used.
	touch(n, touched_sizes[_i]);
	ck_assert_uint_le(heap_stats().sys, after.sys + (1 << 20));
	ck_assert_uint_lt(heap_stats().heap_released, after.heap_released);
	heap_live();
}

// Free pages between survivors are released.  The pages of survivors keep what
// they hold.
TEST(pages_between_survivors_go_back)
{
	size_t n = 4000;
	uint64_t wrong = 0;
	rt_memstats m;
	char **array;

	touch((int64_t)n * 8192, 8192);
	array = root[0];
	for (size_t i = 0; i < n; i++)
		if (i % 4 != 0)
			array[i] = NULL;
	ck_assert_int_eq(rt_free_os_memory(), RT_OK);
	m = heap_stats();
	ck_assert_uint_ge(m.heap_released, n / 4 * 3 * 8192);
	for (size_t i = 0; i < n; i += 4)
		wrong += array[i][0] != 0x5a ||
			 memcmp(array[i], array[i] + 1, 8191) != 0;
	ck_assert_uint_eq(wrong, 0);
	ck_assert_uint_eq(heap_live(), n / 4 + 1);
}

// ---- a collection while a large object is being cleared ----

static atomic_u32 stop_collecting;

static void *collect_always(void *arg)
{
	(void)arg;
	if (rt_thread_attach(RT_THREAD_EXACT) != RT_OK)
		return NULL;
	while (!atomic_u32_load_acquire(&stop_collecting))
		rt_gc();
	rt_thread_detach();
	return &stop_collecting;
}

// allocate_under_collection returns how many collections ended while one large
// object was made, and counts in *wrong what is not as it should be.
static uint64_t allocate_under_collection(size_t size, uint64_t *wrong)
{
	uint64_t before = heap_metric("/gc/cycles/total:gc-cycles");
	unsigned char *p = rt_alloc(size);
	uint64_t passed = heap_metric("/gc/cycles/total:gc-cycles") - before;

	// This thread does not stop before its next allocation, so no thread
	// collects until then.
	*wrong += rt_base(p) != p || rt_size(p) != rt_good_size(size) ||
		  !heap_is_zero(p, rt_size(p));
	memset(p, 0xff, size);
	return passed;
}

GROUP(own);

// A collection while the object is cleared does not free it, whether the stack
// of its thread is scanned or not.
TEST(object_that_is_being_cleared_is_kept, .n = 2)
{
	size_t size = (16 << 20) - 100;
	rt_config c = heap_config(HEAP_QUIET);
	uint64_t wrong = 0, overlaps = 0;
	pthread_t t;
	void *done;

	c.no_attach = 1;
	ck_assert_int_eq(rt_init(&c), RT_OK);
	ck_assert_int_eq(rt_thread_attach(_i ? RT_THREAD_EXACT : 0), RT_OK);
	// Memory that needs clearing.
	memset(rt_alloc_noscan(8 * size), 0xff, 8 * size);
	rt_gc();
	t = start_thread(collect_always, NULL);
	for (unsigned i = 0; i < 2000 && overlaps < 20; i++)
		overlaps += allocate_under_collection(size, &wrong);
	atomic_u32_store_release(&stop_collecting, 1);
	done = join_beside(t);
	ck_assert_ptr_nonnull(done);
	ck_assert_uint_eq(wrong, 0);
	ck_assert_uint_ge(overlaps, 1);
	heap_live();
}

GROUP(cycle);

// Allocations and frees balance over many collections.
TEST(fifty_collections_leave_the_statistics_in_order)
{
	struct rng r;
	rt_memstats m;

	rng_init(&r, "fifty_collections_leave_the_statistics_in_order");
	for (unsigned round = 0; round < 50; round++) {
		for (unsigned i = 0; i < 2000 / HEAP_CUT; i++) {
			size_t n = 1 + rng_below(&r, 1u << rng_below(&r, 18));
			void *p = rt_alloc_kind((int)rng_below(&r, 2), n);

			ck_assert_ptr_nonnull(p);
			if (rng_below(&r, 20) == 0)
				root[rng_below(&r, ROOTS)] = p;
		}
		ck_assert_uint_le(heap_live_after_gc(), ROOTS);
		m = heap_stats();
		ck_assert_uint_eq(m.heap_objects, m.mallocs - m.frees);
		ck_assert_uint_eq(m.num_gc, round + 1);
		ck_assert_uint_eq(m.num_forced_gc, round + 1);
	}
	memset(root, 0, sizeof root);
	ck_assert_uint_eq(heap_live_after_gc(), 0);
	m = heap_stats();
	ck_assert_uint_eq(m.heap_alloc, 0);
	ck_assert_uint_eq(m.heap_inuse, 0);
	ck_assert_uint_eq(m.mallocs, m.frees);
}

// ---- stops ----

// Many threads find the heap due at once.  One of them collects, and the others
// do not stop the world for nothing.
enum { ALLOCATORS = 16, EACH = 8 << 20 };

static void *make_garbage(void *arg)
{
	ck_assert_int_eq(rt_thread_attach(RT_THREAD_EXACT), RT_OK);
	for (unsigned bytes = 0; bytes < EACH; bytes += 512)
		ck_assert_ptr_nonnull(rt_alloc_noscan(512));
	ck_assert_int_eq(rt_thread_detach(), RT_OK);
	return arg;
}

// gc_stops returns the number of stops for collections.
static uint64_t gc_stops(void)
{
	static uint64_t counts[4096];
	rt_metric_sample s = {.name = "/sched/pauses/total/gc:seconds",
			      .counts = counts,
			      .ncounts = RT_ARRAY_LEN(counts)};
	uint64_t sum = 0;

	ck_assert_int_eq(rt_metrics_read(&s, 1), RT_OK);
	ck_assert_uint_eq(s.result, RT_METRIC_HISTOGRAM);
	for (size_t i = 0; i < s.ncounts; i++)
		sum += counts[i];
	return sum;
}

GROUP(own);

TEST(every_stop_for_a_collection_collects)
{
	pthread_t thread[ALLOCATORS];

	heap_start_exact(heap_config(100));
	for (unsigned i = 0; i < ALLOCATORS; i++)
		thread[i] = start_thread(make_garbage, NULL);
	for (unsigned i = 0; i < ALLOCATORS; i++)
		join_beside(thread[i]);
	ck_assert_uint_ge(heap_stats().num_gc, 10);
	ck_assert_uint_eq(gc_stops(), heap_stats().num_gc);
}

// ---- many threads that allocate little ----

enum { MANY = 100, OBJECTS = 20, TURNS = 60 };

static pthread_barrier_t turn;

// allocate_a_little allocates some objects of any small size, some with
// pointers, and waits.  From one collection to the next it makes a few of each
// class and kind.
static void *allocate_a_little(void *arg)
{
	struct rng r = {(uintptr_t)arg};

	if (rt_thread_attach(RT_THREAD_EXACT) != RT_OK)
		abort();
	for (int i = 0; i < TURNS; i++) {
		for (int k = 0; k < OBJECTS; k++) {
			size_t n = 16 + rng_below(&r, 497);

			if (!(n & 64 ? rt_alloc(n) : rt_alloc_noscan(n)))
				abort();
		}
		rt_blocking_enter();
		pthread_barrier_wait(&turn);
		rt_blocking_leave();
	}
	rt_thread_detach();
	return NULL;
}

// Collections are due by bytes in slots that were handed to threads, used or
// not.  A thread has few unused ones.  If only garbage counted, there would be
// a collection for every 4 MiB: 25 for 100 MB.
TEST(many_small_threads_do_not_make_a_large_heap)
{
	rt_config c = heap_config(100);
	pthread_t t[MANY];
	rt_memstats m;

	heap_start_exact(c);
	pthread_barrier_init(&turn, NULL, MANY);
	for (int i = 0; i < MANY; i++)
		t[i] =
		    start_thread(allocate_a_little, (void *)(uintptr_t)(i + 1));
	for (int i = 0; i < MANY; i++)
		join_beside(t[i]);
	m = heap_stats();
	ck_assert_uint_ge(m.total_alloc,
			  (uint64_t)MANY * TURNS * OBJECTS * 250);
	// There are some 30 for 100 MB.  There would be 90 if all runs but the
	// first were a page long, and 400 if all were.
	ck_assert_uint_le(m.num_gc, 5 + 40 * m.total_alloc / 100000000);
	// The allocations of the threads do lead to collections.
	ck_assert_uint_ge(m.num_gc, 3);
}
