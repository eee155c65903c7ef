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
	// Pairs with the store in scavenger_dismiss.
	return atomic_u32_load_acquire(&scavenger.quit) != 0;
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
		worker_advise(p);
}

// serve_threads does what threads that allocate would otherwise have to do.
static void serve_threads(struct rt_proc *p)
{
	finish_sweep(p);
	ahead_run(&scavenger.ahead, p, nanotime(), &scavenger.quit);
}

// pause_for sleeps between two batches.  A sweep that begins meanwhile, or a
// thread that takes much memory, wakes the thread.  It serves them, and sleeps
// for the rest of the time: a program that collects often does not make it
// release faster.
static void pause_for(struct scavturn *turn, struct rt_proc *p, uint64_t ns)
{
	uint64_t start = nanotime();
	uint64_t now = start, passed = 0;

	do {
		note_clear(&scavenger.pause);
		if (must_end())
			break;
		if (!swept_over() || ahead_called(&scavenger.ahead)) {
			proc_unblock(p);
			serve_threads(p);
			proc_block(p);
		}
		if (!note_sleep(&scavenger.pause, ns - passed))
			break;
		now = nanotime();
		passed = base_sub_sat(now, start);
		// Without a clock any wake ends the pause, which might
		// otherwise never end.
	} while (now != 0 && passed < ns);
	scavturn_slept(turn, start, nanotime());
}

static struct scavturn_next release(struct scavturn *turn, struct rt_proc *p)
{
	static const struct scavturn_next rest = {.sleep = SCAVTURN_CALL,
						  .ns = UINT64_MAX};

	return settings()->scavenge != 0 ? scavturn_run(turn, p, nanotime())
					 : rest;
}

// collect collects if that is due.  The previous turn has seen what the program
// did until then.
static void collect(struct scavturn *turn, struct rt_proc *p,
		    struct scavturn_next *next)
{
	struct periodic *s = &scavenger.periodic;

	// The end of the heap waits for no collection that has not begun.
	if (periodic_collect(s, p, &scavenger.quit)) {
		finish_sweep(p);
		scavturn_collected(turn);
		*next = release(turn, p);
	}
	if (next->sleep != SCAVTURN_PAUSE)
		next->ns = base_min(next->ns, periodic_left(s, nanotime()));
}

// take_turn runs, and is blocked again when it returns.
static struct scavturn_next take_turn(struct scavturn *turn, struct rt_proc *p)
{
	struct scavturn_next next;

	proc_unblock(p);
	serve_threads(p);
	next = release(turn, p);
	collect(turn, p, &next);
	atomic_u32_store_relaxed(&scavenger.timed,
				 next.sleep == SCAVTURN_TIMER);
	RT_CHECK(scavenger_check(&scavenger));
	schedpoint(SCHED_SCAVENGER_TAKE_TURN);
	proc_block(p);
	return next;
}

static void serve(struct libthread *t, struct rt_proc *p)
{
	struct scavturn turn;
	struct scavturn_next next;

	(void)t;
	// This takes the heap lock, and a fork must find that free.
	proc_unblock(p);
	scavturn_init(&turn, scavenger.nprocs, nanotime());
	ahead_init(&scavenger.ahead);
	schedpoint(SCHED_SERVE_BEGIN);
	proc_block(p);
	for (;;) {
		note_clear(&scavenger.call);
		if (must_end())
			return;
		next = take_turn(&turn, p);
		if (next.sleep == SCAVTURN_PAUSE)
			pause_for(&turn, p, next.ns);
		else
			note_sleep(&scavenger.call, next.ns);
	}
}

static const struct libthread_work scavenging = {
    .name = "rtheap scavenge",
    .ordinary = true,
    .serve = serve,
};

// ---- its beginning ----

bool scavenger_claim(void)
{
	RT_CHECK(scavenger_check(&scavenger));
	// Pairs with the release in scavenger_release.
	return atomic_u32_cas_acquire(&scavenger.making, 0, 1);
}

void scavenger_release(void)
{
	// Pairs with the acquire in scavenger_claim.
	atomic_u32_store_release(&scavenger.making, 0);
}

// start starts the thread.  The caller must have claimed it and be blocked.
static void start(void)
{
	RT_ASSERT(atomic_u32_load_relaxed(&scavenger.making) == 1);
	if (libthread_start(&scavenger.t, &scavenging))
		atomic_u32_store_relaxed(&scavenger.runs, 1);
	RT_CHECK(scavenger_check(&scavenger));
}

// make makes the thread, unless another thread is doing that.
static void make(struct rt_proc *p)
{
	if (!scavenger_claim())
		return;
	// A stop must not wait for this thread while it reads files, and while
	// the new one attaches, which waits for the end of a stop.
	context_save(&p->context.frame);
	proc_block(p);
	schedpoint(SCHED_SCAVENGER_MAKE);
	scavenger.nprocs = worker_processors();
	if (atomic_u32_load_relaxed(&scavenger.runs) == 0)
		start();
	proc_unblock(p);
	context_keep();
	scavenger_release();
}

