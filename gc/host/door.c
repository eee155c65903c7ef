// door.c - the answer for functions of attached threads.
#include "gc/host/door.h"

struct door door;

int door_attached(bool stopper)
{
	const struct rt_proc *p = proc_self();

	if (!door_ready())
		return RT_ESTATE;
	if (!p)
		return RT_EPERM;
	if (p->in_region)
		return RT_ESTATE;
	return p->stopper && !stopper ? RT_EBUSY : RT_OK;
}
