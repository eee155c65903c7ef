// oscall.h - the table of calls to the operating system.
//
// Every call that the library makes to the system stands here and nowhere
// else, so that a test can make the Nth call of a kind fail
// (oscall_fail) and see how often each kind was made (oscall_count).
// The calls keep no state, count no statistic and take no lock; a call that
// may fail returns 0 or the errno, or NULL.  None changes errno, which is the
// host's: it may look at it after the region in which it read a file.  (A call
// that a test refuses sets it.)  None is a cancellation point.
//
// The library survives the refusal of every call but one: a sleeper whose
// wake is refused sleeps on.  No system refuses to wake the sleepers of a word
// that exists, so nobody looks at what oscall_futex_wake returns.
#ifndef RUNTIME_OS_OSCALL_H
#define RUNTIME_OS_OSCALL_H

#include "runtime/base/atomic.h"

enum oscall {
	OSCALL_RESERVE,	   // mmap PROT_NONE
	OSCALL_COMMIT,	   // mprotect to read and write
	OSCALL_UNCOMMIT,   // mprotect to none
	OSCALL_MAP,	   // mmap readable and writable
	OSCALL_UNMAP,	   // munmap
	OSCALL_RELEASE,	   // madvise DONTNEED: contents gone, reads give zero
	OSCALL_ADVISE,	   // madvise of other kinds; failure has no effect
	OSCALL_LOCK,	   // mlock, munlock, and whether memory is locked
	OSCALL_NAME,	   // prctl PR_SET_VMA_ANON_NAME; failure has no effect
	OSCALL_FUTEX_WAIT, // may return early for any reason
	OSCALL_FUTEX_WAKE,
	OSCALL_CLOCK,	    // clock_gettime
	OSCALL_AFFINITY,    // sched_getaffinity
	OSCALL_RLIMIT,	    // getrlimit
	OSCALL_PAGESIZE,    // sysconf
	OSCALL_MAPPED,	    // mincore
	OSCALL_STACKBOUNDS, // pthread_getattr_np
	OSCALL_TLSKEY,	    // pthread_key_create, pthread_setspecific
	OSCALL_THREAD,	    // pthread_create
	OSCALL_ATFORK,	    // pthread_atfork
	OSCALL_GETENV,	    // secure_getenv
	OSCALL_FILE,	    // open and read
	OSCALL_WRITE,	    // write
	OSCALL_YIELD,	    // sched_yield
	OSCALL_KINDS,
};

// oscall_name is the kind in words, for messages of tests.
const char *oscall_name(enum oscall kind);

// oscall_reserve maps n bytes that may not be touched, anywhere; NULL when
// refused.
void *oscall_reserve(size_t n);

// oscall_commit makes a part of a reservation readable and writable.
int oscall_commit(void *p, size_t n);

// oscall_uncommit makes it untouchable again; what it held is not given back.
int oscall_uncommit(void *p, size_t n);

// oscall_map maps n bytes of zeros; NULL when refused.
void *oscall_map(size_t n);

int oscall_unmap(void *p, size_t n);

// oscall_release gives the memory behind [p, p+n) back; it stays mapped and
// reads as zero.
int oscall_release(void *p, size_t n);

int oscall_huge_pages(void *p, size_t n);    // madvise HUGEPAGE
int oscall_small_pages(void *p, size_t n);   // madvise NOHUGEPAGE
int oscall_collapse(void *p, size_t n);	     // madvise COLLAPSE
int oscall_populate(void *p, size_t n);	     // madvise POPULATE_WRITE
int oscall_dump(void *p, size_t n, bool on); // madvise DODUMP, DONTDUMP

// What a process does with memory that it maps (mlockall with MCL_FUTURE).
enum oscall_locking {
	OSCALL_LOCK_NONE,
	OSCALL_LOCK_AT_ONCE, // brings all of it in
	OSCALL_LOCK_ON_FAULT,
};

// oscall_locking tells that, none when refused; page is the page's size.
enum oscall_locking oscall_locking(size_t page);

// oscall_reserve_unlocked is oscall_reserve for a process that locks what it
// maps: address space without memory then counts as no locked memory.
void *oscall_reserve_unlocked(size_t n, size_t page);

// oscall_lock locks what was committed; oscall_unlock ends that.
int oscall_lock(void *p, size_t n, bool on_fault);
int oscall_unlock(void *p, size_t n);

// oscall_locked tells whether [p, p+n), which holds nothing, is locked; no when
// refused.
bool oscall_locked(void *p, size_t n);

// oscall_set_name names a mapping in /proc/self/maps: "rtheap: <name>".
int oscall_set_name(void *p, size_t n, const char *name);

