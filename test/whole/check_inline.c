// Inline allocation: every size in every form gets the slot that the library's
// own table says.  Cleared objects are zero even among objects that are not
// cleared.
#include <pthread.h>

#include "runtime/base/sizeclass.h"
#include "test/harness/await.h"
#include "test/harness/heap.h"

enum {
	LARGEST = RT_INLINE_MAX + 80, // some that are not inline
	EACH = 3,		      // of a size; the last are inline
	OBJECTS = 3000,
};

static void *root[OBJECTS];

static void setup(void)
{
	rt_config c = heap_config(HEAP_QUIET);

	heap_start_exact(c);
	must(rt_roots_add(root, root + OBJECTS, RT_ROOT_EXACT));
}

// ---- sizes ----

// slot_size returns the size of the slot that holds n bytes, by a plain search
// of the table.
static size_t slot_size(bool noscan, size_t n)
{
	unsigned c = 1;

	if (noscan && n < RT_NOSCAN_MIN)
		return 16;
	if (noscan && n <= 8)
		return 8;
	while (sizeclass_table[c].size < n || sizeclass_table[c].size % 16)
		c++;
	return sizeclass_table[c].size;
}

// prime makes runs for the classes beside the class of n bytes.  Without them,
// an inline allocation that chose a wrong class would call the library, which
// would choose the right one.
static void prime(void *(*alloc)(size_t n), bool noscan, size_t n)
{
	size_t size = slot_size(noscan, n);
	size_t step = size > 768 ? 128 : size > 512 ? 64 : size > 256 ? 32 : 16;

	for (int i = 0; i < 2; i++) {
		rt_keep_alive(alloc(size + 1));
		rt_keep_alive(alloc(size > step ? size - step : 1));
	}
}

// expect_slot verifies an object, and writes all of its bytes.
static void expect_slot(const char *form, bool noscan, size_t n, char *p)
{
	size_t size = slot_size(noscan, n);

	if (!p || rt_size(p) != size)
		ck_abort_msg("%s(%zu): size %zu, not %zu", form, n, rt_size(p),
			     size);
	if (n >= RT_NOSCAN_MIN && rt_base(p) != p)
		ck_abort_msg("%s(%zu): not where a slot begins", form, n);
	memset(p, 0xff, n);
}

static void *call_words(size_t n)
{
	return (rt_alloc)(n);
}

static void *call_noscan(size_t n)
{
	return (rt_alloc_noscan)(n);
}

static void *call_uninit(size_t n)
{
	return (rt_alloc_noscan_uninit)(n);
}

static void *call_in(size_t n)
{
	return (rt_alloc_in)(rt_thread_self(), n);
}

static void *call_noscan_in(size_t n)
{
	return (rt_alloc_noscan_in)(rt_thread_self(), n);
}

static void *call_kind_words(size_t n)
{
	return rt_alloc_kind(RT_WORDS, n);
}

static void *call_kind_noscan(size_t n)
{
	return rt_alloc_kind(RT_NOSCAN, n);
}

static void *inline_words(size_t n)
{
	return rt_alloc(n);
}

static void *inline_noscan(size_t n)
{
	return rt_alloc_noscan(n);
}

static void *inline_uninit(size_t n)
{
	return rt_alloc_noscan_uninit(n);
}

static void *inline_in(size_t n)
{
	return rt_alloc_in(rt_thread_self(), n);
}

static void *inline_noscan_in(size_t n)
{
	return rt_alloc_noscan_in(rt_thread_self(), n);
}

static void *inline_kind_words(size_t n)
{
	return rt_alloc_kind_in(rt_thread_self(), RT_WORDS, n);
}

static void *inline_kind_noscan(size_t n)
{
	return rt_alloc_kind_in(rt_thread_self(), RT_NOSCAN, n);
}

static const struct {
	const char *name;
	void *(*alloc)(size_t n);
	bool noscan;
} forms[] = {
    {"rt_alloc", call_words, false},
    {"rt_alloc_noscan", call_noscan, true},
    {"rt_alloc_noscan_uninit", call_uninit, true},
    {"rt_alloc_in", call_in, false},
    {"rt_alloc_noscan_in", call_noscan_in, true},
    {"rt_alloc_kind(RT_WORDS)", call_kind_words, false},
    {"rt_alloc_kind(RT_NOSCAN)", call_kind_noscan, true},
    {"rt_alloc inline", inline_words, false},
    {"rt_alloc_noscan inline", inline_noscan, true},
    {"rt_alloc_noscan_uninit inline", inline_uninit, true},
    {"rt_alloc_in inline", inline_in, false},
    {"rt_alloc_noscan_in inline", inline_noscan_in, true},
    {"rt_alloc_kind_in(RT_WORDS)", inline_kind_words, false},
    {"rt_alloc_kind_in(RT_NOSCAN)", inline_kind_noscan, true},
};

