// What every field of rt_config does to a heap, seen through the public
// interface: one table of field, value and effect.  A second table says where
// the effects of the other fields are tested, or that they have none.
#define _GNU_SOURCE 1

#include <rt/rt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "gc/cycle/scavenger.h"
#include "runtime/world/heapgauge.h"
#include "runtime/os/nanotime.h"
#include "runtime/world/proc.h"
#include "runtime/os/throw.h"
#include "test/harness/await.h"
#include "test/harness/death.h"
#include "test/harness/heap.h"

enum { MIB = 1 << 20 };

static uintptr_t root[1];
static uint64_t began; // nanotime before rt_init
static uint64_t ready; // and after it

// ---- effects ----

// Each function returns the value that a row compares with its seen.

static uint64_t fits_100_mib(void)
{
	return rt_alloc_noscan_uninit(100 * MIB) != NULL;
}

// The goal in MiB, rounded down, while objects of 2 MiB are alive.
static uint64_t goal(void)
{
	root[0] = (uintptr_t)rt_alloc_noscan(2 * MIB);
	ck_assert_int_eq(rt_roots_add(root, root + 1, RT_ROOT_WORDS), RT_OK);
	ck_assert_int_eq(rt_gc(), RT_OK);
	return heap_stats().next_gc / MIB;
}

static uint64_t memory_limit(void)
{
	return heap_metric("/gc/gomemlimit:bytes");
}

static uint64_t percent(void)
{
	return heap_metric("/gc/gogc:percent");
}

static uint64_t processors(void)
{
	return heap_metric("/sched/gomaxprocs:threads");
}

static uint64_t wanted; // of the row

// Each second the CPU accounts grow by as many seconds as there are processors,
// even without a collection.  The time of the heap is known within two bounds.
static uint64_t processors_accounted(void)
{
	double longest, shortest, total;

	while (nanotime() < ready + 1000000)
		;
	shortest = (double)(nanotime() - ready) / 1e9;
	total = heap_seconds("/cpu/classes/total:cpu-seconds");
	longest = (double)(nanotime() - began) / 1e9;
	return total >= (double)wanted * shortest &&
		       total <= (double)wanted * longest
		   ? wanted
		   : 0;
}

static unsigned nreports;

static void count_report(const char *text, void *arg)
{
	(void)text;
	(void)arg;
	nreports++;
}

// A gauge that is wrong by a page is reported.
static uint64_t contradictions_reported(void)
{
	rt_memstats m;

	ck_assert_int_eq(rt_set_warn_handler(count_report, NULL), RT_OK);
	heapgauge_add(proc_self(), HEAPGAUGE_IN_USE, RT_PAGE_SIZE);
	ck_assert_int_eq(rt_read_memstats(&m), RT_OK);
	heapgauge_add(proc_self(), HEAPGAUGE_IN_USE, -RT_PAGE_SIZE);
	return nreports != 0;
}

// attach_anew attaches the calling thread again.  Its stack is then a root,
// unless flags is RT_THREAD_EXACT.
static void attach_anew(unsigned flags)
{
	ck_assert_int_eq(rt_thread_detach(), RT_OK);
	ck_assert_int_eq(rt_thread_attach(flags), RT_OK);
}

// Tells whether words that equal only the ends of objects keep some of them.
static uint64_t kept_by_their_ends(void)
{
	volatile uintptr_t ends[64];

	attach_anew(0);
	for (unsigned i = 0; i < RT_ARRAY_LEN(ends); i++)
		ends[i] = (uintptr_t)rt_alloc(4096) + 4096;
	ck_assert_int_eq(rt_gc(), RT_OK);
	ck_assert_uint_ne(ends[0], 0);
	return heap_metric("/gc/scan/past-end:objects") != 0;
}

static uint64_t size_of_17(void)
{
	return rt_good_size(17);
}

static uint64_t is_attached(void)
{
	uint64_t attached = rt_thread_self() != NULL;

	// rt_fini at the end of the test needs an attached thread.
	if (!attached)
		ck_assert_int_eq(rt_thread_attach(RT_THREAD_EXACT), RT_OK);
	return attached;
}

// advised_mappings returns how many mappings of this process were advised to
// use huge pages.
static unsigned advised_mappings(void)
{
	static char line[1024];
	unsigned n = 0;
	FILE *f = fopen("/proc/self/smaps", "r");

	ck_assert_ptr_nonnull(f);
	while (fgets(line, sizeof line, f))
		if (strncmp(line, "VmFlags:", 8) == 0 && strstr(line, " hg"))
			n++;
	fclose(f);
	return n;
}

