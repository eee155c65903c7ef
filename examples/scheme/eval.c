// eval.c - running compiled code.
//
// A node returns its value.  In tail position a call of a closure returns TAIL
// instead, with the call in vm; apply then makes the call.  So tail calls use
// no C stack.
#include "node.h"

// Every second node is a variable of the frame, so this evaluates it without a
// call.
static inline value eval(struct node *n, value *frame)
{
	return n->run == run_local ? frame[n->slot] : n->run(n, frame);
}

// ---- variables

value run_constant(struct node *n, value *frame)
{
	(void)frame;
	return n->v;
}

value run_local(struct node *n, value *frame)
{
	return frame[n->slot];
}

static value *frame_at(struct node *n, value *frame)
{
	for (uint32_t d = n->depth; d; d--)
		frame = (value *)frame[0];
	return frame;
}

_Noreturn static void undefined(struct node *n)
{
	vm.at = n->at;
	fail(NULL, "undefined variable", n->v);
}

value run_outer(struct node *n, value *frame)
{
	value v = frame_at(n, frame)[n->slot];

	if (__builtin_expect(v == UNASSIGNED, 0))
		undefined(n);
	return v;
}

value run_global(struct node *n, value *frame)
{
	value v = symbol_of(n->v)->global;

	(void)frame;
	if (__builtin_expect(v == UNBOUND, 0))
		undefined(n);
	return v;
}

value run_set(struct node *n, value *frame)
{
	value v = eval(n->kid[0], frame);

	frame = frame_at(n, frame);
	RT_STORE(frame, &frame[n->slot], v);
	return UNSPECIFIED;
}

value run_define(struct node *n, value *frame)
{
	value v = eval(n->kid[0], frame);
	struct symbol *s = symbol_of(n->v);

	RT_STORE(s, &s->global, v);
	return UNSPECIFIED;
}

value run_set_global(struct node *n, value *frame)
{
	if (symbol_of(n->v)->global == UNBOUND)
		undefined(n);
	return run_define(n, frame);
}

// ---- control

value run_if(struct node *n, value *frame)
{
	return eval(n->kid[eval(n->kid[0], frame) == FALSE ? 2 : 1], frame);
}

value run_begin(struct node *n, value *frame)
{
	uint32_t last = n->nkids - 1;

	for (uint32_t i = 0; i < last; i++)
		eval(n->kid[i], frame);
	return eval(n->kid[last], frame);
}

value run_and(struct node *n, value *frame)
{
	uint32_t last = n->nkids - 1;

	for (uint32_t i = 0; i < last; i++)
		if (eval(n->kid[i], frame) == FALSE)
			return FALSE;
	return eval(n->kid[last], frame);
}

value run_or(struct node *n, value *frame)
{
	uint32_t last = n->nkids - 1;

	for (uint32_t i = 0; i < last; i++) {
		value v = eval(n->kid[i], frame);

		if (v != FALSE)
			return v;
	}
	return eval(n->kid[last], frame);
}

value run_lambda(struct node *n, value *frame)
{
	struct closure *c = must(rt_alloc_in(vm.self, sizeof *c));

	c->head.type = CLOSURE;
	c->code = (struct lambda *)n->v;
	c->env = frame;
	return (value)c;
}

value run_let(struct node *n, value *frame)
{
	uint32_t last = n->nkids - 1;
	value *inner = new_frame(last + 1);

	inner[0] = (value)frame;
	for (uint32_t i = 0; i < last; i++)
		inner[i + 1] = eval(n->kid[i], frame);
	return eval(n->kid[last], inner);
}

value run_scope(struct node *n, value *frame)
{
	value *inner = new_frame(n->slot + 1);

	inner[0] = (value)frame;
	for (uint32_t i = 1; i <= n->slot; i++)
		inner[i] = UNASSIGNED;
	return run_begin(n, inner);
}

// ---- calls

_Noreturn static void wrong_count(const char *who, int argc)
{
	fail(who, "wrong number of arguments", fixnum(argc));
}

static value call_primitive(value fn, int argc, value *a)
{
	const struct builtin *b = ((struct primitive *)fn)->b;

	vm.callee = b;
	if (argc == 0 && b->f0)
		return b->f0();
	if (argc == 1 && b->f1)
		return b->f1(a[0]);
	if (argc == 2 && b->f2)
		return b->f2(a[0], a[1]);
	if (argc == 3 && b->f3)
		return b->f3(a[0], a[1], a[2]);
	if (!b->fn || argc < b->min || argc > b->max)
		wrong_count(b->name, argc);
	return b->fn(argc, a);
}

