#include "gc/door.h"

#include "runtime/throw.h"

struct door door;

static struct {
	struct rt_mutex lock;
	struct door_oom oom;
	rt_text_fn *warn;
	void *warn_arg;
} handlers = {.lock = RT_MUTEX_INIT(LOCKRANK_HANDLERS)};

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

struct door_oom door_oom(void)
{
	struct door_oom oom;

	rt_lock(&handlers.lock);
	oom = handlers.oom;
	rt_unlock(&handlers.lock);
	return oom;
}

void door_warn(const char *text)
{
	rt_text_fn *fn;
	void *arg;

	rt_lock(&handlers.lock);
	fn = handlers.warn;
	arg = handlers.warn_arg;
	rt_unlock(&handlers.lock);
	if (fn)
		fn(text, arg);
}

void door_hold(void)
{
	rt_lock(&handlers.lock);
}

void door_let_go(void)
{
	rt_unlock(&handlers.lock);
}

int rt_set_oom_handler(rt_oom_fn *fn, void *arg)
{
	if (door_stopper())
		return RT_EBUSY;
	rt_lock(&handlers.lock);
	handlers.oom = (struct door_oom){fn, arg};
	rt_unlock(&handlers.lock);
	return RT_OK;
}

int rt_set_warn_handler(rt_text_fn *fn, void *arg)
{
	if (door_stopper())
		return RT_EBUSY;
	rt_lock(&handlers.lock);
	handlers.warn = fn;
	handlers.warn_arg = arg;
	rt_unlock(&handlers.lock);
	return RT_OK;
}

int rt_set_fatal_handler(rt_text_fn *fn, void *arg)
{
	if (door_stopper())
		return RT_EBUSY;
	throw_set_handler(fn, arg);
	return RT_OK;
}
