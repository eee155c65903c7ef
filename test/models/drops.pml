// drops.pml - dead objects wait for their destructors.
//
// Models gc/mark/drops.c, gc/host/finalize.c, the frees of dropped objects in
// gc/cycle/sweep.c, and runtime/spans/deadbits.h:
//
// - a thread that runs destructors, or calls rt_drop_now;
// - a thread that collects, allocates, and may fork once;
// - a thread that is not attached, and looks an object up.
//
// Two spans have two slots and one.  A collection is one step: its stop waits
// until the runner is in a destructor or polls.  In that step the host may
// first clear any of its references.  References between objects are left out,
// and so are frees by hand.
//
// After a fork the model goes on as the child: the runner is lost, and begins
// again as another thread.
//
// Mutants, each of which must be found:
// mutant ONE_TURN: what dies has the turn of the batch
// mutant FREE_EARLY: a span is freed while the batch has others left
// mutant REQUEUE_NOT: a span in which others have died leaves the queue
// mutant SWEEP_QUEUED: a collection frees what was dropped in a queued span
// mutant SWEEP_NOW: a collection frees what rt_drop_now drops
// mutant BITS_FIRST: a slot's dead bits are cleared before it is free
// mutant BATCH_KEPT: rt_drop_now leaves a batch open
// mutant MIXED_NOT: what a batch has dropped does not stay with its rest
// mutant CONDEMNED_NOT: the end of a batch frees what was picked alive
// mutant CLEAR_FIRST: an object that changes its turn loses the old one first
// mutant MOVES_LAST: a change of turn is counted after the old turn is lost
// mutant MOVES_NOT_READ: a look-up does not see that objects moved
// mutant MOVES_LATE: a look-up reads a turn before it reads the moves
// mutant FORK_KEPT: a lost thread still runs destructors
// mutant FORK_PICKED: what a lost rt_drop_now had picked is still picked
// mutant FORK_DIES: what a lost rt_drop_now picked alive waits for its drop

#define OBJECTS 3
#define COLLECTIONS 2
#define RUNS 2 // one in the child
#define SPAN(o) ((o) / 2)

// Where a span is.
#define NONE 0
#define BATCH 1
#define NEXT 2

bool running; // the runner, so that no stop comes
bool stopped; // by the runner
bool lost;    // the runner, by a fork
bool forked;

bool alloc[OBJECTS];
bool ref[OBJECTS]; // the host refers to it
bool dead[6];	   // by turn and object
byte where[2];
bool condemned[2];

// struct drops
bit turn;
byte left, ready;
bool runner, open, now, mixed;
bool moved; // deadbits_moves is not what a look-up has read

#define D(t, o) dead[(t) * OBJECTS + (o)]
#define DEAD(o) (D(0, o) || D(1, o))
#define DROPPED(o) (D(0, o) && D(1, o))
#define ONLY(t, o) (D(t, o) && !D(1 - (t), o))
#define WAITS(o) (D(0, o) != D(1, o))
#define ALIVE(o) (alloc[o] && !DEAD(o))
#define HAS_WAITING(s) \
	((s) == 0 && (WAITS(0) || WAITS(1)) || (s) == 1 && WAITS(2))
#define HAS_DROPPED(s) \
	((s) == 0 && (DROPPED(0) || DROPPED(1)) || (s) == 1 && DROPPED(2))

#ifdef SWEEP_QUEUED
#define STAYS(s) now
#else
#ifdef SWEEP_NOW
#define STAYS(s) (where[s] != NONE)
#else
#define STAYS(s) (where[s] != NONE || now)
#endif
#endif

// Ghosts.
bool dropped[OBJECTS];	// in this life
bool returned[OBJECTS]; // its destructor
byte cohort[OBJECTS];	// the collection that found it dead; 0: none
bool looks; // object 0 is looked up
bool seen;  // it was alive meanwhile

