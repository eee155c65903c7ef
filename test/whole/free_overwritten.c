// Writes to objects that were freed by hand.
#include <rt/rt.h>

#include "runtime/base/base.h"
#include "runtime/spans/freelist.h"
#include "test/harness/death.h"
#include "test/whole/free.h"

GROUP(overwritten, .timeout = 60);

static RT_NO_SANITIZE void write_word(uintptr_t *p, uintptr_t word)
{
	*(volatile uintptr_t *)p = word;
}

// The calls that find that a list was overwritten.
enum finder { ALLOCATION, COLLECTION, EXACT_READ };

// find_in does what must find the overwritten list.  n is the size of the freed
// objects.
static void find_in(enum finder finder, size_t n)
{
	rt_memstats m;

	if (finder == COLLECTION)
		rt_gc();
	if (finder == EXACT_READ)
		rt_read_memstats(&m);
	for (int i = 0; finder == ALLOCATION && i < 100000; i++)
		alloc_words(n);
}

// In what way an object is overwritten.
static const struct overwritten {
	size_t n;    // bytes of an object; 0: the type links
	bool shared; // it is on the shared list
	bool link;   // with the address of an object that is no slot of a list
	enum finder finder;
} overwritten[] = {
    {.n = 48},
    {.n = 3000},
    {.n = 48, .link = true},
    {.n = 3000, .link = true},
    {.n = 48, .shared = true},
    {.n = 48, .shared = true, .link = true},
    {.n = 48, .finder = COLLECTION},
    {.n = 48, .link = true, .finder = COLLECTION},
    {.n = 3000, .shared = true, .finder = COLLECTION},
    {.n = 48, .finder = EXACT_READ},
    {.n = 3000, .shared = true, .link = true, .finder = EXACT_READ},
    {.finder = COLLECTION},
    {.link = true, .finder = COLLECTION},
    {.shared = true, .finder = EXACT_READ},
};

// free_many frees more objects than the list of a thread holds.  It returns one
// that is on the shared list if shared is set, otherwise on the list of the
// thread.
static uintptr_t *free_many(size_t n, bool shared)
{
	static uintptr_t *p[FREELIST_MOST + 50];
	size_t many = RT_ARRAY_LEN(p);

	for (size_t i = 0; i < many; i++)
		p[i] = n == 0 ? alloc_links() : alloc_words(n);
	for (size_t i = 0; i < many; i++)
		free_ok(p[i]);
	return shared ? p[many / 2] : p[many - 1];
}

TEST(a_write_to_a_listed_object_ends_the_process,
     .n = RT_ARRAY_LEN(overwritten), .exit = DEATH_EXPECTED)
{
	const struct overwritten *o = &overwritten[_i];
	uintptr_t *victim;

	heap_begin();
	victim = free_many(o->n, o->shared);
	if (o->link)
		write_word(victim, (uintptr_t)alloc_words(100));
	else
		write_word(victim + 1, 1);
	death_expect("rtheap: slot=#\n"
		     "rtheap: fatal: list of freed objects was overwritten");
	find_in(o->finder, o->n);
}

// In what way a list is cut, and what then finds that it is too short.
static const struct cut {
	size_t n;	 // bytes of an object; 0: the type links
	bool shared;	 // it is on the shared list
	unsigned allocs; // objects that are allocated after the write
	unsigned frees;	 // objects that are freed after that
	enum finder finder;
} cuts[] = {
    {.n = 48, .finder = COLLECTION},
    {.n = 48, .finder = EXACT_READ},
    {.n = 3000, .shared = true, .finder = COLLECTION},
    {.n = 48, .shared = true, .finder = EXACT_READ},
    {.finder = COLLECTION},
    {.shared = true, .finder = EXACT_READ},
    {.n = 48, .allocs = 1, .finder = COLLECTION},
    {.n = 48, .allocs = 1, .frees = 1, .finder = COLLECTION},
    {.n = 48, .allocs = 1, .frees = FREELIST_MOST, .finder = EXACT_READ},
    {.n = 48, .shared = true, .allocs = 60, .finder = COLLECTION},
    {.n = 3000, .finder = ALLOCATION},
    {.n = 48, .shared = true, .finder = ALLOCATION},
};

// A link that is 0 looks like the end of the list, but slots are missing.
TEST(a_list_that_was_cut_ends_the_process, .n = RT_ARRAY_LEN(cuts),
     .exit = DEATH_EXPECTED)
{
	const struct cut *c = &cuts[_i];
	void *p[FREELIST_MOST];

	heap_begin();
	for (unsigned i = 0; i < c->frees; i++)
		p[i] = alloc_words(c->n);
	write_word(free_many(c->n, c->shared), 0);
	death_expect("rtheap: slot=#\n"
		     "rtheap: fatal: list of freed objects was overwritten");
	for (unsigned i = 0; i < c->allocs; i++)
		alloc_words(c->n);
	for (unsigned i = 0; i < c->frees; i++)
		free_ok(p[i]);
	find_in(c->finder, c->n);
}

// The last link is 0 already.
TEST(a_write_of_0_behind_the_last_object_changes_nothing)
{
	void *p[10];

	heap_start_exact(heap_config(HEAP_QUIET));
	for (size_t i = 0; i < RT_ARRAY_LEN(p); i++)
		p[i] = alloc_words(48);
	for (size_t i = 0; i < RT_ARRAY_LEN(p); i++)
		free_ok(p[i]);
	write_word(p[0], 0);
	ck_assert_ptr_eq(alloc_words(48), p[9]);
	rt_gc();
	ck_assert_uint_eq(heap_healthy().heap_objects, 0);
}
