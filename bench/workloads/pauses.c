// pauses.c - the longest time that a program waits beside a heap of MIB.
//
// usage: pauses MIB
//
// A binary tree of nodes of 64 bytes lives, MIB in all.  Then the program makes
// garbage, 16 objects of 64 bytes at a time, two and a half times what lives
// and at least 1 GiB.  That is two collections or more if the heap grows to
// twice what lives.  The clock is read once after each 16 objects.  The value
// is the longest time that 16 objects took, in milliseconds.  Figure pN_us is
// the time in microseconds that N percent of all such times do not exceed.  The
// checksum is of the tree.
#include "latency.h"

enum { GROUP = 16, LEAST_MIB = 1024 / PEER_DIVISOR };

struct node {
	struct node *left, *right;
	uint64_t id, spare[5];
};

static struct node *tree_make(size_t n, uint64_t *id)
{
	struct node *left, *right, *node;

	if (n == 0)
		return NULL;
	left = tree_make((n - 1) / 2, id);
	right = tree_make(n - 1 - (n - 1) / 2, id);
	node = peer_alloc(sizeof *node);
	node->left = left;
	node->right = right;
	node->id = (*id)++;
	return node;
}

static uint64_t tree_sum(const struct node *n)
{
	return n ? n->id * 31 + tree_sum(n->left) + tree_sum(n->right) : 0;
}

static void group_make(void)
{
	struct node *n[GROUP];

	for (int i = 0; i < GROUP; i++) {
		n[i] = peer_alloc(sizeof *n[i]);
		n[i]->id = (uint64_t)i;
	}
	peer_keep(n);
	for (int i = 0; i < GROUP; i++)
		heap_free(n[i]);
}

static void churn(struct latency *l, uint64_t groups)
{
	uint64_t began = latency_now();

	for (uint64_t i = 0; i < groups; i++) {
		uint64_t ended;

		group_make();
		ended = latency_now();
		latency_add(l, ended - began);
		began = ended;
	}
}

int main(int argc, char **argv)
{
	static const uint64_t bounds[2] = {1, 1 << 20};
	static struct latency latency;
	uint64_t mib = peer_number(argc, argv, 1, bounds), id = 0;
	uint64_t garbage = mib * 5 / 2 > LEAST_MIB ? mib * 5 / 2 : LEAST_MIB;
	uint64_t groups = (garbage << 20) / (GROUP * sizeof(struct node));
	struct peer_time t = {0};
	struct node *root;

	heap_begin();
	root = tree_make((mib << 20) / sizeof *root, &id);
	peer_start(&t);
	churn(&latency, groups);
	peer_stop(&t);
	peer_keep(root);
	latency_report(&latency, groups);
	peer_report((double)latency.longest / 1e6, "ms", &t, tree_sum(root));
	return 0;
}
