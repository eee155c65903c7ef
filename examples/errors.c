// errors.c - a host whose errors are longjmps.
//
// A jump leaves frames and no-GC stretches open.  Its catcher ends them.
#include <rt/rt.h>

#include <err.h>
#include <setjmp.h>
#include <stdio.h>

enum { STEPS = 1000, BAD = 7 };

struct catcher {
	jmp_buf env;
	rt_frame *frames;
	int depth; // stretches
};

static struct catcher *volatile catcher;
static volatile int depth, caught, done; // a jump keeps what is volatile

static void must(int error)
{
	if (error < 0)
		errx(1, "%s", rt_strerror(error));
}

static void stretch_begin(void)
{
	must(rt_nogc_enter());
	depth = depth + 1;
}

static void stretch_end(void)
{
	depth = depth - 1;
	must(rt_nogc_leave());
}

static void step(int n)
{
	int *a = (int *)rt_alloc_noscan(1000 * sizeof *a), *b = NULL;
	RT_FRAME(&a, &b);

	must(a ? RT_OK : RT_ENOMEM);
	b = (int *)rt_alloc_noscan(1000 * sizeof *b);
	must(b ? RT_OK : RT_ENOMEM);
	stretch_begin(); // no collection sees the two half exchanged
	if (n % BAD == 0)
		longjmp(catcher->env, 1);
	a[0] = b[0] = n;
	stretch_end();
	done = done + 1;
}

static void recover(void)
{
	rt_frames_restore(catcher->frames);
	while (depth > catcher->depth)
		stretch_end();
	caught = caught + 1;
}

// attempt runs a step, and returns whether it jumped or not.
static void attempt(int n)
{
	struct catcher here;

	here.frames = rt_frames_save();
	here.depth = depth;
	catcher = &here;
	if (setjmp(here.env) == 0)
		step(n);
	else
		recover();
}

int main(void)
{
	must(rt_init(NULL));
	must(rt_thread_detach());
	must(rt_thread_attach(RT_THREAD_EXACT)); // frames are its only roots
	for (int n = 0; n < STEPS; n++) {
		attempt(n);
		rt_poll(); // as in each loop of the host
	}
	must(rt_gc()); // which a stretch left open would refuse
	printf("done %d, caught %d\n", done, caught);
	must(rt_fini());
	return fflush(stdout) ? 1 : 0;
}
