// scheme.h - values, objects and the machine of the Scheme example.
//
// All data of the interpreted program, its compiled code and the tables of the
// interpreter are on the rtheap heap.  C locals hold values freely: the
// collector scans this thread's stack and registers, and no object ever moves.
// struct vm is the only registered root.
#ifndef SCHEME_SCHEME_H
#define SCHEME_SCHEME_H

#include <setjmp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <rt/rt.h>

// A value is one tagged word.  Objects are 16-byte aligned, so four low bits
// are free, and a tagged pointer still points into its object.
//	xxx1 fixnum, 63 bits	x010 pair, 1010 with its source line behind it
//	0000 other object	0100 flonum
//	0110 constant		1110 character
typedef uintptr_t value;

enum tag { TAG_OBJECT = 0, TAG_PAIR = 2, TAG_FLONUM = 4, TAG_SOURCE = 10 };

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
	CHARACTER = 0x00e
};

enum type { STRING, SYMBOL, VECTOR, CLOSURE, PRIMITIVE, SYNTAX };

#define FIXNUM_MAX (INT64_MAX >> 1)
#define FIXNUM_MIN (INT64_MIN >> 1)

struct object {
	uint32_t type; // enum type
	uint32_t len;  // characters, items
};

struct pair {
	value car, cdr;
};

// The first pair of a list that was read.
struct source_pair {
	struct pair pair;
	uint32_t line;
};

struct flonum {
	double d;
	uint64_t unused; // an object of 16 bytes is aligned to 16
};

struct string {
	struct object head;
	char text[]; // len bytes and a zero byte
};

struct vector {
	struct object head;
	value item[];
};

struct symbol {
	struct object head;
	value global;	     // value of the global variable, or UNBOUND
	value name;	     // string
	struct symbol *next; // of the same bucket
};

struct node;

// The code of a lambda expression.
struct lambda {
	struct node *body;
	value name; // symbol, or FALSE
	int nreq;   // parameters without the rest parameter
	bool rest;
};

struct closure {
	struct object head;
	struct lambda *code;
	value *env; // the frame it was made in
};

// f0 to f3, if set, are called with 0 to 3 arguments; fn serves all other
// numbers from min to max.
enum { ANY = INT32_MAX };
typedef value prim0(void), prim1(value), prim2(value, value),
    prim3(value, value, value), prim_any(int argc, value *argv);
struct builtin {
	const char *name;
	prim0 *f0;
	prim1 *f1;
	prim2 *f2;
	prim3 *f3;
	prim_any *fn;
	int min, max;
	int unit;		    // of prim_fold
	enum type type;		    // of prim_is_type
	bool (*same)(value, value); // for those that compare
};

struct primitive {
	struct object head;
	const struct builtin *b;
};

// The place of a form in its source.
struct place {
	value file; // string
	uint32_t line;
};

// The keywords that derived forms expand to.
enum core { BEGIN, COND, DEFINE, IF, LET, LET_STAR, NCORE };

enum { NBUCKETS = 1024 };

struct vm {
	rt_thread *self;
	uintptr_t stack_limit; // below it recursion is an error
	struct place at;       // of the call being made, or the form compiled
	const struct builtin *callee;
	value fn; // the procedure of a tail call, and its arguments
	int argc;
	value *frame;
	struct symbol *symbols[NBUCKETS];
	value core[NCORE];
	value sym_else, sym_arrow, sym_quote;
	int status; // of exit
	jmp_buf top;
};

extern struct vm vm;
enum { TOP_ERROR = 1, TOP_EXIT = 2 }; // why vm.top was reached

// ---- errors: print "file:line: who: what: irritant" and go to vm.top

void fail_begin(void); // prints the place
_Noreturn void fail_end(void);
_Noreturn void fail(const char *who, const char *what, value irritant);
// wrong does what fail does, for an argument of the primitive being called.
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

static inline value fixnum(int64_t n)
{
	return (uint64_t)n << 1 | 1;
}

static inline int64_t fixnum_of(value v)
{
	return (int64_t)v >> 1;
}

static inline value boolean(bool b)
{
	return b ? TRUE : FALSE;
}

static inline value character(char c)
{
	return (value)(unsigned char)c << 8 | CHARACTER;
}

