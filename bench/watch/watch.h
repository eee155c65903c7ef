// watch.h - what the programs that watch a heap over time share: samples that
// another thread takes, and the lines that show them.
//
// The programs run on rtheap alone, at the settings of RTDEBUG.  bench/watch.sh
// runs them at several.  A program prints a line for each sample that it shows,
//
//   at SECONDS RESIDENT IN_USE GOAL HELD COLLECTOR
//
// in MiB.  HELD is what the heap has from the system without what it released.
// COLLECTOR is the share of the process's CPU time, in percent, that
// collections took in the last two seconds.  The last line is as in every
// workload (bench/workloads/harness.h).
//
// The thread that takes samples is not attached, so no stop waits for it.
#ifndef BENCH_WATCH_WATCH_H
#define BENCH_WATCH_WATCH_H

#include "harness.h"

#include <unistd.h>

#define WATCH_MIB 1048576.0

enum { WATCH_SAMPLES = 1 << 15, WATCH_WINDOW_S = 2 };

struct watch_sample {
	double at;			     // seconds
	double resident, in_use, goal, held; // bytes
	double cpu, gc_cpu;		     // seconds of the process so far
};

struct watch {
	struct watch_sample sample[WATCH_SAMPLES];
	size_t n;
	uint64_t ncycles; // collections that gc_cpu has
	double gc_cpu, began;
	unsigned every_ms;
	int stop; // 1: the thread must end
	pthread_t tid;
};

// watch_resident returns the resident bytes of this process.
static inline double watch_resident(void)
{
	unsigned long size, resident;
	FILE *f = fopen("/proc/self/statm", "r");

	if (!f || fscanf(f, "%lu %lu", &size, &resident) != 2)
		peer_die("no /proc/self/statm");
	fclose(f);
	return (double)resident * (double)sysconf(_SC_PAGESIZE);
}

// watch_cycles adds the CPU time of the collections that have ended since.
static inline void watch_cycles(struct watch *w)
{
	rt_cycle c;

	while (rt_read_cycle(w->ncycles + 1, &c) == 0) {
		w->gc_cpu += (double)c.process_cpu_ns * 1e-9;
		w->ncycles = c.number;
	}
}

static inline void watch_take(struct watch *w)
{
	static rt_memstats m;
	struct watch_sample *s = &w->sample[w->n];

	if (w->n == WATCH_SAMPLES)
		return;
	heap_must(rt_read_memstats_live(&m), "rt_read_memstats_live");
	watch_cycles(w);
	*s = (struct watch_sample){
	    .at = peer_clock(CLOCK_MONOTONIC) - w->began,
	    .resident = watch_resident(),
	    .in_use = (double)m.heap_inuse,
	    .goal = m.next_gc == UINT64_MAX ? 0 : (double)m.next_gc,
	    .held = (double)(m.sys - m.heap_released),
	    .cpu = peer_clock(CLOCK_PROCESS_CPUTIME_ID),
	    .gc_cpu = w->gc_cpu};
	w->n++;
}

static inline void *watch_main(void *arg)
{
	struct watch *w = arg;
	struct timespec pause = {.tv_sec = w->every_ms / 1000,
				 .tv_nsec = w->every_ms % 1000 * 1000000L};

	while (!__atomic_load_n(&w->stop, __ATOMIC_ACQUIRE)) {
		watch_take(w);
		nanosleep(&pause, NULL);
	}
	return NULL;
}

// watch_begin takes a sample every so many milliseconds from now on.
static inline void watch_begin(struct watch *w, unsigned every_ms)
{
	w->every_ms = every_ms;
	w->began = peer_clock(CLOCK_MONOTONIC);
	if (pthread_create(&w->tid, NULL, watch_main, w))
		peer_die("no thread");
}

static inline void watch_end(struct watch *w)
{
	__atomic_store_n(&w->stop, 1, __ATOMIC_RELEASE);
	heap_block();
	pthread_join(w->tid, NULL);
	heap_unblock();
	watch_take(w);
}

// watch_share returns the share of CPU time that collections took in the window
// that ends with a sample, in percent.  Returns 0 if the earlier samples do not
// fill the window.
static inline double watch_share(const struct watch *w, size_t end)
{
	const struct watch_sample *s = w->sample;
	size_t i = end;

	while (i > 0 && s[end].at - s[i].at < WATCH_WINDOW_S)
		i--;
	if (s[end].at - s[i].at < WATCH_WINDOW_S || s[end].cpu <= s[i].cpu)
		return 0;
	return 100 * (s[end].gc_cpu - s[i].gc_cpu) / (s[end].cpu - s[i].cpu);
}

// watch_print prints the first sample in each period of so many seconds.
static inline void watch_print(const struct watch *w, double period)
{
	double due = 0;

	for (size_t i = 0; i < w->n; i++) {
		const struct watch_sample *s = &w->sample[i];

		if (s->at < due)
			continue;
		printf("at %.2f %.1f %.1f %.1f %.1f %.0f\n", due,
		       s->resident / WATCH_MIB, s->in_use / WATCH_MIB,
		       s->goal / WATCH_MIB, s->held / WATCH_MIB,
		       watch_share(w, i));
		while (due <= s->at)
			due += period;
	}
}

// watch_cycle_count returns the number of collections that have ended.
static inline uint64_t watch_cycle_count(void)
{
	rt_cycle c;

	return rt_read_cycle(0, &c) == 0 ? c.number : 0;
}

// watch_collect allocates until a collection has ended, which may not have
// swept yet.  Before the call gc_percent must be off; the call leaves it at
// 100.
static inline void watch_collect(void)
{
	uint64_t before = watch_cycle_count();

	heap_must(rt_set_gc_percent(100, NULL), "rt_set_gc_percent");
	while (watch_cycle_count() == before)
		peer_keep(peer_alloc_noscan(64));
}

#endif
