// invariants_cases.h - the ways to break the structs of check_invariants.
//
// X(check, text, ...) is one way: after the statements that follow the text,
// the check must return the text.  The names are those of check_invariants.c.
#ifndef TEST_UNIT_INVARIANTS_CASES_H
#define TEST_UNIT_INVARIANTS_CASES_H

#define CASES_OS(X)                                                            \
	X(mutex_check(&x.mutex), "mutex has an unknown state",                 \
	  U32(x.mutex.state, 3))                                               \
	X(mutex_check(&x.mutex), "mutex has no rank", x.mutex.rank = 0)        \
	X(mutex_check(&x.mutex), "mutex has no rank",                          \
	  x.mutex.rank = LOCKRANK_COUNT)                                       \
	X(note_check(&x.note), "note has an unknown state",                    \
	  U32(x.note.woken, 3))                                                \
	X(sema_check(&x.sema), "semaphore serves a ticket that was not drawn", \
	  U32(x.sema.serving, 1))                                              \
	X(gauges_check(&x.gauges), "gauge is negative",                        \
	  U64(x.gauges.other_sys, -1))                                         \
	X(gauges_check(&x.gauges), "gauge is negative",                        \
	  U64(x.gauges.heap_dead, -1))                                         \
	X(gauges_check(&x.gauges), "stack_inuse is not whole pages",           \
	  U64(x.gauges.stack_inuse, 1))                                        \
	X(gauges_check(&x.gauges), "heap_mapped is not whole chunks",          \
	  U64(x.gauges.heap_mapped, RT_PAGE_SIZE))                             \
	X(gauges_check(&x.gauges), "stacks_sys is not 0",                      \
	  U64(x.gauges.stacks_sys, 1))                                         \
	X(gauges_check(&x.gauges), "buckhash_sys is not 0",                    \
	  U64(x.gauges.buckhash_sys, 1))                                       \
	X(gauges_check(&x.gauges), "mspan_inuse is more than mspan_sys",       \
	  U64(x.gauges.mspan_sys, 0))                                          \
	X(gauges_check(&x.gauges), "mcache_inuse is more than mcache_sys",     \
	  U64(x.gauges.mcache_sys, 0))                                         \
	X(epoch_check(&x.epoch), "sweepgen is odd", U32(x.epoch.sweepgen, 3))  \
	X(systable_check(&x.table), "table begins inside a physical page",     \
	  x.table.base = NULL)                                                 \
	X(systable_check(&x.table), "table begins inside a physical page",     \
	  x.table.base += 8)                                                   \
	X(systable_check(&x.table),                                            \
	  "table's reservation ends inside a physical page",                   \
	  x.table.reserved--)                                                  \
	X(systable_check(&x.table), "table is longer than its reservation",    \
	  U64(x.table.ready, x.table.reserved + 4096))                         \
	X(systable_check(&x.table), "table ends inside a physical page",       \
	  U64(x.table.ready, 8))                                               \
	X(systable_check(&x.table), "table has no gauge", x.table.stat = NULL) \
	X(persistent_check(&x.persistent), "mutex has an unknown state",       \
	  U32(x.persistent.lock.state, 9))                                     \
	X(persistent_check(&x.persistent),                                     \
	  "permanent memory is not carved from the newest region",             \
	  x.persistent.limit += 4096)                                          \
	X(persistent_check(&x.persistent),                                     \
	  "permanent memory is larger than its regions",                       \
	  x.persistent.usable = SIZE_MAX)                                      \
	X(persistent_check(&x.persistent),                                     \
	  "permanent memory was handed out before it was usable",              \
	  x.persistent.next = x.persistent.ready + 1)                          \
	X(persistent_check(&x.persistent),                                     \
	  "permanent memory is usable beyond its region",                      \
	  x.persistent.ready = x.persistent.limit + 1)                         \
	X(fixalloc_check(&x.fixalloc), "fixalloc has an impossible size",      \
	  x.fixalloc.size = 7)                                                 \
	X(fixalloc_check(&x.fixalloc), "fixalloc has an impossible size",      \
	  x.fixalloc.size = FIXALLOC_CHUNK + 8)                                \
	X(fixalloc_check(&x.fixalloc), "fixalloc has an impossible alignment", \
	  x.fixalloc.align = 3)                                                \
	X(fixalloc_check(&x.fixalloc), "fixalloc has an impossible alignment", \
	  x.fixalloc.align = 4096)                                             \
	X(fixalloc_check(&x.fixalloc), "fixalloc has no gauge",                \
	  x.fixalloc.stat = NULL)                                              \
	X(fixalloc_check(&x.fixalloc),                                         \
	  "rest of a fixalloc's chunk is not whole objects",                   \
	  x.fixalloc.nchunk = 1)                                               \
	X(fixalloc_check(&x.fixalloc),                                         \
	  "rest of a fixalloc's chunk is not whole objects",                   \
	  x.fixalloc.nchunk = 128 << 10)                                       \
	X(fixalloc_check(&x.fixalloc),                                         \
	  "rest of a fixalloc's chunk is not whole objects",                   \
	  x.fixalloc.nchunk = 128;                                             \
	  x.fixalloc.chunk = NULL)                                             \
	X(fixalloc_check(&x.fixalloc),                                         \
	  "fixalloc has more bytes in use than mapped", x.fixalloc.inuse++)    \
	X(fixalloc_check(&x.fixalloc),                                         \
	  "fixalloc has more bytes in use than mapped",                        \
	  x.fixalloc.inuse = UINT64_C(1) << 40)                                \
	X(fixalloc_check(&x.fixalloc),                                         \
	  "free object of a fixalloc is not aligned",                          \
	  x.fixalloc.list = (void *)((char *)&x + 8))                          \
	X(fixalloc_check(&x.fixalloc), "list of a fixalloc has no end",        \
	  x.fixalloc.list = (void *)&x.node[0];                                \
	  PTR(x.fixalloc.list->next, x.fixalloc.list))                         \
	X(slab_check(&x.slab), "slab has the size 0", x.slab.size = 0)         \
	X(slab_check(&x.slab), "slab has no gauge", x.slab.stat = NULL)        \
	X(slab_check(&x.slab), "region of a slab has no memory",               \
	  region()->base = NULL)                                               \
	X(slab_check(&x.slab),                                                 \
	  "region of a slab has a number of blocks that 64 does not divide",   \
	  region()->nblocks = 0)                                               \
	X(slab_check(&x.slab),                                                 \
	  "region of a slab has a number of blocks that 64 does not divide",   \
	  region()->nblocks++)                                                 \
	X(slab_check(&x.slab),                                                 \
	  "region of a slab has more blocks ready than blocks",                \
	  region()->ready = region()->nblocks + 1)                             \
	X(slab_check(&x.slab), "block of a slab is taken but not ready",       \
	  region()->ready = 0;                                                 \
	  region()->free[0] &= ~UINT64_C(1))                                   \
	X(slab_check(&x.slab),                                                 \
	  "slab counts fewer blocks than its regions have", x.slab.nblocks--)  \
	X(slab_check(&x.slab),                                                 \
	  "slab counts more blocks than its regions have", x.slab.nblocks++)   \
	X(lfstack_check(&x.stack), "lock-free stack has no end",               \
	  U64(x.node[0].link.next, atomic_u64_load_relaxed(&x.stack.head)))

