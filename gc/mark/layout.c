// Keeps the layouts of kinds.
#include "gc/mark/layout.h"

#include <string.h>

#include "runtime/os/throw.h"
#include "runtime/os/settings.h"
#include "runtime/spans/kinds.h"

struct layout layouts[KIND_COUNT];

// Kinds ever registered, in all heaps.  Callers of layout_set exclude each
// other.
static uint32_t registered;

void layout_init(void)
{
	memset(layouts, 0, sizeof layouts);
	layouts[KIND_WORDS].how = RT_LAYOUT_WORDS;
	layouts[KIND_TYPED].how = LAYOUT_BITS;
	layouts[KIND_OWN + KIND_WORDS].how = RT_LAYOUT_WORDS;
}

void layout_set(unsigned kind, const rt_kind_desc *d)
{
	struct layout *l = &layouts[kind];

	RT_ASSERT(!kinds_exists(kind));
	*l = (struct layout){
	    .how = d->layout,
	    .flags = d->flags,
	    .formatted = d->format != NULL,
	    .born = ++registered,
	    .type = d->type,
	    .header_offset = d->header_offset,
	    .header_mask = d->header_mask,
	    .header_shift = d->header_shift,
	    .ntypes = d->ntypes,
	    .type_offset = d->type_offset,
	    .types = d->types,
	    .trace = d->trace,
	    .drop = d->drop,
	    .describe = d->describe,
	    .arg = d->arg,
	};
	if (d->format)
		l->format = *d->format;
	if (d->name)
		strncpy(l->name, d->name, sizeof l->name - 1);
}

bool layout_format_ok(const rt_value_format *f)
{
	bool pair = f->stride == 16;

	return f->spare == 0 && f->flags == 0 && f->shift >= -16 &&
	       f->shift <= 16 && (pair || f->stride == 8) &&
	       f->test_at >= (pair ? -1 : 0) && f->test_at <= (pair ? 1 : 0);
}

// tags_fit tells whether the tested word of every value of a part is in that
// part.
static bool tags_fit(size_t size, size_t ptrdata, const uint64_t *bitmap,
		     int test_at)
{
	for (size_t i = 0; i < ptrdata / 8; i++)
		if (bitmap[i / 64] >> (i % 64) & 1 &&
		    ((i == 0 && test_at < 0) ||
		     (test_at > 0 && (i + 2) * 8 > size)))
			return false;
	return true;
}

// part_ok tells whether ptrdata bytes of a part of size bytes can be described
// by a bitmap.
static bool part_ok(size_t size, size_t ptrdata, const uint64_t *bitmap,
		    const rt_value_format *f)
{
	return ptrdata % 8 == 0 && ptrdata <= size &&
	       (bitmap || ptrdata == 0) &&
	       (!f || f->test_at == 0 ||
		tags_fit(size, ptrdata, bitmap, f->test_at));
}

static bool align_ok(uint32_t align)
{
	return align == 0 || align == 8 || align == 16;
}

bool layout_type_ok(const rt_type *t)
{
	return settings_known(t, t->struct_size, sizeof *t, sizeof *t) &&
	       (!t->format || layout_format_ok(t->format)) &&
	       part_ok(t->size, t->ptrdata, t->bitmap, t->format) &&
	       part_ok(t->tail_size, t->tail_ptrdata, t->tail_bitmap,
		       t->format) &&
	       t->tail_size % 8 == 0 &&
	       (t->tail_size == 0 || t->size % 8 == 0) && align_ok(t->align) &&
	       t->spare == 0;
}
