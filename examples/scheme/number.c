// number.c - fixnums of 63 bits and doubles; what overflows becomes a double.
#include "scheme.h"

#include <math.h>
#include <string.h>

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
	if (is_flonum(v) && double_of(v) == floor(double_of(v)) &&
	    fabs(double_of(v)) < 0x1p62)
		return (int64_t)double_of(v);
	if (!is_fixnum(v))
		wrong("not an integer", v);
	return fixnum_of(v);
}

static bool is_number(value v)
{
	return is_fixnum(v) || is_flonum(v);
}

// An exact result when d is a whole number that fits.
static value exact(double d)
{
	if (d != floor(d) || fabs(d) >= 0x1p62)
		wrong("no exact value", flonum(d));
	return fixnum((int64_t)d);
}

// ---- + - * /

static value add(value a, value b)
{
	value r;

	if (both_fixnums(a, b) && fix_add(a, b, &r))
		return r;
	return flonum(to_double(a) + to_double(b));
}

static value sub(value a, value b)
{
	value r;

	if (both_fixnums(a, b) && fix_sub(a, b, &r))
		return r;
	return flonum(to_double(a) - to_double(b));
}

static value mul(value a, value b)
{
	value r;

	if (both_fixnums(a, b) && fix_mul(a, b, &r))
		return r;
	return flonum(to_double(a) * to_double(b));
}

// Exact when the division leaves no remainder: there are no fractions.
static value divide(value a, value b)
{
	if (b == fixnum(0))
		wrong("division by zero", a);
	if (both_fixnums(a, b) && fixnum_of(a) % fixnum_of(b) == 0 &&
	    b != fixnum(-1))
		return fixnum(fixnum_of(a) / fixnum_of(b));
	return b == fixnum(-1) ? sub(fixnum(0), a)
			       : flonum(to_double(a) / to_double(b));
}

static value prim_add(int argc, value *a)
{
	value r = fixnum(0);

	for (int i = 0; i < argc; i++)
		r = add(r, a[i]);
	return r;
}

static value prim_mul(int argc, value *a)
{
	value r = fixnum(1);

	for (int i = 0; i < argc; i++)
		r = mul(r, a[i]);
	return r;
}

static value prim_sub(int argc, value *a)
{
	if (argc == 1)
		return sub(fixnum(0), a[0]);
	value r = a[0];
	for (int i = 1; i < argc; i++)
		r = sub(r, a[i]);
	return r;
}

static value prim_div(int argc, value *a)
{
	if (argc == 1)
		return divide(fixnum(1), a[0]);
	value r = a[0];
	for (int i = 1; i < argc; i++)
		r = divide(r, a[i]);
	return r;
}

// ---- integer division

static value integer_result(value a, value b, int64_t n)
{
	return both_fixnums(a, b) ? fixnum(n) : flonum((double)n);
}

static int64_t divisor(value v)
{
	int64_t d = to_integer(v);

	if (d == 0)
		wrong("division by zero", v);
	return d;
}

static value quotient(value a, value b)
{
	int64_t d = divisor(b), n = to_integer(a);

	if (d == -1) // the least fixnum has no opposite
		return both_fixnums(a, b) ? sub(fixnum(0), a)
					  : flonum(-(double)n);
	return integer_result(a, b, n / d);
}

static value remainder_of(value a, value b)
{
	int64_t d = divisor(b);

	return integer_result(a, b, to_integer(a) % d);
}

static value modulo(value a, value b)
{
	int64_t d = divisor(b), r = to_integer(a) % d;

	return integer_result(a, b, r && (r < 0) != (d < 0) ? r + d : r);
}

static value prim_gcd(int argc, value *a)
{
	int64_t r = 0;

	for (int i = 0; i < argc; i++)
		for (int64_t n = to_integer(a[i]), t; n; n = t) {
			t = r % n;
			r = n;
		}
	return fixnum(r < 0 ? -r : r);
}

static value lcm(value a, value b)
{
	value both[] = {a, b};
	value g = prim_gcd(2, both);

	if (g == fixnum(0))
		return g;
	value r = mul(quotient(a, g), b);
	return to_double(r) < 0 ? sub(fixnum(0), r) : r;
}

// ---- comparison

