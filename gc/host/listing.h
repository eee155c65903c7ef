// listing.h - an array of the objects of a kind.
//
// Go: none.
//
// The array is an object, so it must exist before the world is stopped, and
// other threads may make more objects before that.  Then it is too short, and a
// longer one is made.
#ifndef GC_HOST_LISTING_H
#define GC_HOST_LISTING_H

#include <rt/world.h>

// listing_make returns a new array of the objects for which pick returns 1, or
// of all if pick is NULL, and sets *n to their number.  kind is a number that
// the host knows; -1 means every kind.  The calling thread must be attached,
// outside a region and a no-GC stretch, and not the stopper.  Returns NULL, and
// does not change *n, if there is no memory, if the kind does not exist any
// more, or if a handler of the host has not left the thread as it was.
void **listing_make(int kind, rt_pick_fn *pick, void *arg, size_t *n);

#endif
