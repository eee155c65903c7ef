// compile.c - source to nodes: variables, procedures, calls and loops.
//
// Variables of a let live in the frame of the procedure around it: without
// continuations, a let is entered at most once per call.  A named let that
// is only ever called in tail position, and makes no closure, is a loop in
// the same frame; nothing else can be entered twice.
#include "node.h"

#include <string.h>

struct var {
	struct var *next; // older: what it may shadow
	value name;
	struct loop *loop; // it names a loop, no variable
	uint32_t slot;
	bool checked; // may be read before it is assigned
};

struct loop {
	struct loop *outer; // whose tail position the loop stands in
	struct node *node;
	uint32_t nvars;
	bool escaped; // used other than by a jump
};

struct scope {
	struct scope *outer;
	struct lambda *code;
	struct var *vars;
	struct loop *loop;  // innermost; jumps to it stand in tail position
	uint32_t next;	    // free slot
	uint32_t ncaptures; // closures so far that keep the frame
	bool reaches_out;   // uses variables of outer
};

_Noreturn void bad_syntax(value form)
{
	fail("syntax error", string_of(symbol_of(car(form))->name)->text, form);
}

static struct node *make_node(run_fn *run, value v, uint32_t nkids)
{
	struct node *n =
	    must(rt_alloc(sizeof *n + nkids * sizeof(struct node *)));

	n->run = run;
	n->at = *vm.where;
	n->v = v;
	n->nkids = nkids;
	return n;
}

static struct node *constant(value v)
{
	return make_node(run_constant, v, 0);
}

// ---- scopes

static uint32_t take_slots(struct scope *sc, uint32_t n)
{
	uint32_t slot = sc->next;

	sc->next += n;
	if (sc->next > sc->code->nslots)
		sc->code->nslots = sc->next;
	return slot;
}

static struct var *add_var(struct scope *sc, value name, uint32_t slot)
{
	struct var *v = must(rt_alloc(sizeof *v));

	v->next = sc->vars;
	v->name = name;
	v->slot = slot;
	sc->vars = v;
	return v;
}

// What a let must put back: names, and slots unless a closure kept them.
struct mark {
	struct var *vars;
	uint32_t next, ncaptures;
};

static struct mark scope_mark(struct scope *sc)
{
	return (struct mark){sc->vars, sc->next, sc->ncaptures};
}

static void scope_reset(struct scope *sc, struct mark m)
{
	sc->vars = m.vars;
	if (sc->ncaptures == m.ncaptures)
		sc->next = m.next;
}

// lookup finds a local variable and counts the frames between.
static struct var *lookup(struct scope *sc, value name, uint32_t *depth)
{
	*depth = 0;
	for (struct scope *s = sc; s; s = s->outer, ++*depth) {
		for (struct var *v = s->vars; v; v = v->next) {
			if (v->name != name)
				continue;
			for (struct scope *t = sc; t != s; t = t->outer)
				t->reaches_out = true;
			return v;
		}
	}
	return NULL;
}

// syntax_of returns the syntax that a form begins with, if any.
static syntax_fn *syntax_of(value form, struct scope *sc)
{
	uint32_t depth;

	if (!is_pair(form) || !is_type(car(form), SYMBOL) ||
	    lookup(sc, car(form), &depth))
		return NULL;
	return symbol_of(car(form))->syntax;
}

// ---- variables

static struct node *compile_reference(value name, struct scope *sc)
{
	uint32_t depth;
	struct var *v = lookup(sc, name, &depth);

	if (!v) {
		if (symbol_of(name)->syntax)
			fail("syntax error", "not a variable", name);
		return make_node(run_global, name, 0);
	}
	if (v->loop) {
		v->loop->escaped = true; // the loop is compiled once more
		return constant(UNSPECIFIED);
	}
	struct node *n = make_node(v->checked	? run_checked
				   : depth == 0 ? run_local
				   : depth == 1 ? run_local1
						: run_outer,
				   name, 0);
	n->slot = v->slot;
	n->depth = depth;
	return n;
}

static struct node *syntax_set(value form, struct scope *sc, enum tail tail)
{
	uint32_t depth;

