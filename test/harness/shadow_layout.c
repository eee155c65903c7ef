// shadow_layout.c - layouts, told to the library and to the copy.
#include "test/harness/shadow_layout.h"

#include <rt/rt.h>
#include <stdlib.h>
#include <string.h>

#include "gc/mark/trace.h"
#include "runtime/pages/arena.h"
#include "test/harness/shadow_copy.h"

// ---- formats ----

static const rt_value_format plain = RT_FORMAT_PLAIN;
static const rt_value_format low = RT_FORMAT_LOW_TAG(7, 5);
static const rt_value_format box =
    RT_FORMAT_NAN_BOX(0xfffe000000000000, 0xfffeffffffffffff);
static const rt_value_format pair = RT_FORMAT_PAIR(0x40, 0x40);
static const rt_value_format behind = {
    0, 0, (uint64_t)-9, UINT64_MAX, UINT64_MAX, 0, 0, 16, -1, 0, 0};
// Addresses in words, counted from just below the heap.
static rt_value_format narrow = {0, 0, 1, UINT32_MAX, UINT32_MAX, 0,
				 3, 8, 0, 0,	      0};

// Addresses in words.
static const rt_value_format shifted = {0, 0, 1, UINT64_MAX, UINT64_MAX, 0,
					3, 8, 0, 0,	     0};

static bool some_deep;

uint64_t shadow_encode(const struct shadow_layout *l, uintptr_t address)
{
	if (l->format == &low)
		return (address & ~(uintptr_t)7) | 5;
	if (l->format == &box)
		return address | UINT64_C(0xfffe000000000000);
	if (l->format == &narrow)
		return (address - narrow.base) / 8;
	if (l->format == &shifted)
		return address / 8;
	return address;
}

uint64_t shadow_tag(const struct shadow_layout *l, bool reference)
{
	if (l->format == &behind)
		return reference ? (uint64_t)-3 : 3;
	return reference ? 0x47 : 7;
}

bool shadow_decode(const struct shadow_layout *l, uint64_t value, uint64_t tag,
		   uintptr_t *address)
{
	*address = value;
	if (l->format == &low) {
		*address = value - value % 8;
		return value % 8 == 5;
	}
	if (l->format == &box) {
		*address = value % (UINT64_C(1) << 48);
		return value >> 48 == 0xfffe;
	}
	if (l->format == &narrow) {
		*address = narrow.base + 8 * value;
		return value != 0 && value >> 32 == 0;
	}
	if (l->format == &shifted) {
		*address = 8 * value;
		return value != 0;
	}
	if (l->format == &pair)
		return tag / 0x40 % 2 == 1;
	if (l->format == &behind)
		return tag >= UINT64_MAX - 8;
	return true;
}

// ---- types ----

static const uint64_t bits_2a[] = {0x2a}; // words 1, 3, 5
static const uint64_t bits_5[] = {0x5};	  // words 0, 2
static const uint64_t bits_14[] = {0x14}; // words 2, 4
static const uint64_t bits_1[] = {0x1};	  // word 0
static const uint64_t bits_e[] = {0xe};	  // words 1 to 3

static void trace_tail(rt_tracer *t, void *obj, size_t size, void *arg);

#define TYPE(f, fb, tl, tb, fmt)                                               \
	.struct_size = sizeof(rt_type), .size = (f)*8, .ptrdata = (f)*8,       \
	.bitmap = (fb), .tail_size = (tl)*8, .tail_ptrdata = (tl)*8,           \
	.tail_bitmap = (tb), .format = (fmt)

static const rt_type fixed_type = {TYPE(4, bits_e, 0, NULL, NULL)};
static const rt_type tail_type = {TYPE(6, bits_2a, 3, bits_5, NULL)};
static const rt_type pair_type = {TYPE(6, bits_14, 4, bits_1, &pair)};
static const rt_type low_type = {TYPE(6, bits_2a, 3, bits_5, &low)};
static const rt_type none_type = {.struct_size = sizeof(rt_type), .size = 16};
static const rt_type half_type = {TYPE(6, bits_2a, 0, NULL, NULL),
				  .trace = trace_tail};
