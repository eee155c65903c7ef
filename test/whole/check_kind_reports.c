// The report of checkmark on a reference that marking has missed.
#include <rt/rt.h>

#include <stdio.h>
#include <string.h>

#include "test/harness/kind.h"
#include "test/harness/missed.h"

// ---- callbacks of the host ----

static void *of(const void *obj, size_t word)
{
	return ((void *const *)obj)[word];
}

static void tell_third(rt_tracer *t, void *obj, size_t size, void *arg)
{
	(void)size, (void)arg;
	rt_trace_ptr(t, of(obj, 3));
}

static void tell_named(rt_tracer *t, void *obj, size_t size, void *arg)
{
	(void)size, (void)arg;
	rt_trace_name(t, "car", RT_NO_INDEX);
	rt_trace_ptr(t, of(obj, 3));
}

static void tell_numbered(rt_tracer *t, void *obj, size_t size, void *arg)
{
	(void)size, (void)arg;
	rt_trace_name(t, "atom", 17);
	rt_trace_ptr(t, of(obj, 3));
}

static void tell_index(rt_tracer *t, void *obj, size_t size, void *arg)
{
	(void)size, (void)arg;
	rt_trace_name(t, NULL, 0);
	rt_trace_ptr(t, of(obj, 3));
}

// A name is used up by the next reference, even if that leads to no object.  A
// name that is given after the missed reference changes nothing.
static void tell_others(rt_tracer *t, void *obj, size_t size, void *arg)
{
	char name[100];

	(void)size, (void)arg;
	rt_trace_name(t, "null", RT_NO_INDEX);
	rt_trace_ptr(t, NULL);
	rt_trace_name(t, "itself", RT_NO_INDEX);
	rt_trace_ptr(t, obj);
	rt_trace_ptr(t, of(obj, 3));
	memset(name, 'x', sizeof name);
	name[99] = 0;
	rt_trace_name(t, name, RT_NO_INDEX);
	rt_trace_ptr(t, of(obj, 2));
}

static void tell_long_name(rt_tracer *t, void *obj, size_t size, void *arg)
{
	char name[100];

	(void)size, (void)arg;
	memset(name, 'x', sizeof name);
	name[99] = 0;
	rt_trace_name(t, name, RT_NO_INDEX);
	memset(name, 'y', sizeof name);
	rt_trace_ptr(t, of(obj, 3));
}

// A reference that is no word of the object, so the report cannot say where it
// is.
static void tell_hidden(rt_tracer *t, void *obj, size_t size, void *arg)
{
	(void)size, (void)arg;
	rt_trace_ptr(t, (void *)~(uintptr_t)of(obj, 4));
}

static size_t describe_kind(const void *obj, size_t size, char *buf, size_t n,
			    void *arg)
{
	return (size_t)snprintf(buf, n, "%s#%zu,%d", (const char *)arg, size,
				rt_tracer_self() != NULL) +
	       (obj == NULL);
}

static size_t describe_type(const void *obj, size_t size, char *buf, size_t n,
			    void *arg)
{
	(void)obj, (void)size;
	memset(buf, 'a', n);
	buf[1] = '\n';
	ck_assert_str_eq(arg, "of the type");
	return n + 1000; // more than it may
}

// ---- layouts ----

static const uint64_t bits[] = {0x8};
static const rt_value_format tags = RT_FORMAT_LOW_TAG(7, 5);
static const rt_type plain_type = RT_TYPE_INIT(40, 32, bits, 0, 0, NULL, NULL,
					       NULL, NULL, NULL, NULL, NULL, 0);
static const rt_type tag_type = RT_TYPE_INIT(40, 32, bits, 0, 0, NULL, &tags,
					     NULL, NULL, NULL, NULL, NULL, 0);
static const rt_type described_type =
    RT_TYPE_INIT(40, 32, bits, 0, 0, NULL, NULL, NULL, NULL, describe_type,
		 (char *)"of the type", NULL, 0);

