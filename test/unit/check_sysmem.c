// Mappings: reserved, used, released and freed, and what they count.
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/os/oscall.h"
#include "runtime/os/sysmem.h"
#include "test/harness/death.h"
#include "test/harness/fault.h"
#include "test/harness/suite.h"

// Each test runs with every physical page size: its loop number chooses.
static const size_t page_sizes[] = {4 << 10, 16 << 10, 64 << 10};
static size_t page;

static atomic_u64 *const stat = &gauges.gc_misc_sys;

// The gauges as they should be.
static struct gauges expected;

static void begin(int i)
{
	page = page_sizes[i];
	fault_set_page_size(page);
	sysmem_init();
	expected = gauges;
}

static void expect_move(uint64_t in_stat, uint64_t in_ready)
{
	atomic_u64_add_relaxed(&expected.gc_misc_sys, in_stat);
	atomic_u64_add_relaxed(&expected.mapped_ready, in_ready);
	// Mappings have tests of their own.
	expected.mappings = gauges.mappings;
	ck_assert_mem_eq(&gauges, &expected, sizeof(gauges));
}

static void expect_no_move(void)
{
	expect_move(0, 0);
}

// refuse makes the nth and all later calls of one system call fail.  allow ends
// that.
static void refuse(enum oscall kind, uint64_t nth)
{
	fault_fail(kind, nth, UINT64_MAX, ENOMEM);
}

static void allow(enum oscall kind)
{
	fault_fail(kind, 1, 0, 0);
}

static bool is_zero(const char *p, size_t n)
{
	size_t i = 0;

	while (i < n && p[i] == 0)
		i++;
	return i == n;
}

// is_mapped asks the system: advice on what is not mapped is refused.
static bool is_mapped(void *p, size_t n)
{
	return oscall_dump(p, n, true) == 0;
}

// mapped_bytes returns the size of the process, read without allocating.  The
// system counts in its own pages.
static uint64_t mapped_bytes(void)
{
	char buf[128] = "";
	int fd = open("/proc/self/statm", O_RDONLY);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_gt(read(fd, buf, sizeof(buf) - 1), 0);
	close(fd);
	return strtoull(buf, NULL, 10) * (uint64_t)sysconf(_SC_PAGESIZE);
}

// access_at returns the permissions of the mapping at p, as "rw-p", or "" where
// nothing is mapped.
static const char *access_at(const void *p)
{
	static char access[8];
	unsigned long long lo, hi;
	FILE *f = fopen("/proc/self/maps", "r");
	bool found = false;
	char line[512];

	ck_assert_ptr_nonnull(f);
	while (!found && fgets(line, sizeof(line), f))
		found = sscanf(line, "%llx-%llx %7s", &lo, &hi, access) == 3 &&
			lo <= (uintptr_t)p && (uintptr_t)p < hi;
	fclose(f);
	return found ? access : "";
}

// expect_guards requires that all of a physical page on either side of [p, p+n)
// is protected, and that all between them may be touched.
static void expect_guards(char *p, size_t n)
{
	ck_assert_str_eq(access_at(p - page), "---p");
	ck_assert_str_eq(access_at(p - 1), "---p");
	ck_assert_str_eq(access_at(p), "rw-p");
	ck_assert_str_eq(access_at(p + n - 1), "rw-p");
	ck_assert_str_eq(access_at(p + n), "---p");
	ck_assert_str_eq(access_at(p + n + page - 1), "---p");
}

// is_dumped tells whether a core dump would hold the mapping at p; -1 where the
// system does not say.
static int is_dumped(const void *p)
{
	FILE *f = fopen("/proc/self/smaps", "r");
	unsigned long long lo, hi;
	bool inside = false;
	int dumped = -1;
	char line[512];

	while (f && dumped < 0 && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%llx-%llx ", &lo, &hi) == 2)
			inside = lo <= (uintptr_t)p && (uintptr_t)p < hi;
		else if (inside && strncmp(line, "VmFlags:", 8) == 0)
			dumped = strstr(line, " dd") == NULL;
	}
	if (f)
		fclose(f);
	return dumped;
}