	(void)tail;
	if (list_length(form) != 3 || !is_type(car(cdr(form)), SYMBOL))
		bad_syntax(form);
	value name = car(cdr(form));
	struct var *v = lookup(sc, name, &depth);
	struct node *n = make_node(v ? run_set_outer : run_set_global, name, 1);

	n->kid[0] = compile(car(cdr(cdr(form))), sc, NOT_TAIL);
	if (v && v->loop)
		v->loop->escaped = true;
	if (v && depth == 0) {
		n->run = run_set_local;
		n->v = (value)sc->code;
	}
	if (v)
		n->slot = v->slot;
	n->depth = depth;
	return n;
}

// ---- procedures

static struct node *compile_body(value forms, struct scope *sc, enum tail tail);

static void add_parameters(value params, struct scope *sc)
{
	struct lambda *l = sc->code;

	for (; is_pair(params); params = cdr(params)) {
		if (!is_type(car(params), SYMBOL))
			fail("lambda", "not a parameter", car(params));
		add_var(sc, car(params), take_slots(sc, 1));
		l->nreq++;
	}
	if (params == NIL)
		return;
	if (!is_type(params, SYMBOL))
		fail("lambda", "not a parameter", params);
	add_var(sc, params, take_slots(sc, 1));
	l->rest = true;
}

static struct scope new_scope(struct scope *outer, value name)
{
	struct lambda *l = must(rt_alloc(sizeof *l));

	l->name = name;
	l->nslots = 1;
	return (struct scope){.outer = outer, .code = l, .next = 1};
}

static void finish_lambda(struct scope *sc, struct node *body)
{
	sc->code->body = body;
	if (sc->code->nslots > FRAME_MAX)
		sc->code->on_heap = true;
}

// A lambda that uses nothing from outside is a constant: one closure, made
// now.  Any other keeps the frame it is made in.
static struct node *compile_lambda(value name, value params, value body,
				   struct scope *outer)
{
	struct scope sc = new_scope(outer, name);

	add_parameters(params, &sc);
	finish_lambda(&sc, compile_body(body, &sc, PROC_TAIL));
	struct node *n = make_node(run_lambda, (value)sc.code, 0);
	if (sc.reaches_out) {
		outer->ncaptures++;
		outer->code->on_heap = true;
		return n;
	}
	n->v = run_lambda(n, NULL);
	n->run = run_constant;
	return n;
}

static struct node *syntax_lambda(value form, struct scope *sc, enum tail tail)
{
	(void)tail;
	if (list_length(form) < 3)
		bad_syntax(form);
	return compile_lambda(FALSE, car(cdr(form)), cdr(cdr(form)), sc);
}

// compile_named is compile, but a procedure gets a name for its errors.
static struct node *compile_named(value name, value form, struct scope *sc)
{
	if (syntax_of(form, sc) == syntax_lambda && list_length(form) >= 3)
		return compile_lambda(name, car(cdr(form)), cdr(cdr(form)), sc);
	return compile(form, sc, NOT_TAIL);
}

// ---- definitions and bodies

static value defined_name(value form)
{
	value target = is_pair(cdr(form)) ? car(cdr(form)) : NIL;

	if (is_pair(target))
		target = car(target);
	if (list_length(form) < 2 || !is_type(target, SYMBOL))
		bad_syntax(form);
	return target;
}

static struct node *defined_value(value form, struct scope *sc)
{
	value target = car(cdr(form)), rest = cdr(cdr(form));

	if (is_pair(target)) {
		if (rest == NIL)
			bad_syntax(form);
		return compile_lambda(car(target), cdr(target), rest, sc);
	}
	if (rest == NIL)
		return constant(UNSPECIFIED);
	if (cdr(rest) != NIL)
		bad_syntax(form);
	return compile_named(target, car(rest), sc);
}

static struct node *syntax_define(value form, struct scope *sc, enum tail tail)
{
	value name = defined_name(form);

	(void)tail;
	if (sc->outer || sc->vars)
		fail("define", "neither global nor in a body", name);
	symbol_of(name)->syntax = NULL;
	struct node *n = make_node(run_define, name, 1);
	n->kid[0] = defined_value(form, sc);
	return n;
}

