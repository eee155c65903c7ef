// fork.c - a child writes what the heap holds, while its parent goes on.
//
// The child has the heap as it was at the fork.  The parent is stopped only
// for as long as the fork takes.
#define _POSIX_C_SOURCE 200809L
#include <rt/rt.h>

#include <err.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { RECORDS = 1000 };

struct record {
	struct record *next;
	int number;
};

static struct record *records; // a root

static void must(int error)
{
	if (error < 0)
		errx(1, "%s", rt_strerror(error));
}

static void make(int from, int to)
{
	for (int i = from; i < to; i++) {
		struct record *r = (struct record *)rt_alloc(sizeof *r);

		must(r ? RT_OK : RT_ENOMEM);
		r->number = i;
		r->next = records;
		records = r;
	}
}

static int sum(void)
{
	int n = 0;

	for (const struct record *r = records; r; r = r->next)
		n += r->number;
	return n;
}

// A host that makes processes without fork() calls these functions itself, and
// so does one whose own preparations must come after the heap's.
static pid_t fork_stopped(void)
{
	pid_t child;

	must(rt_fork_prepare());
	if (!rt_world_stopped())
		errx(1, "the world runs");
	child = fork();
	must(child == 0 ? rt_fork_child() : rt_fork_parent());
	return child;
}

// The child may use its heap as any process.
static int write_records(void)
{
	must(rt_gc());
	printf("child: %d\n", sum());
	must(rt_fini());
	return fflush(stdout) ? 1 : 0;
}

int main(void)
{
	pid_t child;
	int status;

	must(rt_init(NULL));
	must(rt_roots_add(&records, &records + 1, RT_ROOT_EXACT));
	make(0, RECORDS);
	child = fork_stopped();
	if (child == 0)
		_exit(write_records());
	make(RECORDS, RECORDS + 10);
	if (child < 0 || waitpid(child, &status, 0) != child || status != 0)
		errx(1, "no child");
	printf("parent: %d\n", sum());
	must(rt_fini());
	return fflush(stdout) ? 1 : 0;
}
