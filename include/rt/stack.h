/*
 * stack.h - stacks of the host: of fibers, and of values.
 *
 * The library knows the stack that a thread attached with.  This header is for
 * all others: stacks of fibers, coroutines and generators, to which threads
 * switch, and the value stacks of interpreters.  A switch need not call any of
 * these functions.
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
 *    finds that out by itself.  The part of that stack in use begins at the
 *    stack pointer.
 *  - If no thread runs on a stack, a stack pointer that the host has saved
 *    bounds the part in use.  sp is the address of the variable that holds it,
 *    which is a pointer of any type or an integer of that size.  *sp here means
 *    the content of that variable.  A host has such a variable anyway: with
 *    ucontext it is the stack pointer in uc_mcontext, with boost.context the
 *    fcontext_t, with most others the first word of the context.  If sp is
 *    null, or *sp does not lie in [lo, hi], all of the stack is scanned.
 *    No word of the stack is scanned if *sp is hi and the stack grows down, or
 *    if it is lo and the stack grows up.  But its registers (regs_lo) and its
 *    frames (frames) are read all the same.  So when a fiber has ended, the
 *    host should unregister its stack.
 *  - Only aligned words of 8 bytes are scanned, but lo, hi and *sp may have any
 *    alignment.  On a stack that grows down, the words that lo and *sp point
 *    into are scanned as a whole, and hi is rounded down.  On a stack that
 *    grows up, lo is rounded up, and hi and *sp down.  regs_lo is rounded up,
 *    and regs_hi down.
 *  - [regs_lo, regs_hi) is memory with the saved registers of a fiber, if they
 *    are not on its stack.  It is scanned while no thread runs the fiber.  With
 *    ucontext it is uc_mcontext.
 *  - frames is for fibers that use RT_FRAME (rt/frame.h).  *frames is what
 *    rt_frames_save returned when the fiber was left.  The variables that this
 *    list names are roots while no thread runs on the stack.
 *
 * The memory of a stack, the registers, and the variables at sp and frames must
 * be readable until the stack is unregistered.  If the lower part of a stack is
 * a guard, lo must be above the guard.  A suspended fiber must not have data
 * below its saved stack pointer.
 *
 * Any of this memory may be part of an object of the heap.  But a registration
 * keeps no object alive.  So until the stack is unregistered, the object must
 * be alive, or wait for a destructor that unregisters the stack.  The variables
 * at sp and frames hold no references, so plain stores into them will do in
 * later versions as well (rt/barrier.h).
 *
 * A registered stack is a root.  But a stack with RT_STACK_OWNED belongs to an
 * object, and is a root only while a thread runs on it.  At other times it is
 * scanned when a callback calls rt_trace_stack: in most hosts the trace
 * callback of that object, or else a root callback.  So a suspended fiber that
 * nothing else refers to is collected, even if its own stack refers to it.
 *
 * If a thread runs on a stack that is not known, that stack is scanned from the
 * stack pointer to the end of its mapping.  The library finds this end in
 * /proc/self/maps; without /proc it is the first page that cannot be read.
 * Unless the stack that the thread attached with is registered
 * (RT_STACK_THREAD), it is then scanned whole, and the system is asked about
 * every page of it.  The warn handler is told once for each thread.  Each such
 * collection reads that file.
 *
 * While a thread with RT_THREAD_EXACT runs on a stack, that stack is not
 * scanned, even if it is registered.  But a registered stack that it has left
 * is scanned like any other, because it is not known which thread will run on
 * it next.  If only the frames on such a stack are to be roots, the host can
 * make sp lead to a variable that holds hi.
 *
 * When such a thread runs on another stack with frames of its own, the frames
 * on the stack that it attached with are no roots.  To keep them, the host
 * registers a few words, for example zeros, as a stack.  The field frames leads
 * to a variable that the host sets to rt_frames_save() before the switch, and
 * to NULL when the thread is back.
 *
 * After a switch a fiber may run on another thread.  Then no rt_thread * from
 * before the switch is valid.  Nor is the address of a thread-local variable,
 * which a compiler may keep over a call.  This concerns every function that is
 * active during the switch: the one that switches, its caller, and so on.  On
 * x86-64, gcc and clang do not keep the address of the library's own
 * thread-local variable.  On other processors these functions must use none of
 * the inline functions and macros that find the thread themselves:
 *
 *  - for inline allocation, they are compiled with RT_NO_INLINE_ALLOC, or call
 *    rt_alloc_in or rt_alloc_kind_in with rt_thread_self();
 *  - for rt_poll, they call rt_safepoint;
 *  - for RT_STORE, rt_nogc_enter and rt_nogc_leave, they call a function of the
 *    host that uses these, does not switch, and must not be inlined.
 *
 * The functions and macros of rt/frame.h are right everywhere.  A thread-local
 * variable of the host's own needs such a function on every processor.
 *
 * A function of the host that the library calls must return on the thread that
 * called it.  Examples are a destructor, a handler and the fn of
 * rt_call_blocking.
 *
 * A fork may leave a fiber without its thread.  Then no thread runs on its
 * stack in the child, and the stack is scanned as *sp and *frames say.  The
 * host saved these when the fiber was last left.  The frames to which *frames
 * leads may have ended since, and reading them may end the child.  So before
 * the child collects, the host must unregister each such stack that has frames,
 * or set *frames to NULL.  (A host that sets *frames to NULL whenever the fiber
 * goes on need not do that.)  rt/fork.h says what else a child must remove.
 */
