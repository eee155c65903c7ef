// process.h - what the system says of this process and permits it, and how its
// children end.
#ifndef TEST_HARNESS_PROCESS_H
#define TEST_HARNESS_PROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

// process_status returns the value of a line of /proc/self/status, in bytes.
uint64_t process_status(const char *name);

// process_limit lowers a limit (RLIMIT_...).  process_unlimit raises it to its
// hard limit.
void process_limit(int resource, uint64_t n);
void process_unlimit(int resource);

// process_join waits for a child, which must end with status 0.
void process_join(pid_t child);

// process_expire ends the calling process, a child of a test, by a signal after
// a minute: a child that takes so long hangs.  The parent sees its status.
void process_expire(void);

// process_forked makes a child, and returns true there.  The child must call
// process_end, and has a minute for it.  In the parent process_forked returns
// false when the child has ended.  The child must have called
// process_end(true).
bool process_forked(void);
void process_end(bool ok) __attribute__((noreturn));

#endif
