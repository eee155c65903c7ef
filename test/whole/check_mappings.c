// How many mappings the heap takes.  It reports the number, and goes on when
// the process can make no more mappings.
#define _GNU_SOURCE 1

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "runtime/pages/arena.h"
#include "runtime/os/oscall.h"
#include "test/harness/fault.h"
#include "test/harness/heap.h"
#include "test/harness/suite.h"
#include "test/harness/thread.h"

enum { THREADS = 200, SMALL = 64, GROWERS = 8, GROWN = 200 };

// ---- what the system and the library say ----

// maps counts the mappings of the process whose line contains a text.
static unsigned maps(const char *text)
{
	FILE *f = fopen("/proc/self/maps", "r");
	char line[512];
	unsigned n = 0;

	ck_assert_ptr_nonnull(f);
	while (fgets(line, sizeof line, f))
		n += strstr(line, text) != NULL;
	fclose(f);
	return n;
}

// named counts the mappings that have a name of the library.  It looks for the
// bracket as well, because the path of the program may contain that name.
static unsigned named(void)
{
	return maps("[anon:rtheap");
}

static unsigned before_heap; // mappings of the process before the heap

// ours returns how many mappings the heap has: those with its name, or, where
// the kernel knows no names, all that the process did not have before.  It
// returns 0 if these may be a sanitizer's.
static unsigned ours(void)
{
	unsigned n = named();

	if (n != 0 || RT_ASAN || RT_TSAN)
		return n;
	return maps("") - before_heap;
}

static uint64_t counted(void)
{
	return heap_metric("/memory/mappings:count");
}

static uint64_t limit(void)
{
	return heap_metric("/memory/mappings/limit:count");
}

static uint64_t systems_limit(void)
{
	FILE *f = fopen("/proc/sys/vm/max_map_count", "r");
	unsigned long long n = 65530;

	if (f) {
		ck_assert_int_eq(fscanf(f, "%llu", &n), 1);
		fclose(f);
	}
	return n;
}

static void start(void)
{
	rt_config c = heap_config(HEAP_QUIET);

	c.gc_percent = -1;
	c.populate = 0; // nothing touches what is allocated here
	before_heap = maps("");
	heap_start_exact(c);
}

// allocate allocates small objects, bytes in all, that nothing refers to.  It
// returns false if an allocation returns NULL.
static bool allocate(uint64_t bytes)
{
	for (uint64_t i = 0; i < bytes / SMALL; i++)
		if (!rt_alloc_noscan(SMALL))
			return false;
	return true;
}

// ---- the number ----

GROUP(mappings, .timeout = 120);

TEST(a_gigabyte_of_small_objects_takes_no_mappings)
{
	start();
	ck_assert(allocate(16 << 20));
	unsigned before = ours();
	uint64_t before_counted = counted();
	ck_assert(allocate(UINT64_C(1) << 30));
	ck_assert_uint_le(ours(), before + 4);
	ck_assert_uint_le(counted(), before_counted + 4);
}

static struct {
	pthread_barrier_t attached, counted;
} gates;

static void *attached(void *arg)
{
	(void)arg;
	ck_assert_int_eq(rt_thread_attach(0), RT_OK);
	ck_assert_ptr_nonnull(rt_alloc(SMALL));
	rt_blocking_enter();
	pthread_barrier_wait(&gates.attached);
	pthread_barrier_wait(&gates.counted);
	rt_blocking_leave();
	ck_assert_int_eq(rt_thread_detach(), RT_OK);
	return NULL;
}

TEST(a_thread_takes_no_mapping)
{
	static pthread_t threads[THREADS];

	start();
	uint64_t before = counted();
	unsigned before_named = named();
	pthread_barrier_init(&gates.attached, NULL, THREADS + 1);
	pthread_barrier_init(&gates.counted, NULL, THREADS + 1);
	rt_blocking_enter();
	for (unsigned i = 0; i < THREADS; i++)
		threads[i] = start_thread(attached, NULL);
	pthread_barrier_wait(&gates.attached);
	// The blocks of threads come in regions that hold 64, 64 and 128 of
	// them.
	uint64_t after = counted();
	unsigned after_named = named();
	pthread_barrier_wait(&gates.counted);
	for (unsigned i = 0; i < THREADS; i++)
		join_thread(threads[i]);
	rt_blocking_leave();
	ck_assert_uint_le(after, before + 3 * 4);
	ck_assert_uint_le(after_named, before_named + 3 * 4);
}

