// shift.c - resident memory when a program's objects change their size.
//
// usage: shift MIB
//
// The program makes MIB of objects of 64 bytes; nine in ten, at random, die,
// and the heap collects.  Then the program makes objects of 512 bytes up to the
// volume that was there.  A heap whose pages each hold one size needs about 1.9
// times what lives; one that fills holes of any size needs less.
//
// The value is the memory resident in the end, divided by the live bytes.  The
// figures are MiB resident before, after the collection, and in the end.  The
// time is that of all allocations and the collection.  The checksum is of the
// live objects.
#include "harness.h"

enum { SMALL = 64, LARGE = 512, TENTHS = 9 };

// The objects; NULL for one that was dropped.  The large ones come after the
// small ones.
struct table {
	uint64_t **object;
	size_t nsmall, nlarge;
	size_t kept; // small ones
};

PEER_INLINE uint64_t *object_make(size_t size, uint64_t number)
{
	uint64_t *p = peer_alloc_noscan(size);

	memset(p, 1 + (int)(number % 64), size);
	p[0] = number;
	return p;
}

static void small_make(struct table *t)
{
	for (size_t i = 0; i < t->nsmall; i++)
		HEAP_STORE(t->object, &t->object[i], object_make(SMALL, i));
	t->kept = t->nsmall;
}

static void small_drop(struct table *t)
{
	uint64_t seed = 1;

	for (size_t i = 0; i < t->nsmall; i++) {
		if (peer_below(&seed, 10) >= TENTHS)
			continue;
		heap_free(t->object[i]);
		t->object[i] = NULL;
		t->kept--;
	}
}

static void large_make(struct table *t)
{
	t->nlarge = (t->nsmall - t->kept) * SMALL / LARGE;
	for (size_t i = 0; i < t->nlarge; i++)
		HEAP_STORE(t->object, &t->object[t->nsmall + i],
			   object_make(LARGE, i));
}

static uint64_t table_sum(const struct table *t)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < t->nsmall + t->nlarge; i++)
		if (t->object[i])
			sum = sum * 31 + t->object[i][0] + t->object[i][1];
	return sum;
}

int main(int argc, char **argv)
{
	static const uint64_t mib[2] = {1, 65536};
	struct table table = {0};
	struct peer_time t = {0};
	size_t room;
	double live;

	table.nsmall = (size_t)(peer_number(argc, argv, 1, mib) << 20) / SMALL;
	room = table.nsmall + table.nsmall * SMALL / LARGE;
	heap_begin();
	peer_start(&t);
	table.object = peer_alloc(room * sizeof *table.object);
	small_make(&table);
	peer_figure("before_MiB", peer_resident_mib());
	small_drop(&table);
	heap_collect();
	peer_figure("dropped_MiB", peer_resident_mib());
	large_make(&table);
	peer_figure("refilled_MiB", peer_resident_mib());
	peer_stop(&t);
	live = (double)(room * sizeof *table.object + table.kept * SMALL +
			table.nlarge * LARGE);
	peer_report(peer_resident_mib() * (1 << 20) / live, "x", &t,
		    table_sum(&table));
	peer_keep(&table);
	return 0;
}
