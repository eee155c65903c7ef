// interp.c - an interpreter of a functional language: it allocates frames,
// closures, conses and strings.  4000 rounds make 39 million objects of 49
// bytes on average.
//
// usage: interp ROUNDS
//
// Calls are frames in the heap, linked to their callers, so that non-tail
// recursion makes chains as deep as the lists are long.  One round in 64 goes
// 20000 deep.  A round makes a list of numbers and maps three closures over
// it.  One of them makes strings, and closures that keep their frame alive.
// The round folds the result, and stores every fourth intermediate value into a
// list of 100000 cells that lives on.  The program does not know when an object
// dies, so this case is for collectors only.  The checksum is of what the folds
// return, and of the list that lives on.
#include "harness.h"

enum { TABLE = 100000, DEEP = 20000, MASK = 0xffff };

// A number is odd; numbers have 16 bits.  Anything else is an object that
// begins with its tag.
typedef uintptr_t value;

enum tag { TAG_STRING, TAG_CLOSURE };
enum op { OP_ADD, OP_MIX, OP_USE };

struct string {
	uint64_t tag, length;
	char text[];
};

struct closure {
	uint64_t tag, op;
	struct frame *env;
	value held;
};

struct cons {
	value car;
	struct cons *cdr;
};

// The frame of a call to a closure, or of the loop that makes a list, is
// SMALL.  The frame of map is LARGE.  No frame uses the slots beyond these two.
struct frame {
	struct frame *up;
	struct closure *fn;
	value slot[2];
};

enum { SMALL = 48, LARGE = 96 };

static value number(uint64_t n)
{
	return (n & MASK) << 1 | 1;
}

static uint64_t number_of(value v)
{
	return v >> 1;
}

// The size is a constant at each call.
PEER_INLINE struct frame *frame_make(struct frame *up, struct closure *fn,
				     size_t size)
{
	struct frame *f = peer_alloc(size);

	f->up = up;
	f->fn = fn;
	return f;
}

static struct cons *cons_make(value car, struct cons *cdr)
{
	struct cons *c = peer_alloc(sizeof *c);

	c->car = car;
	c->cdr = cdr;
	return c;
}

static struct closure *closure_make(enum op op, struct frame *env, value held)
{
	struct closure *c = peer_alloc(sizeof *c);

	c->tag = TAG_CLOSURE;
	c->op = op;
	c->env = env;
	c->held = held;
	return c;
}

// string_make returns a string of 8 to 64 characters.
static value string_make(uint64_t n)
{
	uint64_t length = 8 + n % 57;
	struct string *s = peer_alloc_noscan(sizeof *s + length);

	s->tag = TAG_STRING;
	s->length = length;
	memset(s->text, (int)('a' + n % 26), length);
	return (value)s;
}

// mix returns a string, a closure over the frame, or the number again.
static value mix(struct frame *f)
{
	uint64_t n = number_of(f->slot[0]);

	if (n % 4 == 0)
		return string_make(n);
	if (n % 4 == 1)
		return (value)closure_make(OP_ADD, f, f->slot[0]);
	return f->slot[0];
}

static value apply(struct closure *fn, value argument);

// use returns a number made of any value.
static value use(struct frame *f)
{
	value v = f->slot[0];
	const struct string *s = (const struct string *)v;

	if (v & 1)
		return v;
	if (s->tag == TAG_STRING)
		return number(s->length * 256 +
			      (uint8_t)s->text[s->length - 1]);
	return apply((struct closure *)v, number(7));
}

// The parent of a closure's frame is the frame that the closure was made in,
// not the frame of its caller.
static value apply(struct closure *fn, value argument)
{
	struct frame *f = frame_make(fn->env, fn, SMALL);

	f->slot[0] = argument;
	switch (fn->op) {
	case OP_ADD:
		f->slot[1] = fn->held;
		return number(number_of(f->slot[0]) + number_of(f->slot[1]));
	case OP_MIX:
		return mix(f);
	default:
		return use(f);
	}
}

// iota returns the n numbers from first on.  It makes the frames of a recursion
// and then, on the way back, the conses.
static struct cons *iota(struct frame *up, uint64_t first, uint64_t n)
{
	struct cons *list = NULL;
	struct frame *f = up;

	for (uint64_t i = 0; i < n; i++) {
		f = frame_make(f, NULL, SMALL);
		f->slot[0] = number(first + i);
	}
	for (; f != up; f = f->up)
		list = cons_make(f->slot[0], list);
	return list;
}

static struct cons *map(struct frame *up, struct closure *fn, struct cons *list)
{
	struct cons *result = NULL;
	struct frame *f = up;

	for (; list; list = list->cdr) {
		f = frame_make(f, fn, LARGE);
		f->slot[0] = (value)list;
	}
	for (; f != up; f = f->up) {
		HEAP_STORE(f, &f->slot[1],
			   apply(fn, ((struct cons *)f->slot[0])->car));
		result = cons_make(f->slot[1], result);
	}
	return result;
}

static uint64_t fold(const struct cons *list)
{
	uint64_t sum = 0;

	for (; list; list = list->cdr)
		sum = sum * 31 + number_of(list->car);
	return sum;
}

struct machine {
	struct frame *top;
	struct closure *add, *mix, *use;
	struct cons *table, *cursor; // the list that lives on; a place in it
};

static void table_store(struct machine *m, const struct cons *list)
{
	for (uint64_t i = 0; list; list = list->cdr, i++) {
		if (i % 4)
			continue;
		HEAP_STORE(m->cursor, &m->cursor->car, list->car);
		m->cursor = m->cursor->cdr ? m->cursor->cdr : m->table;
	}
}

static uint64_t round_run(struct machine *m, uint64_t first, uint64_t n)
{
	struct cons *list = map(m->top, m->add, iota(m->top, first, n));
	struct cons *mixed = map(m->top, m->mix, list);

	table_store(m, mixed);
	return fold(map(m->top, m->use, mixed));
}

static void machine_begin(struct machine *m)
{
	m->top = frame_make(NULL, NULL, SMALL);
	m->add = closure_make(OP_ADD, m->top, number(1));
	m->mix = closure_make(OP_MIX, m->top, number(0));
	m->use = closure_make(OP_USE, m->top, number(0));
	m->table = iota(m->top, 0, TABLE);
	m->cursor = m->table;
}

int main(int argc, char **argv)
{
	static const uint64_t bounds[2] = {1, 1000000};
	uint64_t rounds = peer_number(argc, argv, 1, bounds);
	struct machine m;
	struct peer_time t = {0};
	uint64_t seed = 1, sum = 0;

	heap_begin();
	peer_start(&t);
	machine_begin(&m);
	for (uint64_t i = 0; i < rounds; i++) {
		uint64_t r = peer_random(&seed);
		uint64_t n = i % 64 == 63 ? DEEP : 50 + (r >> 32) % 951;

		sum = sum * 31 + round_run(&m, r, n);
	}
	peer_stop(&t);
	for (const struct cons *c = m.table; c; c = c->cdr)
		sum += c->car & 1 ? number_of(c->car)
				  : ((const struct string *)c->car)->tag;
	peer_keep(&m);
	peer_report(t.wall, "s", &t, sum);
	return 0;
}
