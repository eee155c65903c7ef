// Stacks of the host that no thread runs on: which of their words are roots,
// and what these words keep alive.
#include <errno.h>
#include <stdio.h>

#include "runtime/os/settings.h"
#include "gc/mark/stacks.h"
#include "gc/mark/work.h"
#include "test/harness/fault.h"
#include "test/harness/fiber.h"
#include "test/harness/kind.h"
#include "test/harness/missed.h"
#include "test/harness/process.h"
#include "test/harness/thread.h"

static const rt_value_format pair = RT_FORMAT_PAIR(0x40, 0x40);
static const rt_value_format low_tag = RT_FORMAT_LOW_TAG(0xf, 0x8);
static const rt_value_format nan_box =
    RT_FORMAT_NAN_BOX(UINT64_C(0xfff9) << 48, (UINT64_C(0xfffa) << 48) - 1);

static rt_config checked(void)
{
	rt_config c = heap_config_checked();

	c.past_end = 0;
	return c;
}

static void begin(void)
{
	heap_start_exact(checked());
}

// A stack of words of a test, on which no thread runs.
enum { WORDS = 64 };
static uintptr_t words[WORDS];
static void *top; // its saved stack pointer

static rt_stack_desc words_desc(unsigned flags)
{
	rt_stack_desc d;

	rt_stack_desc_init(&d);
	d.lo = words;
	d.hi = words + WORDS;
	d.sp = &top;
	d.flags = flags;
	return d;
}

static rt_stack *words_register(unsigned flags)
{
	rt_stack_desc d = words_desc(flags);
	rt_stack *s = heap_stack(&d);

	ck_assert_ptr_nonnull(s);
	return s;
}

// fill makes each word a reference to an object of its own.
static void fill(void)
{
	for (unsigned i = 0; i < WORDS; i++)
		words[i] = (uintptr_t)rt_alloc(48);
}

GROUP(structs, .setup = begin, .timeout = 60);

TEST(a_longer_struct_is_taken_if_the_rest_is_zero)
{
	struct {
		rt_stack_desc d;
		unsigned char more[16];
	} longer = {.d = words_desc(RT_STACK_DOWN)};
	rt_stack *s;

	longer.d.struct_size = sizeof longer;
	s = heap_stack(&longer.d);
	ck_assert_ptr_nonnull(s);
	must(rt_stack_unregister(s));
	for (unsigned i = 0; i < sizeof longer.more; i++) {
		longer.more[i] = 1;
		ck_assert_int_eq(rt_stack_register(&longer.d, &s), RT_EINVAL);
		longer.more[i] = 0;
	}
	// No version is so long.
	longer.d.struct_size = SETTINGS_MAX_STRUCT + 1;
	ck_assert_int_eq(rt_stack_register(&longer.d, &s), RT_EINVAL);
}

GROUP(parts, .setup = begin, .timeout = 60);

TEST(a_stack_that_grows_down_is_used_above_its_pointer)
{
	rt_stack *s;

	fill();
	top = words + 10;
	s = words_register(RT_STACK_DOWN);
	ck_assert_uint_eq(heap_live_after_gc(), WORDS - 10);
	top = words + WORDS;
	ck_assert_uint_eq(heap_live_after_gc(), 0);
	must(rt_stack_unregister(s));
	heap_healthy();
}

TEST(a_stack_that_grows_up_is_used_below_its_pointer)
{
	rt_stack *s;

	fill();
	top = words + 10;
	s = words_register(RT_STACK_UP);
	ck_assert_uint_eq(heap_live_after_gc(), 10);
	top = words;
	ck_assert_uint_eq(heap_live_after_gc(), 0);
	must(rt_stack_unregister(s));
}

// A stack pointer that is null, or outside, bounds nothing.
static void *const outside[] = {NULL, (char *)words - 1, words + WORDS + 1};

TEST(without_a_pointer_inside_all_of_a_stack_is_used,
     .n = 2 * RT_ARRAY_LEN(outside))
{
	fill();
	top = outside[_i / 2];
	words_register(_i % 2 ? RT_STACK_UP : RT_STACK_DOWN);
	ck_assert_uint_eq(heap_live_after_gc(), WORDS);
}

