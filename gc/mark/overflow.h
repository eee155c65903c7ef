// overflow.h - pages whose marked objects must be scanned again.
//
// Go has none of this: its work buffers are never refused.
//
// A marker that has no room for what a marked object refers to sets the bit of
// the object's page, and then raises the flag.  Any marker may lower the flag
// at any time, and then take bits and scan their pages, while others go on to
// mark and to set bits.  Lowering the flag and taking bits are exchanges.  So
// each bit is taken by one marker, and a bit that is set meanwhile is not lost:
// it is taken too, or the flag is up again.  A page whose bit is set twice may
// be scanned twice, which does no harm.
//
// A scan passes over objects without a mark.  So a marker must show the
// object's mark before it sets the bit (scan_overflow).
//
// Only the opener of the marking may scan objects of some kinds again.  A
// marker that has taken the bits of their pages leaves them to the opener.
//
// Nothing here needs exclusion from outside.
#ifndef GC_MARK_OVERFLOW_H
#define GC_MARK_OVERFLOW_H

#include "runtime/pages/arena.h"

struct overflow {
	atomic_u64 raised; // 1: some bit may be set
	atomic_u64 left;   // 1: some bit may be set that is for the opener
};

RT_GLOBAL struct overflow overflow;

// Pages of one word of bits.
enum { OVERFLOW_PAGES = 64 };

// overflow_set notes that some marked object that begins in a page must be
// scanned again.
void overflow_set(uint64_t page);

// overflow_raise only raises the flag: roots must be looked at again.
void overflow_raise(void);

// overflow_lower lowers the flag.  Returns whether it was up.
bool overflow_lower(void);

// overflow_take takes the bits of the OVERFLOW_PAGES pages from page i *
// OVERFLOW_PAGES on.  The lowest bit is the first page's.
uint64_t overflow_take(uint64_t i);

// overflow_leave sets again, for the opener, some of the bits that
// overflow_take has returned.  overflow_lower_left lowers the flag that says
// that there are such bits, and returns whether it was up.
void overflow_leave(uint64_t i, uint64_t bits);
bool overflow_lower_left(void);

// overflow_check returns NULL if no page of a heap of npages pages must be
// scanned again, otherwise what is wrong.  No marking may be open.  Debug
// builds call it when a marking ends.
const char *overflow_check(uint64_t npages);

#endif
