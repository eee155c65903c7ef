// whippet_embedder.h - what Whippet's collector is compiled with for whippet.h.
//
// Objects have no headers.  Those with pointers are scanned conservatively, so
// the collector needs no object's layout and moves no object.
#include "gc-embedder-api.h"

#include "gc-assert.h"
#include "whippet_roots.h"

#define GC_EMBEDDER_EPHEMERON_HEADER uintptr_t header;
#define GC_EMBEDDER_FINALIZER_HEADER uintptr_t header;

static inline size_t gc_finalizer_priority_count(void)
{
	return 1;
}

static inline int gc_is_valid_conservative_ref_displacement(uintptr_t distance)
{
	return distance == 0;
}

static inline int gc_extern_space_visit(struct gc_extern_space *space,
					struct gc_ref ref)
{
	(void)space;
	(void)ref;
	return 0;
}

static inline void gc_extern_space_start_gc(struct gc_extern_space *space,
					    int is_minor_gc)
{
	(void)space;
	(void)is_minor_gc;
}

static inline void gc_extern_space_finish_gc(struct gc_extern_space *space,
					     int is_minor_gc)
{
	(void)space;
	(void)is_minor_gc;
}

typedef void whippet_edge(struct gc_edge edge, struct gc_heap *heap,
			  void *data);
typedef void whippet_pinned(struct gc_ref ref, struct gc_heap *heap,
			    void *data);
typedef void whippet_range(uintptr_t lo, uintptr_t hi, int interior,
			   struct gc_heap *heap, void *data);

static inline size_t gc_trace_object(struct gc_ref ref, whippet_edge *visit,
				     struct gc_heap *heap, void *data)
{
	(void)ref;
	(void)visit;
	(void)heap;
	(void)data;
	GC_CRASH();
}

static inline void gc_trace_mutator_roots(struct gc_mutator_roots *roots,
					  whippet_edge *visit,
					  struct gc_heap *heap, void *data)
{
	(void)roots;
	(void)visit;
	(void)heap;
	(void)data;
}

static inline void gc_trace_heap_roots(struct gc_heap_roots *roots,
				       whippet_edge *visit,
				       struct gc_heap *heap, void *data)
{
	(void)roots;
	(void)visit;
	(void)heap;
	(void)data;
}

static inline void gc_trace_mutator_pinned_roots(struct gc_mutator_roots *roots,
						 whippet_pinned *pinned,
						 whippet_range *range,
						 struct gc_heap *heap,
						 void *data)
{
	(void)roots;
	(void)pinned;
	(void)range;
	(void)heap;
	(void)data;
}

static inline void gc_trace_heap_pinned_roots(struct gc_heap_roots *roots,
					      whippet_pinned *pinned,
					      whippet_range *range,
					      struct gc_heap *heap, void *data)
{
	(void)pinned;
	if (roots && roots->lo < roots->hi)
		range(roots->lo, roots->hi, 0, heap, data);
}

// ---- Objects do not move ----

static inline uintptr_t gc_object_forwarded_nonatomic(struct gc_ref ref)
{
	(void)ref;
	return 0;
}

static inline void gc_object_forward_nonatomic(struct gc_ref ref,
					       struct gc_ref new_ref)
{
	(void)ref;
	(void)new_ref;
	GC_CRASH();
}

static inline struct gc_atomic_forward
gc_atomic_forward_begin(struct gc_ref ref)
{
	(void)ref;
	GC_CRASH();
}

static inline void gc_atomic_forward_acquire(struct gc_atomic_forward *f)
{
	(void)f;
	GC_CRASH();
}

static inline int gc_atomic_forward_retry_busy(struct gc_atomic_forward *f)
{
	(void)f;
	GC_CRASH();
}

static inline void gc_atomic_forward_abort(struct gc_atomic_forward *f)
{
	(void)f;
	GC_CRASH();
}

static inline size_t gc_atomic_forward_object_size(struct gc_atomic_forward *f)
{
	(void)f;
	GC_CRASH();
}

static inline void gc_atomic_forward_commit(struct gc_atomic_forward *f,
					    struct gc_ref new_ref)
{
	(void)f;
	(void)new_ref;
	GC_CRASH();
}

static inline uintptr_t gc_atomic_forward_address(struct gc_atomic_forward *f)
{
	(void)f;
	GC_CRASH();
}
