// The range of the heap, its tables, and pagewords.
#define RT_NO_INLINE_ALLOC
#include <errno.h>
#include <fcntl.h>
#include <rt/rt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "runtime/spans/mheap.h"
#include "runtime/os/oscall.h"
#include "runtime/os/settings.h"
#include "test/harness/fault.h"
#include "test/harness/heap.h"

#define LARGEST_RANGE (UINT64_C(1) << 40)
#define DEFAULT_RANGE (RT_ASAN || RT_TSAN ? UINT64_C(1) << 34 : LARGEST_RANGE)

// range_of makes an empty heap.  Returns false if that is refused.
static bool range_of(uint64_t max_heap)
{
	settings_present.max_heap = max_heap;
	return arena_init();
}

// grow makes the heap nchunks chunks long.  It returns false if that is
// refused.
static bool grow(uint32_t nchunks)
{
	if (!arena_prepare(nchunks))
		return false;
	arena_grow(nchunks);
	return true;
}

// ---- what the process has mapped ----

struct maps {
	size_t n;
	char text[256 << 10];
};
static struct maps before, after;

static void maps_read(struct maps *m)
{
	int fd = open("/proc/self/maps", O_RDONLY);
	ssize_t n;

	ck_assert_int_ge(fd, 0);
	m->n = 0;
	while ((n = read(fd, m->text + m->n, sizeof m->text - m->n)) > 0)
		m->n += (size_t)n;
	close(fd);
	ck_assert_int_eq(n, 0);
	ck_assert_uint_lt(m->n, sizeof m->text);
}

// expect_maps_as_before requires that nothing was left mapped and nothing was
// unmapped.  A sanitizer maps memory of its own at any time.
static void expect_maps_as_before(void)
{
	if (RT_ASAN || RT_TSAN)
		return;
	maps_read(&after);
	ck_assert_uint_eq(after.n, before.n);
	ck_assert_mem_eq(after.text, before.text, before.n);
}

// begin first uses everything that makes mappings of its own at its first use,
// then reads the maps.
static void begin(void)
{
	sysmem_init();
	fault_fail(OSCALL_RESERVE, 1, 0, 0);
	maps_read(&before);
	maps_read(&before);
}

static void expect_nothing(void)
{
	static const struct arena none;

	expect_maps_as_before();
	ck_assert_mem_eq(&arena, &none, sizeof none);
	ck_assert_uint_eq(gauge_load(&gauges.mapped_ready), 0);
	ck_assert_uint_eq(gauge_load(&gauges.gc_misc_sys), 0);
	ck_assert_uint_eq(gauge_load(&gauges.heap_mapped), 0);
}

// ---- the pageword ----

GROUP(arena, .timeout = 60);

TEST(a_page_word_gives_back_what_was_put_in)
{
	static const uint64_t places[] = {
	    0,
	    1,
	    9,
	    4711,
	    PAGEWORD_PLACE_MAX - 1,
	    PAGEWORD_PLACE_MAX,
	    PAGEWORD_PLACE_MAX + UINT64_C(1),
	    UINT64_C(1) << 32,
	    (UINT64_C(1) << 32) + 1,
	    UINT64_MAX,
	};

	for (unsigned c = 0; c < SIZECLASS_COUNT; c++)
		for (unsigned kind = 0; kind < 1 << PAGEWORD_KIND_BITS; kind++)
			for (unsigned i = 0; i < RT_ARRAY_LEN(places) * 4;
			     i++) {
				uint64_t place = places[i / 4];
				enum pageword_state state = i % 4;
				uint32_t w = pageword_at(
				    pageword_make(c, kind, state), place);

				if (pageword_class(w) != c ||
				    pageword_kind(w) != kind ||
				    pageword_state(w) != state ||
				    pageword_place(w) !=
					base_min(place, PAGEWORD_PLACE_MAX))
					ck_abort_msg("class %u kind %u %u", c,
						     kind, i);
			}
}

// A span of more than 1 GiB: no pageword can hold the place of its last pages.
enum { HUGE_FIRST = 3, HUGE_PAGES = PAGEWORD_PLACE_MAX + 1000 };

