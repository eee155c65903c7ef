// layouts.c - nanoseconds for each object, or reference, of a full collection
// of objects of a registered kind, beside the same objects of RT_WORDS.
//
// usage: layouts tree|list|random|array LAYOUT MIB [MARKERS|alone]
//
// - tree: binary, made in depth-first order.
// - list: of cells made one after another.
// - random: a circle through all nodes in random order; two more pointers of
//   each node point anywhere.
// - array: one array of references to leaves of 16 bytes without pointers.
//
// All nodes have 48 bytes: a word that leads to the type, a number, three
// pointers and a spare word.  LAYOUT says how the collector finds the pointers
// of a node: words (of a kind of the host's), drop (the same with a
// destructor), type, header, index or trace.  All six words are told.  With -3,
// as in trace-3, only the three pointers are told.  For an array, LAYOUT is
// words, nan (references are NaN boxes) or pairs (each reference has a word
// with its tag behind it).
//
// Each round makes the objects in a heap of their own, first in the layout and
// then of RT_WORDS.  So the two take turns, and nothing is left of the other.
// A first collection removes the garbage of making them, and three more are
// measured.  The value is the median over all rounds, in processor time.  The
// figures are the same for RT_WORDS, the median of the rounds' ratios, the
// least and the largest ratio.  With MARKERS above 1, each round does all of
// that again with that many markers.  Three more figures are the speed-ups in
// wall time of the layout and of RT_WORDS, and the ratio of the two.  With
// alone, there are no objects of RT_WORDS and no figures, so that count.sh
// counts only the layout.  The checksum comes from a walk.
//
// Good: a layout takes at most 1.15 times as long as words, 1.08 of random, and
// no longer if it tells only the pointers.
#include "harness.h"

#ifndef RT_KIND_H
#error "only rtheap has kinds"
#endif

enum {
	ROUNDS = PEER_DIVISOR > 1 ? 1 : 5,
	COLLECTIONS = 3,
	NODE = 48,
	LEAF = 16,
	TAG = 7, // of a pair that is a reference
};

#define BOX UINT64_C(0xfffa000000000000) // of a reference

struct node {
	uintptr_t header;
	uint64_t id;
	struct node *to[3];
	uint64_t spare;
};
_Static_assert(sizeof(struct node) == NODE, "a class without waste");

// ---- layouts ----

static void trace_six(rt_tracer *t, void *obj, size_t size, void *arg)
{
	const struct node *n = obj;

	(void)size, (void)arg;
	rt_trace_ptr(t, (const void *)n->header);
	rt_trace_ptr(t, (const void *)(uintptr_t)n->id);
	rt_trace_ptr(t, n->to[0]);
	rt_trace_ptr(t, n->to[1]);
	rt_trace_ptr(t, n->to[2]);
	rt_trace_ptr(t, (const void *)(uintptr_t)n->spare);
}

static void trace_three(rt_tracer *t, void *obj, size_t size, void *arg)
{
	const struct node *n = obj;

	(void)size, (void)arg;
	rt_trace_ptr(t, n->to[0]);
	rt_trace_ptr(t, n->to[1]);
	rt_trace_ptr(t, n->to[2]);
}

static const uint64_t bits_six[] = {63}, bits_three[] = {7 << 2};
static const rt_type node_types[] = {
    {.struct_size = sizeof(rt_type),
     .size = NODE,
     .ptrdata = NODE,
     .bitmap = bits_six},
    {.struct_size = sizeof(rt_type),
     .size = NODE,
     .ptrdata = NODE - 8,
     .bitmap = bits_three},
};
static const rt_type *const type_table[] = {NULL, &node_types[0],
					    &node_types[1]};
static const rt_value_format nan_boxes =
    RT_FORMAT_NAN_BOX(BOX, BOX | UINT64_C(0xffffffffffff));
static const rt_value_format pairs = RT_FORMAT_PAIR(UINT64_MAX, TAG);

