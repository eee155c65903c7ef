// compile.c - source to nodes: variables, procedures, calls, core syntax.
#include "node.h"

_Noreturn void bad_syntax(value form)
{
	fail(NULL, "bad syntax", form);
}

static struct node *make_node(run_fn *run, value v, uint32_t nkids)
{
	struct node *n =
	    must(rt_alloc(sizeof *n + nkids * sizeof(struct node *)));

	n->run = run;
	n->at = vm.at;
	n->v = v;
	n->nkids = nkids;
	return n;
}

static struct node *constant(value v)
{
	return make_node(run_constant, v, 0);
}

// ---- variables

// lookup returns the scope of a local variable and sets where its value is.
// Returns NULL if the variable is global.
static const struct scope *lookup(const struct scope *sc, value name,
				  uint32_t *depth, uint32_t *slot)
{
	for (*depth = 0; sc; sc = sc->outer, ++*depth) {
		*slot = 1;
		for (value v = sc->vars; v != NIL; v = cdr(v), ++*slot)
			if (car(v) == name)
				return sc;
	}
	return NULL;
}

static struct node *compile_reference(value name, const struct scope *sc)
{
	struct node *n = make_node(run_global, name, 0);

	sc = lookup(sc, name, &n->depth, &n->slot);
	if (!sc && is_type(symbol_of(name)->global, SYNTAX))
		fail(NULL, "not a variable", name);
	if (sc)
		n->run = n->depth || sc->inner ? run_outer : run_local;
	return n;
}

struct node *syntax_set(value form, const struct scope *sc, bool tail)
{
	(void)tail;
	if (list_length(form) != 3 || !is_type(car(cdr(form)), SYMBOL))
		bad_syntax(form);
	struct node *n = make_node(run_set_global, car(cdr(form)), 1);
	if (lookup(sc, n->v, &n->depth, &n->slot))
		n->run = run_set;
	n->kid[0] = compile(car(cdr(cdr(form))), sc, false);
	return n;
}

// ---- sequences

static struct node *sequence(run_fn *run, value forms, const struct scope *sc,
			     bool tail)
{
	struct node *n = make_node(run, 0, (uint32_t)list_length(forms));

	for (uint32_t i = 0; i < n->nkids; i++, forms = cdr(forms))
		n->kid[i] = compile(car(forms), sc, tail && i + 1 == n->nkids);
	return n;
}

struct node *syntax_begin(value form, const struct scope *sc, bool tail)
{
	if (list_length(form) < 1)
		bad_syntax(form);
	if (cdr(form) == NIL)
		return constant(UNSPECIFIED);
	if (cdr(cdr(form)) == NIL)
		return compile(car(cdr(form)), sc, tail);
	return sequence(run_begin, cdr(form), sc, tail);
}

struct node *syntax_and(value form, const struct scope *sc, bool tail)
{
	if (list_length(form) < 1)
		bad_syntax(form);
	return cdr(form) == NIL ? constant(TRUE)
				: sequence(run_and, cdr(form), sc, tail);
}

struct node *syntax_or(value form, const struct scope *sc, bool tail)
{
	if (list_length(form) < 1)
		bad_syntax(form);
	return cdr(form) == NIL ? constant(FALSE)
				: sequence(run_or, cdr(form), sc, tail);
}

// ---- definitions and bodies

// syntax_of returns the syntax that a form begins with, if any.
static syntax_fn *syntax_of(value form, const struct scope *sc)
{
	uint32_t depth, slot;
	value head = is_pair(form) ? car(form) : NIL;

	if (is_type(head, SYMBOL) && !lookup(sc, head, &depth, &slot))
		head = symbol_of(head)->global;
	return is_type(head, SYNTAX) ? ((struct syntax *)head)->compile : NULL;
}

static value defined_name(value form)
{
	value target = is_pair(cdr(form)) ? car(cdr(form)) : NIL;

	if (is_pair(target))
		target = car(target);
	if (list_length(form) < 3 || !is_type(target, SYMBOL))
		bad_syntax(form);
	return target;
}

// A body with definitions has a frame for them, so all definitions are visible
// in the whole body.
static struct node *compile_body(value forms, const struct scope *outer,
				 bool tail)
{
	struct scope sc = {outer, NIL, true};

	for (value f = forms; f != NIL; f = cdr(f))
		if (syntax_of(car(f), outer) == syntax_define)
			sc.vars = cons(defined_name(car(f)), sc.vars);
	if (sc.vars == NIL)
		return cdr(forms) == NIL
			   ? compile(car(forms), outer, tail)
			   : sequence(run_begin, forms, outer, tail);
	struct node *n = sequence(run_scope, forms, &sc, tail);
	n->slot = (uint32_t)list_length(sc.vars);
	return n;
}

static void add_parameter(struct builder *vars, value name)
{
	if (!is_type(name, SYMBOL))
		fail("lambda", "not a parameter", name);
	builder_add(vars, name);
}

static struct node *compile_lambda(value name, value params, value body,
				   const struct scope *outer)
{
	struct lambda *l = must(rt_alloc(sizeof *l));
	struct builder vars = EMPTY;

	l->name = name;
	for (; is_pair(params); params = cdr(params), l->nreq++)
		add_parameter(&vars, car(params));
	l->rest = params != NIL;
	if (l->rest)
		add_parameter(&vars, params);
	struct scope sc = {outer, vars.first, false};
	RT_STORE(l, &l->body, compile_body(body, &sc, true));
	return make_node(run_lambda, (value)l, 0);
}

