// Each object is counted once, whichever words lead to it and however many
// markers find it.  A marker stores a mark at once, or keeps it back.
//
// The markers are played by one thread, so each order of events is the one
// that the test wants.
#define RT_NO_INLINE_ALLOC
#include <rt/rt.h>
#include <string.h>

#include "gc/mark/grey.h"
#include "runtime/spans/object.h"
#include "test/harness/await.h"
#include "test/harness/suite.h"

enum { MARKERS = 3, OBJECTS = 3000, STEPS = 20000 };

static struct marker marker[MARKERS];

static void markers_make(void)
{
	memset(marker, 0, sizeof marker);
	for (int i = 0; i < MARKERS; i++)
		grey_look(&marker[i]);
}

static void setup(void)
{
	heap_begin();
	markers_make();
}

static void teardown(void)
{
	ck_assert_int_eq(rt_fini(), RT_OK);
}

static void *make(size_t size, int kind)
{
	void *p = kind == RT_NOSCAN ? rt_alloc_noscan(size) : rt_alloc(size);

	ck_assert_ptr_nonnull(p);
	for (int i = 0; i < MARKERS; i++)
		grey_look(&marker[i]); // the heap may have grown
	return p;
}

static bool is_marked(const void *p)
{
	uint64_t page = arena_offset((uintptr_t)p) >> RT_PAGE_SHIFT;
	const struct mspan *s =
	    arena_span(arena_first_page(page, arena_pageword(page)));

	return mspan_test(s, marker[0].mark_line,
			  mspan_slot(s, (uintptr_t)p - s->base));
}

static enum grey_result mark(int who, const void *p)
{
	struct grey o = {0};
	enum grey_result found = grey_word(&marker[who], (uintptr_t)p, &o);

	if (found == GREY_SMALL || found == GREY_WIDE)
		ck_assert_uint_eq(o.base, (uintptr_t)rt_base(p));
	return found;
}

// counted returns how many objects all markers have counted.
static uint64_t counted(void)
{
	uint64_t n = 0;

	for (int i = 0; i < MARKERS; i++)
		for (unsigned c = 0; c < GREY_COUNTS; c++)
			n += marker[i].objects[c];
	return n;
}

static void publish(void)
{
	for (int i = 0; i < MARKERS; i++)
		grey_publish_all(&marker[i]);
}

GROUP(marks, .setup = setup, .teardown = teardown);

TEST(a_marker_that_is_alone_stores_at_once)
{
	const void *p = make(32, RT_WORDS);

	marker[0].work.alone = true;
	ck_assert_int_eq(mark(0, p), GREY_SMALL);
	ck_assert(is_marked(p));
	ck_assert_int_eq(mark(0, p), GREY_NOTHING);
	ck_assert_int_eq(mark(1, p), GREY_NOTHING);
	publish();
	ck_assert_uint_eq(counted(), 1);
}

TEST(a_mark_kept_back_is_seen_by_its_marker)
{
	const void *p = make(32, RT_WORDS);

	ck_assert_int_eq(mark(0, p), GREY_SMALL);
	ck_assert(!is_marked(p));
	ck_assert_int_eq(mark(0, p), GREY_NOTHING);
	grey_publish_all(&marker[0]);
	ck_assert(is_marked(p));
	ck_assert_int_eq(mark(0, p), GREY_NOTHING);
	ck_assert_int_eq(mark(1, p), GREY_NOTHING);
	publish();
	ck_assert_uint_eq(counted(), 1);
}

TEST(what_two_scan_is_counted_once)
{
	const void *p = make(48, RT_WORDS);
	const void *leaf = make(48, RT_NOSCAN);

	for (int i = 0; i < MARKERS; i++) {
		ck_assert_int_eq(mark(i, p), GREY_SMALL);
		ck_assert_int_eq(mark(i, leaf), GREY_LEAF);
	}
	ck_assert_uint_eq(counted(), 2 * MARKERS);
	publish();
	ck_assert(is_marked(p) && is_marked(leaf));
	ck_assert_uint_eq(counted(), 2);
}

// A marker that finds itself alone still has marks that it has kept back.
TEST(alone_after_keeping_counts_once)
{
	const void *p = make(64, RT_WORDS);

	ck_assert_int_eq(mark(0, p), GREY_SMALL);
	marker[0].work.alone = true;
	ck_assert_int_eq(mark(0, p), GREY_SMALL);
	ck_assert(is_marked(p));
	publish();
	ck_assert(is_marked(p));
	ck_assert_uint_eq(counted(), 1);
}

