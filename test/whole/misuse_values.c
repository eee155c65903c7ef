// Arguments that are not what a header asks for: sizes, pointers, stacks and
// roots.
#include "test/whole/misuse.h"

#include <limits.h>
#include <sys/mman.h>
#include <unistd.h>

#include "runtime/pages/arena.h"

// ---- wrong sizes and kinds ----

#define BY(name, ...)                                                          \
	static void *by_##name(size_t n)                                       \
	{                                                                      \
		return __VA_ARGS__;                                            \
	}

static const rt_type byte_type = {.struct_size = sizeof byte_type, .size = 1};
static void *two[2];

BY(alloc, (rt_alloc)(n))
BY(alloc_inline, rt_alloc(n))
BY(noscan, (rt_alloc_noscan)(n))
BY(noscan_inline, rt_alloc_noscan(n))
BY(alloc_in, (rt_alloc_in)(rt_thread_self(), n))
BY(noscan_in, (rt_alloc_noscan_in)(rt_thread_self(), n))
BY(kind_in, rt_alloc_kind_in(rt_thread_self(), RT_WORDS, n))
BY(uninit, rt_alloc_noscan_uninit(n))
BY(kind_words, rt_alloc_kind(RT_WORDS, n))
BY(kind_noscan, rt_alloc_kind(RT_NOSCAN, n))
BY(uncollectable, rt_alloc_uncollectable(RT_NOSCAN, n))
BY(aligned, rt_alloc_aligned(RT_WORDS, 8, n))
BY(pages, rt_alloc_aligned(RT_NOSCAN, 65536, n))
BY(of_words, rt_alloc_of(RT_WORDS, n))
BY(typed, rt_alloc_typed(&byte_type, n))
BY(many, rt_alloc_many(RT_WORDS, n, 2, two) ? two[0] : NULL)
BY(memdup, rt_memdup(words, n))
BY(realloc, n ? rt_realloc(RT_WORDS, object, n) : rt_alloc(0))
BY(realloc_null, rt_realloc(RT_WORDS, NULL, n))
BY(array, rt_alloc_array(RT_WORDS, n, 0, 1))
BY(elements, rt_alloc_array(RT_NOSCAN, 0, n, 1))
BY(slow, rt_alloc_slow_(rt_thread_self(), RT_ROW_WORDS *RT_RUN_CLASSES, n))
BY(stack, rt_stack_alloc(n))

static const struct {
	const char *name;
	void *(*call)(size_t n);
} allocators[] = {
    {"rt_alloc", by_alloc},
    {"rt_alloc inline", by_alloc_inline},
    {"rt_alloc_noscan", by_noscan},
    {"rt_alloc_noscan inline", by_noscan_inline},
    {"rt_alloc_in", by_alloc_in},
    {"rt_alloc_noscan_in", by_noscan_in},
    {"rt_alloc_kind_in", by_kind_in},
    {"rt_alloc_noscan_uninit", by_uninit},
    {"rt_alloc_kind(RT_WORDS)", by_kind_words},
    {"rt_alloc_kind(RT_NOSCAN)", by_kind_noscan},
    {"rt_alloc_uncollectable", by_uncollectable},
    {"rt_alloc_aligned", by_aligned},
    {"rt_alloc_aligned, pages", by_pages},
    {"rt_alloc_of", by_of_words},
    {"rt_alloc_typed, count", by_typed},
    {"rt_alloc_many", by_many},
    {"rt_memdup", by_memdup},
    {"rt_realloc", by_realloc},
    {"rt_realloc of nothing", by_realloc_null},
    {"rt_alloc_array, head", by_array},
    {"rt_alloc_array, count", by_elements},
    {"rt_alloc_slow_", by_slow},
    {"rt_stack_alloc", by_stack},
};

struct size {
	const char *name;
	size_t n;
};

#define SIZE(n)                                                                \
	{                                                                      \
#n, n                                                          \
	}

static const struct size huge_sizes[] = {
    SIZE((size_t)1 << 63), SIZE(((size_t)1 << 63) + 1),
    SIZE((size_t)-1),	   SIZE((size_t)-7),
    SIZE((size_t)-8),	   SIZE((size_t)-15),
    SIZE((size_t)-16),	   SIZE((size_t)-32760),
    SIZE((size_t)-8191),   SIZE((size_t)-8192),
    SIZE((size_t)-8193),   SIZE((size_t)3 << 62),
};

