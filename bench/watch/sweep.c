// sweep.c - what a setting of sweep costs: pauses, CPU time, and the longest
// allocations.
//
// usage: sweep MIB mixed|messages|churn wall|cpu
//
// A table of MIB of objects is filled.  Then its entries are replaced at
// random, first for its volume, and then for twice its volume and at least 2
// GiB.  mixed are objects of 16 to 2048 bytes, half of them scanned; messages
// are pointer-free objects of 1 KiB.  With churn the table is filled with
// messages as well, but all of them live on.  Instead, 64 objects of 2 KiB are
// replaced.  A thread that sweeps the lowest chunks then finds little there
// that is free.  Every byte is written.  The clock is read between two
// replacements: the time, or the CPU time of the thread, which does not count
// the time that others have the processor.
//
// The value is the mean of a replacement in ns of CPU time of the process.  The
// figures are:
//
// - collections; the median and the longest pause, and the median of its sweep
// - shares of CPU time in percent: of sweeping in the stops (by the thread that
//   collects); of sweeping beside the threads, by all of them; and of the
//   background thread, whatever it does
// - the time that all but one in ten thousand replacements do not exceed, and
//   the longest, less the pauses in them: cold, from the first allocation until
//   as much was replaced as lives, and warm, after that
// - after: the longest of the thousand replacements from the one in which a
//   collection ends, less its pause; the median of all collections
//
// Good: no more CPU time than with sweep 0, with at most 3 percent of it for
// sweeping beside the threads.  At most 200 us for all but one in ten thousand.
// After a collection no more than a chunk takes, some ten us.
#include "watch.h"

#include "latency.h"

#include <dirent.h>

enum { LEAST = 16, MEAN = 1032, MESSAGE = 1024, TURNOVERS = 2 };
enum { AFTER = 1000, CHURNED = 64, CHURN = 2048 };

// The least bytes to replace; a look at the pauses pays from so many ns on.
enum { WORTH_NS = 4000, CYCLES = 256 };
#define LEAST_BYTES ((UINT64_C(2) << 30) / PEER_DIVISOR)

struct entry {
	uint8_t *bytes;
	uint64_t size;
};

struct run {
	struct entry *entry;
	size_t n;
	uint64_t seed, sum;
	clockid_t clock;
	bool messages;
	struct entry *churned;		     // CHURNED entries, or NULL
	uint64_t paused;		     // ns so far
	double pause[CYCLES], swept[CYCLES]; // ms
	double sweep_s;			     // CPU seconds in stops
	size_t npauses;
	double after[CYCLES], longest; // us; longest so far after the last
	size_t nafter, left;	       // replacements that are left of these
	uint64_t cycles;	       // whose record was read
};

