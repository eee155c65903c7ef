// shadow_actor.h - what the runner of programs and their operations share.
#ifndef TEST_HARNESS_SHADOW_ACTOR_H
#define TEST_HARNESS_SHADOW_ACTOR_H

#include "runtime/base/atomic.h"
#include "test/harness/fiber.h"
#include "test/harness/shadow.h"

enum {
	SLOTS = 192,	 // of an actor
	FEW_SLOTS = 24,	 // the number that most drivers use (shadow_run)
	STACKS = 8,	 // of rt_stack_alloc, at once
	STACK_SIZES = 7, // 2048 << 0 .. 6
	RANGES = 6,	 // memory that may be registered
	RANGE_WORDS = 8, // each
	RANGE_TIMES = 4, // the most that one is registered
	VALUE_RANGES = 3,
	MAX_HEAP = 512 << 20,
	KINDS = 2,	  // of an actor; the second is aligned to 8
	ACTOR_STACKS = 4, // registered ones
	HANDLES = 4,	  // and words that the root callback tells
	// The kind of the objects that own stacks; all actors use it.
	SHADOW_OWNERS_KIND = RT_KIND_ALIGN8_FIRST - 1,
};

// A kind that an actor has registered.
struct actor_kind {
	int number; // no other actor's kind has it
	const struct shadow_layout *layout;
	uint32_t flags; // of shadow_flags
};

// A stack that an actor may have registered.  Values are numbered from the
// beginning of its memory on; behind them come registers, if it has some.
struct actor_stack {
	struct shadow_stack copy;
	const struct shadow_layout *layout; // of its values
	unsigned flags;			    // enum rt_stack_flags
	// How each is encoded, a register as well.
	const struct shadow_layout *as[SHADOW_VALUES + SHADOW_REGISTERS];
	bool fixed;	 // registered without a pointer to sp
	uintptr_t *word; // of memory, or in a frame of the fiber
	uintptr_t memory[2][2 * SHADOW_VALUES];
	uintptr_t *registers; // saved, or in a frame of the fiber; NULL: none
	uintptr_t saved[SHADOW_REGISTERS];
	void *sp;
	rt_frame *frames;   // of the fiber while it does not run
	struct fiber fiber; // lo is NULL if it is none
	struct actor *actor;
	const struct shadow_op *op; // what the fiber shall do
};

// Memory with values, and the ranges of it that an actor may have registered.
enum values_range {
	VALUES_ALL,
	VALUES_BEHIND, // the part behind the first values
	VALUES_RANGES,
};
struct actor_values {
	const struct shadow_layout *layout; // of its values; NULL: none yet
	// Registered: by flags, and in its format.
	unsigned times[VALUES_RANGES][3];
	char name[VALUES_RANGES][32];
	uintptr_t word[2 * SHADOW_VALUES + 1];
	struct shadow_word held[SHADOW_VALUES + 1];
};

struct actor {
	uintptr_t slot[SLOTS]; // registered in two ranges
	uintptr_t leak;	       // registered: what it never frees
	uintptr_t range[RANGES][RANGE_WORDS];
	unsigned times[RANGES][2]; // how often each is registered, by flags
	struct actor_values values[VALUE_RANGES];
	struct shadow_word root[SLOTS];
	struct ledger ledger;
	uint64_t epoch;	 // of the last look at its tiny block
	size_t asked;	 // bytes of the request that is under way
	rt_thread *self; // while attached
	struct actor_kind kind[KINDS];
	int brief; // a kind that must still end, or 0
	unsigned char *stack[STACKS];
	size_t stack_size[STACKS];
	struct actor_stack stacks[ACTOR_STACKS];
	struct actor_stack strange; // a fiber whose stack is not registered
	void *lo, *hi; // the stack that it runs on, for a root callback
	rt_handle *handle[HANDLES];
	uintptr_t told[HANDLES];
	bool tells;			      // the callback is added
	struct shadow_word held[2 * HANDLES]; // by handles, and told
	uint64_t num_gc; // collections that the copy has followed
	bool settled;	 // the actor has allocated nothing since a collection
	bool idle;	 // the operation had nothing to do
	uint64_t did[SHADOW_KINDS]; // operations that were not idle
	unsigned id;
};

// The program that runs.
struct run {
	const struct shadow_program *program;
	struct shadow_result *result;
	struct actor *actor; // SHADOW_THREADS of them
	unsigned nslots;
	bool alone;    // one actor
	bool wild;     // of a fuzzer
	bool may_fail; // the system refuses calls
	bool guarded;  // some objects are
	bool past_end; // rt_config.past_end
	// With the format of rt_config.stack_format, or NULL.
	const struct shadow_layout *on_stacks;
	atomic_u64 flushes; // of all caches without a collection
	atomic_u64 told;    // calls of the ready callback
	// In the child of a fork: the only actor whose thread is there.
	const struct actor *survivor;
};
extern struct run run;

// shadow_do does one operation.  The function of each is SHADOW_OP(name).
void shadow_do(struct actor *a, const struct shadow_op *op);
#define SHADOW_OP(name)                                                        \
	void shadow_do_##name(struct actor *a __attribute__((unused)),         \
			      const struct shadow_op *op                       \
			      __attribute__((unused)))
// clang-format off
#define X(name, ...) SHADOW_OP(name);
SHADOW_OPS(X)
#undef X
// clang-format on

// The heap's handlers.  shadow_on_fatal keeps what the heap says.  Unless the
// system refuses calls, shadow_on_warning accepts only warnings of destructors
// and of the memory limit.
void shadow_on_fatal(const char *text, void *arg);
void shadow_on_warning(const char *text, void *arg);

