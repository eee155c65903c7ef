// static.c - static data as roots (rt_roots_static): a program, and a library
// that it loads and unloads.  test/scripts/static.sh builds and runs it.
#include <rt/rt.h>
#include <stdio.h>

#ifdef LIBRARY

#ifndef LENGTH
#define LENGTH 100
#endif

static void *data[100] = {data}; // not zero, so in .data
static void *bss[LENGTH];

void ***library_variables(unsigned i);

void ***library_variables(unsigned i)
{
	static void **at[2] = {data, bss};

	return &at[i];
}

#else

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int passed, failed;

static void check(int holds, const char *what)
{
	passed += holds;
	failed += !holds;
	if (!holds)
		printf("static: broken: %s\n", what);
}

enum { MANY = 1000, ROUNDS = 500, UNLOADED = 50 };

static void *data[MANY] = {data};
void *bss[MANY];
static __thread void *thread_local_variable;

static uint64_t live(void)
{
	struct rt_verify v;

	if (rt_gc() != RT_OK || rt_heap_verify(&v) != RT_OK || v.errors != 0)
		abort();
	return v.objects;
}

static void fill(void **at, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		at[i] = rt_alloc(48);
}

static void check_program(void)
{
	fill(data, MANY);
	fill(bss, MANY);
	check(live() == 0, "static data is no root by itself");
	check(rt_roots_static(1) == RT_OK, "static data becomes a root");
	fill(data, MANY);
	fill(bss, MANY);
	check(live() == 2 * MANY, ".data and .bss are roots");
	check(live() == 2 * MANY, "and are so again");
	memset(bss, 0, sizeof bss);
	check(live() == MANY, "what .bss does not hold any more dies");
	memset(data, 0, sizeof data);
	check(live() == 0, "the library keeps no garbage in its own data");
	thread_local_variable = rt_alloc(48);
	check(live() == 0, "thread-local variables are no roots");
	data[5] = (char *)rt_alloc(48) + 7;
	check(live() == 1, "any address in an object counts");
	check(rt_roots_static(0) == RT_OK && live() == 0,
	      "it is a root no more");
	check(rt_roots_static(1) == RT_OK && live() == 0, "what died is gone");
	data[5] = NULL;
}

static void check_child(void)
{
	int status = -1;
	pid_t child;

	fill(bss, 10);
	child = fork();
	if (child == 0) {
		unsigned n = live() == 10;

		fill(bss, 20);
		_exit(n && live() == 20 ? 0 : 1);
	}
	check(child > 0 && waitpid(child, &status, 0) == child && status == 0,
	      "a child has these roots");
	memset(bss, 0, sizeof bss);
}

// ---- libraries ----

struct loaded {
	void *handle;
	void **at[2];
};

static struct loaded load(const char *name)
{
	struct loaded l = {dlopen(name, RTLD_NOW | RTLD_LOCAL), {NULL, NULL}};
	void ***(*variables)(unsigned);

	if (!l.handle) {
		printf("%s\n", dlerror());
		exit(2);
	}
	*(void **)&variables = dlsym(l.handle, "library_variables");
	for (unsigned i = 0; i < 2; i++)
		l.at[i] = *variables(i);
	return l;
}

static int is_loaded(const char *name)
{
	void *handle = dlopen(name, RTLD_NOW | RTLD_NOLOAD);

	if (handle)
		dlclose(handle);
	return handle != NULL;
}

static void check_library(const char *name)
{
	struct loaded l = load(name);

	fill(l.at[0], 100);
	fill(l.at[1], 100);
	check(live() == 200, "a library that was loaded is a root");
	memset(l.at[0], 0, 100 * sizeof *l.at[0]);
	check(live() == 100, "what it does not hold any more dies");
	dlclose(l.handle);
	// In musl no library is ever unloaded.
	check(live() == (is_loaded(name) ? 100 : 0),
	      "a library that was unloaded is no root");
	if (is_loaded(name))
		memset(l.at[1], 0, 100 * sizeof *l.at[1]);
}

