// Texts of settings: sizes, integers, percents, and the items of RTDEBUG.
#include "test/harness/suite.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/os/options.h"

// A function that refuses a text leaves this value where it is.
enum { UNTOUCHED = 77 };

static struct options_text text(const char *s)
{
	struct options_text t = {NULL, 0};

	ck_assert(options_text_of(s, &t));
	return t;
}

static bool size_is(const char *s, uint64_t want)
{
	uint64_t v = UNTOUCHED;

	return options_size(text(s), &v) && v == want;
}

static bool size_refused(const char *s)
{
	uint64_t v = UNTOUCHED;

	return !options_size(text(s), &v) && v == UNTOUCHED;
}

static bool integer_is(const char *s, int64_t want)
{
	int64_t v = UNTOUCHED;

	return options_integer(text(s), &v) && v == want;
}

static bool integer_refused(const char *s)
{
	int64_t v = UNTOUCHED;

	return !options_integer(text(s), &v) && v == UNTOUCHED;
}

static bool percent_is(const char *s, int want)
{
	int v = UNTOUCHED;

	return options_percent(text(s), &v) && v == want;
}

static bool percent_refused(const char *s)
{
	int v = UNTOUCHED;

	return !options_percent(text(s), &v) && v == UNTOUCHED;
}

TEST(sizes_have_binary_suffixes)
{
	ck_assert(size_is("0", 0));
	ck_assert(size_is("1", 1));
	ck_assert(size_is("007", 7));
	ck_assert(size_is("12B", 12));
	ck_assert(size_is("3KiB", 3 << 10));
	ck_assert(size_is("512MiB", 512 << 20));
	ck_assert(size_is("2GiB", UINT64_C(2) << 30));
	ck_assert(size_is("1TiB", UINT64_C(1) << 40));
	ck_assert(size_is("0TiB", 0));
}

TEST(largest_size_is_int64_max)
{
	ck_assert(size_is("9223372036854775807", INT64_MAX));
	ck_assert(size_is("9223372036854775807B", INT64_MAX));
	ck_assert(size_refused("9223372036854775808"));
	ck_assert(size_refused("18446744073709551615"));
	ck_assert(size_refused("18446744073709551616"));
	ck_assert(size_refused("18446744073709551617"));
	ck_assert(size_refused("99999999999999999999999999999999999999"));
	ck_assert(size_is("9007199254740991KiB", INT64_MAX - 1023));
	ck_assert(size_refused("9007199254740992KiB"));
	ck_assert(size_is("8388607TiB", INT64_MAX - (INT64_C(1) << 40) + 1));
	ck_assert(size_refused("8388608TiB"));
}

TEST(garbage_is_no_size)
{
	static const char *const garbage[] = {
	    "",	     "B",    "KiB",  "-1",  "-1KiB", "+1",    " 1",    "1 ",
	    "1 KiB", "1kib", "1K",   "1KB", "1Ki",   "1KiBB", "1BKiB", "1.5GiB",
	    "0x10",  "1e9",  "1PiB", "off", "one",   "1,2",   "1b",    "1\n",
	};

	for (size_t i = 0; i < RT_ARRAY_LEN(garbage); i++)
		ck_assert_msg(size_refused(garbage[i]), "%s", garbage[i]);
}

TEST(integers_may_be_negative)
{
	ck_assert(integer_is("0", 0));
	ck_assert(integer_is("-0", 0));
	ck_assert(integer_is("-1", -1));
	ck_assert(integer_is("00042", 42));
	ck_assert(integer_is("9223372036854775807", INT64_MAX));
	ck_assert(integer_is("-9223372036854775808", INT64_MIN));
}

TEST(garbage_is_no_integer)
{
	static const char *const garbage[] = {
	    "",
	    "-",
	    "--1",
	    "+1",
	    " 1",
	    "1 ",
	    "1-",
	    "0x1",
	    "1.0",
	    "1KiB",
	    "off",
	    "9223372036854775808",
	    "-9223372036854775809",
	    "-18446744073709551615",
	    "36893488147419103233",
	};

	for (size_t i = 0; i < RT_ARRAY_LEN(garbage); i++)
		ck_assert_msg(integer_refused(garbage[i]), "%s", garbage[i]);
}

TEST(percent_is_a_number_or_off)
{
	ck_assert(percent_is("0", 0));
	ck_assert(percent_is("100", 100));
	ck_assert(percent_is("2147483647", INT32_MAX));
	ck_assert(percent_is("off", -1));
	ck_assert(percent_refused("2147483648"));
	ck_assert(percent_refused("4294967396"));
	ck_assert(percent_refused("-1"));
	ck_assert(percent_refused("OFF"));
	ck_assert(percent_refused("offf"));
	ck_assert(percent_refused("of"));
	ck_assert(percent_refused("50%"));
	ck_assert(percent_refused(""));
}

