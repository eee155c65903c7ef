// In a debug build a wrong state is found where the next change is made, and
// the report is the text of the check.
#include "test/harness/heap.h"

#include <stdio.h>
#include <string.h>

#include "runtime/os/slab.h"
#include "runtime/pages/hugepages.h"
#include "runtime/spans/mcentral.h"
#include "runtime/spans/stackalloc.h"
#include "runtime/world/gcstats.h"
#include "runtime/world/stoptable.h"
#include "gc/cycle/ask.h"
#include "gc/cycle/sweep.h"
#include "gc/cycle/pacer.h"
#include "gc/cycle/scavenger.h"
#include "gc/cycle/swept.h"
#include "gc/mark/crew.h"
#include "gc/mark/describe.h"
#include "gc/mark/drops.h"
#include "gc/mark/grey.h"
#include "gc/mark/roots.h"
#include "gc/mark/statics.h"
#include "gc/mark/work.h"
#include "gc/stats/verify.h"
#include "test/harness/death.h"

#define U64(field, v) atomic_u64_store_relaxed(&(field), (uint64_t)(v))
#define U32(field, v) atomic_u32_store_relaxed(&(field), (uint32_t)(v))
#define PTR(field, v) atomic_ptr_store_relaxed(&(field), (v))

// Structs that belong to no heap.
static struct {
	struct mutex mutex;
	struct note note;
	struct sema sema;
	struct rt_proc p;
	struct pagecache cache;
	struct work work;
	struct workbuf buf;
	struct ask ask;
	struct heapstats_totals totals;
	struct gcstats_cycle cycle;
	struct gcstats_cycles cycles;
	struct pausering_copy pauses;
	struct object object;
	struct freelist_freed freed;
	struct statics_walk walk;
	struct text said;
	struct pacer_found found;
	struct pacer_cpu cpu;
	struct rt_verify verified;
	uint64_t page;
	char memory[64];
} x = {.mutex = RT_MUTEX_INIT(LOCKRANK_MHEAP)};

static struct rt_mcache *mc; // the calling thread's
static struct rt_proc *self;
static struct mcache_slot *slot; // one with a span
static struct mspan *partial;	 // in a set
static uint64_t nscav;

static void prepare(void)
{
	rt_config c = heap_config(HEAP_QUIET);
	uintptr_t *objects;
	spanclass sc = 0;

	c.max_heap = 256 << 20;
	c.huge_pages = 1;
	c.gc_threads = 0;
	heap_start_exact(c);
	objects = heap_table(1000, RT_ROOT_EXACT);
	for (unsigned i = 0; i < 1000; i++)
		objects[i] = (uintptr_t)rt_alloc(16 + i % 500);
	ck_assert_int_eq(rt_gc(), RT_OK);
	must(rt_stop_the_world(RT_STOP_HOST));
	while (!partial)
		partial = mcentral_top(sc++);
	must(rt_start_the_world(NULL));
	ck_assert_ptr_nonnull(rt_alloc(3000));
	ck_assert_ptr_nonnull(rt_stack_alloc(2048));
	ck_assert_ptr_nonnull(rt_stack_alloc(256 << 10));
	self = proc_self();
	mc = rt_thread_tls->mc;
	slot = mc->slots;
	while (!slot->span)
		slot++;
}

static struct pallocdata *pages(void)
{
	return pagealloc_chunk(&mheap.pages, 0);
}

static uint64_t free_page(void)
{
	return (uint64_t)mheap.pages.nchunks * RT_CHUNK_PAGES - 1;
}

static struct roots_entry *root(void)
{
	return &roots.entry[0];
}

static struct slab *slab(void)
{
	return &mcache_blocks.mcaches.slab;
}

static void stacks(void)
{
	for (unsigned i = 0; i < 20; i++)
		rt_stack_alloc(2048);
}

