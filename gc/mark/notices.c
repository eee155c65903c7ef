// A row of lines, written in stops.
#include "gc/mark/notices.h"

#include <string.h>

#include "runtime/world/stw.h"

struct notices notices;

// Set while the calling thread has notices.telling.
static __thread bool telling __attribute__((tls_model("initial-exec")));

static void set_lines(uint32_t next, uint32_t n)
{
	notices.next = next;
	notices.n = n;
	atomic_u32_store_relaxed(&notices.left, n - next);
}

uint32_t notices_room(void)
{
	uint32_t left = notices.n - notices.next;

	RT_ASSERT(stw_stopped());
	memmove(notices.line, notices.line + notices.next,
		left * sizeof notices.line[0]);
	set_lines(0, left);
	RT_CHECK(notices_check(&notices));
	return NOTICES_MAX - left;
}

void notices_add(const struct text *t)
{
	RT_ASSERT(stw_stopped() && notices.n < NOTICES_MAX);
	notices.line[notices.n] = *t;
	set_lines(notices.next, notices.n + 1);
}

// The acquire pairs with the release in notices_done.  So this thread takes the
// line after the last one that another thread has taken.
bool notices_take(struct text *out)
{
	if (!telling && !atomic_u32_cas_acquire(&notices.telling, 0, 1))
		return false;
	telling = true;
	if (notices.next == notices.n)
		return false;
	*out = notices.line[notices.next];
	set_lines(notices.next + 1, notices.n);
	return true;
}

void notices_done(void)
{
	if (!telling)
		return;
	telling = false;
	// Pairs with the acquire in notices_take.
	atomic_u32_store_release(&notices.telling, 0);
}

void notices_fork_child(void)
{
	set_lines(0, 0);
	atomic_u32_store_relaxed(&notices.telling, telling);
}

void notices_fini(void)
{
	set_lines(0, 0);
}

const char *notices_check(const struct notices *all)
{
	if (all->n > NOTICES_MAX || all->next > all->n)
		return "more notices than there is room for";
	if (atomic_u32_load_relaxed(&all->left) != all->n - all->next)
		return "another number of notices is left";
	for (uint32_t i = all->next; i < all->n; i++)
		if (all->line[i].len >= sizeof all->line[i].buf ||
		    all->line[i].buf[all->line[i].len] != 0)
			return "notice has no end";
	return NULL;
}
