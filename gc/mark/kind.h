// kind.h - how the collector finds pointers in an object.
//
// Public: enum rt_kind (kind.h).  Public functions refuse the kinds that are
// not built yet, so below them only these two exist.
#ifndef GC_MARK_KIND_H
#define GC_MARK_KIND_H

#include <rt/kind.h>

#include "runtime/base/spanclass.h"

static_assert((int)KIND_NOSCAN == (int)RT_NOSCAN, "one numbering");
static_assert((int)KIND_WORDS == (int)RT_WORDS, "one numbering");
static_assert(RT_KIND_MAX < 1 << KIND_BITS, "fits the page word");

RT_INLINE bool kind_scanned(unsigned kind)
{
	return kind != KIND_NOSCAN;
}

#endif