// A large object must not be scanned twice.
TEST(large_objects_are_marked_at_once)
{
	const char *p = make(100000, RT_WORDS);

	ck_assert_int_eq(mark(0, p + 5000), GREY_WIDE);
	ck_assert(is_marked(p));
	ck_assert_int_eq(mark(1, p), GREY_NOTHING);
	ck_assert_int_eq(mark(1, p + 99999), GREY_NOTHING);
	publish();
	ck_assert_uint_eq(counted(), 1);
	ck_assert_uint_eq(marker[0].large_bytes, rt_size(p));
	ck_assert_uint_eq(marker[1].large_bytes, 0);
}

static const size_t sizes[] = {16,  32,	 48,   64,   80,    96,	   112,
			       256, 768, 1024, 5376, 16384, 32760, 70000};

struct thing {
	char *p;
	size_t size;
	int kind;
	bool marked;
	unsigned large; // times a large one was found new
};

static void things_make(struct thing *t, size_t n, struct rng *r)
{
	for (size_t i = 0; i < n; i++) {
		// Few are large, so that the heap is small.
		t[i].size = sizes[rng_below(r, rng_below(r, 16) ? 8 : 14)];
		t[i].kind = rng_below(r, 3) ? RT_WORDS : RT_NOSCAN;
		t[i].p = make(t[i].size, t[i].kind);
		t[i].marked = false;
		t[i].large = 0;
	}
}

// result_fits tells whether a look at a thing may have this result.
static bool result_fits(const struct thing *t, enum grey_result found)
{
	if (found == GREY_NOTHING)
		return t->marked;
	if (t->kind == RT_NOSCAN)
		return found == GREY_LEAF;
	return found == (t->size <= GREY_SMALL_BYTES ? GREY_SMALL : GREY_WIDE);
}

TEST(each_object_counts_once_in_any_order)
{
	static struct thing thing[OBJECTS];
	unsigned wrong = 0, twice = 0;
	uint64_t marked = 0;
	struct rng r;

	rng_init(&r, "each_object_counts_once_in_any_order");
	things_make(thing, OBJECTS, &r);
	for (int i = 0; i < STEPS; i++) {
		struct thing *t = &thing[rng_below(&r, OBJECTS / 2)];
		int who = (int)rng_below(&r, MARKERS);
		enum grey_result found =
		    mark(who, t->p + rng_below(&r, t->size));

		wrong += !result_fits(t, found);
		twice += t->marked && found != GREY_NOTHING;
		t->large += t->size > 32760 && found != GREY_NOTHING;
		t->marked = true;
		if (rng_below(&r, 500) == 0)
			grey_publish_all(&marker[who]);
	}
	publish();
	for (size_t i = 0; i < OBJECTS; i++) {
		wrong += is_marked(thing[i].p) != thing[i].marked;
		wrong += thing[i].large > 1;
		marked += thing[i].marked;
	}
	ck_assert_uint_eq(wrong, 0);
	ck_assert_uint_gt(twice, 100); // otherwise nothing was tested
	ck_assert_uint_eq(counted(), marked);
}

static void setup_align8(void)
{
	rt_config c = heap_config(HEAP_QUIET);

	c.align8 = 1;
	heap_start(c);
	markers_make();
}

GROUP(align8, .setup = setup_align8, .teardown = teardown);

// With objects of 8 and 24 bytes, every word must be divided by the size to
// find its object, and objects of 8 bytes have their bits in a bitmap8.
TEST(objects_that_share_granules_count_once)
{
	static const size_t odd[] = {8, 24, 16};
	static const enum grey_result found[] = {GREY_WIDE, GREY_WIDE,
						 GREY_SMALL};

	for (int i = 0; i < 3; i++) {
		const char *a = make(odd[i], RT_WORDS);
		const char *b = make(odd[i], RT_WORDS);

		ck_assert_int_eq(mark(0, a + 7), found[i]);
		ck_assert_int_eq(mark(0, a), GREY_NOTHING);
		ck_assert_int_eq(mark(1, b), found[i]);
		ck_assert_int_eq(mark(1, b + 3), GREY_NOTHING);
		mark(1, a);
		publish();
		ck_assert(is_marked(a) && is_marked(b));
		ck_assert_uint_eq(counted(), 2 * ((uint64_t)i + 1));
	}
}