// A layout, and what the words of its objects hold.
struct style {
	const char *name;
	int layout;
	bool three;
	const rt_value_format *format;
	rt_trace_fn *trace;
	rt_drop_fn *drop;
};

// The objects live as long as the heap, so none is dropped.
static void drop_nothing(void *obj, size_t size, void *arg)
{
	(void)obj, (void)size, (void)arg;
}

static const struct style styles[] = {
    {"words", RT_LAYOUT_WORDS, false, NULL, NULL, NULL},
    {"drop", RT_LAYOUT_WORDS, false, NULL, NULL, drop_nothing},
    {"nan", RT_LAYOUT_WORDS, false, &nan_boxes, NULL, NULL},
    {"pairs", RT_LAYOUT_WORDS, false, &pairs, NULL, NULL},
    {"type", RT_LAYOUT_TYPE, false, NULL, NULL, NULL},
    {"header", RT_LAYOUT_HEADER, false, NULL, NULL, NULL},
    {"index", RT_LAYOUT_INDEX, false, NULL, NULL, NULL},
    {"trace", RT_LAYOUT_TRACE, false, NULL, trace_six, NULL},
    {"type-3", RT_LAYOUT_TYPE, true, NULL, NULL, NULL},
    {"header-3", RT_LAYOUT_HEADER, true, NULL, NULL, NULL},
    {"index-3", RT_LAYOUT_INDEX, true, NULL, NULL, NULL},
    {"trace-3", RT_LAYOUT_TRACE, true, NULL, trace_three, NULL},
};

static const struct style *style_find(const char *name)
{
	for (size_t i = 0; i < sizeof styles / sizeof styles[0]; i++)
		if (!strcmp(styles[i].name, name))
			return &styles[i];
	peer_die("no such layout");
}

// style_header returns the first word of a node.
static uintptr_t style_header(const struct style *s)
{
	if (s->layout == RT_LAYOUT_INDEX)
		return 1 + s->three;
	return s->layout == RT_LAYOUT_HEADER ? (uintptr_t)&node_types[s->three]
					     : 0;
}

static int style_register(const struct style *s)
{
	bool table = s->layout == RT_LAYOUT_INDEX;
	rt_kind_desc d;
	int kind;

	rt_kind_desc_init(&d);
	d.layout = s->layout;
	d.format = s->format;
	d.trace = s->trace;
	d.drop = s->drop;
	if (s->drop)
		d.flags = RT_KIND_DROP;
	d.header_mask = UINT64_MAX;
	d.type_offset = RT_TYPE_IS_HEADER;
	if (s->layout == RT_LAYOUT_TYPE)
		d.type = &node_types[s->three];
	if (table)
		d.types = type_table;
	d.ntypes = table ? 3 : 0;
	kind = rt_kind_register(&d);
	if (kind < 0)
		peer_die("no kind");
	return kind;
}

// ---- shapes ----

struct made {
	const struct style *style;
	int kind; // of nodes and arrays
	size_t n; // of nodes or leaves
};

static struct node *node_make(const struct made *m, uint64_t id)
{
	struct node *n = peer_need(rt_alloc_kind(m->kind, sizeof *n));

	n->header = style_header(m->style);
	n->id = id;
	return n;
}

// branch_make makes n nodes, numbered in order, the left half before the right.
static struct node *branch_make(const struct made *m, size_t n, uint64_t *id)
{
	struct node *b;

	if (n == 0)
		return NULL;
	b = node_make(m, (*id)++);
	HEAP_STORE(b, &b->to[0], branch_make(m, (n - 1) / 2, id));
	HEAP_STORE(b, &b->to[1], branch_make(m, n - 1 - (n - 1) / 2, id));
	return b;
}

static void *tree_make(const struct made *m)
{
	uint64_t id = 0;

	return branch_make(m, m->n, &id);
}

static void *list_make(const struct made *m)
{
	struct node *first = NULL;

	for (size_t i = 0; i < m->n; i++) {
		struct node *c = node_make(m, i);

		c->to[0] = first;
		first = c;
	}
	return first;
}

