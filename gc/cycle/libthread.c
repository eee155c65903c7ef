// libthread.c - begins and ends a thread of the library.
#include "gc/cycle/libthread.h"

#include "runtime/os/oscall.h"
#include "runtime/os/schedpoint.h"
#include "runtime/os/throw.h"
#include "runtime/os/settings.h"
#include "gc/mark/hostcall.h"

__thread bool libthread_self;

static void tell_host(void)
{
	struct hostcall before = hostcall_begin(
	    "thread callback", NULL, (uintptr_t)settings()->gc_thread_start);

	settings()->gc_thread_start(settings()->gc_thread_arg);
	hostcall_end(&before);
}

// set_up gives the thread what it keeps for as long as it lives.  It comes
// before the thread attaches, while no stop waits for it.
static void set_up(const struct libthread_work *work)
{
	libthread_self = true;
	oscall_thread_name(work->name);
	oscall_thread_processors();
	if (!settings()->gc_thread_start)
		return;
	// The host's function comes last, so that what it sets stays.
	if (work->ordinary)
		oscall_thread_ordinary();
	tell_host();
}

static void *libthread_main(void *arg)
{
	struct libthread *t = arg;
	struct rt_proc *p;

	schedpoint(SCHED_LIBTHREAD_MAIN);
	set_up(t->work);
	p = proc_attach(PROC_HELPER);
	t->attached = p != NULL;
	if (!p) {
		note_wake(&t->begun);
		return NULL;
	}
	// This thread has no stack to scan.  Its P may still describe the
	// thread that had it before, so reset that.
	p->context = (struct context){.hi = 0};
	p->in_region = p->stopper = false;
	schedpoint(SCHED_LIBTHREAD_MAIN_RUNS);
	proc_block(p);
	if (t->work->begin)
		t->work->begin();
	note_wake(&t->begun);
	// The thread that made this one no longer waits for it.  It may have a
	// priority that lets no ordinary thread run.
	if (t->work->ordinary && !settings()->gc_thread_start)
		oscall_thread_ordinary();
	t->work->serve(t, p);
	proc_unblock(p);
	proc_detach(p);
	return NULL;
}

// check_waits checks, in debug builds, that the caller may wait for another
// thread of the library: no stop waits for it meanwhile.
static void check_waits(void)
{
	RT_ASSERT(!proc_self() || !proc_is_running(proc_self()));
	lockrank_none();
}

bool libthread_start(struct libthread *t, const struct libthread_work *work)
{
	check_waits();
	t->work = work;
	note_clear(&t->begun);
	if (oscall_thread_start(&t->thread, libthread_main, t) != 0)
		return false;
	note_sleep(&t->begun, UINT64_MAX);
	if (!t->attached)
		oscall_thread_join(t->thread);
	return t->attached;
}

void libthread_poll(struct rt_proc *p)
{
	RT_ASSERT(proc_is_running(p));
	if (!proc_wanted(p))
		return;
	proc_block(p);
	proc_unblock(p);
}

void libthread_join(const struct libthread *t)
{
	check_waits();
	oscall_thread_join(t->thread);
}

const char *libthread_check(const struct libthread *t)
{
	if (t->attached && !t->work)
		return "thread of the library was attached without work";
	return note_check(&t->begun);
}
