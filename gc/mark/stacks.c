// stacks.c - the table of stacks, and the look for those that run.
#include "gc/mark/stacks.h"

#include <string.h>

#include "runtime/os/schedpoint.h"
#include "runtime/world/threadstack.h"
#include "runtime/world/stw.h"

enum {
	ROOM_MIN = 64,	   // stacks of the first table
	NONE = UINT32_MAX, // index of a record that is free
	LOOK_AT = 256,	   // threads of one walk through the table
};

struct stacks stacks;

// ---- the table ----

static size_t table_bytes(size_t room)
{
	return room * sizeof(struct rt_stack *);
}

// make_room makes room for one more.  Returns false if there is no memory.
static bool make_room(void)
{
	size_t room = stacks.room == 0 ? ROOM_MIN : 2 * stacks.room;
	struct rt_stack **at;

	RT_ASSERT(mutex_held(&roots.lock));
	if (stacks.n < stacks.room)
		return true;
	if (room > NONE)
		return false;
	at = roots_move_table(stacks.at, table_bytes(stacks.room),
			      table_bytes(room), "stacks");
	if (!at)
		return false;
	stacks.at = at;
	stacks.room = room;
	return true;
}

static void make_pools(void)
{
	if (stacks.records.size != 0)
		return;
	fixalloc_init(&stacks.records, sizeof(struct rt_stack), 8, false,
		      &gauges.other_sys);
	fixalloc_init(&stacks.labels, sizeof(struct stacks_label), 8, true,
		      &gauges.other_sys);
}

// make_record returns a record, with a label if d needs one.  Returns NULL if
// there is no memory.
static struct rt_stack *make_record(const rt_stack_desc *d)
{
	struct stacks_label *label = NULL;
	struct rt_stack *s;

	make_pools();
	s = fixalloc_alloc(&stacks.records);
	if (s && (d->format || d->name)) {
		label = fixalloc_alloc(&stacks.labels);
		if (!label) {
			fixalloc_free(&stacks.records, s);
			return NULL;
		}
	}
	if (s)
		*s = (struct rt_stack){.label = label};
	return s;
}

static void free_record(struct rt_stack *s)
{
	s->index = NONE;
	if (s->label)
		fixalloc_free(&stacks.labels, s->label);
	fixalloc_free(&stacks.records, s);
}

static void set_label(struct stacks_label *l, const rt_stack_desc *d)
{
	if (d->name)
		strncpy(l->name, d->name, ROOTS_NAME - 1);
	if (d->format && d->flags & RT_STACK_UP)
		l->format = *d->format;
	else
		roots_format_on_stack(d->format, &l->format);
}

static const char *check_stack(const struct rt_stack *s, size_t i)
{
	if (s->index != i)
		return "stack is not where its index says";
	if (s->lo > s->hi)
		return "stack ends before it begins";
	if (s->runs > stacks.looks)
		return "stack runs in a look to come";
	if (s->label && s->label->name[ROOTS_NAME - 1] != 0)
		return "name of a stack has no end";
	if (s->label && s->label->format.stride != 0 &&
	    !layout_format_ok(&s->label->format))
		return "format of a stack is not in order";
	if (!(s->flags & RT_STACK_THREAD) != !s->own)
		return "own stack has no thread";
	if (s->own && s->own->own != s)
		return "thread does not lead to its own stack";
	return NULL;
}

// enter puts a record into the table, which must have room.
static void enter(struct rt_stack *s)
{
	RT_ASSERT(mutex_held(&roots.lock));
	s->index = (uint32_t)stacks.n;
	stacks.at[stacks.n++] = s;
	stacks.ndown += !(s->flags & RT_STACK_UP);
	if (s->own)
		s->own->own = s;
	RT_CHECK(check_stack(s, s->index));
}

static void leave(struct rt_stack *s)
{
	struct rt_stack *last;

	RT_ASSERT(mutex_held(&roots.lock));
	RT_CHECK(check_stack(s, s->index));
	last = stacks.at[--stacks.n];
	stacks.at[s->index] = last;
	last->index = s->index;
	stacks.ndown -= !(s->flags & RT_STACK_UP);
	if (s->own)
		s->own->own = NULL;
	free_record(s);
}

