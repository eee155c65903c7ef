// scheme.h - values, objects and the machine of the Scheme example.
//
// All data of the interpreted program, its compiled code and the tables of
// the interpreter live on the rtheap heap.  C locals hold values freely: the
// collector reads this thread's stack and registers, and nothing ever moves,
// so an address is also a good hash.  struct vm is the only registered root.
#ifndef SCHEME_SCHEME_H
#define SCHEME_SCHEME_H

#include <setjmp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <rt/rt.h>

// A value is one tagged word.  Objects are 16-byte aligned, so the low bits
// are free, and a tagged pointer still points into its object.
//	xx1 fixnum, 63 bits	010 pair	100 flonum
//	000 other object	110 constant, or a character (low byte 0x0e)
typedef uintptr_t value;

enum tag { TAG_OBJECT = 0, TAG_PAIR = 2, TAG_FLONUM = 4, TAG_CONSTANT = 6 };

enum constant {
	FALSE = 0x006,
	TRUE = 0x106,
	NIL = 0x206,
	UNSPECIFIED = 0x306,
	END_OF_FILE = 0x406,
	UNBOUND = 0x506,    // a global that was never defined
	UNASSIGNED = 0x606, // an inner definition before its turn
	NONE = 0x706,	    // "no value" in C interfaces
	TAIL = 0x806,	    // result of a body: call vm.fn with vm.frame
	JUMP = 0x906,	    // result of a body: go on with loop vm.loop
	CHARACTER = 0x00e
};

enum type { STRING, SYMBOL, VECTOR, CLOSURE, PRIMITIVE, PROMISE };

enum { FIXNUM_BITS = 63 };
#define FIXNUM_MAX (INT64_MAX >> 1)
#define FIXNUM_MIN (INT64_MIN >> 1)

struct object {
	uint32_t type; // enum type
	uint32_t len;  // characters, items; a promise: 1 once it has its value
};

struct pair {
	value car, cdr;
};

struct flonum {
	double d;
	uint64_t unused; // 16 bytes: the smallest size allocated inline
};

struct string {
	struct object head;
	char text[]; // len bytes and a zero byte
};

struct vector {
	struct object head;
	value item[];
};

struct promise {
	struct object head;
	value v; // the value, or the procedure that makes it
};

struct node;
struct scope;
enum tail { NOT_TAIL, LOOP_TAIL, PROC_TAIL };
typedef struct node *syntax_fn(value form, struct scope *sc, enum tail tail);

struct symbol {
	struct object head;
	value global;	     // value of the global variable, or UNBOUND
	value builtin;	     // the primitive it was born with, or 0
	value name;	     // string
	syntax_fn *syntax;   // compiles forms that begin with it, or NULL
	struct symbol *next; // of the same bucket
};

// The code of a lambda expression.
struct lambda {
	struct node *body;
	value name;	 // symbol, or FALSE
	uint32_t nreq;	 // parameters without the rest parameter
	uint32_t nslots; // words of a frame, slot 0 included
	bool rest;
	bool on_heap; // an inner closure keeps the frame, or it is large
};

struct closure {
	struct object head;
	struct lambda *code;
	value *env; // the frame it was made in
};

// One word of C per argument up to three; else the arguments as an array.
enum { VARIADIC = 4, ANY = -1 };
struct builtin {
	const char *name;
	int min, max; // arguments; equal ones, up to 3, select f0 .. f3
	union {
		value (*f0)(void);
		value (*f1)(value);
		value (*f2)(value, value);
		value (*f3)(value, value, value);
		value (*fn)(int argc, value *argv);
	};
};

struct primitive {
	struct object head; // len: 0 .. 3, or VARIADIC
	const struct builtin *b;
};

// Where a form stands in its source.
struct place {
	value file; // string
	uint32_t line;
};

struct location {
	value pair; // 0: free
	struct place at;
};

