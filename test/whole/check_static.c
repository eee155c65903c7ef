// Static data as roots: the tests that need no library to be loaded.
#include <errno.h>
#include <link.h>
#include <stdio.h>
#include <string.h>

#include "gc/mark/checkmark.h"
#include "gc/mark/statics.h"
#include "test/harness/death.h"
#include "test/harness/fault.h"
#include "test/harness/heap.h"
#include "test/harness/thread.h"

// The library that tests link is part of the program, so its own data is
// scanned as well.  So these tests do not count the objects that die while
// static data is scanned; test/scripts/static.c does.
enum { MANY = 100 };
static void *slot[MANY];

static void fill(void)
{
	for (unsigned i = 0; i < MANY; i++)
		slot[i] = rt_alloc(48);
}

// alive counts the slots whose objects live after a collection.
static unsigned alive(void)
{
	unsigned n = 0;

	ck_assert_int_eq(rt_gc(), RT_OK);
	for (unsigned i = 0; i < MANY; i++)
		n += rt_is_heap(slot[i]) == 1;
	return n;
}

static void begin(void)
{
	heap_start_exact(heap_config(HEAP_QUIET));
}

GROUP(data, .setup = begin, .timeout = 60);

TEST(the_argument_is_0_or_1)
{
	ck_assert_int_eq(rt_roots_static(2), RT_EINVAL);
	ck_assert_int_eq(rt_roots_static(-1), RT_EINVAL);
	ck_assert_int_eq(rt_roots_static(0), RT_OK);
	ck_assert_int_eq(rt_roots_static(1), RT_OK);
	ck_assert_int_eq(rt_roots_static(1), RT_OK);
	fill();
	ck_assert_uint_eq(alive(), MANY);
	ck_assert_int_eq(rt_roots_static(0), RT_OK);
	ck_assert_uint_eq(alive(), 0);
}

static void *call_unattached(void *arg)
{
	(void)arg;
	return (void *)(intptr_t)rt_roots_static(1);
}

TEST(wrong_places_are_refused)
{
	ck_assert_int_eq((int)(intptr_t)run_beside(call_unattached, NULL),
			 RT_EPERM);
	ck_assert_int_eq(rt_stop_the_world(RT_STOP_HOST), RT_OK);
	ck_assert_int_eq(rt_roots_static(1), RT_EBUSY);
	ck_assert_int_eq(rt_start_the_world(NULL), RT_OK);
	ck_assert_int_eq(rt_blocking_enter(), RT_OK);
	ck_assert_int_eq(rt_roots_static(1), RT_ESTATE);
	ck_assert_int_eq(rt_blocking_leave(), RT_OK);
	fill();
	ck_assert_uint_eq(alive(), 0);
	ck_assert_int_eq(rt_fini(), RT_OK);
	ck_assert_int_eq(rt_roots_static(1), RT_ESTATE);
}

TEST(the_next_heap_begins_without)
{
	ck_assert_int_eq(rt_roots_static(1), RT_OK);
	ck_assert_int_eq(rt_fini(), RT_OK);
	begin();
	fill();
	ck_assert_uint_eq(alive(), 0);
}

TEST(it_counts_as_ranges_do)
{
	uint64_t before;

	ck_assert_int_eq(rt_gc(), RT_OK);
	before = heap_metric("/gc/scan/globals:bytes");
	ck_assert_int_eq(rt_roots_static(1), RT_OK);
	ck_assert_int_eq(rt_gc(), RT_OK);
	ck_assert_uint_ge(heap_metric("/gc/scan/globals:bytes"),
			  before + sizeof slot);
	ck_assert_int_eq(rt_roots_static(0), RT_OK);
	ck_assert_int_eq(rt_gc(), RT_OK);
	ck_assert_uint_eq(heap_metric("/gc/scan/globals:bytes"), before);
	heap_healthy();
}

// ---- refusals ----

static const int refusals[] = {EPERM, ENOSYS, ENOMEM};

TEST(a_refused_call_changes_nothing, .n = RT_ARRAY_LEN(refusals))
{
	fault_fail(OSCALL_PEEK, 1, 1, refusals[_i]);
	ck_assert_int_eq(rt_roots_static(1), RT_ENOTSUP);
	ck_assert_uint_eq(fault_failed(OSCALL_PEEK), 1);
	fill();
	ck_assert_uint_eq(alive(), 0);
	ck_assert_uint_eq(fault_count(OSCALL_PEEK), 1);
	ck_assert_int_eq(rt_roots_static(1), RT_OK);
	fill();
	ck_assert_uint_eq(alive(), MANY);
}

// The system may refuse the call only later, when rt_roots_static has
// succeeded.
TEST(without_the_call_data_is_read_plainly, .n = RT_ARRAY_LEN(refusals))
{
	ck_assert_int_eq(rt_roots_static(1), RT_OK);
	fill();
	fault_fail(OSCALL_PEEK, 1, UINT64_MAX, refusals[_i]);
	ck_assert_uint_eq(alive(), MANY);
	ck_assert_uint_gt(fault_failed(OSCALL_PEEK), 0);
	fault_fail(OSCALL_PEEK, 0, 0, 0);
	ck_assert_uint_eq(alive(), MANY);
}

