// records.c - what each program did to the memory, for --report.
//
// The records are in malloc's memory, so that they do not show in the report.
#include "scheme.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../report.h"

struct program {
	struct program *next;
	const char *name;
	double seconds;
	uint64_t bytes, objects, pause_ns;
	uint32_t collections;
};

static struct {
	struct program *first, **end;
	double began; // of the program that runs
	rt_memstats before;
} records = {.end = &records.first};

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

bool records_begin(const char *name)
{
	if (records.first)
		putchar('\n');
	report_heading(stdout, name);
	records.began = now();
	return rt_read_memstats(&records.before) == RT_OK;
}

bool records_end(const char *name)
{
	struct program *p = calloc(1, sizeof *p);
	const rt_memstats *before = &records.before;
	rt_memstats m;

	if (!p || rt_read_memstats(&m) != RT_OK) {
		free(p);
		return false;
	}
	p->name = name;
	p->seconds = now() - records.began;
	p->bytes = m.total_alloc - before->total_alloc;
	p->objects = m.mallocs - before->mallocs;
	p->pause_ns = m.pause_total_ns - before->pause_total_ns;
	p->collections = m.num_gc - before->num_gc;
	*records.end = p;
	records.end = &p->next;
	return true;
}

static void show_program(const struct program *p)
{
	printf("  %-16s %8.3f s %12s %14s %12" PRIu32 " %11s\n", p->name,
	       p->seconds, report_bytes(p->bytes).s, report_count(p->objects).s,
	       p->collections, report_time(p->pause_ns).s);
}

void records_print(void)
{
	struct program all = {.name = "together"};

	putchar('\n');
	report_heading(stdout,
		       "programs               time    allocated        "
		       "objects  collections      pauses");
	for (struct program *p = records.first; p; p = p->next) {
		show_program(p);
		all.seconds += p->seconds;
		all.bytes += p->bytes;
		all.objects += p->objects;
		all.pause_ns += p->pause_ns;
		all.collections += p->collections;
	}
	show_program(&all);
}
