// Configurations at and beyond the limits that the header states.  A wrong one
// makes no heap.
#include "test/whole/misuse.h"

#include <limits.h>
#include <signal.h>

#define TIB (INT64_C(1) << 40)

static const struct config_case {
	const char *name;
	size_t offset, size; // of the field
	int64_t value;
	int want;
} config_cases[] = {
#define SET(f, value, want)                                                    \
	{                                                                      \
#f " = " #value, offsetof(rt_config, f),                       \
		    sizeof(((rt_config *)0)->f), value, want                   \
	}
    SET(struct_size, 0, RT_EINVAL),
    SET(struct_size, 1, RT_EINVAL),
    SET(struct_size, 7, RT_EINVAL),
    SET(struct_size, 8, RT_OK),
    SET(struct_size, 16, RT_OK),
    SET(struct_size, 71, RT_OK),
    SET(struct_size, 4097, RT_EINVAL),
    SET(struct_size, INT64_C(1) << 31, RT_EINVAL),
    SET(struct_size, INT64_MIN, RT_EINVAL),
    SET(struct_size, -1, RT_EINVAL),
    SET(struct_size, (int64_t)UINT64_C(0xaaaaaaaaaaaaaaaa), RT_EINVAL),
    SET(max_heap, 1, RT_OK),
    SET(max_heap, (64 << 20) - 1, RT_OK),
    SET(max_heap, TIB, RT_OK),
    SET(max_heap, TIB + 1, RT_EINVAL),
    SET(max_heap, INT64_MIN, RT_EINVAL),
    SET(max_heap, -1, RT_EINVAL),
    SET(heap_min, 1, RT_OK),
    SET(heap_min, TIB, RT_OK),
    SET(heap_min, TIB + 1, RT_EINVAL),
    SET(heap_min, -1, RT_EINVAL),
    SET(heap_headroom, 0, RT_OK),
    SET(heap_headroom, TIB, RT_OK),
    SET(heap_headroom, TIB + 1, RT_EINVAL),
    SET(heap_headroom, -1, RT_EINVAL),
    SET(memory_limit, 0, RT_OK),
    SET(memory_limit, INT64_MAX, RT_OK),
    SET(memory_limit, -1, RT_EINVAL),
    SET(memory_limit, INT64_MIN, RT_EINVAL),
    SET(cgroup, 0, RT_OK),
    SET(cgroup, 2, RT_OK),
    SET(cgroup, 3, RT_EINVAL),
    SET(gctrace, 1, RT_OK),
    SET(gctrace, 2, RT_OK),
    SET(gctrace, 3, RT_EINVAL),
    SET(scavtrace, 1, RT_OK),
    SET(scavtrace, 2, RT_EINVAL),
    SET(gcpacertrace, 1, RT_OK),
    SET(gcpacertrace, 2, RT_EINVAL),
    SET(gc_cpu_limit, 0, RT_EINVAL),
    SET(gc_cpu_limit, 1, RT_OK),
    SET(gc_cpu_limit, 100, RT_OK),
    SET(gc_cpu_limit, 101, RT_EINVAL),
    SET(scavenge, 0, RT_OK),
    SET(scavenge, 1, RT_OK),
    SET(scavenge, 2, RT_EINVAL),
    SET(idle_s, 0, RT_OK),
    SET(idle_s, 255, RT_OK),
    SET(sweep, 0, RT_OK),
    SET(sweep, 2, RT_OK),
    SET(sweep, 3, RT_EINVAL),
    SET(gc_period_s, 0, RT_OK),
    SET(gc_period_s, 255, RT_OK),
    SET(gc_affinity, 8, RT_EINVAL),	 // a mask of no bytes
    SET(gc_affinity_size, 1, RT_EINVAL), // no mask
    SET(gc_affinity_size, 1025, RT_EINVAL),
    SET(gc_affinity_size, -1, RT_EINVAL),
    SET(gc_thread_arg, 8, RT_OK), // is not read
    SET(max_procs, -1, RT_EINVAL),
    SET(max_procs, 1, RT_OK),
    SET(max_procs, 4096, RT_OK),
    SET(max_procs, 4097, RT_EINVAL),
    SET(max_procs, INT_MAX, RT_EINVAL),
    SET(max_procs, INT_MIN, RT_EINVAL),
    SET(gc_threads, -2, RT_EINVAL),
    SET(gc_threads, 0, RT_OK),
    SET(gc_threads, 4096, RT_OK),
    SET(gc_threads, 4097, RT_EINVAL),
    SET(gc_threads, INT_MIN, RT_EINVAL),
    SET(double_check, -1, RT_EINVAL),
    SET(double_check, 2, RT_OK),
    SET(double_check, 3, RT_EINVAL),
    SET(double_check, INT_MIN, RT_EINVAL),
    SET(stop_signal, -1, RT_OK),
    SET(stop_signal, -2, RT_EINVAL),
    SET(stop_signal, SIGUSR1, RT_OK),
    SET(stop_signal, SIGKILL, RT_EINVAL),
    SET(stop_signal, SIGSTOP, RT_EINVAL),
    SET(stop_signal, SIGSEGV, RT_EINVAL),
    SET(stop_signal, SIGBUS, RT_EINVAL),
    SET(stop_signal, SIGABRT, RT_EINVAL),
    SET(stop_signal, SIGFPE, RT_EINVAL),
    SET(stop_signal, SIGILL, RT_EINVAL),
    SET(stop_signal, SIGTRAP, RT_EINVAL),
    SET(stop_signal, SIGSYS, RT_EINVAL),
    SET(stop_signal, 32, RT_EINVAL),
    SET(stop_signal, 33, RT_EINVAL),
    SET(stop_signal, 64, RT_OK),
    SET(stop_signal, 65, RT_EINVAL),
    SET(stop_signal, INT_MAX, RT_EINVAL),
    SET(stop_signal, INT_MIN, RT_EINVAL),
    SET(past_end, 2, RT_EINVAL),
    SET(past_end, 255, RT_EINVAL),
    SET(align8, 2, RT_EINVAL),
    SET(align8, 1, RT_OK),
    SET(concurrent, 1, RT_EINVAL),
    SET(concurrent, 255, RT_EINVAL),
    SET(no_attach, 2, RT_EINVAL),
    SET(no_attach, 255, RT_EINVAL),
    SET(huge_pages, 0, RT_OK),
    SET(huge_pages, 2, RT_EINVAL),
    SET(huge_pages, 255, RT_EINVAL),
    SET(populate, 0, RT_OK),
    SET(populate, 2, RT_OK),
    SET(populate, 3, RT_EINVAL),
    SET(populate, 255, RT_EINVAL),
    SET(gc_percent, 0, RT_OK),
    SET(gc_percent, INT_MAX, RT_OK),
    SET(gc_percent, INT_MIN, RT_OK),
    SET(stop_grace_us, UINT32_MAX, RT_OK),
};

