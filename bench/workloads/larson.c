// larson.c - after Larson and Krishnan: threads replace objects of random size
// at random places of an array, and pass the array on after each round.
//
// usage: larson THREADS SLOTS LEAST MOST
//
// So objects die in an order that no program planned.  Where memory is freed,
// the thread that frees it is not the one that allocated it.  An array has
// SLOTS places; objects have LEAST to MOST bytes, in steps of 8, zeroed, and
// their sizes are known at run time only.  The value is operations of all
// threads; the checksum is of the dying objects' contents.
#include "harness.h"

enum { ROUNDS = 10, OPERATIONS = 6000000 / PEER_DIVISOR };

// An array has its own random numbers, so the result does not depend on which
// thread has the array.
struct table {
	uint64_t seed, sum;
	uint64_t *slot[];
};

struct job {
	int threads;
	uint64_t slots, least, steps;
	struct table *table[PEER_THREADS];
	pthread_barrier_t round;
};

static void table_churn(struct table *t, const struct job *job, int n)
{
	uint64_t seed = t->seed, sum = t->sum;
	uint64_t slots = job->slots, least = job->least, steps = job->steps;

	for (int i = 0; i < n; i++) {
		uint64_t r = peer_random(&seed);
		uint64_t **slot = &t->slot[(r >> 32) * slots >> 32];
		uint64_t *p =
		    peer_alloc(least + 8 * ((r & 0xffff) * steps >> 16));

		if (*slot) {
			sum += **slot;
			heap_free(*slot);
		}
		*p = r;
		HEAP_STORE(t, slot, p);
	}
	t->seed = seed;
	t->sum = sum;
}

static void work(int who, void *arg)
{
	struct job *job = arg;

	for (int round = 0; round < ROUNDS; round++) {
		int i = (who + round) % job->threads;

		table_churn(job->table[i], job,
			    OPERATIONS / ROUNDS / job->threads);
		if (job->threads > 1)
			peer_wait(&job->round);
	}
}

int main(int argc, char **argv)
{
	static const uint64_t threads[2] = {1, 16}, slots[2] = {1, 1 << 24},
			      bytes[2] = {16, 4096};
	struct job job = {.threads = (int)peer_number(argc, argv, 1, threads),
			  .slots = peer_number(argc, argv, 2, slots),
			  .least = peer_number(argc, argv, 3, bytes)};
	uint64_t most = peer_number(argc, argv, 4, bytes);
	struct peer_time t = {0};
	uint64_t sum = 0;

	if (most < job.least)
		peer_die("the most is less than the least");
	job.steps = (most - job.least) / 8 + 1;
	heap_begin();
	pthread_barrier_init(&job.round, NULL, (unsigned)job.threads);
	for (int i = 0; i < job.threads; i++) {
		job.table[i] = peer_alloc(sizeof(struct table) +
					  job.slots * sizeof(uint64_t *));
		job.table[i]->seed = (uint64_t)i;
	}
	peer_together(job.threads, work, &job, &t);
	for (int i = 0; i < job.threads; i++)
		sum += job.table[i]->sum;
	peer_keep(&job);
	peer_report(OPERATIONS / t.wall / 1e6, "Mops", &t, sum);
	return 0;
}