// check_own returns RT_OK if p's own stack can be registered, otherwise the
// error.
static int check_own(const struct rt_proc *p)
{
	if (p->flags & RT_THREAD_EXACT || p->context.hi == 0)
		return RT_ENOENT;
	return p->context.own ? RT_EEXIST : RT_OK;
}

// fill writes a new record.
static void fill(struct rt_stack *s, const rt_stack_desc *d,
		 struct context *own)
{
	s->flags = d->flags;
	s->lo = own ? own->lo : (uintptr_t)d->lo;
	s->hi = own ? own->hi : (uintptr_t)d->hi;
	s->sp = d->sp;
	s->regs_lo = (uintptr_t)d->regs_lo;
	s->regs_hi = (uintptr_t)d->regs_hi;
	s->frames = d->frames;
	s->own = own;
	if (s->label)
		set_label(s->label, d);
}

// add is stacks_add under the lock.
static int add(const rt_stack_desc *d, struct rt_proc *p, struct rt_stack **out)
{
	struct context *own = d->flags & RT_STACK_THREAD ? &p->context : NULL;
	int error = own ? check_own(p) : RT_OK;
	struct rt_stack *s;

	if (error)
		return error;
	if (!make_room())
		return RT_ENOMEM;
	s = make_record(d);
	if (!s)
		return RT_ENOMEM;
	fill(s, d, own);
	enter(s);
	*out = s;
	return RT_OK;
}

int stacks_add(const rt_stack_desc *d, struct rt_proc *p, struct rt_stack **out)
{
	int error;

	mutex_lock(&roots.lock);
	error = add(d, p, out);
	mutex_unlock(&roots.lock);
	return error;
}

static bool contains(const struct rt_stack *s, uintptr_t sp)
{
	return !(s->flags & RT_STACK_UP) && sp >= s->lo && sp < s->hi;
}

// innermost returns the smallest stack that contains sp, or NULL.
static const struct rt_stack *innermost(uintptr_t sp)
{
	const struct rt_stack *in = NULL;

	for (size_t i = 0; i < stacks.n; i++) {
		const struct rt_stack *s = stacks.at[i];

		if (contains(s, sp) && (!in || s->hi - s->lo < in->hi - in->lo))
			in = s;
	}
	return in;
}

// refused returns the error for a change of s by a thread that runs at sp, or
// RT_OK.  The table is searched only if the thread may run on s.
static int refused(const struct rt_stack *s, uintptr_t sp)
{
	if (s->index >= stacks.n || stacks.at[s->index] != s)
		return RT_EINVAL;
	return !s->own && contains(s, sp) && innermost(sp) == s ? RT_EBUSY
								: RT_OK;
}

int stacks_remove(struct rt_stack *s, uintptr_t sp)
{
	int error;

	mutex_lock(&roots.lock);
	error = refused(s, sp);
	if (!error)
		leave(s);
	mutex_unlock(&roots.lock);
	return error;
}

int stacks_move(struct rt_stack *s, uintptr_t lo, uintptr_t hi, uintptr_t sp)
{
	int error;

	mutex_lock(&roots.lock);
	error = refused(s, sp);
	if (!error && s->own)
		error = RT_EINVAL;
	if (!error) {
		s->lo = lo;
		s->hi = hi;
	}
	mutex_unlock(&roots.lock);
	return error;
}

bool stacks_bounds(uintptr_t sp, uintptr_t *lo, uintptr_t *hi)
{
	const struct rt_stack *s;

	mutex_lock(&roots.lock);
	s = innermost(sp);
	if (s) {
		*lo = s->lo;
		*hi = s->hi;
	}
	mutex_unlock(&roots.lock);
	return s != NULL;
}

