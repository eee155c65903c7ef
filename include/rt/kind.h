/*
 * kind.h - kinds of objects: how the collector finds the references in one.
 *
 * rt/rt.h says what an attached thread, a stop and a poll are.
 */
#ifndef RT_KIND_H
#define RT_KIND_H

#include <rt/version.h>
#include <rt/trace.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * The kind of an object is fixed when it is allocated.  The numbers are
 * frozen.
 *
 * RT_NOSCAN: no pointers; the contents are never read.
 * RT_WORDS: every aligned word may be a pointer, to the beginning or the
 * inside of an object, with anything in the low bits; other words are
 * ignored, whatever they hold.  For plain C structs and for pointers with
 * tags in their low bits.
 * RT_TYPED: what rt_alloc_typed allocates.  The library notes beside the heap
 * which words are references.
 * RT_KIND_FIRST to RT_KIND_MAX: kinds that a host registers.
 *
 * A page holds objects of one kind only.  Each thread that allocates a kind
 * takes 8 KiB or more for each size class of it.  So a host should not register
 * a kind for each of its types.  It should register one for all its objects,
 * and tell their types apart by what is in them (RT_LAYOUT_HEADER,
 * RT_LAYOUT_INDEX, RT_LAYOUT_TRACE).  Types with destructors belong in a second
 * kind, because in a kind with RT_KIND_DROP each dead object waits until the
 * host has run the destructors.
 *
 * The number of a kind also says how its objects are aligned.  Those of 16
 * bytes or more are aligned to 16 (rt_config.align8 changes that), with one
 * exception: in kinds from RT_KIND_ALIGN8_FIRST on, and for types with align 8,
 * an object of 17 to 24 bytes takes 24 bytes and is aligned to 8.  Smaller
 * objects are aligned to 16 as well, except those of RT_NOSCAN (rt/alloc.h).
 */
enum rt_kind {
	RT_NOSCAN = 0,
	RT_WORDS = 1,
	RT_TYPED = 2,
	RT_KIND_FIRST = 3,
	RT_KIND_ALIGN8_FIRST = 16,
	RT_KIND_MAX = 23
};

/*
 * A trace callback tells the collector every reference of one object, by the
 * functions of rt/trace.h.  size is how many bytes of the object the collector
 * looks at: rt_size(obj) or, if the object has pages of its own, the bytes
 * requested (rt_size).  It is rounded down to a multiple of 8.
 *
 *  - It is called with the world stopped, by the thread that collects or by a
 *    thread of the library.  So it must not use a thread-local variable of the
 *    host.  A thread of the library has a stack of 256 KiB, which holds the
 *    program's thread-local variables as well, or one of the default size if
 *    these leave no room.  A callback may use 128 KiB of it.  On a thread of
 *    the host it may use what the host has provided beyond the 16 KiB that the
 *    library may need (rt_thread_attach).
 *  - Several threads may call it at the same time, even for the same object.
 *    It may be called more than once for one object in one collection, and
 *    outside of marking as well (rt_config.checkmark, tracecheck).  So it must
 *    change nothing, except where rt_trace_first permits it.  RT_KIND_SERIAL
 *    and RT_KIND_ONCE promise more.
 *  - It never runs inside another callback.
 *  - It must not allocate, block, poll, or leave by longjmp or by an exception.
 *    It must not take a lock that a thread may hold where it polls or blocks,
 *    or when it ends a blocking region.  It may call those functions of this
 *    library that rt/rt.h names for a callback of a collection.
 *  - The object may be one that the host has not filled yet: what the host had
 *    stored when its thread was stopped is there, and the rest is zero.
 *  - It may read other objects that the object refers to, and memory of the
 *    host.
 *  - In a heap with a kind with RT_KIND_DROP_DEEP, the object may be dead:
 *    rt_size, rt_base, rt_is_heap and rt_kind_of know nothing of it.  Its
 *    destructor may run just then, or have run.  So a destructor that frees
 *    memory which the callback reads must change the object so that the
 *    callback no longer reads it.
 */
typedef void rt_trace_fn(rt_tracer *t, void *obj, size_t size, void *arg);

