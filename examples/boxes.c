// boxes.c - values of 64 bits that are numbers or references: NaN boxes.
//
// No operation on doubles yields the bits from 0xfffe000000000000 to
// 0xfffeffffffffffff.  So these hold addresses of objects, all others doubles.
#include <rt/rt.h>

#include <err.h>
#include <stdio.h>
#include <string.h>

typedef uint64_t value;

#define BOX UINT64_C(0xfffe000000000000)
#define LAST UINT64_C(0xfffeffffffffffff)

static const rt_value_format format = RT_FORMAT_NAN_BOX(BOX, LAST);

enum { PAIR = RT_KIND_ALIGN8_FIRST }; // three words take 24 bytes

struct pair {
	value head, tail, note;
};

static void must(int error)
{
	if (error < 0)
		errx(1, "%s", rt_strerror(error));
}

static value box(const void *p)
{
	return (uintptr_t)p | BOX;
}

static value number(double d)
{
	value v;

	memcpy(&v, &d, sizeof v);
	return v;
}

// pair_of returns NULL for a number.
static const struct pair *pair_of(value v)
{
	return v >= BOX && v <= LAST ? (struct pair *)(uintptr_t)(v & ~BOX)
				     : NULL;
}

static struct pair *make(value head, value tail)
{
	struct pair *p = (struct pair *)rt_alloc_of(PAIR, sizeof *p);

	must(p ? RT_OK : RT_ENOMEM);
	p->head = head;
	p->tail = tail;
	return p;
}

int main(void)
{
	// This root is exact, so it holds the address and not a box.
	static struct pair *list;
	int length = 0;
	rt_memstats m;
	rt_kind_desc d;

	must(rt_init(NULL));
	must(rt_roots_add(&list, &list + 1, RT_ROOT_EXACT));
	rt_kind_desc_init(&d);
	d.name = "pair";
	d.number = PAIR;
	d.layout = RT_LAYOUT_WORDS; // each word is a value ...
	d.format = &format;	    // ... of this form
	must(rt_kind_register(&d));
	for (int i = 1; i <= 1000; i++) {
		list = make(number(i), list ? box(list) : number(0));
		// The bits of this number are an address, yet it is a number.
		list->note = (uintptr_t)make(number(0), number(0));
	}
	must(rt_gc());
	for (const struct pair *p = list; p; p = pair_of(p->tail))
		length++;
	must(rt_read_memstats(&m));
	printf("%lu pairs of %zu bytes, %d in the list\n", m.mallocs,
	       rt_size(list), length);
	printf("numbers kept %s\n", m.heap_objects < 1100 ? "nothing" : "much");
	must(rt_fini());
	return fflush(stdout) ? 1 : 0;
}
