// stats.c - microseconds to read the statistics of a heap with 10 MB live.
//
// usage: stats exact|live THREADS
//
// exact: of one moment, for which the world may have to stand still; live:
// all that the heap counts, without stopping anything.  THREADS other threads
// run and poll meanwhile.  The value is the median of 2000 reads; live reads
// are so short that each sample is the mean of 16.  The checksum is how many
// reads found the objects that live.
#include "peer.h"

#include <stdatomic.h>

enum {
	SAMPLES = 2000,
	BATCH = 16,
	CELLS = 10000000 / 32,
	APART_NS = 20000 // between reads, so that stopped threads run again
};

struct cell {
	struct cell *next;
	uint64_t words[3];
};

struct job {
	bool exact;
	int batch;
	double sample[SAMPLES];
	uint64_t found;
	atomic_bool done;
};

static uint64_t read_bytes(bool exact)
{
#ifdef HEAP_HAS_EXACT
	if (exact)
		return heap_stats_exact();
#endif
	if (exact)
		peer_die("has no exact statistics");
	return heap_stats_live();
}

static void apart(void)
{
	double until = peer_clock(CLOCK_MONOTONIC) + APART_NS * 1e-9;

	while (peer_clock(CLOCK_MONOTONIC) < until)
		heap_poll();
}

static void read_often(struct job *job)
{
	for (int i = 0; i < SAMPLES; i++) {
		struct peer_time t = {0};

		apart();
		t.wall = -peer_clock(CLOCK_MONOTONIC);
		for (int k = 0; k < job->batch; k++)
			job->found += read_bytes(job->exact) >=
				      CELLS * sizeof(struct cell);
		t.wall += peer_clock(CLOCK_MONOTONIC);
		job->sample[i] = t.wall * 1e6 / job->batch;
	}
	atomic_store(&job->done, true);
}

// Thread 0 reads, the others run.
static void work(int who, void *arg)
{
	struct job *job = arg;

	if (who == 0)
		read_often(job);
	while (!atomic_load_explicit(&job->done, memory_order_relaxed))
		heap_poll();
}

int main(int argc, char **argv)
{
	static const uint64_t threads[2] = {0, PEER_THREADS - 1};
	static struct job job;
	int others = (int)peer_number(argc, argv, 2, threads);
	struct cell *first = NULL;
	struct peer_time t = {0};

	job.exact = !strcmp(peer_word(argc, argv, 1), "exact");
	job.batch = job.exact ? 1 : BATCH;
	heap_begin();
	for (int i = 0; i < CELLS; i++) {
		struct cell *c = peer_alloc(sizeof *c);

		c->next = first;
		first = c;
	}
	peer_together(others + 1, work, &job, &t);
	peer_keep(first);
	peer_report(peer_median(job.sample, SAMPLES), "us", &t, job.found);
	return 0;
}
