// The promises of a kind's flags, and what a tracer tells its callback.
#include <rt/rt.h>

#include <pthread.h>
#include <string.h>

#include "runtime/os/settings.h"
#include "gc/mark/gain.h"
#include "gc/mark/work.h"
#include "test/harness/kind.h"
#include "test/harness/holder.h"
#include "test/harness/schedpoint.h"

// ---- heaps ----

enum mode {
	ALONE,
	NO_MEMORY, // to mark with
	HELPERS,
	HELPERS_FEW_MEMORY,
	GUARDS,
	HALVES, // all classes of 8 bytes
	MODES
};

static rt_config config_of(enum mode mode)
{
	rt_config c = heap_config_checked();

	c.max_procs = 4;
	c.gc_threads = mode == HELPERS || mode == HELPERS_FEW_MEMORY ? 3 : 0;
	c.guard_small = mode == GUARDS ? 2 : 0;
	c.guard_large = mode == GUARDS;
	c.align8 = mode == HALVES;
	c.clobberfree = 1;
	return c;
}

static void start(enum mode mode)
{
	schedpoint_watch();
	gain = (struct gain){.interval = UINT32_MAX}; // helpers are called
	if (mode == NO_MEMORY)
		work_limit(0);
	if (mode == HELPERS_FEW_MEMORY)
		work_limit(1);
	heap_start_exact(config_of(mode));
}

static int add_kind(int layout, uint32_t flags, rt_trace_fn *trace, int number)
{
	return kind_make(.layout = layout, .flags = flags, .trace = trace,
			 .number = number);
}

// ---- RT_KIND_BASE: which words refer to an object ----

GROUP(base, .timeout = 60);

enum { OFFSETS = 12, ROOTS = OFFSETS * 4 * 2 };

static uintptr_t root[ROOTS];

// tell_first tells the first word of an object.
static void tell_first(rt_tracer *t, void *obj, size_t size, void *arg)
{
	(void)size, (void)arg;
	rt_trace_ptr(t, *(void **)obj);
}

// Where the word that refers to an object is stored.
enum place { IN_RANGE, IN_WORDS, IN_CALLBACK, IN_TYPE, PLACES };

static const uint64_t one_bit[] = {1};
static const rt_type one_word = RT_TYPE_INIT(16, 8, one_bit, 0, 0, NULL, NULL,
					     NULL, NULL, NULL, NULL, "one", 0);

static int holder_kinds[PLACES];

static void make_holder_kinds(void)
{
	holder_kinds[IN_WORDS] = RT_WORDS;
	holder_kinds[IN_CALLBACK] =
	    add_kind(RT_LAYOUT_TRACE, 0, tell_first, RT_KIND_ANY);
	holder_kinds[IN_TYPE] =
	    kind_make(.layout = RT_LAYOUT_TYPE, .type = &one_word);
}

// put stores a word in the given place, to which *at then leads.  Returns the
// number of objects that it allocated.
static unsigned put(uintptr_t *at, enum place place, uintptr_t word)
{
	uintptr_t *holder;

	*at = word;
	if (place == IN_RANGE)
		return 0;
	holder = rt_alloc_kind(holder_kinds[place], 16);
	ck_assert_ptr_nonnull(holder);
	holder[0] = word;
	*at = (uintptr_t)holder;
	return 1;
}

static const size_t sizes[] = {8,  13,	16,   24,   30,	   32,	  48,
			       96, 100, 1000, 5000, 32760, 40001, 100000};

static_assert(ROOTS == OFFSETS * PLACES * 2, "a root for each");

// refers tells whether a word that points off bytes behind p refers to the
// object at p.  The low bits of the word do not matter.
static bool refers(bool base, uintptr_t p, size_t off)
{
	return !base || (p + off) / 8 - p / 8 < 2;
}

