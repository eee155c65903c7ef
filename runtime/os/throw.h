// throw.h - reporting a bug of our own, which ends the process.
//
// Go: throw, print (panic.go, print.go).
//
// throw_fatal is for states that only a bug of the library, or overwritten
// memory, can produce.  Other mistakes of the host, and refusals of the system,
// are results instead.  Neither allocation nor stdio is used.  The text goes to
// the host's fatal handler or to stderr, and the process aborts.
#ifndef RUNTIME_OS_THROW_H
#define RUNTIME_OS_THROW_H

#include "runtime/base/base.h"

// A text of bounded length, always ended by a null byte; what does not fit
// is cut.  The functions are safe in signal handlers.
struct text {
	size_t len;
	char buf[504];
};

void text_init(struct text *t);
void text_str(struct text *t, const char *s);
void text_u64(struct text *t, uint64_t n); // decimal
void text_hex(struct text *t, uint64_t n); // 0x...

typedef void throw_handler(const char *text, void *arg);

// throw_set_handler sets the host's fatal handler; NULL restores stderr.  fn
// and arg change as one.  Any thread may call it at any time, but not from a
// signal handler.
//
// The handler gets the text that stderr would get, without the last newline.
// The text is valid until the handler returns; then the process aborts.  If the
// handler throws, the process aborts without a further report.  Another thread
// that throws meanwhile gives the first up to about 10 s to end the process,
// and then aborts.
void throw_set_handler(throw_handler *fn, void *arg);

// throw_fatal reports "rtheap: fatal: <what>" and aborts.  A report is a single
// write of at most 1023 bytes.  `what` is cut if it does not fit; there is room
// for at least 503 bytes.
RT_NORETURN void throw_fatal(const char *what);

// throw_value reports a line "rtheap: <name>=<value>" first.
RT_NORETURN void throw_value(const char *what, const char *name,
			     uint64_t value);

// throw_text reports the lines in t first.  The last one needs no newline.
RT_NORETURN void throw_text(const struct text *t, const char *what);

// throw_begun tells whether a thread of this process has thrown.
bool throw_begun(void);

// The child of a fork calls throw_fork_child.  It forgets threads of the parent
// that were setting the handler or throwing.  If the calling thread was
// throwing, it still is.
void throw_fork_child(void);

// RT_ASSERT is for checks too costly for a release build.
#define RT_ASSERT(cond)                                                        \
	((RT_DEBUG_BUILD && !(cond)) ? throw_fatal("assertion: " #cond)        \
				     : (void)0)

// throw_wrong throws the text in what.  It returns if that is NULL.
RT_INLINE void throw_wrong(const char *what)
{
	if (RT_UNLIKELY(what != NULL))
		throw_fatal(what);
}

// RT_CHECK throws, in debug builds, the text that a check of invariants
// returns: RT_CHECK(mspan_check(s)).  Other builds do not call the check.
#define RT_CHECK(check) (RT_DEBUG_BUILD ? throw_wrong(check) : (void)0)

#endif