#define CASES_WORLD(X)                                                         \
	X(pausering_check(&x.pausering), "pause is recorded in part",          \
	  U64(x.pausering.begun, 1))                                           \
	X(cyclering_check(&x.ring),                                            \
	  "record of a collection is written in part", U64(x.ring.begun, 1))   \
	X(gcstats_check(&x.gcstats), "pause is recorded in part",              \
	  U64(x.gcstats.pauses.begun, 99))                                     \
	X(gcstats_check(&x.gcstats),                                           \
	  "number of pauses differs from that of collections",                 \
	  U64(x.gcstats.pauses.begun, 99);                                     \
	  U64(x.gcstats.pauses.count, 99))                                     \
	X(gcstats_cycles_check(&x.cycles),                                     \
	  "more collections were forced than run",                             \
	  x.cycles.num_forced_gc = x.cycles.num_gc + 1)                        \
	X(gcstats_cycles_check(&x.cycles),                                     \
	  "CPU time is counted for marking that does not exist",               \
	  x.cycles.cpu.gc_assist++)                                            \
	X(gcstats_cycles_check(&x.cycles),                                     \
	  "CPU time is counted for marking that does not exist",               \
	  x.cycles.cpu.gc_dedicated++)                                         \
	X(gcstats_cycles_check(&x.cycles),                                     \
	  "CPU time is counted for marking that does not exist",               \
	  x.cycles.cpu.gc_idle++)                                              \
	X(gcstats_cycles_check(&x.cycles),                                     \
	  "gc_total is not the sum of its parts", x.cycles.cpu.gc_pause++)     \
	X(gcstats_cycles_check(&x.cycles),                                     \
	  "scavenge_total is not the sum of its parts",                        \
	  x.cycles.cpu.scavenge_assist++)                                      \
	X(gcstats_cycles_check(&x.cycles),                                     \
	  "total CPU time is not the sum of its parts", x.cycles.cpu.user++)   \
	X(heapstats_check(&x.heapstats),                                       \
	  "statistics have an impossible current slot",                        \
	  U32(x.heapstats.gen, HEAPSTATS_SLOTS))                               \
	X(heapstats_check(&x.heapstats),                                       \
	  "next slot of statistics was not cleared",                           \
	  U64(x.heapstats                                                      \
		  .slots[(atomic_u32_load_relaxed(&x.heapstats.gen) + 1) %     \
			 HEAPSTATS_SLOTS]                                      \
		  .in_heap,                                                    \
	      1))                                                              \
	X(heapstats_check(&x.heapstats), "mutex has an unknown state",         \
	  U32(x.heapstats.no_p.state, 9))                                      \
	X(heapstats_check(&x.heapstats), "mutex has no rank",                  \
	  x.heapstats.reader.rank = 0)                                         \
	X(heapstats_totals_check(&x.totals), "statistics have negative bytes", \
	  x.totals.in_stacks = UINT64_MAX)                                     \
	X(heapstats_totals_check(&x.totals), "in_ptr_scalar_bits is not 0",    \
	  x.totals.in_ptr_scalar_bits = 1)                                     \
	X(heapstats_totals_check(&x.totals),                                   \
	  "statistics have more frees than allocations",                       \
	  x.totals.large_free_count = 1)                                       \
	X(heapstats_totals_check(&x.totals),                                   \
	  "statistics have more frees than allocations",                       \
	  x.totals.small_free_count[5] = 1)                                    \
	X(heapgauge_check(&heapgauges),                                        \
	  "P is in the list of gauges but not counted",                        \
	  PTR(heapgauges.counted, &x.p[0]))                                    \
	X(heapgauge_check(&heapgauges), "list of gauges has no end",           \
	  x.p[0].counted = true;                                               \
	  x.p[0].next_counted = &x.p[0]; PTR(heapgauges.counted, &x.p[0]))     \
	X(heapgauge_check(&heapgauges),                                        \
	  "P has a part of a gauge but is not in the list",                    \
	  PTR(heapgauges.counted, NULL);                                       \
	  x.self->counted = false; U64(x.self->gauges[0], 1))                  \
	X(proc_check(&x.p[0]), "P was stopped inside a change of statistics",  \
	  U32(x.p[0].stats_seq, 1))                                            \
	X(proc_check(&x.p[0]), "P has an unknown state", U32(x.p[0].state, 3)) \
	X(proc_check(&x.p[0]), "P has an unknown state", U32(x.p[0].state, 9)) \
	X(proc_check(&x.p[0]), "attached P is free", U32(x.p[0].state, 0))     \
	X(proc_check(&x.p[0]), "P runs while the world is stopped",            \
	  x.p[0].stopper = false)                                              \
	X(proc_check(&x.p[0]), "P of the stopper was asked to stop",           \
	  U32(x.p[0].state, PROC_RUNNING + PROC_STOP))                         \
	X(proc_check(&x.p[0]), "P in a region is not blocked",                 \
	  x.p[0].in_region = true)                                             \
	X(proc_check(&x.p[0]), "stack of a P ends before it begins",           \
	  x.p[0].context.hi = 8;                                               \
	  x.p[0].context.lo = 16)                                              \
	X(procs_check(&x.procs), "mutex has an unknown state",                 \
	  U32(x.procs.lock.state, 3))                                          \
	X(procs_check(&x.procs), "P has a number that was not given",          \
	  x.p[0].id = 3)                                                       \
	X(procs_check(&x.procs), "P has an unknown state",                     \
	  U32(x.p[1].state, 3))                                                \
	X(procs_check(&x.procs), "list of Ps does not lead back",              \
	  x.p[1].prev = NULL)                                                  \
	X(procs_check(&x.procs), "P in the list of attached ones is free",     \
	  U32(x.p[1].state, PROC_FREE))                                        \
	X(procs_check(&x.procs), "list of Ps is longer than count",            \
	  x.procs.count--)                                                     \
	X(procs_check(&x.procs), "list of Ps is shorter than count",           \
	  x.procs.count++)                                                     \
	X(procs_check(&x.procs),                                               \
	  "attached is not the number of the host's threads",                  \
	  x.p[1].flags = 0)                                                    \
	X(procs_check(&x.procs), "P has a number that was not given",          \
	  x.p[2].id = 77)                                                      \
	X(procs_check(&x.procs), "P in the list of free ones has a thread",    \
	  U32(x.p[2].state, PROC_BLOCKED))                                     \
	X(procs_check(&x.procs), "more Ps are free than were made",            \
	  x.p[2].next_free = &x.p[2])                                          \
	X(procs_check(&x.procs), "P is in no list", x.procs.free = NULL)       \
	X(procs_check(&x.procs), "note has an unknown state",                  \
	  U32(x.procs.stopnote.woken, 7))                                      \
	X(stw_check(&x.world), "semaphore serves a ticket that was not drawn", \
	  U32(x.world.sema.next,                                               \
	      atomic_u32_load_relaxed(&x.world.sema.serving) - 1))             \
	X(stw_check(&x.world),                                                 \
	  "world is stopped without the right to stop it",                     \
	  U32(x.world.sema.next,                                               \
	      atomic_u32_load_relaxed(&x.world.sema.serving)))                 \
	X(stw_check(&x.world), "world is not marked as stopped",               \
	  U32(x.world.stopped, 0))                                             \
	X(stw_check(&x.world), "more threads were stopped than Ps made",       \
	  x.world.nthreads = 99)                                               \
	X(stw_check(&x.world), "slowest thread has a P that was never made",   \
	  x.world.slowest = 99)                                                \
	X(stw_check(&x.world), "stop was complete before it was requested",    \
	  x.world.begin.finished = x.world.begin.asked - 1)

