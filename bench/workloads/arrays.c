// arrays.c - nanoseconds for each KiB of big arrays of pointers.
//
// usage: arrays KIB
//
// 64 arrays of 8 KiB to KIB live.  One after another, at random, is replaced by
// a new one of random size.  Every 64th word of it gets a new leaf of 16 bytes,
// and every other word the last leaf again.  1 GiB is allocated in all.  The
// checksum is of the dying arrays' ends.
#include "harness.h"

enum { PLACES = 64, LEAST = 8, TOTAL = (1 << 20) / PEER_DIVISOR }; // KiB

struct array {
	uint64_t n; // words
	uint64_t **word;
};

static void array_fill(struct array *a, uint64_t number)
{
	uint64_t *leaf = NULL;

	for (uint64_t i = 0; i < a->n; i++) {
		if (i % 64 == 0) {
			leaf = peer_alloc_noscan(2 * sizeof *leaf);
			leaf[0] = number + i;
		}
		HEAP_STORE(a->word, &a->word[i], leaf);
	}
}

static uint64_t array_drop(struct array *a)
{
	uint64_t sum = 0;

	if (!a->word)
		return 0;
	sum = *a->word[0] ^ *a->word[a->n - 1];
	for (uint64_t i = 0; HEAP_FREES && i < a->n; i += 64)
		heap_free(a->word[i]);
	heap_free(a->word);
	return sum;
}

int main(int argc, char **argv)
{
	static const uint64_t bounds[2] = {LEAST, 1 << 20};
	uint64_t most = peer_number(argc, argv, 1, bounds);
	struct array place[PLACES] = {{0}};
	uint64_t seed = 1, sum = 0, done = 0;
	struct peer_time t = {0};

	heap_begin();
	peer_start(&t);
	for (uint64_t i = 0; done < TOTAL; i++) {
		struct array *a = &place[peer_below(&seed, PLACES)];
		uint64_t kib = LEAST + peer_below(&seed, most - LEAST + 1);

		sum = sum * 31 + array_drop(a);
		a->word = NULL;
		a->n = kib * 1024 / sizeof *a->word;
		a->word = peer_alloc(kib * 1024);
		array_fill(a, i);
		done += kib;
		peer_keep(place);
	}
	peer_stop(&t);
	peer_report(t.wall * 1e9 / (double)done, "ns", &t, sum);
	return 0;
}