static bool huge_is(struct mspan *s, enum pageword_state state)
{
	for (uint64_t i = 0; i < HUGE_PAGES; i++) {
		uint32_t pageword = arena_pageword(HUGE_FIRST + i);

		if (arena_span(HUGE_FIRST + i) != s ||
		    pageword_state(pageword) != state ||
		    (s && pageword_place(pageword) !=
			      base_min(i, PAGEWORD_PLACE_MAX)) ||
		    (!s && pageword != 0))
			return false;
	}
	return true;
}

TEST(places_saturate_in_a_span_above_1_gib)
{
	static struct mspan s;
	uint32_t nchunks = (HUGE_FIRST + HUGE_PAGES) / RT_CHUNK_PAGES + 1;

	begin();
	ck_assert(range_of(UINT64_C(2) << 30));
	if (!grow(nchunks)) {
		suite_skip("the system has no room for it", NULL);
		return;
	}
	arena_publish(HUGE_FIRST, HUGE_PAGES, &s, 0, KIND_WORDS,
		      PAGEWORD_SETTING_UP);
	ck_assert(huge_is(&s, PAGEWORD_SETTING_UP));
	arena_set_state(HUGE_FIRST, HUGE_PAGES, PAGEWORD_HEAP);
	ck_assert(huge_is(&s, PAGEWORD_HEAP));
	ck_assert_uint_eq(pageword_kind(arena_pageword(HUGE_FIRST)),
			  KIND_WORDS);
	ck_assert_uint_eq(arena_pageword(HUGE_FIRST - 1), 0);
	ck_assert_uint_eq(arena_pageword(HUGE_FIRST + HUGE_PAGES), 0);
	arena_withdraw(HUGE_FIRST, HUGE_PAGES);
	ck_assert(huge_is(NULL, PAGEWORD_NONE));
	arena_fini();
}

static uintptr_t root[1];

// A pointer near the end of an object above 1 GiB, where places are saturated,
// leads to the object and keeps it alive.
TEST(the_last_byte_of_1_gib_leads_to_its_object)
{
	size_t n = ((size_t)HUGE_PAGES << RT_PAGE_SHIFT) - 77;
	rt_config c = heap_config(HEAP_QUIET);
	rt_memstats m;
	char *p;

	c.max_heap = UINT64_C(2) << 30;
	heap_start_exact(c);
	p = rt_alloc_noscan_uninit(n);
	if (!p) {
		suite_skip("the system has no room for it", NULL);
		return;
	}
	ck_assert_ptr_eq(rt_base(p + n - 1), p);
	ck_assert_ptr_null(rt_base(p + n));
	ck_assert_int_eq(rt_roots_add(root, root + 1, RT_ROOT_WORDS), RT_OK);
	root[0] = (uintptr_t)(p + n - 1);
	ck_assert_int_eq(rt_gc(), RT_OK);
	m = heap_stats();
	ck_assert_uint_ge(m.heap_alloc, n);
	ck_assert_uint_eq(m.frees, 0);
	root[0] += 8; // behind it, whatever the low bits
	ck_assert_int_eq(rt_gc(), RT_OK);
	m = heap_stats();
	ck_assert_uint_eq(m.heap_alloc, 0);
	ck_assert_uint_eq(m.frees, 1);
	ck_assert_ptr_null(rt_base(p));
}

// ---- the range ----

static void expect_range(uint64_t bytes)
{
	ck_assert_uint_eq(arena.reserved, bytes);
	ck_assert_uint_eq(arena.base % RT_ARENA_SIZE, 0);
	ck_assert_uint_eq(arena_used(), 0);
	ck_assert_uint_eq(gauge_load(&gauges.mapped_ready), 0);
}

