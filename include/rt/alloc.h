/*
 * alloc.h - allocation, and questions about pointers.
 *
 * An object lives as long as a root, a stack, a register or a live object
 * refers to its beginning or its inside.  No object has to be freed by hand,
 * but a host may free one (rt/free.h).  Only rt_realloc moves objects.  A kind
 * may have destructors (rt/final.h).  This version has no finalizers that could
 * keep an object, and no weak references.
 *
 * A host can make a table whose entries do not keep their objects alive.  Each
 * entry holds the complement of an address (~address).  The objects are of a
 * kind with destructors, and the destructor takes the entry out, as the host
 * does before rt_free and rt_realloc.  A function that looks an entry up asks
 * rt_is_heap first, which is 0 from the object's death on, and puts the address
 * into a root before it polls.  This is right because marking stops the world:
 * a version that marks beside the threads will have weak references for this.
 *
 * The destructor must take the entry out before it polls, blocks or ends its
 * thread.  Otherwise a fork by another thread may leave the entry in the child,
 * where this destructor does not run again (rt/final.h).  Such a child must
 * take out every entry whose rt_is_heap is 0, before it allocates, collects or
 * runs destructors.  These may free the dead object, and then a new object may
 * get its address.
 */
#ifndef RT_ALLOC_H
#define RT_ALLOC_H

#include <rt/version.h>
#include <rt/kind.h>
#include <rt/thread.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * ---- What inline allocation fixes into the ABI ----
 *
 * The inline functions below are compiled into the host.  Everything that they
 * touch, including struct rt_thread of rt/thread.h, is frozen for this soname.
 * A host must not touch any of it itself.
 */

/*
 * The number of size classes that have runs (classes 0 to 32), the largest size
 * that is allocated inline, and the smallest such size of RT_NOSCAN.  Smaller
 * requests of RT_NOSCAN (with rt_config.align8, those below 16 bytes) are
 * combined: several share a slot of 16 bytes.
 */
enum { RT_RUN_CLASSES = 33, RT_INLINE_MAX = 1024, RT_NOSCAN_MIN = 6 };

/*
 * The rows of a thread's table of runs, for rt_alloc_noscan_uninit (whose runs
 * are not cleared), for RT_NOSCAN, and for RT_WORDS.  RT_ROWS is the number of
 * rows, and RT_ROW_RUNS the number of runs in them.
 */
enum {
	RT_ROW_UNINIT = 0,
	RT_ROW_NOSCAN = 1,
	RT_ROW_WORDS = 2,
	RT_ROWS = 3,
	RT_ROW_RUNS = 99
};

/*
 * A run: free slots in a row, [start, cur), that belong to one thread.  An
 * allocation takes the last one.  A pointer to an object also equals the end of
 * the object below it, and so may keep that one alive as well
 * (rt_config.past_end).  Because a run is used downwards, the object below is
 * younger.  So it is not the root of what was built before.
 */
struct rt_run {
	char *cur;
	char *start;
};

/*
 * A thread's runs: RT_ROWS rows of RT_RUN_CLASSES, and for each kind (enum
 * rt_kind) its row.  The row of a kind that the thread has not used yet is
 * empty.
 */
struct rt_runs {
	struct rt_run row[RT_ROW_RUNS];
	struct rt_run *kind[32]; /* those above RT_KIND_MAX are private */
};

RT_ABI_ASSERT_(sizeof(struct rt_run) == 16, "rt_run is ABI");
RT_ABI_ASSERT_(offsetof(struct rt_run, cur) == 0, "rt_run is ABI");
RT_ABI_ASSERT_(offsetof(struct rt_run, start) == 8, "rt_run is ABI");
RT_ABI_ASSERT_(offsetof(struct rt_runs, row) == 0, "rt_runs is ABI");
RT_ABI_ASSERT_(offsetof(struct rt_runs, kind) == 1584, "rt_runs is ABI");

