// trace.h - the references of one object, by its layout.
//
// Go: scanobject, heapBits, typePointers (mgcmark.go, mbitmap.go).
//
// A tracer is told references: by the loops here, which follow bitmaps and
// formats, and by the host's callbacks.  Marking and all checks use the same
// loops and callbacks.  The tracer's mode says what it does with a reference.
//
// In a marking the tracer is the first part of the marker's struct work, so a
// reference is pushed where scanning pushes words.  Nothing is drained in the
// middle of an object, so callbacks never nest.  If there is no room, the
// object that the reference leads to is marked at once, and noted if it must be
// scanned.  When all else is marked, the objects of its page are traced again,
// and only what is not marked yet is pushed.
//
// An object with RT_KIND_ONCE is never marked without being traced, because
// rt_trace_first must be 1 in the first call of its trace callback.  If there
// is no room for a reference to one, the object that refers to it is noted
// instead, and traced again with an empty stack.  If a root callback tells the
// reference, all root callbacks are called again.  The object or the callbacks
// are noted once more only if the stack was filled with references to objects
// that were unmarked when the round began.  So every round marks something or
// is the last.
//
// Objects with RT_KIND_SERIAL are traced by the marker that opened the marking.
// Another marker that marks one keeps it in a list.  When the list is full, and
// before the marker waits for work, it offers the list to the opener and sleeps
// until the opener has traced all objects of the list.
#ifndef GC_MARK_TRACE_H
#define GC_MARK_TRACE_H

#include "runtime/os/poison.h"
#include "runtime/spans/typebits.h"
#include "runtime/spans/object.h"
#include "gc/mark/layout.h"
#include "gc/mark/hostcall.h"
#include "gc/mark/scan.h"
#include "gc/mark/targets.h"

enum trace_mode {
	TRACE_MARK,  // push every reference
	TRACE_AGAIN, // push those that lead to an unmarked object
	TRACE_CHECK, // check that the object it refers to is marked
	TRACE_TOLD,  // look its object up in a table of targets
};

enum { TRACE_NAME = 48 }; // bytes of a reference's name, with its end

// What rt_trace_name says of the reference that is told next.
struct trace_label {
	bool given;
	bool has_name;
	size_t index;
	char name[TRACE_NAME];
};

// A tracer that only asks.
struct trace_asker {
	struct rt_tracer t;
	struct trace_label label;
	bool inside; // what is told is from a stack
};

// A tracer for TRACE_CHECK, and what it has found: the first reference of an
// object that leads to an unmarked one.
struct trace_check {
	struct trace_asker asker;
	struct object missed; // base 0: none
	uintptr_t word;	      // the reference
	uintptr_t at;	      // where it is; 0: a callback told it
};

// A tracer for TRACE_TOLD.  It notes which targets were told, and keeps the
// label of the last one before an offset.  It also keeps the first pointer of a
// callback that is ignored because it points into an object with RT_KIND_BASE,
// but not to the first bytes of it.
struct trace_told {
	struct trace_asker asker;
	struct targets *targets;
	uintptr_t obj; // that is asked
	uint64_t before;
	uint64_t near_at;	 // offset of that target
	struct trace_label near; // given: there is one
	uintptr_t ignored;	 // 0: none
	struct trace_label ignored_label;
};

// trace_check_init and trace_told_init make a tracer.
void trace_check_init(struct trace_check *c);
void trace_told_init(struct trace_told *told, struct targets *targets,
		     uintptr_t obj);

// trace_enter makes t the tracer of the calling thread's callbacks, until
// trace_leave.
void trace_enter(rt_tracer *t);
void trace_leave(void);

// trace_is_marked tells whether an object is marked.  trace_misses tells
// whether a word refers to an object that is not marked, and finds the object.
// inside says that the word is from a stack, where any pointer into an object
// refers to it.  The world must be stopped.
bool trace_is_marked(const struct object *o);
bool trace_misses(uintptr_t word, bool inside, struct object *o);

// trace_references tells t the references of an object whose kind is traced.
// size bytes of the object may be read.
void trace_references(rt_tracer *t, unsigned kind, uintptr_t obj, size_t size);

// trace_object pushes the references of an object that was just marked, or has
// the opener do it.
void trace_object(struct marker *m, unsigned kind, uintptr_t obj,
		  uint64_t size);

// trace_by_kind calls the trace callback of a kind.
RT_INLINE void trace_by_kind(rt_tracer *t, unsigned kind, uintptr_t obj,
			     size_t size)
{
	const struct layout *l = &layouts[kind];
	struct hostcall before = hostcall_begin_owned("trace callback", NULL,
						      (uintptr_t)l->trace, obj);

	l->trace(t, (void *)obj, size, l->arg);
	hostcall_end(&before);
}

