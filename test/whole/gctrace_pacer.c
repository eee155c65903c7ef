// gcpacertrace=1: the lines agree with the records and with the pacer, and name
// what bounds the goal.
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "gc/cycle/pacer.h"
#include "test/harness/fault.h"
#include "test/whole/gctrace.h"

#define NEVER PACER_NEVER

// ---- the format ----

#define TERMS(percent, headroom, minimum, before, limit, bound)                \
	.goal_percent = (percent), .goal_headroom = (headroom),                \
	.goal_minimum = (minimum), .goal_before = (before),                    \
	.goal_limit = (limit), .goal_bound = RT_BOUND_##bound

static const struct {
	rt_cycle c;
	const char *cpu, *sweep, *goal;
} formats[] = {
    {{.goal_percent = 7, .goal_bound = RT_BOUND_LIMIT},
     "pacer: 0% CPU (0 limit) for 0+0+0 B work in 0 B -> 0 B (\u2206goal 0); "
     "allocated 0 B; limiter 0/0 ms, gc 9\n",
     "pacer: sweep done at heap size 0MB; allocated 0MB during sweep; swept "
     "0 pages, freed 0, gc 9\n",
     "pacer: goal 0 B by limit (percent 7 B, headroom 0 B, minimum 0 B, "
     "before none, limit 0 B), trigger=goal, gc 9\n"},
    {{.goal = 1000,
      .used = 1100,
      .allocated = 77,
      .process_cpu_ns = 1,
      .interval_cpu_ns = 3,
      .scan_heap = 5,
      .scan_stack = 6,
      .scan_globals = 8,
      .heap_live = 3 * MIB - 1,
      .sweep_inuse = 12 * 8192,
      .sweep_freed = 11 * 8192,
      .limiter_fill_ns = 1999999,
      .limiter_capacity_ns = 2000000000,
      .limiter_percent = 50,
      TERMS(10, 10, 10, 10, NEVER, PERCENT),
      .next_goal = 10},
     "pacer: 33% CPU (50 limit) for 5+6+8 B work in 1000 B -> 1100 B "
     "(\u2206goal 100); allocated 77 B; limiter 1/2000 ms, gc 9\n",
     "pacer: sweep done at heap size 2MB; allocated 0MB during sweep; swept "
     "12 pages, freed 11, gc 9\n",
     "pacer: goal 10 B by percent (percent 10 B, headroom 10 B, minimum 10 B, "
     "before 10 B, limit none), trigger=goal, gc 9\n"},
    {{.goal = 1100,
      .used = 1000,
      .process_cpu_ns = 5, // more than the whole: two clocks
      .interval_cpu_ns = 3,
      .limiter_fill_ns = 3000000,
      .limiter_capacity_ns = 2000000,
      .limiter_percent = 60,
      .limiter_limiting = 1,
      TERMS(1, 20, 20, 20, 20, HEADROOM),
      .next_goal = 20},
     "pacer: 100% CPU (60 limit) for 0+0+0 B work in 1100 B -> 1000 B "
     "(\u2206goal -100); allocated 0 B; limiter 3/2 ms, limiting, gc 9\n",
     NULL,
     "pacer: goal 20 B by headroom (percent 1 B, headroom 20 B, minimum 20 B, "
     "before 20 B, limit 20 B), trigger=goal, gc 9\n"},
    {{.goal = NEVER,
      .used = NEVER - 1,
      TERMS(1, 2, 3, 3, 4, MINIMUM),
      .next_goal = 3},
     "pacer: 0% CPU (0 limit) for 0+0+0 B work in none -> "
     "18446744073709551614 B; allocated 0 B; limiter 0/0 ms, gc 9\n",
     NULL,
     "pacer: goal 3 B by minimum (percent 1 B, headroom 2 B, minimum 3 B, "
     "before 3 B, limit 4 B), trigger=goal, gc 9\n"},
    {{.heap_live = 3 * MIB,
      .sweep_inuse = 4 * 8192,
      .sweep_beside = 1,
      TERMS(1, 2, 3, 5, NEVER, BEFORE),
      .next_goal = 5},
     NULL,
     "pacer: sweep begins at heap size 3MB, beside the threads; 4 pages to "
     "sweep, gc 9\n",
     "pacer: goal 5 B by before (percent 1 B, headroom 2 B, minimum 3 B, "
     "before 5 B, limit none), trigger=goal, gc 9\n"},
    {{TERMS(NEVER, NEVER, NEVER, 0, NEVER, PERCENT), .next_goal = NEVER},
     NULL,
     NULL,
     "pacer: goal none by percent (percent none, headroom none, minimum none, "
     "before none, limit none), trigger=goal, gc 9\n"},
};

