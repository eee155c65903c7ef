// jemalloc.h - jemalloc, which replaces malloc when it is linked.
#include "explicit.h"

#include <stdio.h>
#include <stdlib.h>

#include <jemalloc/jemalloc.h>

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
	char purge[64];

	mallctl("thread.tcache.flush", NULL, NULL, NULL, 0);
	snprintf(purge, sizeof purge, "arena.%u.purge", MALLCTL_ARENAS_ALL);
	mallctl(purge, NULL, NULL, NULL, 0);
}
