// tracecheck.c - looks for words that lead to an object and are not told, and
// for pointers that are told and ignored.
#include "gc/mark/tracecheck.h"

#include "runtime/os/throw.h"
#include "runtime/os/poison.h"
#include "runtime/world/stw.h"
#include "runtime/spans/deadbits.h"
#include "gc/mark/typed.h"
#include "gc/mark/drops.h"
#include "gc/mark/grey.h"
#include "gc/mark/trace.h"
#include "gc/mark/roots.h"
#include "gc/mark/describe.h"
#include "gc/mark/sites.h"
#include "gc/mark/notices.h"

// The state of the search in this stop.  There is no check function: it is made
// anew in each stop.
static struct {
	struct targets targets; // of the object that is looked at
	uint64_t skipped;	// objects, for lack of memory
	uint64_t unnoted;	// words, for lack of memory
} check;

// An object whose words are looked at.
struct look {
	unsigned kind;
	const struct layout *layout;
	const rt_type *type; // NULL: none
	uintptr_t obj;
	uintptr_t end;
};

// ---- what a word leads to ----

// The most objects that one word can lead to: plainly, as the header, in the
// format of its type, and in that of stacks.
enum { WAYS = 4 };

struct leads {
	unsigned n;
	uintptr_t base[WAYS];
};

// find_waiting finds a dead object that p points into and whose destructor has
// not begun.
static bool find_waiting(uintptr_t p, struct object *o)
{
	uint64_t page = arena_offset(p) >> RT_PAGE_SHIFT;
	uint32_t pageword = arena_pageword(page);
	const struct mspan *s = arena_span(page);
	uint32_t slot;

	if (pageword_state(pageword) != PAGEWORD_HEAP ||
	    !(kinds_drops() >> pageword_kind(pageword) & 1) ||
	    p < mspan_object(s, 0))
		return false;
	slot = mspan_slot(s, p - s->base);
	if (slot >= s->nelems || p >= mspan_limit(s) ||
	    !deadbits_slot(s, slot) || drops_begun(s, slot))
		return false;
	o->base = mspan_object(s, slot);
	o->size = o->request = mspan_usable(s);
	o->kind = pageword_kind(pageword);
	return true;
}

static bool find(uintptr_t p, struct object *o)
{
	return object_find(p, o) || find_waiting(p, o);
}

// add adds the object that an address refers to.  An object that refers to
// itself need not tell that reference.
static void add(struct leads *to, const struct look *l, uintptr_t address)
{
	struct object o;

	if (arena_offset(address) < arena_used() &&
	    find(address & ~(uintptr_t)7, &o) && o.base != l->obj &&
	    layout_refers(o.kind, o.base, address))
		to->base[to->n++] = o.base;
}

// add_value adds what the value whose value word is at an address refers to.
static void add_value(struct leads *to, const struct look *l, uintptr_t at,
		      const rt_value_format *f)
{
	uintptr_t tested = at + (uintptr_t)f->test_at * sizeof(uintptr_t);
	uint64_t w = poison_read(at) & f->addr_mask, test;

	if (tested < l->obj || tested >= l->end)
		return;
	test = poison_read(tested);
	if ((test & f->test_mask) != f->test_bits || test < f->min ||
	    test > f->max)
		return;
	w = f->shift >= 0 ? w << f->shift : w >> -f->shift;
	add(to, l, w + f->base);
}

static bool has_bit(const uint64_t *bitmap, size_t ptrdata, uint64_t offset)
{
	uint64_t word = offset / sizeof(uintptr_t);

	return offset < ptrdata && bitmap[word / 64] >> (word % 64) & 1;
}

// offset_in returns an offset.  For a word in the tail, it returns the offset
// of the same word of the tail's first element.
static uint64_t offset_in(const rt_type *type, uint64_t offset)
{
	return type && type->tail_size != 0 && offset >= type->size
		   ? type->size + (offset - type->size) % type->tail_size
		   : offset;
}

// is_tagged tells whether the bitmap of a type says that a word is the value
// word of a value of two words.  Then its tag decides what it is.
static bool is_tagged(const rt_type *type, uint64_t offset)
{
	if (!type || !type->format || type->format->test_at == 0)
		return false;
	offset = offset_in(type, offset);
	return offset < type->size
		   ? has_bit(type->bitmap, type->ptrdata, offset)
		   : has_bit(type->tail_bitmap, type->tail_ptrdata,
			     offset - type->size);
}

static struct leads leads_of(const struct look *l, uintptr_t at)
{
	const rt_value_format *format = l->type ? l->type->format : NULL;
	const rt_value_format *stack = roots_stack_format();
	struct leads to = {0};

	if (format)
		add_value(&to, l, at, format);
	if (is_tagged(l->type, at - l->obj))
		return to;
	add(&to, l, poison_read(at));
	if (stack)
		add_value(&to, l, at, stack);
	if (l->layout->how == RT_LAYOUT_HEADER &&
	    at == l->obj + l->layout->header_offset)
		add(&to, l, layout_header(l->layout, l->obj, l->end - l->obj));
	return to;
}

