// stacks.h - stacks of the host, and the parts of a thread that are scanned.
//
// Go: scanstack and the stacks of goroutines (mgcmark.go), which the scheduler
// knows.  Here the host switches stacks without telling the heap.
//
// A registered stack has the address at which the host keeps its saved stack
// pointer.  Which stacks run is found in a stop, from the stack pointers of the
// stopped threads: they are sorted, and the table of stacks is walked once for
// up to 256 threads.  That is right at every instruction of a switch.  Before
// the stack pointer moves, the old stack runs.  From then on the new stack
// runs, and the saved pointer of the old one is already stored.
//
// The table is an array of pointers.  Removal moves the last one into the gap.
// Any thread may change and search the table while the world runs, under
// roots.lock.  Collections read it with the world stopped.
//
// An owned stack is scanned when its object is traced.  The marker that comes
// first claims it.
#ifndef GC_MARK_STACKS_H
#define GC_MARK_STACKS_H

#include <rt/stack.h>

#include "runtime/os/throw.h"
#include "gc/mark/trace.h"
#include "gc/mark/rootfns.h"
#include "gc/mark/frames.h"

// What few stacks have.
struct stacks_label {
	rt_value_format format; // stride 0: none
	char name[ROOTS_NAME];	// empty: none
};

// A registered stack.  stacks_check checks it.
struct rt_stack {
	atomic_u64 scanned; // number of the look in which an owned one was
			    // claimed; first, because a free record links here
	uint32_t index;	    // in the table; NONE: not registered
	uint32_t flags;
	uintptr_t lo;
	uintptr_t hi;
	uint64_t runs; // number of the last look that found a thread on it
	const volatile void *sp; // address of the saved stack pointer
	uintptr_t regs_lo;
	uintptr_t regs_hi;
	rt_frame *const volatile *frames; // NULL: none
	struct stacks_label *label;	  // NULL: neither format nor name
	struct context *own;		  // RT_STACK_THREAD: of its thread
};

enum stacks_warning {
	STACKS_WARN_NONE,
	STACKS_WARN_DUE,   // there is a thread to tell of
	STACKS_WARN_TAKEN, // a thread tells of it
};

// Changed under roots.lock, or by the stopper.  Any marker changes claimed, and
// the thread that tells a warning changes warning.
struct stacks {
	struct rt_stack **at;
	size_t n;
	size_t room;  // of at
	size_t ndown; // those that grow down
	struct fixalloc records;
	struct fixalloc labels;
	uint64_t looks;	    // how often running stacks were looked for
	atomic_u32 claimed; // 1: one was claimed since stacks_settle
	atomic_u32 warning; // enum stacks_warning
	uintptr_t lost;	    // stack pointer of the thread to warn of
};

RT_GLOBAL struct stacks stacks;

// stacks_add registers the stack that *d describes, for p's thread.  *d must be
// in order.  With RT_STACK_THREAD the bounds are those of p's own stack.  Sets
// *out and returns RT_OK, or returns RT_ENOMEM, RT_EEXIST if p's own stack is
// already registered, or RT_ENOENT if that stack is no root.
int stacks_add(const rt_stack_desc *d, struct rt_proc *p,
	       struct rt_stack **out);

// stacks_remove ends a registration.  stacks_move changes the bounds.  sp is
// the caller's stack pointer.  Both return RT_OK, RT_EINVAL or RT_EBUSY.
int stacks_remove(struct rt_stack *s, uintptr_t sp);
int stacks_move(struct rt_stack *s, uintptr_t lo, uintptr_t hi, uintptr_t sp);

// stacks_bounds finds the bounds of the registered stack that sp lies in.
// Returns false if there is none.  The time grows with the number of stacks.
bool stacks_bounds(uintptr_t sp, uintptr_t *lo, uintptr_t *hi);

// stacks_set sets the bounds of a thread's own stack.  Returns RT_OK, or
// RT_ESTATE if that stack is registered.
int stacks_set(struct context *c, uintptr_t lo, uintptr_t hi);

// stacks_detach ends the registration of p's own stack, if it is registered.
// The child of a fork calls it for each thread that it has lost.
void stacks_detach(struct rt_proc *p);

void stacks_fini(void);

