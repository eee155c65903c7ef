// gctrace.c - writes the record of a collection as a line of text.
#include "gc/cycle/gctrace.h"

#include "runtime/os/oscall.h"
#include "runtime/os/schedpoint.h"
#include "runtime/world/cyclering.h"
#include "runtime/world/heapstats.h"

struct gctrace gctrace;

enum { STDERR = 2 };

// What is known of the collection of the present stop.  The thread that
// collects uses it while it has the right to stop the world.  There is no check
// function: any numbers are possible.
static struct gctrace_cycle noted;

void gctrace_reset(void)
{
	atomic_u64_store_relaxed(&gctrace.dropped, 0);
}

// text_decimal writes n / 10^digits, as Go's itoaDiv.
static void text_decimal(struct text *t, uint64_t n, unsigned digits)
{
	uint64_t unit = 1;

	for (unsigned i = 0; i < digits; i++)
		unit *= 10;
	text_u64(t, n / unit);
	if (digits == 0)
		return;
	text_str(t, ".");
	for (n %= unit, unit /= 10; unit != 0; unit /= 10)
		text_u64(t, n / unit % 10);
}

// text_ms writes ns as ms with two significant digits, or as whole ms from 10
// on, as Go's fmtNSAsMS.
static void text_ms(struct text *t, uint64_t ns)
{
	uint64_t x = ns / 1000;
	unsigned digits = 3;

	if (ns >= 10 * 1000 * 1000) {
		text_u64(t, ns / (1000 * 1000));
		return;
	}
	if (x == 0) {
		text_str(t, "0");
		return;
	}
	for (; x >= 100; x /= 10)
		digits--;
	text_decimal(t, x, digits);
}

static void text_mb(struct text *t, uint64_t bytes, const char *what)
{
	text_u64(t, bytes >> 20);
	text_str(t, what);
}

// times_procs returns ns times the number of processors.
static uint64_t times_procs(const rt_cycle *c, uint64_t ns)
{
	uint64_t all;

	return __builtin_mul_overflow(ns, (uint64_t)c->max_procs, &all)
		   ? UINT64_MAX
		   : all;
}

static uint64_t percent(double fraction)
{
	return fraction > 0 && fraction <= 1 ? (uint64_t)(100 * fraction) : 0;
}

void gctrace_format(struct text *t, const rt_cycle *c)
{
	uint64_t before = c->stopping_ns + c->prepare_ns;
	uint64_t after = c->sweep_ns + c->finish_ns;

	text_init(t);
	text_str(t, "gc ");
	text_u64(t, c->number);
	text_str(t, " @");
	text_decimal(t, c->start_ns / (1000 * 1000), 3);
	text_str(t, "s ");
	text_u64(t, percent(c->gc_cpu_fraction));
	text_str(t, "%: ");
	text_ms(t, before);
	text_str(t, "+");
	text_ms(t, c->mark_ns);
	text_str(t, "+");
	text_ms(t, after);
	text_str(t, " ms clock, ");
	text_ms(t, times_procs(c, before));
	text_str(t, "+0/"); // no thread has to mark to allocate
	text_ms(t, c->mark_cpu_ns);
	text_str(t, "/0+"); // no processor that is idle marks
	text_ms(t, times_procs(c, after));
	text_str(t, " ms cpu, ");
	text_mb(t, c->heap_start, "->");
	text_mb(t, c->heap_flushed, "->");
	text_mb(t, c->heap_live, " MB, ");
	text_mb(t, c->goal, " MB goal, ");
	text_mb(t, c->scan_stack, " MB stacks, ");
	text_mb(t, c->scan_globals, " MB globals, ");
	text_u64(t, c->max_procs);
	text_str(t, c->forced ? " P (forced)\n" : " P\n");
}

// ---- gctrace=2 ----

// text_parts writes what is scanned, what is not, and both.
static void text_parts(struct text *t, const uint64_t *part, const char *what)
{
	text_u64(t, part[SCANSTATS_SCANNED]);
	text_str(t, "+");
	text_u64(t, part[SCANSTATS_NOSCAN]);
	text_str(t, "=");
	text_u64(t, part[SCANSTATS_SCANNED] + part[SCANSTATS_NOSCAN]);
	text_str(t, what);
}

static void text_sums(struct text *t, const struct scanstats_sums *s,
		      uint64_t number)
{
	text_parts(t, s->objects, " objs, ");
	text_parts(t, s->spans, " spans, ");
	text_parts(t, s->bytes, " bytes, gc ");
	text_u64(t, number);
	text_str(t, "\n");
}

void gctrace_format_total(struct text *t, const struct gctrace_cycle *c)
{
	struct scanstats_sums sums = {0};

	for (unsigned class = 0; class < SIZECLASS_COUNT; class ++)
		scanstats_class(&c->scan, class, &sums);
	text_init(t);
	text_str(t, "scan: total ");
	text_sums(t, &sums, c->number);
}

