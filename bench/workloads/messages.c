// messages.c - how long it takes to replace a message in a table; messages are
// replaced one after another, at random.
//
// usage: messages COUNT 256|1024
//
// A replacement reads the old message's number, allocates a message without
// pointers, writes all of it and stores it in the table.  The clock is read
// once between two replacements.  The value is the mean.  The figures are what
// a user feels, which is more than the pauses that a collector records: the
// longest time, and times pN_us that N percent of replacements do not exceed.
// They are in microseconds, exact to 1/64.  The checksum covers the numbers
// that died.
#include "latency.h"

enum { OPERATIONS = 2000000 / PEER_DIVISOR };

// The contents of a message, except the number that it begins with.
static const uint64_t text[128] = {1, 2, 3};

PEER_INLINE uint64_t *message_make(size_t size, uint64_t number)
{
	uint64_t *m = peer_alloc_noscan(size);

	memcpy(m, text, size);
	m[0] = number;
	return m;
}

PEER_INLINE uint64_t replace_all(uint64_t **table, uint64_t count, size_t size,
				 struct latency *l)
{
	uint64_t seed = 1, sum = 0, began = latency_now();

	for (uint64_t i = 0; i < OPERATIONS; i++) {
		uint64_t **place = &table[peer_below(&seed, count)];
		uint64_t *old = *place, ended;

		sum = sum * 31 + old[0];
		*place = NULL;
		heap_free(old);
		HEAP_STORE(table, place, message_make(size, count + i));
		ended = latency_now();
		latency_add(l, ended - began);
		began = ended;
	}
	return sum;
}

// The size is a constant at each call of run.
PEER_INLINE uint64_t run(uint64_t **table, uint64_t count, size_t size,
			 struct latency *l, struct peer_time *t)
{
	uint64_t sum;

	for (uint64_t i = 0; i < count; i++)
		HEAP_STORE(table, &table[i], message_make(size, i));
	peer_start(t);
	sum = replace_all(table, count, size, l);
	peer_stop(t);
	return sum;
}

int main(int argc, char **argv)
{
	static const uint64_t counts[2] = {1, 100000000},
			      sizes[2] = {256, 1024};
	static struct latency latency;
	uint64_t count = peer_number(argc, argv, 1, counts);
	uint64_t size = peer_number(argc, argv, 2, sizes);
	struct peer_time t = {0};
	uint64_t **table, sum;

	heap_begin();
	table = peer_alloc(count * sizeof *table);
	if (size == 256)
		sum = run(table, count, 256, &latency, &t);
	else if (size == 1024)
		sum = run(table, count, 1024, &latency, &t);
	else
		peer_die("no such size");
	peer_keep(table);
	latency_report(&latency, OPERATIONS);
	peer_report(t.wall * 1e9 / OPERATIONS, "ns", &t, sum);
	return 0;
}
