// A write past the end of a mapping of the library, or of a guarded object,
// faults there, and never reaches the library's own records of the heap.
#include "test/harness/fault.h"
#include "test/harness/kind.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gc/cycle/refill.h"
#include "runtime/spans/mcache.h"
#include "runtime/os/oscall.h"
#include "test/harness/recount.h"

// ---- children that fault ----

// signal_of returns the signal that ends a child that calls fn(p), or 0 if none
// does.
static int signal_of(void (*fn)(volatile char *), const void *p)
{
	struct rlimit none = {0, 0};
	int status;
	pid_t child = fork();

	ck_assert_int_ge(child, 0);
	if (child == 0) {
		setrlimit(RLIMIT_CORE, &none);
		signal(SIGSEGV, SIG_DFL);
		signal(SIGABRT, SIG_DFL);
		fn((volatile char *)(uintptr_t)p);
		_exit(0);
	}
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	if (!WIFSIGNALED(status))
		ck_assert_int_eq(WEXITSTATUS(status), 0);
	return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static void write_at(volatile char *p)
{
	*p = 1;
}

static void read_at(volatile char *p)
{
	(void)*p;
}

// ---- mappings of the library ----

// expect_between_guards requires that [base, base + n) lies between protected
// pages, at both of its ends.
static void expect_between_guards(const void *base, size_t n)
{
	const char *lo = base;
	const char *hi = lo + sysmem_round(n);
	size_t page = sysmem_page_size();

	ck_assert_int_eq(signal_of(write_at, lo), 0);
	ck_assert_int_eq(signal_of(write_at, lo - 1), SIGSEGV);
	ck_assert_int_eq(signal_of(read_at, lo - page), SIGSEGV);
	ck_assert_int_eq(signal_of(write_at, hi), SIGSEGV);
	ck_assert_int_eq(signal_of(read_at, hi + page - 1), SIGSEGV);
}

static void expect_table_guarded(const struct systable *t)
{
	ck_assert_uint_gt(systable_ready(t), 0);
	expect_between_guards(t->base, t->reserved);
	ck_assert_int_eq(signal_of(write_at, t->base + systable_ready(t) - 1),
			 0);
	ck_assert_int_eq(signal_of(write_at, t->base + systable_ready(t)),
			 SIGSEGV);
}

// In the first case the heap fills its range, in the second only a part of it.
static const size_t heaps[] = {64 << 20, 1 << 30};

GROUP(mappings, .timeout = 60);

TEST(every_mapping_lies_between_guards, .n = RT_ARRAY_LEN(heaps))
{
	static const rt_type y = {.struct_size = sizeof y, .size = 8};
	rt_config c = heap_config(HEAP_QUIET);
	void *root[1];

	c.max_heap = heaps[_i];
	heap_start_exact(c);
	while (arena_used() < 64 << 20)
		ck_assert_ptr_nonnull(rt_alloc_noscan_uninit(1 << 20));
	ck_assert_int_eq(rt_roots_add(root, root + 1, RT_ROOT_EXACT), RT_OK);

	expect_between_guards((void *)arena.base, arena.reserved);
	ck_assert_int_eq(signal_of(write_at, (char *)arena.base + arena_used()),
			 SIGSEGV);
	// The first typed object and the first kind with drops make a table.
	ck_assert_ptr_nonnull(rt_alloc_typed(&y, 1));
	kind_make(.layout = RT_LAYOUT_NONE, .flags = RT_KIND_DROP,
		  .drop = drop_nothing);
	for (unsigned i = 0; i < RT_ARRAY_LEN(arena.table); i++)
		expect_table_guarded(&arena.table[i]);
	expect_table_guarded(&mheap.pages.chunks);
	expect_table_guarded(&mheap.pages.scav.table);
	for (unsigned l = 0; l < PAGEALLOC_LEVELS; l++)
		expect_table_guarded(&mheap.pages.sums[l]);
}

// A region of permanent memory, from which records of spans are cut, lies
// between guards.
TEST(permanent_memory_lies_between_guards)
{
	char *p;

	sysmem_init();
	persistent_init(PERSISTENT_STEP_MIN);
	p = persistent_alloc(PERSISTENT_MAX_ALIGN, PERSISTENT_MAX_ALIGN,
			     &gauges.other_sys);
	ck_assert_ptr_nonnull(p);
	// The region has a record of its own before the first object.
	expect_between_guards(p - PERSISTENT_MAX_ALIGN, PERSISTENT_STEP_MIN);
	persistent_fini();
}

// Statistics do not include guards, only what may be used.
TEST(guards_are_in_no_statistic)
{
	rt_memstats before, after;
	void *root[1];

	heap_start_exact(heap_config(HEAP_QUIET));
	before = heap_stats();
	ck_assert_int_eq(rt_roots_add(root, root + 1, RT_ROOT_EXACT), RT_OK);
	after = heap_stats();
	ck_assert_uint_eq(after.other_sys - before.other_sys,
			  sysmem_page_size());
	ck_assert_uint_eq(after.sys - before.sys, sysmem_page_size());
	ck_assert_uint_eq(after.mcache_sys,
			  sysmem_round(sizeof(struct rt_mcache)));
}

// ---- guarded objects ----

enum { ROOTS = 64, CANARIES_BEFORE = 128 };

static void *root[ROOTS];

// start makes a heap in which every large object is guarded, and one of each
// guard_small small objects (0: none).
static void start(rt_config c, uint32_t guard_small)
{
	c.guard_large = 1;
	c.guard_small = guard_small;
	heap_start_exact(c);
	must(rt_roots_add(root, root + ROOTS, RT_ROOT_WORDS));
}

static void start_all(void)
{
	start(heap_config(HEAP_QUIET), 1);
}

static const size_t sizes[] = {
    1,	  2,	3,     8,     12,    15,    16,	   17,	   24,
    48,	  100,	512,   1024,  1025,  4096,  5000,  8191,   8192,
    8193, 9000, 32760, 32761, 40000, 65536, 65537, 100001, 1 << 20};
enum { NSIZES = RT_ARRAY_LEN(sizes) };
static const size_t page_sizes[] = {4 << 10, 16 << 10, 64 << 10};
enum { NPAGE_SIZES = RT_ARRAY_LEN(page_sizes) };

// slack returns how far behind an object its guard begins.
static size_t slack(size_t n, int kind)
{
	return n < 16 && kind == RT_NOSCAN ? 0 : -n % 16;
}

// expect_guarded requires that the object may be touched, and that a touch of
// the memory behind it faults.
static void expect_guarded(char *p, size_t n, int kind)
{
	ck_assert_ptr_nonnull(p);
	ck_assert(heap_is_zero(p, n));
	ck_assert_uint_eq(
	    (uintptr_t)p % (slack(n, kind) || n % 16 == 0 ? 16 : 1), 0);
	memset(p, 0x55, n);
	ck_assert_int_eq(signal_of(read_at, p + n + slack(n, kind) - 1), 0);
	ck_assert_int_eq(signal_of(write_at, p + n + slack(n, kind)), SIGSEGV);
	ck_assert_int_eq(signal_of(read_at, p + n + slack(n, kind)), SIGSEGV);
	ck_assert_int_eq(signal_of(write_at, p + n + 4096), SIGSEGV);
}

GROUP(objects, .timeout = 60);

// This holds for each kind, with and without a collection at each allocation,
// and for physical pages of every size.
TEST(a_write_behind_an_object_faults, .n = 2 * NPAGE_SIZES)
{
	rt_config c = heap_config(HEAP_QUIET);

	fault_set_page_size(page_sizes[_i / 2]);
	c.gcstress = _i % 2;
	start(c, 1);
	for (unsigned i = 0; i < NSIZES; i++) {
		for (int kind = RT_NOSCAN; kind <= RT_WORDS; kind++) {
			root[0] = rt_alloc_kind(kind, sizes[i]);
			expect_guarded(root[0], sizes[i], kind);
		}
		root[0] = rt_alloc_noscan_uninit(sizes[i]);
		ck_assert_int_eq(
		    signal_of(write_at, (char *)root[0] + sizes[i] + 15),
		    SIGSEGV);
	}
	heap_healthy();
}

// rt_size, rt_base and rt_is_heap answer as if a guarded object had exactly the
// requested size.
TEST(answers_end_where_the_object_does, .n = NPAGE_SIZES)
{
	fault_set_page_size(page_sizes[_i]);
	start_all();
	for (unsigned i = 0; i < NSIZES; i++) {
		size_t n = sizes[i];
		char *p = root[0] = rt_alloc(n);

		ck_assert_uint_eq(rt_size(p), n);
		ck_assert_ptr_eq(rt_base(p), p);
		ck_assert_ptr_eq(rt_base(p + n - 1), p);
		ck_assert_uint_eq(rt_size(p + n / 2), n);
		ck_assert(!rt_is_heap(p - 1));
		ck_assert(!rt_is_heap(p + n));
		ck_assert(!rt_is_heap(p + n + slack(n, RT_WORDS)));
	}
}

static size_t walked_size;
static void *walked;

static int on_walk(void *obj, size_t size, int kind, void *arg)
{
	(void)arg;
	ck_assert_int_eq(kind, RT_WORDS);
	walked = obj;
	walked_size += size;
	return 0;
}

TEST(walk_finds_the_object)
{
	start_all();
	root[0] = rt_alloc(100);
	ck_assert_int_eq(rt_stop_the_world(RT_STOP_HOST), RT_OK);
	ck_assert_int_eq(rt_heap_walk(on_walk, NULL), RT_OK);
	ck_assert_int_eq(rt_start_the_world(NULL), RT_OK);
	ck_assert_ptr_eq(walked, root[0]);
	ck_assert_uint_eq(walked_size, 100);
}

// Guarded objects in a chain live, even if the pointers of the chain lead to
// their insides.
TEST(what_they_lead_to_lives, .n = NPAGE_SIZES)
{
	unsigned i;

	fault_set_page_size(page_sizes[_i]);
	start_all();
	root[1] = NULL;
	for (i = 0; i < NSIZES; i++)
		if (sizes[i] >= 8) {
			size_t last = sizes[i] / 8 - 1;
			uintptr_t *p = rt_alloc(sizes[i]);

			p[last] = (uintptr_t)root[1];
			root[1] = (char *)p + sizes[i] / 2;
		}
	ck_assert_int_eq(rt_gc(), RT_OK);
	for (i = NSIZES; i-- > 0;)
		if (sizes[i] >= 8) {
			uintptr_t *p = rt_base(root[1]);

			ck_assert_uint_eq(rt_size(p), sizes[i]);
			root[1] = (void *)p[sizes[i] / 8 - 1];
		}
	ck_assert_ptr_null(root[1]);
	ck_assert_uint_eq(heap_live_after_gc(), 0);
	heap_healthy();
}

// Marking takes the low bits of a word for a tag, but a guarded object may
// begin at an address with such bits.
TEST(objects_at_odd_addresses_live)
{
	start_all();
	for (size_t n = 1; n <= 16; n++)
		for (size_t k = 0; k < n; k++) {
			root[0] = (char *)rt_alloc_noscan(n) + k;
			ck_assert_uint_eq(heap_live_after_gc(), 1);
			ck_assert_uint_eq(rt_size(root[0]), n);
		}
	root[0] = NULL;
	ck_assert_uint_eq(heap_live_after_gc(), 0);
}

// Words that point into an object's pages, but not into the object.
TEST(words_beside_an_object_do_not_keep_it, .n = NPAGE_SIZES)
{
	fault_set_page_size(page_sizes[_i]);
	start_all();
	for (unsigned i = 0; i < NSIZES; i++) {
		char *p = root[0] = rt_alloc(sizes[i]);
		const struct mspan *s =
		    arena_span(arena_offset((uintptr_t)p) >> RT_PAGE_SHIFT);
		uintptr_t beside[] = {s->base, s->base + 8, (uintptr_t)p - 8,
				      guard_begin(s->base, s->npages) + 8,
				      s->base + (s->npages << RT_PAGE_SHIFT) -
					  8};

		ck_assert_uint_eq(heap_live_after_gc(), 1);
		for (unsigned k = 0; k < RT_ARRAY_LEN(beside); k++)
			root[k] = beside[k] < s->base ||
					  rt_base((void *)beside[k]) == p
				      ? NULL
				      : (void *)beside[k];
		ck_assert_uint_eq(heap_live_after_gc(), 0);
		memset(root, 0, sizeof root);
	}
}

// ---- what is freed ----

TEST(freed_objects_may_not_be_touched, .n = NSIZES * NPAGE_SIZES)
{
	volatile uintptr_t hidden;
	size_t n = sizes[_i / NPAGE_SIZES];

	fault_set_page_size(page_sizes[_i % NPAGE_SIZES]);
	start_all();
	for (unsigned round = 0; round < 3; round++) {
		root[0] = rt_alloc(n);
		memset(root[0], 0x55, n);
		hidden = (uintptr_t)root[0];
		root[0] = NULL;
		ck_assert_int_eq(rt_gc(), RT_OK);
		// Pages that share a physical page with others stay as they
		// are.
		if (hidden / page_sizes[_i % NPAGE_SIZES] !=
		    (hidden + n + slack(n, RT_WORDS)) /
			page_sizes[_i % NPAGE_SIZES])
			ck_assert_int_eq(
			    signal_of(write_at, (char *)hidden + n), SIGSEGV);
		if (page_sizes[_i % NPAGE_SIZES] <= RT_PAGE_SIZE) {
			ck_assert_int_eq(signal_of(read_at, (char *)hidden),
					 SIGSEGV);
			ck_assert_int_eq(
			    signal_of(write_at, (char *)hidden + n - 1),
			    SIGSEGV);
		}
		heap_healthy();
	}
}

// use_everything uses the heap's pages for all that they can be used for, and
// touches them.
static void use_everything(void)
{
	char *stack = rt_stack_alloc(1 << 18);
	uintptr_t *p;

	ck_assert_ptr_nonnull(stack);
	memset(stack, 0x55, 1 << 18);
	for (unsigned i = 0; i < 2000; i++) {
		p = rt_alloc(16 + i % 3000);
		ck_assert(heap_is_zero(p, 16 + i % 3000));
		p[0] = (uintptr_t)root[2];
		root[2] = p;
	}
	ck_assert_int_eq(rt_gc(), RT_OK);
	heap_healthy();
	root[2] = NULL;
	ck_assert_int_eq(rt_stack_free(stack, 1 << 18), RT_OK);
}

// Pages that were protected can be used for anything again, whether they were
// released or not.
TEST(pages_of_freed_objects_are_used_again, .n = 2 * NPAGE_SIZES)
{
	fault_set_page_size(page_sizes[_i / 2]);
	start(heap_config(HEAP_QUIET), 20);
	for (unsigned round = 0; round < 5; round++) {
		uint64_t sys;

		for (unsigned i = 0; i < 2000; i++)
			ck_assert_ptr_nonnull(
			    rt_alloc(i % 10 ? i + 1 : 33000 + 100 * i));
		ck_assert_uint_gt(guard_count(), 200);
		sys = heap_stats().sys;
		ck_assert_int_eq(rt_gc(), RT_OK);
		if (_i % 2)
			ck_assert_int_eq(rt_free_os_memory(), RT_OK);
		use_everything();
		ck_assert_uint_le(heap_stats().sys, sys + (8 << 20));
	}
	ck_assert_int_eq(rt_fini(), RT_OK);
	start(heap_config(HEAP_QUIET), 0);
	ck_assert_uint_eq(guard_count(), 0);
	use_everything();
}

// ---- what was written outside ----

static char report[400];

static void on_fatal(const char *text, void *arg)
{
	(void)arg;
	fprintf(stderr, "%s\n", text);
	_exit(strstr(text, report) ? 0 : 1);
}

// The object beside which a child writes, and where it writes.
static struct {
	size_t n;
	int kind;
	ptrdiff_t at;
} stray;

static const struct {
	size_t n;
	int kind;
	ptrdiff_t at;
	const char *where; // in the report
} strays[] = {
    {40, RT_WORDS, 40, ", offset=40"},
    {40, RT_WORDS, 47, ", offset=47"},
    {40, RT_NOSCAN, -1, ", written before it by 1"},
    {1, RT_WORDS, 15, ", offset=15"},
    {3, RT_NOSCAN, -CANARIES_BEFORE, ", written before it by 128"},
    {1025, RT_NOSCAN, 1026, ", offset=1026"},
    {8191, RT_NOSCAN, 8191, ", offset=8191"},
    {40001, RT_WORDS, 40001, ", offset=40001"},
    {40001, RT_NOSCAN, -9, ", written before it by 9"},
    {100000, RT_WORDS, -16, ", written before it by 16"},
};

static void drop_stray(volatile char *p)
{
	p[stray.at] = 1;
	root[0] = NULL;
	rt_set_fatal_handler(on_fatal, NULL);
	rt_gc();
	_exit(2);
}

static void leave_stray_alone(volatile char *p)
{
	p[stray.n - 1] = 1;
	root[0] = NULL;
	ck_assert_int_eq(rt_gc(), RT_OK);
}

TEST(overwritten_canaries_are_reported, .n = RT_ARRAY_LEN(strays))
{
	struct rt_verify v;
	char *p;

	stray.n = strays[_i].n;
	stray.kind = strays[_i].kind;
	stray.at = strays[_i].at;
	start_all();
	p = root[0] = rt_alloc_kind(stray.kind, stray.n);
	snprintf(report, sizeof report,
		 "rtheap: object=%p size=%zu%s\nrtheap: fatal: guarded object "
		 "was written outside",
		 (void *)p, stray.n, strays[_i].where);
	ck_assert_int_eq(signal_of(leave_stray_alone, p), 0);
	ck_assert_int_eq(signal_of(drop_stray, p), 0);
	// While the object is not freed, rt_heap_verify finds what was written.
	ck_assert_int_eq(rt_heap_verify(&v), RT_OK);
	ck_assert_uint_eq(v.errors, 0);
	p[stray.at] = 1;
	ck_assert_int_eq(rt_heap_verify(&v), RT_OK);
	ck_assert_uint_eq(v.errors, 1);
	ck_assert_msg(strstr(v.first, "guarded object was written outside"),
		      "%s", v.first);
}

// ---- statistics ----

static rt_memstats allocate_large(uint8_t guard_large)
{
	rt_config c = heap_config(HEAP_QUIET);
	rt_memstats m;

	c.guard_large = guard_large;
	heap_start_exact(c);
	for (unsigned i = 0; i < 100; i++)
		ck_assert_ptr_nonnull(rt_alloc(33000 + 5000 * i));
	m = heap_stats();
	heap_healthy();
	ck_assert_uint_eq(heap_live_after_gc(), 0);
	heap_healthy();
	ck_assert_int_eq(rt_fini(), RT_OK);
	return m;
}

// A large object changes all statistics by the same amounts with a guard as
// without, except that its guard is one more page in use.
TEST(guards_count_as_pages_only)
{
	rt_memstats without = allocate_large(0);
	rt_memstats with = allocate_large(1);

	ck_assert_uint_eq(with.mallocs, without.mallocs);
	ck_assert_uint_eq(with.total_alloc, without.total_alloc);
	ck_assert_uint_eq(with.heap_alloc, without.heap_alloc);
	ck_assert_uint_eq(with.heap_inuse,
			  without.heap_inuse + UINT64_C(100) * RT_PAGE_SIZE);
}

// ---- samples ----

// samples returns the number of guarded objects among n.
static uint64_t samples(uint32_t one_in, unsigned n)
{
	uint64_t found;

	start(heap_config(HEAP_QUIET), one_in);
	for (unsigned i = 0; i < n; i++)
		ck_assert_ptr_nonnull(rt_alloc(32));
	found = guard_count();
	heap_healthy();
	ck_assert_int_eq(rt_fini(), RT_OK);
	return found;
}

TEST(one_in_n_small_objects_is_guarded)
{
	uint64_t some;

	ck_assert_uint_eq(samples(0, 1000), 0);
	ck_assert_uint_eq(samples(1, 1000), 1000);
	some = samples(10, 20000);
	ck_assert_uint_ge(some, 1900);
	ck_assert_uint_le(some, 2100);
	// A run can be repeated.
	ck_assert_uint_eq(samples(10, 20000), some);
	ck_assert_uint_le(samples(UINT32_MAX, 1000), 1);
}

// The numbers of allocations between two guarded objects differ, so that each
// place of a loop gets guarded objects.
TEST(every_place_of_a_loop_is_guarded)
{
	enum { PLACES = 10 };
	unsigned found[PLACES] = {0};

	start(heap_config(HEAP_QUIET), PLACES);
	for (unsigned i = 0; i < 10000; i++)
		found[i % PLACES] += rt_size(rt_alloc(20)) == 20;
	for (unsigned i = 0; i < PLACES; i++)
		ck_assert_uint_ge(found[i], 50);
}

// ---- when the system refuses ----

TEST(no_guard_is_an_object_all_the_same)
{
	char *p;

	start_all();
	fault_fail(OSCALL_UNCOMMIT, 1, UINT64_MAX, ENOMEM);
	for (unsigned i = 0; i < NSIZES; i++) {
		p = root[i] = rt_alloc(sizes[i]);
		ck_assert(heap_is_zero(p, sizes[i]));
		memset(p, 0x55, sizes[i]);
		ck_assert_uint_eq(rt_size(p), sizes[i]);
		ck_assert_int_eq(signal_of(read_at, p + sizes[i] + 15), 0);
	}
	ck_assert_uint_ge(fault_failed(OSCALL_UNCOMMIT), NSIZES);
	ck_assert_uint_eq(guard_count(), 0);
	heap_healthy();
	memset(root, 0, sizeof root);
	ck_assert_uint_eq(heap_live_after_gc(), 0);
	heap_healthy();
	// Even without a guard, the bytes behind the object are verified.
	p = root[0] = rt_alloc(40);
	fault_fail(OSCALL_UNCOMMIT, 1, 0, 0);
	stray.n = 40;
	ck_assert_int_eq(signal_of(leave_stray_alone, p), 0);
	p[40] = 1;
	stray.at = 41;
	snprintf(report, sizeof report, ", offset=40");
	ck_assert_int_eq(signal_of(drop_stray, p), 0);
}

// Freed pages that the system refuses to unprotect cannot be allocated until it
// agrees.
TEST(refused_permission_is_no_memory)
{
	rt_config c = heap_config(HEAP_QUIET);
	unsigned refused = 0;

	c.max_heap = 64 << 20;
	start(c, 1);
	for (unsigned i = 0; i < 1000; i++)
		ck_assert_ptr_nonnull(rt_alloc(20000));
	ck_assert_uint_eq(heap_live_after_gc(), 0);
	fault_fail(OSCALL_COMMIT, 1, UINT64_MAX, ENOMEM);
	for (unsigned i = 0; i < 100; i++) {
		refused += !rt_alloc(100);
		refused += !rt_alloc(40000);
		refused += !rt_stack_alloc(1 << 17);
	}
	ck_assert_uint_gt(fault_failed(OSCALL_COMMIT), 0);
	ck_assert_uint_ge(refused, 200); // pages that were never used are left
	heap_healthy();
	fault_fail(OSCALL_COMMIT, 1, 0, 0);
	for (unsigned i = 0; i < 1000; i++)
		ck_assert_ptr_nonnull(rt_alloc(20000));
	use_everything();
}

// nmaps returns the number of mappings of this process.
static unsigned nmaps(void)
{
	FILE *f = fopen("/proc/self/maps", "r");
	unsigned n = 0;
	int ch;

	ck_assert_ptr_nonnull(f);
	while ((ch = fgetc(f)) != EOF)
		n += ch == '\n';
	fclose(f);
	return n;
}

// The library does not make so many guards that the process would run out of
// mappings.
TEST(there_is_a_limit_of_guards)
{
	enum { OBJECTS = GUARD_MAX + 2000 };
	unsigned guarded = 0;

	start_all();
	for (unsigned round = 0; round < 2; round++) {
		guarded = 0;
		for (unsigned i = 0; i < OBJECTS; i++) {
			uintptr_t *p = rt_alloc(40);

			ck_assert_ptr_nonnull(p);
			p[0] = (uintptr_t)root[0];
			root[0] = p;
			guarded += rt_size(p) == 40;
		}
		ck_assert_uint_eq(guarded, OBJECTS);
		ck_assert_uint_eq(guard_count(), GUARD_MAX);
		ck_assert_uint_lt(nmaps(), 2 * GUARD_MAX + 2000);
		ck_assert_uint_eq(heap_live_after_gc(), OBJECTS);
		heap_healthy();
		root[0] = NULL;
		ck_assert_uint_eq(heap_live_after_gc(), 0);
	}
}

// An object that fits into the range only without a guard has no guard.
TEST(the_last_page_of_the_range_may_be_an_objects)
{
	rt_config c = heap_config(HEAP_QUIET);

	c.max_heap = 64 << 20;
	start(c, 1);
	root[0] = rt_alloc_noscan_uninit(64 << 20);
	ck_assert_ptr_nonnull(root[0]);
	ck_assert_uint_eq(guard_count(), 0);
	ck_assert_uint_eq(heap_live_after_gc(), 1);
	ck_assert_ptr_null(rt_alloc(16));
	heap_healthy();
	root[0] = NULL;
	ck_assert_uint_eq(heap_live_after_gc(), 0);
	ck_assert_ptr_nonnull(rt_alloc(16));
}

// A request beyond the range is refused, though room for a guard is added to
// its size.
TEST(sizes_beyond_the_range_are_refused, .n = NPAGE_SIZES)
{
	static const size_t beyond[] = {
	    ((size_t)64 << 20) + 1,
	    (size_t)1 << 40,
	    (size_t)1 << 47,
	    PTRDIFF_MAX - 8191,
	    PTRDIFF_MAX,
	    (size_t)1 << 63,
	    SIZE_MAX - 131071,
	    SIZE_MAX - 2 * 8192,
	    SIZE_MAX - 8191,
	    SIZE_MAX - 15,
	    SIZE_MAX,
	};
	rt_config c = heap_config(HEAP_QUIET);
	uint64_t sys;

	fault_set_page_size(page_sizes[_i]);
	c.max_heap = 64 << 20;
	start(c, 1);
	sys = heap_stats().sys;
	for (unsigned i = 0; i < RT_ARRAY_LEN(beyond); i++) {
		ck_assert_ptr_null(rt_alloc(beyond[i]));
		ck_assert_ptr_null(rt_alloc_noscan(beyond[i]));
		ck_assert_ptr_null(rt_alloc_noscan_uninit(beyond[i]));
	}
	ck_assert_uint_eq(heap_stats().sys, sys);
	ck_assert_uint_eq(heap_live(), 0);
}

// A guarded object that its thread is still clearing is kept by its own
// address: the first bytes of its span hold no object.
TEST(an_object_that_is_being_made_is_kept, .n = 2)
{
	rt_config c = heap_config(HEAP_QUIET);
	struct mspan *s;
	void *obj;

	c.guard_large = 1;
	c.align8 = (uint8_t)_i;
	c.no_attach = 1;
	ck_assert_int_eq(rt_init(&c), RT_OK);
	ck_assert_int_eq(rt_thread_attach(RT_THREAD_EXACT), RT_OK);
	s = refill_guarded(rt_thread_tls->mc, proc_self(), KIND_NOSCAN, 100000);
	ck_assert_ptr_nonnull(s);
	obj = (void *)mspan_object(s, 0);
	ck_assert_uint_ge((uintptr_t)obj, s->base + sizeof(uintptr_t));
	rt_thread_tls->mc->setting_up = s;
	ck_assert_int_eq(rt_gc(), RT_OK);
	ck_assert_uint_eq(heap_stats().heap_objects, 1);
	mheap_publish_large(s);
	rt_thread_tls->mc->setting_up = NULL;
	ck_assert_ptr_eq(rt_base(obj), obj);
	ck_assert_int_eq(rt_gc(), RT_OK);
	ck_assert_uint_eq(heap_stats().heap_objects, 0);
}
