/*
 * metrics.h - statistics by name: Go's runtime/metrics.
 *
 * A name is "/path:unit".  Names, units and types of results stay for the life
 * of the soname; later versions may add names.  rt_metrics_describe lists them
 * in alphabetical order, each with its type and its meaning in words.  Of the
 * metrics that these headers name, those under /sched/pauses/ are histograms.
 * The others in seconds and cpu-seconds are RT_METRIC_F64, and all the rest are
 * RT_METRIC_U64.
 *
 * A collection begins when /gc/heap/used:bytes reaches /gc/heap/trigger:bytes,
 * which is UINT64_MAX if there is no goal.  /gc/phase:state is 1 while a
 * collection marks.  It is 2 while what was found dead is being freed, in the
 * stop or after it.  Otherwise it is 0.  These numbers keep their meaning.
 */
#ifndef RT_METRICS_H
#define RT_METRICS_H

#include <rt/version.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * The type of a metric's value, and so the field of a sample that was filled.
 * RT_METRIC_BAD is for samples only: no value was filled in.
 */
enum rt_metric_result {
	RT_METRIC_BAD,
	RT_METRIC_U64,
	RT_METRIC_F64,
	RT_METRIC_HISTOGRAM
};

/*
 * A metric; frozen for this soname.  The texts are constant and live as long
 * as the library.
 */
typedef struct rt_metric_desc {
	const char *name, *description;
	uint32_t result;     /* enum rt_metric_result */
	uint32_t cumulative; /* 1: never goes down */
	size_t ncounts;	     /* histogram: its counts, one less than its edges;
				else 0 */
} rt_metric_desc;

/*
 * One value that is requested; frozen for this soname.  The caller must set
 * name.  For a histogram the caller must also set counts to its own array, and
 * ncounts to the array's length.
 *
 * rt_metrics_read sets result, and fills the fields that result names: u64; or
 * f64; or counts, ncounts (the number of counts) and edges.  Count i is the
 * number of values from edges[i] to below edges[i + 1].  The edges are
 * constant, ascending, perhaps infinite at the ends, and live as long as the
 * library.
 *
 * result is RT_METRIC_BAD if name is null or no metric (then ncounts is 0), or
 * if counts is null or too short (then ncounts is the length needed).  Before
 * the next read, the caller must set ncounts to the array's length again.
 */
typedef struct rt_metric_sample {
	const char *name; /* in */
	uint32_t result;  /* out: enum rt_metric_result */
	uint32_t spare;
	uint64_t u64;	     /* out */
	double f64;	     /* out */
	uint64_t *counts;    /* in: the caller's, ncounts long; filled */
	size_t ncounts;	     /* in: room; out: used, or needed */
	const double *edges; /* out: ncounts + 1 of them */
} rt_metric_sample;

/*
 * rt_metrics_count returns the number of metrics.
 *
 * Any thread, at any time, even before rt_init and in its own stop.  Does not
 * block.
 */
RT_API size_t rt_metrics_count(void);

/*
 * rt_metrics_describe fills *d with metric number i, from 0.
 *
 * Returns 0, or RT_EINVAL (d is null), RT_ENOENT (no metric i).
 *
 * Any thread, at any time, even before rt_init and in its own stop.  Does not
 * block.
 */
RT_API int rt_metrics_describe(size_t i, rt_metric_desc *d);

/*
 * rt_metrics_read fills n samples, all from one snapshot that stops no thread.
 * So parts add up to their totals, for instance under /memory/classes/.
 * Histograms of pauses may lag by a pause that is being recorded.  Objects that
 * threads have allocated from the spans that they cache now do not count yet;
 * those of a thread that has detached do.  The classes of CPU time are as of
 * the call, even in the middle of a collection.  They add up exactly, but for
 * the rounding of nanoseconds to seconds as a double, and none is less than in
 * an earlier call of any thread.  A name may occur in several samples.  The
 * call allocates nothing.
 *
 * Returns 0, even if some sample is RT_METRIC_BAD, or RT_EINVAL (samples is
 * null and n is not 0), RT_ESTATE (no heap).
 *
 * Any thread, even inside a blocking region and in its own stop.  Waits at most
 * for another live reader.  Does not collect or poll.
 */
RT_API int rt_metrics_read(rt_metric_sample *samples, size_t n);

#ifdef __cplusplus
}
#endif

#endif
