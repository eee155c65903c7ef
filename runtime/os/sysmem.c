// Address space: mappings, their guards, and the gauges that count them.
#include "runtime/os/sysmem.h"

#include "runtime/os/oscall.h"
#include "runtime/os/throw.h"

enum { SYSMEM_PAGE_MIN = 4 << 10, SYSMEM_PAGE_MAX = 64 << 10 };

// More than any address space has.  Sizes and alignments are compared with it
// first, so no sum of a few of them wraps.
#define SIZE_LIMIT (UINT64_C(1) << 56)

// The statics of this file have no check: each is one value that the system has
// told, or a state that depends on no other variable.

// The physical page size; written before the heap is ready.
static size_t page_size = SYSMEM_PAGE_MIN;

// How the process locks memory; written like page_size, and in the child of a
// fork.  In a process that locks memory, address space is reserved unlocked,
// since all that is locked counts towards RLIMIT_MEMLOCK.  Each part is locked
// when it becomes usable.
static enum oscall_locking locking;

// ---- counting mappings ----

enum {
	MAX_MAPPINGS = 65530, // Linux's default
	// Guard, memory, guard.
	MAPPINGS_ALLOC = 3,
	// Guard, usable part, the page behind it (sysmem_prepare), rest.
	MAPPINGS_RESERVE = 4,
};

static uint64_t max_mappings = MAX_MAPPINGS; // written like page_size
atomic_u32 sysmem_warning;

uint64_t sysmem_max_mappings(void)
{
	return max_mappings;
}

static bool is_many(uint64_t n)
{
	return n >= max_mappings / 5 * 4;
}

bool sysmem_many_mappings(void)
{
	return is_many(gauge_load(&gauges.mappings));
}

void sysmem_count_mappings(int64_t n)
{
	uint64_t now = atomic_u64_add_relaxed(&gauges.mappings, (uint64_t)n);

	if (n > 0 && is_many(now))
		atomic_u32_cas_relaxed(&sysmem_warning, SYSMEM_WARNING_NONE,
				       SYSMEM_WARNING_DUE);
}

bool sysmem_take_warning(void)
{
	return atomic_u32_cas_relaxed(&sysmem_warning, SYSMEM_WARNING_DUE,
				      SYSMEM_WARNING_TAKEN);
}

void sysmem_init(void)
{
	size_t bytes = oscall_page_size();
	uint64_t mappings = oscall_max_mappings();

	max_mappings = mappings != 0 ? mappings : MAX_MAPPINGS;

	if (!base_is_pow2(bytes) || bytes < SYSMEM_PAGE_MIN ||
	    bytes > SYSMEM_PAGE_MAX)
		bytes = SYSMEM_PAGE_MIN;
	page_size = bytes;
	locking = oscall_locking(page_size);
}

void sysmem_fork_child(void)
{
	locking = OSCALL_LOCK_NONE;
}

bool sysmem_locking(void)
{
	return locking != OSCALL_LOCK_NONE;
}

bool sysmem_locked(void *p)
{
	if (sysmem_locking())
		return true;
	return oscall_locked(p, page_size);
}

size_t sysmem_page_size(void)
{
	return page_size;
}

size_t sysmem_round(size_t n)
{
	return base_align_up(n, page_size);
}

static bool is_aligned(const void *p, size_t align)
{
	return ((uintptr_t)p & (align - 1)) == 0;
}

// ready_add adds n, which may be negative, to the bytes that are usable.
static void ready_add(int64_t n)
{
	gauge_add(&gauges.mapped_ready, n);
}

// ---- guards ----

// Every mapping has a guard on either side, a protected physical page.
// around_size returns the size of n bytes with both.
static size_t around_size(size_t n)
{
	return n + 2 * page_size;
}

// unmap unmaps [p, p+n) and its guards.  Returns false if the system refuses.
static bool unmap(void *p, size_t n)
{
	return oscall_unmap((char *)p - page_size, around_size(n)) == 0;
}

