// Without memory the answer is NULL or RT_ENOMEM, nothing is lost or leaked,
// and all works again when there is memory again.
#include "test/harness/fault.h"
#include "test/harness/heap.h"
#include "test/harness/suite.h"
#include "test/whole/oom.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "runtime/os/gauge.h"
#include "runtime/spans/mcache.h"
#include "runtime/os/oscall.h"
#include "test/harness/process.h"

// ---- the limit of the heap ----

static const struct {
	size_t size;
	uint64_t least; // objects that fit in 64 MiB
} limits[] = {
    // Work buffers may take a span of 32 KiB when memory is short, and small
    // classes leave about a page unused.
    {16, (MAX_HEAP - (1 << 20)) / 16},
    {48, (MAX_HEAP - (2 << 20)) / 48},
    {1024, (MAX_HEAP - (1 << 20)) / 1024},
    {8192, (MAX_HEAP - (1 << 20)) / 8192},
    {32760, (MAX_HEAP - (1 << 20)) / 32768},
    {40000, (MAX_HEAP - (1 << 20)) / 40960},
    {1 << 20, 63},
    {5 << 20, 12},
    {17 << 20, 3},
    {33 << 20, 1},
    {MAX_HEAP, 1},
};

static void at_the_limit(size_t size)
{
	rt_memstats before = heap_healthy();

	ck_assert_uint_le(before.heap_sys, MAX_HEAP);
	for (int i = 0; i < 3; i++)
		ck_assert_ptr_null(rt_alloc(size));
	ck_assert_ptr_null(rt_alloc_noscan(size));
	ck_assert_ptr_null(rt_alloc_noscan_uninit((size_t)MAX_HEAP * 2));
	ck_assert_uint_eq(nothing_taken(&before).heap_objects, list_len);
}

GROUP(limit, .timeout = 60);

TEST(the_heap_fills_to_its_limit_and_empties_again, .base = RT_TSAN ? 2 : 0,
     .limit = RT_ARRAY_LEN(limits))
{
	size_t size = limits[_i].size;

	begin_with(MAX_HEAP, size < 1024 ? -1 : 100);
	// With small objects each collection marks millions, so there is one
	// round.
	for (int round = 0; round < (size < 1024 ? 1 : 3); round++) {
		fill_list(size);
		ck_assert_uint_ge(list_len, limits[_i].least);
		ck_assert(list_whole());
		at_the_limit(size);
		ck_assert(list_whole());
		drop_all();
		ck_assert_ptr_nonnull(rt_alloc(size));
		ck_assert_int_eq(rt_gc(), RT_OK);
		ck_assert_uint_eq(heap_healthy().heap_objects, 0);
	}
	fill_list(64);
	heap_healthy();
	ck_assert_int_eq(rt_fini(), RT_OK);
}

// With a negative percentage, an allocation that finds no memory still
// collects.
TEST(the_limit_collects_though_the_percentage_is_off)
{
	uint64_t n = 0;

	begin_with(MAX_HEAP, -1);
	for (; n < 5 * (MAX_HEAP / 40960); n++)
		if (!rt_alloc_noscan(40000))
			break;
	ck_assert_uint_eq(n, 5 * (MAX_HEAP / 40960));
	ck_assert_uint_ge(heap_healthy().num_gc, 3);
	ck_assert_uint_eq(heap_healthy().num_forced_gc, 0);
}

// A thread gives up its caches when memory is short.
TEST(all_of_an_empty_heap_is_one_object)
{
	begin();
	for (int round = 0; round < 4; round++) {
		// In the first rounds the thread keeps only a few pages.
		ck_assert_ptr_nonnull(rt_alloc(64));
		if (round >= 2)
			fill_list(round % 2 ? 512 : 2048);
		drop_all();
		roots[0] = rt_alloc_noscan_uninit(MAX_HEAP);
		ck_assert_ptr_nonnull(roots[0]);
		ck_assert_uint_eq(heap_healthy().heap_alloc, MAX_HEAP);
		ck_assert_ptr_null(rt_alloc(16));
		drop_all();
	}
}