// ---- page size ----

GROUP(mapping);

TEST(the_page_size_is_the_systems)
{
	sysmem_init();
	ck_assert_uint_eq(sysmem_page_size(), (size_t)sysconf(_SC_PAGESIZE));
	fault_fail(OSCALL_PAGESIZE, 1, 1, EINVAL);
	sysmem_init();
	ck_assert_uint_eq(sysmem_page_size(), 4096);
	ck_assert_uint_eq(fault_failed(OSCALL_PAGESIZE), 1);
	for (size_t n = 1 << 10; n <= 1 << 20; n *= 2) {
		fault_set_page_size(n);
		sysmem_init();
		ck_assert_uint_eq(sysmem_page_size(),
				  n < 4 << 10 || n > 64 << 10 ? 4096 : n);
	}
	fault_set_page_size(0);
	sysmem_init();
	ck_assert_uint_eq(sysmem_page_size(), (size_t)sysconf(_SC_PAGESIZE));
}

TEST(rounding_goes_up_to_pages, .n = RT_ARRAY_LEN(page_sizes))
{
	begin(_i);
	ck_assert_uint_eq(sysmem_page_size(), page);
	ck_assert_uint_eq(sysmem_round(0), 0);
	ck_assert_uint_eq(sysmem_round(1), page);
	ck_assert_uint_eq(sysmem_round(page), page);
	ck_assert_uint_eq(sysmem_round(page + 1), 2 * page);
}

// ---- alloc, free ----

TEST(alloc_counts_whole_pages_of_zeros, .n = RT_ARRAY_LEN(page_sizes))
{
	begin(_i);
	char *p = sysmem_alloc(page + 1, stat, "test");
	ck_assert_ptr_nonnull(p);
	ck_assert(is_zero(p, 2 * page));
	memset(p, 1, 2 * page);
	expect_move(2 * page, 2 * page);
	sysmem_free(p, page + 1, stat);
	expect_move(-2 * page, -2 * page);
	ck_assert(!is_mapped(p, 2 * page));
}

TEST(a_refused_alloc_counts_nothing, .n = RT_ARRAY_LEN(page_sizes))
{
	begin(_i);
	refuse(OSCALL_MAP, 1);
	ck_assert_ptr_null(sysmem_alloc(page, stat, "test"));
	ck_assert_uint_eq(fault_failed(OSCALL_MAP), 1);
	allow(OSCALL_MAP);
	ck_assert_ptr_null(sysmem_alloc(SIZE_MAX, stat, "test"));
	ck_assert_ptr_null(sysmem_alloc(PTRDIFF_MAX, stat, "test"));
	ck_assert_ptr_null(sysmem_alloc(SIZE_MAX - page, stat, "test"));
	ck_assert_ptr_null(sysmem_alloc(SIZE_MAX - 2 * page, stat, "test"));
	ck_assert_ptr_null(sysmem_alloc((size_t)1 << 56, stat, "test"));
	expect_no_move();

	void *p = sysmem_alloc(page, stat, "test");
	ck_assert_ptr_nonnull(p);
	expect_move(page, page);
}

TEST(a_refused_free_stays_counted, .n = RT_ARRAY_LEN(page_sizes))
{
	begin(_i);
	char *p = sysmem_alloc(page, stat, "test");
	ck_assert_ptr_nonnull(p);
	expect_move(page, page);
	refuse(OSCALL_UNMAP, 1);
	sysmem_free(p, page, stat);
	expect_no_move();
	ck_assert(is_mapped(p, page));
	allow(OSCALL_UNMAP);
	sysmem_free(p, page, stat);
	expect_move(-page, -page);
}

// ---- reserve ----

static const size_t aligns[] = {1, 8 << 10, 64 << 10, 2 << 20, 64 << 20};