static const uint64_t bits_6[] = {0x6}; // words 1, 2
static const uint64_t bits_2[] = {0x2}; // word 1
static const uint64_t bits_0[] = {0};
static const uint64_t bits_wide[] = {0xaa00000000000006, 0xaa00000000000006};

static const rt_type narrow_type = {TYPE(3, bits_6, 0, NULL, NULL), .align = 8};
static const rt_type element_type = {TYPE(2, bits_2, 0, NULL, NULL)};
static const rt_type wide_type = {TYPE(70, bits_wide, 0, NULL, NULL)};
static const rt_type wide_tail_type = {TYPE(1, bits_0, 66, bits_wide, NULL)};
static const rt_type bytes_type = {.struct_size = sizeof(rt_type), .size = 20};
static const rt_type uneven_type = {.struct_size = sizeof(rt_type),
				    .size = 44,
				    .ptrdata = 16,
				    .bitmap = bits_2};
static const rt_type *const table[] = {&none_type, NULL, &tail_type};
static const struct {
	uint64_t something;
	const rt_type *type;
} class_of_tail = {7, &tail_type};

// ---- callbacks ----

// The argument of a kind's trace callback.
struct traced {
	const struct shadow_layout *layout;
	uint32_t flags;
};

static struct traced traced[SHADOW_OWNERS + 1][SHADOW_FLAGS];

__thread bool shadow_collects, shadow_drops_here;
static unsigned serial; // callbacks of RT_KIND_SERIAL that run

// trace_begin requires what the flags of a kind promise.  The first word of an
// object below 16 bytes leads to no node.
static const struct shadow_layout *
trace_begin(const rt_tracer *t, const void *obj, size_t size, const void *arg)
{
	const struct traced *k = arg;

	if (k->flags & RT_KIND_SERIAL &&
	    (__atomic_fetch_add(&serial, 1, __ATOMIC_RELAXED) != 0 ||
	     !shadow_collects))
		shadow_fail("a serial callback beside another, or on a thread "
			    "of the library");
	if (!shadow_traced_once(k->layout, k->flags))
		SHADOW_TRUE(k->flags & RT_KIND_ONCE || !rt_trace_first(t));
	else if (size >= 16)
		shadow_traced(obj, rt_trace_first(t), t->mode < TRACE_CHECK);
	return k->layout;
}

static void trace_end(const void *arg)
{
	const struct traced *k = arg;

	if (k->flags & RT_KIND_SERIAL)
		__atomic_fetch_sub(&serial, 1, __ATOMIC_RELAXED);
}

// trace_each tells one reference after the other, by the rule of the copy.
static void trace_each(rt_tracer *t, void *obj, size_t size, void *arg)
{
	const struct shadow_layout *l = trace_begin(t, obj, size, arg);
	const uint64_t *w = obj;

	for (size_t i = 0; i < size / 8; i++)
		if (shadow_is_value(l, size / 8, i))
			rt_trace_ptr(t, (void *)(uintptr_t)w[i]);
	trace_end(arg);
}

static void trace_all(rt_tracer *t, void *obj, size_t size, void *arg)
{
	const struct shadow_layout *l = trace_begin(t, obj, size, arg);

	if (l->format)
		rt_trace_values(t, obj, (char *)obj + size, l->format);
	else
		rt_trace_words(t, obj, (char *)obj + size);
	trace_end(arg);
}

static void trace_boxes(rt_tracer *t, void *obj, size_t size, void *arg)
{
	const struct shadow_layout *l = trace_begin(t, obj, size, arg);
	const uint64_t *w = obj;

	for (size_t i = 0; i < size / 8; i++)
		rt_trace_value(t, w[i], l->format);
	trace_end(arg);
}

static void trace_pairs(rt_tracer *t, void *obj, size_t size, void *arg)
{
	const struct shadow_layout *l = trace_begin(t, obj, size, arg);
	uint64_t *w = obj;

	for (size_t i = 0; i + 1 < size / 8; i += 2)
		rt_trace_pair(t, &w[i + shadow_first(l)], l->format);
	trace_end(arg);
}

