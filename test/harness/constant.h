// constant.h - allocations of constant sizes, which are inline as a host's are.
#ifndef TEST_HARNESS_CONSTANT_H
#define TEST_HARNESS_CONSTANT_H

#include <stdbool.h>
#include <stddef.h>

enum { CONSTANT_SIZES = 9 };

// constant_alloc allocates an object of size number which, modulo
// CONSTANT_SIZES, and sets *n to that size.  With noscan the object has no
// pointers.  Returns NULL if there is no memory.
void *constant_alloc(unsigned which, bool noscan, size_t *n);

#endif
