// shadow.h - programs of heap operations, run against an exact copy.
//
// A program is a list of operations of the public interface.  The drivers
// choose where it comes from, random numbers or the bytes of a fuzzer, and how
// many threads, the actors, run it.  Running it keeps an exact copy of the heap
// (shadow_copy.h): what the copy reaches must be in the heap, whole, and what
// it does not reach must be gone.  A ledger for each actor (ledger.h) says what
// the statistics must be.
//
// What an operation does follows from the program alone, not from times or
// collections.  So a program from which operations are left out is still a
// program, and one that fails can be made shorter.  Only the operations of the
// fuzzer depend on addresses.  All runs of a program without them end with the
// same hash.
//
// Actors run their own operations.  Only the actor that made an object changes
// it.  At a sync of the program all actors meet, gifts are handed over, and the
// first actor checks everything.
#ifndef TEST_HARNESS_SHADOW_H
#define TEST_HARNESS_SHADOW_H

#include <stdio.h>

#include "test/harness/ledger.h"
#include "test/harness/shadow_copy.h"

// Where programs come from.
enum shadow_driver {
	SHADOW_RANDOM, // stress_shadow
	SHADOW_ORACLE, // stress_oracle
	SHADOW_FUZZ,   // fuzz_ops: one actor, words of any kind
	SHADOW_FAULTS, // fuzz_faults: and the system refuses calls
	SHADOW_ROOTS,  // fuzz_roots: any words in roots, objects and stacks
	SHADOW_LOOKUP, // fuzz_lookup: any words as addresses
	SHADOW_DRIVERS,
};

