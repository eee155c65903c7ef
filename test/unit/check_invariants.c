// Every check of a struct's invariants passes for a heap in use, and names the
// one that was broken by hand.
#include "test/harness/heap.h"

#include <string.h>

#include "runtime/pages/hugepages.h"
#include "runtime/spans/mcentral.h"
#include "runtime/spans/stackalloc.h"
#include "runtime/world/gcstats.h"
#include "gc/cycle/ask.h"
#include "gc/cycle/pacer.h"
#include "gc/cycle/sweep.h"
#include "gc/cycle/worker.h"
#include "gc/mark/gain.h"

// The structs that are broken.  Those that are a part of the heap are copies,
// as far as that is possible.  What they lead to belongs to the heap.
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
	struct heapstats heapstats;
	struct heapstats_totals totals;
	struct procs procs;
	struct rt_proc p[3]; // a host's, a helper's, a free one
	struct world world;
	struct scavindex scav;
	struct pagealloc pages;
	struct pagecache cache;
	struct arena arena;
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
	struct pacer pacer;
	struct ask_queue asks;
	struct ask ask[2];
	struct sweep sweep;
	struct workers workers;
	struct worker worker;
} x;

static uintptr_t *objects;
enum { NOBJECTS = 3000 };

// ---- a heap, and structs like those of a heap ----

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
	ck_assert_int_eq(rt_gc(), RT_OK);
	for (unsigned i = 0; i < NOBJECTS; i += 3)
		objects[i] = (uintptr_t)rt_alloc(16 + i % 300);
	ck_assert_ptr_nonnull(rt_stack_alloc(2048));
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
	x.mheap = mheap;
	x.blocks = mcache_blocks;
	x.pacer = pacer;
	x.roots = roots;
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
	X(mheap_check(&x.mheap))                                               \
	X(mheap_cache_check(&x.mheap_cache))                                   \
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
	X(pacer_check(&x.pacer))                                               \
	X(ask_queue_check(&x.asks))                                            \
	X(sweep_check(&x.sweep))                                               \
	X(workers_check(&x.workers))

TEST(a_heap_in_use_is_healthy)
{
	struct rt_verify v;

	prepare();
#define X(check) ck_assert_msg(check == NULL, "%s: %s", #check, check);
	CHECKS(X)
#undef X
	ck_assert_int_eq(rt_heap_verify(&v), RT_OK);
	ck_assert_msg(v.errors == 0, "%s", v.first);
}

// ---- the ways to break them ----

#define U64(field, v) atomic_u64_store_relaxed(&(field), (uint64_t)(v))
#define U32(field, v) atomic_u32_store_relaxed(&(field), (uint32_t)(v))
#define PTR(field, v) atomic_ptr_store_relaxed(&(field), (v))

// The first chunk's word in the scavenge index: cycle, then pages in use, pages
// when the cycle began, and whether it is to be scavenged.
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

// huge_states makes the first units of the heap WANTED (1) or HUGE (2).
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

