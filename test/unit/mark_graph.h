// mark_graph.h - graphs of objects, and which of the objects must live.
//
// A graph is made twice: of heap objects, and as a list of edges outside the
// heap.  The edges say which objects must live, so every shape has an answer
// that does not come from a collector.
#ifndef TEST_UNIT_MARK_GRAPH_H
#define TEST_UNIT_MARK_GRAPH_H

#include "runtime/base/base.h"
#include "test/harness/suite.h"

enum {
	NODES = RT_TSAN || COVERAGE_BUILD
		    ? 20000
		    : 60000, // many times CALL_AFTER of gc/mark/drain.c
	ROOTS = 256,	     // ranges: several jobs
	USED = 5,	     // of the roots, spread among all
	SHAPES = 5,
};

struct graph {
	uint32_t n;
	uint32_t *first; // n + 1: where the edges of a node begin
	uint32_t *edge;
	struct node **node;
	uint8_t *reached;
	uint64_t nreached;
};

// Each root is a range of its own, of one word.
extern struct root {
	uintptr_t word;
	uintptr_t gap;
} root[ROOTS];

// roots_begin registers all ROOTS ranges.  Their words are 0.
void roots_begin(void);
void roots_end(void);

// set_root makes one of the USED roots refer to a node, or with UINT32_MAX to
// none.
void set_root(const struct graph *g, unsigned i, uint32_t node);

// A shape of graphs.  helps: there are words to spare for helpers.
struct shape {
	const char *name;
	void (*fn)(struct graph *g, struct rng *r);
	bool helps;
};

extern const struct shape shapes[SHAPES];

// shape_make makes a graph of a shape, and its roots.
void shape_make(const struct shape *shape, struct graph *g);
void graph_end(struct graph *g);

// graph_reach finds what the roots reach, by the edges alone.
void graph_reach(struct graph *g);

// graph_wrong counts the reached objects that are not as they were made.
uint64_t graph_wrong(const struct graph *g);

#endif