// trace_tail tells a tail like the tail of tail_type.  A bitmap describes the
// fixed part before it.
static void trace_tail(rt_tracer *t, void *obj, size_t size, void *arg)
{
	uint64_t *w = obj;

	(void)arg;
	for (size_t i = 6; i + 3 <= size / 8; i += 3) {
		rt_trace_ptr(t, (void *)(uintptr_t)w[i]);
		rt_trace_ptr(t, (void *)(uintptr_t)w[i + 2]);
	}
}

// The first word leads to the stack of the object, or it is odd.
static void trace_owner(rt_tracer *t, void *obj, size_t size, void *arg)
{
	const uint64_t *w = obj;

	(void)arg;
	if (size >= 16 && w[0] != 0 && w[0] % 2 == 0)
		rt_trace_stack(
		    t, ((struct shadow_stack *)(uintptr_t)w[0])->registered);
	rt_trace_words(t, obj, (char *)obj + size);
}

// ---- layouts ----

#define EVERY .tail = 1, .tail_bits = 1
#define PAIRS .tail = 2, .tail_bits = 1
#define BEHIND .tail = 2, .tail_bits = 2
#define PARTS .fixed = 6, .fixed_bits = 0x2a, .tail = 3, .tail_bits = 5

const struct shadow_layout shadow_layouts[SHADOW_ALL_LAYOUTS] = {
    {"none", RT_LAYOUT_NONE, .fixed = 0},
    {"words", RT_LAYOUT_WORDS, NULL, EVERY},
    {"plain format", RT_LAYOUT_WORDS, &plain, EVERY},
    {"low tags", RT_LAYOUT_WORDS, &low, EVERY},
    {"boxes", RT_LAYOUT_WORDS, &box, EVERY},
    {"narrow references", RT_LAYOUT_WORDS, &narrow, EVERY},
    {"pairs", RT_LAYOUT_WORDS, &pair, PAIRS},
    {"pairs, tag first", RT_LAYOUT_WORDS, &behind, BEHIND},
    {"type", RT_LAYOUT_TYPE, NULL, .fixed = 4, .fixed_bits = 0xe,
     .type = &fixed_type},
    {"type with a tail", RT_LAYOUT_TYPE, NULL, PARTS, .type = &tail_type},
    {"type of pairs", RT_LAYOUT_TYPE, &pair, .fixed = 6, .fixed_bits = 0x14,
     .tail = 4, .tail_bits = 1, .type = &pair_type},
    {"type of tags", RT_LAYOUT_TYPE, &low, PARTS, .type = &low_type},
    {"type with a callback", RT_LAYOUT_TYPE, NULL, PARTS, .type = &half_type},
    {"header", RT_LAYOUT_HEADER, NULL, PARTS, .type = &tail_type},
    {"class", RT_LAYOUT_HEADER, NULL, PARTS},
    {"index", RT_LAYOUT_INDEX, NULL, PARTS},
    {"callback", RT_LAYOUT_TRACE, NULL, PARTS, .trace = trace_each},
    {"callback of words", RT_LAYOUT_TRACE, NULL, EVERY, .trace = trace_all},
    {"callback of boxes", RT_LAYOUT_TRACE, &box, EVERY, .trace = trace_boxes},
    {"callback of pairs", RT_LAYOUT_TRACE, &pair, PAIRS, .trace = trace_pairs},
    [SHADOW_OWNERS] = {"callback of owners", RT_LAYOUT_TRACE, NULL, EVERY,
		       .trace = trace_owner},
    [SHADOW_TYPED_FIRST] = {"typed", RT_LAYOUT_TYPE, NULL, .fixed = 4,
			    .fixed_bits = 0xe, .type = &fixed_type},
    {"typed with a tail", RT_LAYOUT_TYPE, NULL, PARTS, .type = &tail_type},
    {"typed, 24 bytes", RT_LAYOUT_TYPE, NULL, .fixed = 3, .fixed_bits = 0x6,
     .type = &narrow_type},
    {"typed array", RT_LAYOUT_TYPE, NULL, .tail = 2, .tail_bits = 2,
     .type = &element_type},
    {"typed, wide", RT_LAYOUT_TYPE, NULL, .fixed = 70,
     .fixed_bits = 0xaa00000000000006, .type = &wide_type},
    {"typed with a wide tail", RT_LAYOUT_TYPE, NULL, .fixed = 1, .tail = 66,
     .tail_bits = 0xaa00000000000006, .type = &wide_tail_type},
    {"typed bytes", RT_LAYOUT_TYPE, NULL, .type = &bytes_type},
    {"typed, uneven", RT_LAYOUT_TYPE, NULL, .fixed = 5, .fixed_bits = 2,
     .type = &uneven_type},
};

