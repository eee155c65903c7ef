// fatal_path.c - what is reported before the end, and how little is used for
// it.
//
// There is a case for each way to write a report; the suites of the modules
// have the other fatal errors.  Every case is a process that causes a state
// which only a bug of the library, or memory that was overwritten, can produce.
// The process has to die of SIGABRT after the words of the case and no others;
// a '#' in them matches any number or address.  Neither the allocator nor stdio
// is used on the way.  Their functions are replaced here, and once a case has
// begun each of them ends the process in another manner.  So this is no suite
// of Check, which needs both.  gcc's counters of coverage need both as well: in
// a build for them nothing is replaced.

// If _FORTIFY_SOURCE were defined, some of the calls to the functions below
// would have other names.
#undef _FORTIFY_SOURCE
#define _GNU_SOURCE 1

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rt/rt.h>

#include "runtime/spans/mcache.h"
#include "runtime/spans/mheap.h"
#include "runtime/os/throw.h"
#include "test/harness/words.h"

// ---- forbidden functions ----

enum { USED_FORBIDDEN = 99 };

static volatile sig_atomic_t forbidden; // 1: a call ends the process

#ifdef RT_COVERAGE
enum { ARE_REPLACED = 0 };
#else
enum { ARE_REPLACED = 1 };

static void forbid(void)
{
	if (forbidden)
		_exit(USED_FORBIDDEN);
}

void *__libc_malloc(size_t n);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t n);
void *__libc_memalign(size_t align, size_t n);
void __libc_free(void *p);

void *malloc(size_t n)
{
	forbid();
	return __libc_malloc(n);
}

void *calloc(size_t n, size_t size)
{
	forbid();
	return __libc_calloc(n, size);
}

void *realloc(void *p, size_t n)
{
	forbid();
	return __libc_realloc(p, n);
}

void *aligned_alloc(size_t align, size_t n)
{
	forbid();
	return __libc_memalign(align, n);
}

void free(void *p)
{
	forbid();
	__libc_free(p);
}

// This program uses none of stdio at any time.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
#define NO_STDIO(type, name, ...)                                              \
	type name(__VA_ARGS__)                                                 \
	{                                                                      \
		_exit(USED_FORBIDDEN);                                         \
	}

NO_STDIO(int, printf, const char *restrict f, ...)
NO_STDIO(int, fprintf, FILE *restrict s, const char *restrict f, ...)
NO_STDIO(int, dprintf, int fd, const char *restrict f, ...)
NO_STDIO(int, snprintf, char *restrict s, size_t n, const char *restrict f, ...)
NO_STDIO(int, vfprintf, FILE *restrict s, const char *restrict f, va_list a)
NO_STDIO(int, vsnprintf, char *restrict s, size_t n, const char *restrict f,
	 va_list a)
NO_STDIO(int, puts, const char *s)
NO_STDIO(int, fputs, const char *restrict s, FILE *restrict f)
NO_STDIO(int, fputc, int c, FILE *f)
NO_STDIO(int, fflush, FILE *f)
NO_STDIO(size_t, fwrite, const void *restrict p, size_t size, size_t n,
	 FILE *restrict f)
NO_STDIO(void, perror, const char *s)
#pragma GCC diagnostic pop
#endif

// ---- states that only a bug can produce ----

static void *object; // of 64 bytes, without pointers

static void nothing(void)
{
}

static void with_heap(void)
{
	rt_config c;

	rt_config_init(&c);
	c.gc_threads = 0;
	c.double_check = RT_CHECK_FATAL;
	if (rt_init(&c) != RT_OK ||
	    rt_roots_add(&object, &object + 1, RT_ROOT_EXACT) != RT_OK)
		_exit(1);
	object = (rt_alloc_noscan)(64);
}

// start_exact makes a heap in which no stack is a root, so words that a frame
// left there keep nothing.
static void start_exact(rt_config *c)
{
	c->gc_threads = 0;
	c->no_attach = 1;
	if (rt_init(c) != RT_OK || rt_thread_attach(RT_THREAD_EXACT) != RT_OK)
		_exit(1);
}

// with_guards: object is dead, and has 3 bytes behind it before its guard.
static void with_guards(void)
{
	rt_config c;

	rt_config_init(&c);
	c.guard_large = 1;
	start_exact(&c);
	object = rt_alloc_noscan(50013);
}

// with_checkmark: object leads to another.
static void with_checkmark(void)
{
	rt_config c;

	rt_config_init(&c);
	c.checkmark = 1;
	start_exact(&c);
	if (rt_roots_add(&object, &object + 1, RT_ROOT_EXACT) != RT_OK)
		_exit(1);
	object = rt_alloc(64);
	*(void **)object = rt_alloc(48);
	rt_gc(); // the rest of the run is freed
}

static uint64_t page_of_object(void)
{
	return arena_offset((uintptr_t)object) >> RT_PAGE_SHIFT;
}

static struct mspan *span_of_object(void)
{
	return arena_span(page_of_object());
}

static void throws_a_text(void)
{
	struct text t;

	text_init(&t);
	text_str(&t, "a line");
	throw_text(&t, "what was found");
}

static void statistics_differ(void)
{
	static rt_memstats m;

	gauge_add(&gauges.other_sys, 4096);
	rt_read_memstats(&m);
}

static void written_before(void)
{
	((volatile char *)object)[-5] = 1;
	rt_gc();
}

// An object that is marked already is not looked into.
static void child_not_marked(void)
{
	struct mspan *s = span_of_object();
	unsigned bit = mspan_bit(s, mspan_slot(s, (uintptr_t)object - s->base));
	unsigned line = epoch_mark_line(epoch_sweepgen());

	atomic_u64_or_relaxed(mspan_lineword(s, line, bit / 64),
			      UINT64_C(1) << (bit % 64));
	rt_gc();
}

