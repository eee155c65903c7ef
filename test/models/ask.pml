// ask.pml - threads that ask for a collection, and share one.
//
// Models gc/cycle/ask.c, cycle_begin and cycle_end of gc/cycle/cycle.c, collect
// of gc/host/supply.c, gc/host/slices.c, and gc/cycle/periodic.c.  Another
// thread stops the world for other reasons.  A stop is a few variables here
// (stw.pml shows the real one): it waits until no thread runs except the
// stopper.
//
// A collection may leave chunks to sweep.  The next leader sweeps them before
// its stop, chunk by chunk, and polls in between.  So the lead lasts over polls,
// and over waits for another thread that is in the last chunk.  Stops, forks and
// exact reads come while the leader sleeps there.  swept.pml shows the rest of
// sweeping.  The child of a fork has one thread, and so no steps to interleave:
// what it finds is looked at in one step, on copies.
//
// There are three searches in one.  In the first, the background thread sweeps,
// and leads without an ask, and two hosts ask, one of them twice.  In the
// second, there is no background thread: three hosts ask or exit, and one more
// reads exactly, for which it sweeps as well.  In the third, four hosts ask at
// any time, one of them twice: a chain of wakes needs so many.  There, all is
// swept in the stops.
//
// If a host sleeps for ever, or if no host follows a leader, the state has no
// way out.  Spin reports such a state ("invalid end state").
//
// Mutants, each of which must be found:
// mutant TWO_LEAD: a thread that asks leads though another thread leads
// mutant NOT_QUEUED: a thread that finds a leader does not join the queue
// mutant TAKEN_LATE: the queue is taken when the world has started
// mutant LEAD_DROPPED: a leader ends without looking at the queue
// mutant NOT_PASSED: the thread that gets the lead is not woken
// mutant CLEARED_LATE: the note is cleared after the thread has asked
// mutant CHAIN_LATE: a woken thread waits for a stop, then wakes others
// mutant CHAIN_CUT: a woken thread wakes no others
// mutant LEAD_ASLEEP: a stop waits for the end of a lead
// mutant LEADER_EXITS: a leader exits after a poll, and keeps the lead
// mutant LEAD_KEPT: a thread that the child of a fork has lost still leads there
// mutant REST_FIRST: a thread sweeps what is left before it asks
// mutant UNASKED_BESIDE: the background thread leads though another thread leads
// mutant UNASKED_WAITS: the background thread awaits the right while it runs
// mutant UNASKED_KEEPS: the background thread gives up, and keeps the lead
// mutant UNASKED_GIVES_UP: the background thread gives up and skips the queue
// mutant UNASKED_TAKES: the background thread takes the queue in its stop
// mutant UNASKED_DROPS: the background thread ends its lead and skips the queue

#define HOSTS 4
#define LIBRARY 4 // the background thread, in running only
#define READER 4  // the reader of the search without that thread
#define NONE 255
#define CHUNKS 2

#define STOPPED(me)                                                            \
	((me == 0 || !running[0]) && (me == 1 || !running[1]) &&               \
	 (me == 2 || !running[2]) && (me == 3 || !running[3]) &&               \
	 (me == LIBRARY || !running[LIBRARY]))

bool running[HOSTS + 1];

// struct asks.
bool led;
byte queue[HOSTS]; // the earliest first
byte queued;

// struct ask of each host.
bool leads[HOSTS];
byte wakes0[HOSTS] = NONE;
byte wakes1[HOSTS] = NONE;
bool woken[HOSTS]; // the note

// The asks that the leader took.
byte taken[HOSTS];
byte ntaken;

// struct sweep.
bool beside;  // a collection leaves its sweep to the threads
byte left;    // chunks that no thread has taken
byte halfway; // chunks that threads are in

#define SWEPT (left == 0 && halfway == 0)

// A thread that waits for the threads in the last chunks also wakes if another
// sweep has begun (swept.pml).
#define AWAITED (SWEPT || left > 0)

bool sema; // worldsema
bool stopping; // a stop is wanted, or lasts
byte leaders;  // ghost
bool asking[HOSTS];   // ghost: the ask exists, on the host's stack
bool answered[HOSTS]; // ghost: a stop came after the ask
byte asleep;   // ghost: hosts that are answered but not woken

// C: note_wake
// in: wake_two
inline wake(h)
{
	if
	:: h != NONE -> atomic { assert(asking[h]); woken[h] = true }
	:: else
	fi
}

// C: wake_two
// at: ASK_WAIT_WOKEN, NOTE_WAKE
inline wake_two(me)
{
	wake(wakes0[me]);
	wake(wakes1[me])
}

// C: proc_unblock
// at: PROC_UNBLOCK, PROC_UNBLOCK_STOP
inline unblock(me)
{
	atomic { !stopping -> running[me] = true }
}

