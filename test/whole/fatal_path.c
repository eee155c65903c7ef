// fatal_path.c - what is reported before the end, and how little is used for
// it.
//
// Every case is a process that causes a state which only a bug of the library,
// or memory that was overwritten, can produce.  The process has to die of
// SIGABRT after the words of the case and no others; a '#' in them matches any
// number or address.  Neither the allocator nor stdio is used on the way.
// Their functions are replaced here, and once a case has begun each of them
// ends the process in another manner.  So this is no suite of Check, which
// needs both.  gcc's counters of coverage need both as well: in a build for
// them nothing is replaced.

// With it some of the calls to the functions below would have other names.
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

#include "gc/stats/mstats.h"
#include "gc/mark/work.h"
#include "runtime/world/heapstats.h"
#include "runtime/spans/mcache.h"
#include "runtime/spans/mheap.h"
#include "runtime/world/stw.h"
#include "runtime/os/throw.h"

// ---- forbidden functions ----

enum { USED_FORBIDDEN = 99 };

static volatile sig_atomic_t forbidden; // 1: from now on

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
static struct pagealloc pa;
static struct scavindex scav;
static struct fixalloc fix;

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

static void with_pages(void)
{
	sysmem_init();
	if (!pagealloc_init(&pa, 16) || !pagealloc_reserve(&pa, 2))
		_exit(1);
	pagealloc_grow(&pa, 2);
	if (!scavindex_init(&scav, 16) || !scavindex_reserve(&scav, 1))
		_exit(1);
	scavindex_grow(&scav, 1);
}

// start_exact makes a heap in which no stack is a root: what a frame left there
// keeps nothing.
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

static void sum_below_zero(void)
{
	atomic_u64_add_relaxed(&heapgauges.no_p[HEAPGAUGE_TOTAL_FREE],
			       UINT64_C(1) << 63);
	heapgauge_sum(HEAPGAUGE_TOTAL_FREE);
}

static void fixalloc_excess(void)
{
	struct fixalloc_list l = {.n = 2};

	fixalloc_init(&fix, 64, 8, false, NULL);
	fixalloc_free_list(&fix, &l);
}

static void lfstack_odd(void)
{
	static struct lfstack s;

	lfstack_push(&s, (struct lfnode *)1);
}

static void acquired_twice(void)
{
	heapstats_acquire(proc_self());
	heapstats_acquire(proc_self());
}

static void blocked_twice(void)
{
	rt_blocking_enter();
	proc_block(proc_self());
}

static void stopped_early(void)
{
	atomic_u32_store_relaxed(&procs.stop_wait, 1);
	note_wake(&procs.stopnote);
	proc_wait_all();
}

static void started_twice(void)
{
	stw_start(proc_self(), NULL);
	stw_release();
}

static void read_while_running(void)
{
	static rt_memstats m;
	static struct text t;

	mstats_read(&m, &t);
}

static void statistics_differ(void)
{
	static rt_memstats m;

	gauge_add(&gauges.other_sys, 4096);
	rt_read_memstats(&m);
}

static void pages_taken_twice(void)
{
	pagealloc_alloc_range(&pa, 512, 3);
	pagealloc_set_scavenged(&pa, 512, 1);
}

static void pages_no_block(void)
{
	struct pagealloc_block b;

	pagealloc_retake_block(&pa, 3, 1, &b);
}

// overwrite_bitmap makes a chunk full behind the back of its summary.
static void overwrite_bitmap(void)
{
	uint64_t nscav;

	memset(&pagealloc_chunk(&pa, 0)->alloc, 0xff,
	       sizeof(struct pallocbits));
	pagealloc_alloc(&pa, 1, &nscav);
}

// overwrite_summary makes chunks full behind the back of the summaries above,
// which know of free pages that begin after the first page.
static void overwrite_summary(void)
{
	pallocsum *leaves = (pallocsum *)pa.sums[PAGEALLOC_LEVELS - 1].base;
	uint64_t nscav;

	pagealloc_alloc_range(&pa, 0, 1);
	pagealloc_alloc_range(&pa, 1023, 1);
	leaves[0] = leaves[1] = 0;
	pagealloc_alloc(&pa, 600, &nscav);
}

// overwrite_search hides every page, even those that growth brings: searches
// begin behind them.
static void overwrite_search(void)
{
	mheap.pages.search_page = UINT64_C(1) << 40;
	rt_alloc_noscan(64 << 20);
}