// bind_rest returns a frame in which the arguments after the required ones are
// a list.
static value *bind_rest(struct lambda *l, int argc, value *s)
{
	if (argc < l->nreq || !l->rest)
		wrong_count(l->name == FALSE
				? NULL
				: string_of(symbol_of(l->name)->name)->text,
			    argc);
	value *frame = new_frame((size_t)l->nreq + 2), rest = NIL;
	while (argc > l->nreq)
		rest = cons(s[argc--], rest);
	for (int i = 1; i <= argc; i++)
		frame[i] = s[i];
	frame[argc + 1] = rest;
	return frame;
}

// apply calls fn with s[1] .. s[argc].  A closure takes s as its frame.
static value apply(value fn, int argc, value *s)
{
	value v;

	check_stack();
	for (;;) {
		if (is_type(fn, CLOSURE)) {
			struct closure *c = (struct closure *)fn;
			struct lambda *l = c->code;

			if (argc != l->nreq || l->rest)
				s = bind_rest(l, argc, s);
			s[0] = (value)c->env;
			v = eval(l->body, s);
		} else if (is_type(fn, PRIMITIVE)) {
			v = call_primitive(fn, argc, s + 1);
		} else {
			fail(NULL, "not a procedure", fn);
		}
		if (__builtin_expect(v != TAIL, 1))
			return v;
		fn = vm.fn;
		argc = vm.argc;
		s = vm.frame;
	}
}

value call_back(value fn, int argc, value *s)
{
	struct place at = vm.at;
	const struct builtin *callee = vm.callee;
	value v = apply(fn, argc, s);

	vm.at = at;
	vm.callee = callee;
	return v;
}

static value tail_call(value fn, int argc, value *s)
{
	vm.fn = fn;
	vm.argc = argc;
	vm.frame = s;
	return TAIL;
}

// call makes the call of a node, whose arguments are s[1] and up.
static value call(struct node *n, value fn, value *s)
{
	int argc = (int)n->nkids - 1;

	vm.at = n->at;
	if (!n->tail)
		return apply(fn, argc, s);
	return is_type(fn, PRIMITIVE) ? call_primitive(fn, argc, s + 1)
				      : tail_call(fn, argc, s);
}

// The arguments of a primitive need no frame: a few of them fit on the C stack,
// which the collector scans.
enum { NEAR = 5 };

value run_call(struct node *n, value *frame)
{
	value near[NEAR];
	value fn = eval(n->kid[0], frame);
	value *s = n->nkids <= NEAR && is_type(fn, PRIMITIVE)
		       ? near
		       : new_frame(n->nkids);

	for (uint32_t i = 1; i < n->nkids; i++)
		s[i] = eval(n->kid[i], frame);
	return call(n, fn, s);
}

// Most calls have one or two arguments, and most of them call a primitive.
// They take a short path.  begin_primitive returns the primitive, or NULL.
static inline const struct builtin *begin_primitive(struct node *n, value fn)
{
	if (!is_type(fn, PRIMITIVE))
		return NULL;
	vm.at = n->at;
	vm.callee = ((struct primitive *)fn)->b;
	return vm.callee;
}

value run_call1(struct node *n, value *frame)
{
	value fn = eval(n->kid[0], frame);
	value x = eval(n->kid[1], frame);
	const struct builtin *b = begin_primitive(n, fn);

	if (b && b->f1)
		return b->f1(x);
	value *s = new_frame(2);
	s[1] = x;
	return call(n, fn, s);
}

value run_call2(struct node *n, value *frame)
{
	value fn = eval(n->kid[0], frame);
	value x = eval(n->kid[1], frame), y = eval(n->kid[2], frame);
	const struct builtin *b = begin_primitive(n, fn);

	if (b && b->f2)
		return b->f2(x, y);
	value *s = new_frame(3);
	s[1] = x;
	s[2] = y;
	return call(n, fn, s);
}

// (apply f a b '(c d)): a tail call of f.
value prim_apply(int argc, value *a)
{
	int64_t more = need_list(a[argc - 1]);
	int n = argc - 2;

	if (more > INT32_MAX / 2)
		wrong("too many arguments", fixnum(more));
	value *s = new_frame((size_t)n + (size_t)more + 1);
	for (int i = 1; i <= n; i++)
		s[i] = a[i];
	for (value l = a[argc - 1]; l != NIL; l = cdr(l))
		s[++n] = car(l);
	return tail_call(a[0], n, s);
}

value eval_top(value form)
{
	value v = eval(compile_top(form), NULL);

	return v == TAIL ? apply(vm.fn, vm.argc, vm.frame) : v;
}
