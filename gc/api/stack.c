// Stacks of the host, and the bounds of stacks of threads.
#include <rt/stack.h>

#include <string.h>

#include "runtime/os/settings.h"
#include "gc/mark/stacks.h"
#include "gc/host/door.h"
#include "gc/host/handlers.h"

enum {
	STACK_FLAGS =
	    RT_STACK_UP | RT_STACK_EXACT | RT_STACK_THREAD | RT_STACK_OWNED,
};

void rt_stack_desc_init_sized(rt_stack_desc *d, size_t size)
{
	if (!d)
		return;
	memset(d, 0, size);
	if (size >= sizeof d->struct_size)
		d->struct_size = size;
}

static bool bounds_ok(const rt_stack_desc *d)
{
	if (d->flags & RT_STACK_THREAD)
		return d->flags == RT_STACK_THREAD && !d->lo && !d->hi;
	return d->lo && d->lo < d->hi;
}

static bool desc_ok(const rt_stack_desc *d)
{
	if (!d || !settings_known(d, d->struct_size, sizeof *d, sizeof *d))
		return false;
	if ((d->flags & ~(uint32_t)STACK_FLAGS) || d->spare != 0 ||
	    !bounds_ok(d))
		return false;
	if (!d->regs_lo != !d->regs_hi || d->regs_lo > d->regs_hi)
		return false;
	return !d->format ||
	       (!(d->flags & RT_STACK_EXACT) && layout_format_ok(d->format));
}

int rt_stack_register(const rt_stack_desc *d, rt_stack **out)
{
	int error = door_attached(false);

	if (error)
		return error;
	if (!out || !desc_ok(d))
		return RT_EINVAL;
	error = stacks_add(d, proc_self(), out);
	handlers_warn_pending();
	return error;
}

int rt_stack_unregister(rt_stack *s)
{
	int error = door_attached(false);

	if (error)
		return error;
	if (!s)
		return RT_EINVAL;
	return stacks_remove(s, (uintptr_t)__builtin_frame_address(0));
}

int rt_stack_move(rt_stack *s, void *lo, void *hi)
{
	int error = door_attached(false);

	if (error)
		return error;
	if (!s || !lo || lo >= hi)
		return RT_EINVAL;
	return stacks_move(s, (uintptr_t)lo, (uintptr_t)hi,
			   (uintptr_t)__builtin_frame_address(0));
}

void rt_trace_stack(rt_tracer *t, rt_stack *s)
{
	if (s)
		stacks_trace(t, s);
}

// ---- stacks of threads ----

int rt_thread_set_stack(void *lo, void *hi)
{
	int error = door_attached(false);

	if (error)
		return error;
	if (!lo || lo >= hi)
		return RT_EINVAL;
	return stacks_set(&proc_self()->context, (uintptr_t)lo, (uintptr_t)hi);
}

int rt_thread_set_stack_of(rt_thread *t, void *lo, void *hi)
{
	if (!door_ready())
		return RT_ESTATE;
	if (!door_stopper() || !rootfns_calling())
		return door_answer(RT_EPERM);
	if (!t || !lo || lo >= hi)
		return RT_EINVAL;
	return stacks_set(&t->p->context, (uintptr_t)lo, (uintptr_t)hi);
}

// pointer_of returns a stack pointer of a thread that is the caller or stopped.
static uintptr_t pointer_of(const rt_thread *t)
{
	return t == rt_thread_tls ? (uintptr_t)__builtin_frame_address(0)
				  : t->p->context.frame.sp;
}

int rt_thread_stack(rt_thread *t, void **lo, void **hi)
{
	int error = door_attached(true);
	uintptr_t from, to;

	if (error)
		return error;
	if (!t || !lo || !hi)
		return RT_EINVAL;
	if (t != rt_thread_tls && !door_stopper())
		return RT_EPERM;
	from = t->p->context.lo;
	to = t->p->context.hi;
	if (to == 0 && !stacks_bounds(pointer_of(t), &from, &to))
		return RT_ENOENT;
	*lo = (void *)from;
	*hi = (void *)to;
	return RT_OK;
}
