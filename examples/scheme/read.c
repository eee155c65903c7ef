// read.c - the reader: bytes to data, and where each list stood.
//
// The input is read in a blocking region: a thread that waits for a person
// to type holds up no collection.
#include "scheme.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct reader standard_input;

// ---- locations: an open hash from pairs to places, refilled by every form

static struct location *location_slot(struct location *table, size_t n,
				      value pair)
{
	size_t i = (pair >> 4) * 0x9e3779b97f4a7c15u >> 20;

	while (table[i & (n - 1)].pair && table[i & (n - 1)].pair != pair)
		i++;
	return &table[i & (n - 1)];
}

static void grow_locations(void)
{
	size_t n = vm.location_slots ? 2 * vm.location_slots : 256;
	struct location *to = must(rt_alloc(n * sizeof *to));

	for (size_t i = 0; i < vm.location_slots; i++)
		if (vm.locations[i].pair)
			*location_slot(to, n, vm.locations[i].pair) =
			    vm.locations[i];
	vm.locations = to;
	vm.location_slots = n;
}

static void record_location(value pair, struct place at)
{
	if (2 * vm.nlocations >= vm.location_slots)
		grow_locations();
	struct location *l =
	    location_slot(vm.locations, vm.location_slots, pair);

	RT_STORE(vm.locations, &l->pair, pair);
	RT_STORE(vm.locations, &l->at.file, at.file);
	l->at.line = at.line;
	vm.nlocations++;
}

// The old table is left to the collector: vm.where may still point into it,
// and a fresh one comes zeroed.
static void forget_locations(void)
{
	vm.locations = NULL;
	vm.nlocations = vm.location_slots = 0;
}

const struct place *locate(value pair)
{
	if (!vm.location_slots)
		return NULL;
	struct location *l =
	    location_slot(vm.locations, vm.location_slots, pair);

	return l->pair ? &l->at : NULL;
}

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
	return r->pos < r->len ? r->buf[r->pos] : EOF;
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