// look_at_offsets checks which words that point to and into objects of a size
// keep them alive.  Of two neighbours of 24 bytes, one begins in the middle of
// a granule.
static void look_at_offsets(int kind, size_t size, bool base)
{
	static const size_t near[OFFSETS - 1] = {0,  1,	 7,  8,	 15, 16,
						 17, 23, 24, 31, 32};
	uintptr_t at[ROOTS] = {0};
	size_t offset[ROOTS];
	unsigned n = 0;

	for (unsigned i = 0; i < ROOTS; i++) {
		unsigned k = i / 2 / PLACES;

		offset[i] = k < OFFSETS - 1 ? near[k] : size - 1;
		if (offset[i] >= size)
			continue;
		at[i] = (uintptr_t)rt_alloc_kind(kind, size);
		ck_assert_uint_ne(at[i], 0);
		n += put(&root[i], (enum place)(i / 2 % PLACES),
			 at[i] + offset[i]);
		n += refers(base, at[i], offset[i]);
	}
	ck_assert_uint_eq(heap_live_after_gc(), n);
	for (unsigned i = 0; i < ROOTS; i++)
		if (at[i] != 0 &&
		    rt_is_heap((void *)at[i]) != refers(base, at[i], offset[i]))
			ck_abort_msg("size %zu, offset %zu, place %u", size,
				     offset[i], i / 2 % PLACES);
	memset(root, 0, sizeof root);
}

TEST(words_refer_to_the_first_16_bytes, .n = MODES * 2)
{
	static const int layouts[] = {RT_LAYOUT_NONE, RT_LAYOUT_WORDS,
				      RT_LAYOUT_TRACE};
	int number = _i % 2 ? RT_KIND_ANY_ALIGN8 : RT_KIND_ANY;

	start((enum mode)(_i / 2));
	make_holder_kinds();
	must(rt_roots_add(root, root + ROOTS, RT_ROOT_WORDS));
	for (unsigned i = 0; i < RT_ARRAY_LEN(layouts); i++) {
		rt_trace_fn *trace =
		    layouts[i] == RT_LAYOUT_TRACE ? tell_first : NULL;
		int kind = add_kind(layouts[i], RT_KIND_BASE, trace, number);
		int other = add_kind(layouts[i], 0, trace, number);

		for (unsigned k = 0; k < RT_ARRAY_LEN(sizes); k++) {
			look_at_offsets(kind, sizes[k], true);
			look_at_offsets(other, sizes[k], false);
		}
	}
	ck_assert_int_eq(rt_fini(), RT_OK);
}

// A kind has only its own rules, not the rules of an earlier kind with its
// number.
TEST(the_rule_ends_with_the_kind)
{
	start(ALONE);
	must(rt_roots_add(root, root + ROOTS, RT_ROOT_WORDS));
	for (int i = 0; i < 4; i++) {
		bool base = i % 2 == 0;
		int kind =
		    add_kind(RT_LAYOUT_WORDS, base ? RT_KIND_BASE : 0, NULL, 9);

		root[0] = (uintptr_t)rt_alloc_kind(kind, 100) + 40;
		ck_assert_uint_eq(heap_live_after_gc(), !base);
		root[0] = 0;
		ck_assert_uint_eq(heap_live_after_gc(), 0);
		ck_assert_int_eq(rt_kind_unregister(kind), RT_OK);
	}
}

// ---- stacks ----

// kept_by_word tells whether a word on a stack keeps the object at p.
static bool kept_by_word(uintptr_t p, size_t off)
{
	struct holder h;

	holder_begin(&h, p + off);
	ck_assert_int_eq(rt_gc(), RT_OK);
	holder_end(&h);
	return rt_is_heap((void *)p);
}

// On a stack, a pointer to any place in an object refers to it, even if its
// kind has RT_KIND_BASE.
TEST(from_stacks_any_pointer_refers_to_it, .n = MODES)
{
	enum mode mode = (enum mode)_i;

	start(mode);
	for (int number = RT_KIND_ANY_ALIGN8; number <= RT_KIND_ANY; number++) {
		int kind =
		    add_kind(RT_LAYOUT_WORDS, RT_KIND_BASE, NULL, number);

		for (unsigned i = 0; i < RT_ARRAY_LEN(sizes); i++) {
			const size_t offs[] = {0, sizes[i] / 2, sizes[i] - 1};

			for (unsigned k = 0; k < RT_ARRAY_LEN(offs); k++) {
				uintptr_t p =
				    (uintptr_t)rt_alloc_kind(kind, sizes[i]);

				ck_assert_msg(kept_by_word(p, offs[k]),
					      "size %zu, offset %zu", sizes[i],
					      offs[k]);
			}
		}
	}
	ck_assert_uint_eq(heap_live_after_gc(), 0);
}

