// hash.c - nanoseconds for an operation on a hash table like an interpreter's
// dictionary.
//
// usage: hash KEYS
//
// A chain has entries of 32 bytes, each with a number in an object of its own,
// of 16 bytes.  The array of chains doubles when there are more entries than
// chains.  An operation looks for a random key below twice KEYS.  A missing key
// is added; one that is found gets a new number or, half the time, is removed.
// The checksum covers the numbers found.
#include "harness.h"

enum { OPERATIONS = 4000000 / PEER_DIVISOR, LEAST_LOG2 = 4 };

struct entry {
	struct entry *next;
	uint64_t key;
	uint64_t *number;
	uint64_t spare;
};

struct table {
	struct entry **chain;
	unsigned log2; // of the number of chains
	uint64_t n;    // entries
};

static struct entry **chain_of(const struct table *t, uint64_t key)
{
	return &t->chain[key * UINT64_C(0x9e3779b97f4a7c15) >> (64 - t->log2)];
}

static struct entry **chains_make(unsigned log2)
{
	return peer_alloc(sizeof(struct entry *) << log2);
}

static void table_grow(struct table *t)
{
	struct entry **old = t->chain;
	size_t n = (size_t)1 << t->log2;

	t->chain = chains_make(++t->log2);
	for (size_t i = 0; i < n; i++) {
		struct entry *e = old[i], *next;

		for (; e; e = next) {
			struct entry **first = chain_of(t, e->key);

			next = e->next;
			HEAP_STORE(e, &e->next, *first);
			HEAP_STORE(t->chain, first, e);
		}
	}
	heap_free(old);
}

static uint64_t *number_make(uint64_t n)
{
	uint64_t *number = peer_alloc_noscan(2 * sizeof *number);

	number[0] = n;
	return number;
}

static void table_insert(struct table *t, uint64_t key, uint64_t n)
{
	struct entry *e, **first;

	if (t->n >> t->log2)
		table_grow(t);
	e = peer_alloc(sizeof *e);
	first = chain_of(t, key);
	e->key = key;
	HEAP_STORE(e, &e->number, number_make(n));
	HEAP_STORE(e, &e->next, *first);
	HEAP_STORE(t->chain, first, e);
	t->n++;
}

// table_remove removes the entry that *place points to.  before is the object
// that contains place.
static void table_remove(struct table *t, void *before, struct entry **place)
{
	struct entry *e = *place;

	HEAP_STORE(before, place, e->next);
	heap_free(e->number);
	heap_free(e);
	t->n--;
}

// table_meet does one operation and returns the number that it found, or 0.
static uint64_t table_meet(struct table *t, uint64_t key, uint64_t r)
{
	struct entry **place = chain_of(t, key);
	void *before = t->chain;
	uint64_t found;

	for (; *place && (*place)->key != key; place = &(*place)->next)
		before = *place;
	if (!*place) {
		table_insert(t, key, r);
		return 0;
	}
	found = *(*place)->number;
	if (r & 1) {
		table_remove(t, before, place);
		return found;
	}
	heap_free((*place)->number);
	HEAP_STORE(*place, &(*place)->number, number_make(r));
	return found;
}

int main(int argc, char **argv)
{
	static const uint64_t bounds[2] = {16, 1 << 28};
	uint64_t keys = 2 * peer_number(argc, argv, 1, bounds);
	struct table table = {.log2 = LEAST_LOG2};
	struct peer_time t = {0};
	uint64_t seed = 1, sum = 0;

	heap_begin();
	table.chain = chains_make(LEAST_LOG2);
	peer_start(&t);
	for (int i = 0; i < OPERATIONS; i++) {
		uint64_t key = peer_below(&seed, keys);

		sum = sum * 31 + table_meet(&table, key, peer_random(&seed));
	}
	peer_stop(&t);
	peer_keep(&table);
	peer_report(t.wall * 1e9 / OPERATIONS, "ns", &t, sum + table.n);
	return 0;
}
