// gctrace=2: the lines of what was marked agree with the record, with a walk of
// the heap, and with what is known to live.
#include <inttypes.h>
#include <stdio.h>

#include "runtime/spans/mspan.h"
#include "test/harness/kind.h"
#include "test/whole/gctrace.h"

// ---- the format ----

static const struct {
	struct gctrace_cycle c;
	unsigned class;
	const char *total, *line; // NULL: no objects
} formats[] = {
    {{.number = 0},
     0,
     "scan: total 0+0=0 objs, 0+0=0 spans, 0+0=0 bytes, gc 0\n",
     NULL},
    {{.number = 12,
      .scan = {.objects = {{[0] = 2, [4] = 100}, {[4] = 20, [67] = 1}},
	       .spans = {{[0] = 2, [4] = 7}, {[4] = 3, [67] = 1}},
	       .large_bytes = {81920, 0}}},
     4,
     "scan: total 102+21=123 objs, 9+4=13 spans, 85120+33408=118528 bytes, "
     "gc 12\n",
     "scan: class 32B 100+20=120 objs, 7+3=10 spans, 3200+640=3840 bytes, "
     "gc 12\n"},
    {{.scan = {.objects = {{0}, {[0] = 3}},
	       .spans = {{0}, {[0] = 3}},
	       .large_bytes = {0, 65536}}},
     0,
     "scan: total 0+3=3 objs, 0+3=3 spans, 0+65536=65536 bytes, gc 0\n",
     "scan: class L 0+3=3 objs, 0+3=3 spans, 0+65536=65536 bytes, gc 0\n"},
    {{.scan = {.objects = {{0}, {[67] = 3}}}},
     66,
     "scan: total 0+3=3 objs, 0+0=0 spans, 0+98304=98304 bytes, gc 0\n",
     NULL},
    {{.number = UINT64_MAX,
      .scan = {.objects = {{[0] = UINT64_MAX}, {0}},
	       .spans = {{[0] = UINT32_MAX}, {0}},
	       .large_bytes = {UINT64_MAX, 0}}},
     0,
     "scan: total 18446744073709551615+0=18446744073709551615 objs, "
     "4294967295+0=4294967295 spans, "
     "18446744073709551615+0=18446744073709551615 bytes, "
     "gc 18446744073709551615\n",
     "scan: class L 18446744073709551615+0=18446744073709551615 objs, "
     "4294967295+0=4294967295 spans, "
     "18446744073709551615+0=18446744073709551615 bytes, "
     "gc 18446744073709551615\n"},
};

GROUP(scan_format);

TEST(what_was_marked_as_lines, .n = RT_ARRAY_LEN(formats))
{
	struct text t;
	bool some;

	gctrace_format_total(&t, &formats[_i].c);
	ck_assert_str_eq(t.buf, formats[_i].total);
	some = gctrace_format_class(&t, &formats[_i].c, formats[_i].class);
	ck_assert_int_eq(some, formats[_i].line != NULL);
	if (some)
		ck_assert_str_eq(t.buf, formats[_i].line);
}

// ---- lines of a heap ----

struct parts {
	uint64_t part[2], sum;
};

struct line {
	struct parts objects, spans, bytes;
};

// The lines of one collection; the entries of classes without objects are
// zeros.
struct lines {
	struct line total;
	struct line class[SIZECLASS_COUNT];
	unsigned n; // written
};

static int fd; // reads what the heap writes

static struct rng rng;

static void start_traced(void)
{
	rt_config c = heap_config_checked();

	rng_init(&rng, "gctrace_scan"); // writes to stderr

	fd = pipe_to_stderr();
	c.gctrace = 2;
	heap_start_exact(c);
}

static unsigned class_of(const char *name)
{
	unsigned size;
	int used = 0;

	if (strcmp(name, "L") == 0)
		return 0;
	ck_assert_int_eq(sscanf(name, "%uB%n", &size, &used), 1);
	ck_assert_int_eq(name[used], '\0');
	ck_assert_uint_eq(sizeclass_table[sizeclass_of(size)].size, size);
	return sizeclass_of(size);
}