// C: drops_check
// in: Host
inline check(i)
{
	assert(ready == WAITS(0) + WAITS(1) + WAITS(2));
	assert(left == ONLY(turn, 0) + ONLY(turn, 1) + ONLY(turn, 2));
	assert(!open || !now);
	i = 0;
	do
	:: i == OBJECTS -> break
	:: else ->
		assert(!DEAD(i) || alloc[i]);
		assert(!ONLY(1 - turn, i) || where[SPAN(i)] != NONE);
		assert(now || !ONLY(turn, i) || where[SPAN(i)] == BATCH);
		i++
	od;
	i = 0
}

// What must hold when a slot becomes free.
// C: none
inline check_free(slot, k)
{
	assert(returned[slot]);
	assert(!ref[slot]);
	k = 0;
	do
	:: k == OBJECTS -> break
	:: else ->
		// All that died with the object of the slot was dropped.
		assert(cohort[slot] == 0 || cohort[k] != cohort[slot] || returned[k]);
		k++
	od;
	k = 0
}

// C: none
inline forget(slot)
{
	dropped[slot] = false;
	returned[slot] = false;
	cohort[slot] = 0
}

// C: free_dropped
// at: FREE_DROPPED
inline free(o, i)
{
	if
#ifdef CONDEMNED_NOT
	:: DROPPED(o) ->
#else
	:: DROPPED(o) && !condemned[SPAN(o)] ->
#endif
		check_free(o, i);
#ifdef BITS_FIRST
		D(0, o) = false;
		D(1, o) = false;
		alloc[o] = false;
#else
		alloc[o] = false;
		D(0, o) = false;
		D(1, o) = false;
#endif
		forget(o)
	:: else
	fi
}

// C: safepoint_poll
// at: PROC_STOPPED
inline poll()
{
	running = false;
	if
	:: atomic { lost -> goto begin }
	:: atomic { !lost -> running = true }
	fi
}

// Only object 0 is looked up.  No thread sees the steps of the other objects,
// so these are in one step.
// C: free_batch, drops_end, sweep_free_dropped, end_span, drops_requeue
// at: SWEEP_PUBLISH, FREE_BATCH, PROC_STOPPED
inline end_batch(s, i)
{
	do
	:: !open -> break
	:: else ->
		s = where[0] != BATCH;
		if
		:: s == 0 -> free(0, i)
		:: else
		fi;
		atomic {
			if
			:: s == 0 -> free(1, i)
			:: else -> free(2, i)
			fi;
#ifdef REQUEUE_NOT
			where[s] = NONE;
#else
			where[s] = (HAS_WAITING(s) -> NEXT : NONE);
#endif
			s = 0;
			open = where[0] == BATCH || where[1] == BATCH
		}
		poll()
	od
}

// C: deadbits_move
// at: DEADBITS_MOVE, DEADBITS_MOVE_COUNTED
inline move(to, o)
{
#ifdef CLEAR_FIRST
	D(1 - (to), o) = false;
	moved = looks;
	D(to, o) = true
#else
	D(to, o) = true;
#ifdef MOVES_LAST
	D(1 - (to), o) = false;
	moved = looks
#else
	moved = looks;
	D(1 - (to), o) = false
#endif
#endif
}

// C: put_back
// in: drop_now
inline put_back(o)
{
	if
	:: ONLY(turn, o) -> move(1 - turn, o)
	:: else
	fi
}

// C: pick_span, drops_pick
// in: drop_now
inline pick(o)
{
	if
	:: true
	:: alloc[o] && !DROPPED(o) ->
		d_step {
			if
			:: ALIVE(o) -> condemned[SPAN(o)] = true; ready++
			:: else
			fi;
			left++;
			cohort[o] = 0
		}
		move(turn, o)
	fi
}

// C: take_bit
// in: run_finalizers
inline begin_drop(o)
{
	D(1 - turn, o) = true;
	left--;
	ready--;
	assert(!dropped[o]);
	dropped[o] = true
}

