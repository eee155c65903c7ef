// Calls to the operating system.
#define _GNU_SOURCE 1

#include "runtime/os/oscall.h"

#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#if __has_include(<sys/single_threaded.h>) // glibc since 2.32
#include <sys/single_threaded.h>
#define SINGLE_THREADED __libc_single_threaded
#else
#define SINGLE_THREADED 0
#endif
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

// From linux/prctl.h, linux/mman.h and linux/fs.h, whose older versions lack
// them.
enum {
	SET_VMA = 0x53564d41,
	SET_VMA_ANON_NAME = 0,
	POPULATE_WRITE = 23,
	COLLAPSE = 25,
	LOCK_ON_FAULT = 1,
	NOWAIT = 8, // of pwritev2
};

enum { NS_PER_S = 1000 * 1000 * 1000 };

#ifdef RT_TEST // test/harness/fault.h
int fault_refused(enum oscall call);
long fault_page_size(void);
uint64_t fault_clock_ahead(void);
uint64_t fault_cpu_ahead(void);
#endif

// refused returns 0 if a call is to be made.  If a test wants the call to fail
// instead, refused sets errno to the error that the test wants, and returns it.
RT_INLINE int refused(enum oscall call)
{
#ifdef RT_TEST
	return fault_refused(call);
#else
	(void)call;
	return 0;
#endif
}

// system_page_size returns the physical page size, or what a test wants.
static long system_page_size(void)
{
#ifdef RT_TEST
	return fault_page_size();
#else
	return sysconf(_SC_PAGESIZE);
#endif
}

// result turns the usual 0 or -1 of a call into 0 or the errno, and restores
// the host's errno.
RT_INLINE int result(long r, int before)
{
	int error = r < 0 ? errno : 0;

	errno = before;
	return error;
}

// told restores the host's errno, and returns the error that a function of libc
// has returned.  Such a function may also change errno.
RT_INLINE int told(int error, int before)
{
	errno = before;
	return error;
}

// Functions of libc at which a cancelled thread may end are called between
// these two, since the thread may hold a lock of the library.
static int cancel_disable(void)
{
	int state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	return state;
}

static void cancel_restore(int state)
{
	pthread_setcancelstate(state, NULL);
}

// ---- memory ----

static void *map(size_t n, int protection, int flags)
{
	int before = errno;
	void *p = mmap(NULL, n, protection, MAP_PRIVATE | MAP_ANONYMOUS | flags,
		       -1, 0);

	errno = before;
	return p == MAP_FAILED ? NULL : p;
}

void *oscall_reserve(size_t n)
{
	if (refused(OSCALL_RESERVE))
		return NULL;
	return map(n, PROT_NONE, MAP_NORESERVE);
}

int oscall_commit(void *p, size_t n)
{
	int before = errno;
	int error = refused(OSCALL_COMMIT);

	return error ? error
		     : result(mprotect(p, n, PROT_READ | PROT_WRITE), before);
}

int oscall_uncommit(void *p, size_t n)
{
	int before = errno;
	int error = refused(OSCALL_UNCOMMIT);

	return error ? error : result(mprotect(p, n, PROT_NONE), before);
}

void *oscall_map(size_t n)
{
	if (refused(OSCALL_MAP))
		return NULL;
	return map(n, PROT_READ | PROT_WRITE, 0);
}

int oscall_unmap(void *p, size_t n)
{
	int before = errno;
	int error = refused(OSCALL_UNMAP);

	return error ? error : result(munmap(p, n), before);
}

int oscall_release(void *p, size_t n)
{
	int before = errno;
	int error = refused(OSCALL_RELEASE);

	return error ? error : result(madvise(p, n, MADV_DONTNEED), before);
}

int oscall_huge_pages(void *p, size_t n)
{
	int before = errno;
	int error = refused(OSCALL_ADVISE);

	return error ? error : result(madvise(p, n, MADV_HUGEPAGE), before);
}

int oscall_small_pages(void *p, size_t n)
{
	int before = errno;
	int error = refused(OSCALL_ADVISE);

	return error ? error : result(madvise(p, n, MADV_NOHUGEPAGE), before);
}

int oscall_collapse(void *p, size_t n)
{
	int before = errno;
	int error = refused(OSCALL_ADVISE);

	return error ? error : result(madvise(p, n, COLLAPSE), before);
}

