// Objects of types without a header (rt_alloc_typed): exactly the words that
// the bits of their type name are references.
#include <rt/rt.h>

#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/pages/arena.h"
#include "runtime/os/settings.h"
#include "gc/mark/grey.h"
#include "test/harness/fault.h"
#include "test/harness/kind.h"
#include "test/harness/process.h"
#include "test/harness/thread.h"

static const uint64_t bit_0[] = {1}, bits_5[] = {5}, bit_1[] = {2};

// A cell: a reference, a word of anything, a reference.
static const rt_type cell = {.struct_size = sizeof(rt_type),
			     .size = 24,
			     .ptrdata = 24,
			     .bitmap = bits_5};
// A vector: a word of anything, a reference, and references.
static const rt_type vector = {.struct_size = sizeof(rt_type),
			       .size = 16,
			       .ptrdata = 16,
			       .bitmap = bit_1,
			       .tail_size = 8,
			       .tail_ptrdata = 8,
			       .tail_bitmap = bit_0};
static const rt_type bytes = {.struct_size = sizeof(rt_type), .size = 12};

static uintptr_t roots[16];

static void begin(rt_config c)
{
	memset(roots, 0, sizeof roots);
	heap_start_exact(c);
	must(rt_roots_add(roots, roots + RT_ARRAY_LEN(roots), RT_ROOT_EXACT));
}

// ---- the contract, line by line ----

GROUP(contract, .timeout = 60);

TEST(the_size_is_that_of_part_and_elements)
{
	begin(heap_config(HEAP_QUIET));
	for (size_t n = 0; n < 20000; n = n * 3 / 2 + 1) {
		char *p = rt_alloc_typed(&vector, n);
		char *q = rt_alloc_typed(&cell, n + 1);

		ck_assert(p && heap_is_zero(p, 16 + 8 * n));
		ck_assert(q && heap_is_zero(q, 24 * (n + 1)));
		ck_assert_uint_eq(rt_size(p),
				  rt_good_size_of(RT_TYPED, 16 + 8 * n));
		ck_assert_uint_eq(rt_size(q),
				  rt_good_size_of(RT_TYPED, 24 * (n + 1)));
		ck_assert_int_eq(rt_kind_of(p + 8 * n + 15), RT_TYPED);
		ck_assert_int_eq(rt_kind_of(q), RT_TYPED);
		ck_assert_uint_eq((uintptr_t)p % 16, 0);
		ck_assert_uint_eq((uintptr_t)q % 16, 0);
		memset(p, 0x77, 16 + 8 * n);
		memset(q, 0x77, 24 * (n + 1));
	}
	ck_assert_uint_eq(heap_live_after_gc(), 0);
}

TEST(an_object_may_be_of_no_bytes)
{
	rt_type empty = {.struct_size = sizeof(rt_type)};

	begin(heap_config(HEAP_QUIET));
	ck_assert_ptr_eq(rt_alloc_typed(&cell, 0), rt_alloc(0));
	ck_assert_ptr_eq(rt_alloc_typed(&empty, 1000), rt_alloc(0));
	empty.tail_size = 8;
	ck_assert_ptr_eq(rt_alloc_typed(&empty, 0), rt_alloc(0));
	ck_assert_uint_eq(heap_live(), 0);
}

TEST(a_type_says_its_alignment, .n = 2)
{
	rt_config c = heap_config(HEAP_QUIET);
	rt_type y = cell;

	c.gcstress = _i; // no allocation is inline
	begin(c);
	ck_assert_uint_eq(rt_good_size_of(RT_TYPED, 24), 32);
	for (int i = 0; i < 3000 / HEAP_CUT; i++) {
		uintptr_t p;

		y.align = i % 3 * 8;
		y.size = 8 + i % 33 / 8 * 8;
		y.ptrdata = 8;
		p = (uintptr_t)rt_alloc_typed(&y, 1);
		roots[i % 16] = p;
		if (y.align == 8 && y.size > 16 && y.size <= 24) {
			ck_assert_uint_eq(p % 8, 0);
			ck_assert_uint_eq(rt_size((void *)p), 24);
		} else {
			ck_assert_uint_eq(p % 16, 0);
			ck_assert_uint_eq(rt_size((void *)p),
					  rt_good_size_of(RT_TYPED, y.size));
		}
	}
	ck_assert_uint_eq(heap_live_after_gc(), 16);
}