static const struct size too_large[] = {
    SIZE(PTRDIFF_MAX),		 SIZE(PTRDIFF_MAX - 8191),
    SIZE((size_t)1 << 62),	 SIZE((size_t)1 << 48),
    SIZE(((size_t)1 << 47) - 1), SIZE(((size_t)1 << 44) + 1),
    SIZE((size_t)1 << 40),	 SIZE((size_t)1 << 32),
    SIZE((256 << 20) + 1),
};

GROUP(sizes, .timeout = 60);

// begin_typed makes a heap that has its bits for types already.  Otherwise even
// a refused request would make them.
static void begin_typed(void)
{
	begin();
	ck_assert_ptr_nonnull(rt_alloc_typed(&byte_type, 1));
}

TEST(sizes_beyond_ptrdiff_max_do_nothing)
{
	begin_typed();
	for (size_t i = 0; i < RT_ARRAY_LEN(allocators); i++)
		for (size_t j = 0; j < RT_ARRAY_LEN(huge_sizes); j++) {
			rt_read_memstats(&before);
			judge(allocators[i].name, huge_sizes[j].name,
			      some(allocators[i].call(huge_sizes[j].n)),
			      NOTHING);
			judge_unchanged(allocators[i].name);
		}
	heap_healthy();
	finish(2 * RT_ARRAY_LEN(allocators) * RT_ARRAY_LEN(huge_sizes));
}

// If the heap might have room for a size, the request makes a collection.  It
// still takes nothing.
TEST(sizes_beyond_the_heap_get_nothing)
{
	static rt_memstats after;

	begin_typed();
	for (size_t i = 0; i < RT_ARRAY_LEN(allocators); i++)
		for (size_t j = 0; j < RT_ARRAY_LEN(too_large); j++) {
			rt_read_memstats(&before);
			judge(allocators[i].name, too_large[j].name,
			      some(allocators[i].call(too_large[j].n)),
			      NOTHING);
			rt_read_memstats(&after);
			judge(allocators[i].name, "mallocs unchanged",
			      (long)(after.mallocs - before.mallocs), 0);
			judge(allocators[i].name, "heap_sys unchanged",
			      (long)(after.heap_sys - before.heap_sys), 0);
		}
	heap_healthy();
	finish(3 * RT_ARRAY_LEN(allocators) * RT_ARRAY_LEN(too_large));
}

TEST(no_bytes_are_one_address_outside_of_the_heap)
{
	void *zero;

	begin();
	zero = rt_alloc(0);
	ck_assert_ptr_nonnull(zero);
	*(volatile char *)zero = 0;
	for (size_t i = 0; i < RT_ARRAY_LEN(allocators) - 1; i++)
		judge(allocators[i].name, "0 bytes",
		      allocators[i].call(0) == zero, 1);
	JUDGE("0 bytes", some(rt_stack_alloc(0)), NOTHING);
	JUDGE("of no bytes", (long)rt_size(zero), 0);
	JUDGE("of no bytes", some(rt_base(zero)), NOTHING);
	JUDGE("of no bytes", rt_is_heap(zero), 0);
	finish(RT_ARRAY_LEN(allocators));
}

static const int bad_kinds[] = {
    -1,	 RT_TYPED, RT_KIND_FIRST, RT_KIND_MAX, RT_KIND_MAX + 1, 64,
    128, 256,	   INT_MAX,	  INT_MIN,     1 << 16,		0x10000001};

// judge_kind requires that no function allocates n bytes of a kind.
static void judge_kind(int kind, size_t n)
{
	const char *name = with_number("kind", kind);
	rt_thread *t = rt_thread_self();

	two[0] = two;
	JUDGE(name, some(rt_alloc_kind(kind, n)), NOTHING);
	JUDGE(name, some(rt_alloc_of(kind, n)), NOTHING);
	JUDGE(name, some((rt_alloc_of)(kind, n)), NOTHING);
	JUDGE(name, some(rt_alloc_kind_in(t, kind, n)), NOTHING);
	JUDGE(name, some(rt_alloc_of_slow_(t, kind, n)), NOTHING);
	JUDGE(name, some(rt_alloc_array(kind, 0, n, 1)), NOTHING);
	JUDGE(name, some(rt_alloc_aligned(kind, 16, n)), NOTHING);
	JUDGE(name, (long)rt_alloc_many(kind, n, 2, two), 0);
	JUDGE(name, two[0] == two, 1);
	JUDGE(name, some(rt_alloc_uncollectable(kind, n)), NOTHING);
	JUDGE(name, some(rt_realloc(kind, NULL, n)), NOTHING);
	JUDGE(name, some(rt_realloc(kind, object, n)), NOTHING);
	if (kind != RT_TYPED)
		JUDGE(name, (long)rt_good_size_of(kind, n), 0);
}

