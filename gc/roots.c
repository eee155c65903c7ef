#include "gc/roots.h"

#include <rt/roots.h>
#include <rt/thread.h>
#include <string.h>

#include "runtime/oscall.h"

// Bytes of a stack that are asked for at once.
enum { STACK_STEP = 1 << 20 };

static struct {
	struct rt_mutex lock;
	struct gcroots_range *range;
	size_t n;
	size_t room; // of the table, in ranges
} roots = {.lock = RT_MUTEX_INIT(LOCKRANK_ROOTS)};

static size_t table_bytes(size_t room)
{
	return room * sizeof(struct gcroots_range);
}

// table_grow doubles the table; lock held.
static bool table_grow(void)
{
	size_t room = roots.room == 0
			  ? sysmem_page_size() / sizeof(struct gcroots_range)
			  : 2 * roots.room;
	struct gcroots_range *table =
	    sysmem_alloc(table_bytes(room), &gauges.other_sys, "roots");

	if (!table)
		return false;
	if (roots.n != 0)
		memcpy(table, roots.range, table_bytes(roots.n));
	if (roots.range)
		sysmem_free(roots.range, table_bytes(roots.room),
			    &gauges.other_sys);
	roots.range = table;
	roots.room = room;
	return true;
}

bool gcroots_add(uintptr_t lo, uintptr_t hi, unsigned flags)
{
	bool ok;

	rt_lock(&roots.lock);
	ok = roots.n < roots.room || table_grow();
	if (ok)
		roots.range[roots.n++] = (struct gcroots_range){lo, hi, flags};
	rt_unlock(&roots.lock);
	return ok;
}

bool gcroots_remove(uintptr_t lo, uintptr_t hi)
{
	bool found = false;

	rt_lock(&roots.lock);
	// Newest first: ranges come and go like frames.
	for (size_t i = roots.n; i-- > 0 && !found;)
		if (roots.range[i].lo == lo && roots.range[i].hi == hi) {
			roots.range[i] = roots.range[--roots.n];
			found = true;
		}
	rt_unlock(&roots.lock);
	return found;
}

void gcroots_fini(void)
{
	if (roots.range)
		sysmem_free(roots.range, table_bytes(roots.room),
			    &gauges.other_sys);
	roots.range = NULL;
	roots.n = roots.room = 0;
}

size_t gcroots_ranges(void)
{
	return roots.n;
}

struct gcroots_range gcroots_range(size_t i)
{
	return roots.range[i];
}

// mapped_from is the lowest address from which all memory up to hi is mapped,
// at least lo.  The system lets the main thread's stack grow as it is used:
// nothing was ever written below what is mapped, and to read there makes it
// grow, or fails.
static uintptr_t mapped_from(uintptr_t lo, uintptr_t hi)
{
	size_t page = sysmem_page_size();
	uintptr_t from = base_align_down(hi - 1, page);
	uintptr_t limit = base_align_up(lo, page);
	size_t step = STACK_STEP;

	while (from > limit && step >= page) {
		size_t n = base_min(step, from - limit);

		if (oscall_unmapped((void *)(from - n), n))
			step /= 2;
		else
			from -= n;
	}
	return from > limit ? from : lo;
}

bool gcroots_stack(struct rt_proc *p, struct gcroots_range *stack,
		   struct gcroots_range *registers)
{
	const struct context *c = &p->context;

	if (proc_is_free(p) || c->hi == 0 || (p->flags & RT_THREAD_EXACT))
		return false;
	stack->lo = base_align_down(c->frame.sp, sizeof(uintptr_t));
	stack->hi = base_align_down(c->hi, sizeof(uintptr_t));
	stack->flags = RT_ROOT_WORDS;
	registers->lo = (uintptr_t)&c->frame.regs[0];
	registers->hi = (uintptr_t)&c->frame.regs[CONTEXT_REGS];
	registers->flags = RT_ROOT_WORDS;
	// A thread that runs on another stack than it attached with: all of
	// the attached one.
	if (c->frame.sp < c->lo || c->frame.sp > c->hi)
		stack->lo =
		    base_align_up(mapped_from(c->lo, c->hi), sizeof(uintptr_t));
	return true;
}
