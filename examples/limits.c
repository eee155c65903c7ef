// limits.c - a heap with a limit that runs out of memory, and destructors that
// find some.
//
// Each object owns a file of an editor.  An object that died stays until its
// destructor has run.  So a host that runs no destructors runs out of memory.
#include <rt/rt.h>

#include <err.h>
#include <stdio.h>
#include <stdlib.h>

enum { FILES = 200, BYTES = 1 << 20 };

static int opened, closed, asked;

static void must(int error)
{
	if (error < 0)
		errx(1, "%s", rt_strerror(error));
}

static void close_file(void *obj, size_t size, void *arg)
{
	(void)obj;
	(void)size;
	(void)arg;
	closed++;
}

// out_of_memory returns 1 if it is worth another try.
static int out_of_memory(size_t n, void *arg)
{
	(void)n;
	(void)arg;
	asked++;
	return rt_finalizers_ready() > 0 && rt_run_finalizers(0) > 0;
}

static void broken(const char *text, void *arg)
{
	(void)arg;
	fprintf(stderr, "editor: the heap is broken: %s\n", text);
	_Exit(70); // no restart by a shell that waits for a signal
}

static int begin(void)
{
	rt_config c;
	rt_kind_desc d;

	if (rt_version() < RT_VERSION_NUMBER)
		errx(1, "the library is older than its headers");
	rt_config_init(&c);
	must(rt_init(&c));
	must(rt_set_heap_max(64 << 20, NULL));
	must(rt_set_oom_handler(out_of_memory, NULL));
	must(rt_set_fatal_handler(broken, NULL));
	rt_kind_desc_init(&d);
	d.name = "file";
	d.flags = RT_KIND_DROP;
	d.drop = close_file;
	return rt_kind_register(&d);
}

int main(void)
{
	int kind = begin();

	must(kind);
	for (; opened < FILES; opened++)
		must(rt_alloc_of(kind, BYTES) ? RT_OK : RT_ENOMEM);
	printf("asked for memory: %s\n", asked > 0 ? "yes" : "no");
	printf("live at the end: %s\n",
	       rt_heap_live() < FILES / 2 * BYTES ? "some" : "all");
	must(rt_drop_now(kind, NULL, NULL));
	printf("closed %d of %d\n", closed, opened);
	must(rt_fini());
	return fflush(stdout) ? 1 : 0;
}
