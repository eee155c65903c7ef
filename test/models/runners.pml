// runners.pml - one thread at a time runs destructors.
//
// Models drops_acquire, drops_release and drops_fork_child of gc/mark/drops.c.
// drops.pml has a single thread that runs destructors.  Here two threads want
// to run them, each several times.  A stop, and so a fork, comes only while
// each of the two is in a destructor or runs none.  After the fork the model
// goes on as the child, in which lost threads begin again as others.
//
// Mutants, each of which must be found:
// mutant RUN_BOTH: a thread finds the right free, and takes it in a later step
// mutant RIGHT_KEPT: a thread that a fork has lost still has the right
// mutant RIGHT_LOST: a fork takes the right of the thread that forks

#define RUNS 3
#define NONE 2

byte runner = NONE; // drops.runner
bool awake[2];	    // the thread cannot be stopped
bool lost[2];	    // by a fork
byte inside = NONE; // ghost: the thread that runs destructors

// C: drops_release
// in: Runner
inline release(me)
{
	assert(runner == me);
	assert(inside == me);
	inside = NONE;
	runner = NONE
}

// C: drops_acquire, drops_release
// at: DROPS_ACQUIRE, DROPS_RELEASE
proctype Runner(bit me)
{
	byte runs;

begin:	lost[me] = false;
	do
	:: runs == RUNS -> break
	:: atomic { runs < RUNS && runner == NONE -> runs++; awake[me] = true }
		if
#ifndef RUN_BOTH
		:: atomic { runner != NONE -> awake[me] = false }
		:: atomic { runner == NONE ->
#else
		:: atomic { true ->
#endif
			assert(inside == NONE);
			runner = me;
			inside = me
		}
			awake[me] = false; // in a destructor
			if
			:: atomic { lost[me] -> goto begin }
			:: atomic { !lost[me] -> awake[me] = true }
			fi;
			atomic { release(me); awake[me] = false }
		fi
	:: atomic { runs < RUNS && runner != NONE -> // it is refused
			assert(inside != NONE);
			runs++
		}
	od
}

// The thread that forks is one of the two, or another.
// C: drops_fork_child, drops_abandon
// at: FORK_PREPARE
inline child(self)
{
	if
	:: inside != NONE && inside != self ->
		lost[inside] = true;
		inside = NONE
	:: else
	fi;
#ifndef RIGHT_KEPT
#ifdef RIGHT_LOST
	runner = NONE
#else
	runner = (runner == self -> runner : NONE)
#endif
#endif
}

// C: at_child
// at: FORK_PREPARE
proctype Forker()
{
	byte self;

	atomic {
		!awake[0] && !awake[1] ->
		if
		:: self = 0
		:: self = 1
		:: self = NONE + 1
		fi;
		child(self)
	}
}

init
{
	atomic {
		run Runner(0);
		run Runner(1);
		run Forker()
	}
}
