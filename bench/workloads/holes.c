// holes.c - nanoseconds for an allocation where every second object lives.
//
// usage: holes scan|noscan
//
// A table of objects of 64 bytes is filled.  Every second one dies, and a full
// collection follows.  Then as many are allocated as died, so each gets a slot
// between two live ones.  The clock runs for that last part only, ROUNDS
// times.  Good: no more than some times an allocation in fresh memory.  The
// checksum is of all objects after each round.
#include "harness.h"

enum { SIZE = 64, OBJECTS = 200000 / PEER_DIVISOR, ROUNDS = 20 };

struct table {
	uint64_t *object[OBJECTS];
};

PEER_INLINE void put(struct table *t, int i, bool scanned)
{
	uint64_t *p = scanned ? peer_alloc(SIZE) : peer_alloc_noscan(SIZE);

	*p = (uint64_t)i;
	HEAP_STORE(t, &t->object[i], p);
}

static void empty(struct table *t, int i)
{
	heap_free(t->object[i]);
	t->object[i] = NULL;
}

static void refill(struct table *t, bool scanned)
{
	for (int i = 0; scanned && i < OBJECTS; i += 2)
		put(t, i, true);
	for (int i = 0; !scanned && i < OBJECTS; i += 2)
		put(t, i, false);
}

static uint64_t round_run(struct table *t, bool scanned, struct peer_time *time)
{
	uint64_t sum = 0;

	for (int i = 0; i < OBJECTS; i++)
		put(t, i, scanned);
	for (int i = 0; i < OBJECTS; i += 2)
		empty(t, i);
	heap_collect();
	peer_start(time);
	refill(t, scanned);
	peer_stop(time);
	for (int i = 0; i < OBJECTS; i++) {
		sum = sum * 31 + *t->object[i];
		empty(t, i);
	}
	return sum;
}

int main(int argc, char **argv)
{
	bool scanned = !strcmp(peer_word(argc, argv, 1), "scan");
	struct peer_time time = {0};
	struct table *t;
	uint64_t sum = 0;

	heap_begin();
	t = peer_alloc(sizeof *t);
	for (int i = 0; i < ROUNDS; i++)
		sum += round_run(t, scanned, &time);
	peer_keep(t);
	peer_report(time.wall * 1e9 / (ROUNDS * OBJECTS / 2), "ns", &time, sum);
	return 0;
}
