// Three slots of statistics: writers change one while a reader sums the others.
#include "runtime/world/heapstats.h"

#include "runtime/os/oscall.h"
#include "runtime/os/schedpoint.h"
#include "runtime/os/throw.h"
#include "runtime/world/stw.h"

enum {
	SLOTS = HEAPSTATS_SLOTS,
	WORDS = sizeof(struct heapstats_totals) / sizeof(uint64_t),
	// A writer is done within a microsecond unless it lost its processor.
	SPINS_BEFORE_YIELD = 200,
};

struct heapstats heapstats = {
    .no_p = RT_MUTEX_INIT(LOCKRANK_HEAPSTATS),
    .reader = RT_MUTEX_INIT(LOCKRANK_READER),
};

static atomic_u64 *slot_words(unsigned slot)
{
	return (atomic_u64 *)&heapstats.slots[slot];
}

static void bad_sequence(uint32_t seq)
{
	throw_value("bad sequence number", "seq", seq);
}

struct heapstats_delta *heapstats_acquire(struct rt_proc *p)
{
	if (p) {
		uint32_t seq = atomic_u32_add_seqcst(&p->stats_seq, 1);

		if (RT_UNLIKELY(seq % 2 == 0))
			bad_sequence(seq);
		schedpoint(SCHED_HEAPSTATS_ACQUIRE);
	} else {
		mutex_lock(&heapstats.no_p);
	}
	return &heapstats.slots[atomic_u32_load_seqcst(&heapstats.gen)];
}

void heapstats_release(struct rt_proc *p)
{
	if (p) {
		uint32_t seq = atomic_u32_load_relaxed(&p->stats_seq) + 1;

		if (RT_UNLIKELY(seq % 2 != 0))
			bad_sequence(seq);
		schedpoint(SCHED_HEAPSTATS_RELEASE);
		// No other thread writes p's stats_seq, so a store is enough.
		// Pairs with the load in wait_even, whose thread then sees the
		// changes.
		atomic_u32_store_release(&p->stats_seq, seq);
	} else {
		mutex_unlock(&heapstats.no_p);
	}
}

// wait_even returns when p was seen outside a change since gen moved.  Its load
// pairs with the release in heapstats_release.
static void wait_even(const struct rt_proc *p)
{
	for (unsigned spins = 0; atomic_u32_load_seqcst(&p->stats_seq) % 2 != 0;
	     spins++) {
		schedpoint(SCHED_WAIT_EVEN);
		if (spins < SPINS_BEFORE_YIELD)
			atomic_pause();
		else
			oscall_yield();
	}
}

// fold adds the slot history to the slot that was current, clears history, and
// writes the sums to out.  No thread writes to either slot meanwhile.
static void fold(unsigned history, unsigned current, uint64_t *out)
{
	atomic_u64 *from = slot_words(history);
	atomic_u64 *to = slot_words(current);

	RT_ASSERT(mutex_held(&heapstats.reader));
	for (unsigned i = 0; i < WORDS; i++) {
		uint64_t old = atomic_u64_load_relaxed(&from[i]);
		uint64_t sum = atomic_u64_load_relaxed(&to[i]);

		if (old != 0) {
			schedpoint(SCHED_HEAPSTATS_FOLD);
			sum += old;
			atomic_u64_store_relaxed(&to[i], sum);
			atomic_u64_store_relaxed(&from[i], 0);
		}
		out[i] = sum;
	}
}

void heapstats_read(struct heapstats_totals *out)
{
	unsigned current, history;

	mutex_lock(&heapstats.reader);
	current = atomic_u32_load_relaxed(&heapstats.gen);
	history = (current + SLOTS - 1) % SLOTS;
	mutex_lock(&heapstats.no_p);
	atomic_u32_store_seqcst(&heapstats.gen, (current + 1) % SLOTS);
	mutex_unlock(&heapstats.no_p);
	schedpoint(SCHED_HEAPSTATS_READ);
	for (struct rt_proc *p = proc_first(); p; p = proc_next(p)) {
		wait_even(p);
		schedpoint(SCHED_HEAPSTATS_READ_NEXT);
	}
	fold(history, current, (uint64_t *)out);
	RT_CHECK(heapstats_check(&heapstats));
	mutex_unlock(&heapstats.reader);
}

void heapstats_unsafe_read(struct heapstats_totals *out)
{
	const atomic_u64 *a = slot_words(0), *b = slot_words(1),
			 *c = slot_words(2);
	uint64_t *sums = (uint64_t *)out;

	RT_ASSERT(stw_stopped());
	mutex_lock(&heapstats.reader); // a live reader may be folding
	for (unsigned i = 0; i < WORDS; i++)
		sums[i] = atomic_u64_load_relaxed(&a[i]) +
			  atomic_u64_load_relaxed(&b[i]) +
			  atomic_u64_load_relaxed(&c[i]);
	mutex_unlock(&heapstats.reader);
}

void heapstats_unsafe_clear(void)
{
	RT_ASSERT(stw_stopped() || !proc_first()); // no P: no heap
	for (unsigned slot = 0; slot < SLOTS; slot++)
		for (unsigned i = 0; i < WORDS; i++)
			atomic_u64_store_relaxed(&slot_words(slot)[i], 0);
}

void heapstats_fork_lock(void)
{
	mutex_lock(&heapstats.reader);
	mutex_lock(&heapstats.no_p);
}

void heapstats_fork_unlock(void)
{
	mutex_unlock(&heapstats.no_p);
	mutex_unlock(&heapstats.reader);
}

const char *heapstats_check(const struct heapstats *h)
{
	uint32_t gen = atomic_u32_load_relaxed(&h->gen);
	const char *wrong;
	const atomic_u64 *next;

	if (gen >= SLOTS)
		return "statistics have an impossible current slot";
	// The next reader moves gen there.
	next = (const atomic_u64 *)&h->slots[(gen + 1) % SLOTS];
	for (unsigned i = 0; i < WORDS; i++)
		if (atomic_u64_load_relaxed(&next[i]) != 0)
			return "next slot of statistics was not cleared";
	wrong = mutex_check(&h->no_p);
	return wrong ? wrong : mutex_check(&h->reader);
}

const char *heapstats_totals_check(const struct heapstats_totals *t)
{
	uint64_t used = t->committed | t->released | t->in_heap | t->in_stacks |
			t->in_work_bufs;
	// As differences, since counts may have wrapped.
	uint64_t live = (t->large_alloc - t->large_free) |
			(t->large_alloc_count - t->large_free_count);

	for (unsigned c = 0; c < SIZECLASS_COUNT; c++)
		live |= t->small_alloc_count[c] - t->small_free_count[c];
	if (used >> 63 != 0)
		return "statistics have negative bytes";
	if (t->in_ptr_scalar_bits != 0)
		return "in_ptr_scalar_bits is not 0";
	if (live >> 63 != 0)
		return "statistics have more frees than allocations";
	return NULL;
}
