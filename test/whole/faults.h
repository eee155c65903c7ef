// faults.h - what is done with a heap while the system refuses calls.
#ifndef TEST_WHOLE_FAULTS_H
#define TEST_WHOLE_FAULTS_H

#include "runtime/os/oscall.h"
#include "test/harness/fault.h"
#include "test/harness/heap.h"

enum {
	SANITIZED = RT_ASAN || RT_TSAN,
	HEAP = 64 << 20, // bytes, the least range
	HELPERS = 2,
	NKEPT = 1024,
	WIDE = 4096,	// words of a wide object
	NWIDE = 4,	// enough to call helpers for
	MAX_NTH = 5000, // no scenario makes so many calls of one sort
	CHILD_HIT = 42, // exit status
	SCENARIOS = 41,
};

// Which calls of a run are refused.
enum mode {
	ONCE,	     // the nth call
	FROM_THEN,   // and all after it
	NO_WAY_BACK, // and all calls that undo something
	MODES,
};

struct scenario {
	const char *name;
	void (*prepare)(void); // calls are granted; NULL: nothing
	// act runs while calls are refused.  It returns how many of its own
	// calls failed.
	unsigned (*act)(void);
	void (*check)(void); // calls are granted again; NULL: nothing
	uint32_t guarded;    // one in so many small objects, and all large
			     // ones; 0: none
	bool scavenges;	     // free pages are released beside the program
};

extern const struct scenario scenarios[SCENARIOS];

// The present trial.
struct trial {
	const struct scenario *scenario;
	enum oscall kind;
	enum mode mode;
	uint64_t nth;
	int error;
	bool child_hit; // a call was refused in a child of the process
};
extern struct trial trial;

// The heap of a trial, and the objects that it keeps.
extern bool have_heap;
extern int processors; // of the next heap; 0: those that there are
extern void *kept[NKEPT];
extern unsigned nkept;

// require fails the test unless ok is true.  If it is true, that costs nothing,
// unlike with the macros of Check.
void require(bool ok, const char *what);

// begin makes the heap, attaches, and adds kept as roots.  It leaves out what
// is done already.  It returns 1 if something was refused.
unsigned begin(void);
void end(void);

// keep makes p a root, and drop forgets all of them.
void keep(void *p);
void drop(void);

// disarm ends the refusals, and returns how many calls of the trial's sort were
// refused.
uint64_t disarm(void);

// live verifies the heap and returns its number of objects.  live_after_gc
// collects first.
uint64_t live(void);
uint64_t live_after_gc(void);

// in_order verifies the heap and its statistics.
void in_order(void);

// ---- parts of scenarios ----

// make_wide makes objects that lead to so many others that marking needs more
// than one buffer.
void make_wide(void);
void prepare_mark(void);
unsigned act_gc(void);
void check_mark(void);
void check_helpers(void);

unsigned act_large(void);

// The parts in faults_beside.c.  scavenger_runs tells whether the scavenger
// exists.  leave_unswept collects, and leaves sweeping to the threads.
bool scavenger_runs(void);
void leave_unswept(void);
void prepare_release(void);
unsigned act_release(void);
void check_release(void);
void prepare_huge_pages(void);
unsigned act_huge_pages(void);
unsigned act_limit(void);
unsigned act_scavenger(void);
void check_scavenger(void);
unsigned act_ahead(void);
void check_ahead(void);
unsigned act_periodic(void);
unsigned act_sweep(void);
void check_sweep(void);

// The parts in faults_objects.c.
unsigned act_handles(void);
unsigned act_root_fns(void);
unsigned act_formats(void);
unsigned act_names(void);
unsigned act_typed(void);
unsigned act_kinds(void);
unsigned act_lists(void);
unsigned act_resize(void);
unsigned act_sorts(void);

#endif
