// number.c - fixnums of 63 bits, and doubles; an overflow becomes a double.
#include "scheme.h"

#include <math.h>
#include <string.h>

static bool both_fixnums(value a, value b)
{
	return a & b & 1;
}

static double to_double(value v)
{
	if (is_fixnum(v))
		return (double)fixnum_of(v);
	if (!is_flonum(v))
		wrong("not a number", v);
	return double_of(v);
}

static int64_t to_integer(value v)
{
	if (!is_fixnum(v))
		wrong("not an integer", v);
	return fixnum_of(v);
}

static value whole(int64_t n)
{
	return n < FIXNUM_MIN || n > FIXNUM_MAX ? flonum((double)n) : fixnum(n);
}

// ---- arithmetic

value prim_add(value a, value b)
{
	if (both_fixnums(a, b)) // 63 bits each: the sum has 64
		return whole(fixnum_of(a) + fixnum_of(b));
	return flonum(to_double(a) + to_double(b));
}

value prim_sub(value a, value b)
{
	if (both_fixnums(a, b))
		return whole(fixnum_of(a) - fixnum_of(b));
	return flonum(to_double(a) - to_double(b));
}

value prim_mul(value a, value b)
{
	int64_t n;

	if (both_fixnums(a, b) &&
	    !__builtin_mul_overflow(fixnum_of(a), fixnum_of(b), &n))
		return whole(n);
	return flonum(to_double(a) * to_double(b));
}

// The result is exact if the division leaves no remainder: there are no
// fractions.
value prim_div(value a, value b)
{
	if (b == fixnum(0))
		wrong("division by zero", a);
	if (both_fixnums(a, b) && fixnum_of(a) % fixnum_of(b) == 0)
		return whole(fixnum_of(a) / fixnum_of(b));
	return flonum(to_double(a) / to_double(b));
}

static int64_t divisor(value v)
{
	int64_t d = to_integer(v);

	if (d == 0)
		wrong("division by zero", v);
	return d;
}

value prim_quotient(value a, value b)
{
	return whole(to_integer(a) / divisor(b));
}

value prim_remainder(value a, value b)
{
	return fixnum(to_integer(a) % divisor(b));
}

value prim_modulo(value a, value b)
{
	int64_t d = divisor(b), r = to_integer(a) % d;

	return fixnum(r && (r < 0) != (d < 0) ? r + d : r);
}

// ---- comparison

enum { LESS = 1, EQUAL = 2, GREATER = 4 };

// compare returns one of these, or 0 if one of the two is a NaN.
static int compare(value a, value b)
{
	if (both_fixnums(a, b))
		return a == b			 ? EQUAL
		       : (int64_t)a < (int64_t)b ? LESS
						 : GREATER;
	double x = to_double(a), y = to_double(b);
	return x < y ? LESS : x > y ? GREATER : x == y ? EQUAL : 0;
}

value prim_num_equal(value a, value b)
{
	return boolean(compare(a, b) == EQUAL);
}

value prim_less(value a, value b)
{
	return boolean(compare(a, b) == LESS);
}

value prim_greater(value a, value b)
{
	return boolean(compare(a, b) == GREATER);
}

value prim_not_greater(value a, value b)
{
	return boolean(compare(a, b) & (LESS | EQUAL));
}

value prim_not_less(value a, value b)
{
	return boolean(compare(a, b) & (GREATER | EQUAL));
}

value prim_max(value a, value b)
{
	return compare(a, b) == GREATER ? a : b;
}

value prim_min(value a, value b)
{
	return compare(a, b) == LESS ? a : b;
}

// ---- more or fewer than two arguments: the procedure for two, repeated

// A single argument is the right operand of the unit: (- x) is (- 0 x).
value prim_fold(int argc, value *a)
{
	const struct builtin *b = vm.callee;
	value r = argc > 1 ? a[0] : fixnum(b->unit);

	for (int i = argc > 1; i < argc; i++)
		r = b->f2(r, a[i]);
	return r;
}

value prim_chain(int argc, value *a)
{
	const struct builtin *b = vm.callee;
	bool all = true;

	for (int i = 0; i + 1 < argc; i++)
		all &= b->f2(a[i], a[i + 1]) == TRUE;
	return boolean(all);
}

// ---- functions

value prim_is_number(value v)
{
	return boolean(is_fixnum(v) || is_flonum(v));
}

value prim_is_integer(value v)
{
	return boolean(is_fixnum(v) ||
		       (is_flonum(v) && double_of(v) == floor(double_of(v))));
}

value prim_is_zero(value v)
{
	return boolean(to_double(v) == 0);
}

value prim_is_odd(value v)
{
	return boolean(to_integer(v) & 1);
}

value prim_is_even(value v)
{
	return boolean(!(to_integer(v) & 1));
}

value prim_abs(value v)
{
	return to_double(v) < 0 ? prim_sub(fixnum(0), v) : v;
}

value prim_expt(value base, value power)
{
	value r = fixnum(1);

	if (!is_fixnum(power) || fixnum_of(power) < 0)
		return flonum(pow(to_double(base), to_double(power)));
	for (int64_t n = fixnum_of(power); n; n >>= 1) {
		if (n & 1)
			r = prim_mul(r, base);
		if (n > 1)
			base = prim_mul(base, base);
	}
	return r;
}

// The root of a square is exact.
value prim_sqrt(value v)
{
	double d = sqrt(to_double(v));

	if (isnan(d))
		wrong("no real root", v);
	value root = is_fixnum(v) && d == floor(d) ? fixnum((int64_t)d) : NONE;
	return root != NONE && prim_mul(root, root) == v ? root : flonum(d);
}

value prim_exp(value v)
{
	return flonum(exp(to_double(v)));
}

value prim_sin(value v)
{
	return flonum(sin(to_double(v)));
}

value prim_cos(value v)
{
	return flonum(cos(to_double(v)));
}

// ---- text

value prim_number_to_string(value v)
{
	char text[NUMBER_TEXT];

	to_double(v);
	number_text(v, text);
	return make_string(text, strlen(text));
}

value prim_string_to_number(value v)
{
	if (!is_type(v, STRING))
		wrong("not a string", v);
	value n = read_number(string_of(v)->text);
	return n == NONE ? FALSE : n;
}