GROUP(pacer_format);

TEST(what_the_pacer_did_as_lines, .n = RT_ARRAY_LEN(formats))
{
	rt_cycle c = formats[_i].c;
	struct text t;

	c.number = 9;
	if (formats[_i].cpu) {
		pacertrace_format_cpu(&t, &c);
		ck_assert_str_eq(t.buf, formats[_i].cpu);
	}
	if (formats[_i].sweep) {
		pacertrace_format_sweep(&t, &c);
		ck_assert_str_eq(t.buf, formats[_i].sweep);
	}
	pacertrace_format_goal(&t, &c);
	ck_assert_str_eq(t.buf, formats[_i].goal);
}

TEST(a_sweep_beside_the_threads_as_a_line)
{
	struct text t;
	rt_cycle c = {.number = 9, .sweep_ns = 1, .sweep_cpu_ns = 1};

	ck_assert(!pacertrace_format_swept(&t, &c));
	c.swept_ns = 1;
	ck_assert(pacertrace_format_swept(&t, &c));
	ck_assert_str_eq(t.buf, "pacer: swept beside the threads in 0 us, "
				"0+0 us CPU, gc 8\n");
	c.swept_ns = 3000999;
	c.swept_assist_cpu_ns = 1000000;
	c.swept_background_cpu_ns = 200000;
	ck_assert(pacertrace_format_swept(&t, &c));
	ck_assert_str_eq(t.buf, "pacer: swept beside the threads in 3000 us, "
				"1000+200 us CPU, gc 8\n");
}

// ---- lines of a heap ----

// The lines of a collection, read back.
struct lines {
	uint64_t cpu, cpu_limit;
	uint64_t scan_heap, scan_stack, scan_globals;
	uint64_t goal, used, allocated, limiter, capacity;
	bool limiting;
	uint64_t heap_mb, swept, freed;
	uint64_t next, percent, headroom, minimum, before, limit;
	char by[20];
};

static int fd; // reads what the heap writes

static void start_with(rt_config c)
{
	fd = pipe_to_stderr();
	c.gcpacertrace = 1;
	c.sweep = 0; // the lines tell of the sweep in the stop
	heap_start_exact(c);
}

static void start_traced(void)
{
	start_with(heap_config(100));
}

// take_text reads a text that must come next.
static void take_text(const char **at, const char *text)
{
	size_t n = strlen(text);

	ck_assert_msg(strncmp(*at, text, n) == 0, "%s is not at: %s", text,
		      *at);
	*at += n;
}

static uint64_t take_number(const char **at)
{
	char *end;
	uint64_t n = strtoull(*at, &end, 10);

	ck_assert_ptr_ne(end, *at);
	*at = end;
	return n;
}

// take_named reads a text and a number.
static uint64_t take_named(const char **at, const char *name)
{
	take_text(at, name);
	return take_number(at);
}

// take_bound reads a text, and bytes or "none".
static uint64_t take_bound(const char **at, const char *name)
{
	uint64_t n;

	take_text(at, name);
	if (strncmp(*at, "none", 4) == 0) {
		take_text(at, "none");
		return NEVER;
	}
	n = take_number(at);
	take_text(at, " B");
	return n;
}