TEST(without_an_address_of_a_pointer_all_of_a_stack_is_used, .n = 2)
{
	rt_stack_desc d = words_desc(_i ? RT_STACK_UP : RT_STACK_DOWN);

	fill();
	d.sp = NULL;
	ck_assert_ptr_nonnull(heap_stack(&d));
	ck_assert_uint_eq(heap_live_after_gc(), WORDS);
}

TEST(a_word_that_a_pointer_points_into_is_used_if_it_is_above)
{
	fill();
	top = (char *)(words + 10) + 3;
	words_register(RT_STACK_DOWN);
	ck_assert_uint_eq(heap_live_after_gc(), WORDS - 10);
}

TEST(a_stack_that_was_unregistered_is_no_root)
{
	rt_stack *s = words_register(RT_STACK_UP);

	fill();
	top = words + WORDS;
	ck_assert_uint_eq(heap_live_after_gc(), WORDS);
	must(rt_stack_unregister(s));
	ck_assert_uint_eq(heap_live_after_gc(), 0);
	ck_assert_int_eq(rt_stack_unregister(s), RT_EINVAL);
}

TEST(registers_beside_the_stack_are_roots)
{
	static uintptr_t registers[5];
	rt_stack_desc d = words_desc(RT_STACK_DOWN);
	rt_stack *s;

	for (unsigned i = 0; i < 5; i++)
		registers[i] = (uintptr_t)rt_alloc(48) + i;
	top = words + WORDS;
	d.regs_lo = registers;
	d.regs_hi = registers + 4;
	s = heap_stack(&d);
	ck_assert_uint_eq(heap_live_after_gc(), 4);
	must(rt_stack_unregister(s));
	ck_assert_uint_eq(heap_live_after_gc(), 0);
}

TEST(a_moved_stack_is_used_where_it_is)
{
	static uintptr_t more[2 * WORDS];
	rt_stack *s = words_register(RT_STACK_UP);

	fill();
	top = words + WORDS;
	ck_assert_uint_eq(heap_live_after_gc(), WORDS);
	memcpy(more, words, sizeof words);
	more[WORDS] = (uintptr_t)rt_alloc(48);
	must(rt_stack_move(s, more, more + 2 * WORDS));
	top = more + WORDS + 1;
	memset(words, 0, sizeof words);
	ck_assert_uint_eq(heap_live_after_gc(), WORDS + 1);
	ck_assert_int_eq(rt_stack_move(s, more, more), RT_EINVAL);
	ck_assert_int_eq(rt_stack_move(s, NULL, more), RT_EINVAL);
	ck_assert_int_eq(rt_stack_move(NULL, words, more), RT_EINVAL);
	ck_assert_uint_eq(heap_live_after_gc(), WORDS + 1);
}

// ---- what a word keeps alive ----

GROUP(what_counts, .setup = begin, .timeout = 60);

TEST(a_word_may_point_anywhere_into_an_object, .n = 2)
{
	words[0] = (uintptr_t)rt_alloc(48) + 17;
	top = words + (_i ? 0 : 1);
	words_register(_i ? RT_STACK_DOWN : RT_STACK_UP);
	ck_assert_uint_eq(heap_live_after_gc(), 1);
}

TEST(an_exact_stack_has_references_only, .n = 2)
{
	words[0] = (uintptr_t)rt_alloc(48);
	words[1] = (uintptr_t)rt_alloc(48) + 8;
	words[2] = (uintptr_t)rt_alloc(48) + 1;
	top = words + (_i ? 0 : 3);
	words_register(RT_STACK_EXACT | (_i ? RT_STACK_DOWN : RT_STACK_UP));
	ck_assert_uint_eq(heap_live_after_gc(), 1);
}

static int base_kind(void)
{
	return kind_make(.layout = RT_LAYOUT_WORDS, .flags = RT_KIND_BASE);
}

