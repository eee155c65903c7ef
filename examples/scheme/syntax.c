// syntax.c - derived forms: source to simpler source; the table of syntax.
//
// Derived forms expand to forms that begin with syntax objects.  No program can
// name these, so a program may redefine anything.
#include "node.h"

#include <string.h>

static value core(enum core c, value rest)
{
	return cons(vm.core[c], rest);
}

static void check_length(value form, int64_t least)
{
	if (list_length(form) < least)
		bad_syntax(form);
}

static value begin(value forms)
{
	return core(BEGIN, forms);
}

static value if_form(value test, value then, value otherwise)
{
	return core(IF, list_of(3, test, then, otherwise));
}

static value fresh(const char *name)
{
	return make_symbol(name, strlen(name));
}

// ---- cond, when, unless

// cond_value expands (test), or (test => receiver), before the other clauses.
static value cond_value(value clause, value rest)
{
	value t = fresh("cond-value"), then = t;

	if (cdr(clause) != NIL) {
		check_length(clause, 3);
		then = list_of(2, car(cdr(cdr(clause))), t);
	}
	return core(LET, list_of(2, list_of(1, list_of(2, t, car(clause))),
				 if_form(t, then, core(COND, rest))));
}

static struct node *syntax_cond(value form, const struct scope *sc, bool tail)
{
	check_length(form, 1);
	if (cdr(form) == NIL)
		return compile(begin(NIL), sc, tail);
	value clause = car(cdr(form)), rest = cdr(cdr(form));
	check_length(clause, 1);
	value body = cdr(clause);
	if (car(clause) == vm.sym_else)
		return compile(begin(body), sc, tail);
	if (body == NIL || car(body) == vm.sym_arrow)
		return compile(cond_value(clause, rest), sc, tail);
	return compile(if_form(car(clause), begin(body), core(COND, rest)), sc,
		       tail);
}

static struct node *syntax_when(value form, const struct scope *sc, bool tail)
{
	check_length(form, 2);
	return compile(
	    if_form(car(cdr(form)), begin(cdr(cdr(form))), begin(NIL)), sc,
	    tail);
}

static struct node *syntax_unless(value form, const struct scope *sc, bool tail)
{
	check_length(form, 2);
	return compile(
	    if_form(car(cdr(form)), begin(NIL), begin(cdr(cdr(form)))), sc,
	    tail);
}

// ---- let*, letrec, named let, do

static struct node *syntax_let_star(value form, const struct scope *sc,
				    bool tail)
{
	check_length(form, 3);
	value bindings = car(cdr(form)), body = cdr(cdr(form));
	check_length(bindings, 0);
	if (bindings != NIL && cdr(bindings) != NIL) {
		body = list_of(1, core(LET_STAR, cons(cdr(bindings), body)));
		bindings = list_of(1, car(bindings));
	}
	return compile(core(LET, cons(bindings, body)), sc, tail);
}

// (let () (define name init) ... (let () body ...))
static struct node *syntax_letrec(value form, const struct scope *sc, bool tail)
{
	struct builder forms = EMPTY;

	check_length(form, 3);
	check_bindings(form, car(cdr(form)));
	for (value b = car(cdr(form)); b != NIL; b = cdr(b))
		builder_add(&forms, core(DEFINE, car(b)));
	builder_add(&forms, core(LET, cons(NIL, cdr(cdr(form)))));
	return compile(core(LET, cons(NIL, forms.first)), sc, tail);
}

// ((let () (define (name var ...) body ...) name) init ...)
value named_let(value name, value bindings, value body)
{
	struct builder vars = EMPTY, inits = EMPTY;

	for (; bindings != NIL; bindings = cdr(bindings)) {
		builder_add(&vars, car(car(bindings)));
		builder_add(&inits, car(cdr(car(bindings))));
	}
	value define = core(DEFINE, cons(cons(name, vars.first), body));
	return cons(core(LET, list_of(3, NIL, define, name)), inits.first);
}

// (do ((var init step) ...) (test result ...) body ...) is a named let.
static struct node *syntax_do(value form, const struct scope *sc, bool tail)
{
	value loop = fresh("do");
	struct builder bindings = EMPTY, again = EMPTY;

	check_length(form, 3);
	check_length(car(cdr(form)), 0);
	builder_add(&again, loop);
	for (value b = car(cdr(form)); b != NIL; b = cdr(b)) {
		value var = car(b);

		check_length(var, 2);
		value step = cdr(cdr(var));
		builder_add(&bindings, list_of(2, car(var), car(cdr(var))));
		builder_add(&again, step == NIL ? car(var) : car(step));
	}
	value end = car(cdr(cdr(form))), body = cdr(cdr(cdr(form)));
	check_length(end, 1);
	check_bindings(form, bindings.first);
	body = begin(list_of(2, begin(body), again.first));
	body = if_form(car(end), begin(cdr(end)), body);
	return compile(named_let(loop, bindings.first, list_of(1, body)), sc,
		       tail);
}

// ---- the table; core syntax that others expand to comes first

static const struct {
	const char *name;
	syntax_fn *compile;
} forms[] = {
    [BEGIN] = {"begin", syntax_begin},
    [COND] = {"cond", syntax_cond},
    [DEFINE] = {"define", syntax_define},
    [IF] = {"if", syntax_if},
    [LET] = {"let", syntax_let},
    [LET_STAR] = {"let*", syntax_let_star},
    {"and", syntax_and},
    {"do", syntax_do},
    {"lambda", syntax_lambda},
    {"letrec", syntax_letrec},
    {"or", syntax_or},
    {"quote", syntax_quote},
    {"set!", syntax_set},
    {"unless", syntax_unless},
    {"when", syntax_when},
};

void define_syntax(void)
{
	for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
		struct syntax *s = must(rt_alloc(sizeof *s));
		struct symbol *name = symbol_of(symbol_named(forms[i].name));

		s->head.type = SYNTAX;
		s->name = forms[i].name;
		s->compile = forms[i].compile;
		RT_STORE(name, &name->global, s);
		if (i < NCORE)
			vm.core[i] = (value)s;
	}
}