#define CASES_OS(X)                                                            \
	X(mutex_check(&x.mutex), "no known state", U32(x.mutex.state, 3))      \
	X(mutex_check(&x.mutex), "without a rank", x.mutex.rank = 0)           \
	X(mutex_check(&x.mutex), "without a rank",                             \
	  x.mutex.rank = LOCKRANK_COUNT)                                       \
	X(note_check(&x.note), "note in no known state", U32(x.note.woken, 3)) \
	X(sema_check(&x.sema), "not drawn", U32(x.sema.serving, 1))            \
	X(gauges_check(&x.gauges), "gauge is negative",                           \
	  U64(x.gauges.other_sys, -1))                                         \
	X(gauges_check(&x.gauges), "stack_inuse is not whole",                 \
	  U64(x.gauges.stack_inuse, 1))                                        \
	X(gauges_check(&x.gauges), "heap_mapped is not whole",                 \
	  U64(x.gauges.heap_mapped, RT_PAGE_SIZE))                             \
	X(gauges_check(&x.gauges), "stacks_sys", U64(x.gauges.stacks_sys, 1))  \
	X(gauges_check(&x.gauges), "buckhash_sys",                             \
	  U64(x.gauges.buckhash_sys, 1))                                       \
	X(gauges_check(&x.gauges), "more mspans in use",                       \
	  U64(x.gauges.mspan_sys, 0))                                          \
	X(gauges_check(&x.gauges), "more mcaches in use",                      \
	  U64(x.gauges.mcache_sys, 0))                                         \
	X(epoch_check(&x.epoch), "odd", U32(x.epoch.sweepgen, 3))              \
	X(systable_check(&x.table), "begins inside", x.table.base = NULL)      \
	X(systable_check(&x.table), "begins inside", x.table.base += 8)        \
	X(systable_check(&x.table), "reserves a part", x.table.reserved--)     \
	X(systable_check(&x.table), "longer than",                             \
	  U64(x.table.ready, x.table.reserved + 4096))                         \
	X(systable_check(&x.table), "ends inside", U64(x.table.ready, 8))      \
	X(systable_check(&x.table), "without a gauge", x.table.stat = NULL)    \
	X(persistent_check(&x.persistent), "mutex",                            \
	  U32(x.persistent.lock.state, 9))                                     \
	X(persistent_check(&x.persistent), "its last region",                  \
	  x.persistent.limit += 4096)                                          \
	X(persistent_check(&x.persistent), "more than its regions",            \
	  x.persistent.usable = SIZE_MAX)                                      \
	X(persistent_check(&x.persistent), "before it is usable",              \
	  x.persistent.next = x.persistent.ready + 1)                          \
	X(persistent_check(&x.persistent), "beyond its region",                \
	  x.persistent.ready = x.persistent.limit + 1)                         \
	X(fixalloc_check(&x.fixalloc), "possible size", x.fixalloc.size = 7)   \
	X(fixalloc_check(&x.fixalloc), "possible size",                        \
	  x.fixalloc.size = FIXALLOC_CHUNK + 8)                                \
	X(fixalloc_check(&x.fixalloc), "alignment", x.fixalloc.align = 3)      \
	X(fixalloc_check(&x.fixalloc), "alignment", x.fixalloc.align = 4096)   \
	X(fixalloc_check(&x.fixalloc), "without a gauge",                      \
	  x.fixalloc.stat = NULL)                                              \
	X(fixalloc_check(&x.fixalloc), "not whole objects",                    \
	  x.fixalloc.nchunk = 1)                                               \
	X(fixalloc_check(&x.fixalloc), "not whole objects",                    \
	  x.fixalloc.nchunk = 128 << 10)                                       \
	X(fixalloc_check(&x.fixalloc), "not whole objects",                    \
	  x.fixalloc.nchunk = 128;                                             \
	  x.fixalloc.chunk = NULL)                                             \
	X(fixalloc_check(&x.fixalloc), "more in use", x.fixalloc.inuse++)      \
	X(fixalloc_check(&x.fixalloc), "more in use",                          \
	  x.fixalloc.inuse = UINT64_C(1) << 40)                                \
	X(fixalloc_check(&x.fixalloc), "not aligned",                          \
	  x.fixalloc.list = (void *)((char *)&x + 8))                          \
	X(fixalloc_check(&x.fixalloc), "without end",                          \
	  x.fixalloc.list = (void *)&x.node[0];                                \
	  PTR(x.fixalloc.list->next, x.fixalloc.list))                         \
	X(slab_check(&x.slab), "no size", x.slab.size = 0)                     \
	X(slab_check(&x.slab), "without a gauge", x.slab.stat = NULL)          \
	X(slab_check(&x.slab), "without blocks", region()->base = NULL)        \
	X(slab_check(&x.slab), "whole words", region()->nblocks = 0)           \
	X(slab_check(&x.slab), "whole words", region()->nblocks++)             \
	X(slab_check(&x.slab), "more blocks ready",                            \
	  region()->ready = region()->nblocks + 1)                             \
	X(slab_check(&x.slab), "before it is ready", region()->ready = 0;      \
	  region()->free[0] &= ~UINT64_C(1))                                   \
	X(slab_check(&x.slab), "more blocks than it", x.slab.nblocks--)        \
	X(slab_check(&x.slab), "fewer blocks than it", x.slab.nblocks++)       \
	X(lfstack_check(&x.stack), "without end",                              \
	  U64(x.node[0].link.next, atomic_u64_load_relaxed(&x.stack.head)))

