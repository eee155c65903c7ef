// Every field of rt_config: its range, its default, and its item of RTDEBUG.
#define _GNU_SOURCE 1

#include "test/harness/fault.h"
#include "test/harness/suite.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/os/settings.h"
#include "runtime/os/oscall.h"

static rt_config config, resolved;

static void setup(void)
{
	unsetenv("RTGC");
	unsetenv("RTMEMLIMIT");
	unsetenv("RTDEBUG");
	memset(&config, 0xaa, sizeof config);
	rt_config_init(&config);
}

static bool same(const rt_config *a, const rt_config *b)
{
	return memcmp(a, b, sizeof *a) == 0;
}

// A struct of a host that was compiled when rt_config was longer.
struct longer {
	rt_config known;
	uint64_t later[2];
};

GROUP(config, .setup = setup);

TEST(defaults_are_those_of_the_header)
{
	ck_assert_uint_eq(config.struct_size, sizeof(rt_config));
	ck_assert_uint_eq(config.max_heap, 0);
	ck_assert_uint_eq(config.heap_min, 0);
	ck_assert_uint_eq(config.heap_headroom, 20 << 20);
	ck_assert_int_eq(config.memory_limit, INT64_MAX);
	ck_assert_int_eq(config.gc_percent, 100);
	ck_assert_int_eq(config.max_procs, 0);
	ck_assert_int_eq(config.gc_threads, -1);
	ck_assert_int_eq(config.double_check, RT_CHECK_OFF);
	ck_assert_int_eq(config.stop_signal, 0);
	ck_assert_uint_eq(config.stop_grace_us, 100);
	ck_assert_uint_eq(config.past_end, 1);
	ck_assert_uint_eq(config.align8, 0);
	ck_assert_uint_eq(config.concurrent, 0);
	ck_assert_uint_eq(config.no_attach, 0);
	ck_assert_uint_eq(config.huge_pages, 0);
	ck_assert_uint_eq(config.populate, 2);
	ck_assert_uint_eq(config.checkmark, 0);
	ck_assert_uint_eq(config.clobberfree, 0);
	ck_assert_uint_eq(config.gcstress, 0);
	ck_assert_uint_eq(config.poison, 0);
	ck_assert_uint_eq(config.guard_large, 0);
	ck_assert_uint_eq(config.guard_small, 0);
	ck_assert_ptr_null(config.stack_format);
	ck_assert_uint_eq(config.tracecheck, 0);
	ck_assert_uint_eq(config.gc_cpu_limit, 50);
	ck_assert_uint_eq(config.cgroup, 1);
	ck_assert_uint_eq(config.gctrace, 0);
	ck_assert_uint_eq(config.scavenge, 1);
	ck_assert_uint_eq(config.idle_s, 5);
	ck_assert_uint_eq(config.scavtrace, 0);
	ck_assert_uint_eq(config.sweep, 1);
	ck_assert_uint_eq(config.gcpacertrace, 0);
	ck_assert_uint_eq(config.gc_period_s, 120);
	ck_assert_ptr_null(config.gc_affinity);
	ck_assert_uint_eq(config.gc_affinity_size, 0);
	ck_assert(!config.gc_thread_start);
	ck_assert_ptr_null(config.gc_thread_arg);
}

TEST(init_writes_only_the_size_given)
{
	for (size_t size = sizeof(size_t); size <= sizeof(struct longer);
	     size++) {
		struct longer c;
		const unsigned char *bytes = (const unsigned char *)&c;

		memset(&c, 0xaa, sizeof c);
		rt_config_init_sized(&c.known, size);
		ck_assert_uint_eq(c.known.struct_size, size);
		for (size_t i = size; i < sizeof c; i++)
			ck_assert_uint_eq(bytes[i], 0xaa);
		for (size_t i = sizeof c.known; i < size; i++)
			ck_assert_uint_eq(bytes[i], 0);
	}
}

