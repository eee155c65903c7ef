/*
 * thread.h - attaching threads, blocking regions, polls.
 *
 * A thread that wants to allocate or to hold pointers into the heap must attach
 * itself.  The collector looks for pointers on the stacks and in the registers
 * of attached threads, and stops these threads while it does so.  A thread
 * stops at calls that poll; inside a blocking region it counts as stopped.
 */
#ifndef RT_THREAD_H
#define RT_THREAD_H

#include <rt/version.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * An attached thread.  The handle belongs to the library and is valid until
 * the thread detaches.
 */
typedef struct rt_thread rt_thread;

struct rt_frame;

/*
 * The part of a thread that the inline functions here and in rt/alloc.h use.
 * It is frozen for this soname, and a host must not touch it itself.  All
 * threads that are not attached share one such struct, which is writable and
 * has no runs.
 */
struct rt_thread {
	/* 1: the thread is in the inline sequence of rt/alloc.h, and no signal
	 * may stop it there.  Only the thread itself writes it. */
	uint8_t nostop;
	/* 1: a stop waits for this thread.  Other threads write it,
	 * atomically; the thread reads it where it polls. */
	uint8_t pending;
	/* 1: RT_STORE records the old value.  It is written while the thread
	 * is stopped. */
	uint8_t barrier;
	uint8_t spare;
	/* How many stretches of rt_nogc_enter the thread is in; RT_NOGC_NONE
	 * where there can be none: if the thread is not attached, and inside a
	 * blocking region.  Only the thread itself writes it. */
	uint8_t nogc;
	uint8_t spare_bytes[3];
	struct rt_frame *frames; /* the newest (rt/frame.h) */
	struct rt_mcache *mc;
	struct rt_proc *p;
	/* The row of a struct rt_runs: [row * RT_RUN_CLASSES + class]. */
	struct rt_run *run;
	void *reserved_words[3];
};

enum { RT_NOGC_NONE = 255 };

RT_ABI_ASSERT_(offsetof(struct rt_thread, nostop) == 0, "rt_thread is ABI");
RT_ABI_ASSERT_(offsetof(struct rt_thread, pending) == 1, "rt_thread is ABI");
RT_ABI_ASSERT_(offsetof(struct rt_thread, barrier) == 2, "rt_thread is ABI");
RT_ABI_ASSERT_(offsetof(struct rt_thread, nogc) == 4, "rt_thread is ABI");
RT_ABI_ASSERT_(offsetof(struct rt_thread, frames) == 8, "rt_thread is ABI");
RT_ABI_ASSERT_(offsetof(struct rt_thread, mc) == 16, "rt_thread is ABI");
RT_ABI_ASSERT_(offsetof(struct rt_thread, p) == 24, "rt_thread is ABI");
RT_ABI_ASSERT_(offsetof(struct rt_thread, run) == 32, "rt_thread is ABI");
RT_ABI_ASSERT_(sizeof(struct rt_thread) == 64, "rt_thread is ABI");

/* The handle of the calling thread; never NULL.  Only the library writes it. */
extern RT_API __thread rt_thread *rt_thread_tls
    __attribute__((tls_model("initial-exec")));

/*
 * RT_THREAD_EXACT: the thread has exact roots only, such as the variables that
 * it names by RT_FRAME (rt/frame.h).  Its stack and registers are not scanned.
 * RT_THREAD_COOPERATIVE: the thread stops only where it polls.  In this version
 * that holds for every thread.
 */
enum { RT_THREAD_EXACT = 1, RT_THREAD_COOPERATIVE = 2 };

