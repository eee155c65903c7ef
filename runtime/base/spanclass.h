// spanclass.h - size class and kind of a span in one number.
//
// Go: spanClass (mheap.go).  Its noscan bit is widened to a kind, which says
// how the collector finds pointers in an object.
#ifndef RUNTIME_BASE_SPANCLASS_H
#define RUNTIME_BASE_SPANCLASS_H

#include "runtime/base/sizeclass.h"

enum {
	KIND_NOSCAN = 0,  // RT_NOSCAN: no pointers
	KIND_WORDS = 1,	  // RT_WORDS: every aligned word may be a pointer
	KIND_TYPED = 2,	  // RT_TYPED: bits beside the heap say which words are
	KIND_HOST = 3,	  // RT_KIND_FIRST: the first that a host registers
	KIND_ALIGN8 = 16, // RT_KIND_ALIGN8_FIRST: a host's kinds from here on
			  // use the class of 24 bytes
	// Kinds from here on are the library's own: KIND_OWN + KIND_NOSCAN and
	// KIND_OWN + KIND_WORDS.  Their objects are roots until they are freed.
	KIND_OWN = 24, // RT_KIND_MAX + 1
	KIND_COUNT = 26,
	KIND_BITS = 5, // room for 32
};

typedef uint16_t spanclass;

// spanclass_host_kind returns the number by which a host knows a kind.
RT_INLINE unsigned spanclass_host_kind(unsigned kind)
{
	return kind >= KIND_OWN ? kind - KIND_OWN : kind;
}

enum {
	SPANCLASS_COUNT = KIND_COUNT * SIZECLASS_COUNT,
	// Span classes below this one are those of the two kinds that every
	// heap has.
	SPANCLASS_BASE = 2 * SIZECLASS_COUNT,
	SPANCLASS_TINY = KIND_NOSCAN * SIZECLASS_COUNT + SIZECLASS_TINY,
};

RT_INLINE spanclass spanclass_make(unsigned sizeclass, unsigned kind)
{
	return (spanclass)(kind * SIZECLASS_COUNT + sizeclass);
}

RT_INLINE unsigned spanclass_size(spanclass sc)
{
	return sc % SIZECLASS_COUNT;
}

RT_INLINE unsigned spanclass_kind(spanclass sc)
{
	return sc / SIZECLASS_COUNT;
}

#endif
