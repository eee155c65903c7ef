// swept.pml - sweeping beside the threads, what follows, stops, a late helper.
//
// Models gc/cycle/swept.c, gc/cycle/sweep.c, gc/cycle/cycle.c,
// gc/host/slices.c, gc/host/visit.c, and collect, take_swept and end_sweep of
// gc/host/supply.c.  It begins in the middle of a sweep beside the threads:
//
// - A collector leads twice.  It sweeps the rest in slices, stops the world and
//   flips.  Then it sweeps in its stop, or leaves that to the threads.
// - A host allocates, perhaps in a no-GC stretch, or needs every chunk swept.
// - A visitor stops the world twice, and may need every chunk swept.
// - A helper of the stops may exist.  No stop waits for it: it may see chunks
//   in one stop, and try to take one at any time after that.
//
// There is no background thread: it would take the steps of slices_rest, as a
// host does.  So what the model shows also holds where the system refuses that
// thread.
//
// A stop is a few variables here (stw.pml shows the real one): it waits until
// no thread runs.  One thread leads at a time (ask.pml).  bits.pml shows what
// sweeping a chunk does.
//
// A thread that sleeps in swept_await wakes only if another thread wakes it.
// It wakes by itself only where no other thread has to do that (TIMEOUT).  A
// lost wake is a state without a way out, which spin reports ("invalid end
// state").
//
// Mutants, each of which must be found:
// mutant HELPER_BESIDE: a late helper takes a chunk beside the threads
// mutant END_TWICE: the end looks at the state, then stores
// mutant OVER_EARLY: the sweep is over before what follows was done
// mutant POLL_INSIDE: a host polls in the middle of a chunk
// mutant LEFT_KEPT: a visitor does not sweep what is left
// mutant LEADER_SKIPS: a leader does not sweep the rest before its stop
// mutant END_ASKS_ACTIVE: the end in a stop asks whether a sweeper is active
// mutant SLEEP_UNCOUNTED: a thread sleeps without counting as a sleeper
// mutant WAKE_FIRST: the end looks for sleepers before the sweep is over
// mutant OVER_STALE: a thread looks whether all is swept, and then polls
// mutant ADVICE_DROPPED: a collection has advised, then takes the advice
// mutant ADVISES_LAST: a thread has swept the rest, then advises
// mutant CHOICE_EARLY: huge pages are chosen before the buffers are freed

#define COLLECTOR 0
#define HOST 1
#define THREADS 2 // a stop waits for them
#define CYCLES 2
#define ALLOCATIONS 2
#define VISITS 2
#define CHUNKS 2

// enum swept_state.
#define OVER 0
#define STOP 1
#define BESIDE 2
#define ENDING 3

// For whom a chunk is swept.
#define FOR_THREAD 0
#define FOR_STOPPER 1
#define FOR_HELPER 2

// struct sweep.
byte left = CHUNKS;
bool beside = true; // SWEEP_BESIDE in left
byte sweepers;	    // active

// struct swept.
byte state = BESIDE;
byte before_choice = 1;
bool advise;
byte sleepers;

bool crew; // crew_size is not 0

// The world.
bool sema; // the right to stop it
bool stopping;
bool running[THREADS];
bool asleep[THREADS]; // in the system, in swept_await

// Ghosts.
byte half;	   // chunks that are being swept
byte swept;	   // chunks, in this sweep
bool raised;	   // the generation, since the flip
bool freed = true; // the work buffers, since the stop of the flip
bool chosen;	   // huge pages, since the flip
bool wanted;	   // huge pages that were chosen and are not provided
bool calling;	   // a thread is in crew_call

#define ALL_SWEPT (state == OVER && swept == CHUNKS && half == 0 && raised)

// While no thread is active in a sweep, no thread has to end it.  The thread
// that would end it may be the sleeper itself (swept_end).  Or chunks are left,
// because this sweep has begun after the sleeper decided to wait for the
// previous one.
#define TIMEOUT (state == BESIDE && sweepers == 0)

// C: proc_block
// in: unblock
inline block(me)
{
	running[me] = false
}

// C: proc_unblock
// at: PROC_UNBLOCK
inline unblock(me)
{
	atomic { !stopping -> running[me] = true }
}

// C: safepoint_poll
// at: NOTE_WAIT
inline poll(me)
{
	if
	:: stopping -> block(me); unblock(me)
	:: else
	fi
}

// The stopper itself does not count as running either.
// C: stw_acquire, stw_stop
// at: SEMA_ACQUIRE
inline stop()
{
	atomic { !sema -> sema = true; stopping = true }
	atomic {
		!running[COLLECTOR] && !running[HOST];
		// In every stop, no chunk is half swept, and no thread is just
		// ending the sweep.
		assert(half == 0 && state != ENDING)
	}
}

