// stats.c - microseconds to read the statistics of a heap.
//
// usage: stats WHAT[-alloc|-sweep|-wait] THREADS [MB]
//
// The heap has MB (by default 10) of live cells of 32 bytes.  WHAT is
//
// exact: statistics of one moment, for which the world may have to stop;
// live: all that the heap counts, without stopping any thread;
// metrics: every metric that has a name, read without a stop;
// history: the pauses of the last collections;
// collect: a full collection instead of a read;
// cached: exact, see below.
//
// THREADS other threads run and poll meanwhile.  Before each sample that stops
// the world the reader sleeps until all of them have run since the last sample,
// so that none has stopped already.  If they are more than the processors, the
// stop waits until each has had its turn.  With -alloc, the others allocate
// objects of 64 bytes as fast as they can, so the heap collects.  With -sweep
// they do the same, the heap always sweeps beside them, and the reader waits
// for a sweep that has not ended before each sample.  With -wait, they wait in
// a blocking region.
//
// Good: a live read takes less than 1 us and an exact one some us, and neither
// grows with MB.  An exact read beside threads that wait or run takes as long
// as the machine needs to stop them, and the world stays stopped for some us.
//
// With cached, the reads are exact, while the THREADS others wait.  Each has a
// newly allocated object in each of 20 sizes, so that its cache holds 20 spans.
//
// The value is the median of the reads, and a figure is the time that nine of
// ten do not exceed.  Reads that stop no thread are so short that each sample
// is the mean of 16.  Beside threads that run, every third sample is the time
// that the machine needs for a stop without any heap: a flag tells the others
// to stop, and each that continues wakes the next.  machine_us is the median of
// these, machine_p90_us the time that nine of ten do not exceed.
//
// If no other thread runs, cpu_us is the median of the processor time that the
// process takes for a collection.  beyond_us and beyond_cpu_us are the time of
// a collection's stop without marking, if the heap tells; the second one only
// if anything lives.  unswept_percent is the percentage of the reads with
// -sweep that began before the sweep had ended.
//
// If the heap reports the times of a stop, another third of the exact samples
// takes these.  Their figures are the medians of how long the world took to
// stop, and how long it stayed stopped.  The checksum is how many samples of
// the heap found the live objects.
#include "harness.h"

#include <sched.h>
#include <stdatomic.h>

enum {
	SAMPLES = 2000, // at most
	BATCH = 16,
	SPANS = 20,
	GROUP = 16,  // objects that are allocated from lap to lap
	NAPS = 1000, // at most, until a sweep is found
};

struct cell {
	struct cell *next;
	uint64_t words[3];
};

enum mode { EXACT, CACHED, COLLECT, LIVE, METRICS, HISTORY };

static bool stops(enum mode mode)
{
	return mode <= COLLECT;
}

// How often a running thread has polled: now, and when the reader began to wait
// for it.
struct lap {
	_Alignas(64) atomic_ulong n;
	unsigned long seen;
};

struct job {
	enum mode mode;
	bool allocate, wait; // the others do
	bool sweep;	     // the reader waits for a sweep
	uint64_t live;	     // bytes of cells
	int samples, others;
	int nreads, nstops, nbare;
	double read[SAMPLES], stopping[SAMPLES], stopped[SAMPLES]; // us
	double bare[SAMPLES];
	double cpu[SAMPLES], beyond[SAMPLES], beyond_cpu[SAMPLES]; // us
	int nunswept;
	uint64_t found;
	struct lap lap[PEER_THREADS];
	atomic_int ready; // others that wait, in all rounds
	pthread_barrier_t next;
	atomic_bool done;
};

// ---- A stop without a heap ----

static struct {
	atomic_bool asked;
	pthread_mutex_t lock;
	pthread_cond_t all_stand, go_on;
	int stopped;
} bare = {.lock = PTHREAD_MUTEX_INITIALIZER,
	  .all_stand = PTHREAD_COND_INITIALIZER,
	  .go_on = PTHREAD_COND_INITIALIZER};

static void bare_stand(const struct job *job)
{
	heap_block();
	pthread_mutex_lock(&bare.lock);
	if (++bare.stopped == job->others)
		pthread_cond_signal(&bare.all_stand);
	while (atomic_load(&bare.asked))
		pthread_cond_wait(&bare.go_on, &bare.lock);
	if (--bare.stopped > 0)
		pthread_cond_signal(&bare.go_on);
	pthread_mutex_unlock(&bare.lock);
	heap_unblock();
}

