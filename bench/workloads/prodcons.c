// prodcons.c - one thread makes messages, another reads and drops them.
//
// usage: prodcons
//
// Messages of 64 bytes go through a ring of 1024 places without a lock.  So
// where memory is freed, every free is by the other thread.  The value is
// messages; the checksum is of their contents in order.
#include "harness.h"

#include <sched.h>
#include <stdatomic.h>

enum { MESSAGES = 4000000 / PEER_DIVISOR, PLACES = 1024, SPINS = 1000 };

struct message {
	uint64_t number, words[7];
};

// The places are in the heap.  Each counter has a cache line of its own, which
// it shares with the variables that only its writer reads.
struct ring {
	struct message **place;
	_Alignas(128) atomic_ullong made;
	uint64_t taken_seen;
	_Alignas(128) atomic_ullong taken;
	uint64_t made_seen;
	_Alignas(128) uint64_t sum;
};

// moved waits until *counter is not old, and returns it.  The thread that it
// waits for may have no processor.
static uint64_t moved(atomic_ullong *counter, uint64_t old)
{
	for (int spins = 0;; spins++) {
		uint64_t now =
		    atomic_load_explicit(counter, memory_order_acquire);

		if (now != old)
			return now;
		heap_poll();
		if (spins % SPINS == SPINS - 1)
			sched_yield();
	}
}

static void produce(struct ring *r)
{
	for (uint64_t i = 0; i < MESSAGES; i++) {
		struct message *m = peer_alloc(sizeof *m);

		m->number = i;
		m->words[6] = i * i;
		if (i - r->taken_seen == PLACES)
			r->taken_seen = moved(&r->taken, r->taken_seen);
		HEAP_STORE(r->place, &r->place[i % PLACES], m);
		atomic_store_explicit(&r->made, i + 1, memory_order_release);
	}
}

static void consume(struct ring *r)
{
	uint64_t sum = 0;

	for (uint64_t i = 0; i < MESSAGES; i++) {
		struct message *m;

		if (i == r->made_seen)
			r->made_seen = moved(&r->made, i);
		m = r->place[i % PLACES];
		r->place[i % PLACES] = NULL;
		atomic_store_explicit(&r->taken, i + 1, memory_order_release);
		sum = sum * 31 + (m->number ^ m->words[6]) + m->words[3];
		heap_free(m);
	}
	r->sum = sum;
}

static void work(int who, void *arg)
{
	if (who == 0)
		produce(arg);
	else
		consume(arg);
}

int main(void)
{
	struct ring ring = {0};
	struct peer_time t = {0};

	heap_begin();
	ring.place = peer_alloc(PLACES * sizeof(struct message *));
	peer_together(2, work, &ring, &t);
	peer_keep(&ring);
	peer_report(MESSAGES / t.wall / 1e6, "Mops", &t, ring.sum);
	return 0;
}
