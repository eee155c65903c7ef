// Kinds that a host registers: their numbers, sizes and layouts.
#include <rt/rt.h>

#include <pthread.h>
#include <string.h>

#include "runtime/pages/arena.h"
#include "runtime/os/settings.h"
#include "runtime/spans/kinds.h"
#include "gc/mark/work.h"
#include "test/harness/fault.h"
#include "test/harness/heap.h"

static rt_kind_desc words_kind(int number)
{
	rt_kind_desc d;

	rt_kind_desc_init(&d);
	d.name = "words";
	d.layout = RT_LAYOUT_WORDS;
	d.number = number;
	return d;
}

static int add_words(int number)
{
	rt_kind_desc d = words_kind(number);

	return rt_kind_register(&d);
}

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
	pthread_t thread;

	for (unsigned i = 0; i < RT_ARRAY_LEN(calls); i++)
		fault_fail(calls[i], 1, 0, 0);
	ck_assert_int_eq(pthread_create(&thread, NULL, use_eight_kinds, NULL),
			 0);
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
	for (unsigned i = 0; i < RT_ARRAY_LEN(calls); i++)
		n += fault_count(calls[i]);
	return n;
}

// What the first thread had of its kinds is kept for the next.
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

// A cached span without objects does not keep its kind.
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

static const uint64_t one_bit[] = {1};
static const rt_value_format plain = RT_FORMAT_PLAIN;
static const rt_value_format pair = RT_FORMAT_PAIR(0x40, 0x40);
static const rt_value_format pair_behind = {
    0, 0, (uint64_t)-9, UINT64_MAX, UINT64_MAX, 0, 0, 16, -1, 0, 0};
static const rt_type good_type = {
    .struct_size = sizeof(rt_type),
    .size = 16,
    .ptrdata = 8,
    .bitmap = one_bit,
    .tail_size = 16,
    .tail_ptrdata = 8,
    .tail_bitmap = one_bit,
    .format = &plain,
};
static const rt_type *const type_table[] = {&good_type, NULL};

static void trace_nothing(rt_tracer *t, void *obj, size_t size, void *arg)
{
	(void)t, (void)obj, (void)size, (void)arg;
}

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

static rt_kind_desc good_desc(int layout)
{
	rt_kind_desc d = words_kind(RT_KIND_ANY);

	d.layout = layout;
	d.header_mask = UINT64_MAX;
	d.type_offset = RT_TYPE_IS_HEADER;
	if (layout == RT_LAYOUT_WORDS)
		d.format = &plain;
	if (layout == RT_LAYOUT_TYPE)
		d.type = &good_type;
	if (layout == RT_LAYOUT_INDEX) {
		d.types = type_table;
		d.ntypes = 2;
	}
	if (layout == RT_LAYOUT_TRACE)
		d.trace = trace_nothing;
	return d;
}

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
	// None of these calls made anything.
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

	c.gcstress = _i == 1; // all by calls
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

