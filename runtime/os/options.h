// options.h - reading option text: items, numbers, sizes.
//
// Go: parsedebugvars (runtime1.go), parseByteCount (string.go).
//
// Pure functions on pieces of text that belong to somebody else, usually the
// environment: nothing is copied, allocated or printed, and no text, however
// long or wrong, is more than refused.  Whether a number is in range for its
// option is the caller's to decide.
#ifndef RUNTIME_OS_OPTIONS_H
#define RUNTIME_OS_OPTIONS_H

#include "runtime/base/base.h"

// More is refused as a whole: nobody writes it on purpose.
enum { OPTIONS_MAX_TEXT = 4095 };

// A piece of text, not ended by a null byte.
struct options_text {
	const char *s; // len bytes; valid as long as the whole text is
	size_t len;
};

// options_text_of is a whole string, s not null; false when it is longer than
// OPTIONS_MAX_TEXT.  At most one byte more than that is read.
bool options_text_of(const char *s, struct options_text *t);

// options_is compares with a word; case counts.
bool options_is(struct options_text t, const char *word);

// One item of "name=value,name=value".  An item without a '=' has an empty
// value at the end of its name; what is after the first '=' is the value.
struct options_item {
	struct options_text name;
	struct options_text value;
};

// options_next takes the next item off the front of *rest; false when there
// is none.  Empty items, as between two commas, are skipped.
bool options_next(struct options_text *rest, struct options_item *item);

// options_integer reads a decimal number with an optional '-'; false, and *v
// unchanged, for anything else, also blanks and a '+', and for numbers that
// do not fit.
bool options_integer(struct options_text t, int64_t *v);

// options_size reads bytes: decimal digits, then nothing, B, KiB, MiB, GiB or
// TiB; false, and *bytes unchanged, for anything else and above INT64_MAX.
bool options_size(struct options_text t, uint64_t *bytes);

// options_percent reads a number from 0 to INT32_MAX, or "off", which is -1;
// false, and *percent unchanged, for anything else.
bool options_percent(struct options_text t, int *percent);

#endif
