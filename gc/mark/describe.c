// Writes names of objects and of references.
#include "gc/mark/describe.h"

#include "runtime/os/throw.h"
#include "runtime/world/stw.h"
#include "gc/mark/typed.h"

enum {
	DESCRIBED = 80, // bytes of what a describe callback says
	TYPE_NAME = 32, // bytes of a type's name, with its end
};

const rt_type *describe_type(const struct object *o)
{
	const struct layout *l = &layouts[o->kind];
	struct object class;
	uint64_t header = 0;

	if (l->how == RT_LAYOUT_HEADER)
		header = layout_header(l, o->base, o->size);
	if (arena_offset(header) < arena_used() && !object_find(header, &class))
		return NULL;
	return layout_type(l, o->base, o->size);
}

void describe_kind(struct text *t, unsigned kind, const char *without)
{
	const char *name = layouts[kind].name;

	text_str(t, name[0] != 0 ? name : without);
}

// The describe callback of an object's type comes before that of its kind,
// because it knows more.
void describe_said(struct text *t, const struct object *o)
{
	const struct layout *l = &layouts[o->kind];
	const rt_type *type = describe_type(o);
	bool by_type = type && type->describe;
	rt_describe_fn *describe = by_type ? type->describe : l->describe;
	struct hostcall before;
	char said[DESCRIBED + 1];
	size_t n;

	RT_ASSERT(stw_stopped());
	if (!describe)
		return;
	before =
	    hostcall_begin_owned("describe callback", by_type ? type : NULL,
				 (uintptr_t)describe, o->base);
	n = base_min(describe((const void *)o->base, o->size, said, DESCRIBED,
			      by_type ? type->arg : l->arg),
		     DESCRIBED);
	hostcall_end(&before);
	said[n] = 0;
	for (size_t i = 0; i < n; i++)
		if (said[i] < ' ' || said[i] > '~')
			said[i] = '?';
	text_str(t, " \"");
	text_str(t, said);
	text_str(t, "\"");
}

// add_number adds a constant or a number for a kind that has no name.
static void add_number(struct text *t, unsigned kind)
{
	switch (kind) {
	case RT_NOSCAN:
		text_str(t, "RT_NOSCAN");
		break;
	case RT_WORDS:
		text_str(t, "RT_WORDS");
		break;
	case RT_TYPED:
		text_str(t, "RT_TYPED");
		break;
	default:
		text_str(t, "kind ");
		text_u64(t, kind);
	}
}

static void add_type(struct text *t, const rt_type *type)
{
	char name[TYPE_NAME];
	size_t n = 0;

	if (!type || !type->name)
		return;
	for (; n < sizeof name - 1 && type->name[n] != 0; n++)
		name[n] = type->name[n];
	name[n] = 0;
	text_str(t, " ");
	text_str(t, name);
}

void describe_object(struct text *t, const struct object *o)
{
	// An uncollectable object has the kind of its contents.
	unsigned kind = o->kind >= KIND_OWN ? o->kind - KIND_OWN : o->kind;

	if (layouts[kind].name[0] != 0)
		text_str(t, layouts[kind].name);
	else
		add_number(t, kind);
	add_type(t, kind == RT_TYPED ? typed_of(o->base) : describe_type(o));
	text_str(t, " at ");
	text_hex(t, o->base);
	describe_said(t, o);
}

void describe_label(struct text *t, const struct trace_label *label)
{
	if (label->has_name)
		text_str(t, label->name);
	if (label->index == RT_NO_INDEX)
		return;
	text_str(t, "[");
	text_u64(t, label->index);
	text_str(t, "]");
}
