// fixalloc.h - objects of one size outside the heap.  Floor 1.
//
// Go: mfixalloc.go.  Chunks of 16 KiB come from persistent memory; freed
// objects are kept in a list and never go back.  The owner locks.
#ifndef RUNTIME_FIXALLOC_H
#define RUNTIME_FIXALLOC_H

#include "runtime/persistent.h"

enum { FIXALLOC_CHUNK = 16 << 10 };

struct fixalloc_free {
	struct fixalloc_free *next;
};

struct fixalloc {
	size_t size;  // bytes an object
	size_t align; // power of two
	bool zero;    // objects come zeroed; else only their first use is
	struct fixalloc_free *list;
	char *chunk;	// rest of the current chunk
	size_t nchunk;	// bytes of it
	uint64_t inuse; // bytes handed out
	atomic_u64 *stat;
};

// fixalloc_init: size is at least 8 and at most FIXALLOC_CHUNK, a multiple of
// align.
void fixalloc_init(struct fixalloc *f, size_t size, size_t align, bool zero,
		   atomic_u64 *stat);

// fixalloc_alloc returns NULL when the system refuses a chunk.
void *fixalloc_alloc(struct fixalloc *f);
void fixalloc_free(struct fixalloc *f, void *p);

#endif
