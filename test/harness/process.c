// What the system says of a process, limits of it, and its children.
#include "test/harness/process.h"

#include <check.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

uint64_t process_status(const char *name)
{
	unsigned long long kib = 0;
	char line[256];
	FILE *f = fopen("/proc/self/status", "r");

	ck_assert_ptr_nonnull(f);
	while (fgets(line, sizeof line, f))
		if (strncmp(line, name, strlen(name)) == 0)
			sscanf(line + strlen(name), ": %llu", &kib);
	fclose(f);
	ck_assert_uint_gt(kib, 0);
	return kib << 10;
}

void process_limit(int resource, uint64_t n)
{
	struct rlimit l;

	ck_assert_int_eq(getrlimit(resource, &l), 0);
	l.rlim_cur = n;
	ck_assert_int_eq(setrlimit(resource, &l), 0);
}

void process_unlimit(int resource)
{
	struct rlimit l;

	ck_assert_int_eq(getrlimit(resource, &l), 0);
	l.rlim_cur = l.rlim_max;
	ck_assert_int_eq(setrlimit(resource, &l), 0);
}

void process_join(pid_t child)
{
	int status;

	ck_assert_int_gt(child, 0);
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert_int_eq(status, 0);
}

// Check's own handler of SIGALRM would kill the whole process group.
void process_expire(void)
{
	enum { SECONDS = 60 };

	signal(SIGALRM, SIG_DFL);
	alarm(SECONDS);
}

bool process_forked(void)
{
	pid_t child = fork();

	if (child == 0) {
		process_expire();
		return true;
	}
	process_join(child);
	return false;
}

void process_end(bool ok)
{
	_exit(ok ? EXIT_SUCCESS : EXIT_FAILURE);
}