// ---- one object ----

// collect puts all that the words of an object lead to into the table.  Returns
// false if there is no memory.  A thread in a blocking region may have the
// system write to the object meanwhile, so no more objects are put in than
// there is room for.
static bool collect(const struct look *l)
{
	size_t n = 0;

	for (uintptr_t at = l->obj; at < l->end; at += sizeof(uintptr_t))
		n += leads_of(l, at).n;
	if (!targets_begin(&check.targets, n))
		return false;
	for (uintptr_t at = l->obj; n != 0 && at < l->end;
	     at += sizeof(uintptr_t)) {
		struct leads to = leads_of(l, at);

		for (unsigned i = 0; i < to.n && check.targets.n < n; i++)
			targets_add(&check.targets, to.base[i], at - l->obj);
	}
	RT_CHECK(targets_check(&check.targets));
	return true;
}

// ask makes an object tell its references.  told keeps the label of the last
// target before an offset.
static void ask(const struct look *l, struct trace_told *told, uint64_t before)
{
	trace_told_init(told, &check.targets, l->obj);
	told->before = before;
	trace_enter(&told->asker.t);
	trace_references(&told->asker.t, l->kind, l->obj, l->end - l->obj);
	trace_leave();
}

// any_told tells whether any object to which a word leads was told.  It returns
// true if the word has changed since collect, so that the word is left out.
static bool any_told(const struct leads *to)
{
	for (unsigned i = 0; i < to->n; i++) {
		const struct target *t =
		    targets_find(&check.targets, to->base[i]);

		if (!t || t->told)
			return true;
	}
	return false;
}

// type_key returns a number by which objects of one type differ from those of
// others.  For a small typed object the type is not known, only its size and
// its references.
static uint64_t type_key(const struct look *l)
{
	uintptr_t end = base_min(l->end, l->obj + TYPEBITS_BYTES);

	if (l->layout->how != LAYOUT_BITS || l->type)
		return (uintptr_t)l->type;
	return trace_row_bits(l->obj, end) * 8191 + (l->end - l->obj);
}

// is_reached tells whether an object stays, and not only for its destructor.
static bool is_reached(uintptr_t base)
{
	const struct mspan *s = arena_span(arena_offset(base) >> RT_PAGE_SHIFT);
	struct object o = {.base = base};

	return trace_is_marked(&o) &&
	       !deadbits_slot(s, mspan_slot(s, base - s->base));
}

static void note(const struct look *l, uintptr_t at, uintptr_t target,
		 enum site_target how)
{
	bool nowhere = at == l->end;
	struct site key = {
	    .kind = l->kind,
	    .born = l->layout->born,
	    .type = type_key(l),
	    .offset = nowhere ? SITE_NOWHERE : offset_in(l->type, at - l->obj),
	};
	struct site_found found = {
	    .obj = l->obj,
	    .at = nowhere ? SITE_NOWHERE : at - l->obj,
	    .target = target,
	    .how = (uint8_t)how,
	};

	check.unnoted += !sites_note(&key, &found);
}

// find_word returns the address of the first word that equals a pointer but for
// the low three bits.  Returns the object's end if there is none: a value may
// hold the pointer in another form, or the callback has it from elsewhere.
static uintptr_t find_word(const struct look *l, uintptr_t pointer)
{
	uintptr_t at = l->obj;

	while (at < l->end && (poison_read(at) ^ pointer) > 7)
		at += sizeof(uintptr_t);
	return at;
}

static void check_object(const struct look *l)
{
	struct trace_told told;

	if (!collect(l)) {
		check.skipped++;
		return;
	}
	if (check.targets.n == 0 && grey_bases == 0)
		return;
	ask(l, &told, 0);
	if (told.ignored != 0)
		note(l, find_word(l, told.ignored),
		     told.ignored & ~(uintptr_t)7, SITE_IGNORED);
	for (uintptr_t at = l->obj; at < l->end; at += sizeof(uintptr_t)) {
		struct leads to = leads_of(l, at);

		if (to.n != 0 && !any_told(&to))
			note(l, at, to.base[0],
			     is_reached(to.base[0]) ? SITE_REACHED : SITE_LOST);
	}
}

// ---- all objects ----

static struct look look_at(const struct mspan *s, uint32_t slot)
{
	unsigned kind = spanclass_kind(s->spanclass);
	struct look l = {
	    .kind = kind,
	    .layout = &layouts[kind],
	    .obj = mspan_object(s, slot),
	    .end = mspan_scan_end(s, slot),
	};

	l.type = l.layout->how == LAYOUT_BITS
		     ? typed_of(l.obj)
		     : layout_type(l.layout, l.obj, l.end - l.obj);
	return l;
}

