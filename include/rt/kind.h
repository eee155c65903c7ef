/*
 * kind.h - how the collector finds pointers in an object.
 */
#ifndef RT_KIND_H
#define RT_KIND_H

#include <rt/version.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * The kind of an object is fixed when it is allocated.  The numbers are
 * frozen.
 *
 * RT_NOSCAN: no pointers; the contents are never read.
 * RT_WORDS: every aligned word may be a pointer, to the beginning or the inside
 * of an object, with anything in the low bits; other words are ignored,
 * whatever they hold.  It is for tagged values and plain C structs.
 * RT_TYPED: described by an rt_type.
 * RT_KIND_FIRST to RT_KIND_MAX: kinds that a host registers.
 *
 * This version allocates RT_NOSCAN and RT_WORDS.
 */
enum rt_kind {
	RT_NOSCAN = 0,
	RT_WORDS = 1,
	RT_TYPED = 2,
	RT_KIND_FIRST = 3,
	RT_KIND_MAX = 31
};

/*
 * The layout of one element of a typed object; an array repeats it.  The host
 * owns it, must fill all of it except internal, and must keep it unchanged for
 * as long as the heap exists.  Frozen for this soname.  No function of this
 * version takes one.
 */
typedef struct rt_type {
	size_t size;		/* bytes of one element, its sizeof */
	size_t ptrdata;		/* bytes up to the end of the last pointer, a
				   multiple of 8, at most size */
	const uint64_t *bitmap; /* bit i: word i is a reference or null;
				   ptrdata / 8 bits; NULL if ptrdata is 0 */
	uint32_t align;		/* bytes; a power of two, at most 4096 */
	uint32_t flags;		/* 0 */
	const char *name;	/* for walks and reports; may be NULL */
	void *internal[2];	/* the library's */
} rt_type;

#ifdef __cplusplus
}
#endif

#endif
