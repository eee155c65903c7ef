// Registered ranges of roots.
#include "test/harness/fault.h"
#include "test/harness/heap.h"

#include <errno.h>

#include "gc/mark/roots.h"
#include "gc/mark/work.h"
#include "runtime/os/oscall.h"
#include "test/harness/await.h"
#include "test/harness/unattached.h"

static void setup(void)
{
	heap_start_exact(heap_config(HEAP_QUIET));
}

static void teardown(void)
{
	ck_assert_int_eq(rt_fini(), RT_OK);
}

static void add(void *lo, size_t words)
{
	must(rt_roots_add(lo, (uintptr_t *)lo + words, RT_ROOT_EXACT));
}

static int take(void *lo, size_t words)
{
	return rt_roots_remove(lo, (uintptr_t *)lo + words);
}

enum { MANY = 10000 };
static void *slot[MANY];

static void fill_slots(void)
{
	for (unsigned i = 0; i < MANY; i++)
		slot[i] = rt_alloc(16 + i % 100);
}

GROUP(ranges, .setup = setup, .teardown = teardown);

TEST(ten_thousand_ranges_are_roots)
{
	uint64_t alive = 0;

	for (unsigned i = 0; i < MANY; i++)
		add(&slot[i], 1);
	ck_assert_uint_eq(roots_ranges(), MANY);
	fill_slots();
	ck_assert_uint_eq(heap_live_after_gc(), MANY);
	for (unsigned i = 0; i < MANY; i++)
		alive += rt_base(slot[i]) == slot[i];
	ck_assert_uint_eq(alive, MANY);
	// If every other range is removed, the objects of those ranges die.
	for (unsigned i = 0; i < MANY; i += 2)
		ck_assert_int_eq(take(&slot[i], 1), RT_OK);
	ck_assert_uint_eq(heap_live_after_gc(), MANY / 2);
	for (unsigned i = 1; i < MANY; i += 2)
		alive -= rt_base(slot[i]) == slot[i];
	ck_assert_uint_eq(alive, MANY / 2);
	for (unsigned i = MANY - 1; i < MANY; i -= 2)
		ck_assert_int_eq(take(&slot[i], 1), RT_OK);
	ck_assert_uint_eq(heap_live_after_gc(), 0);
	ck_assert_uint_eq(roots_ranges(), 0);
}

TEST(ranges_may_be_removed_in_any_order)
{
	uint32_t order[MANY];
	uint64_t wrong = 0;
	struct rng r;

	rng_init(&r, "ranges_may_be_removed_in_any_order");
	for (unsigned i = 0; i < MANY; i++) {
		add(&slot[i], 1);
		order[i] = i;
	}
	for (unsigned i = MANY - 1; i > 0; i--) {
		unsigned k = (unsigned)rng_below(&r, i + 1);
		uint32_t x = order[i];

		order[i] = order[k];
		order[k] = x;
	}
	fill_slots();
	for (unsigned i = 0; i < MANY; i++) {
		wrong += take(&slot[order[i]], 1) != RT_OK;
		wrong += take(&slot[order[i]], 1) != RT_ENOENT;
		if (i % 1000 == 999)
			ck_assert_uint_eq(heap_live_after_gc(), MANY - 1 - i);
	}
	ck_assert_uint_eq(wrong, 0);
}

TEST(overlapping_ranges_are_independent)
{
	add(slot, 10);
	add(slot + 5, 10);
	add(slot + 2, 4);
	fill_slots();
	ck_assert_uint_eq(heap_live_after_gc(), 15);
	ck_assert_int_eq(take(slot + 5, 10), RT_OK);
	ck_assert_uint_eq(heap_live_after_gc(), 10);
	ck_assert_int_eq(take(slot, 10), RT_OK);
	ck_assert_uint_eq(heap_live_after_gc(), 4);
	ck_assert_int_eq(take(slot + 2, 4), RT_OK);
	ck_assert_uint_eq(heap_live_after_gc(), 0);
}

