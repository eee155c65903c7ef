/*
 * stack.h - stacks of the host: of fibers, and of values.
 *
 * The stack that a thread attached with is known.  This header is for all
 * others: stacks of fibers, coroutines and generators, which threads switch to,
 * and the value stacks of interpreters.  A switch calls nothing here.
 */
#ifndef RT_STACK_H
#define RT_STACK_H

#include <rt/version.h>
#include <rt/frame.h>
#include <rt/thread.h>
#include <rt/trace.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * A stack is memory of the host, [lo, hi), of which a part is in use.
 *
 *  - A thread runs on the stack that its stack pointer lies in.  A collection
 *    finds that out by itself.  The part in use then begins at the stack
 *    pointer.
 *  - Of a stack that no thread runs on, a stack pointer that the host has saved
 *    bounds the part in use.  sp is the address of the variable that has it, a
 *    pointer of any type or an integer of that size.  Below, *sp is what that
 *    variable holds.  The host keeps it anyway: for ucontext it is the stack
 *    pointer in uc_mcontext, for boost.context the fcontext_t, for most others
 *    the first word of the context.  If sp is null, or *sp does not lie in
 *    [lo, hi], all of the stack is scanned.  Nothing is in use if *sp is hi
 *    of a stack that grows down, or lo of one that grows up.  (With
 *    RT_STACK_THREAD hi is outside as well.)
 *  - [regs_lo, regs_hi) is memory with the registers of a fiber that no thread
 *    runs, if they are not saved on its stack.  For ucontext that is
 *    uc_mcontext.
 *  - *frames is what rt_frames_save returned when the fiber was left, for
 *    fibers that use RT_FRAME (rt/frame.h).  The variables that it leads to are
 *    roots while no thread runs on the stack.
 *
 * The memory of a stack and what sp and frames lead to must be readable until
 * the stack is unregistered.  A stack whose lower part is a guard begins above
 * the guard. A fiber must not use memory below its saved stack pointer.
 *
 * A registered stack is a root.  With RT_STACK_OWNED it is one only while a
 * thread runs on it.  Otherwise it belongs to an object: it is scanned when a
 * trace callback of that object calls rt_trace_stack.  So a suspended fiber
 * that nothing refers to is collected, even if its own stack refers to it.
 *
 * If a thread runs on a stack that is not known, it is scanned from its stack
 * pointer to the end of the mapping, as /proc/self/maps has it, or without
 * /proc to the first page that cannot be read.  The warn handler is told so
 * once for each thread.  The stack that the thread attached with is then
 * scanned whole.  Each such collection reads that file, and asks the system
 * about every page of the attached stack.
 *
 * A thread with RT_THREAD_EXACT has no stack that is scanned, whichever it runs
 * on.  While it runs on a registered one, that is not scanned either.  But one
 * that it has left is scanned as any other, because it is not known which
 * thread will run on it.  If only its frames are to be roots, the host makes sp
 * lead to a variable that holds hi.  In this way such a thread also keeps the
 * frames of the stack that it attached with while it runs on another.  It
 * registers any few words as a stack, with frames leading to a variable that it
 * sets to rt_frames_save() before the switch, and to NULL when it is back.
 *
 * After a switch that may move a fiber to another thread, no rt_thread * from
 * before is valid.  A compiler may keep the address of a thread-local variable
 * over a call, so the function that switches must not be inlined.
 *
 * In the child of a fork a stack on which a lost thread ran is scanned as *sp
 * says.
 */
enum rt_stack_flags {
	RT_STACK_DOWN = 0,   /* grows down: [*sp, hi) is in use; any word counts
				that a word of a thread's stack would */
	RT_STACK_UP = 1,     /* grows up: [lo, *sp) is in use; as a root range
				with RT_ROOT_WORDS.  No thread runs on it */
	RT_STACK_EXACT = 2,  /* as a root range with RT_ROOT_EXACT */
	RT_STACK_THREAD = 4, /* the calling thread's own; lo, hi are found */
	RT_STACK_OWNED = 8   /* scanned by rt_trace_stack, and while a thread
				runs on it; the owner is kept by neither */
};

/*
 * RT_STACK_UP with RT_STACK_OWNED is the value stack of an object, such as a
 * coroutine of an interpreter.  No thread ever runs on it, so it counts only
 * where the trace callback tells it.  A coroutine that runs must be reachable
 * as well, or its value stack is not scanned.
 *
 * The words of a stack with a format are values.  On a stack that grows up they
 * are nothing else.  On a stack that grows down they are also read plainly and
 * in rt_config.stack_format, and each word counts as a value word, whatever its
 * tag is.  The same holds for the stack's registers, and for those of a thread
 * that runs on it.
 *
 * rt_config.past_end is for stacks that grow down, without RT_STACK_EXACT, and
 * for registers.
 */
typedef struct rt_stack_desc {
	size_t struct_size;
	void *lo;
	void *hi;
	const volatile void *sp; /* of a variable; read in a stop; may be
				    NULL */
	const void *regs_lo;	 /* NULL: on the stack */
	const void *regs_hi;
	rt_frame *const volatile *frames; /* read in a stop; NULL: none */
	const rt_value_format *format;	  /* NULL: plain; copied */
	const char *name; /* for reports; NULL, or copied, at most
			     31 bytes */
	uint32_t flags;	  /* a union of enum rt_stack_flags */
	uint32_t spare;	  /* 0 */
} rt_stack_desc;

typedef struct rt_stack rt_stack;

/*
 * rt_stack_desc_init_sized sets the first size bytes of *d to zeros, and
 * struct_size to size.  A null d is ignored.
 *
 * Any thread, at any time.  Does not block.
 */