// Stacks that grow up count as ranges: there a word beyond the first 16 bytes
// refers to no object of a kind with RT_KIND_BASE.
TEST(base_kinds_ignore_inner_words_of_stacks_that_grow_up, .n = 2)
{
	int kind = base_kind();

	ck_assert_int_gt(kind, 0);
	words[0] = (uintptr_t)rt_alloc_of(kind, 100) + 8;
	words[1] = (uintptr_t)rt_alloc_of(kind, 100) + 56;
	top = words + (_i ? 0 : 2);
	words_register(_i ? RT_STACK_DOWN : RT_STACK_UP);
	ck_assert_uint_eq(heap_live_after_gc(), _i ? 2 : 1);
}

static void fill_pairs(void)
{
	for (unsigned i = 0; i < WORDS; i += 2) {
		words[i] = (uintptr_t)rt_alloc(48);
		words[i + 1] = i % 4 ? 0x40 : 0x20;
	}
}

TEST(a_value_stack_has_values, .n = 2)
{
	rt_stack_desc d = words_desc(RT_STACK_UP);
	rt_value_format f = pair;

	fill_pairs();
	top = words + 21 - _i; // half a value is none
	d.format = &f;
	ck_assert_ptr_nonnull(heap_stack(&d));
	memset(&f, 0xff, sizeof f); // it was copied
	ck_assert_uint_eq(heap_live_after_gc(), 5);
}

// Compiled code may keep an address apart from its tag.  So on a stack that
// grows down a word counts as an address, and as a value.
TEST(a_stack_that_grows_down_has_words_beside_values)
{
	static uintptr_t registers[1];
	rt_stack_desc d = words_desc(RT_STACK_DOWN);

	words[0] = (uintptr_t)rt_alloc(48);
	words[1] = UINT64_C(0xfff9) << 48 | (uintptr_t)rt_alloc(48);
	words[2] = UINT64_C(0xfffb) << 48 | (uintptr_t)rt_alloc(48);
	registers[0] = UINT64_C(0xfff9) << 48 | (uintptr_t)rt_alloc(48);
	top = words;
	d.regs_lo = registers;
	d.regs_hi = registers + 1;
	d.format = &nan_box;
	ck_assert_ptr_nonnull(heap_stack(&d));
	ck_assert_uint_eq(heap_live_after_gc(), 3);
}

TEST(a_plain_format_of_a_stack_that_grows_down_adds_nothing)
{
	rt_stack_desc d = words_desc(RT_STACK_DOWN);

	fill_pairs();
	top = words;
	d.format = &pair;
	ck_assert_ptr_nonnull(heap_stack(&d));
	ck_assert_uint_eq(heap_live_after_gc(), WORDS / 2);
}

GROUP(formats, .timeout = 60);

TEST(the_format_of_all_stacks_counts, .n = 3)
{
	static uintptr_t registers[1];
	rt_config c = checked();
	rt_stack_desc d = words_desc(_i == 1 ? RT_STACK_UP : RT_STACK_DOWN);

	c.stack_format = &nan_box;
	heap_start_exact(c);
	if (_i == 2) {
		int kind = base_kind();

		words[0] = (uintptr_t)rt_alloc_of(kind, 100) + 56;
		registers[0] = (uintptr_t)rt_alloc_of(kind, 100) + 56;
	} else {
		words[0] = (uintptr_t)rt_alloc(48);
		registers[0] = (uintptr_t)rt_alloc(48);
	}
	words[0] |= UINT64_C(0xfff9) << 48;
	registers[0] |= UINT64_C(0xfff9) << 48;
	top = words + (_i == 1);
	d.regs_lo = registers;
	d.regs_hi = registers + 1;
	ck_assert_ptr_nonnull(heap_stack(&d));
	ck_assert_uint_eq(heap_live_after_gc(), _i == 1 ? 1 : 2);
}