// X(name, which of a, b, c and n the operation takes, its weight for each
// driver).  The numbers a, b and c are taken modulo what there is; n is a
// number of bytes, written w where it is any number.
//
// Slots are words of an actor's own that are roots.  Ranges are memory that an
// operation registers; the first is registered at the beginning, as exact.
// clang-format off
#define SHADOW_OPS(X)                                                          \
	/* slot a = n bytes, made in way b with c */                           \
	X(alloc,     "abcn", 400, 8000, 50, 50,  60,  1)                       \
	/* word b of the object in slot a = slot c */                          \
	X(store,     "abc",  220, 1000, 10, 10,  10,  0)                       \
	/* slot a = word b of the object in slot c */                          \
	X(load,      "abc",   90,   50, 10, 10,   6,  0)                       \
	/* slot a = slot c, as an inner pointer */                             \
	X(copy,      "acn",   60,   50,  6,  6,   4,  0)                       \
	/* slot a = nothing; clear: b slots from a on, odd b: to the last */   \
	X(drop,      "a",     50,    0,  8,  8,   4,  4)                       \
	X(clear,     "ab",     4,   40,  8,  8,   4,  0)                       \
	/* compare the object in slot a */                                     \
	X(check,     "a",    124,   50,  4,  4,   0,  0)                       \
	/* at the next sync: slot c of actor b = slot a */                     \
	X(give,      "abc",   10,    1,  0,  0,   0,  0)                       \
	X(sync,      "",       2,    1,  0,  0,   0,  0)                       \
	/* word b of range a = slot c */                                       \
	X(put,       "abc",    0,    0, 12, 12,  12,  0)                       \
	/* word b of a range, slot or object a = a word like c and w */        \
	X(wild,      "abcw",   0,    0, 24, 24, 100,  0)                       \
	/* ask about such a word, the address before it, and its page */       \
	X(ask,       "bcw",    0,    0, 10, 10,   4, 99)                       \
	X(gc,        "",       2,    3, 10, 10,   4,  2)                       \
	X(release,   "",       1,    1,  6,  6,   0,  0)                       \
	/* the pacer's percentage; there and back where nothing may depend     \
	   on times */                                                         \
	X(percent,   "bw",     2,    0,  8,  8,   0,  0)                       \
	/* statistics, their history, and metrics */                           \
	X(stats,     "w",      3,    0,  6,  6,   0,  0)                       \
	X(verify,    "",       1,    0,  4,  4,   0,  0)                       \
	X(walk,      "w",      2,    0,  2,  2,   0,  0)                       \
	X(stop,      "b",      2,    0,  8,  8,   0,  0)                       \
	/* statistics with a recount and the ledgers */                        \
	X(compare,   "",       1,   50,  8,  8,   0,  0)                       \
	/* a stack a of size c, made or freed */                               \
	X(stack,     "ac",     8,   10, 12, 12,   0,  0)                       \
	/* the actor detaches and attaches, odd a: with stack bounds */        \
	X(detach,    "a",      3,    3,  8,  8,   0,  0)                       \
	/* a child of a fork must have what the actor has */                   \
	X(fork,      "",       1,    0,  0,  0,   0,  0)                       \
	/* a blocking region */                                                \
	X(region,    "",       4,    6,  6,  6,   0,  0)                       \
	X(safepoint, "",       5,  200,  2,  2,   0,  0)                       \
	/* the slots are registered once more; range a, with flags b */        \
	X(roots,     "",       4,    0,  2,  2,   0,  0)                       \
	X(add,       "ab",     0,    0, 10, 10,  16,  0)                       \
	X(remove,    "a",      0,    0,  8,  8,   4,  0)                       \
	/* requests that get nothing */                                        \
	X(refused,   "bcw",    3,    0,  6,  6,   0,  0)                       \
	/* collect with words like b, c and w on the stack */                  \
	X(junk,      "bcw",    0,    0,  0,  0,  12,  0)                       \
	/* handlers, and the mode of the double check */                       \
	X(handlers,  "",       1,    0,  1,  1,   0,  0)                       \
	/* the system refuses c calls of sort a, after b more succeed */       \
	X(fault,     "abc",    0,    0,  0,  4,   0,  0)                       \
	/* slot a = n bytes of a kind, made in way b; c says whose kind, and   \
	   which of the two */                                                 \
	X(make,      "abcn", 200, 1500,  5,  2,  14,  0)                       \
	/* the actor's kind a ends, and begins with layout b: at the next      \
	   sync, or at once in a program of a fuzzer */                        \
	X(kind,      "ab",     4,    4,  2,  1,   2,  0)                       \
	/* a kind of any number, with an object that is garbage at once */     \
	X(brief,     "abn",    2,    4,  0,  0,   0,  0)                       \
	/* collect while variables with names hold what slots from a on do */  \
	X(frame,     "a",      4,    4,  0,  0,   0,  0)                       \
	/* alloc in a no-GC stretch, while a slot behind a is hidden */        \
	X(nogc,      "abcn", 10,   40,  0,  0,   0,  0)                        \
	/* a list of the objects of words, if there is one actor */            \
	X(list,      "",       2,    0,  0,  0,   0,  0)                       \
	/* stack a of the actor is registered, with values of layout c, in     \
	   shape b, or it is unregistered */                                   \
	X(register,  "abc",   12,   10,  0,  0,   0,  0)                       \
	/* value b of stack a = slot c, in use or not */                       \
	X(push,      "abc",   60,   60,  0,  0,   0,  0)                       \
	/* slot a = value b of stack c, or of that of the object in slot c */  \
	X(pop,       "abc",   30,   20,  0,  0,   0,  0)                       \
	/* stack a has b values in use, or the host does not say */            \
	X(top,       "abc",   15,   10,  0,  0,   0,  0)                       \
	/* stack a moves to other memory */                                    \
	X(move,      "a",      5,    5,  0,  0,   0,  0)                       \
	/* slot a = an object of n bytes, made in way b, that owns stack c */  \
	X(owner,     "abcn",  30,   40,  0,  0,   0,  0)                       \
	/* the object in slot a owns stack c */                                \
	X(own,       "ac",     8,    5,  0,  0,   0,  0)                       \
	/* alloc, frame, fork or gc on fiber c; odd b: the actor's own stack   \
	   is bounded meanwhile */                                             \
	X(resume,    "abcn",  10,   10,  0,  0,   0,  0)                       \
	/* the object in slot a is freed, if only that slot refers to it */    \
	X(free,      "a",     40,  200,  6,  6,   4,  0)                       \
	/* or, on the same condition, it gets n bytes */                       \
	X(realloc,   "an",    30,  100,  6,  6,   4,  0)                       \
	/* slot a = an object of n bytes that is a root; odd b: without        \
	   pointers */                                                         \
	X(keep,      "abn",    5,   20,  2,  2,   2,  0)                       \
	/* b mod 4 is 0: a collection; at most b / 4 destructors, or all */    \
	X(finish,    "b",      6,   10,  0,  0,   0,  0)                       \
	/* at the next sync: objects of kind a are dropped, b says which */    \
	X(dropnow,   "ab",     2,    2,  0,  0,   0,  0)                       \
	/* handle b is made, or holds what slot a does, or is freed */         \
	X(handle,    "abc",   20,   20,  0,  0,   0,  0)                       \
	/* a root callback tells slot a as word b; c mod 8 is 0: it ends */    \
	X(tell,      "abc",   20,   20,  6,  0,   8,  0)                       \
	/* up to b objects of n bytes, in slots from a on; c says of which     \
	   kind */                                                             \
	X(many,      "abcn",  8,   60,  4,  4,   4,  0)                        \
	/* slot a = an object of type b, with elements for n bytes */          \
	X(typed,     "abn",  60,  300,  6,  6,  10,  0)                        \
	/* slot a = n bytes at a multiple of 8 << b; c says of which kind */   \
	X(aligned,   "abcn", 20,  100,  4,  4,   4,  0)                        \
	/* slot a = b mod 32 bytes and an array, n bytes in all; c as above */ \
	X(array,     "abcn", 15,  100,  2,  2,   2,  0)                        \
	/* slot a = n bytes of the object in slot c, or, for an odd b, a       \
	   string */                                                           \
	X(dup,       "abcn", 20,  100,  2,  2,   2,  0)                        \
	/* the object in slot a gets n bytes if it need not move */            \
	X(resize,    "an",   30,  100,  6,  6,   4,  0)                        \
	/* range of values a, or a part of it, is registered in way b, with    \
	   values of layout c, or once less */                                 \
	X(values,    "abc",  20,   16,  6,  3,  10,  0)                        \
	/* value b of the range of values a = slot c */                        \
	X(write,     "abc",  60,   40,  8,  4,  16,  0)                        \
	/* slot a = value b of the range of values c */                        \
	X(read,      "abc",  30,   20,  2,  1,   3,  0)                        \
	/* what resume does, on a fiber whose stack the actor sets as its      \
	   own or, for an odd c, a root callback sets */                       \
	X(strange,   "abcn",  8,    0,  0,  0,   0,  0)                        \
	/* collect while only static data holds what slot a does, if there is  \
	   one actor */                                                        \
	X(statics,   "a",     3,    0,  0,  0,   0,  0)                        \
	/* an inner pointer does not keep the object in slot a, if nothing else\
	   refers to it and its kind has RT_KIND_BASE */                       \
	X(inner,     "ab",   20,    0,  0,  0,   0,  0)                        \
	/* slot a = an object that refers to many, all of kind b */            \
	X(star,      "abn",   2,    0,  0,  0,   0,  0)                        \
	/* destructors run at safepoints as well (odd b), or not; a callback is\
	   told of them */                                                     \
	X(poll,      "b",    10,    4,  3,  1,   0,  0)                        \
	/* errors that must be found: a collection without the actor's roots,  \
	   a changed byte of the object in slot a, one that is not freed */    \
	X(lose,      "",       0,    0,  0,  0,   0,  0)                       \
	X(scribble,  "a",      0,    0,  0,  0,   0,  0)                       \
	X(leak,      "a",      0,    0,  0,  0,   0,  0)