int stacks_set(struct context *c, uintptr_t lo, uintptr_t hi)
{
	if (c->own)
		return RT_ESTATE;
	if (c->grows)
		c->home_hi = c->hi;
	c->lo = lo;
	c->hi = hi;
	c->grows = hi == c->home_hi;
	return RT_OK;
}

void stacks_detach(struct rt_proc *p)
{
	mutex_lock(&roots.lock);
	if (p->context.own)
		leave(p->context.own);
	mutex_unlock(&roots.lock);
}

void stacks_fini(void)
{
	if (stacks.at)
		sysmem_free(stacks.at, table_bytes(stacks.room),
			    &gauges.other_sys);
	stacks = (struct stacks){0};
}

// ---- which stacks run ----

// The threads of one walk, by their stack pointers.  Only the stopper uses it.
// There is no check function: it means nothing between two walks.
static struct {
	unsigned n;
	uintptr_t sp[LOOK_AT];
	struct context *of[LOOK_AT];
} found;

static void found_add(struct context *c)
{
	unsigned i = found.n++;

	for (; i != 0 && found.sp[i - 1] > c->frame.sp; i--) {
		found.sp[i] = found.sp[i - 1];
		found.of[i] = found.of[i - 1];
	}
	found.sp[i] = c->frame.sp;
	found.of[i] = c;
}

// found_from returns the number of the first thread at or above an address.
static unsigned found_from(uintptr_t at)
{
	unsigned lo = 0, n = found.n;

	while (n != 0) {
		unsigned half = n / 2;

		if (found.sp[lo + half] < at) {
			lo += half + 1;
			n -= half + 1;
		} else {
			n = half;
		}
	}
	return lo;
}

// settle_on notes that a thread runs on s, unless it runs on a smaller stack
// inside s.
static void settle_on(struct context *c, struct rt_stack *s)
{
	if (!c->on || s->hi - s->lo < c->on->hi - c->on->lo)
		c->on = s;
}

// walk looks for the stacks of the threads that were found.
static void walk(void)
{
	for (size_t i = 0; i < stacks.n && found.n != 0; i++) {
		struct rt_stack *s = stacks.at[i];

		if (s->flags & RT_STACK_UP)
			continue;
		for (unsigned k = found_from(s->lo);
		     k < found.n && found.sp[k] < s->hi; k++)
			settle_on(found.of[k], s);
	}
	found.n = 0;
}

void stacks_look(void)
{
	RT_ASSERT(stw_stopped());
	stacks.looks++;
	for (struct rt_proc *p = proc_first(); p; p = proc_next(p)) {
		struct context *c = &p->context;

		c->on = NULL;
		c->beyond = 0;
		if (p->flags & PROC_HELPER || stacks.ndown == 0)
			continue;
		found_add(c);
		if (found.n == LOOK_AT)
			walk();
	}
	walk();
	for (struct rt_proc *p = proc_first(); p; p = proc_next(p))
		if (p->context.on)
			p->context.on->runs = stacks.looks;
}

// warn_of notes that the host must be told of a thread.  If there are several
// threads, the host is told of one after each collection.
static void warn_of(struct context *c)
{
	// Pairs with the release in stacks_take_warning.
	if (c->told ||
	    atomic_u32_load_acquire(&stacks.warning) != STACKS_WARN_NONE)
		return;
	c->told = true;
	stacks.lost = c->frame.sp;
	// Pairs with the compare and swap in stacks_take_warning.
	atomic_u32_store_release(&stacks.warning, STACKS_WARN_DUE);
}

static bool on_own(struct context *c)
{
	return c->hi != 0 && threadstack_holds(c, c->frame.sp);
}

// has_stack tells whether a stack of p's thread is a root.
static bool has_stack(const struct rt_proc *p)
{
	return !proc_is_free(p) &&
	       !(p->flags & (PROC_HELPER | RT_THREAD_EXACT)) &&
	       (p->context.hi != 0 || p->context.guest);
}

