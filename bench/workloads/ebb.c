// ebb.c - resident memory of an idle program after most of its heap has died.
//
// usage: ebb tenth|scattered MIB SECONDS
//
// The program makes MIB of pointer-free objects of 8 KiB and writes every byte.
// With tenth, the last tenth of them lives on; with scattered, one in each 2
// MiB.  Then it collects once, and waits in blocking regions of a second each,
// without any other call.
//
// The value is what is resident after SECONDS, in MiB.  A figure named for a
// number of seconds is the same after that time.  The CPU seconds are those of
// the wait, so they show what the heap itself did.  The checksum is of the live
// objects.
//
// Good: resident memory falls to what lives within seconds, for little CPU
// time, and stays there.
#include "harness.h"

enum { OBJECT = 8192, EVERY = (2 << 20) / OBJECT, TENTH = 10 };

static const struct {
	unsigned seconds;
	const char *name;
} marks[] = {{0, "0s_MiB"},   {1, "1s_MiB"},   {2, "2s_MiB"},
	     {5, "5s_MiB"},   {6, "6s_MiB"},   {10, "10s_MiB"},
	     {20, "20s_MiB"}, {60, "60s_MiB"}, {150, "150s_MiB"}};

static void table_fill(unsigned char **table, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		unsigned char *p = peer_alloc_noscan(OBJECT);

		memset(p, 1 + (int)(i % 64), OBJECT);
		HEAP_STORE(table, &table[i], p);
	}
}

static void table_drop(unsigned char **table, size_t n, bool scattered)
{
	for (size_t i = 0; i < n; i++) {
		if (scattered ? i % EVERY == 0 : i >= n - n / TENTH)
			continue;
		heap_free(table[i]);
		table[i] = NULL;
	}
}

static void watch(unsigned seconds)
{
	static const struct timespec second = {.tv_sec = 1};
	size_t next = 0;

	for (unsigned i = 0; i <= seconds; i++) {
		if (next < sizeof marks / sizeof marks[0] &&
		    i == marks[next].seconds)
			peer_figure(marks[next++].name, peer_resident_mib());
		if (i == seconds)
			return;
		heap_block();
		nanosleep(&second, NULL);
		heap_unblock();
	}
}

int main(int argc, char **argv)
{
	static const uint64_t mib[2] = {1, 65536}, seconds[2] = {0, 600};
	bool scattered = !strcmp(peer_word(argc, argv, 1), "scattered");
	size_t n = (size_t)(peer_number(argc, argv, 2, mib) << 20) / OBJECT;
	unsigned wait = (unsigned)peer_number(argc, argv, 3, seconds);
	struct peer_time t = {0};
	unsigned char **table;
	uint64_t sum = 0;

	heap_begin();
	table = peer_alloc(n * sizeof *table);
	table_fill(table, n);
	peer_figure("before_MiB", peer_resident_mib());
	table_drop(table, n, scattered);
	heap_collect();
	peer_start(&t);
	watch(wait);
	peer_stop(&t);
	for (size_t i = 0; i < n; i++)
		sum = sum * 31 + (table[i] ? table[i][OBJECT - 1] : 0);
	peer_keep(table);
	peer_report(peer_resident_mib(), "MiB", &t, sum);
	return 0;
}