GROUP(configurations);

TEST(bad_configurations_make_no_heap, .n = RT_ARRAY_LEN(config_cases))
{
	const struct config_case *c = &config_cases[_i];
	// Longer than any struct_size that rt_init accepts, with zeros at the
	// end.
	static union {
		rt_config c;
		char room[8192];
	} u;

	rt_config_init(&u.c);
	memcpy(u.room + c->offset, &c->value, c->size); // little-endian
	JUDGE(c->name, rt_init(&u.c), c->want);
	if (c->want == RT_OK) {
		JUDGE(c->name, some(rt_alloc(100)), SOME);
		heap_healthy();
		JUDGE(c->name, rt_fini(), RT_OK);
	}
	JUDGE(c->name, some(rt_thread_self()), NOTHING);
	JUDGE(c->name, rt_gc(), RT_ESTATE);
	begin();
	heap_healthy();
	finish(3);
}

TEST(sizes_of_config_init)
{
	union {
		rt_config c;
		unsigned char byte[256];
	} u;

	rt_config_init_sized(NULL, sizeof u.c);
	memset(&u, 0x5a, sizeof u);
	for (size_t n = 0; n < sizeof(size_t); n++)
		rt_config_init_sized(&u.c, n);
	for (unsigned i = 0; i < sizeof u; i++)
		judge("rt_config_init_sized", "too small", u.byte[i], 0x5a);
	rt_config_init_sized(&u.c, sizeof(size_t));
	judge("rt_config_init_sized", "8 bytes", (long)u.c.struct_size, 8);
	judge("rt_config_init_sized", "no more than 8", u.byte[8], 0x5a);
	rt_config_init_sized(&u.c, sizeof u);
	judge("rt_config_init_sized", "256 bytes", (long)u.c.struct_size, 256);
	judge("rt_config_init_sized", "zero at the end", u.byte[255], 0);
	JUDGE("longer, zero", rt_init(&u.c), RT_OK);
	JUDGE("longer, zero", rt_fini(), RT_OK);
	u.byte[255] = 1;
	JUDGE("longer, unknown field", rt_init(&u.c), RT_EINVAL);
	JUDGE("longer, unknown field", rt_config_from_env(&u.c), RT_EINVAL);
	memset(&u, 0, sizeof u);
	JUDGE("not initialised", rt_config_from_env(&u.c), RT_EINVAL);
	JUDGE("not initialised", rt_init(&u.c), RT_EINVAL);
	finish(266);
}

// With no_attach, rt_init does not attach its caller.  Only an attached thread
// can end the heap.
TEST(a_heap_without_its_maker)
{
	rt_config c = config_of_test();

	c.no_attach = 1;
	JUDGE("no_attach", rt_init(&c), RT_OK);
	JUDGE("no_attach", some(rt_thread_self()), NOTHING);
	JUDGE("no_attach", some(rt_alloc(64)), NOTHING);
	JUDGE("no_attach", rt_fini(), RT_EPERM);
	JUDGE("no_attach", rt_read_memstats(&stats), RT_OK);
	JUDGE("no_attach", rt_thread_attach(0), RT_OK);
	JUDGE("attached", rt_fini(), RT_OK);
	finish(7);
}