void stacks_look_again(void)
{
	RT_ASSERT(stw_stopped());
	for (struct rt_proc *p = proc_first(); p; p = proc_next(p)) {
		struct context *c = &p->context;

		if (c->on || !has_stack(p))
			continue;
		if (!on_own(c)) {
			c->beyond = threadstack_mapping_end(c->frame.sp);
			warn_of(c);
		} else if (c->own) { // it has grown
			c->own->runs = stacks.looks;
		}
	}
}

bool stacks_take_warning(uintptr_t *sp)
{
	if (!atomic_u32_cas_seqcst(&stacks.warning, STACKS_WARN_DUE,
				   STACKS_WARN_TAKEN))
		return false;
	schedpoint(SCHED_STACKS_TAKE_WARNING);
	*sp = stacks.lost;
	// Pairs with the acquire in warn_of: lost was read before.
	atomic_u32_store_release(&stacks.warning, STACKS_WARN_NONE);
	return true;
}

void stacks_fork_child(void)
{
	RT_ASSERT(stw_stopped());
	// The thread that has taken the warning does not exist in this process.
	if (atomic_u32_load_relaxed(&stacks.warning) == STACKS_WARN_TAKEN)
		atomic_u32_store_relaxed(&stacks.warning, STACKS_WARN_NONE);
}

// ---- what is scanned ----

size_t stacks_count(void)
{
	return stacks.n;
}

struct rt_stack *stacks_at(size_t i)
{
	return stacks.at[i];
}

// saved returns the saved stack pointer, 0 if there is none.  The host may keep
// it in a variable of any type.
RT_NO_SANITIZE
static uintptr_t saved(const struct rt_stack *s)
{
	typedef uintptr_t __attribute__((may_alias)) word;

	return s->sp ? *(const volatile word *)s->sp : 0;
}

void stacks_prefetch(size_t i)
{
	enum { RECORD = 24, POINTER = 16, WORDS = 8, LINES = 6 };

	if (i + RECORD < stacks.n)
		__builtin_prefetch(stacks.at[i + RECORD]);
	if (i + POINTER < stacks.n)
		__builtin_prefetch((const void *)stacks.at[i + POINTER]->sp);
	if (i + WORDS < stacks.n) {
		const struct rt_stack *s = stacks.at[i + WORDS];
		uintptr_t sp = saved(s);

		if (s->flags & RT_STACK_UP)
			sp = s->lo;
		for (unsigned line = 0; line < LINES; line++)
			__builtin_prefetch(
			    (const void *)(sp + line * RT_CACHE_LINE));
	}
}

void stacks_settle(void)
{
	RT_ASSERT(stw_stopped());
	atomic_u32_store_relaxed(&stacks.claimed, 0);
}

bool stacks_claimed(void)
{
	return atomic_u32_load_relaxed(&stacks.claimed) != 0;
}

const rt_value_format *stacks_format(const struct rt_stack *s)
{
	return s->label && s->label->format.stride != 0 &&
		       !(s->flags & RT_STACK_UP)
		   ? &s->label->format
		   : NULL;
}

const char *stacks_name(const struct rt_stack *s)
{
	return s->label && s->label->name[0] != 0 ? s->label->name : NULL;
}

RT_NO_SANITIZE
const rt_frame *stacks_frames(const struct rt_stack *s)
{
	return s->frames ? *s->frames : NULL;
}

// part_of returns the part of a stack that is in use while no thread runs on
// it.
static struct roots_range part_of(const struct rt_stack *s)
{
	struct roots_range r = {.lo = s->lo, .hi = s->hi};
	uintptr_t sp = saved(s);

	if (s->own)
		r.lo = threadstack_holds(s->own, sp) ? sp
						     : threadstack_all(s->own);
	else if (sp >= s->lo && sp <= s->hi)
		*(s->flags & RT_STACK_UP ? &r.hi : &r.lo) = sp;
	// The word into which a stack pointer points is in use, even if the
	// pointer is no multiple of 8.
	if (s->flags & RT_STACK_UP)
		r.lo = base_align_up(r.lo, sizeof(uintptr_t));
	else
		r.lo = base_align_down(r.lo, sizeof(uintptr_t));
	r.hi = base_align_down(r.hi, sizeof(uintptr_t));
	return r;
}

