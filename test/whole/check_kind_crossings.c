// Flags of kinds beside typed objects, formats, root callbacks and handles.
#include <rt/rt.h>

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "gc/mark/gain.h"
#include "gc/mark/work.h"
#include "test/harness/kind.h"
#include "test/harness/holder.h"
#include "test/harness/missed.h"

static const rt_value_format nan_box =
    RT_FORMAT_NAN_BOX(UINT64_C(0xfff9) << 48, (UINT64_C(0xfffa) << 48) - 1);

static uint64_t boxed(uint64_t word)
{
	return word | UINT64_C(0xfff9) << 48;
}

// ---- heaps ----

enum mode { ALONE, NO_MEMORY, HELPERS, HELPERS_FEW_MEMORY, MODES };

static void start(enum mode mode)
{
	rt_config c = heap_config_checked();

	c.max_procs = 4;
	c.gc_threads = mode >= HELPERS ? 3 : 0;
	c.clobberfree = 1;
	c.stack_format = &nan_box;
	gain = (struct gain){.interval = UINT32_MAX}; // helpers are called
	if (mode == NO_MEMORY)
		work_limit(0);
	if (mode == HELPERS_FEW_MEMORY)
		work_limit(1);
	heap_start_exact(c);
}

static int add_kind(rt_kind_desc *d)
{
	int kind = rt_kind_register(d);

	ck_assert_int_gt(kind, 0);
	return kind;
}

// ---- nodes: objects of kinds with flags ----

enum {
	NODES = 10000 / HEAP_CUT, // more than some buffers hold
	NODE_WORDS = 6,
	FILLING = 10000, // words, so many that helpers are called
};

static struct {
	uint32_t flags;
	pthread_t collector;
	atomic_u32 inside; // callbacks that run
	atomic_u32 wrong;  // callbacks that found something wrong
	atomic_u32 firsts[NODES];
	atomic_u32 calls[NODES];
	uint64_t *node[NODES];
} graph;

static_assert(NODES > 3 * WORK_ENTRIES, "more than some buffers hold");

static void expect(bool ok)
{
	if (!ok)
		atomic_u32_add_relaxed(&graph.wrong, 1);
}

// trace_node traces a node, which holds its number and a reference to a leaf.
static void trace_node(rt_tracer *t, void *obj, size_t size, void *arg)
{
	uint64_t *p = obj;

	(void)size, (void)arg;
	expect(rt_tracer_self() == t);
	if (graph.flags & RT_KIND_SERIAL) {
		expect(atomic_u32_add_relaxed(&graph.inside, 1) == 1);
		expect(pthread_equal(pthread_self(), graph.collector));
	}
	atomic_u32_add_relaxed(&graph.calls[p[0]], 1);
	atomic_u32_add_relaxed(&graph.firsts[p[0]],
			       (uint32_t)rt_trace_first(t));
	rt_trace_ptr(t, (void *)(uintptr_t)p[1]);
	if (graph.flags & RT_KIND_SERIAL)
		atomic_u32_add_relaxed(&graph.inside, UINT32_MAX);
}

static void make_nodes(uint32_t flags)
{
	int kind;

	graph.flags = flags;
	kind = kind_make(.layout = RT_LAYOUT_TRACE, .trace = trace_node,
			 .flags = flags);
	for (unsigned i = 0; i < NODES; i++) {
		uint64_t *p = rt_alloc_of(kind, NODE_WORDS * 8);

		ck_assert_ptr_nonnull(p);
		p[0] = i;
		p[1] = (uintptr_t)rt_alloc_noscan(16);
		graph.node[i] = p;
	}
}

// ---- ways that lead to nodes ----

static uintptr_t root[1];
static uintptr_t filling[FILLING];
static uint64_t values[NODES];

// fill roots an object many times.
static void fill(void)
{
	filling[0] = (uintptr_t)rt_alloc(16);
	for (unsigned i = 1; i < FILLING; i++)
		filling[i] = filling[0];
	must(rt_roots_add(filling, filling + FILLING, RT_ROOT_EXACT));
}

