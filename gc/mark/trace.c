// Follows bitmaps and formats, and calls the host's trace callbacks.
#include "gc/mark/trace.h"

#include <string.h>

#include "runtime/base/bits.h"
#include "runtime/os/throw.h"
#include "runtime/os/poison.h"
#include "runtime/world/stw.h"
#include "gc/mark/typed.h"
#include "gc/mark/overflow.h"

static __thread rt_tracer *self __attribute__((tls_model("initial-exec")));

void trace_enter(rt_tracer *t)
{
	self = t;
}

void trace_leave(void)
{
	self = NULL;
}

rt_tracer *trace_self(void)
{
	return self;
}

static struct marker *marker_of(rt_tracer *t)
{
	return (struct marker *)((char *)t - offsetof(struct marker, work.t));
}

// ---- one reference ----

// tell_roots_later has the root callbacks called again.  Only the opener calls
// them.
static void tell_roots_later(struct marker *m)
{
	m->roots_again = true;
	overflow_raise();
}

// tell_later notes what is telling its references at the moment, an object or
// the root callbacks, so that it tells them again.
static void tell_later(struct marker *m)
{
	if (m->tracing != 0)
		scan_overflow(m, m->tracing);
	else
		tell_roots_later(m);
}

// mark_now marks the object of a word for which there is no room.  If the
// object must be scanned, that is noted, and it is scanned when all else is
// marked.  An object that must be traced when it is marked stays unmarked, and
// the object or callback that tells the reference is noted.
static void mark_now(struct marker *m, uintptr_t word)
{
	struct grey o;
	enum grey_result found;

	if (layouts[grey_kind(m, word)].flags & RT_KIND_ONCE) {
		if (grey_unmarked(m, word))
			tell_later(m);
		return;
	}
	found = grey_word(m, word, &o);
	if (found != GREY_NOTHING && found != GREY_LEAF)
		scan_overflow(m, o.base);
}

static void push(rt_tracer *t, uintptr_t word)
{
	RT_ASSERT(t->top <= t->limit);
	struct marker *m = marker_of(t);
	struct work *w = &m->work;

	if (t->mode == TRACE_AGAIN && !grey_unmarked(m, word))
		return;
	if (w->t.top == w->bottom + WORK_ENTRIES && !work_spill(w)) {
		mark_now(m, word);
		return;
	}
	(w->t.top++)->word = word;
	if (t->mode == TRACE_AGAIN)
		t->limit = t->top;
}

// ---- asking ----

// Every reference goes through trace_slow, even one that is no address in the
// heap, so each uses its name up.
static void asker_init(struct trace_asker *a, enum trace_mode mode)
{
	*a = (struct trace_asker){
	    .t = {.used = SIZE_MAX, .mode = (uint8_t)mode, .names = 1}};
}

void trace_check_init(struct trace_check *c)
{
	*c = (struct trace_check){0};
	asker_init(&c->asker, TRACE_CHECK);
}

void trace_told_init(struct trace_told *told, struct targets *targets,
		     uintptr_t obj)
{
	*told = (struct trace_told){.targets = targets, .obj = obj};
	asker_init(&told->asker, TRACE_TOLD);
}

bool trace_is_marked(const struct object *o)
{
	const struct mspan *s =
	    arena_span(arena_offset(o->base) >> RT_PAGE_SHIFT);

	RT_ASSERT(stw_stopped());
	return mspan_test(s, epoch_mark_line(epoch_sweepgen()),
			  mspan_slot(s, o->base - s->base));
}

// Tags are ignored, as in marking.
bool trace_misses(uintptr_t word, bool inside, struct object *o)
{
	return object_find(word & ~(uintptr_t)7, o) &&
	       (inside || layout_refers(o->kind, o->base, word)) &&
	       !trace_is_marked(o);
}

