// The limits of control groups, from a tree of files.
#include "runtime/os/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "runtime/os/oscall.h"
#include "gc/cycle/pacer.h"
#include "gc/cycle/worker.h"
#include "runtime/world/proc.h"
#include "test/harness/heap.h"

static char root[] = "/tmp/check_cgroup.XXXXXX";
static char membership[64];

static void put(const char *name, const char *text)
{
	char path[4096];
	FILE *f;

	snprintf(path, sizeof path, "%s/%s", root, name);
	for (char *p = path + strlen(root) + 1; (p = strchr(p, '/')); p++) {
		*p = 0;
		mkdir(path, 0700);
		*p = '/';
	}
	f = fopen(path, "w");
	ck_assert_ptr_nonnull(f);
	fputs(text, f);
	fclose(f);
}

static void begin(void)
{
	ck_assert_ptr_nonnull(mkdtemp(root));
	snprintf(membership, sizeof membership, "%s/self", root);
}

static void end(void)
{
	char command[128];

	snprintf(command, sizeof command, "rm -rf %s", root);
	ck_assert_int_eq(system(command), 0);
}

static struct cgroup limits(void)
{
	struct cgroup c;

	errno = 4711;
	cgroup_read(membership, root, &c);
	ck_assert_int_eq(errno, 4711);
	return c;
}

GROUP(files, .setup = begin, .teardown = end);

TEST(no_files_are_no_limits)
{
	ck_assert_uint_eq(limits().cpus, CGROUP_NO_LIMIT);
	ck_assert_uint_eq(limits().memory, CGROUP_NO_LIMIT);
	put("self", "0::/a/b\n");
	ck_assert_uint_eq(limits().cpus, CGROUP_NO_LIMIT);
	ck_assert_uint_eq(limits().memory, CGROUP_NO_LIMIT);
}

// The lowest limit of all levels counts.  A part of a processor counts as a
// whole one.
TEST(levels_of_version_2)
{
	put("self", "0::/a/b/c\n");
	put("a/b/c/cpu.max", "max 100000\n");
	ck_assert_uint_eq(limits().cpus, CGROUP_NO_LIMIT);
	put("a/b/c/cpu.max", "400000 100000\n");
	ck_assert_uint_eq(limits().cpus, 4);
	put("a/cpu.max", "150000 100000\n");
	ck_assert_uint_eq(limits().cpus, 2);
	put("cpu.max", "1000 100000\n");
	ck_assert_uint_eq(limits().cpus, 1);
	put("a/b/memory.max", "1000\n");
	ck_assert_uint_eq(limits().memory, 900);
	put("a/b/c/memory.high", "500\n");
	ck_assert_uint_eq(limits().memory, 450);
	put("memory.max", "max\n");
	ck_assert_uint_eq(limits().memory, 450);
}

TEST(processor_time_of_version_1)
{
	put("self", "5:memory:/m\n4:cpuacct,cpu:/a/b\n3:cpuset:/s\n");
	put("cpu/a/b/cpu.cfs_quota_us", "-1\n");
	put("cpu/a/b/cpu.cfs_period_us", "100000\n");
	ck_assert_uint_eq(limits().cpus, CGROUP_NO_LIMIT);
	put("cpu/a/cpu.cfs_quota_us", "250000\n");
	put("cpu/a/cpu.cfs_period_us", "50000\n");
	ck_assert_uint_eq(limits().cpus, 5);
	put("cpu/a/b/cpu.cfs_quota_us", "100001\n");
	ck_assert_uint_eq(limits().cpus, 2);
	put("cpuset/s/cpu.cfs_quota_us", "1\n");
	ck_assert_uint_eq(limits().cpus, 2);
}

TEST(memory_of_version_1)
{
	put("self", "5:memory:/m/n\n4:cpuacct,cpu:/a\n");
	put("memory/m/n/memory.limit_in_bytes", "9223372036854771712\n");
	ck_assert_uint_eq(limits().memory, CGROUP_NO_LIMIT);
	put("memory/m/memory.limit_in_bytes", "2000\n");
	ck_assert_uint_eq(limits().memory, 1800);
	put("memory/m/n/memory.limit_in_bytes", "1000\n");
	ck_assert_uint_eq(limits().memory, 900);
	put("cpu/a/memory.limit_in_bytes", "500\n");
	put("memory/m/n/memory.limit_in_bytes", "1000"); // cut off
	ck_assert_uint_eq(limits().memory, 1800);
	ck_assert_uint_eq(limits().cpus, CGROUP_NO_LIMIT);
}

