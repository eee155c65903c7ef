// Kinds that a host registers: their numbers, what is refused, allocation.
#include <rt/rt.h>

#include <pthread.h>
#include <string.h>

#include "runtime/pages/arena.h"
#include "runtime/spans/kinds.h"
#include "test/harness/fault.h"
#include "test/harness/heap.h"
#include "test/whole/kinds.h"
#include "test/harness/thread.h"

GROUP(numbers, .timeout = 60);

TEST(numbers_are_given_in_order)
{
	heap_start_exact(heap_config(HEAP_QUIET));
	for (int k = RT_KIND_FIRST; k < RT_KIND_ALIGN8_FIRST; k++)
		ck_assert_int_eq(add_words(RT_KIND_ANY), k);
	ck_assert_int_eq(add_words(RT_KIND_ANY), RT_ENOMEM);
	for (int k = RT_KIND_ALIGN8_FIRST; k <= RT_KIND_MAX; k++)
		ck_assert_int_eq(add_words(RT_KIND_ANY_ALIGN8), k);
	ck_assert_int_eq(add_words(RT_KIND_ANY_ALIGN8), RT_ENOMEM);
	ck_assert_int_eq(rt_kind_unregister(7), RT_OK);
	ck_assert_int_eq(rt_kind_unregister(7), RT_ENOENT);
	ck_assert_int_eq(add_words(RT_KIND_ANY), 7);
}

TEST(a_number_that_is_taken_is_refused)
{
	heap_start_exact(heap_config(HEAP_QUIET));
	ck_assert_int_eq(add_words(9), 9);
	ck_assert_int_eq(add_words(9), RT_EEXIST);
	ck_assert_int_eq(rt_kind_unregister(9), RT_OK);
	ck_assert_int_eq(add_words(9), 9);
}

// The next heap has none of the last one's kinds.
TEST(kinds_end_with_the_heap)
{
	for (int i = 0; i < 3; i++) {
		heap_start_exact(heap_config(HEAP_QUIET));
		ck_assert_ptr_null(rt_alloc_kind(5, 16));
		ck_assert_int_eq(add_words(5), 5);
		ck_assert_ptr_nonnull(rt_alloc_kind(5, 16));
		ck_assert_int_eq(rt_fini(), RT_OK);
	}
}

// A collection looks only at kinds that may have spans (kinds_used).
TEST(a_kind_is_used_from_its_first_span_on)
{
	static void *root[2];
	uint32_t none;

	heap_start_exact(heap_config(HEAP_QUIET));
	none = kinds_used();
	ck_assert_int_eq(add_words(4), 4);
	ck_assert_int_eq(add_words(5), 5);
	ck_assert_uint_eq(kinds_used(), none);
	ck_assert_int_eq(rt_roots_add(root, root + 2, RT_ROOT_EXACT), RT_OK);
	root[0] = rt_alloc_kind(4, 64);
	ck_assert_uint_eq(kinds_used(), none | 1u << 4);
	root[1] = rt_alloc_kind(5, 100000);
	ck_assert_uint_eq(kinds_used(), none | 1u << 4 | 1u << 5);
	ck_assert_int_eq(rt_gc(), RT_OK);
	ck_assert_int_eq(rt_kind_of(root[0]), 4);
	ck_assert_int_eq(rt_kind_of(root[1]), 5);
	heap_healthy();
	root[0] = root[1] = NULL;
	ck_assert_int_eq(rt_gc(), RT_OK);
	ck_assert_int_eq(rt_kind_unregister(5), RT_OK);
	ck_assert_uint_eq(kinds_used(), none | 1u << 4);
	ck_assert_int_eq(add_words(5), 5);
	ck_assert_uint_eq(kinds_used(), none | 1u << 4);
	ck_assert_int_eq(rt_roots_remove(root, root + 2), RT_OK);
	heap_healthy();
}

static void *use_eight_kinds(void *arg)
{
	ck_assert_int_eq(rt_thread_attach(0), RT_OK);
	for (int k = RT_KIND_FIRST; k < RT_KIND_FIRST + 8; k++)
		ck_assert_ptr_nonnull(rt_alloc_kind(k, 64));
	ck_assert_int_eq(rt_thread_detach(), RT_OK);
	return arg;
}

