// kind_reach.h - the objects of an input, and what they reach.
//
// This code is an enumeration written from rt/kind.h.  It looks at an object
// word by word, and knows nothing of the library.
#ifndef TEST_FUZZ_KIND_REACH_H
#define TEST_FUZZ_KIND_REACH_H

#include <rt/rt.h>

#include "test/fuzz/format.h"

enum {
	OBJECTS = 48,
	STAR = 160, // words of an object that lead to one object each
	ROOTS = 4,
};

// How a callback tells the references of an object.
enum how { HOW_PTR, HOW_WORDS, HOW_VALUES, HOWS };

struct callback {
	enum how how;
	const rt_value_format *format;
};

// The owner of an object's callback: its type, or else its kind.
enum owner { NONE, TYPE, KIND };

static struct object {
	uint64_t *p;
	size_t size;	       // rt_size
	size_t room;	       // bytes from p on in which a pointer leads to it
	size_t words;	       // that are looked at
	const rt_kind_desc *d; // NULL: no references, or a type
	const rt_type *type;   // of rt_alloc_typed, or NULL
	size_t typed_words;    // of its elements
	int kind;
	unsigned firsts; // calls with rt_trace_first in this collection
	bool lives;
	bool died;	    // in this collection or before
	enum owner dropper; // of its destructor, once it has died
	unsigned drops;	    // calls of its destructor
} object[OBJECTS + STAR];
static unsigned nobjects;

static uint64_t root[ROOTS];

static inline struct object *object_at(const void *p)
{
	for (unsigned i = 0; i < nobjects; i++)
		if (object[i].p == p)
			return &object[i];
	return NULL;
}

// header_of returns the address of an object's header.  Returns NULL if its
// kind has none, or if the object is too small.
static inline uint64_t *header_of(const struct object *o)
{
	const rt_kind_desc *d = o->d;

	if (!d ||
	    (d->layout != RT_LAYOUT_HEADER && d->layout != RT_LAYOUT_INDEX))
		return NULL;
	return d->header_offset / 8 < o->words ? o->p + d->header_offset / 8
					       : NULL;
}

// ---- types ----

// type_of returns the type of an object if its kind gives it one.
static inline const rt_type *type_of(const struct object *o)
{
	const rt_kind_desc *d = o->d;
	const uint64_t *header = header_of(o);
	uint64_t value;

	if (d && d->layout == RT_LAYOUT_TYPE)
		return d->type;
	if (!header)
		return NULL;
	value = (*header & d->header_mask) >> d->header_shift;
	if (d->layout == RT_LAYOUT_INDEX)
		return value < d->ntypes ? d->types[value] : NULL;
	if (value == 0 || d->type_offset == RT_TYPE_IS_HEADER)
		return (const rt_type *)(uintptr_t)value;
	return *(const rt_type **)(uintptr_t)(value + (uint64_t)d->type_offset);
}

static inline enum owner dropper_of(const struct object *o)
{
	const rt_type *y = type_of(o);

	if (!o->d || !(o->d->flags & RT_KIND_DROP))
		return NONE;
	return y && y->drop ? TYPE : o->d->drop ? KIND : NONE;
}

static inline enum owner describer_of(const struct object *o)
{
	const rt_type *y = type_of(o);

	if (!o->d)
		return NONE;
	return y && y->describe ? TYPE : o->d->describe ? KIND : NONE;
}

static inline const void *arg_of(const struct object *o, enum owner owner)
{
	return owner == TYPE ? type_of(o)->arg : o->d->arg;
}

// ---- what is reached ----

static unsigned todo[OBJECTS + STAR], ntodo;

static inline void reach(uint64_t word)
{
	uint64_t p = word - word % 8;

	for (unsigned i = 0; i < nobjects; i++) {
		const rt_kind_desc *d = object[i].d;
		size_t room =
		    d && d->flags & RT_KIND_BASE ? 16 : object[i].room;

		if (!object[i].lives && p - (uintptr_t)object[i].p < room) {
			object[i].lives = true;
			todo[ntodo++] = i;
		}
	}
}