TEST(null_resolves_to_defaults)
{
	rt_config other;

	ck_assert_int_eq(settings_resolve(NULL, &resolved), RT_OK);
	ck_assert_int_eq(settings_resolve(&config, &other), RT_OK);
	ck_assert(same(&resolved, &other));
	ck_assert_uint_eq(resolved.struct_size, sizeof resolved);
	ck_assert_uint_eq(resolved.max_heap, 0);
	ck_assert_uint_eq(resolved.heap_min, 4 << 20);
	ck_assert_int_ge(resolved.max_procs, 1);
	ck_assert_int_eq(resolved.gc_threads, resolved.max_procs);
	ck_assert_int_eq(resolved.stop_signal, SIGURG);
}

TEST(values_in_range_are_kept)
{
	config.max_heap = (size_t)SETTINGS_MAX_HEAP;
	config.heap_min = (size_t)SETTINGS_MAX_HEAP;
	config.heap_headroom = 0;
	config.memory_limit = 0;
	config.gc_percent = INT_MAX;
	config.max_procs = SETTINGS_MAX_PROCS;
	config.gc_threads = 0;
	config.double_check = RT_CHECK_REPORT;
	config.stop_signal = -1;
	config.stop_grace_us = UINT32_MAX;
	config.past_end = 0;
	config.align8 = 1;
	config.no_attach = 1;
	config.huge_pages = 1;
	config.populate = 0;
	config.checkmark = 1;
	config.clobberfree = 1;
	config.gcstress = UINT32_MAX;
	config.poison = 1;
	config.guard_large = 1;
	config.guard_small = UINT16_MAX;
	config.tracecheck = 1;
	config.gc_cpu_limit = 1;
	config.cgroup = 2;
	config.gctrace = 2;
	config.scavenge = 0;
	config.idle_s = UINT8_MAX;
	config.scavtrace = 1;
	config.sweep = 2;
	config.gcpacertrace = 1;
	config.gc_period_s = UINT8_MAX;
	ck_assert_int_eq(settings_resolve(&config, &resolved), RT_OK);
	ck_assert(same(&config, &resolved));
	config.gc_cpu_limit = 100;
	config.cgroup = config.idle_s = config.sweep = config.gc_period_s = 0;
	ck_assert_int_eq(settings_resolve(&config, &resolved), RT_OK);
	ck_assert(same(&config, &resolved));
}

TEST(every_percent_below_zero_is_off)
{
	config.gc_percent = INT_MIN;
	ck_assert_int_eq(settings_resolve(&config, &resolved), RT_OK);
	ck_assert_int_eq(resolved.gc_percent, -1);
}

#define REFUSED(field, value)                                                  \
	do {                                                                   \
		rt_config changed = config;                                    \
		changed.field = (value);                                       \
		ck_assert_int_eq(settings_resolve(&changed, &resolved),        \
				 RT_EINVAL);                                   \
	} while (0)

TEST(values_out_of_range_are_refused)
{
	const size_t above = (size_t)SETTINGS_MAX_HEAP + 1;

	REFUSED(max_heap, above);
	REFUSED(max_heap, SIZE_MAX);
	REFUSED(heap_min, above);
	REFUSED(heap_min, SIZE_MAX);
	REFUSED(heap_headroom, above);
	REFUSED(heap_headroom, (size_t)INT64_MAX + 1);
	REFUSED(memory_limit, -1);
	REFUSED(memory_limit, INT64_MIN);
	REFUSED(max_procs, -1);
	REFUSED(max_procs, SETTINGS_MAX_PROCS + 1);
	REFUSED(gc_threads, -2);
	REFUSED(gc_threads, SETTINGS_MAX_PROCS + 1);
	REFUSED(double_check, -1);
	REFUSED(double_check, RT_CHECK_REPORT + 1);
	REFUSED(past_end, 2);
	REFUSED(align8, 2);
	REFUSED(concurrent, 1);
	REFUSED(no_attach, 255);
	REFUSED(huge_pages, 2);
	REFUSED(populate, 3);
	REFUSED(checkmark, 2);
	REFUSED(clobberfree, 2);
	REFUSED(poison, 2);
	REFUSED(guard_large, 2);
	REFUSED(tracecheck, 2);
	REFUSED(gc_cpu_limit, 0);
	REFUSED(gc_cpu_limit, 101);
	REFUSED(cgroup, 3);
	REFUSED(scavenge, 2);
	REFUSED(sweep, 3);
	REFUSED(gctrace, 3);
	REFUSED(scavtrace, 2);
	REFUSED(gcpacertrace, 2);
	for (size_t i = 0; i < sizeof config.spare; i++)
		REFUSED(spare[i], 1);
}