// It takes any object, because spans are queued in any order.
// C: take_span
// in: run_finalizers
inline next_left(o)
{
	if
	:: ONLY(turn, 0) -> o = 0
	:: ONLY(turn, 1) -> o = 1
	:: ONLY(turn, 2) -> o = 2
	:: left == 0 -> o = OBJECTS
	fi
}

// C: drops_take, open_batch
// in: run_finalizers
inline take(o)
{
	atomic {
		if
		:: !open && ready != 0 ->
			where[0] = (where[0] == NEXT -> BATCH : where[0]);
			where[1] = (where[1] == NEXT -> BATCH : where[1]);
			turn = 1 - turn;
			left = ready;
			open = true;
			mixed = false
		:: else
		fi;
		next_left(o);
		if
		:: o < OBJECTS ->
			assert(where[SPAN(o)] == BATCH);
			assert(!ref[o]);
			begin_drop(o)
		:: else
		fi
	}
}

// C: finalize_run, call_drop
// at: CALL_DROP, PROC_STOPPED
inline run_finalizers(s, o, i)
{
	do
	:: true ->
		if
		:: open && left == 0 -> end_batch(s, i)
#ifdef FREE_EARLY
		:: open && left != 0 -> end_batch(s, i)
#endif
		:: else
		fi;
		take(o);
		if
		:: o == OBJECTS -> break
		:: else ->
			poll(); // in the destructor
			returned[o] = true;
			if
			:: true
			:: break // as many as were asked for
			fi
		fi
	od;
	o = 0
}

// C: drops_end_now, thin_queue
// in: drop_now
inline end_now(i)
{
	now = false;
#ifdef MIXED_NOT
	mixed = false;
#else
	mixed = mixed && ready != 0;
#endif
	i = 0;
	do
	:: i == 2 -> break
	:: else ->
		condemned[i] = condemned[i] || where[i] == NEXT && HAS_DROPPED(i);
		if
		:: where[i] == NEXT && !HAS_WAITING(i) &&
		   !(mixed && HAS_DROPPED(i)) -> where[i] = NONE
		:: else
		fi;
		i++
	od;
	i = 0
}

// Waiting objects get the turn of objects that die; picked ones get the other
// turn.
// C: finalize_now, drops_begin_now, pick_all, drops_take_now
// at: FINALIZE_NOW, FINALIZE_NOW_PICKED, CALL_DROP, PROC_STOPPED
inline drop_now(o, i)
{
	poll(); // its stop may come after others
	stopped = true;
	put_back(0);
	atomic {
		put_back(1);
		put_back(2);
		where[0] = (where[0] == BATCH -> NEXT : where[0]);
		where[1] = (where[1] == BATCH -> NEXT : where[1]);
		mixed = mixed || (open && left != 0);
#ifndef BATCH_KEPT
		open = false;
#endif
		now = true;
		left = 0
	}
	pick(0);
	atomic {
		pick(1);
		pick(2);
		stopped = false
	}
	do
	:: left == 0 -> break
	:: left != 0 ->
		atomic {
			next_left(o);
			begin_drop(o)
		}
		poll(); // in the destructor
		atomic { returned[o] = true; o = 0 }
	od;
	atomic { end_now(i) }
}

// C: drops_acquire, drops_release
// at: DROPS_ACQUIRE, DROPS_RELEASE
proctype Runner()
{
	byte runs, s, o, i;

begin:	atomic {
		s = 0;
		o = 0;
		i = 0;
		if
		:: lost -> runs = RUNS - 1; lost = false
		:: else
		fi
	}
	do
	:: runs == RUNS -> break
	:: runs < RUNS ->
		atomic {
			runs++;
			assert(!runner); // it is refused
			running = true;
			runner = true
		}
		if
		:: run_finalizers(s, o, i)
		:: drop_now(o, i)
		fi;
		atomic { runner = false; running = false }
	od
}

