// registry.h - kinds begin and end.
//
// Go: none; its compiler makes all types.
#ifndef GC_HOST_REGISTRY_H
#define GC_HOST_REGISTRY_H

#include <rt/kind.h>

#include "runtime/world/proc.h"

// registry_init makes the two kinds that every heap has.
void registry_init(void);

// registry_add makes a kind.  *d must be in order, as registry_check says.
// Returns its number, RT_EEXIST or RT_ENOMEM.
int registry_add(const rt_kind_desc *d);

// registry_add_typed makes RT_TYPED exist, unless it does already.  Returns
// false if the system refuses address space for its table.
bool registry_add_typed(void);

// registry_add_own makes a kind of the library's own, unless it exists.
void registry_add_own(unsigned kind);

// registry_check returns RT_OK or RT_EINVAL for what a host describes.
int registry_check(const rt_kind_desc *d);

// registry_remove ends a kind of the host's.  The world must be stopped, and
// all must be swept; p is the stopper's P.  Returns RT_OK, RT_ENOENT, or
// RT_EBUSY if an object of the kind exists.
int registry_remove(struct rt_proc *p, unsigned kind);

#endif