GROUP(inline, .setup = setup, .timeout = 60);

TEST(every_size_has_the_slot_of_its_class, .n = RT_ARRAY_LEN(forms))
{
	for (size_t n = 1; n <= LARGEST; n++) {
		prime(forms[_i].alloc, forms[_i].noscan, n);
		for (int i = 0; i < EACH; i++)
			expect_slot(forms[_i].name, forms[_i].noscan, n,
				    forms[_i].alloc(n));
	}
	ck_assert_uint_eq(heap_live_after_gc(), 0);
}

// A constant size is looked up by the compiler.
#define ONE(n)                                                                 \
	prime(inline_words, false, (n));                                       \
	prime(inline_noscan, true, (n));                                       \
	prime(inline_uninit, true, (n));                                       \
	expect_slot("constant rt_alloc", false, (n), rt_alloc(n));             \
	expect_slot("constant rt_alloc_noscan", true, (n),                     \
		    rt_alloc_noscan(n));                                       \
	expect_slot("constant rt_alloc_noscan_uninit", true, (n),              \
		    rt_alloc_noscan_uninit(n));
// A size and the two beside it.
#define EDGE(n) ONE((n)-1) ONE(n) ONE((n) + 1)

static void constants_to_128(void)
{
	ONE(1)
	ONE(2)
	ONE(3)
	ONE(4) ONE(5) ONE(6) ONE(7) ONE(8) EDGE(10) EDGE(13) EDGE(16) EDGE(24)
	    EDGE(32) EDGE(48) EDGE(64) EDGE(80) EDGE(96) EDGE(112) EDGE(128)
}

static void constants_to_320(void)
{
	EDGE(144)
	EDGE(160)
	EDGE(176)
	EDGE(192) EDGE(208) EDGE(224) EDGE(240) EDGE(256) EDGE(288) EDGE(320)
}

static void constants_to_1024(void){
    EDGE(352) EDGE(384) EDGE(416) EDGE(448) EDGE(480) EDGE(512) EDGE(576)
	EDGE(640) EDGE(704) EDGE(768) EDGE(896) ONE(1023) ONE(1024)}

// One function with all constants would take a compiler minutes.
TEST(a_constant_size_has_the_slot_of_its_class)
{
	for (int i = 0; i < EACH; i++) {
		constants_to_128();
		constants_to_320();
		constants_to_1024();
	}
}

// ---- slots that are not cleared ----

// mixed allocates objects of n bytes, by turns cleared and not cleared, fills
// them all, and keeps every third.  It returns how many of the cleared ones
// were not zero.
static unsigned mixed(size_t n)
{
	unsigned wrong = 0;

	for (unsigned i = 0; i < OBJECTS; i++) {
		bool uninit = i % 2;
		char *p =
		    uninit ? rt_alloc_noscan_uninit(n) : rt_alloc_noscan(n);

		wrong += !uninit && !heap_is_zero(p, n);
		memset(p, 0x77, n);
		root[i] = i % 3 == 0 ? p : NULL;
	}
	return wrong;
}

TEST(cleared_slots_are_zero_beside_others)
{
	for (size_t n = RT_NOSCAN_MIN; n <= RT_INLINE_MAX + 256; n += 61)
		for (int round = 0; round < 4; round++) {
			ck_assert_uint_eq(mixed(n), 0);
			ck_assert_uint_eq(heap_live_after_gc(), OBJECTS / 3);
		}
}

// The contents of dead objects are seen, so no time was spent on clearing them.
TEST(slots_that_need_not_be_zero_are_not_cleared)
{
	static const size_t sizes[] = {8, 16, 64, 100, 256, 1024};

	for (size_t k = 0; k < RT_ARRAY_LEN(sizes); k++) {
		unsigned old = 0;

		mixed(sizes[k]);
		ck_assert_uint_eq(heap_live_after_gc(), OBJECTS / 3);
		for (int i = 0; i < OBJECTS / 3; i++) {
			const char *p = rt_alloc_noscan_uninit(sizes[k]);

			old += p[sizes[k] - 1] == 0x77;
		}
		ck_assert_uint_ge(old, OBJECTS / 4);
	}
}

// When the caches are flushed, the used slots of both runs of a class are
// counted, and the unused slots are freed.
TEST(both_runs_of_a_class_are_counted)
{
	for (size_t n = 16; n <= RT_INLINE_MAX; n *= 2)
		for (unsigned i = 0; i < 40; i++) {
			rt_memstats before = heap_stats(), after;

			for (unsigned k = 0; k < i; k++)
				rt_keep_alive(rt_alloc_noscan_uninit(n));
			for (unsigned k = 0; k < 40 - i; k++)
				rt_keep_alive(rt_alloc_noscan(n));
			after = heap_stats();
			ck_assert_uint_eq(after.mallocs - before.mallocs, 40);
			ck_assert_uint_eq(
			    after.total_alloc - before.total_alloc, 40 * n);
			ck_assert_uint_eq(after.heap_objects,
					  before.heap_objects + 40);
		}
	heap_live();
	ck_assert_uint_eq(heap_live_after_gc(), 0);
}

