// Allocations whose sizes are constants, so that they are inline.
#include "test/harness/constant.h"

#include <rt/rt.h>
#include <stdint.h>

void *constant_alloc(unsigned which, bool noscan, size_t *n)
{
	static const uint16_t size[CONSTANT_SIZES] = {8,   16,	24,  40,  64,
						      100, 256, 520, 1024};

	which %= CONSTANT_SIZES;
	*n = size[which];
	switch (which + (noscan ? CONSTANT_SIZES : 0)) {
	case 0:
		return rt_alloc(8);
	case 1:
		return rt_alloc(16);
	case 2:
		return rt_alloc(24);
	case 3:
		return rt_alloc(40);
	case 4:
		return rt_alloc(64);
	case 5:
		return rt_alloc(100);
	case 6:
		return rt_alloc(256);
	case 7:
		return rt_alloc(520);
	case 8:
		return rt_alloc(1024);
	case 9:
		return rt_alloc_noscan(8);
	case 10:
		return rt_alloc_noscan(16);
	case 11:
		return rt_alloc_noscan(24);
	case 12:
		return rt_alloc_noscan(40);
	case 13:
		return rt_alloc_noscan(64);
	case 14:
		return rt_alloc_noscan(100);
	case 15:
		return rt_alloc_noscan(256);
	case 16:
		return rt_alloc_noscan(520);
	default:
		return rt_alloc_noscan(1024);
	}
}
