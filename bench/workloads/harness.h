// harness.h - what the workloads share: the heap under test, a clock, random
// numbers, threads, and the line that a program prints.
//
// A workload is one source for all heaps.  HEAP names the adapter for a heap, a
// header in bench/heaps.  It defines the following, all of them inline:
//
//   heap_begin()               once, by main's thread, before anything else
//   heap_attach() _detach()    by every other thread that allocates
//   heap_alloc(n)              n zeroed bytes whose words are followed, or
//                              NULL; fastest if n is a constant
//   heap_alloc_noscan(n)       n bytes without pointers, contents undefined
//   HEAP_STORE(obj, slot, v)   stores a pointer into an object that was not
//                              just allocated; a plain store if undefined
//   heap_free(p)               nothing where a collector does it
//   HEAP_FREES                 1: heap_free frees, 0: it does nothing
//   heap_hold(lo, hi) _drop    words of malloc's memory are roots
//   heap_collect()             one full collection; nothing where there is none
//   heap_release()             all free memory that the heap can release
//   heap_poll()                where a thread that does not allocate can stop
//   heap_block() _unblock()    around a wait; the thread touches no object
//   heap_stats_exact(), _live  bytes in use (HEAP_HAS_EXACT, HEAP_HAS_LIVE)
//   heap_stats_metrics()       bytes of memory, read with all other metrics
//   heap_stats_history()       number of collections, read with the pauses of
//                              the last ones (both HEAP_HAS_HISTORY)
//   heap_stats_stop(t)         bytes in use, read exactly; t[0]: microseconds
//                              until the world was stopped, t[1]: how many it
//                              stayed stopped (HEAP_HAS_STOP)
//   heap_pause_ms()            how long the last collection stopped the world
//                              (HEAP_HAS_HISTORY)
//   heap_beyond(us)            the last collection's stop without its marking,
//                              in microseconds: us[0] of the clock, us[1] of
//                              CPU time
//   heap_unswept()             whether the sweep of the last collection has not
//                              ended (both HEAP_HAS_CYCLE)
//   heap_held()                bytes from the system, without those that went
//                              back (HEAP_HAS_HELD)
//   heap_collections()         since heap_begin (collectors that pairs.sh runs)
//   HEAP_CALL(n) _NOSCAN(n)    allocation by a function call, for programs that
//                              cannot inline it; heap_alloc if undefined
//
// Stacks hold the objects, and every collector here scans them.  A structure
// that lives on is reached from main's stack.
//
// A program prints one line: value, its unit, wall and CPU seconds of the
// measured part, peak KiB and CPU seconds of the whole process, checksum, and
// what else it measured, each figure as name=value.
#ifndef BENCH_WORKLOADS_HARNESS_H
#define BENCH_WORKLOADS_HARNESS_H

#ifndef HEAP
#error "HEAP must name the adapter: -DHEAP='\"../heaps/rtheap.h\"'"
#endif
#include HEAP

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#ifndef HEAP_STORE
#define HEAP_STORE(object, slot, value) ((void)(object), *(slot) = (value))
#endif
#ifndef HEAP_CALL
#define HEAP_CALL(n) heap_alloc(n)
#define HEAP_CALL_NOSCAN(n) heap_alloc_noscan(n)
#endif

// A test compiles the workloads with a divisor, to run each once and briefly.
#ifndef PEER_DIVISOR
#define PEER_DIVISOR 1
#endif

#define PEER_INLINE static inline __attribute__((always_inline, unused))
#define PEER_UNUSED static inline __attribute__((unused))

enum { PEER_THREADS = 1001, PEER_FIGURES = 512 };

// Seconds of the measured parts so far.
struct peer_time {
	double wall, cpu;
};

