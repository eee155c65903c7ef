// crew.c - a futex word that helpers wait on, and their number.
#include "gc/mark/crew.h"

#include "runtime/os/oscall.h"
#include "runtime/os/schedpoint.h"
#include "runtime/os/throw.h"
#include "runtime/os/settings.h"

enum {
	TASK_BITS = 3,
	// Rounds of spinning before a sleep: sweeping follows marking within
	// microseconds.
	CALL_SPINS = 300,
};

struct crew_calls crew_calls;

void crew_call(enum crew_task task)
{
	uint32_t number =
	    atomic_u32_load_relaxed(&crew_calls.call) >> TASK_BITS;

	// Pairs with the acquires in crew_called, spun and crew_wait.
	atomic_u32_store_seqcst(&crew_calls.call,
				(number + 1) << TASK_BITS | (uint32_t)task);
	RT_CHECK(crew_check(&crew_calls));
	schedpoint(SCHED_CREW_CALL);
	oscall_futex_wake(&crew_calls.call, UINT32_MAX);
}

bool crew_called(uint32_t seen)
{
	// Pairs with the store in crew_call.
	return atomic_u32_load_acquire(&crew_calls.call) != seen;
}

// spun waits a while for a call, and tells whether there is one.
static bool spun(uint32_t seen)
{
	// Pairs with the store in crew_call.
	for (int i = 0; i < CALL_SPINS; i++) {
		if (atomic_u32_load_acquire(&crew_calls.call) != seen)
			return true;
		atomic_pause();
	}
	return false;
}

enum crew_task crew_wait(uint32_t *seen)
{
	uint32_t call;

	// The acquires pair with the store in crew_call.
	if (!spun(*seen))
		while (atomic_u32_load_acquire(&crew_calls.call) == *seen)
			oscall_futex_wait(&crew_calls.call, *seen, UINT64_MAX);
	schedpoint(SCHED_CREW_WAIT);
	call = atomic_u32_load_acquire(&crew_calls.call);
	*seen = call;
	return (enum crew_task)(call & ((1 << TASK_BITS) - 1));
}

uint32_t crew_size(void)
{
	// Pairs with the releases in crew_enter and crew_leave.
	return atomic_u32_load_acquire(&crew_calls.size);
}

void crew_enter(void)
{
	// Pairs with the acquire in crew_size.
	atomic_u32_add_release(&crew_calls.size, 1);
	RT_CHECK(crew_check(&crew_calls));
}

void crew_leave(void)
{
	// Pairs with the acquire in crew_size.
	atomic_u32_add_release(&crew_calls.size, (uint32_t)-1);
	RT_CHECK(crew_check(&crew_calls));
}

void crew_reset(void)
{
	atomic_u32_store_relaxed(&crew_calls.size, 0);
	atomic_u32_store_relaxed(&crew_calls.call, 0);
}

#ifdef RT_TEST
uint32_t crew_count_from(uint32_t n)
{
	uint32_t last = atomic_u32_load_relaxed(&crew_calls.call) >> TASK_BITS;

	atomic_u32_store_relaxed(&crew_calls.call, n << TASK_BITS);
	return last;
}
#endif

const char *crew_check(const struct crew_calls *c)
{
	uint32_t call = atomic_u32_load_relaxed(&c->call);

	if ((call & ((1 << TASK_BITS) - 1)) > CREW_QUIT)
		return "helpers are called for an unknown task";
	if (atomic_u32_load_relaxed(&c->size) > SETTINGS_MAX_PROCS)
		return "more helpers exist than may";
	return NULL;
}