/*
 * A describe callback writes what a person would call an object, for example
 * Table#registry, into buf.  It writes at most n bytes and returns their
 * number; no null byte is needed.  Bytes that are not printable ASCII are shown
 * as '?'.  The library calls it, with the world stopped, for the report of
 * rt_config.checkmark, just before the process ends, and for those of
 * rt_config.tracecheck.
 *
 * size is rt_size(obj).  The object may be one that the host has not filled
 * yet, or one that nothing reaches any more.  Then an object to which it refers
 * still exists if its trace callback or bitmap told the reference, and may be
 * gone if that forgot it.  A describe callback must not tell references, nor do
 * anything that a trace callback must not do.
 */
typedef size_t rt_describe_fn(const void *obj, size_t size, char *buf, size_t n,
			      void *arg);

/*
 * A drop callback, or destructor, ends what a dead object owns outside the
 * heap, for example a file.  It is called once for each dead object of a kind
 * with RT_KIND_DROP.  rt/final.h says when: with the world running, and never
 * inside another destructor.  It is called inside an allocation only if a
 * handler that the allocation calls runs destructors.  size is the rt_size that
 * the object had when it was alive.
 *
 *  - The whole memory of the object is still there.  If the object died before
 *    the host had filled it, the rest is zero.
 *  - All objects of kinds with RT_KIND_DROP that died in one collection stay in
 *    place until the last of their destructors has returned.  Those that an
 *    rt_drop_now drops stay in place until it returns.  The destructors run in
 *    no particular order.
 *  - Other objects that a dead one points to may be gone, and new objects may
 *    have their memory, so rt_is_heap of such an address may be 1.  With
 *    RT_KIND_DROP_DEEP they stay.
 *  - It must leave an object that the collector can trace.  If a dead object
 *    with RT_KIND_DROP_DEEP refers to this one, the references of this one are
 *    still followed after its destructor has returned.  So the header must lead
 *    to the same type.  The comment of rt_trace_fn says what a callback needs.
 *  - For rt_is_heap, rt_size, rt_base, rt_kind_of, rt_free, rt_realloc and
 *    rt_heap_walk a dead object is no object.
 *  - It may do what its thread may do elsewhere: allocate, block, register
 *    roots, free objects that are alive, fork.
 *  - It must not make a dead object reachable again, because the memory is
 *    freed all the same.
 *  - It must not leave by longjmp or by an exception.  rt_thread_detach and
 *    rt_fini return RT_EBUSY in it.
 */
typedef void rt_drop_fn(void *obj, size_t size, void *arg);

/*
 * A type: the layout of an object.  The host owns it and all that it points to,
 * and must keep both unchanged and outside the heap for as long as an object of
 * the type exists.  The library never writes to a type, so it may be constant.
 *
 * A host may free a type when no object leads to it any more: after
 * rt_kind_unregister of its kinds, after rt_fini, or when rt_heap_walk, called
 * after a collection, finds no object of the type.  Such a walk does not show
 * objects that are ready to be dropped, but these still need their type.  So
 * with RT_KIND_DROP a host must also run all destructors after that collection,
 * until rt_finalizers_ready returns 0.  No destructor may free a type, because
 * others of its batch may need it.
 *
 * An object begins with a fixed part of size bytes.  If tail_size is not 0,
 * equal elements of tail_size bytes follow up to the end of the object; an
 * element that does not fit is not read.  Nothing is read beyond the object.
 *
 * The bitmaps have a bit for each word, 64 to an element of the array, the
 * lowest bit first.  Bit i is 1 if word i is a reference.  With a format of
 * stride 16 it is 1 if word i is the value word of a value; the tag word must
 * be in the same part.  The format of the type holds for every word whose bit
 * is 1.  So the bit of a plain address beside values in another form must be 0,
 * and trace must tell that address.  trace, if it is not null, is called after
 * the bitmaps have been followed.
 *
 * Types that a header or a table leads to are not checked when they are used.
 * So a host should pass each to rt_type_check before an object leads to it.
 *
 * A host must set struct_size to sizeof(rt_type), and all fields that it does
 * not need to 0.  The struct may grow at its end.  A library accepts a longer
 * struct than its own if all fields that it does not know are zero.
 */