static void *random_make(const struct made *m)
{
	struct node **node = calloc(m->n, sizeof(struct node *)), *first;
	uint64_t seed = 1;

	if (!node)
		peer_die("no memory");
	heap_hold(node, node + m->n);
	for (size_t i = 0; i < m->n; i++)
		node[i] = node_make(m, i);
	for (size_t i = m->n - 1; i > 0; i--) {
		size_t k = peer_below(&seed, i + 1);
		struct node *other = node[k];

		node[k] = node[i];
		node[i] = other;
	}
	for (size_t i = 0; i < m->n; i++) {
		struct node **to = node[i]->to;

		HEAP_STORE(node[i], &to[0], node[(i + 1) % m->n]);
		HEAP_STORE(node[i], &to[1], node[peer_below(&seed, m->n)]);
		HEAP_STORE(node[i], &to[2], node[peer_below(&seed, m->n)]);
	}
	first = node[0];
	heap_drop(node, node + m->n);
	free(node);
	return first;
}

static bool has_pairs(const struct made *m)
{
	return m->style->format && m->style->format->stride == 16;
}

static void *array_make(const struct made *m)
{
	size_t step = 1 + has_pairs(m);
	uint64_t *array =
	    peer_need(rt_alloc_kind(m->kind, m->n * step * sizeof *array));

	for (size_t i = 0; i < m->n; i++) {
		uint64_t *leaf = peer_alloc_noscan(LEAF), value;

		leaf[0] = i;
		leaf[1] = 0;
		value = (uint64_t)(uintptr_t)leaf;
		if (step == 2)
			array[i * step + 1] = TAG;
		else if (m->style->format)
			value |= BOX;
		RT_STORE(array, (uintptr_t *)&array[i * step],
			 (uintptr_t)value);
	}
	return array;
}

static uint64_t tree_walk(const struct made *m, const void *root)
{
	const struct node *b = root;

	return b ? b->id + tree_walk(m, b->to[0]) + tree_walk(m, b->to[1]) : 0;
}

static uint64_t chain_walk(const struct made *m, const void *root)
{
	const struct node *n = root;
	uint64_t sum = 0;

	for (size_t i = 0; i < m->n; i++, n = n->to[0])
		sum = sum * 31 + n->id;
	return sum;
}

static uint64_t array_walk(const struct made *m, const void *root)
{
	const uint64_t *array = root;
	size_t step = 1 + has_pairs(m);
	uint64_t sum = 0;

	for (size_t i = 0; i < m->n; i++)
		sum = sum * 31 +
		      *(const uint64_t *)(uintptr_t)(array[i * step] & ~BOX);
	return sum;
}

static const struct shape {
	const char *name;
	size_t size; // of an object
	void *(*make)(const struct made *m);
	uint64_t (*walk)(const struct made *m, const void *root);
} shapes[] = {
    {"tree", NODE, tree_make, tree_walk},
    {"list", NODE, list_make, chain_walk},
    {"random", NODE, random_make, chain_walk},
    {"array", LEAF, array_make, array_walk},
};

static const struct shape *shape_find(const char *name)
{
	for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
		if (!strcmp(shapes[i].name, name))
			return &shapes[i];
	peer_die("no such shape");
}

// ---- measuring ----

// Nanoseconds for each object, of every collection.
struct samples {
	double cpu[ROUNDS * COLLECTIONS], wall[ROUNDS * COLLECTIONS];
	size_t n;
};

static void begin(int markers)
{
	rt_config c;

	rt_config_init(&c);
	heap_must(rt_config_from_env(&c), "rt_config_from_env");
	c.gc_threads = markers - 1;
	c.gc_percent = -1;
	heap_must(rt_init(&c), "rt_init");
}

