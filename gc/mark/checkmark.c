// checkmark.c - looks for a word that leads to an unmarked object.
#include "gc/mark/checkmark.h"

#include "runtime/os/throw.h"
#include "runtime/os/poison.h"
#include "runtime/spans/object.h"
#include "gc/mark/trace.h"
#include "gc/mark/roots.h"
#include "gc/mark/rootfns.h"
#include "gc/mark/handles.h"

// Words to look at, and what the report calls them.
struct region {
	uintptr_t lo;
	uintptr_t hi;
	const char *name;
	const char *title; // after the name; NULL: none
	bool past_end;	   // a word that equals an object's end counts
	bool exact;	   // references only
};

static bool is_marked(const struct object *o)
{
	uint64_t page = arena_offset(o->base) >> RT_PAGE_SHIFT;
	const struct mspan *s = arena_span(page);

	return mspan_test(s, epoch_mark_line(epoch_sweepgen()),
			  mspan_slot(s, o->base - s->base));
}

static RT_NORETURN void missed(const struct object *o, const struct region *r,
			       uintptr_t at)
{
	struct text t;

	text_init(&t);
	text_str(&t, "rtheap: object=");
	text_hex(&t, o->base);
	text_str(&t, " size=");
	text_u64(&t, o->size);
	text_str(&t, ", found in ");
	text_str(&t, r->name);
	if (r->title) {
		text_str(&t, " ");
		text_str(&t, r->title);
	}
	text_str(&t, " at ");
	text_hex(&t, at);
	text_str(&t, "\n");
	throw_text(&t, "checkmark: found unmarked object");
}

// Words are read without a sanitizer's checks, as in marking.
RT_NO_SANITIZE
static void check_region(const struct region *r)
{
	struct object o;

	for (uintptr_t at = r->lo; at < r->hi; at += sizeof(uintptr_t)) {
		uintptr_t w = poison_word(*(const uintptr_t *)at);

		if (r->exact && !object_is_reference(w))
			continue;
		// Tags are ignored, as in marking.
		if (arena_offset(w) < arena_used() &&
		    object_find(w & ~(uintptr_t)7, &o) && !is_marked(&o))
			missed(&o, r, at);
		if (r->past_end && object_find(w - 1, &o) &&
		    o.base + o.request == w && !is_marked(&o))
			missed(&o, r, at);
	}
}

static struct trace_check checker(void)
{
	return (struct trace_check){.t = {.base = (const char *)arena.base,
					  .used = arena_used(),
					  .mode = TRACE_CHECK}};
}

// check_values checks a region whose values are in a format.
static void check_values(const struct region *r, const rt_value_format *f)
{
	struct trace_check c = checker();
	struct object o;

	for (uintptr_t at = r->lo; r->hi - at >= f->stride; at += f->stride) {
		trace_values(&c.t, at, at + f->stride, f);
		if (c.missed != 0 && object_find(c.missed, &o))
			missed(&o, r, at);
	}
}

static void check_ranges(void)
{
	for (size_t i = 0; i < roots_ranges(); i++) {
		struct roots_range range = roots_range(i);
		struct region r = {
		    .lo = range.lo,
		    .hi = range.hi,
		    .name = range.name ? "root range" : "a root range",
		    .title = range.name,
		    .exact = range.flags == RT_ROOT_EXACT,
		};

		if (range.flags != ROOTS_VALUES)
			check_region(&r);
		if (range.format)
			check_values(&r, range.format);
	}
}

// check_frames checks a part of a stack, or registers.
static void check_frames(const struct region *r)
{
	const rt_value_format *f = roots_stack_format();

	check_region(r);
	if (f)
		check_values(r, f);
}

static void check_threads(bool past_end)
{
	for (struct rt_proc *p = proc_first(); p; p = proc_next(p)) {
		struct roots_range stack, registers;
		struct region r = {.past_end = past_end};

		if (!roots_stack(p, &stack, &registers))
			continue;
		r.name = "a stack";
		r.lo = stack.lo;
		r.hi = stack.hi;
		check_frames(&r);
		r.name = "registers";
		r.lo = registers.lo;
		r.hi = registers.hi;
		check_frames(&r);
	}
}

static void check_object(unsigned kind, uintptr_t obj, uintptr_t end)
{
	struct region r = {.lo = obj, .hi = end, .name = "an object"};
	struct trace_check c = checker();
	struct object o;

	if (layout_is_words(kind)) {
		check_region(&r);
		return;
	}
	trace_references(&c.t, kind, obj, end - obj);
	if (layouts[kind].name[0] != 0)
		r.name = layouts[kind].name;
	if (c.missed != 0 && object_find(c.missed, &o))
		missed(&o, &r, obj);
}

static void check_span(const struct mspan *s)
{
	unsigned line = epoch_mark_line(epoch_sweepgen());

	for (uint32_t slot = 0; slot < s->nelems; slot++)
		if (mspan_test(s, line, slot))
			check_object(spanclass_kind(s->spanclass),
				     mspan_object(s, slot),
				     mspan_scan_end(s, slot));
}

// check_objects skips objects that are being set up: they have no pointers yet.
static void check_objects(void)
{
	uint64_t page = 0;
	const struct mspan *s;

	while ((s = mheap_next_span(&page)) != NULL)
		if (pageword_state(arena_word(mspan_page(s))) ==
			PAGEWORD_HEAP &&
		    layout_scanned(spanclass_kind(s->spanclass)))
			check_span(s);
}

// check_fns makes root callbacks tell again.
static void check_fns(void)
{
	for (size_t i = 0; i < rootfns_count(); i++) {
		struct trace_check c = checker();
		struct region r = {.title = rootfns_name(i)};
		struct object o;

		rootfns_call(i, &c.t);
		r.name = r.title ? "root callback" : "a root callback";
		if (c.missed != 0 && object_find(c.missed, &o))
			missed(&o, &r, rootfns_code(i));
	}
}

static void check_handles(void)
{
	struct region r = {.name = "a handle", .exact = true};

	while (handles_next(&r.lo, &r.hi))
		check_region(&r);
}

void checkmark_all(bool past_end)
{
	check_fns();
	check_handles();
	check_ranges();
	check_threads(past_end);
	check_objects();
}
