// kind_order.h - which descriptors of kinds, and which types, are in order.
//
// As in format.h, what is here is written from the contract: rt/kind.h.
#ifndef TEST_FUZZ_KIND_ORDER_H
#define TEST_FUZZ_KIND_ORDER_H

#include <rt/rt.h>

#include "test/fuzz/format.h"

enum { STRUCT_MOST = 4096 }; // bytes of a struct, at most

static inline bool part_ok(size_t size, size_t ptrdata, const uint64_t *bitmap,
			   const rt_value_format *f)
{
	if (ptrdata % 8 != 0 || ptrdata > size || (ptrdata != 0 && !bitmap))
		return false;
	for (size_t i = 0; f && i < ptrdata / 8; i++) {
		bool value = bitmap[i / 64] >> i % 64 & 1;

		if (value && ((f->test_at < 0 && i == 0) ||
			      (f->test_at > 0 && size / 8 < i + 2)))
			return false;
	}
	return true;
}

// struct_in_order judges the size of a struct of which known bytes are known,
// and the bytes behind those.
static inline bool struct_in_order(const void *p, size_t size, size_t known)
{
	if (size < known || size > STRUCT_MOST)
		return false;
	for (size_t i = known; i < size; i++)
		if (((const uint8_t *)p)[i] != 0)
			return false;
	return true;
}

static inline bool type_in_order(const rt_type *y)
{
	if (!struct_in_order(y, y->struct_size, sizeof *y) || y->spare != 0 ||
	    (y->format && !format_ok(y->format)))
		return false;
	if (y->tail_size % 8 != 0 || (y->tail_size != 0 && y->size % 8 != 0))
		return false;
	if (y->align != 0 && y->align != 8 && y->align != 16)
		return false;
	return part_ok(y->size, y->ptrdata, y->bitmap, y->format) &&
	       part_ok(y->tail_size, y->tail_ptrdata, y->tail_bitmap,
		       y->format);
}

static inline bool header_in_order(const rt_kind_desc *d)
{
	return d->header_offset % 8 == 0 && d->header_shift <= 63 &&
	       d->header_mask != 0;
}

// Types that a header leads to may have callbacks and destructors.  A kind may
// have a destructor only if its objects are dropped.
static inline bool flags_in_order(const rt_kind_desc *d)
{
	const uint32_t drop = RT_KIND_DROP, deep = RT_KIND_DROP_DEEP;
	const uint32_t calls = RT_KIND_SERIAL | (uint32_t)RT_KIND_ONCE;
	const uint32_t all = RT_KIND_BASE | drop | deep | calls;
	bool header =
	    d->layout == RT_LAYOUT_HEADER || d->layout == RT_LAYOUT_INDEX;
	bool typed = d->layout == RT_LAYOUT_TYPE;
	bool calls_back =
	    header || d->layout == RT_LAYOUT_TRACE || (typed && d->type->trace);
	bool drops = header || d->drop || (typed && d->type->drop);

	return (d->flags & ~all) == 0 && (!(d->flags & calls) || calls_back) &&
	       (d->flags & drop ? drops : !d->drop) &&
	       (!(d->flags & deep) || d->flags & drop);
}

static inline bool desc_in_order(const rt_kind_desc *d)
{
	unsigned set = (d->format ? 1 << RT_LAYOUT_WORDS : 0) |
		       (d->type ? 1 << RT_LAYOUT_TYPE : 0) |
		       (d->types ? 1 << RT_LAYOUT_INDEX : 0) |
		       (d->trace ? 1 << RT_LAYOUT_TRACE : 0);

	if (!struct_in_order(d, d->struct_size, sizeof *d) || d->spare != 0 ||
	    d->number < -1 || d->number == 1 || d->number == 2 ||
	    d->number > 23 || d->layout < 0 || d->layout > RT_LAYOUT_TRACE ||
	    (set & ~(1U << d->layout)) != 0 ||
	    (d->layout == RT_LAYOUT_TYPE && !d->type) || !flags_in_order(d))
		return false;
	switch (d->layout) {
	case RT_LAYOUT_WORDS:
		return !d->format || format_ok(d->format);
	case RT_LAYOUT_TYPE:
		return type_in_order(d->type);
	case RT_LAYOUT_HEADER:
		return header_in_order(d) && (d->type_offset == PTRDIFF_MIN ||
					      d->type_offset % 8 == 0);
	case RT_LAYOUT_INDEX:
		return header_in_order(d) && d->types && d->ntypes != 0;
	case RT_LAYOUT_TRACE:
		return d->trace != NULL;
	default:
		return true;
	}
}

// typed_in_order judges an object of count elements.
static inline bool typed_in_order(const rt_type *y, size_t count)
{
	static const rt_value_format plain = RT_FORMAT_PLAIN;

	if (!type_in_order(y) || y->trace || y->drop ||
	    (y->format && memcmp(y->format, &plain, sizeof plain) != 0))
		return false;
	return y->tail_size != 0 || count <= 1 || y->ptrdata == 0 ||
	       y->size % 8 == 0;
}

#endif