TEST(from_stacks_an_end_refers_to_it, .n = 2)
{
	rt_config c = config_of(ALONE);

	c.past_end = _i == 1;
	heap_start_exact(c);
	for (int number = RT_KIND_ANY_ALIGN8; number <= RT_KIND_ANY; number++) {
		int kind =
		    add_kind(RT_LAYOUT_WORDS, RT_KIND_BASE, NULL, number);

		for (unsigned i = 0; i < RT_ARRAY_LEN(sizes); i++) {
			char *p = rt_alloc_kind(kind, sizes[i]);
			size_t end = sizes[i] <= 32760 ? rt_size(p) : sizes[i];

			// When its low bits are removed, such a word may point
			// inside.
			ck_assert_msg(kept_by_word((uintptr_t)p, end) ==
					  (_i == 1 || end % 8 != 0),
				      "size %zu", sizes[i]);
		}
	}
}

// ---- RT_KIND_SERIAL, RT_KIND_ONCE: which marker calls, and how often ----

GROUP(calls, .timeout = 120);

enum {
	NODES = 20000 / HEAP_CUT,
	FEW = NODES / 4, // nodes that an array leads to
	STALE_WORD = 1,	 // a reference that callbacks clear
	FIRST_EDGE = 2,
	FIRST_NAME = 0, // word: the node's number
};

// The test's record of the graph, at which the collector does not look.  A node
// holds its number, a stale reference, and references up to its end.
static struct node {
	uint64_t *p;
	size_t words;
	bool live;
	atomic_u32 calls;
	atomic_u32 firsts;
} nodes[NODES];

static struct {
	uint32_t flags;
	pthread_t collector;
	atomic_u32 inside; // callbacks that run
	atomic_u32 wrong;  // callbacks that found something wrong
} calls;

static void expect(bool ok)
{
	if (!ok)
		atomic_u32_add_relaxed(&calls.wrong, 1);
}

static _Thread_local int depth;

// use_stack uses the stack that a callback may use.
static unsigned char use_stack(void)
{
	volatile unsigned char much[128 << 10];

	for (size_t i = 0; i < sizeof much; i += 4096)
		much[i] = 1;
	return much[sizeof much / 2 & ~4095u];
}

static void trace_node(rt_tracer *t, void *obj, size_t size, void *arg)
{
	uint64_t *p = obj;
	struct node *n = &nodes[p[FIRST_NAME]];
	int first = rt_trace_first(t);

	expect(arg == &calls && n->p == p && n->words <= size / 8);
	expect(rt_tracer_self() == t);
	expect(depth++ == 0);
	atomic_u32_add_relaxed(&n->calls, 1);
	atomic_u32_add_relaxed(&n->firsts, (uint32_t)first);
	if (calls.flags & RT_KIND_SERIAL) {
		expect(atomic_u32_add_relaxed(&calls.inside, 1) == 1);
		expect(pthread_equal(pthread_self(), calls.collector));
	}
	if (calls.flags & RT_KIND_ONCE) {
		// The first call clears the reference, so later ones find null.
		expect(first || p[STALE_WORD] == 0);
		if (first)
			p[STALE_WORD] = 0;
	}
	if (p[FIRST_NAME] % 500 == 0)
		expect(use_stack() == 1);
	for (size_t w = STALE_WORD; w < n->words; w++)
		rt_trace_ptr(t, (void *)(uintptr_t)p[w]);
	if (calls.flags & RT_KIND_SERIAL)
		atomic_u32_add_relaxed(&calls.inside, UINT32_MAX);
	depth--;
}

static int node_kind(uint32_t flags, int number)
{
	calls.flags = flags;
	return kind_make(.layout = RT_LAYOUT_TRACE, .flags = flags,
			 .trace = trace_node, .arg = &calls, .number = number);
}

static void make_nodes(int kind, struct rng *r)
{
	static const size_t words[] = {3, 3, 3, 4, 6, 12, 40, 200};

	for (unsigned i = 0; i < NODES; i++) {
		struct node *n = &nodes[i];

		n->words = i % 3000 == 7
			       ? 20000
			       : words[rng_below(r, RT_ARRAY_LEN(words))];
		n->p = rt_alloc_of(kind, n->words * 8);
		ck_assert_ptr_nonnull(n->p);
		n->p[FIRST_NAME] = i;
		n->live = false;
	}
	for (unsigned i = 0; i < NODES; i++)
		for (size_t w = FIRST_EDGE; w < nodes[i].words; w++)
			if (rng_below(r, nodes[i].words) < 3)
				nodes[i].p[w] =
				    (uintptr_t)nodes[rng_below(r, NODES)].p;
}

