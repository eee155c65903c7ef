// typed.h - objects that have a type but no header (rt_alloc_typed).
//
// Go: heapSetType, the span's largeType (mbitmap.go).
//
// What marking must know of a small object is in the bits beside the heap
// (typebits.h).  An object with a span of its own has a copy of the rt_type as
// its record.  The record of an array of a type without a tail describes each
// element as an element of a tail, after a fixed part of no bytes.  So markers
// find and share the elements of all large objects in one way.
#ifndef GC_MARK_TYPED_H
#define GC_MARK_TYPED_H

#include <rt/kind.h>

#include "runtime/spans/typebits.h"
#include "runtime/spans/mspan.h"

static_assert((int)KIND_TYPED == (int)RT_TYPED, "one numbering");

// typed_size sets *n to the bytes of an object of a type with count elements.
// Returns false if the type is not in order, if the bits cannot describe its
// references, or if the size overflows.
bool typed_size(const rt_type *type, size_t count, size_t *n);

// typed_is_simple returns true only for a simple object: typed_size accepts its
// type, the type has no tail, one word of bits describes it, and count is 1.
// Its size is type->size then.  Most objects are simple.
RT_INLINE bool typed_is_simple(const rt_type *type, size_t count)
{
	size_t zero = type->tail_size | type->tail_ptrdata |
		      (uintptr_t)type->format | (uintptr_t)type->trace |
		      (uintptr_t)type->drop |
		      (type->size - 1) / TYPEBITS_BYTES | type->ptrdata % 8 |
		      (type->align & ~UINT32_C(24)) | type->spare;

	return RT_LIKELY(type->struct_size == sizeof *type) &&
	       RT_LIKELY(count == 1) && RT_LIKELY(zero == 0) &&
	       RT_LIKELY(type->align != 24) &&
	       RT_LIKELY(type->ptrdata - 1 < type->size) &&
	       RT_LIKELY(type->bitmap);
}

// typed_note_simple writes the bits of an object that typed_is_simple accepts.
// The object must be in a slot of at most TYPEBITS_BYTES bytes of a small span.
RT_INLINE void typed_note_simple(const rt_type *type, uintptr_t obj,
				 size_t slot)
{
	typebits_put(obj, slot / sizeof(uintptr_t),
		     typebits_low(type->bitmap[0], type->ptrdata / 8));
}

// typed_note writes the bits of a new object in a slot of a small span.
// typed_size must have accepted the type and the count.
void typed_note(const rt_type *type, size_t count, uintptr_t obj, size_t slot);

// typed_note_found writes what marking must know of a new object in a span of
// any size.
void typed_note_found(const rt_type *type, size_t count, uintptr_t obj);

// typed_of returns the record of the object at obj.  Returns NULL if the object
// is in a small span.
const rt_type *typed_of(uintptr_t obj);

#endif
