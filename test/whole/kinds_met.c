// Markers remember the last type that they met.  Each object still has the
// references of its own type.
#include <rt/rt.h>

#include <string.h>

#include "gc/mark/grey.h"
#include "test/harness/heap.h"
#include "test/whole/kinds.h"

enum { TYPES = 8, OBJECTS = 4000 / HEAP_CUT, WORDS = 14, LEAF = 32 };

static uint64_t bits[TYPES];
static rt_type types[TYPES];
static const rt_type *table[TYPES];
static void *root[OBJECTS];

// type_set makes a type of some words; word 0 is the header.
static void type_set(unsigned i, unsigned words, uint64_t references)
{
	bits[i] = references;
	types[i] = (rt_type){.struct_size = sizeof(rt_type),
			     .size = words * 8,
			     .ptrdata = words * 8,
			     .bitmap = &bits[i]};
	table[i] = &types[i];
}

// set_types makes types of one size, and one type of another size, which a
// marker remembers in the same place (struct grey_met).
static void set_types(void)
{
	static const uint64_t some[TYPES] = {0,	   0x3e, 0x0e, 0x06,
					     0x2a, 0x20, 0x36, 0x2ffa};

	for (unsigned i = 0; i < TYPES; i++)
		type_set(i, some[i] > 0x3f ? WORDS : 6, some[i]);
}

static rt_kind_desc desc_of(int layout)
{
	rt_kind_desc d = good_desc(layout);

	d.format = NULL;
	if (layout == RT_LAYOUT_INDEX) {
		d.types = table;
		d.ntypes = TYPES;
		d.header_mask = 0xff00;
		d.header_shift = 8;
	}
	return d;
}

static int kind_of(int layout)
{
	rt_kind_desc d = desc_of(layout);
	int kind = rt_kind_register(&d);

	ck_assert_int_gt(kind, 0);
	return kind;
}

// leaf_make makes a leaf.  Its words are no addresses, so a marker that takes a
// leaf for a work buffer faults.
static uintptr_t leaf_make(void)
{
	char *leaf = rt_alloc_noscan(LEAF);

	ck_assert_ptr_nonnull(leaf);
	return (uintptr_t)memset(leaf, 0x5a, LEAF);
}

// made makes an object in which each word but the first refers to a leaf.  It
// adds the number of the objects that must live to *live.
static uintptr_t *made(int kind, unsigned type, uintptr_t header,
		       uint64_t *live)
{
	size_t words = types[type].size / 8;
	uintptr_t *p = rt_alloc_kind(kind, words * 8);

	ck_assert_ptr_nonnull(p);
	p[0] = header;
	for (size_t w = 1; w < words; w++)
		p[w] = leaf_make();
	*live += 1 + (unsigned)__builtin_popcountll(bits[type]);
	return p;
}

static uintptr_t header_of(int layout, unsigned type)
{
	return layout == RT_LAYOUT_INDEX ? 0xab0000 | type << 8 | 0xcd
					 : (uintptr_t)&types[type];
}

static void start(void)
{
	rt_config c = heap_config(HEAP_QUIET);

	c.checkmark = true;
	c.gc_percent = -1;
	heap_start_exact(c);
	set_types();
	must(rt_roots_add(root, root + OBJECTS, RT_ROOT_EXACT));
}

// fill makes objects of random types, in rows of objects of one type.  If row
// is 1, a type is seldom met twice in succession.
static uint64_t fill(int kind, int layout, unsigned row, struct rng *r)
{
	unsigned type = 0;
	uint64_t live = 0;

	for (unsigned i = 0; i < OBJECTS; i++) {
		if (i % row == 0)
			type = (unsigned)rng_below(r, TYPES);
		root[i] = made(kind, type, header_of(layout, type), &live);
	}
	return live;
}

GROUP(met, .timeout = 60);

