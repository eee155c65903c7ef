// shadow_stacks.c - operations of stacks that the actor has registered.
//
// A value stack is host memory whose part in use is known exactly.  The
// references in the other part are still there, but they are not roots.  Some
// have registers.  A fiber is a stack of C: its frames hold no references
// but the values, which are in an array, and the registers, which are variables
// with names.  The objects that own a stack lead to the objects that it holds.
#include <string.h>

#include "test/harness/shadow_actor.h"

enum {
	FIBER_STACK = 256 << 10,
	WIPED = 4096, // more than the frames of a switch
};

static bool is_fiber(const struct actor_stack *s)
{
	return s->fiber.lo != NULL;
}

static bool is_owned(const struct actor_stack *s)
{
	return s->flags & RT_STACK_OWNED;
}

static bool is_up(const struct actor_stack *s)
{
	return s->flags & RT_STACK_UP;
}

// ---- values ----

static unsigned nvalues(const struct actor_stack *s)
{
	return SHADOW_VALUES + (s->registers ? SHADOW_REGISTERS : 0);
}

static bool is_used(const struct actor_stack *s, unsigned k)
{
	return k >= SHADOW_VALUES || (k >= s->copy.begin && k < s->copy.end);
}

static bool is_register(unsigned k)
{
	return k >= SHADOW_VALUES;
}

// set_value_as changes a value, or a register, which is encoded as a value of a
// layout.  A word of a stack that grows down counts whatever its tag is.
static void set_value_as(struct actor_stack *s, unsigned k,
			 struct shadow_word w, const struct shadow_layout *as)
{
	unsigned step = shadow_step(s->layout), first = shadow_first(s->layout);
	uintptr_t value = shadow_value(w);

	s->copy.held[k] = w;
	s->as[k] = as;
	if (w.to)
		value = shadow_encode(as, value);
	if (is_register(k)) {
		s->registers[k - SHADOW_VALUES] = value;
		return;
	}
	s->word[k * step + first] = value;
	if (step == 2)
		s->word[k * step + !first] =
		    shadow_tag(s->layout, is_up(s) ? w.to != NULL : k % 2 == 0);
}

static void set_value(struct actor_stack *s, unsigned k, struct shadow_word w)
{
	set_value_as(s, k, w,
		     is_register(k) ? &shadow_layouts[SHADOW_PLAIN_WORDS]
				    : s->layout);
}

// encoding chooses how a reference is encoded in a heap with a format for
// stacks.  A stack that grows down, and its registers, are read in three ways:
// plainly, in the format of the stack, and in the format of the heap.
static const struct shadow_layout *encoding(const struct actor_stack *s,
					    unsigned k, unsigned how)
{
	const struct shadow_layout *words = &shadow_layouts[SHADOW_PLAIN_WORDS];

	if (!run.on_stacks || is_up(s) || (is_fiber(s) && is_register(k)))
		return is_register(k) ? words : s->layout;
	if (how % 3 == 1)
		return run.on_stacks;
	return how % 3 == 2 ? words : s->layout;
}

// value_held returns what the memory of value k should hold.
static uintptr_t value_held(const struct actor_stack *s, unsigned k)
{
	uintptr_t value = shadow_value(s->copy.held[k]);

	return s->copy.held[k].to ? shadow_encode(s->as[k], value) : value;
}

static uintptr_t value_at(const struct actor_stack *s, unsigned k)
{
	unsigned step = shadow_step(s->layout), first = shadow_first(s->layout);

	return k >= SHADOW_VALUES ? s->registers[k - SHADOW_VALUES]
				  : s->word[k * step + first];
}

static void clear_values(struct actor_stack *s)
{
	for (unsigned k = 0; k < nvalues(s); k++)
		set_value(s, k, SHADOW_NOTHING);
}