TEST(items_come_in_order)
{
	struct options_text rest = text("a=1,,bc=two=2,d,e=,=f,");
	static const char *const want[][2] = {
	    {"a", "1"}, {"bc", "two=2"}, {"d", ""}, {"e", ""}, {"", "f"},
	};
	struct options_item item;

	for (size_t i = 0; i < RT_ARRAY_LEN(want); i++) {
		ck_assert(options_next(&rest, &item));
		ck_assert(options_is(item.name, want[i][0]));
		ck_assert(options_is(item.value, want[i][1]));
	}
	ck_assert(!options_next(&rest, &item));
	ck_assert(!options_next(&rest, &item));
}

TEST(empty_text_has_no_items)
{
	struct options_text empty = text("");
	struct options_text commas = text(",,,");
	struct options_item item;

	ck_assert(!options_next(&empty, &item));
	ck_assert(!options_next(&commas, &item));
}

TEST(words_match_as_a_whole)
{
	ck_assert(options_is(text(""), ""));
	ck_assert(options_is(text("off"), "off"));
	ck_assert(!options_is(text("of"), "off"));
	ck_assert(!options_is(text("offs"), "off"));
	ck_assert(!options_is(text("Off"), "off"));
	ck_assert(!options_is(text(""), "off"));
}

// The text does not end in a null byte, so that a sanitizer notices when one
// byte too many is read.
TEST(long_text_is_refused_unread)
{
	char *s = malloc(OPTIONS_MAX_TEXT + 1);
	struct options_text t = {NULL, UNTOUCHED};

	memset(s, '1', OPTIONS_MAX_TEXT + 1);
	ck_assert(!options_text_of(s, &t));
	ck_assert_uint_eq(t.len, UNTOUCHED);
	s[OPTIONS_MAX_TEXT] = '\0';
	ck_assert(options_text_of(s, &t));
	ck_assert_uint_eq(t.len, OPTIONS_MAX_TEXT);
	free(s);
}

// Whatever the bytes are, the pieces are inside the text and in order, and the
// bytes between them are commas and first equal signs.
TEST(random_text_is_cut_not_overrun)
{
	static const char bytes[] = "=,=,=,-0123456789BKMGTioff \x01\xff";
	struct rng rng;
	unsigned bad = 0;

	rng_init(&rng, "random_text_is_cut_not_overrun");
	for (int round = 0; round < 100000; round++) {
		size_t len = rng_below(&rng, 40);
		// The sanitizer sees a read beyond len, unless len is 0.
		char *s = malloc(base_max(len, 1));
		struct options_text rest = {s, len};
		struct options_item item;
		const char *from = s;
		uint64_t size;
		int64_t n;
		int percent;

		for (size_t i = 0; i < len; i++)
			s[i] = bytes[rng_below(&rng, sizeof bytes - 1)];
		while (options_next(&rest, &item)) {
			bad += item.name.s < from;
			bad += item.value.s < item.name.s + item.name.len;
			from = item.value.s + item.value.len;
			bad += from > rest.s;
			bad += memchr(item.name.s, '=', item.name.len) != NULL;
			bad += memchr(item.name.s, ',',
				      (size_t)(from - item.name.s)) != NULL;
			if (options_size(item.value, &size))
				bad += size > INT64_MAX;
			if (options_percent(item.value, &percent))
				bad += percent < -1;
			if (options_integer(item.value, &n))
				bad += item.value.len == 0;
		}
		bad += rest.len != 0 || rest.s != s + len;
		free(s);
	}
	ck_assert_uint_eq(bad, 0);
}

// A number that is printed is read back as the same number.
TEST(random_numbers_are_read_back)
{
	struct rng rng;
	unsigned bad = 0;

	rng_init(&rng, "random_numbers_are_read_back");
	for (int round = 0; round < 100000; round++) {
		uint64_t bits = rng_next(&rng) >> rng_below(&rng, 64);
		int64_t signed_n = (int64_t)bits;
		char buf[24];
		int64_t n = 0;
		uint64_t size = 0;
		int len = snprintf(buf, sizeof buf, "%" PRId64, signed_n);
		struct options_text t = {buf, (size_t)len};

		bad += !options_integer(t, &n) || n != signed_n;
		if (signed_n >= 0)
			bad += !options_size(t, &size) || size != bits;
		else
			bad += options_size(t, &size);
	}
	ck_assert_uint_eq(bad, 0);
}
