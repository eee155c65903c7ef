// shadow_copy.h - an exact copy of a heap: its objects and what they hold.
//
// The copy is in memory from malloc, where the collector does not look.  Each
// node is an object: where it is, which bytes it holds, which of its words may
// change and what they are.  The first word of an object that has words is a
// tag.  All bytes that belong neither to the tag nor to a word that may change
// are filler.  Eight bytes of tag or filler are no address, so they keep
// nothing alive.
//
// A word is either a reference, which names the node it points into, or any
// number.  A reference is a word that keeps its object alive: it is in a slot
// of an actor, or where the layout of an object has a value.  The value of any
// other word decides what it keeps alive.  In a layout whose values have two
// words, each word that may change has a tag beside it.
//
// Each owner has a list of nodes that only it changes.  Functions that say
// "alone" look at all lists: no other thread may use the copy meanwhile.
#ifndef TEST_HARNESS_SHADOW_COPY_H
#define TEST_HARNESS_SHADOW_COPY_H

#include <rt/rt.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/base/base.h"
#include "test/harness/shadow_layout.h"

enum {
	SHADOW_THREADS = 8,
	SHADOW_WORDS = 32,    // of an object that may change, at most
	SHADOW_VALUES = 12,   // of a stack
	SHADOW_REGISTERS = 2, // of one
	SHADOW_SMALL = 32760, // bytes of the largest object that is not large
};

struct shadow_word {
	struct shadow_node *to; // NULL: no reference
	uintptr_t value;	// a reference: bytes into the object
};

// Which words refer to an object depends on where they are.  SHADOW_EXACT: only
// one that equals what the allocation returned.  SHADOW_ANY: any that points
// into the object, but for RT_KIND_BASE only into its first bytes.
// SHADOW_STACK: any that points into the object.
enum shadow_place { SHADOW_EXACT, SHADOW_ANY, SHADOW_STACK };
enum { SHADOW_BASE = 16 }; // so many bytes

// A stack that objects may own: what it holds is reached with them.
struct shadow_stack {
	rt_stack *registered;
	unsigned begin, end; // values in use; registers always are
	enum shadow_place place;
	struct shadow_word held[SHADOW_VALUES + SHADOW_REGISTERS];
	bool reached; // from an owner
};

struct shadow_node {
	uint64_t id; // which owner made it, and when
	uintptr_t at;
	size_t n;
	size_t request; // a request for so many bytes gets this size
	bool paged;	// it has whole pages
	uintptr_t base; // a word into [base, base + size) keeps it
	size_t size;
	int kind;
	const struct shadow_layout *layout;
	bool typed;   // its header leads to a type
	uint64_t tag; // or header: its first word
	bool reached;
	bool dropped;	 // its deep destructor has run
	bool shared;	 // a word other than one slot has referred to it
	bool kept;	 // it is a root
	bool based;	 // of a kind with RT_KIND_BASE
	bool once;	 // its trace callback calls shadow_traced
	bool picked;	 // to be dropped now
	bool moved;	 // its memory is another's
	uint32_t traced; // sweepgen in which its first callback was called
	unsigned owner;
	unsigned nwords;
	struct shadow_stack *stack; // that it owns
	struct shadow_node *next;   // of its owner
	struct shadow_node *todo;   // in a list to be looked at
	struct shadow_word word[];
};

// ---- failing ----

// Where a failure goes.  NULL, the default, prints and aborts; otherwise the
// text is written there and the process exits with status 1.
extern char *shadow_why;
enum { SHADOW_WHY = 300 };

// shadow_fail ends the process.  If several threads fail, the first says why.
RT_NORETURN void shadow_fail(const char *format, ...)
    __attribute__((format(printf, 1, 2)));

