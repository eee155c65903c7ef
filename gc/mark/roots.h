// roots.h - where marking begins.
//
// Go: markroot (mgcmark.go).
//
// The roots here are ranges that the host registered.  Others are in stacks.h,
// frames.h, handles.h, statics.h and rootfns.h.  The table of ranges grows.
// Any thread may change it while the world runs; marking reads it with the
// world stopped.
//
// The time to add or remove a range does not depend on how many there are,
// unless the table must grow.
#ifndef GC_MARK_ROOTS_H
#define GC_MARK_ROOTS_H

#include <rt/roots.h>

#include "runtime/os/fixalloc.h"
#include "runtime/spans/mcache.h"

enum {
	ROOTS_VALUES = 2, // beside enum rt_root_flags: values in a format
	ROOTS_NAME = 32,  // bytes of a name, with its end
};

// What few ranges have.
struct roots_label {
	rt_value_format format; // meaningless unless added as values
	char name[ROOTS_NAME];	// empty: none
};

// A range that was added at least once.  roots_check checks it.
struct roots_entry {
	uintptr_t lo;
	uintptr_t hi;
	size_t times[3]; // additions: enum rt_root_flags, ROOTS_VALUES
	struct roots_label *label; // NULL: neither format nor name
	uint32_t next;		   // entry of the same bucket, or UINT32_MAX
};

// The ranges lie side by side, so that jobs can be cut from them; buckets lead
// from the bounds of a range to its entry.
struct roots {
	struct mutex lock;
	struct roots_entry *entry;
	uint32_t *bucket; // behind the entries; the first entry of each chain
	size_t n;
	size_t room; // of entries, and of buckets; a power of two, or 0
	struct fixalloc labels; // all zero before the first
	// The format in which stacks and registers are scanned in addition to
	// the plain scan.  With stride 0 there is none.  Written before the
	// heap is ready.
	rt_value_format stack_format;
};

RT_GLOBAL struct roots roots;

// roots_add registers [lo, hi), which must be 8-aligned.  The same range may be
// added more than once.  Returns false if there is no memory for the table.
bool roots_add(uintptr_t lo, uintptr_t hi, unsigned flags);

// roots_add_values registers [lo, hi) as values in a format, which is copied
// and must be in order.  Returns RT_OK, RT_ENOMEM, or RT_EEXIST if the range is
// registered in another format.
int roots_add_values(uintptr_t lo, uintptr_t hi, const rt_value_format *f);

// roots_name names a registered range; name is copied and may be cut.  Returns
// RT_OK, RT_ENOENT or RT_ENOMEM.
int roots_name(uintptr_t lo, uintptr_t hi, const char *name);

// roots_remove undoes one addition of exactly this range.  It undoes those with
// RT_ROOT_EXACT first, then those with RT_ROOT_WORDS, and those in a format
// last.  Returns false if there is no such range.  The world must run, and the
// caller must keep a stop from beginning.
bool roots_remove(uintptr_t lo, uintptr_t hi);

void roots_fini(void);

// roots_ranges returns the number of registered ranges.  Each counts once,
// however often it was added.  roots_range returns one of them, with
// RT_ROOT_WORDS if it was added with that flag at all.  The world must be
// stopped.
struct roots_range {
	uintptr_t lo;
	uintptr_t hi;
	unsigned flags; // enum rt_root_flags; ROOTS_VALUES: only in format
	const rt_value_format *format; // NULL: not added as values
	const char *name;	       // NULL: none
};
size_t roots_ranges(void);
struct roots_range roots_range(size_t i);

// roots_set_stack_format sets the format, if any, in which the words of stacks
// and registers count as values, too.  f is copied; it must be in order.  The
// heap must not be ready yet.
//
// roots_stack_format returns the format to use there, or NULL.
void roots_set_stack_format(const rt_value_format *f);
const rt_value_format *roots_stack_format(void);

// roots_format_on_stack turns f, which may be NULL, into the format in which
// words of a stack are scanned in addition to the plain scan.  It has stride 8
// and no tag word: a compiler may keep the two words of a value in two
// registers, or the tag in a byte.  So on a stack each word counts as a value
// word, whatever is beside it.  Returns false if plain scanning finds all that
// f would.
bool roots_format_on_stack(const rt_value_format *f, rt_value_format *to);

// roots_fake_frame finds the next frame that the address sanitizer has moved
// off p's stack and that a word of *rest points to.  *rest is a part of the
// stack, or the registers; the words that were looked at are taken off it.
// Returns false if no frame is left.
bool roots_fake_frame(const struct rt_proc *p, struct roots_range *rest,
		      struct roots_range *frame);

// roots_move_table moves a table of roots to new memory of n bytes, which gets
// a name.  The table at old has was bytes; NULL is an empty one.  Returns NULL,
// with nothing changed, if the system refuses.  The caller must hold
// roots.lock.
void *roots_move_table(void *old, size_t was, size_t n, const char *name);

// roots_check returns NULL if all invariants hold, otherwise what does not.
// The caller must hold roots.lock, or have the world stopped.  Debug builds
// call it when the table has grown.  When a range is added or removed they
// check that range and the fields of the table.
const char *roots_check(const struct roots *r);

#endif
