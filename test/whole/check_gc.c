// What a collection keeps and what it frees.
#include "test/whole/gc.h"

#include "gc/mark/work.h"
#include "runtime/world/proc.h"

void *root[ROOTS];

// ---- shapes ----

// A node whose value can be checked.
struct node {
	struct node *left;
	struct node *right;
	uint64_t value;
	uint64_t spare;
};

GROUP(exact, .setup = setup, .teardown = teardown, .timeout = 120);

// Neither the depth of a list nor its length costs stack.
TEST(list_of_ten_million_survives)
{
	uint64_t n = 10000000 / HEAP_CUT;

	root[0] = make_list(n);
	ck_assert_uint_eq(heap_live_after_gc(), n);
	ck_assert_uint_eq(list_length(root[0]), n);
	// Keep only its second half.
	for (uint64_t i = 0; i < n / 2; i++)
		root[0] = ((struct cell *)root[0])->next;
	ck_assert_uint_eq(heap_live_after_gc(), n - n / 2);
	ck_assert_uint_eq(list_length(root[0]), n - n / 2);
}

// make_array makes an array of pointers to n objects that hold their index.
static uint64_t **make_array(uint64_t n)
{
	uint64_t **array = rt_alloc(n * sizeof *array);

	for (uint64_t i = 0; i < n; i++) {
		array[i] = rt_alloc_noscan(sizeof **array * 2);
		*array[i] = i;
	}
	return array;
}

static uint64_t array_wrong(uint64_t **array, uint64_t n, uint64_t step)
{
	uint64_t wrong = 0;

	for (uint64_t i = 0; i < n; i += step)
		wrong += *array[i] != i;
	return wrong;
}

TEST(array_of_ten_million_survives)
{
	uint64_t n = 10000000 / HEAP_CUT;
	uint64_t **array = make_array(n);

	root[0] = array;
	ck_assert_uint_eq(heap_live_after_gc(), n + 1);
	ck_assert_uint_eq(array_wrong(array, n, 1), 0);
	for (uint64_t i = 0; i < n; i++)
		if (i % 4 != 0)
			array[i] = NULL;
	ck_assert_uint_eq(heap_live_after_gc(), (n + 3) / 4 + 1);
	ck_assert_uint_eq(array_wrong(array, n, 4), 0);
}

static struct node *make_tree(unsigned depth, uint64_t value)
{
	struct node *t = rt_alloc(sizeof *t);

	t->value = value;
	if (depth > 1) {
		t->left = make_tree(depth - 1, 2 * value);
		t->right = make_tree(depth - 1, 2 * value + 1);
	}
	return t;
}

// tree_count counts the nodes that have the right value.
static uint64_t tree_count(const struct node *t, uint64_t value)
{
	if (!t || t->value != value)
		return 0;
	return 1 + tree_count(t->left, 2 * value) +
	       tree_count(t->right, 2 * value + 1);
}

TEST(tree_survives)
{
	enum { DEPTH = RT_ASAN || RT_TSAN ? 16 : 20 };
	uint64_t n = (UINT64_C(1) << DEPTH) - 1;

	root[0] = make_tree(DEPTH, 1);
	ck_assert_uint_eq(heap_live_after_gc(), n);
	ck_assert_uint_eq(tree_count(root[0], 1), n);
	((struct node *)root[0])->left = NULL;
	ck_assert_uint_eq(heap_live_after_gc(), n / 2 + 1);
	ck_assert_uint_eq(tree_count(((struct node *)root[0])->right, 3),
			  n / 2);
}

TEST(wide_tree_survives)
{
	root[0] = make_wide(100, 3);
	ck_assert_uint_eq(heap_live_after_gc(), 1 + 100 + 100 * 100);
	((void **)root[0])[99] = NULL;
	ck_assert_uint_eq(heap_live_after_gc(), 1 + 99 + 99 * 100);
}

