/*
 * free.h - objects that are freed by hand.
 *
 * A host that knows that an object is dead may say so: its memory is used again
 * without a collection.  An uncollectable object lives until then.
 */
#ifndef RT_FREE_H
#define RT_FREE_H

#include <rt/version.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * rt_alloc_uncollectable allocates an object that is a root, with all that it
 * reaches, until rt_free.  kind is RT_NOSCAN or RT_WORDS, and what rt_kind_of
 * returns for the object.  There is no table of such objects: a collection pays
 * for marking the object, as for any other, and for a look at every page.  For
 * values in a format, a host uses its own memory and rt_roots_add_values.
 *
 * The object is n bytes of zeros, aligned to 16 bytes.  Returns NULL if kind is
 * another, and otherwise as rt_alloc_kind does.  What it returns for n = 0 is
 * no object and need not be freed.
 *
 * Attached threads, outside a blocking region.  Collects, blocks and polls.
 */
RT_API void *rt_alloc_uncollectable(int kind, size_t n);

/*
 * rt_free frees an object, whichever thread has allocated it.  The host must
 * not use it any more; a stale word on a stack does no harm.  p is what an
 * allocation returned.  Null, and what an allocation of no bytes returned, do
 * nothing.
 *
 * An object of up to 32760 bytes is soon allocated again.  This thread gets it
 * with the next allocation of its kind and size that finds the present run of
 * free slots used up.  If this thread has freed many, another may get it.
 * Until then rt_size, rt_base and rt_is_heap may answer as if it existed.  The
 * pages of a larger object, and of a guarded one, are free at once.  A typed
 * object (rt_alloc_typed) of up to 32760 bytes waits for the next collection,
 * or for an exact read of statistics.
 *
 * The next collection, or exact read of statistics, takes back those freed
 * objects of up to 32760 bytes that were not allocated again.  It does so
 * while the world is stopped, so this stop grows with their number.  Each
 * takes about 10 ns if they were freed in the order of their addresses, and up
 * to 300 ns if they were freed in random order.  A host that drops a large
 * structure should leave it to the collector.
 *
 * An object without references of up to 16 bytes, and with rt_config.align8 any
 * of up to 8 bytes, is left to the collector, unless it is uncollectable.
 * Several requests may share it.  Such a call has no effect.
 *
 * No callback is called for an object that was freed, and rt_heap_walk does not
 * show it.  Statistics count it as freed when they are next read exactly.
 *
 * Returns RT_OK, or RT_EINVAL (p is not the beginning of an object, or the
 * object was freed before), RT_ESTATE (inside a blocking region; no heap),
 * RT_EPERM (not attached), RT_EBUSY (own stop).  That an object was freed
 * before is not noticed if its memory was allocated again, or is about to be
 * allocated by another thread.
 *
 * Attached threads, outside a blocking region and not in their own stop.  Does
 * not collect, block or poll.
 */
RT_API int rt_free(void *p);

/*
 * rt_realloc makes an object n bytes large and returns its address, perhaps
 * another one.  What both sizes have in common is kept.  Bytes beyond the old
 * rt_size are zero; the others are as the host left them.
 *
 * An object of up to 32760 bytes stays in place if the new size has the same
 * size class.  A larger one that shrinks frees whole pages, and one that grows
 * takes the pages behind it if they are free.  Otherwise the object moves: its
 * contents are copied, and p is freed as by rt_free.  A guarded object moves
 * unless n is its size.  So does one of up to 16 bytes without references,
 * which other requests may share.  An uncollectable object stays so.  Of the
 * alignment of rt_alloc_aligned, an object that moves keeps no more than 16
 * bytes.
 *
 * p is what an allocation returned, and kind its kind (rt_kind_of).  If p is
 * null, or what an allocation of no bytes returned, rt_realloc is
 * rt_alloc_kind(kind, n).  If n is 0, it is rt_free(p) and returns NULL.
 *
 * Returns NULL if there is no memory, if p is not the beginning of an object of
 * that kind, or if rt_drop_now has dropped the object meanwhile.  It also
 * returns NULL where rt_alloc_kind does, as always for RT_TYPED.  The object is
 * then as before.  An object that shrinks needs no memory.
 *
 * Statistics count what an object gains or loses in place in total_alloc and in
 * the bytes freed, but as no malloc and no free.
 *
 * Attached threads, outside a blocking region.  Collects, blocks and polls if
 * it moves the object or allocates one; otherwise as rt_resize, without a poll.
 */
RT_API void *rt_realloc(int kind, void *p, size_t n);

/*
 * rt_resize makes an object n bytes large without moving it.  At least n bytes
 * are usable then, and those beyond the old rt_size are zero.
 *
 * Returns RT_OK, or RT_ENOMEM (the object would have to move: it shares its
 * memory, or there is no room behind it), RT_EINVAL (n is 0, p is not the
 * beginning of an object, or the object is typed), RT_ESTATE (inside a blocking
 * region; no heap), RT_EPERM (not attached), RT_EBUSY (own stop).  An object
 * that shrinks always can, unless it shares its memory.
 *
 * Attached threads, outside a blocking region and not in their own stop.  Does
 * not collect, block or poll; but memory that was used before is cleared, which
 * a stop waits for.
 */
RT_API int rt_resize(void *p, size_t n);

#ifdef __cplusplus
}
#endif

#endif
