// look.c - nanoseconds for each object that a host looks at, and for each of
// the inline functions that it calls in its loops.
//
// usage: look walk|list|pick|nogc|poll
//
// - walk: rt_heap_walk with a callback that counts.
// - list: rt_heap_list of every object of a kind.
// - pick: the same with a callback that wants every second object.
// - nogc: a pair of rt_nogc_enter and rt_nogc_leave.
// - poll: rt_poll.
//
// The objects have 48 bytes and are of one kind.  The value is the least of all
// rounds.  The checksum counts objects or rounds.
//
// Good: walk at most 10 ns, list at most 15; nogc at most 1.5 ns, poll at most
// 0.5.
#include "harness.h"

#ifndef RT_KIND_H
#error "only rtheap has these"
#endif

enum {
	OBJECTS = 1000000 / PEER_DIVISOR,
	CALLS = 100000000 / PEER_DIVISOR,
	ROUNDS = PEER_DIVISOR > 1 ? 1 : 9,
};

static uint64_t found;

static int count(void *obj, size_t size, int kind, void *arg)
{
	(void)obj, (void)size, (void)kind, (void)arg;
	found++;
	return 0;
}

static int second(const void *obj, size_t size, void *arg)
{
	(void)size, (void)arg;
	return (uintptr_t)obj / 16 % 2;
}

static void walk(void)
{
	heap_must(rt_heap_walk(count, NULL), "rt_heap_walk");
}

static void list_by(rt_pick_fn *pick)
{
	size_t n;
	void **l = peer_need(rt_heap_list(RT_KIND_FIRST, pick, NULL, &n));

	found += n;
	heap_must(rt_free(l), "rt_free");
}

static void list(void)
{
	list_by(NULL);
}

static void pick(void)
{
	list_by(second);
}

static void nogc(void)
{
	for (int i = 0; i < CALLS; i++) {
		heap_must(rt_nogc_enter(), "rt_nogc_enter");
		heap_must(rt_nogc_leave(), "rt_nogc_leave");
	}
	found++;
}

static void poll(void)
{
	for (int i = 0; i < CALLS; i++) {
		rt_poll();
		__asm__ volatile("");
	}
	found++;
}

static const struct job {
	const char *name;
	int units;
	void (*run)(void);
} jobs[] = {
    {"walk", OBJECTS, walk}, {"list", OBJECTS, list}, {"pick", OBJECTS, pick},
    {"nogc", CALLS, nogc},   {"poll", CALLS, poll},
};

static const struct job *find(const char *name)
{
	for (size_t i = 0; i < sizeof jobs / sizeof jobs[0]; i++)
		if (!strcmp(jobs[i].name, name))
			return &jobs[i];
	peer_die("no such measurement");
	return NULL;
}

static void make_objects(void)
{
	rt_kind_desc d;
	static void *first;

	rt_kind_desc_init(&d);
	d.layout = RT_LAYOUT_WORDS;
	if (rt_kind_register(&d) != RT_KIND_FIRST)
		peer_die("no kind");
	heap_hold(&first, &first + 1);
	for (int i = 0; i < OBJECTS; i++) {
		void **object = peer_need(rt_alloc_of(RT_KIND_FIRST, 48));

		object[0] = first;
		first = object;
	}
}

int main(int argc, char **argv)
{
	const struct job *job = find(peer_word(argc, argv, 1));
	struct peer_time t = {0};
	double least;

	heap_begin();
	make_objects();
	least = peer_least(job->run, ROUNDS, &t);
	peer_report(least * 1e9 / job->units, "ns", &t, found);
	return 0;
}