#define CASES_WORLD(X)                                                         \
	X(pausering_check(&x.pausering), "in part", U64(x.pausering.begun, 1)) \
	X(gcstats_check(&x.gcstats), "in part",                                \
	  U64(x.gcstats.pauses.begun, 99))                                     \
	X(gcstats_check(&x.gcstats), "number of pauses",                       \
	  U64(x.gcstats.pauses.begun, 99);                                     \
	  U64(x.gcstats.pauses.count, 99))                                     \
	X(gcstats_cycles_check(&x.cycles), "more forced",                      \
	  x.cycles.num_forced_gc = x.cycles.num_gc + 1)                        \
	X(gcstats_cycles_check(&x.cycles), "that there is not",                \
	  x.cycles.cpu.gc_assist++)                                            \
	X(gcstats_cycles_check(&x.cycles), "that there is not",                \
	  x.cycles.cpu.gc_dedicated++)                                         \
	X(gcstats_cycles_check(&x.cycles), "that there is not",                \
	  x.cycles.cpu.gc_idle++)                                              \
	X(gcstats_cycles_check(&x.cycles), "gc_total",                         \
	  x.cycles.cpu.gc_pause++)                                             \
	X(gcstats_cycles_check(&x.cycles), "scavenge_total",                   \
	  x.cycles.cpu.scavenge_assist++)                                      \
	X(gcstats_cycles_check(&x.cycles), "total CPU time",                   \
	  x.cycles.cpu.user++)                                                 \
	X(heapstats_check(&x.heapstats), "no such slot",                       \
	  U32(x.heapstats.gen, HEAPSTATS_SLOTS))                               \
	X(heapstats_check(&x.heapstats), "not cleared",                        \
	  U64(x.heapstats                                                      \
		  .slots[(atomic_u32_load_relaxed(&x.heapstats.gen) + 1) %     \
			 HEAPSTATS_SLOTS]                                      \
		  .in_heap,                                                    \
	      1))                                                              \
	X(heapstats_check(&x.heapstats), "mutex",                              \
	  U32(x.heapstats.no_p.state, 9))                                      \
	X(heapstats_check(&x.heapstats), "mutex", x.heapstats.reader.rank = 0) \
	X(heapstats_totals_check(&x.totals), "negative bytes",                 \
	  x.totals.in_stacks = UINT64_MAX)                                     \
	X(heapstats_totals_check(&x.totals), "in_ptr_scalar_bits",             \
	  x.totals.in_ptr_scalar_bits = 1)                                     \
	X(heapstats_totals_check(&x.totals), "more freed",                     \
	  x.totals.large_free_count = 1)                                       \
	X(heapstats_totals_check(&x.totals), "more freed",                     \
	  x.totals.small_free_count[5] = 1)                                    \
	X(heapgauge_check(&heapgauges), "does not know it",                    \
	  PTR(heapgauges.counted, &x.p[0]))                                    \
	X(heapgauge_check(&heapgauges), "without end", x.p[0].counted = true;  \
	  x.p[0].next_counted = &x.p[0]; PTR(heapgauges.counted, &x.p[0]))     \
	X(heapgauge_check(&heapgauges), "is not in the list",                  \
	  PTR(heapgauges.counted, NULL);                                       \
	  x.self->counted = false; U64(x.self->gauges[0], 1))                  \
	X(proc_check(&x.p[0]), "inside a change", U32(x.p[0].stats_seq, 1))    \
	X(proc_check(&x.p[0]), "known state", U32(x.p[0].state, 3))            \
	X(proc_check(&x.p[0]), "known state", U32(x.p[0].state, 9))            \
	X(proc_check(&x.p[0]), "attached P is free", U32(x.p[0].state, 0))     \
	X(proc_check(&x.p[0]), "runs in a stop", x.p[0].stopper = false)       \
	X(proc_check(&x.p[0]), "asked to stop",                                \
	  U32(x.p[0].state, PROC_RUNNING + PROC_STOP))                         \
	X(proc_check(&x.p[0]), "in a region", x.p[0].in_region = true)         \
	X(proc_check(&x.p[0]), "ends before it begins", x.p[0].context.hi = 8; \
	  x.p[0].context.lo = 16)                                              \
	X(procs_check(&x.procs), "mutex", U32(x.procs.lock.state, 3))          \
	X(procs_check(&x.procs), "was not given", x.p[0].id = 3)               \
	X(procs_check(&x.procs), "known state", U32(x.p[1].state, 3))          \
	X(procs_check(&x.procs), "lead back", x.p[1].prev = NULL)              \
	X(procs_check(&x.procs), "free P in the list",                         \
	  U32(x.p[1].state, PROC_FREE))                                        \
	X(procs_check(&x.procs), "longer than count", x.procs.count--)         \
	X(procs_check(&x.procs), "shorter than count", x.procs.count++)        \
	X(procs_check(&x.procs), "threads of the host", x.p[1].flags = 0)      \
	X(procs_check(&x.procs), "was not given", x.p[2].id = 77)              \
	X(procs_check(&x.procs), "P of a thread",                              \
	  U32(x.p[2].state, PROC_BLOCKED))                                     \
	X(procs_check(&x.procs), "more Ps than", x.p[2].next_free = &x.p[2])   \
	X(procs_check(&x.procs), "in no list", x.procs.free = NULL)            \
	X(procs_check(&x.procs), "note", U32(x.procs.stopnote.woken, 7))       \
	X(stw_check(&x.world), "not drawn",                                    \
	  U32(x.world.sema.next,                                               \
	      atomic_u32_load_relaxed(&x.world.sema.serving) - 1))             \
	X(stw_check(&x.world), "without the right",                            \
	  U32(x.world.sema.next,                                               \
	      atomic_u32_load_relaxed(&x.world.sema.serving)))                 \
	X(stw_check(&x.world), "a world that runs", U32(x.world.stopped, 0))   \
	X(stw_check(&x.world), "more threads stopped", x.world.nthreads = 99)  \
	X(stw_check(&x.world), "slowest thread", x.world.slowest = 99)         \
	X(stw_check(&x.world), "before it was asked",                          \
	  x.world.begin.finished = x.world.begin.asked - 1)