TEST(the_range_is_whole_arenas_between_its_bounds)
{
	static const struct {
		uint64_t asked, given;
	} t[] = {
	    {0, DEFAULT_RANGE},
	    {1, RT_ARENA_SIZE},
	    {RT_ARENA_SIZE - 1, RT_ARENA_SIZE},
	    {RT_ARENA_SIZE, RT_ARENA_SIZE},
	    {2 * RT_ARENA_SIZE - 1, RT_ARENA_SIZE},
	    {5 * (uint64_t)RT_ARENA_SIZE + 1, 5 * (uint64_t)RT_ARENA_SIZE},
	    {UINT64_C(1) << 34, UINT64_C(1) << 34},
	};

	begin();
	for (unsigned i = 0; i < RT_ARRAY_LEN(t); i++) {
		ck_assert(range_of(t[i].asked));
		expect_range(t[i].given);
		arena_fini();
		expect_nothing();
	}
}

TEST(no_range_is_larger_than_1_tib)
{
	begin();
	if (RT_ASAN || RT_TSAN) {
		suite_skip("the sanitizer's mappings leave no room", NULL);
		return;
	}
	ck_assert(range_of(UINT64_MAX));
	expect_range(LARGEST_RANGE);
	arena_fini();
	expect_nothing();
}

// Instead of 5 arenas the range has 2, and then 1, as the system refuses again
// and again.  After three refusals there is none.
TEST(a_refused_range_is_halved_down_to_one_arena, .n = 4)
{
	static const unsigned arenas[] = {5, 2, 1, 0};
	unsigned refusals = (unsigned)_i;

	begin();
	fault_fail(OSCALL_RESERVE, 1, refusals, ENOMEM);
	ck_assert_int_eq(range_of(5 * (uint64_t)RT_ARENA_SIZE),
			 arenas[refusals] != 0);
	ck_assert_uint_eq(fault_failed(OSCALL_RESERVE), refusals);
	if (arenas[refusals] != 0) {
		expect_range(arenas[refusals] * (uint64_t)RT_ARENA_SIZE);
		arena_fini();
	}
	expect_nothing();
}

// reserve_calls returns the number of reservations that a successful arena_init
// makes.
static uint64_t reserve_calls(void)
{
	uint64_t n;

	fault_fail(OSCALL_RESERVE, 1, 0, 0);
	ck_assert(range_of(RT_ARENA_SIZE));
	n = fault_count(OSCALL_RESERVE);
	arena_fini();
	return n;
}

TEST(a_refusal_at_any_step_leaves_nothing_mapped)
{
	uint64_t ncalls;

	begin();
	ncalls = reserve_calls();
	ck_assert_uint_ge(ncalls, 5); // the heap and four tables
	for (uint64_t nth = 1; nth <= ncalls; nth++) {
		fault_fail(OSCALL_RESERVE, nth, UINT64_MAX, ENOMEM);
		ck_assert(!range_of(RT_ARENA_SIZE));
		ck_assert_uint_ge(fault_failed(OSCALL_RESERVE), 1);
		expect_nothing();
		// If only one call is refused, the next smaller range is
		// granted.
		fault_fail(OSCALL_RESERVE, nth, 1, ENOMEM);
		ck_assert(range_of(4 * (uint64_t)RT_ARENA_SIZE));
		expect_range(2 * (uint64_t)RT_ARENA_SIZE);
		arena_fini();
		expect_nothing();
	}
}

// address_space returns the number of bytes that the process has mapped.
static uint64_t address_space(void)
{
	char buf[64] = "";
	int fd = open("/proc/self/statm", O_RDONLY);

	ck_assert_int_gt(read(fd, buf, sizeof buf - 1), 0);
	close(fd);
	return strtoull(buf, NULL, 10) * oscall_page_size();
}

static void limit_address_space(uint64_t bytes)
{
	struct rlimit limit = {bytes, bytes};

	ck_assert_int_eq(setrlimit(RLIMIT_AS, &limit), 0);
	ck_assert_uint_eq(oscall_address_limit(), limit.rlim_cur);
}