void shadow_layouts_begin(bool deep)
{
	some_deep = deep;
	narrow.base = arena.base - 8; // no object is 0
	for (unsigned l = 0; l <= SHADOW_OWNERS; l++)
		for (unsigned i = 0; i < SHADOW_FLAGS; i++)
			traced[l][i] = (struct traced){&shadow_layouts[l],
						       shadow_flags(i)};
}

const struct shadow_layout *shadow_on_stacks(unsigned i)
{
	static const struct shadow_layout l[SHADOW_ON_STACKS] = {
	    [1] = {"low tags", RT_LAYOUT_WORDS, &low, EVERY},
	    {"boxes", RT_LAYOUT_WORDS, &box, EVERY},
	    {"shifted", RT_LAYOUT_WORDS, &shifted, EVERY},
	    {"pairs", RT_LAYOUT_WORDS, &pair, PAIRS},
	    {"pairs, tag first", RT_LAYOUT_WORDS, &behind, BEHIND},
	    {"plain format", RT_LAYOUT_WORDS, &plain, EVERY},
	};

	return i == 0 ? NULL : &l[i];
}

size_t shadow_typed_count(const struct shadow_layout *l, size_t *n)
{
	const rt_type *type = l->type;
	bool array = type == &element_type || type == &bytes_type;
	size_t each = array ? type->size : type->tail_size, fixed = 0,
	       count = 1;

	if (!array)
		fixed = type->size;
	if (each != 0)
		count = *n > fixed + each ? (*n - fixed) / each : array;
	*n = fixed + count * each;
	return count;
}

bool shadow_is_narrow(int kind, const struct shadow_layout *l)
{
	return kind >= RT_KIND_ALIGN8_FIRST ||
	       (kind == RT_TYPED && l->type->align == 8);
}

static void drop_begin(const void *obj)
{
	if (rt_is_heap(obj))
		abort();
	if (!shadow_drops_here)
		shadow_fail("a destructor runs where none may");
}

// drop_once requires that an object is dropped once, and is dead then.  It must
// not write to the first word: a header there must stay, because the collector
// may still come to the object from a deep one.
static void drop_once(void *obj, size_t size, void *arg)
{
	const uint64_t gone = UINT64_C(0xdeadd70bdeadd70b);
	char *last = (char *)obj + size - sizeof gone;

	(void)arg;
	drop_begin(obj);
	if (size < 2 * sizeof gone)
		return;
	if (memcmp(last, &gone, sizeof gone) == 0)
		abort();
	memcpy(last, &gone, sizeof gone);
}

static void drop_deep(void *obj, size_t size, void *arg)
{
	(void)arg;
	drop_begin(obj);
	if (size >= sizeof(uint64_t)) // there is a tag
		shadow_dropped(obj);
}

// Two of three layouts have destructors.
bool shadow_drops(const struct shadow_layout *l)
{
	return l < &shadow_layouts[SHADOW_TYPED_FIRST] &&
	       (l - shadow_layouts) % 3 != 0;
}

// The first word of a deep object leads to its node, so it can be no header.
bool shadow_deep(const struct shadow_layout *l)
{
	return some_deep && shadow_drops(l) && (l - shadow_layouts) % 3 == 1 &&
	       l->how != RT_LAYOUT_HEADER && l->how != RT_LAYOUT_INDEX;
}

