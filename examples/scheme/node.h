// node.h - compiled code: a tree of nodes, each with the function that runs
// it.  The compiler makes them, eval.c runs them, the collector owns them.
#ifndef SCHEME_NODE_H
#define SCHEME_NODE_H

#include "scheme.h"

typedef value run_fn(struct node *n, value *frame);

struct node {
	run_fn *run;
	struct place at;
	value v;	// constant, symbol, struct lambda
	uint32_t slot;	// first slot of the frame that it names
	uint32_t depth; // frames outwards
	uint32_t nkids; // nodes below, in the order of evaluation
	struct node *kid[];
};

// References.  v: the variable's symbol.
run_fn run_constant, run_local, run_local1, run_outer, run_checked, run_global;
// Assignments: kid 0 is the value.  set_local: v is the lambda of the frame.
run_fn run_set_local, run_set_outer, run_set_global, run_define;
// Control.  let: the last kid is the body, those before go into slots from
// slot up, and v is the lambda.  unassign: depth slots from slot up.
run_fn run_if, run_begin, run_and, run_or, run_lambda, run_let, run_unassign;
// A loop is a let that starts again when its body returns JUMP for it; a
// jump has kid 0 .. nkids - 1 as new values, depth unused, target in v.
run_fn run_loop, run_jump;
// Calls: kid 0 is the procedure.
run_fn run_call, run_call1, run_call2, run_call3, run_tail_call;

// inline_op returns what runs a call of this symbol's primitive in place, or
// NULL.  The nodes have the arguments as kids and the symbol in v, and call
// whatever is defined when the program redefines the name later.
run_fn *inline_op(value symbol, int argc);

// compile makes a node of a form.  Syntax functions call it for the form
// that theirs stands for.
struct node *compile(value form, struct scope *sc, enum tail tail);

#endif