// With past_end, a word that equals the end of an object keeps it alive only on
// a stack that grows down and is not exact.
TEST(the_end_of_an_object_counts_on_stacks_that_grow_down, .n = 3)
{
	static const unsigned flags[] = {RT_STACK_DOWN, RT_STACK_UP,
					 RT_STACK_DOWN | RT_STACK_EXACT};
	rt_config c = checked();

	c.past_end = 1;
	heap_start_exact(c);
	words[0] = (uintptr_t)rt_alloc(48) + 48;
	top = words + (_i == 1);
	words_register(flags[_i]);
	ck_assert_uint_eq(heap_live_after_gc(), _i == 0 ? 1 : 0);
	ck_assert_uint_eq(heap_metric("/gc/scan/past-end:objects"),
			  _i == 0 ? 1 : 0);
}

// ---- fibers ----

// A fiber that holds an object in its frame.
struct holder {
	struct fiber fiber;
	rt_stack *stack;
	uintptr_t hidden; // complement of what it holds
	unsigned lost;
	volatile bool over;
};

static void hold(struct fiber *f)
{
	struct holder *h = f->arg;
	void *volatile held = (void *)~h->hidden;

	while (!h->over) {
		fiber_yield(f);
		h->lost += !rt_is_heap(held);
	}
}

static void holder_begin(struct holder *h, unsigned flags)
{
	rt_stack_desc d;

	h->hidden = ~(uintptr_t)rt_alloc_noscan(1000);
	fiber_make(&h->fiber, 64 << 10, hold, h);
	d = fiber_desc(&h->fiber, flags);
	h->stack = heap_stack(&d);
	ck_assert_ptr_nonnull(h->stack);
	fiber_resume(&h->fiber);
}

static bool holder_alive(const struct holder *h)
{
	return rt_is_heap((void *)~h->hidden);
}

static void holder_end(struct holder *h)
{
	h->over = true;
	fiber_resume(&h->fiber);
	ck_assert(h->fiber.done);
	ck_assert_uint_eq(h->lost, 0);
	must(rt_stack_unregister(h->stack));
	fiber_free(&h->fiber);
}

GROUP(fibers, .setup = begin, .timeout = 60);

TEST(a_suspended_fiber_keeps_what_it_holds)
{
	struct holder h = {.lost = 0};

	holder_begin(&h, RT_STACK_DOWN);
	for (unsigned i = 0; i < 3; i++) {
		must(rt_gc());
		ck_assert(holder_alive(&h));
		fiber_resume(&h.fiber);
	}
	holder_end(&h);
	must(rt_gc());
	ck_assert(!holder_alive(&h));
	heap_healthy();
}

// The stacks are more than one job of marking.
TEST(many_fibers_keep_what_they_hold)
{
	enum { N = 300 };
	static struct holder h[N];

	for (unsigned i = 0; i < N; i++)
		holder_begin(&h[i], RT_STACK_DOWN);
	for (unsigned i = 0; i < N; i += 3)
		holder_end(&h[i]);
	must(rt_gc());
	for (unsigned i = 0; i < N; i++) {
		ck_assert(holder_alive(&h[i]) == (i % 3 != 0));
		if (i % 3 != 0)
			holder_end(&h[i]);
	}
	ck_assert_uint_eq(stacks_count(), 0);
	ck_assert_uint_eq(heap_live_after_gc(), 0);
}

TEST(what_is_in_use_of_stacks_is_counted)
{
	uint64_t before;

	must(rt_gc());
	before = heap_metric("/gc/scan/stack:bytes");
	top = words + 10;
	words_register(RT_STACK_DOWN);
	must(rt_gc());
	ck_assert_uint_eq(heap_metric("/gc/scan/stack:bytes"),
			  before + 8 * (WORDS - 10));
}