// When one run of a class is used up, the other run stays in use.
TEST(neither_run_of_a_class_ends_the_other)
{
	enum { N = 5000 };

	for (size_t n = 8; n <= RT_INLINE_MAX; n *= 2) {
		rt_memstats before = heap_stats(), after;

		for (unsigned i = 0; i < N; i++) {
			rt_keep_alive(rt_alloc_noscan_uninit(n));
			if (i % 3 != 0)
				rt_keep_alive(rt_alloc_noscan(n));
		}
		after = heap_stats();
		ck_assert_uint_eq(after.mallocs - before.mallocs,
				  N + N - (N + 2) / 3);
	}
	ck_assert_uint_eq(heap_live_after_gc(), 0);
}

// ---- threads that may not allocate ----

static const size_t lengths[] = {
    16, RT_INLINE_MAX, RT_INLINE_MAX + 1, 4096, 32760, 32761,
};

static void *any_of(size_t n, unsigned i)
{
	switch (i % 3) {
	case 0:
		return rt_alloc(n);
	case 1:
		return rt_alloc_noscan(n);
	default:
		return rt_alloc_noscan_uninit(n);
	}
}

// A thread in a blocking region or in its own stop gets nothing, although its
// cache has room: six objects of each length were allocated before.
TEST(a_thread_that_may_not_allocate_gets_nothing, .n = 2)
{
	for (size_t i = 0; i < RT_ARRAY_LEN(lengths); i++)
		for (unsigned k = 0; k < 6; k++)
			ck_assert_ptr_nonnull(any_of(lengths[i], k));
	must(_i == 0 ? rt_blocking_enter()
		     : rt_stop_the_world(RT_STOP_HOST));
	for (size_t i = 0; i < RT_ARRAY_LEN(lengths); i++)
		for (unsigned k = 0; k < 3; k++)
			ck_assert_ptr_null(any_of(lengths[i], k));
	must(_i == 0 ? rt_blocking_leave() : rt_start_the_world(NULL));
	for (size_t i = 0; i < RT_ARRAY_LEN(lengths); i++)
		ck_assert_ptr_nonnull(any_of(lengths[i], 0));
	heap_healthy();
}

static atomic_u32 looping, loop_ends;

// loop allocates and frees the same slot, which the cache always has.
static void *loop(void *arg)
{
	must(rt_thread_attach(RT_THREAD_EXACT));
	while (atomic_u32_load_acquire(&loop_ends) == 0) {
		if (rt_free(rt_alloc_noscan(4096)) != RT_OK)
			abort();
		atomic_u32_store_release(&looping, 1);
	}
	must(rt_thread_detach());
	return arg;
}

TEST(a_stop_waits_for_no_cache_to_be_empty)
{
	pthread_t thread;

	must(pthread_create(&thread, NULL, loop, NULL));
	must(rt_blocking_enter());
	await_at_least(&looping, 1);
	must(rt_blocking_leave());
	for (unsigned i = 0; i < 10; i++) {
		must(rt_stop_the_world(RT_STOP_HOST));
		must(rt_start_the_world(NULL));
	}
	atomic_u32_store_release(&loop_ends, 1);
	must(rt_blocking_enter());
	must(pthread_join(thread, NULL));
	must(rt_blocking_leave());
}

// Objects that are too long for the inline path count for the pacer as inline
// ones do: the heap does not grow far beyond its goal.
TEST(long_objects_keep_the_goal, .n = RT_ARRAY_LEN(lengths) - 2)
{
	enum { BYTES = 32 << 20, SLACK = 128 << 10 };
	size_t length = lengths[_i + 2]; // the first two are inline
	uint64_t goal;

	must(rt_set_gc_percent(100, NULL));
	goal = heap_metric("/gc/heap/goal:bytes");
	for (size_t bytes = 0; bytes < BYTES; bytes += length) {
		if (!rt_alloc_noscan(length))
			ck_abort_msg("no memory");
		if (rt_heap_live() > goal + SLACK)
			goal =
			    base_max(goal, heap_metric("/gc/heap/goal:bytes"));
		if (rt_heap_live() > goal + SLACK)
			ck_abort_msg("%zu are beyond the goal of %zu",
				     (size_t)rt_heap_live(), (size_t)goal);
	}
	ck_assert_uint_gt(heap_stats().num_gc, 0);
}
