#include "runtime/schedpoint.h"

#include "runtime/oscall.h"

enum {
	// Of 64 passes so many give the processor away, and so many spin.
	PASSES = 64,
	YIELDS = 3,
	SPINS = 6,
	SPINS_MOST = 400, // rounds: what a sleep and a wake take
};

static atomic_u64 seed;
static atomic_u64 threads; // that have passed a point

// A thread's generator (xorshift); 0: it has passed no point.
static __thread uint64_t state __attribute__((tls_model("initial-exec")));

void schedpoint_seed(uint64_t s)
{
	atomic_u64_store_relaxed(&seed, s);
}

static uint64_t next(void)
{
	if (state == 0)
		state = (atomic_u64_load_relaxed(&seed) +
			 atomic_u64_add_relaxed(&threads, 1)) *
			    UINT64_C(0x9e3779b97f4a7c15) |
			1;
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

void schedpoint_pass(void)
{
	uint64_t dice = next() >> 32;
	uint64_t which = dice % PASSES;

	if (which < YIELDS)
		oscall_yield();
	else if (which < YIELDS + SPINS)
		for (uint64_t i = dice / PASSES % SPINS_MOST; i > 0; i--)
			atomic_pause();
}
