// Accounting of collections: their record, and the CPU time that they take.
#include "runtime/world/gcstats.h"

#include <string.h>

#include "runtime/os/probe.h"
#include "runtime/os/throw.h"
#include "runtime/os/nanotime.h"
#include "runtime/os/settings.h"
#include "runtime/world/cyclering.h"
#include "runtime/world/stoptable.h"
#include "runtime/world/stw.h"
#include "runtime/world/heapstats.h"

struct gcstats gcstats;

// What was accounted so far, and the stop of the collection under way.  There
// is no check function: clocks may show any number.
struct clocks {
	uint64_t now;	      // nanotime of the last accounting
	uint64_t cpu;	      // CPU of the process by then
	uint64_t scavenge[2]; // CPU of scavengers by then
	uint64_t stopped;     // nanotime when all were stopped; 0: no stop
	uint64_t stopping_cpu;
	uint64_t cpu_begin; // CPU of the process when all were stopped
};

// What the writer publishes.  It has words only.
struct accounts {
	struct gcstats_cycles cycles;
	struct clocks last;
};

enum { WORDS = sizeof(struct accounts) / sizeof(uint64_t) };

// The record as readers see it.  The writer raises begun before it changes a
// word and done afterwards.  A reader that finds the two apart, or finds that
// they changed, reads again.  There is no check function: it is a copy of
// state, which has one.
static struct {
	atomic_u64 begun;
	atomic_u64 word[WORDS];
	atomic_u64 done;
} record;

// Only the thread that has the right to stop the world writes this.  Other
// threads read parent_cpu alone, which changes only in the child of a fork.
// accounts.cycles has a check; clocks may show any number.
static struct {
	struct accounts accounts;
	uint64_t init_now;	   // nanotime when the heap began
	uint64_t parent_cpu;	   // CPU that a parent used before its fork
	uint64_t last_released[2]; // bytes that records have so far
	uint64_t last_forced;	   // the same, of rt_free_os_memory
	struct gcstats_sweep last_sweep;
} state;

// What the last live reader was told.  heapstats.reader protects it.
static struct cpustats told;

static void add_parts(struct cpustats *c)
{
	c->gc_total = c->gc_assist + c->gc_dedicated + c->gc_idle + c->gc_pause;
	c->scavenge_total = c->scavenge_assist + c->scavenge_background;
}

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
	c->scavenge_assist += assist;
	c->scavenge_background += background;
	add_parts(c);
	c->idle += between - waits - used;
	c->total += i->wall * i->nprocs;
	c->user = c->total - (c->gc_total + c->scavenge_total + c->idle);
}

// follow raises a class to exact, but by at most *left, and subtracts the
// increase from *left.
static void follow(uint64_t *class, uint64_t exact, uint64_t *left)
{
	uint64_t more = base_min(base_sub_sat(exact, *class), *left);

	*class += more;
	*left -= more;
}

void cpustats_follow(struct cpustats *c, const struct cpustats *exact)
{
	uint64_t left = base_sub_sat(exact->total, c->total);

	c->total += left;
	follow(&c->gc_assist, exact->gc_assist, &left);
	follow(&c->gc_dedicated, exact->gc_dedicated, &left);
	follow(&c->gc_idle, exact->gc_idle, &left);
	follow(&c->gc_pause, exact->gc_pause, &left);
	follow(&c->scavenge_assist, exact->scavenge_assist, &left);
	follow(&c->scavenge_background, exact->scavenge_background, &left);
	follow(&c->idle, exact->idle, &left);
	add_parts(c);
	// Both have the identities, so the classes that were behind lacked in
	// sum at least the new time.  So user gets no more than it lacked.
	c->user += left;
}

static void record_publish(void)
{
	uint64_t copy[WORDS];
	uint64_t n = atomic_u64_load_relaxed(&record.done) + 1;

	memcpy(copy, &state.accounts, sizeof copy);
	// These releases pair with the acquires in record_read: a reader that
	// sees any word below also sees begun, and reads again.
	atomic_u64_store_relaxed(&record.begun, n);
	for (unsigned i = 0; i < WORDS; i++)
		atomic_u64_store_release(&record.word[i], copy[i]);
	atomic_u64_store_release(&record.done, n);
}

