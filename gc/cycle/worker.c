// worker.c - starts and ends helper threads, which serve calls.
#include "gc/cycle/worker.h"

#include "runtime/os/oscall.h"
#include "runtime/os/schedpoint.h"
#include "runtime/os/throw.h"
#include "runtime/os/cgroup.h"
#include "runtime/os/settings.h"
#include "runtime/os/persistent.h"
#include "runtime/pages/hugepages.h"
#include "gc/cycle/pacer.h"
#include "gc/cycle/sweep.h"

// Units of huge pages that a helper provides even if another call waits: about
// a millisecond each.
enum { PROVIDE_LEAST = 2 };

// The most units that are advised after a collection without helpers: each is a
// call to the system, and the thread has other work.
enum { ADVISE_MOST = 64 };

struct workers workers;

// processors returns how many processors the library's threads may use:
// max_procs, or less if a lower limit is known.
static uint32_t processors(void)
{
	uint32_t cpus = atomic_u32_load_relaxed(&workers.cpus);
	uint32_t n = (uint32_t)settings()->max_procs;

	return cpus != 0 ? (uint32_t)base_min(n, cpus) : n;
}

// most returns the largest number of helpers.  The thread that collects is one
// more marker.
static uint32_t most(void)
{
	return (uint32_t)base_min((size_t)settings()->gc_threads,
				  processors() - 1);
}

bool worker_knows_processors(void)
{
	return settings()->cgroup == 0 ||
	       atomic_u32_load_relaxed(&workers.cpus) != 0;
}

// read_limit reads the limit of processor time, unless it was read.  Two
// threads may do so at the same time, and find the same.  If another thread
// forks meanwhile, the child has the open file, too.
static void read_limit(void)
{
	struct cgroup c;

	if (worker_knows_processors())
		return;
	cgroup_self(&c);
	atomic_u32_store_relaxed(
	    &workers.cpus, (uint32_t)base_min(c.cpus, SETTINGS_MAX_PROCS));
	pacer_note_processors(processors());
}

uint32_t worker_processors(void)
{
	read_limit();
	return processors();
}

// ---- a helper ----

// provide_huge_pages provides the huge pages that are wanted.  It ends early
// for another call, but not before it has done something: otherwise a program
// that collects without a break would never get a huge page.  The rest is still
// wanted after the next collection.
static void provide_huge_pages(uint32_t seen)
{
	unsigned done = 0;

	while ((done < PROVIDE_LEAST || !crew_called(seen)) &&
	       hugepages_provide(true))
		done++;
}

// must_end tells whether the helpers must end.  The flag publishes no other
// data, so it needs no order but that of the call which was made after it was
// set.
static bool must_end(void)
{
	return atomic_u32_load_relaxed(&workers.quit) != 0;
}

// serve answers calls until it must end.  A collection may have called for
// another task since the call to end.
static void serve(struct libthread *t, struct rt_proc *p)
{
	struct worker *w =
	    (struct worker *)((char *)t - offsetof(struct worker, t));
	uint32_t seen = 0;
	enum crew_task task;

	while (task = crew_wait(&seen), !must_end()) {
		if (task == CREW_MARK)
			mark_help(&w->marker, p);
		else if (task == CREW_SWEEP)
			sweep_help(p);
		else if (task == CREW_ADVISE)
			provide_huge_pages(seen);
	}
	crew_leave();
	schedpoint(SCHED_SERVE_LEFT);
}

static const struct libthread_work helping = {
    .name = "rtheap helper",
    .begin = crew_enter,
    .serve = serve,
};

// ---- all helpers ----

// make_records makes a record for each helper that there may be, or fewer if
// there is no memory.  The caller must be running, since this changes a
// statistic.
static void make_records(void)
{
	RT_ASSERT(atomic_u32_load_relaxed(&workers.making) == 1);
	while (workers.records < most()) {
		struct worker *w = persistent_alloc(sizeof *w, RT_CACHE_LINE,
						    &gauges.gc_misc_sys);

		if (!w)
			return;
		w->next = workers.all;
		workers.all = w;
		workers.records++;
	}
}

// idle_record finds a record without a thread.  Returns NULL if there is none.
static struct worker *idle_record(void)
{
	struct worker *w = workers.all;

	while (w && w->runs)
		w = w->next;
	return w;
}