TEST(stop_signal_can_be_caught_and_is_no_fault)
{
	static const int wrong[] = {
	    -2,	    SIGKILL, SIGSTOP, SIGSEGV, SIGBUS,	SIGFPE,
	    SIGILL, SIGTRAP, SIGSYS,  SIGABRT, INT_MAX, INT_MIN,
	};

	for (size_t i = 0; i < RT_ARRAY_LEN(wrong); i++)
		REFUSED(stop_signal, wrong[i]);
	REFUSED(stop_signal, 32); // libc's
	REFUSED(stop_signal, SIGRTMAX + 1);

	int right[] = {-1, SIGUSR1, SIGURG, SIGPWR, SIGRTMIN, SIGRTMAX};

	for (size_t i = 0; i < RT_ARRAY_LEN(right); i++) {
		config.stop_signal = right[i];
		ck_assert_int_eq(settings_resolve(&config, &resolved), RT_OK);
		ck_assert_int_eq(resolved.stop_signal, right[i]);
	}
}

TEST(processors_default_to_one_when_the_system_does_not_tell)
{
	fault_fail(OSCALL_AFFINITY, 1, 1, 1);
	ck_assert_int_eq(settings_resolve(&config, &resolved), RT_OK);
	ck_assert_int_eq(resolved.max_procs, 1);
	ck_assert_int_eq(resolved.gc_threads, 1);
}

TEST(shorter_struct_keeps_the_other_defaults)
{
	rt_config_init_sized(&config, offsetof(rt_config, gc_percent));
	config.heap_min = 123456;
	config.gc_percent = 7;	   // beyond the host's struct
	config.double_check = 999; // and wrong, if it were read
	ck_assert_int_eq(settings_resolve(&config, &resolved), RT_OK);
	ck_assert_uint_eq(resolved.struct_size, sizeof resolved);
	ck_assert_uint_eq(resolved.heap_min, 123456);
	ck_assert_int_eq(resolved.gc_percent, 100);
	ck_assert_int_eq(resolved.double_check, RT_CHECK_OFF);
}

TEST(half_a_field_is_not_read)
{
	const size_t offset = offsetof(rt_config, heap_min);

	for (size_t n = 0; n <= sizeof config.heap_min; n++) {
		rt_config_init_sized(&config, offset + n);
		config.heap_min = 123456;
		ck_assert_int_eq(settings_resolve(&config, &resolved), RT_OK);
		ck_assert_uint_eq(resolved.heap_min, n < sizeof config.heap_min
							 ? 4 << 20
							 : 123456);
	}
}

static void ignore_thread(void *arg)
{
	(void)arg;
}

static const rt_value_format plain_format = RT_FORMAT_PLAIN;
static const unsigned char one_processor = 1;

// Structs that end inside a field, and which pointers are read from them.
static const struct {
	size_t offset;	   // of that field
	int error;	   // a mask without its size is refused
	unsigned pointers; // a bit for each
} ends[] = {
    {offsetof(rt_config, stack_format), RT_OK, 0},
    {offsetof(rt_config, gc_affinity), RT_OK, 1},
    {offsetof(rt_config, gc_affinity_size), RT_EINVAL, 0},
    {offsetof(rt_config, gc_thread_start), RT_OK, 3},
    {offsetof(rt_config, gc_thread_arg), RT_OK, 7},
    {sizeof(rt_config), RT_OK, 15},
};

static unsigned pointers_read(void)
{
	return (unsigned)(resolved.stack_format == &plain_format) |
	       (unsigned)(resolved.gc_affinity == &one_processor) << 1 |
	       (unsigned)(resolved.gc_thread_start == ignore_thread) << 2 |
	       (unsigned)(resolved.gc_thread_arg == &config) << 3;
}

