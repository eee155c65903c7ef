// gain.h - whether helpers pay, from what the last markings cost.
//
// Go: none; its dedicated workers are a quarter of the processors.
//
// A second marker has costs that depend on the machine, on what else runs, and
// on the shape of the graph.  Cache lines of marks move between processors, and
// threads wake.  So each way is measured: wall and processor time for each word
// that a marking takes from its stack.  Helpers pay if the wall time falls by
// more than a quarter, or if it falls and they cost at most a tenth more
// processor time.  The other way is tried again after 2, 4, 8, ... and at most
// 32 markings.
//
// The opener (work.h) writes, with the world stopped.
#ifndef GC_MARK_GAIN_H
#define GC_MARK_GAIN_H

#include "runtime/base/base.h"

enum {
	GAIN_TRY_FIRST = 2, // markings until the other way is tried
	GAIN_TRY_MOST = 32,
	GAIN_WORDS = 8192, // a marking with fewer is not judged
};

// Picoseconds a word.
struct gain_cost {
	uint64_t wall; // 0: not known
	uint64_t cpu;
};

struct gain {
	struct gain_cost cost[2]; // without helpers, with them
	bool off;		  // helpers do not pay
	bool few;		  // the last marking had < GAIN_WORDS words
	uint32_t interval;	  // markings until the other way is tried
	uint32_t since;		  // markings since a trial or a change of off
};

RT_GLOBAL struct gain gain; // of this process

// What a marking did since it called helpers, or would have called them.
struct gain_marking {
	bool called;
	uint64_t words;
	uint64_t wall_ns;
	uint64_t cpu_ns; // of all markers
};

// gain_call tells whether to call helpers in this marking.
bool gain_call(struct gain *g);

#ifdef RT_TEST
// gain_always makes gain_call return true, as long as on is set.  The world
// must be stopped, or there must be no heap.
void gain_always(bool on);
#endif

// gain_note learns from a marking.
void gain_note(struct gain *g, const struct gain_marking *marking);

// gain_check returns NULL if all invariants hold, otherwise what does not.  The
// world must be stopped.  Any interval is legal: a long one forces marking with
// helpers, or without.  Debug builds call it in gain_note.
const char *gain_check(const struct gain *g);

#endif