// The sanitizers have taken the address space already.
TEST(the_range_is_at_most_half_of_the_address_limit, .n = 2,
     .unless = SUITE_SANITIZED)
{
	uint64_t arenas = address_space() / RT_ARENA_SIZE + 16;
	// First no maximum, then one that would fit but is more than half.
	uint64_t max_heap = _i == 0 ? 0 : 3 * arenas / 4 * RT_ARENA_SIZE;

	begin();
	limit_address_space(arenas * RT_ARENA_SIZE + (60 << 20));
	ck_assert(range_of(max_heap));
	ck_assert_uint_eq(arena.reserved, arenas / 2 * RT_ARENA_SIZE);
	ck_assert(grow(1));
	arena_fini();
	expect_maps_as_before();
}

// First there is room for the range itself but not for its tables, then not
// even for the range.
//
// The sanitizers have taken the address space already.
TEST(a_limit_that_is_too_low_is_a_refusal, .n = 2, .unless = SUITE_SANITIZED)
{
	begin();
	limit_address_space(address_space() +
			    (_i == 0 ? RT_ARENA_SIZE + (64 << 10) : 1 << 20));
	ck_assert(!range_of(0));
	expect_nothing();
}

// ---- growth ----

// tables_work writes to the first and last entry of each table.
static void tables_work(void)
{
	uint64_t last = (arena_used() >> RT_PAGE_SHIFT) - 1;
	static struct mspan s;

	for (uint64_t page = 0; page <= last; page += last) {
		ck_assert_uint_eq(arena_pageword(page), 0);
		ck_assert_ptr_null(arena_span(page));
		for (unsigned line = 0; line < 2; line++)
			for (unsigned w = 0; w < RT_PAGE_WORDS; w++)
				ck_assert_uint_eq(
				    atomic_u64_load_relaxed(
					&arena_lines(page)[w].line[line]),
				    0);
		ck_assert_uint_eq(
		    atomic_u64_load_relaxed(&arena.overflow[page / 64]), 0);
		arena_publish(page, 1, &s, 0, 0, PAGEWORD_HEAP);
		atomic_u64_store_relaxed(&arena_lines(page)[7].line[1], 1);
		atomic_u64_store_relaxed(&arena.overflow[page / 64], 0);
		*(char *)arena_page_address(page) = 1;
		((char *)arena_page_address(page))[RT_PAGE_SIZE - 1] = 1;
		atomic_u64_store_relaxed(&arena_lines(page)[7].line[1], 0);
		arena_withdraw(page, 1);
	}
}

TEST(growth_is_counted_as_released_and_tables_follow)
{
	begin();
	ck_assert(range_of(RT_ARENA_SIZE));
	for (uint32_t n = 1; n <= RT_ARENA_SIZE / RT_CHUNK_SIZE; n += n) {
		ck_assert(grow(n));
		ck_assert_uint_eq(arena_used(), (uint64_t)n * RT_CHUNK_SIZE);
		ck_assert_uint_eq(gauge_load(&gauges.heap_mapped),
				  arena_used());
		// Tables are ready, the heap is not yet.
		ck_assert_uint_eq(gauge_load(&gauges.mapped_ready),
				  gauge_load(&gauges.gc_misc_sys));
		tables_work();
	}
	ck_assert(!grow(RT_ARENA_SIZE / RT_CHUNK_SIZE + 1));
	ck_assert_uint_eq(arena_used(), RT_ARENA_SIZE);
	arena_fini();
	expect_maps_as_before();
}

// Prepared memory is not yet a part of the heap.  The heap grows into it
// without a system call.
TEST(what_is_prepared_is_counted_when_the_heap_reaches_it)
{
	begin();
	ck_assert(range_of(RT_ARENA_SIZE));
	ck_assert(arena_prepare(8));
	ck_assert_uint_eq(arena_prepared(), 8 * RT_CHUNK_SIZE);
	ck_assert_uint_eq(arena_used(), 0);
	ck_assert_uint_eq(gauge_load(&gauges.heap_mapped), 0);
	fault_fail(OSCALL_COMMIT, 1, UINT64_MAX, ENOMEM);
	fault_fail(OSCALL_ADVISE, 1, UINT64_MAX, ENOMEM);
	for (uint32_t n = 1; n <= 8; n++) {
		ck_assert(grow(n));
		ck_assert_uint_eq(gauge_load(&gauges.heap_mapped),
				  n * RT_CHUNK_SIZE);
		tables_work();
	}
	ck_assert_uint_eq(fault_count(OSCALL_COMMIT), 0);
	ck_assert_uint_eq(fault_count(OSCALL_ADVISE), 0);
	ck_assert(!grow(9));
	gauge_add(&gauges.heap_mapped, -8 * RT_CHUNK_SIZE);
	arena_fini();
	expect_nothing();
}

