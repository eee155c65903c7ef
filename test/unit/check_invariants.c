// Every check of a struct's invariants passes for a heap in use, and names the
// invariant that was broken by hand.
#include "test/harness/kind.h"

#include <string.h>

#include "runtime/os/settings.h"
#include "runtime/pages/hugepages.h"
#include "runtime/spans/mcentral.h"
#include "runtime/spans/stackalloc.h"
#include "runtime/world/gcstats.h"
#include "runtime/world/cyclering.h"
#include "runtime/world/stoptable.h"
#include "gc/cycle/ask.h"
#include "gc/cycle/pacer.h"
#include "gc/cycle/sweep.h"
#include "gc/cycle/worker.h"
#include "gc/cycle/scavenger.h"
#include "gc/mark/drops.h"
#include "gc/mark/rootfns.h"
#include "gc/mark/handles.h"
#include "gc/mark/notices.h"
#include "gc/mark/sites.h"
#include "gc/mark/targets.h"
#include "gc/mark/gain.h"
#include "test/unit/invariants_cases.h"

// The structs that are broken.  Those that are a part of the heap are copies,
// if that is possible.  The records that they lead to belong to the heap.
static struct {
	struct mutex mutex;
	struct note note;
	struct sema sema;
	struct gauges gauges;
	struct epoch epoch;
	struct systable table;
	struct persistent persistent;
	struct fixalloc fixalloc;
	struct slab slab;
	struct lfstack stack;
	struct {
		RT_CACHE_ALIGNED struct lfnode link;
	} node[3];
	struct pausering pausering;
	struct gcstats gcstats;
	struct gcstats_cycles cycles;
	struct cyclering ring;
	struct heapstats heapstats;
	struct heapstats_totals totals;
	struct procs procs;
	struct rt_proc p[3]; // a host's, a helper's, a free one
	struct world world;
	struct scavindex scav;
	struct pagealloc pages;
	struct pagecache cache;
	struct arena arena;
	struct kinds kinds;
	struct mheap mheap;
	struct mheap_cache mheap_cache;
	struct rt_mcache *mc; // the calling thread's
	struct rt_proc *self;
	struct mcache_slot *slot; // one with a span
	struct mspan *span;
	unsigned slot_idx;
	struct mcache_blocks blocks;
	struct stackpool stackpool;
	struct mspan stacks;
	struct gain gain;
	struct crew_calls crew;
	struct work work, other;
	struct workbuf buf[2];
	struct work_agreed agreed;
	struct work_pool pool;
	struct mspan buffers;
	struct roots roots;
	struct roots_label label;
	struct rootfns rootfns;
	struct rootfn rootfn;
	struct handles handles;
	struct drops drops;
	struct mspan *dead_span; // queued, with a dead object
	struct mspan waiting;	 // not queued
	struct targets targets;
	struct sites sites;
	struct site site[2];
	uint32_t site_slot[4];
	struct notices notices;
	struct pacer pacer;
	struct ask_queue asks;
	struct ask ask[2];
	struct sweep sweep;
	struct workers workers;
	struct scavenger scavenger;
	struct marker marker;
	struct worker worker;
} x;

#define U64(field, v) atomic_u64_store_relaxed(&(field), (uint64_t)(v))
#define U32(field, v) atomic_u32_store_relaxed(&(field), (uint32_t)(v))
#define PTR(field, v) atomic_ptr_store_relaxed(&(field), (v))

static uintptr_t *objects;
enum { NOBJECTS = 3000 };

// ---- a heap, and structs like a heap's ----

// make_dead makes an object that a collection will queue to be dropped.
static void make_dead(void)
{
	ck_assert_int_eq(kind_make(.layout = RT_LAYOUT_WORDS,
				   .flags = RT_KIND_DROP, .drop = drop_nothing,
				   .number = RT_KIND_MAX),
			 RT_KIND_MAX);
	ck_assert_ptr_nonnull(rt_alloc_kind(RT_KIND_MAX, 64));
}