#define CASES_PAGES(X)                                                         \
	X(scavindex_check(&x.scav), "table", x.scav.table.base = NULL)         \
	X(scavindex_check(&x.scav), "longer than its table",                   \
	  x.scav.nchunks = 1 << 20)                                            \
	X(scavindex_check(&x.scav), "beyond the heap",                         \
	  x.scav.cursor_bg = x.scav.nchunks + 1)                               \
	X(scavindex_check(&x.scav), "beyond the heap",                         \
	  x.scav.cursor_force = x.scav.nchunks + 1)                            \
	X(scavindex_check(&x.scav), "beyond the heap",                         \
	  x.scav.free_high = x.scav.nchunks + 1)                               \
	X(scavindex_check(&x.scav), "than it has", *scav_word() = 513)         \
	X(scavindex_check(&x.scav), "than it has", *scav_word() = 513u << 15)  \
	X(scavindex_check(&x.scav), "full chunk",                              \
	  *scav_word() = 512 | 1u << 31)                                       \
	X(scavindex_check(&x.scav), "above the cursor",                        \
	  *scav_word() = 1u << 31;                                             \
	  x.scav.cursor_force = 0)                                             \
	X(pagealloc_check(&x.pages), "table", x.pages.chunks.base = NULL)      \
	X(pagealloc_check(&x.pages), "table", x.pages.sums[4].stat = NULL)     \
	X(pagealloc_check(&x.pages), "longer than its tables",                 \
	  x.pages.max_chunks = 0)                                              \
	X(pagealloc_check(&x.pages), "longer than its tables",                 \
	  x.pages.nchunks = x.pages.max_chunks = 1 << 20)                      \
	X(pagealloc_check(&x.pages), "of another length", x.pages.nchunks = 0) \
	X(pagealloc_check(&x.pages), "beyond the heap",                        \
	  x.pages.scav.cursor_bg = 1 << 20)                                    \
	X(pagealloc_check(&x.pages), "both allocated and scavenged",           \
	  pages()->scavenged.word[0] |= pages()->alloc.word[0])                \
	X(pagealloc_check(&x.pages), "summary of a chunk", sums(4)[0] ^= 1)    \
	X(pagealloc_check(&x.pages), "another count", ++*scav_word())          \
	X(pagealloc_check(&x.pages), "from its children", sums(2)[0] ^= 1)     \
	X(pagealloc_check(&x.pages), "summary beyond the last chunk",          \
	  sums(4)[x.pages.nchunks] = pallocsum_make(0, 1, 0))                  \
	X(pagealloc_check(&x.pages), "search_page beyond",                     \
	  x.pages.search_page = UINT64_MAX)                                    \
	X(pagealloc_check(&x.pages), "free page below",                        \
	  x.pages.search_page = (uint64_t)x.pages.nchunks * RT_CHUNK_PAGES)    \
	X(pagecache_check(&x.cache), "of no block", x.cache.base = 1)          \
	X(pagecache_check(&x.cache), "not in the page cache",                  \
	  x.cache.cache = 0;                                                   \
	  x.cache.scav = 1)                                                    \
	X(pagecache_check(&x.cache), "is not zero", x.cache.cache = 1;         \
	  x.cache.scav = 1; x.cache.zero = 0)                                  \
	X(pagecache_check(&x.cache), "too many blocks",                        \
	  x.cache.nrecent = PAGECACHE_RECENT + 1)                              \
	X(pagecache_check(&x.cache), "remembers no block",                     \
	  x.cache.recent[1] = 3)                                               \
	X(pagecache_check(&x.cache), "twice", x.cache.recent[1] = 64)          \
	X(arena_check(&x.arena), "not aligned", x.arena.base = 0)              \
	X(arena_check(&x.arena), "not aligned", x.arena.base += 8)             \
	X(arena_check(&x.arena), "a part of an arena", x.arena.reserved = 0)   \
	X(arena_check(&x.arena), "a part of an arena", x.arena.reserved++)     \
	X(arena_check(&x.arena), "not whole chunks", U64(x.arena.used, 8))     \
	X(arena_check(&x.arena), "longer than what was prepared",              \
	  U64(x.arena.used, UINT64_C(1) << 50))                                \
	X(arena_check(&x.arena), "beyond its range",                           \
	  U64(x.arena.prepared, UINT64_C(1) << 50))                            \
	X(arena_check(&x.arena), "table begins", x.arena.table[1].base = NULL) \
	X(arena_check(&x.arena), "is elsewhere", x.arena.words++)              \
	X(arena_check(&x.arena), "too short", U64(x.arena.table[2].ready, 0))  \
	X(hugepages_check(&hugepages), "mutex", U32(hugepages.lock.state, 9))  \
	X(hugepages_check(&hugepages), "table", hugepages.states.stat = NULL)  \
	X(hugepages_check(&hugepages), "beyond their table",                   \
	  hugepages.nchunks = 1 << 30)                                         \
	X(hugepages_check(&hugepages), "not wanted", hugepages.on = false)     \
	X(hugepages_check(&hugepages), "beyond the heap",                      \
	  hugepages.cursor = hugepages.nchunks + 1)                            \
	X(hugepages_check(&hugepages), "nowhere",                              \
	  hugepages.range[1].base = NULL)                                      \
	X(hugepages_check(&hugepages), "nowhere", hugepages.range[0].unit = 0) \
	X(hugepages_check(&hugepages), "in no known state", huge_state(3))     \
	X(hugepages_check(&hugepages), "nwanted", huge_state(1))               \
	X(hugepages_check(&hugepages), "nstretches", huge_state(2))            \
	X(hugepages_check(&hugepages), "two threads", U32(hugepages.busy, 2))

