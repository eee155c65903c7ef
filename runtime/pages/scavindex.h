// scavindex.h - which chunks are worth scavenging.
//
// Go: scavengeIndex (mgcscavenge.go).  One word a chunk: pages in use, pages
// in use at the end of the last cycle, the cycle in which that was noted, and
// whether the chunk has free pages that are not scavenged.
//
// A chunk is eligible if it has such pages and either all memory is wanted
// (force) or less than 96.875 % of it (496 pages) is in use, now and, if the
// note is of this cycle, at the end of the last.  Two cursors, which only
// fall between resets, save looking at chunks that have nothing.  Search goes
// from high addresses down, allocation goes up.  The heap lock protects all.
#ifndef RUNTIME_PAGES_SCAVINDEX_H
#define RUNTIME_PAGES_SCAVINDEX_H

#include "runtime/os/sysmem.h"

enum {
	SCAVINDEX_HIGH = RT_CHUNK_PAGES - RT_CHUNK_PAGES / 32, // 496
	SCAVINDEX_NONE = ~0U,
};

struct scavindex {
	struct systable table; // one uint64_t a chunk
	uint32_t nchunks;
	uint32_t gen;	       // cycles
	uint32_t cursor_bg;    // no eligible chunk at or above, unforced
	uint32_t cursor_force; // no eligible chunk at or above, forced
	uint32_t
	    free_high; // highest chunk freed into since the last cycle, + 1
};

bool scavindex_init(struct scavindex *s, uint32_t max_chunks);
bool scavindex_reserve(struct scavindex *s, uint32_t nchunks); // commit table
void scavindex_grow(struct scavindex *s, uint32_t nchunks);
void scavindex_fini(struct scavindex *s);

// scavindex_in_use is the number of pages of a chunk in use.
unsigned scavindex_in_use(const struct scavindex *s, uint32_t chunk);

// scavindex_check tells whether every word and cursor is within its bounds.
bool scavindex_check(const struct scavindex *s);

// scavindex_alloc and scavindex_free note that npages of a chunk were
// allocated or freed.
void scavindex_alloc(struct scavindex *s, uint32_t chunk, unsigned npages);
void scavindex_free(struct scavindex *s, uint32_t chunk, unsigned npages);

// scavindex_find is the highest eligible chunk below the cursor and below the
// chunk given (SCAVINDEX_NONE: any), or SCAVINDEX_NONE.
uint32_t scavindex_find(struct scavindex *s, uint32_t below, bool force);

// scavindex_empty notes that a chunk has nothing left to scavenge.
void scavindex_empty(struct scavindex *s, uint32_t chunk);

// scavindex_next_cycle begins a new cycle: what was freed in the last one
// becomes eligible to the unforced search.
void scavindex_next_cycle(struct scavindex *s);

#endif
