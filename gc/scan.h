// scan.h - the words of one object become work.  Floor 6.
//
// Go: scanobject (mgcmark.go).
//
// Every aligned word that lies in the heap's range is pushed; whether it is a
// pointer is found out when it is popped.  Large objects are scanned in
// pieces: what is left of one is pushed before its piece, so that another
// marker can take it and the stack stays small.  Scanning never drains.
#ifndef GC_SCAN_H
#define GC_SCAN_H

#include "gc/grey.h"

enum { GCSCAN_PIECE = 128 << 10 }; // Go: maxObletBytes

// gcscan_words pushes the words of [lo, hi), both 8-aligned.  It stops at the
// first word that does not fit and returns its address; hi: all did.
uintptr_t gcscan_words(struct gcmarker *m, uintptr_t lo, uintptr_t hi);

// gcscan_object pushes the words of an object that was just marked, of a
// large one those of its first piece.  What does not fit is remembered: its
// page overflows.
void gcscan_object(struct gcmarker *m, const struct gcgrey *o);

// gcscan_more goes on at an address inside a large object.
void gcscan_more(struct gcmarker *m, uintptr_t at);

#endif
