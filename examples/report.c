// report.c - what a host did to the memory, for a person to read.
//
// Every number is from rt_read_memstats, with three exceptions for comparison:
// two metrics, a walk over the heap, and the kernel's count of resident pages.
#define _POSIX_C_SOURCE 200809L // fileno
#include "report.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <rt/rt.h>

enum { BAR = 24, TOP_SIZES = 6, NCLASSES = 68 };

// ---- numbers as text

struct report_text report_bytes(uint64_t n)
{
	static const char *const unit[] = {"B", "KiB", "MiB", "GiB", "TiB"};
	double d = (double)n;
	struct report_text t;
	int u = 0;

	for (; d >= 1024 && u < 4; u++)
		d /= 1024;
	snprintf(t.s, sizeof t.s, u ? "%.2f %s" : "%.0f %s", d, unit[u]);
	return t;
}

struct report_text report_time(uint64_t ns)
{
	struct report_text t;

	if (ns < 1000)
		snprintf(t.s, sizeof t.s, "%" PRIu64 " ns", ns);
	else if (ns < 1000000)
		snprintf(t.s, sizeof t.s, "%.1f us", (double)ns / 1e3);
	else if (ns < 1000000000)
		snprintf(t.s, sizeof t.s, "%.2f ms", (double)ns / 1e6);
	else
		snprintf(t.s, sizeof t.s, "%.2f s", (double)ns / 1e9);
	return t;
}

struct report_text report_count(uint64_t n)
{
	struct report_text t;
	char digits[24];
	int len = snprintf(digits, sizeof digits, "%" PRIu64, n);
	char *to = t.s;

	for (int i = 0; i < len; i++) {
		if (i && (len - i) % 3 == 0)
			*to++ = ',';
		*to++ = digits[i];
	}
	*to = 0;
	return t;
}

// bar_text returns a bar of part out of whole, empty if whole is 0.  A part
// above 0 always shows.
static struct report_text bar_text(uint64_t part, uint64_t whole)
{
	struct report_text t;
	int n = whole ? (int)((double)part / (double)whole * BAR + 0.5) : 0;

	if (n == 0 && part && whole)
		n = 1;
	memset(t.s, '#', (size_t)n);
	t.s[n] = 0;
	return t;
}

void report_heading(FILE *out, const char *text)
{
	fprintf(out, isatty(fileno(out)) ? "\033[1m%s\033[0m\n" : "%s\n", text);
}

static void section(FILE *out, const char *text)
{
	putc('\n', out);
	report_heading(out, text);
}

// ---- what was allocated

static int by_bytes(const void *a, const void *b)
{
	const struct rt_memstats_size *x = a, *y = b;
	uint64_t m = x->size * x->mallocs, n = y->size * y->mallocs;

	return m < n ? 1 : m > n ? -1 : 0;
}

static void show_size(FILE *out, const char *name, uint64_t objects,
		      uint64_t bytes, const char *bar)
{
	if (objects)
		fprintf(out, "  %-16s %14s %12s%s%s\n", name,
			report_count(objects).s, report_bytes(bytes).s,
			*bar ? "  " : "", bar);
}

static void show_allocated(FILE *out, const rt_memstats *m)
{
	struct rt_memstats_size size[RT_BY_SIZE];
	uint64_t objects = m->mallocs, bytes = m->total_alloc;

	memcpy(size, m->by_size, sizeof size);
	qsort(size, RT_BY_SIZE, sizeof *size, by_bytes);
	section(out, "allocated               objects        bytes");
	for (int i = 0; i < TOP_SIZES; i++) {
		uint64_t n = size[i].mallocs, b = n * size[i].size;
		char name[24];

		snprintf(name, sizeof name, "%" PRIu32 " bytes", size[i].size);
		show_size(out, name, n, b, bar_text(b, m->total_alloc).s);
		objects -= n;
		bytes -= b;
	}
	show_size(out, "other sizes", objects, bytes,
		  bar_text(bytes, m->total_alloc).s);
	show_size(out, "together", m->mallocs, m->total_alloc, "");
	show_size(out, "freed again", m->frees, m->total_alloc - m->alloc, "");
	show_size(out, "in the heap", m->heap_objects, m->alloc, "");
}

// ---- collections

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static void show_collections(FILE *out, const rt_memstats *m)
{
	uint64_t pause[RT_PAUSES];
	size_t n = m->num_gc < RT_PAUSES ? m->num_gc : RT_PAUSES;

	section(out, "collections");
	fprintf(out,
		"  %" PRIu32 " in all, %" PRIu32
		" on request, %.1f %% of the CPU time\n",
		m->num_gc, m->num_forced_gc, 100 * m->gc_cpu_fraction);
	if (!n)
		return;
	memcpy(pause, m->pause_ns, n * sizeof *pause);
	qsort(pause, n, sizeof *pause, by_value);
	fprintf(out, "  pauses: %s in all; ", report_time(m->pause_total_ns).s);
	if (n < m->num_gc)
		fprintf(out, "of the last %zu ", n);
	fprintf(out, "median %s, longest %s\n", report_time(pause[n / 2]).s,
		report_time(pause[n - 1]).s);
}

// ---- memory