// mark_live marks the first FEW nodes and all that they reach.  Returns the
// number of nodes that it marked.
static unsigned mark_live(void)
{
	static unsigned stack[NODES];
	unsigned n = 0, live = FEW;

	for (; n < FEW; n++) {
		stack[n] = n;
		nodes[n].live = true;
	}
	while (n != 0) {
		const struct node *from = &nodes[stack[--n]];

		for (size_t w = FIRST_EDGE; w < from->words; w++) {
			uint64_t *to = (uint64_t *)(uintptr_t)from->p[w];

			if (to && !nodes[to[FIRST_NAME]].live) {
				nodes[to[FIRST_NAME]].live = true;
				stack[n++] = (unsigned)to[FIRST_NAME];
				live++;
			}
		}
	}
	return live;
}

// make_array roots an array that leads to the first nodes.
static void make_array(void)
{
	void **array = rt_alloc(FEW * sizeof *array);

	for (unsigned i = 0; i < FEW; i++)
		array[i] = nodes[i].p;
	root[0] = (uintptr_t)array;
}

// make_stale gives each live node a stale reference.
static void make_stale(void)
{
	for (unsigned i = 0; i < NODES; i++)
		if (nodes[i].live)
			nodes[i].p[STALE_WORD] = (uintptr_t)rt_alloc_noscan(16);
}

// collect collects once, and checks how often each callback was called.
static void collect(unsigned live, bool once)
{
	for (unsigned i = 0; i < NODES; i++) {
		atomic_u32_store_relaxed(&nodes[i].calls, 0);
		atomic_u32_store_relaxed(&nodes[i].firsts, 0);
	}
	if (once)
		make_stale();
	calls.collector = pthread_self();
	ck_assert_ptr_null(rt_tracer_self());
	ck_assert_uint_eq(heap_live_after_gc(), live + 1);
	ck_assert_ptr_null(rt_tracer_self());
	ck_assert_uint_eq(atomic_u32_load_relaxed(&calls.wrong), 0);
	for (unsigned i = 0; i < NODES; i++) {
		uint32_t n = atomic_u32_load_relaxed(&nodes[i].calls);
		uint32_t firsts = atomic_u32_load_relaxed(&nodes[i].firsts);

		// Once to mark, and once more for checkmark.
		if (nodes[i].live ? n < 2 : n != 0)
			ck_abort_msg("%u calls for node %u", n, i);
		if (firsts != (once && nodes[i].live))
			ck_abort_msg("%u first calls for node %u", firsts, i);
	}
}

static uint64_t helped(void)
{
	return heap_metric("/gc/mark/helpers:objects");
}

// helpers_did tells whether helpers have marked, and have passed objects on if
// the flags require that.
static bool helpers_did(uint32_t flags)
{
	return helped() != 0 && (!(flags & RT_KIND_SERIAL) ||
				 schedpoint_passed(SCHED_WORK_OFFER) != 0);
}

static void run_calls(enum mode mode, uint32_t flags, int number)
{
	bool helps = mode == HELPERS || mode == HELPERS_FEW_MEMORY;
	struct rng r;
	unsigned live;
	int kind;

	start(mode);
	kind = node_kind(flags, number);
	rng_init(&r, "calls");
	ck_assert_int_eq(rt_roots_add(root, root + 1, RT_ROOT_EXACT), RT_OK);
	make_nodes(kind, &r);
	make_array();
	live = mark_live();
	ck_assert_uint_lt(live, NODES);
	for (int i = 0; i < 3; i++)
		collect(live, flags & RT_KIND_ONCE);
	// Small heaps wake no helper, so this may need more rounds.
	while (helps && HEAP_CUT == 1 && !helpers_did(flags))
		collect(live, flags & RT_KIND_ONCE);
	ck_assert_int_eq(rt_fini(), RT_OK);
}

static const uint32_t flag_sets[] = {
    0,
    RT_KIND_SERIAL,
    RT_KIND_ONCE,
    RT_KIND_SERIAL | RT_KIND_ONCE,
    RT_KIND_SERIAL | RT_KIND_ONCE | RT_KIND_BASE,
};
enum { FLAG_SETS = RT_ARRAY_LEN(flag_sets) };

TEST(calls_are_as_the_flags_say, .n = MODES * FLAG_SETS)
{
	enum mode mode = (enum mode)(_i / FLAG_SETS);

	run_calls(mode, flag_sets[_i % FLAG_SETS],
		  _i % 2 ? RT_KIND_ANY : RT_KIND_ANY_ALIGN8);
}