static struct node *syntax_begin(value form, struct scope *sc, enum tail tail);

// flatten appends the forms of a body, begins opened, and returns the end.
static value *flatten(value forms, struct scope *sc, value *end)
{
	for (; is_pair(forms); forms = cdr(forms)) {
		value form = car(forms);

		if (syntax_of(form, sc) == syntax_begin && cdr(form) != NIL) {
			end = flatten(cdr(form), sc, end);
			continue;
		}
		value cell = cons(form, NIL);
		*end = cell;
		end = &pair_of(cell)->cdr;
	}
	return end;
}

static struct node *compile_sequence(value forms, struct scope *sc,
				     enum tail tail)
{
	uint32_t count = (uint32_t)list_length(forms);

	if (count == 1)
		return compile(car(forms), sc, tail);
	struct node *n = make_node(run_begin, 0, count);
	for (uint32_t i = 0; i < count; i++, forms = cdr(forms))
		n->kid[i] =
		    compile(car(forms), sc, i + 1 == count ? tail : NOT_TAIL);
	return n;
}

// declare makes variables of the definitions in a body; all are visible in
// all of it.
static struct node *declare(value forms, struct scope *sc)
{
	uint32_t first = sc->next;

	for (; is_pair(forms); forms = cdr(forms))
		if (syntax_of(car(forms), sc) == syntax_define)
			add_var(sc, defined_name(car(forms)), take_slots(sc, 1))
			    ->checked = true;
	if (sc->next == first)
		return NULL;
	struct node *n = make_node(run_unassign, (value)sc->code, 0);
	n->slot = first;
	n->depth = sc->next - first;
	return n;
}

static struct node *compile_inner_define(value form, struct scope *sc)
{
	uint32_t depth;
	struct node *n = make_node(run_set_local, (value)sc->code, 1);

	n->slot = lookup(sc, defined_name(form), &depth)->slot;
	n->kid[0] = defined_value(form, sc);
	return n;
}

static struct node *compile_body(value body, struct scope *sc, enum tail tail)
{
	value forms = NIL;
	struct mark mark = scope_mark(sc);

	flatten(body, sc, &forms);
	struct node *unassign = declare(forms, sc);
	if (!unassign)
		return compile_sequence(forms, sc, tail);

	uint32_t count = (uint32_t)list_length(forms);
	struct node *n = make_node(run_begin, 0, count + 1);
	n->kid[0] = unassign;
	for (uint32_t i = 1; i <= count; i++, forms = cdr(forms))
		n->kid[i] =
		    syntax_of(car(forms), sc) == syntax_define
			? compile_inner_define(car(forms), sc)
			: compile(car(forms), sc, i == count ? tail : NOT_TAIL);
	scope_reset(sc, mark);
	return n;
}

// ---- let and loops

static void check_bindings(value form, value bindings)
{
	if (list_length(bindings) < 0)
		bad_syntax(form);
	for (; bindings != NIL; bindings = cdr(bindings)) {
		value b = car(bindings);

		if (list_length(b) != 2 || !is_type(car(b), SYMBOL))
			bad_syntax(form);
	}
}

// compile_values fills the kids of a let with its initial values and makes
// the variables visible.  A value is stored as soon as it is known, so the
// slots are taken first: no inner let may use them.
static void compile_values(struct node *n, value bindings, struct scope *sc)
{
	uint32_t i = 0;

	n->slot = take_slots(sc, n->nkids - 1);
	for (value b = bindings; b != NIL; b = cdr(b))
		n->kid[i++] = compile_named(car(car(b)), car(cdr(car(b))), sc);
	i = n->slot;
	for (value b = bindings; b != NIL; b = cdr(b))
		add_var(sc, car(car(b)), i++);
}

static struct node *compile_let(value bindings, value body, struct scope *sc,
				enum tail tail)
{
	struct mark mark = scope_mark(sc);
	uint32_t nvars = (uint32_t)list_length(bindings);
	struct node *n = make_node(run_let, (value)sc->code, nvars + 1);

