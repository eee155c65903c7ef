// Registered ranges, stacks and registers whose words are values in a format;
// names of ranges.
#include <errno.h>
#include <stdio.h>

#include "gc/mark/roots.h"
#include "gc/mark/work.h"
#include "test/harness/heap.h"
#include "test/harness/missed.h"
#include "test/harness/refuse.h"
#include "test/harness/thread.h"

static const rt_value_format low_tag = RT_FORMAT_LOW_TAG(15, 9);
static const rt_value_format nan_box =
    RT_FORMAT_NAN_BOX(UINT64_C(0xfff9) << 48, (UINT64_C(0xfffa) << 48) - 1);
static const rt_value_format pair = RT_FORMAT_PAIR(0x40, 0x40);
static const rt_value_format pair_range = RT_FORMAT_PAIR_RANGE(3, 5);
static const rt_value_format pair_behind = {
    0, 0, (uint64_t)-9, UINT64_MAX, UINT64_MAX, 0, 0, 16, -1, 0, 0};
static const rt_value_format pair_shifted = {
    0x40, 0x40, 0, UINT64_MAX, UINT64_MAX, 0, 3, 16, 1, 0, 0};
static const rt_value_format shifted = {1, 1, 0, UINT64_MAX, ~UINT64_C(1), 0, 3,
					8, 0, 0, 0};
static const rt_value_format based = {0, 0, 0, UINT64_MAX, UINT64_MAX, 4096,
				      0, 8, 0, 0,	   0};
static const rt_value_format down = {0,	  0, 0, UINT64_MAX, UINT64_MAX, 0,
				     -16, 8, 0, 0,	    0};

enum { WORDS = 64 };
static uint64_t words[WORDS + 2];

static void begin(void)
{
	heap_start_exact(heap_config_checked());
}

static void add(const rt_value_format *f, size_t n)
{
	ck_assert_int_eq(rt_roots_add_values(words, words + n, f, 0), RT_OK);
}

static uint64_t address(void)
{
	void *p = rt_alloc(48);

	ck_assert_ptr_nonnull(p);
	return (uint64_t)(uintptr_t)p;
}

static uint64_t boxed(void)
{
	return address() | UINT64_C(0xfff9) << 48;
}

// ---- every format ----

static void put_low_tag(uint64_t *at)
{
	at[0] = address() | 9;
	at[1] = address() | 1;
	at[2] = address();
	at[3] = address() + 16; // the bits are clear
}

static void put_nan_box(uint64_t *at)
{
	at[0] = boxed();
	at[1] = address() | UINT64_C(0xfff8) << 48;
	at[2] = address() | UINT64_C(0xfffa) << 48;
	at[3] = address();
}

static void put_pair(uint64_t *at)
{
	at[0] = address();
	at[1] = 0x45;
	at[2] = address();
	at[3] = 0x05;
}

// The tags are in turn the last and the first of the range, and the nearest
// ones outside it.
static void put_pair_range(uint64_t *at)
{
	bool last = (at - words) / 4 % 2;

	at[0] = address();
	at[1] = last ? 5 : 3;
	at[2] = address();
	at[3] = last ? 6 : 2;
}

static void put_pair_behind(uint64_t *at)
{
	at[0] = (uint64_t)-1;
	at[1] = address();
	at[2] = 7;
	at[3] = address();
}

static void put_shifted(uint64_t *at)
{
	at[0] = address() >> 3 | 1; // bit 0 is the tag
	at[1] = address() >> 3;
	at[2] = address();
	at[3] = 0;
}

static void put_based(uint64_t *at)
{
	at[0] = address() - 4096;
	at[1] = at[2] = at[3] = 0;
}

static void put_down(uint64_t *at)
{
	at[0] = address() << 16 | 0xffff;
	at[1] = address();
	at[2] = at[3] = 0;
}

static const struct {
	const rt_value_format *f;
	void (*put)(uint64_t *at); // four words, one of which is a reference
} formats[] = {
    {&low_tag, put_low_tag}, {&nan_box, put_nan_box},
    {&pair, put_pair},	     {&pair_behind, put_pair_behind},
    {&shifted, put_shifted}, {&based, put_based},
    {&down, put_down},	     {&pair_range, put_pair_range},
};

GROUP(ranges, .setup = begin, .timeout = 60);