// hold makes an exact root of an object.
static void *hold(void *p)
{
	ck_assert_ptr_nonnull(p);
	root[0] = (uintptr_t)p;
	ck_assert_int_eq(rt_roots_add(root, root + 1, RT_ROOT_EXACT), RT_OK);
	return p;
}

static void tell_pointers(rt_tracer *t, void *arg)
{
	(void)arg;
	expect(rt_trace_first(t) == 0 && rt_tracer_self() == t);
	for (unsigned i = 0; i < NODES; i++) {
		rt_trace_name(t, "node", i);
		rt_trace_ptr(t, (void *)(uintptr_t)values[i]);
	}
	expect(rt_trace_first(t) == 0);
}

static void tell_row(rt_tracer *t, void *arg)
{
	(void)arg;
	rt_trace_words(t, values, values + NODES);
}

static void tell_values(rt_tracer *t, void *arg)
{
	(void)arg;
	rt_trace_values(t, values, values + NODES, &nan_box);
}

// Each function by_... makes the collector reach what values[i] refers to, in
// its own way.  Returns the number of objects that it allocated.

static unsigned by_pointers(void)
{
	rt_roots_add_fn(tell_pointers, NULL, "graph");
	return 0;
}

static unsigned by_row(void)
{
	rt_roots_add_fn(tell_row, NULL, NULL);
	return 0;
}

static unsigned by_values(void)
{
	for (unsigned i = 0; i < NODES; i++)
		values[i] = boxed(values[i]);
	rt_roots_add_fn(tell_values, NULL, NULL);
	return 0;
}

static unsigned by_formatted_range(void)
{
	for (unsigned i = 0; i < NODES; i++)
		values[i] = boxed(values[i]);
	rt_roots_add_values(values, values + NODES, &nan_box, 0);
	return 0;
}

static const uint64_t bit_0[] = {1}, bit_1[] = {2};

// by_typed leads to nodes by one typed object for each node.
static unsigned by_typed(const rt_type *type)
{
	uint64_t **table = hold(rt_alloc(NODES * sizeof *table));

	for (unsigned i = 0; i < NODES; i++) {
		table[i] = rt_alloc_typed(type, 1);
		ck_assert_ptr_nonnull(table[i]);
		table[i][1] = values[i];
	}
	return NODES + 1;
}

static unsigned by_typed_16(void)
{
	static const rt_type type = RT_TYPE_INIT(
	    16, 16, bit_1, 0, 0, NULL, NULL, NULL, NULL, NULL, NULL, "pair", 0);

	return by_typed(&type);
}

static unsigned by_typed_24(void)
{
	static const rt_type type =
	    RT_TYPE_INIT(24, 16, bit_1, 0, 0, NULL, NULL, NULL, NULL, NULL,
			 NULL, "three", 8);

	return by_typed(&type);
}

static const rt_type cell = RT_TYPE_INIT(8, 8, bit_0, 0, 0, NULL, NULL, NULL,
					 NULL, NULL, NULL, "cell", 0);

// by_rows leads to nodes by typed arrays of n elements.
static unsigned by_rows(unsigned n)
{
	uint64_t **table = hold(rt_alloc(NODES * sizeof *table));
	unsigned rows = 0;

	for (unsigned i = 0; i < NODES; i++) {
		if (i % n == 0)
			table[rows++] = rt_alloc_typed(&cell, n);
		table[rows - 1][i % n] = values[i];
	}
	return rows + 1;
}

static unsigned by_typed_rows(void)
{
	return by_rows(400);
}

static unsigned by_typed_large(void)
{
	return by_rows(NODES);
}

static unsigned by_handles(void)
{
	for (unsigned i = 0; i < NODES; i++)
		ck_assert_ptr_nonnull(rt_handle_new((void *)values[i]));
	return 0;
}

static void tell_all(rt_tracer *t, void *obj, size_t size, void *arg)
{
	(void)arg;
	for (size_t i = 0; i < size / 8; i++)
		rt_trace_ptr(t, ((void **)obj)[i]);
}

// by_kind leads to nodes by one object of a kind.
static unsigned by_kind(rt_kind_desc *d)
{
	uint64_t *p = hold(rt_alloc_kind(add_kind(d), sizeof values));

	memcpy(p, values, sizeof values);
	return 1;
}

