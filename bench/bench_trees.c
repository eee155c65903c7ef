// bench_trees.c - binary trees, the collector's classic: one tree lives on
// while many of all sizes are built, walked and dropped.
//
// The rules are those of the benchmarks game: trees of depth 4, 6 and so on up
// to the largest, so many of each that every depth has the same number of
// nodes.  Two threads share the trees of a depth, so the work is the same and
// half the time is perfect.  A node is two pointers, 16 bytes.
//
// Good: a node of two threads costs half of what one of one thread does.  The
// figure to hold against other collectors is the one thread's, on the same
// machine: the rules are the same everywhere.
//
// Argument: the largest depth, 6 to 26; 18 if there is none.
#include "bench/bench.h"

enum { REPETITIONS = 3, LEAST_DEPTH = 4 };

struct node {
	struct node *left, *right;
};

struct job {
	int depth; // the largest
	int threads;
	uint64_t nodes[BENCH_THREADS]; // walked by each thread
};

static struct node *long_lived[1];
static struct bench_samples samples;

static struct node *tree_make(rt_thread *t, int depth)
{
	struct node *n =
	    bench_need(rt_alloc_in(t, sizeof(struct node)), "rt_alloc");

	if (depth > 0) {
		n->left = tree_make(t, depth - 1);
		n->right = tree_make(t, depth - 1);
	}
	return n;
}

static uint64_t tree_count(const struct node *n)
{
	return n->left ? 1 + tree_count(n->left) + tree_count(n->right) : 1;
}

static uint64_t trees_of(int depth, int largest)
{
	return UINT64_C(1) << (largest - depth + LEAST_DEPTH);
}

static void work(int who, void *arg)
{
	struct job *job = arg;
	rt_thread *t = rt_thread_self();
	uint64_t nodes = 0;

	for (int d = LEAST_DEPTH; d <= job->depth; d += 2) {
		uint64_t trees = trees_of(d, job->depth);

		for (uint64_t i = (uint64_t)who; i < trees;
		     i += (uint64_t)job->threads)
			nodes += tree_count(tree_make(t, d));
	}
	job->nodes[who] = nodes;
}

// nodes_wanted is how many nodes all trees have together.
static uint64_t nodes_wanted(int largest)
{
	uint64_t nodes = 0;

	for (int d = LEAST_DEPTH; d <= largest; d += 2)
		nodes += trees_of(d, largest) * ((UINT64_C(2) << d) - 1);
	return nodes;
}

// A node that is lost would make the bench look fast.
static void nodes_check(const struct job *job)
{
	uint64_t nodes = 0;

	for (int i = 0; i < job->threads; i++)
		nodes += job->nodes[i];
	bench_must(nodes == nodes_wanted(job->depth) ? 0 : 1, "node count");
	bench_must(tree_count(long_lived[0]) == (UINT64_C(2) << job->depth) - 1
		       ? 0
		       : 1,
		   "node count of the tree that lives on");
}

static void report_collections(const rt_memstats *before,
			       const rt_memstats *after)
{
	uint32_t n = after->num_gc - before->num_gc;
	uint64_t ns = after->pause_total_ns - before->pause_total_ns;

	printf("  %u collections, mean pause %.2f ms\n", n,
	       n ? (double)ns / n / 1e6 : 0.0);
}

static void measure(int depth, int threads)
{
	struct job job = {.depth = depth, .threads = threads};
	struct bench_row row = {.unit = "ns", .unit_ns = 1, .threads = threads};
	static rt_memstats before, after;

	bench_must(rt_read_memstats(&before), "rt_read_memstats");
	for (int i = 0; i < REPETITIONS; i++) {
		uint64_t ns = bench_together(threads, work, &job);

		nodes_check(&job);
		bench_add(&samples, (double)ns / (double)nodes_wanted(depth));
	}
	bench_must(rt_read_memstats(&after), "rt_read_memstats");
	row.name = "a node, made and walked";
	row.heap = after.heap_inuse;
	bench_line(&row, &samples);
	report_collections(&before, &after);
}

int main(int argc, char **argv)
{
	static const uint64_t depth[3] = {18, 6, 26};
	int largest = (int)bench_argument(argc, argv, 1, depth);
	char title[64];

	bench_must(rt_init(NULL), "rt_init");
	bench_must(rt_roots_add(long_lived, long_lived + 1, RT_ROOT_EXACT),
		   "rt_roots_add");
	long_lived[0] = tree_make(rt_thread_self(), largest);
	snprintf(title, sizeof title, "binary trees of depth %d", largest);
	bench_heading(title);
	measure(largest, 1);
	measure(largest, 2);
	bench_must(rt_fini(), "rt_fini");
	return 0;
}