// Huge pages are wanted for a large object.  The heap advises them after the
// collection, perhaps on a helper.  So a row that expects them waits.
static uint64_t huge_pages_advised(void)
{
	uint64_t end = nanotime() + AWAIT_SECONDS * UINT64_C(1000000000);

	ck_assert_int_eq(rt_roots_add(root, root + 1, RT_ROOT_WORDS), RT_OK);
	root[0] = (uintptr_t)rt_alloc(64 * MIB);
	ck_assert_uint_ne(root[0], 0);
	memset((void *)root[0], 0, 64 * MIB);
	ck_assert_int_eq(rt_gc(), RT_OK);
	while (advised_mappings() < wanted && nanotime() < end)
		sleep_ns(1000000);
	return advised_mappings() != 0;
}

// lacks returns why this system cannot show the effect of a row, or NULL if it
// can.
static const char *lacks(const char *row)
{
	size_t n = 4 << 20;
	void *p = mmap(NULL, n, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const char *what = NULL;

	ck_assert_ptr_ne(p, MAP_FAILED);
	if (strcmp(row, "huge_pages = 1") == 0 &&
	    madvise(p, n, MADV_HUGEPAGE) != 0)
		what = "this kernel has no huge pages";
	if (strncmp(row, "populate = ", 11) == 0 && row[11] != '0' &&
	    oscall_populate(p, n) != 0)
		what = "this kernel does not populate pages";
	ck_assert_int_eq(munmap(p, n), 0);
	return what;
}

// Tells whether some fresh objects are in memory though nothing has touched
// them.
static uint64_t brought_in_ahead(void)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < 512; i++) {
		char *p = rt_alloc_noscan_uninit(8192);
		unsigned char resident[2];

		ck_assert_ptr_nonnull(p);
		ck_assert_int_eq(mincore(p, 8192, resident), 0);
		n += resident[0] & 1;
	}
	return n != 0;
}

// A large heap has a background thread if the thread is to bring in memory.
static uint64_t library_has_a_thread(void)
{
	ck_assert_ptr_nonnull(rt_alloc_noscan_uninit((size_t)40 << 20));
	return atomic_u32_load_relaxed(&scavenger.runs);
}

// Tells whether a dead object reads as the pattern of clobberfree.
static uint64_t freed_is_overwritten(void)
{
	uint64_t *p, old;

	attach_anew(RT_THREAD_EXACT);
	p = rt_alloc(1024);
	*p = 1;
	root[0] = (uintptr_t)p;
	ck_assert_int_eq(rt_roots_add(root, root + 1, RT_ROOT_WORDS), RT_OK);
	// A neighbour keeps the page.
	root[0] = (uintptr_t)rt_alloc(1024);
	ck_assert_int_eq(rt_gc(), RT_OK);
	memcpy(&old, p, sizeof old);
	return old == UINT64_C(0xdeadbeefdeadbeef);
}

static uint64_t collections_of_10_objects(void)
{
	uint64_t before = heap_stats().num_gc;

	for (unsigned i = 0; i < 10; i++)
		ck_assert_ptr_nonnull(rt_alloc(32));
	return heap_stats().num_gc - before;
}

static uint64_t size_of_40001(void)
{
	return rt_size(rt_alloc(40001));
}

static uint64_t size_of_100(void)
{
	return rt_size(rt_alloc(100));
}

static void forget(rt_tracer *t, void *obj, size_t size, void *arg)
{
	(void)t, (void)obj, (void)size, (void)arg;
}

// The number of warnings about a word that no callback tells of.
static uint64_t forgotten_named(void)
{
	rt_kind_desc d;
	uintptr_t *p;

	attach_anew(RT_THREAD_EXACT);
	rt_kind_desc_init(&d);
	d.layout = RT_LAYOUT_TRACE;
	d.trace = forget;
	p = rt_alloc_kind(rt_kind_register(&d), 32);
	p[1] = (uintptr_t)rt_alloc(32);
	root[0] = (uintptr_t)p;
	ck_assert_int_eq(rt_roots_add(root, root + 1, RT_ROOT_EXACT), RT_OK);
	ck_assert_int_eq(rt_set_warn_handler(count_report, NULL), RT_OK);
	ck_assert_int_eq(rt_gc(), RT_OK);
	return nreports;
}

