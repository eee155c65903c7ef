// list.c - pairs, lists, vectors and equality.
#include "scheme.h"

#include <string.h>

// ---- pairs

static struct pair *need_pair(value v)
{
	if (!is_pair(v))
		wrong("not a pair", v);
	return pair_of(v);
}

value prim_car(value v)
{
	return need_pair(v)->car;
}

value prim_cdr(value v)
{
	return need_pair(v)->cdr;
}

// prim_cxr is caar, cadr and so on.  The name it was called by, read from its
// right end, tells it which parts to take.
value prim_cxr(value v)
{
	const char *name = vm.callee->name;
	value at = v;

	for (const char *p = name + strlen(name) - 2; p > name; p--) {
		if (!is_pair(at))
			wrong("wrong shape", v);
		at = *p == 'a' ? car(at) : cdr(at);
	}
	return at;
}

value prim_set_car(value p, value v)
{
	struct pair *at = need_pair(p);

	RT_STORE(at, &at->car, v);
	return UNSPECIFIED;
}

value prim_set_cdr(value p, value v)
{
	struct pair *at = need_pair(p);

	RT_STORE(at, &at->cdr, v);
	return UNSPECIFIED;
}

value prim_is_pair(value v)
{
	return boolean(is_pair(v));
}

value prim_is_null(value v)
{
	return boolean(v == NIL);
}

value prim_is_list(value v)
{
	return boolean(list_length(v) >= 0);
}

// ---- lists

static int64_t need_index(value v)
{
	if (!is_fixnum(v) || fixnum_of(v) < 0)
		wrong("not an index", v);
	return fixnum_of(v);
}

value prim_list(int argc, value *a)
{
	value list = NIL;

	while (argc > 0)
		list = cons(a[--argc], list);
	return list;
}

value prim_length(value v)
{
	return fixnum(need_list(v));
}

value prim_append(int argc, value *a)
{
	struct builder b = EMPTY;

	for (int i = 0; i + 1 < argc; i++) {
		need_list(a[i]);
		for (value l = a[i]; l != NIL; l = cdr(l))
			builder_add(&b, car(l));
	}
	builder_end(&b, argc ? a[argc - 1] : NIL);
	return b.first;
}

value prim_reverse(value v)
{
	value r = NIL;

	need_list(v);
	for (; v != NIL; v = cdr(v))
		r = cons(car(v), r);
	return r;
}

value prim_list_tail(value list, value k)
{
	value v = list;

	for (int64_t n = need_index(k); n > 0; n--) {
		if (!is_pair(v))
			wrong("list too short", list);
		v = cdr(v);
	}
	return v;
}

value prim_list_ref(value list, value k)
{
	value v = prim_list_tail(list, k);

	if (!is_pair(v))
		wrong("list too short", list);
	return car(v);
}

// ---- equality and searching

bool eq(value a, value b)
{
	return a == b;
}

// The table in main.c says which comparison is meant: here for eq?, eqv? and
// equal?, below for memq, assoc and the like.
value prim_same(value a, value b)
{
	return boolean(vm.callee->same(a, b));
}

value prim_member(value x, value list)
{
	need_list(list);
	for (; list != NIL; list = cdr(list))
		if (vm.callee->same(x, car(list)))
			return list;
	return FALSE;
}

value prim_assoc(value x, value list)
{
	need_list(list);
	for (; list != NIL; list = cdr(list))
		if (vm.callee->same(x, need_pair(car(list))->car))
			return car(list);
	return FALSE;
}

// ---- procedures over lists

// heads returns a frame with the heads of n lists as arguments, and advances
// the lists.  Returns NULL if one of them has ended.
static value *heads(int n, value *lists)
{
	value *s = new_frame((size_t)n + 1);

	for (int i = 0; i < n; i++) {
		if (lists[i] == NIL)
			return NULL;
		s[i + 1] = need_pair(lists[i])->car;
		lists[i] = cdr(lists[i]);
	}
	return s;
}

value prim_map(int argc, value *a)
{
	struct builder b = EMPTY;

	for (value *s; (s = heads(argc - 1, a + 1));)
		builder_add(&b, call_back(a[0], argc - 1, s));
	return b.first;
}

value prim_for_each(int argc, value *a)
{
	for (value *s; (s = heads(argc - 1, a + 1));)
		call_back(a[0], argc - 1, s);
	return UNSPECIFIED;
}

// ---- vectors

static struct vector *need_vector(value v)
{
	if (!is_type(v, VECTOR))
		wrong("not a vector", v);
	return vector_of(v);
}

static value *need_item(value v, value k)
{
	struct vector *to = need_vector(v);

	if (!is_fixnum(k) || (uint64_t)fixnum_of(k) >= to->head.len)
		wrong("index out of range", k);
	return &to->item[fixnum_of(k)];
}

value prim_make_vector(int argc, value *a)
{
	return make_vector((size_t)need_index(a[0]),
			   argc == 2 ? a[1] : fixnum(0));
}

value prim_vector(int argc, value *a)
{
	value v = make_vector((size_t)argc, NIL);

	memcpy(vector_of(v)->item, a, (size_t)argc * sizeof *a);
	return v;
}

value prim_vector_ref(value v, value k)
{
	return *need_item(v, k);
}

value prim_vector_set(value v, value k, value x)
{
	value *item = need_item(v, k);

	RT_STORE(vector_of(v), item, x);
	return UNSPECIFIED;
}

value prim_vector_length(value v)
{
	return fixnum(need_vector(v)->head.len);
}

value prim_vector_to_list(value v)
{
	value list = NIL;

	for (uint32_t i = need_vector(v)->head.len; i-- > 0;)
		list = cons(vector_of(v)->item[i], list);
	return list;
}

value prim_list_to_vector(value rest)
{
	value v = make_vector((size_t)need_list(rest), NIL);

	for (value *p = vector_of(v)->item; rest != NIL; rest = cdr(rest))
		*p++ = car(rest);
	return v;
}
