// gcbench.c - after Ellis, Kovac and Boehm's GCBench: trees built from the
// top and from the bottom beside a tree and an array that live on.
//
// usage: gcbench DEPTH
//
// A tree of DEPTH and an array of doubles live on; a tree one deeper first
// stretches the heap.  Then trees are built of each depth 4, 6 .. 16, and in
// each of the two ways.  Their number is such that they have the nodes of two
// stretching trees.  The checksum is of the depths of the trees that are
// dropped, the count of the one that lives, and the array.
#include "harness.h"

enum { LEAST_DEPTH = 4, MOST_DEPTH = 16, ARRAY = 500000 };

struct node {
	struct node *left, *right;
	int64_t i, j;
};

static uint64_t tree_size(int depth)
{
	return (UINT64_C(2) << depth) - 1;
}

static void tree_populate(struct node *n, int depth)
{
	if (depth == 0)
		return;
	HEAP_STORE(n, &n->left, peer_alloc(sizeof *n));
	HEAP_STORE(n, &n->right, peer_alloc(sizeof *n));
	tree_populate(n->left, depth - 1);
	tree_populate(n->right, depth - 1);
}

static struct node *top_down(int depth)
{
	struct node *n = peer_alloc(sizeof *n);

	tree_populate(n, depth);
	return n;
}

static struct node *bottom_up(int depth)
{
	struct node *left = NULL, *right = NULL, *n;

	if (depth > 0) {
		left = bottom_up(depth - 1);
		right = bottom_up(depth - 1);
	}
	n = peer_alloc(sizeof *n);
	n->left = left;
	n->right = right;
	return n;
}

static uint64_t tree_count(const struct node *n)
{
	return n->left ? 1 + tree_count(n->left) + tree_count(n->right) : 1;
}

static void tree_free(struct node *n)
{
	if (n->left) {
		tree_free(n->left);
		tree_free(n->right);
	}
	heap_free(n);
}

// tree_drop visits only the left edge, because a walk is not what the time is
// for.  It returns the depth.
static uint64_t tree_drop(struct node *n)
{
	uint64_t depth = 0;

	for (const struct node *m = n; m->left; m = m->left)
		depth++;
	peer_keep(n);
	if (HEAP_FREES)
		tree_free(n);
	return depth;
}

static uint64_t build(int depth, int stretch)
{
	uint64_t trees = 2 * tree_size(stretch) / tree_size(depth);
	uint64_t sum = 0;

	for (uint64_t i = 0; i < trees; i++)
		sum += tree_drop(top_down(depth));
	for (uint64_t i = 0; i < trees; i++)
		sum += tree_drop(bottom_up(depth));
	return sum;
}

static double *array_make(void)
{
	double *array = peer_alloc_noscan(ARRAY * sizeof *array);

	for (int i = 0; i < ARRAY; i++)
		array[i] = 1.0 / (i + 1);
	return array;
}

static uint64_t array_sum(const double *array)
{
	double sum = 0;
	uint64_t bits;

	for (int i = 0; i < ARRAY; i++)
		sum += array[i];
	memcpy(&bits, &sum, sizeof bits);
	return bits;
}

int main(int argc, char **argv)
{
	static const uint64_t bounds[2] = {4, 24};
	int depth = (int)peer_number(argc, argv, 1, bounds);
	struct peer_time t = {0};
	struct node *lives;
	double *array;
	uint64_t sum;

	heap_begin();
	peer_start(&t);
	sum = tree_drop(bottom_up(depth + 1));
	lives = top_down(depth);
	array = array_make();
	for (int d = LEAST_DEPTH; d <= MOST_DEPTH; d += 2)
		sum += build(d, depth + 1);
	peer_stop(&t);
	sum += tree_count(lives) ^ array_sum(array);
	peer_keep(lives);
	peer_keep(array);
	peer_report(t.wall, "s", &t, sum);
	return 0;
}
