// syntax.c - derived forms: source to simpler source.
//
// What they expand to begins with core symbols, which no program can name,
// and with primitives themselves, so a program may redefine anything.
#include "node.h"

#include <string.h>

static value core(enum core c)
{
	return vm.core[c];
}

static void check_length(value form, int64_t least)
{
	if (list_length(form) < least)
		bad_syntax(form);
}

static value begin(value forms)
{
	return cons(core(CORE_BEGIN), forms);
}

static value if_form(value test, value then, value otherwise)
{
	return list_of(4, core(CORE_IF), test, then, otherwise);
}

static value quote(value v)
{
	return list_of(2, core(CORE_QUOTE), v);
}

// (let ((name init)) body)
static value let_form(value name, value init, value body)
{
	return list_of(3, core(CORE_LET), list_of(1, list_of(2, name, init)),
		       body);
}

static value fresh(const char *name)
{
	return make_symbol(make_string(name, strlen(name)));
}

// ---- cond, case, when, unless

static value cond_clauses(value form, value clauses);

// The first clause with the others behind it.
static value cond_clause(value form, value clause, value rest)
{
	check_length(clause, 1);
	value test = car(clause), body = cdr(clause);

	if (test == vm.sym_else)
		return begin(body);
	if (body != NIL && car(body) != vm.sym_arrow)
		return if_form(test, begin(body), cond_clauses(form, rest));

	value t = fresh("cond-value"), then = t;
	if (body != NIL) {
		check_length(body, 2);
		then = list_of(2, car(cdr(body)), t);
	}
	return let_form(t, test, if_form(t, then, cond_clauses(form, rest)));
}

static value cond_clauses(value form, value clauses)
{
	if (!is_pair(clauses))
		return begin(NIL);
	if (!is_pair(car(clauses)))
		bad_syntax(form);
	return cond_clause(form, car(clauses), cdr(clauses));
}

static struct node *syntax_cond(value form, struct scope *sc, enum tail tail)
{
	check_length(form, 1);
	return compile(cond_clauses(form, cdr(form)), sc, tail);
}

// (case k ((a b) x) (else y)): (let ((t k)) (cond ((memv t '(a b)) x) ...))
static struct node *syntax_case(value form, struct scope *sc, enum tail tail)
{
	value t = fresh("case-key"), memv = primitive_named("memv");
	value clauses = cons(core(CORE_COND), NIL);
	value *end = &pair_of(clauses)->cdr;

	check_length(form, 2);
	for (value c = cdr(cdr(form)); c != NIL; c = cdr(c)) {
		value clause = car(c);

		check_length(clause, 2);
		value test = car(clause) == vm.sym_else
				 ? vm.sym_else
				 : list_of(3, memv, t, quote(car(clause)));
		*end = cons(cons(test, cdr(clause)), NIL);
		end = &pair_of(*end)->cdr;
	}
	return compile(let_form(t, car(cdr(form)), clauses), sc, tail);
}

static struct node *syntax_when(value form, struct scope *sc, enum tail tail)
{
	check_length(form, 2);
	return compile(
	    if_form(car(cdr(form)), begin(cdr(cdr(form))), begin(NIL)), sc,
	    tail);
}

static struct node *syntax_unless(value form, struct scope *sc, enum tail tail)
{
	check_length(form, 2);
	return compile(
	    if_form(car(cdr(form)), begin(NIL), begin(cdr(cdr(form)))), sc,
	    tail);
}

// ---- let*, letrec, do

static value nested_lets(value bindings, value body)
{
	if (!is_pair(bindings) || cdr(bindings) == NIL)
		return cons(core(CORE_LET), cons(bindings, body));
	return list_of(3, core(CORE_LET), list_of(1, car(bindings)),
		       nested_lets(cdr(bindings), body));
}

static struct node *syntax_let_star(value form, struct scope *sc,
				    enum tail tail)
{
	check_length(form, 3);
	check_length(car(cdr(form)), 0);
	return compile(nested_lets(car(cdr(form)), cdr(cdr(form))), sc, tail);
}

// (let () (define name init) ... (let () body ...))
static struct node *syntax_letrec(value form, struct scope *sc, enum tail tail)
{
	check_length(form, 3);
	value forms =
	    list_of(1, cons(core(CORE_LET), cons(NIL, cdr(cdr(form)))));
	value defines = NIL;

	check_length(car(cdr(form)), 0);
	for (value b = car(cdr(form)); b != NIL; b = cdr(b)) {
		if (list_length(car(b)) != 2)
			bad_syntax(form);
		defines = cons(cons(core(CORE_DEFINE), car(b)), defines);
	}
	for (; defines != NIL; defines = cdr(defines))
		forms = cons(car(defines), forms);
	return compile(cons(core(CORE_LET), cons(NIL, forms)), sc, tail);
}