// One thread may grow the heap, under the heap lock, while another makes the
// type bits, under the lock of growth.  The heap grows even if the table of
// type bits is reserved, but not grown.  One thread does both here.
TEST(the_heap_grows_while_type_bits_are_being_made)
{
	const unsigned last = ARENA_TABLES - 1;

	begin();
	ck_assert(range_of(RT_ARENA_SIZE));
	ck_assert(arena_prepare(2));
	ck_assert_ptr_null(arena.table[last].base);
	ck_assert(systable_init(
	    &arena.table[last],
	    arena_table_bytes(last, RT_ARENA_SIZE >> RT_CHUNK_SHIFT),
	    &gauges.gc_misc_sys, "type bits"));
	arena_grow(2);
	ck_assert_uint_eq(arena_used(), 2 * RT_CHUNK_SIZE);
	gauge_add(&gauges.heap_mapped, -2 * RT_CHUNK_SIZE);
	arena_fini();
	expect_nothing();
}

// If the system refuses memory for the heap, no tables are made for that
// memory.  They would take a sixtieth of it.
TEST(memory_is_refused_before_there_are_tables_for_it)
{
	begin();
	ck_assert(range_of(RT_ARENA_SIZE));
	fault_fail(OSCALL_COMMIT, 1, 1, ENOMEM);
	ck_assert(!grow(RT_ARENA_SIZE / RT_CHUNK_SIZE));
	fault_fail(OSCALL_COMMIT, 1, 0, 0);
	ck_assert_uint_eq(gauge_load(&gauges.gc_misc_sys), 0);
	arena_fini();
	expect_nothing();
}

// If tables are refused, the memory for the heap is released.  Even if the
// release is refused, too, the memory is not counted, and the next growth uses
// it.
TEST(memory_without_tables_is_not_counted, .n = 2)
{
	begin();
	ck_assert(range_of(RT_ARENA_SIZE));
	fault_fail(OSCALL_UNCOMMIT, 1, _i, ENOMEM);
	fault_fail(OSCALL_COMMIT, 2, 1, ENOMEM);
	ck_assert(!grow(1));
	ck_assert_uint_eq(fault_count(OSCALL_UNCOMMIT), 1);
	ck_assert_uint_eq(gauge_load(&gauges.heap_mapped), 0);
	ck_assert_uint_eq(arena_used(), 0);
	ck_assert(grow(1));
	tables_work();
	gauge_add(&gauges.heap_mapped, -RT_CHUNK_SIZE);
	arena_fini();
	expect_nothing();
}

TEST(refused_growth_can_be_tried_again)
{
	begin();
	for (uint64_t nth = 1; nth <= 5; nth++) { // the heap, four tables
		ck_assert(range_of(RT_ARENA_SIZE));
		fault_fail(OSCALL_COMMIT, nth, UINT64_MAX, ENOMEM);
		ck_assert(!grow(3));
		ck_assert_uint_eq(fault_failed(OSCALL_COMMIT), 1);
		ck_assert_uint_eq(arena_used(), 0);
		ck_assert_uint_eq(gauge_load(&gauges.heap_mapped), 0);
		ck_assert_uint_eq(gauge_load(&gauges.mapped_ready),
				  gauge_load(&gauges.gc_misc_sys));
		fault_fail(OSCALL_COMMIT, 1, 0, 0);
		ck_assert(grow(3));
		tables_work();
		gauge_add(&gauges.heap_mapped, -3 * RT_CHUNK_SIZE);
		arena_fini();
		expect_nothing();
	}
}