TEST(half_a_pointer_is_not_read, .n = RT_ARRAY_LEN(ends))
{
	for (size_t n = 0; n < sizeof(void *); n++) {
		rt_config_init(&config);
		config.struct_size = ends[_i].offset + n;
		config.stack_format = &plain_format;
		config.gc_affinity = &one_processor;
		config.gc_affinity_size = 1;
		config.gc_thread_start = ignore_thread;
		config.gc_thread_arg = &config;
		if (config.struct_size > sizeof config)
			return;
		ck_assert_int_eq(settings_resolve(&config, &resolved),
				 ends[_i].error);
		if (ends[_i].error == RT_OK)
			ck_assert_uint_eq(pointers_read(), ends[_i].pointers);
	}
}

TEST(longer_struct_is_taken_if_the_rest_is_zero)
{
	struct longer c;

	rt_config_init_sized(&c.known, sizeof c);
	c.known.gc_percent = 55;
	ck_assert_int_eq(settings_resolve(&c.known, &resolved), RT_OK);
	ck_assert_uint_eq(resolved.struct_size, sizeof resolved);
	ck_assert_int_eq(resolved.gc_percent, 55);

	c.later[1] = UINT64_C(1) << 63;
	ck_assert_int_eq(settings_resolve(&c.known, &resolved), RT_EINVAL);
	ck_assert_int_eq(rt_config_from_env(&c.known), RT_EINVAL);
}

TEST(each_byte_that_is_not_known_must_be_zero)
{
	struct longer c;
	unsigned char *bytes = (unsigned char *)&c;

	rt_config_init_sized(&c.known, sizeof c);
	for (size_t i = sizeof c.known; i < sizeof c; i++) {
		bytes[i] = 1;
		ck_assert_int_eq(settings_resolve(&c.known, &resolved),
				 RT_EINVAL);
		bytes[i] = 0;
		ck_assert_int_eq(settings_resolve(&c.known, &resolved), RT_OK);
	}
}

TEST(struct_that_was_not_initialised_is_refused)
{
	static const size_t wrong[] = {0, 1, 7, SETTINGS_MAX_STRUCT + 1,
				       SIZE_MAX};

	setenv("RTGC", "50", 1);
	for (size_t i = 0; i < RT_ARRAY_LEN(wrong); i++) {
		config.struct_size = wrong[i];
		ck_assert_int_eq(settings_resolve(&config, &resolved),
				 RT_EINVAL);
		ck_assert_int_eq(rt_config_from_env(&config), RT_EINVAL);
		ck_assert_int_eq(config.gc_percent, 100);
	}
	ck_assert_int_eq(rt_config_from_env(NULL), RT_EINVAL);
}

TEST(empty_environment_changes_nothing)
{
	rt_config before = config;

	ck_assert_int_eq(rt_config_from_env(&config), RT_OK);
	ck_assert(same(&config, &before));
	setenv("RTGC", "", 1);
	setenv("RTMEMLIMIT", "", 1);
	setenv("RTDEBUG", "", 1);
	ck_assert_int_eq(rt_config_from_env(&config), RT_OK);
	ck_assert(same(&config, &before));
}

TEST(environment_sets_percent_and_limit)
{
	setenv("RTGC", "250", 1);
	setenv("RTMEMLIMIT", "3GiB", 1);
	ck_assert_int_eq(rt_config_from_env(&config), RT_OK);
	ck_assert_int_eq(config.gc_percent, 250);
	ck_assert_int_eq(config.memory_limit, INT64_C(3) << 30);
	setenv("RTGC", "off", 1);
	setenv("RTMEMLIMIT", "off", 1);
	ck_assert_int_eq(rt_config_from_env(&config), RT_OK);
	ck_assert_int_eq(config.gc_percent, -1);
	ck_assert_int_eq(config.memory_limit, INT64_MAX);
}