// set_top changes which values are in use.  Values that come into use are
// cleared, because the objects that they refer to may be dead.
static void set_top(struct actor_stack *s, unsigned begin, unsigned end)
{
	for (unsigned k = begin; k < end; k++)
		if (!is_used(s, k))
			set_value(s, k, SHADOW_NOTHING);
	s->copy.begin = begin;
	s->copy.end = end;
}

static uintptr_t *limit(const struct actor_stack *s)
{
	return s->word + SHADOW_VALUES * shadow_step(s->layout);
}

static void set_pointer(struct actor_stack *s, bool outside)
{
	unsigned top = is_up(s) ? s->copy.end : s->copy.begin;

	s->sp = outside ? (void *)(limit(s) + 1)
			: (void *)(s->word + top * shadow_step(s->layout));
}

// ---- fibers ----

static RT_NOINLINE void wipe(void)
{
	volatile char bytes[WIPED];

	for (unsigned i = 0; i < sizeof bytes; i++)
		bytes[i] = 0;
}

// hide empties a slot, so that only the stack that the caller runs on refers to
// its object.  It does nothing in a program where stacks are no roots.
static RT_NOINLINE uintptr_t hide(struct actor *a, unsigned i)
{
	const struct shadow_node *o = a->root[i].to;
	uintptr_t inside;

	if (run.program->exact || !shadow_take_base(a, i))
		return 0;
	inside = o->at + o->n / 2;
	return run.on_stacks ? shadow_encode(run.on_stacks, inside) : inside;
}

static void unhide(struct actor *a, unsigned i, uintptr_t held)
{
	if (run.program->exact)
		return;
	if (held != 0 && run.on_stacks) {
		shadow_decode(run.on_stacks, held,
			      shadow_tag(run.on_stacks, true), &held);
		// A format may drop the low bits of an address.  A guarded
		// object of few bytes may begin at any address.
		held |= a->root[i].to->at & 7;
	}
	shadow_put_back(a, i, (const void *)held);
}

static bool forks(const struct shadow_op *op)
{
	return op->b / 2 % 32 == 0;
}

// on_fiber does an operation.  A child of a fork compares all slots.
static RT_NOINLINE void on_fiber(struct actor *a, const struct shadow_op *op)
{
	unsigned i = (op->a + 2) % run.nslots;
	uintptr_t held;

	if (forks(op)) {
		shadow_do_fork(a, op);
		return;
	}
	held = hide(a, i);
	wipe(); // hide has left the address below
	if (op->b / 2 % 2)
		shadow_do_alloc(a, op);
	else if (op->b / 4 % 2)
		shadow_do_frame(a, op);
	else
		shadow_gc();
	unhide(a, i, held);
}

// The values of a fiber are in its own frame.
static RT_NO_SANITIZE void run_fiber(struct fiber *f)
{
	uintptr_t word[2 * SHADOW_VALUES] = {0}, named[SHADOW_REGISTERS] = {0};
	struct actor_stack *s = f->arg;
	RT_FRAME(&named[0], &named[1]);

	s->word = word;
	s->registers = named;
	for (;;) {
		fiber_yield(f);
		on_fiber(s->actor, s->op);
		wipe();
	}
}

// switch_to runs a fiber until it yields.  Meanwhile *own has the frames of the
// actor's own stack.
static void switch_to(struct actor_stack *s, rt_frame **own)
{
	*own = rt_frames_save();
	rt_frames_restore(s->frames);
	fiber_resume(&s->fiber);
	s->frames = rt_frames_save();
	rt_frames_restore(*own);
}

// own_stack registers the actor's own stack, bounded while a fiber runs.
static rt_stack *own_stack(struct actor_stack *s, rt_frame **frames)
{
	rt_stack_desc d;
	rt_stack *own = NULL;

	rt_stack_desc_init(&d);
	d.sp = &s->fiber.resumer;
	d.frames = frames;
	d.flags = RT_STACK_THREAD;
	SHADOW_TRUE(rt_stack_register(&d, &own) ==
		    (run.program->exact ? RT_ENOENT : RT_OK));
	return own;
}

