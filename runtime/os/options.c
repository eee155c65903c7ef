// Cutting option text into items, and reading numbers.
#include "runtime/os/options.h"

#include <string.h>

bool options_text_of(const char *s, struct options_text *t)
{
	size_t len = strnlen(s, OPTIONS_MAX_TEXT + 1);

	if (len > OPTIONS_MAX_TEXT)
		return false;
	*t = (struct options_text){s, len};
	return true;
}

bool options_is(struct options_text t, const char *word)
{
	return t.len == strlen(word) && memcmp(t.s, word, t.len) == 0;
}

// take_until cuts *t at the first c.  It returns the text before c, and leaves
// the text after it in *t.  If there is no c, it returns all.
static struct options_text take_until(struct options_text *t, char c)
{
	const char *at = memchr(t->s, c, t->len);
	size_t len = at ? (size_t)(at - t->s) : t->len;
	size_t skip = at ? len + 1 : len;
	struct options_text front = {t->s, len};

	t->s += skip;
	t->len -= skip;
	return front;
}

bool options_next(struct options_text *rest, struct options_item *item)
{
	while (rest->len > 0) {
		struct options_text text = take_until(rest, ',');

		if (text.len == 0)
			continue;
		item->name = take_until(&text, '=');
		item->value = text;
		return true;
	}
	return false;
}

// take_digits reads the decimal digits at the front of *t and takes them off.
// Returns false if there is none, or the number is above max.
static bool take_digits(struct options_text *t, uint64_t max, uint64_t *v)
{
	uint64_t n = 0;
	size_t i;

	for (i = 0; i < t->len && t->s[i] >= '0' && t->s[i] <= '9'; i++) {
		uint64_t digit = (uint64_t)(t->s[i] - '0');

		if (n > (max - digit) / 10) // max is above 9, so no wrap
			return false;
		n = n * 10 + digit;
	}
	if (i == 0)
		return false;
	t->s += i;
	t->len -= i;
	*v = n;
	return true;
}

bool options_integer(struct options_text t, int64_t *v)
{
	bool negative = t.len > 0 && t.s[0] == '-';
	uint64_t n;

	if (negative) {
		t.s++;
		t.len--;
	}
	// The smallest number has no positive counterpart, so n may be 2^63.
	if (!take_digits(&t, (uint64_t)INT64_MAX + negative, &n) || t.len > 0)
		return false;
	*v = negative ? (int64_t)(0 - n) : (int64_t)n;
	return true;
}

// unit_shift returns log2 of the unit that a suffix names, -1 if it names none.
static int unit_shift(struct options_text suffix)
{
	static const struct {
		const char *suffix;
		int shift;
	} units[] = {
	    {"", 0},	 {"B", 0},    {"KiB", 10},
	    {"MiB", 20}, {"GiB", 30}, {"TiB", 40},
	};

	for (size_t i = 0; i < RT_ARRAY_LEN(units); i++) {
		if (options_is(suffix, units[i].suffix))
			return units[i].shift;
	}
	return -1;
}

bool options_size(struct options_text t, uint64_t *bytes)
{
	uint64_t n;
	int shift;

	if (!take_digits(&t, INT64_MAX, &n))
		return false;
	shift = unit_shift(t);
	if (shift < 0 || n > (uint64_t)INT64_MAX >> shift)
		return false;
	*bytes = n << shift;
	return true;
}

bool options_percent(struct options_text t, int *percent)
{
	uint64_t n;

	if (options_is(t, "off")) {
		*percent = -1;
		return true;
	}
	if (!take_digits(&t, INT32_MAX, &n) || t.len > 0)
		return false;
	*percent = (int)n;
	return true;
}
