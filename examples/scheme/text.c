// text.c - characters, strings, symbols, and what talks to the outside.
#include "scheme.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

// ---- characters are bytes

static unsigned char need_char(value v)
{
	if (!is_character(v))
		wrong("not a character", v);
	return char_of(v);
}

static value prim_is_char(value v)
{
	return boolean(is_character(v));
}

static value char_to_integer(value v)
{
	return fixnum(need_char(v));
}

static value integer_to_char(value v)
{
	if (!is_fixnum(v) || fixnum_of(v) < 0 || fixnum_of(v) > 255)
		wrong("not a character code", v);
	return character((unsigned char)fixnum_of(v));
}

static value char_upcase(value v)
{
	return character((unsigned char)toupper(need_char(v)));
}

static value char_downcase(value v)
{
	return character((unsigned char)tolower(need_char(v)));
}

static value is_alphabetic(value v)
{
	return boolean(isalpha(need_char(v)));
}

static value is_numeric(value v)
{
	return boolean(isdigit(need_char(v)));
}

static value is_whitespace(value v)
{
	return boolean(isspace(need_char(v)));
}

static value char_equal(value a, value b)
{
	return boolean(need_char(a) == need_char(b));
}

static value char_less(value a, value b)
{
	return boolean(need_char(a) < need_char(b));
}

// ---- strings

static struct string *need_string(value v)
{
	if (!is_type(v, STRING))
		wrong("not a string", v);
	return string_of(v);
}

// A position in s from low up to its end.
static uint32_t need_position(struct string *s, value v, uint32_t low)
{
	if (!is_fixnum(v) || fixnum_of(v) < low || fixnum_of(v) > s->head.len)
		wrong("index out of range", v);
	return (uint32_t)fixnum_of(v);
}

static char *need_place(value v, value k)
{
	struct string *s = need_string(v);
	uint32_t i = need_position(s, k, 0);

	if (i == s->head.len)
		wrong("index out of range", k);
	return &s->text[i];
}

static value prim_is_string(value v)
{
	return boolean(is_type(v, STRING));
}

static value prim_make_string(int argc, value *a)
{
	if (!is_fixnum(a[0]) || fixnum_of(a[0]) < 0)
		wrong("not a length", a[0]);
	value s = make_string(NULL, (size_t)fixnum_of(a[0]));

	memset(string_of(s)->text, argc == 2 ? need_char(a[1]) : ' ',
	       string_of(s)->head.len);
	return s;
}

static value prim_string(int argc, value *a)
{
	value s = make_string(NULL, (size_t)argc);

	for (int i = 0; i < argc; i++)
		string_of(s)->text[i] = (char)need_char(a[i]);
	return s;
}

static value string_length(value v)
{
	return fixnum(need_string(v)->head.len);
}

static value string_ref(value v, value k)
{
	return character((unsigned char)*need_place(v, k));
}

static value string_set(value v, value k, value c)
{
	*need_place(v, k) = (char)need_char(c);
	return UNSPECIFIED;
}

static value string_append(int argc, value *a)
{
	size_t len = 0;

	for (int i = 0; i < argc; i++)
		len += need_string(a[i])->head.len;
	value s = make_string(NULL, len);
	char *to = string_of(s)->text;
	for (int i = 0; i < argc; i++) {
		memcpy(to, string_of(a[i])->text, string_of(a[i])->head.len);
		to += string_of(a[i])->head.len;
	}
	return s;
}

static value substring(int argc, value *a)
{
	struct string *s = need_string(a[0]);
	uint32_t from = need_position(s, a[1], 0);
	uint32_t to = argc == 3 ? need_position(s, a[2], from) : s->head.len;

	return make_string(s->text + from, to - from);
}

static value string_copy(value v)
{
	return make_string(need_string(v)->text, string_of(v)->head.len);
}

static int order(value a, value b)
{
	struct string *s = need_string(a), *t = need_string(b);
	uint32_t n = s->head.len < t->head.len ? s->head.len : t->head.len;
	int r = memcmp(s->text, t->text, n);

	return r ? r
		 : (s->head.len > t->head.len) - (s->head.len < t->head.len);
}

static value string_equal(value a, value b)
{
	return boolean(order(a, b) == 0);
}

static value string_less(value a, value b)
{
	return boolean(order(a, b) < 0);
}

static value string_map(value v, int (*how)(int))
{
	value s = string_copy(v);

	for (uint32_t i = 0; i < string_of(s)->head.len; i++)
		string_of(s)->text[i] =
		    (char)how((unsigned char)string_of(s)->text[i]);
	return s;
}

static value string_upcase(value v)
{
	return string_map(v, toupper);
}

static value string_downcase(value v)
{
	return string_map(v, tolower);
}

static value string_to_list(value v)
{
	value list = NIL;

	for (uint32_t i = need_string(v)->head.len; i-- > 0;)
		list =
		    cons(character((unsigned char)string_of(v)->text[i]), list);
	return list;
}

static value list_to_string(value list)
{
	int64_t len = list_length(list);

	if (len < 0)
		wrong("not a list", list);
	value s = make_string(NULL, (size_t)len);
	for (char *to = string_of(s)->text; list != NIL; list = cdr(list))
		*to++ = (char)need_char(car(list));
	return s;
}

// (string-search text pattern start): the position of pattern, or #f.
static value string_search(value text, value pattern, value start)
{
	struct string *s = need_string(text), *p = need_string(pattern);
	uint32_t from = need_position(s, start, 0);

	for (uint32_t i = from; i + p->head.len <= s->head.len; i++)
		if (!memcmp(s->text + i, p->text, p->head.len))
			return fixnum(i);
	return FALSE;
}

// ---- symbols and procedures