/*
 * rt_alloc_slow_ allocates n bytes for the thread t, whose run i has no room
 * for them.  i is row * RT_RUN_CLASSES if the request is not inline.  nostop
 * may be 0 or 1 on entry; it is 0 on return.
 */
RT_API void *rt_alloc_slow_(rt_thread *t, unsigned i, size_t n);

/* rt_alloc_of_slow_ allocates n bytes of a kind for t; kind may be any
 * number. */
RT_API void *rt_alloc_of_slow_(rt_thread *t, int kind, size_t n);

/* rt_row_inline_ returns whether n bytes of a row have a run. */
static inline __attribute__((always_inline)) int rt_row_inline_(unsigned row,
								size_t n)
{
	const size_t least = row == RT_ROW_WORDS ? 1 : RT_NOSCAN_MIN;

	return n - least <= RT_INLINE_MAX - least;
}

/*
 * rt_class_ returns the size class of n bytes, 0 to 1024.  The result is a
 * constant if n is one.  Class 3 (24 bytes) is left out, so that objects of 16
 * bytes or more are aligned to 16.  Class 1 (8 bytes) is for objects without
 * pointers.
 */
static inline __attribute__((always_inline)) unsigned rt_class_(unsigned row,
								size_t n)
{
	/* By granules of 16 bytes. */
	static const uint8_t c[RT_INLINE_MAX / 16 + 1] = {
	    2,	2,  4,	5,  6,	7,  8,	9,  10, 11, 12, 13, 14, 15, 16, 17, 18,
	    19, 19, 20, 20, 21, 21, 22, 22, 23, 23, 24, 24, 25, 25, 26, 26, 27,
	    27, 27, 27, 28, 28, 28, 28, 29, 29, 29, 29, 30, 30, 30, 30, 31, 31,
	    31, 31, 31, 31, 31, 31, 32, 32, 32, 32, 32, 32, 32, 32};

	return n <= 8 && row != RT_ROW_WORDS ? 1 : c[(n + 15) / 16];
}

/* rt_class_size_ returns the bytes of a slot of class c, 0 to 32. */
static inline __attribute__((always_inline)) ptrdiff_t
rt_class_size_(unsigned c)
{
	static const uint16_t s[RT_RUN_CLASSES] = {
	    0,	 8,   16,  24,	32,  48,  64,  80,  96,	 112, 128,
	    144, 160, 176, 192, 208, 224, 240, 256, 288, 320, 352,
	    384, 416, 448, 480, 512, 576, 640, 704, 768, 896, 1024};

	return s[c];
}

/*
 * rt_run_take_ sets *slot to the next slot, of size bytes, of a run of t, and
 * returns 1.  Returns 0, and leaves nostop set, if the run has no slot left.
 *
 * nostop is for stops by signal, which this version does not make.  Such a
 * stop, if it comes between the two stores of nostop, waits until the thread
 * enters the library.  So the stopper never sees a run half changed.
 */
static inline __attribute__((always_inline)) int
rt_run_take_(rt_thread *t, struct rt_run *r, ptrdiff_t size, void **slot)
{
	char *p;

	__atomic_store_n(&t->nostop, 1, __ATOMIC_RELAXED);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	p = r->cur;
	if (__builtin_expect(p - r->start < size, 0))
		return 0;
	*slot = p -= size;
	r->cur = p;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	__atomic_store_n(&t->nostop, 0, __ATOMIC_RELAXED);
	return 1;
}

/*
 * rt_alloc_row_ takes the next slot of a run, in about ten instructions if n is
 * constant and in twenty otherwise.  The row must be constant.
 */
static inline __attribute__((always_inline)) void *
rt_alloc_row_(rt_thread *t, unsigned row, size_t n)
{
	unsigned i = row * RT_RUN_CLASSES;

	if (rt_row_inline_(row, n)) {
		const unsigned c = rt_class_(row, n);
		struct rt_run *r = &t->run[i += c];
		void *slot;

		if (rt_run_take_(t, r, rt_class_size_(c), &slot))
			return slot;
	}
	return rt_alloc_slow_(t, i, n);
}