// check keeps the first reference that leads to an unmarked object, with its
// name.
static void check(struct trace_check *c, uintptr_t word, uintptr_t at)
{
	struct object o;

	if (c->missed.base != 0)
		return;
	if (!trace_misses(word, c->asker.inside, &o)) {
		c->asker.label.given = false;
		return;
	}
	c->missed = o;
	c->word = word;
	c->at = at;
}

// note_ignored keeps the first pointer that a callback told and RT_KIND_BASE
// ignored.  If a word of the asked object refers to the target of the pointer,
// the pointer is left out, because that word is judged instead.
static void note_ignored(struct trace_told *told, uintptr_t word,
			 const struct object *target)
{
	if (told->ignored != 0 || target->base == told->obj ||
	    targets_find(told->targets, target->base))
		return;
	told->ignored = word;
	told->ignored_label = told->asker.label;
}

// told_target returns the target that a word refers to, or NULL.
static struct target *told_target(struct trace_told *told, uintptr_t word,
				  uintptr_t at)
{
	struct object o;

	if (!object_find(word & ~(uintptr_t)7, &o))
		return NULL;
	if (told->asker.inside || layout_refers(o.kind, o.base, word))
		return targets_find(told->targets, o.base);
	// A word that is told by its address may be a number.
	if (at == 0)
		note_ignored(told, word, &o);
	return NULL;
}

// note_told notes that the object that a word refers to was told.
static void note_told(struct trace_told *told, uintptr_t word, uintptr_t at)
{
	struct target *target = told_target(told, word, at);

	if (target) {
		target->told = true;
		if (told->asker.label.given && target->at < told->before &&
		    (!told->near.given || target->at >= told->near_at)) {
			told->near_at = target->at;
			told->near = told->asker.label;
		}
	}
	told->asker.label.given = false;
}

// ask passes a reference to a tracer that only asks.
static RT_NOINLINE void ask(rt_tracer *t, uintptr_t word, uintptr_t at)
{
	if (t->mode == TRACE_CHECK)
		check((struct trace_check *)t, word, at);
	else
		note_told((struct trace_told *)t, word, at);
}

// wants_label tells whether the label of a reference counts: after the first
// missed reference none does.
static bool wants_label(const rt_tracer *t)
{
	return t->mode == TRACE_TOLD ||
	       (t->mode == TRACE_CHECK &&
		((const struct trace_check *)t)->missed.base == 0);
}

void trace_name(rt_tracer *t, const char *name, size_t index)
{
	struct trace_label *label = &((struct trace_asker *)t)->label;

	if (!wants_label(t))
		return;
	*label = (struct trace_label){
	    .given = true, .has_name = name != NULL, .index = index};
	if (name)
		strncpy(label->name, name, sizeof label->name - 1);
}

// slow_at pushes a reference, or passes it to a tracer that only asks.  at is
// the address of the reference, or 0.
static void slow_at(rt_tracer *t, uintptr_t word, uintptr_t at)
{
	if (t->mode >= TRACE_CHECK)
		ask(t, word, at);
	else
		push(t, word);
}

void trace_slow(rt_tracer *t, uintptr_t word)
{
	slow_at(t, word, 0);
}

// tell does what the public inline functions do.  It also knows the address at
// which the reference is.
RT_INLINE void tell(rt_tracer *t, uintptr_t word, uintptr_t at)
{
	if (word - (uintptr_t)t->base >= t->used)
		return;
	if (RT_LIKELY(t->top != t->limit))
		(t->top++)->word = word;
	else
		slow_at(t, word, at);
}

// address_of sets *w to the address that the value with a value word refers to.
// Returns false if the value is no reference.
RT_INLINE bool address_of(uint64_t tested, uint64_t word,
			  const rt_value_format *f, uintptr_t *w)
{
	if ((tested & f->test_mask) != f->test_bits || tested < f->min ||
	    tested > f->max)
		return false;
	word &= f->addr_mask;
	*w = (f->shift >= 0 ? word << f->shift : word >> -f->shift) + f->base;
	return true;
}

