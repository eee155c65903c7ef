// drop.c - resident memory after most of a heap has died, second by second.
//
// usage: drop large|tenth|scattered MIB SECONDS
//
// The program fills MIB without a collection, and drops most of it.  The first
// allocation after that begins a collection, which finds what died.
//
// - large: objects of 64 KiB to 2 MiB, and all die.  Then the program allocates
//   MIB of objects of 256 KiB to 8 MiB, which live, and writes every byte.
//   With sweep 2 the first of them are allocated while the dead are not swept.
//   The value is the peak of resident memory.  SECONDS does not count.
// - tenth: objects of 8 KiB, and the first nine tenths die.  The program is
//   blocked for SECONDS and makes no call.  The value is what is resident then.
// - scattered: the same, but one object in 2 MiB lives.
//
// tenth and scattered have these figures.  One is what lives.  What is resident
// after 10 seconds, and in the end, is divided by that, and by what is resident
// after a call of rt_free_os_memory.  What is resident in the end, without what
// the program had before there was a heap, is divided by what the heap says
// that it holds.  The CPU seconds are those of the wait.
//
// Good: a peak as with sweep 0 (1.05 times).  After 10 seconds, 1.3 times what
// lives, and 1.05 times what rt_free_os_memory reaches.  For scattered, after
// 150 seconds, 1.5 times what the heap holds.
#include "watch.h"

enum { PAGE = 8192, EVERY = (2 << 20) / PAGE, TENTHS = 9 };
enum { DEAD_LEAST = 64, DEAD_MOST = 2048, NEW_LEAST = 256, NEW_MOST = 8192 };

static struct watch watch;

struct table {
	unsigned char **object;
	size_t n;
	uint64_t bytes;
};

// table_fill makes objects of least to most KiB until they have so many bytes.
static void table_fill(struct table *t, uint64_t bytes, const uint64_t kib[2])
{
	uint64_t seed = 1;

	for (t->bytes = 0, t->n = 0; t->bytes < bytes; t->n++) {
		uint64_t n = kib[0] + peer_below(&seed, kib[1] - kib[0] + 1);
		unsigned char *p = peer_alloc_noscan(n << 10);

		memset(p, 1 + (int)(t->n % 64), n << 10);
		HEAP_STORE(t->object, &t->object[t->n], p);
		t->bytes += n << 10;
	}
}

static void table_make(struct table *t, uint64_t bytes, const uint64_t kib[2])
{
	t->object =
	    peer_alloc((bytes / (kib[0] << 10) + 1) * sizeof *t->object);
	table_fill(t, bytes, kib);
}

// table_drop returns how many bytes live.
static uint64_t table_drop(struct table *t, bool scattered)
{
	uint64_t live = 0;

	for (size_t i = 0; i < t->n; i++) {
		if (scattered ? i % EVERY == 0 : i >= t->n / 10 * TENTHS)
			live += PAGE;
		else
			t->object[i] = NULL;
	}
	return live + t->n * sizeof *t->object;
}

static uint64_t table_sum(const struct table *t)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < t->n; i++)
		sum = sum * 31 + (t->object[i] ? t->object[i][PAGE - 1] : 0);
	return sum;
}

// ---- Large objects ----

static double large(uint64_t bytes, struct peer_time *t, uint64_t *sum)
{
	static const uint64_t dead[2] = {DEAD_LEAST, DEAD_MOST},
			      fresh[2] = {NEW_LEAST, NEW_MOST};
	struct table table;

	table_make(&table, bytes, dead);
	memset(table.object, 0, table.n * sizeof *table.object);
	watch_begin(&watch, 10);
	peer_start(t);
	heap_must(rt_set_gc_percent(100, NULL), "rt_set_gc_percent");
	table_fill(&table, bytes, fresh);
	peer_stop(t);
	watch_end(&watch);
	watch_print(&watch, 0.02);
	*sum = table_sum(&table);
	peer_keep(table.object);
	return (double)peer_status_kib("VmHWM") / 1024;
}

// ---- An idle program ----

static double resident_at(double seconds)
{
	for (size_t i = 0; i < watch.n; i++)
		if (watch.sample[i].at >= seconds)
			return watch.sample[i].resident;
	return watch.sample[watch.n - 1].resident;
}

static void wait_for(unsigned seconds)
{
	struct timespec t = {.tv_sec = seconds};

	heap_block();
	nanosleep(&t, NULL);
	heap_unblock();
}

static double idle(bool scattered, uint64_t bytes, unsigned seconds,
		   struct peer_time *t, uint64_t *sum)
{
	static const uint64_t page[2] = {PAGE >> 10, PAGE >> 10};
	double own = watch_resident(), live, resident, held, told;
	struct table table;

	table_make(&table, bytes, page);
	live = (double)table_drop(&table, scattered);
	watch_collect();
	watch_begin(&watch, 100);
	peer_start(t);
	wait_for(seconds);
	peer_stop(t);
	watch_end(&watch);
	watch_print(&watch, 1);
	resident = watch.sample[watch.n - 1].resident;
	held = watch.sample[watch.n - 1].held;
	heap_release();
	told = watch_resident();
	peer_figure("live_MiB", live / WATCH_MIB);
	peer_figure("10s_over_live_x", resident_at(10) / live);
	peer_figure("10s_over_told_x", resident_at(10) / told);
	peer_figure("over_live_x", resident / live);
	peer_figure("over_told_x", resident / told);
	peer_figure("over_held_x", (resident - own) / held);
	*sum = table_sum(&table);
	peer_keep(table.object);
	return resident / WATCH_MIB;
}

int main(int argc, char **argv)
{
	static const uint64_t mib[2] = {1, 8192}, seconds[2] = {0, 600};
	const char *what = peer_word(argc, argv, 1);
	uint64_t bytes = peer_number(argc, argv, 2, mib) << 20;
	unsigned wait = (unsigned)peer_number(argc, argv, 3, seconds);
	struct peer_time t = {0};
	uint64_t sum = 0;
	double value;

	heap_begin();
	heap_must(rt_set_gc_percent(-1, NULL), "rt_set_gc_percent");
	value = !strcmp(what, "large")
		    ? large(bytes, &t, &sum)
		    : idle(!strcmp(what, "scattered"), bytes, wait, &t, &sum);
	peer_report(value, "MiB", &t, sum);
	return 0;
}