bool sysmem_protect(void *p, size_t n)
{
	return oscall_uncommit(p, n) == 0;
}

bool sysmem_unprotect(void *p, size_t n)
{
	uintptr_t base = base_align_down((uintptr_t)p, page_size);
	uintptr_t limit = sysmem_round((uintptr_t)p + n);

	return oscall_commit((void *)base, limit - base) == 0;
}

// ---- alloc, free ----

// If the system refuses to protect a guard, it is a page of zeros that no code
// uses.
void *sysmem_alloc(size_t n, atomic_u64 *stat, const char *name)
{
	if (n > SIZE_LIMIT)
		return NULL;
	n = sysmem_round(n);

	char *around = oscall_map(around_size(n));
	if (!around)
		return NULL;
	char *p = around + page_size;
	sysmem_protect(around, page_size);
	sysmem_protect(p + n, page_size);
	oscall_set_name(around, around_size(n), name);
	gauge_add(stat, (int64_t)n);
	ready_add((int64_t)n);
	sysmem_count_mappings(MAPPINGS_ALLOC);
	return p;
}

void sysmem_free(void *p, size_t n, atomic_u64 *stat)
{
	n = sysmem_round(n);
	if (!unmap(p, n))
		return;
	gauge_add(stat, -(int64_t)n);
	ready_add(-(int64_t)n);
	sysmem_count_mappings(-MAPPINGS_ALLOC);
}

// ---- reserve ----

// unmap_end unmaps [from, to), an end of a reservation.  If the system refuses,
// only these addresses are lost: they hold no memory.  An empty range is always
// refused, which does no harm.
static void unmap_end(char *from, char *to)
{
	oscall_unmap(from, (size_t)(to - from));
}

static char *reserve(size_t n)
{
	return sysmem_locking() ? oscall_reserve_unlocked(n, page_size)
				: oscall_reserve(n);
}

// reserve_aligned returns n bytes between guards, or NULL.  It first reserves
// no more than these bytes.  They often are aligned already, and they may fit
// where an address limit leaves no room for a surplus of align bytes.
static char *reserve_aligned(size_t n, size_t align)
{
	size_t around = around_size(n);
	char *p = reserve(around);

	if (!p)
		return NULL;
	if (is_aligned(p + page_size, align))
		return p + page_size;
	unmap_end(p, p + around);

	p = reserve(around + align);
	if (!p)
		return NULL;
	uintptr_t first = (uintptr_t)p + page_size;
	char *base = p + (base_align_up(first, align) - (uintptr_t)p);
	unmap_end(p, base - page_size);
	unmap_end(base + n + page_size, p + around + align);
	return base;
}

void *sysmem_reserve(size_t n, size_t align, const char *name)
{
	// Memory that is released page by page must begin at a page.
	align = base_max(align, page_size);
	if (n > SIZE_LIMIT || align > SIZE_LIMIT)
		return NULL;
	n = sysmem_round(n);

	char *p = reserve_aligned(n, align);
	if (!p)
		return NULL;
	oscall_dump(p - page_size, around_size(n), false);
	oscall_small_pages(p - page_size, around_size(n));
	oscall_set_name(p - page_size, around_size(n), name);
	sysmem_count_mappings(MAPPINGS_RESERVE);
	return p;
}

bool sysmem_unreserve(void *p, size_t n)
{
	if (!unmap(p, sysmem_round(n)))
		return false;
	sysmem_count_mappings(-MAPPINGS_RESERVE);
	return true;
}

