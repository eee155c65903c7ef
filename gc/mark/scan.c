// scan.c - pushes words, a block at a time.
#include "gc/mark/scan.h"

#include "runtime/os/poison.h"
#include "runtime/spans/object.h"
#include "gc/mark/overflow.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

void scan_overflow(struct marker *m, uintptr_t base)
{
	grey_publish_object(m, base);
	schedpoint(SCHED_SCAN_OVERFLOW);
	overflow_set((uint64_t)(base - m->base) >> RT_PAGE_SHIFT);
}

// ---- blocks ----

#if defined(__x86_64__)
// vector_block is scan_block, eight words at a time.  Each step stores eight;
// those past the pushed ones are rubbish, but there is room for them.
RT_NO_SANITIZE __attribute__((target("avx512f,popcnt"))) static void
vector_block(struct marker *m, uintptr_t lo, uintptr_t hi)
{
	const __m512i base = _mm512_set1_epi64((long long)m->base);
	const __m512i used = _mm512_set1_epi64((long long)m->used);
	uintptr_t *top = &m->work.t.top->word;

	for (; lo < hi; lo += sizeof(__m512i)) {
		size_t n = base_min(8, (hi - lo) / sizeof(uintptr_t));
		__mmask8 some = (__mmask8)((1U << n) - 1);
		__m512i w = _mm512_maskz_loadu_epi64(some, (const void *)lo);
		__mmask8 in = _mm512_mask_cmplt_epu64_mask(
		    some, _mm512_sub_epi64(w, base), used);

		_mm512_storeu_si512(top, _mm512_maskz_compress_epi64(in, w));
		top += __builtin_popcount(in);
	}
	m->work.t.top = (struct rt_trace_entry *)top;
}

static bool have_vectors(void)
{
	return __builtin_cpu_supports("avx512f") &&
	       __builtin_cpu_supports("popcnt");
}
#else
#define vector_block scan_block
static bool have_vectors(void)
{
	return false;
}
#endif

// defined_block is scan_block under memcheck.
static void defined_block(struct marker *m, uintptr_t lo, uintptr_t hi)
{
	for (; lo < hi; lo += sizeof(uintptr_t)) {
		uintptr_t w = poison_read(lo);

		if (grey_in_heap(m, w))
			(m->work.t.top++)->word = w;
	}
}

uintptr_t scan_words(struct marker *m, uintptr_t lo, uintptr_t hi)
{
	while (lo < hi) {
		uintptr_t end = base_min(hi, lo + SCAN_BLOCK);

		if (!work_room(&m->work, SCAN_BLOCK / sizeof(uintptr_t)))
			return lo;
		if (RT_UNLIKELY(poison_memcheck))
			defined_block(m, lo, end);
		else if (have_vectors())
			vector_block(m, lo, end);
		else
			scan_block(m, lo, end);
		lo = end;
	}
	return hi;
}

// An alloc bit belongs to the first whole granule of an object, so in nearly
// all cases no division is needed.  A guarded object, or one of 24 bytes, need
// not begin there.
RT_INLINE bool is_reference(const struct marker *m, uintptr_t w)
{
	const atomic_u64 *alloc = grey_allocword(grey_markword(m, w));

	if (w % RT_GRANULE == 0 && !guard_on && !m->halves &&
	    (atomic_u64_load_relaxed(alloc) & grey_bit(w)))
		return true;
	return object_is_reference(w);
}

bool scan_is_reference(const struct marker *m, uintptr_t w)
{
	return is_reference(m, w);
}

RT_NO_SANITIZE
static void reference_block(struct marker *m, uintptr_t lo, uintptr_t hi)
{
	for (; lo < hi; lo += sizeof(uintptr_t)) {
		uintptr_t w = poison_read(lo);

		if (grey_in_heap(m, w) && is_reference(m, w))
			(m->work.t.top++)->word = w;
	}
}

uintptr_t scan_references(struct marker *m, uintptr_t lo, uintptr_t hi)
{
	while (lo < hi) {
		uintptr_t end = base_min(hi, lo + SCAN_BLOCK);

		if (!work_room(&m->work, SCAN_BLOCK / sizeof(uintptr_t)))
			return lo;
		reference_block(m, lo, end);
		lo = end;
	}
	return hi;
}

RT_NO_SANITIZE
static void stack_block(struct marker *m, uintptr_t lo, uintptr_t hi)
{
	for (; lo < hi; lo += sizeof(uintptr_t)) {
		uintptr_t w = poison_read(lo);

		if (grey_in_heap(m, w))
			(m->work.t.top++)->word = grey_from_stack(m, w);
	}
}

uintptr_t scan_from_stack(struct marker *m, uintptr_t lo, uintptr_t hi)
{
	while (lo < hi) {
		uintptr_t end = base_min(hi, lo + SCAN_BLOCK);

		if (!work_room(&m->work, SCAN_BLOCK / sizeof(uintptr_t)))
			return lo;
		stack_block(m, lo, end);
		lo = end;
	}
	return hi;
}

// leave_rest adds a range: all of the large object at base but its first piece.
// If there is no room for the range, it notes the overflow and returns false.
static bool leave_rest(struct marker *m, uintptr_t base, uintptr_t hi)
{
	struct work_range rest = {.lo = base + WORK_PIECE,
				  .hi = hi,
				  .stride = sizeof(uintptr_t),
				  .words = WORK_ANY};

	if (hi - base <= WORK_PIECE || work_add_range(&m->work, rest))
		return true;
	scan_overflow(m, base);
	return false;
}

void scan_wide(struct marker *m, uintptr_t base, uint64_t size)
{
	uintptr_t hi = base + base_align_down(size, sizeof(uintptr_t));

	if (!leave_rest(m, base, hi))
		return;
	hi = base_min(hi, base + WORK_PIECE);
	if (scan_words(m, base, hi) != hi)
		scan_overflow(m, base);
}
