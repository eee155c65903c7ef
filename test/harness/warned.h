// warned.h - the warnings of a heap, as a test sees them.
#ifndef TEST_HARNESS_WARNED_H
#define TEST_HARNESS_WARNED_H

#include <string.h>

#include "test/harness/heap.h"

static unsigned warnings;
static char warning[512]; // the last one

static inline void warned(const char *text, void *arg)
{
	(void)arg;
	warnings++;
	strncpy(warning, text, sizeof warning - 1);
}

// warned_config returns a quiet configuration, and from now on warnings are
// counted.
static inline rt_config warned_config(void)
{
	rt_config c = heap_config(HEAP_QUIET);

	ck_assert_int_eq(rt_set_warn_handler(warned, NULL), RT_OK);
	return c;
}

#endif
