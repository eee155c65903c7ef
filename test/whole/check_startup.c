// The cost of a heap before it holds anything, and what it leaves behind.
#include "test/harness/fault.h"
#include "test/harness/heap.h"
#include "test/harness/thread.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "runtime/os/gauge.h"
#include "runtime/os/oscall.h"

#define MIB (INT64_C(1) << 20)

// read_file reads a file of /proc without allocating.
static size_t read_file(const char *name, char *buf, size_t size)
{
	int fd = open(name, O_RDONLY);
	size_t n = 0;
	ssize_t got;

	ck_assert_int_ge(fd, 0);
	while (n < size - 1 && (got = read(fd, buf + n, size - 1 - n)) > 0)
		n += (size_t)got;
	close(fd);
	ck_assert_uint_lt(n, size - 1);
	buf[n] = '\0';
	return n;
}

// rss is the process's resident memory in bytes.
static int64_t rss(void)
{
	char buf[256];
	long total, resident;

	read_file("/proc/self/statm", buf, sizeof buf);
	ck_assert_int_eq(sscanf(buf, "%ld %ld", &total, &resident), 2);
	return (int64_t)resident * sysconf(_SC_PAGESIZE);
}

static unsigned mappings(void)
{
	static char buf[1 << 20];
	size_t n = read_file("/proc/self/maps", buf, sizeof buf);
	unsigned lines = 0;

	for (size_t i = 0; i < n; i++)
		lines += buf[i] == '\n';
	return lines;
}

static int64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

static void init(void)
{
	rt_config c = heap_config(100);

	ck_assert_int_eq(rt_init(&c), RT_OK);
}

// ---- the beginning ----

GROUP(startup, .timeout = 120);

TEST(init_touches_less_than_a_megabyte)
{
	rt_config c = heap_config(100);
	int64_t before, after, began, ns;

	rss(); // now the code that reads has been paged in
	before = rss();
	began = now_ns();
	ck_assert_int_eq(rt_init(&c), RT_OK);
	ns = now_ns() - began;
	after = rss();
	fprintf(stderr, "rt_init: %.1f us, %lld KiB of RSS\n",
		(double)ns / 1000, (long long)(after - before) / 1024);
	// A sanitizer maps shadow memory for each page of the heap.
	if (!RT_ASAN && !RT_TSAN)
		ck_assert_int_lt(after - before, MIB);
	ck_assert_uint_lt(heap_stats().sys, MIB);
}

// A heap with a few small objects is small as well.
TEST(small_heap_is_small)
{
	int64_t before;

	rss();
	before = rss();
	init();
	for (size_t n = 1; n < 1000; n++)
		ck_assert_ptr_nonnull(rt_alloc(n));
	rt_gc();
	if (!RT_ASAN && !RT_TSAN)
		ck_assert_int_lt(rss() - before, 3 * MIB);
	ck_assert_uint_lt(heap_stats().sys, 6 * MIB);
}

// A program that allocates 2 MiB in all, in objects of any size, has less than
// 4 MiB more resident memory than before rt_init.
static const size_t sizes_below[] = {16,    100,    1000,   10000,
				     32760, 100000, 1000000};

TEST(a_small_program_stays_small, .n = RT_ARRAY_LEN(sizes_below))
{
	size_t left = 2 * MIB;
	int64_t before;
	struct rng r;

	rng_init(&r, __func__);
	rss();
	before = rss();
	init();
	for (;;) {
		size_t n = 1 + rng_below(&r, sizes_below[_i]);
		char *p;

		if (n > left)
			break;
		left -= n;
		p = rng_below(&r, 2) ? rt_alloc(n) : rt_alloc_noscan_uninit(n);
		ck_assert_ptr_nonnull(p);
		memset(p, 1, n);
	}
	if (!RT_ASAN && !RT_TSAN)
		ck_assert_int_lt(rss() - before, 4 * MIB);
}

// The number of system calls of init is small and always the same.
TEST(init_makes_few_system_calls)
{
	static const enum oscall kinds[] = {
	    OSCALL_RESERVE,    OSCALL_COMMIT,  OSCALL_MAP,
	    OSCALL_UNMAP,      OSCALL_RELEASE, OSCALL_ADVISE,
	    OSCALL_FUTEX_WAIT, OSCALL_CLOCK,   OSCALL_NAME,
	};
	uint64_t sum = 0, again = 0;

	for (unsigned i = 0; i < RT_ARRAY_LEN(kinds); i++)
		fault_fail(kinds[i], 0, 0, 0);
	init();
	for (unsigned i = 0; i < RT_ARRAY_LEN(kinds); i++) {
		fprintf(stderr, "rt_init: %s %llu\n", fault_name(kinds[i]),
			(unsigned long long)fault_count(kinds[i]));
		sum += fault_count(kinds[i]);
	}
	ck_assert_uint_gt(sum, 3);
	ck_assert_uint_lt(sum, 100);
	ck_assert_uint_eq(fault_count(OSCALL_RELEASE), 0);
	ck_assert_uint_eq(fault_count(OSCALL_FUTEX_WAIT), 0);
	ck_assert_int_eq(rt_fini(), RT_OK);
	for (unsigned i = 0; i < RT_ARRAY_LEN(kinds); i++)
		fault_fail(kinds[i], 0, 0, 0);
	init();
	for (unsigned i = 0; i < RT_ARRAY_LEN(kinds); i++)
		again += fault_count(kinds[i]);
	ck_assert_uint_le(again, sum);
}