static unsigned by_callback(void)
{
	return by_kind(
	    &kind_desc(.layout = RT_LAYOUT_TRACE, .trace = tell_all));
}

// by_callbacks leads to nodes by objects that have a size class.
static unsigned by_callbacks(void)
{
	enum { EACH = 100 };
	int kind = kind_make(.layout = RT_LAYOUT_TRACE, .trace = tell_all);
	uint64_t **table = hold(rt_alloc(NODES / EACH * sizeof *table));

	static_assert(NODES % EACH == 0, "no place is left over");
	for (unsigned i = 0; i < NODES / EACH; i++) {
		table[i] = rt_alloc_of(kind, EACH * 8);
		ck_assert_ptr_nonnull(table[i]);
		memcpy(table[i], &values[i * EACH], EACH * 8);
	}
	return NODES / EACH + 1;
}

static unsigned by_type(void)
{
	static const rt_type type = RT_TYPE_INIT(
	    0, 0, NULL, 8, 8, bit_0, NULL, NULL, NULL, NULL, NULL, "row", 0);
	return by_kind(&kind_desc(.layout = RT_LAYOUT_TYPE, .type = &type));
}

static unsigned by_formatted_kind(void)
{
	for (unsigned i = 0; i < NODES; i++)
		values[i] = boxed(values[i]);
	return by_kind(
	    &kind_desc(.layout = RT_LAYOUT_WORDS, .format = &nan_box));
}

static const struct way {
	const char *name;
	unsigned (*make)(void);
	bool exact; // only references to the begin of an object
} ways[] = {
    {"pointers of a root callback", by_pointers, false},
    {"a row of a root callback", by_row, false},
    {"values of a root callback", by_values, false},
    {"a range in a format", by_formatted_range, false},
    {"typed objects of 16 bytes", by_typed_16, false},
    {"typed objects of 24 bytes", by_typed_24, false},
    {"typed rows", by_typed_rows, false},
    {"a large typed row", by_typed_large, false},
    {"handles", by_handles, true},
    {"a callback", by_callback, false},
    {"callbacks of smaller objects", by_callbacks, false},
    {"a type", by_type, false},
    {"a kind in a format", by_formatted_kind, false},
};
enum { WAYS = RT_ARRAY_LEN(ways) };

// ---- what the flags promise, by every way ----

GROUP(ways, .timeout = 120);

static void collect(const struct way *way, uint64_t live, uint32_t first)
{
	for (unsigned i = 0; i < NODES; i++) {
		atomic_u32_store_relaxed(&graph.calls[i], 0);
		atomic_u32_store_relaxed(&graph.firsts[i], 0);
	}
	graph.collector = pthread_self();
	ck_assert_msg(heap_live_after_gc() == live, "%s", way->name);
	ck_assert_uint_eq(atomic_u32_load_relaxed(&graph.wrong), 0);
	for (unsigned i = 0; i < NODES; i++) {
		uint32_t n = atomic_u32_load_relaxed(&graph.calls[i]);
		uint32_t firsts = atomic_u32_load_relaxed(&graph.firsts[i]);

		// Marking calls it at least once, and checkmark once more.
		if (n < 2 || firsts != first)
			ck_abort_msg("%s: %u calls for node %u, %u first",
				     way->name, n, i, firsts);
	}
}

// point makes values[i] refer to node i.  Unless exact is true, every other
// word points to the second word of its node.
static void point(bool exact)
{
	for (unsigned i = 0; i < NODES; i++)
		values[i] =
		    (uintptr_t)graph.node[i] + (exact || i % 2 == 0 ? 0 : 8);
}

static const uint32_t flag_sets[] = {
    RT_KIND_BASE,
    RT_KIND_ONCE,
    RT_KIND_SERIAL | RT_KIND_ONCE,
    RT_KIND_SERIAL | RT_KIND_ONCE | RT_KIND_BASE,
};
enum { FLAG_SETS = RT_ARRAY_LEN(flag_sets) };

static uint64_t helped(void)
{
	return heap_metric("/gc/mark/helpers:objects");
}

