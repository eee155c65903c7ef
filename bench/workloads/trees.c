// trees.c - binary trees: one lives on while many of all depths are built,
// counted and dropped; with depth 18 there are 34.9 million nodes.
//
// usage: trees DEPTH THREADS bottom|top
//
// First a tree one deeper than DEPTH is built, then one of DEPTH that stays.
// Then trees of each depth 4, 6 .. DEPTH are built, so many that all depths
// make the same number of nodes.  Threads share the trees of a depth.  The
// checksum is the count.
//
// bottom: a node is made after its subtrees, so its pointers are stored into a
// new object.  top: a node comes first, and its subtrees are stored into it
// when they are done, as a host with a write barrier stores them.
#include "harness.h"

enum { LEAST_DEPTH = 4 };

struct node {
	struct node *left, *right;
};

struct job {
	int depth, threads;
	bool top;
	uint64_t nodes[PEER_THREADS][16]; // of a thread, in [0]; cache lines
};

static struct node *tree_from_bottom(int depth)
{
	struct node *left = NULL, *right = NULL, *n;

	if (depth > 0) {
		left = tree_from_bottom(depth - 1);
		right = tree_from_bottom(depth - 1);
	}
	n = peer_alloc(sizeof *n);
	n->left = left;
	n->right = right;
	return n;
}

static struct node *tree_from_top(int depth)
{
	struct node *n = peer_alloc(sizeof *n);

	if (depth > 0) {
		HEAP_STORE(n, &n->left, tree_from_top(depth - 1));
		HEAP_STORE(n, &n->right, tree_from_top(depth - 1));
	}
	return n;
}

static struct node *tree_make(int depth, bool top)
{
	return top ? tree_from_top(depth) : tree_from_bottom(depth);
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

// tree_pass makes, counts and drops one tree.
static uint64_t tree_pass(int depth, bool top)
{
	struct node *n = tree_make(depth, top);
	uint64_t count = tree_count(n);

	if (HEAP_FREES)
		tree_free(n);
	return count;
}

static void work(int who, void *arg)
{
	struct job *job = arg;
	uint64_t nodes = 0;

	for (int d = LEAST_DEPTH; d <= job->depth; d += 2) {
		uint64_t trees = UINT64_C(1) << (job->depth - d + 3);

		for (uint64_t i = (uint64_t)who; i < trees;
		     i += (uint64_t)job->threads)
			nodes += tree_pass(d, job->top);
	}
	job->nodes[who][0] = nodes;
}

int main(int argc, char **argv)
{
	static const uint64_t depth[2] = {6, 26}, threads[2] = {1, 16};
	struct job job = {.depth = (int)peer_number(argc, argv, 1, depth),
			  .threads = (int)peer_number(argc, argv, 2, threads),
			  .top = !strcmp(peer_word(argc, argv, 3), "top")};
	struct peer_time t = {0};
	struct node *lives;
	uint64_t nodes;

	heap_begin();
	peer_start(&t);
	nodes = tree_pass(job.depth + 1, job.top);
	lives = tree_make(job.depth, job.top);
	peer_stop(&t);
	peer_together(job.threads, work, &job, &t);
	for (int i = 0; i < job.threads; i++)
		nodes += job.nodes[i][0];
	nodes += tree_count(lives);
	peer_keep(lives);
	peer_report(t.wall, "s", &t, nodes);
	return 0;
}