// Rows that are being gathered.
struct rows {
	struct work_range *row;
	unsigned n;
};

static void rows_add(struct rows *rows, const struct roots_range *r,
		     enum work_words words, const rt_value_format *f)
{
	if (r->lo >= r->hi)
		return;
	rows->row[rows->n++] = (struct work_range){
	    .lo = r->lo,
	    .hi = r->hi,
	    .stride = f ? f->stride : sizeof(uintptr_t),
	    .how = f,
	    .words = words,
	};
}

// rows_add_frames adds rows for words that may be anything: as words, as values
// in the format of all stacks, and as values in f, which may be NULL.
static void rows_add_frames(struct rows *rows, const struct roots_range *r,
			    enum work_words frames, const rt_value_format *f)
{
	enum work_words values =
	    frames == WORK_INSIDE ? WORK_STACK_VALUES : WORK_VALUES;

	rows_add(rows, r, frames, NULL);
	if (frames == WORK_ENDS)
		return;
	if (roots_stack_format())
		rows_add(rows, r, values, roots_stack_format());
	if (f)
		rows_add(rows, r, values, f);
}

unsigned stacks_part_rows(const struct roots_range *part,
			  enum work_words frames,
			  struct work_range row[STACKS_PART_ROWS])
{
	struct rows rows = {.row = row};

	rows_add_frames(&rows, part, frames, part->format);
	return rows.n;
}

unsigned stacks_rows(const struct rt_stack *s, enum work_words frames,
		     struct work_range row[STACKS_ROWS])
{
	const rt_value_format *f =
	    s->label && s->label->format.stride != 0 ? &s->label->format : NULL;
	struct roots_range part = part_of(s);
	struct roots_range registers = {
	    .lo = base_align_up(s->regs_lo, sizeof(uintptr_t)),
	    .hi = base_align_down(s->regs_hi, sizeof(uintptr_t)),
	};
	struct rows rows = {.row = row};

	if (!(s->flags & (RT_STACK_UP | RT_STACK_EXACT)))
		rows_add_frames(&rows, &part, frames, f);
	else if (frames != WORK_ENDS)
		rows_add(&rows, &part,
			 f			     ? WORK_VALUES
			 : s->flags & RT_STACK_EXACT ? WORK_REFERENCES
						     : WORK_ANY,
			 f);
	rows_add_frames(&rows, &registers, frames, stacks_format(s));
	return rows.n;
}

// is_frames tells whether words of a row may be addresses of fake frames.
static bool is_frames(const struct work_range *row)
{
	return row->words == WORK_INSIDE || row->words == WORK_ANY;
}

// trace_fakes finds the fake frames that a row of a stack leads to, and tells
// what they hold.
static void trace_fakes(rt_tracer *t, const struct rt_stack *s,
			const struct work_range *row)
{
	struct roots_range rest = {.lo = row->lo, .hi = row->hi};
	struct roots_range frame = {.format = stacks_format(s)};
	struct work_range fake[STACKS_PART_ROWS];

	while (stacks_fake_frame(&rest, &frame)) {
		unsigned n = stacks_part_rows(&frame, row->words, fake);

		for (unsigned i = 0; i < n; i++)
			trace_row(t, &fake[i]);
	}
}

// trace_variables tells the variables of named frames.
static void trace_variables(rt_tracer *t, const rt_frame *newest)
{
	struct frames_at at = {.f = newest};
	const volatile uintptr_t *slot;

	while ((slot = frames_next(&at)) != NULL) {
		struct work_range row = {
		    .lo = (uintptr_t)slot,
		    .hi = (uintptr_t)(slot + 1),
		    .stride = sizeof(uintptr_t),
		    .words = WORK_REFERENCES,
		};

		trace_row(t, &row);
	}
}

