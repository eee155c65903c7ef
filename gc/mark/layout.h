// layout.h - how the collector finds the references in objects of each kind.
//
// Go: typePointers (mbitmap.go).
//
// Public: rt_kind_desc, rt_type (kind.h), rt_value_format (trace.h).
//
// The layouts of the kinds that every heap has are fixed.  The layout of a
// registered kind is written before the kind exists.  Markers and checkmark
// read it.  A kind is ended only while the world is stopped.
#ifndef GC_MARK_LAYOUT_H
#define GC_MARK_LAYOUT_H

#include <rt/kind.h>

#include "runtime/os/poison.h"
#include "runtime/spans/kinds.h"

static_assert((int)KIND_NOSCAN == (int)RT_NOSCAN, "one numbering");
static_assert((int)KIND_WORDS == (int)RT_WORDS, "one numbering");
static_assert((int)KIND_HOST == (int)RT_KIND_FIRST, "one numbering");

enum {
	LAYOUT_NAME = 32, // bytes of a kind's name, with its end
	// The layout of RT_TYPED (typed.h), which follows the values of enum
	// rt_layout.
	LAYOUT_BITS = RT_LAYOUT_TRACE + 1,
};

struct layout {
	int how;	// enum rt_layout, or LAYOUT_BITS
	uint32_t flags; // enum rt_kind_flags
	bool formatted; // RT_LAYOUT_WORDS has values in format
	char name[LAYOUT_NAME];
	uint32_t born; // number of the registration; 0: a kind of every heap
	rt_value_format format;
	const rt_type *type;
	size_t header_offset;
	uint64_t header_mask;
	uint32_t header_shift;
	uint32_t ntypes;
	ptrdiff_t type_offset;
	const rt_type *const *types;
	rt_trace_fn *trace;
	rt_drop_fn *drop;
	rt_describe_fn *describe;
	void *arg;
};

// There is no check function: registry_check has judged a layout before it is
// written, and no two of its fields can contradict each other later.
RT_GLOBAL struct layout layouts[KIND_COUNT];

// layout_init resets the layouts of registered kinds.
void layout_init(void);

// layout_set writes the layout of a kind that does not exist yet.  *d must be
// in order.
void layout_set(unsigned kind, const rt_kind_desc *d);

// layout_format_ok and layout_type_ok tell whether what a host describes is in
// order.  f and t must not be NULL.
bool layout_format_ok(const rt_value_format *f);
bool layout_type_ok(const rt_type *t);

// layout_scanned tells whether objects of a kind may have references.
RT_INLINE bool layout_scanned(unsigned kind)
{
	return layouts[kind].how != RT_LAYOUT_NONE;
}

// layout_is_words tells whether objects of a kind are scanned as RT_WORDS are.
RT_INLINE bool layout_is_words(unsigned kind)
{
	return layouts[kind].how == RT_LAYOUT_WORDS && !layouts[kind].formatted;
}

enum { LAYOUT_BASE = 16 }; // bytes that refer to an object with RT_KIND_BASE

// layout_refers tells whether a word of the heap or of a registered range
// refers to the object at base that it points into.  The low bits of a word are
// ignored, and so are those of a guarded object that begins at an odd address.
RT_INLINE bool layout_refers(unsigned kind, uintptr_t base, uintptr_t word)
{
	return !(layouts[kind].flags & RT_KIND_BASE) ||
	       (word & ~(uintptr_t)7) - (base & ~(uintptr_t)7) < LAYOUT_BASE;
}

RT_INLINE const rt_type *layout_type_behind(const struct layout *l,
					    uint64_t value)
{
	if (value == 0)
		return NULL;
	if (l->type_offset == RT_TYPE_IS_HEADER)
		return (const rt_type *)(uintptr_t)value;
	return (const rt_type *)poison_read((uintptr_t)value +
					    (uintptr_t)l->type_offset);
}

RT_INLINE const rt_type *layout_type_numbered(const struct layout *l,
					      uint64_t value)
{
	if (value >= l->ntypes)
		return NULL;
	// The host may fill an entry while other threads allocate.  Pairs with
	// the host's store (rt_kind_desc.types).
	return __atomic_load_n(&l->types[value], __ATOMIC_ACQUIRE);
}

// layout_type_in returns the type that a header word leads to, or NULL.
RT_INLINE const rt_type *layout_type_in(const struct layout *l, uint64_t word)
{
	uint64_t value = (word & l->header_mask) >> l->header_shift;

	return l->how == RT_LAYOUT_HEADER ? layout_type_behind(l, value)
					  : layout_type_numbered(l, value);
}

// layout_type returns the type of an object of size bytes.  Returns NULL if the
// layout of the kind does not use types, or if the object has none yet.
RT_INLINE const rt_type *layout_type(const struct layout *l, uintptr_t obj,
				     size_t size)
{
	if (l->how == RT_LAYOUT_TYPE)
		return l->type;
	if ((l->how != RT_LAYOUT_HEADER && l->how != RT_LAYOUT_INDEX) ||
	    size < sizeof(uint64_t) ||
	    l->header_offset > size - sizeof(uint64_t))
		return NULL;
	return layout_type_in(l, poison_read(obj + l->header_offset));
}

// layout_traced_once tells whether only one marker may trace an object of a
// kind, and only the opener may trace it again.
RT_INLINE bool layout_traced_once(unsigned kind)
{
	return layouts[kind].flags & ((uint32_t)RT_KIND_SERIAL | RT_KIND_ONCE);
}

// layout_header returns the value in the header word of an object of size
// bytes, whose kind has one.  Returns 0 if the object is too small.
RT_INLINE uint64_t layout_header(const struct layout *l, uintptr_t obj,
				 size_t size)
{
	uint64_t word;

	if (size < l->header_offset || size - l->header_offset < sizeof word)
		return 0;
	word = poison_read(obj + l->header_offset);
	return (word & l->header_mask) >> l->header_shift;
}

#endif