// The library counts at least the mappings that there are.  It counts more
// because the system joins neighbours that are alike; without names more are.
TEST(what_is_counted_is_what_there_is)
{
	start();
	ck_assert_uint_eq(limit(), systems_limit());
	if (ours() == 0) {
		suite_skip("a sanitizer's mappings have no names", NULL);
		return;
	}
	for (int i = 0; i < 3; i++) {
		unsigned n = ours();

		ck_assert_uint_le(n, counted());
		ck_assert_uint_le(counted(), named() ? 2 * n : 4 * n);
		ck_assert(allocate(100 << 20));
		ck_assert_int_eq(rt_free_os_memory(), RT_OK);
	}
}

// ---- calls ----

static const enum oscall calls[] = {
    OSCALL_RESERVE, OSCALL_COMMIT, OSCALL_UNCOMMIT, OSCALL_MAP,
    OSCALL_UNMAP,   OSCALL_ADVISE, OSCALL_NAME,
};

// grow_to allocates until the heap has so many MiB, and returns how many system
// calls that took.
static uint64_t grow_to(unsigned mib)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < RT_ARRAY_LEN(calls); i++)
		fault_fail(calls[i], 1, 0, 0);
	while (arena_used() < (uint64_t)mib << 20)
		ck_assert_ptr_nonnull(rt_alloc_noscan_uninit(1 << 20));
	for (unsigned i = 0; i < RT_ARRAY_LEN(calls); i++)
		n += fault_count(calls[i]);
	return n;
}

// Growth goes in steps of a thirty-second of the heap: from half a GiB to one
// there are about 22 of them, of 16 to 32 MiB.
TEST(growth_calls_the_system_for_larger_steps)
{
	uint64_t n;

	start();
	n = grow_to(64);
	ck_assert_uint_le(n, 64 / 4 * 9);
	grow_to(512);
	n = grow_to(1024);
	ck_assert_uint_ge(n, 22);
	ck_assert_uint_le(n, 256); // 2 for each 4 MiB
}

// Threads that grow the heap at the same time each get memory for their
// request.
static void *grow(void *arg)
{
	unsigned char **kept = arg;

	ck_assert_int_eq(rt_thread_attach(0), RT_OK);
	for (unsigned i = 0; i < GROWN; i++) {
		kept[i] = rt_alloc_noscan_uninit(100000 + i * 3000);
		ck_assert_ptr_nonnull(kept[i]);
		memset(kept[i], (int)(i + (uintptr_t)arg % 251), 1000);
	}
	ck_assert_int_eq(rt_thread_detach(), RT_OK);
	return NULL;
}

TEST(threads_grow_the_heap_together)
{
	static unsigned char *kept[GROWERS][GROWN];
	pthread_t threads[GROWERS];
	rt_memstats m;

	start();
	rt_blocking_enter();
	for (unsigned i = 0; i < GROWERS; i++)
		threads[i] = start_thread(grow, kept[i]);
	for (unsigned i = 0; i < GROWERS; i++)
		join_thread(threads[i]);
	rt_blocking_leave();
	for (unsigned i = 0; i < GROWERS; i++)
		for (unsigned k = 0; k < GROWN; k++)
			ck_assert_uint_eq(kept[i][k][999],
					  (k + (uintptr_t)kept[i] % 251) % 256);
	m = heap_stats();
	ck_assert_uint_eq(m.heap_sys, arena_used() - m.stack_sys);
	ck_assert_uint_ge(m.heap_objects, GROWERS * GROWN);
	ck_assert_uint_le(arena_used(), arena_prepared());
}

// ---- the warning ----

static unsigned warnings;

static void warned(const char *text, void *arg)
{
	ck_assert_ptr_eq(arg, &warnings);
	ck_assert_ptr_nonnull(strstr(text, "vm.max_map_count"));
	warnings++;
	ck_assert_ptr_nonnull(rt_alloc(1 << 20));
}

