// A process that forks.
#include <rt/fork.h>

#include "gc/host/door.h"
#include "gc/host/atfork.h"

int rt_fork_prepare(void)
{
	return door_answer(atfork_prepare());
}

int rt_fork_parent(void)
{
	return atfork_resume(false);
}

int rt_fork_child(void)
{
	return atfork_resume(true);
}