#define CASES_PAGES(X)                                                         \
	X(scavindex_check(&x.scav), "table begins inside a physical page",     \
	  x.scav.table.base = NULL)                                            \
	X(scavindex_check(&x.scav), "scavenge index is longer than its table", \
	  x.scav.nchunks = 1 << 20)                                            \
	X(scavindex_check(&x.scav),                                            \
	  "cursor of the scavenge index is beyond the heap",                   \
	  x.scav.cursor_bg = x.scav.nchunks + 1)                               \
	X(scavindex_check(&x.scav),                                            \
	  "cursor of the scavenge index is beyond the heap",                   \
	  x.scav.cursor_force = x.scav.nchunks + 1)                            \
	X(scavindex_check(&x.scav),                                            \
	  "cursor of the scavenge index is beyond the heap",                   \
	  x.scav.free_high = x.scav.nchunks + 1)                               \
	X(scavindex_check(&x.scav), "chunk has more pages in use than pages",  \
	  *scav_word() = 513)                                                  \
	X(scavindex_check(&x.scav), "chunk has more pages in use than pages",  \
	  *scav_word() = 513u << 15)                                           \
	X(scavindex_check(&x.scav), "chunk is full but has pages to scavenge", \
	  *scav_word() = 512 | 1u << 31)                                       \
	X(scavindex_check(&x.scav),                                            \
	  "chunk above the cursor has pages to scavenge",                      \
	  *scav_word() = 1u << 31;                                             \
	  x.scav.cursor_force = 0)                                             \
	X(pagealloc_check(&x.pages), "table begins inside a physical page",    \
	  x.pages.chunks.base = NULL)                                          \
	X(pagealloc_check(&x.pages), "table has no gauge",                     \
	  x.pages.sums[4].stat = NULL)                                         \
	X(pagealloc_check(&x.pages),                                           \
	  "page allocator is longer than its tables", x.pages.max_chunks = 0)  \
	X(pagealloc_check(&x.pages),                                           \
	  "page allocator is longer than its tables",                          \
	  U64(x.pages.chunks.ready, 0))                                        \
	X(pagealloc_check(&x.pages),                                           \
	  "page allocator is longer than its tables",                          \
	  x.pages.nchunks = x.pages.max_chunks = 1 << 20)                      \
	X(pagealloc_check(&x.pages),                                           \
	  "scavenge index and page allocator have different lengths",          \
	  x.pages.nchunks = 0)                                                 \
	X(pagealloc_check(&x.pages),                                           \
	  "cursor of the scavenge index is beyond the heap",                   \
	  x.pages.scav.cursor_bg = 1 << 20)                                    \
	X(pagealloc_check(&x.pages), "page is both allocated and scavenged",   \
	  pages()->scavenged.word[0] |= pages()->alloc.word[0])                \
	X(pagealloc_check(&x.pages),                                           \
	  "summary of a chunk is not that of its pages", sums(4)[0] ^= 1)      \
	X(pagealloc_check(&x.pages),                                           \
	  "scavenge index counts other pages in use than the chunk",           \
	  ++*scav_word())                                                      \
	X(pagealloc_check(&x.pages),                                           \
	  "summary does not follow from its children", sums(0)[0] ^= 1)        \
	X(pagealloc_check(&x.pages),                                           \
	  "summary does not follow from its children", sums(1)[0] ^= 1)        \
	X(pagealloc_check(&x.pages),                                           \
	  "summary does not follow from its children", sums(2)[0] ^= 1)        \
	X(pagealloc_check(&x.pages),                                           \
	  "summary does not follow from its children", sums(3)[0] ^= 1)        \
	X(pagealloc_check(&x.pages), "summary beyond the last chunk is not 0", \
	  sums(4)[x.pages.nchunks] = pallocsum_make(0, 1, 0))                  \
	X(pagealloc_check(&x.pages), "summary beyond the last chunk is not 0", \
	  sums(3)[x.pages.nchunks / 8 + 1] = pallocsum_make(0, 1, 0))          \
	X(pagealloc_check(&x.pages), "search_page is beyond the heap",         \
	  x.pages.search_page = UINT64_MAX)                                    \
	X(pagealloc_check(&x.pages), "page below search_page is free",         \
	  x.pages.search_page = (uint64_t)x.pages.nchunks * RT_CHUNK_PAGES)    \
	X(pagecache_check(&x.cache), "page cache begins inside a block",       \
	  x.cache.base = 1)                                                    \
	X(pagecache_check(&x.cache),                                           \
	  "page cache has a scavenged page that it does not cache",            \
	  x.cache.cache = 0;                                                   \
	  x.cache.scav = 1)                                                    \
	X(pagecache_check(&x.cache),                                           \
	  "page cache has a scavenged page that is not zero",                  \
	  x.cache.cache = 1;                                                   \
	  x.cache.scav = 1; x.cache.zero = 0)                                  \
	X(pagecache_check(&x.cache), "page cache remembers too many blocks",   \
	  x.cache.nrecent = PAGECACHE_RECENT + 1)                              \
	X(pagecache_check(&x.cache),                                           \
	  "page cache remembers a place inside a block",                       \
	  x.cache.recent[1] = 3)                                               \
	X(pagecache_check(&x.cache), "page cache remembers a block twice",     \
	  x.cache.recent[1] = 64)                                              \
	X(arena_check(&x.arena), "heap's range is not aligned",                \
	  x.arena.base = 0)                                                    \
	X(arena_check(&x.arena), "heap's range is not aligned",                \
	  x.arena.base += 8)                                                   \
	X(arena_check(&x.arena), "heap's range is not whole arenas",           \
	  x.arena.reserved = 0)                                                \
	X(arena_check(&x.arena), "heap's range is not whole arenas",           \
	  x.arena.reserved++)                                                  \
	X(arena_check(&x.arena), "heap is not whole chunks",                   \
	  U64(x.arena.used, 8))                                                \
	X(arena_check(&x.arena), "heap is longer than its prepared part",      \
	  U64(x.arena.used, UINT64_C(1) << 50))                                \
	X(arena_check(&x.arena), "heap is prepared beyond its range",          \
	  U64(x.arena.prepared, UINT64_C(1) << 50))                            \
	X(arena_check(&x.arena), "table begins inside a physical page",        \
	  x.arena.table[1].base = NULL)                                        \
	X(arena_check(&x.arena),                                               \
	  "table of the arena is not where its field says",                    \
	  x.arena.pagewords++)                                                 \
	X(arena_check(&x.arena), "bits beside the heap have no table",         \
	  atomic_ptr_store_relaxed(&x.arena.typebits, &x))                     \
	X(arena_check(&x.arena), "table of the arena is too short",            \
	  U64(x.arena.table[2].ready, 0))                                      \
	X(hugepages_check(&hugepages), "mutex has an unknown state",           \
	  U32(hugepages.lock.state, 9))                                        \
	X(hugepages_check(&hugepages), "table has no gauge",                   \
	  hugepages.states.stat = NULL)                                        \
	X(hugepages_check(&hugepages),                                         \
	  "huge pages have more states than their table",                      \
	  hugepages.nchunks = 1 << 30)                                         \
	X(hugepages_check(&hugepages),                                         \
	  "huge pages have states though they are off",                        \
	  settings_present.huge_pages = 0)                                     \
	X(hugepages_check(&hugepages),                                         \
	  "cursor of huge pages is beyond the heap",                           \
	  hugepages.cursor = hugepages.nchunks + 1)                            \
	X(hugepages_check(&hugepages),                                         \
	  "range of huge pages has no place or no unit",                       \
	  hugepages.range[1].base = NULL)                                      \
	X(hugepages_check(&hugepages),                                         \
	  "range of huge pages has no place or no unit",                       \
	  hugepages.range[0].unit = 0)                                         \
	X(hugepages_check(&hugepages),                                         \
	  "unit of huge pages has an unknown state", huge_state(3))            \
	X(hugepages_check(&hugepages),                                         \
	  "nwanted is not the number of WANTED units", huge_state(1))          \
	X(hugepages_check(&hugepages),                                         \
	  "nstretches is not the number of stretches of HUGE units",           \
	  huge_state(2))                                                       \
	X(hugepages_check(&hugepages),                                         \
	  "huge pages are provided by two threads", U32(hugepages.busy, 2))