// A long stack is shared by markers.
TEST(a_deep_stack_is_used_to_its_end, .n = 2)
{
	enum { DEEP = 6 * WORK_PIECE / 8 };
	uintptr_t *deep = calloc(DEEP, sizeof *deep);
	rt_stack_desc d = words_desc(_i ? RT_STACK_UP : RT_STACK_DOWN);

	ck_assert_ptr_nonnull(deep);
	d.lo = deep;
	d.hi = deep + DEEP;
	top = deep + (_i ? DEEP : 0);
	for (size_t i = 0; i < DEEP; i++)
		deep[i] = (uintptr_t)rt_alloc(16);
	ck_assert_ptr_nonnull(heap_stack(&d));
	for (unsigned i = 0; i < 2; i++)
		ck_assert_uint_eq(heap_live_after_gc(), DEEP);
	free(deep);
}

// ---- owned stacks ----

// An object that owns a stack: its callback tells the words of the object and
// what the stack holds.
struct owner {
	struct owner *next;
	rt_stack *stack;
	unsigned *calls;
};

static void trace_owner(rt_tracer *t, void *obj, size_t size, void *arg)
{
	const struct owner *o = obj;

	(void)size;
	(void)arg;
	rt_trace_ptr(t, o->next);
	rt_trace_stack(t, o->stack);
}

static int owner_kind(uint32_t flags)
{
	return kind_make(.layout = RT_LAYOUT_TRACE, .trace = trace_owner,
			 .flags = flags, .name = "owner");
}

static struct owner **root; // one word

static void begin_owned(void)
{
	begin();
	root = (struct owner **)heap_table(1, RT_ROOT_EXACT);
}

static struct owner *owner_new(int kind)
{
	struct owner *o = rt_alloc_of(kind, sizeof *o);

	ck_assert_ptr_nonnull(o);
	return o;
}

GROUP(owned, .setup = begin_owned, .timeout = 60);

TEST(an_owned_stack_lives_with_its_object)
{
	fill();
	top = words + 10;
	*root = owner_new(owner_kind(0));
	(*root)->stack = words_register(RT_STACK_DOWN | RT_STACK_OWNED);
	for (unsigned i = 0; i < 3; i++)
		ck_assert_uint_eq(heap_live_after_gc(), 1 + WORDS - 10);
	*root = NULL;
	ck_assert_uint_eq(heap_live_after_gc(), 0);
}

TEST(an_owned_stack_that_refers_to_its_object_dies)
{
	struct owner *o = owner_new(owner_kind(0));

	words[5] = (uintptr_t)o;
	words[6] = (uintptr_t)rt_alloc(48);
	top = words;
	o->stack = words_register(RT_STACK_DOWN | RT_STACK_OWNED);
	*root = o;
	ck_assert_uint_eq(heap_live_after_gc(), 2);
	*root = NULL;
	ck_assert_uint_eq(heap_live_after_gc(), 0);
}

// A word of each sort counts on an owned stack as it does on a stack that is a
// root.
TEST(an_owned_stack_is_told_as_a_root_counts, .n = 4)
{
	static const struct {
		unsigned flags;
		const rt_value_format *format;
		unsigned live;
	} row[] = {
	    {RT_STACK_DOWN, NULL, 3},
	    {RT_STACK_UP, NULL, 2},
	    {RT_STACK_UP | RT_STACK_EXACT, NULL, 1},
	    {RT_STACK_UP, &low_tag, 1},
	};
	static uintptr_t registers[1];
	rt_stack_desc d = words_desc(row[_i].flags | RT_STACK_OWNED);
	int kind = base_kind();

	words[0] = (uintptr_t)rt_alloc(48);
	words[1] = (uintptr_t)rt_alloc(48) + 8; // tagged
	words[2] = (uintptr_t)rt_alloc_of(kind, 100) + 56;
	registers[0] = (uintptr_t)rt_alloc_of(kind, 100) + 56;
	top = row[_i].flags & RT_STACK_UP ? words + 3 : words;
	d.format = row[_i].format;
	d.regs_lo = registers;
	d.regs_hi = registers + 1;
	*root = owner_new(owner_kind(0));
	(*root)->stack = heap_stack(&d);
	ck_assert_ptr_nonnull((*root)->stack);
	ck_assert_uint_eq(heap_live_after_gc(), 1 + row[_i].live + 1);
}

