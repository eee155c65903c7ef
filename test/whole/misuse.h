// misuse.h - how all files of check_misuse judge calls.
#ifndef TEST_WHOLE_MISUSE_H
#define TEST_WHOLE_MISUSE_H

#include "test/harness/kind.h"
#include "test/harness/thread.h"

// An answer is the int result; for a pointer or a size SOME or NOTHING.
enum { NOTHING = 0, SOME = 1 };

static inline long some(const void *p)
{
	return p ? SOME : NOTHING;
}

void judge(const char *name, const char *where, long got, long want);

// Where a call is made.
enum place {
	NO_HEAP,    // before rt_init, after rt_fini
	UNATTACHED, // there is a heap
	ATTACHED,
	IN_REGION,
	OWN_STOP,
	COLLECTING, // in a callback, on the thread that collects
	HELPING,    // in a callback, on a helper
	IN_NOGC,    // attached, in a no-GC stretch
	BEGINNING,  // on a thread of the library, in gc_thread_start
	PLACES,
};

// run_doors makes every call in one place.  No call changes anything that the
// next one sees.  DOORS is the number of calls.  run_doors judges it, so that a
// lost or skipped row is noticed.
enum { DOORS = 198 };
void run_doors(enum place place);

// If waiting is set, dead objects wait for their destructors during run_doors.
extern bool waiting;

// call_start and call_walk are two of the calls.
long call_start(void);
long call_walk(void);

// JUDGE judges a call by its text.
#define JUDGE(where, call, want) judge(#call, where, call, want)

// judge_unchanged requires that no statistic has changed since rt_memstats
// `before` was read.
void judge_unchanged(const char *name);
extern rt_memstats before;

// with_number returns a name, which is valid until the next call.
const char *with_number(const char *name, long n);

// finish ends a test: every case is counted and none failed.
void finish(unsigned at_least);

// begin makes a heap as config_of_test says, begin_as makes a heap as c says.
// Both make in it:
void begin(void);
void begin_as(rt_config c);
rt_config config_of_test(void);

enum { OBJECT = 64, STACK = 4096 };

extern void *object;	  // an object of OBJECT bytes, kept by its root
extern void *stack;	  // a stack of STACK bytes
extern uint64_t words[8]; // of the host
extern rt_memstats stats;

#endif