#define CASES_SPANS(X)                                                         \
	X(kinds_check(&x.kinds), "one of the fixed kinds does not exist",      \
	  U32(x.kinds.mask, 1u << KIND_NOSCAN))                                \
	X(kinds_check(&x.kinds), "one of the fixed kinds does not exist",      \
	  U32(x.kinds.mask, 1u << KIND_WORDS))                                 \
	X(kinds_check(&x.kinds), "kind beyond the last exists",                \
	  U32(x.kinds.mask, UINT32_MAX))                                       \
	X(kinds_check(&x.kinds), "kind may have spans but does not exist",     \
	  U32(x.kinds.used, 1u << KIND_HOST))                                  \
	X(mheap_check(&x.mheap), "mutex has no rank", x.mheap.lock.rank = 0)   \
	X(mheap_check(&x.mheap),                                               \
	  "semaphore serves a ticket that was not drawn",                      \
	  U32(x.mheap.turn.next,                                               \
	      atomic_u32_load_relaxed(&x.mheap.turn.serving) - 1))             \
	X(mheap_check(&x.mheap), "pages are in hand in a stop",                \
	  x.mheap.in_hand = true)                                              \
	X(mheap_check(&x.mheap), "fixalloc has an impossible size",            \
	  x.mheap.spans.size = 0)                                              \
	X(mheap_check(&x.mheap),                                               \
	  "mspan_inuse differs from the mspans handed out",                    \
	  x.mheap.spans.inuse -= sizeof(struct mspan))                         \
	X(mheap_check(&x.mheap), "fixalloc has an impossible alignment",       \
	  x.mheap.bitmap8s.align = 3)                                          \
	X(mheap_check(&x.mheap), "populate is neither on nor off",             \
	  U32(x.mheap.populate, 2))                                            \
	X(mheap_check(&x.mheap), "limit of the heap is beyond its range",      \
	  x.mheap.max = (arena.reserved >> RT_PAGE_SHIFT) + 1)                 \
	X(mheap_cache_check(&x.mheap_cache),                                   \
	  "page cache begins inside a block", x.mheap_cache.pages.base = 1)    \
	X(mheap_cache_check(&x.mheap_cache),                                   \
	  "cache was filled with more than a block",                           \
	  x.mheap_cache.filling = PAGECACHE_PAGES + 1)                         \
	X(mheap_cache_check(&x.mheap_cache),                                   \
	  "cache has more mspans than room",                                   \
	  x.mheap_cache.nspans = MHEAP_CACHE_SPANS + 1)                        \
	X(mheap_cache_check(&x.mheap_cache),                                   \
	  "cache counts an mspan that it does not have",                       \
	  x.mheap_cache.nspans = 1;                                            \
	  x.mheap_cache.spans[0] = NULL)                                       \
	X(mheap_cache_check(&x.mheap_cache), "cached mspan is in use",         \
	  x.mheap_cache.nspans = 1;                                            \
	  x.mheap_cache.spans[0] = &x.stacks)                                  \
	X(mcache_check(x.mc), "thread block belongs to another mcache",        \
	  x.mc->thread.mc = NULL)                                              \
	X(mcache_check(x.mc), "mcache has no P", x.mc->thread.p = NULL)        \
	X(mcache_check(x.mc), "thread block has runs of another mcache",       \
	  x.mc->thread.run = NULL)                                             \
	X(mcache_check(x.mc), "tiny block has an impossible place or size",    \
	  x.mc->tiny = 8)                                                      \
	X(mcache_check(x.mc), "tiny block has an impossible place or size",    \
	  x.mc->tiny_offset = 17)                                              \
	X(mcache_check(x.mc), "mcache has more stacks than it may keep",       \
	  x.mc->stacks.n[3] = 3)                                               \
	X(mcache_check(x.mc), "mcache counts a stack that it does not have",   \
	  x.mc->stacks.n[3] = 1)                                               \
	X(mcache_check(x.mc), "cache has more mspans than room",               \
	  x.mc->heap.nspans = 99)                                              \
	X(mcache_check(x.mc),                                                  \
	  "nonempty differs from the slots that have a span",                  \
	  x.mc->nonempty[x.slot_idx / 64] = 0)                                 \
	X(mcache_check(x.mc), "slot has the wrong class or size",              \
	  x.slot->uninit = !x.slot->uninit)                                    \
	X(mcache_check(x.mc), "slot has the wrong class or size",              \
	  x.slot->sc++)                                                        \
	X(mcache_check(x.mc), "slot has the wrong class or size",              \
	  x.slot->size++)                                                      \
	X(mcache_check(x.mc), "slot has an impossible length of runs",         \
	  x.slot->run_log2 = 4)                                                \
	X(mcache_check(x.mc), "slot has an impossible length of runs",         \
	  x.slot->run_log2 = 11)                                               \
	X(mcache_check(x.mc), "slot has a span that is not cached",            \
	  x.slot->span->cached = 0)                                            \
	X(mcache_check(x.mc), "slot has a span of the wrong class",            \
	  x.slot->span->spanclass++)                                           \
	X(mcache_check(x.mc), "slot took more bytes than its span has",        \
	  x.slot->taken = UINT32_MAX)                                          \
	X(mcache_check(x.mc), "slot for uninit has freed slots",               \
	  x.mc->slots[MCACHE_SLOTS - 1].freed =                                \
	      (struct freelist){(void *)x.span, (void *)x.span, 1})            \
	X(mcache_check(x.mc), "list of freed slots has the wrong length",      \
	  x.slot->freed.n = 1)                                                 \
	X(mcache_check(x.mc), "list of freed slots is too long",               \
	  x.slot->freed = (struct freelist){(void *)x.span, (void *)x.span,    \
					    FREELIST_MOST + 1})                \
	X(mcache_check(x.mc), "slot has a run but no span",                    \
	  x.mc->slots[MCACHE_SLOTS - 1].run->cur = (char *)8)                  \
	X(mcache_check(x.mc), "run ends before it begins",                     \
	  x.slot->run->start = x.slot->run->cur + 8)                           \
	X(mcache_check(x.mc), "run is outside of its span",                    \
	  x.slot->run->cur = (char *)UINTPTR_MAX)                              \
	X(freelist_check_shared(), "freed slot is on a shared list",           \
	  PTR(freelist_shared[3], x.span))                                     \
	X(mcache_blocks_check(&x.blocks), "mutex has no rank",                 \
	  x.blocks.lock.rank = 0)                                              \
	X(mcache_blocks_check(&x.blocks), "slab has the size 0",               \
	  x.blocks.mcaches.slab.size = 0)                                      \
	X(mcache_blocks_check(&x.blocks), "more blocks are kept than counted", \
	  x.blocks.mcaches.list = (void **)x.mc)                               \
	X(mcache_blocks_check(&x.blocks),                                      \
	  "fewer blocks are kept than counted", x.blocks.kinds.n++)            \
	X(stackpool_check(&x.stackpool), "mutex has no rank",                  \
	  x.stackpool.lock.rank = 0)                                           \
	X(stackpool_check(&x.stackpool), "stack pool has no end",              \
	  x.stacks.next = &x.stacks)                                           \
	X(stackpool_check(&x.stackpool), "span of stacks has another use",     \
	  x.stacks.use = 0)                                                    \
	X(stackpool_check(&x.stackpool),                                       \
	  "span of stacks is in the list of another order",                    \
	  x.stacks.stack_order = 1)                                            \
	X(stackpool_check(&x.stackpool),                                       \
	  "span of stacks is in the list of another order",                    \
	  x.stacks.elemsize = 4096)                                            \
	X(stackpool_check(&x.stackpool),                                       \
	  "span of stacks in the pool has no stack in use",                    \
	  x.stacks.stack_used = 0)                                             \
	X(stackpool_check(&x.stackpool),                                       \
	  "span of stacks has more stacks than fit",                           \
	  x.stacks.stack_used = 1 << 16)                                       \
	X(stackpool_check(&x.stackpool), "span of stacks in the pool is full", \
	  x.stacks.stack_used = 0xffff)                                        \
	X(mspan_check(x.slot->span), "span is outside of the heap",            \
	  x.slot->span->base += 8)                                             \
	X(mspan_check(x.slot->span), "span has an unknown use or class",       \
	  x.slot->span->use = 77)                                              \
	X(mspan_check(x.slot->span), "span has an impossible sweepgen",        \
	  U32(x.slot->span->sweepgen, epoch_sweepgen() - 1))                   \
	X(mspan_check(x.slot->span), "span has an impossible sweepgen",        \
	  U32(x.slot->span->sweepgen, epoch_sweepgen() + 2))