// check_span leaves out what is dead and waits for its destructor: all that it
// leads to may be dead as well.
static void check_span(const struct mspan *s)
{
	unsigned line = epoch_mark_line(epoch_sweepgen());

	for (uint32_t slot = 0; slot < s->nelems; slot++) {
		struct look l;

		if (!mspan_test(s, line, slot) || deadbits_slot(s, slot))
			continue;
		l = look_at(s, slot);
		check_object(&l);
	}
}

// is_described tells whether the host says which words of the objects of a kind
// are references.  Where each word is a value, none can be forgotten.
static bool is_described(unsigned kind)
{
	return layout_scanned(kind) && layouts[kind].how != RT_LAYOUT_WORDS;
}

// check_objects skips objects that are being set up: they have no pointers yet.
static void check_objects(void)
{
	uint64_t page = 0;
	const struct mspan *s;

	while ((s = mheap_next_span(&page)) != NULL)
		if (pageword_state(arena_pageword(mspan_page(s))) ==
			PAGEWORD_HEAP &&
		    is_described(spanclass_kind(s->spanclass)))
			check_span(s);
}

// ---- the report ----

static struct look look_again(uintptr_t obj)
{
	const struct mspan *s = arena_span(arena_offset(obj) >> RT_PAGE_SHIFT);

	return look_at(s, mspan_slot(s, obj - s->base));
}

// add_label adds the name of a reference that is ignored, or the last named
// reference before an untold one.
static void add_label(struct text *t, const struct site_found *f)
{
	struct look l = look_again(f->obj);
	bool ignored = f->how == SITE_IGNORED;
	struct trace_told told;

	if (!collect(&l))
		return;
	ask(&l, &told, f->at);
	if (!(ignored ? told.ignored_label : told.near).given)
		return;
	text_str(t, ignored ? " (" : " (after ");
	describe_label(t, ignored ? &told.ignored_label : &told.near);
	if (!ignored) {
		text_str(t, " at ");
		text_u64(t, told.near_at);
	}
	text_str(t, ")");
}

static void add_place(struct text *t, const struct site_found *f)
{
	if (f->at == SITE_NOWHERE)
		return;
	text_str(t, ", offset ");
	text_u64(t, f->at);
}

static void add_ignored(struct text *t, uintptr_t p, const struct object *o)
{
	text_str(t, ": pointer to byte ");
	text_u64(t, p - o->base);
	text_str(t, " of ");
	describe_object(t, o);
	text_str(t, ", which is ignored (RT_KIND_BASE)");
}

static void add_untold(struct text *t, enum site_target how,
		       const struct object *o)
{
	text_str(t, ": untold reference to ");
	describe_object(t, o);
	text_str(t, how == SITE_LOST ? ", which nothing else reaches"
				     : ", which is reached otherwise");
}

static void report(const struct site_found *f)
{
	struct object from, target;
	struct text t;

	object_find(f->obj, &from);
	find(f->target, &target);
	text_init(&t);
	text_str(&t, "rtheap: tracecheck: ");
	describe_object(&t, &from);
	add_place(&t, f);
	add_label(&t, f);
	if (f->how == SITE_IGNORED)
		add_ignored(&t, f->target, &target);
	else
		add_untold(&t, f->how, &target);
	notices_add(&t);
}

// report_all reports at most *room of the sites whose targets are in the state
// how, and lowers *room by the number reported.  Returns how many such sites it
// did not report.
static uint64_t report_all(enum site_target how, uint32_t *room)
{
	uint64_t others = 0;

	for (uint32_t i = 0; i < sites.n; i++) {
		struct site *s = &sites.site[i];

		if (s->found.how != how || s->told >= how)
			continue;
		if (*room == 0) {
			others++;
			continue;
		}
		report(&s->found);
		s->told = (uint8_t)how;
		--*room;
	}
	return others;
}

static void add_count(uint64_t n, const char *what)
{
	struct text t;

	if (n == 0 || notices_room() == 0)
		return;
	text_init(&t);
	text_str(&t, "rtheap: tracecheck: ");
	text_u64(&t, n);
	text_str(&t, what);
	notices_add(&t);
}

enum { COUNTS = 3 }; // lines that add_count may need

static void report_found(void)
{
	uint32_t room = notices_room();
	uint64_t others;

	room = (uint32_t)base_min(base_sub_sat(room, COUNTS), TRACECHECK_LINES);
	others = report_all(SITE_LOST, &room);
	others += report_all(SITE_REACHED, &room);
	others += report_all(SITE_IGNORED, &room);
	add_count(others, " others");
	add_count(check.unnoted, " words that there is no memory to note");
	add_count(check.skipped, " objects that there is no memory to look at");
}

void tracecheck_all(void)
{
	RT_ASSERT(stw_stopped());
	check.skipped = check.unnoted = 0;
	check_objects();
	report_found();
	for (uint32_t i = 0; i < sites.n; i++)
		sites.site[i].found.how = SITE_NONE;
	targets_end(&check.targets);
	RT_CHECK(sites_check(&sites));
}
