// stw.pml - stop the world, the gate, blocking regions, attach and detach.
//
// Models runtime/world/proc.c and runtime/world/stw.c, with attach_thread and
// attach_undo of gc/host/attach.c.  Two hosts attach, touch the heap, poll,
// enter regions and detach; their records are used again.  One of them is in a
// no-GC stretch for a while (rt_nogc_enter).  Two threads stop the world, one
// with P 0, one without a P.  The other host claims a P that is blocked.
//
// A host may in the end compute for ever and only poll.  So a stop without a
// hint, and a sleep that no thread ends, are states without a way out, which
// spin reports ("invalid end state").  Busy waits are modelled as guards for
// the same reason.
//
// Mutants, each of which must be found:
// mutant GATE_UNFENCED: waiters are loaded while the gate is still buffered
// mutant WAITERS_FIRST: waiters are loaded before the gate opens
// mutant WAITERS_LATE: a thread counts itself a waiter after it slept
// mutant LINK_FORGOTTEN: a woken thread wakes no other
// mutant LINK_LATE: a woken thread wakes another only when it blocks again
// mutant LINK_BROKEN: a thread whose sleep the open gate refused wakes no other
// mutant SPINNER_IDLE: a thread that saw the gate open while it spun wakes none
// mutant SPINNER_KEPT: a thread that spun goes to sleep and keeps its promise
// mutant SLEEP_UNCOMPARED: a sleep without a second look at the gate
// mutant UNBLOCK_UNCHECKED: leaving a region does not look at STOP
// mutant UNBLOCK_IN_TWO: leaving a region looks at STOP, then becomes RUNNING
// mutant UNBIASED: stop_wait is raised P by P, from zero
// mutant BIT_AFTER_COUNT: a P is counted as running, then gets STOP
// mutant ATTACH_UNGATED: attach does not look at the gate
// mutant DETACH_UNGATED: detach does not look at the gate
// mutant GATE_UNLOCKED: the gate is closed without procs.lock
// mutant NO_SEMA: two threads stop the world at a time
// mutant SEMA_FIRST: worldsema is released before the world starts
// mutant SEMA_RUNNING: worldsema is awaited as RUNNING
// mutant ATTACH_UNPOLLED: attach does not look for a stop that it missed
// mutant HINT_LATE: pending is lowered after STOP
// mutant GATE_FIRST: the gate opens before STOP is cleared
// mutant THREAD_UNLOCKED: a thread block is freed without procs.lock
// mutant NOTE_KEPT: the note stays woken from the previous stop
// mutant CLAIM_RUNNING: a claim does not look whether the P is blocked
// mutant CLAIM_UNLOCKED: a P is claimed without procs.lock
// mutant CLAIM_UNSEEN: leaving a region does not look at CLAIMED
// mutant CLAIM_BLOCKED: a claimer is blocked before it has released the P
// mutant STRETCH_POLLS: a poll parks inside a no-GC stretch
// mutant STRETCH_BLOCKS: a region may begin inside a no-GC stretch
// mutant STRETCH_FORGETS: a poll inside a no-GC stretch lowers the hint
// mutant LEAVE_UNPOLLED: the end of a no-GC stretch does not look for a stop

#define HOSTS 2   // threads 0, 1
#define RECORDS 3
#define NONE 255

// enum of proc.h.
#define FREE 0
#define RUNNING 1
#define BLOCKED 2

// struct rt_proc; state is split into what the thread does, PROC_STOP and
// PROC_CLAIMED.
byte state[RECORDS];
bool stop[RECORDS];
byte thread[RECORDS] = NONE; // NONE: NULL
byte claimed = NONE;	     // the P with PROC_CLAIMED
bool wanted[RECORDS];	     // local to proc_block: STOP was set

// struct procs.
bool lock;
byte count = 1; // also the list: records 0 .. count-1, the newest first
byte free[RECORDS];
byte nfree;
byte gate;
byte closed;	  // the stopper's copy of gate
bool gate_buffer; // gate + 1, stored by the stopper, not yet visible
byte gate_waiters;
byte gate_spinner; // gate that a spinning thread will pass on; 0: none
short stop_wait;
bool stopnote; // the note

