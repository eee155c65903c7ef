// Random delays of threads at schedule points, and tests that hold them there.
#include "test/harness/schedpoint.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/os/oscall.h"

// What threads do at a point.
enum {
	GO_ON,
	CHOOSE, // delay at random
	WATCH,	// count, and hold
};
static atomic_u32 mode;

enum {
	// YIELDS of PASSES passes give the processor away, and SPINS spin.
	PASSES = 64,
	YIELDS = 3,
	SPINS = 6,
	SPINS_MOST = 400, // rounds; as long as a sleep and a wake take
};

static atomic_u64 seed;
static atomic_u64 threads; // that have passed a point

// A thread's generator (xorshift), or 0 if it has passed no point.
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

// choose gives the processor away, spins, or does nothing.
static void choose(void)
{
	uint64_t dice = next() >> 32;
	uint64_t which = dice % PASSES;

	if (which < YIELDS)
		oscall_yield();
	else if (which < YIELDS + SPINS)
		for (uint64_t i = dice / PASSES % SPINS_MOST; i > 0; i--)
			atomic_pause();
}

// ---- holding ----

enum {
	OPEN, // no thread is held
	SHUT, // the next thread will be
	HELD, // and above: a thread is held; each time another number
};

static struct {
	atomic_u32 holds;
	struct {
		atomic_u32 passed;
		atomic_u32 gate;
	} at[SCHEDPOINT_COUNT];
} watch;

static void come(enum schedpoint at)
{
	atomic_u32 *gate = &watch.at[at].gate;
	uint32_t held;

	atomic_u32_add_release(&watch.at[at].passed, 1);
	if (atomic_u32_load_acquire(gate) != SHUT)
		return;
	held = HELD + atomic_u32_add_relaxed(&watch.holds, 1);
	if (!atomic_u32_cas_seqcst(gate, SHUT, held))
		return;
	while (atomic_u32_load_acquire(gate) == held)
		oscall_futex_wait(gate, held, UINT64_MAX);
}

// is_busy tells whether threads pass a point once for each object, or for each
// word that is looked up.  A choice at each pass of such a point would cost
// more than all other work.
static bool is_busy(enum schedpoint at)
{
	return at == SCHED_GREY_SET || at == SCHED_LOOK_UP;
}

void schedpoint_pass(enum schedpoint at)
{
	switch (atomic_u32_load_acquire(&mode)) {
	case CHOOSE:
		if (!is_busy(at))
			choose();
		break;
	case WATCH:
		come(at);
		break;
	}
}

void schedpoint_random(void)
{
	atomic_u32_store_release(&mode, CHOOSE);
}

bool schedpoint_is_random(void)
{
	return atomic_u32_load_relaxed(&mode) == CHOOSE;
}

void schedpoint_watch(void)
{
	atomic_u32_store_release(&mode, WATCH);
}

static __attribute__((constructor)) void begin(void)
{
	const char *what = getenv("RT_SCHED"), *number = getenv("RT_SEED");

	if (what && strcmp(what, "random") == 0)
		schedpoint_random();
	if (number)
		schedpoint_seed(strtoull(number, NULL, 0));
}

uint64_t schedpoint_passed(enum schedpoint at)
{
	return atomic_u32_load_acquire(&watch.at[at].passed);
}

static void gate_set(enum schedpoint at, uint32_t what)
{
	atomic_u32_store_release(&watch.at[at].gate, what);
	oscall_futex_wake(&watch.at[at].gate, UINT32_MAX);
}

void schedpoint_hold(enum schedpoint at)
{
	gate_set(at, SHUT);
}

bool schedpoint_held(enum schedpoint at)
{
	return atomic_u32_load_acquire(&watch.at[at].gate) >= HELD;
}

void schedpoint_release(enum schedpoint at)
{
	gate_set(at, OPEN);
}

const char *schedpoint_name(enum schedpoint at)
{
	static const char *const names[SCHEDPOINT_COUNT] = {
#define SCHEDPOINT_NAME(name) [SCHED_##name] = #name,
	    SCHEDPOINTS(SCHEDPOINT_NAME)
#undef SCHEDPOINT_NAME
	};

	return names[at];
}
