// bench.h - what the benches share: a clock, samples, one line a result.
//
// A bench is a host like any other: it uses the public headers only.  Each
// result is one line of the columns in bench_heading; value is the median.
#ifndef BENCH_BENCH_H
#define BENCH_BENCH_H

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <rt/rt.h>

enum { BENCH_SAMPLES = 2000, BENCH_THREADS = 8 };

// Measurements of one thing in nanoseconds.  Too large for a small stack.
struct bench_samples {
	size_t n;
	double ns[BENCH_SAMPLES];
};

// What stands in a line beside the numbers.
struct bench_row {
	const char *name;
	const char *unit;
	double unit_ns; // nanoseconds in one unit
	int threads;	// attached
	uint64_t heap;	// bytes
};

static inline uint64_t bench_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

// bench_must ends the program when a call that a bench depends on fails.
static inline void bench_must(int result, const char *what)
{
	if (result == 0)
		return;
	fprintf(stderr, "%s failed: %d\n", what, result);
	exit(1);
}

// bench_need is p, which is not NULL from here on.
static inline void *bench_need(void *p, const char *what)
{
	bench_must(p ? 0 : RT_ENOMEM, what);
	return p;
}

// bench_add drops what is beyond the room, so that no caller counts.
static inline void bench_add(struct bench_samples *s, double ns)
{
	if (s->n < BENCH_SAMPLES)
		s->ns[s->n++] = ns;
}

static inline int bench_compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

// bench_rank is the smallest sample that percent of them do not exceed.  The
// samples are sorted, and not none.
static inline double bench_rank(const struct bench_samples *s, size_t percent)
{
	size_t rank = (s->n * percent + 99) / 100;

	return s->ns[rank ? rank - 1 : 0];
}

static inline void bench_heading(const char *title)
{
	printf("\n%-38s %9s %-5s %7s %9s %5s  %s\n", title, "median", "unit",
	       "threads", "heap/MiB", "reps", "spread");
}

// bench_line prints one result and empties the samples.
static inline void bench_line(const struct bench_row *row,
			      struct bench_samples *s)
{
	bench_must(s->n ? 0 : RT_EINVAL, row->name);
	qsort(s->ns, s->n, sizeof s->ns[0], bench_compare);
	printf("%-38s %9.2f %-5s %7d %9.1f %5zu  min %.2f p99 %.2f max %.2f\n",
	       row->name, bench_rank(s, 50) / row->unit_ns, row->unit,
	       row->threads, (double)row->heap / (1 << 20), s->n,
	       s->ns[0] / row->unit_ns, bench_rank(s, 99) / row->unit_ns,
	       s->ns[s->n - 1] / row->unit_ns);
	fflush(stdout);
	s->n = 0;
}

// bench_heap_inuse is the bytes of spans with objects, now.
static inline uint64_t bench_heap_inuse(void)
{
	rt_memstats m;

	bench_must(rt_read_memstats(&m), "rt_read_memstats");
	return m.heap_inuse;
}

// bench_argument is argument number i, or a default.  What is no number from
// least to most ends the program.
static inline uint64_t bench_argument(int argc, char **argv, int i,
				      const uint64_t bounds[3])
{
	char *end;
	uint64_t value;

	if (i >= argc)
		return bounds[0];
	value = strtoull(argv[i], &end, 10);
	if (end != argv[i] && !*end && value >= bounds[1] && value <= bounds[2])
		return value;
	fprintf(stderr, "%s: %s: a number from %llu to %llu is wanted\n",
		argv[0], argv[i], (unsigned long long)bounds[1],
		(unsigned long long)bounds[2]);
	exit(2);
}

// ---- Threads that work at the same time ----

// The work of thread number who.
typedef void bench_work(int who, void *arg);

struct bench_crew {
	pthread_barrier_t start;
	bench_work *work;
	void *arg;
};

struct bench_member {
	struct bench_crew *crew;
	int who;
	pthread_t tid;
	uint64_t began, ended; // bench_now
};

static inline void bench_wait(pthread_barrier_t *barrier)
{
	bench_must(rt_blocking_enter(), "rt_blocking_enter");
	pthread_barrier_wait(barrier);
	bench_must(rt_blocking_leave(), "rt_blocking_leave");
}

static inline void *bench_member_main(void *arg)
{
	struct bench_member *m = (struct bench_member *)arg;

	bench_must(rt_thread_attach(0), "rt_thread_attach");
	bench_wait(&m->crew->start);
	m->began = bench_now();
	m->crew->work(m->who, m->crew->arg);
	m->ended = bench_now();
	bench_must(rt_thread_detach(), "rt_thread_detach");
	return NULL;
}

static inline void bench_join(pthread_t tid)
{
	bench_must(rt_blocking_enter(), "rt_blocking_enter");
	bench_must(pthread_join(tid, NULL), "pthread_join");
	bench_must(rt_blocking_leave(), "rt_blocking_leave");
}

// bench_together runs work on nthreads new attached threads at once and
// returns the ns from the first beginning to the last end.  The caller is
// attached, and stands in a blocking region meanwhile.
static inline uint64_t bench_together(int nthreads, bench_work *work, void *arg)
{
	struct bench_crew crew = {.work = work, .arg = arg};
	struct bench_member m[BENCH_THREADS];
	uint64_t began = UINT64_MAX, ended = 0;

	bench_must(nthreads <= BENCH_THREADS ? 0 : RT_EINVAL, "nthreads");
	pthread_barrier_init(&crew.start, NULL, (unsigned)nthreads);
	for (int i = 0; i < nthreads; i++) {
		m[i].crew = &crew;
		m[i].who = i;
		bench_must(
		    pthread_create(&m[i].tid, NULL, bench_member_main, &m[i]),
		    "pthread_create");
	}
	for (int i = 0; i < nthreads; i++) {
		bench_join(m[i].tid);
		began = m[i].began < began ? m[i].began : began;
		ended = m[i].ended > ended ? m[i].ended : ended;
	}
	pthread_barrier_destroy(&crew.start);
	return ended - began;
}

#endif
