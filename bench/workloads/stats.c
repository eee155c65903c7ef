// stats.c - microseconds to read the statistics of a heap with 10 MB live.
//
// usage: stats exact|live|cached|exact-alloc|live-alloc THREADS
//
// exact: of one moment, for which the world may have to stand still; live:
// all that the heap counts, without stopping anything.  THREADS other threads
// run and poll meanwhile.  Before each exact sample the reader waits until all
// of them have run since the last, so that none stands already; where they
// are more than the processors, the stop waits until each had its turn.
//
// exact-alloc, live-alloc: the same, but the others allocate objects of 64
// bytes as fast as they can, and collections come.
//
// cached: exact, while the THREADS others stand, each with an object newly
// allocated in each of 20 sizes, so that each one's cache holds 20 spans.
//
// The value is the median of the reads, and a figure is what nine of ten do not
// exceed; live reads are so short that each
// sample is the mean of 16.  Where the heap says how long a stop took, every
// second sample of the exact ones is of that, and the figures are the medians
// of how long the world took to stand, and stood.  The checksum is how many
// samples found the objects that live.
#include "harness.h"

#include <sched.h>
#include <stdatomic.h>

enum {
	SAMPLES = 2000, // at most
	BATCH = 16,
	CELLS = 10000000 / 32,
	SPANS = 20,
	GROUP = 16 // objects that are allocated from lap to lap
};

struct cell {
	struct cell *next;
	uint64_t words[3];
};

enum mode { EXACT, LIVE, CACHED };

// How often a thread that runs has polled, and had when the reader began to
// wait for it.
struct lap {
	_Alignas(64) atomic_ulong n;
	unsigned long seen;
};

struct job {
	enum mode mode;
	bool allocate; // the others do
	int samples, others;
	int nreads, nstops;
	double read[SAMPLES], stopping[SAMPLES], stopped[SAMPLES]; // us
	uint64_t found;
	struct lap lap[PEER_THREADS];
	atomic_int ready; // others that stand, in all rounds
	pthread_barrier_t next;
	atomic_bool done;
};

// ---- One sample ----

static uint64_t bytes_exact(void)
{
#ifdef HEAP_HAS_EXACT
	return heap_stats_exact();
#else
	peer_die("has no exact statistics");
#endif
}

// stop_times takes the times of one stop, if the heap knows them.
static bool stop_times(struct job *job)
{
#ifdef HEAP_HAS_STOP
	double us[2];

	job->found += heap_stats_stop(us) >= CELLS * sizeof(struct cell);
	job->stopping[job->nstops] = us[0];
	job->stopped[job->nstops++] = us[1];
	return true;
#else
	(void)job;
	return false;
#endif
}

static void read_time(struct job *job)
{
	int batch = job->mode == LIVE ? BATCH : 1;
	double began = peer_clock(CLOCK_MONOTONIC);
	uint64_t bytes = 0;

	for (int i = 0; i < batch; i++)
		bytes = job->mode == LIVE ? heap_stats_live() : bytes_exact();
	job->read[job->nreads++] =
	    (peer_clock(CLOCK_MONOTONIC) - began) * 1e6 / batch;
	job->found += bytes >= CELLS * sizeof(struct cell);
}

static void sample(struct job *job, int i)
{
	if (job->mode == LIVE || i % 2 == 0 || !stop_times(job))
		read_time(job);
}

// ---- The others ----

// A function by itself, so that its objects are dead when it has returned.
static __attribute__((noinline)) void fill_cache(void)
{
	static const size_t size[SPANS] = {16,	32,  48,  64,  80,  96,	 112,
					   128, 144, 160, 176, 192, 208, 224,
					   240, 256, 288, 320, 352, 384};

	for (int i = 0; i < SPANS; i++)
		peer_keep(peer_alloc(size[i]));
}

