// shadow.h - programs of heap operations, run against a graph kept outside.
//
// A program is a list of operations of the public interface.  Running it keeps
// an exact copy of every object's contents and references in memory from
// malloc; what the copy reaches must be in the heap, whole, and what it does
// not reach must be gone.  What an operation does follows from the program
// alone, not from addresses, times or collections: so every run of a program
// ends with the same hash, and a program with some operations left out is a
// program too.
//
// Threads run their own operations.  Only the thread that made an object
// changes it.  Where a program says sync all meet, gifts are handed over, and
// the first thread checks everything.
#ifndef TEST_HARNESS_SHADOW_H
#define TEST_HARNESS_SHADOW_H

#include <rt/config.h>
#include <stdbool.h>
#include <stdio.h>

enum shadow_kind {
	SHADOW_ALLOC,	  // slot a = n bytes, made in way b
	SHADOW_STORE,	  // reference b of the object in slot a = slot c
	SHADOW_LOAD,	  // slot a = reference b of the object in slot c
	SHADOW_COPY,	  // slot a = slot c, as an inner pointer
	SHADOW_DROP,	  // slot a = nothing
	SHADOW_CLEAR,	  // all slots = nothing
	SHADOW_CHECK,	  // compare the object in slot a
	SHADOW_GIVE,	  // at the next sync: slot c of thread b = slot a
	SHADOW_SYNC,	  // all threads meet; everything is checked
	SHADOW_GC,	  // the rest: the functions of the interface
	SHADOW_RELEASE,	  // rt_free_os_memory
	SHADOW_PERCENT,	  // rt_set_gc_percent, there and back
	SHADOW_STATS,	  // statistics, their history, and metrics
	SHADOW_VERIFY,	  // rt_heap_verify
	SHADOW_WALK,	  // rt_heap_walk
	SHADOW_STOP,	  // rt_stop_the_world
	SHADOW_STACK,	  // rt_stack_alloc, rt_stack_free
	SHADOW_DETACH,	  // and attach, odd a: with bounds of the stack
	SHADOW_FORK,	  // a child has what the thread has
	SHADOW_REGION,	  // a blocking region
	SHADOW_SAFEPOINT, // rt_safepoint
	SHADOW_ROOTS,	  // rt_roots_add, rt_roots_remove
	SHADOW_REFUSED,	  // requests that get nothing
	SHADOW_HANDLERS,  // handlers, and the mode of the double check
	SHADOW_LOSE,	  // fault: a collection without the thread's roots
	SHADOW_SCRIBBLE,  // fault: a byte of the object in slot a changes
	SHADOW_LEAK,	  // fault: the object in slot a is never let go
	SHADOW_KINDS,
};

enum { SHADOW_THREADS = 8 };

struct shadow_op {
	enum shadow_kind kind;
	unsigned thread, a, b, c; // any number: taken modulo what there is
	unsigned n;		  // bytes
};

struct shadow_program {
	unsigned threads; // 1 to SHADOW_THREADS
	unsigned align8;
	unsigned exact; // stacks are no roots, so what is dead is gone
	size_t nops;
	struct shadow_op *op;
};

struct shadow_result {
	bool ok;
	uint64_t hash;
	char why[300];
};

// shadow_run makes a heap, runs p, fills *r and ends the process.
void shadow_run(const struct shadow_program *p, rt_config config,
		struct shadow_result *r) __attribute__((noreturn));

// shadow_write and shadow_read are a program as a text; false: refused, or it
// is none.  op is from malloc.
bool shadow_write(FILE *file, const struct shadow_program *p);
bool shadow_read(FILE *file, struct shadow_program *p);

#endif