// ---- what makes no sense ----

static const char *const texts[] = {
    "",
    "\n",
    "400000 100000", // cut off
    "400000\n",
    "400000 \n",
    " 100000\n",
    "0 100000\n",
    "-1 100000\n",
    "400000 0\n",
    "400000 -5\n",
    "max max\n",
    "4x0000 100000\n",
    "400000 100000 7\n",
    "99999999999999999999 100000\n",
    "00000000000000000000000000000000000000000000000000000000000400000 1\n",
};

TEST(a_limit_that_makes_no_sense_is_none, .n = RT_ARRAY_LEN(texts))
{
	put("self", "0::/\n");
	put("cpu.max", texts[_i]);
	put("memory.max", texts[_i]);
	ck_assert_uint_eq(limits().cpus, CGROUP_NO_LIMIT);
	ck_assert_uint_eq(limits().memory, _i == 3 ? 360000 : CGROUP_NO_LIMIT);
}

static const char *const groups[] = {
    "",
    "\n",
    "0::/", // cut off
    "0::\n",
    "0:/\n",
    "::relative\n",
    "0::/../a\n", // outside
    "0::/a/../..\n",
    "4:cpuset:/\n",
    "no colon\n",
};

TEST(a_group_that_makes_no_sense_has_no_limit, .n = RT_ARRAY_LEN(groups))
{
	put("cpu.max", "400000 100000\n");
	put("a/cpu.max", "400000 100000\n");
	put("self", groups[_i]);
	ck_assert_uint_eq(limits().cpus, CGROUP_NO_LIMIT);
}

TEST(other_lines_do_not_matter)
{
	put("cpu.max", "400000 100000\n");
	put("self", "garbage\n0::/\n7:cpu:no\n");
	ck_assert_uint_eq(limits().cpus, 4);
}

// Names of groups that are too long, a link to itself, and a directory instead
// of a file are no limits, and do no harm.
TEST(files_of_any_kind_are_survived)
{
	static char text[6000];
	char path[128];

	put("cpu.max", "400000 100000\n");
	memset(text, 'x', sizeof text - 1);
	memcpy(text, "0::/", 4);
	text[2000] = '\n';
	put("self", text);
	ck_assert_uint_eq(limits().cpus, CGROUP_NO_LIMIT);
	text[900] = '\n'; // the path fits, but its files do not exist
	put("self", text);
	ck_assert_uint_eq(limits().cpus, 4);
	put("self", "0::/loop/b\n");
	snprintf(path, sizeof path, "%s/loop", root);
	ck_assert_int_eq(symlink("loop", path), 0);
	ck_assert_uint_eq(limits().cpus, 4);
	snprintf(path, sizeof path, "%s/memory.max", root);
	ck_assert_int_eq(mkdir(path, 0700), 0);
	ck_assert_uint_eq(limits().memory, CGROUP_NO_LIMIT);
	put("self", "0::////\n");
	ck_assert_uint_eq(limits().cpus, 4);
}

// ---- what a heap does with them ----

static void start(uint8_t cgroup)
{
	rt_config c = heap_config(HEAP_QUIET);

	c.cgroup = cgroup;
	c.max_procs = 4;
	heap_start(c);
}

static uint32_t helpers(void)
{
	worker_provide(proc_self(), true);
	return atomic_u32_load_relaxed(&workers.running);
}

GROUP(heap);

TEST(limit_of_processors_bounds_the_helpers)
{
	start(1);
	atomic_u32_store_relaxed(&workers.cpus, 3); // as if it had been read
	ck_assert_uint_eq(helpers(), 2);
	ck_assert_int_eq(rt_fini(), RT_OK);
	start(1);
	atomic_u32_store_relaxed(&workers.cpus, 1);
	ck_assert_uint_eq(helpers(), 0);
}

// bucket returns for how many processors the bucket of gc_cpu_limit is made.
static uint64_t bucket(void)
{
	ck_assert_int_eq(rt_gc(), RT_OK);
	return pacer.limiter.capacity / LIMITER_CAPACITY;
}

