// Types by index: a host fills entries of its table after it has registered the
// kind, before the first collection and between collections.
#include <rt/rt.h>

#include "test/harness/heap.h"
#include "test/whole/kinds.h"

enum {
	TYPES = 4,		   // entries of the table
	OBJECTS = 1000 / HEAP_CUT, // of each number, in a round
	MOST = 7 * OBJECTS,	   // in both rounds
	WORDS = 6,
};

// Bit w says that word w is a reference; word 0 is the header.
static const uint64_t bits[TYPES] = {0x06, 0x38, 0x2a, 0x3e};
static rt_type types[TYPES];
static const rt_type *table[TYPES];

// An object, and what the words behind its header refer to.
static struct holder {
	uintptr_t *p;
	unsigned number;
	void *leaf[WORDS]; // NULL: it has died
} holders[MOST];
static size_t nholders;
static void *root[MOST];

// fill_entry fills the entry for a number, so that objects with that number
// have references.
static void fill_entry(unsigned number)
{
	types[number] = (rt_type){.struct_size = sizeof(rt_type),
				  .size = WORDS * 8,
				  .ptrdata = WORDS * 8,
				  .bitmap = &bits[number]};
	__atomic_store_n(&table[number], &types[number], __ATOMIC_RELEASE);
}

// is_reference tells whether word w of objects with a number is a reference.
static bool is_reference(unsigned number, unsigned w)
{
	return number < TYPES && table[number] && bits[number] >> w & 1;
}

static int register_empty(void)
{
	rt_kind_desc d = good_desc(RT_LAYOUT_INDEX);
	int kind;

	d.types = table;
	d.ntypes = TYPES;
	d.header_mask = 0xff00;
	d.header_shift = 8;
	kind = rt_kind_register(&d);
	ck_assert_int_gt(kind, 0);
	return kind;
}

static void make_holder(int kind, unsigned number)
{
	struct holder *h = &holders[nholders];

	h->number = number;
	h->p = rt_alloc_kind(kind, WORDS * 8);
	ck_assert_ptr_nonnull(h->p);
	root[nholders++] = h->p;
	h->p[0] = 0xab0000 | number << 8 | 0xcd;
	for (unsigned w = 1; w < WORDS; w++) {
		h->leaf[w] = rt_alloc_noscan(32);
		ck_assert_ptr_nonnull(h->leaf[w]);
		h->p[w] = (uintptr_t)h->leaf[w];
	}
}

// check_leaves requires that a leaf of a holder lives if the holder's word is a
// reference, and is dead otherwise.  Returns how many leaves live.
static unsigned check_leaves(struct holder *h)
{
	unsigned live = 0;

	for (unsigned w = 1; w < WORDS; w++) {
		bool lives = is_reference(h->number, w);

		if (!h->leaf[w])
			continue; // its slot may have another object
		ck_assert_msg(rt_is_heap(h->leaf[w]) == lives,
			      "word %u of number %u", w, h->number);
		live += lives;
		if (!lives)
			h->leaf[w] = NULL;
	}
	return live;
}

// collect_and_check collects, and requires that the holders, and only those
// leaves to which references lead, live.
static void collect_and_check(int kind)
{
	uint64_t live = nholders;

	must(rt_gc());
	for (size_t i = 0; i < nholders; i++) {
		ck_assert_int_eq(rt_kind_of(holders[i].p), kind);
		live += check_leaves(&holders[i]);
	}
	ck_assert_uint_eq(heap_live(), live);
}

GROUP(filled, .timeout = 60);

// Entry 3 is filled after a collection that met entry 2, which is never filled.
// The number 4 is beyond the table.  Objects with the numbers 2 and 4 have no
// references.
TEST(an_entry_may_be_filled_until_an_object_has_its_number, .n = 2)
{
	static const unsigned before[] = {0, 2, 4}, after[] = {3, 1, 2, 0};
	rt_config c = heap_config_checked();
	int kind;

	c.gc_threads = _i == 0 ? 0 : 3;
	heap_start_exact(c);
	must(rt_roots_add(root, root + MOST, RT_ROOT_EXACT));
	kind = register_empty();
	fill_entry(0);
	fill_entry(1);
	for (unsigned i = 0; i < OBJECTS; i++)
		for (unsigned k = 0; k < RT_ARRAY_LEN(before); k++)
			make_holder(kind, before[k]);
	collect_and_check(kind);
	fill_entry(3);
	for (unsigned i = 0; i < OBJECTS; i++)
		for (unsigned k = 0; k < RT_ARRAY_LEN(after); k++)
			make_holder(kind, after[k]);
	collect_and_check(kind);
	collect_and_check(kind);
	heap_healthy();
}