TEST(a_reservation_is_aligned_and_takes_no_more, .n = RT_ARRAY_LEN(page_sizes))
{
	size_t n = 16 * page_sizes[_i];
	uint64_t mapped;

	begin(_i);
	mapped = mapped_bytes();
	for (size_t i = 0; i < RT_ARRAY_LEN(aligns); i++) {
		char *p = sysmem_reserve(n, aligns[i], "test");
		uint64_t reserved = mapped_bytes() - mapped;

		ck_assert_ptr_nonnull(p);
		ck_assert_uint_eq((uintptr_t)p % aligns[i], 0);
		ck_assert_uint_eq((uintptr_t)p % page, 0);
		ck_assert_uint_eq(reserved, n + 2 * page); // its guards
		sysmem_unreserve(p, n);
		ck_assert_uint_eq(mapped_bytes(), mapped);
	}
	expect_no_move();
}

TEST(a_refused_reservation_leaves_nothing_mapped, .n = RT_ARRAY_LEN(page_sizes))
{
	uint64_t mapped;

	begin(_i);
	mapped = mapped_bytes();
	// The first call asks for the size alone, the second for the surplus
	// that aligns it.
	for (uint64_t nth = 1; nth <= 2; nth++) {
		refuse(OSCALL_RESERVE, nth);
		ck_assert_ptr_null(
		    sysmem_reserve(page, UINT64_C(1) << 40, "test"));
		ck_assert_uint_eq(fault_count(OSCALL_RESERVE), nth);
		ck_assert_uint_eq(mapped_bytes(), mapped);
	}
	allow(OSCALL_RESERVE);
	ck_assert_ptr_null(sysmem_reserve(SIZE_MAX, page, "test"));
	ck_assert_ptr_null(sysmem_reserve(PTRDIFF_MAX, 64 << 20, "test"));
	ck_assert_ptr_null(sysmem_reserve(page, UINT64_C(1) << 63, "test"));
	ck_assert_ptr_null(sysmem_reserve(page, UINT64_C(1) << 56, "test"));
	ck_assert_ptr_null(sysmem_reserve(SIZE_MAX - 2 * page, page, "test"));
	ck_assert_ptr_null(sysmem_reserve(SIZE_MAX - 3 * page, page, "test"));
	ck_assert_ptr_null(
	    sysmem_reserve(UINT64_C(1) << 56, UINT64_C(1) << 56, "test"));
	ck_assert_uint_eq(mapped_bytes(), mapped);
	expect_no_move();
	ck_assert_ptr_nonnull(sysmem_reserve(page, 64 << 20, "test"));
}

// If the ends cannot be unmapped, addresses are lost, but not the reservation.
TEST(a_reservation_with_its_ends_is_still_good, .n = RT_ARRAY_LEN(page_sizes))
{
	begin(_i);
	refuse(OSCALL_UNMAP, 1);
	char *p = sysmem_reserve(page, 64 << 20, "test");
	ck_assert_ptr_nonnull(p);
	ck_assert_uint_eq((uintptr_t)p % (64 << 20), 0);
	ck_assert(sysmem_map(p, page, stat));
	p[page - 1] = 1;
	expect_move(page, 0);
}

TEST(only_the_mapped_part_is_dumped, .n = RT_ARRAY_LEN(page_sizes))
{
	begin(_i);
	char *p = sysmem_reserve(4 * page, page, "test");
	ck_assert_ptr_nonnull(p);
	if (is_dumped(p) < 0) {
		suite_skip("this kernel does not tell what is dumped", NULL);
		return;
	}
	ck_assert_int_eq(is_dumped(p), 0);
	ck_assert(sysmem_map(p + page, page, stat));
	ck_assert_int_eq(is_dumped(p), 0);
	ck_assert_int_eq(is_dumped(p + page), 1);
	// The next page has no memory, so a dump would hold nothing of it.
	ck_assert_int_eq(is_dumped(p + 2 * page), 1);
	ck_assert_str_eq(access_at(p + 2 * page), "---p");
	ck_assert_int_eq(is_dumped(p + 3 * page), 0);
}

// ---- map, used, unused ----