int oscall_populate(void *p, size_t n)
{
	int before = errno;
	int error = refused(OSCALL_ADVISE);

	return error ? error : result(madvise(p, n, POPULATE_WRITE), before);
}

int oscall_dump(void *p, size_t n, bool on)
{
	int before = errno;
	int error = refused(OSCALL_ADVISE);

	if (error)
		return error;
	return result(madvise(p, n, on ? MADV_DODUMP : MADV_DONTDUMP), before);
}

// is_locked tells whether memory is locked.  A request to release memory
// returns EINVAL only if the memory is locked.
static bool is_locked(void *p, size_t n)
{
	return madvise(p, n, MADV_DONTNEED) != 0 && errno == EINVAL;
}

static enum oscall_locking ask_locking(size_t page)
{
	void *p = mmap(NULL, page, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	enum oscall_locking answer = OSCALL_LOCK_NONE;
	unsigned char resident = 1;

	if (p == MAP_FAILED) // EAGAIN: no more memory may be locked
		return errno == EAGAIN ? OSCALL_LOCK_AT_ONCE : answer;
	if (is_locked(p, page)) {
		mincore(p, page, &resident);
		answer =
		    resident & 1 ? OSCALL_LOCK_AT_ONCE : OSCALL_LOCK_ON_FAULT;
	}
	munmap(p, page);
	return answer;
}

enum oscall_locking oscall_locking(size_t page)
{
	int before = errno;
	enum oscall_locking answer = OSCALL_LOCK_NONE;

	if (!refused(OSCALL_LOCK))
		answer = ask_locking(page);
	errno = before;
	return answer;
}

// A mapping that grows keeps its attributes.  So one page is mapped, unlocked,
// and then grown to n bytes.
void *oscall_reserve_unlocked(size_t n, size_t page)
{
	int before = errno;
	void *p, *grown;

	if (refused(OSCALL_RESERVE))
		return NULL;
	p = map(page, PROT_NONE, MAP_NORESERVE);
	if (!p)
		return NULL;
	munlock(p, page);
	grown = mremap(p, page, n, MREMAP_MAYMOVE);
	if (grown == MAP_FAILED)
		munmap(p, page);
	errno = before;
	return grown == MAP_FAILED ? NULL : grown;
}

int oscall_lock(void *p, size_t n, bool on_fault)
{
	int before = errno;
	int error = refused(OSCALL_LOCK);

	if (error)
		return error;
	if (on_fault)
		return result(syscall(SYS_mlock2, p, n, (long)LOCK_ON_FAULT),
			      before);
	return result(mlock(p, n), before);
}

int oscall_unlock(void *p, size_t n)
{
	int before = errno;
	int error = refused(OSCALL_LOCK);

	return error ? error : result(munlock(p, n), before);
}

bool oscall_locked(void *p, size_t n)
{
	int before = errno;
	bool locked = !refused(OSCALL_LOCK) && is_locked(p, n);

	errno = before;
	return locked;
}

int oscall_set_name(void *p, size_t n, const char *name)
{
	static const char prefix[] = "rtheap: ";
	char full[80]; // the most the kernel takes, with the null byte
	size_t len = sizeof(prefix) - 1;
	int before = errno;
	int error = refused(OSCALL_NAME);

	if (error)
		return error;
	memcpy(full, prefix, len);
	while (*name && len < sizeof(full) - 1)
		full[len++] = *name++;
	full[len] = '\0';
	return result(prctl(SET_VMA, (long)SET_VMA_ANON_NAME, p, n, full),
		      before);
}

// ---- waiting ----

int oscall_futex_wait(const atomic_u32 *word, uint32_t expected,
		      uint64_t timeout_ns)
{
	struct timespec timeout = {
	    .tv_sec = (time_t)(timeout_ns / NS_PER_S),
	    .tv_nsec = (long)(timeout_ns % NS_PER_S),
	};
	int before = errno;
	int error = refused(OSCALL_FUTEX_WAIT);

	if (error)
		return told(error, before);
	return result(syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, expected,
			      timeout_ns == UINT64_MAX ? NULL : &timeout, NULL,
			      0),
		      before);
}