// While the fiber runs, only the actor's own stack refers to the object of one
// slot.  An exact thread has no roots on the stack that it runs on, even if the
// stack is registered, except variables with names.  So the fiber's values are
// cleared.
SHADOW_OP(resume)
{
	struct actor_stack *s = &a->stacks[op->c % ACTOR_STACKS];
	unsigned i = (op->a + 4) % run.nslots;
	rt_frame *frames = NULL;
	rt_stack *own = NULL;
	uintptr_t held = 0;

	if (!is_fiber(s))
		return;
	for (unsigned k = 0; run.program->exact && k < SHADOW_VALUES; k++)
		set_value(s, k, SHADOW_NOTHING);
	if (!forks(op))
		held = hide(a, i);
	wipe();
	if (op->b % 2)
		own = own_stack(s, &frames);
	if (own)
		SHADOW_TRUE(rt_thread_set_stack(s->fiber.lo, s->fiber.hi) ==
			    RT_ESTATE);
	s->op = op;
	switch_to(s, &frames);
	if (own)
		SHADOW_OK(rt_stack_unregister(own));
	if (!forks(op))
		unhide(a, i, held);
}

// ---- beginning and ending ----

enum shape { UP, UP_EXACT, DOWN, DOWN_REGISTERS, FIBER, SHAPES };

static void begin_fiber(struct actor_stack *s)
{
	rt_frame *own;

	fiber_make(&s->fiber, FIBER_STACK, run_fiber, s);
	switch_to(s, &own);
	s->copy.begin = 0;
}

static void begin_values(struct actor_stack *s, bool any_sp)
{
	s->word = s->memory[0];
	s->copy.begin = is_up(s) || any_sp ? 0 : SHADOW_VALUES;
	if (is_up(s) && !any_sp)
		s->copy.end = 0;
	set_pointer(s, false);
}

// tell_stack is a root callback: it sets the stack of an actor's thread.  The
// child of a fork has the callbacks of all actors, but not their threads.
static void tell_stack(rt_tracer *t, void *arg)
{
	const struct actor *a = arg;

	(void)t;
	if (!run.survivor || run.survivor == a)
		SHADOW_OK(rt_thread_set_stack_of(a->self, a->lo, a->hi));
}

// set_stack makes the actor set a stack as its own.
static void set_stack(const struct actor *a, void *lo, void *hi)
{
	void *is_lo, *is_hi;

	SHADOW_OK(rt_thread_set_stack(lo, hi));
	SHADOW_OK(rt_thread_stack(a->self, &is_lo, &is_hi));
	SHADOW_TRUE(is_lo == lo && is_hi == hi);
}

// While the fiber runs, nothing of the actor's own stack is scanned.  The
// bounds that the callback sets change together with the stack: no stop comes
// in between.
SHADOW_OP(strange)
{
	struct actor_stack *s = &a->strange;
	bool tells = op->c % 2;
	rt_frame *frames;
	void *lo, *hi;

	a->idle = run.program->exact;
	if (a->idle)
		return;
	memset(s, 0, sizeof *s);
	s->actor = a;
	begin_fiber(s);
	s->op = op;
	SHADOW_OK(rt_thread_stack(a->self, &lo, &hi));
	a->lo = lo;
	a->hi = hi;
	if (tells)
		SHADOW_OK(rt_roots_add_fn(tell_stack, a, "stack"));
	else
		set_stack(a, s->fiber.lo, s->fiber.hi);
	a->lo = s->fiber.lo;
	a->hi = s->fiber.hi;
	switch_to(s, &frames);
	a->lo = lo;
	a->hi = hi;
	set_stack(a, lo, hi);
	if (tells)
		SHADOW_OK(rt_roots_remove_fn(tell_stack, a));
	fiber_free(&s->fiber);
}