#define CASES_SPANS(X)                                                         \
	X(mheap_check(&x.mheap), "mutex", x.mheap.lock.rank = 0)               \
	X(mheap_check(&x.mheap), "semaphore",                                  \
	  U32(x.mheap.turn.next,                                               \
	      atomic_u32_load_relaxed(&x.mheap.turn.serving) - 1))             \
	X(mheap_check(&x.mheap), "being released", x.mheap.releasing = true)   \
	X(mheap_check(&x.mheap), "possible size", x.mheap.spans.size = 0)      \
	X(mheap_check(&x.mheap), "mspan_inuse",                                \
	  x.mheap.spans.inuse -= sizeof(struct mspan))                         \
	X(mheap_check(&x.mheap), "alignment", x.mheap.blocks.align = 3)        \
	X(mheap_check(&x.mheap), "populate", U32(x.mheap.populate, 2))         \
	X(mheap_cache_check(&x.mheap_cache), "of no block",                    \
	  x.mheap_cache.pages.base = 1)                                        \
	X(mheap_cache_check(&x.mheap_cache), "more than a block",              \
	  x.mheap_cache.filling = PAGECACHE_PAGES + 1)                         \
	X(mheap_cache_check(&x.mheap_cache), "more mspans",                    \
	  x.mheap_cache.nspans = MHEAP_CACHE_SPANS + 1)                        \
	X(mheap_cache_check(&x.mheap_cache), "without an mspan",               \
	  x.mheap_cache.nspans = 1;                                            \
	  x.mheap_cache.spans[0] = NULL)                                       \
	X(mheap_cache_check(&x.mheap_cache), "mspan in use",                   \
	  x.mheap_cache.nspans = 1;                                            \
	  x.mheap_cache.spans[0] = &x.stacks)                                  \
	X(mcache_check(x.mc), "of another mcache", x.mc->thread.mc = NULL)     \
	X(mcache_check(x.mc), "without a P", x.mc->thread.p = NULL)            \
	X(mcache_check(x.mc), "runs of another", x.mc->thread.run = NULL)      \
	X(mcache_check(x.mc), "tiny block", x.mc->tiny = 8)                    \
	X(mcache_check(x.mc), "tiny block", x.mc->tiny_offset = 17)            \
	X(mcache_check(x.mc), "more stacks", x.mc->stacks.n[3] = 3)            \
	X(mcache_check(x.mc), "without a stack", x.mc->stacks.n[3] = 1)        \
	X(mcache_check(x.mc), "more mspans", x.mc->heap.nspans = 99)           \
	X(mcache_check(x.mc), "nonempty", x.mc->nonempty[x.slot_idx / 64] = 0) \
	X(mcache_check(x.mc), "another class",                                 \
	  x.slot->uninit = !x.slot->uninit)                                    \
	X(mcache_check(x.mc), "slot of another class", x.slot->sc++)           \
	X(mcache_check(x.mc), "slot of another class", x.slot->size++)         \
	X(mcache_check(x.mc), "possible length", x.slot->run_log2 = 4)         \
	X(mcache_check(x.mc), "possible length", x.slot->run_log2 = 11)        \
	X(mcache_check(x.mc), "is not cached", x.slot->span->cached = 0)       \
	X(mcache_check(x.mc), "span of another class",                         \
	  x.slot->span->spanclass++)                                           \
	X(mcache_check(x.mc), "more than its span",                            \
	  x.slot->taken = UINT32_MAX)                                          \
	X(mcache_check(x.mc), "run without a span",                            \
	  x.mc->slots[MCACHE_SLOTS - 1].run->cur = (char *)8)                  \
	X(mcache_check(x.mc), "before it begins",                              \
	  x.slot->run->start = x.slot->run->cur + 8)                           \
	X(mcache_check(x.mc), "outside of its span",                           \
	  x.slot->run->cur = (char *)UINTPTR_MAX)                              \
	X(mcache_blocks_check(&x.blocks), "mutex", x.blocks.lock.rank = 0)     \
	X(mcache_blocks_check(&x.blocks), "slab",                              \
	  x.blocks.mcaches.slab.size = 0)                                      \
	X(mcache_blocks_check(&x.blocks), "more blocks kept",                  \
	  x.blocks.mcaches.list = (void **)x.mc)                               \
	X(mcache_blocks_check(&x.blocks), "fewer blocks kept",                 \
	  x.blocks.kinds.n++)                                                  \
	X(stackpool_check(&x.stackpool), "mutex", x.stackpool.lock.rank = 0)   \
	X(stackpool_check(&x.stackpool), "without end",                        \
	  x.stacks.next = &x.stacks)                                           \
	X(stackpool_check(&x.stackpool), "of another use", x.stacks.use = 0)   \
	X(stackpool_check(&x.stackpool), "another order",                      \
	  x.stacks.stack_order = 1)                                            \
	X(stackpool_check(&x.stackpool), "another order",                      \
	  x.stacks.elemsize = 4096)                                            \
	X(stackpool_check(&x.stackpool), "without a stack",                    \
	  x.stacks.stack_used = 0)                                             \
	X(stackpool_check(&x.stackpool), "more stacks than fit",               \
	  x.stacks.stack_used = 1 << 16)                                       \
	X(stackpool_check(&x.stackpool), "full span",                          \
	  x.stacks.stack_used = 0xffff)                                        \
	X(mspan_check(x.slot->span), "outside of the heap",                    \
	  x.slot->span->base += 8)                                             \
	X(mspan_check(x.slot->span), "known use or class",                     \
	  x.slot->span->use = 77)                                              \
	X(mspan_check(x.slot->span), "bad sweepgen",                           \
	  U32(x.slot->span->sweepgen, epoch_sweepgen() + 2))