// X(text, wrong, door): after wrong, door ends the process with the text.
#define DOORS_OS(X)                                                            \
	X("stacks_sys is not 0", , gauge_add(&gauges.stacks_sys, 8))           \
	X("heap_mapped is not whole chunks", ,                                 \
	  gauge_add_locked(&gauges.heap_mapped, 8))                            \
	X("sweepgen is odd", U32(epoch.sweepgen, 3), epoch_flip())             \
	X("permanent memory is not carved from the newest region",             \
	  persistent.regions->size += 4096,                                    \
	  persistent_alloc(8, 8, &gauges.other_sys))                           \
	X("permanent memory is larger than its regions",                       \
	  persistent.usable = SIZE_MAX >> 1,                                   \
	  persistent_alloc(100 << 20, 8, &gauges.other_sys))                   \
	X("fixalloc has more bytes in use than mapped",                        \
	  mheap.spans.inuse += 8, fixalloc_alloc(&mheap.spans))                \
	X("free object of a fixalloc is not aligned",                          \
	  mheap.spans.list = (void *)(x.memory + 8),                           \
	  fixalloc_alloc(&mheap.spans))                                        \
	X("region of a slab has a number of blocks that 64 does not divide",   \
	  slab()->regions->nblocks++, slab_alloc(slab()))                      \
	X("block of a slab is freed twice", ,                                  \
	  slab_free(slab(),                                                    \
		    slab()->regions->base + 63 * sysmem_round(slab()->size)))  \
	X("table's reservation ends inside a physical page",                   \
	  arena.table[0].reserved--,                                           \
	  systable_grow(&arena.table[0], systable_ready(&arena.table[0]) + 1)) \
	X("mutex has an unknown state", U32(x.mutex.state, 9),                 \
	  mutex_lock(&x.mutex))                                                \
	X("note has an unknown state", U32(x.note.woken, 7),                   \
	  note_wake(&x.note))                                                  \
	X("note has an unknown state", U32(x.note.woken, 7),                   \
	  note_sleep(&x.note, 1))                                              \
	X("semaphore serves a ticket that was not drawn", ,                    \
	  sema_release(&x.sema))

#define DOORS_WORLD(X)                                                         \
	X("P in the list of free ones has a thread", procs.free = &x.p;        \
	  U32(x.p.state, PROC_RUNNING), proc_attach(0))                        \
	X("P has a number that was not given", procs.free = &x.p;              \
	  x.p.id = 99, proc_attach(0))                                         \
	X("list of Ps does not lead back", self->prev = &x.p,                  \
	  rt_thread_detach())                                                  \
	X("list of Ps is shorter than count", procs.count++,                   \
	  rt_stop_the_world(RT_STOP_HOST))                                     \
	X("stack of a P ends before it begins", self->context.lo = 16;         \
	  self->context.hi = 8, rt_stop_the_world(RT_STOP_HOST))               \
	X("mcache_inuse is more than mcache_sys", U64(gauges.mcache_sys, 0),   \
	  rt_gc())                                                             \
	X("P is in the list of gauges but not counted",                        \
	  PTR(heapgauges.counted, &x.p), rt_gc())                              \
	X("statistics have more frees than allocations",                       \
	  U64(heapstats.slots[0].large_free_count, 1000), read_live())         \
	X("pause is recorded in part", U64(gcstats.pauses.begun, 77), rt_gc()) \
	X("stop is recorded in part", U64(stoptable.row[0].begun, 77), rt_gc())