static void cached_twice(void)
{
	struct mspan *s = span_of_object();

	mcache_set_span(rt_thread_tls->mc,
			&rt_thread_tls->mc->slots[s->spanclass], s);
}

static void cached_full(void)
{
	void *large = rt_alloc_noscan(100000);
	struct mspan *s =
	    arena_span(arena_offset((uintptr_t)large) >> RT_PAGE_SHIFT);

	mcache_set_span(
	    rt_thread_tls->mc,
	    &rt_thread_tls->mc->slots[spanclass_make(60, KIND_WORDS)], s);
}

// A pointer to a free slot is ignored; a mark on one cannot come about.
static void free_slot_marked(void)
{
	struct linewords *lines = arena_lines(page_of_object());
	unsigned line = epoch_mark_line(epoch_sweepgen());

	atomic_u64_or_relaxed(&lines[0].line[line], 1);
	rt_gc();
}

static void span_miscounted(void)
{
	rt_gc(); // no run is handed out
	span_of_object()->alloc_count++;
	rt_gc();
}

static void written_behind(void)
{
	((volatile char *)object)[50013] = 1;
	rt_gc();
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

static void marking_not_over(void)
{
	static struct work w;

	work_close(&w);
}

static struct mutex inner = RT_MUTEX_INIT(LOCKRANK_MHEAP);
static struct mutex outer = RT_MUTEX_INIT(LOCKRANK_ROOTS);

static void lock_without_a_rank(void)
{
	static struct mutex m;

	mutex_lock(&m);
}

static void locked_outwards(void)
{
	mutex_lock(&inner);
	mutex_lock(&outer);
}

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

enum build { ANY, RELEASE, DEBUG }; // in which builds it is found

// What a case has to say.
struct words {
	const char *lines; // before the last
	const char *what;  // NULL: something forbidden is used
};

static char output[4096]; // of the last process to stderr
static uint64_t passed, failed;

// matches compares text with words in which a '#' matches any number.
static bool matches(const char *text, const char *words)
{
	for (; *words; words++) {
		if (*words != '#') {
			if (*text++ != *words)
				return false;
			continue;
		}
		if (*text < '0' || *text > '9')
			return false;
		text += strspn(text, "0123456789abcdefx");
	}
	return *text == '\0';
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

// in_child makes the process of a case.  It returns true there, after all that
// may allocate.  In the parent it judges how the process ended.
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

// What a debug build finds first of a span that does not belong in its slot.
#define WRONG_SPAN "assertion: !s->cached && s->spanclass == slot->sc"

static void run_cases(void)
{
	FATAL(nothing, "", "nothing in particular",
	      throw_fatal("nothing in particular"));
	FATAL(nothing, "a line\n", "what was found", throws_a_text());
	FATAL(nothing, "rtheap: gauge was 0x0, is 0xffffffffffffffff\n",
	      "sysMemStat overflow", gauge_add(&gauges.other_sys, -1));
	FATAL(with_heap, "", "sysMemStat overflow", sum_below_zero());
	FATAL(nothing, "rtheap: size=4\n", "fixalloc_init: bad size",
	      fixalloc_init(&fix, 4, 8, false, NULL));
	FATAL(nothing, "rtheap: align=16\n", "fixalloc_init: bad alignment",
	      fixalloc_init(&fix, 24, 16, false, NULL));
	FATAL(nothing, "rtheap: size=128\n",
	      "fixalloc_free: more than is in use", fixalloc_excess());
	FATAL(nothing, "", "persistent_alloc: no size",
	      persistent_alloc(0, 8, &gauges.other_sys));
	FATAL(nothing, "rtheap: align=24\n", "persistent_alloc: bad alignment",
	      persistent_alloc(8, 24, &gauges.other_sys));
	FATAL(with_pages, "rtheap: n=1\n", "sysmem_release: not whole pages",
	      sysmem_release(NULL, 1));
	FATAL(nothing, "rtheap: node=1\n",
	      "lfstack_push: address does not pack", lfstack_odd());
	FATAL(with_heap, "rtheap: seq=#\n", "bad sequence number",
	      acquired_twice());
	FATAL(with_heap, "", "proc_block: not running", blocked_twice());
	FATAL(with_heap, "", "stopTheWorld: not stopped (stopwait != 0)",
	      stopped_early());
	FATAL(with_heap, "", "startTheWorld: world not stopped",
	      started_twice());
	FATAL(with_heap, "", "world not stopped", read_while_running());
	FATAL(with_heap,
	      "runtime: mappedReady=#\nruntime: totalMapped=#\n"
	      "runtime: released=#\nruntime: totalMapped-released=#\n",
	      "mappedReady and other memstats are not equal",
	      statistics_differ());
	FATAL(with_pages, "rtheap: page=1024\n",
	      "pagealloc: pages outside of the heap",
	      pagealloc_free(&pa, 1024, 1));
	FATAL(with_pages, "rtheap: page=7\n",
	      "pagealloc: pages outside of the heap",
	      pagealloc_free(&pa, 7, 0));
	FATAL(with_pages, "rtheap: page=7\n", "pagealloc: freed page is free",
	      pagealloc_free(&pa, 7, 1));
	FATAL(with_pages, "rtheap: page=512\n", "pagealloc: page is not free",
	      pages_taken_twice());
	FATAL(with_pages, "rtheap: nchunks=4000\n", "pagealloc_grow: no room",
	      pagealloc_grow(&pa, 4000));
	FATAL(with_pages, "rtheap: base=3\n", "pagealloc: no block begins here",
	      pages_no_block());
	FATAL(with_pages, "rtheap: base=64\n",
	      "pagealloc_put_block: pages were not taken",
	      pagealloc_put_block(&pa, 64, 1, 0));
	FATAL(with_pages, "rtheap: chunk=0\n",
	      "pagealloc: chunk lacks what its summary says",
	      overwrite_bitmap());
	FATAL(with_pages, "rtheap: entry=0\n",
	      "pagealloc: children lack what their summary says",
	      overwrite_summary());
	FATAL_IN(RELEASE, with_heap, "",
		 "grew heap, but no adequate free space found",
		 overwrite_search());
	FATAL_IN(DEBUG, with_heap, "", "search_page is beyond the heap",
		 overwrite_search());
	FATAL(with_pages, "rtheap: nchunks=4000\n", "scavindex_grow: no room",
	      scavindex_grow(&scav, 4000));
	FATAL(with_pages, "rtheap: in_use=0\n",
	      "scavindex_alloc: chunk overflows",
	      scavindex_alloc(&scav, 0, 513));
	FATAL(with_pages, "rtheap: in_use=0\n",
	      "scavindex_free: chunk underflows", scavindex_free(&scav, 0, 1));
	FATAL(with_heap, "", "mheap.freeSpanLocked - invalid free",
	      mheap_free(proc_self(), span_of_object()));
	FATAL(with_heap, "", "mheap.freeSpanLocked - invalid stack free",
	      mheap_free_manual(proc_self(), span_of_object()));
	FATAL_IN(RELEASE, with_heap, "",
		 "refill of span with free space remaining", cached_twice());
	FATAL_IN(RELEASE, with_heap, "", "span has no free space",
		 cached_full());
	FATAL_IN(DEBUG, with_heap, "", WRONG_SPAN, cached_twice());
	FATAL_IN(DEBUG, with_heap, "", WRONG_SPAN, cached_full());
	FATAL(with_heap, "rtheap: span=#\n", "found pointer to free object",
	      free_slot_marked());
	FATAL(with_heap, "rtheap: span=#\n", "mspan.sweep: bad span state",
	      span_miscounted());
	FATAL(with_guards, "rtheap: object=# size=50013, offset=50013\n",
	      "guarded object was written outside", written_behind());
	FATAL(with_guards,
	      "rtheap: object=# size=50013, written before it by 5\n",
	      "guarded object was written outside", written_before());
	FATAL(with_checkmark,
	      "rtheap: object=# size=48, found in an object at #, "
	      "offset 0\n",
	      "checkmark: found unmarked object", child_not_marked());
	FATAL(with_heap, "", "non-empty mark queue after mark",
	      marking_not_over());
	FATAL_IN(RELEASE, nothing, "", "mutex_unlock: not held",
		 mutex_unlock(&inner));
	FATAL_IN(DEBUG, nothing, "rtheap: lock mheap\n",
		 "lockrank: released but not held", mutex_unlock(&inner));
	FATAL_IN(DEBUG, nothing, "rtheap: rank=0\n",
		 "lockrank: lock without a rank", lock_without_a_rank());
	FATAL_IN(DEBUG, nothing,
		 "rtheap: lock roots wanted while holding lock mheap\n",
		 "lockrank: wrong order", locked_outwards());
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
