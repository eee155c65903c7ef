// mix.c - seconds for objects of many types and sizes that replace each other.
//
// usage: mix ROUNDS
//
// 4096 places hold an object each.  In a round 20000 of them, at random, get
// another object.  Of 100 objects, 62 are lists of one to eight nodes of 32
// bytes, and 30 are strings of up to 200 bytes.  Another 6 are arrays of up to
// 8 KiB, and 2 are buffers of 40 to 200 KiB.  Most programs have far fewer such
// buffers.  All objects but nodes are written as a whole.
//
// hardening.sh runs this with every level of protection; some of them guard
// large objects.  Good: no more than clearing takes, and below twice the memory
// that lives.  The checksum is of the objects that were replaced.
#include "harness.h"

enum { PLACES = 4096, REPLACED = 20000 };

struct node {
	struct node *next;
	uint64_t spare[3];
};

// At most one of the two is set.
struct place {
	struct node *list;
	unsigned char *block;
};

static uint64_t between(uint64_t *seed, uint64_t lo, uint64_t hi)
{
	return lo + peer_below(seed, hi - lo + 1);
}

static uint64_t place_empty(struct place *p)
{
	uint64_t sum = p->block ? *p->block : 0;

	heap_free(p->block);
	for (struct node *n = p->list, *next; n; n = next) {
		next = n->next;
		sum += n->spare[0];
		heap_free(n);
	}
	p->block = NULL;
	p->list = NULL;
	return sum;
}

static struct node *list_make(uint64_t nodes)
{
	struct node *list = NULL;

	while (nodes > 0) {
		struct node *n = peer_alloc(sizeof *n);

		n->next = list;
		n->spare[0] = nodes--;
		list = n;
	}
	return list;
}

static unsigned char *block_make(uint64_t *seed, uint64_t which)
{
	uint64_t n = which < 92	  ? between(seed, 1, 200)
		     : which < 98 ? between(seed, 256, 8 << 10)
				  : between(seed, 40 << 10, 200 << 10);

	return memset(which < 92 ? peer_alloc_noscan(n) : peer_alloc(n), n % 8,
		      n);
}

static uint64_t replace(struct place *places, uint64_t *seed)
{
	struct place *p = &places[peer_below(seed, PLACES)];
	uint64_t which = peer_below(seed, 100), sum = place_empty(p);

	if (which < 62)
		HEAP_STORE(places, &p->list, list_make(between(seed, 1, 8)));
	else
		HEAP_STORE(places, &p->block, block_make(seed, which));
	return sum;
}

int main(int argc, char **argv)
{
	static const uint64_t bounds[2] = {1, 1000000};
	uint64_t rounds = peer_number(argc, argv, 1, bounds), seed = 1, sum = 0;
	struct peer_time t = {0};
	struct place *places;

	heap_begin();
	places = peer_alloc(PLACES * sizeof *places);
	peer_start(&t);
	for (uint64_t i = 0; i < rounds * REPLACED; i++)
		sum += replace(places, &seed);
	peer_stop(&t);
	peer_keep(places);
	peer_report(t.wall, "s", &t, sum);
	return 0;
}