#define DOORS_PAGES(X)                                                         \
	X("cursor of the scavenge index is beyond the heap",                   \
	  mheap.pages.scav.cursor_bg = 1 << 20, rt_gc())                       \
	X("chunk has more pages in use than pages",                            \
	  ((uint32_t *)mheap.pages.scav.table.base)[1] = 513,                  \
	  scavindex_next_cycle(&mheap.pages.scav))                             \
	X("page is both allocated and scavenged",                              \
	  pages()->scavenged.word[0] |= pages()->alloc.word[0],                \
	  pagealloc_alloc(&mheap.pages, 1, &nscav))                            \
	X("summary of a chunk is not that of its pages",                       \
	  *(pallocsum *)mheap.pages.sums[4].base ^= 1,                         \
	  pagealloc_set_scavenged(&mheap.pages, free_page(), 1))               \
	X("page cache begins inside a block", x.cache.base = 1;                \
	  x.cache.cache = 1, pagecache_alloc(&x.cache, 1, &nscav))             \
	X("page cache remembers too many blocks", x.cache.nrecent = 99,        \
	  pagecache_flush(&x.cache, &mheap.pages))                             \
	X("heap's range is not whole arenas", arena.reserved++,                \
	  arena_grow(mheap.pages.nchunks))                                     \
	X("span has pages outside of the heap", ,                              \
	  arena_withdraw(free_page(), 2))                                      \
	X("nwanted is not the number of WANTED units",                         \
	  hugepages.range[0].nwanted = 99, hugepages_withdraw(0))              \
	X("cursor of huge pages is beyond the heap",                           \
	  hugepages.cursor = UINT32_MAX, hugepages_withdraw(0))                \
	X("nstretches is not the number of stretches of HUGE units",           \
	  hugepages.range[2].nstretches++, hugepages_choose(&mheap.pages))

#define DOORS_SPANS(X)                                                         \
	X("span in a set is cached", , mcentral_push(slot->span))              \
	X("span in a set has no free slot",                                    \
	  partial->alloc_count = partial->nelems,                              \
	  mcentral_pop(partial->spanclass))                                    \
	X("lock-free stack has no end", mcentral_push(partial), rt_gc())       \
	X("populate is neither on nor off", U32(mheap.populate, 2),            \
	  mheap_alloc_manual(self, 1, MSPAN_STACK))                            \
	X("cache was filled with more than a block",                           \
	  mc->heap.filling = PAGECACHE_PAGES + 1,                              \
	  mheap_alloc_small(self, &mc->heap, slot->sc))                        \
	X("slot has the wrong class or size", slot->size++,                    \
	  mcache_retire_slot(mc, self, slot))                                  \
	X("fewer blocks are kept than counted", mcache_blocks.kinds.n++,       \
	  mcache_add_kind(mc, KIND_HOST))                                      \
	X("span of stacks is in the list of another order",                    \
	  stackpool.partial[0]->stack_order = 3, stacks())                     \
	X("span of stacks has another use", stackpool.partial[1] = slot->span; \
	  rt_stop_the_world(RT_STOP_HOST), stackalloc_flush_all(self))

#define DOORS_GC(X)                                                            \
	X("marker is alone but not busy", x.work.spare = &x.buf;               \
	  x.work.nspare = 1; x.work.bottom = x.work.first.entry;               \
	  x.work.alone = true, work_spill(&x.work))                            \
	X("fewer markers wait than are counted", U32(work_agreed.waiting, 1),  \
	  rt_gc())                                                             \
	X("fewer spans of work buffers exist than are counted",                \
	  work_pool.nspans = 1, rt_gc())                                       \
	X("more helpers exist than may", U32(crew_calls.size, -2),             \
	  crew_enter())                                                        \
	X("root was added 0 times", root()->times[0] = root()->times[1] = 0,   \
	  roots_remove(root()->lo, root()->hi))                                \
	X("ask has an unknown cause", x.ask.cause = ASK_MEMORY + 1;            \
	  ask_queue.first = ask_queue.last = &x.ask;                           \
	  ask_queue.led = true, rt_gc())                                       \
	X("number of active sweepers is negative", U32(sweep.active, -1),      \
	  sweep_chunk(self))                                                   \
	X("queue of drops has an impossible state", drops.turn = 2, rt_gc())   \
	X("span in the queue of drops does not say so",                        \
	  drops.next = drops.next_last = slot->span, rt_gc())                  \
	X("number of drops differs from the dead that wait",                   \
	  U64(drops.ready, 1);                                                 \
	  rt_stop_the_world(RT_STOP_HOST), drops_begin_now())                  \
	X("scavenger has an unknown state", U32(scavenger.timed, 2),           \
	  scavenger_claim())                                                   \
	X("scavenger is made by two threads", U32(scavenger.making, 2),        \
	  scavenger_await())                                                   \
	X("note has an unknown state", scavenger_claim();                      \
	  U32(scavenger.pause.woken, 7), scavenger_dismiss())