// resident returns what the kernel counts, including code and libraries, or 0.
static uint64_t resident(void)
{
	uint64_t pages = 0;
	FILE *f = fopen("/proc/self/statm", "re");

	if (!f)
		return 0;
	if (fscanf(f, "%*u %" SCNu64, &pages) != 1)
		pages = 0;
	fclose(f);
	return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

struct moment {
	rt_memstats m;
	uint64_t resident;
};

static bool take(struct moment *at)
{
	at->resident = resident();
	return rt_read_memstats(&at->m) == RT_OK;
}

// The parts of Sys, as the rows of the table.
enum { NPARTS = 8 };
struct part {
	const char *name;
	uint64_t bytes;
};

static void split(const rt_memstats *m, struct part part[NPARTS])
{
	const struct part parts[NPARTS] = {
	    {"objects", m->heap_alloc},
	    {"room between them", m->heap_inuse - m->heap_alloc},
	    {"free pages", m->heap_idle - m->heap_released},
	    {"released", m->heap_released},
	    {"stacks", m->stack_sys},
	    {"spans, caches", m->mspan_sys + m->mcache_sys},
	    {"collector", m->gc_sys},
	    {"other", m->other_sys + m->buckhash_sys},
	};

	memcpy(part, parts, sizeof parts);
}

static void show_row(FILE *out, const char *name, uint64_t then, uint64_t after,
		     const char *bar)
{
	fprintf(out, "  %-20s %12s %12s%s%s\n", name, report_bytes(then).s,
		report_bytes(after).s, *bar ? "  " : "", bar);
}

static void show_memory(FILE *out, const struct moment *end,
			const struct moment *after)
{
	struct part then[NPARTS], later[NPARTS];

	section(out, "memory from the system    at the end     after rt_free_"
		     "os_memory");
	split(&end->m, then);
	split(&after->m, later);
	for (int i = 0; i < NPARTS; i++)
		if (then[i].bytes || later[i].bytes)
			show_row(out, then[i].name, then[i].bytes,
				 later[i].bytes,
				 bar_text(later[i].bytes, after->m.sys).s);
	show_row(out, "together (Sys)", end->m.sys, after->m.sys, "");
	show_row(out, "held (not released)", end->m.sys - end->m.heap_released,
		 after->m.sys - after->m.heap_released, "");
	if (end->resident && after->resident)
		show_row(out, "resident (kernel)", end->resident,
			 after->resident, "");
}

// ---- checks

static bool parts_add_up(const rt_memstats *m)
{
	struct part part[NPARTS];
	uint64_t sum = 0;

	split(m, part);
	for (int i = 0; i < NPARTS; i++)
		sum += part[i].bytes;
	return sum == m->sys;
}

// sizes_add_up compares the objects of every size and the tiny ones, both from
// the metrics, with the memory statistics, which are counted elsewhere.
static bool sizes_add_up(const rt_memstats *m)
{
	uint64_t counts[NCLASSES], sum = 0;
	rt_metric_sample sample[] = {
	    {.name = "/gc/heap/allocs-by-size:bytes",
	     .counts = counts,
	     .ncounts = NCLASSES},
	    {.name = "/gc/heap/tiny/allocs:objects"},
	};

	if (rt_metrics_read(sample, 2) != RT_OK ||
	    sample[0].result != RT_METRIC_HISTOGRAM ||
	    sample[1].result != RT_METRIC_U64)
		return false;
	for (size_t i = 0; i < sample[0].ncounts; i++)
		sum += counts[i];
	return sum + sample[1].u64 == m->mallocs;
}

struct there {
	uint64_t objects, bytes;
};

static int add_object(void *obj, size_t size, int kind, void *arg)
{
	struct there *t = arg;

	(void)obj;
	(void)kind;
	t->objects++;
	t->bytes += size;
	return 0;
}

// objects_add_up compares the objects allocated and not freed with those that a
// walk over the heap finds one by one.
static bool objects_add_up(const rt_memstats *m)
{
	struct there t = {0};

	return rt_heap_walk(add_object, &t) == RT_OK &&
	       m->mallocs - m->frees == t.objects && m->heap_alloc == t.bytes;
}

// compare_counts stops the world, so that no thread allocates between two of
// the counts.
static bool compare_counts(bool *sizes, bool *objects)
{
	rt_memstats m;

	if (rt_stop_the_world(RT_STOP_HOST) != RT_OK)
		return false;
	bool read = rt_read_memstats(&m) == RT_OK;
	*sizes = read && sizes_add_up(&m);
	*objects = read && objects_add_up(&m);
	return rt_start_the_world(NULL) == RT_OK;
}

static const char *verdict(bool right)
{
	return right ? "yes" : "NO";
}

static bool show_checks(FILE *out, const struct moment *end,
			const struct moment *after)
{
	bool parts = parts_add_up(&end->m) && parts_add_up(&after->m);
	bool sizes, objects;

	if (!compare_counts(&sizes, &objects))
		return false;
	section(out, "checked");
	fprintf(out, "  the parts of Sys add up to Sys: %s\n", verdict(parts));
	fprintf(out, "  objects of all sizes are all objects: %s\n",
		verdict(sizes));
	fprintf(out, "  allocated less freed is what is there: %s\n",
		verdict(objects));
	return parts && sizes && objects;
}

bool report_print(FILE *out)
{
	struct moment end, after;

	if (!take(&end) || rt_free_os_memory() != RT_OK || !take(&after))
		return false;
	show_allocated(out, &end.m);
	show_collections(out, &end.m);
	show_memory(out, &end, &after);
	return show_checks(out, &end, &after) && fflush(out) == 0 &&
	       !ferror(out);
}
