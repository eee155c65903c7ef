// pallocbits.h - the bitmaps of one chunk of 512 pages.
//
// Go: mpallocbits.go.
//
// There are two bitmaps: alloc (1: allocated) and scavenged (1: released to the
// system, or never touched).  No page has both bits set, because the step that
// allocates a page clears its scavenged bit.  The heap lock protects both.
//
// A summary of a chunk has the lengths of three free ranges, 21 bits each: at
// its low end, the longest, and at its high end.
#ifndef RUNTIME_PAGES_PALLOCBITS_H
#define RUNTIME_PAGES_PALLOCBITS_H

#include "runtime/base/bits.h"

enum { PALLOCBITS_WORDS = RT_CHUNK_PAGES / 64 };

// One bit for each page of a chunk.  pagealloc_check checks them.
struct pallocbits {
	uint64_t word[PALLOCBITS_WORDS];
};

// The bitmaps of a chunk.  pagealloc_check checks those of all chunks.
struct pallocdata {
	struct pallocbits alloc;
	struct pallocbits scavenged;
};

typedef uint64_t pallocsum;

enum {
	PALLOCSUM_LOG_MAX = 21, // one field; 2^21 pages are 16 GiB
	PALLOCSUM_FIELD = (1 << PALLOCSUM_LOG_MAX) - 1,
};

// pallocsum_make packs a summary.  2^21 does not fit a field, but if one length
// is 2^21, all are: bit 63 alone says so.
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

// pallocbits_find returns the first of the lowest n (at least 1) clear bits in
// a row, at or above bit from, or PALLOCBITS_NONE.  It sets *first_free to the
// lowest clear bit at or above from, or to PALLOCBITS_NONE.
unsigned pallocbits_find(const struct pallocbits *b, unsigned n, unsigned from,
			 unsigned *first_free);

// pallocdata_alloc_range marks n pages from page i allocated and no longer
// scavenged.  Returns how many of them were scavenged.
unsigned pallocdata_alloc_range(struct pallocdata *d, unsigned i, unsigned n);

// pallocdata_find_scavenge finds the highest range of free pages that are not
// scavenged, among page `from` and those below it.  min (a power of two up to
// 64) is the number of pages of a physical page, at least 1.  The range is
// aligned to min and a multiple of it, at most max rounded up to min.  huge is
// the number of pages of a huge page (0: none).  If the range would begin
// inside a huge page, and all of that is free and not scavenged, the range
// takes the whole huge page.  Returns the first page of the range and sets *n
// to its length, or returns PALLOCBITS_NONE and sets *n to 0.
unsigned pallocdata_find_scavenge(const struct pallocdata *d, unsigned from,
				  unsigned min, unsigned max, unsigned huge,
				  unsigned *n);

// pallocdata_find_scavenged finds the lowest range of scavenged pages, at most
// max (1 to 64) of them and all in one block of 64.  Returns the first page and
// sets *n to the length, or returns PALLOCBITS_NONE and sets *n to 0.
unsigned pallocdata_find_scavenged(const struct pallocdata *d, unsigned max,
				   unsigned *n);

#endif
