// forgotten.c - a trace callback that forgets a field, and how that is found.
//
// Nothing is lost in this program, because each table has a root of its own.
#include <rt/rt.h>

#include <err.h>
#include <stdio.h>
#include <string.h>

struct table {
	const char *name; // not in the heap
	struct table *items, *methods, *parent;
};

static int table_kind;

static void must(int error)
{
	if (error < 0)
		errx(1, "%s", rt_strerror(error));
}

static void trace(rt_tracer *t, void *obj, size_t size, void *arg)
{
	const struct table *o = (const struct table *)obj;

	(void)size, (void)arg;
	rt_trace_name(t, "items", RT_NO_INDEX); // names the next reference
	rt_trace_ptr(t, o->items);
	rt_trace_name(t, "parent", RT_NO_INDEX);
	rt_trace_ptr(t, o->parent);
}

// describe says what a person would call a table.  Names are short here.
static size_t describe(const void *obj, size_t size, char *buf, size_t n,
		       void *arg)
{
	const char *name = ((const struct table *)obj)->name;

	(void)size, (void)arg;
	return name ? (size_t)snprintf(buf, n, "%s", name) : 0;
}

// show prints a line of the report, without the addresses.
static void show(const char *text, void *arg)
{
	const char *at;

	(void)arg;
	while ((at = strstr(text, " at 0x")) != NULL) {
		printf("%.*s", (int)(at - text), text);
		text = at + 6 + strspn(at + 6, "0123456789abcdef");
	}
	printf("%s\n", text);
}

static struct table *make(const char *name)
{
	struct table *o = (struct table *)rt_alloc_of(table_kind, sizeof *o);

	must(o ? RT_OK : RT_ENOMEM);
	o->name = name;
	return o;
}

int main(void)
{
	static struct table *root[3];
	rt_config c;
	rt_kind_desc d;

	rt_config_init(&c);
	c.tracecheck = 1; // what RTDEBUG=tracecheck=1 does
	must(rt_init(&c));
	must(rt_set_warn_handler(show, NULL)); // otherwise stderr
	rt_kind_desc_init(&d);
	d.name = "table";
	d.layout = RT_LAYOUT_TRACE;
	d.trace = trace;
	d.describe = describe;
	must(table_kind = rt_kind_register(&d));
	must(rt_roots_add(root, root + 3, RT_ROOT_EXACT));
	root[0] = make("String");
	root[1] = root[0]->items = make("items of String");
	root[2] = root[0]->methods = make("methods of String");
	must(rt_gc());
	must(rt_fini());
	return fflush(stdout) ? 1 : 0;
}
