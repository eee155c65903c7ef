// grow.c - nanoseconds for an object while a heap grows, in memory that this
// process never touched and in memory that it had before.
//
// usage: grow SIZE MIB
//
// The program makes a list of objects of SIZE bytes, MIB in all, twice, and
// writes every word.  Between the two the list dies and the heap collects.  The
// value is the first time; most of it is the system's page faults and, in a
// virtual machine, the host's work.  The figures are the second time, and how
// many page faults each had for a thousand objects.  The checksum is of both
// lists.
#include "harness.h"

struct cell {
	struct cell *next;
	uint64_t words[];
};

struct made {
	double wall, cpu; // seconds
	long faults;
	uint64_t sum;
};

static struct cell *list_make(size_t n, size_t words)
{
	struct cell *first = NULL;

	for (size_t i = 0; i < n; i++) {
		struct cell *c = peer_alloc((words + 1) * sizeof(uint64_t));

		for (size_t k = 0; k < words; k++)
			c->words[k] = i;
		c->next = first;
		first = c;
	}
	return first;
}

static uint64_t list_drop(struct cell *c)
{
	uint64_t sum = 0;
	struct cell *next;

	for (; c; c = next) {
		next = c->next;
		sum = sum * 31 + c->words[0];
		heap_free(c);
	}
	return sum;
}

static long faults(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return u.ru_minflt;
}

// This is a function by itself, so that the list is dead when it has returned.
static __attribute__((noinline)) void measure(size_t n, size_t words,
					      struct made *made)
{
	struct peer_time t = {0};
	struct cell *first;

	made->faults = -faults();
	peer_start(&t);
	first = list_make(n, words);
	peer_stop(&t);
	made->faults += faults();
	made->wall = t.wall;
	made->cpu = t.cpu;
	made->sum = list_drop(first);
}

int main(int argc, char **argv)
{
	static const uint64_t size[2] = {16, 4096}, mib[2] = {1, 65536};
	size_t words = (size_t)peer_number(argc, argv, 1, size) / 8 - 1;
	size_t n =
	    (size_t)(peer_number(argc, argv, 2, mib) << 20) / ((words + 1) * 8);
	struct made cold, warm;
	struct peer_time t = {0};

	heap_begin();
	measure(n, words, &cold);
	heap_collect();
	measure(n, words, &warm);
	t.wall = cold.wall;
	t.cpu = cold.cpu;
	peer_figure("warm_ns", warm.wall * 1e9 / (double)n);
	peer_figure("cold_faults", (double)cold.faults * 1e3 / (double)n);
	peer_figure("warm_faults", (double)warm.faults * 1e3 / (double)n);
	peer_report(cold.wall * 1e9 / (double)n, "ns", &t, cold.sum + warm.sum);
	return 0;
}
