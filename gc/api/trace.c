// What trace callbacks tell.
#include <rt/trace.h>

#include "gc/mark/trace.h"

void rt_trace_slow_(rt_tracer *t, uintptr_t word)
{
	trace_slow(t, word);
}

void rt_trace_name_(rt_tracer *t, const char *name, size_t index)
{
	trace_name(t, name, index);
}

rt_tracer *rt_tracer_self(void)
{
	return trace_self();
}

void rt_trace_words(rt_tracer *t, const void *lo, const void *hi)
{
	trace_words(t, (uintptr_t)lo, (uintptr_t)hi);
}

void rt_trace_values(rt_tracer *t, const void *lo, const void *hi,
		     const rt_value_format *f)
{
	trace_values(t, (uintptr_t)lo, (uintptr_t)hi, f);
}