enum rt_stack_flags {
	RT_STACK_DOWN = 0,   /* grows down: [*sp, hi) is in use, and its words
				are read as those of a thread's stack */
	RT_STACK_UP = 1,     /* grows up: [lo, *sp) is in use, and its words
				are read as in a range of RT_ROOT_WORDS.  No
				thread runs on it */
	RT_STACK_EXACT = 2,  /* while no thread runs on it, its words are read
				as in a range of RT_ROOT_EXACT, even with
				RT_STACK_UP */
	RT_STACK_THREAD = 4, /* the calling thread's own; the library finds lo
				and hi */
	RT_STACK_OWNED = 8   /* scanned by rt_trace_stack, and while a thread
				runs on it; neither keeps the owner */
};

/*
 * RT_STACK_UP with RT_STACK_OWNED is the value stack of an object, such as a
 * coroutine of an interpreter.  No thread ever runs on it, so it is scanned
 * only when a trace callback or a root callback calls rt_trace_stack.  If that
 * is the trace callback of the object, even a coroutine that runs must be
 * reachable, or its value stack is not scanned.
 *
 * The words of a stack with a format are values.  On a stack that grows up each
 * value is read as such, and as nothing else.  With stride 16 the values begin
 * at lo, and half a value below *sp is not read.
 *
 * On a stack that grows down and lacks RT_STACK_EXACT, each word is read in up
 * to three ways: as an address, in rt_config.stack_format, and in the format of
 * the stack.  So a stack needs no format of its own if that would be
 * stack_format.  If test_at is 0, as in NaN boxes, the word is tested as the
 * format says.  With test_at 1 or -1 the tag is not tested: every word counts
 * as a value word.  In both cases the address is computed as the format says.
 * The same holds for the registers of such a stack, and for those of a thread
 * that runs on it.
 *
 * rt_config.past_end holds for stacks that grow down and lack RT_STACK_EXACT,
 * and for registers.
 */