static void use_heap(void)
{
	rt_config c = heap_config(HEAP_QUIET);

	c.max_heap = 256 << 20;
	c.huge_pages = 1;
	heap_start_exact(c);
	objects = heap_table(NOBJECTS, RT_ROOT_EXACT);
	for (unsigned i = 0; i < NOBJECTS; i++)
		objects[i] = (uintptr_t)rt_alloc(16 + i % 500);
	ck_assert_ptr_nonnull(rt_stack_alloc(2048));
	ck_assert_ptr_nonnull(rt_handle_new(NULL));
	make_dead();
	ck_assert_int_eq(rt_gc(), RT_OK);
	for (unsigned i = 0; i < NOBJECTS; i += 3)
		objects[i] = (uintptr_t)rt_alloc(16 + i % 300);
	ck_assert_ptr_nonnull(rt_stack_alloc(2048));
}

// copy_found fills the structs in which tracecheck keeps what it has found.
static void copy_found(void)
{
	struct site key = {.kind = 3, .offset = 8};
	struct site_found found = {.at = 8, .how = SITE_LOST};

	ck_assert(targets_begin(&x.targets, 3));
	targets_add(&x.targets, (uintptr_t)&x, 8);
	ck_assert(sites_note(&key, &found));
	x.site[0] = sites.site[0];
	x.site_slot[0] = x.site_slot[1] = 1;
	x.site_slot[2] = x.site_slot[3] = 1;
	x.sites = (struct sites){x.site, x.site_slot, 1, 2};
	sites_fini();
	x.notices.n = 1;
	U32(x.notices.left, 1);
}

static void copy_parts(void)
{
	x.table = arena.table[0];
	x.persistent = persistent;
	x.fixalloc = mheap.spans;
	x.slab = mcache_blocks.mcaches.slab;
	x.gauges = gauges;
	x.epoch = epoch;
	x.gcstats = gcstats;
	gcstats_read_cycles(&x.cycles);
	x.heapstats = heapstats;
	x.world = world;
	x.pages = mheap.pages;
	x.scav = mheap.pages.scav;
	x.arena = arena;
	x.kinds = kinds;
	x.mheap = mheap;
	x.blocks = mcache_blocks;
	x.pacer = pacer;
	x.roots = roots;
	x.handles = handles;
	x.drops = drops;
	x.dead_span = drops.next;
	copy_found();
	x.rootfn.fn = tell_nothing;
	x.rootfns = (struct rootfns){.entry = &x.rootfn, .n = 1, .room = 1};
	x.sweep = sweep;
	x.crew = crew_calls;
	x.self = proc_self();
	x.mc = rt_thread_tls->mc;
	x.mheap_cache = x.mc->heap;
	x.cache = x.mc->heap.pages;
	while (!x.mc->slots[x.slot_idx].span)
		x.slot_idx++;
	x.slot = &x.mc->slots[x.slot_idx];
	x.span = x.slot->span;
}

static void make_procs(void)
{
	x.procs = (struct procs){
	    .lock = RT_MUTEX_INIT(LOCKRANK_ALLP),
	    .free = &x.p[2],
	    .count = 2,
	    .made = 3,
	};
	for (unsigned i = 0; i < 3; i++)
		x.p[i].id = i;
	atomic_u32_store_relaxed(&x.procs.attached, 1);
	atomic_ptr_store_relaxed(&x.procs.first, &x.p[0]);
	atomic_ptr_store_relaxed(&x.p[0].next, &x.p[1]);
	x.p[1].prev = &x.p[0];
	x.p[1].flags = PROC_HELPER;
	atomic_u32_store_relaxed(&x.p[0].state, PROC_RUNNING);
	atomic_u32_store_relaxed(&x.p[1].state, PROC_BLOCKED);
	x.p[0].stopper = true;
}

