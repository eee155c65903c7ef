// fuzz_options.c - the text of RTGC, RTMEMLIMIT and RTDEBUG.
//
// Whatever the environment holds, rt_init accepts the configuration.  RTDEBUG
// does what its items do one after the other.  Numbers are those that a slow
// and careful reader finds.
#include "test/fuzz/fuzz.h"

#include <rt/rt.h>

#include "runtime/os/settings.h"
#include "runtime/os/options.h"

// config_before returns settings as a host may have made them.
static rt_config config_before(uint8_t choice)
{
	rt_config c;

	rt_config_init(&c);
	if (choice & 1)
		c.gc_percent = -1;
	if (choice & 2)
		c.struct_size = 8 + (choice >> 2); // of an older host
	return c;
}

static bool usable(const rt_config *c)
{
	rt_config resolved;

	return settings_resolve(c, &resolved) == RT_OK;
}

static bool equal(const rt_config *a, const rt_config *b)
{
	return memcmp(a, b, sizeof *a) == 0;
}

// ---- numbers ----

// digits reads decimal digits only.  It returns false if there is none, if
// there is another character, or if the number is more than INT64_MAX + extra.
static bool digits(const char *s, size_t n, unsigned extra, uint64_t *v)
{
	unsigned __int128 sum = 0;

	for (size_t i = 0; i < n; i++) {
		if (s[i] < '0' || s[i] > '9')
			return false;
		sum = sum * 10 + (unsigned)(s[i] - '0');
		if (sum > (unsigned __int128)INT64_MAX + extra)
			return false;
	}
	*v = (uint64_t)sum;
	return n > 0;
}

static void check_integer(const char *s, size_t n)
{
	int64_t v = 4711;
	uint64_t want = 0;
	bool minus = n > 0 && s[0] == '-';
	bool is = digits(s + minus, n - minus, minus, &want);

	REQUIRE(options_integer((struct options_text){s, n}, &v) == is);
	REQUIRE((uint64_t)v == (!is ? 4711 : minus ? 0 - want : want));
}

static void check_size(const char *s, size_t n)
{
	static const char *const units[] = {"TiB", "GiB", "MiB",
					    "KiB", "B",	  ""};
	static const unsigned shifts[] = {40, 30, 20, 10, 0, 0};
	uint64_t v = 4711, want = 0;
	bool is = false;

	for (size_t i = 0; i < RT_ARRAY_LEN(units) && !is; i++) {
		size_t len = strlen(units[i]);

		is = n >= len && memcmp(s + n - len, units[i], len) == 0 &&
		     digits(s, n - len, 0, &want) &&
		     want <= (uint64_t)INT64_MAX >> shifts[i];
		want = is ? want << shifts[i] : 0;
	}
	REQUIRE(options_size((struct options_text){s, n}, &v) == is);
	REQUIRE(v == (is ? want : 4711));
}

static void check_percent(const char *s, size_t n)
{
	int v = 4711;
	uint64_t want = 0;
	bool off = n == 3 && memcmp(s, "off", 3) == 0;
	bool is = off || (digits(s, n, 0, &want) && want <= INT32_MAX);

	REQUIRE(options_percent((struct options_text){s, n}, &v) == is);
	REQUIRE(v == (!is ? 4711 : off ? -1 : (int)want));
}

// check_numbers reads a copy that is as long as the text and has no end mark,
// so that a sanitizer notices a byte too many.
static void check_numbers(const char *text, size_t n)
{
	char *copy = malloc(n > 0 ? n : 1);

	REQUIRE(copy != NULL);
	memcpy(copy, text, n);
	check_integer(copy, n);
	check_size(copy, n);
	check_percent(copy, n);
	free(copy);
}

// ---- the environment ----

static void set(const char *name, const char *value)
{
	REQUIRE(setenv(name, value, 1) == 0);
}

// from_env overrides *c by one variable.
static int from_env(rt_config *c, const char *name, const char *value)
{
	unsetenv("RTGC");
	unsetenv("RTMEMLIMIT");
	unsetenv("RTDEBUG");
	set(name, value);
	return rt_config_from_env(c);
}

// by_items takes the items of RTDEBUG one by one.
static int by_items(rt_config *c, const char *text)
{
	char *copy = strdup(text), *rest = copy, *item;
	int all = RT_OK;

	REQUIRE(copy != NULL);
	while ((item = strsep(&rest, ",")) != NULL)
		if (from_env(c, "RTDEBUG", item) != RT_OK)
			all = RT_EINVAL;
	free(copy);
	return all;
}

static void check_debug(rt_config before, const char *text)
{
	rt_config at_once = before, single = before;
	int result = from_env(&at_once, "RTDEBUG", text);

	if (strlen(text) > OPTIONS_MAX_TEXT) {
		REQUIRE(result == RT_EINVAL && equal(&at_once, &before));
		return;
	}
	REQUIRE(by_items(&single, text) == result);
	REQUIRE(equal(&single, &at_once));
	check_numbers(text, strlen(text));
}

static void check_variable(rt_config before, const char *name, const char *text)
{
	rt_config c = before, again;
	int result = from_env(&c, name, text);

	REQUIRE(result == RT_OK || result == RT_EINVAL);
	REQUIRE(usable(&c));
	again = c;
	REQUIRE(from_env(&again, name, text) == result);
	REQUIRE(equal(&again, &c));
	if (result == RT_EINVAL && strcmp(name, "RTDEBUG") != 0)
		REQUIRE(equal(&c, &before));
}

// check_together sets all three; each acts as it does alone.
static void check_together(rt_config before, char *const text[3])
{
	rt_config together = before, apart = before;
	int result, sum;

	sum = from_env(&apart, "RTGC", text[0]);
	sum |= from_env(&apart, "RTMEMLIMIT", text[1]);
	sum |= from_env(&apart, "RTDEBUG", text[2]);
	set("RTGC", text[0]);
	set("RTMEMLIMIT", text[1]);
	result = rt_config_from_env(&together);
	REQUIRE(result == sum && equal(&together, &apart));
}

// next_text returns the input up to a newline, without null bytes: a text that
// an environment can hold.
static char *next_text(struct input *in)
{
	char *text = malloc(in->left + 1);
	size_t n = 0;

	REQUIRE(text != NULL);
	while (in->left > 0) {
		char c = (char)input_u8(in);

		if (c == '\n')
			break;
		if (c != '\0')
			text[n++] = c;
	}
	text[n] = '\0';
	return text;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const names[] = {"RTGC", "RTMEMLIMIT", "RTDEBUG"};
	struct input in = {data, size};
	rt_config before = config_before(input_u8(&in));
	char *text[3];

	for (unsigned i = 0; i < 3; i++)
		text[i] = next_text(&in);
	for (unsigned i = 0; i < 3; i++) {
		check_variable(before, names[i], text[i]);
		check_numbers(text[i], strlen(text[i]));
	}
	check_debug(before, text[2]);
	check_together(before, text);
	for (unsigned i = 0; i < 3; i++) {
		unsetenv(names[i]);
		free(text[i]);
	}
	return 0;
}