static rt_stack_desc describe(struct actor_stack *s)
{
	rt_stack_desc d;

	rt_stack_desc_init(&d);
	if (is_fiber(s)) {
		d = fiber_desc(&s->fiber, s->flags);
		d.frames = &s->frames;
	} else {
		d.lo = s->word;
		d.hi = limit(s);
		d.sp = s->fixed ? NULL : &s->sp;
		d.regs_lo = s->registers;
		d.regs_hi =
		    s->registers ? s->registers + SHADOW_REGISTERS : NULL;
	}
	d.flags = s->flags;
	d.format = s->layout->format;
	return d;
}

// A format is one of the layouts of words, the first of which is plain.  Frames
// of C have small numbers, which would be references in the narrow format.
static void begin_stack(struct actor *a, struct actor_stack *s,
			const struct shadow_op *op)
{
	static const unsigned flags[SHAPES] = {
	    [UP] = RT_STACK_UP, [UP_EXACT] = RT_STACK_UP | RT_STACK_EXACT};
	static const unsigned formats[SHAPES] = {7, 1, 7, 7, 4};
	enum shape shape = (enum shape)(op->b % SHAPES);
	rt_stack_desc d;

	memset(s, 0, sizeof *s);
	s->actor = a;
	s->flags = flags[shape] | (op->b / SHAPES % 2 ? RT_STACK_OWNED : 0);
	s->layout =
	    &shadow_layouts[SHADOW_PLAIN_WORDS + op->c % formats[shape]];
	if (shape == DOWN_REGISTERS)
		s->registers = s->saved;
	s->copy.place = is_up(s) ? SHADOW_ANY : SHADOW_STACK;
	s->fixed = shape != FIBER && op->b / SHAPES / 2 % 4 == 0;
	s->copy.end = SHADOW_VALUES;
	if (shape == FIBER)
		begin_fiber(s);
	else
		begin_values(s, s->fixed);
	clear_values(s);
	d = describe(s);
	SHADOW_TRUE(rt_stack_register(&d, &s->copy.registered) == RT_OK);
}

static void end_stack(struct actor_stack *s)
{
	rt_stack *registered = s->copy.registered;

	s->copy.registered = NULL;
	SHADOW_OK(rt_stack_unregister(registered));
	if (run.alone) // another might have the registration now
		SHADOW_TRUE(rt_stack_unregister(registered) == RT_EINVAL);
	if (is_fiber(s))
		fiber_free(&s->fiber);
}

SHADOW_OP(register)
{
	struct actor_stack *s = &a->stacks[op->a % ACTOR_STACKS];

	if (s->copy.registered)
		end_stack(s);
	else
		begin_stack(a, s, op);
}

// ---- what is in a stack ----

SHADOW_OP(push)
{
	struct actor_stack *s = &a->stacks[op->a % ACTOR_STACKS];
	struct shadow_word w = a->root[op->c % run.nslots];
	unsigned k;

	if (!s->copy.registered || !w.to)
		return;
	k = op->b % nvalues(s);
	if (w.to->based && !is_up(s))
		w.value = (size_t)op->b * op->c % w.to->n;
	if (s->flags & RT_STACK_EXACT || (is_fiber(s) && k >= SHADOW_VALUES))
		w.value = 0;
	set_value_as(s, k, shadow_share(w), encoding(s, k, op->b / nvalues(s)));
}

SHADOW_OP(top)
{
	struct actor_stack *s = &a->stacks[op->a % ACTOR_STACKS];
	unsigned top = op->b % (SHADOW_VALUES + 1);
	bool outside = op->c % 8 == 0;

	if (!s->copy.registered || is_fiber(s) || s->fixed)
		return;
	if (outside)
		set_top(s, 0, SHADOW_VALUES);
	else if (is_up(s))
		set_top(s, 0, top);
	else
		set_top(s, top, SHADOW_VALUES);
	set_pointer(s, outside);
}

