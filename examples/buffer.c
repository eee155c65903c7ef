// buffer.c - a text that grows and shrinks, where it is if there is room.
#include <rt/rt.h>

#include <err.h>
#include <stdio.h>
#include <string.h>

enum { FIRST = 10, MOST = 100000 };

struct text {
	char *bytes;
	size_t n, room;
};

static void must(int error)
{
	if (error < 0)
		errx(1, "%s", rt_strerror(error));
}

// text_room makes room for n bytes.  rt_good_size_of says how many bytes an
// object of n bytes really has, so none of them is left unused.
static void text_room(struct text *t, size_t n)
{
	char *bytes;

	n = rt_good_size_of(RT_NOSCAN, n);
	bytes = (char *)rt_realloc(RT_NOSCAN, t->bytes, n);
	must(bytes ? RT_OK : RT_ENOMEM);
	t->bytes = bytes;
	t->room = n;
}

static void text_add(struct text *t, char c)
{
	if (t->n == t->room)
		text_room(t, t->n * 2);
	t->bytes[t->n++] = c;
}

// text_cut shortens a text.  A smaller text always fits.
static void text_cut(struct text *t, size_t n)
{
	must(rt_resize(t->bytes, n));
	t->n = n;
	t->room = rt_size(t->bytes);
}

int main(void)
{
	static struct text *text; // a root
	rt_thread *self;
	char *inside;
	uint64_t live;

	must(rt_init(NULL));
	must(rt_roots_add(&text, &text + 1, RT_ROOT_EXACT));
	self = rt_thread_self(); // an interpreter has it at hand
	text = (struct text *)rt_alloc_kind_in(self, RT_WORDS,
					       rt_good_size(sizeof *text));
	must(text ? RT_OK : RT_ENOMEM);
	text_room(text, FIRST);
	for (int i = 0; i < MOST; i++)
		text_add(text, (char)('a' + i % 26));
	must(rt_gc());
	live = rt_heap_live();
	text_cut(text, MOST / 2);
	must(rt_gc());
	printf("%.5s..., %zu bytes\n", text->bytes, text->n);
	printf("room: %s\n", text->room < 2 * text->n ? "enough" : "too much");
	printf("freed: %d\n", rt_heap_live() < live);

	// The library finds the beginning of an object from any address in it.
	inside = text->bytes + text->n / 2;
	printf("base: %d\n", rt_base(inside) == text->bytes);
	must(rt_free(text->bytes)); // nothing else refers to it
	text->bytes = NULL;
	must(rt_fini());
	return fflush(stdout) ? 1 : 0;
}