// The flags hold even with a collection at every allocation, while the graph
// grows.
TEST(calls_are_as_the_flags_say_under_stress, .n = FLAG_SETS)
{
	rt_config c = config_of(ALONE);
	uint64_t *list = NULL;
	int kind;

	c.gcstress = 1;
	heap_start_exact(c);
	kind = node_kind(flag_sets[_i], RT_KIND_ANY_ALIGN8);
	ck_assert_int_eq(rt_roots_add(root, root + 1, RT_ROOT_EXACT), RT_OK);
	calls.collector = pthread_self();
	// A node that is not filled has the number 0, and no references.
	nodes[0].words = 0;
	for (unsigned i = 1; i < 200; i++) {
		nodes[0].p = NULL;
		nodes[i].words = 3;
		nodes[i].p = rt_alloc_of(kind, 24);
		nodes[i].p[FIRST_NAME] = i;
		nodes[i].p[FIRST_EDGE] = (uintptr_t)list;
		list = nodes[i].p;
		root[0] = (uintptr_t)list;
	}
	ck_assert_uint_eq(heap_live_after_gc(), 199);
	ck_assert_uint_eq(atomic_u32_load_relaxed(&calls.wrong), 0);
}

// Many nodes refer to one object, and the callback of each node reports more
// references than a buffer holds.  Even without memory for buffers, each round
// of marking marks something.
TEST(every_round_marks_something, .n = FLAG_SETS)
{
	enum { WIDE = 100, EACH = WORK_ENTRIES + 100 };
	// The marker must look up where an object begins if a reference points
	// behind its first granule.
	const unsigned reach =
	    flag_sets[_i] & RT_KIND_BASE ? RT_GRANULE : EACH * 8;
	struct rng r;

	start(NO_MEMORY);
	rng_init(&r, "every_round_marks_something");
	node_kind(flag_sets[_i], 5);
	ck_assert_int_eq(rt_roots_add(root, root + 1, RT_ROOT_EXACT), RT_OK);
	for (unsigned i = 0; i < NODES; i++) {
		nodes[i].words = i < WIDE ? EACH : 3;
		nodes[i].p = rt_alloc_of(5, nodes[i].words * 8);
		nodes[i].p[FIRST_NAME] = i;
		nodes[i].live = i < WIDE;
	}
	for (unsigned i = 0; i < WIDE; i++)
		for (unsigned w = FIRST_EDGE; w < EACH; w++) {
			// The first words, as many as a buffer holds, refer to
			// one object, many of them to its inside.
			unsigned to = w < FIRST_EDGE + WORK_ENTRIES
					  ? 0
					  : (unsigned)rng_below(&r, NODES);

			nodes[to].live = true;
			nodes[i].p[w] = (uintptr_t)nodes[to].p +
					(to == 0 ? w * 8 % reach : 0);
		}
	root[0] = (uintptr_t)rt_alloc(WIDE * 8);
	for (unsigned i = 0; i < WIDE; i++)
		((void **)root[0])[i] = nodes[i].p;
	calls.collector = pthread_self();
	for (int round = 0; round < 2; round++) {
		unsigned live = 0;

		for (unsigned i = 0; i < NODES; i++)
			live += nodes[i].live;
		collect(live, flag_sets[_i] & RT_KIND_ONCE);
	}
}

// After marking, rt_tracer_self returns NULL.  Marking itself must reset it,
// because without checkmark no later step does.
TEST(no_tracer_is_left)
{
	rt_config c = config_of(ALONE);

	c.checkmark = 0;
	heap_start_exact(c);
	ck_assert_ptr_null(rt_tracer_self());
	ck_assert_int_eq(rt_gc(), RT_OK);
	ck_assert_ptr_null(rt_tracer_self());
}

// ---- types ----

static unsigned type_calls, type_firsts;

static void trace_typed(rt_tracer *t, void *obj, size_t size, void *arg)
{
	(void)obj, (void)size;
	ck_assert_ptr_eq(arg, &type_calls);
	type_calls++;
	type_firsts += (unsigned)rt_trace_first(t);
}

static const rt_type traced_type =
    RT_TYPE_INIT(24, 16, one_bit, 0, 0, NULL, NULL, trace_typed, NULL, NULL,
		 &type_calls, "traced", 0);
static const rt_type *const type_table[] = {&traced_type};