static void bare_stop(struct job *job)
{
	double began = peer_clock(CLOCK_MONOTONIC);

	heap_block();
	pthread_mutex_lock(&bare.lock);
	atomic_store(&bare.asked, true);
	while (bare.stopped < job->others)
		pthread_cond_wait(&bare.all_stand, &bare.lock);
	atomic_store(&bare.asked, false);
	pthread_cond_signal(&bare.go_on);
	pthread_mutex_unlock(&bare.lock);
	heap_unblock();
	job->bare[job->nbare++] = (peer_clock(CLOCK_MONOTONIC) - began) * 1e6;
}

// nap sleeps for a millisecond.  A thread that gave its processor away instead
// would also lose its next turn.
static void nap(void)
{
	heap_block();
	nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	heap_unblock();
}

// bare_over waits until all others run again.
static void bare_over(void)
{
	bool over = false;

	while (!over) {
		nap();
		pthread_mutex_lock(&bare.lock);
		over = bare.stopped == 0;
		pthread_mutex_unlock(&bare.lock);
	}
}

// ---- One sample ----

static uint64_t bytes_exact(void)
{
#ifdef HEAP_HAS_EXACT
	return heap_stats_exact();
#else
	peer_die("has no exact statistics");
#endif
}

// bytes_named serves METRICS and HISTORY.  The latter has no bytes: it reports
// a huge number if it finds a collection.
static uint64_t bytes_named(enum mode mode)
{
#ifdef HEAP_HAS_HISTORY
	if (mode == METRICS)
		return heap_stats_metrics();
	return heap_stats_history() ? UINT64_MAX : 0;
#else
	(void)mode;
	peer_die("has no such statistics");
#endif
}

// stop_times records the times of one stop, if the heap knows them.
static bool stop_times(struct job *job)
{
#ifdef HEAP_HAS_STOP
	double us[2];

	job->found += heap_stats_stop(us) >= job->live;
	job->stopping[job->nstops] = us[0];
	job->stopped[job->nstops++] = us[1];
	return true;
#else
	(void)job;
	return false;
#endif
}

static uint64_t read_once(enum mode mode)
{
	if (mode == LIVE)
		return heap_stats_live();
	if (!stops(mode))
		return bytes_named(mode);
	if (mode != COLLECT)
		return bytes_exact();
	heap_collect();
	return UINT64_MAX;
}

// unswept tells whether the sweep of the last collection has not ended.
static bool unswept(void)
{
#ifdef HEAP_HAS_CYCLE
	return heap_unswept();
#else
	peer_die("does not tell whether it sweeps");
#endif
}

static void note_beyond(struct job *job)
{
#ifdef HEAP_HAS_CYCLE
	double us[2];

	heap_beyond(us);
	job->beyond[job->nreads] = us[0];
	job->beyond_cpu[job->nreads] = us[1];
#else
	(void)job;
#endif
}

static void read_time(struct job *job)
{
	int batch = stops(job->mode) ? 1 : BATCH;
	bool left = job->sweep && unswept();
	uint64_t bytes = 0;
	double cpu = peer_clock(CLOCK_PROCESS_CPUTIME_ID);
	double began = peer_clock(CLOCK_MONOTONIC), ended;

	for (int i = 0; i < batch; i++)
		bytes = read_once(job->mode);
	ended = peer_clock(CLOCK_MONOTONIC);
	cpu = peer_clock(CLOCK_PROCESS_CPUTIME_ID) - cpu;
	if (job->mode == COLLECT)
		note_beyond(job);
	job->nunswept += left;
	job->cpu[job->nreads] = cpu * 1e6 / batch;
	job->read[job->nreads++] = (ended - began) * 1e6 / batch;
	job->found += bytes >= job->live;
}

static void sample(struct job *job, int i)
{
	bool runs = job->mode == EXACT || job->mode == COLLECT;
	bool exact = job->mode == EXACT || job->mode == CACHED;

	if (runs && job->others && !job->wait && i % 3 == 1) {
		bare_stop(job);
		bare_over();
	} else if (!exact || i % 3 != 2 || !stop_times(job)) {
		read_time(job);
	}
}

// ---- The others ----

// This is a function by itself, so that its objects are dead when it has
// returned.
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
		if (atomic_load_explicit(&bare.asked, memory_order_relaxed))
			bare_stand(job);
		atomic_fetch_add_explicit(&job->lap[who].n, 1,
					  memory_order_relaxed);
	}
}

