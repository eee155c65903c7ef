// pacer.c - computes the heap's goal.
#include "gc/cycle/pacer.h"

#include "runtime/os/probe.h"
#include "runtime/os/throw.h"
#include "runtime/world/stw.h"
#include "runtime/spans/mheap.h"

struct pacer pacer;

// Protects pacer between attached threads.  A collection needs no lock, since
// no thread is stopped while it holds one.
static struct mutex rule_lock = RT_MUTEX_INIT(LOCKRANK_PACER);

enum { HEADROOM_BASE = 4 << 20, HEADROOM_FACTOR = 8 };

static uint64_t add_sat(uint64_t a, uint64_t b)
{
	uint64_t sum;

	return __builtin_add_overflow(a, b, &sum) ? PACER_NEVER : sum;
}

// percent_of returns n x percent / 100, without overflow in between.
static uint64_t percent_of(uint64_t n, int64_t percent)
{
	unsigned __int128 x = (unsigned __int128)n * (uint64_t)percent / 100;

	return x > PACER_NEVER ? PACER_NEVER : (uint64_t)x;
}

static uint64_t headroom(uint64_t most, uint64_t marked)
{
	uint64_t room;

	if (__builtin_mul_overflow(marked, (uint64_t)HEADROOM_FACTOR, &room))
		return most;
	return base_min(most, add_sat(room, HEADROOM_BASE));
}

// add_growth sets the terms that do not depend on the previous goal.
static void add_growth(struct pacer_terms *t, const struct pacer_rule *rule,
		       const struct pacer_found *found)
{
	uint64_t live = add_sat(found->heap_marked, found->external);
	uint64_t roots = add_sat(found->stack_scan, found->globals_scan);

	if (rule->percent < 0) {
		t->percent = t->headroom = t->minimum = PACER_NEVER;
		return;
	}
	t->percent =
	    add_sat(live, percent_of(add_sat(live, roots), rule->percent));
	t->headroom = add_sat(live, headroom(rule->headroom, live));
	t->minimum = percent_of(rule->heap_min, rule->percent);
}

// grown returns the goal that add_growth gives.
static uint64_t grown(const struct pacer_terms *t)
{
	return base_max(base_max(t->percent, t->headroom), t->minimum);
}

uint64_t pacer_goal(const struct pacer_rule *rule,
		    const struct pacer_found *found)
{
	struct pacer_terms t;

	add_growth(&t, rule, found);
	return grown(&t);
}

enum { LIMIT_ROOM = 1 << 20, LIMIT_PERCENT = 3 };

uint64_t pacer_limit_goal(uint64_t limit, const struct pacer_memory *m,
			  uint64_t marked)
{
	uint64_t beside =
	    base_sub_sat(base_sub_sat(m->mapped, m->free), m->alloc);
	uint64_t over = base_sub_sat(m->mapped, limit);
	uint64_t goal = base_sub_sat(base_sub_sat(limit, beside), over);
	uint64_t room = base_max(goal / 100 * LIMIT_PERCENT, LIMIT_ROOM);

	if (goal == 0)
		return marked;
	// The goal is never less than the room.
	goal = base_max(base_sub_sat(goal, room), room);
	return base_max(goal, marked);
}

// kept returns what is kept of before, the previous goal; goal is pacer_goal.
static uint64_t kept(const struct pacer_rule *rule,
		     const struct pacer_found *found, uint64_t goal,
		     uint64_t before)
{
	if (found->forced || rule->headroom == 0 || before <= goal)
		return 0;
	// Divide first: a difference below 8 becomes 0, so that the goal
	// reaches pacer_goal in the end.
	before = goal + (before - goal) / 8 * 7;
	return base_min(before, add_sat(found->held, found->external));
}

uint64_t pacer_next(const struct pacer_rule *rule,
		    const struct pacer_found *found, uint64_t before)
{
	uint64_t goal = pacer_goal(rule, found);

	return base_max(goal, kept(rule, found, goal, before));
}

// limit_term returns the highest goal that a limit permits.  m->mapped is what
// counts for the limit.
static uint64_t limit_term(uint64_t limit, const struct pacer_memory *m,
			   const struct pacer_found *found)
{
	uint64_t least = add_sat(found->heap_marked, LIMIT_ROOM);
	struct pacer_memory memory = *m;

	// Whether pages of the dead will be free is not known yet.
	if (found->unswept)
		memory.alloc = base_min(memory.alloc, found->heap_marked);
	limit = pacer_limit_goal(limit, &memory, found->heap_marked);
	return add_sat(base_max(limit, least), found->external);
}