TEST(environment_sets_every_debug_name)
{
	setenv("RTDEBUG",
	       "max_heap=1TiB,heap_min=8MiB,heap_headroom=0,max_procs=3,"
	       "gc_threads=-1,double_check=1,stop_signal=-1,stop_grace_us=7,"
	       "past_end=0,align8=1,gc_threads=2,huge_pages=1,populate=0,"
	       "checkmark=1,clobberfree=1,gcstress=5,poison=1,"
	       "guard_large=1,guard_small=1000,tracecheck=1,gc_cpu_limit=77,"
	       "cgroup=2,gctrace=2,scavenge=0,idle_s=9,scavtrace=1,sweep=2,"
	       "gcpacertrace=1,gc_period_s=255",
	       1);
	ck_assert_int_eq(rt_config_from_env(&config), RT_OK);
	ck_assert_uint_eq(config.max_heap, (size_t)SETTINGS_MAX_HEAP);
	ck_assert_uint_eq(config.heap_min, 8 << 20);
	ck_assert_uint_eq(config.heap_headroom, 0);
	ck_assert_int_eq(config.max_procs, 3);
	ck_assert_int_eq(config.gc_threads, 2); // the last one counts
	ck_assert_int_eq(config.double_check, RT_CHECK_FATAL);
	ck_assert_int_eq(config.stop_signal, -1);
	ck_assert_uint_eq(config.stop_grace_us, 7);
	ck_assert_uint_eq(config.past_end, 0);
	ck_assert_uint_eq(config.align8, 1);
	ck_assert_uint_eq(config.huge_pages, 1);
	ck_assert_uint_eq(config.populate, 0);
	ck_assert_uint_eq(config.checkmark, 1);
	ck_assert_uint_eq(config.clobberfree, 1);
	ck_assert_uint_eq(config.gcstress, 5);
	ck_assert_uint_eq(config.poison, 1);
	ck_assert_uint_eq(config.guard_large, 1);
	ck_assert_uint_eq(config.guard_small, 1000);
	ck_assert_uint_eq(config.tracecheck, 1);
	ck_assert_uint_eq(config.gc_cpu_limit, 77);
	ck_assert_uint_eq(config.cgroup, 2);
	ck_assert_uint_eq(config.gctrace, 2);
	ck_assert_uint_eq(config.scavenge, 0);
	ck_assert_uint_eq(config.idle_s, 9);
	ck_assert_uint_eq(config.scavtrace, 1);
	ck_assert_uint_eq(config.sweep, 2);
	ck_assert_uint_eq(config.gcpacertrace, 1);
	ck_assert_uint_eq(config.gc_period_s, 255);
	ck_assert_int_eq(settings_resolve(&config, &resolved), RT_OK);
}

// A wrong item is ignored.  The items before and after it are taken.
TEST(wrong_items_are_ignored_and_the_others_taken)
{
	static const char *const wrong[] = {
	    "nosuch=1",
	    "max_procs",
	    "max_procs=",
	    "max_procs=many",
	    "max_procs=-1",
	    "max_procs=4097",
	    "max_procs=1GiB",
	    "max_procs=99999999999999999999",
	    "max_procs=4294967297",
	    "max_heap=2TiB",
	    "max_heap=-1",
	    "max_heap=off",
	    "past_end=256",
	    "past_end=2",
	    "align8=257",
	    "align8=true",
	    "double_check=3",
	    "populate=3",
	    "gc_cpu_limit=0",
	    "gc_cpu_limit=101",
	    "cgroup=3",
	    "cgroup=-1",
	    "gctrace=3",
	    "scavenge=2",
	    "idle_s=256",
	    "scavtrace=2",
	    "sweep=3",
	    "gcpacertrace=2",
	    "gc_period_s=256",
	    "stop_signal=9",
	    "stop_signal=-2",
	    "stop_grace_us=4294967296",
	    "stop_grace_us=-1",
	    "gc_percent=10",
	    "memory_limit=10",
	    "concurrent=0",
	    "no_attach=1",
	    "stack_format=0",
	    "struct_size=8",
	    "=1",
	    " heap_headroom=1",
	    "Max_procs=1",
	};

	for (size_t i = 0; i < RT_ARRAY_LEN(wrong); i++) {
		char text[200];
		rt_config expected;

		setup();
		expected = config;
		expected.heap_min = 65536;
		expected.heap_headroom = 1024;
		strcpy(text, "heap_min=64KiB,");
		strcat(text, wrong[i]);
		strcat(text, ",heap_headroom=1024");
		setenv("RTDEBUG", text, 1);
		ck_assert_msg(rt_config_from_env(&config) == RT_EINVAL, "%s",
			      wrong[i]);
		ck_assert_msg(same(&config, &expected), "%s", wrong[i]);
	}
}