static void must_add_up(const struct parts *p)
{
	ck_assert_uint_eq(p->part[0] + p->part[1], p->sum);
}

// parse_sums reads what follows "total" or the name of a class.
static void parse_sums(const char *text, uint64_t number, struct line *l)
{
	uint64_t gc;
	int used = 0;

	ck_assert_int_eq(
	    sscanf(text,
		   " %" SCNu64 "+%" SCNu64 "=%" SCNu64 " objs, %" SCNu64
		   "+%" SCNu64 "=%" SCNu64 " spans, %" SCNu64 "+%" SCNu64
		   "=%" SCNu64 " bytes, gc %" SCNu64 "%n",
		   &l->objects.part[0], &l->objects.part[1], &l->objects.sum,
		   &l->spans.part[0], &l->spans.part[1], &l->spans.sum,
		   &l->bytes.part[0], &l->bytes.part[1], &l->bytes.sum, &gc,
		   &used),
	    10);
	ck_assert_int_eq(text[used], '\0');
	ck_assert_uint_eq(gc, number);
	must_add_up(&l->objects);
	must_add_up(&l->spans);
	must_add_up(&l->bytes);
}

// parse_lines reads the lines that follow the first, which is gctrace=1's.
static void parse_lines(char *text, uint64_t number, struct lines *lines)
{
	static const char total[] = "scan: total", class[] = "scan: class ";
	unsigned last = 0;
	char *at;

	*lines = (struct lines){0};
	at = strtok(text, "\n");
	ck_assert_int_eq(strncmp(at, "gc ", 3), 0);
	at = strtok(NULL, "\n");
	ck_assert_int_eq(strncmp(at, total, sizeof total - 1), 0);
	parse_sums(at + sizeof total - 1, number, &lines->total);
	while ((at = strtok(NULL, "\n")) != NULL) {
		char name[20];
		unsigned c;
		int used = 0;

		ck_assert_int_eq(strncmp(at, class, sizeof class - 1), 0);
		at += sizeof class - 1;
		ck_assert_int_eq(sscanf(at, "%19s%n", name, &used), 1);
		c = class_of(name);
		ck_assert(lines->n == 0 || c > last);
		last = c;
		lines->n++;
		parse_sums(at + used, number, &lines->class[c]);
		ck_assert_uint_gt(lines->class[c].objects.sum, 0);
	}
}

static void add_parts(struct parts *to, const struct parts *p)
{
	to->part[0] += p->part[0];
	to->part[1] += p->part[1];
	to->sum += p->sum;
}

static void must_equal(const struct parts *a, const struct parts *b)
{
	ck_assert_uint_eq(a->part[0], b->part[0]);
	ck_assert_uint_eq(a->part[1], b->part[1]);
	ck_assert_uint_eq(a->sum, b->sum);
}

static void add_line(struct line *to, const struct line *l)
{
	add_parts(&to->objects, &l->objects);
	add_parts(&to->spans, &l->spans);
	add_parts(&to->bytes, &l->bytes);
}

static void must_equal_line(const struct line *a, const struct line *b)
{
	must_equal(&a->objects, &b->objects);
	must_equal(&a->spans, &b->spans);
	must_equal(&a->bytes, &b->bytes);
}

// ---- the same, counted by a walk ----

struct walked {
	struct lines lines;
	const struct mspan *last; // of the previous object
	uint32_t leaf_kinds;
};