TEST(every_way_leads_to_each_node_once, .n = WAYS * MODES * FLAG_SETS)
{
	const struct way *way = &ways[_i % WAYS];
	uint32_t flags = flag_sets[_i / WAYS % FLAG_SETS];
	bool once = flags & RT_KIND_ONCE;
	enum mode mode = (enum mode)(_i / WAYS / FLAG_SETS);
	unsigned n;

	start(mode);
	fill();
	make_nodes(flags);
	point(way->exact);
	n = way->make() + 2 * NODES + 1;
	for (int i = 0; i < 2; i++)
		collect(way, n, once);
	// From now on markers expect typed objects.
	ck_assert_ptr_nonnull(rt_alloc_typed(&cell, 1));
	collect(way, n, once);
	// A helper may start too late to mark anything.
	while (mode >= HELPERS && HEAP_CUT == 1 && helped() == 0)
		collect(way, n, once);
}

// Handles refer only to the beginning of an object anyway.
TEST(no_way_leads_behind_the_first_16_bytes, .n = WAYS * MODES)
{
	const struct way *way = &ways[_i % WAYS];
	unsigned n;

	start((enum mode)(_i / WAYS));
	make_nodes(RT_KIND_BASE);
	for (unsigned i = 0; i < NODES; i++)
		values[i] = (uintptr_t)graph.node[i] + 16 + i % 3 * 8;
	n = way->make();
	graph.collector = pthread_self();
	ck_assert_msg(heap_live_after_gc() == n, "%s", way->name);
}

// Several ways lead to each node, but only one call for it is the first.
TEST(a_node_is_first_by_one_way_only, .n = MODES * FLAG_SETS)
{
	uint32_t flags = flag_sets[_i % FLAG_SETS];
	unsigned n;

	start((enum mode)(_i / FLAG_SETS));
	make_nodes(flags);
	point(true);
	n = by_pointers() + by_row() + by_handles() + by_typed_16();
	for (int i = 0; i < 3; i++)
		collect(&ways[0], 2 * NODES + n, (flags & RT_KIND_ONCE) != 0);
}

// ---- stacks with values in a format ----

static uint64_t *new_base_object(size_t size)
{
	uint64_t *p;

	p = rt_alloc_kind(
	    kind_make(.layout = RT_LAYOUT_WORDS, .flags = RT_KIND_BASE), size);
	ck_assert_ptr_nonnull(p);
	return p;
}

TEST(a_value_on_a_stack_refers_by_any_place, .n = MODES)
{
	static const size_t sizes[] = {16, 48, 1000, 40000};

	start((enum mode)_i);
	for (unsigned i = 0; i < RT_ARRAY_LEN(sizes); i++) {
		uintptr_t p = (uintptr_t)new_base_object(sizes[i]);
		struct holder h;

		holder_begin(&h, boxed(p + sizes[i] - 1));
		ck_assert_int_eq(rt_gc(), RT_OK);
		ck_assert_int_eq(rt_is_heap((void *)p), 1);
		holder_end(&h);
		ck_assert_int_eq(rt_gc(), RT_OK);
		ck_assert_int_eq(rt_is_heap((void *)p), 0);
	}
}

// ---- what checkmark finds ----

GROUP(checks, .timeout = 60);

static void check_stack_value(void)
{
	struct holder h;
	uintptr_t p;

	start(ALONE);
	p = (uintptr_t)new_base_object(48);
	holder_begin(&h, boxed(p + 40));
	missed_look();
}

TEST(a_value_on_a_stack_that_was_not_followed_is_found)
{
	missed_at(check_stack_value, "found in a stack at ");
}

static void check_named_root(void)
{
	start(ALONE);
	make_nodes(RT_KIND_BASE);
	point(false);
	for (unsigned i = 0; i < NODES; i++)
		values[i] += i < 7 ? 16 : 0;
	by_pointers();
	missed_look();
}

TEST(a_root_callback_names_what_was_not_followed)
{
	missed_at(check_named_root, "found in root callback graph at ");
	ck_assert_msg(strstr(death_output, ", reference node[7]\n"), "%s",
		      death_output);
}
