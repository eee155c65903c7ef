// Accounting of collections: their record, and the CPU time that they take.
#include "runtime/world/gcstats.h"

#include <string.h>

#include "runtime/os/probe.h"
#include "runtime/os/throw.h"
#include "runtime/os/nanotime.h"
#include "runtime/os/settings.h"
#include "runtime/world/cyclering.h"

struct gcstats gcstats;

enum { WORDS = sizeof(struct gcstats_cycles) / sizeof(uint64_t) };

// The record as readers see it.  The writer raises begun before it changes a
// word and done afterwards.  A reader that finds the two apart, or finds that
// they changed, reads again.  No check: it is a copy of cycles, which has one.
static struct {
	atomic_u64 begun;
	atomic_u64 word[WORDS];
	atomic_u64 done;
} record;

// Only the thread that has the right to stop the world writes this.  Other
// threads read parent_cpu alone, which changes only in the child of a fork.
// cycles has a check; clocks may show any number.
static struct {
	struct gcstats_cycles cycles;
	uint64_t init_now;	   // nanotime when the heap began
	uint64_t last_now;	   // nanotime of the last accounting
	uint64_t last_cpu;	   // CPU accounted so far
	uint64_t parent_cpu;	   // CPU that a parent used before its fork
	uint64_t last_scavenge[2]; // CPU of scavengers accounted so far
	uint64_t last_released[2]; // bytes that records have so far
} state;

void cpustats_add(struct cpustats *c, const struct cpustats_interval *i)
{
	// Processor time is shared out once: to the stop, to waiting for it, to
	// the process; the rest was idle.  Each part takes at most what is
	// left, because more threads may wait than there are processors, and
	// clocks differ by a little.
	uint64_t stopped = base_min(i->stopped, i->wall);
	uint64_t between = (i->wall - stopped) * i->nprocs;
	uint64_t waits = base_min(i->stopping_cpu, between);
	uint64_t used = base_min(i->cpu, between - waits);
	uint64_t assist = base_min(i->scavenge[GCSTATS_ASSIST], used);
	uint64_t background =
	    base_min(i->scavenge[GCSTATS_BACKGROUND], used - assist);

	c->gc_pause += stopped * i->nprocs + waits;
	c->gc_total = c->gc_assist + c->gc_dedicated + c->gc_idle + c->gc_pause;
	c->scavenge_assist += assist;
	c->scavenge_background += background;
	c->scavenge_total = c->scavenge_assist + c->scavenge_background;
	c->idle += between - waits - used;
	c->total += i->wall * i->nprocs;
	c->user = c->total - (c->gc_total + c->scavenge_total + c->idle);
}

void gcstats_init(void)
{
	state.init_now = state.last_now = nanotime();
	state.last_cpu = gcstats_cpu();
}

uint64_t gcstats_age(uint64_t now)
{
	return base_sub_sat(now, state.init_now);
}

void gcstats_reset(void)
{
	memset(&gcstats, 0, sizeof gcstats);
	memset(&record, 0, sizeof record);
	memset(&state, 0, sizeof state);
}

uint64_t gcstats_cpu(void)
{
	return state.parent_cpu + oscall_process_cpu();
}

void gcstats_fork_child(uint64_t cpu)
{
	// The child's clock began at 0.
	state.parent_cpu = cpu;
}

uint64_t gcstats_scavenged(enum gcstats_scavenger who, uint64_t bytes,
			   uint64_t before)
{
	uint64_t ns = base_elapsed(before, oscall_thread_cpu(0));

	atomic_u64_add_relaxed(&gcstats.scavenge[who], ns);
	atomic_u64_add_relaxed(&gcstats.released[who], bytes);
	probe_scavenge(who, bytes, ns);
	return ns;
}

// since_last returns by how much a sum has grown since the last call.
static uint64_t since_last(const atomic_u64 *sum, uint64_t *last)
{
	uint64_t now = atomic_u64_load_relaxed(sum);
	uint64_t more = now - *last;

	*last = now;
	return more;
}

// take_scavenged returns the CPU time of scavengers since the last call.
static uint64_t take_scavenged(enum gcstats_scavenger who)
{
	return since_last(&gcstats.scavenge[who], &state.last_scavenge[who]);
}

uint64_t gcstats_take_released(enum gcstats_scavenger who)
{
	return since_last(&gcstats.released[who], &state.last_released[who]);
}

static void record_publish(void)
{
	uint64_t copy[WORDS];
	uint64_t n = atomic_u64_load_relaxed(&record.done) + 1;

	memcpy(copy, &state.cycles, sizeof copy);
	// These releases pair with the acquires in gcstats_read_cycles: a
	// reader that sees any word below also sees begun, and reads again.
	atomic_u64_store_relaxed(&record.begun, n);
	for (unsigned i = 0; i < WORDS; i++)
		atomic_u64_store_release(&record.word[i], copy[i]);
	atomic_u64_store_release(&record.done, n);
}

static double cpu_fraction(const struct cpustats *c)
{
	if (c->total == 0)
		return 0;
	return (double)(c->gc_total - c->gc_idle) / (double)c->total;
}