// worldsema.
byte next, serving;

// Thread blocks.
bool pending[HOSTS];
bool mapped[HOSTS];
bool nogc; // thread 0 is in a no-GC stretch

bool asleep[HOSTS]; // on the gate, in the kernel
bool owes[HOSTS];   // of mutants: has still to wake another, or will not
byte stopped;		// ghost: stops that last

// C: mutex_lock
// at: MUTEX_LOCK, MUTEX_SLEEP
inline take_lock()
{
	atomic { !lock -> lock = true }
}

// ---- by a thread, runtime/world/proc.c ----

// oscall_futex_wake of one: the kernel chooses which.  A woken thread wakes one
// other here, and two in C.  As there are two hosts, that is the whole chain.
// C: gate_wake
// in: gate_pass_on
inline gate_wake()
{
	if
	:: gate_waiters != 0 && asleep[0] -> asleep[0] = false
	:: gate_waiters != 0 && asleep[1] -> asleep[1] = false
	:: gate_waiters == 0 || (!asleep[0] && !asleep[1])
	fi
}

// C: gate_pass_on
// at: GATE_PASS_ON
inline gate_pass_on(seen)
{
	// A step that comes between the two looks could have come before them.
	atomic {
		if
		:: gate != seen -> gate_wake()
		:: else // woken early
		fi;
		seen = 0
	}
}

// In gate_wait, a thread sees the gate open while it spins, or sleeps.
// C: gate_wait, gate_spin, gate_sleep
// at: GATE_WAIT, GATE_WAIT_IN_VAIN, GATE_SLEEP
inline gate_wait(tid, seen)
{
	// It is enough that one host spins; with both, all rules hold in
	// fifteen million states.
	if
	:: tid != 0 -> gate_spinner = seen // seqcst
	:: else
	fi;
	if
	:: tid != 0 && gate != seen ->
#ifdef SPINNER_IDLE
		seen = 0
#else
		gate_pass_on(seen)
#endif
	:: true ->
#ifndef SPINNER_KEPT
		if
		:: tid != 0 -> gate_spinner = 0 // seqcst
		:: else
		fi;
#endif
#ifndef WAITERS_LATE
		gate_waiters++; // seqcst: a full barrier on this side
#endif
		// oscall_futex_wait: compared and put to sleep in one step.
#ifdef SLEEP_UNCOMPARED
		asleep[tid] = true;
#else
		atomic {
			if
			:: gate == seen -> asleep[tid] = true
			:: gate == seen && tid == 0 // a signal ends the sleep
			:: else ->
#ifdef LINK_BROKEN
				owes[tid] = true
#endif
			fi
		}
#endif
#ifdef WAITERS_LATE
		gate_waiters++;
#endif
		atomic { !asleep[tid] -> gate_waiters-- };
#ifdef LINK_LATE
		owes[tid] = true;
#endif
#if !defined(LINK_LATE) && !defined(LINK_FORGOTTEN)
		if
		:: !owes[tid] -> gate_pass_on(seen)
		:: else -> owes[tid] = false
		fi;
#endif
		seen = 0
	fi
}

// lock_open_gate.
// C: lock_open_gate
// at: LOCK_OPEN_GATE
inline lock_open_gate(tid, seen)
{
	do
	:: take_lock();
		seen = gate;
		if
		:: seen % 2 == 0 -> break
		:: else -> lock = false; gate_wait(tid, seen)
		fi
	od
}

// proc_block: a compare and swap that keeps STOP; then proc_stopped.
// C: proc_block, proc_stopped
// at: PROC_BLOCK, PROC_BLOCK_DONE, PROC_STOPPED
inline proc_block(p)
{
	atomic {
		assert(state[p] == RUNNING);
		state[p] = BLOCKED;
		wanted[p] = stop[p]
	}
	if
	:: wanted[p] ->
		atomic {
			stop_wait--;
			wanted[p] = (stop_wait == 0)
		}
		if
		:: wanted[p] -> atomic { stopnote = true; wanted[p] = false }
		:: else
		fi
	:: else
	fi
}