TEST(values_of_an_owned_stack_may_point_into_base_kinds)
{
	rt_stack_desc d = words_desc(RT_STACK_OWNED);

	words[0] = UINT64_C(0xfff9) << 48 |
		   ((uintptr_t)rt_alloc_of(base_kind(), 100) + 56);
	words[1] = UINT64_C(0xfffb) << 48 | (uintptr_t)rt_alloc(48);
	top = words;
	d.format = &nan_box;
	*root = owner_new(owner_kind(0));
	(*root)->stack = heap_stack(&d);
	ck_assert_uint_eq(heap_live_after_gc(), 2);
}

TEST(a_root_callback_may_tell_an_owned_stack)
{
	rt_stack *s;

	fill();
	top = words;
	s = words_register(RT_STACK_OWNED);
	must(rt_roots_add_fn((rt_roots_fn *)rt_trace_stack, s, "stack"));
	ck_assert_uint_eq(heap_live_after_gc(), WORDS);
	must(rt_roots_remove_fn((rt_roots_fn *)rt_trace_stack, s));
	ck_assert_uint_eq(heap_live_after_gc(), 0);
}

TEST(telling_a_root_or_nothing_adds_nothing)
{
	rt_stack *s;

	fill();
	top = words + 10;
	s = words_register(RT_STACK_DOWN);
	must(rt_roots_add_fn((rt_roots_fn *)rt_trace_stack, s, NULL));
	must(rt_roots_add_fn((rt_roots_fn *)rt_trace_stack, NULL, NULL));
	ck_assert_uint_eq(heap_live_after_gc(), WORDS - 10);
}

TEST(an_owned_stack_is_scanned_once)
{
	int kind = owner_kind(0);
	uint64_t before;
	rt_stack *s = words_register(RT_STACK_UP | RT_STACK_OWNED);

	must(rt_gc());
	before = heap_metric("/gc/scan/stack:bytes");
	top = words + WORDS;
	for (unsigned i = 0; i < 100; i++) {
		struct owner *o = owner_new(kind);

		o->next = *root;
		o->stack = s;
		*root = o;
	}
	must(rt_gc());
	ck_assert_uint_eq(heap_metric("/gc/scan/stack:bytes"),
			  before + sizeof words);
}

// An object that an owner's stack leads to may own another stack, and so on.
TEST(chains_of_owned_stacks_are_followed, .n = 3)
{
	enum { LINKS = 2000 / HEAP_CUT };
	static uintptr_t word[LINKS][2];
	static void *tops[LINKS];
	int kind = owner_kind(0);

	work_limit(_i == 0 ? UINT32_MAX : (uint32_t)_i - 1);
	for (unsigned i = 0; i < LINKS; i++) {
		struct owner *o = owner_new(kind);
		rt_stack_desc d = words_desc(RT_STACK_OWNED);

		d.lo = word[i];
		d.hi = &word[i][2];
		d.sp = &tops[i];
		tops[i] = word[i];
		word[i][0] = (uintptr_t)o + 8;
		word[i][1] = (uintptr_t)*root;
		o->stack = heap_stack(&d);
		ck_assert_ptr_nonnull(o->stack);
		*root = o;
	}
	for (unsigned i = 0; i < 2; i++)
		ck_assert_uint_eq(heap_live_after_gc(), LINKS);
	*root = NULL;
	ck_assert_uint_eq(heap_live_after_gc(), 0);
	work_limit(UINT32_MAX);
}

