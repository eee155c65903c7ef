// Blocks that are kept for their next owners.
#include <errno.h>
#include <string.h>

#include "runtime/os/oscall.h"
#include "runtime/os/slabpool.h"
#include "test/harness/fault.h"
#include "test/harness/suite.h"

enum { BLOCK = 5000, KEPT = 3, MANY = 10 };

static struct mutex lock = RT_MUTEX_INIT(LOCKRANK_MCACHE);
static struct slabpool pool;
static char *block[MANY];
static size_t size; // bytes that a block takes

static void setup(void)
{
	sysmem_init();
	size = sysmem_round(BLOCK);
	pool = (struct slabpool){
	    .lock = &lock,
	    .slab = {.size = BLOCK, .name = "test", .stat = &gauges.mcache_sys},
	    .inuse = &gauges.mcache_inuse,
	    .most = KEPT,
	};
}

static void teardown(void)
{
	ck_assert_ptr_null(slabpool_check(&pool));
	slabpool_fini(&pool);
	persistent_fini();
	ck_assert_uint_eq(gauge_load(&gauges.mappings), 0);
}

// expect_blocks compares how many blocks have owners, and how many are kept,
// with statistics and pool.
static void expect_blocks(unsigned owned, unsigned kept)
{
	ck_assert_uint_eq(gauge_load(&gauges.mcache_inuse), owned * BLOCK);
	ck_assert_uint_eq(gauge_load(&gauges.mcache_sys),
			  (owned + kept) * size);
	ck_assert_uint_eq(pool.n, kept);
	ck_assert_ptr_null(slabpool_check(&pool));
}

static void take_many(void)
{
	for (unsigned i = 0; i < MANY; i++) {
		block[i] = slabpool_take(&pool);
		ck_assert_ptr_nonnull(block[i]);
		for (size_t k = 0; k < BLOCK; k++)
			if (block[i][k] != 0)
				ck_abort_msg("block %u is not zero", i);
		memset(block[i], 1, BLOCK);
	}
}

static void free_many(void)
{
	for (unsigned i = 0; i < MANY; i++)
		slabpool_free(&pool, block[i]);
}

GROUP(slabpool, .setup = setup, .teardown = teardown, .timeout = 60);

TEST(so_many_blocks_are_kept)
{
	take_many();
	expect_blocks(MANY, 0);
	free_many();
	expect_blocks(0, KEPT);
}

TEST(the_block_kept_last_comes_first_and_is_zero)
{
	take_many();
	free_many();
	for (unsigned i = KEPT; i-- > 0;)
		ck_assert_ptr_eq(slabpool_take(&pool), block[i]);
	expect_blocks(KEPT, 0);
	for (unsigned i = 0; i < KEPT; i++)
		slabpool_free(&pool, block[i]);
	take_many();
	free_many();
	expect_blocks(0, KEPT);
}

TEST(a_refused_block_changes_nothing)
{
	fault_fail(OSCALL_COMMIT, 1, UINT64_MAX, ENOMEM);
	ck_assert_ptr_null(slabpool_take(&pool));
	fault_fail(OSCALL_COMMIT, 1, 0, 0);
	expect_blocks(0, 0);
}

TEST(kept_blocks_are_released)
{
	take_many();
	free_many();
	slabpool_release_kept(&pool);
	expect_blocks(0, 0);
}

TEST(what_the_system_does_not_take_is_kept)
{
	take_many();
	fault_fail(OSCALL_RELEASE, 1, UINT64_MAX, ENOMEM);
	free_many();
	expect_blocks(0, MANY);
	slabpool_release_kept(&pool);
	expect_blocks(0, MANY);
	fault_fail(OSCALL_RELEASE, 1, 0, 0);
	slabpool_release_kept(&pool);
	expect_blocks(0, 0);
}

TEST(check_finds_a_wrong_number)
{
	take_many();
	free_many();
	pool.n = KEPT - 1;
	ck_assert_str_eq(slabpool_check(&pool),
			 "more blocks are kept than counted");
	pool.n = KEPT + 1;
	ck_assert_str_eq(slabpool_check(&pool),
			 "fewer blocks are kept than counted");
	pool.n = KEPT;
}
