// Pops words and ranges, marks what they refer to, and gives work to others.
#include "gc/mark/drain.h"

#include "runtime/os/nanotime.h"
#include "runtime/os/settings.h"
#include "runtime/spans/typebits.h"
#include "gc/mark/gain.h"
#include "gc/mark/crew.h"
#include "gc/mark/trace.h"
#include "gc/mark/statics.h"
#include "gc/mark/pastend.h"

enum {
	// Entries between two looks at what other markers need.
	LOOK_EVERY = 64,
	// Entries that the opener takes before it calls helpers.  They take
	// some hundred microseconds, so a small heap wakes no thread.
	// With gcstress, even a small heap must meet helpers.
	CALL_AFTER = 8192,
};

struct drain drain;

static void take_word(struct marker *m, uintptr_t w)
{
	struct grey o;

	trace_grey(m, grey_word(m, w, &o), &o);
}

// take_typed is take_word where typed objects may exist.
static RT_NOINLINE void take_typed(struct marker *m, uintptr_t w)
{
	struct grey o;
	enum grey_result found = grey_word(m, w, &o);

	if (found == GREY_BITS)
		trace_bits(m, &o);
	else
		trace_found(m, found, &o);
}

// take marks what a word leads to, and pushes what that refers to.
RT_INLINE void take(struct marker *m, uintptr_t w, bool typed)
{
	if (typed)
		take_typed(m, w);
	else
		take_word(m, w);
}

// pop pops a word that enters the queue.
RT_INLINE uintptr_t pop(struct marker *m, bool typed)
{
	uintptr_t w = work_pop(&m->work);

	grey_prefetch(m, w);
	if (typed)
		typebits_prefetch(w);
	return w;
}

void drain_begin(void)
{
	drain.worth = drain.measured = drain.called = false;
	drain.call_after = settings()->gcstress ? 0 : CALL_AFTER;
}

// If there are helpers, call_helpers begins to measure, and calls them if they
// pay.  Only the opener calls it, once in a marking.
static void call_helpers(struct marker *m)
{
	drain.worth = true;
	if (crew_size() == 0)
		return;
	drain.measured = true;
	drain.called = gain_call(&gain);
	drain.since = nanotime();
	drain.before = m->taken;
	m->cpu_before = drain_cpu(m);
	if (drain.called)
		crew_call(CREW_MARK);
}

// serve traces what other markers have offered, if m is the opener.  Then it
// shares work with a marker that waits.  Returns false if work_share would
// change nothing.
static bool serve(struct marker *m)
{
	if (m == &drain.first && work_offered())
		trace_passed(m);
	if (!work_wanted(&m->work))
		return false;
	work_share(&m->work);
	return true;
}

// look_around shares work with a marker that waits.  The opener calls helpers
// once it has worked for a while and has work to share.
static void look_around(struct marker *m)
{
	if (work_waiting() != 0 && serve(m))
		return;
	if (m == &drain.first && !drain.worth && m->taken >= drain.call_after &&
	    work_plenty(&m->work))
		call_helpers(m);
}

// drain_with works until the marker's own stack is empty.  LOOK_EVERY counts
// over many drains, since each may be short.  typed says whether typed objects
// may exist.
RT_INLINE void drain_with(struct marker *m, bool typed)
{
	uintptr_t queue[DRAIN_QUEUE];
	uint64_t head = m->taken; // number of the oldest word
	unsigned n = 0;

	for (;;) {
		uintptr_t *oldest = &queue[head % DRAIN_QUEUE];
		uintptr_t entry;

		if (RT_LIKELY(work_any(&m->work))) {
			uintptr_t w = pop(m, typed);

			if (n < DRAIN_QUEUE) {
				queue[(head + n++) % DRAIN_QUEUE] = w;
				continue;
			}
			entry = *oldest;
			*oldest = w;
		} else if (n != 0) {
			n--;
			entry = *oldest;
		} else if (work_more(&m->work)) {
			continue;
		} else {
			break;
		}
		head++;
		take(m, entry, typed);
		if (RT_UNLIKELY(head % LOOK_EVERY == 0)) {
			m->taken = head;
			look_around(m);
		}
	}
	m->taken = head;
}

// drain_stack has two loops, so that one without typed objects pays nothing for
// them.
void drain_stack(struct marker *m)
{
	if (RT_UNLIKELY(m->typed))
		drain_with(m, true);
	else
		drain_with(m, false);
}

// push_all pushes the words of [lo, hi), draining whenever they do not fit.
static void push_all(struct marker *m, uintptr_t lo, uintptr_t hi)
{
	while ((lo = scan_words(m, lo, hi)) != hi)
		drain_stack(m);
}

// push_references pushes those words of [lo, hi) that are references, draining
// whenever they do not fit.
static void push_references(struct marker *m, uintptr_t lo, uintptr_t hi)
{
	while ((lo = scan_references(m, lo, hi)) != hi)
		drain_stack(m);
}

// push_from_stack pushes the words of [lo, hi).  For kinds with RT_KIND_BASE,
// it pushes the base of an object in place of a pointer into the object.
static void push_from_stack(struct marker *m, uintptr_t lo, uintptr_t hi)
{
	while ((lo = scan_from_stack(m, lo, hi)) != hi)
		drain_stack(m);
}

// push_copied pushes the words of [lo, hi) from a copy, because the memory may
// be unmapped at any time.
static void push_copied(struct marker *m, uintptr_t lo, uintptr_t hi)
{
	const uintptr_t copy = (uintptr_t)m->copy;

	while (lo < hi) {
		size_t n = statics_copy(m->tid, m->copy, RT_ARRAY_LEN(m->copy),
					&lo, hi);

		push_all(m, copy, copy + n * sizeof(uintptr_t));
	}
}

void drain_piece(struct marker *m, struct work_range range)
{
	switch (range.words) {
	case WORK_ANY:
		push_all(m, range.lo, range.hi);
		break;
	case WORK_REFERENCES:
		push_references(m, range.lo, range.hi);
		break;
	case WORK_INSIDE:
		push_from_stack(m, range.lo, range.hi);
		break;
	case WORK_ENDS:
		pastend_scan(m, range.lo, range.hi);
		break;
	case WORK_COPIED:
		push_copied(m, range.lo, range.hi);
		break;
	case WORK_VALUES:
	case WORK_STACK_VALUES:
	case WORK_TAIL:
		while ((range.lo = trace_piece(m, &range)) != range.hi)
			drain_stack(m);
		break;
	}
}

void drain_range(struct marker *m, struct work_range range)
{
	struct work_range rest = range;

	rest.lo += work_piece(range.stride);
	if (range.hi - range.lo > work_piece(range.stride) &&
	    work_add_range(&m->work, rest))
		range.hi = rest.lo;
	drain_piece(m, range);
	drain_stack(m);
}