// RT_TYPED has one row less.
enum { JUDGED_OF_A_KIND = 13 };

TEST(unknown_kinds_get_nothing)
{
	static const size_t sizes[] = {0, 1, 16, 64, 1024, 40000};

	begin();
	rt_read_memstats(&before);
	for (size_t i = 0; i < RT_ARRAY_LEN(bad_kinds); i++)
		for (size_t j = 0; j < RT_ARRAY_LEN(sizes); j++)
			judge_kind(bad_kinds[i], sizes[j]);
	for (size_t j = 0; j < RT_ARRAY_LEN(sizes); j++) {
		JUDGE("run beyond the table",
		      some(rt_alloc_slow_(rt_thread_self(),
					  RT_ROWS * RT_RUN_CLASSES, sizes[j])),
		      NOTHING);
		JUDGE("run -1",
		      some(rt_alloc_slow_(rt_thread_self(), -1U, sizes[j])),
		      NOTHING);
	}
	JUDGE("constant kind 2",
	      some(rt_alloc_kind_in(rt_thread_self(), 2, 64)), NOTHING);
	JUDGE("constant kind -1",
	      some(rt_alloc_kind_in(rt_thread_self(), -1, 64)), NOTHING);
	judge_unchanged("all calls");
	heap_healthy();
	JUDGE("all calls", (long)rt_size(object), OBJECT);
	finish((RT_ARRAY_LEN(bad_kinds) * JUDGED_OF_A_KIND - 1 + 2) *
	       RT_ARRAY_LEN(sizes));
}

// If no memory has room for a count of objects, rt_alloc_many allocates as many
// as it can: until a collection is due, or, without collections, until the heap
// is full.
TEST(more_objects_than_there_can_be)
{
	enum { SIZE = 4096, ROOM = (256 << 20) / SIZE };
	void **out = malloc(ROOM * sizeof *out);

	begin();
	ck_assert_ptr_nonnull(out);
	for (int percent = 100; percent >= -1; percent -= 101) {
		size_t n;

		JUDGE("percent", rt_set_gc_percent(percent, NULL), RT_OK);
		n = rt_alloc_many(RT_NOSCAN, SIZE, SIZE_MAX, out);
		judge("rt_alloc_many", with_number("percent", percent),
		      n > 0 && n <= ROOM, 1);
		for (size_t i = 1; i < n; i++)
			if (out[i] == out[i - 1] || rt_base(out[i]) != out[i])
				judge("rt_alloc_many", "an object", 0, 1);
		JUDGE("a large one",
		      (long)rt_alloc_many(RT_NOSCAN, 32761, SIZE_MAX, out) <= 1,
		      1);
		JUDGE("none", (long)rt_alloc_many(RT_NOSCAN, SIZE, 0, out), 0);
		JUDGE("nowhere",
		      (long)rt_alloc_many(RT_NOSCAN, SIZE, SIZE_MAX, NULL), 0);
		heap_healthy();
		JUDGE("afterwards", rt_gc(), RT_OK);
	}
	free(out);
	finish(12);
}