TEST(range_added_twice_is_removed_twice)
{
	add(slot, 3);
	add(slot, 3);
	fill_slots();
	ck_assert_uint_eq(heap_live_after_gc(), 3);
	ck_assert_int_eq(take(slot, 3), RT_OK);
	ck_assert_uint_eq(heap_live_after_gc(), 3);
	ck_assert_int_eq(take(slot, 3), RT_OK);
	ck_assert_uint_eq(heap_live_after_gc(), 0);
	ck_assert_int_eq(take(slot, 3), RT_ENOENT);
}

TEST(only_the_same_pair_removes)
{
	add(slot + 4, 4);
	ck_assert_int_eq(take(slot + 4, 3), RT_ENOENT);
	ck_assert_int_eq(take(slot + 5, 3), RT_ENOENT);
	ck_assert_int_eq(take(slot + 3, 5), RT_ENOENT);
	ck_assert_int_eq(rt_roots_remove(NULL, NULL), RT_ENOENT);
	ck_assert_uint_eq(roots_ranges(), 1);
	ck_assert_int_eq(take(slot + 4, 4), RT_OK);
}

// A table that cannot grow refuses, keeps what it has, and grows later.
TEST(refused_growth_loses_nothing)
{
	uint64_t other_sys;
	unsigned n = 0;
	int error = RT_OK;

	fill_slots();
	add(&slot[n++], 1);
	fault_fail(OSCALL_MAP, 1, UINT64_MAX, ENOMEM);
	other_sys = heap_stats().other_sys;
	while (n < MANY) {
		error = rt_roots_add(&slot[n], &slot[n + 1], RT_ROOT_WORDS);
		if (error)
			break;
		n++;
	}
	ck_assert_int_eq(error, RT_ENOMEM);
	ck_assert_uint_eq(fault_failed(OSCALL_MAP), 1);
	ck_assert_uint_eq(roots_ranges(), n);
	ck_assert_int_eq(rt_roots_add(&slot[n], &slot[n + 1], 0), RT_ENOMEM);
	ck_assert_int_eq(take(&slot[n], 1), RT_ENOENT);
	ck_assert_uint_eq(heap_stats().other_sys, other_sys);
	fault_fail(OSCALL_MAP, 0, 0, 0);
	ck_assert_uint_eq(heap_live_after_gc(), n);
	add(&slot[n], 1);
	slot[n] = rt_alloc(16);
	ck_assert_uint_eq(heap_live_after_gc(), n + 1);
	for (unsigned i = 0; i <= n; i++)
		ck_assert_int_eq(take(&slot[i], 1), RT_OK);
	ck_assert_uint_eq(heap_live_after_gc(), 0);
}

// The very first range may be refused as well.
TEST(refused_first_range_is_no_memory)
{
	fault_fail(OSCALL_MAP, 1, 1, ENOMEM);
	ck_assert_int_eq(rt_roots_add(slot, slot + 1, 0), RT_ENOMEM);
	ck_assert_int_eq(rt_roots_add(slot, slot + 1, 0), RT_OK);
	ck_assert_uint_eq(roots_ranges(), 1);
}

// Pointers in the middle of static data of any type, some of it not 8 bytes
// long.
static struct mixed {
	char name[13];
	double ratio;
	void *first;
	uint32_t count;
	struct {
		uint64_t value;
		void *inner;
	} sub[3];
} mixed = {.ratio = 1e300, .count = 77};

TEST(interior_of_static_data_is_scanned)
{
	memset(mixed.name, 0xaa, sizeof mixed.name);
	must(rt_roots_add(&mixed, &mixed + 1, RT_ROOT_WORDS));
	mixed.first = rt_alloc(100);
	mixed.sub[0].inner = (char *)rt_alloc(1000) + 999;
	mixed.sub[2].inner = rt_alloc_noscan(50000);
	mixed.sub[2].value = (uintptr_t)rt_alloc(8) | 3;
	rt_alloc(100);
	ck_assert_uint_eq(heap_live_after_gc(), 4);
	memset(&mixed, 0xff, sizeof mixed);
	ck_assert_uint_eq(heap_live_after_gc(), 0);
}

