#include "gc/worker.h"

#include "gc/mark.h"
#include "gc/sweep.h"
#include "runtime/oscall.h"
#include "runtime/persistent.h"

struct worker {
	struct gcmarker marker; // first: cache lines of its own
	struct worker *next;
	uint64_t thread;
	bool runs;
};

static struct {
	struct rt_mutex lock; // of what follows
	struct worker *all;
	uint32_t running;
	uint32_t most;
	bool fork_safe; // the child of a fork forgets the helpers
} workers = {.lock = RT_MUTEX_INIT(LOCKRANK_WORKERS)};

// ---- a helper ----

// serve answers calls until it is told to end.
static void serve(struct worker *w, struct rt_proc *p)
{
	uint32_t seen = 0;
	enum crew_task task;

	while ((task = crew_wait(&seen)) != CREW_QUIT) {
		if (task == CREW_MARK)
			gcmark_help(&w->marker, p);
		else if (task == CREW_SWEEP)
			gcsweep_help(p);
	}
}

static void *worker_main(void *arg)
{
	struct rt_proc *p = proc_attach(PROC_HELPER);

	oscall_thread_name("rtheap helper");
	if (!p)
		return NULL;
	p->context.hi = 0; // no stack to look at
	p->in_region = p->stopper = false;
	proc_block(p);
	crew_enter();
	serve(arg, p);
	crew_leave();
	proc_unblock(p);
	proc_detach(p);
	return NULL;
}

// ---- all helpers ----

// idle_record finds or makes a record without a thread; NULL: no memory.
static struct worker *idle_record(void)
{
	struct worker *w = workers.all;

	while (w && w->runs)
		w = w->next;
	if (w)
		return w;
	w = persistent_alloc(sizeof *w, RT_CACHE_LINE, &gauges.gc_misc_sys);
	if (w) {
		w->next = workers.all;
		workers.all = w;
	}
	return w;
}

static bool start_one(void)
{
	struct worker *w = idle_record();

	if (!w || oscall_thread_start(&w->thread, worker_main, w) != 0)
		return false;
	w->runs = true;
	workers.running++;
	return true;
}

// forget is for the child of a fork: the helpers are its parent's.
static void forget(void)
{
	workers.lock = (struct rt_mutex)RT_MUTEX_INIT(LOCKRANK_WORKERS);
	workers.all = NULL;
	workers.running = 0;
	crew_reset();
}

void worker_provide(bool wanted)
{
	if (!wanted)
		return;
	rt_lock(&workers.lock);
	if (!workers.fork_safe)
		workers.fork_safe = oscall_at_fork(forget) == 0;
	if (workers.fork_safe)
		while (workers.running < workers.most && start_one())
			;
	rt_unlock(&workers.lock);
}

void worker_init(uint32_t most)
{
	workers.most = most;
}

void worker_fini(void)
{
	crew_call(CREW_QUIT);
	for (struct worker *w = workers.all; w; w = w->next)
		if (w->runs)
			oscall_thread_join(w->thread);
	workers.all = NULL;
	workers.running = 0;
	crew_reset();
}
