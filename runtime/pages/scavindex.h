// scavindex.h - which chunks are worth scavenging.
//
// Go: scavengeIndex (mgcscavenge.go).
//
// Each chunk has one word.  It holds the number of pages in use now, the number
// in use when a cycle began (the note), and the number of that cycle.  It also
// says whether the chunk may have free pages that are not scavenged, and
// whether the memory behind its tables was released.
//
// A chunk is eligible if it may have such pages and the search is forced.  In
// an unforced search it must also have fewer than 496 pages (96.875 %) in use:
// now and, if the note is of this cycle, when the cycle began.
//
// Two cursors make a search skip chunks that it has seen.  Searches move them
// down.  The cursor of forced searches rises when pages above it are freed, the
// other when a cycle begins.  The search goes down from high addresses, whereas
// allocation prefers low ones.  The heap lock protects everything here but the
// growth of the table (scavindex_reserve).
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
	uint32_t gen;	       // number of the cycle
	uint32_t cursor_bg;    // an unforced search begins below it
	uint32_t cursor_force; // no chunk at or above is eligible if forced
	uint32_t
	    free_high; // highest chunk freed into since the last cycle, + 1
};

// scavindex_init and scavindex_reserve return false if the system refuses.
// scavindex_reserve makes the table of nchunks chunks usable; one thread at a
// time may call it.
bool scavindex_init(struct scavindex *s, uint32_t max_chunks);
bool scavindex_reserve(struct scavindex *s, uint32_t nchunks);
void scavindex_grow(struct scavindex *s, uint32_t nchunks);
void scavindex_fini(struct scavindex *s);

// scavindex_in_use returns the number of allocated pages of a chunk.
unsigned scavindex_in_use(const struct scavindex *s, uint32_t chunk);

// scavindex_check returns NULL if every word and cursor is within its bounds,
// otherwise what is not.  It goes through all chunks, so debug builds call it
// only when a cycle begins.  Functions that change the word of a chunk check
// that chunk.
const char *scavindex_check(const struct scavindex *s);

// scavindex_alloc and scavindex_free note that npages of a chunk were
// allocated or freed.
void scavindex_alloc(struct scavindex *s, uint32_t chunk, unsigned npages);
void scavindex_free(struct scavindex *s, uint32_t chunk, unsigned npages);

// scavindex_find returns the highest eligible chunk below the cursor and below
// the given chunk.  With SCAVINDEX_NONE only the cursor counts.  Returns
// SCAVINDEX_NONE if there is none.
uint32_t scavindex_find(struct scavindex *s, uint32_t below, bool force);

// scavindex_empty notes that a chunk has no pages left to scavenge.
void scavindex_empty(struct scavindex *s, uint32_t chunk);

// scavindex_tables_gone tells whether the memory behind the tables of a chunk
// was released, and none of its pages was allocated since.
// scavindex_release_tables notes that it was released; no page may be in use.
bool scavindex_tables_gone(const struct scavindex *s, uint32_t chunk);
void scavindex_release_tables(struct scavindex *s, uint32_t chunk);

// scavindex_next_cycle begins a new cycle.  An unforced search then includes
// all chunks with pages that were freed in the previous cycle.
void scavindex_next_cycle(struct scavindex *s);

#endif
