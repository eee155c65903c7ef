// shadow_actor.h - between the runner of programs and their operations.
#ifndef TEST_HARNESS_SHADOW_ACTOR_H
#define TEST_HARNESS_SHADOW_ACTOR_H

#include "runtime/base/atomic.h"
#include "test/harness/shadow.h"

enum {
	SLOTS = 192,	 // of an actor; programs but those of the oracle use
	FEW_SLOTS = 24,	 // so many
	STACKS = 8,	 // of rt_stack_alloc, at once
	STACK_SIZES = 7, // 2048 << 0 .. 6
	RANGES = 6,	 // memory that may be registered
	RANGE_WORDS = 8, // each
	RANGE_TIMES = 4, // the most that one is registered
	MAX_HEAP = 512 << 20,
	KINDS = 2, // of an actor; the second is aligned to 8
};

// A kind that an actor has registered.
struct actor_kind {
	int number; // no other actor uses it
	const struct shadow_layout *layout;
};

struct actor {
	uintptr_t slot[SLOTS]; // registered in two ranges
	uintptr_t leak;	       // registered: what it never frees
	uintptr_t range[RANGES][RANGE_WORDS];
	unsigned times[RANGES][2]; // how often each is registered, by flags
	struct shadow_word root[SLOTS];
	struct ledger ledger;
	uint64_t epoch;	 // of the last look at its tiny block
	size_t asked;	 // bytes of the request that is under way
	rt_thread *self; // while attached
	struct actor_kind kind[KINDS];
	int brief; // a kind that must still end, or 0
	unsigned char *stack[STACKS];
	size_t stack_size[STACKS];
	uint64_t num_gc; // collections that the copy has followed
	bool settled;	 // nothing was allocated since it last collected
	unsigned id;
};

// The program that runs.
struct run {
	const struct shadow_program *program;
	struct shadow_result *result;
	struct actor *actor; // SHADOW_THREADS of them
	unsigned nslots;
	bool alone;	    // one actor
	bool wild;	    // of a fuzzer
	bool may_fail;	    // the system refuses calls
	bool guarded;	    // some objects are
	bool past_end;	    // rt_config.past_end
	atomic_u64 flushes; // of all caches without a collection
};
extern struct run run;

// shadow_do does one operation.
void shadow_do(struct actor *a, const struct shadow_op *op);

// shadow_on_fatal is the heap's handler: it keeps what the heap says.
void shadow_on_fatal(const char *text, void *arg);

void shadow_attach(struct actor *a, bool bounds);
void shadow_detach(struct actor *a);
// shadow_add_range registers n words at w, and shadow_add_roots all slots.
void shadow_add_range(uintptr_t *w, size_t n, int flags);
void shadow_add_roots(struct actor *a);
void shadow_set_root(struct actor *a, unsigned i, struct shadow_word w);

// shadow_begin_kinds registers an actor's kinds.  shadow_change_kind does what
// the operation says, when no other actor uses the kind.
void shadow_begin_kinds(struct actor *a);
void shadow_change_kind(struct actor *a, const struct shadow_op *op);

// shadow_done requires success, or a refusal where one is possible.
bool shadow_done(int error, const char *what);

// shadow_check_all collects and compares everything.  The actor must be alone,
// or all others must wait.
void shadow_check_all(void);

// shadow_compare compares the statistics.
void shadow_compare(void);

void shadow_free_stacks(struct actor *a);

// shadow_fault makes the system refuse calls; shadow_no_faults ends that.
void shadow_fault(const struct shadow_op *op);
void shadow_no_faults(void);

#endif
