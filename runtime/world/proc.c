// Ps: attach and detach, blocking, and what a stop does to each of them.
#include "runtime/world/proc.h"

#include "runtime/os/schedpoint.h"
#include "runtime/os/throw.h"
#include "runtime/os/nanotime.h"
#include "runtime/os/settings.h"
#include "runtime/os/gauge.h"
#include "runtime/os/persistent.h"

struct procs procs = {.lock = RT_MUTEX_INIT(LOCKRANK_ALLP)};

// The runs of a thread that is not attached: all are empty.
struct rt_runs proc_no_runs = {
    .kind = {[0 ... RT_KIND_MAX] = proc_no_runs.row},
};
// rt_thread_tls points to this in a thread that is not attached.  It has no P
// and no cache, so every inline allocation takes the slow path.  Several
// threads store nostop here; no thread reads it.  No thread writes nogc.
static struct rt_thread unattached = {.run = proc_no_runs.row,
				      .nogc = RT_NOGC_NONE};

__thread struct rt_thread *rt_thread_tls
    __attribute__((tls_model("initial-exec"))) = &unattached;

enum {
	// Rounds of waiting for a word that changes within a few microseconds,
	// such as the gate at the end of a short stop.  A stopper that slept
	// needs most of that time to get its processor back.
	GATE_SPINS = 1000,
	GATE_LINKS = 2, // threads that each woken thread wakes
};

static bool gate_moved(uint32_t seen)
{
	// Pairs with the store in proc_start_all.
	return atomic_u32_load_acquire(&procs.gate) != seen;
}

// gate_wake wakes up to n threads that sleep on the gate.
static void gate_wake(uint32_t n)
{
	if (atomic_u32_load_seqcst(&procs.gate_waiters) != 0)
		oscall_futex_wake(&procs.gate, n);
}

// The chain.  If all threads were woken at once, they would take the processor
// from the starter, which only has to return.  So the starter wakes one, and
// each woken thread wakes two more before it does anything else.  No sleeper
// stays asleep: while the gate is open and a thread sleeps on it, the starter
// or a woken thread has yet to wake its share.
static void gate_pass_on(uint32_t seen)
{
	schedpoint(SCHED_GATE_PASS_ON);
	// If the gate has not moved, a signal or the chain of an earlier start
	// ended the sleep.  The end of this stop will begin another chain.
	if (gate_moved(seen))
		gate_wake(GATE_LINKS);
}

// gate_spin waits a while for the gate to move.  It gives up at once if threads
// that the stop waits for need the processor.
static void gate_spin(uint32_t seen)
{
	for (int i = 0; i < GATE_SPINS && !gate_moved(seen); i++) {
		if (atomic_u32_load_relaxed(&procs.crowded) &&
		    atomic_u32_load_relaxed(&procs.stop_wait) != 0)
			return;
		atomic_pause();
	}
}

static void gate_sleep(uint32_t seen)
{
	// Dekker with proc_start_all: it stores gate, then loads waiters.  Here
	// the kernel compares gate after waiters was raised.
	atomic_u32_add_seqcst(&procs.gate_waiters, 1);
	schedpoint(SCHED_GATE_SLEEP);
	oscall_futex_wait(&procs.gate, seen, UINT64_MAX);
	atomic_u32_add_seqcst(&procs.gate_waiters, (uint32_t)-1);
}

// gate_wait returns when the gate may have changed from the odd value seen.
static void gate_wait(uint32_t seen)
{
	// With this store the thread promises to wake others, so the starter
	// need not wake any.  A promise names its stop.  So a promise that is
	// left over in the child of a fork, which does not have the thread,
	// means nothing to the next stop.
	atomic_u32_store_seqcst(&procs.gate_spinner, seen);
	schedpoint(SCHED_GATE_WAIT);
	gate_spin(seen);
	if (!gate_moved(seen)) {
		schedpoint(SCHED_GATE_WAIT_IN_VAIN);
		// Dekker with proc_start_all: it stores gate, then loads
		// spinner.  Here the kernel compares gate after this store.
		atomic_u32_store_seqcst(&procs.gate_spinner, 0);
		gate_sleep(seen);
	}
	gate_pass_on(seen);
}

