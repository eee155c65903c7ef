// heapstats.pml - statistics that are read whole or not at all.
//
// Models runtime/world/heapstats.c and the list of attached Ps in
// runtime/world/proc.c:
//
// - writers with a P, which detach and attach again while reads run; one of
//   them is not attached in the beginning;
// - an unattached stopper, which counts without a P and sums exactly;
// - live readers, which rotate three slots.
//
// The model has two words of a slot, which represent all.  A change adds 1 to
// both, so a snapshot in which they differ is torn.  The stores of the Dekker
// pairs go through a store buffer that Memory drains at any time.  A seqcst
// operation waits until its own buffer is empty.
//
// Mutants, each of which must be found:
// mutant SEQ_UNFENCED: gen is loaded while the raised seq is still buffered
// mutant GEN_UNFENCED: seqs are loaded while the moved gen is still buffered
// mutant GEN_FIRST: a writer loads gen, then raises its seq
// mutant NO_WAIT: the reader does not wait for even seqs
// mutant NO_P_UNLOCKED: a writer without a P takes no lock
// mutant MOVE_UNLOCKED: gen is moved without the lock for counts without a P
// mutant PUBLISH_LATE: a P enters the list after its first change
// mutant LEAVE_EARLY: a P leaves the list before its last change
// mutant NEXT_CLEARED: a P that leaves clears its link to the next P
// mutant NEXT_FIRST: a P enters the list before it has linked the others
// mutant LIST_FIRST: the reader loads the list, then moves gen
// mutant RELEASE_EARLY: seq is even before the change is visible
// mutant TWO_SLOTS: the history has no slot of its own
// mutant READER_UNLOCKED: the exact reader sums while a live read folds
// mutant HISTORY_KEPT: the folded slot is not cleared

#define WRITERS 2 // P 0 is attached from the beginning, P 1 comes later
#define CHANGES 2 // of P 0; P 1 makes one less
#define NONE 9
#define READS 3   // of the live reader: every slot has its turn
#ifdef TWO_SLOTS
#define SLOTS 2
#else
#define SLOTS 3
#endif

// struct stats and the P records.
byte gen;
byte seq[WRITERS];
byte first;	     // of the list of attached Ps
byte below[WRITERS]; // next: the P attached before it
bool procs;	     // procs.lock
byte a[3], b[3];
bool no_p, reader; // held

// Store buffers, one store each: seq of a P by its thread, gen by the reader.
bool seq_buffer[WRITERS];
bool gen_buffer;

// Ghosts: what has happened, and where each thread is.
bool stopped;
byte begun, ended; // changes
byte writing[3];   // changes under way, by slot
byte finished;     // processes

// C: mutex_lock
// at: MUTEX_LOCK, MUTEX_SLEEP, MUTEX_UNLOCK
inline lock(m)
{
	atomic { !m -> m = true }
}

// heapstats_add, twice.
// C: heapstats_add
// in: count_with
inline change(slot)
{
	atomic { begun++; writing[slot]++; a[slot]++ }
	atomic { b[slot]++; writing[slot]--; ended++ }
}

// The first half of heapstats_acquire: atomic_u32_add_seqcst on stats_seq.
// A P changes statistics only while it is not stopped.
// C: heapstats_acquire
// at: HEAPSTATS_ACQUIRE
inline raise_seq(p)
{
	atomic { !stopped -> seq_buffer[p] = true }
#ifndef SEQ_UNFENCED
	!seq_buffer[p];
#endif
}

// heapstats_release: a release store of the only writer, after its raised seq.
// C: heapstats_release
// at: HEAPSTATS_RELEASE
inline lower_seq(p)
{
	atomic { !seq_buffer[p] -> seq[p]++; assert(seq[p] % 2 == 0) }
}

// heapstats_acquire, heapstats_add, heapstats_release of a thread with a P.
// C: heapstats_acquire, heapstats_release
// at: HEAPSTATS_ACQUIRE, HEAPSTATS_RELEASE
inline count_with(p, slot)
{
#ifdef GEN_FIRST
	atomic { !stopped -> slot = gen }
	raise_seq(p);
#else
	raise_seq(p);
	slot = gen;
#endif
#ifdef RELEASE_EARLY
	lower_seq(p);
	change(slot);
#else
	change(slot);
	lower_seq(p);
#endif
}

// heapstats_acquire, heapstats_add, heapstats_release of a thread without a P.
// C: heapstats_acquire, heapstats_release
// at: MUTEX_LOCK, MUTEX_SLEEP
inline count_without(slot)
{
#ifndef NO_P_UNLOCKED
	lock(no_p);
#endif
	slot = gen;
	change(slot);
#ifndef NO_P_UNLOCKED
	no_p = false;
#endif
}

// Buffered stores become visible in any order.
// C: none
proctype Memory()
{
end:
	do
	:: atomic { seq_buffer[0] -> seq[0]++; seq_buffer[0] = false }
	:: atomic { seq_buffer[1] -> seq[1]++; seq_buffer[1] = false }
	:: atomic { gen_buffer -> gen = (gen + 1) % SLOTS; gen_buffer = false }
	od
}