TEST(rings_and_self_loops_live_and_die)
{
	struct cell *last, *self;

	root[0] = make_list(1000);
	for (last = root[0]; last->next; last = last->next)
		last->other = root[0];
	last->next = root[0];
	self = rt_alloc(sizeof *self);
	self->next = self->other = self;
	root[1] = self;
	ck_assert_uint_eq(heap_live_after_gc(), 1001);
	root[0] = last; // any entry keeps all of a ring
	ck_assert_uint_eq(heap_live_after_gc(), 1001);
	root[0] = NULL;
	ck_assert_uint_eq(heap_live_after_gc(), 1);
	root[1] = NULL;
	ck_assert_uint_eq(heap_live_after_gc(), 0);
}

// ---- work buffers that cannot grow ----

enum { GRAPH = 100000 / HEAP_CUT, GRAPH_EDGES = 8 };

struct vertex {
	struct vertex *edge[GRAPH_EDGES];
};

// make_graph returns the first of GRAPH vertices with random edges, and how
// many can be reached from it.
static struct vertex *make_graph(struct rng *r, uint64_t *reachable)
{
	struct vertex **all = calloc(GRAPH, sizeof(struct vertex *));
	uint32_t(*edges)[GRAPH_EDGES] = calloc(GRAPH, sizeof *edges);
	uint32_t *todo = calloc(GRAPH, sizeof *todo);
	bool *seen = calloc(GRAPH, sizeof *seen);
	struct vertex *first;
	uint64_t n = 1;

	for (uint32_t i = 0; i < GRAPH; i++)
		all[i] = rt_alloc(sizeof(struct vertex));
	for (uint32_t i = 0; i < GRAPH; i++)
		for (unsigned k = 0; k < GRAPH_EDGES; k += 1 + i % 4) {
			edges[i][k] = (uint32_t)rng_below(r, GRAPH);
			all[i]->edge[k] = all[edges[i][k]];
		}
	seen[0] = true;
	for (uint64_t done = 0; done < n; done++)
		for (unsigned k = 0; k < GRAPH_EDGES; k += 1 + todo[done] % 4) {
			uint32_t to = edges[todo[done]][k];

			if (!seen[to]) {
				seen[to] = true;
				todo[n++] = to;
			}
		}
	*reachable = n;
	first = all[0];
	free(all);
	free(edges);
	free(todo);
	free(seen);
	return first;
}

static const uint32_t limits[] = {0, 1, 2, UINT32_MAX};

// However little memory marking gets, it reaches the same objects.
TEST(limited_work_buffers_mark_the_same, .n = RT_ARRAY_LEN(limits))
{
	uint64_t list = 100000 / HEAP_CUT, array = 200000 / HEAP_CUT;
	unsigned fan = HEAP_CUT > 1 ? 60 : 300;
	uint64_t wide = 1 + fan + fan * fan;
	uint64_t tree = (1 << 14) - 1;
	uint64_t graph;
	struct rng r;

	work_limit(limits[_i]);
	rng_init(&r, "limited_work_buffers_mark_the_same");
	root[0] = make_list(list);
	root[1] = make_array(array);
	root[2] = make_wide(fan, 3);
	root[3] = make_tree(14, 1);
	root[4] = make_graph(&r, &graph);
	for (int round = 0; round < 3; round++) {
		ck_assert_uint_eq(heap_live_after_gc(),
				  list + array + 1 + wide + tree + graph);
		ck_assert_uint_eq(list_length(root[0]), list);
		ck_assert_uint_eq(array_wrong(root[1], array, 1), 0);
		ck_assert_uint_eq(tree_count(root[3], 1), tree);
	}
	root[2] = root[4] = NULL;
	ck_assert_uint_eq(heap_live_after_gc(), list + array + 1 + tree);
}

// A table of roots larger than a buffer is marked in portions.
TEST(many_roots_do_not_need_buffers, .n = RT_ARRAY_LEN(limits))
{
	enum { N = 100000 };
	uintptr_t *table;

	work_limit(limits[_i]);
	table = heap_table(N, RT_ROOT_WORDS);
	for (unsigned i = 0; i < N; i++)
		table[i] = (uintptr_t)make_list(1 + i % 3);
	ck_assert_uint_eq(heap_live_after_gc(), N / 3 * 6 + 1);
	ck_assert_int_eq(rt_roots_remove(table, table + N), RT_OK);
	free(table);
}