// lock_open_gate returns with procs.lock held, at a moment when no stop lasts.
static void lock_open_gate(void)
{
	for (;;) {
		uint32_t gate;

		mutex_lock(&procs.lock);
		// Pairs with the store in proc_start_all: what the stopper did
		// is visible to the thread that comes in.
		gate = atomic_u32_load_acquire(&procs.gate);
		if (gate % 2 == 0)
			return;
		mutex_unlock(&procs.lock);
		schedpoint(SCHED_LOCK_OPEN_GATE);
		gate_wait(gate);
	}
}

// proc_new makes a record, or returns NULL if there is no memory.  The caller
// must hold procs.lock.
static struct rt_proc *proc_new(void)
{
	struct rt_proc *p =
	    persistent_alloc(sizeof *p, RT_CACHE_LINE, &gauges.other_sys);

	RT_ASSERT(mutex_held(&procs.lock));
	if (p)
		p->id = procs.made++;
	return p;
}

// proc_enlist puts p at the front of the list.  The caller must hold procs.lock
// or be in the child of a fork.
static void proc_enlist(struct rt_proc *p)
{
	struct rt_proc *first = atomic_ptr_load_relaxed(&procs.first);

	p->prev = NULL;
	if (first)
		first->prev = p;
	procs.count++;
	// A live reader may still be at p if p was in the list before.  Its
	// walk then goes on with all Ps that are now older than p.  Pairs with
	// the acquire in proc_next.
	atomic_ptr_store_seqcst(&p->next, first);
	// This precedes p's first statistic.  heapstats_read moves the
	// generation, then walks the list, so a P that it misses writes to the
	// new generation.
	atomic_ptr_store_seqcst(&procs.first, p);
	schedpoint(SCHED_PROC_ENLIST);
}

// proc_delist takes p out of the list.  p keeps its next, for live readers that
// are at p.  The caller must hold procs.lock.
static void proc_delist(struct rt_proc *p)
{
	struct rt_proc *next = atomic_ptr_load_relaxed(&p->next);
	atomic_ptr *from = p->prev ? &p->prev->next : &procs.first;

	RT_ASSERT(mutex_held(&procs.lock));
	if (next)
		next->prev = p->prev;
	// Pairs with the loads in proc_first and proc_next: a reader that does
	// not find p sees its last statistic.
	atomic_ptr_store_release(from, next);
	procs.count--;
}

// count_attached adds n to the number of the host's attached threads, unless p
// is that of a thread of the library.
static void count_attached(const struct rt_proc *p, uint32_t n)
{
	if (!(p->flags & PROC_HELPER))
		atomic_u32_add_relaxed(&procs.attached, n);
}

static bool state_known(uint32_t state)
{
	return (state & PROC_STATE) <= PROC_BLOCKED &&
	       (state & ~(uint32_t)(PROC_STATE | PROC_STOP)) == 0;
}

// check_record checks the number and the state of a P.
static const char *check_record(const struct procs *all,
				const struct rt_proc *p)
{
	if (p->id >= all->made)
		return "P has a number that was not given";
	if (!state_known(atomic_u32_load_relaxed(&p->state)))
		return "P has an unknown state";
	return NULL;
}

// check_links checks an attached P and its place in the list.
static const char *check_links(const struct procs *all, const struct rt_proc *p)
{
	const struct rt_proc *next = proc_next(p);
	const void *to_p =
	    atomic_ptr_load_relaxed(p->prev ? &p->prev->next : &all->first);
	const char *wrong = check_record(all, p);

	if (wrong)
		return wrong;
	if (to_p != p || (next && next->prev != p))
		return "list of Ps does not lead back";
	if (proc_is_free(p))
		return "P in the list of attached ones is free";
	return NULL;
}

// check_free_record checks a P without a thread.
static const char *check_free_record(const struct procs *all,
				     const struct rt_proc *p)
{
	const char *wrong = check_record(all, p);

	if (!wrong && !proc_is_free(p))
		wrong = "P in the list of free ones has a thread";
	return wrong;
}

