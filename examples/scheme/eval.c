// eval.c - running compiled code.
//
// A node returns its value.  In tail position a call of a closure returns
// TAIL instead, with the call in vm, and apply goes on with it: tail calls
// use no C stack.  The frame of a procedure whose variables no closure keeps
// stands on the C stack, which the collector scans; it costs no allocation.
#include "node.h"

#include <string.h>

// Every second node is a variable of the frame: no call for those.
static inline value eval(struct node *n, value *frame)
{
	if (n->run == run_local)
		return frame[n->slot];
	return n->run(n, frame);
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

value run_local1(struct node *n, value *frame)
{
	return ((value *)frame[0])[n->slot];
}

static value *frame_at(struct node *n, value *frame)
{
	for (uint32_t d = n->depth; d; d--)
		frame = (value *)frame[0];
	return frame;
}

value run_outer(struct node *n, value *frame)
{
	return frame_at(n, frame)[n->slot];
}

_Noreturn static void unbound(struct node *n)
{
	vm.where = &n->at;
	fail(NULL, "undefined variable", n->v);
}

value run_checked(struct node *n, value *frame)
{
	value v = frame_at(n, frame)[n->slot];

	if (__builtin_expect(v == UNASSIGNED, 0))
		unbound(n);
	return v;
}

value run_global(struct node *n, value *frame)
{
	value v = symbol_of(n->v)->global;

	(void)frame;
	if (__builtin_expect(v == UNBOUND, 0))
		unbound(n);
	return v;
}

// A frame on the C stack is no heap object; its stores are plain.
static inline void set_slot(struct node *of, value *frame, uint32_t slot,
			    value v)
{
	if (((struct lambda *)of->v)->on_heap)
		RT_STORE(frame, &frame[slot], v);
	else
		frame[slot] = v;
}

value run_set_local(struct node *n, value *frame)
{
	set_slot(n, frame, n->slot, eval(n->kid[0], frame));
	return UNSPECIFIED;
}

value run_set_outer(struct node *n, value *frame)
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
		unbound(n);
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

	for (uint32_t i = 0; i < last; i++)
		set_slot(n, frame, n->slot + i, eval(n->kid[i], frame));
	return eval(n->kid[last], frame);
}

value run_unassign(struct node *n, value *frame)
{
	for (uint32_t i = 0; i < n->depth; i++)
		set_slot(n, frame, n->slot + i, UNASSIGNED);
	return UNSPECIFIED;
}

value run_loop(struct node *n, value *frame)
{
	value v = run_let(n, frame);

	while (v == JUMP && vm.loop == n)
		v = eval(n->kid[n->nkids - 1], frame);
	return v;
}

value run_jump(struct node *n, value *frame)
{
	struct node *loop = (struct node *)n->v;
	value fresh[FRAME_MAX];

	for (uint32_t i = 0; i < n->nkids; i++)
		fresh[i] = eval(n->kid[i], frame);
	for (uint32_t i = 0; i < n->nkids; i++)
		set_slot(loop, frame, loop->slot + i, fresh[i]);
	vm.loop = loop;
	return JUMP;
}

// ---- calls

static const char *text_of(value name)
{
	return name == FALSE ? NULL : string_of(symbol_of(name)->name)->text;
}

_Noreturn static void wrong_count(const char *who, int argc)
{
	fail(who, "wrong number of arguments", fixnum(argc));
}

static value call_primitive(value fn, int argc, value *argv)
{
	const struct primitive *p = (struct primitive *)fn;
	const struct builtin *b = p->b;

	if (argc < b->min || (b->max != ANY && argc > b->max))
		wrong_count(b->name, argc);
	vm.callee = p;
	switch (p->head.len) {
	case 0:
		return b->f0();
	case 1:
		return b->f1(argv[0]);
	case 2:
		return b->f2(argv[0], argv[1]);
	case 3:
		return b->f3(argv[0], argv[1], argv[2]);
	default:
		return b->fn(argc, argv);
	}
}

