// hostcall.h - which function of the host is under way, in debug builds.
//
// Go: none.
//
// In a callback of a collection, of a walk or of a death, and in a handler, the
// host may not call every function of the library.  A function that may not be
// called refuses.  A debug build also writes to stderr which function was
// called in which callback.  Other builds record nothing, and spend no
// instruction on it.
//
// Each thread has its own record, of its innermost callback.  Only the
// out-of-memory handler may be left by longjmp or by an exception.  The mark in
// the frame that calls the handler shows whether it was left (framemark.h).
// The record of any other callback ends when the callback returns.
#ifndef GC_MARK_HOSTCALL_H
#define GC_MARK_HOSTCALL_H

#include <rt/final.h>
#include <rt/kind.h>

#include "gc/mark/framemark.h"

// A callback.  Reports name the callback of a type or a kind after its owner,
// and a kind without a name by its number.
struct hostcall {
	const char *what;  // "trace callback"; NULL: no callback is under way
	const char *owner; // "type" or "kind"; NULL: neither
	const char *name;  // of the owner or of the callback; NULL: none
	unsigned kind;	   // if owner is not NULL
	uintptr_t code;
	const struct framemark *mark; // of the frame that calls it, or NULL
};

// hostcall_swap records a callback and returns what was recorded before.
// hostcall_owned returns the record of a callback for an object.
struct hostcall hostcall_swap(struct hostcall c);
struct hostcall hostcall_owned(const char *what, const rt_type *type,
			       uintptr_t code, uintptr_t obj);

// hostcall_begin records a callback; name may be NULL.  hostcall_begin_owned
// records one of type, or, if that is NULL or has no name, of the kind of obj.
// hostcall_begin_marked records one that may be left by longjmp or by an
// exception, which the frame with the mark calls.  hostcall_end records again
// what they have returned.
RT_INLINE struct hostcall hostcall_begin(const char *what, const char *name,
					 uintptr_t code)
{
	struct hostcall c = {.what = what, .name = name, .code = code};

	return RT_DEBUG_BUILD ? hostcall_swap(c) : c;
}

RT_INLINE struct hostcall hostcall_begin_owned(const char *what,
					       const rt_type *type,
					       uintptr_t code, uintptr_t obj)
{
	return RT_DEBUG_BUILD
		   ? hostcall_swap(hostcall_owned(what, type, code, obj))
		   : (struct hostcall){0};
}

RT_INLINE struct hostcall hostcall_begin_marked(const char *what,
						const struct framemark *mark,
						uintptr_t code)
{
	struct hostcall c = {.what = what, .code = code, .mark = mark};

	return RT_DEBUG_BUILD ? hostcall_swap(c) : c;
}

RT_INLINE void hostcall_end(const struct hostcall *before)
{
	if (RT_DEBUG_BUILD)
		hostcall_swap(*before);
}

// hostcall_pick asks a pick callback about an object.
RT_INLINE bool hostcall_pick(rt_pick_fn *pick, const void *obj, size_t size,
			     void *arg)
{
	struct hostcall before =
	    hostcall_begin("pick callback", NULL, (uintptr_t)pick);
	bool yes = pick(obj, size, arg) == 1;

	hostcall_end(&before);
	return yes;
}

// hostcall_tell writes to stderr that a function of the library was called in
// the present callback, if there is one.
void hostcall_tell(const char *function);

#endif
