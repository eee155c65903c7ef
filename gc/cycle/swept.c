// Slices of the sweep, and what follows it.
#include "gc/cycle/swept.h"

#include "runtime/os/oscall.h"
#include "runtime/os/schedpoint.h"
#include "runtime/os/throw.h"
#include "runtime/os/nanotime.h"
#include "runtime/world/stw.h"
#include "runtime/world/gcstats.h"
#include "gc/mark/crew.h"
#include "gc/cycle/pacer.h"
#include "gc/cycle/release.h"

struct swept swept;

// The time that a chunk is assumed to need, in ns, until one is timed.
enum { CHUNK_NS = 5000 };

// The longest sleep of a thread that waits for the end.  Usually it is woken.
// But this thread itself may be the one that would end the sweep (swept_end).
// Or the next sweep may have begun before the thread sleeps, and may wait for
// threads like this one.
enum { AWAIT_NS = 1000000 };

// choose_huge_pages calls helpers if huge pages are wanted.
static void choose_huge_pages(void)
{
	if (!mheap_choose_huge_pages())
		return;
	if (crew_size() != 0)
		crew_call(CREW_ADVISE);
	else
		atomic_u32_store_relaxed(&swept.advise, 1);
}

// ended notes that the sweep has ended, or that the work buffers were freed.
// Only the thread that notes the second of them calls helpers.  No collection
// can call them meanwhile: that thread has the right to stop the world, or it
// runs, and the next stop waits for it.
static void ended(void)
{
	if (atomic_u32_add_seqcst(&swept.before_choice, (uint32_t)-1) == 0)
		choose_huge_pages();
}

void swept_buffers_freed(void)
{
	ended();
}

bool swept_take_advice(void)
{
	uint32_t advise = atomic_u32_load_relaxed(&swept.advise);

	return advise != 0 && atomic_u32_cas_relaxed(&swept.advise, advise, 0);
}

bool swept_pass_advice(void)
{
	return atomic_u32_load_relaxed(&swept.advise) == 1 &&
	       atomic_u32_cas_relaxed(&swept.advise, 1, 2);
}

void swept_begin(bool beside)
{
	atomic_u64_store_relaxed(&swept.paid, 0);
	atomic_u32_store_relaxed(&swept.before_choice, 2);
	swept.started = 0;
	sweep_begin(beside);
	atomic_u32_store_relaxed(&swept.state,
				 beside ? SWEPT_BESIDE : SWEPT_STOP);
	RT_CHECK(swept_check(&swept));
}

uint64_t swept_takes_ns(void)
{
	uint64_t ns = atomic_u64_load_relaxed(&swept.chunk_ns);

	return (ns != 0 ? ns : CHUNK_NS) * (arena_used() >> RT_CHUNK_SHIFT);
}

static void note_time(void)
{
	uint64_t n = atomic_u64_load_relaxed(&sweep.timed_chunks);

	if (n != 0)
		atomic_u64_store_relaxed(
		    &swept.chunk_ns,
		    atomic_u64_load_relaxed(&sweep.timed_ns) / n);
}

static void raise_generation(void)
{
	mutex_lock(&mheap.lock);
	scavindex_next_cycle(&mheap.pages.scav);
	mutex_unlock(&mheap.lock);
}

void swept_started(uint64_t now)
{
	RT_ASSERT(stw_stopped());
	swept.started = now;
}

// note_beside adds what a sweep beside the threads has freed to what the stop
// has found, and counts how long it took.
static void note_beside(void)
{
	uint64_t pages = atomic_u64_load_relaxed(&sweep.freed_pages);

	gcstats_sweep_ended(base_elapsed(swept.started, nanotime()));
	pacer_swept(pages, atomic_u64_load_relaxed(&sweep.freed_objects));
	swept.retained.free += pages;
}

