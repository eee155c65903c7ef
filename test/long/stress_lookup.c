// stress_lookup.c - questions about live objects get the right answer from
// threads that no stop waits for, while the heap is collected under them.
//
// A look-up reads the line that the heap's sweepgen calls alloc; a collection
// flips the lines and clears the old one.  In an earlier version, a look-up
// between the two reported that live objects did not exist.
//
// Before that, threads look up objects of 8 bytes that die.  Their spans keep
// the bits elsewhere, and a look may find the span gone.
//
// All this is done in heaps that sweep in the stop, and then in heaps that
// sweep beside the threads, unless RTDEBUG says otherwise.
#include <rt/rt.h>

#include <pthread.h>
#include <stdio.h>

#include "runtime/base/atomic.h"
#include "test/harness/suite.h"

enum { OBJECTS = 64, LOOKERS = 3, ROUNDS = 64 };

static void *object[OBJECTS];
static atomic_u32 done;
static atomic_u64 looks;
static atomic_u64 wrong;

static size_t object_size(unsigned i)
{
	// Small ones of many classes, some of several pages, and large ones.
	return i % 8 == 7 ? 9000 * (size_t)i : 16 + 48 * (size_t)i;
}

static void look_at(unsigned i)
{
	char *base = object[i];
	char *inside = base + object_size(i) / 2;

	if (rt_base(base) != base || rt_base(inside) != base ||
	    rt_size(base) != rt_good_size(object_size(i)))
		atomic_u64_add_relaxed(&wrong, 1);
}

// look runs unattached until done.
static void *look(void *arg)
{
	(void)arg;
	while (!atomic_u32_load_acquire(&done)) {
		for (unsigned round = 0; round < ROUNDS; round++)
			look_at(round % OBJECTS);
		atomic_u64_add_relaxed(&looks, ROUNDS);
	}
	return NULL;
}

// ---- objects that die ----

enum { EIGHTS = 60000, PAGES = 64 };

static atomic_u64 eight; // one of the newest

static void *look_at_eights(void *arg)
{
	(void)arg;
	while (!atomic_u32_load_acquire(&done)) {
		uint64_t p = atomic_u64_load_relaxed(&eight);

		for (unsigned i = 0; i < PAGES; i++)
			rt_is_heap((void *)(p + i * RT_PAGE_SIZE));
	}
	return NULL;
}

// bury makes and drops spans of the 8-byte class while the lookers look at
// them.
static void bury(uint64_t cycles)
{
	for (uint64_t i = 0; i < cycles; i++) {
		atomic_u64_store_relaxed(&eight, (uintptr_t)rt_alloc(8));
		for (unsigned n = 0; n < EIGHTS; n++)
			rt_alloc(8);
		rt_gc();
		// Other spans take the place of the dead ones.
		for (unsigned n = 0; n < PAGES; n++)
			rt_alloc_noscan(RT_PAGE_SIZE);
	}
}

static rt_config config(uint8_t sweep)
{
	rt_config c;

	rt_config_init(&c);
	c.sweep = sweep;
	rt_config_from_env(&c);
	return c;
}

static bool look_at_the_dying(uint64_t cycles, uint8_t sweep)
{
	pthread_t thread[LOOKERS];
	rt_config c = config(sweep);

	c.align8 = 1;
	if (rt_init(&c) != RT_OK)
		return false;
	for (unsigned i = 0; i < LOOKERS; i++)
		if (pthread_create(&thread[i], NULL, look_at_eights, NULL))
			return false;
	bury(cycles);
	atomic_u32_store_release(&done, 1);
	for (unsigned i = 0; i < LOOKERS; i++)
		pthread_join(thread[i], NULL);
	atomic_u32_store_relaxed(&done, 0);
	return rt_fini() == RT_OK;
}

static bool make_objects(void)
{
	if (rt_roots_add(object, object + OBJECTS, RT_ROOT_EXACT) != RT_OK)
		return false;
	for (unsigned i = 0; i < OBJECTS; i++) {
		object[i] = rt_alloc_noscan(object_size(i));
		if (!object[i])
			return false;
	}
	return true;
}

static bool begin(uint8_t sweep)
{
	rt_config c = config(sweep);

	c.double_check = RT_CHECK_FATAL;
	return rt_init(&c) == RT_OK && make_objects();
}

static bool look_at_the_living(uint64_t cycles, uint8_t sweep)
{
	pthread_t thread[LOOKERS];
	rt_memstats m;
	bool all;

	if (!begin(sweep))
		return false;
	for (unsigned i = 0; i < LOOKERS; i++)
		if (pthread_create(&thread[i], NULL, look, NULL) != 0)
			return false;
	for (uint64_t i = 0; i < cycles; i++)
		rt_gc();
	atomic_u32_store_release(&done, 1);
	for (unsigned i = 0; i < LOOKERS; i++)
		pthread_join(thread[i], NULL);
	atomic_u32_store_relaxed(&done, 0);
	all = rt_read_memstats(&m) == RT_OK && m.num_gc == cycles;
	return rt_fini() == RT_OK && all;
}

int main(void)
{
	static const uint8_t sweeps[] = {0, 2};
	uint64_t cycles = env_u64("RT_LOOKUP_CYCLES", RT_TSAN ? 1000 : 20000);
	unsigned failed = 0;

	cycles /= RT_ARRAY_LEN(sweeps);
	for (unsigned i = 0; i < RT_ARRAY_LEN(sweeps); i++) {
		// A bitmap8 is cleared for its next span while a look at the
		// dead one may read it.  No thread acts on the answer, but
		// ThreadSanitizer would report the race.
		if (!RT_TSAN && !look_at_the_dying(cycles / 100, sweeps[i]))
			failed = 1;
		if (!look_at_the_living(cycles, sweeps[i]))
			failed = 1;
		printf("sweep %u: ", sweeps[i]);
		printf("%llu looks during %llu collections, %llu wrong\n",
		       (unsigned long long)atomic_u64_load_relaxed(&looks),
		       (unsigned long long)cycles,
		       (unsigned long long)atomic_u64_load_relaxed(&wrong));
		atomic_u64_store_relaxed(&looks, 0);
		if (atomic_u64_load_relaxed(&wrong) != 0)
			failed = 1;
	}
	printf("stress_lookup: %u passed, %u failed\n", 1 - failed, failed);
	return failed != 0;
}