// Types in which one field is wrong, and counts whose size overflows.
TEST(types_that_are_wrong_get_nothing)
{
	static const uint64_t bits[] = {1};
	static const rt_type good = {.struct_size = sizeof good,
				     .size = 16,
				     .ptrdata = 16,
				     .bitmap = bits,
				     .tail_size = 16,
				     .tail_ptrdata = 16,
				     .tail_bitmap = bits};
	static const rt_value_format tags = RT_FORMAT_LOW_TAG(7, 1);
	static const size_t counts[] = {SIZE_MAX, SIZE_MAX / 16 + 1,
					SIZE_MAX / 16, (size_t)1 << 60};
	rt_type y[14];

	for (size_t i = 0; i < RT_ARRAY_LEN(y); i++)
		y[i] = good;
	y[0].struct_size = 0;
	y[1].struct_size = SIZE_MAX;
	y[2].ptrdata = 12;
	y[3].ptrdata = 24;
	y[4].bitmap = NULL;
	y[5].size = 20;
	y[6].tail_size = 20;
	y[7].tail_ptrdata = 12;
	y[8].tail_ptrdata = SIZE_MAX - 7;
	y[9].tail_bitmap = NULL;
	y[10].format = &tags;
	y[11].align = 1;
	y[12].align = 24;
	y[13].spare = 1;
	begin();
	JUDGE("good", some(rt_alloc_typed(&good, 1)), SOME);
	rt_read_memstats(&before);
	JUDGE("null", some(rt_alloc_typed(NULL, 1)), NOTHING);
	for (size_t i = 0; i < RT_ARRAY_LEN(y); i++) {
		JUDGE(with_number("type", (long)i),
		      some(rt_alloc_typed(&y[i], 1)), NOTHING);
		y[i].tail_size = y[i].tail_ptrdata = 0;
		if (i < 6 || i > 9)
			JUDGE(with_number("without tail", (long)i),
			      some(rt_alloc_typed(&y[i], 2)), NOTHING);
	}
	for (size_t i = 0; i < RT_ARRAY_LEN(counts); i++)
		JUDGE("too many", some(rt_alloc_typed(&good, counts[i])),
		      NOTHING);
	judge_unchanged("all calls");
	heap_healthy();
	finish(RT_ARRAY_LEN(y) + RT_ARRAY_LEN(counts));
}

TEST(good_sizes_of_a_heap_with_go_s_classes)
{
	static const size_t n[] = {0, 1, 8, 9, 16, 17, 24, 25, 32761, SIZE_MAX};
	static const long want[] = {0, 8, 8, 16, 16, 24, 24, 32, 32768, 0};
	rt_config c = config_of_test();

	c.align8 = 1;
	heap_start(c);
	for (size_t i = 0; i < RT_ARRAY_LEN(n); i++)
		JUDGE("align8", (long)rt_good_size(n[i]), want[i]);
	finish(RT_ARRAY_LEN(n));
}

TEST(good_sizes_at_the_edges)
{
	static const struct {
		size_t n, want;
	} c[] = {{0, 0},
		 {1, 16},
		 {15, 16},
		 {16, 16},
		 {17, 32},
		 {1024, 1024},
		 {1025, 1152},
		 {32752, 32768},
		 {32760, 32768},
		 {32761, 32768},
		 {32769, 40960},
		 {32768, 32768},
		 {40960, 40960},
		 {40961, 49152},
		 {(size_t)1 << 40, (size_t)1 << 40},
		 {((size_t)1 << 40) + 1, 0},
		 {(size_t)1 << 47, 0},
		 {PTRDIFF_MAX - 8191, 0},
		 {PTRDIFF_MAX, 0},
		 {(size_t)1 << 63, 0},
		 {(size_t)-8192, 0},
		 {(size_t)-1, 0}};

	begin();
	for (size_t i = 0; i < RT_ARRAY_LEN(c); i++)
		JUDGE(with_number("n", (long)c[i].n),
		      (long)rt_good_size(c[i].n), (long)c[i].want);
	finish(RT_ARRAY_LEN(c));
}

// ---- pointers to anywhere ----

enum { FOREIGN = 40 };

static struct {
	const char *name;
	const void *p;
} foreign[FOREIGN];
static unsigned nforeign;

static void add_foreign(const char *name, const void *p)
{
	ck_assert_uint_lt(nforeign, FOREIGN);
	foreign[nforeign].name = name;
	foreign[nforeign++].p = p;
}

static void add_foreign_word(const char *name, uintptr_t p)
{
	add_foreign(name, (const void *)p);
}

// make_garbage returns the complement of the address of a new object, to which
// nothing refers.
static RT_NOINLINE uintptr_t make_garbage(void)
{
	return ~(uintptr_t)rt_alloc_noscan(3000);
}