static void take_cpu(const char **at, struct lines *l)
{
	l->cpu = take_named(at, "pacer: ");
	l->cpu_limit = take_named(at, "% CPU (");
	l->scan_heap = take_named(at, " limit) for ");
	l->scan_stack = take_named(at, "+");
	l->scan_globals = take_named(at, "+");
	l->goal = take_bound(at, " B work in ");
	l->used = take_bound(at, " -> ");
	if (l->goal != NEVER) {
		const char *delta = " (\u2206goal ";
		bool below;

		take_text(at, delta);
		below = **at == '-';
		*at += below;
		ck_assert_uint_eq(take_number(at), below ? l->goal - l->used
							 : l->used - l->goal);
		take_text(at, ")");
	}
	l->allocated = take_bound(at, "; allocated ");
	l->limiter = take_named(at, "; limiter ");
	l->capacity = take_named(at, "/");
	take_text(at, " ms");
	l->limiting = **at == ',' && strncmp(*at, ", limiting", 10) == 0;
	*at += l->limiting ? 10 : 0;
}

static void take_sweep(const char **at, struct lines *l)
{
	l->heap_mb = take_named(at, "pacer: sweep done at heap size ");
	take_text(at, "MB; allocated 0MB during sweep");
	l->swept = take_named(at, "; swept ");
	l->freed = take_named(at, " pages, freed ");
}

static void take_goal(const char **at, struct lines *l)
{
	int used = 0;

	l->next = take_bound(at, "pacer: goal ");
	ck_assert_int_eq(sscanf(*at, " by %19s%n", l->by, &used), 1);
	*at += used;
	l->percent = take_bound(at, " (percent ");
	l->headroom = take_bound(at, ", headroom ");
	l->minimum = take_bound(at, ", minimum ");
	l->before = take_bound(at, ", before ");
	l->limit = take_bound(at, ", limit ");
	take_text(at, "), trigger=goal");
}

// parse reads the lines of one collection.  Returns what follows.
static const char *parse(const char *at, uint64_t number, struct lines *l)
{
	*l = (struct lines){0};
	take_cpu(&at, l);
	ck_assert_uint_eq(take_named(&at, ", gc "), number);
	take_text(&at, "\n");
	take_sweep(&at, l);
	ck_assert_uint_eq(take_named(&at, ", gc "), number);
	take_text(&at, "\n");
	take_goal(&at, l);
	ck_assert_uint_eq(take_named(&at, ", gc "), number);
	take_text(&at, "\n");
	return at;
}

// greatest returns the goal that the terms give without the limit.
static uint64_t greatest(const struct lines *l)
{
	uint64_t goal = base_max(l->percent, l->headroom);

	goal = base_max(goal, l->minimum);
	return l->before == NEVER ? goal : base_max(goal, l->before);
}

// must_be_goal requires that the line of the goal has the figures of a record.
static void must_be_goal(const struct lines *l, const rt_cycle *c)
{
	static const char *const names[] = {
	    [RT_BOUND_PERCENT] = "percent", [RT_BOUND_HEADROOM] = "headroom",
	    [RT_BOUND_MINIMUM] = "minimum", [RT_BOUND_BEFORE] = "before",
	    [RT_BOUND_LIMIT] = "limit",
	};
	const uint64_t terms[] = {
	    [RT_BOUND_PERCENT] = c->goal_percent,
	    [RT_BOUND_HEADROOM] = c->goal_headroom,
	    [RT_BOUND_MINIMUM] = c->goal_minimum,
	    [RT_BOUND_BEFORE] = c->goal_before,
	    [RT_BOUND_LIMIT] = c->goal_limit,
	};

	ck_assert_uint_eq(l->next, c->next_goal);
	ck_assert_uint_eq(l->percent, c->goal_percent);
	ck_assert_uint_eq(l->headroom, c->goal_headroom);
	ck_assert_uint_eq(l->minimum, c->goal_minimum);
	ck_assert_uint_eq(l->before,
			  c->goal_before == 0 ? NEVER : c->goal_before);
	ck_assert_uint_eq(l->limit, c->goal_limit);
	ck_assert_uint_lt(c->goal_bound, RT_ARRAY_LEN(names));
	ck_assert_str_eq(l->by, names[c->goal_bound]);
	ck_assert_uint_eq(l->next, terms[c->goal_bound]);
	ck_assert_uint_eq(l->next, base_min(greatest(l), l->limit));
}

