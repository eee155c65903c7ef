// statics.c - finds static data, and copies it.
#include "gc/mark/statics.h"

#include <errno.h>
#include <link.h>
#include <string.h>

#include "runtime/os/oscall.h"
#include "runtime/os/throw.h"
#include "runtime/os/sysmem.h"
#include "runtime/world/proc.h"
#include "runtime/world/stw.h"
#include "gc/mark/roots.h"

enum { PHDRS = 8 }; // program headers that are read at once

struct statics statics;

// In the static library the variables of this library are in sections of their
// own (Makefile.am), so the linker knows these bounds.  Elsewhere they are
// null.
#define BOUND extern char __attribute__((weak, visibility("hidden")))
BOUND __start_rtheap_data[];
BOUND __stop_rtheap_data[];
BOUND __start_rtheap_bss[];
BOUND __stop_rtheap_bss[];

// ---- reading ----

static int peek(uint32_t tid, void *to, uintptr_t from, size_t n)
{
	return oscall_peek(tid, to, from, n);
}

// copy_plainly copies words, without a sanitizer's checks, because the host may
// be writing there.
RT_NO_SANITIZE
static void copy_plainly(void *to, uintptr_t from, size_t n)
{
	volatile char *at = to;
	const volatile char *source = (const volatile char *)from;

	while (n-- != 0)
		*at++ = *source++;
}

// copy returns false if some of [from, from + n) cannot be read.  The system
// agreed to copy when static data became roots.  If it refuses now, the data
// must be read all the same, and no unattached thread may unload it meanwhile.
static bool copy(uint32_t tid, void *to, uintptr_t from, size_t n)
{
	int error = peek(tid, to, from, n);

	if (error == EFAULT)
		return false;
	if (error)
		copy_plainly(to, from, n);
	return true;
}

size_t statics_copy(uint32_t tid, uintptr_t *to, size_t room, uintptr_t *lo,
		    uintptr_t hi)
{
	size_t page = sysmem_page_size();
	size_t n = base_min(hi - *lo, room * sizeof *to);
	uintptr_t from = *lo;

	if (copy(tid, to, from, n)) {
		*lo += n;
		return n / sizeof *to;
	}
	n = base_min(n, base_align_down(from, page) + page - from);
	*lo += n;
	return copy(tid, to, from, n) ? n / sizeof *to : 0;
}

// ---- one object ----

// add_segment adds the writable segment [lo, hi).  If there is no room, the
// last segment is widened to include it; unmapped memory between the two is
// skipped later.
static void add_segment(struct statics_walk *walk, uintptr_t lo, uintptr_t hi)
{
	struct statics_range *s = walk->segment;

	if (walk->n == STATICS_SEGMENTS) {
		s[walk->n - 1].lo = base_min(s[walk->n - 1].lo, lo);
		s[walk->n - 1].hi = base_max(s[walk->n - 1].hi, hi);
		return;
	}
	s[walk->n++] = (struct statics_range){lo, hi};
}

static void take_phdr(struct statics_walk *walk, uintptr_t bias,
		      const ElfW(Phdr) * ph)
{
	uintptr_t lo = bias + ph->p_vaddr, hi = lo + ph->p_memsz;

	if (ph->p_type == PT_LOAD && (ph->p_flags & PF_W))
		add_segment(walk, lo, hi);
	if (ph->p_type == PT_GNU_RELRO)
		walk->hole[0] = (struct statics_range){
		    base_align_down(lo, sysmem_page_size()),
		    base_align_down(hi, sysmem_page_size())};
}

// has_own tells whether the object's segments contain this library's data.
static bool has_own(const struct statics_walk *walk)
{
	uintptr_t own = (uintptr_t)&statics;

	for (unsigned i = 0; i < walk->n; i++)
		if (own >= walk->segment[i].lo && own < walk->segment[i].hi)
			return true;
	return false;
}

// open_object finds the segments of an object.  If this library is a shared
// object, its own segments are left out.
static void open_object(struct statics_walk *walk, uintptr_t bias,
			uintptr_t phdr, uint32_t phnum)
{
	ElfW(Phdr) ph[PHDRS];

	walk->n = 0;
	walk->hole[0] = (struct statics_range){0, 0};
	for (uint32_t i = 0; i < phnum; i += PHDRS) {
		uint32_t n = base_min(phnum - i, (uint32_t)PHDRS);

		if (!copy(walk->tid, ph, phdr + i * sizeof *ph, n * sizeof *ph))
			return;
		for (uint32_t k = 0; k < n; k++)
			take_phdr(walk, bias, &ph[k]);
	}
	if (!__start_rtheap_bss && bias != statics.bias && has_own(walk))
		walk->n = 0;
}

static bool is_elf(const ElfW(Ehdr) * e)
{
	return memcmp(e->e_ident, ELFMAG, SELFMAG) == 0 &&
	       e->e_phentsize == sizeof(ElfW(Phdr));
}

// open_library opens a library.  Linkers make libraries so that the first byte
// of the file is at bias.
static void open_library(struct statics_walk *walk, uintptr_t bias)
{
	ElfW(Ehdr) e;

	walk->n = 0;
	if (copy(walk->tid, &e, bias, sizeof e) && is_elf(&e))
		open_object(walk, bias, bias + e.e_phoff, e.e_phnum);
}

// ---- the link map ----

// The first entry is the program's.
static uintptr_t first_entry(const struct statics_walk *walk)
{
	struct r_debug d;

	return statics.linker != 0 &&
		       copy(walk->tid, &d, statics.linker, sizeof d)
		   ? (uintptr_t)d.r_map
		   : 0;
}

// lenient tells whether a wrong link back no longer counts, because the thread
// that should set it does not run.
static bool lenient(const struct statics_walk *walk)
{
	return walk->restarts >= STATICS_RESTARTS;
}

