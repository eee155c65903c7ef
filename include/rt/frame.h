/*
 * frame.h - local variables as exact roots.
 *
 * A thread that is attached with RT_THREAD_EXACT names its local variables
 * here, because its stack is not scanned.  On any other thread a variable that
 * is named here is a root as well, and reports show its name
 * (rt_config.checkmark).
 */
#ifndef RT_FRAME_H
#define RT_FRAME_H

#include <rt/alloc.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * What RT_FRAME puts on the stack.  The frames of a thread are a list, newest
 * first.  Only the functions here and the library touch the fields.
 */
typedef struct rt_frame rt_frame;
struct rt_frame {
	rt_frame *prev;
	size_t n;
	const volatile void *const *slot; /* the addresses of n variables */
	const char *names;		  /* "&a, &b" */
};

RT_ABI_ASSERT_(offsetof(struct rt_frame, prev) == 0, "rt_frame is ABI");
RT_ABI_ASSERT_(offsetof(struct rt_frame, n) == 8, "rt_frame is ABI");
RT_ABI_ASSERT_(offsetof(struct rt_frame, slot) == 16, "rt_frame is ABI");
RT_ABI_ASSERT_(offsetof(struct rt_frame, names) == 24, "rt_frame is ABI");
RT_ABI_ASSERT_(sizeof(struct rt_frame) == 32, "rt_frame is ABI");

/*
 * rt_frames_thread_ returns rt_thread_tls as it is now.  After a switch of
 * fibers a function may continue on another thread.  On most processors the
 * compiler may have kept the address of the thread-local variable over the call
 * of the switch; then that address is wrong.  A function that is not inlined
 * finds the address anew.  rt/stack.h says what this means for a host.
 */
#if defined(__x86_64__)
static inline rt_thread *rt_frames_thread_(void)
#else
static __attribute__((noinline, unused)) rt_thread *rt_frames_thread_(void)
#endif
{
	return rt_thread_tls;
}

/*
 * rt_frames_save returns the list of the calling thread's frames.
 * rt_frames_restore replaces it by one that rt_frames_save has returned.  No
 * frame of that list may belong to a block that has ended.
 *
 * A function that is left by longjmp leaves its frames in the list.  So the
 * function that calls setjmp must save the list before that call, and restore
 * it after the jump.  A host that switches stacks must save the list before
 * each switch.  After the switch the function that goes on restores the list of
 * its own stack; the first function on a new stack restores NULL.
 *
 * A thread that is not attached has no frames: for it rt_frames_save returns
 * NULL, and rt_frames_restore does nothing.  Any thread, outside a blocking
 * region, even in its own stop.  Neither blocks, collects or polls.
 */
static inline rt_frame *rt_frames_save(void)
{
	return rt_frames_thread_()->frames;
}

static inline void rt_frames_restore(rt_frame *saved)
{
	rt_thread *t = rt_frames_thread_();

#ifdef RT_FRAME_CHECKS
	if (t->p && t->nogc == RT_NOGC_NONE)
		__builtin_trap();
#endif
	/* Threads that are not attached share *t, so they do not write it. */
	if (t->p)
		__atomic_store_n(&t->frames, saved, __ATOMIC_RELEASE);
}

static inline void rt_frame_push_(rt_frame *f)
{
	f->prev = rt_frames_save();
	rt_frames_restore(f);
}

static inline void rt_frame_pop_(rt_frame *f)
{
	rt_frames_restore(f->prev);
}

/*
 * RT_FRAME(&a, &b) makes the local variables a and b roots until the end of the
 * block.  It takes the addresses of 1 to 16 variables; a block may have several
 * RT_FRAMEs:
 *
 *   struct obj *a = NULL, *b = NULL;
 *   RT_FRAME(&a, &b);
 *
 * A variable is a pointer, an integer of the same size, or a class that
 * consists of one of these.  The compiler refuses a variable whose size is not
 * that of a pointer.  It also refuses a missing &, unless the variable points
 * to something of that size.
 *
 * Whenever the world is stopped, a variable holds null or a reference, as a
 * word in a range of RT_ROOT_EXACT does.  An address inside an object, or one
 * with a tag, keeps nothing alive.  A variable that is not initialised yet does
 * no harm.  A variable must live at least as long as the block.
 *
 * It is a declaration and a statement, so it may not be the only statement of
 * an if.  A block that begins while the thread is not attached has no frame.  A
 * detach takes all frames off the list.
 *
 * Return, break, goto and a C++ exception that leave a block end its frame.
 * longjmp does not (see rt_frames_save).  Nor do pthread_exit and a
 * cancellation that leave a block of C code, unless it was compiled with
 * -fexceptions.  Before a thread ends in that way, it must call
 * rt_frames_restore(NULL).
 *
 * A computed goto (goto *p) must neither enter nor leave such a block: the
 * compiler may not end the frame, or may end one that has not begun.  In an
 * interpreter that jumps from one instruction to the next in this way, the
 * RT_FRAME of the loop must enclose all instructions.  An RT_FRAME of a single
 * instruction must be in a block that ends before the jump.  No jump of any
 * kind may enter a block past its RT_FRAME.
 *
 * Any thread, outside a blocking region, even in its own stop.  A block may
 * contain a whole region, but must not begin or end inside one, because the
 * collector may be reading the list.  So where an exception or the end of the
 * thread may leave a region, the host must use rt_call_blocking, which ends the
 * region before the block.  If the host is compiled with RT_FRAME_CHECKS
 * defined, a block that begins or ends inside a region ends the program by a
 * trap.  Does not block, collect or poll.
 */
