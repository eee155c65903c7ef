// Live memory gets huge pages, and released memory never does.
#define _GNU_SOURCE 1

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "runtime/pages/hugepages.h"
#include "runtime/spans/mheap.h"
#include "runtime/os/oscall.h"
#include "test/harness/fault.h"
#include "test/harness/heap.h"
#include "test/harness/suite.h"
#include "test/harness/process.h"

enum {
	MIB = 1 << 20,
	COLLAPSE = 25, // MADV_COLLAPSE, which older headers lack
	CHUNK = RT_CHUNK_SIZE,
	NROOTS = 1 << 14,
};

static void *roots[NROOTS];

// ---- what the system says ----

enum advice { NONE, SMALL, HUGE };

// advice_at returns what the system was told of the mapping at p.
static enum advice advice_at(const void *p)
{
	FILE *f = fopen("/proc/self/smaps", "r");
	unsigned long long lo, hi;
	enum advice advice = NONE;
	bool inside = false, done = false;
	char line[512];

	ck_assert_ptr_nonnull(f);
	while (!done && fgets(line, sizeof line, f)) {
		if (sscanf(line, "%llx-%llx ", &lo, &hi) == 2)
			inside = lo <= (uintptr_t)p && (uintptr_t)p < hi;
		else if (inside && strncmp(line, "VmFlags:", 8) == 0) {
			done = true;
			advice = strstr(line, " hg")   ? HUGE
				 : strstr(line, " nh") ? SMALL
						       : NONE;
		}
	}
	fclose(f);
	return advice;
}

static bool is_advised(const void *p)
{
	return advice_at(p) == HUGE;
}

static bool is_small(const void *p)
{
	return advice_at(p) == SMALL;
}

static char *chunk_at(uint32_t i)
{
	return (char *)arena.base + (size_t)i * CHUNK;
}

static uint32_t nchunks(void)
{
	return (uint32_t)(arena_used() / CHUNK);
}

// count_advised returns the number of chunks that are advised; the others must
// be small.
static uint32_t count_advised(void)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < nchunks(); i++) {
		enum advice advice = advice_at(chunk_at(i));

		ck_assert_msg(advice != NONE, "chunk %u", i);
		n += advice == HUGE;
	}
	return n;
}

// resident returns how many bytes of the heap's range have memory behind them.
static uint64_t resident(void)
{
	static unsigned char in_core[CHUNK / 4096];
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), n = 0;

	for (uint32_t i = 0; i < nchunks(); i++) {
		ck_assert_int_eq(mincore(chunk_at(i), CHUNK, in_core), 0);
		for (size_t k = 0; k < CHUNK / page; k++)
			n += in_core[k] & 1;
	}
	return n * page;
}

