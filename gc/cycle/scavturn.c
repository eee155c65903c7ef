// scavturn.c - the decisions and batches of the scavenger.
#include "gc/cycle/scavturn.h"

#include "runtime/os/oscall.h"
#include "runtime/os/settings.h"
#include "runtime/world/gcstats.h"
#include "runtime/spans/mcache.h"
#include "gc/cycle/pacer.h"
#include "gc/cycle/libthread.h"

#define SECOND_NS UINT64_C(1000000000)
#define IDLE_STEP (UINT64_C(2) << 20)

// Shares of processor time.
#define SHARE 0.01
#define SHARE_IDLE 0.05

static uint64_t idle_ns(void)
{
	return settings()->idle_s * SECOND_NS;
}

static struct scavgoal_seen see(void)
{
	int64_t live = (int64_t)gauge_load(&gauges.heap_live);

	return (struct scavgoal_seen){
	    .cycles = atomic_u64_load_relaxed(&scavgoal.cycles),
	    .changes = atomic_u64_load_relaxed(&scavgoal.changes),
	    .frees = atomic_u64_load_relaxed(&scavgoal.frees),
	    .live = live < 0 ? 0 : (uint64_t)live, // as pacer_used
	    .goal = atomic_u64_load_relaxed(&pacer.goal),
	};
}

// note_step adds a step to the batch.  released is the bytes that it released,
// before the CPU time of this thread when it began.  Without a clock it counts
// for worth bytes.
static void note_step(struct scavturn *s, uint64_t released, uint64_t worth,
		      uint64_t before)
{
	uint64_t cpu = gcstats_scavenged(GCSTATS_BACKGROUND, released, before);

	scavpace_add(&s->pace, worth, cpu, sysmem_page_size());
}

// flush_waiting frees the pages in the caches of threads that wait.  They have
// taken these since the last collection, which has flushed every cache.
static void flush_waiting(struct scavturn *s, struct rt_proc *p)
{
	uint64_t before = oscall_thread_cpu(0);

	for (struct rt_proc *q = proc_first(); q; q = proc_next(q)) {
		mcache_flush_pages_blocked(q);
		libthread_poll(p);
	}
	note_step(s, 0, sysmem_page_size(), before);
}

static void begin_pass(struct scavturn *s, bool idle)
{
	// The pass may miss what is freed from now on.
	mheap_await_freed(SCAVGOAL_LEAST);
	s->pass = scavenge_begin(idle);
	s->idle = idle;
	s->over = s->released = s->refused = false;
	s->chunk = 0;
}

void scavturn_init(struct scavturn *s, uint32_t nprocs, uint64_t now)
{
	*s = (struct scavturn){.since = now, .nprocs = nprocs};
	scavpace_init(&s->pace);
	s->seen = see();
	begin_pass(s, false);
}

// note_activity begins the pass that suits what the program does.
static void note_activity(struct scavturn *s, struct rt_proc *p, uint64_t now)
{
	struct scavgoal_seen seen = see();

	// The clock was refused when the program was last active.
	if (s->since == 0)
		s->since = now;
	if (scavgoal_active(&s->seen, &seen)) {
		s->since = scavgoal_since(&s->seen, &seen, now);
		s->seen = seen;
		begin_pass(s, false);
	} else if (!s->idle && settings()->idle_s != 0 &&
		   base_sub_sat(now, s->since) >= idle_ns()) {
		flush_waiting(s, p);
		begin_pass(s, true);
	} else if (seen.frees != s->seen.frees) {
		// The pass may be below what was freed.
		begin_pass(s, s->idle);
	}
	s->seen.frees = seen.frees;
}

// What is retained now.
struct retained {
	uint64_t all;
	uint64_t free; // of it
};

static struct retained look(void)
{
	struct heapstats_totals t;
	struct retained r;

	heapstats_read(&t);
	r.all = heapstats_retained(&t);
	r.free = r.all - t.in_heap;
	return r;
}

// step releases up to most bytes.  Returns the bytes released.
static uint64_t step(struct scavturn *s, struct rt_proc *p, uint64_t most)
{
	uint64_t before = oscall_thread_cpu(0);
	uint64_t released = scavenge_range(p, &s->pass, most);

	note_step(s, released, released, before);
	s->over = released == 0;
	s->released |= released != 0;
	s->refused =
	    s->over && (!s->pass.over || (s->pass.refused && !s->released));
	return released;
}

// batch takes steps until they have released most bytes or the batch is full;
// for an idle program it takes one.  It ends the pass if it finds no more.
// Returns whether it released any.
static bool batch(struct scavturn *s, struct rt_proc *p, uint64_t most)
{
	uint64_t quantum = s->idle ? IDLE_STEP : SCAVENGE_STEP;
	uint64_t done = 0;

	do {
		done += step(s, p, quantum);
		libthread_poll(p);
	} while (!s->over && !s->idle && done < most &&
		 !scavpace_full(&s->pace));
	return done != 0;
}

// batch_tables releases the tables of free chunks.  Returns whether there are
// chunks at which it has not looked.
static bool batch_tables(struct scavturn *s, struct rt_proc *p)
{
	bool more;

	do {
		uint64_t before = oscall_thread_cpu(0);

		more = scavenge_tables(&s->chunk);
		note_step(s, 0, sysmem_page_size(), before);
		libthread_poll(p);
	} while (more && !scavpace_full(&s->pace));
	return more;
}

// rest returns how to sleep when there is nothing to release.
static struct scavturn_next rest(const struct scavturn *s,
				 const struct retained *r, uint64_t now)
{
	struct scavturn_next next = {SCAVTURN_CALL, UINT64_MAX};

	// Without a clock there is no idle program, and no sleep with a limit.
	if (s->idle || s->refused || settings()->idle_s == 0 || now == 0 ||
	    r->free < SCAVGOAL_LEAST)
		return next;
	next.sleep = SCAVTURN_TIMER;
	next.ns = base_sub_sat(s->since + idle_ns(), now);
	return next;
}

// work releases a batch, of pages or else of tables.  Returns whether there may
// be more to do.
static bool work(struct scavturn *s, struct rt_proc *p, uint64_t most)
{
	if (most != 0 && !s->over && batch(s, p, most))
		return true;
	return s->idle && batch_tables(s, p);
}

struct scavturn_next scavturn_run(struct scavturn *s, struct rt_proc *p,
				  uint64_t now)
{
	struct retained r;
	uint64_t most;

	note_activity(s, p, now);
	r = look();
	most = s->idle ? r.free : scavgoal_too_much(r.all);
	if (!work(s, p, most))
		return rest(s, &r, now);
	return (struct scavturn_next){SCAVTURN_PAUSE, scavpace_sleep(&s->pace)};
}

void scavturn_collected(struct scavturn *s)
{
	s->seen.cycles++;
	s->seen.live = atomic_u64_load_relaxed(&scavgoal.live);
	begin_pass(s, s->idle);
}

void scavturn_slept(struct scavturn *s, uint64_t from, uint64_t to)
{
	uint64_t ns = base_elapsed(from, to);
	struct scavpace_target target = {s->idle ? SHARE_IDLE : SHARE,
					 s->nprocs};

	scavpace_slept(&s->pace, ns != 0 ? ns : scavpace_sleep(&s->pace),
		       &target);
}
