// frames.c - finds the name of a variable of a named frame.
#include "gc/mark/frames.h"

// skip_one returns the comma after an expression, or the end of the text.
static const char *skip_one(const char *s)
{
	unsigned depth = 0;

	for (; *s && (depth != 0 || *s != ','); s++) {
		depth += *s == '(' || *s == '[' || *s == '{';
		depth -= (*s == ')' || *s == ']' || *s == '}') && depth != 0;
	}
	return s;
}

void frames_name(const struct frames_at *at, char name[FRAMES_NAME])
{
	const char *s = at->f->names, *end;
	size_t n = 0;

	for (size_t i = 1; i < at->i && *(s = skip_one(s)); i++)
		s++;
	end = skip_one(s);
	while (*s == ' ')
		s++;
	s += *s == '&';
	for (; s < end && n < FRAMES_NAME - 1; n++)
		name[n] = *s++;
	name[n] = 0;
}
