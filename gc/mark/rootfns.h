// rootfns.h - functions of the host that tell roots.
//
// Go: none.
//
// A root callback is called in each marking, before any stack is read, perhaps
// again later in that marking (trace.h), and by checkmark.  The table grows.
// Any thread may change it while the world runs, under roots.lock; marking and
// checkmark read it with the world stopped.
#ifndef GC_MARK_ROOTFNS_H
#define GC_MARK_ROOTFNS_H

#include "gc/mark/roots.h"

struct rootfn {
	rt_roots_fn *fn;
	void *arg;
	char name[ROOTS_NAME]; // empty: none
};

// Changed under roots.lock.
struct rootfns {
	struct rootfn *entry;
	size_t n;
	size_t room;  // of entry
	bool calling; // a callback is running; stopper only
};

RT_GLOBAL struct rootfns rootfns;

// rootfns_add registers a callback; name may be NULL, is copied, and may be
// cut.  Returns RT_OK, RT_EEXIST or RT_ENOMEM.  The time grows with the number
// of callbacks.
int rootfns_add(rt_roots_fn *fn, void *arg, const char *name);

// rootfns_remove returns false if there is no such callback.  The world must
// run, and the caller must keep a stop from beginning.
bool rootfns_remove(rt_roots_fn *fn, const void *arg);

void rootfns_fini(void);

// rootfns_count returns the number of callbacks; rootfns_call makes number i
// tell its references to t; rootfns_name returns its name, or NULL, and
// rootfns_code the address of its function.  The world must be stopped.
//
// rootfns_calling tells the stopper whether it is in a callback.
size_t rootfns_count(void);
bool rootfns_calling(void);
void rootfns_call(size_t i, rt_tracer *t);
const char *rootfns_name(size_t i);
uintptr_t rootfns_code(size_t i);

// rootfns_check returns NULL if all invariants hold, otherwise what does not.
// The caller must hold roots.lock, or have the world stopped.
const char *rootfns_check(const struct rootfns *r);

#endif