static const struct report {
	int layout;
	const rt_type *type;
	const rt_value_format *format;
	rt_trace_fn *trace;
	rt_describe_fn *describe;
	const char *says; // what the report says of the container
} reports[] = {
    {RT_LAYOUT_WORDS, NULL, NULL, NULL, NULL, ", offset 24"},
    {RT_LAYOUT_WORDS, NULL, &tags, NULL, NULL, ", offset 24"},
    {RT_LAYOUT_TYPE, &plain_type, NULL, NULL, NULL, ", offset 24"},
    {RT_LAYOUT_TYPE, &tag_type, NULL, NULL, NULL, ", offset 24"},
    {RT_LAYOUT_TRACE, NULL, NULL, tell_third, NULL, ", offset 24"},
    {RT_LAYOUT_TRACE, NULL, NULL, tell_named, NULL, ", reference car"},
    {RT_LAYOUT_TRACE, NULL, NULL, tell_numbered, NULL, ", reference atom[17]"},
    {RT_LAYOUT_TRACE, NULL, NULL, tell_index, NULL, ", reference [0]"},
    {RT_LAYOUT_TRACE, NULL, NULL, tell_others, NULL, ", offset 24"},
    {RT_LAYOUT_TRACE, NULL, NULL, tell_long_name, NULL,
     ", reference xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"},
    {RT_LAYOUT_TRACE, NULL, NULL, tell_hidden, NULL, ""},
    {RT_LAYOUT_TRACE, NULL, NULL, tell_third, describe_kind,
     " \"of the kind#48,1\", offset 24"},
    {RT_LAYOUT_TYPE, &plain_type, NULL, NULL, describe_kind,
     " \"of the kind#48,1\", offset 24"},
    {RT_LAYOUT_TYPE, &described_type, NULL, NULL, describe_kind,
     " \"a?aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
     "aaaaaaaaaa\", offset 24"},
};

static const struct report *report;
static const char *kind_name = "parents";

static int add_kind(const char *name)
{
	return kind_make(.name = name, .layout = report->layout,
			 .type = report->type, .format = report->format,
			 .trace = report->trace, .describe = report->describe,
			 .arg = (char *)"of the kind");
}

static void miss_a_child(void)
{
	static uintptr_t *root[1];
	rt_config c = heap_config(HEAP_QUIET);
	bool tagged = report->format || report->type == &tag_type;
	int kind;
	uintptr_t child;

	c.checkmark = 1;
	heap_start_exact(c);
	rt_roots_add(root, root + 1, RT_ROOT_EXACT);
	kind = add_kind(kind_name);
	root[0] = rt_alloc_kind(kind, 48);
	rt_alloc_kind(kind, 48); // the child is not the parent's neighbour
	child = (uintptr_t)rt_alloc_kind(kind, 48);
	missed_say(child, (uintptr_t)root[0]);
	root[0][3] = child | (tagged ? 5 : 0);
	if (report->trace == tell_hidden) {
		root[0][3] = 0;
		root[0][4] = ~child;
	}
	rt_gc(); // also retires the runs, so the bit set below is the object's
	missed_inside(root[0]);
	rt_gc();
	fputs("not noticed\n", stderr);
}

GROUP(reports, .timeout = 60);

TEST(a_missed_reference_is_named, .n = RT_ARRAY_LEN(reports))
{
	report = &reports[_i];
	missed_from(miss_a_child, "size=48 kind=parents, found in parents",
		    report->says);
}

// A longer name is cut behind 31 bytes.
TEST(a_kind_has_a_name_of_31_bytes, .n = 2)
{
	report = &reports[0];
	kind_name = _i == 0 ? "a hash table that is rather big"
			    : "a hash table that is rather bigger";
	missed_from(miss_a_child,
		    "size=48 kind=a hash table that is rather big, found in "
		    "a hash table that is rather big",
		    report->says);
}

// Names change nothing while no missed reference is reported.
static unsigned asked;

static void tell_asked(rt_tracer *t, void *obj, size_t size, void *arg)
{
	(void)size, (void)arg;
	asked++;
	rt_trace_name(t, "nothing", RT_NO_INDEX);
	rt_trace_name_(t, "nothing", RT_NO_INDEX); // by a host without inlines
	rt_trace_ptr(t, of(obj, 3));
}

TEST(names_change_nothing, .n = 2)
{
	static uintptr_t *root[1];
	static const struct report quiet = {RT_LAYOUT_TRACE, NULL, NULL,
					    tell_asked,	     NULL, ""};
	rt_config c = heap_config(HEAP_QUIET);

	c.checkmark = _i == 1;
	heap_start_exact(c);
	ck_assert_int_eq(rt_roots_add(root, root + 1, RT_ROOT_EXACT), RT_OK);
	report = &quiet;
	root[0] = rt_alloc_kind(add_kind("quiet"), 48);
	root[0][3] = (uintptr_t)rt_alloc(16);
	ck_assert_uint_eq(heap_live_after_gc(), 2);
	ck_assert_uint_eq(asked, 1 + (unsigned)_i);
}