static value *alloc_frame(uint32_t nslots)
{
	rt_thread *t = vm.self;

	if (nslots <= 2)
		return must(rt_alloc_in(t, 16));
	if (nslots <= 4)
		return must(rt_alloc_in(t, 32));
	if (nslots <= 6)
		return must(rt_alloc_in(t, 48));
	return must(rt_alloc_in(t, nslots * sizeof(value)));
}

// gather_rest puts the arguments beyond the required ones into a list.
static void gather_rest(struct lambda *l, int argc, value *s)
{
	value rest = NIL;
	int nreq = (int)l->nreq;

	if (argc < nreq || (argc > nreq && !l->rest))
		wrong_count(text_of(l->name), argc);
	for (int i = argc; i > nreq; i--)
		rest = cons(s[i], rest);
	if (l->rest)
		s[nreq + 1] = rest;
}

// enter returns the frame of a call with the arguments in s[1] and up.
static inline value *enter(struct closure *c, int argc, value *s)
{
	struct lambda *l = c->code;

	if ((uint32_t)argc != l->nreq || l->rest)
		gather_rest(l, argc, s);
	if (l->on_heap) {
		value *frame = alloc_frame(l->nslots);

		for (uint32_t i = 1; i <= l->nreq + l->rest; i++)
			frame[i] = s[i];
		s = frame;
	}
	s[0] = (value)c->env;
	return s;
}

// tail_frame returns where the arguments of the pending tail call are; few
// of them move into s, because vm.room serves the next tail call.
static value *tail_frame(value *s)
{
	if (vm.frame != vm.room)
		return vm.frame;
	return memcpy(s, vm.room, (size_t)(vm.argc + 1) * sizeof *s);
}

value apply(value fn, int argc, value *s)
{
	check_stack();
	for (;;) {
		value v;

		if (is_type(fn, CLOSURE)) {
			struct closure *c = (struct closure *)fn;
			value *frame = enter(c, argc, s);

			v = eval(c->code->body, frame);
		} else if (is_type(fn, PRIMITIVE)) {
			v = call_primitive(fn, argc, s + 1);
		} else {
			fail(NULL, "not a procedure", fn);
		}
		if (__builtin_expect(v != TAIL, 1))
			return v;
		fn = vm.fn;
		argc = vm.argc;
		s = tail_frame(s);
	}
}

value call_back(value fn, int argc, value *s)
{
	const struct place *where = vm.where;
	const struct primitive *callee = vm.callee;
	value v = apply(fn, argc, s);

	vm.where = where;
	vm.callee = callee;
	return v;
}

// roomy returns where a call with argc arguments can be put: near, or a heap
// object when a rest parameter might not fit.
static inline value *roomy(value *near, int argc)
{
	if (__builtin_expect(argc + 2 <= FRAME_MAX, 1))
		return near;
	return must(rt_alloc(((size_t)argc + 2) * sizeof *near));
}

// The procedure itself is s[0] until the call.
static inline __attribute__((always_inline)) value
call(struct node *n, value *frame, const int argc)
{
	value near[FRAME_MAX];
	value *s = roomy(near, argc);

	for (int i = 0; i <= argc; i++)
		s[i] = eval(n->kid[i], frame);
	vm.where = &n->at;
	return apply(s[0], argc, s);
}

value run_call1(struct node *n, value *frame)
{
	return call(n, frame, 1);
}

value run_call2(struct node *n, value *frame)
{
	return call(n, frame, 2);
}

value run_call3(struct node *n, value *frame)
{
	return call(n, frame, 3);
}

value run_call(struct node *n, value *frame)
{
	return call(n, frame, (int)n->nkids - 1);
}

static value tail_call(value fn, int argc, value *s, value *near)
{
	vm.fn = fn;
	vm.argc = argc;
	vm.frame = s;
	if (s == near) {
		memcpy(vm.room, s, (size_t)(argc + 1) * sizeof *s);
		vm.frame = vm.room;
	}
	return TAIL;
}