TEST(limiter_counts_real_processors)
{
	rt_config c = heap_config(HEAP_QUIET);
	uint64_t mask = oscall_nprocs();
	struct cgroup limit;

	cgroup_self(&limit);
	c.max_procs = 4096;
	heap_start(c);
	ck_assert_uint_ge(mask, 1);
	ck_assert_uint_eq(bucket(), base_min(mask, 4096));
	pacer_note_processors((uint32_t)mask + 1);
	ck_assert_uint_eq(bucket(), base_min(mask, 4096));
	pacer_note_processors(1);
	ck_assert_uint_eq(bucket(), 1);
	ck_assert_int_eq(rt_fini(), RT_OK);
	c.max_procs = 1;
	heap_start(c);
	ck_assert_uint_eq(bucket(), 1);
	ck_assert_int_eq(rt_fini(), RT_OK);
	c.max_procs = 4096;
	c.cgroup = 2;
	heap_start(c);
	ck_assert_uint_eq(bucket(), base_min(mask, limit.cpus));
}

// The limiter learns the limit of the groups when the limit is read for
// helpers.
TEST(limiter_learns_of_the_groups)
{
	struct cgroup c;

	cgroup_self(&c);
	start(1);
	ck_assert_uint_eq(atomic_u32_load_relaxed(&pacer.processors), 0);
	helpers();
	ck_assert_uint_eq(atomic_u32_load_relaxed(&pacer.processors),
			  base_min(c.cpus, 4));
}

// ---- in a group of the test's own ----

static unsigned files_read; // of the group

// open is called instead of the C library's, in the whole program.  With a tree
// of files, the process is in the group that the files describe.
int open(const char *name, int flags, ...)
{
	static const char top[] = "/sys/fs/cgroup";
	char path[4096];
	mode_t mode = 0;

	if (flags & O_CREAT) {
		va_list more;

		va_start(more, flags);
		mode = va_arg(more, mode_t);
		va_end(more);
	}
	if (membership[0] && strcmp(name, "/proc/self/cgroup") == 0) {
		name = membership;
		files_read++;
	} else if (membership[0] && strncmp(name, top, sizeof top - 1) == 0) {
		snprintf(path, sizeof path, "%s%s", root,
			 name + sizeof top - 1);
		name = path;
	}
	return (int)syscall(SYS_openat, AT_FDCWD, name, flags, mode);
}

// start_alone makes a heap without threads of the library.
static void start_alone(int64_t memory_limit)
{
	rt_config c = heap_config(100);

	c.cgroup = 1;
	c.max_procs = 8;
	c.gc_threads = 0;
	c.memory_limit = memory_limit;
	heap_start(c);
	// As if the machine had 8 processors: it may have fewer than the group.
	limiter_init(&pacer.limiter, 50, 8);
}

// allocate_until_due allocates until a collection was due and has run.
static void allocate_until_due(void)
{
	uint64_t before = heap_stats().num_gc;

	for (unsigned i = 0; heap_stats().num_gc == before; i++) {
		ck_assert_uint_lt(i, 1000);
		for (unsigned k = 0; k < 1024; k++)
			ck_assert_ptr_nonnull(rt_alloc_noscan(1024));
	}
}

static const struct {
	const char *self, *cpu_max;
	uint64_t cpus; // of the bucket
} group_files[] = {
    {"0::/a\n", "150000 100000\n", 2},
    {"0::/a\n", "100000 100000\n", 1},
    {"0::/a\n", "max 100000\n", 8},
    {"0::/a\n", "200000 100000", 8}, // cut off
    {"0::/a", "200000 100000\n", 8},
    {"0::/b\n", "200000 100000\n", 8}, // missing
    {NULL, "200000 100000\n", 8},
};

GROUP(group, .setup = begin, .teardown = end);

// Without a thread of the library, the limiter learns of the group before it
// may put a collection off.
TEST(limiter_needs_no_thread_to_learn, .n = RT_ARRAY_LEN(group_files))
{
	if (group_files[_i].self)
		put("self", group_files[_i].self);
	put("a/cpu.max", group_files[_i].cpu_max);
	start_alone(1 << 30);
	ck_assert(!worker_knows_processors());
	allocate_until_due();
	ck_assert(worker_knows_processors());
	ck_assert_uint_eq(pacer.limiter.capacity / LIMITER_CAPACITY,
			  group_files[_i].cpus);
	ck_assert_uint_eq(atomic_u32_load_relaxed(&workers.running), 0);
	heap_healthy();
}

// With a limit of the heap, the limiter learns of the group as with a memory
// limit.
TEST(limiter_learns_for_any_limit)
{
	put("self", "0::/\n");
	put("cpu.max", "100000 100000\n");
	start_alone(INT64_MAX);
	ck_assert_int_eq(rt_set_heap_max(1 << 30, NULL), RT_OK);
	allocate_until_due();
	ck_assert_uint_eq(pacer.limiter.capacity, LIMITER_CAPACITY);
}

