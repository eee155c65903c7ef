// oscall.h - the table of calls to the operating system.
//
// Go: os_linux.go, sys_linux_amd64.s.
//
// The library makes every call to the system here and nowhere else.  So the
// library that tests link can refuse all calls of a sort listed below
// (test/harness/fault.h).  The functions here count no statistic and take no
// lock of the library.  One that may fail returns 0 or the errno, or a pointer
// that is NULL if it failed, unless its comment says otherwise.
//
// None changes errno: a host that reads a file in a blocking region may look
// at errno after the region.  (A call that a test refuses may set it.)  None is
// a cancellation point.
//
// The library survives the refusal of every call but one: a sleeper whose wake
// is refused sleeps on.  No system refuses to wake the sleepers of a word that
// exists, so no caller looks at the result of oscall_futex_wake.
#ifndef RUNTIME_OS_OSCALL_H
#define RUNTIME_OS_OSCALL_H

#include "runtime/base/atomic.h"

// The sorts of calls.  A test refuses all calls of a sort.
enum oscall {
	OSCALL_RESERVE,	   // mmap PROT_NONE
	OSCALL_COMMIT,	   // mprotect to read and write
	OSCALL_UNCOMMIT,   // mprotect to none
	OSCALL_MAP,	   // mmap readable and writable
	OSCALL_UNMAP,	   // munmap
	OSCALL_RELEASE,	   // madvise DONTNEED: contents gone, reads give zero
	OSCALL_ADVISE,	   // other uses of madvise; failure has no effect
	OSCALL_LOCK,	   // mlock, munlock, and whether memory is locked
	OSCALL_NAME,	   // prctl for names; failure has no effect
	OSCALL_FUTEX_WAIT, // may return early for any reason
	OSCALL_FUTEX_WAKE,
	OSCALL_CLOCK,	    // clock_gettime
	OSCALL_AFFINITY,    // sched_getaffinity, sched_setaffinity and
			    // sched_setscheduler
	OSCALL_RLIMIT,	    // getrlimit
	OSCALL_PAGESIZE,    // sysconf
	OSCALL_MAPPED,	    // mincore
	OSCALL_STACKBOUNDS, // pthread_getattr_np
	OSCALL_TLSKEY,	    // pthread_key_create, pthread_setspecific
	OSCALL_THREAD,	    // pthread_create
	OSCALL_ATFORK,	    // pthread_atfork
	OSCALL_GETENV,	    // secure_getenv
	OSCALL_FILE,	    // open and read
	OSCALL_WRITE,	    // write, pwritev2, send, poll
	OSCALL_YIELD,	    // sched_yield
	OSCALL_PEEK,	    // process_vm_readv
	OSCALL_COUNT,
};

// oscall_reserve maps n protected bytes anywhere.  Returns NULL if refused.
void *oscall_reserve(size_t n);

// oscall_commit makes a part of a reservation readable and writable.
int oscall_commit(void *p, size_t n);

// oscall_uncommit protects such a part again, but does not release its memory.
int oscall_uncommit(void *p, size_t n);

// oscall_map maps n bytes of zeros.  Returns NULL if refused.
void *oscall_map(size_t n);

int oscall_unmap(void *p, size_t n);

// oscall_release releases the memory of [p, p+n), which stays mapped and reads
// as zero.
int oscall_release(void *p, size_t n);

int oscall_huge_pages(void *p, size_t n);    // madvise HUGEPAGE
int oscall_small_pages(void *p, size_t n);   // madvise NOHUGEPAGE
int oscall_collapse(void *p, size_t n);	     // madvise COLLAPSE
int oscall_populate(void *p, size_t n);	     // madvise POPULATE_WRITE
int oscall_dump(void *p, size_t n, bool on); // madvise DODUMP, DONTDUMP

// How a process locks the memory that it maps (mlockall with MCL_FUTURE).
enum oscall_locking {
	OSCALL_LOCK_NONE,
	OSCALL_LOCK_AT_ONCE, // brings all of it in
	OSCALL_LOCK_ON_FAULT,
};

// oscall_locking returns how this process locks the memory that it maps, or
// OSCALL_LOCK_NONE if the system refuses to tell.  page must be the physical
// page size.
enum oscall_locking oscall_locking(size_t page);

// oscall_reserve_unlocked is oscall_reserve for a process that locks what it
// maps.  The address space does not count as locked memory.
void *oscall_reserve_unlocked(size_t n, size_t page);

// oscall_lock locks committed memory; oscall_unlock unlocks it.
int oscall_lock(void *p, size_t n, bool on_fault);
int oscall_unlock(void *p, size_t n);

// oscall_locked tells whether [p, p+n) is locked; false if refused.  The range
// must hold nothing: if it is not locked, its memory is released.
bool oscall_locked(void *p, size_t n);

// oscall_set_name names a mapping in /proc/self/maps: "rtheap: <name>".
int oscall_set_name(void *p, size_t n, const char *name);

// oscall_futex_wait sleeps while *word is expected, at most timeout_ns
// (UINT64_MAX: without limit).  Callers must test their condition again,
// whatever it returns.  oscall_futex_wake wakes up to n sleepers.
int oscall_futex_wait(const atomic_u32 *word, uint32_t expected,
		      uint64_t timeout_ns);
int oscall_futex_wake(const atomic_u32 *word, uint32_t n);

// oscall_futex_wait_as is oscall_futex_wait without limit; it gives the sleeper
// a set of bits.  oscall_futex_wake_as wakes all sleepers whose set has one of
// its bits.
int oscall_futex_wait_as(const atomic_u32 *word, uint32_t expected,
			 uint32_t bits);