TEST(wrong_variable_leaves_the_others)
{
	setenv("RTGC", "-1", 1);
	setenv("RTMEMLIMIT", "1MiB", 1);
	ck_assert_int_eq(rt_config_from_env(&config), RT_EINVAL);
	ck_assert_int_eq(config.gc_percent, 100);
	ck_assert_int_eq(config.memory_limit, 1 << 20);

	setenv("RTGC", "30", 1);
	setenv("RTMEMLIMIT", "8388608TiB", 1);
	ck_assert_int_eq(rt_config_from_env(&config), RT_EINVAL);
	ck_assert_int_eq(config.gc_percent, 30);
	ck_assert_int_eq(config.memory_limit, 1 << 20);
}

TEST(endless_variable_is_ignored)
{
	enum { LEN = 1000000 };
	static char text[LEN + 1];
	rt_config before = config;

	memset(text, '1', LEN);
	setenv("RTGC", text, 1);
	setenv("RTMEMLIMIT", text, 1);
	memcpy(text, "past_end=0,", 11);
	setenv("RTDEBUG", text, 1);
	ck_assert_int_eq(rt_config_from_env(&config), RT_EINVAL);
	ck_assert(same(&config, &before));
}

TEST(environment_does_not_write_beyond_a_short_struct)
{
	rt_config before;

	rt_config_init_sized(&config, offsetof(rt_config, gc_percent));
	before = config;
	before.heap_min = 1 << 20;
	setenv("RTGC", "50", 1);
	setenv("RTDEBUG", "align8=1,heap_min=1MiB", 1);
	ck_assert_int_eq(rt_config_from_env(&config), RT_EINVAL);
	ck_assert(same(&config, &before));
}

TEST(refused_environment_reads_as_unset)
{
	rt_config before = config;

	setenv("RTGC", "50", 1);
	fault_fail(OSCALL_GETENV, 1, 3, 1);
	ck_assert_int_eq(rt_config_from_env(&config), RT_OK);
	ck_assert(same(&config, &before));
}

// ---- a process that runs setuid ----

// The exit status of a copy of this program says what it found.
enum {
	PRIVILEGED_READ_NOTHING = 10,
	PRIVILEGED_READ,
	ORDINARY_READ,
	ORDINARY_READ_NOTHING,
};

static int read_as_told(void)
{
	bool read;

	rt_config_init(&config);
	read = rt_config_from_env(&config) != RT_OK ||
	       config.gc_percent == 50 || config.memory_limit == 99 << 20 ||
	       config.align8;
	if (getauxval(AT_SECURE))
		return read ? PRIVILEGED_READ : PRIVILEGED_READ_NOTHING;
	return read ? ORDINARY_READ : ORDINARY_READ_NOTHING;
}

// copy_program copies this program to a new file, and writes its name to
// template.
static void copy_program(char *template)
{
	int from = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	int to = mkostemp(template, O_CLOEXEC);
	static char buf[1 << 16];
	ssize_t n;

	ck_assert_int_ge(from, 0);
	ck_assert_int_ge(to, 0);
	while ((n = read(from, buf, sizeof buf)) > 0)
		ck_assert_int_eq(write(to, buf, (size_t)n), n);
	ck_assert_int_eq(n, 0);
	close(from);
	close(to);
}