/* rt_class_of_ returns the size class of n bytes of a registered kind. */
static inline __attribute__((always_inline)) unsigned rt_class_of_(int kind,
								   size_t n)
{
	return kind >= RT_KIND_ALIGN8_FIRST && n - 17 <= 24 - 17
		   ? 3
		   : rt_class_(RT_ROW_WORDS, n);
}

/*
 * rt_class_of_size_ returns the bytes of a slot of class c, which is
 * rt_class_of_(kind, n).  gcc takes seven instructions less if no table is read
 * for a constant n of 17 to 24; clang takes five more.
 */
static inline __attribute__((always_inline)) ptrdiff_t
rt_class_of_size_(int kind, size_t n, unsigned c)
{
#ifndef __clang__
	if (__builtin_constant_p(n) && n - 17 <= 24 - 17)
		return kind >= RT_KIND_ALIGN8_FIRST ? 24 : 32;
#endif
	(void)kind;
	(void)n;
	return rt_class_size_(c);
}

/*
 * rt_alloc_of_ takes the next slot of a run of a kind.  The runs of a thread
 * are found through one pointer for each kind.
 */
static inline __attribute__((always_inline)) void *
rt_alloc_of_(rt_thread *t, int kind, size_t n)
{
	if (__builtin_constant_p(kind) && kind == RT_NOSCAN)
		return rt_alloc_row_(t, RT_ROW_NOSCAN, n);
	if (__builtin_constant_p(kind) && kind == RT_WORDS)
		return rt_alloc_row_(t, RT_ROW_WORDS, n);
	if (kind >= RT_KIND_FIRST && kind <= RT_KIND_MAX &&
	    n - 1 <= RT_INLINE_MAX - 1) {
		const unsigned c = rt_class_of_(kind, n);
		struct rt_run *r =
		    &RT_CAST_(const struct rt_runs *, t->run)->kind[kind][c];
		void *slot;

		if (rt_run_take_(t, r, rt_class_of_size_(kind, n, c), &slot))
			return slot;
	}
	return rt_alloc_of_slow_(t, kind, n);
}

/*
 * ---- Allocation ----
 *
 * The following holds for every function that allocates objects.
 *
 * The result is n bytes of zeros (but see rt_alloc_noscan_uninit), aligned to
 * 16 bytes.  There are three exceptions.  With rt_config.align8 it may be
 * aligned to 8.  The same holds for 17 to 24 bytes of a kind from
 * RT_KIND_ALIGN8_FIRST on, or of a type with align 8.  An object that is
 * smaller than 16 bytes and has no pointers is aligned to the largest power of
 * two, at most 8, that divides n.  An object has no header beside its n bytes.
 * The object belongs to the collector; a host must not pass it to free.
 *
 * Returns NULL if there is no memory even after a collection and a call of the
 * host's handler (rt_set_oom_handler).  That collection begins after the
 * request, and what it frees goes first to the requests that waited for it.
 * The hard limit (rt_set_heap_max) counts as the end of memory.
 *
 * Returns NULL without a call of the handler if n is more than the heap's
 * address space (rt_config.max_heap), if there is no heap, or if the thread is
 * not attached, inside a blocking region or in its own stop.  In a no-GC
 * stretch (rt_nogc_enter) an allocation neither collects nor polls.  If there
 * is no memory without a collection, it returns NULL there without a call of
 * the handler.  It also returns NULL if a handler detaches the thread
 * (Handlers in rt/gc.h).
 *
 * If n is 0, and none of these cases applies, the result is the address of one
 * byte outside the heap.  This address is always the same, and is neither
 * counted nor freed.
 *
 * Attached threads, outside a blocking region.  Collects, blocks and polls.
 *
 * But in most cases an allocation of up to RT_INLINE_MAX bytes does these only
 * when its run is used up: once in at most 8 KiB of one size class and kind.
 * Otherwise it only takes a slot of the run, inline or not, even if a stop is
 * requested.  So a loop that allocates seldom must poll as well (rt_poll).
 * Every larger allocation polls.
 */

