// region.c - enters and leaves a blocking region.
#include "gc/host/region.h"

#include "runtime/os/throw.h"
#include "runtime/spans/mcache.h"

void region_enter(const struct context_frame *frame)
{
	struct rt_proc *p = proc_self();

	RT_ASSERT(!p->in_region && !p->stopper && !proc_in_nogc(rt_thread_tls));
	mcache_disable_runs(rt_thread_tls->mc);
	rt_thread_tls->nogc = RT_NOGC_NONE;
	p->context.frame = *frame;
	p->in_region = true;
	proc_block(p);
}

void region_leave(void)
{
	struct rt_proc *p = proc_self();

	RT_ASSERT(p->in_region);
	proc_unblock(p);
	p->in_region = false;
	rt_thread_tls->nogc = 0;
	mcache_enable_runs(rt_thread_tls->mc);
}