// follow does what follows the last chunk.  state is what the sweep was.
static void follow(enum swept_state state)
{
	raise_generation();
	if (state == SWEPT_BESIDE)
		note_beside();
	scavgoal_note(&swept.retained);
	// Pages that the sweep has freed do not count as freed by hand.
	mheap_await_freed(SCAVGOAL_LEAST);
	release_again();
	note_time();
	schedpoint(SCHED_SWEPT_FOLLOW);
	// Pairs with the acquire in swept_over.  Seqcst: either this thread
	// sees a sleeper, or the sleeper sees the new state (swept_await).
	atomic_u32_store_seqcst(&swept.state, SWEPT);
	if (atomic_u32_load_seqcst(&swept.sleepers) != 0)
		oscall_futex_wake(&swept.state, UINT32_MAX);
	ended();
	RT_CHECK(swept_check(&swept));
}

void swept_end(void)
{
	uint32_t state = atomic_u32_load_relaxed(&swept.state);

	if ((state != SWEPT_STOP && state != SWEPT_BESIDE) || !sweep_done())
		return;
	schedpoint(SCHED_SWEPT_END);
	if (atomic_u32_cas_acquire(&swept.state, state, SWEPT_ENDING))
		follow((enum swept_state)state);
}

void swept_end_stopped(void)
{
	uint32_t state = atomic_u32_load_relaxed(&swept.state);

	RT_ASSERT(stw_stopped() && !sweep_left());
	RT_ASSERT(state == SWEPT_STOP || state == SWEPT_BESIDE);
	schedpoint(SCHED_SWEPT_END_STOPPED);
	atomic_u32_store_relaxed(&swept.state, SWEPT_ENDING);
	follow((enum swept_state)state);
}

void swept_await(void)
{
	uint32_t state;

	// Seqcst, so that the sleeper counts before it reads the state, here
	// and in the system call (see follow).
	atomic_u32_add_seqcst(&swept.sleepers, 1);
	state = atomic_u32_load_seqcst(&swept.state);
	schedpoint(SCHED_SWEPT_AWAIT);
	if (state != SWEPT)
		oscall_futex_wait(&swept.state, state, AWAIT_NS);
	atomic_u32_add_seqcst(&swept.sleepers, (uint32_t)-1);
}

bool swept_slice(struct rt_proc *p)
{
	bool swept_one = sweep_left() && sweep_chunk(p);

	swept_end();
	return swept_one;
}

bool swept_slice_down(struct rt_proc *p)
{
	bool swept_some = sweep_left() && sweep_chunks_down(p);

	swept_end();
	return swept_some;
}

void swept_all(struct rt_proc *p)
{
	uint64_t before;

	RT_ASSERT(stw_stopped());
	if (swept_over())
		return;
	before = oscall_thread_cpu(0);
	sweep_all(p);
	gcstats_swept(GCSTATS_ASSIST, before);
	swept_end_stopped();
}

bool swept_pay(uint64_t npages)
{
	uint64_t bytes = npages << RT_PAGE_SHIFT;
	uint64_t paid;

	// Only freed bytes are paid.  A thread that sees a payment must see
	// that these bytes were freed, too: this acquire pairs with the release
	// of the thread that paid.
	do {
		paid = atomic_u64_load_acquire(&swept.paid);
		if (atomic_u64_load_relaxed(&sweep.freed_pages) < paid + bytes)
			return false;
	} while (!atomic_u64_cas_release(&swept.paid, paid, paid + bytes));
	return true;
}

void swept_reset(void)
{
	sweep_reset();
	swept = (struct swept){.retained = {0}};
}

void swept_fork_child(void)
{
	sweep_fork_child();
	atomic_u32_store_relaxed(&swept.sleepers, 0);
}

const char *swept_check(const struct swept *s)
{
	if (atomic_u32_load_relaxed(&s->state) > SWEPT_ENDING)
		return "sweep is in an unknown state";
	if (atomic_u32_load_relaxed(&s->before_choice) > 2)
		return "huge pages were chosen twice";
	return NULL;
}
