// steady.c - resident memory over live objects, in a table whose entries are
// replaced at random for four times its volume.
//
// usage: steady MIB
//
// Objects have 16 to 2048 bytes, half of them are scanned, and every byte is
// written.  The value is the most memory ever resident, divided by the bytes
// requested and alive; the table counts as alive.  The checksum is of the dying
// objects.
#include "harness.h"

enum { LEAST = 16, MEAN = 1032, TURNOVERS = 4 };

struct entry {
	uint8_t *bytes;
	uint64_t size;
};

struct table {
	struct entry *entry;
	size_t n;
	uint64_t seed, sum, live; // live: bytes
};

// The contents look like no address: all bytes are the same, and not 0.
static void entry_fill(struct table *t, struct entry *e, uint64_t r)
{
	size_t size = LEAST + 8 * ((r >> 8) % 255);
	uint8_t *p = r & 128 ? peer_alloc(size) : peer_alloc_noscan(size);

	memset(p, (int)(1 + r % 64), size);
	HEAP_STORE(t->entry, &e->bytes, p);
	e->size = size;
}

static void entry_replace(struct table *t, size_t i)
{
	struct entry *e = &t->entry[i];

	if (e->bytes) {
		t->sum = t->sum * 31 + e->bytes[0] + e->bytes[e->size - 1];
		t->live -= e->size;
		heap_free(e->bytes);
		e->bytes = NULL;
	}
	entry_fill(t, e, peer_random(&t->seed));
	t->live += e->size;
}

int main(int argc, char **argv)
{
	static const uint64_t mib[2] = {1, 65536};
	struct table t = {.seed = 1};
	struct peer_time time = {0};

	t.n = (size_t)((peer_number(argc, argv, 1, mib) << 20) / MEAN);
	heap_begin();
	t.entry = peer_alloc(t.n * sizeof *t.entry);
	t.live = t.n * sizeof *t.entry;
	for (size_t i = 0; i < t.n; i++)
		entry_replace(&t, i);
	peer_start(&time);
	for (size_t i = 0; i < TURNOVERS * t.n; i++)
		entry_replace(&t, peer_below(&t.seed, t.n));
	peer_stop(&time);
	peer_keep(&t);
	peer_report((double)peer_status_kib("VmHWM") * 1024 / (double)t.live,
		    "x", &time, t.sum);
	return 0;
}
