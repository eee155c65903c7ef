// A heap in a process that locks its memory (mlockall), as audio and real-time
// hosts do, and may lock only a little.  Usable memory is locked and counted,
// address space is not, and nothing is prepared ahead.  Most tests are left out
// of builds with a sanitizer, whose shadow would be locked.
#define _GNU_SOURCE 1

#include <errno.h>
#include <linux/capability.h>
#include <rt/fork.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "runtime/pages/arena.h"
#include "runtime/os/oscall.h"
#include "runtime/spans/mheap.h"
#include "test/harness/fault.h"
#include "test/harness/heap.h"
#include "test/harness/suite.h"
#include "test/harness/warned.h"
#include "test/harness/process.h"

enum { MIB = 1 << 20, LITTLE = 8 * MIB };

// ---- locking ----

// lock_memory makes the process lock what it maps from now on.  It returns
// false if the system refuses that.
static bool lock_memory(int flags)
{
	return mlockall(flags) == 0;
}

// drop_capability takes the right to lock more than the limit from the process.
// The process keeps all other rights of root, because it writes what gcov
// counts.
static bool drop_capability(void)
{
	struct __user_cap_header_struct header = {
	    .version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];

	if (syscall(SYS_capget, &header, data) != 0)
		return false;
	data[0].effective &= ~(1U << CAP_IPC_LOCK);
	return syscall(SYS_capset, &header, data) == 0;
}

// lock_little locks memory without the right to lock more than LITTLE.
static bool lock_little(int flags)
{
	const struct rlimit limit = {LITTLE, LITTLE};

	return setrlimit(RLIMIT_MEMLOCK, &limit) == 0 && drop_capability() &&
	       lock_memory(flags);
}

// may_lock tells whether so many bytes may be locked.  It maps them without
// access, which takes no memory.
static bool may_lock(size_t bytes)
{
	void *p =
	    mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return p != MAP_FAILED && munmap(p, bytes) == 0;
}

static void skip(const char *test)
{
	suite_skipped(test, "mlockall is refused", NULL);
}

// locked returns how many bytes the process has locked.
static uint64_t locked(void)
{
	FILE *f = fopen("/proc/self/status", "r");
	char line[256];
	unsigned long kib = 0;

	if (!f)
		return UINT64_MAX;
	while (fgets(line, sizeof line, f))
		if (sscanf(line, "VmLck: %lu", &kib) == 1)
			break;
	fclose(f);
	return (uint64_t)kib << 10;
}

// ---- little may be locked ----

enum { PIECE = 64 << 10, MOST = LITTLE / PIECE };

static void *kept[MOST];

// fill keeps objects until there is no memory; it returns how many.
static unsigned fill(void)
{
	unsigned n = 0;

	while (n < MOST && (kept[n] = rt_alloc_noscan_uninit(PIECE)) != NULL)
		n++;
	return n;
}

GROUP(locked, .timeout = 120);

// The defaults reserve 1 TiB.  The heap uses half of what may be locked, a
// chunk of 4 MiB, returns NULL at the end of it, and then uses free memory
// again.
TEST(a_heap_lives_within_what_may_be_locked, .unless = SUITE_SANITIZED)
{
	rt_config c = warned_config();
	uint64_t before;
	unsigned n;

	c.sweep = 0; // a thread's stack would stay locked
	if (!lock_little(MCL_FUTURE)) {
		skip(__func__);
		return;
	}
	before = locked();
	ck_assert_int_eq(rt_init(&c), RT_OK);
	ck_assert_uint_lt(locked(), before + LITTLE / 2);
	ck_assert_int_eq(rt_roots_add(kept, kept + MOST, 0), RT_OK);
	n = fill();
	ck_assert_uint_ge(n, MOST / 2 - 4);
	ck_assert_uint_lt(n, MOST);
	ck_assert_uint_ge(locked(), (uint64_t)n * PIECE);
	memset(kept, 0, sizeof kept);
	ck_assert_uint_ge(fill(), n - 4);
	heap_live();
	memset(kept, 0, sizeof kept);
	ck_assert_int_eq(rt_free_os_memory(), RT_OK);
	heap_live();
	ck_assert_int_eq(rt_fini(), RT_OK);
	ck_assert_uint_eq(locked(), before);
	ck_assert_uint_eq(warnings, 0);
}

// The heap does not grow before there is need, because growth would take locked
// memory.
TEST(locked_memory_is_not_taken_early, .unless = SUITE_SANITIZED)
{
	rt_config c = warned_config();
	uint64_t before;

	c.gc_threads = 0;
	if (!lock_little(MCL_FUTURE)) {
		skip(__func__);
		return;
	}
	ck_assert_int_eq(rt_init(&c), RT_OK);
	before = locked();
	while (mheap_extend(NULL, 1))
		;
	ck_assert_uint_eq(locked(), before);
	ck_assert_uint_gt(fill(), 0);
	heap_live();
	ck_assert_int_eq(rt_fini(), RT_OK);
}