// limits_term returns the most that both limits leave.
static uint64_t limits_term(const struct pacer_rule *rule,
			    const struct pacer_found *found)
{
	// The limit of the heap counts neither free pages nor tables.
	const struct pacer_memory in_use = {
	    .mapped = found->memory.in_use,
	    .alloc = found->memory.alloc,
	};
	uint64_t term = PACER_NEVER;

	if (rule->limit != PACER_NO_LIMIT)
		term = limit_term(rule->limit, &found->memory, found);
	if (rule->heap_max != 0)
		term =
		    base_min(term, limit_term(rule->heap_max, &in_use, found));
	return term;
}

uint64_t pacer_limited(const struct pacer_rule *rule,
		       const struct pacer_found *found, uint64_t goal)
{
	return base_min(goal, limits_term(rule, found));
}

struct pacer_terms pacer_explain(const struct pacer_rule *rule,
				 const struct pacer_found *found,
				 uint64_t before)
{
	struct pacer_terms t;

	add_growth(&t, rule, found);
	t.before = kept(rule, found, grown(&t), before);
	t.limit = limits_term(rule, found);
	return t;
}

enum rt_bound pacer_bound(const struct pacer_terms *t)
{
	uint64_t goal = base_max(grown(t), t->before);

	if (t->limit < goal)
		return RT_BOUND_LIMIT;
	if (t->percent == goal)
		return RT_BOUND_PERCENT;
	if (t->headroom == goal)
		return RT_BOUND_HEADROOM;
	return t->minimum == goal ? RT_BOUND_MINIMUM : RT_BOUND_BEFORE;
}

// set_goal sets the goal, and tells a tracer if that changes it.
static void set_goal(uint64_t goal)
{
	uint64_t before = atomic_u64_load_relaxed(&pacer.goal);

	atomic_u64_store_relaxed(&pacer.goal, goal);
	if (goal != before)
		probe_goal(before, goal);
}

// publish shows the goal, lowered for the limits.
static void publish(uint64_t goal)
{
	pacer.unlimited = goal;
	atomic_u64_store_relaxed(&pacer.limit, pacer.rule.limit);
	atomic_u64_store_relaxed(&pacer.heap_max, pacer.rule.heap_max);
	atomic_u64_store_relaxed(&pacer.external, pacer.found.external);
	atomic_u64_store_relaxed(&pacer.heap_marked, pacer.found.heap_marked);
	atomic_u64_store_relaxed(&pacer.stack_inuse, pacer.found.stack_inuse);
	atomic_u64_store_relaxed(&pacer.percent, (uint64_t)pacer.rule.percent);
	set_goal(pacer_limited(&pacer.rule, &pacer.found, goal));
	RT_CHECK(pacer_check(&pacer));
}

void pacer_init(const struct pacer_rule *rule, const struct pacer_found *found,
		const struct limiter *limiter)
{
	pacer =
	    (struct pacer){.rule = *rule, .found = *found, .limiter = *limiter};
	pacer_commit();
}

void pacer_commit(void)
{
	pacer.before = 0;
	publish(pacer_goal(&pacer.rule, &pacer.found));
}

// look_beyond finds out whether the limit could be kept if all free pages were
// released.  If it could not, the host is told once.
static void look_beyond(void)
{
	const struct pacer_memory *m = &pacer.found.memory;
	uint64_t least = base_sub_sat(m->mapped, m->free);
	bool before = pacer.beyond;

	pacer.beyond = least > pacer.rule.limit;
	if (!pacer.beyond || before)
		return;
	atomic_u64_store_relaxed(&pacer.told_limit, pacer.rule.limit);
	atomic_u64_store_relaxed(&pacer.told_least, least);
	// Pairs with the acquire in pacer_take_warning.
	atomic_u32_store_release(&pacer.warn, 1);
}

void pacer_note_processors(uint32_t n)
{
	atomic_u32_store_relaxed(&pacer.processors, n);
}

void pacer_note_release(uint64_t ns)
{
	atomic_u64_add_relaxed(&pacer.released, ns);
}

// account passes CPU time to the limiter.  Returns whether it limits.
static bool account(uint64_t gc, uint64_t now)
{
	uint64_t all = base_sub_sat(now, pacer.cpu);
	uint64_t released = atomic_u64_load_relaxed(&pacer.released);
	uint64_t taken = add_sat(gc, released - pacer.counted);
	uint32_t processors = atomic_u32_load_relaxed(&pacer.processors);

	if (processors != 0)
		limiter_shrink(&pacer.limiter, processors);
	pacer.cpu = base_max(pacer.cpu, now);
	pacer.counted = released;
	return limiter_add(&pacer.limiter, taken, base_sub_sat(all, taken));
}

struct pacer_terms pacer_collected(const struct pacer_found *found)
{
	struct pacer_terms t;