/*
 * rt_thread_attach attaches the calling thread.  flags are 0, or constants
 * above that are or-ed.  The library asks the system for the bounds of the
 * stack.  An attached thread that exits is detached, before pthread_join
 * returns.
 *
 * For the functions of the library a stack of 16 KiB is enough.  Callbacks and
 * handlers of the host need room beyond that.  A thread that allocates may be
 * the one that collects, and then callbacks of the collection run on its stack.
 *
 * The frames on the thread's stack, and its registers, are roots.  Thread-local
 * variables (__thread, thread_local) and thread-specific data are not, on any
 * thread: the host must register them (rt/roots.h).  The main thread's stack
 * may grow later, even beyond the limit (RLIMIT_STACK) that held when it
 * attached.
 *
 * A thread may run on another stack for a while, as coroutines do.  rt/stack.h
 * says how the host makes that stack known.  Unless the attached stack is
 * registered (RT_STACK_THREAD), all of it is a root meanwhile, as far down as
 * it can be read.  Then a collection asks the system about every page of the
 * attached stack, used or not.  That takes milliseconds for a stack of 8 MiB.
 *
 * A thread may attach while it runs on a registered stack.  It then has no
 * stack of its own: whatever registered stack it runs on is scanned.
 *
 * Returns 0, or RT_EINVAL (unknown flags; or the caller runs neither on the
 * stack that the system knows for its thread nor on a registered one, and the
 * flags lack RT_THREAD_EXACT: use rt_thread_attach_stack), RT_ENOMEM (no
 * memory), RT_ENOTSUP (the system refuses to report the bounds of the stack,
 * and the flags lack RT_THREAD_EXACT; the warn handler is told the errno),
 * RT_EBUSY (inside a callback of a collection, or a thread of the library),
 * RT_ESTATE (attached already; no heap, or another thread is ending it).
 *
 * Any thread.  Blocks while the world is stopped.  Does not collect.
 */
RT_API int rt_thread_attach(unsigned flags);

/*
 * rt_thread_attach_stack is rt_thread_attach for a thread that runs on a stack
 * that the system does not know, [lo, hi).  It is scanned from the stack
 * pointer up to hi.  Do not pass the whole area of a thread that pthread_create
 * made, because the C library keeps the thread's thread-local variables at the
 * upper end.  The stack must stay readable until the thread detaches.  If the
 * host protects a page later, nothing at or below that page is scanned while
 * the thread runs on another stack.  The call asks the system about each page.
 *
 * Also returns RT_EINVAL if lo or hi is null, if lo is not below hi, or if the
 * caller's frame is not between them.  Without RT_THREAD_EXACT it also returns
 * RT_EINVAL if a page cannot be read (a guard page at the low end is not part
 * of the stack).  The low end of a stack that grows need not be mapped yet.
 *
 * Any thread.  Blocks while the world is stopped.  Does not collect.
 */
RT_API int rt_thread_attach_stack(void *lo, void *hi, unsigned flags);

/*
 * rt_thread_detach detaches the calling thread from the heap.  From then on its
 * stack and registers keep nothing alive, and its handle is invalid.
 *
 * Returns 0, or RT_EPERM (not attached), RT_EBUSY (own stop, or inside a
 * destructor), RT_ESTATE (inside a blocking region or a no-GC stretch; no
 * heap).
 *
 * Attached threads.  Blocks while the world is stopped.  Does not collect.
 */
RT_API int rt_thread_detach(void);

/*
 * rt_thread_self returns the handle of the calling thread, or NULL if the
 * thread is not attached.  An interpreter can keep the handle in a register for
 * rt_alloc_in.  No other thread may allocate with it.
 *
 * Any thread, at any time, even before rt_init, inside a blocking region, in
 * its own stop and in a signal handler.  Does not block.
 */
RT_API rt_thread *rt_thread_self(void);

