// report.c - what the programs did to the memory, for a person to read.
//
// Every number is from rt_read_memstats, one from the metrics, and one,
// for comparison, from the kernel.  The sums are checked here and the last
// lines say so.  The report's own records are malloc's: not in what it shows.
#include "scheme/scheme.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct program {
	struct program *next;
	char name[24];
	double seconds;
	uint64_t bytes, objects, pause_ns;
	uint32_t collections;
};

static struct {
	struct program *first, **end;
	double began; // of the program that runs
	rt_memstats before;
} records = {.end = &records.first};

enum { BAR = 24, TOP_SIZES = 6, NCLASSES = 68 };

// ---- numbers as text

struct text {
	char s[32];
};

static struct text bytes_text(uint64_t n)
{
	static const char *const unit[] = {"B", "KiB", "MiB", "GiB", "TiB"};
	double d = (double)n;
	struct text t;
	int u = 0;

	for (; d >= 1024 && u < 4; u++)
		d /= 1024;
	snprintf(t.s, sizeof t.s, u ? "%.2f %s" : "%.0f %s", d, unit[u]);
	return t;
}

static struct text time_text(uint64_t ns)
{
	struct text t;

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

static struct text count_text(uint64_t n)
{
	struct text t;
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

// A bar of part out of whole, if there is one; something is never nothing.
static struct text bar_text(uint64_t part, uint64_t whole)
{
	struct text t;
	int n = whole ? (int)((double)part / (double)whole * BAR + 0.5) : 0;