	RT_ASSERT(stw_stopped());
	pacer.before = atomic_u64_load_relaxed(&pacer.goal);
	pacer.found = *found;
	if (!found->unswept)
		look_beyond();
	t = pacer_explain(&pacer.rule, found, pacer.before);
	publish(base_max(grown(&t), t.before));
	return t;
}

void pacer_account(const struct pacer_cpu *cpu)
{
	RT_ASSERT(stw_stopped());
	// If the clock was refused at the beginning, begin is 0.
	account(cpu->begin < pacer.cpu ? 0 : base_sub_sat(cpu->end, cpu->begin),
		cpu->end);
}

void pacer_swept(uint64_t pages, uint64_t objects)
{
	mutex_lock(&rule_lock);
	pacer.found.unswept = false;
	pacer.found.held += pages;
	pacer.found.memory.free += pages;
	pacer.found.memory.in_use =
	    base_sub_sat(pacer.found.memory.in_use, pages);
	pacer.found.memory.alloc =
	    base_sub_sat(pacer.found.memory.alloc, objects);
	look_beyond();
	publish(pacer_next(&pacer.rule, &pacer.found, pacer.before));
	mutex_unlock(&rule_lock);
}

// raise never lowers the goal: another thread may have changed the rule since
// this one found that a collection was due.
static void raise(uint64_t goal)
{
	set_goal(base_max(goal, atomic_u64_load_relaxed(&pacer.goal)));
}

bool pacer_put_off(uint64_t used, uint64_t cpu)
{
	bool wait;

	mutex_lock(&rule_lock);
	wait = pacer_for_limit(used) && account(0, cpu);
	if (wait)
		raise(base_min(pacer.unlimited, add_sat(used, LIMIT_ROOM)));
	mutex_unlock(&rule_lock);
	return wait;
}

bool pacer_limits(uint64_t cpu)
{
	bool limits;

	mutex_lock(&rule_lock);
	// Without a clock the bucket would never drain.
	limits = cpu != 0 && account(0, cpu);
	mutex_unlock(&rule_lock);
	return limits;
}

void pacer_external_fell(uint64_t external)
{
	if (external >= atomic_u64_load_relaxed(&pacer.external))
		return;
	mutex_lock(&rule_lock);
	pacer.found.external = base_min(pacer.found.external, external);
	publish(pacer_next(&pacer.rule, &pacer.found, pacer.before));
	mutex_unlock(&rule_lock);
}

bool pacer_take_warning(void)
{
	return pacer_warning_due() && atomic_u32_cas_acquire(&pacer.warn, 1, 0);
}

// change sets a number of the rule and returns the previous one.
static uint64_t change(uint64_t *number, uint64_t to)
{
	uint64_t old;

	mutex_lock(&rule_lock);
	old = *number;
	*number = to;
	if (number == &pacer.rule.limit) { // tell of a new limit anew
		pacer.beyond = false;
		atomic_u32_store_relaxed(&pacer.warn, 0);
	}
	// Under this lock, so that both limits are those of the same thread if
	// several change them.
	if (number == &pacer.rule.heap_max)
		mheap_set_max((to ? to : arena.reserved) >> RT_PAGE_SHIFT);
	pacer_commit();
	mutex_unlock(&rule_lock);
	return old;
}

int pacer_set_percent(int percent)
{
	return (int)change((uint64_t *)&pacer.rule.percent,
			   (uint64_t)(int64_t)percent);
}

uint64_t pacer_set_heap_min(uint64_t bytes)
{
	return change(&pacer.rule.heap_min, bytes);
}

uint64_t pacer_set_limit(uint64_t bytes)
{
	return change(&pacer.rule.limit, bytes);
}

uint64_t pacer_set_heap_max(uint64_t bytes)
{
	return change(&pacer.rule.heap_max, bytes);
}

const char *pacer_check(const struct pacer *p)
{
	uint64_t least =
	    pacer_limited(&p->rule, &p->found, pacer_goal(&p->rule, &p->found));

	if (atomic_u64_load_relaxed(&p->goal) < least)
		return "goal is less than the rule says";
	if (atomic_u64_load_relaxed(&p->stack_inuse) != p->found.stack_inuse)
		return "pacer shows other stacks than were found";
	if (atomic_u64_load_relaxed(&p->heap_marked) != p->found.heap_marked)
		return "pacer shows another heap than was found";
	if (atomic_u64_load_relaxed(&p->percent) != (uint64_t)p->rule.percent)
		return "pacer shows another percentage than its rule";
	if (atomic_u64_load_relaxed(&p->external) != p->found.external)
		return "pacer shows other bytes outside than were found";
	if (atomic_u64_load_relaxed(&p->limit) != p->rule.limit)
		return "pacer shows another limit than its rule";
	if (atomic_u64_load_relaxed(&p->heap_max) != p->rule.heap_max)
		return "pacer shows another limit of the heap than its rule";
	return NULL;
}
