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

// follow takes the path of a c...r name, from its right end: "ad" is cadr.
static value follow(const char *path, value v)
{
	value at = v;

	for (const char *p = path + strlen(path); p-- > path;) {
		if (!is_pair(at))
			wrong("wrong shape", v);
		at = *p == 'a' ? car(at) : cdr(at);
	}
	return at;
}

static value prim_car(value v)
{
	return need_pair(v)->car;
}

static value prim_cdr(value v)
{
	return need_pair(v)->cdr;
}

static value prim_caar(value v)
{
	return follow("aa", v);
}

static value prim_cadr(value v)
{
	return follow("ad", v);
}

static value prim_cdar(value v)
{
	return follow("da", v);
}

static value prim_cddr(value v)
{
	return follow("dd", v);
}

static value prim_caddr(value v)
{
	return follow("add", v);
}

static value prim_cdddr(value v)
{
	return follow("ddd", v);
}

static value prim_cadddr(value v)
{
	return follow("addd", v);
}

static value set_car(value p, value v)
{
	struct pair *at = need_pair(p);

	RT_STORE(at, &at->car, v);
	return UNSPECIFIED;
}

static value set_cdr(value p, value v)
{
	struct pair *at = need_pair(p);

	RT_STORE(at, &at->cdr, v);
	return UNSPECIFIED;
}

static value prim_is_pair(value v)
{
	return boolean(is_pair(v));
}

static value is_null(value v)
{
	return boolean(v == NIL);
}

static value is_list(value v)
{
	return boolean(list_length(v) >= 0);
}

// ---- a list under construction; its cells are fresh, so stores are plain

struct builder {
	value first;
	struct pair *last;
};

static void builder_add(struct builder *b, value v)
{
	value cell = cons(v, NIL);

	if (b->last)
		RT_STORE(b->last, &b->last->cdr, cell);
	else
		b->first = cell;
	b->last = pair_of(cell);
}

static value builder_end(struct builder *b, value tail)
{
	if (!b->last)
		return tail;
	RT_STORE(b->last, &b->last->cdr, tail);
	return b->first;
}

// ---- lists

static int64_t need_list(value v)
{
	int64_t n = list_length(v);

	if (n < 0)
		wrong("not a list", v);
	return n;
}

static int64_t need_index(value v)
{
	if (!is_fixnum(v) || fixnum_of(v) < 0)
		wrong("not an index", v);
	return fixnum_of(v);
}

static value prim_list(int argc, value *a)
{
	value list = NIL;

	while (argc > 0)
		list = cons(a[--argc], list);
	return list;
}

static value cons_star(int argc, value *a)
{
	value list = a[--argc];

	while (argc > 0)
		list = cons(a[--argc], list);
	return list;
}

static value make_list(int argc, value *a)
{
	value list = NIL;

	for (int64_t n = need_index(a[0]); n > 0; n--)
		list = cons(argc == 2 ? a[1] : UNSPECIFIED, list);
	return list;
}

static value iota(int argc, value *a)
{
	value list = NIL;
	int64_t start = argc == 2 ? need_index(a[1]) : 0;

	for (int64_t n = need_index(a[0]); n-- > 0;)
		list = cons(fixnum(start + n), list);
	return list;
}

static value length(value v)
{
	return fixnum(need_list(v));
}

static value append(int argc, value *a)
{
	struct builder b = {NIL, NULL};

	for (int i = 0; i + 1 < argc; i++) {
		need_list(a[i]);
		for (value l = a[i]; l != NIL; l = cdr(l))
			builder_add(&b, car(l));
	}
	return builder_end(&b, argc ? a[argc - 1] : NIL);
}

static value reverse(value v)
{
	value r = NIL;

	need_list(v);
	for (; v != NIL; v = cdr(v))
		r = cons(car(v), r);
	return r;
}

static value list_tail(value list, value k)
{
	value v = list;

	for (int64_t n = need_index(k); n > 0; n--) {
		if (!is_pair(v))
			wrong("list too short", list);
		v = cdr(v);
	}
	return v;
}

static value list_ref(value list, value k)
{
	value v = list_tail(list, k);

	if (!is_pair(v))
		wrong("list too short", list);
	return car(v);
}

static value last_pair(value v)
{
	need_pair(v);
	while (is_pair(cdr(v)))
		v = cdr(v);
	return v;
}

static value list_copy(value v)
{
	value both[] = {v, NIL};

	return append(2, both);
}

// ---- equality and searching

typedef bool same_fn(value, value);

static bool eq(value a, value b)
{
	return a == b;
}

static value find_member(value x, value list, same_fn *same)
{
	need_list(list);
	for (; list != NIL; list = cdr(list))
		if (same(x, car(list)))
			return list;
	return FALSE;
}