void gcstats_end_cycle(const struct gcstats_cycle *c)
{
	struct gcstats_cycles *r = &state.cycles;
	struct cpustats_interval interval = {
	    .nprocs = (uint32_t)settings.max_procs,
	    .wall = base_sub_sat(c->now, state.last_now),
	    .stopped = c->stopped,
	    .stopping_cpu = c->stopping_cpu,
	    .cpu = base_sub_sat(c->cpu_begin, state.last_cpu),
	    .scavenge = {take_scavenged(GCSTATS_ASSIST),
			 take_scavenged(GCSTATS_BACKGROUND)},
	};
	double fraction;

	cpustats_add(&r->cpu, &interval);
	state.last_now = base_max(state.last_now, c->now);
	// The collector's own CPU time inside the stop counts as pause, not as
	// the mutators'.  A refused clock reads 0.
	state.last_cpu = base_max(state.last_cpu, c->cpu_end);
	fraction = cpu_fraction(&r->cpu);
	memcpy(&r->gc_cpu_fraction, &fraction, sizeof fraction);
	r->scan_heap = c->scan_heap;
	r->scan_stack = c->scan_stack;
	r->scan_globals = c->scan_globals;
	r->past_end_objects += c->past_end_objects;
	r->helped_objects += c->helped_objects;
	r->last_gc_unix = c->unix_now;
	r->num_forced_gc += c->forced;
	r->num_gc++;
	RT_CHECK(gcstats_cycles_check(r));
	pausering_add(&gcstats.pauses, c->pause, c->unix_now);
	record_publish();
	RT_CHECK(gcstats_check(&gcstats));
}

void gcstats_record_stop(int reason, const struct rt_stop_times *times)
{
	int who =
	    reason == RT_STOP_GC_MARK_TERM || reason == RT_STOP_GC_SWEEP_TERM
		? GCSTATS_GC
		: GCSTATS_OTHER;

	histogram_record(&gcstats.stopping[who], (int64_t)times->stopping_ns);
	histogram_record(&gcstats.total[who], (int64_t)times->total_ns);
}

void gcstats_read_cycles(struct gcstats_cycles *cycles)
{
	uint64_t copy[WORDS];
	uint64_t done;

	for (;;) {
		// The acquires pair with the releases in record_publish.
		done = atomic_u64_load_acquire(&record.done);
		for (unsigned i = 0; i < WORDS; i++)
			copy[i] = atomic_u64_load_acquire(&record.word[i]);
		if (atomic_u64_load_relaxed(&record.begun) == done)
			break;
		// The writer may have lost its processor to this very loop.
		oscall_yield();
	}
	memcpy(cycles, copy, sizeof copy);
}

double gcstats_fraction(const struct gcstats_cycles *cycles)
{
	double fraction;

	memcpy(&fraction, &cycles->gc_cpu_fraction, sizeof fraction);
	return fraction;
}

void gcstats_read(struct gcstats_cycles *cycles, struct pausering_copy *pauses)
{
	for (;;) {
		gcstats_read_cycles(cycles);
		pausering_read(&gcstats.pauses, pauses);
		if (pauses->count == cycles->num_gc)
			return;
		oscall_yield(); // the writer is between the two
	}
}

void gcstats_read_stopped(struct gcstats_cycles *cycles,
			  struct pausering_copy *pauses)
{
	gcstats_read_cycles(cycles);
	pausering_read_stopped(&gcstats.pauses, pauses);
}

#ifdef RT_TEST
void gcstats_count_from(uint64_t n)
{
	state.cycles.num_gc = state.cycles.num_forced_gc = n;
	atomic_u64_store_relaxed(&gcstats.pauses.begun, n);
	atomic_u64_store_relaxed(&gcstats.pauses.count, n);
	cyclering_count_from(&cyclering, n);
	record_publish();
}
#endif

// check_cpu checks the identities of CPU time.  Both sides are sums modulo
// 2^64, so they are equal even after a wrap.
static const char *check_cpu(const struct cpustats *c)
{
	if (c->gc_assist != 0 || c->gc_dedicated != 0 || c->gc_idle != 0)
		return "CPU time is counted for marking that does not exist";
	if (c->gc_total !=
	    c->gc_assist + c->gc_dedicated + c->gc_idle + c->gc_pause)
		return "gc_total is not the sum of its parts";
	if (c->scavenge_total != c->scavenge_assist + c->scavenge_background)
		return "scavenge_total is not the sum of its parts";
	if (c->total != c->gc_total + c->scavenge_total + c->idle + c->user)
		return "total CPU time is not the sum of its parts";
	return NULL;
}

const char *gcstats_cycles_check(const struct gcstats_cycles *c)
{
	// As a difference, since both may have wrapped.
	if ((c->num_gc - c->num_forced_gc) >> 63 != 0)
		return "more collections were forced than run";
	return check_cpu(&c->cpu);
}

const char *gcstats_check(const struct gcstats *g)
{
	const char *wrong = pausering_check(&g->pauses);

	if (wrong)
		return wrong;
	if (atomic_u64_load_relaxed(&g->pauses.count) != state.cycles.num_gc)
		return "number of pauses differs from that of collections";
	return gcstats_cycles_check(&state.cycles);
}