// oscall_futex_wait sleeps while *word is expected, at most timeout_ns
// (UINT64_MAX: without limit).  Callers test their condition again whatever
// it returns.  oscall_futex_wake wakes up to n sleepers.
int oscall_futex_wait(const atomic_u32 *word, uint32_t expected,
		      uint64_t timeout_ns);
int oscall_futex_wake(const atomic_u32 *word, uint32_t n);

// Clocks, in ns; 0 when refused.
uint64_t oscall_monotonic(void);
uint64_t oscall_realtime(void);
uint64_t oscall_process_cpu(void); // CPU time of all threads, gone ones too
uint64_t oscall_thread_cpu(uint32_t tid); // CPU time of a thread; 0: dead
uint32_t oscall_gettid(void);

// oscall_nprocs is the number of processors this process may use; 0 when
// refused.
uint32_t oscall_nprocs(void);

// oscall_address_limit is RLIMIT_AS in bytes; UINT64_MAX for none or when
// refused.
uint64_t oscall_address_limit(void);

// oscall_max_mappings is vm.max_map_count, the number of mappings that a
// process may have; 0 when refused.
uint64_t oscall_max_mappings(void);

// oscall_page_size is the physical page size in bytes; 0 when refused.
size_t oscall_page_size(void);

// oscall_mapped returns 0 if all pages of [p, p+n), p on a page boundary, are
// mapped, ENOMEM if one is not, and another errno if the question is refused.
int oscall_mapped(const void *p, size_t n);

// oscall_readable tells that the word at p can be read, or that the system does
// not say; it changes nothing there.
bool oscall_readable(const void *p);

// oscall_stack_bounds tells the calling thread's stack, [*lo, *hi), without
// what the C library keeps above the first frame.  oscall_main_thread tells
// whether the caller is the process's first thread.  oscall_main_stack_end is
// an address in that thread's stack above all its frames, which asks the system
// nothing; 0 where it is not known.
// oscall_fork_prepare comes before a fork, oscall_fork_child in its child: if
// the parent had several threads, the answer there comes from what the last of
// them was told.  If none was, the thread-local variables count as frames.
int oscall_stack_bounds(uintptr_t *lo, uintptr_t *hi);
void oscall_fork_prepare(void);
void oscall_fork_child(void);
uintptr_t oscall_main_stack_end(void);
bool oscall_main_thread(void);

// oscall_tls_key makes a key whose destructor runs when a thread exits with
// a value that is not null.  oscall_tls_set sets the calling thread's.
int oscall_tls_key(unsigned *key, void (*destructor)(void *));
int oscall_tls_set(unsigned key, const void *value);

// oscall_thread_start makes a thread that runs fn(arg) with all signals blocked
// but those that report a fault of the thread itself; oscall_thread_join waits
// for its end and forgets it. oscall_thread_name names the calling thread, in
// at most 15 characters.
int oscall_thread_start(uint64_t *thread, void *(*fn)(void *), void *arg);
void oscall_thread_join(uint64_t thread);
void oscall_thread_name(const char *name);

// oscall_at_fork has functions called at every fork from now on: by the thread
// that forks before and after it, and by the one in the child.
int oscall_at_fork(void (*prepare)(void), void (*parent)(void),
		   void (*child)(void));

// oscall_getenv reads the environment, unless the process runs setuid.
const char *oscall_getenv(const char *name);

void oscall_write(int fd, const char *text, size_t n);
void oscall_yield(void);

// ---- for tests ----
//
// Nothing is counted before the first oscall_fail of the process: until then
// a call pays one load and a branch for all this.

// oscall_fail lets the nth call of a kind from now (1 is the next) and the
// ncalls - 1 after it (UINT64_MAX: all) fail with the errno given.  A call
// that fails so is not made.  ncalls 0 disarms.  The caller knows that no
// other thread makes a call of the kind meanwhile, or does not mind which
// count it falls into.
void oscall_fail(enum oscall kind, uint64_t nth, uint64_t ncalls, int error);

// oscall_count is the number of calls of a kind since the last oscall_fail
// of that kind (armed or not), oscall_failed how many of them were failed.
uint64_t oscall_count(enum oscall kind);
uint64_t oscall_failed(enum oscall kind);

// oscall_from names the place where the calling thread makes its next call: if
// that is failed, *failed is raised as well.
void oscall_from(atomic_u64 *failed);

// oscall_set_page_size lets oscall_page_size answer so, which is to be a
// multiple of the truth; 0: the truth again.  Before there is a heap.
void oscall_set_page_size(size_t bytes);

#endif
