/*
 * barrier.h - storing a pointer into an object.
 *
 * In this version the collector marks only while the world is stopped, so no
 * host needs RT_STORE: a plain store does the same.  A host that stores every
 * reference with RT_STORE is ready for a later collector that marks while the
 * host's threads run.  While the collector does not mark, RT_STORE is one
 * predictable branch and a store.
 */
#ifndef RT_BARRIER_H
#define RT_BARRIER_H

#include <rt/version.h>
#include <rt/alloc.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A slot; it may be declared uintptr_t, uint64_t or any pointer type. */
typedef void *__attribute__((__may_alias__)) rt_word;

/*
 * The types that RT_STORE converts its arguments to.  C++ has conversions
 * written as calls, because -Wold-style-cast does not warn of those.
 */
typedef rt_word *rt_slot_;
typedef void *rt_value_;

/*
 * rt_store_slow_ is rt_store_ while old values are recorded; t is
 * rt_thread_tls of the calling thread.
 */
RT_API void rt_store_slow_(rt_thread *t, void *obj, rt_word *slot, void *value);

/* rt_store_ is RT_STORE for slots of type rt_word. */
static inline void rt_store_(void *obj, rt_word *slot, void *value)
{
	if (__builtin_expect(
		__atomic_load_n(&rt_thread_tls->barrier, __ATOMIC_RELAXED), 0))
		rt_store_slow_(rt_thread_tls, obj, slot, value);
	else
		__atomic_store_n(slot, value, __ATOMIC_RELAXED);
}

/*
 * RT_STORE(obj, slot, value) stores value, a pointer or any word that fits one,
 * into *slot.  The slot must have 8 bytes, be aligned to 8 and be in the object
 * that begins at obj.  The store is atomic and orders nothing.
 *
 * Some stores will not need RT_STORE in a later version either: a store outside
 * the heap, such as into a root, a stack or a frame; a store into an object
 * without pointers; a store into a slot that never holds a reference, such as a
 * saved stack pointer; and the first store into a slot that has been zero since
 * its object was allocated, if no other thread can store into the object.  A
 * later store needs it even if no other thread knows the object: a marking may
 * have begun in between.
 *
 * A slot outside its object is not detected.
 *
 * Attached threads, outside a blocking region, even in their own stop.  Does
 * not collect, block or poll.
 */
#ifdef __cplusplus
#define RT_STORE(obj, slot, value)                                             \
	rt_store_((obj), rt_slot_(slot), rt_value_(value))
#else
#define RT_STORE(obj, slot, value)                                             \
	rt_store_((obj), (rt_slot_)(slot), (rt_value_)(value))
#endif

#ifdef __cplusplus
}
#endif

#endif
