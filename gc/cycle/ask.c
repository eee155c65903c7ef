// The queue of asks, the lead, and the chain of wakes.
#include "gc/cycle/ask.h"

#include "runtime/os/schedpoint.h"
#include "runtime/os/throw.h"
#include "runtime/world/stw.h"

struct ask_queue ask_queue = {.lock = RT_MUTEX_INIT(LOCKRANK_ASK)};

static const char *check_ask(const struct ask *a)
{
	return a->cause > ASK_MEMORY ? "ask has an unknown cause" : NULL;
}

// check_ends checks all but the asks between the first and the last.
static const char *check_ends(const struct ask_queue *all)
{
	const char *wrong = mutex_check(&all->lock);

	if (wrong || !all->first)
		return wrong;
	if (!all->led)
		return "threads ask but none leads";
	if (!all->last || all->last->next)
		return "last ask is not the end of the queue";
	wrong = check_ask(all->first);
	return wrong ? wrong : check_ask(all->last);
}

// enqueue adds an ask to the queue.  Returns true if its thread leads.
static bool enqueue(struct ask *a)
{
	bool leads;

	mutex_lock(&ask_queue.lock);
	leads = !ask_queue.led;
	ask_queue.led = true;
	if (ask_queue.first)
		ask_queue.last->next = a;
	else
		ask_queue.first = a;
	ask_queue.last = a;
	RT_CHECK(check_ends(&ask_queue));
	mutex_unlock(&ask_queue.lock);
	return leads;
}

// wake_two wakes up to two threads.  Each may return at once, and then its ask
// is gone.
static void wake_two(const struct ask *a)
{
	if (a->wakes[0])
		note_wake(&a->wakes[0]->note);
	if (a->wakes[1])
		note_wake(&a->wakes[1]->note);
}

bool ask_wait(struct rt_proc *p, struct ask *a)
{
	RT_ASSERT(p == proc_self());
	a->leads = false;
	a->next = a->wakes[0] = a->wakes[1] = NULL;
	note_clear(&a->note);
	if (enqueue(a))
		return true;
	context_save(&p->context.frame);
	schedpoint(SCHED_ASK_WAIT);
	proc_block(p);
	note_sleep(&a->note, UINT64_MAX);
	schedpoint(SCHED_ASK_WAIT_WOKEN);
	// The wakes come before all else, because this thread may be stopped
	// next, and the others would sleep on.
	wake_two(a);
	proc_unblock(p);
	context_keep();
	return a->leads;
}

struct ask *ask_take(void)
{
	struct ask *first;

	RT_ASSERT(stw_stopped());
	mutex_lock(&ask_queue.lock);
	RT_ASSERT(ask_queue.led);
	RT_CHECK(ask_queue_check(&ask_queue));
	first = ask_queue.first;
	ask_queue.first = NULL;
	mutex_unlock(&ask_queue.lock);
	return first;
}

// chain makes each thread wake two of those that asked after the leader.
static void chain(struct ask *leader)
{
	struct ask *waker = leader;
	unsigned n = 0;

	for (struct ask *a = leader->next; a; a = a->next) {
		waker->wakes[n++] = a;
		if (n == 2) {
			waker = waker->next;
			n = 0;
		}
	}
}

bool ask_lead(void)
{
	bool leads;

	mutex_lock(&ask_queue.lock);
	leads = !ask_queue.led;
	ask_queue.led = true;
	mutex_unlock(&ask_queue.lock);
	return leads;
}

// The thread that asked first since the queue was taken leads next.
void ask_pass(void)
{
	struct ask *a;

	mutex_lock(&ask_queue.lock);
	RT_ASSERT(ask_queue.led);
	RT_CHECK(ask_queue_check(&ask_queue));
	a = ask_queue.first;
	ask_queue.led = a != NULL;
	mutex_unlock(&ask_queue.lock);
	if (!a)
		return;
	a->leads = true;
	note_wake(&a->note);
}

void ask_done(struct ask *leader)
{
	chain(leader);
	schedpoint(SCHED_ASK_DONE);
	ask_pass();
	wake_two(leader);
}

void ask_fork_child(void)
{
	RT_ASSERT(stw_stopped());
	ask_queue.led = false;
	ask_queue.first = NULL;
}

const char *ask_queue_check(const struct ask_queue *all)
{
	const char *wrong = check_ends(all);

	for (const struct ask *a = all->first; a && !wrong; a = a->next) {
		wrong = check_ask(a);
		if (!wrong && !a->next && a != all->last)
			wrong = "last ask is not the end of the queue";
	}
	return wrong;
}