// ---- threads that are gone ----

enum {
	GONE = RT_ASAN || RT_TSAN ? 200 : 1000,
	MOST = 200,
};

static pthread_barrier_t together;
static size_t largest = 400; // size that each thread allocates
static atomic_u64 failed;

static void *allocate_and_exit(void *arg)
{
	uint64_t wrong = 0;

	wrong += rt_thread_attach(0) != RT_OK;
	for (size_t n = 1; n <= largest; n++)
		wrong += !rt_alloc(n) || !rt_alloc_noscan(100);
	wrong += largest > 100 && !rt_alloc(100000);
	wrong += rt_blocking_enter() != RT_OK;
	pthread_barrier_wait(&together); // all of a batch are attached now
	wrong += rt_blocking_leave() != RT_OK;
	if (arg)
		wrong += rt_thread_detach() != RT_OK;
	atomic_u64_add_relaxed(&failed, wrong);
	return NULL;
}

// batch runs n threads at once; the odd ones exit attached.
static void batch(unsigned n)
{
	pthread_t t[MOST];

	pthread_barrier_init(&together, NULL, n);
	for (unsigned i = 0; i < n; i++)
		t[i] = start_thread(allocate_and_exit, i % 2 ? NULL : t);
	for (unsigned i = 0; i < n; i++)
		join_beside(t[i]);
	pthread_barrier_destroy(&together);
	ck_assert_uint_eq(atomic_u64_load_relaxed(&failed), 0);
}

// kept returns the bytes that were mapped for the heap and are not released.
static int64_t kept(const rt_memstats *m)
{
	return (int64_t)(m->sys - m->heap_released);
}

static const unsigned batches[] = {1, 50, MOST};

// Threads that are gone leave no memory behind, except for the records that the
// next threads use again.
TEST(gone_threads_leave_no_memory, .n = RT_ARRAY_LEN(batches))
{
	unsigned n = batches[_i];
	rt_memstats before, after;

	init();
	batch(n); // records of so many threads at once are made and kept
	ck_assert_int_eq(rt_free_os_memory(), RT_OK);
	before = heap_stats();
	for (unsigned i = 0; i < GONE; i += n)
		batch(n);
	ck_assert_int_eq(rt_free_os_memory(), RT_OK);
	after = heap_stats();
	ck_assert_int_lt(kept(&after) - kept(&before), MIB);
	ck_assert_uint_eq(after.mcache_sys, before.mcache_sys);
	ck_assert_uint_eq(after.mcache_inuse, before.mcache_inuse);
	ck_assert_uint_eq(after.heap_inuse, before.heap_inuse);
	ck_assert_uint_eq(after.stack_inuse, 0);
	ck_assert_uint_eq(heap_metric("/sched/threads/attached:threads"), 1);
	ck_assert_uint_eq(heap_live(), 0);
}

// Threads leave less than 1 MiB even in a heap that had no other thread before.
TEST(first_threads_leave_little_memory)
{
	rt_memstats before, after;

	largest = 100;
	init();
	ck_assert_int_eq(rt_free_os_memory(), RT_OK);
	before = heap_stats();
	for (unsigned i = 0; i < GONE; i += 50)
		batch(50);
	ck_assert_int_eq(rt_free_os_memory(), RT_OK);
	after = heap_stats();
	ck_assert_int_lt(kept(&after) - kept(&before), MIB);
	ck_assert_uint_eq(after.mcache_sys, before.mcache_sys);
}

// Many threads at once make the heap longer.  When they are gone, little more
// than the tables for the longer heap stays.
TEST(two_hundred_threads_at_once_leave_little_memory)
{
	rt_memstats before, after;

	largest = 100;
	init();
	before = heap_stats();
	batch(MOST);
	ck_assert_int_eq(rt_free_os_memory(), RT_OK);
	after = heap_stats();
	ck_assert_int_lt(kept(&after) - kept(&before), MIB);
	ck_assert_uint_eq(after.mcache_sys, before.mcache_sys);
}

// ---- the end ----