// run_copy returns the exit status of the copy, or -1 if a signal ended it.
static int run_copy(const char *path)
{
	pid_t child = fork();
	int status;

	if (child == 0) {
		execl(path, path, "read", (char *)NULL);
		_exit(127);
	}
	ck_assert_int_gt(child, 0);
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(a_privileged_process_reads_nothing)
{
	char path[] = "check_config.copy.XXXXXX";
	int ordinary, privileged = PRIVILEGED_READ;
	bool made;

	if (RT_TSAN || RT_ASAN) {
		suite_skip("a sanitizer's addresses are random there", NULL);
		return;
	}
	setenv("RTGC", "50", 1);
	setenv("RTMEMLIMIT", "99MiB", 1);
	setenv("RTDEBUG", "align8=1", 1);
	copy_program(path);
	ck_assert_int_eq(chmod(path, 0755), 0);
	ordinary = run_copy(path);
	// Any user but the one that runs the program.
	made = chown(path, 1, (gid_t)-1) == 0 && chmod(path, 04755) == 0;
	if (made)
		privileged = run_copy(path);
	unlink(path);
	if (ordinary == 127) {
		suite_skip("a copy of the program cannot be started", NULL);
		return;
	}
	ck_assert_int_eq(ordinary, ORDINARY_READ);
	if (!made || privileged == ORDINARY_READ)
		suite_skip("a program cannot be made setuid", NULL);
	else
		ck_assert_int_eq(privileged, PRIVILEGED_READ_NOTHING);
}

// Whatever is in the environment, rt_init accepts the resulting configuration.
TEST(random_environment_resolves)
{
	static const char *const names[] = {
	    "max_heap",	   "heap_min",	   "heap_headroom", "max_procs",
	    "gc_threads",  "double_check", "stop_signal",   "stop_grace_us",
	    "past_end",	   "align8",	   "huge_pages",    "populate",
	    "checkmark",   "clobberfree",  "gcstress",	    "poison",
	    "guard_large", "guard_small",  "tracecheck",    "gctrace",
	    "scavtrace",   "gcpacertrace", "gc_period_s",   "gc_cpu_limit",
	    "cgroup",	   "scavenge",	   "idle_s",	    "sweep",
	};
	static const char bytes[] = "-0123456789KMGTiB,=";
	struct rng rng;
	unsigned bad = 0, taken = 0;

	rng_init(&rng, "random_environment_resolves");
	for (int round = 0; round < 20000; round++) {
		const char *name = names[rng_below(&rng, RT_ARRAY_LEN(names))];
		char text[64];
		char *at = text + strlen(name);

		strcpy(text, name);
		*at++ = '=';
		for (uint64_t n = rng_below(&rng, 7); n > 0; n--)
			*at++ = bytes[rng_below(&rng, sizeof bytes - 1)];
		*at = '\0';
		setenv("RTDEBUG", text, 1);
		rt_config_init(&config);
		taken += rt_config_from_env(&config) == RT_OK;
		bad += settings_resolve(&config, &resolved) != RT_OK;
	}
	ck_assert_uint_eq(bad, 0);
	ck_assert_uint_gt(taken, 0);
}

TEST(every_error_has_words_of_its_own)
{
	static const int errors[] = {
	    RT_OK,     RT_EINVAL, RT_ENOMEM,  RT_EPERM,	 RT_EBUSY,
	    RT_ESTATE, RT_ENOENT, RT_ENOTSUP, RT_EEXIST, 1,
	};

	for (size_t i = 0; i < RT_ARRAY_LEN(errors); i++) {
		ck_assert_uint_gt(strlen(rt_strerror(errors[i])), 0);
		for (size_t j = 0; j < i; j++)
			ck_assert_str_ne(rt_strerror(errors[i]),
					 rt_strerror(errors[j]));
	}
	ck_assert_str_eq(rt_strerror(RT_EEXIST - 1), rt_strerror(1));
	ck_assert_str_eq(rt_strerror(INT_MIN), rt_strerror(1));
}

TEST(version_is_that_of_the_headers)
{
	ck_assert_int_eq(rt_version(), RT_VERSION_NUMBER);
	ck_assert_int_eq(rt_version() / 1000000, RT_VERSION_MAJOR);
	ck_assert_int_eq(rt_version() / 1000 % 1000, RT_VERSION_MINOR);
	ck_assert_int_eq(rt_version() % 1000, RT_VERSION_MICRO);
}

// If there is an argument, this is a copy that
// a_privileged_process_reads_nothing runs.
int main(int argc, char **argv)
{
	(void)argv;
	if (argc > 1)
		_exit(read_as_told());
	return suite_run();
}