// sysmem_prepare makes one page more than n bytes part of core dumps.  That
// page holds nothing.  When a usable part grows in place, each of the two
// system calls then moves a border between mappings that exist already.
// Without the page, the first call would split a mapping, and the second would
// join the part to another.  The system refuses a split if there are as many
// mappings as it allows.
bool sysmem_prepare(void *p, size_t n)
{
	int error;

	oscall_dump(p, n + page_size, true);
	error = oscall_commit(p, n);
	if (error != 0)
		return false;
	if (!sysmem_locking() ||
	    oscall_lock(p, n, locking == OSCALL_LOCK_ON_FAULT) == 0)
		return true;
	sysmem_unprepare(p, n);
	return false;
}

void sysmem_unprepare(void *p, size_t n)
{
	if (sysmem_locking()) { // locking has brought the memory in
		oscall_unlock(p, n);
		sysmem_release_inside(p, n);
	}
	oscall_uncommit(p, n);
	oscall_dump((char *)p + page_size, n, false);
}

bool sysmem_map(void *p, size_t n, atomic_u64 *stat)
{
	if (!sysmem_prepare(p, n))
		return false;
	gauge_add(stat, (int64_t)n);
	return true;
}

void sysmem_used(size_t n)
{
	ready_add((int64_t)n);
}

bool sysmem_populate(void *p, size_t n)
{
	uintptr_t base = base_align_down((uintptr_t)p, page_size);
	uintptr_t limit = sysmem_round((uintptr_t)p + n);

	return oscall_populate((void *)base, limit - base) == 0;
}

bool sysmem_release(void *p, size_t n)
{
	int error;

	if (!is_aligned(p, page_size) || n % page_size != 0)
		throw_value("sysmem_release: not whole pages", "n", n);
	error = oscall_release(p, n);
	if (error != 0)
		return false;
	ready_add(-(int64_t)n);
	return true;
}

bool sysmem_release_inside(void *p, size_t n)
{
	uintptr_t base = sysmem_round((uintptr_t)p);
	uintptr_t limit = base_align_down((uintptr_t)p + n, page_size);

	return base >= limit || oscall_release((void *)base, limit - base) == 0;
}

bool sysmem_huge_pages(void *p, size_t n)
{
	return oscall_huge_pages(p, n) == 0;
}

bool sysmem_small_pages(void *p, size_t n)
{
	return oscall_small_pages(p, n) == 0;
}

bool sysmem_collapse(void *p, size_t n)
{
	return oscall_collapse(p, n) == 0;
}

bool systable_init(struct systable *t, size_t n, atomic_u64 *stat,
		   const char *name)
{
	size_t align = n >= SYSMEM_HUGE_PAGE ? SYSMEM_HUGE_PAGE : page_size;
	char *base = sysmem_reserve(n, align, name);

	if (!base)
		return false;
	*t = (struct systable){
	    .base = base, .reserved = sysmem_round(n), .stat = stat};
	RT_CHECK(systable_check(t));
	return true;
}

bool systable_grow(struct systable *t, size_t n)
{
	size_t ready = systable_ready(t);

	if (n <= ready)
		return true;
	if (n > t->reserved)
		return false;

	size_t more = sysmem_round(n) - ready;
	if (!sysmem_map(t->base + ready, more, t->stat))
		return false;
	sysmem_used(more);
	atomic_u64_store_relaxed(&t->ready, ready + more);
	RT_CHECK(systable_check(t));
	return true;
}

void systable_fini(struct systable *t)
{
	if (sysmem_unreserve(t->base, t->reserved)) {
		gauge_add(t->stat, -(int64_t)systable_ready(t));
		ready_add(-(int64_t)systable_ready(t));
	}
	*t = (struct systable){0};
}

const char *systable_check(const struct systable *t)
{
	if (!t->base || !is_aligned(t->base, page_size))
		return "table begins inside a physical page";
	if (t->reserved % page_size != 0)
		return "table's reservation ends inside a physical page";
	if (systable_ready(t) > t->reserved)
		return "table is longer than its reservation";
	if (systable_ready(t) % page_size != 0)
		return "table ends inside a physical page";
	if (!t->stat)
		return "table has no gauge";
	return NULL;
}
