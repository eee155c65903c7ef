/*
 * roots.h - memory outside the heap that holds pointers into it.
 *
 * The stack and the registers of an attached thread are roots by themselves,
 * unless it attached with RT_THREAD_EXACT.  Static and thread-local variables,
 * and memory from malloc or mmap, are roots only while they are registered
 * here, or if a root callback tells the pointers in them.  rt_roots_static
 * makes all static variables roots.  A handle is a root for one pointer.
 *
 * All that is registered here ends with the heap (rt_fini).  A host that makes
 * a new heap must register it again.
 */
#ifndef RT_ROOTS_H
#define RT_ROOTS_H

#include <rt/version.h>
#include <rt/trace.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * What the words of a range hold.
 *
 * RT_ROOT_EXACT: each word is null or a reference, which is an address that an
 * allocation has returned.  A word that is neither keeps nothing alive: an
 * address inside an object does not, nor does one with a tag in its low bits.
 * There is one exception: in an RT_NOSCAN object of 16 bytes any address counts
 * as a reference.  Several requests of less than RT_NOSCAN_MIN bytes may share
 * such an object.  A request of 9 to 16 bytes has one to itself, but the
 * library cannot tell the two apart.  (With rt_config.align8 all requests below
 * 16 bytes may share one.)
 * RT_ROOT_WORDS: a word may hold anything.  One that points to or into an
 * object keeps that object alive, as in an RT_WORDS object.
 *
 * In both, a word that equals the end of an object does not keep that object
 * alive, even with rt_config.past_end.
 */
enum rt_root_flags { RT_ROOT_EXACT = 0, RT_ROOT_WORDS = 1 };

/*
 * rt_roots_add makes every word of [lo, hi) a root.  lo and hi must be
 * multiples of 8.  The memory stays the host's, and must be readable until the
 * range is removed or the heap ends.  Ranges may overlap, and the same range
 * may be added several times.  If it is added with both flags, its words are
 * read as with RT_ROOT_WORDS.  The number of ranges is limited only by memory,
 * and adding one takes the same time however many there are.
 *
 * Returns 0, or an error, which changes nothing:
 *   RT_EINVAL  lo or hi is null or misaligned, lo is not below hi, or flags is
 *              neither of the two above
 *   RT_ENOMEM  there is no memory for the table of ranges
 *   RT_EPERM   the caller is not attached
 *   RT_EBUSY   the caller has stopped the world
 *   RT_ESTATE  the caller is inside a blocking region, or there is no heap
 *
 * Attached threads.  Does not collect, block or poll.
 */
RT_API int rt_roots_add(void *lo, void *hi, int flags);

/*
 * rt_roots_add_values makes every value in [lo, hi) a root.  *format says how
 * values refer to objects (rt/trace.h); it is copied.  If format is NULL, the
 * call is rt_roots_add with RT_ROOT_WORDS.  flags must be 0.  lo, hi and the
 * memory are as for rt_roots_add.  With stride 16, half a value at the end of
 * the range is not read.
 *
 * A range that was added by both functions is read in both ways.
 *
 * Returns 0, or an error of rt_roots_add, which changes nothing, and also
 *   RT_EINVAL  *format is not in order (rt_value_format), or flags is not 0
 *   RT_EEXIST  the range is registered in another format
 *
 * Attached threads.  Does not collect, block or poll.
 */
RT_API int rt_roots_add_values(void *lo, void *hi,
			       const rt_value_format *format, unsigned flags);

/*
 * rt_roots_name names a registered range for reports (rt_config.checkmark).
 * name is copied, at most 31 bytes; an empty one removes the name.  A range
 * that was added several times has one name, and keeps it until it is no longer
 * a root.
 *
 * Returns 0, or an error, which changes nothing: RT_EINVAL (name is null, or lo
 * and hi are no range), RT_ENOENT (no such range is registered), RT_ENOMEM,
 * RT_EPERM, RT_EBUSY or RT_ESTATE, as rt_roots_add.
 *
 * Attached threads.  Does not collect, block or poll.
 */
RT_API int rt_roots_name(void *lo, void *hi, const char *name);

