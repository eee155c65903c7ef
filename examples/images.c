// images.c - a viewer whose images have their pixels outside the heap, in a
// process that must stay small.
//
// An image object is a few bytes, so without rt_adjust_external the collector
// would see no reason to find the dead ones, and the pixels would pile up.
#include <rt/rt.h>

#include <err.h>
#include <stdio.h>
#include <stdlib.h>

enum { IMAGES = 1000, PIXELS = 1 << 20, SHOWN = 8 };

struct image {
	char *pixels;
};

static struct image *shown[SHOWN]; // a root
static int64_t held, most;	   // bytes of pixels

static void must(int error)
{
	if (error < 0)
		errx(1, "%s", rt_strerror(error));
}

static void account(int64_t delta)
{
	held += delta;
	if (held > most)
		most = held;
	must(rt_adjust_external(delta));
}

static void drop_image(void *obj, size_t size, void *arg)
{
	struct image *image = (struct image *)obj;

	(void)size;
	(void)arg;
	if (image->pixels)
		account(-PIXELS);
	free(image->pixels);
}

static struct image *open_image(int kind)
{
	struct image *image = (struct image *)rt_alloc_of(kind, sizeof *image);

	must(image ? RT_OK : RT_ENOMEM);
	image->pixels = (char *)malloc(PIXELS);
	must(image->pixels ? RT_OK : RT_ENOMEM);
	account(PIXELS);
	return image;
}

static int begin(void)
{
	rt_kind_desc d;

	must(rt_init(NULL));
	must(rt_set_memory_limit(64 << 20, NULL)); // of the library's own
	must(rt_set_heap_min(16 << 20, NULL));	   // pixels included
	must(rt_set_finalize_mode(RT_FINALIZE_POLL, NULL, NULL));
	must(rt_roots_add(shown, shown + SHOWN, RT_ROOT_EXACT));
	rt_kind_desc_init(&d);
	d.name = "image";
	d.layout = RT_LAYOUT_NONE;
	d.flags = RT_KIND_DROP;
	d.drop = drop_image;
	return rt_kind_register(&d);
}

int main(void)
{
	int kind = begin();

	must(kind);
	for (int i = 0; i < IMAGES; i++) {
		shown[i % SHOWN] = open_image(kind);
		rt_alloc_noscan(4096); // a title, say
		rt_safepoint();	       // here the dead are dropped
	}
	printf("at most %s\n", most < 200 << 20 ? "200 MiB" : "too much");
	must(rt_drop_now(kind, NULL, NULL));
	printf("left: %lld\n", (long long)held);
	must(rt_fini());
	return fflush(stdout) ? 1 : 0;
}
