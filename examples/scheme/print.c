// print.c - values as text.
//
// A circle is printed without end by display and write, and briefly by errors.
#include "node.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

const struct character_name character_names[NCHARACTER_NAMES] = {
    {"space", ' '}, {"newline", '\n'}, {"tab", '\t'}};

// The shortest decimal text that reads back as the same number.
static void flonum_text(double d, char text[NUMBER_TEXT])
{
	if (isnan(d)) {
		strcpy(text, "+nan.0");
		return;
	}
	if (isinf(d)) {
		strcpy(text, d > 0 ? "+inf.0" : "-inf.0");
		return;
	}
	for (int digits = 15; digits <= 17; digits++) {
		snprintf(text, NUMBER_TEXT, "%.*g", digits, d);
		if (strtod(text, NULL) == d)
			break;
	}
	if (!strpbrk(text, ".e"))
		strcat(text, ".0");
}

void number_text(value v, char text[NUMBER_TEXT])
{
	if (is_fixnum(v))
		snprintf(text, NUMBER_TEXT, "%" PRId64, fixnum_of(v));
	else
		flonum_text(double_of(v), text);
}

static void print_string(FILE *out, struct string *s)
{
	fputc('"', out);
	for (uint32_t i = 0; i < s->head.len; i++) {
		char c = s->text[i];

		if (c == '"' || c == '\\')
			fprintf(out, "\\%c", c);
		else if (c == '\n')
			fputs("\\n", out);
		else if (c == '\t')
			fputs("\\t", out);
		else
			fputc(c, out);
	}
	fputc('"', out);
}

static void print_character(FILE *out, char c)
{
	for (int i = 0; i < NCHARACTER_NAMES; i++) {
		if (character_names[i].c == c) {
			fprintf(out, "#\\%s", character_names[i].name);
			return;
		}
	}
	fprintf(out, "#\\%c", c);
}

static void put(FILE *out, value v, bool quoted);

// How many more values may be printed.
static int64_t budget;

static void print_list(FILE *out, value v, bool quoted)
{
	fputc('(', out);
	for (;;) {
		put(out, car(v), quoted);
		v = cdr(v);
		if (!is_pair(v) || budget < 0)
			break;
		fputc(' ', out);
	}
	if (v != NIL && budget >= 0) {
		fputs(" . ", out);
		put(out, v, quoted);
	}
	fputc(')', out);
}

static void print_vector(FILE *out, struct vector *v, bool quoted)
{
	fputs("#(", out);
	for (uint32_t i = 0; i < v->head.len && budget >= 0; i++) {
		if (i)
			fputc(' ', out);
		put(out, v->item[i], quoted);
	}
	fputc(')', out);
}

static void print_closure(FILE *out, struct closure *c)
{
	fputs("#<procedure", out);
	if (c->code->name != FALSE) {
		fputc(' ', out);
		put(out, c->code->name, false);
	}
	fputc('>', out);
}

static void print_constant(FILE *out, value v)
{
	static const char *const text[] = {"#f", "#t", "()", "", "#<eof>"};

	fputs(text[v >> 8], out);
}

static void print_object(FILE *out, value v, bool quoted)
{
	struct string *name;

	switch (((struct object *)v)->type) {
	case STRING:
		name = string_of(v);
		if (quoted)
			print_string(out, name);
		else
			fwrite(name->text, 1, name->head.len, out);
		break;
	case SYMBOL:
		name = string_of(symbol_of(v)->name);
		fwrite(name->text, 1, name->head.len, out);
		break;
	case VECTOR:
		print_vector(out, vector_of(v), quoted);
		break;
	case CLOSURE:
		print_closure(out, (struct closure *)v);
		break;
	case PRIMITIVE:
		fprintf(out, "#<procedure %s>",
			((struct primitive *)v)->b->name);
		break;
	case SYNTAX:
		fputs(((struct syntax *)v)->name, out);
		break;
	}
}

// Printing must never fail, because it makes error messages.
void put(FILE *out, value v, bool quoted)
{
	char text[NUMBER_TEXT];

	if (--budget < 0 || stack_is_low()) {
		fputs("...", out);
	} else if (is_pair(v)) {
		print_list(out, v, quoted);
	} else if (is_fixnum(v) || is_flonum(v)) {
		number_text(v, text);
		fputs(text, out);
	} else if (is_character(v)) {
		if (quoted)
			print_character(out, (char)char_of(v));
		else
			fputc(char_of(v), out);
	} else if ((v & 7) == TAG_OBJECT) {
		print_object(out, v, quoted);
	} else {
		print_constant(out, v);
	}
}

void print(FILE *out, value v, bool quoted)
{
	budget = INT64_MAX;
	put(out, v, quoted);
}

void print_brief(FILE *out, value v)
{
	budget = BRIEF;
	put(out, v, true);
}
