// drop.c - resident memory when nine tenths of a big heap die at once.
//
// usage: drop contiguous|random MIB
//
// The program makes MIB of objects of 16 to 880 bytes, about nine to a page of
// 4 KiB, and writes every byte.  With contiguous, the objects that were
// allocated first die.  With random, every object dies with a probability of
// nine in ten.  Then few pages become free as a whole, and a heap that does not
// move its objects keeps at least six tenths of what it had.
//
// The value is the memory resident in the end, divided by the live bytes.  The
// figures are MiB alive, and MiB resident at three times: before, after a
// collection, and after the heap was told to release memory.  One more is how
// long that took.  The checksum is of the live objects.
#include "harness.h"

enum { LEAST = 16, STEPS = 109, MEAN = 448, TENTHS = 9 };

// An object begins with its size.
struct table {
	uint64_t **object;
	size_t n;
};

static void table_fill(struct table *t)
{
	uint64_t seed = 1;

	t->object = peer_alloc(t->n * sizeof *t->object);
	for (size_t i = 0; i < t->n; i++) {
		size_t size = LEAST + 8 * peer_below(&seed, STEPS);
		uint64_t *p = peer_alloc_noscan(size);

		memset(p, 1 + (int)(i % 64), size);
		p[0] = size;
		HEAP_STORE(t->object, &t->object[i], p);
	}
}

static void table_drop(struct table *t, bool contiguous)
{
	uint64_t seed = 2;

	for (size_t i = 0; i < t->n; i++) {
		bool dies = contiguous ? i < t->n / 10 * TENTHS
				       : peer_below(&seed, 10) < TENTHS;

		if (!dies)
			continue;
		heap_free(t->object[i]);
		t->object[i] = NULL;
	}
}

// table_live returns the live bytes, and adds their contents to *sum.
static uint64_t table_live(const struct table *t, uint64_t *sum)
{
	uint64_t live = t->n * sizeof *t->object;

	for (size_t i = 0; i < t->n; i++) {
		const uint64_t *p = t->object[i];

		if (!p)
			continue;
		live += p[0];
		*sum = *sum * 31 + p[0] + p[p[0] / sizeof *p - 1];
	}
	return live;
}

static void collect_and_release(struct peer_time *t)
{
	struct peer_time release = {0};

	peer_start(t);
	heap_collect();
	peer_stop(t);
	peer_figure("collected_MiB", peer_resident_mib());
	peer_start(&release);
	heap_release();
	peer_stop(&release);
	peer_figure("released_MiB", peer_resident_mib());
	peer_figure("release_ms", release.wall * 1e3);
	t->wall += release.wall;
	t->cpu += release.cpu;
}

int main(int argc, char **argv)
{
	static const uint64_t mib[2] = {1, 65536};
	bool contiguous = !strcmp(peer_word(argc, argv, 1), "contiguous");
	struct table table = {0};
	struct peer_time t = {0};
	uint64_t live, sum = 0;

	table.n = (size_t)((peer_number(argc, argv, 2, mib) << 20) / MEAN);
	heap_begin();
	table_fill(&table);
	peer_figure("before_MiB", peer_resident_mib());
	table_drop(&table, contiguous);
	collect_and_release(&t);
	live = table_live(&table, &sum);
	peer_keep(&table);
	peer_figure("live_MiB", (double)live / (1 << 20));
	peer_report(peer_resident_mib() * (1 << 20) / (double)live, "x", &t,
		    sum);
	return 0;
}
