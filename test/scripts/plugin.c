// plugin.c - a plugin with a heap of its own, and the program that loads it;
// built by test/scripts/plugin.sh.  The program unloads the plugin while one of
// its threads is attached to the plugin's heap, and that thread then ends.
#include <rt/rt.h>
#include <stdio.h>

#ifdef PLUGIN

int plugin_begin(void)
{
	rt_config c;

	rt_config_init(&c);
	c.no_attach = 1;
	return rt_init(&c);
}

int plugin_work(void)
{
	struct rt_verify v;

	if (rt_thread_attach(0) != RT_OK)
		return 1;
	for (size_t n = 1; n < 10000; n++)
		if (!rt_alloc(n))
			return 2;
	return rt_gc() == RT_OK && rt_heap_verify(&v) == RT_OK && v.errors == 0
		   ? 0
		   : 3;
}

#else

#include <dlfcn.h>
#include <pthread.h>

static void *library;

static int call(const char *name)
{
	int (*fn)(void);

	*(void **)&fn = dlsym(library, name);
	return fn ? fn() : -1;
}

static void *thread(void *result)
{
	*(int *)result = call("plugin_work");
	dlclose(library);
	return NULL; // attached
}

int main(int argc, char **argv)
{
	rt_memstats own;
	pthread_t t;
	int worked = -1;

	if (argc != 2 || rt_init(NULL) != RT_OK)
		return 1;
	library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
	if (!library) {
		fprintf(stderr, "%s\n", dlerror());
		return 2;
	}
	if (call("plugin_begin") != RT_OK)
		return 3;
	if (pthread_create(&t, NULL, thread, &worked) != 0 ||
	    pthread_join(t, NULL) != 0)
		return 4;
	// The program's heap is not affected.
	if (worked != 0 || rt_read_memstats(&own) != RT_OK || own.mallocs != 0)
		return 5;
	return rt_fini() == RT_OK ? 0 : 6;
}

#endif