#define CASES_MARK(X)                                                          \
	X(gain_check(&x.gain), "cost of marking is known in part",             \
	  x.gain.cost[1].cpu = 0)                                              \
	X(gain_check(&x.gain), "helpers are off without a comparison",         \
	  x.gain.cost[0] = (struct gain_cost){0})                              \
	X(gain_check(&x.gain), "helpers are off without a comparison",         \
	  x.gain.cost[1] = (struct gain_cost){0})                              \
	X(crew_check(&x.crew), "helpers are called for an unknown task",       \
	  U32(x.crew.call, CREW_QUIT + 1))                                     \
	X(crew_check(&x.crew), "more helpers exist than may",                  \
	  U32(x.crew.size, -1))                                                \
	X(work_check(&x.work), "stack of a marker is not a buffer",            \
	  x.work.t.limit--)                                                    \
	X(work_check(&x.work), "stack of a marker is not a buffer",            \
	  x.work.high--)                                                       \
	X(work_check(&x.work), "top of a marker is outside of its buffer",     \
	  x.work.t.top--)                                                      \
	X(work_check(&x.work), "top of a marker is outside of its buffer",     \
	  x.work.t.top = x.work.t.limit + 1)                                   \
	X(work_check(&x.work),                                                 \
	  "nfull is not the number of a marker's full buffers",                \
	  x.work.nfull = 2)                                                    \
	X(work_check(&x.work),                                                 \
	  "nfull is not the number of a marker's full buffers",                \
	  x.buf[0].next = &x.buf[0])                                           \
	X(work_check(&x.work), "marker has too many empty buffers",            \
	  x.work.nspare = WORK_SPARES + 1)                                     \
	X(work_check(&x.work),                                                 \
	  "nspare is not the number of a marker's empty buffers",              \
	  x.work.spare = NULL)                                                 \
	X(work_check(&x.work), "marker is alone but not busy",                 \
	  x.work.alone = true;                                                 \
	  x.work.busy = false)                                                 \
	X(work_check(&x.work), "note has an unknown state",                    \
	  U32(x.work.note.woken, 3))                                           \
	X(work_agreed_check(&x.agreed), "mutex has no rank",                   \
	  x.agreed.lock.rank = 0)                                              \
	X(work_agreed_check(&x.agreed), "more jobs were given than there are", \
	  x.agreed.next_job = 1)                                               \
	X(work_agreed_check(&x.agreed),                                        \
	  "marker is alone but not the only busy one", x.agreed.alone = true;  \
	  U32(x.agreed.busy, 2))                                               \
	X(work_agreed_check(&x.agreed), "marker that waits is busy",           \
	  x.other.busy = true)                                                 \
	X(work_agreed_check(&x.agreed), "marker that waits is busy",           \
	  x.other.got = WORK_JOB)                                              \
	X(work_agreed_check(&x.agreed), "more markers wait than are counted",  \
	  x.other.waits = &x.other)                                            \
	X(work_agreed_check(&x.agreed), "fewer markers wait than are counted", \
	  x.agreed.waiters = NULL)                                             \
	X(work_agreed_check(&x.agreed),                                        \
	  "marker waits though no marking is open", x.agreed.open = false)     \
	X(work_agreed_check(&x.agreed),                                        \
	  "work is left though no marking is open", x.agreed.open = false;     \
	  x.agreed.waiters = NULL; U32(x.agreed.waiting, 0);                   \
	  x.agreed.njobs = 1)                                                  \
	X(work_agreed_check(&x.agreed),                                        \
	  "work is left though no marking is open", x.agreed.open = false;     \
	  x.agreed.waiters = NULL; U32(x.agreed.waiting, 0);                   \
	  x.agreed.ranges = &x.buf[0])                                         \
	X(work_agreed_check(&x.agreed),                                        \
	  "marker is busy though no marking is open", x.agreed.open = false;   \
	  x.agreed.waiters = NULL; U32(x.agreed.waiting, 0))                   \
	X(work_agreed_check(&x.agreed),                                        \
	  "marker is busy though no marking is open", x.agreed.open = false;   \
	  x.agreed.waiters = NULL; x.agreed.alone = true;                      \
	  U32(x.agreed.waiting, 0))                                            \
	X(work_agreed_check(&x.agreed),                                        \
	  "marker offers though it is idle or the opener",                     \
	  x.agreed.offers = &x.work;                                           \
	  x.work.busy = false; U32(x.agreed.offered, 1))                       \
	X(work_agreed_check(&x.agreed),                                        \
	  "marker offers though it is idle or the opener",                     \
	  x.agreed.offers = &x.work;                                           \
	  x.work.busy = x.work.opener = true; U32(x.agreed.offered, 1))        \
	X(work_agreed_check(&x.agreed), "more markers offer than are counted", \
	  x.agreed.offers = &x.work;                                           \
	  x.work.busy = true)                                                  \
	X(work_agreed_check(&x.agreed),                                        \
	  "fewer markers offer than are counted", U32(x.agreed.offered, 1))    \
	X(work_agreed_check(&x.agreed),                                        \
	  "marker offers though no marking is open", x.agreed.open = false;    \
	  x.agreed.waiters = NULL; x.agreed.offers = &x.work;                  \
	  x.work.busy = true; U32(x.agreed.offered, 1))                        \
	X(work_pool_check(&x.pool), "mutex has an unknown state",              \
	  U32(x.pool.lock.state, 4))                                           \
	X(work_pool_check(&x.pool), "span of work buffers has another use",    \
	  x.buffers.use = 1)                                                   \
	X(work_pool_check(&x.pool),                                            \
	  "more spans of work buffers exist than are counted",                 \
	  x.pool.nspans = 0)                                                   \
	X(work_pool_check(&x.pool),                                            \
	  "fewer spans of work buffers exist than are counted",                \
	  x.pool.nspans = 2)                                                   \
	X(work_pool_check(&x.pool), "work buffer has no span",                 \
	  x.pool.spans = NULL;                                                 \
	  x.pool.nspans = 0)                                                   \
	X(roots_check(&x.roots), "mutex has no rank", x.roots.lock.rank = 0)   \
	X(roots_check(&x.roots), "room for roots is not a power of two",       \
	  x.roots.room--)                                                      \
	X(roots_check(&x.roots), "table of roots is not where its fields say", \
	  x.roots.bucket++)                                                    \
	X(roots_check(&x.roots), "table of roots is not where its fields say", \
	  x.roots.entry = NULL)                                                \
	X(roots_check(&x.roots), "table of roots has more roots than room",    \
	  x.roots.n = x.roots.room + 1)                                        \
	X(roots_check(&x.roots), "root is not a range of words",               \
	  root()->lo = root()->hi + 8)                                         \
	X(roots_check(&x.roots), "root is not a range of words",               \
	  root()->lo -= 4)                                                     \
	X(roots_check(&x.roots), "root is not a range of words",               \
	  root()->hi += 4)                                                     \
	X(roots_check(&x.roots), "root was added 0 times",                     \
	  root()->times[0] = root()->times[1] = 0)                             \
	X(roots_check(&x.roots), "bucket of roots leads beyond the table",     \
	  x.roots.bucket[0] = (uint32_t)x.roots.n)                             \
	X(roots_check(&x.roots), "bucket of roots has no end",                 \
	  loop_of_roots())                                                     \
	X(roots_check(&x.roots), "root is in no bucket", no_bucket())          \
	X(roots_check(&x.roots), "root of values has no format",               \
	  root()->times[ROOTS_VALUES] = 1)                                     \
	X(roots_check(&x.roots), "root of values has no format",               \
	  root()->times[ROOTS_VALUES] = 1;                                     \
	  root()->label = &x.label)                                            \
	X(roots_check(&x.roots), "name of a root has no end",                  \
	  root()->label = &x.label;                                            \
	  x.label.name[ROOTS_NAME - 1] = 'x')                                  \
	X(roots_check(&x.roots), "format of stacks is not in order",           \
	  x.roots.stack_format.stride = 16)                                    \
	X(roots_check(&x.roots), "format of stacks is not in order",           \
	  x.roots.stack_format.stride = 8;                                     \
	  x.roots.stack_format.test_at = 1)                                    \
	X(rootfns_check(&x.rootfns),                                           \
	  "table of root callbacks is not where its fields say",               \
	  x.rootfns.entry = NULL)                                              \
	X(rootfns_check(&x.rootfns),                                           \
	  "table of root callbacks has more than it has room",                 \
	  x.rootfns.n = 2)                                                     \
	X(rootfns_check(&x.rootfns), "root callback has no function",          \
	  x.rootfn.fn = NULL)                                                  \
	X(rootfns_check(&x.rootfns), "name of a root callback has no end",     \
	  x.rootfn.name[ROOTS_NAME - 1] = 'x')                                 \
	X(handles_check(&x.handles), "mutex has no rank",                      \
	  x.handles.lock.rank = 0)                                             \
	X(handles_check(&x.handles), "handles are longer than their table",    \
	  U64(x.handles.bytes, 8))                                             \
	X(handles_check(&x.handles),                                           \
	  "number of empty strips of handles is wrong", x.handles.nempty++)    \
	X(handles_check(&x.handles),                                           \
	  "free words of a strip of handles differ from their number",         \
	  x.handles.partial->first = 0)                                        \
	X(handles_check(&x.handles),                                           \
	  "free word of a strip of handles is in another strip",               \
	  x.handles.partial->first += x.handles.strip_bytes)                   \
	X(handles_check(&x.handles), "strip of handles is in no list",         \
	  x.handles.partial = NULL)                                            \
	X(handles_check(&x.handles), "strip of handles is in the wrong list",  \
	  x.handles.released = x.handles.partial)                              \
	X(drops_check(&x.drops), "queue of drops has an impossible state",     \
	  U32(x.drops.open, 1); x.drops.now = true)                            \
	X(drops_check(&x.drops), "batch of drops is not open",                 \
	  x.drops.batch = x.dead_span)                                         \
	X(drops_check(&x.drops),                                               \
	  "span in the queue of drops does not say so",                        \
	  x.drops.next = &x.waiting)                                           \
	X(drops_check(&x.drops), "queue of drops has no end",                  \
	  x.dead_span->next = x.dead_span)                                     \
	X(drops_check(&x.drops), "queued span is in no part of the queue",     \
	  x.drops.next = NULL)                                                 \
	X(drops_check(&x.drops),                                               \
	  "number of drops differs from the dead that wait",                   \
	  U64(x.drops.ready, 2))                                               \
	X(drops_check(&x.drops),                                               \
	  "rest of a batch differs from the dead of its turn",                 \
	  x.drops.left = 1)                                                    \
	X(drops_check(&x.drops),                                               \
	  "object that waits for its drop is not queued",                      \
	  x.drops.next = NULL;                                                 \
	  x.dead_span->queued = 0)                                             \
	X(drops_check(&x.drops), "object of a batch is not in it",             \
	  drops.turn ^= 1;                                                     \
	  x.drops.left = 1)                                                    \
	X(drops_check(&x.drops),                                               \
	  "dropped object is in no batch and not condemned",                   \
	  x.drops.next = NULL;                                                 \
	  x.dead_span->queued = 0;                                             \
	  U64(x.drops.ready, 0);                                               \
	  for (unsigned w = 0; w < x.dead_span->nwords; w++)                   \
	      drop_word(deadbits_word(x.dead_span, w)))                        \
	X(drops_check(&x.drops), "loose object is not expected",               \
	  x.drops.next = NULL;                                                 \
	  x.dead_span->queued = 0;                                             \
	  x.dead_span->condemned = 1;                                          \
	  U64(x.drops.ready, 0);                                               \
	  for (unsigned w = 0; w < x.dead_span->nwords; w++)                   \
	      drop_word(deadbits_word(x.dead_span, w)))                        \
	X(mspan_check(x.dead_span), "dead object is not allocated",            \
	  deadbits_set(deadbits_word(x.dead_span, 0), 0, 1))                   \
	X(mspan_check(x.dead_span), "span has no dead objects",                \
	  for (unsigned w = 0; w < x.dead_span->nwords; w++)                   \
	      deadbits_clear(deadbits_word(x.dead_span, w), UINT64_MAX))       \
	X(mspan_check(x.span), "span has no dead objects",                     \
	  x.span->condemned = 1)                                               \
	X(mcentral_check_span(x.dead_span),                                    \
	  "span in a set is in the queue of drops", x.dead_span->needzero = 1) \
	X(kinds_check(&x.kinds), "kind of the library's has destructors",      \
	  U32(x.kinds.drops, 1u << KIND_WORDS)) \
	X(targets_check(&x.targets),                                           \
	  "table of targets is not where its fields say", x.targets.room = 1)  \
	X(targets_check(&x.targets), "table of targets is neither of the two", \
	  x.targets.slot++)                                                    \
	X(targets_check(&x.targets), "table of targets is too full",           \
	  x.targets.n = 5)                                                     \
	X(targets_check(&x.targets), "table of targets is too full",           \
	  x.targets.mask--)                                                    \
	X(targets_check(&x.targets),                                           \
	  "table of targets is larger than its memory", x.targets.mask = 255)  \
	X(targets_check(&x.targets), "target is not where a search finds it",  \
	  x.targets.slot[0].base = x.targets.slot[1].base = 8;                 \
	  x.targets.slot[2].base = x.targets.slot[3].base = 8)                 \
	X(targets_check(&x.targets),                                           \
	  "table of targets has another number of them", x.targets.n++)        \
	X(sites_check(&x.sites),                                               \
	  "table of sites is not where its fields say", x.sites.site = NULL)   \
	X(sites_check(&x.sites),                                               \
	  "table of sites is not where its fields say", x.sites.slot = NULL)   \
	X(sites_check(&x.sites), "table of sites has more than it has room",   \
	  x.sites.n = 3)                                                       \
	X(sites_check(&x.sites), "site is not where a search finds it",        \
	  memset(x.site_slot, 0, sizeof x.site_slot))                          \
	X(sites_check(&x.sites), "site has another state than there are",      \
	  x.site[0].told = SITE_LOST + 1)                                      \
	X(sites_check(&x.sites), "site has another state than there are",      \
	  x.site[0].found.how = SITE_LOST + 1)                                 \
	X(notices_check(&x.notices), "more notices than there is room for",    \
	  x.notices.next = 2)                                                  \
	X(notices_check(&x.notices), "more notices than there is room for",    \
	  x.notices.n = NOTICES_MAX + 1)                                       \
	X(notices_check(&x.notices), "another number of notices is left",      \
	  U32(x.notices.left, 0))                                              \
	X(notices_check(&x.notices), "notice has no end",                      \
	  x.notices.line[0].len = sizeof x.notices.line[0].buf)                \
	X(notices_check(&x.notices), "notice has no end",                      \
	  x.notices.line[0].buf[0] = 'x')

