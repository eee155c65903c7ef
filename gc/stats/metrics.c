// The table of names, and how each value follows from a snapshot.
#include "gc/stats/metrics.h"

#include <math.h>
#include <string.h>

#include "runtime/base/sizeclass.h"

// In the order of the names, because the table below is searched by halving it.
enum metric {
	CPU_GC_MARK_ASSIST,
	CPU_GC_MARK_DEDICATED,
	CPU_GC_MARK_IDLE,
	CPU_GC_PAUSE,
	CPU_GC_TOTAL,
	CPU_IDLE,
	CPU_SCAVENGE_ASSIST,
	CPU_SCAVENGE_BACKGROUND,
	CPU_SCAVENGE_TOTAL,
	CPU_TOTAL,
	CPU_USER,
	GC_CYCLES_AUTOMATIC,
	GC_CYCLES_FORCED,
	GC_CYCLES_TOTAL,
	GC_GOGC,
	GC_GOMEMLIMIT,
	GC_HEAP_ALLOCS_BY_SIZE,
	GC_HEAP_ALLOCS_BYTES,
	GC_HEAP_ALLOCS_OBJECTS,
	GC_HEAP_FREES_BY_SIZE,
	GC_HEAP_FREES_BYTES,
	GC_HEAP_FREES_OBJECTS,
	GC_HEAP_GOAL,
	GC_HEAP_LIVE,
	GC_HEAP_MAX,
	GC_HEAP_OBJECTS,
	GC_HEAP_TINY_ALLOCS,
	GC_HEAP_TRIGGER,
	GC_HEAP_USED,
	GC_MARK_HELPERS,
	GC_PAUSES,
	GC_PHASE,
	GC_SCAN_GLOBALS,
	GC_SCAN_HEAP,
	GC_SCAN_PAST_END,
	GC_SCAN_STACK,
	GC_SCAN_TOTAL,
	GC_SWEEP_ASSIST,
	GC_SWEEP_BACKGROUND,
	GC_SWEEP_DURATION,
	GC_SWEEP_TOTAL,
	GC_TRACE_DROPPED,
	MEMORY_HEAP_FREE,
	MEMORY_HEAP_OBJECTS,
	MEMORY_HEAP_RELEASED,
	MEMORY_HEAP_STACKS,
	MEMORY_HEAP_UNUSED,
	MEMORY_MCACHE_FREE,
	MEMORY_MCACHE_INUSE,
	MEMORY_MSPAN_FREE,
	MEMORY_MSPAN_INUSE,
	MEMORY_METADATA_OTHER,
	MEMORY_OS_STACKS,
	MEMORY_OTHER,
	MEMORY_PROFILING_BUCKETS,
	MEMORY_TOTAL,
	MEMORY_EXTERNAL,
	MEMORY_MAPPINGS_LIMIT,
	MEMORY_MAPPINGS,
	SCHED_GOMAXPROCS,
	SCHED_STOPPING_GC,
	SCHED_STOPPING_OTHER,
	SCHED_TOTAL_GC,
	SCHED_TOTAL_OTHER,
	SCHED_THREADS_ATTACHED,
	METRIC_COUNT,
};

// Objects by size: one count a class, and one for large objects.
enum {
	BY_SIZE_COUNTS = SIZECLASS_COUNT,
	BY_SIZE_LARGE = BY_SIZE_COUNTS - 1,
};

// A count is of sizes from its edge to below the next edge.  An edge is one
// more than the largest size of the previous class.
static const double by_size_edges[BY_SIZE_COUNTS + 1] = {
    1,	   9,	  17,	 25,	33,    49,    65,    81,    97,	      113,
    129,   145,	  161,	 177,	193,   209,   225,   241,   257,      289,
    321,   353,	  385,	 417,	449,   481,   513,   577,   641,      705,
    769,   897,	  1025,	 1153,	1281,  1409,  1537,  1793,  2049,     2305,
    2689,  3073,  3201,	 3457,	4097,  4865,  5377,  6145,  6529,     6785,
    6913,  8193,  9473,	 9729,	10241, 10881, 12289, 13569, 14337,    16385,
    18433, 19073, 20481, 21761, 24577, 27265, 28673, 32769, INFINITY,
};

