// recount.h - statistics counted again from the stopped heap.
//
// Go: ReadMemStatsSlow (export_test.go).  Where rt_read_memstats adds up
// counters, this looks at every span, every bitmap and every table.  Only past
// events cannot be counted again: frees are taken from the statistics.
#ifndef TEST_HARNESS_RECOUNT_H
#define TEST_HARNESS_RECOUNT_H

#include <rt/rt.h>

#include "runtime/world/heapstats.h"

// How many values were compared, how many of them differed, and the first of
// these in words.  Its owner zeroes it before the first comparison.
struct comparison {
	uint64_t compared;
	uint64_t differing;
	char first[160];
};

// compare_u64 compares one value with what it should be.
void compare_u64(struct comparison *c, const char *name, uint64_t got,
		 uint64_t want);

// compare_class is compare_u64 for a value of a size class.
void compare_class(struct comparison *c, const char *name, unsigned sizeclass,
		   uint64_t got, uint64_t want);

// What the spans and bitmaps of a stopped heap say.
struct recount {
	uint64_t objects[SIZECLASS_COUNT]; // counted slots; [0]: large objects
	uint64_t large_bytes;		   // of their pages
	uint64_t heap_pages;		   // of spans of objects
	uint64_t stack_pages;		   // of spans of stacks
	uint64_t work_pages;		   // of spans of work buffers
	uint64_t spans;			   // in use
	uint64_t cached_spans;		   // mspans that Ps keep
	uint64_t free_pages;		   // including those that Ps keep
	uint64_t scavenged_pages;	   // part of the free pages
	uint64_t both_pages;   // allocated and scavenged at once: none
	uint64_t stale_spans;  // alloc_count is not what the bits say: none
	uint64_t mcache_bytes; // of attached threads
	uint64_t mspan_bytes;  // of the chunks of mspans
	uint64_t misc_bytes;   // of tables, summaries, bitmap8s, helpers
};

// recount_heap counts.  The world must be stopped and mcaches flushed.
void recount_heap(struct recount *r);

// recount_compare compares *m, which rt_read_memstats or mstats_read filled in
// this stop, and the gauges with a recount.
void recount_compare(const rt_memstats *m, struct comparison *c);

// compare_memstats compares two results: by_size, and the fields up to next_gc.
// The other fields are about collections.
void compare_memstats(struct comparison *c, const rt_memstats *got,
		      const rt_memstats *want);

#endif