value run_tail_call(struct node *n, value *frame)
{
	value near[FRAME_MAX];
	int argc = (int)n->nkids - 1;
	value *s = roomy(near, argc);

	for (int i = 0; i <= argc; i++)
		s[i] = eval(n->kid[i], frame);
	vm.where = &n->at;
	if (is_type(s[0], PRIMITIVE))
		return call_primitive(s[0], argc, s + 1);
	return tail_call(s[0], argc, s, near);
}

// (apply f a b '(c d)): a tail call of f.
static value prim_apply(int argc, value *a)
{
	value near[FRAME_MAX];
	int64_t more = list_length(a[argc - 1]);
	int n = argc - 2;

	if (more < 0 || more > INT32_MAX / 2)
		wrong("not a list", a[argc - 1]);
	value *s = roomy(near, n + (int)more);
	for (int i = 1; i <= n; i++)
		s[i] = a[i];
	for (value l = a[argc - 1]; l != NIL; l = cdr(l))
		s[++n] = car(l);
	return tail_call(a[0], n, s, near);
}

static value prim_make_promise(value thunk)
{
	struct promise *p = must(rt_alloc_in(vm.self, sizeof *p));

	p->head.type = PROMISE;
	p->v = thunk;
	return (value)p;
}

static value prim_force(value v)
{
	struct promise *p = (struct promise *)v;
	value near[FRAME_MAX];

	if (!is_type(v, PROMISE))
		return v;
	if (!p->head.len) {
		value got = call_back(p->v, 0, near);

		if (!p->head.len) // making it may have forced it
			RT_STORE(p, &p->v, got);
		p->head.len = 1;
	}
	return p->v;
}

static value prim_eval(value form)
{
	return eval_top(form);
}

static const struct builtin control[] = {
    {"apply", 2, ANY, {.fn = prim_apply}},
    {"force", 1, 1, {.f1 = prim_force}},
    {"make-promise-of", 1, 1, {.f1 = prim_make_promise}},
    {"eval", 1, 1, {.f1 = prim_eval}},
};

value eval_top(value form)
{
	struct closure c = {.code = compile_top(form)};
	value near[FRAME_MAX];
	value v = eval(c.code->body, enter(&c, 0, near));

	return v == TAIL ? apply(vm.fn, vm.argc, tail_frame(near)) : v;
}

// ---- primitives run in place

static inline bool is_builtin(struct node *n)
{
	struct symbol *s = symbol_of(n->v);

	return __builtin_expect(s->global == s->builtin, 1);
}

// call_again calls what the symbol stands for now: the primitive with
// arguments that need its full treatment, or the program's own definition.
static __attribute__((noinline)) value call_again(struct node *n, value a,
						  value b, value c)
{
	value s[FRAME_MAX] = {0, a, b, c};

	vm.where = &n->at;
	return apply(symbol_of(n->v)->global, (int)n->nkids, s);
}

static inline value first(struct node *n, value *frame)
{
	return eval(n->kid[0], frame);
}

static inline value second(struct node *n, value *frame)
{
	return eval(n->kid[1], frame);
}

static value op_car(struct node *n, value *frame)
{
	value a = first(n, frame);

	return is_pair(a) && is_builtin(n) ? car(a) : call_again(n, a, 0, 0);
}

static value op_cdr(struct node *n, value *frame)
{
	value a = first(n, frame);

	return is_pair(a) && is_builtin(n) ? cdr(a) : call_again(n, a, 0, 0);
}

static value op_is_null(struct node *n, value *frame)
{
	value a = first(n, frame);

	return is_builtin(n) ? boolean(a == NIL) : call_again(n, a, 0, 0);
}

static value op_is_pair(struct node *n, value *frame)
{
	value a = first(n, frame);

	return is_builtin(n) ? boolean(is_pair(a)) : call_again(n, a, 0, 0);
}

static value op_not(struct node *n, value *frame)
{
	value a = first(n, frame);

	return is_builtin(n) ? boolean(a == FALSE) : call_again(n, a, 0, 0);
}

static value op_is_zero(struct node *n, value *frame)
{
	value a = first(n, frame);

	return is_fixnum(a) && is_builtin(n) ? boolean(a == fixnum(0))
					     : call_again(n, a, 0, 0);
}