static void make_work(void)
{
	x.work.bottom = x.work.t.top = x.work.first.entry;
	x.work.t.limit = x.work.bottom + WORK_ENTRIES;
	x.work.high = x.work.t.limit - WORK_FEW;
	x.work.full = &x.buf[0];
	x.work.spare = &x.buf[1];
	x.work.nfull = x.work.nspare = 1;
	x.work.busy = true;
	x.agreed = (struct work_agreed){
	    .lock = RT_MUTEX_INIT(LOCKRANK_WORK),
	    .waiters = &x.other,
	    .open = true,
	};
	atomic_u32_store_relaxed(&x.agreed.waiting, 1);
	atomic_u32_store_relaxed(&x.agreed.busy, 1);
	x.buffers.use = MSPAN_WORK;
	x.pool = (struct work_pool){
	    .lock = RT_MUTEX_INIT(LOCKRANK_WORKBUF),
	    .empty = &x.buf[0],
	    .spans = &x.buffers,
	    .nspans = 1,
	};
}

static void make_rest(void)
{
	x.mutex = (struct mutex)RT_MUTEX_INIT(LOCKRANK_MHEAP);
	for (unsigned i = 0; i < 3; i++)
		lfstack_push(&x.stack, &x.node[i].link);
	x.stacks = (struct mspan){
	    .use = MSPAN_STACK, .elemsize = STACKALLOC_MIN, .stack_used = 1};
	x.stackpool = (struct stackpool){
	    .lock = RT_MUTEX_INIT(LOCKRANK_STACKPOOL),
	    .partial = {&x.stacks},
	};
	x.gain.cost[0] = x.gain.cost[1] = (struct gain_cost){1, 1};
	x.gain.off = true;
	x.ask[0].next = &x.ask[1];
	x.asks = (struct ask_queue){
	    .lock = RT_MUTEX_INIT(LOCKRANK_ASK),
	    .led = true,
	    .first = &x.ask[0],
	    .last = &x.ask[1],
	};
	x.workers.all = &x.worker;
	x.workers.records = 1;
	x.cache.nrecent = 2;
	x.cache.recent[0] = 64;
	x.cache.recent[1] = 128;
}

static void prepare(void)
{
	use_heap();
	ck_assert_int_eq(rt_stop_the_world(RT_STOP_HOST), RT_OK);
	copy_parts();
	make_procs();
	make_work();
	make_rest();
}

// ---- the checks ----

#define CHECKS(X)                                                              \
	X(mutex_check(&x.mutex))                                               \
	X(note_check(&x.note))                                                 \
	X(sema_check(&x.sema))                                                 \
	X(gauges_check(&x.gauges))                                             \
	X(epoch_check(&x.epoch))                                               \
	X(systable_check(&x.table))                                            \
	X(persistent_check(&x.persistent))                                     \
	X(fixalloc_check(&x.fixalloc))                                         \
	X(slab_check(&x.slab))                                                 \
	X(lfstack_check(&x.stack))                                             \
	X(pausering_check(&x.pausering))                                       \
	X(gcstats_check(&x.gcstats))                                           \
	X(gcstats_cycles_check(&x.cycles))                                     \
	X(cyclering_check(&x.ring))                                            \
	X(cyclering_check(&cyclering))                                         \
	X(stoptable_check(&stoptable))                                         \
	X(heapstats_check(&x.heapstats))                                       \
	X(heapstats_totals_check(&x.totals))                                   \
	X(heapgauge_check(&heapgauges))                                        \
	X(proc_check(&x.p[0]))                                                 \
	X(proc_check(&x.p[1]))                                                 \
	X(procs_check(&x.procs))                                               \
	X(procs_check(&procs))                                                 \
	X(stw_check(&x.world))                                                 \
	X(scavindex_check(&x.scav))                                            \
	X(pagealloc_check(&x.pages))                                           \
	X(pagecache_check(&x.cache))                                           \
	X(arena_check(&x.arena))                                               \
	X(hugepages_check(&hugepages))                                         \
	X(kinds_check(&x.kinds))                                               \
	X(mheap_check(&x.mheap))                                               \
	X(mheap_cache_check(&x.mheap_cache))                                   \
	X(freelist_check_shared())                                             \
	X(mcache_check(x.mc))                                                  \
	X(mcache_blocks_check(&x.blocks))                                      \
	X(stackpool_check(&x.stackpool))                                       \
	X(stackpool_check(&stackpool))                                         \
	X(mspan_check(x.slot->span))                                           \
	X(gain_check(&x.gain))                                                 \
	X(crew_check(&x.crew))                                                 \
	X(work_check(&x.work))                                                 \
	X(work_agreed_check(&x.agreed))                                        \
	X(work_agreed_check(&work_agreed))                                     \
	X(work_pool_check(&x.pool))                                            \
	X(work_pool_check(&work_pool))                                         \
	X(roots_check(&x.roots))                                               \
	X(rootfns_check(&x.rootfns))                                           \
	X(handles_check(&x.handles))                                           \
	X(drops_check(&x.drops))                                               \
	X(mspan_check(x.dead_span))                                            \
	X(targets_check(&x.targets))                                           \
	X(sites_check(&x.sites))                                               \
	X(sites_check(&sites))                                                 \
	X(notices_check(&x.notices))                                           \
	X(notices_check(&notices))                                             \
	X(pacer_check(&x.pacer))                                               \
	X(ask_queue_check(&x.asks))                                            \
	X(sweep_check(&x.sweep))                                               \
	X(workers_check(&x.workers))                                           \
	X(scavenger_check(&x.scavenger))                                       \
	X(worker_check(&x.worker))                                             \
	X(grey_check(&x.marker))

