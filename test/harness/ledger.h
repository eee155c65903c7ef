// ledger.h - what a test asked for, counted by the rules.
//
// Size classes, page rounding and the tiny rules are worked out here from
// their definitions, without the tables and functions of the library.  So
// mallocs, total_alloc and by_size[].mallocs are predicted exactly.
//
// A ledger belongs to one attached thread, whose tiny block it follows.  The
// thread must call ledger_flushed if its cache was flushed since its last
// request.
#ifndef TEST_HARNESS_LEDGER_H
#define TEST_HARNESS_LEDGER_H

#include "test/harness/recount.h"

enum { LEDGER_CLASSES = 68 };

struct ledger {
	bool align8;			// as rt_config.align8
	bool block;			// there is a tiny block
	uint32_t block_used;		// bytes of it
	uint64_t small[LEDGER_CLASSES]; // slots asked for; [0] is 0
	uint64_t large, large_bytes;	// bytes of whole pages
	uint64_t combined;		// requests that shared a tiny block
};

void ledger_init(struct ledger *l, bool align8);

// ledger_alloc counts a request of n bytes that was granted; 0 bytes count
// nothing.
void ledger_alloc(struct ledger *l, size_t n, bool noscan);

// ledger_alloc_kind counts a request for an object of a kind that a host
// registered.
void ledger_alloc_kind(struct ledger *l, size_t n, int kind);

// ledger_alloc_pages counts a request for an object of whole pages.
void ledger_alloc_pages(struct ledger *l, size_t n);

// ledger_flushed forgets the tiny block.
void ledger_flushed(struct ledger *l);

// ledger_class returns the size class of a request of up to 32760 bytes, and
// ledger_size returns what an object of n bytes counts as.
unsigned ledger_class(size_t n, bool noscan, bool align8);
uint64_t ledger_size(size_t n, bool noscan, bool align8);

// ledger_add adds the counts of l to *sum.
void ledger_add(struct ledger *sum, const struct ledger *l);

uint64_t ledger_mallocs(const struct ledger *l);
uint64_t ledger_bytes(const struct ledger *l);

// ledger_compare compares *m with a ledger of everything that was ever asked
// for, and compares the internal counts of the classes that do not show in *m.
// The world must be stopped and the caches flushed.
void ledger_compare(const struct ledger *l, const rt_memstats *m,
		    struct comparison *c);

#endif