	if (n == 0 && part && whole)
		n = 1;
	memset(t.s, '#', (size_t)n);
	t.s[n] = 0;
	return t;
}

static void heading(const char *text)
{
	if (isatty(STDOUT_FILENO))
		printf("\033[1m%s\033[0m\n", text);
	else
		puts(text);
}

// ---- the programs

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

void report_begin(const char *name)
{
	if (records.first)
		putchar('\n');
	heading(name);
	rt_read_memstats(&records.before);
	records.began = now();
}

void report_end(const char *name)
{
	struct program *p = calloc(1, sizeof *p);
	rt_memstats m;

	if (!p || rt_read_memstats(&m) != RT_OK) {
		free(p);
		return;
	}
	snprintf(p->name, sizeof p->name, "%s", name);
	p->seconds = now() - records.began;
	p->bytes = m.total_alloc - records.before.total_alloc;
	p->objects = m.mallocs - records.before.mallocs;
	p->pause_ns = m.pause_total_ns - records.before.pause_total_ns;
	p->collections = m.num_gc - records.before.num_gc;
	*records.end = p;
	records.end = &p->next;
}

static void show_program(const struct program *p)
{
	printf("  %-16s %8.3f s %12s %14s %12" PRIu32 " %11s\n", p->name,
	       p->seconds, bytes_text(p->bytes).s, count_text(p->objects).s,
	       p->collections, time_text(p->pause_ns).s);
}

static void show_programs(void)
{
	struct program all = {.name = "together"};

	putchar('\n');
	heading("programs               time    allocated        objects  "
		"collections      pauses");
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

// ---- what was allocated

static int by_bytes(const void *a, const void *b)
{
	const struct rt_memstats_size *x = a, *y = b;
	uint64_t m = x->size * x->mallocs, n = y->size * y->mallocs;

	return m < n ? 1 : m > n ? -1 : 0;
}

static void show_size(const char *name, uint64_t objects, uint64_t bytes,
		      uint64_t whole)
{
	if (objects)
		printf("  %-16s %14s %12s%s%s\n", name, count_text(objects).s,
		       bytes_text(bytes).s, whole ? "  " : "",
		       bar_text(bytes, whole).s);
}

static void show_allocated(const rt_memstats *m)
{
	struct rt_memstats_size size[RT_BY_SIZE];
	uint64_t objects = m->mallocs, bytes = m->total_alloc;

	memcpy(size, m->by_size, sizeof size);
	qsort(size, RT_BY_SIZE, sizeof *size, by_bytes);
	putchar('\n');
	heading("allocated               objects        bytes");
	for (int i = 0; i < TOP_SIZES; i++) {
		uint64_t n = size[i].mallocs, b = n * size[i].size;
		char name[16];

		snprintf(name, sizeof name, "%" PRIu32 " bytes", size[i].size);
		show_size(name, n, b, m->total_alloc);
		objects -= n;
		bytes -= b;
	}
	show_size("other sizes", objects, bytes, m->total_alloc);
	show_size("together", m->mallocs, m->total_alloc, 0);
	show_size("freed again", m->frees, m->total_alloc - m->alloc, 0);
	show_size("in the heap", m->heap_objects, m->alloc, 0);
}

// ---- collections

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static void show_collections(const rt_memstats *m)
{
	uint64_t pause[RT_PAUSES];
	size_t n = m->num_gc < RT_PAUSES ? m->num_gc : RT_PAUSES;

	putchar('\n');
	heading("collections");
	printf("  %" PRIu32 " in all, %" PRIu32 " on request, %.1f %% of the "
	       "CPU time\n",
	       m->num_gc, m->num_forced_gc, 100 * m->gc_cpu_fraction);
	if (!n)
		return;
	memcpy(pause, m->pause_ns, n * sizeof *pause);
	qsort(pause, n, sizeof *pause, by_value);
	printf("  pauses: %s in all; ", time_text(m->pause_total_ns).s);
	if (n < m->num_gc)
		printf("of the last %zu ", n);
	printf("median %s, longest %s\n", time_text(pause[n / 2]).s,
	       time_text(pause[n - 1]).s);
}

// ---- memory

// The resident set as the kernel counts it, code and libraries included.
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

static void take(struct moment *at)
{
	at->resident = resident();
	rt_read_memstats(&at->m);
}

// The parts of Sys, as the rows of the table.
enum { NPARTS = 8 };
struct part {
	const char *name;
	uint64_t bytes;
};

static void split(const rt_memstats *m, struct part part[NPARTS])
{
	uint64_t idle = m->heap_idle - m->heap_released;
	struct part parts[NPARTS] = {
	    {"objects", m->heap_alloc},
	    {"room between them", m->heap_inuse - m->heap_alloc},
	    {"free pages", idle},
	    {"given back", m->heap_released},
	    {"stacks", m->stack_sys},
	    {"spans, caches", m->mspan_sys + m->mcache_sys},
	    {"collector", m->gc_sys},
	    {"other", m->other_sys + m->buckhash_sys},
	};

	memcpy(part, parts, sizeof parts);
}

static bool parts_add_up(const rt_memstats *m)
{
	struct part part[NPARTS];
	uint64_t sum = 0;

	split(m, part);
	for (int i = 0; i < NPARTS; i++)
		sum += part[i].bytes;
	return sum == m->sys;
}

static void show_row(const char *name, uint64_t then, uint64_t after,
		     const char *bar)
{
	printf("  %-20s %12s %12s%s%s\n", name, bytes_text(then).s,
	       bytes_text(after).s, *bar ? "  " : "", bar);
}

static void show_memory(const struct moment *end, const struct moment *after)
{
	struct part then[NPARTS], later[NPARTS];

	putchar('\n');
	heading("memory from the system    at the end     after rt_free_os_"
		"memory");
	split(&end->m, then);
	split(&after->m, later);
	for (int i = 0; i < NPARTS; i++)
		if (then[i].bytes || later[i].bytes)
			show_row(then[i].name, then[i].bytes, later[i].bytes,
				 bar_text(later[i].bytes, after->m.sys).s);
	show_row("together (Sys)", end->m.sys, after->m.sys, "");
	show_row("held (Sys - given)", end->m.sys - end->m.heap_released,
		 after->m.sys - after->m.heap_released, "");
	if (end->resident && after->resident)
		show_row("resident (kernel)", end->resident, after->resident,
			 "");
}

// ---- checks

// The objects of every size, from the metrics, and tiny ones, must be those
// of the memory statistics, which count them elsewhere.
static bool sizes_add_up(void)
{
	uint64_t counts[NCLASSES], sum = 0;
	rt_memstats m;
	rt_metric_sample sample[] = {
	    {.name = "/gc/heap/allocs-by-size:bytes",
	     .counts = counts,
	     .ncounts = NCLASSES},
	    {.name = "/gc/heap/tiny/allocs:objects"},
	};

	if (rt_metrics_read(sample, 2) != RT_OK ||
	    rt_read_memstats(&m) != RT_OK ||
	    sample[0].kind != RT_METRIC_HISTOGRAM ||
	    sample[1].kind != RT_METRIC_U64)
		return false;
	for (size_t i = 0; i < sample[0].ncounts; i++)
		sum += counts[i];
	return sum + sample[1].u64 == m.mallocs;
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

// What was allocated less what was freed must be what a walk over the heap
// finds, object by object.
static bool objects_add_up(void)
{
	struct there t = {0};
	rt_memstats m;
	bool right;

	if (rt_stop_the_world(RT_STOP_HOST) != RT_OK)
		return false;
	right = rt_read_memstats(&m) == RT_OK &&
		rt_heap_walk(add_object, &t) == RT_OK &&
		m.mallocs - m.frees == t.objects && m.heap_alloc == t.bytes;
	rt_start_the_world(NULL);
	return right;
}

static const char *verdict(bool right)
{
	return right ? "yes" : "NO";
}

bool report(void)
{
	struct moment end, after;

	take(&end);
	rt_free_os_memory();
	take(&after);
	show_programs();
	show_allocated(&end.m);
	show_collections(&end.m);
	show_memory(&end, &after);

	bool parts = parts_add_up(&end.m) && parts_add_up(&after.m);
	bool sizes = sizes_add_up();
	bool objects = objects_add_up();
	putchar('\n');
	heading("checked");
	printf("  the parts of Sys add up to Sys: %s\n", verdict(parts));
	printf("  objects of all sizes are all objects: %s\n", verdict(sizes));
	printf("  allocated less freed is what is there: %s\n",
	       verdict(objects));
	return parts && sizes && objects;
}