// (do ((var init step) ...) (test result ...) body ...) is a named let.
static struct node *syntax_do(value form, struct scope *sc, enum tail tail)
{
	value loop = fresh("do"), bindings = NIL, steps = cons(loop, NIL);
	value *b_end = &bindings, *s_end = &pair_of(steps)->cdr;

	check_length(form, 3);
	check_length(car(cdr(form)), 0);
	for (value b = car(cdr(form)); b != NIL; b = cdr(b)) {
		value var = car(b);

		check_length(var, 2);
		value step = cdr(cdr(var));
		*b_end = cons(list_of(2, car(var), car(cdr(var))), NIL);
		b_end = &pair_of(*b_end)->cdr;
		*s_end = cons(step == NIL ? car(var) : car(step), NIL);
		s_end = &pair_of(*s_end)->cdr;
	}
	value end = car(cdr(cdr(form))), body = cdr(cdr(cdr(form)));

	check_length(end, 1);
	value again = list_of(3, core(CORE_BEGIN), begin(body), steps);
	return compile(list_of(4, core(CORE_LET), loop, bindings,
			       if_form(car(end), begin(cdr(end)), again)),
		       sc, tail);
}

// ---- delay, cons-stream, assert

static value delayed(value form)
{
	return list_of(2, primitive_named("make-promise-of"),
		       list_of(3, core(CORE_LAMBDA), NIL, form));
}

static struct node *syntax_delay(value form, struct scope *sc, enum tail tail)
{
	check_length(form, 2);
	return compile(delayed(car(cdr(form))), sc, tail);
}

static struct node *syntax_cons_stream(value form, struct scope *sc,
				       enum tail tail)
{
	check_length(form, 3);
	return compile(list_of(3, primitive_named("cons"), car(cdr(form)),
			       delayed(car(cdr(cdr(form))))),
		       sc, tail);
}

static struct node *syntax_assert(value form, struct scope *sc, enum tail tail)
{
	static const char text[] = "assertion failed:";

	check_length(form, 2);
	value error =
	    list_of(3, primitive_named("error"),
		    make_string(text, sizeof text - 1), quote(car(cdr(form))));
	return compile(if_form(car(cdr(form)), begin(NIL), error), sc, tail);
}

// ---- quasiquote

static value quasi(value v, int depth);

static bool begins_with(value v, value symbol)
{
	return is_pair(v) && car(v) == symbol && is_pair(cdr(v));
}

static value quasi_nested(value v, int depth)
{
	return list_of(3, primitive_named("list"), quote(car(v)),
		       quasi(car(cdr(v)), depth));
}

static value vector_list(struct vector *v)
{
	value list = NIL;

	for (uint32_t i = v->head.len; i-- > 0;)
		list = cons(v->item[i], list);
	return list;
}

static value quasi(value v, int depth)
{
	check_stack();
	if (is_type(v, VECTOR))
		return list_of(2, primitive_named("list->vector"),
			       quasi(vector_list(vector_of(v)), depth));
	if (!is_pair(v))
		return quote(v);
	if (begins_with(v, vm.sym_unquote))
		return depth == 1 ? car(cdr(v)) : quasi_nested(v, depth - 1);
	if (begins_with(v, vm.sym_quasiquote))
		return quasi_nested(v, depth + 1);
	if (begins_with(car(v), vm.sym_splice) && depth == 1)
		return list_of(3, primitive_named("append"), car(cdr(car(v))),
			       quasi(cdr(v), depth));
	return list_of(3, primitive_named("cons"), quasi(car(v), depth),
		       quasi(cdr(v), depth));
}

static struct node *syntax_quasiquote(value form, struct scope *sc,
				      enum tail tail)
{
	check_length(form, 2);
	return compile(quasi(car(cdr(form)), 1), sc, tail);
}

// ---- the table

static const struct {
	const char *name;
	syntax_fn *syntax;
} forms[] = {
    {"cond", syntax_cond},	{"case", syntax_case},
    {"when", syntax_when},	{"unless", syntax_unless},
    {"let*", syntax_let_star},	{"letrec", syntax_letrec},
    {"letrec*", syntax_letrec}, {"do", syntax_do},
    {"delay", syntax_delay},	{"cons-stream", syntax_cons_stream},
    {"assert", syntax_assert},	{"quasiquote", syntax_quasiquote},
};

void define_derived_syntax(void)
{
	static const char *const names[NCORE] = {
	    [CORE_QUOTE] = "quote",   [CORE_IF] = "if",
	    [CORE_LAMBDA] = "lambda", [CORE_LET] = "let",
	    [CORE_BEGIN] = "begin",   [CORE_COND] = "cond",
	    [CORE_DEFINE] = "define",
	};

	for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
		symbol_of(symbol_named(forms[i].name))->syntax =
		    forms[i].syntax;
	for (int i = 0; i < NCORE; i++) {
		vm.core[i] = fresh(names[i]);
		symbol_of(vm.core[i])->syntax =
		    symbol_of(symbol_named(names[i]))->syntax;
	}
}
