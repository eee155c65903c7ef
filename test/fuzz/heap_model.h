// heap_model.h - a heap of few objects of which everything is known.
//
// The model of targets that say exactly which objects are alive.  It keeps
// addresses in memory of its own, where the collector does not look, and
// reads the objects themselves to follow their pointers; a checksum of each
// tells that nothing but the target has written to it.
#ifndef TEST_FUZZ_HEAP_MODEL_H
#define TEST_FUZZ_HEAP_MODEL_H

#include <rt/rt.h>

#include "test/fuzz/fuzz.h"

enum {
	MODEL_OBJECTS = 256,
	MODEL_LARGE = 32760, // more bytes than this: a large object
	MODEL_WORDS = 128,   // of one that may be written, at most
};

struct model_object {
	uintptr_t base;
	size_t size;   // bytes that are scanned, and keep it when pointed to
	size_t nwords; // that may be written; 0: a block of tiny ones
	int kind;
	bool reached;
	uint64_t sum; // of what is written to it
};

struct model {
	struct model_object object[MODEL_OBJECTS];
	unsigned n;
};

// model_word is word i of those that may be written, below nwords: half of
// them are at the beginning of the object, half at its end.  The others stay
// zero.
uintptr_t *model_word(const struct model_object *o, size_t i);

// model_sum is a checksum of those words.
uint64_t model_sum(const struct model_object *o);

// model_add enters an object that was just allocated with n bytes, unless it
// is in a block of tiny ones that is known.  There is room for it.
struct model_object *model_add(struct model *m, void *p, size_t n, int kind);

// model_find is the object that p points to or into; NULL: none.
struct model_object *model_find(struct model *m, uintptr_t p);

// model_reach finds what the n words at w reach; model_reach_object what one
// object does.
void model_reach(struct model *m, const uintptr_t *w, size_t n);
void model_reach_object(struct model *m, struct model_object *o);

// model_reach_references finds what those of the n words at w reach that are
// references: what an allocation has returned.
void model_reach_references(struct model *m, const uintptr_t *w, size_t n);

// model_collect does what a collection does: it forgets the objects that were
// not reached since the last one, and requires the others to be whole.
void model_collect(struct model *m);

// model_healthy requires that every structure of the heap agrees with every
// other, and the statistics with these; it returns the number of objects.
uint64_t model_healthy(void);

// input_size is a number of bytes for an object, 1 to 256 KiB: small ones
// most, and such that are scanned in pieces.
size_t input_size(struct input *in);

// input_pointer is a word that may be a pointer: to an object of m, near one,
// with tags, to anywhere in the heap or to anywhere at all.
uintptr_t input_pointer(struct input *in, const struct model *m);

#endif