// Functions that need a stopped world.
#define DOORS_STOPPED(X)                                                       \
	X("assertion: stw_stopped()", , stw_reason())                          \
	X("assertion: stw_stopped()", , stw_begun())                           \
	X("assertion: stw_stopped()", , heapstats_unsafe_read(&x.totals))      \
	X("assertion: stw_stopped() || !proc_first()", ,                       \
	  heapstats_unsafe_clear())                                            \
	X("assertion: stw_stopped()", , gcstats_end_cycle(&x.cycle))           \
	X("assertion: stw_stopped()", ,                                        \
	  gcstats_read_stopped(&x.cycles, &x.pauses))                          \
	X("assertion: stw_stopped() || !proc_first()", , mcentral_reset())     \
	X("assertion: stw_stopped()", , mcentral_top(slot->sc))                \
	X("assertion: stw_stopped()", , mcentral_below(partial))               \
	X("assertion: stw_stopped()", , mheap_next_span(&x.page))              \
	X("assertion: stw_stopped()", , object_find_any(8, &x.object))         \
	X("assertion: stw_stopped()", , freelist_free_shared(&x.freed))        \
	X("assertion: stw_stopped()", , mcache_flush_all(self))                \
	X("assertion: stw_stopped()", , mcache_flush_pages_all())              \
	X("assertion: stw_stopped()", , stackalloc_flush_all(self))            \
	X("assertion: stw_stopped()", , statics_begin(&x.walk, 0))             \
	X("assertion: stw_stopped()", x.object.base = partial->base,           \
	  trace_is_marked(&x.object))                                          \
	X("assertion: stw_stopped()", , describe_said(&x.said, &x.object))     \
	X("assertion: stw_stopped()", , drops_next_span(&x.page))              \
	X("assertion: stw_stopped()", , grey_expect(false))                    \
	X("assertion: stw_stopped()", , work_open(&x.work, self, 0))           \
	X("assertion: stw_stopped()", , sweep_all(self))                       \
	X("assertion: stw_stopped()", , swept_all(self))                       \
	X("assertion: stw_stopped()", , pacer_collected(&x.found))             \
	X("assertion: stw_stopped()", , pacer_account(&x.cpu))                 \
	X("assertion: stw_stopped()", , verify_heap(&x.verified))              \
	X("assertion: stw_stopped()", , verify_walk(-1, NULL, NULL))           \
	X("assertion: stw_stopped()", , verify_count(-1))

#define DOORS(X)                                                               \
	DOORS_OS(X)                                                            \
	DOORS_WORLD(X)                                                         \
	DOORS_PAGES(X)                                                         \
	DOORS_SPANS(X)                                                         \
	DOORS_GC(X)                                                            \
	DOORS_STOPPED(X)

static void read_live(void)
{
	rt_memstats m;

	rt_read_memstats_live(&m);
}

static const char *const texts[] = {
#define X(text, wrong, door) text,
    DOORS(X)
#undef X
};

static unsigned chosen;

static void pass(void)
{
	unsigned n = 0;

	prepare();
#define X(text, wrong, door)                                                   \
	if (n++ == chosen) {                                                   \
		wrong;                                                         \
		fputs("wrong\n", stderr);                                      \
		door;                                                          \
	}
	DOORS(X)
#undef X
}

GROUP(doors, .timeout = 60);

TEST(a_wrong_state_is_found_at_the_door, .n = RT_ARRAY_LEN(texts),
     .unless = SUITE_UNLESS(!RT_DEBUG_BUILD, "only in a debug build"))
{
	char report[200];
	int status;

	chosen = (unsigned)_i;
	status = death_status(pass);
	snprintf(report, sizeof report, "wrong\nrtheap: fatal: %s\n",
		 texts[_i]);
	ck_assert_msg(death_aborted(status), "%s: no abort: %s", texts[_i],
		      death_output);
	ck_assert_msg(strstr(death_output, report) != NULL, "%s: %s", texts[_i],
		      death_output);
}
