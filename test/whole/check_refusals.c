// What oscall.c answers when the system itself refuses.  This program defines
// functions of the C library again, and rtheap calls these.  Each refuses when
// told to; otherwise it calls the C library's function.
#define _GNU_SOURCE 1

#include "test/harness/suite.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "runtime/os/oscall.h"
#include "test/harness/thread.h"

#define NEXT(fn) ((__typeof__(&fn))dlsym(RTLD_NEXT, #fn))

// The function that refuses, how many of its calls, and with which errno.
static const char *refuser = "";
static unsigned refusals;
static int why;

static void refuse(const char *name, unsigned ncalls, int error)
{
	refuser = name;
	refusals = ncalls;
	why = error;
}

static bool refuses(const char *name)
{
	if (refusals == 0 || strcmp(name, refuser) != 0)
		return false;
	refusals--;
	errno = why;
	return true;
}

// ---- the functions ----

static time_t odd_time; // the time that a clock tells if it refuses with 0

int clock_gettime(clockid_t id, struct timespec *t)
{
	if (!refuses("clock_gettime"))
		return NEXT(clock_gettime)(id, t);
	t->tv_sec = odd_time;
	t->tv_nsec = 0;
	return why ? -1 : 0;
}

int getrlimit(__rlimit_resource_t resource, struct rlimit *limit)
{
	if (refuses("getrlimit"))
		return -1;
	return NEXT(getrlimit)(resource, limit);
}

long sysconf(int name)
{
	return refuses("sysconf") ? -1 : NEXT(sysconf)(name);
}

static int instead = -1; // what is opened instead of a file; -1: nothing

int open(const char *name, int flags, ...)
{
	va_list args;
	mode_t mode;

	if (refuses("open"))
		return why ? -1 : instead;
	va_start(args, flags);
	mode = flags & O_CREAT ? va_arg(args, mode_t) : 0;
	va_end(args);
	return NEXT(open)(name, flags, mode);
}

int mincore(void *p, size_t n, unsigned char *resident)
{
	return refuses("mincore") ? -1 : NEXT(mincore)(p, n, resident);
}

int pthread_getattr_np(pthread_t thread, pthread_attr_t *attr)
{
	if (refuses("pthread_getattr_np"))
		return why;
	return NEXT(pthread_getattr_np)(thread, attr);
}

static uintptr_t early_end; // of a stack whose size is told wrong

int pthread_attr_getstack(const pthread_attr_t *attr, void **base, size_t *size)
{
	bool is = refuses("pthread_attr_getstack");

	if (is && why)
		return why;
	if (NEXT(pthread_attr_getstack)(attr, base, size) != 0)
		return EINVAL;
	if (is)
		*size = early_end - (uintptr_t)*base;
	return 0;
}

int pthread_attr_init(pthread_attr_t *attr)
{
	return refuses("pthread_attr_init") ? why
					    : NEXT(pthread_attr_init)(attr);
}

ssize_t write(int fd, const void *text, size_t n)
{
	if (!refuses("write"))
		return NEXT(write)(fd, text, n);
	return why ? -1 : 0;
}

// ---- what is said of it ----

TEST(a_clock_that_is_refused_reads_0)
{
	refuse("clock_gettime", 2, EPERM);
	ck_assert_uint_eq(oscall_monotonic(), 0);
	ck_assert_uint_eq(oscall_realtime(), 0);
	ck_assert_uint_ne(oscall_monotonic(), 0);
}

// A negative number of nanoseconds would be read as a time far in the future.
TEST(a_time_before_1970_reads_0)
{
	odd_time = -1;
	refuse("clock_gettime", 1, 0);
	ck_assert_uint_eq(oscall_realtime(), 0);
	odd_time = 1;
	refuse("clock_gettime", 1, 0);
	ck_assert_uint_eq(oscall_realtime(), 1000000000);
}

TEST(an_address_limit_that_is_not_told_is_none)
{
	refuse("getrlimit", 1, EPERM);
	ck_assert_uint_eq(oscall_address_limit(), UINT64_MAX);
	ck_assert_uint_eq(refusals, 0);
}

TEST(a_page_size_that_is_not_told_is_0)
{
	refuse("sysconf", 1, EINVAL);
	ck_assert_uint_eq(oscall_page_size(), 0);
	ck_assert_uint_ge(oscall_page_size(), 4096);
}

// max_mappings_in returns what oscall_max_mappings reads from a file that holds
// text.
static uint64_t max_mappings_in(const char *text)
{
	int fds[2];

	ck_assert_int_eq(pipe(fds), 0);
	ck_assert_int_eq(write(fds[1], text, strlen(text)), strlen(text));
	close(fds[1]);
	instead = fds[0]; // the reader closes it
	refuse("open", 1, 0);
	return oscall_max_mappings();
}