// clang-format on

enum shadow_kind {
#define X(name, ...) SHADOW_##name,
	SHADOW_OPS(X)
#undef X
	    SHADOW_KINDS,
};

struct shadow_op {
	enum shadow_kind kind;
	unsigned actor, a, b, c, n; // any numbers
};

struct shadow_program {
	enum shadow_driver driver;
	unsigned actors; // 1 to SHADOW_THREADS
	unsigned align8;
	unsigned exact;	 // stacks are no roots, so what is dead is gone
	unsigned config; // bits of the fuzzer's configurations, and the number
			 // of the first layout; from bit 8 on, that of the
			 // format on stacks, and SHADOW_WITH_FLAGS
	size_t nops;
	struct shadow_op *op;
};

// In the configuration of a program: kinds have flags of shadow_flags.
enum { SHADOW_WITH_FLAGS = 1 << 11 };

// The configurations that programs run in.  Each driver uses some of them.
enum shadow_mode {
	SHADOW_ASKED,	// collecting only when asked
	SHADOW_STRESS,	// collecting at every allocation
	SHADOW_PACED,	// collecting when due
	SHADOW_GUARDED, // when due, with guards behind objects
	SHADOW_HELPED,	// when due, with helpers that mark
	SHADOW_CRAMPED, // when due, without memory to mark
	SHADOW_PLAIN,	// the defaults
	SHADOW_BITS,	// as the program says
	SHADOW_MODES,
};

