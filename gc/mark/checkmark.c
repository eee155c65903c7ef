// checkmark.c - looks for a word that leads to an unmarked object.
#include "gc/mark/checkmark.h"

#include "runtime/os/oscall.h"
#include "runtime/os/throw.h"
#include "runtime/os/settings.h"
#include "runtime/os/poison.h"
#include "runtime/world/stw.h"
#include "gc/mark/drops.h"
#include "gc/mark/roots.h"
#include "gc/mark/rootfns.h"
#include "gc/mark/handles.h"
#include "gc/mark/frames.h"
#include "gc/mark/stacks.h"
#include "gc/mark/statics.h"
#include "gc/mark/describe.h"

// Words to look at, and what the report calls them.
struct region {
	uintptr_t lo;
	uintptr_t hi;
	const char *name;
	const char *title; // after the name; NULL: none
	bool stack;	   // any pointer into an object refers to it
	bool past_end;	   // a word that equals an object's end counts
	bool exact;	   // references only
};

// ---- the report ----

// find_word returns the address of the first word of an object that equals
// word, or 0 if there is none.
RT_NO_SANITIZE
static uintptr_t find_word(const struct object *o, uintptr_t word)
{
	uintptr_t end = o->base + base_align_down(o->request, sizeof word);

	for (uintptr_t at = o->base; at < end; at += sizeof word)
		if (poison_read(at) == word)
			return at;
	return 0;
}

static void add_label(struct text *t, const struct trace_check *c)
{
	text_str(t, ", reference ");
	describe_label(t, &c->asker.label);
}

// begin_report begins a text about an object that is not marked.
static void begin_report(struct text *t, const struct object *o)
{
	text_init(t);
	text_str(t, "rtheap: object=");
	text_hex(t, o->base);
	text_str(t, " size=");
	text_u64(t, o->size);
	if (layouts[o->kind].name[0] != 0) {
		text_str(t, " kind=");
		text_str(t, layouts[o->kind].name);
	}
	text_str(t, ", found in ");
}

static RT_NORETURN void end_report(struct text *t)
{
	text_str(t, "\n");
	throw_text(t, "checkmark: found unmarked object");
}

// add_region adds the name of a region, and an address in it.
static void add_region(struct text *t, const struct region *r, uintptr_t at)
{
	text_str(t, r->name);
	if (r->title) {
		text_str(t, " ");
		text_str(t, r->title);
	}
	text_str(t, " at ");
	text_hex(t, at);
}

// missed_by_root reports an object to which the root at an address leads.  An
// uncollectable object is its own root.
static RT_NORETURN void missed_by_root(const struct object *o,
				       const struct region *r, uintptr_t at)
{
	struct text t;

	begin_report(&t, o);
	add_region(&t, r, at);
	end_report(&t);
}

// missed_by_fn reports what c has found among the references that the root
// callback at code tells.
static RT_NORETURN void missed_by_fn(const struct trace_check *c,
				     const char *title, uintptr_t code)
{
	struct region r = {.name = title ? "root callback" : "a root callback",
			   .title = title};
	struct text t;

	begin_report(&t, &c->missed);
	add_region(&t, &r, code);
	if (c->asker.label.given)
		add_label(&t, c);
	end_report(&t);
}

// missed_by_object reports what c has found in the object at base.
static RT_NORETURN void missed_by_object(const struct trace_check *c,
					 uintptr_t base)
{
	struct object from = {.base = base};
	struct text t;
	uintptr_t at;

	object_find(base, &from);
	begin_report(&t, &c->missed);
	describe_kind(&t, from.kind, "an object");
	text_str(&t, " at ");
	text_hex(&t, base);
	describe_said(&t, &from);
	at = c->at != 0 ? c->at : find_word(&from, c->word);
	if (c->asker.label.given) {
		add_label(&t, c);
	} else if (at - base < from.size) {
		text_str(&t, ", offset ");
		text_u64(&t, at - base);
	}
	end_report(&t);
}

// ---- looking ----