// ---- rows of values ----

// Words are read without a sanitizer's checks, as in scanning.
RT_NO_SANITIZE
static void tell_words(rt_tracer *t, uintptr_t lo, uintptr_t hi)
{
	for (; lo < hi; lo += sizeof(uintptr_t))
		tell(t, poison_read(lo), lo);
}

// tell_value tells the value whose value word is at an address.
RT_NO_SANITIZE static inline void tell_value(rt_tracer *t, uintptr_t at,
					     const rt_value_format *f)
{
	uint64_t word = poison_read(at), tested = word;
	uintptr_t w;

	if (f->test_at != 0)
		tested =
		    poison_read(at + (uintptr_t)f->test_at * sizeof(uintptr_t));
	if (address_of(tested, word, f, &w))
		tell(t, w, at);
}

// values_at returns the offset of the value word in an element of a row.
RT_INLINE size_t values_at(const rt_value_format *f)
{
	return f->test_at < 0 ? sizeof(uintptr_t) : 0;
}

// push_values_with tells values whose addresses are not shifted.  There must be
// room for all.  It copies what it needs of the format and of the tracer, so
// that this stays in registers.  Otherwise the compiler must assume that a
// store to the stack may change the format or the tracer.  apart says that the
// tested word is not the value word.
RT_NO_SANITIZE
static inline void push_values_with(rt_tracer *t, uintptr_t lo, uintptr_t hi,
				    const rt_value_format *f, bool apart)
{
	const uintptr_t heap = (uintptr_t)t->base, used = t->used;
	const uint64_t test_mask = f->test_mask, test_bits = f->test_bits;
	const uint64_t min = f->min, range = f->max - f->min;
	const uint64_t addr_mask = f->addr_mask, base = f->base - heap;
	const size_t stride = f->stride;
	const uintptr_t test_at = (uintptr_t)f->test_at * sizeof(uintptr_t);
	uintptr_t *top = &t->top->word;

	if (f->min > f->max)
		return;
	lo += values_at(f);
	hi += values_at(f);
	for (; hi - lo >= stride; lo += stride) {
		uint64_t tested = poison_load(apart ? lo + test_at : lo);
		uint64_t offset;

		if ((tested & test_mask) != test_bits || tested - min > range)
			continue;
		offset = apart ? poison_load(lo) : tested;
		offset = (offset & addr_mask) + base;
		if (offset < used)
			*top++ = offset + heap;
	}
	t->top = (struct rt_trace_entry *)top;
}

static void push_values(rt_tracer *t, uintptr_t lo, uintptr_t hi,
			const rt_value_format *f)
{
	if (f->test_at == 0)
		push_values_with(t, lo, hi, f, false);
	else
		push_values_with(t, lo, hi, f, true);
}

static void tell_values(rt_tracer *t, uintptr_t lo, uintptr_t hi,
			const rt_value_format *f)
{
	if (f->shift == 0 && !poison_memcheck &&
	    (size_t)(t->limit - t->top) >= (hi - lo) / sizeof(uintptr_t)) {
		push_values(t, lo, hi, f);
		return;
	}
	for (; hi - lo >= f->stride; lo += f->stride)
		tell_value(t, lo + values_at(f), f);
}

// tell_plain tells the words of [lo, hi) that a bitmap names.
RT_NO_SANITIZE
static void tell_plain(rt_tracer *t, uintptr_t lo, uintptr_t hi,
		       const uint64_t *bitmap)
{
	for (; lo < hi; lo += 64 * sizeof(uintptr_t))
		for (uint64_t x = *bitmap++; x; x &= x - 1) {
			uintptr_t at = lo + bits_ctz(x) * sizeof(uintptr_t);

			if (at >= hi)
				return;
			tell(t, poison_read(at), at);
		}
}

// A part of an object, [lo, hi).  A bitmap says which words of [lo, values) are
// values or references.
struct part {
	uintptr_t lo;
	uintptr_t hi;
	uintptr_t values;
	const uint64_t *bitmap;
};