#define CASES_MARK(X)                                                          \
	X(gain_check(&x.gain), "known in part", x.gain.cost[1].cpu = 0)        \
	X(gain_check(&x.gain), "without a comparison",                         \
	  x.gain.cost[0] = (struct gain_cost){0})                              \
	X(gain_check(&x.gain), "without a comparison",                         \
	  x.gain.cost[1] = (struct gain_cost){0})                              \
	X(crew_check(&x.crew), "that there is not",                            \
	  U32(x.crew.call, CREW_QUIT + 1))                                     \
	X(crew_check(&x.crew), "more helpers", U32(x.crew.size, -1))           \
	X(work_check(&x.work), "not a buffer", x.work.t.limit--)               \
	X(work_check(&x.work), "not a buffer", x.work.high--)                  \
	X(work_check(&x.work), "outside of its buffer", x.work.t.top--)        \
	X(work_check(&x.work), "outside of its buffer",                        \
	  x.work.t.top = x.work.t.limit + 1)                                   \
	X(work_check(&x.work), "nfull", x.work.nfull = 2)                      \
	X(work_check(&x.work), "nfull", x.buf[0].next = &x.buf[0])             \
	X(work_check(&x.work), "too many", x.work.nspare = WORK_SPARES + 1)    \
	X(work_check(&x.work), "nspare", x.work.spare = NULL)                  \
	X(work_check(&x.work), "idle", x.work.alone = true;                    \
	  x.work.busy = false)                                                 \
	X(work_check(&x.work), "note", U32(x.work.note.woken, 3))              \
	X(work_agreed_check(&x.agreed), "mutex", x.agreed.lock.rank = 0)       \
	X(work_agreed_check(&x.agreed), "job that there is not",               \
	  x.agreed.next_job = 1)                                               \
	X(work_agreed_check(&x.agreed), "alone beside", x.agreed.alone = true; \
	  U32(x.agreed.busy, 2))                                               \
	X(work_agreed_check(&x.agreed), "waits is busy", x.other.busy = true)  \
	X(work_agreed_check(&x.agreed), "waits is busy",                       \
	  x.other.got = WORK_JOB)                                              \
	X(work_agreed_check(&x.agreed), "more markers wait",                   \
	  x.other.waits = &x.other)                                            \
	X(work_agreed_check(&x.agreed), "fewer markers wait",                  \
	  x.agreed.waiters = NULL)                                             \
	X(work_agreed_check(&x.agreed), "for no marking",                      \
	  x.agreed.open = false)                                               \
	X(work_agreed_check(&x.agreed), "work is left", x.agreed.open = false; \
	  x.agreed.waiters = NULL; U32(x.agreed.waiting, 0);                   \
	  x.agreed.njobs = 1)                                                  \
	X(work_agreed_check(&x.agreed), "work is left", x.agreed.open = false; \
	  x.agreed.waiters = NULL; U32(x.agreed.waiting, 0);                   \
	  x.agreed.ranges = &x.buf[0])                                         \
	X(work_agreed_check(&x.agreed), "without a marking",                   \
	  x.agreed.open = false;                                               \
	  x.agreed.waiters = NULL; U32(x.agreed.waiting, 0))                   \
	X(work_agreed_check(&x.agreed), "without a marking",                   \
	  x.agreed.open = false;                                               \
	  x.agreed.waiters = NULL; x.agreed.alone = true;                      \
	  U32(x.agreed.waiting, 0))                                            \
	X(work_pool_check(&x.pool), "mutex", U32(x.pool.lock.state, 4))        \
	X(work_pool_check(&x.pool), "of another use", x.buffers.use = 1)       \
	X(work_pool_check(&x.pool), "more spans", x.pool.nspans = 0)           \
	X(work_pool_check(&x.pool), "fewer spans", x.pool.nspans = 2)          \
	X(work_pool_check(&x.pool), "without a span", x.pool.spans = NULL;     \
	  x.pool.nspans = 0)                                                   \
	X(roots_check(&x.roots), "mutex", x.roots.lock.rank = 0)               \
	X(roots_check(&x.roots), "power of two", x.roots.room--)               \
	X(roots_check(&x.roots), "is elsewhere", x.roots.bucket++)             \
	X(roots_check(&x.roots), "is elsewhere", x.roots.entry = NULL)         \
	X(roots_check(&x.roots), "more roots", x.roots.n = x.roots.room + 1)   \
	X(roots_check(&x.roots), "no range of words",                          \
	  root()->lo = root()->hi + 8)                                         \
	X(roots_check(&x.roots), "no range of words", root()->lo -= 4)         \
	X(roots_check(&x.roots), "no range of words", root()->hi += 4)         \
	X(roots_check(&x.roots), "was not added",                              \
	  root()->times[0] = root()->times[1] = 0)                             \
	X(roots_check(&x.roots), "beyond the table",                           \
	  x.roots.bucket[0] = (uint32_t)x.roots.n)                             \
	X(roots_check(&x.roots), "bucket of roots without end",                \
	  loop_of_roots())                                                     \
	X(roots_check(&x.roots), "no bucket leads to", no_bucket())

