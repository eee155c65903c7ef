// fixalloc.h - objects of one size outside the heap.
//
// Go: mfixalloc.go.  Chunks of 16 KiB come from persistent memory; freed
// objects are kept in a list and never go back.  The owner locks.
#ifndef RUNTIME_OS_FIXALLOC_H
#define RUNTIME_OS_FIXALLOC_H

#include "runtime/os/persistent.h"

enum { FIXALLOC_CHUNK = 16 << 10 };

// The first word of an object that is free.  Somebody who came late may still
// read it as what it was, so it is atomic, and stored with a release: whoever
// sees the link (lines_of_eight, with acquire) sees what was done before the
// object was freed.
struct fixalloc_free {
	atomic_ptr next;
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

// Objects on their way back, in the order in which they are handed out again.
// Who fills the list owns it and needs no lock for that; it begins as zeros.
struct fixalloc_list {
	struct fixalloc_free *first;
	struct fixalloc_free *last;
	uint64_t n;
};

RT_INLINE void fixalloc_list_add(struct fixalloc_list *l, void *p)
{
	struct fixalloc_free *object = p;

	if (l->n++ == 0)
		l->first = object;
	else
		atomic_ptr_store_release(&l->last->next, object);
	l->last = object;
}

// fixalloc_free_list frees all objects of a list in a time that does not
// depend on their number.
void fixalloc_free_list(struct fixalloc *f, const struct fixalloc_list *l);

#endif