// Work buffers are freed when marking ends.
TEST(work_buffers_are_freed)
{
	rt_memstats m;
	uint64_t before = heap_stats().gc_sys;

	root[0] = make_array(100000);
	ck_assert_int_eq(rt_gc(), RT_OK);
	m = heap_stats();
	// Both in_work_bufs and the mark and alloc lines of a few MiB count in
	// gc_sys.
	ck_assert_uint_lt(m.gc_sys, before + (1 << 20));
}

// ---- large objects, scanned in pieces ----

static const size_t large_sizes[] = {
    32768,	     40001,	      (128 << 10) - 8,	128 << 10,
    (128 << 10) + 8, (128 << 10) + 1, (128 << 10) + 15, 200001,
    (256 << 10) - 8, (256 << 10) + 8, 1 << 20,		(1 << 20) + 8,
    (3 << 20) - 4,
};

// The words of a large object that are easily missed: the first, the last, and
// those beside the borders of pieces.
static unsigned edge_words(size_t size, size_t *word)
{
	size_t words = size / sizeof(void *);
	unsigned n = 0;

	word[n++] = 0;
	for (size_t piece = (128 << 10) / sizeof(void *); piece < words;
	     piece += (128 << 10) / sizeof(void *)) {
		word[n++] = piece - 1;
		word[n++] = piece;
	}
	if (word[n - 1] != words - 1)
		word[n++] = words - 1;
	return n;
}

TEST(every_piece_of_a_large_object_is_scanned,
     .n = 2 * RT_ARRAY_LEN(large_sizes))
{
	size_t size = large_sizes[_i % (int)RT_ARRAY_LEN(large_sizes)];
	void **large = rt_alloc(size);
	size_t word[64];
	unsigned n = edge_words(size, word);

	work_limit(_i < (int)RT_ARRAY_LEN(large_sizes) ? UINT32_MAX : 0);
	root[0] = large;
	for (unsigned i = 0; i < n; i++)
		large[word[i]] = make_list(2);
	ck_assert_uint_eq(heap_live_after_gc(), 1 + 2 * n);
	for (unsigned i = 0; i < n; i++)
		ck_assert_uint_eq(list_length(large[word[i]]), 2);
	large[word[n - 1]] = NULL;
	ck_assert_uint_eq(heap_live_after_gc(), 1 + 2 * (n - 1));
}

// Only the requested bytes are scanned.
TEST(slack_of_a_large_object_is_not_scanned)
{
	size_t size = 40000;
	void **large = rt_alloc(size);

	ck_assert_uint_eq(rt_size(large), 40960);
	root[0] = large;
	large[size / sizeof(void *)] = make_list(1);
	ck_assert_uint_eq(heap_live_after_gc(), 1);
}

// ---- pointers into objects ----

enum { OFFSETS = 600 };

// some_offsets lists all offsets of a small object.  For other objects it lists
// offsets at the borders of words, granules and pages, and random ones.
static unsigned some_offsets(struct rng *r, size_t size, size_t *offset)
{
	unsigned n = 0;

	if (size <= OFFSETS) {
		for (size_t i = 0; i < size; i++)
			offset[n++] = i;
		return n;
	}
	for (size_t i = 0; i < 64; i++) {
		offset[n++] = i;
		offset[n++] = size - 1 - i;
	}
	for (size_t page = 8192; page < size; page += 8192)
		for (size_t i = page - 2; i < page + 2 && i < size; i++)
			offset[n++] = i;
	while (n < 256)
		offset[n++] = rng_below(r, size);
	return n;
}

