// monitor.c - watches the heap from a thread that is not attached to it.
//
// Any thread may call rt_read_memstats_live and rt_read_stops.  They stop no
// thread.  All fields of the heap are of one moment, and the parts add up to
// sys.  A sample is text in the format of OpenMetrics; this prints three.
#define _POSIX_C_SOURCE 200809L // nanosleep
#include <rt/rt.h>

#include <err.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { SAMPLES = 3, SLOTS = 10000 };

static int enough; // 1 after the last sample; atomic

// must ends the program if e, an error of the library or an errno, is not 0.
static void must(int e)
{
	if (e)
		errx(1, "%s", e < 0 ? rt_strerror(e) : strerror(e));
}

static void metric(const char *type, const char *name, const char *suffix,
		   uint64_t n)
{
	printf("# TYPE %s %s\n%s%s %" PRIu64 "\n", name, type, name, suffix, n);
}

static void print_sample(const rt_memstats *m, const rt_stops *collecting)
{
	metric("counter", "heap_allocated_bytes", "_total", m->total_alloc);
	metric("counter", "heap_collections", "_total", m->num_gc);
	metric("gauge", "heap_objects", "", m->heap_objects);
	metric("gauge", "heap_used_bytes", "", m->heap_alloc);
	metric("gauge", "heap_room_bytes", "", m->heap_inuse - m->heap_alloc);
	metric("gauge", "heap_idle_bytes", "", m->heap_idle);
	metric("gauge", "heap_other_bytes", "", m->sys - m->heap_sys);
	metric("gauge", "heap_sys_bytes", "", m->sys); // their sum
	metric("gauge", "longest_stop_ns", "", collecting->longest.total_ns);
	puts("# EOF");
}

static void *monitor(void *arg)
{
	rt_memstats m;
	rt_stops collecting;

	for (int i = 0; i < SAMPLES; i++) {
		nanosleep((const struct timespec *)arg, NULL);
		must(rt_read_memstats_live(&m));
		must(rt_read_stops(RT_STOP_GC_MARK_TERM, &collecting));
		print_sample(&m, &collecting);
	}
	__atomic_store_n(&enough, 1, __ATOMIC_RELAXED);
	return NULL;
}

// work is the task of the program: it replaces texts in a table.
static void work(void)
{
	char **table = (char **)rt_alloc(SLOTS * sizeof *table);

	must(table ? RT_OK : RT_ENOMEM);
	for (unsigned i = 0; !__atomic_load_n(&enough, __ATOMIC_RELAXED); i++) {
		char *text = (char *)rt_alloc_noscan(16 + i % 512);

		must(text ? RT_OK : RT_ENOMEM);
		snprintf(text, 16, "text %u", i);
		RT_STORE(table, &table[i % SLOTS], text);
	}
}

int main(void)
{
	struct timespec pause = {0, 20000000};
	pthread_t thread;

	must(rt_init(NULL)); // attaches this thread, so its stack is scanned
	must(pthread_create(&thread, NULL, monitor, &pause));
	work();
	must(rt_blocking_enter());
	must(pthread_join(thread, NULL));
	must(rt_blocking_leave());
	must(rt_fini());
	return fflush(stdout) ? 1 : 0;
}