// fill_graph fills the heap, so that marking finds no memory for its work
// buffers.  Every object leads to the previous object and to random earlier
// ones.
static void fill_graph(struct rng *r)
{
	enum { WORDS = 4096 / 8 };
	void **p;

	while (nroots < NROOTS && (p = rt_alloc(WORDS * 8)) != NULL) {
		for (unsigned i = 8; i < WORDS && nroots > 0; i += 8)
			p[i] = roots[rng_below(r, nroots)];
		p[0] = (void *)(uintptr_t)(nroots * 2 + 1);
		p[1] = nroots > 0 ? roots[nroots - 1] : NULL;
		roots[nroots++] = p;
	}
	fill_list(16);
}

TEST(a_full_heap_is_marked_without_work_buffers)
{
	static void *objects[NROOTS];
	struct rng r;
	unsigned wrong = 0;
	unsigned n;

	rng_init(&r, "a_full_heap_is_marked_without_work_buffers");
	begin_with(MAX_HEAP, -1);
	fill_graph(&r);
	n = nroots;
	memcpy(objects, roots, sizeof objects);
	memset(roots, 0, sizeof roots);
	roots[0] = objects[n - 1];
	for (int round = 0; round < 3; round++) {
		ck_assert_int_eq(rt_gc(), RT_OK);
		ck_assert_uint_eq(heap_healthy().heap_objects, n + list_len);
		for (unsigned i = 0; i < n; i++)
			wrong += *(uintptr_t *)objects[i] != i * 2 + 1;
		ck_assert_uint_eq(wrong, 0);
		ck_assert(list_whole());
	}
}

// Each round fills the heap with objects without pointers, of 32 KiB and more.
// Every tenth round uses objects of 4 to 16 KiB.
TEST(a_thousand_rounds_to_the_limit)
{
	enum { ROUNDS = SANITIZED ? 200 : 1000 };
	struct rng r;
	uint64_t sys = 0;

	rng_init(&r, "a_thousand_rounds_to_the_limit");
	begin();
	// There is so much to mark that all helper threads are made now.  Later
	// rounds then add no records of helpers to sys.
	fill_graph(&r);
	rt_gc();
	drop_all();
	for (int round = 0; round < ROUNDS; round++) {
		size_t size = (32 << 10) + rng_below(&r, 4 << 20);
		rt_memstats m;

		if (round % 10 == 0)
			size = 4096 + rng_below(&r, 12000);
		if (round == 0)
			size = 4096; // many, so helpers are made now
		fill_roots(size);
		ck_assert_uint_ge(nroots, 1);
		rt_read_memstats(&m);
		ck_assert_uint_le(m.heap_sys, MAX_HEAP);
		ck_assert_uint_ge(m.heap_alloc, MAX_HEAP / 2);
		if (round == 20)
			sys = m.sys - m.mspan_sys - m.other_sys;
		if (round > 20)
			ck_assert_uint_le(m.sys - m.mspan_sys - m.other_sys,
					  sys);
		if (round % 50 == 0)
			heap_healthy();
		drop_all();
	}
	rt_gc();
	ck_assert_uint_eq(heap_healthy().heap_objects, 0);
}

TEST(stacks_end_at_the_limit_too)
{
	static void *stacks[MAX_HEAP / 2048 + 1]; // NULL ends them
	static const size_t sizes[] = {2048, 16384, 32768, 1 << 20};

	begin();
	for (size_t i = 0; i < RT_ARRAY_LEN(sizes); i++) {
		unsigned n = 0;
		rt_memstats m;

		while ((stacks[n] = rt_stack_alloc(sizes[i])) != NULL)
			n++;
		ck_assert_uint_ge(n, (MAX_HEAP - (1 << 20)) / sizes[i]);
		m = heap_healthy();
		ck_assert_uint_ge(m.stack_inuse, n * sizes[i]);
		ck_assert_uint_le(m.stack_inuse, MAX_HEAP);
		ck_assert_ptr_null(rt_alloc(2 << 20));
		while (n > 0)
			must(rt_stack_free(stacks[--n], sizes[i]));
		ck_assert_uint_eq(heap_healthy().stack_inuse, 0);
		ck_assert_ptr_nonnull(rt_alloc(1 << 20));
	}
}

