// words.h - what a report has to say, whatever numbers are in it.
#ifndef TEST_HARNESS_WORDS_H
#define TEST_HARNESS_WORDS_H

#include <string.h>

// words_match returns what follows the words at the beginning of text, or NULL
// if text does not begin with them.  A '#' in words matches any number or
// address.
static inline const char *words_match(const char *text, const char *words)
{
	for (; *words; words++) {
		if (*words != '#') {
			if (*text++ != *words)
				return NULL;
			continue;
		}
		if (*text < '0' || *text > '9')
			return NULL;
		text += strspn(text, "0123456789abcdefx");
	}
	return text;
}

#endif
