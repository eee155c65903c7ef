// atomic.h - shared words, with the memory order in the name.
//
// Go: internal/runtime/atomic.
//
// A thin typed layer over libatomic_ops: the type says that a word is shared,
// the suffix says the order, and there is no default order.
//
//   relaxed  counters that no thread orders by
//   acquire  a load (or exchange) that follows what a release published
//   release  a store (or add, or exchange) that publishes
//   seqcst   one total order with every other seqcst operation
//
// AO's _full forms are not enough for seqcst: AO_compare_and_swap_full is
// acquire-release only, and on aarch64 a full read-modify-write may be
// reordered with a plain load after it.  There the forms below add a full
// fence; on x86-64 the locked instruction is one.  ThreadSanitizer does not
// see fences, so no two threads synchronise through a fence alone.
#ifndef RUNTIME_BASE_ATOMIC_H
#define RUNTIME_BASE_ATOMIC_H

#include <atomic_ops.h>

#include "runtime/base/base.h"

static_assert(sizeof(AO_t) == 8, "one word is 64 bits");
static_assert(sizeof(unsigned) == 4, "AO_int is 32 bits");

// Only this file touches the field of each type.
typedef struct {
	AO_t word;
} atomic_u64;

typedef struct {
	unsigned word;
} atomic_u32;

typedef struct {
	AO_t word;
} atomic_ptr;

// Every seqcst store and read-modify-write ends in a full barrier, so a later
// seqcst load of the same thread needs none.  AO_load_full would spend 20 ns on
// a second one.  On x86-64 a locked instruction is that barrier.  Elsewhere a
// later plain load may pass a read-modify-write of AO; this fence prevents it.
#if defined(__x86_64__)
#define ATOMIC_SEQCST_FENCE() ((void)0)
#else
#define ATOMIC_SEQCST_FENCE() AO_nop_full()
#endif

// ---- 64 bits ----

RT_INLINE uint64_t atomic_u64_load_relaxed(const atomic_u64 *a)
{
	return AO_load(&a->word);
}

RT_INLINE uint64_t atomic_u64_load_acquire(const atomic_u64 *a)
{
	return AO_load_acquire(&a->word);
}

RT_INLINE void atomic_u64_store_relaxed(atomic_u64 *a, uint64_t v)
{
	AO_store(&a->word, v);
}

RT_INLINE void atomic_u64_store_release(atomic_u64 *a, uint64_t v)
{
	AO_store_release(&a->word, v);
}

// atomic_u64_add_relaxed adds n (which may be a negative number converted) and
// returns the sum.
RT_INLINE uint64_t atomic_u64_add_relaxed(atomic_u64 *a, uint64_t n)
{
	return AO_fetch_and_add(&a->word, n) + n;
}

// atomic_u64_cas_* stores v and returns true if the word was old.
RT_INLINE bool atomic_u64_cas_relaxed(atomic_u64 *a, uint64_t old, uint64_t v)
{
	return AO_compare_and_swap(&a->word, old, v);
}

RT_INLINE bool atomic_u64_cas_release(atomic_u64 *a, uint64_t old, uint64_t v)
{
	return AO_compare_and_swap_release(&a->word, old, v);
}

RT_INLINE bool atomic_u64_cas_seqcst(atomic_u64 *a, uint64_t old, uint64_t v)
{
	bool stored = AO_compare_and_swap_full(&a->word, old, v);

	// AO's form is acquire-release only.  The fence also comes after a swap
	// that has failed, and stored nothing; its caller tries again.
	ATOMIC_SEQCST_FENCE();
	return stored;
}

// atomic_u64_or_relaxed sets bits and returns the word as it was.
RT_INLINE uint64_t atomic_u64_or_relaxed(atomic_u64 *a, uint64_t bits)
{
	uint64_t old;

	do
		old = atomic_u64_load_relaxed(a);
	while (!atomic_u64_cas_relaxed(a, old, old | bits));
	return old;
}

// atomic_u64_or_release is atomic_u64_or_relaxed as a release.
RT_INLINE uint64_t atomic_u64_or_release(atomic_u64 *a, uint64_t bits)
{
	uint64_t old;

	do
		old = atomic_u64_load_relaxed(a);
	while (!atomic_u64_cas_release(a, old, old | bits));
	return old;
}

// atomic_u64_swap_acquire stores v and returns the word as it was.
RT_INLINE uint64_t atomic_u64_swap_acquire(atomic_u64 *a, uint64_t v)
{
	uint64_t old;

	do
		old = atomic_u64_load_relaxed(a);
	while (!AO_compare_and_swap_acquire(&a->word, old, v));
	return old;
}

// ---- 32 bits ----

RT_INLINE uint32_t atomic_u32_load_relaxed(const atomic_u32 *a)
{
	return AO_int_load(&a->word);
}

RT_INLINE uint32_t atomic_u32_load_acquire(const atomic_u32 *a)
{
	return AO_int_load_acquire(&a->word);
}