static int walk_object(void *obj, size_t size, int kind, void *arg)
{
	struct walked *w = arg;
	const struct mspan *s =
	    arena_span(arena_offset((uintptr_t)obj) >> RT_PAGE_SHIFT);
	unsigned part = w->leaf_kinds >> kind & 1;
	uint64_t bytes = mspan_is_large(s) ? s->npages << RT_PAGE_SHIFT : size;
	struct line l = {0};

	l.objects.part[part] = l.objects.sum = 1;
	l.bytes.part[part] = l.bytes.sum = bytes;
	l.spans.part[part] = l.spans.sum = s != w->last;
	w->last = s;
	add_line(&w->lines.class[s->sizeclass], &l);
	add_line(&w->lines.total, &l);
	return 0;
}

// collect collects and returns the lines.  They must equal what a walk counts,
// and the record.
static struct lines collect(uint32_t leaf_kinds)
{
	static char text[1 << 16];
	struct walked w = {.leaf_kinds = leaf_kinds | 1U << RT_NOSCAN};
	struct line sum = {0};
	struct lines lines;
	rt_cycle c;

	must(rt_gc());
	must(rt_read_cycle(0, &c));
	ck_assert_uint_gt(take(fd, text, sizeof text), 0);
	parse_lines(text, c.number, &lines);
	must(rt_heap_walk(walk_object, &w));
	for (unsigned i = 0; i < SIZECLASS_COUNT; i++) {
		must_equal_line(&lines.class[i], &w.lines.class[i]);
		add_line(&sum, &lines.class[i]);
	}
	must_equal_line(&lines.total, &sum);
	ck_assert_uint_eq(sum.objects.sum, c.marked_objects);
	ck_assert_uint_eq(sum.bytes.sum, c.heap_live);
	ck_assert_uint_eq(dropped(), 0);
	return lines;
}

GROUP(scan_lines, .setup = start_traced, .timeout = 60);

static void must_be(const struct parts *p, uint64_t scanned, uint64_t noscan)
{
	ck_assert_uint_eq(p->part[SCANSTATS_SCANNED], scanned);
	ck_assert_uint_eq(p->part[SCANSTATS_NOSCAN], noscan);
}

TEST(an_empty_heap_has_the_line_of_the_total_only)
{
	struct lines l = collect(0);

	ck_assert_uint_eq(l.n, 0);
	ck_assert_uint_eq(l.total.objects.sum, 0);
}

// Objects of three classes are alive, and others of the same classes have died.
TEST(the_lines_say_what_lives)
{
	enum { SMALL = 100, LEAVES = 30 };
	void **root = (void **)heap_table(SMALL + LEAVES + 4, 0);
	unsigned full = sizeclass_table[sizeclass_of(1024)].nelems;
	struct lines l;
	size_t n = 0;

	for (unsigned i = 0; i < SMALL; i++) {
		root[n++] = rt_alloc(48);
		rt_alloc(48);
	}
	for (unsigned i = 0; i < LEAVES; i++) {
		root[n++] = rt_alloc_noscan(1024);
		rt_alloc_noscan(1024);
	}
	root[n++] = rt_alloc(100000);
	root[n++] = rt_alloc_noscan(200000);
	root[n++] = rt_alloc_noscan(200001);
	rt_alloc_noscan(300000);
	ck_assert_ptr_nonnull(rt_alloc_uncollectable(RT_WORDS, 48));
	l = collect(0);
	ck_assert_uint_eq(l.n, 3);
	must_be(&l.class[sizeclass_of(48)].objects, SMALL + 1, 0);
	must_be(&l.class[sizeclass_of(48)].bytes, (SMALL + 1) * 48, 0);
	must_be(&l.class[sizeclass_of(1024)].objects, 0, LEAVES);
	ck_assert_uint_ge(l.class[sizeclass_of(1024)].spans.sum, LEAVES / full);
	must_be(&l.class[0].objects, 1, 2);
	must_be(&l.class[0].spans, 1, 2);
	must_be(&l.class[0].bytes, 13 * 8192, 2 * 25 * 8192);
	memset(root, 0, n * sizeof *root);
	l = collect(0);
	ck_assert_uint_eq(l.n, 1);
	must_be(&l.total.objects, 1, 0);
}

