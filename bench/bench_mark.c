// bench_mark.c - a full collection of a heap in which everything lives.
//
// Nodes of 48 bytes with three pointers, as a graph (pointers to anywhere), a
// tree in the order of its making and a list.  The graph misses the caches at
// every node, and is what prefetching in the marker is for; the list is the
// one shape that no prefetching and no second thread can help.  In the tree
// with a hot object every node also points to one object.  The array points to
// all nodes, which point nowhere; it is the only one of that size, so markers
// share it in pieces.  The deep stack has a frame for every 16 nodes.
//
// Good: the graph at no more than twice the tree; more says that the marker
// waits for memory.  The time includes sweeping, and is for each live object;
// the CPU time is of all threads that take part.
//
// Argument: mebibytes of nodes, 1 to 65536; 64 if there is none.
#include "bench/bench.h"

enum { REPETITIONS = 7, FRAME_NODES = 16 };

struct node {
	struct node *to[3];
	uint64_t payload[3];
};

_Static_assert(sizeof(struct node) == 48, "the text above says 48 bytes");

static struct node *root[1];
static struct bench_samples samples, cpu, pauses;

// A generator (splitmix64) with a fixed seed: every run has the same graph.
static uint64_t random_below(uint64_t n)
{
	static uint64_t state = 1;
	uint64_t z = state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return (z ^ (z >> 31)) % n;
}

static struct node *node_make(void)
{
	return bench_need(rt_alloc(sizeof(struct node)), "rt_alloc");
}

// Nodes while they are being linked: n of them, kept by a root of their own.
static struct node **nodes_make(size_t n)
{
	struct node **node =
	    bench_need(calloc(n, sizeof(struct node *)), "calloc");

	bench_must(rt_roots_add(node, node + n, RT_ROOT_EXACT), "rt_roots_add");
	for (size_t i = 0; i < n; i++)
		node[i] = node_make();
	return node;
}

static void nodes_release(struct node **node, size_t n)
{
	root[0] = node[0];
	bench_must(rt_roots_remove(node, node + n), "rt_roots_remove");
	free(node);
}

// The first pointers make one circle through all nodes in random order, so
// that each is reached; the others go anywhere.
static void make_graph(size_t n)
{
	struct node **node = nodes_make(n);

	for (size_t i = n - 1; i > 0; i--) {
		size_t k = random_below(i + 1);
		struct node *other = node[k];

		node[k] = node[i];
		node[i] = other;
	}
	for (size_t i = 0; i < n; i++) {
		node[i]->to[0] = node[(i + 1) % n];
		node[i]->to[1] = node[random_below(n)];
		node[i]->to[2] = node[random_below(n)];
	}
	nodes_release(node, n);
}

static void make_tree(size_t n)
{
	struct node **node = nodes_make(n);

	for (size_t i = 1; i < n; i++)
		node[(i - 1) / 3]->to[(i - 1) % 3] = node[i];
	nodes_release(node, n);
}

// make_hot is make_tree with the last pointer of every node to the root.
static void make_hot(size_t n)
{
	struct node **node = nodes_make(n);

	for (size_t i = 1; i < n; i++) {
		node[(i - 1) / 2]->to[(i - 1) % 2] = node[i];
		node[i]->to[2] = node[0];
	}
	nodes_release(node, n);
}

static void make_array(size_t n)
{
	struct node **node = bench_need(rt_alloc(n * sizeof(struct node *)),
					"rt_alloc of an array");

	root[0] = (struct node *)node;
	for (size_t i = 0; i < n; i++)
		node[i] = node_make();
}

static void make_list(size_t n)
{
	root[0] = NULL;
	for (size_t i = 0; i < n; i++) {
		struct node *first = node_make();

		first->to[0] = root[0];
		root[0] = first;
	}
}

// objects_now is how many objects are allocated; after a collection those
// are the ones that it marked.
static uint64_t objects_now(void)
{
	static rt_memstats m;

	bench_must(rt_read_memstats(&m), "rt_read_memstats");
	return m.heap_objects;
}

// cpu_now is the processor time of all threads in nanoseconds.
static uint64_t cpu_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

