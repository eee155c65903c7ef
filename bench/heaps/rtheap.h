// rtheap.h - rtheap as a host uses it: public headers, default settings, and
// RT_STORE for every pointer that is stored into an older object.
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rt/rt.h>

#define HEAP_FREES 0
#define HEAP_HAS_EXACT 1
#define HEAP_HAS_LIVE 1
#define HEAP_HAS_HISTORY 1
#define HEAP_HAS_STOP 1
#define HEAP_HAS_HELD 1
#define HEAP_CALL(n) rt_alloc_kind(RT_WORDS, n)
#define HEAP_CALL_NOSCAN(n) rt_alloc_kind(RT_NOSCAN, n)
#ifndef HEAP_PLAIN
#define HEAP_STORE RT_STORE
#endif

static inline void heap_must(int result, const char *what)
{
	if (result == 0)
		return;
	fprintf(stderr, "%s failed: %s\n", what, rt_strerror(result));
	exit(1);
}

// RTGC and RTDEBUG have an effect, so that settings can be compared.
static inline void heap_begin(void)
{
	rt_config c;

	rt_config_init(&c);
	heap_must(rt_config_from_env(&c), "rt_config_from_env");
	heap_must(rt_init(&c), "rt_init");
}

static inline void heap_attach(void)
{
	heap_must(rt_thread_attach(0), "rt_thread_attach");
}

static inline void heap_detach(void)
{
	heap_must(rt_thread_detach(), "rt_thread_detach");
}

static inline __attribute__((always_inline)) void *heap_alloc(size_t n)
{
	return rt_alloc(n);
}

static inline __attribute__((always_inline)) void *heap_alloc_noscan(size_t n)
{
	return rt_alloc_noscan_uninit(n);
}

static inline void heap_free(void *p)
{
	(void)p;
}

static inline void heap_hold(void *lo, void *hi)
{
	heap_must(rt_roots_add(lo, hi, RT_ROOT_EXACT), "rt_roots_add");
}

static inline void heap_drop(void *lo, void *hi)
{
	heap_must(rt_roots_remove(lo, hi), "rt_roots_remove");
}

static inline void heap_collect(void)
{
	heap_must(rt_gc(), "rt_gc");
}

static inline void heap_release(void)
{
	heap_must(rt_free_os_memory(), "rt_free_os_memory");
}

static inline void heap_poll(void)
{
	rt_safepoint();
}

static inline void heap_block(void)
{
	heap_must(rt_blocking_enter(), "rt_blocking_enter");
}

static inline void heap_unblock(void)
{
	heap_must(rt_blocking_leave(), "rt_blocking_leave");
}

static inline uint64_t heap_stats_exact(void)
{
	static rt_memstats m;

	heap_must(rt_read_memstats(&m), "rt_read_memstats");
	return m.heap_inuse;
}

static inline uint64_t heap_collections(void)
{
	static rt_memstats m;

	heap_must(rt_read_memstats_live(&m), "rt_read_memstats_live");
	return m.num_gc;
}

static inline uint64_t heap_stats_stop(double us[2])
{
	rt_stop_times t;
	uint64_t bytes;

	heap_must(rt_stop_the_world(RT_STOP_HOST), "rt_stop_the_world");
	bytes = heap_stats_exact();
	heap_must(rt_start_the_world(&t), "rt_start_the_world");
	us[0] = (double)t.stopping_ns / 1e3;
	us[1] = (double)t.stopped_ns / 1e3;
	return bytes;
}

// An older version (RT_OLD) may have no records of collections.
#ifdef rt_read_cycle
#define HEAP_HAS_CYCLE 1

static inline void heap_beyond(double us[2])
{
	rt_cycle c;

	heap_must(rt_read_cycle(0, &c), "rt_read_cycle");
	us[0] = (double)(c.pause_ns - c.mark_ns) / 1e3;
	us[1] = ((double)c.process_cpu_ns - (double)c.mark_cpu_ns) / 1e3;
}

static inline bool heap_unswept(void)
{
	rt_metric_sample m = {.name = "/gc/phase:state"};

	heap_must(rt_metrics_read(&m, 1), "rt_metrics_read");
	return m.u64 == 2;
}
#endif

static inline uint64_t heap_stats_live(void)
{
	static rt_memstats m;

	heap_must(rt_read_memstats_live(&m), "rt_read_memstats_live");
	return m.heap_inuse;
}

static inline uint64_t heap_held(void)
{
	static rt_memstats m;

	heap_must(rt_read_memstats(&m), "rt_read_memstats");
	return m.sys - m.heap_released;
}

// heap_history reads the pauses; pause[0] is the pause of the last collection.
static inline uint64_t heap_history(uint64_t pause[RT_GCSTATS_WORDS])
{
	size_t used;

	heap_must(rt_read_gcstats(pause, RT_GCSTATS_WORDS, &used),
		  "rt_read_gcstats");
	return pause[used - 2];
}

static inline uint64_t heap_stats_history(void)
{
	static uint64_t words[RT_GCSTATS_WORDS];

	return heap_history(words);
}

static inline double heap_pause_ms(void)
{
	static uint64_t words[RT_GCSTATS_WORDS];

	return heap_history(words) ? (double)words[0] / 1e6 : 0;
}

enum { HEAP_METRICS = 256, HEAP_COUNTS = 16384 };

static inline size_t heap_metrics_prepare(rt_metric_sample *metric,
					  uint64_t *counts)
{
	size_t n = rt_metrics_count(), used = 0;

	heap_must(n <= HEAP_METRICS ? 0 : RT_EINVAL, "HEAP_METRICS");
	for (size_t i = 0; i < n; i++) {
		rt_metric_desc d;

		heap_must(rt_metrics_describe(i, &d), "rt_metrics_describe");
		metric[i].name = d.name;
		metric[i].counts = counts + used;
		metric[i].ncounts = d.ncounts;
		used += d.ncounts;
		heap_must(used <= HEAP_COUNTS ? 0 : RT_EINVAL, "HEAP_COUNTS");
	}
	return n;
}

static inline uint64_t heap_stats_metrics(void)
{
	static rt_metric_sample metric[HEAP_METRICS];
	static uint64_t counts[HEAP_COUNTS];
	static size_t n, total;

	if (!n) {
		n = heap_metrics_prepare(metric, counts);
		while (
		    strcmp(metric[total].name, "/memory/classes/total:bytes"))
			total++;
	}
	heap_must(rt_metrics_read(metric, n), "rt_metrics_read");
	return metric[total].u64;
}
