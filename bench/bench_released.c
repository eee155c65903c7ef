// bench_released.c - does memory that was given back stay back?
//
// 256 MiB of objects of 8 KiB, of which one in 2 MiB is kept, are given back
// with rt_free_os_memory.  Then nothing happens for some minutes but what the
// kernel does by itself: its background thread puts huge pages behind all that
// is advised for them, also where a single small page is in use.  Once that
// made 234 MiB of 9.5 in three minutes.  A good number is a resident size
// that stays below 1.2 times what the heap holds; else the bench fails.
//
// usage: bench_released [SECONDS], 180 by default
#include "bench/bench.h"

#include <string.h>
#include <unistd.h>

enum {
	MIB = 1 << 20,
	OBJECT = 8192,
	OBJECTS = 256 * MIB / OBJECT,
	KEPT_OF = 2 * MIB / OBJECT,
	STEP = 20, // seconds between two lines
};

static void *kept[OBJECTS / KEPT_OF];

static double resident(void)
{
	unsigned long long size = 0, pages = 0;
	FILE *f = fopen("/proc/self/statm", "r");

	bench_must(!f || fscanf(f, "%llu %llu", &size, &pages) != 2, "statm");
	fclose(f);
	return (double)pages * (double)sysconf(_SC_PAGESIZE) / MIB;
}

static double held(void)
{
	static rt_memstats m;

	bench_must(rt_read_memstats(&m), "rt_read_memstats");
	return (double)(m.sys - m.heap_released) / MIB;
}

static void fill(void)
{
	for (unsigned i = 0; i < OBJECTS; i++) {
		char *p = bench_need(rt_alloc_noscan(OBJECT), "rt_alloc");

		memset(p, 1, OBJECT);
		if (i % KEPT_OF == 0)
			kept[i / KEPT_OF] = p;
	}
}

static double line(long seconds, double own)
{
	double rss = resident() - own, ratio = rss / held();

	printf("released, %3ld s %38.1f MiB resident, %.2f of held\n", seconds,
	       rss, ratio);
	fflush(stdout);
	return ratio;
}

int main(int argc, char **argv)
{
	long seconds = argc > 1 ? strtol(argv[1], NULL, 10) : 180;
	double own = resident(), ratio;
	rt_config c;

	rt_config_init(&c);
	c.gc_percent = -1;
	bench_must(rt_config_from_env(&c), "rt_config_from_env");
	bench_must(rt_init(&c), "rt_init");
	bench_must(rt_roots_add(kept, kept + OBJECTS / KEPT_OF, RT_ROOT_EXACT),
		   "rt_roots_add");
	fill();
	for (int i = 0; i < 5; i++) // so that huge pages come before
		bench_must(rt_gc(), "rt_gc");
	bench_must(rt_free_os_memory(), "rt_free_os_memory");
	ratio = line(0, own);
	for (long t = STEP; t <= seconds; t += STEP) {
		sleep(STEP);
		ratio = line(t, own);
	}
	bench_must(rt_fini(), "rt_fini");
	return ratio > 1.2;
}