static void add_free_objects(void)
{
	uintptr_t garbage = make_garbage();

	// The other object of a span of this class keeps the span.
	words[0] = (uintptr_t)rt_alloc_noscan(3000);
	ck_assert_int_eq(rt_roots_add(words, words + 1, RT_ROOT_EXACT), RT_OK);
	rt_gc();
	rt_gc();
	add_foreign_word("slot behind the last object", words[0] + 3 * 3072);
	(void)garbage;
}

static void collect_foreign(const void *here)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *map =
	    mmap(NULL, 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uintptr_t end = arena.base + arena_used();

	ck_assert_ptr_ne(map, MAP_FAILED);
	munmap(map + page, page);
	add_foreign("null", NULL);
	add_foreign_word("1", 1);
	add_foreign_word("15", 15);
	add_foreign_word("page 1", 4096);
	add_foreign_word("page 2", 8192);
	add_foreign("the stack", here);
	add_foreign("static memory", words);
	add_foreign("malloc", malloc(100));
	add_foreign("large malloc", malloc(1 << 20));
	add_foreign("a function", (const void *)(uintptr_t)rt_gc);
	add_foreign("unreadable memory", map);
	add_foreign("unmapped memory", map + page);
	add_foreign_word("below the heap", arena.base - 1);
	add_foreign_word("a page below the heap", arena.base - RT_PAGE_SIZE);
	add_foreign_word("end of the heap", end);
	add_foreign_word("gap above the heap", end + 4711);
	add_foreign_word("last reserved byte", arena.base + arena.reserved - 1);
	add_foreign_word("end of reservation", arena.base + arena.reserved);
	add_foreign_word("free page", end - 1);
	add_foreign("a stack of rt_stack_alloc", stack);
	add_foreign("inside that", (char *)stack + 100);
	add_foreign("own thread", rt_thread_self());
	add_foreign("lines of pages", arena.lines);
	add_foreign("pagewords", (const void *)arena.pagewords);
	add_foreign("a span", arena_span(arena_offset((uintptr_t)object) >>
					 RT_PAGE_SHIFT));
	add_foreign_word("2^47 - 1", (UINT64_C(1) << 47) - 1);
	add_foreign_word("2^47", UINT64_C(1) << 47);
	add_foreign_word("not canonical", UINT64_C(1) << 62);
	add_foreign_word("2^63", UINT64_C(1) << 63);
	add_foreign_word("-8192", (uintptr_t)-8192);
	add_foreign_word("-16", (uintptr_t)-16);
	add_foreign_word("-1", (uintptr_t)-1);
	add_foreign_word("tagged object", (uintptr_t)object | UINT64_C(1)
								  << 63);
}

GROUP(pointers);

TEST(foreign_pointers_are_in_no_object)
{
	char here = 0;

	begin();
	add_free_objects();
	collect_foreign(&here);
	rt_read_memstats(&before);
	for (unsigned i = 0; i < nforeign; i++) {
		const void *p = foreign[i].p;

		JUDGE(foreign[i].name, (long)rt_size(p), 0);
		JUDGE(foreign[i].name, some(rt_base(p)), NOTHING);
		JUDGE(foreign[i].name, rt_is_heap(p), 0);
		JUDGE(foreign[i].name, rt_kind_of(p), RT_ENOENT);
	}
	judge_unchanged("all calls");
	heap_healthy();
	finish(4 * nforeign);
}

// Only null may be freed, and only for null rt_realloc allocates.
TEST(foreign_pointers_are_neither_freed_nor_resized)
{
	char here = 0;

	begin();
	add_free_objects();
	collect_foreign(&here);
	add_foreign("the inside of an object", (char *)object + 16);
	rt_read_memstats(&before);
	for (unsigned i = 0; i < nforeign; i++) {
		const char *name = foreign[i].name;
		void *p = (void *)foreign[i].p;

		JUDGE(name, rt_free(p), p ? RT_EINVAL : RT_OK);
		JUDGE(name, rt_resize(p, 8), RT_EINVAL);
		JUDGE(name, rt_resize(p, SIZE_MAX), RT_EINVAL);
		JUDGE(name, some(rt_realloc(RT_WORDS, p, 0)),
		      p ? NOTHING : SOME);
		if (p)
			JUDGE(name, some(rt_realloc(RT_WORDS, p, 100)),
			      NOTHING);
	}
	judge_unchanged("all calls");
	heap_healthy();
	finish(5 * nforeign - 1);
}