#define RT_FRAME(...) RT_FRAME_AT_(__COUNTER__, #__VA_ARGS__, __VA_ARGS__)
#define RT_FRAME_AT_(id, text, ...) RT_FRAME_OF_(id, text, __VA_ARGS__)
#define RT_FRAME_OF_(id, text, ...)                                            \
	const volatile void *const rt_frame_slots_##id[] = {                   \
	    RT_SLOTS_(__VA_ARGS__)};                                           \
	rt_frame rt_frame_##id __attribute__((cleanup(rt_frame_pop_))) = {     \
	    NULL, sizeof rt_frame_slots_##id / sizeof *rt_frame_slots_##id,    \
	    rt_frame_slots_##id, text};                                        \
	rt_frame_push_(&rt_frame_##id)

/* RT_SLOTS_ checks each of up to 16 addresses. */
#define RT_SLOTS_(...)                                                         \
	RT_SLOTS_N_(__VA_ARGS__, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, \
		    3, 2, 1, 0)                                                \
	(__VA_ARGS__)
#define RT_SLOTS_N_(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, N, ...)    \
	RT_SLOTS_##N##_
#define RT_SLOTS_1_(p) RT_SLOT_(p)
#define RT_SLOTS_2_(p, ...) RT_SLOT_(p), RT_SLOTS_1_(__VA_ARGS__)
#define RT_SLOTS_3_(p, ...) RT_SLOT_(p), RT_SLOTS_2_(__VA_ARGS__)
#define RT_SLOTS_4_(p, ...) RT_SLOT_(p), RT_SLOTS_3_(__VA_ARGS__)
#define RT_SLOTS_5_(p, ...) RT_SLOT_(p), RT_SLOTS_4_(__VA_ARGS__)
#define RT_SLOTS_6_(p, ...) RT_SLOT_(p), RT_SLOTS_5_(__VA_ARGS__)
#define RT_SLOTS_7_(p, ...) RT_SLOT_(p), RT_SLOTS_6_(__VA_ARGS__)
#define RT_SLOTS_8_(p, ...) RT_SLOT_(p), RT_SLOTS_7_(__VA_ARGS__)
#define RT_SLOTS_9_(p, ...) RT_SLOT_(p), RT_SLOTS_8_(__VA_ARGS__)
#define RT_SLOTS_10_(p, ...) RT_SLOT_(p), RT_SLOTS_9_(__VA_ARGS__)
#define RT_SLOTS_11_(p, ...) RT_SLOT_(p), RT_SLOTS_10_(__VA_ARGS__)
#define RT_SLOTS_12_(p, ...) RT_SLOT_(p), RT_SLOTS_11_(__VA_ARGS__)
#define RT_SLOTS_13_(p, ...) RT_SLOT_(p), RT_SLOTS_12_(__VA_ARGS__)
#define RT_SLOTS_14_(p, ...) RT_SLOT_(p), RT_SLOTS_13_(__VA_ARGS__)
#define RT_SLOTS_15_(p, ...) RT_SLOT_(p), RT_SLOTS_14_(__VA_ARGS__)
#define RT_SLOTS_16_(p, ...) RT_SLOT_(p), RT_SLOTS_15_(__VA_ARGS__)

/* RT_SLOT_ refuses all but addresses of variables of pointer size. */
#ifdef __cplusplus
#define RT_SLOT_(p) rt_frame_slot_(p)
extern "C++" {
template <typename T> static inline const volatile void *rt_frame_slot_(T *p)
{
	RT_ABI_ASSERT_(sizeof(T) == sizeof(void *),
		       "RT_FRAME takes addresses of pointers");
	return p;
}
}
#else
#define RT_SLOT_(p)                                                            \
	((void)sizeof(struct {                                                 \
		 int RT_FRAME_takes_addresses_of_pointers                      \
		     : sizeof *(p) == sizeof(void *)                           \
		     ? 1                                                       \
		     : -1;                                                     \
	 }),                                                                   \
	 (p))
#endif

#ifdef __cplusplus
}
#endif

#endif