#define COUNTER(name, text)                                                    \
	{                                                                      \
		name, text, RT_METRIC_U64, 1, 0                                \
	}
#define LEVEL(name, text)                                                      \
	{                                                                      \
		name, text, RT_METRIC_U64, 0, 0                                \
	}
#define SECONDS(name, text)                                                    \
	{                                                                      \
		name, text, RT_METRIC_F64, 1, 0                                \
	}
#define BY_SIZE(name, text)                                                    \
	{                                                                      \
		name, text, RT_METRIC_HISTOGRAM, 1, BY_SIZE_COUNTS             \
	}
#define DURATIONS(name, text)                                                  \
	{                                                                      \
		name, text, RT_METRIC_HISTOGRAM, 1, HISTOGRAM_COUNTS           \
	}

static const rt_metric_desc metrics[METRIC_COUNT] = {
    [CPU_GC_MARK_ASSIST] =
	SECONDS("/cpu/classes/gc/mark/assist:cpu-seconds",
		"Marking by threads that were about to allocate."),
    [CPU_GC_MARK_DEDICATED] =
	SECONDS("/cpu/classes/gc/mark/dedicated:cpu-seconds",
		"Marking beside the host's threads; marking that stops them "
		"is pause."),
    [CPU_GC_MARK_IDLE] =
	SECONDS("/cpu/classes/gc/mark/idle:cpu-seconds",
		"Marking on processors that had nothing else to do."),
    [CPU_GC_PAUSE] =
	SECONDS("/cpu/classes/gc/pause:cpu-seconds",
		"Processor time that stops for collections took: every "
		"processor while the world was stopped, and the waits "
		"until all threads were stopped."),
    [CPU_GC_TOTAL] =
	SECONDS("/cpu/classes/gc/total:cpu-seconds", "All of /cpu/classes/gc."),
    [CPU_IDLE] = SECONDS("/cpu/classes/idle:cpu-seconds",
			 "Processor time that neither the host's attached "
			 "threads nor the library used."),
    [CPU_SCAVENGE_ASSIST] =
	SECONDS("/cpu/classes/scavenge/assist:cpu-seconds",
		"Releasing memory to the system while allocating."),
    [CPU_SCAVENGE_BACKGROUND] =
	SECONDS("/cpu/classes/scavenge/background:cpu-seconds",
		"Releasing memory to the system in the background."),
    [CPU_SCAVENGE_TOTAL] = SECONDS("/cpu/classes/scavenge/total:cpu-seconds",
				   "All of /cpu/classes/scavenge."),
    [CPU_TOTAL] = SECONDS("/cpu/classes/total:cpu-seconds",
			  "Processors times wall time; the sum of "
			  "/cpu/classes/{gc/total,scavenge/total,idle,"
			  "user}.  All are as of this read."),
    [CPU_USER] = SECONDS("/cpu/classes/user:cpu-seconds",
			 "What is left of the total: the host's own work, "
			 "allocation included, and sweeping beside it."),
    [GC_CYCLES_AUTOMATIC] =
	COUNTER("/gc/cycles/automatic:gc-cycles",
		"Collections that the host did not ask for."),
    [GC_CYCLES_FORCED] = COUNTER("/gc/cycles/forced:gc-cycles",
				 "Collections that the host asked for."),
    [GC_CYCLES_TOTAL] =
	COUNTER("/gc/cycles/total:gc-cycles",
		"Collections that have ended: automatic and forced."),
    [GC_GOGC] =
	LEVEL("/gc/gogc:percent", "The percentage that sets the heap goal; "
				  "18446744073709551615 when off."),
    [GC_GOMEMLIMIT] = LEVEL("/gc/gomemlimit:bytes",
			    "The soft memory limit; 9223372036854775807 "
			    "when there is none."),
    [GC_HEAP_ALLOCS_BY_SIZE] =
	BY_SIZE("/gc/heap/allocs-by-size:bytes",
		"Objects ever allocated by the size of their slot; "
		"the last count is of large objects.  Combined "
		"objects count as one."),
    [GC_HEAP_ALLOCS_BYTES] =
	COUNTER("/gc/heap/allocs:bytes", "Bytes of objects ever allocated."),
    [GC_HEAP_ALLOCS_OBJECTS] =
	COUNTER("/gc/heap/allocs:objects",
		"Objects ever allocated; combined objects count as "
		"one."),
    [GC_HEAP_FREES_BY_SIZE] =
	BY_SIZE("/gc/heap/frees-by-size:bytes",
		"Objects ever freed by the size of their slot; the "
		"last count is of large objects.  Combined objects "
		"count as one."),
    [GC_HEAP_FREES_BYTES] =
	COUNTER("/gc/heap/frees:bytes", "Bytes of objects ever freed."),
    [GC_HEAP_FREES_OBJECTS] =
	COUNTER("/gc/heap/frees:objects",
		"Objects ever freed; combined objects count as one."),
    [GC_HEAP_GOAL] =
	LEVEL("/gc/heap/goal:bytes", "The size of the heap at which the next "
				     "collection is meant to have ended; "
				     "18446744073709551615 when off."),
    [GC_HEAP_LIVE] = LEVEL("/gc/heap/live:bytes",
			   "Bytes of objects that the last collection "
			   "found alive."),
    [GC_HEAP_MAX] = LEVEL("/gc/heap/max:bytes",
			  "The hard limit of the pages of objects and stacks; "
			  "the address space of the heap when there is none."),
    [GC_HEAP_OBJECTS] = LEVEL("/gc/heap/objects:objects",
			      "Objects that are allocated: alive, or not "
			      "freed yet."),
    [GC_HEAP_TINY_ALLOCS] =
	COUNTER("/gc/heap/tiny/allocs:objects",
		"Small objects ever put into a slot that others "
		"share; in no other count of objects."),
    [GC_HEAP_TRIGGER] =
	LEVEL("/gc/heap/trigger:bytes",
	      "The size of the heap at which the next collection begins; in "
	      "this version the goal.  18446744073709551615 when off."),
    [GC_HEAP_USED] =
	LEVEL("/gc/heap/used:bytes",
	      "What counts towards the trigger now: objects as rt_heap_live "
	      "says, stacks of interpreters as far as there are more since "
	      "the last collection, and what objects own outside the heap."),
    [GC_MARK_HELPERS] = COUNTER("/gc/mark/helpers:objects",
				"Objects ever marked by helper threads."),
    [GC_PAUSES] = DURATIONS("/gc/pauses:seconds",
			    "The same as /sched/pauses/total/gc:seconds."),
    [GC_PHASE] =
	LEVEL("/gc/phase:state",
	      "0: all that the last collection found dead is free.  "
	      "1: a collection has stopped the program and marks.  "
	      "2: what it found dead is being freed, while the program "
	      "is stopped or beside it."),
    [GC_SCAN_GLOBALS] = LEVEL("/gc/scan/globals:bytes",
			      "Bytes of registered roots that the last "
			      "collection scanned."),
    [GC_SCAN_HEAP] = LEVEL("/gc/scan/heap:bytes",
			   "Bytes of objects that the last collection "
			   "scanned."),
    [GC_SCAN_PAST_END] =
	COUNTER("/gc/scan/past-end:objects",
		"Objects ever kept by a collection only because a "
		"word on a stack equals their end."),
    [GC_SCAN_STACK] = LEVEL("/gc/scan/stack:bytes",
			    "Bytes of stacks that the last collection "
			    "scanned."),
    [GC_SCAN_TOTAL] = LEVEL("/gc/scan/total:bytes",
			    "Bytes that the last collection scanned: heap, "
			    "stack and globals."),
    [GC_SWEEP_ASSIST] =
	SECONDS("/gc/sweep/assist:cpu-seconds",
		"Sweeping beside the threads, by threads of the host; part of "
		"/cpu/classes/user."),
    [GC_SWEEP_BACKGROUND] =
	SECONDS("/gc/sweep/background:cpu-seconds",
		"Sweeping beside the threads, by the background thread; part "
		"of /cpu/classes/user."),
    [GC_SWEEP_DURATION] =
	SECONDS("/gc/sweep/duration:seconds",
		"Wall time of sweeps beside the threads, from the end of a "
		"collection's stop until all was swept."),
    [GC_SWEEP_TOTAL] =
	SECONDS("/gc/sweep/total:cpu-seconds",
		"Sweeping beside the threads: assist and background."),
    [GC_TRACE_DROPPED] =
	COUNTER("/gc/trace/dropped:lines",
		"Lines of gctrace, scavtrace and gcpacertrace that stderr "
		"did not take at once."),
    [MEMORY_HEAP_FREE] = LEVEL("/memory/classes/heap/free:bytes",
			       "Free pages of the heap that are not "
			       "released."),
    [MEMORY_HEAP_OBJECTS] = LEVEL("/memory/classes/heap/objects:bytes",
				  "Objects: alive, or not freed yet."),
    [MEMORY_HEAP_RELEASED] =
	LEVEL("/memory/classes/heap/released:bytes",
	      "Free pages of the heap that were released to the "
	      "system, or never used."),
    [MEMORY_HEAP_STACKS] = LEVEL("/memory/classes/heap/stacks:bytes",
				 "Spans for stacks of interpreters."),
    [MEMORY_HEAP_UNUSED] = LEVEL("/memory/classes/heap/unused:bytes",
				 "What is free in spans that hold "
				 "objects."),
    [MEMORY_MCACHE_FREE] = LEVEL("/memory/classes/metadata/mcache/free:bytes",
				 "Mapped for caches of threads, not in use."),
    [MEMORY_MCACHE_INUSE] = LEVEL("/memory/classes/metadata/mcache/inuse:bytes",
				  "Caches of attached threads."),
    [MEMORY_MSPAN_FREE] = LEVEL("/memory/classes/metadata/mspan/free:bytes",
				"Mapped for span records, not in use."),
    [MEMORY_MSPAN_INUSE] = LEVEL("/memory/classes/metadata/mspan/inuse:bytes",
				 "Span records in use."),
    [MEMORY_METADATA_OTHER] =
	LEVEL("/memory/classes/metadata/other:bytes",
	      "Bitmaps, tables, summaries and work buffers of the "
	      "collector."),
    [MEMORY_OS_STACKS] = LEVEL("/memory/classes/os-stacks:bytes",
			       "Stacks of threads that the library maps "
			       "itself."),
    [MEMORY_OTHER] = LEVEL("/memory/classes/other:bytes",
			   "Everything that is in no other class."),
    [MEMORY_PROFILING_BUCKETS] =
	LEVEL("/memory/classes/profiling/buckets:bytes", "Tables of profiles."),
    [MEMORY_TOTAL] = LEVEL("/memory/classes/total:bytes",
			   "All memory obtained from the system: the sum of "
			   "all other /memory/classes."),
    [MEMORY_EXTERNAL] = LEVEL("/memory/external:bytes",
			      "What objects own outside the heap, as told by "
			      "rt_adjust_external."),
    [MEMORY_MAPPINGS_LIMIT] =
	LEVEL("/memory/mappings/limit:count",
	      "Mappings that the system allows the process."),
    [MEMORY_MAPPINGS] =
	LEVEL("/memory/mappings:count",
	      "Mappings of the heap, counting each apart that the system may "
	      "have joined with its neighbour."),
    [SCHED_GOMAXPROCS] = LEVEL("/sched/gomaxprocs:threads",
			       "Processors that the host means to use."),
    [SCHED_STOPPING_GC] =
	DURATIONS("/sched/pauses/stopping/gc:seconds",
		  "From the request for a stop until all threads "
		  "were stopped, for collections."),
    [SCHED_STOPPING_OTHER] =
	DURATIONS("/sched/pauses/stopping/other:seconds",
		  "From the request for a stop until all threads "
		  "were stopped, for anything but collections."),
    [SCHED_TOTAL_GC] =
	DURATIONS("/sched/pauses/total/gc:seconds",
		  "From the request for a stop until the world was "
		  "started, for collections."),
    [SCHED_TOTAL_OTHER] =
	DURATIONS("/sched/pauses/total/other:seconds",
		  "From the request for a stop until the world was "
		  "started, for anything but collections."),
    [SCHED_THREADS_ATTACHED] =
	LEVEL("/sched/threads/attached:threads", "Threads that are attached."),
};

