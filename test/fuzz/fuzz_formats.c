// fuzz_formats.c - any bytes as a format, and any words as values.
//
// A format is accepted exactly if it is in order.  The references that a
// callback tells of values in it are compared, word by word, with what
// rt/trace.h says.  The tracer here has room for all that it is told, and looks
// at all addresses.
#include <rt/rt.h>

#include "test/fuzz/format.h"

enum { WORDS = 96, ROOM = 2 * WORDS };

static struct rt_trace_entry told[ROOM], wanted[ROOM];

// A row of words with one before it and one behind it, for tags.
static uint64_t row[WORDS + 2];

static rt_tracer tracer(void)
{
	rt_tracer t = {.used = SIZE_MAX, .top = told, .limit = told + ROOM};

	return t;
}

static void same(const rt_tracer *t, size_t n)
{
	REQUIRE((size_t)(t->top - told) == n);
	for (size_t i = 0; i < n; i++)
		REQUIRE(told[i].word == wanted[i].word);
}

// want adds what a value at w refers to.
static size_t want(const rt_value_format *f, const uint64_t *w, size_t n)
{
	uint64_t address;

	// The last address of all is beyond every heap.
	if (format_refers(f, w[0], w[f->test_at], &address) &&
	    address != UINT64_MAX)
		wanted[n++].word = address;
	return n;
}

static void check_format(const rt_value_format *f)
{
	static const uint64_t bits[] = {1};
	rt_type type = {.struct_size = sizeof type,
			.size = 24,
			.tail_size = 16,
			.tail_ptrdata = 16,
			.tail_bitmap = bits,
			.format = f};
	bool ok = format_ok(f);

	// The only value word of an element is its first word.
	REQUIRE((rt_type_check(&type) == RT_OK) == (ok && f->test_at >= 0));
	type.tail_size = type.tail_ptrdata = 0;
	REQUIRE((rt_type_check(&type) == RT_OK) == ok);
}

static void check_one(const rt_value_format *f)
{
	rt_tracer t = tracer();
	size_t n = 0;

	for (unsigned i = 1; i <= WORDS; i++) {
		if (f->stride == 8)
			rt_trace_value(&t, row[i], f);
		else
			rt_trace_pair(&t, &row[i], f);
		n = want(f, &row[i], n);
	}
	same(&t, n);
}

// check_row tells values from one address to another; neither need be aligned.
static void check_row(const rt_value_format *f, size_t from, size_t to)
{
	rt_tracer t = tracer();
	size_t lo = (from + 7) / 8 * 8, n = 0;

	if (format_ok(f))
		for (size_t at = lo; at + f->stride <= to; at += f->stride)
			n = want(f, &row[at / 8 + (f->test_at < 0)], n);
	rt_trace_values(&t, (char *)row + from, (char *)row + to, f);
	same(&t, n);
}

static void check_words(size_t from, size_t to)
{
	rt_tracer t = tracer();
	size_t n = 0;

	for (size_t at = (from + 7) / 8 * 8; at + 8 <= to; at += 8)
		if (row[at / 8] != UINT64_MAX)
			wanted[n++].word = row[at / 8];
	rt_trace_words(&t, (char *)row + from, (char *)row + to);
	same(&t, n);
}

// fill_edges fills the beginning of the row with words at the edges of what the
// format takes for a reference.  It returns their number.
static unsigned fill_edges(const rt_value_format *f)
{
	const uint64_t edges[] = {f->min,     f->max,	    f->min - 1,
				  f->max + 1, f->test_bits, 0};
	unsigned n = 0;

	for (unsigned i = 0; i < RT_ARRAY_LEN(edges); i++) {
		uint64_t w = edges[i];

		row[n++] = w;
		row[n++] = w;
		row[n++] = (w & ~f->test_mask) | (f->test_bits & f->test_mask);
		row[n] = row[n - 1] ^ (f->test_mask & -f->test_mask);
		n++;
	}
	return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = {data, size};
	rt_value_format f = input_format(&in);
	size_t from = input_below(&in, sizeof row + 1);
	size_t to = input_below(&in, sizeof row + 1);

	for (unsigned i = fill_edges(&f); i < WORDS + 2; i++) {
		uint64_t tested, value = input_word(&in);

		row[i] = value;
		if (value % 2 == 0 || !format_ok(&f))
			continue;
		row[i] = format_encode(&f, value, &tested);
		if (f.test_at != 0 && i % 2 == 0)
			row[i] = tested;
	}
	check_format(&f);
	if (format_ok(&f))
		check_one(&f);
	check_row(&f, from, to);
	check_row(&f, from / 8 * 8, sizeof row);
	check_words(from, to);
	return 0;
}
