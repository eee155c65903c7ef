// stacks.pml - stacks that threads switch between, and a collection.
//
// Models gc/mark/stacks.c and what gc/mark/mark.c does with it.  Two threads
// switch between four stacks, of which two belong to objects that two markers
// trace.  A stop may come between any two steps of a switch, as if threads were
// stopped by signals.  A scan must find the words of a stack up to where it is
// in use.
//
// Mutants, each of which must be found:
// mutant NO_LOOK: a stack that runs is taken for one that does not
// mutant OLD_LOOK: what the look of an earlier stop found still counts
// mutant LOOK_EARLY: the look comes before all threads are stopped
// mutant CLAIM_APART: a claim is a load and a later store
// mutant MOVE_FIRST: a thread saves its stack pointer after it has moved it
// mutant ROOT_TWICE: a stack that runs is scanned for its object as well

#define STACKS 4
// Two of them belong to objects.
#define OWNED(k) (k >= 2)
#define STOPS 2
#define SWITCHES 2 // of each thread
#define NONE STACKS

byte depth[STACKS] = 1; // words in use
byte saved[STACKS] = 1; // as the host has stored it
byte on[2];		// the stack that a thread runs on
bool taken[STACKS];	// by a thread; the host's own lock

// A step of a thread comes only while it is not stopped.
bool stop;

// The collection of this stop.
byte looks;
byte runs[STACKS];    // number of the last look that found a thread on it
byte scanned[STACKS]; // number of the look in which it was claimed
byte scans[STACKS];   // ghost: how often
byte found[STACKS];   // ghost: the words of the last scan
byte markers;	      // that have ended

// What a thread of the host does.  It uses the stack that it runs on, and
// switches to one that no thread runs on.
// C: none
proctype thread(byte me)
{
	byte n = SWITCHES, to;

	do
	:: atomic { !stop && n > 0 ->
		n--;
		// Any stack that no thread has taken.
		if
		:: !taken[0] -> to = 0
		:: !taken[1] -> to = 1
		:: !taken[2] -> to = 2
		:: !taken[3] -> to = 3
		fi;
		taken[to] = true
	   }
#ifdef MOVE_FIRST
	   atomic { !stop -> to = to + on[me] * 8; on[me] = to % 8 }
	   atomic { !stop -> saved[to / 8] = depth[to / 8] }
	   atomic { !stop -> taken[to / 8] = false }
#else
	   atomic { !stop -> saved[on[me]] = depth[on[me]] }
	   atomic { !stop -> to = to + on[me] * 8; on[me] = to % 8 }
	   atomic { !stop -> taken[to / 8] = false }
#endif
	   atomic { !stop -> depth[on[me]] = 3 - depth[on[me]] }
	:: atomic { !stop && n == 0 -> break }
	od
}

// The look for the stacks that run.
// C: stacks_look
// in: tell
inline look()
{
#ifndef OLD_LOOK
	looks++;
#endif
#ifndef NO_LOOK
	runs[on[0]] = looks;
	runs[on[1]] = looks
#endif
}

// C: stacks_trace, stack_claim
// at: STACK_CLAIM
inline tell(k, old)
{
#ifdef ROOT_TWICE
	if
	:: true ->
#else
	if
	:: runs[k] != looks ->
#endif
		old = scanned[k];
#ifdef CLAIM_APART
		if
		:: old != looks ->
			scanned[k] = looks;
			scans[k]++;
			found[k] = saved[k]
		:: else
		fi
#else
		atomic {
			if
			:: old != looks && scanned[k] == old ->
				scanned[k] = looks;
				scans[k]++;
				found[k] = saved[k]
			:: else
			fi
		}
#endif
	:: else
	fi;
	old = 0
}

// Each of the two markers reaches both objects.  The markers run in any order.
// C: trace_object
// in: tell
proctype marker(byte first)
{
	byte old;

	tell(first, old);
	tell(5 - first, old);
	markers++
}

// C: mark_all, mark_threads, mark_fibers
// at: none
active proctype collector()
{
	byte n = STOPS, k;

	atomic {
		on[0] = 0;
		on[1] = 1;
		taken[0] = true;
		taken[1] = true;
		looks = 1;
		run thread(0);
		run thread(1)
	}
	do
	:: n > 0 ->
		n--;
#ifdef LOOK_EARLY
		atomic { look() }
		stop = true;
#else
		stop = true;
		atomic { look() }
#endif
		markers = 0;
		run marker(2);
		run marker(3);
		markers == 2;
		atomic {
			// The jobs of threads and of registered stacks.
			k = 0;
			do
			:: k < STACKS ->
				if
				:: runs[k] == looks ->
					found[k] = depth[k];
					scans[k]++
				:: runs[k] != looks && !OWNED(k) ->
					found[k] = saved[k];
					scans[k]++
				:: else
				fi;
				assert(scans[k] == 1);
				assert(found[k] == depth[k]);
				scans[k] = 0;
				k++
			:: else -> break
			od;
			k = 0
		}
		stop = false
	:: n == 0 -> break
	od
}