// globals returns the bytes of roots that the last collection found.
static uint64_t globals(void)
{
	return heap_metric("/gc/scan/globals:bytes");
}

// Each read of a collection is refused once, in turn.  All live objects are
// found nevertheless: data is read again in parts, and if an entry is gone, the
// walk begins again from the start.
TEST(an_entry_that_is_gone_ends_nothing)
{
	// The first two read the program headers.  A sanitizer's data needs
	// more reads than MOST.
	enum { FIRST = 3, MOST = 300, PARTS = 2 };
	uint64_t nth = FIRST, reads, all, failed;
	unsigned again = 0;

	ck_assert_int_eq(rt_roots_static(1), RT_OK);
	fill();
	fault_fail(OSCALL_PEEK, 0, 0, 0);
	ck_assert_uint_eq(alive(), MANY);
	reads = fault_count(OSCALL_PEEK);
	all = globals();
	do {
		fault_fail(OSCALL_PEEK, nth, 1, EFAULT);
		ck_assert_uint_eq(alive(), MANY);
		failed = fault_failed(OSCALL_PEEK);
		if (fault_count(OSCALL_PEEK) <= reads + PARTS)
			continue;
		again++;
		ck_assert_uint_eq(globals(), all);
	} while (failed != 0 && ++nth < MOST);
	fault_fail(OSCALL_PEEK, 0, 0, 0);
	ck_assert_uint_gt(nth, FIRST);
	ck_assert(again != 0 || failed != 0 || statics.linker == 0);
	ck_assert_uint_eq(alive(), MANY);
	ck_assert_uint_eq(globals(), all);
}

// ---- walks ----

// A copy continues behind memory that cannot be read.
TEST(a_copy_skips_what_is_not_mapped)
{
	size_t page = oscall_page_size();
	uintptr_t *p = oscall_map(4 * page), lo = (uintptr_t)p, hi;
	static uintptr_t words[4096];
	size_t n = 0, steps = 0;

	ck_assert_ptr_nonnull(p);
	for (size_t i = 0; i < 4 * page / 8; i++)
		p[i] = 7;
	ck_assert_int_eq(oscall_unmap((char *)p + page, page), 0);
	for (hi = lo + 4 * page; lo < hi; steps++)
		n += statics_copy(oscall_gettid(), words, RT_ARRAY_LEN(words),
				  &lo, hi);
	ck_assert_uint_eq(lo, hi);
	ck_assert_uint_eq(n, 3 * page / 8);
	ck_assert_uint_eq(steps, 3);
	ck_assert_uint_eq(words[0], 7);
}

static bool holds(const struct statics_range *r, const void *p)
{
	return (uintptr_t)p >= r->lo && (uintptr_t)p < r->hi;
}

extern void *const relocated[1]; // read-only after relocation
void *const relocated[1] = {slot};
static __thread void *volatile own_to_threads = slot;

TEST(a_walk_finds_writable_data_alone)
{
	struct statics_walk walk;
	struct statics_range r;
	unsigned slots = 0, others = 0, bad = 0;

	ck_assert_int_eq(rt_roots_static(1), RT_OK);
	ck_assert_int_eq(rt_stop_the_world(RT_STOP_HOST), RT_OK);
	statics_begin(&walk, oscall_gettid());
	while (statics_next(&walk, &r)) {
		slots += holds(&r, slot);
		others += holds(&r, (const void *)relocated) ||
			  holds(&r, (const void *)&own_to_threads) ||
			  holds(&r, (const void *)&walk) ||
			  holds(&r, (const void *)(uintptr_t)rt_version);
		bad += r.lo >= r.hi || r.lo % 8 != 0 || r.hi % 8 != 0;
	}
	ck_assert_int_eq(rt_start_the_world(NULL), RT_OK);
	ck_assert_uint_eq(slots, 1);
	ck_assert_uint_eq(others, 0);
	ck_assert_uint_eq(bad, 0);
	ck_assert_uint_eq(walk.restarts, 0);
}

// ---- a list that changes ----

// The image of a loaded library that has one writable segment.
struct image {
	ElfW(Ehdr) e;
	ElfW(Phdr) ph;
	uintptr_t word[4];
};

enum { PROGRAM, FIRST, X, Y, LAST, ENTRIES };

// The list of a dynamic linker.  Here the test takes the place of the linker.
static struct {
	struct r_debug debug;
	struct link_map entry[ENTRIES];
	struct image image[ENTRIES];
	unsigned found[ENTRIES]; // how often a walk came to the segment
} fake;

static void join(unsigned a, unsigned b)
{
	fake.entry[a].l_next = &fake.entry[b];
	fake.entry[b].l_prev = &fake.entry[a];
}