RT_INLINE void atomic_u32_store_relaxed(atomic_u32 *a, uint32_t v)
{
	AO_int_store(&a->word, v);
}

RT_INLINE void atomic_u32_store_release(atomic_u32 *a, uint32_t v)
{
	AO_int_store_release(&a->word, v);
}

RT_INLINE uint32_t atomic_u32_load_seqcst(const atomic_u32 *a)
{
	return AO_int_load_acquire(&a->word);
}

RT_INLINE void atomic_u32_store_seqcst(atomic_u32 *a, uint32_t v)
{
	AO_int_store_release(&a->word, v);
	AO_nop_full();
}

// atomic_u32_add_relaxed adds n and returns the sum; so do the other adds.  n
// may be a negative number that was converted.
RT_INLINE uint32_t atomic_u32_add_relaxed(atomic_u32 *a, uint32_t n)
{
	return AO_int_fetch_and_add(&a->word, n) + n;
}

RT_INLINE uint32_t atomic_u32_add_release(atomic_u32 *a, uint32_t n)
{
	return AO_int_fetch_and_add_release(&a->word, n) + n;
}

RT_INLINE uint32_t atomic_u32_add_seqcst(atomic_u32 *a, uint32_t n)
{
	uint32_t sum = AO_int_fetch_and_add_full(&a->word, n) + n;

	ATOMIC_SEQCST_FENCE();
	return sum;
}

// atomic_u32_cas_* stores v and returns true if the word was old.
RT_INLINE bool atomic_u32_cas_relaxed(atomic_u32 *a, uint32_t old, uint32_t v)
{
	return AO_int_compare_and_swap(&a->word, old, v);
}

RT_INLINE bool atomic_u32_cas_acquire(atomic_u32 *a, uint32_t old, uint32_t v)
{
	return AO_int_compare_and_swap_acquire(&a->word, old, v);
}

RT_INLINE bool atomic_u32_cas_release(atomic_u32 *a, uint32_t old, uint32_t v)
{
	return AO_int_compare_and_swap_release(&a->word, old, v);
}

RT_INLINE bool atomic_u32_cas_seqcst(atomic_u32 *a, uint32_t old, uint32_t v)
{
	bool done;

	ATOMIC_SEQCST_FENCE();
	done = AO_int_compare_and_swap_full(&a->word, old, v);
	ATOMIC_SEQCST_FENCE();
	return done;
}

// atomic_u32_swap_seqcst stores v and returns the word as it was.
RT_INLINE uint32_t atomic_u32_swap_seqcst(atomic_u32 *a, uint32_t v)
{
	uint32_t old;

	do
		old = atomic_u32_load_relaxed(a);
	while (!atomic_u32_cas_seqcst(a, old, v));
	return old;
}

// atomic_u32_or_seqcst and atomic_u32_and_seqcst change bits and return the
// word as it was.
RT_INLINE uint32_t atomic_u32_or_seqcst(atomic_u32 *a, uint32_t bits)
{
	uint32_t old;

	do
		old = atomic_u32_load_relaxed(a);
	while (!atomic_u32_cas_seqcst(a, old, old | bits));
	return old;
}

RT_INLINE uint32_t atomic_u32_and_seqcst(atomic_u32 *a, uint32_t bits)
{
	uint32_t old;

	do
		old = atomic_u32_load_relaxed(a);
	while (!atomic_u32_cas_seqcst(a, old, old & bits));
	return old;
}

// ---- pointers ----

RT_INLINE void *atomic_ptr_load_relaxed(const atomic_ptr *a)
{
	return (void *)AO_load(&a->word);
}

RT_INLINE void *atomic_ptr_load_acquire(const atomic_ptr *a)
{
	return (void *)AO_load_acquire(&a->word);
}

RT_INLINE void *atomic_ptr_load_seqcst(const atomic_ptr *a)
{
	return (void *)AO_load_acquire(&a->word);
}

RT_INLINE void atomic_ptr_store_relaxed(atomic_ptr *a, const void *v)
{
	AO_store(&a->word, (AO_t)v);
}

RT_INLINE void atomic_ptr_store_release(atomic_ptr *a, const void *v)
{
	AO_store_release(&a->word, (AO_t)v);
}

RT_INLINE void atomic_ptr_store_seqcst(atomic_ptr *a, const void *v)
{
	AO_store_release(&a->word, (AO_t)v);
	AO_nop_full();
}

RT_INLINE bool atomic_ptr_cas_relaxed(atomic_ptr *a, const void *old,
				      const void *v)
{
	return AO_compare_and_swap(&a->word, (AO_t)old, (AO_t)v);
}

RT_INLINE bool atomic_ptr_cas_acquire(atomic_ptr *a, const void *old,
				      const void *v)
{
	return AO_compare_and_swap_acquire(&a->word, (AO_t)old, (AO_t)v);
}

// ---- waiting ----

// atomic_pause tells the processor that this is a spin loop.
RT_INLINE void atomic_pause(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

#endif