static int compare(value a, value b)
{
	if (both_fixnums(a, b))
		return ((int64_t)a > (int64_t)b) - ((int64_t)a < (int64_t)b);
	double x = to_double(a), y = to_double(b);
	return x < y ? -1 : x > y ? 1 : x == y ? 0 : 2; // 2: not comparable
}

// accept: bit 0 less, bit 1 equal, bit 2 greater.
static value chain(int argc, value *a, int accept)
{
	bool all = true;

	if (argc == 1)
		to_double(a[0]);
	for (int i = 0; i + 1 < argc; i++)
		all &= accept >> (compare(a[i], a[i + 1]) + 1) & 1;
	return boolean(all);
}

static value prim_equal(int argc, value *a)
{
	return chain(argc, a, 2);
}

static value prim_less(int argc, value *a)
{
	return chain(argc, a, 1);
}

static value prim_greater(int argc, value *a)
{
	return chain(argc, a, 4);
}

static value prim_less_equal(int argc, value *a)
{
	return chain(argc, a, 3);
}

static value prim_greater_equal(int argc, value *a)
{
	return chain(argc, a, 6);
}

static value extreme(int argc, value *a, int sign)
{
	value r = a[0];
	bool inexact = is_flonum(r);

	to_double(r);
	for (int i = 1; i < argc; i++) {
		if (compare(a[i], r) == sign)
			r = a[i];
		inexact |= is_flonum(a[i]);
	}
	return inexact && is_fixnum(r) ? flonum(to_double(r)) : r;
}

static value prim_max(int argc, value *a)
{
	return extreme(argc, a, 1);
}

static value prim_min(int argc, value *a)
{
	return extreme(argc, a, -1);
}

// ---- predicates

static value prim_is_number(value v)
{
	return boolean(is_number(v));
}

static value is_integer(value v)
{
	return boolean(is_fixnum(v) ||
		       (is_flonum(v) && double_of(v) == floor(double_of(v))));
}

static value is_exact(value v)
{
	to_double(v);
	return boolean(is_fixnum(v));
}

static value is_inexact(value v)
{
	to_double(v);
	return boolean(is_flonum(v));
}

static value is_zero(value v)
{
	return boolean(to_double(v) == 0);
}

static value is_positive(value v)
{
	return boolean(to_double(v) > 0);
}

static value is_negative(value v)
{
	return boolean(to_double(v) < 0);
}

static value is_odd(value v)
{
	return boolean(to_integer(v) & 1);
}

static value is_even(value v)
{
	return boolean(!(to_integer(v) & 1));
}

// ---- functions

static value prim_abs(value v)
{
	return to_double(v) < 0 ? sub(fixnum(0), v) : v;
}

static value square(value v)
{
	return mul(v, v);
}

static value expt(value base, value power)
{
	value r = fixnum(1);

	if (!is_fixnum(power) || fixnum_of(power) < 0)
		return flonum(pow(to_double(base), to_double(power)));
	to_double(base);
	for (int64_t n = fixnum_of(power); n; n >>= 1) {
		if (n & 1)
			r = mul(r, base);
		if (n > 1)
			base = mul(base, base);
	}
	return r;
}

static value square_root(value v)
{
	double d = sqrt(to_double(v));

	if (isnan(d))
		wrong("no real root", v);
	return is_fixnum(v) && d == floor(d) && mul(exact(d), exact(d)) == v
		   ? exact(d)
		   : flonum(d);
}

static value to_inexact(value v)
{
	return flonum(to_double(v));
}

static value to_exact(value v)
{
	return is_fixnum(v) ? v : exact(to_double(v));
}

static value rounded(value v, double (*how)(double))
{
	return is_fixnum(v) ? v : flonum(how(to_double(v)));
}

static value prim_floor(value v)
{
	return rounded(v, floor);
}

static value prim_ceiling(value v)
{
	return rounded(v, ceil);
}

static value prim_truncate(value v)
{
	return rounded(v, trunc);
}

static value prim_round(value v)
{
	return rounded(v, rint);
}

static value prim_exp(value v)
{
	return flonum(exp(to_double(v)));
}

static value prim_log(value v)
{
	return flonum(log(to_double(v)));
}

static value prim_sin(value v)
{
	return flonum(sin(to_double(v)));
}

