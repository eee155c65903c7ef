// two.c - two interpreters in one heap, of which one ends.
#include <rt/rt.h>

#include <err.h>
#include <stdio.h>
#include <stdlib.h>

struct vm {
	const char *name;
	int kind; // of its own, so that its code can be unloaded
	struct text *texts;
	int nowned;
};

struct text {
	struct text *next;
	char *owned; // of malloc
};

static void drop_text(void *obj, size_t size, void *arg)
{
	(void)size;
	free(((struct text *)obj)->owned);
	((struct vm *)arg)->nowned--;
}

static void must(int error)
{
	if (error < 0)
		errx(1, "%s", rt_strerror(error));
}

static void vm_begin(struct vm *vm, const char *name)
{
	rt_kind_desc d;
	vm->name = name;
	rt_kind_desc_init(&d);
	d.name = name;
	d.layout = RT_LAYOUT_WORDS;
	d.flags = RT_KIND_DROP;
	d.drop = drop_text;
	d.arg = vm;
	must(vm->kind = rt_kind_register(&d));
	must(rt_roots_add(&vm->texts, &vm->texts + 1, 0));
}

static void vm_run(struct vm *vm, int n)
{
	for (int i = 0; i < n; i++) {
		struct text *text =
		    (struct text *)rt_alloc_of(vm->kind, sizeof *text);

		if (!text)
			errx(1, "no memory");
		text->owned = (char *)malloc(100);
		text->next = i % 2 ? vm->texts : NULL; // some become garbage
		vm->texts = text;
		vm->nowned++;
	}
}

// All that it owns ends, reachable or not, and then its kind.
static void vm_end(struct vm *vm)
{
	must(rt_drop_now(vm->kind, NULL, NULL));
	printf("%s owns %d texts\n", vm->name, vm->nowned);
	vm->texts = NULL;
	must(rt_roots_remove(&vm->texts, &vm->texts + 1));
	must(rt_gc());
	must(rt_kind_unregister(vm->kind));
	printf("%s: gone\n", vm->name);
}

int main(void)
{
	static struct vm one, two;
	must(rt_init(NULL));
	must(rt_thread_detach());
	must(rt_thread_attach(RT_THREAD_EXACT)); // no stale words on stacks
	vm_begin(&one, "one");
	vm_begin(&two, "two");
	vm_run(&one, 1000);
	vm_run(&two, 500);
	vm_end(&one);
	printf("two owns %s\n", two.nowned > 0 ? "some" : "none");
	vm_run(&two, 500);
	vm_end(&two);
	must(rt_fini());
	return 0;
}