// C: proc_attach, proc_enlist
// at: PROC_ENLIST
inline enlist(p)
{
	lock(procs);
#ifdef NEXT_FIRST
	d_step { below[p] = NONE; before = first; first = p };
	d_step { below[p] = before; before = 0; procs = false }
#else
	below[p] = first;
	atomic { first = p; procs = false } // seqcst
#endif
}

// There are two Ps, so if this P is not the first, the other one links to it.
// C: proc_detach, proc_delist
// at: PROC_DETACH
inline delist(p)
{
	lock(procs);
	atomic {
		if
		:: first == p -> first = below[p]
		:: else -> below[1 - p] = below[p]
		fi;
#ifndef NEXT_CLEARED
		procs = false
#endif
	}
#ifdef NEXT_CLEARED
	atomic { below[p] = NONE; procs = false }
#endif
}

// P 0 stays.  P 1 attaches, detaches, and its record attaches again.  (If both
// attach and detach, all rules hold in twelve million states.)
// C: heapstats_acquire, proc_attach, proc_detach
// in: enlist
proctype Writer(byte p)
{
	byte i, slot, before;

	for (i : p + 1 .. CHANGES) {
#ifndef PUBLISH_LATE
		if
		:: p == 1 -> enlist(p)
		:: else
		fi;
#endif
#ifdef LEAVE_EARLY
		if
		:: p == 1 -> delist(p)
		:: else
		fi;
#endif
		count_with(p, slot);
#ifdef PUBLISH_LATE
		if
		:: p == 1 -> enlist(p)
		:: else
		fi;
#endif
#ifndef LEAVE_EARLY
		if
		:: p == 1 -> delist(p); enlist(p)
		:: else
		fi
#endif
	}
	finished++
}

// An unattached thread counts, and stops the world.  stw_stop waits until every
// P is stopped, and none stops inside a change.  The thread then counts what it
// flushes (mcache_flush_all) and calls heapstats_unsafe_read.
// C: heapstats_unsafe_read, mcache_flush_all
// at: MUTEX_SLEEP
proctype Stopper()
{
	byte slot, i, suma, sumb;

	count_without(slot);
	atomic {
		!stopped && seq[0] % 2 == 0 && seq[1] % 2 == 0 &&
		    !seq_buffer[0] && !seq_buffer[1] ->
		stopped = true
	}
	count_without(slot);
#ifndef READER_UNLOCKED
	lock(reader);
#endif
	for (i : 0 .. 2) {
		suma = suma + a[i];
		sumb = sumb + b[i]
	}
	assert(suma == ended && sumb == ended);
#ifndef READER_UNLOCKED
	reader = false;
#endif
	stopped = false;
	finished++
}

// heapstats_read.
// C: heapstats_read, wait_even, fold
// at: HEAPSTATS_READ, WAIT_EVEN, HEAPSTATS_READ_NEXT, HEAPSTATS_FOLD
proctype Reader()
{
	byte i, p, current, history, before, suma, sumb, last;

	for (i : 1 .. READS) {
		before = ended;
		lock(reader);
		current = gen;
		history = (current + SLOTS - 1) % SLOTS;
#ifdef LIST_FIRST
		p = first;
#endif
#ifndef MOVE_UNLOCKED
		lock(no_p);
#endif
		// atomic_u32_store_seqcst.
		gen_buffer = true;
#ifndef GEN_UNFENCED
		!gen_buffer;
#endif
		// mutex_unlock is a release: without the fence it would wait in
		// the buffer, behind gen.
#if !defined(MOVE_UNLOCKED) && !defined(GEN_UNFENCED)
		no_p = false;
#endif
#ifndef LIST_FIRST
		p = first; // proc_first
#endif
#ifndef NO_WAIT
		// wait_even of every P; proc_next.
		do
		:: p != NONE && seq[p] % 2 == 0 -> p = below[p]
		:: p == NONE -> break
		od;
#endif
		p = 0;
		// fold: no thread writes to either slot.
		assert(writing[current] == 0 && writing[history] == 0);
		suma = a[current] + a[history];
		a[current] = suma;
#ifndef HISTORY_KEPT
		a[history] = 0;
#endif
		sumb = b[current] + b[history];
		b[current] = sumb;
#ifndef HISTORY_KEPT
		b[history] = 0;
#endif
		assert(writing[current] == 0 && writing[history] == 0);
		// The read is whole, misses nothing that had ended, invents
		// nothing, and is never less than the previous read.
		assert(suma == sumb);
		assert(before <= suma && suma <= begun);
		assert(last <= suma);
		last = suma;
#ifdef GEN_UNFENCED
		atomic { !gen_buffer -> no_p = false }
#endif
		reader = false
	}
	finished++
}

init
{
	atomic {
		below[0] = NONE;
		run Memory();
		run Writer(0);
		run Writer(1);
		run Stopper();
		run Reader()
	}
	finished == WRITERS + 2;
	// Nothing is lost.
	assert(a[0] + a[1] + a[2] == ended && b[0] + b[1] + b[2] == ended);
	assert(ended == 2 * CHANGES - 1 + 2)
}