// The granule of an object's bit may begin 8 bytes behind the beginning of the
// object.
TEST(no_address_inside_an_object_is_its_reference)
{
	rt_type y = cell;
	uintptr_t p[2];

	y.align = 8;
	begin(heap_config(HEAP_QUIET));
	p[0] = (uintptr_t)rt_alloc_typed(&y, 1);
	p[1] = (uintptr_t)rt_alloc_typed(&y, 1);
	ck_assert_uint_ne(p[0] % 16, p[1] % 16);
	roots[0] = p[0] + 8;
	roots[1] = p[1] + 8;
	ck_assert_uint_eq(heap_live_after_gc(), 0);
}

TEST(no_other_function_allocates_typed_objects)
{
	begin(heap_config(HEAP_QUIET));
	for (int i = 0; i < 2; i++) {
		ck_assert_ptr_null(rt_alloc_of(RT_TYPED, 24));
		ck_assert_ptr_null(rt_alloc_kind(RT_TYPED, 24));
		ck_assert_ptr_null(rt_alloc_kind(RT_TYPED, 0));
		ck_assert_ptr_null(rt_alloc_kind(RT_TYPED, 100000));
		ck_assert_ptr_null(
		    rt_alloc_kind_in(rt_thread_self(), RT_TYPED, 24));
		ck_assert_int_eq(rt_kind_unregister(RT_TYPED), RT_EINVAL);
		ck_assert_ptr_nonnull(rt_alloc_typed(&cell, 1));
	}
}

static const rt_value_format plain = RT_FORMAT_PLAIN;
static const rt_value_format tagged = RT_FORMAT_LOW_TAG(7, 1);
static const rt_value_format pair = RT_FORMAT_PAIR(1, 1);

#define WRONG(X)                                                               \
	X(y.struct_size = 0)                                                   \
	X(y.struct_size--)                                                     \
	X(y.ptrdata = 4)                                                       \
	X(y.ptrdata = 24)                                                      \
	X(y.bitmap = NULL)                                                     \
	X(y.size = 20)                                                         \
	X(y.tail_size = 12)                                                    \
	X(y.tail_ptrdata = 16)                                                 \
	X(y.tail_bitmap = NULL)                                                \
	X(y.trace = trace_nothing)                                             \
	X(y.format = &tagged)                                                  \
	X(y.format = &pair)                                                    \
	X(y.align = 4)                                                         \
	X(y.align = 32)                                                        \
	X(y.spare = 1)
