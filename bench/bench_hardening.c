// bench_hardening.c - what each level of protection costs.
//
// usage: bench_hardening [ROUNDS]
//
// Runs that many rounds of a mixed program, or, when there is none, allocates
// objects of one size, inline.  RTDEBUG says which level it is.  Prints the CPU
// time of the process in milliseconds and the most memory that it had, in KiB.
// hardening.sh counts the instructions of count_work, too.
//
// The mixed program keeps 4096 objects and replaces one after the other, at
// random: of 100, 62 lists of small nodes, 30 strings, 6 arrays of up to 8 KiB,
// 2 buffers of 40 to 200 KiB.  Each is written as a whole.
#include "bench/bench.h"

#include <string.h>
#include <sys/resource.h>

enum {
	ALLOCATIONS = 20000,
	KEPT = 4096,	 // objects of the program
	REPLACED = 20000 // in a round
};

static void *kept[KEPT];
static uint64_t seed = 1;

void count_work(uint64_t rounds);

static size_t between(size_t lo, size_t hi)
{
	seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
	return lo + (size_t)(seed >> 33) % (hi - lo + 1);
}

static void *written(void *object, size_t n)
{
	return memset(bench_need(object, "allocation"), 0, n);
}

static void *list_make(size_t nodes)
{
	void **head = NULL;

	while (nodes-- > 0) {
		void **node = bench_need(rt_alloc(32), "rt_alloc");

		node[0] = head;
		head = node;
	}
	return head;
}

static void *object_make(void)
{
	size_t which = between(0, 99);
	size_t n;

	if (which < 62)
		return list_make(between(1, 8));
	n = which < 92	 ? between(1, 200)
	    : which < 98 ? between(256, 8 << 10)
			 : between(40 << 10, 200 << 10);
	return written(which < 92 ? rt_alloc_noscan(n) : rt_alloc(n), n);
}

static void allocate(void)
{
	for (int i = 0; i < ALLOCATIONS; i++)
		rt_keep_alive(rt_alloc(64));
}

// count_work allocates when there are no rounds.
void __attribute__((noinline)) count_work(uint64_t rounds)
{
	if (rounds == 0)
		allocate();
	for (uint64_t i = 0; i < rounds * REPLACED; i++)
		kept[between(0, KEPT - 1)] = object_make();
}

static double milliseconds(struct timeval t)
{
	return (double)t.tv_sec * 1e3 + (double)t.tv_usec / 1e3;
}

int main(int argc, char **argv)
{
	static const uint64_t rounds[3] = {0, 0, 1000000};
	struct rusage usage;
	rt_config c;

	rt_config_init(&c);
	c.gc_threads = 0;
	bench_must(rt_config_from_env(&c), "rt_config_from_env");
	bench_must(rt_init(&c), "rt_init");
	bench_must(rt_roots_add(kept, kept + KEPT, RT_ROOT_EXACT),
		   "rt_roots_add");
	count_work(bench_argument(argc, argv, 1, rounds));
	bench_must(rt_fini(), "rt_fini");
	getrusage(RUSAGE_SELF, &usage);
	printf("%.1f %ld\n",
	       milliseconds(usage.ru_utime) + milliseconds(usage.ru_stime),
	       usage.ru_maxrss);
	return 0;
}
