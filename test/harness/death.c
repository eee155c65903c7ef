// Runs functions that end a process, in a child, and reads what the child
// printed.
#include "test/harness/death.h"

#include <check.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/os/throw.h"
#include "test/harness/words.h"

static const char *last_words;

static void exit_if_expected(const char *text, void *arg)
{
	(void)arg;
	while (*text && !words_match(text, last_words))
		text++;
	_exit(*text ? DEATH_EXPECTED : EXIT_FAILURE);
}

void death_expect(const char *text)
{
	last_words = text;
	throw_set_handler(exit_if_expected, NULL);
}

char death_output[16384];

int death_status(void (*fn)(void))
{
	FILE *file = tmpfile();
	struct rlimit none = {0, 0};
	int status;
	pid_t child;

	ck_assert_ptr_nonnull(file);
	child = fork();
	ck_assert_int_ge(child, 0);
	if (child == 0) {
		setrlimit(RLIMIT_CORE, &none);
		dup2(fileno(file), STDERR_FILENO);
		fn();
		_exit(0);
	}
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	rewind(file);
	death_output[fread(death_output, 1, sizeof death_output - 1, file)] =
	    '\0';
	fclose(file);
	return status;
}

bool death_aborted(int status)
{
	return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}