// Inline, by a function, and with a thread; kind and size constant or not.
TEST(all_ways_allocate_the_same)
{
	volatile int kind = 17;
	volatile size_t n = 24;

	heap_start_exact(heap_config(HEAP_QUIET));
	ck_assert_int_eq(add_words(17), 17);
	for (int i = 0; i < 5000; i++) {
		char *p[] = {
		    rt_alloc_of(17, 24),
		    rt_alloc_of(kind, 24),
		    rt_alloc_of(17, n),
		    rt_alloc_of(kind, n),
		    rt_alloc_kind(kind, n),
		    (rt_alloc_of)(17, 24),
		    rt_alloc_kind_in(rt_thread_self(), 17, 24),
		    (rt_alloc_kind_in)(rt_thread_self(), kind, n),
		};

		for (unsigned k = 0; k < RT_ARRAY_LEN(p); k++) {
			ck_assert(p[k] && heap_is_zero(p[k], 24));
			ck_assert_uint_eq(rt_size(p[k]), 24);
			ck_assert_int_eq(rt_kind_of(p[k]), 17);
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
	ck_assert_ptr_null(rt_alloc_of(4, SIZE_MAX));
	ck_assert_int_eq(rt_stop_the_world(RT_STOP_HOST), RT_OK);
	ck_assert_ptr_null(rt_alloc_of(4, 16));
	ck_assert_int_eq(rt_start_the_world(NULL), RT_OK);
	ck_assert_int_eq(rt_thread_detach(), RT_OK);
	ck_assert_ptr_null(rt_alloc_of(4, 16));
}

// ---- layouts: what the references reach lives, and only that ----

// An object is fixed words, and then elements up to its end.  Bit i of each
// part says that word i is a value word.
struct shape {
	const char *name;
	rt_kind_desc d;
	unsigned fixed;
	uint64_t fixed_bits;
	unsigned tail;
	uint64_t tail_bits;
	const rt_value_format *format;
	uint64_t header; // of word 0, unless it is 0
};

static const rt_value_format low_tag = RT_FORMAT_LOW_TAG(7, 5);
static const rt_value_format nan_box =
    RT_FORMAT_NAN_BOX(0xfffe000000000000, 0xfffeffffffffffff);
static rt_value_format narrow = {0, 0, 1, UINT32_MAX, UINT32_MAX, 0,
				 3, 8, 0, 0,	      0}; // base: the heap's

// encode makes the value at w a reference to p.
static void encode(const rt_value_format *f, uint64_t *w, const void *p)
{
	uint64_t a = (uintptr_t)p;

	if (f == &low_tag)
		*w = a | 5;
	else if (f == &nan_box)
		*w = a | UINT64_C(0xfffe000000000000);
	else if (f == &narrow)
		*w = (a - f->base) >> 3;
	else
		*w = a;
	if (f == &pair)
		w[1] = 0x47;
	if (f == &pair_behind)
		w[-1] = (uint64_t)-3;
}

// The interpreter's own walk of a shape, for the shapes with a callback.
static void trace_shape(rt_tracer *t, void *obj, size_t size, void *arg);

static const uint64_t bits_29[] = {0x29};     // words 0, 3, 5
static const uint64_t bits_2a[] = {0x2a};     // words 1, 3, 5
static const uint64_t bits_a[] = {0xa};	      // words 1, 3
static const uint64_t bits_5[] = {0x5};	      // words 0, 2
static const uint64_t long_bits[] = {0, 0x8}; // word 67

#define TYPE(f, fb, tl, tb, fmt)                                               \
	{                                                                      \
		.struct_size = sizeof(rt_type), .size = (f)*8,                 \
		.ptrdata = (f)*8, .bitmap = (fb), .tail_size = (tl)*8,         \
		.tail_ptrdata = (tl)*8, .tail_bitmap = (tb), .format = (fmt)   \
	}
static const rt_type fixed_type = TYPE(6, bits_29, 0, NULL, NULL);
static const rt_type tail_type = TYPE(6, bits_2a, 3, bits_5, NULL);
static const rt_type long_type = TYPE(70, long_bits, 0, NULL, NULL);
static const rt_type pair_type = TYPE(6, bits_a, 4, bits_5, &pair);
static const rt_type tag_type = TYPE(6, bits_2a, 3, bits_5, &low_tag);
static const rt_type none_type = {.struct_size = sizeof(rt_type), .size = 48};
static const rt_type *const index_types[] = {&none_type, NULL, &tail_type};
static const struct {
	uint64_t something;
	const rt_type *type;
} class_of_tail = {7, &tail_type};

enum { SHAPES = 20 };
static struct shape shapes[SHAPES];

// of returns a shape of fixed words and elements.
static struct shape of(const char *name, int layout, const rt_type *y)
{
	struct shape s = {.name = name, .d = good_desc(layout)};

	s.d.name = name;
	s.d.type = layout == RT_LAYOUT_TYPE ? y : NULL;
	s.d.format = NULL;
	if (y) {
		s.fixed = (unsigned)y->size / 8;
		s.fixed_bits = y->bitmap ? y->bitmap[0] : 0;
		s.tail = (unsigned)y->tail_size / 8;
		s.tail_bits = y->tail_bitmap ? y->tail_bitmap[0] : 0;
		s.format = y->format;
	}
	return s;
}

static struct shape words_of(const char *name, int layout,
			     const rt_value_format *f)
{
	struct shape s = of(name, layout, NULL);

	s.d.format = layout == RT_LAYOUT_WORDS ? f : NULL;
	s.format = f;
	s.tail = f && f->stride == 16 ? 2 : 1;
	s.tail_bits = f && f->test_at < 0 ? 2 : 1;
	return s;
}

static void make_shapes(void)
{
	struct shape *s = shapes;
	struct shape x;

	narrow.base = arena.base - 8; // no object is 0
	*s++ = words_of("words", RT_LAYOUT_WORDS, NULL);
	*s++ = words_of("plain format", RT_LAYOUT_WORDS, &plain);
	*s++ = words_of("low tags", RT_LAYOUT_WORDS, &low_tag);
	*s++ = words_of("NaN boxes", RT_LAYOUT_WORDS, &nan_box);
	*s++ = words_of("narrow references", RT_LAYOUT_WORDS, &narrow);
	*s++ = words_of("pairs", RT_LAYOUT_WORDS, &pair);
	*s++ = words_of("pairs, tag first", RT_LAYOUT_WORDS, &pair_behind);
	*s++ = of("type", RT_LAYOUT_TYPE, &fixed_type);
	*s++ = of("type with a tail", RT_LAYOUT_TYPE, &tail_type);
	x = of("type of many words", RT_LAYOUT_TYPE, &long_type);
	*s++ = x;
	*s++ = of("type of pairs", RT_LAYOUT_TYPE, &pair_type);
	*s++ = of("type of tags", RT_LAYOUT_TYPE, &tag_type);
	x = of("header", RT_LAYOUT_HEADER, &tail_type);
	x.header = (uintptr_t)&tail_type;
	*s++ = x;
	x.name = "header that leads to a class";
	x.header = (uintptr_t)&class_of_tail << 8 | 0x33;
	x.d.header_mask = ~UINT64_C(0xff);
	x.d.header_shift = 8;
	x.d.type_offset = 8;
	*s++ = x;
	x = of("index", RT_LAYOUT_INDEX, &tail_type);
	x.d.types = index_types;
	x.d.ntypes = 3;
	x.d.header_mask = 0xf0;
	x.d.header_shift = 4;
	x.header = 0xff2f;
	*s++ = x;
	x = of("callback", RT_LAYOUT_TRACE, &tail_type);
	x.d.trace = trace_shape;
	*s++ = x;
	x = words_of("callback that tells words", RT_LAYOUT_TRACE, NULL);
	x.d.trace = trace_shape;
	*s++ = x;
	x = words_of("callback that tells pairs", RT_LAYOUT_TRACE, &pair);
	x.d.trace = trace_shape;
	*s++ = x;
	*s++ = of("none", RT_LAYOUT_NONE, NULL);
	x = of("type without references", RT_LAYOUT_TYPE, &none_type);
	*s++ = x;
	ck_assert_ptr_eq(s, shapes + SHAPES);
	for (s = shapes; s < shapes + SHAPES; s++)
		if (s->d.layout == RT_LAYOUT_TRACE)
			s->d.arg = s;
}

// is_value tells whether word w of an object is the value word of a value.
static bool is_value(const struct shape *s, size_t words, size_t w)
{
	size_t i;

	if (s->format == &pair && w + 1 >= words)
		return false; // its tag would be outside
	if (w < s->fixed)
		return w < 64 ? s->fixed_bits >> w & 1
			      : s->fixed == 70 && w == 67;
	if (s->tail == 0)
		return false;
	i = (w - s->fixed) / s->tail;
	return s->fixed + (i + 1) * s->tail <= words &&
	       s->tail_bits >> ((w - s->fixed) % s->tail) & 1;
}

static void trace_shape(rt_tracer *t, void *obj, size_t size, void *arg)
{
	const struct shape *s = arg;
	uint64_t *word = obj;

	if (s->fixed == 0 && !s->format) {
		rt_trace_words(t, word, word + size / 8);
	} else if (s->fixed == 0) {
		rt_trace_values(t, word, word + size / 8, s->format);
	} else {
		for (size_t w = 0; w < size / 8; w++)
			if (is_value(s, size / 8, w))
				rt_trace_ptr(t, (void *)(uintptr_t)word[w]);
	}
}

enum { OBJECTS = 3000 / HEAP_CUT, SMALL_WORDS = 100, ROOTS = 16 };

// The graph, where the collector does not look.
static struct node {
	uint64_t *p;
	size_t words;
	uint64_t *copy;
	unsigned *edge; // by word: 1 + object, or 0
	bool live;
} graph[OBJECTS];
static uint64_t roots[ROOTS];

static void node_make(struct node *n, const struct shape *s, int kind,
		      struct rng *r)
{
	n->words = rng_below(r, 40) == 0 ? 1 + rng_below(r, 30000)
					 : 1 + rng_below(r, SMALL_WORDS);
	n->p = rt_alloc_of(kind, n->words * 8);
	ck_assert_ptr_nonnull(n->p);
	// All of a small object's slot is looked at.
	if (n->words * 8 <= 32760)
		n->words = rt_size(n->p) / 8;
	if (s->header)
		n->p[0] = s->header;
	n->copy = calloc(n->words, 8);
	n->edge = calloc(n->words, sizeof *n->edge);
	n->live = false;
}

// refer stores a reference into a value word: to the beginning of an object, to
// the inside, or with a tag.
static void refer(const struct shape *s, struct node *n, size_t w, unsigned to,
		  struct rng *r)
{
	uint64_t off = rng_below(r, graph[to].words) * 8;

	if (!s->format || s->format == &plain)
		off += rng_below(r, 8);
	n->edge[w] = 1 + to;
	encode(s->format, &n->p[w], (char *)graph[to].p + off);
}

// node_fill stores some references, and into all other words what is none: the
// address of an object that is not in the format, or where no value is.
static void node_fill(struct node *n, const struct shape *s, struct rng *r)
{
	bool any = !s->format || s->format == &plain;
	unsigned left = (unsigned)rng_below(r, 4);
	size_t step = 1 + rng_below(r, 40);

	for (size_t w = s->header != 0; w < n->words; w++) {
		unsigned to = (unsigned)rng_below(r, OBJECTS);
		bool value = is_value(s, n->words, w);

		if (value && left != 0 && w % step == 0) {
			left--;
			refer(s, n, w, to, r);
		} else if (!(value && any) && n->p[w] == 0) {
			n->p[w] = (uintptr_t)graph[to].p;
			// As a tag it must not say that this is a reference.
			if (s->format == &pair)
				n->p[w] &= ~UINT64_C(0x40);
		}
	}
	memcpy(n->copy, n->p, n->words * 8);
}

static void mark_live(void)
{
	static unsigned stack[OBJECTS];
	unsigned n = 0;

	for (unsigned i = 0; i < ROOTS; i++) {
		unsigned k = i * (OBJECTS / ROOTS);

		roots[i] = (uintptr_t)graph[k].p;
		if (!graph[k].live)
			stack[n++] = k;
		graph[k].live = true;
	}
	while (n != 0) {
		const struct node *from = &graph[stack[--n]];

		for (size_t w = 0; w < from->words; w++)
			if (from->edge[w] && !graph[from->edge[w] - 1].live) {
				graph[from->edge[w] - 1].live = true;
				stack[n++] = from->edge[w] - 1;
			}
	}
}

// compare returns how many live, after looking at each of them.
static uint64_t compare(int kind)
{
	uint64_t live = 0;

	for (unsigned i = 0; i < OBJECTS; i++) {
		const struct node *n = &graph[i];

		if (!n->live)
			continue;
		live++;
		if (rt_kind_of(n->p) != kind ||
		    memcmp(n->p, n->copy, n->words * 8) != 0)
			ck_abort_msg("object %u was not kept", i);
	}
	return live;
}

static void run_shape(rt_config c, unsigned shape, int number)
{
	struct shape *s = &shapes[shape];
	struct rng r;
	uint64_t live;
	int kind;

	heap_start_exact(c);
	make_shapes();
	rng_init(&r, s->name);
	s->d.number = number;
	kind = rt_kind_register(&s->d);
	ck_assert_int_gt(kind, 0);
	ck_assert_int_eq(rt_roots_add(roots, roots + ROOTS, RT_ROOT_EXACT),
			 RT_OK);
	for (unsigned i = 0; i < OBJECTS; i++)
		node_make(&graph[i], s, kind, &r);
	for (unsigned i = 0; i < OBJECTS; i++)
		node_fill(&graph[i], s, &r);
	mark_live();
	ck_assert_uint_lt(compare(kind), OBJECTS);
	for (int round = 0; round < 2; round++) {
		ck_assert_int_eq(rt_gc(), RT_OK);
		live = compare(kind);
		ck_assert_msg(heap_live() == live, "%s: %llu live, not %llu",
			      s->name, (unsigned long long)heap_live(),
			      (unsigned long long)live);
	}
	memset(roots, 0, sizeof roots);
	ck_assert_uint_eq(heap_live_after_gc(), 0);
	ck_assert_int_eq(rt_kind_unregister(kind), RT_OK);
	ck_assert_int_eq(rt_fini(), RT_OK);
}

GROUP(layouts, .timeout = 60);

TEST(what_references_reach_lives, .n = SHAPES)
{
	rt_config c = heap_config(HEAP_QUIET);

	c.checkmark = 1;
	run_shape(c, (unsigned)_i, RT_KIND_ANY);
	run_shape(c, (unsigned)_i, RT_KIND_ANY_ALIGN8);
}

// Every object is noted and traced again, because no words can be kept.
TEST(so_it_does_without_memory_to_mark, .n = SHAPES)
{
	rt_config c = heap_config(HEAP_QUIET);

	c.checkmark = 1;
	work_limit(0);
	run_shape(c, (unsigned)_i, RT_KIND_ANY);
}

TEST(so_it_does_with_helpers, .n = SHAPES)
{
	rt_config c = heap_config(HEAP_QUIET);

	c.gc_threads = 3;
	c.checkmark = 1;
	run_shape(c, (unsigned)_i, RT_KIND_ANY_ALIGN8);
}

TEST(so_it_does_with_classes_of_8_bytes, .n = SHAPES)
{
	rt_config c = heap_config(HEAP_QUIET);

	c.align8 = 1;
	run_shape(c, (unsigned)_i, RT_KIND_ANY);
}

TEST(so_it_does_with_guards_and_poison, .n = SHAPES)
{
	rt_config c = heap_config(HEAP_QUIET);

	c.guard_large = 1;
	c.guard_small = 10;
	c.clobberfree = 1;
	run_shape(c, (unsigned)_i, RT_KIND_ANY_ALIGN8);
}

// ---- one long object ----

static void make_long(const struct shape *s, size_t words)
{
	rt_kind_desc d = s->d;
	int kind = rt_kind_register(&d);
	uint64_t *p = rt_alloc_kind(kind, words * 8);
	uint64_t n = 1;

	ck_assert_ptr_nonnull(p);
	roots[0] = (uintptr_t)p;
	if (s->header)
		p[0] = s->header;
	for (size_t w = s->header != 0; w < words; w++)
		if (is_value(s, words, w) && w % 7 == 0) {
			encode(s->format, &p[w], rt_alloc_noscan(32));
			n++;
		}
	for (int i = 0; i < 2; i++)
		ck_assert_msg(heap_live_after_gc() == n, "%s", s->name);
	roots[0] = 0;
	ck_assert_uint_eq(heap_live_after_gc(), 0);
	ck_assert_int_eq(rt_kind_unregister(kind), RT_OK);
}

// A megabyte and more, which any marker takes pieces of: alone, with helpers,
// and without memory to mark.
TEST(long_objects_are_traced_to_their_end, .n = 3)
{
	rt_config c = heap_config(HEAP_QUIET);

	c.gc_threads = _i == 1 ? 3 : 0;
	c.checkmark = 1;
	if (_i == 2)
		work_limit(0);
	heap_start_exact(c);
	make_shapes();
	ck_assert_int_eq(rt_roots_add(roots, roots + 1, RT_ROOT_EXACT), RT_OK);
	for (unsigned i = 0; i < SHAPES; i++)
		make_long(&shapes[i], 150001);
}

// ---- callbacks ----

static struct {
	unsigned calls;
	size_t size, asked;
	void *obj;
} seen;

static void trace_seen(rt_tracer *t, void *obj, size_t size, void *arg)
{
	ck_assert_ptr_eq(arg, &seen);
	if (seen.calls++ % 2 == 0)
		seen.size = size;
	ck_assert_uint_eq(seen.size, size);
	seen.obj = obj;
	// Whatever a callback reports is looked at like any word.
	rt_trace_ptr(t, NULL);
	rt_trace_ptr(t, &seen);
	rt_trace_ptr(t, (void *)UINTPTR_MAX);
	rt_trace_ptr(t, (void *)(arena.base + arena_used() - 1));
	rt_trace_ptr(t, *(void **)obj);
	ck_assert_int_eq(rt_is_heap(obj), 1);
	ck_assert_uint_eq(size % 8, 0);
	ck_assert_uint_le(size, rt_size(obj));
	ck_assert_uint_gt(size + 8,
			  seen.asked > 32760 ? seen.asked : rt_size(obj));
}

TEST(a_callback_is_called_for_what_lives, .n = 2)
{
	static const size_t sizes[] = {8,     24,    100,   4096,
				       32760, 32761, 40001, 300000};
	rt_kind_desc d = words_kind(16);
	rt_config c = heap_config(HEAP_QUIET);

	c.checkmark = 1;
	c.guard_small = _i;

	heap_start_exact(c);
	ck_assert_int_eq(rt_roots_add(roots, roots + 1, RT_ROOT_EXACT), RT_OK);
	d.layout = RT_LAYOUT_TRACE;
	d.trace = trace_seen;
	d.arg = &seen;
	ck_assert_int_eq(rt_kind_register(&d), 16);
	for (unsigned i = 0; i < RT_ARRAY_LEN(sizes); i++) {
		char *p = rt_alloc_kind(16, sizes[i]);

		seen.calls = 0;
		seen.asked = sizes[i];
		roots[0] = (uintptr_t)p;
		*(void **)p = (char *)rt_alloc_noscan(16) + 1; // with a tag
		ck_assert_uint_eq(heap_live_after_gc(), 2);
		ck_assert_uint_eq(seen.calls, 2); // checkmark
		ck_assert_ptr_eq(seen.obj, p);
		roots[0] = 0;
		ck_assert_uint_eq(heap_live_after_gc(), 0);
		ck_assert_uint_eq(seen.calls, 2);
	}
}

static uint64_t outside[20000];

static void trace_outside(rt_tracer *t, void *obj, size_t size, void *arg)
{
	(void)obj, (void)size, (void)arg;
	rt_trace_words(t, (char *)outside + 1, outside + 20000);
}

// References in the host's own memory, more than a buffer holds.
TEST(a_callback_may_tell_memory_of_the_host, .n = 2)
{
	rt_kind_desc d = words_kind(RT_KIND_ANY);

	if (_i == 1)
		work_limit(0);
	heap_start_exact(heap_config(HEAP_QUIET));
	ck_assert_int_eq(rt_roots_add(roots, roots + 1, RT_ROOT_EXACT), RT_OK);
	d.layout = RT_LAYOUT_TRACE;
	d.trace = trace_outside;
	roots[0] = (uintptr_t)rt_alloc_kind(rt_kind_register(&d), 16);
	for (unsigned i = 0; i < 20000; i++)
		outside[i] = (uintptr_t)rt_alloc(16);
	// Its first word is not aligned, so it begins with the second.
	ck_assert_uint_eq(heap_live_after_gc(), 20000);
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
	ck_assert_int_eq(rt_roots_add(lists, lists + THREADS, RT_ROOT_EXACT),
			 RT_OK);
	for (int i = 0; i < THREADS; i++) {
		lists[i] = (void *)(uintptr_t)(rng_next(&r) & 0xffff);
		ck_assert_int_eq(pthread_create(&thread[i], NULL,
						make_and_end_kinds, &lists[i]),
				 0);
	}
	rt_blocking_enter();
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	rt_blocking_leave();
	ck_assert_uint_eq(heap_live_after_gc(), 0);
	ck_assert_int_eq(rt_fini(), RT_OK);
}