#define CASES_CYCLE(X)                                                         \
	X(pacer_check(&x.pacer), "goal is less than the rule says",            \
	  x.pacer.rule.percent = 100;                                          \
	  U64(x.pacer.goal, 0))                                                \
	X(pacer_check(&x.pacer), "pacer shows other stacks than were found",   \
	  x.pacer.found.stack_inuse++)                                         \
	X(pacer_check(&x.pacer), "pacer shows another heap than was found",    \
	  x.pacer.found.heap_marked++)                                         \
	X(pacer_check(&x.pacer),                                               \
	  "pacer shows another percentage than its rule",                      \
	  U64(x.pacer.percent, 7))                                             \
	X(pacer_check(&x.pacer),                                               \
	  "pacer shows other bytes outside than were found",                   \
	  U64(x.pacer.external, 7))                                            \
	X(pacer_check(&x.pacer), "pacer shows another limit than its rule",    \
	  U64(x.pacer.limit, 7))                                               \
	X(pacer_check(&x.pacer),                                               \
	  "pacer shows another limit of the heap than its rule",               \
	  U64(x.pacer.heap_max, 7))                                            \
	X(ask_queue_check(&x.asks), "mutex has no rank", x.asks.lock.rank = 0) \
	X(ask_queue_check(&x.asks), "threads ask but none leads",              \
	  x.asks.led = false)                                                  \
	X(ask_queue_check(&x.asks), "ask has an unknown cause",                \
	  x.ask[1].cause = ASK_MEMORY + 1)                                     \
	X(ask_queue_check(&x.asks), "last ask is not the end of the queue",    \
	  x.asks.last = &x.ask[0])                                             \
	X(sweep_check(&x.sweep), "more chunks to sweep than the heap has",     \
	  U64(x.sweep.left, ~SWEEP_BESIDE))                                    \
	X(sweep_check(&x.sweep), "lowest chunk to sweep is above the highest", \
	  U64(x.sweep.left, 1))                                                \
	X(sweep_check(&x.sweep), "number of active sweepers is negative",      \
	  U32(x.sweep.active, -1))                                             \
	X(workers_check(&x.workers), "helpers are made by two threads",        \
	  U32(x.workers.making, 2))                                            \
	X(workers_check(&x.workers),                                           \
	  "more records of helpers exist than are counted",                    \
	  x.workers.records = 0)                                               \
	X(workers_check(&x.workers),                                           \
	  "fewer records of helpers exist than are counted",                   \
	  x.workers.records = 2)                                               \
	X(workers_check(&x.workers),                                           \
	  "more helpers run than there are records",                           \
	  U32(x.workers.running, 2))                                           \
	X(workers_check(&x.workers), "other helpers run than are counted",     \
	  U32(x.workers.running, 1))                                           \
	X(workers_check(&x.workers), "helper runs that was not attached",      \
	  x.worker.runs = true)                                                \
	X(worker_check(&x.worker), "helper runs that was not attached",        \
	  x.worker.runs = true)                                                \
	X(worker_check(&x.worker), "note has an unknown state",                \
	  U32(x.worker.t.begun.woken, 3))                                      \
	X(scavenger_check(&x.scavenger), "scavenger is made by two threads",   \
	  U32(x.scavenger.making, 2))                                          \
	X(scavenger_check(&x.scavenger), "scavenger has an unknown state",     \
	  U32(x.scavenger.runs, 2))                                            \
	X(scavenger_check(&x.scavenger), "scavenger has an unknown state",     \
	  U32(x.scavenger.timed, 2))                                           \
	X(scavenger_check(&x.scavenger), "scavenger has an unknown state",     \
	  U32(x.scavenger.quit, 2))                                            \
	X(scavenger_check(&x.scavenger), "note has an unknown state",          \
	  U32(x.scavenger.call.woken, 3))                                      \
	X(scavenger_check(&x.scavenger), "note has an unknown state",          \
	  U32(x.scavenger.pause.woken, 3))                                     \
	X(libthread_check(&x.worker.t),                                        \
	  "thread of the library was attached without work",                   \
	  x.worker.t.attached = true)                                          \
	X(grey_check(&x.marker), "marks of no markword are kept back",         \
	  x.marker.kept[5].bits = 1)                                           \
	X(grey_check(&x.marker),                                               \
	  "marks kept back are where no search finds them", keep_mark(1))      \
	X(grey_check(&x.marker), "marks kept back are never published",        \
	  keep_mark(0))

#define CASES(X)                                                               \
	CASES_OS(X)                                                            \
	CASES_WORLD(X)                                                         \
	CASES_PAGES(X)                                                         \
	CASES_SPANS(X)                                                         \
	CASES_MARK(X)                                                          \
	CASES_CYCLE(X)

#endif
