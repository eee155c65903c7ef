// fork.pml - a process that forks while its threads do anything.
//
// Models gc/host/atfork.c, and the threads that a fork meets:
//
// - a host that allocates, makes a helper and ends the heap;
// - the helper, which begins, serves late calls and leaves (gc/cycle/worker.c);
// - a reader that no stop affects, and that may find a bug of ours
//   (runtime/os/throw.c);
// - another stopper;
// - the thread that forks.
//
// The child has one thread, and so no steps to interleave.  All that it does is
// one step, on copies.  In that step nothing may be left that it would have to
// wait for.  Then the parent continues.
//
// The value of a lock is the thread that holds it.  A stop is a few variables
// here (stw.pml shows the real one).  Of marking and sweeping, the model has
// only the steps of a helper that comes too late to find anything (marking.pml
// and bits.pml show the rest).
//
// Mutants, each of which must be found:
// mutant UNSTOPPED: a fork does not stop the world
// mutant LOCKS_FIRST: a fork takes the locks, then stops the world
// mutant PROCS_FREE: a fork does not take the lock of the Ps
// mutant WORK_FREE: a fork does not take the lock of the markers
// mutant READER_FREE: a fork does not take the lock of the live readers
// mutant STATS_FREE: a fork does not take the lock for counts without a P
// mutant HANDLERS_FREE: a fork does not take the lock of the handlers
// mutant OUT_OF_ORDER: a fork takes the locks of statistics in reverse order
// mutant SEMA_KEPT: tickets of lost threads stay
// mutant MAKING_KEPT: a lost thread still counts as making helpers
// mutant RECORDS_KEPT: a lost helper keeps its record
// mutant CREW_KEPT: a lost helper still counts as one that hears calls
// mutant ACTIVE_KEPT: a lost helper still counts as looking for chunks
// mutant PROCS_KEPT: lost threads keep their Ps
// mutant CACHES_KEPT: the spans that lost threads cached are not retired
// mutant LEAD_KEPT: a lost thread still leads a collection
// mutant THROWER_KEPT: a lost thread still counts as throwing
// mutant FINI_ADMITS: other threads can stop the world while a heap ends
// mutant CALL_QUITS: a helper ends only if the newest call is the one to end
// mutant FINI_KEEPS: the right to stop the world is kept for the helper's end
// mutant FINI_RUNS: a thread that waits for the helper's end is not blocked

#define FORKS 2
#define FREE 0
#define RUNNING 1
#define BLOCKED 2

// The threads, as holders of locks; 0 is no thread.
#define HOST 1
#define HELPER 2
#define READER 3
#define FORKER 4
#define STOPPER 5

byte procs, work, reader, stats, handlers, mheap; // locks

// P records of the host and of the helper.
byte state[3]; // by thread
bool writing[3]; // stats_seq is odd
bool cached;	 // the host's P has a span

bool gate;	    // closed
byte next, serving; // worldsema
byte thrower;	    // the thread that throws, for good in the host's handler;
		    // or 0

bool led; // asks.led: the stopper leads

// struct workers, struct worker, crew, sweep.active.
bool making, runs;
byte running, crew, sweepers;
byte call;	    // 0, LATE or QUIT
bool quit;	    // the helper must end
bool thread, begun; // of the helper
#define LATE 1
#define QUIT 2

// Ghosts.
bool heap = true; // there is one, and it is whole

// C: mutex_lock
// at: MUTEX_LOCK, MUTEX_SLEEP
inline take(lock, who)
{
	atomic { lock == 0 -> lock = who }
}

// C: lock_open_gate
// at: LOCK_OPEN_GATE
inline take_at_open_gate(who)
{
	do
	:: take(procs, who);
		if
		:: !gate -> break
		:: else -> procs = 0; !gate
		fi
	od
}

// The thread is stopped if a stop is wanted, or waits as in a region.
// C: proc_block, proc_unblock
// at: PROC_BLOCK, PROC_UNBLOCK_STOP
inline unblock(who)
{
	atomic { !gate -> state[who] = RUNNING }
}

// C: sema_acquire
// at: SEMA_ACQUIRE
inline acquire_sema(ticket)
{
	atomic { ticket = next; next++ }
	serving == ticket
}

// C: stw_stop, proc_stop_all, proc_wait_all
// at: NOTE_WAIT, PROC_STOP_ALL
inline stop(who)
{
	take(procs, who);
	gate = true;
	procs = 0;
	state[HOST] != RUNNING && state[HELPER] != RUNNING
}

// C: stw_start, stw_release
// at: PROC_START_ALL_GATE, SEMA_RELEASE
inline start()
{
	gate = false;
	serving++
}

