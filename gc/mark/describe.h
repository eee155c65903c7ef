// describe.h - how reports name an object.
//
// Go: none.
//
// The world must be stopped and no marking under way, since describe callbacks
// run.
#ifndef GC_MARK_DESCRIBE_H
#define GC_MARK_DESCRIBE_H

#include "runtime/os/throw.h"
#include "gc/mark/trace.h"

// describe_type returns the type of an object, which may be unmarked.  Returns
// NULL if it has no type, or if its header leads to an object that was freed.
const rt_type *describe_type(const struct object *o);

// describe_kind adds the name of a kind.  It adds `without` if the kind has no
// name.
void describe_kind(struct text *t, unsigned kind, const char *without);

// describe_said adds what the host says of an object, in quotes.
void describe_said(struct text *t, const struct object *o);

// describe_object adds the kind, the type, the address and what the host says.
void describe_object(struct text *t, const struct object *o);

// describe_label adds the name and index that a callback gave a reference.
void describe_label(struct text *t, const struct trace_label *label);

#endif