// ---- the whole heap ----

// rt_init leaves nothing behind, whichever call the system refuses.
TEST(a_refused_heap_leaves_nothing_mapped, .n = 3)
{
	static const enum oscall kinds[] = {OSCALL_RESERVE, OSCALL_COMMIT,
					    OSCALL_TLSKEY};
	enum oscall kind = kinds[_i];
	uint64_t nth = 0;
	rt_config c = heap_config(100);
	int error;

	begin();
	c.max_heap = RT_ARENA_SIZE;
	// Make and end a heap first, so that mappings that outlast a heap exist
	// already.
	heap_start(c);
	ck_assert_int_eq(rt_fini(), RT_OK);
	maps_read(&before);
	do {
		fault_fail(kind, ++nth, UINT64_MAX, ENOMEM);
		error = rt_init(&c);
		if (error) {
			ck_assert_int_eq(error, RT_ENOMEM);
			ck_assert_uint_ge(fault_failed(kind), 1);
			expect_maps_as_before();
		}
	} while (error);
	ck_assert_uint_gt(nth, 1);
	fault_fail(kind, 1, 0, 0);
	ck_assert_ptr_nonnull(rt_alloc(100));
	ck_assert_int_eq(rt_fini(), RT_OK);
	expect_maps_as_before();
}

// expect_sums requires that nmallocs objects were made, and that all numbers
// add up and agree with each other.
static void expect_sums(uint64_t nmallocs)
{
	ck_assert_uint_eq(heap_stats().mallocs, nmallocs);
	heap_live();
}

// The first allocation needs tables, chunks and memory.  Each may be refused;
// then the numbers still add up and the next allocation succeeds.
TEST(refused_memory_is_null_and_everything_adds_up, .n = 2)
{
	size_t n = _i ? 5 << 20 : 24;
	uint64_t nth = 0;
	rt_config c = heap_config(100);
	void *p;

	begin();
	c.max_heap = RT_ARENA_SIZE;
	do {
		heap_start(c);
		fault_fail(OSCALL_COMMIT, ++nth, UINT64_MAX, ENOMEM);
		p = rt_alloc(n);
		ck_assert(p || fault_failed(OSCALL_COMMIT) != 0);
		expect_sums(p != NULL);
		fault_fail(OSCALL_COMMIT, 1, 0, 0);
		ck_assert_ptr_nonnull(rt_alloc(n));
		expect_sums(1 + (p != NULL));
		ck_assert_int_eq(rt_fini(), RT_OK);
	} while (!p);
	ck_assert_uint_gt(nth, 5);
	expect_maps_as_before();
}

// There are pages, but no memory for the structures that describe them.
TEST(spans_that_cannot_be_described_are_null)
{
	uint64_t n = 0;
	rt_config c = heap_config(HEAP_QUIET);
	void **p;

	c.max_heap = RT_ARENA_SIZE;
	heap_start(c);
	ck_assert_int_eq(rt_roots_add(root, root + 1, RT_ROOT_WORDS), RT_OK);
	// Most of the range is used once, so later pages need no memory.
	ck_assert_ptr_nonnull(rt_alloc(RT_ARENA_SIZE / 4 * 3));
	ck_assert_int_eq(rt_gc(), RT_OK);
	fault_fail(OSCALL_COMMIT, 1, UINT64_MAX, ENOMEM);
	while ((p = rt_alloc(RT_PAGE_SIZE)) != NULL) {
		*p = (void *)root[0];
		root[0] = (uintptr_t)p;
		n++;
	}
	ck_assert_uint_ne(fault_failed(OSCALL_COMMIT), 0);
	ck_assert_uint_lt(n, RT_ARENA_SIZE / 4 * 3 / RT_PAGE_SIZE);
	expect_sums(n + 1);
	fault_fail(OSCALL_COMMIT, 1, 0, 0);
	ck_assert_ptr_nonnull(rt_alloc(RT_PAGE_SIZE));
	expect_sums(n + 2);
}