// ---- threads at the limit ----

enum { NTHREADS = 4, THREAD_ROOTS = NROOTS / NTHREADS };

static void *fill_and_drop(void *arg)
{
	uintptr_t who = (uintptr_t)arg;
	void **own = roots + who * THREAD_ROOTS;
	struct rng r = {.state = who + 1};
	uintptr_t failed = 0;

	if (rt_thread_attach(RT_THREAD_EXACT) != RT_OK)
		return (void *)1;
	for (int round = 0; round < (SANITIZED ? 5 : 30); round++) {
		unsigned n = 0;
		uint64_t *p;

		while (n < THREAD_ROOTS &&
		       (p = rt_alloc_noscan(4096 + rng_below(&r, 40000)))) {
			own[n++] = p;
			p[0] = p[100] = who << 32 | n;
		}
		for (unsigned i = 0; i < n; i++) {
			p = own[i];
			failed +=
			    p[0] != (who << 32 | (i + 1)) || p[100] != p[0];
			own[i] = NULL;
		}
	}
	rt_thread_detach();
	return (void *)failed;
}

TEST(threads_share_what_there_is)
{
	pthread_t threads[NTHREADS];

	begin();
	rt_blocking_enter();
	for (uintptr_t i = 0; i < NTHREADS; i++)
		threads[i] = start_thread(fill_and_drop, (void *)i);
	for (int i = 0; i < NTHREADS; i++)
		ck_assert_ptr_null(join_thread(threads[i]));
	rt_blocking_leave();
	rt_gc();
	ck_assert_uint_eq(heap_healthy().heap_objects, 0);
}

// ---- what the system refuses ----

static void disarm_all(void)
{
	for (unsigned kind = 0; kind < OSCALL_COUNT; kind++)
		fault_fail(kind, 1, 0, 0);
}

// grow_some allocates 24 MiB in many classes and kinds, and keeps it.  It
// returns how many allocations failed.
static unsigned grow_some(void)
{
	unsigned failed = 0;

	for (unsigned i = 0; i < 400; i++) {
		size_t size = 16 + i * 331 % 120000;
		void *p = rt_alloc_kind(i % 2, size);

		failed += p == NULL;
		if (p && nroots < NROOTS)
			roots[nroots++] = p;
	}
	return failed;
}

GROUP(refused, .timeout = 60);

// The host does not notice one refusal, because the library tries again after a
// collection.
TEST(growth_refused_once, .n = OSCALL_COUNT)
{
	for (uint64_t nth = 1;; nth++) {
		bool hit;

		begin();
		fault_fail(_i, nth, 1, ENOMEM);
		ck_assert_uint_eq(grow_some(), 0);
		hit = fault_failed(_i) != 0;
		disarm_all();
		heap_healthy();
		ck_assert_uint_eq(grow_some(), 0);
		end();
		if (!hit)
			break;
		ck_assert_uint_lt(nth, 1000);
	}
}

TEST(growth_refused_for_good, .n = OSCALL_COUNT)
{
	unsigned most = 0;

	for (uint64_t nth = 1;; nth++) {
		rt_memstats before;
		unsigned failed;
		bool hit;

		begin();
		fault_fail(_i, nth, UINT64_MAX, ENOMEM);
		failed = grow_some();
		most += failed;
		hit = fault_failed(_i) != 0;
		before = heap_healthy();
		if (failed) {
			ck_assert_ptr_null(rt_alloc(30 << 20));
			nothing_taken(&before);
		}
		ck_assert_uint_eq(before.mallocs, 400 - failed);
		disarm_all();
		ck_assert_uint_eq(grow_some(), 0);
		end();
		if (!hit)
			break;
		ck_assert_uint_lt(nth, 1000);
	}
	if (_i == OSCALL_COMMIT)
		ck_assert_uint_gt(most, 0);
}