#define CASES_CYCLE(X)                                                         \
	X(pacer_check(&x.pacer), "less than the rule",                         \
	  x.pacer.rule.percent = 100;                                          \
	  U64(x.pacer.goal, 0))                                                \
	X(pacer_check(&x.pacer), "other stacks", x.pacer.found.stack_inuse++)  \
	X(pacer_check(&x.pacer), "another heap", x.pacer.found.heap_marked++)  \
	X(pacer_check(&x.pacer), "another percentage",                         \
	  U64(x.pacer.percent, 7))                                             \
	X(ask_queue_check(&x.asks), "mutex", x.asks.lock.rank = 0)             \
	X(ask_queue_check(&x.asks), "none leads", x.asks.led = false)          \
	X(ask_queue_check(&x.asks), "no known cause",                          \
	  x.ask[1].cause = ASK_MEMORY + 1)                                     \
	X(ask_queue_check(&x.asks), "end of the queue",                        \
	  x.asks.last = &x.ask[0])                                             \
	X(sweep_check(&x.sweep), "more chunks", U32(x.sweep.left, -1))         \
	X(sweep_check(&x.sweep), "fewer sweepers", U32(x.sweep.active, -1))    \
	X(workers_check(&x.workers), "two threads", U32(x.workers.making, 2))  \
	X(workers_check(&x.workers), "more records", x.workers.records = 0)    \
	X(workers_check(&x.workers), "fewer records", x.workers.records = 2)   \
	X(workers_check(&x.workers), "without a record",                       \
	  U32(x.workers.running, 2))