// A range is read when the collection comes, up to its limit and no further.
TEST(range_ends_at_its_limit)
{
	add(slot + 10, 5);
	fill_slots();
	ck_assert_uint_eq(heap_live_after_gc(), 5);
	for (unsigned i = 10; i < 15; i++)
		ck_assert_ptr_eq(rt_base(slot[i]), slot[i]);
	slot[12] = NULL;
	ck_assert_uint_eq(heap_live_after_gc(), 4);
}

// A long range is read in pieces, none of which leaves a word out.
TEST(every_word_of_a_long_range_is_read, .n = 2)
{
	enum { WORDS = 3 * WORK_PIECE / sizeof(void *) + 5 };
	static void *word[WORDS];

	must(rt_roots_add(word, word + WORDS,
			  _i ? RT_ROOT_WORDS : RT_ROOT_EXACT));
	for (unsigned i = 0; i < WORDS; i++)
		ck_assert_ptr_nonnull(word[i] = rt_alloc_noscan(16));
	ck_assert_uint_eq(heap_live_after_gc(), WORDS);
}

// scan_globals returns the size of all ranges; overlaps count twice.
TEST(scanned_bytes_of_ranges_are_reported)
{
	add(slot, 100);
	add(slot + 50, 100);
	rt_gc();
	ck_assert_uint_eq(heap_metric("/gc/scan/globals:bytes"), 200 * 8);
}

// ---- what exact ranges hold ----

// exact_keeps tells whether an exact range with only this word keeps anything.
static bool exact_keeps(uintptr_t w)
{
	uint64_t live;

	slot[0] = (void *)w;
	live = heap_live_after_gc();
	ck_assert_uint_le(live, 1);
	return live != 0;
}

static uintptr_t new_object(int kind, size_t n)
{
	uintptr_t p;

	slot[0] = NULL;
	ck_assert_uint_eq(heap_live_after_gc(), 0);
	p = (uintptr_t)rt_alloc_kind(kind, n);
	ck_assert_uint_ne(p, 0);
	return p;
}

static void start_with(int align8, int guarded)
{
	rt_config c = heap_config(HEAP_QUIET);

	c.align8 = align8;
	c.guard_large = guarded;
	c.guard_small = (uint32_t)guarded;
	c.checkmark = 1;
	heap_start_exact(c);
}

static void references_alone_keep(int kind, size_t n)
{
	static const uintptr_t beside[] = {1, 2, 7, 8, 16, 4096};

	ck_assert(exact_keeps(new_object(kind, n)));
	for (unsigned i = 0; i < RT_ARRAY_LEN(beside); i++) {
		if (beside[i] <= n)
			ck_assert(
			    !exact_keeps(new_object(kind, n) + beside[i]));
		ck_assert(!exact_keeps(new_object(kind, n) - beside[i]));
	}
}

GROUP(heaps, .timeout = 60);

// This holds with Go's classes and without, and with guarded objects and
// without.
TEST(exact_ranges_hold_references_alone, .n = 4)
{
	static const size_t size[] = {24, 32, 96, 1000, 5000, 40000, 300000};

	start_with(_i & 1, _i >> 1);
	add(slot, 1);
	for (unsigned i = 0; i < RT_ARRAY_LEN(size); i++) {
		references_alone_keep(RT_WORDS, size[i]);
		references_alone_keep(RT_NOSCAN, size[i]);
	}
	teardown();
}

GROUP(ranges);