// Any lock after the first may be refused.  rt_init then returns RT_ENOTSUP, or
// the heap works once the system locks memory again, and nothing stays locked
// after it.
TEST(a_lock_may_be_refused_at_any_time, .unless = SUITE_SANITIZED)
{
	rt_config c = warned_config();

	if (!lock_little(MCL_FUTURE)) {
		skip(__func__);
		return;
	}
	for (uint64_t nth = 2;; nth++) {
		uint64_t before = locked();
		uint64_t failed;
		int error;

		fault_fail(OSCALL_LOCK, nth, 1, EAGAIN);
		error = rt_init(&c);
		if (error == RT_OK) {
			rt_alloc(100);
			rt_alloc(2 * MIB);
		}
		failed = fault_failed(OSCALL_LOCK);
		fault_fail(OSCALL_LOCK, 1, 0, 0);
		if (error == RT_OK) {
			ck_assert_ptr_nonnull(rt_alloc(100));
			ck_assert_ptr_nonnull(rt_alloc(2 * MIB));
			heap_live();
			ck_assert_int_eq(rt_fini(), RT_OK);
		} else {
			ck_assert_int_eq(error, RT_ENOTSUP);
		}
		ck_assert_uint_eq(locked(), before);
		if (!failed)
			break;
		ck_assert_uint_lt(nth, 1000);
	}
}

TEST(what_may_not_be_locked_is_told, .unless = SUITE_SANITIZED)
{
	const struct rlimit none = {0, 0};
	rt_config c = warned_config();

	if (!lock_little(MCL_FUTURE)) {
		skip(__func__);
		return;
	}
	ck_assert_int_eq(setrlimit(RLIMIT_MEMLOCK, &none), 0);
	ck_assert_int_eq(rt_init(&c), RT_ENOTSUP);
	ck_assert_uint_eq(warnings, 1);
	ck_assert_ptr_nonnull(strstr(warning, "RLIMIT_MEMLOCK"));
}

// ---- ahead ----

enum { GROWN = 272 * MIB, RANGE = 512 * MIB };

// From 256 MiB on, growth would prepare 4 MiB more than it needs.
static void grow(void)
{
	uint64_t before = locked();

	while (arena_used() < GROWN) {
		ck_assert_ptr_nonnull(rt_alloc_noscan_uninit(MIB - 4096));
		ck_assert_uint_eq(arena_prepared(), arena_used());
	}
	ck_assert_uint_lt(locked(), before + GROWN + GROWN / 8);
}

TEST(nothing_is_prepared_ahead_that_would_be_locked, .n = 2,
     .unless = SUITE_SANITIZED)
{
	rt_config c = warned_config();
	bool let;

	c.max_heap = RANGE;
	c.gc_percent = -1;
	c.populate = 0;
	let = _i != 0 || lock_memory(MCL_FUTURE | MCL_ONFAULT);
	ck_assert_int_eq(rt_init(&c), RT_OK);
	if (_i != 0) // locked after rt_init
		let = lock_memory(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT);
	if (let && may_lock(RANGE))
		grow();
	else
		skip(__func__);
	ck_assert_int_eq(rt_fini(), RT_OK);
}

// ---- on faults, and in a child ----

static bool resident(const void *p)
{
	size_t page = oscall_page_size();
	unsigned char answer = 0;

	ck_assert_int_eq(
	    mincore((void *)base_align_down((uintptr_t)p, page), page, &answer),
	    0);
	return answer & 1;
}

TEST(memory_comes_in_as_the_host_has_asked, .n = 2, .unless = SUITE_SANITIZED)
{
	int flags = _i == 0 ? MCL_FUTURE : MCL_FUTURE | MCL_ONFAULT;
	rt_config c = warned_config();
	uint64_t before;
	char *p;

	c.populate = 0;
	if (!lock_little(flags)) {
		skip(__func__);
		return;
	}
	before = locked();
	ck_assert_int_eq(rt_init(&c), RT_OK);
	p = rt_alloc_noscan_uninit(2 * MIB);
	ck_assert_ptr_nonnull(p);
	ck_assert_uint_ge(locked(), before + 4 * MIB);
	ck_assert_int_eq(resident(p + MIB), _i == 0);
	ck_assert_int_eq(rt_fini(), RT_OK);
}

// Without address space no memory can be reserved.  So oscall_locking cannot
// tell whether new memory would be locked, and returns OSCALL_LOCK_NONE.
TEST(address_space_may_be_refused, .unless = SUITE_SANITIZED)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	enum oscall_locking answer;
	struct rlimit before, none;

	ck_assert_ptr_null(oscall_reserve_unlocked((size_t)1 << 60, page));
	fault_fail(OSCALL_RESERVE, 1, 1, ENOMEM);
	ck_assert_ptr_null(oscall_reserve_unlocked(page, page));
	fault_fail(OSCALL_RESERVE, 1, 0, 0);
	ck_assert_int_eq(getrlimit(RLIMIT_AS, &before), 0);
	none = (struct rlimit){0, before.rlim_max};
	ck_assert_int_eq(setrlimit(RLIMIT_AS, &none), 0);
	answer = oscall_locking(page);
	ck_assert_int_eq(setrlimit(RLIMIT_AS, &before), 0);
	ck_assert_int_eq(answer, OSCALL_LOCK_NONE);
}

// The child of a fork inherits no locks.
TEST(a_child_locks_nothing, .unless = SUITE_SANITIZED)
{
	rt_config c = warned_config();

	if (!lock_little(MCL_FUTURE)) {
		skip(__func__);
		return;
	}
	ck_assert_int_eq(rt_init(&c), RT_OK);
	if (process_forked())
		process_end(rt_alloc_noscan_uninit(2 * LITTLE) &&
			    locked() == 0);
	ck_assert_int_eq(rt_fini(), RT_OK);
}
