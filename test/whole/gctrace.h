// gctrace.h - what tests of the trace share: a heap that traces into a pipe.
#ifndef TEST_WHOLE_GCTRACE_H
#define TEST_WHOLE_GCTRACE_H

#include <fcntl.h>
#include <unistd.h>

#include "gc/cycle/gctrace.h"
#include "test/harness/heap.h"

#define MIB (UINT64_C(1) << 20)

static inline uint64_t dropped(void)
{
	return heap_metric("/gc/trace/dropped:lines");
}

// pipe_to_stderr makes stderr the end of a pipe, and returns the other end, to
// read from.
static inline int pipe_to_stderr(void)
{
	int fd[2];

	ck_assert_int_eq(pipe(fd), 0);
	ck_assert_int_eq(dup2(fd[1], 2), 2);
	close(fd[1]);
	ck_assert_int_eq(fcntl(fd[0], F_SETFL, O_NONBLOCK), 0);
	return fd[0];
}

// take reads what is in the pipe.  Returns the number of bytes.
static inline size_t take(int fd, char *text, size_t room)
{
	ssize_t n = read(fd, text, room - 1);

	text[n > 0 ? n : 0] = '\0';
	return n > 0 ? (size_t)n : 0;
}

// fill leaves no room in the pipe, which must be empty.
static inline void fill(void)
{
	static const char text[1 << 12];

	ck_assert_int_eq(fcntl(2, F_SETFL, O_NONBLOCK), 0);
	while (write(2, text, sizeof text) > 0)
		;
	while (write(2, text, 1) > 0)
		;
	ck_assert_int_eq(fcntl(2, F_SETFL, 0), 0);
}

#endif
