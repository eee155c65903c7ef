// The real limits of a process: address space, data, threads, mappings, stacks.
// At each limit the answer is NULL or RT_ENOMEM, the heap is in order, and it
// can be used again when there is room.  Most tests are left out of builds with
// a sanitizer, because they would limit the sanitizer.
#define _GNU_SOURCE 1

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gc/mark/crew.h"
#include "runtime/os/oscall.h"
#include "test/harness/fault.h"
#include "test/harness/heap.h"
#include "test/harness/process.h"
#include "test/harness/thread.h"

enum {
	MIB = 1 << 20,
	NROOTS = 4096,
	NOBODY = 65534,
	HELPERS = 2,
};

static void *roots[NROOTS];
static unsigned nroots;

static void crowd_end(void);

static int begin_with(size_t max_heap)
{
	rt_config c = heap_config(100);
	int error;

	c.max_heap = max_heap;
	c.max_procs = HELPERS + 1;
	c.no_attach = 1;
	error = rt_init(&c);
	if (error != RT_OK)
		return error;
	error = rt_thread_attach(RT_THREAD_EXACT);
	if (error == RT_OK) {
		error = rt_roots_add(roots, roots + NROOTS, RT_ROOT_EXACT);
		if (error != RT_OK)
			ck_assert_int_eq(rt_fini(), RT_OK);
		return error;
	}
	// Only a thread that is attached can end the heap.
	process_unlimit(RLIMIT_DATA);
	crowd_end();
	ck_assert_int_eq(rt_thread_attach(RT_THREAD_EXACT), RT_OK);
	ck_assert_int_eq(rt_fini(), RT_OK);
	return error;
}

static void begin(void)
{
	ck_assert_int_eq(begin_with(64 * MIB), RT_OK);
}

static void drop(void)
{
	memset(roots, 0, sizeof roots);
	nroots = 0;
}

static void end(void)
{
	drop();
	ck_assert_int_eq(rt_fini(), RT_OK);
}

// fill allocates objects of n bytes until there is no memory; they are not
// written.
static unsigned fill(size_t n)
{
	void *p;

	while (nroots < NROOTS && (p = rt_alloc_noscan_uninit(n)) != NULL)
		roots[nroots++] = p;
	return nroots;
}

// in_order requires that exactly the objects of the roots are live, and that
// the statistics say so.
static void in_order(void)
{
	ck_assert_uint_eq(heap_live_after_gc(), nroots);
	ck_assert_uint_eq(heap_stats().heap_objects, nroots);
}

// ---- address space ----

static const struct {
	uint64_t limit; // MiB
	unsigned least; // MiB that a heap holds; 0: there is no heap
} spaces[] = {{64, 0}, {200, 48}, {400, 48}, {1024, 256}, {4096, 1024}};

GROUP(limits, .timeout = 120);

TEST(address_space, .n = RT_ARRAY_LEN(spaces), .unless = SUITE_SANITIZED)
{
	uint64_t before = process_status("VmSize");

	process_limit(RLIMIT_AS, spaces[_i].limit * MIB);
	for (int round = 0; round < 3; round++) {
		if (spaces[_i].least == 0) {
			ck_assert_int_eq(begin_with(0), RT_ENOMEM);
			continue;
		}
		ck_assert_int_eq(begin_with(0), RT_OK);
		ck_assert_uint_ge(fill(MIB), spaces[_i].least);
		ck_assert_uint_lt(nroots, spaces[_i].limit);
		in_order();
		drop();
		ck_assert_uint_ge(fill(3 * MIB), spaces[_i].least / 4);
		in_order();
		ck_assert_int_eq(rt_free_os_memory(), RT_OK);
		end();
	}
	process_unlimit(RLIMIT_AS);
	// malloc may have mapped an arena.
	ck_assert_uint_le(process_status("VmSize"), before + MIB);
	begin();
	ck_assert_uint_ge(fill(MIB), 60);
	end();
}

// ---- data ----

enum { ROOM = 24 }; // MiB

// Reserved address space is not data.  So rt_init may succeed, and memory is
// refused only later.
TEST(data_of_a_new_heap, .unless = SUITE_SANITIZED)
{
	unsigned held = 0;

	for (uint64_t room = 0; room <= 6 * MIB; room += MIB / 4) {
		uint64_t used = process_status("VmData");

		process_limit(RLIMIT_DATA, used + room);
		if (begin_with(64 * MIB) == RT_OK) {
			fill(100000);
			held = nroots;
			in_order();
			process_unlimit(RLIMIT_DATA);
			ck_assert_uint_gt(fill(100000), held);
			in_order();
			end();
		}
		process_unlimit(RLIMIT_DATA);
	}
	ck_assert_uint_gt(held, 0);
}

// ---- to the limit and back ----

// The limit that a heap of at most 64 MiB reaches, and how many MiB of objects
// of about 600 000 bytes or less then fit.
static const struct {
	uint64_t data;	      // more of it, in MiB; 0: the heap's own limit
	uint64_t least, most; // MiB
} limits[] = {{ROOM, ROOM / 2, ROOM}, {0, 32, 64}};