int oscall_futex_wake(const atomic_u32 *word, uint32_t n)
{
	int before = errno;
	int error = refused(OSCALL_FUTEX_WAKE);

	if (error)
		return told(error, before);
	// The kernel's count is signed.
	return result(syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE,
			      base_min(n, INT32_MAX), NULL, NULL, 0),
		      before);
}

int oscall_futex_wait_as(const atomic_u32 *word, uint32_t expected,
			 uint32_t bits)
{
	int before = errno;
	int error = refused(OSCALL_FUTEX_WAIT);

	if (error)
		return told(error, before);
	return result(syscall(SYS_futex, word, FUTEX_WAIT_BITSET_PRIVATE,
			      expected, NULL, NULL, bits),
		      before);
}

int oscall_futex_wake_as(const atomic_u32 *word, uint32_t bits)
{
	int before = errno;
	int error = refused(OSCALL_FUTEX_WAKE);

	if (error)
		return told(error, before);
	return result(syscall(SYS_futex, word, FUTEX_WAKE_BITSET_PRIVATE,
			      INT32_MAX, NULL, NULL, bits),
		      before);
}

void oscall_yield(void)
{
	if (!refused(OSCALL_YIELD))
		sched_yield();
}

// ---- clocks ----

// clock_ns returns a clock's time in ns, 0 if refused.  A time before the epoch
// counts as refused, so no caller meets a negative number.
static uint64_t clock_ns(clockid_t id)
{
	int before = errno;
	struct timespec now;

	if (refused(OSCALL_CLOCK) ||
	    result(clock_gettime(id, &now), before) != 0 || now.tv_sec < 0)
		return 0;
	return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

uint64_t oscall_monotonic(void)
{
	uint64_t now = clock_ns(CLOCK_MONOTONIC);

#ifdef RT_TEST
	if (now != 0)
		now += fault_clock_ahead();
#endif
	return now;
}

uint64_t oscall_realtime(void)
{
	return clock_ns(CLOCK_REALTIME);
}

uint64_t oscall_process_cpu(void)
{
	return clock_ns(CLOCK_PROCESS_CPUTIME_ID);
}

// The number of a thread's clock is part of the kernel's interface: the
// complement of its tid, then 4 for one thread and 2 for scheduled time.
uint64_t oscall_thread_cpu(uint32_t tid)
{
	uint64_t now = clock_ns((clockid_t)(~tid << 3 | 6));

#ifdef RT_TEST
	if (now != 0)
		now += fault_cpu_ahead();
#endif
	return now;
}

// ---- the process and its threads ----

uint32_t oscall_gettid(void)
{
	return (uint32_t)syscall(SYS_gettid);
}

// glibc's cpu_set_t ends at 1024 processors and the call fails on a kernel
// with more; 8192 is the most that Linux can be built for.
enum { MASK_WORDS = OSCALL_MASK_BYTES / sizeof(uint64_t) };

struct processors {
	uint64_t mask[MASK_WORDS];
	size_t bytes; // 0: not known
};

// The processors that oscall_note_nprocs saw, and those that it was given.  No
// thread of the library exists while they are written.
static struct processors seen, wanted;

void oscall_note_nprocs(const void *mask, size_t bytes)
{
	int before = errno;
	long n = -1;

	if (!refused(OSCALL_AFFINITY))
		n = syscall(SYS_sched_getaffinity, 0, sizeof seen.mask,
			    seen.mask);
	errno = before;
	seen.bytes = n > 0 ? (size_t)n : 0;
	wanted = (struct processors){.bytes = bytes};
	if (bytes != 0)
		memcpy(wanted.mask, mask, bytes);
}

// use_processors returns false if the system refuses them, or if there are none
// to use.
static bool use_processors(const struct processors *p)
{
	return p->bytes != 0 && !refused(OSCALL_AFFINITY) &&
	       syscall(SYS_sched_setaffinity, 0, p->bytes, p->mask) == 0;
}

static uint32_t count_processors(const uint64_t *mask)
{
	uint32_t n = 0;

	for (unsigned i = 0; i < MASK_WORDS; i++)
		n += (uint32_t)__builtin_popcountll(mask[i]);
	return n;
}

uint32_t oscall_noted_nprocs(void)
{
	uint64_t either[MASK_WORDS];

	for (unsigned i = 0; i < MASK_WORDS; i++)
		either[i] = seen.mask[i] | wanted.mask[i];
	return seen.bytes != 0 ? count_processors(either) : 0;
}

void oscall_thread_processors(void)
{
	int before = errno;

	if (!use_processors(&wanted))
		use_processors(&seen);
	errno = before;
}

void oscall_thread_ordinary(void)
{
	static const struct sched_param none = {.sched_priority = 0};
	int before = errno;

	if (!refused(OSCALL_AFFINITY))
		syscall(SYS_sched_setscheduler, 0, SCHED_OTHER, &none);
	errno = before;
}

uint32_t oscall_nprocs(void)
{
	uint64_t mask[MASK_WORDS] = {0};
	int before = errno;

	if (refused(OSCALL_AFFINITY))
		return 0;
	// If the system refuses, the mask stays empty.
	syscall(SYS_sched_getaffinity, 0, sizeof(mask), mask);
	errno = before;
	return count_processors(mask);
}

uint64_t oscall_address_limit(void)
{
	int before = errno;
	struct rlimit limit;

	if (refused(OSCALL_RLIMIT) ||
	    result(getrlimit(RLIMIT_AS, &limit), before) != 0 ||
	    limit.rlim_cur == RLIM_INFINITY)
		return UINT64_MAX;
	return limit.rlim_cur;
}

// read_number reads a file that holds a decimal number and a line end.  Returns
// 0 if it cannot.
static uint64_t read_number(const char *name)
{
	int file = open(name, O_RDONLY | O_CLOEXEC);
	char text[32];
	ssize_t n = 0;
	uint64_t value = 0;

	if (file < 0)
		return 0;
	n = read(file, text, sizeof text);
	close(file);
	for (ssize_t i = 0; i < n && text[i] >= '0' && text[i] <= '9'; i++)
		value = value * 10 + (uint64_t)(text[i] - '0');
	return value;
}

uint64_t oscall_max_mappings(void)
{
	int before = errno;
	uint64_t n;
	int state;

	if (refused(OSCALL_FILE))
		return 0;
	state = cancel_disable();
	n = read_number("/proc/sys/vm/max_map_count");
	cancel_restore(state);
	errno = before;
	return n;
}

size_t oscall_read_file(const char *name, char *text, size_t n)
{
	int before = errno;
	int state, file;
	ssize_t got = 0;

	if (refused(OSCALL_FILE))
		return 0;
	state = cancel_disable();
	file = open(name, O_RDONLY | O_CLOEXEC);
	if (file >= 0) {
		got = read(file, text, n);
		close(file);
	}
	cancel_restore(state);
	errno = before;
	return got > 0 ? (size_t)got : 0;
}

size_t oscall_page_size(void)
{
	long n;

	if (refused(OSCALL_PAGESIZE))
		return 0;
	n = system_page_size();
	return n > 0 ? (size_t)n : 0;
}

// mincore writes a byte for each page of a range.  It is asked for a part of
// the range at a time, so these bytes fit on any stack.
int oscall_mapped(const void *p, size_t n)
{
	enum { PART = 64 << 10, PAGE_MIN = 4 << 10 };
	unsigned char resident[PART / PAGE_MIN];
	int before = errno;

	for (size_t done = 0; done < n; done += PART) {
		size_t part = base_min(n - done, PART);
		int error = refused(OSCALL_MAPPED);

		if (error) // ENOMEM would be an answer
			return told(error == ENOMEM ? EAGAIN : error, before);
		error =
		    result(mincore((char *)(uintptr_t)p + done, part, resident),
			   before);
		if (error != 0)
			return error;
	}
	return 0;
}

// The kernel copies the set before it looks at the first argument, which is
// invalid.  So nothing changes, and EFAULT says that it could not read.
bool oscall_readable(const void *p)
{
	enum { NO_SUCH_HOW = -1, SET_BYTES = 8 };
	int before = errno;

	return result(syscall(SYS_rt_sigprocmask, (long)NO_SUCH_HOW, p, NULL,
			      (long)SET_BYTES),
		      before) != EFAULT;
}

// The part of a line of /proc/self/maps that was read so far: "lo-hi rwxp ...".
struct maps_line {
	uintptr_t bound[2];
	unsigned part; // 0, 1: a bound; 2: the flag r; 3: the rest
	bool readable;
};

// maps_take takes the next character of a line.
static void maps_take(struct maps_line *l, char c)
{
	if (l->part == 2) {
		l->readable = c == 'r';
		l->part = 3;
	} else if (l->part < 2) {
		if (c == '-' || c == ' ')
			l->part++;
		else
			l->bound[l->part] =
			    l->bound[l->part] * 16 +
			    (uintptr_t)(c <= '9' ? c - '0' : c - 'a' + 10);
	}
}

// maps_find reads lines until at is within the bounds of one.  Returns the end
// of that mapping, or 0 if it cannot be read or there is none.
static uintptr_t maps_find(int file, uintptr_t at)
{
	struct maps_line l = {0};
	char text[1024];
	ssize_t n;

	while ((n = read(file, text, sizeof text)) > 0)
		for (ssize_t i = 0; i < n; i++) {
			if (text[i] != '\n') {
				maps_take(&l, text[i]);
				continue;
			}
			if (at >= l.bound[0] && at < l.bound[1])
				return l.readable ? l.bound[1] : 0;
			l = (struct maps_line){0};
		}
	return 0;
}

uintptr_t oscall_mapping_end(uintptr_t at)
{
	int before = errno;
	uintptr_t end = 0;
	int state, file;

	if (refused(OSCALL_FILE))
		return 0;
	state = cancel_disable();
	file = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	if (file >= 0) {
		end = maps_find(file, at);
		close(file);
	}
	cancel_restore(state);
	errno = before;
	return end;
}

int oscall_peek(uint32_t tid, void *to, uintptr_t from, size_t n)
{
	const struct iovec local = {to, n}, remote = {(void *)from, n};
	int error = refused(OSCALL_PEEK);
	int before = errno;
	long got;

	if (error)
		return error;
	got = syscall(SYS_process_vm_readv, (long)tid, &local, 1L, &remote, 1L,
		      0L);
	return got >= 0 && (size_t)got < n ? EFAULT : result(got, before);
}

// take_first takes the first object that the dynamic linker names: the program.
static int take_first(struct dl_phdr_info *info, size_t size, void *taken)
{
	(void)size;
	*(struct dl_phdr_info *)taken = *info;
	return 1;
}

void oscall_program(uintptr_t *bias, uintptr_t *phdr, uint32_t *phnum)
{
	struct dl_phdr_info info;

	dl_iterate_phdr(take_first, &info);
	*bias = info.dlpi_addr;
	*phdr = (uintptr_t)info.dlpi_phdr;
	*phnum = info.dlpi_phnum;
}

// The part of a stack that holds frames.
struct frames {
	uintptr_t newest; // one of them
	uintptr_t hi;	  // above all of them
};

// end_below lowers the end of the frames to p if p is in the stack above the
// newest frame.  The C library keeps something at p, so no frame is there.
static void end_below(struct frames *f, const void *p)
{
	if ((uintptr_t)p > f->newest && (uintptr_t)p < f->hi)
		f->hi = (uintptr_t)p;
}

static int end_below_module(struct dl_phdr_info *info, size_t size, void *f)
{
	(void)size;
	end_below(f, info->dlpi_tls_data);
	return 0;
}

// glibc protects the list of modules by a lock.  At a fork another thread may
// hold it.  The child does not have that thread, so it must not ask for the
// list, and uses the number of bytes that was found last.  There is no check
// function: any values are right together.
static struct {
	atomic_u32 alone; // 1 if at the newest fork there was one thread only
	bool lost;
	atomic_u64 bytes; // of thread-local variables below a thread's block
} modules;

// The C library tells whether the process has had one thread only.
void oscall_fork_prepare(void)
{
	atomic_u32_store_relaxed(&modules.alone, SINGLE_THREADED);
}

void oscall_fork_child(void)
{
#ifdef __GLIBC__ // other C libraries prepare their locks for a fork
	if (!atomic_u32_load_relaxed(&modules.alone))
		modules.lost = true;
#endif
}

// end_of_frames returns the end of the part of the stack [lo, hi) that holds
// frames.  glibc puts a thread's own block and the thread-local variables of
// all modules above the first frame, in the same mapping.  The distances are
// the same on each thread except the main one.  Returns hi if the thread runs
// on another stack.
static uintptr_t end_of_frames(uintptr_t lo, uintptr_t hi)
{
	struct frames f = {(uintptr_t)__builtin_frame_address(0), hi};
	uintptr_t self;

	if (f.newest - lo >= hi - lo)
		return hi;
	end_below(&f, (const void *)pthread_self());
	self = f.hi;
	if (self == hi) // the main thread
		return hi;
	if (modules.lost)
		return self - atomic_u64_load_relaxed(&modules.bytes);
	dl_iterate_phdr(end_below_module, &f);
	atomic_u64_store_relaxed(&modules.bytes, self - f.hi);
	return f.hi;
}

static int stack_attributes(void **base, size_t *size)
{
	pthread_attr_t attr;
	int error = pthread_getattr_np(pthread_self(), &attr);

	if (error)
		return error;
	error = pthread_attr_getstack(&attr, base, size);
	pthread_attr_destroy(&attr);
	return error;
}

int oscall_stack_bounds(uintptr_t *lo, uintptr_t *hi)
{
	void *base;
	size_t size;
	int before = errno;
	int error = refused(OSCALL_STACKBOUNDS);
	int state;

	if (error)
		return error;
	state = cancel_disable(); // pthread_getattr_np may read a file
	error = told(stack_attributes(&base, &size), before);
	cancel_restore(state);
	if (error)
		return error;
	*lo = (uintptr_t)base;
	*hi = end_of_frames(*lo, (uintptr_t)base + size);
	return 0;
}

// The kernel puts 16 random bytes above argc and argv, before the process
// begins.
uintptr_t oscall_main_stack_end(void)
{
	return (uintptr_t)getauxval(AT_RANDOM);
}

bool oscall_main_thread(void)
{
	return oscall_gettid() == (uint32_t)getpid();
}

static_assert(sizeof(pthread_key_t) == sizeof(unsigned), "a key is unsigned");

int oscall_tls_key(unsigned *key, void (*destructor)(void *))
{
	int before = errno;
	int error = refused(OSCALL_TLSKEY);

	return error ? error
		     : told(pthread_key_create(key, destructor), before);
}

int oscall_tls_set(unsigned key, const void *value)
{
	int before = errno;
	int error = refused(OSCALL_TLSKEY);

	return error ? error : told(pthread_setspecific(key, value), before);
}

static_assert(sizeof(pthread_t) <= sizeof(uint64_t), "a thread fits");

enum { THREAD_STACK = 256 << 10 };

// thread_create makes a thread with a small stack, or a stack of the default
// size if the program's thread-local variables leave no room in a small one.
static int thread_create(pthread_t *thread, void *(*fn)(void *), void *arg)
{
	pthread_attr_t attr;
	int error = pthread_attr_init(&attr);

	if (error)
		return error;
	pthread_attr_setstacksize(&attr, THREAD_STACK);
	error = pthread_create(thread, &attr, fn, arg);
	pthread_attr_destroy(&attr);
	return error == EINVAL ? pthread_create(thread, NULL, fn, arg) : error;
}

int oscall_thread_start(uint64_t *thread, void *(*fn)(void *), void *arg)
{
	// Faults of the thread itself.  If these were blocked, a fault would
	// end the process without a call of the host's handler.
	static const int faults_of_thread[] = {SIGSEGV, SIGBUS,	 SIGFPE,
					       SIGILL,	SIGTRAP, SIGSYS};
	sigset_t blocked, old;
	pthread_t made;
	int before = errno;
	int error = refused(OSCALL_THREAD);

	if (error)
		return error;
	sigfillset(&blocked);
	for (size_t i = 0; i < RT_ARRAY_LEN(faults_of_thread); i++)
		sigdelset(&blocked, faults_of_thread[i]);
	pthread_sigmask(SIG_SETMASK, &blocked, &old);
	error = told(thread_create(&made, fn, arg), before);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (error == 0)
		*thread = (uint64_t)made;
	return error;
}

void oscall_thread_join(uint64_t thread)
{
	int state = cancel_disable();

	pthread_join((pthread_t)thread, NULL);
	cancel_restore(state);
}

void oscall_thread_name(const char *name)
{
	int before = errno;

	if (!refused(OSCALL_NAME))
		result(prctl(PR_SET_NAME, name, 0, 0, 0), before);
}

int oscall_at_fork(void (*prepare)(void), void (*parent)(void),
		   void (*child)(void))
{
	int before = errno;
	int error = refused(OSCALL_ATFORK);

	return error ? error
		     : told(pthread_atfork(prepare, parent, child), before);
}

const char *oscall_getenv(const char *name)
{
	if (refused(OSCALL_GETENV))
		return NULL;
	return secure_getenv(name);
}

// A write to a pipe or socket without a reader fails.  It also sends the thread
// a SIGPIPE, which by default ends the process.
struct sigpipe {
	sigset_t old;
	bool pending; // there was one before
};

static bool sigpipe_pending(void)
{
	sigset_t set;

	return sigpending(&set) == 0 && sigismember(&set, SIGPIPE) == 1;
}

// sigpipe_block blocks SIGPIPE in this thread.  sigpipe_restore removes a
// SIGPIPE that a write has sent since.  A SIGPIPE that was pending before stays
// pending, because it is the host's.
static void sigpipe_block(struct sigpipe *s)
{
	sigset_t set;

	s->pending = sigpipe_pending();
	sigemptyset(&set);
	sigaddset(&set, SIGPIPE);
	pthread_sigmask(SIG_BLOCK, &set, &s->old);
}

static void sigpipe_restore(const struct sigpipe *s)
{
	const struct timespec now = {0, 0};
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGPIPE);
	if (!s->pending && sigpipe_pending())
		sigtimedwait(&set, NULL, &now);
	pthread_sigmask(SIG_SETMASK, &s->old, NULL);
}