TEST(memory_goes_through_its_states, .n = RT_ARRAY_LEN(page_sizes))
{
	begin(_i);
	char *p = sysmem_reserve(4 * page, page, "test");
	ck_assert_ptr_nonnull(p);
	expect_no_move();

	ck_assert(sysmem_map(p, 2 * page, stat));
	expect_move(2 * page, 0);
	ck_assert(is_zero(p, 2 * page));
	sysmem_used(2 * page);
	expect_move(0, 2 * page);
	memset(p, 1, 2 * page);
	ck_assert(sysmem_huge_pages(p, 2 * page));
	ck_assert(sysmem_small_pages(p, 2 * page));
	expect_no_move();

	ck_assert(sysmem_release(p + page, page));
	expect_move(0, -page);
	ck_assert_int_eq(p[page - 1], 1);
	ck_assert(is_zero(p + page, page));
	sysmem_unreserve(p, 4 * page);
	ck_assert(!is_mapped(p, 4 * page));
}

TEST(a_refused_map_counts_nothing, .n = RT_ARRAY_LEN(page_sizes))
{
	begin(_i);
	char *p = sysmem_reserve(page, page, "test");
	ck_assert_ptr_nonnull(p);
	refuse(OSCALL_COMMIT, 1);
	ck_assert(!sysmem_map(p, page, stat));
	expect_no_move();
	allow(OSCALL_COMMIT);
	ck_assert(sysmem_map(p, page, stat));
	p[page - 1] = 1;
	expect_move(page, 0);
}

TEST(a_refused_release_stays_ready, .n = RT_ARRAY_LEN(page_sizes))
{
	begin(_i);
	char *p = sysmem_reserve(page, page, "test");
	ck_assert_ptr_nonnull(p);
	ck_assert(sysmem_map(p, page, stat));
	sysmem_used(page);
	memset(p, 1, page);
	expect_move(page, page);
	refuse(OSCALL_RELEASE, 1);
	ck_assert(!sysmem_release(p, page));
	expect_no_move();
	ck_assert_int_eq(p[0], 1);
	allow(OSCALL_RELEASE);
	ck_assert(sysmem_release(p, page));
	ck_assert_int_eq(p[0], 0);
	expect_move(0, -page);
}

// ---- guards ----

TEST(every_mapping_has_guards, .n = RT_ARRAY_LEN(page_sizes))
{
	struct systable t;
	char *p, *r;

	begin(_i);
	p = sysmem_alloc(page + 1, stat, "test");
	ck_assert_ptr_nonnull(p);
	expect_guards(p, 2 * page);
	r = sysmem_reserve(3 * page, 64 << 20, "test");
	ck_assert_ptr_nonnull(r);
	ck_assert(sysmem_map(r, 3 * page, stat));
	expect_guards(r, 3 * page);
	ck_assert(systable_init(&t, 2 * page, stat, "test"));
	ck_assert(systable_grow(&t, 2 * page));
	expect_guards(t.base, 2 * page);
}

TEST(guards_go_with_their_mapping, .n = RT_ARRAY_LEN(page_sizes))
{
	uint64_t mapped;
	struct systable t;
	char *p;

	begin(_i);
	mapped = mapped_bytes();
	p = sysmem_alloc(page, stat, "test");
	ck_assert_uint_eq(mapped_bytes(), mapped + 3 * page);
	sysmem_free(p, page, stat);
	ck_assert(systable_init(&t, page, stat, "test"));
	systable_fini(&t);
	p = sysmem_reserve(page, 1 << 20, "test");
	ck_assert(sysmem_unreserve(p, page));
	ck_assert_uint_eq(mapped_bytes(), mapped);
	expect_no_move();
}

// The memory is as good without guards, and no other memory follows its end.
TEST(guards_may_be_refused, .n = RT_ARRAY_LEN(page_sizes))
{
	begin(_i);
	refuse(OSCALL_UNCOMMIT, 1);
	char *p = sysmem_alloc(page, stat, "test");
	ck_assert_ptr_nonnull(p);
	ck_assert_uint_eq(fault_failed(OSCALL_UNCOMMIT), 2);
	memset(p, 1, page);
	ck_assert(is_zero(p + page, page));
	expect_move(page, page);
	sysmem_free(p, page, stat);
	expect_move(-page, -page);
	ck_assert(!is_mapped(p + page, page));
}