static int loading;

// load_often runs in a thread that is not attached.
static void *load_often(void *name)
{
	for (unsigned i = 0; i < ROUNDS; i++) {
		struct loaded l = load(name);

		l.at[1][0] = &l;
		l.at[1][0] = NULL;
		dlclose(l.handle);
	}
	__atomic_store_n(&loading, 0, __ATOMIC_RELEASE);
	return NULL;
}

static void check_beside(const char *name, const char *other)
{
	struct loaded kept = load(other);
	unsigned wrong = 0, rounds = 0;
	pthread_t thread;

	loading = 1;
	if (pthread_create(&thread, NULL, load_often, (void *)(size_t)name))
		exit(2);
	while (__atomic_load_n(&loading, __ATOMIC_ACQUIRE) || rounds < 10) {
		unsigned n = rounds++ % 50;

		fill(bss, n);
		fill(kept.at[0], n);
		fill(kept.at[1], n);
		wrong += live() != 3 * n;
		memset(bss, 0, sizeof bss);
		memset(kept.at[0], 0, n * sizeof(void *));
		memset(kept.at[1], 0, n * sizeof(void *));
	}
	pthread_join(thread, NULL);
	check(wrong == 0, "libraries come and go beside collections");
	dlclose(kept.handle);
}

// Here the thread that collects loads libraries, too.
static void check_both(const char *name, const char *other)
{
	pthread_t thread;
	unsigned wrong = 0;

	loading = 1;
	if (pthread_create(&thread, NULL, load_often, (void *)(size_t)name))
		exit(2);
	do {
		struct loaded l = load(other);

		fill(l.at[0], 10);
		fill(l.at[1], 10);
		wrong += live() != 20;
		memset(l.at[0], 0, 10 * sizeof(void *));
		memset(l.at[1], 0, 10 * sizeof(void *));
		dlclose(l.handle);
	} while (__atomic_load_n(&loading, __ATOMIC_ACQUIRE));
	pthread_join(thread, NULL);
	check(wrong == 0, "two threads load libraries");
}

static void *unload(void *handle)
{
	dlclose(handle);
	return NULL;
}

// check_unloading unloads a library, whose scan takes long, in a thread that is
// not attached.  Another library, loaded after it, stays loaded.
static void check_unloading(const char *large, const char *other)
{
	unsigned wrong = 0;

	for (unsigned i = 0; i < UNLOADED; i++) {
		struct loaded first = load(large), kept = load(other);
		pthread_t thread;

		fill(kept.at[0], 50);
		fill(kept.at[1], 50);
		if (pthread_create(&thread, NULL, unload, first.handle))
			exit(2);
		for (unsigned k = 0; k < 3; k++)
			wrong += live() != 100;
		pthread_join(thread, NULL);
		wrong += live() != 100;
		memset(kept.at[0], 0, 50 * sizeof(void *));
		memset(kept.at[1], 0, 50 * sizeof(void *));
		dlclose(kept.handle);
	}
	check(wrong == 0, "a library is unloaded while it is scanned");
}

int main(int argc, char **argv)
{
	rt_config c;

	rt_config_init(&c);
	c.no_attach = 1;
	c.gc_percent = -1;
	if (rt_config_from_env(&c) != RT_OK || rt_init(&c) != RT_OK ||
	    rt_thread_attach(RT_THREAD_EXACT) != RT_OK)
		return 2;
	check_program();
	check_child();
	if (argc == 4) {
		check_library(argv[1]);
		check_library(argv[1]);
		check_beside(argv[1], argv[2]);
		check_both(argv[1], argv[2]);
		check_unloading(argv[3], argv[2]);
	}
	check(live() == 0, "nothing is left");
	if (rt_fini() != RT_OK)
		return 2;
	printf("static: %d passed, %d failed\n", passed, failed);
	return failed != 0;
}

#endif