static value prim_cos(value v)
{
	return flonum(cos(to_double(v)));
}

static value prim_atan(int argc, value *a)
{
	return flonum(argc == 1 ? atan(to_double(a[0]))
				: atan2(to_double(a[0]), to_double(a[1])));
}

// The same numbers in every run: programs print what can be compared.
static value prim_random(value limit)
{
	static uint64_t state = 88172645463325252u; // xorshift64

	int64_t n = to_integer(limit);
	if (n <= 0)
		wrong("not positive", limit);
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return fixnum((int64_t)(state >> 1) % n);
}

// ---- text

static int radix_of(int argc, value *a)
{
	int64_t radix = argc == 2 ? to_integer(a[1]) : 10;

	if (radix < 2 || radix > 36)
		wrong("bad radix", a[1]);
	return (int)radix;
}

static value number_to_string(int argc, value *a)
{
	char text[NUMBER_TEXT];

	to_double(a[0]);
	number_text(a[0], radix_of(argc, a), text);
	return make_string(text, strlen(text));
}

static value string_to_number(int argc, value *a)
{
	if (!is_type(a[0], STRING))
		wrong("not a string", a[0]);
	value n = read_number(string_of(a[0])->text, radix_of(argc, a));
	return n == NONE ? FALSE : n;
}

static const struct builtin numbers[] = {
    {"+", 0, ANY, {.fn = prim_add}},
    {"-", 1, ANY, {.fn = prim_sub}},
    {"*", 0, ANY, {.fn = prim_mul}},
    {"/", 1, ANY, {.fn = prim_div}},
    {"=", 1, ANY, {.fn = prim_equal}},
    {"<", 1, ANY, {.fn = prim_less}},
    {">", 1, ANY, {.fn = prim_greater}},
    {"<=", 1, ANY, {.fn = prim_less_equal}},
    {">=", 1, ANY, {.fn = prim_greater_equal}},
    {"quotient", 2, 2, {.f2 = quotient}},
    {"remainder", 2, 2, {.f2 = remainder_of}},
    {"modulo", 2, 2, {.f2 = modulo}},
    {"gcd", 0, ANY, {.fn = prim_gcd}},
    {"lcm", 2, 2, {.f2 = lcm}},
    {"max", 1, ANY, {.fn = prim_max}},
    {"min", 1, ANY, {.fn = prim_min}},
    {"number?", 1, 1, {.f1 = prim_is_number}},
    {"real?", 1, 1, {.f1 = prim_is_number}},
    {"integer?", 1, 1, {.f1 = is_integer}},
    {"exact?", 1, 1, {.f1 = is_exact}},
    {"inexact?", 1, 1, {.f1 = is_inexact}},
    {"zero?", 1, 1, {.f1 = is_zero}},
    {"positive?", 1, 1, {.f1 = is_positive}},
    {"negative?", 1, 1, {.f1 = is_negative}},
    {"odd?", 1, 1, {.f1 = is_odd}},
    {"even?", 1, 1, {.f1 = is_even}},
    {"abs", 1, 1, {.f1 = prim_abs}},
    {"square", 1, 1, {.f1 = square}},
    {"expt", 2, 2, {.f2 = expt}},
    {"sqrt", 1, 1, {.f1 = square_root}},
    {"exact->inexact", 1, 1, {.f1 = to_inexact}},
    {"inexact->exact", 1, 1, {.f1 = to_exact}},
    {"floor", 1, 1, {.f1 = prim_floor}},
    {"ceiling", 1, 1, {.f1 = prim_ceiling}},
    {"truncate", 1, 1, {.f1 = prim_truncate}},
    {"round", 1, 1, {.f1 = prim_round}},
    {"exp", 1, 1, {.f1 = prim_exp}},
    {"log", 1, 1, {.f1 = prim_log}},
    {"sin", 1, 1, {.f1 = prim_sin}},
    {"cos", 1, 1, {.f1 = prim_cos}},
    {"atan", 1, 2, {.fn = prim_atan}},
    {"random", 1, 1, {.f1 = prim_random}},
    {"number->string", 1, 2, {.fn = number_to_string}},
    {"string->number", 1, 2, {.fn = string_to_number}},
};

void define_numbers(void)
{
	define_builtins(numbers, sizeof numbers / sizeof *numbers);
}
