// process.h - what the system says of this process, and permits it.
#ifndef TEST_HARNESS_PROCESS_H
#define TEST_HARNESS_PROCESS_H

#include <stdint.h>

// process_status returns the value of a line of /proc/self/status, in bytes.
uint64_t process_status(const char *name);

// process_limit lowers a limit (RLIMIT_...).  process_unlimit raises it as far
// as permitted.
void process_limit(int resource, uint64_t n);
void process_unlimit(int resource);

#endif