_Noreturn static void reader_fail(struct reader *r, const char *what)
{
	vm.where = &r->at;
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

static value read_integer(const char *text, int radix)
{
	char *end;

	errno = 0;
	long long n = strtoll(text, &end, radix);
	if (*end || end == text)
		return NONE;
	if (errno || n > FIXNUM_MAX || n < FIXNUM_MIN)
		return flonum(strtod(text, NULL));
	return fixnum(n);
}

value read_number(const char *text, int radix)
{
	if (!strcmp(text, "+inf.0") || !strcmp(text, "-inf.0"))
		return flonum(strtod(text, NULL) * 1e308 * 10);
	if (!strcmp(text, "+nan.0"))
		return flonum(__builtin_nan(""));

	size_t sign = *text == '+' || *text == '-';
	size_t len = strlen(text);
	const char *allowed = "0123456789.eE+-";
	char *end;

	if (radix != 10)
		return strchr("+- \t", text[sign]) ? NONE
						   : read_integer(text, radix);
	if (strspn(text, allowed) != len || !strpbrk(text, "0123456789") ||
	    !strchr("0123456789.", text[sign]))
		return NONE;
	if (strspn(text + sign, "0123456789") == len - sign)
		return read_integer(text, 10);
	double d = strtod(text, &end);
	return *end ? NONE : flonum(d);
}

// ---- data

static bool is_delimiter(int c)
{
	return c == EOF || strchr(" \t\r\n()\";'`,", c);
}

static void skip_block_comment(struct reader *r)
{
	for (int depth = 1, c; depth > 0;) {
		c = next(r);
		if (c == EOF)
			reader_fail(r, "unexpected end of file in #|");
		if (c == '|' && peek(r) == '#')
			depth--;
		else if (c == '#' && peek(r) == '|')
			depth++;
		else
			continue;
		next(r);
	}
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
			reader_fail(r, "unexpected end of file in a string");
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
		reader_fail(r, "unexpected end of file in a character");
	struct text t = read_token(r);
	if (t.len == 1)
		return character((unsigned char)t.bytes[0]);
	for (int i = 0; i < NCHARACTER_NAMES; i++)
		if (!strcmp(t.bytes, character_names[i].name))
			return character(character_names[i].c);
	reader_fail(r, "unknown character name");
}

static value read_datum(struct reader *r);

static value read_list(struct reader *r, struct place at)
{
	value list = NIL;
	struct pair *last = NULL;

	for (;;) {
		int c = skip_space(r);

		if (c == EOF) {
			r->at = at;
			reader_fail(r, "unexpected end of file in this list");
		}
		if (c == ')') {
			next(r);
			return list;
		}
		value item = read_datum(r);
		if (item == NONE)
			continue;
		if (item == UNBOUND) { // a dot
			if (!last)
				reader_fail(r, "unexpected dot");
			do
				item = read_datum(r);
			while (item == NONE);
			RT_STORE(last, &last->cdr, item);
			if (skip_space(r) != ')')
				reader_fail(r, "bad dotted list");
			continue;
		}
		value cell = cons(item, NIL);
		if (r->locate && last == NULL)
			record_location(cell, at);
		if (last)
			RT_STORE(last, &last->cdr, cell);
		else
			list = cell;
		last = pair_of(cell);
	}
}

// What follows a #.  NONE: it was a comment.
static value read_hash(struct reader *r)
{
	switch (peek(r)) {
	case '(':
		next(r);
		return list_to_vector(read_list(r, r->at));
	case '\\':
		next(r);
		return read_character(r);
	case '|':
		next(r);
		skip_block_comment(r);
		return NONE;
	case ';':
		next(r);
		while (read_datum(r) == NONE)
			;
		return NONE;
	}
	struct text t = read_token(r);

	if (!strcmp(t.bytes, "t") || !strcmp(t.bytes, "true"))
		return TRUE;
	if (!strcmp(t.bytes, "f") || !strcmp(t.bytes, "false"))
		return FALSE;
	int radix = t.bytes[0] == 'x' ? 16 : t.bytes[0] == 'b' ? 2 : 0;
	value n = radix ? read_number(t.bytes + 1, radix) : NONE;
	if (n == NONE)
		reader_fail(r, "unknown syntax after #");
	return n;
}

static value read_quoted(struct reader *r, value symbol)
{
	struct place at = r->at;
	value v;

	do
		v = read_datum(r);
	while (v == NONE);
	if (v == END_OF_FILE)
		reader_fail(r, "unexpected end of file after a quote");
	v = list_of(2, symbol, v);
	if (r->locate)
		record_location(v, at);
	return v;
}

static value read_atom(struct reader *r)
{
	struct text t = read_token(r);

	if (t.len == 1 && t.bytes[0] == '.')
		return UNBOUND;
	value n = read_number(t.bytes, 10);
	return n == NONE ? intern(t.bytes, t.len) : n;
}

// read_datum returns the next datum, END_OF_FILE, NONE for a comment that
// counts as one, or UNBOUND for a dot.
static value read_datum(struct reader *r)
{
	check_stack();
	int c = skip_space(r);
	struct place at = r->at;

	switch (c) {
	case EOF:
		return END_OF_FILE;
	case '(':
		next(r);
		return read_list(r, at);
	case ')':
		next(r);
		reader_fail(r, "unexpected )");
	case '"':
		next(r);
		return read_string(r);
	case '#':
		next(r);
		return read_hash(r);
	case '\'':
		next(r);
		return read_quoted(r, vm.sym_quote);
	case '`':
		next(r);
		return read_quoted(r, vm.sym_quasiquote);
	case ',':
		next(r);
		if (peek(r) != '@')
			return read_quoted(r, vm.sym_unquote);
		next(r);
		return read_quoted(r, vm.sym_splice);
	}
	return read_atom(r);
}

// The symbol table keeps the name.
void reader_init(struct reader *r, int fd, const char *name)
{
	r->fd = fd;
	r->locate = true;
	r->ended = false;
	r->at.file = symbol_of(symbol_named(name))->name;
	r->at.line = 1;
	r->pos = r->len = 0;
}

value reader_datum(struct reader *r)
{
	value v;

	if (r->locate) {
		forget_locations();
		skip_space(r);
		vm.form = r->at;
		vm.where = &vm.form;
	}
	do
		v = read_datum(r);
	while (v == NONE);
	if (v == UNBOUND)
		reader_fail(r, "unexpected dot");
	return v;
}

value reader_line(struct reader *r)
{
	struct text t = {0};
	int c;

	if (peek(r) == EOF)
		return END_OF_FILE;
	while ((c = next(r)) != EOF && c != '\n')
		text_add(&t, c);
	return make_string(t.bytes, t.len);
}
