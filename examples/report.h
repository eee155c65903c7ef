// report.h - what a host did to the memory, for a person to read.
//
// Any host can use it: copy report.h and report.c.
#ifndef REPORT_H
#define REPORT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

// report_print writes to out what was allocated and collected, and where the
// memory is, now and after rt_free_os_memory.  It also writes whether the
// statistics agree with each other.  Returns true if they agree and all was
// written.
//
// The caller must be attached and outside a blocking region.  report_print
// collects, and stops the world for a walk over the whole heap.  If there are
// guarded objects (guard_large and guard_small of rt_config), the sum of a walk
// is smaller than heap_alloc, and the result is false.
bool report_print(FILE *out);

// report_heading writes text as a line, bold on a terminal.
void report_heading(FILE *out, const char *text);

// A number as text, for a host that adds lines of its own.
struct report_text {
	char s[32];
};

struct report_text report_bytes(uint64_t n); // "1.50 KiB"
struct report_text report_count(uint64_t n); // "1,536"
struct report_text report_time(uint64_t ns); // "1.5 us"

#ifdef __cplusplus
}
#endif

#endif
