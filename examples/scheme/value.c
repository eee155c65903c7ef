// value.c - objects: making them, symbols, equality, errors.
#include "scheme.h"

#include <stdarg.h>
#include <string.h>

struct vm vm;

_Noreturn void fail(const char *who, const char *what, value irritant)
{
	fflush(stdout);
	if (vm.where)
		fprintf(stderr, "%s:%u: ", string_of(vm.where->file)->text,
			vm.where->line);
	if (who)
		fprintf(stderr, "%s: ", who);
	fputs(what, stderr);
	if (irritant != NONE) {
		fputs(": ", stderr);
		print_brief(stderr, irritant);
	}
	fputc('\n', stderr);
	longjmp(vm.top, TOP_ERROR);
}

_Noreturn void wrong(const char *what, value irritant)
{
	fail(vm.callee->b->name, what, irritant);
}

_Noreturn void out_of_memory(void)
{
	fail(NULL, "out of memory", NONE);
}

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

value make_symbol(value name)
{
	struct symbol *s = must(rt_alloc(sizeof *s));

	s->head.type = SYMBOL;
	s->global = UNBOUND;
	s->name = name;
	return (value)s;
}

static size_t hash_text(const char *text, size_t len)
{
	uint64_t h = 14695981039346656037u; // FNV-1a

	for (size_t i = 0; i < len; i++)
		h = (h ^ (unsigned char)text[i]) * 1099511628211u;
	return h;
}

static void grow_symbols(void)
{
	size_t n = vm.nbuckets ? 2 * vm.nbuckets : 512;
	struct symbol **to = must(rt_alloc(n * sizeof *to));

	for (size_t i = 0; i < vm.nbuckets; i++) {
		for (struct symbol *s = vm.symbols[i], *next; s; s = next) {
			struct string *name = string_of(s->name);
			size_t h = hash_text(name->text, name->head.len);

			next = s->next;
			RT_STORE(s, &s->next, to[h & (n - 1)]);
			RT_STORE(to, &to[h & (n - 1)], s);
		}
	}
	vm.symbols = to;
	vm.nbuckets = n;
}

value intern(const char *text, size_t len)
{
	if (vm.nsymbols >= vm.nbuckets)
		grow_symbols();
	struct symbol **bucket =
	    &vm.symbols[hash_text(text, len) & (vm.nbuckets - 1)];

	for (struct symbol *s = *bucket; s; s = s->next) {
		struct string *name = string_of(s->name);

		if (name->head.len == len && !memcmp(name->text, text, len))
			return (value)s;
	}
	value made = make_symbol(make_string(text, len));
	symbol_of(made)->next = *bucket;
	RT_STORE(vm.symbols, bucket, made);
	vm.nsymbols++;
	return made;
}

value symbol_named(const char *name)
{
	return intern(name, strlen(name));
}

value primitive_named(const char *name)
{
	return symbol_of(symbol_named(name))->builtin;
}

void define_builtins(const struct builtin *b, size_t n)
{
	for (; n; b++, n--) {
		struct symbol *s = symbol_of(symbol_named(b->name));
		struct primitive *p = must(rt_alloc(sizeof *p));

		p->head.type = PRIMITIVE;
		p->head.len = b->min == b->max && b->min < VARIADIC
				  ? (uint32_t)b->min
				  : VARIADIC;
		p->b = b;
		s->global = s->builtin = (value)p;
	}
}

value list_of(int n, ...)
{
	value item[8];
	value list = NIL;
	va_list ap;

	va_start(ap, n);
	for (int i = 0; i < n; i++)
		item[i] = va_arg(ap, value);
	va_end(ap);
	while (n-- > 0)
		list = cons(item[n], list);
	return list;
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

bool eqv(value a, value b)
{
	return a == b ||
	       (is_flonum(a) && is_flonum(b) && double_of(a) == double_of(b));
}

value list_to_vector(value list)
{
	int64_t len = list_length(list);

	if (len < 0)
		wrong("not a list", list);
	value v = make_vector((size_t)len, NIL);
	for (value *p = vector_of(v)->item; list != NIL; list = cdr(list))
		*p++ = car(list);
	return v;
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
		return string_of(a)->head.len == string_of(b)->head.len &&
		       !memcmp(string_of(a)->text, string_of(b)->text,
			       string_of(a)->head.len);
	if (is_type(a, VECTOR) && is_type(b, VECTOR))
		return equal_vectors(vector_of(a), vector_of(b));
	return eqv(a, b);
}
