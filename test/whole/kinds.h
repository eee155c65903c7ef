// kinds.h - kinds that the tests of kinds register.
#ifndef TEST_WHOLE_KINDS_H
#define TEST_WHOLE_KINDS_H

#include <rt/rt.h>

#include <stdint.h>

#include "test/harness/kind.h"

static inline rt_kind_desc words_kind(int number)
{
	rt_kind_desc d;

	rt_kind_desc_init(&d);
	d.name = "words";
	d.layout = RT_LAYOUT_WORDS;
	d.number = number;
	return d;
}

static inline int add_words(int number)
{
	rt_kind_desc d = words_kind(number);

	return rt_kind_register(&d);
}

static const uint64_t one_bit[] = {1};
static const rt_value_format plain = RT_FORMAT_PLAIN;
static const rt_value_format pair = RT_FORMAT_PAIR(0x40, 0x40);
static const rt_value_format pair_behind = {
    0, 0, (uint64_t)-9, UINT64_MAX, UINT64_MAX, 0, 0, 16, -1, 0, 0};
static const rt_type good_type = {
    .struct_size = sizeof(rt_type),
    .size = 16,
    .ptrdata = 8,
    .bitmap = one_bit,
    .tail_size = 16,
    .tail_ptrdata = 8,
    .tail_bitmap = one_bit,
    .format = &plain,
};
static const rt_type *const type_table[] = {&good_type, NULL};

static inline rt_kind_desc good_desc(int layout)
{
	rt_kind_desc d = words_kind(RT_KIND_ANY);

	d.layout = layout;
	d.header_mask = UINT64_MAX;
	d.type_offset = RT_TYPE_IS_HEADER;
	if (layout == RT_LAYOUT_WORDS)
		d.format = &plain;
	if (layout == RT_LAYOUT_TYPE)
		d.type = &good_type;
	if (layout == RT_LAYOUT_INDEX) {
		d.types = type_table;
		d.ntypes = 2;
	}
	if (layout == RT_LAYOUT_TRACE)
		d.trace = trace_nothing;
	return d;
}

#endif
