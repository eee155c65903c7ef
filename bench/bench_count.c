// bench_count.c - work whose instructions count.sh counts.
//
// usage: bench_count            lists the items: "number times title"
//        bench_count NUMBER     does that item's work, in count_work
//
// What count_work and all that it calls executes, over times, is the count: of
// a loop around the library, taking spans and clearing included, in a heap that
// does not collect by itself and makes no helper threads.
#include "bench/bench.h"

enum {
	OBJECTS = 50000, // marked
	FRAGMENTS = 8192 // objects of which every second one lives
};

struct item {
	const char *title;
	uint64_t times;
	void (*prepare)(const struct item *); // NULL: nothing to prepare
	void (*work)(const struct item *);
	int kind;    // of objects that are allocated
	size_t size; // theirs
};

// What lives hangs here.
static void *root[1];

void count_work(const struct item *item);

// ---- Allocation ----

static inline __attribute__((always_inline)) void
allocate_inline(size_t size, const struct item *item)
{
	rt_thread *t = rt_thread_self();

	for (uint64_t i = 0; i < item->times; i++)
		rt_keep_alive(rt_alloc_in(t, size));
}

static void inline_work(const struct item *item)
{
	switch (item->size) {
	case 16:
		return allocate_inline(16, item);
	case 64:
		return allocate_inline(64, item);
	case 256:
		return allocate_inline(256, item);
	default:
		return allocate_inline(1024, item);
	}
}

// The compiler does not know the size.
static void unknown_work(const struct item *item)
{
	rt_thread *t = rt_thread_self();

	for (uint64_t i = 0; i < item->times; i++)
		rt_keep_alive(rt_alloc_in(t, item->size));
}

static void inline_8_work(const struct item *item)
{
	rt_thread *t = rt_thread_self();

	for (uint64_t i = 0; i < item->times; i++)
		rt_keep_alive(rt_alloc_noscan_in(t, 8));
}

static void call_work(const struct item *item)
{
	for (uint64_t i = 0; i < item->times; i++)
		rt_keep_alive(rt_alloc_kind(item->kind, item->size));
}

static void uninit_work(const struct item *item)
{
	for (uint64_t i = 0; i < item->times; i++)
		rt_keep_alive(rt_alloc_noscan_uninit(item->size));
}

// A first object makes the size's span, so that the counts of small numbers do
// not depend on it.
static void first_object(const struct item *item)
{
	rt_keep_alive(rt_alloc_kind(item->kind, item->size));
}

// After it every second slot of the spans is free: each allocation takes a run
// of one.
static void fragment(const struct item *item)
{
	void **object =
	    bench_need(rt_alloc(FRAGMENTS * sizeof(void *)), "rt_alloc");

	root[0] = object;
	for (int i = 0; i < FRAGMENTS; i++)
		object[i] = bench_need(rt_alloc_kind(item->kind, item->size),
				       "rt_alloc_kind");
	for (int i = 0; i < FRAGMENTS; i += 2)
		object[i] = NULL;
	bench_must(rt_gc(), "rt_gc");
	first_object(item);
}

// ---- Statistics ----

static rt_memstats stats;

static void exact_work(const struct item *item)
{
	for (uint64_t i = 0; i < item->times; i++)
		bench_must(rt_read_memstats(&stats), "rt_read_memstats");
}

static void live_work(const struct item *item)
{
	for (uint64_t i = 0; i < item->times; i++)
		bench_must(rt_read_memstats_live(&stats),
			   "rt_read_memstats_live");
}

// ---- Marking ----

struct node {
	struct node *to[3];
	uint64_t payload[3];
};

static struct node **nodes_make(void)
{
	struct node **node =
	    bench_need(rt_alloc(OBJECTS * sizeof(struct node *)), "rt_alloc");

	root[0] = node;
	for (int i = 0; i < OBJECTS; i++)
		node[i] = bench_need(rt_alloc(sizeof(struct node)), "rt_alloc");
	return node;
}

// nodes_linked drops the array, and what the linking left.
static void nodes_linked(struct node **node)
{
	root[0] = node[0];
	bench_must(rt_gc(), "rt_gc");
}

static void make_graph(const struct item *item)
{
	struct node **node = nodes_make();
	uint64_t seed = 1;

	(void)item;
	for (int i = 0; i < OBJECTS; i++) {
		node[i]->to[0] = node[(i + 1) % OBJECTS];
		for (int k = 1; k < 3; k++) {
			seed = seed * UINT64_C(6364136223846793005) + 1;
			node[i]->to[k] = node[(seed >> 33) % OBJECTS];
		}
	}
	nodes_linked(node);
}