// The dead that wait for their destructor do not count.
TEST(the_dead_are_not_marked, .n = 2)
{
	static const size_t sizes[] = {64, 40000};
	size_t size = sizes[_i];
	unsigned class = size > SIZECLASS_MAX_REQUEST ? 0 : sizeclass_of(size);
	void **root = (void **)heap_table(10, 0);
	int kind = kind_make(.name = "dropping", .layout = RT_LAYOUT_WORDS,
			     .flags = RT_KIND_DROP, .drop = drop_nothing);
	struct lines l;

	for (unsigned i = 0; i < 30; i++)
		root[i / 3] = rt_alloc_kind(kind, size);
	for (unsigned i = 0; i < 2; i++) {
		l = collect(0);
		must_be(&l.class[class].objects, 10, 0);
		ck_assert_uint_eq(rt_finalizers_ready(), 20);
	}
	ck_assert_uint_eq(rt_run_finalizers(0), 20);
	l = collect(0);
	must_be(&l.class[class].objects, 10, 0);
	memset(root, 0, 10 * sizeof *root);
	l = collect(0);
	ck_assert_uint_eq(l.n, 0);
	ck_assert_uint_eq(rt_finalizers_ready(), 10);
}

// The lines agree with a walk for objects of any size and of several kinds:
// with and without references, with and without destructors.
TEST(random_heaps)
{
	enum { SLOTS = 2000, ROUNDS = 30 };
	void **root = (void **)heap_table(SLOTS, 0);
	int all_kinds[] = {
	    RT_NOSCAN,
	    RT_WORDS,
	    kind_make(.name = "leaf", .layout = RT_LAYOUT_NONE),
	    kind_make(.name = "dropping", .layout = RT_LAYOUT_WORDS,
		      .flags = RT_KIND_DROP, .drop = drop_nothing),
	    kind_make(.name = "dropping leaf", .layout = RT_LAYOUT_NONE,
		      .flags = RT_KIND_DROP, .drop = drop_nothing),
	};
	uint32_t leaves = 1U << all_kinds[2] | 1U << all_kinds[4];
	unsigned classes = 0;

	for (unsigned round = 0; round < ROUNDS / (HEAP_CUT > 1 ? 3 : 1);
	     round++) {
		for (unsigned i = 0; i < 1000; i++) {
			size_t size =
			    rng_below(&rng, 1U << rng_below(&rng, 17));
			int kind =
			    all_kinds[rng_below(&rng, RT_ARRAY_LEN(all_kinds))];

			root[rng_below(&rng, SLOTS)] =
			    rng_below(&rng, 3) == 0 ? NULL
						    : rt_alloc_kind(kind, size);
		}
		classes |= collect(leaves).n > 40;
		if (rng_below(&rng, 2) == 0)
			rt_run_finalizers(rng_below(&rng, 50));
	}
	ck_assert_uint_eq(classes, 1);
	heap_healthy();
}

// Each line that a full pipe does not take is counted.
TEST(a_full_pipe_drops_each_line)
{
	static char text[1 << 16];
	void **root = (void **)heap_table(3, 0);
	uint64_t lines = 2; // that of gctrace=1, and the total

	for (unsigned i = 0; i < 3; i++) {
		root[i] = rt_alloc(16U << i);
		lines++;
		fill();
		must(rt_gc());
		ck_assert_uint_eq(dropped(), lines);
		while (take(fd, text, sizeof text) > 0)
			;
		lines += i + 3;
	}
	must(rt_gc());
	ck_assert_uint_gt(take(fd, text, sizeof text), 0);
	ck_assert_int_eq(strncmp(text, "gc 4 @", 6), 0);
	ck_assert_ptr_nonnull(strstr(text, "\nscan: class 64B 1+0=1 objs, "
					   "1+0=1 spans, 64+0=64 bytes, gc 4"));
}