static value find_entry(value x, value list, same_fn *same)
{
	need_list(list);
	for (; list != NIL; list = cdr(list))
		if (same(x, need_pair(car(list))->car))
			return car(list);
	return FALSE;
}

static value memq(value x, value list)
{
	return find_member(x, list, eq);
}

static value memv(value x, value list)
{
	return find_member(x, list, eqv);
}

static value member(value x, value list)
{
	return find_member(x, list, equal);
}

static value assq(value x, value list)
{
	return find_entry(x, list, eq);
}

static value assv(value x, value list)
{
	return find_entry(x, list, eqv);
}

static value assoc(value x, value list)
{
	return find_entry(x, list, equal);
}

static value prim_eq(value a, value b)
{
	return boolean(a == b);
}

static value prim_eqv(value a, value b)
{
	return boolean(eqv(a, b));
}

static value prim_equal(value a, value b)
{
	return boolean(equal(a, b));
}

// ---- procedures over lists

static value call1(value fn, value a)
{
	value s[FRAME_MAX] = {0, a};

	return call_back(fn, 1, s);
}

static value call2(value fn, value a, value b)
{
	value s[FRAME_MAX] = {0, a, b};

	return call_back(fn, 2, s);
}

// step puts the heads of the lists into s[1] and up and moves the lists on;
// false: one has ended.
static bool step(int n, value *lists, value *s)
{
	for (int i = 0; i < n; i++) {
		if (!is_pair(lists[i])) {
			if (lists[i] != NIL)
				wrong("not a list", lists[i]);
			return false;
		}
		s[i + 1] = car(lists[i]);
		lists[i] = cdr(lists[i]);
	}
	return true;
}

static void check_lists(int n)
{
	if (n + 2 > FRAME_MAX)
		wrong("too many lists", fixnum(n));
}

static value map(int argc, value *a)
{
	struct builder b = {NIL, NULL};
	value s[FRAME_MAX];

	check_lists(argc - 1);
	while (step(argc - 1, a + 1, s))
		builder_add(&b, call_back(a[0], argc - 1, s));
	return b.first;
}

static value for_each(int argc, value *a)
{
	value s[FRAME_MAX];

	check_lists(argc - 1);
	while (step(argc - 1, a + 1, s))
		call_back(a[0], argc - 1, s);
	return UNSPECIFIED;
}

static value filter(value fn, value list)
{
	struct builder b = {NIL, NULL};

	need_list(list);
	for (; is_pair(list); list = cdr(list))
		if (call1(fn, car(list)) != FALSE)
			builder_add(&b, car(list));
	return b.first;
}

static value fold_left(value fn, value r, value list)
{
	need_list(list);
	for (; is_pair(list); list = cdr(list))
		r = call2(fn, r, car(list));
	return r;
}

static value fold_right(value fn, value r, value list)
{
	for (list = reverse(list); is_pair(list); list = cdr(list))
		r = call2(fn, car(list), r);
	return r;
}

