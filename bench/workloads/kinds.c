// kinds.c - what registered kinds cost where no object of them is marked.
//
// usage: kinds collect|attach|memory [alone]
//
// - collect: microseconds that 16 kinds without objects add to a collection of
//   nothing.
// - attach: microseconds that the first objects of 8 kinds, one of each, add to
//   attaching and detaching a thread.  The first time is not counted.
// - memory: the pages of objects of three words of a kind that is aligned to 8,
//   over those of a kind that is aligned to 16.
//
// Rounds with the kinds and without them take turns.  A sample is the
// difference between the times of two such rounds.  The value is the median of
// the samples.  The figures are the medians of both times.  With alone, only
// the rounds with the kinds run, for count.sh.  The figure of memory is what
// one kind takes of a thread's cache.  The checksum is the number of samples or
// objects.
//
// Good: collect at most 2 us, attach at most 20 us, memory at most 0.78; a kind
// takes at most 6.5 KiB of a thread that uses it.
#include "harness.h"

#ifndef RT_KIND_H
#error "only rtheap has kinds"
#endif

enum {
	SAMPLES = PEER_DIVISOR > 1 ? 10 : 1000,
	UNUSED = 16,
	USED = 8,
	WORDS3 = 24,
	OBJECTS = 1000000 / PEER_DIVISOR,
};

static int registered(int number)
{
	rt_kind_desc d;
	int kind;

	rt_kind_desc_init(&d);
	d.layout = RT_LAYOUT_WORDS;
	d.number = number;
	kind = rt_kind_register(&d);
	if (kind < 0)
		peer_die("no kind");
	return kind;
}

static uint64_t mcache_bytes(void)
{
	static rt_memstats m;

	heap_must(rt_read_memstats(&m), "rt_read_memstats");
	return m.mcache_inuse;
}

// timed runs what once, and returns its microseconds.
static double timed(void (*what)(int kinds), int kinds, struct peer_time *t)
{
	struct peer_time one = {0};

	peer_start(&one);
	what(kinds);
	peer_stop(&one);
	t->wall += one.wall;
	t->cpu += one.cpu;
	return one.wall * 1e6;
}

// ---- collect ----

static void collect(int kinds)
{
	(void)kinds;
	heap_collect();
}

// ---- attach ----

static void attach(int kinds)
{
	heap_attach();
	for (int k = 0; k < kinds; k++)
		peer_keep(peer_need(rt_alloc_of(RT_KIND_FIRST + k, 64)));
	heap_detach();
}

// ---- times ----

struct job {
	void (*what)(int kinds);
	bool registers; // the kinds exist only in samples that have them
	int kinds;
	bool alone;
	double more[SAMPLES], with[SAMPLES], without[SAMPLES];
	struct peer_time t;
};

static void begin_kinds(const struct job *job)
{
	for (int k = 0; k < job->kinds; k++)
		registered(RT_KIND_FIRST + k);
}

static void end_kinds(const struct job *job)
{
	for (int k = 0; k < job->kinds; k++)
		heap_must(rt_kind_unregister(RT_KIND_FIRST + k),
			  "rt_kind_unregister");
}

static void sample(struct job *job, int i)
{
	if (!job->alone)
		job->without[i] = timed(job->what, 0, &job->t);
	if (job->registers)
		begin_kinds(job);
	job->with[i] = timed(job->what, job->kinds, &job->t);
	if (job->registers)
		end_kinds(job);
	job->more[i] = job->with[i] - job->without[i];
}

// times runs on a thread that is not attached if what attaches.
static void times(struct job *job)
{
	for (int i = 0; i < SAMPLES; i++)
		sample(job, i);
	peer_figure("with_us", peer_median(job->with, SAMPLES));
	peer_figure("without_us", peer_median(job->without, SAMPLES));
}

static void *thread_main(void *arg)
{
	attach(USED);
	times(arg);
	return NULL;
}

static void collect_times(struct job *job)
{
	job->what = collect;
	job->registers = true;
	job->kinds = UNUSED;
	collect(0);
	times(job);
}

static void attach_times(struct job *job)
{
	pthread_t thread;

	job->what = attach;
	job->kinds = USED;
	begin_kinds(job);
	if (pthread_create(&thread, NULL, thread_main, job))
		peer_die("no thread");
	heap_block();
	pthread_join(thread, NULL);
	heap_unblock();
}

// ---- memory ----

// pages returns the bytes of pages that the objects of a kind take.
static uint64_t pages(int kind)
{
	uint64_t before = heap_stats_exact();
	void **first = NULL;
	uint64_t after;

	for (int i = 0; i < OBJECTS; i++) {
		void **object = peer_need(rt_alloc_of(kind, WORDS3));

		object[0] = first;
		first = object;
	}
	after = heap_stats_exact();
	peer_keep(first);
	return after - before;
}

static double memory(void)
{
	int wide = registered(5), dense = registered(RT_KIND_ALIGN8_FIRST);
	uint64_t none = mcache_bytes(), bytes;

	peer_keep(peer_need(rt_alloc_of(wide, WORDS3)));
	peer_figure("kind_KiB", (double)(mcache_bytes() - none) / 1024);
	bytes = pages(wide);
	return (double)pages(dense) / (double)bytes;
}

int main(int argc, char **argv)
{
	const char *what = peer_word(argc, argv, 1);
	static struct job job;

	job.alone = argc > 2 && !strcmp(argv[2], "alone");
	heap_begin();
	heap_must(rt_set_gc_percent(-1, NULL), "rt_set_gc_percent");
	if (!strcmp(what, "memory")) {
		peer_report(memory(), "x", &job.t, OBJECTS);
		return 0;
	}
	if (!strcmp(what, "collect"))
		collect_times(&job);
	else if (!strcmp(what, "attach"))
		attach_times(&job);
	else
		peer_die("no such measurement");
	peer_report(peer_median(job.more, SAMPLES), "us", &job.t, SAMPLES);
	return 0;
}