bool gctrace_format_class(struct text *t, const struct gctrace_cycle *c,
			  unsigned class)
{
	struct scanstats_sums sums = {0};

	scanstats_class(&c->scan, class, &sums);
	if ((sums.objects[SCANSTATS_SCANNED] |
	     sums.objects[SCANSTATS_NOSCAN]) == 0)
		return false;
	text_init(t);
	text_str(t, "scan: class ");
	if (class == 0) {
		text_str(t, "L ");
	} else {
		text_u64(t, sizeclass_table[class].size);
		text_str(t, "B ");
	}
	text_sums(t, &sums, c->number);
	return true;
}

// ---- scavtrace ----

// What the line of released memory says, in bytes.
struct scav {
	uint64_t background, assist;
	uint64_t released; // now
	uint64_t in_use, retained;
	bool forced;
};

static void format_scav(struct text *t, const struct scav *s)
{
	text_init(t);
	text_str(t, "scav ");
	text_u64(t, s->background >> 10);
	text_str(t, " KiB work (bg), ");
	text_u64(t, s->assist >> 10);
	text_str(t, " KiB work (eager), ");
	text_u64(t, s->released >> 10);
	text_str(t, " KiB now, ");
	text_u64(t, s->retained == 0
			? 0
			: percent((double)s->in_use / (double)s->retained));
	text_str(t, s->forced ? "% util (forced)\n" : "% util\n");
}

void gctrace_format_scav(struct text *t, const rt_cycle *c)
{
	const struct scav s = {
	    .background = c->scavenged_background,
	    .assist = c->scavenged_assist,
	    .released = c->heap_released,
	    .in_use = c->heap_inuse,
	    .retained = c->heap_inuse + c->heap_idle - c->heap_released,
	};

	format_scav(t, &s);
}

// count_dropped counts a line that was not written.
static void count_dropped(bool written)
{
	if (!written)
		atomic_u64_add_relaxed(&gctrace.dropped, 1);
}

static bool write_text(const struct text *line)
{
	return oscall_write_now(STDERR, line->buf, line->len);
}

// write_record writes a line about c, NULL if that record is gone.
static void write_record(const rt_cycle *c,
			 void (*format)(struct text *, const rt_cycle *))
{
	struct text line;

	if (c)
		format(&line, c);
	count_dropped(c && write_text(&line));
}

static void write_scan(const struct gctrace_cycle *c)
{
	struct text line;

	gctrace_format_total(&line, c);
	count_dropped(write_text(&line));
	for (unsigned class = 0; class < SIZECLASS_COUNT; class ++)
		if (gctrace_format_class(&line, c, class))
			count_dropped(write_text(&line));
}

// write_pacer writes the lines of the pacer; c is as for write_record.
static void write_pacer(const rt_cycle *c)
{
	struct text line;

	if (c && pacertrace_format_swept(&line, c))
		count_dropped(write_text(&line));
	write_record(c, pacertrace_format_cpu);
	write_record(c, pacertrace_format_sweep);
	write_record(c, pacertrace_format_goal);
}

static void write_cycle(const struct gctrace_cycle *cycle)
{
	rt_cycle c;
	// The record is gone if this thread did not run for 256 collections.
	const rt_cycle *known =
	    cyclering_read(&cyclering, cycle->number, &c) ? &c : NULL;

	if (settings()->gctrace != 0)
		write_record(known, gctrace_format);
	if (settings()->gctrace == 2)
		write_scan(cycle);
	if (settings()->gcpacertrace != 0)
		write_pacer(known);
	if (settings()->scavtrace != 0)
		write_record(known, gctrace_format_scav);
}

void gctrace_note(void)
{
	if (settings()->gctrace == 2)
		scanstats_count(&noted.scan);
}

void gctrace_take(struct gctrace_cycle *c, uint64_t number)
{
	*c = noted;
	c->number = number;
}

RT_NOINLINE void gctrace_write(struct rt_proc *p, const struct gctrace_cycle *c)
{
	RT_ASSERT(p == proc_self());
	context_save(&p->context.frame);
	proc_block(p);
	schedpoint(SCHED_GCTRACE_WRITE);
	write_cycle(c);
	proc_unblock(p);
	context_keep();
}

RT_NOINLINE void gctrace_forced(struct rt_proc *p, uint64_t bytes)
{
	struct scav s = {.assist = bytes, .forced = true};
	struct heapstats_totals now;
	struct text line;

	RT_ASSERT(p == proc_self());
	if (settings()->scavtrace == 0)
		return;
	heapstats_read(&now); // the world runs, so no gauge can be summed
	s.released = now.released;
	s.in_use = now.in_heap;
	s.retained = heapstats_retained(&now);
	format_scav(&line, &s);
	context_save(&p->context.frame);
	proc_block(p);
	schedpoint(SCHED_GCTRACE_FORCED);
	count_dropped(write_text(&line));
	proc_unblock(p);
	context_keep();
}