// ---- for collections ----

// left returns the bytes of free pages that the last collection left.
static uint64_t left(void)
{
	return atomic_u64_load_relaxed(&scavgoal.free);
}

// due tells whether the last collection retained at least a step's bytes beyond
// the goal, and left at least as many free.  No turn can release what is used.
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
	return settings()->idle_s != 0 && left() >= SCAVGOAL_LEAST;
}

static void call(void)
{
	note_wake(&scavenger.call);
	// A sweep does not wait for the pause between two batches.
	if (!swept_over())
		note_wake(&scavenger.pause);
}

void scavenger_advise(struct rt_proc *p)
{
	if (atomic_u32_load_relaxed(&scavenger.runs) != 0) {
		if (swept_pass_advice())
			call();
	} else if (swept_take_advice()) {
		worker_advise(p);
	}
}

void scavenger_provide(struct rt_proc *p)
{
	bool sweeps = !swept_over();

	RT_ASSERT(p == proc_self());
	if (settings()->gc_threads == 0 ||
	    (settings()->scavenge == 0 && !sweeps))
		return;
	if (atomic_u32_load_relaxed(&scavenger.runs) == 0) {
		if (sweeps || left() >= SCAVGOAL_LEAST)
			make(p);
	} else if (sweeps || due() || (may_be_idle() &&
			     atomic_u32_load_relaxed(&scavenger.timed) == 0)) {
		call();
	}
}

RT_NOINLINE void scavenger_grew(struct rt_proc *p, uint64_t used)
{
	bool needed = (used >= SCAVGOAL_LEAST && periodic_wanted()) ||
		      (used >= AHEAD_LEAST && ahead_wanted());

	RT_ASSERT(p == proc_self());
	if (needed && atomic_u32_load_relaxed(&scavenger.runs) == 0)
		make(p);
	// If the thread is refused, another step of growth tries again.
	atomic_u64_store_relaxed(&scavenger.grown_at,
				 atomic_u32_load_relaxed(&scavenger.runs) != 0
				     ? UINT64_MAX
				     : used + SCAVGOAL_LEAST);
}

RT_NOINLINE void scavenger_call_ahead(void)
{
	if (!ahead_call(&scavenger.ahead))
		return;
	note_wake(&scavenger.call);
	note_wake(&scavenger.pause);
}

void scavenger_changed(void)
{
	// Periodic collections may be wanted now.
	atomic_u64_store_relaxed(&scavenger.grown_at, 0);
	scavgoal_changed();
	call();
}

RT_NOINLINE void scavenger_look_again(void)
{
	if (mheap_take_freed()) {
		atomic_u64_add_relaxed(&scavgoal.frees, 1);
		call();
	}
}

// ---- its end ----

void scavenger_dismiss(void)
{
	RT_ASSERT(atomic_u32_load_relaxed(&scavenger.making) == 1);
	// Pairs with the load in must_end.
	atomic_u32_store_release(&scavenger.quit, 1);
	RT_CHECK(scavenger_check(&scavenger));
	note_wake(&scavenger.call);
	note_wake(&scavenger.pause);
}

// Until scavenger_resume, functions that would wake the thread take it for
// running.
void scavenger_await(void)
{
	if (atomic_u32_load_relaxed(&scavenger.runs) != 0)
		libthread_join(&scavenger.t);
	atomic_u32_store_relaxed(&scavenger.quit, 0);
	RT_CHECK(scavenger_check(&scavenger));
}

void scavenger_resume(void)
{
	if (atomic_u32_load_relaxed(&scavenger.runs) == 0)
		return;
	atomic_u32_store_relaxed(&scavenger.runs, 0);
	start();
	if (atomic_u32_load_relaxed(&scavenger.runs) == 0)
		// Growth may make it, too.
		atomic_u64_store_relaxed(&scavenger.grown_at, 0);
}

void scavenger_fini(void)
{
	scavenger = (struct scavenger){.nprocs = 0};
}

const char *scavenger_check(const struct scavenger *s)
{
	if (atomic_u32_load_relaxed(&s->making) > 1)
		return "scavenger is made by two threads";
	if (atomic_u32_load_relaxed(&s->runs) > 1 ||
	    atomic_u32_load_relaxed(&s->timed) > 1 ||
	    atomic_u32_load_relaxed(&s->quit) > 1)
		return "scavenger has an unknown state";
	return note_check(&s->call) ? note_check(&s->call)
				    : note_check(&s->pause);
}

void scavenger_fork_child(void)
{
	scavenger = (struct scavenger){.nprocs = 0};
}