size_t metrics_count(void)
{
	return METRIC_COUNT;
}

bool metrics_describe(size_t i, rt_metric_desc *d)
{
	if (i >= METRIC_COUNT)
		return false;
	*d = metrics[i];
	return true;
}

// find_metric returns METRIC_COUNT for a name that is null or unknown.
static enum metric find_metric(const char *name)
{
	unsigned lo = 0, hi = METRIC_COUNT;

	while (name && lo < hi) {
		unsigned mid = (lo + hi) / 2;
		int order = strcmp(name, metrics[mid].name);

		if (order == 0)
			return (enum metric)mid;
		if (order < 0)
			hi = mid;
		else
			lo = mid + 1;
	}
	return METRIC_COUNT;
}

// ---- numbers ----

// Every metric that is a number.  Times are in ns.
struct numbers {
	uint64_t of[METRIC_COUNT];
};

// number_objects adds up objects of every size class, and large ones.
static void number_objects(const struct heapstats_totals *h, uint64_t *of)
{
	uint64_t allocs = h->large_alloc_count, alloc_bytes = h->large_alloc;
	uint64_t frees = h->large_free_count, free_bytes = h->large_free;

	for (unsigned c = 1; c < SIZECLASS_COUNT; c++) {
		uint64_t size = sizeclass_table[c].size;

		allocs += h->small_alloc_count[c];
		alloc_bytes += h->small_alloc_count[c] * size;
		frees += h->small_free_count[c];
		free_bytes += h->small_free_count[c] * size;
	}
	of[GC_HEAP_ALLOCS_OBJECTS] = allocs;
	of[GC_HEAP_ALLOCS_BYTES] = alloc_bytes;
	of[GC_HEAP_FREES_OBJECTS] = frees;
	of[GC_HEAP_FREES_BYTES] = free_bytes;
}