static void use_large(void)
{
	for (int i = 0; i < 3; i++)
		ck_assert_ptr_nonnull(rt_alloc(64 << 10));
}

// cross counts so many mappings that the warning is due, and subtracts them
// again.  It makes none.
static void cross(void)
{
	int64_t missing = (int64_t)(limit() / 5 * 4 - counted());

	sysmem_count_mappings(missing);
	sysmem_count_mappings(-missing);
}

TEST(four_fifths_are_told_once_in_a_process)
{
	start();
	ck_assert_int_eq(rt_set_warn_handler(warned, &warnings), RT_OK);
	sysmem_count_mappings((int64_t)(limit() / 5 * 4 - counted()) - 1);
	use_large();
	ck_assert_uint_eq(warnings, 0);
	sysmem_count_mappings(1);
	use_large();
	ck_assert_uint_eq(warnings, 1);
	sysmem_count_mappings(7);
	use_large();
	sysmem_count_mappings(-(int64_t)counted() / 2);
	cross();
	use_large();
	ck_assert_int_eq(rt_fini(), RT_OK);
	start();
	cross();
	use_large();
	ck_assert_uint_eq(warnings, 1);
}

static void *words[2];

static void add_roots(void)
{
	ck_assert_int_eq(rt_roots_add(words, words + 2, 0), RT_OK);
}

static void take_stack(void)
{
	ck_assert_ptr_nonnull(rt_stack_alloc(8192));
}

static void collect(void)
{
	ck_assert_int_eq(rt_gc(), RT_OK);
}

static void come_back(void)
{
	ck_assert_int_eq(rt_thread_attach(0), RT_OK);
}

static void (*const makers[])(void) = {use_large, add_roots, take_stack,
				       collect, come_back};

// A host that does not allocate is told as well.
TEST(each_function_that_makes_mappings_tells, .n = RT_ARRAY_LEN(makers))
{
	start();
	ck_assert_int_eq(rt_set_warn_handler(warned, &warnings), RT_OK);
	if (makers[_i] == come_back)
		ck_assert_int_eq(rt_thread_detach(), RT_OK);
	cross();
	ck_assert_uint_eq(warnings, 0);
	makers[_i]();
	ck_assert_uint_eq(warnings, 1);
}

// ---- no more of them ----

// use_up takes all but about leave of the mappings that the process may have.
static void use_up(unsigned leave)
{
	uint64_t n = 2 * systems_limit();
	char *p = mmap(NULL, n << 12, PROT_NONE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	uint64_t i = 0;

	ck_assert_ptr_ne(p, MAP_FAILED);
	while (i < n && mprotect(p + (i << 12), 4096, PROT_READ) == 0)
		i += 2;
	ck_assert_uint_lt(i, n);
	for (; leave > 1; leave -= 2) {
		i -= 2;
		ck_assert_int_eq(mprotect(p + (i << 12), 4096, PROT_NONE), 0);
	}
}

// keep allocates small objects, bytes in all, and keeps them.  It returns false
// if an allocation returns NULL.
static bool keep(uint64_t bytes)
{
	static void *list[1];

	if (!list[0])
		must(rt_roots_add(list, list + 1, RT_ROOT_EXACT));
	for (uint64_t i = 0; i < bytes / SMALL; i++) {
		void **p = rt_alloc(SMALL);

		if (!p)
			return false;
		*p = list[0];
		list[0] = p;
	}
	return true;
}

static const unsigned left[] = {0, 2, 130};

// The sanitizers want mappings of their own.
TEST(the_heap_grows_without_a_mapping_left, .n = RT_ARRAY_LEN(left),
     .unless = SUITE_SANITIZED)
{
	start();
	ck_assert(keep(1 << 20));
	use_up(left[_i]);
	for (int i = 0; i < 25; i++)
		ck_assert_msg(keep(4 << 20), "NULL after %d MiB", 4 * i);
	ck_assert_int_eq(rt_free_os_memory(), RT_OK);
	ck_assert(keep(16 << 20));
}
