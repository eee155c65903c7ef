// Counts what a test allocates, to compare it with the statistics.
#include "test/harness/ledger.h"

#include <string.h>

// Bytes a slot; Go's table, written down a second time.
static const uint16_t class_size[LEDGER_CLASSES] = {
    0,	   8,	  16,	 24,	32,    48,    64,    80,    96,	   112,
    128,   144,	  160,	 176,	192,   208,   224,   240,   256,   288,
    320,   352,	  384,	 416,	448,   480,   512,   576,   640,   704,
    768,   896,	  1024,	 1152,	1280,  1408,  1536,  1792,  2048,  2304,
    2688,  3072,  3200,	 3456,	4096,  4864,  5376,  6144,  6528,  6784,
    6912,  8192,  9472,	 9728,	10240, 10880, 12288, 13568, 14336, 16384,
    18432, 19072, 20480, 21760, 24576, 27264, 28672, 32768,
};

enum {
	PAGE = 8192,
	LARGEST_SMALL = 32768 - 8, // even for objects without pointers
	TINY = 16,
	TINY_CLASS = 2,
	SEPARATE = 6, // without align8, from here on objects are not combined
};

void ledger_init(struct ledger *l, bool align8)
{
	memset(l, 0, sizeof *l);
	l->align8 = align8;
}

unsigned ledger_class(size_t n, bool noscan, bool align8)
{
	if (noscan && n <= class_size[1])
		return 1;
	for (unsigned c = 1; c < LEDGER_CLASSES; c++)
		if (class_size[c] >= n && (align8 || class_size[c] % TINY == 0))
			return c;
	return 0;
}

uint64_t ledger_size(size_t n, bool noscan, bool align8)
{
	if (n > LARGEST_SMALL)
		return (n + PAGE - 1) / PAGE * PAGE;
	return class_size[ledger_class(n, noscan, align8)];
}

// fits_block tells whether n bytes, aligned by Go's rule, fit into the tiny
// block.  If so, it counts them as used.
static bool fits_block(struct ledger *l, size_t n)
{
	uint32_t align = n % 8 == 0 ? 8 : n % 4 == 0 ? 4 : n % 2 == 0 ? 2 : 1;
	uint32_t at = (l->block_used + align - 1) / align * align;

	if (!l->block || at + n > TINY)
		return false;
	l->block_used = at + (uint32_t)n;
	return true;
}

static void alloc_tiny(struct ledger *l, size_t n)
{
	if (fits_block(l, n)) {
		l->combined++;
		return;
	}
	l->small[TINY_CLASS]++;
	// The new block stays current if it has more room than the old one.
	if (!l->block || n < l->block_used) {
		l->block = true;
		l->block_used = (uint32_t)n;
	}
}

void ledger_alloc_pages(struct ledger *l, size_t n)
{
	l->large++;
	l->large_bytes += (n + PAGE - 1) / PAGE * PAGE;
}

void ledger_alloc(struct ledger *l, size_t n, bool noscan)
{
	if (n == 0)
		return;
	if (n > LARGEST_SMALL) {
		ledger_alloc_pages(l, n);
	} else if (noscan && n < (l->align8 ? TINY : SEPARATE)) {
		alloc_tiny(l, n);
	} else {
		l->small[ledger_class(n, noscan, l->align8)]++;
	}
}

void ledger_alloc_kind(struct ledger *l, size_t n, int kind)
{
	if (kind >= 16 && n > 16 && n <= 24)
		l->small[3]++;
	else
		ledger_alloc(l, n, false);
}

void ledger_flushed(struct ledger *l)
{
	l->block = false;
	l->block_used = 0;
}

void ledger_add(struct ledger *sum, const struct ledger *l)
{
	for (unsigned c = 0; c < LEDGER_CLASSES; c++)
		sum->small[c] += l->small[c];
	sum->large += l->large;
	sum->large_bytes += l->large_bytes;
	sum->combined += l->combined;
}

uint64_t ledger_mallocs(const struct ledger *l)
{
	uint64_t n = l->large + l->combined;

	for (unsigned c = 0; c < LEDGER_CLASSES; c++)
		n += l->small[c];
	return n;
}

uint64_t ledger_bytes(const struct ledger *l)
{
	uint64_t bytes = l->large_bytes;

	for (unsigned c = 0; c < LEDGER_CLASSES; c++)
		bytes += l->small[c] * class_size[c];
	return bytes;
}

void ledger_compare(const struct ledger *l, const rt_memstats *m,
		    struct comparison *c)
{
	struct heapstats_totals h;

	heapstats_unsafe_read(&h);
	compare_u64(c, "mallocs asked for", m->mallocs, ledger_mallocs(l));
	compare_u64(c, "total_alloc asked for", m->total_alloc,
		    ledger_bytes(l));
	compare_u64(c, "large asked for", h.large_alloc_count, l->large);
	compare_u64(c, "large bytes asked for", h.large_alloc, l->large_bytes);
	compare_u64(c, "tiny combined", h.tiny_alloc_count, l->combined);
	for (unsigned i = 0; i < LEDGER_CLASSES; i++) {
		compare_class(c, "asked for", i, h.small_alloc_count[i],
			      l->small[i]);
		if (i >= RT_BY_SIZE)
			continue;
		compare_class(c, "size by the table", i, m->by_size[i].size,
			      class_size[i]);
		compare_class(c, "mallocs asked for", i, m->by_size[i].mallocs,
			      l->small[i]);
	}
}
