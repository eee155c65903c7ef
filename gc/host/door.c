// door.c - the answers for functions of attached threads.
#include "gc/host/door.h"

struct door door;

__thread uint64_t door_attachments;

int door_refusal(const struct rt_thread *t)
{
	return door_ready() && !t->p ? RT_EPERM : RT_ESTATE;
}

int door_attached_now(bool stopper)
{
	const struct rt_thread *t = rt_thread_tls;

	if (t->nogc == RT_NOGC_NONE)
		return door_refusal(t);
	return t->p->stopper && !stopper ? RT_EBUSY : RT_OK;
}

int door_blocking_now(bool stopper)
{
	if (door_nogc())
		return RT_ESTATE;
	return door_collecting() ? RT_EBUSY : door_attached_now(stopper);
}

int door_removal_begin(bool *acquired)
{
	const struct rt_proc *p = proc_self();

	*acquired = door_ready() && (!p || p->in_region) && !door_in_callback();
	if (!*acquired)
		return door_in_callback() ? RT_EBUSY : door_attached_now(false);
	stw_acquire(NULL);
	if (door_ready())
		return RT_OK;
	stw_release();
	return RT_ESTATE;
}

void door_removal_end(bool acquired)
{
	if (acquired)
		stw_release();
}