// A live read, and setting a handler, by a thread that runs, is in a region, or
// is not attached.
// C: heapstats_read, rt_set_warn_handler
// at: HEAPSTATS_READ, MUTEX_SLEEP
inline read_and_set(who)
{
	take(reader, who);
	take(stats, who); // the move of gen
	stats = 0;
	// wait_even.
	!writing[HOST] && !writing[HELPER];
	reader = 0;
	take(handlers, who);
	handlers = 0
}

// C: heapstats_acquire, mutex_lock, heapstats_release
// at: HEAPSTATS_ACQUIRE, HEAPSTATS_RELEASE
inline allocate()
{
	take(mheap, HOST);
	writing[HOST] = true;
	cached = true;
	writing[HOST] = false;
	mheap = 0
}

// C: make_missing, start_one
// at: MAKE_MISSING, START_ONE
inline provide()
{
	making = true;
	state[HOST] = BLOCKED;
	thread = true; // oscall_thread_start
	begun;
	atomic { runs = true; running++ }
	unblock(HOST);
	making = false
}

// C: dismiss_threads, worker_dismiss
// at: SEMA_ACQUIRE
// in: await_helper
inline dismiss_helper(ticket)
{
	state[HOST] = BLOCKED;
	acquire_sema(ticket);
	unblock(HOST);
	making = true;
	quit = true;
	call = QUIT;
#ifndef FINI_KEEPS
	serving++
#endif
}

// C: await_threads, worker_await
// at: AWAIT_THREADS, AWAIT_THREADS_ENDED
inline await_helper()
{
#ifndef FINI_RUNS
	state[HOST] = BLOCKED;
#endif
	!thread;
	atomic { runs = false; running = 0; quit = false }
#ifndef FINI_RUNS
	unblock(HOST)
#endif
}

// C: close_heap, attach_undo, worker_fini
// at: SEMA_ACQUIRE, ATTACH_UNDO
inline close_heap(ticket)
{
	state[HOST] = BLOCKED;
#ifndef FINI_ADMITS
	acquire_sema(ticket);
	unblock(HOST);
#endif
	// No other thread may find the heap from now on.
	heap = false;
	cached = false;
	take(procs, HOST);
	state[HOST] = FREE;
	procs = 0;
	atomic {
		making = false;
		call = 0;
		heap = true // no heap at all is as good as a whole one
	}
#ifndef FINI_ADMITS
	serving++
#endif
}

// C: attach_thread, mcache_take, rt_thread_detach
// in: allocate
proctype Host()
{
	byte ticket;

	allocate();
	if
	:: true -> state[HOST] = BLOCKED // a poll, or a region
	:: true
	fi;
	read_and_set(HOST);
	if
	:: state[HOST] == BLOCKED -> unblock(HOST)
	:: else
	fi;
	provide();
	if
	:: true -> dismiss_helper(ticket); await_helper(); close_heap(ticket)
	:: true -> state[HOST] = BLOCKED // in a region for good
	fi
}

// C: libthread_main, serve, proc_attach, proc_detach, work_join, sweep_one
// at: LIBTHREAD_MAIN, LIBTHREAD_MAIN_RUNS, SERVE_LEFT
// at: WORK_JOIN, SWEEP_ONE
proctype Helper()
{
	byte task;

end:
	thread;
	take_at_open_gate(HELPER);
	state[HELPER] = RUNNING;
	procs = 0;
	state[HELPER] = BLOCKED;
	crew++;
	begun = true;
end_serving:
	do
	:: atomic { call != 0 -> task = call; call = 0 };
#ifdef CALL_QUITS
		if
		:: task == QUIT -> break
		:: else
		fi;
#else
		if
		:: quit -> break
		:: else
		fi;
#endif
		take(work, HELPER); // work_join: closed
		work = 0;
		sweepers++; // sweep_help: nothing is left
		sweepers--
	od;
	crew--;
	unblock(HELPER);
	state[HELPER] = BLOCKED;
	take_at_open_gate(HELPER);
	state[HELPER] = FREE;
	procs = 0;
	thread = false
}

// C: rt_read_memstats_live, rt_set_warn_handler, throw_fatal
// in: read_and_set
proctype Reader()
{
	read_and_set(READER);
	// The reader counts without a P.
	take(stats, READER);
	stats = 0;
	if
	:: thrower = READER
	:: true
	fi
}

// The stopper collects with a helper that comes late.
// C: ask_wait, stw_stop, stw_start, crew_call, ask_done
// in: stop
proctype Stopper()
{
	byte ticket;

	led = true;
	acquire_sema(ticket);
	stop(STOPPER);
	if
	:: crew != 0 -> call = LATE
	:: else
	fi;
	start();
	led = false
}

