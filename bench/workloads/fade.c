// fade.c - resident memory in the minutes after nearly all of a heap has died.
//
// usage: fade told|untold MIB SECONDS
//
// The program makes MIB of objects of 64 to 880 bytes and writes every byte.
// One of each 2 MiB lives on, so that few huge pages become free as a whole.
// With told, the heap is told to collect and to release memory; with untold, it
// gets no such call.  Then the program makes a little garbage ten times a
// second.
//
// The value is what is resident after SECONDS, in MiB.  A figure named for a
// number of seconds is the same after that time.  held_x is the resident memory
// in the end, without the program's own, divided by what the heap says that it
// holds.  The checksum is of the live objects.
//
// Good: resident memory falls at once and stays low.  The kernel puts huge
// pages behind all memory that is advised for them, even if a single small page
// is in use.  So 9.5 MiB of live objects once grew to 234 MiB of resident
// memory in three minutes.
#include "harness.h"

enum { LEAST = 64, STEPS = 103, MEAN = 472, EVERY = (2 << 20) / MEAN };
enum { TICKS = 10, GARBAGE = 128 }; // a second; objects at each

static const struct {
	unsigned seconds;
	const char *name;
} marks[] = {{0, "0s_MiB"},   {1, "1s_MiB"},	{2, "2s_MiB"},
	     {5, "5s_MiB"},   {10, "10s_MiB"},	{20, "20s_MiB"},
	     {60, "60s_MiB"}, {180, "180s_MiB"}};

static uint64_t *object_make(uint64_t number, uint64_t *seed)
{
	size_t size = LEAST + 8 * peer_below(seed, STEPS);
	uint64_t *p = peer_alloc_noscan(size);

	memset(p, 1 + (int)(number % 64), size);
	p[0] = number;
	return p;
}

static void table_fill(uint64_t **table, size_t n)
{
	uint64_t seed = 1;

	for (size_t i = 0; i < n; i++)
		HEAP_STORE(table, &table[i], object_make(i, &seed));
}

static void table_drop(uint64_t **table, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (i % EVERY == 0)
			continue;
		heap_free(table[i]);
		table[i] = NULL;
	}
}

static void tick(void)
{
	static const struct timespec pause = {.tv_nsec = 1000000000 / TICKS};
	uint64_t seed = 1;

	heap_block();
	nanosleep(&pause, NULL);
	heap_unblock();
	for (int i = 0; i < GARBAGE; i++)
		heap_free(object_make((uint64_t)i, &seed));
}

static void watch(unsigned seconds)
{
	size_t next = 0;

	for (unsigned i = 0; i <= seconds * TICKS; i++) {
		if (next < sizeof marks / sizeof marks[0] &&
		    i == marks[next].seconds * TICKS)
			peer_figure(marks[next++].name, peer_resident_mib());
		if (i < seconds * TICKS)
			tick();
	}
}

int main(int argc, char **argv)
{
	static const uint64_t mib[2] = {1, 65536}, seconds[2] = {0, 600};
	bool told = !strcmp(peer_word(argc, argv, 1), "told");
	size_t n = (size_t)(peer_number(argc, argv, 2, mib) << 20) / MEAN;
	unsigned wait = (unsigned)peer_number(argc, argv, 3, seconds);
	struct peer_time t = {0};
	uint64_t **table, sum = 0;
	double own = peer_resident_mib();

	heap_begin();
	table = peer_alloc(n * sizeof *table);
	table_fill(table, n);
	peer_figure("before_MiB", peer_resident_mib());
	table_drop(table, n);
	peer_start(&t);
	if (told) {
		heap_collect();
		heap_release();
	}
	watch(wait);
	peer_stop(&t);
#ifdef HEAP_HAS_HELD
	peer_figure("held_x", (peer_resident_mib() - own) * (1 << 20) /
				  (double)heap_held());
#else
	(void)own;
#endif
	for (size_t i = 0; i < n; i++)
		sum = sum * 31 + (table[i] ? table[i][0] : 0);
	peer_keep(table);
	peer_report(peer_resident_mib(), "MiB", &t, sum);
	return 0;
}
