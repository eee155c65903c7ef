// begin.c - microseconds until a heap has begun and its first object is
// allocated.
//
// usage: begin
//
// A process forks a hundred times before its heap begins.  Each child begins
// the heap, allocates one object, and reports how long both took.  The value is
// the median; one more child, the first, is not counted.  Good: less than a
// process takes to begin, some hundred microseconds.  The checksum is the
// number of children.
#include "harness.h"

#include <sys/wait.h>
#include <unistd.h>

enum { CHILDREN = 100 };

static _Noreturn void child(int out)
{
	double began = peer_clock(CLOCK_MONOTONIC), us;

	heap_begin();
	peer_keep(peer_alloc(64));
	us = (peer_clock(CLOCK_MONOTONIC) - began) * 1e6;
	_exit(write(out, &us, sizeof us) != sizeof us);
}

static double begin_once(void)
{
	int ends[2], status;
	double us;
	pid_t pid;

	if (pipe(ends) || (pid = fork()) < 0)
		peer_die("no process");
	if (pid == 0)
		child(ends[1]);
	if (waitpid(pid, &status, 0) < 0 || status ||
	    read(ends[0], &us, sizeof us) != sizeof us)
		peer_die("a process failed");
	close(ends[0]);
	close(ends[1]);
	return us;
}

int main(void)
{
	double sample[CHILDREN];
	struct peer_time t = {0};

	begin_once();
	peer_start(&t);
	for (int i = 0; i < CHILDREN; i++)
		sample[i] = begin_once();
	peer_stop(&t);
	peer_report(peer_median(sample, CHILDREN), "us", &t, CHILDREN);
	return 0;
}
