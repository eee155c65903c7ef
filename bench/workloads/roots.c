// roots.c - what a collection takes for roots that a host tells.
//
// usage: roots callback|range|none|one|static
//
// - callback: nanoseconds for each of 100 000 references that a root callback
//   tells, by rt_trace_ptr, marking included.
// - range: the same if the references are in a registered range.
// - none, one: milliseconds for a registered range of 1 MiB in a format of NaN
//   boxes.  All are numbers, or every second one refers to one object.
// - static: milliseconds for the static data of the program and of its
//   libraries (rt_roots_static), with an array of 1 MiB without references.
//
// Each reference of a callback or range has an object of 32 bytes of its own.
// The value is the least of all rounds, in processor time, less the least of a
// collection without the roots.  There is one marker.  The checksum is the
// number of references or bytes.
//
// Good: callback and range at most 15 ns.
#include "harness.h"

#ifndef RT_KIND_H
#error "only rtheap has roots in a format"
#endif

enum {
	REFERENCES = 100000 / PEER_DIVISOR,
	ROUNDS = PEER_DIVISOR > 1 ? 1 : 25,
	VALUES = (1 << 20) / sizeof(uint64_t),
};

#define BOX UINT64_C(0xfffa000000000000) // of a reference

static const rt_value_format nan_boxes =
    RT_FORMAT_NAN_BOX(BOX, BOX | UINT64_C(0xffffffffffff));

static uint64_t values[VALUES];

static void begin(void)
{
	rt_config c;

	rt_config_init(&c);
	heap_must(rt_config_from_env(&c), "rt_config_from_env");
	c.gc_threads = 0;
	c.gc_percent = -1;
	heap_must(rt_init(&c), "rt_init");
}

// ---- callback and range ----

// The references are in memory that the collector does not look at by itself.
static void **references_make(void)
{
	void **all = peer_need(calloc(REFERENCES, sizeof *all));

	heap_hold(all, all + REFERENCES);
	for (int i = 0; i < REFERENCES; i++)
		all[i] = peer_alloc_noscan(32);
	heap_drop(all, all + REFERENCES);
	return all;
}

static void tell(rt_tracer *t, void *arg)
{
	void *const *all = arg;

	for (int i = 0; i < REFERENCES; i++)
		rt_trace_ptr(t, all[i]);
}

static void add_callback(void **all)
{
	heap_must(rt_roots_add_fn(tell, all, NULL), "rt_roots_add_fn");
}

static void add_range(void **all)
{
	heap_hold(all, all + REFERENCES);
}

static double references(void (*add)(void **all), double nothing,
			 struct peer_time *t)
{
	void **all = references_make();

	add(all);
	return (peer_least(heap_collect, ROUNDS, t) - nothing) * 1e9 /
	       REFERENCES;
}

// ---- values and static data ----

static double values_time(bool one, double nothing, struct peer_time *t)
{
	uint64_t object = BOX | (uint64_t)(uintptr_t)peer_alloc(16);

	for (size_t i = 0; i < VALUES; i++)
		values[i] = one && i % 2 ? object : i;
	heap_must(rt_roots_add_values(values, values + VALUES, &nan_boxes, 0),
		  "rt_roots_add_values");
	return (peer_least(heap_collect, ROUNDS, t) - nothing) * 1e3;
}

static double static_time(double nothing, struct peer_time *t)
{
	heap_must(rt_roots_static(1), "rt_roots_static");
	return (peer_least(heap_collect, ROUNDS, t) - nothing) * 1e3;
}

int main(int argc, char **argv)
{
	const char *what = peer_word(argc, argv, 1);
	struct peer_time t = {0}, before = {0};
	double nothing;

	begin();
	nothing = peer_least(heap_collect, ROUNDS, &before);
	if (!strcmp(what, "callback"))
		peer_report(references(add_callback, nothing, &t), "ns", &t,
			    REFERENCES);
	else if (!strcmp(what, "range"))
		peer_report(references(add_range, nothing, &t), "ns", &t,
			    REFERENCES);
	else if (!strcmp(what, "none") || !strcmp(what, "one"))
		peer_report(values_time(!strcmp(what, "one"), nothing, &t),
			    "ms", &t, sizeof values);
	else if (!strcmp(what, "static"))
		peer_report(static_time(nothing, &t), "ms", &t, sizeof values);
	else
		peer_die("no such measurement");
	return 0;
}