PEER_INLINE double peer_clock(clockid_t id)
{
	struct timespec t;

	clock_gettime(id, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

// peer_start and peer_stop enclose the measured part.  They are functions by
// themselves, because count.sh counts from a call of peer_start to a call of
// peer_stop.
static __attribute__((noinline, unused)) void peer_start(struct peer_time *t)
{
	t->wall -= peer_clock(CLOCK_MONOTONIC);
	t->cpu -= peer_clock(CLOCK_PROCESS_CPUTIME_ID);
}

static __attribute__((noinline, unused)) void peer_stop(struct peer_time *t)
{
	t->wall += peer_clock(CLOCK_MONOTONIC);
	t->cpu += peer_clock(CLOCK_PROCESS_CPUTIME_ID);
}

PEER_UNUSED _Noreturn void peer_die(const char *what)
{
	fprintf(stderr, "%s: %s\n", HEAP, what);
	exit(1);
}

// peer_least runs work rounds times, and returns the processor seconds of the
// briefest round.  It adds the time of all to *t.
PEER_UNUSED double peer_least(void (*work)(void), int rounds,
			      struct peer_time *t)
{
	double seconds = 1e9;

	for (int i = 0; i < rounds; i++) {
		struct peer_time one = {0};

		peer_start(&one);
		work();
		peer_stop(&one);
		t->wall += one.wall;
		t->cpu += one.cpu;
		if (one.cpu < seconds)
			seconds = one.cpu;
	}
	return seconds;
}

// ---- Allocation that never fails ----

PEER_INLINE void *peer_need(void *p)
{
	if (__builtin_expect(!p, 0))
		peer_die("no memory");
	return p;
}

PEER_INLINE void *peer_alloc(size_t n)
{
	return peer_need(heap_alloc(n));
}

PEER_INLINE void *peer_alloc_noscan(size_t n)
{
	return peer_need(heap_alloc_noscan(n));
}

// peer_keep makes the compiler believe that p and all it points to are read.
PEER_INLINE void peer_keep(const void *p)
{
	__asm__ volatile("" : : "r"(p) : "memory");
}

// ---- Random numbers: splitmix64, which the Go harness uses as well ----

PEER_INLINE uint64_t peer_random(uint64_t *state)
{
	uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

// peer_below returns a number below n, which is at most 2^32.
PEER_INLINE uint64_t peer_below(uint64_t *state, uint64_t n)
{
	return (peer_random(state) >> 32) * n >> 32;
}

// ---- Arguments ----

PEER_UNUSED const char *peer_word(int argc, char **argv, int i)
{
	if (i >= argc)
		peer_die("an argument is missing");
	return argv[i];
}

// peer_number returns argument i, a number from bounds[0] to bounds[1].
PEER_UNUSED uint64_t peer_number(int argc, char **argv, int i,
				 const uint64_t bounds[2])
{
	const char *text = peer_word(argc, argv, i);
	char *end;
	uint64_t value = strtoull(text, &end, 10);

	if (end == text || *end || value < bounds[0] || value > bounds[1])
		peer_die("an argument is out of range");
	return value;
}

// ---- Threads that work at the same time ----

typedef void peer_work(int who, void *arg);

struct peer_crew {
	pthread_barrier_t start;
	peer_work *work;
	void *arg;
};

struct peer_member {
	struct peer_crew *crew;
	int who;
	pthread_t tid;
};

PEER_UNUSED void peer_wait(pthread_barrier_t *barrier)
{
	heap_block();
	pthread_barrier_wait(barrier);
	heap_unblock();
}

PEER_UNUSED void *peer_member_main(void *arg)
{
	struct peer_member *m = arg;

	heap_attach();
	peer_wait(&m->crew->start);
	m->crew->work(m->who, m->crew->arg);
	heap_detach();
	return NULL;
}

// peer_together runs work on nthreads threads at once.  It adds to *t the time
// from when all are ready to when the last has ended.  If nthreads is 1, the
// thread is the caller itself.
PEER_UNUSED void peer_together(int nthreads, peer_work *work, void *arg,
			       struct peer_time *t)
{
	struct peer_crew crew = {.work = work, .arg = arg};
	struct peer_member *m;

	if (nthreads == 1) {
		peer_start(t);
		work(0, arg);
		peer_stop(t);
		return;
	}
	if (nthreads > PEER_THREADS)
		peer_die("too many threads");
	// Not on the stack, which a collection scans.
	if (!(m = malloc((size_t)nthreads * sizeof *m)))
		peer_die("no memory");
	pthread_barrier_init(&crew.start, NULL, (unsigned)nthreads + 1);
	for (int i = 0; i < nthreads; i++) {
		m[i].crew = &crew;
		m[i].who = i;
		if (pthread_create(&m[i].tid, NULL, peer_member_main, &m[i]))
			peer_die("no thread");
	}
	peer_wait(&crew.start);
	peer_start(t);
	heap_block();
	for (int i = 0; i < nthreads; i++)
		pthread_join(m[i].tid, NULL);
	heap_unblock();
	peer_stop(t);
	free(m);
	pthread_barrier_destroy(&crew.start);
}

// ---- The result ----

// peer_status_kib returns a line of /proc/self/status: VmHWM is the most memory
// that this process ever had resident, VmRSS what it has now.
PEER_UNUSED unsigned long peer_status_kib(const char *name)
{
	unsigned long kib = 0;
	size_t length = strlen(name);
	char line[128];
	FILE *status = fopen("/proc/self/status", "r");

	if (!status)
		peer_die("no /proc/self/status");
	while (fgets(line, sizeof line, status))
		if (!strncmp(line, name, length) && line[length] == ':')
			kib = strtoul(line + length + 1, NULL, 10);
	fclose(status);
	return kib;
}

PEER_UNUSED double peer_resident_mib(void)
{
	return (double)peer_status_kib("VmRSS") / 1024;
}

PEER_UNUSED int peer_compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

// peer_median sorts the n samples, of which there must be at least one.
PEER_UNUSED double peer_median(double *sample, size_t n)
{
	qsort(sample, n, sizeof sample[0], peer_compare);
	return n % 2 ? sample[n / 2] : (sample[n / 2 - 1] + sample[n / 2]) / 2;
}

// peer_figures is what peer_report prints after the checksum.
static char peer_figures[PEER_FIGURES] __attribute__((unused));

// peer_figure adds a figure.  The name has no blanks, and ends with the unit.
PEER_UNUSED void peer_figure(const char *name, double value)
{
	size_t used = strlen(peer_figures);

	snprintf(peer_figures + used, sizeof peer_figures - used, " %s=%.4g",
		 name, value);
}

// peer_pause_figure adds how long the last collection stopped the world.
PEER_UNUSED void peer_pause_figure(void)
{
#ifdef HEAP_HAS_HISTORY
	peer_figure("stopped_ms", heap_pause_ms());
#endif
}

// peer_cpu returns the processor time in seconds of this process and of its
// children that have ended.  peer_peak_kib returns the most memory that one of
// them had resident.
PEER_UNUSED double peer_cpu(void)
{
	struct rusage u;

	getrusage(RUSAGE_CHILDREN, &u);
	return peer_clock(CLOCK_PROCESS_CPUTIME_ID) +
	       (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
	       (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1e-6;
}

PEER_UNUSED unsigned long peer_peak_kib(void)
{
	unsigned long own = peer_status_kib("VmHWM");
	struct rusage u;

	getrusage(RUSAGE_CHILDREN, &u);
	return (unsigned long)u.ru_maxrss > own ? (unsigned long)u.ru_maxrss
						: own;
}

PEER_UNUSED void peer_report(double value, const char *unit,
			     const struct peer_time *t, uint64_t checksum)
{
#ifdef PEER_COLLECTIONS
	peer_figure("collections", (double)heap_collections());
#endif
	printf("%.5g %s %.4f %.4f %lu %.3f %016llx%s\n", value, unit, t->wall,
	       t->cpu, peer_peak_kib(), peer_cpu(),
	       (unsigned long long)checksum, peer_figures);
}

#endif
