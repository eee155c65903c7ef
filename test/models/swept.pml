// swept.pml - sweeping beside the threads, what follows, stops, a late helper.
//
// Models gc/cycle/swept.c, gc/cycle/sweep.c, gc/cycle/cycle.c and
// gc/host/slices.c.  Two hosts sweep in slices and poll in between; one may be
// the library's thread, which lets a stop come where a host polls.  The cycle
// stops them, sweeps what is left, as a visitor of its stop does, and flips.  It sweeps in its stop, with a
// helper, or leaves that to the hosts.  No stop waits for the helper, and it may
// wake up at any time after a call.  bits.pml shows what sweeping a chunk does.
//
// Mutants, each of which must be found:
// mutant HELPER_BESIDE: a late helper takes a chunk beside the threads
// mutant END_TWICE: the end looks at the state, then stores
// mutant OVER_EARLY: the sweep is over before what follows was done
// mutant POLL_INSIDE: a host polls in the middle of a chunk
// mutant LEFT_KEPT: a stop flips with chunks left

#define HOSTS 2
#define STEPS 3
#define CYCLES 2
#define CHUNKS 2

#define OVER 0
#define OPEN 1
#define ENDING 2

byte left; // sweep.left
bool beside; // SWEEP_BESIDE in it
byte sweepers; // sweep.active
byte state; // swept.state
bool called; // a helper was called at some time

bool stopping;
bool is_stopped[HOSTS];

// Ghosts.
byte half; // chunks that are being swept
byte swept = CHUNKS; // in this sweep
byte raised = 1; // how often the end came

// C: safepoint_poll
// at: NOTE_WAIT
inline poll(p)
{
	if
	:: stopping ->
		is_stopped[p] = true;
		atomic { !stopping -> is_stopped[p] = false }
	:: else
	fi
}

// C: take, sweep_one, chunk_sweep
// at: SWEEP_ONE, SWEEP_ONE_TAKEN
inline sweep_one(helper, took)
{
	sweepers++;
	atomic {
#ifdef HELPER_BESIDE
		took = (left > 0);
#else
		took = (left > 0 && !(helper && beside));
#endif
		if
		:: took -> left--
		:: else
		fi
	}
	if
	:: took ->
		half++;
#ifdef POLL_INSIDE
		if
		:: !helper && !in_stop -> poll(p)
		:: else
		fi;
#endif
		atomic { half--; swept++ }
	:: else
	fi;
	sweepers--
}

// C: swept_end, follow
// at: SWEPT_END, SWEPT_FOLLOW
inline swept_end(won)
{
#ifdef END_TWICE
	won = (state == OPEN);
	if
	:: won -> state = ENDING
	:: else
	fi;
#else
	atomic {
		won = (state == OPEN);
		if
		:: won -> state = ENDING
		:: else
		fi
	}
#endif
	if
	:: won ->
#ifdef OVER_EARLY
		state = OVER;
		raised++
#else
		atomic { raised++; assert(raised == 1) }
		state = OVER
#endif
	:: else
	fi
}

// C: swept_slice, sweep_chunk, sweep_done
// in: Host
inline swept_slice(took, done)
{
	if
	:: left > 0 -> sweep_one(false, took)
	:: else
	fi;
	done = (left == 0);
	if
	:: done -> done = (sweepers == 0)
	:: else
	fi;
	if
	:: done -> swept_end(took)
	:: else
	fi
}

// C: slices_rest, slices_await, take_swept, supply_object, finish_sweep
// at: SLICES_REST, SWEPT_AWAIT, TAKE_SWEPT, FINISH_SWEEP
proctype Host(byte p)
{
	byte i;
	bool took, done;
	bool in_stop = false;

	for (i : 1 .. STEPS) {
		poll(p);
		if
		:: state != OVER -> swept_slice(took, done)
		:: atomic {
			state == OVER ->
			// The goal is right, and a collection may be due.
			assert(swept == CHUNKS && raised == 1)
		   }
		:: true
		fi
	}
	is_stopped[p] = true
}

// C: sweep_help
// in: sweep_one
proctype Helper()
{
	bool took;
	bool in_stop = false;
	byte p;

end:
	do
	:: called && left > 0 && !beside -> sweep_one(true, took)
	:: called && left > 0 && !beside -> called = false // it comes late
	od
}

// C: sweep_all, swept_all
// at: SWEEP_ALL_WAIT
inline sweep_all(took)
{
	beside = false;
	called = true;
	do
	:: left > 0 -> sweep_one(false, took)
	:: else -> break
	od;
	left == 0;
	sweepers == 0
}

// C: cycle_begin, collect_stopped, swept_begin, visit_enter_swept
// at: CYCLE_FLIP
proctype Cycle()
{
	byte cycle, p;
	bool took;
	bool in_stop = true;

	do
	:: cycle < CYCLES ->
		stopping = true;
		is_stopped[0] && is_stopped[1];
		// Whatever stop it is, no chunk is half swept.
		assert(half == 0);
#ifndef LEFT_KEPT
		if
		:: state != OVER -> sweep_all(took); swept_end(took)
		:: else
		fi;
#endif
		atomic {
			assert(swept == CHUNKS && half == 0 && raised == 1);
			cycle++;
			swept = 0;
			raised = 0;
			state = OPEN;
			if
			:: beside = true
			:: beside = false
			fi;
			left = CHUNKS
		}
		if
		:: beside
		:: else -> sweep_all(took); swept_end(took)
		fi;
		assert(half == 0);
		stopping = false
	:: else -> break
	od
}

init
{
	atomic { run Host(0); run Host(1); run Helper(); run Cycle() }
}