// Objects of many sizes are allocated until they are refused, again and again.
// No memory is lost on the way.
TEST(to_the_limit_and_back, .n = RT_ARRAY_LEN(limits),
     .unless = SUITE_SANITIZED)
{
	unsigned rounds = env_u64("RT_STRESS_SECONDS", 0) == 0 ? 300 : 100000;
	struct rng r;
	uint64_t sys = 0;

	rng_init(&r, "to_the_limit_and_back");
	begin();
	if (limits[_i].data)
		process_limit(RLIMIT_DATA,
			      process_status("VmData") + limits[_i].data * MIB);
	for (unsigned round = 0; round < rounds; round++) {
		size_t n = 8192 + rng_below(&r, 600000);
		rt_memstats m;

		fill(n);
		ck_assert_uint_ge(nroots * n, limits[_i].least * MIB);
		ck_assert_uint_le(nroots * n, limits[_i].most * MIB);
		if (round % 50 == 0)
			in_order();
		rt_read_memstats_live(&m);
		ck_assert_uint_le(m.heap_sys, 64 * MIB);
		if (round == 50)
			sys = m.sys;
		if (round > 50) // until then span records may be made
			ck_assert_uint_le(m.sys, sys + MIB);
		drop();
	}
	process_unlimit(RLIMIT_DATA);
	ck_assert_uint_ge(fill(MIB), 60);
	in_order();
	end();
}

// ---- threads ----

static void *nothing(void *arg)
{
	return arg;
}

static bool threads_refused(void)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, nothing, NULL) != 0)
		return true;
	join_thread(thread);
	return false;
}

// make_wide makes so much to mark that helpers are wanted.
enum { WIDE = 30000 };

static void make_wide(void)
{
	void **wide = rt_alloc(WIDE * sizeof *wide);

	ck_assert_ptr_nonnull(wide);
	roots[0] = wide;
	for (unsigned i = 0; i < WIDE; i++) {
		wide[i] = rt_alloc(16);
		ck_assert_ptr_nonnull(wide[i]);
	}
}

// The limit does not apply to root, so the test continues as the user nobody.
TEST(threads)
{
	begin();
	make_wide();
	if (geteuid() == 0)
		ck_assert_int_eq(setuid(NOBODY), 0);
	process_limit(RLIMIT_NPROC, 1);
	ck_assert(threads_refused());
	for (int round = 0; round < 3; round++) {
		ck_assert_uint_eq(heap_live_after_gc(), WIDE + 1);
		ck_assert_uint_eq(crew_size(), 0);
	}
	process_unlimit(RLIMIT_NPROC);
	for (int round = 0; round < 3; round++)
		ck_assert_uint_eq(heap_live_after_gc(), WIDE + 1);
	ck_assert_uint_eq(crew_size(), HELPERS);
	end();
}

// ---- stacks ----

// use attaches, and calls the functions that need the most stack.
static void *use(void *arg)
{
	static uint64_t words[RT_GCSTATS_WORDS];
	static rt_memstats m; // static, so it takes no stack
	static rt_cycle cycle;
	static struct rt_verify v;
	rt_metric_sample s = {.name = "/gc/pauses:seconds"};
	uintptr_t failed = 0;
	void *stack;
	size_t used;

	(void)arg;
	failed += rt_thread_attach(0) != RT_OK;
	for (size_t n = 1; n <= 64 << 10; n += n / 2 + 1)
		failed += !rt_alloc(n) || !rt_alloc_noscan(n);
	failed += !rt_alloc(5 * MIB);
	failed += rt_gc() != RT_OK;
	failed += rt_read_memstats(&m) != RT_OK;
	failed += rt_read_memstats_live(&m) != RT_OK;
	failed += rt_read_gcstats(words, RT_GCSTATS_WORDS, &used) != RT_OK;
	failed += rt_read_cycle(0, &cycle) != RT_OK;
	failed += rt_metrics_read(&s, 1) != RT_OK;
	failed += rt_heap_verify(&v) != RT_OK || v.errors != 0;
	stack = rt_stack_alloc(4096);
	failed += !stack || rt_stack_free(stack, 4096) != RT_OK;
	failed += rt_free_os_memory() != RT_OK;
	failed += rt_thread_detach() != RT_OK;
	return (void *)failed;
}

static void use_in_thread(size_t stack_size)
{
	pthread_t thread = start_thread_on(stack_size, use, NULL);

	ck_assert_ptr_null(join_beside(thread));
}

TEST(smallest_stacks, .unless = SUITE_SANITIZED)
{
	begin();
	make_wide();
	for (unsigned i = 0; i < 20; i++)
		use_in_thread((size_t)PTHREAD_STACK_MIN);
	ck_assert_uint_eq(heap_live_after_gc(), WIDE + 1);
	end();
}