// stacks_take_warning returns true if the host must be told that a thread runs
// on an unknown stack, and sets *sp to that thread's stack pointer.
// stacks_warning_due tells whether it would.
RT_INLINE bool stacks_warning_due(void)
{
	return atomic_u32_load_relaxed(&stacks.warning) == STACKS_WARN_DUE;
}
bool stacks_take_warning(uintptr_t *sp);

// stacks_fork_child drops, in the child of a fork, the warning that another
// thread was passing to the host.
void stacks_fork_child(void);

// ---- in a collection ----

// stacks_look finds the stack that each thread runs on.  stacks_look_again must
// be called when the root callbacks have returned.  These may have set bounds,
// so only then is it known which threads run on an unknown stack.
void stacks_look(void);
void stacks_look_again(void);

// stacks_count returns the number of stacks, stacks_at one of them.
size_t stacks_count(void);
struct rt_stack *stacks_at(size_t i);

// stacks_prefetch prefetches what scanning stack number i and those after it
// will touch.
void stacks_prefetch(size_t i);

// stacks_running tells whether a thread was found on s.
RT_INLINE bool stacks_running(const struct rt_stack *s)
{
	return s->runs == stacks.looks;
}

// stacks_is_root tells whether s is scanned because it is registered.
RT_INLINE bool stacks_is_root(const struct rt_stack *s)
{
	return !(s->flags & RT_STACK_OWNED) && !stacks_running(s);
}

// stacks_was_told tells whether an owned stack was scanned in this collection.
RT_INLINE bool stacks_was_told(const struct rt_stack *s)
{
	return s->flags & RT_STACK_OWNED && !stacks_running(s) &&
	       atomic_u64_load_relaxed(&s->scanned) == stacks.looks;
}

// stacks_settle makes stacks_claimed false until an owned stack is claimed.
void stacks_settle(void);
bool stacks_claimed(void);

// stacks_format returns the format of one stack, or NULL.  Frames on that stack
// are scanned in it, in addition to the format of all stacks.
const rt_value_format *stacks_format(const struct rt_stack *s);

// stacks_name returns the name of a stack, or NULL.
const char *stacks_name(const struct rt_stack *s);

// stacks_frames returns the list of named frames that the host has saved for a
// stack that no thread runs on, or NULL.
const rt_frame *stacks_frames(const struct rt_stack *s);

// stacks_part_rows fills row for a part of a stack, or for registers, whose
// words may be anything, and returns the number of rows.  The rows are words,
// values in the format of all stacks, and values in the format of the part.
// frames is as for stacks_rows.
enum { STACKS_PART_ROWS = 3 };
unsigned stacks_part_rows(const struct roots_range *part,
			  enum work_words frames,
			  struct work_range row[STACKS_PART_ROWS]);

// stacks_rows fills row with what to scan of a stack that no thread runs on,
// and of the registers that belong to it, and returns the number of rows.
// frames says how a word that may be anything counts: WORK_ANY, WORK_INSIDE or
// WORK_ENDS.  With WORK_ENDS the rows have only such words.
enum { STACKS_ROWS = 6 };
unsigned stacks_rows(const struct rt_stack *s, enum work_words frames,
		     struct work_range row[STACKS_ROWS]);

// stacks_trace tells t the references in an owned stack (rt_trace_stack).
void stacks_trace(rt_tracer *t, struct rt_stack *s);

// The parts of a stopped thread that are scanned.  A part that does not exist
// is an empty range.  If the stack that the thread runs on has a format,
// registers and frames have it too.
struct stacks_thread {
	struct roots_range registers;
	struct roots_range frames; // of the stack that it runs on
	struct roots_range left;   // of its own stack, if it runs on another
};

// stacks_of_thread finds the parts of p's thread that are scanned.  Returns
// false if there are none.
bool stacks_of_thread(struct rt_proc *p, struct stacks_thread *t);

// stacks_fake_frame finds the next frame that the address sanitizer has moved
// off any thread's stack and that a word of *rest points to.  *rest is a part
// of a suspended stack, or its registers; the words that were looked at are
// taken off it.  Returns false if no frame is left.
bool stacks_fake_frame(struct roots_range *rest, struct roots_range *frame);

// stacks_check returns NULL if all invariants hold, otherwise what does not.
// The caller must hold roots.lock, or have the world stopped.
const char *stacks_check(const struct stacks *all);

#endif