// must_be_record requires that the lines show the figures of record c.
static void must_be_record(const struct lines *l, const rt_cycle *c)
{
	ck_assert_uint_eq(l->cpu,
			  c->interval_cpu_ns == 0
			      ? 0
			      : c->process_cpu_ns * 100 / c->interval_cpu_ns);
	ck_assert_uint_eq(l->cpu_limit, c->limiter_percent);
	ck_assert_uint_eq(l->scan_heap, c->scan_heap);
	ck_assert_uint_eq(l->scan_stack, c->scan_stack);
	ck_assert_uint_eq(l->scan_globals, c->scan_globals);
	ck_assert_uint_eq(l->goal, c->goal);
	ck_assert_uint_eq(l->used, c->used);
	ck_assert_uint_eq(l->allocated, c->allocated);
	ck_assert_uint_eq(l->limiter, c->limiter_fill_ns / 1000000);
	ck_assert_uint_eq(l->capacity, c->limiter_capacity_ns / 1000000);
	ck_assert_uint_eq(l->limiting, c->limiter_limiting);
	ck_assert_uint_eq(l->heap_mb, c->heap_live / MIB);
	ck_assert_uint_eq(l->swept * 8192, c->sweep_inuse);
	ck_assert_uint_eq(l->freed * 8192, c->sweep_freed);
	ck_assert_uint_eq((l->swept - l->freed) * 8192, c->heap_inuse);
	must_be_goal(l, c);
}

// read_newest reads the lines of the newest collection, which must be the only
// ones in the pipe.
static struct lines read_newest(rt_cycle *c)
{
	static char text[1 << 16];
	struct lines l;

	must(rt_read_cycle(0, c));
	ck_assert_uint_gt(take(fd, text, sizeof text), 0);
	ck_assert_str_eq(parse(text, c->number, &l), "");
	must_be_record(&l, c);
	return l;
}

static struct lines collect(void)
{
	rt_cycle c;

	must(rt_gc());
	return read_newest(&c);
}

GROUP(pacer_lines, .timeout = 60);

// No other thread runs, so what the pacer knows after the collection is what
// the lines said.
TEST(the_lines_are_the_record)
{
	void **root;
	uint64_t total = 0;

	start_traced();
	root = (void **)heap_table(20, 0);
	for (unsigned i = 0; i < 20; i++) {
		rt_memstats m;
		struct lines l;

		root[i] = rt_alloc(10000U << i % 8);
		rt_alloc_noscan(100000);
		must(rt_adjust_external(1000));
		m = heap_stats();
		l = collect();
		ck_assert_uint_eq(l.allocated, m.total_alloc - total);
		ck_assert_uint_eq(l.used, m.heap_alloc + (i + 1) * 1000);
		total = m.total_alloc;
		ck_assert_uint_eq(l.swept * 8192, m.heap_inuse);
		ck_assert_uint_gt(l.freed, 0);
		ck_assert_uint_eq(l.cpu_limit, 50);
		ck_assert_uint_eq(l.limiter, pacer.limiter.fill / 1000000);
		ck_assert_uint_eq(l.capacity, pacer.limiter.capacity / 1000000);
		if (i == 10)
			must(rt_set_gc_percent(50, NULL));
	}
	ck_assert_uint_eq(dropped(), 0);
}

