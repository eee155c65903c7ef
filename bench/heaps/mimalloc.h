// mimalloc.h - mimalloc by its own names.
#include "explicit.h"

#include <mimalloc.h>

static inline void *heap_alloc(size_t n)
{
	return mi_zalloc(n);
}

static inline void *heap_alloc_noscan(size_t n)
{
	return mi_malloc(n);
}

static inline void heap_free(void *p)
{
	mi_free(p);
}

static inline void heap_release(void)
{
	mi_collect(true);
}
