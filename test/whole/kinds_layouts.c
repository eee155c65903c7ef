// Layouts of kinds: what the references reach lives, and only that.
#include <rt/rt.h>

#include <string.h>

#include "runtime/pages/arena.h"
#include "gc/mark/work.h"
#include "test/harness/heap.h"
#include "test/whole/kinds.h"

// An object has fixed words, and then elements up to its end.  Bit i of the
// bits of a part says that word i of the part is a value word.
struct shape {
	const char *name;
	rt_kind_desc d;
	unsigned fixed;
	uint64_t fixed_bits;
	unsigned tail;
	uint64_t tail_bits;
	const rt_value_format *format;
	uint64_t header; // what word 0 holds; 0: no header
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

// trace_shape is the callback of the shapes that have one.
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

// of returns a shape with the fixed words and the elements of y, if any.
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

// The test's record of the graph, at which the collector does not look.
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
	// The collector looks at the whole slot of a small object.
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

// node_fill stores some references.  Into other words it stores an address of
// an object that is no reference: it is not in the format, or no value is
// there.
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
			// If this is a tag, it must not say that its value is a
			// reference.
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

// compare requires that each live object is unchanged, and returns how many
// there are.
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
	must(rt_roots_add(roots, roots + ROOTS, RT_ROOT_EXACT));
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
	rt_config c = heap_config_checked();

	run_shape(c, (unsigned)_i, RT_KIND_ANY);
	run_shape(c, (unsigned)_i, RT_KIND_ANY_ALIGN8);
}

// Every object is noted and traced again, because no words can be kept for
// later.
TEST(so_it_does_without_memory_to_mark, .n = SHAPES)
{
	rt_config c = heap_config_checked();

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

// An object of more than a megabyte, of which markers take pieces: alone, with
// helpers, and without memory to mark with.
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
	rt_config c = heap_config_checked();

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
		ck_assert_uint_eq(seen.calls, 2); // marking, checkmark
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

// A callback tells references in the host's own memory, more than a buffer
// holds.
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
	// The row begins inside the first word, so the second word is the first
	// one read.
	ck_assert_uint_eq(heap_live_after_gc(), 20000);
}