// pause_of_last is how long the world stood still for the last collection.
static double pause_of_last(void)
{
	static uint64_t words[RT_GCSTATS_WORDS];
	size_t used;

	bench_must(rt_read_gcstats(words, RT_GCSTATS_WORDS, &used),
		   "rt_read_gcstats");
	return (double)words[0];
}

static void collect_once(void)
{
	uint64_t began = bench_now(), cpu_began = cpu_now();
	double objects;

	bench_must(rt_gc(), "rt_gc");
	objects = (double)objects_now();
	bench_add(&samples, (double)(bench_now() - began) / objects);
	bench_add(&cpu, (double)(cpu_now() - cpu_began) / objects);
	bench_add(&pauses, pause_of_last());
}

static void line(const char *shape, const char *what, double unit_ns,
		 struct bench_samples *s)
{
	char name[64];
	struct bench_row row = {.name = name,
				.unit = unit_ns > 1 ? "ms" : "ns",
				.unit_ns = unit_ns,
				.threads = 1,
				.heap = bench_heap_inuse()};

	snprintf(name, sizeof name, "%s, %s", shape, what);
	bench_line(&row, s);
}

// measure_made measures the heap as it is now.
static void measure_made(const char *shape, size_t n)
{
	// The first collection frees what the making left behind.
	bench_must(rt_gc(), "rt_gc");
	bench_must(objects_now() >= n ? 0 : 1, "all nodes alive");
	for (int i = 0; i < REPETITIONS; i++)
		collect_once();
	line(shape, "an object", 1, &samples);
	line(shape, "an object, CPU time", 1, &cpu);
	line(shape, "world stopped", 1e6, &pauses);
}

static void measure(const char *shape, void (*make)(size_t), size_t n)
{
	make(n);
	measure_made(shape, n);
	root[0] = NULL;
}

// go_deep makes the nodes of a frame that alone knows them, and then the next
// frame; the last one measures.
static __attribute__((noinline)) void go_deep(size_t left, size_t n)
{
	struct node *volatile frame[FRAME_NODES];

	for (int i = 0; i < FRAME_NODES; i++)
		frame[i] = node_make();
	if (left > FRAME_NODES)
		go_deep(left - FRAME_NODES, n);
	else
		measure_made("deep stack", n);
	rt_keep_alive(frame[0]);
}

// A thread with room for all frames, and for what else is on its stack.
static void *deep_main(void *arg)
{
	size_t n = *(const size_t *)arg / FRAME_NODES * FRAME_NODES;

	bench_must(rt_thread_attach(0), "rt_thread_attach");
	go_deep(n, n);
	bench_must(rt_thread_detach(), "rt_thread_detach");
	return NULL;
}

static void measure_deep(size_t n)
{
	pthread_attr_t attr;
	pthread_t thread;

	bench_must(pthread_attr_init(&attr), "pthread_attr_init");
	bench_must(
	    pthread_attr_setstacksize(&attr, n / FRAME_NODES * 512 + (1 << 20)),
	    "pthread_attr_setstacksize");
	bench_must(pthread_create(&thread, &attr, deep_main, &n),
		   "pthread_create");
	bench_must(rt_blocking_enter(), "rt_blocking_enter");
	pthread_join(thread, NULL);
	bench_must(rt_blocking_leave(), "rt_blocking_leave");
	pthread_attr_destroy(&attr);
}

int main(int argc, char **argv)
{
	static const uint64_t mib[3] = {64, 1, 65536};
	size_t n = (size_t)((bench_argument(argc, argv, 1, mib) << 20) /
			    sizeof(struct node));

	bench_must(rt_init(NULL), "rt_init");
	bench_must(rt_roots_add(root, root + 1, RT_ROOT_EXACT), "rt_roots_add");
	bench_heading("a full collection");
	measure("graph", make_graph, n);
	measure("tree", make_tree, n);
	measure("list", make_list, n);
	measure("hot object", make_hot, n);
	measure("array", make_array, n);
	measure_deep(n);
	bench_must(rt_fini(), "rt_fini");
	return 0;
}