// mappings returns how often a thread that uses eight kinds maps memory.
static uint64_t mappings(void)
{
	static const enum oscall calls[] = {OSCALL_MAP, OSCALL_RESERVE,
					    OSCALL_COMMIT};
	uint64_t n = 0;

	for (unsigned i = 0; i < RT_ARRAY_LEN(calls); i++)
		fault_fail(calls[i], 1, 0, 0);
	run_thread(use_eight_kinds, NULL);
	for (unsigned i = 0; i < RT_ARRAY_LEN(calls); i++)
		n += fault_count(calls[i]);
	return n;
}

// The memory that the first thread's cache had for its kinds is kept for the
// next thread.
TEST(the_second_thread_that_uses_kinds_maps_nothing)
{
	heap_start_exact(heap_config(HEAP_QUIET));
	for (int k = RT_KIND_FIRST; k < RT_KIND_FIRST + 8; k++)
		ck_assert_int_eq(add_words(k), k);
	ck_assert_uint_gt(mappings(), 0);
	ck_assert_uint_eq(mappings(), 0);
}

TEST(a_kind_with_objects_is_busy)
{
	static void *root[1];

	heap_start_exact(heap_config(HEAP_QUIET));
	ck_assert_int_eq(rt_roots_add(root, root + 1, RT_ROOT_EXACT), RT_OK);
	for (int n = 16; n < 1 << 20; n *= 4) {
		int k = add_words(RT_KIND_ANY);

		root[0] = rt_alloc_kind(k, (size_t)n);
		rt_alloc_kind(k, 48); // garbage in another span
		ck_assert_int_eq(rt_kind_unregister(k), RT_EBUSY);
		ck_assert_int_eq(rt_gc(), RT_OK);
		ck_assert_int_eq(rt_kind_unregister(k), RT_EBUSY);
		root[0] = NULL;
		ck_assert_int_eq(rt_gc(), RT_OK);
		ck_assert_int_eq(rt_kind_unregister(k), RT_OK);
		ck_assert_ptr_null(rt_alloc_kind(k, (size_t)n));
		ck_assert_uint_eq(heap_live(), 0);
	}
}

// A cached span without objects does not make its kind busy.
TEST(an_empty_span_is_no_object)
{
	int k;

	heap_start_exact(heap_config(HEAP_QUIET));
	k = add_words(RT_KIND_ANY);
	rt_alloc_kind(k, 32);
	ck_assert_int_eq(rt_gc(), RT_OK);
	ck_assert_int_eq(rt_kind_unregister(k), RT_OK);
	ck_assert_uint_eq(heap_stats().heap_inuse, 0);
}

TEST(answers_in_every_state)
{
	rt_kind_desc d = words_kind(RT_KIND_ANY);
	rt_config c = heap_config(HEAP_QUIET);
	int here;

	ck_assert_int_eq(rt_kind_register(&d), RT_ESTATE);
	ck_assert_int_eq(rt_kind_unregister(3), RT_ESTATE);
	ck_assert_int_eq(rt_kind_of(&here), RT_ESTATE);
	c.no_attach = 1;
	ck_assert_int_eq(rt_init(&c), RT_OK);
	ck_assert_int_eq(rt_kind_register(&d), RT_EPERM);
	ck_assert_int_eq(rt_kind_unregister(3), RT_EPERM);
	ck_assert_int_eq(rt_kind_of(&here), RT_ENOENT);
	ck_assert_int_eq(rt_thread_attach(0), RT_OK);
	ck_assert_int_eq(rt_kind_unregister(3), RT_ENOENT);
	ck_assert_int_eq(rt_kind_unregister(RT_WORDS), RT_EINVAL);
	ck_assert_int_eq(rt_kind_unregister(24), RT_EINVAL);
	ck_assert_int_eq(rt_kind_unregister(-1), RT_EINVAL);
	ck_assert_int_eq(rt_stop_the_world(RT_STOP_HOST), RT_OK);
	ck_assert_int_eq(rt_kind_register(&d), RT_EBUSY);
	ck_assert_int_eq(rt_kind_unregister(3), RT_EBUSY);
	ck_assert_int_eq(rt_start_the_world(NULL), RT_OK);
}

