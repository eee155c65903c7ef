// byhand.c - nanoseconds of a pair of calls by which a host manages memory.
//
// usage: byhand free|malloc|handle|handles|stack
//
// - free: rt_free of an object of 48 bytes and the allocation of the next one.
// - malloc: the same with malloc and free of the C library, for comparison.
// - handle: rt_handle_new and rt_handle_free in turn.
// - handles: the same for 100 000 handles, all of which are made before the
//   first is freed.
// - stack: rt_stack_alloc and rt_stack_free of 8 KiB in turn.
//
// The value is the least of all rounds, in processor time.  The checksum is the
// number of pairs in a round.
//
// Good: free at most 8 ns, handle and handles at most 15.
#include "harness.h"

#ifndef RT_FREE_H
#error "only rtheap has these"
#endif

enum {
	PAIRS = 10000000 / PEER_DIVISOR,
	HANDLES = 100000 / PEER_DIVISOR,
	ROUNDS = PEER_DIVISOR > 1 ? 1 : 9,
	SIZE = 48,
	STACK = 8192,
};

static rt_handle *many[HANDLES];

static void free_pairs(void)
{
	for (int i = 0; i < PAIRS; i++) {
		void *p = peer_need(rt_alloc(SIZE));

		peer_keep(p);
		heap_must(rt_free(p), "rt_free");
	}
}

static void malloc_pairs(void)
{
	for (int i = 0; i < PAIRS; i++) {
		void *p = peer_need(malloc(SIZE));

		peer_keep(p);
		free(p);
	}
}

static void handle_pairs(void)
{
	for (int i = 0; i < PAIRS; i++) {
		rt_handle *h = peer_need(rt_handle_new(NULL));

		heap_must(rt_handle_free(h), "rt_handle_free");
	}
}

static void many_handles(void)
{
	for (int i = 0; i < HANDLES; i++)
		many[i] = peer_need(rt_handle_new(NULL));
	for (int i = 0; i < HANDLES; i++)
		heap_must(rt_handle_free(many[i]), "rt_handle_free");
}

static void stack_pairs(void)
{
	for (int i = 0; i < PAIRS; i++)
		heap_must(
		    rt_stack_free(peer_need(rt_stack_alloc(STACK)), STACK),
		    "rt_stack_free");
}

static const struct job {
	const char *name;
	int pairs;
	void (*run)(void);
} jobs[] = {
    {"free", PAIRS, free_pairs},     {"malloc", PAIRS, malloc_pairs},
    {"handle", PAIRS, handle_pairs}, {"handles", HANDLES, many_handles},
    {"stack", PAIRS, stack_pairs},
};

static const struct job *find(const char *name)
{
	for (size_t i = 0; i < sizeof jobs / sizeof jobs[0]; i++)
		if (!strcmp(jobs[i].name, name))
			return &jobs[i];
	peer_die("no such measurement");
	return NULL;
}

int main(int argc, char **argv)
{
	const struct job *job = find(peer_word(argc, argv, 1));
	struct peer_time t = {0};

	heap_begin();
	peer_report(peer_least(job->run, ROUNDS, &t) * 1e9 / job->pairs, "ns",
		    &t, (uint64_t)job->pairs);
	return 0;
}
