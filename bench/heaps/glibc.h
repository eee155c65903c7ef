// glibc.h - the C library's malloc, with calloc where memory is zeroed.
#include "explicit.h"

#include <malloc.h>
#include <stdlib.h>

static inline void *heap_alloc(size_t n)
{
	return calloc(1, n);
}

static inline void *heap_alloc_noscan(size_t n)
{
	return malloc(n);
}

static inline void heap_free(void *p)
{
	free(p);
}

static inline void heap_release(void)
{
	malloc_trim(0);
}