struct rt_proc *proc_attach(uint32_t flags)
{
	struct rt_proc *p;

	lock_open_gate();
	if (proc_closed()) { // the records may be gone
		mutex_unlock(&procs.lock);
		return NULL;
	}
	p = procs.free;
	RT_CHECK(p ? check_free_record(&procs, p) : NULL);
	if (p)
		procs.free = p->next_free;
	else
		p = proc_new();
	if (p) {
		p->flags = flags;
		count_attached(p, 1);
		proc_enlist(p);
		// Pairs with the acquire in proc_is_free.
		atomic_u32_store_seqcst(&p->state, PROC_RUNNING);
		RT_CHECK(check_links(&procs, p));
	}
	mutex_unlock(&procs.lock);
	schedpoint(SCHED_PROC_ATTACH);
	return p;
}

bool proc_close(void)
{
	bool may;

	mutex_lock(&procs.lock);
	may = atomic_u32_load_relaxed(&procs.attached) <= 1;
	atomic_u32_store_relaxed(&procs.closed, may);
	mutex_unlock(&procs.lock);
	return may;
}

void proc_open(void)
{
	mutex_lock(&procs.lock);
	atomic_u32_store_relaxed(&procs.closed, 0);
	mutex_unlock(&procs.lock);
}

void proc_set_thread(struct rt_proc *p, struct rt_thread *t)
{
	mutex_lock(&procs.lock); // proc_stop_all writes through it
	// Pairs with the acquires in thread_set_pending and mcache_of.
	atomic_ptr_store_release(&p->thread, t);
	mutex_unlock(&procs.lock);
}

void proc_detach(struct rt_proc *p)
{
	context_save(&p->context.frame);
	proc_block(p);
	schedpoint(SCHED_PROC_DETACH);
	lock_open_gate();
	RT_CHECK(check_links(&procs, p));
	proc_delist(p);
	// Pairs with the acquire in proc_is_free.
	atomic_u32_store_seqcst(&p->state, PROC_FREE);
	p->next_free = procs.free;
	procs.free = p;
	count_attached(p, (uint32_t)-1);
	RT_CHECK(check_free_record(&procs, p));
	mutex_unlock(&procs.lock);
}

// proc_stopped tells the stopper that p, which ran when the stop was requested,
// has stopped.
static void proc_stopped(struct rt_proc *p)
{
	atomic_u64_store_relaxed(&p->stopped_at, nanotime());
	schedpoint(SCHED_PROC_STOPPED);
	// The release half pairs with the acquire in proc_wait_all: all that
	// this thread did is visible to the stopper.
	if (atomic_u32_add_seqcst(&procs.stop_wait, (uint32_t)-1) == 0)
		note_wake(&procs.stopnote);
}

void proc_block(struct rt_proc *p)
{
	uint32_t old;

	lockrank_none();
	RT_ASSERT(!proc_in_nogc(rt_thread_tls));
	schedpoint(SCHED_PROC_BLOCK);
	// The release half pairs with the acquire halves in proc_stop_all and
	// proc_claim: all that this thread did is visible to a stopper or a
	// claimer that finds it blocked.
	do
		old = atomic_u32_load_relaxed(&p->state);
	while (!atomic_u32_cas_seqcst(&p->state, old,
				      (old & PROC_STOP) | PROC_BLOCKED));
	if ((old & PROC_STATE) != PROC_RUNNING)
		throw_fatal("proc_block: not running");
	schedpoint(SCHED_PROC_BLOCK_DONE);
	if (old & PROC_STOP)
		proc_stopped(p);
}

// await_claim waits for the end of a claim.
static void await_claim(void)
{
	mutex_lock(&procs.lock);
	mutex_unlock(&procs.lock);
}