// check_offsets makes pairs of neighbours, and for each pair a pointer into one
// of the two.  It expects that this one lives and the other does not.
static void check_offsets(struct rng *r, int kind, size_t request)
{
	uintptr_t *table = heap_table(OFFSETS, RT_ROOT_WORDS);
	uintptr_t **heap_words = rt_alloc(OFFSETS * sizeof(uintptr_t *));
	size_t offset[OFFSETS];
	unsigned n = some_offsets(r, request, offset);
	uint64_t wrong = 0;

	root[0] = heap_words;
	for (unsigned i = 0; i < n; i++) {
		uintptr_t p = (uintptr_t)rt_alloc_kind(kind, request);
		uintptr_t q = (uintptr_t)rt_alloc_kind(kind, request);

		p = (i % 3 == 0 ? p : q) + offset[i];
		if (i % 2 == 0)
			table[i] = p;
		else
			heap_words[i] = (uintptr_t *)p;
	}
	ck_assert_uint_eq(heap_live_after_gc(), n + 1);
	for (unsigned i = 0; i < n; i++) {
		uintptr_t p = i % 2 == 0 ? table[i] : (uintptr_t)heap_words[i];

		wrong += (uintptr_t)rt_base((void *)p) != p - offset[i];
	}
	ck_assert_uint_eq(wrong, 0);
	root[0] = NULL;
	ck_assert_int_eq(rt_roots_remove(table, table + OFFSETS), RT_OK);
	free(table);
	ck_assert_uint_eq(heap_live_after_gc(), 0);
}

static void check_all_classes(const char *name)
{
	struct rng r;

	rng_init(&r, name);
	for (unsigned c = 1; c < SIZECLASS_COUNT; c++) {
		size_t request = class_request(c);
		bool tiny = request < SIZECLASS_TINY_SIZE;

		check_offsets(&r, RT_WORDS, request);
		if (!tiny)
			check_offsets(&r, RT_NOSCAN, request);
	}
}

TEST(interior_pointers_keep_objects)
{
	check_all_classes("interior_pointers_keep_objects");
}

GROUP(own, .timeout = 60);

TEST(interior_pointers_keep_objects_align8)
{
	rt_config c = heap_config(HEAP_QUIET);

	c.align8 = 1;
	start(c);
	check_all_classes("interior_pointers_keep_objects_align8");
}

GROUP(exact);

TEST(interior_pointers_keep_large_objects)
{
	struct rng r;

	rng_init(&r, "interior_pointers_keep_large_objects");
	check_offsets(&r, RT_WORDS, 32761);
	check_offsets(&r, RT_NOSCAN, 40001);
	check_offsets(&r, RT_WORDS, 131072);
}

// A span with more pages than a pageword can count.
TEST(interior_pointers_find_the_base_of_a_huge_object)
{
	size_t size = ((size_t)PAGEWORD_PLACE_MAX + 10) << RT_PAGE_SHIFT;
	uintptr_t *table = heap_table(1, RT_ROOT_WORDS);
	char *huge = rt_alloc_noscan(size);

	ck_assert_ptr_nonnull(huge);
	for (unsigned i = 0; i < 3; i++) {
		table[0] =
		    (uintptr_t)huge + size - 1 - i * 5 * (size_t)RT_PAGE_SIZE;
		ck_assert_uint_eq(heap_live_after_gc(), 1);
		ck_assert_ptr_eq(rt_base((void *)table[0]), huge);
	}
	table[0] = (uintptr_t)huge + size;
	ck_assert_uint_eq(heap_live_after_gc(), 0);
	ck_assert_int_eq(rt_roots_remove(table, table + 1), RT_OK);
	free(table);
}

// Words that point into free slots, tails of spans, free pages and pages of
// other use are not pointers.
TEST(words_to_free_memory_mark_nothing)
{
	uintptr_t lo = arena.base, hi;
	size_t n;
	uintptr_t *table;

	for (unsigned c = 2; c < SIZECLASS_COUNT; c++)
		for (unsigned i = 0; i < 3; i++)
			rt_alloc(class_request(c));
	rt_alloc(100000);
	ck_assert_ptr_nonnull(rt_stack_alloc(4096));
	ck_assert_uint_eq(heap_live_after_gc(), 0);
	hi = lo + arena_used();
	n = (hi - lo) / 8 + 2;
	table = heap_table(n, RT_ROOT_WORDS);
	for (size_t i = 0; i < n; i++)
		table[i] = lo + 8 * (i - 1);
	ck_assert_uint_eq(heap_live_after_gc(), 0);
	// With one object in each class, each is found once.
	for (unsigned c = 2; c < SIZECLASS_COUNT; c++)
		rt_alloc(class_request(c));
	ck_assert_uint_eq(heap_live_after_gc(), SIZECLASS_COUNT - 2);
	ck_assert_int_eq(rt_roots_remove(table, table + n), RT_OK);
	free(table);
}