static value reduce(value fn, value r, value list)
{
	need_list(list);
	return list == NIL ? r : fold_left(fn, car(list), cdr(list));
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

static value prim_is_vector(value v)
{
	return boolean(is_type(v, VECTOR));
}

static value prim_make_vector(int argc, value *a)
{
	return make_vector((size_t)need_index(a[0]),
			   argc == 2 ? a[1] : fixnum(0));
}

static value prim_vector(int argc, value *a)
{
	value v = make_vector((size_t)argc, NIL);

	memcpy(vector_of(v)->item, a, (size_t)argc * sizeof *a);
	return v;
}

static value vector_ref(value v, value k)
{
	return *need_item(v, k);
}

static value vector_set(value v, value k, value x)
{
	value *item = need_item(v, k);

	RT_STORE(vector_of(v), item, x);
	return UNSPECIFIED;
}

static value vector_length(value v)
{
	return fixnum(need_vector(v)->head.len);
}

static value vector_to_list(value v)
{
	value list = NIL;

	for (uint32_t i = need_vector(v)->head.len; i-- > 0;)
		list = cons(vector_of(v)->item[i], list);
	return list;
}

static value vector_fill(value v, value x)
{
	for (uint32_t i = 0; i < need_vector(v)->head.len; i++)
		RT_STORE(vector_of(v), &vector_of(v)->item[i], x);
	return UNSPECIFIED;
}

static value vector_map(value fn, value v)
{
	uint32_t len = need_vector(v)->head.len;
	value to = make_vector(len, UNSPECIFIED);

	for (uint32_t i = 0; i < len; i++) {
		value x = call1(fn, vector_of(v)->item[i]);

		RT_STORE(vector_of(to), &vector_of(to)->item[i], x);
	}
	return to;
}

static value vector_for_each(value fn, value v)
{
	for (uint32_t i = 0; i < need_vector(v)->head.len; i++)
		call1(fn, vector_of(v)->item[i]);
	return UNSPECIFIED;
}

// ---- sorting: a stable merge sort of n items from item lo on

static void merge(struct vector *from, struct vector *to, size_t lo, size_t n,
		  value less)
{
	size_t mid = lo + n / 2, end = lo + n;

	for (size_t i = lo, j = mid, k = lo; k < end; k++) {
		value *item = from->item;
		bool right = i == mid || (j < end && call2(less, item[j],
							   item[i]) != FALSE);
		value x = item[right ? j++ : i++];

		RT_STORE(to, &to->item[k], x);
	}
}

// sort_range sorts items of v; other begins as a copy of them.
static void sort_range(struct vector *v, struct vector *other, size_t lo,
		       size_t n, value less)
{
	if (n < 2)
		return;
	sort_range(other, v, lo, n / 2, less);
	sort_range(other, v, lo + n / 2, n - n / 2, less);
	merge(other, v, lo, n, less);
}

static value sort(value seq, value less)
{
	value list = is_type(seq, VECTOR) ? vector_to_list(seq) : seq;
	value v = list_to_vector(list), other = list_to_vector(list);

	sort_range(vector_of(v), vector_of(other), 0, vector_of(v)->head.len,
		   less);
	return is_type(seq, VECTOR) ? v : vector_to_list(v);
}

static const struct builtin lists[] = {
    {"cons", 2, 2, {.f2 = cons}},
    {"car", 1, 1, {.f1 = prim_car}},
    {"cdr", 1, 1, {.f1 = prim_cdr}},
    {"caar", 1, 1, {.f1 = prim_caar}},
    {"cadr", 1, 1, {.f1 = prim_cadr}},
    {"cdar", 1, 1, {.f1 = prim_cdar}},
    {"cddr", 1, 1, {.f1 = prim_cddr}},
    {"caddr", 1, 1, {.f1 = prim_caddr}},
    {"cdddr", 1, 1, {.f1 = prim_cdddr}},
    {"cadddr", 1, 1, {.f1 = prim_cadddr}},
    {"set-car!", 2, 2, {.f2 = set_car}},
    {"set-cdr!", 2, 2, {.f2 = set_cdr}},
    {"pair?", 1, 1, {.f1 = prim_is_pair}},
    {"null?", 1, 1, {.f1 = is_null}},
    {"list?", 1, 1, {.f1 = is_list}},
    {"list", 0, ANY, {.fn = prim_list}},
    {"cons*", 1, ANY, {.fn = cons_star}},
    {"make-list", 1, 2, {.fn = make_list}},
    {"iota", 1, 2, {.fn = iota}},
    {"length", 1, 1, {.f1 = length}},
    {"append", 0, ANY, {.fn = append}},
    {"reverse", 1, 1, {.f1 = reverse}},
    {"list-tail", 2, 2, {.f2 = list_tail}},
    {"list-ref", 2, 2, {.f2 = list_ref}},
    {"last-pair", 1, 1, {.f1 = last_pair}},
    {"list-copy", 1, 1, {.f1 = list_copy}},
    {"memq", 2, 2, {.f2 = memq}},
    {"memv", 2, 2, {.f2 = memv}},
    {"member", 2, 2, {.f2 = member}},
    {"assq", 2, 2, {.f2 = assq}},
    {"assv", 2, 2, {.f2 = assv}},
    {"assoc", 2, 2, {.f2 = assoc}},
    {"eq?", 2, 2, {.f2 = prim_eq}},
    {"eqv?", 2, 2, {.f2 = prim_eqv}},
    {"equal?", 2, 2, {.f2 = prim_equal}},
    {"map", 2, ANY, {.fn = map}},
    {"for-each", 2, ANY, {.fn = for_each}},
    {"filter", 2, 2, {.f2 = filter}},
    {"fold-left", 3, 3, {.f3 = fold_left}},
    {"fold-right", 3, 3, {.f3 = fold_right}},
    {"reduce", 3, 3, {.f3 = reduce}},
    {"sort", 2, 2, {.f2 = sort}},
    {"vector?", 1, 1, {.f1 = prim_is_vector}},
    {"make-vector", 1, 2, {.fn = prim_make_vector}},
    {"vector", 0, ANY, {.fn = prim_vector}},
    {"vector-ref", 2, 2, {.f2 = vector_ref}},
    {"vector-set!", 3, 3, {.f3 = vector_set}},
    {"vector-length", 1, 1, {.f1 = vector_length}},
    {"vector->list", 1, 1, {.f1 = vector_to_list}},
    {"list->vector", 1, 1, {.f1 = list_to_vector}},
    {"vector-fill!", 2, 2, {.f2 = vector_fill}},
    {"vector-map", 2, 2, {.f2 = vector_map}},
    {"vector-for-each", 2, 2, {.f2 = vector_for_each}},
};

void define_lists(void)
{
	define_builtins(lists, sizeof lists / sizeof *lists);
}