TEST(values_of_a_range_are_roots, .n = RT_ARRAY_LEN(formats))
{
	for (unsigned i = 0; i < WORDS; i += 4)
		formats[_i].put(words + i);
	add(formats[_i].f, WORDS);
	ck_assert_uint_eq(heap_live_after_gc(), WORDS / 4);
	ck_assert_uint_eq(heap_live_after_gc(), WORDS / 4);
	words[0] = words[1] = 0;
	ck_assert_uint_eq(heap_live_after_gc(), WORDS / 4 - 1);
	ck_assert_int_eq(rt_roots_remove(words, words + WORDS), RT_OK);
	ck_assert_uint_eq(heap_live_after_gc(), 0);
}

// A reference may point into its object.
TEST(a_value_may_point_into_an_object)
{
	words[0] = boxed() + 40;
	add(&nan_box, 1);
	ck_assert_uint_eq(heap_live_after_gc(), 1);
}

// Formats whose values are two words, and which of the two is the reference.
static const struct {
	const rt_value_format *f;
	uint64_t tag;
	unsigned reference;
} pairs[] = {
    {&pair, 0x40, 0},
    {&pair_behind, (uint64_t)-1, 1},
    {&pair_shifted, 0x40, 0},
};

static void put_reference(unsigned i, unsigned at)
{
	uint64_t p = address();

	words[at + pairs[i].reference] = p >> pairs[i].f->shift;
	words[at + 1 - pairs[i].reference] = pairs[i].tag;
}

TEST(half_a_value_at_the_end_is_not_read, .n = RT_ARRAY_LEN(pairs))
{
	put_reference(_i, 0);
	put_reference(_i, 2);
	add(pairs[_i].f, 3);
	ck_assert_uint_eq(heap_live_after_gc(), 1);
	// If its other half is there, the second value counts, too.
	put_reference(_i, 2);
	add(pairs[_i].f, 4);
	ck_assert_uint_eq(heap_live_after_gc(), 2);
}

TEST(less_than_one_value_is_no_root)
{
	words[0] = address();
	words[1] = 0x40;
	add(&pair, 1);
	ck_assert_uint_eq(heap_live_after_gc(), 0);
}

// A range of many pieces, with helpers or without.
TEST(a_long_range_is_read_to_its_end, .n = RT_ARRAY_LEN(formats))
{
	enum { LONG = 5 * WORK_PIECE / 8 + 4 };
	uint64_t *table = calloc(LONG, sizeof *table);

	ck_assert_ptr_nonnull(table);
	for (unsigned i = 0; i + 4 <= LONG; i += 4)
		formats[_i].put(table + i);
	must(rt_roots_add_values(table, table + LONG, formats[_i].f, 0));
	ck_assert_uint_eq(heap_live_after_gc(), LONG / 4);
	ck_assert_int_eq(rt_roots_remove(table, table + LONG), RT_OK);
	free(table);
}

TEST(the_format_is_copied)
{
	rt_value_format f = nan_box;

	words[0] = boxed();
	add(&f, 1);
	memset(&f, 0xff, sizeof f);
	ck_assert_uint_eq(heap_live_after_gc(), 1);
}

TEST(no_format_is_words)
{
	words[0] = address() + 13;
	add(NULL, 1);
	ck_assert_uint_eq(heap_live_after_gc(), 1);
	ck_assert_uint_eq(roots_range(0).flags, RT_ROOT_WORDS);
	// The same range can be added with a format as well.
	add(&nan_box, 1);
	ck_assert_int_eq(rt_roots_remove(words, words + 1), RT_OK);
	ck_assert_uint_eq(heap_live_after_gc(), 0);
	ck_assert_int_eq(rt_roots_remove(words, words + 1), RT_OK);
	ck_assert_int_eq(rt_roots_remove(words, words + 1), RT_ENOENT);
}