void gcstats_init(void)
{
	state.init_now = state.accounts.last.now = nanotime();
	state.accounts.last.cpu = gcstats_cpu();
	record_publish();
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
	memset(&told, 0, sizeof told);
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

uint64_t gcstats_scavenged(enum gcstats_worker who, uint64_t bytes,
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

// interval returns the time since the last accounting, and takes the CPU time
// of scavengers since then.  It ends at now, when the process had used cpu.
static struct cpustats_interval interval(struct clocks *last, uint64_t now,
					 uint64_t cpu)
{
	return (struct cpustats_interval){
	    .nprocs = (uint32_t)settings()->max_procs,
	    .wall = base_sub_sat(now, last->now),
	    .cpu = base_sub_sat(cpu, last->cpu),
	    .scavenge = {since_last(&gcstats.scavenge[GCSTATS_ASSIST],
				    &last->scavenge[GCSTATS_ASSIST]),
			 since_last(&gcstats.scavenge[GCSTATS_BACKGROUND],
				    &last->scavenge[GCSTATS_BACKGROUND])},
	};
}

uint64_t gcstats_take_released(enum gcstats_worker who)
{
	return since_last(&gcstats.released[who], &state.last_released[who]);
}

void gcstats_forced(uint64_t bytes)
{
	atomic_u64_add_relaxed(&gcstats.released_forced, bytes);
}

uint64_t gcstats_take_forced(void)
{
	return since_last(&gcstats.released_forced, &state.last_forced);
}

void gcstats_swept(enum gcstats_worker who, uint64_t before)
{
	atomic_u64_add_relaxed(&gcstats.sweep_cpu[who],
			       base_elapsed(before, oscall_thread_cpu(0)));
}

void gcstats_sweep_ended(uint64_t ns)
{
	atomic_u64_add_relaxed(&gcstats.sweep_wall, ns);
}

struct gcstats_sweep gcstats_read_swept(void)
{
	return (struct gcstats_sweep){
	    .cpu = {atomic_u64_load_relaxed(&gcstats.sweep_cpu[GCSTATS_ASSIST]),
		    atomic_u64_load_relaxed(
			&gcstats.sweep_cpu[GCSTATS_BACKGROUND])},
	    .wall = atomic_u64_load_relaxed(&gcstats.sweep_wall),
	};
}

struct gcstats_sweep gcstats_take_swept(void)
{
	struct gcstats_sweep *last = &state.last_sweep;
	struct gcstats_sweep now = gcstats_read_swept();
	struct gcstats_sweep more = {
	    .cpu = {now.cpu[GCSTATS_ASSIST] - last->cpu[GCSTATS_ASSIST],
		    now.cpu[GCSTATS_BACKGROUND] -
			last->cpu[GCSTATS_BACKGROUND]},
	    .wall = now.wall - last->wall,
	};

	*last = now;
	return more;
}

static double cpu_fraction(const struct cpustats *c)
{
	if (c->total == 0)
		return 0;
	return (double)(c->gc_total - c->gc_idle) / (double)c->total;
}

void gcstats_begin_cycle(uint64_t stopped, uint64_t stopping_cpu, uint64_t cpu)
{
	struct clocks *last = &state.accounts.last;

	RT_ASSERT(stw_stopped());
	last->stopped = stopped;
	last->stopping_cpu = stopping_cpu;
	last->cpu_begin = cpu;
	record_publish();
}

void gcstats_end_cycle(const struct gcstats_cycle *c)
{
	struct gcstats_cycles *r = &state.accounts.cycles;
	struct clocks *last = &state.accounts.last;
	struct cpustats_interval i = interval(last, c->now, c->cpu_begin);
	double fraction;

	RT_ASSERT(stw_stopped());
	i.stopped = c->stopped;
	i.stopping_cpu = c->stopping_cpu;
	cpustats_add(&r->cpu, &i);
	last->now = base_max(last->now, c->now);
	// The collector's own CPU time inside the stop counts as pause, not as
	// the host's time.  A refused clock reads 0.
	last->cpu = base_max(last->cpu, c->cpu_end);
	last->stopped = 0;
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
	stoptable_add(&stoptable, reason, times);
	probe_stop(reason, times->stopping_ns, times->total_ns, times->slowest);
}

// record_read copies what was published last, as of one moment.
static void record_read(struct accounts *a)
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
	memcpy(a, copy, sizeof copy);
}

void gcstats_read_cycles(struct gcstats_cycles *cycles)
{
	struct accounts a;

	record_read(&a);
	*cycles = a.cycles;
}

void gcstats_read_cpu(struct cpustats *cpu)
{
	struct cpustats_interval i;
	struct accounts a;
	uint64_t now, used;

	mutex_lock(&heapstats.reader);
	// The clocks are read before the record.  If a collection ends in
	// between, the record is newer, and nothing is added to it.  In the
	// other order all of that collection would count as the host's time.
	now = nanotime();
	used = gcstats_cpu();
	record_read(&a);
	i = interval(&a.last, now, used);
	if (a.last.stopped != 0) {
		i.stopped = base_sub_sat(now, a.last.stopped);
		i.stopping_cpu = a.last.stopping_cpu;
		i.cpu = base_sub_sat(a.last.cpu_begin, a.last.cpu);
	}
	cpustats_add(&a.cycles.cpu, &i);
	cpustats_follow(&told, &a.cycles.cpu);
	*cpu = told;
	RT_CHECK(cpustats_check(cpu));
	mutex_unlock(&heapstats.reader);
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
	RT_ASSERT(stw_stopped());
	gcstats_read_cycles(cycles);
	pausering_read_stopped(&gcstats.pauses, pauses);
}

#ifdef RT_TEST
void gcstats_count_from(uint64_t n)
{
	state.accounts.cycles.num_gc = state.accounts.cycles.num_forced_gc = n;
	atomic_u64_store_relaxed(&gcstats.pauses.begun, n);
	atomic_u64_store_relaxed(&gcstats.pauses.count, n);
	cyclering_count_from(&cyclering, n);
	record_publish();
}
#endif

// Both sides are sums modulo 2^64, so they are equal even after a wrap.
const char *cpustats_check(const struct cpustats *c)
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
	return cpustats_check(&c->cpu);
}

const char *gcstats_check(const struct gcstats *g)
{
	const char *wrong = pausering_check(&g->pauses);

	if (wrong)
		return wrong;
	if (atomic_u64_load_relaxed(&g->pauses.count) !=
	    state.accounts.cycles.num_gc)
		return "number of pauses differs from that of collections";
	return gcstats_cycles_check(&state.accounts.cycles);
}
