/*
 * free.h - objects that are freed by hand.
 *
 * A host that knows that an object is dead may free it.  The memory is then
 * used again without a collection.  An uncollectable object lives until the
 * host frees it.
 *
 * A later version that marks beside the threads may leave the memory of an
 * object that is freed or made smaller to the end of the marking.
 */
#ifndef RT_FREE_H
#define RT_FREE_H

#include <rt/version.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * rt_alloc_uncollectable allocates an object that is a root, with all that it
 * reaches, until rt_free.  kind must be RT_NOSCAN or RT_WORDS; rt_kind_of
 * returns it for the object.  There is no table of such objects.  So once a
 * heap has had one, each collection looks at every page for them, and marks
 * each of them as any other object.  For values in a format, a host must use
 * its own memory and rt_roots_add_values.
 *
 * The object is n bytes of zeros, aligned to 16 bytes.  Returns NULL if kind is
 * neither of the two, and where rt_alloc_kind does.  The result for n = 0 is no
 * object and need not be freed.
 *
 * Attached threads, outside a blocking region.  Collects, blocks and polls.
 */
RT_API void *rt_alloc_uncollectable(int kind, size_t n);

/*
 * rt_free frees an object, whichever thread has allocated it.  The host must
 * not use the object any more; a stale word on a stack does no harm.  A write
 * to the object may end the process, with a report.  p must be what an
 * allocation returned.  If p is null, or what an allocation of 0 bytes
 * returned, rt_free does nothing and returns RT_OK.
 *
 * The memory of an object of up to 32760 bytes is soon allocated again.  This
 * thread gets it with its next allocation of the same kind and size class that
 * finds the present run of free slots used up.  If this thread has freed many,
 * another may get it.  Until then rt_size, rt_base and rt_is_heap may answer as
 * if the object existed.  The pages of a larger object, and of a guarded one,
 * are free at once.  The memory of a typed object (rt_alloc_typed) of up to
 * 32760 bytes is allocated again only after the next collection or exact read
 * of statistics.
 *
 * The next collection or exact read of statistics returns to the heap the slots
 * of freed objects of up to 32760 bytes that were not allocated again.  It does
 * so while the world is stopped, so this stop grows with their number.  Each
 * slot takes about 10 ns if the objects were freed in the order of their
 * addresses, and up to 300 ns if they were freed in random order.  So a host
 * should leave a large structure to the collector.
 *
 * rt_free leaves some objects to the collector: all of 8 bytes (rt_size), and
 * those of RT_NOSCAN of 16 bytes, unless they are uncollectable or guarded.
 * Several requests may share one of 16 bytes (enum rt_root_flags says which).
 * On these objects the call has no effect.
 *
 * No callback is called for an object that was freed, and rt_heap_walk does not
 * show it.  Statistics count the object as freed when they are next read
 * exactly.
 *
 * Returns RT_OK, or RT_EINVAL (p is not the beginning of an object, or the
 * object was freed before), RT_ESTATE (inside a blocking region; no heap),
 * RT_EPERM (not attached), RT_EBUSY (own stop).  A second free is not noticed
 * if the memory was allocated again, or is about to be allocated by another
 * thread.
 *
 * Attached threads, outside a blocking region and not in their own stop.  Does
 * not collect, block or poll.
 */
RT_API int rt_free(void *p);

/*
 * rt_realloc makes an object n bytes large and returns its address, which may
 * be a new one.  The contents are kept up to the smaller of both sizes.  Bytes
 * beyond the old rt_size are zero; the others are as the host left them.
 *
 * An object of up to 32760 bytes stays in place if the new size has the same
 * size class.  A larger one whose new size is above 32760 bytes as well frees
 * whole pages, or takes the pages behind it if they are free.  Otherwise the
 * object moves: its contents are copied, and p is freed as by rt_free.  A
 * guarded object moves unless n is its size.  An RT_NOSCAN object of 16 bytes
 * (rt_size), which other requests may share, always moves.  An uncollectable
 * object stays uncollectable.  An object of rt_alloc_aligned that moves is
 * aligned to 16 bytes at most.
 *
 * p must be what an allocation returned, and kind the object's kind
 * (rt_kind_of).  On a thread with exact roots a root or a frame must hold p
 * during the call.  If p is null, or what an allocation of 0 bytes returned,
 * rt_realloc is rt_alloc_kind(kind, n).  Otherwise, if n is 0, it is rt_free(p)
 * and returns NULL.
 *
 * Returns NULL if there is no memory, if p is not the beginning of an object of
 * that kind, if the object was freed before, or if rt_drop_now has dropped it
 * meanwhile.  It also returns NULL where rt_alloc_kind does, and so always if
 * kind is RT_TYPED.  In all these cases the object stays as it was, with two
 * exceptions: one that rt_drop_now has dropped is dead, and if a handler
 * detaches the thread, the object may be gone (Handlers in rt/gc.h).  Lack of
 * memory never prevents an object from shrinking, unless other requests may
 * share it.  An earlier free of the object is noticed where rt_free would
 * notice it.
 *
 * In statistics, the bytes that an object gains in place count in total_alloc,
 * and those that it loses count as freed.  Neither counts in mallocs or frees.
 *
 * Attached threads, outside a blocking region.  Collects, blocks and polls,
 * unless the object stays in place, as said above, and takes no pages.  So a
 * call that shrinks an object may do all three, because the object may have to
 * move.  Even an object that stays where it was may have changed its size only
 * after a collection, and after a call of the out-of-memory handler.
 */
RT_API void *rt_realloc(int kind, void *p, size_t n);

/*
 * rt_resize makes an object n bytes large without moving it.  After that at
 * least n bytes are usable, and those beyond the old rt_size are zero.
 *
 * Returns RT_OK, or RT_ENOMEM (the object would have to move: it may share its
 * memory, there is no room behind it, or the hard limit is reached), RT_EINVAL
 * (n is 0, p is not the beginning of an object, or the object is typed or was
 * freed before), RT_ESTATE (inside a blocking region; no heap), RT_EPERM (not
 * attached), RT_EBUSY (own stop).  Shrinking never fails with RT_ENOMEM, unless
 * the object may share its memory.  An earlier free of the object is noticed
 * where rt_free would notice it.
 *
 * Attached threads, outside a blocking region and not in their own stop.  Does
 * not collect, block or poll.  But it may clear memory that was used before,
 * and a stop waits for that.
 */
RT_API int rt_resize(void *p, size_t n);

#ifdef __cplusplus
}
#endif

#endif
