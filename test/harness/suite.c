// Runs the tests that have registered themselves, with Check.
#define _GNU_SOURCE // program_invocation_short_name
#include "test/harness/suite.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

// NULL in a program that links what ships; see test/harness/schedpoint.h.
void schedpoint_seed(uint64_t seed) __attribute__((weak));

static const char *suite_name(void)
{
	static const char prefix[] = "check_";
	const char *name = program_invocation_short_name;

	if (strncmp(name, prefix, sizeof prefix - 1) == 0)
		name += sizeof prefix - 1;
	return name;
}

static struct suite_item *tests, *groups; // by file and line

static bool is_before(const struct suite_item *a, const struct suite_item *b)
{
	int order = strcmp(a->file, b->file);

	return order ? order < 0 : a->line < b->line;
}

static void insert(struct suite_item **list, struct suite_item *item)
{
	while (*list && is_before(*list, item))
		list = &(*list)->next;
	item->next = *list;
	*list = item;
}

void suite_add_test(struct suite_test *t)
{
	insert(&tests, &t->at);
}

void suite_add_group(struct suite_group *g)
{
	insert(&groups, &g->at);
}

// first_of_name returns the first item of a list that has the same name as
// item.
static struct suite_item *first_of_name(struct suite_item *list,
					const struct suite_item *item)
{
	while (list && strcmp(list->name, item->name) != 0)
		list = list->next;
	return list;
}

// group_of returns the group that a test belongs to, or NULL.
static struct suite_group *group_of(const struct suite_test *t)
{
	struct suite_item *last = NULL;

	for (struct suite_item *g = groups; g; g = g->next)
		if (strcmp(g->file, t->at.file) == 0 && g->line < t->at.line)
			last = g;
	return last ? (struct suite_group *)first_of_name(groups, last) : NULL;
}

static bool has_options(const struct suite_group *g)
{
	return g->setup || g->teardown || g->timeout != 0 || g->last;
}

static bool complain(const struct suite_item *item, const char *what)
{
	fprintf(stderr, "%s:%d: %s %s\n", item->file, item->line, item->name,
		what);
	return false;
}

// is_sound tells whether what is registered can be run, and prints what cannot.
static bool is_sound(void)
{
	bool ok = tests;

	if (!tests)
		fprintf(stderr, "%s: there is no test\n", suite_name());
	for (struct suite_item *t = tests; t; t = t->next)
		if (first_of_name(tests, t) != t)
			ok = complain(t, "is the name of two tests");
	for (struct suite_item *g = groups; g; g = g->next)
		if (first_of_name(groups, g) != g &&
		    has_options((struct suite_group *)g))
			ok = complain(g, "goes on and has options");
	return ok;
}

// add_test adds a test to a case of Check.  In place of a test that is skipped
// it adds one that says so.
static void add_test(TCase *tc, const struct suite_test *t)
{
	int limit = t->limit ? t->limit : t->n ? t->n : 1;
	TTest *check = malloc(sizeof *check); // Check keeps it

	if (!check)
		abort();
	*check = (TTest){t->at.name, t->unless ? t->skip : t->fn, t->at.file,
			 t->at.line};
	_tcase_add_test(tc, check, t->unless ? 0 : t->signal,
			t->unless ? 0 : t->exit, t->base, limit);
}

// add_tests adds the tests of a group that run, or the tests that are skipped,
// to a case of Check.
static void add_tests(TCase *tc, const struct suite_group *group, bool skipped)
{
	for (struct suite_item *i = tests; i; i = i->next) {
		const struct suite_test *t = (const struct suite_test *)i;

		if (group_of(t) == group && (t->unless != NULL) == skipped)
			add_test(tc, t);
	}
}

// add_group adds a group to a suite.  The skipped tests of a group are in a
// case without fixtures, because a fixture may need what is missing here.
static void add_group(Suite *s, const char *name, const struct suite_group *g)
{
	TCase *tc = tcase_create(name), *skipped = tcase_create(name);

	if (g && g->timeout != 0)
		tcase_set_timeout(tc, g->timeout);
	if (g && (g->setup || g->teardown))
		tcase_add_checked_fixture(tc, g->setup, g->teardown);
	add_tests(tc, g, false);
	suite_add_tcase(s, tc);
	add_tests(skipped, g, true);
	suite_add_tcase(s, skipped);
}

// add_groups adds the groups that are to run last, or the others.
static void add_groups(Suite *s, bool last)
{
	for (struct suite_item *i = groups; i; i = i->next) {
		const struct suite_group *g = (const struct suite_group *)i;

		if (first_of_name(groups, i) == i && g->last == last)
			add_group(s, i->name, g);
	}
}

int suite_run(void)
{
	Suite *s = suite_create(suite_name());
	SRunner *runner;
	int failed;

	if (!is_sound())
		return EXIT_FAILURE;
	add_group(s, suite_name(), NULL);
	add_groups(s, false);
	add_groups(s, true);
	runner = srunner_create(s);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

void suite_skipped(const char *test, const char *why, const char *package)
{
	fprintf(stderr, "skipped: 1 of %s: %s%s%s\n", test, why,
		package ? "; install " : "", package ? package : "");
}

uint64_t env_u64(const char *name, uint64_t otherwise)
{
	const char *text = getenv(name);

	return text && *text ? strtoull(text, NULL, 0) : otherwise;
}

void rng_init(struct rng *r, const char *test)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	r->state = env_u64("RT_SEED", (uint64_t)now.tv_sec * 1000003 +
					  (uint64_t)now.tv_nsec);
	if (schedpoint_seed)
		schedpoint_seed(r->state);
	fprintf(stderr, "%s: RT_SEED=%llu\n", test,
		(unsigned long long)r->state);
}

uint64_t rng_next(struct rng *r)
{
	uint64_t z = r->state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

uint64_t rng_below(struct rng *r, uint64_t n)
{
	return rng_next(r) % n;
}