static RT_NOINLINE void *deep(unsigned depth)
{
	volatile char frame[4096];

	frame[0] = (char)depth;
	return depth == 0 ? rt_alloc(100)
			  : (char *)deep(depth - 1) + frame[1] - frame[1];
}

// If the stack has no limit, the end of the main thread's stack is not known.
// The stack that the system reports is scanned all the same.
TEST(stack_without_a_limit)
{
	rt_config c = heap_config(100);
	void *volatile kept;

	process_limit(RLIMIT_STACK, RLIM_INFINITY);
	ck_assert_int_eq(rt_init(&c), RT_OK);
	kept = deep(500);
	ck_assert_int_eq(rt_gc(), RT_OK);
	ck_assert_int_eq(rt_is_heap(kept), 1);
	use_in_thread((size_t)PTHREAD_STACK_MIN * 4);
	ck_assert_int_eq(rt_is_heap(kept), 1);
	ck_assert_int_eq(rt_fini(), RT_OK);
}

// ---- mappings ----

// The most mappings that are made to reach the limit of the process, which is
// usually 65 530.  If the limit is higher, and in the second run, mappings are
// refused by the table of system calls instead.
static const unsigned crowds[] = {1 << 17, 0};
enum { CROWD_PAGES = 1 << 17 };

static char *crowd; // pages; every second page is a mapping

// Calls that make mappings, or split one in two.
static const enum oscall splitting[] = {
    OSCALL_RESERVE, OSCALL_COMMIT, OSCALL_UNCOMMIT,
    OSCALL_MAP,	    OSCALL_ADVISE, OSCALL_NAME,
};

static size_t page_size(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

// refuse_mappings refuses all but the first n calls of each sort.
static void refuse_mappings(unsigned n)
{
	for (unsigned i = 0; i < RT_ARRAY_LEN(splitting); i++)
		fault_fail(splitting[i], n + 1, UINT64_MAX, ENOMEM);
}

static void grant_mappings(void)
{
	for (unsigned i = 0; i < RT_ARRAY_LEN(splitting); i++)
		fault_fail(splitting[i], 1, 0, 0);
}

// crowd_make makes mappings until the system refuses one, but about most at
// most, and then removes about n.  If none is refused, it has later ones
// refused instead.  Either way the process can make only about n more.
static void crowd_make(unsigned most, unsigned n)
{
	unsigned last = 0;
	size_t page = page_size();

	crowd = mmap(NULL, CROWD_PAGES * page, PROT_NONE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	ck_assert(crowd != MAP_FAILED);
	for (unsigned i = 1; i < most; i += 2, last = i)
		if (mprotect(crowd + i * page, page, PROT_READ) != 0)
			break;
	if (last + 1 >= most) {
		refuse_mappings(n / 2);
		return;
	}
	for (last -= 2; n > 0 && last > 2; n -= 2, last -= 2)
		ck_assert_int_eq(mprotect(crowd + last * page, page, PROT_NONE),
				 0);
}

static void crowd_end(void)
{
	if (!crowd)
		return;
	grant_mappings();
	ck_assert_int_eq(munmap(crowd, CROWD_PAGES * page_size()), 0);
	crowd = NULL;
}

// When the process can make no more mappings, or only a few, an existing heap
// can still be used.
TEST(mappings, .n = RT_ARRAY_LEN(crowds), .unless = SUITE_SANITIZED)
{
	begin();
	fill(100000);
	for (unsigned i = 20; i < nroots; i++)
		roots[i] = NULL;
	nroots = 20;
	end();
	for (unsigned left = 0; left < 24; left += 4) {
		begin();
		roots[nroots++] = rt_alloc(100);
		crowd_make(crowds[_i], left);
		fill(100000);
		in_order();
		for (unsigned i = 1; i < nroots; i += 2)
			roots[i] = NULL;
		ck_assert_uint_eq(heap_live_after_gc(), (nroots + 1) / 2);
		ck_assert_int_eq(rt_free_os_memory(), RT_OK);
		drop();
		in_order();
		crowd_end();
		ck_assert_uint_ge(fill(MIB), 60);
		in_order();
		end();
	}
}

// If the process can make only a few mappings, rt_init makes a heap that works,
// or returns RT_ENOMEM.
TEST(mappings_of_a_new_heap, .n = RT_ARRAY_LEN(crowds),
     .unless = SUITE_SANITIZED)
{
	unsigned made = 0, refused = 0;

	for (unsigned left = 0; left < 100; left += 9) {
		int error;

		crowd_make(crowds[_i], left);
		error = begin_with(64 * MIB);
		ck_assert(error == RT_OK || error == RT_ENOMEM);
		made += error == RT_OK;
		refused += error != RT_OK;
		if (error == RT_OK) {
			fill(100000);
			in_order();
			end();
		}
		crowd_end();
		begin();
		ck_assert_uint_ge(fill(MIB), 60);
		end();
	}
	ck_assert_uint_gt(made, 0);
	ck_assert_uint_gt(refused, 0);
}