/*
 * rt_roots_remove undoes one addition of the same lo and hi.  A range that was
 * added twice stays a root until it is removed twice.  If it was added in
 * several ways, additions with RT_ROOT_EXACT are undone first, then those with
 * RT_ROOT_WORDS, and those in a format last.
 *
 * Returns 0, or RT_ENOENT if no such range is registered, RT_EBUSY if the
 * caller has stopped the world or is in a callback of a collection, or
 * RT_ESTATE if there is no heap.
 *
 * Any thread, attached or not, even inside a blocking region.  So cleanup
 * handlers and destructors of thread-specific data can remove what their thread
 * has registered, before and after it is detached.  If the caller is not
 * attached, or is inside a region, the call blocks while the world is stopped.
 * Does not collect or poll.
 */
RT_API int rt_roots_remove(void *lo, void *hi);

/*
 * A root callback tells references, by the functions of rt/trace.h and with the
 * tracer that it is given, until it returns.
 *
 *  - It is called in each collection, with the world stopped, by the thread
 *    that collects, before any stack is read.  Callbacks are called one after
 *    another, in no particular order.  Any attached thread may be the one that
 *    collects, or the background thread (rt_config.gc_period_s), so the
 *    callback must not use a thread-local variable of the host.  It runs on the
 *    stack of that thread, and rt_thread_self returns NULL on the background
 *    thread.  rt_trace_fn says how large that stack is.
 *  - It may be called again later in the same stop, if the system refuses
 *    memory, and outside of marking (rt_config.checkmark).  It must then tell
 *    the same references.
 *  - It must not allocate, block, poll, or leave by longjmp or by an exception.
 *    It must not take a lock that a thread may hold where it polls or blocks,
 *    or when it ends a blocking region.  It may call those functions of this
 *    library that rt/rt.h names for a callback of a collection.
 *  - It may change memory of the host.  But it must not clear the unused part
 *    of a value stack if a thread may still read that part.  For example, a
 *    host that pops a frame, allocates, and then copies the frame's variables
 *    would find them cleared.
 *
 * References that callbacks tell do not count as roots in the heap's goal
 * (rt_config.heap_headroom).  But a stack that they tell by rt_trace_stack
 * counts, with its part in use.
 */
typedef void rt_roots_fn(rt_tracer *t, void *arg);

/*
 * rt_roots_add_fn adds a root callback, which is identified by fn and arg.
 * name is for reports; it may be NULL, and is copied, at most 31 bytes.  Adding
 * and removing take time in proportion to the number of callbacks.
 *
 * Returns 0, or an error, which changes nothing:
 *   RT_EINVAL  fn is null
 *   RT_EEXIST  fn is added with this arg already
 *   RT_ENOMEM  there is no memory for the table of callbacks
 *   RT_EPERM   the caller is not attached
 *   RT_EBUSY   the caller has stopped the world
 *   RT_ESTATE  the caller is inside a blocking region, or there is no heap
 *
 * Attached threads.  Does not collect, block or poll.
 */
RT_API int rt_roots_add_fn(rt_roots_fn *fn, void *arg, const char *name);

/*
 * rt_roots_remove_fn removes a root callback.  When it has returned, the
 * callback is not called any more, so its code can be unloaded.  A callback
 * also ends with the heap.
 *
 * Returns 0, or RT_ENOENT if fn is not added with this arg, RT_EBUSY if the
 * caller has stopped the world or is in a callback of a collection, or
 * RT_ESTATE if there is no heap.
 *
 * Any thread, attached or not, even inside a blocking region.  If the caller is
 * not attached, or is inside a region, the call blocks while the world is
 * stopped.  Does not collect or poll.
 */
RT_API int rt_roots_remove_fn(rt_roots_fn *fn, void *arg);