// C: safepoint_poll
// in: unblock
inline poll(me)
{
	if
	:: stopping -> running[me] = false; unblock(me)
	:: else
	fi
}

// A chunk is swept without a poll.  took says whether the thread got one.
// C: swept_slice, swept_slice_down
// at: SWEEP_ONE_TAKEN
inline slice(took)
{
	atomic {
		took = (left > 0);
		if
		:: took -> left--; halfway++
		:: else
		fi
	}
	atomic {
		if
		:: took -> halfway--
		:: else
		fi
	}
}

// C: slices_rest, slices_await
// at: SLICES_REST, SWEPT_AWAIT
inline slices_rest(me, took)
{
	do
	:: atomic { SWEPT -> took = false }; break
	:: else ->
		slice(took);
		if
		:: atomic { SWEPT -> took = false }; break
		:: else
		fi;
		if
		:: took
		:: else -> running[me] = false; AWAITED; unblock(me)
		fi;
		poll(me)
	od
}

// A collection, in its stop.
// C: cycle_begin, cycle_begin_unasked
// at: CYCLE_FLIP
inline flip()
{
	assert(SWEPT); // "collection finds the last one unswept"
	left = (beside -> CHUNKS : 0)
}

// enqueue, under its lock, is one step.
// C: ask_wait, enqueue
// at: MUTEX_LOCK, ASK_WAIT
inline ask(me, first)
{
	atomic {
		leads[me] = false;
		wakes0[me] = NONE;
		wakes1[me] = NONE;
		answered[me] = false;
		asking[me] = true;
#ifndef CLEARED_LATE
		woken[me] = false
#endif
	}
	atomic {
		first = !led;
#ifdef TWO_LEAD
		first = true;
#endif
#ifdef NOT_QUEUED
		if
		:: first -> queue[queued] = me; queued++
		:: else
		fi;
#else
		queue[queued] = me;
		queued++;
#endif
		led = true
	}
#ifdef CLEARED_LATE
	woken[me] = false
#endif
}

// C: ask_take
// at: MUTEX_LOCK
inline take_queue(i)
{
	atomic {
		ntaken = queued;
		for (i : 0 .. HOSTS - 1) {
			taken[i] = queue[i];
			queue[i] = 0
		}
		queued = 0;
		i = 0
	}
}

// All that ask_pass does under its lock is one step.
// C: ask_pass
// at: MUTEX_LOCK, NOTE_WAKE
inline pass(i)
{
	atomic {
		led = queued > 0;
		if
		:: led -> i = queue[0]
		:: else -> i = NONE
		fi
	}
	if
	:: i != NONE ->
		atomic { assert(asking[i]); leads[i] = true }
#ifndef NOT_PASSED
		woken[i] = true
#endif
	:: else
	fi;
	i = 0
}

// The leader's part: cycle_begin, cycle_end, ask_done.
// C: cycle_begin, cycle_end, ask_done, chain
// at: SEMA_ACQUIRE, CYCLE_END, CYCLERECORD_PUBLISH, ASK_DONE, MUTEX_LOCK
inline lead(me, i, took)
{
	atomic { leaders++; assert(leaders == 1) }
#ifndef REST_FIRST
	slices_rest(me, took);
#endif
#ifdef LEADER_EXITS
	if
	:: beside -> goto gone
	:: true
	fi;
#endif
	// stw_acquire, while it is blocked; stw_stop.
	running[me] = false;
	atomic { !sema -> sema = true }
	unblock(me);
	stopping = true;
	atomic {
		STOPPED(me);
#ifndef TAKEN_LATE
	}
	take_queue(i);
	atomic {
		assert(ntaken > 0); // never for nothing
		assert(taken[0] == me);
#endif
		for (i : 0 .. HOSTS - 1) {
			answered[i] = true
		}
		i = 0;
		flip()
	}
	stopping = false;
	atomic {
		sema = false;
		leaders--
	}
#ifdef TAKEN_LATE
	take_queue(i);
#endif
	atomic {
		// chain: taken[0] is the leader.
		i = 1;
		do
		:: i < ntaken ->
			if
			:: i % 2 == 1 -> wakes0[taken[(i - 1) / 2]] = taken[i]
			:: else -> wakes1[taken[(i - 1) / 2]] = taken[i]
			fi;
			assert(asking[taken[i]]);
			i++
		:: else -> break
		od;
		asleep = asleep + ntaken - 1;
		i = 0
	}
#ifdef LEAD_DROPPED
	led = false;
#else
	pass(i);
#endif
	wake_two(me)
}