TEST(a_heap_in_use_is_healthy)
{
	prepare();
#define X(check) ck_assert_msg(check == NULL, "%s: %s", #check, check);
	CHECKS(X)
#undef X
	heap_live();
}

// ---- the ways to break them ----

// scav_word returns the upper half of the first chunk's word in the scavenge
// index.  It has the pages in use, those in use when the cycle began, and
// whether the chunk is to be scavenged.  The lower half is the cycle.
static uint32_t *scav_word(void)
{
	return (uint32_t *)x.scav.table.base + 1;
}

static pallocsum *sums(unsigned level)
{
	return (pallocsum *)x.pages.sums[level].base;
}

static struct pallocdata *pages(void)
{
	return pagealloc_chunk(&x.pages, 0);
}

static struct roots_entry *root(void)
{
	return &x.roots.entry[0];
}

static struct slab_region *region(void)
{
	return x.slab.regions;
}

// huge_state gives the first unit of the heap a state: WANTED (1), HUGE (2), or
// one that does not exist (3).
static void huge_state(uint8_t state)
{
	*(uint8_t *)hugepages.states.base = state;
}

static void no_bucket(void)
{
	memset(x.roots.bucket, 0xff, x.roots.room * sizeof *x.roots.bucket);
}

static void loop_of_roots(void)
{
	root()->next = 0;
	x.roots.bucket[0] = 0;
}

// keep_mark makes a marker keep a mark back.  A search for a mark begins at the
// entry of its hash.  This mark goes into a later entry: behind is the distance
// between the two.
static void keep_mark(unsigned behind)
{
	static atomic_u64 markword;
	unsigned i = (grey_hash(&markword) + behind) % GREY_KEPT;

	x.marker.kept[i] = (struct grey_kept){&markword, 1};
}

// drop_word marks the dead objects of a word as dropped.
static void drop_word(struct deadwords *d)
{
	for (unsigned turn = 0; turn < 2; turn++)
		deadbits_set(d, turn, deadbits_dead(d));
}

static const struct {
	const char *check;
	const char *text;
	const char *how;
} cases[] = {
#define X(check, text, ...) {#check, text, #__VA_ARGS__},
    CASES(X)
#undef X
};

