// format.h - formats of values, from any bytes, and what they mean.
//
// This code is written from the contract in rt/trace.h, in the simplest way and
// without the library: bit by bit, and shifting by one at a time.
#ifndef TEST_FUZZ_FORMAT_H
#define TEST_FUZZ_FORMAT_H

#include <rt/trace.h>

#include "test/fuzz/fuzz.h"

// input_word returns any word; most are simple.
static inline uint64_t input_word(struct input *in)
{
	unsigned how = input_u8(in);

	switch (how % 8) {
	case 0:
		return 0;
	case 1:
		return UINT64_MAX;
	case 2:
		return UINT64_C(1) << how / 8 * 2 % 64;
	case 3:
		return (UINT64_C(2) << how / 8 * 2) - 1;
	case 4:
		return ~((UINT64_C(2) << how / 8 * 2) - 1);
	case 5:
		return how / 8;
	default:
		return input_uint(in, 8);
	}
}

// input_format returns any format.  Two of three are in order.
static inline rt_value_format input_format(struct input *in)
{
	unsigned how = input_u8(in);
	rt_value_format f = {.stride = how & 1 ? 16 : 8};

	f.test_mask = input_word(in);
	f.test_bits = input_word(in);
	f.min = input_word(in);
	f.max = input_word(in);
	f.addr_mask = input_word(in);
	f.base = input_word(in);
	f.shift = (int8_t)input_u8(in);
	if (how & 2)
		f.test_bits &= f.test_mask;
	if (how & 4)
		f.test_at = (int8_t)(f.stride == 16 ? how / 8 % 3 - 1 : 0);
	if (how % 3 != 0) {
		f.shift %= 17;
		return f;
	}
	f.stride = input_u8(in);
	f.test_at = (int8_t)input_u8(in);
	f.spare = input_u8(in) / 128;
	f.flags = input_u8(in) / 128;
	return f;
}

static inline bool format_ok(const rt_value_format *f)
{
	if (f->spare != 0 || f->flags != 0)
		return false;
	if (f->shift < -16 || f->shift > 16)
		return false;
	if (f->stride == 8)
		return f->test_at == 0;
	return f->stride == 16 &&
	       (f->test_at == -1 || f->test_at == 0 || f->test_at == 1);
}

// format_refers tells whether a value is a reference, and sets *address.
static inline bool format_refers(const rt_value_format *f, uint64_t value,
				 uint64_t tested, uint64_t *address)
{
	for (unsigned b = 0; b < 64; b++)
		if (f->test_mask >> b & 1 &&
		    (tested >> b & 1) != (f->test_bits >> b & 1))
			return false;
	// A bit that is wanted but not looked at is never found.
	if ((f->test_bits | f->test_mask) != f->test_mask)
		return false;
	if (tested < f->min || tested > f->max)
		return false;
	*address = 0;
	for (unsigned b = 0; b < 64; b++)
		if (f->addr_mask >> b & 1)
			*address += value & UINT64_C(1) << b;
	for (int i = 0; i < f->shift; i++)
		*address *= 2;
	for (int i = 0; i > f->shift; i--)
		*address /= 2;
	*address += f->base;
	return true;
}

// format_encode returns a value word that may refer to an address, and sets
// *tested to what may make it a reference.  With test_at 0 both are the same
// word.
static inline uint64_t format_encode(const rt_value_format *f, uint64_t address,
				     uint64_t *tested)
{
	uint64_t value = address - f->base;

	for (int i = 0; i < f->shift; i++)
		value /= 2;
	for (int i = 0; i > f->shift; i--)
		value *= 2;
	*tested = f->test_at == 0 ? value : f->min;
	if (f->test_at == 0 && *tested < f->min)
		*tested |= f->min & ~f->addr_mask;
	*tested = (*tested & ~f->test_mask) | (f->test_bits & f->test_mask);
	return f->test_at == 0 ? *tested : value;
}

#endif