// Only one thread at a time may be in crew_call.
// C: crew_call
// at: CREW_CALL
inline crew_call()
{
	atomic { assert(!calling); calling = true }
	calling = false
}

// C: ended, choose_huge_pages
// in: crew_call
inline ended(last)
{
	atomic {
		before_choice--;
		last = (before_choice == 0);
		if
		:: last ->
			assert(!chosen && freed && state == OVER);
			chosen = true
		:: else
		fi
	}
	if
	:: last && crew -> crew_call()
	:: last && !crew -> atomic { wanted = true; advise = true }
	:: else
	fi;
	last = false
}

// C: sweep_one, take, chunk_sweep
// at: SWEEP_ONE, SWEEP_ONE_TAKEN
inline sweep_one(taker, me, took)
{
	sweepers++;
	atomic {
		took = (left > 0);
#ifndef HELPER_BESIDE
		took = (took && !(taker == FOR_HELPER && beside));
#endif
		if
		:: took -> left--; half++
		:: else
		fi
	}
#ifdef POLL_INSIDE
	if
	:: took && taker == FOR_THREAD -> poll(me)
	:: else
	fi;
#endif
	atomic {
		if
		:: took -> half--; swept++
		:: else
		fi;
		sweepers--
	}
}

// C: follow
// at: SWEPT_FOLLOW
inline follow(last)
{
#ifdef OVER_EARLY
	state = OVER;
#endif
	atomic { assert(!raised); raised = true }
#ifdef WAKE_FIRST
	last = (sleepers != 0);
	state = OVER;
#else
	state = OVER;
	last = (sleepers != 0);
#endif
	if
	:: last -> atomic { asleep[COLLECTOR] = false; asleep[HOST] = false }
	:: else
	fi;
	ended(last)
}

// C: swept_end, sweep_done
// at: SWEEP_DONE, SWEPT_END
inline swept_end(last)
{
	if
	:: state == BESIDE && left == 0 -> last = (sweepers == 0)
	:: else -> last = false
	fi;
	if
	:: last ->
#ifdef END_TWICE
		last = (state == BESIDE);
		if
		:: last -> state = ENDING
		:: else
		fi;
#else
		atomic {
			last = (state == BESIDE);
			if
			:: last -> state = ENDING
			:: else
			fi
		}
#endif
		if
		:: last -> follow(last)
		:: else
		fi
	:: else
	fi
}

// C: swept_slice, swept_slice_down, sweep_chunk, sweep_chunks_down
// in: sweep_one
inline swept_slice(me, took, last)
{
	took = false;
	if
	:: left > 0 -> sweep_one(FOR_THREAD, me, took)
	:: else
	fi;
	swept_end(last)
}

// C: swept_await
// at: SWEPT_AWAIT
inline swept_await(me, seen)
{
#ifndef SLEEP_UNCOUNTED
	sleepers++;
#endif
	seen = state;
	if
	:: seen != OVER ->
		// The system reads the state again, and compares.
		atomic { asleep[me] = (state == seen); seen = OVER }
		atomic { !asleep[me] || TIMEOUT -> asleep[me] = false }
	:: else
	fi;
#ifndef SLEEP_UNCOUNTED
	sleepers--
#endif
}

// C: slices_await
// in: swept_await
inline slices_await(me, nogc, seen)
{
	if
	:: nogc -> swept_await(me, seen)
	:: else -> block(me); swept_await(me, seen); unblock(me)
	fi
}

// Taking advice and advising are one step here, and two in Collector.  Huge
// pages that are chosen between the two are provided, and their advice is taken
// in vain.  A thread that advises is blocked meanwhile, so a stop may come.
// C: swept_take_advice, worker_advise
// at: WORKER_ADVISE
inline take_advice(me)
{
	if
	:: atomic { advise -> advise = false; wanted = false };
	   block(me);
	   unblock(me)
	:: else
	fi
}

// C: slices_rest, finish_sweep
// at: SLICES_REST, FINISH_SWEEP
inline slices_rest(me, took, last, seen)
{
	do
	:: state == OVER -> break
	:: else ->
		do
		:: state == OVER -> break
		:: else ->
			swept_slice(me, took, last);
			if
			:: state == OVER -> break
			:: else
			fi;
			if
			:: took
			:: else -> slices_await(me, false, seen)
			fi;
			took = false;
			poll(me)
		od;
		took = false;
		take_advice(me);
#ifdef ADVISES_LAST
		break
#endif
	od;
	assert(ALL_SWEPT) // the goal is right, and a collection may be due
}