TEST(any_word_may_be_asked_about)
{
	struct rng r;
	unsigned wrong = 0;

	begin();
	rng_init(&r, "any_word_may_be_asked_about");
	for (unsigned i = 0; i < 1000000; i++) {
		uintptr_t w = rng_next(&r);
		void *base;

		if (i % 4 == 0) // near the heap, most of it not used
			w = arena.base - (1 << 20) +
			    w % (arena.reserved + (2 << 20));
		base = rt_base((void *)w);
		wrong += rt_is_heap((void *)w) != (base != NULL);
		if (base)
			wrong += (uintptr_t)base > w ||
				 w - (uintptr_t)base >= rt_size((void *)w);
		else
			wrong += rt_size((void *)w) != 0;
	}
	ck_assert_uint_eq(wrong, 0);
}

// ---- stacks ----

TEST(stack_sizes_are_powers_of_two_from_2048)
{
	static const size_t bad[] = {
	    1,	  2,	8,    1024,  2047,  2049,	   3000,
	    4095, 4097, 6144, 24576, 32769, (1 << 20) - 1, (1 << 20) + 1};

	begin();
	rt_read_memstats(&before);
	for (size_t i = 0; i < RT_ARRAY_LEN(bad); i++) {
		const char *name = with_number("bytes:", (long)bad[i]);

		JUDGE(name, some(rt_stack_alloc(bad[i])), NOTHING);
	}
	judge_unchanged("all calls");
	finish(RT_ARRAY_LEN(bad));
}

TEST(only_stacks_are_freed)
{
	static const size_t sizes[] = {
	    0, 1, 100, 2048, 8192, 16384, 32768, (size_t)1 << 63, (size_t)-1};
	char here = 0;

	begin();
	collect_foreign(&here);
	rt_read_memstats(&before);
	for (unsigned i = 0; i < nforeign; i++) {
		if (foreign[i].p == stack)
			continue;
		JUDGE(foreign[i].name,
		      rt_stack_free((void *)foreign[i].p, STACK), RT_EINVAL);
	}
	JUDGE("an object", rt_stack_free(object, OBJECT), RT_EINVAL);
	JUDGE("an object as a stack", rt_stack_free(object, STACK), RT_EINVAL);
	for (size_t i = 0; i < RT_ARRAY_LEN(sizes); i++) {
		const char *name =
		    with_number("a stack, bytes:", (long)sizes[i]);

		JUDGE(name, rt_stack_free(stack, sizes[i]), RT_EINVAL);
	}
	judge_unchanged("all calls");
	JUDGE("at last", rt_stack_free(stack, STACK), RT_OK);
	heap_healthy();
	finish(nforeign + RT_ARRAY_LEN(sizes));
}

TEST(a_stack_is_freed_once)
{
	static const size_t sizes[] = {2048, 4096, 8192, 16384, 32768, 1 << 20};

	begin();
	for (size_t i = 0; i < RT_ARRAY_LEN(sizes); i++) {
		void *a = rt_stack_alloc(sizes[i]);
		void *b = rt_stack_alloc(sizes[i]);

		judge("rt_stack_alloc", "two", some(a) & some(b), SOME);
		JUDGE("inside", rt_stack_free((char *)a + 1024, sizes[i]),
		      RT_EINVAL);
		JUDGE("half", rt_stack_free(a, sizes[i] / 2), RT_EINVAL);
		JUDGE("double size", rt_stack_free(a, sizes[i] * 2), RT_EINVAL);
		JUDGE("once", rt_stack_free(a, sizes[i]), RT_OK);
		JUDGE("twice", rt_stack_free(a, sizes[i]), RT_EINVAL);
		rt_read_memstats(&stats); // flushes the thread's stacks
		JUDGE("twice, later", rt_stack_free(a, sizes[i]), RT_EINVAL);
		JUDGE("the other", rt_stack_free(b, sizes[i]), RT_OK);
		heap_healthy();
	}
	finish(8 * RT_ARRAY_LEN(sizes));
}