// If a buffer has no room, objects and callbacks are traced again.
TEST(no_word_of_an_owned_stack_is_lost_without_buffers, .n = 12)
{
	static const uint32_t flags[] = {0, RT_KIND_SERIAL, RT_KIND_ONCE};
	enum { DEEP = 100000 / HEAP_CUT };
	uintptr_t *deep = calloc(DEEP, sizeof *deep);
	rt_stack_desc d = words_desc(RT_STACK_OWNED);
	int kind = owner_kind(flags[_i % 3]);

	for (size_t i = 0; i < DEEP; i++) {
		void **p = rt_alloc_of(i % 2 ? kind : RT_WORDS, 48);

		if (i % 2 == 0)
			p[0] = rt_alloc(16);
		deep[i] = (uintptr_t)p;
	}
	d.lo = deep;
	d.hi = deep + DEEP;
	d.sp = NULL;
	*root = owner_new(kind);
	(*root)->stack = heap_stack(&d);
	work_limit((uint32_t)_i / 3 % 2);
	if (_i >= 6) {
		rt_stack *s = (*root)->stack;

		*root = NULL;
		must(rt_roots_add_fn((rt_roots_fn *)rt_trace_stack, s, NULL));
	}
	for (unsigned i = 0; i < 2; i++)
		ck_assert_uint_eq(heap_live_after_gc(),
				  DEEP + DEEP / 2 + (_i < 6));
	work_limit(UINT32_MAX);
	free(deep);
}

// An object that is kept only by a word equal to its end owns a stack, which
// has another such word.
TEST(ends_of_objects_count_on_owned_stacks)
{
	static uintptr_t second[2];
	rt_stack_desc d = words_desc(RT_STACK_OWNED);
	struct owner *o;
	int kind;

	must(rt_fini());
	rt_config c = checked();
	c.past_end = 1;
	heap_start_exact(c);
	kind = owner_kind(0);
	o = rt_alloc_of(kind, 48);
	words[0] = (uintptr_t)o + 48;
	top = words;
	words_register(RT_STACK_DOWN);
	d.lo = second;
	d.hi = second + 2;
	d.sp = NULL;
	o->stack = heap_stack(&d);
	second[1] = (uintptr_t)rt_alloc(64) + 64;
	second[0] = (uintptr_t)rt_alloc(64);
	ck_assert_uint_eq(heap_live_after_gc(), 3);
	ck_assert_uint_eq(heap_metric("/gc/scan/past-end:objects"), 2);
}

// ---- named frames ----

static rt_frame *frames;
static void *variable, *tagged;

static void name_variables(rt_stack_desc *d)
{
	static const volatile void *slots[] = {&variable, &tagged};
	static rt_frame frame = {NULL, 2, slots, "&variable, &tagged"};

	variable = rt_alloc(48);
	tagged = (char *)rt_alloc(48) + 1;
	frames = &frame;
	top = words + WORDS;
	d->frames = &frames;
}

TEST(frames_of_a_suspended_fiber_are_roots)
{
	rt_stack_desc d = words_desc(RT_STACK_DOWN);

	name_variables(&d);
	ck_assert_ptr_nonnull(heap_stack(&d));
	ck_assert_uint_eq(heap_live_after_gc(), 1);
	frames = NULL;
	ck_assert_uint_eq(heap_live_after_gc(), 0);
}

TEST(frames_of_an_owned_stack_are_told)
{
	rt_stack_desc d = words_desc(RT_STACK_OWNED);
	rt_stack *s;

	name_variables(&d);
	s = heap_stack(&d);
	ck_assert_ptr_nonnull(s);
	ck_assert_uint_eq(heap_live_after_gc(), 0);
	name_variables(&d);
	must(rt_roots_add_fn((rt_roots_fn *)rt_trace_stack, s, NULL));
	ck_assert_uint_eq(heap_live_after_gc(), 1);
}

// ---- the table ----

GROUP(table, .setup = begin, .timeout = 60);