void shadow_attach(struct actor *a, bool bounds);
void shadow_detach(struct actor *a);
// shadow_add_range registers n words at w, and shadow_add_roots all slots.
// shadow_remove_roots unregisters all slots.
void shadow_add_range(uintptr_t *w, size_t n, int flags);
void shadow_add_roots(struct actor *a);
void shadow_remove_roots(struct actor *a);

// shadow_set_root makes a slot of an actor hold a word, and shadow_check_slot
// requires that it still does.
#define SHADOW_NOTHING ((struct shadow_word){0})
void shadow_set_root(struct actor *a, unsigned i, struct shadow_word w);
void shadow_check_slot(const struct actor *a, unsigned slot);

// shadow_wild_word returns a word that may be a pointer to any object, dead or
// alive.
uintptr_t shadow_wild_word(const struct shadow_op *op);

// shadow_begin_kinds registers an actor's kinds.  shadow_change_kind does what
// the operation says.  No other actor may use the kind meanwhile.
void shadow_begin_kinds(struct actor *a);
void shadow_change_kind(struct actor *a, const struct shadow_op *op);
// shadow_drop_now does what the operation dropnow says.
void shadow_drop_now(struct actor *a, const struct shadow_op *op);
// shadow_begin_owners registers the kind of owners.
void shadow_begin_owners(void);

// shadow_make_of does what the operation make says, of the given kind.  It
// returns NULL if there is no memory.
struct shadow_node *shadow_make_of(struct actor *a, const struct actor_kind *k,
				   const struct shadow_op *op);

// shadow_take enters a new object into the ledger and the copy, and puts it
// into a slot.  made.p is what the allocation returned.  If it is NULL, which
// must be possible, shadow_take returns NULL.
struct shadow_node *shadow_take(struct actor *a, unsigned slot,
				struct shadow_made made);

// shadow_enter does what shadow_take does for one of several objects.  The
// caller must have called shadow_follow_flushes and shadow_follow since they
// were made.
struct shadow_node *shadow_enter(struct actor *a, unsigned slot,
				 struct shadow_made made);

// shadow_count_made counts what the request for an object counts as.
void shadow_count_made(struct ledger *l, const struct shadow_made *made);

// shadow_any_kind returns number c of the kinds that an actor may use: the two
// of every heap, and its own.
struct actor_kind shadow_any_kind(const struct actor *a, unsigned c);

// shadow_done requires that a call succeeded, or was refused memory where that
// is possible.  It returns whether the call succeeded.
bool shadow_done(int error, const char *what);
#define SHADOW_DONE(call) shadow_done(call, #call)

// ---- collections and flushes (shadow_collect.c) ----

// A flush of all caches ends the tiny block of each.  shadow_flushed notes a
// flush without a collection.  In a program of SHADOW_ORACLE with several
// actors, such a flush must happen in the caller's own stop, or the ledgers
// would miss it.  shadow_follow_flushes makes the ledger of an actor forget the
// tiny block if caches were flushed since the last call.
void shadow_flushed(void);
void shadow_follow_flushes(struct actor *a);

// In a program of a fuzzer, shadow_follow makes the copy forget what
// collections have freed since the last call.  Elsewhere it does nothing.
void shadow_follow(struct actor *a);

// shadow_gc collects, and runs destructors.  shadow_run_dead calls
// rt_run_finalizers, and shadow_poll calls rt_safepoint; in both, destructors
// may run.
void shadow_gc(void);
size_t shadow_run_dead(size_t max);
void shadow_poll(void);

// shadow_collected compares everything just after a collection, in programs of
// a fuzzer: exactly what is reached is there.
void shadow_collected(struct actor *a);

// shadow_end_dead runs destructors and collects until no dead object is left,
// nor one that only dead objects kept.  The actor must be alone, or all others
// must wait, because they could make more.
void shadow_end_dead(void);

// shadow_check_all collects and compares everything.  The actor must be alone,
// or all others must wait.
void shadow_check_all(void);

// shadow_compare compares the statistics.
void shadow_compare(void);

void shadow_free_stacks(struct actor *a);

// shadow_reach_stacks does in the copy what a collection does with the stacks
// of an actor.  shadow_forget_stacks makes the copy forget what no collection
// sees: values that are not in use, and owned stacks whose owners are dead.
void shadow_reach_stacks(const struct actor *a);
void shadow_forget_stacks(struct actor *a);
// shadow_clear_picked_stacks clears the values that refer to picked objects.
void shadow_clear_picked_stacks(struct actor *a);

// These do with ranges of values what the three functions above do with stacks.
void shadow_reach_values(const struct actor *a);
void shadow_forget_values(struct actor *a);
void shadow_clear_picked_values(struct actor *a);

// shadow_counted_as returns a size that counts like n bytes of a layout.
size_t shadow_counted_as(const struct shadow_layout *l, size_t n);

// shadow_reach_held does in the copy what a collection does with handles and
// root callbacks.  shadow_clear_picked_held clears those that refer to picked
// objects.
void shadow_reach_held(const struct actor *a);
void shadow_clear_picked_held(struct actor *a);

// shadow_take_base returns the object that a slot leads to, or NULL, and
// empties the slot.  In the copy the slot still has its word.  shadow_put_back
// fills the slot again.
void *shadow_take_base(struct actor *a, unsigned i);
void shadow_put_back(struct actor *a, unsigned i, const void *base);

// shadow_fault makes the system refuse calls; shadow_no_faults ends that.
void shadow_fault(const struct shadow_op *op);
void shadow_no_faults(void);

#endif
