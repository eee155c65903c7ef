// Flags of kinds with each layout: the flags of destructors, each bit by
// itself, and RT_KIND_BASE, RT_KIND_SERIAL and RT_KIND_ONCE together.
#include "test/whole/misuse.h"

static const rt_type plain = RT_TYPE_INIT(16, 0, NULL, 0, 0, NULL, NULL, NULL,
					  NULL, NULL, NULL, "plain", 0);
static const rt_type traced =
    RT_TYPE_INIT(16, 0, NULL, 0, 0, NULL, NULL, trace_nothing, NULL, NULL, NULL,
		 "traced", 0);
static const rt_type *const table[] = {&plain};

// A layout, and whether a trace callback may run for it.
static const struct layout_case {
	const char *name;
	int layout;
	const rt_type *type;
	bool calls;
} layout_cases[] = {
    {"none", RT_LAYOUT_NONE, NULL, false},
    {"words", RT_LAYOUT_WORDS, NULL, false},
    {"type", RT_LAYOUT_TYPE, &plain, false},
    {"type with a callback", RT_LAYOUT_TYPE, &traced, true},
    {"header", RT_LAYOUT_HEADER, NULL, true},
    {"index", RT_LAYOUT_INDEX, NULL, true},
    {"callback", RT_LAYOUT_TRACE, NULL, true},
};

static int answer_with(const struct layout_case *c, uint32_t flags,
		       rt_drop_fn *drop)
{
	rt_kind_desc d;
	int kind;

	rt_kind_desc_init(&d);
	d.layout = c->layout;
	d.type = c->type;
	d.flags = flags;
	d.drop = drop;
	d.header_mask = UINT64_MAX;
	if (c->layout == RT_LAYOUT_INDEX) {
		d.types = table;
		d.ntypes = 1;
	}
	if (c->layout == RT_LAYOUT_TRACE)
		d.trace = trace_nothing;
	kind = rt_kind_register(&d);
	return kind > 0 ? rt_kind_unregister(kind) : kind;
}

static int answer(const struct layout_case *c, uint32_t flags)
{
	return answer_with(c, flags, NULL);
}

// A kind may have RT_KIND_DROP if its own destructor or the destructor of a
// type may run.
TEST(flags_of_destructors)
{
	const uint32_t deep = RT_KIND_DROP | RT_KIND_DROP_DEEP;

	begin();
	for (size_t i = 0; i < RT_ARRAY_LEN(layout_cases); i++) {
		const struct layout_case *c = &layout_cases[i];
		int without = c->layout == RT_LAYOUT_HEADER ||
				      c->layout == RT_LAYOUT_INDEX
				  ? RT_OK
				  : RT_EINVAL;

		judge(c->name, "drop without its flag",
		      answer_with(c, 0, drop_nothing), RT_EINVAL);
		judge(c->name, "deep without the other flag",
		      answer_with(c, RT_KIND_DROP_DEEP, NULL), RT_EINVAL);
		judge(c->name, "drop and deep without the other flag",
		      answer_with(c, RT_KIND_DROP_DEEP, drop_nothing),
		      RT_EINVAL);
		judge(c->name, "no destructor", answer(c, RT_KIND_DROP),
		      without);
		judge(c->name, "no destructor, deep", answer(c, deep), without);
		judge(c->name, "destructor",
		      answer_with(c, RT_KIND_DROP, drop_nothing), RT_OK);
		judge(c->name, "destructor, deep",
		      answer_with(c, deep, drop_nothing), RT_OK);
	}
	heap_healthy();
	finish(RT_ARRAY_LEN(layout_cases) * 7);
}

TEST(flags_that_a_layout_has_no_use_for)
{
	const uint32_t calls = RT_KIND_SERIAL | RT_KIND_ONCE;
	const uint32_t known = calls | RT_KIND_BASE;

	begin();
	for (size_t i = 0; i < RT_ARRAY_LEN(layout_cases); i++) {
		const struct layout_case *c = &layout_cases[i];

		for (unsigned bit = 0; bit < 32; bit++) {
			uint32_t flag = UINT32_C(1) << bit;
			bool ok = flag & (c->calls ? known : RT_KIND_BASE);

			if (flag == RT_KIND_DROP)
				continue;

			judge(c->name, with_number("flag", flag),
			      answer(c, flag), ok ? RT_OK : RT_EINVAL);
			judge(c->name, with_number("flag beside", flag),
			      answer(c, flag | RT_KIND_BASE),
			      ok ? RT_OK : RT_EINVAL);
		}
		judge(c->name, "all flags", answer(c, known),
		      c->calls ? RT_OK : RT_EINVAL);
		judge(c->name, "every bit", answer(c, UINT32_MAX), RT_EINVAL);
	}
	heap_healthy();
	finish(RT_ARRAY_LEN(layout_cases) * 64);
}