static value prim_is_symbol(value v)
{
	return boolean(is_type(v, SYMBOL));
}

static value symbol_to_string(value v)
{
	if (!is_type(v, SYMBOL))
		wrong("not a symbol", v);
	return string_copy(symbol_of(v)->name);
}

static value string_to_symbol(value v)
{
	struct string *s = need_string(v);

	return intern(s->text, s->head.len);
}

static value gensym(void)
{
	static int count;
	char name[24];

	snprintf(name, sizeof name, "g%d", ++count);
	return make_symbol(make_string(name, strlen(name)));
}

static value prim_is_procedure(value v)
{
	return boolean(is_procedure(v));
}

static value is_boolean(value v)
{
	return boolean(v == TRUE || v == FALSE);
}

static value prim_not(value v)
{
	return boolean(v == FALSE);
}

// ---- input and output

static value display(value v)
{
	print(stdout, v, false);
	return UNSPECIFIED;
}

static value prim_write(value v)
{
	print(stdout, v, true);
	return UNSPECIFIED;
}

static value newline(void)
{
	fputc('\n', stdout);
	return UNSPECIFIED;
}

static value write_char(value v)
{
	fputc(need_char(v), stdout);
	return UNSPECIFIED;
}

static value prim_read(void)
{
	bool locate = standard_input.locate;

	standard_input.locate = false; // data: the places of code stay
	value v = reader_datum(&standard_input);
	standard_input.locate = locate;
	return v;
}

static value read_line(void)
{
	return reader_line(&standard_input);
}

static value is_eof(value v)
{
	return boolean(v == END_OF_FILE);
}

static value eof_object(void)
{
	return END_OF_FILE;
}

// (error "text" irritant ...)
static value error(int argc, value *a)
{
	fflush(stdout);
	char *text;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	if (!out)
		out_of_memory();
	print(out, a[0], false);
	for (int i = 1; i < argc; i++) {
		fputc(' ', out);
		print_brief(out, a[i]);
	}
	fclose(out);
	value s = make_string(text, len);
	free(text);
	fail(NULL, string_of(s)->text, NONE);
}

static value prim_exit(int argc, value *a)
{
	vm.status = argc == 0 || a[0] == TRUE ? 0
		    : is_fixnum(a[0])	      ? (int)fixnum_of(a[0]) & 255
					      : 1;
	longjmp(vm.top, TOP_EXIT);
}

static value runtime(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return flonum((double)t.tv_sec + (double)t.tv_nsec * 1e-9);
}

static value gc(void)
{
	rt_gc();
	return UNSPECIFIED;
}

static const struct builtin texts[] = {
    {"char?", 1, 1, {.f1 = prim_is_char}},
    {"char->integer", 1, 1, {.f1 = char_to_integer}},
    {"integer->char", 1, 1, {.f1 = integer_to_char}},
    {"char-upcase", 1, 1, {.f1 = char_upcase}},
    {"char-downcase", 1, 1, {.f1 = char_downcase}},
    {"char-alphabetic?", 1, 1, {.f1 = is_alphabetic}},
    {"char-numeric?", 1, 1, {.f1 = is_numeric}},
    {"char-whitespace?", 1, 1, {.f1 = is_whitespace}},
    {"char=?", 2, 2, {.f2 = char_equal}},
    {"char<?", 2, 2, {.f2 = char_less}},
    {"string?", 1, 1, {.f1 = prim_is_string}},
    {"make-string", 1, 2, {.fn = prim_make_string}},
    {"string", 0, ANY, {.fn = prim_string}},
    {"string-length", 1, 1, {.f1 = string_length}},
    {"string-ref", 2, 2, {.f2 = string_ref}},
    {"string-set!", 3, 3, {.f3 = string_set}},
    {"string-append", 0, ANY, {.fn = string_append}},
    {"substring", 2, 3, {.fn = substring}},
    {"string-copy", 1, 1, {.f1 = string_copy}},
    {"string=?", 2, 2, {.f2 = string_equal}},
    {"string<?", 2, 2, {.f2 = string_less}},
    {"string-upcase", 1, 1, {.f1 = string_upcase}},
    {"string-downcase", 1, 1, {.f1 = string_downcase}},
    {"string->list", 1, 1, {.f1 = string_to_list}},
    {"list->string", 1, 1, {.f1 = list_to_string}},
    {"string-search", 3, 3, {.f3 = string_search}},
    {"symbol?", 1, 1, {.f1 = prim_is_symbol}},
    {"symbol->string", 1, 1, {.f1 = symbol_to_string}},
    {"string->symbol", 1, 1, {.f1 = string_to_symbol}},
    {"gensym", 0, 0, {.f0 = gensym}},
    {"procedure?", 1, 1, {.f1 = prim_is_procedure}},
    {"boolean?", 1, 1, {.f1 = is_boolean}},
    {"not", 1, 1, {.f1 = prim_not}},
    {"display", 1, 1, {.f1 = display}},
    {"write", 1, 1, {.f1 = prim_write}},
    {"newline", 0, 0, {.f0 = newline}},
    {"write-char", 1, 1, {.f1 = write_char}},
    {"read", 0, 0, {.f0 = prim_read}},
    {"read-line", 0, 0, {.f0 = read_line}},
    {"eof-object?", 1, 1, {.f1 = is_eof}},
    {"eof-object", 0, 0, {.f0 = eof_object}},
    {"error", 1, ANY, {.fn = error}},
    {"exit", 0, 1, {.fn = prim_exit}},
    {"runtime", 0, 0, {.f0 = runtime}},
    {"gc", 0, 0, {.f0 = gc}},
};

void define_text(void)
{
	define_builtins(texts, sizeof texts / sizeof *texts);
}