typedef struct rt_type {
	size_t struct_size;
	size_t size;		     /* bytes of the fixed part */
	size_t ptrdata;		     /* bytes of it up to the end of its last
					reference; a multiple of 8 */
	const uint64_t *bitmap;	     /* ptrdata / 8 bits */
	size_t tail_size;	     /* bytes of an element; a multiple of 8 */
	size_t tail_ptrdata;	     /* as ptrdata, of an element */
	const uint64_t *tail_bitmap; /* tail_ptrdata / 8 bits */
	const rt_value_format *format; /* NULL: RT_FORMAT_PLAIN */
	rt_trace_fn *trace;
	rt_drop_fn *drop; /* NULL: that of the kind.  Without RT_KIND_DROP it
			     has no effect; rt_alloc_typed refuses it */
	rt_describe_fn *describe; /* NULL: that of the kind.  rt_alloc_typed
				     keeps none */
	void *arg;		  /* for these three; a callback of the kind
				     gets the arg of the kind */
	const char *name;	  /* for reports; may be NULL */
	uint32_t align; /* of objects of rt_alloc_typed, 8 or 16; 0: 16 */
	uint32_t spare; /* 0 */
} rt_type;

/*
 * RT_TYPE_INIT initialises an rt_type in C99 and in C++11.  The arguments are
 * the fields behind struct_size, from size to align.  (C has designated
 * initialisers as well.)
 */
#define RT_TYPE_INIT(size, ptrdata, bitmap, tail_size, tail_ptrdata,           \
		     tail_bitmap, format, trace, drop, describe, arg, name,    \
		     align)                                                    \
	{                                                                      \
		sizeof(rt_type), (size), (ptrdata), (bitmap), (tail_size),     \
		    (tail_ptrdata), (tail_bitmap), (format), (trace), (drop),  \
		    (describe), (arg), (name), (align), 0                      \
	}

/* Where the collector finds the layout of an object. */
enum rt_layout {
	RT_LAYOUT_NONE,	  /* there are no references */
	RT_LAYOUT_WORDS,  /* every word is a value in rt_kind_desc.format */
	RT_LAYOUT_TYPE,	  /* rt_kind_desc.type is the type of every object */
	RT_LAYOUT_HEADER, /* a word of the object leads to its rt_type */
	RT_LAYOUT_INDEX,  /* bits of such a word number rt_kind_desc.types */
	RT_LAYOUT_TRACE	  /* rt_kind_desc.trace tells */
};

/*
 * What else holds for the objects of a kind.  The flags are or-ed.
 *
 * RT_KIND_SERIAL: trace callbacks run on the thread that collects, one after
 * another.  That may be the background thread (rt_config.gc_period_s).  A host
 * without thread-safe callbacks sets it in all its kinds; then no two callbacks
 * run at the same time.
 *
 * RT_KIND_ONCE: rt_trace_first works in trace callbacks.
 *
 * RT_KIND_BASE: a word in the heap or in a registered range refers to an object
 * only if it points to the first 16 bytes of it, whatever its low three bits
 * are.  The same holds for what a callback tells.  So a number that happens to
 * equal an address inside a large array does not keep the array.  On stacks and
 * in registers of threads a pointer to any place in the object is enough, and
 * with rt_config.past_end one to its end.
 *
 * RT_KIND_DROP: a dead object is dropped by the drop callback of its type.  If
 * it has no type, or if its type has no such callback, the one of the kind
 * drops it.  If the kind has none either, nothing is called.  A kind with this
 * flag must have a drop callback, or types that may have some.  With
 * rt_config.align8 an object of at most 8 bytes takes 16.  The result of
 * rt_alloc_kind for size 0 has no destructor.
 *
 * RT_KIND_DROP_DEEP, only with RT_KIND_DROP: all that a dead object reaches
 * stays in place as long as the object itself, that is, until the last
 * destructor of those that died with it has returned.  Without this flag only
 * the dead objects themselves stay.
 *
 * RT_KIND_SERIAL and RT_KIND_ONCE are for kinds with trace callbacks.  They are
 * refused with RT_LAYOUT_NONE, with RT_LAYOUT_WORDS, and with RT_LAYOUT_TYPE
 * for a type without a callback.
 */
