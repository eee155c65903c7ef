// boehm_tuned.h - Boehm's collector as a good language runtime uses it.
//
// - Interior pointers count on stacks only, so that an object of 16 bytes
//   takes 16 bytes and not 32.
// - The free space divisor is 1: the heap grows to about twice what lives.
// - Small objects are popped inline from lists of the thread, refilled by
//   GC_generic_malloc_many with all free objects of a block at once.
//
// The collector does not follow the links between pointer-free objects, so a
// list of them would lose all but its first object.  So pointer-free objects
// have a kind of their own, and only their first word is scanned.  That word is
// the link while the object is in a list; it is cleared when the object leaves
// the list.
#include "boehm_common.h"

#include <gc/gc_inline.h>
#include <gc/gc_mark.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

enum {
	BOEHM_GRANULE = 16, // bytes
	BOEHM_INLINE_MAX = 1024,
	BOEHM_LISTS = BOEHM_INLINE_MAX / BOEHM_GRANULE + 1,
	BOEHM_THREADS = 32 // ever attached
};

// The lists are in static memory, which is always a root; thread-local memory
// is not always one.  Each thread has one of these, which is never freed.
struct boehm_lists {
	_Alignas(128) void *scanned[BOEHM_LISTS];
	void *leaf[BOEHM_LISTS];
};

static struct boehm_lists boehm_lists[BOEHM_THREADS];
static __thread struct boehm_lists *boehm_mine;
static int boehm_leaf_kind;

static inline void heap_attach(void)
{
	static atomic_int attached;
	int i = atomic_fetch_add(&attached, 1);

	if (i >= BOEHM_THREADS) {
		fprintf(stderr, "boehm_tuned: too many threads\n");
		exit(1);
	}
	boehm_mine = &boehm_lists[i];
}

static inline void heap_detach(void)
{
}

static inline void heap_begin(void)
{
	GC_set_all_interior_pointers(0);
	GC_set_free_space_divisor(1);
	GC_INIT();
	boehm_markers();
	boehm_leaf_kind = (int)GC_new_kind(GC_new_free_list(),
					   sizeof(void *) | GC_DS_LENGTH, 0, 0);
	heap_attach();
}

static __attribute__((noinline, unused)) void *boehm_refill(void **list,
							    size_t n, int kind)
{
	GC_generic_malloc_many(n, kind, list);
	return *list;
}

static inline __attribute__((always_inline)) void *boehm_pop(void **list,
							     size_t n, int kind)
{
	void *p = *list;

	if (__builtin_expect(!p, 0)) {
		p = boehm_refill(list, n, kind);
		if (!p)
			return NULL;
	}
	*list = GC_NEXT(p);
	GC_NEXT(p) = NULL;
	return p;
}

static inline size_t boehm_granules(size_t n)
{
	return (n + BOEHM_GRANULE - 1) / BOEHM_GRANULE;
}

static inline __attribute__((always_inline)) void *heap_alloc(size_t n)
{
	size_t granules = boehm_granules(n);

	if (n > BOEHM_INLINE_MAX)
		return GC_MALLOC(n);
	return boehm_pop(&boehm_mine->scanned[granules],
			 granules * BOEHM_GRANULE, GC_I_NORMAL);
}

static inline __attribute__((always_inline)) void *heap_alloc_noscan(size_t n)
{
	size_t granules = boehm_granules(n);

	if (n > BOEHM_INLINE_MAX)
		return GC_MALLOC_ATOMIC(n);
	return boehm_pop(&boehm_mine->leaf[granules], granules * BOEHM_GRANULE,
			 boehm_leaf_kind);
}
