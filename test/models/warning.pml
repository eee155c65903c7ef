// warning.pml - the host is told of threads that run on unknown stacks.
//
// Models warn_of, stacks_take_warning and stacks_fork_child of
// gc/mark/stacks.c.  Each stop finds another such thread.  Two threads tell the
// host; they are not attached, so a stop may come between any two of their
// steps.  After a fork the model goes on as the child, in which two other
// threads tell the host.
//
// Mutants, each of which must be found:
// mutant WARN_OVER: a stop writes over what a thread is reading
// mutant READ_LATE: a thread says that it has read, and then reads
// mutant FORK_TAKEN: the child waits for a thread that it does not have

#define STOPS 4

#define NONE 0
#define DUE 1
#define TAKEN 2

byte warning;	     // enum stacks_warning
byte lost;	     // the thread found
bool forked;
byte ended;	     // stops
bool found[STOPS];   // ghost: by a stop that noted it
bool told[STOPS];    // ghost
bool gone[STOPS];    // ghost: a fork came when it was taken

// C: warn_of, stacks_look_again
// at: STACKS_TAKE_WARNING
proctype Stopper()
{
	do
	:: ended == STOPS -> break
	:: ended < STOPS ->
		atomic {
			if
#ifdef WARN_OVER
			:: warning != DUE ->
#else
			:: warning == NONE ->
#endif
				lost = ended;
				found[ended] = true;
				warning = DUE
			:: else
			fi;
			ended++
		}
	:: atomic { !forked ->
			forked = true;
			if
			:: warning == TAKEN ->
				gone[lost] = true;
#ifndef FORK_TAKEN
				warning = NONE
#endif
			:: else
			fi
		}
	od
}

// C: stacks_take_warning
// at: STACKS_TAKE_WARNING
proctype Teller()
{
	byte sp;
	bool mine; // of which process: the parent, or the child

	do
	:: atomic { warning == DUE -> warning = TAKEN; mine = forked }
#ifdef READ_LATE
		if
		:: atomic { mine == forked -> warning = NONE }
		:: atomic { mine != forked -> goto lost_here }
		fi;
#endif
		if
		:: atomic { mine == forked -> sp = lost }
		:: atomic { mine != forked -> goto lost_here }
		fi;
		atomic {
			if
			:: mine == forked ->
#ifndef READ_LATE
				warning = NONE;
#endif
				assert(!told[sp]);
				told[sp] = true
			:: else
			fi
		}
lost_here:	mine = false
	:: atomic { ended == STOPS && warning != DUE -> break }
	od
}

// When all have ended, the host was told of each thread that a stop noted, and
// can be told of another one.
// C: none
active proctype Judge()
{
	byte i;

	atomic {
		run Stopper();
		run Teller();
		run Teller()
	}
	atomic {
		_nr_pr == 1;
		assert(warning == NONE);
		do
		:: i == STOPS -> break
		:: else ->
			assert(told[i] == found[i] || gone[i]);
			i++
		od
	}
}