void proc_unblock(struct rt_proc *p)
{
	for (;;) {
		uint32_t gate;

		schedpoint(SCHED_PROC_UNBLOCK);
		// The acquire half pairs with the releases in proc_start_all
		// and proc_release: what the stopper or the claimer did is
		// visible here.
		if (atomic_u32_cas_seqcst(&p->state, PROC_BLOCKED,
					  PROC_RUNNING))
			return;
		// Pairs with the stores in proc_stop_all and proc_start_all.
		gate = atomic_u32_load_acquire(&procs.gate);
		schedpoint(SCHED_PROC_UNBLOCK_STOP);
		if (gate % 2 != 0)
			gate_wait(gate);
		else
			await_claim(); // or the stop has just ended
	}
}

void proc_park(struct rt_proc *p)
{
	context_save(&p->context.frame);
	proc_block(p);
	proc_unblock(p);
	context_keep();
}

bool proc_claim(struct rt_proc *p)
{
	uint32_t old;

	mutex_lock(&procs.lock);
	do {
		old = atomic_u32_load_relaxed(&p->state);
		if ((old & PROC_STATE) != PROC_BLOCKED) {
			mutex_unlock(&procs.lock);
			return false;
		}
		// The acquire half pairs with the release half in proc_block.
	} while (!atomic_u32_cas_seqcst(&p->state, old, old | PROC_CLAIMED));
	schedpoint(SCHED_PROC_CLAIM);
	return true;
}

void proc_release(struct rt_proc *p)
{
	RT_ASSERT(mutex_held(&procs.lock));
	// The release half pairs with the acquire half in proc_unblock.
	atomic_u32_and_seqcst(&p->state, ~(uint32_t)PROC_CLAIMED);
	mutex_unlock(&procs.lock);
}

// thread_set_pending sets the byte that polls read.  The acquire pairs with the
// release in proc_set_thread.
static void thread_set_pending(struct rt_proc *p, uint8_t value)
{
	struct rt_thread *t = atomic_ptr_load_acquire(&p->thread);

	if (t)
		__atomic_store_n(&t->pending, value, __ATOMIC_RELAXED);
}

// check_attached checks every attached P and the list of them, and that the
// numbers of attached Ps agree with it.
static const char *check_attached(const struct procs *all)
{
	uint32_t n = 0, hosts = 0;

	for (const struct rt_proc *p = atomic_ptr_load_relaxed(&all->first); p;
	     p = proc_next(p)) {
		const char *wrong = check_links(all, p);

		if (wrong)
			return wrong;
		if (n++ == all->count)
			return "list of Ps is longer than count";
		hosts += !(p->flags & PROC_HELPER);
	}
	if (n != all->count)
		return "list of Ps is shorter than count";
	if (hosts != atomic_u32_load_relaxed(&all->attached))
		return "attached is not the number of the host's threads";
	return NULL;
}

uint32_t proc_stop_all(struct rt_proc *self)
{
	uint32_t running = 0;

	note_clear(&procs.stopnote);
	mutex_lock(&procs.lock);
	RT_CHECK(check_attached(&procs));
	// Pairs with the acquire of gate in proc_unblock.
	atomic_u32_store_seqcst(&procs.gate,
				atomic_u32_load_relaxed(&procs.gate) + 1);
	// One more than there are Ps: the count stays above zero until every P
	// was asked, so a P that stops early does not wake the stopper.
	atomic_u32_store_seqcst(&procs.stop_wait, procs.count + 1);
	for (struct rt_proc *p = proc_first(); p; p = proc_next(p)) {
		uint32_t old;

		if (p == self)
			continue;
		schedpoint(SCHED_PROC_STOP_ALL);
		// The acquire half pairs with the release half in proc_block,
		// the release half with the acquire in proc_wanted.
		old = atomic_u32_or_seqcst(&p->state, PROC_STOP);
		if ((old & PROC_STATE) == PROC_RUNNING) {
			thread_set_pending(p, 1);
			running++;
		} else {
			atomic_u64_store_relaxed(&p->stopped_at, 0);
		}
	}
	atomic_u32_store_relaxed(&procs.crowded,
				 running + (self != NULL) >
				     (uint32_t)settings()->max_procs);
	mutex_unlock(&procs.lock);
	schedpoint(SCHED_PROC_STOP_ALL_ASKED);
	if (atomic_u32_add_seqcst(&procs.stop_wait,
				  running - (procs.count + 1)) == 0)
		note_wake(&procs.stopnote);
	return running;
}

