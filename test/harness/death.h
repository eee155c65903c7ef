// death.h - processes that end on purpose.
#ifndef TEST_HARNESS_DEATH_H
#define TEST_HARNESS_DEATH_H

#include <stdbool.h>

// An exit status that neither Check, automake nor a sanitizer uses.
enum { DEATH_EXPECTED = 42 };

// death_expect makes the next throw_fatal end the process: with DEATH_EXPECTED
// if the report holds text, otherwise with a failure.  A '#' in text matches
// any number or address.
void death_expect(const char *text);

// death_status returns the wait status of a child that runs fn and leaves no
// core.  What the child wrote to stderr is in death_output.
int death_status(void (*fn)(void));
extern char death_output[16384];

// death_aborted tells whether a wait status is that of SIGABRT.
bool death_aborted(int status);

#endif