	compile_values(n, bindings, sc);
	n->kid[nvars] = compile_body(body, sc, tail);
	scope_reset(sc, mark);
	return n;
}

// compile_loop tries a named let as a loop; NULL: it is none.  What it left
// behind is dropped; nested failures compile the inner ones again, twice
// for each level.
static struct node *compile_loop(value name, value bindings, value body,
				 struct scope *sc, enum tail tail)
{
	struct mark mark = scope_mark(sc);
	uint32_t nvars = (uint32_t)list_length(bindings);
	struct node *n = make_node(run_loop, (value)sc->code, nvars + 1);
	struct loop loop = {.outer = tail == NOT_TAIL ? NULL : sc->loop,
			    .node = n,
			    .nvars = nvars,
			    .escaped = nvars > FRAME_MAX};
	struct loop *outer = sc->loop;

	compile_values(n, bindings, sc);
	uint32_t ncaptures = sc->ncaptures;
	add_var(sc, name, 0)->loop = &loop;
	sc->loop = &loop;
	n->kid[nvars] =
	    compile_body(body, sc, tail == NOT_TAIL ? LOOP_TAIL : tail);
	sc->loop = outer;
	bool is_loop = !loop.escaped && sc->ncaptures == ncaptures;
	scope_reset(sc, mark);
	return is_loop ? n : NULL;
}

// A named let that is no loop: ((let () (define name (lambda ...)) name) ...)
static value named_let_call(value name, value bindings, value body)
{
	value params = NIL, inits = NIL;
	value *p = &params, *i = &inits;

	for (; bindings != NIL; bindings = cdr(bindings)) {
		*p = cons(car(car(bindings)), NIL);
		p = &pair_of(*p)->cdr;
		*i = cons(car(cdr(car(bindings))), NIL);
		i = &pair_of(*i)->cdr;
	}
	value define = list_of(3, vm.core[CORE_DEFINE], name,
			       cons(vm.core[CORE_LAMBDA], cons(params, body)));
	return cons(list_of(4, vm.core[CORE_LET], NIL, define, name), inits);
}

static struct node *syntax_let(value form, struct scope *sc, enum tail tail)
{
	int64_t len = list_length(form);
	value name = len > 1 ? car(cdr(form)) : NIL;
	bool named = is_type(name, SYMBOL);

	if (len < (named ? 4 : 3))
		bad_syntax(form);
	value rest = named ? cdr(cdr(form)) : cdr(form);
	check_bindings(form, car(rest));
	if (!named)
		return compile_let(car(rest), cdr(rest), sc, tail);
	struct node *n = compile_loop(name, car(rest), cdr(rest), sc, tail);
	return n ? n
		 : compile(named_let_call(name, car(rest), cdr(rest)), sc,
			   tail);
}

// ---- calls

static void compile_kids(struct node *n, value forms, struct scope *sc)
{
	for (uint32_t i = 0; i < n->nkids; i++, forms = cdr(forms))
		n->kid[i] = compile(car(forms), sc, NOT_TAIL);
}

static bool is_jump(struct loop *target, int argc, struct scope *sc,
		    enum tail tail)
{
	if (tail == NOT_TAIL || (uint32_t)argc != target->nvars)
		return false;
	for (struct loop *l = sc->loop; l; l = l->outer)
		if (l == target)
			return true;
	return false;
}

// compile_special makes a jump or a primitive in place, or returns NULL.
static struct node *compile_special(value form, int argc, struct scope *sc,
				    enum tail tail)
{
	uint32_t depth;
	struct var *v = lookup(sc, car(form), &depth);
	struct node *n;

	if (v) {
		if (!v->loop || depth || !is_jump(v->loop, argc, sc, tail))
			return NULL;
		n = make_node(run_jump, (value)v->loop->node, (uint32_t)argc);
	} else {
		run_fn *op = inline_op(car(form), argc);

		if (!op)
			return NULL;
		n = make_node(op, car(form), (uint32_t)argc);
	}
	compile_kids(n, cdr(form), sc);
	return n;
}

