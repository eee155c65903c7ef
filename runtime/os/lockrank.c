// The order of locks, checked in debug builds.
#include "runtime/os/lockrank.h"

#include "runtime/os/throw.h"

// The locks that the calling thread holds, one bit a rank.  Ranks rise
// strictly, so a thread holds each at most once, and a set is enough.  Locks
// may be released in any order.  Only debug builds touch the set.  With the
// initial-exec model an access never allocates.
static _Thread_local uint32_t held_mask
    __attribute__((tls_model("initial-exec")));
static_assert(LOCKRANK_COUNT <= 32, "one bit a rank");

static const char *const lockrank_names[LOCKRANK_COUNT] = {
    [LOCKRANK_NONE] = "none",
    [LOCKRANK_ASK] = "ask",
    [LOCKRANK_ROOTS] = "roots",
    [LOCKRANK_KINDS] = "kinds",
    [LOCKRANK_PACER] = "pacer",
    [LOCKRANK_ALLP] = "allp",
    [LOCKRANK_STACKPOOL] = "stackpool",
    [LOCKRANK_WORK] = "work",
    [LOCKRANK_WORKBUF] = "workbuf",
    [LOCKRANK_GROWTH] = "growth",
    [LOCKRANK_MHEAP] = "mheap",
    [LOCKRANK_HUGEPAGES] = "hugepages",
    [LOCKRANK_FREELIST] = "freelist",
    [LOCKRANK_MCACHE] = "mcache",
    [LOCKRANK_READER] = "reader",
    [LOCKRANK_HEAPSTATS] = "heapstats",
    [LOCKRANK_PERSISTENT] = "persistent",
    [LOCKRANK_HANDLERS] = "handlers",
    [LOCKRANK_HANDLES] = "handles",
};

const char *lockrank_name(enum lockrank rank)
{
	const char *name = NULL;

	if ((unsigned)rank < LOCKRANK_COUNT)
		name = lockrank_names[rank];
	return name ? name : "unknown";
}

// innermost_held returns the highest rank held.  The set must not be empty.
static enum lockrank innermost_held(void)
{
	return (enum lockrank)(31 - __builtin_clz(held_mask));
}

RT_NORETURN static void throw_order(enum lockrank wanted)
{
	struct text t;

	text_init(&t);
	text_str(&t, "rtheap: lock ");
	text_str(&t, lockrank_name(wanted));
	text_str(&t, " wanted while holding lock ");
	text_str(&t, lockrank_name(innermost_held()));
	text_str(&t, "\n");
	throw_text(&t, "lockrank: wrong order");
}

RT_NORETURN static void throw_rank(const char *what, enum lockrank rank)
{
	struct text t;

	text_init(&t);
	text_str(&t, "rtheap: lock ");
	text_str(&t, lockrank_name(rank));
	text_str(&t, "\n");
	throw_text(&t, what);
}

void lockrank_acquire(enum lockrank rank)
{
	if (!RT_DEBUG_BUILD)
		return;
	if (rank == LOCKRANK_NONE || (unsigned)rank >= LOCKRANK_COUNT)
		throw_value("lockrank: lock without a rank", "rank", rank);
	if (held_mask >> rank)
		throw_order(rank);
	held_mask |= 1U << rank;
}

void lockrank_release(enum lockrank rank)
{
	if (!RT_DEBUG_BUILD)
		return;
	if ((unsigned)rank >= LOCKRANK_COUNT || !(held_mask >> rank & 1))
		throw_rank("lockrank: released but not held", rank);
	held_mask &= ~(1U << rank);
}

void lockrank_look(void)
{
	if (held_mask)
		throw_rank("lockrank: held while parking", innermost_held());
}
