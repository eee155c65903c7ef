// boehm.h - Boehm's collector with its default settings.
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
