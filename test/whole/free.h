// free.h - objects that tests free by hand.
#ifndef TEST_WHOLE_FREE_H
#define TEST_WHOLE_FREE_H

#include <rt/rt.h>

#include "test/harness/heap.h"

static inline void *alloc_words(size_t n)
{
	void *p = rt_alloc_kind(RT_WORDS, n);

	ck_assert_ptr_nonnull(p);
	return p;
}

static inline void free_ok(void *p)
{
	ck_assert_int_eq(rt_free(p), RT_OK);
}

static const uint64_t all_bits[] = {UINT64_MAX};
static const rt_type links = {.struct_size = sizeof(rt_type),
			      .size = 64,
			      .ptrdata = 64,
			      .bitmap = all_bits};

static inline void *alloc_links(void)
{
	char *p = rt_alloc_typed(&links, 1);

	ck_assert_ptr_nonnull(p);
	ck_assert(heap_is_zero(p, 64));
	return p;
}

#endif
