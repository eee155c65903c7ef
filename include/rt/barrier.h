/*
 * barrier.h - storing a pointer into an object.
 *
 * A host that stores every reference with RT_STORE is ready for a collector
 * that marks beside its threads.  While that does not mark, RT_STORE is one
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
 * What RT_STORE turns its arguments into.  In C++ by conversions that are
 * written as calls, of which -Wold-style-cast does not warn.
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
 * RT_STORE(obj, slot, value) stores value, a pointer or any word that fits
 * one, into *slot, which is 8 bytes, aligned to 8 and lies in the object that
 * begins at obj.  The store is atomic and orders nothing.  Storing into an
 * object that was just allocated and that no other thread knows needs no
 * RT_STORE; neither do objects without pointers.
 *
 * A slot outside its object is not detected.
 *
 * Attached threads, outside a blocking region; also in the own stop.  Does
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
