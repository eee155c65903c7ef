// attach.c - gives a thread a P and an mcache, and takes them from it.
#include "gc/host/attach.h"

#include <errno.h>

#include <rt/thread.h>

#include "runtime/os/oscall.h"
#include "runtime/os/schedpoint.h"
#include "runtime/os/throw.h"
#include "runtime/world/threadstack.h"
#include "runtime/spans/stackalloc.h"
#include "gc/mark/drops.h"
#include "gc/mark/handles.h"
#include "gc/mark/stacks.h"
#include "gc/mark/notices.h"
#include "gc/cycle/scavenger.h"
#include "gc/host/door.h"
#include "gc/host/handlers.h"
#include "gc/host/visit.h"
#include "gc/host/region.h"

// Written once in a process.  There is no check function: it does not change
// afterwards.
static struct {
	bool ready;
	unsigned key;
	struct rt_thread *unattached; // what rt_thread_tls is without a P
} exits;

// at_exit detaches a thread that exits attached; it may be in a region, in a
// no-GC stretch, or in its own stop, perhaps in the callback of a walk.  A
// thread that has detached comes here too if the system refused to clear its
// key.
static void at_exit(void *value)
{
	const struct rt_proc *p = proc_self();
	struct rt_stop_times times;

	(void)value;
	if (p && p->in_region)
		region_leave();
	// visit_end may run the host's warn handler, which may even detach the
	// thread.
	while (door_stopper())
		visit_end(&times);
	if (door_attached_now(false) == RT_OK)
		attach_undo();
}

bool attach_init(void)
{
	if (exits.ready)
		return true;
	exits.unattached = rt_thread_tls;
	exits.ready = oscall_tls_key(&exits.key, at_exit) == 0;
	return exits.ready;
}

// attach_block gives a P its mcache and makes the thread known.  Returns false
// if memory or thread-specific data is refused.
static bool attach_block(struct rt_proc *p)
{
	struct rt_mcache *mc = mcache_new(p);

	if (!mc)
		return false;
	if (oscall_tls_set(exits.key, mc) != 0) {
		mcache_delete(mc);
		return false;
	}
	rt_thread_tls = &mc->thread;
	door_attachments++;
	schedpoint(SCHED_ATTACH_BLOCK);
	proc_set_thread(p, &mc->thread);
	schedpoint(SCHED_ATTACH_BLOCK_KNOWN);
	mcache_enable_runs(mc);
	return true;
}

// find_stack asks the system for the stack that the calling thread runs on.
static int find_stack(struct context *stack)
{
	uintptr_t here = (uintptr_t)__builtin_frame_address(0);

	int error = threadstack_ask(stack);

	if (error)
		return error == ENOMEM ? RT_ENOMEM : error;
	return threadstack_holds(stack, here) ? RT_OK : RT_EINVAL;
}

// check_stack checks the stack that the host has named, or finds one if the
// host has named none.
static int check_stack(struct context *stack)
{
	uintptr_t here = (uintptr_t)__builtin_frame_address(0);

	if (stack->hi == 0)
		return find_stack(stack);
	return threadstack_readable(stack->lo, stack->hi, here) ? RT_OK
								: RT_EINVAL;
}

// make_guest notes that the calling thread has no stack of its own, if it runs
// on a registered stack.
static bool make_guest(struct context *c)
{
	uintptr_t lo, hi;

	if (!stacks_bounds((uintptr_t)__builtin_frame_address(0), &lo, &hi))
		return false;
	c->lo = c->hi = 0;
	c->grows = false;
	c->guest = true;
	return true;
}

int attach_thread(uintptr_t lo, uintptr_t hi, unsigned flags)
{
	struct context stack = {.lo = lo, .hi = hi};
	struct rt_proc *p;
	int error;

	if (proc_self())
		return RT_ESTATE;
	error = check_stack(&stack);
	// With this flag the stack is not scanned, so it may be any.
	if ((error > 0 || error == RT_EINVAL) && (flags & RT_THREAD_EXACT))
		error = RT_OK;
	if (error && hi != 0)
		return error;
	threadstack_find_fake(&stack);
	p = proc_attach(flags);
	if (!p)
		return proc_closed() ? RT_ESTATE : RT_ENOMEM;
	p->context = stack;
	p->in_region = p->stopper = false;
	// Only an attached thread may read the table of stacks.
	if (error && !make_guest(&p->context)) {
		proc_detach(p);
		return error;
	}
	if (!attach_block(p)) {
		proc_detach(p);
		return RT_ENOMEM;
	}
	// A stop that was requested before proc_set_thread could not set the
	// hint in the thread block.
	if (proc_wanted(p))
		proc_park(p);
	return RT_OK;
}

void attach_undo(void)
{
	struct rt_mcache *mc = rt_thread_tls->mc;
	struct rt_proc *p = mc->thread.p;

	RT_ASSERT(!p->in_region && !p->stopper);
	drops_abandon(p);
	notices_done(); // the warn handler may have ended the thread
	mcache_flush(mc, p);
	stackalloc_flush(mc, p);
	scavenger_freed();
	handles_flush(mc);
	stacks_detach(p);
	mheap_cache_flush(&mc->heap);
	oscall_tls_set(exits.key, NULL);
	rt_thread_tls = exits.unattached;
	schedpoint(SCHED_ATTACH_UNDO);
	proc_set_thread(p, NULL);
	mcache_delete(mc);
	proc_detach(p);
}

int attach_answer(int error)
{
	struct text t;

	if (error <= 0) {
		handlers_warn_pending();
		return error;
	}
	text_init(&t);
	text_str(&t, "rtheap: the bounds of this thread's stack are not known: "
		     "the system refused pthread_getattr_np with errno ");
	text_u64(&t, (uint64_t)error);
	text_str(&t, "; rt_thread_attach_stack can name them");
	handlers_warn(t.buf);
	return RT_ENOTSUP;
}
