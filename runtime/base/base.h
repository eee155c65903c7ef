// base.h - what every file may assume.
//
// Go: malloc.go, mpagealloc.go (pages, chunks, arenas).
//
// Compiler vocabulary, the geometry of the heap, and arithmetic on sizes.
#ifndef RUNTIME_BASE_BASE_H
#define RUNTIME_BASE_BASE_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RT_LIKELY(x) __builtin_expect(!!(x), 1)
#define RT_UNLIKELY(x) __builtin_expect(!!(x), 0)
#define RT_NORETURN __attribute__((noreturn))
#define RT_NOINLINE __attribute__((noinline))
// An optimiser, even one that sees the whole library (-flto), must keep a
// function that only assembly calls, and must not change its parameters.
#if __has_attribute(externally_visible)
#define RT_CALLED_BY_ASM __attribute__((used, externally_visible))
#else
#define RT_CALLED_BY_ASM __attribute__((used))
#endif
#define RT_INLINE static inline __attribute__((always_inline))

// RT_CACHE_ALIGNED puts a field at the start of a cache line, to keep what one
// thread writes often apart from what others use.
enum { RT_CACHE_LINE = 64 };
#define RT_CACHE_ALIGNED __attribute__((aligned(64)))

#define RT_ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

// RT_GLOBAL declares a variable of the library.  It is hidden, so code reaches
// it at a known distance, not through the table of symbols that other objects
// may replace.
#define RT_GLOBAL extern __attribute__((visibility("hidden")))

// Conservative scanning reads words that were written without atomics, or
// that a sanitizer has poisoned.  Functions that scan carry this, and few
// others: they copy memory that is shared, or need their frame on the real
// stack.
#define RT_NO_SANITIZE                                                         \
	__attribute__((no_sanitize("address"), no_sanitize("thread"),          \
		       no_sanitize("undefined")))

#if defined(__has_feature)
#define RT_HAS_FEATURE(x) __has_feature(x)
#else
#define RT_HAS_FEATURE(x) 0
#endif

// The sanitizers of this build.
enum {
#if defined(__SANITIZE_ADDRESS__) || RT_HAS_FEATURE(address_sanitizer)
	RT_ASAN = 1,
#else
	RT_ASAN = 0,
#endif
#if defined(__SANITIZE_THREAD__) || RT_HAS_FEATURE(thread_sanitizer)
	RT_TSAN = 1,
#else
	RT_TSAN = 0,
#endif
};

#ifdef RT_DEBUG
enum { RT_DEBUG_BUILD = 1 };
#else
enum { RT_DEBUG_BUILD = 0 };
#endif

// Geometry.  A page is the unit of spans.  A chunk is the unit of the page
// allocator's bitmaps, of growth and of sweeping.  The whole range is aligned
// to an arena.
enum {
	RT_PAGE_SHIFT = 13,
	RT_PAGE_SIZE = 1 << RT_PAGE_SHIFT, // 8 KiB
	RT_CHUNK_SHIFT = 22,
	RT_CHUNK_SIZE = 1 << RT_CHUNK_SHIFT, // 4 MiB
	RT_CHUNK_PAGES = RT_CHUNK_SIZE / RT_PAGE_SIZE,
	RT_ARENA_SIZE = 64 << 20,
	RT_GRANULE_SHIFT = 4, // one bit for 16 bytes
	RT_GRANULE = 1 << RT_GRANULE_SHIFT,
	RT_PAGE_WORDS = RT_PAGE_SIZE / RT_GRANULE / 64, // linewords a page
};
static_assert(RT_CHUNK_PAGES == 512, "one chunk is 512 pages");
static_assert(RT_PAGE_WORDS == 8, "one bitmap line a page");

// base_align_up rounds n up to a multiple of align, which must be a power of
// two.  n + align - 1 must not wrap.
RT_INLINE uint64_t base_align_up(uint64_t n, uint64_t align)
{
	return (n + align - 1) & ~(align - 1);
}

RT_INLINE uint64_t base_align_down(uint64_t n, uint64_t align)
{
	return n & ~(align - 1);
}

RT_INLINE bool base_is_pow2(uint64_t n)
{
	return n != 0 && (n & (n - 1)) == 0;
}

// base_pages returns the number of pages that hold n bytes, for any n.
RT_INLINE uint64_t base_pages(uint64_t n)
{
	return (n >> RT_PAGE_SHIFT) + (n % RT_PAGE_SIZE != 0);
}

RT_INLINE uint64_t base_min(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

RT_INLINE uint64_t base_max(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

// base_sub_sat returns a - b, or 0 if that is negative.
RT_INLINE uint64_t base_sub_sat(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

// base_elapsed returns the time from one reading of a clock to a later one.  A
// refused clock reads 0.  If either reading is 0, the result is 0.
RT_INLINE uint64_t base_elapsed(uint64_t from, uint64_t to)
{
	return from == 0 ? 0 : base_sub_sat(to, from);
}

#endif
