// whippet.h - Whippet's mostly-marking collector: stacks and objects are
// scanned conservatively, marking is parallel, and the heap grows.
//
// Whippet is compiled into its host.  RT_WHIPPET names a folder that has its
// api and a libwhippet.a.  That library must be made from Whippet's collector
// heap-conservative-parallel-mmc, with whippet_embedder.h for the embedder.
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "gc-allocate.h"
#include "gc-api.h"
#include "gc-null-event-listener.h"
#include "gc-safepoint.h"

#include "whippet_roots.h"

#define HEAP_FREES 0

static struct gc_heap *whippet_heap;
static struct gc_heap_roots whippet_roots;
static __thread struct gc_mutator *whippet_mine;

static inline void heap_begin(void)
{
	struct gc_options *options = gc_allocate_options();

	if (!gc_options_set_int(options, GC_OPTION_HEAP_SIZE_POLICY,
				GC_HEAP_SIZE_GROWABLE) ||
	    !gc_init(options, gc_empty_stack_addr(), &whippet_heap,
		     &whippet_mine, GC_NULL_EVENT_LISTENER, NULL)) {
		fprintf(stderr, "whippet: gc_init failed\n");
		exit(1);
	}
	gc_heap_set_roots(whippet_heap, &whippet_roots);
}

static inline void heap_attach(void)
{
	whippet_mine = gc_init_for_thread(gc_empty_stack_addr(), whippet_heap);
}

static inline void heap_detach(void)
{
	gc_finish_for_thread(whippet_mine);
}

static inline __attribute__((always_inline)) void *heap_alloc(size_t n)
{
	return gc_allocate(whippet_mine, n,
			   GC_ALLOCATION_UNTAGGED_CONSERVATIVE);
}

static inline __attribute__((always_inline)) void *heap_alloc_noscan(size_t n)
{
	return gc_allocate(whippet_mine, n, GC_ALLOCATION_UNTAGGED_POINTERLESS);
}

static inline void heap_free(void *p)
{
	(void)p;
}

// The workloads hold one range at a time.
static inline void heap_hold(void *lo, void *hi)
{
	whippet_roots.lo = (uintptr_t)lo;
	whippet_roots.hi = (uintptr_t)hi;
}

static inline void heap_drop(void *lo, void *hi)
{
	(void)lo;
	(void)hi;
	whippet_roots.lo = whippet_roots.hi = 0;
}

static inline void heap_collect(void)
{
	gc_collect(whippet_mine, GC_COLLECTION_MAJOR);
}

static inline void heap_release(void)
{
	heap_collect();
}

static inline void heap_poll(void)
{
	gc_safepoint(whippet_mine);
}

static inline void heap_block(void)
{
	gc_deactivate(whippet_mine);
}

static inline void heap_unblock(void)
{
	gc_reactivate(whippet_mine);
}