// ---- what is refused ----

#define FORMATS(X)                                                             \
	X(f.shift = 17)                                                        \
	X(f.shift = -17)                                                       \
	X(f.stride = 0)                                                        \
	X(f.stride = 12)                                                       \
	X(f.test_at = 1)                                                       \
	X(f.test_at = -1)                                                      \
	X((f.stride = 16, f.test_at = 2))                                      \
	X((f.stride = 16, f.test_at = -2))                                     \
	X(f.spare = 1)                                                         \
	X(f.flags = 1)

#define TYPES(X)                                                               \
	X(y.struct_size = 0)                                                   \
	X(y.struct_size--)                                                     \
	X(y.ptrdata = 4)                                                       \
	X(y.ptrdata = 24)                                                      \
	X(y.bitmap = NULL)                                                     \
	X(y.tail_size = 12)                                                    \
	X(y.size = 12)                                                         \
	X(y.tail_ptrdata = 12)                                                 \
	X(y.tail_ptrdata = 24)                                                 \
	X(y.tail_bitmap = NULL)                                                \
	X((y.size = 8, y.format = &pair))                                      \
	X(y.format = &pair_behind)

#define DESCS(X)                                                               \
	X(WORDS, d.struct_size = 0)                                            \
	X(WORDS, d.struct_size--)                                              \
	X(WORDS, d.layout = -1)                                                \
	X(WORDS, d.layout = RT_LAYOUT_TRACE + 1)                               \
	X(WORDS, d.flags = 1)                                                  \
	X(WORDS, d.spare = 1)                                                  \
	X(WORDS, d.number = 1)                                                 \
	X(WORDS, d.number = 2)                                                 \
	X(WORDS, d.number = -2)                                                \
	X(WORDS, d.number = 24)                                                \
	X(TYPE, d.type = NULL)                                                 \
	X(HEADER, d.header_offset = 4)                                         \
	X(HEADER, d.header_mask = 0)                                           \
	X(HEADER, d.header_shift = 64)                                         \
	X(HEADER, d.type_offset = 4)                                           \
	X(INDEX, d.header_offset = 4)                                          \
	X(INDEX, d.header_mask = 0)                                            \
	X(INDEX, d.header_shift = 64)                                          \
	X(INDEX, d.types = NULL)                                               \
	X(INDEX, d.ntypes = 0)                                                 \
	X(NONE, d.format = &plain)                                             \
	X(NONE, d.trace = trace_nothing)                                       \
	X(WORDS, d.type = &good_type)                                          \
	X(TYPE, d.format = &plain)                                             \
	X(HEADER, d.type = &good_type)                                         \
	X(HEADER, d.trace = trace_nothing)                                     \
	X(TRACE, d.types = type_table)                                         \
	X(TRACE, d.trace = NULL)

static int format_answer(const rt_value_format *f)
{
	rt_type y = good_type;
	rt_kind_desc d = words_kind(RT_KIND_ANY);
	int answer;

	y.format = d.format = f;
	answer = rt_type_check(&y);
	ck_assert_int_eq(rt_kind_register(&d) > 0, answer == RT_OK);
	return answer;
}

