// Fatal reports: their text, the host's handler, and the end.
#include "runtime/os/throw.h"

#include <stdlib.h>

#include "runtime/base/atomic.h"
#include "runtime/os/oscall.h"
#include "runtime/os/schedpoint.h"

// Room for a full struct text and as much again for what was found.
enum { REPORT_MAX = 1024 };
enum { STDERR = 2 };

// append copies s to buf[len ..], cuts it at cap - 1 and ends it with a null
// byte; it returns the new length.
static size_t append(char *buf, size_t len, size_t cap, const char *s)
{
	while (*s && len < cap - 1)
		buf[len++] = *s++;
	buf[len] = '\0';
	return len;
}

void text_init(struct text *t)
{
	t->len = 0;
	t->buf[0] = '\0';
}

void text_str(struct text *t, const char *s)
{
	t->len = append(t->buf, t->len, sizeof(t->buf), s);
}

// text_number appends prefix and n in a base of 10 or 16.
static void text_number(struct text *t, const char *prefix, uint64_t n,
			unsigned base)
{
	char digits[21]; // UINT64_MAX has 20 decimal digits
	char *first = digits + sizeof(digits) - 1;

	*first = '\0';
	do
		*--first = "0123456789abcdef"[n % base];
	while ((n /= base) > 0);
	text_str(t, prefix);
	text_str(t, first);
}

void text_u64(struct text *t, uint64_t n)
{
	text_number(t, "", n, 10);
}

void text_hex(struct text *t, uint64_t n)
{
	text_number(t, "0x", n, 16);
}

// ---- the handler ----

// The pair is read and written as one: version is odd while it changes.  There
// is no check function: any thread may change it at any moment.
static struct {
	atomic_u32 version;
	atomic_ptr fn; // throw_handler *
	atomic_ptr arg;
} handler;

void throw_set_handler(throw_handler *fn, void *arg)
{
	uint32_t version;

	for (;;) {
		version = atomic_u32_load_relaxed(&handler.version);
		// Pairs with the last release below, of another setter.
		if (version % 2 == 0 &&
		    atomic_u32_cas_acquire(&handler.version, version,
					   version + 1))
			break;
		oscall_yield(); // another thread is setting it
	}
	// These releases pair with the acquires in handler_load: a thread that
	// sees a new fn or arg also sees that the version changed.
	atomic_ptr_store_release(&handler.fn, (const void *)(uintptr_t)fn);
	atomic_ptr_store_release(&handler.arg, arg);
	atomic_u32_store_release(&handler.version, version + 2);
}

// handler_load returns the handler and sets *arg.  It may run in a signal
// handler that interrupted a thread which was setting the handler.  That thread
// cannot continue meanwhile, so handler_load returns NULL after some tries.
// The acquires pair with the releases in throw_set_handler.
static throw_handler *handler_load(void **arg)
{
	for (unsigned tries = 0; tries < 1000; tries++) {
		uint32_t version = atomic_u32_load_acquire(&handler.version);
		uintptr_t fn = (uintptr_t)atomic_ptr_load_acquire(&handler.fn);

		*arg = atomic_ptr_load_acquire(&handler.arg);
		if (version % 2 == 0 &&
		    atomic_u32_load_relaxed(&handler.version) == version)
			return (throw_handler *)fn;
		oscall_yield();
	}
	return NULL;
}

// ---- the end ----

// Its address identifies a thread, even in the child of a fork.
static __thread char self __attribute__((tls_model("initial-exec")));

// The address of self of the thread that throws; NULL until one does.
static atomic_ptr thrower;

bool throw_begun(void)
{
	return atomic_ptr_load_relaxed(&thrower) != NULL;
}

// claim returns once, to the first thread that throws.  A handler that throws
// itself ends the process here, without a second report.  Other threads would
// cut the first report short if they aborted now, so they wait.  The wait has a
// limit, because the handler may need a lock that one of them holds.
static void claim(void)
{
	static atomic_u32 never; // stays 0, so waiting for it is a sleep

	for (unsigned i = 0; i < 100; i++) {
		if (atomic_ptr_cas_relaxed(&thrower, NULL, &self)) {
			schedpoint(SCHED_THROW_CLAIM);
			return;
		}
		if (atomic_ptr_load_relaxed(&thrower) == &self)
			break;
		oscall_futex_wait(&never, 0, 100 * 1000 * 1000);
	}
	abort();
}

void throw_fork_child(void)
{
	uint32_t version = atomic_u32_load_relaxed(&handler.version);

	atomic_u32_store_relaxed(&handler.version, version + version % 2);
	if (atomic_ptr_load_relaxed(&thrower) != &self)
		atomic_ptr_store_relaxed(&thrower, NULL);
}

static RT_NORETURN void report(const char *lines, const char *what)
{
	char buf[REPORT_MAX];
	size_t len = 0;
	void *arg;
	throw_handler *fn;

	claim();
	len = append(buf, len, sizeof(buf), lines);
	if (len > 0 && buf[len - 1] != '\n')
		len = append(buf, len, sizeof(buf), "\n");
	len = append(buf, len, sizeof(buf), "rtheap: fatal: ");
	// The text is cut one byte earlier, so that the newline always fits.
	len = append(buf, len, sizeof(buf) - 1, what);

	fn = handler_load(&arg);
	if (fn) {
		fn(buf, arg);
	} else {
		buf[len++] = '\n';
		oscall_write(STDERR, buf, len);
	}
	abort();
}

void throw_fatal(const char *what)
{
	report("", what);
}

void throw_value(const char *what, const char *name, uint64_t value)
{
	struct text t;

	text_init(&t);
	text_str(&t, "rtheap: ");
	text_str(&t, name);
	text_str(&t, "=");
	text_u64(&t, value);
	report(t.buf, what);
}

void throw_text(const struct text *t, const char *what)
{
	report(t->buf, what);
}