// The CPU time of a collection is no more than the process has used since the
// previous collection.  The interval of the first collection begins with the
// process.
TEST(the_part_of_the_cpu)
{
	uint64_t before = 0;

	start_traced();
	for (unsigned i = 0; i < 3; i++) {
		uint64_t asked = oscall_process_cpu(), now;
		rt_cycle c;

		must(rt_gc());
		now = oscall_process_cpu();
		read_newest(&c);
		ck_assert_uint_gt(c.process_cpu_ns, 0);
		ck_assert_uint_le(c.process_cpu_ns, c.interval_cpu_ns);
		ck_assert_uint_le(before + c.interval_cpu_ns, now);
		// The intervals leave nothing out.
		ck_assert_uint_ge(before + c.interval_cpu_ns, asked);
		before += c.interval_cpu_ns;
	}
}

TEST(refused_clocks_show_no_cpu)
{
	struct lines l;

	start_traced();
	fault_fail(OSCALL_CLOCK, 1, UINT64_MAX, EINVAL);
	l = collect();
	fault_fail(OSCALL_CLOCK, 1, 0, 0);
	ck_assert_uint_eq(l.cpu, 0);
	ck_assert_uint_eq(l.limiter, 0);
	collect();
}

// A sweep beside the threads has a line of its own, before the lines of the
// next collection.
TEST(a_sweep_beside_the_threads_has_a_line)
{
	static char text[1 << 16];
	rt_config config = heap_config(100);
	struct text swept;
	rt_cycle c;

	fd = pipe_to_stderr();
	config.gcpacertrace = 1;
	config.sweep = 2;
	config.gc_threads = 0;
	heap_start_exact(config);
	must(rt_gc());
	ck_assert_uint_gt(take(fd, text, sizeof text), 0);
	ck_assert_ptr_null(strstr(text, "pacer: swept"));
	for (int i = 0; i < 3; i++) {
		rt_alloc_noscan(8 * MIB);
		must(rt_gc());
		must(rt_read_cycle(0, &c));
		ck_assert_uint_gt(c.swept_ns, 0);
		ck_assert(pacertrace_format_swept(&swept, &c));
		ck_assert_uint_gt(take(fd, text, sizeof text), swept.len);
		ck_assert_int_eq(strncmp(text, swept.buf, swept.len), 0);
		ck_assert_int_eq(strncmp(text + swept.len, "pacer: ", 7), 0);
		ck_assert_ptr_nonnull(strstr(text, "% CPU ("));
	}
	ck_assert_uint_eq(dropped(), 0);
}

TEST(a_small_heap_has_the_least_goal)
{
	rt_config c = heap_config(100);
	struct lines l;

	c.heap_headroom = 0;
	start_with(c);
	l = collect();
	ck_assert_str_eq(l.by, "minimum");
	ck_assert_uint_eq(l.next, 4 * MIB);
	ck_assert_uint_eq(l.limit, NEVER);
	ck_assert_uint_eq(l.before, NEVER);
}

TEST(a_heap_of_some_size_has_headroom)
{
	void **root;
	struct lines l;

	start_traced();
	root = (void **)heap_table(1, 0);
	root[0] = rt_alloc_noscan(2 * MIB);
	l = collect();
	ck_assert_str_eq(l.by, "headroom");
	ck_assert_uint_eq(l.next, 22 * MIB);
}

TEST(a_large_heap_has_the_percentage)
{
	void **root;
	struct lines l;

	start_traced();
	root = (void **)heap_table(1, 0);
	root[0] = rt_alloc_noscan(40 * MIB);
	l = collect();
	ck_assert_str_eq(l.by, "percent");
	ck_assert_uint_ge(l.next, 80 * MIB);
	must(rt_set_gc_percent(-1, NULL));
	l = collect();
	ck_assert_str_eq(l.by, "percent");
	ck_assert_uint_eq(l.next, NEVER);
	// Now the collection itself has no goal either.
	l = collect();
	ck_assert_uint_eq(l.goal, NEVER);
}