#define EXPECT_FORMAT(change)                                                  \
	{                                                                      \
		rt_value_format f = RT_FORMAT_PLAIN;                           \
		change;                                                        \
		ck_assert_msg(format_answer(&f) == RT_EINVAL, #change);        \
	}
#define EXPECT_TYPE(change)                                                    \
	{                                                                      \
		rt_type y = good_type;                                         \
		rt_kind_desc d = good_desc(RT_LAYOUT_TYPE);                    \
		change;                                                        \
		d.type = &y;                                                   \
		ck_assert_msg(rt_type_check(&y) == RT_EINVAL, #change);        \
		ck_assert_msg(rt_kind_register(&d) == RT_EINVAL, #change);     \
	}
#define EXPECT_DESC(how, change)                                               \
	{                                                                      \
		rt_kind_desc d = good_desc(RT_LAYOUT_##how);                   \
		int k = rt_kind_register(&d);                                  \
		ck_assert_msg(k > 0 && rt_kind_unregister(k) == RT_OK, #how);  \
		change;                                                        \
		ck_assert_msg(rt_kind_register(&d) == RT_EINVAL, #change);     \
	}

TEST(each_field_is_checked_by_itself)
{
	heap_start_exact(heap_config(HEAP_QUIET));
	ck_assert_int_eq(rt_type_check(&good_type), RT_OK);
	ck_assert_int_eq(rt_type_check(NULL), RT_EINVAL);
	ck_assert_int_eq(rt_kind_register(NULL), RT_EINVAL);
	rt_kind_desc_init_sized(NULL, 8);
	FORMATS(EXPECT_FORMAT)
	TYPES(EXPECT_TYPE)
	DESCS(EXPECT_DESC)
	// None of these calls registered a kind.
	ck_assert_int_eq(add_words(RT_KIND_ANY), RT_KIND_FIRST);
}

// ---- allocation ----

GROUP(allocation, .timeout = 60);

// size_of returns the bytes that n bytes of a kind take.
static size_t size_of(int kind, size_t n)
{
	if (kind >= RT_KIND_ALIGN8_FIRST && n > 16 && n <= 24)
		return 24;
	return rt_good_size(n);
}

TEST(objects_have_the_size_and_alignment_of_their_kind, .n = 2)
{
	static const size_t sizes[] = {1,    8,	   15,	 16,	17,    24,
				       25,   32,   40,	 48,	100,   1000,
				       1024, 1025, 5000, 32760, 32761, 100000};
	rt_config c = heap_config(HEAP_QUIET);
	int numbers[] = {4, 15, 16, 23};

	c.gcstress = _i == 1; // no allocation is inline
	heap_start_exact(c);
	for (unsigned i = 0; i < RT_ARRAY_LEN(numbers); i++) {
		ck_assert_int_eq(add_words(numbers[i]), numbers[i]);
		for (unsigned j = 0; j < RT_ARRAY_LEN(sizes); j++) {
			char *p = rt_alloc_of(numbers[i], sizes[j]);
			size_t size = size_of(numbers[i], sizes[j]);

			ck_assert_ptr_nonnull(p);
			ck_assert(heap_is_zero(p, sizes[j]));
			memset(p, 0x55, sizes[j]);
			ck_assert_uint_eq((uintptr_t)p % (size == 24 ? 8 : 16),
					  0);
			ck_assert_uint_eq(rt_size(p), size);
			ck_assert_uint_eq(rt_good_size_of(numbers[i], sizes[j]),
					  size);
			ck_assert_ptr_eq(rt_base(p + sizes[j] - 1), p);
			ck_assert_int_eq(rt_kind_of(p + sizes[j] / 2),
					 numbers[i]);
		}
	}
	ck_assert_uint_eq(heap_live_after_gc(), 0);
}

// Allocation inline, by a function and with a thread, with kind and size
// constant or not, gives objects of one size and kind.
TEST(all_ways_allocate_the_same)
{
	enum { FIRST = RT_KIND_ALIGN8_FIRST }; // with a class of 24 bytes
	volatile int kind = FIRST;
	volatile size_t n = 24;

	heap_start_exact(heap_config(HEAP_QUIET));
	ck_assert_int_eq(add_words(FIRST), FIRST);
	for (int i = 0; i < 5000; i++) {
		char *p[] = {
		    rt_alloc_of(FIRST, 24),
		    rt_alloc_of(kind, 24),
		    rt_alloc_of(FIRST, n),
		    rt_alloc_of(kind, n),
		    rt_alloc_kind(kind, n),
		    (rt_alloc_of)(FIRST, 24),
		    rt_alloc_kind_in(rt_thread_self(), FIRST, 24),
		    (rt_alloc_kind_in)(rt_thread_self(), kind, n),
		};

		for (unsigned k = 0; k < RT_ARRAY_LEN(p); k++) {
			ck_assert(p[k] && heap_is_zero(p[k], 24));
			ck_assert_uint_eq(rt_size(p[k]), 24);
			ck_assert_int_eq(rt_kind_of(p[k]), FIRST);
			memset(p[k], 0xff, 24);
		}
	}
	ck_assert_uint_eq(heap_stats().mallocs, 40000);
	ck_assert_uint_eq(heap_live(), 40000);
}

TEST(no_kind_no_object)
{
	static const int none[] = {-1, 2, 3, 15, 16, 23, 24, 1000, INT32_MAX};

	ck_assert_ptr_null(rt_alloc_of(4, 16));
	heap_start_exact(heap_config(HEAP_QUIET));
	ck_assert_int_eq(add_words(4), 4);
	for (unsigned i = 0; i < RT_ARRAY_LEN(none); i++) {
		ck_assert_ptr_null(rt_alloc_of(none[i], 16));
		ck_assert_ptr_null(rt_alloc_of(none[i], 0));
		ck_assert_ptr_null(rt_alloc_kind(none[i], 100000));
	}
	ck_assert_ptr_eq(rt_alloc_of(4, 0), rt_alloc(0));
	ck_assert_ptr_nonnull(rt_alloc_of(4, 1)); // and a run of small slots
	ck_assert_ptr_eq(rt_alloc_of(4, 0), rt_alloc(0));
	ck_assert_ptr_null(rt_alloc_of(4, SIZE_MAX));
	ck_assert_int_eq(rt_stop_the_world(RT_STOP_HOST), RT_OK);
	ck_assert_ptr_null(rt_alloc_of(4, 16));
	ck_assert_int_eq(rt_start_the_world(NULL), RT_OK);
	ck_assert_int_eq(rt_thread_detach(), RT_OK);
	ck_assert_ptr_null(rt_alloc_of(4, 16));
}

// ---- threads ----

GROUP(threads, .timeout = 60);

enum { THREADS = 4, ROUNDS = 200 / HEAP_CUT };

static void *lists[THREADS];

// make_and_end_kinds is one of the threads; arg is where its list is rooted.
static void *make_and_end_kinds(void *arg)
{
	void **list = arg;
	struct rng r = {(uintptr_t)*list};

	ck_assert_int_eq(rt_thread_attach(RT_THREAD_EXACT), RT_OK);
	for (int i = 0; i < ROUNDS; i++) {
		int kind = add_words(rng_below(&r, 2) ? RT_KIND_ANY
						      : RT_KIND_ANY_ALIGN8);

		ck_assert_int_gt(kind, 0);
		*list = NULL;
		for (int k = 0; k < 300; k++) {
			void **p = rt_alloc_of(kind, 16 + rng_below(&r, 200));

			ck_assert_ptr_nonnull(p);
			*p = *list;
			*list = p;
		}
		ck_assert_int_eq(rt_kind_of(*list), kind);
		ck_assert_int_eq(rt_kind_unregister(kind), RT_EBUSY);
		for (int k = 0; k < 300; k++)
			*list = *(void **)*list;
		ck_assert_ptr_null(*list);
		ck_assert_int_eq(rt_gc(), RT_OK);
		ck_assert_int_eq(rt_kind_unregister(kind), RT_OK);
	}
	ck_assert_int_eq(rt_thread_detach(), RT_OK);
	return NULL;
}

TEST(kinds_begin_and_end_beside_each_other)
{
	pthread_t thread[THREADS];
	struct rng r;

	rng_init(&r, "kinds_begin_and_end_beside_each_other");
	heap_start_exact(heap_config(100));
	must(rt_roots_add(lists, lists + THREADS, RT_ROOT_EXACT));
	for (int i = 0; i < THREADS; i++) {
		lists[i] = (void *)(uintptr_t)(rng_next(&r) & 0xffff);
		thread[i] = start_thread(make_and_end_kinds, &lists[i]);
	}
	rt_blocking_enter();
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	rt_blocking_leave();
	ck_assert_uint_eq(heap_live_after_gc(), 0);
	ck_assert_int_eq(rt_fini(), RT_OK);
}
