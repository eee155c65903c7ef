/*
 * final.h - what happens to objects that have died: their destructors.
 *
 * rt/kind.h says what a drop callback is, and which kinds have some.
 */
#ifndef RT_FINAL_H
#define RT_FINAL_H

#include <rt/version.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * A collection finds which objects of kinds with RT_KIND_DROP are dead.  From
 * then on each is ready to be dropped, and its memory stays as it is.  No
 * destructor runs in an allocation, in a collection or in a stop.  rt_drop_now
 * runs the destructors of the objects that it drops.  The mode says where all
 * others run:
 *
 *   RT_FINALIZE_MANUAL  in rt_run_finalizers;
 *   RT_FINALIZE_POLL    in rt_run_finalizers and in rt_safepoint.  Since
 *                       destructors may collect, rt_safepoint may then collect
 *                       as well.  rt_poll calls rt_safepoint only if a stop is
 *                       requested, so a thread that only calls rt_poll may
 *                       never run any.
 *
 * There is one exception: if the out-of-memory handler or the warn handler is
 * called in an allocation and runs destructors, for example by
 * rt_run_finalizers, they run inside that allocation.
 *
 * Only one thread at a time runs destructors, and never one inside another.
 *
 * All objects that are ready when a thread begins to run destructors are a
 * batch.  When all destructors of the batch have returned, the memory of its
 * objects is free.  In a span that holds objects of an rt_drop_now as well, a
 * later collection frees the memory.  Objects that die meanwhile belong to the
 * next batch.  A host that never runs destructors never gets the memory of dead
 * objects back.  The warn handler is told once in the life of a heap: when the
 * objects that have waited since an earlier collection exceed half of the live
 * heap, and half of rt_config.heap_min.
 *
 * Dead objects count as allocated in all statistics until they are freed, but
 * not as alive (rt_heap_live).  Their bytes do not hasten the next collection,
 * because it could not free them.
 *
 * An out-of-memory handler may call rt_run_finalizers with max 0, and return 1
 * if any destructor ran.  (With a smaller max nothing may be free yet, because
 * a batch is freed as a whole.)  If none ran, there are two cases:
 *
 *  - Another thread runs destructors.  The handler may wait, in
 *    rt_call_blocking, until the call of that thread has returned.  Then it may
 *    return 1.  The thread that waits must hold no lock that a destructor
 *    takes.  No function of the library says whether another thread runs
 *    destructors.  rt_finalizers_ready does not, because it leaves out those
 *    that have begun.  So a host with several threads must note which threads
 *    are in rt_run_finalizers and rt_drop_now, and with RT_FINALIZE_POLL in
 *    rt_safepoint.
 *  - Otherwise no destructor is ready, or the handler was called in a
 *    destructor or in a ready callback.  The handler must not return 1 for the
 *    destructors' sake: it would be called again for ever.
 *
 * If another thread forks while one runs destructors, those that had not begun
 * are ready in the child.  One that had begun does not run again.  Its object
 * stays dead, so rt_is_heap of it is 0, until it is freed with its batch.  The
 * same holds when a thread exits in a destructor.  If that was the last one of
 * its batch, the next rt_run_finalizers frees the batch without counting it in
 * what it returns.  A fork waits until the thread polls or is in a blocking
 * region.  So what a destructor does before that is complete in the child.
 *
 * rt_fini runs no destructors.  A host that wants all of them to run calls
 * rt_drop_now before it, for each of its kinds with RT_KIND_DROP.  If
 * destructors allocate objects of such kinds, the host repeats these calls
 * until none of them has run a destructor.
 *
 * To close one of several interpreters, a host
 *  - removes its root callbacks, ranges, handles, and the stacks that none of
 *    its destructors unregisters;
 *  - calls rt_drop_now for each of its kinds with RT_KIND_DROP;
 *  - calls rt_gc;
 *  - calls rt_kind_unregister for each of its kinds.
 * A stale word, for example on a stack, may keep an object alive.  Then the
 * last call returns RT_EBUSY, and the host must keep the kind and its code, and
 * call rt_kind_unregister again after a later collection.  Until that call has
 * returned RT_OK, its callbacks may be called, and need what they read.
 */
enum rt_finalize_mode { RT_FINALIZE_MANUAL, RT_FINALIZE_POLL };

/*
 * A ready callback is told what rt_finalizers_ready has returned, at least 1,
 * soon after a collection that has found dead objects.  Other threads may begin
 * with their destructors meanwhile.  It runs at the first of these: the end of
 * the rt_gc that ran the collection, the end of the next rt_gc, and the next
 * allocation of an object for which the cache of its thread (rt/rt.h) has no
 * room.  It runs on the thread that makes this call, which is attached and
 * outside a blocking region, its own stop and a no-GC stretch.  An allocation
 * in a stretch leaves the news to a later call.
 *
 * The world runs and no lock is held, so the callback may allocate, collect,
 * poll, block, fork, and enter and leave a region.  For example, it wakes
 * another thread, or notes that it is time for rt_run_finalizers.  It must not
 * run destructors itself: rt_run_finalizers returns 0 in it, rt_drop_now
 * returns RT_EBUSY, and rt_safepoint runs none.  It must not leave by longjmp
 * or by an exception.
 *
 * The callback may be called again inside itself, when a collection that it
 * makes or waits for finds more dead objects.  Two threads may be in it at the
 * same time.
 */