TEST(a_memory_limit_bounds_the_goal)
{
	void **root;
	struct lines l;

	start_traced();
	root = (void **)heap_table(1, 0);
	root[0] = rt_alloc_noscan(40 * MIB);
	must(rt_set_memory_limit(64 * (int64_t)MIB, NULL));
	l = collect();
	ck_assert_str_eq(l.by, "limit");
	ck_assert_uint_lt(l.next, 64 * MIB);
	ck_assert_uint_gt(greatest(&l), 64 * MIB);
}

// Much has died: the goal falls step by step while the heap holds its pages.
TEST(a_heap_that_shrinks_keeps_some_of_its_goal)
{
	enum { OBJECTS = 64 };
	void **root;
	struct lines l;
	rt_cycle c;
	char text[1 << 12];

	start_traced();
	root = (void **)heap_table(OBJECTS, 0);
	for (unsigned i = 0; i < OBJECTS; i++)
		root[i] = rt_alloc_noscan(MIB - 4096);
	must(rt_gc());
	take(fd, text, sizeof text); // also those while the heap grew
	memset(root, 0, OBJECTS * sizeof *root);
	must(rt_read_cycle(0, &c));
	for (uint64_t last = c.number; c.number == last;) {
		rt_alloc_noscan(MIB / 2);
		must(rt_read_cycle(0, &c));
	}
	l = read_newest(&c);
	ck_assert_uint_eq(c.cause, RT_CAUSE_GOAL);
	ck_assert_uint_ge(l.used, l.goal);
	ck_assert_str_eq(l.by, "before");
	ck_assert_uint_lt(l.next, l.goal);
	// A collection that the host asks for keeps nothing of the old goal.
	l = collect();
	ck_assert_uint_eq(l.before, NEVER);
}

// A new heap does not count what the previous heap had allocated.
TEST(a_new_heap_begins_anew)
{
	struct lines l;

	start_traced();
	rt_alloc_noscan(5 * MIB);
	l = collect();
	ck_assert_uint_eq(l.allocated, 5 * MIB);
	must(rt_fini());
	start_traced();
	l = collect();
	ck_assert_uint_eq(l.allocated, 0);
}

TEST(a_sweep_beside_the_threads_begins)
{
	static char text[1 << 12];
	rt_config c = heap_config(100);

	fd = pipe_to_stderr();
	c.gcpacertrace = 1;
	c.sweep = 2;
	c.gc_threads = 0;
	heap_start_exact(c);
	ck_assert_ptr_nonnull(rt_alloc_uncollectable(RT_NOSCAN, 16 * 8192));
	must(rt_gc());
	ck_assert_uint_gt(take(fd, text, sizeof text), 0);
	ck_assert_ptr_nonnull(strstr(text, "pacer: sweep begins at heap size "
					   "0MB, beside the threads; 16 pages "
					   "to sweep, gc 1\n"));
}

// With all settings the lines of a collection come in this order.
TEST(all_lines_of_a_collection)
{
	static char text[1 << 16];
	static const char *const begins[] = {
	    "gc 1 @",  "scan: total ",	"scan: class 64B ",
	    "pacer: ", "pacer: sweep ", "pacer: goal ",
	    "scav ",
	};
	rt_config c = heap_config(100);
	char *at;

	c.gctrace = 2;
	c.scavtrace = 1;
	start_with(c);
	ck_assert_ptr_nonnull(rt_alloc_uncollectable(RT_WORDS, 64));
	must(rt_gc());
	ck_assert_uint_gt(take(fd, text, sizeof text), 0);
	at = strtok(text, "\n");
	for (size_t i = 0; i < RT_ARRAY_LEN(begins); i++) {
		ck_assert_ptr_nonnull(at);
		ck_assert_int_eq(strncmp(at, begins[i], strlen(begins[i])), 0);
		at = strtok(NULL, "\n");
	}
	ck_assert_ptr_null(at);
}

TEST(a_full_pipe_drops_all_three)
{
	start_traced();
	fill();
	must(rt_gc());
	ck_assert_uint_eq(dropped(), 3);
}