SHADOW_OP(move)
{
	struct actor_stack *s = &a->stacks[op->a % ACTOR_STACKS];
	uintptr_t *to;
	bool outside;

	if (!s->copy.registered || is_fiber(s))
		return;
	outside = s->sp == limit(s) + 1;
	to = s->memory[s->word == s->memory[0]];
	memcpy(to, s->word, sizeof s->memory[0]);
	SHADOW_TRUE(rt_stack_move(s->copy.registered, to, to) == RT_EINVAL);
	SHADOW_OK(
	    rt_stack_move(s->copy.registered, to, to + (limit(s) - s->word)));
	memset(s->word, 0x5a, sizeof s->memory[0]);
	s->word = to;
	set_pointer(s, outside);
}

// The objects that an owned stack holds are certainly alive if an owner is
// alive.
SHADOW_OP(pop)
{
	const struct shadow_node *o = a->root[op->c % run.nslots].to;
	struct actor_stack *s = &a->stacks[op->c % ACTOR_STACKS];
	struct shadow_word w;
	unsigned k;

	if (o && o->owner == a->id && o->stack)
		s = (struct actor_stack *)o->stack;
	else if (is_owned(s))
		return;
	if (!s->copy.registered)
		return;
	k = op->b % nvalues(s);
	if (!is_used(s, k))
		return;
	if (value_at(s, k) != value_held(s, k))
		shadow_fail("value %u of a stack is %#lx", k,
			    (long)value_at(s, k));
	w = s->copy.held[k];
	if (w.to && w.to->based)
		w.value %= SHADOW_BASE;
	shadow_set_root(a, op->a % run.nslots, w);
}

// ---- owners ----

// Until now the stack may have belonged to an object that is dead.  Then it may
// hold objects that died with that one, so it is cleared.
static void own(struct shadow_node *o, struct actor_stack *s)
{
	if (!s->copy.registered)
		return;
	clear_values(s);
	shadow_own(o, &s->copy);
}

SHADOW_OP(owner)
{
	const struct actor_kind k = {SHADOW_OWNERS_KIND,
				     &shadow_layouts[SHADOW_OWNERS], 0};
	struct shadow_op of = *op;
	struct shadow_node *o;

	of.n = (unsigned)base_max(op->n, 16);
	o = shadow_make_of(a, &k, &of);

	if (o)
		own(o, &a->stacks[op->c % ACTOR_STACKS]);
}

SHADOW_OP(own)
{
	struct shadow_node *o = a->root[op->a % run.nslots].to;

	if (o && o->owner == a->id && o->kind == SHADOW_OWNERS_KIND)
		own(o, &a->stacks[op->c % ACTOR_STACKS]);
}

// ---- for collections ----

void shadow_reach_stacks(const struct actor *a)
{
	for (unsigned i = 0; i < ACTOR_STACKS; i++) {
		const struct actor_stack *s = &a->stacks[i];

		for (unsigned k = 0; k < nvalues(s); k++)
			if (s->copy.registered && !is_owned(s) && is_used(s, k))
				shadow_reach(s->copy.held[k], s->copy.place);
	}
}

void shadow_clear_picked_stacks(struct actor *a)
{
	for (unsigned i = 0; i < ACTOR_STACKS; i++) {
		struct actor_stack *s = &a->stacks[i];

		for (unsigned k = 0; k < nvalues(s); k++)
			if (s->copy.held[k].to && s->copy.held[k].to->picked)
				set_value(s, k, SHADOW_NOTHING);
	}
}

void shadow_forget_stacks(struct actor *a)
{
	for (unsigned i = 0; i < ACTOR_STACKS; i++) {
		struct actor_stack *s = &a->stacks[i];

		for (unsigned k = 0; k < nvalues(s); k++)
			if (!is_used(s, k) || !s->copy.registered ||
			    (is_owned(s) && !s->copy.reached))
				s->copy.held[k] = SHADOW_NOTHING;
		s->copy.reached = false;
	}
}
