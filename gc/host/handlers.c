// handlers.c - keeps the handlers of the host, and calls them.
#include "gc/host/handlers.h"

#include "runtime/os/oscall.h"
#include "runtime/os/throw.h"
#include "runtime/os/sysmem.h"
#include "gc/mark/hostcall.h"
#include "gc/mark/stacks.h"
#include "gc/cycle/pacer.h"
#include "gc/host/door.h"

struct oom_handler {
	rt_oom_fn *fn; // NULL: none
	void *arg;
};

// There is no check function: any pair of function and argument is the host's
// affair.
static struct {
	struct mutex lock;
	struct oom_handler oom;
	rt_text_fn *warn;
	void *warn_arg;
	rt_ready_fn *ready;
	void *ready_arg;
} handlers = {.lock = RT_MUTEX_INIT(LOCKRANK_HANDLERS)};

// check_caller checks, in debug builds, that a handler may be called.
static void check_caller(void)
{
	RT_ASSERT(!door_stopper());
	lockrank_none();
}

// ---- out of memory ----

// The mark of this thread's newest call of the handler that has not returned.
// The call is under way, or was left.
static __thread const struct framemark *oom_mark
    __attribute__((tls_model("initial-exec")));

// in_oom_handler tells whether the allocation with this frame is one that the
// handler makes.
static bool in_oom_handler(const void *frame)
{
	return oom_mark && framemark_calls(oom_mark, frame);
}

// call_oom calls the handler.  Returns true if the handler returns 1.  The mark
// must be on the real stack, where a sanitizer's copy of the frame would not
// be.
RT_NOINLINE RT_NO_SANITIZE static bool call_oom(const struct oom_handler *oom,
						size_t n)
{
	const struct framemark *before = oom_mark;
	struct framemark mark;
	struct hostcall outer;
	bool again;

	check_caller();
	framemark_set(&mark);
	oom_mark = &mark;
	outer = hostcall_begin_marked("out-of-memory handler", &mark,
				      (uintptr_t)oom->fn);
	again = oom->fn(n, oom->arg) == 1;
	hostcall_end(&outer);
	oom_mark = before;
	return again;
}

bool handlers_ask_oom(size_t n, const void *frame)
{
	struct oom_handler oom;

	mutex_lock(&handlers.lock);
	oom = handlers.oom;
	mutex_unlock(&handlers.lock);
	return oom.fn && !in_oom_handler(frame) && call_oom(&oom, n);
}

void handlers_set_oom(rt_oom_fn *fn, void *arg)
{
	mutex_lock(&handlers.lock);
	handlers.oom = (struct oom_handler){fn, arg};
	mutex_unlock(&handlers.lock);
}

// ---- warnings ----

// warn calls the warn handler.  Returns false if there is none.
static bool warn(const char *text)
{
	rt_text_fn *fn;
	void *arg;

	mutex_lock(&handlers.lock);
	fn = handlers.warn;
	arg = handlers.warn_arg;
	mutex_unlock(&handlers.lock);
	if (fn) {
		struct hostcall before =
		    hostcall_begin("warn handler", NULL, (uintptr_t)fn);

		check_caller();
		fn(text, arg);
		hostcall_end(&before);
	}
	return fn != NULL;
}

void handlers_warn(const char *text)
{
	warn(text);
}

enum { STDERR = 2 };

// write_line writes a text to stderr, with a newline in place of the null byte
// at its end.
static void write_line(struct text *t)
{
	t->buf[t->len] = '\n';
	oscall_write(STDERR, t->buf, t->len + 1);
}

// The handler may have detached the thread, or begun a no-GC stretch; then the
// rest is told later.
bool handlers_tell_all(void)
{
	struct text t;
	bool any = false;

	while (!door_nogc() && door_attached_now(false) == RT_OK &&
	       notices_take(&t)) {
		if (!warn(t.buf))
			write_line(&t);
		any = true;
	}
	notices_done();
	return any;
}

static RT_NOINLINE void tell_mappings(void)
{
	struct text t;

	text_init(&t);
	text_str(&t, "rtheap: ");
	text_u64(&t, gauge_load(&gauges.mappings));
	text_str(&t, " mappings in use; the system allows ");
	text_u64(&t, sysmem_max_mappings());
	text_str(&t, " (vm.max_map_count)");
	handlers_warn(t.buf);
}

static RT_NOINLINE void tell_stack(uintptr_t sp)
{
	struct text t;

	text_init(&t);
	text_str(&t, "rtheap: a thread runs on a stack that is not known, with "
		     "stack pointer ");
	text_hex(&t, sp);
	text_str(&t, "; rt_stack_register can name it");
	handlers_warn(t.buf);
}

static RT_NOINLINE void tell_limit(void)
{
	struct text t;

	text_init(&t);
	text_str(&t, "rtheap: a collection left ");
	text_u64(&t, atomic_u64_load_relaxed(&pacer.told_least));
	text_str(&t, " bytes in use, more than the memory limit of ");
	text_u64(&t, atomic_u64_load_relaxed(&pacer.told_limit));
	handlers_warn(t.buf);
}

// may_warn tells whether the warn handler may be called.  It runs neither in a
// no-GC stretch nor in the caller's own stop.  answer is what door_attached_now
// returned at first: a handler may since have begun a stretch or a stop,
// detached the thread, or entered a region.  Then the rest is told later.
static bool may_warn(int answer)
{
	return !door_nogc() && !door_stopper() &&
	       door_attached_now(false) == answer;
}

RT_NOINLINE bool handlers_warn_due(void)
{
	int answer = door_attached_now(false);
	bool mappings, stack, limit;
	uintptr_t sp;

	mappings = may_warn(answer) && sysmem_take_warning();
	if (mappings)
		tell_mappings();
	stack = may_warn(answer) && stacks_take_warning(&sp);
	if (stack)
		tell_stack(sp);
	limit = may_warn(answer) && pacer_take_warning();
	if (limit)
		tell_limit();
	return mappings || stack || limit;
}

void handlers_set_warn(rt_text_fn *fn, void *arg)
{
	mutex_lock(&handlers.lock);
	handlers.warn = fn;
	handlers.warn_arg = arg;
	mutex_unlock(&handlers.lock);
}

// ---- destructors ----

// This thread is in the ready callback.
static __thread bool telling __attribute__((tls_model("initial-exec")));

bool handlers_telling_ready(void)
{
	return telling;
}

// tell calls the ready callback, which may collect and so be called again.
static void tell(rt_ready_fn *fn, size_t n, void *arg)
{
	struct hostcall before =
	    hostcall_begin("ready callback", NULL, (uintptr_t)fn);
	const bool outer = telling;

	check_caller();
	telling = true;
	fn(n, arg);
	telling = outer;
	hostcall_end(&before);
}

void handlers_set_ready(rt_ready_fn *fn, void *arg)
{
	mutex_lock(&handlers.lock);
	handlers.ready = fn;
	handlers.ready_arg = arg;
	mutex_unlock(&handlers.lock);
}

void handlers_tell_ready(size_t n)
{
	rt_ready_fn *fn;
	void *arg;

	mutex_lock(&handlers.lock);
	fn = handlers.ready;
	arg = handlers.ready_arg;
	mutex_unlock(&handlers.lock);
	if (fn)
		tell(fn, n, arg);
}

// ---- forks ----

void handlers_fork_lock(void)
{
	mutex_lock(&handlers.lock);
}

void handlers_fork_unlock(void)
{
	mutex_unlock(&handlers.lock);
}