static void collect(size_t n, struct samples *to, struct peer_time *t)
{
	struct peer_time one = {0};

	peer_start(&one);
	heap_collect();
	peer_stop(&one);
	to->cpu[to->n] = one.cpu * 1e9 / (double)n;
	to->wall[to->n++] = one.wall * 1e9 / (double)n;
	t->cpu += one.cpu;
	t->wall += one.wall;
}

// measure makes the objects and collects.  style is NULL for RT_WORDS itself.
// Returns the checksum.
static uint64_t measure(const struct shape *shape, const struct style *style,
			size_t n, int markers, struct samples *to,
			struct peer_time *t)
{
	struct made m = {.style = style ? style : &styles[0], .n = n};
	uint64_t sum;
	void *root;

	begin(markers);
	m.kind = style ? style_register(style) : RT_WORDS;
	root = shape->make(&m);
	heap_collect();
	for (int i = 0; i < COLLECTIONS; i++)
		collect(n, to, t);
	sum = shape->walk(&m, root);
	peer_keep(root);
	heap_must(rt_fini(), "rt_fini");
	return sum;
}

// A median, of one round or of all.
static double median(const double *sample, size_t n)
{
	double copy[ROUNDS * COLLECTIONS];

	memcpy(copy, sample, n * sizeof *copy);
	return peer_median(copy, n);
}

struct result {
	struct samples words, layout; // with one marker
	struct samples many_words, many_layout;
	double ratio[ROUNDS];
	struct peer_time time;
	uint64_t sum;
};

// measure_round makes one round.  If markers is 0, it has no objects of
// RT_WORDS.
static void measure_round(const struct shape *shape, const struct style *style,
			  size_t n, int markers, int round, struct result *r)
{
	size_t from = r->layout.n;

	r->sum = measure(shape, style, n, 1, &r->layout, &r->time);
	if (markers == 0)
		return;
	if (measure(shape, NULL, n, 1, &r->words, &r->time) != r->sum)
		peer_die("objects differ");
	r->ratio[round] = median(&r->layout.cpu[from], COLLECTIONS) /
			  median(&r->words.cpu[from], COLLECTIONS);
	if (markers == 1)
		return;
	measure(shape, NULL, n, markers, &r->many_words, &r->time);
	measure(shape, style, n, markers, &r->many_layout, &r->time);
}

static double speedup(const struct samples *one, const struct samples *many)
{
	return median(one->wall, one->n) / median(many->wall, many->n);
}

static void figures(struct result *r, int markers)
{
	peer_figure("words_ns", median(r->words.cpu, r->words.n));
	peer_figure("ratio_x", peer_median(r->ratio, ROUNDS));
	peer_figure("least_x", r->ratio[0]);
	peer_figure("most_x", r->ratio[ROUNDS - 1]);
	if (markers == 1)
		return;
	peer_figure("speedup_x", speedup(&r->layout, &r->many_layout));
	peer_figure("words_speedup_x", speedup(&r->words, &r->many_words));
	peer_figure("speedup_to_words_x",
		    speedup(&r->layout, &r->many_layout) /
			speedup(&r->words, &r->many_words));
}

// markers_of returns the argument MARKERS: 1 by default, 0 for alone.
static int markers_of(int argc, char **argv)
{
	static const uint64_t some[2] = {1, 16};

	if (argc <= 4)
		return 1;
	return strcmp(argv[4], "alone") ? (int)peer_number(argc, argv, 4, some)
					: 0;
}

int main(int argc, char **argv)
{
	static const uint64_t mib[2] = {1, 65536};
	const struct shape *shape = shape_find(peer_word(argc, argv, 1));
	const struct style *style = style_find(peer_word(argc, argv, 2));
	size_t n =
	    (size_t)(peer_number(argc, argv, 3, mib) << 20) / shape->size;
	int markers = markers_of(argc, argv);
	static struct result r;

	for (int i = 0; i < ROUNDS; i++)
		measure_round(shape, style, n, markers, i, &r);
	if (markers != 0)
		figures(&r, markers);
	peer_report(median(r.layout.cpu, r.layout.n), "ns", &r.time, r.sum);
	return 0;
}