// tell_formatted tells the values of a part.  The tested word of a value may
// come after the last value word, but must be in the part.
static void tell_formatted(rt_tracer *t, const struct part *p,
			   const rt_value_format *f)
{
	const uint64_t *bitmap = p->bitmap;

	for (uintptr_t lo = p->lo; lo < p->values; lo += 64 * sizeof(uintptr_t))
		for (uint64_t x = *bitmap++; x; x &= x - 1) {
			uintptr_t at = lo + bits_ctz(x) * sizeof(uintptr_t);
			uintptr_t tested =
			    at + (uintptr_t)f->test_at * sizeof(uintptr_t);

			if (at >= p->values)
				return;
			if (tested >= p->lo && tested < p->hi)
				tell_value(t, at, f);
		}
}

static void tell_part(rt_tracer *t, const struct part *p,
		      const rt_value_format *f)
{
	if (f)
		tell_formatted(t, p, f);
	else
		tell_plain(t, p->lo, p->values, p->bitmap);
}

static void tell_tail(rt_tracer *t, uintptr_t lo, uintptr_t hi,
		      const rt_type *type)
{
	for (; hi - lo >= type->tail_size; lo += type->tail_size) {
		struct part p = {lo, lo + type->tail_size,
				 lo + type->tail_ptrdata, type->tail_bitmap};

		tell_part(t, &p, type->format);
	}
}

// ---- pieces ----

// The bytes that can be told in a row with room made once.
enum { TRACE_BLOCK = SCAN_BLOCK };

// tell_stack_values tells values of a stack, for which there must be room.  For
// objects of kinds with RT_KIND_BASE, it tells the base instead of the value's
// address.
static void tell_stack_values(struct marker *m, uintptr_t lo, uintptr_t hi,
			      const rt_value_format *f)
{
	struct rt_trace_entry *e = m->work.t.top;

	tell_values(&m->work.t, lo, hi, f);
	for (; e != m->work.t.top; e++)
		e->word = grey_from_stack(m, e->word);
}

uintptr_t trace_piece(struct marker *m, const struct work_range *range)
{
	uintptr_t lo = range->lo;
	struct object o;

	// A tail is in its object; values may be anywhere.
	if (range->words == WORK_TAIL && object_find_any(lo, &o))
		m->tracing = o.base;
	while (range->hi - lo >= range->stride) {
		size_t block = base_max(TRACE_BLOCK / range->stride, 1) *
			       (size_t)range->stride;
		uintptr_t end = range->hi - lo < block ? range->hi : lo + block;

		if (!work_room(&m->work, base_min(block / sizeof(uintptr_t),
						  WORK_ENTRIES)))
			return lo;
		if (range->words == WORK_VALUES)
			tell_values(&m->work.t, lo, end, range->how);
		else if (range->words == WORK_STACK_VALUES)
			tell_stack_values(m, lo, end, range->how);
		else
			tell_tail(&m->work.t, lo, end, range->how);
		lo = end;
	}
	return range->hi;
}

// share leaves the rest of a long row to all markers, after its first piece,
// and moves *hi to the end of that piece.
static void share(rt_tracer *t, uintptr_t lo, uintptr_t *hi,
		  struct work_range rest)
{
	uintptr_t piece = work_piece(rest.stride);

	if (t->mode != TRACE_MARK || *hi - lo <= piece)
		return;
	rest.lo = lo + piece;
	rest.hi = *hi;
	if (work_add_range(&marker_of(t)->work, rest))
		*hi = rest.lo;
}

void trace_words(rt_tracer *t, uintptr_t lo, uintptr_t hi)
{
	lo = base_align_up(lo, sizeof(uintptr_t));
	hi = base_align_down(hi, sizeof(uintptr_t));
	if (lo >= hi)
		return;
	share(t, lo, &hi,
	      (struct work_range){.words = WORK_ANY,
				  .stride = sizeof(uintptr_t)});
	tell_words(t, lo, hi);
}

