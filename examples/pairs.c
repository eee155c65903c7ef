// pairs.c - tables of values of two words, told one by one.
//
// A callback that is the first for its table may also clean it.
#include <rt/rt.h>

#include <err.h>
#include <stdio.h>

enum { TABLE = RT_KIND_FIRST, IS_TEXT = 4, ENTRIES = 100 };

struct value {
	void *p;
	uint64_t tag;
};

struct table {
	uint64_t meta; // another table, shifted by one bit
	size_t n;      // entries in use
	struct value entry[ENTRIES];
};

static const rt_value_format pairs = RT_FORMAT_PAIR(0xff, IS_TEXT);
static const rt_value_format shifted = {0, 0, 0, UINT64_MAX, UINT64_MAX, 0,
					1, 8, 0, 0,	     0};
static int cleaned; // atomic

static void must(int error)
{
	if (error < 0)
		errx(1, "%s", rt_strerror(error));
}

static void trace(rt_tracer *t, void *obj, size_t size, void *arg)
{
	struct table *table = (struct table *)obj;

	(void)size;
	(void)arg;
	if (rt_trace_first(t))
		for (size_t i = table->n; i < ENTRIES; i++) {
			__atomic_fetch_add(&cleaned, table->entry[i].p != NULL,
					   __ATOMIC_RELAXED);
			table->entry[i].p = NULL;
		}
	rt_trace_name(t, "meta", RT_NO_INDEX);
	rt_trace_value(t, table->meta, &shifted);
	for (size_t i = 0; i < table->n; i++)
		rt_trace_pair(t, &table->entry[i], &pairs);
}

static struct table *make(struct table *meta)
{
	struct table *t = (struct table *)rt_alloc_of(TABLE, sizeof *t);

	must(t ? RT_OK : RT_ENOMEM);
	t->meta = (uint64_t)(uintptr_t)meta >> 1;
	for (; t->n < ENTRIES; t->n++) {
		struct value *v = &t->entry[t->n];

		must((v->p = rt_strdup("text")) ? RT_OK : RT_ENOMEM);
		v->tag = IS_TEXT;
	}
	return t;
}

int main(void)
{
	static struct table *root;
	rt_kind_desc d;

	must(rt_init(NULL));
	rt_kind_desc_init(&d);
	d.number = TABLE;
	d.layout = RT_LAYOUT_TRACE;
	d.flags = RT_KIND_ONCE;
	d.trace = trace;
	must(rt_kind_register(&d));
	must(rt_roots_add(&root, &root + 1, RT_ROOT_EXACT));
	root = make(make(NULL));
	root->n /= 2; // what is above stays until a collection comes by
	must(rt_gc());
	printf("cleaned %d\n", cleaned);
	root = (struct table *)(uintptr_t)(root->meta << 1);
	must(rt_gc());
	printf("%s\n", (char *)root->entry[ENTRIES - 1].p);
	must(rt_fini());
	return fflush(stdout) ? 1 : 0;
}
