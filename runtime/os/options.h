// options.h - reading option text: items, numbers, sizes.
//
// Go: parsedebugvars (runtime1.go), parseByteCount (string.go).
//
// Pure functions on pieces of text that they do not own, usually from the
// environment.  They neither copy nor allocate, and they print nothing.  A text
// that is too long or wrong is refused, with no other effect.  The caller
// decides whether a number is in range for its option.
#ifndef RUNTIME_OS_OPTIONS_H
#define RUNTIME_OS_OPTIONS_H

#include "runtime/base/base.h"

// A longer text is refused as a whole, since it can only be a mistake.
enum { OPTIONS_MAX_TEXT = 4095 };

// A piece of text, not ended by a null byte.
struct options_text {
	const char *s; // len bytes; valid as long as the whole text is
	size_t len;
};

// options_text_of sets *t to the whole string s, which must not be null.
// Returns false if it is longer than OPTIONS_MAX_TEXT.  It reads at most one
// byte more than that.
bool options_text_of(const char *s, struct options_text *t);

// options_is tells whether t is word; case counts.
bool options_is(struct options_text t, const char *word);

// One item of "name=value,name=value".  The value is the text after the first
// '='.  An item without '=' has an empty value, which points to the end of the
// name.
struct options_item {
	struct options_text name;
	struct options_text value;
};

// options_next takes the next item off the front of *rest.  Returns false if
// there is none.  Empty items, as between two commas, are skipped.
bool options_next(struct options_text *rest, struct options_item *item);

// options_integer reads a decimal number with an optional '-'.  Returns false,
// with *v unchanged, for any other text, even one with blanks or a '+', and for
// numbers that do not fit.
bool options_integer(struct options_text t, int64_t *v);

// options_size reads a number of bytes: decimal digits, then nothing, B, KiB,
// MiB, GiB or TiB.  Returns false, with *bytes unchanged, for any other text
// and if there are more than INT64_MAX bytes.
bool options_size(struct options_text t, uint64_t *bytes);

// options_percent reads a number from 0 to INT32_MAX, or "off", which is -1.
// Returns false, with *percent unchanged, for any other text.
bool options_percent(struct options_text t, int *percent);

#endif