// Words are read without a sanitizer's checks, as in marking.
RT_NO_SANITIZE
static void check_region(const struct region *r)
{
	struct object o;

	for (uintptr_t at = r->lo; at < r->hi; at += sizeof(uintptr_t)) {
		uintptr_t w = poison_read(at);

		if (r->exact && !object_is_reference(w))
			continue;
		if (arena_offset(w) < arena_used() &&
		    trace_misses(w, r->stack, &o))
			missed_by_root(&o, r, at);
		if (r->past_end && object_find(w - 1, &o) &&
		    o.base + o.request == w && !trace_is_marked(&o))
			missed_by_root(&o, r, at);
	}
}

// check_values checks a region whose values are in a format.
static void check_values(const struct region *r, const rt_value_format *f)
{
	struct trace_check c;

	trace_check_init(&c);
	c.asker.inside = r->stack;
	for (uintptr_t at = r->lo; r->hi - at >= f->stride; at += f->stride) {
		trace_values(&c.asker.t, at, at + f->stride, f);
		if (c.missed.base != 0)
			missed_by_root(&c.missed, r, at);
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

// check_variables checks the variables of named frames.
RT_NO_SANITIZE
static void check_variables(const rt_frame *newest)
{
	struct frames_at at = {.f = newest};
	const volatile uintptr_t *slot;
	struct object o;

	while ((slot = frames_next(&at)) != NULL) {
		uintptr_t w = poison_word(*slot);
		char name[FRAMES_NAME];
		struct region r = {.name = "variable", .title = name};

		if (!object_is_reference(w) || !trace_misses(w, false, &o))
			continue;
		frames_name(&at, name);
		missed_by_root(&o, &r, (uintptr_t)slot);
	}
}

// check_part checks a part of a stack, or registers.
static void check_part(struct region r, struct roots_range part,
		       const char *name)
{
	const rt_value_format *f = roots_stack_format();

	r.lo = part.lo;
	r.hi = part.hi;
	r.name = name;
	check_region(&r);
	if (f)
		check_values(&r, f);
	if (part.format)
		check_values(&r, part.format);
}

static void check_threads(void)
{
	for (struct rt_proc *p = proc_first(); p; p = proc_next(p)) {
		struct region r = {.stack = true,
				   .past_end = settings()->past_end != 0};
		const struct rt_mcache *mc = mcache_of(p);
		struct stacks_thread t;

		if (mc)
			check_variables(mc->thread.frames);
		if (!stacks_of_thread(p, &t))
			continue;
		check_part(r, t.frames, "a stack");
		check_part(r, t.left, "a stack");
		check_part(r, t.registers, "registers");
	}
}

// check_row checks a row of a registered stack, or of its registers.
static void check_row(const struct work_range *row, const char *title)
{
	bool values =
	    row->words == WORK_VALUES || row->words == WORK_STACK_VALUES;
	struct region r = {
	    .lo = row->lo,
	    .hi = row->hi,
	    .name = title ? "registered stack" : "a registered stack",
	    .title = title,
	    .stack =
		row->words == WORK_INSIDE || row->words == WORK_STACK_VALUES,
	    .exact = row->words == WORK_REFERENCES,
	};

	r.past_end = settings()->past_end != 0 && row->words == WORK_INSIDE;
	if (values)
		check_values(&r, row->how);
	else
		check_region(&r);
}

// check_stacks checks the stacks that marking has scanned.  Some belong to an
// object, whose callback told marking to scan them.  When that object is
// checked, its callback tells them again.  They are checked here as well,
// because the callback does not tell words that equal the end of an object
// (past_end).
static void check_stacks(void)
{
	for (size_t i = 0; i < stacks_count(); i++) {
		const struct rt_stack *s = stacks_at(i);
		struct work_range row[STACKS_ROWS];
		unsigned n;

		if (!stacks_is_root(s) && !stacks_was_told(s))
			continue;
		check_variables(stacks_frames(s));
		n = stacks_rows(s, WORK_INSIDE, row);
		for (unsigned k = 0; k < n; k++)
			check_row(&row[k], stacks_name(s));
	}
}

// check_words looks at an object whose words are all plain.
RT_NO_SANITIZE
static void check_words(struct trace_check *c, uintptr_t obj, uintptr_t end)
{
	for (uintptr_t at = obj; at < end && c->missed.base == 0;
	     at += sizeof(uintptr_t)) {
		uintptr_t w = poison_read(at);

		if (arena_offset(w) < arena_used() &&
		    trace_misses(w, false, &c->missed))
			c->at = at;
		else
			c->missed.base = 0;
	}
}

static void check_object(struct trace_check *c, unsigned kind, uintptr_t obj,
			 uintptr_t end)
{
	if (layout_is_words(kind))
		check_words(c, obj, end);
	else
		trace_references(&c->asker.t, kind, obj, end - obj);
	if (c->missed.base != 0)
		missed_by_object(c, obj);
	c->asker.label.given = false;
}

// check_span leaves out dead objects that lead to nothing, and those whose drop
// has begun: once the destructor of such an object has run, its trace callback
// may tell anything.
static void check_span(struct trace_check *c, const struct mspan *s)
{
	unsigned line = epoch_mark_line(epoch_sweepgen());

	for (uint32_t slot = 0; slot < s->nelems; slot++)
		if (mspan_test(s, line, slot) &&
		    (!deadbits_slot(s, slot) ||
		     (drops_is_deep(s, slot) && !drops_begun(s, slot))))
			check_object(c, spanclass_kind(s->spanclass),
				     mspan_object(s, slot),
				     mspan_scan_end(s, slot));
}

// check_kept checks that every uncollectable object of a span is marked.
static void check_kept(const struct mspan *s)
{
	const struct region r = {.name = "the uncollectable objects"};
	unsigned allocated = epoch_alloc_line(epoch_sweepgen());
	unsigned marked = epoch_mark_line(epoch_sweepgen());
	struct object o;

	for (uint32_t slot = 0; slot < s->nelems; slot++)
		if (mspan_test(s, allocated, slot) &&
		    !mspan_test(s, marked, slot) &&
		    object_find(mspan_object(s, slot), &o))
			missed_by_root(&o, &r, o.base);
}

// check_objects skips objects that are being set up: they have no pointers yet.
static void check_objects(void)
{
	struct trace_check c;
	uint64_t page = 0;
	const struct mspan *s;

	trace_check_init(&c);
	trace_enter(&c.asker.t);
	while ((s = mheap_next_span(&page)) != NULL) {
		unsigned kind = spanclass_kind(s->spanclass);

		if (pageword_state(arena_pageword(mspan_page(s))) !=
		    PAGEWORD_HEAP)
			continue;
		if (kind >= KIND_OWN)
			check_kept(s);
		if (layout_scanned(kind))
			check_span(&c, s);
	}
	trace_leave();
}

// check_fns makes the root callbacks tell their references again.
static void check_fns(void)
{
	struct trace_check c;

	trace_check_init(&c);
	trace_enter(&c.asker.t);
	for (size_t i = 0; i < rootfns_count(); i++) {
		rootfns_call(i, &c.asker.t);
		if (c.missed.base != 0)
			missed_by_fn(&c, rootfns_name(i), rootfns_code(i));
		c.asker.label.given = false;
	}
	trace_leave();
}

static void check_handles(void)
{
	struct region r = {.name = "a handle", .exact = true};

	while (handles_next(&r.lo, &r.hi))
		check_region(&r);
}

// check_copied checks a copy of the n words at address at.
static void check_copied(const uintptr_t *word, size_t n, uintptr_t at)
{
	const struct region r = {.name = "static data"};
	struct object o;

	for (size_t i = 0; i < n; i++) {
		uintptr_t w = poison_word(word[i]);

		if (arena_offset(w) < arena_used() &&
		    trace_misses(w, false, &o))
			missed_by_root(&o, &r, at + i * sizeof w);
	}
}

static void check_statics(void)
{
	struct statics_walk walk;
	struct statics_range r;
	uintptr_t copy[64];

	statics_begin(&walk, oscall_gettid());
	while (statics_next(&walk, &r))
		while (r.lo < r.hi) {
			uintptr_t at = r.lo;
			size_t n = statics_copy(
			    walk.tid, copy, RT_ARRAY_LEN(copy), &r.lo, r.hi);

			check_copied(copy, n, at);
		}
}

void checkmark_all(void)
{
	RT_ASSERT(stw_stopped());
	check_fns();
	check_handles();
	check_statics();
	check_ranges();
	check_threads();
	check_stacks();
	check_objects();
}