// A range that was added in several ways is read in all of these ways.
// rt_roots_remove undoes them in the documented order.
TEST(ways_of_a_range_are_undone_in_order)
{
	words[0] = boxed();
	words[1] = address();
	words[2] = address() + 16;
	add(&nan_box, 3);
	ck_assert_uint_eq(heap_live_after_gc(), 1);
	ck_assert_int_eq(rt_roots_add(words, words + 3, RT_ROOT_WORDS), RT_OK);
	ck_assert_int_eq(rt_roots_add(words, words + 3, RT_ROOT_EXACT), RT_OK);
	add(&nan_box, 3);
	ck_assert_uint_eq(roots_ranges(), 1);
	words[1] = address();
	words[2] = address() + 16;
	ck_assert_uint_eq(heap_live_after_gc(), 3);
	ck_assert_int_eq(rt_roots_remove(words, words + 3), RT_OK); // exact
	ck_assert_uint_eq(heap_live_after_gc(), 3);
	ck_assert_int_eq(rt_roots_remove(words, words + 3), RT_OK); // words
	ck_assert_uint_eq(heap_live_after_gc(), 1);
	ck_assert_int_eq(rt_roots_remove(words, words + 3), RT_OK);
	words[1] = address();
	ck_assert_uint_eq(heap_live_after_gc(), 1);
	ck_assert_int_eq(rt_roots_remove(words, words + 3), RT_OK);
	ck_assert_uint_eq(heap_live_after_gc(), 0);
	ck_assert_int_eq(rt_roots_remove(words, words + 3), RT_ENOENT);
}

TEST(a_second_format_is_refused)
{
	words[0] = boxed();
	add(&nan_box, 1);
	ck_assert_int_eq(rt_roots_add_values(words, words + 1, &low_tag, 0),
			 RT_EEXIST);
	ck_assert_uint_eq(heap_live_after_gc(), 1);
	ck_assert_int_eq(rt_roots_remove(words, words + 1), RT_OK);
	ck_assert_int_eq(rt_roots_remove(words, words + 1), RT_ENOENT);
	add(&low_tag, 1);
	ck_assert_uint_eq(heap_live_after_gc(), 0);
}

static rt_value_format changed(int what)
{
	rt_value_format f = what < 4 ? pair : nan_box;

	switch (what) {
	case 0:
		f.test_at = 2;
		break;
	case 1:
		f.test_at = -2;
		break;
	case 2:
		f.stride = 24;
		break;
	case 3:
		f.stride = 0;
		break;
	case 4:
		f.test_at = 1;
		break;
	case 5:
		f.test_at = -1;
		break;
	case 6:
		f.shift = 17;
		break;
	case 7:
		f.shift = -17;
		break;
	case 8:
		f.spare = 1;
		break;
	default:
		f.flags = 1;
	}
	return f;
}

enum { WRONG_FORMATS = 10 };

TEST(wrong_arguments_are_refused)
{
	char *at = (char *)words;

	for (int i = 0; i < WRONG_FORMATS; i++) {
		rt_value_format f = changed(i);

		ck_assert_int_eq(rt_roots_add_values(words, words + 2, &f, 0),
				 RT_EINVAL);
	}
	for (unsigned flag = 1; flag != 0; flag <<= 1)
		ck_assert_int_eq(
		    rt_roots_add_values(words, words + 2, &pair, flag),
		    RT_EINVAL);
	ck_assert_int_eq(rt_roots_add_values(NULL, words, &pair, 0), RT_EINVAL);
	ck_assert_int_eq(rt_roots_add_values(words, NULL, &pair, 0), RT_EINVAL);
	ck_assert_int_eq(rt_roots_add_values(words, words, &pair, 0),
			 RT_EINVAL);
	ck_assert_int_eq(rt_roots_add_values(words + 2, words, &pair, 0),
			 RT_EINVAL);
	ck_assert_int_eq(rt_roots_add_values(at + 4, words + 2, &pair, 0),
			 RT_EINVAL);
	ck_assert_int_eq(rt_roots_add_values(words, at + 12, &pair, 0),
			 RT_EINVAL);
	ck_assert_int_eq(rt_roots_add_values(NULL, words, NULL, 0), RT_EINVAL);
	ck_assert_uint_eq(roots_ranges(), 0);
}

// ---- names ----

static const char *name_of(size_t i)
{
	return roots_range(i).name;
}