// C: sweep_all, sweep_done
// at: SWEEP_ALL_WAIT, SWEEP_DONE
inline sweep_all(took)
{
	beside = false;
	if
	:: crew -> crew_call()
	:: else
	fi;
	do
	:: left > 0 -> sweep_one(FOR_STOPPER, 0, took)
	:: else -> break
	od;
	took = false;
	sweepers == 0
}

// C: swept_end_stopped
// at: SWEPT_END_STOPPED
inline swept_end_stopped(last)
{
	assert(left == 0 && (state == STOP || state == BESIDE));
#ifdef END_ASKS_ACTIVE
	last = (sweepers == 0);
#else
	last = true;
#endif
	if
	:: last -> state = ENDING; follow(last)
	:: else
	fi
}

// C: flip, swept_begin, sweep_begin
// at: CYCLE_FLIP
inline swept_begin()
{
	atomic {
		assert(chosen);
		swept = 0;
		raised = false;
		freed = false;
		chosen = false;
#ifdef CHOICE_EARLY
		before_choice = 1;
#else
		before_choice = 2;
#endif
		left = CHUNKS;
		if
		:: beside = true; state = BESIDE
		:: beside = false; state = STOP
		fi
	}
}

// C: collect, cycle_begin, collect_stopped, cycle_end
// at: CYCLE_END, COLLECT_PROVIDED
proctype Collector(byte me)
{
	byte cycle, seen;
	bool took, last;

	for (cycle : 1 .. CYCLES) {
		unblock(me); // ask_wait: it leads
#ifndef LEADER_SKIPS
		slices_rest(me, took, last, seen);
#endif
		block(me);
		stop();
		assert(ALL_SWEPT); // "collection finds the last one unswept"
		swept_begin();
		if
		:: beside
		:: else ->
			sweep_all(took);
			swept_end_stopped(last);
			assert(ALL_SWEPT)
		fi;
		assert(half == 0);
		atomic { stopping = false; running[me] = true }
		atomic { freed = true } // work_release
		ended(last); // swept_buffers_freed
		sema = false;
		// swept_take_advice, worker_advise
#ifdef ADVICE_DROPPED
		wanted = false;
		advise = false;
#else
		advise = false;
		wanted = false;
#endif
		assert(!wanted || advise);
		block(me)
	}
}

// The thread gets memory at any time.  It gives up only if all was swept before
// its last try.
// C: supply_object, take_swept, sweep_some
// at: TAKE_SWEPT
inline take_swept(me, nogc, took, last, seen)
{
	do
	:: true ->
#ifdef OVER_STALE
		over = (state == OVER);
#endif
		if
		:: nogc
		:: else -> poll(me)
		fi;
		was_left = left;
#ifndef OVER_STALE
		over = (state == OVER);
#endif
		if
		:: all = (state == OVER) // take has found nothing
		:: break
		fi;
		if
		:: !over && left == was_left ->
			swept_slice(me, took, last);
			if
			:: took -> took = false
			:: else -> slices_await(me, nogc, seen)
			fi
		:: else
		fi;
		if
		:: over -> assert(all); break
		:: else
		fi
	od;
	atomic { over = false; all = false; was_left = 0 }
}

// It allocates, or runs destructors.
// C: supply_request, do_due, end_sweep, begin_batch
// in: take_swept, slices_rest
proctype Host(byte me)
{
	byte i, seen, was_left;
	bool took, last, over, all, nogc;

	for (i : 1 .. ALLOCATIONS) {
		unblock(me);
		if
		:: true ->
			swept_end(last);
			if
			:: true -> take_advice(me)
			:: true -> nogc = true
			fi;
			take_swept(me, nogc, took, last, seen);
			nogc = false
		:: true -> slices_rest(me, took, last, seen)
		fi;
		block(me)
	}
}

// C: visit_enter, visit_enter_swept, swept_all, visit_leave
// in: stop
proctype Visitor()
{
	byte i;
	bool took, last;

	for (i : 1 .. VISITS) {
		stop();
		if
		:: true -> // it needs all swept
#ifndef LEFT_KEPT
			if
			:: state == OVER
			:: else -> sweep_all(took); swept_end_stopped(last)
			fi;
#endif
			assert(ALL_SWEPT)
		:: true
		fi;
		atomic { stopping = false; sema = false }
	}
}

// C: sweep_help
// at: SWEEP_HELP
proctype Helper()
{
	bool took;

end:
	do
	:: left > 0 && !beside -> sweep_one(FOR_HELPER, 0, took); took = false
	od
}

init
{
	atomic {
		if
		:: crew = true; run Helper()
		:: true
		fi;
		run Collector(COLLECTOR);
		run Host(HOST);
		run Visitor()
	}
}