// Memory for span records runs out long before memory for objects.
TEST(span_records_refused)
{
	rt_memstats before;

	begin();
	fill_roots(1 << 20); // so that objects need no memory
	drop_all();
	ck_assert_int_eq(rt_gc(), RT_OK);
	fault_fail(OSCALL_COMMIT, 1, UINT64_MAX, ENOMEM);
	fill_roots(8192);
	ck_assert_uint_gt(fault_failed(OSCALL_COMMIT), 0);
	ck_assert_uint_lt(nroots, MAX_HEAP / 8192 - 200);
	before = heap_healthy();
	for (int i = 0; i < 10; i++)
		ck_assert_ptr_null(rt_alloc(50000));
	ck_assert_ptr_null(rt_stack_alloc(1 << 16));
	nothing_taken(&before);
	disarm_all();
	fill_roots(8192);
	ck_assert_uint_ge(nroots, MAX_HEAP / 8192 - 200);
	heap_healthy();
}

TEST(release_refused)
{
	rt_memstats m;

	begin();
	fill_roots(1 << 20);
	drop_all();
	fault_fail(OSCALL_RELEASE, 1, UINT64_MAX, EINVAL);
	ck_assert_int_eq(rt_free_os_memory(), RT_OK);
	ck_assert_uint_gt(fault_failed(OSCALL_RELEASE), 0);
	m = heap_healthy();
	ck_assert_uint_ge(m.heap_idle - m.heap_released, MAX_HEAP / 2);
	disarm_all();
	ck_assert_int_eq(rt_free_os_memory(), RT_OK);
	m = heap_healthy();
	ck_assert_uint_eq(m.heap_idle, m.heap_released);
	fill_roots(1 << 20);
	ck_assert_uint_ge(nroots, 63);
}

TEST(roots_refused)
{
	static uint64_t words[4096];
	size_t added = 0;
	rt_memstats before;

	begin();
	before = heap_healthy();
	fault_fail(OSCALL_MAP, 1, UINT64_MAX, ENOMEM);
	while (added < 4096 && rt_roots_add(words + added, words + added + 1,
					    RT_ROOT_EXACT) == RT_OK)
		added++;
	ck_assert_uint_lt(added, 4096);
	for (int i = 0; i < 5; i++)
		ck_assert_int_eq(rt_roots_add(words, words + 2, 0), RT_ENOMEM);
	ck_assert_int_eq(rt_roots_remove(words, words + 2), RT_ENOENT);
	ck_assert_uint_eq(heap_healthy().other_sys, before.other_sys);
	disarm_all();
	ck_assert_int_eq(rt_roots_add(words, words + 2, 0), RT_OK);
	words[added - 1] = (uintptr_t)rt_alloc(64);
	rt_gc();
	ck_assert_uint_eq(heap_healthy().heap_objects, 1);
	for (size_t i = 0; i < added; i++)
		must(rt_roots_remove(words + i, words + i + 1));
}

// ---- mappings ----

static struct maps {
	unsigned n;	// mappings of memory without a file
	uint64_t bytes; // in these mappings
	unsigned named; // of this library
} maps_before, maps_after;

// read_maps does not use malloc, which would add mappings of its own.
static struct maps read_maps(void)
{
	static char text[1 << 20];
	struct maps maps = {0};
	size_t len = 0;
	ssize_t n;
	int fd = open("/proc/self/maps", O_RDONLY);

	ck_assert_int_ge(fd, 0);
	while ((n = read(fd, text + len, sizeof text - 1 - len)) > 0)
		len += (size_t)n;
	close(fd);
	text[len] = '\0';
	for (char *line = text; *line;) {
		char *end = strchr(line, '\n');
		char *minus, *path;

		*end = '\0';
		path = strchr(line, '/');
		maps.named += strstr(line, "rtheap") && !path;
		if (!path && !strstr(line, "[heap]") &&
		    !strstr(line, "[stack]")) {
			uint64_t lo = strtoull(line, &minus, 16);

			maps.n++;
			maps.bytes += strtoull(minus + 1, NULL, 16) - lo;
		}
		line = end + 1;
	}
	return maps;
}

