// mark.c - nanoseconds for each live object of a full collection.
//
// usage: mark random|tree|list|array|hot MIB
//
// - random: nodes of 48 bytes with three pointers.  The first pointers make one
//   circle through all nodes in random order; the others point anywhere.
// - tree: binary, nodes of 32 bytes, made in depth-first order.
// - list: cells of 16 bytes, each with a leaf of 16 bytes.
// - array: one array of pointers to leaves of 16 bytes.
// - hot: the same with leaves of 32 bytes, each of which refers to one and the
//   same object.
//
// All of it lives.  A first collection removes the garbage of building it.  The
// value is the median of three more, or of just one in a heap of 1 GB and
// above.  The figures are its processor time for an object, which grows with
// the number of markers, and what is resident after it.  If the heap says how
// long the last collection stopped the world, that is a figure, too.  The
// checksum comes from a walk afterwards.
//
// Good: random takes no more than some times as long as tree, because every
// node of random misses the caches.  A larger factor means that the marker
// waits for memory.  Neither prefetching nor a second thread helps with list.
// Markers share an array in pieces.  hot is as fast as array if markers do not
// contend for the cache line of one mark.
#include "harness.h"

enum { COLLECTIONS = 3, ONCE_MIB = 1024, STEPS = 1000000 / PEER_DIVISOR };

struct node {
	struct node *to[3];
	uint64_t id, spare[2];
};

struct branch {
	struct branch *left, *right;
	uint64_t id, spare;
};

struct cell {
	struct cell *next;
	uint64_t *leaf;
};

// ---- random ----

static struct node **nodes_make(size_t n)
{
	struct node **node = calloc(n, sizeof(struct node *));

	if (!node)
		peer_die("no memory");
	heap_hold(node, node + n);
	for (size_t i = 0; i < n; i++) {
		node[i] = peer_alloc(sizeof(struct node));
		node[i]->id = i;
	}
	return node;
}

static void nodes_shuffle(struct node **node, size_t n, uint64_t *seed)
{
	for (size_t i = n - 1; i > 0; i--) {
		size_t k = peer_below(seed, i + 1);
		struct node *other = node[k];

		node[k] = node[i];
		node[i] = other;
	}
}

static void *random_make(size_t n)
{
	struct node **node = nodes_make(n), *first;
	uint64_t seed = 1;

	nodes_shuffle(node, n, &seed);
	for (size_t i = 0; i < n; i++) {
		struct node **to = node[i]->to;

		HEAP_STORE(node[i], &to[0], node[(i + 1) % n]);
		HEAP_STORE(node[i], &to[1], node[peer_below(&seed, n)]);
		HEAP_STORE(node[i], &to[2], node[peer_below(&seed, n)]);
	}
	first = node[0];
	heap_drop(node, node + n);
	free(node);
	return first;
}

static uint64_t random_walk(const void *root)
{
	const struct node *n = root;
	uint64_t sum = 0, seed = 2;

	for (int i = 0; i < STEPS; i++) {
		n = n->to[peer_below(&seed, 3)];
		sum = sum * 31 + n->id;
	}
	return sum;
}

// ---- tree ----

// branch_make makes n nodes, numbered in order, the left half before the right.
static struct branch *branch_make(size_t n, uint64_t *id)
{
	struct branch *b;

	if (n == 0)
		return NULL;
	b = peer_alloc(sizeof *b);
	b->id = (*id)++;
	HEAP_STORE(b, &b->left, branch_make((n - 1) / 2, id));
	HEAP_STORE(b, &b->right, branch_make(n - 1 - (n - 1) / 2, id));
	return b;
}

static void *tree_make(size_t n)
{
	uint64_t id = 0;

	return branch_make(n, &id);
}

static uint64_t tree_walk(const void *root)
{
	const struct branch *b = root;

	return b ? b->id + tree_walk(b->left) + tree_walk(b->right) : 0;
}

// ---- list ----

static void *list_make(size_t n)
{
	struct cell *first = NULL;

	for (size_t i = 0; i < n / 2; i++) {
		uint64_t *leaf = peer_alloc_noscan(2 * sizeof *leaf);
		struct cell *c;

		leaf[0] = i;
		leaf[1] = 0;
		c = peer_alloc(sizeof *c);
		c->leaf = leaf;
		c->next = first;
		first = c;
	}
	return first;
}

static uint64_t list_walk(const void *root)
{
	uint64_t sum = 0;

	for (const struct cell *c = root; c; c = c->next)
		sum = sum * 31 + *c->leaf;
	return sum;
}

// ---- array, hot ----

struct array {
	size_t n;
	void **leaf;
};

static void *leaves_make(size_t n, size_t size, uint64_t *hot)
{
	struct array *a = peer_alloc(sizeof *a);

	a->n = n;
	HEAP_STORE(a, &a->leaf, peer_alloc(n * sizeof *a->leaf));
	for (size_t i = 0; i < n; i++) {
		void **leaf = hot ? peer_alloc(size) : peer_alloc_noscan(size);

		leaf[0] = hot;
		((uint64_t *)leaf)[1] = i;
		HEAP_STORE(a->leaf, &a->leaf[i], leaf);
	}
	return a;
}

static void *array_make(size_t n)
{
	return leaves_make(n, 16, NULL);
}

static void *hot_make(size_t n)
{
	uint64_t *hot = peer_alloc(2 * sizeof *hot);

	return leaves_make(n, 32, hot);
}

static uint64_t array_walk(const void *root)
{
	const struct array *a = root;
	uint64_t sum = 0;

	for (size_t i = 0; i < a->n; i++)
		sum = sum * 31 + ((uint64_t *)a->leaf[i])[1];
	return sum;
}

static const struct {
	const char *name;
	size_t size; // of an object
	void *(*make)(size_t n);
	uint64_t (*walk)(const void *root);
} shapes[] = {
    {"random", sizeof(struct node), random_make, random_walk},
    {"tree", sizeof(struct branch), tree_make, tree_walk},
    {"list", sizeof(struct cell), list_make, list_walk},
    {"array", 16, array_make, array_walk},
    {"hot", 32, hot_make, array_walk},
};

static size_t shape_index(const char *name)
{
	for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
		if (!strcmp(shapes[i].name, name))
			return i;
	peer_die("no such shape");
}

// collect_median returns the median of n collections, in seconds.
static double collect_median(struct peer_time *t, int n)
{
	double sample[COLLECTIONS];

	heap_collect();
	for (int i = 0; i < n; i++) {
		struct peer_time one = {0};

		peer_start(&one);
		heap_collect();
		peer_stop(&one);
		sample[i] = one.wall;
		t->wall += one.wall;
		t->cpu += one.cpu;
	}
	return peer_median(sample, (size_t)n);
}

int main(int argc, char **argv)
{
	static const uint64_t mib[2] = {1, 65536};
	size_t shape = shape_index(peer_word(argc, argv, 1));
	uint64_t volume = peer_number(argc, argv, 2, mib);
	int collections = volume < ONCE_MIB ? COLLECTIONS : 1;
	size_t n = (size_t)(volume << 20) / shapes[shape].size;
	struct peer_time t = {0};
	double seconds;
	void *root;

	heap_begin();
	root = shapes[shape].make(n);
	seconds = collect_median(&t, collections);
	peer_figure("cpu_ns", t.cpu * 1e9 / collections / (double)n);
	peer_figure("resident_MiB", peer_resident_mib());
	peer_pause_figure();
	peer_keep(root);
	peer_report(seconds * 1e9 / (double)n, "ns", &t,
		    shapes[shape].walk(root));
	return 0;
}