// trace_call calls the trace callback for an object of a kind that has a
// callback.  The kind must have no flags, except RT_KIND_DROP and
// RT_KIND_DROP_DEEP while no object may be loose (drops.h).  size must be a
// multiple of 8.
RT_INLINE void trace_call(struct marker *m, unsigned kind, uintptr_t obj,
			  uint64_t size)
{
	m->tracing = obj;
	trace_by_kind(&m->work.t, kind, obj, size);
}

// trace_row_bits returns the bits of the words of [lo, hi), at most 64.
RT_INLINE uint64_t trace_row_bits(uintptr_t lo, uintptr_t hi)
{
	size_t n = (hi - lo) / sizeof(uintptr_t);

	return typebits_low(typebits_get(lo, n), n);
}

// trace_push_bits pushes the words of a row that bits name and that lie in the
// heap's range.  There must be room.
RT_NO_SANITIZE
static inline void trace_push_bits(struct marker *m, uintptr_t lo,
				   uint64_t bits)
{
	uintptr_t base = m->base;
	uint64_t used = m->used;
	struct rt_trace_entry *top = m->work.t.top;

	for (; bits; bits &= bits - 1) {
		uintptr_t w =
		    poison_load(lo + bits_ctz(bits) * sizeof(uintptr_t));

		if (w - base < used)
			(top++)->word = w;
	}
	m->work.t.top = top;
}

// trace_long_bits does what trace_bits does, for a typed object of any size.
// If its words do not fit on the stack, it notes the overflow.
void trace_long_bits(struct marker *m, const struct grey *o);

// trace_bits pushes the words that the bits of a small typed object name.  The
// object was just marked.
RT_INLINE void trace_bits(struct marker *m, const struct grey *o)
{
	const struct work *w = &m->work;

	if (RT_UNLIKELY(o->size > TYPEBITS_BYTES ||
			w->t.limit - w->t.top < TYPEBITS_PER ||
			poison_memcheck))
		trace_long_bits(m, o);
	else
		trace_push_bits(m, o->base,
				trace_row_bits(o->base, o->base + o->size));
}

// trace_grey scans the object that was just marked, or traces it, as found
// says.
RT_INLINE void trace_grey(struct marker *m, enum grey_result found,
			  const struct grey *o)
{
	if (RT_LIKELY(found == GREY_SMALL))
		scan_small(m, o);
	else if (found == GREY_WIDE)
		scan_wide(m, o->base, o->size);
	else if (found == GREY_TRACED)
		trace_object(m, o->kind, o->base, o->size);
	else if (found == GREY_CALLED)
		trace_call(m, o->kind, o->base, o->size);
	else if (found == GREY_BITS)
		trace_long_bits(m, o);
}

// trace_found is trace_grey, but not inline.
void trace_found(struct marker *m, enum grey_result found,
		 const struct grey *o);

// trace_begin_again makes m's tracer push only those references that may lead
// to an unmarked object, until trace_end_again.  obj is the object that has
// them, or 0 for roots.
void trace_begin_again(struct marker *m, uintptr_t obj);
void trace_end_again(struct marker *m);

// trace_again makes these two calls, and pushes such references of an object in
// between.
void trace_again(struct marker *m, unsigned kind, uintptr_t obj, size_t size);

// trace_pass has the opener trace what m has kept for it, and sleeps until that
// is done.
void trace_pass(struct marker *m);

// trace_passed traces what other markers have kept for the opener.
void trace_passed(struct marker *m);

// trace_slow, trace_name, trace_self, trace_words and trace_values are the
// public functions.
void trace_slow(rt_tracer *t, uintptr_t word);
void trace_name(rt_tracer *t, const char *name, size_t index);
rt_tracer *trace_self(void);
void trace_words(rt_tracer *t, uintptr_t lo, uintptr_t hi);
void trace_values(rt_tracer *t, uintptr_t lo, uintptr_t hi,
		  const rt_value_format *f);

// trace_row tells the words or values of a row.  row->words says how they
// count; it must not be WORK_ENDS, WORK_COPIED or WORK_TAIL.  trace_frames
// returns how words of a stack that may hold anything count: WORK_INSIDE or
// WORK_ANY.  trace_count_stack adds to the bytes of stacks that were scanned.
void trace_row(rt_tracer *t, const struct work_range *row);
enum work_words trace_frames(rt_tracer *t);
void trace_count_stack(rt_tracer *t, uint64_t bytes);

// trace_piece pushes the references of a piece of a range of values, or of the
// elements of a type's tail.  Returns the end of the piece or, if the system
// refused room on the stack, the address where it stopped.
uintptr_t trace_piece(struct marker *m, const struct work_range *range);

#endif
