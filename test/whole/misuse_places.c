// The table of all calls, in each place from which a host may make them.
#include "test/whole/misuse.h"

GROUP(doors);

TEST(before_the_heap)
{
	run_doors(NO_HEAP);
	begin();
	heap_healthy();
	finish(2 * (DOORS - 1));
}

TEST(after_the_heap)
{
	begin();
	ck_assert_int_eq(rt_fini(), RT_OK);
	run_doors(NO_HEAP);
	finish(2 * (DOORS - 1));
}

static void *unattached_thread(void *arg)
{
	(void)arg;
	run_doors(UNATTACHED);
	return NULL;
}

TEST(unattached)
{
	begin();
	run_beside(unattached_thread, NULL);
	heap_healthy();
	finish(2 * (DOORS - 3));
}

TEST(unattached_after_detach)
{
	begin();
	ck_assert_int_eq(rt_thread_detach(), RT_OK);
	run_doors(UNATTACHED);
	ck_assert_int_eq(rt_thread_attach(0), RT_OK);
	heap_healthy();
	finish(2 * (DOORS - 3));
}

TEST(attached)
{
	begin();
	run_doors(ATTACHED);
	heap_healthy();
	finish(2 * (DOORS - 5));
}

TEST(in_a_region)
{
	begin();
	ck_assert_int_eq(rt_blocking_enter(), RT_OK);
	run_doors(IN_REGION);
	ck_assert_int_eq(rt_blocking_leave(), RT_OK);
	heap_healthy();
	finish(2 * (DOORS - 1));
}

static void *region_doors(void *arg)
{
	run_doors(IN_REGION);
	return arg;
}

TEST(in_rt_call_blocking)
{
	begin();
	ck_assert_ptr_eq(rt_call_blocking(region_doors, words), words);
	heap_healthy();
	finish(2 * (DOORS - 1));
}

TEST(in_the_own_stop)
{
	begin();
	ck_assert_int_eq(rt_stop_the_world(RT_STOP_HOST), RT_OK);
	run_doors(OWN_STOP);
	ck_assert_int_eq(rt_start_the_world(NULL), RT_OK);
	heap_healthy();
	finish(2 * (DOORS - 1));
}

TEST(in_a_nogc_stretch)
{
	begin();
	ck_assert_int_eq(rt_nogc_enter(), RT_OK);
	run_doors(IN_NOGC);
	ck_assert_int_eq(rt_gc(), RT_ESTATE);
	ck_assert_int_eq(rt_nogc_leave(), RT_OK);
	heap_healthy();
	finish(2 * (DOORS - 3));
}

static int walk_doors(void *obj, size_t size, int kind, void *arg)
{
	(void)obj;
	(void)size;
	(void)kind;
	(void)arg;
	run_doors(OWN_STOP);
	judge("rt_start_the_world", "in a walk", call_start(), RT_EPERM);
	judge("the walk", "inside another", call_walk(), RT_OK);
	judge("rt_start_the_world", "after a walk in a walk", call_start(),
	      RT_EPERM);
	return RT_WALK_STOP;
}

TEST(in_a_walk)
{
	begin();
	ck_assert_int_eq(rt_heap_walk(walk_doors, NULL), RT_OK);
	ck_assert_int_eq(rt_world_stopped(), 0);
	heap_healthy();
	finish(2 * (DOORS - 1));
}

TEST(in_a_walk_of_the_own_stop)
{
	begin();
	ck_assert_int_eq(rt_stop_the_world(RT_STOP_HOST), RT_OK);
	ck_assert_int_eq(rt_heap_walk(walk_doors, NULL), RT_OK);
	ck_assert_int_eq(rt_world_stopped(), 1);
	ck_assert_int_eq(rt_start_the_world(NULL), RT_OK);
	ck_assert_int_eq(rt_start_the_world(NULL), RT_EPERM);
	heap_healthy();
	finish(2 * (DOORS - 1));
}