// Several small requests share 16 bytes.  The address of each is a reference.
TEST(exact_ranges_hold_small_requests)
{
	add(slot, 1);
	for (size_t n = 1; n < 16; n++) {
		uintptr_t first = new_object(RT_NOSCAN, n);
		uintptr_t second = (uintptr_t)rt_alloc_noscan(n);

		rt_alloc_noscan(16); // the next round combines with neither
		ck_assert(exact_keeps(second));
		slot[0] = NULL;
		ck_assert_uint_eq(heap_live_after_gc(), 0);
		ck_assert_uint_ne(first, second);
	}
}

// A range that was added once with each flag holds words until it has been
// removed twice.
TEST(a_range_with_both_flags_holds_words)
{
	uintptr_t p;

	add(slot, 1);
	ck_assert_int_eq(rt_roots_add(slot, slot + 1, RT_ROOT_WORDS), RT_OK);
	p = new_object(RT_WORDS, 100);
	ck_assert(exact_keeps(p + 24));
	ck_assert_int_eq(take(slot, 1), RT_OK);
	ck_assert(exact_keeps(p + 24));
	ck_assert_int_eq(take(slot, 1), RT_OK);
	ck_assert(!exact_keeps(p + 24));
	ck_assert_int_eq(take(slot, 1), RT_ENOENT);
}

// ---- how long it takes ----

enum { LOTS = 1000000 / (RT_ASAN || RT_TSAN ? 10 : 1) };

GROUP(threads, .setup = setup, .teardown = teardown, .timeout = 60);

// Looking through the table for each range would take minutes.
TEST(lots_of_ranges_are_removed_oldest_first)
{
	void **lots = calloc(LOTS, sizeof *lots);
	uint64_t wrong = 0;

	ck_assert_ptr_nonnull(lots);
	for (unsigned i = 0; i < LOTS; i++)
		wrong += rt_roots_add(&lots[i], &lots[i] + 1, 0) != RT_OK;
	ck_assert_uint_eq(roots_ranges(), LOTS);
	for (unsigned i = 0; i < LOTS; i++)
		wrong += take(&lots[i], 1) != RT_OK;
	ck_assert_uint_eq(wrong, 0);
	ck_assert_uint_eq(roots_ranges(), 0);
	free(lots);
}

TEST(a_range_may_be_added_lots_of_times)
{
	for (unsigned i = 0; i < LOTS; i++)
		add(slot, 3);
	add(slot + 1, 3);
	ck_assert_uint_eq(roots_ranges(), 2);
	for (unsigned i = 0; i < LOTS; i++)
		ck_assert_int_eq(take(slot, 3), RT_OK);
	ck_assert_int_eq(take(slot, 3), RT_ENOENT);
	ck_assert_uint_eq(roots_ranges(), 1);
}

// ---- threads ----

static int remove_slots(void)
{
	return take(slot, 4);
}

static int add_slots(void)
{
	return rt_roots_add(slot, slot + 4, 0);
}

static struct unattached unattached = {
    .remove = remove_slots, .add = add_slots, .count = roots_ranges};

TEST(an_unattached_thread_removes)
{
	add(slot, 4);
	fill_slots();
	unattached_removes(&unattached);
	ck_assert_uint_eq(heap_live_after_gc(), 0);
}

GROUP(ranges);

TEST(a_thread_in_a_region_removes)
{
	add(slot, 4);
	fill_slots();
	ck_assert_int_eq(rt_blocking_enter(), RT_OK);
	ck_assert_int_eq(take(slot, 4), RT_OK);
	ck_assert_int_eq(take(slot, 4), RT_ENOENT);
	ck_assert_int_eq(rt_roots_add(slot, slot + 4, 0), RT_ESTATE);
	ck_assert_int_eq(rt_blocking_leave(), RT_OK);
	ck_assert_uint_eq(heap_live_after_gc(), 0);
}

GROUP(threads);

// A marker may be reading the table.
TEST(removing_waits_for_the_end_of_a_stop)
{
	add(slot, 4);
	unattached_waits(&unattached);
}