static uint64_t now_ns(const struct run *r)
{
	struct timespec t;

	clock_gettime(r->clock, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

// read_cycles reads the records of new collections.  Returns the sum of their
// pauses.
static uint64_t read_cycles(struct run *r)
{
	uint64_t sum = 0;
	rt_cycle c;

	while (rt_read_cycle(r->cycles + 1, &c) == 0) {
		// Without helpers, all of this is the caller's time.
		sum +=
		    r->clock == CLOCK_MONOTONIC ? c.pause_ns : c.process_cpu_ns;
		r->cycles = c.number;
		r->sweep_s += (double)c.sweep_cpu_ns * 1e-9;
		if (r->npauses == CYCLES)
			continue;
		r->pause[r->npauses] = (double)c.pause_ns * 1e-6;
		r->swept[r->npauses++] = (double)c.sweep_ns * 1e-6;
	}
	return sum;
}

// size_of returns the size of an entry's next object.
static size_t size_of(const struct run *r, const struct entry *e, uint64_t bits)
{
	if (r->churned && e >= r->churned && e < r->churned + CHURNED)
		return CHURN;
	return r->messages ? MESSAGE : LEAST + 8 * ((bits >> 8) % 255);
}

static void entry_fill(struct run *r, struct entry *e)
{
	uint64_t bits = peer_random(&r->seed);
	size_t size = size_of(r, e, bits);
	uint8_t *p = !r->messages && (bits & 128) ? peer_alloc(size)
						  : peer_alloc_noscan(size);

	memset(p, 1 + (int)(bits % 64), size);
	HEAP_STORE(r->entry, &e->bytes, p);
	e->size = size;
}

static void entry_replace(struct run *r, struct entry *e)
{
	if (e->bytes) {
		r->sum = r->sum * 31 + e->bytes[0] + e->bytes[e->size - 1];
		e->bytes = NULL;
	}
	entry_fill(r, e);
}

static struct entry *entry_random(struct run *r)
{
	return &r->entry[peer_below(&r->seed, r->n)];
}

// note_after notes a replacement that may be one of the first after a
// collection.
static void note_after(struct run *r, double us, bool collected)
{
	if (collected) {
		r->left = AFTER;
		r->longest = 0;
	}
	if (r->left == 0)
		return;
	r->longest = us > r->longest ? us : r->longest;
	if (--r->left == 0 && r->nafter < CYCLES)
		r->after[r->nafter++] = r->longest;
}

// replace replaces n entries, the first ones or random ones.
static void replace(struct run *r, size_t n, bool in_order, struct latency *l)
{
	uint64_t began = now_ns(r);

	for (size_t i = 0; i < n; i++) {
		uint64_t ended, ns, paused = 0;

		entry_replace(r, in_order     ? &r->entry[i]
				 : r->churned ? &r->churned[i % CHURNED]
					      : entry_random(r));
		ended = now_ns(r);
		ns = ended - began;
		if (ns > WORTH_NS) {
			paused = read_cycles(r);
			ns = ns > paused ? ns - paused : 0;
			ended = now_ns(r);
		}
		latency_add(l, ns);
		note_after(r, (double)ns / 1e3, paused != 0);
		began = ended;
	}
}

static void figures(const char *name, const struct latency *l, size_t n)
{
	char text[32];

	snprintf(text, sizeof text, "%s_p99.99_us", name);
	peer_figure(text, latency_rank(l, n / 10000));
	snprintf(text, sizeof text, "%s_max_us", name);
	peer_figure(text, (double)l->longest / 1e3);
}

// thread_cpu returns the CPU seconds of the background thread, or 0.
static double thread_cpu(void)
{
	DIR *tasks = opendir("/proc/self/task");
	struct dirent *task;
	double seconds = 0;

	while (tasks && (task = readdir(tasks))) {
		char path[300], name[32] = "";
		unsigned long long ns = 0;
		FILE *f;

		snprintf(path, sizeof path, "/proc/self/task/%s/comm",
			 task->d_name);
		if (!(f = fopen(path, "r")))
			continue;
		if (!fgets(name, sizeof name, f))
			name[0] = 0;
		fclose(f);
		snprintf(path, sizeof path, "/proc/self/task/%s/schedstat",
			 task->d_name);
		if (strcmp(name, "rtheap scavenge\n") ||
		    !(f = fopen(path, "r")))
			continue;
		if (fscanf(f, "%llu", &ns) == 1)
			seconds += (double)ns * 1e-9;
		fclose(f);
	}
	if (tasks)
		closedir(tasks);
	return seconds;
}

// beside_cpu returns the CPU seconds of sweeping after stops: of the background
// thread, and of threads that allocate.
static double beside_cpu(void)
{
	rt_metric_sample m = {.name = "/gc/sweep/total:cpu-seconds"};

	heap_must(rt_metrics_read(&m, 1), "rt_metrics_read");
	if (m.result != RT_METRIC_F64)
		peer_die("no CPU time of sweeping");
	return m.f64;
}

static void report(struct run *r, struct peer_time *t, size_t n)
{
	double longest = 0;

	for (size_t i = 0; i < r->npauses; i++)
		longest = r->pause[i] > longest ? r->pause[i] : longest;
	peer_figure("collections", (double)r->cycles);
	if (r->npauses != 0) {
		peer_figure("pause_ms", peer_median(r->pause, r->npauses));
		peer_figure("longest_pause_ms", longest);
		peer_figure("its_sweep_ms", peer_median(r->swept, r->npauses));
	}
	if (r->nafter != 0)
		peer_figure("after_us", peer_median(r->after, r->nafter));
	peer_figure("sweep_cpu_percent", 100 * r->sweep_s / t->cpu);
	peer_figure("beside_cpu_percent", 100 * beside_cpu() / t->cpu);
	peer_figure("thread_cpu_percent", 100 * thread_cpu() / t->cpu);
	peer_report(t->cpu * 1e9 / (double)n, "ns", t, r->sum);
}

int main(int argc, char **argv)
{
	static const uint64_t mib[2] = {1, 8192};
	static struct latency cold, warm;
	static struct run r;
	uint64_t bytes = peer_number(argc, argv, 1, mib) << 20;
	struct peer_time t = {0};
	bool churn;
	size_t n;

	churn = !strcmp(peer_word(argc, argv, 2), "churn");
	r.messages = churn || !strcmp(peer_word(argc, argv, 2), "messages");
	r.clock = !strcmp(peer_word(argc, argv, 3), "cpu")
		      ? CLOCK_THREAD_CPUTIME_ID
		      : CLOCK_MONOTONIC;
	r.n = bytes / (r.messages ? MESSAGE : MEAN);
	n = TURNOVERS * r.n;
	if (n * MEAN < LEAST_BYTES)
		n = LEAST_BYTES / MEAN;
	heap_begin();
	heap_hold(&r.entry, &r.entry + 1);
	r.entry = peer_alloc((r.n + CHURNED) * sizeof *r.entry);
	r.churned = churn ? r.entry + r.n : NULL;
	peer_start(&t);
	replace(&r, r.n, true, &cold);
	replace(&r, r.n, false, &cold);
	replace(&r, n, false, &warm);
	peer_stop(&t);
	read_cycles(&r);
	figures("cold", &cold, 2 * r.n);
	figures("warm", &warm, n);
	report(&r, &t, n + 2 * r.n);
	return 0;
}
