// pallocbits.h - the bitmaps of one chunk of 512 pages.
//
// Go: mpallocbits.go.  Two bitmaps: alloc (1: allocated) and scavenged (1:
// given back to the system or never touched).  No page has both bits set: a
// page's scavenged bit is cleared in the step that allocates it.  The heap
// lock protects both.
//
// A summary of a chunk is the free run at its low end, the longest free run,
// and the free run at its high end, 21 bits each.
#ifndef RUNTIME_PAGES_PALLOCBITS_H
#define RUNTIME_PAGES_PALLOCBITS_H

#include "runtime/base/bits.h"

enum { PALLOCBITS_WORDS = RT_CHUNK_PAGES / 64 };

struct pallocbits {
	uint64_t word[PALLOCBITS_WORDS];
};

struct pallocdata {
	struct pallocbits alloc;
	struct pallocbits scavenged;
};

typedef uint64_t pallocsum;

enum {
	PALLOCSUM_LOG_MAX = 21, // one field; 2^21 pages are 16 GiB
	PALLOCSUM_FIELD = (1 << PALLOCSUM_LOG_MAX) - 1,
};

// pallocsum_make packs a summary.  A run of 2^21 pages does not fit a field:
// then all three are that, and only bit 63 is set.
RT_INLINE pallocsum pallocsum_make(uint32_t start, uint32_t max, uint32_t end)
{
	if (max > PALLOCSUM_FIELD)
		return UINT64_C(1) << 63;
	return (uint64_t)start | (uint64_t)max << PALLOCSUM_LOG_MAX |
	       (uint64_t)end << 2 * PALLOCSUM_LOG_MAX;
}

// pallocsum_field unpacks field i: 0 start, 1 max, 2 end.
RT_INLINE uint32_t pallocsum_field(pallocsum s, unsigned i)
{
	if (s >> 63)
		return 1 << PALLOCSUM_LOG_MAX;
	return (uint32_t)(s >> i * PALLOCSUM_LOG_MAX) & PALLOCSUM_FIELD;
}

RT_INLINE uint32_t pallocsum_start(pallocsum s)
{
	return pallocsum_field(s, 0);
}

RT_INLINE uint32_t pallocsum_max(pallocsum s)
{
	return pallocsum_field(s, 1);
}

RT_INLINE uint32_t pallocsum_end(pallocsum s)
{
	return pallocsum_field(s, 2);
}

// pallocsum_merge combines n neighbours, each of 2^log_pages pages.
pallocsum pallocsum_merge(const pallocsum *s, unsigned n, unsigned log_pages);

void pallocbits_set_range(struct pallocbits *b, unsigned i, unsigned n);
void pallocbits_clear_range(struct pallocbits *b, unsigned i, unsigned n);
unsigned pallocbits_count_range(const struct pallocbits *b, unsigned i,
				unsigned n);
bool pallocbits_get(const struct pallocbits *b, unsigned i);

pallocsum pallocbits_summarize(const struct pallocbits *b);

enum { PALLOCBITS_NONE = ~0U };

// pallocbits_find is the first of the lowest n (at least 1) clear bits in a
// row, at or above bit from, or PALLOCBITS_NONE.  *first_free becomes the
// lowest clear bit at or above from (PALLOCBITS_NONE: none).
unsigned pallocbits_find(const struct pallocbits *b, unsigned n, unsigned from,
			 unsigned *first_free);

// pallocdata_alloc_range marks n pages from page i allocated and no longer
// scavenged; it returns how many of them were scavenged.
unsigned pallocdata_alloc_range(struct pallocdata *d, unsigned i, unsigned n);

// pallocdata_find_scavenge looks for free pages that are not scavenged, at
// page from and below, highest first.  min (a power of two up to 64) is the
// number of pages of a physical page, at least 1: the run is aligned to it
// and a multiple of it, at most max rounded up to min.  huge is the number of
// pages of a huge page (0: none): a run that would leave the lower part of a
// huge page behind takes the whole one when all of it is free and unscavenged.
// Returns the run's first page and *n, or PALLOCBITS_NONE and 0.
unsigned pallocdata_find_scavenge(const struct pallocdata *d, unsigned from,
				  unsigned min, unsigned max, unsigned huge,
				  unsigned *n);

#endif