static void make_tree(const struct item *item)
{
	struct node **node = nodes_make();

	(void)item;
	for (int i = 1; i < OBJECTS; i++)
		node[(i - 1) / 3]->to[(i - 1) % 3] = node[i];
	nodes_linked(node);
}

static void make_list(const struct item *item)
{
	struct node **node = nodes_make();

	(void)item;
	for (int i = 1; i < OBJECTS; i++)
		node[i - 1]->to[0] = node[i];
	nodes_linked(node);
}

static void collect_work(const struct item *item)
{
	(void)item;
	bench_must(rt_gc(), "rt_gc");
}

// ---- The items ----

static const struct item items[] = {
    {"allocate inline,    16 bytes", 2000, first_object, inline_work, RT_WORDS,
     16},
    {"allocate inline,    64 bytes", 2000, first_object, inline_work, RT_WORDS,
     64},
    {"allocate inline,   256 bytes", 2000, first_object, inline_work, RT_WORDS,
     256},
    {"allocate inline,  1024 bytes", 2000, first_object, inline_work, RT_WORDS,
     1024},
    {"allocate inline,     8 bytes, noscan", 2000, first_object, inline_8_work,
     RT_NOSCAN, 8},
    {"allocate any size,  40 bytes", 2000, first_object, unknown_work, RT_WORDS,
     40},
    {"allocate any size, 256 bytes", 2000, first_object, unknown_work, RT_WORDS,
     256},
    {"allocate by call,    8 bytes, words", 2000, first_object, call_work,
     RT_WORDS, 8},
    {"allocate by call,   16 bytes, words", 2000, first_object, call_work,
     RT_WORDS, 16},
    {"allocate by call,   64 bytes, words", 2000, first_object, call_work,
     RT_WORDS, 64},
    {"allocate by call,  256 bytes, words", 2000, first_object, call_work,
     RT_WORDS, 256},
    {"allocate by call, 1024 bytes, words", 2000, first_object, call_work,
     RT_WORDS, 1024},
    {"allocate by call, 4096 bytes, words", 500, first_object, call_work,
     RT_WORDS, 4096},
    {"allocate by call,  32 KiB, words", 100, first_object, call_work, RT_WORDS,
     32768},
    {"allocate by call,    8 bytes, noscan", 2000, first_object, call_work,
     RT_NOSCAN, 8},
    {"allocate by call,   16 bytes, noscan", 2000, first_object, call_work,
     RT_NOSCAN, 16},
    {"allocate by call,    4 bytes, noscan", 2000, first_object, call_work,
     RT_NOSCAN, 4},
    {"allocate uninit,     64 bytes, noscan", 2000, first_object, uninit_work,
     RT_NOSCAN, 64},
    {"allocate uninit,   4096 bytes, noscan", 500, first_object, uninit_work,
     RT_NOSCAN, 4096},
    {"allocate uninit,   32 KiB, noscan", 100, first_object, uninit_work,
     RT_NOSCAN, 32768},
    {"next run of one slot, 64 bytes", 2000, fragment, inline_work, RT_WORDS,
     64},
    {"next run of one slot, 64 bytes, uninit", 2000, fragment, uninit_work,
     RT_NOSCAN, 64},
    {"exact read", 100, first_object, exact_work, RT_WORDS, 16},
    {"live read", 100, first_object, live_work, RT_WORDS, 16},
    {"collection of a graph, an object", OBJECTS, make_graph, collect_work, 0,
     0},
    {"collection of a tree, an object", OBJECTS, make_tree, collect_work, 0, 0},
    {"collection of a list, an object", OBJECTS, make_list, collect_work, 0, 0},
    {"collection of nothing", 1, NULL, collect_work, 0, 0},
};

enum { ITEMS = sizeof items / sizeof items[0] };

__attribute__((noinline)) void count_work(const struct item *item)
{
	item->work(item);
}

static void do_item(const struct item *item)
{
	rt_config c;

	rt_config_init(&c);
	c.gc_threads = 0;
	c.gc_percent = -1;
	bench_must(rt_init(&c), "rt_init");
	bench_must(rt_roots_add(root, root + 1, RT_ROOT_EXACT), "rt_roots_add");
	if (item->prepare)
		item->prepare(item);
	count_work(item);
	bench_must(rt_fini(), "rt_fini");
}

int main(int argc, char **argv)
{
	static const uint64_t number[3] = {0, 0, ITEMS - 1};

	if (argc > 1) {
		do_item(&items[bench_argument(argc, argv, 1, number)]);
		return 0;
	}
	for (int i = 0; i < ITEMS; i++)
		printf("%d %llu %s\n", i, (unsigned long long)items[i].times,
		       items[i].title);
	return 0;
}
