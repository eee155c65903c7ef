// read.c - the reader: bytes to data, and the place of each list.
//
// It reads the input in a blocking region, so a thread that waits for a person
// to type delays no collection.
#include "scheme.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct reader standard_input;

// ---- bytes

static void reader_fill(struct reader *r)
{
	ssize_t n;

	fflush(stdout);
	rt_blocking_enter();
	do
		n = read(r->fd, r->buf, sizeof r->buf);
	while (n < 0 && errno == EINTR);
	rt_blocking_leave();
	r->pos = 0;
	r->len = n > 0 ? (size_t)n : 0;
	r->ended = n <= 0;
}

static int peek(struct reader *r)
{
	if (r->pos == r->len && !r->ended)
		reader_fill(r);
	return r->pos < r->len ? (unsigned char)r->buf[r->pos] : EOF;
}

static int next(struct reader *r)
{
	int c = peek(r);

	if (c == EOF)
		return c;
	r->pos++;
	r->at.line += c == '\n';
	return c;
}

_Noreturn static void reader_fail(struct place at, const char *what)
{
	vm.at = at;
	fail(NULL, what, NONE);
}

// A text that grows; its bytes are on the heap.
struct text {
	char *bytes;
	size_t len, room;
};

static void text_add(struct text *t, int c)
{
	if (t->len + 1 >= t->room) {
		size_t room = t->room ? 2 * t->room : 64;
		char *to = must(rt_alloc_noscan(room));

		if (t->len)
			memcpy(to, t->bytes, t->len);
		t->bytes = to;
		t->room = room;
	}
	t->bytes[t->len++] = (char)c;
	t->bytes[t->len] = 0;
}

// ---- numbers

static value read_integer(const char *text)
{
	errno = 0;
	long long n = strtoll(text, NULL, 10);
	if (errno || n > FIXNUM_MAX || n < FIXNUM_MIN)
		return flonum(strtod(text, NULL));
	return fixnum(n);
}

value read_number(const char *text)
{
	static const char digits[] = "0123456789";
	const char *first = text + (*text == '+' || *text == '-');
	char *end;

	if (!strpbrk(text, digits) || !strchr("0123456789.", *first) ||
	    text[strspn(text, "0123456789.eE+-")])
		return NONE;
	if (!first[strspn(first, digits)])
		return read_integer(text);
	double d = strtod(text, &end);
	return *end ? NONE : flonum(d);
}

// ---- data

static bool is_delimiter(int c)
{
	return c == EOF || strchr(" \t\r\n\f()\";'", c);
}

static int skip_space(struct reader *r)
{
	for (int c; (c = peek(r)) != EOF; next(r)) {
		if (c == ';')
			while (peek(r) != EOF && peek(r) != '\n')
				next(r);
		else if (!strchr(" \t\r\n\f", c))
			break;
	}
	return peek(r);
}

static value read_string(struct reader *r)
{
	struct text t = {0};
	int c;

	while ((c = next(r)) != '"') {
		if (c == '\\') {
			c = next(r);
			c = c == 'n' ? '\n' : c == 't' ? '\t' : c;
		}
		if (c == EOF)
			reader_fail(r->at,
				    "unexpected end of file in a string");
		text_add(&t, c);
	}
	return make_string(t.bytes, t.len);
}

static struct text read_token(struct reader *r)
{
	struct text t = {0};

	do
		text_add(&t, next(r));
	while (!is_delimiter(peek(r)));
	return t;
}

static value read_character(struct reader *r)
{
	if (peek(r) == EOF)
		reader_fail(r->at, "unexpected end of file in a character");
	struct text t = read_token(r);
	if (t.len == 1)
		return character(t.bytes[0]);
	for (int i = 0; i < NCHARACTER_NAMES; i++)
		if (!strcmp(t.bytes, character_names[i].name))
			return character(character_names[i].c);
	reader_fail(r->at, "unknown character name");
}

static value read_datum(struct reader *r);

// read_item is read_datum inside a list that began at that place, or after its
// quote.
static value read_item(struct reader *r, struct place at)
{
	value v = read_datum(r);

	if (v == END_OF_FILE)
		reader_fail(at, "unexpected end of file in this list");
	return v;
}

// read_inner is read_item where a dot is not allowed.
static value read_inner(struct reader *r, struct place at)
{
	value v = read_item(r, at);

	if (v == NONE)
		reader_fail(r->at, "unexpected dot");
	return v;
}

static value cons_at(uint32_t line, value a, value d)
{
	struct source_pair *p = must(rt_alloc_in(vm.self, sizeof *p));

	p->pair.car = a;
	p->pair.cdr = d;
	p->line = line;
	return (value)p + TAG_SOURCE;
}

// read_rest returns what follows the first item of a list.
static value read_rest(struct reader *r, struct place at)
{
	struct builder b = EMPTY;

	for (;;) {
		if (skip_space(r) == ')') {
			next(r);
			return b.first;
		}
		value item = read_item(r, at);
		if (item != NONE) {
			builder_add(&b, item);
			continue;
		}
		builder_end(&b, read_inner(r, at)); // after a dot
		if (skip_space(r) != ')')
			reader_fail(r->at, "bad dotted list");
		next(r);
		return b.first;
	}
}

static value read_list(struct reader *r, struct place at)
{
	if (skip_space(r) == ')') {
		next(r);
		return NIL;
	}
	value first = read_inner(r, at);
	return cons_at(at.line, first, read_rest(r, at));
}

// read_hash reads what follows a #.
static value read_hash(struct reader *r, struct place at)
{
	int c = peek(r);

	if (c == '(') {
		next(r);
		value items = read_list(r, at);
		if (list_length(items) < 0)
			reader_fail(at, "unexpected dot");
		return prim_list_to_vector(items);
	}
	if (c == '\\') {
		next(r);
		return read_character(r);
	}
	struct text t = read_token(r);
	if (!strcmp(t.bytes, "t"))
		return TRUE;
	if (!strcmp(t.bytes, "f"))
		return FALSE;
	reader_fail(r->at, "unknown syntax after #");
}

// read_atom returns a number, a symbol, or NONE for a dot.
static value read_atom(struct reader *r)
{
	struct text t = read_token(r);

	if (t.len == 1 && t.bytes[0] == '.')
		return NONE;
	value n = read_number(t.bytes);
	return n == NONE ? intern(t.bytes, t.len) : n;
}

// read_datum returns the next datum, END_OF_FILE, or NONE for a dot.
static value read_datum(struct reader *r)
{
	check_stack();
	int c = skip_space(r);
	struct place at = r->at;

	if (c == EOF)
		return END_OF_FILE;
	if (!strchr("()\"#'", c))
		return read_atom(r);
	next(r);
	switch (c) {
	case '(':
		return read_list(r, at);
	case '"':
		return read_string(r);
	case '#':
		return read_hash(r, at);
	case '\'':
		return cons_at(at.line, vm.sym_quote,
			       list_of(1, read_inner(r, at)));
	default:
		reader_fail(at, "unexpected )");
	}
}

// The symbol table keeps the name.
void reader_init(struct reader *r, int fd, const char *name)
{
	r->fd = fd;
	r->ended = false;
	r->at.file = symbol_of(symbol_named(name))->name;
	r->at.line = 1;
	r->pos = r->len = 0;
}

value reader_datum(struct reader *r)
{
	skip_space(r);
	vm.at = r->at;
	value v = read_datum(r);
	if (v == NONE)
		reader_fail(r->at, "unexpected dot");
	return v;
}
