/*
 * version.h - version, export mark and error numbers.
 *
 * Every other public header includes this one.
 */
#ifndef RT_VERSION_H
#define RT_VERSION_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version of these headers; rt_version returns that of the library. */
#define RT_VERSION_MAJOR 0
#define RT_VERSION_MINOR 1
#define RT_VERSION_MICRO 0

/* One number that can be compared: 1 002 003 is version 1.2.3. */
#define RT_VERSION_NUMBER                                                      \
	(RT_VERSION_MAJOR * 1000000 + RT_VERSION_MINOR * 1000 +                \
	 RT_VERSION_MICRO)

#define RT_API __attribute__((visibility("default")))

/*
 * RT_ABI_ASSERT_ proves what the ABI fixes, where the language has a static
 * assertion.  Elsewhere it only declares a struct.
 */
#if defined(__cplusplus) && __cplusplus >= 201103L
#define RT_ABI_ASSERT_(cond, what) static_assert(cond, what)
#elif !defined(__cplusplus) && defined(__STDC_VERSION__) &&                    \
    __STDC_VERSION__ >= 201112L
#define RT_ABI_ASSERT_(cond, what) _Static_assert(cond, what)
#else
#define RT_ABI_ASSERT_(cond, what) struct rt_abi_assert_
#endif

/* A cast between two pointers, or between a pointer and an integer, for which
 * -Wold-style-cast does not warn. */
#ifdef __cplusplus
#define RT_CAST_(type, value) reinterpret_cast<type>(value)
#else
#define RT_CAST_(type, value) ((type)(value))
#endif

/*
 * Results of functions.  The numbers stay for the life of the soname.  Later
 * versions may add some, so a caller must treat an unknown negative number as a
 * failure.
 */
enum rt_error {
	RT_OK = 0,
	RT_EINVAL = -1,	 /* null, zero, misaligned, unknown enum, overflow */
	RT_ENOMEM = -2,	 /* the system refused, or the heap has no room */
	RT_EPERM = -3,	 /* caller not attached, or not the stopper */
	RT_EBUSY = -4,	 /* caller's own stop; still in use */
	RT_ESTATE = -5,	 /* no heap, or one already; attached already; in a
			    region or a no-GC stretch */
	RT_ENOENT = -6,	 /* no such root, metric, kind or object */
	RT_ENOTSUP = -7, /* the system lacks or refuses what the call needs */
	RT_EEXIST = -8	 /* there is one already */
};

/*
 * rt_strerror returns an error number in English words, without a newline.  It
 * never returns NULL, even for numbers that are no enum rt_error.  The text is
 * constant and lives as long as the library.
 *
 * Any thread, at any time, even before rt_init and in its own stop.  Does not
 * block.
 */
RT_API const char *rt_strerror(int error);

/*
 * rt_version returns the RT_VERSION_NUMBER of the library in use, which may be
 * newer than these headers.
 *
 * Any thread, at any time, even before rt_init, in its own stop and in a signal
 * handler.  Does not block.
 */
RT_API int rt_version(void);

#ifdef __cplusplus
}
#endif

#endif
