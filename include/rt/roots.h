/*
 * roots.h - memory outside the heap that holds pointers into it.
 *
 * Stacks and registers of attached threads are roots by themselves.  Static
 * variables, and memory from malloc or mmap, are not unless registered here.
 */
#ifndef RT_ROOTS_H
#define RT_ROOTS_H

#include <rt/version.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * RT_ROOT_EXACT: every word is a reference to an object or null.  One that is
 * neither is ignored.
 * RT_ROOT_WORDS: every word may be a pointer, as in an RT_WORDS object.
 */
enum rt_root_flags { RT_ROOT_EXACT = 0, RT_ROOT_WORDS = 1 };

/*
 * rt_roots_add makes every word of [lo, hi) a root.  Both are multiples of 8.
 * The memory stays the host's; it stays readable until it is removed.  Ranges
 * may overlap, and one may be added several times.  Their number is not
 * limited.
 *
 * Returns 0, or RT_EINVAL (null, misaligned, lo not below hi, unknown flags),
 * RT_ENOMEM, RT_EPERM (not attached), RT_EBUSY (own stop), RT_ESTATE (inside
 * a blocking region; no heap).
 *
 * Attached threads.  Does not collect, block or poll.
 */
RT_API int rt_roots_add(void *lo, void *hi, int flags);

/*
 * rt_roots_remove takes back one rt_roots_add of the same lo and hi.
 *
 * Returns 0, or RT_ENOENT (no such range is registered), RT_EPERM (not
 * attached), RT_EBUSY (own stop), RT_ESTATE (inside a blocking region; no
 * heap).
 *
 * Attached threads, not only the one that added it.  Does not collect, block
 * or poll.
 */
RT_API int rt_roots_remove(void *lo, void *hi);

#ifdef __cplusplus
}
#endif

#endif