/*
 * rt_blocking_enter begins a blocking region: the thread counts as stopped
 * until rt_blocking_leave, so it may sleep, wait for a lock or run foreign code
 * for any time without delaying a stop.  The library never signals it.
 * rt_blocking_enter saves the registers and the stack pointer, so objects to
 * which the thread refers at the call stay alive.  The calling function must
 * not return inside the region, because its frame may hold its caller's
 * registers.  The constructor of a C++ guard object is such a function, and
 * must be forced inline.  A pointer that the compiler moves from the stack to a
 * register inside the region is not seen.  rt_call_blocking has neither limit,
 * because the frames that were saved do not change while fn runs.
 *
 * Until rt_blocking_leave the thread must not obtain heap pointers, or store
 * any into the heap or into roots.  Nor must it change what a root or trace
 * callback reads: another thread may collect at any time, even in a host with
 * one thread, because the background thread may (rt_config.gc_period_s).  It
 * must not call a function that only attached threads may call.  The library
 * cannot detect every breach of these rules.  Leaving the region by longjmp is
 * an error.
 *
 * The library cannot see that a C++ exception, pthread_exit or a deferred
 * cancellation leaves the function that called this.  Then the region lasts
 * until the host calls rt_blocking_leave, for example in a destructor or a
 * cleanup handler, or until the thread ends.  Handlers that run before that may
 * call rt_roots_remove, but must not allocate.  rt_call_blocking needs no such
 * care.
 *
 * Returns 0, or RT_EPERM (not attached), RT_EBUSY (own stop), RT_ESTATE
 * (already inside one: regions do not nest; inside a no-GC stretch; no heap).
 *
 * Attached threads.  Does not collect, block or poll.
 */
RT_API int rt_blocking_enter(void);

/*
 * rt_blocking_leave ends a blocking region, on the thread that began it.
 *
 * Returns 0, or RT_EPERM (not attached), RT_ESTATE (not inside one; no heap).
 *
 * Attached threads.  Blocks while the world is stopped, and for microseconds
 * while the background thread takes free pages from the cache of this one
 * (rt_config.idle_s).  Does not collect.
 */
RT_API int rt_blocking_leave(void);

/*
 * rt_call_blocking calls fn(arg) inside a blocking region and returns its
 * result, which must not be a heap pointer that the thread did not have before.
 * For a thread that is not attached, is inside a region already, or has stopped
 * the world, it just calls fn.  Without a heap it does the same.  If fn is
 * null, it does nothing and returns NULL, whatever the state of the thread.
 * Inside a no-GC stretch, too, it calls nothing and returns NULL.  arg may be
 * NULL.
 *
 * fn may be left by a C++ exception, by pthread_exit or by a deferred
 * cancellation: that ends the region, as returning does.  Destructors and
 * cleanup handlers of frames inside fn run inside the region, those of its
 * caller outside.  (With musl, pthread_exit and cancellation do not unwind: all
 * handlers run inside the region, which ends with the thread.)
 *
 * fn must not be left by longjmp to a frame outside: the thread would still be
 * inside the region, but the frames that the region saved would be gone.  A
 * host whose errors are longjmps must catch them in fn, and jump on when
 * rt_call_blocking has returned.
 *
 * Any thread.  If it has begun a region, it blocks at the end of fn while the
 * world is stopped, as rt_blocking_leave does.  Does not collect.
 */
RT_API void *rt_call_blocking(void *(*fn)(void *), void *arg);

/*
 * rt_safepoint stops the thread here if a stop is requested.  A loop of an
 * attached thread outside a blocking region must poll every few microseconds:
 * it calls rt_safepoint, rt_poll or another function that polls.  Allocation is
 * enough only if the loop allocates much (rt/alloc.h).  If no stop is
 * requested, rt_safepoint costs a call and a few tests.
 *
 * If there is no background thread (gc_threads 0, or the system refuses one),
 * and something is left to sweep (rt_config.sweep), each call also sweeps one
 * part of the heap.  That is at most 4 MiB, and takes 10 to 50 microseconds.  A
 * stop waits for that.
 *
 * Any thread.  It does nothing on a thread that is not attached, inside a
 * blocking region or a no-GC stretch, and in the caller's own stop.  Blocks and
 * polls.  Does not collect, but another thread may collect while this one is
 * stopped.  With RT_FINALIZE_POLL it runs destructors, which may collect.
 */
RT_API void rt_safepoint(void);

/*
 * rt_poll calls rt_safepoint if a stop is requested.  Otherwise it is two loads
 * and a test, inline: it runs no destructors even with RT_FINALIZE_POLL, and
 * sweeps nothing.  For a stop it does the same as rt_safepoint.
 *
 * Any thread, as rt_safepoint.
 */