static inline bool is_character(value v)
{
	return (v & 15) == CHARACTER;
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
	return (struct pair *)(v & ~(value)15);
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

// new_frame returns a frame: slot 0 is the outer frame, and the variables
// follow.  The stores that fill it are plain, because nothing else refers to it
// yet.
static inline value *new_frame(size_t nslots)
{
	if (nslots <= 2) // an inline allocation is shorter for a constant
		return must(rt_alloc_in(vm.self, 16));
	if (nslots <= 4)
		return must(rt_alloc_in(vm.self, 32));
	return must(rt_alloc_in(vm.self, nslots * sizeof(value)));
}

// ---- value.c: making and comparing objects

value make_string(const char *text, size_t len); // text may be NULL
value make_vector(size_t len, value fill);
value make_symbol(const char *text, size_t len); // not interned
value intern(const char *text, size_t len);
value symbol_named(const char *name);
void define_primitive(const struct builtin *b);
value list_of(int n, ...);
int64_t list_length(value list); // -1: not a proper list
int64_t need_list(value v);	 // its length
bool eq(value a, value b);
bool eqv(value a, value b);
bool equal(value a, value b);

// A list under construction; begins as EMPTY.
struct builder {
	value first;
	struct pair *last;
};
#define EMPTY ((struct builder){NIL, NULL})

void builder_add(struct builder *b, value v);
// builder_end makes tail follow the last pair.  If there is no pair, tail is
// the whole list.
void builder_end(struct builder *b, value tail);

// ---- read.c

struct reader {
	int fd;
	bool ended;	 // a terminal would give more after its end
	struct place at; // of the next byte
	size_t pos, len;
	char buf[4096];
};

void reader_init(struct reader *r, int fd, const char *name);
// reader_datum returns the next datum or END_OF_FILE, and leaves its place
// in vm.at.
value reader_datum(struct reader *r);
// read_number parses a whole text.  Returns NONE if it is not a number.
value read_number(const char *text);
extern struct reader standard_input;

// ---- print.c

enum { NCHARACTER_NAMES = 3 };
extern const struct character_name {
	const char *name;
	char c;
} character_names[NCHARACTER_NAMES];

void print(FILE *out, value v, bool quoted);
// print_brief writes at most BRIEF values, then dots.
enum { BRIEF = 100 };
void print_brief(FILE *out, value v);
enum { NUMBER_TEXT = 32 };
void number_text(value v, char text[NUMBER_TEXT]);

// ---- compile.c, syntax.c, eval.c

void define_syntax(void);
struct node *compile_top(value form);
value eval_top(value form);
// call_back calls fn with s[1] .. s[argc] for a primitive; errors name the
// primitive again afterwards.  s must come from new_frame, and becomes the
// callee's.
value call_back(value fn, int argc, value *s);

// ---- the primitives: the table in main.c has them all

prim_any prim_apply;

// list.c
prim1 prim_car, prim_cdr, prim_cxr, prim_is_pair, prim_is_null, prim_is_list,
    prim_length, prim_reverse, prim_vector_length, prim_vector_to_list,
    prim_list_to_vector;
prim2 prim_set_car, prim_set_cdr, prim_list_tail, prim_list_ref, prim_same,
    prim_member, prim_assoc, prim_vector_ref;
prim3 prim_vector_set;
prim_any prim_list, prim_append, prim_map, prim_for_each, prim_make_vector,
    prim_vector;

// number.c
prim1 prim_is_number, prim_is_integer, prim_is_zero, prim_is_odd, prim_is_even,
    prim_abs, prim_sqrt, prim_exp, prim_sin, prim_cos, prim_number_to_string,
    prim_string_to_number;
prim2 prim_add, prim_sub, prim_mul, prim_div, prim_quotient, prim_remainder,
    prim_modulo, prim_num_equal, prim_less, prim_greater, prim_not_greater,
    prim_not_less, prim_max, prim_min, prim_expt;
prim_any prim_fold, prim_chain;

// text.c
prim0 prim_newline, prim_read, prim_gc;
prim1 prim_is_char, prim_char_to_integer, prim_integer_to_char,
    prim_string_length, prim_string_to_list, prim_list_to_string,
    prim_symbol_to_string, prim_string_to_symbol, prim_is_type,
    prim_is_procedure, prim_is_boolean, prim_not, prim_display, prim_write,
    prim_is_eof;
prim2 prim_char_equal, prim_char_less, prim_string_ref, prim_string_equal,
    prim_string_less;
prim3 prim_string_set;
prim_any prim_make_string, prim_string_append, prim_substring, prim_error,
    prim_exit;

// ---- records.c

// records_begin must be called before a program, and records_end after it.  The
// first prints a title; the second adds a record of what the program did, which
// keeps name.  They return false if there is no memory.
bool records_begin(const char *name);
bool records_end(const char *name);
// records_print prints the records.
void records_print(void);

#endif