static const struct {
	int layout;
	unsigned row;
} mixed[] = {
    {RT_LAYOUT_HEADER, 1},
    {RT_LAYOUT_HEADER, 100},
    {RT_LAYOUT_INDEX, 1},
    {RT_LAYOUT_INDEX, 100},
};

TEST(each_object_has_the_references_of_its_type, .n = RT_ARRAY_LEN(mixed))
{
	int layout = mixed[_i].layout;
	struct rng r;
	uint64_t live;
	int kind;

	start();
	rng_init(&r, "each_object_has_the_references_of_its_type");
	kind = kind_of(layout);
	live = fill(kind, layout, mixed[_i].row, &r);
	ck_assert_uint_eq(heap_live_after_gc(), live);
	ck_assert_uint_eq(heap_live_after_gc(), live);
	heap_healthy();
}

// Each object of a chain has 58 leaves, and its successor behind them, so work
// buffers become full in the middle of an object's references.
TEST(buffers_have_room_for_all_references_of_an_object)
{
	enum { CHAIN = 20000 / HEAP_CUT, WIDE = 60 };
	uint64_t live = 0;
	uintptr_t *next = NULL;
	int kind;

	start();
	kind = kind_of(RT_LAYOUT_HEADER);
	type_set(0, WIDE, (UINT64_C(1) << WIDE) - 2);
	for (unsigned i = 0; i < CHAIN; i++) {
		uintptr_t *p =
		    made(kind, 0, header_of(RT_LAYOUT_HEADER, 0), &live);

		p[WIDE - 1] = (uintptr_t)next;
		root[0] = next = p;
	}
	// The last reference of each object leads to its successor, if any, not
	// to a leaf.
	ck_assert_uint_eq(heap_live_after_gc(), live - CHAIN);
	ck_assert_uint_eq(heap_live_after_gc(), live - CHAIN);
	heap_healthy();
}

// An object without a type yet has the size of objects that have a type.
TEST(an_object_without_a_type_has_no_references)
{
	uint64_t live = 0;
	int kind;

	start();
	kind = kind_of(RT_LAYOUT_HEADER);
	for (unsigned i = 0; i < OBJECTS; i++)
		root[i] = made(kind, 1, i % 2 ? header_of(0, 1) : 0, &live);
	live -= OBJECTS / 2 * (unsigned)__builtin_popcountll(bits[1]);
	ck_assert_uint_eq(heap_live_after_gc(), live);
}

// Objects of two kinds may have equal header words.
TEST(kinds_are_remembered_apart)
{
	rt_kind_desc d = desc_of(RT_LAYOUT_TYPE);
	uint64_t live = 0;
	int header, one;

	start();
	d.type = &types[4];
	header = kind_of(RT_LAYOUT_HEADER);
	one = rt_kind_register(&d);
	ck_assert_int_gt(one, 0);
	for (unsigned i = 0; i < OBJECTS; i++)
		root[i] = i % 2 ? made(one, 4, header_of(0, 1), &live)
				: made(header, 1, header_of(0, 1), &live);
	ck_assert_uint_eq(heap_live_after_gc(), live);
}

// Memory of a type may have another type when its kind has ended.
TEST(the_next_marking_remembers_nothing)
{
	uint64_t live = 0;
	int kind, again;

	start();
	kind = kind_of(RT_LAYOUT_HEADER);
	root[0] = made(kind, 1, header_of(0, 1), &live);
	ck_assert_uint_eq(heap_live_after_gc(), live);
	root[0] = NULL;
	ck_assert_uint_eq(heap_live_after_gc(), 0);
	ck_assert_int_eq(rt_kind_unregister(kind), RT_OK);
	type_set(1, 6, 0x12);
	again = kind_of(RT_LAYOUT_HEADER);
	ck_assert_int_eq(again, kind);
	live = 0;
	root[0] = made(again, 1, header_of(0, 1), &live);
	ck_assert_uint_eq(heap_live_after_gc(), live);
}
