// notices.h - lines of text for the host, written while the world is stopped.
//
// Go: none.
//
// The stopper adds them.  After the stop attached threads take them, one thread
// at a time, so that the host gets them in order.  A line that no thread has
// taken before the next stop stays in front of the lines that this stop adds.
//
// A thread is not stopped while it takes a line, so only threads that take
// lines must exclude each other.  The flag telling does that.  A thread keeps
// the flag for many lines, even while the host's handler runs.  There the
// thread may be stopped, and a collection may add lines.  Inside the handler
// the thread itself may take these.
#ifndef GC_MARK_NOTICES_H
#define GC_MARK_NOTICES_H

#include "runtime/base/atomic.h"
#include "runtime/os/throw.h"

enum { NOTICES_MAX = 72 };

struct notices {
	struct text line[NOTICES_MAX];
	uint32_t n;	    // lines; stopper
	uint32_t next;	    // number of the next to take; teller, or stopper
	atomic_u32 left;    // lines to be taken; teller, or stopper
	atomic_u32 telling; // 1: a thread takes lines
};

RT_GLOBAL struct notices notices;

// notices_room drops the lines that were taken, and returns how many more there
// is room for.  notices_add adds one, for which there must be room.  The world
// must be stopped.
uint32_t notices_room(void);
void notices_add(const struct text *t);

// notices_left returns the number of lines that no thread has taken.
RT_INLINE uint32_t notices_left(void)
{
	return atomic_u32_load_relaxed(&notices.left);
}

// notices_take takes the next line.  Returns false if there is none, or if
// another thread is taking lines.  The caller must be a thread that a stop
// waits for.  notices_done must follow the last call.
bool notices_take(struct text *out);
void notices_done(void);

// notices_fork_child drops all lines, which are told in the parent.
void notices_fork_child(void);

// notices_fini drops all lines.
void notices_fini(void);

// notices_check returns NULL if all invariants hold, otherwise what does not.
// The world must be stopped.
const char *notices_check(const struct notices *all);

#endif