TEST(memory_is_protected_and_unprotected, .n = RT_ARRAY_LEN(page_sizes))
{
	begin(_i);
	char *p = sysmem_reserve(3 * page, page, "test");
	ck_assert_ptr_nonnull(p);
	ck_assert(sysmem_map(p, 3 * page, stat));
	memset(p, 1, 3 * page);
	expect_move(3 * page, 0);
	ck_assert(sysmem_protect(p + page, page));
	ck_assert_str_eq(access_at(p), "rw-p");
	ck_assert_str_eq(access_at(p + page), "---p");
	ck_assert_str_eq(access_at(p + 2 * page), "rw-p");
	refuse(OSCALL_COMMIT, 1);
	ck_assert(!sysmem_unprotect(p + page, page));
	allow(OSCALL_COMMIT);
	// The request is a part of the physical page, but unprotects all of it.
	ck_assert(sysmem_unprotect(p + page + 1024, 1024));
	ck_assert_mem_eq(p, p + 1, 3 * page - 1);
	refuse(OSCALL_UNCOMMIT, 1);
	ck_assert(!sysmem_protect(p, page));
	ck_assert_int_eq(p[0], 1);
	expect_no_move();
}

// Older and smaller kernels refuse advice and names.
TEST(nothing_depends_on_advice_and_names, .n = RT_ARRAY_LEN(page_sizes))
{
	struct systable t;

	begin(_i);
	refuse(OSCALL_ADVISE, 1);
	refuse(OSCALL_NAME, 1);
	ck_assert_ptr_nonnull(sysmem_alloc(page, stat, "test"));
	expect_move(page, page);
	char *p = sysmem_reserve(page, page, "test");
	ck_assert_ptr_nonnull(p);
	ck_assert(sysmem_map(p, page, stat));
	ck_assert(!sysmem_huge_pages(p, page));
	ck_assert(!sysmem_small_pages(p, page));
	ck_assert(!sysmem_collapse(p, page));
	ck_assert(!sysmem_populate(p, page));
	expect_move(page, 0);
	ck_assert(systable_init(&t, page, stat, "test"));
	ck_assert(systable_grow(&t, page));
	expect_move(page, page);
	systable_fini(&t);
	expect_move(-page, -page);
	ck_assert_uint_eq(fault_failed(OSCALL_ADVISE), 10);
	ck_assert_uint_eq(fault_failed(OSCALL_NAME), 3);
}

TEST(releasing_a_part_of_a_page_throws, .n = 2 * RT_ARRAY_LEN(page_sizes),
     .exit = DEATH_EXPECTED)
{
	begin(_i / 2);
	char *p = sysmem_reserve(2 * page, page, "test");
	ck_assert_ptr_nonnull(p);
	death_expect(
	    "rtheap: n=#\nrtheap: fatal: sysmem_release: not whole pages");
	if (_i % 2)
		sysmem_release(p, page - 1024);
	else
		sysmem_release(p + 1024, page);
}

// ---- systable ----

GROUP(table);

TEST(a_table_grows_by_whole_pages, .n = RT_ARRAY_LEN(page_sizes))
{
	struct systable t;

	begin(_i);
	ck_assert(systable_init(&t, 3 * page - 1, stat, "test"));
	ck_assert_uint_eq(t.reserved, 3 * page);
	ck_assert_uint_eq(systable_ready(&t), 0);
	ck_assert(systable_grow(&t, 0));
	expect_no_move();

	ck_assert(systable_grow(&t, 1));
	ck_assert_uint_eq(systable_ready(&t), page);
	expect_move(page, page);
	memset(t.base, 1, page);
	ck_assert(systable_grow(&t, page));
	expect_no_move();
	ck_assert(systable_grow(&t, page + 1));
	expect_move(page, page);
	ck_assert_int_eq(t.base[page - 1], 1);
	ck_assert(is_zero(t.base + page, page));
	ck_assert(systable_grow(&t, 1)); // never shrinks
	ck_assert(systable_grow(&t, 3 * page));
	ck_assert_uint_eq(systable_ready(&t), 3 * page);
	t.base[3 * page - 1] = 1;
	expect_move(page, page);

	char *base = t.base;
	systable_fini(&t);
	expect_move(-3 * page, -3 * page);
	ck_assert(!is_mapped(base, 3 * page));
	ck_assert_ptr_null(t.base);
}

