// Blocks of one size, whose memory is released when they are freed.
#include <errno.h>
#include <string.h>

#include "runtime/os/oscall.h"
#include "runtime/os/slab.h"
#include "test/harness/death.h"
#include "test/harness/fault.h"
#include "test/harness/suite.h"

enum { BLOCK = 10000, MANY = 5 * SLAB_FIRST };

static struct slab slab;
static char *block[MANY];
static size_t size; // bytes that a block takes

static void setup(void)
{
	sysmem_init();
	size = sysmem_round(BLOCK);
	slab = (struct slab){
	    .size = BLOCK, .name = "test", .stat = &gauges.mcache_sys};
}

static void teardown(void)
{
	slab_fini(&slab);
	persistent_fini();
	ck_assert_uint_eq(gauge_load(&gauges.mappings), 0);
}

static uint64_t counted(void)
{
	return gauge_load(&gauges.mcache_sys);
}

static uint64_t ready(void)
{
	return gauge_load(&gauges.mapped_ready) - gauge_load(&gauges.other_sys);
}

static void take(unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		block[i] = slab_alloc(&slab);
		ck_assert_ptr_nonnull(block[i]);
		for (size_t k = 0; k < BLOCK; k++)
			if (block[i][k] != 0)
				ck_abort_msg("block %u is not zero", i);
		memset(block[i], 1, BLOCK);
	}
}

GROUP(slab, .setup = setup, .teardown = teardown, .timeout = 60);

TEST(blocks_are_counted_while_they_are_taken)
{
	take(3);
	ck_assert_uint_eq(counted(), 3 * size);
	ck_assert_uint_eq(ready(), 3 * size);
	ck_assert_ptr_eq(block[1], block[0] + size);
	ck_assert(slab_free(&slab, block[1]));
	ck_assert_uint_eq(counted(), 2 * size);
	ck_assert_uint_eq(ready(), 2 * size);
	// The lowest free one comes first, and reads as zero.
	char *again = block[1];
	block[1] = slab_alloc(&slab);
	ck_assert_ptr_eq(block[1], again);
	ck_assert_int_eq(block[1][0], 0);
	ck_assert_uint_eq(counted(), 3 * size);
}

// A block that was taken before is still mapped, even the newest one.
TEST(a_block_is_mapped_once)
{
	take(3);
	fault_fail(OSCALL_COMMIT, 1, 0, 0); // counts
	for (unsigned i = 0; i < 3; i++) {
		ck_assert(slab_free(&slab, block[i]));
		ck_assert_ptr_eq(slab_alloc(&slab), block[i]);
	}
	ck_assert_uint_eq(fault_count(OSCALL_COMMIT), 0);
	ck_assert_uint_eq(counted(), 3 * size);
}

TEST(the_first_region_after_the_end_is_a_small_one)
{
	take(MANY);
	slab_fini(&slab);
	persistent_fini();
	take(1);
	ck_assert_uint_eq(slab.nblocks, SLAB_FIRST);
}

TEST(mappings_do_not_follow_the_number_of_blocks)
{
	take(SLAB_FIRST);
	uint64_t mappings = gauge_load(&gauges.mappings);
	take(MANY - SLAB_FIRST);
	// Regions of 64, 64, 128 and 256 blocks.
	ck_assert_uint_eq(gauge_load(&gauges.mappings), mappings + 3 * 4);
	ck_assert_uint_eq(counted(), MANY * size);
}

TEST(a_refusal_changes_nothing)
{
	static const enum oscall kinds[] = {OSCALL_RESERVE, OSCALL_COMMIT};
	struct gauges before;

	for (unsigned k = 0; k < RT_ARRAY_LEN(kinds); k++)
		for (uint64_t nth = 1; nth <= 2; nth++) {
			slab_fini(&slab);
			persistent_fini();
			before = gauges;
			fault_fail(kinds[k], nth, UINT64_MAX, ENOMEM);
			ck_assert_ptr_null(slab_alloc(&slab));
			fault_fail(kinds[k], 1, 0, 0);
			ck_assert_uint_eq(counted(), 0);
			ck_assert_uint_eq(ready(), 0);
			take(1);
			ck_assert(slab_free(&slab, block[0]));
			ck_assert_uint_eq(counted(),
					  gauge_load(&before.mcache_sys));
		}
}

TEST(a_block_whose_memory_stays_is_still_taken)
{
	take(2);
	fault_fail(OSCALL_RELEASE, 1, 1, EINVAL);
	ck_assert(!slab_free(&slab, block[0]));
	ck_assert_uint_eq(counted(), 2 * size);
	ck_assert_int_eq(block[0][BLOCK - 1], 1);
	ck_assert(slab_free(&slab, block[0]));
	ck_assert_uint_eq(counted(), size);
}

TEST(what_is_no_block_throws, .exit = DEATH_EXPECTED)
{
	take(1);
	death_expect("no block");
	slab_free(&slab, &slab);
}