void trace_values(rt_tracer *t, uintptr_t lo, uintptr_t hi,
		  const rt_value_format *f)
{
	lo = base_align_up(lo, sizeof(uintptr_t));
	// A wrong format tells nothing, and never divides by 0.
	if (lo >= hi || !layout_format_ok(f) || hi - lo < f->stride)
		return;
	share(t, lo, &hi,
	      (struct work_range){
		  .words = WORK_VALUES, .stride = f->stride, .how = f});
	tell_values(t, lo, hi, f);
}

// ---- rows of stacks ----

enum work_words trace_frames(rt_tracer *t)
{
	return t->mode >= TRACE_CHECK || marker_of(t)->bases != 0 ? WORK_INSIDE
								  : WORK_ANY;
}

void trace_count_stack(rt_tracer *t, uint64_t bytes)
{
	marker_of(t)->stack_bytes += bytes;
}

RT_NO_SANITIZE
static void tell_references(rt_tracer *t, uintptr_t lo, uintptr_t hi)
{
	for (; lo < hi; lo += sizeof(uintptr_t)) {
		uintptr_t w = poison_read(lo);

		if (object_is_reference(w))
			tell(t, w, lo);
	}
}

// tell_inside tells a word of a stack.
static void tell_inside(rt_tracer *t, uintptr_t w, uintptr_t at)
{
	const struct marker *m = marker_of(t);

	if (grey_in_heap(m, w))
		tell(t, grey_from_stack(m, w), at);
}

RT_NO_SANITIZE
static void tell_frames(rt_tracer *t, uintptr_t lo, uintptr_t hi)
{
	for (; lo < hi; lo += sizeof(uintptr_t))
		tell_inside(t, poison_read(lo), lo);
}

// tell_frame_values tells values of a stack; their stride is 8.
RT_NO_SANITIZE
static void tell_frame_values(rt_tracer *t, uintptr_t lo, uintptr_t hi,
			      const rt_value_format *f)
{
	for (; lo < hi; lo += sizeof(uintptr_t)) {
		uintptr_t w;
		uint64_t word = poison_read(lo);

		if (address_of(word, word, f, &w))
			tell_inside(t, w, lo);
	}
}

// ask_frames tells a row of a stack to a tracer that only asks, which is not
// part of a marker.
static void ask_frames(rt_tracer *t, const struct work_range *row)
{
	struct trace_asker *a = (struct trace_asker *)t;

	a->inside = true;
	if (row->words == WORK_INSIDE)
		tell_words(t, row->lo, row->hi);
	else
		tell_values(t, row->lo, row->hi, row->how);
	a->inside = false;
}

void trace_row(rt_tracer *t, const struct work_range *row)
{
	uintptr_t lo = row->lo, hi = row->hi;
	bool frames =
	    row->words == WORK_INSIDE || row->words == WORK_STACK_VALUES;

	if (frames && t->mode >= TRACE_CHECK) {
		ask_frames(t, row);
		return;
	}
	share(t, lo, &hi, *row);
	if (row->words == WORK_INSIDE)
		tell_frames(t, lo, hi);
	else if (row->words == WORK_STACK_VALUES)
		tell_frame_values(t, lo, hi, row->how);
	else if (row->words == WORK_VALUES)
		tell_values(t, lo, hi, row->how);
	else if (row->words == WORK_REFERENCES)
		tell_references(t, lo, hi);
	else
		tell_words(t, lo, hi);
}

// ---- one object ----

static inline void trace_by_type(rt_tracer *t, const rt_type *type,
				 uintptr_t obj, size_t size)
{
	struct hostcall before = hostcall_begin_owned(
	    "trace callback", type, (uintptr_t)type->trace, obj);

	type->trace(t, (void *)obj, size, type->arg);
	hostcall_end(&before);
}