// In a search with sweeps beside the threads, a host may exit at any time.
// C: collect
// in: ask
proctype Host(byte me, asks)
{
	byte i;
	bool first, took;

	unblock(me); // it may attach, or leave a region, in a stop
	do
	:: asks == 0 || beside -> break
	:: asks > 0 ->
		asks--;
#ifdef REST_FIRST
		slices_rest(me, took);
#endif
		ask(me, first);
		if
		:: first -> lead(me, i, took)
		:: else ->
			running[me] = false; // proc_block
			atomic {
				woken[me];
				if
				:: leads[me]
				:: else -> asleep--
				fi
			}
#ifdef CHAIN_LATE
			unblock(me);
			wake_two(me);
#else
#ifndef CHAIN_CUT
			wake_two(me);
#endif
			unblock(me);
#endif
			if
			:: leads[me] -> lead(me, i, took)
			:: else
			fi
		fi;
		atomic { assert(answered[me]); asking[me] = false }
	od;
gone:
	running[me] = false
}

// The collection of the background thread, which leads and may stop the world.
// It answers no ask.
// C: cycle_begin_unasked, cycle_end, let_others
// at: CYCLE_END, CYCLERECORD_PUBLISH
inline collect_unasked(i)
{
	stopping = true;
	atomic { STOPPED(LIBRARY); flip() }
#ifdef UNASKED_TAKES
	take_queue(i);
#endif
	stopping = false;
	atomic {
		sema = false;
		leaders--
	}
#ifdef UNASKED_DROPS
	led = false
#else
	pass(i)
#endif
}

// The background thread gives up the lead.
// C: begin
// at: PERIODIC_BEGIN
inline give_up(i)
{
	leaders--;
#ifdef UNASKED_GIVES_UP
	led = false
#else
#ifndef UNASKED_KEEPS
	pass(i)
#endif
#endif
}

// ask_lead, under its lock, is one step.
// C: ask_lead
// at: MUTEX_LOCK, PERIODIC_COLLECT
inline lead_unasked(has)
{
	atomic {
		has = !led;
#ifdef UNASKED_BESIDE
		has = true;
#endif
		led = true
	}
}

// C: finish_sweep
// at: FINISH_SWEEP
inline finish_sweep(took)
{
	do
	:: SWEPT -> break
	:: else ->
		slice(took);
		running[LIBRARY] = false;
		if
		:: took
		:: else -> AWAITED
		fi;
		unblock(LIBRARY)
	od;
	took = false
}

// The background thread tries a few times.  While it runs, no sweep can begin.
// C: take_turn, periodic_collect, begin, stw_try_acquire
// at: PERIODIC_COLLECT, PERIODIC_BEGIN, SCAVENGER_TAKE_TURN
proctype Library(byte tries)
{
	byte i;
	bool has, took;

	do
	:: tries == 0 -> break
	:: tries > 0 ->
		tries--;
		unblock(LIBRARY);
		finish_sweep(took);
		lead_unasked(has);
		if
		:: has ->
			leaders++;
			assert(leaders == 1);
#ifdef UNASKED_WAITS
			!sema;
#endif
			atomic {
				has = !sema;
				sema = true
			}
			if
			:: has -> collect_unasked(i)
			:: else -> give_up(i)
			fi
		:: else
		fi;
		running[LIBRARY] = false
	od;
}

// The first collection in the child.
// C: ask_fork_child, visit_enter, at_child
// at: FORK_PREPARE
inline check_child(c_led)
{
	d_step {
		assert(halfway == 0); // by no thread that the child has lost
		c_led = led;
#ifndef LEAD_KEPT
		c_led = false;
#endif
		assert(!c_led); // rt_gc leads
		c_led = false
	}
}

// Stops the world once, for a fork, for an exact read, which needs all swept,
// or for anything else.  A reader that is attached sweeps beside the others
// first.  The stop lasts as long as answered hosts sleep.  So hosts must wake
// each other even in a stop.
// C: stw_stop, stw_start, visit_enter_swept, swept_all
// at: SEMA_ACQUIRE
proctype Stopper(bool reads)
{
	bool took, c_led;

	if
	:: reads ->
		unblock(READER);
		slices_rest(READER, took);
		running[READER] = false
	:: else
	fi;
	atomic { !sema -> sema = true }
	stopping = true;
#ifdef LEAD_ASLEEP
	STOPPED(NONE) && !led;
#else
	STOPPED(NONE);
#endif
	atomic {
		asleep == 0;
		if
		:: true -> check_child(c_led)
		:: beside -> assert(halfway == 0); left = 0
		fi
	}
	stopping = false;
	sema = false
}

init
{
	atomic {
		if
		:: true ->
			beside = true;
			left = CHUNKS;
			run Host(0, 2);
			run Host(1, 1);
			run Library(2);
			run Stopper(false)
		:: true ->
			beside = true;
			left = CHUNKS;
			run Host(0, 1);
			run Host(1, 1);
			run Host(2, 1);
			run Stopper(true)
		:: true ->
			run Host(0, 2);
			run Host(1, 1);
			run Host(2, 1);
			run Host(3, 1);
			run Stopper(false)
		fi
	}
}
