// constant.h - allocations of constant sizes, which are inline as a host's are.
#ifndef TEST_HARNESS_CONSTANT_H
#define TEST_HARNESS_CONSTANT_H

#include <stdbool.h>
#include <stddef.h>

enum { CONSTANT_SIZES = 9 };

// constant_alloc allocates the size of a number, modulo CONSTANT_SIZES, and
// returns that size.
void *constant_alloc(unsigned which, bool noscan, size_t *n);

#endif