#ifdef CLAIM_UNSEEN
#define CLAIMED(p) false
#else
#define CLAIMED(p) (claimed == p)
#endif

// proc_unblock: the P becomes RUNNING only if STOP and CLAIMED are clear.
// C: proc_unblock, await_claim
// at: PROC_UNBLOCK, PROC_UNBLOCK_STOP
inline proc_unblock(tid, p, seen)
{
	do
	::
#ifdef UNBLOCK_UNCHECKED
		state[p] = RUNNING;
		break
#else
#ifdef UNBLOCK_IN_TWO
		if
		:: !stop[p] && !CLAIMED(p) -> state[p] = RUNNING; break
		:: else
		fi;
#else
		atomic {
			if
			:: !stop[p] && !CLAIMED(p) -> state[p] = RUNNING; break
			:: else
			fi
		}
#endif
		seen = gate;
		if
		:: seen % 2 == 1 -> gate_wait(tid, seen)
		:: else -> // await_claim
			atomic {
				!lock && (gate != seen || !stop[p]) -> seen = 0
			}
		fi
#endif
	od
}

// A thread that runs, with P p, claims another P and uses what the thread of
// that P owns.
// C: proc_claim, proc_release
// at: PROC_CLAIM
inline claim(p, q)
{
	// A step that comes between the lock and the compare and swap could
	// have come before both.
	atomic {
#ifndef CLAIM_UNLOCKED
		!lock -> lock = true;
#endif
		if
		:: q = 0
		:: q = 1
		:: q = 2
		fi;
		if
#ifdef CLAIM_RUNNING
		:: q != p && state[q] != FREE -> claimed = q
#else
		:: q != p && state[q] == BLOCKED -> claimed = q
#endif
		:: else
		fi
	}
#ifdef CLAIM_BLOCKED
	proc_block(p);
#endif
	if
	:: claimed != NONE ->
		atomic {
			assert(state[q] == BLOCKED);
			assert(stopped == 0);
			claimed = NONE;
			q = 0
		}
	:: else -> q = 0
	fi;
#ifndef CLAIM_UNLOCKED
	lock = false;
#endif
#ifdef CLAIM_BLOCKED
	proc_unblock(1, p, q);
#endif
	skip
}

// thread_set_pending.
// C: thread_set_pending
// in: proc_start_all
inline set_pending(p, t, value)
{
	t = thread[p];
	if
	:: t != NONE -> atomic { assert(mapped[t]); pending[t] = value; t = 0 }
	:: else -> t = 0
	fi
}

// ---- by the stopper ----

// proc_stop_all(self); self is NONE without a P.  It sets pending only in the
// thread blocks of Ps that run.
// C: proc_stop_all, note_clear, note_wake
// at: PROC_STOP_ALL, PROC_STOP_ALL_ASKED, NOTE_WAKE
inline proc_stop_all(self, p, t, ran)
{
#ifndef NOTE_KEPT
	stopnote = false; // note_clear
#endif
#ifndef GATE_UNLOCKED
	take_lock();
#endif
	gate++; // seqcst store, only stoppers write it
#ifdef UNBIASED
	stop_wait = 0;
#else
	stop_wait = count + 1;
#endif
	ran = 0;
	p = count;
	do
	:: p > 0 ->
		p--;
		if
		:: p == self || state[p] == FREE
		:: else ->
#ifdef BIT_AFTER_COUNT
			t = state[p];
			stop[p] = true;
#else
			// atomic_u32_or_seqcst on the whole word.
			atomic { t = state[p]; stop[p] = true }
#endif
			if
			:: t == RUNNING ->
				set_pending(p, t, true);
				ran++;
#ifdef UNBIASED
				stop_wait++
#endif
			:: else
			fi
		fi
	:: else -> break
	od;
#ifndef GATE_UNLOCKED
	lock = false;
#endif
#ifdef UNBIASED
	if
	:: stop_wait == 0 -> stopnote = true
	:: else
	fi
#else
	atomic {
		stop_wait = stop_wait + ran - (count + 1);
		ran = (stop_wait == 0)
	}
	if
	:: ran -> atomic { stopnote = true; ran = 0 } // note_wake
	:: else
	fi
#endif
}