// write_ready writes if fd can be written.  A pipe then has room for at least
// PIPE_BUF bytes, unless another thread or process fills it first.
static bool write_ready(int fd, const char *text, size_t n)
{
	struct pollfd ready = {.fd = fd, .events = POLLOUT};

	return poll(&ready, 1, 0) == 1 && ready.revents == POLLOUT &&
	       write(fd, text, n) == (ssize_t)n;
}

// write_pipe makes a write that never waits, whatever the flags of the
// descriptor are.  It does not set O_NONBLOCK, because other processes may
// share the descriptor.  Linux before 6.4 has no such write for pipes.
static bool write_pipe(int fd, const char *text, size_t n)
{
	struct iovec all = {(void *)(uintptr_t)text, n};
	long done = syscall(SYS_pwritev2, fd, &all, 1, -1L, -1L, NOWAIT);

	if (done >= 0 || errno == EAGAIN || errno == EPIPE)
		return done == (long)n;
	return write_ready(fd, text, n);
}

static bool write_at_once(int fd, const char *text, size_t n)
{
	struct stat about;

	if (fstat(fd, &about) != 0)
		return false;
	if (S_ISFIFO(about.st_mode))
		return write_pipe(fd, text, n);
	if (S_ISSOCK(about.st_mode))
		return send(fd, text, n, MSG_DONTWAIT | MSG_NOSIGNAL) ==
		       (ssize_t)n;
	return write_ready(fd, text, n);
}

bool oscall_write_now(int fd, const char *text, size_t n)
{
	int before = errno, state;
	struct sigpipe pipe;
	bool written;

	if (refused(OSCALL_WRITE))
		return false;
	state = cancel_disable();
	sigpipe_block(&pipe);
	written = write_at_once(fd, text, n);
	sigpipe_restore(&pipe);
	cancel_restore(state);
	errno = before;
	return written;
}

// write_all tries the rest again if a write is cut short or interrupted.
static void write_all(int fd, const char *text, size_t n)
{
	while (n > 0) {
		ssize_t done = write(fd, text, n);

		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return;
		text += done;
		n -= (size_t)done;
	}
}

// Text that the system refuses is lost, because there is no way to report it.
void oscall_write(int fd, const char *text, size_t n)
{
	int before = errno, state;
	struct sigpipe pipe;

	if (refused(OSCALL_WRITE))
		return;
	state = cancel_disable();
	sigpipe_block(&pipe);
	write_all(fd, text, n);
	sigpipe_restore(&pipe);
	cancel_restore(state);
	errno = before;
}