// Symbols without a name in the program: what derived forms expand to, out
// of reach of any rebinding.
enum core {
	CORE_QUOTE,
	CORE_IF,
	CORE_LAMBDA,
	CORE_LET,
	CORE_BEGIN,
	CORE_COND,
	CORE_DEFINE,
	NCORE
};

// A frame: slot 0 is the frame outside, then parameters, then variables of
// inner lets.  Callers evaluate arguments where a small frame can stand; it
// stays there, on the C stack, unless a closure is going to keep it.
enum { FRAME_MAX = 14 };

struct vm {
	rt_thread *self;
	uintptr_t stack_limit;	   // below it recursion is an error
	const struct place *where; // of the call being made
	struct place form;	   // where it points outside any call
	const struct primitive *callee;
	value fn; // the procedure of a tail call, and its arguments
	int argc;
	value *frame;
	value room[FRAME_MAX];	 // where frame points when they are few
	const struct node *loop; // target of a jump
	uint32_t nesting;	 // of the form being compiled
	struct symbol **symbols; // buckets
	size_t nbuckets, nsymbols;
	struct location *locations; // of the pairs of the form last read
	size_t nlocations, location_slots;
	value core[NCORE];
	value sym_else, sym_arrow, sym_quote, sym_quasiquote, sym_unquote,
	    sym_splice;
	int status; // of exit
	jmp_buf top;
};

extern struct vm vm;
enum { TOP_ERROR = 1, TOP_EXIT = 2 }; // why vm.top was reached

// ---- errors: print "file:line: who: what: irritant" and go to vm.top

_Noreturn void fail(const char *who, const char *what, value irritant);
// wrong is fail for an argument of the primitive being called.
_Noreturn void wrong(const char *what, value irritant);
_Noreturn void out_of_memory(void);

static inline bool stack_is_low(void)
{
	return (uintptr_t)__builtin_frame_address(0) < vm.stack_limit;
}

static inline void check_stack(void)
{
	if (__builtin_expect(stack_is_low(), 0))
		fail(NULL, "recursion too deep", NONE);
}

// ---- values

static inline void *must(void *p)
{
	if (__builtin_expect(!p, 0))
		out_of_memory();
	return p;
}

static inline bool is_fixnum(value v)
{
	return v & 1;
}

static inline bool both_fixnums(value a, value b)
{
	return a & b & 1;
}

static inline value fixnum(int64_t n)
{
	return (uint64_t)n << 1 | 1;
}

static inline int64_t fixnum_of(value v)
{
	return (int64_t)v >> 1;
}

// fix_add, fix_sub, fix_mul compute with tagged fixnums and return whether
// the result fits: (2a) + (2b + 1), (2a + 1) - (2b), (2a) * b + 1.
static inline bool fix_add(value a, value b, value *r)
{
	return !__builtin_add_overflow((int64_t)a - 1, (int64_t)b,
				       (int64_t *)r);
}

static inline bool fix_sub(value a, value b, value *r)
{
	return !__builtin_sub_overflow((int64_t)a, (int64_t)b - 1,
				       (int64_t *)r);
}

static inline bool fix_mul(value a, value b, value *r)
{
	int64_t twice;

	if (__builtin_mul_overflow((int64_t)a - 1, fixnum_of(b), &twice))
		return false;
	*r = (value)twice | 1;
	return true;
}

static inline value boolean(bool b)
{
	return b ? TRUE : FALSE;
}

static inline value character(unsigned char c)
{
	return (value)c << 8 | CHARACTER;
}

static inline bool is_character(value v)
{
	return (v & 0xff) == CHARACTER;
}

static inline unsigned char char_of(value v)
{
	return (unsigned char)(v >> 8);
}

static inline bool is_pair(value v)
{
	return (v & 7) == TAG_PAIR;
}

static inline struct pair *pair_of(value v)
{
	return (struct pair *)(v - TAG_PAIR);
}

static inline value car(value v)
{
	return pair_of(v)->car;
}

static inline value cdr(value v)
{
	return pair_of(v)->cdr;
}