// C: proc_start_all
// at: PROC_START_ALL_GATE
inline open_gate()
{
	// atomic_u32_store_seqcst, then the load of waiters.
	gate_buffer = true;
#ifndef GATE_UNFENCED
	!gate_buffer
#endif
}

// proc_start_all(self).
// C: proc_start_all
// at: PROC_START_ALL, PROC_START_ALL_GATE
inline proc_start_all(self, p, t, waiters)
{
	closed = gate;
#ifdef WAITERS_FIRST
	waiters = gate_waiters;
#endif
#ifdef GATE_FIRST
	open_gate();
#endif
	p = count;
	do
	:: p > 0 ->
		p--;
		if
		:: p == self || state[p] == FREE
		:: else ->
#ifdef HINT_LATE
			stop[p] = false;
			set_pending(p, t, false)
#else
			set_pending(p, t, false);
			stop[p] = false
#endif
		fi
	:: else -> break
	od;
#ifndef GATE_FIRST
	open_gate();
#endif
#ifdef WAITERS_FIRST
	if
	:: waiters != 0 -> atomic { waiters = 0; gate_wake() }
	:: else
	fi;
#else
	if
	:: gate_spinner == closed -> // leaves it to that thread
		gate_spinner = 0 // no later gate equals it; this saves states
	:: else -> atomic { gate_wake() }
	fi;
#endif
	closed = 0
}

// stw_acquire: sema_try_acquire, else sema_acquire as blocked.  A thread that
// sleeps for a ticket uses another word and kernel queue.  Its handshake is
// like the gate's.
// C: stw_acquire, sema_try_acquire, sema_acquire
// at: SEMA_TRY_ACQUIRE, SEMA_ACQUIRE
inline worldsema_acquire(self, ticket)
{
#ifdef NO_SEMA
	skip
#else
	if
	:: atomic { next == serving -> next++ }
	:: atomic { next != serving -> skip };
		if
#ifndef SEMA_RUNNING
		:: self != NONE -> proc_block(self)
#endif
		:: else
		fi;
		atomic { ticket = next; next++ }
		atomic { serving == ticket -> ticket = 0 }
		if
#ifndef SEMA_RUNNING
		:: self != NONE ->
			// proc_unblock, when a claim is over: only this thread
			// may stop others.
			atomic {
				!CLAIMED(self) ->
					assert(!stop[self]);
					state[self] = RUNNING
			}
#endif
		:: else
		fi
	fi
#endif
}

// sema_release: a read-modify-write, so the gate is visible before.
// C: sema_release
// at: SEMA_RELEASE
inline worldsema_release()
{
	atomic { !gate_buffer -> serving++ }
}

// stw_stop, the promises of a stop, stw_start.
// C: stw_stop, proc_wait_all, note_sleep, stw_start
// at: NOTE_WAIT
inline stop_and_start(self, p, t, n)
{
	worldsema_acquire(self, t);
	proc_stop_all(self, p, t, n);
	stopnote; // proc_wait_all: note_sleep
	atomic {
		assert(stop_wait == 0);
		assert(stopped == 0);
		assert(!nogc);
		assert(claimed == NONE);
		stopped++;
		for (p : 0 .. RECORDS - 1) {
			assert(p == self || state[p] != RUNNING)
		}
	}
	// The work that the stop is for happens here.
	atomic {
		for (p : 0 .. RECORDS - 1) {
			assert(p == self || state[p] != RUNNING)
		}
		assert(!nogc);
		stopped--
	}
#ifdef SEMA_FIRST
	worldsema_release();
#endif
	proc_start_all(self, p, t, n);
#ifndef SEMA_FIRST
	worldsema_release()
#endif
}

// ---- processes ----

// C: none
proctype Memory()
{
end:
	do
	:: atomic { gate_buffer -> gate++; gate_buffer = false }
	od
}

