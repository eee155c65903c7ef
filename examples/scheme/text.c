// text.c - characters, strings, symbols, and what communicates with the
// outside.
#include "scheme.h"

#include <string.h>

// ---- characters are bytes

static unsigned char need_char(value v)
{
	if (!is_character(v))
		wrong("not a character", v);
	return char_of(v);
}

value prim_is_char(value v)
{
	return boolean(is_character(v));
}

value prim_char_to_integer(value v)
{
	return fixnum(need_char(v));
}

value prim_integer_to_char(value v)
{
	if (!is_fixnum(v) || fixnum_of(v) < 0 || fixnum_of(v) > 255)
		wrong("not a character code", v);
	return character((char)fixnum_of(v));
}

value prim_char_equal(value a, value b)
{
	return boolean(need_char(a) == need_char(b));
}

value prim_char_less(value a, value b)
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

// need_position returns a number from low to limit.
static uint32_t need_position(value v, uint32_t low, uint32_t limit)
{
	if (!is_fixnum(v) || fixnum_of(v) < low || fixnum_of(v) > limit)
		wrong("index out of range", v);
	return (uint32_t)fixnum_of(v);
}

static char *need_place(value v, value k)
{
	struct string *s = need_string(v);

	if (s->head.len == 0)
		wrong("index out of range", k);
	return &s->text[need_position(k, 0, s->head.len - 1)];
}

value prim_make_string(int argc, value *a)
{
	value s = make_string(NULL, need_position(a[0], 0, UINT32_MAX));

	memset(string_of(s)->text, argc == 2 ? need_char(a[1]) : ' ',
	       string_of(s)->head.len);
	return s;
}

value prim_string_length(value v)
{
	return fixnum(need_string(v)->head.len);
}

value prim_string_ref(value v, value k)
{
	return character(*need_place(v, k));
}

value prim_string_set(value v, value k, value c)
{
	*need_place(v, k) = (char)need_char(c);
	return UNSPECIFIED;
}

value prim_string_append(int argc, value *a)
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

value prim_substring(int argc, value *a)
{
	struct string *s = need_string(a[0]);
	uint32_t len = s->head.len, from = need_position(a[1], 0, len);
	uint32_t to = argc == 3 ? need_position(a[2], from, len) : len;

	return make_string(s->text + from, to - from);
}

// order returns less than, equal to or more than zero.
static int order(value a, value b)
{
	struct string *s = need_string(a), *t = need_string(b);
	uint32_t m = s->head.len, n = t->head.len;
	int r = memcmp(s->text, t->text, m < n ? m : n);

	return r ? r : (m > n) - (m < n);
}

value prim_string_equal(value a, value b)
{
	return boolean(order(a, b) == 0);
}

value prim_string_less(value a, value b)
{
	return boolean(order(a, b) < 0);
}

value prim_string_to_list(value v)
{
	value list = NIL;

	for (uint32_t i = need_string(v)->head.len; i-- > 0;)
		list = cons(character(string_of(v)->text[i]), list);
	return list;
}

value prim_list_to_string(value list)
{
	value s = make_string(NULL, (size_t)need_list(list));

	for (char *to = string_of(s)->text; list != NIL; list = cdr(list))
		*to++ = (char)need_char(car(list));
	return s;
}

// ---- symbols and procedures

value prim_symbol_to_string(value v)
{
	if (!is_type(v, SYMBOL))
		wrong("not a symbol", v);
	struct string *name = string_of(symbol_of(v)->name);
	return make_string(name->text, name->head.len);
}

value prim_string_to_symbol(value v)
{
	struct string *s = need_string(v);

	return intern(s->text, s->head.len);
}

// The table in main.c tells string?, symbol? and vector? apart.
value prim_is_type(value v)
{
	return boolean(is_type(v, vm.callee->type));
}

value prim_is_procedure(value v)
{
	return boolean(is_type(v, CLOSURE) || is_type(v, PRIMITIVE));
}

value prim_is_boolean(value v)
{
	return boolean(v == TRUE || v == FALSE);
}

value prim_not(value v)
{
	return boolean(v == FALSE);
}

// ---- input and output

value prim_display(value v)
{
	print(stdout, v, false);
	return UNSPECIFIED;
}

value prim_write(value v)
{
	print(stdout, v, true);
	return UNSPECIFIED;
}

value prim_newline(void)
{
	fputc('\n', stdout);
	return UNSPECIFIED;
}

value prim_read(void)
{
	return reader_datum(&standard_input);
}

value prim_is_eof(value v)
{
	return boolean(v == END_OF_FILE);
}

// (error "text" irritant ...)
value prim_error(int argc, value *a)
{
	fail_begin();
	print(stderr, a[0], false);
	for (int i = 1; i < argc; i++) {
		fputc(' ', stderr);
		print_brief(stderr, a[i]);
	}
	fail_end();
}

value prim_exit(int argc, value *a)
{
	vm.status = argc == 0 || a[0] == TRUE ? 0
		    : is_fixnum(a[0])	      ? (int)fixnum_of(a[0]) & 255
					      : 1;
	longjmp(vm.top, TOP_EXIT);
}

value prim_gc(void)
{
	rt_gc();
	return UNSPECIFIED;
}