// reach_value follows the value at word i of a part of words [lo, hi).
static inline void reach_value(const struct object *o, size_t i, size_t lo,
			       size_t hi, const rt_value_format *f)
{
	uint64_t address;

	if (!f) {
		reach(o->p[i]);
		return;
	}
	if ((f->test_at < 0 && i == lo) || (f->test_at > 0 && i + 1 >= hi))
		return;
	if (format_refers(f, o->p[i], o->p[(int64_t)i + f->test_at], &address))
		reach(address);
}

static inline void reach_row(const struct object *o, const rt_value_format *f)
{
	size_t step = f ? f->stride / 8 : 1;

	if (f && !format_ok(f))
		return;
	for (size_t i = 0; i + step <= o->words; i += step)
		reach_value(o, i + (f && f->test_at < 0), i, i + step, f);
}

static inline void reach_part(const struct object *o, size_t lo, size_t hi,
			      size_t ptrdata, const uint64_t *bitmap,
			      const rt_value_format *f)
{
	for (size_t i = 0; i < ptrdata / 8 && lo + i < hi; i++)
		if (bitmap[i / 64] >> i % 64 & 1)
			reach_value(o, lo + i, lo, hi, f);
}

static inline void reach_told(const struct object *o, const struct callback *c)
{
	if (c->how == HOW_VALUES) {
		reach_row(o, c->format);
		return;
	}
	for (size_t i = c->how == HOW_WORDS ? o->words / 2 : 1; i < o->words;
	     i += c->how == HOW_WORDS ? 1 : 3)
		reach(o->p[i]);
}

static inline void reach_typed(const struct object *o, const rt_type *y)
{
	size_t fixed = y->size / 8;

	reach_part(o, 0, fixed < o->words ? fixed : o->words, y->ptrdata,
		   y->bitmap, y->format);
	for (size_t i = fixed, n = y->tail_size / 8;
	     n != 0 && i <= o->words && n <= o->words - i; i += n)
		reach_part(o, i, i + n, y->tail_ptrdata, y->tail_bitmap,
			   y->format);
	if (y->trace)
		reach_told(o, y->arg);
}

// reach_elements follows the elements of an object of rt_alloc_typed, whose
// number is known.
static inline void reach_elements(const struct object *o)
{
	const rt_type *y = o->type;
	size_t fixed = y->tail_size != 0 ? y->size / 8 : 0;
	size_t each = (y->tail_size != 0 ? y->tail_size : y->size) / 8;
	bool tail = y->tail_size != 0;

	if (tail)
		reach_part(o, 0, fixed, y->ptrdata, y->bitmap, NULL);
	for (size_t i = fixed; each != 0 && i + each <= o->typed_words;
	     i += each)
		reach_part(o, i, i + each, tail ? y->tail_ptrdata : y->ptrdata,
			   tail ? y->tail_bitmap : y->bitmap, NULL);
}

static inline void reach_object(const struct object *o)
{
	const rt_type *y = type_of(o);

	if (o->type)
		reach_elements(o);
	if (o->d && o->d->layout == RT_LAYOUT_WORDS)
		reach_row(o, o->d->format);
	if (o->d && o->d->layout == RT_LAYOUT_TRACE)
		reach_told(o, o->d->arg);
	if (y)
		reach_typed(o, y);
}

static inline unsigned reach_all(void)
{
	unsigned n = 0;

	for (unsigned i = 0; i < ROOTS && i < nobjects; i++)
		reach(root[i]);
	while (ntodo != 0) {
		reach_object(&object[todo[--ntodo]]);
		n++;
	}
	return n;
}

// ---- what a collection must do with an object ----

// firsts_of returns how many calls of the callback of a live object a
// collection must report as the first.
static inline unsigned firsts_of(const struct object *o)
{
	const rt_type *y = type_of(o);

	if (!o->d || !(o->d->flags & RT_KIND_ONCE))
		return 0;
	return o->d->layout == RT_LAYOUT_TRACE || (y && y->trace);
}

// format_of returns the format of an object's values.
static inline const rt_value_format *format_of(const struct object *o)
{
	const rt_type *y = type_of(o);

	if (o->d && o->d->layout == RT_LAYOUT_WORDS)
		return o->d->format;
	if (o->d && o->d->layout == RT_LAYOUT_TRACE)
		return ((struct callback *)o->d->arg)->format;
	return y ? y->format : NULL;
}

#endif