static inline value cons(value a, value d)
{
	struct pair *p = must(rt_alloc_in(vm.self, sizeof *p));

	p->car = a;
	p->cdr = d;
	return (value)p + TAG_PAIR;
}

static inline bool is_flonum(value v)
{
	return (v & 7) == TAG_FLONUM;
}

static inline double double_of(value v)
{
	return ((struct flonum *)(v - TAG_FLONUM))->d;
}

static inline value flonum(double d)
{
	struct flonum *f = must(rt_alloc_noscan_in(vm.self, sizeof *f));

	f->d = d;
	return (value)f + TAG_FLONUM;
}

static inline bool is_type(value v, enum type t)
{
	return (v & 7) == TAG_OBJECT && ((struct object *)v)->type == t;
}

static inline struct string *string_of(value v)
{
	return (struct string *)v;
}

static inline struct symbol *symbol_of(value v)
{
	return (struct symbol *)v;
}

static inline struct vector *vector_of(value v)
{
	return (struct vector *)v;
}

static inline bool is_procedure(value v)
{
	return is_type(v, CLOSURE) || is_type(v, PRIMITIVE);
}

// ---- value.c: making and comparing objects

value make_string(const char *text, size_t len); // text may be NULL
value make_vector(size_t len, value fill);
value make_symbol(value name); // not interned
value intern(const char *text, size_t len);
value symbol_named(const char *name);
// primitive_named returns the primitive itself, whatever the program has
// since defined under that name.
value primitive_named(const char *name);
value list_of(int n, ...);
value list_to_vector(value list);
int64_t list_length(value list); // -1: not a proper list
bool eqv(value a, value b);
bool equal(value a, value b);
void define_builtins(const struct builtin *b, size_t n);

// ---- read.c

struct reader {
	int fd;
	bool ended;	 // a terminal would give more after its end
	bool locate;	 // record where each list stands, for the compiler
	struct place at; // of the next byte
	size_t pos, len;
	unsigned char buf[4096];
};

// reader_init prepares to read code from a descriptor.
void reader_init(struct reader *r, int fd, const char *name);
// reader_datum returns the next datum or END_OF_FILE.
value reader_datum(struct reader *r);
// reader_line returns the rest of the line as a string, or END_OF_FILE.
value reader_line(struct reader *r);
// read_number parses a whole text; NONE: it is not a number.
value read_number(const char *text, int radix);
// locate returns where a pair stood in the source last read, or NULL.
const struct place *locate(value pair);
extern struct reader standard_input;

// ---- print.c

enum { NCHARACTER_NAMES = 5 };
extern const struct character_name {
	const char *name;
	unsigned char c;
} character_names[NCHARACTER_NAMES];

void print(FILE *out, value v, bool quoted);
// print_brief writes at most BRIEF values, then dots.
enum { BRIEF = 100 };
void print_brief(FILE *out, value v);
enum { NUMBER_TEXT = 80 };
void number_text(value v, int radix, char text[NUMBER_TEXT]);

// ---- compile.c, syntax.c, eval.c

_Noreturn void bad_syntax(value form);

struct lambda *compile_top(value form);
// apply calls fn with s[1] .. s[argc].  s has room for FRAME_MAX words, or
// for argc + 2 when that is more, and is overwritten.
value apply(value fn, int argc, value *s);
// call_back is apply for primitives: afterwards errors name the primitive
// and its place again.
value call_back(value fn, int argc, value *s);
value eval_top(value form);

// ---- what the interpreter begins with, and the report

void define_core_syntax(void);
void define_derived_syntax(void); // after the primitives
void define_control(void);
void define_numbers(void);
void define_lists(void);
void define_text(void);

// report_begin and report_end stand around a program: a title, and a record
// of what it did.
void report_begin(const char *name);
void report_end(const char *name);
// report prints what all programs did to the memory and what is left, and
// returns whether its sums are right.
bool report(void);

#endif