// C: drops_find, drops_keep, find_word, keep_word, forget_dead
// at: FORGET_DEAD
inline collect(i, j)
{
	i = 0;
	do
	:: i == OBJECTS -> break
	:: else ->
		if
		:: ALIVE(i) && !ref[i] ->
#ifdef ONE_TURN
			D(turn, i) = true;
#else
			D(1 - turn, i) = true;
#endif
			cohort[i] = gcs;
			ready++;
		:: DROPPED(i) && !ref[i] && !STAYS(SPAN(i)) ->
			check_free(i, j);
			alloc[i] = false;
			D(0, i) = false;
			D(1, i) = false;
			forget(i)
		:: else
		fi;
		i++
	od;
	i = 0;
	do
	:: i == OBJECTS -> break
	:: else ->
		if
		:: ONLY(1 - turn, i) && where[SPAN(i)] == NONE ->
			where[SPAN(i)] = NEXT
		:: else
		fi;
		if
		:: !HAS_DROPPED(SPAN(i)) && !now -> condemned[SPAN(i)] = false
		:: else
		fi;
		i++
	od;
	i = 0
}

// C: drops_fork_child, drops_abandon, spare, spare_span
// in: Host
inline child(i)
{
	i = 0;
	do
	:: i == OBJECTS || !now -> break
	:: else ->
		if
		:: ONLY(turn, i) ->
			D(turn, i) = false;
#ifdef FORK_DIES
			D(1 - turn, i) = true;
#else
			D(1 - turn, i) = !condemned[SPAN(i)];
			ready = ready - condemned[SPAN(i)];
#endif
		:: else
		fi;
		i++
	od;
	if
	:: now ->
		left = 0;
		if
		:: !HAS_DROPPED(0) -> condemned[0] = false
		:: else
		fi;
		if
		:: !HAS_DROPPED(1) -> condemned[1] = false
		:: else
		fi;
		end_now(i)
	:: else
	fi
}

// C: collect, at_child
// at: CYCLE_FLIP, FORK_PREPARE
proctype Host()
{
	byte gcs, i, j;
	bool allocated;

end:	do
	:: atomic {
			gcs < COLLECTIONS && !running ->
			gcs++;
			do
			:: i == OBJECTS -> break
			:: i < OBJECTS -> i++
			:: i < OBJECTS && ref[i] -> ref[i] = false; i++
			od;
			d_step {
				check(i);
				collect(i, j);
				check(i)
			}
		}
	:: d_step {
			!allocated && !stopped && !alloc[0] && where[0] == NONE ->
			assert(!DEAD(0));
			allocated = true;
			alloc[0] = true;
			seen = looks
		}
	:: d_step {
			!forked && runner && !running ->
			forked = true;
			lost = true;
#ifndef FORK_PICKED
			child(i);
#endif
#ifndef FORK_KEPT
			runner = false;
#endif
			check(i);
			// A lost destructor does not continue, so it counts as
			// returned.
			returned[0] = dropped[0];
			returned[1] = dropped[1];
			returned[2] = dropped[2]
		}
	od
}

// C: deadbits_test, object_find
// at: LOOK_UP, DEADBITS_TEST, DEADBITS_TEST_ONE, DEADBITS_TEST_BOTH
proctype Looker()
{
	bool found;

	atomic { looks = true; seen = ALIVE(0) }
	do
	:: true ->
#ifdef MOVES_LATE
		found = D(0, 0);
		moved = false;
#else
		moved = false;
		found = D(0, 0);
#endif
		found = found || D(1, 0);
		if
#ifdef MOVES_NOT_READ
		:: true -> break
#else
		:: found || !moved -> break
		:: else
#endif
		fi
	od;
	atomic {
		// The alloc bit.  A look-up is lost in the child.
		assert(found || !alloc[0] || seen || forked);
		looks = false;
		seen = false;
		moved = false
	}
}

init
{
	atomic {
		alloc[0] = true; alloc[1] = true; alloc[2] = true;
		ref[0] = true; ref[1] = true; ref[2] = true;
		run Runner();
		run Host();
		run Looker()
	}
}
