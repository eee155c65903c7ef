// larson.c - after Larson and Krishnan: threads replace objects of random size
// at random places of an array, and pass the array on after each round.
//
// usage: larson THREADS
//
// So objects die in an order that nobody planned, and where memory is freed,
// by another thread than the one that allocated them.  16 to 264 bytes,
// zeroed, sizes known at run time only.  The value is operations of all
// threads; the checksum is of what the dying objects held.
#include "harness.h"

enum { SLOTS = 1000, ROUNDS = 10, OPERATIONS = 6000000 };

// An array with its own random numbers, so that it does not matter which
// thread has it.
struct table {
	uint64_t *slot[SLOTS];
	uint64_t seed, sum;
};

struct job {
	int threads;
	struct table *table[PEER_THREADS];
	pthread_barrier_t round;
};

static void table_churn(struct table *t, int n)
{
	uint64_t seed = t->seed, sum = t->sum;

	for (int i = 0; i < n; i++) {
		uint64_t r = peer_random(&seed);
		uint64_t **slot = &t->slot[(r >> 32) * SLOTS >> 32];
		uint64_t *p = peer_alloc(16 + 8 * (r % 32));

		if (*slot) {
			sum += **slot;
			heap_free(*slot);
		}
		*p = r;
		*slot = p;
	}
	t->seed = seed;
	t->sum = sum;
}

static void work(int who, void *arg)
{
	struct job *job = arg;

	for (int round = 0; round < ROUNDS; round++) {
		int i = (who + round) % job->threads;

		table_churn(job->table[i], OPERATIONS / ROUNDS / job->threads);
		if (job->threads > 1)
			peer_wait(&job->round);
	}
}

int main(int argc, char **argv)
{
	static const uint64_t threads[2] = {1, 8};
	struct job job = {.threads = (int)peer_number(argc, argv, 1, threads)};
	struct peer_time t = {0};
	uint64_t sum = 0;

	heap_begin();
	pthread_barrier_init(&job.round, NULL, (unsigned)job.threads);
	for (int i = 0; i < job.threads; i++) {
		job.table[i] = peer_alloc(sizeof(struct table));
		job.table[i]->seed = (uint64_t)i;
	}
	peer_together(job.threads, work, &job, &t);
	for (int i = 0; i < job.threads; i++)
		sum += job.table[i]->sum;
	peer_keep(&job);
	peer_report(OPERATIONS / t.wall / 1e6, "Mops", &t, sum);
	return 0;
}