#define SHADOW_TRUE(cond)                                                      \
	((cond)                                                                \
	     ? (void)0                                                         \
	     : shadow_fail("%s:%d: not true: %s", __FILE__, __LINE__, #cond))
#define SHADOW_OK(call) shadow_want(call, #call)
void shadow_want(int error, const char *what);

// ---- kinds ----

// shadow_set_kind notes that there is a kind with a layout and flags of
// shadow_flags.  No other thread may use the copy.
void shadow_set_kind(int kind, const struct shadow_layout *l, uint32_t flags);

// shadow_traced is for the trace callback of an object whose first word leads
// to its node.  first is what rt_trace_first returns; marks is false in a pass
// that only checks.  In a marking, at most one call may be first, and all other
// calls must come after it.  In a pass that only checks, no call may be first.
void shadow_traced(const void *obj, bool first, bool marks);

// ---- nodes ----

// shadow_add enters an object of n bytes that was just allocated at p and
// fills it.  Unless uninit is set, every byte that can be used must be zero.
// RT_NOSCAN and RT_WORDS have the first two layouts.
struct shadow_made {
	unsigned owner;
	void *p;
	size_t n;
	int kind;
	const struct shadow_layout *layout;
	bool uninit;
	bool kept;	// it is a root, until it is freed
	size_t request; // as in struct shadow_node; 0: n
	bool paged;	// even if the request is small
	bool wide;	// all of its words may change
};
struct shadow_node *shadow_add(struct shadow_made made);

// shadow_kept_as returns a size that counts like n bytes of an uncollectable
// object.  It is aligned to 16 bytes, and shares no slot.
size_t shadow_kept_as(size_t n);

// shadow_shares tells whether an object may lie in a slot with others.
bool shadow_shares(const struct shadow_node *o);

// shadow_at returns the address of word k of an object, below nwords.
// shadow_value returns what a slot should hold, and shadow_held what word k of
// an object should.
uintptr_t *shadow_at(const struct shadow_node *o, unsigned k);
uintptr_t shadow_value(struct shadow_word w);
uintptr_t shadow_held(const struct shadow_node *o, unsigned k);

// shadow_refers tells whether word k of an object is where its layout has a
// value, in the bytes that were asked for.
bool shadow_refers(const struct shadow_node *o, unsigned k);

// shadow_set changes word k of an object.  Where the layout has no value, it
// becomes a number.
void shadow_set(struct shadow_node *o, unsigned k, struct shadow_word w);

// shadow_share notes that a word is copied.
struct shadow_word shadow_share(struct shadow_word w);

// shadow_forget forgets an object of the caller that is not shared.
void shadow_forget(struct shadow_node *o);

// shadow_own makes an object of layout SHADOW_OWNERS own a stack, which must
// exist as long as the object.
void shadow_own(struct shadow_node *o, struct shadow_stack *s);

// shadow_check requires that the heap has an object with its bytes, and
// shadow_check_words that its words are right.  Only the owner of an object may
// look at its words, unless all actors wait.
void shadow_check(const struct shadow_node *o);
void shadow_check_words(const struct shadow_node *o);

// The destructor of an object whose layout is deep calls shadow_dropped.  This
// requires that the object was not dropped before, and that what it refers to
// is still whole.  The thread's own actor is shadow_self.  Objects of other
// actors may be alive and change, so what those refer to is not looked at.
void shadow_dropped(const void *obj);
extern __thread unsigned shadow_self;

// ---- all objects, alone ----

// shadow_reset begins a copy of an empty heap.  guarded: some objects may have
// no more bytes than were asked for.  keeps: nodes of dead objects are kept,
// for callbacks that look at them.
struct shadow_copy_of {
	bool align8, guarded, keeps;
};
void shadow_reset(struct shadow_copy_of heap);

// shadow_count returns the number of nodes, and shadow_nth one of them.
// shadow_count_kind returns the number of nodes of a kind.
unsigned shadow_count(void);
unsigned shadow_count_kind(int kind);
struct shadow_node *shadow_nth(unsigned i);

// shadow_find returns a node that p points to or into, or NULL if there is
// none.
struct shadow_node *shadow_find(uintptr_t p);

// shadow_wild returns a word that may be a pointer, from any number n.  how,
// below 8, says what it resembles: any word, an address in the heap, one behind
// o, near it or in it, or, from 5 on, o with a tag.
uintptr_t shadow_wild(unsigned how, const struct shadow_node *o, uint64_t n);

// shadow_pick picks the objects of a kind, or some of them, and clears the
// references to them in all other objects.  shadow_forget_picked forgets them.
void shadow_pick(int kind, bool all);
void shadow_forget_picked(void);

// shadow_reach marks what a word leads to, by where it is.
void shadow_reach(struct shadow_word w, enum shadow_place place);

// shadow_reach_kept marks the objects that are roots themselves, and what they
// lead to.
void shadow_reach_kept(void);

// shadow_collect does what a collection does: it forgets the nodes that were
// not reached since the last time, and requires the others to be whole.
void shadow_collect(void);

// shadow_judge compares the heap with the copy after a collection.  The object
// of every node must be whole, overlap no other object, and be found by a walk.
// With exact, the heap must have no other objects.  Returns a hash of
// everything that does not depend on addresses.
uint64_t shadow_judge(bool exact);

// shadow_healthy requires that every structure of the heap agrees with every
// other, and the statistics with these and with each other.  It returns the
// number of objects.
uint64_t shadow_healthy(void);

// shadow_sums requires the identities of statistics, which hold at any time.
void shadow_sums(const rt_memstats *m);

#endif
