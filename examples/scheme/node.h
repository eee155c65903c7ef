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
	uint32_t slot;	// of a variable; of run_scope: how many it has
	uint32_t depth; // frames outwards
	bool tail;	// of a call
	uint32_t nkids; // nodes below, in the order of evaluation
	struct node *kid[];
};

// References.  v: the variable's symbol.
run_fn run_constant, run_local, run_outer, run_global;
// Assignments: kid 0 is the value.
run_fn run_set, run_set_global, run_define;
// Control.  let: the last kid is the body.  Its frame is new, and holds the
// values of the other kids.  scope: a body whose new frame holds its inner
// definitions.
run_fn run_if, run_begin, run_and, run_or, run_lambda, run_let, run_scope;
// Calls: kid 0 is the procedure.
run_fn run_call, run_call1, run_call2;

// The variables of one frame.  A null pointer means the global ones.
struct scope {
	const struct scope *outer;
	value vars; // list of symbols, the first in slot 1
	bool inner; // inner definitions, perhaps read before their turn
};

// A syntax function compiles the forms that begin with its keyword.  tail:
// the value of the form is the value of the procedure around it.
typedef struct node *syntax_fn(value form, const struct scope *sc, bool tail);

// A keyword is a global variable with one of these as its value, so programs
// redefine it like any other.  A form may also begin with the object itself, so
// no redefinition affects what derived forms expand to.
struct syntax {
	struct object head;
	const char *name;
	syntax_fn *compile;
};

// compile.c
syntax_fn compile, syntax_quote, syntax_if, syntax_lambda, syntax_let,
    syntax_begin, syntax_define, syntax_set, syntax_and, syntax_or;
_Noreturn void bad_syntax(value form);
void check_bindings(value form, value bindings);

// syntax.c
// named_let expands (let name bindings body ...).
value named_let(value name, value bindings, value body);

#endif