typedef void rt_ready_fn(size_t n, void *arg);

/*
 * rt_set_finalize_mode sets where destructors run, and the ready callback,
 * which may be NULL.  A heap begins with RT_FINALIZE_MANUAL.  The callback
 * belongs to the heap.
 *
 * Returns RT_OK, or RT_EINVAL (unknown mode), RT_EPERM (not attached), RT_EBUSY
 * (own stop), RT_ESTATE (inside a blocking region; no heap).
 *
 * Attached threads.  Does not collect, block or poll.
 */
RT_API int rt_set_finalize_mode(int mode, rt_ready_fn *notify, void *arg);

/*
 * rt_run_finalizers runs up to max destructors, or, if max is 0, as many as
 * were ready at the call.  It returns how many ran.  An object that turns out
 * to have no destructor counts as one that ran.  A batch may be spread over
 * several calls.
 *
 * Returns 0 at once while another thread runs destructors, in a destructor, in
 * the ready callback, in the caller's own stop, inside a blocking region or a
 * no-GC stretch, without attachment and without a heap.
 *
 * Attached threads.  Blocks and polls.  A destructor may collect.
 */
RT_API size_t rt_run_finalizers(size_t max);

/*
 * rt_finalizers_ready returns how many dead objects of kinds with RT_KIND_DROP
 * wait for rt_run_finalizers, 0 without a heap.  Those whose type has no
 * destructor count as well.
 *
 * Any thread, at any time, even in its own stop and in callbacks.  Does not
 * block, collect or poll.
 */
RT_API size_t rt_finalizers_ready(void);

/*
 * A pick callback chooses objects: 1 for yes.  It is called with the world
 * stopped, by the thread that called rt_drop_now or rt_heap_list.  It must not
 * allocate, block, poll, leave by longjmp or by an exception, or end its
 * thread.  It may call those functions of this library that a describe callback
 * may call (rt/rt.h).  But rt_size, rt_base, rt_is_heap and rt_kind_of know
 * nothing of an object that is ready to be dropped.
 *
 * The object may be one that the host has not filled yet, as for a trace
 * callback.  It may be dead, and then what it refers to may be gone, unless its
 * kind has RT_KIND_DROP_DEEP.  So the callback must decide by what the object
 * itself holds.
 */
typedef int rt_pick_fn(const void *obj, size_t size, void *arg);

/*
 * rt_drop_now drops every object of a kind for which pick says 1, or all if
 * pick is NULL, whether it is reachable or not.  It is for the end of one of
 * several interpreters in a process.  pick is also called for objects that are
 * ready to be dropped already.  Those that it does not choose stay ready.  Each
 * object is dropped once.
 *
 * First pick is called for all objects, in one stop, except for those that an
 * allocation has yet to return.  From then on the chosen objects are dead,
 * whatever refers to them.  Their references keep nothing alive, except as
 * RT_KIND_DROP_DEEP promises, and the host must not use the objects.  Then
 * their destructors run, in no particular order, on the calling thread.  All
 * chosen objects stay in place until the call returns.  Later collections free
 * each of them to which they find no reference.  They overwrite the others with
 * zeros, except those with pages of their own (rt_size), which stay as they
 * are.  A chosen object that had died before the call may be freed before the
 * destructors of the objects that died with it have run, unless
 * rt_run_finalizers has begun with those.
 *
 * Objects that the destructors allocate are not dropped, and pick is not called
 * for them.
 *
 * If another thread forks during the call, then in the child each object whose
 * destructor had not begun is what it was before the call.  The others stay
 * dead, and later collections treat them as after the call.  Some of those that
 * had been ready may be ready only after the next collection.  If the kind
 * lacks RT_KIND_DROP_DEEP, objects to which only such an object refers may be
 * gone: if it was ready, or if there was a collection since the call began.
 * The same holds when the thread exits in a destructor, and when a destructor
 * leaves a blocking region, a no-GC stretch or a stop open.  If a destructor
 * leaves one of these three open, the call ends at once, and so does
 * rt_run_finalizers.
 *
 * Returns RT_OK, or RT_EINVAL (not a kind with RT_KIND_DROP), RT_EBUSY
 * (destructors run already, on another thread or around this call; in the ready
 * callback; own stop, or a destructor has left its thread in one), RT_EPERM
 * (not attached), RT_ESTATE (inside a blocking region or a no-GC stretch, or a
 * destructor has left one open; no heap).  Only one of these states ends by
 * itself: that another thread runs destructors.
 *
 * Attached threads.  Blocks, because it stops the world.  A destructor may
 * collect and poll.
 */
RT_API int rt_drop_now(int kind, rt_pick_fn *pick, void *arg);

#ifdef __cplusplus
}
#endif

#endif