uint32_t shadow_flags(unsigned i)
{
	return (i & 1 ? (uint32_t)RT_KIND_BASE : 0) |
	       (i & 2 ? (uint32_t)RT_KIND_SERIAL : 0) |
	       (i & 4 ? (uint32_t)RT_KIND_ONCE : 0);
}

// Types that a header leads to may have callbacks.
bool shadow_flags_ok(const struct shadow_layout *l, uint32_t flags)
{
	bool calls = l->how == RT_LAYOUT_TRACE || l->how == RT_LAYOUT_HEADER ||
		     l->how == RT_LAYOUT_INDEX ||
		     (l->how == RT_LAYOUT_TYPE && l->type->trace);

	return calls || (flags & ~(uint32_t)RT_KIND_BASE) == 0;
}

bool shadow_traced_once(const struct shadow_layout *l, uint32_t flags)
{
	return flags & RT_KIND_ONCE && l->how == RT_LAYOUT_TRACE;
}

// trace_arg returns the argument of a kind's trace callback.
static void *trace_arg(const struct shadow_layout *l, uint32_t flags)
{
	unsigned i = 0;

	while (shadow_flags(i) != flags)
		i++;
	return &traced[l - shadow_layouts][i];
}

rt_kind_desc shadow_describe(const struct shadow_layout *l, int number,
			     uint32_t flags)
{
	rt_kind_desc d;

	rt_kind_desc_init(&d);
	d.name = l->name;
	d.layout = l->how;
	d.number = number;
	d.trace = l->trace;
	if (shadow_drops(l)) {
		d.flags = RT_KIND_DROP;
		d.drop = drop_once;
	}
	if (shadow_deep(l)) {
		d.flags |= RT_KIND_DROP_DEEP;
		d.drop = drop_deep;
	}
	d.flags |= flags;
	d.arg = l->trace ? trace_arg(l, flags) : NULL;
	if (l->how == RT_LAYOUT_WORDS)
		d.format = l->format;
	if (l->how == RT_LAYOUT_TYPE)
		d.type = l->type;
	d.header_mask = UINT64_MAX;
	d.type_offset = RT_TYPE_IS_HEADER;
	if (l->how == RT_LAYOUT_HEADER && !l->type) {
		d.header_mask = ~UINT64_C(0xff);
		d.header_shift = 8;
		d.type_offset = 8;
	}
	if (l->how == RT_LAYOUT_INDEX) {
		d.types = table;
		d.ntypes = 3;
		d.header_mask = 0xf0;
		d.header_shift = 4;
	}
	return d;
}

unsigned shadow_step(const struct shadow_layout *l)
{
	return l->format == &pair || l->format == &behind ? 2 : 1;
}

unsigned shadow_first(const struct shadow_layout *l)
{
	return l->format == &behind;
}

uint64_t shadow_header(const struct shadow_layout *l, uint64_t id, uint64_t tag,
		       bool *typed)
{
	*typed = (l->how != RT_LAYOUT_HEADER && l->how != RT_LAYOUT_INDEX) ||
		 id % 4 != 3;
	if (l->how == RT_LAYOUT_INDEX)
		return *typed ? 0xff2f : id / 4 % 2 ? 0xff1f : 0xff7f;
	if (l->how == RT_LAYOUT_HEADER && !l->type)
		return (*typed ? (uintptr_t)&class_of_tail << 8 : 0) | 0x33;
	if (l->how == RT_LAYOUT_HEADER)
		return *typed	    ? (uintptr_t)l->type
		       : id / 4 % 2 ? (uintptr_t)&none_type
				    : 0;
	return tag;
}

bool shadow_is_value(const struct shadow_layout *l, size_t words, size_t i)
{
	size_t element;

	// The tag word must be in the object, too.
	if (i - i % shadow_step(l) + shadow_step(l) > words)
		return false;
	if (i < l->fixed)
		return l->fixed_bits >> i % 64 & 1;
	if (l->tail == 0)
		return false;
	element = (i - l->fixed) / l->tail;
	return l->fixed + (element + 1) * l->tail <= words &&
	       l->tail_bits >> (i - l->fixed) % l->tail % 64 & 1;
}