static void make_image(unsigned i)
{
	struct image *m = &fake.image[i];

	memset(m, 0, sizeof *m);
	memset(&fake.entry[i], 0, sizeof fake.entry[i]);
	memcpy(m->e.e_ident, ELFMAG, SELFMAG);
	m->e.e_phentsize = sizeof m->ph;
	m->e.e_phoff = offsetof(struct image, ph);
	m->e.e_phnum = 1;
	m->ph.p_type = PT_LOAD;
	m->ph.p_flags = PF_R | PF_W;
	m->ph.p_vaddr = offsetof(struct image, word);
	m->ph.p_memsz = sizeof m->word;
	fake.entry[i].l_addr = (uintptr_t)m;
}

// begin_list makes a list of all entries but the last.
static void begin_list(void)
{
	begin();
	ck_assert_int_eq(rt_roots_static(1), RT_OK);
	memset(fake.found, 0, sizeof fake.found);
	for (unsigned i = 0; i < ENTRIES; i++)
		make_image(i);
	for (unsigned i = PROGRAM; i < Y; i++)
		join(i, i + 1);
	fake.debug.r_map = &fake.entry[PROGRAM];
	statics.linker = (uintptr_t)&fake.debug;
}

static void unlink_x(void)
{
	join(FIRST, Y);
}

static void zero_x(void)
{
	unlink_x();
	memset(&fake.entry[X], 0, sizeof fake.entry[X]);
}

static void move_x_behind(void)
{
	unlink_x();
	fake.entry[X].l_next = NULL;
	join(Y, X);
}

static void move_x_and_add(void)
{
	move_x_behind();
	join(X, LAST);
}

// The entry now belongs to another library, in the same place of the list.
static void replace_x(void)
{
	make_image(X);
	join(FIRST, X);
	join(X, LAST);
	fake.entry[X].l_addr = (uintptr_t)&fake.image[LAST];
}

static void keep_x(void)
{
}

// Half of a removal: FIRST leads to Y, but Y does not lead back to FIRST.
static void begin_unlinking(void)
{
	fake.entry[FIRST].l_next = &fake.entry[Y];
}

// walk_and walks the list, and changes it when the walk first comes to entry
// at.  It returns how often the walk began again.
static unsigned walk_and(unsigned at, void (*change)(void))
{
	struct statics_walk walk;
	struct statics_range r;

	ck_assert_int_eq(rt_stop_the_world(RT_STOP_HOST), RT_OK);
	statics_begin(&walk, oscall_gettid());
	while (statics_next(&walk, &r))
		for (unsigned i = FIRST; i < ENTRIES; i++) {
			if (r.lo != (uintptr_t)fake.image[i].word)
				continue;
			if (i == at && fake.found[i] == 0)
				change();
			fake.found[i]++;
		}
	ck_assert_int_eq(rt_start_the_world(NULL), RT_OK);
	return walk.restarts;
}

GROUP(changes, .setup = begin_list, .timeout = 60);

static const struct change {
	void (*make)(void);
	unsigned at, restarts;
} changes[] = {
    {keep_x, X, 0},
    {unlink_x, X, 1},
    {zero_x, X, 1},
    {move_x_behind, X, 1},
    {move_x_and_add, X, 1},
    {unlink_x, FIRST, 0},
    {move_x_behind, FIRST, 0},
    {begin_unlinking, FIRST, STATICS_RESTARTS},
    {begin_unlinking, X, STATICS_RESTARTS},
};

// An entry that is in the list all the time is found once, whatever happens to
// other entries.
TEST(a_walk_loses_nothing, .n = RT_ARRAY_LEN(changes))
{
	const struct change *c = &changes[_i];

	ck_assert_uint_eq(walk_and(c->at, c->make), c->restarts);
	ck_assert_uint_eq(fake.found[FIRST], 1);
	ck_assert_uint_eq(fake.found[Y], 1);
	ck_assert_uint_le(fake.found[X], 1);
	ck_assert_uint_eq(fake.found[LAST], c->make == move_x_and_add);
}

TEST(another_library_in_the_same_place_is_noticed)
{
	ck_assert_uint_eq(walk_and(X, replace_x), 1);
	ck_assert_uint_eq(fake.found[FIRST], 1);
	ck_assert_uint_eq(fake.found[LAST], 1);
}

// ---- checkmark ----

static void report(void)
{
	begin();
	ck_assert_int_eq(rt_roots_static(1), RT_OK);
	slot[0] = rt_alloc(48);
	fprintf(stderr, "missed %p\n", slot[0]);
	must(rt_stop_the_world(RT_STOP_HOST));
	checkmark_all();
	fputs("passed\n", stderr);
}

GROUP(checks, .timeout = 60);

TEST(a_word_that_was_not_followed_is_reported)
{
	ck_assert(death_aborted(death_status(report)));
	ck_assert_msg(strstr(death_output, "found in static data at 0x"), "%s",
		      death_output);
	ck_assert_ptr_null(strstr(death_output, "passed"));
}
