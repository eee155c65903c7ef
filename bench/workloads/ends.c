// ends.c - what destructors that do nothing cost.
//
// usage: ends time|none|once|late|never
//
// A program keeps its newest LIVE objects of 48 bytes, and makes OBJECTS.
//
// - time: the nanoseconds of the processor that an object with a destructor
//   takes beyond one without, where the host runs destructors now and then.
//   Samples of both sorts take turns; the value is the median of the
//   differences.
// - none, once, late, never: the peak in MiB of a program.  With none, objects
//   have no destructors.  The host runs destructors now and then (once), when
//   ten times LIVE are ready (late), or not at all (never, with a tenth of the
//   objects).
//
// The checksum is OBJECTS.
//
// Good: time at most 25 ns, once at most 1.1 times none.
#include "harness.h"

#ifndef RT_FINAL_H
#error "only rtheap has destructors"
#endif

enum {
	SAMPLES = 10,
	OBJECTS = 10000000 / PEER_DIVISOR,
	LIVE = 200000 / PEER_DIVISOR,
	SIZE = 48,
	EVERY = 1000, // objects between two looks at what is ready
};

static void *live[LIVE];
static int plain, dropping;

static void drop(void *obj, size_t size, void *arg)
{
	(void)obj;
	(void)size;
	(void)arg;
}

static int registered(uint32_t flags)
{
	rt_kind_desc d;
	int kind;

	rt_kind_desc_init(&d);
	d.layout = RT_LAYOUT_WORDS;
	d.flags = flags;
	d.drop = flags ? drop : NULL;
	kind = rt_kind_register(&d);
	if (kind < 0)
		peer_die("no kind");
	return kind;
}

// make makes n objects.  run_from: destructors run when so many are ready.
static void make(int kind, size_t n, size_t run_from)
{
	for (size_t i = 0; i < n; i++) {
		live[i % LIVE] = peer_need(rt_alloc_of(kind, SIZE));
		if (i % EVERY == 0 && rt_finalizers_ready() >= run_from)
			rt_run_finalizers(0);
	}
}

static double timed(int kind, struct peer_time *t)
{
	struct peer_time one = {0};

	peer_start(&one);
	make(kind, OBJECTS / SAMPLES, 1);
	// Each sort must pay for its own dead objects.
	memset(live, 0, sizeof live);
	heap_collect();
	rt_run_finalizers(0);
	peer_stop(&one);
	t->wall += one.wall;
	t->cpu += one.cpu;
	return one.cpu * 1e9 / (OBJECTS / SAMPLES);
}

static double times(struct peer_time *t)
{
	double with[SAMPLES], without[SAMPLES], more[SAMPLES];

	for (int i = 0; i < SAMPLES; i++) {
		without[i] = timed(plain, t);
		with[i] = timed(dropping, t);
		more[i] = with[i] - without[i];
	}
	peer_figure("with_ns", peer_median(with, SAMPLES));
	peer_figure("without_ns", peer_median(without, SAMPLES));
	return peer_median(more, SAMPLES);
}

static double peak(const char *what, struct peer_time *t)
{
	peer_start(t);
	if (!strcmp(what, "none"))
		make(plain, OBJECTS, SIZE_MAX);
	else if (!strcmp(what, "once"))
		make(dropping, OBJECTS, 1);
	else if (!strcmp(what, "late"))
		make(dropping, OBJECTS, 10 * LIVE);
	else if (!strcmp(what, "never"))
		make(dropping, OBJECTS / 10, SIZE_MAX);
	else
		peer_die("no such measurement");
	peer_stop(t);
	return (double)peer_peak_kib() / 1024;
}

int main(int argc, char **argv)
{
	const char *what = peer_word(argc, argv, 1);
	struct peer_time t = {0};

	heap_begin();
	heap_must(rt_roots_add(live, live + LIVE, RT_ROOT_EXACT),
		  "rt_roots_add");
	plain = registered(0);
	dropping = registered(RT_KIND_DROP);
	if (!strcmp(what, "time"))
		peer_report(times(&t), "ns", &t, OBJECTS);
	else
		peer_report(peak(what, &t), "MiB", &t, OBJECTS);
	return 0;
}
