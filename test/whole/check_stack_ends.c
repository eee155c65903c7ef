// A word that equals the end of an object keeps the object alive
// (rt_config.past_end), even on a stack that another object owns.
#include <rt/stack.h>

#include "gc/mark/work.h"
#include "test/harness/heap.h"

// The words of the stacks, one each.  No thread runs on these stacks.
enum { MANY = 2000 / HEAP_CUT };
static uintptr_t words[MANY];

struct owner {
	rt_stack *stack;
	uintptr_t rest;
};

static uintptr_t *root; // one word

static void begin(void)
{
	rt_config c = heap_config_checked();

	c.past_end = 1;
	heap_start_exact(c);
	root = heap_table(1, RT_ROOT_EXACT);
}

static void trace_owner(rt_tracer *t, void *obj, size_t size, void *arg)
{
	const struct owner *o = obj;

	(void)size, (void)arg;
	rt_trace_stack(t, o->stack);
}

static void trace_words(rt_tracer *t, void *obj, size_t size, void *arg)
{
	(void)arg;
	rt_trace_words(t, obj, (char *)obj + size);
}

static rt_kind_desc traced(rt_trace_fn *trace)
{
	rt_kind_desc d;

	rt_kind_desc_init(&d);
	d.layout = RT_LAYOUT_TRACE;
	d.trace = trace;
	return d;
}

static int add_kind(rt_kind_desc d)
{
	int kind = rt_kind_register(&d);

	ck_assert_int_gt(kind, 0);
	return kind;
}

// owner_new makes an object that owns the stack of word i.
static struct owner *owner_new(int kind, unsigned i)
{
	struct owner *o = rt_alloc_of(kind, sizeof *o);
	rt_stack_desc d;

	ck_assert_ptr_nonnull(o);
	rt_stack_desc_init(&d);
	d.lo = &words[i];
	d.hi = &words[i] + 1;
	d.flags = RT_STACK_OWNED;
	o->stack = heap_stack(&d);
	ck_assert_ptr_nonnull(o->stack);
	return o;
}

// end_new returns the end of a new object, which is most likely the base of
// another object.  It sets *hidden to the complement of the new object's
// address.
static uintptr_t end_new(uintptr_t *hidden)
{
	uintptr_t p = (uintptr_t)rt_alloc(64);

	ck_assert_uint_ne(p, 0);
	ck_assert_ptr_nonnull(rt_alloc(64));
	*hidden = ~p;
	return p + 64;
}

static bool alive(uintptr_t hidden)
{
	return rt_is_heap((void *)~hidden);
}

GROUP(ends, .setup = begin, .timeout = 60);

// An owner for which a work buffer had no room is traced later, together with
// the objects that are traced again.
TEST(an_end_counts_on_a_stack_that_was_told_late, .n = 2)
{
	static uintptr_t hidden[MANY];
	int kind = add_kind(traced(trace_owner));
	uintptr_t *table;
	uint64_t before;

	ck_assert_int_eq(rt_gc(), RT_OK);
	before = heap_metric("/gc/scan/stack:bytes");
	table = rt_alloc_of(add_kind(traced(trace_words)), sizeof words);
	ck_assert_ptr_nonnull(table);
	*root = (uintptr_t)table;
	for (unsigned i = 0; i < MANY; i++) {
		words[i] = end_new(&hidden[i]);
		table[i] = (uintptr_t)owner_new(kind, i);
	}
	if (_i)
		work_limit(0);
	ck_assert_int_eq(rt_gc(), RT_OK);
	work_limit(UINT32_MAX);
	for (unsigned i = 0; i < MANY; i++)
		ck_assert(alive(hidden[i]));
	ck_assert_uint_eq(heap_metric("/gc/scan/stack:bytes"),
			  before + sizeof words);
}

// An end leads to the owner of another stack, on which an end leads to the
// owner of a third one, and so on.  Each stack comes behind the next in the
// table.
TEST(an_end_counts_on_a_stack_that_an_end_leads_to)
{
	enum { CHAIN = 10 };
	int kind = add_kind(traced(trace_owner));
	uintptr_t hidden;
	rt_stack_desc d;

	words[CHAIN] = end_new(&hidden);
	for (unsigned i = CHAIN; i > 0; i--) {
		words[i - 1] =
		    (uintptr_t)owner_new(kind, i) + sizeof(struct owner);
		// The object that begins at such an end owns no stack.
		ck_assert_ptr_nonnull(rt_alloc_of(kind, sizeof(struct owner)));
	}
	rt_stack_desc_init(&d);
	d.lo = &words[0];
	d.hi = &words[1];
	ck_assert_ptr_nonnull(heap_stack(&d));
	ck_assert_int_eq(rt_gc(), RT_OK);
	ck_assert(alive(hidden));
	for (unsigned i = 0; i < CHAIN; i++)
		ck_assert(rt_is_heap((void *)(words[i] - 1)));
	heap_healthy();
}

static void drop_owner(void *obj, size_t size, void *arg)
{
	const struct owner *o = obj;

	(void)size, (void)arg;
	ck_assert_int_eq(rt_stack_unregister(o->stack), RT_OK);
}

// The owner of the first stack has died.  Only an end on the first stack keeps
// the owner of the second stack.
TEST(an_end_counts_on_a_stack_that_a_dead_object_tells)
{
	rt_kind_desc k = traced(trace_owner);
	int kind = add_kind(k);
	uintptr_t hidden;
	struct owner *o;

	k.flags = RT_KIND_DROP | RT_KIND_DROP_DEEP;
	k.drop = drop_owner;
	owner_new(add_kind(k), 0);
	o = owner_new(kind, 1);
	words[0] = (uintptr_t)o + sizeof *o;
	words[1] = end_new(&hidden);
	for (unsigned i = 0; i < 2; i++) {
		ck_assert_int_eq(rt_gc(), RT_OK);
		ck_assert_uint_eq(rt_finalizers_ready(), 1);
		ck_assert(rt_is_heap(o));
		ck_assert(alive(hidden));
		heap_healthy();
	}
	ck_assert_uint_eq(rt_run_finalizers(0), 1);
	ck_assert_uint_eq(heap_live_after_gc(), 0);
}