static void number_heap(const struct snapshot *s, struct numbers *n)
{
	const struct heapstats_totals *h = &s->heap;
	// cppcheck-suppress ctuuninitvar ; every word is set, then read
	uint64_t *of = n->of;

	number_objects(h, of);
	of[GC_HEAP_OBJECTS] =
	    of[GC_HEAP_ALLOCS_OBJECTS] - of[GC_HEAP_FREES_OBJECTS];
	of[GC_HEAP_TINY_ALLOCS] = h->tiny_alloc_count;
	of[GC_HEAP_GOAL] = s->heap_goal;
	of[GC_HEAP_TRIGGER] = s->heap_goal;
	of[GC_HEAP_USED] = s->heap_used;
	of[GC_HEAP_LIVE] = s->heap_marked;
}

// number_pool splits what is mapped for records of one type.  The two gauges
// are loaded at different moments.  So what is in use is limited to what is
// mapped, which makes the sum right.
static void number_pool(uint64_t sys, uint64_t inuse, uint64_t *free_bytes,
			uint64_t *inuse_bytes)
{
	*inuse_bytes = base_min(inuse, sys);
	*free_bytes = sys - *inuse_bytes;
}

// number_memory must come after number_heap, which counts the objects.
static void number_memory(const struct snapshot *s, struct numbers *n)
{
	const struct heapstats_totals *h = &s->heap;
	uint64_t *of = n->of;
	uint64_t metadata = h->in_work_bufs + h->in_ptr_scalar_bits;

	of[MEMORY_HEAP_OBJECTS] =
	    of[GC_HEAP_ALLOCS_BYTES] - of[GC_HEAP_FREES_BYTES];
	of[MEMORY_HEAP_UNUSED] =
	    s->heapgauges[HEAPGAUGE_IN_USE] - of[MEMORY_HEAP_OBJECTS];
	of[MEMORY_HEAP_STACKS] = h->in_stacks;
	of[MEMORY_HEAP_FREE] = s->heapgauges[HEAPGAUGE_FREE];
	of[MEMORY_HEAP_RELEASED] = s->heapgauges[HEAPGAUGE_RELEASED];
	number_pool(s->mcache_sys, s->mcache_inuse, &of[MEMORY_MCACHE_FREE],
		    &of[MEMORY_MCACHE_INUSE]);
	number_pool(s->mspan_sys, s->mspan_inuse, &of[MEMORY_MSPAN_FREE],
		    &of[MEMORY_MSPAN_INUSE]);
	of[MEMORY_METADATA_OTHER] = s->gc_misc_sys + metadata;
	of[MEMORY_OS_STACKS] = s->stacks_sys;
	of[MEMORY_OTHER] = s->other_sys;
	of[MEMORY_PROFILING_BUCKETS] = s->buckhash_sys;
	of[MEMORY_EXTERNAL] = s->external;
	of[MEMORY_MAPPINGS] = s->mappings;
	of[MEMORY_MAPPINGS_LIMIT] = s->max_mappings;
	of[MEMORY_TOTAL] = snapshot_sys(s);
}