// ---- The reader and the others ----

// others_run returns when each of the others has begun a lap and ended it.
// others_stand returns when all wait, with caches filled for sample i.
static void others_run(struct job *job)
{
	for (int i = 1; i <= job->others; i++)
		job->lap[i].seen = atomic_load(&job->lap[i].n);
	for (int i = 1; i <= job->others; i++)
		while (atomic_load(&job->lap[i].n) - job->lap[i].seen < 2)
			nap();
}

// await_sweep returns when a sweep has not ended, or after a second or more.
static void await_sweep(void)
{
	for (int i = 0; i < NAPS && !unswept(); i++)
		nap();
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
		else if (stops(job->mode) && !job->wait)
			others_run(job);
		if (job->sweep)
			await_sweep();
		sample(job, i);
		if (job->mode == CACHED)
			peer_wait(&job->next);
	}
	atomic_store(&job->done, true);
	if (job->wait)
		peer_wait(&job->next);
}

// Thread 0 reads.
static void work(int who, void *arg)
{
	struct job *job = arg;

	if (who == 0)
		read_often(job);
	else if (job->mode == CACHED)
		stand_with_cache(job);
	else if (job->wait)
		peer_wait(&job->next);
	else
		run_and_poll(job, who);
}

// samples_of limits the samples so that no heap needs more than some seconds.
// The reader waits long for its own turn, and for the turns of the others.
static int samples_of(const struct job *job)
{
	int others = job->wait ? 0 : job->others;

	if (others == 0 || (!stops(job->mode) && others <= 2))
		return job->mode == COLLECT ? SAMPLES / 20 : SAMPLES;
	return others <= 2 ? 150 : others <= 16 ? 60 : 30;
}

static enum mode mode_of(const char *name)
{
	static const char *const names[] = {"exact", "cached",	"collect",
					    "live",  "metrics", "history"};

	for (enum mode mode = EXACT; mode <= HISTORY; mode++)
		if (!strncmp(name, names[mode], strcspn(name, "-")))
			return mode;
	peer_die("no such statistics");
}

static void report_collections(struct job *job)
{
	size_t n = (size_t)job->nreads;

	if (job->wait || job->others == 0)
		peer_figure("cpu_us", peer_median(job->cpu, n));
#ifdef HEAP_HAS_CYCLE
	peer_figure("beyond_us", peer_median(job->beyond, n));
	if (job->live != 0) // a small heap's marking has no CPU time
		peer_figure("beyond_cpu_us", peer_median(job->beyond_cpu, n));
#endif
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
	if (job->nbare) {
		peer_figure("machine_us",
			    peer_median(job->bare, (size_t)job->nbare));
		peer_figure("machine_p90_us", job->bare[job->nbare * 9 / 10]);
	}
	if (job->mode == COLLECT)
		report_collections(job);
	if (job->sweep)
		peer_figure("unswept_percent",
			    100.0 * job->nunswept / job->nreads);
	median = peer_median(job->read, (size_t)job->nreads);
	peer_figure("p90_us", job->read[job->nreads * 9 / 10]);
	peer_report(median, "us", t, job->found);
}

static struct cell *cells_make(uint64_t bytes)
{
	struct cell *first = NULL;

	for (uint64_t i = 0; i < bytes / sizeof *first; i++) {
		struct cell *c = peer_alloc(sizeof *c);

		c->next = first;
		first = c;
	}
	return first;
}

int main(int argc, char **argv)
{
	static const uint64_t threads[2] = {0, PEER_THREADS - 1};
	static const uint64_t megabytes[2] = {0, 100000};
	static struct job job;
	uint64_t mb = argc > 3 ? peer_number(argc, argv, 3, megabytes) : 10;
	struct peer_time t = {0};
	struct cell *first;

	job.mode = mode_of(peer_word(argc, argv, 1));
	job.sweep = strstr(argv[1], "-sweep");
	job.allocate = strstr(argv[1], "-alloc") || job.sweep;
	job.wait = strstr(argv[1], "-wait");
	job.live = mb * 1000000;
	job.others = (int)peer_number(argc, argv, 2, threads);
	job.samples = samples_of(&job);
	pthread_barrier_init(&job.next, NULL, (unsigned)job.others + 1);
	if (job.sweep)
		setenv("RTDEBUG", "sweep=2", 1);
	heap_begin();
	first = cells_make(job.live);
	peer_together(job.others + 1, work, &job, &t);
	peer_keep(first);
	report(&job, &t);
	return 0;
}