static void tell_type(rt_tracer *t, const rt_type *type, uintptr_t obj,
		      size_t size)
{
	uintptr_t end = obj + base_align_down(base_min(type->size, size), 8);
	struct part fixed = {obj, end, base_min(obj + type->ptrdata, end),
			     type->bitmap};

	if (type->ptrdata != 0)
		tell_part(t, &fixed, type->format);
	if (type->tail_ptrdata != 0 && type->tail_size != 0 &&
	    size > type->size) {
		uintptr_t hi = obj + size;

		share(t, obj + type->size, &hi,
		      (struct work_range){.words = WORK_TAIL,
					  .stride = type->tail_size,
					  .how = type});
		tell_tail(t, obj + type->size, hi, type);
	}
	if (type->trace)
		trace_by_type(t, type, obj, size);
}

// tell_bits tells the words of a small object that its bits name.
RT_NO_SANITIZE
static void tell_bits(rt_tracer *t, uintptr_t lo, uintptr_t hi)
{
	while (lo < hi) {
		uintptr_t end = base_min(lo + TYPEBITS_BYTES, hi);
		uint64_t x = trace_row_bits(lo, end);

		for (; x; x &= x - 1) {
			uintptr_t at = lo + bits_ctz(x) * sizeof(uintptr_t);

			tell(t, poison_read(at), at);
		}
		lo = end;
	}
}

static void tell_typed(rt_tracer *t, uintptr_t obj, size_t size)
{
	const rt_type *type = typed_of(obj);

	if (type)
		tell_type(t, type, obj, size);
	else
		tell_bits(t, obj, obj + size);
}

void trace_references(rt_tracer *t, unsigned kind, uintptr_t obj, size_t size)
{
	const struct layout *l = &layouts[kind];
	const rt_type *type;

	switch (l->how) {
	case RT_LAYOUT_WORDS:
		trace_values(t, obj, obj + size, &l->format);
		break;
	case RT_LAYOUT_TRACE:
		trace_by_kind(t, kind, obj, size);
		break;
	case LAYOUT_BITS:
		tell_typed(t, obj, size);
		break;
	default:
		type = layout_type(l, obj, size);
		if (type)
			tell_type(t, type, obj, size);
	}
}

void trace_long_bits(struct marker *m, const struct grey *o)
{
	uintptr_t hi = o->base + o->size;

	for (uintptr_t lo = o->base; lo < hi; lo += TYPEBITS_BYTES) {
		uintptr_t end = base_min(lo + TYPEBITS_BYTES, hi);

		if (!work_room(&m->work, TYPEBITS_PER)) {
			scan_overflow(m, o->base);
			return;
		}
		if (RT_UNLIKELY(poison_memcheck)) {
			tell_bits(&m->work.t, lo, end);
			continue;
		}
		trace_push_bits(m, lo, trace_row_bits(lo, end));
	}
}

// trace_here traces an object with the calling thread.
static RT_NOINLINE void trace_here(struct marker *m, unsigned kind,
				   uintptr_t obj, uint64_t size)
{
	m->tracing = obj;
	trace_references(&m->work.t, kind, obj,
			 base_align_down(size, sizeof(uintptr_t)));
}

static void trace_first(struct marker *m, const struct grey *o)
{
	m->work.t.first = (layouts[o->kind].flags & RT_KIND_ONCE) != 0;
	trace_here(m, o->kind, o->base, o->size);
	m->work.t.first = 0;
}

// trace_flagged is trace_object for a kind with RT_KIND_SERIAL or RT_KIND_ONCE.
static RT_NOINLINE void trace_flagged(struct marker *m, unsigned kind,
				      uintptr_t obj, uint64_t size)
{
	struct grey o = {.base = obj, .size = size, .kind = kind};

	if (layouts[kind].flags & RT_KIND_SERIAL && !m->work.opener) {
		if (m->npassed == GREY_PASSED)
			trace_pass(m);
		m->passed[m->npassed++] = o;
	} else {
		trace_first(m, &o);
	}
}

