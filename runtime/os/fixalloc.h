// fixalloc.h - objects of one size outside the heap.
//
// Go: mfixalloc.go.
//
// Chunks of up to 16 KiB come from persistent memory.  Freed objects are kept
// in a list for reuse; their memory is never released.  The owner of a fixalloc
// serialises all calls.
#ifndef RUNTIME_OS_FIXALLOC_H
#define RUNTIME_OS_FIXALLOC_H

#include "runtime/os/persistent.h"

enum { FIXALLOC_CHUNK = 16 << 10 };

// The first word of a free object.  It is atomic, because a late thread may
// still read it as the field that was there before the free.  It is stored with
// release, which pairs with the acquire in lines_of_eight: a thread that sees
// the link also sees all that was done before the object was freed.
// fixalloc_check follows the list.
struct fixalloc_free {
	atomic_ptr next;
};

struct fixalloc {
	size_t size;  // bytes an object
	size_t align; // power of two
	bool zero;    // every object comes zeroed; else only fresh ones
	struct fixalloc_free *list;
	char *chunk;	  // rest of the current chunk
	size_t nchunk;	  // bytes of it
	uint64_t inuse;	  // bytes of objects in use
	atomic_u64 *stat; // bytes of chunks
};

// fixalloc_init makes f empty.  size must be 8 to FIXALLOC_CHUNK and a multiple
// of align, which must be a power of two of at least 8.
void fixalloc_init(struct fixalloc *f, size_t size, size_t align, bool zero,
		   atomic_u64 *stat);

// fixalloc_alloc returns an object, or NULL if the system refuses a chunk.
void *fixalloc_alloc(struct fixalloc *f);
void fixalloc_free(struct fixalloc *f, void *p);

// Objects to be freed, in the order in which they will be allocated again.  The
// thread that fills a list owns it and needs no lock.  An empty list is all
// zeros.
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
	else // pairs with the acquire in lines_of_eight
		atomic_ptr_store_release(&l->last->next, object);
	l->last = object;
}

// fixalloc_free_list frees all objects of a list in a time that does not
// depend on their number.
void fixalloc_free_list(struct fixalloc *f, const struct fixalloc_list *l);

// fixalloc_check returns NULL if all invariants hold, otherwise what does not.
// The caller must serialise it with all other calls.  At each call that takes
// or frees objects, debug builds check the fields of f, and the free object
// that comes off or to the front of the list, but do not follow the list.
const char *fixalloc_check(const struct fixalloc *f);

#endif
