// kind.h - kinds of a test, and callbacks that do nothing.
#ifndef TEST_HARNESS_KIND_H
#define TEST_HARNESS_KIND_H

#include "test/harness/heap.h"

static inline int kind_make_of(const rt_kind_desc *d)
{
	int kind = rt_kind_register(d);

	ck_assert_int_gt(kind, 0);
	return kind;
}

// kind_desc describes a kind.  The arguments are fields of the description, as
// in kind_desc(.layout = RT_LAYOUT_WORDS).
#define kind_desc(...)                                                         \
	((rt_kind_desc){.struct_size = sizeof(rt_kind_desc), __VA_ARGS__})

// kind_make registers such a kind and returns its number.
#define kind_make(...) kind_make_of(&kind_desc(__VA_ARGS__))

static inline void drop_nothing(void *obj, size_t size, void *arg)
{
	(void)obj, (void)size, (void)arg;
}

static inline void trace_nothing(rt_tracer *t, void *obj, size_t size,
				 void *arg)
{
	(void)t, (void)obj, (void)size, (void)arg;
}

// tell_nothing is a root callback.
static inline void tell_nothing(rt_tracer *t, void *arg)
{
	(void)t, (void)arg;
}

#endif