struct shadow_result {
	bool ok;
	uint64_t hash;
	struct comparison compared; // of statistics
	uint64_t reads;		    // of statistics, each compared
	uint64_t did[SHADOW_KINDS]; // operations that had something to do
	char why[SHADOW_WHY];
};

// What became of a program.
struct shadow_verdict {
	unsigned modes; // bit i: mode i failed; all: they end differently
	struct shadow_result last;
};

// ---- running ----

// shadow_run makes a heap, runs p, and ends the heap.  A failure ends the
// process.
void shadow_run(const struct shadow_program *p, enum shadow_mode mode,
		struct shadow_result *r);

// shadow_try runs p in a process for each mode of a mask, until one fails.
// SHADOW_ALL is all modes of its driver.
enum { SHADOW_ALL = (1 << SHADOW_MODES) - 1 };
struct shadow_verdict shadow_try(const struct shadow_program *p,
				 unsigned modes);

// shadow_shrink takes operations out of a program that fails in the given
// modes, as long as it still fails.  If a minute is enough, the result needs
// each of its operations to fail.
void shadow_shrink(struct shadow_program *p, unsigned modes);

// shadow_report prints how p failed, makes it short, writes it to a file, and
// prints how to run it again.
void shadow_report(struct shadow_program *p, struct shadow_verdict v);

// shadow_count_did adds what a run did to *did.  shadow_never_did prints the
// operations that a driver should have done, but of which *did has none.  It
// returns their number.
struct shadow_did {
	uint64_t n[SHADOW_KINDS];
};
void shadow_count_did(struct shadow_did *did, const struct shadow_result *r);
unsigned shadow_never_did(enum shadow_driver d, const struct shadow_did *did);

// ---- making programs ----

// shadow_random returns a program of nops operations; the last of every
// sync_every is a sync.  shadow_free frees it.
struct rng;
struct shadow_program shadow_random(struct rng *r, enum shadow_driver driver,
				    size_t nops, size_t sync_every);
void shadow_free(struct shadow_program *p);

// shadow_spell returns the program that the input of a fuzzer spells, and
// shadow_fuzz runs it.
struct shadow_program shadow_spell(enum shadow_driver driver,
				   const uint8_t *data, size_t size);
void shadow_fuzz(enum shadow_driver driver, const uint8_t *data, size_t size);

// shadow_write writes a program as a text, and shadow_read reads one.  They
// return false if that is refused, or if the text is no program.
bool shadow_write(FILE *file, const struct shadow_program *p);
bool shadow_read(FILE *file, struct shadow_program *p);

// The operations, by kind: args, and weight for each driver.
struct shadow_form {
	const char *name;
	const char *args;
	unsigned weight[SHADOW_DRIVERS];
};
extern const struct shadow_form shadow_forms[SHADOW_KINDS];

// The weights of a driver's operations, added up in order, divide the numbers
// below their sum among the operations.  shadow_weigh sets *kind to the
// operation that x belongs to, and returns the sum.
size_t shadow_weigh(enum shadow_driver d, size_t x, enum shadow_kind *kind);

#endif