/*
 * rt_roots_static makes the writable data of the program and of the libraries
 * that it has loaded roots (1), or not (0, the default of each heap).  Each
 * word may hold anything, as with RT_ROOT_WORDS.  The data of a library becomes
 * a root when dlopen loads the library, and is no longer one when dlclose
 * unloads it.  Each collection finds out anew which libraries there are.
 *
 * The data of this library, thread-local variables, and pages that are
 * read-only once the program runs are left out.  So are libraries of another
 * namespace (dlmopen), and libraries whose image in memory does not begin with
 * the beginning of the file; common linkers make none of these.
 *
 * Any thread may load and unload libraries at any time.  To allow that, each
 * collection copies all the data by a system call and scans the copy, even the
 * parts that hold no pointer.  Programs with large static arrays should
 * register ranges instead.  In statistics and the goal the data counts as
 * registered ranges do.
 *
 * A stop does not wait for threads that are not attached.  They must not move a
 * pointer from one place in static data to another.  With rt_config.checkmark
 * they must not write a stale pointer there either, because the check might
 * find it after marking has read that place.  The child of a fork has these
 * roots as well.
 *
 * The dynamic linker holds a lock while it runs the constructors of a library.
 * If several attached threads load libraries, constructors must not poll.
 *
 * Returns 0, or an error, which changes nothing:
 *   RT_EINVAL   on is neither 0 nor 1
 *   RT_ENOTSUP  the system refuses process_vm_readv, as some containers do, or
 *               the dynamic linker does not say what it has loaded
 *   RT_EPERM    the caller is not attached
 *   RT_EBUSY    the caller has stopped the world
 *   RT_ESTATE   the caller is inside a blocking region or a no-GC stretch, or
 *               there is no heap
 *
 * Attached threads.  Blocks while another thread loads a library, or the world
 * is stopped.  Does not collect.
 */
RT_API int rt_roots_static(int on);

/*
 * A handle is a root of one word, for a pointer that is kept where the
 * collector does not look.  The word is null or a reference, as in a range of
 * RT_ROOT_EXACT.  A tagged or boxed value keeps nothing alive there, so a host
 * must take the pointer out of it first.  A host must read the word by
 * rt_handle_get, and must not write the field.
 *
 * There can be one handle for each 64 bytes of the heap's address space
 * (rt_config.max_heap).  Memory of handles that were freed is used again.
 * Where all handles that lie together were freed, their memory is released,
 * except for 1 MiB in all.
 */
typedef struct rt_handle {
	void *obj;
} rt_handle;

RT_ABI_ASSERT_(sizeof(rt_handle) == 8, "rt_handle is ABI");

/*
 * rt_handle_new returns a handle that holds obj.  Returns NULL if there is no
 * memory, if obj is no address (its highest bit is set), or if the caller is
 * not attached, is inside a blocking region, or has stopped the world.
 *
 * The handle is valid until rt_handle_free, or until the heap ends.  Any
 * attached thread may use it, and any thread may free it.
 *
 * Attached threads.  Does not collect, block or poll, and takes no locked
 * instruction in most cases.
 */
RT_API rt_handle *rt_handle_new(void *obj);

/*
 * rt_handle_free frees a handle; h is invalid from then on.
 *
 * Returns 0, or RT_EINVAL if h is no handle or was freed, RT_EBUSY if the
 * caller has stopped the world or is in a callback of a collection, or
 * RT_ESTATE if there is no heap.  A handle that was freed and then handed out
 * again is not recognised as freed.
 *
 * Any thread, attached or not, even inside a blocking region.  If the caller is
 * not attached, or is inside a region, the call blocks while the world is
 * stopped.  Does not collect or poll.
 */
RT_API int rt_handle_free(rt_handle *h);

/*
 * rt_handle_set makes a handle hold obj.
 *
 * Returns 0, or RT_EINVAL if h is no handle or was freed, or if obj is no
 * address (its highest bit is set); RT_EPERM if the caller is not attached;
 * RT_ESTATE if it is inside a blocking region, or if there is no heap.
 *
 * Attached threads, even in their own stop.  Does not collect, block or poll.
 */
RT_API int rt_handle_set(rt_handle *h, void *obj);

/*
 * rt_handle_get returns what a handle holds.  h must be a handle.  Neither this
 * nor the thread is checked: a thread that is not attached, or is inside a
 * blocking region, may get the address of an object that is gone.
 *
 * Attached threads, outside a blocking region, even in their own stop, and
 * callbacks of a collection.  Does not collect, block or poll.
 */
static inline void *rt_handle_get(const rt_handle *h)
{
	return __atomic_load_n(&h->obj, __ATOMIC_RELAXED);
}

#ifdef __cplusplus
}
#endif

#endif
