/*
 * frame.h - local variables as exact roots.
 *
 * A thread that is attached with RT_THREAD_EXACT names its local variables
 * here, because its stack is not scanned.  In any other thread a variable that
 * is named here is a root as well, and reports call it by its name
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
 * rt_frames_thread_ returns rt_thread_tls as it is now.  Where a compiler keeps
 * the address of a thread-local variable over a call, as it does on most
 * processors, that address is wrong after a switch of fibers that came back on
 * another thread.  A function of its own finds it anew.
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
 * rt_frames_restore replaces it by one that rt_frames_save has returned.  The
 * blocks of all frames in it must not have ended.
 *
 * A function that is left by longjmp leaves its frames in the list.  So the
 * function that calls setjmp must save before, and restore after the jump.  A
 * host that switches stacks saves before each switch, and restores the list of
 * the stack that it has switched to; that of a new stack is NULL.
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
 * block.  It takes the addresses of one or more variables of pointer size:
 *
 *   struct obj *a = NULL, *b = NULL;
 *   RT_FRAME(&a, &b);
 *
 * What a variable holds when the world is stopped is null or a reference, as in
 * a range of RT_ROOT_EXACT.  An address inside an object, or one with a tag,
 * keeps nothing alive there.  A variable that is not set yet does no harm.  A
 * variable must live at least as long as the block.
 *
 * It is a declaration and a statement, so it may not be the only statement of
 * an if.  A block may have several.  A block that begins while the thread is
 * not attached has no frame.  A detach takes all frames off the list.
 *
 * A block that ends by return, break or goto ends its frame, and one that a C++
 * exception leaves as well.  One that longjmp leaves does not (rt_frames_save).
 * The same goes for C code that pthread_exit or a cancellation leaves, unless
 * it was compiled with -fexceptions; a thread calls rt_frames_restore(NULL)
 * before it ends in that way.
 *
 * Any thread, outside a blocking region, even in its own stop.  A block may
 * contain a whole region.  Does not block, collect or poll.
 */
#define RT_FRAME(...) RT_FRAME_AT_(__COUNTER__, #__VA_ARGS__, __VA_ARGS__)
#define RT_FRAME_AT_(id, text, ...) RT_FRAME_OF_(id, text, __VA_ARGS__)
#define RT_FRAME_OF_(id, text, ...)                                            \
	const volatile void *const rt_frame_slots_##id[] = {__VA_ARGS__};      \
	rt_frame rt_frame_##id __attribute__((cleanup(rt_frame_pop_))) = {     \
	    NULL, sizeof rt_frame_slots_##id / sizeof *rt_frame_slots_##id,    \
	    rt_frame_slots_##id, text};                                        \
	rt_frame_push_(&rt_frame_##id)

#ifdef __cplusplus
}
#endif

#endif