// start_one starts a helper, and returns when it is blocked and waits for
// calls.  Returns false if the thread or its memory is refused.
static bool start_one(void)
{
	struct worker *w = idle_record();

	RT_ASSERT(atomic_u32_load_relaxed(&workers.making) == 1);
	if (!w || !libthread_start(&w->t, &helping))
		return false;
	schedpoint(SCHED_START_ONE);
	w->runs = true;
	RT_CHECK(worker_check(w));
	atomic_u32_add_relaxed(&workers.running, 1);
	return true;
}

static bool enough(void)
{
	return atomic_u32_load_relaxed(&workers.running) >= most();
}

void worker_fork_child(void)
{
	for (struct worker *w = workers.all; w; w = w->next)
		w->runs = false;
	atomic_u32_store_relaxed(&workers.running, 0);
	atomic_u32_store_relaxed(&workers.making, 0);
	atomic_u32_store_relaxed(&workers.quit, 0);
	crew_reset();
}

bool worker_claim(void)
{
	// Pairs with the release in worker_release.
	return atomic_u32_cas_acquire(&workers.making, 0, 1);
}

void worker_release(void)
{
	// Pairs with the acquires in worker_claim and in check_records.
	atomic_u32_store_release(&workers.making, 0);
}

static void make_all(void)
{
	while (!enough() && start_one())
		;
}

// make_missing starts the helpers that are missing, unless another thread is
// doing that.
static void make_missing(struct rt_proc *p)
{
	if (enough() || !worker_claim())
		return;
	// A stop must not wait for this thread while it reads files, and while
	// a helper attaches, which waits for the end of a stop.
	context_save(&p->context.frame);
	proc_block(p);
	read_limit();
	proc_unblock(p);
	context_keep();
	make_records();
	context_save(&p->context.frame);
	proc_block(p);
	schedpoint(SCHED_MAKE_MISSING);
	make_all();
	proc_unblock(p);
	context_keep();
	RT_CHECK(workers_check(&workers));
	worker_release();
}

void worker_advise(struct rt_proc *p)
{
	RT_ASSERT(!proc_self() || p == proc_self());
	context_save(&p->context.frame);
	proc_block(p);
	schedpoint(SCHED_WORKER_ADVISE);
	for (unsigned i = 0; i < ADVISE_MOST && hugepages_provide(false); i++)
		;
	proc_unblock(p);
	context_keep();
}

void worker_provide(struct rt_proc *p, bool wanted)
{
	RT_ASSERT(p == proc_self());
	if (wanted)
		make_missing(p);
}

void worker_dismiss(void)
{
	RT_ASSERT(atomic_u32_load_relaxed(&workers.making) == 1);
	atomic_u32_store_relaxed(&workers.quit, 1);
	crew_call(CREW_QUIT);
}

void worker_await(void)
{
	for (struct worker *w = workers.all; w; w = w->next) {
		if (w->runs)
			libthread_join(&w->t);
		w->runs = false;
	}
	atomic_u32_store_relaxed(&workers.running, 0);
	atomic_u32_store_relaxed(&workers.quit, 0);
}

void worker_fini(void)
{
	RT_ASSERT(atomic_u32_load_relaxed(&workers.running) == 0);
	workers.all = NULL; // their memory ends with the heap
	workers.records = 0;
	atomic_u32_store_relaxed(&workers.cpus, 0);
	crew_reset();
	worker_release();
}

const char *worker_check(const struct worker *w)
{
	if (w->runs && !w->t.attached)
		return "helper runs that was not attached";
	return libthread_check(&w->t);
}

// check_records checks the records, unless a thread that makes helpers is
// changing them.
static const char *check_records(const struct workers *all)
{
	uint32_t running = 0;

	// Pairs with the release in worker_release.  No thread begins to make
	// helpers while the world is stopped.
	if (atomic_u32_load_acquire(&all->making) != 0)
		return NULL;
	for (const struct worker *w = all->all; w; w = w->next) {
		const char *wrong = worker_check(w);

		if (wrong)
			return wrong;
		running += w->runs;
	}
	return running != atomic_u32_load_relaxed(&all->running)
		   ? "other helpers run than are counted"
		   : NULL;
}

const char *workers_check(const struct workers *all)
{
	uint32_t n = 0;

	if (atomic_u32_load_relaxed(&all->making) > 1)
		return "helpers are made by two threads";
	for (const struct worker *w = all->all; w; w = w->next)
		if (n++ == all->records)
			return "more records of helpers exist than are counted";
	if (n != all->records)
		return "fewer records of helpers exist than are counted";
	if (atomic_u32_load_relaxed(&all->running) > n)
		return "more helpers run than there are records";
	return check_records(all);
}