// ---- a random graph and its shadow ----

enum {
	SHADOWS = 4000 / (RT_ASAN || RT_TSAN ? 4 : 1),
	SHADOW_EDGES = 4,
	SHADOW_ROOTS = 40,
	SHADOW_ROUNDS = 30,
};

// The test knows this of a node, outside the heap.
struct shadow {
	uint64_t *obj; // NULL: unused entry
	size_t words;
	int kind;
	uint32_t edge[SHADOW_EDGES]; // index + 1; 0: none
	bool reachable;
};

static struct shadow *shadow; // SHADOWS of them
static uint32_t shadow_root[SHADOW_ROOTS];
static uintptr_t *shadow_table;

// filler never looks like an address.
static uint64_t filler(uint32_t node, size_t i)
{
	struct rng r = {.state = (uint64_t)node << 32 | i};

	return rng_next(&r) | UINT64_C(1) << 63;
}

// edge_word returns an edge as it is in the object: a pointer to any byte of
// the other object, so perhaps with a tag.
static uint64_t edge_word(uint32_t to, uint64_t random)
{
	const struct shadow *s = &shadow[to - 1];
	uint64_t bytes = s->words * sizeof(uint64_t);

	return (uintptr_t)s->obj + (random % 2 ? random / 2 % bytes : 0);
}

static size_t random_words(struct rng *r)
{
	uint64_t shape = rng_below(r, 100);

	if (shape < 60)
		return SHADOW_EDGES + rng_below(r, 16);
	if (shape < 90)
		return SHADOW_EDGES + rng_below(r, 300);
	if (shape < 99)
		return SHADOW_EDGES + rng_below(r, 4000);
	return SHADOW_EDGES + rng_below(r, 30000);
}

static void set_edge(struct rng *r, struct shadow *s, unsigned k, uint32_t to)
{
	s->edge[k] = to;
	if (s->kind == RT_WORDS)
		s->obj[k] = to ? edge_word(to, rng_next(r)) : 0;
}

static void shadow_make(struct rng *r, uint32_t i)
{
	struct shadow *s = &shadow[i];

	s->kind = rng_below(r, 4) == 0 ? RT_NOSCAN : RT_WORDS;
	s->words = random_words(r);
	s->obj = rt_alloc_kind(s->kind, s->words * sizeof(uint64_t));
	ck_assert_msg(s->obj && heap_is_zero(s->obj, 8 * s->words),
		      "an object is not zero");
	memset(s->edge, 0, sizeof s->edge);
	for (size_t w = s->kind == RT_WORDS ? SHADOW_EDGES : 0; w < s->words;
	     w++)
		s->obj[w] = filler(i, w);
}

static uint32_t random_shadow(struct rng *r)
{
	uint32_t i = (uint32_t)rng_below(r, SHADOWS);

	return shadow[i].obj ? i + 1 : 0;
}

static void shadow_mutate(struct rng *r)
{
	for (uint32_t i = 0; i < SHADOWS; i++)
		if (!shadow[i].obj && rng_below(r, 2))
			shadow_make(r, i);
	for (unsigned n = 0; n < SHADOWS; n++) {
		uint32_t from = random_shadow(r);

		if (from && shadow[from - 1].kind == RT_WORDS)
			set_edge(r, &shadow[from - 1],
				 (unsigned)rng_below(r, SHADOW_EDGES),
				 random_shadow(r));
	}
	for (unsigned i = 0; i < SHADOW_ROOTS; i++)
		if (rng_below(r, 3) == 0) {
			uint32_t to = random_shadow(r);

			shadow_root[i] = to;
			shadow_table[i] = to ? edge_word(to, rng_next(r)) : 0;
		}
}

