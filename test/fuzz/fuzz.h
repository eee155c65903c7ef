// fuzz.h - what the fuzz targets share.
//
// A target is a file with one LLVMFuzzerTestOneInput.  It reads its input as a
// program of small steps, does them, and does the same in a model that is too
// simple to be wrong.  If the two differ, REQUIRE ends the process.  Any input
// is a good one: missing bytes at its end read as zero.
//
// Linked with the fuzzer (make fuzz) a target looks for new inputs; linked
// with replay.c (make check) it runs those in test/corpus.
#ifndef TEST_FUZZ_FUZZ_H
#define TEST_FUZZ_FUZZ_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/base.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define REQUIRE(cond)                                                          \
	((cond) ? (void)0 : fuzz_require(#cond, __FILE__, __LINE__))

RT_NORETURN static inline void fuzz_require(const char *what, const char *file,
					    int line)
{
	fprintf(stderr, "%s:%d: not true: %s\n", file, line, what);
	abort();
}

struct input {
	const uint8_t *at;
	size_t left;
};

// input_uint returns the next n bytes, at most 8, as a number.
static inline uint64_t input_uint(struct input *in, size_t n)
{
	uint64_t v = 0;

	n = base_min(n, in->left);
	memcpy(&v, in->at, n);
	in->at += n;
	in->left -= n;
	return v;
}

static inline uint8_t input_u8(struct input *in)
{
	return (uint8_t)input_uint(in, 1);
}

// input_below returns a number from 0 to n - 1; n is 1 to 65536.
static inline uint32_t input_below(struct input *in, uint32_t n)
{
	return (uint32_t)input_uint(in, n > 256 ? 2 : 1) % n;
}

// input_size returns a number of bytes for an object, 1 to 256 KiB.  Most are
// small, and some are scanned in pieces.
static inline size_t input_size(struct input *in)
{
	static const uint32_t most[] = {16, 64, 256, 1100, 9000, 65536};
	unsigned how = input_u8(in);
	size_t n = 1 + input_below(in, most[how % RT_ARRAY_LEN(most)]);

	return how >= 250 ? 4 * n : n;
}

#endif
