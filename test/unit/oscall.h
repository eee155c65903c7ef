// oscall.h - a mapping of four pages, and what the system says of it.
#ifndef TEST_UNIT_OSCALL_H
#define TEST_UNIT_OSCALL_H

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "runtime/os/oscall.h"
#include "test/harness/thread.h"
#include "test/harness/suite.h"

// find_mapping copies the line of /proc/self/maps that holds p, or "" if there
// is none.
static inline void find_mapping(const void *p, char *line, size_t len)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	unsigned long lo, hi, at = (unsigned long)p;

	ck_assert_ptr_nonnull(maps);
	while (fgets(line, (int)len, maps)) {
		ck_assert_int_eq(sscanf(line, "%lx-%lx", &lo, &hi), 2);
		if (at >= lo && at < hi) {
			fclose(maps);
			return;
		}
	}
	fclose(maps);
	line[0] = '\0';
}

static inline bool mapping_has(const void *p, const char *what)
{
	char line[512];

	find_mapping(p, line, sizeof(line));
	return strstr(line, what) != NULL;
}

static size_t page;
static char *block; // of 4 pages, mapped

static inline void setup_block(void)
{
	page = oscall_page_size();
	block = oscall_map(4 * page);
	ck_assert_ptr_nonnull(block);
}

static inline void teardown_block(void)
{
	ck_assert_int_eq(oscall_unmap(block, 4 * page), 0);
}

// run_helper runs fn in a helper thread.  Returns 0, or an error.
static inline int run_helper(void *(*fn)(void *), void *arg)
{
	uint64_t thread;
	int error = oscall_thread_start(&thread, fn, arg);

	if (error == 0)
		oscall_thread_join(thread);
	return error;
}

static inline void *set_word(void *arg)
{
	*(bool *)arg = true;
	return NULL;
}

#endif
