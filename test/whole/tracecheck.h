// tracecheck.h - a heap that is searched for forgotten references.
#ifndef TEST_WHOLE_TRACECHECK_H
#define TEST_WHOLE_TRACECHECK_H

#include <stdio.h>
#include <string.h>

#include "test/harness/kind.h"

enum { ROOTS = 256, LINES = 300 };

extern uintptr_t *root[ROOTS];

// The lines of the report, which keep_line keeps.
extern char said[LINES][512];
extern unsigned nsaid;
void keep_line(const char *text, void *arg);

rt_config config_of(unsigned helpers);

// start_as makes a heap with these roots.  start makes the usual one.
void start_as(rt_config c);
void start(void);

// traced describes a kind with a callback, and add_kind registers one.
rt_kind_desc traced(const char *name, rt_trace_fn *trace);
int add_kind(rt_kind_desc d);

// tell_first is a callback that tells the first word of its object.
void tell_first(rt_tracer *t, void *obj, size_t size, void *arg);

uintptr_t *make(int kind, size_t n);
uintptr_t leaf(void);

// report collects, and returns how many lines were reported.
unsigned report(void);

void expect_in(const char *line, const char *text);
void expect_no_lines(void);

#endif