/*
 * rt_alloc allocates an object of kind RT_WORDS, rt_alloc_noscan one of kind
 * RT_NOSCAN.  They exist as functions for bindings and for function pointers;
 * macros of the same names hide them.
 */
RT_API void *rt_alloc(size_t n);
RT_API void *rt_alloc_noscan(size_t n);

/*
 * rt_alloc_in and rt_alloc_noscan_in are the same for a thread that has its own
 * handle at hand.  t must be rt_thread_self() of the calling thread, and must
 * not be null.  A thread that may be unattached must use rt_alloc and
 * rt_alloc_noscan.
 */
RT_API void *rt_alloc_in(rt_thread *t, size_t n);
RT_API void *rt_alloc_noscan_in(rt_thread *t, size_t n);

/*
 * rt_alloc_noscan_uninit is rt_alloc_noscan for a caller that writes all of the
 * object before it reads any of it.  The contents are undefined, and may be
 * what freed objects held.
 */
RT_API void *rt_alloc_noscan_uninit(size_t n);

/*
 * rt_alloc_kind allocates an object of the kind given: RT_NOSCAN, RT_WORDS or
 * one that is registered (rt_kind_register).  An object of 17 to 24 bytes of a
 * kind from RT_KIND_ALIGN8_FIRST on takes 24 bytes and is aligned to 8.
 * Returns NULL as well if there is no such kind.
 */
RT_API void *rt_alloc_kind(int kind, size_t n);

/*
 * rt_alloc_of is rt_alloc_kind, inline for registered kinds.  It takes one
 * instruction more than rt_alloc if the kind is a constant
 * (rt_kind_desc.number), and several more if it is not.  rt_alloc_kind_in is
 * rt_alloc_of for a thread that has its own handle at hand, like rt_alloc_in.
 */
RT_API void *rt_alloc_of(int kind, size_t n);
RT_API void *rt_alloc_kind_in(rt_thread *t, int kind, size_t n);

/*
 * rt_alloc_typed allocates an object of a type (rt_type).  No word of the
 * object has to lead to the type.  Its kind is RT_TYPED.  The collector reads
 * only the words that the bitmaps name; any other word may hold anything.
 *
 * count is the number of elements of the tail.  If the type has no tail, the
 * object is an array of count elements of the whole type: 1 for a single
 * object.  The object has exactly the bytes that these elements need.  If they
 * need none, the result is the same as for n = 0.  With type->align 8, an
 * object of 17 to 24 bytes takes 24 bytes and is aligned to 8.
 *
 * From the first call on, the library keeps one bit for each word of the heap,
 * which takes 1.6 % more memory and counts in gc_sys of rt_memstats.  An object
 * of more than 32760 bytes, or a guarded one, has no bits: the collector reads
 * the type's bitmaps as long as the object exists.
 *
 * Returns NULL in the same cases as rt_alloc, and in these:
 *
 * - type is null or not in order (rt_type_check), or it has a trace or drop
 *   callback, or a format other than RT_FORMAT_PLAIN, which bits cannot
 *   describe;
 * - the size is beyond SIZE_MAX;
 * - count is 0 or above 1 in an array of a type with references whose size is
 *   not a multiple of 8;
 * - the system refuses address space for the bits when a heap first needs them.
 *   The handler is not called, and a later call tries again.
 */
RT_API void *rt_alloc_typed(const rt_type *type, size_t count);

/*
 * rt_alloc_array is rt_alloc_kind(kind, head + count * size).  It also returns
 * NULL if that size does not fit in a size_t.
 */
RT_API void *rt_alloc_array(int kind, size_t head, size_t count, size_t size);