static void number_cycles(const struct snapshot *s, struct numbers *n)
{
	const struct gcstats_cycles *c = &s->cycles;
	uint64_t *of = n->of;

	of[GC_CYCLES_AUTOMATIC] = c->num_gc - c->num_forced_gc;
	of[GC_CYCLES_FORCED] = c->num_forced_gc;
	of[GC_CYCLES_TOTAL] = c->num_gc;
	of[GC_GOGC] = (uint64_t)(int64_t)s->gc_percent;
	of[GC_GOMEMLIMIT] = s->memory_limit;
	of[GC_HEAP_MAX] = s->heap_max;
	of[GC_PHASE] = s->phase;
	of[GC_MARK_HELPERS] = c->helped_objects;
	of[GC_SCAN_HEAP] = c->scan_heap;
	of[GC_SCAN_STACK] = c->scan_stack;
	of[GC_SCAN_GLOBALS] = c->scan_globals;
	of[GC_SCAN_TOTAL] = c->scan_heap + c->scan_stack + c->scan_globals;
	of[GC_SCAN_PAST_END] = c->past_end_objects;
	of[GC_TRACE_DROPPED] = s->trace_dropped;
	of[SCHED_GOMAXPROCS] = s->max_procs;
	of[SCHED_THREADS_ATTACHED] = s->nthreads;
}

