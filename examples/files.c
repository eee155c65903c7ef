// files.c - objects that own a file: a destructor closes it when they die.
#include <rt/rt.h>

#include <err.h>
#include <stdio.h>

struct file {
	FILE *f;
	int number;
};

static int file_kind, nopen;

// A destructor gets a dead object, whole, and ends what it owns.
static void close_file(void *obj, size_t size, void *arg)
{
	struct file *file = (struct file *)obj;
	(void)size;
	(void)arg;
	if (!file->f) // it died before it was filled
		return;
	fclose(file->f);
	nopen--;
}

static void must(int error)
{
	if (error < 0)
		errx(1, "%s", rt_strerror(error));
}

static void begin(void)
{
	rt_kind_desc d;

	must(rt_init(NULL));
	rt_kind_desc_init(&d);
	d.name = "file";
	d.layout = RT_LAYOUT_NONE; // a FILE is not in the heap
	d.flags = RT_KIND_DROP;
	d.drop = close_file;
	must(file_kind = rt_kind_register(&d));
}

static struct file *open_file(int number)
{
	struct file *file = (struct file *)rt_alloc_of(file_kind, sizeof *file);

	if (!file)
		errx(1, "no memory");
	file->f = fopen("/dev/null", "w");
	if (!file->f)
		err(1, "/dev/null");
	file->number = number;
	nopen++;
	return file;
}

// An interpreter runs many statements.  Between two of them any code may run,
// so that is the place for destructors.
static int run(int statements, void **keep)
{
	int most = 0;

	for (int i = 0; i < statements; i++) {
		*keep = open_file(i); // the previous one is garbage
		if (i % 100 == 0)
			must(rt_gc());
		rt_run_finalizers(0);
		if (nopen > most)
			most = nopen;
	}
	return most;
}

int main(void)
{
	static void *keep;

	begin();
	must(rt_roots_add(&keep, &keep + 1, 0));
	printf("few are open at once: %s\n",
	       run(1000, &keep) < 210 ? "yes" : "no");
	printf("the last is number %d\n", ((struct file *)keep)->number);
	// At the end all are closed, whatever refers to them.
	must(rt_drop_now(file_kind, NULL, NULL));
	printf("open at the end: %d\n", nopen);
	must(rt_fini());
	return 0;
}
