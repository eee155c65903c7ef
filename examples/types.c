// types.c - objects begin with their class, which says where references are.
#include <rt/rt.h>

#include <err.h>
#include <stdio.h>

enum { OBJECT = RT_KIND_FIRST }; // a constant, so allocation is inline

struct vm_class { // of the interpreter
	const char *name;
	const rt_type *type;
};

struct object {
	const struct vm_class *isa;
	size_t n;		// items, or bytes of a text
	struct object *item[1]; // n of them
};

static rt_type items, bytes;	    // two words, and then references, or bytes
static const uint64_t each[] = {1}; // bit 0: word 0 of an item
static const struct vm_class vector = {"vector", &items},
			     text = {"text", &bytes};

static void must(int error)
{
	if (error < 0)
		errx(1, "%s", rt_strerror(error));
}

static void begin_types(void)
{
	items.struct_size = bytes.struct_size = sizeof items;
	bytes.name = text.name; // for reports
	items.size = bytes.size = offsetof(struct object, item);
	items.tail_size = items.tail_ptrdata = sizeof(struct object *);
	items.tail_bitmap = each;
	must(rt_type_check(&items));
	must(rt_type_check(&bytes));
}

// Word 0 of an object leads to its class, and the class to the type.
static void begin_kind(void)
{
	rt_kind_desc d;

	rt_kind_desc_init(&d);
	d.name = "object";
	d.number = OBJECT;
	d.layout = RT_LAYOUT_HEADER;
	d.header_mask = UINT64_MAX;
	d.type_offset = offsetof(struct vm_class, type);
	must(rt_kind_register(&d));
}

static struct object *make(const struct vm_class *isa, size_t n, size_t size)
{
	struct object *o = (struct object *)rt_alloc_of(
	    OBJECT, offsetof(struct object, item) + size);

	must(o ? RT_OK : RT_ENOMEM);
	o->isa = isa; // before the first reference is stored
	o->n = n;
	return o;
}

int main(void)
{
	static struct object *root;
	rt_memstats m;

	must(rt_init(NULL));
	must(rt_roots_add(&root, &root + 1, RT_ROOT_EXACT));
	begin_types();
	begin_kind();
	root = make(&vector, 1000, 1000 * sizeof *root->item);
	for (size_t i = 0; i < root->n; i++) {
		struct object *lost = make(&vector, 0, 0);

		root->item[i] = make(&text, sizeof lost, sizeof lost);
		root->item[i]->item[0] = lost; // only bytes, in a text
	}
	must(rt_gc());
	must(rt_read_memstats(&m));
	printf("a %s of %zu; item 0 is a %s\n", root->isa->name, root->n,
	       root->item[0]->isa->name);
	printf("bytes kept %s\n", m.heap_objects < 1100 ? "nothing" : "much");
	must(rt_fini());
	return fflush(stdout) ? 1 : 0;
}
