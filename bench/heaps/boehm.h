// boehm.h - Boehm's collector as it comes.
#include "boehm_common.h"

static inline void heap_begin(void)
{
	GC_INIT();
	boehm_markers();
}

static inline void heap_attach(void)
{
}

static inline void heap_detach(void)
{
}

static inline void *heap_alloc(size_t n)
{
	return GC_MALLOC(n);
}

static inline void *heap_alloc_noscan(size_t n)
{
	return GC_MALLOC_ATOMIC(n);
}
