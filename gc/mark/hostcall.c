// Records callbacks of the host, and names them.
#include "gc/mark/hostcall.h"

#include "runtime/os/oscall.h"
#include "runtime/os/throw.h"
#include "runtime/pages/arena.h"
#include "gc/mark/layout.h"

enum { STDERR = 2 };

// The innermost callback of this thread.
static __thread struct hostcall now __attribute__((tls_model("initial-exec")));

struct hostcall hostcall_swap(struct hostcall c)
{
	struct hostcall before = now;

	now = c;
	return before;
}

struct hostcall hostcall_owned(const char *what, const rt_type *type,
			       uintptr_t code, uintptr_t obj)
{
	uint64_t page = arena_offset(obj) >> RT_PAGE_SHIFT;
	unsigned kind = pageword_kind(arena_pageword(page));
	const char *name = layouts[kind].name;
	struct hostcall c = {.what = what, .code = code};

	if (type && type->name) {
		c.owner = "type";
		c.name = type->name;
	} else {
		c.owner = "kind";
		c.name = name[0] != 0 ? name : NULL;
		c.kind = kind;
	}
	return c;
}

// was_left tells whether the host has left the callback by longjmp or by an
// exception.
static RT_NOINLINE bool was_left(const struct hostcall *c)
{
	return c->mark && !framemark_calls(c->mark, __builtin_frame_address(0));
}

void hostcall_tell(const char *function)
{
	struct text t;

	if (was_left(&now))
		now = (struct hostcall){.what = NULL};
	if (!now.what)
		return;
	text_init(&t);
	text_str(&t, "rtheap: ");
	text_str(&t, function);
	text_str(&t, " must not be called in the ");
	text_str(&t, now.what);
	text_str(&t, " at ");
	text_hex(&t, now.code);
	if (now.owner) {
		text_str(&t, " of ");
		text_str(&t, now.owner);
	}
	if (now.name) {
		text_str(&t, " ");
		text_str(&t, now.name);
	} else if (now.owner) {
		text_str(&t, " ");
		text_u64(&t, now.kind);
	}
	t.buf[t.len] = '\n'; // in place of the null byte at the end
	oscall_write(STDERR, t.buf, t.len + 1);
}