static void stand_with_cache(struct job *job)
{
	for (int i = 0; i < job->samples; i++) {
		fill_cache();
		heap_block();
		atomic_fetch_add(&job->ready, 1);
		pthread_barrier_wait(&job->next);
		heap_unblock();
	}
}

static void allocate_some(void)
{
	for (int i = 0; i < GROUP; i++)
		peer_keep(peer_alloc(64));
}

static void run_and_poll(struct job *job, int who)
{
	while (!atomic_load_explicit(&job->done, memory_order_relaxed)) {
		if (job->allocate)
			allocate_some();
		else
			heap_poll();
		atomic_fetch_add_explicit(&job->lap[who].n, 1,
					  memory_order_relaxed);
	}
}

// ---- Both ----

// others_run returns when each of the others has begun a lap and ended it;
// others_stand when all stand, with caches filled for sample i.
static void others_run(struct job *job)
{
	for (int i = 1; i <= job->others; i++)
		job->lap[i].seen = atomic_load(&job->lap[i].n);
	for (int i = 1; i <= job->others; i++)
		while (atomic_load(&job->lap[i].n) - job->lap[i].seen < 2) {
			heap_poll();
			sched_yield();
		}
}

static void others_stand(struct job *job, int i)
{
	while (atomic_load(&job->ready) < (i + 1) * job->others) {
		heap_poll();
		sched_yield();
	}
}

static void read_often(struct job *job)
{
	for (int i = 0; i < job->samples; i++) {
		if (job->mode == CACHED)
			others_stand(job, i);
		else if (job->mode == EXACT)
			others_run(job);
		sample(job, i);
		if (job->mode == CACHED)
			peer_wait(&job->next);
	}
	atomic_store(&job->done, true);
}

// Thread 0 reads.
static void work(int who, void *arg)
{
	struct job *job = arg;

	if (who == 0)
		read_often(job);
	else if (job->mode == CACHED)
		stand_with_cache(job);
	else
		run_and_poll(job, who);
}

// samples_of is such that no heap needs more than some seconds: the reader
// waits long for its turn, and for that of the others.
static int samples_of(enum mode mode, int others)
{
	if (others == 0 || (mode == LIVE && others <= 2))
		return SAMPLES;
	return others <= 2 ? 100 : others <= 16 ? 20 : 10;
}

static enum mode mode_of(const char *name)
{
	if (!strncmp(name, "exact", 5))
		return EXACT;
	if (!strncmp(name, "live", 4))
		return LIVE;
	if (!strcmp(name, "cached"))
		return CACHED;
	peer_die("exact, live or cached is wanted");
}

static void report(struct job *job, const struct peer_time *t)
{
	double median;

	if (job->nstops) {
		peer_figure("stopping_us",
			    peer_median(job->stopping, (size_t)job->nstops));
		peer_figure("stopped_us",
			    peer_median(job->stopped, (size_t)job->nstops));
	}
	median = peer_median(job->read, (size_t)job->nreads);
	peer_figure("p90_us", job->read[job->nreads * 9 / 10]);
	peer_report(median, "us", t, job->found);
}

int main(int argc, char **argv)
{
	static const uint64_t threads[2] = {0, PEER_THREADS - 1};
	static struct job job;
	struct cell *first = NULL;
	struct peer_time t = {0};

	job.mode = mode_of(peer_word(argc, argv, 1));
	job.allocate = strstr(peer_word(argc, argv, 1), "-alloc");
	job.others = (int)peer_number(argc, argv, 2, threads);
	job.samples = samples_of(job.mode, job.others);
	pthread_barrier_init(&job.next, NULL, (unsigned)job.others + 1);
	heap_begin();
	for (int i = 0; i < CELLS; i++) {
		struct cell *c = peer_alloc(sizeof *c);

		c->next = first;
		first = c;
	}
	peer_together(job.others + 1, work, &job, &t);
	peer_keep(first);
	report(&job, &t);
	return 0;
}
