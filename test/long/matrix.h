// matrix.h - what stress_matrix and the hosts in its cells (matrix_hosts.c)
// share.
#ifndef TEST_LONG_MATRIX_H
#define TEST_LONG_MATRIX_H

#include <rt/rt.h>
#include <stdbool.h>

#include "runtime/base/base.h"
#include "test/harness/suite.h"

// matrix_check counts a result, and reports the first failures.
void matrix_check(bool ok, const char *what);

// matrix_object allocates an object whose words follow from the first, and
// matrix_object_check requires that they do.
struct object {
	uint64_t words;
	uint64_t first;
	uint64_t word[];
};
struct object *matrix_object(struct rng *rng);
void matrix_object_check(const struct object *o);

// matrix_wait_for returns when a child has ended.  A child must call
// matrix_child first.  matrix_child_end uses the child's heap and ends the
// child; the calling thread must be attached.
void matrix_wait_for(int child);
void matrix_child(void);
RT_NORETURN void matrix_child_end(void);

// ---- what hosts do ----

// What the hosts of a cell do.
struct hosts {
	bool fibers;	// mutators run fibers, which migrate
	bool drops;	// destructors allocate, register and fork
	bool kinds;	// kinds come and go
	bool libraries; // a thread loads and unloads one; static data are roots
};

// hosts_begin must be called by an attached thread when there is a heap, and
// hosts_end by one before the heap ends.
void hosts_begin(struct hosts h, uint64_t seed);
void hosts_end(void);

// hosts_step does for a mutator what is chosen, in its step number n.  *kind is
// a kind that it has registered, or 0.
void hosts_step(struct rng *rng, uint32_t n, int *kind);

// hosts_missed returns what has happened in no cell, or NULL.
const char *hosts_missed(void);

// hosts_load loads a library and unloads it.
void hosts_load(void);

#endif