static bool same_maps(struct maps a, struct maps b)
{
	// A sanitizer may map shadow memory at any time.
	return SANITIZED || (a.n == b.n && a.bytes == b.bytes);
}

static void init_and_fini(void)
{
	begin();
	ck_assert_ptr_nonnull(rt_alloc(64));
	ck_assert_uint_eq(grow_some(), 0);
	ck_assert_int_eq(rt_gc(), RT_OK);
	end();
}

// needed tells whether rt_init and rt_thread_attach fail if a call is refused.
// A thread other than the main one needs the bounds of its stack as well.
static bool needed(unsigned kind)
{
	return kind == OSCALL_TLSKEY || kind == OSCALL_ATFORK;
}

// init_with makes a heap while calls are refused.  It returns true if a call
// was.
static bool init_with(unsigned kind, uint64_t nth, uint64_t ncalls)
{
	rt_config c = heap_config(100);
	uint64_t failed;
	int error;

	// The C library would keep the stack of the background thread.
	if (c.sweep != 0)
		c.gc_threads = 0;
	fault_fail(kind, nth, ncalls, ENOMEM);
	error = rt_init(&c);
	failed = fault_failed(kind);
	disarm_all();
	if (failed && needed(kind))
		ck_assert_int_eq(error, RT_ENOMEM);
	if (!failed)
		ck_assert_int_eq(error, RT_OK);
	if (error == RT_OK) {
		ck_assert_ptr_nonnull(rt_alloc(100));
		ck_assert_int_eq(rt_gc(), RT_OK);
		heap_healthy();
		ck_assert_int_eq(rt_fini(), RT_OK);
	} else {
		ck_assert_int_eq(error, RT_ENOMEM);
		ck_assert_ptr_null(rt_thread_self());
		ck_assert_ptr_null(rt_alloc(16));
		ck_assert_int_eq(rt_gc(), RT_ESTATE);
		ck_assert_int_eq(rt_fini(), RT_ESTATE);
	}
	return failed != 0;
}

static void each_init(unsigned kind, uint64_t ncalls)
{
	init_and_fini();
	maps_before = read_maps();
	ck_assert_uint_eq(maps_before.named, 0);
	for (uint64_t nth = 1; init_with(kind, nth, ncalls); nth++) {
		ck_assert_uint_lt(nth, 1000);
		maps_after = read_maps();
		// A mapping that the system refuses to remove stays.
		if (kind != OSCALL_UNMAP) {
			ck_assert_uint_eq(maps_after.named, 0);
			ck_assert(same_maps(maps_before, maps_after));
		}
		init_and_fini();
	}
}

GROUP(begin, .timeout = 60);

TEST(init_with_one_call_refused, .n = OSCALL_COUNT)
{
	each_init((unsigned)_i, 1);
}

TEST(init_with_all_calls_refused, .n = OSCALL_COUNT)
{
	each_init((unsigned)_i, UINT64_MAX);
}

// The very first rt_init of a process also makes its key, and prepares forks.
TEST(first_init_refused)
{
	ck_assert(init_with(OSCALL_ATFORK, 1, 1));
	for (uint64_t nth = 1; init_with(OSCALL_TLSKEY, nth, 1); nth++)
		ck_assert_uint_lt(nth, 100);
	init_and_fini();
}

TEST(no_address_space_at_all)
{
	rt_config c = heap_config(100);

	fault_fail(OSCALL_RESERVE, 1, UINT64_MAX, ENOMEM);
	ck_assert_int_eq(rt_init(&c), RT_ENOMEM);
	disarm_all();
	init_and_fini();
}

// ---- attaching ----

static unsigned attach_failures;

static void check_attach(bool ok, const char *what, unsigned kind, uint64_t nth)
{
	if (ok)
		return;
	attach_failures++;
	fprintf(stderr, "%s, %s call %u: wrong\n", what, fault_name(kind),
		(unsigned)nth);
}

