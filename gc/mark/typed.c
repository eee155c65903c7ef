// Computes sizes of typed objects, and writes what markers read of them.
#include "gc/mark/typed.h"

#include <string.h>

#include "gc/mark/layout.h"

static_assert(sizeof(rt_type) <= TYPEBITS_RECORD, "room for it");

// is_plain tells whether every value of a format is a plain address.  The bits
// cannot describe any other format.
static bool is_plain(const rt_value_format *f)
{
	static const rt_value_format plain = RT_FORMAT_PLAIN;

	return !f || memcmp(f, &plain, sizeof plain) == 0;
}

// is_row tells whether an object is an array of the whole type.
static bool is_row(const rt_type *type, size_t count)
{
	return type->tail_size == 0 && count != 1;
}

bool typed_size(const rt_type *type, size_t count, size_t *n)
{
	if (!layout_type_ok(type) || type->trace || type->drop ||
	    RT_UNLIKELY(type->format && !is_plain(type->format)))
		return false;
	if (type->tail_size != 0)
		return !__builtin_mul_overflow(type->tail_size, count, n) &&
		       !__builtin_add_overflow(type->size, *n, n);
	// References in the elements of an array must be aligned.
	if (count != 1 && type->ptrdata != 0 && type->size % 8 != 0)
		return false;
	return !__builtin_mul_overflow(type->size, count, n);
}

// ---- bits ----

// put_part writes the bits of a part of an object.  bitmap describes the first
// ptrwords words of the part.  It returns the end of the part.
static uintptr_t put_part(uintptr_t at, size_t words, size_t ptrwords,
			  const uint64_t *bitmap)
{
	for (size_t i = 0; i < words; i += TYPEBITS_PER) {
		size_t n = base_min(words - i, TYPEBITS_PER);
		uint64_t bits = 0;

		if (i < ptrwords)
			bits = typebits_low(bitmap[i / 64],
					    base_min(ptrwords - i, n));
		typebits_put(at + i * 8, n, bits);
	}
	return at + words * 8;
}

// put_short_row writes the bits of elements that have at most half a word of
// bits each.  It writes as many elements at once as fit, rounded down to a
// power of two.
static uintptr_t put_short_row(uintptr_t at, size_t count, size_t words,
			       uint64_t bits)
{
	size_t left = count * words;
	size_t n = words;

	for (; 2 * n <= TYPEBITS_PER; n *= 2)
		bits |= bits << n;
	for (; left >= n; left -= n, at += n * 8)
		typebits_put(at, n, bits);
	return put_part(at, left, left, &bits);
}

// put_row writes the bits of count elements, and returns their end.
static uintptr_t put_row(uintptr_t at, size_t count, size_t words,
			 size_t ptrwords, const uint64_t *bitmap)
{
	if (count == 0 || ptrwords == 0)
		return put_part(at, count * words, 0, NULL);
	if (words <= TYPEBITS_PER / 2)
		return put_short_row(at, count, words,
				     typebits_low(bitmap[0], ptrwords));
	for (size_t i = 0; i < count; i++)
		at = put_part(at, words, ptrwords, bitmap);
	return at;
}

void typed_note(const rt_type *type, size_t count, uintptr_t obj, size_t slot)
{
	const uint64_t none = 0;
	uintptr_t end = obj + slot;
	uintptr_t at = obj;

	if (is_row(type, count)) {
		at = put_row(at, count, type->size / 8, type->ptrdata / 8,
			     type->bitmap);
	} else {
		at = put_part(at, type->size / 8, type->ptrdata / 8,
			      type->bitmap);
		if (type->tail_size != 0)
			at = put_row(at, count, type->tail_size / 8,
				     type->tail_ptrdata / 8, type->tail_bitmap);
	}
	put_part(at, (end - at) / 8, 0, &none);
}

// ---- records ----

static void write_record(const struct mspan *s, const rt_type *type,
			 size_t count)
{
	rt_type *record = typebits_record(mspan_page(s));

	*record = *type;
	record->format = NULL;
	if (!is_row(type, count))
		return;
	record->tail_size = type->size;
	record->tail_ptrdata = type->ptrdata;
	record->tail_bitmap = type->bitmap;
	record->size = record->ptrdata = 0;
}

static const struct mspan *span_of(uintptr_t obj)
{
	return arena_span(arena_offset(obj) >> RT_PAGE_SHIFT);
}

void typed_note_found(const rt_type *type, size_t count, uintptr_t obj)
{
	const struct mspan *s = span_of(obj);

	if (mspan_is_large(s))
		write_record(s, type, count);
	else
		typed_note(type, count, obj, s->elemsize);
}

const rt_type *typed_of(uintptr_t obj)
{
	uint64_t page = arena_offset(obj) >> RT_PAGE_SHIFT;

	return pageword_class(arena_pageword(page)) == 0
		   ? typebits_record(mspan_page(span_of(obj)))
		   : NULL;
}
