// missed.h - what checkmark says of an object that marking has missed.
#ifndef TEST_HARNESS_MISSED_H
#define TEST_HARNESS_MISSED_H

#include <stdio.h>

#include "gc/mark/checkmark.h"
#include "runtime/spans/mspan.h"
#include "test/harness/death.h"
#include "test/harness/heap.h"

// ---- in the child ----

// missed_look runs checkmark, in the caller's stop or in one for it.  Outside
// of a collection nothing is marked, so checkmark reports an object that a root
// leads to.
static inline void missed_look(void)
{
	if (!rt_world_stopped())
		must(rt_stop_the_world(RT_STOP_HOST));
	checkmark_all();
	fputs("passed\n", stderr);
}

// missed_inside sets an object's mark bit before marking.  So the marker takes
// the object for done and does not look inside, as if it had a bug.
static inline void missed_inside(const void *obj)
{
	uintptr_t at = (uintptr_t)obj;
	struct mspan *s = arena_span(arena_offset(at) >> RT_PAGE_SHIFT);
	unsigned bit = mspan_bit(s, mspan_slot(s, at - s->base));
	unsigned line = epoch_mark_line(epoch_sweepgen());

	atomic_u64_or_relaxed(mspan_lineword(s, line, bit / 64),
			      UINT64_C(1) << (bit % 64));
}

// missed_say prints for missed_from which object will be missed, and which
// object has the pointer to it.
static inline void missed_say(uintptr_t child, uintptr_t from)
{
	fprintf(stderr, "missed %#lx from %#lx\n", (unsigned long)child,
		(unsigned long)from);
}

// ---- in the test ----

// missed_at runs fn in a child.  A report that contains text must end it.
static inline void missed_at(void (*fn)(void), const char *text)
{
	int status = death_status(fn);

	ck_assert_msg(death_aborted(status), "%s", death_output);
	ck_assert_msg(strstr(death_output, text), "%s\n%s", death_output, text);
	ck_assert_ptr_null(strstr(death_output, "passed"));
}

// missed_from runs fn, which must call missed_say.  The report must contain, in
// this order: the missed object, what, the object with the pointer to it, and
// place.
static inline void missed_from(void (*fn)(void), const char *what,
			       const char *place)
{
	unsigned long child = 0, from = 0;
	char report[400];

	missed_at(fn, "rtheap: fatal: checkmark: found unmarked object");
	ck_assert_msg(
	    sscanf(death_output, "missed %lx from %lx", &child, &from) == 2,
	    "%s", death_output);
	snprintf(report, sizeof report,
		 "rtheap: object=%#lx %s at %#lx%s\n"
		 "rtheap: fatal: checkmark: found unmarked object",
		 child, what, from, place);
	ck_assert_msg(strstr(death_output, report), "%s\n%s", death_output,
		      report);
}

#endif