/*
 * rt_alloc_aligned is rt_alloc_kind for an address that is a multiple of align,
 * a power of two from 8 to 2 MiB.  Returns NULL as well for any other align.
 * rt_size may be more than that of another object of n bytes; with an align
 * above 8192 it is whole pages.  An object with an align above 16 is not
 * guarded (rt_config.guard_large, guard_small).  rt_realloc may move the
 * object; then it is aligned to 16 bytes at most.
 */
RT_API void *rt_alloc_aligned(int kind, size_t align, size_t n);

/*
 * rt_alloc_many writes up to count new objects of a kind, of n bytes each, to
 * out.  It returns how many it wrote.  That is less than count if memory runs
 * out, a collection becomes due, free pages must be released for the memory
 * limit, or memory of the dead is being freed (rt_config.sweep).  If n is above
 * 32760, the result is at most 1.  Returns 0 where rt_alloc_kind returns NULL,
 * and if count is 0 or out is null.
 *
 * It collects only before the first object.  The collector does not know of
 * out.  So before the thread polls again, the objects must be in a root, or out
 * must lie on a stack that is scanned.
 */
RT_API size_t rt_alloc_many(int kind, size_t n, size_t count, void **out);

/*
 * rt_memdup allocates a copy of the n bytes at p, of kind RT_NOSCAN.  rt_strdup
 * copies a string and its null byte.  The original may be in the heap or
 * outside.  On a thread with exact roots a root or a frame must hold an
 * original in the heap.  Both return NULL where rt_alloc_noscan does, and if p
 * or s is null.  If n is 0, p may be null.
 */
RT_API void *rt_memdup(const void *p, size_t n);
RT_API char *rt_strdup(const char *s);

/*
 * The macros below are inline for 1 to RT_INLINE_MAX bytes, and for
 * pointer-free objects for RT_NOSCAN_MIN to RT_INLINE_MAX bytes, whether the
 * size is constant or not.  There are no macros, and so only calls, in a host
 * that defines RT_NO_INLINE_ALLOC, and where the compiler defines
 * __SANITIZE_ADDRESS__.  The arguments for the kind and the size may contain
 * commas, as template arguments do, but t may not.
 */
#if !defined(RT_NO_INLINE_ALLOC) && !defined(__SANITIZE_ADDRESS__)
#define rt_alloc_in(t, ...) rt_alloc_row_((t), RT_ROW_WORDS, __VA_ARGS__)
#define rt_alloc_noscan_in(t, ...)                                             \
	rt_alloc_row_((t), RT_ROW_NOSCAN, __VA_ARGS__)
#define rt_alloc_kind_in(t, ...) rt_alloc_of_((t), __VA_ARGS__)
#define rt_alloc_of(...) rt_alloc_of_(rt_thread_tls, __VA_ARGS__)
#define rt_alloc(...) rt_alloc_row_(rt_thread_tls, RT_ROW_WORDS, __VA_ARGS__)
#define rt_alloc_noscan(...)                                                   \
	rt_alloc_row_(rt_thread_tls, RT_ROW_NOSCAN, __VA_ARGS__)
#define rt_alloc_noscan_uninit(...)                                            \
	rt_alloc_row_(rt_thread_tls, RT_ROW_UNINIT, __VA_ARGS__)
#endif

/*
 * ---- Questions about pointers ----
 *
 * These functions accept every 64-bit value, and do not read the memory that it
 * points to.  An answer holds as long as the caller keeps the object alive.
 *
 * Any thread, at any time, even in its own stop.  They do not block, collect or
 * poll.
 */

/*
 * rt_size returns the size of the allocated object that obj points to or into:
 * the bytes of its size class or, above 32760 bytes, whole pages of 8192.  The
 * size is at least the size requested.  The caller may use all of these bytes,
 * from rt_base on, unless combined requests share the object, or the object has
 * pages of its own.  It has these above 32760 bytes, with an align above 8192
 * (rt_alloc_aligned), with a guard, and when it was made smaller from more than
 * 32760 bytes in place.  In such an object the collector scans only the bytes
 * requested, and only pointers to these bytes keep the object alive.  Here
 * rt_alloc_aligned counts as a request of n bytes rounded up to a multiple of
 * align, or of 16 if that is less.  For a pointer to the rest, rt_size, rt_base
 * and rt_is_heap answer as if there were no object.  Objects without pointers
 * that were combined because they are smaller than RT_NOSCAN_MIN bytes (with
 * rt_config.align8, than 16) count as one of 16.  For a guarded object
 * (rt_config.guard_large, guard_small) the result is the size requested.
 * Returns 0 if obj points into no object.
 */
