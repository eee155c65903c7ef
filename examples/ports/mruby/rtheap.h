// rtheap.h - what the port of mruby shares between its files.
//
// The files of mruby that own memory of strings, arrays, hashes and tables
// define PORT_KIND and include this one.  Their mrb_malloc, mrb_calloc,
// mrb_realloc and mrb_free are then those of the heap, so objects need no
// destructor to free such memory.
#ifndef MRUBY_RTHEAP_H
#define MRUBY_RTHEAP_H

#include <mruby.h>

// <rt/rt.h> includes headers in which "noreturn" or "inline" may be a word.
#include <rt/rt.h>

// The numbers of the port's kinds are constants, so that allocation is inline.
enum {
	PORT_PLAIN = 3,	 // objects of mruby without a destructor
	PORT_DROP = 4,	 // Proc, Data, Fiber: with one
	PORT_VALUES = 5, // memory of an object, of values and pointers
};

mrb_noreturn void mrb_raise_nomemory(mrb_state *mrb);

static inline void *port_must(mrb_state *mrb, void *p)
{
	if (__builtin_expect(!p, 0))
		mrb_raise_nomemory(mrb);
	return p;
}

// port_values returns room for n values, which are nil.
static inline mrb_value *port_values(mrb_state *mrb, size_t n)
{
	return (mrb_value *)port_must(
	    mrb, rt_alloc_of(PORT_VALUES, n * sizeof(mrb_value)));
}

#define mrb_write_barrier(mrb, obj) ((void)0)
#define mrb_field_write_barrier(mrb, obj, value) ((void)0)

#ifdef PORT_KIND
static inline void *port_malloc(mrb_state *mrb, size_t n)
{
	return port_must(mrb, (int)PORT_KIND == (int)RT_NOSCAN
				  ? rt_alloc_noscan_uninit(n)
				  : rt_alloc_of(PORT_KIND, n));
}

static inline void *port_realloc(mrb_state *mrb, void *p, size_t n)
{
	void *q = rt_realloc(PORT_KIND, p, n);

	return n ? port_must(mrb, q) : q;
}

#define mrb_malloc(mrb, n) port_malloc((mrb), (n))
#define mrb_calloc(mrb, n, size) \
	port_must((mrb), rt_alloc_array(PORT_KIND, 0, (n), (size)))
#define mrb_realloc(mrb, p, n) port_realloc((mrb), (p), (n))
#define mrb_free(mrb, p) ((void)rt_free(p))
#endif

#endif
