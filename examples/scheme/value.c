// value.c - objects: making them, symbols, lists, equality, errors.
#include "scheme.h"

#include <stdarg.h>
#include <string.h>

struct vm vm;

// ---- errors

void fail_begin(void)
{
	fflush(stdout);
	fprintf(stderr, "%s:%u: ", string_of(vm.at.file)->text, vm.at.line);
}

_Noreturn void fail_end(void)
{
	fputc('\n', stderr);
	longjmp(vm.top, TOP_ERROR);
}

_Noreturn void fail(const char *who, const char *what, value irritant)
{
	fail_begin();
	if (who)
		fprintf(stderr, "%s: ", who);
	fputs(what, stderr);
	if (irritant != NONE) {
		fputs(": ", stderr);
		print_brief(stderr, irritant);
	}
	fail_end();
}

_Noreturn void wrong(const char *what, value irritant)
{
	fail(vm.callee->name, what, irritant);
}

_Noreturn void out_of_memory(void)
{
	fail(NULL, "out of memory", NONE);
}

// ---- objects

value make_string(const char *text, size_t len)
{
	if (len >= UINT32_MAX)
		fail(NULL, "string too long", NONE);
	struct string *s = must(rt_alloc_noscan(sizeof *s + len + 1));

	s->head.type = STRING;
	s->head.len = (uint32_t)len;
	if (text)
		memcpy(s->text, text, len);
	return (value)s;
}

value make_vector(size_t len, value fill)
{
	if (len > UINT32_MAX)
		fail(NULL, "vector too long", NONE);
	struct vector *v = must(rt_alloc(sizeof *v + len * sizeof(value)));

	v->head.type = VECTOR;
	v->head.len = (uint32_t)len;
	for (size_t i = 0; i < len; i++)
		v->item[i] = fill;
	return (value)v;
}

// ---- symbols

value make_symbol(const char *text, size_t len)
{
	value name = make_string(text, len);
	struct symbol *s = must(rt_alloc(sizeof *s));

	s->head.type = SYMBOL;
	s->global = UNBOUND;
	s->name = name;
	return (value)s;
}

static struct symbol **bucket_of(const char *text, size_t len)
{
	uint64_t h = 14695981039346656037u; // FNV-1a

	for (size_t i = 0; i < len; i++)
		h = (h ^ (unsigned char)text[i]) * 1099511628211u;
	return &vm.symbols[h % NBUCKETS];
}

value intern(const char *text, size_t len)
{
	struct symbol **bucket = bucket_of(text, len);

	for (struct symbol *s = *bucket; s; s = s->next) {
		struct string *name = string_of(s->name);

		if (name->head.len == len && !memcmp(name->text, text, len))
			return (value)s;
	}
	value v = make_symbol(text, len);
	symbol_of(v)->next = *bucket;
	*bucket = symbol_of(v);
	return v;
}

value symbol_named(const char *name)
{
	return intern(name, strlen(name));
}

void define_primitive(const struct builtin *b)
{
	struct symbol *s = symbol_of(symbol_named(b->name));
	struct primitive *p = must(rt_alloc(sizeof *p));

	p->head.type = PRIMITIVE;
	p->b = b;
	RT_STORE(s, &s->global, p);
}

// ---- lists

void builder_add(struct builder *b, value v)
{
	value cell = cons(v, NIL);

	builder_end(b, cell);
	b->last = pair_of(cell);
}

void builder_end(struct builder *b, value tail)
{
	if (b->last)
		RT_STORE(b->last, &b->last->cdr, tail);
	else
		b->first = tail;
}

value list_of(int n, ...)
{
	struct builder b = EMPTY;
	va_list ap;

	va_start(ap, n);
	for (int i = 0; i < n; i++)
		builder_add(&b, va_arg(ap, value));
	va_end(ap);
	return b.first;
}

int64_t list_length(value list)
{
	value slow = list;
	int64_t n = 0;

	for (; is_pair(list); list = cdr(list), n++) {
		if (n && list == slow)
			return -1; // a circle: the slow walker was met
		if (n & 1)
			slow = cdr(slow);
	}
	return list == NIL ? n : -1;
}

int64_t need_list(value v)
{
	int64_t n = list_length(v);

	if (n < 0)
		wrong("not a list", v);
	return n;
}

// ---- equality

bool eqv(value a, value b)
{
	return a == b ||
	       (is_flonum(a) && is_flonum(b) && double_of(a) == double_of(b));
}

static bool equal_strings(struct string *a, struct string *b)
{
	return a->head.len == b->head.len &&
	       !memcmp(a->text, b->text, a->head.len);
}

static bool equal_vectors(struct vector *a, struct vector *b)
{
	if (a->head.len != b->head.len)
		return false;
	for (uint32_t i = 0; i < a->head.len; i++)
		if (!equal(a->item[i], b->item[i]))
			return false;
	return true;
}

bool equal(value a, value b)
{
	check_stack();
	for (; is_pair(a) && is_pair(b); a = cdr(a), b = cdr(b))
		if (!equal(car(a), car(b)))
			return false;
	if (is_type(a, STRING) && is_type(b, STRING))
		return equal_strings(string_of(a), string_of(b));
	if (is_type(a, VECTOR) && is_type(b, VECTOR))
		return equal_vectors(vector_of(a), vector_of(b));
	return eqv(a, b);
}