// broken breaks an invariant and returns what its check says.
static const char *broken(unsigned i)
{
	unsigned n = 0;

#define X(check, text, ...)                                                    \
	if (n++ == i) {                                                        \
		__VA_ARGS__;                                                   \
		return check;                                                  \
	}
	CASES(X)
#undef X
	return "no such case";
}

TEST(a_broken_invariant_is_named, .n = RT_ARRAY_LEN(cases))
{
	const char *what;

	prepare();
	what = broken((unsigned)_i);
	ck_assert_msg(what != NULL, "%s: %s: not found", cases[_i].check,
		      cases[_i].how);
	ck_assert_msg(strcmp(what, cases[_i].text) == 0, "%s: %s: %s",
		      cases[_i].check, cases[_i].how, what);
}

// ---- verify asks all of them ----

static struct rt_proc other;

// break_heap breaks something of the heap, by number, and returns what verify
// says of that first.
static const char *break_heap(int i)
{
	switch (i) {
	case 0:
		U64(arena.table[3].ready, 0);
		return "table of the arena is too short";
	case 1:
		world.slowest = 99;
		return "slowest thread has a P that was never made";
	case 2:
		procs.made++;
		return "P is in no list";
	case 3:
		proc_self()->context.lo = 16;
		proc_self()->context.hi = 8;
		return "stack of a P ends before it begins";
	case 4:
		PTR(heapgauges.counted, &other);
		return "P is in the list of gauges but not counted";
	case 5:
		for (unsigned s = 0; s < HEAPSTATS_SLOTS; s++)
			U64(heapstats.slots[s].in_heap, 1);
		return "next slot of statistics was not cleared";
	case 6:
		U64(gauges.buckhash_sys, 1);
		return "buckhash_sys is not 0";
	case 7:
		U64(gcstats.pauses.begun, 77);
		return "pause is recorded in part";
	case 8:
		persistent.usable = SIZE_MAX;
		return "permanent memory is larger than its regions";
	case 9:
		hugepages.range[2].nstretches++;
		return "nstretches is not the number of stretches of HUGE "
		       "units";
	case 10:
		mheap.spans.inuse += sizeof(struct mspan);
		return "mspan_inuse differs from the mspans handed out";
	case 11:
		mcache_blocks.mcaches.n++;
		return "fewer blocks are kept than counted";
	case 12:
		stackpool.partial[0]->stack_order = 3;
		return "span of stacks is in the list of another order";
	case 13:
		rt_thread_tls->mc->slots[3].size++;
		return "slot has the wrong class or size";
	case 14:
		gain.off = true;
		return "helpers are off without a comparison";
	case 15:
		U32(crew_calls.call, 7);
		return "helpers are called for an unknown task";
	case 16:
		work_agreed.alone = true;
		return "marker is alone but not the only busy one";
	case 17:
		work_pool.nspans++;
		return "fewer spans of work buffers exist than are counted";
	case 18:
		no_bucket();
		return "root is in no bucket";
	case 19:
		pacer.found.heap_marked++;
		return "pacer shows another heap than was found";
	case 20:
		ask_queue.first = &x.ask[0];
		ask_queue.led = false;
		return "threads ask but none leads";
	case 21:
		U32(sweep.active, -1);
		return "number of active sweepers is negative";
	case 22:
		workers.records++;
		return "fewer records of helpers exist than are counted";
	case 23:
		mheap.pages.scav.cursor_bg = 1 << 20;
		return "cursor of the scavenge index is beyond the heap";
	default:
		mcentral_push(x.span);
		mcentral_push(x.span);
		return "lock-free stack has no end";
	}
}
enum { HEAP_CASES = 25 };

TEST(verify_reports_what_is_broken, .n = HEAP_CASES)
{
	struct rt_verify v;
	const char *text;

	prepare();
	heap_live();
	text = break_heap(_i);
	ck_assert_int_eq(rt_heap_verify(&v), RT_OK);
	ck_assert_uint_ge(v.errors, 1);
	ck_assert_msg(strstr(v.first, text) != NULL, "%s: %s", text, v.first);
}