// read_present reads the entry that the walk is at.  Returns false if that
// entry may have been taken out since the walk came to it: its memory may hold
// another entry by now, or none.
static bool read_present(const struct statics_walk *walk, struct link_map *l)
{
	struct link_map before;

	if (!copy(walk->tid, l, walk->entry, sizeof *l))
		return false;
	if (walk->before == 0) // the program's entry stays
		return true;
	return l->l_addr == walk->bias &&
	       (lenient(walk) || (uintptr_t)l->l_prev == walk->before) &&
	       copy(walk->tid, &before, walk->before, sizeof before) &&
	       (uintptr_t)before.l_next == walk->entry;
}

// advance moves to the entry at next.  Returns false if the link back of that
// entry does not lead to the present one.
static bool advance(struct statics_walk *walk, uintptr_t next)
{
	struct link_map l;

	if (!copy(walk->tid, &l, next, sizeof l) ||
	    (!lenient(walk) && (uintptr_t)l.l_prev != walk->entry))
		return false;
	walk->before = walk->entry;
	walk->entry = next;
	walk->bias = l.l_addr;
	return true;
}

// next_entry moves to the entry after the present one.  Returns false at the
// end of the list.
static bool next_entry(struct statics_walk *walk)
{
	struct link_map l;

	if (walk->entry == 0)
		walk->entry = first_entry(walk);
	if (walk->entry == 0)
		return false;
	for (;;) {
		if (read_present(walk, &l)) {
			if (!l.l_next)
				return false;
			if (advance(walk, (uintptr_t)l.l_next))
				return true;
			if (lenient(walk)) // no memory is there
				return false;
		}
		if (!lenient(walk))
			walk->restarts++;
		atomic_pause();
		walk->entry = first_entry(walk);
		walk->before = 0;
	}
}

// is_new tells whether the object of the present entry was not met before a
// restart.
static bool is_new(struct statics_walk *walk)
{
	for (unsigned i = 0; walk->restarts != 0 && i < walk->nmet; i++)
		if (walk->met[i] == walk->bias)
			return false;
	if (walk->nmet < STATICS_MET)
		walk->met[walk->nmet++] = walk->bias;
	return true;
}

void statics_begin(struct statics_walk *walk, uint32_t tid)
{
	RT_ASSERT(stw_stopped());
	*walk = (struct statics_walk){.tid = tid};
	if (!statics.on)
		return;
	walk->hole[1] = (struct statics_range){(uintptr_t)__start_rtheap_data,
					       (uintptr_t)__stop_rtheap_data};
	walk->hole[2] = (struct statics_range){(uintptr_t)__start_rtheap_bss,
					       (uintptr_t)__stop_rtheap_bss};
	open_object(walk, statics.bias, statics.phdr, statics.phnum);
}

// cut takes from *s its first part that lies in no hole.  Returns false if
// there is none.
static bool cut(const struct statics_walk *walk, struct statics_range *s,
		struct statics_range *r)
{
	uintptr_t end = s->hi;

	for (unsigned i = 0; i < STATICS_HOLES; i++) {
		const struct statics_range *h = &walk->hole[i];

		if (s->lo < h->lo) {
			end = base_min(end, h->lo);
		} else if (s->lo < h->hi) {
			s->lo = h->hi;
			end = s->hi;
			i = UINT32_MAX; // all of them again
		}
	}
	if (s->lo >= s->hi)
		return false;
	r->lo = base_align_up(s->lo, sizeof(uintptr_t));
	r->hi = base_align_down(end, sizeof(uintptr_t));
	s->lo = end;
	return true;
}

bool statics_next(struct statics_walk *walk, struct statics_range *r)
{
	if (!statics.on)
		return false;
	for (;;) {
		while (walk->n != 0)
			if (!cut(walk, &walk->segment[walk->n - 1], r))
				walk->n--;
			else if (r->lo < r->hi)
				return true;
		if (!next_entry(walk))
			return false;
		if (is_new(walk))
			open_library(walk, walk->bias);
	}
}

// ---- on and off ----

// find_linker finds where the dynamic linker keeps its link map.  Returns false
// if the program does not say where.
static bool find_linker(struct statics *found)
{
	const ElfW(Phdr) *ph = (const ElfW(Phdr) *)found->phdr;
	bool dynamic = false;

	for (uint32_t i = 0; i < found->phnum; i++) {
		const ElfW(Dyn) * d;

		dynamic |= ph[i].p_type == PT_INTERP;
		if (ph[i].p_type != PT_DYNAMIC)
			continue;
		d = (const ElfW(Dyn) *)(found->bias + ph[i].p_vaddr);
		for (; d->d_tag != DT_NULL; d++)
			if (d->d_tag == DT_DEBUG)
				found->linker = d->d_un.d_ptr;
	}
	return !dynamic || found->linker != 0;
}

// find_program finds the program itself.  It sleeps while another thread
// changes the list of objects.
static void find_program(struct statics *found)
{
	struct rt_proc *p = proc_self();

	context_save(&p->context.frame);
	proc_block(p);
	oscall_program(&found->bias, &found->phdr, &found->phnum);
	proc_unblock(p);
	context_keep();
}

int statics_set(bool on)
{
	struct statics found = {.on = on};

	if (on) {
		struct statics copied;

		find_program(&found);
		if (!find_linker(&found) ||
		    peek(oscall_gettid(), &copied, (uintptr_t)&found,
			 sizeof copied))
			return RT_ENOTSUP;
	}
	mutex_lock(&roots.lock);
	statics = found;
	mutex_unlock(&roots.lock);
	return RT_OK;
}

void statics_fini(void)
{
	statics = (struct statics){0};
}
