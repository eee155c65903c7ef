// handles.h - words outside the heap that are roots, one by one.
//
// Go: none.
//
// A handle is a word in a table that grows in place.  The table is cut into
// strips.  Marking reads all words of the strips that are not empty, as
// references only; adjacent strips are one range.
//
// A free word has its highest bit set, which no address has, and links to the
// next free word of its list.  So freeing a handle twice is noticed, and
// marking ignores free words, as it does all words that point outside the heap.
// The lists:
//
//   - each mcache keeps up to HANDLES_KEPT free words, and is used without a
//     lock by its own thread;
//   - each strip has a list of the others.
//
// When the list of an mcache is empty, HANDLES_BATCH free words of strips are
// moved to it.  When it is full, as many are moved to their strips.  A strip
// whose words are all in its list is empty.  Some empty strips keep their
// memory.  The memory of the others is released and reads as zero.
//
// A stop never finds the lock held: a thread that the stop does not wait for
// takes it only with the right to stop the world.
#ifndef GC_MARK_HANDLES_H
#define GC_MARK_HANDLES_H

#include <rt/roots.h>

#include "runtime/spans/mcache.h"

enum {
	HANDLES_KEPT = 256,
	HANDLES_BATCH = HANDLES_KEPT / 2,
	// Bytes of empty strips that keep their memory.  Releasing a strip and
	// using it again costs a third of making and freeing its handles.
	HANDLES_EMPTY = 1 << 20,
};

#define HANDLES_FREE (UINT64_C(1) << 63)

// A strip is in one of two lists if it has free words, or if it has no memory.
// handles_check checks each.
struct handles_strip {
	struct handles_strip *next;
	struct handles_strip *prev;
	uintptr_t first; // free word, 0: none
	uint32_t nfree;
	atomic_u32 ready; // 1: it has memory; lock; read by any thread
};

struct handles {
	struct mutex lock;	// protects what follows
	struct systable words;	// the words; the first nstrips() strips exist
	struct systable strips; // struct handles_strip, one for each strip
	atomic_u64 bytes;	// of words that strips were made of; raised
				// last, read by any thread
	uintptr_t base;		// of words; 0: there is no table yet
	unsigned strip_shift;	// logarithm of strip_bytes
	size_t strip_bytes;	// a power of two, whole physical pages
	struct handles_strip *partial;	// strips with free words
	struct handles_strip *released; // strips without memory
	size_t nempty; // empty strips with memory
};

RT_GLOBAL struct handles handles;

// handles_new returns a handle for the thread of mc, with the word obj, whose
// highest bit must not be set.  Returns NULL if there is no memory.
rt_handle *handles_new(struct rt_mcache *mc, uintptr_t obj);

// handles_free frees a handle; mc is that of the calling thread.  Returns false
// if h is no handle, or is free already.  handles_free_beside is handles_free
// for a thread that no stop waits for.  That thread must have the right to stop
// the world.
bool handles_free(struct rt_mcache *mc, rt_handle *h);
bool handles_free_beside(rt_handle *h);

// handles_used tells whether h is a handle that is not free.
bool handles_used(const rt_handle *h);

// handles_set stores a word into a handle that is used; its highest bit must
// not be set.
void handles_set(rt_handle *h, uintptr_t obj);

// handles_flush moves the free words that mc keeps to their strips.
void handles_flush(struct rt_mcache *mc);

void handles_fini(void);

// handles_next finds the next words to scan: those of adjacent strips that are
// not empty.  It sets [*lo, *hi) to them.  *lo must be 0 at first; later calls
// continue at *hi.  Returns false if there are none.  The world must be
// stopped.
bool handles_next(uintptr_t *lo, uintptr_t *hi);

// handles_check returns NULL if all invariants hold, otherwise what does not.
// The caller must hold the lock, or have the world stopped.
const char *handles_check(const struct handles *h);

#endif