// is_brief tells whether one word of a plain bitmap describes all references of
// an object of a type, and the object has all words of the bitmap.
RT_INLINE bool is_brief(const rt_type *type, uint64_t size)
{
	return type->ptrdata - 1 < 64 * sizeof(uintptr_t) &&
	       type->ptrdata <= size &&
	       (type->tail_ptrdata | (uintptr_t)type->format |
		(uintptr_t)type->trace) == 0;
}

// push_brief pushes the words that a word of bitmap describes.  There must be
// room for all.  It looks at each bit, so the address of a word does not wait
// for the bitmap: the processor predicts which words to take.
RT_NO_SANITIZE
static inline void push_brief(struct rt_tracer *t, uintptr_t obj, uint64_t bits)
{
	uintptr_t base = (uintptr_t)t->base;
	uint64_t used = t->used;
	uintptr_t *top = &t->top->word;
	uintptr_t w;

	for (; bits; bits >>= 4, obj += 4 * sizeof w) {
		if (bits & 1 && (w = poison_load(obj)) - base < used)
			*top++ = w;
		if (bits & 2 && (w = poison_load(obj + 8)) - base < used)
			*top++ = w;
		if (bits & 4 && (w = poison_load(obj + 16)) - base < used)
			*top++ = w;
		if (bits & 8 && (w = poison_load(obj + 24)) - base < used)
			*top++ = w;
	}
	t->top = (struct rt_trace_entry *)top;
}

// ---- types that were met before ----
//
// Looking a type up, and reading its bitmap, takes longer than pushing the
// references of most objects.  Objects of one kind and size often have one
// type.  So a marker keeps in its own record what it has to know of the last
// type.  It can read that before the object has arrived from memory.

static struct grey_met *met_of(struct marker *m, unsigned kind, uint64_t size)
{
	return &m->met[kind][size / RT_GRANULE % GREY_MET];
}

// met_again tells whether what is remembered holds for an object.
RT_NO_SANITIZE
static inline bool met_again(const struct grey_met *met, uintptr_t obj,
			     uint64_t size)
{
	return met->size == size &&
	       (poison_load(obj + met->offset) & met->mask) == met->header;
}

// push_met pushes the references of an object that was met again.  There must
// be room for all.
RT_NO_SANITIZE
static inline void push_met(struct rt_tracer *t, const struct grey_met *met,
			    uintptr_t obj)
{
	uintptr_t word = obj + met->lo, end = obj + met->hi;
	uintptr_t base = (uintptr_t)t->base;
	uint64_t used = t->used;
	uintptr_t *top = &t->top->word;

	for (uint64_t x = met->odd; x; x &= x - 1) {
		uintptr_t w = poison_load(obj + bits_ctz(x) * sizeof w);

		if ((uint64_t)(w - base) < used)
			*top++ = w;
	}
	for (; word != end; word += 2 * sizeof(uintptr_t)) {
		uintptr_t w = poison_load(word);

		if ((uint64_t)(w - base) < used)
			*top++ = w;
		w = poison_load(word + sizeof w);
		if ((uint64_t)(w - base) < used)
			*top++ = w;
	}
	t->top = (struct rt_trace_entry *)top;
}

// remember_header remembers the header word of an object.  Returns false if it
// does not lead to the type any more.
static bool remember_header(struct grey_met *met, const struct layout *l,
			    const rt_type *type, uintptr_t obj)
{
	uint64_t word;

	if (l->how == RT_LAYOUT_TYPE)
		return true;
	word = poison_read(obj + l->header_offset);
	met->offset = (uint32_t)l->header_offset;
	met->mask = l->header_mask;
	met->header = word & met->mask;
	return layout_type_in(l, word) == type;
}

