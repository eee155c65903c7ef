// scanstats.h - what a collection has left in the heap, by size class.
//
// Go: sizeClassScanStats, lastScanStats (mgcmark_greenteagc.go).  Go counts
// objects as it scans them.  Here all spans are counted after the flip, when
// the living slots of each are known, so marking has nothing to count.
//
// This is done in the stop, and only for a trace that shows it.
#ifndef GC_CYCLE_SCANSTATS_H
#define GC_CYCLE_SCANSTATS_H

#include "runtime/base/sizeclass.h"

// Whether the objects of a kind may have references.
enum scanstats_sort {
	SCANSTATS_SCANNED,
	SCANSTATS_NOSCAN,
	SCANSTATS_SORTS,
};

// Living objects, and the spans that have some.  Class 0 is that of large and
// of guarded objects.  There is no check function: any numbers are possible.
struct scanstats {
	uint64_t objects[SCANSTATS_SORTS][SIZECLASS_COUNT];
	uint32_t spans[SCANSTATS_SORTS][SIZECLASS_COUNT];
	uint64_t large_bytes[SCANSTATS_SORTS]; // of the objects of class 0
};

// The sums of one class, or of all.
struct scanstats_sums {
	uint64_t objects[SCANSTATS_SORTS];
	uint64_t spans[SCANSTATS_SORTS];
	uint64_t bytes[SCANSTATS_SORTS];
};

// scanstats_count counts the spans of the heap.  The world must be stopped, the
// heap flipped, and no span cached.
void scanstats_count(struct scanstats *s);

// scanstats_class adds the sums of a class to *sums.
void scanstats_class(const struct scanstats *s, unsigned class,
		     struct scanstats_sums *sums);

#endif