// use does something with every part of the library that maps memory.
static void use(void)
{
	static void *root[1];

	ck_assert_int_eq(rt_roots_add(root, root + 1, RT_ROOT_EXACT), RT_OK);
	root[0] = rt_alloc(10 << 20);
	for (size_t n = 1; n < 40000; n += 97)
		((void **)root[0])[n] = rt_alloc(n);
	ck_assert_ptr_nonnull(rt_stack_alloc(2048));
	ck_assert_ptr_nonnull(rt_stack_alloc(16384));
	ck_assert_ptr_nonnull(rt_stack_alloc(65536));
	ck_assert_int_eq(rt_gc(), RT_OK);
	heap_live();
	batch(5);
	ck_assert_int_eq(rt_free_os_memory(), RT_OK);
	heap_stats();
}

TEST(hundred_heaps_leave_no_mapping)
{
	const atomic_u64 *gauge = (const atomic_u64 *)&gauges;
	unsigned before;

	for (unsigned i = 0; i < 3; i++) { // stacks of pthreads are kept
		init();
		use();
		ck_assert_int_eq(rt_fini(), RT_OK);
	}
	before = mappings();
	for (unsigned i = 0; i < 100 / HEAP_CUT; i++) {
		init();
		use();
		ck_assert_int_eq(rt_fini(), RT_OK);
	}
	// malloc may have cut or joined a mapping of its own; a sanitizer maps
	// for itself.
	if (!RT_ASAN && !RT_TSAN)
		ck_assert_uint_le(mappings(), before + 1);
	for (size_t i = 0; i < sizeof gauges / sizeof *gauge; i++)
		ck_assert_uint_eq(gauge_load(&gauge[i]), 0);
}

static unsigned our_mappings(void)
{
	static char buf[1 << 20];
	unsigned n = 0;

	read_file("/proc/self/maps", buf, sizeof buf);
	for (char *p = buf; (p = strstr(p, "rtheap")) != NULL; p++)
		n++;
	return n;
}

// Every mapping has a name, where the kernel has names.  After the end no such
// mapping is left.
TEST(no_named_mapping_is_left)
{
	unsigned before = our_mappings(); // names of files with that word

	init();
	use();
	if (our_mappings() == before) {
		suite_skip("this kernel does not name mappings", NULL);
		return;
	}
	ck_assert_int_eq(rt_fini(), RT_OK);
	ck_assert_uint_eq(our_mappings(), before);
}

// A new heap does not know the old one's stacks.
TEST(stacks_of_the_last_heap_are_forgotten)
{
	for (unsigned i = 0; i < 3; i++) {
		void *stack[40];

		init();
		for (unsigned k = 0; k < 40; k++) {
			stack[k] = rt_stack_alloc(2048u << k % 4);
			ck_assert_ptr_nonnull(stack[k]);
			memset(stack[k], 1, 2048u << k % 4);
		}
		ck_assert_uint_gt(heap_stats().stack_inuse, 0);
		heap_live();
		for (unsigned k = 0; k < 40; k += 2)
			must(rt_stack_free(stack[k], 2048u << k % 4));
		heap_live();
		ck_assert_int_eq(rt_fini(), RT_OK);
	}
}

// A new heap begins as the first one did.
TEST(second_heap_is_like_the_first)
{
	rt_memstats first, second;

	init();
	first = heap_stats();
	use();
	ck_assert_int_eq(rt_fini(), RT_OK);
	init();
	second = heap_stats();
	ck_assert_uint_eq(second.sys, first.sys);
	ck_assert_uint_eq(second.mallocs, 0);
	ck_assert_uint_eq(second.num_gc, 0);
	ck_assert_uint_eq(second.pause_total_ns, 0);
	ck_assert_uint_eq(second.next_gc, first.next_gc);
	ck_assert_uint_eq(heap_live(), 0);
	// The second heap has no roots of the first.
	rt_alloc(100);
	ck_assert_int_eq(rt_fini(), RT_OK);
}

// ---- errno ----

// The host may still want to know why a call of its own failed.
static void check_errno(const char *after)
{
	ck_assert_msg(errno == EXDEV, "%s: errno %d", after, errno);
}

TEST(errno_stays_the_hosts)
{
	rt_config c = heap_config(HEAP_QUIET);
	rt_memstats m;
	void *small;

	c.max_heap = 64 * MIB;
	errno = EXDEV;
	ck_assert_int_eq(rt_init(&c), RT_OK);
	check_errno("rt_init");
	small = rt_alloc(MIB);
	ck_assert_ptr_nonnull(small);
	check_errno("rt_alloc");
	ck_assert_ptr_null(rt_alloc(64 * MIB));
	check_errno("rt_alloc of too much");
	rt_keep_alive(small);
	ck_assert_int_eq(rt_read_memstats(&m), RT_OK);
	check_errno("rt_read_memstats");
	ck_assert_int_eq(rt_blocking_enter(), RT_OK);
	ck_assert_int_eq(rt_blocking_leave(), RT_OK);
	check_errno("rt_blocking_leave");
	ck_assert_int_eq(rt_free_os_memory(), RT_OK);
	check_errno("rt_free_os_memory");
	ck_assert_int_eq(rt_fini(), RT_OK);
	check_errno("rt_fini");
}