GROUP(heaps);

TEST(removing_without_a_heap_is_refused)
{
	ck_assert_int_eq(take(slot, 4), RT_ESTATE);
	setup();
	add(slot, 4);
	teardown();
	ck_assert_int_eq(take(slot, 4), RT_ESTATE);
}

// The ranges of an attached thread are removed by a thread that never attaches,
// while collections pass.
static atomic_u32 handed; // ranges added so far
enum { HANDED = 2000 / HEAP_CUT };

static void *remove_handed(void *arg)
{
	for (uint32_t i = 0; i < HANDED; i++) {
		await_at_least(&handed, i + 1);
		if (take(&slot[i], 1) != RT_OK)
			return NULL;
	}
	return arg;
}

GROUP(threads);

TEST(ranges_are_handed_over_beside_collections)
{
	pthread_t thread = start_thread(remove_handed, slot);
	void *done;

	for (uint32_t i = 0; i < HANDED; i++) {
		add(&slot[i], 1);
		slot[i] = rt_alloc(32);
		atomic_u32_add_release(&handed, 1);
		if (i % 16 == 0)
			ck_assert_int_eq(rt_gc(), RT_OK);
	}
	done = join_beside(thread);
	ck_assert_ptr_nonnull(done);
	ck_assert_uint_eq(roots_ranges(), 0);
	ck_assert_uint_eq(heap_live_after_gc(), 0);
}

enum { THREADS = 4, ROUNDS = 3000 / (RT_ASAN || RT_TSAN ? 10 : 1) };

static atomic_u64 lost;

// churn adds and removes ranges of its own part of the slots, and verifies that
// its objects live while collections pass.
static void *churn(void *arg)
{
	void **mine = arg;
	uint64_t wrong = 0;

	if (rt_thread_attach(RT_THREAD_EXACT) != RT_OK)
		return NULL;
	for (unsigned i = 0; i < ROUNDS; i++) {
		void **at = mine + i % 100;

		wrong += rt_roots_add(at, at + 1, RT_ROOT_EXACT) != RT_OK;
		*at = rt_alloc(32);
		*(uintptr_t *)*at = (uintptr_t)at;
		if (i % 50 == 0)
			wrong += rt_gc() != RT_OK;
		rt_safepoint();
		wrong +=
		    *(uintptr_t *)*at != (uintptr_t)at || rt_base(*at) != *at;
		if (i % 100 >= 50)
			for (unsigned k = 0; k < 2 && i % 2; k++)
				wrong += rt_roots_remove(at - k, at - k + 1) !=
					 RT_OK;
	}
	atomic_u64_add_relaxed(&lost, wrong);
	ck_assert_int_eq(rt_thread_detach(), RT_OK);
	return mine;
}

TEST(threads_change_the_table_at_once)
{
	pthread_t t[THREADS];

	for (unsigned i = 0; i < THREADS; i++)
		t[i] = start_thread(churn, slot + 200 * i);
	ck_assert_int_eq(rt_blocking_enter(), RT_OK);
	for (unsigned i = 0; i < THREADS; i++) {
		void *done;

		done = join_thread(t[i]);
		ck_assert_ptr_nonnull(done);
	}
	ck_assert_int_eq(rt_blocking_leave(), RT_OK);
	ck_assert_uint_eq(atomic_u64_load_relaxed(&lost), 0);
	// The last fifty of each hundred additions were removed again.  The
	// other fifty ranges were added again in each following hundred.
	ck_assert_uint_eq(roots_ranges(), THREADS * 50);
	ck_assert_uint_eq(heap_live_after_gc(), THREADS * 50);
	for (unsigned i = 0; i < THREADS * (ROUNDS / 100) * 50; i++)
		must(take(slot + i / (ROUNDS / 100) / 50 * 200 +
			      i / (ROUNDS / 100) % 50,
			  1));
	ck_assert_uint_eq(roots_ranges(), 0);
}