RT_API size_t rt_size(const void *obj);

/*
 * rt_base returns the beginning of the allocated object that p points to or
 * into, or NULL if p points into no object.
 */
RT_API void *rt_base(const void *p);

/* rt_is_heap returns 1 if p points to or into an allocated object, else 0. */
RT_API int rt_is_heap(const void *p);

/*
 * rt_good_size returns what rt_size would return for an RT_WORDS object of n
 * bytes that is not guarded.  Returns 0 if n is 0, or above 2^40, which is too
 * large for any object.  It needs no heap.  Without one, it answers as for a
 * heap with align8 0.
 */
RT_API size_t rt_good_size(size_t n);

/*
 * rt_good_size_of is the same for an object of a kind.  For RT_TYPED it assumes
 * a type whose align is 0 or 16.  Returns 0 as well if there is no such kind.
 * Without a heap only RT_NOSCAN, RT_WORDS and RT_TYPED exist.
 */
RT_API size_t rt_good_size_of(int kind, size_t n);

/*
 * rt_keep_alive makes the compiler hold p in a register or on the stack until
 * this point, so that the object stays alive.  No code is emitted.  On a thread
 * with RT_THREAD_EXACT it keeps nothing alive.
 *
 * Any thread, at any time.
 */
static inline void rt_keep_alive(const void *p)
{
	__asm__ volatile("" : : "r"(p) : "memory");
}

/*
 * ---- Stacks of interpreters ----
 */

/*
 * rt_stack_alloc returns n bytes for a stack that the host manages.  n must be
 * a power of two, at least 2048.  The stack is no object: its contents are
 * undefined and not scanned, only rt_stack_free frees it, and it counts in
 * stack_inuse of rt_memstats.  It is aligned to n or to 8192, whichever is
 * smaller.
 *
 * Pointers in the stack keep objects alive only while it is registered
 * (rt/roots.h, rt/stack.h), or if a root callback tells them.  The host must
 * end a registration before it frees the stack.
 *
 * The host may protect whole pages of the system's inside the stack, as a guard
 * (mprotect).  It must make them readable and writable again before it frees
 * the stack, because the memory is used again.  Before rt_fini it need not.
 *
 * Bytes of stacks that have come into use since the last collection count
 * towards the next one, as new objects do.
 *
 * Returns NULL if there is no memory even after a collection and a call of the
 * host's handler (rt_set_oom_handler); the hard limit (rt_set_heap_max) counts
 * as the end of memory.  Returns NULL without a call of the handler if n is not
 * such a power of two, or is more than the heap's address space
 * (rt_config.max_heap), if there is no heap, or if the thread is not attached,
 * inside a blocking region or in its own stop.  In a no-GC stretch, and if a
 * handler detaches the thread, it behaves like the functions that allocate
 * objects.
 *
 * Attached threads, outside a blocking region.  Collects, blocks and polls.
 */
RT_API void *rt_stack_alloc(size_t n);

/*
 * rt_stack_free frees what rt_stack_alloc(n) returned, on any attached
 * thread.
 *
 * Returns 0, or RT_EINVAL (p is null, or not from rt_stack_alloc(n)),
 * RT_EPERM (not attached), RT_EBUSY (own stop), RT_ESTATE (inside a blocking
 * region; no heap).  A stack that is freed twice is not always detected.
 *
 * Attached threads, outside a blocking region.  Does not collect, block or
 * poll.
 */
RT_API int rt_stack_free(void *p, size_t n);

#ifdef __cplusplus
}
#endif

#endif