static bool attach_with(unsigned kind, uint64_t nth)
{
	bool failed;
	int error;

	mcache_release_kept(); // so that memory is needed
	fault_fail(kind, nth, 1, ENOMEM);
	error = rt_thread_attach(0);
	failed = fault_failed(kind) != 0;
	fault_fail(kind, 1, 0, 0);
	check_attach(error ==
			 (failed && (needed(kind) || kind == OSCALL_STACKBOUNDS)
			      ? RT_ENOMEM
			      : RT_OK),
		     "answer", kind, nth);
	check_attach((rt_thread_self() != NULL) == (error == RT_OK), "self",
		     kind, nth);
	check_attach((rt_alloc(16) != NULL) == (error == RT_OK), "alloc", kind,
		     nth);
	if (error == RT_OK)
		check_attach(rt_thread_detach() == RT_OK, "detach", kind, nth);
	else
		check_attach(rt_thread_detach() == RT_EPERM, "no detach", kind,
			     nth);
	return failed;
}

static void *attach_refused(void *arg)
{
	(void)arg;
	// After this, the C library has all memory that it keeps for a thread.
	if (attach_with(OSCALL_NAME, 1000))
		return NULL;
	mcache_release_kept();
	maps_before = read_maps();
	for (unsigned kind = 0; kind < OSCALL_COUNT; kind++)
		for (uint64_t nth = 1; attach_with(kind, nth); nth++)
			check_attach(nth < 1000, "end", kind, nth);
	mcache_release_kept();
	maps_after = read_maps();
	return NULL;
}

TEST(attach_leaves_nothing_behind)
{
	struct gauges before;

	begin();
	mcache_release_kept();
	before = gauges;
	run_beside(attach_refused, NULL);
	ck_assert_uint_eq(attach_failures, 0);
	ck_assert(same_maps(maps_before, maps_after));
	ck_assert_uint_eq(gauge_load(&before.mcache_sys),
			  gauge_load(&gauges.mcache_sys));
	ck_assert_uint_eq(gauge_load(&before.mcache_inuse),
			  gauge_load(&gauges.mcache_inuse));
	// Span records are cut from memory that was counted in other_sys.
	ck_assert_uint_eq(
	    gauge_load(&before.other_sys) + gauge_load(&before.mspan_sys),
	    gauge_load(&gauges.other_sys) + gauge_load(&gauges.mspan_sys));
	heap_healthy();
	ck_assert_int_eq(rt_fini(), RT_OK);
}

// ---- limits of the process ----

GROUP(refused);

TEST(data_limit, .unless = SUITE_SANITIZED)
{
	unsigned first;

	begin();
	process_limit(RLIMIT_DATA, process_status("VmData") + (32 << 20));
	for (int round = 0; round < 3; round++) {
		drop_all();
		fill_roots(100000);
		first = nroots;
		ck_assert_uint_ge(first, (24 << 20) / 106496);
		ck_assert_uint_le(first, (36 << 20) / 106496);
		heap_healthy();
		fill_list(16);
		ck_assert(list_whole());
		heap_healthy();
	}
	process_unlimit(RLIMIT_DATA);
	fill_roots(100000);
	ck_assert_uint_gt(nroots, first);
	heap_healthy();
}

TEST(address_space_limit, .unless = SUITE_SANITIZED)
{
	uint64_t before = process_status("VmSize");
	rt_memstats m;

	process_limit(RLIMIT_AS, before + (320 << 20));
	begin_with(0, 100);
	fill_list(1 << 20);
	ck_assert_uint_ge(list_len, 64);
	ck_assert_uint_le(list_len, 160);
	ck_assert(list_whole());
	m = heap_healthy();
	ck_assert_uint_le(m.heap_sys, 160 << 20);
	drop_all();
	ck_assert_ptr_nonnull(rt_alloc(50 << 20));
	heap_healthy();
	ck_assert_int_eq(rt_fini(), RT_OK);
	process_limit(RLIMIT_AS, before + (64 << 20));
	ck_assert_int_eq(rt_init(NULL), RT_ENOMEM);
	ck_assert_uint_eq(read_maps().named, 0);
	process_unlimit(RLIMIT_AS);
	init_and_fini();
}