static struct node *compile_call(value form, struct scope *sc, enum tail tail)
{
	int64_t len = list_length(form);
	int argc = (int)len - 1;
	struct node *n = NULL;

	if (len < 0 || len > UINT16_MAX)
		fail("syntax error", "not a call", form);
	if (is_type(car(form), SYMBOL))
		n = compile_special(form, argc, sc, tail);
	if (n)
		return n;
	n = make_node(tail == PROC_TAIL ? run_tail_call
		      : argc == 1	? run_call1
		      : argc == 2	? run_call2
		      : argc == 3	? run_call3
					: run_call,
		      0, (uint32_t)len);
	compile_kids(n, form, sc);
	return n;
}

// ---- other syntax

static struct node *syntax_quote(value form, struct scope *sc, enum tail tail)
{
	(void)sc;
	(void)tail;
	if (list_length(form) != 2)
		bad_syntax(form);
	return constant(car(cdr(form)));
}

static struct node *syntax_if(value form, struct scope *sc, enum tail tail)
{
	int64_t len = list_length(form);

	if (len != 3 && len != 4)
		bad_syntax(form);
	struct node *n = make_node(run_if, 0, 3);
	form = cdr(form);
	n->kid[0] = compile(car(form), sc, NOT_TAIL);
	form = cdr(form);
	n->kid[1] = compile(car(form), sc, tail);
	n->kid[2] = len == 3 ? constant(UNSPECIFIED)
			     : compile(car(cdr(form)), sc, tail);
	return n;
}

static struct node *syntax_begin(value form, struct scope *sc, enum tail tail)
{
	if (list_length(form) < 1)
		bad_syntax(form);
	return cdr(form) == NIL ? constant(UNSPECIFIED)
				: compile_sequence(cdr(form), sc, tail);
}

static struct node *compile_logic(run_fn *run, value empty, value form,
				  struct scope *sc, enum tail tail)
{
	if (list_length(form) < 1)
		bad_syntax(form);
	if (cdr(form) == NIL)
		return constant(empty);
	struct node *n = compile_sequence(cdr(form), sc, tail);
	if (cdr(cdr(form)) != NIL)
		n->run = run;
	return n;
}

static struct node *syntax_and(value form, struct scope *sc, enum tail tail)
{
	return compile_logic(run_and, TRUE, form, sc, tail);
}

static struct node *syntax_or(value form, struct scope *sc, enum tail tail)
{
	return compile_logic(run_or, FALSE, form, sc, tail);
}

// Running a nest of forms recurses without a look at the stack, which only
// calls take: main.c reserves stack for this many.
enum { MAX_NESTING = 10000 };

// Errors name the innermost list around them whose place is known.
struct node *compile(value form, struct scope *sc, enum tail tail)
{
	const struct place *outer = vm.where;
	struct node *n;

	if (is_type(form, SYMBOL))
		return compile_reference(form, sc);
	if (form == NIL)
		fail("syntax error", "empty call", NONE);
	if (!is_pair(form))
		return constant(form);
	const struct place *at = locate(form);
	if (at)
		vm.where = at;
	check_stack();
	if (++vm.nesting > MAX_NESTING)
		fail(NULL, "nested too deep", NONE);
	syntax_fn *syntax = syntax_of(form, sc);
	n = syntax ? syntax(form, sc, tail) : compile_call(form, sc, tail);
	vm.nesting--;
	vm.where = outer;
	return n;
}

// ---- the table of syntax

static const struct {
	const char *name;
	syntax_fn *syntax;
} forms[] = {
    {"quote", syntax_quote}, {"if", syntax_if},	      {"lambda", syntax_lambda},
    {"let", syntax_let},     {"begin", syntax_begin}, {"define", syntax_define},
    {"set!", syntax_set},    {"and", syntax_and},     {"or", syntax_or},
};

void define_core_syntax(void)
{
	for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
		symbol_of(symbol_named(forms[i].name))->syntax =
		    forms[i].syntax;
}

struct lambda *compile_top(value form)
{
	struct scope sc = new_scope(NULL, FALSE);

	vm.nesting = 0;
	finish_lambda(&sc, compile(form, &sc, PROC_TAIL));
	return sc.code;
}