TEST(many_stacks_come_and_go)
{
	enum { MANY = 3000 };
	static uintptr_t word[MANY];
	static rt_stack *stack[MANY];
	uint64_t live = 0;
	struct rng r;

	rng_init(&r, __func__);
	for (unsigned i = 0; i < MANY; i++)
		word[i] = (uintptr_t)rt_alloc(48);
	for (unsigned i = 0; i < 5 * MANY; i++) {
		unsigned k = (unsigned)rng_below(&r, MANY);
		rt_stack_desc d =
		    words_desc(rng_below(&r, 2) ? RT_STACK_UP : RT_STACK_DOWN);

		d.lo = &word[k];
		d.hi = &word[k] + 1;
		d.sp = NULL;
		if (rng_below(&r, 4) == 0)
			d.name = "of many";
		if (stack[k]) {
			must(rt_stack_unregister(stack[k]));
			stack[k] = NULL;
		} else {
			stack[k] = heap_stack(&d);
			ck_assert_ptr_nonnull(stack[k]);
		}
	}
	for (unsigned i = 0; i < MANY; i++)
		live += stack[i] != NULL;
	ck_assert_uint_eq(stacks_count(), live);
	ck_assert_uint_eq(heap_live_after_gc(), live);
	for (unsigned i = 0; i < MANY; i++)
		if (stack[i])
			must(rt_stack_unregister(stack[i]));
	ck_assert_uint_eq(heap_live_after_gc(), 0);
	heap_healthy();
}

TEST(a_name_is_copied_and_cut)
{
	char name[] = "0123456789012345678901234567890123";
	rt_stack_desc d = words_desc(RT_STACK_UP);

	top = words;
	d.name = name;
	ck_assert_ptr_nonnull(heap_stack(&d));
	memset(name, 'x', 10);
	ck_assert_str_eq(stacks_name(stacks_at(0)),
			 "0123456789012345678901234567890");
	words_register(RT_STACK_UP);
	ck_assert_ptr_null(stacks_name(stacks_at(1)));
}

TEST(refused_memory_changes_nothing)
{
	rt_stack_desc d = words_desc(RT_STACK_UP);
	uint64_t n = 0;

	top = words;
	d.name = "name";
	fault_fail(OSCALL_MAP, 1, UINT64_MAX, ENOMEM);
	fault_fail(OSCALL_COMMIT, 1, UINT64_MAX, ENOMEM);
	while (n < 1000000 && heap_stack(&d))
		n++;
	ck_assert_uint_lt(n, 1000000);
	ck_assert_ptr_null(heap_stack(&d));
	ck_assert_uint_eq(stacks_count(), n);
	fault_fail(OSCALL_MAP, 0, 0, 0);
	fault_fail(OSCALL_COMMIT, 0, 0, 0);
	ck_assert_ptr_nonnull(heap_stack(&d));
	heap_healthy();
}

TEST(the_next_heap_has_no_stacks)
{
	fill();
	top = words;
	words_register(RT_STACK_DOWN);
	ck_assert_uint_eq(heap_live_after_gc(), WORDS);
	must(rt_fini());
	begin();
	fill();
	ck_assert_uint_eq(heap_live_after_gc(), 0);
}

TEST(a_child_has_the_stacks)
{
	struct holder h = {.lost = 0};

	holder_begin(&h, RT_STACK_DOWN);
	if (process_forked()) {
		bool ok = rt_gc() == RT_OK && holder_alive(&h);

		h.over = true;
		fiber_resume(&h.fiber);
		ok &= h.fiber.done && h.lost == 0 &&
		      rt_stack_unregister(h.stack) == RT_OK &&
		      heap_live_after_gc() == 0;
		process_end(ok);
	}
	holder_end(&h);
}

// ---- checkmark ----

static unsigned report_row;

static void report(void)
{
	rt_stack_desc d =
	    words_desc(report_row == 2 ? RT_STACK_EXACT : RT_STACK_DOWN);

	begin();
	top = words + WORDS - 1;
	words[WORDS - 1] = (uintptr_t)rt_alloc(48);
	if (report_row == 1)
		d.name = "green";
	if (report_row == 3) {
		d.format = &nan_box;
		words[WORDS - 1] |= UINT64_C(0xfff9) << 48;
	}
	heap_stack(&d);
	must(rt_stop_the_world(RT_STOP_HOST));
	stacks_look();
	missed_look();
}

GROUP(checks, .timeout = 60);

TEST(a_stack_that_was_not_followed_is_named, .n = 4)
{
	report_row = (unsigned)_i;
	missed_at(report, _i == 1 ? "found in registered stack green at 0x"
				  : "found in a registered stack at 0x");
}
