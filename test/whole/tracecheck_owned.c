// References that an object tells by rt_trace_stack count as told by the
// object.
#include <rt/stack.h>

#include "test/whole/tracecheck.h"

static uintptr_t words[1]; // of a stack on which no thread runs
static uintptr_t registers[1];

// An object that owns a stack.
struct owner {
	void *untold; // only the stack tells it
	rt_stack *stack;
};

static void trace_owner(rt_tracer *t, void *obj, size_t size, void *arg)
{
	const struct owner *o = obj;

	(void)size, (void)arg;
	rt_trace_stack(t, o->stack);
}

static struct owner *owner_new(int kind, const rt_stack_desc *d)
{
	struct owner *o = (struct owner *)make(kind, sizeof *o);

	o->stack = heap_stack(d);
	ck_assert_ptr_nonnull(o->stack);
	return o;
}

static rt_stack_desc words_desc(void)
{
	rt_stack_desc d;

	rt_stack_desc_init(&d);
	d.lo = words;
	d.hi = words + 1;
	d.flags = RT_STACK_OWNED;
	return d;
}

static const rt_value_format boxes =
    RT_FORMAT_NAN_BOX(UINT64_C(0xfffe) << 48, (UINT64_C(0xffff) << 48) - 1);

GROUP(owned, .setup = start, .timeout = 60);

// On an owned stack, a pointer into the middle of an object tells the object
// even if its kind has RT_KIND_BASE: as a word, as a value and in a register.
TEST(what_an_owned_stack_tells_is_told, .n = 4)
{
	rt_kind_desc k = traced("inner", trace_nothing);
	rt_stack_desc d = words_desc();
	uintptr_t *target;
	struct owner *o;

	k.flags = RT_KIND_BASE;
	target = make(add_kind(k), 100);
	words[0] = (uintptr_t)target + 56;
	if (_i == 1)
		words[0] |= UINT64_C(0xfffe) << 48;
	if (_i >= 2) {
		registers[0] = words[0];
		words[0] = 0;
		d.regs_lo = registers;
		d.regs_hi = registers + 1;
	}
	if (_i == 1 || _i == 3)
		d.format = &boxes;
	if (_i == 3)
		registers[0] |= UINT64_C(0xfffe) << 48;
	o = owner_new(add_kind(traced("owner", trace_owner)), &d);
	o->untold = target;
	root[0] = (uintptr_t *)o;
	expect_no_lines();
	ck_assert_uint_eq(heap_live(), 2);
}

TEST(what_an_owned_stack_does_not_tell_is_named)
{
	rt_stack_desc d = words_desc();
	struct owner *o;

	o = owner_new(add_kind(traced("owner", trace_owner)), &d);
	root[0] = (uintptr_t *)o;
	// This leaf is made first, so it lies above the other leaf.  Otherwise
	// the address of the other leaf could be the end of this one.
	o->untold = (void *)leaf();
	words[0] = leaf();
	ck_assert_uint_eq(report(), 1);
	expect_in(said[0], ", offset 0: untold reference to RT_NOSCAN");
	ck_assert_uint_eq(heap_live(), 2);
}

// If the stack is a root, rt_trace_stack tells nothing.
TEST(what_a_root_holds_is_not_told_by_an_object)
{
	rt_stack_desc d = words_desc();
	struct owner *o;

	words[0] = leaf();
	d.flags = 0;
	o = owner_new(add_kind(traced("owner", trace_owner)), &d);
	o->untold = (void *)words[0];
	root[0] = (uintptr_t *)o;
	ck_assert_uint_eq(report(), 1);
	expect_in(said[0], "which is reached otherwise");
}