static inline void rt_poll(void)
{
	if (__builtin_expect(
		__atomic_load_n(&rt_thread_tls->pending, __ATOMIC_RELAXED), 0))
		rt_safepoint();
}

/*
 * ---- Stretches without collection ----
 *
 * In a no-GC stretch, from rt_nogc_enter to rt_nogc_leave, the calling thread
 * is not stopped.  So no collection and no other stop happens meanwhile, and
 * pointers may be where the collector does not look.  Each requested stop waits
 * for the end of the stretch, so a stretch should last only microseconds.
 *
 * Inside:
 *  - A function that blocks or polls returns RT_ESTATE, NULL or 0 at once, even
 *    in the caller's own stop.  So does rt_blocking_enter.  rt_safepoint and
 *    rt_poll do nothing.
 *  - The library calls no ready callback and no handler but the fatal one.
 *    Those that it does not call are told by a later call.
 *    rt_set_warn_handler names an exception.
 *  - Allocation works, but neither collects nor polls, and calls no handler.
 *    It passes the heap's goal and the memory limit, but not the hard limit
 *    (rt_set_heap_max).  It returns NULL only if there is no memory without a
 *    collection.  gcstress (rt_config) does not count it.
 *  - fork works, and so does rt_fork_prepare; parent and child continue inside
 *    the stretch.  But a fork is a stop.  If another thread's stop comes first,
 *    this thread is stopped for that one, as if it polled.
 *  - longjmp and exceptions do not end a stretch: the thread is still inside,
 *    and all stops wait.  A host whose errors leave stretches in that way must
 *    count its stretches itself.  It notes the count at the setjmp or the try;
 *    after the error it calls rt_nogc_leave once for each stretch begun since.
 *    A thread that exits inside a stretch is detached, and that ends the
 *    stretch.
 *  - A lock that is taken inside a stretch must be taken inside one everywhere.
 *    Otherwise this thread may wait for a lock whose owner is stopped, while
 *    the stop waits for this thread.
 *
 * Stretches nest, up to 254 deep.
 */

/* The inline functions below call these where they cannot decide. */
RT_API int rt_nogc_refused_(const rt_thread *t);
RT_API int rt_nogc_poll_(rt_thread *t);

/*
 * rt_nogc_enter begins a no-GC stretch, which may be inside another one.
 *
 * Returns 0, or RT_EPERM (not attached), RT_ESTATE (inside a blocking region;
 * 254 stretches deep; no heap).
 *
 * Attached threads, outside a blocking region, even in their own stop.  Does
 * not block, collect or poll.
 */
static inline int rt_nogc_enter(void)
{
	rt_thread *t = rt_thread_tls;
	uint8_t depth = t->nogc;

	if (__builtin_expect(depth >= RT_NOGC_NONE - 1, 0))
		return rt_nogc_refused_(t);
	depth++;
	__atomic_store_n(&t->nogc, depth, __ATOMIC_RELAXED);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	return RT_OK;
}

/*
 * rt_nogc_leave ends the innermost stretch.  If no other stretch is left, and a
 * stop waits for the thread, the thread is stopped here.
 *
 * Returns 0, or RT_EPERM (not attached), RT_ESTATE (not inside a stretch;
 * inside a blocking region; no heap).
 *
 * Attached threads, even in their own stop, which it does not end.  Blocks and
 * polls, but only when it ends the last stretch.  Does not collect.
 */
static inline int rt_nogc_leave(void)
{
	rt_thread *t = rt_thread_tls;
	uint8_t depth = t->nogc;

	depth--; /* from 0 to RT_NOGC_NONE */
	if (__builtin_expect(depth >= RT_NOGC_NONE - 1, 0))
		return rt_nogc_refused_(t);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	__atomic_store_n(&t->nogc, depth, __ATOMIC_RELAXED);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	if (__builtin_expect(
		!depth && __atomic_load_n(&t->pending, __ATOMIC_RELAXED), 0))
		return rt_nogc_poll_(t);
	return RT_OK;
}

#ifdef __cplusplus
}
#endif

#endif
