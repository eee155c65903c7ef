// scavenger.c - makes, wakes and ends the scavenger.
#include "gc/cycle/scavenger.h"

#include "runtime/os/schedpoint.h"
#include "runtime/os/nanotime.h"
#include "runtime/os/settings.h"
#include "gc/cycle/swept.h"
#include "gc/cycle/worker.h"
#include "gc/cycle/scavturn.h"

struct scavenger scavenger;

// ---- the thread ----

static bool must_end(void)
{
	// Pairs with the store in scavenger_fini.
	return atomic_u32_load_acquire(&scavenger.quit) != 0;
}

// pause_for sleeps between two batches.
static void pause_for(struct scavturn *turn, uint64_t ns)
{
	uint64_t start = nanotime();

	note_clear(&scavenger.pause);
	if (!must_end())
		note_sleep(&scavenger.pause, ns);
	scavturn_slept(turn, start, nanotime());
}

// finish_sweep sweeps what is left.  The thread may be stopped between two
// chunks.
static void finish_sweep(struct rt_proc *p)
{
	while (!swept_over() && !must_end()) {
		bool swept_one = swept_slice_down(p);

		proc_block(p);
		schedpoint(SCHED_FINISH_SWEEP);
		if (!swept_one)
			swept_await(); // another thread is in the last chunk
		proc_unblock(p);
	}
	if (swept_take_advice())
		worker_provide(p, false);
}

static struct scavturn_next release(struct scavturn *turn, struct rt_proc *p)
{
	static const struct scavturn_next rest = {.sleep = SCAVTURN_CALL,
						  .ns = UINT64_MAX};
	struct scavturn_next next;

	if (settings.scavenge == 0)
		return rest;
	// What is freed from now on, the turn may not see.
	mheap_await_freed(SCAVGOAL_LEAST);
	next = scavturn_run(turn, p, nanotime());
	if (next.sleep != SCAVTURN_CALL)
		mheap_await_freed(0);
	return next;
}

// take_turn runs, and is blocked again when it returns.
static struct scavturn_next take_turn(struct scavturn *turn, struct rt_proc *p)
{
	struct scavturn_next next;

	proc_unblock(p);
	finish_sweep(p);
	next = release(turn, p);
	atomic_u32_store_relaxed(&scavenger.timed,
				 next.sleep == SCAVTURN_TIMER);
	schedpoint(SCHED_SCAVENGER_TAKE_TURN);
	proc_block(p);
	return next;
}

static void serve(struct rt_proc *p)
{
	struct scavturn turn;
	struct scavturn_next next;

	scavturn_init(&turn, scavenger.nprocs, nanotime());
	for (;;) {
		note_clear(&scavenger.call);
		if (must_end())
			return;
		next = take_turn(&turn, p);
		if (next.sleep == SCAVTURN_PAUSE)
			pause_for(&turn, next.ns);
		else
			note_sleep(&scavenger.call, next.ns);
	}
}

static void *scavenger_main(void *arg)
{
	struct rt_proc *p;

	(void)arg;
	schedpoint(SCHED_SCAVENGER_MAIN);
	p = proc_attach(PROC_HELPER);
	oscall_thread_name("rtheap scavenge");
	oscall_thread_ordinary();
	scavenger.attached = p != NULL;
	if (!p) {
		note_wake(&scavenger.begun);
		return NULL;
	}
	// This thread has no stack to scan.  Its P may still describe the
	// thread that had it before, so reset that.
	p->context = (struct context){.hi = 0};
	p->in_region = p->stopper = false;
	proc_block(p);
	note_wake(&scavenger.begun);
	serve(p);
	proc_unblock(p);
	proc_detach(p);
	return NULL;
}

// ---- its beginning ----

// start returns false if the thread or its memory is refused.
static bool start(void)
{
	note_clear(&scavenger.begun);
	if (oscall_thread_start(&scavenger.thread, scavenger_main, NULL) != 0)
		return false;
	note_sleep(&scavenger.begun, UINT64_MAX);
	if (!scavenger.attached)
		oscall_thread_join(scavenger.thread);
	return scavenger.attached;
}

// make makes the thread, unless another thread is doing that.
static void make(struct rt_proc *p)
{
	if (!atomic_u32_cas_acquire(&scavenger.making, 0, 1))
		return;
	// A stop must not wait for this thread while it reads files, and while
	// the new one attaches, which waits for the end of a stop.
	context_save(&p->context.frame);
	proc_block(p);
	schedpoint(SCHED_SCAVENGER_MAKE);
	scavenger.nprocs = worker_processors();
	if (atomic_u32_load_relaxed(&scavenger.runs) == 0 && start())
		atomic_u32_store_relaxed(&scavenger.runs, 1);
	proc_unblock(p);
	context_keep();
	// Pairs with the acquire above.
	atomic_u32_store_release(&scavenger.making, 0);
}

// ---- for collections ----

// left returns the bytes of free pages that the last collection left.
static uint64_t left(void)
{
	return atomic_u64_load_relaxed(&scavgoal.free);
}

// due tells whether the last collection left a step's bytes beyond the goal, in
// free pages.  If what is used is beyond it, a turn could not release it.
static bool due(void)
{
	return left() >= SCAVENGE_STEP &&
	       scavgoal_too_much(atomic_u64_load_relaxed(&scavgoal.retained)) >=
		   SCAVENGE_STEP;
}

// may_be_idle tells whether there would be something to release if the program
// were idle.
static bool may_be_idle(void)
{
	return settings.idle_s != 0 && left() >= SCAVGOAL_LEAST;
}

static void call(void)
{
	note_wake(&scavenger.call);
	// Between two batches a sweep does not wait.
	if (!swept_over())
		note_wake(&scavenger.pause);
}

void scavenger_provide(struct rt_proc *p)
{
	bool sweeps = !swept_over();

	if (settings.gc_threads == 0 || (settings.scavenge == 0 && !sweeps))
		return;
	if (atomic_u32_load_relaxed(&scavenger.runs) == 0) {
		if (sweeps || left() >= SCAVGOAL_LEAST)
			make(p);
	} else if (sweeps || due() || (may_be_idle() &&
			     atomic_u32_load_relaxed(&scavenger.timed) == 0)) {
		call();
	}
}

void scavenger_changed(void)
{
	scavgoal_changed();
	call();
}

RT_NOINLINE void scavenger_look_again(void)
{
	if (mheap_take_freed())
		scavenger_changed();
}

void scavenger_fini(void)
{
	// Pairs with the load in must_end.
	atomic_u32_store_release(&scavenger.quit, 1);
	note_wake(&scavenger.call);
	note_wake(&scavenger.pause);
	if (atomic_u32_load_relaxed(&scavenger.runs) != 0)
		oscall_thread_join(scavenger.thread);
	scavenger = (struct scavenger){.nprocs = 0};
}

void scavenger_fork_child(void)
{
	scavenger = (struct scavenger){.nprocs = 0};
}
