// trace.c - an interpreter that knows its references itself: a callback.
//
// Its machine has a stack of values in an object.  Above the top are values
// that it has not cleared; only the interpreter knows that they are dead.
#include <rt/rt.h>

#include <err.h>
#include <stdio.h>

enum tag { TEXT, CONS, MACHINE };

struct object {
	enum tag tag;
};

struct cons {
	struct object base;
	struct object *head, *tail;
};

struct machine {
	struct object base;
	size_t top;
	struct object *stack[50];
};

static int object_kind;

static void must(int error)
{
	if (error < 0)
		errx(1, "%s", rt_strerror(error));
}

// trace tells the references of any object, and does not follow them.
static void trace(rt_tracer *t, void *obj, size_t size, void *arg)
{
	const struct cons *c = (const struct cons *)obj;
	const struct machine *m = (const struct machine *)obj;

	(void)size, (void)arg;
	// An object that is not filled yet is a TEXT: its tag is 0.
	if (c->base.tag == CONS) {
		rt_trace_ptr(t, c->head);
		rt_trace_ptr(t, c->tail);
	} else if (c->base.tag == MACHINE) {
		rt_trace_words(t, m->stack, m->stack + m->top);
	}
}

static void *make(enum tag tag, size_t size)
{
	struct object *o = (struct object *)rt_alloc_of(object_kind, size);

	must(o ? RT_OK : RT_ENOMEM);
	o->tag = tag;
	return o;
}

int main(void)
{
	static struct machine *vm;
	rt_kind_desc d;
	rt_memstats m;

	must(rt_init(NULL));
	must(rt_roots_add(&vm, &vm + 1, RT_ROOT_EXACT));
	rt_kind_desc_init(&d);
	d.name = "object";
	d.layout = RT_LAYOUT_TRACE;
	d.trace = trace;
	must(object_kind = rt_kind_register(&d));
	vm = (struct machine *)make(MACHINE, sizeof *vm);
	for (vm->top = 0; vm->top < 50; vm->top++) {
		struct cons *c = (struct cons *)make(CONS, sizeof *c);

		vm->stack[vm->top] = &c->base;
		c->head = (struct object *)make(TEXT, 60);
	}
	vm->top = 10; // the rest of the stack is not cleared
	must(rt_gc());
	must(rt_read_memstats(&m));
	printf("%zu of %lu objects can be reached, %s others are left\n",
	       1 + 2 * vm->top, m.mallocs,
	       m.heap_objects < 50 ? "few" : "many");
	must(rt_fini());
	return fflush(stdout) ? 1 : 0;
}