enum rt_kind_flags {
	RT_KIND_SERIAL = 2,
	RT_KIND_ONCE = 4,
	RT_KIND_DROP = 8,
	RT_KIND_BASE = 16,
	RT_KIND_DROP_DEEP = 32
};

/* rt_kind_desc.type_offset with RT_LAYOUT_HEADER: the value of the header word
 * is the address of the rt_type itself. */
#define RT_TYPE_IS_HEADER PTRDIFF_MIN

/* rt_kind_desc.number: any free number below RT_KIND_ALIGN8_FIRST, or from
 * there on. */
enum { RT_KIND_ANY = 0, RT_KIND_ANY_ALIGN8 = -1 };

/*
 * A kind, as rt_kind_register is told of it.  rt_kind_desc_init fills in
 * struct_size and zeros.  The struct may grow at its end.  A library accepts a
 * longer struct than its own if all fields that it does not know are zero.
 *
 * The header word is the 8 bytes at header_offset of an object.  Its value is
 * (word & header_mask) >> header_shift; a mask of UINT64_MAX takes all of it.
 *
 * RT_LAYOUT_HEADER: an object with the value 0 has no references yet, so a host
 * must store the header before the first reference.  Any other value is an
 * address: the 8 bytes at value + type_offset hold the address of the rt_type.
 * With RT_TYPE_IS_HEADER the value itself is the address of the rt_type.  An
 * object whose rt_type is null has no references.  The header does not keep
 * alive what it leads to.  If that is in the heap, a bitmap or a callback must
 * tell it.  With RT_KIND_DROP, all that lies between the header and the rt_type
 * must be outside the heap, or of a kind with RT_KIND_DROP, so that it still
 * exists when the library looks for the destructor.
 *
 * RT_LAYOUT_INDEX: the value numbers an entry of types, which has ntypes
 * entries.  The table belongs to the host, which must keep it as long as the
 * kind exists.  A number beyond it, or a null entry, means that there are no
 * references.  The host may fill a null entry at any time before it allocates
 * an object of that number.
 *
 * An object too small for its header word has no references.
 *
 * An object that has no references for one of these reasons has no type.  With
 * RT_KIND_DROP the drop callback of its kind drops it all the same.
 *
 * trace is for RT_LAYOUT_TRACE, format for RT_LAYOUT_WORDS, type for
 * RT_LAYOUT_TYPE, and types for RT_LAYOUT_INDEX.  With any other layout they
 * must be NULL.  (An rt_type has its own format and callback.)  drop and
 * describe are for every layout, but an object's rt_type can replace them.
 * Each callback gets the arg of the struct that it is from.  drop must be NULL
 * without RT_KIND_DROP.
 */
typedef struct rt_kind_desc {
	size_t struct_size;
	const char *name; /* for reports; NULL, or at most 31 bytes of it are
			     copied */
	int layout;	  /* enum rt_layout */
	uint32_t flags;	  /* enum rt_kind_flags */
	int number;	  /* RT_KIND_ANY, RT_KIND_ANY_ALIGN8, or the number that
			     the host wants, so that it can be a constant */
	uint32_t spare;	  /* 0 */
	rt_trace_fn *trace;
	rt_drop_fn *drop;
	rt_describe_fn *describe;
	void *arg; /* for these three; a type's callback gets the type's arg */
	const rt_value_format *format; /* copied; NULL: RT_FORMAT_PLAIN */
	const rt_type *type;
	size_t header_offset; /* a multiple of 8 */
	uint64_t header_mask;
	uint32_t header_shift; /* at most 63 */
	uint32_t ntypes;
	ptrdiff_t type_offset; /* a multiple of 8 */
	const rt_type *const *types;
} rt_kind_desc;

/*
 * rt_kind_desc_init_sized sets the first size bytes of *d to zeros, and
 * struct_size to size.  A null d is ignored.
 *
 * Any thread, at any time.  Does not block.
 */
RT_API void rt_kind_desc_init_sized(rt_kind_desc *d, size_t size);
#define rt_kind_desc_init(d) rt_kind_desc_init_sized((d), sizeof *(d))