// remember remembers the type of an object whose references are all described
// by bits.  Beginning with the first, an even number of adjacent references is
// pushed two at a time.
static void remember(struct marker *m, unsigned kind, const rt_type *type,
		     const struct grey *o, uint64_t bits)
{
	struct grey_met met = {.size = o->size, .odd = bits};

	if (!remember_header(&met, &layouts[kind], type, o->base))
		return;
	if (bits != 0) {
		unsigned first = bits_ctz(bits);
		uint64_t others = ~(bits >> first);
		unsigned row = others ? bits_ctz(others) & ~1u : 64;

		met.lo = first * (uint32_t)sizeof(uintptr_t);
		met.hi = met.lo + row * (uint32_t)sizeof(uintptr_t);
		for (; row != 0; row--)
			met.odd &= met.odd - 1;
	}
	*met_of(m, kind, o->size) = met;
}

// trace_type traces an object whose type is at hand.
static void trace_type(struct marker *m, unsigned kind, const rt_type *type,
		       uintptr_t obj, uint64_t size)
{
	struct rt_tracer *t = &m->work.t;

	if (type && is_brief(type, size) &&
	    (size_t)((char *)t->limit - (char *)t->top) >= type->ptrdata) {
		uint64_t past = 63 - (type->ptrdata - 1) / sizeof(uintptr_t);
		uint64_t bits = *type->bitmap & ~UINT64_C(0) >> past;

		push_brief(t, obj, bits);
		remember(m, kind, type,
			 &(struct grey){.base = obj, .size = size}, bits);
		return;
	}
	trace_here(m, kind, obj, size);
}

// trace_unmet traces an object with a type that is not remembered, or without
// one.
static RT_NOINLINE void trace_unmet(struct marker *m, unsigned kind,
				    uintptr_t obj, uint64_t size)
{
	const uint32_t calls = (uint32_t)RT_KIND_SERIAL | RT_KIND_ONCE;
	const struct layout *l = &layouts[kind];

	if (RT_UNLIKELY(l->flags & calls))
		trace_flagged(m, kind, obj, size);
	else if (RT_UNLIKELY(poison_memcheck) || l->how == RT_LAYOUT_TRACE)
		trace_here(m, kind, obj, size);
	else
		trace_type(m, kind, layout_type(l, obj, size), obj, size);
}

// Most objects have a type with a few references.
void trace_object(struct marker *m, unsigned kind, uintptr_t obj, uint64_t size)
{
	struct rt_tracer *t = &m->work.t;
	const struct grey_met *met = met_of(m, kind, size);

	if (met_again(met, obj, size) &&
	    (size_t)((char *)t->limit - (char *)t->top) >= size)
		push_met(t, met, obj);
	else
		trace_unmet(m, kind, obj, size);
}

void trace_found(struct marker *m, enum grey_result found, const struct grey *o)
{
	trace_grey(m, found, o);
}

void trace_pass(struct marker *m)
{
	if (m->npassed == 0)
		return;
	grey_publish_all(m);
	work_offer(&m->work);
	m->npassed = 0;
}

void trace_passed(struct marker *m)
{
	struct work *next;

	for (struct work *w = work_offers(&m->work); w; w = next) {
		const struct marker *from = marker_of(&w->t);

		next = w->waits;
		for (uint32_t i = 0; i < from->npassed; i++)
			trace_first(m, &from->passed[i]);
		work_taken(w);
	}
}

void trace_begin_again(struct marker *m, uintptr_t obj)
{
	m->tracing = obj;
	m->work.t.mode = TRACE_AGAIN;
	m->work.t.limit = m->work.t.top;
}

void trace_end_again(struct marker *m)
{
	m->work.t.mode = TRACE_MARK;
	m->work.t.limit = m->work.bottom + WORK_ENTRIES;
}

void trace_again(struct marker *m, unsigned kind, uintptr_t obj, size_t size)
{
	trace_begin_again(m, obj);
	trace_references(&m->work.t, kind, obj, size);
	trace_end_again(m);
}