TEST(a_range_has_a_name_until_it_ends)
{
	char name[] = "globals of the host";

	ck_assert_int_eq(rt_roots_name(words, words + 1, name), RT_ENOENT);
	ck_assert_int_eq(rt_roots_add(words, words + 1, 0), RT_OK);
	ck_assert_int_eq(rt_roots_add(words, words + 1, 0), RT_OK);
	ck_assert_ptr_null(name_of(0));
	ck_assert_int_eq(rt_roots_name(words, words + 2, name), RT_ENOENT);
	ck_assert_int_eq(rt_roots_name(words, words + 1, name), RT_OK);
	memset(name, 'x', 5); // it was copied
	ck_assert_str_eq(name_of(0), "globals of the host");
	ck_assert_int_eq(rt_roots_remove(words, words + 1), RT_OK);
	ck_assert_str_eq(name_of(0), "globals of the host");
	ck_assert_int_eq(rt_roots_name(words, words + 1, "short"), RT_OK);
	ck_assert_str_eq(name_of(0), "short");
	ck_assert_int_eq(rt_roots_name(words, words + 1, ""), RT_OK);
	ck_assert_ptr_null(name_of(0));
	ck_assert_int_eq(rt_roots_name(words, words + 1, "short"), RT_OK);
	ck_assert_int_eq(rt_roots_remove(words, words + 1), RT_OK);
	ck_assert_int_eq(rt_roots_add(words, words + 1, 0), RT_OK);
	ck_assert_ptr_null(name_of(0));
}

TEST(a_long_name_is_cut)
{
	ck_assert_int_eq(rt_roots_add(words, words + 1, 0), RT_OK);
	must(rt_roots_name(words, words + 1,
			   "0123456789012345678901234567890123"));
	ck_assert_str_eq(name_of(0), "0123456789012345678901234567890");
	heap_healthy();
}

TEST(wrong_names_are_refused)
{
	ck_assert_int_eq(rt_roots_add(words, words + 1, 0), RT_OK);
	ck_assert_int_eq(rt_roots_name(words, words + 1, NULL), RT_EINVAL);
	ck_assert_int_eq(rt_roots_name(NULL, words + 1, "x"), RT_EINVAL);
	ck_assert_int_eq(rt_roots_name(words, NULL, "x"), RT_EINVAL);
	ck_assert_int_eq(rt_roots_name(words, words, "x"), RT_EINVAL);
	ck_assert_int_eq(rt_roots_name((char *)words + 1, words + 1, "x"),
			 RT_EINVAL);
	ck_assert_ptr_null(name_of(0));
}

// A name and a format belong to one range.  Each range keeps its own name and
// format when ranges move in the table.
TEST(formats_and_names_belong_to_their_ranges)
{
	char name[20];

	for (unsigned i = 0; i < WORDS; i++) {
		words[i] = boxed();
		must(rt_roots_add_values(words + i, words + i + 1,
					 i % 2 ? &nan_box : &down, 0));
		snprintf(name, sizeof name, "range %u", i);
		must(rt_roots_name(words + i, words + i + 1, name));
	}
	for (unsigned i = 0; i < WORDS; i += 4)
		must(rt_roots_remove(words + i, words + i + 1));
	ck_assert_uint_eq(roots_ranges(), WORDS - WORDS / 4);
	for (unsigned i = 0; i < roots_ranges(); i++) {
		struct roots_range r = roots_range(i);
		size_t n = (uint64_t *)r.lo - words;

		snprintf(name, sizeof name, "range %zu", n);
		ck_assert_str_eq(r.name, name);
		ck_assert_int_eq(r.format->shift, n % 2 ? 0 : -16);
	}
	ck_assert_uint_eq(heap_live_after_gc(), WORDS / 2);
	heap_healthy();
}

TEST(ranges_that_come_and_go_need_no_more_memory)
{
	uint64_t other_sys = 0;

	for (unsigned i = 0; i < 20000; i++) {
		add(&nan_box, 1);
		ck_assert_int_eq(rt_roots_name(words, words + 1, "x"), RT_OK);
		ck_assert_int_eq(rt_roots_remove(words, words + 1), RT_OK);
		if (i == 0)
			other_sys = heap_stats().other_sys;
	}
	ck_assert_uint_eq(heap_stats().other_sys, other_sys);
	ck_assert_uint_eq(roots.labels.inuse, 0);
}

// ---- checkmark ----

static int report_case;

static void report(void)
{
	// No collection runs before the look, so no object is marked.
	begin();
	words[0] = 1;
	words[1] = 0;
	words[2] = report_case < 2 ? boxed() : address();
	words[3] = 0x40;
	if (report_case < 2)
		add(&nan_box, 4);
	else
		add(&pair, 4);
	if (report_case % 2 == 1)
		rt_roots_name(words, words + 4, "the stack of values");
	missed_look();
}