// C: locks_take, work_fork_lock, heapstats_fork_lock, handlers_fork_lock
// at: FORK_PREPARE, MUTEX_SLEEP
inline locks_take()
{
#ifndef PROCS_FREE
	take(procs, FORKER);
#endif
#ifndef WORK_FREE
	take(work, FORKER);
#endif
#ifdef OUT_OF_ORDER
	take(stats, FORKER);
	take(reader, FORKER);
#else
#ifndef READER_FREE
	take(reader, FORKER);
#endif
#ifndef STATS_FREE
	take(stats, FORKER);
#endif
#endif
#ifndef HANDLERS_FREE
	take(handlers, FORKER);
#endif
}

#define RELEASE(lock) lock == FORKER -> lock = 0

// C: locks_release, work_fork_unlock, heapstats_fork_unlock, handlers_fork_unlock
// at: FORK_RESUME
inline locks_release()
{
	atomic { if :: RELEASE(handlers) :: else fi }
	atomic { if :: RELEASE(stats) :: else fi }
	atomic { if :: RELEASE(reader) :: else fi }
	atomic { if :: RELEASE(work) :: else fi }
	atomic { if :: RELEASE(procs) :: else fi }
}

#define MINE(lock) (lock == 0 || lock == FORKER)

// The first throw in the child.
// C: throw_fork_child, claim
// at: THROW_CLAIM
inline check_thrower(c_thrower)
{
	c_thrower = thrower;
#ifndef THROWER_KEPT
	c_thrower = 0;
#endif
	assert(c_thrower == 0); // claim returns
	c_thrower = 0
}

// The first stop, collection and helper in the child.
// C: drop_threads, proc_fork_child, sweep_fork_child, worker_fork_child, stw_fork_child
// C: ask_fork_child
// in: locks_release
inline check_child(c_next, c_making, c_runs, c_crew, c_active, c_others, c_led)
{
	// The child takes each of these locks after locks_release.
	assert(MINE(procs) && MINE(work) && MINE(reader) && MINE(stats) &&
	       MINE(handlers));
	// No thread was in the middle of what a stop excludes.
	assert(mheap == 0 && !writing[HOST] && !writing[HELPER]);
	assert(heap);
	c_next = next;
	c_making = making;
	c_runs = runs;
	c_crew = crew;
	c_active = sweepers;
	c_others = state[HOST] != FREE || state[HELPER] != FREE;
	c_cached = cached;
	c_led = led;
#ifndef SEMA_KEPT
	c_next = serving + 1;
#endif
#ifndef MAKING_KEPT
	c_making = false;
#endif
#ifndef RECORDS_KEPT
	c_runs = false;
#endif
#ifndef CREW_KEPT
	c_crew = 0;
#endif
#ifndef ACTIVE_KEPT
	c_active = 0;
#endif
#ifndef PROCS_KEPT
	c_others = false;
#endif
#ifndef LEAD_KEPT
	c_led = false;
#endif
#ifndef CACHES_KEPT
	c_cached = false;
#endif
	assert(c_next == serving + 1); // the next stop has its turn
	assert(!c_led);		       // rt_gc leads
	assert(c_active == 0);	       // sweep_all ends
	assert(c_crew == 0);
	assert(!c_making && !c_runs); // worker_provide makes a helper
	assert(!c_others);	      // rt_fini is for the last thread
	assert(!c_cached)	      // the span can be used, and swept
}

// C: atfork_prepare, prepare, visit_enter, resume, visit_leave, at_child
// at: FORK_PREPARE, FORK_RESUME
proctype Forker()
{
	byte ticket, forks, c_next, c_crew, c_active, c_thrower;
	bool c_making, c_runs, c_others, c_cached, c_led;

	do
	:: forks == FORKS -> break
	:: forks < FORKS && thrower != 0 ->
		// The fork was not prepared, so the child must not use the
		// heap.
		d_step {
			forks++;
			check_thrower(c_thrower)
		}
	:: forks < FORKS && thrower == 0 ->
		forks++;
#ifdef LOCKS_FIRST
		acquire_sema(ticket);
		gate = true;
		locks_take();
		state[HOST] != RUNNING && state[HELPER] != RUNNING;
#else
#ifdef UNSTOPPED
		acquire_sema(ticket);
#else
		acquire_sema(ticket);
		stop(FORKER);
#endif
		locks_take();
#endif
		d_step {
			check_thrower(c_thrower);
			check_child(c_next, c_making, c_runs, c_crew, c_active,
				    c_others, c_led);
			c_next = 0;
			c_crew = 0;
			c_active = 0;
			c_making = false;
			c_runs = false;
			c_others = false;
			c_cached = false;
			c_led = false
		}
		locks_release();
		start()
	od
}

init
{
	atomic {
		state[HOST] = RUNNING;
		run Host();
		run Helper();
		run Reader();
		run Stopper();
		run Forker()
	}
}