// ---- the table ----

static const struct row {
	const char *name; // the field and its value
	rt_config set;	  // other fields are 0, and taken from the defaults
	uint64_t (*effect)(void);
	uint64_t seen;
} rows[] = {
#define ROW(field, value, effect, seen)                                        \
	{                                                                      \
#field " = " #value, {.field = (value) }, effect, seen         \
	}
    ROW(max_heap, 64 * MIB, fits_100_mib, 0),
    ROW(max_heap, 256 * MIB, fits_100_mib, 1),
    ROW(heap_min, 64 * MIB, goal, 64),
    ROW(heap_min, 32 * MIB, goal, 32),
    ROW(heap_headroom, 0, goal, 4),
    ROW(heap_headroom, 16 * MIB, goal, 18),
    ROW(memory_limit, INT64_C(1) << 33, memory_limit, UINT64_C(1) << 33),
    ROW(memory_limit, INT64_MAX, memory_limit, INT64_MAX),
    ROW(gc_percent, 50, percent, 50),
    ROW(gc_percent, 200, percent, 200),
    ROW(max_procs, 3, processors, 3),
    ROW(max_procs, 7, processors, 7),
    ROW(max_procs, 3, processors_accounted, 3),
    ROW(max_procs, 3000, processors_accounted, 3000),
    ROW(double_check, RT_CHECK_OFF, contradictions_reported, 0),
    ROW(double_check, RT_CHECK_REPORT, contradictions_reported, 1),
    ROW(past_end, 0, kept_by_their_ends, 0),
    ROW(past_end, 1, kept_by_their_ends, 1),
    ROW(align8, 0, size_of_17, 32),
    ROW(align8, 1, size_of_17, 24),
    ROW(no_attach, 0, is_attached, 1),
    ROW(no_attach, 1, is_attached, 0),
    ROW(huge_pages, 0, huge_pages_advised, 0),
    ROW(huge_pages, 1, huge_pages_advised, 1),
    ROW(populate, 0, brought_in_ahead, 0),
    ROW(populate, 1, brought_in_ahead, 1),
    ROW(populate, 2, brought_in_ahead, 1),
    ROW(populate, 1, library_has_a_thread, 0),
    ROW(populate, 2, library_has_a_thread, 1),
    ROW(clobberfree, 0, freed_is_overwritten, 0),
    ROW(clobberfree, 1, freed_is_overwritten, 1),
    ROW(gcstress, 0, collections_of_10_objects, 0),
    ROW(gcstress, 1, collections_of_10_objects, 10),
    ROW(gcstress, 5, collections_of_10_objects, 2),
    ROW(guard_large, 0, size_of_40001, 40960),
    ROW(guard_large, 1, size_of_40001, 40001),
    ROW(guard_small, 0, size_of_100, 112),
    ROW(guard_small, 1, size_of_100, 100),
    ROW(tracecheck, 0, forgotten_named, 0),
    ROW(tracecheck, 1, forgotten_named, 1),
};

// The fields without rows.
static const struct elsewhere {
	size_t base, limit; // offsets in rt_config
	const char *why;
} elsewhere[] = {
#define ELSEWHERE(field, why)                                                  \
	{                                                                      \
		offsetof(rt_config, field),                                    \
		    offsetof(rt_config, field) +                               \
			sizeof((rt_config *)NULL)->field,                      \
		    why                                                        \
	}
    ELSEWHERE(struct_size, "it is about the struct; check_config"),
    ELSEWHERE(gc_threads, "the effect is threads with a name; check_mark"),
    ELSEWHERE(stop_signal, "without effect in this version"),
    ELSEWHERE(stop_grace_us, "without effect in this version"),
    ELSEWHERE(concurrent, "only 0 in this version; check_config"),
    ELSEWHERE(checkmark, "it ends the process; check_debug"),
    ELSEWHERE(poison, "needs a sanitizer or memcheck; check_poison"),
    ELSEWHERE(gc_cpu_limit, "check_memory_limit"),
    ELSEWHERE(gctrace, "check_gctrace"),
    ELSEWHERE(scavtrace, "check_gctrace"),
    ELSEWHERE(gcpacertrace, "check_gctrace"),
    ELSEWHERE(scavenge, "check_scavenger"),
    ELSEWHERE(idle_s, "check_scavenger"),
    ELSEWHERE(sweep, "check_swept"),
    ELSEWHERE(gc_period_s, "check_scavenger"),
    ELSEWHERE(cgroup, "check_cgroup; needs a container with a limit"),
    ELSEWHERE(spare, "only 0; check_config"),
    ELSEWHERE(gc_affinity, "check_libthreads"),
    ELSEWHERE(gc_affinity_size, "check_libthreads"),
    ELSEWHERE(gc_thread_start, "check_libthreads"),
    ELSEWHERE(gc_thread_arg, "check_libthreads"),
    ELSEWHERE(stack_format, "needs values on a stack; check_root_formats"),
};