static void number_sweep(const struct snapshot *s, struct numbers *n)
{
	const struct gcstats_sweep *w = &s->sweep;
	uint64_t *of = n->of;

	of[GC_SWEEP_ASSIST] = w->cpu[GCSTATS_ASSIST];
	of[GC_SWEEP_BACKGROUND] = w->cpu[GCSTATS_BACKGROUND];
	of[GC_SWEEP_TOTAL] =
	    w->cpu[GCSTATS_ASSIST] + w->cpu[GCSTATS_BACKGROUND];
	of[GC_SWEEP_DURATION] = w->wall;
}

static void number_cpu(const struct snapshot *s, struct numbers *n)
{
	const struct cpustats *c = &s->cpu;
	uint64_t *of = n->of;

	of[CPU_GC_MARK_ASSIST] = c->gc_assist;
	of[CPU_GC_MARK_DEDICATED] = c->gc_dedicated;
	of[CPU_GC_MARK_IDLE] = c->gc_idle;
	of[CPU_GC_PAUSE] = c->gc_pause;
	of[CPU_GC_TOTAL] = c->gc_total;
	of[CPU_SCAVENGE_ASSIST] = c->scavenge_assist;
	of[CPU_SCAVENGE_BACKGROUND] = c->scavenge_background;
	of[CPU_SCAVENGE_TOTAL] = c->scavenge_total;
	of[CPU_IDLE] = c->idle;
	of[CPU_USER] = c->user;
	of[CPU_TOTAL] = c->total;
}

