// machine.c - a stack machine whose values have a tag in their low bits.
//
// Its stack of values grows by moving, and its globals are a table of values.
#include <rt/rt.h>

#include <err.h>
#include <stdio.h>
#include <string.h>

typedef uint64_t value; // 2 * n is the number n; an address + 1 is a text

enum { FIRST = 2048, GLOBALS = 4, TEXTS = 5000 };

static const rt_value_format format = RT_FORMAT_LOW_TAG(1, 1);
static value globals[GLOBALS];
static value *lo, *hi, *top; // the stack is [lo, top)
static rt_stack *stack;

static void must(int error)
{
	if (error < 0)
		errx(1, "%s", rt_strerror(error));
}

static void begin(void)
{
	rt_stack_desc d;

	top = lo = (value *)rt_stack_alloc(FIRST);
	must(lo ? RT_OK : RT_ENOMEM);
	hi = lo + FIRST / sizeof *lo;
	rt_stack_desc_init(&d);
	d.lo = lo;
	d.hi = hi;
	d.sp = &top; // a push calls nothing; a collection looks
	d.flags = RT_STACK_UP;
	d.format = &format;
	d.name = "values";
	must(rt_stack_register(&d, &stack));
	must(rt_roots_add_values(globals, globals + GLOBALS, &format, 0));
	must(rt_roots_name(globals, globals + GLOBALS, "globals"));
}

static void grow(void)
{
	size_t size = (size_t)(hi - lo) * sizeof *lo;
	value *old = lo, *twice = (value *)rt_stack_alloc(2 * size);

	must(twice ? RT_OK : RT_ENOMEM);
	memcpy(twice, old, size);
	must(rt_stack_move(stack, twice, (char *)twice + 2 * size));
	top = twice + (top - old); // before the next poll
	lo = twice;
	hi = lo + 2 * size / sizeof *lo;
	must(rt_stack_free(old, size));
}

static void push(value v)
{
	if (top == hi)
		grow();
	*top++ = v;
}

static value text(unsigned n)
{
	char *s = (char *)rt_alloc_noscan(32);
	must(s ? RT_OK : RT_ENOMEM);
	snprintf(s, 32, "text %u", n);
	return (value)(uintptr_t)s + 1;
}

int main(void)
{
	must(rt_init(NULL));
	begin();
	for (unsigned n = 0; n < TEXTS; n++)
		push(text(n));
	globals[0] = lo[1];
	must(rt_gc());
	printf("the top: %s\n", (char *)(uintptr_t)(top[-1] - 1));
	top = lo; // all are garbage now, but one
	must(rt_gc());
	printf("the global: %s\n", (char *)(uintptr_t)(globals[0] - 1));
	must(rt_stack_unregister(stack));
	must(rt_stack_free(lo, (size_t)(hi - lo) * sizeof *lo));
	must(rt_fini());
	return fflush(stdout) ? 1 : 0;
}