// Only with cgroup 2 does a heap begin with the limits of its group.  If there
// are two limits on memory, the lower one counts.
TEST(a_heap_begins_with_the_limits_on_request, .n = 4)
{
	static const int64_t own[] = {INT64_MAX, INT64_MAX, INT64_MAX, 1 << 20};
	uint8_t cgroup = (uint8_t)base_min((uint64_t)_i, 2);
	rt_config c = heap_config(HEAP_QUIET);
	uint64_t group = CGROUP_NO_LIMIT;
	uint64_t cpus = base_min(oscall_nprocs(), 4096);

	put("self", "0::/a\n");
	put("a/cpu.max", "100000 100000\n");
	put("a/memory.max", "1000000000\n");
	if (cgroup == 2) {
		group = 900000000; // nine tenths
		cpus = 1;
	}
	c.gc_threads = 0;
	c.cgroup = cgroup;
	c.memory_limit = own[_i];
	c.max_procs = 4096;
	heap_start(c);
	ck_assert_uint_eq(bucket(), cpus);
	ck_assert_uint_eq(heap_metric("/gc/gomemlimit:bytes"),
			  base_min((uint64_t)own[_i], group));
	ck_assert_int_eq(rt_fini(), RT_OK);
}

// The limiter also decides whether pages are released for the memory limit, and
// may do so before any collection is due.
TEST(limiter_learns_before_pages_are_released)
{
	rt_memstats before, after;

	put("self", "0::/\n");
	put("cpu.max", "100000 100000\n");
	start_alone(INT64_MAX);
	ck_assert_ptr_nonnull(rt_alloc_noscan(32 << 20));
	must(rt_gc());
	before = heap_stats();
	must(rt_set_memory_limit(
	    (int64_t)(before.sys - before.heap_released - (8 << 20)), NULL));
	ck_assert(!worker_knows_processors());
	for (unsigned i = 0; heap_stats().heap_released <= before.heap_released;
	     i++) {
		ck_assert_uint_lt(i, 1000);
		ck_assert_ptr_nonnull(rt_alloc_noscan(8192));
	}
	after = heap_stats();
	ck_assert_uint_eq(after.num_gc, before.num_gc);
	ck_assert_uint_eq(pacer.limiter.capacity, LIMITER_CAPACITY);
	heap_healthy();
}

// The files of the group are not read in rt_init or as long as there is no
// limit.  After that they are read once.
TEST(files_are_read_when_they_are_needed)
{
	unsigned once;

	put("self", "0::/\n");
	put("cpu.max", "100000 100000\n");
	start_alone(INT64_MAX);
	allocate_until_due();
	ck_assert_uint_eq(files_read, 0);
	ck_assert_int_eq(rt_set_memory_limit(1 << 30, NULL), RT_OK);
	ck_assert_uint_eq(files_read, 0);
	allocate_until_due();
	once = files_read;
	ck_assert_uint_ne(once, 0);
	allocate_until_due();
	ck_assert_uint_eq(files_read, once);
}

GROUP(heap);

TEST(limit_is_read_when_helpers_are_made)
{
	struct cgroup c;

	cgroup_self(&c);
	ck_assert_uint_ge(c.cpus, 1);
	start(1);
	ck_assert_uint_eq(atomic_u32_load_relaxed(&workers.cpus), 0);
	ck_assert_uint_eq(helpers(), base_min(c.cpus, 4) - 1);
	ck_assert_uint_eq(atomic_u32_load_relaxed(&workers.cpus),
			  base_min(c.cpus, 4096));
	ck_assert_int_eq(rt_fini(), RT_OK);
	start(0);
	ck_assert_uint_eq(helpers(), 3);
	ck_assert_uint_eq(atomic_u32_load_relaxed(&workers.cpus), 0);
}

TEST(memory_limit_is_that_of_the_groups_on_request)
{
	struct cgroup c;

	cgroup_self(&c);
	start(2);
	ck_assert_uint_eq(heap_metric("/gc/gomemlimit:bytes"),
			  base_min(c.memory, INT64_MAX));
	ck_assert_int_eq(rt_fini(), RT_OK);
	start(1);
	ck_assert_uint_eq(heap_metric("/gc/gomemlimit:bytes"), INT64_MAX);
}