static uint64_t shadow_reach(void)
{
	uint32_t *todo = calloc(SHADOWS, sizeof *todo);
	uint64_t n = 0;

	for (uint32_t i = 0; i < SHADOWS; i++)
		shadow[i].reachable = false;
	for (unsigned i = 0; i < SHADOW_ROOTS; i++)
		if (shadow_root[i] && !shadow[shadow_root[i] - 1].reachable) {
			shadow[shadow_root[i] - 1].reachable = true;
			todo[n++] = shadow_root[i] - 1;
		}
	for (uint64_t done = 0; done < n; done++)
		for (unsigned k = 0; k < SHADOW_EDGES; k++) {
			uint32_t to = shadow[todo[done]].edge[k];

			if (to && !shadow[to - 1].reachable) {
				shadow[to - 1].reachable = true;
				todo[n++] = to - 1;
			}
		}
	free(todo);
	return n;
}

static bool shadow_intact(uint32_t i)
{
	const struct shadow *s = &shadow[i];
	size_t first = s->kind == RT_WORDS ? SHADOW_EDGES : 0;

	if (rt_base(s->obj) != s->obj ||
	    rt_size(s->obj) != rt_good_size(s->words * sizeof(uint64_t)))
		return false;
	for (unsigned k = 0; k < first; k++)
		if (s->edge[k] ? rt_base((void *)s->obj[k]) !=
				     shadow[s->edge[k] - 1].obj
			       : s->obj[k] != 0)
			return false;
	for (size_t w = first; w < s->words; w++)
		if (s->obj[w] != filler(i, w))
			return false;
	return true;
}

// After each collection the heap has exactly what the shadow reaches,
// unchanged.
TEST(random_graph_is_its_shadow, .n = 3)
{
	struct rng r;

	rng_init(&r, "random_graph_is_its_shadow");
	r.state += (uint64_t)_i * UINT64_C(0x1234567);
	work_limit(_i == 2 ? 0 : UINT32_MAX);
	shadow = calloc(SHADOWS, sizeof *shadow);
	shadow_table = heap_table(SHADOW_ROOTS, RT_ROOT_WORDS);
	for (unsigned round = 0; round < SHADOW_ROUNDS; round++) {
		uint64_t broken = 0;

		shadow_mutate(&r);
		ck_assert_uint_eq(heap_live_after_gc(), shadow_reach());
		for (uint32_t i = 0; i < SHADOWS; i++) {
			if (!shadow[i].reachable)
				shadow[i].obj = NULL;
			else
				broken += !shadow_intact(i);
		}
		ck_assert_uint_eq(broken, 0);
	}
	must(rt_roots_remove(shadow_table, shadow_table + SHADOW_ROOTS));
	free(shadow_table);
	free(shadow);
}

GROUP(own);

// Trees come and go while the heap collects by itself.  Only the stack of the
// thread that builds them keeps them alive.
TEST(contents_survive_automatic_collections)
{
	enum { DEPTH = 10, TREES = 3000 / (RT_ASAN || RT_TSAN ? 20 : 1) };
	rt_config c = heap_config(20);
	struct node *kept[16] = {0};
	uint64_t wrong = 0;

	c.heap_headroom = 0;
	c.heap_min = 1 << 20;
	ck_assert_int_eq(rt_init(&c), RT_OK);
	for (unsigned i = 0; i < TREES; i++) {
		kept[i * 7 % 16] = make_tree(DEPTH, 1);
		wrong += kept[i * 5 % 16] &&
			 tree_count(kept[i * 5 % 16], 1) != (1 << DEPTH) - 1;
	}
	for (unsigned i = 0; i < 16; i++)
		wrong += tree_count(kept[i], 1) != (1 << DEPTH) - 1;
	ck_assert_uint_eq(wrong, 0);
	ck_assert_uint_ge(heap_stats().num_gc, TREES / 100);
	ck_assert_uint_eq(heap_stats().num_forced_gc, 0);
	heap_live();
}