void proc_wait_all(void)
{
	note_sleep(&procs.stopnote, UINT64_MAX);
	// Pairs with the step in proc_stopped.
	if (atomic_u32_load_acquire(&procs.stop_wait) != 0)
		throw_fatal("stopTheWorld: not stopped (stopwait != 0)");
}

void proc_start_all(struct rt_proc *self)
{
	uint32_t gate = atomic_u32_load_relaxed(&procs.gate);

	for (struct rt_proc *p = proc_first(); p; p = proc_next(p)) {
		if (p == self)
			continue;
		thread_set_pending(p, 0);
		schedpoint(SCHED_PROC_START_ALL);
		// The release half pairs with the acquire half in proc_unblock.
		atomic_u32_and_seqcst(&p->state, ~(uint32_t)PROC_STOP);
	}
	schedpoint(SCHED_PROC_START_ALL_GATE);
	// Pairs with the acquires in lock_open_gate, gate_moved and
	// proc_unblock.
	atomic_u32_store_seqcst(&procs.gate, gate + 1);
	if (atomic_u32_load_seqcst(&procs.gate_spinner) != gate)
		gate_wake(1);
}

void proc_reset(void)
{
	atomic_ptr_store_relaxed(&procs.first, NULL);
	procs.free = NULL;
	procs.count = procs.made = 0;
	atomic_u32_store_relaxed(&procs.attached, 0);
}

static void forked_lost(struct rt_proc *p)
{
	atomic_ptr_store_relaxed(&p->thread, NULL);
	atomic_u32_store_relaxed(&p->state, PROC_FREE);
	p->next_free = procs.free;
	procs.free = p;
}

void proc_fork_child(struct rt_proc *self)
{
	atomic_u32_store_relaxed(&procs.attached, 0);
	atomic_u32_store_relaxed(&procs.gate_waiters, 0);
	for (struct rt_proc *p = proc_first(); p; p = proc_next(p))
		if (p != self)
			forked_lost(p);
	atomic_ptr_store_relaxed(&procs.first, NULL);
	procs.count = 0;
	if (self) {
		count_attached(self, 1);
		proc_enlist(self);
	}
	RT_CHECK(procs_check(&procs));
}

// ---- invariants ----

const char *proc_check(const struct rt_proc *p)
{
	uint32_t state = atomic_u32_load_relaxed(&p->state);
	const struct rt_thread *t = atomic_ptr_load_relaxed(&p->thread);

	if (atomic_u32_load_relaxed(&p->stats_seq) % 2 != 0)
		return "P was stopped inside a change of statistics";
	if (!state_known(state))
		return "P has an unknown state";
	if ((state & PROC_STATE) == PROC_FREE)
		return "attached P is free";
	// Only the stopper's P runs, and it is not asked to stop.
	if ((state & PROC_STATE) == PROC_RUNNING && !p->stopper)
		return "P runs while the world is stopped";
	if (p->stopper && (state & PROC_STOP))
		return "P of the stopper was asked to stop";
	if (p->in_region && (state & PROC_STATE) != PROC_BLOCKED)
		return "P in a region is not blocked";
	if (!p->stopper && t && proc_in_nogc(t))
		return "thread was stopped inside a no-GC stretch";
	if (p->context.hi != 0 && p->context.lo > p->context.hi)
		return "stack of a P ends before it begins";
	return NULL;
}

static const char *check_free(const struct procs *all)
{
	uint32_t left = all->made - all->count;

	for (const struct rt_proc *p = all->free; p; p = p->next_free) {
		const char *wrong = check_free_record(all, p);

		if (wrong)
			return wrong;
		if (left-- == 0)
			return "more Ps are free than were made";
	}
	return left != 0 ? "P is in no list" : NULL;
}

const char *procs_check(const struct procs *all)
{
	const char *wrong = mutex_check(&all->lock);

	if (!wrong)
		wrong = check_attached(all);
	if (!wrong)
		wrong = check_free(all);
	return wrong ? wrong : note_check(&all->stopnote);
}