typedef struct rt_stack_desc {
	size_t struct_size;
	void *lo;
	void *hi;
	const volatile void *sp; /* address of a variable; read in a stop; may
				    be NULL */
	const void *regs_lo;	 /* NULL: on the stack */
	const void *regs_hi;
	rt_frame *const volatile *frames; /* read in a stop; NULL: none */
	const rt_value_format *format;	  /* NULL: plain; copied */
	const char *name; /* for reports; NULL, or copied, at most
			     31 bytes */
	uint32_t flags;	  /* of enum rt_stack_flags, or-ed */
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
 * rt_stack_register registers a stack.  *d is copied, but not the memory that
 * sp, frames and regs_lo lead to.  A registration ends by rt_stack_unregister,
 * and with the heap.  Registering and unregistering take the same time however
 * many stacks there are.  (Only unregistering a stack around the caller's frame
 * takes longer.)  A stack may lie inside another; a stack pointer in both is on
 * the inner one.
 *
 * With RT_STACK_THREAD the stack is the one that the caller attached with.
 * Thus *sp bounds the part in use while the thread runs on another.  lo and hi
 * must be NULL.  This registration also ends when the thread detaches, and in
 * the child of a fork that lacks the thread.
 *
 * Returns 0 and sets *out to the registration, or returns an error and leaves
 * *out untouched:
 *   RT_EINVAL  d or out is null; struct_size is wrong, as for
 *              rt_kind_register; only one of regs_lo and regs_hi is null, or
 *              regs_hi is below regs_lo; format is not in order
 *              (rt_value_format); a flag is unknown; spare is not 0; a format
 *              is given with RT_STACK_EXACT.  Without RT_STACK_THREAD: lo is
 *              null or not below hi.  With RT_STACK_THREAD: lo or hi is not
 *              null, or another flag is set
 *   RT_ENOENT  RT_STACK_THREAD: the caller attached with RT_THREAD_EXACT, or
 *              has no stack of its own
 *   RT_EEXIST  RT_STACK_THREAD: the caller has registered its stack already
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
 * Returns 0, or RT_EINVAL (s is null, or was unregistered and its record is not
 * in use again), RT_EBUSY (the caller runs on the stack, and did not register
 * it with RT_STACK_THREAD; or the caller has stopped the world), RT_EPERM (not
 * attached), RT_ESTATE (inside a blocking region; no heap).  Whether another
 * thread runs on the stack is not checked.
 *
 * Attached threads.  Does not collect, block or poll.
 */
RT_API int rt_stack_unregister(rt_stack *s);

/*
 * rt_stack_move tells that a stack is now [lo, hi).  It is for value stacks
 * that are reallocated.  The caller must not poll from the moment when the old
 * memory ceases to be readable until it has called rt_stack_move and set *sp.
 * So it may call realloc, but not a function that polls or blocks, such as
 * rt_realloc, and must not wait for a lock in a blocking region.
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
 * or if the stack lacks RT_STACK_OWNED.  In the last two cases the stack is
 * scanned without this call, unless a thread with RT_THREAD_EXACT runs on it.
 * In one collection a stack is scanned once, however often it is told.
 *
 * The rules of rt/trace.h hold for it.  Does not block or poll.
 */
RT_API void rt_trace_stack(rt_tracer *t, rt_stack *s);

/*
 * rt_thread_set_stack tells that the calling thread runs on [lo, hi) from now
 * on.  It is for hosts that register no stacks.  They call it before each
 * switch, and tell what the other stacks hold in a root callback.  A collection
 * finds out whether the thread runs within these bounds.  If not, the thread
 * counts as running on a stack that is not known.  A call with the bounds that
 * the thread attached with undoes all earlier calls.
 *
 * Returns 0, or RT_EINVAL (lo is null or not below hi), RT_EPERM (not
 * attached), RT_EBUSY (own stop), RT_ESTATE (the thread has registered its
 * stack with RT_STACK_THREAD; inside a blocking region; no heap).
 *
 * Attached threads.  Does not collect, block or poll.
 */
RT_API int rt_thread_set_stack(void *lo, void *hi);

/*
 * rt_thread_stack sets *lo and *hi to the bounds of the stack of t: those that
 * t attached with, or that were set later.  For a thread that attached on a
 * registered stack, they are the bounds of the registered stack that it runs
 * on.
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
 * read.  A callback that is called again in the same stop must set the same
 * bounds.
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
