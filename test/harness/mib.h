// mib.h - a heap of which a test fills and drops up to MOST_MIB MiB.
#ifndef TEST_HARNESS_MIB_H
#define TEST_HARNESS_MIB_H

#include "test/harness/heap.h"

#define MIB (UINT64_C(1) << 20)

enum {
	OBJECT = 8192,
	PER_MIB = (1 << 20) / OBJECT,
	MOST_MIB = 64,
};

static void **objects;

static inline void begin_as(rt_config c)
{
	heap_start_exact(c);
	objects = (void **)heap_table(MOST_MIB * PER_MIB, RT_ROOT_EXACT);
}

static inline void fill(size_t mib)
{
	for (size_t i = 0; i < mib * PER_MIB; i++)
		if (!objects[i])
			objects[i] = rt_alloc_noscan(OBJECT);
}

// drop drops all but the first keep_mib MiB.
static inline void drop(size_t keep_mib)
{
	memset(objects + keep_mib * PER_MIB, 0,
	       (MOST_MIB - keep_mib) * PER_MIB * sizeof *objects);
}

#endif