TEST(a_table_ends_with_its_reservation, .n = RT_ARRAY_LEN(page_sizes))
{
	struct systable t;

	begin(_i);
	ck_assert(!systable_init(&t, SIZE_MAX, stat, "test"));
	ck_assert(systable_init(&t, 2 * page, stat, "test"));
	ck_assert(!systable_grow(&t, 2 * page + 1));
	ck_assert(!systable_grow(&t, SIZE_MAX));
	ck_assert_uint_eq(systable_ready(&t), 0);
	expect_no_move();
	ck_assert(systable_grow(&t, 2 * page));
	expect_move(2 * page, 2 * page);
}

TEST(a_refused_table_changes_nothing, .n = RT_ARRAY_LEN(page_sizes))
{
	struct systable t;

	begin(_i);
	refuse(OSCALL_RESERVE, 1);
	ck_assert(!systable_init(&t, page, stat, "test"));
	allow(OSCALL_RESERVE);
	ck_assert(systable_init(&t, 4 * page, stat, "test"));
	ck_assert(systable_grow(&t, page));
	expect_move(page, page);

	refuse(OSCALL_COMMIT, 1);
	ck_assert(!systable_grow(&t, 2 * page));
	ck_assert(systable_grow(&t, page)); // is ready
	ck_assert_uint_eq(systable_ready(&t), page);
	expect_no_move();
	allow(OSCALL_COMMIT);
	ck_assert(systable_grow(&t, 2 * page));
	t.base[2 * page - 1] = 1;
	expect_move(page, page);
}

TEST(a_table_that_stays_mapped_stays_counted, .n = RT_ARRAY_LEN(page_sizes))
{
	struct systable t;

	begin(_i);
	ck_assert(systable_init(&t, page, stat, "test"));
	ck_assert(systable_grow(&t, page));
	expect_move(page, page);
	refuse(OSCALL_UNMAP, 1);
	systable_fini(&t);
	expect_no_move();
}

GROUP(mapping);

// Prepared memory is usable, and counted by its owner.
TEST(what_is_prepared_is_not_counted, .n = RT_ARRAY_LEN(page_sizes))
{
	begin(_i);
	char *p = sysmem_reserve(4 * page, page, "test");
	ck_assert_ptr_nonnull(p);
	ck_assert(sysmem_prepare(p, 2 * page));
	memset(p, 1, 2 * page);
	ck_assert_str_eq(access_at(p + 2 * page), "---p");
	ck_assert(sysmem_prepare(p + 2 * page, page));
	sysmem_unprepare(p + 2 * page, page);
	ck_assert_str_eq(access_at(p + 2 * page), "---p");
	refuse(OSCALL_COMMIT, 1);
	ck_assert(!sysmem_prepare(p + 2 * page, page));
	expect_no_move();
}

TEST(mappings_are_counted, .n = RT_ARRAY_LEN(page_sizes))
{
	uint64_t before;

	begin(_i);
	before = gauge_load(&gauges.mappings);
	char *p = sysmem_alloc(page, stat, "test");
	ck_assert_uint_eq(gauge_load(&gauges.mappings), before + 3);
	sysmem_free(p, page, stat);
	p = sysmem_reserve(page, page, "test");
	ck_assert_uint_eq(gauge_load(&gauges.mappings), before + 4);
	refuse(OSCALL_UNMAP, 1);
	ck_assert(!sysmem_unreserve(p, page));
	ck_assert_uint_eq(gauge_load(&gauges.mappings), before + 4);
	allow(OSCALL_UNMAP);
	ck_assert(sysmem_unreserve(p, page));
	ck_assert_uint_eq(gauge_load(&gauges.mappings), before);
}