// A no-GC stretch, with a poll inside.  A stop that the poll put off takes place
// at the end.
// C: rt_nogc_poll_, safepoint_poll
// in: proc_block
inline stretch(tid, p, seen)
{
	// seen tells whether the poll puts a stop off.
	atomic {
		nogc = true;
		seen = pending[tid];
#ifdef STRETCH_FORGETS
		pending[tid] = false
#endif
	}
#ifdef STRETCH_BLOCKS
	proc_block(p);
	proc_unblock(tid, p, seen);
#endif
#ifdef STRETCH_POLLS
	if
	:: pending[tid] -> proc_block(p); proc_unblock(tid, p, seen)
	:: else
	fi;
#endif
#ifdef LEAVE_UNPOLLED
	atomic { nogc = false; assert(!seen) };
#else
	if
	:: atomic { pending[tid] -> nogc = false; seen = 0 };
		proc_block(p);
		proc_unblock(tid, p, seen)
	:: atomic { !pending[tid] -> nogc = false; assert(!seen) }
	fi;
#endif
	assert(stopped == 0)
}

// The thread of a host: attach_thread, work, attach_undo.
// C: attach_thread, attach_block, attach_undo, proc_attach, proc_detach
// at: ATTACH_BLOCK, ATTACH_BLOCK_KNOWN, ATTACH_UNDO, PROC_ATTACH, PROC_DETACH
proctype Host(byte tid)
{
	byte p, seen;

	// proc_attach.
#ifdef ATTACH_UNGATED
	take_lock();
#else
	lock_open_gate(tid, seen);
#endif
	// No thread looks under procs.lock while the gate is open, so this is
	// one step.
	atomic {
		if
		:: nfree > 0 -> nfree--; p = free[nfree]
		:: else -> p = count; count++ // proc_new
		fi;
		state[p] = RUNNING;
		assert(stopped == 0);
		lock = false
	}
	// attach_block: mcache_new, proc_set_thread.
	atomic { !lock -> mapped[tid] = true; thread[p] = tid }
#ifndef ATTACH_UNPOLLED
	if
	:: stop[p] -> proc_block(p); proc_unblock(tid, p, seen)
	:: else
	fi;
#endif
	assert(stopped == 0);
	if
	:: true -> goto leave
	:: tid == 0 -> goto region // rt_blocking_enter; one host is enough
	:: tid == 0 -> stretch(tid, p, seen); goto leave
	:: tid == 1 -> goto region
	:: true			   // compute for ever, and poll
	fi;
end_computing:
	pending[tid]; // safepoint_poll: proc_park
region:
	proc_block(p);
#ifdef LINK_LATE
	if
	:: owes[tid] -> atomic { owes[tid] = false; gate_wake() }
	:: else
	fi;
#endif
	proc_unblock(tid, p, seen);
	assert(stopped == 0);
	if
	:: goto end_computing
	:: tid == 0
	:: tid == 1 -> claim(p, seen)
	fi;
leave:
	// attach_undo: proc_set_thread, mcache_delete, proc_detach.
#ifdef THREAD_UNLOCKED
	thread[p] = NONE;
#else
	atomic { !lock -> thread[p] = NONE }
#endif
	atomic { mapped[tid] = false; pending[tid] = false }
	proc_block(p);
#ifdef DETACH_UNGATED
	take_lock();
#else
	lock_open_gate(tid, seen);
#endif
	atomic {
		state[p] = FREE;
		stop[p] = false; // a store of the whole word
		free[nfree] = p;
		nfree++;
		assert(stopped == 0);
		p = 0;
		lock = false
	}
}

// This thread is attached all the time.  It stops the world, and then stays in
// a region for good.
// C: stw_stop, stw_start
// in: stop_and_start
proctype StopperWithP()
{
	byte p, t, n;

	stop_and_start(0, p, t, n);
	assert(stopped == 0);
	proc_block(0) // for good, in a region
}

// C: stw_stop, stw_start
// in: stop_and_start
proctype StopperWithoutP()
{
	byte p, t, n;

	stop_and_start(NONE, p, t, n)
}

init
{
	atomic {
		state[0] = RUNNING;
		run Memory();
		run Host(0);
		run Host(1);
		run StopperWithP();
		run StopperWithoutP()
	}
}
