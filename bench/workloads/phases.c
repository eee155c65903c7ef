// phases.c - a compiler: for one unit of source after another it builds a tree,
// passes over it, and drops it.
//
// usage: phases MIB UNITS
//
// A unit's tree has up to MIB of nodes; half of the trees are smaller, some up
// to 32 times.  Three of four nodes die at once while the tree is built.  Each
// of four passes makes two that die for each node of the tree.  So what lives
// rises and falls once a unit.  The checksum is of the nodes' numbers.
#include "harness.h"

enum { PASSES = 4, NODE = 48 };

struct node {
	struct node *left, *right;
	uint64_t number, unused[3];
};

static struct node *node_make(uint64_t number)
{
	struct node *n = peer_alloc(sizeof *n);

	n->number = number;
	return n;
}

// churn makes count nodes that die.
static void churn(int count)
{
	while (count--)
		peer_keep(node_make(0));
}

static struct node *build(uint64_t *seed, int depth)
{
	struct node *left, *right, *n;

	churn(3);
	if (depth == 0)
		return node_make(peer_random(seed) & 0xff);
	left = build(seed, depth - 1);
	right = build(seed, depth - 1);
	n = node_make(peer_random(seed) & 0xff);
	n->left = left;
	n->right = right;
	return n;
}

static uint64_t pass(const struct node *n)
{
	if (!n)
		return 0;
	churn(2);
	return n->number + pass(n->left) + pass(n->right);
}

// depth_below returns the depth of a tree of at most so many bytes.  A coin
// decides up to five times whether to halve them.
static int depth_below(uint64_t *seed, uint64_t bytes)
{
	int depth = 0;

	for (int i = 0; i < 5 && peer_below(seed, 2); i++)
		bytes /= 2;
	while ((UINT64_C(4) << depth) * NODE <= bytes)
		depth++;
	return depth;
}

static uint64_t compile(uint64_t *seed, uint64_t bytes)
{
	struct node *tree = build(seed, depth_below(seed, bytes));
	uint64_t sum = 0;

	for (int i = 0; i < PASSES; i++)
		sum += pass(tree);
	return sum;
}

int main(int argc, char **argv)
{
	static const uint64_t sizes[2] = {1, 4096}, counts[2] = {1, 100000};
	uint64_t bytes, units, seed = 1, sum = 0;
	struct peer_time t = {0};

	bytes = peer_number(argc, argv, 1, sizes) << 20;
	units = peer_number(argc, argv, 2, counts);
	heap_begin();
	peer_start(&t);
	for (uint64_t i = 0; i < units; i++)
		sum += compile(&seed, bytes);
	peer_stop(&t);
	peer_report(t.wall, "s", &t, sum);
	return 0;
}