// A stack that is not freed when the heap ends does not count in the next heap.
TEST(stacks_die_with_the_heap)
{
	static const size_t sizes[] = {2048, 4096, 8192, 16384, 32768};

	for (int round = 0; round < 3; round++) {
		begin();
		rt_read_memstats(&stats);
		judge("stack_inuse", "one stack in a span",
		      (long)stats.stack_inuse, 32 << 10);
		for (size_t i = 0; i < RT_ARRAY_LEN(sizes); i++) {
			char *s = rt_stack_alloc(sizes[i]);

			judge("rt_stack_alloc", "in another heap", some(s),
			      SOME);
			memset(s, 0xff, sizes[i]);
		}
		heap_healthy();
		ck_assert_int_eq(rt_fini(), RT_OK);
	}
	finish(15);
}

// ---- roots ----

TEST(bad_ranges_are_no_roots)
{
	static uint64_t w[16];
	char *lo = (char *)w, *hi = (char *)(w + 8);
	const struct {
		const char *name;
		void *lo, *hi;
		int flags;
	} c[] = {
	    {"both null", NULL, NULL, 0},
	    {"lo null", NULL, hi, 0},
	    {"hi null", lo, NULL, 0},
	    {"empty", lo, lo, 0},
	    {"reversed", hi, lo, 0},
	    {"lo misaligned by 1", lo + 1, hi, 0},
	    {"lo misaligned by 4", lo + 4, hi, 0},
	    {"lo misaligned by 7", lo + 7, hi, 0},
	    {"hi misaligned by 1", lo, hi + 1, 0},
	    {"hi misaligned by 4", lo, hi + 4, 0},
	    {"both misaligned", lo + 4, hi + 4, 0},
	    {"less than a word", lo, lo + 4, 0},
	    {"flags 2", lo, hi, 2},
	    {"flags 3", lo, hi, 3},
	    {"flags -1", lo, hi, -1},
	    {"flags INT_MIN", lo, hi, INT_MIN},
	    {"flags INT_MAX", lo, hi, INT_MAX},
	};

	begin();
	rt_read_memstats(&before);
	for (size_t i = 0; i < RT_ARRAY_LEN(c); i++) {
		JUDGE(c[i].name, rt_roots_add(c[i].lo, c[i].hi, c[i].flags),
		      RT_EINVAL);
		JUDGE(c[i].name, rt_roots_remove(c[i].lo, c[i].hi), RT_ENOENT);
	}
	judge_unchanged("all calls");
	finish(2 * RT_ARRAY_LEN(c));
}

TEST(roots_are_removed_as_often_as_added)
{
	static uint64_t w[16];

	begin();
	judge("add", "first", rt_roots_add(w, w + 8, 0), RT_OK);
	judge("add", "again", rt_roots_add(w, w + 8, 1), RT_OK);
	judge("add", "overlapping", rt_roots_add(w + 4, w + 16, 1), RT_OK);
	judge("remove", "other end", rt_roots_remove(w, w + 9), RT_ENOENT);
	judge("remove", "other start", rt_roots_remove(w + 1, w + 8),
	      RT_ENOENT);
	judge("remove", "union", rt_roots_remove(w, w + 16), RT_ENOENT);
	judge("remove", "first", rt_roots_remove(w, w + 8), RT_OK);
	judge("remove", "again", rt_roots_remove(w, w + 8), RT_OK);
	judge("remove", "thrice", rt_roots_remove(w, w + 8), RT_ENOENT);
	judge("remove", "overlapping", rt_roots_remove(w + 4, w + 16), RT_OK);
	judge("remove", "swapped", rt_roots_remove(w + 16, w + 4), RT_ENOENT);
	heap_healthy();
	finish(11);
}

// Words of roots may be any numbers, even in an exact range.
TEST(roots_may_hold_anything)
{
	static uint64_t w[4096];
	struct rng r;

	begin();
	rng_init(&r, "roots_may_hold_anything");
	ck_assert_int_eq(rt_roots_add(w, w + 4096, RT_ROOT_EXACT), RT_OK);
	must(rt_roots_add(w + 2048, w + 4096, RT_ROOT_WORDS));
	for (int round = 0; round < 20; round++) {
		for (unsigned i = 0; i < 4096; i++) {
			w[i] = rng_next(&r);
			if (i % 2 == 0)
				w[i] =
				    arena.base + w[i] % (arena_used() + 8192);
		}
		JUDGE("with garbage in roots", rt_gc(), RT_OK);
		heap_healthy();
		JUDGE("of what is kept", (long)rt_size(object), OBJECT);
	}
	finish(40);
}