GROUP(checks, .timeout = 60);

TEST(a_value_that_was_not_followed_is_named, .n = 4)
{
	char want[100];

	report_case = _i;
	snprintf(want, sizeof want, "found in %s at %p",
		 _i % 2 ? "root range the stack of values" : "a root range",
		 (void *)&words[2]);
	missed_at(report, want);
}

// ---- refused memory ----

static unsigned refused(int error)
{
	ck_assert(error == RT_OK || error == RT_ENOMEM);
	return error != RT_OK;
}

// add_many returns how many calls were refused memory.
static size_t add_many(void)
{
	static uint64_t many[8000];
	size_t n = 0;

	for (unsigned i = 0; i < RT_ARRAY_LEN(many); i++) {
		uint64_t *lo = many + i;
		int error = rt_roots_add_values(lo, lo + 1, &nan_box, 0);

		n += refused(error);
		if (error == RT_OK) {
			error = rt_roots_name(lo, lo + 1, "x");
			ck_assert_int_eq(error, RT_OK);
			continue;
		}
		ck_assert_int_eq(rt_roots_remove(lo, lo + 1), RT_ENOENT);
		// There may be room for a range without a format, but not for
		// its name.
		if (refused(rt_roots_add(lo, lo + 1, 0)))
			continue;
		n += refused(rt_roots_name(lo, lo + 1, "x"));
		ck_assert_int_eq(rt_roots_remove(lo, lo + 1), RT_OK);
	}
	heap_healthy();
	for (unsigned i = 0; i < RT_ARRAY_LEN(many); i++)
		rt_roots_remove(many + i, many + i + 1);
	ck_assert_uint_eq(roots_ranges(), 0);
	return n;
}

TEST(refused_memory_changes_nothing, .n = OSCALL_COUNT)
{
	size_t n = refuse_each((enum oscall)_i, 2, add_many);

	if (_i == OSCALL_MAP || _i == OSCALL_COMMIT)
		ck_assert_uint_gt(n, 0);
}

// ---- stacks and registers ----

enum { BOXES = 1000 };

static rt_config stack_config(const rt_value_format *f)
{
	rt_config c = heap_config(HEAP_QUIET);

	c.stack_format = f;
	c.checkmark = 1;
	return c;
}

typedef void put_fn(volatile uint64_t *at);

static RT_NOINLINE void put_boxes(volatile uint64_t *at)
{
	for (unsigned i = 0; i < BOXES; i++)
		at[i] = boxed();
}

static RT_NOINLINE void put_pairs(volatile uint64_t *at)
{
	// Value words less the base, so that none is an address itself.  No tag
	// is beside them.
	for (unsigned i = 0; i < BOXES; i++)
		at[i] = address() - (UINT64_C(1) << 50);
}

// wipe overwrites what earlier calls left below on the stack.
static RT_NOINLINE void wipe(void)
{
	volatile uint64_t rubbish[4096];

	for (unsigned i = 0; i < RT_ARRAY_LEN(rubbish); i++)
		rubbish[i] = i;
}

// live_with calls put, which stores values on this stack.  It returns how many
// objects survive a collection.
static RT_NOINLINE uint64_t live_with(put_fn *put)
{
	volatile uint64_t boxes[BOXES];
	uint64_t live;

	put(boxes);
	wipe();
	live = heap_live_after_gc();
	boxes[0] = boxes[1]; // boxes is in use until here
	return live;
}

GROUP(stacks, .timeout = 120);

// A few words of other frames may keep objects by chance.
TEST(boxes_on_a_stack_keep_their_objects)
{
	heap_start(stack_config(&nan_box));
	ck_assert_uint_ge(live_with(put_boxes), BOXES);
	wipe();
	ck_assert_uint_lt(heap_live_after_gc(), BOXES / 10);
}

TEST(without_the_format_they_do_not)
{
	heap_start(stack_config(NULL));
	ck_assert_uint_lt(live_with(put_boxes), BOXES / 10);
}

// A value word counts wherever its tag is.
TEST(value_words_on_a_stack_need_no_tag, .n = 2)
{
	rt_value_format f = _i == 0 ? pair : pair_behind;

	f.base = UINT64_C(1) << 50;
	heap_start(stack_config(&f));
	memset(&f, 0, sizeof f); // it was copied
	ck_assert_uint_ge(live_with(put_pairs), BOXES);
	wipe();
	ck_assert_uint_lt(heap_live_after_gc(), BOXES / 10);
}