// collapses tells whether this system makes huge pages when it is asked to.
static bool collapses(void)
{
	size_t n = 4 * MIB;
	char *p = mmap(NULL, n, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *huge;
	bool ok;

	ck_assert(p != MAP_FAILED);
	huge = (char *)base_align_up((uintptr_t)p, 2 * MIB);
	madvise(p, n, MADV_HUGEPAGE);
	*huge = 1;
	ok = madvise(huge, 2 * MIB, COLLAPSE) == 0;
	munmap(p, n);
	if (!ok)
		fprintf(stderr, "MADV_COLLAPSE: refused\n");
	return ok;
}

// ---- a heap ----

static void start(int helpers)
{
	rt_config c = heap_config(HEAP_QUIET);

	c.huge_pages = 1;
	c.max_procs = 2;
	c.gc_threads = helpers;
	memset(roots, 0, sizeof roots);
	heap_start_exact(c);
	must(rt_roots_add(roots, roots + NROOTS, RT_ROOT_EXACT));
}

// hold allocates n objects of some bytes, and writes to them if touch says so.
static void hold(unsigned n, size_t bytes, bool touch)
{
	for (unsigned i = 0; i < n; i++) {
		roots[i] = rt_alloc_noscan_uninit(bytes);
		ck_assert_ptr_nonnull(roots[i]);
		if (touch)
			memset(roots[i], 1, bytes);
	}
}

static void drop_but_every(unsigned nth)
{
	for (unsigned i = 0; i < NROOTS; i++)
		if (nth == 0 || i % nth != 0)
			roots[i] = NULL;
}

static void gc(void)
{
	ck_assert_int_eq(rt_gc(), RT_OK);
}

// ---- what lives ----

GROUP(hugepages, .timeout = 120);

TEST(fresh_memory_has_small_pages)
{
	start(0);
	hold(64, MIB, false);
	ck_assert_uint_eq(count_advised(), 0);
	ck_assert(is_small(arena.table[0].base));
}

// This holds with helpers and without.  Objects without pointers need no
// helper.
TEST(what_survives_a_collection_is_advised, .n = 2)
{
	start(_i);
	hold(64, MIB, false);
	gc();
	// All chunks but the last are full, and perhaps the last as well.
	ck_assert_uint_ge(count_advised(), nchunks() - 1);
	heap_healthy();
}

TEST(what_does_not_fill_a_chunk_is_not)
{
	start(0);
	hold(4096, 8192, false);
	drop_but_every(2);
	gc();
	ck_assert_uint_eq(count_advised(), 0);
}

// With one page less, a chunk does not count as full.
TEST(a_chunk_is_full_from_some_pages_on, .n = 2)
{
	start(0);
	hold(SCAVINDEX_HIGH - !_i, RT_PAGE_SIZE, false);
	gc();
	ck_assert_uint_eq(nchunks(), 1);
	ck_assert_uint_eq(scavindex_in_use(&mheap.pages.scav, 0),
			  SCAVINDEX_HIGH - !_i);
	ck_assert_uint_eq(count_advised(), _i);
}

// A thread of the host asks for huge pages and does not wait for them: there is
// one call for each chunk.
TEST(without_helpers_advice_is_all)
{
	start(0);
	hold(16, CHUNK, false);
	fault_fail(OSCALL_ADVISE, 1, 0, 0); // counts
	gc();
	ck_assert_uint_ge(count_advised(), 15);
	ck_assert_uint_eq(fault_count(OSCALL_ADVISE), count_advised());
}

TEST(without_huge_pages_nothing_is_advised)
{
	rt_config c = heap_config(HEAP_QUIET);

	c.huge_pages = 0;
	c.gc_threads = 0;
	heap_start_exact(c);
	must(rt_roots_add(roots, roots + NROOTS, RT_ROOT_EXACT));
	hold(64, MIB, false);
	gc();
	ck_assert_uint_eq(count_advised(), 0);
}

static bool all_advised(void)
{
	gc();
	return count_advised() >= nchunks() - 1;
}

// Helpers advise after each collection: two chunks at least, and all if they
// are not called for something else.
TEST(helpers_advise_when_there_are_some)
{
	start(1);
	hold(64, MIB, true);
	// Something to mark, so that a helper is made.
	void **list = NULL;
	for (int i = 0; i < 200000; i++) {
		void **p = rt_alloc(64);

		ck_assert_ptr_nonnull(p);
		*p = list;
		roots[64] = list = p;
	}
	for (int i = 0; i < 10000 && !all_advised(); i++)
		usleep(1000);
	ck_assert(all_advised());
	for (unsigned i = 0; i < 64; i++)
		ck_assert_int_eq(((char *)roots[i])[MIB - 1], 1);
	heap_healthy();
	ck_assert_int_eq(rt_fini(), RT_OK);
}

// ---- what is released ----

// One object of 8 KiB in 2 MiB stays, and the rest is released.
TEST(released_memory_stays_released)
{
	uint64_t held;
	rt_memstats m;

	start(0);
	hold(128 * 128, 8192, true);
	gc();
	ck_assert_uint_ge(count_advised(), 30);
	drop_but_every(256);
	ck_assert_int_eq(rt_free_os_memory(), RT_OK);
	ck_assert_uint_eq(count_advised(), 0);
	if (!collapses()) {
		suite_skip("this kernel does not collapse pages", NULL);
		return;
	}
	for (char *p = chunk_at(0); p < chunk_at(nchunks()); p += 2 * MIB)
		madvise(p, 2 * MIB, COLLAPSE);
	m = heap_stats();
	held = m.heap_sys - m.heap_released;
	ck_assert_uint_le(resident(), held + held / 5);
	heap_healthy();
}

TEST(a_chunk_that_fills_again_is_advised_again)
{
	start(0);
	hold(8192, 8192, false);
	gc();
	uint32_t full = count_advised();
	ck_assert_uint_ge(full, nchunks() - 1);
	drop_but_every(256);
	ck_assert_int_eq(rt_free_os_memory(), RT_OK);
	ck_assert_uint_eq(count_advised(), 0);
	hold(8192, 8192, false);
	gc();
	gc(); // before the first, the heap also had the dead objects
	ck_assert_uint_ge(count_advised(), full - 1);
	heap_healthy();
}

// holds_and_advises tells whether what a child holds is advised as well.
static bool holds_and_advises(void)
{
	for (unsigned i = 0; i < 8; i++)
		roots[i] = rt_alloc_noscan_uninit(CHUNK);
	return rt_gc() == RT_OK && is_advised(roots[0]);
}

TEST(a_child_is_given_huge_pages)
{
	start(0);
	if (process_forked())
		process_end(holds_and_advises());
}

// A chunk that is released before its advice came is not advised.
TEST(a_released_chunk_no_longer_waits_for_advice)
{
	enum { CHUNKS = 8, RELEASED = 3 };

	start(0);
	hold(CHUNKS, CHUNK, false);
	ck_assert(hugepages_choose(&mheap.pages));
	hugepages_withdraw(RELEASED);
	while (hugepages_provide(false))
		;
	for (uint32_t i = 0; i < CHUNKS; i++)
		ck_assert_int_eq(is_advised(chunk_at(i)), i != RELEASED);
}

// ---- how many mappings ----

static uint64_t mappings(void)
{
	return heap_metric("/memory/mappings:count");
}

// Every second chunk is released.  When there are as many stretches as are
// allowed, longer parts of the heap get small pages.
TEST(stretches_are_few)
{
	uint64_t before;

	start(0);
	before = mappings();
	hold(100, CHUNK, false);
	gc();
	ck_assert_uint_le(mappings(), before + 2 * 2);
	drop_but_every(2);
	ck_assert_int_eq(rt_free_os_memory(), RT_OK);
	ck_assert_uint_le(mappings(), before + 2 * (HUGEPAGES_STRETCHES + 2));
	for (unsigned i = 0; i < 100; i += 2)
		ck_assert(is_small((char *)roots[i] + CHUNK));
	ck_assert_uint_ge(count_advised(), HUGEPAGES_STRETCHES);
	gc();
	ck_assert_uint_le(mappings(), before + 2 * (HUGEPAGES_STRETCHES + 2));
	heap_healthy();
	drop_but_every(0);
	ck_assert_int_eq(rt_free_os_memory(), RT_OK);
	ck_assert_uint_eq(count_advised(), 0);
	ck_assert_uint_eq(mappings(), before);
}

// Near the limit of mappings no stretch begins, and none is cut in two.
TEST(near_the_limit_parts_are_coarser)
{
	int64_t many = (int64_t)(sysmem_max_mappings() / 5 * 4);
	uint64_t before;

	start(0);
	hold(21, CHUNK, false);
	gc();
	ck_assert_uint_ge(count_advised(), 20);
	sysmem_count_mappings(many);
	before = mappings();
	roots[5] = NULL;
	ck_assert_int_eq(rt_free_os_memory(), RT_OK);
	ck_assert_uint_le(mappings(), before);
	ck_assert_uint_ge(count_advised(), 10);
	roots[5] = rt_alloc_noscan_uninit(CHUNK);
	ck_assert_ptr_nonnull(roots[5]);
	gc();
	ck_assert_uint_le(mappings(), before);
	drop_but_every(0);
	ck_assert_int_eq(rt_free_os_memory(), RT_OK);
	ck_assert_uint_eq(count_advised(), 0);
	hold(21, CHUNK, false);
	gc();
	ck_assert_uint_eq(count_advised(), 0);
	sysmem_count_mappings(-many);
	gc();
	ck_assert_uint_ge(count_advised(), 20);
	heap_healthy();
}

// ---- tables ----

TEST(tables_follow_the_heap)
{
	enum { CHUNKS = 34 }; // 2 MiB of bitmaps serve 32 chunks
	const char *lines;

	start(0);
	lines = arena.table[0].base;
	ck_assert_uint_eq((uintptr_t)lines % SYSMEM_HUGE_PAGE, 0);
	hold(CHUNKS, CHUNK, false);
	ck_assert(is_small(lines));
	gc();
	ck_assert(is_advised(lines));
	ck_assert(is_small(lines + SYSMEM_HUGE_PAGE));
	// The tables of a chunk lose their advice with the chunk.
	roots[3] = NULL;
	ck_assert_int_eq(rt_free_os_memory(), RT_OK);
	ck_assert(is_small(lines));
	roots[3] = rt_alloc_noscan_uninit(CHUNK);
	gc();
	ck_assert(is_advised(lines));
	heap_healthy();
}

// ---- refusals ----

TEST(refused_advice_changes_nothing)
{
	start(0);
	hold(16, CHUNK, false);
	fault_fail(OSCALL_ADVISE, 1, UINT64_MAX, ENOMEM);
	gc();
	// There is one call for each collection, not one for each chunk.
	ck_assert_uint_le(fault_count(OSCALL_ADVISE), 2);
	fault_fail(OSCALL_ADVISE, 1, 0, 0);
	ck_assert_uint_eq(count_advised(), 0);
	gc();
	ck_assert_uint_ge(count_advised(), 15);
	// A stretch that the system refuses to cut is made shorter instead.
	roots[8] = NULL;
	gc();
	fault_fail(OSCALL_ADVISE, 1, 1, ENOMEM);
	ck_assert_int_eq(rt_free_os_memory(), RT_OK);
	ck_assert_uint_eq(fault_failed(OSCALL_ADVISE), 1);
	fault_fail(OSCALL_ADVISE, 1, 0, 0);
	ck_assert_uint_ge(count_advised(), 7);
	ck_assert_uint_le(count_advised(), 9);
	heap_healthy();
}