TEST(a_number_ends_with_its_digits)
{
	ck_assert_uint_eq(max_mappings_in("65530\n"), 65530);
	ck_assert_uint_eq(max_mappings_in("65530"), 65530);
	ck_assert_uint_eq(max_mappings_in("12 monkeys"), 12);
	ck_assert_uint_eq(max_mappings_in("12x"), 12);
	ck_assert_uint_eq(max_mappings_in("x12"), 0);
	ck_assert_uint_eq(max_mappings_in(""), 0);
}

TEST(a_number_that_is_not_told_is_0)
{
	int fds[2];

	errno = 77;
	refuse("open", 1, EACCES);
	ck_assert_uint_eq(oscall_max_mappings(), 0);
	ck_assert_int_eq(pipe(fds), 0);
	instead = fds[1]; // it cannot be read
	refuse("open", 1, 0);
	ck_assert_uint_eq(oscall_max_mappings(), 0);
	ck_assert_int_eq(errno, 77);
	ck_assert_uint_gt(oscall_max_mappings(), 0);
}

// Only ENOMEM says that memory is not mapped.  Any other error leaves that
// open.
TEST(a_question_for_holes_that_is_refused_finds_none)
{
	size_t page = oscall_page_size();
	char *p = oscall_map(page);

	ck_assert_ptr_nonnull(p);
	ck_assert_int_eq(oscall_unmap(p, page), 0);
	ck_assert_int_eq(oscall_mapped(p, page), ENOMEM);
	refuse("mincore", 1, EAGAIN);
	ck_assert_int_eq(oscall_mapped(p, page), EAGAIN);
}

TEST(stack_bounds_that_are_not_told_stay_as_they_were)
{
	static const char *const names[] = {"pthread_getattr_np",
					    "pthread_attr_getstack"};

	for (unsigned i = 0; i < RT_ARRAY_LEN(names); i++) {
		uintptr_t lo = 1, hi = 2;

		refuse(names[i], 1, ENOMEM);
		ck_assert_int_eq(oscall_stack_bounds(&lo, &hi), ENOMEM);
		ck_assert_uint_eq(lo, 1);
		ck_assert_uint_eq(hi, 2);
		ck_assert_int_eq(oscall_stack_bounds(&lo, &hi), 0);
		ck_assert_uint_gt(hi, lo);
	}
}

// bounds_told makes the system say that the stack of the calling thread ends
// with this function's frame.  It returns the end that oscall_stack_bounds then
// finds.
static void *bounds_told(void *arg)
{
	uintptr_t lo = 0, hi = 0;

	(void)arg;
	early_end = (uintptr_t)__builtin_frame_address(0);
	refuse("pthread_attr_getstack", 1, 0);
	if (oscall_stack_bounds(&lo, &hi) != 0 || lo >= hi)
		return NULL;
	return (void *)hi;
}

// The C library keeps data of each thread.  The thread's frames end below that
// data only if the data is inside the stack.
TEST(a_stack_ends_below_what_the_library_keeps_elsewhere)
{
	void *end = run_thread(bounds_told, NULL);

	ck_assert_uint_eq((uintptr_t)end, early_end);
}

static void *do_nothing(void *arg)
{
	return arg;
}

TEST(a_thread_without_attributes_is_not_made)
{
	uint64_t thread = 77;

	refuse("pthread_attr_init", 1, ENOMEM);
	ck_assert_int_eq(oscall_thread_start(&thread, do_nothing, NULL),
			 ENOMEM);
	ck_assert_uint_eq(thread, 77);
	ck_assert_int_eq(oscall_thread_start(&thread, do_nothing, NULL), 0);
	oscall_thread_join(thread);
}

// written returns what arrives of "text" when write refuses n times with error.
static const char *written(unsigned n, int error)
{
	static char got[8];
	int fds[2];

	ck_assert_int_eq(pipe(fds), 0);
	refuse("write", n, error);
	oscall_write(fds[1], "text", 4);
	close(fds[1]);
	memset(got, 0, sizeof got);
	ck_assert_int_ge(read(fds[0], got, sizeof got - 1), 0);
	close(fds[0]);
	return got;
}

TEST(a_write_goes_on_after_a_signal_and_ends_where_it_is_refused)
{
	ck_assert_str_eq(written(3, EINTR), "text");
	ck_assert_str_eq(written(1, EIO), "");
	ck_assert_str_eq(written(1, 0), "");
	ck_assert_str_eq(written(0, 0), "text");
}