// An address in the value word is found without the format.
TEST(a_format_of_plain_addresses_adds_nothing)
{
	heap_start(stack_config(&pair));
	ck_assert_ptr_null(roots_stack_format());
}

TEST(the_next_heap_has_no_format)
{
	heap_start(stack_config(&nan_box));
	ck_assert_ptr_nonnull(roots_stack_format());
	ck_assert_int_eq(rt_fini(), RT_OK);
	heap_start(stack_config(NULL));
	ck_assert_ptr_null(roots_stack_format());
}

TEST(a_wrong_format_is_refused)
{
	for (int i = 0; i < WRONG_FORMATS; i++) {
		rt_value_format f = changed(i);
		rt_config c = stack_config(&f);

		ck_assert_int_eq(rt_init(&c), RT_EINVAL);
	}
	heap_begin();
}

// A host that was compiled without the field has no format, whatever is behind
// its struct.
TEST(a_shorter_struct_has_no_format)
{
	rt_config c = stack_config(&nan_box);

	c.struct_size = offsetof(rt_config, stack_format);
	ck_assert_int_eq(rt_init(&c), RT_OK);
	ck_assert_ptr_null(roots_stack_format());
}

// The registers of a stopped thread may hold values as well.
static void *box_in_a_register(void *arg)
{
	struct rt_proc *holder = arg;
	uintptr_t *reg = (uintptr_t *)holder->context.frame.regs;
	uintptr_t before = *reg;
	uint64_t box;

	ck_assert_int_eq(rt_thread_attach(RT_THREAD_EXACT), RT_OK);
	box = boxed();
	// The holder is in a blocking region, where its registers are saved.
	*reg = box;
	ck_assert_int_eq(rt_gc(), RT_OK);
	ck_assert_int_eq(rt_is_heap((void *)(box << 16 >> 16)), 1);
	*reg = before;
	ck_assert_int_eq(rt_gc(), RT_OK);
	ck_assert_int_eq(rt_is_heap((void *)(box << 16 >> 16)), 0);
	ck_assert_int_eq(rt_thread_detach(), RT_OK);
	return NULL;
}

TEST(boxes_in_registers_keep_their_objects)
{
	heap_start(stack_config(&nan_box));
	run_beside(box_in_a_register, proc_self());
}

// A list whose head is a box on the stack survives a collection in every
// allocation, on several threads.
static RT_NOINLINE uint64_t build(uint64_t seed)
{
	volatile uint64_t list = 0;

	for (unsigned i = 0; i < 50; i++) {
		uint64_t *node = rt_alloc(32);

		ck_assert_ptr_nonnull(node);
		node[1] = seed + i;
		node[0] = list << 16 >> 16; // a plain address in the heap
		list = (uint64_t)(uintptr_t)node | UINT64_C(0xfff9) << 48;
		node = NULL;
	}
	return list;
}

static void *build_lists(void *arg)
{
	uint64_t seed = (uintptr_t)arg;

	if (seed != 0)
		ck_assert_int_eq(rt_thread_attach(0), RT_OK);
	for (unsigned round = 0; round < 20 / HEAP_CUT + 1; round++) {
		volatile uint64_t list = build(seed);
		const uint64_t *node;

		wipe();
		ck_assert_ptr_nonnull(rt_alloc(100));
		node = (const uint64_t *)(uintptr_t)(list << 16 >> 16);
		for (unsigned i = 50; i-- > 0;
		     node = (const uint64_t *)(uintptr_t)node[0])
			ck_assert_uint_eq(node[1], seed + i);
		ck_assert_ptr_null(node);
	}
	if (seed != 0)
		ck_assert_int_eq(rt_thread_detach(), RT_OK);
	return NULL;
}

TEST(boxes_survive_a_collection_in_every_allocation)
{
	rt_config c = stack_config(&nan_box);
	pthread_t t[3];

	c.gcstress = 1;
	c.clobberfree = 1;
	heap_start(c);
	for (uintptr_t i = 0; i < 3; i++)
		t[i] = start_thread(build_lists, (void *)(1000 * (i + 1)));
	build_lists(NULL);
	for (unsigned i = 0; i < 3; i++)
		join_beside(t[i]);
	heap_healthy();
}