struct node *syntax_lambda(value form, const struct scope *sc, bool tail)
{
	(void)tail;
	if (list_length(form) < 3)
		bad_syntax(form);
	return compile_lambda(FALSE, car(cdr(form)), cdr(cdr(form)), sc);
}

// A definition in a body is an assignment to the variable made for it.
struct node *syntax_define(value form, const struct scope *sc, bool tail)
{
	struct node *n = make_node(run_define, defined_name(form), 1);
	value target = car(cdr(form)), rest = cdr(cdr(form));

	(void)tail;
	if (sc) {
		n->run = run_set;
		if (lookup(sc, n->v, &n->depth, &n->slot) != sc || !sc->inner)
			fail("define", "neither global nor in a body", n->v);
	}
	if (is_pair(target))
		n->kid[0] = compile_lambda(n->v, cdr(target), rest, sc);
	else if (cdr(rest) == NIL)
		n->kid[0] = compile(car(rest), sc, false);
	else
		bad_syntax(form);
	return n;
}

// ---- let

void check_bindings(value form, value bindings)
{
	if (list_length(bindings) < 0)
		bad_syntax(form);
	for (; bindings != NIL; bindings = cdr(bindings)) {
		value b = car(bindings);

		if (list_length(b) != 2 || !is_type(car(b), SYMBOL))
			bad_syntax(form);
	}
}

static struct node *compile_let(value bindings, value body,
				const struct scope *outer, bool tail)
{
	uint32_t nvars = (uint32_t)list_length(bindings), i = 0;
	struct node *n = make_node(run_let, 0, nvars + 1);
	struct builder vars = EMPTY;

	for (; bindings != NIL; bindings = cdr(bindings)) {
		builder_add(&vars, car(car(bindings)));
		n->kid[i++] = compile(car(cdr(car(bindings))), outer, false);
	}
	struct scope sc = {outer, vars.first, false};
	n->kid[nvars] = compile_body(body, &sc, tail);
	return n;
}

struct node *syntax_let(value form, const struct scope *sc, bool tail)
{
	int64_t len = list_length(form);
	value name = len > 1 ? car(cdr(form)) : NIL;
	bool named = is_type(name, SYMBOL);

	if (len < (named ? 4 : 3))
		bad_syntax(form);
	value rest = named ? cdr(cdr(form)) : cdr(form);
	check_bindings(form, car(rest));
	if (named)
		return compile(named_let(name, car(rest), cdr(rest)), sc, tail);
	if (car(rest) == NIL)
		return compile_body(cdr(rest), sc, tail);
	return compile_let(car(rest), cdr(rest), sc, tail);
}

// ---- the other core syntax

struct node *syntax_quote(value form, const struct scope *sc, bool tail)
{
	(void)sc;
	(void)tail;
	if (list_length(form) != 2)
		bad_syntax(form);
	return constant(car(cdr(form)));
}

struct node *syntax_if(value form, const struct scope *sc, bool tail)
{
	int64_t len = list_length(form);

	if (len != 3 && len != 4)
		bad_syntax(form);
	struct node *n = make_node(run_if, 0, 3);
	form = cdr(form);
	n->kid[0] = compile(car(form), sc, false);
	form = cdr(form);
	n->kid[1] = compile(car(form), sc, tail);
	n->kid[2] = len == 3 ? constant(UNSPECIFIED)
			     : compile(car(cdr(form)), sc, tail);
	return n;
}

static struct node *compile_call(value form, const struct scope *sc, bool tail)
{
	int64_t len = list_length(form);

	if (len < 0 || len > UINT16_MAX)
		fail(NULL, "not a call", form);
	struct node *n = sequence(run_call, form, sc, false);
	n->tail = tail;
	if (len == 2)
		n->run = run_call1;
	else if (len == 3)
		n->run = run_call2;
	return n;
}

// Running a nest of forms recurses without a check of the stack; only calls
// check it.  main.c reserves enough stack for this many.
enum { MAX_NESTING = 10000 };
static int nesting;

static struct node *compile_list(value form, const struct scope *sc, bool tail)
{
	syntax_fn *syntax = syntax_of(form, sc);

	check_stack();
	if (++nesting > MAX_NESTING)
		fail(NULL, "nested too deep", NONE);
	struct node *n =
	    syntax ? syntax(form, sc, tail) : compile_call(form, sc, tail);
	nesting--;
	return n;
}

// Errors name the innermost list around them whose line is known.
struct node *compile(value form, const struct scope *sc, bool tail)
{
	if (is_type(form, SYMBOL))
		return compile_reference(form, sc);
	if (form == NIL)
		fail(NULL, "empty call", NONE);
	if (!is_pair(form))
		return constant(form);
	uint32_t line = vm.at.line;
	if ((form & 15) == TAG_SOURCE)
		vm.at.line = ((struct source_pair *)pair_of(form))->line;
	struct node *n = compile_list(form, sc, tail);
	vm.at.line = line;
	return n;
}

struct node *compile_top(value form)
{
	nesting = 0;
	return compile(form, NULL, true);
}