#define CASES(X)                                                               \
	CASES_OS(X)                                                            \
	CASES_WORLD(X)                                                         \
	CASES_PAGES(X)                                                         \
	CASES_SPANS(X)                                                         \
	CASES_MARK(X)                                                          \
	CASES_CYCLE(X)

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
	ck_assert_msg(strstr(what, cases[_i].text) != NULL, "%s: %s: %s",
		      cases[_i].check, cases[_i].how, what);
}

// ---- verify asks all of them ----

static struct rt_proc other;

// A thing of the heap that is broken, and what verify says first.
static const char *break_heap(int i)
{
	switch (i) {
	case 0:
		U64(arena.table[3].ready, 0);
		return "table of the arena is too short";
	case 1:
		world.slowest = 99;
		return "slowest thread";
	case 2:
		procs.made++;
		return "P that was made is in no list";
	case 3:
		proc_self()->context.lo = 16;
		proc_self()->context.hi = 8;
		return "stack that ends";
	case 4:
		PTR(heapgauges.counted, &other);
		return "does not know it";
	case 5:
		for (unsigned s = 0; s < HEAPSTATS_SLOTS; s++)
			U64(heapstats.slots[s].in_heap, 1);
		return "slot of statistics";
	case 6:
		U64(gauges.buckhash_sys, 1);
		return "buckhash_sys";
	case 7:
		U64(gcstats.pauses.begun, 77);
		return "recorded in part";
	case 8:
		persistent.usable = SIZE_MAX;
		return "permanent memory";
	case 9:
		hugepages.range[2].nstretches++;
		return "nstretches";
	case 10:
		mheap.spans.inuse += sizeof(struct mspan);
		return "mspan_inuse";
	case 11:
		mcache_blocks.mcaches.n++;
		return "fewer blocks kept";
	case 12:
		stackpool.partial[0]->stack_order = 3;
		return "list of another order";
	case 13:
		rt_thread_tls->mc->slots[3].size++;
		return "slot of another class";
	case 14:
		gain.off = true;
		return "without a comparison";
	case 15:
		U32(crew_calls.call, 7);
		return "that there is not";
	case 16:
		work_agreed.alone = true;
		return "marker is alone";
	case 17:
		work_pool.nspans++;
		return "fewer spans of work";
	case 18:
		no_bucket();
		return "no bucket leads to";
	case 19:
		pacer.found.heap_marked++;
		return "pacer shows another heap";
	case 20:
		ask_queue.first = &x.ask[0];
		ask_queue.led = false;
		return "none leads";
	case 21:
		U32(sweep.active, -1);
		return "fewer sweepers";
	case 22:
		workers.records++;
		return "fewer records";
	case 23:
		mheap.pages.scav.cursor_bg = 1 << 20;
		return "cursor of the scavenge index";
	default:
		mcentral_push(x.span);
		mcentral_push(x.span);
		return "lock-free stack without end";
	}
}
enum { HEAP_CASES = 25 };

TEST(verify_reports_what_is_broken, .n = HEAP_CASES)
{
	struct rt_verify v;
	const char *text;

	prepare();
	ck_assert_int_eq(rt_heap_verify(&v), RT_OK);
	ck_assert_msg(v.errors == 0, "%s", v.first);
	text = break_heap(_i);
	ck_assert_int_eq(rt_heap_verify(&v), RT_OK);
	ck_assert_uint_ge(v.errors, 1);
	ck_assert_msg(strstr(v.first, text) != NULL, "%s: %s", text, v.first);
}