// configure copies the one field that a row names.
static void configure(rt_config *c, const struct row *r)
{
#define COPY(field)                                                            \
	if (strncmp(r->name, #field " ", sizeof #field) == 0)                  \
	c->field = r->set.field
	COPY(max_heap);
	COPY(heap_min);
	COPY(heap_headroom);
	COPY(memory_limit);
	COPY(gc_percent);
	COPY(max_procs);
	COPY(double_check);
	COPY(past_end);
	COPY(align8);
	COPY(no_attach);
	COPY(huge_pages);
	COPY(populate);
	COPY(clobberfree);
	COPY(gcstress);
	COPY(guard_large);
	COPY(guard_small);
	COPY(tracecheck);
}

// Every byte of a configuration is in a field that a row sets, or that has no
// row for a reason.
TEST(every_field_has_a_row_or_a_reason)
{
	unsigned char covered[sizeof(rt_config)] = {0};
	rt_config c;

	for (unsigned i = 0; i < RT_ARRAY_LEN(rows); i++) {
		const unsigned char *set = (const unsigned char *)&c;

		memset(&c, 0xa5, sizeof c);
		configure(&c, &rows[i]);
		for (size_t k = 0; k < sizeof c; k++)
			covered[k] |= set[k] != 0xa5;
	}
	for (unsigned i = 0; i < RT_ARRAY_LEN(elsewhere); i++)
		memset(&covered[elsewhere[i].base], 1,
		       elsewhere[i].limit - elsewhere[i].base);
	for (size_t k = 0; k < sizeof c; k++)
		ck_assert_msg(covered[k], "no row sets byte %zu of rt_config",
			      k);
}

TEST(field_has_its_effect, .n = RT_ARRAY_LEN(rows))
{
	const struct row *r = &rows[_i];
	const char *lacking = lacks(r->name);
	rt_config c;
	uint64_t seen;

	if (lacking) {
		suite_skip(lacking, NULL);
		return;
	}
	rt_config_init(&c);
	c.scavenge = 0;
	c.gc_period_s = 0;
	c.sweep = 0;
	// Headroom is up to eight times what lives.  So garbage that a word of
	// the stack keeps would move the goal far.
	c.heap_headroom = 0;
	configure(&c, r);
	began = nanotime();
	ck_assert_int_eq(rt_init(&c), RT_OK);
	ready = nanotime();
	wanted = r->seen;
	seen = r->effect();
	ck_assert_msg(seen == r->seen, "%s: %llu, not %llu", r->name,
		      (unsigned long long)seen, (unsigned long long)r->seen);
	ck_assert_int_eq(rt_fini(), RT_OK);
}

// A signal that comes after an allocation finds the thread outside it.
TEST(slow_path_ends_the_inline_allocation)
{
	rt_thread *t;

	ck_assert_int_eq(rt_init(NULL), RT_OK);
	t = rt_thread_self();
	for (size_t n = 16; n <= 4096; n *= 2) {
		t->nostop = 1;
		ck_assert_ptr_nonnull(rt_alloc_slow_(t, RT_WORDS, n));
		ck_assert_uint_eq(t->nostop, 0);
	}
	ck_assert_int_eq(rt_fini(), RT_OK);
}

// Only rt_config_from_env reads the environment.
TEST(init_reads_no_environment)
{
	ck_assert_int_eq(setenv("RTGC", "7", 1), 0);
	ck_assert_int_eq(setenv("RTMEMLIMIT", "77MiB", 1), 0);
	ck_assert_int_eq(
	    setenv("RTDEBUG", "gcstress=1,align8=1,gc_threads=0", 1), 0);
	ck_assert_int_eq(rt_init(NULL), RT_OK);
	ck_assert_uint_eq(percent(), 100);
	ck_assert_uint_eq(memory_limit(), INT64_MAX);
	ck_assert_uint_eq(size_of_17(), 32);
	ck_assert_uint_eq(collections_of_10_objects(), 0);
	ck_assert_int_eq(rt_fini(), RT_OK);
}

static unsigned ncalls[2];

static int count_oom(size_t n, void *arg)
{
	(void)n;
	++*(unsigned *)arg;
	return 0;
}

// run_out keeps an object of 40 MiB.  The range of 64 MiB has no room for
// another one.
static void run_out(void)
{
	void *most = rt_alloc_noscan_uninit(40 * MIB);

	ck_assert_ptr_nonnull(most);
	ck_assert_ptr_null(rt_alloc_noscan_uninit(40 * MIB));
	rt_keep_alive(most);
}

// ---- handlers ----

static void end_as_expected(const char *text, void *arg)
{
	(void)arg;
	_exit(strcmp(text, "rtheap: fatal: on purpose") == 0 ? DEATH_EXPECTED
							     : EXIT_FAILURE);
}

TEST(a_fatal_handler_outlives_a_heap, .n = 2, .exit = DEATH_EXPECTED)
{
	ck_assert_int_eq(rt_init(NULL), RT_OK);
	ck_assert_int_eq(rt_set_fatal_handler(end_as_expected, NULL), RT_OK);
	ck_assert_int_eq(rt_fini(), RT_OK);
	if (_i == 1)
		ck_assert_int_eq(rt_init(NULL), RT_OK);
	throw_fatal("on purpose");
}

// Handlers belong to the process: the next heap has them, too.
TEST(handlers_outlive_a_heap)
{
	rt_config c;

	rt_config_init(&c);
	c.max_heap = 64 * MIB;
	c.double_check = RT_CHECK_REPORT;
	ck_assert_int_eq(rt_set_oom_handler(count_oom, &ncalls[0]), RT_OK);
	ck_assert_int_eq(rt_set_warn_handler(count_report, NULL), RT_OK);
	for (unsigned heap = 1; heap <= 2; heap++) {
		ck_assert_int_eq(rt_init(&c), RT_OK);
		run_out();
		ck_assert_uint_eq(ncalls[0], heap);
		heapgauge_add(proc_self(), HEAPGAUGE_IN_USE, RT_PAGE_SIZE);
		heap_stats();
		heapgauge_add(proc_self(), HEAPGAUGE_IN_USE, -RT_PAGE_SIZE);
		ck_assert_uint_eq(nreports, heap);
		ck_assert_int_eq(rt_fini(), RT_OK);
	}
}

static int replace_and_go_on(size_t n, void *arg)
{
	(void)n;
	++*(unsigned *)arg;
	ck_assert_int_eq(rt_set_oom_handler(count_oom, &ncalls[1]), RT_OK);
	return 1;
}

// If a handler replaces itself while it runs, and asks for another try, the new
// one is asked next.
TEST(a_handler_may_be_replaced_while_it_is_called)
{
	rt_config c;

	rt_config_init(&c);
	c.max_heap = 64 * MIB;
	must(rt_set_oom_handler(replace_and_go_on, &ncalls[0]));
	ck_assert_int_eq(rt_init(&c), RT_OK);
	run_out();
	ck_assert_uint_eq(ncalls[0], 1);
	ck_assert_uint_eq(ncalls[1], 1);
	ck_assert_int_eq(rt_fini(), RT_OK);
}

static void replace_and_report(const char *text, void *arg)
{
	ck_assert_ptr_nonnull(text);
	++*(unsigned *)arg;
	ck_assert_int_eq(rt_set_warn_handler(count_report, NULL), RT_OK);
	ck_assert_uint_eq(contradictions_reported(), 1);
}

// If a handler replaces itself and then causes the next report, the new handler
// gets that report before the old one returns.
TEST(a_warning_may_replace_its_handler)
{
	rt_config c;

	rt_config_init(&c);
	c.double_check = RT_CHECK_REPORT;
	must(rt_set_warn_handler(replace_and_report, &ncalls[0]));
	ck_assert_int_eq(rt_init(&c), RT_OK);
	heapgauge_add(proc_self(), HEAPGAUGE_IN_USE, RT_PAGE_SIZE);
	heap_stats();
	heapgauge_add(proc_self(), HEAPGAUGE_IN_USE, -RT_PAGE_SIZE);
	ck_assert_uint_eq(ncalls[0], 1);
	ck_assert_uint_eq(nreports, 1);
	ck_assert_int_eq(rt_fini(), RT_OK);
}