// The flags of a kind apply to the callback of the type that the kind leads to
// as well.
TEST(callbacks_of_types_are_meant_as_well, .n = 3)
{
	static const int layouts[] = {RT_LAYOUT_TYPE, RT_LAYOUT_HEADER,
				      RT_LAYOUT_INDEX};
	rt_kind_desc d;
	uintptr_t *p;

	start(ALONE);
	ck_assert_int_eq(rt_roots_add(root, root + 1, RT_ROOT_EXACT), RT_OK);
	rt_kind_desc_init(&d);
	d.layout = layouts[_i];
	d.flags = RT_KIND_ONCE | RT_KIND_SERIAL;
	d.type = d.layout == RT_LAYOUT_TYPE ? &traced_type : NULL;
	d.header_offset = 8;
	d.header_mask = UINT64_MAX;
	d.type_offset = RT_TYPE_IS_HEADER;
	if (d.layout == RT_LAYOUT_INDEX) {
		d.types = type_table;
		d.ntypes = 1;
	}
	p = rt_alloc_kind(rt_kind_register(&d), 24);
	ck_assert_ptr_nonnull(p);
	p[0] = (uintptr_t)rt_alloc(8);
	p[1] = d.layout == RT_LAYOUT_HEADER ? (uintptr_t)&traced_type : 0;
	root[0] = (uintptr_t)p;
	for (unsigned i = 1; i <= 3; i++) {
		ck_assert_uint_eq(heap_live_after_gc(), 2);
		ck_assert_uint_eq(type_calls, 2 * i);
		ck_assert_uint_eq(type_firsts, i);
	}
}

// ---- the size that a callback is told ----

enum { ODD_SIZE = 40001 }; // such an object is exactly as long as requested

static unsigned odd_calls;

static void trace_odd(rt_tracer *t, void *obj, size_t size, void *arg)
{
	(void)obj, (void)arg;
	ck_assert_uint_eq(size, ODD_SIZE / 8 * 8);
	odd_calls++;
	rt_trace_first(t);
}

static const rt_type odd_type = RT_TYPE_INIT(
    24, 16, one_bit, 0, 0, NULL, NULL, trace_odd, NULL, NULL, NULL, "odd", 0);

// The size is a whole number of words, whichever way the callback is found.
TEST(the_size_is_rounded_down, .n = 2 * FLAG_SETS)
{
	static const enum mode modes[] = {ALONE, NO_MEMORY};
	uint32_t flags = flag_sets[_i / 2];

	start(modes[_i % 2]);
	ck_assert_int_eq(rt_roots_add(root, root + 2, RT_ROOT_EXACT), RT_OK);
	root[0] = (uintptr_t)rt_alloc_kind(kind_make(.layout = RT_LAYOUT_TYPE,
						     .flags = flags,
						     .type = &odd_type),
					   ODD_SIZE);
	root[1] = (uintptr_t)rt_alloc_kind(
	    add_kind(RT_LAYOUT_TRACE, flags, trace_odd, RT_KIND_ANY), ODD_SIZE);
	ck_assert_uint_eq(heap_live_after_gc(), 2);
	ck_assert_uint_ge(odd_calls, 4); // by marking and by checkmark
}

// ---- structs of other versions ----

GROUP(structs, .timeout = 60);

TEST(a_longer_struct_is_taken_if_the_rest_is_zero)
{
	struct {
		rt_kind_desc d;
		unsigned char more[16];
	} longer = {0};
	struct {
		rt_type y;
		unsigned char more[16];
	} type = {0};

	start(ALONE);
	rt_kind_desc_init_sized(&longer.d, sizeof longer);
	ck_assert_uint_eq(longer.d.struct_size, sizeof longer);
	longer.d.layout = RT_LAYOUT_TYPE;
	longer.d.type = &type.y;
	type.y = one_word;
	type.y.struct_size = sizeof type;
	ck_assert_int_eq(rt_type_check(&type.y), RT_OK);
	ck_assert_int_gt(rt_kind_register(&longer.d), 0);
	for (unsigned i = 0; i < sizeof longer.more; i++) {
		longer.more[i] = 1;
		ck_assert_int_eq(rt_kind_register(&longer.d), RT_EINVAL);
		longer.more[i] = 0;
		type.more[i] = 1;
		ck_assert_int_eq(rt_type_check(&type.y), RT_EINVAL);
		ck_assert_int_eq(rt_kind_register(&longer.d), RT_EINVAL);
		type.more[i] = 0;
	}
	ck_assert_int_gt(rt_kind_register(&longer.d), 0);
	// No version is so long.
	longer.d.struct_size = type.y.struct_size = SETTINGS_MAX_STRUCT + 1;
	ck_assert_int_eq(rt_kind_register(&longer.d), RT_EINVAL);
	ck_assert_int_eq(rt_type_check(&type.y), RT_EINVAL);
}
