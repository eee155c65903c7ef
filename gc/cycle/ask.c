// The queue of asks, the lead, and the chain of wakes.
#include "gc/cycle/ask.h"

#include "runtime/os/schedpoint.h"

static struct {
	struct mutex lock;
	bool led; // a thread leads
	struct ask *first;
	struct ask *last; // valid while there is a first
} asks = {.lock = RT_MUTEX_INIT(LOCKRANK_ASK)};

// enqueue adds an ask to the queue.  Returns true if its thread leads.
static bool enqueue(struct ask *a)
{
	bool leads;

	mutex_lock(&asks.lock);
	leads = !asks.led;
	asks.led = true;
	if (asks.first)
		asks.last->next = a;
	else
		asks.first = a;
	asks.last = a;
	mutex_unlock(&asks.lock);
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
	// First of all: a stop may be next, while others sleep on.
	wake_two(a);
	proc_unblock(p);
	context_keep();
	return a->leads;
}

struct ask *ask_take(void)
{
	struct ask *first;

	mutex_lock(&asks.lock);
	first = asks.first;
	asks.first = NULL;
	mutex_unlock(&asks.lock);
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

// pass_lead makes the thread lead that asked first since the queue was taken,
// if there is one.
static void pass_lead(void)
{
	struct ask *a;

	mutex_lock(&asks.lock);
	a = asks.first;
	asks.led = a != NULL;
	mutex_unlock(&asks.lock);
	if (!a)
		return;
	a->leads = true;
	note_wake(&a->note);
}

void ask_done(struct ask *leader)
{
	chain(leader);
	schedpoint(SCHED_ASK_DONE);
	pass_lead();
	wake_two(leader);
}

void ask_fork_child(void)
{
	asks.led = false;
	asks.first = NULL;
}