// ---- histograms ----

// read_by_size writes the small counts in order, then the large one.
static void read_by_size(const uint64_t *small, uint64_t large,
			 uint64_t *counts)
{
	memcpy(counts, small + 1, BY_SIZE_LARGE * sizeof *counts);
	counts[BY_SIZE_LARGE] = large;
}

// read_counts writes the counts of histogram m and returns its edges.
static const double *read_counts(const struct snapshot *s, enum metric m,
				 uint64_t *counts)
{
	const struct heapstats_totals *h = &s->heap;

	switch (m) {
	case GC_HEAP_ALLOCS_BY_SIZE:
		read_by_size(h->small_alloc_count, h->large_alloc_count,
			     counts);
		return by_size_edges;
	case GC_HEAP_FREES_BY_SIZE:
		read_by_size(h->small_free_count, h->large_free_count, counts);
		return by_size_edges;
	case SCHED_STOPPING_GC:
		histogram_read(&s->stopping[GCSTATS_GC], counts);
		break;
	case SCHED_STOPPING_OTHER:
		histogram_read(&s->stopping[GCSTATS_OTHER], counts);
		break;
	case SCHED_TOTAL_OTHER:
		histogram_read(&s->total[GCSTATS_OTHER], counts);
		break;
	default: // SCHED_TOTAL_GC and its other name
		histogram_read(&s->total[GCSTATS_GC], counts);
	}
	return histogram_edges();
}

// If there is no room, fill_histogram leaves the sample BAD, and sets ncounts
// to the length needed.
static void fill_histogram(const struct snapshot *s, enum metric m,
			   rt_metric_sample *sample)
{
	size_t room = sample->counts ? sample->ncounts : 0;

	sample->ncounts = metrics[m].ncounts;
	if (room < sample->ncounts)
		return;
	sample->edges = read_counts(s, m, sample->counts);
	sample->result = RT_METRIC_HISTOGRAM;
}

static void fill_sample(const struct snapshot *s, const struct numbers *n,
			rt_metric_sample *sample)
{
	enum metric m = find_metric(sample->name);

	sample->result = RT_METRIC_BAD;
	if (m == METRIC_COUNT) {
		sample->ncounts = 0;
		return;
	}
	switch (metrics[m].result) {
	case RT_METRIC_U64:
		sample->u64 = n->of[m];
		sample->result = RT_METRIC_U64;
		break;
	case RT_METRIC_F64:
		sample->f64 = (double)n->of[m] / 1e9;
		sample->result = RT_METRIC_F64;
		break;
	default:
		fill_histogram(s, m, sample);
	}
}

void metrics_fill(const struct snapshot *s, rt_metric_sample *samples, size_t n)
{
	struct numbers numbers;

	number_heap(s, &numbers);
	number_memory(s, &numbers);
	number_cycles(s, &numbers);
	number_sweep(s, &numbers);
	number_cpu(s, &numbers);
	for (size_t i = 0; i < n; i++)
		fill_sample(s, &numbers, &samples[i]);
}
