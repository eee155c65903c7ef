// The references that collections and their checks find in objects of
// registered kinds.
#include <stdio.h>

#include "gc/mark/work.h"
#include "test/harness/kind.h"
#include "test/harness/missed.h"

static void *root[2];
static unsigned calls;

// trace_late tells a reference from its second call on.  Marking makes the
// first call, so this callback forgets the reference.
static void trace_late(rt_tracer *t, void *obj, size_t size, void *arg)
{
	(void)size, (void)arg;
	if (calls++ > 0)
		rt_trace_ptr(t, *(char **)obj + 5);
}

static int add_layout(int number, int layout, rt_trace_fn *trace)
{
	return kind_make(.name = "late", .layout = layout, .trace = trace,
			 .number = number);
}

static int add_kind(int number, rt_trace_fn *trace)
{
	return add_layout(number, trace ? RT_LAYOUT_TRACE : RT_LAYOUT_WORDS,
			  trace);
}

static void start(bool checkmark)
{
	rt_config c = heap_config(HEAP_QUIET);

	c.checkmark = checkmark;
	heap_start_exact(c);
	ck_assert_int_eq(rt_roots_add(root, root + 2, RT_ROOT_EXACT), RT_OK);
}

static void forget_a_child(void)
{
	start(true);
	root[0] = rt_alloc_kind(add_kind(RT_KIND_ANY, trace_late), 40);
	*(void **)root[0] = rt_alloc_noscan(48);
	missed_say(*(uintptr_t *)root[0], (uintptr_t)root[0]);
	rt_gc();
}

GROUP(found, .timeout = 60);

// checkmark calls the callback again.  The report has the object that was
// missed, the name of the kind, and the object that leads to it.
TEST(a_callback_that_forgets_is_found)
{
	missed_from(forget_a_child, "size=48, found in late", "");
}

// An exact root is a reference to the beginning of an object.  Half of the
// objects of 24 bytes have a whole granule 8 bytes behind their beginning.
TEST(an_exact_root_inside_24_bytes_keeps_nothing)
{
	start(false);
	ck_assert_int_eq(add_kind(RT_KIND_ALIGN8_FIRST, NULL),
			 RT_KIND_ALIGN8_FIRST);
	for (unsigned i = 0; i < 4; i++) {
		root[0] = rt_alloc_of(RT_KIND_ALIGN8_FIRST, 24);
		ck_assert_uint_eq(heap_live_after_gc(), 1);
		root[0] = (char *)root[0] + 8;
		ck_assert_uint_eq(heap_live_after_gc(), 0);
		root[1] = rt_alloc_of(RT_KIND_ALIGN8_FIRST, 24);
		root[0] = rt_alloc_of(RT_KIND_ALIGN8_FIRST, 24);
		ck_assert_uint_eq(heap_live_after_gc(), 2);
		root[0] = (char *)root[0] + 8;
		ck_assert_uint_eq(heap_live_after_gc(), 1);
		root[0] = root[1] = NULL;
		ck_assert_uint_eq(heap_live_after_gc(), 0);
	}
}

enum { CHILDREN = 2000 }; // more than a marker has room for

static void trace_words(rt_tracer *t, void *obj, size_t size, void *arg)
{
	(void)arg;
	rt_trace_words(t, obj, (char *)obj + size);
}

// add_grandchildren makes an object of kind parent with many children.  Each
// has a child of its own, which refers to a leaf.  Both are of kind child.
// Returns the number of objects.
static uint64_t add_grandchildren(int parent, int child)
{
	void **p = root[0] = rt_alloc_kind(parent, CHILDREN * sizeof *p);

	for (unsigned i = 0; i < CHILDREN; i++) {
		void **c = p[i] = rt_alloc_kind(child, 100);

		c[11] = rt_alloc_kind(child, 24);
		*(void **)c[11] = rt_alloc_noscan(16);
	}
	return 1 + 3 * CHILDREN;
}

// Where there is no room for a reference, its object is marked at once, noted,
// and traced when all else is marked.
TEST(what_finds_no_room_is_traced_later)
{
	int kinds[2] = {RT_WORDS};

	work_limit(0);
	start(false);
	kinds[1] = add_kind(RT_KIND_ANY_ALIGN8, trace_words);
	for (unsigned i = 0; i < 4; i++) {
		uint64_t n = add_grandchildren(kinds[i % 2], kinds[i / 2]);

		ck_assert_uint_eq(heap_live_after_gc(), n);
		root[0] = NULL;
		ck_assert_uint_eq(heap_live_after_gc(), 0);
	}
}

// A number that is used again has the layout of its new kind.
TEST(a_number_has_the_layout_of_its_last_kind)
{
	static const int layouts[] = {RT_LAYOUT_NONE, RT_LAYOUT_WORDS,
				      RT_LAYOUT_NONE, RT_LAYOUT_TRACE,
				      RT_LAYOUT_NONE};

	start(false);
	for (unsigned i = 0; i < RT_ARRAY_LEN(layouts); i++) {
		int layout = layouts[i];
		rt_trace_fn *trace =
		    layout == RT_LAYOUT_TRACE ? trace_words : NULL;
		bool follows = layout != RT_LAYOUT_NONE;

		ck_assert_int_eq(add_layout(9, layout, trace), 9);
		root[0] = rt_alloc_of(9, 48);
		root[1] = rt_alloc_of(9, 40000);
		*(void **)root[0] = rt_alloc_noscan(48);
		*(void **)root[1] = rt_alloc_noscan(48);
		ck_assert_uint_eq(heap_live_after_gc(), follows ? 4 : 2);
		root[0] = root[1] = NULL;
		ck_assert_uint_eq(heap_live_after_gc(), 0);
		ck_assert_int_eq(rt_kind_unregister(9), RT_OK);
	}
}

static const uint64_t first_word[] = {1};
static const rt_type one_word = {
    .struct_size = sizeof(rt_type),
    .size = 8,
    .ptrdata = 8,
    .bitmap = first_word,
};

// The header may be the last word of an object.  An object that ends before the
// header's place has no references.
TEST(a_header_may_be_the_last_word)
{
	start(false);
	ck_assert_int_eq(kind_make(.layout = RT_LAYOUT_HEADER,
				   .number = RT_KIND_ALIGN8_FIRST,
				   .header_offset = 16,
				   .header_mask = UINT64_MAX,
				   .type_offset = RT_TYPE_IS_HEADER),
			 RT_KIND_ALIGN8_FIRST);
	for (size_t n = 8; n <= 48; n += 8) {
		void **p = root[0] = rt_alloc_kind(RT_KIND_ALIGN8_FIRST, n);

		p[0] = rt_alloc_noscan(16);
		if (n >= 24)
			p[2] = (void *)&one_word;
		ck_assert_uint_eq(heap_live_after_gc(), n >= 24 ? 2 : 1);
	}
}