#define EXPECT_NULL(change)                                                    \
	{                                                                      \
		rt_type y = vector;                                            \
		ck_assert_ptr_nonnull(rt_alloc_typed(&y, 1));                  \
		change;                                                        \
		ck_assert_msg(!rt_alloc_typed(&y, 1), #change);                \
		ck_assert_msg(!rt_alloc_typed(&y, 5000), #change);             \
	}

TEST(what_bits_cannot_describe_is_refused)
{
	rt_type good = vector;

	begin(heap_config(HEAP_QUIET));
	ck_assert_ptr_null(rt_alloc_typed(NULL, 1));
	WRONG(EXPECT_NULL)
	good.format = &plain;
	ck_assert_ptr_nonnull(rt_alloc_typed(&good, 1));
	ck_assert_ptr_nonnull(rt_alloc_typed(&good, 5000));
}

TEST(a_longer_type_is_taken_if_the_rest_is_zero)
{
	struct {
		rt_type y;
		uint64_t more;
	} longer = {.y = vector};

	begin(heap_config(HEAP_QUIET));
	longer.y.struct_size = sizeof longer;
	ck_assert_ptr_nonnull(rt_alloc_typed(&longer.y, 1));
	ck_assert_ptr_nonnull(rt_alloc_typed(&longer.y, 5000));
	longer.more = 1;
	ck_assert_ptr_null(rt_alloc_typed(&longer.y, 1));
	ck_assert_ptr_null(rt_alloc_typed(&longer.y, 5000));
}

TEST(references_in_an_array_are_aligned)
{
	rt_type y = cell;

	begin(heap_config(HEAP_QUIET));
	y.size = 28;
	ck_assert_ptr_nonnull(rt_alloc_typed(&y, 1));
	ck_assert_ptr_null(rt_alloc_typed(&y, 2));
	ck_assert_ptr_null(rt_alloc_typed(&y, 2000));
	ck_assert_uint_eq(rt_size(rt_alloc_typed(&bytes, 4)), 48);
	ck_assert_ptr_nonnull(rt_alloc_typed(&bytes, 20000));
}

// A size that overflows does not become a small one.
TEST(a_size_that_overflows_is_refused)
{
	static const size_t counts[] = {SIZE_MAX,	   SIZE_MAX / 8,
					SIZE_MAX / 8 - 1,  SIZE_MAX / 8 + 1,
					SIZE_MAX / 24 + 1, SIZE_MAX / 2 + 1,
					(size_t)1 << 61,   (size_t)1 << 62};

	begin(heap_config(HEAP_QUIET));
	for (unsigned i = 0; i < RT_ARRAY_LEN(counts); i++) {
		ck_assert_ptr_null(rt_alloc_typed(&vector, counts[i]));
		ck_assert_ptr_null(rt_alloc_typed(&cell, counts[i]));
		ck_assert_ptr_null(rt_alloc_typed(&bytes, counts[i]));
	}
	ck_assert_uint_eq(heap_live(), 0);
}

TEST(without_a_heap_sizes_are_known)
{
	ck_assert_uint_eq(rt_good_size_of(RT_TYPED, 24), 32);
	ck_assert_uint_eq(rt_good_size_of(RT_TYPED, 0), 0);
	ck_assert_ptr_null(rt_alloc_typed(&cell, 1));
}

// ---- statistics and memory of the table ----

GROUP(table, .timeout = 60);

static uint64_t table_bytes(void)
{
	return systable_ready(&arena.table[ARENA_TABLES - 2]);
}

TEST(the_table_is_counted_from_its_first_use_on)
{
	uint64_t before, chunks;

	begin(heap_config(HEAP_QUIET));
	rt_alloc(5 << 20);
	before = heap_stats().gc_sys;
	ck_assert_uint_eq(table_bytes(), 0);
	heap_recount();
	ck_assert_ptr_nonnull(rt_alloc_typed(&cell, 1));
	chunks = arena_prepared() >> RT_CHUNK_SHIFT;
	ck_assert_uint_eq(table_bytes(), chunks * (64 << 10));
	ck_assert_uint_ge(heap_stats().gc_sys, before + table_bytes());
	heap_recount();
	rt_alloc(200 << 20);
	chunks = arena_prepared() >> RT_CHUNK_SHIFT;
	ck_assert_uint_eq(table_bytes(), chunks * (64 << 10));
	heap_recount();
	heap_healthy();
	ck_assert_int_eq(rt_fini(), RT_OK);
	ck_assert_uint_eq(table_bytes(), 0);
	ck_assert_uint_eq(gauge_load(&gauges.gc_misc_sys), 0);
	ck_assert_uint_eq(gauge_load(&gauges.mappings), 0);
	begin(heap_config(HEAP_QUIET));
	ck_assert_uint_eq(table_bytes(), 0);
}

// resident returns how many pages of the table have memory.
static uint64_t resident(void)
{
	static unsigned char in[1 << 16];
	size_t n = table_bytes() / sysmem_page_size();
	uint64_t sum = 0;

	ck_assert_uint_le(n, sizeof in);
	ck_assert_int_eq(
	    mincore(arena.table[ARENA_TABLES - 2].base, table_bytes(), in), 0);
	for (size_t i = 0; i < n; i++)
		sum += in[i] & 1;
	return sum;
}

TEST(memory_of_the_table_is_released)
{
	uint64_t most;

	begin(heap_config(HEAP_QUIET));
	while (arena_used() < 64 << 20)
		ck_assert_ptr_nonnull(rt_alloc_typed(&cell, 20));
	most = resident();
	ck_assert_uint_ge(most, (1 << 20) / sysmem_page_size() / 2);
	ck_assert_int_eq(rt_gc(), RT_OK);
	ck_assert_int_eq(rt_free_os_memory(), RT_OK);
	ck_assert_uint_le(resident(), most / 8);
	ck_assert_ptr_nonnull(rt_alloc_typed(&cell, 20));
	heap_healthy();
}

// ---- refusals ----

GROUP(refusals, .timeout = 60);

static const enum oscall needed[] = {OSCALL_RESERVE, OSCALL_COMMIT};

// make allocates four typed objects, three of them large.  Returns how many
// were refused.
static unsigned make(void)
{
	unsigned refused = 0;

	for (unsigned i = 0; i < 4; i++)
		roots[i] = (uintptr_t)rt_alloc_typed(&cell, 1 + 5000 * i);
	for (unsigned i = 0; i < 4; i++)
		refused += roots[i] == 0;
	return refused;
}

// Typed objects are used for the first time in an empty heap, or in a heap with
// memory, for which the table then needs bits at once.  Each call that the
// first use makes is refused, alone or with all calls after it.
TEST(each_call_of_the_first_use_may_be_refused, .n = 4 * RT_ARRAY_LEN(needed))
{
	enum oscall kind = needed[_i / 4];
	uint64_t n = 0, failed;
	unsigned refused;

	do {
		begin(heap_config(HEAP_QUIET));
		if (_i / 2 % 2)
			ck_assert_ptr_nonnull(rt_alloc(5000));
		fault_fail(kind, ++n, _i % 2 ? UINT64_MAX : 1, 12);
		refused = make();
		failed = fault_failed(kind);
		ck_assert(refused == 0 || failed != 0);
		ck_assert(refused != 0 || _i % 2 == 0 || failed == 0 || n > 1);
		fault_fail(kind, 0, 0, 0);
		heap_healthy();
		ck_assert_uint_eq(make(), 0);
		ck_assert_uint_eq(heap_live_after_gc(), 4);
		heap_healthy();
		ck_assert_int_eq(rt_fini(), RT_OK);
		ck_assert_uint_eq(gauge_load(&gauges.gc_misc_sys), 0);
	} while (failed != 0);
	ck_assert_uint_gt(n, 1);
}

// refuse_growth refuses the n-th commit, and all after it, that a heap makes
// when it grows.  Returns whether it made so many.
static bool refuse_growth(unsigned n, bool typed)
{
	const void *p;
	uint64_t failed;

	begin(heap_config(HEAP_QUIET));
	ck_assert_ptr_nonnull(rt_alloc(24));
	if (typed)
		ck_assert_ptr_nonnull(rt_alloc_typed(&cell, 1));
	fault_fail(OSCALL_COMMIT, n, UINT64_MAX, 12);
	p = rt_alloc(100 << 20);
	failed = fault_failed(OSCALL_COMMIT);
	fault_fail(OSCALL_COMMIT, 0, 0, 0);
	heap_healthy();
	ck_assert_uint_eq(p == NULL, failed != 0);
	if (typed) {
		ck_assert_uint_eq(make(), 0);
		ck_assert_uint_eq(heap_live_after_gc(), 4);
	}
	ck_assert_int_eq(rt_fini(), RT_OK);
	return failed != 0;
}

// growth_commits returns how many commits a heap makes when it grows, each of
// which was refused once.
static unsigned growth_commits(bool typed)
{
	unsigned n = 1;

	while (refuse_growth(n, typed))
		n++;
	return n - 1;
}

// When a heap with bits grows, it makes one commit more than a heap without.
// If that is refused, the heap does not grow, and what it has stays usable.
TEST(growth_needs_bits)
{
	unsigned without = growth_commits(false);

	ck_assert_uint_gt(without, 0);
	ck_assert_uint_eq(growth_commits(true), without + 1);
}

// ---- against a model ----

// Types with random bits, whereas shadow.h has a few fixed types.  A word that
// no bit names mostly holds an address, which would keep an object alive if the
// word were read.
enum {
	TYPES = 60,
	THINGS = 1500 / HEAP_CUT,
	ROUNDS = 6,
	FIXED_WORDS = 130,
	TAIL_WORDS = 70,
};

static struct {
	rt_type type;
	uint64_t bits[(FIXED_WORDS + 63) / 64], tail[(TAIL_WORDS + 63) / 64];
} types[TYPES];

static struct thing {
	uintptr_t p; // 0: there is none
	const rt_type *type;
	size_t count, words;
	uintptr_t *copy;
	bool seen;
} things[THINGS];

static uintptr_t *table; // the same addresses, as roots

static void random_bits(struct rng *r, uint64_t *bits, unsigned words)
{
	uint64_t dense = rng_below(r, 4);

	for (unsigned i = 0; i < words; i++) {
		uint64_t x = rng_next(r);

		bits[i] = dense == 0   ? x & rng_next(r) & rng_next(r)
			  : dense == 1 ? ~UINT64_C(0)
				       : x;
	}
}

// make_types makes types of many sizes, some with tails.
static void make_types(struct rng *r)
{
	for (unsigned i = 0; i < TYPES; i++) {
		rt_type *y = &types[i].type;
		uint64_t fixed = rng_below(r, i % 2 ? 12 : FIXED_WORDS);
		uint64_t tail =
		    i % 3 ? 0 : 1 + rng_below(r, i % 2 ? 5 : TAIL_WORDS);

		random_bits(r, types[i].bits, RT_ARRAY_LEN(types[i].bits));
		random_bits(r, types[i].tail, RT_ARRAY_LEN(types[i].tail));
		*y = (rt_type){.struct_size = sizeof *y,
			       .size = fixed * 8,
			       .ptrdata = rng_below(r, fixed + 1) * 8,
			       .tail_size = tail * 8,
			       .tail_ptrdata = rng_below(r, tail + 1) * 8,
			       .align = (uint32_t)rng_below(r, 3) * 8};
		y->bitmap = y->ptrdata ? types[i].bits : NULL;
		y->tail_bitmap = y->tail_ptrdata ? types[i].tail : NULL;
	}
}

static bool bit(const uint64_t *bits, size_t ptrdata, size_t w)
{
	return w < ptrdata / 8 && bits[w / 64] >> (w % 64) & 1;
}

// is_reference is the rule of rt_type, word by word.
static bool is_reference(const struct thing *x, size_t w)
{
	const rt_type *y = x->type;
	size_t fixed = y->size / 8, tail = y->tail_size / 8;

	if (tail == 0)
		return w < fixed * x->count &&
		       bit(y->bitmap, y->ptrdata, w % fixed);
	if (w < fixed)
		return bit(y->bitmap, y->ptrdata, w);
	return w < fixed + tail * x->count &&
	       bit(y->tail_bitmap, y->tail_ptrdata, (w - fixed) % tail);
}

// any_address returns a word that leads to some object, perhaps inside it, or
// a small number.
static uintptr_t any_address(struct rng *r)
{
	const struct thing *x = &things[rng_below(r, THINGS)];

	if (x->p == 0)
		return rng_below(r, 1000);
	if (rng_below(r, 3) == 0)
		return x->p + rng_below(r, x->words * 8);
	return x->p | rng_below(r, 8);
}

static size_t random_count(struct rng *r, const rt_type *y)
{
	size_t each = y->tail_size ? y->tail_size : y->size;

	switch (rng_below(r, 40)) {
	case 0: // large
		return each ? 40000 / each + rng_below(r, 20) : 1;
	case 1:
		return 0;
	case 2:
	case 3:
	case 4:
		return each ? rng_below(r, 9000 / each + 2) : 3;
	case 5:
	case 6:
	case 7:
	case 8:
	case 9:
		return rng_below(r, 10);
	default:
		return 1;
	}
}

static void make_thing(struct rng *r, size_t i)
{
	struct thing *x = &things[i];
	size_t n;

	*x = (struct thing){.type = &types[rng_below(r, TYPES)].type};
	x->count = random_count(r, x->type);
	n = x->type->tail_size ? x->type->size + x->count * x->type->tail_size
			       : x->type->size * x->count;
	if (n == 0)
		return;
	x->p = (uintptr_t)rt_alloc_typed(x->type, x->count);
	ck_assert_uint_ne(x->p, 0);
	table[i] = x->p;
	ck_assert_int_eq(rt_kind_of((void *)x->p), RT_TYPED);
	ck_assert_uint_ge(rt_size((void *)x->p), n);
	ck_assert(heap_is_zero((void *)x->p, n));
	// The rest of the last page of a large object belongs to no object.
	x->words = (n > 32760 ? n : rt_size((void *)x->p)) / 8;
	x->copy = malloc(x->words * 8);
	for (size_t w = 0; w < x->words; w++) {
		uintptr_t v = any_address(r);

		// Few references, so that some objects die.
		if (is_reference(x, w) && rng_below(r, x->words + 2) > 2)
			v = rng_below(r, 100);
		((uintptr_t *)x->p)[w] = x->copy[w] = v;
	}
}

// owner returns the thing that a word points to or into, or NULL.
static struct thing *owner(uintptr_t v)
{
	for (size_t i = 0; i < THINGS; i++)
		if (things[i].p && v - things[i].p < things[i].words * 8)
			return &things[i];
	return NULL;
}

// reach marks x and the things that it reaches, and returns how many it marked.
static uint64_t reach(struct thing *x)
{
	static struct thing *stack[THINGS];
	size_t n = 0;
	uint64_t sum = 0;

	if (x->seen)
		return 0;
	x->seen = true;
	stack[n++] = x;
	while (n != 0) {
		x = stack[--n];
		sum++;
		for (size_t w = 0; w < x->words; w++) {
			struct thing *y;

			if (!is_reference(x, w) || x->copy[w] < 1000)
				continue;
			y = owner(x->copy[w]);
			if (y && !y->seen) {
				y->seen = true;
				stack[n++] = y;
			}
		}
	}
	return sum;
}

// release_unseen forgets the things that no root reached, and requires that all
// others are unchanged.
static void release_unseen(void)
{
	for (size_t i = 0; i < THINGS; i++) {
		struct thing *x = &things[i];

		if (x->p && x->seen)
			ck_assert(memcmp((void *)x->p, x->copy, x->words * 8) ==
				  0);
		else
			free(x->copy), *x = (struct thing){0};
		x->seen = false;
		table[i] = x->p;
	}
}

// one_round fills the gaps, keeps some things, and compares.
static void one_round(struct rng *r, uint64_t share)
{
	uint64_t live = 0;

	for (size_t i = 0; i < THINGS; i++)
		if (things[i].p == 0)
			make_thing(r, i);
	for (size_t i = 0; i < THINGS; i++)
		if (rng_below(r, share) != 0)
			table[i] = 0;
	for (size_t i = 0; i < THINGS; i++)
		if (table[i] != 0)
			live += reach(&things[i]);
	for (int i = 0; i < 2; i++) {
		ck_assert_int_eq(rt_gc(), RT_OK);
		ck_assert_uint_eq(heap_live(), live);
	}
	release_unseen();
}

static void run_model(rt_config c, const char *name)
{
	struct rng r;

	rng_init(&r, name);
	begin(c);
	make_types(&r);
	table = heap_table(THINGS, RT_ROOT_EXACT);
	for (int i = 0; i < ROUNDS; i++)
		one_round(&r, 1 + rng_below(&r, 20));
	memset(table, 0, THINGS * sizeof *table);
	ck_assert_uint_eq(heap_live_after_gc(), 0);
	heap_healthy();
	ck_assert_int_eq(rt_fini(), RT_OK);
}

// A marker uses the bits of small objects at once, except for objects of 24
// bytes.  These may begin in the middle of a granule, so grey_wide looks at
// them first.
TEST(small_objects_are_scanned_by_their_bits)
{
	begin(heap_config(HEAP_QUIET));
	ck_assert_ptr_nonnull(rt_alloc_typed(&cell, 1));
	for (unsigned class = 1; class < SIZECLASS_COUNT; class ++)
		if (sizeclass_is_aligned(class))
			ck_assert_int_eq(
			    grey_found[KIND_TYPED << PAGEWORD_CLASS_BITS |
				       class],
			    GREY_BITS);
}

GROUP(model, .timeout = 120);

TEST(only_what_bits_name_is_read, .n = 4)
{
	rt_config c = heap_config_checked();

	run_model(c, __func__);
}

TEST(so_it_is_without_memory_to_mark)
{
	rt_config c = heap_config_checked();

	work_limit(0);
	run_model(c, __func__);
}

TEST(so_it_is_with_helpers)
{
	rt_config c = heap_config(HEAP_QUIET);

	c.gc_threads = 3;
	run_model(c, __func__);
}

TEST(so_it_is_with_classes_of_8_bytes)
{
	rt_config c = heap_config(HEAP_QUIET);

	c.align8 = 1;
	c.checkmark = 1;
	run_model(c, __func__);
}

TEST(so_it_is_with_guards)
{
	rt_config c = heap_config(HEAP_QUIET);

	c.guard_large = 1;
	c.guard_small = 3;
	c.clobberfree = 1;
	c.checkmark = 1;
	run_model(c, __func__);
}

TEST(so_it_is_with_poison)
{
	rt_config c = heap_config(HEAP_QUIET);

	c.poison = 1;
	run_model(c, __func__);
}

// Collections begin between the allocation of objects and their use.
TEST(so_it_is_with_collections_at_any_time)
{
	rt_config c = heap_config(1);

	c.gcstress = 40;
	c.checkmark = 1;
	run_model(c, __func__);
}

// ---- every size ----

GROUP(sizes, .timeout = 120);

// An object of n words, every third of which is a reference.
TEST(every_class_has_bits, .n = 2)
{
	static uint64_t bits[64];
	rt_config c = heap_config(HEAP_QUIET);

	c.align8 = _i;
	begin(c);
	for (unsigned i = 0; i < 64 * 64; i++)
		bits[i / 64] |= (uint64_t)(i % 3 == 0) << (i % 64);
	for (size_t n = 1; n <= 4095; n += 1 + n / 16) {
		rt_type y = {.struct_size = sizeof y,
			     .size = n * 8,
			     .ptrdata = n * 8,
			     .bitmap = bits};
		uintptr_t *p = rt_alloc_typed(&y, 1);
		size_t words = rt_size(p) / 8;

		roots[0] = (uintptr_t)p;
		for (size_t w = 0; w < words; w++)
			p[w] = (uintptr_t)rt_alloc_noscan(16);
		ck_assert_uint_eq(heap_live_after_gc(), 1 + (n + 2) / 3);
	}
}

// ---- one long object ----

// An array of about a megabyte is marked alone, with helpers, and without
// memory to mark with.
TEST(long_arrays_are_followed_to_their_end, .n = 6)
{
	enum { CELLS = 60000 };
	rt_config c = heap_config(HEAP_QUIET);
	size_t words = _i >= 3 ? CELLS + 2 : CELLS * 3;
	uintptr_t *p;
	uint64_t live = 1;

	c.gc_threads = _i % 3 == 1 ? 3 : 0;
	c.checkmark = 1;
	if (_i % 3 == 2)
		work_limit(0);
	begin(c);
	p = rt_alloc_typed(_i >= 3 ? &vector : &cell, CELLS);
	roots[0] = (uintptr_t)p;
	for (size_t w = 0; w < words; w += w < 100 ? 1 : 7) {
		p[w] = (uintptr_t)rt_alloc_noscan(16);
		live += _i >= 3 ? w != 0 : w % 3 != 1;
	}
	p[words - 1] = (uintptr_t)rt_alloc_noscan(16);
	live += (words - 1 - 100) % 7 != 5;
	for (int i = 0; i < 2; i++)
		ck_assert_uint_eq(heap_live_after_gc(), live);
}

// ---- threads ----

GROUP(threads, .timeout = 60);

enum { THREADS = 4, LENGTH = 400, LISTS = 200 / HEAP_CUT };

static uintptr_t lists[THREADS];

// build_lists is one of the threads.  Cells and vectors of all threads lie side
// by side.  Every word that no bit names leads to the thread's previous list,
// which must die.
static void *build_lists(void *arg)
{
	uintptr_t *list = arg;
	uintptr_t before = 0;

	ck_assert_int_eq(rt_thread_attach(RT_THREAD_EXACT), RT_OK);
	for (int i = 0; i < LISTS; i++) {
		before = *list;
		*list = 0;
		for (int k = 0; k < LENGTH; k++) {
			bool wide = (k + i) % 3 == 0;
			uintptr_t *p = wide ? rt_alloc_typed(&vector, k % 5)
					    : rt_alloc_typed(&cell, 1);

			ck_assert_ptr_nonnull(p);
			p[!wide] = before;
			p[wide] = *list;
			*list = (uintptr_t)p;
		}
		for (uintptr_t *p = (uintptr_t *)*list; p;) {
			bool wide = p[1] != before;

			ck_assert_uint_eq(p[!wide], before);
			p = (uintptr_t *)p[wide];
		}
	}
	ck_assert_int_eq(rt_thread_detach(), RT_OK);
	return NULL;
}

TEST(neighbours_of_two_threads_have_their_own_bits, .n = 2)
{
	pthread_t thread[THREADS];

	rt_config c = heap_config(_i ? 20 : 100);

	c.gc_threads = 2;
	begin(c);
	memset(lists, 0, sizeof lists);
	must(rt_roots_add(lists, lists + THREADS, RT_ROOT_EXACT));
	rt_blocking_enter();
	for (int i = 0; i < THREADS; i++)
		thread[i] = start_thread(build_lists, &lists[i]);
	for (int i = 0; i < 50 / HEAP_CUT; i++) {
		rt_blocking_leave();
		ck_assert_int_eq(rt_gc(), RT_OK);
		rt_blocking_enter();
	}
	for (int i = 0; i < THREADS; i++)
		join_thread(thread[i]);
	rt_blocking_leave();
	ck_assert_uint_eq(heap_live_after_gc(), THREADS * LENGTH);
	ck_assert_int_eq(rt_fini(), RT_OK);
}

// ---- fork ----

// grow_list adds cells to the list in roots[0].  Each has garbage in the
// middle.
static void grow_list(unsigned n)
{
	while (n-- > 0) {
		uintptr_t *p = rt_alloc_typed(&cell, 1);

		ck_assert_ptr_nonnull(p);
		p[0] = roots[0];
		p[1] = (uintptr_t)rt_alloc_noscan(16);
		roots[0] = (uintptr_t)p;
	}
}

TEST(both_processes_of_a_fork_have_their_bits)
{
	int status;
	pid_t child;

	begin(heap_config(HEAP_QUIET));
	grow_list(3000);
	child = fork();
	if (child == 0)
		process_expire();
	ck_assert_uint_eq(heap_live_after_gc(), 3000);
	grow_list(child == 0 ? 5000 : 1000);
	ck_assert_uint_eq(heap_live_after_gc(), child == 0 ? 8000 : 4000);
	if (child == 0)
		_exit(7);
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 7);
}