static value op_cons(struct node *n, value *frame)
{
	value a = first(n, frame), b = second(n, frame);

	return is_builtin(n) ? cons(a, b) : call_again(n, a, b, 0);
}

static value op_is_eq(struct node *n, value *frame)
{
	value a = first(n, frame), b = second(n, frame);

	return is_builtin(n) ? boolean(a == b) : call_again(n, a, b, 0);
}

static value op_add(struct node *n, value *frame)
{
	value a = first(n, frame), b = second(n, frame), r;

	return both_fixnums(a, b) && is_builtin(n) && fix_add(a, b, &r)
		   ? r
		   : call_again(n, a, b, 0);
}

static value op_sub(struct node *n, value *frame)
{
	value a = first(n, frame), b = second(n, frame), r;

	return both_fixnums(a, b) && is_builtin(n) && fix_sub(a, b, &r)
		   ? r
		   : call_again(n, a, b, 0);
}

static value op_mul(struct node *n, value *frame)
{
	value a = first(n, frame), b = second(n, frame), r;

	return both_fixnums(a, b) && is_builtin(n) && fix_mul(a, b, &r)
		   ? r
		   : call_again(n, a, b, 0);
}

// Tagged fixnums compare as their numbers do.
static value op_equal(struct node *n, value *frame)
{
	value a = first(n, frame), b = second(n, frame);

	return both_fixnums(a, b) && is_builtin(n) ? boolean(a == b)
						   : call_again(n, a, b, 0);
}

static value op_less(struct node *n, value *frame)
{
	value a = first(n, frame), b = second(n, frame);

	return both_fixnums(a, b) && is_builtin(n)
		   ? boolean((int64_t)a < (int64_t)b)
		   : call_again(n, a, b, 0);
}

static value op_greater(struct node *n, value *frame)
{
	value a = first(n, frame), b = second(n, frame);

	return both_fixnums(a, b) && is_builtin(n)
		   ? boolean((int64_t)a > (int64_t)b)
		   : call_again(n, a, b, 0);
}

static inline bool is_index(value v, value i)
{
	return is_type(v, VECTOR) && is_fixnum(i) &&
	       (uint64_t)fixnum_of(i) < vector_of(v)->head.len;
}

static value op_vector_ref(struct node *n, value *frame)
{
	value v = first(n, frame), i = second(n, frame);

	return is_index(v, i) && is_builtin(n)
		   ? vector_of(v)->item[fixnum_of(i)]
		   : call_again(n, v, i, 0);
}

static value op_vector_set(struct node *n, value *frame)
{
	value v = first(n, frame), i = second(n, frame);
	value x = eval(n->kid[2], frame);

	if (!is_index(v, i) || !is_builtin(n))
		return call_again(n, v, i, x);
	RT_STORE(vector_of(v), &vector_of(v)->item[fixnum_of(i)], x);
	return UNSPECIFIED;
}

run_fn *inline_op(value symbol, int argc)
{
	static const struct {
		const char *name;
		int argc;
		run_fn *run;
	} ops[] = {
	    {"car", 1, op_car},
	    {"cdr", 1, op_cdr},
	    {"null?", 1, op_is_null},
	    {"pair?", 1, op_is_pair},
	    {"not", 1, op_not},
	    {"zero?", 1, op_is_zero},
	    {"cons", 2, op_cons},
	    {"eq?", 2, op_is_eq},
	    {"+", 2, op_add},
	    {"-", 2, op_sub},
	    {"*", 2, op_mul},
	    {"=", 2, op_equal},
	    {"<", 2, op_less},
	    {">", 2, op_greater},
	    {"vector-ref", 2, op_vector_ref},
	    {"vector-set!", 3, op_vector_set},
	};
	struct symbol *s = symbol_of(symbol);

	if (s->builtin == 0 || s->global != s->builtin)
		return NULL;
	const char *name = ((struct primitive *)s->builtin)->b->name;
	for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
		if (ops[i].argc == argc && !strcmp(ops[i].name, name))
			return ops[i].run;
	return NULL;
}

void define_control(void)
{
	define_builtins(control, sizeof control / sizeof *control);
}