/*
 * rt_kind_register makes a kind.  *d is copied, and so are name and *format.
 * All else that its pointers lead to is not copied; the collector reads it
 * until the kind is unregistered or the heap ends.
 *
 * Returns the number of the kind, which is above 0, or an error:
 *   RT_EINVAL  d is null; its struct_size is less than the first version of
 *              this struct has, above 4096, or above this library's while a
 *              field that it does not know is not zero; spare is not 0; layout
 *              or number is none of those above; format is not in order
 *              (rt_value_format); a flag is unknown, or the layout excludes it;
 *              RT_KIND_DROP is set, but no object can have a destructor;
 *              RT_KIND_DROP_DEEP or drop is set without RT_KIND_DROP; the trace
 *              callback, type or table that the layout needs is missing, or
 *              ntypes is 0; one that the layout does not use is set; the type
 *              is not in order (rt_type_check); with RT_LAYOUT_HEADER or
 *              RT_LAYOUT_INDEX, header_offset is not a multiple of 8,
 *              header_shift is above 63, or header_mask is 0; with
 *              RT_LAYOUT_HEADER, type_offset is not a multiple of 8
 *   RT_EEXIST  the number is taken
 *   RT_ENOMEM  no number of those requested by RT_KIND_ANY or
 *              RT_KIND_ANY_ALIGN8 is left, or the system refuses the memory
 *              that RT_KIND_DROP needs
 *   RT_EPERM   the caller is not attached
 *   RT_EBUSY   own stop
 *   RT_ESTATE  inside a blocking region; no heap
 *
 * A kind that is not unregistered ends with the heap.
 *
 * Attached threads, outside a blocking region and not in their own stop.  Does
 * not collect, block or poll.
 */
RT_API int rt_kind_register(const rt_kind_desc *d);

/*
 * rt_kind_unregister ends a kind.  Its number is free again.  After it has
 * returned RT_OK, the library uses no callback, type or table of the kind any
 * more, so the code that has them can be unloaded.
 *
 * Returns RT_OK, or RT_EINVAL (not a number of RT_KIND_FIRST to RT_KIND_MAX),
 * RT_ENOENT (no such kind), RT_EBUSY (objects of the kind exist, including dead
 * ones that wait for their destructor: rt_gc and rt_run_finalizers may free
 * them; or own stop), RT_EPERM (not attached), RT_ESTATE (inside a blocking
 * region or a no-GC stretch; no heap).  After an RT_EBUSY for objects, a later
 * call may succeed, when collections and destructors have freed the objects.
 * An RT_EBUSY for the caller's own stop does not end by itself.
 *
 * Attached threads, outside a blocking region and a no-GC stretch, and not in
 * their own stop.  Blocks, since it stops the world.  Does not collect.
 */
RT_API int rt_kind_unregister(int kind);

/*
 * rt_type_check returns RT_OK if a type is in order.  Otherwise it returns
 * RT_EINVAL, because one of these is true:
 *
 *  - type is null
 *  - its struct_size is wrong as for rt_kind_register
 *  - ptrdata is not a multiple of 8, or beyond size
 *  - tail_size is not a multiple of 8
 *  - tail_size is not 0, and size is not a multiple of 8
 *  - tail_ptrdata is not a multiple of 8, or beyond tail_size
 *  - a bitmap is null while its ptrdata is not 0
 *  - format is not in order (rt_value_format)
 *  - the tag word of a value is not in its part
 *  - align is not 0, 8 or 16
 *  - spare is not 0
 *
 * The type of a kind (rt_kind_desc.type) is checked when the kind is
 * registered, and that of rt_alloc_typed at each call.  Types to which an
 * object leads are not checked.
 *
 * Any thread, at any time.  Does not block.
 */
RT_API int rt_type_check(const rt_type *type);

/*
 * rt_kind_of returns the kind of the object that p points to or into, or
 * RT_ENOENT (p is in no object), RT_ESTATE (no heap).
 *
 * Any thread, at any time, even in its own stop and in callbacks.  Does not
 * block, collect or poll.
 */
RT_API int rt_kind_of(const void *p);

#ifdef __cplusplus
}
#endif

#endif