int oscall_futex_wake_as(const atomic_u32 *word, uint32_t bits);

// Clocks, in ns; 0 if refused.
uint64_t oscall_monotonic(void);
uint64_t oscall_realtime(void);
uint64_t oscall_process_cpu(void); // CPU time of all threads, even ended ones
uint64_t oscall_thread_cpu(uint32_t tid); // CPU time of a thread; 0 if it ended
uint32_t oscall_gettid(void);

// oscall_nprocs returns the number of processors that the calling thread may
// use, 0 if refused.
uint32_t oscall_nprocs(void);

// oscall_note_nprocs notes which processors the calling thread may use, and a
// mask of n bytes of those that the library's threads shall use instead (n is
// 0: none).  oscall_thread_processors makes the calling thread use these,
// whatever thread made it.  If the system refuses the mask, the thread uses the
// processors that were noted.  oscall_thread_ordinary gives it the default
// scheduling.  If the system refuses all, it keeps what it inherited.
enum { OSCALL_MASK_BYTES = 8192 / 8 };
void oscall_note_nprocs(const void *mask, size_t n);

// oscall_noted_nprocs returns how many processors were noted or are in that
// mask, or 0 if the system did not tell which the thread may use.
uint32_t oscall_noted_nprocs(void);
void oscall_thread_processors(void);
void oscall_thread_ordinary(void);

// oscall_address_limit returns RLIMIT_AS in bytes, UINT64_MAX if there is none
// or it is refused.
uint64_t oscall_address_limit(void);

// oscall_max_mappings returns vm.max_map_count, the number of mappings that a
// process may have, 0 if refused.
uint64_t oscall_max_mappings(void);

// oscall_read_file reads up to n bytes of a file.  Returns how many it has
// read, 0 if refused.
size_t oscall_read_file(const char *name, char *text, size_t n);

// oscall_page_size returns the physical page size in bytes, 0 if refused.
size_t oscall_page_size(void);

// oscall_mapped returns 0 if all pages of [p, p+n) are mapped, ENOMEM if one is
// not, and another errno if refused.  p must be on a page boundary.
int oscall_mapped(const void *p, size_t n);

// oscall_readable tells whether the word at p can be read; true as well if the
// system does not say.  It changes nothing there.
bool oscall_readable(const void *p);

// oscall_mapping_end returns the end of the readable mapping that contains at.
// Returns 0 if there is none, or if the system does not tell.
uintptr_t oscall_mapping_end(uintptr_t at);

// oscall_peek copies n bytes from an address of this process, which need not be
// mapped.  tid must be the calling thread's.  Returns 0, EFAULT if some of them
// cannot be read, or another errno if refused.
int oscall_peek(uint32_t tid, void *to, uintptr_t from, size_t n);

// oscall_program sets *bias to the difference between the program's addresses
// in memory and in its file.  It sets *phdr and *phnum to the program headers.
// It asks the dynamic linker, and waits while another thread loads a library.
void oscall_program(uintptr_t *bias, uintptr_t *phdr, uint32_t *phnum);

// oscall_stack_bounds sets [*lo, *hi) to the calling thread's stack, without
// what the C library keeps above the first frame.  oscall_fork_prepare must be
// called before a fork, and oscall_fork_child in its child.  If the parent had
// several threads, the child does not look at the thread-local variables, but
// leaves out as many bytes of them as the last such call in the parent did.  If
// there was no such call, thread-local variables count as frames.
//
// oscall_main_thread tells whether the caller is the process's first thread.
// oscall_main_stack_end makes no system call.  It returns an address in that
// thread's stack above all its frames, 0 if it is not known.
int oscall_stack_bounds(uintptr_t *lo, uintptr_t *hi);
void oscall_fork_prepare(void);
void oscall_fork_child(void);
uintptr_t oscall_main_stack_end(void);
bool oscall_main_thread(void);

// oscall_tls_key makes a key whose destructor runs when a thread exits with a
// value that is not null.  oscall_tls_set sets the calling thread's value.
int oscall_tls_key(unsigned *key, void (*destructor)(void *));
int oscall_tls_set(unsigned key, const void *value);

// oscall_thread_start makes a thread that runs fn(arg).  All signals are
// blocked in it, except those that report a fault of the thread itself.
// oscall_thread_join waits for its end and frees what libc keeps of it.
// oscall_thread_name names the calling thread, in at most 15 characters.
int oscall_thread_start(uint64_t *thread, void *(*fn)(void *), void *arg);
void oscall_thread_join(uint64_t thread);
void oscall_thread_name(const char *name);

// oscall_at_fork registers functions for every fork from now on.  The thread
// that forks calls prepare before it and parent after it; the thread of the
// child calls child.
int oscall_at_fork(void (*prepare)(void), void (*parent)(void),
		   void (*child)(void));

// oscall_getenv reads the environment.  Returns NULL if the variable is unset,
// or the process runs setuid.
const char *oscall_getenv(const char *name);

// oscall_write writes n bytes, and waits until fd takes them.  If fd is
// non-blocking or the system refuses, the rest is lost.
void oscall_write(int fd, const char *text, size_t n);

// oscall_write_now writes n bytes, at most 512, if fd takes them at once.
// Returns false if fd does not, or is closed, or has no reader.  The call waits
// only if another thread or process fills a terminal or device at the same
// moment; before Linux 6.4 that includes a pipe.
//
// A SIGPIPE of these two functions neither ends the process nor reaches the
// host.
bool oscall_write_now(int fd, const char *text, size_t n);
void oscall_yield(void);

#endif