// stack_claim returns true to the first marker that claims the stack in a
// collection.
static bool stack_claim(struct rt_stack *s)
{
	uint64_t old = atomic_u64_load_relaxed(&s->scanned);

	schedpoint(SCHED_STACK_CLAIM);
	if (old == stacks.looks ||
	    !atomic_u64_cas_relaxed(&s->scanned, old, stacks.looks))
		return false;
	atomic_u32_store_relaxed(&stacks.claimed, 1);
	return true;
}

// In TRACE_AGAIN a claimed stack is told again, because some of its words may
// not have been pushed.
void stacks_trace(rt_tracer *t, struct rt_stack *s)
{
	struct work_range row[STACKS_ROWS];
	bool first;
	unsigned n;

	if (!(s->flags & RT_STACK_OWNED) || stacks_running(s))
		return;
	first = t->mode < TRACE_CHECK && stack_claim(s);
	if (t->mode == TRACE_MARK && !first)
		return;
	n = stacks_rows(s, trace_frames(t), row);
	if (first && n != 0)
		trace_count_stack(t, row[0].hi - row[0].lo);
	trace_variables(t, stacks_frames(s));
	for (unsigned i = 0; i < n; i++) {
		trace_row(t, &row[i]);
		if (is_frames(&row[i]))
			trace_fakes(t, s, &row[i]);
	}
}

static struct roots_range words_of(uintptr_t lo, uintptr_t hi,
				   const rt_value_format *f)
{
	return (struct roots_range){
	    .lo = base_align_down(lo, sizeof(uintptr_t)),
	    .hi = base_align_down(hi, sizeof(uintptr_t)),
	    .flags = RT_ROOT_WORDS,
	    .format = f,
	};
}

bool stacks_of_thread(struct rt_proc *p, struct stacks_thread *t)
{
	struct context *c = &p->context;
	uintptr_t hi = c->on ? c->on->hi : c->beyond;
	const struct rt_stack *on = c->on;
	const rt_value_format *f;

	*t = (struct stacks_thread){0};
	if (!has_stack(p))
		return false;
	if (c->own && c->on == c->own)
		hi = 0;
	if (hi == 0)
		on = c->own;
	f = on ? stacks_format(on) : NULL;
	t->registers = words_of((uintptr_t)&c->frame.regs[0],
				(uintptr_t)&c->frame.regs[CONTEXT_REGS], f);
	if (hi == 0 && c->hi != 0)
		t->frames = words_of(threadstack_begin(c), c->hi, f);
	if (hi == 0)
		return true;
	t->frames = words_of(c->frame.sp, hi, f);
	if (c->hi != 0 && !c->own)
		t->left = words_of(threadstack_all(c), c->hi, NULL);
	return true;
}

RT_NO_SANITIZE
bool stacks_fake_frame(struct roots_range *rest, struct roots_range *frame)
{
	bool found_one = false;

	if (!threadstack_has_fakes())
		return false;
	while (!found_one && rest->lo < rest->hi) {
		uintptr_t w = poison_load(rest->lo);

		for (struct rt_proc *p = proc_first(); p && !found_one;
		     p = proc_next(p))
			found_one = threadstack_fake_frame(
			    &p->context, w, &frame->lo, &frame->hi);
		rest->lo += sizeof(uintptr_t);
	}
	return found_one;
}

// ---- invariants ----

const char *stacks_check(const struct stacks *all)
{
	const char *wrong = NULL;
	size_t down = 0;

	if ((all->room == 0) != (all->at == NULL))
		return "table of stacks is not where its fields say";
	if (all->n > all->room)
		return "table of stacks has more than it has room";
	for (size_t i = 0; i < all->n && !wrong; i++) {
		wrong = check_stack(all->at[i], i);
		down += !(all->at[i]->flags & RT_STACK_UP);
	}
	if (!wrong && down != all->ndown)
		wrong = "stacks that grow down are not counted right";
	if (!wrong && all->records.size != 0)
		wrong = fixalloc_check(&all->records);
	if (!wrong && all->labels.size != 0)
		wrong = fixalloc_check(&all->labels);
	return wrong;
}