static struct mutex inner = RT_MUTEX_INIT(LOCKRANK_MHEAP);

static void parked_with_lock(void)
{
	mutex_lock(&inner);
	proc_block(proc_self());
}

// ---- a fatal handler that does what is forbidden ----

static void say(const char *s)
{
	if (write(STDERR_FILENO, s, strlen(s)) < 0)
		_exit(1);
}

static void handler_allocates(const char *text, void *arg)
{
	void *volatile p = malloc(10);

	free(p);
	(void)text;
	(void)arg;
}

static void handler_prints(const char *text, void *arg)
{
	(void)arg;
	printf("%s %d\n", text, 1);
}

static void handler_says(const char *text, void *arg)
{
	say("(");
	say(text);
	say(arg);
}

static void tell_allocating(void)
{
	rt_set_fatal_handler(handler_allocates, NULL);
	throw_fatal("told");
}

static void tell_printing(void)
{
	rt_set_fatal_handler(handler_prints, NULL);
	throw_fatal("told");
}

static void tell(void)
{
	rt_set_fatal_handler(handler_says, ")");
	throw_value("told", "n", 1);
}

// ---- the cases ----

enum build { ANY, RELEASE, DEBUG }; // in which builds a case runs

// The words that a case must print.
struct words {
	const char *lines; // before the last
	const char *what;  // NULL: something forbidden is used
};

static char output[4096]; // what the last process wrote to stderr
static uint64_t passed, failed;

// matches compares text with words (words.h).
static bool matches(const char *text, const char *words)
{
	const char *rest = words_match(text, words);

	return rest && *rest == '\0';
}

// expected returns the whole report of a case.
static void expected(struct words w, struct text *t)
{
	text_init(t);
	text_str(t, w.lines);
	text_str(t, "rtheap: fatal: ");
	text_str(t, w.what);
	if (w.lines[0] != '(') // a handler writes its own newline, or none
		text_str(t, "\n");
}

static bool passes(struct words w, int status)
{
	struct text want;

	if (!w.what)
		return WIFEXITED(status) &&
		       WEXITSTATUS(status) == USED_FORBIDDEN;
	expected(w, &want);
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT &&
	    matches(output, want.buf))
		return true;
	say("wanted:\n");
	say(want.buf);
	say("\ngot:\n");
	say(output);
	say(WIFEXITED(status) ? "\nand an exit\n" : "\nand a signal\n");
	return false;
}

// in_child makes the process of a case.  It returns true in that process, after
// the call of before, which may still allocate.  In the parent it judges how
// the process ended, and returns false.
static bool in_child(enum build build, void (*before)(void), struct words w)
{
	struct rlimit none = {0, 0};
	size_t len = 0;
	ssize_t n;
	int fds[2], status;
	pid_t child;

	if (build != ANY && (build == DEBUG) != (RT_DEBUG_BUILD != 0))
		return false;
	if (pipe(fds) != 0 || (child = fork()) < 0)
		_exit(1);
	if (child == 0) {
		setrlimit(RLIMIT_CORE, &none);
		dup2(fds[1], STDERR_FILENO);
		before();
		forbidden = 1;
		return true;
	}
	close(fds[1]);
	while ((n = read(fds[0], output + len, sizeof output - 1 - len)) > 0)
		len += (size_t)n;
	output[len] = '\0';
	close(fds[0]);
	if (waitpid(child, &status, 0) != child)
		_exit(1);
	if (passes(w, status))
		passed++;
	else
		failed++;
	return false;
}

// FATAL_IN runs a case in one sort of build.  A child calls before and then
// does deed, which must end it with a fatal report: lines, and then what.
#define FATAL_IN(build, before, lines, what, deed)                             \
	do {                                                                   \
		if (in_child(build, before, (struct words){lines, what})) {    \
			deed;                                                  \
			_exit(0);                                              \
		}                                                              \
	} while (0)
#define FATAL(...) FATAL_IN(ANY, __VA_ARGS__)
#define FORBIDDEN(deed) FATAL(nothing, "", NULL, deed)

static void run_cases(void)
{
	FATAL(nothing, "", "nothing in particular",
	      throw_fatal("nothing in particular"));
	FATAL(nothing, "a line\n", "what was found", throws_a_text());
	FATAL(nothing, "rtheap: gauge was 0x0, is 0xffffffffffffffff\n",
	      "sysMemStat overflow", gauge_add(&gauges.other_sys, -1));
	FATAL(with_heap,
	      "runtime: mappedReady=#\nruntime: totalMapped=#\n"
	      "runtime: released=#\nruntime: totalMapped-released=#\n",
	      "mappedReady and other memstats are not equal",
	      statistics_differ());
	FATAL(with_guards,
	      "rtheap: object=# size=50013, written before it by 5\n",
	      "guarded object was written outside", written_before());
	FATAL(with_checkmark,
	      "rtheap: object=# size=48, found in an object at #, "
	      "offset 0\n",
	      "checkmark: found unmarked object", child_not_marked());
	FATAL_IN(DEBUG, with_heap, "rtheap: lock mheap\n",
		 "lockrank: held while parking", parked_with_lock());
	FATAL(nothing, "(rtheap: n=1\n", "told)", tell());
	if (!ARE_REPLACED)
		return;
	FORBIDDEN(tell_allocating());
	FORBIDDEN(tell_printing());
}

int main(void)
{
	struct text t;

	run_cases();
	text_init(&t);
	text_str(&t, "fatal_path: ");
	text_u64(&t, passed);
	text_str(&t, " passed, ");
	text_u64(&t, failed);
	text_str(&t, " failed\n");
	say(t.buf);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
