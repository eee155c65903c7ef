// release.c - releases free pages for the memory limit.
#include "gc/cycle/release.h"

#include "runtime/os/oscall.h"
#include "runtime/os/throw.h"
#include "runtime/os/lockrank.h"
#include "runtime/world/stw.h"
#include "runtime/world/gcstats.h"
#include "runtime/spans/scavenge.h"

struct release release;

void release_step(struct rt_proc *p)
{
	struct scavenge_pass pass = scavenge_begin(true);
	uint64_t before = oscall_thread_cpu(0);
	uint64_t released;

	RT_ASSERT(p == proc_self() && !stw_stopped());
	lockrank_none();
	released = scavenge_range(p, &pass, SCAVENGE_STEP);
	if (released == 0)
		atomic_u64_store_relaxed(&release.dry,
					 gauge_load(&gauges.mapped_ready));
	pacer_note_release(gcstats_scavenged(GCSTATS_ASSIST, released, before));
}

void release_put_off(void)
{
	enum { ROOM = 1 << 20 };

	atomic_u64_store_relaxed(&release.dry,
				 gauge_load(&gauges.mapped_ready) + ROOM);
}