RT_API void rt_stack_desc_init_sized(rt_stack_desc *d, size_t size);
#define rt_stack_desc_init(d) rt_stack_desc_init_sized((d), sizeof *(d))

/*
 * rt_stack_register registers a stack.  *d is copied, but not what sp, frames
 * and the registers lead to.  A registration ends by rt_stack_unregister, and
 * with the heap.  Registering and unregistering take the same time however many
 * stacks there are, unless it is a stack around the caller's frame that is
 * unregistered.  Stacks may lie inside others; the innermost counts.
 *
 * With RT_STACK_THREAD the stack is the one that the caller attached with, so
 * that it is bounded by *sp while the thread runs on another.  lo and hi must
 * be NULL.  This registration also ends when the thread detaches, and in the
 * child of a fork in which the thread is lost.
 *
 * Returns 0, and the registration in *out, or an error, and *out is untouched:
 *   RT_EINVAL  d or out is null; *d is not initialised (as a rt_kind_desc); lo
 *              is not below hi; regs_lo and regs_hi are neither both null nor
 *              in order; format is not in order; a flag is unknown; spare is
 *              not 0; RT_STACK_EXACT has a format; RT_STACK_THREAD has another
 *              flag
 *   RT_ENOENT  RT_STACK_THREAD: the caller attached with RT_THREAD_EXACT, or
 *              has no stack of its own
 *   RT_EEXIST  RT_STACK_THREAD: it has registered it already
 *   RT_ENOMEM  there is no memory
 *   RT_EPERM   the caller is not attached
 *   RT_EBUSY   the caller has stopped the world
 *   RT_ESTATE  the caller is inside a blocking region, or there is no heap
 *
 * Attached threads.  Does not collect, block or poll.
 */
RT_API int rt_stack_register(const rt_stack_desc *d, rt_stack **out);

/*
 * rt_stack_unregister ends a registration; s is invalid from then on.  No
 * thread may run on the stack.
 *
 * Returns 0, or RT_EINVAL (s is null, or was unregistered and its memory is not
 * used again), RT_EBUSY (the caller runs on it, unless it is its own; or has
 * stopped the world), RT_EPERM (not attached), RT_ESTATE (inside a blocking
 * region; no heap).  That no other thread runs on it is not checked.
 *
 * Attached threads.  Does not collect, block or poll.
 */
RT_API int rt_stack_unregister(rt_stack *s);

/*
 * rt_stack_move tells that a stack is now [lo, hi), for value stacks that are
 * reallocated.  The caller must not poll from the moment when the old memory
 * ceases to be readable until it has called this and set *sp.  So it may use
 * realloc, but not a function that polls or blocks, such as rt_realloc or a
 * lock for which it waits in a blocking region.
 *
 * Returns 0, or RT_EINVAL (s as in rt_stack_unregister; lo is null or not below
 * hi; RT_STACK_THREAD), RT_EBUSY, RT_EPERM or RT_ESTATE (as
 * rt_stack_unregister).
 *
 * Attached threads.  Does not collect, block or poll.
 */
RT_API int rt_stack_move(rt_stack *s, void *lo, void *hi);

/*
 * rt_trace_stack tells what an owned stack holds, as if it were a root: the
 * part in use, the registers and the frames.  It is for trace callbacks and
 * root callbacks.  It does nothing if s is null, if a thread runs on the stack,
 * or if the stack has no RT_STACK_OWNED, because it is a root then.  In one
 * collection a stack is scanned once, however often it is told.
 *
 * As the functions of rt/trace.h.  Does not block or poll.
 */
RT_API void rt_trace_stack(rt_tracer *t, rt_stack *s);

/*
 * rt_thread_set_stack tells that the calling thread runs on [lo, hi) from now
 * on.  It is for hosts that register no stacks: they call it before each
 * switch, and tell what the other stacks hold in a root callback.  A collection
 * finds out whether the thread runs there.  If it does not, it runs on a stack
 * that is not known.  A call with the bounds that the thread attached with
 * undoes all earlier ones.
 *
 * Returns 0, or RT_EINVAL (lo is null or not below hi), RT_EPERM (not
 * attached), RT_EBUSY (own stop), RT_ESTATE (the thread has registered its
 * stack with RT_STACK_THREAD; inside a blocking region; no heap).
 *
 * Attached threads.  Does not collect, block or poll.
 */
RT_API int rt_thread_set_stack(void *lo, void *hi);

/*
 * rt_thread_stack reads the bounds of the stack of t: those it attached with,
 * or that were set.  A thread that attached on a registered stack has the
 * bounds of the one that it runs on.
 *
 * Returns 0, or RT_EINVAL (t, lo or hi is null), RT_ENOENT (the thread has no
 * stack that is known), RT_EPERM (not attached; or t is another thread, and the
 * caller has not stopped the world and is not in a root callback), RT_ESTATE
 * (inside a blocking region; no heap).
 *
 * Attached threads, even in their own stop, and root callbacks.  Does not
 * collect, block or poll.
 */
RT_API int rt_thread_stack(rt_thread *t, void **lo, void **hi);

/*
 * rt_thread_set_stack_of does for another thread what rt_thread_set_stack does
 * for the caller.  It is for root callbacks, which run before any stack is
 * read.  A callback that is called again sets the same bounds.
 *
 * Returns 0, or RT_EINVAL (t is null, or as rt_thread_set_stack), RT_ESTATE
 * (the thread t has registered its stack with RT_STACK_THREAD; no heap), or
 * RT_EPERM (not in a root callback).
 *
 * Root callbacks.  Does not block or poll.
 */
RT_API int rt_thread_set_stack_of(rt_thread *t, void *lo, void *hi);

#ifdef __cplusplus
}
#endif

#endif
